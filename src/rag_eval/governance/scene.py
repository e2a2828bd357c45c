"""What a change is looked at by: the scored run, and what it is held against."""

from __future__ import annotations

from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_eval.governance.authority import Authority
    from rag_eval.judging.gates import Policy
    from rag_eval.report import Earlier, Past, Report
    from rag_eval.scoring.scorecard import Scorecard


class Scene(NamedTuple):
    """A scored run and the authority that it is held against.

    ``gold`` is the gold file that the caller named in place of the policy's, empty for none. ``rescore`` scores the
    same run again as another policy has it, ``before`` on the gold as it was.
    """

    authority: Authority
    gold: str
    head: Policy
    base: Policy | None
    report: Report
    card: Scorecard
    earlier: Earlier | None
    rescore: Callable[[Policy], Report | None]
    before: Callable[[bytes], Past | None]

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies in force, the head's first."""
        return (self.head, self.base) if self.base else (self.head,)
