"""The scored run, and what it is held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rag_eval.analysis.report import Earlier, Report
    from rag_eval.api import Session
    from rag_eval.gates.policy import Policy
    from rag_eval.governance.base_policy import Authority


class Named(NamedTuple):
    """The files and cutoffs that the caller named in place of the gates file's, empty for none.

    ``folder`` is where the usual gates file of the caller stands.
    """

    gold: str = ""
    trace: str = ""
    gates: str = ""
    cutoffs: tuple[int, ...] = ()
    folder: str = ""


class Scene(NamedTuple):
    """A scored run and the authority that it is held against.

    ``session`` scores the same run again, as another policy has it or on other gold.
    """

    authority: Authority
    named: Named
    head: Policy
    base: Policy | None
    report: Report
    session: Session

    @property
    def earlier(self) -> Earlier | None:
        """The baseline."""
        return self.session.earlier

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies in force, the head's first."""
        return (self.head, self.base) if self.base else (self.head,)
