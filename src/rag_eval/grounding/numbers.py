"""Numbers of a sentence that no chunk holds, or holds only where the talk is of something else."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_eval.grounding.claims import Part

WITHIN = 10  # words
_MOST = 64  # places of a number that are looked at
_BARE = 2  # digits of a number so small that it is found somewhere by chance


def fabricated(part: Part, found: int, sources: Sequence[list[str]]) -> list[int]:
    """Which content words of ``part``, by place among them, are numbers without a basis in ``sources``.

    ``found`` has a bit for each content word that stands in some source. A number of one or two digits has a basis only
    where another content word of the sentence stands within ten words of it.
    """
    content = frozenset([part.keys[place] for place in part.content])
    based: dict[str, bool] = {}
    for bit in part.numbers:
        number = part.keys[part.content[bit]]
        if number not in based:
            based[number] = bool(found >> bit & 1) and _based(number, content, sources)
    return [bit for bit in part.numbers if not based[part.keys[part.content[bit]]]]


def _based(number: str, content: frozenset[str], sources: Sequence[list[str]]) -> bool:
    if not number.isdigit() or len(number) > _BARE or len(content) == 1:
        return True
    return any(_stands(number, content, source) for source in sources)


def _stands(number: str, content: frozenset[str], source: list[str]) -> bool:
    """Whether ``number`` is in ``source`` near another of ``content``; one all over the source counts as near."""
    count, place = source.count(number), -1
    for _ in range(min(count, _MOST)):
        place = source.index(number, place + 1)
        near = content.intersection(source[max(0, place - WITHIN) : place + WITHIN + 1])
        if len(near) > 1:  # the number itself, and another
            return True
    return count > _MOST
