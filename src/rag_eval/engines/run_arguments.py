"""What the library is called with, held to what the command line takes: anything else is a UsageError."""

from __future__ import annotations

import os
from collections.abc import Iterable
from operator import index
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_MOST = 999_999


def cutoffs(stated: object) -> tuple[int, ...]:
    """A whole number from 1 or several, ascending, each once; none for None."""
    several = stated if isinstance(stated, Iterable) and not isinstance(stated, str) else [stated]
    return () if stated is None else tuple(sorted({_cutoff(one) for one in several}))


def _cutoff(one: Any) -> int:
    try:
        number = 0 if isinstance(one, bool) else index(one)
    except TypeError:
        number = 0
    if not 1 <= number <= _MOST:
        raise UsageError(f"k: {quoted(one, 40)} is no whole number from 1 to {_MOST}. Say 5, or [1, 3, 5]")
    return number


def path(stated: Path, what: str) -> str:
    """A path. An empty one is refused: it would be taken for the usual file, which nobody named."""
    text = os.fsdecode(stated)
    if not text:
        raise UsageError(f"{what}: the path is empty. Name a file")
    return text


def names(stated: object, what: str) -> tuple[str, ...]:
    """A name or several."""
    several = stated if isinstance(stated, Iterable) and not isinstance(stated, str) else [stated]
    return tuple(name(one, what) for one in several)


def fields(stated: Iterable[str]) -> tuple[str, ...]:
    """Return the gold fields that some names mean: ``tag`` is ``tags``, and an unknown name is one of ``meta``."""
    from rag_eval.gates.slices import is_field

    plain = ["tags" if one == "tag" else one for one in stated]
    found = [one if is_field(one) else f"meta.{one}" for one in plain]
    return tuple(dict.fromkeys(found))


def name(stated: object, what: str) -> str:
    """A name."""
    if not isinstance(stated, str):
        raise UsageError(f"{what}: {quoted(stated, 40)} is no name")
    return stated
