"""Sign-off policies, the keys of signers, and the identities behind a change: which records count, who approved.

All functions are pure: the results of ssh-keygen and GitHub are passed in as a :class:`Proof`. Accounts are compared
without regard to case, as GitHub does.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.errors import InputError, Problem
from rag_eval.git.snapshots import path_inside
from rag_eval.readers.signoff_record import NAMESPACE, is_valid_field, matches
from rag_eval.readers.source import MIB, YAML_MIB

if TYPE_CHECKING:
    from rag_eval.readers.signoff_record import Record

LEVELS = ("record", "review", "signature")
_PROVES = {
    "record": "A record proves nobody's identity: anyone who can commit can write one in any name.",
    "review": "The approving review proves the account of a signer; the records by themselves prove nobody's identity.",
    "signature": "Each new record is signed with a key that the base branch lists for its signer.",
}
_FOUR_EYES = " Signers and authors are different accounts; authors are those that the commits name."
_NOREPLY = re.compile(
    r"(?:[0-9]+\+)?([A-Za-z0-9][A-Za-z0-9_-]*(?:\[bot\])?)@users\.noreply\.github\.com", re.IGNORECASE
)
LOGIN = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})"
"""An account of GitHub. Bots are none: what is in brackets signs nothing."""

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

_KINDS: dict[str, tuple[type, str, str]] = {
    "four_eyes": (bool, "true or false", "Write true or false, without quotes."),
    "signers": (dict, "a mapping", "Write each signer as: bob@example.org: {github: bob}"),
}
_NEEDS: tuple[tuple[str, str | bool, str, str], ...] = (
    ("require", "signature", "allowed_signers", "name the file with their keys: allowed_signers: PATH"),
    ("require", "review", "signers", "name them: signers: {bob@example.org: {github: bob}}"),
    ("four_eyes", True, "signers", "name them: signers: {bob@example.org: {github: bob}}"),
)


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

    def for_gold(self, gold: str | None) -> SignoffPolicy:
        """Return the policy for a gold set that the caller named, with its default records; unchanged without one."""
        if gold is None or gold == self.gold:
            return self
        return self._replace(gold=gold, records=default_records(gold))

    def at_least_as_strict_as(self, base: SignoffPolicy) -> SignoffPolicy:
        """Return the same gold and records under the signing rules of ``base``: moving the gold brings no new rules."""
        rules = {name: getattr(base, name) for name in ("require", "four_eyes", "allowed_signers", "signers")}
        return self._replace(**rules)


SETTINGS = frozenset(SignoffPolicy._fields) - {"stated", "was"}


def signoff_policy(data: bytes, file: str) -> SignoffPolicy:
    """Read the policy from the bytes of the gates file ``file``; without a ``signoff`` section, return the defaults.

    The gold file is ``signoff.gold``, otherwise the file's own ``gold``, otherwise eval/gold.jsonl. The records are in
    a folder next to it with its name and the extension ``.signoff``. Paths are relative to the folder of the gates
    file. :class:`InputError` lists unreadable keys, and those that this version cannot check.
    """
    from rag_eval.readers import strict_json, yaml_file

    if len(data) > YAML_MIB * MIB:
        raise _problem(file, f"larger than {YAML_MIB} MiB", "A gates file is short: check the path.")
    try:
        document = yaml_file.parse(strict_json.decode(data))
    except yaml_file.YamlError as error:
        raise InputError([Problem(file, error.line, f"column {error.column}", error.message, error.hint)]) from None
    except strict_json.JsonError as error:
        raise _problem(file, error.message, error.hint) from None
    top = document.value
    if not isinstance(top, dict):
        raise _problem(file, "expected 'name: value' pairs", "Write it like: signoff: {require: record}", 1)
    stated = {"gold": top["gold"]} if "gold" in top else {}
    section = top.get("signoff") or {}
    if not isinstance(section, dict):
        line = document.positions.get("/signoff", (1, 0))[0]
        raise _problem(file, "'signoff' has no settings", "Write it like: signoff: {require: record}", line)
    settings = stated | section
    lines = {name: document.positions.get(f"/signoff/{name}", (0, 0))[0] for name in [*settings, *SETTINGS]}
    for name, value in settings.items():
        _refuse(name, value, file, lines[name])
    policy = SignoffPolicy()._replace(**settings)
    gold = _path(policy.gold, file)
    policy = policy._replace(
        gold=gold,
        records=_path(policy.records, file) if "records" in settings else default_records(gold),
        allowed_signers=_path(policy.allowed_signers, file) if "allowed_signers" in settings else "",
        signers={email: account["github"] for email, account in settings.get("signers", {}).items()},
        stated="signoff" in top,
    )
    for name, value, needed, hint in _NEEDS:
        if getattr(policy, name) == value and not getattr(policy, needed):
            shown = value if isinstance(value, str) else str(value).lower()
            message = f"{name}: {shown} requires signers, but '{needed}' lists none"
            raise _problem(file, message, f"Also {hint}", lines[name])
    return policy


def default_records(gold: str) -> str:
    """Return the default records folder of a gold file: next to it, with its name."""
    return f"{posixpath.splitext(gold)[0]}.signoff"


def _refuse(name: str, value: object, file: str, line: int) -> None:
    if name not in SETTINGS:
        # It may be a rule of a later version: unknown rules are refused.
        raise _problem(file, f"{quoted(name)} is not a setting of 'signoff' in this version", "Remove it.", line)
    kind, what, hint = _KINDS.get(name, (str, "a text", "Put it in quotes."))
    if not isinstance(value, kind):
        raise _problem(file, f"'{name}' is {quoted(value)}, not {what}", hint, line)
    if name == "require" and value not in LEVELS:
        raise _problem(
            file, f"'require' is not a known level: {quoted(value)}", f"Choose one of: {', '.join(LEVELS)}.", line
        )
    if name == "dataset" and not is_valid_field("dataset", value):
        hint = "Use up to 64 letters, digits, dots, dashes and underscores."
        raise _problem(file, f"'dataset' is not a valid name: {quoted(value)}", hint, line)
    for email, account in value.items() if isinstance(value, dict) else ():
        if not is_valid_field("signer", email):
            hint = "Write one address, without wildcards, lists or quotes."
            raise _problem(file, f"'signers' names {quoted(email)}, which is not one e-mail address", hint, line)
        login = account.get("github") if isinstance(account, dict) and len(account) == 1 else None
        if not matches(LOGIN, login):
            hint = f"Write {email}: {{github: LOGIN}}, with the login of the account, in quotes if it is a number."
            raise _problem(file, f"the signer {quoted(email)} has no account", hint, line)


def _path(path: str, file: str) -> str:
    joined = path_inside(posixpath.dirname(file), path)
    if not path or joined is None or not is_valid_field("gold", joined):
        raise _problem(file, f"{quoted(path)} is not a path inside the repository", "Write it relative to this file.")
    return joined


def _problem(file: str, message: str, hint: str, line: int = 0) -> InputError:
    return InputError([Problem(file, line, "", message, hint)])


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
        principal, wrong = _read_signer(line.removesuffix("\r").strip(" \t"), number, owners)
        signers.add(principal)
        problems += [Problem(file, number, "", *wrong)] if wrong else []
    if not signers:
        problems = [Problem(file, 0, "", "lists no signers", f"Write lines like: {EXAMPLE}")]
    if problems:
        raise InputError(problems[:100], max(0, len(problems) - 100))
    return frozenset(signers)


def _read_signer(line: str, number: int, owners: dict[str, tuple[str, int]]) -> tuple[str, tuple[str, str] | None]:
    """Return the principal of a line and the problem of the line; ``owners`` remembers the line of each key."""
    words = _LINE.match(line)
    if words is None or _CONTROL.search(line):
        return "", ("not a valid line of an allowed-signers file", f"Write it like: {EXAMPLE}")
    principal, *rest = words.groups()
    options, kind, key = (None, *rest[:2]) if rest[0] in KEY_TYPES else rest
    if not is_valid_field("signer", principal):
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


class Author(NamedTuple):
    """An author of the change: the account, None if it is unknown, and a name to show."""

    login: str | None
    name: str


class Proof(NamedTuple):
    """Evidence of the identities behind a change.

    ``principals`` are the signers with allowed keys on the base. ``signatures`` gives for each new record's file the
    fault of its signature, None if it is valid; records without an entry are invalid. ``latest`` is the newest allowed
    date of a record, in the form of its date; empty: any. ``approvals`` are the accounts that approve the head commit,
    ``authors`` those who wrote it. Both are None if unknown, as in a local hook, and are not checked then.
    """

    principals: Collection[str] = ()
    signatures: Mapping[str, str | None] = {}
    latest: str = ""
    approvals: Collection[str] | None = None
    authors: Collection[Author] | None = None


NO_PROOF = Proof()


class Review(NamedTuple):
    """One review: APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED or PENDING, and the reviewed commit."""

    id: int
    user: str
    state: str
    commit: str


class Authorship(NamedTuple):
    """An author or co-author of a commit.

    ``login`` is GitHub's account of the e-mail address. GitHub looks up no co-authors: for those it is None.
    """

    sha: str
    login: str | None
    name: str
    email: str
    co_author: bool = False


def approvals(reviews: Iterable[Review], head: str) -> list[str]:
    """Return the accounts whose last decision on the commit ``head`` is an approval, from ``reviews``, oldest first.

    A comment withdraws nothing; a request for changes and a dismissal do, on any commit.
    """
    by_person: dict[str, str] = {}
    for review in reviews:
        if review.state in ("CHANGES_REQUESTED", "DISMISSED"):
            by_person.pop(review.user.lower(), None)
        elif review.user and review.state == "APPROVED" and review.commit == head:
            by_person[review.user.lower()] = review.user
    return list(by_person.values())


def authors(opened_by: str, authorships: Iterable[Authorship], signers: Mapping[str, str]) -> list[Author]:
    """Return the authors of a pull request that ``opened_by`` opened and whose commits name ``authorships``.

    GitHub knows an account, or ``signers`` gives it for the e-mail address. Co-authors, which GitHub does not look up,
    may also use GitHub's noreply address.
    """
    people = [Author(opened_by or None, opened_by or "who opened the pull request")]
    for authorship in authorships:
        hidden = _NOREPLY.fullmatch(authorship.email) if authorship.co_author else None
        logins = (authorship.login, signers.get(authorship.email), hidden and hidden[1])
        known = [Author(login, authorship.name or login) for login in logins if login]
        people += known or [Author(None, authorship.name or authorship.email)]
    return list(dict.fromkeys(people))


def refused(new_records: Mapping[str, Record], policy: SignoffPolicy, proof: Proof) -> dict[str, tuple[str, str]]:
    """Return the new records that lack a valid identity, by path: the rule's code and what is wrong."""
    wrong = ((path, _wrong(path, record, policy, proof)) for path, record in new_records.items())
    return {path: reason for path, reason in wrong if reason}


def reviewers(policy: SignoffPolicy, proof: Proof) -> list[str]:
    """Return the accounts whose approval counts: of all signers, with four eyes of those who wrote no part."""
    wrote = accounts(proof) if policy.four_eyes else set()
    return sorted({login for login in policy.signers.values() if login.lower() not in wrote})


def unchecked(policy: SignoffPolicy, proof: Proof) -> list[str]:
    """Return the requirements that ``proof`` does not cover, as nouns for "not checked here: …"."""
    asked = {
        "the approving review": policy.require == "review" and proof.approvals is None,
        "four eyes": policy.four_eyes and proof.authors is None,
    }
    return [what for what, missing in asked.items() if missing]


def proves(policy: SignoffPolicy) -> str:
    """Describe what a sign-off under ``policy`` proves about its author, and what it does not."""
    return _PROVES[policy.require] + (_FOUR_EYES if policy.four_eyes else "")


def _wrong(path: str, record: Record, policy: SignoffPolicy, proof: Proof) -> tuple[str, str] | None:
    if proof.latest and record.date > proof.latest:
        return "future-record", f"its date {record.date} is more than a day in the future"
    signed = policy.require == "signature"
    if (policy.signers and record.signer not in policy.signers) or (signed and record.signer not in proof.principals):
        return "unknown-signer", f"{quoted(record.signer)} signed it, but is not a signer on the base branch"
    if signed and not record.sig:
        return "missing-signature", "it has no signature, but the base branch requires one"
    reason = proof.signatures.get(path, "its signature was not checked") if signed else None
    return ("bad-signature", f"its signature is invalid: {reason}") if reason else None


def accounts(proof: Proof) -> set[str]:
    """Return the known accounts of the authors, in lower case."""
    return {author.login.lower() for author in proof.authors or () if author.login}
