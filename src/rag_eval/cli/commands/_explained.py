"""A case as a document: the answer, and the support for each of its sentences; leaked values are masked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rag_eval.cases.labels import label
from rag_eval.metrics import single_score
from rag_eval.stats.tally import as_shown
from rag_eval.textual.leaks import VERBATIM, masked
from rag_eval.textual.segments import MASKED, Mark, Segment, answer_marks, segments

if TYPE_CHECKING:
    from rag_eval.cases.case import Case
    from rag_eval.metrics import Measure
    from rag_eval.textual.grounding import Evidence
    from rag_eval.textual.leaks import Leak

VERSION = 1
"""Goes up when a reader of an earlier document would not understand a later one."""


def document(cases: Sequence[Case], wanted: Sequence[Measure]) -> dict[str, Any]:
    """Return the document of a question: one entry for each run of it."""
    gold = cases[0].gold
    head = {"version": VERSION, "qid": gold.qid, "question": gold.question, "answerable": gold.answerable}
    return {**head, "cases": [_case(case, wanted) for case in cases]}


def _case(case: Case, wanted: Sequence[Measure]) -> dict[str, Any]:
    scores = {item.column: item.score(case) for item in wanted if item.metric.level == "case"}
    sentences = case.evidence
    return {
        "run": case.trace.run or None,
        "label": label(case),
        "refused": case.refused,
        "answer": _pieces(case.claim, [*answer_marks(sentences), *_answer_masks(case)]),
        "sentences": [
            {
                "text": shown(case, sentence.start, sentence.end),
                "start": sentence.start,
                "end": sentence.end,
                "kind": sentence.kind,
                "support": round(sentence.support, 6),
                "supported": sentence.supported,
                "missing": [shown(case, *span) for span in sentence.missing],
                "made_up": [shown(case, *span) for span in sentence.made_up],
                "otherwise": [{"reason": reason, "word": word} for reason, word in otherwise(case, sentence)],
                "chunk": _chunk(sentence, case),
            }
            for sentence in sentences
        ],
        "scores": {
            name: None if score is None else single_score(name, as_shown(score)) for name, score in scores.items()
        },
    }


def _chunk(evidence: Evidence, case: Case) -> dict[str, Any] | None:
    """Return the chunk that supports a sentence best, its index among the chunks with a text, and the span in it."""
    if evidence.chunk is None or evidence.span is None:
        return None
    chunk = [chunk for chunk in case.ranked_chunks if chunk.text is not None][evidence.chunk]
    text = case.chunk_texts[evidence.chunk]
    spans = [Mark(*evidence.span, "best"), *_masks(text, case.leaks)]
    return {"id": chunk.id, "index": evidence.chunk, "span": [*evidence.span], "text": _pieces(text, spans)}


def shown(case: Case, start: int, end: int) -> str:
    """Return the characters of the claim from ``start`` to ``end``, leaked values masked."""
    masks = [
        Mark(max(mark.start, start) - start, min(mark.end, end) - start, mark.state) for mark in _answer_masks(case)
    ]
    return "".join(
        text for text, _ in _hidden(case.claim[start:end], [mark for mark in masks if mark.start < mark.end])
    )


def chunk_shown(case: Case, text: str, span: tuple[int, int]) -> str:
    """Return a span of a chunk, with the values masked that the answer leaks."""
    part = text[slice(*span)]
    return "".join(text for text, _ in _hidden(part, [*_masks(part, case.leaks)]))


def otherwise(case: Case, evidence: Evidence) -> list[tuple[str, str]]:
    """Return the differences at a sentence; a word that is part of a leaked value is masked."""
    leaked = " ".join(leak.text for leak in _values(case.leaks)).lower()
    return [(reason, masked(word) if word.lower() in leaked else word) for reason, word in evidence.mismatches]


def _values(leaks: Sequence[Leak]) -> list[Leak]:
    """Return the leaks that are values; long runs of a source's words are shown, as in the text form."""
    return [leak for leak in leaks if leak.category != VERBATIM]


def _answer_masks(case: Case) -> list[Mark]:
    return [Mark(leak.start, leak.end, MASKED) for leak in _values(case.leaks)]


def _masks(text: str, leaks: Sequence[Leak]) -> Iterator[Mark]:
    """Yield the positions of leaked values in another text."""
    for leak in _values(leaks):
        start = text.find(leak.text)
        while start >= 0:
            yield Mark(start, start + len(leak.text), MASKED)
            start = text.find(leak.text, start + len(leak.text))


def _pieces(text: str, highlights: Sequence[Mark]) -> list[dict[str, str]]:
    return [item._asdict() for item in _hidden(text, highlights)]


def _hidden(text: str, highlights: Sequence[Mark]) -> list[Segment]:
    pieces = segments(text, highlights)
    return [piece._replace(text=masked(piece.text)) if piece.state == MASKED else piece for piece in pieces]
