"""Ask a system the questions of a gold set and write its answers as traces. Never part of a verdict.

:func:`collect` asks with a limit on concurrency and rate, retries, survives an interruption, and writes rows in order.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from rag_eval.collecting.systems import Busy, System, pause
from rag_eval.errors import UsageError

Row = dict[str, Any]


class Pace(NamedTuple):
    """Limits on asking: concurrent calls, calls per second (0: no limit), seconds for a call, further attempts."""

    concurrency: int
    rate: float
    timeout: float
    retries: int


class Journal:
    """The answered rows, in ``OUT.partial``, from which an interrupted collection continues.

    Its first line is a digest of everything the answers depend on; another digest begins a new journal.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        # Absolute: the system, such as a Python function, may change the current folder.
        self._path = out.absolute().with_name(out.name + ".partial")
        text = json.dumps(settings, sort_keys=True, default=str)
        self._digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self._lock = threading.Lock()
        self.rows: dict[tuple[str, str], Row] = {}
        try:
            lines = self._path.read_text("utf-8", "replace").split("\n") if self._path.exists() else []
            for line in lines[1:] if lines[:1] == [self._digest] else ():
                with suppress(ValueError):  # the line that the interruption cut off: its question is asked again
                    row = json.loads(line)
                    if "error" not in row:
                        self.rows[row.get("run", ""), row["qid"]] = row
            self._path.parent.mkdir(parents=True, exist_ok=True)
            texts = [json.dumps(row, ensure_ascii=False) for row in self.rows.values()]
            self._path.write_text("\n".join([self._digest, *texts, ""]), encoding="utf-8")
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            raise UsageError(f"{out}.partial cannot be written: {reason}. Name another file with --out") from None

    def add(self, row: Row) -> None:
        """Add a row, and write it to the disk first."""
        with self._lock:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            self.rows[row.get("run", ""), row["qid"]] = row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.rows:  # nothing to continue from, such as after a missing package
            self.remove()

    def remove(self) -> None:
        """Remove the journal: the collection is complete."""
        self._path.unlink(missing_ok=True)


def collect(
    system: System,
    questions: Sequence[tuple[str, str]],
    run: str,
    pace: Pace,
    journal: Journal,
    report: Callable[[int, int], None],
) -> None:
    """Ask ``questions`` (qid and text) that the journal does not have; a question that fails is a row with ``error``.

    ``report`` is called with the number of answers and of errors so far. After an interruption the journal has all
    answers so far.
    """
    todo = [(qid, text) for qid, text in questions if (run, qid) not in journal.rows]
    turns = _Turns(pace.rate)

    def answer(qid: str, text: str) -> bool:
        row = {"qid": qid, "q": text, **({"run": run} if run else {}), **_ask(system, qid, text, pace, turns)}
        journal.add(row)
        return "error" in row

    pool = ThreadPoolExecutor(pace.concurrency)
    try:
        answers = [pool.submit(answer, *question) for question in todo]
        errors = 0
        for done, has_error in enumerate(as_completed(answers), len(questions) - len(todo) + 1):
            errors += has_error.result()
            report(done, errors)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _ask(system: System, qid: str, text: str, pace: Pace, turns: _Turns) -> Row:
    """Return the answer to one question, or the error; retry a busy system with increasing delays."""
    for attempt in range(pace.retries + 1):
        turns.take()
        began, clock = round(time.time(), 3), time.perf_counter()
        try:
            row = system.ask(qid, text, pace.timeout)
            json.dumps(row, ensure_ascii=False).encode()  # half a surrogate pair cannot be written
        except TimeoutError as error:
            row = {"error": _writable(f"timeout: {error}"), "ok": False, "timed_out": True}
        except Busy as error:
            if attempt < pace.retries:
                time.sleep(pause(attempt, error.seconds))
                continue
            return {"ts": began, "error": _writable(str(error)), "ok": False}
        except Exception as error:  # noqa: BLE001 - whatever the system raises is its answer to this question
            return {"ts": began, "error": _writable(f"{type(error).__name__}: {error}"), "ok": False}
        spent = round((time.perf_counter() - clock) * 1000, 3)
        return {"ts": began, **row, "latency_ms": {"total": spent, **row.get("latency_ms", {})}}
    raise AssertionError("every attempt returns")


def _writable(error: str) -> str:
    """Return the beginning of an error, without halves of surrogate pairs."""
    return error[:2000].encode("utf-8", "backslashreplace").decode()


class _Turns:
    """A limit on the rate: no more than ``rate`` calls begin in a second."""

    def __init__(self, rate: float) -> None:
        self._gap = 1 / rate if rate else 0.0
        self._next = time.monotonic()
        self._lock = threading.Lock()

    def take(self) -> None:
        if self._gap:
            with self._lock:
                now = time.monotonic()
                pause = max(0.0, self._next - now)
                self._next = max(now, self._next) + self._gap
            time.sleep(pause)
