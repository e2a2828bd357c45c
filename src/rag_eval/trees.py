"""One state of the repository's files, whoever holds it: git's objects, the index, the work tree or GitHub's API."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Tree(Protocol):
        """Files by path, relative to the root of the repository, with forward slashes."""

        def files(self, *paths: str) -> dict[str, str]:
            """The regular files at ``paths`` as {path: object id}; a path that ends in / means what is directly in it.

            What is not there is left out; a link, a folder or a submodule in the place of a file is an error.
            """

        def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
            """The bytes of files by object id."""

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


NOTHING: Tree = _Nothing()


def blob_id(data: bytes) -> str:
    """The id that git gives to a file of these bytes, in a repository whose objects are named by SHA-1."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def read(tree: Tree, path: str) -> bytes | None:
    """The bytes of one file, None when it is not there."""
    found = tree.files(path)
    return tree.contents(found.values())[found[path]] if path in found else None
