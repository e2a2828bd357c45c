"""METRICS: every metric by its name, by metric group in the order of reports."""

from __future__ import annotations

import copyreg
import re
from collections.abc import Iterable
from functools import lru_cache

from rag_eval.common.escaping import quoted
from rag_eval.errors import UsageError
from rag_eval.metrics import answers, context, operations, retrieval, safety
from rag_eval.metrics._metric import Measure, Metric, range_in_words, score_in_words

__all__ = ["Measure", "Metric", "range_in_words", "score_in_words"]  # names of another module that this one offers

ALIASES = {
    "faithfulness": "groundedness",
    "citation_hit_rate": "chr",
    "correct_answer_rate": "precision",
    "unanswerable_accuracy": "abstention_accuracy",
    "abstention_false_positive_rate": "over_refusal",
    "abstention_false_negative_rate": "under_refusal",
    "hit_rate@k": "recall_any@k",
    "hit@k": "recall_any@k",
    "success@k": "recall_any@k",
    "context_recall@k": "recall@k",
    "context_precision@k": "precision@k",
}
"""Names that gates and ``explain`` accept; reports have the metric's own name."""
_HINTS = {
    "accuracy": "Use precision, the share of answers with the right claim and the right citation.",
    "exact_match": "Use precision: an answer is right if it contains a gold substring.",
    "latency": "Name the stage and the statistic: latency_total_ms.p95.",
    "refusal": "Use over_refusal for answerable questions, and under_refusal for the others.",
    "hit": "Write it with a cutoff: recall_any@5.",
    "context_recall": "Write it with a cutoff: recall@5. It uses labelled evidence and no model.",
    "context_precision": "Write it with a cutoff: precision@5, the share of the first 5 that is evidence. "
    "For a value that weighs ranks, use map or ndcg@5.",
    "answer_relevancy": "No metric without a model measures it; judge_relevancy replays recorded verdicts of one.",
    "answer_correctness": "Use precision, which compares with the gold, or judge_correctness for recorded verdicts.",
    "answer_similarity": "No metric here compares meanings; precision and containment compare with the gold.",
    "hallucination": "Use groundedness, unsupported_claims or under_refusal.",
}
CUTOFF = re.compile(r"(.+)@([1-9][0-9]{0,5})", re.ASCII)
"""A name with its cutoff: ``recall@5``."""


def canonical(name: str) -> str:
    """Return the metric's own name for an alias, any other name unchanged.

    >>> canonical("hit_rate@5"), canonical("faithfulness"), canonical("mrr")
    ('recall_any@5', 'groundedness', 'mrr')
    """
    cut = CUTOFF.fullmatch(name)
    if cut is None:
        return ALIASES.get(name, name)
    known = ALIASES.get(f"{cut[1]}@k")
    return known.replace("@k", f"@{cut[2]}") if known else name


def hint(name: str) -> str:
    """Return a suggestion for an unknown metric name; empty if there is none."""
    return _HINTS.get(name.partition("@")[0].removesuffix("_rate"), "")


METRICS: dict[str, Metric] = {
    value.name: value
    for module in (answers, retrieval, context, safety, operations)
    for value in vars(module).values()
    if isinstance(value, Metric)
}
PERSPECTIVES = {
    "answers": "right answers, their form, and the share of questions that got one.",
    "refusals": "refusing if the corpus lacks the answer, and only then.",
    "citations": "references to the evidence, to retrieved chunks and to the right sections.",
    "retrieval": "the evidence among the retrieved chunks, and its rank.",
    "context": "repetition among the retrieved chunks, and the facts in them.",
    "groundedness": "support of the answer by the chunks (faithfulness), sentence by sentence, without a judge.",
    "judge": "recorded verdicts of a language model on the answers. Scoring replays them and calls no model.",
    "safety": "attacks and leaks that the guardrail catches, and leaks in answers.",
    "pipeline": "requirements of the gold item on outcome, flags, citations and latency.",
    "operations": "failures, latency and cost.",
    "index": "gaps in the index. Values come from run.json, once per run; impossible figures have no value.",
}
"""The metric groups in the order of reports, each with its description."""
_PLAIN = {
    f"{metric.name}{suffix}": Measure(f"{metric.name}{suffix}", metric, None, fold)
    for metric in METRICS.values()
    if not metric.cutoff
    for suffix, fold in metric.folds.items()
}


def single_score(name: str, score: float | tuple[float, bool]) -> float:
    """Return the score of one question as a number: a labelled score without its label, or whether a turn is right."""
    if not isinstance(score, (tuple, list)):
        return score
    is_turn = name in METRICS and "turns" in METRICS[name].folds.values()  # its number names the conversation
    return float(score[1]) if is_turn else score[0]


def find(name: str) -> Measure | None:
    """Return the measure of a name in gates and reports: ``chr``, ``recall@5``, ``latency_total_ms.p95``.

    None for an unknown name: a report may come from another version.
    """
    if name in _PLAIN:
        return _PLAIN[name]
    cut = CUTOFF.fullmatch(name)
    metric = METRICS.get(f"{cut[1]}@k") if cut else None
    return Measure(name, metric, int(cut[2])) if metric and cut else None


def measure(name: str) -> Measure:
    """Return the measure of a name; raise UsageError if it is unknown."""
    metric = find(name)
    if metric is None:
        raise UsageError(f"unknown metric '{name[:80]}'. {suggestion(name)}")
    return metric


def measures(cutoffs: Iterable[int], also: Iterable[str] = ()) -> tuple[Measure, ...]:
    """Return every metric, those with a cutoff for each k, each with all its folds, in the order of METRICS.

    ``also`` adds further names.
    """
    wanted = [measure(name) for name in also]
    ks = {name: set(cutoffs) for name, metric in METRICS.items() if metric.cutoff}
    for extra in wanted:
        if extra.k is not None:
            ks[extra.metric.name].add(extra.k)
    chosen: list[Measure] = []
    for name, metric in METRICS.items():
        if metric.cutoff:
            chosen += [Measure(name.replace("@k", f"@{k}"), metric, k) for k in sorted(ks[name])]
        else:
            chosen += [_PLAIN[f"{name}{suffix}"] for suffix in metric.folds]
    return tuple(chosen)


def perspectives_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the named metric groups, in the order of reports; raise UsageError for an unknown name.

    ``context_quality``, the name in the enterprise framework, is ``context``.
    """
    wanted = ["context" if name == "context_quality" else name for name in names]
    if unknown := [name for name in wanted if name not in PERSPECTIVES]:
        known = ", ".join(PERSPECTIVES)
        raise UsageError(f"perspective: {quoted(unknown[0], 40)} is not a metric group. Choose from: {known}")
    return tuple(name for name in PERSPECTIVES if name in wanted)


def column_of(name: str) -> str:
    """Return the column with the scores of a value: ``latency_total_ms`` for ``latency_total_ms.p95``."""
    return _PLAIN[name].column if name in _PLAIN else name


@lru_cache(maxsize=1024)  # asked for each score of a baseline
def of_column(name: str) -> Metric | None:
    """Return the metric of a column, such as ``recall@5`` or ``latency_total_ms``; None if unknown."""
    cut = CUTOFF.fullmatch(name)
    metric = METRICS.get(f"{cut[1]}@k" if cut else name)
    return metric if metric and metric.cutoff == bool(cut) and metric.level == "case" else None


# The name of a metric's function refers to the metric, so another process finds a pickled measure by its name.
copyreg.pickle(Measure, lambda item: (measure, (item.name,)))


def suggestion(name: str) -> str:
    """Suggest a metric for an unknown name: by the names of other tools first, then by spelling."""
    if known_elsewhere := hint(name):
        return known_elsewhere
    from difflib import get_close_matches

    names = [*_PLAIN, *(name.replace("@k", "@5") for name, metric in METRICS.items() if metric.cutoff)]
    known = [*names, *(alias.replace("@k", "@5") for alias in ALIASES)]
    close = [canonical(match) for match in get_close_matches(name[:80], known, n=1, cutoff=0.5)]
    return f"Did you mean '{close[0]}'?" if close else "List them with: rag-eval metrics"
