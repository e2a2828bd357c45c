"""The command ``rag-eval gold relink``."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval.cli.commands._shared import (
    add_flag,
    add_gold,
    add_option,
    gates_path,
    print_lines,
    write_data,
)
from rag_eval.common.escaping import markdown, quantity
from rag_eval.contract import Chunk, Gold
from rag_eval.contract.gold import without_unknown
from rag_eval.errors import GATE_FAILED, PASSED, UsageError
from rag_eval.importers.documents import objects
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.source import Reader
from rag_eval.run.inputs import open_policy
from rag_eval.run.options import Options
from rag_eval.textual.tokens import heading_parts, tokens

Shingle = tuple[str, ...]

_SHOWN = 60
_WORDS = 4  # in a shingle
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip, zstd
_COVERED = 0.5  # share of the shingles of the shorter text


def add_relink_arguments(parser: ArgumentParser) -> None:
    add_gold(parser)
    old, new = (f"chunks or traces of the {index} index" for index in ("old", "new"))
    add_option(parser, "--old", "FILE", f"{old} (default: traces of the baseline)", action="append", default=[])
    add_option(parser, "--new", "FILE", f"{new} (default: runs/trace.jsonl)", action="append", default=[])
    add_flag(parser, "--write", "write the proposed ids into the gold file, unsigned")


def run_relink(args: Namespace) -> int:
    """Propose new chunk ids for a gold set after re-chunking, by text and position of the old chunks.

    Examples:
      rag-eval gold relink --old eval/baseline.trace.jsonl --new runs/trace.jsonl --write
    """
    reader, policy, _ = open_policy(Options(args.gold, gates=gates_path(args.gates)))
    golds = read_gold(reader, policy.gold)
    if not args.old and not policy.baseline_trace:
        fix = "Name its chunks or traces with --old, or baseline.trace in the gates file"
        raise UsageError(f"the old index is unknown. {fix}")
    old, new = (_chunks(reader, paths) for paths in (args.old or [policy.baseline_trace], args.new or [policy.trace]))
    reader.ledger.stop_on_problems()
    links = Relinker(old, new).links(golds.values())
    print_lines(*_table(links, old, new))
    new_links = [link for link in links if link.new]
    items = len({link.qid for link in new_links})
    counted = f"{len(new_links)} of {quantity(len(links), 'old chunk id')}"
    print_lines(f"New ids for {counted}, in {quantity(items, 'item')}.")
    if args.write and new_links:
        _write(policy.gold, new_links)
        then = f"git add {policy.gold} && rag-eval gold signoff --reason TEXT"
        print_lines(f"wrote {policy.gold}. Review it, then: {then}")
    return PASSED if len(new_links) == len(links) else GATE_FAILED


def _list(row: Any, name: str) -> list[Any]:
    """Return a list in a row; an empty one if there is none."""
    value = row.get(name) if isinstance(row, dict) else None
    return value if isinstance(value, list) else []


def _chunks(reader: Reader, paths: Sequence[str]) -> dict[str, Chunk]:
    """Read chunks from files with a chunk on each line, or from traces; the first occurrence with a text counts."""
    from msgspec import ValidationError, convert

    chunks: dict[str, Chunk] = {}
    for path in paths:
        for line, row in objects(Files(reader, [path]), path, "a chunk or a trace"):
            several = [chunk for retrieval in _list(row, "retrievals") for chunk in _list(retrieval, "chunks")]
            rows = _list(row, "chunks") or several or ([row] if "id" in row else [])
            try:
                for chunk in convert([without_unknown(Chunk, item)[0] for item in rows], list[Chunk]):
                    if chunk.id not in chunks or (chunks[chunk.id].text is None and chunk.text is not None):
                        chunks[chunk.id] = chunk
            except ValidationError as error:
                hint = 'Write {"id": …, "text": …}, or traces with chunks.'
                reader.ledger.problem(path, line, "", f"is not a chunk or a trace with chunks: {error}", hint)
        if not chunks and not reader.ledger.problems:
            reader.ledger.problem(path, 0, "", "has no chunks", "Record chunks with id and text in the traces.")
    return chunks


def _table(links: Sequence[Link], old: Mapping[str, Chunk], new: Mapping[str, Chunk]) -> Iterator[str]:
    if links:
        yield "| question | old id | new ids | by | old text | new text |"
        yield "|---|---|---|---|---|---|"
    for link in links:
        texts = [_start(old.get(link.old)), " … ".join(_start(new[name]) for name in link.new)]
        by = link.by or ("the old chunk is unknown" if link.old not in old else "no similar chunk")
        lost = f"; check: no new chunk has {', '.join(map(repr, link.lost))}" if link.lost else ""
        cells = [link.qid, link.old, ", ".join(link.new) or "–", by + lost, *texts]
        yield f"| {' | '.join(markdown(cell, 200) for cell in cells)} |"


def _start(chunk: Chunk | None) -> str:
    return " ".join((chunk.text or "").split())[:_SHOWN] if chunk else ""


def _write(path: str, links: Sequence[Link]) -> None:
    """Rewrite the lines of changed items; all others keep their bytes."""
    lines = json_lines(path, "--write needs").split(b"\n")
    for number, group in groupby(links, key=lambda link: link.line):
        line = lines[number - 1]
        text = line.strip().removeprefix(b"\xef\xbb\xbf")
        lines[number - 1] = line.replace(text, rewritten(text, list(group)))
    write_data(path, [b"\n".join(lines)])


def json_lines(path: str, use: str) -> bytes:
    """Return the content of a gold file, empty if there is none; raise UsageError if it is not JSON Lines."""
    file = Path(path)
    data = file.read_bytes() if file.is_file() else b""
    is_array = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    if is_array or data.startswith(_PACKED) or file.is_dir() or file.suffix in (".gz", ".zst"):
        raise UsageError(f"{path} is not JSON Lines, which {use}. Convert it: rag-eval import --help")
    return data


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
        named = [(gold, dict.fromkeys([*gold.citations, *(gold.relevance_grades or {})])) for gold in golds]
        return [self._link(gold, name) for gold, names in named for name in names if not self._is_unchanged(name)]

    def _is_unchanged(self, name: str) -> bool:
        old, new = self._old.get(name), self._new.get(name)
        if new is None:
            return False
        return old is None or old.text is None or new.text is None or tokens(old.text) == tokens(new.text)

    def _link(self, gold: Gold, name: str) -> Link:
        old = self._old.get(name)
        if old is None:
            return Link(gold.qid, gold.line, name, (), "")
        new, by = self._containment(old)
        substrings = [part for part in gold.substrings if part in (old.text or "").lower()]
        telling = [item for item in new if any(part in (self._new[item].text or "").lower() for part in substrings)]
        lost = tuple(substrings) if new and substrings and not telling else ()
        return Link(gold.qid, gold.line, name, tuple(telling or new), by, lost)

    def _containment(self, old: Chunk) -> tuple[list[str], str]:
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
