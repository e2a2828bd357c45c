"""A list of many objects in a JSON document, which need not all be held as they stand there."""

from __future__ import annotations

from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Row = dict[str, Any]


class Halves(NamedTuple):
    """An object in two parts: the first is one dict for all entries in which it is written the same."""

    shared: Row
    own: Row


class Listed(NamedTuple):
    """A list of many objects, and what is made of some of them at a time.

    Each has an ``inner`` object of many numbers, which may come as :class:`Halves`; ``alike`` says of the name of a
    member whether it has the same number in many entries.
    """

    name: str
    inner: str
    alike: Callable[[str], bool]
    made: Callable[[Sequence[Row]], Iterable[Any]]
