from __future__ import annotations

import base64
import logging
import shutil
import socket
import ssl
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread

import pytest

from fake_github import BOT, Answer, FakeGitHub, Fault
from rag_eval import __version__
from rag_eval.github import http_client
from seams import GitHub, GitHubError, MissingExtra, Network, UsageError

pytest.importorskip("urllib3")

TOKEN = "ghs_secret0123456789"


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.time, self.slept = 1_000.0, []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds

    def network(self, patience=300.0):
        return Network(patience=patience, sleep=self.sleep, now=lambda: self.time)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def github(fake, clock):
    return GitHub(fake.url, TOKEN, "octo/hello", clock.network())


def nothing():
    return None


@pytest.mark.parametrize("links", [True, False], ids=["Link header", "no Link header"])
@pytest.mark.parametrize("many", [0, 1, 99, 100, 101, 250])
def test_comments_of_all_pages_are_listed(fake, github, many, links):
    fake.links = links
    for i in range(many):
        fake.add_comment(2, f"comment {i}", "someone")
    assert [comment.body for comment in github.comments(2)] == [f"comment {i}" for i in range(many)]


def test_smaller_pages_than_asked_for_are_followed(fake, github):
    fake.page_size = 30
    for i in range(70):
        fake.add_comment(2, f"comment {i}", "someone")
    assert len(list(github.comments(2))) == 70


def test_endless_pages_are_an_error(fake, github, monkeypatch):
    asked = []
    answer = Answer(200, [], {"Link": '<x>; rel="next"'})
    monkeypatch.setattr(fake, "answer", lambda seen: asked.append(seen.query["page"]) or answer)
    with pytest.raises(GitHubError) as endless:
        list(github.comments(2))
    assert str(endless.value) == "Could not read the comments: there are over 30000, too many to read."
    assert asked == [str(page) for page in range(1, 301)]


def test_a_comment_of_a_deleted_account_has_no_author(fake, github):
    fake.add_comment(2, "hello")["user"] = None
    assert [comment.author for comment in github.comments(2)] == [""]


def test_create_and_update(fake, github):
    made = github.create_comment(2, "first", nothing)
    changed = github.update_comment(made.id, "second \U0001f600")
    assert (made.author, made.body, changed.id) == (BOT, "first", made.id)
    assert [row["body"] for row in fake.comments[2]] == ["second \U0001f600"]
    sent = {
        "user-agent": f"rag-eval/{__version__}",
        "x-github-api-version": "2022-11-28",
        "accept": "application/vnd.github+json",
    }
    assert all(seen.headers[name] == value for seen in fake.seen for name, value in sent.items())


def test_an_enterprise_server_has_a_path_of_its_own(clock):
    with FakeGitHub(prefix="/api/v3").serving() as fake:
        fake.add_pull(2, "1" * 40, "2" * 40)
        made = GitHub(fake.url + "/", TOKEN, "octo/hello", clock.network()).create_comment(2, "hello", nothing)
        assert [row["id"] for row in fake.comments[2]] == [made.id]
        assert fake.writes == ["POST /api/v3/repos/octo/hello/issues/2/comments"]


@pytest.mark.parametrize("ref", ["", "a b", "a..b", "a\nb", "a?b", "HEAD~1", "a\\b"])
def test_a_ref_that_git_would_refuse_is_not_asked_for(fake, github, ref):
    with pytest.raises(UsageError, match=r" is not the name of a branch, tag or commit\.$"):
        github.commit(ref)
    assert fake.seen == []


def test_a_branch_is_resolved_to_its_commit(fake, github):
    fake.commits["release/1.x"] = "a" * 40
    assert github.commit("release/1.x") == "a" * 40
    fake.commits["main"] = "<html>"
    with pytest.raises(
        GitHubError, match=r"^GitHub's answer is not the hash of a commit\. Check if a proxy changed it\.$"
    ):
        github.commit("main")


def test_a_tag_does_not_take_the_place_of_a_branch(fake, github):
    fake.commits |= {"heads/main": "a" * 40, "tags/main": "b" * 40, "tags/v1": "c" * 40}
    assert github.branch("main") == "a" * 40
    assert github.commit("v1") == "c" * 40
    assert github.commit("tags/main") == "b" * 40
    with pytest.raises(UsageError) as ambiguous:
        github.commit("main")
    how = "Write heads/… for the branch, or tags/… for the tag."
    assert str(ambiguous.value) == f"'main' is a branch and a tag. {how}"
    fake.commits["tags/main"] = "a" * 40
    assert github.commit("main") == "a" * 40


def test_a_token_that_may_not_ask_writes_as_the_bot(fake, github):
    assert github.login() == BOT
    fake.graphql = False
    assert github.login() == BOT


@pytest.mark.parametrize(("status", "asks"), [(401, True), (403, True), (404, True), (400, False), (405, False)])
def test_only_a_refused_token_asks_for_its_name_otherwise(clock, status, asks):
    with FakeGitHub(author="my-app[bot]").serving() as fake:
        fake.faults = [Fault("GET /user", status, times=9)]
        client = GitHub(fake.url, TOKEN, "octo/hello", clock.network())
        if asks:
            assert client.login() == "my-app[bot]"
        else:
            with pytest.raises(GitHubError):
                client.login()
        assert any(seen.target == "/graphql" for seen in fake.seen) is asks


@pytest.mark.parametrize(("prefix", "asked"), [("", "/graphql"), ("/api/v3", "/api/graphql"), ("/x", "/x/graphql")])
def test_the_token_of_an_app_is_told_its_name_beside_the_rest_api(clock, prefix, asked):
    with FakeGitHub(author="my-app[bot]", prefix=prefix).serving() as fake:
        assert GitHub(fake.url, TOKEN, "octo/hello", clock.network()).login() == "my-app[bot]"
        assert [seen.target for seen in fake.seen] == [f"{prefix}/user", asked]


@pytest.mark.parametrize("raw", [b"{}", b'{"login": null}', b"[]", b'{"login": ""}'])
def test_a_person_without_a_name_is_taken_for_the_bot(fake, github, raw):
    fake.faults = [Fault("/user", 200, raw=raw)]
    assert (github.login(), len(fake.seen)) == (BOT, 1)


@pytest.mark.parametrize(
    "raw", [b"[]", b"{}", b'{"data": null, "errors": []}', b'{"data": {"viewer": null}}', b"<html>", b'{"data": []}']
)
def test_a_name_that_is_not_told_is_the_bot_s(fake, github, raw):
    fake.faults = [Fault("graphql", 200, raw=raw)]
    assert github.login() == BOT


def test_the_token_goes_to_no_other_host_for_its_name(fake, github):
    fake.faults = [Fault("graphql", 307, {"Location": "http://127.0.0.9:1/x"})]
    assert github.login() == BOT


def test_a_persons_token_writes_as_that_person(clock):
    with FakeGitHub(author="alice").serving() as fake:
        assert GitHub(fake.url, TOKEN, "octo/hello", clock.network()).login() == "alice"


def test_a_want_of_permission_is_said_at_once_with_what_to_do(fake, github, clock):
    fake.faults = [Fault("POST", 403, message="Resource not accessible by integration")]
    with pytest.raises(GitHubError, match="`pull-requests: write`") as refused:
        github.create_comment(2, "hello", nothing)
    assert "Resource not accessible by integration" in str(refused.value)
    assert (refused.value.status, clock.slept, len(fake.writes)) == (403, [], 1)


@pytest.mark.parametrize(
    ("status", "message", "why"),
    [
        (401, "No", "Could not find 'main': GitHub does not accept the token. GitHub says 'No'. Pass github-token: T."),
        (401, "", "Could not find 'main': GitHub does not accept the token. Pass github-token: T."),
        (403, "", "The token may not find 'main': the job needs `contents: read` under permissions."),
        (
            404,
            "No",
            "Could not find 'main': GitHub does not find it, or the token lacks `contents: read`. GitHub says 'No'.",
        ),
        (418, "No", "Could not find 'main': GitHub answered 418. GitHub says 'No'."),
        (418, "x" * 300, f"Could not find 'main': GitHub answered 418. GitHub says '{'x' * 199}…'."),
    ],
)
def test_a_refusal_is_said_in_the_words_of_github_and_with_what_to_do(fake, github, status, message, why):
    fake.faults = [Fault("", status, message=message)]
    with pytest.raises(GitHubError) as refused:
        github.branch("main")
    assert str(refused.value) == why.replace(" T.", " ${{ github.token }}.")


def test_a_refusal_of_what_needs_no_permission_names_none(fake, github):
    fake.faults = [Fault("/user", 404), Fault("graphql", 200, raw=b"{}"), Fault("/user", 500, times=9)]
    assert github.login() == BOT
    with pytest.raises(GitHubError, match=r"^Could not read the login of the token: GitHub answered 500"):
        github.login()


def test_what_runs_for_forks_are_given_is_not_said_to_be_kept_from_them(fake, github):
    fake.faults = [Fault("", 403, message="Resource not accessible by integration", times=2)]
    with pytest.raises(GitHubError, match=r"`contents: read` under permissions\. GitHub says"):
        github.commit("main")
    with pytest.raises(GitHubError, match="Dependabot never get it"):
        github.update_comment(1, "hello")


def test_a_locked_conversation_is_no_want_of_permission(fake, github, clock):
    fake.faults = [Fault("POST", 403, message="Unable to create comment because issue is locked.")]
    with pytest.raises(
        GitHubError, match=r"^Could not comment: the conversation is locked\. Unlock it to get a comment\.$"
    ) as refused:
        github.create_comment(2, "hello", nothing)
    assert ("permissions" in str(refused.value), clock.slept) == (False, [])


@pytest.mark.parametrize(
    ("fault", "slept"),
    [
        (Fault("", 403, {"Retry-After": "7"}), [7]),
        (Fault("", 429, {"Retry-After": "0"}), [1]),
        (Fault("", 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1042"}), [42]),
        (Fault("", 429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}), [1]),
        (Fault("", 429, {"X-RateLimit-Remaining": "12", "X-RateLimit-Reset": "1042"}), [60]),
        (Fault("", 403, message="You have exceeded a secondary rate limit.", times=2), [60, 120]),
        (Fault("", 429, {"Retry-After": "soon"}), [60]),
        (Fault("", 429, {"Retry-After": "9" * 13}), [60]),
        (Fault("", 429, {"X-RateLimit-Remaining": "0"}), [60]),
        (Fault("", 403, message="API Rate Limit exceeded"), [60]),
        (Fault("", 503, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1042"}), [1]),
        (Fault("", 502, times=3), [1, 2, 4]),
        (Fault("", 503, {"Retry-After": "5"}), [5]),
    ],
)
def test_what_passes_is_waited_for(fake, github, clock, fault, slept):
    fake.faults = [fault]
    assert list(github.comments(2)) == []
    assert clock.slept == slept


@pytest.mark.parametrize(
    ("patience", "why", "status", "slept"),
    [
        (100, "GitHub's rate limit lasts another 60 s. Run the job again later.", 429, [60]),
        (120, "GitHub is too slow. Run the job again later.", 0, [60, 60]),
    ],
)
def test_patience_is_for_all_requests_together(fake, clock, patience, why, status, slept):
    github = GitHub(fake.url, TOKEN, "octo/hello", clock.network(patience))
    fake.faults = [Fault("", 429, {"Retry-After": "60"}, times=9)]
    with pytest.raises(GitHubError) as given_up:
        list(github.comments(2))
    assert str(given_up.value) == f"Could not read the comments: {why}"
    assert (given_up.value.status, clock.slept) == (status, slept)


def test_a_clock_that_is_set_back_gives_no_more_patience(fake, clock):
    """The clock of a runner is set by its host; waiting for GitHub ends nevertheless."""
    network = clock.network(100)._replace(now=lambda: clock.sleep(-1_000) or 0.0)
    fake.faults = [Fault("", 429, {"Retry-After": "60"}, times=9)]
    with pytest.raises(GitHubError, match="lasts another 60 s"):
        list(GitHub(fake.url, TOKEN, "octo/hello", network).comments(2))
    assert [seconds for seconds in clock.slept if seconds > 0] == [60]


@pytest.mark.parametrize(("seconds", "slept"), [(300, [300]), (301, [])])
def test_github_is_given_five_minutes(fake, clock, seconds, slept):
    fake.faults = [Fault("", 429, {"Retry-After": f"{seconds}"})]
    with pytest.raises(GitHubError):
        list(GitHub(fake.url, TOKEN, "octo/hello", Network(sleep=clock.sleep, now=lambda: clock.time)).comments(2))
    assert clock.slept == slept


def test_a_limit_that_lasts_longer_is_not_slept_out(fake, github, clock):
    fake.faults = [Fault("", 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4600"})]
    with pytest.raises(GitHubError, match="another 3600 s"):
        list(github.comments(2))
    assert clock.slept == []


def test_a_server_that_stays_down_is_given_up(fake, github, clock):
    fake.faults = [Fault("", 500, times=99, message="boom\n::error::x")]
    with pytest.raises(GitHubError, match=r"answered 500 \(6 attempts\)\. GitHub says 'boom ::error::x'") as down:
        list(github.comments(2))
    assert (down.value.status, len(fake.seen), clock.slept) == (500, 6, [1, 2, 4, 8, 16])


def test_a_server_that_cannot_be_reached_has_status_0(clock):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(GitHubError, match=r"could not be reached \(6 attempts\): .+\. Run the job") as gone:
        GitHub(f"http://127.0.0.1:{port}", TOKEN, "octo/hello", clock.network()).update_comment(1, "hello")
    assert gone.value.status == 0
    assert len(clock.slept) == 5


def test_a_lost_answer_does_not_make_a_second_comment(fake, github):
    fake.faults = [Fault("POST", 502, done=True)]
    made = github.create_comment(2, "hello", lambda: next(iter(github.comments(2)), None))
    assert [row["id"] for row in fake.comments[2]] == [made.id]
    assert len(fake.writes) == 1


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<html>", "JSON"),
        (b"[" * 9999, "JSON"),
        (b'{"a": 1}', "a list"),
        (b"[1]", "a list of objects"),
        (b'[{"id": "x"}]', "a comment"),
        (b'[{"body": "x"}]', "a comment"),
    ],
)
def test_an_answer_of_something_else_is_an_error_of_ours(fake, github, monkeypatch, content, what):
    monkeypatch.setattr(fake, "answer", lambda _: Answer(200, raw=content))
    with pytest.raises(GitHubError) as wrong:
        list(github.comments(2))
    assert str(wrong.value) == f"GitHub's answer is not {what}. Check if a proxy changed it."


class Redirecting:
    """A server that sends everyone on, and remembers the tokens that it was shown."""

    def __init__(self, status):
        self.status, self.location, self.tokens = status, "", []

    def __enter__(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.tokens.append(self.headers["Authorization"])
                self.send_response(server.status)
                self.send_header("Location", server.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                """Say nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.port = self._server.server_port
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(
    "location",
    ["http://localhost:{same}/user", "http://127.0.0.1:{other}/user", "https://127.0.0.1:{same}/", "//x.test:y/"],
)
def test_the_token_does_not_follow_to_another_host(clock, status, location):
    with Redirecting(status) as other, Redirecting(status) as server:
        server.location = location.format(same=server.port, other=other.port)
        with pytest.raises(GitHubError) as refused:
            GitHub(f"http://127.0.0.1:{server.port}", TOKEN, "octo/hello", clock.network()).login()
    assert (other.tokens, server.tokens) == ([], [f"Bearer {TOKEN}"])
    what = "GitHub redirects to another host, which must not get the token. Check the address of the API."
    assert str(refused.value) == what


def test_a_redirect_on_the_same_host_is_followed_but_not_for_ever(clock):
    with Redirecting(301) as server:
        server.location = "/repositories/1"
        with pytest.raises(GitHubError, match=r"^GitHub redirects in a loop\. Check if the repository was renamed\.$"):
            GitHub(f"http://127.0.0.1:{server.port}", TOKEN, "octo/hello", clock.network()).login()
    assert len(server.tokens) == 4


@pytest.mark.parametrize("status", [204, 299])
def test_any_status_of_success_is_an_answer(fake, github, status):
    fake.faults = [Fault("", status, raw=b"[]" if status != 204 else b"")]
    if status == 204:
        with pytest.raises(GitHubError, match="not JSON"):
            list(github.comments(2))
    else:
        assert list(github.comments(2)) == []


@pytest.mark.parametrize("status", [300, 303, 304, 305, 400, 409, 451])
def test_any_other_status_is_named(fake, github, clock, status):
    fake.faults = [Fault("", status, {"Location": "/user"}, raw=b"")]
    with pytest.raises(GitHubError) as refused:
        list(github.comments(2))
    assert str(refused.value) == f"Could not read the comments: GitHub answered {status}."
    assert (refused.value.status, len(fake.seen), clock.slept) == (status, 1, [])


@pytest.mark.parametrize("status", [307, 308])
def test_a_write_follows_a_redirect_that_keeps_its_method(fake, github, status):
    made = fake.add_comment(2, "first")
    fake.faults = [Fault("PATCH", status, {"Location": f"/repos/octo/hello/issues/comments/{made['id']}"})]
    assert github.update_comment(7, "second").id == made["id"]
    assert [row["body"] for row in fake.comments[2]] == ["second"]


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_write_is_not_repeated_by_a_redirect_that_does_not_keep_its_method(fake, github, status):
    fake.faults = [Fault("PATCH", status, {"Location": "/user"})]
    with pytest.raises(GitHubError, match=f"answered {status}"):
        github.update_comment(1, "hello")
    assert len(fake.seen) == 1


def test_the_token_is_in_one_header_and_nowhere_else(fake, clock, caplog):
    caplog.set_level(logging.DEBUG)
    github = GitHub(fake.url, f" {TOKEN}\n", "octo/hello", clock.network())
    fake.faults = [Fault("PATCH", 404), Fault("POST", 422), Fault("GET", 401)]
    output = [repr(github), str(github), caplog.text]
    for ask in (lambda: github.update_comment(1, "x"), lambda: github.create_comment(2, "x", nothing)):
        with pytest.raises(GitHubError) as refused:
            ask()
        output += [str(refused.value), repr(refused.value)]
    with pytest.raises(GitHubError) as refused:
        list(github.comments(2))
    output += [str(refused.value), caplog.text, *(seen.target for seen in fake.seen)]
    assert {seen.headers["authorization"] for seen in fake.seen} == {f"Bearer {TOKEN}"}
    assert "PATCH" in caplog.text, "urllib3's own log was not looked at"
    assert TOKEN not in "\n".join(output)


def test_without_a_token_none_is_sent(fake, clock):
    assert list(GitHub(fake.url, "", "octo/hello", clock.network()).comments(2)) == []
    assert "authorization" not in fake.seen[0].headers
    with pytest.raises(GitHubError, match="Pass github-token") as refused:
        GitHub(fake.url, "", "octo/hello", clock.network()).create_comment(2, "x", nothing)
    assert refused.value.status == 401


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Fault("", 401, message="Log in"), "GitHub refuses it without a token. GitHub says 'Log in'."),
        (Fault("", 403, message="Forbidden"), "GitHub refuses it without a token. GitHub says 'Forbidden'."),
        (Fault("", 404, raw=b"?"), "GitHub refuses it without a token."),
        (Fault("", 403, {"Retry-After": "3600"}), "GitHub's rate limit without a token is used up."),
        (Fault("", 429, {"Retry-After": "3600"}), "GitHub's rate limit without a token is used up."),
    ],
)
def test_without_a_token_it_is_asked_for(fake, clock, fault, why):
    fake.faults = [fault]
    with pytest.raises(GitHubError) as refused:
        list(GitHub(fake.url, "", "octo/hello", clock.network()).comments(2))
    assert str(refused.value) == f"Could not read the comments: {why} Pass github-token: ${{{{ github.token }}}}."
    assert (refused.value.status, clock.slept) == (fault.status, [])


@pytest.mark.parametrize("token", ["ghs_a b", "ghs_a\r\nX-Header: 1", "ghs_\u20ac", "ghs_\x00"])
def test_a_token_that_cannot_be_one_is_refused_without_being_shown(token):
    with pytest.raises(UsageError) as refused:
        GitHub("https://api.github.test", token, "octo/hello")
    fix = "Pass github-token: ${{ github.token }}."
    assert str(refused.value) == f"github-token contains an invalid character. {fix}"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "api.github.test",
        "ftp://github.test",
        "https://",
        "https://u:secret@github.test",
        "https://github.test/?a=1",
        "https://x:y",
        "http://[::1",
    ],
)
def test_an_address_that_cannot_be_one_is_refused(address):
    with pytest.raises(
        UsageError, match=r" is not the address of GitHub's API\. Use the value of GITHUB_API_URL\.$"
    ) as refused:
        GitHub(address, TOKEN, "octo/hello", Network.from_environ({"HTTPS_PROXY": "http://p.test:1"}, address))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["", "octo", "octo/hello/x", "../user", "octo/..", "octo/he?llo", "octo/hello\n", "\u0661/a"]
)
def test_a_repository_that_cannot_be_one_is_refused(name):
    with pytest.raises(UsageError, match=r" is not a repository\. Write it as owner/name\.$"):
        GitHub("https://api.github.test", TOKEN, name)


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://proxy.test:8080"}, "http://proxy.test:8080"),
        ({"https_proxy": "http://proxy.test:8080", "HTTP_PROXY": "http://wrong.test"}, "http://proxy.test:8080"),
        ({"HTTPS_PROXY": "http://proxy.test:8080", "NO_PROXY": "localhost, .github.test"}, None),
        ({"HTTPS_PROXY": "http://proxy.test:8080", "NO_PROXY": "hub.test"}, "http://proxy.test:8080"),
        ({"HTTPS_PROXY": "http://proxy.test:8080", "no_proxy": "*"}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTPS_PROXY": "http://p.test:1", "NO_PROXY": "api.github.test:443"}, None),
        ({"HTTPS_PROXY": "http://p.test:1", "NO_PROXY": ".github.test:443"}, None),
        ({"HTTPS_PROXY": "http://p.test:1", "NO_PROXY": "*.github.test"}, None),
        ({"HTTPS_PROXY": "http://p.test:1", "NO_PROXY": "api.github.test:8443"}, "http://p.test:1"),
        ({"HTTPS_PROXY": "http://p.test:1", "NO_PROXY": ", ,"}, "http://p.test:1"),
        ({"HTTPS_PROXY": "http://p.test:1", "NO_PROXY": "other.test,API.GitHub.test"}, None),
    ],
)
def test_proxies_are_taken_from_the_environment(environ, proxy):
    assert Network.from_environ(environ, "https://api.github.test").proxy == proxy
    plain = {name.replace("HTTPS_", "HTTP_").replace("https_", "http_"): value for name, value in environ.items()}
    if "HTTP_PROXY" not in environ:
        plain = {name: value.replace(":443", ":80") for name, value in plain.items()}
        assert Network.from_environ(plain, "http://api.github.test").proxy == proxy


def test_a_proxy_is_gone_through_with_its_own_login(fake):
    network = Network(proxy=fake.url.replace("http://", "http://me:pass@"))
    GitHub("http://api.github.test", TOKEN, "octo/hello", network).login()
    assert fake.seen[0].target == "http://api.github.test/user"
    assert fake.seen[0].headers["proxy-authorization"].startswith("Basic ")


def test_a_proxy_needs_no_scheme_and_its_login_may_hold_any_sign(fake):
    network = Network(proxy=fake.url.replace("http://", "us%40er:p%3Ass%25@"))
    GitHub("http://api.github.test", TOKEN, "octo/hello", network).login()
    login = base64.b64encode(b"us@er:p:ss%").decode()
    assert fake.seen[0].headers["proxy-authorization"] == f"Basic {login}"


@pytest.mark.parametrize("address", ["socks5://me:secret@proxy.test:1", "http://[::1", "http://me:secret@[::1"])
def test_what_is_no_address_of_a_proxy_is_told_without_its_login(address):
    with pytest.raises(
        UsageError, match=r"^HTTPS_PROXY is not the address of a proxy\. Write it as http://host:port$"
    ) as caught:
        GitHub("http://api.github.test", TOKEN, "octo/hello", Network(proxy=address)).login()
    assert "secret" not in str(caught.value)


def test_a_proxy_that_fails_is_named_without_its_login(clock):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    network = clock.network()._replace(proxy=f"http://me:secret@127.0.0.1:{port}", proxy_from="input 'proxy'")
    with pytest.raises(
        GitHubError, match=r"could not be reached \(6 attempts\): the proxy of input 'proxy' fails: "
    ) as gone:
        GitHub("http://api.github.test", TOKEN, "octo/hello", network).login()
    assert "refused" in str(gone.value)
    assert all(part not in str(gone.value) for part in ("secret", "GitHub says", "NewConnectionError"))


def test_a_connection_that_is_not_safe_is_given_up_at_once(fake, clock):
    network = clock.network()._replace(
        ca_bundle=Network.from_environ({"REQUESTS_CA_BUNDLE": "/nowhere.pem"}, "").ca_bundle
    )
    fix = "Name the authority's certificate in the input ca-certificates, or on the command line in REQUESTS_CA_BUNDLE."
    with pytest.raises(GitHubError, match=rf"^No secure connection to the API: .*No such file .*\. {fix}$"):
        GitHub(fake.url.replace("http://", "https://"), TOKEN, "octo/hello", network).login()
    assert (fake.seen, clock.slept) == ([], [])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The files of a certificate for 127.0.0.1 that no authority signed, and of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("certificate")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(words, cwd=folder, capture_output=True, check=True)
    return folder / "certificate.pem", folder / "key.pem"


def test_only_named_certificates_are_trusted(certificate, clock):
    """By the text of the action's input, or by the file of the command line's variable."""
    file, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    with FakeGitHub(author="alice").serving() as fake:
        fake._server.socket = context.wrap_socket(fake._server.socket, server_side=True)
        url = fake.url.replace("http://", "https://")
        by_text = clock.network()._replace(ca_certificates=file.read_text())
        by_file = Network.from_environ({"REQUESTS_CA_BUNDLE": str(file)}, url)
        for network in (by_text, by_file._replace(sleep=clock.sleep)):
            assert GitHub(url, TOKEN, "octo/hello", network).login() == "alice"
        seen = len(fake.seen)
        with pytest.raises(GitHubError, match=r"^No secure connection to the API: .*certificate"):
            GitHub(url, TOKEN, "octo/hello", clock.network()).login()
        assert (len(fake.seen), clock.slept) == (seen, [])


def test_without_urllib3_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "urllib3", None)
    with pytest.raises(MissingExtra, match=r"Access to GitHub .*\[action\]"):
        GitHub("https://api.github.test", TOKEN, "octo/hello")


@pytest.mark.parametrize("how", ["cut", "hung up"])
def test_an_answer_that_breaks_off_is_asked_for_again(fake, github, clock, how):
    fake.add_comment(2, "hello " * 1000)
    fake.faults = [Fault("GET", 200, raw=b'[{"id": 1}]' * 999, how=how, times=2)]
    assert len(list(github.comments(2))) == 1
    assert (len(fake.seen), clock.slept) == (3, [1, 2])


def test_a_cut_answer_to_a_write_does_not_write_again(fake, github):
    fake.faults = [Fault("POST", 201, done=True, how="cut")]
    made = github.create_comment(2, "hello", lambda: next(iter(github.comments(2)), None))
    assert [row["id"] for row in fake.comments[2]] == [made.id]


def test_an_answer_in_drops_is_given_up(fake, clock):
    fake.faults = [Fault("GET", 200, raw=b"[" + b" " * 40_000 + b"]", how="in drops", times=9)]
    network = clock.network()._replace(body_seconds=0.1)
    began = time.monotonic()
    with pytest.raises(GitHubError, match=r": the answer took longer than 0 s\. Run the job again later\.$") as slow:
        list(GitHub(fake.url, TOKEN, "octo/hello", network).comments(2))
    assert (slow.value.status, len(fake.seen)) == (0, 6)
    assert time.monotonic() - began < 30


def test_good_answers_that_take_for_ever_end_too(fake, clock, monkeypatch):
    monkeypatch.setattr(fake, "answer", lambda _: Answer(200, [], {"Link": '<x>; rel="next"'}))
    network = clock.network()._replace(now=lambda: clock.sleep(10) or clock.time)
    with pytest.raises(
        GitHubError, match=r"^Could not read the comments: GitHub is too slow\. Run the job again later\.$"
    ):
        list(GitHub(fake.url, TOKEN, "octo/hello", network).comments(2))


def test_an_answer_without_end_is_not_kept(fake, github, monkeypatch):
    monkeypatch.setattr(http_client, "MOST_BYTES", 1 << 20)
    fake.faults = [Fault("GET", 200, raw=b"[" + b" " * (2 << 20) + b"]")]
    with pytest.raises(GitHubError) as large:
        list(github.comments(2))
    assert str(large.value) == "GitHub's answer has more than 1 MiB. Check if a proxy changed it."
    fake.faults = [Fault("GET", 200, raw=b"[" + b" " * ((1 << 20) - 2) + b"]")]
    assert list(github.comments(2)) == []


@pytest.mark.parametrize("how", ["silent", "headers in drops"])
def test_headers_that_do_not_end_are_given_up(fake, clock, how):
    fake.faults = [Fault("GET", 200, how=how, times=2)]
    network = clock.network()._replace(headers_seconds=0.3)
    began = time.monotonic()
    assert list(GitHub(fake.url, TOKEN, "octo/hello", network).comments(2)) == []
    assert (len(fake.seen), clock.slept) == (3, [1, 2])
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("fault", [Fault("", 503, times=99), Fault("", 200, how="hung up", times=99)])
def test_an_outage_is_waited_out_once_and_not_by_every_request(fake, github, clock, fault):
    fake.faults = [fault]
    for _ in range(3):
        with pytest.raises(GitHubError):
            list(github.comments(2))
    assert clock.slept == [1, 2, 4, 8, 16]
    assert len(fake.seen) == 8
    fault.times = 0
    assert list(github.comments(2)) == []
    fault.times = 1
    assert list(github.comments(2)) == []


def test_an_outage_is_not_waited_out_for_longer_than_a_minute(fake, clock):
    def now():
        clock.time += 10  # each look at the clock is ten seconds later
        return clock.time

    fake.faults = [Fault("", 503, times=99)]
    with pytest.raises(GitHubError, match=r"\([23] attempts\)"):
        list(GitHub(fake.url, TOKEN, "octo/hello", clock.network()._replace(now=now)).comments(2))


def test_a_server_that_asks_to_wait_for_a_minute_is_asked_again(fake, clock):
    def now():
        clock.time += 0.1  # each look at the clock is a tenth of a second later
        return clock.time

    fake.faults = [Fault("", 503, {"Retry-After": "60"})]
    assert list(GitHub(fake.url, TOKEN, "octo/hello", clock.network()._replace(now=now)).comments(2)) == []
    assert clock.slept == [60]


def test_a_name_server_that_does_not_answer_is_given_up(clock, monkeypatch):
    end = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: end.wait(60))
    network = clock.network()._replace(headers_seconds=0.05)
    began = time.monotonic()
    with pytest.raises(GitHubError, match="could not be reached"):
        GitHub("http://api.github.test", TOKEN, "octo/hello", network).login()
    assert time.monotonic() - began < 30
    end.set()


@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_a_message_that_echoes_the_token_is_shown_without_it(fake, github, status):
    fake.faults = [Fault("", status, message=f"Bad token: Bearer {TOKEN}!", times=9)]
    with pytest.raises(GitHubError, match=r"\*\*\*!") as refused:
        list(github.comments(2))
    assert TOKEN not in str(refused.value)
