"""Parts of a report other than values: who decided, findings, changes of policy and gold, notes, causes, origin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval.common.escaping import quantity
from rag_eval.rendering.blocks import Bullets, ListItem, Paragraph, Table, bullets, more, paragraphs, table_of
from rag_eval.rendering.phrases import signed_label

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.errors import Finding
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

_FINDINGS, _CHANGES, _ITEMS, _NOTES = 20, 20, 10, 10
_NAME, _REF, _TEXT, _VALUE, _FIX, _MESSAGE = 40, 80, 200, 60, 300, 400
FINDINGS, POLICY, NOTES, DIAGNOSIS = "Findings", "Changes of the gates", "Notes on the input", "Diagnosis"


def authority(report: Report, formatter: TextFormatter) -> list[Block]:
    """State in a sentence who decided; nothing if only local files were used."""
    base = report.base
    if base is None:
        return []
    commit = formatter.code(base.commit[:12], _REF)
    at = f" ({commit}, read through {formatter.words(base.through, _REF)})" if base.commit else ""
    where = formatter.code(base.ref, _REF) + at
    if base.kind == "bootstrap":
        text = f"{where} has no gates file, so only the gates of this change apply."
        return [Paragraph(f"{formatter.strong('Initial setup.')} {text}")]
    if base.kind == "head":
        return [Paragraph("Only the gates of this change apply, as requested: the base branch has no say.")]
    return [Paragraph(f"The gates of {where} and those of this change both apply.")]


def findings(report: Report, formatter: TextFormatter, limit: int = _FINDINGS) -> list[Block]:
    """List the findings, errors first, grouped by kind, each kind with its fix."""
    if not report.findings:
        return []
    kinds: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in report.findings[:limit]:
        kinds.setdefault((finding.level, finding.code, finding.fix), []).append(finding)
    return [
        Bullets([_kind(same_kind, formatter) for same_kind in kinds.values()]),
        *more(len(report.findings) - limit, formatter.whole),
    ]


def _kind(same_kind: Sequence[Finding], formatter: TextFormatter) -> ListItem:
    first = same_kind[0]
    head = f"{formatter.sign(first.level)} {formatter.code(first.code, _REF)}"
    # Commands stay unchanged, to copy them; advice is in plain words.
    form = formatter.code if first.fix.startswith(("rag-eval ", "git ")) else formatter.words
    fix = [f"→ {form(first.fix, _FIX)}"] if first.fix else []
    if len(same_kind) == 1:
        return ListItem(f"{head}: {_finding_text(first, formatter)}", fix)
    return ListItem(
        f"{head}, {len(same_kind)} times:", [*(_finding_text(finding, formatter) for finding in same_kind), *fix]
    )


def _finding_text(finding: Finding, formatter: TextFormatter) -> str:
    location = f"{formatter.code(finding.place, _TEXT)}: " if finding.file else ""
    return location + formatter.words(finding.message, _MESSAGE)


def policy(report: Report, formatter: TextFormatter, limit: int = _CHANGES) -> list[Block]:
    """List every change of the gates file, those with an effect on this run first."""
    if not report.policy_changes:
        return []
    lines = []
    for change in report.policy_changes[:limit]:
        old, new = (formatter.code(value, _VALUE) if value is not None else "" for value in (change.old, change.new))
        values = f"{old} → {new}" if old and new else f"removed, was {old}" if old else f"added, {new}"
        names = ", ".join(formatter.code(name, _REF) for name in change.lets_through)
        through = f"; {formatter.strong('would let through')} {names}" if names else ""
        kind = f"{formatter.sign(change.kind)} {change.kind}"
        lines.append(f"{kind}: {formatter.code(change.key, _REF)} {values}{through}")
    return [*bullets(lines), *more(len(report.policy_changes) - limit, formatter.whole)]


def gold(report: Report, formatter: TextFormatter, limit: int = _ITEMS) -> list[Block]:
    """Count and list the changed gold items, with the gates that change with them and the required sign-off."""
    signed_at = paragraphs(_signed_at(report, formatter)) if report.gold_changes else []
    return [*counted(report, formatter), *items(report, formatter, limit), *signed_at]


def items(report: Report, formatter: TextFormatter, limit: int = _ITEMS) -> list[Block]:
    """List the changed gold items, flips first, and the gates that change with them."""
    if not report.gold_changes:
        return []
    ordered = sorted(report.gold_changes, key=lambda change: (not change.flips, change.qid))
    rows = []
    for change in ordered[:limit]:
        verb = f"{change.verb}, asks another question" if change.mutation else change.verb
        labels = [signed_label(text, formatter) if text else "–" for text in (change.before, change.after)]
        rows.append([formatter.code(change.qid, _NAME), verb, *labels])
    shown = Table("Items of the gold that this change edits", ["Gold changed", "", "Case before", "Case now"], rows)
    turned = ", ".join(
        f"{formatter.code(turn.name, _REF)} {turn.before.replace('_', ' ')} → {turn.after.replace('_', ' ')}"
        for turn in report.gate_turns
    )
    gates = f"Gates whose outcome depends on this edit: {turned}." if turned else ""
    return [shown, *more(len(ordered) - limit, formatter.whole), *paragraphs(gates)]


def _signed_at(report: Report, formatter: TextFormatter) -> str:
    signed_at = report.signed_at
    if signed_at is None:
        return ""
    asked = (
        f"Sign-off at level {formatter.code(signed_at.level, _REF)}"
        if signed_at.enforced
        else "No sign-off is required"
    )
    unchecked = ", ".join(formatter.words(requirement, _MESSAGE) for requirement in signed_at.unchecked)
    rest = f" Not checked here: {unchecked}." if signed_at.unchecked else ""
    return f"{asked}. {formatter.words(signed_at.proves, _MESSAGE) if signed_at.enforced else ''}{rest}".rstrip()


def counted(report: Report, formatter: TextFormatter) -> list[Block]:
    """Count the changed gold items and the cases that flip because of them."""
    if not report.gold_changes:
        return []
    verbs = [change.verb for change in report.gold_changes]
    what = ", ".join(f"{verbs.count(verb)} {verb}" for verb in ("added", "changed", "removed") if verb in verbs)
    flips = sum(change.flips for change in report.gold_changes)
    cases = quantity(flips, "case") if flips else "no cases"
    head = formatter.strong(f"This change edits the gold: {what}.")
    return [Paragraph(f"{head} With the same traces, the edit flips {cases}.")]


def notes(report: Report, formatter: TextFormatter, limit: int = _NOTES) -> list[Block]:
    """List the notes on the input: what is unusual, where, how often."""
    lines = []
    for note in report.notes[:limit]:
        location = formatter.code(f"{note.file}:{note.line}" if note.line else note.file, _TEXT)
        times = f" ({note.times} times)" if note.times > 1 else ""
        lines.append(f"{location}: {formatter.text(note.message, _TEXT)}{times}")
    cut = len(report.notes) - limit
    return bullets([*lines, f"and {cut} more"] if cut > 0 else lines)


def diagnosis(report: Report, formatter: TextFormatter, *, brief: bool = False) -> list[Block]:
    """List the likely causes; unless ``brief``, also the evidence for each, and what to look at next."""
    lines = [
        formatter.strong(formatter.trusted(cause.cause))
        + ("" if brief else f" ({formatter.trusted(cause.evidence)}) {formatter.trusted(cause.next)}")
        for cause in report.diagnosis
    ]
    return bullets(lines)


def provenance(report: Report, formatter: TextFormatter) -> list[Block]:
    """List the inputs, the run without the gold set's digest, which is compared elsewhere, and the settings."""
    rows = [
        [formatter.words(source.role, _REF), formatter.code(source.path, _TEXT), formatter.code(source.sha256, _REF)]
        for source in report.inputs
    ]
    run = [
        [formatter.code(name, _REF), formatter.code(json.dumps(value, ensure_ascii=False, sort_keys=True), _TEXT)]
        for name, value in (report.run or {}).items()
        if name != "gold_sha256"
    ]
    token = formatter.code(str(report.refusal["token"]), _REF)
    refusal = f"Refusal token {token}, {len(report.refusal['phrases'])} refusal phrases"
    if "builtin" in report.refusal:
        refusal += f", built-in refusals (version {report.refusal['builtin']})"
    settings = f"{refusal}; labels at k = {report.k}; rag-eval {formatter.words(report.version, _REF)}."
    inputs = Table("What was read", ["Input", "Path", "sha256"], rows)
    return [inputs, *table_of("Fields of run.json", ["Run", ""], run), Paragraph(settings)]
