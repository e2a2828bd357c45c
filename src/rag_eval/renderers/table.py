"""The report for a terminal: verdict, gates, failing questions, diagnosis."""

from __future__ import annotations

from tabulate import tabulate

from rag_eval.labels import GOOD, MEANING
from rag_eval.renderers import words
from rag_eval.safe import log_line, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.report import Question, Report

_SHOWN = 20


def render(report: Report) -> str:
    """A page of plain text; at most twenty failing questions."""
    parts = [words.headline(report), _gates(report), words.completeness(report)]
    if not report.gates_file:
        parts.append("There is no gates file: the reference scorer's defaults hold.")
    parts += [_failures(report), _diagnosis(report), _metrics(report)]
    text = "\n\n".join(part for part in parts if part)
    return "\n".join(log_line(line) for line in text.split("\n")) + "\n"


def _gates(report: Report) -> str:
    rows = [
        [
            gate.name,
            words.gate_value(gate),
            words.counted(report.metrics.get(gate.name), gate.n),
            words.threshold(gate),
            words.outcome(gate),
        ]
        for gate in words.telling(report.gates)
    ]
    return _table(["gate", "value", "cases", "threshold", "outcome"], rows)


def _failures(report: Report) -> str:
    failing = [question for question in report.questions if question.label not in GOOD]
    if not failing:
        return ""
    runs = len(words.runs_of(report)) > 1
    rows = [_failure(question, runs=runs) for question in failing[:_SHOWN]]
    table = _table(["question", *(["run"] if runs else []), "label", "text"], rows)
    cut = len(failing) - _SHOWN
    more = f"\n… and {cut} more; --format json has all." if cut > 0 else ""
    used = sorted({question.label for question in failing}, key=list(MEANING).index)
    return f"{table}{more}\n" + "\n".join(f"  {label}: {MEANING[label]}" for label in used)


def _failure(question: Question, *, runs: bool) -> list[str]:
    run = [one_line(question.run or "", 20)] if runs else []
    return [one_line(question.qid, 40), *run, question.label, one_line(question.question, 60)]


def _diagnosis(report: Report) -> str:
    return "\n".join(f"- {cause.cause} ({cause.evidence}) {cause.next}" for cause in report.diagnosis)


def _metrics(report: Report) -> str:
    plain = _table(["metric", "value", "cases", "better"], words.plain_metrics(report))
    headers, rows = words.cutoff_metrics(report)
    tables = [plain, _table(headers, rows) if rows else "", words.without_cases(report)]
    return "\n\n".join(part for part in tables if part)


def _table(headers: list[str], rows: list[list[str]]) -> str:
    return tabulate(rows, headers, tablefmt="simple", disable_numparse=True)
