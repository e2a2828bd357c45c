"""What sign-off asks for, what that proves, and how it is said that something is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LEVELS = ("record", "review", "signature")


class Policy(NamedTuple):
    """What is to be signed off, by whom, and where it is recorded; paths are relative to the root of the repository.

    ``require`` is one of ``LEVELS``. ``signers`` gives the GitHub account of each signer by e-mail address; where it
    names anybody, nobody else signs. ``allowed_signers`` is the path of the file with the signers' keys, if any.
    ``stated`` says whether a gates file asks for all this, ``was`` is the path of the gold on the base where the change
    moves it; they are no settings.
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

    def held_to(self, base: Policy) -> Policy:
        """The same gold and records under the rules of ``base`` for who signs: a new place brings no new rules."""
        rules = {name: getattr(base, name) for name in ("require", "four_eyes", "allowed_signers", "signers")}
        return self._replace(**rules)


SETTINGS = frozenset(Policy._fields) - {"stated", "was"}


class Violation(NamedTuple):
    """A breach of the sign-off rules: a stable code, where, what, and the command that fixes it.

    Where no command does, ``fix`` is a comment of the shell that says what to do.
    """

    code: str
    file: str
    line: int
    message: str
    fix: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: [{self.code}] {self.message}"


class Advice(NamedTuple):
    """What the findings tell people to run: the sign-off, and the commit that records are restored from."""

    sign: str = "rag-eval gold signoff --reason '…'"
    restore: str = "HEAD"


PLAIN = Advice()


def proves(policy: Policy) -> str:
    """What a sign-off under ``policy`` proves of who stands behind it, and what it does not: for people to read."""
    return _PROVES[policy.require] + (_FOUR_EYES if policy.four_eyes else "")


_PROVES = {
    "record": "A record proves nobody's identity: whoever can commit can write one in any name.",
    "review": "The approving review proves the account of a signer; the records by themselves prove nobody's identity.",
    "signature": "Each new record is signed with a key that the base allows its signer.",
}
_FOUR_EYES = " Signers and authors are different accounts; authors are those that the commits name."
