"""Ask all questions with a limit on concurrency and rate, retry, survive an interruption, and write rows in order."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rag_eval.collecting.systems import Busy, System
from rag_eval.errors import UsageError

Row = dict[str, Any]
_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits on asking: concurrent calls, calls per second (0: no limit), seconds for a call, further attempts."""

    concurrency: int = 4
    rate: float = 0.0
    timeout: float = 60.0
    retries: int = 3


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
            self._read()
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            raise UsageError(f"{out}.partial cannot be written: {reason}. Name another file with --out") from None

    def _read(self) -> None:
        lines = self._path.read_text("utf-8", "replace").splitlines() if self._path.exists() else []
        if lines and lines[0] == self._digest:
            for line in lines[1:]:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue  # the line that the interruption cut off: its question is asked again
                if "error" not in row:
                    self.rows[row.get("run", ""), row["qid"]] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows.values())
        self._path.write_text(self._digest + "\n" + text, encoding="utf-8")

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
    done = len(questions) - len(todo)
    errors = 0

    def one(qid: str, text: str) -> Row:
        row = {"qid": qid, "q": text, **({"run": run} if run else {})}
        row |= _asked(system, qid, text, pace, turns)
        journal.add(row)
        return row

    pool = ThreadPoolExecutor(pace.concurrency)
    try:
        waiting: set[Future[Row]] = set()
        for qid, text in todo:
            waiting.add(pool.submit(one, qid, text))
            if len(waiting) >= pace.concurrency * 2:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                done, errors = done + len(finished), errors + sum("error" in answer.result() for answer in finished)
                report(done, errors)
        for answer in _completed(waiting):
            done, errors = done + 1, errors + ("error" in answer.result())
            report(done, errors)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _completed(futures: set[Future[Row]]) -> Iterable[Future[Row]]:
    while futures:
        finished, futures = wait(futures, return_when=FIRST_COMPLETED)
        yield from finished


def _asked(system: System, qid: str, text: str, pace: Pace, turns: _Turns) -> Row:
    """Return the answer to one question, or the error; retry a busy system with increasing delays."""
    for attempt in range(pace.retries + 1):
        turns.take()
        began, clock = time.time(), time.perf_counter()
        try:
            row = system.ask(qid, text, pace.timeout)
        except Busy as error:
            if attempt < pace.retries:
                time.sleep(min(error.seconds if error.seconds is not None else 0.5 * 2**attempt, _LONGEST_PAUSE))
                continue
            return {"ts": round(began, 3), "error": str(error)[:2000], "ok": False}
        except TimeoutError as error:
            spent = round((time.perf_counter() - clock) * 1000, 3)
            return {
                "ts": round(began, 3),
                "error": f"timeout: {error}",
                "ok": False,
                "timed_out": True,
                "latency_ms": {"total": spent},
            }
        except Exception as error:  # noqa: BLE001 - whatever the system raises is its answer to this question
            return {"ts": round(began, 3), "error": f"{type(error).__name__}: {error}"[:2000], "ok": False}
        times = {"total": round((time.perf_counter() - clock) * 1000, 3), **row.get("latency_ms", {})}
        return {"ts": round(began, 3), **row, "latency_ms": times}
    raise AssertionError("every attempt returns")


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
