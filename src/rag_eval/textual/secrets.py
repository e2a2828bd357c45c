"""Secrets: keys in their issuers' formats, private keys, passwords in URLs, and values that a text calls secret."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from math import log2

from rag_eval.textual import read_table
from rag_eval.textual.tokens import holds_any

Spans = Iterator[tuple[int, int]]

# Patterns are compiled at first use, by re itself: most runs need few of them.
_SHORTEST, _SHORT = 20, 8
_SIGNS = bytes(0x78 if 0x21 <= byte <= 0x7E else 0x20 for byte in range(256))
"""All that a word of ASCII is made of as x, of a text's bytes."""
_LONG_WORD = rf"[!-~]{{{_SHORTEST},}}"
_PRIVATE = r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[23]|AGE-SECRET-KEY-1"
_IN_URL = r"(?<=://)[^\s:@/]{0,64}:([^\s:@/]{3,128})@"
_STATED = (
    r"(?i)(?:pass(?:word|wd|phrase|code|wort)|kennwort|mot de passe|contrase[ñn]a|senha|wachtwoord|пароль|pwd"
    r"|secret|token|credentials?"
    r"|(?:api|access|secret|private|account|auth)[_ \-]?key)"
    r"[\"'`*]{0,3}\s{0,3}(?:[:=]|:=|=>|\b(?:is|ist|est|es)\b:?)\s{0,3}[\"'`*]{0,3}([!#-&(-_a-~]{8,200})"
)
_BEARER = r"(?i)(?<!\w)bearer\s{1,3}([A-Za-z0-9._~+/\-]{20,2000}=*)"
_CUES = tuple("pass kennwort contrase senha wachtwoord пароль pwd secret token credential bearer".split())
_KINDS, _APART = ("api", "access", "private", "account", "auth"), " _-"
_ENDS = "\"'`*.,;:)]}>"
_NO_VALUE = (
    r"(?i)[<{$\[(*]|^%.*%$|x{4}|\.{3}|your|example|placeholder|changeme|redacted|://|^/"
    r"|^(?:pass(?:word|wd)?|pwd|secret|token)\d{0,4}$"
)
_WORDS = r"(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)(?:[\-_./:,](?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)){0,99}"
LEAST_ENTROPY = 2.5
"""Bits a character: six that all differ have a little more, eight that all differ have three."""


def with_long_word(text: str) -> bool:
    """Return whether a text may have a key: a sufficiently long word."""
    return b"x" * _SHORTEST in text.encode(errors="replace").translate(_SIGNS)


def with_key(text: str) -> bool:
    """Return whether a text may have a private key."""
    return "KEY" in text or "PuTTY" in text


def with_address(text: str) -> bool:
    """Return whether a text may have a URL."""
    return "://" in text


def with_secret_name(text: str) -> bool:
    """Return whether a text names a secret of some kind, and has a word that may be one."""
    lowered = text.lower()
    if not (holds_any(_CUES, lowered) or _names_key(lowered)):
        return False
    long = [word for word in text.split() if len(word) >= _SHORT and not word.isalpha()]  # only letters: most of them
    return any([any(map(str.isdigit, word)) for word in long])


def _names_key(lowered: str) -> bool:
    """Return whether a text names a key of a known kind, such as *API key*: *key* alone is in every other answer."""
    return any([before.rstrip(_APART).endswith(_KINDS) for before in lowered.split("key")[:-1]])


@cache
def _key() -> re.Pattern[str]:
    """Compile the forms of ``data/keys.toml``. A key begins where its word does, so that nothing is scanned twice."""
    return re.compile("|".join([rf"(?<![A-Za-z0-9_\-])(?:{form})" for form in read_table("keys.toml").values()]))


def known_keys(text: str) -> Spans:
    """Yield keys in the forms of their issuers."""
    for word in re.finditer(_LONG_WORD, text):
        for match in _key().finditer(word[0]):
            yield word.start() + match.start(), word.start() + match.end()


def private_keys(text: str) -> Spans:
    """Yield the first line of a private key in PEM, PuTTY's or age's form."""
    yield from (match.span() for match in re.finditer(_PRIVATE, text))


def passwords_in_urls(text: str) -> Spans:
    """Yield the password of ``scheme://user:password@host``, except placeholders."""
    yield from (match.span(1) for match in re.finditer(_IN_URL, text) if not re.search(_NO_VALUE, match[1]))


def stated_secrets(text: str) -> Spans:
    """Yield values named as password, token or key, or after ``Bearer``, that mix letters and digits.

    Words, numbers and dates joined by hyphens or dots are not secrets, and neither are placeholders such as
    ``<your-token>``.
    """
    for pattern in (_STATED, _BEARER):
        for match in re.finditer(pattern, text):
            value = match[1].rstrip(_ENDS)
            if _by_chance(value):
                yield match.start(1), match.start(1) + len(value)


def entropy(text: str) -> float:
    """Return Shannon's entropy of the characters, in bits for each; 0 for an empty text."""
    counts = Counter(text).values()
    return -sum(count / len(text) * log2(count / len(text)) for count in counts)


def _by_chance(value: str) -> bool:
    if len(value) < _SHORT or not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
        return False
    return not re.search(_NO_VALUE, value) and not re.fullmatch(_WORDS, value) and entropy(value) >= LEAST_ENTROPY
