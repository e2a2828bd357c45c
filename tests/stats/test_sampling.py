"""Samples drawn by hashes: they depend on names and seed alone, and every stratum is in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_eval.stats.sampling import draw_positions, hash_order, proportional_counts, root_counts, sample_positions

SIZES = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 60), min_size=1)


@given(st.lists(st.text(max_size=5), unique=True), st.text(max_size=3))
def test_the_order_depends_on_names_and_seed_alone(names, seed):
    ordered = hash_order(names, seed=seed)
    assert hash_order(reversed(names), seed=seed) == ordered
    assert [name for name in hash_order([*names, "another"], seed=seed) if name != "another"] == ordered


@given(SIZES, st.integers(1, 200))
def test_counts_fill_the_sample_with_some_of_each_stratum(sizes, size):
    strata = {name: range(count) for name, count in sizes.items()}
    for counts in (proportional_counts(strata, size), root_counts(strata, size)):
        assert all(count <= sizes[name] for name, count in counts.items())
        if size >= len(sizes):
            assert sum(counts.values()) == min(size, sum(sizes.values()))
            assert min(counts.values()) >= 1


def test_rare_strata_have_their_share_or_more():
    strata = {"rare": range(10), "usual": range(90)}
    assert proportional_counts(strata, 20) == {"rare": 2, "usual": 18}
    assert root_counts(strata, 20) == {"rare": 5, "usual": 15}
    assert proportional_counts({"rare": range(1), "usual": range(999)}, 10) == {"rare": 1, "usual": 9}


def test_positions_depend_on_the_seed_alone():
    assert sample_positions(5, 9, "a") == [0, 1, 2, 3, 4]
    assert sample_positions(1000, 50, "a") == sample_positions(1000, 50, "a") != sample_positions(1000, 50, "b")
    for positions in (sample_positions(1000, 50, "a"), list(draw_positions(1000, 50, "a"))):
        assert len(positions) == len(set(positions)) == 50
        assert set(positions) <= set(range(1000))
    assert sorted(draw_positions(20, 500, "a")) == list(range(20))
    assert list(draw_positions(0, 500, "a")) == []
