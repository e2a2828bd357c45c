"""What a schema's refusal is called in words: found, expected, what to do. Never more than 80 characters of data."""

from __future__ import annotations

# jsonschema types what a keyword holds as "anything or unset"; here the keyword is always set.
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rag_eval.common.escaping import one_line, quoted

ValidationError = Any

_TYPES = {
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "number": "a number",
    "integer": "a whole number",
    "null": "null",
}


EXTRA = "additionalProperties"
"""The keyword of a schema that refuses unknown keys."""


class RowError(NamedTuple):
    """One thing wrong with a row: JSON pointer or column, message, hint, and the schema's keyword that refuses it."""

    where: str
    message: str
    hint: str = ""
    keyword: str = ""


# In Python's patterns ``$`` stands before a line break at the end as well; in the quick validator's it does not.
LINE_BREAK = RowError("", "a text or a key ends with a line break, which its pattern does not allow", "Remove it.")


def word(error: ValidationError) -> RowError:
    """A refusal by ``jsonschema`` in our words."""
    keyword = str(error.validator)
    message, hint = _WORDS.get(keyword, _other)(error)
    return RowError(pointer(error.absolute_path), message, _own_hint(error) or hint, keyword)


def unknown_key(error: ValidationError, key: str, *, hint: bool = True) -> RowError:
    """Return the fault of one unknown key; a ``hint`` costs a search for similar names."""
    known = error.schema.get("properties", {})
    text = (_own_hint(error) or did_you_mean(key, known) or _all(known)) if hint else ""
    return RowError(pointer((*error.absolute_path, key)), f"unknown key {quoted(key, 40)}", text, EXTRA)


def pointer(path: Iterable[str | int]) -> str:
    """The JSON pointer of ``path``; the document itself is the empty string."""
    parts = (one_line(str(part), 60).replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts)


def did_you_mean(name: str, known: Iterable[object]) -> str:
    """Return ``Did you mean 'x'?`` if a known name is close, otherwise nothing."""
    from difflib import get_close_matches

    names = [one for one in known if isinstance(one, str)]
    close = get_close_matches(name[:80], names, n=1, cutoff=0.6)
    return f"Did you mean '{close[0]}'?" if close else ""


def _own_hint(error: ValidationError) -> str:
    schema = error.schema if isinstance(error.schema, dict) else {}
    return str(schema.get(f"x-hint-{error.validator}", "") or schema.get("x-hint", ""))


def _type(error: ValidationError) -> tuple[str, str]:
    kinds = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    expected = " or ".join(_TYPES.get(str(kind), str(kind)) for kind in kinds)
    hint = "Leave the field out where there is no value." if error.instance is None else ""
    return f"{quoted(error.instance)} is not {expected}", hint


def _required(error: ValidationError) -> tuple[str, str]:
    from difflib import get_close_matches

    # jsonschema raises one error a missing field and names it only in its message.
    name = next(name for name in error.validator_value if error.message.startswith(repr(name)))
    present = [key for key in error.instance if key not in error.schema.get("properties", {})]
    close = get_close_matches(name, present, n=1, cutoff=0.6)
    return f"'{name}' is missing", f"Rename {quoted(close[0])} to '{name}'." if close else "Add the field."


def _extra(error: ValidationError) -> tuple[str, str]:
    known, extra = error.schema.get("properties", {}), unknown_keys(error)
    hints = [hint for hint in (did_you_mean(key, known) for key in extra[:3]) if hint]
    names = ", ".join(quoted(key, 40) for key in extra[:3]) + (", …" if len(extra) > 3 else "")
    return f"unknown key {names}", " ".join(hints) or _all(known)


def _all(known: Iterable[str]) -> str:
    return f"Known keys: {one_line(', '.join(known), 200)}."


def unknown_keys(error: ValidationError) -> list[str]:
    """The keys that an ``additionalProperties`` refuses, in the order of the file."""
    known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
    return [key for key in error.instance if key not in known and not any(re.search(one, key) for one in patterns)]


def _short(error: ValidationError) -> tuple[str, str]:
    if error.validator_value == 1:
        return "the text is empty", ""
    return f"{quoted(error.instance)} is shorter than {error.validator_value} characters", ""


def _long(error: ValidationError) -> tuple[str, str]:
    return f"{quoted(error.instance)} is longer than {error.validator_value} characters", ""


def _few(error: ValidationError) -> tuple[str, str]:
    return f"the list has fewer than {error.validator_value} entries", ""


def _many(error: ValidationError) -> tuple[str, str]:
    if error.validator_value == 0:
        return "the list must be empty", ""
    return f"the list has more than {error.validator_value} entries", ""


def _enum(error: ValidationError) -> tuple[str, str]:
    allowed = ", ".join(quoted(value) for value in error.validator_value)
    close = did_you_mean(error.instance, error.validator_value) if isinstance(error.instance, str) else ""
    return f"{quoted(error.instance)} is none of {allowed}", close


def _const(error: ValidationError) -> tuple[str, str]:
    return f"{quoted(error.instance)} is not {quoted(error.validator_value)}", ""


def _low(error: ValidationError) -> tuple[str, str]:
    return f"{quoted(error.instance)} is less than {error.validator_value}", ""


def _high(error: ValidationError) -> tuple[str, str]:
    return f"{quoted(error.instance)} is more than {error.validator_value}", ""


def _unlike(error: ValidationError) -> tuple[str, str]:
    if error.validator_value == r"\S" or error.validator_value.startswith(r"[^\s"):
        return "the text is blank", ""
    return _other(error)


def _any_of(error: ValidationError) -> tuple[str, str]:
    options = [branch.get("required", []) for branch in error.validator_value if isinstance(branch, dict)]
    names = sorted({name for option in options for name in option})
    return (f"none of {', '.join(map(quoted, names))} is there", "") if names else ("the value fits no form", "")


def _foreign(error: ValidationError) -> tuple[str, str]:
    return f"{quoted(error.instance)} holds a character that does not belong there", ""


def _other(error: ValidationError) -> tuple[str, str]:
    return one_line(f"does not satisfy '{error.validator}': {error.message}", 80), ""


_WORDS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "type": _type,
    "required": _required,
    EXTRA: _extra,
    "minLength": _short,
    "maxLength": _long,
    "minItems": _few,
    "maxItems": _many,
    "enum": _enum,
    "const": _const,
    "minimum": _low,
    "maximum": _high,
    "anyOf": _any_of,
    "pattern": _unlike,
    "not": _foreign,
}
