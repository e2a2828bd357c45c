"""Effects of a change on its own evaluation, and who decides. Read :mod:`rag_eval.run.authority` first.

The gates of both sides apply: a change may tighten at once; loosened gates take effect when it is merged.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

from msgspec.structs import replace

from rag_eval.analysis import Base, Report
from rag_eval.analysis.judging import rejudge, with_diagnosis, with_verdict
from rag_eval.analysis.policy_changes import Kind, PolicyChange, PolicyEffects, changes, loosened_gates
from rag_eval.common.escaping import quoted, some
from rag_eval.common.paths import GATES_FILES
from rag_eval.errors import Finding, Note
from rag_eval.gates import WHOLE_RUN_CHECKS, Policy, merge_gates
from rag_eval.gates.integrity import counts_failures, degenerate_findings, levels_of, verdict_findings
from rag_eval.gates.selection import scope_of
from rag_eval.git import has_path, read, read_regular
from rag_eval.governance.circumstances import USUAL, circumstances, review_verdicts, same_meaning, unscored_gold
from rag_eval.governance.gold_review import ReviewContext, review_gold, signoff_policy_at, violations_of_base_policy
from rag_eval.readers.gates_file import in_folder_of
from rag_eval.run import Options
from rag_eval.run.authority import Authority
from rag_eval.run.base_policy import policy_in
from rag_eval.run.scored_run import ScoredRun, rescore

_BY_BASELINE = {
    *"fewer-cases must-pass-broken must-pass-gone must-pass-unjudged must-pass-unknown slices-disagree".split()
}
_NAMED = 5
_MERGE_LEVEL = "The level that this pull request sets applies after its merge: set it in a separate pull request first."
_PATHS = {"baseline": ("report", "trace", "rerun"), "signoff": ("gold", "records", "allowed_signers")}


def review(run: ScoredRun, authority: Authority, options: Options) -> Report:
    """Return the report with the base branch's judgement of this run, and the effects on gates, policies and gold."""
    context = ReviewContext(authority, run, options)
    gold = review_gold(context)
    verdicts, notes = review_verdicts(context)
    added = {change.qid for change in gold.changes if change.verb == "added"}
    findings = [*run.report.findings, *gold.findings, *verdicts, *circumstances(context, added)]
    # Verdicts that the base's gates lack; with other settings of the base, the run is scored again.
    if context.base and same_meaning(context.base, context.head):
        findings += verdict_findings(context.base, run.report.questions, levels_of(*context.policies))
    kind: Literal["base", "head", "bootstrap"]
    kind = "head" if authority.gates is None else "base" if context.base else "bootstrap"
    report = run.report._replace(
        findings=tuple(_sorted(findings)),
        base=Base(kind, authority.ref, authority.commit, authority.through),
        signed_at=gold.signed_at,
        gold_changes=gold.changes,
        gate_turns=gold.turns,
        notes=(*notes, *gold.notes, *unscored_gold(context), *run.report.notes),
    )
    return with_verdict(_with_base(report, context, context.base) if context.base else report)


def _with_base(report: Report, context: ReviewContext, base: Policy) -> Report:
    """Judge the base's gates by the values as the base defines them, and the integrity checks likewise.

    They are also judged on the scored gold and traces: the files that the base names may be older or easier.
    """
    head, run = context.head, context.run
    redefined = rejudge(report, base, context.run.earlier)
    other = None if same_meaning(base, head) else rescore(run, base).report
    scored, on_scored_files = None, replace(base, gold=head.gold, trace=head.trace)
    if on_scored_files != base:
        scored = redefined if same_meaning(on_scored_files, head) else rescore(run, on_scored_files).report
    # Of each gate's two outcomes the one counts that fails the run, otherwise the failed one.
    also = {(gate.label, gate.direction): gate for gate in (scored.gates if scored else ())}
    pairs = [(gate, also.get((gate.label, gate.direction), gate)) for gate in (other or redefined).gates]
    judged = tuple(max(pair, key=lambda gate: (gate.blocks, gate.broken)) for pair in pairs)
    errors, head_levels = {error.code for error in report.errors}, levels_of(head)
    freed_findings = {
        "signoff": violations_of_base_policy(context),
        # Codes that fail this run, and would not if only the levels of the head applied.
        "integrity": sorted({code for code in errors if head_levels.get(code, "error") != "error"}),
    }
    again = [item for item in (other, scored) if item not in (None, redefined)]
    meant = list(dict.fromkeys(finding for item in again if item for finding in _findings_under_base(report, item)))
    new_errors = sorted({finding.code for finding in meant if finding.level == "error"} - errors)
    guarded = sorted({*errors, *new_errors}.intersection(_warned_about(context, base)))
    effects = PolicyEffects(judged, redefined.gates, report.gates, freed_findings, new_errors, guarded)
    changed, notes = _without_base_changes(changes(base.stated, _stated(head, base), effects), context, base)
    old, new = context.authority.on_base(base.file), head.file and context.authority.inside(head.file)
    if old != new:
        through = tuple(sorted(set(loosened_gates(effects.base, effects.head))))
        usual = {posixpath.join(posixpath.dirname(old or ""), name) for name in GATES_FILES}
        kind: Kind = "neutral" if not through and {old, new} <= usual else "looser"
        moved = PolicyChange("the gates file", kind, json.dumps(old), json.dumps(new) if new else None, through)
        changed = [moved, *changed]
        notes += _copied_gates(context.authority, old, new, head.file)
    of_base = {*freed_findings["integrity"]}
    findings = [
        *(item._replace(fix=_MERGE_LEVEL) if item.code in of_base else item for item in report.findings),
        *(finding for finding in redefined.findings if finding.code in _BY_BASELINE),
        *meant,
    ]
    report = report._replace(
        gates=tuple(merge_gates(judged, report.gates)),
        policy_changes=(*changed, *_key_changes(context)),
        findings=tuple(_sorted(findings)),
        scope=scope_of(context.policies, report.scope.questions, report.scope.of) if report.scope else None,
        notes=(*report.notes, *notes),
    )
    return with_diagnosis(report)


def _warned_about(context: ReviewContext, base: Policy) -> Iterator[str]:
    """Yield the codes that are no errors for the head alone, because it has gates on what they find."""
    head, card = context.head, context.run.card
    alone = {
        finding.code for finding in degenerate_findings(card.cases.outcome_counts, head) if finding.level == "warning"
    }
    yield from (code for code in alone if levels_of(head)[code] == "error")
    if counts_failures([head]) and not counts_failures([base]):
        yield "partly-measured"


def _without_base_changes(
    changed: list[PolicyChange], context: ReviewContext, base: Policy
) -> tuple[list[PolicyChange], list[Note]]:
    """Split the differences from the base into changes of this branch, and a note on changes of the base since."""
    authority = context.authority
    policy = policy_in(authority.fork_of_gates, authority.on_base(base.file), base.file)
    if policy is None:
        return changed, []
    touched = [f"{change.key}." for change in changes(policy.stated, _stated(context.head, policy))]

    def is_of_base(key: str) -> bool:  # no touched key equals, contains or is below it
        return not any(f"{key}.".startswith(other) or other.startswith(f"{key}.") for other in touched)

    base_keys = [change.key for change in changed if is_of_base(change.key)]
    if not base_keys:
        return changed, []
    ref, keys = quoted(authority.ref, 60), some(base_keys, _NAMED, quoted)
    message = f"{ref} has changed {keys} since this branch left it, and its version applies. Rebase to get it"
    return [change for change in changed if change.key not in base_keys], [Note(base.file, 0, message)]


def _stated(head: Policy, base: Policy) -> dict[str, Any]:
    """Return the content of the head's gates file, with the base's text for each path to the same file."""

    def with_paths(old: Mapping[str, Any], new: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        known = [name for name in names if name in old and name in new]
        same = [name for name in known if in_folder_of(base.file, old[name]) == in_folder_of(head.file, new[name])]
        return {**new, **{name: old[name] for name in same}}

    stated = with_paths({**USUAL, **base.stated}, {**USUAL, **head.stated}, ("gold", "trace", "verdicts"))
    for section, names in _PATHS.items():
        if section in stated:
            stated[section] = with_paths(base.stated.get(section, {}), stated[section], names)
    return stated


def _copied_gates(authority: Authority, old: str | None, new: str | None, file: str) -> Iterator[Note]:
    """Yield a note if gates of the base also apply to a gates file that the change adds, as for a new system."""
    before, after = authority.gates, authority.after
    if old and new and before and read_regular(after, old) is not None and not has_path(before, new):
        message = f"the gates of {quoted(old, 60)} apply too, because some of their questions are asked here"
        yield Note(file, 0, f"{message}. To add another system, first merge its folder")


def _key_changes(context: ReviewContext) -> list[PolicyChange]:
    """Return the keys that the change adds to the base's allowed-signers file, and those that it removes."""
    authority, base = context.authority, context.base
    policy = signoff_policy_at(context, authority.gates, authority.on_base(base.file)) if base else None
    if not policy or not policy.allowed_signers:
        return []

    def lines_of(data: bytes | None) -> set[str]:
        lines = (line.strip() for line in (data or b"").decode("utf-8", "replace").split("\n"))
        return {line for line in lines if line and not line.startswith("#")}

    file, began = policy.allowed_signers, authority.fork_of_gates
    old, new = (lines_of(read(tree, file) if tree else None) for tree in (authority.gates, authority.head))
    then = lines_of(read_regular(began, file)) if began else old  # later changes of the base are not this change's
    key = f"signoff.allowed_signers: {file}"
    added = [PolicyChange(key, "looser", None, json.dumps(line)) for line in sorted(new - old - then)]
    return added + [PolicyChange(key, "stricter", json.dumps(line), None) for line in sorted((old & then) - new)]


def _findings_under_base(report: Report, other: Report) -> list[Finding]:
    """Return the findings with values, traces and gold of the base's gates file instead of the change's."""
    known = {_without_level(finding) for finding in report.findings}
    habitual = {(finding.code, finding.level) for finding in report.findings if finding.code in WHOLE_RUN_CHECKS}
    habitual |= {(code, "warning") for code, _ in habitual}  # the same integrity check with other numbers
    findings = [finding for finding in other.findings if (finding.code, finding.level) not in habitual]
    after_merge = "What this change sets in the gates file applies after its merge."
    for index, finding in enumerate(findings):
        if _without_level(finding) not in known:
            message = f"{finding.message}; as set by the gates file of the base branch"
            findings[index] = finding._replace(message=message, fix=f"{finding.fix} {after_merge}".strip())
    return findings


def _without_level(finding: Finding) -> Finding:
    return finding._replace(level="error", fix="")


def _sorted(findings: Sequence[Finding]) -> list[Finding]:
    """Sort errors first; of duplicates keep the more severe one, whatever either advises."""
    first: dict[Finding, Finding] = {}
    for finding in sorted(set(findings), key=attrgetter("level", "code", "file", "line", "message", "fix")):
        first.setdefault(_without_level(finding), finding)
    return list(first.values())
