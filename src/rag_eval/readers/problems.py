"""Problems of files: collected over all files of one call, and found and described by JSON Schema.

Small documents are read at every start, and jsonschema takes longer to load than a small run takes. So it is loaded
only to find the errors of a value that :func:`rag_eval.common.json_schema.is_valid` refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from rag_eval.common.escaping import one_line, quoted, quoted_name
from rag_eval.common.json_schema import Schema, extra_keys, is_integer, is_valid
from rag_eval.common.paths import shipped
from rag_eval.errors import InputError, Note, Problem
from rag_eval.readers import strict_json
from rag_eval.readers.strict_json import pointer

SHOWN = 100
Row = dict[str, Any]


class Unreadable(Exception):
    """An unreadable file: message and hint, without the file's name."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class ProblemCollector:
    """Collects problems and notes over all files of one call."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.more = 0  # problems that are only counted
        self._notes: dict[tuple[str, str], Note] = {}
        self._unknown_fields: set[tuple[str, str]] = set()

    @property
    def count(self) -> int:
        """Return the number of problems, shown or not."""
        return len(self.problems) + self.more

    @property
    def full(self) -> bool:
        """True if further problems are only counted."""
        return len(self.problems) >= SHOWN

    def problem(self, file: str, line: int, where: str, message: str, hint: str = "") -> None:
        """Record a problem; beyond the first hundred they are only counted."""
        if self.full:
            self.more += 1
        else:
            self.problems.append(Problem(file, line, where, message, hint))

    def replace(self, file: str, problem: Problem, before: int = 0) -> None:
        """Replace the problems of a file by one that explains them all; there were ``before`` when it was opened."""
        self.problems = [*(known for known in self.problems if known.file != file), problem]
        self.more = max(0, before - SHOWN)

    def unknown_field(self, file: str, line: int, parent: str, field: str, fields: Iterable[str]) -> None:
        """Note the first row with a field that the contract lacks, with the known field of a similar name."""
        name = f"{parent}.{field}" if parent else field
        if (file, name) in self._unknown_fields or len(self._unknown_fields) > SHOWN:
            return
        self._unknown_fields.add((file, name))
        hint = did_you_mean(field, sorted(fields))
        self.note(file, line, f"unknown field {quoted(name)} is ignored.{' ' + hint if hint else ''}", times=0)

    def note(self, file: str, line: int, message: str, *, times: int = 1) -> None:
        """Record a note; the same words on the same file are counted under the first line, unless ``times`` is 0.

        After a hundred kinds of note, further kinds become one note for each file.
        """
        if len(self._notes) >= SHOWN and (file, message) not in self._notes:
            message, times = "there are more notes like these", 0
        known = self._notes.get((file, message)) or Note(file, line, message, 0)
        self._notes[file, message] = known._replace(times=known.times + times)

    def add_notes(self, other: ProblemCollector, line: int) -> None:
        """Add the notes on a part of a file that begins after ``line``."""
        for note in sorted(other._notes.values(), key=lambda note: note.line):
            self.note(note.file, note.line + line, note.message, times=note.times)

    @property
    def notes(self) -> list[Note]:
        """Return the notes, sorted so that the order of rows does not matter."""
        notes = sorted(self._notes.values(), key=lambda note: (note.file, note.message))
        return [note._replace(times=max(1, note.times)) for note in notes]

    def stop_on_problems(self) -> None:
        """Raise :class:`InputError` with all problems, if there are any."""
        if self.problems:
            raise InputError(self.problems, self.more)


def did_you_mean(name: str, existing: Iterable[object]) -> str:
    """Return ``Did you mean 'x'?`` if a known name is similar, otherwise an empty text."""
    from difflib import get_close_matches

    names = [item for item in existing if isinstance(item, str)]
    close = get_close_matches(name[:80], names, n=1, cutoff=0.6)
    return f"Did you mean '{close[0]}'?" if close else ""


class SchemaError(Struct, frozen=True):
    """A value that a keyword of its schema refuses.

    ``expected`` is the value of the keyword; for ``required`` the name of one missing field, for
    ``additionalProperties`` one unknown key.
    """

    keyword: str
    expected: Any
    value: Any
    schema: Schema
    path: tuple[str | int, ...] = ()


EXTRA = "additionalProperties"  # the keyword of a schema that refuses unknown keys
_BY_HAND = ("/gold.schema.json", "/gold-array.schema.json", "/eval-gates.schema.json", "/rag-server-golden.schema.json")
"""Schemas of files that people write: an example of a missing field helps them."""
_OF_ANSWERS = frozenset(("gold_claim_substr", "gold_citations"))
_OTHER_EVIDENCE = frozenset(("supports", "sections", "relevant_docs", "doc_grades"))
_LONGEST_EXAMPLE = 60
_PLAIN = r"[A-Za-z][A-Za-z0-9_./=-]*"  # a text that YAML needs no quotes for
_MOST = 1000  # errors of one value that are looked at: a hundred are shown


@cache
def load_schema(name: str, parse_float: Callable[[str], Any] = float) -> Schema:
    """Return the schema ``schemas/NAME.schema.json``, whose patterns mean the same in Python as in JSON Schema."""
    with Path(shipped("schemas", f"{name}.schema.json")).open("rb") as file:
        schema: Schema = json.load(file, parse_float=parse_float, object_hook=_with_exact_patterns)
    return schema


def _with_exact_patterns(part: Schema) -> Schema:
    """Make ``$`` in patterns only the end of the text; in Python it also matches before a final line break."""
    if isinstance(pattern := part.get("pattern"), str):
        part["pattern"] = _exact(pattern)
    if "patternProperties" in part:
        part["patternProperties"] = {_exact(pattern): item for pattern, item in part["patternProperties"].items()}
    return part


def _exact(pattern: str) -> str:
    return f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern


def schema_errors(schema: Schema, value: Any) -> list[SchemaError]:
    """Return the errors of a value, none if it is valid; at most a thousand."""
    if is_valid(schema, value, schema):
        return []
    import jsonschema
    import referencing

    base = jsonschema.Draft202012Validator
    types = base.TYPE_CHECKER.redefine("integer", lambda _, item: is_integer(item))  # a Decimal may be whole
    kind: Any = jsonschema.validators.extend(base, type_checker=types)  # type: ignore[no-untyped-call]
    # An empty registry: a $ref to elsewhere fails instead of being fetched.
    validator = kind(schema, registry=referencing.Registry())
    errors = []
    for error in islice(validator.iter_errors(value), _MOST):
        keyword, expected, path = str(error.validator), error.validator_value, tuple(error.absolute_path)
        if keyword == "required":
            # jsonschema raises one error for each missing field and names it only in its message.
            expected = next(name for name in expected if error.message.startswith(repr(name)))
        elif keyword == EXTRA:
            keys = extra_keys(error.schema, error.instance)
            errors += [SchemaError(EXTRA, key, error.instance, error.schema, path) for key in keys]
            continue
        errors.append(SchemaError(keyword, expected, error.instance, error.schema, path))
    return errors[:_MOST]


_WORDS = {
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "number": "a number",
    "integer": "a whole number",
    "null": "null",
}
"""Types in words."""


class RowError(NamedTuple):
    """An error of a row: JSON pointer or column, message, hint, and the schema's keyword that refuses it."""

    where: str
    message: str
    hint: str = ""
    keyword: str = ""


def describe_error(error: SchemaError) -> RowError:
    """Return an error in words."""
    keyword, expected, value, hint = error.keyword, error.expected, error.value, ""
    if keyword == "type":
        kinds = expected if isinstance(expected, list) else [expected]
        message = f"{quoted(value)} is not {' or '.join(_WORDS[kind] for kind in kinds)}"
        hint = "Leave the field out if there is no value." if value is None else ""
    elif keyword == "required":
        message, hint = _missing(error)
    elif keyword == EXTRA:
        known = error.schema.get("properties", {})
        message = f"unknown key {quoted_name(expected, 40)}"
        hint = did_you_mean(expected, known) or f"Known keys: {one_line(', '.join(known), 200)}."
        if expected.isdecimal() and error.value[expected] is None:  # {min: 0,8}
            hint = f"Write a decimal point: 0.{expected[:20]}"
    elif keyword == "enum":
        shown = quoted_name(value) if isinstance(value, str) else quoted(value)
        message = f"{shown} is not one of {', '.join(map(quoted, expected))}"
        hint = did_you_mean(value, expected) if isinstance(value, str) else ""
    elif keyword == "const":
        message = f"{quoted(value)} is not {quoted(expected)}"
    elif keyword == "anyOf":
        required = sorted({name for branch in expected for name in branch.get("required", [])})
        message = "the value does not have an allowed form"
        message = f"one of {', '.join(map(quoted, required))} is required" if required else message
    elif keyword == "pattern":
        message, hint = _no_match(expected, value)
    else:
        templates = _TEMPLATES[keyword]
        template = templates.get(expected if isinstance(expected, int) else None) or templates[None]
        message = template.format(quoted(value), expected)
    stated = error.schema.get(f"x-hint-{keyword}") or error.schema.get("x-hint")
    return RowError(pointer(error.path), message, str(stated or hint), keyword)


def _missing(error: SchemaError) -> tuple[str, str]:
    from difflib import get_close_matches

    name, unknown = error.expected, [key for key in error.value if key not in error.schema.get("properties", {})]
    close = get_close_matches(name, unknown, n=1, cutoff=0.6)
    if close:
        return f"'{name}' is missing", f"Rename {quoted(close[0])} to '{name}'."
    schema = str(error.schema.get("$id", ""))
    if schema.endswith("/verdict.schema.json"):
        return f"'{name}' is missing", "Let rag-eval judge write this file. It imports no verdicts of other tools."
    written_by_hand = schema.endswith(_BY_HAND)
    examples = error.schema["properties"].get(name, {}).get("examples") if written_by_hand else None
    # The list of a gold item without an answer, or with evidence in another field, is empty.
    has_other = name == "gold_citations" and not _OTHER_EVIDENCE.isdisjoint(error.value)
    if examples and (has_other or (name in _OF_ANSWERS and error.value.get("answerable") is False)):
        return f"'{name}' is missing", f"Add {json.dumps(name)}: []"
    example = f", such as {json.dumps(name)}: {json.dumps(examples[0], ensure_ascii=False)}" if examples else "."
    return f"'{name}' is missing", f"Add the field{example}"


def _no_match(pattern: str, value: str) -> tuple[str, str]:
    if pattern == r"\S" or pattern.startswith(r"[^\s"):
        return "the text is blank", ""
    if value.endswith("\n"):
        return "a text or a key ends with a line break, which its pattern does not allow", "Remove it."
    shown = f"{pattern[:-2]}$" if pattern.endswith(r"\Z") else pattern
    return f"{quoted(value)} does not match the pattern {one_line(shown, 200)}", ""


_TEMPLATES: dict[str, dict[int | None, str]] = {
    "minLength": {1: "the text is empty", None: "{0} is shorter than {1} characters"},
    "maxLength": {None: "{0} is longer than {1} characters"},
    "minItems": {None: "the list has fewer than {1} entries"},
    "maxItems": {0: "the list must be empty", None: "the list has more than {1} entries"},
    "minProperties": {1: "the object is empty", None: "the object has fewer than {1} keys"},
    "minimum": {None: "{0} is less than {1}"},
    "maximum": {None: "{0} is more than {1}"},
    "not": {None: "{0} has a character that is not allowed"},
}
"""Messages by keyword and its value; None is any other value. The places are the refused value and the keyword's."""


def _with_example(error: SchemaError) -> RowError:
    """Return an error in words; that of a wrong type has the first example of the field."""
    fault, examples = describe_error(error), error.schema.get("examples")
    if fault.hint or error.keyword != "type" or not examples:
        return fault
    example = json.dumps(examples[0], ensure_ascii=False)
    return fault._replace(hint=f"Write it like {example}") if len(example) <= _LONGEST_EXAMPLE else fault


def describe_in_yaml(error: SchemaError) -> RowError:
    """Return an error of a value in the words of YAML, with the example of its key as YAML."""
    fault, key = describe_error(error), error.path[-1] if error.path else ""
    message = fault.message.replace("is not an object", "is not a mapping")
    hint = fault.hint
    if error.keyword == "required" and (examples := error.schema["properties"][error.expected].get("examples")):
        hint = f"Add the field, such as {error.expected}: {in_flow_style(examples[0])}"
    elif not hint and error.keyword in ("type", "const"):
        examples = error.schema.get("examples")
        if not error.path:
            hint = "Write keys with values, the first one version: 1."
        elif examples and isinstance(key, str):
            hint = f"Write {key}: {in_flow_style(examples[0])}"
    return fault._replace(message=message, hint=hint)


def in_flow_style(value: Any) -> str:
    """Return a value as YAML on one line; gates files know no exponents."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {in_flow_style(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_flow_style, value))}]"
    if isinstance(value, float):
        return f"{value:.15f}".rstrip("0").rstrip(".")
    is_plain = isinstance(value, Decimal) or (isinstance(value, str) and re.fullmatch(_PLAIN, value))
    return str(value) if is_plain else json.dumps(value)


def whole(value: Any) -> Any:
    """Return a number, or each number of an object, as int: JSON Schema accepts 5.0 as an integer."""
    return {name: int(number) for name, number in value.items()} if isinstance(value, dict) else int(value)


class Contract:
    """The schema of a name, and its errors."""

    def __init__(self, name: str, depth: int = 64) -> None:
        self.name, self.depth = name, depth
        self.schema = load_schema(name)
        properties = self.schema.get("properties", {})
        self._known = {"": frozenset(properties)}  # known fields by the field that contains them
        for parent, field in properties.items():
            inner = field if "properties" in field else field.get("items", {})
            if "properties" in inner:
                self._known[parent] = frozenset(inner["properties"])

    def validate(self, data: bytes, decoder: json.JSONDecoder = strict_json.DECODER) -> tuple[Any, list[RowError]]:
        """Return the value of a JSON text without errors, or None with all errors."""
        try:
            value = strict_json.parse(data, self.depth, decoder)
        except strict_json.JsonError as error:
            return None, [RowError(error.where, error.message, error.hint)]
        faults = self.faults(value)
        return (None, faults) if faults else (value, [])

    def faults(self, value: Any) -> list[RowError]:
        """Return the errors of a decoded value."""
        errors = sorted(schema_errors(self.schema, value), key=attrgetter("path"))
        # Nobody corrects a report by hand.
        return list(map(describe_error if self.name == "report" else _with_example, errors))

    def note_unknown_fields(self, row: dict[str, Any], ledger: ProblemCollector, path: str, line: int) -> None:
        """Note the unknown fields of a row, once for each file."""
        for parent, known in self._known.items():
            inner = row.get(parent) if parent else row
            objects = inner if isinstance(inner, list) else [inner]
            for field in sorted({name for item in objects if isinstance(item, dict) for name in item.keys() - known}):
                ledger.unknown_field(path, line, parent, field, known)
