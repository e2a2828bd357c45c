"""Sign-off policies, the keys of signers, and the identities behind a change: which records count, who approved.

All functions are pure: the results of ssh-keygen and GitHub are passed in as a :class:`Proof`. Accounts are compared
without regard to case, as GitHub does.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.errors import InputError, Problem
from rag_eval.git import path_inside
from rag_eval.readers.problems import describe_in_yaml, load_schema, schema_errors
from rag_eval.readers.signoff_record import NAMESPACE, Record, is_valid_field
from rag_eval.readers.source import MIB, YAML_MIB
from rag_eval.readers.strict_json import JsonError, decode, escape_key

LEVELS = ("record", "review", "signature")
_PROVES = {
    "record": "A record proves nobody's identity: anyone who can commit can write one in any name.",
    "review": "The approving review proves the account of a signer; the records by themselves prove nobody's identity.",
    "signature": "Each new record is signed with a key that the base branch lists for its signer.",
}
_NOREPLY = re.compile(
    r"(?:[0-9]+\+)?([A-Za-z0-9][A-Za-z0-9_-]*(?:\[bot\])?)@users\.noreply\.github\.com", re.IGNORECASE
)

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
_WORD = r'(?:[^\s"]|"[^"]*")+'
_LINE = re.compile(
    rf"({_WORD})(?:[ \t]+({_WORD}))?[ \t]+({'|'.join(map(re.escape, KEY_TYPES))})[ \t]+([A-Za-z0-9+/=]+)(?:[ \t].*)?"
)
_OPTION = r'(?:namespaces="[^"\\]*"|valid-(?:after|before)="[0-9]{8}(?:[0-9]{4}(?:[0-9]{2})?)?Z?")'
_OPTIONS = re.compile(rf"{_OPTION}(?:,{_OPTION})*", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_VALID = {
    "dataset": "Begin it with a letter or digit.",
    "signer": "Write one e-mail address, without wildcards, lists or quotes.",
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


def signoff_policy(data: bytes, file: str) -> SignoffPolicy:
    """Read the policy from the bytes of the gates file ``file``; without a ``signoff`` section, return the defaults.

    The gold file is ``signoff.gold``, otherwise the file's own ``gold``, otherwise eval/gold.jsonl. The records are in
    a folder next to it with its name and the extension ``.signoff``. Paths are relative to the folder of the gates
    file. :class:`InputError` lists unreadable keys, and those that this version cannot check.
    """
    from rag_eval.readers.yaml_file import parse  # yaml is heavy

    if len(data) > YAML_MIB * MIB:
        raise _problem(file, f"larger than {YAML_MIB} MiB", "A gates file is short: check the path.")
    try:
        document = parse(decode(data))
    except JsonError as error:
        raise InputError([Problem(file, error.line, error.where, error.message, error.hint)]) from None
    top = document.value
    if not isinstance(top, dict):
        raise _problem(file, "expected 'name: value' pairs", "Write it like: signoff: {require: record}", 1)
    stated = {"gold": top["gold"]} if "gold" in top else {}
    section, known = top.get("signoff") or {}, load_schema("eval-gates")["properties"]
    schema = {"properties": {name: known[name] for name in ("gold", "signoff")}}
    faults = map(describe_in_yaml, schema_errors(schema, {**stated, "signoff": section}))
    problems = [Problem(file, document.position(fault.where)[0], *fault[:3]) for fault in faults]
    if problems:
        raise InputError(problems)
    policy = SignoffPolicy()._replace(**{**stated, **section})
    signers = (("signer", email, f"/signoff/signers/{escape_key(email)}") for email in policy.signers)
    for name, text, where in [("dataset", policy.dataset, "/signoff/dataset"), *signers]:
        if not is_valid_field(name, text):
            raise _problem(file, f"{quoted(text)} is not a valid {name}", _VALID[name], document.position(where)[0])
    gold = _path(policy.gold, file)
    policy = policy._replace(
        gold=gold,
        records=_path(policy.records, file) if "records" in section else default_records(gold),
        allowed_signers=_path(policy.allowed_signers, file) if "allowed_signers" in section else "",
        signers={email: account["github"] for email, account in section.get("signers", {}).items()},
        stated="signoff" in top,
    )
    for name, value, needed, hint in _NEEDS:
        if getattr(policy, name) == value and not getattr(policy, needed):
            shown = value if isinstance(value, str) else str(value).lower()
            message = f"{name}: {shown} requires signers, but '{needed}' lists none"
            raise _problem(file, message, f"Also {hint}", document.position(f"/signoff/{name}")[0])
    return policy


def default_records(gold: str) -> str:
    """Return the default records folder of a gold file: next to it, with its name."""
    return f"{posixpath.splitext(gold)[0]}.signoff"


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
    words = _LINE.fullmatch(line)
    if words is None or _CONTROL.search(line):
        hint = f"Write it like: {EXAMPLE}. Types of keys: {', '.join(KEY_TYPES)}"
        return "", ("not a valid line of an allowed-signers file", hint)
    principal, options, kind, key = words.groups()
    wrong = None
    if not is_valid_field("signer", principal):
        hint = "Give every signer a line of its own: no wildcard, no '!', no comma, no quotes."
        wrong = f"{quoted(principal)} is not one e-mail address", hint
    elif options is None:
        wrong = "'namespaces' is missing, so the key could sign for any purpose", f"Write it like: {EXAMPLE}"
    elif not _limits_key(options):
        hint = f'Write namespaces="{NAMESPACE}"; with a comma between, only valid-after and valid-before may be added.'
        wrong = f"{quoted(options)} does not limit the key to signing gold", hint
    elif not _is_key(kind, key):
        wrong = f"the key is not a valid {kind} key", "Copy the whole second word of the .pub file."
    else:
        owner, first = owners.setdefault(key, (principal, number))
        if first != number:
            hint = "A key belongs to one person: give each their own, on one line."
            wrong = f"the key is already on line {first}, for {quoted(owner)}", hint
    return principal, wrong


def _limits_key(options: str) -> bool:
    """Return whether options name the namespace of gold, without wildcards, and at most the times of a key."""
    given = re.findall(r'([a-z-]+)="([^"]*)"', options, re.IGNORECASE)
    names = [name.lower() for name, _ in given]
    spaces = dict(zip(names, (value for _, value in given), strict=True)).get("namespaces", "")
    is_exact = NAMESPACE in spaces.split(",") and not any(mark in spaces for mark in "*?!")
    return is_exact and len(set(names)) == len(names) and _OPTIONS.fullmatch(options) is not None


def _is_key(kind: str, key: str) -> bool:
    """Return whether a key in base64 has parts, the type first, each with its length in four bytes before it."""
    try:
        blob = base64.b64decode(key, validate=True)
    except ValueError:
        return False
    parts, start = [], 0
    while start < len(blob):
        end = start + 4 + int.from_bytes(blob[start : start + 4], "big")
        parts.append(blob[start + 4 : end])
        start = end
    return start == len(blob) and len(parts) > 1 and parts[0] == kind.encode()


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
    wrong: dict[str, tuple[str, str]] = {}
    needs_key = policy.require == "signature"
    for path, record in new_records.items():
        is_signer = not policy.signers or record.signer in policy.signers
        if proof.latest and record.date > proof.latest:
            wrong[path] = "future-record", f"its date {record.date} is more than a day in the future"
        elif not is_signer or (needs_key and record.signer not in proof.principals):
            message = f"{quoted(record.signer)} signed it, but is not a signer on the base branch"
            wrong[path] = "unknown-signer", message
        elif needs_key and not record.sig:
            wrong[path] = "missing-signature", "it has no signature, but the base branch requires one"
        elif needs_key and (reason := proof.signatures.get(path, "its signature was not checked")):
            wrong[path] = "bad-signature", f"its signature is invalid: {reason}"
    return wrong


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
    four_eyes = " Signers and authors are different accounts; authors are those that the commits name."
    return _PROVES[policy.require] + (four_eyes if policy.four_eyes else "")


def accounts(proof: Proof) -> set[str]:
    """Return the known accounts of the authors, in lower case."""
    return {author.login.lower() for author in proof.authors or () if author.login}
