"""The report for a terminal: the verdict, failed gates, changes and wrong questions; on request, everything."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rag_eval.cases.labels import MEANING
from rag_eval.common.escaping import one_line, quantity, some
from rag_eval.metrics import PERSPECTIVES
from rag_eval.rendering import cases, changes, metrics_tables, notes, phrases
from rag_eval.rendering.gates_table import asides
from rag_eval.rendering.number_format import enclosed, is_count, move_of, moves, threshold
from rag_eval.rendering.phrases import PLAIN
from rag_eval.rendering.terminal import WIDTH, grid, laid, page, shortened, titled, wrapped

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import Question

_SHOWN, _QUESTIONS, _ALL = 20, 10, 1_000_000
_TEXT, _CODES = 60, 1
_MORE = "rag-eval score -v shows"


def render(report: Report, *, verbose: bool = False, by: bool = False) -> str:
    """Return a page of plain text: failures and changes, with ``by`` the slices, with ``verbose`` everything."""
    judged = report.gates if verbose else tuple(gate for gate in report.gates if gate.broken)
    gates = phrases.telling(judged)
    parts = [
        verdict(report),
        wrapped(phrases.left_out(report)),
        laid(notes.authority(report, PLAIN)),
        _gates(report._replace(gates=judged), gates, verbose=verbose),
        laid(notes.findings(report, PLAIN)),
        wrapped(phrases.usual(report)),
        _failures(report, _ALL if verbose else _QUESTIONS),
        wrapped(changes.against(report)),
        wrapped(_flips(report)),
        titled(notes.POLICY, notes.policy(report, PLAIN)),
        laid([*notes.counted(report, PLAIN), *notes.items(report, PLAIN)]),
        laid(changes.effects(report, PLAIN)),
        titled("Likely causes", notes.diagnosis(report, PLAIN, brief=not verbose)),
    ]
    if verbose:
        parts += [wrapped(phrases.completeness(report)), laid(changes.worst(report, PLAIN)), _metrics(report)]
    if (verbose or by) and report.slices:
        parts.append(laid([*cases.conversations(report, PLAIN), *changes.every(report, PLAIN)]))
    if not verbose:
        parts.append(wrapped(_measured(report, gates)))
    return page(parts)


def verdict(report: Report) -> str:
    """Return the verdict with its counts in one line: ``FAILED  4 of 8 gates · 6 of 14 questions wrong``."""
    counted = phrases.counted_gates(report)
    failed, passing = sum(gate.blocks for gate in counted), sum(gate.outcome == "passed" for gate in counted)
    of_gates = f"of {quantity(len(counted), 'gate')}"
    if report.passed:
        reasons = [f"{passing} {of_gates}", *phrases.not_passed(report)] if counted else []
    else:
        codes = dict.fromkeys(finding.code for finding in report.errors)
        reasons = [phrases.reason(report, gate) for gate in report.failed_gates if is_count(gate)]
        reasons += [f"{failed} {of_gates}"] if failed else []
        reasons += list(codes) if len(codes) <= _CODES else [f"{len(codes)} kinds of errors"]
    word = "PASSED IN PART" if phrases.in_part(report) else report.verdict.upper()
    return shortened(f"{word}  {one_line(' · '.join([*reasons, _wrong(report)]), 400)}", WIDTH)


def _wrong(report: Report) -> str:
    """Count the wrong questions, ``6 of 14 questions wrong``; of several runs, their cases."""
    total, wrong = len(report.questions), len(phrases.failing(report))
    name = ("case" if phrases.several(report) else "question") + ("s" if total != 1 else "")
    return f"{wrong} of {total} {name} wrong" if wrong else f"{'all ' if total > 1 else ''}{total or 'no'} {name} right"


def _gates(report: Report, gates: Sequence[GateResult], *, verbose: bool) -> str:
    """Return the table of ``gates``, and below it a legend and what tests could not detect."""
    if not gates:
        return ""
    mixed, delta = phrases.two_sided(report), moves(report)
    outcomes = verbose or any(not gate.blocks or gate.outcome != "failed" for gate in gates)
    shown = gates if verbose else gates[:_SHOWN]
    rows = [
        [
            PLAIN.gate(gate),
            *([phrases.WHOSE[gate.origin]] if mixed else []),
            enclosed(gate),
            phrases.cases_of(report, gate),
            threshold(gate),
            *([move_of(gate, delta) or "–"] if delta else []),
            *([phrases.outcome(gate)] if outcomes else []),
        ]
        for gate in shown
    ]
    headers = ["gate" if outcomes else "failed gate", *(["set by"] if mixed else []), "value", "cases", "threshold"]
    headers += [*(["baseline"] if delta else []), *(["outcome"] if outcomes else [])]
    cut = len(gates) - len(shown)
    lines = [f"… and {cut} more. {_MORE} all."] if cut else []
    if not verbose:  # only remarks on the metrics of the shown gates
        names = dict.fromkeys(gate.name for gate in report.gates if gate.name in report.metrics)
        report = report._replace(metrics={name: report.metrics[name] for name in names}, slices=())
    lines += asides(report)
    return "\n".join([grid(headers, rows), *(wrapped(line, "  ", "  ") for line in lines)])


def _measured(report: Report, gates: Sequence[GateResult]) -> str:
    """Count the other measured metrics, in one line."""
    valued = sum(result.n > 0 for result in report.metrics.values())
    groups = len(metrics_tables.perspectives(report))
    rest = sum(gate.outcome == "passed" for gate in phrases.counted_gates(report))
    passed = f"{quantity(rest, 'passed gate')}, " if gates and rest else ""
    return f"Also measured: {passed}{valued} metrics in {quantity(groups, 'group')}. {_MORE} everything."


def _flips(report: Report) -> str:
    """Count the flipped cases; broken ones are in the table of failures, fixed ones here."""
    fixed = [one_line(flip.qid, 40) for flip in changes.fixed(report)]
    ends = f": {some(fixed, _SHOWN)}." if fixed else "."
    return f"{changes.flipped(report)}{ends}" if report.baseline else ""


def _failures(report: Report, limit: int) -> str:
    """Return the table of the first wrong questions, and what their labels mean."""
    failing = phrases.failing(report)
    if not failing:
        return ""
    columns, shown = _columns(report), failing[:limit]
    table = grid([name for name, _ in columns], [[cell(item) for _, cell in columns] for item in shown])
    cut = len(failing) - len(shown)
    qid = failing[0].qid if re.fullmatch("[A-Za-z0-9._-]{1,40}", failing[0].qid) else "QID"  # others need quotes
    more = [f"… and {cut} more. {_MORE} all; rag-eval explain {qid} says why one is wrong."]
    used = sorted({question.label for question in shown}, key=list(MEANING).index)
    return "\n".join([table, *(more if cut > 0 else []), *(f"  {label}: {MEANING[label]}" for label in used)])


def _columns(report: Report) -> list[tuple[str, Callable[[Question], str]]]:
    """Return the columns of wrong questions: the run if there are several, the label before if there is a baseline."""
    before = {(flip.qid, flip.run): flip.before for flip in report.flips}
    run = ("run", lambda question: one_line(question.run or "", 20))
    was = ("before", lambda question: one_line(before.get((question.qid, question.run), "–")))
    return [
        ("wrong question", lambda question: shortened(one_line(question.qid, 40), 30)),
        *([run] if phrases.several(report) else []),
        *([was] if report.baseline else []),
        ("label", lambda question: question.label),
        ("text", lambda question: shortened(one_line(question.question, _TEXT), _TEXT)),
    ]


def _metrics(report: Report) -> str:
    parts = []
    for perspective in metrics_tables.perspectives(report):
        title = f"{perspective.capitalize()}: {PERSPECTIVES.get(perspective, '')}"
        first, *others = (grid(*part) for part in metrics_tables.tables(report, perspective))
        parts += [f"{wrapped(title)}\n{first}", *others]
    return "\n\n".join(part for part in (*parts, wrapped(metrics_tables.without_cases(report))) if part)
