"""Retrieval: the evidence among the retrieved chunks, and its rank.

Answerable items only. Repeated ids count once, at their first place. With unique ids the values equal trec_eval's
``recall_k``, ``P_k``, ``recip_rank``, ``map`` and ``ndcg_cut_k``.
"""

from __future__ import annotations

from functools import partial
from math import fsum, log2
from typing import Any

from rag_eval.cases import Case
from rag_eval.cases.ranking import Ranking
from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import Ratio

ranking_metric = partial(metric, depends_on="ranking")
_LABELLED = "answerable items with relevance labels"


@metric(
    "answerable items with supports and a scoped search",
    source="core metrics",
    better="lower",
    needs="gold.supports trace.scope",
)
def scope_miss(case: Case) -> bool | None:
    """Share of scoped searches that chose no folder with a gold support."""
    scope = case.trace.scope
    if not case.is_answerable or not case.gold.supports or scope is None or scope.mode == "off":
        return None
    folders = [folder.strip("/").split("/") if folder.strip("/") else [] for folder in scope.folders]
    paths = [support.rel_path.strip("/").split("/") for support in case.gold.supports]
    return not any(path[: len(folder)] == folder for path in paths for folder in folders)


@ranking_metric("answerable items", source="reference scorer (recall@k)", cutoff=True)
def recall_all(case: Case, k: int) -> bool | None:
    """Share of items with all evidence among the first k: every gold citation, or a member of every support group. An item without relevance labels scores 1."""  # noqa: E501
    if not case.is_answerable:
        return None
    ranking = case.ranking
    return True if ranking is None else ranking.complete_at is not None and ranking.complete_at <= k


@ranking_metric(_LABELLED, source="core metrics; also hit rate, success@k", cutoff=True)
def recall_any(case: Case, k: int) -> bool | None:
    """Hit rate: share of items with at least one relevant chunk among the first k."""
    ranking = _labelled(case)
    return None if ranking is None else bool(ranking.first_ranks) and ranking.first_ranks[0] <= k


@ranking_metric(_LABELLED, source="trec_eval (recall_k)", scale="share", cutoff=True)
def recall(case: Case, k: int) -> Ratio | None:
    """Share of the relevant chunks that are among the first k."""
    ranking = _labelled(case)
    return None if ranking is None else _ratio(_within(ranking.first_ranks, k), ranking.relevant)


@ranking_metric(_LABELLED, source="trec_eval (P_k)", scale="share", cutoff=True)
def precision(case: Case, k: int) -> Ratio | None:
    """Share of the first k chunks that are relevant. The divisor is k, not the number of retrieved chunks."""
    ranking = _labelled(case)
    return None if ranking is None else (_within(ranking.matching, k), k)


@ranking_metric(_LABELLED, source="enterprise framework", scale="share", cutoff=True)
def f1(case: Case, k: int) -> Ratio | None:
    """Harmonic mean of precision and recall among the first k. It is 0 if both are 0."""
    ranking = _labelled(case)
    if ranking is None:
        return None
    matching, relevant_found = _within(ranking.matching, k), _within(ranking.first_ranks, k)
    total = matching * ranking.relevant + relevant_found * k
    return (2 * matching * relevant_found, total) if total else (0, 1)


@ranking_metric(_LABELLED, source="trec_eval (recip_rank)", scale="share")
def mrr(case: Case) -> Ratio | None:
    """Mean reciprocal rank: 1 over the rank of the first relevant chunk. It is 0 if none was retrieved."""
    ranking = _labelled(case)
    if ranking is None:
        return None
    return (1, ranking.first_ranks[0]) if ranking.first_ranks else (0, 1)


@ranking_metric(_LABELLED, source="trec_eval (map)", scale="real")
def map(case: Case) -> float | None:  # noqa: A001 - the field's name for mean average precision
    """Mean average precision: precision at the rank of each relevant chunk, averaged over all relevant chunks. If a chunk contains several supports, precision is at most 1."""  # noqa: E501
    ranking = _labelled(case)
    if ranking is None:
        return None
    precisions = [min(index, rank) / rank for index, rank in enumerate(ranking.first_ranks, 1)]
    return fsum(precisions) / (ranking.relevant or 1)


@ranking_metric(_LABELLED, source="trec_eval (Rprec)", scale="share")
def r_precision(case: Case) -> Ratio | None:
    """Share of the first R chunks that are relevant; R is the number of relevant chunks."""
    ranking = _labelled(case)
    return None if ranking is None else _ratio(_within(ranking.first_ranks, ranking.relevant), ranking.relevant)


@ranking_metric("answerable items with grades", source="trec_eval (bpref)", scale="real")
def bpref(case: Case) -> float | None:
    """Binary preference: how rarely judged irrelevant chunks are ranked above relevant ones. Unjudged chunks do not count, so a new retriever has no disadvantage."""  # noqa: E501
    ranking = _labelled(case)
    if ranking is None or ranking.irrelevant is None:
        return None
    maximum = min(ranking.irrelevant, ranking.relevant) or 1
    above = [min(sum([other < rank for other in ranking.rejected]), ranking.relevant) for rank in ranking.first_ranks]
    return fsum([1 - number / maximum for number in above]) / (ranking.relevant or 1)


@ranking_metric(
    "answerable items with grades and retrieved chunks", source="rag-eval; also judged@k", scale="share", cutoff=True
)
def judged(case: Case, k: int) -> Ratio | None:
    """Share of the first k chunks that have a grade. If it falls, recall, precision and nDCG count more unjudged chunks as irrelevant."""  # noqa: E501
    ranking = case.ranking if case.is_answerable else None
    if ranking is None or ranking.irrelevant is None or not ranking.depth:
        return None
    graded = {rank for rank, _ in ranking.gains if rank <= k}
    return len(graded.union(rank for rank in ranking.first_ranks if rank <= k)), min(k, ranking.depth)


@ranking_metric(
    "answerable items with a positive grade or label", source="trec_eval (ndcg_cut_k)", scale="real", cutoff=True
)
def ndcg(case: Case, k: int) -> float | None:
    """Normalised discounted cumulative gain among the first k. Linear gain with discount log2(rank + 1), divided by the ideal order of all graded chunks, cut at k."""  # noqa: E501
    ranking = case.ranking if case.is_answerable else None
    if ranking is None or not (ranking.ideal or (ranking.irrelevant is not None and ranking.counts)):
        return None
    if not ranking.ideal:
        return 0.0
    gained = fsum([gain / log2(rank + 1) for rank, gain in ranking.gains if rank <= k])
    return gained / fsum([gain / log2(rank + 1) for rank, gain in enumerate(ranking.ideal[:k], 1)])


_HOPS: dict[str, Any] = {"source": "rag-eval", "needs": "trace.retrievals", "settings": "retrieval"}
_HOPPED = "answerable items with relevance labels, where the trace has retrievals"


@metric(_HOPPED, scale="share", **_HOPS)
def union_recall(case: Case) -> Ratio | None:
    """Share of the relevant chunks that all retrievals of an answer found together. Ids that retrieved_ids lacks do not count."""  # noqa: E501
    ranking = _labelled(case)
    if ranking is None or case.trace.retrievals is None:
        return None
    return _ratio(case.hops[-1] if case.hops else 0, ranking.relevant)


@metric(_HOPPED, scale="share", cutoff=True, **_HOPS)
def hop_recall(case: Case, k: int) -> Ratio | None:
    """Share of the relevant chunks that the first k retrievals of an answer found together. With fewer retrievals, all count."""  # noqa: E501
    ranking = _labelled(case)
    if ranking is None or case.trace.retrievals is None:
        return None
    return _ratio(case.hops[:k][-1] if case.hops else 0, ranking.relevant)


@metric(_HOPPED, scale="count", better="lower", unit="retrievals", **_HOPS)
def first_evidence_hop(case: Case) -> int | None:
    """Number of the first retrieval with a relevant chunk. If no retrieval has one, it is one more than their number, and at least 2."""  # noqa: E501
    if _labelled(case) is None or case.trace.retrievals is None:
        return None
    none = max(len(case.hops), 1) + 1
    return next((number for number, count in enumerate(case.hops, 1) if count), none)


@metric(_HOPPED + " and one at least", scale="share", better="lower", **_HOPS)
def wasted_hops(case: Case) -> Ratio | None:
    """Share of the retrievals of an answer that found no new relevant chunk."""
    if _labelled(case) is None or not case.trace.retrievals:
        return None
    wasted = sum(count == before for before, count in zip((0, *case.hops), case.hops, strict=False))
    return wasted, len(case.hops)


def _labelled(case: Case) -> Ranking | None:
    ranking = case.ranking if case.is_answerable else None
    return ranking if ranking is not None and ranking.counts else None


def _ratio(part: int, whole: int) -> Ratio:
    return (part, whole) if whole else (0, 1)


def _within(ranks: tuple[int, ...], k: int) -> int:
    return sum([rank <= k for rank in ranks])
