"""Files: digests of those that are read; those that are written appear completely or not at all."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from rag_eval.errors import UsageError

_FIX = "Check the path, its permissions and the free space, or write to another place."


class Digests:
    """sha256 of the files that are read, by their role."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[str, Any]] = {}

    def of(self, role: str, path: str) -> Any:
        """Return a digest that is updated with the bytes of ``path``."""
        self._begun[role] = path, sha256()
        return self._begun[role][1]

    def record(self, role: str, path: str, digest: str) -> None:
        """Record the digest, in hex, of a file that was read elsewhere."""
        self._begun[role] = path, digest

    def hex(self, role: str) -> str:
        """Return the digest of the bytes read so far for ``role``, in hex."""
        digest = self._begun[role][1]
        return digest if isinstance(digest, str) else str(digest.hexdigest())

    def rows(self) -> list[tuple[str, str, str]]:
        """Return role, path and hex digest of each file."""
        return [(role, path, self.hex(role)) for role, (path, _) in self._begun.items()]


def by_line_ends(data: bytes) -> Iterator[str]:
    """Return the sha256, in hex, of bytes with LF and with CRLF, which git may change on checkout."""
    plain = data.replace(b"\r\n", b"\n")
    return (sha256(form).hexdigest() for form in (plain, plain.replace(b"\n", b"\r\n")))


def write(path: str | Path, text: str) -> None:
    """Write a text file completely or not at all."""
    write_data(path, [text.encode()])


def write_json(path: str | Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file completely or not at all."""
    write(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def write_rows(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as JSON Lines, completely or not at all."""
    write_data(path, map(json_line, rows))


def json_line(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line of JSON Lines."""
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def with_line(data: bytes, row: Mapping[str, Any]) -> bytes:
    """Return the content of a file of JSON Lines with one more row at its end."""
    return data + (b"\n" if data and not data.endswith(b"\n") else b"") + json_line(row)


def write_data(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write a file from an iterator of its pieces, completely or not at all."""
    write_files([(Path(path), pieces)])


def write_together(folder: Path, texts: Iterable[tuple[str, str]]) -> None:
    """Write text files into ``folder`` by name, all or none."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder. Name a folder.")
    write_files((folder / name, [text.encode()]) for name, text in texts)


def write_files(files: Iterable[tuple[Path, Iterable[bytes]]]) -> None:
    """Write files from iterators of their pieces, all or none, so that an interruption leaves no mixture.

    Signals are blocked while finished files replace earlier ones.
    """
    parts: dict[Path, Path] = {}
    path = Path()
    try:
        for path, pieces in files:
            if not path.name:
                raise UsageError(f"{path} is a folder. Name a file to write.")
            # The file is replaced, not written into: as root that would remove /dev/null.
            if path.parent == Path("/dev") or (path.exists() and not (path.is_file() or path.is_dir())):
                raise UsageError(f"{path} is a device or a pipe. Name a file, or redirect the output.")
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}.part")
            part.unlink(missing_ok=True)
            parts[path] = part
            with part.open("xb") as file:  # created anew, never opened: it could be a link to elsewhere
                file.writelines(pieces)
        with _blocked_signals():
            for path, part in parts.items():
                part.replace(path)
    except OSError as error:
        why = f"{path} cannot be written: {(error.strerror or 'unknown reason').lower()}"
        raise UsageError(f"{why}. {_FIX}") from None
    finally:  # on Ctrl-C too
        for part in parts.values():
            with suppress(OSError):
                part.unlink()


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Run a block with signals blocked, if the system supports it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
