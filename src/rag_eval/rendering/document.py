"""The document model of all reports: paragraphs, lists, tables, sections; the format of texts and numbers in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from msgspec import Struct

from rag_eval.common.escaping import one_line
from rag_eval.gates import GateResult, MetricResult
from rag_eval.metrics import column_of, of_column
from rag_eval.stats.tally import DECIMALS, as_fraction, round_for_display

_NARROW, _RARE = 0.05, 0.01
_SIGNIFICANT = 2
_TENS, _HUNDREDS, _CENTS = 10, 100, 0.1
COMMIT = 12
"""The number of characters of a commit that are shown."""
SMALL, FEW = "†", "‡"
"""Mark a value whose cases are too few for its interval, and a slice that has too few to be judged."""
WIDE = ", although the interval, which assumes nothing about the scores and so is wider, contains 0"
SMALL_MEANING = f"{SMALL} small sample: too few cases to reach the stated confidence."


class Paragraph(Struct, frozen=True):
    """Sentences."""

    text: str


class ListItem(Struct, frozen=True):
    """A line of a list, with lines below it."""

    text: str
    below: Sequence[str] = ()


class Bullets(Struct, frozen=True):
    """A list."""

    items: Sequence[ListItem]


class Table(Struct, frozen=True):
    """Headers and rows of equally many cells; the first cell names its row. ``about`` is its description."""

    about: str
    headers: Sequence[str]
    rows: Iterable[Sequence[str]]


Block = Paragraph | Bullets | Table


class Section(Struct, frozen=True):
    """A title and the blocks below it."""

    title: str
    blocks: Sequence[Block] = ()


def bullets(lines: Sequence[str]) -> list[Block]:
    """Return a list of lines without nested ones, or nothing without lines."""
    return [Bullets([ListItem(line) for line in lines])] if lines else []


def remarks(lines: Sequence[str]) -> list[Block]:
    """Return several lines as a list, one as a paragraph."""
    return bullets(lines) if len(lines) > 1 else paragraphs(*lines)


def paragraphs(*texts: str) -> list[Block]:
    """Return a paragraph of each text that is not empty."""
    return [Paragraph(text) for text in texts if text]


def table_of(about: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Block]:
    """Return a table, or nothing without rows."""
    return [Table(about, headers, rows)] if rows else []


def more(cut: int, where: str) -> list[Block]:
    """State how many entries are left out, and where to find them all."""
    return paragraphs(f"… and {cut} more; {where} has all.") if cut > 0 else []


class TextFormatter(Struct, frozen=True):
    """Formatting of names and untrusted input, so that a rendering never interprets them.

    ``words`` formats words with names in them, ``code`` a name, ``text`` a text; all three accept a maximum number of
    characters. ``trusted`` formats a sentence of this program in a report that may come from elsewhere, ``figure``
    numbers that must not be split, ``sign`` the symbol of an outcome, a finding or a change of the policy.
    ``whole`` is where everything is that the text leaves out.
    """

    named: Callable[[str, str], str]  # metric, slice
    words: Callable[..., str]
    code: Callable[..., str]
    text: Callable[..., str]
    trusted: Callable[[str], str]
    strong: Callable[[str], str]
    figure: Callable[[str], str]
    sign: Callable[[str], str]
    whole: str = "report.json"

    def gate(self, gate: GateResult) -> str:
        """Return the name of a gate."""
        return self.named(gate.name, gate.slice)


PLAIN = TextFormatter(
    named=lambda metric, part: f"{metric} where {one_line(part)}" if part else metric,
    words=one_line,
    code=one_line,
    text=one_line,
    trusted=str,
    strong=str,
    figure=str,
    sign=lambda kind: kind if kind in ("error", "warning") else "",
    whole="--format json",
)


# Numbers, with enough decimals that none contradicts an outcome


def format_number(value: float | None, name: str = "") -> str:
    """Return a value of a metric with its unit, ``–`` for None."""
    return "–" if value is None else f"{value:.{decimals(value, name)}f}{unit(name)}"


def unit(name: str) -> str:
    """Return the unit of a metric's values with a space before it, empty for shares, counts and unknown metrics."""
    item = of_column(column_of(name))
    return f" {item.unit}" if item and item.unit else ""


def decimals(value: float, name: str = "") -> int:
    """Return the number of decimals: three for a share, fewer for large values, more for small amounts of money."""
    if value > 1:
        return 2 if value < _TENS else 1 if value < _HUNDREDS else 0
    small = unit(name) == " USD" and 0 < value < _CENTS
    return min(_SIGNIFICANT - Decimal(repr(value)).adjusted(), DECIMALS) if small else 3


def format_signed(number: float, name: str = "") -> str:
    """Return a change with its sign and unit, ``−0.033``; only a change of 0 has no sign, ``0 ms``."""
    if not number and unit(name):
        return f"0{unit(name)}"
    far = round_for_display(abs(as_fraction(number)), bool, decimals(abs(number), name))
    return f"{'+' if number > 0 else '−' if number else ''}{far}{unit(name)}"


def format_interval(
    low: float | None, high: float | None, number: Fraction, keeps: Callable[[Fraction], bool] = bool, name: str = ""
) -> str:
    """Return an interval: `` (0.69–0.96)``; `` (≥ 0.69)`` if an end is open, empty if both are.

    The shown ends enclose ``number``, and ``keeps`` has the same result for them as for the exact ones.
    """
    least = 2
    if number > 1 or unit(name):
        least = decimals(float(number), name)
    elif low is not None and high is not None and high - low < _NARROW:
        least = 3

    def place(end: Fraction) -> tuple[bool, bool, bool]:
        return keeps(end), end <= number, end >= number

    start, end = ("" if end is None else format_signed_bound(as_fraction(end), place, least) for end in (low, high))
    if start and end:
        return f" ({start}–{end})"
    return f" (≥ {start})" if start else f" (≤ {end})" if end else ""


def format_range(low: str | None, high: str | None) -> str:
    """Return ``−0.01 to 0.08``, ``≥ −0.01`` or ``≤ 0.08``."""
    return f"{low} to {high}" if low and high else f"≥ {low}" if low else f"≤ {high}" if high else ""


def format_signed_bound(number: Fraction, condition: Callable[[Fraction], object], least: int) -> str:
    """Return a number with its sign, rounded so that ``condition`` has the same result for it."""
    if number >= 0:
        return round_for_display(number, condition, least)
    return f"−{round_for_display(-number, lambda far: condition(-far), least)}"


def format_probability(p: float, alpha: str = "0.05") -> str:
    """Return ``0.12`` or ``<0.001``, rounded to its side of ``alpha``."""
    level = Fraction(Decimal(alpha))
    text = round_for_display(as_fraction(p), lambda number: number <= level, 2 if p >= _RARE else 3)
    return text if Fraction(text) else "<0.001"


def format_minimum(number: float) -> str:
    """Return a minimum visible size: two significant digits, rounded up."""
    exact = Decimal(repr(number))
    decimal_places = max(_SIGNIFICANT - 1 - exact.adjusted(), 0)
    return f"{exact.quantize(Decimal(1).scaleb(-decimal_places), ROUND_CEILING):f}"


def format_metric_interval(result: MetricResult, name: str = "") -> str:
    """Return a metric's interval, with a mark if it has too few cases."""
    if result.value is None:
        return ""
    number = result.as_value().number
    ends = format_interval(result.low, result.high, as_fraction(result.value if number is None else number), name=name)
    return f"{ends}{SMALL if result.small else ''}"
