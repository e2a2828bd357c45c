"""Scoring by the workers of a dask cluster: only byte ranges are sent there, and no rows are sent back.

The gold is sent once. Scoring a range is a pure function, and results are kept in the order of the ranges. A lost
worker costs time, but no trace is counted twice or left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from typing import Any, BinaryIO

from rag_eval import __version__
from rag_eval.common.escaping import quoted
from rag_eval.engines import ExecutionOptions, file_scorer
from rag_eval.errors import MissingExtra, RagEvalError
from rag_eval.readers.problems import Unreadable
from rag_eval.readers.source import Remote, is_url, open_regular
from rag_eval.scoring import Scorer

_LEAST_STEP, _MOST_STEP = 4 << 20, 32 << 20  # bytes of a range
_ROUNDS = 4  # ranges for each worker
_PATIENCE = "10s"  # until a scheduler answers
_LONG_PATIENCE = "120s"  # until there is a worker: clusters that grow on demand start one first
_ATTEMPTS = 4  # for a range, or for sending the gold again


def run(task: file_scorer.Task, _: BinaryIO, size: int) -> Scorer | None:
    """Return the scorer of a file of ``size`` bytes; None if it has a problem.

    MissingExtra without dask; RagEvalError if no scheduler answers, or workers cannot do it.
    """
    with _client(task.execution) as client:
        workers = _workers(client)
        path = task.path if is_url(task.path) else os.path.realpath(task.path)
        digest = client.submit(sha256_of, path, pure=False, retries=_ATTEMPTS, priority=1) if task.digests else None
        cuts = file_scorer.byte_ranges(size, min(max(size // (workers * _ROUNDS), _LEAST_STEP), _MOST_STEP))
        task.execution.watch.begin(size)
        scorer = file_scorer.merge(task, _delivered(client, task, path, cuts))
        if scorer and task.digests:
            task.digests.record("trace", task.path, _result(digest, path))
        return scorer


def _delivered(
    client: Any, task: file_scorer.Task, path: str, cuts: list[file_scorer.ByteRange]
) -> Iterator[file_scorer.RangeResult]:
    """Yield the results in the order of the ranges; request results that were lost with their workers again."""
    done = attempts = 0
    while done < len(cuts):
        # Every worker has a copy of the gold, so that losing one worker does not lose the gold.
        _await(client)
        sent = client.scatter([task.work], broadcast=True, hash=False)[0]
        terms = {"inputs": sent, "path": path, "name": task.path, "pure": False, "retries": _ATTEMPTS}
        futures = client.map(score_at, cuts[done:], **terms)
        try:
            for future in futures:
                result: file_scorer.RangeResult = _result(future, path)
                task.execution.watch.advance(cuts[done].end - cuts[done].start)
                done += 1
                task.work.scorer.intern(result.log)
                yield result
        except _distributed().CancelledError:
            attempts += 1
            if attempts == _ATTEMPTS:
                raise RagEvalError("workers are lost repeatedly. Check their logs") from None
        finally:
            client.cancel(futures)


def _result(future: Any, path: str) -> Any:
    """Return the result of a future; raise CancelledError if it was lost, RagEvalError if it failed."""
    try:
        return future.result()
    except _distributed().KilledWorker:
        message = "it kills the workers, probably for lack of memory. Give them more memory, or check their logs"
        raise RagEvalError(f"{quoted(path)} cannot be scored: {message}") from None
    except OSError as error:
        raise RagEvalError(f"{quoted(path)} cannot be read by a worker: {error}") from None


def score_at(cut: file_scorer.ByteRange, inputs: file_scorer.Work, path: str, name: str) -> file_scorer.RangeResult:
    """Score a range of the file at ``path``, which reports call ``name``; workers call this."""
    with _opened(path) as file:
        return file_scorer.score_range(inputs, name, file, cut)


def sha256_of(path: str) -> str:
    """Return the digest of a file, in hex, computed where the file is stored."""
    digest = sha256()
    with _opened(path) as file:
        file_scorer.update_digest(digest, file)
    return digest.hexdigest()


@contextmanager
def _opened(path: str) -> Iterator[file_scorer.File]:
    try:
        if is_url(path):
            yield Remote(path)
            return
        with open_regular(path, None) as file:
            yield file_scorer.LocalFile(file.fileno())
    except Unreadable as error:  # for the result, which names unreadable lines
        raise RagEvalError(f"{quoted(path)}: {error.message} on a worker. {error.hint}") from None


@contextmanager
def _client(execution: ExecutionOptions) -> Iterator[Any]:
    """Yield a client of the named scheduler, or of a cluster on this machine that ends with the client."""
    dask = _distributed()
    if execution.scheduler:
        try:
            client = dask.Client(execution.scheduler, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise RagEvalError(f"no scheduler answers at {quoted(execution.scheduler)}: {error}") from None
        with client:
            yield client
        return
    jobs = execution.jobs or file_scorer.usable_cores()
    cluster = dask.LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50)
    with cluster, dask.Client(cluster, set_as_default=False) as client:
        yield client


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ModuleNotFoundError:
        raise MissingExtra("--engine dask", "dask") from None


def _workers(client: Any) -> int:
    """Return the number of workers; raise RagEvalError if there are none, or if one has another version."""
    _await(client)
    try:
        versions = client.run(_version)
    except ModuleNotFoundError as error:
        raise RagEvalError(f"a worker cannot score: {error}. Install rag-eval-action[dask] there") from None
    for address, version in versions.items():
        if version != __version__:
            differ = f"has rag-eval {version}, this is {__version__}"
            raise RagEvalError(f"the worker at {address} {differ}. Install it there")
    return len(versions)


def _await(client: Any) -> None:
    try:
        client.wait_for_workers(1, timeout=_LONG_PATIENCE)
    except TimeoutError:
        raise RagEvalError("the scheduler has no worker. Start one: dask worker ADDRESS") from None


def _version() -> str:
    return __version__
