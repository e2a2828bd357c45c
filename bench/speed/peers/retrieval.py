"""Compute only retrieval metrics, in memory, by one library.

    python retrieval.py rag-eval|pytrec_eval|ir_measures|ranx|continuous-eval [--whole]

10,000 queries have 20 retrieved documents each and one to five relevant ones. Each library gets them in its own form,
built before the measurement, and is called once before it (ranx compiles then). The measured call returns the value of
every query and the mean of four metrics: reciprocal rank, precision at 5, recall at 5 and nDCG at 10; with --whole the
last three are of the whole list. Prints the median seconds of several calls and all values as JSON.
"""

import json
import random
import statistics
import sys
import time
from functools import partial

QUERIES, RETRIEVED = 10_000, 20
CALLS = 7
CUT, WHOLE = ("precision@5", "recall@5", "mrr", "ndcg@10"), ("precision@20", "recall@20", "mrr", "ndcg@20")


def queries():
    """Yield the relevant and the retrieved documents of each query, best first; most relevant ones are retrieved."""
    rng = random.Random("retrieval")
    for number in range(QUERIES):
        documents = [f"d{number}-{place}" for place in range(25)]
        relevant = documents[: rng.randint(1, 5)]
        found = [one for one in relevant if rng.random() < 0.85]
        retrieved = found + documents[5 : 5 + RETRIEVED - len(found)]
        rng.shuffle(retrieved)
        yield f"q{number}", relevant, retrieved


def scored(retrieved):
    """Return falling scores, for libraries that sort by them."""
    return {one: float(RETRIEVED - place) for place, one in enumerate(retrieved)}


def ours(names):
    from rag_eval.contract import Settings
    from rag_eval.metrics import measure
    from rag_eval.scoring.case_scorer import metric_scorer
    from rag_eval.stats.tally import mean

    measures = [measure(name) for name in names]
    pairs = [(gold_of(*one), trace_of(*one)) for one in queries()]
    golds = {gold.qid: gold for gold, _ in pairs}

    def call():
        scorer = metric_scorer(golds, measures, Settings())
        scorer.add_traces([trace for _, trace in pairs])
        card = scorer.close()
        # Read the scores of every query, because a scorecard joins them on access.
        scores = [(gold.qid, outcome.scores + outcome.case_scores) for gold, _, outcome, _ in card.cases]
        return card.columns, scores, {name: mean(tally) for name, tally in card.tallies().items()}

    def values(result):
        columns, scores, means = result
        each = {qid: dict(zip(columns, map(number, own), strict=True)) for qid, own in scores}
        return each, {name: float(means[name].number) for name in names}

    return call, values


def gold_of(name, relevant, _):
    from rag_eval.contract import Gold

    row = {"qid": name, "question": name, "answerable": True, "gold_claim_substr": [], "gold_citations": relevant}
    return Gold.from_row(row, 1)


def trace_of(name, _, retrieved):
    from rag_eval.contract import Trace

    row = {"qid": name, "retrieved_ids": retrieved, "answer_json": {"claim": "", "citations": []}}
    return Trace.from_row(row, name, 1)


def number(score):
    return score[0] / score[1] if isinstance(score, tuple) else float(score)


def pytrec_eval(_):
    import pytrec_eval

    kinds = {"precision@5": "P_5", "recall@5": "recall_5", "mrr": "recip_rank", "ndcg@10": "ndcg_cut_10"}
    asked = {"P.5", "recall.5", "recip_rank", "ndcg_cut.10"}
    qrels = {name: dict.fromkeys(relevant, 1) for name, relevant, _ in queries()}
    runs = {name: scored(retrieved) for name, _, retrieved in queries()}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, asked)

    def call():
        each = evaluator.evaluate(runs)
        return each, {key: statistics.fmean([one[kind] for one in each.values()]) for key, kind in kinds.items()}

    def values(result):
        each, means = result
        return {name: {key: one[kind] for key, kind in kinds.items()} for name, one in each.items()}, means

    return call, values


def ir_measures(_):
    import ir_measures
    from ir_measures import RR, P, R, nDCG

    kinds = {str(kind): key for kind, key in zip((P @ 5, R @ 5, RR, nDCG @ 10), CUT, strict=True)}
    qrels = {name: dict.fromkeys(relevant, 1) for name, relevant, _ in queries()}
    runs = {name: scored(retrieved) for name, _, retrieved in queries()}
    evaluator = ir_measures.evaluator([P @ 5, R @ 5, RR, nDCG @ 10], qrels)

    def values(result):
        each = {}
        for one in result.per_query:
            each.setdefault(one.query_id, {})[kinds[str(one.measure)]] = one.value
        return each, {kinds[str(kind)]: value for kind, value in result.aggregated.items()}

    return lambda: Listed(*evaluator.calc(runs)), values


class Listed:
    """The result of ir_measures with its values for each query, which ir_measures computes only on request."""

    def __init__(self, aggregated, per_query):
        self.aggregated, self.per_query = aggregated, list(per_query)


def ranx(_):
    import ranx

    kinds = {"precision@5": "precision@5", "recall@5": "recall@5", "mrr": "mrr", "ndcg@10": "ndcg@10"}
    qrels = ranx.Qrels({name: dict.fromkeys(relevant, 1) for name, relevant, _ in queries()})
    runs = ranx.Run({name: scored(retrieved) for name, _, retrieved in queries()})

    def call():
        each = ranx.evaluate(qrels, runs, list(kinds.values()), return_mean=False)
        return each, {key: float(each[kind].mean()) for key, kind in kinds.items()}

    def values(result):
        each, means = result
        names = sorted(qrels.keys())  # the order of evaluate()
        return {
            name: {key: float(each[kind][place]) for key, kind in kinds.items()} for place, name in enumerate(names)
        }, means

    return call, values


def continuous_eval(_):
    import nltk

    nltk.download = lambda *_, **__: False  # its import downloads word lists, which these metrics do not need
    from continuous_eval.metrics.retrieval import ExactChunkMatch, PrecisionRecallF1, RankedRetrievalMetrics

    kinds = dict(zip(WHOLE, ("context_precision", "context_recall", "reciprocal_rank", "ndcg"), strict=True))
    asked = [kind(matching_strategy=ExactChunkMatch()) for kind in (PrecisionRecallF1, RankedRetrievalMetrics)]
    rows = [(name, retrieved, relevant) for name, relevant, retrieved in queries()]

    def call():
        each = {name: asked[0].compute(*row) | asked[1].compute(*row) for name, *row in rows}
        return each, {key: statistics.fmean([one[kind] for one in each.values()]) for key, kind in kinds.items()}

    def values(result):
        each, means = result
        return {name: {key: one[kind] for key, kind in kinds.items()} for name, one in each.items()}, means

    return call, values


LIBRARIES = {
    "rag-eval": ours,
    "pytrec_eval": pytrec_eval,
    "ir_measures": ir_measures,
    "ranx": ranx,
    "continuous-eval": continuous_eval,
}


def timed(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def main():
    whole = "--whole" in sys.argv
    began = time.perf_counter()
    call, values = LIBRARIES[sys.argv[1]](WHOLE if whole else CUT)
    each, means = values(call())
    ready = time.perf_counter() - began
    seconds = statistics.median([timed(one) for one in [partial(call)] * CALLS])
    numbers = {f"{name} {key}": value for name, found in each.items() for key, value in found.items()}
    print(json.dumps({"seconds": seconds, "ready": ready, "numbers": numbers | means}))


if __name__ == "__main__":
    main()
