"""Near duplicates are found without comparing all pairs, and are those that comparing all pairs finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from depth import examples
from rag_eval.gold.item_checks import SHARED, _stems, _telling, near_duplicates
from seams import Gold


def item(**fields):
    return {"answerable": True, "gold_claim_substr": [], "gold_citations": [], **fields}


@examples(60)
@given(
    st.lists(
        st.lists(st.sampled_from("red blue green long the of is 4kg 5kg".split()), min_size=1, max_size=7), max_size=8
    )
)
def test_near_duplicates_are_those_that_comparing_all_pairs_finds(questions):
    golds = [Gold.from_row(item(qid=f"Q{n}", question=" ".join(question)), n) for n, question in enumerate(questions)]
    late = set()
    for first in golds:
        for other in golds:
            mine, its = _stems(first.question), _stems(other.question)
            nested = _telling(mine) <= _telling(its) and _telling(mine)
            if first.qid != other.qid and nested and SHARED[1] * len(mine & its) >= SHARED[0] * len(mine | its):
                late.add(max(first.qid, other.qid))
    assert {gold.qid for gold, _ in near_duplicates(golds)} == late
