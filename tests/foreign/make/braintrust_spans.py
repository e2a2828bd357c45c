"""Record the spans that braintrust sends: pip install braintrust. Its API returns them under the same names."""

from __future__ import annotations

import json
import os

import system
from server import Recorder

ROWS: dict[str, dict] = {}


def answer(method: str, path: str, body: bytes):
    """The parts of the Braintrust API that the client calls here."""
    if path.endswith("/login"):
        return {"org_info": [{"id": "o1", "name": "shop", "api_url": recorder.url, "proxy_url": recorder.url}]}
    if path.endswith("/logs3"):
        for row in json.loads(body)["rows"]:
            known = ROWS.setdefault(row["id"], {})
            for name, item in row.items():
                known[name] = known.get(name, {}) | item if isinstance(item, dict) else item
        return {"ids": []}
    return {"id": "p1", "name": "shop"}


recorder = Recorder(answer)
os.environ |= {"BRAINTRUST_API_KEY": "none", "BRAINTRUST_APP_URL": recorder.url, "BRAINTRUST_API_URL": recorder.url}

import braintrust  # noqa: E402
from braintrust import current_span, init_logger, traced  # noqa: E402

init_logger(project="shop", async_flush=False)


@traced(type="tool", name="retrieve")
def retrieve(question: str) -> list[dict]:
    """Documents as plain objects."""
    return [
        {"id": item, "content": text, "score": score, "metadata": {"source": "handbook.md"}}
        for item, text, score in system.retrieve(question)
    ]


@traced(type="llm", name="generate")
def generate(question: str) -> str:
    """A model."""
    text = system.generate(question)
    current_span().log(metadata={"model": "small"}, metrics={"prompt_tokens": 120, "completion_tokens": 12})
    return text


@traced(name="ask")
def ask(question: str, qid: str) -> str:
    """The application."""
    current_span().log(metadata={"qid": qid})
    retrieve(question)
    return generate(question)


for qid, (question, _, _) in system.QUESTIONS.items():
    try:
        ask(question, qid)
    except TimeoutError:
        pass
braintrust.flush()
to = system.folder("real-braintrust", "braintrust spans.jsonl --citations numbers")
for row in ROWS.values():
    row.pop("context")  # paths of the machine
    row.pop("_is_merge", None)
    if "error" in row:
        row["error"] = "Traceback (most recent call last):\n  …\n" + row["error"].strip().rpartition("\n")[2] + "\n"
system.write(to / "spans.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS.values()))
