"""Types of fields that gold and trace records share."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from msgspec import Meta, Struct

__all__ = ["LARGEST", "Amount", "AnyAmount", "Count", "Fraction", "Grade", "NonEmpty", "OrAbsent"]

LARGEST = 10**15
"""The largest whole number and amount that a row may hold."""

NonEmpty = Annotated[str, Meta(min_length=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
AnyAmount = Annotated[float, Meta(ge=0)]

if TYPE_CHECKING:
    from typing import Optional as OrAbsent

    Count = int
    Grade = int
else:
    # JSON Schema accepts 5.0 as an integer too.
    Count = Annotated[int, Meta(ge=0, le=LARGEST)] | Annotated[float, Meta(ge=0, le=LARGEST, multiple_of=1)]
    Grade = (
        Annotated[int, Meta(ge=-LARGEST, le=LARGEST)] | Annotated[float, Meta(ge=-LARGEST, le=LARGEST, multiple_of=1)]
    )

    class OrAbsent:
        """A field that may be absent from a row, which makes it None. ``null`` is invalid."""

        def __class_getitem__(cls, kind: Any) -> Any:
            """Return the type of the value."""
            return kind


def without_unknown(kind: type[Struct], row: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return a decoded row without unknown fields, and the unknown fields: the position and the name of each.

    The position names the fields that contain the record, such as ``retrievals.chunks``, empty for the row itself.
    """
    if type(row) is not dict:
        return row, []
    known, nested = _fields(kind)
    unknown = [("", name) for name in row if name not in known]
    cleaned = {name: value for name, value in row.items() if name in known} if unknown else row
    for parent in nested.keys() & row.keys():
        value, names = _without_unknown_below(nested[parent], row[parent])
        if names:
            cleaned = {**cleaned, parent: value}
            unknown += [(f"{parent}.{position}" if position else parent, name) for position, name in names]
    return cleaned, unknown


def known_fields(kind: type[Struct], parent: str) -> frozenset[str]:
    """Return the known fields of a record at a position."""
    for name in parent.split(".") if parent else ():
        kind = _fields(kind)[1][name]
    return _fields(kind)[0]


def _without_unknown_below(kind: type[Struct], value: Any) -> tuple[Any, list[tuple[str, str]]]:
    if type(value) is list:
        cleaned = [_without_unknown_below(kind, item) for item in value]
        return [item for item, _ in cleaned], [name for _, names in cleaned for name in names]
    return without_unknown(kind, value)


@cache
def _fields(kind: type[Struct]) -> tuple[frozenset[str], dict[str, type[Struct]]]:
    """Return the field names of a record as in JSON, and the records in its fields."""
    hints = get_type_hints(kind)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    nested = {written: record for name, written in names for record in _records_in(hints[name])}
    return frozenset(kind.__struct_encode_fields__) - {" line"}, nested


def _records_in(kind: Any) -> list[type[Struct]]:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return [kind]
    return [record for inner in get_args(kind) for record in _records_in(inner)]
