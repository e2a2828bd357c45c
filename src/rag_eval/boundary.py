"""The one boundary where errors become lines on stderr and an exit code: around the command line and the action."""

from __future__ import annotations

import errno
import sys

from rag_eval import __version__
from rag_eval.errors import BUG, CANNOT_JUDGE, InputError, RagEvalError
from rag_eval.safe import log_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def guarded(work: Callable[[], int]) -> int:
    """Do ``work``; every error becomes lines on stderr and an exit code."""
    _speak_utf8()
    try:
        return work()
    except InputError as error:
        return _say(error.lines(), error.exit_code)
    except RagEvalError as error:
        return _say([f"rag-eval: {error}"], error.exit_code)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:  # noqa: BLE001 - the one boundary: what else arrives here is a defect, and said to be one
        return _unwritten(error) if isinstance(error, OSError) and error.errno in _FULL else _report_defect()


def _unwritten(error: OSError) -> int:
    what = f"write {error.filename}" if error.filename else "write"
    return _say([f"rag-eval: cannot {what}: {error.strerror}. Make room, or write elsewhere."], CANNOT_JUDGE)


def _say(lines: Sequence[str], code: int) -> int:
    for line in lines:
        print(log_line(line), file=sys.stderr)
    return code


def _speak_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _report_defect() -> int:
    """A defect as Markdown that can be pasted into an issue; it holds code lines, never data."""
    import platform
    import traceback

    kind, _, trace = sys.exc_info()
    frames = "\n".join(
        f"{frame.name} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in traceback.extract_tb(trace)
    )
    system = f"rag-eval {__version__}, Python {platform.python_version()}, {platform.system()}"
    lines = ["rag-eval has a defect; please report it with what follows:", "", f"### {kind.__name__ if kind else ''}"]
    return _say([*lines, "", system, "", *frames.split("\n")], BUG)
