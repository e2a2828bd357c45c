"""Rows of marks on a scale, as SVG: a value, its interval, what it was before, and the limit it is held to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from rag_eval.rendering.html.element import Markup, joined, tag
from rag_eval.rendering.html.layout import scrolled
from rag_eval.rendering.phrases import OUTCOMES

Ends = tuple[float, float]

_WIDTH, _LEFT, _RIGHT = 960.0, 300.0, 700.0
_ROW, _TOP, _BOTTOM = 26.0, 26.0, 8.0
_LABEL = 40
_TICKS = 4
_ROOM = 0.94
"""Share of a scale that its greatest number takes where the scale is made for it."""
_SHARES = (0.0, 1.0)
_MEANT = {**OUTCOMES, "warning": "warning only", "few": "too few cases to judge by"}


class Mark(NamedTuple):
    """A row: ``kind`` is an outcome of :data:`GLYPHS`, ``few`` or ``plain``; ``said`` stands at its end.

    ``limit`` is what the value is held to, ``side`` where it keeps it: ``min`` to the right, ``max`` to the left,
    nothing where it is only to compare with.
    """

    label: str
    kind: str
    said: str
    value: float
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    side: str = ""
    before: float | None = None

    def numbers(self) -> list[float]:
        """All that is drawn of it."""
        return [each for each in (self.value, self.low, self.high, self.limit, self.before) if each is not None]


def is_share(mark: Mark) -> bool:
    """Whether all of a row lies between 0 and 1."""
    return all(0 <= each <= 1 for each in mark.numbers())


def figure(key: str, title: str, legend: str, marks: Sequence[Mark], *, own: bool = False) -> Markup:
    """A plot of ``marks`` on one scale, or each on its ``own``; ``legend`` tells how to read it. None without marks."""
    if not marks:
        return Markup("")
    scales = [_scale([mark]) if own else _scale(marks) for mark in marks]
    height = _TOP + _ROW * len(marks) + _BOTTOM
    names = tag("title", title, id=f"{key}-name"), tag("desc", _described(marks), id=f"{key}-about")
    rows = [
        _drawn(mark, scale, _TOP + _ROW * place) for place, (mark, scale) in enumerate(zip(marks, scales, strict=True))
    ]
    axis = [] if own else list(_axis(scales[0], height - _BOTTOM))
    plot = tag(
        "svg",
        joined([*names, *axis, *rows]),
        viewBox=f"0 0 {_WIDTH:.0f} {height:.0f}",
        role="img",
        aria_labelledby=f"{key}-name {key}-about",
    )
    return tag("figure", tag("figcaption", tag("strong", title), f" {legend}"), scrolled(title, plot))


def _described(marks: Sequence[Mark]) -> str:
    return "; ".join(map(_told, marks))


def _told(mark: Mark) -> str:
    """A row in words, with what its shape means."""
    meant = _MEANT.get(mark.kind, "")
    return f"{mark.label}: {mark.said}{f', {meant}' if meant else ''}"


def _scale(marks: Sequence[Mark]) -> Ends:
    if all(is_share(mark) for mark in marks):
        return _SHARES
    numbers = [each for mark in marks for each in mark.numbers()]
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    return low, low + (high - low) / _ROOM


def _across(number: float, scale: Ends) -> float:
    """Where a number lies; in the middle where no scale can hold it."""
    low, high = scale
    share = (number - low) / (high - low) if isfinite(high - low) and high > low else 0.5
    return _LEFT + (_RIGHT - _LEFT) * min(max(share, 0.0), 1.0)


def _axis(scale: Ends, bottom: float) -> Iterator[Markup]:
    for step in range(_TICKS + 1):
        number = scale[0] + (scale[1] - scale[0]) * step / _TICKS
        x = _across(number, scale)
        yield tag("line", x1=x, x2=x, y1=_TOP - 6, y2=bottom, class_="grid")
        yield tag("text", f"{number:.3g}", x=x, y=_TOP - 10, class_="tick")


def _drawn(mark: Mark, scale: Ends, top: float) -> Markup:
    middle = top + _ROW / 2
    label = mark.label
    short = label if len(label) <= _LABEL else label[: _LABEL - 1] + "…"
    parts = [
        tag("title", _told(mark)),
        tag("line", x1=_LEFT, x2=_RIGHT, y1=middle, y2=middle, class_="track"),
        *_limit(mark, scale, top),
        *_interval(mark, scale, middle),
        *_before(mark, scale, middle),
        _point(mark.kind, _across(mark.value, scale), middle),
        tag("text", short, x=_LEFT - 10, y=middle + 4, class_="label"),
        tag("text", mark.said, x=_RIGHT + 12, y=middle + 4, class_="said"),
    ]
    return tag("g", *parts, class_=mark.kind)


def _limit(mark: Mark, scale: Ends, top: float) -> Iterator[Markup]:
    if mark.limit is None:
        return
    x = _across(mark.limit, scale)
    if mark.side:
        start, end = (x, _RIGHT) if mark.side == "min" else (_LEFT, x)
        yield tag("rect", x=start, y=top + 4, width=end - start, height=_ROW - 8, class_="kept")
    yield tag("line", x1=x, x2=x, y1=top + 2, y2=top + _ROW - 2, class_="limit" if mark.side else "whole")


def _interval(mark: Mark, scale: Ends, middle: float) -> Iterator[Markup]:
    """An end that is not known is that of the scale, and has no cap."""
    if mark.low is None and mark.high is None:
        return
    ends = [(mark.low, scale[0]), (mark.high, scale[1])]
    low, high = (_across(outer if end is None else end, scale) for end, outer in ends)
    yield tag("line", x1=low, x2=high, y1=middle, y2=middle, class_="interval")
    for end, x in ((mark.low, low), (mark.high, high)):
        if end is not None:
            yield tag("line", x1=x, x2=x, y1=middle - 5, y2=middle + 5, class_="interval")


def _before(mark: Mark, scale: Ends, middle: float) -> Iterator[Markup]:
    if mark.before is None:
        return
    old, new = _across(mark.before, scale), _across(mark.value, scale)
    yield tag("line", x1=old, x2=new, y1=middle, y2=middle, class_="moved")
    yield tag("circle", cx=old, cy=middle, r=4, class_="before")


def _point(kind: str, x: float, y: float) -> Markup:
    """Each kind has a shape of its own: a cross fails, a disc passes, a diamond is open, a triangle warns."""
    paths = {
        "failed": f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10",
        "inconclusive": f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
        "warning": f"M{x:.1f} {y - 6:.1f}l6.5 11h-13z",
    }
    if kind in paths:
        return tag("path", d=paths[kind], class_="point")
    return tag("circle", cx=x, cy=y, r=5, class_="point")
