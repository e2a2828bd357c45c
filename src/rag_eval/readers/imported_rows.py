"""The rows that an importer makes, as the lines of a file of ours: held to our own contract before they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rag_eval.contract import Gold
from rag_eval.importers import IMPORTERS, rows_of, written
from rag_eval.readers.gold_file import unique
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.schema_validation import Contract

if TYPE_CHECKING:
    from rag_eval.importers._account import Account
    from rag_eval.readers.source import Reader

    Row = dict[str, Any]


def imported(reader: Reader, name: str, paths: Sequence[str], account: Account, *options: Any) -> str:
    """The lines that the form ``name`` comes to; what is wrong with it is in the ledger."""
    gives, before = IMPORTERS[name].gives, reader.ledger.count
    files = Files(reader, paths)
    rows = list(_kept(reader, paths[-1], gives, _as_exported(files, rows_of(name, files, account, *options))))
    if gives == "gold":
        unique((Gold.from_row(row, line) for line, row in rows), reader.ledger, paths[-1])
        if not rows and reader.ledger.count == before:
            reader.ledger.problem(paths[-1], 0, "", "holds no gold item", "A gold set asks at least one question.")
    elif not rows and reader.ledger.count == before:
        hint = "Check that it is whole, and of this format: rag-eval import auto FILE"
        reader.ledger.problem(paths[-1], 0, "", "holds no trace that answers a question", hint)
    return "".join(f"{written(row)}\n" for _, row in rows)


def _as_exported(files: Files, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """The rows; a value of another type than the format has is a problem, wherever it is noticed."""
    try:
        yield from rows
    except (TypeError, AttributeError, KeyError, ValueError, RecursionError) as error:
        message = f"has a value of an unexpected type here or before: {type(error).__name__}: {str(error)[:80]}"
        files.problem(*files.place, "", message, "Check that the file is a whole export of that tool.")


def _kept(reader: Reader, path: str, schema: str, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """The rows that keep the contract they were made for; of others it is said what is wrong."""
    contract = Contract(schema, reader.limits.depth)
    for line, row in rows:
        faults = contract.faults(row)
        for fault in faults:
            reader.ledger.problem(path, line, f"as {schema}: {fault.where}", fault.message, fault.hint)
        if not faults:
            yield line, row
