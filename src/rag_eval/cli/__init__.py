"""The command line: the choice of the command, and the quick check of the hook."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from rag_eval.common.guard import guarded
from rag_eval.common.paths import GATES_FILES, PROJECT_FILE
from rag_eval.errors import CANNOT_JUDGE, PASSED

_HOOK = ["gold", "check", "--staged"]


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
    from rag_eval.cli.parser import GROUPS, build_parser, find_command

    parser = build_parser(arguments[0] if arguments else "")
    if not arguments or (len(arguments) == 1 and arguments[0] in GROUPS):
        with suppress(SystemExit):
            parser.parse_args([*arguments, "--help"])
        return CANNOT_JUDGE  # an empty variable of a script must not end successfully
    parsed = parser.parse_args(arguments)
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
