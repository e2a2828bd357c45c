"""Drafts of gold items from traces: what is known of a question, and what a person has to fill in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from rag_eval.cases.case import Case
from rag_eval.cases.pairing import plain_question
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.metrics import measure

Row = dict[str, Any]
KINDS = {
    "failed": "the system failed, or ran out of time",
    "refused": "the system refused",
    "ungrounded": "less than half of the answer is supported by what was retrieved",
    "answered": "an answer without any of these",
}
TO_FILL_IN = ("answerable", "gold_claim_substr", "gold_citations")
_SUPPORTED, _CHUNKS = 0.5, 10


def kind_of(trace: Trace, settings: Settings) -> str:
    """Return which of KINDS a trace is, without knowing the right answer."""
    if trace.error is not None or trace.ok is False or trace.timed_out:
        return "failed"
    gold = Gold("-", trace.q or trace.question, True, (), ())
    case = Case(gold, trace, settings._replace(builtin=True))
    if case.refused:
        return "refused"
    support: Any = measure("claim_support").score(case)
    return "ungrounded" if support is not None and support[0] < _SUPPORTED * support[1] else "answered"


def draft(trace: Trace, kind: str) -> Row:
    """Return the draft of a trace's question; null fields are for a person."""
    question = trace.q or trace.question
    name = sha256(plain_question(question).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    turn = {"conversation": trace.conversation, "turn": trace.turn} if trace.conversation else {}
    return {
        "draft": kind,
        "qid": f"D-{name}",
        "question": question,
        **dict.fromkeys(TO_FILL_IN),
        **{field: value for field, value in turn.items() if value is not None},
        "answer": trace.claim,
        "cited": list(trace.citations or ()),
        "retrieved": [
            {"id": chunk.id, **({"text": chunk.text} if chunk.text is not None else {})}
            for chunk in (trace.chunks or ())[:_CHUNKS]
        ]
        or [{"id": name} for name in trace.retrieved[:_CHUNKS]],
    }


def sampled(found: Mapping[str, Sequence[Row]], size: int, seed: int) -> list[Row]:
    """Draw up to ``size`` drafts, one of each stratum in turn; the order of the traces does not matter."""
    queues = [sorted(rows, key=lambda row: _drawn(seed, row)) for _, rows in sorted(found.items())]
    turns = range(max(map(len, queues), default=0))
    return [queue[turn] for turn in turns for queue in queues if turn < len(queue)][: size or None]


def item(row: Row, answers: Mapping[str, Any]) -> Row:
    """Return the gold item of a draft with what a person said."""
    kept: Row = {field: row[field] for field in ("conversation", "turn") if field in row}
    return {"qid": row["qid"], "question": row["question"], **answers, **kept}


def known_questions(golds: Iterable[Gold], drafts: Iterable[Row]) -> set[str]:
    """Return the questions that need no draft, in plain form."""
    texts = [*(gold.question for gold in golds), *(str(row.get("question", "")) for row in drafts)]
    return set(map(plain_question, texts))


def _drawn(seed: int, row: Row) -> bytes:
    return sha256(f"{seed}:{row['qid']}".encode("utf-8", "surrogatepass")).digest()
