"""Numbers that the chunks write otherwise than the claim: they are read as the claim writes them.

Only where a number would be called made up, or another one: then ``35 000``, ``drei`` or ``17:30`` bear out ``35000``,
``3`` or ``5:30 pm``. What is said alike anyway is compared as it is.
"""

from __future__ import annotations

from itertools import takewhile

from rag_eval.grounding.lexicon import NUMBERS_ELSEWHERE, SAID
from rag_eval.grounding.words import key
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rag_eval.grounding.claims import Part

_WORDS = {number: [*map(key, words.split())] for number, words in NUMBERS_ELSEWHERE.items()}
_GROUP = 3  # digits between two separators
_NOON = 12
_AFTERNOON = frozenset({"pm", "p"})  # "p.m." is two words


class _Way(NamedTuple):
    """What a chunk writes, and what stands in its place: the claim's way."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]


def alike(
    parts: Sequence[Part],
    lacking: Iterable[tuple[Part, list[int]]],
    sources: list[list[str]],
    held: Collection[str],
) -> list[list[str]] | None:
    """``sources`` with numbers in the way of the sentences ``parts``; None where they hold none of them in any way.

    ``lacking`` are the numbers that a place has not, by their own among the content words of their sentence, ``held``
    the words of the sources. What the claim says itself is never replaced.
    """
    known = [
        _Way(theirs, ours)
        for part, bits in lacking
        for bit in bits
        for theirs, ours in _ways(part.keys, part.content[bit])
        if theirs[0] in held and all([word in held for word in theirs])
    ]
    if known:
        said = frozenset([word for part in parts for word in part.keys])
        known = [way for way in known if said.isdisjoint({*way.theirs} - {*way.ours})]
    read = sources
    for way in known:
        read = [_changed(source, way) for source in read]
    return read if any([new is not old for new, old in zip(read, sources, strict=True)]) else None


def _changed(source: list[str], way: _Way) -> list[str]:
    """``source`` with the other way in its place, filled up so that words stay where they are as far as can be."""
    places = _places(source, way.theirs)
    if not places:
        return source
    size, end, found = len(way.theirs), 0, list[str]()
    filled = [*way.ours, *[SAID] * (size - len(way.ours))]
    for place in places:
        if place >= end:
            found += [*source[end:place], *filled]
            end = place + size
    return [*found, *source[end:]]


def _places(source: list[str], run: tuple[str, ...]) -> list[int]:
    """Where ``source`` holds ``run``."""
    place, found = -1, list[int]()
    for _ in range(source.count(run[0])):
        place = source.index(run[0], place + 1)
        if tuple(source[place : place + len(run)]) == run:
            found.append(place)
    return found


def _ways(keys: list[str], place: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Other ways to write the number that stands at a place, each with the claim's."""
    number = keys[place]
    own = (number,)
    for word in _WORDS.get(number, ()):
        yield (word,), own
    for theirs in _separated(number):
        yield theirs, own
    if _is_group(number):
        yield from _joined(keys, place)
        if len(number) < _GROUP:
            yield from _clocks(keys, place)


def _separated(number: str) -> Iterator[tuple[str, ...]]:
    """``35000`` as ``35 000`` and ``35.000``; ``1.250`` as 1250 and 1.25, whichever it is."""
    if number.isdigit():
        if len(number) > _GROUP:
            groups = f"{int(number):,}".split(",")
            yield tuple([group.lstrip("0") or "0" for group in groups])
            yield ("_".join(groups),)
        return
    front, _, back = number.partition("_")
    yield (f"{front}_{back.ljust(_GROUP, '0')}",)
    if len(back) == _GROUP:
        yield (f"{front}_{back.rstrip('0')}".rstrip("_"),)
        yield (front + back,)


def _joined(keys: list[str], place: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """``35 000`` as ``35000`` and ``35.000``, if a number stands beside others that may be groups of it."""
    before = [*takewhile(_is_group, reversed(keys[:place]))][::-1]
    run = (*before, *takewhile(_is_group, keys[place:]))
    if len(run) > 1:
        groups = [run[0], *[group.zfill(_GROUP) for group in run[1:]]]
        yield ("".join(groups),), run
        yield ("_".join(groups),), run


def _is_group(word: str) -> bool:
    return len(word) <= _GROUP and word.isdigit()


def _clocks(keys: list[str], place: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """``5:30 pm`` as ``17:30`` and the other way round."""
    hour, behind = int(keys[place]), keys[place + 1 : place + 3]
    if 0 < hour < _NOON and not _AFTERNOON.isdisjoint(behind):
        yield (str(hour + _NOON),), (keys[place],)
    if _NOON < hour < 2 * _NOON:
        for rest in (["pm"], ["p", "m"], [*behind[:1], "pm"], [*behind[:1], "p", "m"]):
            yield (str(hour - _NOON), *rest), (keys[place], *rest)
