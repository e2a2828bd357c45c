"""A comparison of runs as one HTML file, with the Pareto front drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.rendering.blocks import Paragraph, Table, listed
from rag_eval.rendering.html.chart import Axes, Dot, chart
from rag_eval.rendering.html.element import FORMATTER, Markup, inline, joined, shown, tag
from rag_eval.rendering.html.layout import laid, section
from rag_eval.rendering.html.shell import page
from rag_eval.rendering.scatter import mark
from rag_eval.rendering.section_writer import SectionFormatter
from rag_eval.rendering.side_by_side import sections

if TYPE_CHECKING:
    from rag_eval.analysis.runs import SideBySide
    from rag_eval.gates.objectives import Front
    from rag_eval.rendering.section_writer import Section

SECTION_FORMATTER = SectionFormatter(lambda text, _: FORMATTER.code(text), lambda text, _: FORMATTER.said(text))
_NONE = Markup("")
_AXES = {"cost": "cost, mean, USD", "latency": "latency, 95th percentile, ms"}
_LEGEND = "Better is up and to the left. A disc is on the front, a ring is beaten by another run."


def page_of(found: SideBySide) -> str:
    """The page of a comparison."""
    plots = joined(_plots(found, found.front)) if found.front else Markup("")
    return of_sections(sections(found, SECTION_FORMATTER), found.version, plots)


def of_sections(parts: Iterable[Section], version: str, plots: Markup = _NONE) -> str:
    """The page of sections, headed by the first of them; ``plots`` stand where there are figures of plain text."""
    first, *rest = parts
    said = joined(tag("p", inline(line), class_="verdict") for line in first.lines)
    header = tag("div", tag("h1", _plain(first.title)), said, class_="head")
    whole = [first._replace(title="Summary", lines=())] if first.rows else []
    made = []
    for place, (title, own) in enumerate(_grouped([*whole, *rest])):
        body = joined([plots if own[0].figures else _NONE, *(_body(each) for each in own)])
        made.append((f"part-{place}", title, section(f"part-{place}", title, body)))
    return page(_plain(first.title), shown(version), header, made)


def _grouped(parts: Sequence[Section]) -> Iterator[tuple[str, list[Section]]]:
    """Sections by title; one without a title belongs to the one before."""
    groups: list[tuple[str, list[Section]]] = []
    for one in parts:
        if one.title or not groups:
            groups.append((_plain(one.title), [one]))
        else:
            groups[-1][1].append(one)
    yield from groups


def _plain(sentence: str) -> str:
    """A sentence of the voice as plain text, for headings and links."""
    return shown("".join(each for each in sentence if not "\ufdd0" <= each <= "\ufdef"))


def _body(one: Section) -> Markup:
    said = [listed(one.lines)] if len(one.lines) > 1 else [Paragraph(line) for line in one.lines]
    about = _plain(one.title) or "Cases that differ"
    table = [Table(about, list(one.headers), one.rows)] if one.rows else []
    return laid([*said, *table])


def _plots(found: SideBySide, front: Front) -> Iterator[Markup]:
    """Quality over each of the other dimensions."""
    for axis, name in enumerate(front.dimensions[1:], 1):
        dots = [_dot(found, front, place, axis) for place in range(len(front.points))]
        yield chart(f"front-{axis}", f"Quality and {name}", _LEGEND, dots, [], Axes(_AXES[name], "quality"))


def _dot(found: SideBySide, front: Front, place: int, axis: int) -> Dot:
    point, run = front.points[place], shown(found.runs[place].name)
    kind = "plain" if front.beaten_by[place] is None else "few"
    said = f"{mark(place)}, {run}: quality {point[0]:.3f}, {front.dimensions[axis]} {point[axis]:.4g}"
    return Dot(point[axis], point[0], kind, said, mark(place))
