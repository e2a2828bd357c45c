"""Answers that say what every other question wants to hear: found from a bound on, in whatever order lines come."""

from __future__ import annotations

import random

import pytest
from msgspec import structs

from cases import gold_row, trace_row
from rag_eval.gates.integrity import degenerate_findings
from rag_eval.scoring.case_scorer import LEAST_PROBES
from seams import Gate, Gold, Policy, Settings, Trace, measure, metric_scorer

_HIGH, _LOW = ("precision", "chr"), ("under_refusal", "over_refusal")
GATES = Policy(
    gates=(*(Gate(name, "min", "0.5") for name in _HIGH), *(Gate(name, "max", "0.5") for name in _LOW)),
)


def golds(answerable=10, unanswerable=4):
    rows = [
        gold_row(qid=f"A{n}", gold_claim_substr=[f"fact {n}."], gold_citations=[f"c{n}"]) for n in range(answerable)
    ]
    rows += [
        gold_row(qid=f"U{n}", answerable=False, gold_claim_substr=[], gold_citations=[]) for n in range(unanswerable)
    ]
    return {row["qid"]: Gold.from_row(row, line) for line, row in enumerate(rows, 1)}


def honest(gold):
    """A right answer to one item: the claim, what is cited, what was retrieved."""
    if not gold.answerable:
        return "not in context", [], ["x1", "x2"]
    return f"It is {gold.substrings[0]}", list(gold.citations), [*gold.citations, "x1", "x2", "x3", "x4"]


def found(asked, answer, shuffle=None):
    """Code and level of what is found in the run in which ``answer`` is given to each item."""
    traces = []
    for line, gold in enumerate(asked.values(), 1):
        claim, cites, retrieved = answer(gold)
        row = trace_row(answer_json={"claim": claim, "citations": cites}, retrieved_ids=retrieved)
        traces.append(Trace.from_row(row, gold.qid, line))
    if shuffle is not None:
        random.Random(shuffle).shuffle(traces)
    scorer = metric_scorer(asked, [measure("precision")], Settings())
    scorer.add_traces(traces)
    findings = degenerate_findings(scorer.close().cases.outcome_counts, GATES)
    return [(finding.code, finding.level) for finding in findings]


def everything(asked):
    """A claim that holds what every question wants to hear."""
    return "It is " + " ".join(text for gold in asked.values() for text in gold.substrings)


def test_an_honest_run_has_none():
    assert found(golds(), honest) == []


@pytest.mark.parametrize(("size", "codes"), [(LEAST_PROBES - 1, []), (LEAST_PROBES, [("padded-answers", "error")])])
def test_answers_that_say_everything(size, codes):
    asked = golds(size, 0)
    text = everything(asked)
    assert found(asked, lambda gold: (text, *honest(gold)[1:])) == codes


def test_a_long_claim_of_its_own_is_no_habit():
    asked = golds(10, 0)
    assert found(asked, lambda gold: (honest(gold)[0] + " as the manual says" * 20, *honest(gold)[1:])) == []


@pytest.mark.parametrize(("honest_ones", "codes"), [(1, [("padded-answers", "error")]), (2, [])])
def test_a_tenth_of_honest_answers_does_not_hide_the_rest_and_a_fifth_does(honest_ones, codes):
    asked = golds(10, 0)
    text = everything(asked)

    def mostly(gold):
        return (text if int(gold.qid[1:]) >= honest_ones else honest(gold)[0], *honest(gold)[1:])

    assert found(asked, mostly) == codes


def test_questions_that_want_the_same_are_no_sample():
    asked = {qid: structs.replace(gold, substrings=("fact 1.",)) for qid, gold in golds(10, 0).items()}
    assert found(asked, honest) == []


@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_lines_changes_what_is_found(seed):
    asked = golds(14)
    text = everything(asked)
    names = sorted(asked, key=lambda qid: random.Random(f"{seed}{qid}").random())
    mixed = {qid: asked[qid] for qid in names}

    def say_all(gold):
        return (text, *honest(gold)[1:])

    assert found(mixed, say_all, shuffle=seed) == found(asked, say_all)
