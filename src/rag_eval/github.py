"""GitHub's REST API, as much of it as the action uses, spoken so that a hostile or a failing network does no harm.

The token travels in one header, to the host of the API and to no other: redirects elsewhere are refused, and neither
``repr`` nor an error message nor a URL holds it. Faults that pass are waited out within ``Network.patience``; all
others are a ``GitHubError`` whose message says what to do.
"""

from __future__ import annotations

import json
import re
import time
from itertools import count
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlencode, urljoin, urlsplit

from rag_eval import __version__
from rag_eval.errors import MissingExtra, RagEvalError, UsageError
from rag_eval.safe import one_line, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from urllib3 import PoolManager

BOT = "github-actions[bot]"
"""The login that writes with a workflow's own token; the API does not tell that token its name."""

PATIENCE = 300.0
"""Seconds that one ``GitHub`` waits in all for faults to pass: no job should hang for the sake of a comment."""

_PER_PAGE, _MOST_PAGES, _MOST_TRIES, _MOST_REDIRECTS = 100, 300, 6, 3
_CONNECT_SECONDS, _READ_SECONDS = 10.0, 30.0
_JSON, _RAW, _SHA = "application/vnd.github+json", "application/vnd.github.raw+json", "application/vnd.github.sha"
_OURS = {"User-Agent": f"rag-eval/{__version__}", "X-GitHub-Api-Version": "2022-11-28"}
_REPOSITORY = re.compile(r"(?!\.{1,2}/)[\w.-]+/(?!\.{1,2}\Z)[\w.-]+", re.ASCII)
_REF = re.compile(r"(?!.*\.\.)[^\x00-\x20\x7f~^:?*\[\\]+")


class GitHubError(RagEvalError):
    """GitHub refused, failed or could not be reached. ``status`` is that of HTTP, 0 where no answer came."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Comment(NamedTuple):
    """A comment of an issue or pull request. ``author`` is a login, empty where the account is gone."""

    id: int
    author: str
    body: str
    url: str


class Network(NamedTuple):
    """How the API is reached: an address of a proxy, a file of trusted certificates, and a clock in seconds."""

    proxy: str | None = None
    ca_bundle: str | None = None
    patience: float = PATIENCE
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], api_url: str) -> Network:
        """What ``HTTPS_PROXY``, ``NO_PROXY`` and ``REQUESTS_CA_BUNDLE`` say for this address, in either case."""
        settings = {name.lower(): value for name, value in environ.items()}
        address = urlsplit(api_url)
        direct = _listed(address.hostname or "", settings.get("no_proxy", ""))
        proxy = None if direct else settings.get(f"{address.scheme}_proxy")
        return cls(proxy=proxy or None, ca_bundle=environ.get("REQUESTS_CA_BUNDLE") or None)


class _Request(NamedTuple):
    """``aim`` completes "The token may not …", ``needs`` is the permission that allows it."""

    method: str
    path: str
    aim: str
    needs: str = ""
    accept: str = _JSON
    content: Mapping[str, str] | None = None


class _Answer(NamedTuple):
    """One answer; status 0 and the reason as ``data`` where none came. The names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> object:
        """What the answer says. Raises GitHubError where it is no JSON."""
        try:
            value: object = json.loads(self.data)
        except (ValueError, RecursionError):
            raise GitHubError(self.status, "GitHub's answer is no JSON: is a proxy in between?") from None
        return value

    def message(self) -> str:
        """What the answer says of an error: GitHub's own sentence, or the reason that there is no answer."""
        if not self.status:
            return self.data.decode("utf-8", "replace")
        try:
            return _text(self.json(), "message")
        except GitHubError:
            return ""

    def rate_limited(self) -> bool:
        """Whether the refusal passes with time. A 403 for want of a permission does not."""
        if self.status == 429:
            return True
        spent = self.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in self.headers
        return self.status == 403 and (spent or "rate limit" in self.message().lower())


class GitHub:
    """One repository behind one API address, with one token (empty: none).

    Raises UsageError for an address, a repository or a token that cannot be one, MissingExtra without urllib3.
    """

    def __init__(self, api_url: str, token: str, repository: str, network: Network | None = None) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise UsageError(f"{quoted(repository)} is no repository. Give it as owner/name.")
        self.repository = repository
        self._http = _Http(api_url, token, network or Network())

    def __repr__(self) -> str:
        return f"GitHub({self._http.address.geturl()!r}, {self.repository!r})"

    def login(self) -> str:
        """Whose comments ours are. A workflow's own token may not ask, and writes as ``github-actions[bot]``."""
        try:
            return _text(self._http.send(_Request("GET", "/user", "ask for its own name")).json(), "login") or BOT
        except GitHubError as refused:
            if refused.status in (401, 403, 404):
                return BOT
            raise

    def comments(self, number: int) -> Iterator[Comment]:
        """All comments of the issue or pull request ``number``, oldest first, page by page."""
        path = self._path(f"issues/{number:d}/comments")
        for page in range(1, _MOST_PAGES + 1):
            where = f"{path}?per_page={_PER_PAGE}&page={page}"
            answer = self._http.send(_Request("GET", where, "read the comments", "pull-requests: read"))
            found = _rows(answer)
            yield from (_comment(row, answer.status) for row in found)
            # Only whether there is a next page is taken from the header: the address in it may name another host.
            if len(found) < _PER_PAGE and 'rel="next"' not in answer.headers.get("link", ""):
                return
        raise GitHubError(0, f"#{number} has over {_PER_PAGE * _MOST_PAGES} comments, too many to find one's own.")

    def create_comment(self, number: int, body: str, already: Callable[[], Comment | None]) -> Comment:
        """Write a new comment.

        ``already`` is asked before each further try and ends them with what it finds: that an answer got lost does not
        mean that nothing was written.
        """
        path = self._path(f"issues/{number:d}/comments")
        tries = self._http.tries(_Request("POST", path, "comment", "pull-requests: write", content={"body": body}))
        while (answer := next(tries)) is None:
            if found := already():
                return found
        return _comment(answer.json(), answer.status)

    def update_comment(self, comment_id: int, body: str) -> Comment:
        """Replace the text of a comment."""
        path = self._path(f"issues/comments/{comment_id:d}")
        request = _Request("PATCH", path, "change the comment", "pull-requests: write", content={"body": body})
        answer = self._http.send(request)
        return _comment(answer.json(), answer.status)

    def file(self, path: str, ref: str) -> bytes:
        """The bytes of the file ``path`` at ``ref``. A GitHubError of status 404: no such file, ref or permission."""
        # urllib3 resolves dot segments, so that a path could leave the folder of the API that is meant.
        if not path or any(part in ("", ".", "..") for part in path.split("/")):
            raise UsageError(f"{quoted(path)} is no path of a file. Give it from the repository's root, without dots.")
        where = self._path(f"contents/{quote(path, safe='')}?{urlencode({'ref': _checked_ref(ref)})}")
        aim = f"read {quoted(path)} at {quoted(ref)}"
        answer = self._http.send(_Request("GET", where, aim, "contents: read", _RAW))
        # For a folder, GitHub sends its list of files as JSON instead; a JSON file comes as raw+json too.
        if answer.headers.get("content-type", "").startswith("application/json"):
            raise GitHubError(answer.status, f"{quoted(path)} at {quoted(ref)} is a folder. Name a file.")
        return answer.data

    def commit(self, ref: str) -> str:
        """The full hash of the commit that a branch, tag or hash stands for now. Status 404 or 422: there is none."""
        where = self._path(f"commits/{quote(_checked_ref(ref), safe='')}")
        answer = self._http.send(_Request("GET", where, f"find {quoted(ref)}", "contents: read", _SHA))
        sha = answer.data.decode("ascii", "replace").strip()
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", sha):
            raise GitHubError(answer.status, f"GitHub's answer for {quoted(ref)} is no hash of a commit.")
        return sha

    def _path(self, rest: str) -> str:
        return f"/repos/{self.repository}/{rest}"


class _Http:
    """Sends requests, repeats those whose failure passes, and turns the other failures into sentences."""

    def __init__(self, api_url: str, token: str, network: Network) -> None:
        self.address = _checked_address(api_url)
        self._headers = {**_OURS, **_bearer(token)}
        self._network, self._patience = network, network.patience
        self._pool = _pool(network)

    def send(self, request: _Request) -> _Answer:
        """The good answer to ``request``. Raises GitHubError when there is none."""
        return next(answer for answer in self.tries(request) if answer)

    def tries(self, request: _Request) -> Iterator[_Answer | None]:
        """The good answer, and before it a None for each try whose failure passes, after waiting for that."""
        for attempt in count():
            answer = self._once(request)
            if answer.good:
                break
            self._wait(request, answer, attempt)
            yield None
        yield answer

    def _wait(self, request: _Request, answer: _Answer, attempt: int) -> None:
        """Sleep until another try makes sense. Raises GitHubError where none does, or patience ends before."""
        seconds = _delay(answer, attempt, self._network.now())
        if seconds is None or seconds > self._patience or attempt + 1 >= _MOST_TRIES:
            raise GitHubError(answer.status, _sentence(request, answer, seconds))
        self._patience -= seconds
        self._network.sleep(seconds)

    def _once(self, request: _Request) -> _Answer:
        url = self.address.geturl() + request.path
        for _ in range(1 + _MOST_REDIRECTS):
            answer = self._ask(request, url)
            if answer.status not in ((301, 302, 307, 308) if request.method == "GET" else (307, 308)):
                return answer
            url = urljoin(url, answer.headers.get("location", ""))
            if not _same_host(urlsplit(url), self.address):
                raise GitHubError(answer.status, "GitHub sent us on to another host, where the token must not go.")
        raise GitHubError(answer.status, "GitHub sends us in circles. Was the repository renamed?")

    def _ask(self, request: _Request, url: str) -> _Answer:
        from urllib3 import exceptions

        body = None if request.content is None else json.dumps(request.content).encode()
        headers = {**self._headers, "Accept": request.accept, **({"Content-Type": "application/json"} if body else {})}
        try:
            got = self._pool.request(request.method, url, body=body, headers=headers, redirect=False, retries=False)
        except exceptions.SSLError as error:
            advice = "Name the authority's certificate in REQUESTS_CA_BUNDLE."
            raise GitHubError(0, f"No safe connection to the API: {one_line(str(error), 200)}. {advice}") from None
        except (exceptions.HTTPError, OSError) as error:
            return _Answer(0, {}, one_line(str(error), 200).encode())
        return _Answer(got.status, {name.lower(): value for name, value in got.headers.items()}, got.data)


def _pool(network: Network) -> PoolManager:
    try:
        import urllib3
    except ImportError:
        raise MissingExtra("Speaking with GitHub", "action") from None
    timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS)
    if network.proxy is None:
        return urllib3.PoolManager(timeout=timeout, ca_certs=network.ca_bundle)
    login = urllib3.util.parse_url(network.proxy).auth
    headers = urllib3.make_headers(proxy_basic_auth=login) if login else None
    return urllib3.ProxyManager(network.proxy, proxy_headers=headers, timeout=timeout, ca_certs=network.ca_bundle)


def _delay(answer: _Answer, attempt: int, now: float) -> float | None:
    """Seconds until another try makes sense, None where none does. ``attempt`` counts from 0."""
    told = _digits(answer.headers.get("retry-after"))
    if answer.rate_limited():
        reset = _digits(answer.headers.get("x-ratelimit-reset"))
        if told is None and reset is not None and answer.headers.get("x-ratelimit-remaining") == "0":
            told = reset - now
        return 60.0 * 2**attempt if told is None else max(told, 1.0)
    if answer.status == 0 or answer.status >= 500:
        return 1.0 * 2**attempt if told is None else max(told, 1.0)
    return None


def _sentence(request: _Request, answer: _Answer, seconds: float | None) -> str:
    """What went wrong and what to do."""
    said = f" GitHub says {quoted(answer.message(), 200)}." if answer.message() else ""
    needs = request.needs or "the permission"
    if answer.rate_limited():
        return f"GitHub's rate limit forbids to {request.aim} for another {seconds:.0f} s. Run the job again later."
    if seconds is not None:
        what = f"answered {answer.status}" if answer.status else "could not be reached"
        return f"Could not {request.aim}: GitHub {what}, {_MOST_TRIES} tries at most.{said} Run the job again later."
    if answer.status == 401:
        return f"GitHub does not know the token, to {request.aim}.{said} Pass github-token: ${{{{ github.token }}}}."
    if answer.status == 403:
        why = "Runs for forks and for Dependabot are never given it."
        return f"The token may not {request.aim}: the job needs `{needs}` under permissions. {why}{said}"
    if answer.status == 404:
        return f"Could not {request.aim}: GitHub finds no such thing. A token without `{needs}` is told the same.{said}"
    return f"Could not {request.aim}: GitHub answered {answer.status}.{said}"


def _checked_address(api_url: str) -> SplitResult:
    shown = quoted(api_url.rpartition("@")[2])
    wrong = UsageError(f"{shown} is no address of GitHub's API. Take what GITHUB_API_URL holds.")
    try:
        address = urlsplit(api_url.rstrip("/"))
        _origin(address)
    except ValueError:
        raise wrong from None
    unwanted = address.username or address.password or address.query or address.fragment
    if address.scheme not in ("https", "http") or not address.hostname or unwanted:
        raise wrong
    return address


def _checked_ref(ref: str) -> str:
    if not _REF.fullmatch(ref):
        raise UsageError(f"{quoted(ref)} is no name of a branch, tag or commit.")
    return ref


def _bearer(token: str) -> dict[str, str]:
    # http.client would refuse such a token as well, with an exception that quotes it.
    if not re.fullmatch(r"[\x21-\x7e]*", token.strip()):
        raise UsageError("github-token holds a character that no token has. Pass github-token: ${{ github.token }}.")
    return {"Authorization": f"Bearer {token.strip()}"} if token.strip() else {}


def _same_host(one: SplitResult, other: SplitResult) -> bool:
    try:
        return _origin(one) == _origin(other)
    except ValueError:
        return False


def _origin(address: SplitResult) -> tuple[str, str | None, int | None]:
    return address.scheme, address.hostname, address.port or {"https": 443, "http": 80}.get(address.scheme)


def _listed(host: str, no_proxy: str) -> bool:
    names = [name.strip().lstrip(".").lower() for name in no_proxy.split(",")]
    return any(name and (name in ("*", host) or host.endswith("." + name)) for name in names)


def _digits(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"[0-9]{1,12}", text) else None


def _text(value: object, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _rows(answer: _Answer) -> list[object]:
    rows = answer.json()
    if not isinstance(rows, list):
        raise GitHubError(answer.status, "GitHub's answer is no list of comments: is a proxy in between?")
    return rows


def _comment(row: object, status: int) -> Comment:
    number = row.get("id") if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(number, int):
        raise GitHubError(status, "GitHub's answer is no comment: is a proxy in between?")
    return Comment(number, _text(row.get("user"), "login"), _text(row, "body"), _text(row, "html_url"))
