"""The report as Markdown, for the pull request comment and the job summary."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_eval.common.escaping import markdown as safe
from rag_eval.common.escaping import prose, quantity, untabled
from rag_eval.metrics import PERSPECTIVES
from rag_eval.rendering import cases, changes, gates_table, metrics_tables, notes, phrases
from rag_eval.rendering.markdown_writer import FORMATTER, SIGNS, escaped, folded, glued, laid, name, table, titled

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.errors import InputError

    _Size = Callable[[str], int]

_QUESTIONS = 200
_PROBLEMS = 20
_UNJUDGED = "## 🚫 Cannot be judged"
_HEADING = re.compile("(?m)^## .*$")
_CUT = "Metrics, questions and provenance do not fit here; report.json has all."
_NO_SLICES = "Every metric by slice did not fit here; report.html and report.json have it."


def render(report: Report) -> str:
    """Return the whole report; failing questions first, at most two hundred questions."""
    return _render(report, laid(gates_table.gates(report, FORMATTER)), _QUESTIONS, whole=True)


def within(report: Report, limit: int, size: _Size) -> str:
    """Return the report in at most ``limit`` units of ``size``. Verdict and failed gates always stay.

    Metrics by slice are left out first, then questions, then folded parts, then details.
    """
    gates = laid(gates_table.gates(report, FORMATTER))  # with thousands of slices a table is slow
    if size(text := _render(report, gates, _QUESTIONS, whole=True)) <= limit:
        return text
    options = [(questions, True) for questions in (_QUESTIONS, 100, 50, 20)]
    for questions, whole in [*options, (0, False)]:
        text = _render(report, gates, questions, whole=whole, every=False)
        if size(text) <= limit:
            return text
    return _least(report, limit, size)


def warned_within(report: Report, limit: int, size: _Size) -> str:
    """Return the report below a line that explains why its step fails: warnings were forbidden."""
    why = untabled(phrases.warned(report, FORMATTER))
    line = f"{SIGNS['failed']} **The step fails** because `fail-on` is `warning`: {why}.\n\n"
    return line + within(report, limit - size(line), size) if size(line) <= limit else within(report, limit, size)


def unjudged(reason: str) -> str:
    """Explain why nothing could be judged, in a sentence of this program."""
    return f"{_UNJUDGED}\n\n{reason}\n"


def problems_within(error: InputError, limit: int, size: _Size) -> str:
    """Explain why a run cannot be judged, in at most ``limit`` units of ``size``."""
    total = len(error.problems) + error.more
    head = f"{_UNJUDGED}: {quantity(total, 'problem')} in the input\n\n"
    for shown in (_PROBLEMS, 5, 0):
        lines = [untabled(f"- {safe(str(problem), 300)}\n") for problem in error.problems[:shown]]
        more = f"\n{total - len(lines)} more are not shown; the log has them.\n" if total > len(lines) else ""
        text = head + "".join(lines) + more
        if size(text) <= limit:
            return text
    return head if size(head) <= limit else ""


def reason_within(reason: str, limit: int, size: _Size) -> str:
    """Explain why nothing could be judged, in at most ``limit`` units of ``size``."""
    head = f"{_UNJUDGED}\n"
    text = f"{head}\n{untabled(safe(reason, 1_000))}\n"
    return next((candidate for candidate in (text, head) if size(candidate) <= limit), "")


def named(text: str, name: str) -> str:
    """Return the text with ``name`` in its heading, which distinguishes several in one pull request."""
    return _HEADING.sub(lambda heading: heading[0] + _name(name), text, count=1)


def named_within(name: str, within: Callable[[int, _Size], str], limit: int, size: _Size) -> str:
    """Return the text of ``within`` in at most ``limit`` units of ``size``, with the name in its heading."""
    return named(within(limit - size(_name(name)), size), name)


def _name(name: str) -> str:
    return f" · {untabled(safe(name, 100))}" if name else ""


def _render(report: Report, gates: str, questions: int, *, whole: bool, every: bool = True) -> str:
    if report.baseline is not None:
        changed = (changes.changed if whole else changes.headed)(report, FORMATTER)
    else:
        changed = cases.first_failing(report, FORMATTER) if whole else []
    parts = [
        _head(report),
        laid(notes.authority(report, FORMATTER)),
        gates,
        titled(notes.FINDINGS, notes.findings(report, FORMATTER)),
        laid(changed),
        titled(notes.POLICY, notes.policy(report, FORMATTER)),
        laid((notes.gold if whole else notes.counted)(report, FORMATTER)),
        laid(changes.effects(report, FORMATTER)) if whole else "",
        f"**Completeness.** {phrases.completeness(report)}",
        titled(notes.NOTES, notes.notes(report, FORMATTER)),
        laid(changes.worst(report, FORMATTER)) if whole else "",
        titled(notes.DIAGNOSIS, notes.diagnosis(report, FORMATTER)),
    ]
    parts += _folds(report, questions, every=every) if whole else [_CUT]
    return "\n\n".join(part for part in parts if part) + "\n"


def _folds(report: Report, questions: int, *, every: bool) -> list[str]:
    slices = folded(f"Slices ({len(report.slices)})", laid(changes.slices(report, FORMATTER))) if report.slices else ""
    by_slice = _NO_SLICES
    if every:
        by_slice = folded("Every metric by slice", laid(changes.every(report, FORMATTER)))
    return [
        folded("All metrics", _metrics(report)),
        slices,
        laid(cases.conversations(report, FORMATTER)),
        by_slice if report.slices else "",
        folded(f"Questions ({len(report.questions)})", laid(cases.questions(report, FORMATTER, questions))),
        folded("Provenance", laid(notes.provenance(report, FORMATTER))),
    ]


def _least(report: Report, limit: int, size: _Size) -> str:
    """Return verdict, failed gates and errors, as many as fit; the others are counted."""
    broken = phrases.gravest(gate for gate in report.gates if gate.broken)
    lines = [f"\n- {phrases.reason(report, gate, FORMATTER)}" for gate in broken]
    lines += [f"\n- `{finding.code}` {safe(finding.message)}" for finding in report.errors]
    lines = [untabled(line) for line in lines]
    text, room = _head(report) + "\n", len(f"\n- … and {len(lines)} more\n".encode())
    shown = 0
    while shown < len(lines) and size(text + lines[shown]) + room <= limit:
        text += lines[shown]
        shown += 1
    text += f"\n- … and {len(lines) - shown} more\n" if shown < len(lines) else "\n"
    return text if size(text) <= limit else ""


def _head(report: Report) -> str:
    sign = SIGNS["inconclusive" if phrases.in_part(report) else report.verdict]
    return f"## {sign} {phrases.title(report)}\n\n{untabled(phrases.headline(report, FORMATTER))}"


def _metrics(report: Report) -> str:
    """Return all metrics, a section for each metric group; those with a cutoff are in their own table."""
    parts = []
    for perspective in metrics_tables.perspectives(report):
        parts.append(f"**{prose(perspective.capitalize())}**: {escaped(PERSPECTIVES.get(perspective, ''))}")
        for headers, rows in metrics_tables.tables(report, perspective):
            titles = [escaped(header[:1].upper() + header[1:]) for header in headers]
            parts.append(table(titles, ([name(metric), *map(glued, cells)] for metric, *cells in rows)))
    return "\n\n".join(part for part in (*parts, escaped(metrics_tables.without_cases(report))) if part)
