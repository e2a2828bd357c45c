"""Runs of a source's own words: a guard against answers that hand out whole passages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rag_eval.textual.tokens import tokens

_WORD = re.compile(r"\w+")


def first_run(
    text: str, chunks: Iterable[Sequence[str]], words: int, expected: Iterable[str] = ()
) -> tuple[int, int] | None:
    """From where to where ``text`` first has ``words`` words as one chunk has them; None if nowhere.

    ``chunks`` are tokens. Runs that the ``expected`` texts have as well may be said. The span is that of whole words,
    and of the whole text where tokens and words differ.
    """
    long = [chunk for chunk in chunks if len(chunk) >= words] if len(text) >= words else []
    said = tokens(text) if long else []
    shared = shared_runs(said, long, words)
    shared -= set().union(*(_runs(tokens(one), words) for one in expected)) if shared else set()
    if not shared:
        return None
    place = next(at for at in range(len(said)) if tuple(said[at : at + words]) in shared)
    spans = [found.span() for found in _WORD.finditer(text)]
    return (spans[place][0], spans[place + words - 1][1]) if len(spans) == len(said) else (0, len(text))


def shared_runs(said: Sequence[str], sources: Iterable[Sequence[str]], words: int) -> set[tuple[str, ...]]:
    """The runs of ``words`` tokens that ``said`` and one of the sources have.

    A run of n tokens holds, wherever it begins, a block of (n + 1) // 2 tokens at a multiple of that in the source. So
    the blocks of a source, which do not overlap, are looked up first: mostly none is there.
    """
    block, found = (words + 1) // 2, set[tuple[str, ...]]()
    known = frozenset(said) if len(said) >= words else frozenset()
    for source in sources if known else ():
        blocks = [source[at : at + block] for at in range(0, len(source) - block + 1, block)]
        blocks = [one for one in blocks if known.issuperset(one)]
        if blocks and not _runs(said, block).isdisjoint(map(tuple, blocks)):
            found |= _runs(said, words) & _runs(source, words)
    return found


def _runs(sequence: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(sequence[at : at + length]) for at in range(len(sequence) - length + 1)}
