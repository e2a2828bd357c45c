"""Files that are one JSON object of a schema, such as run.json."""

from __future__ import annotations

import re
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.readers import strict_json
from rag_eval.readers.problems import Contract, whole
from rag_eval.readers.source import Digest, Reader

LEAST_COMMIT = 7  # characters of a commit id in run.json
_COUNTS = ("documents", "documents_without_chunks", "chunks_attempted", "chunks_embedded", "chunks_skipped")
_DASH_OR_BLANK = re.compile(r"[\s-]")


def read_sidecar(reader: Reader, path: str, digest: Digest | None = None) -> dict[str, Any] | None:
    """Return the content of a run.json, or None with the problems in the ledger."""
    about = read_json(reader, path, "run", digest)
    commit = about.get("system_commit") if about else None
    if commit and commit.strip() and max(map(len, _DASH_OR_BLANK.split(commit))) < LEAST_COMMIT:
        message = f"{quoted(commit)} is shorter than {LEAST_COMMIT} characters, which is ambiguous"
        reader.ledger.problem(path, 0, "/system_commit", message, "Write what this prints: git rev-parse HEAD")
        return None
    if about and (index := about.get("index")):
        about["index"] = {name: whole(value) if name in _COUNTS else value for name, value in index.items()}
    return about


def read_json(reader: Reader, path: str, schema: str, digest: Digest | None = None) -> dict[str, Any] | None:
    """Return the value of a file that is one JSON object of a schema, or None with the problems in the ledger."""
    data = reader.read(path, digest)
    return None if data is None else decode_exactly(reader, path, data, Contract(schema, reader.limits.depth))


def decode_exactly(reader: Reader, path: str, data: bytes, contract: Contract) -> dict[str, Any] | None:
    """Return the JSON object of ``data``, or None with the problems in the ledger."""
    try:
        value: dict[str, Any] = strict_json.parse(data, contract.depth)
    except strict_json.JsonError as error:
        reader.ledger.problem(path, error.line, error.where, error.message, error.hint)
        return None
    faults = contract.faults(value)
    for fault in faults:
        reader.ledger.problem(path, 0, fault.where, fault.message, fault.hint)
    return None if faults else value
