"""Reader of the sign-off policy in eval-gates.yml."""

from __future__ import annotations

import posixpath

from rag_eval.common.escaping import quoted
from rag_eval.errors import InputError, Problem
from rag_eval.gold.signoff.identity import LEVELS, SETTINGS, SignoffPolicy
from rag_eval.readers.signoff_record import PATTERNS, matches
from rag_eval.readers.source import MIB, YAML_MIB

LOGIN = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})"
"""An account of GitHub. Bots are none: what is in brackets signs nothing."""

_KINDS: dict[str, tuple[type, str, str]] = {
    "four_eyes": (bool, "true or false", "Write true or false, without quotes."),
    "signers": (dict, "a mapping", "Write each signer as: bob@example.org: {github: bob}"),
}
_NEEDS: tuple[tuple[str, str | bool, str, str], ...] = (
    ("require", "signature", "allowed_signers", "name the file with their keys: allowed_signers: PATH"),
    ("require", "review", "signers", "name them: signers: {bob@example.org: {github: bob}}"),
    ("four_eyes", True, "signers", "name them: signers: {bob@example.org: {github: bob}}"),
)


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
    settings = stated | (section if isinstance(section, dict) else {"signoff": section})
    lines = {name: document.places.get(f"/signoff/{name}", (0, 0))[0] for name in [*settings, *SETTINGS]}
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
    if name == "dataset" and not matches(PATTERNS["dataset"], value):
        hint = "Use up to 64 letters, digits, dots, dashes and underscores."
        raise _problem(file, f"'dataset' is not a valid name: {quoted(value)}", hint, line)
    for email, account in value.items() if isinstance(value, dict) else ():
        if not matches(PATTERNS["signer"], email):
            hint = "Write one address, without wildcards, lists or quotes."
            raise _problem(file, f"'signers' names {quoted(email)}, which is not one e-mail address", hint, line)
        login = account.get("github") if isinstance(account, dict) and len(account) == 1 else None
        if not matches(LOGIN, login):
            hint = f"Write {email}: {{github: LOGIN}}, with the login of the account, in quotes if it is a number."
            raise _problem(file, f"the signer {quoted(email)} has no account", hint, line)


def _path(path: str, file: str) -> str:
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    if not path or joined.startswith(("/", "../")) or joined in (".", "..") or not matches(PATTERNS["gold"], joined):
        raise _problem(file, f"{quoted(path)} is not a path inside the repository", "Write it relative to this file.")
    return joined


def _problem(file: str, message: str, hint: str, line: int = 0) -> InputError:
    return InputError([Problem(file, line, "", message, hint)])
