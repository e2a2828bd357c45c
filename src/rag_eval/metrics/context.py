"""Context: repetition among the retrieved chunks, and the facts in them.

They apply to every item except attacks, refused or not, and use the chunks with a text; a repeated id counts once.
Words are :func:`rag_eval.textual.tokens.tokens`. The order of chunks changes no score: all sums are ``fsum``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, repeat
from math import fsum, log, sqrt
from operator import mul

from rag_eval.cases import Case
from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import DECIMALS, Ratio
from rag_eval.textual.tokens import passage, tokens

_REMEMBERED = 1 << 9  # lists of chunks
_SEVERAL = "items with two or more chunk texts"
_FACTS = "gold.gold_facts trace.chunks.text"


@metric(_SEVERAL, source="enterprise framework", better="lower", scale="real", needs="trace.chunks.text")
def redundancy_ngram(case: Case) -> float | None:
    """Verbatim overlap of the chunks, as a mean over all pairs. The overlap of a pair is the number of common word 3-grams divided by the number in the chunk with fewer. A pair with fewer than three words on a side counts as 0."""  # noqa: E501
    chunks = _several(case)
    return None if chunks is None else _mean_overlap(chunks)


@metric(_SEVERAL, source="enterprise framework", better="lower", scale="real", needs="trace.chunks.text")
def redundancy_tfidf(case: Case) -> float | None:
    """Similarity of the chunks' words, in any order, as a mean over all pairs. It is the cosine of their tf-idf vectors, fitted on the n chunks of the case: raw counts times ln((1 + n) / (1 + df)) + 1."""  # noqa: E501
    chunks = _several(case)
    return None if chunks is None else _shared_words(chunks)[2]


# A float: the common denominator of exact fractions of thousands of words would have thousands of digits.
@metric("items with chunk texts", source="enterprise framework", scale="real", needs="trace.chunks.text")
def unique_token_ratio(case: Case) -> float | None:
    """Share of distinct words among the words of all chunks. Repetition and longer contexts lower it."""
    distinct, count, _ = _shared_words(case.chunk_texts) if case.counts else (0, 0, 0)
    return distinct / count if count else None


@metric("items with gold facts, with chunk texts", source="rag-eval", scale="share", needs=_FACTS)
def fact_coverage(case: Case) -> Ratio | None:
    """Share of the gold facts that the chunks contain. A chunk contains a fact if the words of the fact or of an alias occur in it consecutively. Without retrieved chunks the score is 0."""  # noqa: E501
    holders = _holders(case)
    return None if holders is None else (sum(map(bool, holders)), len(holders))


@metric(
    "items with a gold fact in some chunk",
    source="enterprise framework",
    better="lower",
    scale="amount",
    needs=_FACTS,
    unit="chunks",
)
def fact_dispersion(case: Case) -> float | None:
    """Mean number of chunks per gold fact, over the facts that occur. A chunk with several wordings of a fact counts once."""  # noqa: E501
    counts = [count for count in _holders(case) or () if count]
    return sum(counts) / len(counts) if counts else None


def _several(case: Case) -> tuple[str, ...] | None:
    return case.chunk_texts if case.counts and len(case.chunk_texts) > 1 else None


# Several systems often answer a question from the same chunks.
@lru_cache(maxsize=_REMEMBERED)
def _mean_overlap(chunks: tuple[str, ...]) -> float:
    """Return the mean share of word 3-grams that two chunks have in common."""
    grams = [passage(chunk).trigrams for chunk in chunks]
    overlaps = [len(a & b) / (min(len(a), len(b)) or 1) for a, b in combinations(grams, 2)]
    return round(fsum(overlaps) / len(overlaps), DECIMALS)


@lru_cache(maxsize=_REMEMBERED)
def _shared_words(texts: tuple[str, ...]) -> tuple[int, int, float]:
    """Return the number of distinct words and of all words of the chunks, and the mean cosine over all pairs of chunks.

    Only words that several chunks share add to the cosine. A word adds the sum over all pairs of the product of its
    weights: half of the difference between the square of their sum and the sum of their squares.
    """
    chunks = [*map(passage, texts)]
    n, known, several, count = len(chunks), set[str](), set[str](), sum([len(chunk.tokens) for chunk in chunks])
    for chunk in chunks:
        several |= known & chunk.distinct
        known |= chunk.distinct
    if n < 2:
        return len(known), count, 0.0
    rows = [[*map(chunk.counts.get, several, repeat(0))] for chunk in chunks]
    idf = [0.0, *(log((1 + n) / (1 + df)) + 1 for df in range(1, n + 1))]
    weights = [idf[n - column.count(0)] for column in zip(*rows, strict=True)]
    vectors, squares = [], []
    for chunk, row in zip(chunks, rows, strict=True):
        vector = [*map(mul, row, weights)]
        square = fsum(map(mul, vector, vector))
        length = sqrt(idf[1] ** 2 * (chunk.size - sum(map(mul, row, row))) + square) or 1.0
        vectors.append([weight / length for weight in vector])
        squares.append(square / length**2)
    sums = [*map(fsum, zip(*vectors, strict=True))]
    products = fsum(map(mul, sums, sums)) - fsum(squares)
    return len(known), count, min(1.0, max(0.0, round(products / (n * (n - 1)), DECIMALS)))


def _holders(case: Case) -> list[int] | None:
    """Return for each gold fact the number of chunks that contain it; None if the metric does not apply."""
    facts, chunks = case.gold.facts, case.trace.chunks
    if not case.counts or not facts or chunks is None or (chunks and not case.chunk_tokens):
        return None
    texts = [f" {' '.join(words)} " for words in case.chunk_tokens]
    wordings = [[_wanted(wording) for wording in fact.wordings] for fact in facts]
    return [sum(any(wanted in text for wanted in wording_list) for text in texts) for wording_list in wordings]


@lru_cache(maxsize=4096)
def _wanted(wording: str) -> str:
    """Return the pattern of a wording in a text; a wording without words matches nothing."""
    return f" {' '.join(tokens(wording)) or '?'} "
