"""The gates as JUnit XML: a gate is a test case."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rag_eval.common.escaping import one_line
from rag_eval.rendering import phrases
from rag_eval.rendering.number_format import bound
from rag_eval.rendering.phrases import PLAIN

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import Judged


def render(report: Report) -> str:
    """One test suite; a gate that fails the run is a failure, another that did not pass is skipped with a message.

    A finding that is an error is a test case that failed; a gate that a narrowed run left out is skipped. JUnit has no
    warnings, so a finding that only warns is no test: it stands below the verdict.
    """
    left_out = report.scope.left_out_gates if report.scope else ()
    tests, failures = (len(part) + len(report.errors) for part in (report.gates, report.failed_gates))
    tests += len(left_out)
    suite = ET.Element("testsuite", name="rag-eval", tests=str(tests), failures=str(failures))
    suite.set("errors", "0")
    suite.set("skipped", str(sum(_skipped(gate) for gate in report.gates) + len(left_out)))
    for gate in report.gates:
        _case(suite, report, gate)
    for finding in report.errors:
        case = ET.SubElement(suite, "testcase", classname="rag-eval.findings", name=finding.code)
        failure = ET.SubElement(case, "failure", message=one_line(finding.message, 400), type=finding.code)
        failure.text = one_line(" ".join([finding.place, finding.message, finding.mend]), 800)
    for label in left_out:
        case = ET.SubElement(suite, "testcase", classname="rag-eval.gates", name=one_line(label, 200))
        ET.SubElement(case, "skipped", message="not judged: it is of another perspective than was asked for")
    warned = (one_line(f"warning: {finding}. {finding.mend}", 800).rstrip() for finding in report.warnings)
    ET.SubElement(suite, "system-out").text = "\n".join([phrases.headline(report), *warned])
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    # A reference means the same bracket, and GitHub's runner would take a printed ##[ for a command.
    text = ET.tostring(root, encoding="unicode").replace("##[", "##&#91;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(suite: ET.Element, report: Report, gate: Judged) -> None:
    name, why = f"{PLAIN.gate(gate)} {bound(gate)}", phrases.reason(report, gate)
    case = ET.SubElement(suite, "testcase", classname="rag-eval.gates", name=name)
    if gate.blocks:
        failure = ET.SubElement(case, "failure", message=why, type=gate.outcome)
        failure.text = f"{why}; cases: {phrases.cases_of(report, gate)}"
    elif gate.unclear:
        ET.SubElement(case, "skipped", message=why)
    elif _skipped(gate):
        ET.SubElement(case, "skipped", message=f"{why}: {phrases.outcome(gate)}")


def _skipped(gate: Judged) -> bool:
    return not gate.blocks and gate.outcome != "passed"
