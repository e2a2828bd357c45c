"""The exact bytes of each gold item of a file, as sign-off has them."""

from __future__ import annotations

import json
import re

_BOM = b"\xef\xbb\xbf"


def is_array(blob: bytes) -> bool:
    """Whether a gold blob is of the JSON-array form: its first non-blank byte is ``[``."""
    return blob.removeprefix(_BOM).lstrip()[:1] == b"["


def sources(blob: bytes) -> list[tuple[int, bytes]]:
    """The exact bytes of each item of a gold blob, with its line number; blank lines are none.

    Of an element that goes over lines, the line ends are those that git keeps, not those of a check-out. An array that
    cannot be taken apart comes back in one piece: parsing it says what is wrong.
    """
    body = blob.removeprefix(_BOM)
    if is_array(blob):
        return _elements(body) or [(1, body.strip())]
    lines = enumerate(body.split(b"\n"), 1)
    return [(number, line.removesuffix(b"\r")) for number, line in lines if line.strip()]


def _elements(body: bytes) -> list[tuple[int, bytes]] | None:
    """The elements of a JSON array as they are written, None when it cannot be read as one."""
    scan, blank = json.JSONDecoder().raw_decode, re.compile(r"[ \t\n\r]*")
    try:
        text = body.decode("utf-8")
        found, line, seen, at = [], 1, 0, text.index("[") + 1
        while True:
            start = blank.match(text, at).end()  # type: ignore[union-attr]
            end = scan(text, start)[1]
            line, seen = line + text.count("\n", seen, start), start
            found.append((line, text[start:end].replace("\r\n", "\n").encode("utf-8")))
            at = blank.match(text, end).end()  # type: ignore[union-attr]
            if text[at] != ",":
                break
            at += 1
    except (ValueError, IndexError, RecursionError):
        return None
    return found if text[at] == "]" and not text[at + 1 :].strip() else None
