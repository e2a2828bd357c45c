"""A gold set with the hashes of its items: of the work tree, or of another commit in whatever form it is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from rag_eval.errors import InputError
from rag_eval.readers.gold_file import is_folder, item_hashes, read_gold
from rag_eval.readers.limits import DEFAULTS, Limits
from rag_eval.readers.problems import Ledger

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.readers.source import Reader


class GoldSet(NamedTuple):
    """Gold items and their hashes by qid. ``form`` is ``lines``, ``array`` or ``folder``."""

    golds: dict[str, Gold]
    hashes: Mapping[str, str]
    form: str

    def differs(self, qid: str, other: GoldSet) -> bool:
        """Return whether two sets have another item under a qid, or only one of them has one.

        The hash decides. Between two forms the fields decide: the same item has other bytes, or the same bytes say
        something else.
        """
        if (qid in self.golds) != (qid in other.golds):
            return True
        if qid not in self.golds:
            return False
        if self.form == other.form:
            return self.hashes.get(qid) != other.hashes.get(qid)
        return replace(self.golds[qid], line=0) != replace(other.golds[qid], line=0)


class StoredGold(NamedTuple):
    """The bytes of a gold set in a commit: one file, or the files of a folder by their names.

    ``path`` is its path from the root of the repository, ``shown`` its name in messages, ``limits`` are those of the
    gates file that names it.
    """

    path: str
    shown: str
    files: Mapping[str, bytes]
    folder: bool = False
    limits: Limits = DEFAULTS


def gold_set(reader: Reader, path: str) -> GoldSet:
    """Read the gold set at ``path``; problems go to the ledger of ``reader``."""
    golds = read_gold(reader, path)
    return GoldSet(golds, item_hashes(reader, path, golds), form_of(reader, path))


def form_of(reader: Reader, path: str) -> str:
    """Return the form of a gold file or folder."""
    if is_folder(reader, path):
        return "folder"
    source = reader._replace(ledger=Ledger()).open(path)
    if source is None:
        return "lines"
    with source:
        return "array" if source.is_array else "lines"


def stored_gold_set(reader: Reader, stored: StoredGold) -> GoldSet:
    """Read a gold set of another commit under its own limits; InputError when it cannot be read."""
    own = reader._replace(ledger=Ledger(), limits=stored.limits, held={}, root=None)
    if not stored.folder:
        (data,) = stored.files.values()
        found = gold_set(own._replace(held={stored.shown: data}), stored.shown)
        return _sound(own, found, stored.shown, stored.shown)
    from tempfile import TemporaryDirectory  # start-up time

    with TemporaryDirectory() as folder:
        for name, data in stored.files.items():
            with open(os.path.join(folder, name), "wb") as file:  # noqa: PTH118, PTH123
                file.write(data)
        return _sound(own, gold_set(own, folder), folder, stored.shown)


def _sound(reader: Reader, found: GoldSet, path: str, shown: str) -> GoldSet:
    ledger = reader.ledger
    if ledger.problems:
        named = [
            each._replace(file=each.file.replace(path, shown), hint=f"{each.hint} {_REPAIR}")
            for each in ledger.problems
        ]
        raise InputError(named, ledger.more)
    return found


_REPAIR = "This is the gold of the base. Repair it in a change that decides for itself: gates-ref: head"
