"""The baseline: where it is read, and its traces scored again under the gold in use.

The base's file decides, as with gates: to replace the baseline in the same change moves no goalposts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.analysis.report import Earlier
from rag_eval.analysis.score_bounds import impossible
from rag_eval.cases.finding import Finding
from rag_eval.common.digests import by_line_ends
from rag_eval.common.escaping import quoted
from rag_eval.errors import InputError, Problem
from rag_eval.git.snapshots import read, read_regular
from rag_eval.readers.problems import Ledger
from rag_eval.readers.report_file import read_report
from rag_eval.readers.validation import json_kind
from rag_eval.rendering.json_file import Questions, from_json

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.governance.base_policy import Authority
    from rag_eval.readers.limits import Limits
    from rag_eval.readers.source import Reader

FOREIGN = "rag-server-run"

_AGAIN = "A baseline is the report.json of an earlier run of this version: score that run again."
_ON_BASE = "The base's decides: renew it there, or let the one change that does so decide for itself: gates-ref: head."


class _Held(NamedTuple):
    """What a file holds, the sha256 of its bytes, and where they are from."""

    data: bytes
    sha256: str
    ref: str


class Opened(NamedTuple):
    """A baseline that was read: the sha256 of its bytes, where they are from, and the report that they are.

    ``foreign`` is what there is to say of another framework's.
    """

    sha256: str
    ref: str
    recorded: Report
    foreign: Finding | None


class BaselineFile:
    """The file of a baseline, as the base has it, else as it is at hand; that of the base is read under ``limits``."""

    def __init__(self, reader: Reader, path: str, authority: Authority | None, limits: Limits) -> None:
        self.reader, self.path, self.authority, self.limits = reader, path, authority, limits

    @cached_property
    def opened(self) -> Opened | None:
        """The report that the file is; None if there is none. InputError if it is there and no report.json."""
        held = _at_base(self.authority, self.path) or _at_hand(self.reader, self.path)
        if held is None:
            return None
        reader = self.reader._replace(limits=self.limits) if held.ref else self.reader
        foreign = _values_alone(reader, self.path, held)
        recorded, said = foreign or (_recorded(reader, self.path, held), None)
        return Opened(held.sha256, held.ref, recorded, said)


def read_baseline(
    file: BaselineFile, trace: str, rescored: Callable[[str, bytes], Report | None], *, asked: bool = False
) -> tuple[Earlier | None, list[Finding]]:
    """The baseline of ``file`` and what there is to say of it; InputError where it is no report.json.

    A file that the gates file names may be yet to come; one that the caller ``asked`` for has to be there.

    Where its traces are at hand (``trace``), ``rescored`` gives their report under the gold in use. They have to be
    those that the baseline was made of: other traces are another baseline, and the base has not agreed to that.
    """
    reader, path, authority, opened = file.reader, file.path, file.authority, file.opened
    if opened is None and asked:
        raise InputError([Problem(path, 0, "", "no such file", "Name the report.json of an earlier run.")])
    if opened is None:
        return None, [
            Finding("no-baseline", "warning", "there is no baseline yet", "Commit a report.json there.", path)
        ]
    recorded = opened.recorded
    traces = (_at_base(authority, trace) or _at_hand(reader, trace)) if trace else None
    own = traces is not None and _is_one_of(traces, {one.sha256 for one in recorded.inputs if one.role == "trace"})
    now = rescored(trace, traces.data) if traces and own else None
    found = [*_said(reader, path, opened, authority), *([] if own or not trace else [_other_traces(trace, traces)])]
    found += _narrowed(recorded, path)
    found += [opened.foreign] if opened.foreign else []
    return _aged(_earlier(opened, now, path), authority), found


def read_rerun(baseline: BaselineFile, path: str) -> tuple[Report | None, list[Finding]]:
    """The report of the baseline's system run once more, or the finding that it is not there."""
    again = BaselineFile(baseline.reader, path, baseline.authority, baseline.limits).opened
    if again is None:
        message = "there is no rerun of the baseline: the minimum detectable effect uses the noise of this comparison"
        return None, [Finding("no-baseline", "warning", message, "Commit a report.json there.", path)]
    return again.recorded, []


def overridden(file: BaselineFile, meant: str) -> list[Finding]:
    """That the caller names another baseline than the one that is ``meant``, the base's, if any."""
    authority = file.authority
    if not meant or authority is None or authority.inside(meant) == authority.inside(file.path):
        return []
    message = f"the caller names this baseline, and the base's gates file names {quoted(meant)}"
    return [Finding("baseline-overridden", "warning", message, "Name it in eval-gates.yml alone.", file.path)]


def without_run_json(earlier: Earlier, about: Mapping[str, Any] | None, file: str) -> list[Finding]:
    """What run.json said of the baseline's run and does not say of this one: then nobody can hold it to that."""
    then, now = earlier.recorded.run or {}, about or {}
    gone = [name for name in _ORIGIN if then.get(name) and not now.get(name)]
    if about is None and then.keys() - _OF_SAVED_RUNS:
        message = "there is no run.json, and the baseline's run had one: which commit and gold these answers are of"
    elif gone:
        message = f"run.json lacks {', '.join(gone)}, which the baseline's run had: what these answers are of"
    else:
        return []
    fix = "Let the run that writes the traces write run.json beside them."
    return [Finding("run-json-missing", "warning", f"{message} cannot be checked", fix, file)]


_ORIGIN = ("system_commit", "gold_sha256")
_OF_SAVED_RUNS = {"id", "name", "created_at", "completed_at", "config"}  # an imported run had no run.json


def _narrowed(recorded: Report, path: str) -> list[Finding]:
    """A baseline that was narrowed itself: what it lacks cannot be compared."""
    if recorded.scope is None:
        return []
    measured = ", ".join(recorded.scope.perspectives) or "all perspectives"
    part = f"{recorded.scope.questions} of {recorded.scope.of} questions"
    message = f"the baseline is of a narrowed run ({measured}, {part}): nothing else is compared"
    return [Finding("baseline-narrowed", "warning", message, "Keep the report of a whole run as the baseline.", path)]


def _aged(earlier: Earlier, authority: Authority | None) -> Earlier:
    """With how far the base has gone since the file was written, where that can be said."""
    inside = authority.inside(earlier.path) if authority and earlier.ref else None
    if authority is None or authority.written_at is None or inside is None:
        return earlier
    found = authority.written_at(inside)
    if found is None:
        return earlier
    return earlier._replace(written=found.commit, commits_ago=found.commits, days_ago=found.days)


def _earlier(opened: Opened, now: Report | None, path: str) -> Earlier:
    recorded = opened.recorded
    if now is None:
        return Earlier(recorded, recorded.questions, recorded.contracts, path, opened.sha256, opened.ref)
    # What the gold asks since then the baseline never answered: that is no failure of its own.
    asked = {case.qid for case in recorded.questions}
    cases = tuple(case for case in now.questions if case.qid in asked)
    return Earlier(recorded, cases, now.contracts, path, opened.sha256, opened.ref)


def _other_traces(path: str, found: _Held | None) -> Finding:
    what = "are not those that the baseline was scored from" if found else "are not there"
    message = f"the baseline's traces {what}: changed gold leaves the changed items out of the comparison"
    return Finding("baseline-traces", "warning", message, "Keep report.json and traces of one and the same run.", path)


def _at_base(authority: Authority | None, path: str) -> _Held | None:
    inside = authority.inside(path) if authority else None
    data = read(authority.gates, inside) if authority and authority.gates and inside else None
    return _Held(data, sha256(data).hexdigest(), authority.ref) if authority and data is not None else None


def _at_hand(reader: Reader, path: str) -> _Held | None:
    """The file as it is at hand, None where there is none yet.

    InputError where something is there that cannot be read: a pointer to it, or a link that leads out, is no reason to
    judge without a baseline.
    """
    if not reader.has(path):
        return None
    ledger, digest, data = Ledger(), sha256(), None
    source = reader._replace(ledger=ledger).open(path, digest)
    if source is not None:
        with source:
            data = source.whole()
    ledger.stop_on_problems()
    return _Held(data, digest.hexdigest(), "") if data is not None else None


def _recorded(reader: Reader, path: str, held: _Held) -> Report:
    ledger = Ledger()
    value = read_report(reader._replace(ledger=ledger, held={path: held.data}), path, Questions().made)
    where, hint = (f"{path} of {held.ref}", f"{_AGAIN} {_ON_BASE}") if held.ref else (path, _AGAIN)
    if value is None:
        raise InputError([ledger.problems[0]._replace(file=where, hint=hint)], ledger.count - 1)
    found = from_json(value)
    wrong = impossible(found.questions)
    if wrong:
        raise InputError([Problem(where, 0, "", wrong, hint)])
    return found


def _values_alone(reader: Reader, path: str, held: _Held) -> tuple[Report, Finding] | None:
    """A saved run of another framework as a report, with what there is to say of it; None where it is none."""
    if b'"scorecard"' not in held.data or json_kind(held.data, path) != FOREIGN:
        return None
    from rag_eval.importers import report_of
    from rag_eval.importers._account import Account
    from rag_eval.readers.import_inputs import Files

    ledger = Ledger()
    quiet = reader._replace(ledger=ledger, held={path: held.data})
    report = report_of(FOREIGN, Files(quiet, [path]), Account())
    if report is None:
        where = f"{path} of {held.ref}" if held.ref else path
        raise InputError([one._replace(file=where) for one in ledger.problems], ledger.more)
    share = f"{len(report.contracts)} of its {len(report.metrics)} values mean here what they mean there"
    message = f"the baseline is another framework's saved run, without questions: {share}"
    fix = f"What is left out, and why: rag-eval import {FOREIGN} FILE"
    return report, Finding("baseline-values-alone", "warning", message, fix, path)


def _when_it_began(authority: Authority, path: str) -> list[str | None]:
    """The sha256 of the file where the change left the base, None for no file; nothing where that is the base."""
    inside = authority.inside(path)
    if authority.began is None or inside is None:
        return []
    data = read_regular(authority.began, inside)
    return [None if data is None else sha256(data).hexdigest()]


def _is_one_of(held: _Held, known: Collection[str | None]) -> bool:
    """Whether a file has one of these sha256, line ends aside."""
    return held.sha256 in known or any(digest in known for digest in by_line_ends(held.data))


def _said(reader: Reader, path: str, opened: Opened, authority: Authority | None) -> list[Finding]:
    if authority is None or authority.gates is None:
        return []
    if not opened.ref:
        message = "the base has no baseline of this name, so the one at hand was taken"
        return [Finding("baseline-from-head", "warning", message, "It decides once it is merged.", path)]
    own, known = _at_hand(reader, path), {opened.sha256, *_when_it_began(authority, path)}
    if _is_one_of(own, known) if own else None in known:
        return []
    verb = "replaced" if own else "removed"
    message = f"the baseline is {verb} by this change; the base's was compared with"
    return [Finding("baseline-changed", "warning", message, "Change it in a change of its own.", path)]
