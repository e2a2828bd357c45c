"""A stand-in for a judge without a model: it speaks the chat-completions protocol, and grades by shared words.

python examples/rag-server/judge.py 8001
rag-eval judge --base-url http://127.0.0.1:8001/v1 --model shared-words-1 --gold examples/rag-server/gold.jsonl
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORD = re.compile(r"\w{4,}")


def words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}


def points(wanted: set[str], known: set[str]) -> int:
    return round(5 * len(wanted & known) / len(wanted)) if wanted else 5


def grade(shown: dict) -> dict:
    answer, texts = words(shown["answer"]), words(" ".join(chunk["text"] for chunk in shown["chunks"]))
    expected = words(shown.get("expected_answer", shown["answer"]))
    lost = sorted(answer - texts)
    return {
        "reason": f"{len(answer & texts)} of {len(answer)} words are in the passages.",
        "groundedness": points(answer, texts) if shown["chunks"] else None,
        "correctness": points(expected, answer),
        "relevancy": points(words(shown["question"]), answer | texts),
        "unsupported_claims": [" ".join(lost)] if lost else [],
    }


class Judge(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        begin = re.search(r"^\{", prompt, re.MULTILINE).start()
        shown = json.JSONDecoder().raw_decode(prompt, begin)[0]
        reply = {"role": "assistant", "content": json.dumps(grade(shown)), "refusal": None}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(reply["content"]) // 4}
        choice = {"index": 0, "message": reply, "finish_reason": "stop"}
        self.send(200, {"object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage})

    def do_GET(self):
        self.send(404, {"error": {"message": "POST to /v1/chat/completions"}})

    def send(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def serve(port: int) -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", port), Judge)


if __name__ == "__main__":
    serve(int(sys.argv[1]) if sys.argv[1:] else 8001).serve_forever()
