"""Slices: named parts of the cases, such as ``category=multi_hop``, ``tags=critical`` or ``meta.vault=hr``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.gates.results import Question

FIELDS = (
    "category",
    "difficulty",
    "tags",
    "query_type",
    "multi_hop",
    "answerable",
    "doc_type",
    "document",
    "attack.category",
    "attack.kind",
    "conversation",
    "turn",
)
"""What slices go by, besides ``meta.NAME``.

``doc_type`` is the ending of the gold's documents: ``md``, ``pdf``. ``document`` is the one of the first gold citation.
"""

ANY = "*"
_ENDING = re.compile(r"[^./\\]\.([a-zA-Z][a-zA-Z0-9]{0,9})$")


def is_field(name: str) -> bool:
    """Whether slices can go by ``name``."""
    return name in FIELDS or (name.startswith("meta.") and len(name) > len("meta."))


def is_slice(name: str) -> bool:
    """Whether ``name`` is a slice: a field, ``=`` and a value."""
    field, equals, value = name.partition("=")
    return is_field(field) and bool(equals) and bool(value)


def slices_of(gold: Gold, fields: Sequence[str]) -> tuple[str, ...]:
    """The slices of ``fields`` that an item is in; a list such as tags gives one for each entry."""
    return tuple(dict.fromkeys(f"{field}={text}" for field in fields for text in _values(gold, field)))


def expanded(pattern: str, present: Iterable[str]) -> list[str]:
    """The slices that a gate on ``category=*`` is about, sorted; a slice without ``*`` is its own.

    Where there is none the pattern stands for itself: no case is in it, so that its gates have no data and do not go.
    """
    field, _, value = pattern.partition("=")
    if value != ANY:
        return [pattern]
    return sorted({name for name in present if name.startswith(f"{field}=")}) or [pattern]


def _values(gold: Gold, field: str) -> Iterator[str]:
    found = _found(gold, field)
    for value in found if isinstance(found, (list, tuple)) else [found]:
        if value is not None:
            yield _text(value)


def _found(gold: Gold, field: str) -> Any:
    if field == "doc_type":
        return doc_types(gold)
    if field == "document":
        return document(gold)
    noun, _, name = field.partition(".")
    value = getattr(gold, noun)
    if not name:
        return value
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def doc_types(gold: Gold) -> tuple[str, ...]:
    """The endings, in lower case and sorted, of the documents that the gold names, by path or by id."""
    paths = [support.rel_path for support in gold.supports or ()]
    docs = [
        *(section.doc_id for section in gold.sections or ()),
        *(gold.relevant_docs or ()),
        *(gold.doc_grades or ()),
        *(gold.expected_documents or ()),
    ]
    endings = (_ENDING.search(name) for name in [*paths, *docs])
    return tuple(sorted({found[1].lower() for found in endings if found}))


def document(gold: Gold) -> str | None:
    """The document of the first gold citation, its id up to ``#``; without citations the first one that gold names."""
    if gold.citations:
        return gold.citations[0].partition("#")[0] or gold.citations[0]
    named = [
        *(support.rel_path for support in gold.supports or ()),
        *(section.doc_id for section in gold.sections or ()),
        *(gold.relevant_docs or ()),
        *(gold.doc_grades or ()),
        *(gold.expected_documents or ()),
    ]
    return named[0] if named else None


def clusters(cases: Iterable[Question], field: str) -> list[str]:
    """The cluster of each case: its value of the field, else its own qid."""
    start = f"{field}="
    return [next((part for part in case.slices if part.startswith(start)), case.qid) for case in cases]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
