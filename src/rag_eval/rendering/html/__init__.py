"""The report as one HTML file: plots, and a table of the questions to search and sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.common.escaping import one_line
from rag_eval.metrics import PERSPECTIVES
from rag_eval.rendering import cases, changes, gates_table, metrics_tables, notes, phrases
from rag_eval.rendering.blocks import Table
from rag_eval.rendering.html import plots, questions
from rag_eval.rendering.html.element import (
    FORMATTER,
    Markup,
    folded,
    headed,
    inline,
    joined,
    laid,
    page,
    section,
    shown,
    sign,
    table,
    tag,
)

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
    cases_table, rows = questions.questions(report, details or {})
    flips = laid(changes.changed(report, FORMATTER, "the table of questions"))
    input_notes = headed(notes.NOTES, laid(notes.notes(report, FORMATTER, _ALL)))
    parts = {
        "findings": (notes.FINDINGS, laid(notes.findings(report, FORMATTER, _ALL))),
        "diagnosis": (notes.DIAGNOSIS, laid(notes.diagnosis(report, FORMATTER))),
        "failing": ("What fails", laid(cases.first_failing(report, FORMATTER))),
        "gates": (
            "Gates",
            joined([*plots.gates(report), laid(gates_table.gates(report, FORMATTER, failed_first=True))]),
        ),
        "changed": ("What changed", joined([flips, *plots.since(report), laid(changes.effects(report, FORMATTER))])),
        "policy": (notes.POLICY, laid(notes.policy(report, FORMATTER, _ALL))),
        "gold": ("Changes of the gold", laid(notes.gold(report, FORMATTER, _ALL))),
        "completeness": ("Completeness", joined([tag("p", phrases.completeness(report)), input_notes])),
        "slices": ("Slices", _slices(report)),
        "metrics": ("All metrics", _metrics(report)),
        "questions": (f"Questions ({len(report.questions):,})", cases_table),
        "provenance": ("Provenance", joined([laid(notes.provenance(report, FORMATTER)), _contracts(report)])),
    }
    sections = [(key, title, section(key, title, body)) for key, (title, body) in parts.items()]
    whole = page(f"{phrases.title(report)}: {_system(report)}", shown(report.version), _header(report), sections)
    return whole.replace(questions.ROWS, rows)


def summary(report: Report) -> str:
    """Return the verdict and the table of the gates, for a notebook."""
    verdict = tag("p", tag("strong", sign(report.verdict), " ", inline(phrases.headline(report, FORMATTER))))
    return str(joined([verdict, laid([gates_table.table(report, FORMATTER, failed_first=True)])]))


def _system(report: Report) -> str:
    """Return the subject of the report: repository and commit if they are known, otherwise the file of the traces."""
    commit = _commit(report)
    trace = next((item.path for item in report.inputs if item.role == "trace"), "")
    named = " at ".join(filter(None, [report.ci.repository if report.ci else "", commit]))
    return one_line(named or trace.rpartition("/")[2] or report.gates_file or "traces", 90)


def _commit(report: Report) -> str:
    """Return the commit of the system as run.json names it, otherwise as the CI run does."""
    return (str((report.run or {}).get("system_commit") or "") or (report.ci.commit if report.ci else ""))[:_COMMIT]


def _facts(report: Report) -> Markup:
    """Return the scored files: repository, commit, models, gold with its size, gates and baseline, as far as known."""
    run, ci, paths = report.run or {}, report.ci, {item.role: item.path for item in report.inputs}
    models = run.get("models") or {}
    dates = (run[name] for name in ("date", "started_at", "created_at") if isinstance(run.get(name), str))
    gold = f"{paths.get('gold', 'in memory')}, {phrases.cases(report)}"
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
    rows = [
        tag("div", tag("dt", name), tag("dd", tag("bdi", one_line(fact, 200)))) for name, fact in facts.items() if fact
    ]
    return tag("dl", joined(rows), class_="facts") if rows else Markup("")


def _header(report: Report) -> Markup:
    kind = "inconclusive" if phrases.in_part(report) else report.verdict
    head = tag("h1", sign(kind), " ", phrases.title(report))
    verdict = tag("p", inline(phrases.headline(report, FORMATTER)), class_="verdict")
    return tag(
        "div",
        joined([head, verdict, laid(notes.authority(report, FORMATTER)), _tiles(report), _facts(report)]),
        class_=f"head {kind}",
    )


def _tiles(report: Report) -> Markup:
    """Count the gates by outcome; completeness has its own section and counts."""
    counts = dict.fromkeys(("failed", "warning", "inconclusive", "no_data", "passed"), 0)
    for gate in phrases.counted_gates(report):
        counts[gates_table.kind(gate)] += 1
    words = {"warning": "warning only", **phrases.OUTCOMES}
    tiles = [
        tag("li", sign(kind), tag("strong", str(count)), f" {words[kind]}", class_=f"tile {kind}")
        for kind, count in counts.items()
        if count
    ]
    return tag("ul", joined([tag("li", "Gates"), *tiles]), class_="tiles", aria_label="Gates by outcome")


def _slices(report: Report) -> Markup:
    if not report.slices:
        return Markup("")
    every = laid(changes.slices(report, FORMATTER, _SLICES))
    few = len(report.slices) <= _UNFOLDED
    table = folded(f"All slices ({len(report.slices):,})", every, unfolded=few)
    talks = laid(cases.conversations(report, FORMATTER))
    return joined([laid(changes.worst(report, FORMATTER)), talks, *plots.heat(report), *plots.slices(report), table])


def _metrics(report: Report) -> Markup:
    """Show every metric that has a value, folded by metric group, and the fields that the others need."""
    parts = []
    for name in metrics_tables.perspectives(report):
        title, tables = shown(name.capitalize()), []
        for headers, rows in metrics_tables.tables(report, name):
            titles = [header[:1].upper() + header[1:] for header in headers]
            named = [[FORMATTER.named(metric, ""), *cells] for metric, *cells in rows]
            tables.append(table(Table(f"Metrics: {title}", titles, named)))
        parts.append(folded(title, tag("p", PERSPECTIVES.get(name, ""), class_="asks"), *tables))
    missing = metrics_tables.without_cases(report)
    return joined([*parts, tag("p", shown(missing)) if missing else Markup("")])


def _contracts(report: Report) -> Markup:
    """Show the fingerprint of each metric: only values with the same one are comparable."""
    if not report.contracts:
        return Markup("")
    rows = [[FORMATTER.named(name, ""), FORMATTER.code(digest)] for name, digest in report.contracts.items()]
    note = tag("p", inline("Two values are comparable only if both have the same metric fingerprint."))
    return folded(
        f"Metric fingerprints ({len(rows)})", note, table(Table("Metric fingerprints", ["Metric", "sha256"], rows))
    )
