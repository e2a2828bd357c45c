"""Review of the gold of a change under test: its changes, who signed them, and their effects on this run's cases.

The sign-off policies of both sides apply.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from rag_eval import git
from rag_eval.analysis import Earlier, Report, SignedAt, gold_impact
from rag_eval.analysis.gold_impact import GateTurn, GoldChange, changed_fields
from rag_eval.analysis.judging import rejudge
from rag_eval.analysis.policy_changes import loosened_gates
from rag_eval.common.escaping import quantity, quoted
from rag_eval.common.paths import sidecar_of
from rag_eval.contract import DEFAULT_GOLD
from rag_eval.errors import Finding, InputError, Note, Problem, UsageError
from rag_eval.gates import BOUNDS, GateResult, Policy
from rag_eval.gates.selection import by_conversation
from rag_eval.gold import signoff_repository
from rag_eval.gold.item_checks import GoldSample
from rag_eval.gold.lint import CHECKS, watch
from rag_eval.gold.signoff_identity import NO_PROOF, SignoffPolicy, proves, signoff_policy, unchecked
from rag_eval.gold.signoff_repository import GoldStates
from rag_eval.readers.gold_file import GoldSet, StoredGold, stored_gold_set
from rag_eval.readers.jsonl import paired_traces
from rag_eval.readers.source import PACKED
from rag_eval.run import Options
from rag_eval.run.authority import Authority
from rag_eval.run.base_policy import gates_about, gold_named_by, stored_at
from rag_eval.run.scored_run import ScoredRun, rescore, rescore_on

RULES = tuple(
    "no-substr substr-white-space substr-character substr-refusal substr-in-question substr-stop-words "
    "substr-in-citation substr-common no-citation expected-without-substr question-blank".split()
)
"""The rules of `gold lint` that say that an item judges too little."""
_TWICE = ("question-duplicate", "question-contradiction")
"""The rules about questions that count twice. They also depend on the unchanged items."""
_SHOWN = 5
_Counts = dict[str, int]
_ANSWERS = 20_000  # of the run, in which a substring is searched
_OF_ITEMS = {"unsigned-change", "replayed-record"}
_ASK = "To require a sign-off, write in eval-gates.yml: signoff: {require: record}."
_LFS = re.compile(rb"(?sm)version https://git-lfs\.github\.com/spec/.*?^oid sha256:([0-9a-f]{64})$")


class ReviewContext:
    """A scored run, its options, and the authority that it is compared with.

    ``head`` is the policy of the pull request, ``base`` that of the base branch; ``policies`` are those that apply.
    """

    def __init__(self, authority: Authority, run: ScoredRun, options: Options) -> None:
        self.authority, self.run, self.options = authority, run, options
        self.head, self.base, self.policies = run.inputs.policy, run.inputs.base, run.inputs.policies


class GoldDiff(NamedTuple):
    """The differences between the scored gold and the gold of the base.

    ``changes`` have no labels. ``old`` is None if the base has no gold. ``not_comparable`` is the reason why the two
    could not be compared.
    """

    changes: tuple[GoldChange, ...] = ()
    old: GoldSet | None = None
    new: GoldSet | None = None
    not_comparable: str = ""


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
        unsigned = _unsigned(context, policies[:1], GoldDiff()) if policies else [_ungoverned(context)]
        return GoldReview(findings=tuple(unsigned))
    diff = compare(context)
    findings, policy = _review_signoff(context, path, diff)
    _refuse_other_bytes(context)
    if diff.old is None and diff.changes and context.base:
        message = "the base branch has no gold set at the path in its gates file, so all items count as new"
        fix = "Name the gold set in the gates file by its path on the base branch."
        findings.append(Finding("gold-not-on-base", "warning", message, fix, file))
    if diff.not_comparable:
        findings.append(_untracked(context, f"cannot be compared: {diff.not_comparable}"))
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
    as_base = _impact(context, rescore(run, replace(base, gold=head.gold, trace=head.trace)), diff)
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
        others = git.differing(authority.fork, authority.after, skipped)
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
    then, in_baseline, now = _case_counts(old, new, run.earlier, policy)
    findings += gold_impact.fewer_cases(then, now, file, in_baseline, missing)
    findings += gold_impact.lost_labels(diff.changes, diff.old.golds, diff.new.golds, file)
    findings += _item_findings(context, diff.old, diff.new, [i.qid for i in diff.changes if i.verb != "removed"])
    turns = tuple(gold_impact.gate_turns(old.gates, new.gates))
    notes = gold_impact.written_differently(diff.changes, diff.old.golds, diff.new.golds, file)
    return GoldReview(tuple(changes), turns, tuple(findings), notes=tuple(notes))


def _case_counts(old: Report, new: Report, earlier: Earlier | None, policy: Policy) -> tuple[_Counts, _Counts, _Counts]:
    """Return the numbers of cases under gates and ``must_pass``: on the base's gold, in the baseline, and those left.

    Cases that a slice loses are not made up for by others that it gets.
    """
    recorded = earlier.recorded.metrics if earlier and earlier.recorded.scope is None and old.scope is None else {}
    now, then = ({_count_name(gate): gate.n for gate in report.gates} for report in (new, old))
    whole = [gate for gate in old.gates if gate.name in recorded and not gate.slice and gate.direction in BOUNDS]
    in_baseline = {_count_name(gate): recorded[gate.name].n for gate in whole}
    before, after = map(_members, (old, new))
    for gate in new.gates:
        if gate.slice and (lost := len(before[gate.slice] - after[gate.slice])):
            name = _count_name(gate)
            now[name] = min(now[name], max(0, then.get(name, 0) - lost))
    cases, left = (set().union(*(members[name] for name in policy.must_pass)) for members in (before, after))
    then["must_pass"], now["must_pass"] = len(cases), len(cases & left)
    return then, in_baseline, now


def _members(report: Report) -> dict[str, set[tuple[str, str | None]]]:
    members = defaultdict[str, set[tuple[str, str | None]]](set)
    for case in report.questions:
        for name in (case.qid, *case.slices):
            members[name].add((case.qid, case.run))
    return members


def _count_name(gate: GateResult) -> str:
    """Return the name of a count of cases; a regression gate counts pairs of questions instead."""
    return gate.label if gate.direction in BOUNDS else f"{gate.label} {gate.direction}"


def _review_signoff(
    context: ReviewContext, path: str | None, diff: GoldDiff
) -> tuple[list[Finding], SignoffPolicy | None]:
    """Return the sign-off findings and the sign-off policy of the gold, None if it has none."""
    if path is None:
        return [_untracked(context, "is outside the repository")], None
    try:
        blob = git.read(context.authority.after, path)
    except git.Irregular as error:
        if not git.is_folder(error, path):
            raise
        return [_without_items(context, signoff_repository.no_items(path))], None
    if blob is None:
        return [_untracked(context, "is not in the commit under test")], None
    if _LFS.match(blob):
        is_same = blob == git.read_regular(context.authority.fork, path) and not is_enforced(context)
        why = f"{quoted(path)} is in Git LFS, but sign-off needs the content in git. Keep the gold set out of LFS."
        return [] if is_same else [_without_items(context, why)], None
    if (git.read(context.authority.head, path) or b"").startswith(PACKED):
        return [_without_items(context, signoff_repository.packed(path))], None
    policies = signoff_policies(context)
    policy_of_gold = next((policy for policy in policies if policy.gold == path), None)
    findings = list(_unsigned(context, policies, diff)) if policy_of_gold else [_ungoverned(context)]
    return findings, policy_of_gold or SignoffPolicy(gold=path)


def violations_of_base_policy(context: ReviewContext) -> list[str]:
    """Return the codes that block sign-off of this change now, but not under the head's own policy."""
    if not is_enforced(context):
        return []
    policies, authority = signoff_policies(context), context.authority
    now = {violation.code for policy in policies for violation in _check(context, policy)}
    if now and (authority.signoff == "require" or "signoff" in context.head.stated):
        head_policy = _head_signoff_policy(context)
        now -= {item.code for item in _check(context, head_policy or SignoffPolicy().for_gold(named_gold(context)))}
    return sorted(now)


def signoff_policies(context: ReviewContext) -> list[SignoffPolicy]:
    """Return the sign-off policies that apply: the base's, and the head's if its paths differ."""
    authority = context.authority
    head = _head_signoff_policy(context)
    path = authority.on_base(context.base.file) if context.base else None
    base = signoff_policy_at(context, authority.gates, path)
    first = authority.fork is git.NOTHING or authority.gates is None
    return signoff_repository.policies_in_force(base, head, named_gold(context), first=first)


def _head_signoff_policy(context: ReviewContext) -> SignoffPolicy | None:
    path = context.authority.inside(context.head.file) if context.head.file else None
    return signoff_policy_at(context, context.authority.head, path)


def signoff_policy_at(context: ReviewContext, tree: git.Tree | None, path: str | None) -> SignoffPolicy | None:
    """Return the sign-off policy of a gates file for the scored gold, None without one."""
    data = git.read(tree, path) if tree and path else None
    return None if data is None or path is None else signoff_policy(data, path).for_gold(named_gold(context))


def named_gold(context: ReviewContext) -> str | None:
    """Return the path of the gold that the caller named, by the links of the base."""
    path = context.authority.on_base(context.options.gold) if context.options.gold else None
    return git.follow_links(context.authority.fork, path) if path else None


def is_enforced(context: ReviewContext) -> bool:
    """Return whether an unsigned change fails the run, by option or by a policy that applies."""
    asked = context.authority.signoff
    return asked == "require" or (asked == "policy" and any("signoff" in policy.stated for policy in context.policies))


def _unsigned(context: ReviewContext, policies: list[SignoffPolicy], diff: GoldDiff) -> Iterator[Finding]:
    """Yield the findings about changes without a sign-off, by all these policies."""
    if context.authority.signoff == "off":
        yield Finding("signoff-off", "warning", "signoff: off turns off the sign-off check")
        return
    enforced = is_enforced(context)
    try:
        violations = [finding for policy in policies for finding in _check(context, policy)]
    except (InputError, UsageError) as error:  # such as gold that is packed on one side: sign-off reads lines
        if enforced:
            raise
        yield _without_items(context, error.first)
        return
    is_same = not diff.changes and not diff.not_comparable  # the gold set may still have another path
    if enforced:
        yield from violations
    elif violations and not (is_same and _OF_ITEMS.issuperset(finding.code for finding in violations)):
        count = quantity(len(diff.changes), "change")
        what = f"{count} of the gold set" if diff.changes else "the sign-off of the gold set changed"
        message = f"{what}, and no policy requires a sign-off"
        yield Finding("gold-not-governed", "warning", message, _ASK, context.head.gold)


def _check(context: ReviewContext, policy: SignoffPolicy) -> list[Finding]:
    authority, has_no_base = context.authority, context.authority.gates is None
    # A branch's name may contain shell commands.
    since = "--baseline" if has_no_base else f"--base {shlex.quote(authority.ref)}"
    since += " --key ~/.ssh/id_ed25519" if policy.require == "signature" else ""
    states = GoldStates(authority.fork, authority.head, authority.ref, authority.used_records, has_no_base)
    states = states._replace(restore=authority.commit or authority.ref, rules=authority.gates)
    return signoff_repository.findings(states, policy, f"rag-eval gold signoff {since} --reason '…'", authority.people)


def _ungoverned(context: ReviewContext) -> Finding:
    message = "the scored gold set is not the one in the sign-off policy"
    fix = "Name the same gold file in the gates file and under signoff."
    return _unsure(context, "gold-not-governed", message, fix)


def _untracked(context: ReviewContext, where: str) -> Finding:
    """Return the finding that nobody knows who signed changes of gold that git does not have."""
    message = f"the gold set {where}, so the signers of its changes are unknown"
    return _unsure(context, "gold-not-in-git", message, "Commit the gold set.")


def _without_items(context: ReviewContext, why: str) -> Finding:
    message, _, fix = why.partition(". ")
    return _unsure(context, "gold-not-in-items", message, fix)


def _unsure(context: ReviewContext, code: str, message: str, fix: str) -> Finding:
    return Finding(code, "error" if is_enforced(context) else "warning", message, fix, context.head.gold)


def compare(context: ReviewContext) -> GoldDiff:
    """Compare the scored gold with the gold that the base's policy names; raise InputError if that is unreadable."""
    authority, run, scored_path = context.authority, context.run, context.head.gold
    stored = stored_at(authority, authority.fork, _gold_path(context, authority.fork), run.inputs.base_limits)
    new = run.inputs.gold
    if stored is None:
        return GoldDiff(tuple(GoldChange(qid, "added") for qid in sorted(new.golds)), None, new)
    data = None if stored.folder else next(iter(stored.files.values()))
    committed = _scored_bytes(context)
    if data is not None and data == committed:
        return GoldDiff()
    if data is not None and (pointer := _LFS.match(data)):
        same = pointer[1].decode() == run.gold_sha256
        return GoldDiff(not_comparable="" if same else f"{quoted(stored.path)} is in Git LFS on the base")
    old = stored_gold_set(stored)
    if committed is not None and hashlib.sha256(committed).hexdigest() != run.gold_sha256:  # a checkout changed it
        scored = StoredGold(scored_path, scored_path, {scored_path: committed}, limits=run.inputs.reader.limits)
        new = stored_gold_set(scored)
    changed = [qid for qid in sorted(old.golds.keys() | new.golds.keys()) if old.differs(qid, new)]
    tip = gold_at(context, authority.used_records) if changed else None
    # An earlier part of the change may be merged already, as with stacked pull requests: the base has its items.
    if tip and (merged := {qid for qid in changed if not tip.differs(qid, new)}):
        changed = [qid for qid in changed if qid not in merged]
        golds = {qid: gold for qid, gold in old.golds.items() if qid not in merged}
        hashes = {qid: digest for qid, digest in old.hashes.items() if qid not in merged}
        both = merged & new.golds.keys()
        golds |= {qid: new.golds[qid] for qid in both}
        old = replace(old, golds=golds, hashes=hashes | {qid: new.hashes[qid] for qid in both})
    changes = []
    for qid in changed:
        before, after = old.golds.get(qid), new.golds.get(qid)
        if before and after:
            mutation = (before.question, before.answerable) != (after.question, after.answerable)
            is_same = not changed_fields(before, after)
            changes.append(GoldChange(qid, "reformatted" if is_same else "changed", mutation))
        else:
            changes.append(GoldChange(qid, "removed" if before else "added"))
    return GoldDiff(tuple(changes), old, new)


def _gold_path(context: ReviewContext, tree: git.Tree) -> str | None:
    """Return the path of the gold of ``tree``: the caller's if it exists there, otherwise the base gates' path.

    Without gates on the base it is the path of the scored gold, otherwise the usual one if no gates are about that.
    """
    authority = context.authority
    named = named_gold(context)
    if named and git.has_path(tree, named):
        return named
    if context.base:
        return gold_named_by(authority, context.base, tree)
    usual = str(Path(context.options.folder, DEFAULT_GOLD))
    is_of_others = bool(gates_about(authority, usual, context.run.inputs.reader))
    paths = map(authority.inside, [context.head.gold] if is_of_others else [context.head.gold, usual])
    return next((path for path in paths if path and git.has_path(tree, path)), None)


def _scored_bytes(context: ReviewContext) -> bytes | None:
    """Return the scored file as git has it; None if it is a folder or not in git."""
    path = context.authority.inside(context.head.gold)
    try:
        is_file = path is not None and context.authority.after.files(path)
    except git.Irregular:
        return None
    return git.read(context.authority.head, path) if path and is_file else None


def _refuse_other_bytes(context: ReviewContext) -> None:
    """Raise InputError if the gold file is no longer the one that was scored: a step of the job may swap it."""
    head, path = context.authority.head, context.authority.inside(context.head.gold)
    data = head.checked_out(path) if path else None
    if data is not None and hashlib.sha256(data).hexdigest() != context.run.gold_sha256:
        fix = "Run again, and let no other program write the file."
        raise InputError([Problem(context.head.gold, 0, "", "was changed while the run was scored", fix)])


def gold_at(context: ReviewContext, tree: git.Tree) -> GoldSet | None:
    """Return the gold of a state of the base; None if it has none that can be read."""
    if tree is git.NOTHING:
        return None
    try:
        stored = stored_at(context.authority, tree, _gold_path(context, tree), context.run.inputs.base_limits)
        return stored_gold_set(stored) if stored else None
    except InputError:
        return None


def _item_findings(context: ReviewContext, old: GoldSet, new: GoldSet, qids: Sequence[str]) -> Iterator[Finding]:
    """Yield a warning for each new finding of `gold lint` in the changed items."""
    if not qids:
        return
    inputs, policy = context.run.inputs, context.base or context.head
    traces = paired_traces(inputs.reader.silent(), inputs.golds, inputs.policy.trace)
    seen = watch(inputs.golds, islice(traces, _ANSWERS), inputs.policy.settings)
    questions = [[side.golds[qid].question for qid in qids if qid in side.golds] for side in (old, new)]
    asks_more = questions[0] != questions[1]

    def lint(golds: GoldSet) -> dict[tuple[str, str, str], int]:
        items = [golds.golds[qid] for qid in qids if qid in golds.golds]
        sample = GoldSample(items, policy, seen, before=old.golds)
        notes = [(code, message, gold) for code in RULES for message, _, gold in CHECKS[code](sample)]
        # A turn of a conversation may repeat a question that means something else.
        single = (gold for gold in golds.golds.values() if asks_more and gold.conversation is None)
        repeated = GoldSample(single, policy)
        notes += [(code, message, gold) for code in _TWICE for message, _, gold in CHECKS[code](repeated)]
        return {(code, gold.qid if gold else "", message): gold.line if gold else 0 for code, message, gold in notes}

    known = lint(old)
    weak = {key: line for key, line in lint(new).items() if key not in known}
    for (code, qid, message), line in list(weak.items())[:_SHOWN]:
        where = f"{qid}: " if qid else "in the changed items, "
        more = f" (and {quantity(len(weak) - _SHOWN, 'more finding')})" if len(weak) > _SHOWN else ""
        fix = "Correct the item. To list all weak items, run: rag-eval gold lint"
        yield Finding("changed-item-weak", "warning", f"{where}{message} ({code}){more}", fix, context.head.gold, line)
