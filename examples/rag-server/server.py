"""A small RAG server without a model: BM25 over the files of a folder, the best sentence as the answer.

python examples/rag-server/server.py 8000
rag-eval collect --url http://127.0.0.1:8000 --preset rag-server --gold examples/rag-server/gold.jsonl
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WORD = re.compile(r"\w+")
STOP = frozenset(
    "a an and are as at be by do does for from how in is it of on or that the to what when which who with".split()
)


class Index:
    """Paragraphs of Markdown files as chunks ``FILE#N``, ranked by BM25."""

    def __init__(self, folder: Path) -> None:
        self.chunks = {
            f"{path.stem}#{number}": text.strip()
            for path in sorted(folder.glob("*.md"))
            for number, text in enumerate(path.read_text("utf-8").split("\n\n"))
            if text.strip() and not text.startswith("#")
        }
        self.words = {name: Counter(words(text)) for name, text in self.chunks.items()}
        self.length = sum(sum(counts.values()) for counts in self.words.values()) / max(1, len(self.words))
        self.found_in = Counter(word for counts in self.words.values() for word in counts)

    def search(self, question: str, top: int) -> list[tuple[str, float]]:
        scores = {}
        for name, counts in self.words.items():
            size = sum(counts.values()) / self.length
            score = 0.0
            for word in words(question):
                if word in counts:
                    rarity = math.log(1 + (len(self.words) - self.found_in[word] + 0.5) / (self.found_in[word] + 0.5))
                    score += rarity * counts[word] * 2.5 / (counts[word] + 1.5 * (0.25 + 0.75 * size))
            if score > 0:
                scores[name] = score
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:top]


def words(text: str) -> list[str]:
    return [word.rstrip("s") for word in WORD.findall(text.lower()) if word not in STOP]


def answer(index: Index, question: str, top: int) -> dict[str, object]:
    """The answer, what it cites, and what was retrieved."""
    started = time.perf_counter()
    ranked = index.search(question, top)
    retrieved = (time.perf_counter() - started) * 1000
    asked = set(words(question))
    claim, cited = "not in context", []
    if ranked:
        name = ranked[0][0]
        sentences = re.split(r"(?<=[.!?])\s+", index.chunks[name])
        best = max(sentences, key=lambda text: len(asked & set(words(text))))
        if len(asked & set(words(best))) * 2 >= len(asked):
            claim, cited = best, [name]
    sources = [
        {"chunk_id": name, "doc_id": name.partition("#")[0], "text": index.chunks[name], "score": score}
        for name, score in ranked
    ]
    return {"answer": claim, "citations": cited, "sources": sources, "timings": {"retrieve_ms": retrieved}}


def serve(port: int, folder: Path) -> ThreadingHTTPServer:
    """A server on the loopback address; port 0 takes any that is free."""
    index = Index(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages = {"/health": {"status": "ok"}, "/config": {"retriever": "bm25", "chunks": len(index.chunks)}}
            self.reply(200 if self.path in pages else 404, pages.get(self.path, {"error": "no such page"}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(200, answer(index, body.get("query") or body.get("question"), int(body.get("k", 3))))

        def reply(self, status: int, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8000, Path(__file__).parent / "corpus").serve_forever()
