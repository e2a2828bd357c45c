"""Plain text for a terminal, at most a hundred columns wide: the writer of all pages, and the page of a report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tabulate import tabulate
from wcwidth import wcswidth

from rag_eval.analysis import Report
from rag_eval.common.escaping import log_line, one_line, quantity
from rag_eval.gates.evidence import has_several_runs
from rag_eval.rendering import gates_table, results, summary
from rag_eval.rendering.document import PLAIN, Block, Paragraph, Section, Table

_WIDTH = 100
_GAP, _NARROWEST = 2, 12
_PADDING = "  "  # tabulate sets it for a header
_RED, _GREEN, _YELLOW = "31", "32", "33"
_COLOURS = {"FAILED": _RED, "failed": _RED, "error": _RED, "PASSED": _GREEN, "passed": _GREEN}
_COLOURS |= {"inconclusive": _YELLOW, "warning": _YELLOW, "no data": _YELLOW}
_COLOURED = re.compile(
    "^(FAILED|PASSED)|(?<=^- )(error|warning)(?= )|(?<=  )(failed|passed|inconclusive|no data)(?=$| \\()", re.MULTILINE
)
_SHOWN, _MOST, _QUESTIONS, _ALL = 20, 200, 10, 1_000_000_000
FORMATTER = PLAIN


def write_page(sections: Iterable[Section]) -> str:
    """Return a page of sections."""
    parts: list[str] = []
    for section in sections:
        title = _wrapped(section.title)
        underline = "=" * max(map(columns, title.split("\n")))
        parts += [f"{title}\n{underline}" if title else "", write_blocks(section.blocks)]
    return _join_parts(parts)


def _join_parts(parts: Iterable[str]) -> str:
    """Join the parts of a page with an empty line between them, each line safe to print."""
    text = "\n\n".join(part for part in parts if part)
    return "\n".join(log_line(line) for line in text.split("\n")) + "\n"


def write_blocks(blocks: Iterable[Block]) -> str:
    """Return the blocks with an empty line between them."""
    texts = []
    for block in blocks:
        if isinstance(block, Table):
            texts.append(grid(block.headers, block.rows))
        elif isinstance(block, Paragraph):
            texts.append(_wrapped(block.text))
        else:
            lines = []
            for item in block.items:
                lines += [_wrapped(item.text, "  ", "- "), *map(_below, item.below)]
            texts.append("\n".join(lines))
    return "\n\n".join(texts)


def _titled(title: str, blocks: Sequence[Block]) -> str:
    return f"{title}:\n{write_blocks(blocks)}" if blocks else ""


def grid(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of at most a hundred columns, or several that share the first column if twelve for each are more.

    The widest column wraps first, at spaces; words are broken only if no column has a space left to wrap at.
    """
    cells = [[log_line(cell).strip() for cell in row] for row in rows]
    padded = [f"{title}{_PADDING}" for title in headers]
    widths = [max(map(columns, column)) for column in zip(padded, *cells, strict=True)]
    longest = [
        max(columns(word) for cell in column for word in cell.split(" ")) for column in zip(padded, *cells, strict=True)
    ]
    room = _WIDTH - _GAP * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        spaced = [size if size > least else 0 for size, least in zip(widths, longest, strict=True)]
        candidates = spaced if max(spaced) > _NARROWEST else widths
        widths[candidates.index(max(candidates))] -= 1
    if sum(widths) > room:
        half = (len(widths) + 1) // 2
        parts = (range(half), (0, *range(half, len(widths))))
        return "\n\n".join(
            grid([headers[i] for i in part], [[row[i] for i in part] for row in cells]) for part in parts
        )
    folded = [[_folded(cell, limit) for cell, limit in zip(row, widths, strict=True)] for row in cells]
    titles = [_folded(title, limit - len(_PADDING)) for title, limit in zip(headers, widths, strict=True)]
    text = tabulate(folded, titles, tablefmt="simple", disable_numparse=True)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _folded(cell: str, limit: int) -> str:
    """Break a cell at its spaces, otherwise behind punctuation, otherwise anywhere."""
    if columns(cell) <= limit:
        return cell
    words = []
    for word in cell.split():
        while columns(word) > limit:
            head = word
            while columns(head) >= limit:
                head = head[:-1]
            head = head[: max(head.rfind(mark) for mark in "_./-") + 1] or head
            words.append(head)
            word = word[len(head) :]
        words.append(word)
    return _wrapped(" ".join(words), width=limit)


def columns(text: str) -> int:
    """Return the number of terminal columns of a text: two for a wide character, none for a combining one."""
    return len(text) if text.isascii() else max(wcswidth(text), 0)


def _below(text: str) -> str:
    """Indent a text below an item; a command stays on one line, so that copying it does not break it."""
    return f"  {text}" if text.startswith(("→ rag-eval ", "→ git ")) else _wrapped(text, "    ", "  ")


def _wrapped(text: str, indent: str = "", first: str | None = None, width: int = _WIDTH) -> str:
    """Break a paragraph at its spaces; ``first`` begins its first line, ``indent`` the others."""
    lines = [indent if first is None else first]
    for word in text.split():
        blank = "" if lines[-1] in (indent, first) else " "
        if blank and columns(lines[-1]) + 1 + columns(word) > width:
            lines.append(indent)
            blank = ""
        lines[-1] += blank + word
    return "\n".join(lines)


def coloured(text: str) -> str:
    """Return a page with its verdict and outcomes in colour."""
    return _COLOURED.sub(lambda match: f"\x1b[1;{_COLOURS[match[0]]}m{match[0]}\x1b[0m", text)


def render(report: Report, *, verbose: bool = False, by: bool = False, in_python: bool = False) -> str:
    """Return a page of plain text: failures and changes, with ``by`` the slices, with ``verbose`` everything.

    ``in_python`` lists the notes on the input too, which the command prints to stderr.
    """
    word, _, counts = verdict(report).partition("  ")
    parts = [
        _wrapped(counts, " " * len(f"{word}  "), f"{word}  "),
        _wrapped(summary.left_out(report)),
        write_blocks(summary.authority(report, PLAIN)),
        write_blocks(gates_table.gates(report, PLAIN, _MOST if verbose else _SHOWN, only_broken=not verbose)),
        write_blocks(summary.findings(report, PLAIN)),
        write_blocks(results.failing(report, PLAIN, _ALL if verbose else _QUESTIONS)),
        _titled(summary.POLICY, summary.policy(report, PLAIN)),
        write_blocks(summary.gold(report, PLAIN)),
        _titled(summary.NOTES, summary.notes(report, PLAIN) if in_python else []),
        write_blocks(results.effects(report, PLAIN)),
        _titled(summary.DIAGNOSIS, summary.diagnosis(report, PLAIN, brief=not verbose)),
    ]
    if verbose:
        parts += [_wrapped(summary.completeness(report)), write_blocks(results.worst_slices(report, PLAIN))]
        for group in results.by_group(report, PLAIN):
            parts.append(f"{_wrapped(f'{group.title}: {group.about}')}\n{write_blocks(group.tables)}")
        parts.append(_wrapped(results.without_cases(report)))
    if (verbose or by) and report.slices:
        parts.append(write_blocks([*results.conversations(report, PLAIN), *results.all_by_slice(report, PLAIN)]))
    if not verbose:
        everything = "rag_eval.render(report, verbose=True)" if in_python else "rag-eval score -v"
        valued = [result for result in report.metrics.values() if result.n]
        groups = quantity(len({result.perspective for result in valued}), "group")
        rest = sum(gate.outcome == "passed" and not gate.is_completeness for gate in report.gates)
        passed = f"{quantity(rest, 'passed gate')}, " if rest and any(gate.broken for gate in report.gates) else ""
        also = f"Also measured: {passed}{quantity(len(valued), 'metric')} in {groups}."
        explain = "rag_eval.explain(QID, gold, trace)" if in_python else "rag-eval explain QID"
        why = f"\nTo see why a question is wrong: {explain}" if report.questions.failing else ""
        parts.append(_wrapped(f"{also} {everything} shows everything.") + why)
    return _join_parts(parts)


def verdict(report: Report) -> str:
    """Return the verdict with its counts in one line: ``FAILED  4 of 8 gates · 6 of 14 questions wrong``."""
    counted = [gate for gate in report.gates if not gate.is_completeness]
    of_gates = f"of {quantity(len(counted), 'gate')}"
    if report.passed:
        passing = sum(gate.outcome == "passed" for gate in counted)
        reasons = [f"{passing} {of_gates}", *summary.not_passed(report)] if counted else []
    else:
        failed, codes = sum(gate.blocks for gate in counted), list({finding.code for finding in report.errors})
        reasons = [gates_table.reason(report, gate) for gate in report.failed_gates if gate.is_completeness]
        reasons += [f"{failed} {of_gates}"] if failed else []
        reasons += codes if len(codes) <= 1 else [f"{len(codes)} kinds of errors"]
    total, wrong = len(report.questions), len(report.questions.failing)
    unit = ("case" if has_several_runs(report.questions) else "question") + ("s" if total != 1 else "")
    right = f"{'all ' if total > 1 else ''}{total or 'no'} {unit} right"
    reasons.append(f"{wrong} of {total} {unit} wrong" if wrong else right)
    word = "PASSED IN PART" if summary.passed_in_part(report) else report.verdict.upper()
    return f"{word}  {one_line(' · '.join(reasons), 400)}"
