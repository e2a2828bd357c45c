"""The nouns: a gold item, a trace, and what is asked of them. Frozen; they can be read from a row and nothing more."""

from __future__ import annotations

import re
from functools import cache

from rag_eval.later import Later
from rag_eval.typed import NamedTuple, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Required

    Row = dict[str, Any]

_INLINE_CITATIONS = Later(r"citations\s*:\s*\[", re.IGNORECASE)
_CITATION_LIST = Later(r"citations\s*+:\s*+\[[^\[\]]*+\]", re.IGNORECASE)
_FOOTNOTE = Later(
    r"\[\^?[0-9]{1,3}\^?(?:\s?[,–-]\s?[0-9]{1,3})*\]|【[^【】]{1,40}】|<sup>\[?[0-9]{1,3}\]?</sup>"
    r"|[\[(](?i:doc(?:ument)?|source|passage|context|chunk|citation|excerpt|ref(?:erence)?)s?\s?[.:#]?\s?"
    r"[0-9]{1,3}(?:\s?(?:,|and|&|–|-)\s?[0-9]{1,3})*[\])]"
)
"""``[3]``, ``[^3]``, ``【4:0†source】``, ``<sup>3</sup>``, ``[Doc 3]``, ``(Source: 3)``."""
_SEPARATORS = Later(r"[,\s]+")


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


class Fact(TypedDict, total=False):
    """Something that the context has to hold, in one of several wordings."""

    fact: Required[str]
    aliases: list[str]


class Gold(NamedTuple):
    """One labelled question. ``None`` says that a field is absent, an empty one says that it is empty."""

    qid: str
    question: str
    answerable: bool
    substrings: tuple[str, ...]  # lower-cased, each at least five characters
    citations: tuple[str, ...]  # repeats removed
    line: int
    category: str | None = None
    difficulty: str | None = None
    tags: tuple[str, ...] | None = None
    query_type: str | None = None
    multi_hop: bool | None = None
    meta: Mapping[str, Any] | None = None
    # From here on, what only some metrics look at: see Gold.plain.
    expected_answer: str | None = None
    relevance_grades: Mapping[str, int] | None = None
    relevant_docs: tuple[str, ...] | None = None
    doc_grades: Mapping[str, int] | None = None
    supports: tuple[Support, ...] | None = None
    support_groups: tuple[tuple[int, ...], ...] | None = None
    recency_rule: str | None = None
    sections: tuple[Section, ...] | None = None
    attack: Mapping[str, Any] | None = None
    facts: tuple[Fact, ...] | None = None
    expected_claims: tuple[str, ...] | None = None
    forbidden_claims: tuple[str, ...] | None = None
    expected_outcome: str | None = None
    required_flags: tuple[str, ...] | None = None
    forbidden_flags: tuple[str, ...] | None = None
    min_citations: int | None = None
    latency_budget: Mapping[str, float] | None = None
    expected_documents: tuple[str, ...] | None = None

    @classmethod
    def from_row(cls, row: Row, line: int) -> Gold:
        """The item of a valid JSONL row."""
        substrings = tuple([text.lower() for text in row["gold_claim_substr"]])
        own = (
            row["qid"],
            row["question"],
            row["answerable"],
            substrings,
            tuple(dict.fromkeys(row["gold_citations"])),
            line,
        )
        if len(row) == REQUIRED:  # most items say no more, and there may be millions
            return cls.plainly(*own)
        get = row.get
        return cls(
            *own,
            get("category"),
            get("difficulty"),
            _tuple(get("tags")),
            get("query_type"),
            get("multi_hop"),
            get("meta"),
            get("expected_answer"),
            get("relevance_grades"),
            _tuple(get("relevant_docs")),
            get("doc_grades"),
            _tuple(get("supports")),
            _tuple(get("required_support_groups")),
            get("recency_conflict_rule"),
            _tuple(get("sections")),
            get("attack"),
            _tuple(get("gold_facts")),
            _tuple(get("expected_claims")),
            _tuple(get("forbidden_claims")),
            get("expected_outcome"),
            _tuple(get("required_flags")),
            _tuple(get("forbidden_flags")),
            get("min_citations"),
            get("latency_budget_ms"),
            _tuple(get("expected_documents")),
        )

    @classmethod
    def plainly(
        cls,
        qid: str,
        question: str,
        answerable: bool,
        substrings: tuple[str, ...],
        citations: tuple[str, ...],
        line: int,
    ) -> Gold:
        """The item that says no more than this."""
        return tuple.__new__(cls, (qid, question, answerable, substrings, citations, line, *_ABSENT))

    @property
    def plain(self) -> bool:
        """Whether there is nothing in it but what every item has, and what slices go by."""
        return self[_RARE:] == _NOTHING

    @classmethod
    def from_array_item(cls, row: Row, line: int) -> Gold:
        """The item of a valid element of a JSON-array gold set (``q``, ``gold_ids``, ``gold_claim``)."""
        ids = tuple(dict.fromkeys(row["gold_ids"]))
        # An answerable question without a claim counts 0 in containment there: no answer contains nothing.
        claim = row.get("gold_claim", "" if row["answerable"] else None)
        return cls(row["qid"], row["q"], row["answerable"], (), ids, line, expected_answer=claim)


REQUIRED = 5
"""Fields of a row that every gold item has."""

_ABSENT = tuple(Gold._field_defaults.values())
_RARE = Gold._fields.index("expected_answer")
_NOTHING = (None,) * (len(Gold._fields) - _RARE)


def item_hash(source: bytes) -> str:
    """The hash of a gold item, from its exact bytes in the file, as sign-off signs it."""
    return f"sha256:{_sha256()(source).hexdigest()}"


@cache
def _sha256() -> Callable[[bytes], Any]:
    from hashlib import sha256  # where nothing is hashed it is not loaded; where much is, it is looked up once

    return sha256


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
    ok: bool | None = None
    timed_out: bool | None = None
    confidence: float | None = None
    flags: tuple[str, ...] | None = None
    latency: Mapping[str, float] | None = None
    usage: Mapping[str, Any] | None = None
    guardrail: Mapping[str, Any] | None = None

    @classmethod
    def from_row(cls, row: Row, qid: str, line: int) -> Trace:
        """The trace of a valid row, under the ``qid`` that pairing found for it."""
        get = row.get
        claim, cited = said(row)
        return cls(
            qid,
            get("run") or None,
            claim,
            None if cited is None else tuple(dict.fromkeys(cited)),
            tuple(dict.fromkeys(retrieved(row))),
            line,
            "answer_json" in row or "answer" in row,
            get("error"),
            get("abstained"),
            _tuple(get("chunks")),
            get("scope"),
            get("ok"),
            get("timed_out"),
            get("confidence"),
            _tuple(get("policy_flags")),
            get("latency_ms"),
            get("usage"),
            get("guardrail"),
        )

    @property
    def plain(self) -> bool:
        """Whether there is an answer, and nothing beyond what was answered, cited and retrieved."""
        return self[_TOLD:] == _UNTOLD

    @classmethod
    def missing(cls, qid: str, run: str | None) -> Trace:
        """What a gold item without a trace is scored as: an empty, shipped answer."""
        return cls(qid, run, "", None, (), 0, answered=False)


_TOLD = Trace._fields.index("answered")
_UNTOLD = (True, *(None,) * (len(Trace._fields) - _TOLD - 1))
USUAL_GOLD, USUAL_TRACE = "eval/gold.jsonl", "runs/trace.jsonl"
"""Where the files are looked for when nothing names them."""


OPTIONAL = {
    "gold.attack": "gold.attack",
    "gold.expected_answer": "gold.expected_answer",
    "gold.supports": "gold.supports",
    "gold.recency_conflict_rule": "gold.recency_rule",
    "gold.sections": "gold.sections",
    "gold.gold_facts": "gold.facts",
    "gold.expected_claims": "gold.expected_claims",
    "gold.forbidden_claims": "gold.forbidden_claims",
    "gold.expected_documents": "gold.expected_documents",
    "gold.expected_outcome": "gold.expected_outcome",
    "gold.required_flags": "gold.required_flags",
    "gold.forbidden_flags": "gold.forbidden_flags",
    "gold.min_citations": "gold.min_citations",
    "gold.latency_budget_ms": "gold.latency_budget",
    "trace.citations": "trace.citations",
    "trace.chunks.text": "trace.chunks",
    "trace.chunks.doc_id": "trace.chunks",
    "trace.scope": "trace.scope",
    "trace.timed_out": "trace.timed_out",
    "trace.latency_ms": "trace.latency",
    "trace.usage": "trace.usage",
    "trace.guardrail": "trace.guardrail",
}
"""Fields that a metric may need, as the contract writes them, and where a case has what they say: None if absent."""


class Limits(NamedTuple):
    """Sizes in MiB unless said otherwise; every limit is inclusive."""

    line_mib: int = 16  # one line of a JSONL file
    depth: int = 64  # nested arrays and objects
    lines: int = 10_000_000  # of one file
    whole_mib: int = 1024  # a file that is read whole, as a JSON array is
    expanded_mib: int = 16_384  # what a compressed file may grow to


class Grounding(NamedTuple):
    """From which share of support on a sentence is supported: one that asserts, and one that infers."""

    assertion: float = 0.31
    inference: float = 0.26


class Relevance(NamedTuple):
    """From which grade on something is relevant, and what an item of which nothing is relevant counts."""

    relevant_from: int = 1
    no_relevant: str = "skip"


class Safety(NamedTuple):
    """Above which guardrail score an input counts as detected and as blocked; how many words of a chunk are a leak.

    ``internal_ids`` are regular expressions of names that no answer may hold.
    """

    warn: float = 0.4
    block: float = 0.5
    verbatim_words: int = 50
    internal_ids: tuple[str, ...] = ()


class Settings(NamedTuple):
    """What the metrics are told: the refusal token as it is to be written, refusal phrases, the k of the labels.

    ``prices`` are US dollars for a million tokens, by model and then by ``input`` and ``output``.
    ``builtin`` turns on the refusals that :mod:`rag_eval.textual.refusals` recognises.
    """

    token: str = "not in context"
    phrases: tuple[str, ...] = ()
    k: int = 5
    groundedness: Grounding = Grounding()
    safety: Safety = Safety()
    prices: Mapping[str, Mapping[str, float]] = {}
    builtin: bool = False
    retrieval: Relevance = Relevance()


def said(row: Row) -> tuple[str, list[str] | None]:
    """The answer of a valid trace row as it was given, and what it cites; None where no list was given at all."""
    answer = row.get("answer_json")
    if answer is not None:
        return answer["claim"], answer.get("citations")
    claim, cited = row.get("answer", ""), row.get("citations")
    return claim, inline_citations(claim) if cited is None else cited


def retrieved(row: Row) -> Sequence[str]:
    """The ids that a valid trace row says were retrieved, best first, repeats among them."""
    ids: Sequence[str] | None = row.get("retrieved_ids")
    return [chunk["id"] for chunk in row.get("chunks") or ()] if ids is None else ids


def inline_citations(text: str) -> list[str] | None:
    """The ids of the first ``citations: [a, b]`` in a free-text answer; None when there is no such list."""
    opened = _INLINE_CITATIONS.search(text)
    closed = text.find("]", opened.end()) if opened else -1  # what the first list lacks, no later one has
    if opened is None or closed < 0:
        return None
    return [part for part in _SEPARATORS.split(text[opened.end() : closed]) if part]


def without_citations(text: str, ids: Iterable[str]) -> str:
    """``text`` with as many spaces in the place of its citations: ``[id]`` of known ids, footnotes, the list form."""
    text = _CITATION_LIST.sub(_blank, text)
    for own in ids:
        text = text.replace(f"[{own}]", " " * (len(own) + 2))
    return _FOOTNOTE.sub(_blank, text)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _tuple(value: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if value is None else tuple(value)
