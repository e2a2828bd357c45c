"""Rows into traces, each under the qid of the gold item that it answers."""

from __future__ import annotations

from typing import Any

from rag_eval.model import Trace
from rag_eval.pairing import Pairing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rag_eval.files.ledger import Ledger
    from rag_eval.model import Gold
    from rag_eval.pairing import Questions

    Numbered = Iterable[tuple[int, dict[str, Any]]]

NO_QID = "Give the trace the qid of the gold item that it answers."


def pairing(golds: Mapping[str, Gold], ledger: Ledger, path: str, questions: Questions | None = None) -> Pairing:
    """The pairing of the rows of ``path``, with its remarks in the ledger."""
    return Pairing(golds, lambda line, message: ledger.note(path, line, message), questions)


def identified(
    found: Pairing, rows: Numbered, ledger: Ledger, path: str, *, sound: bool
) -> Iterator[tuple[str, dict[str, Any], int]]:
    """The qid, row and line of each trace.

    Against half a gold set, one that is not ``sound``, no question is missed.
    """
    for line, row in rows:
        qid, wrong = found.qid(row, line)
        if qid is not None:
            yield qid, row, line
        elif sound:
            ledger.problem(path, line, "", wrong, NO_QID)


def paired(found: Pairing, rows: Numbered, ledger: Ledger, path: str, *, sound: bool) -> Iterator[Trace]:
    """The traces of rows, as :func:`identified` tells them."""
    for qid, row, line in identified(found, rows, ledger, path, sound=sound):
        yield Trace.from_row(row, qid, line)
