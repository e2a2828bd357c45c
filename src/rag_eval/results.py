"""What a report keeps of a run: the value of each metric, and the scores of each case."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from rag_eval.tally import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_eval.tally import Shown


class MetricResult(NamedTuple):
    """A metric's value over ``n`` cases; ``value`` is None where it applies to none.

    ``exact`` is the value as a ratio of whole numbers where it is one; ``hits`` counts the ones of a 0/1 metric.
    ``low`` and ``high`` enclose the system's true value with 95 % confidence, as far as they are known; ``small`` says
    that there are too few cases for that.
    """

    value: float | None
    n: int
    exact: str | None
    hits: int | None
    better: str
    perspective: str
    low: float | None = None
    high: float | None = None
    small: bool = False

    def as_value(self) -> Value:
        """The value as gates compare it."""
        return Value(Fraction(self.exact) if self.exact is not None else self.value, self.n, self.hits)


class Question(NamedTuple):
    """One case: its labels, and its score under each metric that applies.

    ``scores`` go by the name that all folds of a metric share. ``gold_sha256`` is the hash of the gold item's exact
    bytes, as sign-off has it; empty where it is not known. ``slices`` are those of the fields that the policy goes by.
    """

    qid: str
    run: str | None
    question: str
    answerable: bool
    label: str
    example08: str
    scores: Mapping[str, Shown]
    gold_line: int
    trace_line: int
    gold_sha256: str = ""
    slices: tuple[str, ...] = ()
