"""Commits and trees from GitHub's JSON, held to their ids. The commits are public ones, as the API gives them."""

from __future__ import annotations

import os
import subprocess

import pytest

from gitrepo import Repo
from rag_eval.git import CommitTree, object_id
from rag_eval.github import commit_bytes, tree_bytes
from seams import GitHub, GitHubError, Network


def person(name, email, date):
    return {"name": name, "email": email, "date": date}


def commit(tree, parents, message, author, committer=None, signature=None, payload=None):
    return {
        "tree": {"sha": tree},
        "parents": [{"sha": sha} for sha in parents],
        "author": author,
        "committer": committer or author,
        "message": message,
        "verification": {"verified": bool(signature), "signature": signature, "payload": payload},
    }


REMY = person("Remy Sharp", "remy@remysharp.com", "2019-05-01T07:05:47Z")
SIGNED = "4b1c21f1db8abbf4da8c3132a139b0fdd28728ac"
PUBLIC = {
    "7fd1a60b01f91b314f59955a4e4d4e80d8edf11d": commit(
        "b4eecafa9be2f2006ce1b709d6857b07069b4608",
        ["553c2077f0edc3d5dc5d17262f6aa498e69d6f8e", "762941318ee16e59dabbacb1b4049eec22f0d303"],
        "Merge pull request #6 from Spaceghost/patch-1\n\nNew line at end of file.",
        person("The Octocat", "octocat@nowhere.com", "2012-03-06T23:06:50Z"),
    ),
    "482d52f53a146dd688eff4ed8093cf2980580662": commit(
        "e5a9ee9506a040a7cc8c608614db7531f8f32e70",
        ["13db6ee453ea2b05d09ed8da1b7baa87fbbdcebc"],
        "moar",
        person("Michal Piekarczyk", "namoopsoo", "2020-12-13T21:39:11Z"),
    ),
    "20ccb623c4dbdbc9445085ba72ca7ab90f5bffcb": commit(
        "19cd06833ac60746f558e4220b4cbaacbc7febc9",
        ["886527f1f0a9249e1a044fd652b7519d1c0dc50e"],
        "feat: add message event\n\nadd event to listen to messages coming from the child's ipc events, "
        "partially implementing #1519",
        person("Emily Marigold Klassen", "forivall@gmail.com", "2019-04-23T19:49:54Z"),
        REMY,
    ),
    SIGNED: commit(
        "d6c0ecb084d4a27168ab81ddbea7219dfd8e2203",
        ["ba8d807f8d2eeea8642f49d3c011bf310e3c2ba1"],
        "Create README.md",
        person("Patric Jansson", "paddy@kth.se", "2019-12-04T11:41:29Z"),
        person("GitHub", "noreply@github.com", "2019-12-04T11:41:29Z"),
        "-----BEGIN PGP SIGNATURE-----\n\nwsBcBAABCAAQBQJd55tpCRBK7hj4Ov3rIwAAdHIIAG3IyHDVCThok1hvb0DFYtmG\n"
        "PmoUx/vgFmIYtqw7tQEg+LuYjpqRg8wXHy2brEgKZLqiOwdTCVX+Jg2dgly+r6wr\n"
        "3WLiQZviJMFTWWvnPPbA/QY0Pu1y51Mv3EdP6KnQlMlpbRhzXuVAp66EhxK+3W2u\n"
        "yoBGc3/g5R5gm4dQzCfEg5ohC+gv0AiHCDX56F1wlkON7XBdEn6CE1FsTwKs9VuA\n"
        "4vYQQlQ4FaKNs+Qekd9Bpb0Z1SWq3IhsdOjrmCFG64VJ88fkB+nx9kqVWxDDjcuP\n"
        "nkHATf7XG5FcLj0PtBTiNCrXlc2SLjqmf2KA6gngZVBzEBWlURWOkbi+Ja396P4=\n=rCDq\n-----END PGP SIGNATURE-----\n",
        "tree d6c0ecb084d4a27168ab81ddbea7219dfd8e2203\nparent ba8d807f8d2eeea8642f49d3c011bf310e3c2ba1\n"
        "author Patric Jansson <paddy@kth.se> 1575459689 +0100\n"
        "committer GitHub <noreply@github.com> 1575459689 +0100\n\nCreate README.md",
    ),
}


@pytest.mark.parametrize("sha", PUBLIC)
def test_public_commits_are_built_again(sha):
    data = commit_bytes(PUBLIC[sha], sha)
    assert object_id(data, "commit") == sha
    assert data.startswith(f"tree {PUBLIC[sha]['tree']['sha']}\n".encode())


CHANGES = {
    "another tree": {"tree": {"sha": "a" * 40}},
    "another parent": {"parents": [{"sha": "a" * 40}]},
    "no parent": {"parents": []},
    "another message": {"message": "x"},
    "a message of another kind": {"message": 7},
    "no author": {"author": None},
    "a date that is none": {"author": person("a", "b", "yesterday")},
    "a date out of range": {"author": person("a", "b", "0001-01-01T00:00:00")},
    "half a surrogate pair": {"message": "\ud800"},
    "parents of another kind": {"parents": {"sha": "x"}},
    "no verification": {"verification": None},
    "a payload without headers": {"verification": {"signature": "x", "payload": "y"}},
    "a signature of another kind": {"verification": {"signature": ["x"], "payload": "y"}},
    "a long message": {"message": "x" * (1 << 16)},
    "a very long message": {"message": "x" * (1 << 21)},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_answer_that_says_anything_else_is_no_commit(change):
    sha = "20ccb623c4dbdbc9445085ba72ca7ab90f5bffcb"
    assert commit_bytes({**PUBLIC[sha], **change}, sha) is None


def test_of_a_signed_commit_only_what_was_signed_counts():
    """What stands beside the payload is not what the id was made of."""
    other = {**PUBLIC[SIGNED], "tree": {"sha": "a" * 40}, "parents": [{"sha": "b" * 40}]}
    assert b"a" * 40 not in commit_bytes(other, SIGNED)


@pytest.fixture
def repo(tmp_path):
    return Repo.create(tmp_path / "repo", None)


@pytest.mark.parametrize("author", ["-0800", "+0545"])
@pytest.mark.parametrize("committer", ["+0000", "+0530"])
@pytest.mark.parametrize("message", ["one line", "two\n\nparagraphs\n", "line\r\nends", "Ünïcode ✓"])
def test_commits_of_any_zone_are_built_again(repo, author, committer, message):
    when = {"GIT_AUTHOR_DATE": f"1700000000 {author}", "GIT_COMMITTER_DATE": f"1700000100 {committer}"}
    repo.git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message, **when)
    sha = repo.git("rev-parse", "HEAD")
    raw = subprocess.run(["git", "cat-file", "commit", sha], cwd=repo.path, capture_output=True, check=True).stdout
    name, email = (repo.git("show", "-s", f"--format={form}", sha) for form in ("%an", "%ae"))
    committed = [repo.git("show", "-s", f"--format={form}", sha) for form in ("%cn", "%ce")]
    answer = commit(
        repo.git("rev-parse", "HEAD^{tree}"),
        [],
        message.rstrip("\n"),
        person(name, email, "2023-11-14T22:13:20Z"),
        person(*committed, "2023-11-14T22:15:00Z"),
    )
    if not message.endswith("\n\n"):
        assert commit_bytes(answer, sha) == raw


def built(length, author, committer):
    """What GitHub says of a commit with a message of this length, and its id and bytes."""
    message = "x" * length
    ends = f"author Ann <a@x> 1700000000 {author}\ncommitter Ann <a@x> 1700000100 {committer}"
    raw = f"tree {'1' * 40}\n{ends}\n\n{message}\n".encode()
    when = (person("Ann", "a@x", f"2023-11-14T22:{time}Z") for time in ("13:20", "15:00"))
    return commit("1" * 40, [], message, *when), object_id(raw, "commit"), raw


@pytest.mark.parametrize("zone", ["-1200", "-0330", "+0000", "+0845", "+1245", "+1400"])
def test_every_zone_of_the_world_is_tried(zone):
    for author, committer in ((zone, zone), (zone, "+0100"), ("-1200", zone)):
        answer, sha, raw = built(10, author, committer)
        assert commit_bytes(answer, sha) == raw


@pytest.mark.parametrize(
    ("length", "committer", "known"),
    [(1 << 13, "-1145", True), ((1 << 13) + 1, "-1145", False), ((1 << 13) + 1, "-1200", True)],
)
def test_of_a_long_message_only_one_zone_is_tried(length, committer, known):
    """Each form is hashed: a long message in all pairs of zones would keep a runner busy."""
    answer, sha, raw = built(length, "-1200", committer)
    assert commit_bytes(answer, sha) == (raw if known else None)


@pytest.mark.parametrize(("length", "known"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_of_a_message_of_a_megabyte_no_zone_is_tried(length, known):
    answer, sha, raw = built(length, "-1200", "-1200")
    assert commit_bytes(answer, sha) == (raw if known else None)


SIGNATURE = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----"


@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("behind", ["at the end", "behind the committer"])
@pytest.mark.parametrize("lines", [SIGNATURE, f"{SIGNATURE}\n"], ids=["ends", "ends with a line break"])
@pytest.mark.parametrize("end", ["", "\n"], ids=["message", "message with a line break"])
def test_signed_commits_of_every_form_are_built_again(form, behind, lines, end):
    """As git, GitHub and other programs write them: where the signature stands, and how it and the message end."""
    width, name = (40, "gpgsig") if form == "sha1" else (64, "gpgsig-sha256")
    first = f"tree {'1' * width}\nauthor Ann <a@x> 1 +0000\ncommitter Ann <a@x> 2 +0000\n"
    signature, more = f"{name} {lines}".replace("\n", "\n ") + "\n", "encoding ISO-8859-1\n"
    headers = f"{first}{more}{signature}" if behind == "at the end" else f"{first}{signature}{more}"
    raw = f"{headers}\ntext{end}".encode()
    sha = object_id(raw, "commit", like="1" * width)
    verification = {"signature": f"{SIGNATURE}\n", "payload": f"{first}{more}\ntext"}
    assert commit_bytes({"verification": verification}, sha) == raw


@pytest.mark.skipif(os.name == "nt", reason="Windows makes no links, and keeps no modes")
def test_trees_are_built_again(repo):
    for path in ("b/x", "b.txt", "b0", "é", "a b", "run.sh"):
        repo.write(path, "1")
    (repo.path / "link").symlink_to("b0")
    (repo.path / "run.sh").chmod(0o755)
    repo.git("add", ".")
    sha = repo.git("write-tree")
    listed = subprocess.run(["git", "ls-tree", "-z", sha], cwd=repo.path, capture_output=True, check=True).stdout
    rows = [row.partition("\t")[::2] for row in listed.decode().split("\0")[:-1]]
    entries = [(*words.split(" ")[::2][:1], path, words.split(" ")[2]) for words, path in rows]
    assert object_id(tree_bytes(entries, sha), "tree") == sha
    mode, name, entry = entries[0]
    for changed in ([], entries[1:], entries[::-1], [("100755", name, entry), *entries[1:]], [(mode, "x", entry)]):
        assert tree_bytes(changed, sha) is None
    assert tree_bytes([(mode, "\ud800", entry)], sha) is None


# --- listings of all trees -------------------------------------------------------------------------------------------


@pytest.fixture
def github(fake, repo):
    pytest.importorskip("urllib3")
    fake.repository_at(repo.path)
    return GitHub(fake.url, "t0ken", "octo/hello", Network(sleep=lambda _: None))


def commit_of(repo, files):
    for path, data in files.items():
        repo.write(path, data)
    repo.git("add", "--all")
    repo.git("commit", "-q", "-m", "files")
    return repo.git("rev-parse", "HEAD")


NESTED = {"a.b/c": "1", "a/b/c": "2", "a-b": "3", "a/b.c/é": "4", "z": "5"}


def requests(fake):
    return [seen.target.partition("/git/")[2] for seen in fake.seen if "/git/trees/" in seen.target]


def test_all_trees_below_one_come_in_one_answer(fake, repo, github):
    commit_of(repo, NESTED)
    top, below = repo.git("rev-parse", "HEAD^{tree}", "HEAD:a/b.c").split()
    trees = github.objects("tree", [top, below])
    assert requests(fake) == [f"trees/{top}?recursive=1"]
    assert all(object_id(data, "tree") == sha for sha, data in trees.items())
    assert len(trees) >= 5


def test_trees_that_github_lists_in_part_are_read_a_level_at_a_time(fake, repo, github):
    at = commit_of(repo, NESTED)
    fake.git.most_entries = 4
    tree = CommitTree(github, at)
    assert NESTED.keys() <= tree.paths().keys()
    assert [target.partition("?")[2] for target in requests(fake)] == ["recursive=1", "", *["recursive=1"] * 2]


def dropped(rows):
    return [row for row in rows if row["path"] != "a/b/c"]


def swapped(rows):
    return [{**row, "sha": rows[-1]["sha"]} if row["path"] == "a/b/c" else row for row in rows]


def without_folders(rows):
    return [row for row in rows if row["type"] != "tree"]


def emptied(rows):
    return [row for row in rows if not row["path"].startswith("a/")]


def hidden(rows):
    return [row for row in rows if row["path"] != "a" and not row["path"].startswith("a/")]


def repeated(rows):
    return [*rows, next(row for row in rows if row["path"] == "a")]


@pytest.mark.parametrize("forge", [dropped, swapped, without_folders, emptied, hidden, repeated])
def test_a_listing_with_any_other_entry_is_refused(fake, repo, github, monkeypatch, forge):
    commit_of(repo, NESTED)
    whole = fake.git.tree
    monkeypatch.setattr(
        fake.git, "tree", lambda sha, **more: {**(row := whole(sha, **more)), "tree": forge(row["tree"])}
    )
    with pytest.raises(GitHubError, match="does not match its hash"):
        github.objects("tree", [repo.git("rev-parse", "HEAD^{tree}")])


def test_more_files_than_may_be_requested_are_refused(fake, github):
    what = "501 files of the base branch are not in this clone, too many to request from GitHub"
    fix = "Check out with fetch-depth: 2 or more, so that git has them."
    with pytest.raises(GitHubError) as refused:
        github.objects("blob", [f"{number:040x}" for number in range(501)])
    assert (str(refused.value), fake.seen) == (f"{what}. {fix}", [])
    with pytest.raises(GitHubError, match="read blob 000000000000"):
        github.objects("blob", [f"{number:040x}" for number in range(500)])
