"""The noise of a judge: the differences between its grades of the same answers, if it is asked again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import sqrt
from statistics import variance
from typing import Any, NamedTuple

from rag_eval.contract.verdict import MOST, SCORES
from rag_eval.llm_judge.asking import AnswerToJudge
from rag_eval.llm_judge.reliability import shown
from rag_eval.rendering.terminal import grid
from rag_eval.stats.agreement import Estimate, Sums, concordance, jackknife_z
from rag_eval.stats.intervals import clopper_pearson

Row = dict[str, Any]
_NORMAL = 1.96


class Repeated(NamedTuple):
    """An answer with its verdicts, the recorded one first."""

    answer: AnswerToJudge
    verdicts: Sequence[Row]

    def grades(self, metric: str) -> list[float]:
        """Return each verdict's grade of a metric; empty if one has none."""
        score = metric.removeprefix("judge_")
        if score == "correctness" and not self.answer.answerable:
            return []
        if score == "unsupported_claims":
            graded = [None if row["groundedness"] is None else len(row[score]) for row in self.verdicts]
        else:
            graded = [row[score] for row in self.verdicts]
        share = MOST if score == "relevancy" else 1
        return [] if None in graded else [grade / share for grade in graded if grade is not None]


class Noise(NamedTuple):
    """The noise of a metric.

    ``same`` is the share of answers with the same grade each time, ``deviation`` the standard deviation of one grade,
    ``kappa`` the agreement of one time with another (weighted, 1 without noise), ``means`` the value of the metric
    each time, ``of_mean`` the standard deviation of that value if all ``total`` answers are judged once.
    """

    metric: str
    n: int
    total: int
    same: Estimate
    deviation: float
    kappa: Estimate
    means: tuple[float, ...]
    of_mean: float


class Margin(NamedTuple):
    """A gate: its threshold, the distance of the value from it, and the share of that distance within noise (95 %)."""

    gate: str
    threshold: float
    value: float
    share: float | None


def noise(metric: str, answers: Sequence[Repeated], total: int) -> Noise | None:
    """Measure the noise of a metric; None if no answer has grades."""
    graded = [(item.answer.qid, grades) for item in answers if (grades := item.grades(metric))]
    if not graded:
        return None
    same = sum(len(set(grades)) == 1 for _, grades in graded)
    within = sum(variance(grades) for _, grades in graded) / len(graded)
    units: dict[str, Sums] = {}
    for qid, grades in graded:
        pairs = Sums.of((first, second, 1.0) for first, second in permutations(grades, 2))
        units[qid] = units.get(qid, Sums()).plus(pairs)
    n = len(graded)
    whole = max(n, round(total * n / len(answers)))
    means = tuple(sum(column) / n for column in zip(*(grades for _, grades in graded), strict=True))
    return Noise(
        metric,
        n,
        whole,
        Estimate(same / n, *clopper_pearson(same, n)),
        sqrt(within),
        jackknife_z(list(units.values()), concordance),
        means,
        sqrt(within / whole),
    )


def margin(gate: str, threshold: float, noise: Noise) -> Margin:
    """Return the share of the distance between value and threshold that is within the noise of asking once."""
    value = sum(noise.means) / len(noise.means)
    distance = abs(value - threshold)
    share = _NORMAL * noise.of_mean / distance if distance > 1e-12 else None if noise.of_mean else 0.0
    return Margin(gate, threshold, value, share)


def metrics(gated: Sequence[str]) -> list[str]:
    """Return the metrics of a judge to measure: those with gates, otherwise all scores."""
    names = dict.fromkeys(name.partition(".")[0] for name in gated if name.startswith("judge_"))
    return list(names) or [f"judge_{score}" for score in SCORES]


def as_rows(replies: Mapping[tuple[str, str], Row], asked: Mapping[str, AnswerToJudge]) -> list[Row]:
    """Return a row for each reply: ``replies`` by repeat and hash to the answers that were ``asked`` about."""
    in_order = sorted(replies.items(), key=lambda item: (item[0][1], int(item[0][0])))
    return [
        asked[name].row(reply, {"hash": name, "repeat": int(repeat)})
        for (repeat, name), reply in in_order
        if name in asked
    ]


def noise_lines(noises: Sequence[Noise], margins: Sequence[Margin]) -> Iterator[str]:
    """Yield a table of the metrics, and how far each gate is from its threshold."""
    if not noises:
        yield "no answer has a verdict in every repeat, so there is nothing to measure"
        return
    rows = []
    for item in noises:
        values = shown(item.same), f"{item.deviation:.3f}", shown(item.kappa), f"±{_NORMAL * item.of_mean:.3f}"
        rows.append([item.metric, str(item.n), *values])
    headers = ["metric", "answers", "same grade every time", "sd", "kappa between repeats", "noise of the value"]
    yield from grid(headers, rows).split("\n")
    for item in noises:
        means = ", ".join(f"{mean:.3f}" for mean in item.means)
        yield f"{item.metric}: {means} (repeats: {len(item.means)}, answers: {item.n} of {item.total})"
    for gate in margins:
        away = f"{gate.value:.3f} is {abs(gate.value - gate.threshold):.3f} away"
        share = f"; the noise of the judge is {gate.share:.0%} of that" if gate.share is not None else ""
        if gate.share is None or gate.share >= 1:
            share = ", which is within the noise of the judge: this gate may change if the judge is asked again"
        yield f"{gate.gate} {gate.threshold:g}: the value {away}{share}"
