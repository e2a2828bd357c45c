"""Reliability of a judge: its agreement with people, and with itself if it is asked again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from math import floor, sqrt
from statistics import median, variance
from typing import Any, NamedTuple

from rag_eval.common.escaping import one_line, quantity, quoted
from rag_eval.contract import MOST, SCORES, digest_of
from rag_eval.llm_judge import AnswerToJudge, Label, Scale
from rag_eval.rendering.terminal import grid
from rag_eval.stats.agreement import (
    Estimate,
    Statistic,
    Sums,
    area,
    area_interval,
    concordance,
    jackknife,
    jackknife_z,
    mean_of_y,
    slope,
)
from rag_eval.stats.intervals import CONFIDENCE, clopper_pearson

Row = dict[str, Any]
FEW = 10  # with fewer answers on one side of the cut, kappa and AUROC depend on a handful of answers
_ROUNDING, _SHOWN, _NORMAL = 1e-12, 5, 1.96


class Graded(NamedTuple):
    """An answer with the judge's score and people's: ``votes`` of each person, on the scale 0 to 5 or 0 to 1."""

    qid: str
    run: str
    judge: int
    votes: tuple[float, ...]
    weight: float
    unit: str
    length: int
    position: int | None

    @property
    def people(self) -> float:
        """Return the mean of the votes."""
        return sum(self.votes) / len(self.votes)


class Matched(NamedTuple):
    """Answers by score, labels without a verdict and labels that match several verdicts."""

    graded: Mapping[str, Sequence[Graded]]
    unjudged: Sequence[Label]
    ambiguous: Sequence[Label]


def match_labels(rows: Iterable[Row], labels: Sequence[Label]) -> Matched:
    """Match labels with recorded verdicts, by digest of the input if they state it, otherwise by question and run."""
    by_answer: dict[tuple[str, str], list[tuple[str, Row]]] = defaultdict(list)
    for row in rows:
        if "error" not in row:
            by_answer[row["qid"], row.get("run", "")].append((digest_of(row["input"]), row))
    chosen: dict[str, tuple[Row, list[Label]]] = {}
    unjudged, ambiguous = list[Label](), list[Label]()
    for label in labels:
        matches = [(name, row) for name, row in by_answer[label.qid, label.run] if label.input in ("", name)]
        if len(matches) == 1:
            chosen.setdefault(matches[0][1]["hash"], (matches[0][1], []))[1].append(label)
        else:
            (ambiguous if matches else unjudged).append(label)
    graded = {score: [item for pair in chosen.values() if (item := _graded(score, *pair))] for score in SCORES}
    return Matched({score: some for score, some in graded.items() if some}, unjudged, ambiguous)


def _graded(score: str, row: Row, labels: Sequence[Label]) -> Graded | None:
    votes = tuple(label.scores[score] for label in labels if score in label.scores)
    if not votes or row.get(score) is None:
        return None
    shown = row["input"]
    ids = [chunk["id"] for chunk in shown["chunks"]]
    cited = [ids.index(name) + 1 for name in shown["citations"] if name in ids]
    weight = sum(label.weight for label in labels) / len(labels)
    about = row["qid"], row.get("run", ""), row[score]
    return Graded(*about, votes, weight, labels[0].unit, len(shown["answer"]), min(cited, default=None))


class Bias(NamedTuple):
    """The excess of the judge's scores over people's, in two groups of answers, and the difference of the two."""

    groups: tuple[tuple[str, int, float], ...]
    difference: Estimate


class Agreement(NamedTuple):
    """The agreement measured for one score.

    ``kappa`` is quadratic weighted, of scores 0 to 5; of binary labels it is that of scores cut at ``cut``.
    ``base_rate`` and ``judge_rate`` are the shares of answers at or above the cut, by people and by the judge.
    ``people`` is the same kappa of one person against the mean of the others. ``confusion`` counts answers by the
    judge's score and then by people's, rounded; ``at_cut`` by people (good, bad) and then by the judge (good, bad).
    """

    score: str
    n: int
    units: int
    votes: int
    binary: bool
    cut: float
    kappa: Estimate
    auroc: Estimate
    base_rate: Estimate
    judge_rate: float
    people: Estimate | None
    bias: Estimate
    length: Bias | None
    position: Bias | None
    confusion: tuple[tuple[int, ...], ...]
    at_cut: tuple[tuple[int, int], tuple[int, int]]
    apart: tuple[tuple[str, str, int, float], ...]
    notes: tuple[str, ...]


def measure_agreement(score: str, graded: Sequence[Graded], cut: float, *, binary: bool) -> Agreement:
    """Measure how far people agree with the judge on a score. ``cut`` is a score from 0 to 5."""
    good = [item.people > 0.5 if binary else item.people >= cut - 1e-9 for item in graded]
    by_judge = [item.judge >= cut for item in graded]

    def pair(item: Graded) -> tuple[float, float]:
        return (float(item.judge >= cut), float(item.people > 0.5)) if binary else (float(item.judge), item.people)

    def excess(entry: Graded) -> float:
        judge, people = pair(entry)
        return judge - people

    def one_against_others(entry: Graded) -> Iterable[tuple[float, float]]:
        return [(vote, (sum(entry.votes) - vote) / (len(entry.votes) - 1)) for vote in entry.votes]

    kappa = _over_units(graded, lambda element: [pair(element)], concordance)
    several = [item for item in graded if len(item.votes) > 1]
    effective = min(_effective(graded), len({item.unit for item in graded}))
    total = sum(item.weight for item in graded)
    rate = sum(item.weight for item, is_good in zip(graded, good, strict=True) if is_good) / total
    confusion = [[0] * (2 if binary else MOST + 1) for _ in range(MOST + 1)]
    for item in graded:
        confusion[item.judge][int(item.people > 0.5) if binary else floor(item.people + 0.5)] += 1
    positions = [(item, float(item.position)) for item in graded if item.position is not None]
    cells = Counter(zip(good, by_judge, strict=True))
    disagreements = [item for item in graded if abs(excess(item)) >= (1 if binary else 2)]
    disagreements = sorted(disagreements, key=lambda one: (-abs(excess(one)), one.qid, one.run))[:5]
    return Agreement(
        score=score,
        n=len(graded),
        units=len({item.unit for item in graded}),
        votes=sum(len(item.votes) for item in graded),
        binary=binary,
        cut=cut,
        kappa=kappa,
        auroc=_auroc(graded, good),
        base_rate=Estimate(rate, *area_interval(rate, effective, CONFIDENCE)[:2]),
        judge_rate=sum(item.weight for item, judged in zip(graded, by_judge, strict=True) if judged) / total,
        people=_over_units(several, one_against_others, concordance) if several else None,
        bias=_over_units(graded, lambda one: [(0.0, excess(one))], mean_of_y),
        length=_bias([(item, float(item.length)) for item in graded], excess, ("shorter half", "longer half")),
        position=_bias(positions, excess, ("cited chunk is first", "cited chunk is later"), at=1.5),
        confusion=tuple(map(tuple, confusion)),
        at_cut=((cells[True, True], cells[True, False]), (cells[False, True], cells[False, False])),
        apart=tuple((one.qid, one.run, one.judge, one.people) for one in disagreements),
        notes=tuple(_notes(graded, good, kappa)),
    )


def _over_units(
    graded: Iterable[Graded], pairs: Callable[[Graded], Iterable[tuple[float, float]]], statistic: Statistic
) -> Estimate:
    """Return a statistic of pairs, and its interval over the units of the answers."""
    return _estimate(((item.unit, [(*pair, item.weight) for pair in pairs(item)]) for item in graded), statistic)


def _estimate(pairs: Iterable[tuple[str, Iterable[tuple[float, float, float]]]], statistic: Statistic) -> Estimate:
    """Return a statistic of pairs with weights, given for each unit, and its interval over the units."""
    units: dict[str, Sums] = {}
    for unit, some in pairs:
        units[unit] = units.get(unit, Sums()).plus(Sums.of(some))
    return (jackknife_z if statistic is concordance else jackknife)(list(units.values()), statistic)


def _effective(graded: Sequence[Graded]) -> float:
    """Return the number of answers of equal weight with the same information (Kish)."""
    return sum(item.weight for item in graded) ** 2 / sum(item.weight**2 for item in graded)


def _auroc(graded: Sequence[Graded], good: Sequence[bool]) -> Estimate:
    """Return how often the judge scores a good answer higher than a bad one.

    The interval is that of a rate over as many answers as give the jackknife's variance over units, but at most the
    answers of the smaller side, and at least its units.
    """
    sides = [[item for item, is_good in zip(graded, good, strict=True) if is_good is side] for side in (True, False)]
    if not all(sides):
        return Estimate(None)
    whole = [_weights(side) for side in sides]
    value, units = area(*whole), {item.unit for item in graded}
    by_unit: list[dict[str, list[Graded]]] = [defaultdict(list), defaultdict(list)]
    for item, is_good in zip(graded, good, strict=True):
        by_unit[not is_good][item.unit].append(item)
    areas = []
    for unit in units:  # without it
        removed = [_weights(items.get(unit, ())) for items in by_unit]
        rests = [total - less for total, less in zip(whole, removed, strict=True)]
        rests = [Counter({score: weight for score, weight in rest.items() if weight > _ROUNDING}) for rest in rests]
        if all(rests):
            areas.append(area(*rests))
    middle = sum(areas) / len(units)
    spread = sum((area - middle) ** 2 for area in areas) if len(areas) == len(units) else 0.0
    spread *= 1 - 1 / len(units)
    maximum = min(map(_effective, sides))
    least = min(maximum, *(float(len(items)) for items in by_unit))
    answers = value * (1 - value) / spread if spread > _ROUNDING else least
    return Estimate(value, *area_interval(value, min(maximum, max(least, answers)), CONFIDENCE)[:2])


def _weights(side: Iterable[Graded]) -> Counter[float]:
    weights: Counter[float] = Counter()
    for item in side:
        weights[float(item.judge)] += item.weight  # type: ignore[assignment]
    return weights


def _bias(
    some: Sequence[tuple[Graded, float]],
    excess: Callable[[Graded], float],
    names: tuple[str, str],
    at: float | None = None,
) -> Bias | None:
    """Return the difference of the judge's excess over people between two halves; None if one half is empty."""
    middle = median(value for _, value in some) if some and at is None else at
    sides = [(item, value, value > (middle or 0)) for item, value in some]
    groups = [[item for item, _, is_above in sides if is_above is side] for side in (False, True)]
    if not all(groups):
        return None
    means = []
    for name, group in zip(names, groups, strict=True):
        mean = sum(item.weight * excess(item) for item in group) / sum(item.weight for item in group)
        means.append((name, len(group), mean))
    above = {id(item): float(is_above) for item, _, is_above in sides}
    answers = [item for item, _ in some]
    difference = _over_units(answers, lambda item: [(above[id(item)], excess(item))], slope)
    return Bias(tuple(means), difference)


def _notes(graded: Sequence[Graded], good: Sequence[bool], kappa: Estimate) -> Iterable[str]:
    counts = sum(good), len(good) - sum(good)
    if not all(counts):
        side = "good" if counts[0] else "bad"
        yield f"people rate every answer {side}: there is no AUROC. Label answers of the other kind, or move --cut"
    elif min(counts) < FEW:
        side = "good" if counts[0] < counts[1] else "bad"
        answers = quantity(min(counts), "answer")
        yield f"people rate only {answers} {side}: label more, because kappa and AUROC depend on them"
    if len({item.judge for item in graded}) == 1:
        yield f"the judge gives {graded[0].judge} to every answer: it does not distinguish answers"
    elif kappa.low is None:
        yield "kappa has no interval: people give every answer the same score, or there are fewer than 3 questions"


def calibration_record(measured: Sequence[Agreement], judge: str, labels: str) -> dict[str, Any]:
    """Return the record for the gates file: for each score the lower ends of its intervals, rounded down."""
    scores = {}
    for item in measured:
        lows = {"kappa": item.kappa.low, "auroc": item.auroc.low}
        stated = {name: floor(low * 1000) / 1000 for name, low in lows.items() if low is not None}
        if stated:
            scores[item.score] = {"n": item.n, "low": stated}
    return {"judge": judge, "labels": labels, "scores": scores}


def _text(estimate: Estimate, *, sign: bool = False) -> str:
    if estimate.value is None:
        return "none"
    value = _rounded(estimate.value, sign=sign)
    if estimate.low is None or estimate.high is None:
        return f"{value} no interval"
    return f"{value} [{_rounded(estimate.low, sign=sign)}, {_rounded(estimate.high, sign=sign)}]"


def _rounded(number: float, *, sign: bool = False) -> str:
    """Return a number with three decimals and the minus sign of reports."""
    return f"{number:{'+' if sign else ''}.3f}".replace("-", "−")


def agreement_lines(scales: Mapping[str, Scale], pairs: Matched, measured: Sequence[Agreement]) -> Iterator[str]:
    """Yield what is known of the agreement on each score."""
    if pairs.unjudged:
        qids = list(dict.fromkeys(quoted(entry.qid, 40) for entry in pairs.unjudged))
        some = ", ".join(qids[:_SHOWN]) + (", …" if len(qids) > _SHOWN else "")
        counted = quantity(len(pairs.unjudged), "label")
        yield f"not counted: {counted} on answers without a verdict of this judge: {some}"
    for item in measured:
        yield from ("", *_score_lines(item, scales[item.score]))


def _score_lines(agreement: Agreement, scale: Scale) -> Iterator[str]:
    labels = "0 or 1" if agreement.binary else f"{scale[0]:g} to {scale[1]:g}"
    counts = f"answers: {agreement.n}, questions: {agreement.units}, labels: {agreement.votes} from {labels}"
    yield f"{agreement.score} ({counts})"
    good = "the label is 1" if agreement.binary else f"the score is {agreement.cut:g} or more"
    unit = "share of answers" if agreement.binary else "points"
    how = f"judge cut at {agreement.cut:g}" if agreement.binary else "quadratic weights"
    rows = [
        ("kappa", _text(agreement.kappa), how),
        ("AUROC", _text(agreement.auroc), f"good: {good}"),
        ("base rate", _text(agreement.base_rate), f"good by people; by the judge {agreement.judge_rate:.3f}"),
        ("bias", _text(agreement.bias, sign=True), f"judge minus people, {unit}"),
    ]
    if agreement.people:
        rows.insert(1, ("kappa of people", _text(agreement.people), "one person and the mean of the others"))
    for name, bias in (("length", agreement.length), ("position", agreement.position)):
        if bias:
            groups = "; ".join(f"{label} {_rounded(mean, sign=True)} ({n})" for label, n, mean in bias.groups)
            rows.append((f"bias by {name}", _text(bias.difference, sign=True), f"difference: {groups}"))
    yield from grid(["", "value, 95 % interval", ""], rows).split("\n")
    yield ""
    people = ["bad", "good"] if agreement.binary else [str(score) for score in range(MOST + 1)]
    table = [[str(score), *map(str, row)] for score, row in enumerate(agreement.confusion)]
    yield from grid(["judge \\ people", *people], table).split("\n")
    (hit, missed), (wrong, right) = agreement.at_cut
    yield f"at the cut: good for both {hit}, bad for both {right}, good only for the judge {wrong}, for people {missed}"
    yield f"they disagree on {wrong + missed} of {agreement.n} answers ({(wrong + missed) / agreement.n:.0%})"
    for qid, run, score, mean in agreement.apart:
        where = f" of run {one_line(run, 40)}" if run else ""
        yield f"far apart: {one_line(qid, 60)}{where}: judge {score}, people {mean:.3g}"
    yield from (f"note: {note}" for note in agreement.notes)


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


def measure_noise(metric: str, answers: Sequence[Repeated], total: int) -> Noise | None:
    """Measure the noise of a metric; None if no answer has grades."""
    graded = [(item.answer.qid, grades) for item in answers if (grades := item.grades(metric))]
    if not graded:
        return None
    n = len(graded)
    same = sum(len(set(grades)) == 1 for _, grades in graded)
    within = sum(variance(grades) for _, grades in graded) / n
    pairs = ((qid, [(*pair, 1.0) for pair in permutations(grades, 2)]) for qid, grades in graded)
    whole = max(n, round(total * n / len(answers)))
    means = tuple(sum(column) / n for column in zip(*(grades for _, grades in graded), strict=True))
    estimate, kappa = Estimate(same / n, *clopper_pearson(same, n)), _estimate(pairs, concordance)
    return Noise(metric, n, whole, estimate, sqrt(within), kappa, means, sqrt(within / whole))


def measure_margin(gate: str, threshold: float, noise: Noise) -> Margin:
    """Return the share of the distance between value and threshold that is within the noise of asking once."""
    value = sum(noise.means) / len(noise.means)
    distance = abs(value - threshold)
    share = _NORMAL * noise.of_mean / distance if distance > _ROUNDING else None if noise.of_mean else 0.0
    return Margin(gate, threshold, value, share)


def metrics_to_measure(gated: Sequence[str]) -> list[str]:
    """Return the metrics of a judge to measure: those with gates, otherwise all scores."""
    names = dict.fromkeys(name.partition(".")[0] for name in gated if name.startswith("judge_"))
    return list(names) or [f"judge_{score}" for score in SCORES]


def noise_lines(noises: Sequence[Noise], margins: Sequence[Margin]) -> Iterator[str]:
    """Yield a table of the metrics, and how far each gate is from its threshold."""
    if not noises:
        yield "no answer has a verdict in every repeat, so there is nothing to measure"
        return
    rows = []
    for item in noises:
        values = _text(item.same), f"{item.deviation:.3f}", _text(item.kappa), f"±{_NORMAL * item.of_mean:.3f}"
        rows.append([item.metric, str(item.n), *values])
    headers = ["metric", "answers", "same grade every time", "sd", "kappa between repeats", "noise of the value"]
    yield from grid(headers, rows).split("\n")
    for item in noises:
        means = ", ".join(map(_rounded, item.means))
        yield f"{item.metric}: {means} (repeats: {len(item.means)}, answers: {item.n} of {item.total})"
    for gate in margins:
        away = f"{_rounded(gate.value)} is {abs(gate.value - gate.threshold):.3f} away"
        share = f"; the noise of the judge is {gate.share:.0%} of that" if gate.share is not None else ""
        if gate.share is None or gate.share >= 1:
            share = ", which is within the noise of the judge: this gate may change if the judge is asked again"
        yield f"{gate.gate} {gate.threshold:g}: the value {away}{share}"
