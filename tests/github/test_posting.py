"""A stranger's report, posted: read in bounds, judged again, and put where the event says and not where it wants."""

from __future__ import annotations

import gzip
import json
import shutil
from typing import ClassVar

import pytest

from cases import ROOT
from e2e.runner import parse_outputs
from fake_github import Fault
from hostile import complaints
from rag_eval.github.posting import (
    LIMITS,
    MOST_CHARACTERS,
    ROOM,
    Annotation,
    ReportOrigin,
    publish_check,
    pull_of,
    read,
)
from seams import GitHub, InputError, Network, UsageError, action, main, marker, parse_marker

pytest.importorskip("urllib3")

GOOD, BAD = (
    json.loads((ROOT / "tests/expected" / name / "report.json").read_text("utf-8")) for name in ("good", "bad")
)
HEAD, FORK = "a" * 40, "mallory/hello"


def event_of(head=HEAD, run=7, owner="mallory", branch="change"):
    """What GitHub says when the workflow of a fork's pull request is over."""
    repository = {"full_name": FORK, "owner": {"login": owner}} if owner else None
    about = {"event": "pull_request", "head_sha": head, "run_number": run, "head_branch": branch, "id": 4242}
    about["path"] = ".github/workflows/rag-eval.yml"
    return {"action": "completed", "workflow_run": {**about, "head_repository": repository, "pull_requests": []}}


@pytest.fixture
def place(fake, tmp_path, monkeypatch, capsys):
    """A workspace with a report, as actions/download-artifact leaves it, and a pull request 3 of a fork."""
    fake.add_pull(3, HEAD, "b" * 40, fork=FORK)
    workspace = tmp_path / "workspace"
    (workspace / "in").mkdir(parents=True)
    monkeypatch.chdir(workspace)

    class Place:
        report = workspace / "in" / "report.json"
        event = event_of()
        environ: ClassVar = {}
        outputs = ""
        log = ""

        def write(self, value=GOOD, **changes):
            self.report.write_text(json.dumps({**value, **changes}), "utf-8")

        def run(self, **inputs):
            """The action, asked to post; the exit code."""
            (tmp_path / "event.json").write_text(json.dumps(self.event), "utf-8")
            (tmp_path / "output").write_text("")
            given = {"report": "in/report.json", "github-token": "t0ken", **inputs}
            environ = {**self.environ, **{f"INPUT_{name.upper()}": value for name, value in given.items()}}
            environ |= {"GITHUB_WORKSPACE": str(workspace), "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
            environ |= {"GITHUB_REPOSITORY": "octo/hello", "GITHUB_API_URL": fake.url, "GITHUB_RUN_NUMBER": "9000"}
            environ |= {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_EVENT_NAME": "workflow_run"}
            code = action(environ, lambda *where: GitHub(*where, Network(sleep=lambda _: None)))
            self.outputs, self.log = (tmp_path / "output").read_text(), capsys.readouterr().out
            return code

    return Place()


def test_a_report_of_a_fork_becomes_the_comment_of_its_pull_request(fake, place):
    place.write(BAD)
    assert place.run() == 0
    [comment] = fake.comments[3]
    assert parse_marker(comment["body"]).head == HEAD
    assert parse_marker(comment["body"]).run == 7
    assert "RAG evaluation failed" in comment["body"]
    assert "The figures come from the run of the pull request" in comment["body"]
    assert fake.comments[2] == []
    assert "\nfailed\n" in place.outputs
    assert comment["html_url"] in place.outputs


@pytest.mark.parametrize(
    ("commit", "said"), [(HEAD, None), ("", None), ("c" * 40, "`ccccccc`"), ("`<b>@octocat", "`boctoca`")]
)
def test_a_report_that_was_made_for_another_commit_says_so(fake, place, commit, said):
    ci = {"repository": FORK, "branch": "change", "commit": commit, "pull_request": 3, "run": 1}
    place.write(GOOD, ci=ci)
    assert place.run() == 0
    [comment] = fake.comments[3]
    assert ("The report is about another commit" in comment["body"]) == (said is not None)
    assert (said or "") in comment["body"]
    assert complaints(comment["body"].partition("\n")[2]) == []


@pytest.mark.parametrize("case", ["passed", "failed", "no report", "unchanged", "moved on", "refused"])
def test_the_outputs_say_what_became_of_the_report(fake, place, case):
    """The names are those of action.yml; who asks if a comment was written gets an answer."""
    if case != "no report":
        place.write(BAD if case == "failed" else GOOD)
    if case == "unchanged":
        place.run()
    place.event = event_of(head="c" * 40) if case == "moved on" else event_of()
    fake.faults = [Fault("^GET .*comments", 403, times=9)] if case == "refused" else []
    code = place.run(comment="on-change")
    outputs = parse_outputs(place.outputs)
    verdict = {"failed": "failed", "no report": "invalid", "refused": "invalid"}.get(case, "passed")
    url = "" if case in ("moved on", "refused") else fake.comments[3][0]["html_url"]
    written = str(case in ("passed", "failed", "no report")).lower()
    expected = {"pass": str(verdict == "passed").lower(), "verdict": verdict, "check-url": ""}
    expected |= {"comment-url": url, "comment-written": written}
    assert {name: outputs.get(name) for name in expected} == expected
    assert code == (2 if verdict == "invalid" else 0)


def test_a_verdict_that_the_figures_do_not_bear_out_is_not_believed(fake, place):
    gates = [{**gate, "outcome": "passed"} for gate in BAD["gates"]]
    place.write(BAD, verdict="passed", gates=gates, **{"pass": True})
    place.run()
    assert "RAG evaluation failed" in fake.comments[3][0]["body"]


def test_the_report_cannot_say_where_it_goes(fake, place):
    """No field of a report names a pull request, and what stands in its texts is data."""
    place.write(GOOD, gates_file="refs/pull/2/merge", run={"pull_request": 2, "number": 2, "head_sha": "1" * 40})
    place.run()
    assert (len(fake.comments[2]), len(fake.comments[3])) == (0, 1)


def test_a_pull_request_that_has_moved_on_is_left_alone(fake, place):
    place.write()
    place.event = event_of(head="c" * 40)
    assert place.run() == 0
    assert fake.writes == []
    assert f"no open pull request has {'c' * 12} as its last commit any more" in place.log


def test_a_closed_pull_request_is_left_alone(fake, place):
    place.write()
    fake.pulls[3]["state"] = "closed"
    assert place.run() == 0
    assert fake.writes == []


def test_the_repository_of_the_head_may_be_gone(fake, place):
    place.write()
    fake.pulls[3]["head"]["repo"] = None
    place.event = event_of(owner="")
    assert place.run() == 0
    assert len(fake.comments[3]) == 1


def test_somebody_elses_pull_request_with_the_same_commit_is_not_commented_on(fake, place):
    fake.add_pull(4, HEAD, "b" * 40, fork="victim/hello")
    place.write()
    place.run()
    assert 4 not in {number for number, rows in fake.comments.items() if rows}


def test_of_two_pull_requests_of_one_branch_none_is_chosen(fake, place):
    fake.add_pull(4, HEAD, "b" * 40, fork=FORK)
    place.write()
    assert place.run() == 2
    assert fake.writes == []
    why = "#3, #4 have the same last commit, so the tested one is unknown. Close all but one."
    assert f"::error title=rag-eval cannot run::{why}\n" in place.log


def test_a_pull_request_that_moves_to_the_next_page_meanwhile_is_one(fake, place, monkeypatch):
    place.write()
    place.event = event_of(owner="")
    fake.add_pull(4, "4" * 40, "b" * 40)
    fake.page_size, answer = 2, fake.answer

    def moving(seen):
        page = answer(seen)
        if "/pulls?" in seen.target and 9 not in fake.pulls:
            fake.add_pull(9, "9" * 40, "b" * 40)
            fake.pulls = {number: fake.pulls[number] for number in (9, 2, 3, 4)}
        return page

    monkeypatch.setattr(fake, "answer", moving)
    assert place.run() == 0, place.log
    assert [len(fake.comments[number]) for number in (2, 3, 4, 9)] == [0, 1, 0, 0]


def test_of_many_pull_requests_of_one_branch_ten_are_named(fake, place):
    for number in range(4, 20):
        fake.add_pull(number, HEAD, "b" * 40, fork=FORK)
    place.write()
    assert place.run() == 2
    assert "#3, #4, #5, #6, #7, #8, #9, #10, #11, #12 have the same last commit" in place.log


@pytest.mark.parametrize("name", ["\U00010348" * 100, "@" * 100, "|`" * 50], ids=["letters", "mentions", "signs"])
def test_there_is_room_for_the_longest_name_around_the_longest_report(fake, place, name):
    place.environ = {
        "GITHUB_SERVER_URL": f"https://{'x' * 60}.example.org",
        "GITHUB_RUN_ID": "9" * 18,
        "GITHUB_RUN_ATTEMPT": "9" * 9,
    }
    place.event = event_of(run=10**18 - 1)
    place.write(BAD)
    assert place.run(**{"comment-id": name}) == 0
    [comment] = fake.comments[3]
    assert parse_marker(comment["body"]).id == name
    remark = "\nThe figures come from the run of the pull request. The gates were judged again from them.\n"
    report = read(str(place.report)).text.removesuffix(remark)
    assert len(comment["body"]) - len(report) < MOST_CHARACTERS - ROOM < 3_000


def test_an_older_run_does_not_overwrite_a_newer_one(fake, place):
    fake.add_comment(3, f"{marker('rag-eval', HEAD, 8)}\nnewer")
    place.write()
    assert place.run() == 0
    assert fake.writes == []
    assert "comment skipped: run 8 is newer and has already commented\n" in place.log


def test_both_halves_know_the_same_workflow(fake, place):
    first = marker("rag-eval", HEAD, 8, "octo/hello/.github/workflows/rag-eval.yml@refs/pull/3/merge")
    fake.add_comment(3, f"{first}\nnewer")
    place.write()
    assert place.run() == 0
    assert fake.writes == []
    assert "::notice title=comment skipped::run 8 is newer" in place.log


def test_a_red_comment_turns_green_with_on_failure(fake, place):
    fake.add_comment(3, f"{marker('rag-eval', HEAD, 6)}\nred")
    place.write()
    place.run(comment="on-failure")
    assert "RAG evaluation passed" in fake.comments[3][0]["body"]


HUGE = b'{"format": 1, "x": "' + b"x" * (LIMITS.whole_mib << 20) + b'"}'
NO_REPORT = {
    "nothing": (b"", "the text ends here"),
    "not JSON": (b"<html>", "JSON"),
    "half of it": (json.dumps(GOOD).encode()[:-9], "JSON"),
    "another JSON": (b'{"pass": true}', "missing"),
    "a key twice": (b'{"format": 1, "format": 1}', "twice"),
    "a key more": (json.dumps({**GOOD, "number": 2}).encode(), "number"),
    "too deep": (b"[" * 5000, "nested"),
    "a level too deep": (b"[" * 17 + b"]" * 17, "nested"),
    "as deep as may be": (b"[" * 16 + b"]" * 16, "not an object"),
    "too large": (HUGE, "larger than 64 MiB"),
    "too large when unpacked": (gzip.compress(HUGE, 1), "larger than 64 MiB"),
    "not a number": (json.dumps(GOOD).replace('"k": 3', '"k": NaN').encode(), "NaN"),
    "half a surrogate pair": (json.dumps({**GOOD, "version": "\ud800"}).encode(), "surrogate"),
    "not UTF-8": (b'{"version": "\xff"}', "UTF-8"),
}


@pytest.mark.parametrize(("data", "said"), NO_REPORT.values(), ids=NO_REPORT)
def test_what_is_no_report_is_said_to_be_none_in_place_of_an_older_verdict(fake, place, data, said):
    fake.add_comment(3, f"{marker('rag-eval', HEAD, 6)}\nRAG evaluation passed")
    place.report.write_bytes(data)
    assert place.run() == 2
    assert said in place.log
    assert "Cannot be judged" in fake.comments[3][0]["body"]
    assert "passed" not in fake.comments[3][0]["body"]
    assert "figures" not in fake.comments[3][0]["body"]
    assert "\ninvalid\n" in place.outputs


def test_a_report_whose_figures_cannot_be_is_said_to_contradict_itself(fake, place):
    questions = [{**question, "scores": {"precision": -1}} for question in BAD["questions"]]
    place.write(BAD, questions=questions)
    assert place.run() == 2
    assert "contradicts itself" in fake.comments[3][0]["body"]


def test_a_report_whose_gates_were_taken_out_passes_nothing(fake, place):
    place.write(GOOD, gates=[])
    assert place.run() == 2
    assert "has no gate completeness" in fake.comments[3][0]["body"]
    assert "passed" not in fake.comments[3][0]["body"].lower()


@pytest.mark.parametrize("name", ["www.e.test", "Octocat@12", "deadbeef01", "a__b", "x.y@octocat"])
def test_a_metric_that_nobody_knows_is_text(fake, place, name):
    place.write(BAD, metrics={**BAD["metrics"], name: BAD["metrics"]["precision"]})
    place.run()
    [comment] = fake.comments[3]
    assert complaints(comment["body"].partition("\n")[2]) == []


def test_a_report_that_is_not_there_is_said_too(fake, place):
    """The run knows why it could not judge, and nobody here can fix a path in the runner."""
    assert place.run() == 2
    [comment] = fake.comments[3]
    why = "The run of the pull request uploaded no report. Its log and its summary show why"
    assert f"## 🚫 Cannot be judged\n\n{why}.\n" in comment["body"]
    assert f"in/report.json does not exist. Check the path. If it is right: {why}.\n" in place.log
    assert "figures" not in comment["body"]
    assert "Check the path" not in comment["body"]
    assert "in/report.json does not exist." in place.log
    assert "\ninvalid\n" in place.outputs


def test_reports_of_several_projects_become_a_comment_each_that_names_it(fake, place):
    place.environ = {"GITHUB_RUN_ID": "77", "GITHUB_RUN_ATTEMPT": "1"}
    place.write(BAD)
    place.run(**{"comment-id": "search"})
    place.write(GOOD)
    place.run(**{"comment-id": "help"})
    headings = [row["body"].split("\n")[1] for row in fake.comments[3]]
    assert headings == ["## ❌ RAG evaluation failed · `search`", "## ✅ RAG evaluation passed · `help`"]
    place.run(**{"comment-id": "search"})
    assert "another use in this run, which failed, wrote it" in place.log
    assert "RAG evaluation failed" in fake.comments[3][0]["body"]


def test_the_comment_ends_with_the_commit_and_the_run_that_was_judged(fake, place):
    place.write(BAD)
    place.run()
    assert fake.comments[3][0]["body"].endswith("again from them.\n\nCommit `aaaaaaa` · run 7\n")
    place.environ = {"GITHUB_SERVER_URL": "https://ghe.example.org"}
    place.run()
    assert fake.comments[3][0]["body"].endswith("[run 7](https://ghe.example.org/octo/hello/actions/runs/4242)\n")


@pytest.mark.parametrize("path", ["../event.json", "/etc/passwd", "in/../../event.json", "in"])
def test_a_report_from_elsewhere_is_refused(fake, place, path):
    assert place.run(report=path) == 2
    assert "root:x" not in json.dumps(fake.comments)


@pytest.mark.parametrize("target", ["/proc/self/environ", "../event.json"])
def test_a_link_in_its_place_is_refused(fake, place, target):
    place.report.symlink_to(target if target[0] == "/" else place.report.parent.parent.parent / "event.json")
    assert place.run() == 2
    assert "leads out of the workspace" in place.log
    assert "workflow_run" not in json.dumps(fake.comments)


def test_a_refusal_is_an_error_here_for_commenting_is_all_that_there_is_to_do(fake, place):
    place.write()
    fake.faults = [Fault("^POST .*comments", 403, message="Resource not accessible by integration")]
    assert place.run() == 2
    assert "pull-requests: write" in place.log


@pytest.mark.parametrize("event", [{}, {"workflow_run": None}, {"workflow_run": []}, {"workflow_run": {"head_sha": 7}}])
def test_another_event_is_refused(fake, place, event):
    place.write()
    place.event = event
    assert place.run() == 2
    why = "This is not a workflow_run event. The input 'report' needs one."
    assert place.log.startswith(f"::error title=rag-eval cannot run::{why}")
    assert fake.seen == []


@pytest.mark.parametrize("branch", ["a&state=closed&head=victim:main", "../x", "a b", "\u202e", "%2e", "#", "x" * 300])
def test_a_branch_cannot_change_what_is_asked(fake, branch):
    fake.add_pull(3, HEAD, "b" * 40, fork=FORK)["head"]["ref"] = branch
    api = GitHub(fake.url, "t0ken", "octo/hello", Network(sleep=lambda _: None))
    assert pull_of(api, ReportOrigin.of_event(event_of(branch=branch))).number == 3
    assert fake.seen[0].query["state"] == "open"


def test_whole_numbers_may_be_written_with_a_point(place):
    rows = json.loads(json.dumps(BAD), parse_int=float)
    place.write({**rows, "format": 1})
    output = read(str(place.report))
    place.write(BAD)
    assert output == read(str(place.report))


def test_the_command_posts_and_prints_the_address(fake, place, monkeypatch, capsys, tmp_path):
    place.write(BAD)
    (tmp_path / "event.json").write_text(json.dumps(place.event))
    for name, value in {"TOKEN": "t0ken", "REPOSITORY": "octo/hello", "API_URL": fake.url}.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    assert main(["comment", "in/report.json"]) == 0
    assert capsys.readouterr() == (f"{fake.comments[3][0]['html_url']}\n", "comment created\n")
    assert main(["comment", "in/report.json", "--head", HEAD, "--comment-id", "other", "--quiet"]) == 0
    assert [parse_marker(row["body"]).id for row in fake.comments[3]] == ["rag-eval", "other"]
    assert capsys.readouterr() == (f"{fake.comments[3][1]['html_url']}\n", "")
    assert main(["comment", "in/report.json", "--mode", "on-change", "--comment-id", "other", "--head", HEAD]) == 0
    assert capsys.readouterr().err.startswith("comment ")
    assert main(["comment", "in/gone.json"]) == 2
    monkeypatch.delenv("GITHUB_TOKEN")
    assert main(["comment", "in/report.json"]) == 2
    assert "GITHUB_TOKEN is not set" in capsys.readouterr().err


def test_the_last_line_of_the_comment_leads_to_the_run_on_the_server_of_the_event(fake, place, monkeypatch, tmp_path):
    place.write(BAD)
    (tmp_path / "event.json").write_text(json.dumps(place.event))
    server = "https://git.example.org"
    values = {"TOKEN": "t0ken", "REPOSITORY": "octo/hello", "API_URL": fake.url, "SERVER_URL": server}
    for name, value in {**values, "EVENT_PATH": str(tmp_path / "event.json")}.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    assert main(["comment", "in/report.json"]) == 0
    run = place.event["workflow_run"]["id"]
    assert f"{server}/octo/hello/actions/runs/{run}" in fake.comments[3][0]["body"].splitlines()[-1]


@pytest.mark.parametrize("text", [None, "{", "[]", "null", "{}"])
def test_the_command_asks_for_the_commit_without_an_event(fake, place, monkeypatch, capsys, tmp_path, text):
    place.write(BAD)
    path = tmp_path / "event.json"
    if text is not None:
        path.write_text(text)
    for name, value in {"TOKEN": "t0ken", "REPOSITORY": "octo/hello", "API_URL": fake.url}.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    for event in (str(path), ""):
        monkeypatch.setenv("GITHUB_EVENT_PATH", event)
        assert main(["comment", "in/report.json"]) == 2
        assert "Name the last commit of the pull request with --head." in capsys.readouterr().err
    assert main(["comment", "in/report.json", "--head", HEAD]) == 0


def test_a_report_is_read_within_the_folder_that_it_stands_in(tmp_path):
    (tmp_path / "out").mkdir()
    shutil.copy(ROOT / "tests/expected/good/report.json", tmp_path / "secret.json")
    (tmp_path / "out" / "report.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(InputError):
        read(str(tmp_path / "out" / "report.json"))


def test_an_origin_without_a_commit_is_none():
    with pytest.raises(UsageError, match="workflow_run event"):
        ReportOrigin.of_event({"workflow_run": {"head_sha": ""}})


# --- annotations of a check run --------------------------------------------------------------------------------------


def annotated(fake, *notes):
    """The annotations that GitHub gets for these notes."""
    api = GitHub(fake.url, "t0ken", "octo/hello", Network(sleep=lambda _: None))
    content = {"name": "rag-eval report", "head_sha": HEAD, "conclusion": "failure"}
    _, written = publish_check(api, content, "x" * 300, "text", notes)
    assert written == len(fake.annotations)
    return fake.annotations


def test_an_annotation_stays_within_what_github_takes(fake):
    long, empty = annotated(
        fake,
        Annotation("error", "m" * 4_001, "a.jsonl", 7, "t" * 201),
        Annotation("warning", "\u200b", "a.jsonl", 0, ""),
    )
    assert long == {
        "path": "a.jsonl",
        "start_line": 7,
        "end_line": 7,
        "annotation_level": "failure",
        "title": f"{'t' * 199}…",
        "message": "m" * 4_000,
    }
    lines = {"start_line": 1, "end_line": 1}
    assert empty == {
        "path": "a.jsonl",
        **lines,
        "annotation_level": "warning",
        "title": "rag-eval",
        "message": "rag-eval",
    }
    assert fake.checks[0]["output"]["title"] == f"{'x' * 199}…"


@pytest.mark.parametrize("file", ["", "/etc/passwd", "../a.jsonl"])
def test_an_annotation_on_no_file_of_the_repository_is_on_the_gates_file(fake, file):
    (note,) = annotated(fake, Annotation("error", "text", file, 7, "title"))
    assert (note["path"], note["start_line"]) == ("eval-gates.yml", 1)


@pytest.mark.parametrize(("count", "requests"), [(0, 1), (1, 1), (50, 1), (51, 2), (500, 10), (501, 10)])
def test_no_annotation_is_left_out_between_requests(fake, count, requests):
    notes = [Annotation("error", f"{number}", "a.jsonl", 1, "title") for number in range(count)]
    assert [note["message"] for note in annotated(fake, *notes)] == [f"{number}" for number in range(min(count, 500))]
    assert len(fake.writes) == requests


def test_a_check_run_without_an_attempt_or_a_page_names_none(fake):
    annotated(fake)
    assert {"external_id", "details_url"}.isdisjoint(json.loads(fake.seen[0].body))
