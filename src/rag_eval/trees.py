"""One state of the repository's files, whoever holds it: git's objects, the index, the work tree or GitHub's API."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Protocol

    class Tree(Protocol):
        """Files by path, relative to the root of the repository, with forward slashes."""

        def files(self, *paths: str) -> dict[str, str]:
            """The regular files at ``paths`` as {path: object id}; a path that ends in / means what is directly in it.

            What is not there is left out; a link, a folder or a submodule in the place of a file is an error.
            """

        def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
            """The bytes of files by object id."""

    class Snapshot(Tree, Protocol):
        """The tree of a commit, whose folders have ids too."""

        def entries(self, folder: str) -> dict[str, str]:
            """What stands directly in ``folder`` (empty: the root): the object id of each name, folders included."""


class _Nothing(NamedTuple):
    """The state before the first commit."""

    def files(self, *paths: str) -> dict[str, str]:
        del paths
        return {}

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        del object_ids
        return {}

    def entries(self, folder: str) -> dict[str, str]:
        del folder
        return {}


NOTHING: Snapshot = _Nothing()


def blob_id(data: bytes) -> str:
    """The id that git gives to a file of these bytes, in a repository whose objects are named by SHA-1."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def read(tree: Tree, path: str) -> bytes | None:
    """The bytes of one file, None when it is not there."""
    found = tree.files(path)
    return tree.contents(found.values())[found[path]] if path in found else None


def differing(one: Snapshot, other: Snapshot, skip: Collection[str], most: int = 3, folder: str = "") -> list[str]:
    """The first ``most`` paths that two trees do not have alike, but for those in ``skip`` (folders end in a slash)."""
    before, after = one.entries(folder), other.entries(folder)
    found: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        path = folder + name
        if len(found) >= most or before.get(name) == after.get(name) or path in skip or f"{path}/" in skip:
            continue
        below = any(one_skipped.startswith(f"{path}/") for one_skipped in skip)
        found += differing(one, other, skip, most - len(found), f"{path}/") if below else [path]
    return found
