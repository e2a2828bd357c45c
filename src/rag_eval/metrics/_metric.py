"""A metric: a function from a case to a score, with its descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

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
    applies: str, *, name: str = "", group: str = "", needs: str = "", settings: str | None = None, **fields: Any
) -> Callable[[Callable[..., Score | None]], Metric]:
    """Make a :class:`Metric` of a function: its name, its docstring's words, its metric group.

    ``group`` is by default the name of the module, ``name`` is for a function that several metrics share. A score
    depends on the refusal settings, unless ``settings`` are others or it is of a ranking or of a run. ``fields`` are
    further fields of the metric, ``source`` at least.
    """

    def build(function: Callable[..., Score | None]) -> Metric:
        text = " ".join((function.__doc__ or "").split())
        usual = "" if fields.get("depends_on") == "ranking" or fields.get("level") == "run" else "refusal"
        return Metric(
            name=(name or function.__name__) + ("@k" if fields.get("cutoff") else ""),
            perspective=group or function.__module__.rsplit(".", 1)[-1],
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
