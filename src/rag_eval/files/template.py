"""Files of rows that are written alike: what traces tell, and gold items, read off the groups of an expression.

Programs write the rows of a file alike: the same fields in the same order, with the same spacing. Of such rows it takes
one look to know that they keep their contract, and nothing has to be made of what nobody asks for. A line that is
written otherwise is left to the exact way.
"""

from __future__ import annotations

import json
from itertools import repeat

from rag_eval.files.pattern import Ways, way
from rag_eval.model import inline_citations
from rag_eval.shelf import Stock
from rag_eval.told import NO_FIELDS, TOLD, Fields, Told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rag_eval.files.lines import Lines
    from rag_eval.model import Gold

    Row = dict[str, Any]
    Schema = Mapping[str, Any]
    Columns = Mapping[str, Sequence[str]]
    Enough = Callable[[Row], Collection[str] | None]
    """What rows of the same fields have to tell besides what all do; None where they come to more than they tell."""

_CLAIM, _CITED, _RANKED = "answer_json.claim", "answer_json.citations", "retrieved_ids"
_ANSWER, _LISTED, _CHUNKS = "answer", "citations", "chunks"
_LISTS = ("chunks", "policy_flags")
"""Fields of :data:`rag_eval.told.TOLD` of which the group is what stands between the brackets."""
_GOLD = ("qid", "question", "answerable", "gold_claim_substr", "gold_citations")


class Traces:
    """Reads traces by the ways in which they are written; ``enough`` says of which it will do what they tell."""

    def __init__(self, schema: Schema, enough: Enough) -> None:
        self._schema, self._enough, self._ways = schema, enough, Ways()

    def learn(self, row: Row, line: bytes) -> None:
        """Read further lines as this one is written, if that can be."""
        more, own = self._enough(row), _told_by(row)
        made = way(self._schema, row, line, own.union(more)) if own and more is not None else None
        if made is not None:
            self._ways.add(made)

    def read(self, lines: Lines) -> Told | None:
        """What lines tell; None where only a look at each can tell."""
        found = self._ways.read(lines)
        if found is None:
            return None
        told, *others = [_told(lines, columns, found.between) for columns in found.columns]
        for other in others:
            told = _merged(told, other)
        inline = any([_ANSWER in columns for columns in found.columns])
        return _unescaped(told) if found.escaped or inline else told

    def others(self, told: Told) -> list[int]:
        """The places of lines that tell nothing."""
        return [] if all(told.qids) else [place for place, qid in enumerate(told.qids) if not qid]

    def filled(self, lines: Lines, told: Told, rows: Mapping[int, Row]) -> Told:
        """With rows for the lines at some places."""
        return told._replace(rows={lines.first + place: row for place, row in rows.items()}) if rows else told


class Stocks:
    """Reads gold items that say no more than they have to by the ways in which they are written: by the column."""

    def __init__(self, schema: Schema) -> None:
        self._schema, self._ways = schema, Ways()

    def learn(self, row: Row, line: bytes) -> None:
        """Read further lines as this one is written, if that can be."""
        made = way(self._schema, row, line, _GOLD) if row.keys() == set(_GOLD) else None
        if made is not None:
            self._ways.add(made)

    def read(self, lines: Lines) -> Stock | None:
        """The items in lines; None where only a look at each line can tell."""
        found = self._ways.read(lines)
        if found is None:
            return None
        stock, *others = [
            Stock.of(lines.first, map(columns.__getitem__, _GOLD), found.between) for columns in found.columns
        ]
        for other in others:
            stock = stock.beside(other)
        return stock.unescaped() if found.escaped else stock

    def others(self, stock: Stock) -> list[int]:
        """The places of lines that were not read."""
        return [] if all(stock.qids) else [place for place, qid in enumerate(stock.qids) if not qid]

    def filled(self, lines: Lines, stock: Stock, rows: Mapping[int, Row]) -> Stock:
        """With rows for the lines at some places."""
        return stock._replace(rows={lines.first + place: row for place, row in rows.items()}) if rows else stock


class Golds(Stocks):
    """The same, one by one."""

    def filled(self, lines: Lines, stock: Stock, rows: Mapping[int, Row]) -> Iterator[tuple[int, Gold | Row]]:  # type: ignore[override]
        """The items, with rows for the lines at some places; each with its number."""
        return super().filled(lines, stock, rows).items()


def _told(lines: Lines, columns: Columns, between: str) -> Told:
    claims = columns.get(_CLAIM) or columns[_ANSWER]
    cited: Iterable[str | None] = columns.get(_CITED) or columns.get(_LISTED) or repeat(None)
    if _ANSWER in columns and _LISTED not in columns:
        cited = [_inline(claim, between) for claim in claims]
    asked = TOLD.intersection(columns)
    more = Fields({name: columns[name] for name in asked}, _values) if asked else NO_FIELDS
    qids: Sequence[str] = columns["qid"]
    ranked: Iterable[str] = columns.get(_RANKED) or repeat("")
    if _RANKED not in columns and _CHUNKS in more:
        qids, ranked = _by_chunks(qids, more[_CHUNKS], between)
    runs = columns.get("run", ())
    numbers = range(lines.first, lines.first + lines.count)
    return Told(numbers, qids, runs, claims, cited, ranked, between, {}, more, len(lines.text))


def _by_chunks(qids: Sequence[str], chunks: Sequence[list[Any]], between: str) -> tuple[Sequence[str], Sequence[str]]:
    """The ids of chunks as a list of ids stands in JSON, with the qids, empty where one cannot stand there as it is."""
    ids = [[chunk["id"] for chunk in listed] for listed in chunks]
    sure = ["" if _odd(own) else qid for qid, own in zip(qids, ids, strict=True)]
    texts = [between.join([f'"{one}"' for one in own]) if qid else "" for qid, own in zip(sure, ids, strict=True)]
    return sure, texts


def _odd(ids: Sequence[str]) -> bool:
    text = "".join(ids)
    return '"' in text or "\\" in text or "" in ids


def _values(name: str, texts: Sequence[str | None]) -> list[Any]:
    """What stands in the column of a field, None where nothing does: decoded at once, which saves calls."""
    if name in _LISTS:
        written = ["null" if text is None else f"[{text}]" for text in texts]
    else:
        written = [text or "null" for text in texts]
    values: list[Any] = _loads(f"[{','.join(written)}]")
    return values


def _told_by(row: Row) -> frozenset[str]:
    """The fields that say what a trace comes to, as far as the ids and the answer decide; none where more would."""
    if not row.get("qid") or {"q_id", "case_id"} & row.keys():
        return frozenset()
    if "answer_json" in row:
        return frozenset(("qid", "run", _RANKED, _CLAIM, _CITED))
    return frozenset(("qid", "run", _RANKED, _ANSWER, _LISTED)) if _ANSWER in row else frozenset()


def _loads(text: str) -> Any:
    from rag_eval.quick_json import (
        orjson,  # where it is not needed it is not loaded: that takes as long as reading some thousand rows
    )

    return orjson.loads(text)


def _inline(claim: str, between: str) -> str | None:
    """The list of citations in the text of an answer as JSON has it."""
    found = inline_citations(_loads(f'"{claim}"') if "\\" in claim else claim)
    return None if found is None else between.join([json.dumps(one, ensure_ascii=False) for one in found])


def _merged(told: Told, other: Told) -> Told:
    """What lines tell that are written in one way or in another."""
    own = other.qids

    def pick(mine: Iterable[Any], theirs: Iterable[Any], default: Any) -> list[Any]:
        pairs = zip(own, mine or repeat(default), theirs or repeat(default))  # noqa: B905 - endless ones among them
        return [its if qid else one for qid, one, its in pairs]

    return told._replace(
        qids=pick(told.qids, own, ""),
        runs=pick(told.runs, other.runs, "") if told.runs or other.runs else (),
        claims=pick(told.claims, other.claims, ""),
        cited=pick(told.cited, other.cited, None),
        retrieved=pick(told.retrieved, other.retrieved, ""),
        more=_either(told.more, other.more, pick),
    )


def _either(mine: Fields, theirs: Fields, pick: Callable[[Any, Any, None], list[Any]]) -> Fields:
    names = mine.texts.keys() | theirs.texts.keys()
    texts = {name: pick(mine.texts.get(name, ()), theirs.texts.get(name, ()), None) for name in names}
    return Fields(texts, _values) if texts else NO_FIELDS


def _unescaped(told: Told) -> Told:
    """The same with escapes read. Where one stands for what no list of ids can hold, the line tells nothing."""
    cited = [one and _read(one, told.between) for one, _ in zip(told.cited, told.qids)]  # noqa: B905 - may be endless
    ranked = [_read(one, told.between) for one, _ in zip(told.retrieved, told.qids)]  # noqa: B905
    read = told._replace(cited=cited, retrieved=ranked)
    ids = [f"{qid}{run}{cites}{retrieved}" for _, qid, run, _, cites, retrieved in read.entries()]
    return read._replace(
        qids=["" if "\\" in one else qid for one, qid in zip(ids, told.qids, strict=True)],
        claims=[_loads(f'"{claim}"') if "\\" in claim else claim for claim in told.claims],
    )


def _read(listed: str, between: str) -> str:
    """A list of ids with their escapes read, but for those of quotes and backslashes."""
    if "\\" not in listed:
        return listed
    ids: list[str] = _loads(f"[{listed}]")
    return listed if any('"' in one or "\\" in one for one in ids) else between.join([f'"{one}"' for one in ids])
