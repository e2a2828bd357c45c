"""IMPORTERS: the forms of other tools that are read into rows of ours. The only list of them.

To add one: a module here with a function ``rows(inputs, account)`` (or ``report(inputs, account)`` where it gives a
report), and its line in the table. Converters are pure: files are read through :class:`Inputs`, which is strict.
"""

from __future__ import annotations

import json
from importlib import import_module

from rag_eval.errors import UsageError
from rag_eval.safe import json_source
from rag_eval.typed import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    from rag_eval.importers._account import Account
    from rag_eval.report import Report

    Row = dict[str, Any]
    Numbered = Iterator[tuple[int, Row]]


class Importer(NamedTuple):
    """A form: what it ``gives`` (rows of gold or traces, or a report that serves as a baseline), of which files."""

    gives: Literal["gold", "trace", "report"]
    takes: str
    summary: str
    module: str
    files: int = 1  # that it is made of


IMPORTERS: dict[str, Importer] = {
    "example08": Importer("gold", "qaset.json", "gold: a JSON array of q, gold_ids, gold_claim", "example08"),
    "example08-trace": Importer(
        "trace", "qaset.json trace.jsonl", "traces with free-text answers and citations in them", "example08_trace", 2
    ),
    "labels": Importer("gold", "FOLDER", "gold: a folder of label files that share a case_id", "labels"),
    "rag-server-golden": Importer(
        "gold", "golden_qa.json", "gold: a RAG server's golden set of questions and passages", "rag_server_golden"
    ),
    "rag-server-run": Importer(
        "report", "RUN.json", "baseline: a RAG server's saved run, values without questions", "rag_server_run"
    ),
}


class Inputs(Protocol):
    """The files that an importer is called on.

    Reading is strict: what is wrong is taken down by the reader, and left out of what is given. Rows come with the line
    that they begin on. ``schema`` names the file of ``schemas/`` that each row has to keep.
    """

    paths: Sequence[str]

    @property
    def problems(self) -> int:
        """How many problems there are so far."""

    def rows(self, path: str, schema: str) -> Numbered:
        """The rows of a JSON Lines file."""

    def elements(self, path: str, schema: str) -> Numbered:
        """The elements of a file that is one JSON array."""

    def value(self, path: str, schema: str) -> Row | None:
        """The value of a file that is one JSON object."""

    def names(self, folder: str) -> list[str]:
        """What stands in a folder, sorted; hidden files aside."""

    def digest(self, path: str) -> str:
        """sha256, in hex, of a file that was read."""

    def problem(self, path: str, line: int, where: str, message: str, hint: str) -> None:
        """Take down what is wrong with the files together."""


def importer(name: str) -> Importer:
    """The importer of a name as the command line has it; UsageError where there is none."""
    if name in IMPORTERS:
        return IMPORTERS[name]
    from difflib import get_close_matches

    close = get_close_matches(name[:80], IMPORTERS, n=1, cutoff=0.4)
    mend = f"Did you mean '{close[0]}'?" if close else f"Known formats: {', '.join(IMPORTERS)}."
    raise UsageError(f"unknown format '{name[:80]}'. {mend}")


def rows_of(name: str, inputs: Inputs, account: Account) -> Numbered:
    """Line and row, as ours have it, of each row of a form."""
    found: Numbered = import_module(f"rag_eval.importers.{IMPORTERS[name].module}").rows(inputs, account)
    return found


def report_of(name: str, inputs: Inputs, account: Account) -> Report | None:
    """The report that a form holds; None where it cannot be read."""
    found: Report | None = import_module(f"rag_eval.importers.{IMPORTERS[name].module}").report(inputs, account)
    return found


def written(row: Row) -> str:
    """A row as it is written: one line. Its hash is that of the item, wherever the row was made of."""
    return json_source(json.dumps(row, ensure_ascii=False))
