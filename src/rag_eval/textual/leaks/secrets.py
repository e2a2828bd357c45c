"""Secrets: keys in their issuers' formats, private keys, passwords in URLs, and what a text calls a secret."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log2

from rag_eval.textual.leaks.prefilter import among
from rag_eval.textual.tokens import holds_any

Spans = Iterator[tuple[int, int]]

_WORD = r"A-Za-z0-9_\-"
FORMATS = {
    "AWS access key id": r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
    "Anthropic": rf"sk-ant-[{_WORD}]{{20,}}",
    "Azure Storage": r"AccountKey=[A-Za-z0-9+/]{86}==",
    "Azure SAS": r"sig=[A-Za-z0-9%+/]{40,}(?:=|%3[Dd])?",
    "Databricks": r"dapi[0-9a-f]{32}(?:-[0-9])?",
    "DigitalOcean": r"do[opr]_v1_[0-9a-f]{64}",
    "Discord": rf"[MNO][{_WORD}]{{23,25}}\.[{_WORD}]{{6}}\.[{_WORD}]{{27,}}",
    "Docker Hub": rf"dckr_(?:pat|oat)_[{_WORD}]{{20,}}",
    "GitHub": r"gh[pousr]_[A-Za-z0-9_]{36,}",
    "GitHub, fine-grained": r"github_pat_[A-Za-z0-9_]{50,}",
    "GitLab": rf"(?:gl(?:pat|dt|ft|soat|rt|imt|ptt|agent|cbt|ffct)-|gloas-|GR1348941)[{_WORD}]{{20,}}",
    "Google": rf"AIza[{_WORD}]{{35}}",
    "Google OAuth": rf"(?:GOCSPX-[{_WORD}]{{20,}}|ya29\.[{_WORD}]{{30,}})",
    "Grafana": r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}",
    "HashiCorp Vault": rf"hv[sbr]\.[{_WORD}]{{24,}}",
    "Hugging Face": r"hf_[A-Za-z0-9]{30,}",
    "JSON Web Token": rf"eyJ[{_WORD}]{{10,}}\.eyJ[{_WORD}]{{10,}}\.[{_WORD}]{{16,}}",
    "Mailchimp": r"[0-9a-z]{32}-us[0-9]{1,2}(?![0-9a-z])",
    "npm": r"npm_[A-Za-z0-9]{36}",
    "OpenAI": rf"sk-(?:(?:proj|svcacct|admin|None)-[{_WORD}]{{20,}}|[A-Za-z0-9]{{20,}})",
    "OpenAI, with its mark": rf"sk-[{_WORD}]*T3BlbkFJ[{_WORD}]{{20,}}",
    "PyPI": rf"pypi-Ag[{_WORD}]{{70,}}",
    "SendGrid": rf"SG\.[{_WORD}]{{22}}\.[{_WORD}]{{43}}",
    "Shopify": r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}",
    "Slack": r"(?i:xox[abeoprs])-[0-9]+-[A-Za-z0-9\-]{6,}",
    "Slack webhook": r"(?i:hooks\.slack\.com/services)/T[A-Za-z0-9_]+/B[A-Za-z0-9_]+/[A-Za-z0-9_]+",
    "Square": r"sq0(?:csp|atp|idp)-[A-Za-z0-9_\\\-]{22,}",
    "Stripe": r"(?:[rs]k|whsec)_(?:live_|test_)?[A-Za-z0-9]{24,}",
    "Telegram": rf"[0-9]{{8,10}}:[{_WORD}]{{35}}(?![{_WORD}])",
    "Twilio": r"(?:AC|SK)[0-9a-f]{32}(?![0-9a-z])",
}
"""The forms in which keys are issued, by issuer. All are at least twenty characters of one word."""

# A key begins where its word does: so nothing is scanned twice.
# Compiled at first use, by re itself: most runs need few of them.
_STARTS = "|".join(rf"(?<![{_WORD}])(?:{form})" for form in FORMATS.values())
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
"""Which keys are meant, besides *secret* ones, and what parts the words: *key* alone stands in every other answer."""
_ENDS = "\"'`*.,;:)]}>"
_NO_VALUE = (
    r"(?i)[<{$\[(*]|^%.*%$|x{4}|\.{3}|your|example|placeholder|changeme|redacted|://|^/"
    r"|^(?:pass(?:word|wd)?|pwd|secret|token)\d{0,4}$"
)
_WORDS = r"(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)(?:[\-_./:,](?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)){0,99}"
LEAST_ENTROPY = 2.5
"""Bits a character: six that all differ have a little more, eight that all differ have three."""


@among
def with_long_word(text: str) -> bool:
    """The places of texts that may hold a key: one word of so many characters."""
    return b"x" * _SHORTEST in text.encode(errors="replace").translate(_SIGNS)


@among
def with_key(text: str) -> bool:
    """The places of texts that may hold a private key."""
    return "KEY" in text or "PuTTY" in text


@among
def with_address(text: str) -> bool:
    """The places of texts that may hold a URL."""
    return "://" in text


def announcing(texts: Sequence[str]) -> list[int]:
    """The places of texts that name a secret of some kind, and have a word that may be one."""
    whole = "\n".join(texts).lower()
    cues = [*[cue for cue in _CUES if cue in whole], *_keys(whole)]
    named = [at for at, text in enumerate(texts) if holds_any(cues, text.lower())] if cues else []
    return [at for at in named if _has_mixed_word(texts[at])]


def _keys(lowered: str) -> set[str]:
    """What keys are called in a text, of those that are meant."""
    found = set()
    for before in lowered.split("key")[:-1]:
        bare = before.rstrip(_APART)
        if bare.endswith(_KINDS):
            found.update([f"{kind}{before[len(bare) :]}key" for kind in _KINDS if bare.endswith(kind)])
    return found


def _has_mixed_word(text: str) -> bool:
    """Whether a word is as long as a secret, with a figure in it."""
    long = [word for word in text.split() if len(word) >= _SHORT and not word.isalpha()]  # letters alone: most of them
    return any([any(map(str.isdigit, word)) for word in long])


def known_keys(text: str) -> Spans:
    """Keys of :data:`FORMATS`."""
    for word in re.finditer(_LONG_WORD, text):
        for found in re.finditer(_STARTS, word[0]):
            yield word.start() + found.start(), word.start() + found.end()


def private_keys(text: str) -> Spans:
    """The first line of a private key in PEM, PuTTY's or age's form."""
    yield from (found.span() for found in re.finditer(_PRIVATE, text))


def passwords_in_urls(text: str) -> Spans:
    """The password of ``scheme://user:password@host``, unless it stands for one."""
    yield from (found.span(1) for found in re.finditer(_IN_URL, text) if not re.search(_NO_VALUE, found[1]))


def stated_secrets(text: str) -> Spans:
    """What a text calls a password, token or key, and what follows ``Bearer``: of letters and digits by chance.

    Words, numbers and dates joined by hyphens, dots and the like are none, nor is what stands for a value, as in
    ``<your-token>``.
    """
    for pattern in (_STATED, _BEARER):
        for found in re.finditer(pattern, text):
            value = found[1].rstrip(_ENDS)
            if _by_chance(value):
                yield found.start(1), found.start(1) + len(value)


def entropy(text: str) -> float:
    """Shannon's entropy of the characters, in bits a character; 0 for no text."""
    counts = Counter(text).values()
    return -sum(count / len(text) * log2(count / len(text)) for count in counts)


def _by_chance(value: str) -> bool:
    if len(value) < _SHORT or not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
        return False
    return not re.search(_NO_VALUE, value) and not re.fullmatch(_WORDS, value) and entropy(value) >= LEAST_ENTROPY
