"""What several commands ask for and do alike."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.common.escaping import log_line
from rag_eval.common.paths import GATES_FILES, nearest_gates
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.engines.options import ExecutionOptions

_MOST_JOBS = 512


STDIN = "<stdin>"


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """``--gold``, ``--trace``, ``--gates`` and ``--k``."""
    parser.add_argument(
        "--gold", metavar="FILE", default="", help="gold set, - for stdin (from the gates file, else eval/gold.jsonl)"
    )
    parser.add_argument(
        "--trace", metavar="FILE", default="", help="traces, - for stdin (from the gates file, else runs/trace.jsonl)"
    )
    gates = f"gates; paths in it are relative to its folder (the nearest {GATES_FILES[0]}, here or above)"
    parser.add_argument("--gates", metavar="FILE", default="", help=gates)
    parser.add_argument(
        "--k", metavar="K[,K]", type=cutoffs, default=(), help="cutoffs of retrieval metrics (1,3,5,10)"
    )


def add_baseline(parser: argparse.ArgumentParser) -> None:
    """``--baseline``, of commands that compare with it."""
    parser.add_argument(
        "--baseline", metavar="FILE", default="", help="report.json of an earlier run (as the gates file says)"
    )


def add_engine(parser: argparse.ArgumentParser) -> None:
    """``--engine``, ``--jobs`` and ``--scheduler``: what changes the time it takes, and nothing else."""
    from rag_eval.engines.options import ENGINES

    parser.add_argument(
        "--engine", choices=list(ENGINES), default="process", help="processes of this machine, or a dask cluster"
    )
    parser.add_argument(
        "--jobs", metavar="N", type=jobs, default=0, help="processes for a large trace file (as many as cores)"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", default="", help="dask's, such as tcp://10.0.0.5:8786")


def execution(args: argparse.Namespace) -> ExecutionOptions:
    """What :func:`add_engine` asks for, with progress on a terminal."""
    from rag_eval.engines.options import ExecutionOptions
    from rag_eval.engines.progress import watch

    return ExecutionOptions(args.engine, args.jobs, args.scheduler, watch=watch(quiet=args.quiet))


def jobs(text: str) -> int:
    """A number of processes."""
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= _MOST_JOBS):
        raise argparse.ArgumentTypeError(f"'{text[:40]}' is no whole number from 1 to {_MOST_JOBS}")
    return int(text)


def add_outputs(parser: argparse.ArgumentParser, forms: Iterable[str]) -> None:
    """``--format``, ``--out`` and ``--quiet``."""
    parser.add_argument("--format", choices=list(forms), default="table", help="form of the output (table)")
    parser.add_argument("--out", metavar="DIR", help="also write the report into this folder, in every format")
    parser.add_argument("-v", "--verbose", action="store_true", help="show everything in the table, not only failures")
    parser.add_argument("--quiet", action="store_true", help="no notes on stderr")


def cutoffs(text: str) -> tuple[int, ...]:
    """``1,3,5`` as numbers, ascending, each once."""
    from rag_eval.engines import run_arguments

    try:
        return run_arguments.cutoffs(int(part) for part in text.split(","))
    except (ValueError, UsageError):
        message = f"'{text[:40]}' is no list of whole numbers from 1, such as 5 or 1,3,5"
        raise argparse.ArgumentTypeError(message) from None


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection of garbage meanwhile.

    Nothing that scoring builds refers back to itself, and walking a large gold set again and again is not free.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            # Makes what was built old without a look at it, else the next allocation would have all of it walked.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def names(text: str) -> tuple[str, ...]:
    """``retrieval,safety`` as names."""
    found = tuple(name for part in text.split(",") if (name := part.strip()))
    if not found:  # which would mean all
        raise argparse.ArgumentTypeError(f"'{text[:40]}' names nothing, as retrieval,citations does")
    return found


def gates_path(given: str) -> str:
    """Return the gates file in force: the named one, otherwise the nearest one from the current folder upward."""
    return given or nearest_gates()


def held_stdin(args: argparse.Namespace) -> dict[str, bytes]:
    """Take gold or traces named ``-`` from stdin: name them ``<stdin>``, and return their bytes by that name."""
    named = [name for name in ("gold", "trace") if getattr(args, name, "") == "-"]
    if len(named) > 1:
        raise UsageError("--gold - and --trace - cannot both be read from stdin. Name a file for one of them")
    for name in named:
        setattr(args, name, STDIN)
        return {STDIN: sys.stdin.buffer.read()}
    return {}


def put(report: Report, args: argparse.Namespace, *, by: bool = False) -> None:
    """Print the report, and write it into the folder of ``--out``."""
    from rag_eval.rendering import files, render

    if args.out:
        write_together(Path(args.out), files(report))
    if args.format != "table":
        sys.stdout.write(render(report, args.format))
        return
    print_page(render(report, "table", verbose=args.verbose, by=by))


def print_page(text: str) -> None:
    """Print a page of plain text: NO_COLOR forbids colours, FORCE_COLOR asks for them, a terminal gets them."""
    from rag_eval.rendering.terminal import coloured

    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    wanted = not os.environ.get("NO_COLOR") and (os.environ.get("FORCE_COLOR") or terminal)
    sys.stdout.write(coloured(text) if wanted else text)


def write(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_data(path, [text.encode()])


def write_together(folder: Path, texts: Mapping[str, str]) -> None:
    """Write text files into ``folder``, all of them or none: a signal that ends the process leaves no mixture.

    Nothing is replaced before everything is written, and no signal is served meanwhile.
    """
    parts = {folder / name: folder / f".{name}.part" for name in texts}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for (path, part), text in zip(parts.items(), texts.values(), strict=True):
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            part.unlink(missing_ok=True)
            with part.open("xb") as file:  # made anew, never opened: a link that stands in its place would be followed
                file.write(text.encode())
        with _signals_held():
            for path, part in parts.items():
                part.replace(path)
    except OSError as error:
        why = f"{folder} cannot be written: {(error.strerror or 'unknown reason').lower()}"
        raise UsageError(f"{why}. Close its files where they are open, or write elsewhere.") from None
    finally:  # on Ctrl-C too
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Serve no signal meanwhile, where the system can hold them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def write_data(path: Path, data: Iterable[bytes]) -> None:
    """Write a file from its pieces as they come, whole or not at all."""
    if not path.name:
        raise UsageError(f"{path} is a folder. Name a file to write")
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        # Made anew, never opened: a link that stands in its place would be followed.
        with part.open("xb") as file:
            file.writelines(data)
        part.replace(path)
    except OSError as error:
        why = f"{path} cannot be written: {(error.strerror or 'unknown reason').lower()}"
        raise UsageError(f"{why}. Close it where it is open, or write elsewhere.") from None
    finally:  # on Ctrl-C too
        with suppress(OSError):
            part.unlink(missing_ok=True)


def remark(lines: Iterable[object], *, quiet: bool) -> None:
    """Print notes to stderr."""
    for line in () if quiet else lines:
        print(log_line(str(line)), file=sys.stderr)
