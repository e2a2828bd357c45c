"""The baseline: its file, and its traces scored again under the gold in use.

The base's file decides, as with gates: a change cannot replace the baseline that it is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.analysis.baseline import Earlier, impossible
from rag_eval.common.digests import by_line_ends
from rag_eval.common.escaping import quantity, quoted
from rag_eval.errors import Finding, InputError, Problem
from rag_eval.git.snapshots import read, read_regular
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import read_report
from rag_eval.readers.validation import json_kind
from rag_eval.rendering.json_file import Questions, from_json

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.contract import Limits
    from rag_eval.readers.source import Reader
    from rag_eval.run.authority import Authority

SAVED_RUN_FORMAT = "rag-server-run"

_AGAIN = "A baseline is a report.json of this version: score the earlier run again."
_ON_BASE = "The baseline of the base branch applies. Renew it there, or use gates-ref: head for this pull request."


class _Content(NamedTuple):
    """The content of a file, the sha256 of its bytes, and their origin."""

    data: bytes
    sha256: str
    ref: str


class Opened(NamedTuple):
    """A loaded baseline: the sha256 of its bytes, where they are from, and its report.

    ``foreign`` is the finding about a report of another framework.
    """

    sha256: str
    ref: str
    recorded: Report
    foreign: Finding | None


class BaselineFile:
    """The file of a baseline, from the base or otherwise the work tree; the base's is read under ``limits``."""

    def __init__(self, reader: Reader, path: str, authority: Authority | None, limits: Limits) -> None:
        self.reader, self.path, self.authority, self.limits = reader, path, authority, limits

    @cached_property
    def opened(self) -> Opened | None:
        """Return the report in the file; None without a file. Raise InputError if it is no report.json."""
        content = _from_base(self.authority, self.path) or _from_work_tree(self.reader, self.path)
        if content is None:
            return None
        reader = self.reader._replace(limits=self.limits) if content.ref else self.reader
        foreign = _imported_report(reader, self.path, content)
        recorded, finding = foreign or (_recorded(reader, self.path, content), None)
        return Opened(content.sha256, content.ref, recorded, finding)


def read_baseline(
    file: BaselineFile, trace: str, rescored: Callable[[str, bytes], Report | None], *, is_required: bool = False
) -> tuple[Earlier | None, list[Finding]]:
    """Return the baseline of ``file`` and findings about it; raise InputError if it is no report.json.

    A file that the gates file names may not exist yet; with ``is_required`` it must exist.

    If its traces are available (``trace``), ``rescored`` gives their report under the gold in use. They must be the
    traces that the baseline was made of: other traces are another baseline, which the base has not approved.
    """
    reader, path, authority, opened = file.reader, file.path, file.authority, file.opened
    if opened is None and is_required:
        raise InputError([Problem(path, 0, "", "no such file", "Name the report.json of an earlier run.")])
    if opened is None:
        return None, [
            Finding("no-baseline", "warning", "there is no baseline yet", "Commit a report.json there.", path)
        ]
    recorded = opened.recorded
    traces = (_from_base(authority, trace) or _from_work_tree(reader, trace)) if trace else None
    is_recorded = traces is not None and _has_hash(
        traces, {source_file.sha256 for source_file in recorded.inputs if source_file.role == "trace"}
    )
    now = rescored(trace, traces.data) if traces and is_recorded else None
    findings = [
        *_origin_findings(reader, path, opened, authority),
        *([] if is_recorded or not trace else [_other_traces(trace, traces)]),
    ]
    findings += _partial_baseline(recorded, path)
    findings += [opened.foreign] if opened.foreign else []
    return _with_age(_earlier(opened, now, path), authority), findings


def read_rerun(baseline: BaselineFile, path: str) -> tuple[Report | None, list[Finding]]:
    """Return the report of a second run of the baseline's system, or the finding that it is missing."""
    again = BaselineFile(baseline.reader, path, baseline.authority, baseline.limits).opened
    if again is None:
        message = "there is no rerun of the baseline: the minimum detectable effect uses the noise of this comparison"
        return None, [Finding("no-baseline", "warning", message, "Commit a report.json there.", path)]
    return again.recorded, []


def report_override(file: BaselineFile, meant: str) -> list[Finding]:
    """Return the finding that the caller's baseline replaces the one of the base branch (``meant``)."""
    authority = file.authority
    if not meant or authority is None or authority.inside(meant) == authority.inside(file.path):
        return []
    message = f"an input or option replaces the baseline {quoted(meant)} of the base branch's gates file"
    return [Finding("baseline-overridden", "warning", message, "Name it only in eval-gates.yml.", file.path)]


def missing_run_json(earlier: Earlier, about: Mapping[str, Any] | None, file: str) -> list[Finding]:
    """Return findings for fields of run.json that the baseline's run states and this run omits."""
    then, now = earlier.recorded.run or {}, about or {}
    gone = [name for name in _ORIGIN if then.get(name) and not now.get(name)]
    if about is None and then.keys() - _OF_SAVED_RUNS:
        message = "there is no run.json, but the run of the baseline had one: the commit and gold set of these answers"
    elif gone:
        message = f"run.json lacks {', '.join(gone)}, which the run of the baseline had: the origin of these answers"
    else:
        return []
    fix = "Write run.json next to the traces."
    return [Finding("run-json-missing", "warning", f"{message} cannot be checked", fix, file)]


_ORIGIN = ("system_commit", "gold_sha256")
_OF_SAVED_RUNS = {"id", "name", "created_at", "completed_at", "config"}  # an imported run has no run.json


def _partial_baseline(recorded: Report, path: str) -> list[Finding]:
    """Return the finding that the baseline is a partial run, so that parts cannot be compared."""
    if recorded.scope is None:
        return []
    measured = ", ".join(recorded.scope.perspectives) or "all perspectives"
    part = f"{recorded.scope.questions} of {recorded.scope.of} questions"
    message = f"the baseline is a partial run ({measured}, {part}): only that part is compared"
    return [Finding("baseline-narrowed", "warning", message, "Use the report of a complete run as the baseline.", path)]


def _with_age(earlier: Earlier, authority: Authority | None) -> Earlier:
    """Return the baseline with the number of commits since it was written, if that is known."""
    inside = authority.inside(earlier.path) if authority and earlier.ref else None
    if authority is None or authority.written_at is None or inside is None:
        return earlier
    written = authority.written_at(inside)
    if written is None:
        return earlier
    return earlier._replace(written=written.commit, commits_ago=written.commits, days_ago=written.days)


def _earlier(opened: Opened, now: Report | None, path: str) -> Earlier:
    recorded = opened.recorded
    if now is None:
        return Earlier(recorded, recorded.questions, recorded.contracts, path, opened.sha256, opened.ref)
    # The baseline never answered questions that were added since: those are no failures.
    is_required = {case.qid for case in recorded.questions}
    cases = tuple(case for case in now.questions if case.qid in is_required)
    return Earlier(recorded, cases, now.contracts, path, opened.sha256, opened.ref)


def _other_traces(path: str, traces: _Content | None) -> Finding:
    what = "do not belong to its report" if traces else "are missing"
    message = f"the traces of the baseline {what}, so items whose gold changed are not compared"
    return Finding("baseline-traces", "warning", message, "Keep report.json and traces of the same run.", path)


def _from_base(authority: Authority | None, path: str) -> _Content | None:
    inside = authority.inside(path) if authority else None
    data = read(authority.gates, inside) if authority and authority.gates and inside else None
    return _Content(data, sha256(data).hexdigest(), authority.ref) if authority and data is not None else None


def _from_work_tree(reader: Reader, path: str) -> _Content | None:
    """Return the file of the work tree; None if there is none yet.

    InputError is raised for anything unreadable at the path, such as a Git LFS pointer or a link that leads out.
    """
    if not reader.has(path):
        return None
    ledger, digest = ProblemCollector(), sha256()
    data = reader._replace(ledger=ledger).read(path, digest)
    ledger.stop_on_problems()
    return _Content(data, digest.hexdigest(), "") if data is not None else None


def _recorded(reader: Reader, path: str, content: _Content) -> Report:
    ledger = ProblemCollector()
    value = read_report(reader._replace(ledger=ledger, contents={path: content.data}), path, Questions().made)
    where, hint = (f"{path} of {content.ref}", f"{_AGAIN} {_ON_BASE}") if content.ref else (path, _AGAIN)
    if value is None:
        raise InputError([ledger.problems[0]._replace(file=where, hint=hint)], ledger.count - 1)
    report = from_json(value)
    wrong = impossible(report.questions)
    if wrong:
        raise InputError([Problem(where, 0, "", wrong, hint)])
    return report


def _imported_report(reader: Reader, path: str, content: _Content) -> tuple[Report, Finding] | None:
    """Return a saved run of another framework as a report, with findings; None if it is none."""
    if b'"scorecard"' not in content.data or json_kind(content.data, path) != SAVED_RUN_FORMAT:
        return None
    from rag_eval.importers import Account, report_of
    from rag_eval.readers.import_inputs import Files

    ledger = ProblemCollector()
    silent = reader._replace(ledger=ledger, contents={path: content.data})
    report = report_of(SAVED_RUN_FORMAT, Files(silent, [path]), Account())
    if report is None:
        where = f"{path} of {content.ref}" if content.ref else path
        raise InputError([problem._replace(file=where) for problem in ledger.problems], ledger.more)
    share = f"{len(report.contracts)} of its {quantity(len(report.metrics), 'value')} have the same definition here"
    message = f"the baseline is a saved run of another framework, without questions: {share}"
    fix = f"To see what is left out and why, run: rag-eval import {SAVED_RUN_FORMAT} FILE"
    return report, Finding("baseline-values-alone", "warning", message, fix, path)


def _hash_at_merge_base(authority: Authority, path: str) -> list[str | None]:
    """Return the sha256 of the file at the merge base, None for no file; nothing if that is the base."""
    inside = authority.inside(path)
    if authority.fork_of_gates is None or inside is None:
        return []
    data = read_regular(authority.fork_of_gates, inside)
    return [None if data is None else sha256(data).hexdigest()]


def _has_hash(content: _Content, hashes: Collection[str | None]) -> bool:
    """Return whether a file has one of these sha256 with any line ends."""
    return content.sha256 in hashes or any(digest in hashes for digest in by_line_ends(content.data))


def _origin_findings(reader: Reader, path: str, opened: Opened, authority: Authority | None) -> list[Finding]:
    if authority is None or authority.gates is None:
        return []
    if not opened.ref:
        message = "the base branch has no baseline of this name, so the one of the pull request was used"
        return [
            Finding(
                "baseline-from-head", "warning", message, "After the merge it applies to other pull requests.", path
            )
        ]
    current, known = _from_work_tree(reader, path), {opened.sha256, *_hash_at_merge_base(authority, path)}
    if _has_hash(current, known) if current else None in known:
        return []
    verb = "replaced" if current else "removed"
    message = f"this change {verb} the baseline, so the one of the base branch was used"
    return [Finding("baseline-changed", "warning", message, "Change it in a separate pull request.", path)]
