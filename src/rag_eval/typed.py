"""What classes need of ``typing`` when they are defined, without loading it: each start of the program would pay.

It takes as long to load as argparse, and its named tuples compile the annotation of each of their fields, which are
hundreds. To a type checker all of this is ``typing``'s own.
"""

from __future__ import annotations

from itertools import repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeVar

    T = TypeVar("T", bound=tuple[Any, ...])

    from typing import NamedTuple as NamedTuple
    from typing import Protocol as Protocol
    from typing import TypedDict as TypedDict
else:
    from collections import namedtuple

    _OF_THE_CLASS = {"__module__", "__annotations__", "__qualname__"}

    class _Fields(type):
        """Makes a named tuple in place of a class."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, members)
            fields = members.get("__annotations__", {})
            defaults = [members[field] for field in fields if field in members]
            made = namedtuple(name, fields, defaults=defaults, module=members["__module__"])  # noqa: PYI024
            made.__annotations__ = fields
            for key, value in members.items():
                if key not in _OF_THE_CLASS and key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Fields):
        """The base of a class whose annotated names are the fields of a tuple; those with a value have a default."""

    class Protocol:
        """The base of a class that says what others have to be able to do."""

    class TypedDict:
        """The base of a class that says what stands in a dict; nothing is made of it."""

        def __init_subclass__(cls, *, total: bool = True) -> None:
            """Take what ``typing`` takes."""


def filled(kind: type[T], columns: Iterable[Iterable[Any]]) -> Iterator[T]:
    """Named tuples of the columns of their fields: without a call in Python for each, for there may be millions."""
    return map(tuple.__new__, repeat(kind), zip(*columns, strict=True))
