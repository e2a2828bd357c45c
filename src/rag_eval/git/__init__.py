"""States of the repository's files: from git's objects, the index, the work tree or GitHub's API."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol

from rag_eval.common.escaping import quoted
from rag_eval.errors import InputError, RagEvalError

FOLDERS = ("040000", "40000")
LINK = "120000"
SUBMODULE = "160000"
_KINDS = {LINK: "a symbolic link", SUBMODULE: "a submodule", **dict.fromkeys(FOLDERS, "a folder")}
_SHA256 = 64  # hexadecimal digits
_MOST_LINKS = 40
_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")  # by SHA-1 or by SHA-256


class Tree(Protocol):
    """Files by path, relative to the root of the repository, with forward slashes."""

    def files(self, *paths: str) -> dict[str, str]:
        """Return the regular files at ``paths`` as {path: object id}; a path ending in / means its direct files.

        What is not there is left out; a link, a folder or a submodule in the place of a file is an error.
        """

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of files by object id."""


class Entry(NamedTuple):
    """An entry of a folder: git's mode, and the object's id."""

    mode: str
    id: str


class Objects(Protocol):
    """A source of the bytes of git's objects, each checked against its id."""

    def raw(self, kind: str, object_id: str, /) -> bytes:
        """Return the bytes of a commit, a tree or a blob."""

    def objects(self, kind: str, object_ids: Collection[str], /) -> Mapping[str, bytes]:
        """Return the bytes of trees or blobs; it may add trees below them."""


class CommitTree:
    """The tree of a commit, loaded folder by folder.

    An earlier step may have changed refs and objects of a checkout. Every object is checked against the commit's id by
    git's chain of hashes, so that it is exactly the object in that commit, or an error.
    """

    def __init__(self, objects: Objects, commit: str) -> None:
        self._objects = objects
        self._root = next(line[5:] for line in _headers(objects.raw("commit", commit)) if line.startswith("tree "))
        self._known: dict[str, dict[str, Entry]] = {}
        self._data: dict[str, bytes] = {}

    def files(self, *paths: str) -> dict[str, str]:
        """Return the regular files at ``paths``; a path ending in / means the files directly in it."""
        ids = {}
        for path in paths:
            folder, _, name = path.rpartition("/")
            rows = self._at(folder)
            for name_in_folder, entry in rows.items() if not name else [(name, rows[name])] if name in rows else []:
                whole = f"{folder}/{name_in_folder}" if folder else name_in_folder
                if name or entry.mode not in FOLDERS:
                    refuse_irregular(entry.mode, whole)
                    ids[whole] = entry.id
        return ids

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of files by object id."""
        wanted = dict.fromkeys(object_ids)
        if missing := [name for name in wanted if name not in self._data]:
            self._data |= self._objects.objects("blob", missing)
        return {name: self._data[name] for name in wanted}

    def entries(self, folder: str) -> dict[str, str]:
        """Return the object id of each name directly in ``folder`` (empty, or ending in /)."""
        return {name: entry.id for name, entry in self._at(folder.rstrip("/")).items()}

    def paths(self) -> dict[str, str]:
        """Return the object id of every regular file, loading all folders of one depth together."""
        files: dict[str, str] = {}
        level = {"": self._root}
        while level:
            if missing := [name for name in dict.fromkeys(level.values()) if name not in self._known]:
                trees = self._objects.objects("tree", missing)
                self._known |= {name: _entries_of(data, len(name) // 2) for name, data in trees.items()}
            rows = [(f"{above}{name}", row) for above, at in level.items() for name, row in self._known[at].items()]
            files |= {path: entry.id for path, entry in rows if _is_regular(entry.mode)}
            level = {f"{path}/": entry.id for path, entry in rows if entry.mode in FOLDERS}
        return files

    def _at(self, path: str) -> dict[str, Entry]:
        here, folder = self._rows(self._root), ""
        for part in path.split("/") if path else []:
            folder = f"{folder}/{part}" if folder else part
            if part not in here:
                return {}
            if here[part].mode not in FOLDERS:
                refuse_irregular(here[part].mode, folder)
                return {}
            here = self._rows(here[part].id)
        return here

    def _rows(self, folder_id: str) -> dict[str, Entry]:
        if folder_id not in self._known:
            self._known[folder_id] = _entries_of(self._objects.raw("tree", folder_id), len(folder_id) // 2)
        return self._known[folder_id]


def _entries_of(data: bytes, size: int) -> dict[str, Entry]:
    """Return the entries of a git tree: mode, space, name, NUL, then the id in ``size`` bytes."""
    entries, at = {}, 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        name = data[space + 1 : end].decode("utf-8", "surrogateescape")
        entries[name] = Entry(data[at:space].decode("ascii"), data[end + 1 : end + 1 + size].hex())
        at = end + 1 + size
    return entries


def _headers(commit: bytes) -> list[str]:
    return commit.split(b"\n\n", 1)[0].decode("utf-8", "replace").split("\n")


def parents(commit: bytes) -> list[str]:
    """Return the ids of a commit's parents, including those that a shallow clone lacks."""
    return [line[7:] for line in _headers(commit) if line.startswith("parent ")]


class _NoObjects:
    """The objects before the first commit: an empty tree."""

    def raw(self, kind: str, object_id: str, /) -> bytes:
        del object_id
        return b"tree " if kind == "commit" else b""

    def objects(self, kind: str, object_ids: Collection[str], /) -> Mapping[str, bytes]:
        del kind
        return dict.fromkeys(object_ids, b"")


NOTHING = CommitTree(_NoObjects(), "")  # the state before the first commit


class IsFolder(InputError):
    """A folder in place of a file of the work tree."""


class Irregular(RagEvalError):
    """An entry of git that is not a regular file: its ``path``, and whether it is a folder, a link or a submodule."""

    def __init__(self, message: str, path: str, mode: str) -> None:
        super().__init__(message)
        self.path, self.folder, self.link, self.submodule = path, mode in FOLDERS, mode == LINK, mode == SUBMODULE


def refuse_irregular(mode: str, path: str) -> None:
    """Raise :class:`Irregular` unless ``mode`` is that of a regular file."""
    if not _is_regular(mode):
        kind = _KINDS.get(mode, "no regular file")
        fix = "Keep it as a regular file."
        if mode == SUBMODULE:
            fix = "Commit its files to this repository, where their changes can be compared. "
            fix += "If the base branch has it too, set gates-ref: head once."
        raise Irregular(f"{quoted(path)} is {kind} in git, not a file. {fix}", path, mode)


def _is_regular(mode: str) -> bool:
    """Return whether ``mode`` is that of a file: old versions of git also wrote modes such as 100664."""
    return mode.startswith("100")


def object_id(data: bytes, kind: str = "blob", like: str = "") -> str:
    """Return git's id for an object of these bytes, by SHA-1 or, if ``like`` has its length, by SHA-256."""
    algorithm = "sha256" if len(like) == _SHA256 else "sha1"
    return hashlib.new(algorithm, b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False).hexdigest()


def is_folder(error: Irregular | IsFolder, path: str) -> bool:
    """Return whether a tree refused ``path`` because it is a folder."""
    if isinstance(error, IsFolder):
        return error.problems[0].file == path
    return error.folder and error.path == path


def has_path(tree: Tree, path: str) -> bool:
    """Return whether a state has something at a path: a link or a submodule counts."""
    try:
        return bool(tree.files(path))
    except Irregular:
        return True


def read(tree: Tree, path: str) -> bytes | None:
    """Return the bytes of one file, None if it is missing."""
    ids = tree.files(path)
    return tree.contents(ids.values())[ids[path]] if path in ids else None


def read_regular(tree: Tree, path: str) -> bytes | None:
    """Return the bytes of one file; None if it is missing or not a regular file, in a state that decides nothing."""
    try:
        return read(tree, path)
    except Irregular:
        return None


def entry_of(tree: CommitTree, path: str) -> str:
    """Return the id of a file, or of a folder with all that is in it; empty if there is none.

    In a submodule it is the commit of the submodule.
    """
    folder, name = posixpath.split(path)
    try:
        return tree.entries(folder).get(name, "")
    except Irregular as irregular:
        return entry_of(tree, irregular.path) if irregular.submodule else ""


def is_in_changed_submodule(before: CommitTree, after: CommitTree, path: str) -> bool:
    """Return whether a path is in a submodule that has another commit in the later state."""
    try:
        before.files(path)
    except Irregular as irregular:
        return irregular.submodule and entry_of(before, irregular.path) != entry_of(after, irregular.path)
    return False


def follow_links(tree: CommitTree, path: str) -> str:
    """Return the path that ``path`` leads to by the links of this tree, which a change cannot let lead elsewhere."""
    for _ in range(_MOST_LINKS):
        try:
            tree.files(path)
        except Irregular as irregular:
            if not irregular.link:
                return path
            folder, name = posixpath.split(irregular.path)
            link = tree.entries(folder)[name]
            target = tree.contents([link])[link].decode("utf-8", "replace")
            path = posixpath.normpath(posixpath.join(folder, target) + path.removeprefix(irregular.path))
        else:
            return path
    return path


def differing(tree: CommitTree, other: CommitTree, skip: Collection[str], most: int = 3, folder: str = "") -> list[str]:
    """Return the first ``most`` paths that differ between two trees, except in ``skip`` (folders end in a slash)."""
    before, after = tree.entries(folder), other.entries(folder)
    paths: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        path = folder + name
        if len(paths) >= most or before.get(name) == after.get(name) or path in skip or f"{path}/" in skip:
            continue
        below = any(one_skipped.startswith(f"{path}/") for one_skipped in skip)
        paths += differing(tree, other, skip, most - len(paths), f"{path}/") if below else [path]
    return paths


def deleted(tree: CommitTree, other: CommitTree, folder: str = "") -> Iterator[str]:
    """Yield the files of a tree at whose paths another one has nothing; only folders that differ are loaded."""
    before, after = tree.entries(folder), other.entries(folder)
    for name in sorted(name for name in before if before[name] != after.get(name)):
        with suppress(Irregular):  # a link or a submodule
            if tree.entries(f"{folder}{name}/"):
                yield from deleted(tree, other, f"{folder}{name}/")
            elif name not in after:
                yield folder + name


def path_inside(folder: str, path: str) -> str | None:
    """Return a path that a file of ``folder`` states, from the root of the repository; None if it leads out of it."""
    joined = posixpath.normpath(posixpath.join(folder, path))
    return None if joined.startswith(("/", "../")) or joined in (".", "..") else joined


def is_object_id(text: str) -> bool:
    """Return whether ``text`` is a full object id, as git writes it."""
    return _ID.fullmatch(text) is not None
