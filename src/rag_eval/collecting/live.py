"""Fetch recorded traces from the API of Langfuse, LangSmith or Phoenix, a page at a time, as the importers read them.

Keys come from the environment variables that the tools' own SDKs read. Each page is yielded as one line of JSON, so
that the saved pages are a file that can be imported again without the API.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote
from uuid import UUID

import msgspec

from rag_eval.collecting.systems import http_client, pause, retry_after
from rag_eval.common.escaping import one_line
from rag_eval.errors import UsageError
from rag_eval.importers.unwrap import QID_KEYS, as_dict

Row = dict[str, Any]
ShowLine = Callable[[str], None]
_LARGEST = 512 << 20  # bytes of a page
_MARGIN = timedelta(hours=1)  # around the requested time, so that the traces in it are complete
_ABSENT = (404, 405, 501)  # for paths that this version of the server lacks
_LANGFUSE_FIELDS = "core,basic,time,io,metadata,model,usage,trace_context"
_LANGSMITH_FIELDS = (
    "id", "name", "run_type", "status", "start_time", "end_time", "error", "extra", "inputs", "outputs",
    "parent_run_ids", "trace_id", "dotted_order", "reference_example_id", "prompt_tokens", "completion_tokens",
    "total_cost",
)  # fmt: skip

MISSING: Any = object()  # the value of a path that the server does not have


class FetchRequest(NamedTuple):
    """A query for traces of a project in a time window, at most ``records`` spans."""

    project: str
    since: datetime
    until: datetime | None
    records: int
    timeout: float
    retries: int


class Page(NamedTuple):
    """One reply: its bytes, its number of records, and the query of the next page, empty for the last one."""

    body: bytes
    records: int
    following: str


Pages = Generator[Page, None, None]


class TraceServer:
    """One server. Busy servers are retried; every other failure is a UsageError that names the fix."""

    def __init__(self, request: FetchRequest, address: tuple[str, str], headers: Row, auth: Any = None) -> None:
        self._request, (self._variable, url) = request, address
        self._base = url.rstrip("/")
        self._httpx, self._client = http_client(
            "rag-eval import --from-api", self._variable, url, headers, auth=auth, timeout=request.timeout
        )
        if self._httpx.URL(url).userinfo:
            fix = f"export {self._variable}=https://HOST"
            raise UsageError(f"{self._variable} has a user name or a password. Write: {fix}")

    def page(self, method: str, path: str, absent: tuple[int, ...] = (), **send: Any) -> tuple[Any, bytes]:
        """Return the value and the bytes of a reply; ``MISSING`` as the value if its status is in ``absent``."""
        shown = f"{method} {self._base}{path}"
        for attempt in range(self._request.retries + 1):
            status, seconds, body = self._ask(method, path, send)
            if status in absent or 200 <= status < 300:
                break
            if status and status != 429 and status < 500:
                fix = "Correct the options"
                if status in (401, 403):
                    fix = f"Check the key in the environment, and that it belongs to the server in {self._variable}"
                elif status in _ABSENT or status < 400:
                    fix = f"Check {self._variable} and --project"
                raise UsageError(f"{shown}: HTTP {status}: {_text(body)}. {fix}")
            if attempt == self._request.retries:
                why = f"HTTP {status}: {_text(body)}" if status else _text(body)
                fix = f"Try again later, or check {self._variable}" if status else f"Check {self._variable}"
                raise UsageError(f"{shown}: {why}, in {attempt + 1} attempts. {fix}")
            time.sleep(pause(attempt, seconds))
        if status in absent:
            return MISSING, body
        try:
            return msgspec.json.decode(body), body
        except (ValueError, RecursionError) as error:
            fix = f"Check that {self._variable} is the API"
            raise UsageError(f"{shown}: the reply is not JSON ({error}): {_text(body)}. {fix}") from None

    def _ask(self, method: str, path: str, send: Row) -> tuple[int, float | None, bytes]:
        """Return status, seconds to wait and body of a reply; status 0 and the reason if there is no reply."""
        try:
            with self._client.stream(method, self._base + path, **send) as reply:
                body = bytearray()
                for block in reply.iter_bytes():
                    body += block
                    if len(body) > _LARGEST:
                        raise UsageError(f"{self._base}{path}: a reply of more than {_LARGEST >> 20} MiB")
        except self._httpx.HTTPError as error:
            return 0, None, f"{type(error).__name__}: {error}".encode()
        return reply.status_code, retry_after(reply.headers), bytes(body)

    def pages(
        self, method: str, path: str, query: Row, records: str, absent: tuple[int, ...] = ()
    ) -> Generator[Page, None, bool]:
        """Yield every page of a list; return False if the server does not have the path."""
        more: Row = {}
        while True:
            send = {"json" if method == "POST" else "params": {**query, **more}}
            value, body = self.page(method, path, () if more else absent, **send)
            if value is MISSING:
                return False
            if not isinstance(value, dict) or not isinstance(value.get(records), list):
                keys = ", ".join(map(str, value)) if isinstance(value, dict) else type(value).__name__
                raise UsageError(f"{path} has no list of {records}, but {one_line(keys)}. Check {self._variable}")
            more = _next(value)
            yield Page(body, len(value[records]), f"{more} of {path}" if more else "")
            if not more:
                return True

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _next(value: Row) -> Row:
    """Return the query of the page after this one; empty after the last one."""
    meta = as_dict(value.get("meta"))
    cursor = value.get("next_cursor") or meta.get("cursor") or as_dict(value.get("cursors")).get("next")
    if cursor:
        return {"cursor": cursor}
    page, total = meta.get("page"), meta.get("totalPages")
    return {"page": page + 1} if isinstance(page, int) and isinstance(total, int) and page < total else {}


def fetch(tool: str, request: FetchRequest, report: ShowLine, remark: ShowLine) -> Iterator[bytes]:
    """Yield the pages of a tool, each as one line. ``report`` shows progress, ``remark`` prints notes."""
    seen, records = set[str](), 0
    with closing(SOURCES[tool](request, remark)) as pages:
        for number, page in enumerate(pages, 1):
            records += page.records
            report(f"{number} page{'s' if number > 1 else ''}, {records} records")
            yield msgspec.json.format(page.body, indent=-1) + b"\n"
            if page.following and page.following in seen:
                where = one_line(page.following, 80)
                raise UsageError(f"{tool} returned the page {where} twice, so its pages never end")
            seen.add(page.following)
            if page.following and max(records, number) >= request.records:
                fix = "Fetch less with --since and --until, or raise --max-records"
                raise UsageError(f"more than {request.records} records. {fix}")


def _langfuse(request: FetchRequest, remark: ShowLine) -> Pages:
    keys = _key("LANGFUSE_PUBLIC_KEY"), _key("LANGFUSE_SECRET_KEY")
    address = _address(("LANGFUSE_BASE_URL", "LANGFUSE_HOST"), "https://cloud.langfuse.com")
    with closing(TraceServer(request, address, {}, keys)) as api:
        window = _window(request, "fromStartTime", "toStartTime")
        newer = {"fields": _LANGFUSE_FIELDS, "expandMetadata": ",".join(("attributes", *QID_KEYS)), "limit": 200}
        if not (yield from api.pages("GET", "/api/public/v2/observations", {**newer, **window}, "data", _ABSENT)):
            remark("this Langfuse has no observations API v2: reading observations and traces page by page")
            yield from api.pages("GET", "/api/public/observations", {"page": 1, "limit": 100, **window}, "data")
            window = _window(request, "fromTimestamp", "toTimestamp")
            yield from api.pages("GET", "/api/public/traces", {"page": 1, "limit": 100, **window}, "data")


def _langsmith(request: FetchRequest, remark: ShowLine) -> Pages:
    variable, url = _address(("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"), "https://api.smith.langchain.com")
    headers = {"X-API-Key": _key("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")}
    if workspace := os.environ.get("LANGSMITH_WORKSPACE_ID"):
        headers["X-Tenant-Id"] = workspace
    url = url.rstrip("/").removesuffix("/v1").removesuffix("/api")
    name = request.project or os.environ.get("LANGSMITH_PROJECT") or "default"
    with closing(TraceServer(request, (variable, url), headers)) as api:
        project = _project_id(api, name)
        window = _window(request, "start_time", "end_time")
        end = window.pop("end_time", "")
        older = {"session": [project], "limit": 100, "select": [*_LANGSMITH_FIELDS, "session_id", "parent_run_id"]}
        older |= {**window, **({"filter": f'lt(start_time, "{end}")'} if end else {})}
        fields = (*_LANGSMITH_FIELDS, "project_id", "metadata", "thread_id", "is_root")
        newer = {"project_ids": [project], "page_size": 200, "selects": [field.upper() for field in fields]}
        newer |= _window(request, "min_start_time", "max_start_time")
        queries = [("/api/v1/runs/query", older, "runs"), ("/api/v2/runs/query", newer, "items")]
        info = as_dict(api.page("GET", "/api/v1/info", (*_ABSENT, 401, 403))[0])
        if as_dict(info.get("instance_flags")).get("sdb_query_enabled"):
            queries.reverse()
        if not (yield from api.pages("POST", *queries[0], (*_ABSENT, 410))):
            remark(f"this LangSmith has no {queries[0][0]}: using {queries[1][0]}")
            yield from api.pages("POST", *queries[1])


def _project_id(api: TraceServer, name: str) -> str:
    """Return the id of a LangSmith project, which its API calls a session."""
    try:
        return str(UUID(name))
    except ValueError:
        page = api.page("GET", "/api/v1/sessions", params={"name": name, "limit": 1})[0]
    if not isinstance(page, list) or not page or not as_dict(page[0]).get("id"):
        raise UsageError(f"LangSmith has no project '{one_line(name)}'. Name it: --project NAME")
    return str(page[0]["id"])


def _phoenix(request: FetchRequest, _remark: ShowLine) -> Pages:
    names = ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_BASE_URL")
    variable, url = _address(names, "http://localhost:6006")
    headers = dict(parse_qsl(os.environ.get("PHOENIX_CLIENT_HEADERS", "").replace(",", "&")))
    if key := os.environ.get("PHOENIX_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    environment = os.environ.get("PHOENIX_PROJECT") or os.environ.get("PHOENIX_PROJECT_NAME")
    project = request.project or environment or "default"
    with closing(TraceServer(request, (variable, url.rstrip("/").removesuffix("/v1/traces")), headers)) as api:
        query = {"limit": 200, **_window(request, "start_time", "end_time")}
        if not (yield from api.pages("GET", f"/v1/projects/{quote(project, safe='')}/spans", query, "data", (404,))):
            raise UsageError(f"{variable} has no project '{one_line(project)}'. Name it: --project NAME")


SOURCES = {"langfuse": _langfuse, "langsmith": _langsmith, "phoenix": _phoenix}  # the importers that can fetch


def _window(request: FetchRequest, start: str, end: str) -> Row:
    """Return the query for a time window, with a margin so that the traces in it are complete."""
    times = {start: request.since - _MARGIN, **({end: request.until + _MARGIN} if request.until else {})}
    return {name: time.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z" for name, time in times.items()}


def _key(*names: str) -> str:
    key = next((value for name in names if (value := os.environ.get(name, "").strip())), "")
    if not key:
        raise UsageError(f"{names[0]} is not set. Make a key in the settings of the project, then: export {names[0]}=…")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{names[0]} has other characters than printable ASCII. Copy the key again.")
    return key


def _address(names: tuple[str, ...], default: str) -> tuple[str, str]:
    return next(((name, value) for name in names if (value := os.environ.get(name, "").strip())), (names[0], default))


def _text(body: bytes) -> str:
    return one_line(body[:2000].decode("utf-8", "replace"), 200) or "no text"
