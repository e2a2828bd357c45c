"""Instructions to a language model in a retrieved text: wordings, role markers, hidden text, encoded payloads.

The patterns are data in ``data/injection.toml``. A keyword search is no guardrail: docs/safety.md lists what it finds.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from contextlib import suppress
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.textual import read_table
from rag_eval.textual.refusals import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_TAG = 0xE0000
_GAPS = {"<gap>": r"(?:[ ,:]{1,2}[\w'’-]{1,20}){0,4}", "<few>": r"(?:[ ,:]{1,2}[\w'’-]{1,20}){0,2}"}
_TAGS = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007e]{3,}")  # flags may have some
_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\ufe00-\ufe0f\U000e0100-\U000e01ef]{8,}|[\u202d\u202e]")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{4}){5,}(?:[A-Za-z0-9+/]{2,3}={0,2})?")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){20,}(?![0-9A-Fa-f])")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}|[\w.~+-]){20,}")
_SIGN = re.compile(rb"%([0-9A-Fa-f]{2})")
_ENTITIES = re.compile(r"(?:&\#(?:[0-9]{2,6}|x[0-9A-Fa-f]{2,5});){8,}")


class Instruction(NamedTuple):
    """Text that looks like an instruction to a model: its kind, and the wording as found."""

    kind: str
    text: str


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    compiled = {}
    for kind, languages in read_table("injection.toml").items():
        text = "|".join(f"(?:{one})" for one in languages.values())
        for name, gap in _GAPS.items():
            text = text.replace(name, gap)
        compiled[kind] = re.compile(text if text.isascii() else fold(text), re.VERBOSE)
    return compiled


def instruction(text: str) -> Instruction | None:
    """Return the first instruction to a model in a text, also in hidden and encoded parts; None without one."""
    if wording := _worded(text):
        return wording
    if tags := _TAGS.search(text):
        return Instruction("hidden", "".join([chr(ord(sign) - _FIRST_TAG) for sign in tags[0]]))
    if wording := next(filter(None, map(_worded, _decoded(text))), None):
        return Instruction("encoded", wording.text)
    return Instruction("hidden", "invisible characters") if _INVISIBLE.search(text) else None


def _worded(text: str) -> Instruction | None:
    folded = fold(text)
    words = " ".join(folded.split())
    for kind, pattern in _patterns().items():
        if match := pattern.search(folded if kind == "role" else words):
            return Instruction(kind, match[0].strip())
    return None


def _decoded(text: str) -> Iterator[str]:
    """Yield the decoded text of Base64, hexadecimal digits, percent signs and HTML entities."""
    for run in _BASE64.finditer(text):
        with suppress(Error):
            yield b64decode(run[0] + "=" * (-len(run[0]) % 4)).decode("utf-8", "replace")
    for run in _HEX.finditer(text):
        yield bytes.fromhex(run[0]).decode("utf-8", "replace")
    for run in _PERCENT.finditer(text):
        if "%" in run[0]:
            signs = _SIGN.sub(lambda sign: bytes.fromhex(sign[1].decode()), run[0].replace("+", " ").encode())
            yield signs.decode("utf-8", "replace")
    for run in _ENTITIES.finditer(text):
        yield unescape(run[0])
