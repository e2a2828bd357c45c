"""Requirements of sign-off, what they prove, and the messages for violations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LEVELS = ("record", "review", "signature")


class SignoffPolicy(NamedTuple):
    """The sign-off policy: files, signers and records; paths are relative to the repository's root.

    ``require`` is one of ``LEVELS``. ``signers`` gives the GitHub account of each signer by e-mail address; if it is
    not empty, nobody else may sign. ``allowed_signers`` is the path of the file with the signers' keys, if any. The
    others are no settings: ``stated`` is true if a gates file has a sign-off policy, ``was`` is the path of the gold on
    the base if the change moves it.
    """

    dataset: str = "default"
    gold: str = "eval/gold.jsonl"
    records: str = "eval/gold.signoff"
    require: str = "record"
    four_eyes: bool = False
    allowed_signers: str = ""
    signers: Mapping[str, str] = {}
    stated: bool = False
    was: str = ""

    def at_least_as_strict_as(self, base: SignoffPolicy) -> SignoffPolicy:
        """Return the same gold and records under the signing rules of ``base``: moving the gold brings no new rules."""
        rules = {name: getattr(base, name) for name in ("require", "four_eyes", "allowed_signers", "signers")}
        return self._replace(**rules)


SETTINGS = frozenset(SignoffPolicy._fields) - {"stated", "was"}


class Violation(NamedTuple):
    """A breach of the sign-off rules: a stable code, where, what, and the command that fixes it.

    If no command does, ``fix`` is a shell comment with advice.
    """

    code: str
    file: str
    line: int
    message: str
    fix: str

    def __str__(self) -> str:
        prefix = f"{self.file}:{self.line}" if self.line else self.file
        return f"{prefix}: [{self.code}] {self.message}"


class Advice(NamedTuple):
    """Advice in findings: the sign-off command, and the commit to restore records from."""

    sign: str = "rag-eval gold signoff --reason '…'"
    restore: str = "HEAD"


PLAIN = Advice()


def proves(policy: SignoffPolicy) -> str:
    """Describe what a sign-off under ``policy`` proves about its author, and what it does not."""
    return _PROVES[policy.require] + (_FOUR_EYES if policy.four_eyes else "")


_PROVES = {
    "record": "A record proves nobody's identity: anyone who can commit can write one in any name.",
    "review": "The approving review proves the account of a signer; the records by themselves prove nobody's identity.",
    "signature": "Each new record is signed with a key that the base branch lists for its signer.",
}
_FOUR_EYES = " Signers and authors are different accounts; authors are those that the commits name."
