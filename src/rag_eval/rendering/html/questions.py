"""The cases of a report as a table that a script searches, filters and sorts, and that is complete without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.cases.labels import GOOD, MEANING, STAGE
from rag_eval.common.escaping import hypertext
from rag_eval.gates.evidence import has_several_runs
from rag_eval.rendering import cases
from rag_eval.rendering.document import Table
from rag_eval.rendering.html.element import FORMATTER, Markup, caption, join, scrolled, table, tag, visible

if TYPE_CHECKING:
    from rag_eval.analysis.failed_cases import CaseDetails, Named
    from rag_eval.analysis.report import Report
    from rag_eval.gates.results import Question
    from rag_eval.rendering import Details
    from rag_eval.textual.segments import Segment

_FIRST = 100
"""Rows that are shown at first where the script runs; it says how many there are, and shows them all when asked to."""
_KEY = (
    "Open a question to see its answer and evidence. Highlighted: the passage that supports the answer best. "
    "Underlined: sentences that no chunk supports. Dotted: words and numbers that are in no chunk. Stars hide secrets "
    "and personal data."
)


class _Column(NamedTuple):
    """A column: its title, its sort order, its filter (if any), and its cells."""

    title: str
    order: str
    choice: str
    cell: Callable[[Question], Markup]


ROWS = Markup("\ufde0")
"""A placeholder, which no string from data has, for most rows: each element around them would copy them once more."""


def questions(report: Report, details: Details) -> tuple[Markup, Markup]:
    """Return the labels with their counts, the controls and a table of the cases, and the rows to insert at `ROWS`.

    A case has a row, with ``details`` two.
    """
    columns = _columns(report)
    rows = [_row(item, columns, details.get((item.qid, item.run))) for item in cases.by_urgency(report.questions)]
    counts = Counter(question.label for question in report.questions)
    labels = [
        [cases.signed_label(label, FORMATTER), f"{counts[label]:,}", STAGE.get(label, ""), MEANING[label]]
        for label in cases.labels(report)
    ]
    first = f" Only the first {len(details):,} of {len(rows):,} unfold, failing ones first."
    key = tag("p", f"{_KEY}{first if len(details) < len(rows) else ''}", class_="hint") if details else Markup("")
    headers = (
        tag("th", column.title, scope="col", data_order=column.order, data_choice=column.choice or None)
        for column in columns
    )
    head, rest = tag("thead", tag("tr", *headers)), join(rows[_FIRST:])
    bodies = [tag("tbody", join(rows[:_FIRST])), *([tag("tbody", ROWS, class_="rest")] if rest else [])]
    shown = scrolled("Cases", tag("table", caption("Cases, failing ones first"), head, *bodies, id="cases"))
    button = tag("button", f"Show all {len(rows):,} rows", type="button", id="all")
    parts = [
        table(Table("Labels", ["Label", "Cases", "Look at", "Meaning"], labels)),
        *_controls(report, columns),
        key,
        shown,
        tag("p", button, hidden=True, id="more"),
    ]
    return join(parts), rest


def _columns(report: Report) -> list[_Column]:
    """Return question, run if there are several, label, change if there is a baseline, and the rest."""
    flips = {(flip.qid, flip.run): "newly fixed" if flip.after in GOOD else "newly broken" for flip in report.flips}
    run = _Column("Run", "text", "run", lambda item: tag("td", _name(item.run)))
    change = _Column("Changed", "text", "changed", lambda item: _word(flips.get((item.qid, item.run), "")))
    parts = _Column("Slices", "text", "", lambda item: _word(", ".join(map(visible, item.slices)), "slices"))
    return [
        _Column("Question", "text", "", lambda item: Markup(f'<th scope="row">{_name(item.qid)}</th>')),
        *([run] if has_several_runs(report.questions) else []),
        _Column("Label", "text", "label", lambda item: _word(item.label, "good" if item.label in GOOD else "bad")),
        *([change] if report.baseline is not None else []),
        _Column("Text", "text", "", lambda item: Markup(f'<td dir="auto">{hypertext(visible(item.question))}</td>')),
        _Column("Look at", "text", "look at", lambda item: _word(STAGE.get(item.label, ""), "look")),
        _Column(
            "Answerable", "text", "answerable", lambda item: _word("yes" if item.answerable else "no", "answerable")
        ),
        *([parts] if any(question.slices for question in report.questions) else []),
        _Column("Gold line", "number", "", lambda item: _line(item.gold_line, "gold")),
        _Column("Trace line", "number", "", lambda item: _line(item.trace_line, "trace")),
    ]


def _name(text: str | None) -> Markup:
    return Markup(f"<code>{hypertext(visible(text))}</code>") if text else Markup("")


@lru_cache(maxsize=1024)
def _word(text: str, kind: str | None = None) -> Markup:
    """Return a cell that many rows share."""
    return tag("td", text, class_=kind)


def _line(number: int, file: str) -> Markup:
    return Markup(f'<td class="number {file}">{number or ""}</td>')


def _row(question: Question, columns: Sequence[_Column], details: CaseDetails | None) -> Markup:
    # There may be a million rows: cells that differ in each are written without a call of tag.
    row = Markup(f"<tr>{''.join([column.cell(question) for column in columns])}</tr>")
    if details is None:
        return row
    title = tag("summary", "Answer and evidence of ", tag("code", visible(question.qid)))
    below = tag("td", tag("details", title, _details(question, details)), colspan=len(columns))
    return join([row, tag("tr", below, class_="details")])


def _details(question: Question, details: CaseDetails) -> Markup:
    """Show question, answer, expected answer, citations and retrieved chunks, and why the case is right or wrong."""
    why = [tag("p", tag("strong", question.label), f": {details.meaning}. {details.next}".rstrip())]
    why += [tag("p", f"It counts against {', '.join(map(visible, details.bad))}.")] if details.bad else []
    answer = [_text(details.answer) if details.answer else tag("p", tag("em", "(no answer)"))]
    answer += [tag("p", tag("em", "This is a refusal."))] if details.refused else []
    answer += [tag("p", "Error: ", tag("bdi", visible(details.error)))] if details.error else []
    retrieved = [_ids(details.retrieved, with_rank=False)]
    retrieved += [tag("p", f"… and {details.cut} more.")] if details.cut else []
    facts = [
        ("Why" if question.label not in GOOD else "Outcome", why),
        ("Question", [tag("p", visible(details.question), dir="auto")]),
        ("Answer", answer),
        ("Expected", _expected(details)),
        ("Cited", [_ids(details.cited, with_rank=True)]),
        ("Retrieved", retrieved),
    ]
    return tag("dl", join(tag("div", tag("dt", name), tag("dd", join(parts))) for name, parts in facts))


def _expected(details: CaseDetails) -> list[Markup]:
    if not details.answerable:
        return [tag("p", "A refusal, because the documents do not answer this question.")]
    missing = "" if details.contained else " The answer contains none of them."
    wanted = [part for text in details.wanted for part in (" ", tag("q", visible(text), dir="auto"))]
    texts = [tag("p", "An answer that contains one of these:", *wanted, f".{missing}")] if wanted else []
    ids = [part for name in details.evidence for part in (tag("code", visible(name)), " ")]
    return [*texts, *([tag("p", "Evidence: ", *ids)] if ids else [])] or [tag("p", "Any answer.")]


def _ids(names: Sequence[Named], *, with_rank: bool) -> Markup:
    """Render cited ids with their ranks, or retrieved ids in order, with their texts."""
    if not names:
        return tag("p", tag("em", "(nothing)"))
    rows = []
    for name in names:
        rank = (f"rank {name.rank}", "badge") if name.rank else ("not retrieved", "badge bad")
        facts = [rank] if with_rank else []
        facts += [("expected", "badge good")] if name.expected else []
        facts += [("cited", "badge")] if name.cited and not with_rank else []
        badges = [part for fact, kind in facts for part in (" ", tag("span", fact, class_=kind))]
        rows.append(tag("li", tag("code", visible(name.id)), *badges, *([_text(name.text)] if name.text else [])))
    return tag("ul" if with_rank else "ol", join(rows))


def _text(pieces: Sequence[Segment]) -> Markup:
    """Render a text with its pieces marked: supported or not, in no chunk, the best passage, masked."""
    tags = {"best": "mark", "masked": "span", "unsupported": "u", "missing": "u", "made_up": "u"}
    marked = (
        tag(tags[piece.state], piece.text, class_=piece.state) if piece.state in tags else piece.text
        for piece in pieces
    )
    return tag("blockquote", *marked, dir="auto")


def _controls(report: Report, columns: Sequence[_Column]) -> list[Markup]:
    """Return search and filters, hidden until the script runs, which fills in the choices."""
    search = tag("label", "Search ", tag("input", type="search", id="search", autocomplete="off", spellcheck="false"))
    choices = [
        tag("label", f"{key.capitalize()} ", tag("select", tag("option", "all", value=""), data_choice=key))
        for key in ("outcome", *(column.choice for column in columns if column.choice))
    ]
    reset = tag("button", "Clear", type="button", id="clear")
    form = tag("form", search, *choices, reset, id="filters", hidden=True, role="search", aria_label="Cases")
    return [form, tag("p", f"{cases.count_cases(report)}: all are shown.", id="count", role="status")]
