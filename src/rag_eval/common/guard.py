"""The one place where errors become lines on stderr and an exit code, for the commands and the action."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TextIO

from rag_eval import __version__
from rag_eval.common.escaping import log_line, quoted
from rag_eval.common.paths import WINDOWS, misread_names
from rag_eval.errors import BUG, CANNOT_JUDGE, InputError, RagEvalError

OUT_OF_MEMORY = "there is not enough memory for this run. Give it more, or score the traces in parts."
INTERRUPTED = 130
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE)


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
    elif isinstance(error, FileNotFoundError) and error.filename is None:  # of os.getcwd
        message = "the current folder no longer exists. Change to another one."
    elif isinstance(error, OSError) and error.filename is not None:
        why = (error.strerror or "unknown reason").lower()
        message = f"{quoted(str(error.filename), 200)}: {why}. Check its path and permissions."
    return _say([f"rag-eval: {message}"], CANNOT_JUDGE) if message else 0


def is_out_of_memory(error: Exception) -> bool:
    """Return whether the machine ran out of memory, in Python or in another process."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)


def _say(lines: Sequence[str], code: int) -> int:
    with suppress(OSError):  # if stderr is closed, only the exit code reports it
        for line in lines:
            print(log_line(line), file=sys.stderr)
    return code


class _TolerantPipe(io.FileIO):
    """A pipe that ignores writes after its reader closed it, which changes no verdict."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # Windows reports a pipe without a reader as an invalid argument.
            if isinstance(error, ConnectionError) or (WINDOWS and error.errno == errno.EINVAL):
                return memoryview(data).nbytes
            raise


def _tolerant(stream: TextIO | None) -> TextIO:
    """Return a stream that accepts writes even if its reader is gone, so that the exit code is not lost."""
    if stream is None:  # it was closed before the start: >&-
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - as above
    if type(stream) is not io.TextIOWrapper or stream.isatty():
        return stream
    if isinstance(getattr(stream.buffer, "raw", stream.buffer), _TolerantPipe):
        return stream
    stream.flush()
    raw = _TolerantPipe(stream.fileno(), "wb", closefd=False)
    bare, by_lines = stream.write_through, stream.line_buffering  # bare: python -u
    buffer = raw if bare else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", line_buffering=by_lines, write_through=bare)


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
