"""The sign-off policy as eval-gates.yml states it."""

from __future__ import annotations

import posixpath

from rag_eval.errors import InputError, Problem
from rag_eval.files.limits import MIB, YAML_MIB
from rag_eval.safe import one_line, quoted
from rag_eval.signoff import LEVELS, Policy
from rag_eval.signoff_record import PATTERNS, matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Node = Any  # a yaml.Node: its stubs do not know the ``id`` that tells the kinds apart


def signoff_policy(data: bytes | None, file: str) -> Policy:
    """The policy of the gates file ``file``, given by its bytes; None, or no ``signoff`` section, means the defaults.

    The gold file is ``signoff.gold``, else the file's own ``gold``, else eval/gold.jsonl; the records stand beside it
    in a folder of its name with ``.signoff`` for its extension. Paths are relative to the folder of the gates file.
    :class:`InputError` says what cannot be read, and refuses a level that this version cannot check.
    """
    top = _mapping(_document(data, file), file) if data else {}
    section = {name: _scalar(node, file) for name, node in _mapping(top.get("signoff"), file).items() if name in _OURS}
    if "gold" in top:
        section.setdefault("gold", _scalar(top["gold"], file))
    named = Policy()._replace(**section)
    gold = _path(named.gold, file)
    records = _path(named.records, file) if "records" in section else beside(gold)
    return _valid(named._replace(gold=gold, records=records), file)


def beside(gold: str) -> str:
    """The records folder of a gold file that names none: beside it, with its name."""
    return f"{posixpath.splitext(gold)[0]}.signoff"


_OURS = Policy._fields


def _valid(policy: Policy, file: str) -> Policy:
    if policy.require not in LEVELS:
        known = ", ".join(LEVELS)
        raise _problem(file, f"signoff.require is {quoted(policy.require)}", f"This version checks: {known}.")
    if not matches(PATTERNS["dataset"], policy.dataset):
        hint = "Use up to 64 letters, digits, dots, dashes and underscores."
        raise _problem(file, f"signoff.dataset is {quoted(policy.dataset)}", hint)
    return policy


def _path(path: str, file: str) -> str:
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    if joined.startswith(("/", "../")) or joined in (".", "..") or not matches(PATTERNS["gold"], joined):
        raise _problem(file, f"{quoted(path)} is no path inside the repository", "Write it relative to this file.")
    return joined


def _document(data: bytes, file: str) -> Node | None:
    import yaml

    if len(data) > YAML_MIB * MIB:
        raise _problem(file, f"larger than {YAML_MIB} MiB", "Keep data out of the gates file.")
    try:
        # Composing builds no values: a scalar stays the text that was written, and no tag is ever acted on.
        return yaml.compose(data.decode("utf-8-sig"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _problem(file, f"not readable as YAML: {one_line(str(error), 200)}", "Mend the file.") from None


def _mapping(node: Node | None, file: str) -> dict[str, Node]:
    if node is None or (node.id == "scalar" and node.value in ("", "~", "null")):
        return {}
    if node.id != "mapping":
        raise _problem(file, "expected 'name: value' pairs", "See the example of eval-gates.yml.", node)
    found: dict[str, Node] = {}
    for key, value in node.value:
        if key.id != "scalar" or key.value in found or key.value == "<<":
            raise _problem(file, f"the key {quoted(key.value)} is no plain key or stands twice", "Keep one.", key)
        found[key.value] = value
    return found


def _scalar(node: Node, file: str) -> str:
    if node.id != "scalar":
        raise _problem(file, "expected a single value", "Write a text.", node)
    return str(node.value)


def _problem(file: str, message: str, hint: str, node: Node | None = None) -> InputError:
    line = node.start_mark.line + 1 if node else 0
    return InputError([Problem(file, line, "", message, hint)])
