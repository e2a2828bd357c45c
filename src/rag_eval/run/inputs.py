"""Inputs of a run: everything except the traces, which stay a stream."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.common.files import Digests
from rag_eval.contract import Gold, Limits
from rag_eval.engines import ExecutionOptions
from rag_eval.gates import REFERENCE_GATES, Policy
from rag_eval.gates.selection import by_conversation, in_suite, restrict_policy, select_measures
from rag_eval.metrics import Measure
from rag_eval.readers.gates_file import read_policy, with_verdicts
from rag_eval.readers.gold_file import GoldSet, read_gold_set
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run import Options, headline

if TYPE_CHECKING:
    from rag_eval.run.authority import Authority
    from rag_eval.run.baseline import BaselineFile


class Inputs(Struct, frozen=True):
    """All inputs of scoring except the traces, which stay a stream.

    The traces and the gold of ``policy`` are scored, for its gates. ``policies`` are those that apply: that of the pull
    request with the options laid over it, and that of the base branch if there is one. ``suite_golds`` are the gold
    items of the suite. ``measures`` serve all policies.
    """

    reader: Reader
    digests: Digests
    policy: Policy
    policies: tuple[Policy, ...]
    authority: Authority | None
    gold: GoldSet
    suite_golds: Mapping[str, Gold]
    measures: tuple[Measure, ...]
    execution: ExecutionOptions
    baseline: BaselineFile | None = None

    @property
    def golds(self) -> dict[str, Gold]:
        """Return the gold items."""
        return self.gold.golds

    @property
    def base(self) -> Policy | None:
        """Return the policy of the base branch."""
        return self.policies[1] if len(self.policies) > 1 else None

    @property
    def base_limits(self) -> Limits:
        """Return the limits for files of the base branch."""
        return Limits(**self.base.limits) if self.base else self.reader.limits

    def again(self, policy: Policy, gold: GoldSet | None = None) -> Inputs:
        """Return the inputs for scoring under another policy, on its gold or on ``gold``.

        Problems and digests are separate from those of the run.
        """
        reader, digests = self.reader.silent(), Digests()
        if gold is None and policy.gold == self.policy.gold:
            gold = self.gold
            digests.record("gold", policy.gold, self.digests.hex("gold"))
        gold = gold or read_gold_set(reader, policy.gold, digests.of("gold", policy.gold))
        return replace(
            self,
            reader=reader,
            digests=digests,
            policy=by_conversation(policy, gold.golds),
            policies=tuple(by_conversation(item, gold.golds) for item in self.policies),
            gold=gold,
            suite_golds=in_suite(gold.golds, policy.suite),
        )


def load_inputs(options: Options, authority: Authority | None = None) -> Inputs:
    """Read everything except the traces: the policies of the change and of its base, the gold, the baseline.

    Raises InputError if a policy is unreadable. Other problems go into the reader's ledger.
    """
    digests = Digests()
    reader, policy = open_policy(options, digests)
    base = _base_policy(options, authority, policy, reader) if authority else None
    return read_inputs(options, reader, digests, [policy, base] if base else [policy], authority)


def read_inputs(
    options: Options, reader: Reader, digests: Digests, policies: Sequence[Policy], authority: Authority | None = None
) -> Inputs:
    """Read the gold of the first policy, and determine the measures. Problems go into the reader's ledger."""
    digest, hashed = digests.of("gold", policies[0].gold), authority is not None
    gold = read_gold_set(reader, policies[0].gold, digest, hashed=hashed)
    policies = tuple(by_conversation(policy, gold.golds) for policy in policies)
    suite, measures = in_suite(gold.golds, policies[0].suite), select_measures(options.cutoffs, *policies)
    inputs = Inputs(reader, digests, policies[0], policies, authority, gold, suite, measures, options.execution)
    if not options.baseline and not any(policy.baseline for policy in policies):
        return inputs
    from rag_eval.run.baseline import BaselineFile

    return replace(inputs, baseline=BaselineFile(reader, authority, inputs.base_limits, policies, options.baseline))


def open_policy(options: Options, digests: Digests | None = None) -> tuple[Reader, Policy]:
    """Return a reader, and the policy with the options laid over it.

    Raises InputError with every problem of the gates file.
    """
    is_dask = options.execution.engine == "dask"
    reader = Reader(ProblemCollector(), root=options.root, contents=options.contents, urls=is_dask)
    policy = read_gates_policy(reader, options.gates, digests, options.folder)
    reader = replace(reader, limits=Limits(**policy.limits))
    by = dict.fromkeys([*policy.slices.by, *options.by])
    policy = replace(_with_options(policy, options), slices=replace(policy.slices, by=tuple(by)))
    return reader, with_verdicts(policy, reader, digests, is_required=bool(options.verdicts))


def _base_policy(options: Options, authority: Authority, head: Policy, reader: Reader) -> Policy | None:
    """Return the policy of the base branch, with the same options laid over it as over the pull request's.

    If files that it names no longer exist, the pull request's files are used: removing them is another change. The
    same applies to gold that the change edits at the base's path, and to scores from elsewhere. Without verdicts of the
    pull request those of the base are missing, which is a finding.
    """
    from rag_eval.run.base_policy import find_base_policy, is_unchanged

    policy = find_base_policy(authority, head, options.folder, is_discovered=options.is_discovered, reader=reader)
    if policy is None:
        return None
    policy = _with_options(policy, options)
    gold, trace, verdicts = policy.gold, policy.trace, policy.verdicts
    is_same_gold = gold == head.gold or (os.path.lexists(gold) and is_unchanged(authority, gold))
    policy = replace(
        policy,
        gold=gold if is_same_gold else head.gold,
        trace=trace if os.path.lexists(trace) else head.trace,
        verdicts=verdicts if os.path.lexists(verdicts) else head.verdicts or verdicts,
    )
    return with_verdicts(policy, reader.silent())


def _with_options(policy: Policy, options: Options) -> Policy:
    return replace(
        restrict_policy(policy, options.perspectives, options.suite),
        k=headline(options.cutoffs, policy.k),
        gold=options.gold or policy.gold,
        trace=options.trace or policy.trace,
        verdicts=options.verdicts or policy.verdicts,
    )


def read_gates_policy(reader: Reader, path: str, digests: Digests | None = None, folder: str = "") -> Policy:
    """Return the policy of the gates file at ``path``; without a path the default gates of files in ``folder``."""
    if path:
        policy = read_policy(reader, path, digests.of("gates", path) if digests else None) or Policy()
        reader.ledger.stop_on_problems()
        return policy
    usual = Policy(gates=REFERENCE_GATES)
    gold, trace = (os.path.join(folder, name) for name in (usual.gold, usual.trace))  # noqa: PTH118 - shown with / on Windows too
    return replace(usual, gold=gold, trace=trace)
