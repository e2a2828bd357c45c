"""Types of fields that gold and trace records share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

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
    # JSON Schema takes 5.0 for an integer too.
    Count = Annotated[int, Meta(ge=0, le=LARGEST)] | Annotated[float, Meta(ge=0, le=LARGEST, multiple_of=1)]
    Grade = (
        Annotated[int, Meta(ge=-LARGEST, le=LARGEST)] | Annotated[float, Meta(ge=-LARGEST, le=LARGEST, multiple_of=1)]
    )

    class OrAbsent:
        """A field that a row may leave out, which makes it None. ``null`` is refused."""

        def __class_getitem__(cls, kind: Any) -> Any:
            """Return the type that a value must have."""
            return kind
