"""What a change of gold or gates does to the traces of the work tree, in words of `gold check` and `gold diff`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rag_eval.common.paths import from_here
from rag_eval.contract import DEFAULT_TRACE
from rag_eval.errors import RagEvalError
from rag_eval.git.snapshots import read

if TYPE_CHECKING:
    from rag_eval.analysis.gold_impact import GateTurn
    from rag_eval.analysis.policy_changes import PolicyChange
    from rag_eval.git.plumbing import Git
    from rag_eval.gold.signoff.checking import Policy
    from rag_eval.gold.signoff.repository import GoldStates

_SHOWN = 10


def flipped(git: Git, frame: GoldStates, policy: Policy, gates: str | None, trace: str | None = None) -> list[str]:
    """The cases that flip and the gates that turn on the traces at hand; nothing where there are none."""
    from rag_eval.cli.commands import _change_impact
    from rag_eval.cli.commands._shared import gates_path
    from rag_eval.run.inputs import open_policy
    from rag_eval.run.options import Options

    old, new = (read(tree, policy.gold) for tree in (frame.base, frame.head))
    if not (old and new) or old == new:
        return []
    gold = from_here(os.path.join(git.top, policy.gold))  # noqa: PTH118
    options = Options(gold, trace or "", gates_path(gates or ""))
    try:
        traces = open_policy(options)[1].trace
        return list(_said(traces, *_change_impact.gold_effect(options, old, new))) if os.path.exists(traces) else []  # noqa: PTH110
    except RagEvalError as error:
        # The question here is about the gold: gates or traces that cannot be read only leave this unsaid.
        there = trace or os.path.exists(DEFAULT_TRACE)  # noqa: PTH110
        return [f"What that does to the cases at hand cannot be said: {error.first}"] if there else []


def loosened(git: Git, frame: GoldStates, gates: str | None, trace: str | None) -> list[str]:
    """What the change does to the gates file, and what of this run that would let through."""
    from rag_eval.cli.commands import _change_impact
    from rag_eval.cli.commands._shared import gates_path
    from rag_eval.run.options import Options

    path = gates_path(gates or "")
    inside = os.path.relpath(os.path.realpath(path), os.path.realpath(git.top)).replace(os.sep, "/") if path else ""
    old, new = (read(tree, inside) if inside else None for tree in (frame.base, frame.head))
    if old is None or new is None or old == new:
        return []
    try:
        changes = _change_impact.gates_effect(Options(trace=trace or "", gates=path), old, new)
    except RagEvalError as error:
        return [f"What the change of {path} does cannot be said: {error.first}"]
    return [f"{path} changes:", *(f"  {_change(each)}" for each in changes)] if changes else []


def _change(change: PolicyChange) -> str:
    through = f"; on these traces it lets through: {', '.join(change.lets_through)}" if change.lets_through else ""
    return f"{change.key}: {change.old or 'nothing'} → {change.new or 'nothing'} ({change.kind}{through})"


def _said(traces: str, before: Mapping[str, str], after: Mapping[str, str], turns: list[GateTurn]) -> Iterator[str]:
    from rag_eval.cases.labels import GOOD

    both = sorted(before.keys() & after.keys())
    flips = [qid for qid in both if (before[qid] in GOOD) != (after[qid] in GOOD)]
    yield f"On {traces} {len(flips)} case{'s flip' if len(flips) != 1 else ' flips'} by this change of the gold."
    yield from (f"  {qid}: {before[qid]} → {after[qid]}" for qid in flips[:_SHOWN])
    if len(flips) > _SHOWN:
        yield f"  … and {len(flips) - _SHOWN} more"
    yield from (f"  gate {turn.name}: {turn.before} → {turn.after}" for turn in turns)
