"""The bytes of git's commits and trees, built again from what GitHub's API says of them.

The API gives commits and trees as JSON. That lacks some of what an id is made of: time zones, the place of a signature,
the line break at the end of a message. Only bytes that give the id are taken, so that no answer can name another tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import product
from typing import Any

from rag_eval.git.snapshots import object_id

_ZONES = tuple(
    f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}" for minutes in range(-720, 841, 15)
)
_LONG, _TOO_LONG = 1 << 13, 1 << 20
"""Characters of a message from which on only pairs of one zone are tried, and none."""


def commit_bytes(answer: Mapping[str, Any], sha: str) -> bytes | None:
    """Return the bytes of the commit ``sha``; None if nothing that ``answer`` can mean has that id."""
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


def _signed(answer: Mapping[str, Any], sha: str) -> Iterator[str]:
    """A commit with its signature in the header, behind the committer or at the end."""
    head, _, message = answer["verification"]["payload"].partition("\n\n")
    lines = answer["verification"]["signature"].rstrip("\n").split("\n")
    name = "gpgsig" if len(sha) == len("0" * 40) else "gpgsig-sha256"
    headers = head.split("\n")
    committer = next((at for at, line in enumerate(headers) if line.startswith("committer ")), 0)
    for at, tail, end in product((len(headers), committer + 1), ([""], []), ("", "\n")):
        signature = "\n ".join([f"{name} {lines[0]}", *lines[1:], *tail])
        yield "\n".join([*headers[:at], signature, *headers[at:]]) + f"\n\n{message}{end}"


def _unsigned(answer: Mapping[str, Any]) -> Iterator[str]:
    """A commit in every time zone that its author and its committer may have been in."""
    message = answer["message"]
    head = "".join(
        [f"tree {answer['tree']['sha']}\n", *(f"parent {parent['sha']}\n" for parent in answer["parents"]), "author "]
    )
    author, committer = (_person(answer[role]) for role in ("author", "committer"))
    zones = [(zone, zone) for zone in _ZONES]
    if len(message) <= _LONG:
        zones += [(one, other) for one, other in product(_ZONES, repeat=2) if one != other]
    for (one, other), end in product(zones if len(message) <= _TOO_LONG else [], ("\n", "")):
        yield f"{head}{author} {one}\ncommitter {committer} {other}\n\n{message}{end}"


def _person(person: Mapping[str, str]) -> str:
    return f"{person['name']} <{person['email']}> {int(datetime.fromisoformat(person['date']).timestamp())}"
