"""What a metric is: a function from a case to a score, and the words that go with it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_eval.tally import Score

Better = Literal["higher", "lower"]
Scale = Literal["rate", "share", "real"]


class Metric(NamedTuple):
    """A row of METRICS.

    ``scale`` says what a score is: ``rate`` 0 or 1, ``share`` a ratio of whole numbers from 0 to 1, ``real`` a float
    from 0 to 1. ``cutoff`` metrics take a k: ``recall@k`` in the table, ``recall@5`` in a report. ``needs`` lists the
    gold and trace fields without which the metric applies to no case. ``by_ranking`` says that the score hangs on
    ``case.in_a`` and ``case.ranking`` alone, so that cases that rank alike are scored once. ``version`` goes up when
    the definition changes.
    """

    name: str
    perspective: str
    summary: str
    text: str
    better: Better
    scale: Scale
    applies: str
    needs: tuple[str, ...]
    source: str
    cutoff: bool
    by_ranking: bool
    version: int
    score: Callable[..., Score | None]


def metric(
    applies: str,
    *,
    source: str,
    better: Better = "higher",
    scale: Scale = "rate",
    needs: str = "",
    cutoff: bool = False,
    by_ranking: bool = False,
    version: int = 1,
) -> Callable[[Callable[..., Score | None]], Metric]:
    """Make a :class:`Metric` of a function: its name, its module's perspective, its docstring's words.

    ``applies`` names the cases that it applies to, ``source`` where its definition comes from.
    """

    def build(function: Callable[..., Score | None]) -> Metric:
        text = " ".join((function.__doc__ or "").split())
        summary = text.split(". ")[0].rstrip(".") + "."
        perspective = function.__module__.rsplit(".", 1)[-1]
        fields = tuple(needs.split())
        name = f"{function.__name__}@k" if cutoff else function.__name__
        terms = better, scale, applies, fields, source, cutoff, by_ranking, version
        return Metric(name, perspective, summary, text, *terms, function)

    return build


class Measure(NamedTuple):
    """A metric with its parameters: what a row of a report and a gate are about."""

    name: str
    metric: Metric
    k: int | None = None

    def parameters(self) -> dict[str, Any]:
        """What tells this measure from others of the same metric."""
        return {} if self.k is None else {"k": self.k}
