"""The scores of a case as a report has them: a mapping like any other, made of what the scorer stores."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.gates.questions import Scores

labelled = st.tuples(st.floats(0, 1), st.booleans())
row_scores = st.lists(st.one_of(st.none(), st.floats(0, 9), labelled), max_size=8)


def both(found, shared=None):
    """The scores, of which the first are shared, and the dict that they stand for."""
    names = [f"m{place}" for place in range(len(found))]
    applying = {name: score for name, score in zip(names, found, strict=True) if score is not None}
    cut = len(found) if shared is None else shared
    return Scores({name: place for place, name in enumerate(names)}, tuple(found[:cut]), tuple(found[cut:])), applying


@given(row_scores, st.integers(0, 8))
def test_scores_are_the_dict_of_those_that_apply(found, shared):
    scores, plain = both(found, shared)
    assert (scores == plain, scores.as_dict(), repr(scores)) == (True, plain, repr(plain))
    assert (list(scores), list(scores.items()), len(scores)) == (list(plain), list(plain.items()), len(plain))
    assert {**scores} == dict(scores) == plain
    assert pickle.loads(pickle.dumps(scores)) == plain


@given(row_scores, st.integers(0, 8))
def test_what_does_not_apply_and_what_is_no_column_are_not_there(found, shared):
    scores, plain = both(found, shared)
    for name in (*(f"m{place}" for place in range(len(found))), "other"):
        assert (name in scores, scores.get(name), scores.get(name, "-")) == (
            name in plain,
            plain.get(name),
            plain.get(name, "-"),
        )


def test_a_column_that_is_not_there_is_a_key_error():
    scores, _ = both([None, 1.0])
    for name in ("m0", "other"):
        with pytest.raises(KeyError, match=name):
            _ = scores[name]
