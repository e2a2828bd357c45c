"""What GitHub is asked about git objects, pull requests and reviews, against a real repository behind the fake."""

from __future__ import annotations

import hashlib
import subprocess

import pytest

from fake_github import Answer, Fault
from gitrepo import Repo
from rag_eval.gold.signoff_identity import Authorship, Review, approvals, authors
from seams import GitHub, GitHubError, Network, UsageError

pytest.importorskip("urllib3")

GOLD = "eval/gold.jsonl"
ANN = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org"}
BOB = {"GIT_AUTHOR_NAME": "Bob", "GIT_AUTHOR_EMAIL": "bob@example.org"}


@pytest.fixture
def github(fake):
    return GitHub(fake.url, "t0ken", "octo/hello", Network(sleep=lambda _: None))


@pytest.fixture
def repo(fake, tmp_path):
    made = Repo.create(tmp_path / "repo", None)
    fake.repository_at(made.path).accounts["ann@example.org"] = "ann"
    commit(made, {GOLD: "first"})
    return made


def commit(repo, files, message="a change", **env):
    for path, data in files.items():
        repo.write(path, data)
    repo.git("add", "--all")
    repo.git("commit", "-q", "--allow-empty", "-m", message, **env)
    return repo.git("rev-parse", "HEAD")


def pull(fake, repo, base):
    fake.add_pull(2, repo.git("rev-parse", "HEAD"), base)
    return repo.git("rev-parse", "HEAD")


# --- git objects -----------------------------------------------------------------------------------------------------


def test_commits_and_trees_come_as_git_keeps_them(repo, github):
    root = repo.git("rev-parse", "HEAD")
    (repo.path / "link").symlink_to("elsewhere")
    repo.git("checkout", "-q", "-b", "side")
    side = commit(repo, {"a b": "1", "eval/é": "2"})
    repo.git("checkout", "-q", "main")
    main = commit(repo, {"two.txt": "1"})
    repo.git("merge", "-q", "--no-edit", "side")
    for kind, names in {"commit": ("HEAD", main, side, root), "tree": ("HEAD^{tree}", "HEAD:eval")}.items():
        for name in names:
            kept = subprocess.run(
                ["git", "cat-file", kind, name], cwd=repo.path, capture_output=True, check=True
            ).stdout
            assert github.raw(kind, repo.git("rev-parse", name)) == kept


def test_names_stand_for_commits(repo, github):
    root = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "-b", "side")
    side = commit(repo, {"one.txt": "1"})
    repo.git("checkout", "-q", "main")
    main = commit(repo, {"two.txt": "1"})
    repo.git("merge", "-q", "--no-edit", "side")
    assert github.merge_base("main", "side") == side
    assert github.merge_base(main, side) == root
    assert github.commit("side") == side


def test_a_comparison_is_asked_for_one_commit(fake, repo, github):
    github.merge_base("main", "main")
    assert fake.seen[-1].query == {"per_page": "1"}


def test_branches_without_a_common_ancestor_are_an_error(repo, github):
    repo.git("checkout", "-q", "--orphan", "other")
    commit(repo, {"x": "1"})
    with pytest.raises(GitHubError, match="compare 'main' with 'other'") as missing:
        github.merge_base("main", "other")
    assert missing.value.status == 404


@pytest.mark.parametrize("data", [b"", b"\xff\x00\r\n", b"{}\n", b'{"content": "e30=", "encoding": "base64"}'])
def test_a_blob_comes_as_its_bytes(fake, repo, github, data):
    commit(repo, {GOLD: data})
    assert github.raw("blob", repo.git("rev-parse", f"HEAD:{GOLD}")) == data
    assert fake.seen[-1].headers["accept"] == "application/vnd.github.raw+json"


def test_a_blob_of_a_repository_with_longer_hashes(fake, github, monkeypatch):
    monkeypatch.setattr(fake, "answer", lambda _: Answer(200, raw=b"one"))
    assert github.raw("blob", hashlib.sha256(b"blob 3\0one").hexdigest()) == b"one"


FETCH = r"Otherwise check out with fetch-depth: 2 or more, so that git has it\."
MISMATCH = rf"^GitHub's answer for KIND \w{{12}} does not match its hash\. Check if a proxy changed it\. {FETCH}$"


@pytest.mark.parametrize(
    "raw", [b"", b"firsT", b"first\n", b'{"content": "Zmlyc3Q=", "encoding": "base64"}', b"<html>"]
)
def test_other_bytes_than_the_hash_says_are_never_given(fake, repo, github, monkeypatch, raw):
    monkeypatch.setattr(fake, "answer", lambda _: Answer(200, raw=raw))
    with pytest.raises(GitHubError, match=MISMATCH.replace("KIND", "blob")):
        github.raw("blob", repo.git("rev-parse", f"HEAD:{GOLD}"))


@pytest.mark.parametrize(("kind", "other"), [("commit", "HEAD~1"), ("tree", "HEAD~1^{tree}")])
def test_another_object_than_the_hash_says_is_never_given(fake, repo, github, monkeypatch, kind, other):
    commit(repo, {GOLD: "second"})
    answer = getattr(fake.git, f"git_{kind}" if kind == "commit" else kind)(repo.git("rev-parse", other))
    monkeypatch.setattr(fake, "answer", lambda _: Answer(200, answer))
    sha = repo.git("rev-parse", f"HEAD^{{{kind}}}")
    with pytest.raises(GitHubError, match=MISMATCH.replace("KIND", kind).replace("SHA", sha[:12])):
        github.raw(kind, sha)


def test_a_tree_in_part_is_refused(fake, repo, github, monkeypatch):
    whole = fake.git.tree
    monkeypatch.setattr(fake.git, "tree", lambda sha, **more: {**whole(sha, **more), "truncated": True})
    sha = repo.git("rev-parse", "HEAD^{tree}")
    for ask in (github.raw, lambda kind, sha: github.objects(kind, [sha])):
        with pytest.raises(GitHubError) as partial:
            ask("tree", sha)
        assert str(partial.value) == f"GitHub lists only a part of tree {sha[:12]}. Keep fewer files in one folder."


def test_the_default_branch(fake, github):
    fake.default_branch = "trunk/1"
    assert github.default_branch() == "trunk/1"


@pytest.mark.parametrize("sha", ["", "main", "a" * 39, "A" * 40, "../../user", f"{'a' * 40}\n"])
def test_what_is_no_hash_is_not_asked_for(fake, github, sha):
    for kind in ("commit", "tree", "blob"):
        with pytest.raises(UsageError, match=r" is not the full hash of a git object\.$"):
            github.raw(kind, sha)
    with pytest.raises((UsageError, GitHubError)):
        github.commits_touching((GOLD,), sha, 2)
    assert [
        seen.target for seen in fake.seen if "/git/" in seen.target or "commits?" in seen.target.split("pulls")[0]
    ] == []


SHA = "a" * 40
CHECK = {"name": "rag-eval", "head_sha": SHA, "output": {"title": "x", "summary": "x", "annotations": []}}
READS = {
    "commit": (lambda github: github.raw("commit", SHA), "read commit aaaaaaaaaaaa", "contents: read"),
    "tree": (lambda github: github.raw("tree", SHA), "read tree aaaaaaaaaaaa", "contents: read"),
    "trees": (lambda github: github.objects("tree", [SHA]), "read tree aaaaaaaaaaaa", "contents: read"),
    "merge_base": (lambda github: github.merge_base("main", "side"), "compare 'main' with 'side'", "contents: read"),
    "default_branch": (lambda github: github.default_branch(), "read the repository", "contents: read"),
    "opened_by": (lambda github: github.opened_by(2), "read #2", "pull-requests: read"),
    "pull_head": (lambda github: github.pull_head(2), "read #2", "pull-requests: read"),
    "open_pulls": (lambda github: list(github.open_pulls()), "list the pull requests", "pull-requests: read"),
    "reviews": (lambda github: github.reviews(2), "read the reviews", "pull-requests: read"),
    "commits_touching": (
        lambda github: github.commits_touching((GOLD,), SHA, 2),
        "read the commits",
        "pull-requests: read",
    ),
    "comments": (lambda github: list(github.comments(2)), "read the comments", "pull-requests: read"),
    "check_runs": (
        lambda github: github.check_runs(SHA, "rag-eval"),
        "read the check runs of aaaaaaaaaaaa",
        "checks: read",
    ),
}
OTHERS = {
    "blob": (lambda github: github.raw("blob", SHA), "read blob aaaaaaaaaaaa", "contents: read"),
    "named": (lambda github: github.branch("main"), "find 'main'", "contents: read"),
    "create_comment": (lambda github: github.create_comment(2, "x", nothing), "comment", "pull-requests: write"),
    "update_comment": (lambda github: github.update_comment(7, "x"), "change the comment", "pull-requests: write"),
    "create_check_run": (
        lambda github: github.create_check_run(CHECK, nothing),
        "write the check run",
        "checks: write",
    ),
    "add_to_check_run": (
        lambda github: github.add_to_check_run(7, CHECK["output"]),
        "add annotations",
        "checks: write",
    ),
}


REQUESTS = {
    "commit": f"GET /git/commits/{SHA}",
    "tree": f"GET /git/trees/{SHA}",
    "trees": f"GET /git/trees/{SHA}?recursive=1",
    "blob": f"GET /git/blobs/{SHA}",
    "merge_base": "GET /compare/main...side?per_page=1",
    "named": "GET /commits/heads%2Fmain",
    "default_branch": "GET ",
    "opened_by": "GET /pulls/2",
    "pull_head": "GET /pulls/2",
    "open_pulls": "GET /pulls?state=open&sort=created&direction=asc&per_page=100&page=1",
    "reviews": "GET /pulls/2/reviews?per_page=100&page=1",
    "commits_touching": "GET /pulls/2/commits?per_page=100&page=1",
    "comments": "GET /issues/2/comments?per_page=100&page=1",
    "create_comment": "POST /issues/2/comments",
    "update_comment": "PATCH /issues/comments/7",
    "check_runs": f"GET /commits/{SHA}/check-runs?check_name=rag-eval&per_page=100",
    "create_check_run": "POST /check-runs",
    "add_to_check_run": "PATCH /check-runs/7",
}
ACCEPTED = {"blob": "application/vnd.github.raw+json", "named": "application/vnd.github.sha"}


def nothing():
    return None


@pytest.mark.parametrize("name", REQUESTS)
def test_each_question_is_this_request(fake, github, name):
    fake.faults = [Fault("", 403)]
    with pytest.raises(GitHubError):
        {**READS, **OTHERS}[name][0](github)
    (seen,) = fake.seen
    assert f"{seen.method} {seen.target.removeprefix('/repos/octo/hello')}" == REQUESTS[name]
    assert seen.headers["accept"] == ACCEPTED.get(name, "application/vnd.github+json")
    assert seen.headers.get("content-type") == (None if seen.method == "GET" else "application/json")
    assert bool(seen.body) == (seen.method != "GET")


def test_the_requests_of_all_questions_are_listed():
    assert REQUESTS.keys() == READS.keys() | OTHERS.keys()


@pytest.mark.parametrize("ask", [ask for ask, *_ in READS.values()], ids=READS)
@pytest.mark.parametrize(
    "raw",
    [b"<html>", b"7", b'"x"', b"[[]]", b'{"parents": [{"sha": "x"}], "tree": 1, "truncated": false}', b"[{}]", b"null"],
)
def test_an_answer_of_something_else_is_an_error_of_ours(fake, github, monkeypatch, ask, raw):
    monkeypatch.setattr(fake, "answer", lambda _: Answer(200, raw=raw))
    with pytest.raises(GitHubError, match=r"^GitHub's answer .* Check if a proxy changed it\."):
        ask(github)


@pytest.mark.parametrize(("ask", "aim", "needs"), [*READS.values(), *OTHERS.values()], ids=[*READS, *OTHERS])
def test_a_refusal_names_what_was_asked_and_the_permission_that_allows_it(fake, repo, github, ask, aim, needs):
    why = " Runs for forks and Dependabot never get it." if needs.endswith("write") else ""
    fake.faults = [Fault("", 403, message="Resource not accessible")]
    with pytest.raises(GitHubError) as refused:
        ask(github)
    said = f"The token may not {aim}: the job needs `{needs}` under permissions.{why} GitHub says 'Resource not acces"
    assert str(refused.value).startswith(said)
    fake.faults = [Fault("", 404)]
    with pytest.raises(GitHubError) as gone:
        ask(github)
    said = f"Could not {aim}: GitHub does not find it, or the token lacks `{needs}`. GitHub says 'fault'."
    assert (str(gone.value), gone.value.status, len(fake.seen)) == (said, 404, 2)


@pytest.mark.parametrize("ask", [ask for ask, *_ in READS.values()], ids=READS)
def test_faults_that_pass_are_waited_out(fake, repo, github, ask):
    fake.faults = [Fault("", 502), Fault("", 403)]
    with pytest.raises(GitHubError) as refused:
        ask(github)
    assert (refused.value.status, len(fake.seen)) == (403, 2)


# --- pull requests ---------------------------------------------------------------------------------------------------


def test_who_opened_a_pull_request(fake, github):
    fake.add_pull(7, "a" * 40, "b" * 40, fork="someone/hello")
    assert github.opened_by(7) == "octocat"
    fake.pulls[7]["user"] = None
    assert github.opened_by(7) == ""


@pytest.mark.parametrize("links", [True, False], ids=["Link header", "no Link header"])
@pytest.mark.parametrize("many", [0, 1, 100, 101])
def test_reviews_of_all_pages_are_listed(fake, github, many, links):
    fake.links = links
    made = [fake.add_review(2, f"user{n}", "a" * 40, "COMMENTED") for n in range(many)]
    assert [review.id for review in github.reviews(2)] == [row["id"] for row in made]


def test_a_review_of_a_deleted_account_or_of_no_commit(fake, github):
    fake.add_review(2, "bob", "a" * 40).update(user=None, commit_id=None)
    (review,) = github.reviews(2)
    assert review == Review(review.id, "", "APPROVED", "")


def test_the_history_of_a_path_is_asked_for_as_it_is_written(fake, repo, github):
    base = repo.git("rev-parse", "HEAD")
    path = "eval/a b&sha=x/é.jsonl"
    head = commit(repo, {path: "x"}, **ANN)
    pull(fake, repo, base)
    assert [found.sha for found in github.commits_touching((path,), head, 2)] == [head]
    assert fake.seen[-1].query == {"sha": head, "path": path, "per_page": "100", "page": "1"}


def test_only_the_commits_of_the_pull_request_that_touch_the_path_count(fake, repo, github):
    base = commit(repo, {GOLD: "second"})
    commit(repo, {"README": "no gold"}, **BOB)
    touching = commit(repo, {GOLD: "third"}, **ANN)
    by_bob = commit(repo, {"eval/other.jsonl": "x"}, **BOB)
    head = pull(fake, repo, base)
    ann = Authorship(touching, "ann", "Ann", "ann@example.org")
    assert github.commits_touching((GOLD,), head, 2) == [ann]
    bob = Authorship(by_bob, None, "Bob", "bob@example.org")
    assert github.commits_touching((GOLD, "eval/other.jsonl"), head, 2) == [ann, bob]
    assert github.commits_touching(("eval/nothing",), head, 2) == []


def test_a_deletion_and_an_evil_merge_touch_the_path_too(fake, repo, github):
    base = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "-b", "side")
    commit(repo, {GOLD: "side"}, **ANN)
    repo.git("checkout", "-q", "main")
    commit(repo, {"README": "x"})
    repo.git("merge", "-q", "--no-commit", "side")
    evil = commit(repo, {GOLD: "neither"}, **BOB)
    repo.git("rm", "-q", GOLD)
    gone = commit(repo, {}, **BOB)
    result = github.commits_touching((GOLD,), pull(fake, repo, base), 2)
    assert {item.sha for item in result} >= {evil, gone}
    assert {item.name for item in result} == {"Ann", "Bob"}


def test_co_authors_are_authors(fake, repo, github):
    base = repo.git("rev-parse", "HEAD")
    message = "x\n\nCo-authored-by: Bob B. <bob@example.org>\r\nCO-AUTHORED-BY:nobody\n\nnot co-authored-by: Eve <e@x>"
    sha = commit(repo, {GOLD: "two"}, message, **ANN)
    result = github.commits_touching((GOLD,), pull(fake, repo, base), 2)
    assert result == [
        Authorship(sha, "ann", "Ann", "ann@example.org"),
        Authorship(sha, None, "Bob B.", "bob@example.org", co_author=True),
        Authorship(sha, None, "nobody", "", co_author=True),
    ]


def test_what_github_says_is_what_sign_off_asks_for(fake, repo, github):
    base = repo.git("rev-parse", "HEAD")
    commit(repo, {GOLD: "two"}, "x\n\nCo-authored-by: Cy <7+cy@users.noreply.github.com>", **ANN)
    commit(repo, {GOLD: "three"}, **BOB)
    head = pull(fake, repo, base)
    for login, state, sha in (("cy", "APPROVED", base), ("dee", "APPROVED", head), ("dee", "COMMENTED", head)):
        fake.add_review(2, login, sha, state)
    named = github.commits_touching((GOLD,), head, 2)
    assert {author.login for author in authors(github.opened_by(2), named, {})} == {"octocat", "ann", "cy", None}
    assert {author.login for author in authors("dee", named, {"bob@example.org": "bob"})} == {"dee", "ann", "cy", "bob"}
    assert approvals(github.reviews(2), head) == ["dee"]


@pytest.mark.parametrize("size", [7, 100])
def test_commits_of_all_pages_are_looked_at(fake, repo, github, size):
    fake.page_size = size
    base = repo.git("rev-parse", "HEAD")
    import_commits(repo, 120)
    result = github.commits_touching((GOLD,), pull(fake, repo, base), 2)
    assert len({item.sha for item in result}) == 120


def test_as_many_commits_as_github_lists_are_too_many(fake, repo, github):
    base = repo.git("rev-parse", "HEAD")
    import_commits(repo, 249)
    assert len(github.commits_touching((GOLD,), pull(fake, repo, base), 2)) == 249
    import_commits(repo, 1)
    what = "#2 has 250 or more commits, and GitHub does not list the others: their authors are unknown"
    with pytest.raises(GitHubError, match=rf"^{what}\. Split the pull request\.$"):
        github.commits_touching((GOLD,), pull(fake, repo, base), 2)


def test_a_pull_request_is_judged_by_the_commits_up_to_the_head_that_is_meant(fake, repo, github):
    base = repo.git("rev-parse", "HEAD")
    old = commit(repo, {GOLD: "two"})
    commit(repo, {GOLD: "three"})
    pull(fake, repo, base)
    assert len(github.commits_touching((GOLD,), repo.git("rev-parse", "HEAD"), 2)) == 2
    with pytest.raises(
        GitHubError, match=r"^#2 has newer commits than f{12}\. Look at the run of its newest commit\.$"
    ):
        github.commits_touching((GOLD,), "f" * 40, 2)
    assert len(github.commits_touching((GOLD,), old, 2)) == 1


def import_commits(repo, many):
    """Commits that each change the gold, made by one process."""
    start = repo.git("rev-parse", "HEAD")
    stream = []
    for n in range(many):
        text = f"{start} {n}"
        parent = f"from {start}\n" if n == 0 else ""
        stream += [f"commit refs/heads/main\ncommitter Ann <ann@example.org> {1_800_000_000 + n} +0000\n"]
        stream += [f"data 2\nx\n{parent}", f"M 100644 inline {GOLD}\ndata {len(text)}\n{text}\n"]
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repo.path, input="".join(stream).encode(), check=True)
    repo.git("reset", "-q", "--hard")
