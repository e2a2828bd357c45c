"""The report for a terminal: verdict, gates, what changed, failing questions, diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tabulate import tabulate

from rag_eval.cases.labels import MEANING
from rag_eval.common.escaping import log_line, one_line
from rag_eval.metrics import PERSPECTIVES
from rag_eval.rendering import baseline_view, changes, phrases, sections
from rag_eval.rendering.blocks import Paragraph, Table
from rag_eval.rendering.gate_notes import asides
from rag_eval.rendering.number_format import FEW, enclosed, move_of, moves, threshold
from rag_eval.rendering.phrases import PLAIN

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.results import Question

_SHOWN = 20


def render(report: Report) -> str:
    """A page of plain text; at most twenty failing questions."""
    parts = [phrases.headline(report), _base(report), _gates(report), _findings(report), phrases.completeness(report)]
    parts += [baseline_view.against(report), _flips(report), _policy(report), _gold(report), _effects(report)]
    parts += [phrases.usual(report), _failures(report), _worst(report), _diagnosis(report), _metrics(report)]
    parts += [_slices(report)]
    text = "\n\n".join(part for part in parts if part)
    return "\n".join(log_line(line) for line in text.split("\n")) + "\n"


def _gates(report: Report) -> str:
    mixed, delta = phrases.two_sided(report), moves(report)
    rows = [
        [
            PLAIN.gate(gate),
            *([phrases.WHOSE[gate.origin]] if mixed else []),
            enclosed(gate),
            phrases.cases_of(report, gate),
            threshold(gate),
            *([move_of(gate, delta) or "–"] if delta else []),
            phrases.outcome(gate),
        ]
        for gate in phrases.telling(report.gates)
    ]
    headers = ["gate", *(["whose"] if mixed else []), "value", "cases", "threshold"]
    shown = _table([*headers, *(["baseline"] if delta else []), "outcome"], rows)
    return "\n".join([shown, *(f"  {line}" for line in asides(report))])


def _base(report: Report) -> str:
    base = report.base
    if base is None:
        return ""
    where = one_line(base.ref, 60) + (f" ({one_line(base.commit[:12])})" if base.commit else "")
    return {
        "base": f"The gates of {where} and those of the work tree both apply.",
        "bootstrap": f"Bootstrap: {where} has no gates file for this, and that of the work tree decides alone.",
        "head": "The gates of the work tree alone decide, as was asked for.",
    }[base.kind]


def _findings(report: Report) -> str:
    lines = [f"{finding.level}: {one_line(str(finding), 600)}" for finding in report.findings[:_SHOWN]]
    cut = len(report.findings) - _SHOWN
    lines += [f"… and {cut} more; --format json has all."] if cut > 0 else []
    mends = dict.fromkeys(f"  {one_line(finding.mend, 300)}" for finding in report.findings if finding.mend)
    return "\n".join([*lines, "To mend it:", *mends] if mends else lines)


def _policy(report: Report) -> str:
    rows = [
        [
            one_line(each.key, 60),
            each.kind,
            *(one_line(value or "–", 40) for value in (each.old, each.new)),
            ", ".join(each.lets_through) or "–",
        ]
        for each in report.policy_changes
    ]
    return _table(["gates changed", "", "old", "new", "would let through"], rows) if rows else ""


def _gold(report: Report) -> str:
    rows = [
        [one_line(each.qid, 40), each.verb, each.before or "–", each.after or "–"]
        for each in sorted(report.gold_changes, key=lambda each: (not each.flips, each.qid))[:_SHOWN]
    ]
    cut = len(report.gold_changes) - _SHOWN
    more = f"\n… and {cut} more; --format json has all." if cut > 0 else ""
    turns = (f"\n  gate {each.name}: {each.before} → {each.after}" for each in report.gate_turns)
    turned = "".join(turns).replace("no_data", "no data")
    return _table(["gold changed", "", "case before", "case now"], rows) + more + turned if rows else ""


def _flips(report: Report) -> str:
    """How many cases flipped; the broken ones stand in the table of failures, the mended ones here."""
    fixed = [one_line(flip.qid, 40) for flip in baseline_view.fixed(report)]
    cut = len(fixed) - _SHOWN
    named = ", ".join([*fixed[:_SHOWN], *([f"and {cut} more"] if cut > 0 else [])])
    ends = f": {named}." if fixed else "."
    return f"{baseline_view.flipped(report)}{ends}" if report.baseline else ""


def _effects(report: Report) -> str:
    rows = [[one_line(each.name), *baseline_view.parts(each)] for each in baseline_view.effects(report)]
    return _table(["moved", "by the system", "by the gold"], rows) if rows else ""


def _worst(report: Report) -> str:
    rows = [
        [one.metric, one_line(one.slice, 60), one.value, one.cases + (FEW if one.few else ""), one.whole]
        for one in baseline_view.worst(report)
    ]
    few = f"\n  {FEW} fewer than {report.min_n} cases" if any(one.few for one in baseline_view.worst(report)) else ""
    return _table(["metric", "worst slice", "value", "cases", "all cases"], rows) + few if rows else ""


def _slices(report: Report) -> str:
    if not report.slices:
        return ""
    blocks = changes.every(report, PLAIN)
    parts = [_table([*one.headers], [[*row] for row in one.rows]) if isinstance(one, Table) else one for one in blocks]
    return "\n\n".join(f"  {one.text}" if isinstance(one, Paragraph) else str(one) for one in parts)


def _failures(report: Report) -> str:
    failing = phrases.failing(report)
    if not failing:
        return ""
    columns = _columns(report)
    shown = _table([name for name, _ in columns], [[cell(one) for _, cell in columns] for one in failing[:_SHOWN]])
    cut = len(failing) - _SHOWN
    more = f"\n… and {cut} more; --format json has all." if cut > 0 else ""
    used = sorted({question.label for question in failing}, key=list(MEANING).index)
    return f"{shown}{more}\n" + "\n".join(f"  {label}: {MEANING[label]}" for label in used)


def _columns(report: Report) -> list[tuple[str, Callable[[Question], str]]]:
    """The table of failures by column: the run where there are several, what was before where there is a baseline."""
    before = {(flip.qid, flip.run): flip.before for flip in report.flips}
    run = ("run", lambda one: one_line(one.run or "", 20))
    was = ("before", lambda one: one_line(before.get((one.qid, one.run), "–")))
    return [
        ("question", lambda one: one_line(one.qid, 40)),
        *([run] if phrases.several(report) else []),
        *([was] if report.baseline else []),
        ("label", lambda one: one.label),
        ("text", lambda one: one_line(one.question, 60)),
    ]


def _diagnosis(report: Report) -> str:
    return "\n".join(f"- {cause.cause} ({cause.evidence}) {cause.next}" for cause in report.diagnosis)


def _metrics(report: Report) -> str:
    parts = [part for one in sections.perspectives(report) for part in _section(report, one)]
    return "\n\n".join(part for part in (*parts, sections.without_cases(report)) if part)


def _section(report: Report, perspective: str) -> list[str]:
    title = f"{perspective.capitalize()}: {PERSPECTIVES.get(perspective, '')}"
    first, *others = (_table(*each) for each in sections.tables(report, perspective))
    return [f"{title}\n{first}", *others]


def _table(headers: list[str], rows: list[list[str]]) -> str:
    return tabulate(rows, headers, tablefmt="simple", disable_numparse=True)
