"""Numbers of a sentence that no chunk holds, or holds only where the talk is of something else."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.grounding.claims import Part

WITHIN = 10  # words
_BARE = 2  # digits of a number so small that it is found somewhere by chance


def fabricated(part: Part, sources: Sequence[list[str]]) -> list[int]:
    """Which content words of ``part``, by place among them, are numbers without a basis in ``sources``.

    A number of one or two digits has one only where another content word of the sentence stands within ten words of it.
    """
    return [bit for bit in part.numbers if not _based(part.keys[part.content[bit]], part, sources)]


def _based(number: str, part: Part, sources: Sequence[list[str]]) -> bool:
    others = {part.keys[place] for place in part.content} - {number}
    bare = number.isdigit() and len(number) <= _BARE and others
    return any(_stands(number, others if bare else None, source) for source in sources)


def _stands(number: str, others: set[str] | None, source: list[str]) -> bool:
    """Whether ``number`` is in ``source``, near one of ``others`` if they are given."""
    place = -1
    for _ in range(source.count(number)):
        place = source.index(number, place + 1)
        if others is None or not others.isdisjoint(source[max(0, place - WITHIN) : place + WITHIN + 1]):
            return True
    return False
