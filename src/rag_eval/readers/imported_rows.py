"""The rows that an importer makes, as lines of a file, validated by the contract before they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rag_eval.common.progress import Watch
from rag_eval.contract import Gold
from rag_eval.importers import IMPORTERS, Account, rows_of, written
from rag_eval.readers.gold_file import unique
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.schema_validation import Contract
from rag_eval.readers.source import Reader

Row = dict[str, Any]


def imported(
    reader: Reader,
    name: str,
    paths: Sequence[str],
    account: Account,
    options: Sequence[Any] = (),
    watch: Watch | None = None,
) -> Iterator[tuple[Row, bytes]]:
    """Yield each row of the files, and its line; raise InputError at the end if anything is wrong."""
    gives, ledger, count = IMPORTERS[name].gives, reader.ledger, 0
    files = Files(reader, paths, watch=watch)
    rows: Iterable[tuple[int, Row]] = _valid_rows(
        reader, paths[-1], gives, _with_type_errors(files, rows_of(name, files, account, *options))
    )
    if gives == "gold":
        rows = list(rows)
        unique((Gold.from_row(row, line) for line, row in rows), ledger, paths[-1], lambda gold: gold)
    for line, row in rows:
        count += 1
        try:
            source = f"{written(row)}\n".encode()
        except UnicodeEncodeError:
            hint = "Write the character itself, or both halves of the pair."
            ledger.problem(paths[-1], line, "", "has half of a surrogate pair", hint)
        else:
            yield row, source
    if not count and not ledger.count:
        if gives == "gold":
            ledger.problem(paths[-1], 0, "", "has no gold items", "A gold set needs at least one question.")
        else:
            hint = "Check that the file is complete and has this format: rag-eval import auto FILE"
            ledger.problem(paths[-1], 0, "", "has no trace with an answer", hint)
    ledger.stop_on_problems()


def _with_type_errors(files: Files, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Yield the rows; a value of an unexpected type is a problem, wherever it occurs."""
    try:
        yield from rows
    except (TypeError, AttributeError, KeyError, ValueError, ArithmeticError, RecursionError) as error:
        message = f"has a value of an unexpected type here or before: {type(error).__name__}: {str(error)[:80]}"
        files.problem(*files.place, "", message, "Check that the file is a complete export of that tool.")


def _valid_rows(reader: Reader, path: str, schema: str, rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    """Yield the rows that are valid under their contract; problems of the others go into the ledger."""
    contract = Contract(schema, reader.limits.depth)
    for line, row in rows:
        faults = contract.faults(row)
        for fault in faults:
            reader.ledger.problem(path, line, f"as {schema}: {fault.where}", fault.message, fault.hint)
        if not faults:
            yield line, row
