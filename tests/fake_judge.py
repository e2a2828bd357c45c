"""A server that speaks the chat-completions protocol, and judges by a function of what it is shown."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD = {"reason": "It says so.", "groundedness": 5, "correctness": 5, "relevancy": 5, "unsupported_claims": []}


def completion(content, finish="stop", refusal=None, model="judge-1"):
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    usage = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1764000000, "model": model}
    return {**head, "choices": [choice], "usage": usage}


def shown_in(text):
    """The JSON object that a prompt shows to the judge."""
    return next(value for value in _objects(text) if "question" in value)


def _objects(text):
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        try:
            yield json.JSONDecoder().raw_decode(text, match.start())[0]
        except ValueError:
            continue


def error(message, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class FakeJudge:
    """``reply(shown)`` gives a verdict, a (status, JSON value, headers) or a chat completion."""

    def __init__(self, reply=lambda _: GOOD, key=None):
        self.reply, self.key, self.calls, self.headers = reply, key, [], []
        self._lock = threading.Lock()

    def answer(self, path, body, headers):
        if path != "/v1/chat/completions":
            return 404, error(f"Invalid URL (POST {path})"), {}
        if self.key and headers.get("Authorization") != f"Bearer {self.key}":
            return 401, error("Incorrect API key provided", "authentication_error"), {}
        if not isinstance(body.get("model"), str) or not body.get("messages"):
            return 400, error("you must provide a model parameter"), {}
        shown = shown_in(body["messages"][0]["content"])
        with self._lock:
            self.calls.append(body)
            self.headers.append(headers)
        made = self.reply(shown)
        if isinstance(made, tuple):
            return made if len(made) == 3 else (*made, {})
        return 200, made if "choices" in made else completion(json.dumps(made), model=body["model"]), {}

    @contextmanager
    def serving(self):
        judge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send(*judge.answer(self.path, body, dict(self.headers)))

            def do_GET(self):
                self.send(404, error("Not found"), {})

            def send(self, status, value, headers):
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            server.server_close()
