"""The rows that an importer makes, as the lines of a file of ours: held to our own contract before they are written."""

from __future__ import annotations

from rag_eval.files.contract import Contract
from rag_eval.files.inputs import Files
from rag_eval.files.rows import unique
from rag_eval.importers import IMPORTERS, rows_of, written
from rag_eval.model import Gold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from rag_eval.files.source import Reader
    from rag_eval.importers._account import Account

    Row = dict[str, Any]


def imported(reader: Reader, name: str, paths: Sequence[str], account: Account) -> str:
    """The lines that the form ``name`` comes to; what is wrong with it is in the ledger."""
    gives, before = IMPORTERS[name].gives, reader.ledger.count
    rows = list(_kept(reader, paths[-1], gives, rows_of(name, Files(reader, paths), account)))
    if gives == "gold":
        unique(iter(rows), Gold.from_row, reader.ledger, paths[-1])
        if not rows and reader.ledger.count == before:
            reader.ledger.problem(paths[-1], 0, "", "holds no gold item", "A gold set asks at least one question.")
    return "".join(f"{written(row)}\n" for _, row in rows)


def _kept(reader: Reader, path: str, schema: str, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """The rows that keep the contract they were made for; of others it is said what is wrong."""
    contract = Contract(schema, reader.limits.depth)
    for line, row in rows:
        faults = list(contract.faults(row))
        for fault in faults:
            reader.ledger.problem(path, line, f"as {schema}: {fault.where}", fault.message, fault.hint)
        if not faults:
            yield line, row
