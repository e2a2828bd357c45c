"""The baseline: its file, and its traces scored again under the gold in use.

The base's file decides, as with gates: a change cannot replace the baseline that it is compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from rag_eval.analysis import Earlier, Report
from rag_eval.analysis.baseline import Compared
from rag_eval.common.escaping import quantity, quoted, some
from rag_eval.common.files import by_line_ends
from rag_eval.common.paths import sidecar_of
from rag_eval.contract import Limits
from rag_eval.errors import Finding, InputError, Problem
from rag_eval.gates import MARGINS, Policy
from rag_eval.gates.evidence import RunEvidence
from rag_eval.gates.questions import impossible
from rag_eval.git import entry_of, follow_links, read, read_regular
from rag_eval.metrics import measure
from rag_eval.readers.report_file import read_report
from rag_eval.readers.source import Reader
from rag_eval.readers.validation import json_kind

if TYPE_CHECKING:
    from rag_eval.run.authority import Authority

SAVED_RUN_FORMAT = "rag-server-run"

_AGAIN = "A baseline is a report.json of this version: score the earlier run again."
_ORIGIN = ("system_commit", "gold_sha256")
_NAMED = 3
_OF_SAVED_RUNS = {"id", "name", "created_at", "completed_at", "config"}  # an imported run has no run.json
_ON_BASE = "The baseline of the base branch applies. Renew it there, or use gates-ref: head for this pull request."


class _Content(NamedTuple):
    """The content of a file, the sha256 of its bytes, and the ref of the base, empty for the work tree."""

    data: bytes
    sha256: str
    ref: str

    def is_one_of(self, hashes: Collection[str | None]) -> bool:
        """Return whether the file has one of these sha256 with any line ends."""
        return self.sha256 in hashes or any(digest in hashes for digest in by_line_ends(self.data))


class BaselineFile:
    """The files of a baseline, from the base or otherwise the work tree; the base's are read under ``limits``.

    ``named`` is the report that the caller named, in place of the one of the policies. ``path`` is the report in use,
    ``trace`` and ``rerun`` are the paths of its traces and of a report of another run, empty if they are not named.
    """

    def __init__(
        self, reader: Reader, authority: Authority | None, limits: Limits, policies: Sequence[Policy], named: str
    ) -> None:
        self.reader, self.authority, self.limits, self.named = reader, authority, limits, named
        self.of_base = policies[1].baseline if len(policies) > 1 else ""
        last_first = list(reversed(policies))  # the base branch's policy decides
        self.path = named or next((policy.baseline for policy in last_first if policy.baseline), "")
        same = [policy for policy in last_first if named or policy.baseline == self.path]
        self.trace = next((policy.baseline_trace for policy in same if policy.baseline_trace), "")
        self.rerun = next((policy.baseline_rerun for policy in same if policy.baseline_rerun), "")
        margins = [gate for policy in policies for gate in policy.gates if gate.direction in MARGINS and not gate.slice]
        self.margins = {gate.name: gate.direction for gate in margins}

    @cached_property
    def content(self) -> _Content | None:
        """Return the content of the report; None without a file."""
        return self.at(self.path)

    @cached_property
    def recorded(self) -> tuple[Report, list[Finding]]:
        """Return the report, and the finding if it is of another framework; InputError if it is none."""
        return self._report_in(self.path, self.content)

    def traces(self) -> bytes | None:
        """Return the bytes of the traces that the baseline was made of, if they are available.

        Other traces are another baseline, which the base has not approved.
        """
        if not self.trace or self.content is None:
            return None
        hashes = {source_file.sha256 for source_file in self.recorded[0].inputs if source_file.role == "trace"}
        traces = self.at(self.trace)
        return traces.data if traces and traces.is_one_of(hashes) else None

    def second_run(self) -> Report | None:
        """Return the report of another run of the same system; None if its file is missing."""
        content = self.at(self.rerun)
        return self._report_in(self.rerun, content)[0] if content else None

    def drawbacks(self, content: _Content, asked: Container[str]) -> list[str]:
        """Return how another report of the baseline lets more pass: values of regression gates, missing questions.

        ``asked`` are the qids of the gold set. Values are of the questions in both reports, as gates compare them.
        """
        try:
            reports = self.recorded[0], self._report_in(self.path, content)[0]
        except InputError:  # it is no report of this version, which the run after the merge says
            return []
        qids, others = ({case.qid for case in report.questions} for report in reports)
        before, after = (_evidence(report, qids & others, self.margins) for report in reports)
        worse = list[str]()
        for name in sorted(self.margins.keys() & before.contracts.keys() & after.contracts.keys()):
            old, new = before.value(name).as_float, after.value(name).as_float
            if old is not None and new is not None and old != new:
                is_lower = new < old
                worse += [f"{name} {old:.4g} → {new:.4g}"] if is_lower == (self.margins[name] == "max_drop") else []
        gone = sorted(qid for qid in qids - others if qid in asked)
        lacks = f"lacks {quantity(len(gone), 'question')} of the gold set: {some(gone, _NAMED, quoted)}"
        return [*([f"is worse in {some(worse, _NAMED)}"] if worse else []), *([lacks] if gone else [])]

    def changed(self, content: _Content) -> tuple[str, _Content | None]:
        """Return whether the change replaced or removed the report of the base, empty if neither, and what it has."""
        authority, current = self.authority, _from_work_tree(self.reader, self.path)
        known: set[str | None] = {content.sha256}
        name, began = (authority.on_base(self.path), authority.fork_of_gates) if authority else (None, None)
        if began is not None and name is not None:
            data = read_regular(began, follow_links(began, name))
            known.add(None if data is None else sha256(data).hexdigest())
        is_same = current.is_one_of(known) if current else None in known
        return "" if is_same else "replaced" if current else "removed", current

    def changed_in_git(self, path: str) -> str:
        """Return whether the change replaced or removed another file of the base in git, empty if neither.

        Its content is not read, because it may be large or in Git LFS.
        """
        authority = self.authority
        name, gates = (authority.on_base(path), authority.gates) if authority else (None, None)
        if authority is None or gates is None or name is None:
            return ""
        trees = gates, authority.fork_of_gates or gates, authority.after
        tip, began, now = (entry_of(tree, follow_links(tree, name)) for tree in trees)
        return "" if not tip or now in (tip, began) else "replaced" if now else "removed"

    def at(self, path: str) -> _Content | None:
        """Return the content of a file of the base, otherwise of the work tree; None without a file."""
        authority = self.authority
        name, tree = (authority.on_base(path), authority.gates) if authority else (None, None)
        if authority and tree and name and (data := read(tree, follow_links(tree, name))) is not None:
            return _Content(data, sha256(data).hexdigest(), authority.ref)
        return _from_work_tree(self.reader, path)

    def _report_in(self, path: str, content: _Content | None) -> tuple[Report, list[Finding]]:
        if content is None:
            raise InputError([Problem(path, 0, "", "no such file", "Name the report.json of an earlier run.")])
        silent = replace(self.reader.silent(), contents={path: content.data})
        silent = replace(silent, limits=self.limits) if content.ref else silent
        where, hint = (f"{path} of {content.ref}", f"{_AGAIN} {_ON_BASE}") if content.ref else (path, _AGAIN)
        if b'"scorecard"' in content.data and json_kind(content.data, path) == SAVED_RUN_FORMAT:
            return _imported_report(silent, path, where)
        report = read_report(silent, path)
        if report is None:
            first, others = silent.ledger.problems[0], silent.ledger.count - 1
            raise InputError([first._replace(file=where, hint=hint)], others)
        if wrong := impossible(report.questions):
            raise InputError([Problem(where, 0, "", wrong, hint)])
        return report, []


def read_baseline(
    file: BaselineFile, trace: str, about: Mapping[str, Any] | None, now: Report | None, asked: Container[str]
) -> tuple[Earlier | None, list[Finding]]:
    """Return the baseline of ``file``, and findings about it.

    ``about`` is the run.json next to the traces of the run, ``trace``. ``now`` is the report of the baseline's traces
    under the gold in use, whose qids are ``asked``, None if they are not available. InputError means that the file is
    no report.json.
    """
    path, content, authority = file.path, file.content, file.authority
    if content is None and not file.named:  # a file that only the gates file names may not exist yet
        message = "there is no baseline yet"
        fix = "Score a good run with --format json --out DIR, and commit DIR/report.json under this name. "
        fix += "Commit its traces too, as baseline.trace: with them, changed gold items can be compared."
        return None, [Finding("no-baseline", "warning", message, fix, path)]
    recorded, foreign = file.recorded
    findings = [*_origin_findings(file, asked)]
    is_renewed = any(finding.code == "baseline-changed" for finding in findings)
    if file.trace and now is None and not (is_renewed or file.named):
        what = "do not belong to its report" if file.at(file.trace) else "are missing"
        message = f"the traces of the baseline {what}, so items whose gold changed are not compared"
        fix = "Keep report.json and traces of the same run."
        findings.append(Finding("baseline-traces", "warning", message, fix, file.trace))
    if recorded.scope:
        measured = ", ".join(recorded.scope.perspectives) or "all perspectives"
        part = f"{recorded.scope.questions} of {recorded.scope.of} questions"
        message = f"the baseline is a partial run ({measured}, {part}): only that part is compared"
        fix = "Use the report of a complete run as the baseline."
        findings.append(Finding("baseline-narrowed", "warning", message, fix, path))
    # The baseline never answered questions that were added since: those are no failures.
    known = {case.qid for case in recorded.questions}
    cases = tuple(case for case in now.questions if case.qid in known) if now else recorded.questions
    compared = Compared(path, content.sha256, content.ref) if content else Compared(path, "", "")
    name = authority.on_base(path) if authority and compared.ref else None
    if authority and authority.written_at and name and (written := authority.written_at(name)):
        compared = compared._replace(written=written.commit, commits_ago=written.commits, days_ago=written.days)
    earlier = Earlier(recorded, cases, (now or recorded).contracts, compared, file.second_run() if file.rerun else None)
    findings += foreign
    if file.named and file.of_base and authority and authority.on_base(file.of_base) != authority.on_base(path):
        message = f"an input or option replaces the baseline {quoted(file.of_base)} of the base branch's gates file"
        fix = "Name it only in eval-gates.yml."
        findings.append(Finding("baseline-overridden", "warning", message, fix, path))
    if file.rerun and earlier.rerun is None:
        message = "there is no rerun of the baseline: the minimum detectable effect uses the noise of this comparison"
        findings.append(Finding("no-baseline", "warning", message, "Commit a report.json there.", file.rerun))
    return earlier, [*findings, *_missing_run_json(earlier, about, sidecar_of(trace))]


def _missing_run_json(earlier: Earlier, about: Mapping[str, Any] | None, file: str) -> list[Finding]:
    """Return findings for fields of run.json that the baseline's run states and this run omits."""
    then, now = earlier.recorded.run or {}, about or {}
    gone = [name for name in _ORIGIN if then.get(name) and not (now.get(name) or "").strip()]
    if about is None and then.keys() - _OF_SAVED_RUNS:
        message = "there is no run.json, but the run of the baseline had one: the commit and gold set of these answers"
    elif gone:
        message = f"run.json lacks {', '.join(gone)}, which the run of the baseline had: the origin of these answers"
    else:
        return []
    fix = "Write run.json next to the traces."
    return [Finding("run-json-missing", "warning", f"{message} cannot be checked", fix, file)]


def _from_work_tree(reader: Reader, path: str) -> _Content | None:
    """Return the file of the work tree; None if there is none yet.

    InputError is raised for anything unreadable at the path, such as a Git LFS pointer or a link that leads out.
    """
    if not reader.has(path):
        return None
    reader, digest = reader.silent(), sha256()
    data = reader.read(path, digest)
    reader.ledger.stop_on_problems()
    return _Content(data, digest.hexdigest(), "") if data is not None else None


def _imported_report(reader: Reader, path: str, where: str) -> tuple[Report, list[Finding]]:
    """Return a saved run of another framework as a report, with the finding about it."""
    from rag_eval.importers import Account, report_of
    from rag_eval.readers.import_inputs import Files

    report = report_of(SAVED_RUN_FORMAT, Files(reader, [path]), Account())
    if report is None:
        problems = [problem._replace(file=where) for problem in reader.ledger.problems]
        raise InputError(problems, reader.ledger.more)
    share = f"{len(report.contracts)} of its {quantity(len(report.metrics), 'value')} have the same definition here"
    message = f"the baseline is a saved run of another framework, without questions: {share}"
    fix = f"To see what is left out and why, run: rag-eval import {SAVED_RUN_FORMAT} FILE"
    return report, [Finding("baseline-values-alone", "warning", message, fix, path)]


def _origin_findings(file: BaselineFile, asked: Container[str]) -> list[Finding]:
    """Return findings if the baseline is not the base's, or if the change replaces or removes one of its files."""
    authority, content, path = file.authority, file.content, file.path
    if authority is None or authority.gates is None or content is None:
        return []
    if not content.ref:
        message = "the base branch has no baseline of this name, so the one of the pull request was used"
        fix = "After the merge it applies to other pull requests."
        return [Finding("baseline-from-head", "warning", message, fix, path)]
    verb, current = file.changed(content)
    what = "the baseline"
    for other in filter(None, (file.trace, file.rerun)):
        if not verb:
            verb, what, path = file.changed_in_git(other), f"{quoted(other)} of the baseline", other
    if not verb:
        return []
    message = f"this change {verb} {what}, so the one of the base branch was used"
    if path == file.path and current and (drawbacks := file.drawbacks(current, asked)):
        message += f"; the new one {' and '.join(drawbacks)}"
    fix = "It counts after the merge. Make other changes in a separate pull request."
    return [Finding("baseline-changed", "warning", message, fix, path)]


def _evidence(report: Report, qids: Container[str], names: Iterable[str]) -> RunEvidence:
    """Return the values of a report over some of its questions; a saved run without questions has only its values."""
    of_run = {name for name in names if not report.questions or measure(name).metric.level == "run"}
    metrics = {name: result for name, result in report.metrics.items() if name in of_run}
    cases = [case for case in report.questions if case.qid in qids]
    return RunEvidence(cases, metrics, report.completeness, report.contracts)
