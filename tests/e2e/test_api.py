"""The client and the fake, both held to GitHub's own description of its API."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from e2e.engine import installed
from e2e.trim_openapi import PATHS
from gitrepo import Repo
from rag_eval.github import BOT
from rag_eval.github.posting import Annotation, post, publish_check
from seams import GitHub, GitHubError, Network, marker

NUMBER = 2


def no_waiting(seconds):
    raise AssertionError(f"the client wants to wait {seconds} s: a request or an answer breaks the description")


@pytest.fixture
def client(github, prism):
    return GitHub(prism[0], "token", github.repository, Network(sleep=no_waiting))


def test_comments_are_made_changed_and_listed(github, client):
    for i in range(130):
        github.add_comment(NUMBER, f"comment {i}", "someone")
    for run, text in ((1, "red"), (2, "green")):
        post(client, NUMBER, f"{marker('e2e', 'a' * 40, run)}\n{text}", "always")
    rows = list(client.comments(NUMBER))
    assert (len(rows), rows[-1].author, rows[-1].body.splitlines()[1]) == (131, BOT, "green")


def test_a_check_run_is_made_found_and_added_to(github, client):
    content = {"name": "rag-eval report", "head_sha": "a" * 40, "conclusion": "failure", "external_id": "1.1"}
    check = {**content, "details_url": "https://github.test/run"}, "Failed gates: chr", "text"
    notes = [Annotation("warning", f"question {number}", "eval/gold.jsonl", number, "MISSING") for number in range(120)]
    made, written = publish_check(client, *check, notes)
    assert (written, len(github.annotations), [run.id for run in client.check_runs("a" * 40, content["name"])]) == (
        120,
        120,
        [made.id],
    )
    github.may_check = False
    with pytest.raises(GitHubError, match="`checks: write`"):
        publish_check(client, *check, notes)


def test_refs_and_refusals(github, client):
    github.commits["main"] = "a" * 40
    assert client.commit("main") == "a" * 40
    with pytest.raises(GitHubError) as refused:
        client.commit("gone")
    assert refused.value.status == 422


@pytest.mark.parametrize("author", [BOT, "alice"])
def test_the_own_name(github, client, author):
    github.author = author
    assert client.login() == author


@pytest.fixture
def repo(github, tmp_path):
    """A repository with a branch of two commits, the second by somebody else as well; it is the pull request's."""
    repo = Repo.create(tmp_path / "repo", None)
    repo.write("eval/gold.jsonl", b"\xff one\r\n")
    repo.git("add", "--all")
    for message in ("one", "two", "three\n\nCo-authored-by: Bob <bob@example.org>"):
        repo.write("eval/gold.jsonl", message)
        repo.git("add", "--all")
        repo.git("commit", "-q", "-m", message)
    github.repository_at(repo.path).accounts["ann@example.org"] = "ann"
    github.add_pull(NUMBER, repo.git("rev-parse", "HEAD"), repo.git("rev-parse", "HEAD~2"))
    return repo


def test_git_objects(client, repo):
    head, parent, first = (repo.git("rev-parse", ref) for ref in ("HEAD", "HEAD~1", "HEAD~2"))
    assert client.commit("main") == head
    assert f"\nparent {parent}\n".encode() in client.raw("commit", head)
    assert client.merge_base(first, head) == first
    file = repo.git("rev-parse", "HEAD:eval/gold.jsonl")
    assert client.raw("tree", repo.git("rev-parse", "HEAD:eval")) == b"100644 gold.jsonl\0" + bytes.fromhex(file)
    assert client.raw("blob", file) == (repo.path / "eval/gold.jsonl").read_bytes()
    for kind in ("commit", "tree", "blob"):
        with pytest.raises(GitHubError) as refused:
            client.raw(kind, "0" * 40)
        assert refused.value.status == 404


def test_the_pull_request_its_reviews_and_its_authors(github, client, repo):
    head = repo.git("rev-parse", "HEAD")
    github.add_review(NUMBER, "alice", head)
    assert (client.opened_by(NUMBER), client.default_branch()) == ("octocat", "main")
    assert [(review.user, review.state, review.commit) for review in client.reviews(NUMBER)] == [
        ("alice", "APPROVED", head)
    ]
    named = client.commits_touching(("eval/gold.jsonl",), head, NUMBER)
    assert [(item.login, item.email) for item in named] == [
        ("ann", "ann@example.org"),
        ("ann", "ann@example.org"),
        (None, "bob@example.org"),
    ]


def test_the_pull_requests_of_a_fork_and_all_of_them(github, client):
    github.add_pull(3, "c" * 40, "d" * 40, fork="someone/hello")
    assert [(pull.number, pull.head) for pull in client.open_pulls("someone", "change")] == [(3, "c" * 40)]
    assert {pull.number for pull in client.open_pulls()} == {NUMBER, 3}


def test_prism_does_object(github, prism):
    """The tests above prove nothing if Prism lets everything pass."""
    url = f"{prism[0]}/repos/{github.repository}/issues/{NUMBER}/comments"
    wrong = Request(url, b'{"text": "no body"}', {"Content-Type": "application/json", "Authorization": "Bearer x"})
    with pytest.raises(HTTPError) as refused:
        urlopen(wrong)
    assert refused.value.code == 422
    assert b"prism" in refused.value.read()
    del github.add_comment(NUMBER, "hello")["html_url"]
    with pytest.raises(HTTPError) as refused:
        urlopen(url)
    assert refused.value.code == 500
    refused.value.close()


@pytest.mark.parametrize("edition", ["ghes-3.17", "ghes-3.18", "ghes-3.19", "ghec"])
def test_other_editions_of_github_have_all_that_is_asked_for(edition):
    described = json.loads(installed(f"@octokit/openapi/generated/{edition}.json").read_text("utf-8"))["paths"]
    assert [path for path in PATHS if described.get(path, {}).keys().isdisjoint(("get", "patch", "post"))] == []
