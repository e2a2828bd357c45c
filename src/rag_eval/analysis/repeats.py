"""Repeats of a system: how often all of several answers to a question pass, and how often at least one does.

``pass^k`` is the probability that all of k independent repeats of a question pass (Yao et al., "tau-bench", 2024,
arXiv:2406.12045), ``pass@k`` the probability that at least one of them does (Chen et al., "Evaluating Large Language
Models Trained on Code", 2021, arXiv:2107.03374). From c passes of n repeats the unbiased estimates are
C(c, k) / C(n, k) and 1 - C(n - c, k) / C(n, k); the value is their mean over the questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import NamedTuple

from rag_eval.cases.labels import GOOD
from rag_eval.gates.results import Question
from rag_eval.stats.intervals import interval

_CUTOFFS = (1, 2, 3, 4, 5, 8, 10, 20, 50, 100)


class RepeatedQuestion(NamedTuple):
    """A question: how many of its repeats pass, and the label of each in the order of the runs."""

    qid: str
    question: str
    passes: int
    labels: tuple[str, ...]

    @property
    def flaky(self) -> bool:
        """Return whether some repeats pass and some fail."""
        return 0 < self.passes < len(self.labels)


class ShareEstimate(NamedTuple):
    """A share of the questions with its 95 % interval: the range for other questions of the same kind."""

    value: float
    low: float | None
    high: float | None


class AtK(NamedTuple):
    """Probabilities that all of k repeats pass, and that at least one does."""

    k: int
    every: ShareEstimate
    some: ShareEstimate


class Repeats(NamedTuple):
    """A system's repeats: ``runs`` by name, the questions by qid, and the estimates by k up to the number of runs."""

    name: str
    runs: tuple[str, ...]
    questions: tuple[RepeatedQuestion, ...]
    at: tuple[AtK, ...]

    @property
    def flaky(self) -> list[RepeatedQuestion]:
        """Return the questions of which only some repeats pass, those closest to one half first."""
        unsteady = [question for question in self.questions if question.flaky]
        return sorted(unsteady, key=lambda item: (abs(2 * item.passes - len(item.labels)), item.qid))


def pass_hat_k(n: int, c: int, k: int) -> Fraction:
    """Return pass^k from c passes of n repeats: C(c, k) / C(n, k). Unbiased for 1 <= k <= n."""
    return Fraction(comb(c, k), comb(n, k))


def pass_at_k(n: int, c: int, k: int) -> Fraction:
    """Return pass@k from c passes of n repeats: 1 - C(n - c, k) / C(n, k). Unbiased for 1 <= k <= n."""
    return 1 - Fraction(comb(n - c, k), comb(n, k))


def repeats(name: str, runs: Sequence[tuple[str, Mapping[str, Question]]], qids: Sequence[str]) -> Repeats:
    """Return the repeats of a system, from named runs with their cases by qid, over the questions of all runs.

    Safety cases pass whatever is answered, so they are left out: they would only make the shares look better.
    """
    questions = []
    for qid in sorted(qids):
        labels = tuple(cases[qid].label for _, cases in runs)
        if "ATTACK" not in labels:
            question = runs[0][1][qid].question
            questions.append(RepeatedQuestion(qid, question, sum(label in GOOD for label in labels), labels))
    n, passes = len(runs), Counter(question.passes for question in questions)
    at = tuple(
        AtK(k, _estimate(passes, n, k, pass_hat_k), _estimate(passes, n, k, pass_at_k))
        for k in [*(k for k in _CUTOFFS if k < n), n]
    )
    return Repeats(name, tuple(run for run, _ in runs), tuple(questions), at if questions else ())


def _estimate(passes: Counter[int], n: int, k: int, of: Callable[[int, int, int], Fraction]) -> ShareEstimate:
    scores: Counter[float] = Counter()
    for c, questions in passes.items():
        scores[float(of(n, c, k))] += questions
    # With k = n a question's estimate is 0 or 1, and the interval of a rate is the exact one.
    bounds = interval(scores, "rate" if k == n else "mean")
    total = sum((of(n, c, k) * questions for c, questions in passes.items()), Fraction(0))
    value = float(total / passes.total()) if passes else 0.0
    return ShareEstimate(value, bounds.low if bounds else None, bounds.high if bounds else None)
