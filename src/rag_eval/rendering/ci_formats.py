"""Forms of a report for CI systems: SARIF, GitLab's Code Quality and JUnit, with pointers to lines of files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from posixpath import normpath
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree as ET

from rag_eval.analysis import Report
from rag_eval.cases import GOOD, MEANING
from rag_eval.common.escaping import json_text, one_line, unbracketed
from rag_eval.common.paths import GATES_FILES
from rag_eval.gates import GateResult
from rag_eval.gates.questions import Question
from rag_eval.rendering.document import PLAIN
from rag_eval.rendering.gates_table import format_bound, format_cases, format_outcome, reason
from rag_eval.rendering.summary import headline

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LONGEST, _MOST_TESTS = 1000, 10_000
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
        level: Literal["error", "warning"] = "error" if gate.blocks else "warning"
        subject = f"{gate.origin} {PLAIN.gate(gate)} {gate.direction}"
        yield Pointer("gate", level, gate.name, reason(report, gate), *_line_of(report, gate), subject)


def _line_of(report: Report, gate: GateResult) -> tuple[str, int]:
    return ("", 0) if gate.origin == "base" else (report.gates_file, gate.line)


def of_findings(report: Report) -> Iterator[Pointer]:
    """Yield the findings, each with its fix."""
    for finding in report.findings:
        text = f"{finding.message}. {finding.fix}".rstrip()
        yield Pointer("finding", finding.level, finding.code, text, finding.file, finding.line, finding.message)


def of_questions(report: Report, *, in_gold: bool = False) -> Iterator[Pointer]:
    """Yield the wrong questions on the line of their trace; of their gold item without a trace, or if ``in_gold``."""
    paths = report.paths
    for question in report.questions.failing:
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
    plain = normpath(path.replace("\\", "/"))
    leads_out = plain.startswith(("/", "../")) or plain in (".", "..") or path[1:2] == ":"
    return "" if leads_out else plain


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


def render_junit(report: Report) -> str:
    """Return a test suite of each kind: gates, completeness, findings and questions.

    A gate fails its test if it fails the run; another that did not pass is skipped with a message. A wrong question is
    a failure in a run that fails; if the run passes, it is skipped, so that no CI system marks the run as unstable.
    JUnit has no warnings: findings that only warn are listed below the verdict.
    """
    why = "not judged: it belongs to a metric group that was not requested"
    labels = report.scope.left_out_gates if report.scope else ()
    left_out = [_test(one_line(label, 200), "skipped", why) for label in labels]
    lines = [headline(report)]
    lines += [one_line(f"warning: {finding}. {finding.fix}", 800).rstrip() for finding in report.warnings]
    questions: Sequence[Question] = report.questions
    if len(questions) > _MOST_TESTS:  # only wrong ones
        wrong = report.questions.failing
        questions = wrong[:_MOST_TESTS]
        counts = f"{len(questions):,} of {len(wrong):,} wrong questions are test cases"
        lines.append(f"{counts}; {len(report.questions):,} were asked.")
    suites = {
        "gates": [*(_of_gate(report, gate) for gate in report.gates if not gate.is_completeness), *left_out],
        "completeness": [_of_gate(report, gate) for gate in report.gates if gate.is_completeness],
        "findings": [
            _test(
                finding.code,
                "failure",
                one_line(finding.message, 400),
                one_line(" ".join([finding.place, finding.message, finding.fix]), 800),
                finding.code,
                finding.file,
                finding.line,
            )
            for finding in report.errors
        ],
        "questions": [_of_question(report, question) for question in questions],
    }
    root = ET.Element("testsuites", name="rag-eval")
    for name, tests in suites.items():
        if tests or name == "gates":
            suite = ET.SubElement(root, "testsuite", name=f"rag-eval.{name}")
            for test in tests:
                test.set("classname", f"rag-eval.{name}")
            suite.extend(tests)
            _set_counts(suite)
    _set_counts(root)
    ET.SubElement(root[0], "system-out").text = "\n".join(lines)
    ET.indent(root)
    # A character reference means the same bracket, but a CI system would run a printed ##[ or ##vso[ as a command.
    text = unbracketed(ET.tostring(root, encoding="unicode"), "&#91;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _test(
    name: str, outcome: str = "", message: str = "", text: str = "", kind: str = "", file: str = "", line: int = 0
) -> ET.Element:
    """Return a test case; ``outcome`` is ``skipped``, ``failure`` or empty if it passed."""
    case = ET.Element("testcase", classname="", name=name)
    if file and line:
        case.set("file", one_line(file, 400))
        case.set("line", str(line))
    if outcome:
        element = ET.SubElement(case, outcome, message=message)
        if outcome == "failure":
            element.set("type", kind)
            element.text = text or message
    return case


def _set_counts(element: ET.Element) -> None:
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(sum(1 for _ in element.iter(tag))))


def _of_gate(report: Report, gate: GateResult) -> ET.Element:
    name, why = f"{PLAIN.gate(gate)} {format_bound(gate)}", reason(report, gate)
    file, line = _line_of(report, gate)
    if gate.blocks:
        text = f"{why}; cases: {format_cases(report, gate)}"
        return _test(name, "failure", why, text, gate.outcome, file, line)
    if gate.outcome == "passed":
        return _test(name, file=file, line=line)
    message = why if gate.unclear else f"{why}: {format_outcome(gate)}"
    return _test(name, "skipped", message, file=file, line=line)


def _of_question(report: Report, question: Question) -> ET.Element:
    paths = report.paths
    name = one_line(question.qid if question.run is None else f"{question.qid} ({question.run})", 200)
    location = paths.get("gold", ""), question.gold_line
    if question.label in GOOD:
        return _test(name, "", "", "", "", *location)
    message = f"{question.label}: {MEANING[question.label]}"
    text = f"{message}; question: {one_line(question.question, 400)}"
    if question.trace_line and "trace" in paths:
        text += f"; trace: {one_line(paths['trace'], 400)}:{question.trace_line}"
    return _test(name, "skipped" if report.passed else "failure", message, text, question.label, *location)
