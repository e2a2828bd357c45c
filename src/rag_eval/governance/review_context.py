"""The scored run, and what it is held against."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.common.digests import Digests
from rag_eval.gates.partial_runs import narrowed
from rag_eval.governance.base_gates import base_policy
from rag_eval.governance.base_gold import is_unchanged
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.problems import Ledger
from rag_eval.run.inputs import with_verdicts
from rag_eval.run.options import headline

if TYPE_CHECKING:
    from rag_eval.analysis.report import Earlier, Report
    from rag_eval.contract import Gold
    from rag_eval.gates.policy import Policy
    from rag_eval.governance.base_policy import Authority
    from rag_eval.readers.source import Reader
    from rag_eval.run.options import Options
    from rag_eval.run.scored import ScoredRun


class ReviewContext(NamedTuple):
    """A scored run and the authority that it is held against."""

    authority: Authority
    run: ScoredRun

    @property
    def options(self) -> Options:
        """The files and cutoffs that the caller named."""
        return self.run.inputs.options

    @property
    def head(self) -> Policy:
        """The policy of the pull request."""
        return self.run.inputs.policy

    @property
    def base(self) -> Policy | None:
        """The policy of the base branch, if it has one."""
        return self.run.inputs.base

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies in force, the head's first."""
        return self.run.inputs.policies

    @property
    def report(self) -> Report:
        """The report under the policy of the pull request."""
        return self.run.report

    @property
    def earlier(self) -> Earlier | None:
        """The baseline."""
        return self.run.earlier


def policy_of_base(authority: Authority, options: Options, head: Policy, reader: Reader) -> Policy | None:
    """Return the policy of the base branch with the options laid over it, as over that of the pull request.

    Files that it names and that no longer exist are taken from the pull request: to remove them is a change of its own.
    So is gold that the change edits at the base's path, and scores from elsewhere.
    """
    silent = reader._replace(ledger=Ledger())

    def scored() -> dict[str, Gold]:
        return read_gold(silent, head.gold)

    policy = base_policy(authority, head.file, options.folder, head.gold, scored, is_found=options.is_found)
    if policy is None:
        return None
    gold, trace = options.gold or policy.gold, options.trace or policy.trace
    verdicts = options.verdicts or policy.verdicts
    is_same_gold = gold == head.gold or (os.path.lexists(gold) and is_unchanged(authority, gold))
    policy = narrowed(policy, options.perspectives, options.suite)._replace(
        k=headline(options.cutoffs, policy.k),
        gold=gold if is_same_gold else head.gold,
        trace=trace if os.path.lexists(trace) else head.trace,
        verdicts=verdicts if os.path.lexists(verdicts) else head.verdicts,
    )
    return with_verdicts(policy, reader._replace(ledger=Ledger()), Digests())
