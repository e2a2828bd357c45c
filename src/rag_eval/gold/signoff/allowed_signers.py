"""The allowed-signers file of OpenSSH, read more strictly than ssh-keygen does: one person a line, none by pattern.

What ssh-keygen would understand as more than one named person with one key is a problem, not a rule: wildcards, lists,
certificate authorities. So is a key that stands for two people, for then one of them can sign as both.
"""

from __future__ import annotations

import base64
import binascii
import re

from rag_eval.common.escaping import quoted
from rag_eval.errors import InputError, Problem
from rag_eval.readers.signoff_record import NAMESPACE, PATTERNS, matches

KEY_TYPES = (
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
EXAMPLE = f'bob@example.org namespaces="{NAMESPACE}" ssh-ed25519 AAAA…'
_WORD = r'(?:[^ \t"]|"[^"]*")+'
_LINE = re.compile(rf"({_WORD})(?:[ \t]+({_WORD}))?(?:[ \t]+({_WORD}))?(?:[ \t]+({_WORD}))?")
_OPTIONS = re.compile(r'[A-Za-z-]+(?:="[^"\\]*")?(?:,[A-Za-z-]+(?:="[^"\\]*")?)*')
_OPTION = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?')
_TIME = re.compile(r"[0-9]{8}(?:[0-9]{4}(?:[0-9]{2})?)?Z?")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def allowed_signers(data: bytes, file: str) -> frozenset[str]:
    """The principals of an allowed-signers file, given by its bytes. :class:`InputError` says all that is wrong."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError([Problem(file, 0, "", "not UTF-8 text", f"Write lines like: {EXAMPLE}")]) from None
    found: set[str] = set()
    problems, owners = [], dict[str, tuple[str, int]]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(" \t\r") or line.lstrip(" \t").startswith("#"):
            continue
        principal, wrong = _read(line.removesuffix("\r").strip(" \t"), number, owners)
        found.add(principal)
        problems += [Problem(file, number, "", *wrong)] if wrong else []
    if not found:
        problems = [Problem(file, 0, "", "nobody is named in it", f"Write lines like: {EXAMPLE}")]
    if problems:
        raise InputError(problems[:100], max(0, len(problems) - 100))
    return frozenset(found)


def _read(line: str, number: int, owners: dict[str, tuple[str, int]]) -> tuple[str, tuple[str, str] | None]:
    """The principal of a line and what is wrong with the line; ``owners`` remembers whose key stood where."""
    words = _LINE.match(line)
    if words is None or _CONTROL.search(line):
        return "", ("not readable as an allowed signer", f"Write it like: {EXAMPLE}")
    principal, *rest = words.groups()
    options, kind, key = (None, *rest[:2]) if rest[0] in KEY_TYPES else rest
    wrong = _wrong_principal(principal) or _wrong_options(options) or _wrong_key(kind, key)
    return principal, wrong or _repeated(principal, f"{kind} {key}", number, owners)


def _wrong_principal(principal: str) -> tuple[str, str] | None:
    if matches(PATTERNS["signer"], principal):
        return None
    hint = "Give every signer a line of its own: no wildcard, no '!', no comma, no quotes."
    return f"{quoted(principal)} is not one e-mail address", hint


def _wrong_options(options: str | None) -> tuple[str, str] | None:
    needed = f'Write namespaces="{NAMESPACE}" behind the address.'
    if options is None:
        return "'namespaces' is missing: the key would sign for anything", needed
    if not _OPTIONS.fullmatch(options):
        return f"{quoted(options)} are no options, or the type of key is none that is known", f"Like: {EXAMPLE}"
    given = [(name.lower(), value) for name, value in _OPTION.findall(options)]
    names = [name for name, _ in given]
    wrong = next((found for name, value in given if (found := _wrong_option(name, value))), None)
    if wrong is None and len(set(names)) < len(names):
        return "an option stands twice", "Say each option once."
    return wrong or (None if "namespaces" in names else ("'namespaces' is missing", needed))


def _wrong_option(name: str, value: str) -> tuple[str, str] | None:
    if name == "cert-authority":
        return "'cert-authority' lets an authority name signers", "Name each signer's own key."
    if name in ("valid-after", "valid-before"):
        hint = 'Write it like valid-before="20271231Z".'
        return None if _TIME.fullmatch(value) else (f"{name!r} is {quoted(value)}, not a time", hint)
    if name != "namespaces":
        return f"{quoted(name)} is no option that is known", "Remove it."
    spaces = value.split(",")
    if NAMESPACE in spaces and not any(mark in value for mark in "*?!"):
        return None
    return f"'namespaces' is {quoted(value)}", f'Name this one, without a wildcard: namespaces="{NAMESPACE}"'


def _wrong_key(kind: str | None, key: str | None) -> tuple[str, str] | None:
    if kind not in KEY_TYPES:
        return f"{quoted(kind or '')} is no type of key that is known", f"Use one of: {', '.join(KEY_TYPES)}."
    try:
        blob = base64.b64decode(key or "", validate=True)
    except (binascii.Error, ValueError):
        blob = b""
    if _parts(blob)[:1] == [kind.encode()]:
        return None
    return f"the key is no {kind} key", "Copy the second word of the .pub file whole."


def _parts(blob: bytes) -> list[bytes]:
    """What a key is made of, its own type first: each part has its length in four bytes in front. Empty if broken."""
    found, start = [], 0
    while start < len(blob):
        end = start + 4 + int.from_bytes(blob[start : start + 4], "big")
        found.append(blob[start + 4 : end])
        start = end
    return found if start == len(blob) and len(found) > 1 else []


def _repeated(principal: str, key: str, number: int, owners: dict[str, tuple[str, int]]) -> tuple[str, str] | None:
    owner, line = owners.setdefault(key, (principal, number))
    if line == number:
        return None
    if owner == principal:
        return f"the same key stands on line {line} already", "Remove one of the lines."
    return f"the key is that of {quoted(owner)} on line {line} too", "A key belongs to one person: give each their own."
