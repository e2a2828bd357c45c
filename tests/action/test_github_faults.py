"""Whatever GitHub does while the comment is written: the verdict stays, a notice says why, and it ends in time."""

from __future__ import annotations

import json
import shutil

import pytest

from cases import ROOT
from fake_github import Fault
from seams import GitHub, Network, action, marker

pytest.importorskip("urllib3")

PULL, HEAD = 2, "a" * 40
COMMENTS = "/comments"
READ, WRITE = f"^GET .*{COMMENTS}", f"^POST .*{COMMENTS}"
NO_JSON = b'{"id": 7, "body": "ha'


def always(match, status, headers=None, message="fault", **how):
    return Fault(match, status, headers or {}, message, times=99, **how)


REFUSED = {
    "401 while reading": (always(READ, 401, message="Bad credentials"), "does not accept the token"),
    "401 while writing": (always(WRITE, 401, message="Bad credentials"), "does not accept the token"),
    "403 of a fork": (always(WRITE, 403, message="Resource not accessible by integration"), "pull-requests: write"),
    "403 of a locked conversation": (always(WRITE, 403, message="issue is locked"), "the conversation is locked"),
    "403 of the primary limit": (
        always("", 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999"}),
        "rate limit",
    ),
    "403 of a secondary limit": (always(WRITE, 403, {"Retry-After": "90"}), "rate limit"),
    "404 of a pull request that is gone": (always(READ, 404, message="Not Found"), "GitHub does not find it"),
    "404 for want of a permission": (always(WRITE, 404, message="Not Found"), "`pull-requests: write`"),
    "410 of comments that are off": (always(READ, 410, message="Issues are disabled"), "Issues are disabled"),
    "422 of a body that is refused": (always(WRITE, 422, message="Body is too long"), "Body is too long"),
    "429": (always("", 429, {"Retry-After": "3600"}), "another 3600 s"),
    "500": (always("", 500), "answered 500"),
    "502 while writing": (always(WRITE, 502), "answered 502"),
    "503 while reading": (always(READ, 503, {"Retry-After": "1"}), "answered 503"),
    "504": (always("", 504), "answered 504"),
    "hung up": (always("", 200, how="hung up"), "could not be reached"),
    "cut": (always(READ, 200, raw=b"[]" * 99, how="cut"), "could not be reached"),
    "no JSON while reading": (always(READ, 200, raw=NO_JSON), "not JSON"),
    "no JSON while writing": (always(WRITE, 201, raw=NO_JSON), "not JSON"),
    "JSON of something else": (always(READ, 200, raw=b'{"message": "::error::x"}'), "not a list"),
    "a comment of something else": (always(WRITE, 201, raw=b'{"id": "::set-output name=a::b"}'), "not a comment"),
    "a redirect to another host": (always("", 307, {"Location": "http://127.0.0.9:1/x"}), "another host"),
    "a redirect in circles": (always("^GET", 301, {"Location": "/user"}), "in a loop"),
    "a redirect that loses the body": (always(WRITE, 302, {"Location": "/user"}), "answered 302"),
    "a redirect to nowhere": (always(READ, 307, {"Location": "http://[::1"}), "another host"),
}
PASSING = {
    "one 500": Fault(READ, 500),
    "five 502": Fault(WRITE, 502, times=5),
    "a 502 after the comment was made": Fault(WRITE, 502, done=True),
    "an answer cut after the comment was made": Fault(WRITE, 201, done=True, how="cut"),
    "a connection lost after the comment was made": Fault(WRITE, 200, done=True, how="hung up"),
    "a primary limit that ends soon": Fault(READ, 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1042"}),
    "a secondary limit": Fault(WRITE, 403, {"Retry-After": "60"}, "You have exceeded a secondary rate limit"),
    "a secondary limit without a time": Fault(WRITE, 403, {}, "You have exceeded a secondary rate limit"),
    "a 429": Fault(WRITE, 429, {"Retry-After": "5"}),
    "a redirect of a renamed repository": Fault(READ, 307, {"Location": f"/repos/octo/hello/issues/{PULL}/comments"}),
}


class Clock:
    """Time that passes while somebody sleeps, and a little with each look."""

    def __init__(self):
        self.time = 1_000.0

    def sleep(self, seconds):
        self.time += seconds

    def look(self):
        self.time += 0.5
        return self.time


@pytest.fixture
def run(fake, tmp_path, capsys, monkeypatch):
    """Run the action over the quickstart in a pull request, with the real client before the small GitHub."""
    workspace, clock = tmp_path / "workspace", Clock()
    shutil.copytree(ROOT / "examples" / "quickstart", workspace)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": PULL, "head": {"sha": HEAD}}}))
    monkeypatch.chdir(workspace)
    network = Network(sleep=clock.sleep, now=clock.look)

    def run(trace="bad.jsonl", number="5"):
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        environ = {
            **{name: str(file) for name, file in files.items()},
            "INPUT_GOLD": "gold.jsonl",
            "INPUT_TRACE": trace,
            "INPUT_GITHUB-TOKEN": "t0ken",
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "octo/hello",
            "GITHUB_RUN_NUMBER": number,
            "GITHUB_API_URL": fake.url,
        }
        code = action(environ, lambda url, token, name: GitHub(url, token, name, network))
        run.log, run.took = capsys.readouterr().out, clock.time - 1_000
        run.summary = files["GITHUB_STEP_SUMMARY"].read_text("utf-8")
        run.outputs = files["GITHUB_OUTPUT"].read_text("utf-8")
        return code

    return run


@pytest.mark.parametrize(("fault", "said"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_pass_is_one_notice_and_changes_no_verdict(fake, run, fault, said):
    fake.faults = [fault]
    assert run() == 1
    notices = [line for line in run.log.splitlines() if line.startswith("::notice")]
    assert len(notices) == 1
    assert notices[0].startswith("::notice title=rag-eval::No comment: ")
    assert said in notices[0]
    assert "RAG evaluation failed" in run.summary
    assert "verdict<<" in run.outputs
    assert "t0ken" not in run.log + run.summary + run.outputs
    assert not [line for line in run.log.splitlines() if line.startswith("::") and line.split()[0][2:] not in LEVELS]
    assert run.took < 400
    assert len(fake.writes) <= 6


def test_a_comment_of_an_unknown_account_is_warned_of(fake, run):
    fake.author, fake.graphql = "my-app[bot]", False
    assert run() == 1
    assert "::warning title=comment created::its author is 'my-app[bot]', not" in run.log


LEVELS = ("error", "warning", "notice")


@pytest.mark.parametrize(("trace", "code"), [("good.jsonl", 0), ("bad.jsonl", 1)])
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_what_passes_is_waited_for_and_there_is_one_comment(fake, run, fault, trace, code):
    fake.faults = [Fault(**vars(fault))]
    assert run(trace) == code
    assert "::notice" not in run.log
    assert len(fake.comments[PULL]) == 1
    assert run.took < 400


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_an_update_survives_the_same(fake, run, fault):
    fake.add_comment(PULL, f"{marker('rag-eval', HEAD, 4)}\nred")
    fake.faults = [Fault(**{**vars(fault), "match": fault.match.replace("POST .*", "PATCH .*")})]
    assert run("good.jsonl") == 0
    [comment] = fake.comments[PULL]
    assert "RAG evaluation passed" in comment["body"]
