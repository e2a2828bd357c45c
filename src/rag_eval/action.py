"""The GitHub Action: score, judge, and say so in the log, the job summary, the outputs and the sticky comment.

The verdict is the exit code. What cannot be posted never changes it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from functools import cache, partial
from pathlib import Path

from rag_eval import app
from rag_eval.action_base import ApiHistory, GitHistory, Trigger, authority, head_of, who
from rag_eval.action_inputs import Inputs, read_inputs
from rag_eval.comment import MOST_CHARACTERS, marker, post
from rag_eval.errors import CANNOT_JUDGE, GATE_FAILED, PASSED, InputError, Problem, RagEvalError
from rag_eval.files.work_tree import WorkTree
from rag_eval.git import Git
from rag_eval.labels import GOOD, MEANING
from rag_eval.places import usual_gates
from rag_eval.renderers import RENDERERS, markdown, render, words
from rag_eval.safe import log_line
from rag_eval.typed import NamedTuple
from rag_eval.workflow import MOST_ANNOTATIONS, SUMMARY_BYTES, annotation, most_of_each, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from rag_eval.authority import Authority, Signoff
    from rag_eval.comment import Mode, Posted
    from rag_eval.github import GitHub
    from rag_eval.report import Report
    from rag_eval.signoff_identity import Author
    from rag_eval.signoff_policy import Policy as SignoffPolicy

    Connect = Callable[[str, str, str], GitHub]

_CORE = ("precision", "chr", "under_refusal", "over_refusal", "answered_rate", "mrr")


class Place(NamedTuple):
    """Where the action runs: the runner's environment, read once."""

    workspace: str
    event: Mapping[str, Any]
    api_url: str
    repository: str
    run: int
    workflow: str
    trigger: Trigger
    output_file: str
    summary_file: str

    @property
    def pull_request(self) -> int | None:
        """The number of the pull request, None for other events; the ref says it best, which no step can change."""
        named = re.fullmatch(r"refs/pull/([0-9]+)/(?:merge|head)", self.trigger.ref)
        if named:
            return int(named[1])
        pull = self.event.get("pull_request")
        number = pull.get("number") if isinstance(pull, dict) else None
        return number if isinstance(number, int) and number > 0 else None

    @property
    def head(self) -> str:
        """The commit that the pull request wants merged, else the one that is checked out."""
        return self.trigger.head


class Outcome(NamedTuple):
    """What came of it, whatever it was: the text for people, the outputs, the exit code."""

    verdict: str
    text: Callable[[int, Callable[[str], int]], str]
    outputs: Mapping[str, str]
    annotations: Sequence[str]
    code: int


def main() -> int:
    """The entry point of the image."""
    return action(os.environ, connector(os.environ))


def connector(environ: Mapping[str, str]) -> Connect:
    """How GitHub's API is reached from here; who asks twice gets the same client, whose patience is for both."""
    from rag_eval.github import GitHub, Network

    @cache
    def connect(api_url: str, token: str, repository: str) -> GitHub:
        return GitHub(api_url, token, repository, Network.from_environ(environ, api_url))

    return connect


def action(environ: Mapping[str, str], connect: Connect) -> int:
    """Run the action in ``environ``; ``connect(api_url, token, repository)`` gives GitHub's API. The exit code."""
    try:
        inputs, place = read_inputs(environ), read_place(environ)
        if inputs.report:
            return _post(inputs, place, connect)
        outcome = _judged(inputs, place, connect)
    except RagEvalError as error:
        print(annotation("error", str(error), title="rag-eval cannot run"))
        return error.exit_code
    for line in most_of_each(outcome.annotations) if inputs.annotations else ():
        print(line)
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
        print(annotation("error", str(error), title="rag-eval cannot run"))
        return _unjudged(partial(markdown.reason_within, str(error)))


def judge(inputs: Inputs, place: Place, connect: Connect) -> Outcome:
    """Score, hold against the base and judge; RagEvalError where that cannot be."""
    gates = inputs.gates or _default_gates(inputs, place)
    folder = inputs.working_directory.strip("/")
    options = app.Options(inputs.gold, inputs.trace, gates, inputs.k, place.workspace, folder, inputs.baseline)
    report = app.run(options, _authority(inputs, place, connect))
    _log(render(report, "table"))
    files = _write(report, inputs, place)
    return Outcome(
        report.verdict,
        lambda most, size: markdown.within(report, most, size),
        {**_outputs(report), **files},
        list(_annotations(report)),
        _code(report, inputs.fail_on),
    )


def read_place(environ: Mapping[str, str]) -> Place:
    """The runner's environment; an event that cannot be read counts as none."""
    run = environ.get("GITHUB_RUN_NUMBER", "")
    event = _event(environ.get("GITHUB_EVENT_PATH", ""))
    names = ("GITHUB_EVENT_NAME", "GITHUB_REF", "GITHUB_SHA", "GITHUB_BASE_REF")
    name, ref, sha, base_ref = (environ.get(each, "") for each in names)
    return Place(
        workspace=environ.get("GITHUB_WORKSPACE") or ".",
        event=event,
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        repository=environ.get("GITHUB_REPOSITORY", ""),
        run=int(run) if run.isdecimal() else 0,
        workflow=environ.get("GITHUB_WORKFLOW_REF", ""),
        trigger=Trigger(name, event, ref, sha, base_ref),
        output_file=environ.get("GITHUB_OUTPUT", ""),
        summary_file=environ.get("GITHUB_STEP_SUMMARY", ""),
    )


def _event(path: str) -> dict[str, Any]:
    try:
        event = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError):
        print(annotation("warning", "The event file cannot be read, so no comment is posted.", title="rag-eval"))
        return {}
    return event if isinstance(event, dict) else {}


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
    if place.pull_request is None and not place.trigger.name.startswith("pull_request"):
        return found

    def people(policy: SignoffPolicy) -> tuple[Collection[str], Collection[Author]]:
        api = connect(place.api_url, inputs.github_token, place.repository)
        return who(api, place.pull_request, place.trigger, policy)

    return found._replace(people=people)


def _root(inputs: Inputs, place: Place) -> str:
    """The root of the checkout: a folder with a ``.git``, from the workspace to the working directory.

    Where there are several, it is the outermost one that is at the commit under test: a repository that somebody put
    into a folder of the checkout has no gates on its base, and would be free of them.
    """
    workspace = Path(place.workspace).resolve()
    folder = (workspace / inputs.working_directory.strip("/")).resolve()
    above = [each for each in (folder, *folder.parents) if each.is_relative_to(workspace)]
    found = [each for each in reversed(above) if (each / ".git").exists()]
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
    """Broken gates on their line of the gates file; failing questions on their line, where the run fails."""
    for gate in (gate for gate in report.gates if gate.broken):
        level = "error" if gate.blocks else "warning"
        yield annotation(level, words.reason(report, gate), report.gates_file, gate.line, f"gate {gate.name}")
    for finding in report.findings:
        text = f"{finding.message}. {finding.mend}".rstrip()
        yield annotation(finding.level, text, finding.file, finding.line, finding.code)
    paths = {each.role: each.path for each in report.inputs}
    failing = [] if report.passed else [question for question in report.questions if question.label not in GOOD]
    for question in failing[:MOST_ANNOTATIONS]:
        file, line = ("trace", question.trace_line) if question.trace_line else ("gold", question.gold_line)
        message = f"{question.qid}: {MEANING[question.label]}"
        yield annotation("warning", message, paths[file], line, question.label)


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
    from rag_eval.commands._shared import write

    workspace = Path(place.workspace).resolve()
    folder = (workspace / inputs.working_directory.strip("/") / inputs.report_dir).resolve()
    if not folder.is_relative_to(workspace):
        raise RagEvalError(f"input 'report-dir': '{inputs.report_dir[:80]}' leads out of the workspace")
    for name, (_, file) in RENDERERS.items():
        write(folder / file, render(report, name))
    _give_back(folder, workspace)
    below = folder.relative_to(workspace).as_posix()
    return {f"report-{name}": f"{below}/{RENDERERS[name][1]}" for name in ("json", "markdown", "html")}


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
    first = marker(inputs.comment_id, place.head, place.run, place.workflow) + "\n"
    body = first + outcome.text(MOST_CHARACTERS - len(first), len)
    mode: Mode = inputs.comment  # type: ignore[assignment]
    try:
        api = connect(place.api_url, inputs.github_token, place.repository)
        posted = post(api, number, body, inputs.comment_id, mode, outcome.verdict != "passed", place.run)
    except RagEvalError as error:
        print(annotation("notice", f"No comment: {error} The report stands in the job summary.", title="rag-eval"))
        return "", False
    _tell(posted)
    return posted.url, posted.written


def _post(inputs: Inputs, place: Place, connect: Connect) -> int:
    """Comment with the report of a run that is over; its verdict is that run's exit code and not this one's."""
    from rag_eval import posting

    origin, code = posting.Origin.of_event(place.event), PASSED
    try:
        said = posting.read(str(Path(place.workspace) / inputs.report), place.workspace)
    except InputError as error:
        _log("\n".join(error.lines()))
        said, code = posting.of_problems(error), CANNOT_JUDGE
    mode: Mode = inputs.comment  # type: ignore[assignment]
    api = connect(place.api_url, inputs.github_token, place.repository)
    posted = posting.publish(api, origin, said, inputs.comment_id, mode)
    _tell(posted)
    outputs = {"pass": str(said.verdict == "passed").lower(), "verdict": said.verdict, "comment-url": posted.url}
    _put_outputs(place, {**outputs, "comment-written": str(posted.written).lower()})
    return code


def _tell(posted: Posted) -> None:
    _log(str(posted))
    if posted.odd:
        level = "notice" if posted.action == "skipped" else "warning"
        print(annotation(level, f"{posted.reason}.", title=f"comment {posted.action}"))


def _say_no_comment(inputs: Inputs, number: int | None) -> None:
    if inputs.comment != "off":
        reason = "this is not a pull request" if number is None else "there is no github-token"
        print(annotation("notice", f"No comment: {reason}. The report stands in the job summary.", title="rag-eval"))


def _summarise(inputs: Inputs, place: Place, outcome: Outcome) -> None:
    if inputs.summary and place.summary_file:
        taken = os.path.getsize(place.summary_file) if os.path.exists(place.summary_file) else 0  # noqa: PTH110, PTH202
        text = outcome.text(SUMMARY_BYTES - taken, lambda part: len(part.encode()))
        with Path(place.summary_file).open("a", encoding="utf-8") as file:
            file.write(text)


def _put_outputs(place: Place, outputs: Mapping[str, str]) -> None:
    import secrets

    if place.output_file:
        with Path(place.output_file).open("a", encoding="utf-8") as file:
            file.writelines(output(name, value, f"end_{secrets.token_hex(16)}") for name, value in outputs.items())


def _log(text: str) -> None:
    for line in text.split("\n"):
        print(log_line(line))


if __name__ == "__main__":
    from rag_eval.boundary import guarded

    sys.exit(guarded(main))
