"""New chunk ids for a gold set after its documents were chunked anew."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rag_eval.contract import Chunk, Gold
from rag_eval.textual.tokens import heading_parts, holds_any, tokens

Shingle = tuple[str, ...]

_WORDS = 4  # in a shingle
_COVERED = 0.5  # share of the shingles of the shorter text


class Link(NamedTuple):
    """A chunk id of a gold item and the ids that are proposed for it; ``by`` is the reason, empty if there are none.

    ``lost`` are gold substrings that the old text has and no new text does.
    """

    qid: str
    line: int
    old: str
    new: tuple[str, ...]
    by: str
    lost: tuple[str, ...] = ()


class Relinker:
    """Finds the new chunks of old ones: by equal text, by shared words, otherwise by heading."""

    def __init__(self, old: Mapping[str, Chunk], new: Mapping[str, Chunk]) -> None:
        self._old, self._new = old, new
        self._by_text: dict[tuple[str, ...], list[str]] = {}
        self._by_shingle: dict[Shingle, list[str]] = {}
        self._by_place: dict[Any, list[str]] = {}
        self._sizes: dict[str, int] = {}
        for name, chunk in new.items():
            words = tokens(chunk.text or "")
            self._by_text.setdefault(tuple(words), []).append(name)
            self._by_place.setdefault(_place(chunk), []).append(name)
            shingles = _shingles(words)
            self._sizes[name] = len(shingles)
            for shingle in shingles:
                self._by_shingle.setdefault(shingle, []).append(name)

    def links(self, golds: Iterable[Gold]) -> list[Link]:
        """Return a link for each id of the gold whose chunk changed or disappeared."""
        links = []
        for gold in golds:
            for name in dict.fromkeys([*gold.citations, *(gold.relevance_grades or {})]):
                old, new = self._old.get(name), self._new.get(name)
                texts = [chunk.text for chunk in (old, new) if chunk and chunk.text is not None]
                if new and (len(texts) < 2 or tokens(texts[0]) == tokens(texts[1])):
                    continue  # unchanged, as far as known
                matches, by = self._matches(old) if old else ([], "")
                old_text = (old.text or "").lower() if old else ""
                wanted = tuple(part for part in gold.substrings if part in old_text)
                telling = [item for item in matches if holds_any(wanted, (self._new[item].text or "").lower())]
                lost = wanted if matches and not telling else ()
                links.append(Link(gold.qid, gold.line, name, tuple(telling or matches), by, lost))
        return links

    def _matches(self, old: Chunk) -> tuple[list[str], str]:
        """Return the ids of the new chunks with the content of an old one, best first, and the reason."""
        words = tokens(old.text or "")
        if words and (same := self._by_text.get(tuple(words))):
            near = {
                name: (_place(self._new[name]) == _place(old), _same_document(old, self._new[name])) for name in same
            }
            return [max(same, key=near.__getitem__)], "same text"
        shingles = _shingles(words)
        shared = Counter(name for shingle in shingles for name in self._by_shingle.get(shingle, ()))
        covers = {name: count / min(len(shingles), self._sizes[name]) for name, count in shared.items()}
        candidates = [name for name in covers if covers[name] >= _COVERED and _same_document(old, self._new[name])]
        if candidates:
            candidates.sort(key=lambda name: (-shared[name], name))
            near_ids = set(candidates)
            matches = sum(not near_ids.isdisjoint(self._by_shingle.get(shingle, ())) for shingle in shingles)
            return candidates, f"{matches / len(shingles):.0%} of the text"
        heading = _place(old)
        if heading is not None and (names := self._by_place.get(heading)):
            return names, "same place"
        return [], ""


def rewritten(line: bytes, links: Sequence[Link]) -> bytes:
    """Return the line of a gold item with its new ids; other fields and the formatting are unchanged."""
    row, new = json.loads(line), {link.old: link.new for link in links if link.new}
    spaced = next((entry for entry in ((", ", ": "), (",", ":")) if _text(row, entry) == line), (", ", ": "))
    if "gold_citations" in row:
        cited = [entry for name in row["gold_citations"] for entry in new.get(name, [name])]
        row["gold_citations"] = list(dict.fromkeys(cited))
    if grades := row.get("relevance_grades"):
        moved: dict[str, Any] = {}
        row["relevance_grades"] = moved
        for name, grade in grades.items():
            for item in new.get(name, [name]):
                moved[item] = max(grade, moved.get(item, grade))
    return _text(row, spaced)


def _text(row: Any, separators: tuple[str, str]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=separators).encode()


def _shingles(words: Sequence[str]) -> set[Shingle]:
    size = min(_WORDS, len(words))
    return {tuple(words[at : at + size]) for at in range(len(words) - size + 1)} if words else set()


def _place(chunk: Chunk) -> Any:
    """Return the heading or section of a chunk; None if it has neither."""
    if chunk.rel_path is not None and chunk.heading_path is not None:
        return chunk.rel_path, heading_parts(chunk.heading_path)
    return (chunk.doc_id, chunk.section) if chunk.doc_id is not None and chunk.section is not None else None


def _same_document(chunk: Chunk, other: Chunk) -> bool:
    """Return whether two chunks may be from one document: neither names another one."""
    sides = [(chunk.rel_path, other.rel_path), (chunk.doc_id, other.doc_id)]
    return all(None in side or side[0] == side[1] for side in sides)
