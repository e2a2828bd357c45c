"""The verdict in words, and all parts of a report other than values: findings, changes of policy and gold, causes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from rag_eval.analysis import Report
from rag_eval.cases import ABSENT
from rag_eval.common.escaping import quantity
from rag_eval.errors import Finding
from rag_eval.gates import FULL, GateResult
from rag_eval.rendering.document import (
    COMMIT,
    PLAIN,
    Block,
    Bullets,
    ListItem,
    Paragraph,
    Table,
    TextFormatter,
    bullets,
    more,
    paragraphs,
    table_of,
)
from rag_eval.rendering.gates_table import by_severity, reason
from rag_eval.rendering.results import count_cases, signed_label

T = TypeVar("T")

_REASONS = 3
_LINE_OF_FILE = re.compile(r"(.{1,200}:) ([a-z_]{1,40}(?:@[0-9]{1,5})?: \{.{1,200}\})(\.?)")
_FINDINGS, _CHANGES, _ITEMS, _NOTES = 20, 20, 10, 10
_NAME, _REF, _TEXT, _VALUE, _FIX, _MESSAGE = 40, 80, 200, 60, 300, 400
FINDINGS, POLICY, NOTES, DIAGNOSIS = "Findings", "Changes of the gates", "Notes on the input", "Likely causes"


def title(report: Report) -> str:
    """Return a report's title; it names a partial run."""
    return f"RAG evaluation {report.verdict}{' in part' if passed_in_part(report) else ''}"


def passed_in_part(report: Report) -> bool:
    """Return whether a partial run passed."""
    return report.scope is not None and report.passed


def headline(report: Report, formatter: TextFormatter = PLAIN) -> str:
    """Return the verdict in words: ``Evaluated 14 questions: 2 wrong. Passed: 8 of 8 gates and completeness``."""
    failed, errors = by_severity(report.failed_gates), report.errors
    wrong, absent = len(report.questions.failing), sum(report.labels.get(name, 0) for name in ABSENT)
    answered = f": {wrong} wrong" if wrong else ""
    answered += f" ({absent} without an answer)" if absent else ""
    if absent == len(report.questions) > 0:
        answered = ", none of them answered"
    evaluated = f"Evaluated {count_cases(report)}{answered}."
    if failed or errors:
        why = "; ".join([*_reasons(report, failed, errors, formatter), *not_passed(report)])
        return f"{evaluated} Failed: {why}. {left_out(report)}".rstrip()
    gates = [gate for gate in report.gates if not gate.is_completeness]
    passing = sum(gate.outcome == "passed" for gate in gates)
    names = [f"{passing} of {quantity(len(gates), 'gate')}"] if gates else []
    names += ["completeness"] if len(gates) < len(report.gates) else []
    counts = "; ".join([_enumerated(names) or "no gates", *not_passed(report)])
    return f"{evaluated} {'Passed in part' if report.scope else 'Passed'}: {counts}. {left_out(report)}".rstrip()


def warned(report: Report, formatter: TextFormatter = PLAIN) -> str:
    """Summarize failed gates and findings that only warn, in a few words."""
    broken = by_severity(gate for gate in report.gates if gate.broken)
    return "; ".join(_reasons(report, broken, report.findings, formatter))


def _reasons(
    report: Report, gates: Sequence[GateResult], findings: Sequence[Finding], formatter: TextFormatter
) -> list[str]:
    reasons = [reason(report, gate, formatter) for gate in gates[:_REASONS]]
    cut = [f"and {len(gates) - _REASONS} more"] if len(gates) > _REASONS else []
    counts = Counter(finding.code for finding in findings)
    codes = [formatter.words(code) + (f" ({times} times)" if times > 1 else "") for code, times in counts.items()]
    return [*reasons, *cut, *codes]


def left_out(report: Report) -> str:
    """Name the questions and metric groups that a partial run left out."""
    scope = report.scope
    if scope is None:
        return ""
    parts = [f"Smoke suite: {scope.questions:,} of {scope.of:,} questions."] if scope.suite != FULL else []
    if scope.perspectives:
        gates = len(scope.left_out_gates)
        unjudged = f"{quantity(gates, 'gate')} of other metric groups {'were' if gates != 1 else 'was'} not judged"
        rest = unjudged if gates else "no gate belongs to another metric group"
        parts.append(f"Only {_enumerated(scope.perspectives)}: {rest}.")
    return " ".join(parts)


def _enumerated(names: Sequence[str]) -> str:
    """Return ``retrieval``, ``retrieval and safety``, ``answers, retrieval and safety``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def not_passed(report: Report) -> list[str]:
    """Count the gates that neither pass nor fail the run, the warnings, and the settings of the gates made looser."""
    rest = [gate for gate in report.gates if not gate.blocks]
    unclear = sum(gate.unclear for gate in rest)
    warnings = sum(gate.broken and not gate.unclear for gate in rest) + len(report.warnings)
    skipped = sum(gate.outcome == "no_data" and not gate.broken for gate in rest)
    parts = [f"{unclear} inconclusive"] if unclear else []
    parts += [quantity(warnings, "warning")] if warnings else []
    parts += [f"{skipped} skipped (no data)"] if skipped else []
    looser = sum(change.kind == "looser" for change in report.policy_changes)
    return [*parts, f"loosens {quantity(looser, 'setting')} of the gates"] if looser else parts


def completeness(report: Report) -> str:
    """Return completeness in one line."""
    counts = report.completeness
    others = ((getattr(counts, name), name) for name in ("missing", "duplicate", "unknown", "errored"))
    rest = ", ".join(f"{count} {name}" for count, name in others if count)
    return f"{counts.scored} of {counts.expected} expected answers are there{f'; {rest}' if rest else ''}."


def authority(report: Report, formatter: TextFormatter) -> list[Block]:
    """State in a sentence who decided; nothing if only local files were used."""
    base = report.base
    if base is None:
        return []
    commit = formatter.code(base.commit[:COMMIT], _REF)
    at = f" ({commit}, read through {formatter.words(base.through, _REF)})" if base.commit else ""
    where = formatter.code(base.ref, _REF) + at
    if base.kind == "bootstrap":
        text = f"{where} has no gates file, so only the gates of this change apply."
        return [Paragraph(f"{formatter.strong('Initial setup.')} {text}")]
    if base.kind == "head":
        return [Paragraph("Only the gates of this change apply, as requested: the base branch has no say.")]
    return [Paragraph(f"The gates of {where} and those of this change both apply.")]


def shown_findings(report: Report, limit: int = _FINDINGS) -> list[Finding]:
    """Return the first findings, errors first, and one of each kind at least."""
    return _of_every_kind(report.findings, lambda finding: finding.code, limit)


def findings(report: Report, formatter: TextFormatter, limit: int = _FINDINGS) -> list[Block]:
    """List the findings, errors first, grouped by kind, each kind with its fix."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    counts = Counter[tuple[str, str, str]]((finding.level, finding.code, finding.fix) for finding in report.findings)
    shown = shown_findings(report, limit)
    for finding in shown:
        place = f"{formatter.code(finding.place, _TEXT)}: " if finding.file else ""
        text = place + formatter.words(finding.message, _MESSAGE)
        kinds.setdefault((finding.level, finding.code, finding.fix), []).append(text)
    items = []
    for (level, code, fix), texts in kinds.items():
        head = f"{formatter.sign(level)} {formatter.code(code, _REF)}"
        advice = formatter.words(fix, _FIX)
        if fix.startswith(("rag-eval ", "git ")):  # commands and lines of a gates file are code, to copy them
            advice = formatter.code(fix, _FIX)
        elif part := _LINE_OF_FILE.fullmatch(fix):
            advice = f"{formatter.words(part[1], _FIX)} {formatter.code(part[2], _FIX)}{part[3]}"
        fixes = [f"→ {advice}"] if fix else []
        if counts[level, code, fix] == 1:
            items.append(ListItem(f"{head}: {texts[0]}", fixes))
        else:
            items.append(ListItem(f"{head}, {counts[level, code, fix]} times:", [*texts, *fixes]))
    return [Bullets(items), *more(len(report.findings) - len(shown), formatter.whole)] if items else []


def _of_every_kind(entries: Sequence[T], kind: Callable[[T], str], limit: int) -> list[T]:
    """Return ``limit`` entries, but one of each kind at least; kinds take turns, so that many of one hide no other."""
    counts, turns = Counter[str](), []
    for index, entry in enumerate(entries):
        turns.append((counts[kind(entry)], index))
        counts[kind(entry)] += 1
    chosen = sorted(turns)[: max(limit, len(counts))]
    return [entries[index] for index in sorted(index for _, index in chosen)]


def policy(report: Report, formatter: TextFormatter, limit: int = _CHANGES) -> list[Block]:
    """List every change of the gates file, those with an effect on this run first."""
    lines = []
    shown = _of_every_kind(report.policy_changes, lambda change: change.key.partition(".")[0], limit)
    for change in shown:
        stated = _from_difference(change.old, change.new)
        old, new = (formatter.code(value, _VALUE) if value is not None else "" for value in stated)
        values = f"{old} → {new}" if old and new else f"removed, was {old}" if old else f"added, {new}"
        names = ", ".join(formatter.code(name, _REF) for name in change.lets_through)
        through = f"; {formatter.strong('would let through')} {names}" if names else ""
        kind = f"{formatter.sign(change.kind)} {change.kind}"
        lines.append(f"{kind}: {formatter.code(change.key, _REF)} {values}{through}")
    return [*bullets(lines), *more(len(report.policy_changes) - len(shown), formatter.whole)]


def _from_difference(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Return two values without a long beginning that both have: an entry added to a long list must be visible."""
    if old is None or new is None:
        return old, new
    pairs = enumerate(zip(old, new, strict=False))
    same = next((index for index, pair in pairs if pair[0] != pair[1]), min(len(old), len(new)))
    start = same - _VALUE // 4
    return (f"…{old[start:]}", f"…{new[start:]}") if same > _VALUE // 2 else (old, new)


def gold(report: Report, formatter: TextFormatter, limit: int = _ITEMS) -> list[Block]:
    """Count and list the changed gold items, flips first, with the gates that change and the required sign-off."""
    if not report.gold_changes:
        return []
    ordered = sorted(report.gold_changes, key=lambda change: (not change.flips, change.qid))
    rows = []
    for change in ordered[:limit]:
        verb = f"{change.verb}, asks another question" if change.mutation else change.verb
        labels = [signed_label(text, formatter) if text else "–" for text in (change.before, change.after)]
        rows.append([formatter.code(change.qid, _NAME), verb, *labels])
    turned = ", ".join(
        f"{formatter.code(turn.name, _REF)} {turn.before.replace('_', ' ')} → {turn.after.replace('_', ' ')}"
        for turn in report.gate_turns
    )
    gates = f"Gates whose outcome depends on this edit: {turned}." if turned else ""
    sign_off = ""
    if signed_at := report.signed_at:
        level, proof = formatter.code(signed_at.level, _REF), formatter.words(signed_at.proves, _MESSAGE)
        sign_off = f"Sign-off at level {level}. {proof}" if signed_at.enforced else ""
        unchecked = ", ".join(formatter.words(requirement, _MESSAGE) for requirement in signed_at.unchecked)
        sign_off += f" Not checked here: {unchecked}." if unchecked else ""
    return [
        *gold_counts(report, formatter),
        Table("Gold items that this change edits", ["Gold item", "Change", "Before", "Now"], rows),
        *more(len(ordered) - limit, formatter.whole),
        *paragraphs(gates, sign_off),
    ]


def gold_counts(report: Report, formatter: TextFormatter) -> list[Block]:
    """Count the changed gold items and the cases that flip because of them."""
    if not report.gold_changes:
        return []
    verbs, order = [change.verb for change in report.gold_changes], ("added", "changed", "reformatted", "removed")
    what = ", ".join(f"{verbs.count(verb)} {verb}" for verb in order if verb in verbs)
    flips = sum(change.flips for change in report.gold_changes)
    cases = quantity(flips, "case") if flips else "no cases"
    head = formatter.strong(f"This change edits the gold set: {what}.")
    return [Paragraph(f"{head} With the same traces, it changes the result of {cases}.")]


def notes(report: Report, formatter: TextFormatter, limit: int = _NOTES) -> list[Block]:
    """List the notes on the input: what is unusual, where, how often."""
    lines = []
    for note in report.notes[:limit]:
        location = formatter.code(f"{note.file}:{note.line}" if note.line else note.file, _TEXT)
        times = f" ({note.times} times)" if note.times > 1 else ""
        lines.append(f"{location}: {formatter.text(note.message, _MESSAGE)}{times}")
    cut = len(report.notes) - limit
    return bullets([*lines, f"and {cut} more"] if cut > 0 else lines)


def diagnosis(report: Report, formatter: TextFormatter, *, brief: bool = False) -> list[Block]:
    """List the likely causes and what to look at next; unless ``brief``, also the evidence for each cause."""
    items = []
    for cause in report.diagnosis:
        head, steps = formatter.strong(formatter.trusted(cause.cause)), formatter.trusted(cause.next)
        evidence = f"{head} ({formatter.trusted(cause.evidence)}) {steps}"
        items.append(ListItem(head, [f"→ {steps}"]) if brief else ListItem(evidence))
    return [Bullets(items)] if items else []


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
