"""eval-gates.yml into a :class:`~rag_eval.gates.Policy`, or every problem in it with line and column."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any

from rag_eval.errors import UsageError
from rag_eval.files.acceptor import acceptor
from rag_eval.files.contract import load
from rag_eval.files.limits import MIB, YAML_MIB
from rag_eval.files.wording import Finding, pointer, unknown_keys, word
from rag_eval.gates import COMPLETENESS, Gate, Policy
from rag_eval.metrics import measure, suggestion
from rag_eval.safe import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_eval.files.ledger import Ledger
    from rag_eval.files.source import Digest, Reader
    from rag_eval.files.yaml_file import Document

_WRONG_SIDE = ", of which "
_WHOLE = 10**18
_DIGITS = 40  # of a threshold, as report.json takes it


def read_policy(reader: Reader, path: str, digest: Digest | None = None) -> Policy | None:
    """The policy of ``path``, or None with the problems in the ledger."""
    source = reader._replace(limits=reader.limits._replace(whole_mib=YAML_MIB)).open(path, digest)
    if source is None:
        return None
    with source:
        data = source.whole()
    return None if data is None else policy_of(data, path, reader.ledger)


def policy_of(data: bytes, path: str, ledger: Ledger) -> Policy | None:
    """The policy in the bytes of a gates file; problems go into the ledger under the name ``path``."""
    from rag_eval.files import yaml_file
    from rag_eval.files.strict_json import JsonError, decode

    if len(data) > YAML_MIB * MIB:
        ledger.problem(path, 0, "", f"larger than {YAML_MIB} MiB", "A gates file is short: check the path.")
        return None
    try:
        document = yaml_file.parse(decode(data))
    except yaml_file.YamlError as error:
        ledger.problem(path, error.line, f"column {error.column}", error.message, error.hint)
        return None
    except JsonError as error:
        ledger.problem(path, error.line, error.where, error.message, error.hint)
        return None
    findings = list(_findings(document.value))
    for finding in findings:
        line, column = _nearest(document, finding.where)
        ledger.problem(path, line, f"column {column}: {finding.where}" if finding.where else "", *finding[1:])
    return None if findings else _policy(document, path)


def _findings(value: Any) -> Iterator[Finding]:
    """What the schema refuses, and what a schema cannot say."""
    schema = load("eval-gates")
    if not acceptor(schema)(value):
        import jsonschema

        found = jsonschema.Draft202012Validator(schema).iter_errors(_plain(value))
        errors = sorted(found, key=lambda error: error.json_path)
        yield from _one_a_cause([_at_key(_sharpen(word(error), value), error) for error in errors])
        if errors:
            return
    for name, entry in value.get("gates", {}).items():
        if not _is_metric(name):
            yield Finding(pointer(("gates", name)), f"unknown metric {quoted(name, 60)}", suggestion(name))
        for bound in entry.keys() & {"min", "max"}:
            if len(str(entry[bound])) > _DIGITS:
                message = f"a threshold of more than {_DIGITS} characters"
                yield Finding(pointer(("gates", name, bound)), message, "Write fewer decimals.")


def _plain(value: Any) -> Any:
    """``value`` with whole numbers as such: jsonschema takes no decimal for one."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    whole = isinstance(value, Decimal) and abs(value) < _WHOLE and value == value // 1
    return int(value) if whole else value


def _one_a_cause(findings: list[Finding]) -> list[Finding]:
    """A bound on the wrong side is a missing one on the right side too: the first says it."""
    wrong = {finding.where.rpartition("/")[0] for finding in findings if _WRONG_SIDE in finding.message}
    return [one for one in findings if one.where not in wrong or not one.message.endswith("is missing")]


def _at_key(finding: Finding, error: Any) -> Finding:
    """Where keys are unknown, the place of the first of them."""
    if error.validator != "additionalProperties":
        return finding
    return finding._replace(where=finding.where + pointer(unknown_keys(error)[:1]))


def _sharpen(finding: Finding, value: Any) -> Finding:
    """Say of a metric that is not there, or of a bound on its wrong side, what the metric's own words are."""
    if finding.where == "/gates" and finding.message.startswith("unknown key"):
        unknown = [name for name in value["gates"] if not _is_metric(name)]
        message = f"unknown metric {', '.join(quoted(name, 60) for name in unknown[:3])}"
        return Finding(finding.where, message, " ".join(suggestion(name) for name in unknown[:3]))
    parts = finding.where.split("/")
    if len(parts) == 3 and parts[1] == "gates" and finding.message.startswith("unknown key '"):
        return _wrong_side(finding, parts[2])
    return finding


def _wrong_side(finding: Finding, name: str) -> Finding:
    bound = finding.message.split("'")[1]
    if bound not in ("min", "max") or not _is_metric(name):
        return finding
    better = measure(name).metric.better
    right = "min" if better == "higher" else "max"
    return Finding(finding.where, f"'{bound}' on {name}{_WRONG_SIDE}{better} is better", f"Use '{right}'.")


def _is_metric(name: str) -> bool:
    try:
        return bool(measure(name))
    except UsageError:
        return False


def _nearest(document: Document, pointer: str) -> tuple[int, int]:
    """The place of a pointer, or of the closest value around it."""
    while pointer not in document.places and pointer:
        pointer = pointer.rpartition("/")[0]
    return document.places.get(pointer, (1, 1))


def _policy(document: Document, path: str) -> Policy:
    value, refusal = document.value, document.value.get("refusal", {})
    own: dict[str, Any] = {name: _whole(value[name]) for name in ("k", "limits") if name in value}
    own |= {name: beside(path, value.get(name, getattr(Policy(), name))) for name in ("gold", "trace")}
    return Policy(
        file=path,
        token=refusal.get("token", Policy().token).strip(),
        phrases=tuple(phrase.lower() for phrase in refusal.get("phrases", ())),
        gates=tuple(_gate(name, entry, document) for name, entry in value.get("gates", {}).items()),
        completeness={**dict.fromkeys(COMPLETENESS, 0), **_whole(value.get("completeness", {}))},
        # YAML takes a bare off for false.
        integrity={name: level or "off" for name, level in value.get("integrity", {}).items()},
        stated=value,
        **own,
    )


def _whole(value: Any) -> Any:
    """A number, or each number of an object, as int: the schema takes 5.0 for a whole number too."""
    return {name: int(number) for name, number in value.items()} if isinstance(value, dict) else int(value)


def beside(gates: str, path: str) -> str:
    """A path of the gates file ``gates``: relative to the folder that it stands in."""
    return os.path.normpath(os.path.join(os.path.dirname(gates), path))  # noqa: PTH118, PTH120


def _gate(name: str, entry: dict[str, Any], document: Document) -> Gate:
    direction = "min" if "min" in entry else "max"
    line = document.places[f"/gates/{name}"][0]
    threshold = f"{entry[direction]:f}" if isinstance(entry[direction], Decimal) else str(entry[direction])
    severity, when_no_data = entry.get("severity", "error"), entry.get("when_no_data", "fail")
    return Gate(name, direction, threshold, severity, when_no_data, line)
