"""Texts that look like instructions to a model, also in hidden and encoded parts.

The wordings are in ``data/injection.toml``; docs/safety.md lists their kinds.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from msgspec import Struct

from rag_eval.textual import read_table
from rag_eval.textual.tokens import fold

_FIRST_TAG = 0xE0000
_FILLERS = {
    "<order>": (
        r"(?:^|[^\w\s'’][ ]?|(?<!\w)(?:and|or|to|please|must|should|now|then|just|you|will|shall|but|so|also|simply"
        r"|kindly|can|could|would|not|hello|immediately)[ ])"
    ),
    "<model>": (
        r"(?:(?:ai|artificial[ ]intelligence|language|chat)[ -]?(?:assistant|model|agent|tool|system|bot)s?|ai|llms?"
        r"|(?:chat)?gpt|chatbot|claude|gemini|copilot|language[ ]models?|assistant|model|bot)"
    ),
    "<gap>": r"(?:[ ,:]{1,2}[\w'’-]{1,20}){0,4}",
    "<few>": r"(?:[ ,:]{1,2}[\w'’-]{1,20}){0,2}",
}
_TAGS = "(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007e]{3,}"  # flags may have some
_INVISIBLE = "[\u200b-\u200f\u2060-\u2064\ufeff\ufe00-\ufe0f\U000e0100-\U000e01ef]{8,}|[\u202d\u202e]"
_BASE64 = r"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/]{4}){5,}(?:[A-Za-z0-9+/]{2,3}={0,2})?"
_HEX = r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){20,}(?![0-9A-Fa-f])"
_PERCENT = r"(?:%[0-9A-Fa-f]{2}|[\w.~+-]){20,}"
_SIGN = rb"%([0-9A-Fa-f]{2})"
_SPACED = r"(?<!\S)(?:\w {1,3}){12,200}\w(?!\S)"
_DISGUISED = r"[A-Za-z][013457@$][A-Za-z]"
_LETTERS = str.maketrans("013457@$", "oieastas")
_ENTITY = r"&#(?:[0-9]{2,6}|x[0-9A-Fa-f]{2,5});"


class Instruction(Struct, frozen=True):
    """Text that looks like an instruction to a model: its kind, and the wording as found."""

    kind: str
    text: str


@cache
def _instructions() -> dict[str, re.Pattern[str]]:
    compiled = {}
    for kind, languages in read_table("injection.toml").items():
        text = "|".join(f"(?:{one})" for one in languages.values())
        for name, gap in _FILLERS.items():
            text = text.replace(name, gap)
        compiled[kind] = re.compile(text if text.isascii() else fold(text), re.VERBOSE)
    return compiled


def instruction(text: str) -> Instruction | None:
    """Return the first instruction to a model in a text, also in hidden and encoded parts; None without one."""
    if wording := _worded(text):
        return wording
    if tags := re.search(_TAGS, text):
        return Instruction("hidden", "".join([chr(ord(sign) - _FIRST_TAG) for sign in tags[0]]))
    if wording := next(filter(None, map(_worded, _decoded(text))), None):
        return Instruction("encoded", wording.text)
    return Instruction("hidden", "invisible characters") if re.search(_INVISIBLE, text) else None


def _worded(text: str) -> Instruction | None:
    folded = fold(text)
    words = " ".join(folded.split())
    for kind, pattern in _instructions().items():
        if match := pattern.search(folded if kind == "role" else words):
            return Instruction(kind, match[0].strip())
    return None


def _decoded(text: str) -> Iterator[str]:
    """Yield what is encoded in Base64, hexadecimal, percent signs, HTML entities, spaced letters or leetspeak."""
    for run in re.finditer(_SPACED, text):
        yield " ".join([word.replace(" ", "") for word in re.split(" {2,}", run[0])])
    if re.search(_DISGUISED, text):
        yield text.translate(_LETTERS)
    for run in re.finditer(_BASE64, text):
        with suppress(Error):
            yield b64decode(run[0] + "=" * (-len(run[0]) % 4)).decode("utf-8", "replace")
    for run in re.finditer(_HEX, text):
        yield bytes.fromhex(run[0]).decode("utf-8", "replace")
    for run in re.finditer(_PERCENT, text):
        if "%" in run[0]:
            signs = re.sub(_SIGN, lambda sign: bytes.fromhex(sign[1].decode()), run[0].replace("+", " ").encode())
            yield signs.decode("utf-8", "replace")
    if re.search(_ENTITY, text):
        from html import unescape  # loads a table of all entities, and few runs need it

        yield unescape(text)
