"""Commits of a repository that others can write to, trusted only by their ids.

An earlier step may have changed refs and objects of a checkout. Every object is checked against the commit's id by
git's chain of hashes, so that it is exactly the object in that commit, or an error.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from rag_eval.git.plumbing import GitError
from rag_eval.git.snapshots import FOLDERS, CommitTree, Entry, object_id

if TYPE_CHECKING:
    from rag_eval.git.plumbing import Git

    class Objects(Protocol):
        """A source of the bytes of git's objects by their ids."""

        def raw(self, kind: str, object_id: str, /) -> bytes:
            """Return the bytes of a commit, a tree or a blob, checked against its id."""

        def objects(self, kind: str, object_ids: Collection[str], /) -> Mapping[str, bytes]:
            """Return the bytes of trees or blobs, each checked against its id; it may add trees below them."""


def parents(objects: Objects, commit: str) -> list[str]:
    """Return the ids of a commit's parents, including those that a shallow clone lacks."""
    return _parents(objects.raw("commit", commit))


def root(objects: Objects, commit: str) -> str:
    """Return the id of a commit's root folder."""
    return next(line[5:] for line in _head(objects.raw("commit", commit)) if line.startswith("tree "))


def _parents(data: bytes) -> list[str]:
    return [line[7:] for line in _head(data) if line.startswith("parent ")]


def merge_base(git: Git, first: str, other: str) -> str:
    """Return the best common ancestor of two commits, by the parents in their own bytes.

    Grafts, replaced objects and commit-graph files can forge the history that git reports. GitError is raised if the
    clone lacks a part of the history of ``first``.
    """
    known = git.history(first, other)  # read together, because a process for each commit is slow
    shared = _ancestors(git, known, [first])
    best = {commit for commit in _ancestors(git, known, [other], shared) if commit in shared}
    best -= _ancestors(git, known, [parent for commit in best for parent in shared[commit]]).keys()
    if not best:
        raise GitError(f"The commits {first[:12]} and {other[:12]} have no common ancestor. Fetch it: fetch-depth: 0")
    return min(best)


def _ancestors(
    git: Git, contents: Mapping[str, bytes], commits: Iterable[str], stop: Container[str] = ()
) -> dict[str, list[str]]:
    """Return commits and their ancestors, with their parents; ancestors of ``stop`` are left out."""
    ancestors: dict[str, list[str]] = {}
    rest = list(commits)
    while rest:
        commit = rest.pop()
        if commit not in ancestors:
            ancestors[commit] = _parents(contents[commit]) if commit in contents else parents(git, commit)
            rest += [] if commit in stop else ancestors[commit]
    return ancestors


def snapshot(objects: Objects, commit: str) -> CommitTree:
    """Return the tree of a commit; raise RagEvalError if its objects are missing."""
    top = root(objects, commit)
    size = len(top) // 2
    return CommitTree(
        top,
        lambda name: _rows(objects.raw("tree", name), size),
        lambda names: {name: _rows(data, size) for name, data in objects.objects("tree", names).items()},
        lambda names: objects.objects("blob", names),
    )


def _head(data: bytes) -> list[str]:
    return data.split(b"\n\n", 1)[0].decode("utf-8", "replace").split("\n")


def _rows(data: bytes, size: int) -> dict[str, Entry]:
    """Yield the entries of a git tree: mode, space, name, NUL, then the id in ``size`` bytes."""
    entries, at = {}, 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        name = os.fsdecode(data[space + 1 : end])
        entries[name] = Entry(data[at:space].decode("ascii"), data[end + 1 : end + 1 + size].hex())
        at = end + 1 + size
    return entries


_ZONES = tuple(
    f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}" for minutes in range(-720, 841, 15)
)
_LONG, _TOO_LONG = 1 << 13, 1 << 20
"""Characters of a message from which on only pairs of one zone are tried, and none."""


def commit_bytes(answer: Mapping[str, Any], sha: str) -> bytes | None:
    """Return the bytes of the commit ``sha``; None if no reading of ``answer`` has that id."""
    try:
        candidates = _signed(answer, sha) if answer["verification"]["signature"] else _unsigned(answer)
        for text in candidates:
            data = text.encode()
            if object_id(data, "commit", like=sha) == sha:
                return data
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError):
        pass  # an answer of another form
    return None


def tree_bytes(entries: Iterable[tuple[str, str, str]], sha: str) -> bytes | None:
    """Return the bytes of the tree ``sha`` with these modes, names and ids; None if they have another id."""
    rows = (f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(entry) for mode, name, entry in entries)
    try:
        data = b"".join(rows)
    except ValueError:  # a name with half a surrogate pair
        return None
    return data if object_id(data, "tree", like=sha) == sha else None


def trees_bytes(entries: Iterable[tuple[str, str, str]], sha: str) -> dict[str, bytes] | None:
    """Return the bytes of the tree ``sha`` and of all trees below it; None if one of them has another id.

    The entries have the paths from that tree, folders included, in any order.
    """
    ids, rows = {"": sha}, dict[str, list[tuple[str, str, str]]]({"": []})
    for mode, path, entry in entries:
        folder, _, name = path.rpartition("/")
        rows.setdefault(folder, []).append((mode, name, entry))
        if mode in FOLDERS:
            ids[path] = entry
            rows.setdefault(path, [])
    trees: dict[str, bytes] = {}
    for folder, inside in rows.items():
        # Git sorts a folder as if its name ended in a slash.
        ordered = sorted(inside, key=lambda row: row[1] + "/" if row[0] in FOLDERS else row[1])
        data = tree_bytes(ordered, ids[folder]) if folder in ids else None
        if data is None:
            return None
        trees[ids[folder]] = data
    return trees


def _signed(answer: Mapping[str, Any], sha: str) -> Iterator[str]:
    """Yield a commit with its signature in the header, behind the committer or at the end."""
    head, _, message = answer["verification"]["payload"].partition("\n\n")
    lines = answer["verification"]["signature"].rstrip("\n").split("\n")
    name = "gpgsig" if len(sha) == len("0" * 40) else "gpgsig-sha256"
    headers = head.split("\n")
    committer = next((at for at, line in enumerate(headers) if line.startswith("committer ")), 0)
    for at, tail, end in product((len(headers), committer + 1), ([""], []), ("", "\n")):
        signature = "\n ".join([f"{name} {lines[0]}", *lines[1:], *tail])
        yield "\n".join([*headers[:at], signature, *headers[at:]]) + f"\n\n{message}{end}"


def _unsigned(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield a commit in every time zone that its author and its committer may have been in."""
    message = answer["message"]
    head = "".join(
        [f"tree {answer['tree']['sha']}\n", *(f"parent {parent['sha']}\n" for parent in answer["parents"]), "author "]
    )
    author, committer = (_person(answer[role]) for role in ("author", "committer"))
    zones = [(zone, zone) for zone in _ZONES]
    if len(message) <= _LONG:
        zones += [(entry, other) for entry, other in product(_ZONES, repeat=2) if entry != other]
    for (item, other), end in product(zones if len(message) <= _TOO_LONG else [], ("\n", "")):
        yield f"{head}{author} {item}\ncommitter {committer} {other}\n\n{message}{end}"


def _person(person: Mapping[str, str]) -> str:
    return f"{person['name']} <{person['email']}> {int(datetime.fromisoformat(person['date']).timestamp())}"
