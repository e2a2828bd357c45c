"""The system under test behind one method: over HTTP, as a command with JSON lines, or as a Python function."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import queue
import shlex
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rag_eval.collecting.request_map import PLAIN, RequestMap, filled, header_texts, row_of, scalar_texts
from rag_eval.errors import MissingExtra, UsageError

Row = dict[str, Any]
_LONGEST = 32 << 20  # bytes of a reply
_LONGEST_PAUSE = 60.0


class Busy(Exception):
    """The system asks to try again, after ``seconds`` if it says when."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a busy server asks to wait, from its number or HTTP date (RFC 9110, 10.2.3)."""
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def pause(attempt: int, stated: float | None) -> float:
    """Return the seconds before the next attempt, by the server's own statement or growing with each attempt."""
    return min(stated if stated is not None else 0.5 * 2**attempt, _LONGEST_PAUSE)


def http_client(feature: str, named: str, url: str, headers: Mapping[str, str], **settings: Any) -> tuple[Any, Any]:
    """Return the package httpx, which a ``feature`` needs, and a client that follows no redirects.

    Raises UsageError if ``url``, which the option or variable ``named`` has, or a header is invalid.
    """
    try:
        import httpx
    except ImportError:
        raise MissingExtra(feature, "collect") from None
    try:
        address = httpx.URL(url)
        is_valid = address.scheme in ("http", "https") and address.host.encode("idna") != b""
    except (httpx.InvalidURL, UnicodeError):
        is_valid = False
    if not is_valid:
        fix = f"{named} http://HOST" if named.startswith("-") else f"export {named}=https://HOST"
        raise UsageError(f"{named} is not a URL. Write: {fix}")
    for name, text in headers.items():  # the message does not show the text, which may be a secret
        if not (f"{name}{text}".isascii() and f"{name}{text}".isprintable()):
            fix = "Check the environment variable that it comes from"
            raise UsageError(f"the header {name} has other characters than printable ASCII. {fix}")
    return httpx, httpx.Client(headers=headers, follow_redirects=False, **settings)


class System(ABC):
    """A system that answers questions; several threads may call it at a time."""

    @abstractmethod
    def ask(self, qid: str, question: str, timeout: float) -> Row:
        """Return the fields of a trace row; raise Busy, TimeoutError or any error of the system."""

    def check(self) -> None:  # noqa: B027 - a function that is loaded needs no check
        """Raise UsageError with the fix if the system does not answer at all."""

    def configuration(self) -> Any:
        """Return the configuration of the system; None if it is unknown."""
        return None

    def close(self) -> None:  # noqa: B027 - not every system has resources
        """Release the resources of the system."""


class HttpSystem(System):
    """A server. ``map`` describes the request; headers and body may name environment variables as ``${NAME}``."""

    command = "rag-eval collect --url"

    def __init__(self, url: str, mapped: RequestMap, more: Mapping[str, Mapping[str, Any]]) -> None:
        self._url, self._map = url.rstrip("/"), mapped
        headers = {**mapped.headers, **header_texts(more.get("headers", {}), "the matrix")}
        headers = filled(headers, {}, os.environ)
        self._httpx, self._client = http_client(self.command, self.command.split()[-1], url, headers)
        changed = more.get("body", {})
        if not isinstance(mapped.body, dict) and (changed or mapped.method.upper() == "GET"):
            raise UsageError("'body' of the request map must be a mapping for a matrix and for GET")
        self._body = {**mapped.body, **changed} if changed else mapped.body
        filled([self._body, mapped.path], {}, os.environ)  # raises UsageError before the first question

    def ask(self, qid: str, question: str, timeout: float) -> Row:
        """Ask over HTTP; 429 and 5xx are Busy, other errors are errors of the system."""
        return row_of(self.reply(qid, question, timeout), self._map)

    def reply(self, qid: str, question: str, timeout: float) -> Any:
        """Return the JSON of the reply."""
        texts = {"question": question, "qid": qid}
        body = filled(self._body, texts, os.environ)
        path = filled(self._map.path, {name: quote(text, safe="") for name, text in texts.items()}, os.environ)
        send = {"params": body} if self._map.method.upper() == "GET" else {"json": body}
        try:
            reply = self._client.request(self._map.method.upper(), self._url + path, timeout=timeout, **send)
        except self._httpx.TimeoutException as error:
            raise TimeoutError(f"no reply within {timeout:g} s ({type(error).__name__})") from None
        except self._httpx.TransportError as error:
            raise Busy(f"{type(error).__name__}: {error}") from None
        if reply.status_code == 429 or reply.status_code >= 500:
            raise Busy(f"HTTP {reply.status_code}: {reply.text[:200]}", retry_after(reply.headers))
        if reply.status_code >= 300:
            detail = reply.headers.get("location", "") or reply.text
            raise RuntimeError(f"HTTP {reply.status_code}: {detail[:200]}")
        if len(reply.content) > _LONGEST:
            raise RuntimeError(f"a reply of {len(reply.content)} bytes")
        try:
            return reply.json()
        except ValueError:
            raise RuntimeError(f"the reply is not JSON: {reply.text[:200]!r}") from None

    def check(self) -> None:
        """Request the health path; without one, check that anything answers at all."""
        address = self._url + (self._map.health or "/")
        try:
            reply = self._client.get(address, timeout=10)
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            fix = f"Start the server, or correct {self.command.split()[-1]}"
            why = f"{type(error).__name__}: {str(error).rstrip('.')}"
            raise UsageError(f"{address} does not answer: {why}. {fix}") from None
        if self._map.health and reply.status_code >= 400:
            raise UsageError(f"{address} is not healthy: HTTP {reply.status_code}: {reply.text[:200]}")

    def configuration(self) -> Any:
        """Return the server's configuration; None if it has no path for it."""
        if not self._map.config:
            return None
        try:
            reply = self._client.get(self._url + self._map.config, timeout=10)
            return reply.json() if reply.status_code == 200 else None
        except (self._httpx.HTTPError, self._httpx.InvalidURL, ValueError):
            return None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class CommandSystem(System):
    """Long-lived processes: one JSON line in, one JSON line out. A thread takes an idle one or starts another."""

    def __init__(self, command: str, more: Mapping[str, Mapping[str, Any]]) -> None:
        fix = "Write: --exec 'python answer.py'"
        try:
            self._words = shlex.split(command)
        except ValueError as error:  # a quote that is not closed
            raise UsageError(f"--exec {command} is not a command: {str(error).lower()}. {fix}") from None
        if not self._words:
            raise UsageError(f"--exec names no command. {fix}")
        stated = scalar_texts(more.get("env", {}), "env of the matrix")
        self._environment = {**os.environ, **filled(stated, {}, os.environ)}
        self._idle: queue.LifoQueue[tuple[subprocess.Popen[str], queue.Queue[str | None]]] = queue.LifoQueue()
        self._all: list[subprocess.Popen[str]] = []

    def ask(self, qid: str, question: str, timeout: float) -> Row:
        """Ask an idle process; it is ended after a timeout, and unless it prints one JSON line for each question."""
        try:
            process, lines = self._idle.get_nowait()
        except queue.Empty:
            process, lines = self._started()
        try:
            reply = _exchange(process, lines, {"qid": qid, "question": question}, timeout)
        except Exception:
            self._end(process)
            raise
        self._idle.put((process, lines))
        return row_of(reply, PLAIN)

    def check(self) -> None:
        """Start a process."""
        self._idle.put(self._started())

    def close(self) -> None:
        """End all processes."""
        for process in list(self._all):
            self._end(process)

    def _started(self) -> tuple[subprocess.Popen[str], queue.Queue[str | None]]:
        try:
            process = subprocess.Popen(  # noqa: S603 - the command that the user names
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="surrogateescape",  # bytes of an answer that are not UTF-8 are an error of its question
                env=self._environment,
            )
        except (OSError, ValueError) as error:  # ValueError: a variable of the matrix that no process can have
            why = f"--exec {self._words[0]} cannot be started: {getattr(error, 'strerror', error)}"
            raise UsageError(f"{why}. Check the command.") from None
        lines: queue.Queue[str | None] = queue.Queue()

        def read() -> None:  # the reading thread closes the pipe
            with process.stdout as out:  # type: ignore[union-attr]
                for line in out:
                    if line.strip():
                        lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        self._all.append(process)
        return process, lines

    def _end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        with suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]


def _exchange(process: subprocess.Popen[str], lines: queue.Queue[str | None], asked: Row, timeout: float) -> Any:
    """Return the JSON in the next line of a process; raise TimeoutError or RuntimeError without one."""
    early = not lines.empty()  # a line that nobody asked for: later answers would belong to earlier questions
    if not early:
        try:
            process.stdin.write(json.dumps(asked) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
        except OSError as error:
            raise RuntimeError(f"the command ended: {error}") from None
    try:
        line = lines.get(timeout=timeout)
    except queue.Empty:
        raise TimeoutError(f"no line within {timeout:g} s") from None
    if line is None:
        raise RuntimeError(f"the command ended with exit code {process.wait()} before it answered")
    fix = "Print one JSON line for each question, and everything else to stderr"
    if early:
        raise RuntimeError(f"the command printed a line without a question: {line[:120]!r}. {fix}")
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        raise RuntimeError(f"the command printed no JSON: {line[:120]!r}. {fix}") from None


class FunctionSystem(System):
    """A Python function ``module:function``, plain or async, that takes the question and returns a mapping."""

    def __init__(self, name: str) -> None:
        module, _, function = name.partition(":")
        sys.path.insert(0, str(Path.cwd()))  # as python -m has it
        try:
            target: Any = importlib.import_module(module)
            for part in function.split("."):
                target = getattr(target, part)
            self._takes_qid = "qid" in inspect.signature(target).parameters
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the module may raise anything
            why = f"{type(error).__name__}: {error}"
            raise UsageError(f"--python {name} cannot be loaded: {why}. Write: --python module:function") from None
        self._function: Callable[..., Any] = target

    def ask(self, qid: str, question: str, timeout: float) -> Row:
        """Call the function; a returned text is the answer. After a timeout the call continues in its thread."""
        box: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()

        def call() -> None:
            try:
                made = self._function(question, qid=qid) if self._takes_qid else self._function(question)
                box.put((asyncio.run(made) if inspect.isawaitable(made) else made, None))  # type: ignore[arg-type]
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - handed to the thread that asked
                box.put((None, error))
            except BaseException as error:  # noqa: BLE001 - sys.exit of the system does not end the collection
                box.put((None, RuntimeError(f"{type(error).__name__}: {error}")))

        threading.Thread(target=call, daemon=True).start()
        try:
            reply, error = box.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no reply within {timeout:g} s") from None
        if error is not None:
            raise error
        return row_of({"answer": reply} if isinstance(reply, str) else reply, PLAIN)
