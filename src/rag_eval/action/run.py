"""The GitHub Action: score, judge, and say so in the log, the job summary, the outputs and the sticky comment.

The verdict is the exit code. What cannot be posted never changes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rag_eval import api
from rag_eval.action.base_commit import ApiHistory, GitHistory, authority, head_of, who
from rag_eval.action.inputs import Inputs, legible, read_inputs
from rag_eval.action.runner_context import read_place
from rag_eval.cli.error_handling import OUT_OF_MEMORY, is_out_of_memory
from rag_eval.common.escaping import log_line, quoted
from rag_eval.common.paths import usual_gates
from rag_eval.errors import CANNOT_JUDGE, GATE_FAILED, PASSED, InputError, Problem, RagEvalError, UsageError
from rag_eval.git.plumbing import Git
from rag_eval.github.comment import MOST_CHARACTERS, last_line, marker, name_of, post, run_address
from rag_eval.github.workflow import MOST_ANNOTATIONS, SUMMARY_BYTES, annotation, most_of_each, output
from rag_eval.readers.source import RELATIVE
from rag_eval.readers.work_tree import WorkTree
from rag_eval.rendering import RENDERERS, files, markdown, phrases, render
from rag_eval.rendering.annotations import of_findings, of_gates, of_questions
from rag_eval.run.options import Options

if TYPE_CHECKING:
    from rag_eval.action.runner_context import Place
    from rag_eval.analysis.report import Report
    from rag_eval.github.api import GitHub
    from rag_eval.github.comment import Mode, Posted
    from rag_eval.github.posting import CommentBody
    from rag_eval.gold.signoff.identity import Author
    from rag_eval.gold.signoff.policy import Policy as SignoffPolicy
    from rag_eval.governance.base_policy import Authority, Signoff

    Connect = Callable[[str, str, str], GitHub]

_CORE = ("precision", "chr", "under_refusal", "over_refusal", "answered_rate", "mrr")


class Outcome(NamedTuple):
    """What came of it, whatever it was: the text for people, the outputs, the exit code.

    ``why`` says why the step fails where the verdict does not.
    """

    verdict: str
    text: Callable[[int, Callable[[str], int]], str]
    outputs: Mapping[str, str]
    annotations: Sequence[str]
    code: int
    why: str = ""

    @property
    def failed(self) -> bool:
        """Whether the verdict or the step is one that somebody should look at."""
        return self.verdict != "passed" or bool(self.why)


def main() -> int:
    """The action in the environment of this process."""
    return action(os.environ, connector(os.environ))


def connector(environ: Mapping[str, str]) -> Connect:
    """How GitHub's API is reached from here; who asks twice gets the same client, whose patience is for both.

    Only the action's own inputs name a proxy and certificates: other variables may be those of an earlier step.
    """
    from rag_eval.github.api import GitHub, Network

    inputs = legible(environ)
    network = Network(inputs.proxy or None, "input 'proxy'", ca_certificates=inputs.ca_certificates or None)

    @cache
    def connect(api_url: str, token: str, repository: str) -> GitHub:
        return GitHub(api_url, token, repository, network)

    return connect


def action(environ: Mapping[str, str], connect: Connect) -> int:
    """Run the action in ``environ``; ``connect(api_url, token, repository)`` gives GitHub's API. Return the exit code.

    An error that is not expected goes on to the boundary; outputs, summary and comment say before that nothing was
    judged, or an older comment would go on saying that all is well.
    """
    try:
        return _run(environ, connect)
    except Exception as error:
        with suppress(Exception):
            _tell_of_crash(environ, connect, error)
        raise


def _tell_of_crash(environ: Mapping[str, str], connect: Connect, error: Exception) -> None:
    """Say wherever it can be said that rag-eval failed; none of it depends on another."""
    place, inputs = read_place(environ), legible(environ)
    why = OUT_OF_MEMORY if is_out_of_memory(error) else "The log has the details; please report them."
    reason = f"rag-eval failed to judge this run: {why}"
    outcome = _unjudged(partial(markdown.reason_within, reason))
    steps: tuple[Callable[[], object], ...] = (
        lambda: print(annotation("error", reason, title="rag-eval")),
        lambda: _take_away(inputs, place),
        lambda: _put_outputs(place, {**outcome.outputs, "comment-url": "", "comment-written": "false"}),
        lambda: _summarise(inputs, place, outcome),
        lambda: _publish_crash(inputs, place, connect, reason) if inputs.report else None,
        lambda: None if inputs.report else _comment(inputs, place, outcome, connect),
    )
    for step in steps:
        with suppress(Exception):
            step()


def _publish_crash(inputs: Inputs, place: Place, connect: Connect, reason: str) -> None:
    from rag_eval.github.posting import CommentBody

    _publish(inputs, place, connect, CommentBody(markdown.unjudged(reason), "invalid"))


def _run(environ: Mapping[str, str], connect: Connect) -> int:
    place, wrong = read_place(environ), None
    try:
        inputs = read_inputs(environ)
    except UsageError as error:
        inputs, wrong = legible(environ), error
    if inputs.report:
        return _second_half(inputs, place, connect, wrong)
    return _tell(inputs, place, _refused(wrong) if wrong else _judged(inputs, place, connect), connect)


def _tell(inputs: Inputs, place: Place, outcome: Outcome, connect: Connect) -> int:
    """Say what came of it, wherever it is to be said."""
    if outcome.verdict == "invalid":
        _take_away(inputs, place)
    outcome = outcome._replace(text=partial(markdown.named_within, name_of(inputs.comment_id), outcome.text))
    for line in most_of_each(outcome.annotations) if inputs.annotations else ():
        print(line)
    if outcome.why:
        print(annotation("error", outcome.why, title="rag-eval"))
    url, written = _comment(inputs, place, outcome, connect)
    _summarise(inputs, place, outcome)
    _put_outputs(place, {**outcome.outputs, "comment-url": url, "comment-written": str(written).lower()})
    return outcome.code


def _judged(inputs: Inputs, place: Place, connect: Connect) -> Outcome:
    """The outcome; where nothing could be judged that is one too, for an older comment must not go on saying passed."""
    try:
        return judge(inputs, place, connect)
    except InputError as error:
        _log("\n".join(error.lines()))
        text = partial(markdown.problems_within, error)
        return _unjudged(text, [_on_problem(problem) for problem in error.problems[:MOST_ANNOTATIONS]])
    except RagEvalError as error:
        return _refused(error)


def _refused(error: RagEvalError) -> Outcome:
    print(annotation("error", str(error), title="rag-eval cannot run"))
    return _unjudged(partial(markdown.reason_within, str(error)))


def judge(inputs: Inputs, place: Place, connect: Connect) -> Outcome:
    """Score, hold against the base and judge; RagEvalError where that cannot be."""
    gates = inputs.gates or _default_gates(inputs, place)
    folder = inputs.working_directory.strip("/")
    options = Options(inputs.gold, inputs.trace, gates, inputs.k, place.workspace, folder, inputs.baseline)
    options = options._replace(is_found=not inputs.gates)
    report = api.run(options, _authority(inputs, place, connect))
    _log(render(report, "table", verbose=True))
    outputs, code = {**_outputs(report), **_write(report, inputs, place)}, _code(report, inputs.fail_on)
    text, why = markdown.within, ""
    if code and report.passed:
        text = markdown.warned_within
        why = f"The report passes, and the step fails, for fail-on is warning: {phrases.warned(report)}."
    return Outcome(report.verdict, partial(text, report), outputs, list(_annotations(report)), code, why)


def _authority(inputs: Inputs, place: Place, connect: Connect) -> Authority | None:
    """Who decides; None where no event says what is under test."""
    if not place.trigger.name:
        return None
    head = WorkTree(_root(inputs, place))
    histories = (
        lambda: ApiHistory(connect(place.api_url, inputs.github_token, place.repository), head),
        lambda: GitHistory(Git(head.top, foreign=True)),
    )
    signoff: Signoff = inputs.signoff  # type: ignore[assignment]
    found = authority(place.trigger, inputs.gates_ref, signoff, head, histories)
    number = place.pull_request or place.trigger.queued
    if number is None and not place.trigger.name.startswith("pull_request"):
        return found

    def people(policy: SignoffPolicy) -> tuple[Collection[str], Collection[Author]]:
        api = connect(place.api_url, inputs.github_token, place.repository)
        return who(api, number, place.trigger, policy, ApiHistory(api, head).parents)

    return found._replace(people=people)


def _root(inputs: Inputs, place: Place) -> str:
    """The root of the checkout: a folder with a ``.git``, from the workspace to the working directory.

    Where there are several, it is the outermost one that is at the commit under test: a repository that somebody put
    into a folder of the checkout has no gates on its base, and would be free of them.
    """
    workspace = _real(place.workspace)
    folder = _real(workspace / inputs.working_directory.strip("/"))
    above = [each for each in (folder, *folder.parents) if each.is_relative_to(workspace)]
    found = [each for each in reversed(above) if os.path.exists(each / ".git")]  # noqa: PTH110 - Path's raises for a name that is too long
    trigger = place.trigger
    under_test = {trigger.sha, trigger.head, f"ref: {trigger.ref}"} - {""}
    return str(next((each for each in found if head_of(each) in under_test), next(iter(found), workspace)))


def _default_gates(inputs: Inputs, place: Place) -> str:
    return usual_gates(inputs.working_directory.strip("/"), place.workspace)


def _unjudged(text: Callable[[int, Callable[[str], int]], str], annotations: Sequence[str] = ()) -> Outcome:
    outputs = {"pass": "false", "verdict": "invalid", "failed-gates": "", "findings": "", "base-commit": ""}
    return Outcome("invalid", text, outputs, annotations, CANNOT_JUDGE)


def _on_problem(problem: Problem) -> str:
    text = " ".join(part for part in (problem.where, f"{problem.message}.", problem.hint) if part)
    return annotation("error", text, problem.file, problem.line, "cannot be judged")


def _annotations(report: Report) -> Iterator[str]:
    """Broken gates and findings on their lines; failing questions on theirs, where the run fails."""
    failing = () if report.passed else islice(of_questions(report), MOST_ANNOTATIONS)
    for one in chain(of_gates(report), of_findings(report), failing):
        title = f"gate {one.code}" if one.kind == "gate" else one.code
        yield annotation(one.level, one.text, one.file, one.line, title)


def _code(report: Report, fail_on: str) -> int:
    fails = {
        "error": not report.passed,
        "warning": not report.passed or bool(report.findings) or any(gate.broken for gate in report.gates),
        "never": False,
    }
    return GATE_FAILED if fails[fail_on] else PASSED


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


def _write(report: Report, inputs: Inputs, place: Place) -> dict[str, str]:
    """Write the report's files below the workspace, as its owner; the outputs that name them."""
    from rag_eval.cli.commands._shared import write_together

    workspace, folder = _real(place.workspace), _folder(inputs, place)
    write_together(folder, files(report))
    _give_back(folder, workspace)
    below = folder.relative_to(workspace).as_posix()
    return {f"report-{name}": f"{below}/{RENDERERS[name][1]}" for name in ("json", "markdown", "html")}


def _folder(inputs: Inputs, place: Place) -> Path:
    """Where the report's files go."""
    workspace = _real(place.workspace)
    folder = _real(workspace / inputs.working_directory.strip("/") / inputs.report_dir)
    if not folder.is_relative_to(workspace):
        raise RagEvalError(f"input 'report-dir': {quoted(inputs.report_dir)} leads out of the workspace. {RELATIVE}")
    if any(part.lower() == ".git" for part in folder.relative_to(workspace).parts):
        what = f"input 'report-dir': {quoted(inputs.report_dir)} is inside of .git, where only git may write"
        raise RagEvalError(f"{what}. Name another folder, such as rag-eval-report.")
    return folder


def _real(path: str | Path) -> Path:
    """A path with its links followed, as far as they lead; ``Path.resolve`` raises for a loop of links."""
    return Path(os.path.realpath(path))


def _take_away(inputs: Inputs, place: Place) -> None:
    """Remove an older report from where this run's would stand: what is uploaded from there speaks for this run."""
    with suppress(RagEvalError, OSError):
        folder = _folder(inputs, place)
        for _, file in RENDERERS.values():
            (folder / file).unlink(missing_ok=True)


def _give_back(folder: Path, workspace: Path) -> None:
    """The image runs as root; what it wrote must not stand in the way of the next checkout."""
    owner = workspace.stat()
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or owner.st_uid == 0:
        return
    mine = [folder, *folder.iterdir(), *(parent for parent in folder.parents if parent.is_relative_to(workspace))]
    for path in mine:
        if path != workspace and path.lstat().st_uid == 0:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _comment(inputs: Inputs, place: Place, outcome: Outcome, connect: Connect) -> tuple[str, bool]:
    """Bring the sticky comment up to date; its address, and whether it was written. Failing to is only a notice."""
    number = place.pull_request
    if number is None or inputs.comment == "off" or not inputs.github_token:
        _say_no_comment(inputs, number)
        return "", False
    of = place.head, place.run, place.workflow, place.by
    first = marker(inputs.comment_id, *of, failed=outcome.failed) + "\n"
    last = last_line(place.head, place.run, run_address(place.server, place.repository, place.run_id))
    body = first + outcome.text(MOST_CHARACTERS - len(first + last), len) + last
    mode: Mode = inputs.comment  # type: ignore[assignment]
    try:
        api = connect(place.api_url, inputs.github_token, place.repository)
        posted = post(api, number, body, inputs.comment_id, mode, outcome.failed, place.run)
    except RagEvalError as error:
        print(annotation("notice", f"No comment: {error} {_elsewhere(inputs)}", title="rag-eval"))
        return "", False
    _note(posted)
    return posted.url, posted.written


def _second_half(inputs: Inputs, place: Place, connect: Connect, wrong: UsageError | None) -> int:
    """Comment with the report of a run that is over; its verdict is that run's exit code and not this one's."""
    try:
        if wrong:
            raise wrong
        said, code = _handed_over(inputs, place)
        posted = _publish(inputs, place, connect, said)
    except RagEvalError as error:
        outcome = _refused(error)
        _put_outputs(place, {**outcome.outputs, "comment-url": "", "comment-written": "false"})
        return outcome.code
    _note(posted)
    outputs = {"pass": str(said.verdict == "passed").lower(), "verdict": said.verdict, "comment-url": posted.url}
    _put_outputs(place, {**outputs, "comment-written": str(posted.written).lower()})
    return code


def _publish(inputs: Inputs, place: Place, connect: Connect, said: CommentBody) -> Posted:
    from rag_eval.github import posting

    origin = posting.Origin.of_event(place.event)
    mode: Mode = inputs.comment  # type: ignore[assignment]
    api = connect(place.api_url, inputs.github_token, place.repository)
    return posting.publish(api, origin, said, inputs.comment_id, mode, place.server, place.by)


def _handed_over(inputs: Inputs, place: Place) -> tuple[CommentBody, int]:
    """What the report of the other run says, or what is to be said where there is none."""
    from rag_eval.github import posting

    path = Path(place.workspace) / inputs.report
    if not os.path.lexists(path):  # a link to nowhere is there
        _log(f"{inputs.report} is not there. {posting.NO_REPORT}, unless the path is another one.")
        return posting.of_nothing(), CANNOT_JUDGE
    try:
        return posting.read(str(path), place.workspace), PASSED
    except InputError as error:
        _log("\n".join(error.lines()))
        return posting.of_problems(error), CANNOT_JUDGE


def _note(posted: Posted) -> None:
    _log(str(posted))
    if posted.odd:
        level = "notice" if posted.action == "skipped" else "warning"
        print(annotation(level, f"{posted.reason}.", title=f"comment {posted.action}"))


def _say_no_comment(inputs: Inputs, number: int | None) -> None:
    if inputs.comment != "off":
        reason = "this is not a pull request" if number is None else "there is no github-token"
        print(annotation("notice", f"No comment: {reason}. {_elsewhere(inputs)}", title="rag-eval"))


def _elsewhere(inputs: Inputs) -> str:
    return "The report stands in the job summary." if inputs.summary else "The log has the report."


def _summarise(inputs: Inputs, place: Place, outcome: Outcome) -> None:
    if inputs.summary and place.summary_file:
        taken = os.path.getsize(place.summary_file) if os.path.exists(place.summary_file) else 0  # noqa: PTH110, PTH202
        _append(place.summary_file, outcome.text(SUMMARY_BYTES - taken, lambda part: len(part.encode())), "job summary")


def _put_outputs(place: Place, outputs: Mapping[str, str]) -> None:
    import secrets

    if place.output_file:
        lines = (output(name, value, f"end_{secrets.token_hex(16)}") for name, value in outputs.items())
        _append(place.output_file, "".join(lines), "outputs of the step")


def _append(path: str, text: str, what: str) -> None:
    """Add to a file of the runner's. That it cannot be written changes no verdict."""
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        print(annotation("notice", f"The {what} cannot be written: {reason}.", title="rag-eval"))


def _log(text: str) -> None:
    for line in text.split("\n"):
        print(log_line(line))
