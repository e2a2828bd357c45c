"""The action from environment to exit code, with GitHub's API given as an argument."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fake_github import BOT
from rag_eval.action.run import connector
from seams import Comment, GitHubError, action, parse_marker

ROOT = Path(__file__).parents[2]
SUMMARY_BYTES = 1024 * 1024
"""What GitHub takes of one step."""
EXAMPLE = ROOT / "examples" / "quickstart"


class Pages:
    """GitHub's comments, in memory."""

    def __init__(self, refuse=None):
        self.standing, self.refuse, self.connected = [], refuse, []

    def connect(self, api_url, token, repository):
        self.connected.append((api_url, token, repository))
        return self

    def login(self):
        return "github-actions[bot]"

    def comments(self, number):
        return list(self.standing)

    def create_comment(self, number, body, already):
        if self.refuse:
            raise self.refuse
        self.standing.append(Comment(len(self.standing) + 1, self.login(), body, "https://example.org/c/1"))
        return self.standing[-1]

    def update_comment(self, comment_id, body):
        old = self.standing[comment_id - 1]
        self.standing[comment_id - 1] = old._replace(body=body)
        return self.standing[comment_id - 1]


@pytest.fixture
def pages():
    return Pages()


@pytest.fixture
def run(tmp_path, pages, capsys):
    """Run the action on the quickstart example in a workspace of its own."""
    workspace = tmp_path / "workspace"
    shutil.copytree(EXAMPLE, workspace)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 2, "head": {"sha": "a" * 40}}}))

    def run(trace="good.jsonl", number="1", **inputs):
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        given = {"gold": "gold.jsonl", "trace": trace, "github_token": "t0ken", **inputs}
        environ = {
            **{f"INPUT_{name.upper().replace('_', '-')}": value for name, value in given.items()},
            **{name: str(file) for name, file in files.items()},
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "octo/hello",
            "GITHUB_RUN_NUMBER": number,
            "GITHUB_API_URL": "https://ghe.example.org/api/v3",
            **run.environ,
        }
        run.code = action(environ, pages.connect)
        run.log = capsys.readouterr().out
        run.outputs = parsed(files["GITHUB_OUTPUT"].read_text("utf-8"))
        run.summary = files["GITHUB_STEP_SUMMARY"].read_text("utf-8")
        return run.code

    run.workspace, run.event, run.environ = workspace, event, {}
    return run


def parsed(text):
    outputs, lines = {}, iter(text.splitlines())
    for line in lines:
        name, _, delimiter = line.partition("<<")
        value = []
        while (part := next(lines)) != delimiter:
            value.append(part)
        outputs[name] = "\n".join(value)
    return outputs


@pytest.fixture
def in_workspace(run, monkeypatch):
    """The runner starts the container in the workspace."""
    monkeypatch.chdir(run.workspace)
    return run


def test_a_good_run_passes(in_workspace, pages):
    run = in_workspace
    assert run() == 0
    assert run.outputs["pass"] == "true"
    assert run.outputs["verdict"] == "passed"
    assert run.outputs["precision"] == "1.0"
    assert run.outputs["comment-written"] == "true"
    assert "RAG evaluation passed" in pages.standing[0].body
    assert "RAG evaluation passed" in run.summary


def test_the_comment_begins_with_its_marker(in_workspace, pages):
    in_workspace(number="7", comment_id="nightly")
    output = parse_marker(pages.standing[0].body)
    assert (output.id, output.head, output.run) == ("nightly", "a" * 40, 7)


METRICS = {
    **{name: name.replace("-", "_") for name in ("precision", "chr", "under-refusal", "over-refusal", "answered-rate")},
    "mrr": "mrr",
    "recall": "recall_all@3",
}


@pytest.mark.parametrize(
    ("gold", "trace"), [("gold.jsonl", "good.jsonl"), ("gold.jsonl", "bad.jsonl"), ("refused.jsonl", "good.jsonl")]
)
def test_the_outputs_are_those_of_action_yml_with_the_values_of_the_report(in_workspace, gold, trace):
    run = in_workspace
    golds = (run.workspace / "gold.jsonl").read_text().splitlines(keepends=True)
    (run.workspace / "refused.jsonl").write_text("".join(row for row in golds if not json.loads(row)["answerable"]))
    run(trace, gold=gold)
    names = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["outputs"]
    assert sorted(run.outputs) == sorted(names)
    report = json.loads((run.workspace / run.outputs["report-json"]).read_text("utf-8"))
    values = {name: report["metrics"][metric]["value"] for name, metric in METRICS.items()}
    assert {name: run.outputs[name] for name in METRICS} == {
        name: "" if value is None else str(value) for name, value in values.items()
    }
    assert (values["chr"] is None) == (gold == "refused.jsonl")
    assert (run.outputs["pass"], run.outputs["verdict"]) == (str(report["pass"]).lower(), report["verdict"])
    failed = [gate["name"] for gate in report["gates"] if gate["outcome"] != "passed" and gate["severity"] == "error"]
    assert run.outputs["failed-gates"] == ",".join(failed)
    assert run.outputs["findings"] == ",".join(finding["code"] for finding in report["findings"])
    assert (run.outputs["base-commit"], run.outputs["check-url"]) == ("", "")
    assert run.outputs["comment-url"] == "https://example.org/c/1"
    for name, file in {"json": "report.json", "markdown": "report.md", "html": "report.html"}.items():
        assert run.outputs[f"report-{name}"] == f"rag-eval-report/{file}"
        assert (run.workspace / run.outputs[f"report-{name}"]).stat().st_size


def copied(run, *folders):
    """The project in folders of one workspace."""
    for folder in folders:
        shutil.copytree(EXAMPLE, run.workspace / folder)
    run.environ |= {"GITHUB_RUN_ID": "4242", "GITHUB_RUN_ATTEMPT": "1"}


def test_several_projects_in_one_pull_request_have_a_comment_each_that_names_it(in_workspace, pages):
    run = in_workspace
    copied(run, "apps/search", "apps/help")
    assert run("bad.jsonl", working_directory="./apps/search/") == 1
    assert run.summary.startswith("## ❌ RAG evaluation failed · `apps/search`\n")
    assert run(working_directory="apps/help") == 0
    assert run("none.jsonl", working_directory="apps/help", comment_id="@help") == 2
    headings = [comment.body.split("\n")[1] for comment in pages.standing]
    assert headings[:2] == ["## ❌ RAG evaluation failed · `apps/search`", "## ✅ RAG evaluation passed · `apps/help`"]
    assert headings[2] == "## 🚫 Cannot be judged: 1 problem in the input · `@\u200bhelp`"


def test_a_use_that_passes_hides_none_that_failed_in_the_same_run(in_workspace, pages):
    """Two uses under one name by mistake: the one comment keeps the worse of both, and the log says what to do."""
    run = in_workspace
    copied(run)
    run("bad.jsonl")
    assert run() == 0
    assert run.outputs["comment-written"] == "false"
    message = "another use in this run, which failed, wrote it. If both should comment, give each its own comment-id."
    assert f"::warning title=comment unchanged::{message}" in run.log
    assert [("RAG evaluation failed" in item.body) for item in pages.standing] == [True]
    run.environ["GITHUB_RUN_ATTEMPT"] = "2"
    assert run() == 0
    assert "RAG evaluation passed" in pages.standing[0].body


def test_a_failed_gate_is_exit_1_with_its_name(in_workspace):
    run = in_workspace
    assert run("bad.jsonl") == 1
    assert run.outputs["failed-gates"] == "precision,chr,under_refusal,citation_validity"
    assert "::error file=eval-gates.yml,line=7,title=gate precision::precision 0.500 is below 0.80" in run.log


def test_failing_questions_are_annotated_on_the_line_of_their_trace(in_workspace):
    run = in_workspace
    run("bad.jsonl")
    assert "::warning file=bad.jsonl,line=2,title=NOT_RETRIEVED::Q02: no gold evidence was retrieved" in run.log


def test_annotations_can_be_off(in_workspace):
    run = in_workspace
    run("bad.jsonl", annotations="false")
    assert "::error" not in run.log
    assert "::warning" not in run.log


def test_fail_on_never_passes_with_the_verdict_kept(in_workspace):
    run = in_workspace
    assert run("bad.jsonl", fail_on="never") == 0
    assert run.outputs["verdict"] == "failed"


def test_fail_on_warning_fails_on_a_broken_warning(in_workspace):
    run = in_workspace
    gates = "version: 1\nk: 3\ngates:\n  mrr: {min: 0.95, severity: warning}\n"
    (run.workspace / "w.yml").write_text(gates)
    assert run(gates="w.yml") == 0
    assert "The step fails" not in run.summary + run.log
    assert run(gates="w.yml", fail_on="warning", annotations="false") == 1
    assert run.summary.startswith(
        "❌ **The step fails** because `fail-on` is `warning`: `mrr` 0.900 is below 0.95.\n\n## ✅ "
    )
    why = "The report passed, but the step fails, because fail-on is warning: mrr 0.900 is below 0.95."
    assert f"::error title=rag-eval::{why}" in run.log


def test_a_step_that_fails_on_a_warning_is_a_failure_for_the_comment(in_workspace, pages):
    run = in_workspace
    (run.workspace / "w.yml").write_text("version: 1\nk: 3\ngates:\n  mrr: {min: 0.95, severity: warning}\n")
    run(gates="w.yml", fail_on="warning", comment="on-failure")
    assert "**The step fails**" in pages.standing[0].body
    run(gates="w.yml", comment="on-failure", number="2")
    assert "The step fails" not in pages.standing[0].body


def test_bad_input_is_exit_2_and_annotated_on_its_line(in_workspace, pages):
    run = in_workspace
    (run.workspace / "broken.jsonl").write_text('{"qid": "Q01"}\n')
    assert run("broken.jsonl") == 2
    assert run.outputs["verdict"] == "invalid"
    assert run.outputs["pass"] == "false"
    assert "::error file=broken.jsonl,line=1,title=cannot be judged::" in run.log
    assert "Cannot be judged: 1 problem" in run.summary
    assert "Cannot be judged: 1 problem" in pages.standing[0].body


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ({"trace": "broken.jsonl"}, "broken.jsonl:1: column 2: not valid JSON: "),
        ({"trace": "none.jsonl"}, "none.jsonl: no such file. "),
        ({"k": "x"}, "::error title=rag-eval cannot run::input 'k': 'x' is not a list"),
        ({"gates": "none.yml"}, "none.yml: no such file. "),
    ],
)
def test_the_log_says_why_nothing_was_judged_whatever_else_is_off(in_workspace, inputs, line):
    run = in_workspace
    (run.workspace / "broken.jsonl").write_text("{")
    assert run(**inputs, annotations="false", summary="false", comment="off") == 2
    assert [text for text in run.log.splitlines() if text.startswith(line)], run.log


def test_what_cannot_be_judged_leaves_no_older_report_in_its_place(in_workspace):
    """What a later step uploads from there is taken for this run's: the pair for forks would comment with it."""
    run = in_workspace
    run()
    folder = run.workspace / "rag-eval-report"
    (folder / "notes.txt").write_text("mine")
    assert (folder / "report.json").exists()
    assert run("none.jsonl") == 2
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    run()
    assert run(fail_on="errors") == 2
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("report_dir", ["..", "../elsewhere", "gold.jsonl"])
def test_nothing_is_removed_from_anywhere_else(in_workspace, report_dir):
    run = in_workspace
    outside = run.workspace.parent / "report.json"
    outside.write_text("mine")
    assert run("none.jsonl", report_dir=report_dir) == 2
    assert outside.exists()
    assert (run.workspace / "gold.jsonl").exists()


def test_a_wrong_input_is_exit_2_and_named(in_workspace):
    run = in_workspace
    assert run(comment="sometimes") == 2
    assert "::error title=rag-eval cannot run::input 'comment': 'sometimes' is not one of" in run.log
    assert (run.outputs["verdict"], run.outputs["pass"]) == ("invalid", "false")


def test_a_wrong_input_leaves_no_older_verdict_standing(in_workspace, pages):
    run = in_workspace
    run()
    assert run(number="2", fail_on="errors") == 2
    [comment] = pages.standing
    assert "Cannot be judged" in comment.body
    assert "`input 'fail-on': 'errors' is not one of error, warning, never`" in comment.body
    assert "Cannot be judged" in run.summary


@pytest.mark.parametrize("wrong", [{"comment": "Off"}, {"comment_id": "x" * 101}])
def test_where_it_is_not_known_which_comment_is_meant_none_is_written(in_workspace, pages, wrong):
    assert in_workspace(**wrong) == 2
    assert pages.connected == []


@pytest.mark.parametrize("name", ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"])
def test_a_file_of_the_runner_that_cannot_be_written_changes_no_verdict(in_workspace, name):
    run = in_workspace
    run.environ = {name: "/nowhere/at/all"}
    assert run() == 0
    what = {"GITHUB_STEP_SUMMARY": "job summary", "GITHUB_OUTPUT": "outputs of the step"}[name]
    assert f"::notice title=rag-eval::The {what} cannot be written: no such file or directory." in run.log


def test_the_comment_ends_with_the_commit_and_the_run(in_workspace, pages):
    run = in_workspace
    run.environ = {"GITHUB_SERVER_URL": "https://ghe.example.org", "GITHUB_RUN_ID": "4242"}
    run(number="57")
    address = "https://ghe.example.org/octo/hello/actions/runs/4242"
    assert pages.standing[0].body.endswith(f"\n\nCommit `aaaaaaa` · [run 57]({address})\n")
    assert "Commit" not in run.summary


@pytest.mark.parametrize("path", ["/home/runner/work/r/r/gold.jsonl", "../gold.jsonl"])
def test_a_path_out_of_the_workspace_is_to_be_given_relative_to_it(in_workspace, path):
    assert in_workspace(gold=path) == 2
    assert "Give the path relative to the workspace, without ${{ github.workspace }}." in in_workspace.log
    assert in_workspace(report_dir=path) == 2
    assert "Give the path relative to the workspace, without ${{ github.workspace }}." in in_workspace.log


def test_a_link_out_of_the_workspace_is_refused(in_workspace, tmp_path):
    run = in_workspace
    (tmp_path / "secret.jsonl").write_text("secret")
    (run.workspace / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    assert run("link.jsonl") == 2
    assert "leads out of the workspace" in run.log


def test_a_report_dir_out_of_the_workspace_is_refused(in_workspace):
    run = in_workspace
    assert run(report_dir="../elsewhere") == 2
    assert not (run.workspace.parent / "elsewhere").exists()
    assert "leads out of the workspace" in run.log


def test_a_link_planted_where_the_report_goes_is_not_followed(in_workspace, tmp_path):
    run = in_workspace
    target = tmp_path / "victim"
    target.write_text("untouched")
    folder = run.workspace / "rag-eval-report"
    folder.mkdir()
    for name in ("report.json", ".report.json.part"):
        (folder / name).symlink_to(target)
    assert run() == 0
    assert target.read_text() == "untouched"
    assert json.loads((folder / "report.json").read_text())["pass"] is True


def test_the_second_run_updates_the_comment(in_workspace, pages):
    run = in_workspace
    run("bad.jsonl", number="1")
    run("good.jsonl", number="2")
    assert len(pages.standing) == 1
    assert "passed" in pages.standing[0].body


def test_on_failure_turns_a_red_comment_green_but_writes_no_green_one(in_workspace, pages):
    run = in_workspace
    run("good.jsonl", comment="on-failure")
    assert pages.standing == []
    run("bad.jsonl", number="2", comment="on-failure")
    run("good.jsonl", number="3", comment="on-failure")
    assert "RAG evaluation passed" in pages.standing[0].body


def test_bad_input_counts_as_a_failure_for_the_comment(in_workspace, pages):
    run = in_workspace
    (run.workspace / "broken.jsonl").write_text("{")
    run("broken.jsonl", comment="on-failure")
    assert "Cannot be judged" in pages.standing[0].body


@pytest.mark.parametrize(("trace", "code"), [("good.jsonl", 0), ("bad.jsonl", 1)])
def test_a_refused_comment_is_a_notice_and_changes_no_verdict(in_workspace, pages, trace, code):
    run = in_workspace
    pages.refuse = GitHubError("the token may not write. It needs pull-requests: write.", 403)
    assert run(trace) == code
    assert "::notice title=rag-eval::No comment: the token may not write." in run.log
    assert run.outputs["comment-url"] == ""
    assert "RAG evaluation" in run.summary
    assert "The report is in the job summary." in run.log
    assert run(trace, summary="false") == code
    assert "job summary" not in run.log


def test_comment_off_asks_nothing_of_github(in_workspace, pages):
    run = in_workspace
    run(comment="off")
    assert pages.connected == []
    assert (run.outputs["comment-written"], run.outputs["comment-url"]) == ("false", "")


def test_without_a_token_the_log_says_why_there_is_no_comment(in_workspace, pages):
    run = in_workspace
    run(github_token="")
    assert pages.connected == []
    assert "::notice title=rag-eval::No comment: there is no github-token." in run.log


def test_without_a_pull_request_there_is_no_comment(in_workspace, pages):
    run = in_workspace
    run.event.write_text(json.dumps({"ref": "refs/heads/main"}))
    assert run() == 0
    assert pages.connected == []
    assert "this is not a pull request" in run.log


CANNOT, NOTICE = "::error title=rag-eval cannot run::", "::notice title=rag-eval::"
NO_EVENT = "This is not a workflow_run event. The input 'report' needs one. To score traces, remove that input."
INSIDE = "is inside .git, where only git may write. Name another folder, such as rag-eval-report."
OUT = "leads out of the workspace. Give the path relative to the workspace, without ${{ github.workspace }}."


@pytest.mark.parametrize(
    ("inputs", "event", "line"),
    [
        (
            {"github_token": ""},
            None,
            f"{NOTICE}No comment: there is no github-token. The report is in the job summary.",
        ),
        (
            {"github_token": "", "summary": "false"},
            None,
            f"{NOTICE}No comment: there is no github-token. The log has the report.",
        ),
        ({}, "{}", f"{NOTICE}No comment: this is not a pull request. The report is in the job summary."),
        (
            {"check": "true", "github_token": ""},
            None,
            f"{NOTICE}No check run: there is no github-token. The report is in the job summary.",
        ),
        (
            {"check": "true", "summary": "false"},
            "{}",
            f"{NOTICE}No check run: the event names no commit. The log has the report.",
        ),
        ({}, "{", "::warning title=rag-eval::The event file cannot be read, so no comment is posted."),
        (
            {"report": "x", "check": "true"},
            None,
            f"{CANNOT}input 'check': a report from another run has no check run. Remove check or report.",
        ),
        ({"report": "x"}, None, f"{CANNOT}{NO_EVENT}"),
        ({"report_dir": "../x"}, None, f"{CANNOT}input 'report-dir': '../x' {OUT}"),
        (
            {"report_dir": "x/.GIT/y"},
            None,
            f"{CANNOT}input 'report-dir': 'x/.GIT/y' {INSIDE}",
        ),
    ],
)
def test_the_log_says_what_was_not_done_and_why(in_workspace, inputs, event, line):
    run = in_workspace
    if event is not None:
        run.event.write_text(event)
    run(**inputs)
    assert run.log.splitlines().count(line) == 1
    if "report_dir" not in inputs and "No check run" not in line:
        assert (run.outputs["comment-written"], run.outputs["comment-url"]) == ("false", "")
    assert run.outputs["check-url"] == ""


def test_the_api_of_an_enterprise_server_is_used(in_workspace, pages):
    in_workspace()
    assert pages.connected == [("https://ghe.example.org/api/v3", "t0ken", "octo/hello")]


def test_the_working_directory_is_where_files_are_found_and_the_report_goes(run, monkeypatch):
    nested = run.workspace / "app"
    nested.mkdir()
    for file in list(run.workspace.iterdir()):
        if file.is_file():
            file.rename(nested / file.name)
    monkeypatch.chdir(run.workspace)
    assert run(working_directory="app") == 0
    assert run.outputs["report-json"] == "app/rag-eval-report/report.json"
    assert run.outputs["report-html"] == "app/rag-eval-report/report.html"
    assert "<title>RAG evaluation passed: " in (nested / "rag-eval-report" / "report.html").read_text("utf-8")
    assert json.loads((nested / "rag-eval-report" / "report.json").read_text())["gates_file"] == "app/eval-gates.yml"


def test_a_gates_file_of_the_other_usual_name_is_in_force(in_workspace):
    run = in_workspace
    (run.workspace / "eval-gates.yml").rename(run.workspace / "eval-gates.yaml")
    assert run("bad.jsonl") == 1
    assert "::error file=eval-gates.yaml,line=7,title=gate precision::" in run.log


def test_no_hostile_line_of_the_data_becomes_a_command(in_workspace):
    run = in_workspace
    gold = (run.workspace / "gold.jsonl").read_text().replace("How heavy", "::add-mask::pass ##[set-env]x How heavy")
    (run.workspace / "gold.jsonl").write_text(gold)
    run("bad.jsonl")
    commands = [line for line in run.log.splitlines() if line.startswith("::")]
    assert commands
    assert all(line.startswith(("::error", "::warning", "::notice")) for line in commands)
    assert "##[" not in run.log


def test_the_report_names_repository_pull_request_and_run(in_workspace, tmp_path):
    in_workspace("bad.jsonl", number="17")
    report = json.loads((tmp_path / "workspace" / "rag-eval-report" / "report.json").read_text("utf-8"))
    assert report["ci"] == {
        "repository": "octo/hello",
        "branch": "",
        "commit": "a" * 40,
        "pull_request": 2,
        "run": 17,
    }


@pytest.mark.parametrize(("given", "shown"), [({}, False), ({"details": "true"}, True)], ids=str)
def test_answers_are_in_the_html_report_only_if_asked_for(in_workspace, tmp_path, given, shown):
    in_workspace("bad.jsonl", **given)
    folder = tmp_path / "workspace" / "rag-eval-report"
    assert ("<mark" in folder.joinpath("report.html").read_text("utf-8")) is shown


def test_a_huge_report_stays_within_the_limits_of_comment_and_summary(in_workspace, pages):
    run = in_workspace
    item = {"answerable": True, "gold_claim_substr": ["never said"], "gold_citations": ["x"]}
    rows = [{"qid": f"Q{i:05}" + "q" * 150, "question": "@@||" * 60, **item} for i in range(3000)]
    (run.workspace / "huge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(gold="huge.jsonl") == 1
    assert len(pages.standing[0].body) <= 65_536
    assert len(run.summary.encode()) <= SUMMARY_BYTES
    assert "precision" in pages.standing[0].body
    assert "more questions are not shown; failing ones come first" in pages.standing[0].body


@pytest.mark.parametrize("room", [0, 1_000, 4_000])
def test_what_earlier_steps_wrote_counts_towards_the_limit_of_the_summary(in_workspace, tmp_path, room):
    """GitHub drops a summary that is too long, with all that earlier steps wrote."""
    run, file = in_workspace, tmp_path / "summary.md"
    before = "é" * ((SUMMARY_BYTES - room) // 2)
    file.write_text(before, "utf-8")
    run.environ = {"GITHUB_STEP_SUMMARY": str(file)}
    assert run("bad.jsonl") == 1
    written = file.read_bytes().removeprefix(before.encode())
    assert len(written) <= room
    assert (b"RAG evaluation failed" in written) == (room > 0)


def test_at_most_ten_annotations_of_a_level_are_printed(in_workspace):
    run = in_workspace
    item = {"answerable": True, "gold_claim_substr": ["never said"], "gold_citations": ["x"]}
    rows = [{"qid": f"Q{i}", "question": "?", "category": f"d{i}", **item} for i in range(30)]
    (run.workspace / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    slices = '{by: [category], min_n: 1, gates: {"category=*": {containment: {min: 0.5}}}}'
    gates = f"version: 1\ngates: {{precision: {{min: 0.5}}}}\nslices: {slices}\n"
    (run.workspace / "many.yml").write_text(gates)
    assert run(gold="many.jsonl", gates="many.yml") == 1, run.log
    levels = [line.split()[0] for line in run.log.splitlines() if line.startswith("::")]
    assert (levels.count("::error"), levels.count("::warning")) == (10, 10)


def test_a_proxy_is_taken_from_its_input_and_from_no_other_variable(fake):
    others = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    connect = connector({**others, "INPUT_PROXY": fake.url, "REQUESTS_CA_BUNDLE": "/nowhere.pem"})
    api = connect("http://api.github.test", "t0ken", "octo/hello")
    assert api.login() == BOT
    assert fake.seen[0].target == "http://api.github.test/user"
    assert connect("http://api.github.test", "t0ken", "octo/hello") is api
    assert connector(others)(fake.url, "t0ken", "octo/hello").login() == BOT


def test_the_entry_point_of_the_image_runs_the_action(tmp_path):
    command = [sys.executable, "-I", "-m", "rag_eval.action"]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "")
    assert "::error file=eval/gold.jsonl,title=cannot be judged::no such file." in done.stdout
