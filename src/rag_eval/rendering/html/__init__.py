"""The report as one HTML file, to be opened anywhere: plots, and a table of the questions to search and sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.common.escaping import one_line
from rag_eval.rendering import cases, changes, gates_table, notes, phrases, provenance, pull_request
from rag_eval.rendering.html import metrics, plots, questions
from rag_eval.rendering.html.element import FORMATTER, Markup, inline, joined, shown, sign, tag
from rag_eval.rendering.html.layout import folded, headed, laid, section
from rag_eval.rendering.html.shell import page

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report

_ALL = 1_000_000_000
_COMMIT = 12
_SLICES = 1_000
_UNFOLDED = 12
"""Slices of which the table need not be opened."""


def render(report: Report) -> str:
    """The whole report: nothing of it is cut but single strings of more than a thousand characters."""
    several = f"Questions ({len(report.questions):,})"
    parts = {
        "findings": (pull_request.FINDINGS, laid(pull_request.findings(report, FORMATTER, _ALL))),
        "diagnosis": (notes.DIAGNOSIS, laid(notes.diagnosis(report, FORMATTER))),
        "changed": ("What fails" if report.baseline is None else "What changed", _changed(report)),
        "gates": ("Gates", joined([*plots.gates(report), laid(gates_table.gates(report, FORMATTER))])),
        "policy": (pull_request.POLICY, laid(pull_request.policy(report, FORMATTER, _ALL))),
        "gold": ("Changes of the gold", laid(pull_request.gold(report, FORMATTER, _ALL))),
        "completeness": ("Completeness", _completeness(report)),
        "slices": ("Slices", _slices(report)),
        "metrics": ("All metrics", metrics.metrics(report)),
        "questions": (several, questions.questions(report)),
        "provenance": ("Provenance", _provenance(report)),
    }
    sections = [(key, title, section(key, title, body)) for key, (title, body) in parts.items()]
    return page(f"{phrases.title(report)}: {_system(report)}", shown(report.version), _header(report), sections)


def summary(report: Report) -> str:
    """Return the verdict and the table of the gates, for a notebook."""
    verdict = tag("p", tag("strong", sign(report.verdict), " ", inline(phrases.headline(report, FORMATTER))))
    return str(joined([verdict, laid([gates_table.table(report, FORMATTER)])]))


def _system(report: Report) -> str:
    """Return what the report is about: the commit of the system if it is known, otherwise the file of its traces."""
    commit = str((report.run or {}).get("system_commit") or "")
    trace = next((one.path for one in report.inputs if one.role == "trace"), "")
    return one_line(commit[:_COMMIT] or trace.rpartition("/")[2] or report.gates_file or "traces", 60)


def _facts(report: Report) -> Markup:
    """Return what was scored: commit, models, gold with its size, gates and baseline, as far as they are known."""
    run, paths = report.run or {}, {one.role: one.path for one in report.inputs}
    models = ", ".join(f"{role} {name}" for role, name in (run.get("models") or {}).items())
    facts = {
        "Commit": str(run.get("system_commit") or "")[:_COMMIT],
        "Models": models,
        "Traces": paths.get("trace", ""),
        "Gold": f"{paths['gold']}, {phrases.cases(report)}" if "gold" in paths else "",
        "Gates": report.gates_file,
        "Baseline": report.baseline.path if report.baseline else "",
    }
    rows = [tag("li", f"{name}: ", tag("bdi", one_line(fact, 200))) for name, fact in facts.items() if fact]
    return tag("ul", joined(rows), class_="facts", aria_label="What was scored") if rows else Markup("")


def _header(report: Report) -> Markup:
    kind = "inconclusive" if phrases.in_part(report) else report.verdict
    head = tag("h1", sign(kind), " ", phrases.title(report))
    said = tag("p", inline(phrases.headline(report, FORMATTER)), class_="verdict")
    return tag(
        "div",
        joined([head, said, laid(pull_request.authority(report, FORMATTER)), _tiles(report), _facts(report)]),
        class_=f"head {kind}",
    )


def _tiles(report: Report) -> Markup:
    """Count the gates by outcome; completeness has a section and counts of its own."""
    counts = dict.fromkeys(("failed", "warning", "inconclusive", "no_data", "passed"), 0)
    for gate in phrases.counted_gates(report):
        counts[gates_table.kind(gate)] += 1
    tiles = [_tile(kind, count) for kind, count in counts.items() if count]
    return tag("ul", joined([tag("li", "Gates"), *tiles]), class_="tiles", aria_label="Gates by outcome")


def _tile(kind: str, count: int) -> Markup:
    word = {"warning": "warning only", **phrases.OUTCOMES}[kind]
    return tag("li", sign(kind), tag("strong", str(count)), f" {word}", class_=f"tile {kind}")


def _changed(report: Report) -> Markup:
    """What flipped; without a baseline, the first failing questions. The table of questions has all."""
    if report.baseline is None:
        return laid(cases.first_failing(report, FORMATTER))
    said = laid(changes.changed(report, FORMATTER, "the table of questions"))
    return joined([said, *plots.since(report), laid(changes.effects(report, FORMATTER))])


def _completeness(report: Report) -> Markup:
    return joined(
        [tag("p", phrases.completeness(report)), headed(notes.NOTES, laid(notes.notes(report, FORMATTER, _ALL)))]
    )


def _slices(report: Report) -> Markup:
    if not report.slices:
        return Markup("")
    every = laid(changes.slices(report, FORMATTER, _SLICES))
    few = len(report.slices) <= _UNFOLDED
    table = folded(f"All slices ({len(report.slices):,})", every, unfolded=few)
    talks = laid(cases.conversations(report, FORMATTER))
    return joined([laid(changes.worst(report, FORMATTER)), talks, *plots.heat(report), *plots.slices(report), table])


def _provenance(report: Report) -> Markup:
    return joined([laid(provenance.provenance(report, FORMATTER)), metrics.contracts(report)])
