"""sha256 digests of files, computed while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any


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
