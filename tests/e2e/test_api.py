"""The client and the fake, both held to GitHub's own description of its API."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from rag_eval.comment import marker, post
from rag_eval.github import BOT, GitHub, GitHubError, Network

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
        post(client, NUMBER, f"{marker('e2e', 'a' * 40, run)}\n{text}", "e2e", "always", False, run)
    rows = list(client.comments(NUMBER))
    assert (len(rows), rows[-1].author, rows[-1].body.splitlines()[1]) == (131, BOT, "green")


def test_files_refs_and_refusals(github, client):
    github.files["main", "eval/gates.yml"] = b"gates: []\n"
    github.commits["main"] = "a" * 40
    assert client.file("eval/gates.yml", client_ref := "main") == b"gates: []\n"
    assert client.commit(client_ref) == "a" * 40
    for ask, status in ((lambda: client.file("gone.yml", "main"), 404), (lambda: client.commit("gone"), 422)):
        with pytest.raises(GitHubError) as refused:
            ask()
        assert refused.value.status == status
    with pytest.raises(GitHubError, match="folder"):
        client.file("eval", "main")


@pytest.mark.parametrize("author", [BOT, "alice"])
def test_the_own_name(github, client, author):
    github.author = author
    assert client.login() == author


def test_what_the_fake_answers_to_what_is_not_asked_yet(github, prism):
    github.add_review(NUMBER, "alice", "a" * 40)
    answers = [
        json.load(urlopen(f"{prism[0]}/repos/{github.repository}/pulls/{NUMBER}{rest}")) for rest in ("", "/reviews")
    ]
    assert answers == [github.pulls[NUMBER], github.reviews[NUMBER]]


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
