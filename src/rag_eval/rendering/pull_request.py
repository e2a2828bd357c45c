"""What the change under test does to its own measurement: findings, who decided, policy, gold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval.rendering.blocks import Bullets, Item, Paragraph, Table, listed, more, paragraphs
from rag_eval.rendering.phrases import signed_label

if TYPE_CHECKING:
    from rag_eval.analysis.gold_impact import GateTurn, GoldChange
    from rag_eval.analysis.policy_changes import PolicyChange
    from rag_eval.analysis.report import Report
    from rag_eval.cases.finding import Finding
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import Voice

_FINDINGS, _CHANGES, _ITEMS = 20, 20, 10
_NAME, _REF, _PLACE, _VALUE, _MEND, _MESSAGE = 40, 80, 200, 60, 300, 400
FINDINGS, POLICY = "Findings", "Changes of the gates"


def authority(report: Report, voice: Voice) -> list[Block]:
    """Who decided, in a sentence; nothing where nothing but the files at hand was asked."""
    base = report.base
    if base is None:
        return []
    commit = voice.code(base.commit[:12], _REF)
    at = f" ({commit}, read through {voice.said(base.through, _REF)})" if base.commit else ""
    where = voice.code(base.ref, _REF) + at
    if base.kind == "bootstrap":
        said = f"{voice.strong('Bootstrap.')} {where} has no gates file for this: that of the change decides alone."
        return [Paragraph(said)]
    if base.kind == "head":
        said = "Gates are those of the change itself, as was asked for."
        return [Paragraph(f"{voice.strong('Nobody else decides.')} {said}")]
    return [Paragraph(f"The gates of {where} and those of this change both apply.")]


def findings(report: Report, voice: Voice, most: int = _FINDINGS) -> list[Block]:
    """The findings, errors first, those of a kind together, each kind with what mends it."""
    if not report.findings:
        return []
    kinds: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in report.findings[:most]:
        kinds.setdefault((finding.level, finding.code, finding.mend), []).append(finding)
    return [Bullets([_kind(alike, voice) for alike in kinds.values()]), *more(len(report.findings) - most)]


def _kind(alike: Sequence[Finding], voice: Voice) -> Item:
    first = alike[0]
    head = f"{voice.sign(first.level)} {voice.code(first.code, _REF)}"
    mend = [f"→ {_mend(first.mend, voice)}"] if first.mend else []
    if len(alike) == 1:
        return Item(f"{head}: {_said(first, voice)}", mend)
    return Item(f"{head}, {len(alike)} times:", [*(_said(each, voice) for each in alike), *mend])


def _said(finding: Finding, voice: Voice) -> str:
    place = f"{voice.code(finding.place, _PLACE)} " if finding.file else ""
    return place + voice.said(finding.message, _MESSAGE)


def _mend(text: str, voice: Voice) -> str:
    """Commands as such, to copy them; advice in plain words."""
    return (voice.code if text.startswith(("rag-eval ", "git ")) else voice.said)(text, _MEND)


def policy(report: Report, voice: Voice, most: int = _CHANGES) -> list[Block]:
    """Every change of the gates file, what would have got through first."""
    if not report.policy_changes:
        return []
    lines = [_policy_line(change, voice) for change in report.policy_changes[:most]]
    return [listed(lines), *more(len(report.policy_changes) - most)]


def _policy_line(change: PolicyChange, voice: Voice) -> str:
    names = ", ".join(voice.code(name, _REF) for name in change.lets_through)
    through = f"; {voice.strong('would let through')} {names}" if names else ""
    return f"{voice.sign(change.kind)} {change.kind}: {voice.code(change.key, _REF)} {_values(change, voice)}{through}"


def _values(change: PolicyChange, voice: Voice) -> str:
    old, new = (voice.code(value, _VALUE) if value is not None else None for value in (change.old, change.new))
    if old is None or new is None:
        return f"added, {new}" if old is None else f"removed, was {old}"
    return f"{old} → {new}"


def gold(report: Report, voice: Voice, most: int = _ITEMS) -> list[Block]:
    """The items that the change touches, flips first, and the gates that turn with them."""
    if not report.gold_changes:
        return []
    ordered = sorted(report.gold_changes, key=lambda change: (not change.flips, change.qid))
    rows = [_gold_row(one, voice) for one in ordered[:most]]
    shown = Table("Items of the gold that this change edits", ["Gold changed", "", "Case before", "Case now"], rows)
    turned = ", ".join(_turn(turn, voice) for turn in report.gate_turns)
    gates = f"Gates that turn with the gold: {turned}." if turned else ""
    return [*counted(report, voice), shown, *more(len(ordered) - most), *paragraphs(_signed_at(report, voice), gates)]


def _turn(turn: GateTurn, voice: Voice) -> str:
    return f"{voice.code(turn.name, _REF)} {turn.before.replace('_', ' ')} → {turn.after.replace('_', ' ')}"


def _signed_at(report: Report, voice: Voice) -> str:
    held = report.signed_at
    if held is None:
        return ""
    asked = f"Sign-off at level {voice.code(held.level, _REF)}" if held.enforced else "No sign-off is asked for"
    unchecked = ", ".join(voice.said(each, _MESSAGE) for each in held.unchecked)
    left = f" Not checked here: {unchecked}." if held.unchecked else ""
    return f"{asked}. {voice.said(held.proves, _MESSAGE) if held.enforced else ''}{left}".rstrip()


def counted(report: Report, voice: Voice) -> list[Block]:
    """How much of the gold the change touches, and how many cases flip by that."""
    if not report.gold_changes:
        return []
    verbs = [change.verb for change in report.gold_changes]
    what = ", ".join(f"{verbs.count(verb)} {verb}" for verb in ("added", "changed", "removed") if verb in verbs)
    flips = sum(change.flips for change in report.gold_changes)
    cases = f"{flips or 'no'} case{'s flip' if flips > 1 else ' flips'}"
    return [Paragraph(f"{voice.strong(f'This change edits the gold: {what}.')} On the same traces {cases} by that.")]


def _gold_row(change: GoldChange, voice: Voice) -> list[str]:
    verb = f"{change.verb}, asks something else" if change.mutation else change.verb
    return [voice.code(change.qid, _NAME), verb, _label(change.before, voice), _label(change.after, voice)]


def _label(text: str | None, voice: Voice) -> str:
    return signed_label(text, voice) if text else "–"
