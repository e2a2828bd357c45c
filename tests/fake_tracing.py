"""A server that speaks the read APIs of Langfuse, LangSmith and Phoenix, over what the tools themselves recorded.

It is as strict as they are: a wrong key is 401, an unknown parameter or a page beyond the limit 400. The SDKs
(langfuse 5.0.4, langsmith 0.15.0, arize-phoenix-client 3.5.0) read all rows from it.
"""

from __future__ import annotations

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from cases import ROOT

PROJECT = "5d0f7c1e-0000-4000-8000-000000000001"
KEYS = {
    "LANGFUSE_PUBLIC_KEY": "pk-lf-0", "LANGFUSE_SECRET_KEY": "sk-lf-0", "LANGSMITH_API_KEY": "ls-0",
    "PHOENIX_API_KEY": "ph-0",
}  # fmt: skip
_GROUPS = {"core", "basic", "time", "io", "metadata", "model", "usage", "prompt", "metrics", "trace_context"}
_OBSERVATION_PARAMETERS = {"fields", "expandMetadata", "limit", "cursor", "fromStartTime", "toStartTime"}


def export(folder):
    """The files of an export that a tool wrote."""
    folder = ROOT / "tests" / "foreign" / folder
    return [folder / word for word in (folder / "args").read_text("utf-8").split() if ".json" in word]


def recorded(folder):
    """The rows of an export, of pages and of lines."""
    lines = [line for path in export(folder) for line in path.read_text("utf-8").splitlines()]
    return [row for value in map(json.loads, lines) for row in value.get("data", [value])]


class FakeTracing:
    """The three services on one port. ``page`` is the most that a page holds; ``older`` takes the newer APIs away.

    ``faults`` are replies that come first: a status, or bytes to send instead of the reply.
    """

    def __init__(self, page=6, *, older=False, faults=()):
        self.page, self.older, self.faults, self.calls = page, older, list(faults), []
        self.observations, self.spans = recorded("real-langfuse-observations"), recorded("real-phoenix-rest")
        self.runs, self.newer = recorded("real-langsmith-list-runs"), recorded("real-langsmith-query")

    def answer(self, method, target, headers, body):
        """Status, JSON value or bytes, headers."""
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        path = unquote(parts.path)
        self.calls.append((method, path, query, json.loads(body) if body else None))
        if self.faults:
            fault = self.faults.pop(0)
            return (fault, {"message": "busy"}, {"Retry-After": "0"}) if isinstance(fault, int) else (200, fault, {})
        if path.startswith("/api/public/"):
            return self._langfuse(path, query, headers)
        if path.startswith("/api/v"):
            return self._langsmith(path, query, headers, json.loads(body) if body else {})
        return self._phoenix(path, query, headers)

    def _langfuse(self, path, query, headers):
        expected = f"{KEYS['LANGFUSE_PUBLIC_KEY']}:{KEYS['LANGFUSE_SECRET_KEY']}".encode()
        if headers.get("Authorization") != "Basic " + base64.b64encode(expected).decode():
            return 401, {"error": "UnauthorizedError", "message": "Invalid credentials"}, {}
        since, until = query.get("fromStartTime", ""), query.get("toStartTime", "~")
        rows = [row for row in self.observations if since <= row["startTime"] < until]
        if path == "/api/public/v2/observations" and not self.older:
            unknown = query.keys() - _OBSERVATION_PARAMETERS or set(query.get("fields", "").split(",")) - _GROUPS
            if unknown or int(query.get("limit", 50)) > 1000:
                return 400, {"message": f"Invalid request data: {sorted(unknown)}"}, {}
            at, size = int(query.get("cursor", 0)), min(self.page, int(query.get("limit", 50)))
            meta = {"cursor": str(at + size)} if at + size < len(rows) else {}
            return 200, {"data": rows[at : at + size], "meta": meta}, {}
        if path == "/api/public/traces":
            roots = [row for row in self.observations if not row.get("parentObservationId")]
            rows = [
                {"id": row["traceId"], "timestamp": row["startTime"], "name": row["name"], "input": row["input"],
                 "output": row.get("output"), "metadata": row["metadata"],
                 "observations": [seen["id"] for seen in self.observations if seen["traceId"] == row["traceId"]]}
                for row in roots
            ]  # fmt: skip
        elif path != "/api/public/observations" or int(query.get("limit", 50)) > 100:
            return 404, {"error": "LangfuseNotFoundError", "message": "Not found"}, {}
        number, size = int(query.get("page", 1)), min(self.page, int(query.get("limit", 50)))
        meta = {"page": number, "limit": size, "totalItems": len(rows), "totalPages": -(-len(rows) // size)}
        return 200, {"data": rows[(number - 1) * size : number * size], "meta": meta}, {}

    def _langsmith(self, path, query, headers, body):
        result = 404, {"detail": "Not Found"}, {}
        if path == "/api/v1/info":
            result = 200, {"version": "0.16.0", "instance_flags": {"sdb_query_enabled": not self.older}}, {}
        elif headers.get("X-API-Key") != KEYS["LANGSMITH_API_KEY"]:
            result = 401, {"detail": "Invalid token"}, {}
        elif path == "/api/v1/sessions":
            result = 200, [{"id": PROJECT, "name": "shop"}] if query.get("name") == "shop" else [], {}
        elif path == "/api/v2/runs/query" and not self.older:
            size = body.get("page_size", 100)
            assert (body["project_ids"], 1 <= size <= 1000) == ([PROJECT], True)
            page, following = self._page(self.newer, body.get("min_start_time", ""), body, size)
            fields = {item.lower() for item in body["selects"]}
            result = 200, {"items": [_only(row, fields) for row in page], "next_cursor": following}, {}
        elif path == "/api/v1/runs/query":
            assert (body["session"], body["limit"] <= 100) == ([PROJECT], True)
            page, following = self._page(self.runs, body.get("start_time", ""), body, body["limit"])
            runs = [_only(row, set(body["select"])) for row in page]
            result = 200, {"runs": runs, "cursors": {"next": following}, "parsed_query": None}, {}
        return result

    def _page(self, runs, since, body, limit):
        runs = [run for run in runs if since <= run["start_time"]]
        at, size = int(body.get("cursor", 0)), min(self.page, limit)
        return runs[at : at + size], str(at + size) if at + size < len(runs) else None

    def _phoenix(self, path, query, headers):
        if headers.get("Authorization") != f"Bearer {KEYS['PHOENIX_API_KEY']}":
            return 401, {"detail": "Invalid token"}, {}
        if path != "/v1/projects/shop/spans":
            return 404, b"Project with name default not found", {}
        if query.keys() - {"limit", "cursor", "start_time", "end_time"} or int(query["limit"]) > 1000:
            return 422, {"detail": "limit"}, {}
        spans = [span for span in self.spans if query.get("start_time", "") <= span["start_time"]]
        at, size = int(query.get("cursor", 0)), min(self.page, int(query["limit"]))
        return (
            200,
            {"data": spans[at : at + size], "next_cursor": str(at + size) if at + size < len(spans) else None},
            {},
        )

    @contextmanager
    def serving(self):
        """Serve on a free port; gives the address."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, value, headers = fake.answer(self.command, self.path, self.headers, body)
                data = value if isinstance(value, bytes) else json.dumps(value, indent=1).encode()
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                cut = data.endswith(b"<cut>")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data) + 99 * cut))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = handle_any  # noqa: N815 - the names that the server calls

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


def _only(row, fields):
    return {name: value for name, value in row.items() if name in fields}
