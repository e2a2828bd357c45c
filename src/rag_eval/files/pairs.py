"""Rows into traces, each under the qid of the gold item that it answers."""

from __future__ import annotations

from rag_eval.model import Trace
from rag_eval.pairing import Pairing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from rag_eval.files.ledger import Ledger
    from rag_eval.model import Gold
    from rag_eval.pairing import Questions

    Numbered = Iterable[tuple[int, dict[str, Any]]]

NO_QID = "Give the trace the qid of the gold item that it answers."


def pairing(golds: Mapping[str, Gold], ledger: Ledger, path: str, questions: Questions | None = None) -> Pairing:
    """The pairing of the rows of ``path``, with its remarks in the ledger."""
    return Pairing(golds, lambda line, message: ledger.note(path, line, message), questions)


def finder(found: Pairing, ledger: Ledger, path: str, *, sound: bool) -> Callable[[dict[str, Any], int], str | None]:
    """What finds the qid of a row of ``path``; where there is none it is a problem.

    Against half a gold set, one that is not ``sound``, no question is missed.
    """

    def qid_of(row: dict[str, Any], line: int) -> str | None:
        qid, wrong = found.qid(row, line)
        if qid is None and sound:
            ledger.problem(path, line, "", wrong, NO_QID)
        return qid

    return qid_of


def paired(found: Pairing, rows: Numbered, ledger: Ledger, path: str, *, sound: bool) -> Iterator[Trace]:
    """The traces of rows, each under the qid that ``found`` knows for it."""
    qid_of = finder(found, ledger, path, sound=sound)
    for line, row in rows:
        qid = qid_of(row, line)
        if qid is not None:
            yield Trace.from_row(row, qid, line)
