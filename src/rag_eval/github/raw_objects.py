"""Git's bytes of commits and trees, rebuilt from what GitHub's API shows of them, and checked against their ids.

The API gives no time zones and no ends of lines, so the forms that an object may have are tried until one has its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Any

from rag_eval.git.snapshots import FOLDERS, object_id

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
    author, committer = (
        f"{person['name']} <{person['email']}> {int(datetime.fromisoformat(person['date']).timestamp())}"
        for person in (answer["author"], answer["committer"])
    )
    zones = [(zone, zone) for zone in _ZONES]
    if len(message) <= _LONG:
        zones += [(entry, other) for entry, other in product(_ZONES, repeat=2) if entry != other]
    for (item, other), end in product(zones if len(message) <= _TOO_LONG else [], ("\n", "")):
        yield f"{head}{author} {item}\ncommitter {committer} {other}\n\n{message}{end}"
