"""The report as JUnit XML: a test case for each gate, each finding that fails the run, and each question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from rag_eval.cases import GOOD, MEANING
from rag_eval.common.escaping import one_line, unbracketed
from rag_eval.rendering.cases import failing
from rag_eval.rendering.document import PLAIN
from rag_eval.rendering.gates_table import cases_of, outcome, reason
from rag_eval.rendering.number_format import bound, is_completeness
from rag_eval.rendering.summary import headline
from rag_eval.stats.tally import as_float

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import Question

_MOST = 10_000


class _Test(NamedTuple):
    """A test case; ``outcome`` is ``skipped``, ``failure`` or empty if it passed."""

    name: str
    outcome: str = ""
    message: str = ""
    text: str = ""
    kind: str = ""
    file: str = ""
    line: int = 0
    seconds: float = 0.0


def render(report: Report) -> str:
    """Return a test suite of each kind: gates, completeness, findings and questions.

    A gate fails its test if it fails the run; another that did not pass is skipped with a message. A wrong question is
    a failure in a run that fails; if the run passes, it is skipped, so that no CI system marks the run as unstable.
    JUnit has no warnings: findings that only warn are listed below the verdict.
    """
    why = "not judged: it belongs to a metric group that was not requested"
    labels = report.scope.left_out_gates if report.scope else ()
    left_out = [_Test(one_line(label, 200), "skipped", why) for label in labels]
    lines = [headline(report)]
    lines += [one_line(f"warning: {finding}. {finding.fix}", 800).rstrip() for finding in report.warnings]
    questions: Sequence[Question] = report.questions
    if len(questions) > _MOST:  # only wrong ones
        wrong = failing(report)
        questions = wrong[:_MOST]
        counts = f"{len(questions):,} of {len(wrong):,} wrong questions are test cases"
        lines.append(f"{counts}; {len(report.questions):,} were asked.")
    suites = {
        "gates": [*(_of_gate(report, gate) for gate in report.gates if not is_completeness(gate)), *left_out],
        "completeness": [_of_gate(report, gate) for gate in report.gates if is_completeness(gate)],
        "findings": [
            _Test(
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
    elements = [_suite(f"rag-eval.{name}", tests) for name, tests in suites.items() if tests or name == "gates"]
    root.extend(elements)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(element.get(name, "0")) for element in elements)))
    ET.SubElement(elements[0], "system-out").text = "\n".join(lines)
    ET.indent(root)
    # A character reference means the same bracket, but a CI system would run a printed ##[ or ##vso[ as a command.
    text = unbracketed(ET.tostring(root, encoding="unicode"), "&#91;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(name: str, tests: Sequence[_Test]) -> ET.Element:
    suite = ET.Element("testsuite", name=name)
    for test in tests:
        case = ET.SubElement(suite, "testcase", classname=name, name=test.name, time=f"{test.seconds:.3f}")
        if test.file and test.line:
            case.set("file", one_line(test.file, 400))
            case.set("line", str(test.line))
        if test.outcome:
            element = ET.SubElement(case, test.outcome, message=test.message)
            if test.outcome == "failure":
                element.set("type", test.kind)
                element.text = test.text or test.message
    outcomes = [test.outcome for test in tests]
    suite.set("tests", str(len(tests)))
    suite.set("failures", str(outcomes.count("failure")))
    suite.set("errors", "0")
    suite.set("skipped", str(outcomes.count("skipped")))
    suite.set("time", f"{sum(test.seconds for test in tests):.3f}")
    return suite


def _of_gate(report: Report, gate: GateResult) -> _Test:
    name, why = f"{PLAIN.gate(gate)} {bound(gate)}", reason(report, gate)
    file, line = ("", 0) if gate.origin == "base" else (report.gates_file, gate.line)
    if gate.blocks:
        text = f"{why}; cases: {cases_of(report, gate)}"
        return _Test(name, "failure", why, text, gate.outcome, file, line)
    if gate.outcome == "passed":
        return _Test(name, file=file, line=line)
    message = why if gate.unclear else f"{why}: {outcome(gate)}"
    return _Test(name, "skipped", message, file=file, line=line)


def _of_question(report: Report, question: Question) -> _Test:
    paths = {item.role: item.path for item in report.inputs}
    name = one_line(question.qid if question.run is None else f"{question.qid} ({question.run})", 200)
    latency = question.scores.get("latency_total_ms")
    seconds = as_float(latency) / 1000 if latency is not None else 0.0
    location = paths.get("gold", ""), question.gold_line, seconds
    if question.label in GOOD:
        return _Test(name, "", "", "", "", *location)
    message = f"{question.label}: {MEANING[question.label]}"
    text = f"{message}; question: {one_line(question.question, 400)}"
    if question.trace_line and "trace" in paths:
        text += f"; trace: {one_line(paths['trace'], 400)}:{question.trace_line}"
    return _Test(name, "skipped" if report.passed else "failure", message, text, question.label, *location)
