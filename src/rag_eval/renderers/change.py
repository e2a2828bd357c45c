"""What the change under test does to its own measurement, as Markdown: findings, who decided, policy, gold."""

from __future__ import annotations

from tabulate import tabulate

from rag_eval.labels import GOOD
from rag_eval.safe import markdown as safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rag_eval.blast import GoldChange
    from rag_eval.finding import Finding
    from rag_eval.policy import PolicyChange
    from rag_eval.report import Report

_FINDINGS, _CHANGES = 20, 20
_SIGNS = {"error": "❌", "warning": "⚠️", "looser": "🔓", "stricter": "🔒", "neutral": "➖"}
_MEND, _MESSAGE = 300, 400


def authority(report: Report) -> str:
    """Who decided, in a sentence; empty where nothing but the files at hand was asked."""
    base = report.base
    if base is None:
        return ""
    where = (
        f"{safe(base.ref)} ({safe(base.commit[:12])}, read through {base.through})" if base.commit else safe(base.ref)
    )
    if base.kind == "bootstrap":
        return f"**Bootstrap.** {where} has no gates yet: this change brings them, and nothing else decides."
    if base.kind == "head":
        return "**Nobody else decides.** Gates are those of the change itself, as was asked for."
    return f"The gates of {where} and those of this change both apply."


def findings(report: Report, most: int = _FINDINGS) -> str:
    """The findings, errors first, each with what mends it."""
    if not report.findings:
        return ""
    lines = [_finding(finding) for finding in report.findings[:most]]
    return "**Findings**\n\n" + "\n".join([*lines, *_more(len(report.findings) - most)])


def _finding(finding: Finding) -> str:
    place = f" {safe(finding.place, 200)}:" if finding.file else ""
    mend = f" {safe(finding.mend, _MEND)}" if finding.mend else ""
    return f"- {_SIGNS[finding.level]} `{finding.code}`{place} {safe(finding.message, _MESSAGE)}{mend}"


def policy(report: Report) -> str:
    """Every change of the gates file, what would have got through first."""
    if not report.policy_changes:
        return ""
    rows = [_policy_row(change) for change in report.policy_changes[:_CHANGES]]
    table = _table(["Gates changed", "", "Old", "New", "Would let through"], rows)
    return "\n".join([table, *_more(len(report.policy_changes) - _CHANGES)])


def _policy_row(change: PolicyChange) -> list[str]:
    old, new = (safe(value, 60) if value is not None else "–" for value in (change.old, change.new))
    through = ", ".join(safe(name) for name in change.lets_through)
    return [safe(change.key), f"{_SIGNS[change.kind]} {change.kind}", old, new, through or "–"]


def gold(report: Report) -> str:
    """The items that the change touches, flips first, and the gates that turn with them."""
    if not report.gold_changes:
        return ""
    ordered = sorted(report.gold_changes, key=lambda change: (not change.flips, change.qid))
    table = _table(
        ["Gold changed", "", "Case before", "Case now"], (_gold_row(change) for change in ordered[:_CHANGES])
    )
    parts = [f"{counted(report)}\n\n{table}", *_more(len(ordered) - _CHANGES)]
    turned = [
        f"`{turn.name}` {turn.before.replace('_', ' ')} → {turn.after.replace('_', ' ')}" for turn in report.gate_turns
    ]
    parts += [f"\n{_signed_at(report)}"] if report.signed_at else []
    parts += [f"\nGates that turn with the gold: {', '.join(turned)}."] if turned else []
    return "\n".join(parts)


def _signed_at(report: Report) -> str:
    held = report.signed_at
    if held is None:
        return ""
    asked = f"Sign-off at level `{held.level}`" if held.enforced else "No sign-off is asked for"
    left = f" Not checked here: {', '.join(held.unchecked)}." if held.unchecked else ""
    return f"{asked}. {held.proves if held.enforced else ''}{left}".rstrip()


def counted(report: Report) -> str:
    """How much of the gold the change touches, and how many cases flip by that."""
    verbs = [change.verb for change in report.gold_changes]
    what = ", ".join(f"{verbs.count(verb)} {verb}" for verb in ("added", "changed", "removed") if verb in verbs)
    flips = sum(change.flips for change in report.gold_changes)
    return f"**Gold items {what}.** On the same traces {flips} case{'s flip' if flips != 1 else ' flips'} by that."


def _gold_row(change: GoldChange) -> list[str]:
    verb = f"{change.verb}, asks something else" if change.mutation else change.verb
    return [safe(change.qid, 40), verb, _label(change.before), _label(change.after)]


def _label(label: str | None) -> str:
    return f"{'✅' if label in GOOD else '❌'} {label}" if label else "–"


def _more(cut: int) -> list[str]:
    return [f"\n… and {cut} more; report.json has all."] if cut > 0 else []


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return tabulate(list(rows), headers, tablefmt="github", disable_numparse=True)
