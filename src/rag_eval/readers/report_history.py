"""Earlier reports, newest first: those of a folder, or the versions of a report file in the commits of a branch."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rag_eval.analysis.baseline import impossible
from rag_eval.analysis.report import Report
from rag_eval.common.escaping import quantity, quoted
from rag_eval.errors import UsageError
from rag_eval.git.plumbing import Git
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import read_report
from rag_eval.readers.source import Reader
from rag_eval.rendering.json_file import Questions, from_json

_FILES, _IN_FOLDERS = (".json", ".json.gz", ".json.zst"), "report.json"
_NAMED = 3
_NUMBER = re.compile("([0-9]+)")


class SavedReport(NamedTuple):
    """A report under its label; without a report, ``why`` is the reason."""

    label: str
    report: Report | None
    why: str = ""


class Stored(NamedTuple):
    """Stored reports: their labels, oldest first, a function that reads one, and notes on other files."""

    labels: Sequence[str]
    read: Callable[[str], SavedReport]
    notes: Sequence[str] = ()

    def newest_first(self) -> Iterator[SavedReport]:
        """Yield each report; it is read when it is requested."""
        return (self.read(label) for label in reversed(self.labels))


def in_folder(folder: str) -> Stored:
    """Return the ``.json`` files of a folder and the report.json of each folder in it, by name: run-9 before run-10."""
    names: list[str] = []
    others: list[str] = []
    for name in sorted(_entries(folder), key=_by_number):
        inside = posixpath.join(name, _IN_FOLDERS)
        if os.path.isfile(os.path.join(folder, inside)):  # noqa: PTH113, PTH118
            names.append(inside)
        else:
            (names if name.endswith(_FILES) else others).append(name)
    shown = ", ".join([*(quoted(name, 60) for name in others[:_NAMED]), *(["…"] if len(others) > _NAMED else [])])
    notes = [f"left out: {len(others)} of {quoted(folder, 200)} without a report: {shown}"] if others else []

    def read(name: str) -> SavedReport:
        label = os.fsencode(name).decode("utf-8", "replace")  # names need not be UTF-8
        return _report(label, os.path.join(folder, name), folder)  # noqa: PTH118

    return Stored(names, read, notes)


def in_git(ref: str, file: str) -> Stored:
    """Return the versions of ``file`` in the commits that change it, along first parents to ``ref``."""
    git = Git()
    tip = git.resolve(ref)
    if tip is None:
        raise UsageError(f"{quoted(ref)} names no commit here. Fetch it first, or correct the name.")
    path = posixpath.normpath(posixpath.join(git.prefix, file.replace(os.sep, "/")))
    versions = dict(git.changes_of(tip, path))
    if not versions:
        raise UsageError(f"no commit of {quoted(ref)} touches {quoted(path, 200)}. Correct --file")
    blobs = git.contents(name for name in versions.values() if name)
    versions_by_commit = {commit[:12]: blobs[name] for commit, name in versions.items() if name}
    gone = [commit[:12] for commit, name in versions.items() if not name]
    named = ", ".join([*gone[:_NAMED], *(["…"] if len(gone) > _NAMED else [])])
    notes = [f"{quoted(path, 200)} is not in {named}"] if gone else []
    notes += ["this clone is shallow: older reports are not in it. Fetch them: fetch-depth: 0"] if git.shallow else []
    return Stored(list(versions_by_commit), lambda commit: _report(commit, commit, None, versions_by_commit), notes)


def by_run(reports: Sequence[SavedReport], field: str) -> tuple[list[SavedReport], list[str]]:
    """Sort reports, given newest first, by a field of their run.json, oldest first; name those without it.

    Numbers come before texts, and reports with equal values keep their order.
    """
    keyed: list[tuple[tuple[bool, float, str], int]] = []
    without = []
    for index, report in enumerate(reports):
        value = (report.report.run or {}).get(field) if report.report else None
        if isinstance(value, str):
            keyed.append(((True, 0.0, value), -index))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            keyed.append(((False, float(value), ""), -index))
        else:
            without.append(f"{report.label}: its run has no {quoted(field)} to sort by, so it is left out")
    return [reports[-position] for _, position in sorted(keyed)], without


def _by_number(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key under which numbers in a name count as numbers."""
    parts = ((int(part), "") if _NUMBER.fullmatch(part) else (-1, part) for part in _NUMBER.split(name))
    return list(parts), name


def _entries(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]  # noqa: PTH208
    except OSError as error:
        why = (error.strerror or "it cannot be read").lower()
        raise UsageError(f"{quoted(folder, 200)} cannot be listed: {why}. Name a folder of report.json files") from None


def _report(label: str, path: str, root: str | None, contents: Mapping[str, bytes] | None = None) -> SavedReport:
    ledger = ProblemCollector()
    reader = Reader(ledger, root=root, contents=contents or {})
    value: dict[str, Any] | None = read_report(reader, path, Questions().made)
    if value is None:  # a file that is no report of this version
        first = ledger.problems[0]._replace(file=label) if ledger.problems else f"{label}: cannot be read."
        more = f" ({quantity(ledger.count - 1, 'more problem')})" if ledger.count > 1 else ""
        return SavedReport(label, None, f"left out: {first}{more}")
    report = from_json(value)
    if wrong := impossible(report.questions):
        return SavedReport(label, None, f"left out: {label}: {wrong}. Score the run again.")
    return SavedReport(label, report)
