"""Reader of report.json and run.json, as strict as for other files: they may come from elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from rag_eval.analysis.report import Report
from rag_eval.common.escaping import quoted
from rag_eval.errors import InputError, Problem
from rag_eval.gates.policy import COMPLETENESS
from rag_eval.gates.results import QuestionRow
from rag_eval.readers import strict_json
from rag_eval.readers.schema_validation import Contract
from rag_eval.readers.source import Digest, Reader

LEAST_COMMIT = 7
"""Characters of a commit id in run.json."""
MakeQuestions = Callable[[Sequence[QuestionRow]], Iterable[Any]]
_DASH_OR_BLANK = re.compile(r"[\s-]")
_BATCH = 1_000
_LABELS = ("label", "coarse_label")


def read_report(reader: Reader, path: str, make: MakeQuestions = list) -> dict[str, Any] | None:
    """Return the value of a valid report.json, or None with the problems in the ledger.

    There may be too many questions to keep them decoded: ``make`` receives some at a time.
    """
    data = reader.read(path)
    if data is None:
        return None
    contract = Contract("report", reader.limits.depth)
    try:
        if (value := _by_parts(contract, data, make)) is not None:
            return value
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, strict_json.JsonError):
        pass  # the exact reader reports the problem
    value = _exactly(reader, path, data, contract)
    if value is not None:
        rows = msgspec.convert(value["questions"], list[QuestionRow])
        value["questions"] = list(make(rows))
    return value


def _by_parts(contract: Contract, data: bytes, make: MakeQuestions) -> dict[str, Any] | None:
    """Return the value of a report, decoded by parts; None if only the exact reader can decide."""
    parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    questions = parts.pop("questions", msgspec.Raw(b"null"))
    rest = b"{%s}" % b",".join([b"%s:%s" % (msgspec.json.encode(name), raw) for name, raw in parts.items()])
    value = _with_current_names(strict_json.parse(rest, contract.depth))
    if contract.faults({**value, "questions": []}):
        return None
    labels = [contract.schema["properties"]["questions"]["items"]["properties"][name]["enum"] for name in _LABELS]
    entries, made = msgspec.json.decode(questions, type=list[msgspec.Raw]), list[Any]()
    decoder, quotes = msgspec.json.Decoder(list[QuestionRow]), rest.count(b'"') + len('""')
    for begin in range(0, len(entries), _BATCH):
        text = b"[%s]" % b",".join(map(bytes, entries[begin : begin + _BATCH]))
        rows = decoder.decode(text)
        quotes += text.count(b'"')
        if b"u0022" in text or text.count(b'"') != msgspec.json.encode(rows).count(b'"'):
            return None
        if any([row.label not in labels[0] or row.coarse_label not in labels[1] for row in rows]):
            return None
        made += make(rows)
    # A repeated key lost its quotes.
    return {**value, "questions": made} if data.count(b'"') == quotes else None


@contextmanager
def checked_report(path: str, hint: str) -> Iterator[None]:
    """Raise InputError if a report contradicts itself although its schema accepts it.

    No run writes such a report, so it was made or edited otherwise.
    """
    try:
        yield
    except (ArithmeticError, LookupError, ValueError) as error:
        raise InputError([Problem(path, 0, "", f"contradicts itself ({type(error).__name__})", hint)]) from None


def check_gates(path: str, report: Report, hint: str) -> None:
    """Raise InputError if a report has no completeness gates, which every run has.

    A report converted from another framework has no gates, and neither has one whose gates were removed.
    """
    there = {gate.name for gate in report.gates}
    for name in COMPLETENESS:
        if f"completeness.{name}" not in there:
            raise InputError(
                [Problem(path, 0, "/gates", f"has no gate completeness.{name}, which every run has", hint)]
            )


def read_sidecar(reader: Reader, path: str, digest: Digest | None = None) -> dict[str, Any] | None:
    """Return the content of a run.json, or None with the problems in the ledger."""
    about = read_json(reader, path, "run", digest)
    commit = about.get("system_commit") if about else None
    if commit and commit.strip() and max(map(len, _DASH_OR_BLANK.split(commit))) < LEAST_COMMIT:
        message = f"{quoted(commit)} is shorter than {LEAST_COMMIT} characters, which is ambiguous"
        reader.ledger.problem(path, 0, "/system_commit", message, "Write what this prints: git rev-parse HEAD")
        return None
    return about


def sidecar_of(trace: str) -> str:
    """Return the path of the run.json of a trace file."""
    return os.path.join(os.path.dirname(trace), "run.json")  # noqa: PTH118, PTH120


def read_json(reader: Reader, path: str, schema: str, digest: Digest | None = None) -> dict[str, Any] | None:
    """Return the value of a file that is one JSON object of a schema, or None with the problems in the ledger."""
    data = reader.read(path, digest)
    return None if data is None else _exactly(reader, path, data, Contract(schema, reader.limits.depth))


def _with_current_names(value: Any) -> Any:
    """Return a report with the current names of fields: before 1.0 the ``regression`` of a gate was ``worsening``."""
    gates = value.get("gates") if isinstance(value, dict) else None
    for gate in gates if isinstance(gates, list) else ():
        comparison = gate.get("comparison") if isinstance(gate, dict) else None
        if isinstance(comparison, dict) and "worsening" in comparison and "regression" not in comparison:
            comparison["regression"] = comparison.pop("worsening")
    return value


def _exactly(reader: Reader, path: str, data: bytes, contract: Contract) -> dict[str, Any] | None:
    try:
        value = _with_current_names(strict_json.parse(data, contract.depth))
    except strict_json.JsonError as error:
        reader.ledger.problem(path, error.line, error.where, error.message, error.hint)
        return None
    faults = contract.faults(value)
    for fault in faults:
        reader.ledger.problem(path, 0, fault.where, fault.message, fault.hint)
    return None if faults else value
