"""Runs for tests: cases that say only what matters, and the evidence that gates are judged by."""

from __future__ import annotations

from collections import Counter

from seams import Baseline, Completeness, MetricResult, Question, RunEvidence, folded, measure


def question(qid, label="OK", run=None, gold="g", slices=(), **scores):
    """A case; its scores by metric, ``recall_all_5`` for ``recall_all@5``; None does not apply."""
    named = {name.replace("_5", "@5"): float(score) for name, score in scores.items() if score is not None}
    return Question(qid, run, "?", True, label, label, named, 1, 1, gold, tuple(slices))


def questions(name, scores, slices=None, **fields):
    """A case for each score of one metric: Q0, Q1, …; ``slices`` gives the slices of each."""
    parts = slices or [()] * len(scores)
    rows = zip(scores, parts, strict=True)
    return [
        question(f"Q{i}", slices=part, **{name.replace("@", "_"): score}, **fields)
        for i, (score, part) in enumerate(rows)
    ]


def result(name, number, n=9):
    """A metric's value as a report keeps it."""
    metric = measure(name).metric
    return MetricResult(number, n, None, None, metric.better, metric.perspective)


def results(cases):
    """The values that cases come to."""
    names = sorted({name for case in cases for name in case.scores})
    return {name: _result(name, [case.scores[name] for case in cases if name in case.scores]) for name in names}


def _result(name, scores):
    value, metric = folded(name, Counter(scores)), measure(name).metric
    exact = None if metric.scale != "rate" else str(value.number)
    return MetricResult(float(value.number), value.n, exact, value.hits, metric.better, metric.perspective)


def evidence(after, before=None, contracts=None, missing=0, cluster=""):
    """What gates are judged by; ``before`` are the cases of the baseline, under the same contracts unless given."""
    ours = dict.fromkeys(results(after), "c")
    completeness = Completeness(len(after), len(after) - missing, missing, 0, 0, 0)
    theirs = (
        Baseline(before, dict.fromkeys(results(before), "c") if contracts is None else contracts)
        if before is not None
        else None
    )
    return RunEvidence(after, results(after), completeness, ours, theirs, cluster=cluster)
