"""Paths of files that ship with the package, of the gates file if none is named, and of run.json."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rag_eval.errors import UsageError

# The sign-off hook loads this module at every commit, but not pathlib, which would add 12 % to its instructions.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - see above
_CHECKOUT = os.path.dirname(os.path.dirname(_PACKAGE))  # noqa: PTH120

WINDOWS = os.name == "nt"
_LONGEST_PROJECT = 1 << 20
GATES_FILES = ("eval-gates.yml", "eval-gates.yaml")  # what a gates file is called where nothing names one
PROJECT_FILE = "pyproject.toml"
"""What may name a gates file of another name: ``[tool.rag-eval] gates = "conf/gates.yml"``."""


def usual_gates(folder: str = "", root: str = "") -> str:
    """Return the path of the gates file of ``folder``, from ``root``; empty if there is none.

    pyproject.toml may name it, otherwise it has the usual name.
    """
    project, *paths = (os.path.join(folder, name) for name in (PROJECT_FILE, *GATES_FILES))  # noqa: PTH118
    file = os.path.join(root, project)  # noqa: PTH118
    if os.path.isfile(file):  # noqa: PTH113
        try:
            with open(file, "rb") as opened:  # noqa: PTH123
                data = opened.read(_LONGEST_PROJECT)
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}. Make it readable.") from None
        named = gates_of_project(data, project)
        if named:
            return os.path.normpath(os.path.join(folder, named))  # noqa: PTH118
    return only_file([path for path in paths if os.path.lexists(os.path.join(root, path))])  # noqa: PTH118


def nearest_gates() -> str:
    """Return the path of the gates file of the current folder, or of the nearest one above it in the same repository.

    It is empty without a gates file. It is relative, so that reports show the same path on every machine.
    """
    folder, here = "", os.getcwd()  # noqa: PTH109
    while True:
        paths = usual_gates(folder)
        at_top = os.path.lexists(os.path.join(here, ".git")) or os.path.dirname(here) == here  # noqa: PTH118, PTH120
        if paths or at_top:
            return paths
        folder, here = os.path.join(folder, os.pardir), os.path.dirname(here)  # noqa: PTH118, PTH120


def gates_of_project(data: bytes, file: str) -> str:
    """Return the gates file that a pyproject.toml names, relative to its folder; empty if it names none."""
    if b"rag-eval" not in data:
        return ""
    import tomllib

    try:
        tool = tomllib.loads(data.decode("utf-8", "replace")).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: is not valid TOML: {error}. Correct it, or name the gates with --gates") from None
    table = tool.get("rag-eval", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict) or table.keys() - {"gates"} or not isinstance(table.get("gates", ""), str):
        fix = 'Write: gates = "conf/gates.yml"'
        raise UsageError(f"{file}: [tool.rag-eval] takes only the path of a gates file. {fix}")
    named: str = table.get("gates", "")
    return named


def only_file(paths: Sequence[str]) -> str:
    """Return the only gates file among ``paths`` in a folder, empty without one.

    UsageError is raised for two, because readers of the result could not know which one decided.
    """
    if len(paths) > 1:
        raise UsageError(f"{paths[0]} and {paths[1]} both exist, but only one can apply. Remove the other one.")
    return paths[0] if paths else ""


def shipped(folder: str, name: str) -> str:
    """Return the path of ``name`` in ``schemas``, ``examples`` or ``docs`` of this installation."""
    inside = os.path.join(_PACKAGE, f"_{folder}", name)  # noqa: PTH118
    return inside if os.path.exists(inside) else os.path.join(_CHECKOUT, folder, name)  # noqa: PTH110, PTH118


def sidecar_of(trace: str) -> str:
    """Return the path of the run.json of a trace file."""
    return os.path.join(os.path.dirname(trace), "run.json")  # noqa: PTH118, PTH120


def from_here(path: str) -> str:
    """Return a path relative to the current folder, or unchanged if it is on another drive of Windows."""
    try:
        return os.path.relpath(path)
    except ValueError:
        return path


def shell_line(*words: str) -> str:
    """Return words as a command line for this system's shell; those of Windows know only double quotes."""
    if WINDOWS:
        from subprocess import list2cmdline

        return list2cmdline(words)
    import shlex  # start-up time: hooks run at every commit

    return shlex.join(words)


def misread_names() -> str:
    """Return why non-ASCII file names fail here, and the fix; empty if they work.

    Names in gates files and git are UTF-8, whatever the locale.
    """
    encoding = sys.getfilesystemencoding()
    if encoding in ("utf-8", "utf8"):
        return ""
    return f"Python reads file names as {encoding} here, not as UTF-8. Set PYTHONUTF8=1, or a UTF-8 locale."


def trust_no_program_here() -> None:
    """Make Windows search programs only along the PATH, because the change under test controls the current folder."""
    if WINDOWS:
        os.environ.setdefault("NoDefaultCurrentDirectoryInExePath", "1")
