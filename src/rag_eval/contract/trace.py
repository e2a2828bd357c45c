"""Traces: the recorded answers of the system under test."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, Struct, convert, field

from rag_eval.contract.gold import Amount, Count, Fraction, NonEmpty, OrAbsent, without_unknown

# Compiled at first use, by re itself: few runs need them.
_INLINE_CITATIONS = r"(?i)citations\s*:\s*\["
_CITATION_LIST = r"(?i)citations\s*+:\s*+\[[^\[\]]*+\]"
_FOOTNOTE = (
    r"\[\^?[0-9]{1,3}\^?(?:\s?[,–-]\s?[0-9]{1,3})*\]|【[^【】]{1,40}】|<sup>\[?[0-9]{1,3}\]?</sup>"
    r"|[\[(](?i:doc(?:ument)?|source|passage|context|chunk|citation|excerpt|ref(?:erence)?)s?\s?[.:#]?\s?"
    r"[0-9]{1,3}(?:\s?(?:,|and|&|–|-)\s?[0-9]{1,3})*[\])]"
)
"""``[3]``, ``[^3]``, ``【4:0†source】``, ``<sup>3</sup>``, ``[Doc 3]``, ``(Source: 3)``."""
_BRACKETED = r"\[([^\[\]]{1,1000})\]"
_SEPARATORS = r"[,\s]+"

_Id = Annotated[str, Meta(max_length=200)]


class Chunk(Struct, gc=False, forbid_unknown_fields=True):
    """A retrieved passage."""

    id: str
    text: OrAbsent[str] = None
    doc_id: OrAbsent[str] = None
    rel_path: OrAbsent[str] = None
    heading_path: OrAbsent[str] = None
    section: OrAbsent[str] = None
    score: OrAbsent[float] = None
    tokens: OrAbsent[Count] = None


class Retrieval(Struct, gc=False, forbid_unknown_fields=True):
    """One of several retrievals for an answer: its query, its results, and its duration."""

    query: OrAbsent[str] = None
    ids: OrAbsent[tuple[str, ...]] = None
    chunks: OrAbsent[tuple[Chunk, ...]] = None
    ms: OrAbsent[Amount] = None

    @property
    def retrieved(self) -> tuple[str, ...]:
        """Return the ids of its results."""
        return tuple([chunk.id for chunk in self.chunks or ()]) if self.ids is None else self.ids


class Answer(Struct, gc=False, forbid_unknown_fields=True):
    """An answer as claim and citations."""

    claim: str
    citations: OrAbsent[tuple[str, ...]] = None


class Usage(Struct, gc=False, forbid_unknown_fields=True):
    """The cost of an answer, or the tokens to calculate it from."""

    model: OrAbsent[str] = None
    input_tokens: OrAbsent[Count] = None
    output_tokens: OrAbsent[Count] = None
    cost_usd: OrAbsent[Amount] = None


class Scope(Struct, gc=False, forbid_unknown_fields=True):
    """The part of the corpus that was searched."""

    mode: Literal["off", "on", "on_with_fallback"] = "off"
    folders: tuple[str, ...] = ()


class Guardrail(Struct, gc=False, forbid_unknown_fields=True):
    """The verdict of the system's guardrail."""

    score: OrAbsent[Fraction] = None
    blocked: OrAbsent[bool] = None
    leaks: OrAbsent[tuple[str, ...]] = None


class Source(Struct, gc=False, forbid_unknown_fields=True):
    """The tool that recorded a trace, and its id there, to find the trace again."""

    tool: OrAbsent[str] = None
    id: OrAbsent[str] = None


class Trace(Struct, gc=False, forbid_unknown_fields=True):
    """The answer of the system under test to one question, with everything recorded about it.

    ``None`` means that the row lacks a field. ``qid`` is that of the gold item once the trace is paired. The reader
    sets ``line``; 0 means that there is no trace.
    """

    qid: _Id = ""
    q_id: _Id = ""
    case_id: _Id = ""
    q: str = ""
    question: str = ""
    run: str = ""
    conversation: _Id = ""
    turn: OrAbsent[Count] = None
    ts: OrAbsent[float] = None
    retrieved_ids: OrAbsent[tuple[str, ...]] = None
    answer_json: OrAbsent[Answer] = None
    answer: OrAbsent[str] = None
    answer_citations: OrAbsent[tuple[str, ...]] = field(default=None, name="citations")
    error: OrAbsent[NonEmpty] = None
    abstained: OrAbsent[bool] = None
    chunks: OrAbsent[tuple[Chunk, ...]] = None
    scope: OrAbsent[Scope] = None
    ok: OrAbsent[bool] = None
    timed_out: OrAbsent[bool] = None
    confidence: OrAbsent[Fraction] = None
    flags: OrAbsent[tuple[str, ...]] = field(default=None, name="policy_flags")
    latency: OrAbsent[dict[str, Amount]] = field(default=None, name="latency_ms")
    usage: OrAbsent[Usage] = None
    guardrail: OrAbsent[Guardrail] = None
    source: OrAbsent[Source] = None
    retrievals: OrAbsent[tuple[Retrieval, ...]] = None
    line: int = field(default=0, name=" line")  # a name that no row uses: the reader overwrites it

    def __post_init__(self) -> None:
        """Refuse a trace with neither an answer nor an error; fill missing fields from all its retrievals."""
        if self.answer_json is None and self.answer is None and self.error is None:
            raise ValueError("a trace needs answer_json, answer or error")
        if self.retrievals is None:
            return
        if self.retrieved_ids is None:
            ids = [name for retrieval in self.retrievals for name in retrieval.retrieved]
            self.retrieved_ids = tuple(dict.fromkeys(ids))
        if self.chunks is None and any([retrieval.chunks is not None for retrieval in self.retrievals]):
            chunks: dict[str, Chunk] = {}
            for retrieval in self.retrievals:
                for chunk in retrieval.chunks or ():
                    chunks.setdefault(chunk.id, chunk)
            self.chunks = tuple(chunks.values())
        self.retrievals = tuple([Retrieval(one.query, one.retrieved, None, one.ms) for one in self.retrievals])

    @classmethod
    def from_row(cls, row: dict[str, Any], qid: str, line: int) -> Self:
        """Return the trace of a valid decoded row, paired with the gold item ``qid``."""
        trace = convert(without_unknown(cls, row)[0], cls)
        trace.qid, trace.line = qid, line
        return trace

    @staticmethod
    def missing(qid: str, run: str = "") -> "Trace":
        """Return the trace for a gold item without one: an empty answer that is no refusal."""
        return _MissingTrace(qid=qid, run=run)

    @property
    def answered(self) -> bool:
        """True if there is an answer, even an empty one."""
        return self.answer_json is not None or self.answer is not None

    @property
    def claim(self) -> str:
        """Return the answer as given, with the space around it."""
        return (self.answer or "") if self.answer_json is None else self.answer_json.claim

    @property
    def citations(self) -> tuple[str, ...] | None:
        """Return the cited ids without repeats; None if no list was given at all."""
        given = self.given_citations()
        return None if given is None else tuple(dict.fromkeys(given))

    def given_citations(self) -> Sequence[str] | None:
        """Return the citations as given, with repeats."""
        if self.answer_json is not None:
            return self.answer_json.citations
        return self.answer_citations if self.answer_citations is not None else inline_citations(self.answer or "")

    @property
    def retrieved(self) -> tuple[str, ...]:
        """Return the retrieved ids, best first, without repeats."""
        return tuple(dict.fromkeys(self.given_retrieved()))

    def given_retrieved(self) -> Sequence[str]:
        """Return the retrieved ids as given, with repeats."""
        if self.retrieved_ids is not None:
            return self.retrieved_ids
        return [chunk.id for chunk in self.chunks or ()]


class _MissingTrace(Trace):
    """A trace that does not exist, so that no field is required."""

    def __post_init__(self) -> None:
        pass


def inline_citations(text: str) -> list[str] | None:
    """Return the ids of the first ``citations: [a, b]`` in a free-text answer; None if there is no such list."""
    opened = re.search(_INLINE_CITATIONS, text)
    closed = text.find("]", opened.end()) if opened else -1  # no later list has what the first one lacks
    if opened is None or closed < 0:
        return None
    return [part for part in re.split(_SEPARATORS, text[opened.end() : closed]) if part]


def without_citations(text: str, ids: Iterable[str]) -> str:
    """Replace the citations in a text by as many spaces: ``[id]`` of known ids, footnotes, the list form."""
    text = re.sub(_CITATION_LIST, _blank, text)
    known = {*ids}
    text = re.sub(_BRACKETED, lambda match: _blank(match) if match[1] in known else match[0], text)
    for name in known:
        if "[" in name or "]" in name:
            text = text.replace(f"[{name}]", " " * (len(name) + 2))
    return re.sub(_FOOTNOTE, _blank, text)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
