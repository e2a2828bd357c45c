"""Gold and traces as TREC judgements and runs, for which trec_eval and pytrec_eval give the same values."""

from __future__ import annotations

import re

from rag_eval.exporters import Contents, retrieved_of

_SPACE = re.compile(r"\s+")


def write(contents: Contents) -> dict[str, str]:
    """Return ``qrels.txt`` of the answerable items, and ``run.txt`` with a tag for each run.

    Relevance is the grade of ``relevance_grades``, otherwise 1 for each gold citation. The score in a run is the number
    of documents minus the rank, so that trec_eval keeps the order of the trace.
    """
    qrels, runs = [], []
    for gold in contents.gold:
        if gold["answerable"] and not gold.get("attack"):
            grades = gold.get("relevance_grades") or dict.fromkeys(gold["gold_citations"], 1)
            qrels += [f"{_word(gold['qid'])} 0 {_word(name)} {grade}" for name, grade in grades.items()]
    for gold, trace in contents.pairs():
        ids = list(dict.fromkeys(retrieved_of(trace)))
        if gold.get("answerable"):
            tag = _word(trace.get("run") or "rag-eval")
            topic = _word(gold["qid"])
            runs += [
                f"{topic} Q0 {_word(name)} {index} {len(ids) - index + 1} {tag}" for index, name in enumerate(ids, 1)
            ]
    return {"qrels.txt": "".join(f"{line}\n" for line in qrels), "run.txt": "".join(f"{line}\n" for line in runs)}


def _word(text: str) -> str:
    """Return a text as one column: TREC separates columns by white space."""
    return _SPACE.sub("_", text) or "_"
