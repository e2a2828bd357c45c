"""Why a line is refused: every problem of it, found by exact decoding and by jsonschema."""

from __future__ import annotations

from functools import cache
from itertools import islice
from json import JSONDecoder
from typing import Any

from rag_eval.readers import strict_json
from rag_eval.readers.error_messages import RowError, word
from rag_eval.readers.schemas import load

_MOST = 1000
"""Errors of one value that are looked at: a hundred are shown."""


def explain_line(line: bytes, schema: str, depth: int, decoder: JSONDecoder) -> list[RowError]:
    """Return everything that is wrong with a refused line."""
    try:
        value = strict_json.parse(line, depth, decoder)
    except strict_json.JsonError as error:
        return [RowError(error.where, error.message, error.hint)]
    return explain_value(value, schema)


def explain_value(value: Any, schema: str) -> list[RowError]:
    """Return what jsonschema finds wrong with a decoded value."""
    errors = list(islice(_validator(schema).iter_errors(value), _MOST))
    return [word(error) for error in sorted(errors, key=lambda error: [str(part) for part in error.absolute_path])]


@cache
def _validator(schema: str) -> Any:
    import jsonschema
    import referencing

    # A registry that knows no address: a $ref to elsewhere fails instead of being fetched.
    return jsonschema.Draft202012Validator(load(schema), registry=referencing.Registry())
