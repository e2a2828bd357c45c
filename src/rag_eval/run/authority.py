"""Authority over a change: the states of the repository whose gates, policies and gold apply to it, and its files."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from rag_eval.common.paths import from_here
from rag_eval.errors import InputError, Problem, RagEvalError
from rag_eval.git import NOTHING, CommitTree, IsFolder, Tree, object_id
from rag_eval.git.plumbing import Git, LastWrite
from rag_eval.gold.signoff_repository import People

Signoff = Literal["policy", "require", "off"]


class Authority(NamedTuple):
    """The authority over a change under test.

    ``gates`` is the state that gates and policies are read from, None if the head decides for itself. The gold is
    compared from ``fork``, where the change began, to ``head``, which is scored; ``used_records`` has records that no
    longer count. ``after`` is the commit of ``head``. ``commits`` are the allowed commit ids of traces, empty if any is
    allowed. ``people`` returns who approved and who wrote the change, ``written_at`` how old a file of the base is;
    either is None if unknown. ``fork_of_gates`` is where the change left the history of ``gates``. It is None if the
    change is based on that very state, or on another history. ``unknown``: the state of ``gates`` may never have been
    on the base. ``instead_of`` is the state of the base branch if ``gates`` is that of another commit, which the caller
    names. ``wrong_checkout`` is the commit that is checked out if it is known to lack the change. ``workflow`` is the
    path of the workflow that runs this check, if it is a file of the change under test.
    """

    ref: str
    commit: str
    through: str
    gates: CommitTree | None
    fork: CommitTree
    head: WorkTree
    used_records: Tree = NOTHING
    after: CommitTree = NOTHING
    commits: frozenset[str] = frozenset()
    signoff: Signoff = "policy"
    people: People | None = None
    written_at: Callable[[str], LastWrite | None] | None = None
    ci: bool = False
    fork_of_gates: CommitTree | None = None
    unknown: bool = False
    instead_of: CommitTree | None = None
    wrong_checkout: str = ""
    workflow: str = ""

    def inside(self, path: str) -> str | None:
        """Return a path as git has it, from the root of the repository; None for a path outside of it."""
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps ".."
        return self._below(Path(os.path.realpath(folder), name))

    def written(self, path: str) -> str | None:
        """Return a path as git has it, without following links, because the head controls them."""
        return self._below(os.path.abspath(path))  # noqa: PTH100 - as above

    def on_base(self, path: str) -> str | None:
        """Return the path of a file that was read from the base, where links of the head lead nowhere else."""
        return self.written(path) or self.inside(path)

    def _below(self, path: str | Path) -> str | None:
        try:
            relative = os.path.relpath(path, os.path.realpath(self.head.top)).replace(os.sep, "/")
        except ValueError:  # on different drives
            return None
        return None if relative.startswith("../") or posixpath.isabs(relative) or relative == ".." else relative

    def outside(self, path: str) -> str:
        """Return a path of the repository relative to the current folder."""
        return from_here(os.path.join(self.head.top, *path.split("/")))  # noqa: PTH118 - from_here may return it as it is


def authority_from_git(ref: str) -> Authority:
    """Return the authority of ``ref`` over the current work tree: gates of its tip, gold since the fork."""
    git = Git()
    tip, head = git.commit_named(ref), git.commit_named("HEAD")
    fork = git.merge_base(tip, head)
    began, work_tree = git.at(fork), WorkTree(git.top)
    gates = began if fork == tip else git.at(tip)
    work_tree.committed = git.at(head)
    return Authority(
        ref=ref,
        commit=tip,
        through="git",
        gates=gates,
        fork=began,
        head=work_tree,
        used_records=NOTHING if fork == tip else gates,
        written_at=lambda path: git.last_write(path, tip),
        after=work_tree.committed,
        commits=frozenset([head]),
        fork_of_gates=None if fork == tip else began,
    )


class WorkTree:
    """The files below ``top``, the root of the repository; see :class:`rag_eval.git.Tree`.

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
