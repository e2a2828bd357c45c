"""The texts of the retrieved chunks: repetition and facts in them, and how far answers follow from them.

Metrics of the context apply to every item except attacks, refused or not, and use the chunks with a text; a repeated id
counts once. Words are :func:`rag_eval.textual.tokens.tokens`. The order of chunks changes no score: all sums are
``fsum``. Groundedness compares sentences with chunks (docs/groundedness.md), a judge's verdicts are replayed
(docs/judge.md).
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import combinations, repeat
from math import fsum, log, sqrt
from operator import mul
from typing import Any

from rag_eval.cases import Case
from rag_eval.contract import MOST
from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import DECIMALS, Ratio
from rag_eval.textual.tokens import passage, tokens

groundedness_metric = partial(metric, group="groundedness", source="enterprise framework")
judge_metric = partial(metric, group="judge")
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


_CHECKED = "answers with chunk texts and a sentence to check"
_COUNT: dict[str, Any] = {"better": "lower", "scale": "count", "folds": {"": "mean", ".total": "total"}}
_TEXTS = "trace.chunks.text"


@groundedness_metric(_CHECKED, scale="share", needs="trace.chunks.text", settings="refusal groundedness", version=11)
def claim_support(case: Case) -> Ratio | None:
    """Share of the checked sentences of an answer that the chunks support. A sentence is supported if its groundedness reaches `groundedness.assertion` (`groundedness.inference` for sentences with may, might or likely), no number or name in it is made up, and the chunks do not deny it. Questions, pleasantries, headings, transitions, code, citations and statements about gaps in the sources are not checked."""  # noqa: E501
    verdicts = case.verdicts
    return (sum(verdicts), len(verdicts)) if verdicts else None


@groundedness_metric(_CHECKED, settings="refusal groundedness", unit="sentences", needs=_TEXTS, version=11, **_COUNT)
def unsupported_claims(case: Case) -> int | None:
    """Number of checked sentences of an answer that the chunks do not support."""
    verdicts = case.verdicts
    return len(verdicts) - sum(verdicts) if verdicts else None


@groundedness_metric("answers with chunk texts", unit="numbers", needs=_TEXTS, version=11, **_COUNT)
def numeric_fabrication(case: Case) -> int | None:
    """Number of made-up numbers in an answer: distinct numbers that are in no chunk. 1,000 is 1000, 15% is 15 percent, three is 3. A number of one or two digits must occur within ten words of a content word of its sentence. Numbers of the question, numbers of list items, versions, decades, cited years and counts of listed things are not made up."""  # noqa: E501
    if case.grounded is None or not case.claim:
        return None
    return len({item.sentence.keys[position] for item in case.grounded for position in item.made_up})


@groundedness_metric("answered items with expected claims", scale="share", needs="gold.expected_claims", version=10)
def expected_claims_found(case: Case) -> Ratio | None:
    """Share of the expected claims that an answer makes. It makes a claim if its sentences have nearly all words of the claim and all its numbers, and do not deny it."""  # noqa: E501
    claims = case.gold.expected_claims
    if not claims or case.refused or not case.counts:
        return None
    return sum(_makes(case, claim) for claim in claims), len(claims)


@groundedness_metric("answered items with forbidden claims", better="lower", needs="gold.forbidden_claims", version=11)
def forbidden_claims_made(case: Case) -> bool | None:
    """Share of answers that make a forbidden claim. An answer makes a claim if it has nearly all words of the claim and all its numbers, and does not deny it."""  # noqa: E501
    claims = case.gold.forbidden_claims
    if not claims or case.refused or not case.counts or not case.claim:
        return None
    return any(_makes(case, claim) for claim in claims)


@groundedness_metric(
    "answers with chunk texts and a content word",
    source="rag-eval",
    version=10,
    scale="real",
    needs="trace.chunks.text",
    settings="refusal",
)
def groundedness(case: Case) -> float | None:
    """Faithfulness: support of an answer by the chunks, as a signal for regression gates and not as a probability. It is the mean of three shares: content words that are in the chunks, pairs of neighbouring words that are neighbours there, and pairs of neighbouring content words within ten words of each other there. On three public sets with human labels the area under the ROC curve is .938 to .951. Thresholds do not transfer from one system to another."""  # noqa: E501
    from rag_eval.textual.grounding import groundedness

    values = groundedness(case.grounded or ())
    return None if values is None else round(values, DECIMALS)


def _makes(case: Case, claim: str) -> bool:
    from rag_eval.textual.grounding import makes

    return makes(case.prose, claim)


_POINTS: dict[str, Any] = {"settings": "refusal judge", "scale": "count", "unit": "points", "maximum": MOST}


@judge_metric("answers with chunk texts and a verdict", source="core metrics (groundedness, 0-5)", **_POINTS)
def judge_groundedness(case: Case) -> int | None:
    """Mean score of groundedness from 0 to 5. The judge rates the support of the answer's claims by the chunk texts; 5 also requires a citation for every major claim."""  # noqa: E501
    return case.verdict.groundedness if case.verdict and case.chunk_texts else None


@judge_metric("answered answerable items with a verdict", source="core metrics (correctness, 0-5)", **_POINTS)
def judge_correctness(case: Case) -> int | None:
    """Mean score of correctness from 0 to 5. The judge rates correctness and completeness, given the question, the chunk texts and the expected answer if there is one."""  # noqa: E501
    return case.verdict.correctness if case.verdict and case.is_answerable else None


@judge_metric(
    "answers with a verdict", source="RAG-server framework (answer_relevancy)", scale="share", settings="refusal judge"
)
def judge_relevancy(case: Case) -> Ratio | None:
    """Mean relevancy of the answer to the question. The judge gives 0 to 5 points, which count as shares of 5."""
    return (case.verdict.relevancy, 5) if case.verdict else None


@judge_metric(
    "answers with chunk texts and a verdict",
    source="core metrics (unsupported_claims)",
    settings="refusal judge",
    unit="claims",
    **_COUNT,
)
def judge_unsupported_claims(case: Case) -> int | None:
    """Number of claims of an answer that the chunk texts do not support, as the judge lists them."""
    return len(case.verdict.unsupported_claims) if case.verdict and case.chunk_texts else None
