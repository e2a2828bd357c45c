"""Review of the gold of a change under test: its changes, who signed them, and their effects on this run's cases.

The sign-off policies of both sides apply.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.analysis import gold_impact
from rag_eval.analysis.gold_impact import GoldChange
from rag_eval.analysis.policy_changes import loosened_gates
from rag_eval.analysis.report import SignedAt, rejudge
from rag_eval.common.escaping import quantity, quoted
from rag_eval.contract import DEFAULT_GOLD
from rag_eval.errors import Finding, InputError, Note, Problem
from rag_eval.gates.policy import BOUNDS
from rag_eval.gates.selection import by_conversation
from rag_eval.git.snapshots import NOTHING, Irregular, differing, has_path, read
from rag_eval.gold.lint import CHECKS, GoldSample, watch
from rag_eval.gold.signoff.identity import NO_PROOF, proves, unchecked
from rag_eval.governance.context import GoldDiff, ReviewContext
from rag_eval.governance.gold_signoff import (
    LFS,
    is_enforced,
    named_gold,
    review_signoff,
    signoff_policies,
    ungoverned,
    unsigned,
    untracked,
)
from rag_eval.readers.gold_file import StoredGold, stored_gold_set
from rag_eval.readers.jsonl import paired_traces
from rag_eval.readers.run_file import sidecar_of
from rag_eval.run.base_policy import gates_about, gold_named_by, stored_at
from rag_eval.run.scored import rescore, rescore_on

if TYPE_CHECKING:
    from rag_eval.analysis.gold_impact import GateTurn
    from rag_eval.analysis.report import Earlier, Report
    from rag_eval.gates.policy import GateResult, Policy
    from rag_eval.git.snapshots import Tree
    from rag_eval.readers.gold_file import GoldSet
    from rag_eval.run.scored import ScoredRun

RULES = tuple(
    "no-substr substr-white-space substr-character substr-refusal substr-in-question substr-stop-words "
    "substr-in-citation substr-common no-citation expected-without-substr question-blank".split()
)
"""The rules of `gold lint` that say that an item judges too little."""
_SHOWN = 5
_ANSWERS = 20_000  # of the run, in which a substring is searched


class GoldReview(NamedTuple):
    """The review of the gold. ``signed_at`` is None if sign-off does not apply."""

    changes: tuple[GoldChange, ...] = ()
    turns: tuple[GateTurn, ...] = ()
    findings: tuple[Finding, ...] = ()
    signed_at: SignedAt | None = None
    notes: tuple[Note, ...] = ()


def review_gold(context: ReviewContext) -> GoldReview:
    """Review the change of the gold that was scored: changed items, flips, turned gates, sign-off."""
    authority, file = context.authority, context.head.gold
    path = authority.inside(file)
    if authority.gates is None:
        # Without a base, items must be as their last record says, if sign-off is required.
        if authority.signoff != "off" and not is_enforced(context):
            return GoldReview()
        policies = [policy for policy in signoff_policies(context) if policy.gold == path]
        return GoldReview(
            findings=tuple(unsigned(context, policies[:1], GoldDiff()) if policies else [ungoverned(context)])
        )
    diff = compare(context)
    findings, policy = review_signoff(context, path, diff)
    _refuse_other_bytes(context)
    if diff.old is None and diff.changes and context.base:
        message = "the base branch has no gold set at the path in its gates file, so all items count as new"
        fix = "Name the gold set in the gates file by its path on the base branch."
        findings.append(Finding("gold-not-on-base", "warning", message, fix, file))
    if diff.not_comparable:
        findings.append(untracked(context, f"cannot be compared: {diff.not_comparable}"))
    is_unproved = not authority.people and diff.changes and is_enforced(context)
    if policy and is_unproved and (asked := unchecked(policy, NO_PROOF)):
        where = "on this event" if authority.ci else "outside GitHub Actions"
        message = f"the gold changed, and {' and '.join(asked)} cannot be checked {where}"
        fix = "Require the check of the action on pull requests or in the merge queue."
        findings.append(Finding("signoff-unchecked", "warning", message, fix, policy.gold))
    if diff.old is None and not policy:
        return GoldReview(findings=tuple(findings))
    review = _with_impact(context, diff)
    review = review._replace(findings=(*findings, *review.findings))
    if not policy:
        return review
    known = NO_PROOF._replace(approvals=(), authors=()) if authority.people else NO_PROOF
    level = SignedAt(policy.require, is_enforced(context), proves(policy), tuple(unchecked(policy, known)))
    return review._replace(signed_at=level)


def _with_impact(context: ReviewContext, diff: GoldDiff) -> GoldReview:
    """Return the effects of the gold change by the settings of the change, and by those of the base if they differ."""
    run, base, head = context.run, context.base, context.head
    review = _impact(context, run, diff)
    if not (base and diff.changes and diff.old) or base.settings == head.settings:
        return review
    # Looser settings may let a gate or a case pass on the old gold, too, so that the change of the gold has no effect.
    as_base = _impact(context, rescore(run, base._replace(gold=head.gold, trace=head.trace)), diff)
    more = [finding for finding in as_base.findings if finding not in review.findings]
    more = [finding._replace(message=f"{finding.message}; by the settings of the base branch") for finding in more]
    turns = dict.fromkeys((*review.turns, *as_base.turns))
    return review._replace(turns=tuple(turns), findings=(*review.findings, *more))


def _impact(context: ReviewContext, run: ScoredRun, diff: GoldDiff) -> GoldReview:
    """Return the effects of the gold change on the cases and gates of a run, by its settings."""
    authority, head, file, findings = context.authority, context.head, context.head.gold, list[Finding]()
    past = rescore_on(run, diff.old) if diff.changes and diff.old else None
    before: dict[str, str] = {}
    if past and run.earlier:  # of removed questions nothing is known but the labels in the baseline
        gone = {change.qid for change in diff.changes if change.verb == "removed"}
        before = gold_impact.labels(case for case in run.earlier.recorded.questions if case.qid in gone)
    before |= gold_impact.labels(past.report.questions) if past else {}
    changes = gold_impact.gold_changes(diff.changes, before, gold_impact.labels(run.report.questions))
    if changes:
        named = (file, head.file, head.trace, sidecar_of(head.trace))
        skipped = {inside for name in named if name and (inside := authority.inside(name))}
        skipped |= {f"{policy.records}/" for policy in signoff_policies(context)}
        others = differing(authority.fork, authority.after, skipped)
        answered = {case.qid for case in past.report.questions if case.trace_line} if past else set()
        golds = [side.golds if side else {} for side in (diff.old, diff.new)]
        findings += gold_impact.findings(changes, file, others, answered, *golds)
    if past is None or diff.old is None or diff.new is None:
        return GoldReview(tuple(changes), (), tuple(findings))
    policy = context.base or head
    old = rejudge(past.report, by_conversation(policy, diff.old.golds), past.earlier)
    new = rejudge(run.report, policy, run.earlier)
    freed_gates = list(loosened_gates(old.gates, new.gates))
    missing = len(diff.old.golds.keys() - {case.qid for case in past.report.questions})
    findings += gold_impact.gates_that_pass_now(freed_gates, file, missing)
    findings += gold_impact.regrouped(freed_gates, diff.old.golds, diff.new.golds, file, policy.statistics.cluster)
    findings += gold_impact.turning_must_pass(old.findings, new.findings, file)
    findings += gold_impact.fewer_cases(*_case_counts(old, new, run.earlier, policy), file)
    findings += gold_impact.lost_labels(diff.changes, diff.old.golds, diff.new.golds, file)
    findings += _item_findings(context, diff.old, diff.new, [i.qid for i in diff.changes if i.verb != "removed"])
    turns = tuple(gold_impact.gate_turns(old.gates, new.gates))
    notes = gold_impact.written_differently(diff.changes, diff.old.golds, diff.new.golds, file)
    return GoldReview(tuple(changes), turns, tuple(findings), notes=tuple(notes))


def _case_counts(
    old: Report, new: Report, earlier: Earlier | None, policy: Policy
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of cases under gates and ``must_pass``: on the base's gold, and those left on the changed one.

    Cases that a slice loses are not made up for by others that it gets.
    """
    then, now = _counts(old, earlier), {_count_name(gate): gate.n for gate in new.gates}
    before, after = map(_members, (old, new))
    for gate in new.gates:
        if gate.slice and (lost := len(before[gate.slice] - after[gate.slice])):
            name = _count_name(gate)
            now[name] = min(now[name], max(0, then.get(name, 0) - lost))
    cases, left = (set().union(*(members[name] for name in policy.must_pass)) for members in (before, after))
    then["must_pass"], now["must_pass"] = len(cases), len(cases & left)
    return then, now


def _members(report: Report) -> dict[str, set[tuple[str, str | None]]]:
    """Return the cases, by question and run, of each question and slice."""
    members = defaultdict[str, set[tuple[str, str | None]]](set)
    for case in report.questions:
        for name in (case.qid, *case.slices):
            members[name].add((case.qid, case.run))
    return members


def _counts(old: Report, earlier: Earlier | None) -> dict[str, int]:
    """Return the number of cases under each gate on the base's gold: of this run, or of the baseline if it has more."""
    recorded = earlier.recorded.metrics if earlier and earlier.recorded.scope is None and old.scope is None else {}
    counts: dict[str, int] = {}
    for gate in old.gates:
        is_recorded = gate.name in recorded and not gate.slice and gate.direction in BOUNDS
        counts[_count_name(gate)] = max(gate.n, recorded[gate.name].n if is_recorded else 0)
    return counts


def _count_name(gate: GateResult) -> str:
    """Return the name of a count of cases; a regression gate counts pairs of questions instead."""
    return gate.label if gate.direction in BOUNDS else f"{gate.label} {gate.direction}"


def compare(context: ReviewContext) -> GoldDiff:
    """Compare the scored gold with the gold that the base's policy names; raise InputError if that is unreadable."""
    authority, run, scored_path = context.authority, context.run, context.head.gold
    stored = stored_at(authority, authority.fork, gold_path(context, authority.fork), run.inputs.base_limits)
    new = run.inputs.gold
    if stored is None:
        return GoldDiff(tuple(GoldChange(qid, "added") for qid in sorted(new.golds)), None, new)
    data = None if stored.folder else next(iter(stored.files.values()))
    committed = _scored_bytes(context)
    if data is not None and data == committed:
        return GoldDiff()
    if data is not None and (pointer := LFS.match(data)):
        same = pointer[1].decode() == run.gold_sha256
        return GoldDiff(not_comparable="" if same else f"{quoted(stored.path)} is in Git LFS on the base")
    old = stored_gold_set(stored)
    if committed is not None and hashlib.sha256(committed).hexdigest() != run.gold_sha256:  # a checkout changed it
        scored = StoredGold(scored_path, scored_path, {scored_path: committed}, limits=run.inputs.reader.limits)
        new = stored_gold_set(scored)
    changed = [qid for qid in sorted(old.golds.keys() | new.golds.keys()) if old.differs(qid, new)]
    if merged := _merged_since(context, new, changed):
        changed = [qid for qid in changed if qid not in merged]
        golds = {qid: gold for qid, gold in old.golds.items() if qid not in merged}
        hashes = {qid: digest for qid, digest in old.hashes.items() if qid not in merged}
        both = merged & new.golds.keys()
        golds |= {qid: new.golds[qid] for qid in both}
        old = old._replace(golds=golds, hashes=hashes | {qid: new.hashes[qid] for qid in both})
    changes = []
    for qid in changed:
        before, after = old.golds.get(qid), new.golds.get(qid)
        if before and after:
            mutation = (before.question, before.answerable) != (after.question, after.answerable)
            changes.append(GoldChange(qid, "changed", mutation))
        else:
            changes.append(GoldChange(qid, "removed" if before else "added"))
    return GoldDiff(tuple(changes), old, new)


def gold_path(context: ReviewContext, tree: Tree) -> str | None:
    """Return the path of the gold of ``tree``: the caller's if it exists there, otherwise the base gates' path.

    Without gates on the base it is the path of the scored gold, otherwise the usual one if no gates are about that.
    """
    authority = context.authority
    named = named_gold(context)
    if named and has_path(tree, named):
        return named
    if context.base:
        return gold_named_by(authority, context.base, tree)
    usual = str(Path(context.options.folder, DEFAULT_GOLD))
    is_of_others = bool(gates_about(authority, usual, context.run.inputs.reader))
    paths = map(authority.inside, [context.head.gold] if is_of_others else [context.head.gold, usual])
    return next((path for path in paths if path and has_path(tree, path)), None)


def _scored_bytes(context: ReviewContext) -> bytes | None:
    """Return the scored file as git has it; None if it is a folder or not in git."""
    path = context.authority.inside(context.head.gold)
    try:
        is_file = path is not None and context.authority.after.files(path)
    except Irregular:
        return None
    return read(context.authority.head, path) if path and is_file else None


def _refuse_other_bytes(context: ReviewContext) -> None:
    """Raise InputError if the gold file is no longer the one that was scored: a step of the job may swap it."""
    head, path = context.authority.head, context.authority.inside(context.head.gold)
    data = head.checked_out(path) if path else None
    if data is not None and hashlib.sha256(data).hexdigest() != context.run.gold_sha256:
        fix = "Run again, and let no other program write the file."
        raise InputError([Problem(context.head.gold, 0, "", "was changed while the run was scored", fix)])


def _merged_since(context: ReviewContext, new: GoldSet, changed: list[str]) -> set[str]:
    """Return the qids whose items the base has in this change's form, but did not have when the change began.

    They come from an earlier part of the change that was merged already, as with stacked pull requests.
    """
    tip = context.authority.used_records
    path = gold_path(context, tip) if changed and tip is not NOTHING else None
    inputs = context.run.inputs
    try:
        stored = stored_at(context.authority, tip, path, inputs.base_limits)
        now = stored_gold_set(stored) if stored else None
    except InputError:
        return set()
    return {qid for qid in changed if not now.differs(qid, new)} if now else set()


def _item_findings(context: ReviewContext, old: GoldSet, new: GoldSet, qids: Sequence[str]) -> Iterator[Finding]:
    """Yield a warning for each new finding of `gold lint` in the changed items."""
    if not qids:
        return
    inputs, policy = context.run.inputs, context.base or context.head
    silent = inputs.reader.silent()
    traces = paired_traces(silent, inputs.golds, inputs.policy.trace)
    seen = watch(inputs.golds, islice(traces, _ANSWERS), inputs.policy.settings)

    def lint(golds: GoldSet) -> dict[tuple[str, str, str], int]:
        items = [golds.golds[qid] for qid in qids if qid in golds.golds]
        sample = GoldSample(items, policy, seen, before=old.golds)
        notes = [(code, message, gold) for code in RULES for message, _, gold in CHECKS[code](sample)]
        return {(code, gold.qid if gold else "", message): gold.line if gold else 0 for code, message, gold in notes}

    known = lint(old)
    weak = {key: line for key, line in lint(new).items() if key not in known}
    for (code, qid, message), line in list(weak.items())[:_SHOWN]:
        where = f"{qid}: " if qid else "in the changed items, "
        more = f" (and {quantity(len(weak) - _SHOWN, 'more finding')})" if len(weak) > _SHOWN else ""
        text = f"{where}{message} ({code}){more}"
        fix = "Correct the item. To list all weak items, run: rag-eval gold lint"
        yield Finding("changed-item-weak", "warning", text, fix, context.head.gold, line)
