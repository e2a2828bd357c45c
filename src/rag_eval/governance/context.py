"""The run under review, the state that it is compared with, and the differences of its gold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rag_eval.analysis.gold_impact import GoldChange

if TYPE_CHECKING:
    from rag_eval.readers.gold_file import GoldSet
    from rag_eval.run.authority import Authority
    from rag_eval.run.options import Options
    from rag_eval.run.scored import ScoredRun


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
