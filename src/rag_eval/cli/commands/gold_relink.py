"""The command ``rag-eval gold relink``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rag_eval.cli.commands._shared import gates_path, print_lines, write_data
from rag_eval.cli.parser import Parser
from rag_eval.common.escaping import markdown, quantity
from rag_eval.contract import Chunk
from rag_eval.contract.gold import without_unknown
from rag_eval.errors import GATE_FAILED, PASSED, UsageError
from rag_eval.gold.relink import Link, Relinker, rewritten
from rag_eval.importers.documents import objects
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.source import PACKED, Reader
from rag_eval.run.inputs import Options, open_policy

_SHOWN = 60


def add_relink_arguments(parser: Parser) -> None:
    parser.add_gold()
    old, new = (f"chunks or traces of the {index} index" for index in ("old", "new"))
    parser.add_option("--old", "FILE", f"{old} (default: traces of the baseline)", action="append", default=[])
    parser.add_option("--new", "FILE", f"{new} (default: runs/trace.jsonl)", action="append", default=[])
    parser.add_flag("--write", "write the proposed ids into the gold file, unsigned")


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
    if is_array or data.startswith(PACKED) or file.is_dir() or file.suffix in (".gz", ".zst"):
        raise UsageError(f"{path} is not JSON Lines, which {use}. Convert it: rag-eval import --help")
    return data
