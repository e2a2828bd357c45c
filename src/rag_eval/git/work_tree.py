"""The work tree as a state of the repository's files, with git's ids."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from rag_eval.errors import InputError, Problem, RagEvalError
from rag_eval.git.snapshots import IsFolder, Tree, object_id


class WorkTree:
    """The files below ``top``, the root of the repository; see :class:`rag_eval.git.snapshots.Tree`.

    Files are read when they are listed, and have git's ids: content that git has gets the same id. A link anywhere in a
    path, or anything else that is not a regular file, is an :class:`InputError`.
    """

    committed: Tree | None = None
    """The commit that is checked out, when it is known: a check-out may write files otherwise than git keeps them."""

    def __init__(self, top: str) -> None:
        self.top = top
        self._data: dict[str, bytes] = {}
        self._checked_out: dict[str, bytes] = {}

    def files(self, *paths: str) -> dict[str, str]:
        """Return the files at ``paths``; a path that ends in / means the files directly in that folder."""
        entries = {}
        for path in paths:
            for name in self._names(path) if path.endswith("/") else [path]:
                data = self._read(name, asked=name == path)
                if data is not None:
                    if self._checked_out.setdefault(name, data) != data:
                        hint = "Run again, and let no other program write the file."
                        raise InputError([Problem(name, 0, "", "was changed while it was checked", hint)])
                    committed = self._as_committed(name, data)
                    entries[name] = object_id(committed)
                    self._data[entries[name]] = committed
        return entries

    def checked_out(self, path: str) -> bytes | None:
        """Return the bytes of a listed file as they are on the disk."""
        return self._checked_out.get(path)

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of files that were listed."""
        return {name: self._data[name] for name in object_ids}

    def content_of(self, object_id: str) -> bytes | None:
        """Return the bytes of a listed file; None if no listed file has that id."""
        return self._data.get(object_id)

    def _as_committed(self, path: str, data: bytes) -> bytes:
        """Return the bytes as git stores them, if a checkout changed ``$Id$`` or line endings."""
        if self.committed is None or not (b"$Id: " in data or b"\r\n" in data):
            return data
        try:
            known = self.committed.files(path).get(path)
        except RagEvalError:
            return data
        if known is None or object_id(data, like=known) == known:
            return data
        plain = data.replace(b"$Id: %s $" % known.encode(), b"$Id$")  # exactly the text that git inserts
        forms = plain, plain.replace(b"\r\n", b"\n"), data.replace(b"\r\n", b"\n")
        return next((form for form in forms if object_id(form, like=known) == known), data)

    def _names(self, folder: str) -> Iterator[str]:
        self._refuse_links(folder.rstrip("/"))
        try:
            names = sorted(entry.name for entry in self._at(folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return
        yield from (folder + name for name in names)

    def _read(self, path: str, *, asked: bool) -> bytes | None:
        self._refuse_links(path)
        try:
            mode = self._at(path).lstat().st_mode
            if stat.S_ISDIR(mode) and not asked:
                return None
            if stat.S_ISDIR(mode):
                raise IsFolder(_refused(path, "is a folder, not a file").problems)
            if not stat.S_ISREG(mode):
                raise _refused(path, "is not a regular file")
            with self._at(path).open("rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _refused(path, f"cannot be read: {(error.strerror or 'unknown reason').lower()}") from None

    def _refuse_links(self, path: str) -> None:
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            step = "/".join(parts[:count])
            if os.path.islink(self._at(step)):  # noqa: PTH114 - Path.is_symlink raises without permission
                raise _refused(step, "is a symbolic link")

    def _at(self, path: str) -> Path:
        return Path(self.top, *path.split("/"))


def _refused(path: str, message: str) -> InputError:
    return InputError([Problem(path, 0, "", message, "Keep signed files as regular files.")])
