"""Gold items and traces as typed records; the published JSON Schemas define the same records."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import blake2b, sha256
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias, TypeVar, get_args, get_type_hints

from msgspec import Meta, Struct, convert, field
from msgspec.json import encode

NOT_BLANK = r"[^\s\u001c-\u001f\u0085\u00ad\u200b-\u200f\u2060\ufeff]"
LARGEST = 10**15  # the largest whole number and amount that a row may hold
NonEmpty = Annotated[str, Meta(min_length=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
AnyAmount = Annotated[float, Meta(ge=0)]
# Compiled at first use, by re itself: few runs need them.
_INLINE_CITATIONS = r"(?i)citations\s*:\s*\["
_CITATION_LIST = r"(?i)citations\s*+:\s*+\[[^\[\]]*+\]"
_FOOTNOTE = (
    r"\[\^?[0-9]{1,3}\^?(?:\s?[,–-]\s?[0-9]{1,3})*\]|【[^【】]{1,40}】|<sup>\[?[0-9]{1,3}\]?</sup>"
    r"|[\[(](?i:doc(?:ument)?|source|passage|context|chunk|citation|excerpt|ref(?:erence)?)s?\s?[.:#]?\s?"
    r"[0-9]{1,3}(?:\s?(?:,|and|&|–|-)\s?[0-9]{1,3})*[\])]"
)
"""``[3]``, ``[^3]``, ``【4:0†source】``, ``<sup>3</sup>``, ``[Doc 3]``, ``(Source: 3)``."""
_REASONING = (  # of a model, as its chat template marks it: to its end, or to that of the text; "<think> is" is prose
    r"(?s)(?:\s*(?![<\[◁][^\s>\]▷]+[>\]▷] [a-z])"
    r"(?:<(think|thinking|thought|reasoning|seed:think)>.*?(?:</\1>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)"
    r"|◁think▷.*?(?:◁/think▷|\Z)|<\|begin_of_thought\|>.*?(?:<\|end_of_thought\|>|\Z)"
    r"|<\|START_THINKING\|>.*?(?:<\|END_THINKING\|>|\Z)|analysis(?=[A-Z]).*?assistantfinal"
    r"|(?:<\|start\|>assistant)?<\|channel\|>analysis.*?(?:<\|channel\|>final<\|message\|>|\Z)))+\s*(?:<answer>)?"
)
# Of reasoning that the prompt began: the tag follows a sentence or begins a line.
_REASONING_END = r"(?:\A|(?<=[\n.!?…。！？])) ?</think>(?! [a-z])\s*(?:<answer>)?"
_BRACKETED = r"\[([^\[\]]{1,1000})\]"
_SEPARATORS = r"[,\s]+"

_Id = Annotated[str, Meta(max_length=200)]


if TYPE_CHECKING:
    T = TypeVar("T")
    OrAbsent: TypeAlias = T | None
    Count = int
    Grade = int
else:
    # JSON Schema accepts 5.0 as an integer too.
    Count = Annotated[int, Meta(ge=0, le=LARGEST)] | Annotated[float, Meta(ge=0, le=LARGEST, multiple_of=1)]
    Grade = (
        Annotated[int, Meta(ge=-LARGEST, le=LARGEST)] | Annotated[float, Meta(ge=-LARGEST, le=LARGEST, multiple_of=1)]
    )

    class OrAbsent:
        """A field that may be absent from a row, which makes it None. ``null`` is invalid."""

        def __class_getitem__(cls, kind: Any) -> Any:
            """Return the type of the value."""
            return kind


class Support(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """An anchor that survives re-chunking: a heading in a document, and text that must occur there."""

    rel_path: NonEmpty
    heading_path: str
    snippets: tuple[NonEmpty, ...] = ()


class Section(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A document and its section that right citations point at."""

    doc_id: str
    section: str


class Fact(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """Something that the context must contain, in one of several wordings."""

    fact: NonEmpty
    aliases: tuple[NonEmpty, ...] = ()

    @property
    def wordings(self) -> tuple[str, ...]:
        """Return the fact and its aliases."""
        return (self.fact, *self.aliases)


class Attack(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """The mark of a safety case: an attack, or a benign control of one."""

    kind: Literal["input", "output"]
    positive: bool
    category: OrAbsent[str] = None


class Message(Struct, gc=False, forbid_unknown_fields=True):
    """A message of a conversation before its question."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str


class Gold(Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One labelled question. ``None`` means that the row lacks a field; an empty value, that it is empty.

    ``substrings`` are lower-cased, ``citations`` without repeats. The reader sets ``line``.
    """

    qid: Annotated[str, Meta(min_length=1, max_length=200)]
    question: str
    answerable: bool
    substrings: tuple[Annotated[str, Meta(min_length=5, pattern=NOT_BLANK)], ...] = field(name="gold_claim_substr")
    citations: tuple[NonEmpty, ...] = field(name="gold_citations")
    constraints: OrAbsent[tuple[str, ...]] = None
    category: OrAbsent[str] = None
    difficulty: OrAbsent[Literal["easy", "medium", "hard"]] = None
    tags: OrAbsent[tuple[str, ...]] = None
    query_type: OrAbsent[str] = None
    multi_hop: OrAbsent[bool] = None
    meta: OrAbsent[dict[str, str | int | float | bool]] = None
    # The fields from here on are labels that only some metrics read.
    expected_answer: OrAbsent[str] = None
    relevance_grades: OrAbsent[dict[str, Grade]] = None
    relevant_docs: OrAbsent[tuple[NonEmpty, ...]] = None
    doc_grades: OrAbsent[dict[str, Grade]] = None
    supports: OrAbsent[tuple[Support, ...]] = None
    support_groups: OrAbsent[tuple[Annotated[tuple[Count, ...], Meta(min_length=1)], ...]] = field(
        default=None, name="required_support_groups"
    )
    recency_rule: OrAbsent[Literal["cite_newer", "acknowledge_both", "cite_both"]] = field(
        default=None, name="recency_conflict_rule"
    )
    sections: OrAbsent[tuple[Section, ...]] = None
    attack: OrAbsent[Attack] = None
    facts: OrAbsent[tuple[Fact, ...]] = field(default=None, name="gold_facts")
    expected_claims: OrAbsent[tuple[NonEmpty, ...]] = None
    forbidden_claims: OrAbsent[tuple[NonEmpty, ...]] = None
    expected_outcome: OrAbsent[Literal["success", "blocked", "no_results", "uncertain"]] = None
    required_flags: OrAbsent[tuple[str, ...]] = None
    forbidden_flags: OrAbsent[tuple[str, ...]] = None
    min_citations: OrAbsent[Count] = None
    latency_budget: OrAbsent[dict[str, AnyAmount]] = field(default=None, name="latency_budget_ms")
    expected_documents: OrAbsent[tuple[NonEmpty, ...]] = None
    conversation: OrAbsent[Annotated[str, Meta(min_length=1, max_length=200)]] = None
    turn: OrAbsent[Count] = None
    history: OrAbsent[tuple[Message, ...]] = None
    line: int = field(default=0, name=" line")  # a name that no row uses: the reader overwrites it

    def __post_init__(self) -> None:
        """Refuse labels of an unanswerable item; normalize the other ones for comparison."""
        if not self.answerable and (self.substrings or self.citations):
            raise ValueError("an unanswerable item has gold_claim_substr or gold_citations")
        self.substrings = tuple([text.lower() for text in self.substrings])
        if len(self.citations) > 1:
            self.citations = tuple(dict.fromkeys(self.citations))
        # trec_eval uses a grade below 0 for units in the pool without a judgement.
        if self.relevance_grades:
            self.relevance_grades = {name: grade for name, grade in self.relevance_grades.items() if grade >= 0}
        if self.doc_grades:
            self.doc_grades = {name: grade for name, grade in self.doc_grades.items() if grade >= 0}

    @classmethod
    def from_row(cls, row: dict[str, Any], line: int) -> Self:
        """Return the item of a valid decoded row."""
        gold = convert(without_unknown(cls, row)[0], cls)
        gold.line = line
        return gold

    @property
    def is_plain(self) -> bool:
        """True if it has no labels except substrings and citations."""
        return _RARE(self) == _NO_LABELS


_LABELS = Gold.__struct_fields__[Gold.__struct_fields__.index("expected_answer") : -1]
_RARE, _NO_LABELS = attrgetter(*_LABELS), (None,) * len(_LABELS)


def item_hash(source: bytes) -> str:
    """Return the hash of a gold item, from its exact bytes in the file, as sign-off signs it."""
    return f"sha256:{sha256(source).hexdigest()}"


def content_hash(gold: Gold) -> str:
    """Return the hash of a gold item's content: the same for any whitespace, order of keys and spelling of numbers."""
    end = b'," line":%d}' % gold.line if gold.line else b"}"  # the last field
    return blake2b(content_of(gold).removesuffix(end), digest_size=20).hexdigest()  # faster than sha256


def content_of(value: object) -> bytes:
    """Return a gold item or a field as JSON, in one spelling: 5.0 as 5."""
    data = encode(value, order="deterministic")
    return encode(json.loads(data, parse_float=_plain_number)) if b".0" in data else data


def _plain_number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def without_unknown(kind: type[Struct], row: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return a decoded row without unknown fields, and the unknown fields: the position and the name of each.

    The position names the fields that contain the record, such as ``retrievals.chunks``, empty for the row itself.
    """
    if type(row) is not dict:
        return row, []
    known, nested = _fields(kind)
    unknown = [("", name) for name in row if name not in known]
    cleaned = {name: value for name, value in row.items() if name in known} if unknown else row
    for parent in nested.keys() & row.keys():
        inner = row[parent]
        if type(inner) is list:
            items = [without_unknown(nested[parent], item) for item in inner]
            inner, names = [item for item, _ in items], [name for _, fields in items for name in fields]
        else:
            inner, names = without_unknown(nested[parent], inner)
        if names:
            cleaned = {**cleaned, parent: inner}
            unknown += [(f"{parent}.{position}" if position else parent, name) for position, name in names]
    return cleaned, unknown


def known_fields(kind: type[Struct], parent: str) -> frozenset[str]:
    """Return the known fields of a record at a position."""
    for name in parent.split(".") if parent else ():
        kind = _fields(kind)[1][name]
    return _fields(kind)[0]


@cache
def _fields(kind: type[Struct]) -> tuple[frozenset[str], dict[str, type[Struct]]]:
    """Return the field names of a record as in JSON, and the records in its fields."""
    hints = get_type_hints(kind)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    nested = {written: record for name, written in names for record in _records_in(hints[name])}
    return frozenset(kind.__struct_encode_fields__) - {" line"}, nested


def _records_in(kind: Any) -> list[type[Struct]]:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return [kind]
    return [record for inner in get_args(kind) for record in _records_in(inner)]


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
    def recorded(self) -> str:
        """Return the answer as given, with the reasoning of a model before it."""
        return (self.answer or "") if self.answer_json is None else self.answer_json.claim

    @property
    def claim(self) -> str:
        """Return the answer without the reasoning before it, with the space around it."""
        return without_reasoning(self.recorded)

    @property
    def reasoning(self) -> str:
        """Return the reasoning before the answer, with its tags."""
        return self.recorded[: self.recorded.rfind(self.claim)]

    @property
    def citations(self) -> tuple[str, ...] | None:
        """Return the cited ids without repeats; None if no list was given at all."""
        given = self.given_citations()
        return None if given is None else tuple(dict.fromkeys(given))

    def given_citations(self) -> Sequence[str] | None:
        """Return the citations as given, with repeats."""
        if self.answer_json is not None:
            return self.answer_json.citations
        return self.answer_citations if self.answer_citations is not None else inline_citations(self.claim)

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


def without_reasoning(text: str) -> str:
    """Return an answer without the reasoning of a model before it and tags around it; '' if reasoning has no end."""
    if "<" not in text and not text.lstrip().startswith(("[THINK]", "◁think", "analysis")):
        return text
    end = re.match(_REASONING, text)
    if end is None and "</think>" in text and (end := re.search(_REASONING_END, text)):
        before = text[: end.start()]
        end = None if "<think" in before or before.count("```") % 2 else end  # in a block of code
    return text[end.end() :].removesuffix("<|return|>").removesuffix("</answer>") if end else text


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
