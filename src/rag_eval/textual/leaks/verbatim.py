"""Verbatim passages of a source: a guard against answers that repeat whole passages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

from rag_eval.textual.tokens import passage, tokens

_WORD = re.compile(r"\w+")


def first_run(
    text: str, chunks: Iterable[Sequence[str]], words: int, expected: Iterable[str] = ()
) -> tuple[int, int] | None:
    """Return where ``text`` first has ``words`` words in a row in the order of a chunk; None if nowhere.

    ``chunks`` are tokens. Passages that the ``expected`` texts have too are no leaks. The span covers whole words, or
    the whole text if tokens and words differ.
    """
    long = [chunk for chunk in chunks if len(chunk) >= words] if len(text) >= words else []
    answer = passage(text).tokens if long else []
    shared = shared_runs(answer, long, words)
    shared -= (
        set().union(*(_runs(read := tokens(one), words, range(len(read))) for one in expected)) if shared else set()
    )
    if not shared:
        return None
    place = next(at for at in range(len(answer)) if tuple(answer[at : at + words]) in shared)
    spans = [match.span() for match in _WORD.finditer(text)]
    return (spans[place][0], spans[place + words - 1][1]) if len(spans) == len(answer) else (0, len(text))


def shared_runs(answer: Sequence[str], sources: Iterable[Sequence[str]], words: int) -> set[tuple[str, ...]]:
    """Return the runs of ``words`` tokens that ``answer`` and one of the sources have.

    A run of n tokens has, wherever it begins, a block of (n + 1) // 2 tokens at a multiple of that in the source. So
    the blocks of a source, which do not overlap, are looked up first: mostly none has only words of the answer. Only
    the runs around blocks that the answer has are compared.
    """
    block, shared, known = (words + 1) // 2, set[tuple[str, ...]](), set(answer)
    places = defaultdict[tuple[str, ...], list[int]](list)
    for source in sources if len(answer) >= words else ():
        starts = [at for at in range(0, len(source) - block + 1, block) if source[at] in known]
        blocks = {at: tuple(one) for at in starts if known.issuperset(one := source[at : at + block])}
        if blocks and not places:
            for at in range(len(answer) - block + 1):
                places[tuple(answer[at : at + block])].append(at)
        if common := places.keys() & set(blocks.values()):
            here = _runs(answer, words, chain.from_iterable([places[one] for one in common]))
            shared |= here & _runs(source, words, [at for at, one in blocks.items() if one in common])
    return shared


def _runs(sequence: Sequence[str], length: int, blocks: Iterable[int]) -> set[tuple[str, ...]]:
    """Return the runs of a length that contain a block of half the length from one of these places."""
    most = len(sequence) - length
    reach = length // 2
    starts = {start for at in blocks for start in range(max(0, at - reach), min(at, most) + 1)}
    return {tuple(sequence[start : start + length]) for start in starts}
