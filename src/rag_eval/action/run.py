"""The GitHub Action: score, judge, and report to the log, the job summary, the outputs and the sticky comment.

The verdict is the exit code. A comment that cannot be posted never changes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from rag_eval import api
from rag_eval.action.base_commit import ApiHistory, GitHistory, authority, head_of, last_commit, people_of
from rag_eval.action.runner import (
    SUMMARY_BYTES,
    ActionInputs,
    Runner,
    annotation,
    announce,
    append_text,
    give_to_owner,
    limit_per_level,
    put_outputs,
    read_inputs,
    read_runner,
    real_path,
    report_folder,
)
from rag_eval.analysis import Report
from rag_eval.common.escaping import log_line, quantity
from rag_eval.common.files import write_together
from rag_eval.common.guard import OUT_OF_MEMORY, is_out_of_memory
from rag_eval.common.paths import usual_gates
from rag_eval.errors import CANNOT_JUDGE, GATE_FAILED, PASSED, InputError, RagEvalError, UsageError
from rag_eval.github import GitHub, Network, posting
from rag_eval.github.posting import Annotation, CommentBody, Posted, marker
from rag_eval.gold.signoff_identity import Author, SignoffPolicy
from rag_eval.rendering import RENDERERS, files, markdown, render, summary
from rag_eval.rendering.ci_formats import of_findings, of_gates, of_questions
from rag_eval.run import Options
from rag_eval.run.authority import Authority, WorkTree
from rag_eval.run.single_cases import details_of

Connect = Callable[[str, str, str], GitHub]

_CORE = ("precision", "chr", "under_refusal", "over_refusal", "answered_rate", "mrr")


class ActionOutcome(NamedTuple):
    """The result of the action: the text for people, the outputs, the exit code.

    ``why`` is the reason why the step fails although the verdict does not. ``needs_review`` is that of the report.
    """

    verdict: str
    text: Callable[[int, Callable[[str], int]], str]
    outputs: Mapping[str, str]
    notes: Sequence[Annotation]
    code: int
    why: str = ""
    needs_review: bool = False

    @property
    def failed(self) -> bool:
        """Return whether the verdict or the step needs attention."""
        return self.verdict != "passed" or bool(self.why)


def main() -> int:
    """Run the action in the environment of this process."""
    return action(os.environ, connector(os.environ))


def connector(environ: Mapping[str, str]) -> Connect:
    """Return a connector to GitHub's API; every call gets the same client, so that retries are shared.

    Only the action's own inputs name a proxy and certificates: an earlier step may have set other variables.
    """
    inputs, _ = read_inputs(environ)
    network = Network(inputs.proxy or None, "input 'proxy'", ca_certificates=inputs.ca_certificates or None)

    @cache
    def connect(api_url: str, token: str, repository: str) -> GitHub:
        return GitHub(api_url, token, repository, network)

    return connect


class ActionRun(NamedTuple):
    """One run of the action: its inputs, the runner, and a function that opens GitHub's API."""

    inputs: ActionInputs
    runner: Runner
    open_api: Callable[[], GitHub]


def action(environ: Mapping[str, str], connect: Connect) -> int:
    """Run the action in ``environ`` and return the exit code.

    ``connect(api_url, token, repository)`` gives GitHub's API. An unexpected error is raised again, after outputs,
    summary and comment report that nothing was judged. Otherwise an older comment would still say that the run passed.
    """
    runner, (inputs, wrong) = read_runner(environ), read_inputs(environ)
    run = ActionRun(inputs, runner, partial(connect, runner.api_url, inputs.github_token, runner.repository))
    try:
        return _post_from_artifact(run, wrong) if inputs.report else _report_outcome(run, _judged(run, wrong))
    except Exception as error:
        with suppress(Exception):
            _report_crash(run, error)
        raise


def _report_crash(run: ActionRun, error: Exception) -> None:
    """Report in every place that rag-eval failed; each step runs even if another one fails."""
    why = OUT_OF_MEMORY if is_out_of_memory(error) else "The log has the details. Please report them."
    reason = f"rag-eval failed to judge this run: {why}"
    outcome = _unjudged(partial(markdown.reason_within, reason))
    steps: list[Callable[[], object]] = [
        lambda: announce("error", reason),
        lambda: _remove_old_reports(run),
        lambda: put_outputs(run.runner, outcome.outputs),
        lambda: _summarise(run, outcome),
    ]
    if run.inputs.report:
        steps += [lambda: _publish(run, CommentBody(markdown.unjudged(reason), "invalid"))]
    else:
        steps += [lambda: _comment(run, outcome), lambda: _check(run, outcome)]
    for step in steps:
        with suppress(Exception):
            step()


def _report_outcome(run: ActionRun, outcome: ActionOutcome) -> int:
    if outcome.verdict == "invalid":
        _remove_old_reports(run)
    name = posting.comment_name(run.inputs.comment_id)
    outcome = outcome._replace(text=partial(markdown.named_within, name, outcome.text))
    for note in limit_per_level(outcome.notes) if run.inputs.annotations else ():
        print(annotation(*note))
    if outcome.why:
        announce("error", outcome.why)
    comment_url, commented = _comment(run, outcome)
    check_url = _check(run, outcome)
    _summarise(run, outcome)
    put_outputs(run.runner, outcome.outputs, comment_url, commented=commented, check_url=check_url)
    return outcome.code


def _judged(run: ActionRun, wrong: UsageError | None) -> ActionOutcome:
    """Return the outcome, also of a run that cannot be judged: no older comment may keep saying that it passed."""
    try:
        if wrong:
            raise wrong
        return judge(run)
    except InputError as error:
        _log("\n".join(error.lines()))
        notes = []
        for problem in error.problems:
            text = " ".join(part for part in (problem.where, f"{problem.message}.", problem.hint) if part)
            notes.append(Annotation("error", text, problem.file, problem.line, "cannot be judged"))
        return _unjudged(partial(markdown.problems_within, error), notes)
    except RagEvalError as error:
        return _refused(error)


def _refused(error: RagEvalError) -> ActionOutcome:
    announce("error", str(error), "rag-eval cannot run")
    return _unjudged(partial(markdown.reason_within, str(error)))


def _unjudged(text: Callable[[int, Callable[[str], int]], str], notes: Sequence[Annotation] = ()) -> ActionOutcome:
    outputs = {"pass": "false", "verdict": "invalid", "failed-gates": "", "findings": "", "base-commit": ""}
    return ActionOutcome("invalid", text, outputs, notes, CANNOT_JUDGE)


def judge(run: ActionRun) -> ActionOutcome:
    """Score, compare with the base, judge, and write the report; raise RagEvalError if that is impossible."""
    inputs, runner = run.inputs, run.runner
    below = inputs.working_directory.strip("/")
    gates = inputs.gates or usual_gates(below, runner.workspace)
    options = Options(inputs.gold, inputs.trace, gates, inputs.k, runner.workspace, below, inputs.baseline)
    options = replace(options, is_discovered=not inputs.gates)
    report = api.run(options, _authority(run))._replace(ci=runner.ci)
    _log(render(report, "table", verbose=True))
    workspace, folder = real_path(runner.workspace), report_folder(inputs, runner)
    write_together(folder, files(report, details=details_of(report, options) if inputs.details else None))
    give_to_owner(folder, workspace)
    inside = folder.relative_to(workspace).as_posix()
    paths = {f"report-{name}": f"{inside}/{RENDERERS[name][1]}" for name in ("json", "markdown", "html")}
    notes = []
    failing = () if report.passed else islice(of_questions(report), posting.MOST_CHECK_NOTES)
    for pointer in chain(of_gates(report), of_findings(report), failing):
        title = f"gate {pointer.code}" if pointer.kind == "gate" else pointer.code
        notes.append(Annotation(pointer.level, pointer.text, pointer.file, pointer.line, title))
    fails = {
        "error": not report.passed,
        "warning": not report.passed or bool(report.findings) or any(gate.broken for gate in report.gates),
        "never": False,
    }
    code = GATE_FAILED if fails[inputs.fail_on] else PASSED
    text, why = markdown.within, ""
    if code and report.passed:
        text = markdown.warned_within
        why = f"The report passed, but the step fails, because fail-on is warning: {summary.warned(report)}."
    outputs = {**_outputs(report), **paths}
    return ActionOutcome(report.verdict, partial(text, report), outputs, notes, code, why, report.needs_review)


def _authority(run: ActionRun) -> Authority | None:
    """Return who decides; None if no event names a commit under test."""
    inputs, runner = run.inputs, run.runner
    if not runner.trigger.name:
        return None
    head = WorkTree(_root(run))
    histories = (lambda: ApiHistory(run.open_api(), head), lambda: GitHistory(head.top, foreign=True))
    decider = authority(runner.trigger, inputs.gates_ref, inputs.signoff, head, histories)
    decider = decider._replace(workflow=runner.workflow_file)
    number = runner.pull_request or runner.trigger.queued
    if number is None and not runner.trigger.name.startswith("pull_request"):
        return decider

    def people(policy: SignoffPolicy) -> tuple[Collection[str], Collection[Author]]:
        github = run.open_api()
        return people_of(github, number, runner.trigger, policy, ApiHistory(github, head).parents)

    return decider._replace(people=people)


def _root(run: ActionRun) -> str:
    """Return the root of the checkout: a folder with a ``.git``, from the workspace to the working directory.

    If there are several, it is the outermost one at the commit under test. A repository nested in the checkout has no
    gates on its base, so it would be judged by none.
    """
    workspace = real_path(run.runner.workspace)
    folder = real_path(workspace / run.inputs.working_directory.strip("/"))
    above = [path for path in (folder, *folder.parents) if path.is_relative_to(workspace)]
    roots = [path for path in reversed(above) if os.path.exists(path / ".git")]  # noqa: PTH110 - Path's raises for a name that is too long
    trigger = run.runner.trigger
    under_test = {trigger.sha, trigger.head, f"ref: {trigger.ref}"} - {""}
    return str(next((path for path in roots if head_of(path) in under_test), next(iter(roots), workspace)))


def _outputs(report: Report) -> dict[str, str]:
    core = {name.replace("_", "-"): report.metrics[name].value for name in _CORE}
    core["recall"] = report.metrics[f"recall_all@{report.k}"].value
    return {
        "pass": str(report.passed).lower(),
        "verdict": report.verdict,
        "failed-gates": ",".join(dict.fromkeys(gate.name for gate in report.failed_gates)),
        "findings": ",".join(dict.fromkeys(finding.code for finding in report.findings)),
        "base-commit": report.base.commit if report.base and report.base.kind != "head" else "",
        **{name: "" if value is None else str(value) for name, value in core.items()},
    }


def _remove_old_reports(run: ActionRun) -> None:
    """Remove an older report from the paths of this run: a later step would upload it as this run's."""
    with suppress(RagEvalError):
        folder = report_folder(run.inputs, run.runner)
        for _, file in RENDERERS.values():
            with suppress(OSError):  # there is none, or a folder of that name, which contains no other file
                (folder / file).unlink()


def _comment(run: ActionRun, outcome: ActionOutcome) -> tuple[str, bool]:
    """Update the sticky comment; return its address, and whether it was written. A failure is only a notice."""
    inputs, runner = run.inputs, run.runner
    if inputs.comment == "off":
        return "", False
    try:
        number, head = runner.pull_request, runner.trigger.head
        if number is None:
            raise UsageError("this is not a pull request.")
        if not inputs.github_token:
            raise UsageError("there is no github-token.")
        first = marker(inputs.comment_id, head, runner.run, runner.workflow, runner.by, failed=outcome.failed) + "\n"
        last = posting.last_line(head, runner.run, runner.address)
        body = first + outcome.text(posting.MOST_CHARACTERS - len(first + last), len) + last
        posted = posting.post(run.open_api(), number, body, inputs.comment, needs_review=outcome.needs_review)
    except RagEvalError as error:
        announce("notice", f"No comment: {error} {_report_location(inputs)}")
        return "", False
    _note(posted)
    return posted.url, posted.written


def _check(run: ActionRun, outcome: ActionOutcome) -> str:
    """Write the check run, and return its address, empty if there is none. A failure is only a notice."""
    inputs, runner = run.inputs, run.runner
    if not inputs.check:
        return ""
    failed = outcome.outputs["failed-gates"]
    title = {"passed": "Passed", "failed": f"Failed gates: {failed}" if failed else "Failed"}
    content = {
        "name": f"{inputs.comment_id} report",  # the name rag-eval is the job's, which may be a required check
        "conclusion": "failure" if outcome.code else "neutral" if outcome.failed else "success",
        "external_id": runner.by,
        "details_url": runner.address,
    }
    try:
        if not runner.trigger.head:
            raise UsageError("the event names no commit.")
        if not inputs.github_token:
            raise UsageError("there is no github-token.")
        content["head_sha"] = runner.trigger.head
        if not outcome.code:
            history = ApiHistory(run.open_api(), WorkTree(_root(run)))
            content["head_sha"] = last_commit(runner.trigger, history.parents)
        shown = title.get(outcome.verdict, "Nothing was judged"), outcome.text(posting.MOST_CHECK_CHARACTERS, len)
        made, written = posting.publish_check(run.open_api(), content, *shown, outcome.notes)
    except RagEvalError as error:
        announce("notice", f"No check run: {error} {_report_location(inputs)}")
        return ""
    unwritten = len(outcome.notes) - written
    more = f"; the report has {unwritten} more" if unwritten else ""
    _log(f"check run written with {quantity(written, 'annotation')}{more}")
    return made.url


def _post_from_artifact(run: ActionRun, wrong: UsageError | None) -> int:
    """Comment with the report of a finished run; its verdict is that run's exit code, not this one's."""
    try:
        if wrong:
            raise wrong
        if run.inputs.check:
            raise UsageError("input 'check': a report from another run has no check run. Remove check or report.")
        body = _handed_over(run)
        posted = _publish(run, body)
    except RagEvalError as error:
        outcome = _refused(error)
        put_outputs(run.runner, outcome.outputs)
        return outcome.code
    _note(posted)
    outputs = {"pass": str(body.verdict == "passed").lower(), "verdict": body.verdict}
    put_outputs(run.runner, outputs, posted.url, commented=posted.written)
    return CANNOT_JUDGE if body.verdict == "invalid" else PASSED


def _publish(run: ActionRun, body: CommentBody) -> Posted:
    inputs, runner = run.inputs, run.runner
    fix = "The input 'report' needs one. To score traces, remove that input."
    origin = posting.ReportOrigin.of_event(runner.trigger.event, fix, runner.server, runner.repository)
    return posting.publish(run.open_api(), origin, body, inputs.comment_id, inputs.comment, runner.by)


def _handed_over(run: ActionRun) -> CommentBody:
    """Return the comment for the other run's report, or for its absence."""
    workspace, report = run.runner.workspace, run.inputs.report
    path = Path(workspace) / report
    if not os.path.lexists(path):  # the link would lead nowhere
        _log(f"{report} does not exist. Check the path. If it is right: {posting.NO_REPORT}.")
        return CommentBody(markdown.unjudged(f"{posting.NO_REPORT}."), "invalid")
    try:
        return posting.read(str(path), workspace)
    except InputError as error:
        _log("\n".join(error.lines()))
        return CommentBody(markdown.problems_within(error, posting.ROOM, len), "invalid")


def _note(posted: Posted) -> None:
    _log(str(posted))
    if posted.needs_attention:
        level = "notice" if posted.action == "skipped" else "warning"
        announce(level, f"{posted.reason}.", f"comment {posted.action}")


def _report_location(inputs: ActionInputs) -> str:
    return "The report is in the job summary." if inputs.summary else "The log has the report."


def _summarise(run: ActionRun, outcome: ActionOutcome) -> None:
    file = run.runner.summary_file
    if run.inputs.summary and file:
        taken = 0
        with suppress(OSError):  # the job may have no summary yet
            taken = Path(file).stat().st_size
        append_text(file, outcome.text(SUMMARY_BYTES - taken, lambda part: len(part.encode())), "job summary")


def _log(text: str) -> None:
    for line in text.split("\n"):
        print(log_line(line))
