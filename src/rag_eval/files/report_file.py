"""report.json and run.json, read as strictly as everything else: they may come from elsewhere."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager

from rag_eval.errors import InputError, Problem
from rag_eval.files import strict_json
from rag_eval.files.contract import Contract
from rag_eval.judging.gates import COMPLETENESS
from rag_eval.safe import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rag_eval.files.source import Digest, Reader
    from rag_eval.listed import Listed
    from rag_eval.report import Report

LEAST_COMMIT = 7
"""Characters of a commit id in run.json."""
_DASH_OR_BLANK = re.compile(r"[\s-]")
_LARGE = 512 * 1024
"""Bytes from which the quick libraries save more than they take to load."""


def read_report(reader: Reader, path: str, listed: Listed | None = None) -> dict[str, Any] | None:
    """The value of a report.json that keeps its schema, or None with the problems in the ledger.

    ``listed`` says what to make of its questions, which may be too many to be held as they stand there.
    """
    return read_json(reader, path, "report", listed=listed)


@contextmanager
def believed(path: str, hint: str) -> Iterator[None]:
    """InputError where a report that keeps its schema cannot be worked with.

    The schema cannot say what belongs together; no run writes such a report, so somebody else did.
    """
    try:
        yield
    except (ArithmeticError, LookupError, ValueError) as error:
        raise InputError([Problem(path, 0, "", f"contradicts itself ({type(error).__name__})", hint)]) from None


def check_gates(path: str, report: Report, hint: str) -> None:
    """InputError where a report is not judged by completeness, as every run is: to judge it again would say nothing.

    What another framework's values were made into has no gate at all, and so has a report whose gates were taken out.
    """
    there = {gate.name for gate in report.gates}
    for name in COMPLETENESS:
        if f"completeness.{name}" not in there:
            raise InputError([Problem(path, 0, "/gates", f"not judged by completeness.{name}, as every run is", hint)])


def read_sidecar(reader: Reader, path: str, digest: Digest | None = None) -> dict[str, Any] | None:
    """Return the content of a run.json, or None with the problems in the ledger."""
    about = read_json(reader, path, "run", digest)
    commit = about.get("system_commit") if about else None
    if commit and commit.strip() and max(map(len, _DASH_OR_BLANK.split(commit))) < LEAST_COMMIT:
        message = f"{quoted(commit)} is shorter than {LEAST_COMMIT} characters: too many commits begin like that"
        reader.ledger.problem(path, 0, "/system_commit", message, "Write what this prints: git rev-parse HEAD")
        return None
    return about


def sidecar_of(trace: str) -> str:
    """Where the run.json of a trace file stands."""
    return os.path.join(os.path.dirname(trace), "run.json")  # noqa: PTH118, PTH120


def read_json(
    reader: Reader, path: str, schema: str, digest: Digest | None = None, listed: Listed | None = None
) -> dict[str, Any] | None:
    """The value of a file that is one JSON object of a schema, or None with the problems in the ledger."""
    source = reader.open(path, digest)
    if source is None:
        return None
    with source:
        data = source.whole()
    if data is None:
        return None
    contract = Contract(schema)
    if len(data) >= _LARGE and (quick := _quickly(contract, data, reader.limits.depth, listed)) is not None:
        return quick
    try:
        value: dict[str, Any] = strict_json.parse(data, reader.limits.depth)
    except strict_json.JsonError as error:
        reader.ledger.problem(path, error.line, error.where, error.message, error.hint)
        return None
    faults = list(contract.faults(value))
    for fault in faults:
        reader.ledger.problem(path, 0, fault.where, fault.message, fault.hint)
    if faults:
        return None
    return {**value, listed.name: list(listed.made(value[listed.name]))} if listed else value


def _quickly(contract: Contract, data: bytes, depth: int, listed: Listed | None) -> dict[str, Any] | None:
    from rag_eval.files.document import accept, accept_apart

    terms = contract.schema, data, depth
    value: dict[str, Any] | None = accept_apart(*terms, listed) if listed else accept(*terms)
    return value
