"""Annotations of single lines: failed gates, findings and wrong answers; as SARIF 2.1.0 and for GitLab Code Quality."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rag_eval.cases import GOOD, MEANING
from rag_eval.common.escaping import json_text, one_line
from rag_eval.common.paths import GATES_FILES
from rag_eval.rendering.document import PLAIN
from rag_eval.rendering.gates_table import reason
from rag_eval.rendering.summary import headline

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LONGEST = 1000
_ESCAPED_IN_URI, _BRACKET = re.compile(rb"[^A-Za-z0-9._~/-]"), re.compile(r"[\\\[\]]")


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
        subject = f"{gate.origin} {PLAIN.gate(gate)} {gate.direction}"
        yield Pointer("gate", level, gate.name, reason(report, gate), *location, subject)


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


def render_sarif(report: Report) -> str:
    """Return one run of one tool. The wrong answers of a run that passed are notes, because nothing has to be done."""
    rules: dict[str, dict[str, Any]] = {}
    results = []
    for pointer in (*of_gates(report), *of_findings(report), *of_questions(report)):
        texts = {"gate": f"the gate on {pointer.code}", "finding": f"the finding {pointer.code}"}
        text = texts.get(pointer.kind) or MEANING[pointer.code]
        rules.setdefault(pointer.rule, {"id": pointer.rule, "shortDescription": _message(text)})
        # Code scanning accepts only files of the repository: other pointers point at the gates file.
        file, line = in_repository(pointer.file, pointer.line, report.gates_file)
        uri = _ESCAPED_IN_URI.sub(lambda char: b"%%%02X" % char[0][0], file.encode(errors="replace")).decode()
        location: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}}
        location |= {"region": {"startLine": line}} if line else {}
        result = {
            "ruleId": pointer.rule,
            "ruleIndex": list(rules).index(pointer.rule),
            "level": "note" if pointer.kind == "question" and report.passed else pointer.level,
            "message": _message(pointer.text),
            "locations": [{"physicalLocation": location}],
            "partialFingerprints": {"ragEval/v1": pointer.fingerprint},
        }
        results.append(result)
    driver = {"name": "rag-eval", "semanticVersion": report.version, "rules": list(rules.values())}
    properties = {"verdict": report.verdict, "summary": one_line(headline(report), _LONGEST)}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results, "properties": properties}
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _message(text: str) -> dict[str, str]:
    """Return a message. Brackets in it are escaped, so that untrusted input cannot make links."""
    return {"text": _BRACKET.sub(r"\\\g<0>", one_line(text, _LONGEST))}


def render_code_quality(report: Report) -> str:
    """Return a Code Quality report of GitLab, which matches issues by their fingerprints, which must differ.

    A wrong answer is major in a run that fails, and info in a run that passes. It points at its gold item, which is in
    the repository; GitLab links there.
    """
    seen: Counter[str] = Counter()
    issues = []
    for pointer in (*of_gates(report), *of_findings(report), *of_questions(report, in_gold=True)):
        file, line = in_repository(pointer.file, pointer.line, report.gates_file)
        seen[pointer.fingerprint] += 1
        number = seen[pointer.fingerprint]
        of_question = "info" if report.passed else "major"
        of_other = "critical" if pointer.level == "error" else "minor"
        issue = {
            "check_name": pointer.rule,
            "description": one_line(pointer.text, _LONGEST),
            "fingerprint": pointer.fingerprint + (f"-{number}" if number > 1 else ""),
            "severity": of_question if pointer.kind == "question" else of_other,
            "location": {"path": one_line(file, _LONGEST), "lines": {"begin": line or 1}},
        }
        issues.append(issue)
    return json_text(issues)
