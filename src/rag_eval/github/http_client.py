"""HTTP for GitHub's REST API, safe against hostile and failing networks.

The token is sent in one header, only to the host of the API: redirects elsewhere are refused, and no error message or
URL contains it. Temporary failures are retried within ``Network.patience``; all others are a ``GitHubError`` whose
message has the fix.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from rag_eval import __version__
from rag_eval.common.escaping import one_line, quantity, quoted
from rag_eval.errors import MissingExtra, RagEvalError, UsageError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

T = TypeVar("T")

PATIENCE = 300.0
"""Seconds that one ``GitHub`` takes in all, for answers and for faults to pass: no job should hang for a comment."""
MOST_BYTES = 128 << 20  # what one answer may hold; GitHub gives no file of more than 100 MB
JSON = "application/vnd.github+json"
GRAPHQL = "/graphql"  # the path of the other API. On Enterprise Server it is next to ``/api/v3``, not below it
_MAX_ATTEMPTS, _MOST_REDIRECTS = 6, 3
_CONNECT_SECONDS = 5.0
_OUTAGE = 60.0
"""Seconds after which a request to a server that is down is given up; after that each request gets one attempt."""
_HEADERS = {"User-Agent": f"rag-eval/{__version__}", "X-GitHub-Api-Version": "2022-11-28"}


class GitHubError(RagEvalError):
    """GitHub refused, failed or could not be reached. ``status`` is HTTP's, 0 without a usable answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Network(NamedTuple):
    """The connection to the API: proxy address, trusted certificates, time limits, and a clock in seconds.

    ``ca_bundle`` is the path of a file, ``ca_certificates`` the text of one. GitHub ends a request after 10 seconds, so
    no status line can take longer than ``headers_seconds``; a body may be 100 MB.
    """

    proxy: str | None = None
    proxy_from: str = "HTTPS_PROXY"
    ca_bundle: str | None = None
    ca_certificates: str | None = None
    patience: float = PATIENCE
    headers_seconds: float = 15.0
    body_seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], api_url: str) -> Network:
        """Read ``HTTPS_PROXY``, ``NO_PROXY`` and ``REQUESTS_CA_BUNDLE`` for this address, in either case."""
        settings = {name.lower(): value for name, value in environ.items()}
        try:
            scheme, host, port = _origin(urlsplit(api_url))
        except ValueError:
            return cls()  # the client refuses such an address with a message
        entries = [entry.strip().lower() for entry in settings.get("no_proxy", "").split(",")]
        domains = tuple(f".{entry.lstrip('*.')}" for entry in entries if entry)
        is_direct = "*" in entries or f".{host}".endswith(domains) or f".{host}:{port}".endswith(domains)
        proxy = None if is_direct else settings.get(f"{scheme}_proxy")
        return cls(proxy=proxy or None, ca_bundle=environ.get("REQUESTS_CA_BUNDLE") or None)


class Request(NamedTuple):
    """``aim`` completes "The token may not …", ``needs`` is the permission that allows it."""

    method: str
    path: str
    aim: str
    needs: str = ""
    accept: str = JSON
    content: Mapping[str, Any] | None = None


class Response(NamedTuple):
    """One answer; status 0 and the reason as ``data`` if there was none. The names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def is_outage(self) -> bool:
        """Return whether GitHub is unreachable or returns a server error."""
        return self.status == 0 or self.status >= 500

    def json(self) -> object:
        """Return the answer's JSON. Raise GitHubError if it is not JSON."""
        try:
            value: object = json.loads(self.data)
        except (ValueError, RecursionError):
            raise GitHubError("GitHub's answer is not JSON. Check if a proxy changed it.") from None
        return value

    def message(self) -> str:
        """Return the error: GitHub's own sentence, or the reason why there is no answer."""
        if not self.status:
            return self.data.decode("utf-8", "replace")
        try:
            return text_at(self.json(), "message")
        except GitHubError:
            return ""

    def rate_limited(self) -> bool:
        """Return whether a later request may succeed. A 403 for a missing permission never does."""
        if self.status == 429:
            return True
        spent = self.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in self.headers
        return self.status == 403 and (spent or "rate limit" in self.message().lower())


class Http:
    """A sender of requests, which retries temporary failures and describes the others."""

    def __init__(self, api_url: str, token: str, network: Network) -> None:
        self._root, self._token = _checked_address(api_url), token.strip()
        if not re.fullmatch(r"[\x21-\x7e]*", self._token):  # http.client would quote it in its message
            raise UsageError("github-token contains an invalid character. Pass github-token: ${{ github.token }}.")
        self._headers = {**_HEADERS, **({"Authorization": f"Bearer {self._token}"} if self._token else {})}
        self._network, self._patience = network, network.patience
        self._is_down = False
        self._pool = _pool(network)

    def send(self, request: Request) -> Response:
        """Return the successful answer to ``request``; raise GitHubError if there is none."""
        return next(answer for answer in self.attempts(request) if answer)

    def attempts(self, request: Request) -> Iterator[Response | None]:
        """Yield the successful answer, and before it None for each temporary failure, after waiting."""
        began = self._network.now()
        for attempt in count(1):
            if self._patience <= 0:
                raise GitHubError(f"Could not {request.aim}: GitHub is too slow. Run the job again later.")
            asked = self._network.now()
            answer = self._once(request)
            now = self._network.now()
            self._patience -= max(now - asked, 0.0)
            if 200 <= answer.status < 300:
                self._is_down = False
                yield answer
                return
            seconds = _delay(answer, attempt, now)
            is_over = answer.is_outage and (self._is_down or max(now - began, seconds or 0.0) > _OUTAGE)
            if seconds is None or seconds > self._patience or attempt == _MAX_ATTEMPTS or is_over:
                self._is_down = answer.is_outage
                text = _describe_failure(request, answer, seconds, attempt, has_token=bool(self._token))
                raise GitHubError(text.replace(self._token, "***") if self._token else text, answer.status)
            self._patience -= seconds
            self._network.sleep(seconds)
            yield None

    def _once(self, request: Request) -> Response:
        is_graphql = request.path == GRAPHQL and self._root.endswith("/api/v3")
        url = (self._root.removesuffix("/v3") if is_graphql else self._root) + request.path
        for _ in range(1 + _MOST_REDIRECTS):
            answer = self._ask(request, url)
            if answer.status not in ((301, 302, 307, 308) if request.method == "GET" else (307, 308)):
                return answer
            try:
                target = urlsplit(urljoin(url, answer.headers.get("location", "")))
                is_same_host = _origin(target) == _origin(urlsplit(url))
            except ValueError:  # no address
                is_same_host = False
            if not is_same_host:
                fix = "Check the address of the API."
                raise GitHubError(f"GitHub redirects to another host, which must not get the token. {fix}")
            url = target.geturl()
        raise GitHubError("GitHub redirects in a loop. Check if the repository was renamed.")

    def _ask(self, request: Request, url: str) -> Response:
        from urllib3 import exceptions

        body = None if request.content is None else json.dumps(request.content).encode()
        headers = {**self._headers, "Accept": request.accept, **({"Content-Type": "application/json"} if body else {})}

        def ask() -> BaseHTTPResponse:
            return self._pool.request(
                request.method, url, body=body, headers=headers, redirect=False, retries=False, preload_content=False
            )

        try:
            reply = _within(min(self._network.headers_seconds, self._patience), ask)
            data = _within(self._network.body_seconds, lambda: reply.read(MOST_BYTES + 1))
        except exceptions.SSLError as error:
            fix = "Name the authority's certificate in the input ca-certificates, or on the command line in"
            what = f"No secure connection to the API: {one_line(str(error), 200)}"
            raise GitHubError(f"{what}. {fix} REQUESTS_CA_BUNDLE.") from None
        except (exceptions.HTTPError, OSError) as error:
            self._pool.clear()
            reason = one_line(str(error), 200)
            if isinstance(error, exceptions.ProxyError):
                reason = f"the proxy of {self._network.proxy_from} fails: {one_line(str(error.original_error), 200)}"
            return Response(0, {}, reason.encode())
        if len(data) > MOST_BYTES:
            reply.close()
            raise GitHubError(f"GitHub's answer has more than {MOST_BYTES >> 20} MiB. Check if a proxy changed it.")
        return Response(reply.status, {name.lower(): value for name, value in reply.headers.items()}, data)


def _within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of ``work``; raise TimeoutError if it takes longer than ``seconds``.

    Timeouts of sockets start again with every byte, and those of name servers cannot be set. So the work runs in a
    thread, which is abandoned when its time is up.
    """
    results, errors = list[T](), list[BaseException]()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"the answer took longer than {seconds:.0f} s")
    return results[0]


def _pool(network: Network) -> PoolManager:
    try:
        import urllib3
    except ImportError:
        raise MissingExtra("Access to GitHub", "action") from None
    options: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=_CONNECT_SECONDS, read=network.body_seconds),
        "ca_certs": network.ca_bundle,
        "ca_cert_data": network.ca_certificates,
    }
    if network.proxy is None:
        return urllib3.PoolManager(**options)
    proxy = network.proxy if "://" in network.proxy else f"http://{network.proxy}"  # as curl takes it
    try:
        login = urllib3.util.parse_url(proxy).auth
        headers = urllib3.make_headers(proxy_basic_auth=unquote(login)) if login else None
        return urllib3.ProxyManager(proxy, proxy_headers=headers, **options)
    except urllib3.exceptions.HTTPError:  # without its message, which may contain the login
        raise UsageError(f"{network.proxy_from} is not the address of a proxy. Write it as http://host:port") from None


def _delay(answer: Response, attempt: int, now: float) -> float | None:
    """Return the seconds until a retry makes sense, None if none does. ``attempt`` counts from 1."""
    if not answer.is_outage and not answer.rate_limited():
        return None
    seconds = _digits(answer.headers.get("retry-after"))
    if seconds is None and not answer.is_outage and answer.headers.get("x-ratelimit-remaining") == "0":
        reset = _digits(answer.headers.get("x-ratelimit-reset"))
        seconds = None if reset is None else reset - now
    if seconds is None:
        return (1.0 if answer.is_outage else 60.0) * 2.0 ** (attempt - 1)
    return max(seconds, 1.0)


def _describe_failure(
    request: Request, answer: Response, seconds: float | None, attempts: int, *, has_token: bool
) -> str:
    aim, needs = request.aim, request.needs or "the permission"
    reply = f" GitHub says {quoted(answer.message(), 200)}." if answer.message() else ""
    # Jobs of forks get no secrets, but a token of their own.
    if not has_token and answer.status in (401, 403, 404, 429):
        what = f"GitHub refuses it without a token.{reply}"
        what = "GitHub's rate limit without a token is used up." if answer.rate_limited() else what
        return f"Could not {aim}: {what} Pass github-token: ${{{{ github.token }}}}."
    if answer.rate_limited():
        return f"Could not {aim}: GitHub's rate limit lasts another {seconds:.0f} s. Run the job again later."
    if seconds is not None:
        tried = f"({quantity(attempts, 'attempt')})"
        what = f"answered {answer.status} {tried}.{reply}"
        what = what if answer.status else f"could not be reached {tried}: {answer.message()}."
        return f"Could not {aim}: GitHub {what} Run the job again later."
    if answer.status == 403:
        if "is locked" in reply:
            return f"Could not {aim}: the conversation is locked. Unlock it to get a comment."
        why = " Runs for forks and Dependabot never get it." if needs.endswith(": write") else ""
        return f"The token may not {aim}: the job needs `{needs}` under permissions.{why}{reply}"
    reasons = {
        401: f"GitHub does not accept the token.{reply} Pass github-token: ${{{{ github.token }}}}.",
        404: f"GitHub does not find it, or the token lacks `{needs}`.{reply}",
    }
    return f"Could not {aim}: {reasons.get(answer.status, f'GitHub answered {answer.status}.{reply}')}"


def text_at(value: object, *path: str) -> str:
    """Return the string at the end of a path of keys through JSON objects, empty if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _checked_address(api_url: str) -> str:
    try:
        address = urlsplit(api_url.rstrip("/"))
        unwanted = address.username or address.password or address.query or address.fragment
        if address.scheme in ("https", "http") and address.hostname and _origin(address) and not unwanted:
            return address.geturl()
    except ValueError:  # an invalid host or port
        pass
    shown = quoted(api_url.rpartition("@")[2])
    raise UsageError(f"{shown} is not the address of GitHub's API. Use the value of GITHUB_API_URL.")


def _origin(address: SplitResult) -> tuple[str, str | None, int | None]:
    return address.scheme, address.hostname, address.port or {"https": 443, "http": 80}.get(address.scheme)


def _digits(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"[0-9]{1,12}", text) else None
