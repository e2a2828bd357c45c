"""SSH signatures of sign-off records, made and checked by ssh-keygen: files, a clock and a process live here.

A signature holds now or not at all: it is checked at the current time, never at the date that the record gives, so
that a key that has expired, or was taken off the list, signs nothing any more.
"""

from __future__ import annotations

import os
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
from rag_eval.gold.signoff.allowed_signers import allowed_signers
from rag_eval.gold.signoff.identity import Proof
from rag_eval.readers.signoff_record import NAMESPACE

if TYPE_CHECKING:
    from rag_eval.gold.signoff.policy import Policy
    from rag_eval.readers.signoff_record import Record

_INSTALL = "Install OpenSSH and put it on the PATH, on Debian: apt-get install openssh-client"
_GENERAL = "'Could not verify signature.'"
_OTHER = "no key that the base allows the signer made it for this text"
_A_DAY = 86_400.0
_KEY = "Name the file of your key: --key ~/.ssh/id_ed25519"


class SignatureError(RagEvalError):
    """Nothing can be signed or checked here; the message ends in what to do."""


def proof(fresh: Mapping[str, Record], policy: Policy, allowed: bytes | None, now: float) -> Proof:
    """What the records themselves prove, at ``now`` in seconds since 1970; who approved and who wrote is not in it.

    ``fresh`` are the new records by path, ``allowed`` the bytes of the policy's allowed-signers file as it is on the
    base, None where it is not there. Raises InputError where that file is missing or has problems, SignatureError where
    ssh-keygen cannot be run; only level ``signature`` asks for either.
    """
    latest = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + _A_DAY))
    if policy.require != "signature":
        return Proof(latest=latest)
    if allowed is None:
        hint = "Merge it first, or correct 'allowed_signers': the base's file decides."
        raise InputError([Problem(policy.allowed_signers, 0, "", "not on the base", hint)])
    principals = allowed_signers(allowed, policy.allowed_signers)
    asked = {path: record for path, record in fresh.items() if record.signer in principals}
    return Proof(principals, {path: verify(record, allowed, now) for path, record in asked.items()}, latest)


def sign(record: Record, key: str) -> Record:
    """``record`` with the signature of ``key``, the file of a private key, or of a public one whose agent is at hand.

    ssh-keygen may ask for a passphrase at the terminal. Raises SignatureError where it does not sign.
    """
    with _folder() as folder:
        message = folder / "record"
        message.write_bytes(record.text.encode())
        # From a file: with the text at its stdin ssh-keygen could not ask for a passphrase.
        done = _keygen("sign", "-n", NAMESPACE, "-f", key, str(message))
        made = folder / "record.sig"
        if done.returncode or not made.exists():
            raise SignatureError(f"ssh-keygen does not sign with {quoted(key)}: {_said(done, folder)}. {_KEY}")
        return record._replace(sig=made.read_text("ascii"))


def verify(record: Record, allowed: bytes, now: float | None = None) -> str | None:
    """Why the signature of ``record`` does not hold, None when it holds.

    It has to be the signer's, by a key that the allowed-signers file ``allowed`` gives them at ``now``, in seconds
    since 1970 (None: by the clock of ssh-keygen). Times without a zone in that file are read as UTC. Raises
    SignatureError where ssh-keygen cannot be run.
    """
    if not record.sig:
        return "it has none"
    with _folder() as folder:
        signers, signature = folder / "allowed", folder / "sig"
        signers.write_bytes(allowed)
        signature.write_bytes(record.sig.encode("utf-8", "replace"))
        at = () if now is None else (f"-Overify-time={time.strftime('%Y%m%d%H%M%S', time.gmtime(now))}",)
        files = ("-f", str(signers), "-I", record.signer, "-n", NAMESPACE, "-s", str(signature))
        done = _keygen("verify", *files, *at, data=record.text.encode())
        said = _said(done, folder)
        return (_OTHER if said == _GENERAL else f"ssh-keygen says {said}") if done.returncode else None


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that only this user can look into, gone afterwards."""
    try:
        made = TemporaryDirectory(prefix="rag-eval-")
    except OSError as error:
        why = f"A signature needs a folder for a moment, and none can be made ({error.strerror})"
        raise SignatureError(f"{why}. Let TMPDIR name one that can be written to.") from None
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


def _said(done: subprocess.CompletedProcess[bytes], folder: Path) -> str:
    """The first line that says something, with no name of a folder that is gone when it is read."""
    lines = (done.stderr + done.stdout).decode("utf-8", "replace").replace(f"{folder}{os.sep}", "").splitlines()
    first = next((line for line in lines if any(letter.isalpha() for letter in line)), "nothing")
    return quoted(one_line(first, 200), 200)
