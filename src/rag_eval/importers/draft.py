"""The options of a conversion, and a trace as its source records it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag_eval.importers import Row

Place = tuple[str, int]  # path and line of a record


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """Options for facts that a foreign file does not contain."""

    questions: Mapping[str, Sequence[str]] | None = None  # qids of a gold set by question
    qids: frozenset[str] = frozenset()  # of the same gold set
    by_turn: Mapping[tuple[str, int], str] | None = None  # its qids by conversation and turn
    qid: str = ""  # JSON Pointers, '' for none
    question: str = ""
    answer: str = ""
    chunks: str = ""
    chunk_id: str = ""
    doc_id: str = ""
    by_text: bool = False  # chunks get the same ids as reference texts of gold sets
    citations: str = "none"  # or brackets, numbers
    run: str = ""
    retriever: str = ""  # the name of the span whose output is the retrieved chunks
    unanswerable: tuple[str, ...] = ()  # expected answers of unanswerable questions
    since: str = ""  # ISO 8601; earlier traces are left out
    until: str = ""  # ISO 8601; later traces are left out
    last_only: bool = False
    turns: str = ""  # or "last": read the last turn of a conversation
    answers: str = ""  # a file of qid and answer
    corpus: str = ""  # a file of chunk texts


@dataclass(slots=True)
class Draft:
    """A trace as its source records it; ``None`` for unknown fields."""

    place: Place
    source: str  # the source's id of the trace
    question: str | None = None
    answer: str | None = None
    chunks: list[Row] | None = None
    retrievals: list[Row] | None = None  # if there were several
    conversation: str | None = None
    turn: int = 0
    turns: int = 0  # of the conversation in all files
    citations: list[str] | None = None
    qid: str | None = None
    run: str | None = None
    start_ns: int | None = None
    error: str | None = None
    failure: str | None = None  # the message of a failure that left an answer
    unread: tuple[str, ...] = ()  # keys of an output without a known answer
    ok: bool | None = None
    abstained: bool | None = None
    policy_flags: list[str] = field(default_factory=list)
    latency_ms: dict[str, float] = field(default_factory=dict)
    usage: Row = field(default_factory=dict)

    def is_empty(self) -> bool:
        """Return whether the source records nothing that a metric reads."""
        return not (self.question or self.qid or self.answer or self.chunks or self.error)


def number_turns(drafts: Iterable[Draft]) -> None:
    """Number the turns of each conversation in order, if their source states none."""
    conversations: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        if draft.conversation and not draft.turns:
            conversations[draft.conversation].append(draft)
    for turns in conversations.values():
        for index, draft in enumerate(turns, 1):
            draft.turn = draft.turn or index
            draft.turns = max(len(turns), draft.turn)
