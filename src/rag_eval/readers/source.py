"""Files as lines of bytes: regular files inside their folder, decompressed, within the limits.

Files of an object store are read by URL through fsspec, which the extra ``dask`` installs. Each store also needs its
package of fsspec (s3fs, gcsfs, adlfs), which finds its own credentials: rag-eval gets none.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, BinaryIO, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.common.escaping import quoted
from rag_eval.common.paths import GATES_FILES, misread_names
from rag_eval.contract import DEFAULT_GOLD, DEFAULT_TRACE, Limits
from rag_eval.errors import MissingExtra, UsageError
from rag_eval.readers.problems import ProblemCollector, Unreadable

MIB = 1 << 20

DEFAULTS = Limits()
YAML_MIB = 1
DEEPEST = 200  # the maximum of limits.depth: Python's parser recurses

_AS_LINES = "Write it as JSON Lines, one object per line."
_BLOCK = 64 * 1024  # larger blocks keep more rows alive at once and are slower
BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
PACKED = (_GZIP, b"\x28\xb5\x2f\xfd")  # the latter is zstd
RELATIVE = "Give the path relative to the workspace, without ${{ github.workspace }}."
_OF_SYSTEM = " Your system writes it, or rag-eval collect asks it. In CI, see the log of the job that runs it."
_USUAL = DEFAULT_GOLD, DEFAULT_TRACE, *GATES_FILES
_SLASHES = "Write the path with forward slashes."
_FOLDER = "is a folder, not a file", "Name the file in it."
_IMPORT = "Convert it: rag-eval import auto FILE > OUT"
_TO_UTF8 = "Save the file as UTF-8, or convert it: iconv -f UTF-16 -t UTF-8 FILE > OUT"
_TO_FILE = "Run: git lfs pull. In actions/checkout, set lfs: true"
_REFUSED = {
    b"version https://git-lfs.github.com/spec/": ("is a Git LFS pointer, not the file itself", _TO_FILE),
    b"PAR1": ("is a Parquet file, not text", _IMPORT),
    b"PK\x03\x04": ("is a ZIP archive or a workbook, not text", f"Unpack it. {_IMPORT}"),
    b"SQLite format 3": ("is a database, not text", "Export its rows as JSON Lines."),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), ("is UTF-16 text", _TO_UTF8)),
}
"""First bytes of files that are not text."""
_AHEAD = 4 << 20
PROTOCOLS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "hdfs", "file", "memory")
"""What a URL may begin with. Others of fsspec's chain, run or fetch what no trace file needs."""


class ByteStream(Protocol):
    """A stream of bytes that is read in blocks."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none at the end."""


class Digest(Protocol):
    """A digest of the bytes of a file as they are stored."""

    def update(self, data: bytes, /) -> None:
        """Update the digest with the next bytes."""


class Reader(Struct, frozen=True):
    """Options of reading: limits, the ledger of problems, and the folder that no link may lead out of.

    With ``root`` None it is the folder of each named file.
    """

    ledger: ProblemCollector
    limits: Limits = DEFAULTS
    root: str | None = None
    contents: Mapping[str, bytes] = {}
    """Bytes that are read in place of the files of these names: those of another commit."""
    urls: bool = False  # whether a path may be the URL of a file in an object store

    def silent(self) -> Reader:
        """Return the same reader with a ledger of its own, for reading that reports nothing."""
        return replace(self, ledger=ProblemCollector())

    def open(self, path: str, digest: Digest | None = None) -> SourceFile:
        """Return the source of ``path``; an empty one, with the problem in the ledger, if it cannot be opened."""
        try:
            return SourceFile(path, self, self._file(path), digest)
        except Unreadable as error:
            self.ledger.problem(path, 0, "", error.message, error.hint)
            return SourceFile(path, self, None)

    def read(self, path: str, digest: Digest | None = None, hint: str = _AS_LINES) -> bytes | None:
        """Return all bytes of ``path``, decompressed, or None with the problem in the ledger."""
        with self.open(path, digest) as source:
            return source.whole(hint)

    def has(self, path: str) -> bool:
        """Return whether a path exists."""
        if not is_url(path):
            return path in self.contents or os.path.lexists(path)
        try:
            self._file(path).close()
        except Unreadable:
            return False
        return True

    def _file(self, path: str) -> BinaryIO:
        if path in self.contents:
            return io.BytesIO(self.contents[path])
        if not is_url(path):
            return open_regular(path, self.root)
        if self.root is not None or not self.urls:
            raise Unreadable("is a URL", "Copy the file here, or read it in place with: --engine dask")
        return open_url(path)


class SourceFile:
    """An open file, or nothing in place of one that cannot be opened.

    Use as a context manager; ``lines`` and ``whole`` read it once.
    """

    def __init__(self, path: str, reader: Reader, file: BinaryIO | None, digest: Digest | None = None) -> None:
        self.is_open = file is not None
        file = file or io.BytesIO()
        self.path, self.limits, self._ledger, self._file = path, reader.limits, reader.ledger, file
        self._stream: ByteStream = file
        self._faults: tuple[type[Exception], ...] = (OSError, EOFError, ValueError)
        self._packed = False
        self._cut = not self.is_open  # reading ended before the file did; the last line may be incomplete
        try:
            self.head = file.read(_BLOCK)  # the form of a file is recognised by it before the file is read
            self._begin(digest)
        except OSError as error:
            file.close()
            reason = (error.strerror or "unknown reason").lower()
            raise Unreadable(f"cannot be read: {reason}", "Check the disk, or write the file again.") from None
        except BaseException:
            file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def is_array(self) -> bool:
        """True if it is one JSON array instead of lines, by its first character except white space."""
        return self.head.lstrip()[:1] == b"["

    @property
    def plain(self) -> BinaryIO | None:
        """Return the open file if it is not packed, so that parts of it can be read independently; otherwise None."""
        return self._file if self.is_open and not self._packed else None

    @property
    def size(self) -> int:
        """Return the size of the stored file in bytes."""
        position = self._file.tell()
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(position)
        return size

    def line_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield lines in blocks, including blank ones: the number of the first, and the lines with their ends.

        A line that is too long is a problem, and blank in its block, so that the numbers stay right.
        """
        longest = self.limits.line_mib * MIB
        first, parts, size = 1, list[bytes](), 0  # parts of an incomplete line
        for block in self.blocks():
            lines = io.BytesIO(block).readlines()  # finds line ends several times as fast as bytes.split
            begun = b"" if lines[-1].endswith(b"\n") else lines.pop()
            if lines:
                lines[0] = b"".join((*parts, lines[0]))
                yield first, self._within_limits(first, lines)
                first, parts, size = first + len(lines), [], 0
            if begun and size <= longest:  # a line that is already too long is discarded
                parts.append(begun)
                size += len(begun)
            if (first if size else first - 1) > self.limits.lines:
                return self._ledger.problem(self.path, *too_many_lines(self.limits))
        if size and not self._cut:
            yield first, self._within_limits(first, [b"".join(parts)])

    def _within_limits(self, first: int, lines: list[bytes]) -> list[bytes]:
        """Return as many lines of a block as the limits allow; those that are too long as blank ones."""
        lines, longest = lines[: self.limits.lines + 1 - first], self.limits.line_mib * MIB
        if max(map(len, lines), default=0) > longest:
            for index, line in enumerate(lines):
                if len(line.removesuffix(b"\n")) > longest:
                    hint = "Raise limits.line_mib if this is intended."
                    message = f"a line of more than {self.limits.line_mib} MiB"
                    self._ledger.problem(self.path, first + index, "", message, hint)
                    lines[index] = b"\n"
        return lines

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield number and bytes of each line that is not blank, without its end."""
        for first, block in self.line_blocks():
            for number, line in enumerate(block, first):
                if not line.isspace():
                    yield number, line.removesuffix(b"\n")

    def lines_at(self, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Yield number and bytes of some lines, in their order, without their ends."""
        rest = sorted(numbers, reverse=True)
        for first, block in self.line_blocks() if rest else ():
            while rest and rest[-1] < first + len(block):
                number = rest.pop()
                yield number, block[number - first].removesuffix(b"\n")
            if not rest:
                return

    def whole(self, hint: str = _AS_LINES) -> bytes | None:
        """Return all bytes; None with a problem if reading fails or exceeds ``limits.whole_mib``."""
        largest, blocks, size = self.limits.whole_mib * MIB, [], 0
        if isinstance(self._file, io.BytesIO) and self.plain is self._stream and self.size <= largest:
            return self._file.getvalue().removeprefix(BOM)  # already in memory: large files need not be copied
        for block in self.blocks():
            blocks.append(block)
            size += len(block)
            if size > largest:
                message = f"larger than {self.limits.whole_mib} MiB, and it is read as a whole"
                self._ledger.problem(self.path, 0, "", message, hint)
                return None
        return None if self._cut else b"".join(blocks)

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes as they are read; a truncated file is a problem."""
        maximum, size = self.limits.expanded_mib * MIB if self._packed else sys.maxsize, 0
        block = self.head
        while block:
            yield block
            size += len(block)
            if size > maximum:
                hint = "Raise limits.expanded_mib if this is intended."
                self._give_up(f"more than {self.limits.expanded_mib} MiB when expanded", hint)
                return
            try:
                block = self._stream.read(_BLOCK)
            except self._faults as error:
                self._give_up(f"cannot be read to its end: {error}", "The file looks cut off; write it again.")
                return

    def _give_up(self, message: str, hint: str) -> None:
        self._cut = True
        self._ledger.problem(self.path, 0, "", message, hint)

    def _begin(self, digest: Digest | None) -> None:
        """Recognise the format by the first bytes; refuse a file that they show not to be text."""
        for begin, (message, hint) in _REFUSED.items():
            if self.head.startswith(begin):
                raise Unreadable(message, hint)
        if digest:
            self._stream = _Hashed(self._file, digest)
        if not self.head.startswith(PACKED):
            if digest:
                digest.update(self.head)
            self.head = self.head.removeprefix(BOM)
            return
        self._file.seek(0)
        fault: type[Exception]
        if self.head.startswith(_GZIP):
            import gzip
            import zlib

            self._stream, fault = gzip.GzipFile(fileobj=self._stream), zlib.error  # type: ignore[call-overload]
        else:
            self._stream, fault = _zstd(self._stream)
        self._faults, self._packed = (*self._faults, fault), True
        try:
            self.head = self._stream.read(_BLOCK).removeprefix(BOM)
        except self._faults as error:
            raise Unreadable(f"cannot be decompressed: {error}", "Compress the file again.") from None


def open_regular(path: str, root: str | None) -> BinaryIO:
    """Open a regular file inside ``root``, or inside its folder; raise :class:`Unreadable` for anything else."""
    real = refuse_outside(path, root)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(real, flags)
    except FileNotFoundError:
        fix = "Check the path."
        if path in _USUAL:
            fix += _OF_SYSTEM if path == DEFAULT_TRACE else ""
            fix += " To create the usual files, run: rag-eval init"
        elif "\\" in path and os.sep == "/":
            fix = _SLASHES
        raise Unreadable("no such file", fix) from None
    except OSError as error:
        if os.path.isdir(real):  # noqa: PTH112 - Windows opens no folder; Path.is_dir raises without permission
            raise Unreadable(*_FOLDER) from None
        reason = (error.strerror or "unknown reason").lower()
        raise Unreadable(f"cannot be opened: {reason}", "Check its path and permissions.") from None
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and (status.st_size or not _has_content(handle)):
        return os.fdopen(handle, "rb", buffering=0)
    os.close(handle)
    if stat.S_ISREG(status.st_mode):  # like files of /proc, which may never end
        raise Unreadable("is larger than its stated size", "Name a regular file that is complete.")
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable(*_FOLDER)
    raise Unreadable("is a device or a pipe, not a file", "Write it to a file first.")


def _has_content(handle: int) -> bool:
    try:
        return bool(os.read(handle, 1))
    except OSError:
        return True


def refuse_outside(path: str, root: str | None) -> str:
    """Return the real path of ``path``; raise :class:`Unreadable` if it is not inside ``root``."""
    folder = root or os.path.dirname(path) or "."  # noqa: PTH120 - Path drops a slash at the end
    try:
        real, home = os.path.realpath(path), os.path.realpath(folder)
    except ValueError:  # half of a surrogate pair, or NUL
        if misread_names():
            raise  # the locale is wrong, not the name
        real = home = "\0"
    if "\0" in real:  # Windows resolves such a path
        raise Unreadable("is not a valid file name", "Check the path.")
    if _inside(real, home):
        return real
    spelt = os.path.abspath(path)  # noqa: PTH100 - Path.absolute keeps ".."
    is_link = _inside(spelt, os.path.abspath(folder)) or _inside(spelt, home)  # noqa: PTH100 - as above
    hint = "Replace the link with the file." if is_link else RELATIVE
    raise Unreadable(f"leads out of {'the workspace' if root else 'its folder'}", hint)


def _inside(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath([folder, path]) == folder
    except ValueError:  # on different drives
        return False


def too_many_lines(limits: Limits) -> tuple[int, str, str, str]:
    """Return line, place, message and hint of the problem of a file with too many lines."""
    return limits.lines + 1, "", f"more than {limits.lines:,} lines", "Split the file or raise limits.lines."


class _Hashed:
    def __init__(self, file: ByteStream, digest: Digest) -> None:
        self._file, self._digest = file, digest

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        self._digest.update(block)
        return block


def _zstd(stream: ByteStream) -> tuple[ByteStream, type[Exception]]:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ModuleNotFoundError:
        try:
            from backports import zstd
        except ModuleNotFoundError:
            raise MissingExtra("Reading .zst files", "zstd") from None
    return zstd.ZstdFile(stream), zstd.ZstdError


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


@contextmanager
def checked_reader() -> Iterator[Reader]:
    """Yield a reader; at the end of the block raise InputError with every problem of what it read."""
    reader = Reader(ProblemCollector())
    yield reader
    reader.ledger.stop_on_problems()
