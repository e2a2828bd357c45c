"""GitHub's Markdown: the writer of all pages, and the report for the pull request comment and the job summary."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from rag_eval.analysis import Report
from rag_eval.common.escaping import markdown as safe
from rag_eval.common.escaping import one_line, prose, quantity, untabled
from rag_eval.errors import InputError
from rag_eval.rendering import gates_table, results, summary
from rag_eval.rendering.document import Block, Paragraph, Section, Table, TextFormatter

_Size = Callable[[str], int]
_SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "🟡", "no_data": "⬜", "warning": "⚠️"}
_SIGNS |= {"error": "❌", "looser": "🔓", "stricter": "🔒", "neutral": "➖"}
_SLICE, _NAME, _SENTENCE = 60, 200, 1_000
_METRIC, _CUTOFF = re.compile("[A-Za-z][A-Za-z0-9_.]*(@[a-z]{0,4}[0-9]+)?"), re.compile("(?<=[a-z])@(?=[0-9k]|fpr)")
_PADDING = 2  # of a header
_RANGE, _NUMBER = re.compile("–(?=[0-9])"), re.compile(" (?![(])")
_HEADING = re.compile("(?m)^## .*$")
_QUESTIONS, _PROBLEMS = 200, 20
_UNJUDGED = "## 🚫 Cannot be judged"
_CUT = "Metrics, questions and provenance do not fit here; report.json has all."
_NO_SLICES = "Every metric by slice did not fit here; report.html and report.json have it."


def write_page(sections: Iterable[Section]) -> str:
    """Return the text of sections, the first one with the title of the page."""
    parts: list[str] = []
    for level, section in enumerate(sections):
        parts += [f"{'###' if level else '##'} {section.title}" if section.title else "", write_blocks(section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_blocks(blocks: Iterable[Block]) -> str:
    """Return the blocks with an empty line between them."""
    texts = []
    for block in blocks:
        if isinstance(block, Table):
            texts.append(table(block.headers, block.rows))
        elif isinstance(block, Paragraph):
            texts.append(untabled(block.text))
        else:
            lines = []
            for item in block.items:
                lines += [f"- {item.text}", *(f"  - {below}" for below in item.below)]
            texts.append(untabled("\n".join(lines)))
    return "\n\n".join(texts)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as tabulate's ``github`` writes it, its empty cells as a dash.

    Tabulate is not used: importing it takes longer than scoring a small run, and its padding changes if a package for
    wide characters is installed. A test compares both.
    """
    filled = [[(cell or "–").strip() for cell in row] for row in rows]
    widths = [max([len(head) + _PADDING, *map(len, cells)]) for head, *cells in zip(headers, *filled, strict=True)]
    rule = "|".join("-" * (width + 2) for width in widths)
    first, *others = (
        f"| {' | '.join([cell.ljust(width) for cell, width in zip(cells, widths, strict=True)])} |"
        for cells in (headers, *filled)
    )
    return "\n".join([first, f"|{rule}|", *others])


def folded(title: str, body: str) -> str:
    """Wrap content that opens on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _titled(title: str, blocks: Sequence[Block]) -> str:
    return f"**{title}**\n\n{write_blocks(blocks)}" if blocks else ""


def _metric_name(metric: str, part: str) -> str:
    """Return a metric's name as code, with its slice; in code ``@`` is no mention, and the name can be copied."""
    code = f"`{metric}`" if _METRIC.fullmatch(metric) else safe(metric)
    return f"{code} where {safe(part, _SLICE)}" if part else code


def _escaped(text: str) -> str:
    """Escape sentences of this program, without code in them: names of metrics contain underscores and ``@``.

    A report may come from elsewhere: a sentence that cannot be one of this program becomes code.
    """
    if _is_prose(text):
        return _without_markup(text)
    sentences = re.split(r"(?<=\.) ", one_line(text, _SENTENCE))
    if len(sentences) == 1:
        return safe(text, _SENTENCE)
    return " ".join([_without_markup(one) if _is_prose(one) else safe(one, _SENTENCE) for one in sentences])


def _is_prose(text: str) -> bool:
    plain = _CUTOFF.sub("", text)
    return prose(plain, _SENTENCE) == plain.replace("_", "\\_")


def _without_markup(text: str) -> str:
    return text.replace("_", "\\_").replace("@", "@\u200b")


FORMATTER = TextFormatter(
    named=_metric_name,
    words=lambda text, limit=_NAME: prose(text, limit),
    code=lambda text, limit=_NAME: safe(text, limit),
    text=lambda text, limit=_NAME: safe(text, limit),
    trusted=_escaped,
    strong=lambda text: f"**{text}**",
    figure=lambda text: _RANGE.sub("–\u2060", _NUMBER.sub("\u00a0", text)),  # breaks only before brackets
    sign=_SIGNS.__getitem__,
)


def render(report: Report) -> str:
    """Return the whole report; failing questions first, at most two hundred questions."""
    return _render(report, write_blocks(gates_table.gates(report, FORMATTER)), _QUESTIONS)


def within(report: Report, limit: int, size: _Size) -> str:
    """Return the report in at most ``limit`` units of ``size``. Verdict and failed gates always stay.

    Metrics by slice are left out first, then questions, then folded parts, then details.
    """
    gates = write_blocks(gates_table.gates(report, FORMATTER))  # with thousands of slices a table is slow
    if size(text := _render(report, gates, _QUESTIONS)) <= limit:
        return text
    for questions in (_QUESTIONS, 100, 50, 20, 0):
        text = _render(report, gates, questions, by_slice=False)
        if size(text) <= limit:
            return text
    # The verdict, and as many failed gates, findings and loosened gates as fit; the others are counted.
    broken = gates_table.by_severity(gate for gate in report.gates if gate.broken)
    reasons = [(gate.blocks, f"\n- {gates_table.reason(report, gate, FORMATTER)}") for gate in broken]
    lines = [reason for blocks, reason in reasons if blocks]
    findings = dict.fromkeys([*summary.shown_findings(report), *report.errors])
    lines += [f"\n- `{finding.code}` {safe(finding.message)}" for finding in findings]
    lines += [f"\n- looser: {safe(change.key)}" for change in report.policy_changes if change.kind == "looser"]
    lines += [reason for blocks, reason in reasons if not blocks]
    lines = [untabled(line) for line in lines]
    text, room = _head(report) + "\n", len(f"\n- … and {len(lines)} more\n".encode())
    shown = 0
    while shown < len(lines) and size(text + lines[shown]) + room <= limit:
        text += lines[shown]
        shown += 1
    text += f"\n- … and {len(lines) - shown} more\n" if shown < len(lines) else "\n"
    return text if size(text) <= limit else ""


def warned_within(report: Report, limit: int, size: _Size) -> str:
    """Return the report below a line that explains why its step fails: warnings were forbidden."""
    why = untabled(summary.warned(report, FORMATTER))
    line = f"{_SIGNS['failed']} **The step fails** because `fail-on` is `warning`: {why}.\n\n"
    return line + within(report, limit - size(line), size) if size(line) <= limit else within(report, limit, size)


def _render(report: Report, gates: str, questions: int, *, by_slice: bool = True) -> str:
    """Return the report, without details if it has no ``questions``."""
    whole = questions > 0
    parts = [
        _head(report),
        write_blocks(summary.authority(report, FORMATTER)),
        gates,
        _titled(summary.FINDINGS, summary.findings(report, FORMATTER)),
        write_blocks(results.failing(report, FORMATTER, brief=not whole)),
        _titled(summary.DIAGNOSIS, summary.diagnosis(report, FORMATTER)),
        _titled(summary.POLICY, summary.policy(report, FORMATTER)),
        write_blocks((summary.gold if whole else summary.gold_counts)(report, FORMATTER)),
        write_blocks(results.effects(report, FORMATTER)) if whole else "",
        f"**Completeness.** {summary.completeness(report)}",
        _titled(summary.NOTES, summary.notes(report, FORMATTER)),
        write_blocks(results.worst_slices(report, FORMATTER)) if whole else "",
    ]
    parts += _folded_parts(report, questions, by_slice=by_slice) if whole else [_CUT]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(report: Report) -> str:
    sign = _SIGNS["inconclusive" if summary.passed_in_part(report) else report.verdict]
    return f"## {sign} {summary.title(report)}\n\n{untabled(summary.headline(report, FORMATTER))}"


def _folded_parts(report: Report, questions: int, *, by_slice: bool) -> list[str]:
    metrics = []
    for group in results.by_group(report, FORMATTER):
        metrics += [f"**{prose(group.title)}**: {_escaped(group.about)}", write_blocks(group.tables)]
    metrics += [_escaped(text)] if (text := results.without_cases(report)) else []
    parts = [folded("All metrics", "\n\n".join(metrics))]
    parts.append(write_blocks(results.conversations(report, FORMATTER)))
    if report.slices:
        every = write_blocks(results.all_by_slice(report, FORMATTER)) if by_slice else ""
        parts.append(folded(f"Every metric by slice ({len(report.slices)})", every) if by_slice else _NO_SLICES)
    shown = write_blocks(results.questions(report, FORMATTER, questions))
    parts.append(folded(f"Questions ({len(report.questions)})", shown))
    return [*parts, folded("Provenance", write_blocks(summary.provenance(report, FORMATTER)))]


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
    return _HEADING.sub(lambda heading: heading[0] + _suffix(name), text, count=1)


def named_within(name: str, within: Callable[[int, _Size], str], limit: int, size: _Size) -> str:
    """Return the text of ``within`` in at most ``limit`` units of ``size``, with the name in its heading."""
    return named(within(limit - size(_suffix(name)), size), name)


def _suffix(name: str) -> str:
    return f" · {untabled(safe(name, 100))}" if name else ""
