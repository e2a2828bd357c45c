"""Pages of HTML, one file each: a report, a history of reports, comparisons and repeats, a form to grade answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rag_eval import __version__
from rag_eval.analysis import Report, run_date, system_commit
from rag_eval.analysis.history import Flaky, Point, Repeats, Series
from rag_eval.analysis.runs import SideBySide
from rag_eval.cases import GOOD, MEANING, STAGE
from rag_eval.common.escaping import hypertext, one_line, quantity
from rag_eval.contract import MOST
from rag_eval.gates.evidence import has_several_runs
from rag_eval.gates.questions import Question
from rag_eval.rendering import gates_table, results, summary
from rag_eval.rendering import history as trend
from rag_eval.rendering.comparison import repeats_sections, sections
from rag_eval.rendering.document import COMMIT, Paragraph, Section, Table, bullets, paragraphs
from rag_eval.rendering.explanation import CaseDetails, Details, Source
from rag_eval.rendering.html import plots
from rag_eval.rendering.html.element import (
    FORMATTER,
    NOTHING,
    Markup,
    caption,
    document,
    folded,
    inline,
    join,
    page,
    scrolled,
    sign,
    tag,
    visible,
    write_page,
)
from rag_eval.rendering.html.element import table as write_table
from rag_eval.rendering.html.element import write_blocks as write
from rag_eval.textual.leaks import Segment

_ALL = 1_000_000_000
_TREND = "RAG evaluation over time"
_READ = (
    "Oldest first, with 95\u00a0% intervals. The shaded side of the threshold passes the gate: a disc passed, a cross "
    "failed. A ring was measured with another definition and is not joined; a dashed line marks the change."
)


def render(report: Report, details: Details | None = None) -> str:
    """Return the whole report; only single strings of more than a thousand characters are cut.

    With ``details`` each question unfolds to its answer and evidence.
    """
    gates = write(gates_table.gates(report, FORMATTER))
    notes = write(summary.notes(report, FORMATTER, _ALL))
    completeness = [tag("p", summary.completeness(report)), *([tag("h3", summary.NOTES), notes] if notes else [])]
    digests = [[FORMATTER.named(name, ""), FORMATTER.code(digest)] for name, digest in report.contracts.items()]
    note = Paragraph("Two values are comparable only if both have the same metric fingerprint.")
    fingerprints = write([note, Table("Metric fingerprints", ["Metric", "sha256"], digests)])
    provenance = write(summary.provenance(report, FORMATTER))
    parts = {
        "findings": (summary.FINDINGS, write(summary.findings(report, FORMATTER, _ALL))),
        "diagnosis": (summary.DIAGNOSIS, write(summary.diagnosis(report, FORMATTER))),
        "failing": ("What fails", write(results.failing(report, FORMATTER))),
        "gates": ("Gates", join([*plots.gates(report), gates])),
        "changed": ("What changed", write(results.effects(report, FORMATTER))),
        "policy": (summary.POLICY, write(summary.policy(report, FORMATTER, _ALL))),
        "gold": ("Changes of the gold", write(summary.gold(report, FORMATTER, _ALL))),
        "completeness": ("Completeness", join(completeness)),
        "slices": ("Slices", _slices(report)),
        "metrics": ("All metrics", _metrics(report)),
        "questions": (f"Questions ({len(report.questions):,})", _questions(report, details or {})),
        "provenance": (
            "Provenance",
            join([provenance, folded(f"Metric fingerprints ({len(digests)})", fingerprints)]),
        ),
    }
    return page(f"{summary.title(report)}: {_system(report)}", visible(report.version), _header(report), parts)


def verdict_and_gates(report: Report) -> str:
    """Return the verdict, the table of the gates and the notes on the input, for a notebook."""
    verdict = tag("p", tag("strong", sign(report.verdict), " ", inline(summary.headline(report, FORMATTER))))
    gates = gates_table.gates_with_row(report.gates)
    return join([verdict, write([gates_table.table(report, FORMATTER, gates), *summary.notes(report, FORMATTER)])])


def _system(report: Report) -> str:
    """Return the subject of the report: repository and commit if they are known, otherwise the file of the traces."""
    named = " at ".join(filter(None, [report.ci.repository if report.ci else "", system_commit(report)[:COMMIT]]))
    return one_line(named or report.paths.get("trace", "").rpartition("/")[2] or report.gates_file or "traces", 90)


def _header(report: Report) -> Markup:
    kind = "inconclusive" if summary.passed_in_part(report) else report.verdict
    counts = dict.fromkeys(("failed", "warning", "inconclusive", "no_data", "passed"), 0)
    for gate in report.gates:
        if not gate.is_completeness:  # it has its own section and counts
            counts[gates_table.outcome_style(gate)] += 1
    words = {"warning": "warning only", **gates_table.OUTCOMES}
    tiles = [
        tag("li", sign(outcome), tag("strong", str(count)), f" {words[outcome]}", class_=f"tile {outcome}")
        for outcome, count in counts.items()
        if count
    ]
    head = [
        tag("h1", sign(kind), " ", summary.title(report)),
        tag("p", inline(summary.headline(report, FORMATTER)), class_="verdict"),
        write(summary.authority(report, FORMATTER)),
        tag("ul", join([tag("li", "Gates"), *tiles]), class_="tiles", aria_label="Gates by outcome"),
        _facts(report),
    ]
    return tag("div", join(head), class_=f"head {kind}")


def _facts(report: Report) -> Markup:
    """Return the scored files: repository, commit, models, gold with its size, gates and baseline, as far as known."""
    run, ci, paths = report.run or {}, report.ci, report.paths
    models = run.get("models")
    gold = f"{paths.get('gold', 'in memory')}, {results.count_cases(report)}"
    known = report.baseline
    baseline = (known.path, known.ref, known.commit[:COMMIT]) if known else ("none",)
    facts = {
        "Repository": ci.repository if ci else "",
        "Branch": ci.branch if ci else "",
        "Commit": system_commit(report)[:COMMIT],
        "Pull request": f"#{ci.pull_request}" if ci and ci.pull_request else "",
        "Run": f"#{ci.run}" if ci and ci.run else "",
        "Date": run_date(report),
        "Model": ", ".join(f"{role} {name}" for role, name in models.items()) if isinstance(models, dict) else "",
        "Gold set": gold if report.questions else "",
        "Baseline": " at ".join(filter(None, baseline)),
        "Traces": paths.get("trace", ""),
        "Gates": report.gates_file,
    }
    rows = ((tag("dt", name), tag("dd", tag("bdi", one_line(text, 200)))) for name, text in facts.items() if text)
    return tag("dl", join(tag("div", *row) for row in rows), class_="facts")


def _slices(report: Report) -> Markup:
    if not report.slices:
        return NOTHING
    worst = write([*results.worst_slices(report, FORMATTER), *results.conversations(report, FORMATTER)])
    return join([worst, *plots.heat(report)])


def _metrics(report: Report) -> Markup:
    """Show every metric that has a value, folded by metric group, and the fields that the others need."""
    groups = [
        folded(visible(group.title), tag("p", group.about, class_="hint"), write(group.tables))
        for group in results.by_group(report, FORMATTER)
    ]
    return join([*groups, write(paragraphs(visible(results.without_cases(report))))])


_FIRST = 100
"""Rows that are shown at first where the script runs; it says how many there are, and shows them all when asked to."""
_KEY = (
    "Open a question to see its answer and evidence. Highlighted: the passage that supports the answer best. "
    "Underlined: sentences that no chunk supports. Dotted: words and numbers that are in no chunk. Stars hide secrets "
    "and personal data."
)


class _Column(NamedTuple):
    """A column: its title, its cells, its filter (if any), and its sort order."""

    title: str
    cell: Callable[[Question], Markup]
    choice: str = ""
    order: str = "text"


def _questions(report: Report, details: Details) -> Markup:
    """Return the labels with their counts, the controls, and a table with a row for each case, with ``details`` two."""
    columns = _columns(report)
    rows = [_row(item, columns, details.get((item.qid, item.run))) for item in results.by_urgency(report)]
    counts = Counter(question.label for question in report.questions)
    labels = [
        [results.signed_label(label, FORMATTER), f"{counts[label]:,}", STAGE.get(label, ""), MEANING[label]]
        for label in results.labels(report.questions)
    ]
    first = f" Only the first {len(details):,} of {len(rows):,} unfold, failing ones first."
    key = tag("p", f"{_KEY}{first if len(details) < len(rows) else ''}", class_="hint") if details else NOTHING
    headers = (
        tag("th", column.title, scope="col", data_order=column.order, data_choice=column.choice or None)
        for column in columns
    )
    head, rest = tag("thead", tag("tr", *headers)), join(rows[_FIRST:])
    bodies = [tag("tbody", join(rows[:_FIRST])), *([tag("tbody", rest, class_="rest")] if rest else [])]
    shown = scrolled("Cases", tag("table", caption("Cases, failing ones first"), head, *bodies, id="cases"))
    button = tag("button", f"Show all {len(rows):,} rows", type="button", id="all")
    parts = [
        write_table(Table("Labels", ["Label", "Cases", "Look at", "Meaning"], labels)),
        *_controls(report, columns),
        key,
        shown,
        tag("p", button, hidden=True, id="more"),
    ]
    return join(parts)


def _columns(report: Report) -> list[_Column]:
    """Return question, run if there are several, label, change if there is a baseline, and the rest."""
    flips = {(flip.qid, flip.run): "newly fixed" if flip.is_fixed else "newly broken" for flip in report.flips}
    run = _Column("Run", lambda item: tag("td", _name(item.run)), "run")
    change = _Column("Changed", lambda item: _word(flips.get((item.qid, item.run), ""), "changed"), "changed")
    parts = _Column("Slices", lambda item: _word(", ".join(map(visible, item.slices)), "slices"))
    return [
        _Column("Question", lambda item: Markup(f'<th scope="row">{_name(item.qid)}</th>')),
        *([run] if has_several_runs(report.questions) else []),
        _Column("Label", lambda item: _word(item.label, "good" if item.label in GOOD else "bad"), "label"),
        *([change] if report.baseline is not None else []),
        _Column("Text", lambda item: Markup(f'<td dir="auto">{hypertext(visible(item.question))}</td>')),
        _Column("Look at", lambda item: _word(STAGE.get(item.label, ""), "look"), "look at"),
        _Column("Answerable", lambda item: _word("yes" if item.answerable else "no", "answerable"), "answerable"),
        *([parts] if any(question.slices for question in report.questions) else []),
        _Column("Gold line", lambda item: _line(item.gold_line, "gold"), order="number"),
        _Column("Trace line", lambda item: _line(item.trace_line, "trace"), order="number"),
    ]


def _name(text: str | None) -> Markup:
    return Markup(f"<code>{hypertext(visible(text))}</code>") if text else NOTHING


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
    expected = [tag("p", "A refusal, because the documents do not answer this question.")]
    if details.answerable:
        missing = "" if details.contained else " The answer contains none of them."
        wanted = [part for text in details.wanted for part in (" ", tag("q", visible(text), dir="auto"))]
        expected = [tag("p", "An answer that contains one of these:", *wanted, f".{missing}")] if wanted else []
        ids = [part for name in details.evidence for part in (tag("code", visible(name)), " ")]
        expected += [tag("p", "Evidence: ", *ids)] if ids else []
        expected = expected or [tag("p", "Any answer.")]
    retrieved = [_ids(details.retrieved, with_rank=False)]
    retrieved += [tag("p", f"… and {details.cut} more.")] if details.cut else []
    facts = [
        ("Why" if question.label not in GOOD else "Outcome", why),
        ("Question", [tag("p", visible(details.question), dir="auto")]),
        ("Answer", answer),
        ("Expected", expected),
        ("Cited", [_ids(details.cited, with_rank=True)]),
        ("Retrieved", retrieved),
    ]
    return tag("dl", join(tag("div", tag("dt", name), tag("dd", join(parts))) for name, parts in facts))


def _ids(names: Sequence[Source], *, with_rank: bool) -> Markup:
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
    marked = (tag(tags[state], text, class_=state) if state in tags else text for text, state in pieces)
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
    return [form, tag("p", f"{results.count_cases(report)}: all are shown.", id="count", role="status")]


def history_page(
    series: Sequence[Series], reports: int, runs: Sequence[Point] = (), unsteady: Sequence[Flaky] = ()
) -> str:
    """Return the page of a history: a chart for each metric, drift, flaky questions, the last runs, all readings."""
    newest = runs[-1].verdict if runs else None
    kind = "neutral" if newest is None else "passed" if newest.passed else "failed"
    word = "" if newest is None else f"The newest of {quantity(reports, 'run')} {kind}. "
    head = [tag("h1", _TREND), tag("p", f"{word}{trend.headline(series)}", class_="verdict")]
    charts = tag("div", *(plots.trend(index, item) for index, item in enumerate(series)), class_="charts")
    tables = [(item, trend.readings_table(item, FORMATTER)) for item in series]
    readings = [folded(f"{visible(item.metric)} ({len(item.readings):,})", write([table])) for item, table in tables]
    # Slow drift comes first: no other part shows it.
    ordered = sorted(series, key=lambda item: not item.slow)
    drift = bullets([line for item in ordered for line in trend.trend_remarks(item, FORMATTER)])
    if series and not any(item.slow for item in series):
        drift = [Paragraph("No metric drifts slowly."), *drift]
    parts = {
        "trends": ("Trends", join([tag("p", _READ, class_="hint"), charts]) if series else NOTHING),
        "drift": ("Drift", write(drift)),
        "flaky": ("Flaky questions", write(trend.flaky_questions(unsteady, FORMATTER)) if runs else NOTHING),
        "runs": ("Last runs", write(trend.last_runs(runs, FORMATTER))),
        "summary": ("Newest against oldest", write(trend.summary_table(series, FORMATTER))),
        "readings": ("All readings", join(readings)),
    }
    return page(_TREND, __version__, tag("div", join(head), class_=f"head {kind}"), parts)


def comparison_page(comparison: SideBySide) -> str:
    """Return the page of a comparison."""
    names = [run.name for run in comparison.runs]
    drawn = list(plots.pareto_front(comparison.front, names)) if comparison.front else []
    charts = tag("div", *drawn, class_="charts") if drawn else NOTHING
    return write_page(sections(comparison, FORMATTER), comparison.version, charts)


def comparison_tables(comparison: SideBySide) -> str:
    """Return the sections of a comparison, for a notebook."""
    parts = (join([tag("h3", inline(part.title)), write(part.blocks)]) for part in sections(comparison, FORMATTER))
    return join(parts)


def repeats_page(systems: Sequence[Repeats]) -> str:
    """Return the page of repeats."""
    parts = (part for system in systems for part in repeats_sections(system, FORMATTER))
    return write_page([Section("Repeats"), *parts], __version__)


def grading_form(
    answers: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    scores: Sequence[str],
    rubric: str,
    rater: str,
    version: str,
) -> str:
    """Return the page; each answer has the fields of its label and the judge's input."""
    who = tag("p", tag("label", "Your name: ", tag("input", id="rater", type="text", value=rater, autocomplete="name")))
    items = [_answer_to_grade(number, len(answers), *answer, scores) for number, answer in enumerate(answers, 1)]
    button, state = tag("button", "Save the grades", type="button", id="save"), tag("span", id="state", role="status")
    save = tag("p", button, " ", state, tag("noscript", "Saving needs the script of this file."))
    instruction = "Grade each answer by the rubric, from 0 to 5. Leave a score open if you cannot tell."
    hidden = tag("p", instruction, " The grades of the judge are not shown.")
    head = tag("header", tag("h1", "Spot-check of a judge"), hidden, folded("Rubric", _quoted(rubric)))
    body = tag("main", tag("form", who, join(items), save, id="grades", autocomplete="off"))
    return document("Spot-check of a judge", version, [head, body], "grading.js")


def _answer_to_grade(
    number: int, total: int, label: Mapping[str, Any], shown: Mapping[str, Any], scores: Sequence[str]
) -> Markup:
    parts = [tag("h2", f"{number} of {total}: {shown['question']}", id=f"answer-{number}")]
    if earlier := shown.get("history"):
        parts += [tag("h3", "Earlier turns"), *(_quoted(f"{item['role']}: {item['content']}") for item in earlier)]
    parts += [tag("h3", "Answer"), _quoted(shown["answer"])]
    parts += [tag("p", f"Citations: {', '.join(shown['citations']) or 'none'}")]
    if "expected_answer" in shown:
        parts += [tag("h3", "Expected answer"), _quoted(shown["expected_answer"])]
    parts += [tag("h3", "Passages")] if shown["chunks"] else [tag("p", "There are no passages.")]
    parts += [folded(chunk["id"], _quoted(chunk["text"]), unfolded=True) for chunk in shown["chunks"]]
    for score in scores:
        grades = []
        for grade in range(MOST + 1):
            radio = tag("input", type="radio", name=f"answer-{number}-{score}", value=str(grade), data_choice=score)
            grades.append(tag("label", radio, f" {grade} "))
        parts.append(tag("p", tag("span", f"{score}: "), *grades, role="group", aria_label=score))
    parts += [tag("p", tag("label", "Note: ", tag("input", type="text")))]
    return tag("section", join(parts), data_label=json.dumps(label), aria_labelledby=f"answer-{number}")


def _quoted(text: str) -> Markup:
    return tag("blockquote", join(tag("p", line) for line in text.splitlines() if line.strip()))
