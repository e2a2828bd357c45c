"""What stands in front of Prism: the base path of GitHub Enterprise Server, and an ear for what Prism objects to."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "/api/v3"
_HOP = ("connection", "host", "transfer-encoding", "content-length", "keep-alive")


@dataclass
class Front:
    """``url`` is where clients ask, ``objections`` what Prism said of a request or an answer that breaks the rules."""

    url: str
    objections: list[str] = field(default_factory=list)


@contextmanager
def front(after: str) -> Iterator[Front]:
    """Forward every request below ``PREFIX`` to the address ``after``."""
    result = Front("")
    host = urlsplit(after).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/api/graphql":  # no description has it
                self.send_error(404)
                return
            assert self.path.startswith(PREFIX), self.path
            connection = HTTPConnection(host, timeout=60)
            remaining = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            connection.request(self.command, self.path.removeprefix(PREFIX), body or None, remaining)
            answer = connection.getresponse()
            data = answer.read()
            if "problem+json" in (answer.headers.get("Content-Type") or ""):
                result.objections.append(f"{self.command} {self.path}: {data.decode('utf-8', 'replace')[:2000]}")
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            connection.close()

        do_GET = do_POST = do_PATCH = _forward  # noqa: N815 - the names that http.server looks for

        def log_message(self, *_: object) -> None:
            """Say nothing: http.server would write a line for each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    result.url = f"http://127.0.0.1:{server.server_port}{PREFIX}"
    try:
        yield result
    finally:
        server.shutdown()
        server.server_close()
