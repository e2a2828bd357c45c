"""Readers of report.json, as strict as for other files, and of the reports of a folder or a branch."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from rag_eval.analysis import Report
from rag_eval.common.escaping import quantity, quoted
from rag_eval.errors import InputError, Problem, UsageError
from rag_eval.gates import COMPLETENESS
from rag_eval.gates.questions import Question, impossible
from rag_eval.readers import strict_json
from rag_eval.readers.jsonl import decode_exactly
from rag_eval.readers.problems import Contract, ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.rendering.data_formats import from_json

_BATCH = 1_000
_LABELS = ("label", "coarse_label")
_FILES, _IN_FOLDERS = (".json", ".json.gz", ".json.zst"), "report.json"
_NAMED = 3
_NUMBER = re.compile("([0-9]+)")
StoredReports: TypeAlias = tuple[Iterator[tuple[str, Report | str]], Sequence[str]]
"""Labels with reports, or why one is left out, newest first, each read when it is requested; notes on other files."""


def check_scores(path: str, report: Report) -> None:
    """Raise UsageError if a report.json has a score that its metric cannot give: it was edited by hand."""
    if wrong := impossible(report.questions):
        raise UsageError(f"{path}: {wrong}. Score the run again.")


def read_report(reader: Reader, path: str) -> Report | None:
    """Return a valid report.json, or None with the problems in the ledger."""
    data, value = reader.read(path), None
    if data is None:
        return None
    contract = Contract("report", reader.limits.depth)
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError, strict_json.JsonError):
        value = _by_parts(contract, data)
    if value is None:  # the exact reader reports the problem
        value = decode_exactly(reader, path, data, contract)
    return None if value is None else from_json(value)


def _by_parts(contract: Contract, data: bytes) -> dict[str, Any] | None:
    """Return the value of a report, decoded by parts; None if only the exact reader can decide.

    There may be too many questions to keep all of them decoded, so they are made from some at a time.
    """
    parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    questions = parts.pop("questions", msgspec.Raw(b"null"))
    rest = b"{%s}" % b",".join([b"%s:%s" % (msgspec.json.encode(name), raw) for name, raw in parts.items()])
    value: dict[str, Any] = strict_json.parse(rest, contract.depth)
    if contract.faults({**value, "questions": []}):
        return None
    labels = [contract.schema["properties"]["questions"]["items"]["properties"][name]["enum"] for name in _LABELS]
    entries, made = msgspec.json.decode(questions, type=list[msgspec.Raw]), list[Question]()
    decoder, quotes = msgspec.json.Decoder(list[Question]), rest.count(b'"') + len('""')
    for begin in range(0, len(entries), _BATCH):
        text = b"[%s]" % b",".join(map(bytes, entries[begin : begin + _BATCH]))
        rows = decoder.decode(text)
        quotes += text.count(b'"')
        if b"u0022" in text or text.count(b'"') != msgspec.json.encode(rows).count(b'"'):
            return None
        if any([row.label not in labels[0] or row.coarse_label not in labels[1] for row in rows]):
            return None
        made += rows
    # A repeated key lost its quotes.
    return {**value, "questions": made} if data.count(b'"') == quotes else None


@contextmanager
def checked_report(path: str, hint: str) -> Iterator[None]:
    """Raise InputError if a report contradicts itself although its schema accepts it.

    No run writes such a report, so it was made or edited otherwise.
    """
    try:
        yield
    except (ArithmeticError, LookupError, ValueError) as error:
        raise InputError([Problem(path, 0, "", f"contradicts itself ({type(error).__name__})", hint)]) from None


def check_gates(path: str, report: Report, hint: str) -> None:
    """Raise InputError if a report has no completeness gates, which every run has.

    A report converted from another framework has no gates, and neither has one whose gates were removed.
    """
    there = {gate.name for gate in report.gates}
    for name in COMPLETENESS:
        if f"completeness.{name}" not in there:
            message = f"has no gate completeness.{name}, which every run has"
            raise InputError([Problem(path, 0, "/gates", message, hint)])


def reports_in_folder(folder: str) -> StoredReports:
    """Return the ``.json`` files of a folder and the report.json of each folder in it, by name: run-9 before run-10."""
    names: list[str] = []
    others: list[str] = []
    try:
        entries = [path.name for path in Path(folder).iterdir() if not path.name.startswith(".")]
    except OSError as error:
        why = (error.strerror or "it cannot be read").lower()
        raise UsageError(f"{quoted(folder, 200)} cannot be listed: {why}. Name a folder of report.json files") from None
    for name in sorted(entries, key=_by_number):
        inside = posixpath.join(name, _IN_FOLDERS)
        if os.path.isfile(Path(folder, inside)):  # noqa: PTH113 - Path.is_file raises without permission
            names.append(inside)
        else:
            (names if name.endswith(_FILES) else others).append(name)
    shown = ", ".join([*(quoted(name, 60) for name in others[:_NAMED]), *(["…"] if len(others) > _NAMED else [])])
    notes = [f"left out: {len(others)} of {quoted(folder, 200)} without a report: {shown}"] if others else []
    labels = {name: os.fsencode(name).decode("utf-8", "replace") for name in names}  # names need not be UTF-8
    reports = ((labels[name], _report(labels[name], str(Path(folder, name)), folder)) for name in reversed(names))
    return reports, notes


def reports_in_git(ref: str, file: str) -> StoredReports:
    """Return the versions of ``file`` in the commits that change it, along first parents to ``ref``."""
    from rag_eval.git.plumbing import Git  # runs processes

    git = Git()
    tip = git.commit_named(ref)
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
    reports = ((commit, _report(commit, commit, None, versions_by_commit)) for commit in reversed(versions_by_commit))
    return reports, notes


def _by_number(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key under which numbers in a name count as numbers."""
    parts = ((int(part), "") if _NUMBER.fullmatch(part) else (-1, part) for part in _NUMBER.split(name))
    return list(parts), name


def _report(label: str, path: str, root: str | None, contents: Mapping[str, bytes] | None = None) -> Report | str:
    """Return a report, or why it is left out."""
    ledger = ProblemCollector()
    reader = Reader(ledger, root=root, contents=contents or {})
    report = read_report(reader, path)
    if report is None:  # a file that is no report of this version
        first = ledger.problems[0]._replace(file=label) if ledger.problems else f"{label}: cannot be read."
        more = f" ({quantity(ledger.count - 1, 'more problem')})" if ledger.count > 1 else ""
        return f"left out: {first}{more}"
    try:
        check_scores(label, report)
    except UsageError as error:
        return f"left out: {error}"
    return report
