"""Propose new chunk ids for a gold set after a new chunking, by text and place of the old chunks."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.commands._shared import gates_path, write_data
from rag_eval.common.escaping import log_line, markdown
from rag_eval.errors import GATE_FAILED, PASSED, UsageError

if TYPE_CHECKING:
    from rag_eval.contract import Chunk
    from rag_eval.gold.relink import Link
    from rag_eval.readers.source import Reader

EXAMPLE = "example: rag-eval gold relink --old eval/baseline.trace.jsonl --new runs/trace.jsonl --write"
_SHOWN = 60


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--gold", metavar="FILE", default="", help="gold set (from the gates file, else the usual)")
    parser.add_argument("--gates", metavar="FILE", default="", help="gates (eval-gates.yml where it is there)")
    parser.add_argument(
        "--old", metavar="FILE", action="append", default=[], help="chunks or traces of the old index (the baseline's)"
    )
    parser.add_argument(
        "--new",
        metavar="FILE",
        action="append",
        default=[],
        help="chunks or traces of the new index (runs/trace.jsonl)",
    )
    parser.add_argument("--write", action="store_true", help="write the proposed ids into the gold file, unsigned")


def run(args: Namespace) -> int:
    """Print the table for review; exit 1 if an id has no new chunk."""
    from rag_eval.gold.relink import Relinker
    from rag_eval.readers.gold_file import read_gold
    from rag_eval.run.inputs import open_policy
    from rag_eval.run.options import Options

    reader, policy, _ = open_policy(Options(args.gold, gates=gates_path(args.gates)))
    golds = read_gold(reader, policy.gold)
    if not args.old and not policy.baseline_trace:
        raise UsageError("--old is needed: name the chunks or traces of the old index, or baseline.trace in the gates")
    old, new = (_chunks(reader, paths) for paths in (args.old or [policy.baseline_trace], args.new or [policy.trace]))
    reader.ledger.stop_on_problems()
    links = Relinker(old, new).links(golds.values())
    sys.stdout.writelines(f"{log_line(line)}\n" for line in _table(links, old, new))
    found = [link for link in links if link.new]
    print(
        f"{len(found)} of {len(links)} chunk ids to change have new ones, in {len({one.qid for one in found})} items."
    )
    if args.write and found:
        _write(policy.gold, found)
        print(f"Wrote {policy.gold}. Review it, then: git add {policy.gold} && rag-eval gold signoff --reason TEXT")
    return PASSED if len(found) == len(links) else GATE_FAILED


def _chunks(reader: Reader, paths: Sequence[str]) -> dict[str, Chunk]:
    """Read chunks from files of chunks, one a line, or from traces; of an id the first that has a text counts."""
    from msgspec import ValidationError, convert

    from rag_eval.contract import Chunk
    from rag_eval.contract.unknown_fields import without_unknown
    from rag_eval.importers.documents import objects
    from rag_eval.readers.import_inputs import Files

    found: dict[str, Chunk] = {}
    for path in paths:
        for line, row in objects(Files(reader, [path]), path, "a chunk or a trace"):
            rows = row.get("chunks") or ([row] if "id" in row else [])
            try:
                for chunk in convert([without_unknown(Chunk, one)[0] for one in rows], list[Chunk]):
                    if chunk.id not in found or (found[chunk.id].text is None and chunk.text is not None):
                        found[chunk.id] = chunk
            except ValidationError as error:
                hint = 'Write {"id": …, "text": …}, or traces with chunks.'
                reader.ledger.problem(path, line, "", f"is no chunk or trace with chunks: {error}", hint)
        if not found and not reader.ledger.problems:
            reader.ledger.problem(path, 0, "", "has no chunk", "Record chunks with id and text in the traces.")
    return found


def _table(links: Sequence[Link], old: Mapping[str, Chunk], new: Mapping[str, Chunk]) -> Iterator[str]:
    if not links:
        return
    yield "| question | old id | new ids | by | old text | new text |"
    yield "|---|---|---|---|---|---|"
    for link in links:
        texts = [_start(old.get(link.old)), " … ".join(_start(new[name]) for name in link.new)]
        by = link.by or ("the old chunk is unknown" if link.old not in old else "no chunk is like it")
        lost = f"; check: no new chunk has {', '.join(map(repr, link.lost))}" if link.lost else ""
        cells = [link.qid, link.old, ", ".join(link.new) or "–", by + lost, *texts]
        yield f"| {' | '.join(markdown(cell, 200) for cell in cells)} |"


def _start(chunk: Chunk | None) -> str:
    return " ".join((chunk.text or "").split())[:_SHOWN] if chunk else ""


def _write(path: str, links: Sequence[Link]) -> None:
    """Change the lines of the items; all others keep their bytes."""
    from rag_eval.gold.relink import rewritten

    file = Path(path)
    data = b"" if file.is_dir() else file.read_bytes()
    if not data or data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") or data.startswith(b"\x1f\x8b"):
        raise UsageError(f"--write changes JSON Lines, which {path} is not. Convert it: rag-eval import --help")
    lines = data.split(b"\n")
    for number, group in groupby(links, key=lambda link: link.line):
        line = lines[number - 1]
        text = line.strip().removeprefix(b"\xef\xbb\xbf")
        lines[number - 1] = line.replace(text, rewritten(text, list(group)))
    write_data(file, [b"\n".join(lines)])
