"""Answer one question with your system. `rag-eval collect` asks all questions of eval/gold.jsonl.

Replace `search` and `answer` with calls to your own system. Then run, in the folder of eval-gates.yml:

    rag-eval collect --python eval.answer:answer
    rag-eval score
"""

import json
import re
import sys

DOCUMENTS = {
    "manual#keys": "The store rejects null keys. Empty strings are valid keys.",
    "manual#retention": "Deleted records are kept for 30 days. Then they are erased.",
}


def search(question: str) -> list[dict[str, str]]:
    """Return the documents that share two words with the question. Call your retriever here."""
    asked = words(question)
    return [{"id": name, "text": text} for name, text in DOCUMENTS.items() if len(asked & words(text)) >= 2]


def answer(question: str) -> dict[str, object]:
    """Return answer, citations and retrieved chunks. Call your model here."""
    chunks = search(question)
    if not chunks:
        return {"answer": "not in context", "citations": [], "chunks": []}
    sentences = re.split(r"(?<=[.]) ", chunks[0]["text"])
    best = max(sentences, key=lambda text: len(words(question) & words(text)))
    return {"answer": best, "citations": [chunks[0]["id"]], "chunks": chunks}


def words(text: str) -> set[str]:
    """Return the words of a text in lower case."""
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":  # collect --exec writes a JSON line for each question and reads one back
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)["question"])), flush=True)
