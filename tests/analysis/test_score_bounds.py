"""Scores of a report.json that no metric gives: found by the column as one by one, however the cases are held."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from rag_eval.gates.questions import impossible
from runs import question
from seams import Question

GOOD = {"precision": 1.0, "over_refusal": 0.0, "mrr": 0.5, "recall@5": 1.0, "latency_total_ms": 1e15, "of_later": -9.0}
BAD = [
    ("precision", 0.5),
    ("precision", 1e300),
    ("over_refusal", -1.0),
    ("mrr", -1e300),
    ("mrr", 1.5),
    ("recall@5", 2),
    ("latency_total_ms", -1.0),
    ("latency_total_ms", 1e16),
    ("mrr", [0.5, True]),
    ("injection_auc", 0.5),
    ("injection_auc", [2.0, True]),
]


def cases(rows, read):
    made = [replace(question(f"Q{at}"), scores=row) for at, row in enumerate(rows)]
    rows = [{**asdict(item), "scores": dict(item.scores)} for item in made]
    return msgspec.convert(rows, list[Question]) if read else made


def shuffled():
    return st.lists(st.permutations(list(GOOD)).map(lambda names: {name: GOOD[name] for name in names[:4]}), max_size=5)


@pytest.mark.parametrize("read", [False, True], ids=["plain", "read"])
@pytest.mark.parametrize(("name", "score"), BAD)
@given(before=shuffled(), after=shuffled(), row=st.permutations(list(GOOD)))
def test_the_first_case_with_such_a_score_is_named_wherever_it_stands(read, name, score, before, after, row):
    wrong = {**{other: GOOD[other] for other in row}, name: score}
    assert impossible(cases([*before, *after], read)) == ""
    output = impossible(cases([*before, wrong, *after, wrong], read))
    assert output.startswith(f"'Q{len(before)}' has an impossible score: '{name}' cannot be ")
