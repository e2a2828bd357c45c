"""A metric is a function from a case to a score, with its descriptions; METRICS has all, in the order of reports."""

from __future__ import annotations

import copyreg
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal

from msgspec import Struct, field

from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError
from rag_eval.stats.tally import Score

Better = Literal["higher", "lower"]
Scale = Literal["rate", "share", "real", "count", "amount", "labelled"]
Level = Literal["case", "run"]
DependsOn = Literal["case", "features", "ranking", "leaks", "labels"]

UNBOUNDED = ("count", "amount")
"""Scales without a greatest score."""


class Metric(Struct, frozen=True):
    """A row of METRICS.

    ``scale`` is the kind of a score: ``rate`` 0 or 1, ``share`` a ratio of whole numbers from 0 to 1, ``real`` a float
    from 0 to 1, ``count`` a whole number, ``amount`` a float of some ``unit``, neither below 0 nor above ``maximum``,
    if there is one, ``labelled`` a score with whether it should be high. ``cutoff`` metrics take a k: ``recall@k`` in
    the table, ``recall@5`` in a report. ``folds`` names the aggregations of the scores, by their suffix: ``{"": "mean",
    ".total": "total"}`` gives two values. ``needs`` lists the gold and trace fields without which the metric applies to
    no case. ``settings`` names the parts of :class:`~rag_eval.contract.Settings` that a score depends on. A metric of
    the level ``run`` scores run.json instead of a case. ``version`` is incremented when the definition changes.

    ``depends_on`` tells when a score can be reused: ``features`` if cases with equal features
    (:mod:`rag_eval.scoring.case_scorer`) score alike, ``ranking`` if ``case.is_answerable`` and ``case.ranking``
    decide it, ``leaks`` if the features do unless a leak detector may find something, ``labels`` if there is none for
    items without optional labels. Otherwise it is computed for each ``case`` that has the needed fields.
    """

    name: str
    perspective: str
    summary: str
    text: str
    score: Callable[..., Score | None]
    applies: str
    source: str
    settings: tuple[str, ...]
    needs: tuple[str, ...] = ()
    better: Better = "higher"
    scale: Scale = "rate"
    cutoff: bool = False
    version: int = 1
    folds: Mapping[str, str] = field(default_factory=lambda: {"": "mean"})
    unit: str = ""
    level: Level = "case"
    depends_on: DependsOn = "case"
    maximum: int | None = None

    @property
    def top(self) -> float | None:
        """Return the highest possible score; None without a limit."""
        return 1.0 if self.bounded else self.maximum

    @property
    def bounded(self) -> bool:
        """Return whether scores are between 0 and 1."""
        return self.scale not in UNBOUNDED


def metric(
    applies: str, *, name: str = "", needs: str = "", settings: str | None = None, **fields: Any
) -> Callable[[Callable[..., Score | None]], Metric]:
    """Make a :class:`Metric` of a function: its name, its module's metric group, its docstring's words.

    ``name`` is for a function that several metrics share. By default a score depends on the refusal settings, except
    for a metric of a ranking or of a run. ``fields`` are further fields of the metric, ``source`` at least.
    """

    def build(function: Callable[..., Score | None]) -> Metric:
        text = " ".join((function.__doc__ or "").split())
        usual = "" if fields.get("depends_on") == "ranking" or fields.get("level") == "run" else "refusal"
        return Metric(
            name=(name or function.__name__) + ("@k" if fields.get("cutoff") else ""),
            perspective=function.__module__.rsplit(".", 1)[-1],
            summary=text.split(". ")[0].rstrip(".") + ".",
            text=text,
            score=function,
            applies=applies,
            settings=tuple((usual if settings is None else settings).split()),
            needs=tuple(needs.split()),
            **fields,
        )

    return build


SCALES = {
    "rate": "0 or 1",
    "share": "a ratio from 0 to 1",
    "real": "a number from 0 to 1",
    "count": "a whole number",
    "amount": "a number",
    "labelled": "a number from 0 to 1, which should be high or low",
}


def score_in_words(metric: Metric) -> str:
    """Describe a score: ``a ratio from 0 to 1 per case``."""
    unit = f" of {metric.unit}" if metric.unit else ""
    return f"{SCALES[metric.scale]}{unit} per {metric.level}"


def range_in_words(metric: Metric) -> str:
    """Describe the range of the values, such as ``from 0 to 1``."""
    unit = f" {metric.unit}" if metric.unit else ""
    return f"from 0{unit}, without a maximum" if metric.top is None else f"from 0 to {metric.top:g}{unit}"


class Measure(Struct, frozen=True):
    """A metric with its parameters: the subject of a row of a report and of a gate.

    ``fold`` is the aggregation of the scores of all cases, see :mod:`rag_eval.scoring.aggregations`.
    """

    name: str
    metric: Metric
    k: int | None = None
    fold: str = "mean"

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that distinguish this measure from others of the same metric."""
        cut = {} if self.k is None else {"k": self.k}
        return cut if self.fold == "mean" else {**cut, "fold": self.fold}

    @property
    def column(self) -> str:
        """Return the name of its scores, which all folds of a metric share."""
        return self.metric.name if self.k is None else self.metric.name.replace("@k", f"@{self.k}")

    @property
    def is_rate(self) -> bool:
        """Return whether the value is the share of cases that score 1."""
        return self.metric.scale == "rate" and self.fold == "mean"

    def score(self, case: Any) -> Score | None:
        """Return the score of a case (of a run, for metrics of that level); None if the metric does not apply."""
        return self.metric.score(case) if self.k is None else self.metric.score(case, self.k)


ALIASES = {
    "faithfulness": "groundedness",
    "citation_hit_rate": "chr",
    "correct_answer_rate": "precision",
    "hit_rate@k": "recall_any@k",
    "hit@k": "recall_any@k",
    "success@k": "recall_any@k",
    "context_recall@k": "recall@k",
    "context_precision@k": "precision@k",
}
"""Names that gates and ``explain`` accept; reports have the metric's own name."""
_HINTS = {
    "hit_rate": "Write it with a cutoff: recall_any@5.",
    "context_recall": "Write it with a cutoff: recall@5. It uses labelled evidence and no model.",
    "context_precision": "Write it with a cutoff: precision@5, the share of the first 5 that is evidence. "
    "For a value that weighs ranks, use map or ndcg@5.",
    "answer_relevancy": "No metric without a model measures it; judge_relevancy replays recorded verdicts of one.",
    "answer_correctness": "Use precision, which compares with the gold, or judge_correctness for recorded verdicts.",
    "answer_similarity": "No metric here compares meanings; precision and containment compare with the gold.",
    "hallucination": "Use groundedness, unsupported_claims or under_refusal.",
}
CUTOFF = re.compile(r"(.+)@([1-9][0-9]{0,5})", re.ASCII)
"""A name with its cutoff: ``recall@5``."""


def canonical(name: str) -> str:
    """Return the metric's own name for an alias, any other name unchanged.

    >>> canonical("hit_rate@5"), canonical("faithfulness"), canonical("mrr")
    ('recall_any@5', 'groundedness', 'mrr')
    """
    cut = CUTOFF.fullmatch(name)
    if cut is None:
        return ALIASES.get(name, name)
    known = ALIASES.get(f"{cut[1]}@k")
    return known.replace("@k", f"@{cut[2]}") if known else name


def hint(name: str) -> str:
    """Return a suggestion for an unknown metric name; empty if there is none."""
    return _HINTS.get(name.partition("@")[0], "")


_GROUPS = "answers refusals citations retrieval context groundedness judge safety pipeline operations index".split()
# The groups import the decorator from here.
_MODULES = {name: import_module(f"rag_eval.metrics.{name}") for name in _GROUPS}
METRICS: dict[str, Metric] = {
    value.name: value for module in _MODULES.values() for value in vars(module).values() if isinstance(value, Metric)
}
PERSPECTIVES = {name: (module.__doc__ or "").partition("\n")[0].partition(": ")[2] for name, module in _MODULES.items()}
"""The metric groups in the order of reports, each with its description: ``Citations: …`` without the name."""
_PLAIN = {
    f"{metric.name}{suffix}": Measure(f"{metric.name}{suffix}", metric, None, fold)
    for metric in METRICS.values()
    if not metric.cutoff
    for suffix, fold in metric.folds.items()
}


def single_score(name: str, score: float | tuple[float, bool]) -> float:
    """Return the score of one question as a number: a labelled score without its label, or whether a turn is right."""
    if not isinstance(score, (tuple, list)):
        return score
    is_turn = name in METRICS and "turns" in METRICS[name].folds.values()  # its number names the conversation
    return float(score[1]) if is_turn else score[0]


def find(name: str) -> Measure | None:
    """Return the measure of a name in gates and reports: ``chr``, ``recall@5``, ``latency_total_ms.p95``.

    None for an unknown name: a report may come from another version.
    """
    if name in _PLAIN:
        return _PLAIN[name]
    cut = CUTOFF.fullmatch(name)
    metric = METRICS.get(f"{cut[1]}@k") if cut else None
    return Measure(name, metric, int(cut[2])) if metric and cut else None


def measure(name: str) -> Measure:
    """Return the measure of a name; raise UsageError if it is unknown."""
    metric = find(name)
    if metric is None:
        raise UsageError(f"unknown metric '{name[:80]}'. {suggestion(name)}")
    return metric


def measures(cutoffs: Iterable[int], also: Iterable[str] = ()) -> tuple[Measure, ...]:
    """Return every metric, those with a cutoff for each k, each with all its folds, in the order of METRICS.

    ``also`` adds further names.
    """
    wanted = [measure(name) for name in also]
    ks = {name: set(cutoffs) for name, metric in METRICS.items() if metric.cutoff}
    for extra in wanted:
        if extra.k is not None:
            ks[extra.metric.name].add(extra.k)
    chosen: list[Measure] = []
    for name, metric in METRICS.items():
        if metric.cutoff:
            chosen += [Measure(name.replace("@k", f"@{k}"), metric, k) for k in sorted(ks[name])]
        else:
            chosen += [_PLAIN[f"{name}{suffix}"] for suffix in metric.folds]
    return tuple(chosen)


def perspectives_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the named metric groups, in the order of reports; raise UsageError for an unknown name.

    ``context_quality``, the name in the enterprise framework, is ``context``.
    """
    wanted = ["context" if name == "context_quality" else name for name in names]
    if unknown := [name for name in wanted if name not in PERSPECTIVES]:
        raise UsageError(f"unknown perspective {quoted(unknown[0], 40)}. There are: {', '.join(PERSPECTIVES)}")
    return tuple(name for name in PERSPECTIVES if name in wanted)


def column_of(name: str) -> str:
    """Return the column with the scores of a value: ``latency_total_ms`` for ``latency_total_ms.p95``."""
    return _PLAIN[name].column if name in _PLAIN else name


@lru_cache(maxsize=1024)  # asked for each score of a baseline
def of_column(name: str) -> Metric | None:
    """Return the metric of a column, such as ``recall@5`` or ``latency_total_ms``; None if unknown."""
    cut = CUTOFF.fullmatch(name)
    metric = METRICS.get(f"{cut[1]}@k" if cut else name)
    return metric if metric and metric.cutoff == bool(cut) and metric.level == "case" else None


# The name of a metric's function refers to the metric, so another process finds a pickled measure by its name.
copyreg.pickle(Measure, lambda item: (measure, (item.name,)))


def suggestion(name: str) -> str:
    """Suggest a metric for an unknown name: by the names of other tools first, then by spelling."""
    if known_elsewhere := hint(name):
        return known_elsewhere
    from difflib import get_close_matches

    names = [*_PLAIN, *(name.replace("@k", "@5") for name, metric in METRICS.items() if metric.cutoff)]
    known = [*names, *(alias.replace("@k", "@5") for alias in ALIASES)]
    close = [canonical(match) for match in get_close_matches(name[:80], known, n=1, cutoff=0.5)]
    return f"Did you mean '{close[0]}'?" if close else "List them with: rag-eval metrics"
