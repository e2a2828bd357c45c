"""Detectors of secrets in answers: keys, private keys, passwords in URLs and commands, and values called a secret.

The time is linear in the length of the text, as in :mod:`rag_eval.textual.detectors`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from math import log2

from rag_eval.textual import read_table
from rag_eval.textual.tokens import holds_any

Spans = Iterator[tuple[int, int]]

_SHORTEST, _SHORT = 20, 8
_SIGNS = bytes(0x78 if 0x21 <= byte <= 0x7E else 0x20 for byte in range(256))
"""All that a word of ASCII is made of as x, of a text's bytes."""
_HEX_KEY = r"(?i)(?:^|[\s\"'`(])([a-z]*)[ _\-]?key(?: is|:|=)?[\s\"'`*(]{0,3}$"
"""What is before a hexadecimal key: *the OpenWeather key is*."""
_NO_SECRET = frozenset("primary foreign cache sort partition public object hash row record document index map".split())
"""Keys that open nothing. Those of ``_KEY_KINDS`` are stated secrets."""
_DIGITS = r"[0-9a-f]{32,128}"
_LONG_WORD = rf"[!-~]{{{_SHORTEST},}}"
_PRIVATE = (
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?!\s{0,4}(?:\.{3}|…|[<\[][^<>\[\]]{1,60}[>\]])\s{0,4}-----END)|PuTTY-User-Key-File-[23]|AGE-SECRET-KEY-1"
)
"""The first line of a key with something else than dots or a placeholder behind it."""
_PLACEHOLDER = r"(?i)x{8}|[_\-]your[_\-]|placeholder|redacted"
_EXAMPLE = (
    r"(?i)(?<![\w@.])(?:examples?|e\.g\.|such as|test(?:s|ing)?|samples?|dummy|placeholder|fake|demo|fictional"
    r"|document(?:ation|ed)|docs|z\. ?b\.|(?:beispiel|muster|voorbeeld|przykład|пример)\w*|ejemplos?|prueba"
    r"|exemples?|esempi?o?|exemplos?|örnek)(?!\w)"
    r"|例|サンプル|テスト|测试|測試|예시|예를|테스트"
)
"""Words that call a value an example."""
_NEAR = 100  # characters before and after a value
_IN_URL = r"(?<=://)[^\s:@/]{0,64}:([^\s:@/]{3,128})@"
_IN_QUERY = (
    r"(?i)(?<=[?&;])(?:app_?id|(?:api|access|subscription)?[_\-]?key|(?:access_|auth_)?token|auth"
    r"|(?:client_)?secret|pass(?:word)?|pwd)=([A-Za-z0-9._~%+\-]{16,200})"
)

IS = (
    r"(?:(?:is|was|has been)(?: now| still| currently)?(?: (?:re)?set to| changed to)?|set to|ist|lautet|est|es|è|é|to"
    r"|jest|は|是)"
)
"""What joins a name and its value."""
_KEY_KINDS = (
    "api access secret private account auth app application admin master encryption signing subscription session "
    "client consumer service webhook server deploy deployment license licence hmac storage shared bot integration "
    "ingestion"
)
_NAMES = (
    r"(?:pass(?:word|wd|phrase|code|wort)|kennwort|mot de passe|contrase[ñn]a|senha|wachtwoord|hasło|şifre"
    r"|пароль|密码|密碼|パスワード|비밀번호|pwd|secret|token|credentials?|(?<=[_\-])pass"
    rf"|(?:{_KEY_KINDS.replace(' ', '|')}|global api)[_ \-]?key"
    r"|(?:api|zugangs)[ -]?schlüssel|(?:clé|clave|chiave|chave) api|ключ (?:api|доступа)|密钥|密鑰|api ?(?:キー|키))"
)
_FOR = (
    r"(?: (?:for|of|in|on|to|at|from|für|der|des|im|pour|du|de|del|della|do|da|van|para|per|dla|для)"
    r"(?: [\w.'’-]{1,24}){1,4}?)?"
)
"""What a secret is for: *for the web shop*."""
_STATED = (
    rf"(?i){_NAMES}(?:_(?:base|prod|live|value)\b)?"
    rf"(?:(?:[\"'`*]{{0,3}}\s{{0,3}}(?:[:=：]|:=|=>|(?<!\w){IS}(?!\w):?|[是は은는])\s{{0,3}}[\"'`*]{{0,3}}|\s[\"'`]"
    rf"|{_FOR} {IS}(?!\w):?\s[\"'`*]{{0,3}})([!#-&(-_a-~]{{8,200}})"
    r"|s?\s([A-Za-z0-9+/_\-]{24,200})(?![\w.])"
    r"|\s((?=[A-Za-z0-9]{1,40}[!#$%&*^~][A-Za-z0-9])[!#-&(-_a-~]{8,60}|[A-Za-z]{8,40}(?![\w\-]|\.\w)))"
)
"""The name of a secret and its value, which may be right behind the name if it is long, random or has a sign in it."""
_BEARER = r"(?i)(?<!\w)(?:bearer|basic)\s{1,3}([A-Za-z0-9._~+/\-]{20,2000}=*)"
_CUES = (
    *"pass kennwort contrase senha wachtwoord hasło şifre пароль 密码 密碼 パスワード 비밀번호 pwd secret".split(),
    *"token credential bearer basic schlüssel 密钥 密鑰 ключ apiキ api키".split(),
    *("ve api", "clé api"),  # clave, chiave, chave
)
_KINDS = tuple(_KEY_KINDS.split())
_ENDS = "\"'`*.,;:)]}>"
_NO_VALUE = (
    r"(?i)[<{\[(]|^[$*]|\*{3}|^%.*%$|x{4}|\.{3}|your|example|placeholder|changeme|redacted|://|^/"
    r"|^(?:pass(?:word|wd)?|pwd|secret|token)\d{0,4}$"
)
_WORDS = r"(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)(?:[\-_./:,](?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)){0,99}"
_CAMEL = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])"
_NO_WORD = r"(?i).$|[^aeiou]+$|(?!s|[cpt]h)[^aeiou]{3}"  # the beginning of a part that is no word
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
LEAST_ENTROPY = 2.5
"""Bits a character: six that all differ have a little more, eight that all differ have three."""

_OPTION = (
    r"(?<!\S)(?:--(?:password|passwd|pass|requirepass|auth-token)[ =]"
    r"|(?:-u|-a|--user|--proxy-user|--auth)[ =]?[\"']?[^\s:\"'/]{1,64}:|(-[pPawW]) ?)[\"']?([^\s\"']{6,100})"
)
_OPTIONS = (" -u", " -p", " -P", " -a", " -w", " -W", " --")
_COMMANDS = {
    "-p": r"(?:mysql\w*|mariadb[\w-]*|sshpass|(?:docker|podman|registry|oc|az|nerdctl) login)\b[^\n|;]*$",
    "-P": r"(?:sqlcmd|bcp|mosquitto_\w+|unzip|zip)\b[^\n|;]*$",
    "-a": r"redis-cli\b[^\n|;]*$",
    "-w": r"ldap\w+\b[^\n|;]*$",
    "-W": r"(?:svn|asadmin|curl)\b[^\n|;]*$",
}
"""The commands whose options of one letter take a password."""
_BEFORE_KEY = 30  # characters before a hexadecimal key that are read
_COMMAND = 200  # characters before an option in which its command is
_DATABASE = r"(?:mysql|mariadb)"  # with a space behind -p, they ask for the password, and the next word is a database


def with_long_word(text: str) -> bool:
    """Return whether a text may have a key: a sufficiently long word."""
    return b"x" * _SHORTEST in text.encode(errors="replace").translate(_SIGNS)


def with_secret_name(text: str) -> bool:
    """Return whether a text names a secret of some kind, and has a word that may be one."""
    lowered = text.lower()
    # "key" alone is in every other answer; a key of a known kind is an API key, an access key, …
    if not holds_any(_CUES, lowered) and not any(
        [before.rstrip(" _-").endswith(_KINDS) for before in lowered.split("key")[:-1]]
    ):
        return False
    long = [word for word in text.split() if len(word) >= _SHORT]
    return any([_INNER_CAPITAL.search(word) or any(map(str.isdigit, word)) for word in long])


def with_option(text: str) -> bool:
    """Return whether a text may have a command with a password."""
    return " -" in text and holds_any(_OPTIONS, text)


@cache
def _key() -> re.Pattern[str]:
    """Compile the forms of ``data/keys.toml``. A key begins where its word does, so that nothing is scanned twice."""
    return re.compile(rf"(?<![A-Za-z0-9_\-])(?:{'|'.join(read_table('keys.toml').values())})")


def known_keys(text: str) -> Spans:
    """Yield keys in the forms of their issuers, and hexadecimal digits after *key*, except placeholders."""
    for word in re.finditer(_LONG_WORD, text):
        if digits := re.search(_DIGITS, word[0]):
            start, end = word.start() + digits.start(), word.start() + digits.end()
            named = re.search(_HEX_KEY, text[max(0, start - _BEFORE_KEY) : start])
            if named and named[1].lower() not in (*_NO_SECRET, *_KINDS) and _by_chance(digits[0]):
                yield start, end
                continue
        for match in _key().finditer(word[0]):
            start, end = word.start() + match.start(), word.start() + match.end()
            is_example = "EXAMPLE" in match[0] and is_called_example(text, start, end)
            if not is_example and not re.search(_PLACEHOLDER, match[0]):
                yield start, end


def is_called_example(text: str, start: int, end: int) -> bool:
    """Return whether the words around a value call it an example or a test."""
    around = f"{text[max(0, start - _NEAR) : start]} {text[end : end + _NEAR]}"
    return re.search(_EXAMPLE, around) is not None


def private_keys(text: str) -> Spans:
    """Yield the first line of a private key in PEM, PuTTY's or age's form."""
    yield from (match.span() for match in re.finditer(_PRIVATE, text))


def secrets_in_urls(text: str) -> Spans:
    """Yield the password of ``scheme://user:password@host`` and keys such as ``?appid=…``, except placeholders."""
    yield from (match.span(1) for match in re.finditer(_IN_URL, text) if not re.search(_NO_VALUE, match[1]))
    yield from (match.span(1) for match in re.finditer(_IN_QUERY, text) if _by_chance(match[1]))


def passwords_in_commands(text: str) -> Spans:
    """Yield the password in a command line: ``curl -u name:password``, ``mysql -ppassword``, ``--password=…``."""
    for match in re.finditer(_OPTION, text):
        value, is_password = match[2].rstrip(_ENDS), True
        if match[1]:
            command = re.search(_COMMANDS[match[1]], text[max(0, match.start() - _COMMAND) : match.start()])
            is_password = bool(command and (match.start(2) == match.end(1) or not re.match(_DATABASE, command[0])))
        if is_password and _is_password(value):
            yield match.start(2), match.start(2) + len(value)


def stated_secrets(text: str) -> Spans:
    """Yield values named as password, token or key, or after ``Bearer``, that mix letters and digits or are random.

    Words, numbers and dates joined by hyphens or dots are not secrets, and neither are placeholders such as
    ``<your-token>``.
    """
    reached = 0
    matches = [match for pattern in (_STATED, _BEARER) for match in re.finditer(pattern, text)]
    for start, end in sorted([match.span(match.lastindex or 0) for match in matches]):
        value = text[start:end].rstrip(_ENDS)
        if start >= reached and (_by_chance(value) or _is_random_word(value)):
            reached = start + len(value)
            yield start, reached


def _by_chance(value: str) -> bool:
    """Return whether a value mixes letters and digits as chance does, by Shannon's entropy of its characters."""
    if len(value) < _SHORT or not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):
        return False
    shares = [count / len(value) for count in Counter(value).values()]
    entropy = -sum(share * log2(share) for share in shares)
    return not re.search(_NO_VALUE, value) and not re.fullmatch(_WORDS, value) and entropy >= LEAST_ENTROPY


def _is_random_word(value: str) -> bool:
    """Return whether letters change case as chance does: half of the parts of a camel-case name are no words."""
    parts = re.findall(_CAMEL, value) if len(value) >= _SHORT and value.isascii() and value.isalpha() else []
    odd = sum(re.match(_NO_WORD, part) is not None for part in parts)
    return len(parts) > 2 and 2 * odd >= len(parts) and not re.search(_NO_VALUE, value)


def _is_password(value: str) -> bool:
    """Return whether the value of an option is a password instead of a placeholder, a path or a number."""
    is_mixed = any(map(str.isalpha, value)) and not value.isalpha()
    return is_mixed and not re.search(_NO_VALUE, value) and not value.startswith(("./", "~", "-"))
