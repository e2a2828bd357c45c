"""The nouns: a gold item, a trace, and what is asked of them. Frozen; they can be read from a row and nothing more."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Required

    Row = dict[str, Any]

_INLINE_CITATIONS = re.compile(r"citations\s*:\s*\[([^\]]*)\]", re.IGNORECASE)
_SEPARATORS = re.compile(r"[,\s]+")


class Chunk(TypedDict, total=False):
    """A retrieved passage; only ``id`` is always there."""

    id: Required[str]
    text: str
    doc_id: str
    rel_path: str
    heading_path: str
    section: str
    score: float
    tokens: int


class Support(TypedDict, total=False):
    """An anchor that survives re-chunking: a place in a document, and text that has to stand there."""

    rel_path: Required[str]
    heading_path: Required[str]
    snippets: list[str]


class Section(TypedDict):
    """A document and the section of it that right citations point at."""

    doc_id: str
    section: str


class Gold(NamedTuple):
    """One labelled question. ``None`` says that a field is absent, an empty one says that it is empty."""

    qid: str
    question: str
    answerable: bool
    substrings: tuple[str, ...]  # lower-cased, each at least five characters
    citations: tuple[str, ...]  # repeats removed
    line: int
    expected_answer: str | None = None
    relevance_grades: Mapping[str, int] | None = None
    relevant_docs: tuple[str, ...] | None = None
    doc_grades: Mapping[str, int] | None = None
    supports: tuple[Support, ...] | None = None
    support_groups: tuple[tuple[int, ...], ...] | None = None
    recency_rule: str | None = None
    sections: tuple[Section, ...] | None = None
    attack: Mapping[str, Any] | None = None
    category: str | None = None
    difficulty: str | None = None
    tags: tuple[str, ...] | None = None
    query_type: str | None = None
    meta: Mapping[str, Any] | None = None

    @classmethod
    def from_row(cls, row: Row, line: int) -> Gold:
        """The item of a valid JSONL row."""
        get = row.get
        return cls(
            row["qid"],
            row["question"],
            row["answerable"],
            tuple([text.lower() for text in row["gold_claim_substr"]]),
            tuple(dict.fromkeys(row["gold_citations"])),
            line,
            get("expected_answer"),
            get("relevance_grades"),
            _tuple(get("relevant_docs")),
            get("doc_grades"),
            _tuple(get("supports")),
            _tuple(get("required_support_groups")),
            get("recency_conflict_rule"),
            _tuple(get("sections")),
            get("attack"),
            get("category"),
            get("difficulty"),
            _tuple(get("tags")),
            get("query_type"),
            get("meta"),
        )

    @classmethod
    def from_array_item(cls, row: Row, line: int) -> Gold:
        """The item of a valid element of a JSON-array gold set (``q``, ``gold_ids``, ``gold_claim``)."""
        ids = tuple(dict.fromkeys(row["gold_ids"]))
        return cls(row["qid"], row["q"], row["answerable"], (), ids, line, row.get("gold_claim"))


def item_hash(source: bytes) -> str:
    """The hash of a gold item, from its exact bytes in the file, as sign-off signs it."""
    from hashlib import sha256

    return f"sha256:{sha256(source).hexdigest()}"


class Trace(NamedTuple):
    """What the system under test did with one question.

    ``claim`` is the answer as given (not stripped) and ``citations`` is ``None`` where no list was given at all.
    ``retrieved`` is ranked, best first, repeats removed. ``line`` 0 stands for a trace that is missing.
    """

    qid: str
    run: str | None
    claim: str
    citations: tuple[str, ...] | None
    retrieved: tuple[str, ...]
    line: int
    answered: bool = True  # there was an answer, be it empty
    error: str | None = None
    abstained: bool | None = None
    chunks: tuple[Chunk, ...] | None = None
    scope: Mapping[str, Any] | None = None

    @classmethod
    def from_row(cls, row: Row, qid: str, line: int) -> Trace:
        """The trace of a valid row, under the ``qid`` that pairing found for it."""
        get = row.get
        answer = get("answer_json")
        if answer is not None:
            claim, cited = answer["claim"], answer.get("citations")
        else:
            claim, cited = get("answer", ""), get("citations")
            cited = inline_citations(claim) if cited is None else cited
        chunks, retrieved = get("chunks"), get("retrieved_ids")
        if retrieved is None:
            retrieved = [chunk["id"] for chunk in chunks] if chunks else ()
        return cls(
            qid,
            get("run") or None,
            claim,
            None if cited is None else tuple(dict.fromkeys(cited)),
            tuple(dict.fromkeys(retrieved)),
            line,
            answer is not None or "answer" in row,
            get("error"),
            get("abstained"),
            _tuple(chunks),
            get("scope"),
        )

    @classmethod
    def missing(cls, qid: str, run: str | None) -> Trace:
        """What a gold item without a trace is scored as: an empty, shipped answer."""
        return cls(qid, run, "", None, (), 0, answered=False)


USUAL_GOLD, USUAL_TRACE = "eval/gold.jsonl", "runs/trace.jsonl"
GATES_FILE = "eval-gates.yml"
"""Where the files are looked for when nothing names them."""


class Settings(NamedTuple):
    """What the metrics are told: the refusal token as it is to be written, refusal phrases, the k of the labels.

    ``builtin`` turns on the refusals that :mod:`rag_eval.refusing` recognises.
    """

    token: str = "not in context"
    phrases: tuple[str, ...] = ()
    k: int = 5
    builtin: bool = False


def inline_citations(text: str) -> list[str] | None:
    """The ids of the first ``citations: [a, b]`` in a free-text answer; None when there is no such list."""
    found = _INLINE_CITATIONS.search(text)
    return [part for part in _SEPARATORS.split(found[1]) if part] if found else None


def _tuple(value: list[Any] | None) -> tuple[Any, ...] | None:
    return None if value is None else tuple(value)
