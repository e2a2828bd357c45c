"""Context: is what was retrieved worth its place, and does it hold what the answer needs.

Of every item but attacks, refused or not, over the chunks that say their text; a repeated id counts once. Words are
:func:`rag_eval.textual.tokens.tokens`. The order of chunks changes no score: all sums are ``fsum``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, repeat
from math import fsum, log, sqrt
from operator import mul
from typing import TYPE_CHECKING

from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import DECIMALS
from rag_eval.textual.tokens import tokens

if TYPE_CHECKING:
    from rag_eval.cases.case import Case
    from rag_eval.stats.tally import Ratio
    from rag_eval.textual.tokens import Passage

_SEVERAL = "items with two or more chunk texts"


@metric(_SEVERAL, source="enterprise framework", better="lower", scale="real", needs="trace.chunks.text")
def redundancy_ngram(case: Case) -> float | None:
    """How much the chunks repeat each other word for word. Of each pair, the word 3-grams that both have over those of the one that has fewer, as sets; the mean over all pairs. A pair with fewer than three words on a side counts as 0."""  # noqa: E501
    chunks = _several(case)
    if chunks is None:
        return None
    grams = [chunk.trigrams for chunk in chunks]
    return _mean([len(a & b) / (min(len(a), len(b)) or 1) for a, b in combinations(grams, 2)])


@metric(_SEVERAL, source="enterprise framework", better="lower", scale="real", needs="trace.chunks.text")
def redundancy_tfidf(case: Case) -> float | None:
    """How alike the chunks are in their words, whatever the order. The cosine of each pair's tf-idf vectors, fitted on the n chunks of the case: raw counts times ln((1 + n) / (1 + df)) + 1; the mean over all pairs."""  # noqa: E501
    chunks = _several(case)
    return None if chunks is None else _mean_cosine(chunks)


# A ratio, but of thousands of words: the common denominator of exact fractions would grow to thousands of digits.
@metric("items with chunk texts", source="enterprise framework", scale="real", needs="trace.chunks.text")
def unique_token_ratio(case: Case) -> float | None:
    """Share of the words of all chunks that are distinct ones. The more is repeated and the longer the context, the lower."""  # noqa: E501
    if not case.counts or not any(case.chunk_tokens):
        return None
    return len(frozenset[str]().union(*[one.distinct for one in case.passages])) / sum(map(len, case.chunk_tokens))


@metric(
    "items with gold facts whose chunks say their texts",
    source="rag-eval",
    scale="share",
    needs="gold.gold_facts trace.chunks.text",
)
def fact_coverage(case: Case) -> Ratio | None:
    """Share of the gold facts that some chunk holds. A chunk holds a fact when the words of it, or of an alias, stand in it in a row; where nothing was retrieved no fact is held."""  # noqa: E501
    holders = _holders(case)
    return None if holders is None else (sum(map(bool, holders)), len(holders))


@metric(
    "items with gold facts of which some chunk holds one",
    source="enterprise framework",
    better="lower",
    scale="amount",
    needs="gold.gold_facts trace.chunks.text",
    unit="chunks",
)
def fact_dispersion(case: Case) -> float | None:
    """How many chunks hold a gold fact: the mean over the facts that some chunk holds. A chunk that holds a fact in several wordings counts once."""  # noqa: E501
    found = [count for count in _holders(case) or () if count]
    return sum(found) / len(found) if found else None


def _several(case: Case) -> Sequence[Passage] | None:
    return case.passages if case.counts and len(case.passages) > 1 else None


def _mean_cosine(chunks: Sequence[Passage]) -> float:
    """The mean cosine over all pairs, from the words that several chunks share: only those give anything.

    A word gives the sum over all pairs of the product of its weights: half of what the square of their sum has over
    the sum of their squares.
    """
    n, known, several = len(chunks), set[str](), set[str]()
    for chunk in chunks:
        several |= known & chunk.distinct
        known |= chunk.distinct
    counts = [[*map(chunk.counts.get, several, repeat(0))] for chunk in chunks]
    idf = [0.0, *(log((1 + n) / (1 + df)) + 1 for df in range(1, n + 1))]
    weights = [idf[n - column.count(0)] for column in zip(*counts, strict=True)]
    vectors = []
    for chunk, own in zip(chunks, counts, strict=True):
        vector, alone = [*map(mul, own, weights)], chunk.size - sum(map(mul, own, own))
        length = sqrt(fsum([alone * idf[1] ** 2, *map(mul, vector, vector)])) or 1.0
        vectors.append([weight / length for weight in vector])
    sums = [*map(fsum, zip(*vectors, strict=True))]
    products = fsum(map(mul, sums, sums)) - fsum([fsum(map(mul, vector, vector)) for vector in vectors])
    return min(1.0, max(0.0, round(products / (n * (n - 1)), DECIMALS)))


def _mean(numbers: list[float]) -> float:
    return round(fsum(numbers) / len(numbers), DECIMALS)


def _holders(case: Case) -> list[int] | None:
    """By gold fact, how many chunks hold it; None where that cannot be asked."""
    facts, chunks = case.gold.facts, case.trace.chunks
    if not case.counts or not facts or chunks is None or (chunks and not case.chunk_tokens):
        return None
    texts = [f" {' '.join(words)} " for words in case.chunk_tokens]
    wordings = [[_wanted(wording) for wording in fact.wordings] for fact in facts]
    return [sum(any(wanted in text for wanted in own) for text in texts) for own in wordings]


@lru_cache(maxsize=4096)
def _wanted(wording: str) -> str:
    """What a text, its words between spaces, has to hold. A wording without a word is held by none."""
    return f" {' '.join(tokens(wording)) or '?'} "
