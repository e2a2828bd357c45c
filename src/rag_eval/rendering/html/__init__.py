"""The report as one HTML file: verdict, plots, all tables, and the questions to search and sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.common.escaping import one_line
from rag_eval.rendering import cases, gates_table, metrics_tables, summary
from rag_eval.rendering.document import Paragraph, Table, paragraphs
from rag_eval.rendering.html import plots, questions
from rag_eval.rendering.html.element import FORMATTER, Markup, folded, inline, join, page, sign, tag, visible
from rag_eval.rendering.html.element import write_blocks as write
from rag_eval.rendering.number_format import is_completeness

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering import Details

_ALL = 1_000_000_000
_COMMIT = 12
_SLICES = 1_000
_UNFOLDED = 12
"""Slices of which the table need not be opened."""


def render(report: Report, details: Details | None = None) -> str:
    """Return the whole report; only single strings of more than a thousand characters are cut.

    With ``details`` each question unfolds to its answer and evidence.
    """
    table, rows = questions.questions(report, details or {})
    gates = write(gates_table.gates(report, FORMATTER, failed_first=True))
    flips = write(cases.flips(report, FORMATTER, "the table of questions"))
    notes = write(summary.notes(report, FORMATTER, _ALL))
    completeness = [tag("p", summary.completeness(report)), *([tag("h3", summary.NOTES), notes] if notes else [])]
    parts = {
        "findings": (summary.FINDINGS, write(summary.findings(report, FORMATTER, _ALL))),
        "diagnosis": (summary.DIAGNOSIS, write(summary.diagnosis(report, FORMATTER))),
        "failing": ("What fails", write(cases.first_failing(report, FORMATTER))),
        "gates": ("Gates", join([*plots.gates(report), gates])),
        "changed": ("What changed", join([flips, *plots.since(report), write(cases.effects(report, FORMATTER))])),
        "policy": (summary.POLICY, write(summary.policy(report, FORMATTER, _ALL))),
        "gold": ("Changes of the gold", write(summary.gold(report, FORMATTER, _ALL))),
        "completeness": ("Completeness", join(completeness)),
        "slices": ("Slices", _slices(report)),
        "metrics": ("All metrics", _metrics(report)),
        "questions": (f"Questions ({len(report.questions):,})", table),
        "provenance": ("Provenance", _provenance(report)),
    }
    whole = page(f"{summary.title(report)}: {_system(report)}", visible(report.version), _header(report), parts)
    return whole.replace(questions.ROWS, rows)


def verdict_and_gates(report: Report) -> str:
    """Return the verdict and the table of the gates, for a notebook."""
    verdict = tag("p", tag("strong", sign(report.verdict), " ", inline(summary.headline(report, FORMATTER))))
    return str(join([verdict, write([gates_table.table(report, FORMATTER, failed_first=True)])]))


def _system(report: Report) -> str:
    """Return the subject of the report: repository and commit if they are known, otherwise the file of the traces."""
    trace = next((item.path for item in report.inputs if item.role == "trace"), "")
    named = " at ".join(filter(None, [report.ci.repository if report.ci else "", _commit(report)]))
    return one_line(named or trace.rpartition("/")[2] or report.gates_file or "traces", 90)


def _commit(report: Report) -> str:
    """Return the commit of the system as run.json names it, otherwise as the CI run does."""
    return (str((report.run or {}).get("system_commit") or "") or (report.ci.commit if report.ci else ""))[:_COMMIT]


def _header(report: Report) -> Markup:
    kind = "inconclusive" if summary.passed_in_part(report) else report.verdict
    counts = dict.fromkeys(("failed", "warning", "inconclusive", "no_data", "passed"), 0)
    for gate in report.gates:
        if not is_completeness(gate):  # it has its own section and counts
            counts[gates_table.kind(gate)] += 1
    words = {"warning": "warning only", **gates_table.OUTCOMES}
    tiles = [
        tag("li", sign(outcome), tag("strong", str(count)), f" {words[outcome]}", class_=f"tile {outcome}")
        for outcome, count in counts.items()
        if count
    ]
    head = [
        tag("h1", sign(kind), " ", summary.title(report)),
        tag("p", inline(summary.headline(report, FORMATTER)), class_="verdict"),
        write(summary.authority(report, FORMATTER)),
        tag("ul", join([tag("li", "Gates"), *tiles]), class_="tiles", aria_label="Gates by outcome"),
        _facts(report),
    ]
    return tag("div", join(head), class_=f"head {kind}")


def _facts(report: Report) -> Markup:
    """Return the scored files: repository, commit, models, gold with its size, gates and baseline, as far as known."""
    run, ci, paths = report.run or {}, report.ci, {item.role: item.path for item in report.inputs}
    models = run.get("models")
    dates = (run[name] for name in ("date", "started_at", "created_at") if isinstance(run.get(name), str))
    gold = f"{paths.get('gold', 'in memory')}, {cases.count_cases(report)}"
    known = report.baseline
    baseline = (known.path, known.ref, known.commit[:_COMMIT]) if known else ("none",)
    facts = {
        "Repository": ci.repository if ci else "",
        "Branch": ci.branch if ci else "",
        "Commit": _commit(report),
        "Pull request": f"#{ci.pull_request}" if ci and ci.pull_request else "",
        "Run": f"#{ci.run}" if ci and ci.run else "",
        "Date": next(dates, ""),
        "Model": ", ".join(f"{role} {name}" for role, name in models.items()) if isinstance(models, dict) else "",
        "Gold set": gold if report.questions else "",
        "Baseline": " at ".join(filter(None, baseline)),
        "Traces": paths.get("trace", ""),
        "Gates": report.gates_file,
    }
    rows = (
        tag("div", tag("dt", name), tag("dd", tag("bdi", one_line(text, 200)))) for name, text in facts.items() if text
    )
    return tag("dl", join(rows), class_="facts")


def _slices(report: Report) -> Markup:
    if not report.slices:
        return Markup("")
    every = write(metrics_tables.gated_by_slice(report, FORMATTER, _SLICES))
    table = folded(f"All slices ({len(report.slices):,})", every, unfolded=len(report.slices) <= _UNFOLDED)
    worst = write([*metrics_tables.worst_slices(report, FORMATTER), *cases.conversations(report, FORMATTER)])
    return join([worst, *plots.heat(report), *plots.slices(report), table])


def _metrics(report: Report) -> Markup:
    """Show every metric that has a value, folded by metric group, and the fields that the others need."""
    groups = [
        folded(visible(group.title), tag("p", group.about, class_="hint"), write(group.tables))
        for group in metrics_tables.by_group(report, FORMATTER)
    ]
    return join([*groups, write(paragraphs(visible(metrics_tables.without_cases(report))))])


def _provenance(report: Report) -> Markup:
    """Show what was read, and the fingerprint of each metric."""
    inputs = write(summary.provenance(report, FORMATTER))
    if not report.contracts:
        return inputs
    rows = [[FORMATTER.named(name, ""), FORMATTER.code(digest)] for name, digest in report.contracts.items()]
    note = Paragraph("Two values are comparable only if both have the same metric fingerprint.")
    table = Table("Metric fingerprints", ["Metric", "sha256"], rows)
    return join([inputs, folded(f"Metric fingerprints ({len(rows)})", write([note, table]))])
