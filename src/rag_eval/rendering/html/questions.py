"""The cases of a report as a table that a script searches, filters and sorts, and that is complete without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.cases.labels import GOOD, MEANING, STAGE
from rag_eval.common.escaping import hypertext
from rag_eval.rendering import cases, phrases
from rag_eval.rendering.blocks import Table
from rag_eval.rendering.html.element import FORMATTER, Markup, caption, joined, laid, scrolled, shown, tag

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
_BROKEN, _FIXED = "newly broken", "newly fixed"


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
    ordered = phrases.by_urgency(report.questions)
    rows = [_row(item, columns, details.get((item.qid, item.run))) for item in ordered]
    headers = (
        tag("th", column.title, scope="col", data_order=column.order, data_choice=column.choice or None)
        for column in columns
    )
    head = tag("thead", tag("tr", *headers))
    rest = joined(rows[_FIRST:])
    bodies = [tag("tbody", joined(rows[:_FIRST])), *([tag("tbody", ROWS, class_="rest")] if rest else [])]
    shown_rows = scrolled("Cases", tag("table", caption("Cases, failing ones first"), head, *bodies, id="cases"))
    button = tag("button", f"Show all {len(rows):,} rows", type="button", id="all")
    more = tag("p", button, hidden=True, id="more")
    return joined([_labels(report), _controls(report, columns), _unfolded(len(rows), details), shown_rows, more]), rest


def _unfolded(count: int, details: Details) -> Markup:
    """Explain the questions that unfold, and count them."""
    if not details:
        return Markup("")
    first = f" Only the first {len(details):,} of {count:,} unfold, failing ones first." if len(details) < count else ""
    return tag("p", f"{_KEY}{first}", class_="asks")


def _labels(report: Report) -> Markup:
    """Explain the labels and count the cases of each."""
    counts = Counter(question.label for question in report.questions)
    rows = [
        [phrases.signed_label(label, FORMATTER), f"{counts[label]:,}", STAGE.get(label, ""), MEANING[label]]
        for label in cases.labels(report)
    ]
    return laid([Table("Labels", ["Label", "Cases", "Look at", "Meaning"], rows)])


def _columns(report: Report) -> list[_Column]:
    """Return question, run if there are several, label, change if there is a baseline, and the rest."""
    flips = {(flip.qid, flip.run): _BROKEN if flip.after not in GOOD else _FIXED for flip in report.flips}
    run = _Column("Run", "text", "run", lambda item: tag("td", _name(item.run)))
    change = _Column("Changed", "text", "changed", lambda item: _word(flips.get((item.qid, item.run), "")))
    parts = _Column("Slices", "text", "", lambda item: _word(", ".join(map(shown, item.slices)), "slices"))
    return [
        _Column("Question", "text", "", lambda item: Markup(f'<th scope="row">{_name(item.qid)}</th>')),
        *([run] if phrases.several(report) else []),
        _Column("Label", "text", "label", lambda item: _word(item.label, "good" if item.label in GOOD else "bad")),
        *([change] if report.baseline is not None else []),
        _Column("Text", "text", "", lambda item: Markup(f'<td dir="auto">{hypertext(shown(item.question))}</td>')),
        _Column("Look at", "text", "look at", lambda item: _word(STAGE.get(item.label, ""), "look")),
        _Column(
            "Answerable", "text", "answerable", lambda item: _word("yes" if item.answerable else "no", "answerable")
        ),
        *([parts] if any(question.slices for question in report.questions) else []),
        _Column("Gold line", "number", "", lambda item: _line(item.gold_line, "gold")),
        _Column("Trace line", "number", "", lambda item: _line(item.trace_line, "trace")),
    ]


def _name(text: str | None) -> Markup:
    return Markup(f"<code>{hypertext(shown(text))}</code>") if text else Markup("")


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
    title = tag("summary", "Answer and evidence of ", tag("code", shown(question.qid)))
    inside = tag("details", title, _details(question, details))
    below = tag("td", inside, colspan=len(columns))
    return joined([row, tag("tr", below, class_="details")])


def _details(question: Question, details: CaseDetails) -> Markup:
    """Show question, answer, expected answer, citations and retrieved chunks, and why the case is right or wrong."""
    why = [tag("p", tag("strong", question.label), f": {details.meaning}. {details.next}".rstrip())]
    why += [tag("p", f"It counts against {', '.join(map(shown, details.bad))}.")] if details.bad else []
    answer = _text(details.answer) if details.answer else tag("p", tag("em", "(no answer)"))
    error = [tag("p", "Error: ", tag("bdi", shown(details.error)))] if details.error else []
    refused = [tag("p", tag("em", "This is a refusal."))] if details.refused else []
    facts = [
        ("Why" if question.label not in GOOD else "Outcome", why),
        ("Question", [tag("p", shown(details.question), dir="auto")]),
        ("Answer", [answer, *refused, *error]),
        ("Expected", _expected(details)),
        ("Cited", [_ids(details.cited)]),
        (
            "Retrieved",
            [_ids(details.retrieved, of=details), *([tag("p", f"… and {details.cut} more.")] if details.cut else [])],
        ),
    ]
    return tag("dl", joined(tag("div", tag("dt", name), tag("dd", joined(parts))) for name, parts in facts))


def _expected(details: CaseDetails) -> list[Markup]:
    if not details.answerable:
        return [tag("p", "A refusal, because the documents do not answer this question.")]
    missing = "" if details.contained else " The answer contains none of them."
    wanted = [part for text in details.wanted for part in (" ", tag("q", shown(text), dir="auto"))]
    texts = [tag("p", "An answer that contains one of these:", *wanted, f".{missing}")] if wanted else []
    ids = [part for name in details.evidence for part in (tag("code", shown(name)), " ")]
    return [*texts, *([tag("p", "Evidence: ", *ids)] if ids else [])] or [tag("p", "Any answer.")]


def _ids(names: Sequence[Named], of: CaseDetails | None = None) -> Markup:
    """Render cited ids, or retrieved ids with their texts; each names its role on the other side."""
    if not names:
        return tag("p", tag("em", "(nothing)"))
    rows = []
    for name in names:
        facts = [] if of else [(f"rank {name.rank}", "badge") if name.rank else ("not retrieved", "badge bad")]
        facts += [("expected", "badge good")] if name.expected else []
        facts += [("cited", "badge")] if name.cited and of else []
        badges = [part for fact, kind in facts for part in (" ", tag("span", fact, class_=kind))]
        rows.append(tag("li", tag("code", shown(name.id)), *badges, *([_text(name.text)] if name.text else [])))
    return tag("ol" if of else "ul", joined(rows))


def _text(pieces: Sequence[Segment]) -> Markup:
    """Render a text with its pieces marked: supported or not, in no chunk, the best passage, masked."""
    return tag("blockquote", *(_piece(piece) for piece in pieces), dir="auto")


def _piece(segment: Segment) -> Markup:
    name = {"best": "mark", "masked": "span", "unsupported": "u", "missing": "u", "made_up": "u"}.get(segment.state)
    return tag(name, segment.text, class_=segment.state) if name else Markup(hypertext(segment.text))


def _controls(report: Report, columns: Sequence[_Column]) -> Markup:
    """Return search and filters, hidden until the script runs, which fills in the choices."""
    search = tag("label", "Search ", tag("input", type="search", id="search", autocomplete="off", spellcheck="false"))
    choices = [_choice(column.choice, column.choice) for column in columns if column.choice]
    outcome = _choice("outcome", "outcome")
    reset = tag("button", "Clear", type="button", id="clear")
    fields = tag("form", search, outcome, *choices, reset, id="filters", hidden=True, role="search", aria_label="Cases")
    status = f"{phrases.cases(report)}: all are shown."
    return joined([fields, tag("p", status, id="count", role="status")])


def _choice(key: str, title: str) -> Markup:
    select = tag("select", tag("option", "all", value=""), data_choice=key)
    return tag("label", f"{title.capitalize()} ", select)
