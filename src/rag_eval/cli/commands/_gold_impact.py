"""Effects of a gold or gates change on the work tree's traces, as `gold check` and `gold diff` print them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rag_eval.analysis import gold_impact
from rag_eval.analysis.report import rejudge
from rag_eval.cases.labels import GOOD
from rag_eval.cli.commands._shared import gates_path
from rag_eval.common.digests import Digests
from rag_eval.common.escaping import quantity
from rag_eval.common.paths import from_here
from rag_eval.contract import DEFAULT_TRACE
from rag_eval.errors import InputError, RagEvalError
from rag_eval.git.snapshots import read
from rag_eval.readers.gold_file import StoredGold
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run.inputs import open_policy, read_gates_policy, read_inputs
from rag_eval.run.options import Options
from rag_eval.run.scored import rescore, rescore_on, score_run

if TYPE_CHECKING:
    from rag_eval.analysis.gold_impact import GateTurn
    from rag_eval.analysis.policy_changes import PolicyChange
    from rag_eval.gates.policy import Policy
    from rag_eval.git.plumbing import Git
    from rag_eval.gold.signoff.repository import GoldStates

_SHOWN = 10


def flipped(git: Git, frame: GoldStates, gold: str, gates: str | None, trace: str | None = None) -> list[str]:
    """Return the cases that flip and the gates that change on local traces; nothing without traces."""
    old, new = (read(tree, gold) for tree in (frame.base, frame.head))
    if not (old and new) or old == new:
        return []
    options = Options(from_here(os.path.join(git.top, gold)), trace or "", gates_path(gates or ""))  # noqa: PTH118
    try:
        traces = open_policy(options)[1].trace
        return list(_flips(traces, *gold_effect(options, old, new))) if os.path.exists(traces) else []  # noqa: PTH110
    except RagEvalError as error:
        # This check is about the gold: unreadable gates or traces only leave the effects out.
        there = trace or os.path.exists(DEFAULT_TRACE)  # noqa: PTH110
        return [f"The effect on the cases cannot be computed: {error.first}"] if there else []


def loosened(git: Git, frame: GoldStates, gates: str | None, trace: str | None) -> list[str]:
    """Return the changes of the gates file and the effects of each on this run."""
    path = gates_path(gates or "")
    inside = git.inside(path) if path else ""
    old, new = (read(tree, inside) if inside else None for tree in (frame.base, frame.head))
    if old is None or new is None or old == new:
        return []
    try:
        changes = gates_effect(Options(trace=trace or "", gates=path), old, new)
    except RagEvalError as error:
        return [f"The effect of the changes to {path} cannot be computed: {error.first}"]
    return [f"{path} changes:", *(f"  {_change(change)}" for change in changes)] if changes else []


def _change(change: PolicyChange) -> str:
    through = f"; with these traces, no longer fails: {', '.join(change.lets_through)}" if change.lets_through else ""
    return f"{change.key}: {change.old or 'not set'} → {change.new or 'not set'} ({change.kind}{through})"


def _flips(traces: str, before: Mapping[str, str], after: Mapping[str, str], turns: list[GateTurn]) -> Iterator[str]:
    both = sorted(before.keys() & after.keys())
    flips = [qid for qid in both if (before[qid] in GOOD) != (after[qid] in GOOD)]
    yield f"With {traces}, this gold change flips {quantity(len(flips), 'case')}{':' if flips else '.'}"
    yield from (f"  {qid}: {before[qid]} → {after[qid]}" for qid in flips[:_SHOWN])
    if len(flips) > _SHOWN:
        yield f"  … and {len(flips) - _SHOWN} more."
    yield from (f"  gate {turn.name}: {turn.before} → {turn.after}" for turn in turns)


def gold_effect(options: Options, old: bytes, new: bytes) -> tuple[dict[str, str], dict[str, str], list[GateTurn]]:
    """Return the effects of a gold change on local traces: labels by qid before and after, and gates that flip.

    InputError is raised if gates, traces or the new gold are unreadable. Items that the old gold lacks have no label.
    """
    reader, policy, digests = open_policy(options)
    run = score_run(read_inputs(options, reader._replace(contents={policy.gold: new}), policy, digests))
    after = run.report
    try:
        before = rescore_on(run, run.stored(StoredGold(policy.gold, policy.gold, {policy.gold: old}))).report
    except InputError:
        return {}, gold_impact.labels(after.questions), []
    return (
        gold_impact.labels(before.questions),
        gold_impact.labels(after.questions),
        gold_impact.gate_turns(before.gates, after.gates),
    )


def gates_effect(options: Options, old: bytes, new: bytes) -> list[PolicyChange]:
    """Return the effects of a change of ``options.gates`` on local traces, the loosest first.

    InputError is raised if either version of the gates file, the gold or the traces are unreadable.
    """
    from rag_eval.analysis.policy_changes import PolicyEffects, changes

    before, after = (_read_policy(options, data) for data in (old, new))
    run = score_run(read_inputs(options, Reader(ProblemCollector(), root=options.root), after, Digests(), before))
    redefined, meant = rejudge(run.report, before), rescore(run, before)
    return changes(before.stated, after.stated, PolicyEffects(meant.gates, redefined.gates, run.report.gates))


def _read_policy(options: Options, data: bytes) -> Policy:
    reader = Reader(ProblemCollector(), root=options.root, contents={options.gates: data})
    policy = read_gates_policy(reader, options, Digests())
    return policy._replace(gold=options.gold or policy.gold, trace=options.trace or policy.trace)
