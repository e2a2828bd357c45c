"""Readers of the recorded verdicts of a judge, which a gates file may name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_eval.common.digests import Digests
from rag_eval.contract import Judge
from rag_eval.contract.settings import SCORES, parse_reply, verdict_hash
from rag_eval.gates.policy import Policy, Replay
from rag_eval.readers.jsonl import read_rows
from rag_eval.readers.schema_validation import Contract
from rag_eval.readers.source import Digest, Reader

Row = dict[str, Any]


def with_verdicts(
    policy: Policy, reader: Reader, digests: Digests | None = None, *, is_required: bool = False
) -> Policy:
    """Return the policy with the recorded verdicts of its judge, or of the only judge in the file if it names none.

    A policy that names no file of verdicts is unchanged. A missing file is a problem if it ``is_required``, otherwise a
    note.
    """
    path, judge = policy.verdicts, policy.judge
    if not path:
        return policy
    if not is_required and not reader.has(path):
        reader.ledger.note(path, 0, "no such file: metrics of the judge have no value. Write it: rag-eval judge")
        return policy._replace(replay=Replay())
    digest = digests.of("verdicts", path) if digests else None
    rows = [row for row, _ in read_verdicts(reader, path, digest)]
    judges = {judge_of(row) for row in rows}
    if judge == Judge() and len(judges) > 1:
        message = f"has verdicts of {len(judges)} judges, and the gates file names none"
        reader.ledger.problem(
            path, 0, "", message, "Write judge: {model: …, prompt: …, rubric: …} into the gates file."
        )
    elif judge == Judge() and judges:
        (judge,) = judges
    matching = [row for row in rows if judge_of(row) == judge and "error" not in row]
    verdicts = {row["hash"]: parse_reply(row["reply"]) for row in matching}
    return policy._replace(judge=judge, replay=Replay(verdicts, frozenset(row["qid"] for row in matching)))


def read_verdicts(reader: Reader, path: str, digest: Digest | None = None) -> Iterator[tuple[Row, int]]:
    """Yield the rows with their lines; the last row of a hash counts. Rows that contradict themselves are problems."""
    source = reader.open(path, digest)
    if source is None:
        return
    with source:
        for number, row in read_rows(reader, source, Contract("verdict", reader.limits.depth)):
            if fault := _contradiction(row):
                reader.ledger.problem(path, number, "", fault, "Remove the row and run rag-eval judge again.")
            else:
                yield row, number


def judge_of(row: Row) -> Judge:
    """Return the judge of a row."""
    return Judge(**row["judge"])


def _contradiction(row: Row) -> str:
    """Return how a row contradicts its input or its reply; empty if it does not."""
    if row["hash"] != verdict_hash(judge_of(row), row["input"]):
        return "the hash does not match judge and input of the row"
    if "error" in row:
        return ""
    try:
        verdict = parse_reply(row["reply"])
    except ValueError as error:
        return str(error)
    repeated = {name: getattr(verdict, name) for name in SCORES}
    repeated["unsupported_claims"] = list(verdict.unsupported_claims)
    differs = [name for name, value in repeated.items() if row.get(name) != value]
    return f"{differs[0]} contradicts the reply of the judge" if differs else ""
