"""Files of an object store, read by URL through fsspec, which the extra ``dask`` installs.

Each store also needs its package of fsspec (s3fs, gcsfs, adlfs), which finds its own credentials: rag-eval gets none.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from rag_eval.common.escaping import quoted
from rag_eval.errors import MissingExtra, UsageError
from rag_eval.readers.problems import Unreadable

_AHEAD = 4 << 20
PROTOCOLS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "hdfs", "file", "memory")
"""What a URL may begin with. Others of fsspec's chain, run or fetch what no trace file needs."""


def is_url(path: str) -> bool:
    """Return whether a path is meant to be a URL."""
    return "://" in path


class Remote:
    """A file of an object store with random access. Following bytes are fetched ahead, because each request is slow."""

    def __init__(self, url: str) -> None:
        store, self._path = _reached(lambda: _fsspec().core.url_to_fs(_known(url)), url)
        self._fetch = store.cat_file
        self._size: int = _reached(lambda: store.size(self._path), url)
        self._block, self._begin = b"", 0

    def at(self, index: int, size: int) -> bytes:
        """Return at most ``size`` bytes from ``index`` on; none at the end of the file."""
        size = max(0, min(size, self._size - index))
        first = index - self._begin
        if size and not 0 <= first <= len(self._block) - size:
            end = min(index + max(size, _AHEAD), self._size)
            self._block, self._begin, first = self._fetch(self._path, start=index, end=end), index, 0
        return self._block[first : first + size]


def open_url(url: str) -> BinaryIO:
    """Open a URL; raise :class:`Unreadable` with the reason, MissingExtra or UsageError if a package is missing."""
    file: BinaryIO = _reached(lambda: _fsspec().open(_known(url), "rb").open(), url)
    return file


def _known(url: str) -> str:
    if url.split("://")[0] not in PROTOCOLS or url.count("://") > 1 or "::" in url:
        hint = "Copy the file to one of these, or to this machine."
        raise Unreadable(f"is not a URL of a supported kind: {', '.join(PROTOCOLS)}", hint)
    return url


def _reached(reach: Callable[[], Any], url: str) -> Any:
    try:
        return reach()
    except ImportError as error:
        raise UsageError(f"{quoted(url)} needs another package: {error}") from None
    except FileNotFoundError:
        raise Unreadable("no such file", "Check the URL.") from None
    except OSError as error:
        raise Unreadable(f"cannot be opened: {error}", "Check the URL and your permissions.") from None


def _fsspec() -> Any:
    try:
        return import_module("fsspec")
    except ModuleNotFoundError:
        raise MissingExtra("Reading URLs", "dask") from None
