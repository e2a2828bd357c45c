"""Effects of a change on its own evaluation, and who decides. Read :mod:`rag_eval.run.authority` first.

The gates of both sides apply: a change may tighten at once; loosened gates take effect when it is merged.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from rag_eval.analysis.policy_changes import PolicyChange, PolicyEffects, changes, loosened_gates
from rag_eval.analysis.report import Base, InputNote, integrity_findings, levels, rejudge, with_diagnosis, with_verdict
from rag_eval.common.escaping import quantity, quoted, some
from rag_eval.common.paths import GATES_FILES
from rag_eval.contract import DEFAULT_GOLD
from rag_eval.errors import Finding
from rag_eval.gates.integrity import WHOLE_RUN_CHECKS, commit_of
from rag_eval.gates.policy import merged
from rag_eval.gates.selection import scope_of
from rag_eval.git.snapshots import Irregular, read_regular
from rag_eval.governance import gold_review, verdict_review
from rag_eval.governance.review_context import ReviewContext
from rag_eval.readers.gates_file import in_folder_of, policy_of
from rag_eval.readers.problems import ProblemCollector
from rag_eval.run.base_policy import gates_about, gold_named_by, standard_gates_paths
from rag_eval.run.scored import rescore

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.gates.policy import GateResult, Policy
    from rag_eval.git.snapshots import Tree
    from rag_eval.run.authority import Authority
    from rag_eval.run.scored import ScoredRun

_BY_BASELINE = ("must-pass-broken", "must-pass-gone", "must-pass-unjudged", "must-pass-unknown", "slices-disagree")


_NAMED = 5  # keys that are named in one note
_BY_BASE = "as set by the gates file of the base branch"
_ONLY = "Name the file only in the gates file."


def review(run: ScoredRun, authority: Authority) -> Report:
    """Return the report with the base branch's judgement of this run, and the effects on gates, policies and gold."""
    context = ReviewContext(authority, run)
    report = run.report
    gold = gold_review.review_gold(context)
    verdicts, notes = verdict_review.review_verdicts(context)
    findings = [
        *report.findings,
        *integrity_findings(context.run.card, *context.policies),
        *gold.findings,
        *verdicts,
        *_override_findings(context),
        *_wrong_checkout(context),
        *_foreign_gates_ref(context),
        *_without_base_gates(context),
        *_other_questions(context),
    ]
    kind: Literal["base", "head", "bootstrap"]
    kind = "head" if authority.gates is None else "base" if context.base else "bootstrap"
    base = Base(kind, authority.ref, authority.commit, authority.through)
    report = report._replace(findings=tuple(_sorted(findings)), base=base, signed_at=gold.signed_at)
    report = report._replace(gold_changes=gold.changes, gate_turns=gold.turns, notes=(*report.notes, *notes))
    return with_verdict(_with_base(report, context, context.base) if context.base else report)


def _with_base(report: Report, context: ReviewContext, base: Policy) -> Report:
    """Judge the base's gates by the values as the base defines them, and the integrity checks likewise."""
    redefined = rejudge(report, base, context.earlier)
    other = None if _same_meaning(base, context.head) else rescore(context.run, base)
    scored = _on_the_scored_files(context, base, redefined)
    judged = _worse_outcomes((other or redefined).gates, scored.gates if scored else ())
    errors, head_levels = {error.code for error in report.errors}, levels(context.head)
    freed_findings = {
        "signoff": gold_review.violations_of_base_policy(context),
        # Codes that fail this run, and would not if only the levels of the head applied.
        "integrity": sorted({code for code in errors if head_levels.get(code, "error") != "error"}),
    }
    again = [report_of for report_of in (other, scored) if report_of not in (None, redefined)]
    meant = list(
        dict.fromkeys(changed for changed_report in again for changed in _findings_under_base(report, changed_report))
    )
    new_errors = sorted({finding.code for finding in meant if finding.level == "error"} - errors)
    effects = PolicyEffects(judged, redefined.gates, report.gates, freed_findings, new_errors)
    changed, base_notes = _without_base_changes(changes(base.stated, context.head.stated, effects), context, base)
    changed = [*_gates_file_change(context, base, effects), *changed, *gold_review.key_changes(context)]
    findings = [
        *report.findings,
        *(changed_report for changed_report in redefined.findings if changed_report.code in _BY_BASELINE),
        *meant,
    ]
    gates = tuple(merged(judged, report.gates))
    scope = scope_of(context.policies, report.scope.questions, report.scope.of) if report.scope else None
    report = report._replace(notes=(*report.notes, *base_notes))
    report = report._replace(gates=gates, policy_changes=tuple(changed), findings=tuple(_sorted(findings)), scope=scope)
    return with_diagnosis(report)


def _on_the_scored_files(context: ReviewContext, base: Policy, redefined: Report) -> Report | None:
    """Return the run under the base's settings, on the scored gold and traces, not the files that the base names.

    The files that the base names may be older or easier than the scored ones.
    """
    policy = base._replace(gold=context.head.gold, trace=context.head.trace)
    if policy == base:
        return None
    return redefined if _same_meaning(policy, context.head) else rescore(context.run, policy)


def _worse_outcomes(gates: Sequence[GateResult], others: Sequence[GateResult]) -> tuple[GateResult, ...]:
    """Return each gate's outcome on two sets of files: the one that fails the run, else the failed one."""
    also = {(other.label, other.direction): other for other in others}
    pairs = ((gate, also.get((gate.label, gate.direction), gate)) for gate in gates)
    return tuple(max(pair, key=lambda item: (item.blocks, item.broken)) for pair in pairs)


def _without_base_changes(
    changed: list[PolicyChange], context: ReviewContext, base: Policy
) -> tuple[list[PolicyChange], list[InputNote]]:
    """Split the differences from the base into changes of this branch, and a note on changes of the base since."""
    touched = _changed_keys(context, base)
    base_keys = [
        change.key
        for change in changed
        if touched is not None and not any(_overlap(change.key, key) for key in touched)
    ]
    if not base_keys:
        return changed, []
    ref = quoted(context.authority.ref, 60)
    keys = some(base_keys, _NAMED, quoted)
    message = f"{ref} has changed {keys} since this branch left it, and its version applies. Rebase to get it"
    return [change for change in changed if change.key not in base_keys], [InputNote(base.file, 0, message, 1)]


def _changed_keys(context: ReviewContext, base: Policy) -> set[str] | None:
    """Return the gates file's keys that the change touched; None if it began at the base, or if unknown."""
    began, path = context.authority.fork_of_gates, context.authority.inside(base.file)
    data = read_regular(began, path) if began and path else None
    policy = None if data is None else policy_of(data, base.file, ProblemCollector())
    return None if policy is None else {change.key for change in changes(policy.stated, context.head.stated)}


def _overlap(key: str, other: str) -> bool:
    """Return whether a key equals, contains or is below the other."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _findings_under_base(report: Report, other: Report) -> list[Finding]:
    """Return the findings with values, traces and gold of the base's gates file instead of the change's."""
    known = {_without_level(finding) for finding in report.findings}
    habitual = {(finding.code, finding.level) for finding in report.findings if finding.code in WHOLE_RUN_CHECKS}
    habitual |= {(code, "warning") for code, _ in habitual}  # the same integrity check with other numbers
    new = [finding for finding in other.findings if (finding.code, finding.level) not in habitual]
    return [
        finding if _without_level(finding) in known else finding._replace(message=f"{finding.message}; {_BY_BASE}")
        for finding in new
    ]


def _without_level(finding: Finding) -> Finding:
    return finding._replace(level="error", fix="")


def _same_meaning(base: Policy, head: Policy) -> bool:
    return (base.settings, base.gold, base.trace) == (head.settings, head.gold, head.trace)


def _gates_file_change(context: ReviewContext, base: Policy, effects: PolicyEffects) -> list[PolicyChange]:
    """Return the change of the gates file itself: removed, or another one than the base's."""
    old, new = context.authority.inside(base.file), context.head.file and context.authority.inside(context.head.file)
    if old == new:
        return []
    through = tuple(sorted(set(loosened_gates(effects.base, effects.head))))
    return [PolicyChange("the gates file", "looser", json.dumps(old), json.dumps(new) if new else None, through)]


def _wrong_checkout(context: ReviewContext) -> list[Finding]:
    """Return findings if files of another commit are evaluated, or traces come with the change itself."""
    if not context.authority.wrong_checkout:
        return []
    of = commit_of(context.report.run or {})
    is_named = of and any(commit.startswith(of) for commit in context.authority.commits)
    commit = quoted(context.authority.wrong_checkout[:12])
    message = f"the checked-out commit {commit} lacks the last commit of this pull request"
    fix = "Run on pull_request and remove ref from actions/checkout. For forks, see docs/forks.md."
    return [Finding("change-not-checked-out", "warning" if is_named else "error", message, fix)]


def _other_questions(context: ReviewContext) -> list[Finding]:
    qids = context.run.other_questions()
    if not qids:
        return []
    what = f"the traces of {quantity(len(qids), 'question')} were asked another question than the gold has"
    message = f"{what}: {some(qids, _NAMED, quoted)}"
    fix = "Let the system answer the questions of the gold set. In a trace, q is the question that was asked."
    return [Finding("other-question", "warning", message, fix, context.head.trace)]


def _foreign_gates_ref(context: ReviewContext) -> list[Finding]:
    if not context.authority.unknown:
        return []
    message = "gates-ref names a commit that is not in the history of the base branch"
    fix = "Remove gates-ref, or name a commit of the base branch: a pull request could name its own commit."
    return [Finding("gates-from-elsewhere", "warning", f"{message}: {quoted(context.authority.ref, 60)}", fix)]


def _without_base_gates(context: ReviewContext) -> list[Finding]:
    if context.authority.gates is None:
        message = "gates-ref: head uses only the gates of the pull request, which can loosen them"
        fix = "Remove gates-ref to use the gates of the base branch too."
        return [Finding("gates-from-head", "warning", message, fix)]
    if context.base is None:
        message = "the base branch has no gates file of this or the usual name, so only the pull request's gates apply"
        fix = "After the merge they apply to other pull requests."
        if others := gates_about(context.authority, context.head.gold, context.run.inputs.reader):
            message += f"; there, {quoted(others[0], 60)} has gates for the same gold set"
            fix = "Name that file in the workflow, if these gates are meant to replace it."
        return [Finding("bootstrap", "warning", message, fix, context.head.file)]
    return []


def _sorted(findings: Sequence[Finding]) -> list[Finding]:
    """Sort errors first; of duplicates keep the more severe one, whatever either advises."""
    ordered = sorted(
        set(findings), key=lambda entry: (entry.level, entry.code, entry.file, entry.line, entry.message, entry.fix)
    )
    first: dict[tuple[object, ...], Finding] = {}
    for finding in ordered:
        first.setdefault(_without_level(finding), finding)
    return list(first.values())


def _override_findings(context: ReviewContext) -> Iterator[Finding]:
    """Yield a warning for each input that differs from what the base names, and for traces that git tracks."""
    if meant := _overridden_path(context, "gold", context.options.gold):
        message = f"an input or option replaces the gold set {quoted(meant)} of the base branch's gates file"
        yield Finding("gold-overridden", "warning", message, _ONLY, context.head.gold)
    if meant := _overridden_path(context, "trace", context.options.trace):
        message = f"an input or option replaces the traces {quoted(meant)} of the base branch's gates file"
        yield Finding("traces-overridden", "warning", message, _ONLY, context.head.trace)
    yield from _gates_override(context)
    stated = context.base.stated.get("k") if context.base else None
    if context.base and stated is not None and int(stated) != context.base.k:
        message = f"an input or option sets k to {context.base.k}, but the base branch's gates file sets {stated}"
        yield Finding("k-overridden", "warning", message, "Set k only in the gates file.", context.head.file)
    yield from _tracked_traces(context)


def _overridden_path(context: ReviewContext, key: str, named: str) -> str | None:
    """Return the path that the base's gates file states if the caller names another one.

    A file without a gold path means the usual one, if the base has it.
    """
    if context.base is None or not named:
        return None
    stated = context.base.stated.get(key)
    meant = context.authority.inside(in_folder_of(context.base.file, stated or DEFAULT_GOLD))
    if stated is None and not (key == "gold" and meant and _has_file(context.authority.fork, meant)):
        return None
    return None if meant == context.authority.inside(named) else meant


def _gates_override(context: ReviewContext) -> Iterator[Finding]:
    """Yield a finding for an unusual gates file although the base has one of the usual name for this gold."""
    tree, options = context.authority.gates, context.options
    named = context.authority.inside(options.gates) if options.gates and not options.is_discovered else None
    if context.base is None or tree is None or named is None:
        return
    usual = named.rpartition("/")[2] in GATES_FILES
    if usual and posixpath.dirname(named) == context.authority.inside(context.options.folder or "."):
        return
    candidates = standard_gates_paths(context.authority, context.options.folder, context.head.gold)
    meant = next((path for path in candidates if _has_file(tree, path)), named)
    nearer = "/" in meant or _gold_of(context, tree, meant) == context.authority.inside(context.head.gold)
    if meant != named and (not usual or (nearer and _has_file(tree, named))):
        message = f"an input or option replaces the gates file {quoted(meant)} of the base branch"
        yield Finding("gates-overridden", "warning", message, "Remove the input or option gates.", context.head.file)


def _gold_of(context: ReviewContext, tree: Tree, gates: str) -> str | None:
    data = read_regular(tree, gates)
    policy = None if data is None else policy_of(data, context.authority.outside(gates), ProblemCollector())
    return gold_named_by(context.authority, policy, tree) if policy else None


def _has_file(tree: Tree, path: str) -> bool:
    try:
        return bool(tree.files(path))
    except Irregular:
        return False


def _tracked_traces(context: ReviewContext) -> Iterator[Finding]:
    if context.authority.gates is None:
        return
    paths = [context.authority.inside(path) for path in (context.head.trace, os.path.realpath(context.head.trace))]
    if any(path and _has_file(context.authority.after, path) for path in paths):
        message = "the traces are committed in git, so they may not be from this run"
        fix = "Write the traces in the job, and add the file to .gitignore."
        yield Finding("traces-tracked", "warning", message, fix, context.head.trace)
