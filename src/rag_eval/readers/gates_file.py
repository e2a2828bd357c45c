"""Readers of eval-gates.yml, as a policy or every problem with line and column, and of the verdicts that it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rag_eval.common.escaping import one_line, quoted, quoted_name
from rag_eval.common.files import Digests
from rag_eval.contract import (
    SCORE_OF,
    SCORES,
    Grounding,
    Judge,
    Relevance,
    Safety,
    digest_of,
    parse_reply,
    verdict_hash,
)
from rag_eval.errors import MissingExtra
from rag_eval.gates import (
    BOUNDS,
    COMPLETENESS,
    MARGINS,
    REFERENCE_GATES,
    Calibration,
    Gate,
    Policy,
    Replay,
    Scoring,
    Slices,
    Statistics,
)
from rag_eval.gates.selection import FIELDS, is_field, is_slice
from rag_eval.metrics import canonical, find, measure, suggestion
from rag_eval.readers.jsonl import looks_like, read_rows
from rag_eval.readers.problems import (
    EXTRA,
    ProblemCollector,
    RowError,
    SchemaError,
    describe_in_yaml,
    load_schema,
    schema_errors,
    whole,
)
from rag_eval.readers.source import MIB, YAML_MIB, Digest, Reader
from rag_eval.readers.strict_json import JsonError, decode, escape_key, pointer
from rag_eval.textual.detectors import compiled

if TYPE_CHECKING:
    from rag_eval.readers.yaml_file import YamlDocument

Row = dict[str, Any]

_SHORT = "A gates file is short: check the path."
_WRONG_SIDE = "wrong side"  # no keyword of a schema
_LACKING = ("required", "anyOf")  # keywords that refuse a missing bound
_OTHER_SIDE = {"min": "max", "max": "min", "max_drop": "max_rise", "max_rise": "max_drop"}
_DIGITS = 40  # of a threshold, as in report.json


def read_policy(reader: Reader, path: str, digest: Digest | None = None) -> Policy | None:
    """Return the policy of ``path``, or None with the problems in the ledger."""
    short = replace(reader, limits=replace(reader.limits, whole_mib=YAML_MIB))
    data = short.read(path, digest, _SHORT)
    return None if data is None else policy_of(data, path, reader.ledger)


def policy_of(data: bytes, path: str, ledger: ProblemCollector) -> Policy | None:
    """Return the policy in the bytes of a gates file; problems go into the ledger under ``path``."""
    from rag_eval.readers.yaml_file import parse  # yaml is heavy

    if len(data) > YAML_MIB * MIB:
        ledger.problem(path, 0, "", f"larger than {YAML_MIB} MiB", _SHORT)
        return None
    if other := looks_like(data.partition(b"\n")[0]):
        hint = f"Name an eval-gates.yml. A {other} file ends in .jsonl, and --{other} names it."
        ledger.problem(path, 1, "", f"looks like a {other} file, but a gates file is expected here", hint)
        return None
    try:
        document = parse(decode(data))
    except JsonError as error:
        ledger.problem(path, error.line, error.where, error.message, error.hint)
        return None
    faults = list(_resolve_aliases(document, path, ledger)) or list(_faults(document.value))
    for fault in faults:
        line, column = document.position(fault.where)
        ledger.problem(path, line, f"column {column}: {fault.where}" if fault.where else "", fault.message, fault.hint)
    return None if faults else _policy(document, path)


def _resolve_aliases(document: YamlDocument, path: str, ledger: ProblemCollector) -> Iterator[RowError]:
    """Give gates that use an alias the name of their metric, and note it; yield a fault for a metric named twice."""
    for _, entries, where in _gate_sections(document.value):
        stated = dict(entries)
        entries.clear()
        for name, entry in stated.items():
            at, metric = f"{where}/{escape_key(name)}", canonical(name)
            if metric != name and (metric in stated or metric in entries):
                message = f"{quoted(name, 60)} is another name of {metric}, which also has gates"
                yield RowError(at, message, "Remove one of them.")
            elif metric != name:
                ledger.note(path, document.position(at)[0], f"{name} is read as {metric}", times=0)
                for below in ("", *(f"/{escape_key(key)}" for key in entry if isinstance(entry, dict))):
                    if position := document.positions.get(at + below):
                        document.positions[f"{where}/{escape_key(metric)}{below}"] = position
            entries[metric] = entry


def _faults(value: Any) -> Iterator[RowError]:
    """Yield the faults under the schema, otherwise those that no schema can express."""
    schema = load_schema("eval-gates", Decimal)  # as the file's numbers: 0.0001 is less than the nearest float
    if errors := sorted(schema_errors(schema, value), key=lambda error: pointer(error.path)):
        faults = list(map(_worded, errors))
        wrong = {fault.where.rpartition("/")[0] for fault in faults if fault.keyword == _WRONG_SIDE}
        # A bound on the wrong side explains the missing bound.
        yield from (fault for fault in faults if fault.where not in wrong or fault.keyword not in _LACKING)
        return
    for part, entries, where in _gate_sections(value):
        yield from _gate_faults(entries, where, part)
    yield from _slice_faults(value)
    yield from _pattern_faults(value)


def _pattern_faults(value: dict[str, Any]) -> Iterator[RowError]:
    """Yield a fault for each pattern that RE2 refuses; without RE2, for the first one."""
    for index, pattern in enumerate(value.get("safety", {}).get("internal_ids", ())):
        where = f"/safety/internal_ids/{index}"
        try:
            compiled(pattern)
        except ValueError as error:
            message = f"{quoted(pattern, 60)} is not a regular expression of RE2: {one_line(str(error), 100)}"
            yield RowError(where, message, "Write it without look-around, back-references and possessive repetition.")
        except MissingExtra as error:
            message, _, hint = str(error).partition(". ")
            yield RowError(where, message, hint)
            return


def _gate_faults(entries: dict[str, Any], where: str, part: str) -> Iterator[RowError]:
    for name, entry in entries.items():
        at = f"{where}{pointer((name,))}"
        if part and measure(name).metric.level == "run":
            message = f"{quoted(name, 60)} is about the whole run, which has no slices"
            yield RowError(at, message, "Gate it under gates.")
        for direction in entry.keys() & {*BOUNDS, *MARGINS}:
            if len(str(entry[direction])) > _DIGITS:
                message = f"a threshold of more than {_DIGITS} characters"
                yield RowError(f"{at}/{direction}", message, "Write fewer decimals.")


def _slice_faults(value: dict[str, Any]) -> Iterator[RowError]:
    stated = value.get("slices", {})
    hint = f"Slices use {', '.join(FIELDS)} or meta.NAME."
    for index, name in enumerate(stated.get("by", ())):
        if not is_field(name):
            yield RowError(f"/slices/by/{index}", f"{quoted(name, 60)} is not a field for slices", hint)
    cluster = value.get("statistics", {}).get("cluster", "")
    if cluster and not is_field(cluster):
        message = f"{quoted(cluster, 60)} is not a field of the gold set"
        yield RowError("/statistics/cluster", message, hint.replace("Slices", "Clusters"))
    slices = [(pointer(("slices", "gates", name)), name, "FIELD=VALUE") for name in stated.get("gates", {})]
    must_pass = enumerate(value.get("must_pass", ()))
    slices += [(f"/must_pass/{index}", name, "a qid or FIELD=VALUE") for index, name in must_pass if "=" in name]
    for where, name, form in slices:
        if not is_slice(name):
            yield RowError(where, f"{quoted(name, 60)} is not a slice", f"Write {form}. {hint}")


def _worded(error: SchemaError) -> RowError:
    """Return an error in words: an unknown metric or a bound on the wrong side by its name."""
    if error.keyword != EXTRA:
        return describe_in_yaml(error)
    path, key = error.path, error.expected
    where = pointer((*path, key))
    depth = len(path) - 1 if path[:1] == ("gates",) else len(path) - 3 if path[:2] == ("slices", "gates") else -1
    if depth == 0 and not find(key):
        is_of_file = key in load_schema("eval-gates")["properties"]
        hint = "If you mean the key of the file, write it next to gates, not below it. " if is_of_file else ""
        return RowError(where, f"unknown metric {quoted_name(key, 60)}", hint + suggestion(key))
    if depth == 1 and key in _OTHER_SIDE and (measure := find(str(path[-1]))):
        message = f"'{key}' on {path[-1]}, for which {measure.metric.better} is better"
        return RowError(where, message, f"Use '{_OTHER_SIDE[key]}'.", _WRONG_SIDE)
    if not path and find(key):
        message = f"the metric {quoted_name(key, 60)} is not below gates"
        return RowError(where, message, "Write it under gates:, two spaces further in.")
    return describe_in_yaml(error)._replace(where=where)


def _policy(document: YamlDocument, path: str) -> Policy:
    value, refusal, earlier = document.value, document.value.get("refusal", {}), document.value.get("baseline", {})
    fields: dict[str, Any] = {name: whole(value[name]) for name in ("k", "limits") if name in value}
    fields |= {name: in_folder_of(path, value.get(name, getattr(Policy(), name))) for name in ("gold", "trace")}
    baseline = {"baseline": "report", "baseline_trace": "trace", "baseline_rerun": "rerun"}
    fields |= {name: in_folder_of(path, earlier[key]) for name, key in baseline.items() if key in earlier}
    fields |= {"verdicts": in_folder_of(path, value["verdicts"])} if "verdicts" in value else {}
    stated = value.get("judge", {})
    judge = Judge(**{name: stated[name] for name in Judge._fields if name in stated})
    recorded = stated.get("calibration", {})
    measured = {name: _floats(part["low"]) for name, part in recorded.get("scores", {}).items()}
    calibration = Calibration(_floats(stated.get("floor", {})), recorded.get("judge", ""), measured)
    slices, gates = value.get("slices", {}), tuple(_gates(document))
    if all(gate.slice for gate in gates):
        gates = (*REFERENCE_GATES, *gates)
    gates, uncalibrated = _warn_if_uncalibrated(gates, judge, calibration)
    return Policy(
        file=path,
        token=refusal.get("token", Policy().token).strip(),
        phrases=tuple(phrase.lower() for phrase in refusal.get("phrases", ())),
        builtin=refusal.get("builtin", False),
        gates=gates,
        judge=judge,
        uncalibrated=uncalibrated,
        completeness={**dict.fromkeys(COMPLETENESS, 0), **whole(value.get("completeness", {}))},
        # YAML reads a bare off as false.
        integrity={name: level or "off" for name, level in value.get("integrity", {}).items()},
        slices=Slices(tuple(slices.get("by", ())), int(slices.get("min_n", Slices().min_n))),
        must_pass=tuple(value.get("must_pass", ())),
        statistics=Statistics(**_converted(value.get("statistics", {}), alpha=_written)),
        score=Scoring(**{name: _floats(part) for name, part in value.get("score", {}).items()}),
        groundedness=Grounding(**_floats(value.get("groundedness", {}))),
        safety=Safety(
            **_converted(value.get("safety", {}), warn=float, block=float, verbatim_words=int, internal_ids=tuple)
        ),
        retrieval=Relevance(**_converted(value.get("retrieval", {}), relevant_from=int)),
        prices={model: _floats(fields) for model, fields in value.get("prices", {}).items()},
        stated=value,
        **fields,
    )


def _warn_if_uncalibrated(
    gates: tuple[Gate, ...], judge: Judge, calibration: Calibration
) -> tuple[tuple[Gate, ...], tuple[str, ...]]:
    """Return the gates; those on a judge only warn unless enough agreement with people is recorded."""
    if not any(gate.name.startswith("judge_") for gate in gates):
        return gates, ()
    name_of = digest_of(judge._asdict())
    scores = {gate.name: SCORE_OF.get(gate.name.partition(".")[0]) for gate in gates}
    warns = {name for name, score in scores.items() if score and not calibration.covers(score, name_of)}
    lost = dict.fromkeys(gate.name for gate in gates if gate.name in warns and gate.severity == "error")
    return tuple(replace(gate, severity="warning") if gate.name in warns else gate for gate in gates), tuple(lost)


def _floats(numbers: dict[str, Any]) -> dict[str, float]:
    return {name: float(number) for name, number in numbers.items()}


def _converted(stated: dict[str, Any], **types: Callable[[Any], Any]) -> dict[str, Any]:
    return {name: types[name](entry) if name in types else entry for name, entry in stated.items()}


def _gates(document: YamlDocument) -> Iterator[Gate]:
    """Yield a gate for each bound and margin: those on all cases, then those on slices."""
    for part, entries, where in _gate_sections(document.value):
        for name, entry in entries.items():
            line = document.positions[f"{where}/{escape_key(name)}"][0]
            for direction in (*BOUNDS, *MARGINS):
                if direction in entry:
                    bound = direction in BOUNDS
                    yield Gate(
                        name,
                        direction,
                        _written(entry[direction]),
                        severity=entry.get("severity", "error"),
                        when_no_data=entry.get("when_no_data", "fail"),
                        line=line,
                        slice=part,
                        confidence=str(entry.get("confidence", "")) if bound else "",
                        test="" if bound else entry.get("test", ""),
                    )


def _gate_sections(value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield each slice (empty: all cases) with its gates and their JSON pointer."""
    yield "", _object(value, "gates"), "/gates"
    slices = _object(value, "slices", "gates")
    for part in slices:
        yield part, _object(slices, part), f"/slices/gates/{escape_key(part)}"


def _object(value: Any, *names: str) -> dict[str, Any]:
    """Return the object below the names; empty if it is no object, because the schema may not be checked yet."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def in_folder_of(gates: str, path: str) -> str:
    """Return a path of the gates file ``gates``, which is relative to the folder of that file."""
    return os.path.normpath(os.path.join(os.path.dirname(gates), path))  # noqa: PTH118, PTH120 - Path drops a slash at the end


def _written(number: Any) -> str:
    return f"{number:f}" if isinstance(number, Decimal) else str(number)


def with_verdicts(
    policy: Policy, reader: Reader, digests: Digests | None = None, *, is_required: bool = False
) -> Policy:
    """Return the policy with the recorded verdicts of its judge, or of the only judge in the file if it names none.

    A policy that names no file of verdicts is unchanged. A missing file is a problem if it ``is_required``, otherwise a
    note.
    """
    path, judge = policy.verdicts, policy.judge
    if not path:
        return policy
    if not is_required and not reader.has(path):
        reader.ledger.note(path, 0, "no such file: metrics of the judge have no value. Write it: rag-eval judge")
        return replace(policy, replay=Replay())
    digest = digests.of("verdicts", path) if digests else None
    rows = [row for row, _ in read_verdicts(reader, path, digest)]
    judges = {Judge(**row["judge"]) for row in rows}
    if judge == Judge() and len(judges) > 1:
        message = f"has verdicts of {len(judges)} judges, and the gates file names none"
        fix = "Write judge: {model: …, prompt: …, rubric: …} into the gates file."
        reader.ledger.problem(path, 0, "", message, fix)
    elif judge == Judge() and judges:
        (judge,) = judges
    matching = [row for row in rows if Judge(**row["judge"]) == judge and "error" not in row]
    verdicts = {row["hash"]: parse_reply(row["reply"]) for row in matching}
    return replace(policy, judge=judge, replay=Replay(verdicts, frozenset(row["qid"] for row in matching)))


def read_verdicts(reader: Reader, path: str, digest: Digest | None = None) -> Iterator[tuple[Row, int]]:
    """Yield the rows with their lines; the last row of a hash counts. Rows that contradict themselves are problems."""
    with reader.open(path, digest) as source:
        for number, row in read_rows(reader, source, "verdict"):
            if fault := _contradiction(row):
                reader.ledger.problem(path, number, "", fault, "Remove the row and run rag-eval judge again.")
            else:
                yield row, number


def _contradiction(row: Row) -> str:
    """Return how a row contradicts its input or its reply; empty if it does not."""
    if row["hash"] != verdict_hash(Judge(**row["judge"]), row["input"]):
        return "the hash does not match judge and input of the row"
    if "error" in row:
        return ""
    try:
        verdict = parse_reply(row["reply"])
    except ValueError as error:
        return str(error)
    repeated = {name: getattr(verdict, name) for name in SCORES}
    repeated["unsupported_claims"] = list(verdict.unsupported_claims)
    differs = [name for name, value in repeated.items() if row.get(name) != value]
    return f"{differs[0]} contradicts the reply of the judge" if differs else ""
