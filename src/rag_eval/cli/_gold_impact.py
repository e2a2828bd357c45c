"""The effect of a gold change on the traces of the work tree, which `gold diff` prints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rag_eval.analysis import gold_impact
from rag_eval.cases import GOOD
from rag_eval.common.escaping import quantity
from rag_eval.common.paths import from_here, nearest_gates
from rag_eval.common.reading import Digests
from rag_eval.contract import DEFAULT_TRACE
from rag_eval.errors import InputError, RagEvalError
from rag_eval.git.plumbing import Git
from rag_eval.git.snapshots import read
from rag_eval.gold.signoff_repository import GoldStates
from rag_eval.readers.gold_file import StoredGold, stored_gold_set
from rag_eval.run.inputs import open_policy, read_inputs
from rag_eval.run.options import Options
from rag_eval.run.scored import rescore_on, score_run

_SHOWN = 10


def case_effects(git: Git, states: GoldStates, gold: str, gates: str, trace: str) -> Iterator[str]:
    """Yield the cases that flip and the gates that change on local traces; nothing without traces."""
    old, new = (read(tree, gold) for tree in (states.base, states.head))
    if not (old and new) or old == new:
        return
    options = Options(from_here(str(Path(git.top, gold))), trace, gates or nearest_gates())
    try:
        digests = Digests()
        reader, policy = open_policy(options, digests)
        if not os.path.exists(policy.trace):  # noqa: PTH110 - Path.exists raises for a name that is too long
            return
        run = score_run(read_inputs(options, reader._replace(contents={policy.gold: new}), digests, [policy]))
        after = run.report
        labels_after, labels_before, turns = gold_impact.labels(after.questions), {}, []
        with suppress(InputError):  # an old gold set that cannot be read flips nothing
            stored = StoredGold(policy.gold, policy.gold, {policy.gold: old})
            before = rescore_on(run, stored_gold_set(stored)).report
            labels_before = gold_impact.labels(before.questions)
            turns = gold_impact.gate_turns(before.gates, after.gates)
    except RagEvalError as error:
        # Unreadable gates or traces only leave the effects out.
        if trace or os.path.exists(DEFAULT_TRACE):  # noqa: PTH110 - Path.exists raises without permission
            yield f"The effect on the cases cannot be computed: {error.first}"
        return
    both = sorted(labels_before.keys() & labels_after.keys())
    flips = [qid for qid in both if (labels_before[qid] in GOOD) != (labels_after[qid] in GOOD)]
    yield f"With {policy.trace}, this gold change flips {quantity(len(flips), 'case')}{':' if flips else '.'}"
    yield from (f"  {qid}: {labels_before[qid]} → {labels_after[qid]}" for qid in flips[:_SHOWN])
    if len(flips) > _SHOWN:
        yield f"  … and {len(flips) - _SHOWN} more."
    yield from (f"  gate {turn.name}: {turn.before} → {turn.after}" for turn in turns)
