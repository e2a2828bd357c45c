"""The command line: the choice of the command, the quick check of the hook, and the error boundary.

The boundary turns every error into lines on stderr and an exit code; the action uses it too.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, TextIO

from rag_eval.common.escaping import log_line, quoted
from rag_eval.common.paths import GATES_FILES, PROJECT_FILE, WINDOWS, misread_names
from rag_eval.common.version import __version__
from rag_eval.errors import BUG, CANNOT_JUDGE, PASSED, InputError, RagEvalError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUT_OF_MEMORY = "there is not enough memory for this run. Give it more, or score the traces in parts."
_HOOK = ["gold", "check", "--staged"]
INTERRUPTED = 130
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _run(arguments))


def entry() -> NoReturn:
    """Run the installed ``rag-eval`` and end the process with its exit code.

    The process ends as soon as all output is written: freeing the objects of a large run one by one takes a tenth of
    its time. ``python -m rag_eval`` ends normally, for profilers and similar tools.
    """
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a closed output was handled before
            stream.flush()
    os._exit(code)


def _run(arguments: list[str]) -> int:
    # Runs in every commit: if the commit cannot touch the gold, nothing else is loaded.
    if arguments == _HOOK and touches_nothing():
        return PASSED
    from rag_eval.cli.parser import COMMANDS, build_parser, find_command

    if not arguments:
        build_parser(bare=True).print_help()
        return CANNOT_JUDGE  # an empty variable of a script must not end successfully
    chosen = arguments[0] if arguments[0] in COMMANDS else ""
    if arguments == [chosen] and find_command(chosen).run is None:
        with suppress(SystemExit):
            build_parser(chosen, ["--help"]).parse_args([chosen, "--help"])
        return CANNOT_JUDGE
    bare = COMMANDS.keys().isdisjoint(arguments)  # rag-eval --help
    parsed = build_parser(chosen, arguments[1:], bare=bare).parse_args(arguments)
    command = find_command(parsed.command, getattr(parsed, "nested", None))
    code = command.run(parsed) if command.run else CANNOT_JUDGE
    sys.stdout.flush()
    return code


def touches_nothing() -> bool:
    """Return whether the commit certainly touches no gates, gold or sign-off records; most commits do not.

    It reads only names, and the text of the gates file without parsing it. In doubt the whole check runs.
    """
    committing = "GIT_INDEX_FILE" in os.environ and "PRE_COMMIT_FROM_REF" not in os.environ
    if not committing or not os.path.lexists(".git"):  # the gates file of the root is the nearest one there
        return False
    from rag_eval.git.plumbing import Git, GitError

    try:
        git = Git(top=".")
        changed = git.staged()
        stated = b"".join(git.staged_texts(*GATES_FILES))
        project = os.path.lexists(PROJECT_FILE) or PROJECT_FILE.encode() in changed
        if project and any(b"rag-eval" in text for text in git.staged_texts(PROJECT_FILE)):  # may name the gates
            return False
    except GitError:
        return False
    # An escape in a YAML text could spell a name differently than git.
    return b"\\" not in stated and not any(_may_matter(path, stated) for path in changed)


def _may_matter(path: bytes, stated: bytes) -> bool:
    """Return whether a path may be gold, which has a stated or usual name, or a record in the records folder."""
    folder, _, name = path.rpartition(b"/")
    parent = folder.rpartition(b"/")[2]
    # The same applies to a doubled quote, or to a line break in place of a space.
    if any(mark in name + parent for mark in (b"'", b" ", b"\t")):
        return True
    usual = name == b"gold.jsonl" or parent.endswith(b".signoff") or name.decode("utf-8", "replace") in GATES_FILES
    return usual or name in stated or (bool(parent) and parent in stated)


def guarded(work: Callable[[], int]) -> int:
    """Call ``work`` and return its exit code; turn every error into lines on stderr and an exit code."""
    if sys.stdin is None:  # closed by <&-
        sys.stdin = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    for name in ("stdout", "stderr"):
        stream = _tolerant(getattr(sys, name))
        setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        return work()
    except InputError as error:
        return _say(error.lines(), error.exit_code)
    except RagEvalError as error:
        return _say([f"rag-eval: {error}"], error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one boundary: any other error is a defect, and reported as one
        return _report_environment_error(error) or _report_defect()


def _report_environment_error(error: Exception) -> int:
    """Report an error of the machine, such as a full disk, and return its exit code; 0 for any other error."""
    message = ""
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        what = f"write {error.filename}" if error.filename else "write"
        message = f"cannot {what}: {error.strerror}. Free some space, or write to another place."
    elif is_out_of_memory(error):
        message = OUT_OF_MEMORY
    elif isinstance(error, ImportError) and error.name and error.name.partition(".")[0] != "rag_eval":
        message = f"{error.name} cannot be loaded: {error}. Install rag-eval-action again, with its dependencies."
    elif isinstance(error, UnicodeEncodeError) and (misread := misread_names()):
        message = misread
    elif isinstance(error, FileNotFoundError) and _lost_current_folder():
        message = "the current folder no longer exists. Change to another one."
    elif isinstance(error, OSError) and error.filename is not None:
        why = (error.strerror or "unknown reason").lower()
        message = f"{quoted(str(error.filename), 200)}: {why}. Check its path and permissions."
    return _say([f"rag-eval: {message}"], CANNOT_JUDGE) if message else 0


def is_out_of_memory(error: Exception) -> bool:
    """Return whether the machine ran out of memory, in Python or in another process."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def _lost_current_folder() -> bool:
    """Return whether the current folder was removed, so that relative paths are invalid."""
    try:
        os.getcwd()  # noqa: PTH109 - no pathlib in the hook of every commit
    except FileNotFoundError:
        return True
    return False


def _say(lines: Sequence[str], code: int) -> int:
    with suppress(OSError):  # if stderr is closed, only the exit code reports it
        for line in lines:
            print(log_line(line), file=sys.stderr)
    return code


class _TolerantPipe(io.FileIO):
    """A pipe that ignores writes after its reader closed it, which changes no verdict."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # Windows reports a pipe without a reader as an invalid argument.
            if isinstance(error, ConnectionError) or (WINDOWS and error.errno == errno.EINVAL):
                return memoryview(data).nbytes
            raise


def _tolerant(stream: TextIO | None) -> TextIO:
    """Return a stream that accepts writes even if its reader is gone, so that the exit code is not lost.

    If it was closed before the start (``>&-``), the stream is None in Python.
    """
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - as above
    if type(stream) is not io.TextIOWrapper or stream.isatty():
        return stream
    if isinstance(getattr(stream.buffer, "raw", stream.buffer), _TolerantPipe):
        return stream
    stream.flush()
    raw = _TolerantPipe(stream.fileno(), "wb", closefd=False)
    bare = stream.write_through  # python -u
    return io.TextIOWrapper(
        raw if bare else io.BufferedWriter(raw),
        encoding="utf-8",
        line_buffering=stream.line_buffering,
        write_through=bare,
    )


def _report_defect() -> int:
    """Print a defect as Markdown for an issue, with lines of code but no data."""
    import platform
    import traceback

    kind, _, trace = sys.exc_info()
    frames = "\n".join(
        f"{frame.name} ({os.path.basename(frame.filename)}:{frame.lineno})"  # noqa: PTH119 - as above
        for frame in traceback.extract_tb(trace)
    )
    system = f"rag-eval {__version__}, Python {platform.python_version()}, {platform.system()}"
    lines = ["rag-eval has a bug; please report it with these details:", "", f"### {kind.__name__ if kind else ''}"]
    return _say([*lines, "", system, "", *frames.split("\n")], BUG)
