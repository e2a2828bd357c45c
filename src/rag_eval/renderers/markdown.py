"""The report as Markdown, for the pull request comment and the job summary."""

from __future__ import annotations

from tabulate import tabulate

from rag_eval.labels import MEANING, STAGE
from rag_eval.renderers import words
from rag_eval.safe import markdown as safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_eval.gates import Judged
    from rag_eval.report import Report

_SIGNS = {"passed": "✅", "failed": "❌", "no_data": "⬜"}
_QUESTIONS = 200


def render(report: Report) -> str:
    """The whole report; failing questions first, at most two hundred questions."""
    sign = _SIGNS[report.verdict]
    parts = [
        f"## {sign} {_escaped(words.headline(report))}",
        _gates(report),
        f"**Completeness.** {words.completeness(report)}",
        *_notes(report),
        *_diagnosis(report),
        _folded("All metrics", _metrics(report)),
        _folded(f"Questions ({len(report.questions)})", _questions(report)),
        _folded("Provenance", _provenance(report)),
    ]
    return "\n\n".join(parts) + "\n"


def _gates(report: Report) -> str:
    rows = [_gate_row(report, gate) for gate in report.gates]
    table = _table(["Gate", "Value", "Cases", "Threshold", "Outcome"], rows)
    if report.gates_file:
        return table
    return f"{table}\n\nThere is no gates file: the reference scorer's defaults hold."


def _gate_row(report: Report, gate: Judged) -> list[str]:
    sign = "⚠️" if gate.broken and not gate.blocks else _SIGNS[gate.outcome]
    cases = words.counted(report.metrics.get(gate.name), gate.n)
    return [safe(gate.name), words.gate_value(gate), cases, words.threshold(gate), f"{sign} {words.outcome(gate)}"]


def _notes(report: Report) -> list[str]:
    if not report.notes:
        return []
    lines = [
        f"- {safe(_place(note.file, note.line), 200)}: {safe(note.message, 200)}{_times(note.times)}"
        for note in report.notes
    ]
    return ["**Notes on the input**\n\n" + "\n".join(lines)]


def _diagnosis(report: Report) -> list[str]:
    if not report.diagnosis:
        return []
    lines = [f"- **{_escaped(cause.cause)}** ({_escaped(cause.evidence)}) {cause.next}" for cause in report.diagnosis]
    return ["**Diagnosis**\n\n" + "\n".join(lines)]


def _metrics(report: Report) -> str:
    plain = _table(
        ["Metric", "Value", "Cases", "Better"], ([safe(row[0]), *row[1:]] for row in words.plain_metrics(report))
    )
    headers, rows = words.cutoff_metrics(report)
    cut = (
        _table([header.capitalize() for header in headers], ([safe(row[0]), *row[1:]] for row in rows)) if rows else ""
    )
    return "\n\n".join(part for part in (plain, cut, words.without_cases(report)) if part)


def _questions(report: Report) -> str:
    ordered = words.by_urgency(report.questions)
    runs = len({question.run for question in ordered}) > 1
    rows = [
        [
            safe(question.qid),
            *([safe(question.run or "")] if runs else []),
            question.label,
            STAGE.get(question.label, "–"),
            safe(question.question),
        ]
        for question in ordered[:_QUESTIONS]
    ]
    table = _table(["Question", *(["Run"] if runs else []), "Label", "Look at", "Text"], rows)
    cut = len(ordered) - _QUESTIONS
    more = f"\n\n{cut} more questions are not shown; failing ones come first. report.json has all." if cut > 0 else ""
    used = sorted({question.label for question in ordered}, key=list(MEANING).index)
    legend = "; ".join(f"`{label}` {MEANING[label]}" for label in used)
    return f"{table}{more}\n\n{legend}."


def _provenance(report: Report) -> str:
    rows = [[each.role, safe(each.path, 200), f"`{each.sha256}`"] for each in report.inputs]
    refusal = f"Refusal token {safe(str(report.refusal['token']))}, {len(report.refusal['phrases'])} refusal phrases"
    settings = f"{refusal}; labels at k = {report.k}; rag-eval {report.version}."
    return f"{_table(['Input', 'Path', 'sha256'], rows)}\n\n{settings}"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return tabulate(list(_trimmed(rows)), headers, tablefmt="github", disable_numparse=True)


def _trimmed(rows: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    for row in rows:
        yield [cell or "–" for cell in row]


def _escaped(text: str) -> str:
    """Our own sentences: names of metrics hold underscores, and thresholds of a gates file are plain numbers."""
    return text.replace("_", "\\_").replace("@", "@\u200b")


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
