"""What the tests of the readers share: good rows, and files read into what was found."""

import json
from pathlib import Path

from msgspec.structs import replace

from rag_eval.readers.source import DEFAULTS
from seams import ProblemCollector, Reader

SCHEMAS = Path(__file__).parent.parent / "schemas"


def gold(**changes):
    row = {
        "qid": "A0001",
        "question": "Does X take null keys?",
        "answerable": True,
        "gold_claim_substr": ["rejects null keys"],
        "gold_citations": ["p1#2"],
    }
    return {**row, **changes}


def trace(**changes):
    row = {
        "qid": "A0001",
        "retrieved_ids": ["p1#1", "p1#2"],
        "answer_json": {"claim": "X rejects null keys.", "citations": ["p1#2"]},
    }
    return {**row, **changes}


def element(**changes):
    return {"qid": "A0001", "q": "What is X?", "answerable": True, "gold_ids": ["p1#1"], **changes}


def full(name):
    """A row with every field of a schema, each as in its example."""
    fields = json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))["properties"]
    row = {field: schema["examples"][0] for field, schema in fields.items()}
    return row | ({"required_support_groups": [[0]]} if name == "gold" else {})


def jsonl(*rows):
    return b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)


def reader(root=None, **limits):
    return Reader(ProblemCollector(), replace(DEFAULTS, **limits), root)


def put(folder, data, name="data.jsonl"):
    path = folder / name
    path.write_bytes(data)
    return str(path)


def said(ledger, path=""):
    """The problems as lines, with the file's name as short as can be."""
    return [str(problem).replace(path, "FILE") if path else str(problem) for problem in ledger.problems]
