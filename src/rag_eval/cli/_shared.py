"""Steps that several commands share: open inputs, ask a person, print reports and notes."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.common.escaping import json_text, log_line
from rag_eval.common.files import write_together
from rag_eval.common.paths import nearest_gates
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.analysis import Report
    from rag_eval.rendering.explanation import Details
    from rag_eval.run import Options

STDIN = "<stdin>"
INLINE_GATES = "--gates NAME=VALUE is only for --format scores. Write a gates file: rag-eval init"
CITATIONS = "none", "brackets", "numbers"  # how the texts of answers cite
TEMPLATES = Path(__file__).parents[1] / "templates"


def input_options(args: argparse.Namespace) -> Options:
    """Return the files and cutoffs that the options of :meth:`Parser.add_inputs` name; ``-`` is read from stdin."""
    from rag_eval.run import Options

    stdin = [name for name in ("gold", "trace") if getattr(args, name) == "-"]
    if len(stdin) > 1:
        raise UsageError("--gold - and --trace - cannot both be read from stdin. Name a file for one of them.")
    contents = {STDIN: sys.stdin.buffer.read()} if stdin else {}
    gold, trace = (STDIN if name in stdin else getattr(args, name) for name in ("gold", "trace"))
    cutoffs = getattr(args, "k", ())  # judge has none
    return Options(gold, trace, args.gates or nearest_gates(), cutoffs, contents=contents)


def repository_root(folder: str) -> str:
    """Return the root of the work tree of ``folder``, or ``folder`` if there is no repository, with links followed."""
    here = Path(os.path.realpath(folder))
    return str(next((above for above in (here, *here.parents) if os.path.lexists(above / ".git")), here))


def file_bytes(path: str) -> bytes:
    """Return the bytes of a file, unpacked; InputError if it cannot be read."""
    from rag_eval.readers.source import checked_reader

    with checked_reader() as reader:
        data = reader.read(path)
    return data or b""


@contextmanager
def uncollected() -> Iterator[None]:
    """Run a block without garbage collection.

    Scoring creates no reference cycles, and each collection of a large gold set takes time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            # Freeze all objects, otherwise the next allocation would start a collection of them.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def now() -> str:
    """Return the time in UTC, as records have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def person(stated: str, role: str, option: str = "--signer EMAIL", *, is_needed: bool = True) -> str:
    """Return the name that an option states, otherwise git's email; raise UsageError if one ``is_needed``."""
    from rag_eval.git.plumbing import Git, GitError

    fix = f"Add {option}"
    with suppress(GitError):  # no repository
        stated = stated or Git().email() or ""
        fix += ", or run: git config user.email EMAIL"
    refuse((is_needed and not stated, f"no {role} is known. {fix}"))
    return stated


def ask(question: str) -> str:
    """Return the line that a person types, without blanks around it; EOFError at the end of the input."""
    while True:
        try:
            reply = input(question).strip()
            reply.encode()
        except UnicodeError:
            print_lines("That is not UTF-8 text. Type it again.")
        else:
            return reply


def write_report(report: Report, args: argparse.Namespace, *, by: bool = False, details: Details | None = None) -> None:
    """Print the report, and write it into the folder of ``--out``; ``details`` are for its HTML."""
    from rag_eval.rendering import files, render

    if args.out:
        write_together(Path(args.out), files(report, details=details))
    if args.format != "table":
        sys.stdout.write(render(report, args.format, **({"details": details} if args.format == "html" else {})))
        return
    print_page(render(report, "table", verbose=args.verbose, by=by), colours=not args.no_color)


def print_page(text: str, *, colours: bool = True) -> None:
    """Print a page of plain text: NO_COLOR forbids colours, FORCE_COLOR asks for them, a terminal gets them."""
    from rag_eval.rendering.terminal import coloured

    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    wanted = colours and not os.environ.get("NO_COLOR") and (os.environ.get("FORCE_COLOR") or terminal)
    sys.stdout.write(coloured(text) if wanted else text)


def print_result(value: Any, lines: Iterable[str], form: str) -> None:
    """Print a result as JSON or as lines of text, as ``--format`` says."""
    if form == "json":
        sys.stdout.write(json_text(value))
    else:
        print_lines(*lines)


def print_lines(*lines: object) -> None:
    """Print lines; the runner takes none of them for a command."""
    sys.stdout.writelines(f"{log_line(str(line))}\n" for line in lines)


def print_notes(*lines: object, quiet: bool = False) -> None:
    """Print lines to stderr; the runner takes none of them for a command."""
    sys.stderr.writelines(f"{log_line(str(line))}\n" for line in (() if quiet else lines))


def option_words(args: argparse.Namespace, *names: str) -> list[str]:
    """Return those of the named options that have a value, as words of a command to show."""
    values = ((name, getattr(args, name.replace("-", "_"))) for name in names)
    return [word for name, value in values if value for word in (f"--{name}", value)]


def refuse(*rules: tuple[object, str]) -> None:
    """Raise UsageError with the message of the first rule whose condition is true."""
    for applies, message in rules:
        if applies:
            raise UsageError(message)


def refuse_existing(path: str | Path, *, force: bool, other: str = "file with --out") -> None:
    """Raise UsageError if a file exists that is no sample of ``init``, and ``--force`` is not given."""
    if os.path.lexists(path) and not force and not is_sample(path):
        raise UsageError(f"{path} already exists. Name another {other}, or overwrite it with --force")


def is_sample(path: str | Path) -> bool:
    """Return whether a file is a gold set or traces that ``init`` wrote as a sample, unchanged."""
    file = Path(path)
    samples = [TEMPLATES / name for name in ("gold.jsonl", "trace.jsonl")]
    return file.is_file() and any(file.read_bytes() == sample.read_bytes() for sample in samples)
