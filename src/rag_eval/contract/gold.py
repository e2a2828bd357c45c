"""Gold items: the labelled questions of a gold set, and the types of fields that traces have as well."""

from functools import cache
from hashlib import sha256
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias, TypeVar, get_args, get_type_hints

from msgspec import Meta, Struct, convert, field

NOT_BLANK = r"[^\s\u001c-\u001f\u0085\u00ad\u200b-\u200f\u2060\ufeff]"

LARGEST = 10**15
"""The largest whole number and amount that a row may hold."""

NonEmpty = Annotated[str, Meta(min_length=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
AnyAmount = Annotated[float, Meta(ge=0)]

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
