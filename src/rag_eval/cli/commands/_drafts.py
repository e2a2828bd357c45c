"""The file of drafts, which `gold draft` and `gold review` share. It is no gold set: its open fields are null."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from rag_eval.cli.commands._shared import write
from rag_eval.errors import InputError, Problem

DRAFTS = "eval/drafts.jsonl"
Row = dict[str, Any]


def add_files(parser: ArgumentParser) -> None:
    """``--gold``, ``--gates`` and ``--drafts``."""
    parser.add_argument("--gold", metavar="FILE", default="", help="gold set (from the gates file, else the usual)")
    parser.add_argument("--gates", metavar="FILE", default="", help="gates (eval-gates.yml where it is there)")
    parser.add_argument("--drafts", metavar="FILE", default=DRAFTS, help=f"the drafts ({DRAFTS})")


def read_drafts(path: str) -> list[Row]:
    """Return the drafts of a file, none if it is not there; InputError with each line that is no draft."""
    file = Path(path)
    rows, problems = [], []
    for number, line in enumerate(file.read_bytes().split(b"\n") if file.exists() else (), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict) and all(isinstance(row.get(name), str) for name in ("draft", "qid", "question")):
            rows.append(row)
        else:
            problems.append(
                Problem(path, number, "", "is no draft", "Write drafts with: rag-eval gold draft --from FILE")
            )
    if problems:
        raise InputError(problems)
    return rows


def write_drafts(path: str, rows: list[Row]) -> None:
    """Write the drafts, a line each."""
    write(Path(path), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
