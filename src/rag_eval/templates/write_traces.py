"""Ask your system the questions of eval/gold.jsonl and write its answers to runs/trace.jsonl.

Replace `search` and `answer` with calls to your own system. Then run, in the folder of eval-gates.yml:

    python eval/write_traces.py
    rag-eval score
"""

import json
import re
from pathlib import Path

from rag_eval.trace import trace

GOLD = Path("eval/gold.jsonl")
TRACES = Path("runs/trace.jsonl")
DOCUMENTS = {
    "manual#keys": "The store rejects null keys. Empty strings are valid keys.",
    "manual#retention": "Deleted records are kept for 30 days. Then they are erased.",
}


def search(question: str) -> list[dict[str, str]]:
    """Return the documents that share two words with the question. Call your retriever here."""
    asked = words(question)
    return [{"id": name, "text": text} for name, text in DOCUMENTS.items() if len(asked & words(text)) >= 2]


def answer(question: str, documents: list[dict[str, str]]) -> tuple[str, list[str]]:
    """Return an answer and the ids that it cites. Call your model here."""
    if not documents:
        return "not in context", []
    sentences = re.split(r"(?<=[.]) ", documents[0]["text"])
    return max(sentences, key=lambda text: len(words(question) & words(text))), [documents[0]["id"]]


def words(text: str) -> set[str]:
    """Return the words of a text in lower case."""
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    TRACES.unlink(missing_ok=True)  # rows are appended
    for line in GOLD.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        with trace(item["qid"], item["question"], path=TRACES) as row:
            with row.stage("retrieve"):
                documents = search(item["question"])
            row.retrieved(documents)
            text, citations = answer(item["question"], documents)
            row.answer(text, citations=citations)
