"""A history of one metric, as `rag-eval history` draws it."""

from __future__ import annotations

from rag_eval.analysis.history import Bound, Contrast, Flaky, GoldCounts, Point, Reading, RunVerdict, Series
from rag_eval.gates import Comparison
from seams import Completeness


def readings(labels, values):
    """A reading a label; the second under another contract, the third after a change of the gold."""
    return tuple(
        Reading(label, value, value, value, 9, index != 1, index in (1, 2), GoldCounts(1, 0, 2) if index == 2 else None)
        for index, (label, value) in enumerate(zip(labels, values, strict=False))
    )


def compared(old, new, regression, low, high, n, p):
    """A tested comparison of two values."""
    return Comparison(old, new, regression, n, p, p, 0.05, low=low, high=high)


def series(labels, values=(0.9, 0.8, None, 0.7, 0.6, 0.5, 0.4)):
    contrast = Contrast(labels[0], labels[-1], compared(0.9, 0.5, 0.4, 0.2, 0.6, 9, 0.01))
    return [Series("precision", "higher", readings(labels, values), contrast, contrast, contrast)]


def trend(texts):
    """What a page of a history is made of, its names from ``texts``: series, reports, runs, flaky questions."""
    label, commit, date, question, failed = texts[:5]
    verdict = RunVerdict(False, (failed,), 1, 9, date)
    runs = [Point(label, {}, {}, (), Completeness(0, 0, 0, 0, 0, 0), commit=commit, verdict=verdict)]
    unsteady = [Flaky(question, label, 1, 3, 2, (failed,))]
    [item] = series(texts)
    bounds = [Bound("min", 0.8, "passed"), Bound("min", 0.6, "failed")]
    stored = tuple(
        reading._replace(commit=commit, bound=bounds[index > 3]) for index, reading in enumerate(item.readings)
    )
    return [item._replace(readings=stored)], len(texts), runs, unsteady
