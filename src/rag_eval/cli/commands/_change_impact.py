"""What a change of gold or gates does to the traces at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval.common.digests import Digests
from rag_eval.errors import InputError
from rag_eval.readers.gold_set import StoredGold
from rag_eval.readers.problems import Ledger
from rag_eval.readers.source import Reader
from rag_eval.run.inputs import load_inputs, open_policy, policy_in
from rag_eval.run.scored import rescore, rescore_on, score_run

if TYPE_CHECKING:
    from rag_eval.analysis.gold_impact import GateTurn
    from rag_eval.analysis.policy_changes import PolicyChange
    from rag_eval.gates.policy import Policy
    from rag_eval.run.options import Options


def gold_effect(options: Options, old: bytes, new: bytes) -> tuple[dict[str, str], dict[str, str], list[GateTurn]]:
    """What a change of the gold does to the traces at hand: labels by qid before and after, and gates that turn.

    InputError where gates, traces or the new gold cannot be read; what the old gold does not know has no label.
    """
    from rag_eval.analysis import gold_impact

    reader, policy, digests = open_policy(options)
    run = score_run(load_inputs(options, reader._replace(held={policy.gold: new}), policy, digests))
    after = run.report
    try:
        before = rescore_on(run, run.stored(StoredGold(policy.gold, policy.gold, {policy.gold: old}))).report
    except InputError:
        return {}, gold_impact.labels(after.questions), []
    return (
        gold_impact.labels(before.questions),
        gold_impact.labels(after.questions),
        gold_impact.turns(before.gates, after.gates),
    )


def gates_effect(options: Options, old: bytes, new: bytes) -> list[PolicyChange]:
    """What a change of the gates file ``options.gates`` comes to on the traces at hand, the loosest first.

    InputError where either of its states, the gold or the traces cannot be read.
    """
    from rag_eval.analysis.policy_changes import Effects, changes
    from rag_eval.analysis.report import rejudge

    before, after = (_policy_in(options, data) for data in (old, new))
    run = score_run(load_inputs(options, Reader(Ledger(), root=options.root), after, Digests(), before))
    redefined, meant = rejudge(run.report, before), rescore(run, before)
    return changes(before.stated, after.stated, Effects(meant.gates, redefined.gates, run.report.gates))


def _policy_in(options: Options, data: bytes) -> Policy:
    reader = Reader(Ledger(), root=options.root, held={options.gates: data})
    policy = policy_in(reader, options, Digests())
    return policy._replace(gold=options.gold or policy.gold, trace=options.trace or policy.trace)
