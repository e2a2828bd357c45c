"""Circumstances of a run: what was evaluated, and how its inputs, its workflow and its gates differ from the base's."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain, pairwise

from msgspec.structs import replace

from rag_eval import git
from rag_eval.analysis.judging import rejudge
from rag_eval.analysis.policy_changes import changes
from rag_eval.common.escaping import quantity, quoted, some
from rag_eval.common.paths import GATES_FILES
from rag_eval.contract import DEFAULT_GOLD, DEFAULT_TRACE, Settings, Verdict, parse_reply
from rag_eval.errors import Finding, Level, Note
from rag_eval.gates import Policy
from rag_eval.gates.integrity import at_levels, commit_of, levels_of
from rag_eval.gates.selection import select_measures
from rag_eval.governance.gold_review import ReviewContext, gold_at
from rag_eval.readers.gates_file import in_folder_of, read_verdicts
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run import base_policy
from rag_eval.run.scored_run import rescore

_NAMED, _VERDICTS_NAMED = 5, 3
_ONLY = "Name the file only in the gates file."
_ACTION_FILES = ("action.yml", "action.yaml")
USUAL = {"gold": DEFAULT_GOLD, "trace": DEFAULT_TRACE}  # the files that a gates file means without a path


def same_meaning(base: Policy, head: Policy) -> bool:
    """Return whether two policies score the same files by the same settings."""
    return (base.settings, base.gold, base.trace) == (head.settings, head.gold, head.trace)


def circumstances(context: ReviewContext, added: Collection[str]) -> Iterator[Finding]:
    """Yield findings about what is evaluated and who decides: inputs, checkout, questions, and the gates of the base.

    ``added`` are the qids of the gold items that the change adds.
    """
    yield from _overrides(context)
    yield from _left_gates(context, added)
    yield from _deleted_gates(context)
    authority = context.authority
    if authority.wrong_checkout:
        of, _ = commit_of(context.run.report.run or {})
        is_named = of and any(commit.startswith(of) for commit in authority.commits)
        commit = quoted(authority.wrong_checkout[:12])
        message = f"the checked-out commit {commit} lacks the last commit of this pull request"
        fix = "Run on pull_request and remove ref from actions/checkout."
        yield Finding("change-not-checked-out", "warning" if is_named else "error", message, fix)
    yield from _deciding_gates(context)
    if edited := _edited_workflow(context):
        used = "" if edited == authority.workflow else f"{quoted(edited, 60)}, which is used by "
        message = f"this change edits {used}the workflow that runs this check"
        message += ", so inputs and steps may differ from the base's"
        fix = "Review this file. To have its changes approved, list it in CODEOWNERS."
        yield Finding("workflow-changed", "warning", message, fix, edited)
    if qids := context.run.other_questions():
        what = f"the traces of {quantity(len(qids), 'question')} were asked another question than the gold has"
        fix = "Let the system answer the questions of the gold set. In a trace, q is the question that was asked."
        yield Finding("other-question", "warning", f"{what}: {some(qids, _NAMED, quoted)}", fix, context.head.trace)


def _deciding_gates(context: ReviewContext) -> Iterator[Finding]:
    """Yield findings if other gates decide than those of the base branch, or none."""
    authority = context.authority
    if authority.unknown:
        message = "gates-ref names a commit that is not in the history of the base branch"
        fix = "Remove gates-ref, or name a commit of the base branch: a pull request could name its own commit."
        yield Finding("gates-from-elsewhere", "warning", f"{message}: {quoted(authority.ref, 60)}", fix)
    elif keys := _loosened_elsewhere(context):
        message = f"the commit {quoted(authority.ref, 60)} that gates-ref names is looser than the base branch"
        fix = "Remove gates-ref. A tag or branch that it names can be moved to older gates."
        yield Finding("gates-from-elsewhere", "warning", f"{message} in {some(keys, _NAMED, quoted)}", fix)
    if authority.gates is None:
        message = "gates-ref: head uses only the gates of the pull request, which can loosen them"
        fix = "Remove gates-ref to use the gates of the base branch too."
        yield Finding("gates-from-head", "warning", message, fix)
    elif context.base is None:
        where = f"the commit {quoted(authority.ref, 60)} of gates-ref" if authority.instead_of else "the base branch"
        message = f"{where} has no gates file of this or the usual name, so only the pull request's gates apply"
        fix = "After the merge they apply to other pull requests."
        if not context.head.file:
            message = f"neither {where} nor the pull request has a gates file, so the default gates apply"
            fix = "Commit a gates file. To write one, run: rag-eval init"
        others = base_policy.gates_about(authority, context.head.gold, context.run.inputs.reader)
        if outcomes := [(policy.file, _failed_gates(context, policy)) for policy in others]:
            file, failed = min(outcomes, key=lambda outcome: not outcome[1])
            message += f"; there, {quoted(file, 60)} has gates for the same gold set"
            message += f", and this run fails {some(failed, _NAMED)}" if failed else ""
            fix = "Name that file in the workflow, if these gates are meant to replace it."
        yield Finding("bootstrap", "warning", message, fix, context.head.file)


def _loosened_elsewhere(context: ReviewContext) -> list[str]:
    """Return the keys in which the gates of another commit, which the caller names, are looser than the base branch's.

    Its baseline is one of them if it is another file than on the base branch.
    """
    authority, tip, ours = context.authority, context.authority.instead_of, context.base
    path = authority.on_base(ours.file) if ours else None
    theirs = base_policy.policy_in(tip, path, ours.file) if ours else None
    if ours is None or theirs is None or tip is None or authority.gates is None:
        return []
    keys = [change.key for change in changes(theirs.stated, ours.stated) if change.kind == "looser"]
    baseline = authority.on_base(theirs.baseline) if theirs.baseline else None
    if baseline and git.read_regular(tip, baseline) != git.read_regular(authority.gates, baseline):
        keys.append("baseline")
    return list(dict.fromkeys(keys))


def unscored_gold(context: ReviewContext) -> list[Note]:
    """Return a note on gold items that the base branch changed since this one left it, and that are not scored."""
    authority, ours = context.authority, context.run.inputs.gold
    now = gold_at(context, authority.used_records)
    then = gold_at(context, authority.fork) if now else None
    if not now or not then:
        return []
    both = sorted(then.golds.keys() | now.golds.keys())
    qids = [qid for qid in both if now.differs(qid, then) and now.differs(qid, ours)]
    what = f"{quoted(authority.ref, 60)} has changed {quantity(len(qids), 'gold item')} since this branch left it"
    message = f"{what}, which this run does not score"
    fix = "Rebase, or check out the merge commit, to score them"
    return [Note(context.head.gold, 0, f"{message}: {some(qids, _NAMED, quoted)}. {fix}")] if qids else []


def _edited_workflow(context: ReviewContext) -> str | None:
    """Return the workflow of this check if the change edits it, or else the first workflow or action that it uses."""
    before, after, workflow = context.authority.fork, context.authority.after, context.authority.workflow
    rest = [workflow] if workflow else []
    for path in rest:  # it grows by the files that an unchanged file uses
        name = git.follow_links(before, path)
        old, new = git.entry_of(before, name), git.entry_of(after, name)
        is_changed = old != new or name != git.follow_links(after, path)
        if is_changed and (old or context.base):  # the initial setup adds the workflow
            return path
        for file in (name, *(posixpath.join(name, usual) for usual in _ACTION_FILES)):
            for used in _used_paths(git.read_regular(after, file) or b""):
                # A checkout in a folder of the workspace has that folder before the paths of its actions.
                inside = context.authority.written(os.path.join(context.options.root or "", used))  # noqa: PTH118 - a text
                paths = chain.from_iterable(_ACTION_FILES if path == "." else [path] for path in (used, inside) if path)
                rest += [path for path in paths if path not in rest]
    return None


def _used_paths(data: bytes) -> list[str]:
    """Return the paths of the local actions and workflows that a workflow or an action uses."""
    import yaml  # heavy

    texts, anchors = list[str](), dict[str | None, str]()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with suppress(yaml.YAMLError):  # what comes before the error counts
        for event in yaml.parse(data.decode("utf-8", "replace"), Loader=loader):
            if isinstance(event, yaml.ScalarEvent):
                texts.append(event.value)
                anchors[event.anchor] = event.value
            elif isinstance(event, yaml.AliasEvent):
                texts.append(anchors.get(event.anchor, ""))
    return [posixpath.normpath(path) for key, path in pairwise(texts) if key == "uses" and path.startswith("./")]


def _failed_gates(context: ReviewContext, policy: Policy) -> list[str]:
    policy = replace(policy, gold=context.head.gold, trace=context.head.trace)
    run, measures = context.run, select_measures(context.options.cutoffs, policy)
    if same_meaning(policy, context.head) and all(measure in run.inputs.measures for measure in measures):
        report = rejudge(run.report, policy, run.earlier)
    else:
        inputs = replace(run.inputs, measures=measures)
        report = rescore(replace(run, inputs=inputs), policy).report
    return [gate.label for gate in report.gates if gate.outcome == "failed" and gate.blocks]


def _overrides(context: ReviewContext) -> Iterator[Finding]:
    """Yield a warning for each input that differs from what the base names, and for traces that git tracks."""
    authority, options, head, base = context.authority, context.options, context.head, context.base
    inputs = (
        ("gold", options.gold, head.gold, "gold-overridden", "gold set"),
        ("trace", options.trace, head.trace, "traces-overridden", "traces"),
        ("verdicts", options.verdicts, head.verdicts, "verdicts-overridden", "verdicts"),
    )
    for key, named, file, code, what in inputs:
        if base and named and (meant := _overridden_path(context, base, key, named)):
            message = f"an input or option replaces the {what} {quoted(meant)} of the base branch's gates file"
            if key not in base.stated:
                message = f"an input or option replaces the usual {what} {quoted(meant)}, which the base branch means"
            yield Finding(code, "warning", message, _ONLY, file)
    if base and (meant := _overridden_gates(context)):
        message = f"an input or option replaces the gates file {quoted(meant)} of the base branch"
        yield Finding("gates-overridden", "warning", message, "Remove the input or option gates.", head.file)
    stated = base.stated.get("k", Settings().k) if base else None
    if base and stated is not None and int(stated) != base.k:
        message = f"an input or option sets k to {base.k}, but by the base branch's gates file it is {stated}"
        yield Finding("k-overridden", "warning", message, "Set k only in the gates file.", head.file)
    paths = filter(None, map(authority.inside, (head.trace, os.path.realpath(head.trace))))
    if authority.gates is not None and any(_has_file(authority.after, path, in_submodule=True) for path in paths):
        message = "the traces are committed in git, so they may not be from this run"
        fix = "Write the traces in the job, run git rm --cached on the file, and add it to .gitignore."
        yield Finding("traces-tracked", "warning", message, fix, head.trace)


def _left_gates(context: ReviewContext, added: Collection[str]) -> Iterator[Finding]:
    """Yield a warning for each gates file that the change leaves without its items, which it adds to this gold set."""
    inputs, base = context.run.inputs, context.base
    items = [gold for qid, gold in inputs.golds.items() if qid in added]
    if not (base and items):
        return
    for policy in base_policy.gates_left_behind(context.authority, base, items, inputs.reader):
        failed = _failed_gates(context, policy)
        message = f"this change adds items of the gold set of {quoted(policy.file, 60)}, and deletes that"
        message += f"; by its gates this run fails {some(failed, _NAMED)}" if failed else ""
        fix = "Move its gates, too, so that the items keep them."
        yield Finding("gates-overridden", "warning", message, fix, context.head.file)


def _deleted_gates(context: ReviewContext) -> Iterator[Finding]:
    """Yield a warning for each gates file of another system that the change deletes, while its gold set stays.

    A job for each gates file of the checkout no longer runs for such a system. Without the base in the clone each
    folder would be a request to GitHub's API, so nothing is searched.
    """
    authority = context.authority
    if context.base is None or authority.through != "git":
        return

    def golds_of(tree: git.CommitTree, paths: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        for path in paths:
            shown = authority.outside(path)
            if path.endswith(base_policy.ENDINGS) and (policy := base_policy.policy_in(tree, path, shown)):
                yield path, base_policy.gold_named_by(authority, policy, tree)

    before, after = authority.fork, authority.after
    deleted_gates = golds_of(before, filter(base_policy.is_standard_name, git.deleted(before, after)))
    remaining = [(path, gold) for path, gold in deleted_gates if gold and git.has_path(after, gold)]
    governed = {authority.inside(context.head.gold)}
    if remaining:
        others = chain(git.deleted(after, before), filter(base_policy.is_standard_name, after.paths()))
        governed |= {gold for _, gold in golds_of(after, others)}
    for path, gold in remaining:
        if gold not in governed:
            message = f"this change deletes {quoted(path, 60)}, so no gates apply to {quoted(gold, 60)} any more"
            fix = "Restore the file, or delete the gold set, too."
            yield Finding("gates-overridden", "warning", message, fix, path)


def _overridden_path(context: ReviewContext, base: Policy, key: str, named: str) -> str | None:
    """Return the path that the base's gates file means if the caller names another one.

    A file without a path means the usual one: of the gold only if the base has it, of the traces, which git does not
    have, always. There are no usual verdicts.
    """
    stated, inside = base.stated.get(key), context.authority.inside
    if stated is None and key not in USUAL:
        return None
    meant = inside(in_folder_of(base.file, stated or USUAL[key]))
    if stated is None and key == "gold" and not (meant and _has_file(context.authority.fork, meant)):
        return None
    return None if meant == inside(named) else meant


def _overridden_gates(context: ReviewContext) -> str | None:
    """Return the base's gates file of the usual name for this gold if the caller names an unusual one."""
    tree, options, inside = context.authority.gates, context.options, context.authority.inside
    named = inside(options.gates) if options.gates and not options.is_discovered else None
    if tree is None or named is None:
        return None
    is_usual = posixpath.basename(named) in GATES_FILES
    if is_usual and posixpath.dirname(named) == inside(options.folder or "."):
        return None
    candidates = base_policy.standard_gates_paths(context.authority, options.folder, context.head.gold)
    meant = next((path for path in candidates if _has_file(tree, path)), named)
    if meant == named:
        return None
    if not is_usual:
        return meant
    policy = base_policy.policy_in(tree, meant, context.authority.outside(meant))
    gold = base_policy.gold_named_by(context.authority, policy, tree) if policy else None
    is_nearer = "/" in meant or gold == inside(context.head.gold)
    return meant if is_nearer and _has_file(tree, named) else None


def _has_file(tree: git.Tree, path: str, *, in_submodule: bool = False) -> bool:
    """Return whether git has the file at a path; ``in_submodule`` counts every path in a submodule."""
    try:
        return path in tree.files(path)
    except git.Irregular as irregular:
        return in_submodule and irregular.submodule


def review_verdicts(context: ReviewContext) -> tuple[list[Finding], list[Note]]:
    """Return the finding about verdicts of the base that changed, and a note on new ones, which only the author saw."""
    now = {name: verdict for policy in context.policies for name, verdict in policy.replay.verdicts.items()}
    if not now:
        return [], []
    findings, notes = list[Finding](), list[Note]()
    before, unread = _recorded_verdicts(context, is_head=False)
    qids = [qid for name, (qid, verdict) in before.items() if now.get(name, verdict) != verdict]
    file = context.head.verdicts
    if qids:
        gates = [gate for policy in context.policies for gate in policy.selected_gates]
        is_gated = any(gate.name.startswith("judge_") and gate.severity == "error" for gate in gates)
        named = ", ".join(quoted(qid, 40) for qid in qids[:_VERDICTS_NAMED]) + (", …" if qids[_VERDICTS_NAMED:] else "")
        message = f"{len(qids)} of {len(before)} recorded verdicts differ from the base branch for the same input"
        fix = "Restore these rows from the base branch. A verdict changes only with its judge or its input."
        level: Level = "error" if is_gated else "warning"
        findings.append(Finding("changed-verdict", level, f"{message}: {named}", fix, file))
    if unread:
        message = "this change edits the recorded verdicts, and those of the base branch cannot be read"
        message += ", so changed ones are not seen"
        fix = "Commit the verdict file to git itself, without Git LFS or a submodule, with valid rows."
        findings += [Finding("changed-verdict", "warning", message, fix, path) for path in unread]
    new = now.keys() - before.keys() & _recorded_verdicts(context, is_head=True)[0].keys()
    if new and context.authority.gates is not None:
        message = f"{len(new)} of {len(now)} verdicts were committed with this change: no job asked the judge for them"
        notes.append(Note(file, 0, message))
    return at_levels(findings, levels_of(*context.policies)), notes


def _recorded_verdicts(context: ReviewContext, *, is_head: bool) -> tuple[dict[str, tuple[str, Verdict]], list[str]]:
    """Return question and verdict by hash, from the verdict files that the gates of base and change name.

    The second part are the files that the change edits and that cannot be read completely, such as a Git LFS pointer or
    a file in a submodule.
    """
    authority, policies = context.authority, context.policies
    files = [in_folder_of(policy.file, policy.stated["verdicts"]) for policy in policies if "verdicts" in policy.stated]
    files += [policy.verdicts for policy in policies if policy.verdicts]
    verdicts, unread = dict[str, tuple[str, Verdict]](), list[str]()
    for path in dict.fromkeys(files):
        # What a step of the job recorded is not committed.
        tree, name = (authority.after, authority.inside(path)) if is_head else (authority.fork, authority.on_base(path))
        name = name if is_head or name is None else git.follow_links(tree, name)
        data = git.read_regular(tree, name) if name else None
        if data is None and name and git.is_in_changed_submodule(authority.fork, authority.after, name):
            unread.append(path)
        if data is not None:
            reader = Reader(ProblemCollector(), context.run.inputs.base_limits, contents={path: data})
            rows = [row for row, _ in read_verdicts(reader, path) if "error" not in row]
            verdicts |= {row["hash"]: (row["qid"], parse_reply(row["reply"])) for row in rows}
            now = authority.inside(path)
            if reader.ledger.problems and data != (git.read_regular(authority.after, now) if now else None):
                unread.append(path)
    return verdicts, unread
