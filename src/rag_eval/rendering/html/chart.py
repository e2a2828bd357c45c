"""Values over the readings of a history, and points in a plane, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

from rag_eval.rendering.html.element import Markup, joined, tag
from rag_eval.rendering.html.layout import scrolled

_WIDTH, _HEIGHT = 880.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 850.0, 34.0, 250.0
_TICKS = 4
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_LABEL = 40


class Dot(NamedTuple):
    """A point: ``kind`` is its class, ``said`` what it stands for, ``mark`` what is written beside it.

    ``low`` and ``high`` enclose ``y``. ``rule`` says that a line goes down here, because something changed.
    """

    x: float
    y: float
    kind: str
    said: str
    mark: str = ""
    low: float | None = None
    high: float | None = None
    rule: bool = False


class Frame:
    """Where numbers lie on a plot that holds them all."""

    def __init__(self, dots: Sequence[Dot]) -> None:
        self.across = _span([dot.x for dot in dots])
        self.up = _span([each for dot in dots for each in (dot.y, dot.low, dot.high) if each is not None])

    def x(self, number: float) -> float:
        """From left to right."""
        return _LEFT + (_RIGHT - _LEFT) * _share(number, self.across)

    def y(self, number: float) -> float:
        """From the bottom to the top."""
        return _BOTTOM - (_BOTTOM - _TOP) * _share(number, self.up)


def _span(numbers: Sequence[float]) -> tuple[float, float]:
    """The numbers with a tenth of their spread on either side; shares stay between 0 and 1."""
    low, high = min(numbers), max(numbers)
    room = (high - low) / 10 or abs(high) / 10 or 1.0
    bounded = low >= 0 and high <= 1
    return (max(low - room, 0.0), min(high + room, 1.0)) if bounded else (low - room, high + room)


def _share(number: float, ends: tuple[float, float]) -> float:
    low, high = ends
    if not isfinite(high - low) or high <= low:
        return 0.5
    return min(max((number - low) / (high - low), 0.0), 1.0)


def chart(key: str, title: str, legend: str, dots: Sequence[Dot], lines: Iterable[Sequence[Dot]], axes: Axes) -> Markup:
    """A plot of ``dots``, those of each of ``lines`` joined, between axes; none without dots."""
    if not dots:
        return Markup("")
    frame = Frame(dots)
    about = "; ".join(dot.said for dot in dots)
    drawn = [
        tag("title", title, id=f"{key}-name"),
        tag("desc", about, id=f"{key}-about"),
        *_grid(frame, axes),
        *(_rule(frame, dot) for dot in dots if dot.rule),
        *(_line(frame, line) for line in lines if len(line) > 1),
        *(_dot(frame, dot) for dot in dots),
    ]
    box = f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}"
    plot = tag("svg", joined(drawn), viewBox=box, role="img", aria_labelledby=f"{key}-name {key}-about")
    return tag("figure", tag("figcaption", tag("strong", title), f" {legend}"), scrolled(title, plot))


class Axes(NamedTuple):
    """What is written at the axes: the ends of the one across, and what each is of; ``ticks`` where it has numbers."""

    across: str
    up: str
    first: str = ""
    last: str = ""
    ticks: bool = True


def _grid(frame: Frame, axes: Axes) -> Iterator[Markup]:
    for number in ticks(*frame.up):
        y = frame.y(number)
        yield tag("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_="grid")
        yield tag("text", f"{number:.4g}", x=_LEFT - 8, y=y + 4, class_="label")
    for number in ticks(*frame.across) if axes.ticks else ():
        yield tag("text", f"{number:.4g}", x=frame.x(number), y=_BOTTOM + 20, class_="tick")
    yield tag("text", axes.up, x=4.0, y=_TOP - 18, class_="said")
    yield tag("text", axes.across, x=(_LEFT + _RIGHT) / 2, y=_BOTTOM + 42, class_="tick")
    yield tag("text", _short(axes.first), x=_LEFT, y=_BOTTOM + 20, class_="said")
    yield tag("text", _short(axes.last), x=_RIGHT, y=_BOTTOM + 20, class_="label")


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from ``low`` to ``high``, some four of them; none where there is no room for any."""
    least = (high - low) / _TICKS
    if not isfinite(least) or least <= 0 or (power := 10.0 ** floor(log10(least))) == 0:
        return []
    step = next(each * power for each in _ROUND if each * power >= least or each == _ROUND[-1])
    if not isfinite(step) or abs(low / step) > 1e9 or abs(high / step) > 1e9:
        return []
    return [number * step for number in range(ceil(low / step), floor(high / step) + 1)]


def _short(text: str) -> str:
    return text if len(text) <= _LABEL else f"…{text[1 - _LABEL :]}"


def _rule(frame: Frame, dot: Dot) -> Markup:
    x = frame.x(dot.x)
    return tag("line", x1=x, x2=x, y1=_TOP, y2=_BOTTOM, class_="whole")


def _line(frame: Frame, line: Sequence[Dot]) -> Markup:
    steps = "L".join(f"{frame.x(dot.x):.1f} {frame.y(dot.y):.1f}" for dot in line)
    return tag("path", d=f"M{steps}", class_="path")


def _dot(frame: Frame, dot: Dot) -> Markup:
    x, y = frame.x(dot.x), frame.y(dot.y)
    parts = [tag("title", dot.said)]
    if dot.low is not None and dot.high is not None:
        parts.append(tag("line", x1=x, x2=x, y1=frame.y(dot.low), y2=frame.y(dot.high), class_="interval"))
    parts.append(tag("circle", cx=x, cy=y, r=5, class_="point"))
    parts += [tag("text", dot.mark, x=x + 9, y=y - 6, class_="said")] if dot.mark else []
    return tag("g", *parts, class_=dot.kind)
