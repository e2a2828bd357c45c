"""What the change under test does to its own measurement, as Markdown: findings, who decided, policy, gold."""

from __future__ import annotations

from rag_eval.renderers.marks import label, table
from rag_eval.safe import markdown as safe
from rag_eval.safe import prose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.blast import GateTurn, GoldChange
    from rag_eval.finding import Finding
    from rag_eval.policy import PolicyChange
    from rag_eval.report import Report

_FINDINGS, _CHANGES, _ITEMS = 20, 20, 10
_SIGNS = {"error": "❌", "warning": "⚠️", "looser": "🔓", "stricter": "🔒", "neutral": "➖"}
_MEND, _MESSAGE = 300, 400


def authority(report: Report) -> str:
    """Who decided, in a sentence; empty where nothing but the files at hand was asked."""
    base = report.base
    if base is None:
        return ""
    at = f" ({safe(base.commit[:12])}, read through {prose(base.through)})" if base.commit else ""
    where = safe(base.ref) + at
    if base.kind == "bootstrap":
        return f"**Bootstrap.** {where} has no gates yet: this change brings them, and nothing else decides."
    if base.kind == "head":
        return "**Nobody else decides.** Gates are those of the change itself, as was asked for."
    return f"The gates of {where} and those of this change both apply."


def findings(report: Report, most: int = _FINDINGS) -> str:
    """The findings, errors first, those of a kind together, each kind with what mends it."""
    if not report.findings:
        return ""
    kinds: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in report.findings[:most]:
        kinds.setdefault((finding.level, finding.code, finding.mend), []).append(finding)
    lines = [line for alike in kinds.values() for line in _kind(alike)]
    return "**Findings**\n\n" + "\n".join([*lines, *_more(len(report.findings) - most)])


def _kind(alike: Sequence[Finding]) -> list[str]:
    first = alike[0]
    head, mend = f"- {_SIGNS[first.level]} `{first.code}`", [f"  - → {_mend(first.mend)}"] if first.mend else []
    if len(alike) == 1:
        return [f"{head}: {_said(first)}", *mend]
    return [f"{head}, {len(alike)} times:", *(f"  - {_said(each)}" for each in alike), *mend]


def _said(finding: Finding) -> str:
    place = f"{safe(finding.place, 200)} " if finding.file else ""
    return place + prose(finding.message, _MESSAGE)


def _mend(text: str) -> str:
    """Commands as such, to copy them; advice in plain words."""
    return safe(text, _MEND) if text.startswith(("rag-eval ", "git ")) else prose(text, _MEND)


def policy(report: Report) -> str:
    """Every change of the gates file, what would have got through first."""
    if not report.policy_changes:
        return ""
    lines = [_policy_line(change) for change in report.policy_changes[:_CHANGES]]
    return "**Changes of the gates**\n\n" + "\n".join([*lines, *_more(len(report.policy_changes) - _CHANGES)])


def _policy_line(change: PolicyChange) -> str:
    names = ", ".join(safe(name) for name in change.lets_through)
    through = f"; **would let through** {names}" if names else ""
    return f"- {_SIGNS[change.kind]} {change.kind}: {safe(change.key)} {_values(change)}{through}"


def _values(change: PolicyChange) -> str:
    old, new = (safe(value, 60) if value is not None else None for value in (change.old, change.new))
    if old is None or new is None:
        return f"added, {new}" if old is None else f"removed, was {old}"
    return f"{old} → {new}"


def gold(report: Report) -> str:
    """The items that the change touches, flips first, and the gates that turn with them."""
    if not report.gold_changes:
        return ""
    ordered = sorted(report.gold_changes, key=lambda change: (not change.flips, change.qid))
    shown = table(["Gold changed", "", "Case before", "Case now"], (_gold_row(one) for one in ordered[:_ITEMS]))
    parts = [f"{counted(report)}\n\n{shown}", *_more(len(ordered) - _ITEMS)]
    turned = ", ".join(_turn(turn) for turn in report.gate_turns)
    parts += [f"\n{_signed_at(report)}"] if report.signed_at else []
    return "\n".join([*parts, *([f"\nGates that turn with the gold: {turned}."] if turned else [])])


def _turn(turn: GateTurn) -> str:
    return f"{safe(turn.name)} {turn.before.replace('_', ' ')} → {turn.after.replace('_', ' ')}"


def _signed_at(report: Report) -> str:
    held = report.signed_at
    if held is None:
        return ""
    asked = f"Sign-off at level `{held.level}`" if held.enforced else "No sign-off is asked for"
    left = (
        f" Not checked here: {', '.join(prose(each, _MESSAGE) for each in held.unchecked)}." if held.unchecked else ""
    )
    return f"{asked}. {prose(held.proves, _MESSAGE) if held.enforced else ''}{left}".rstrip()


def counted(report: Report) -> str:
    """How much of the gold the change touches, and how many cases flip by that."""
    verbs = [change.verb for change in report.gold_changes]
    what = ", ".join(f"{verbs.count(verb)} {verb}" for verb in ("added", "changed", "removed") if verb in verbs)
    flips = sum(change.flips for change in report.gold_changes)
    cases = f"{flips or 'no'} case{'s flip' if flips > 1 else ' flips'}"
    return f"**This change edits the gold: {what}.** On the same traces {cases} by that."


def _gold_row(change: GoldChange) -> list[str]:
    verb = f"{change.verb}, asks something else" if change.mutation else change.verb
    return [safe(change.qid, 40), verb, label(change.before), label(change.after)]


def _more(cut: int) -> list[str]:
    return [f"\n… and {cut} more; report.json has all."] if cut > 0 else []
