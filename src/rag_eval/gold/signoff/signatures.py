"""SSH signatures of sign-off records, made and checked by ssh-keygen, with files, a clock and a process.

A signature is checked at the current time, never at the date that the record gives. So a key that has expired, or was
removed from the list, signs nothing any more.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import trust_no_program_here
from rag_eval.errors import InputError, Problem, RagEvalError
from rag_eval.gold.signoff.identity import Proof
from rag_eval.readers.signoff_record import NAMESPACE, PATTERNS, Record, matches

if TYPE_CHECKING:
    from rag_eval.gold.signoff.identity import SignoffPolicy

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


_INSTALL = "Install OpenSSH and put it on the PATH, on Debian: apt-get install openssh-client"
_GENERAL = "'Could not verify signature.'"
_OTHER = "it is not by a key that the base branch lists for the signer, or not for this text"
_A_DAY = 86_400.0
_KEY = "Name the file of your key: --key ~/.ssh/id_ed25519"


def allowed_signers(data: bytes, file: str) -> frozenset[str]:
    """Return the principals of an allowed-signers file from its bytes; raise :class:`InputError` with every problem."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError([Problem(file, 0, "", "is not UTF-8 text", f"Write lines like: {EXAMPLE}")]) from None
    signers: set[str] = set()
    problems, owners = [], dict[str, tuple[str, int]]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(" \t\r") or line.lstrip(" \t").startswith("#"):
            continue
        principal, wrong = _read(line.removesuffix("\r").strip(" \t"), number, owners)
        signers.add(principal)
        problems += [Problem(file, number, "", *wrong)] if wrong else []
    if not signers:
        problems = [Problem(file, 0, "", "lists no signers", f"Write lines like: {EXAMPLE}")]
    if problems:
        raise InputError(problems[:100], max(0, len(problems) - 100))
    return frozenset(signers)


def _read(line: str, number: int, owners: dict[str, tuple[str, int]]) -> tuple[str, tuple[str, str] | None]:
    """Return the principal of a line and the problem of the line; ``owners`` remembers the line of each key."""
    words = _LINE.match(line)
    if words is None or _CONTROL.search(line):
        return "", ("not a valid line of an allowed-signers file", f"Write it like: {EXAMPLE}")
    principal, *rest = words.groups()
    options, kind, key = (None, *rest[:2]) if rest[0] in KEY_TYPES else rest
    if not matches(PATTERNS["signer"], principal):
        hint = "Give every signer a line of its own: no wildcard, no '!', no comma, no quotes."
        return principal, (f"{quoted(principal)} is not one e-mail address", hint)
    if wrong := _wrong_options(options) or _wrong_key(kind, key):
        return principal, wrong
    owner, first = owners.setdefault(f"{kind} {key}", (principal, number))
    if first == number:
        return principal, None
    if owner == principal:
        return principal, (f"the same key is already on line {first}", "Remove one of the lines.")
    hint = "A key belongs to one person: give each their own."
    return principal, (f"the key also belongs to {quoted(owner)} on line {first}", hint)


def _wrong_options(options: str | None) -> tuple[str, str] | None:
    needed = f'Write namespaces="{NAMESPACE}" after the address.'
    if options is None:
        return "'namespaces' is missing, so the key could sign for any purpose", needed
    if not _OPTIONS.fullmatch(options):
        return f"{quoted(options)} is not a list of options, or the key type is unknown", f"Like: {EXAMPLE}"
    given = [(name.lower(), value) for name, value in _OPTION.findall(options)]
    wrong: list[tuple[str, str]] = []
    for name, value in given:
        if name == "cert-authority":
            wrong.append(("'cert-authority' lets an authority name signers", "Name each signer's own key."))
        elif name in ("valid-after", "valid-before"):
            hint = 'Write it like valid-before="20271231Z".'
            wrong += [] if _TIME.fullmatch(value) else [(f"{name!r} is {quoted(value)}, not a time", hint)]
        elif name != "namespaces":
            wrong.append((f"{quoted(name)} is not a known option", "Remove it."))
        elif NAMESPACE not in value.split(",") or any(mark in value for mark in "*?!"):
            hint = f'Write it without a wildcard: namespaces="{NAMESPACE}"'
            wrong.append((f"'namespaces' is {quoted(value)}, not that of rag-eval", hint))
    names = [name for name, _ in given]
    if len(set(names)) < len(names):
        wrong.append(("an option is repeated", "Write each option once."))
    if "namespaces" not in names:
        wrong.append(("'namespaces' is missing", needed))
    return wrong[0] if wrong else None


def _wrong_key(kind: str | None, key: str | None) -> tuple[str, str] | None:
    if kind not in KEY_TYPES:
        return f"{quoted(kind or '')} is not a known key type", f"Use one of: {', '.join(KEY_TYPES)}."
    try:
        blob = base64.b64decode(key or "", validate=True)
    except (binascii.Error, ValueError):
        blob = b""
    parts, start = [], 0  # the type first, each with its length in four bytes before it
    while start < len(blob):
        end = start + 4 + int.from_bytes(blob[start : start + 4], "big")
        parts.append(blob[start + 4 : end])
        start = end
    if start == len(blob) and len(parts) > 1 and parts[0] == kind.encode():
        return None
    return f"the key is not a valid {kind} key", "Copy the whole second word of the .pub file."


class SignatureError(RagEvalError):
    """A signature that cannot be made or checked here; the message ends with the fix."""


def proof(new_records: Mapping[str, Record], policy: SignoffPolicy, allowed: bytes | None, now: float) -> Proof:
    """Return the evidence in the records at ``now`` in seconds since 1970, without approvals and authors.

    ``new_records`` are by path, ``allowed`` the bytes of the policy's allowed-signers file on the base, None if it is
    missing. InputError is raised if that file is missing or has problems, SignatureError if ssh-keygen cannot be run.
    Only the level ``signature`` needs either.
    """
    latest = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + _A_DAY))
    if policy.require != "signature":
        return Proof(latest=latest)
    if allowed is None:
        hint = "Merge it first, or correct 'allowed_signers'. The file of the base branch applies."
        raise InputError([Problem(policy.allowed_signers, 0, "", "is not on the base branch", hint)])
    principals = allowed_signers(allowed, policy.allowed_signers)
    asked = {path: record for path, record in new_records.items() if record.signer in principals}
    return Proof(principals, {path: verify(record, allowed, now) for path, record in asked.items()}, latest)


def sign(record: Record, key: str) -> Record:
    """Sign ``record`` with ``key``, the file of a private key, or of a public key that an agent can use.

    ssh-keygen may ask for a passphrase at the terminal. Raises SignatureError if it does not sign.
    """
    with _folder() as folder:
        message = folder / "record"
        message.write_bytes(record.text.encode())
        # From a file: with the text at its stdin ssh-keygen could not ask for a passphrase.
        done = _keygen("sign", "-n", NAMESPACE, "-f", key, str(message))
        made = folder / "record.sig"
        if done.returncode or not made.exists():
            raise SignatureError(f"ssh-keygen cannot sign with {quoted(key)}: {_output_of(done, folder)}. {_KEY}")
        return record._replace(sig=made.read_text("ascii"))


def verify(record: Record, allowed: bytes, now: float) -> str | None:
    """Return why the signature of ``record`` is invalid, None if it is valid.

    It must be the signer's, by a key that the allowed-signers file ``allowed`` gives them at ``now``, in seconds since
    1970. Times without a zone in that file are read as UTC. Raises SignatureError if ssh-keygen cannot be run.
    """
    if not record.sig:
        return "it has none"
    with _folder() as folder:
        signers, signature = folder / "allowed", folder / "sig"
        signers.write_bytes(allowed)
        signature.write_bytes(record.sig.encode("utf-8", "replace"))
        at = f"-Overify-time={time.strftime('%Y%m%d%H%M%S', time.gmtime(now))}"
        files = ("-f", str(signers), "-I", record.signer, "-n", NAMESPACE, "-s", str(signature))
        done = _keygen("verify", *files, at, data=record.text.encode())
        output = _output_of(done, folder)
        return (_OTHER if output == _GENERAL else f"ssh-keygen reports: {output}") if done.returncode else None


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield a temporary folder that only this user can read."""
    try:
        made = TemporaryDirectory(prefix="rag-eval-")
    except OSError as error:
        why = f"A temporary folder for the signature cannot be created ({error.strerror})"
        raise SignatureError(f"{why}. Set TMPDIR to a folder that you can write to.") from None
    with made as name:
        yield Path(name)


def _keygen(verb: str, *words: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    trust_no_program_here()
    try:
        return subprocess.run(  # noqa: S603 - a list, no shell; each value follows its option
            ["ssh-keygen", "-Y", verb, *words],  # noqa: S607 - the ssh-keygen of the PATH is the user's own
            env=os.environ | {"LC_ALL": "C", "TZ": "UTC"},
            input=data,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise SignatureError(f"ssh-keygen cannot be run ({error.strerror}). {_INSTALL}") from None


def _output_of(done: subprocess.CompletedProcess[bytes], folder: Path) -> str:
    """Return the first line with content, without the name of the temporary folder."""
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").replace(f"{folder}{os.sep}", "").splitlines()
    first = next((line for line in lines if any(letter.isalpha() for letter in line)), "nothing")
    return quoted(one_line(first, 200), 200)
