"""Annotations of single lines: failed gates, findings, and questions with wrong answers."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_eval.cases.labels import GOOD, MEANING
from rag_eval.common.paths import GATES_FILES
from rag_eval.rendering import phrases

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report


class Pointer(NamedTuple):
    """A text about a line of a file; ``file`` is empty and ``line`` 0 if the change has no such line.

    ``kind`` is gate, finding or question. ``code`` names the gate, the finding's code or the question's label.
    ``subject`` distinguishes texts with one code, on any line.
    """

    kind: Literal["gate", "finding", "question"]
    level: Literal["error", "warning"]
    code: str
    text: str
    file: str = ""
    line: int = 0
    subject: str = ""

    @property
    def rule(self) -> str:
        """Return the name of the rule, such as ``gate/chr``."""
        return f"{self.kind}/{self.code}"

    @property
    def fingerprint(self) -> str:
        """Return a digest that is the same for the same gate, finding or question in every run, on any line."""
        return sha256("\n".join([self.rule, self.subject]).encode(errors="replace")).hexdigest()[:32]


def of_gates(report: Report) -> Iterator[Pointer]:
    """Yield the failed gates, on their lines of the gates file; gates that only the base branch has are on no line."""
    for gate in (gate for gate in report.gates if gate.broken):
        location = ("", 0) if gate.origin == "base" else (report.gates_file, gate.line)
        level: Literal["error", "warning"] = "error" if gate.blocks else "warning"
        subject = f"{gate.origin} {phrases.PLAIN.gate(gate)} {gate.direction}"
        yield Pointer("gate", level, gate.name, phrases.reason(report, gate), *location, subject)


def of_findings(report: Report) -> Iterator[Pointer]:
    """Yield the findings, each with its fix."""
    for finding in report.findings:
        text = f"{finding.message}. {finding.fix}".rstrip()
        yield Pointer("finding", finding.level, finding.code, text, finding.file, finding.line, finding.message)


def of_questions(report: Report, *, in_gold: bool = False) -> Iterator[Pointer]:
    """Yield the wrong questions on the line of their trace; of their gold item without a trace, or if ``in_gold``."""
    paths = {source.role: source.path for source in report.inputs}
    for question in report.questions:
        if question.label in GOOD:
            continue
        in_trace = question.trace_line and not in_gold
        file, line = ("trace", question.trace_line) if in_trace else ("gold", question.gold_line)
        text = f"{question.qid}: {MEANING[question.label]}"
        subject = question.qid if question.run is None else f"{question.run} {question.qid}"
        yield Pointer("question", "warning", question.label, text, paths.get(file, ""), line, subject)


def all_of(report: Report, *, in_gold: bool = False) -> list[Pointer]:
    """Return the pointers of gates, findings and questions, in this order."""
    return [*of_gates(report), *of_findings(report), *of_questions(report, in_gold=in_gold)]


def in_repository(file: str, line: int, gates_file: str = "") -> tuple[str, int]:
    """Return a file of the repository and its line, 0 if unknown; the gates file for any other file."""
    inside = _inside(file)
    return inside or _inside(gates_file) or GATES_FILES[0], line if inside else 0


def _inside(path: str) -> str:
    """Return a path from the root of the repository, with forward slashes; empty if it is absolute or leads out."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == ".." and not parts:
            return ""
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "" if path.startswith(("/", "\\")) or path[1:2] == ":" else "/".join(parts)
