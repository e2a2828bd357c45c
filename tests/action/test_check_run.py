"""The check run of the action: a conclusion, the report, and annotations beyond those that the log keeps."""

import json
import re
import shutil

import pytest

from cases import ROOT, gold_row, write_rows
from fake_github import FakeGitHub, Fault
from seams import GitHub, Network, action

EXAMPLE, HEAD = ROOT / "examples" / "quickstart", "a" * 40


@pytest.fixture
def github():
    with FakeGitHub().serving() as fake:
        fake.add_pull(2, HEAD, "b" * 40)
        yield fake


@pytest.fixture
def run(github, tmp_path, capsys, monkeypatch):
    """Run the action in a workspace; return the exit code and the log."""
    workspace = tmp_path / "workspace"
    shutil.copytree(EXAMPLE, workspace)
    monkeypatch.chdir(workspace)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 2, "head": {"sha": HEAD}}}))
    output = tmp_path / "output"

    def run(trace="good.jsonl", **inputs):
        output.write_text("")
        given = {"gold": "gold.jsonl", "trace": trace, "github_token": "t0ken", "check": "true", **inputs}
        environ = {
            **{f"INPUT_{name.upper().replace('_', '-')}": value for name, value in given.items()},
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": github.repository,
            "GITHUB_RUN_NUMBER": "7",
            "GITHUB_RUN_ID": "42",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SERVER_URL": "https://github.test",
            "GITHUB_API_URL": github.url,
        }
        network = Network(sleep=lambda _: None)
        code = action(environ, lambda url, token, repository: GitHub(url, token, repository, network))
        return code, capsys.readouterr().out

    run.output, run.workspace = output, workspace
    return run


def asked(github):
    """Return the contents of the requests that wrote check runs."""
    return [json.loads(seen.body) for seen in github.seen if "/check-runs" in seen.target and seen.method != "GET"]


@pytest.mark.parametrize(
    ("trace", "fail_on", "conclusion", "title"),
    [
        ("good.jsonl", "error", "success", "Passed"),
        ("bad.jsonl", "error", "failure", "Failed gates: precision,chr,"),
        ("bad.jsonl", "never", "neutral", "Failed gates: precision,chr,"),
        ("none.jsonl", "error", "failure", "Nothing was judged"),
    ],
)
def test_a_check_run_has_the_verdict_and_the_report(run, github, trace, fail_on, conclusion, title):
    code, log = run(trace, fail_on=fail_on)
    [check] = github.checks
    assert (check["name"], check["head_sha"]) == ("rag-eval report", HEAD)
    assert (check["status"], check["conclusion"]) == ("completed", conclusion)
    assert check["output"]["title"].startswith(title)
    assert check["output"]["summary"].startswith("## ")
    assert check["details_url"] == "https://github.test/octo/hello/actions/runs/42"
    assert (code == 0) == (conclusion != "failure")
    assert "check-url<<" in run.output.read_text()
    assert check["html_url"] in run.output.read_text()
    assert re.search(r"(?m)^check run written with [0-9]+ annotations?$", log)


def test_there_is_none_unless_it_is_asked_for(run, github):
    assert run("bad.jsonl", check="false")[0] == run("bad.jsonl", check="")[0] == 1
    assert github.checks == []


def test_each_wrong_question_has_an_annotation_fifty_in_a_request(run, github):
    golds = [gold_row(qid=f"Q{number:03}") for number in range(130)]
    write_rows(run.workspace / "gold.jsonl", golds)
    write_rows(
        run.workspace / "bad.jsonl",
        [{"qid": "Q000", "answer_json": {"claim": "x", "citations": []}, "retrieved_ids": []}],
    )
    _, log = run("bad.jsonl")
    assert log.count("::warning file=") == 10
    requests = asked(github)
    assert [len(request["output"]["annotations"]) for request in requests][:2] == [50, 50]
    assert {annotation["path"] for annotation in github.annotations} == {"gold.jsonl", "eval-gates.yml"}
    questions = [annotation for annotation in github.annotations if annotation["message"].startswith("Q")]
    assert len(questions) == 129
    assert {note["annotation_level"] for note in questions} == {"warning"}
    assert [note["start_line"] for note in questions] == list(range(2, 131))
    levels = {note["path"]: note["annotation_level"] for note in github.annotations}
    assert levels == {"gold.jsonl": "warning", "eval-gates.yml": "failure"}
    assert {note["title"] for note in questions} == {"MISSING"}
    assert all(note["start_line"] == note["end_line"] >= 1 for note in github.annotations)


def test_the_most_are_five_hundred_and_the_log_says_how_many_are_left(run, github):
    write_rows(run.workspace / "gold.jsonl", [gold_row(qid=f"Q{number:03}") for number in range(600)])
    write_rows(
        run.workspace / "bad.jsonl",
        [{"qid": "Q000", "answer_json": {"claim": "x", "citations": []}, "retrieved_ids": []}],
    )
    _, log = run("bad.jsonl")
    assert (len(github.annotations), len(asked(github))) == (500, 10)
    assert re.search(r"(?m)^check run written with 500 annotations; the report has [1-9][0-9]* more$", log)


@pytest.mark.parametrize(("trace", "code"), [("good.jsonl", 0), ("bad.jsonl", 1)])
def test_a_token_that_may_not_is_a_notice_and_changes_no_verdict(run, github, trace, code):
    github.may_check = False
    result, log = run(trace)
    assert result == code
    assert (
        "::notice title=rag-eval::No check run: The token may not write the check run: the job needs `checks: " in log
    )
    assert len(github.comments[2]) == 1


def test_without_a_token_there_is_none_and_the_log_says_why(run, github):
    assert run(github_token="")[0] == 0
    assert github.checks == []
    assert "No check run: there is no github-token." in run(github_token="")[1]


def test_an_answer_that_gets_lost_makes_no_second_check_run(run, github):
    github.faults = [Fault("POST .*/check-runs", 502, done=True)]
    run()
    assert len(github.checks) == 1
    github.faults = [Fault("POST .*/check-runs", 502)]
    run(comment_id="other")
    assert [check["name"] for check in github.checks] == ["rag-eval report", "other report"]


def test_annotations_whose_answer_gets_lost_are_not_sent_twice(run, github):
    write_rows(run.workspace / "gold.jsonl", [gold_row(qid=f"Q{number:03}") for number in range(130)])
    write_rows(
        run.workspace / "bad.jsonl",
        [{"qid": "Q000", "answer_json": {"claim": "x", "citations": []}, "retrieved_ids": []}],
    )
    github.faults = [Fault("PATCH .*/check-runs", 502, done=True)]
    code, log = run("bad.jsonl")
    messages = [annotation["message"] for annotation in github.annotations]
    assert (code, len(messages), len(set(messages))) == (1, 100, 100)
    assert re.search(r"(?m)^check run written with 50 annotations; the report has [1-9][0-9]* more$", log)


def test_a_report_of_another_run_has_no_check_run(run, github):
    code, log = run(report="report.json")
    assert (code, github.checks) == (2, [])
    assert "input 'check': a report from another run has no check run." in log


def test_a_failure_of_rag_eval_fails_the_check_run_too(run, github, monkeypatch):
    monkeypatch.setattr("rag_eval.api.run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run()
    [check] = github.checks
    assert (check["conclusion"], check["output"]["title"]) == ("failure", "Nothing was judged")
