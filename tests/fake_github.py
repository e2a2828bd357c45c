"""A small GitHub for tests: it keeps comments, files, reviews and pull requests, and fails when it is told to.

Its answers satisfy GitHub's own OpenAPI description; the end-to-end suite holds it to that.
"""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import github_objects as objects
from fake_repository import FakeRepository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BOT = "github-actions[bot]"
LONGEST_BODY, MOST_COMMITS, MOST_IN_A_REQUEST = 65_536, 250, 50


@dataclass
class Fault:
    """What is answered instead, ``times`` times, to a "METHOD path" that matches; ``done``: after doing it.

    ``raw`` is said in place of GitHub's words. ``how`` the answer fails to come: ``cut`` in the middle of it, ``hung
    up`` before it, ``in drops`` of a byte, ``headers in drops``, ``silent`` until nobody waits any more.
    """

    match: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "fault"
    times: int = 1
    done: bool = False
    raw: bytes | None = None
    how: str = ""


@dataclass(frozen=True)
class Seen:
    """One request as it came in, header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}


@dataclass
class Answer:
    status: int
    content: object = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    how: str = ""


class FakeGitHub:
    """One repository. ``prefix`` is the path in front of all others, as GitHub Enterprise Server has one."""

    def __init__(self, repository: str = "octo/hello", author: str = BOT, prefix: str = "") -> None:
        self.repository, self.author, self.prefix = repository, author, prefix
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.checks: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.may_check = True
        self.commits: dict[str, str] = {}
        self.reviews: dict[int, list[dict[str, Any]]] = {}
        self.pulls: dict[int, dict[str, Any]] = {}
        self.default_branch = "main"
        self.git: FakeRepository | None = None
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.graphql = True
        self.stalls = 60.0
        self.links, self.page_size = True, 100
        self.raw_type = "application/vnd.github.raw+json; charset=utf-8"
        self._lock = threading.Lock()
        self._next = 1000
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None, "start it first"
        return f"http://127.0.0.1:{self._server.server_port}{self.prefix}"

    @property
    def writes(self) -> list[str]:
        asked = (seen for seen in self.seen if seen.method != "GET" and not seen.target.endswith("/graphql"))
        return [f"{seen.method} {seen.target}" for seen in asked]

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[FakeGitHub]:
        handler = type("Handler", (_Handler,), {"github": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def add_comment(self, number: int, body: str, author: str | None = None) -> dict[str, Any]:
        self._next += 1
        made = objects.comment(self.repository, number, self._next, body, author or self.author)
        self.comments.setdefault(number, []).append(made)
        return made

    def add_pull(self, number: int, head: str, base: str, fork: str | None = None) -> dict[str, Any]:
        self.pulls[number] = objects.pull(self.repository, number, head, base, fork or self.repository)
        self.comments.setdefault(number, [])
        return self.pulls[number]

    def add_review(self, number: int, login: str, commit: str, state: str = "APPROVED") -> dict[str, Any]:
        self._next += 1
        made = objects.review(self.repository, number, self._next, login, commit, state)
        self.reviews.setdefault(number, []).append(made)
        return made

    def repository_at(self, path: Path) -> FakeRepository:
        """Serve what the git repository at ``path`` holds, as it is at the time of each request."""
        self.git = FakeRepository(path, self.repository)
        return self.git

    def answer(self, seen: Seen) -> Answer:
        """The answer to one request; requests are answered one after the other."""
        with self._lock:
            self.seen.append(seen)
            fault = self._fault(seen)
            if fault is None:
                return self._route(seen)
            if fault.done:
                self._route(seen)
            answer = _refuse(fault.status, fault.message, fault.headers)
            return replace(answer, raw=fault.raw, how=fault.how)

    def _fault(self, seen: Seen) -> Fault | None:
        for fault in self.faults:
            if fault.times and re.search(fault.match, f"{seen.method} {seen.target}"):
                fault.times -= 1
                return fault
        return None

    def _route(self, seen: Seen) -> Answer:
        path = urlsplit(seen.target).path.removeprefix(self.prefix)
        if path == "/user":
            return self._user()
        if seen.target == self.prefix.removesuffix("/v3") + "/graphql" and seen.method == "POST":
            return self._viewer(seen)
        for method, pattern, answer in _ROUTES:
            result = re.fullmatch(pattern.replace("REPO", re.escape(f"/repos/{self.repository}")), path)
            if result and method == seen.method:
                return answer(self, seen, *map(unquote, result.groups()))
        return _refuse(404, "Not Found")

    def _user(self) -> Answer:
        if self.author.endswith("[bot]"):
            return _refuse(403, "Resource not accessible by integration")
        return Answer(200, {**objects.user(self.author), **objects.PRIVATE})

    def _viewer(self, seen: Seen) -> Answer:
        """GraphQL, as far as it is asked; any token may ask it for its own name, unless it is turned off."""
        if not self.graphql:
            return _refuse(404, "Not Found")
        query = re.sub(r"\s", "", json.loads(seen.body)["query"])
        return Answer(200, {"data": {"viewer": {"login": self.author}}} if query == "query{viewer{login}}" else {})

    def list_comments(self, seen: Seen, number: str) -> Answer:
        if int(number) not in self.comments:
            return _refuse(404, "Not Found")
        return self._page(seen, self.comments[int(number)])

    def _page(self, seen: Seen, rows: list[dict[str, Any]]) -> Answer:
        size, page = min(int(seen.query.get("per_page", "30")), self.page_size), int(seen.query.get("page", "1"))
        more = self.links and page * size < len(rows)
        next_page = f"{self.url}{urlsplit(seen.target).path}?per_page={size}&page={page + 1}"
        return Answer(
            200, rows[(page - 1) * size : page * size], {"Link": f'<{next_page}>; rel="next"'} if more else {}
        )

    def create_comment(self, seen: Seen, number: str) -> Answer:
        refused = _refusal(seen)
        if refused is not None:
            return refused
        if int(number) not in self.comments:
            return _refuse(404, "Not Found")
        made = self.add_comment(int(number), json.loads(seen.body)["body"])
        return Answer(201, made, {"Location": made["url"]})

    def update_comment(self, seen: Seen, comment_id: str) -> Answer:
        refused = _refusal(seen)
        if refused is not None:
            return refused
        for comment in (row for rows in self.comments.values() for row in rows if row["id"] == int(comment_id)):
            comment.update(body=json.loads(seen.body)["body"], updated_at="2026-01-02T00:00:00Z")
            return Answer(200, comment)
        return _refuse(404, "Not Found")

    def create_check(self, seen: Seen) -> Answer:
        return self._put_check(seen, None)

    def update_check(self, seen: Seen, check_id: str) -> Answer:
        return self._put_check(seen, next((row for row in self.checks if row["id"] == int(check_id)), None))

    def _put_check(self, seen: Seen, standing: dict[str, Any] | None) -> Answer:
        """Write a check run, or add to one. GitHub keeps the annotations of each request."""
        if not self.may_check or not seen.headers.get("authorization", "").startswith("Bearer "):
            return _refuse(403, "Resource not accessible by integration")
        content = json.loads(seen.body)
        output = content["output"]
        if len(output["annotations"]) > MOST_IN_A_REQUEST or len(output["summary"]) >= LONGEST_BODY:
            return _refuse(422, "Invalid request")
        self.annotations += output["annotations"]
        if standing is not None:
            standing["output"]["annotations_count"] += len(output["annotations"])
            return Answer(200, standing)
        self._next += 1
        self.checks.append(objects.check_run(self.repository, self._next, content))
        return Answer(201, self.checks[-1])

    def list_checks(self, seen: Seen, sha: str) -> Answer:
        rows = [row for row in self.checks if (row["head_sha"], row["name"]) == (sha, seen.query.get("check_name"))]
        return Answer(200, {"total_count": len(rows), "check_runs": rows[::-1]})

    def commit(self, _: Seen, ref: str) -> Answer:
        sha = self.commits.get(ref) or self.commits.get(ref.removeprefix("heads/"))
        sha = sha or (self.git.resolve(ref) if self.git else None)
        if sha is None:
            return _refuse(422, f"No commit found for SHA: {ref}")
        return Answer(200, raw=sha.encode(), headers={"Content-Type": "application/vnd.github.sha"})

    def pull(self, _: Seen, number: str) -> Answer:
        result = self.pulls.get(int(number))
        return Answer(200, result) if result else _refuse(404, "Not Found")

    def list_pulls(self, seen: Seen) -> Answer:
        """The open ones; ``head`` asks for those of one branch, as OWNER:BRANCH."""
        wanted = seen.query.get("head", "")
        rows = [pull for pull in self.pulls.values() if pull["state"] == "open" and wanted in ("", _end(pull))]
        return self._page(seen, rows)

    def list_reviews(self, seen: Seen, number: str) -> Answer:
        return self._page(seen, self.reviews.get(int(number), []))

    def about(self, _: Seen) -> Answer:
        return Answer(200, objects.repository(self.repository, self.default_branch))

    def git_commit(self, _: Seen, sha: str) -> Answer:
        return _found(self.git and self.git.git_commit(sha))

    def git_tree(self, seen: Seen, sha: str) -> Answer:
        return _found(self.git and self.git.tree(sha, recursive="recursive" in seen.query))

    def git_blob(self, _: Seen, sha: str) -> Answer:
        data = self.git.blob(sha) if self.git else None
        return (
            _refuse(404, "Not Found")
            if data is None
            else Answer(200, raw=data, headers={"Content-Type": self.raw_type})
        )

    def compare(self, seen: Seen, ends: str) -> Answer:
        base, _, head = ends.partition("...")
        result = self.git and self.git.compare(base, head)
        if not result:
            return _refuse(404, "No common ancestor")
        page = self._page(seen, result["commits"])
        return Answer(200, {**result, "commits": page.content}, page.headers)

    def list_commits(self, seen: Seen) -> Answer:
        assert self.git is not None, "name a repository first"
        return self._page(seen, self.git.log(seen.query.get("sha", self.default_branch), seen.query.get("path", ".")))

    def pull_commits(self, seen: Seen, number: str) -> Answer:
        assert self.git is not None, "name a repository first"
        ends = [self.pulls[int(number)][end]["sha"] for end in ("base", "head")]
        return self._page(seen, self.git.between(*ends)[:MOST_COMMITS])


_ROUTES = (
    ("GET", r"REPO/issues/(\d+)/comments", FakeGitHub.list_comments),
    ("POST", r"REPO/issues/(\d+)/comments", FakeGitHub.create_comment),
    ("PATCH", r"REPO/issues/comments/(\d+)", FakeGitHub.update_comment),
    ("POST", r"REPO/check-runs", FakeGitHub.create_check),
    ("PATCH", r"REPO/check-runs/(\d+)", FakeGitHub.update_check),
    ("GET", r"REPO/commits/([^/]+)/check-runs", FakeGitHub.list_checks),
    ("GET", r"REPO/commits/([^/]+)", FakeGitHub.commit),
    ("GET", r"REPO/pulls", FakeGitHub.list_pulls),
    ("GET", r"REPO/pulls/(\d+)", FakeGitHub.pull),
    ("GET", r"REPO/pulls/(\d+)/reviews", FakeGitHub.list_reviews),
    ("GET", r"REPO/pulls/(\d+)/commits", FakeGitHub.pull_commits),
    ("GET", r"REPO", FakeGitHub.about),
    ("GET", r"REPO/commits", FakeGitHub.list_commits),
    ("GET", r"REPO/compare/([^/]+)", FakeGitHub.compare),
    ("GET", r"REPO/git/commits/([^/]+)", FakeGitHub.git_commit),
    ("GET", r"REPO/git/trees/([^/]+)", FakeGitHub.git_tree),
    ("GET", r"REPO/git/blobs/([^/]+)", FakeGitHub.git_blob),
)


class _Handler(BaseHTTPRequestHandler):
    github: FakeGitHub
    # One request a connection, which is the default: none outlives the server to be answered by an old one.
    wbufsize = -1

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._reply(self.github.answer(Seen(self.command, self.path, headers, body)))

    do_GET = do_POST = do_PATCH = _serve  # noqa: N815 - the names that http.server looks for

    def _reply(self, answer: Answer) -> None:
        if answer.how == "hung up":
            return
        if answer.how in ("silent", "headers in drops"):
            self._stall(answer.how)
            return
        data = json.dumps(answer.content).encode() if answer.raw is None else answer.raw
        headers = {"Content-Type": "application/json; charset=utf-8", "X-RateLimit-Remaining": "4999", **answer.headers}
        self.send_response(answer.status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.how == "in drops":
            self.wfile.flush()
            self._drip(data)
            return
        self.wfile.write(data[: len(data) // 2] if answer.how == "cut" else data)

    def _stall(self, how: str) -> None:
        """Never come to the end of the headers."""
        with suppress(OSError):
            self.connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            end = time.monotonic() + self.github.stalls
            while time.monotonic() < end:
                if how == "headers in drops":
                    self.connection.sendall(b"x")
                time.sleep(0.02)

    def _drip(self, data: bytes) -> None:
        """A byte at a time, until nobody listens any more."""
        with suppress(OSError):
            for index in range(len(data)):
                self.connection.sendall(data[index : index + 1])
                time.sleep(0.002)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: a test prints what it needs."""


def _end(pull: Mapping[str, Any]) -> str:
    """The branch that a pull request wants merged; empty where its repository is gone."""
    repository = pull["head"]["repo"]
    return f"{repository['owner']['login']}:{pull['head']['ref']}" if repository else ""


def _found(content: dict[str, Any] | None) -> Answer:
    return Answer(200, content) if content else _refuse(404, "Not Found")


def _refuse(status: int, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status, objects.error(message, status), dict(headers or {}))


def _refusal(seen: Seen) -> Answer | None:
    """What GitHub says to a write without a token or without a body that it takes."""
    if not seen.headers.get("authorization", "").startswith("Bearer "):
        return _refuse(401, "Requires authentication")
    body = json.loads(seen.body).get("body")
    if not isinstance(body, str) or not body.strip():
        return _refuse(422, "Validation Failed: Body cannot be blank")
    if len(body) > LONGEST_BODY:
        return _refuse(422, f"Validation Failed: Body is too long (maximum is {LONGEST_BODY} characters)")
    return None
