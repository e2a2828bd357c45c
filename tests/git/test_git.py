"""Git objects as they are, in every place where git may be asked."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from gitrepo import Repo
from rag_eval.git import Irregular, read
from seams import Git, GitError


@pytest.fixture
def repo(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    repo = Repo.create(tmp_path / "repo", None)
    repo.write("a/one.txt", "one\n")
    repo.write("a/two.txt", "two\n")
    repo.write("a/deep/three.txt", "three\n")
    repo.git("add", ".")
    repo.commit("first")
    return repo


def test_the_index_and_a_commit_are_read_apart(repo):
    git = Git(str(repo.path))
    head = git.resolve("HEAD")
    repo.write("a/one.txt", "staged\n")
    repo.git("add", "a/one.txt")
    repo.write("a/one.txt", "only in the work tree\n")
    assert read(git, "a/one.txt") == b"staged\n"
    assert read(git.at(head), "a/one.txt") == b"one\n"


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_a_file_that_is_but_announced_is_not_there_and_an_empty_one_is(tmp_path, repo, form):
    """`git add -N` lists it as an empty file, and the next commit leaves it out."""
    ours = Repo(tmp_path / form)
    ours.path.mkdir()
    ours.git("init", "-q", f"--object-format={form}")
    for name in ("announced", "empty"):
        ours.write(name, "to come" if name == "announced" else "")
    ours.git("add", "empty")
    ours.git("add", "-N", "announced")
    git = Git(str(ours.path))
    assert list(git.files("announced", "empty")) == ["empty"]
    ours.git("add", "announced")
    assert list(git.files("announced", "empty")) == ["announced", "empty"]


@pytest.mark.parametrize("at", ["the index", "HEAD"])
def test_a_folder_means_the_files_directly_in_it(repo, at):
    git = Git(str(repo.path))
    tree = git if at == "the index" else git.at(git.resolve(at))
    assert sorted(tree.files("a/")) == ["a/one.txt", "a/two.txt"]
    assert tree.files("nothing/", "nor.this") == {}


@pytest.mark.parametrize("at", ["the index", "HEAD"])
def test_no_path_is_a_pattern(repo, at):
    git = Git(str(repo.path))
    tree = git if at == "the index" else git.at(git.resolve(at))
    assert tree.files("a/*.txt", "*", ":(glob)**", ":/a/one.txt") == {}


@pytest.mark.parametrize("way", ["GLOB", "NOGLOB", "ICASE"])
def test_no_way_to_read_patterns_that_the_environment_has_is_taken(repo, monkeypatch, way):
    monkeypatch.setenv(f"GIT_{way}_PATHSPECS", "1")
    assert list(Git(str(repo.path)).files("a/one.txt", "A/ONE.txt", "a/*.txt")) == ["a/one.txt"]


@pytest.mark.parametrize("at", ["the index", "HEAD"])
def test_a_folder_in_the_place_of_a_file_is_refused(repo, at):
    git = Git(str(repo.path))
    tree = git if at == "the index" else git.at(git.resolve(at))
    with pytest.raises(Irregular, match=r"^'a/deep' is a folder in git, not a file\. Keep it as a regular file\.$"):
        tree.files("a/deep")


@pytest.mark.parametrize("at", ["the index", "HEAD"])
def test_a_path_in_a_submodule_is_refused(repo, at):
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.git('rev-parse', 'HEAD')},a/other")
    repo.commit("with a submodule")
    git = Git(str(repo.path))
    tree = git if at == "the index" else git.at(git.resolve(at))
    with pytest.raises(
        Irregular,
        match=r"^'a/other' is a submodule in git, not a file\. Commit its files to this repository, ",
    ):
        tree.files("a/other/deep/gold.jsonl")
    assert tree.files("a/one.txt/x", "b/c") == {}


def test_a_link_in_the_place_of_a_file_is_refused(repo):
    (repo.path / "link").symlink_to("a/one.txt")
    repo.git("add", "link")
    with pytest.raises(
        Irregular, match=r"^'link' is a symbolic link in git, not a file\. Keep it as a regular file\.$"
    ):
        read(Git(str(repo.path)), "link")


@pytest.mark.parametrize("path", ["a/one.txt", "a/two words; 'ö' $x*.txt"])
def test_a_merge_conflict_is_refused_and_the_way_that_is_shown_mends_it(repo, path):
    repo.git("checkout", "-q", "-b", "other")
    for branch, text in (("other", "theirs\n"), ("main", "ours\n")):
        repo.git("checkout", "-q", branch)
        repo.write(path, text)
        repo.git("add", ".")
        repo.git("commit", "-qm", branch)
    assert repo.run("git", "merge", "-q", "other")[0] != 0
    with pytest.raises(GitError, match=r" has a merge conflict\. Resolve it, then: git add -- ") as refused:
        read(Git(str(repo.path)), path)
    command = str(refused.value).partition("then: ")[2]
    subprocess.run(["sh", "-c", command], cwd=repo.path / "a", check=True)
    assert read(Git(str(repo.path)), path) is not None


def test_many_blobs_are_read_byte_for_byte_in_one_go(repo):
    contents = {"x/crlf": b"a\r\nb\r\n", "x/empty": b"", "x/zero": b"\0\n\0", "x/blob 3": b"0123 blob 7\n"}
    for path, data in contents.items():
        repo.write(path, data)
    repo.git("add", ".")
    git = Git(str(repo.path))
    files = git.files("x/")
    blobs = git.contents(files.values())
    assert {path: blobs[name] for path, name in files.items()} == contents
    assert git.contents([]) == {}


def test_an_object_that_is_not_here_is_an_error_with_a_way_out(repo):
    with pytest.raises(GitError, match=r"git cat-file failed: .*git fsck"):
        Git(str(repo.path)).contents(["0" * 39 + "1"])


def test_a_sub_folder_knows_the_root_and_its_own_place(repo):
    git = Git(str(repo.path / "a/deep"))
    assert (os.path.realpath(git.top), git.prefix) == (os.path.realpath(repo.path), "a/deep/")
    assert read(git, "a/one.txt") == b"one\n"


def test_a_root_with_a_line_break_in_its_name_is_found_too(tmp_path, repo):
    ours = Repo.create(tmp_path / "two\nlines", None)
    ours.write("a/one.txt", "one\n")
    ours.git("add", ".")
    for folder, prefix in ((ours.path, ""), (ours.path / "a", "a/")):
        git = Git(str(folder))
        assert (git.top, git.prefix, read(git, "a/one.txt")) == (str(ours.path), prefix, b"one\n")


def test_a_linked_work_tree_has_its_own_index_and_head(repo):
    repo.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(repo.path.parent / "side")
    side.write("a/one.txt", "side\n")
    side.git("add", ".")
    assert read(Git(str(side.path)), "a/one.txt") == b"side\n"
    assert read(Git(str(repo.path)), "a/one.txt") == b"one\n"


def test_the_index_of_the_environment_is_honoured(repo, monkeypatch):
    other = repo.path.parent / "other-index"
    repo.write("a/one.txt", "in the other index\n")
    repo.git("read-tree", "HEAD", GIT_INDEX_FILE=str(other))
    repo.git("add", "a/one.txt", GIT_INDEX_FILE=str(other))
    assert read(Git(str(repo.path)), "a/one.txt") == b"one\n"
    monkeypatch.setenv("GIT_INDEX_FILE", str(other))
    assert read(Git(str(repo.path)), "a/one.txt") == b"in the other index\n"


@pytest.mark.parametrize(
    "ref", ["nope", "--all", "-h", "--output=x", "HEAD:a/one.txt", "", "HEAD^{tree}", "HEAD..HEAD"]
)
def test_what_names_no_commit_resolves_to_nothing(repo, ref):
    assert Git(str(repo.path)).resolve(ref) is None


@pytest.mark.parametrize("ref", ["HEAD", "main", "refs/heads/main"])
def test_a_name_of_a_commit_resolves_to_its_id(repo, ref):
    assert Git(str(repo.path)).resolve(ref) == repo.git("rev-parse", "HEAD")


def test_before_the_first_commit_there_is_no_head_and_an_index(tmp_path, repo):
    fresh = Repo.create(tmp_path / "fresh", None)
    fresh.write("x", "x\n")
    fresh.git("add", "x")
    git = Git(str(fresh.path))
    assert (git.resolve("HEAD"), read(git, "x")) == (None, b"x\n")


def test_a_last_commit_that_cannot_be_read_is_not_taken_for_none(tmp_path, repo):
    assert Git(str(Repo.create(tmp_path / "fresh", None).path)).last() is None
    git = Git(str(repo.path))
    last = git.last()
    (repo.path / ".git/objects" / last[:2] / last[2:]).unlink()
    with pytest.raises(GitError, match=r"^The last commit cannot be read\. Check the repository with: git fsck$"):
        git.last()


@pytest.mark.parametrize("bad", ["main", "--help", "abc", "HEAD"])
def test_only_object_ids_go_where_ids_are_meant(repo, bad):
    git = Git(str(repo.path))
    for ask in (lambda: git.at(bad), lambda: git.contents([bad]), lambda: git.merge_base(bad, bad)):
        with pytest.raises(GitError, match=r" is not an object id\. Resolve the ref first\.$"):
            ask()


def test_the_merge_base_is_where_two_branches_parted(repo):
    fork = repo.git("rev-parse", "HEAD")
    for branch in ("left", "right"):
        repo.git("checkout", "-q", "-b", branch, fork)
        repo.write(branch, branch)
        repo.git("add", ".")
        repo.commit(branch)
    git = Git(str(repo.path))
    assert git.merge_base(git.resolve("left"), git.resolve("right")) == fork


def test_unrelated_histories_are_an_error_that_thinks_of_shallow_clones(repo):
    repo.git("checkout", "-q", "--orphan", "island")
    repo.commit("island")
    git = Git(str(repo.path))
    ends = git.resolve("main"), git.resolve("island")
    what = f"The commits {ends[0][:12]} and {ends[1][:12]} have no common ancestor"
    fix = "If this is a shallow clone, fetch its history: git fetch --unshallow"
    for ask, why in (
        (git.merge_base, f"{what} here. {fix}"),
        (git.verified_merge_base, f"{what}. Fetch it: fetch-depth: 0"),
    ):
        with pytest.raises(GitError) as apart:
            ask(*ends)
        assert str(apart.value) == why


def test_the_email_is_the_configured_one_or_none(repo):
    assert Git(str(repo.path)).email() == "ann@example.org"
    repo.git("config", "--unset", "user.email")
    assert Git(str(repo.path)).email() is None


def test_staging_converts_nothing(repo):
    repo.git("config", "core.autocrlf", "true")
    repo.write(".gitignore", "new/\n")
    git = Git(str(repo.path))
    git.stage("new/file.json", b"a\nb\r\n")
    assert read(git, "new/file.json") == b"a\nb\r\n"


def test_a_partial_clone_is_told_how_to_get_the_rest(tmp_path, repo):
    repo.git("config", "uploadpack.allowFilter", "true")
    url = f"file://{repo.path}"
    repo.git("clone", "-q", "--filter=blob:none", "--no-checkout", url, str(tmp_path / "part"))
    part = Repo(tmp_path / "part")
    git = Git(str(part.path))
    with pytest.raises(GitError, match="partial clone") as message:
        read(git.at(git.resolve("HEAD")), "a/one.txt")
    part.git(*str(message.value).rpartition("git ")[2].split())
    assert read(git.at(git.resolve("HEAD")), "a/one.txt") == b"one\n"


def test_outside_a_repository_the_error_says_where_to_go(tmp_path, repo):
    (tmp_path / "plain").mkdir()
    with pytest.raises(GitError, match=r"not a git repository.*inside the repository"):
        Git(str(tmp_path / "plain"))


def test_without_git_the_error_says_so(repo, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        GitError, match=r"^git cannot be run \(No such file or directory\)\. Install git and put it on the PATH\.$"
    ):
        Git(str(repo.path))


def test_a_git_that_writes_paths_of_another_system_is_told_from_none(repo, tmp_path, monkeypatch):
    (tmp_path / "git").write_text("#!/bin/sh\nprintf '/cygdrive/c/work\\n\\n'\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    what = "git reports the root '/cygdrive/c/work', but there is no such folder"
    fix = "Put the git of this system on the PATH first: on Windows, not that of Cygwin or MSYS"
    with pytest.raises(GitError, match=rf"^{what}\. {fix}\.$"):
        Git(str(repo.path)).names()


@pytest.fixture
def failing(repo, tmp_path, monkeypatch):
    """A git that fails with a reason, which finds the repository first."""

    def failing(reason):
        script = (
            f"case $* in *rev-parse*) printf '%s\\n\\n' '{repo.path}' ;; *) cat {tmp_path}/reason >&2; exit 128 ;; esac"
        )
        (tmp_path / "reason").write_text(reason)
        (tmp_path / "git").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return Git(str(repo.path))

    return failing


FSCK = "Check the repository with: git fsck"
TRUST = "Tell git that you trust the folder: git config --global --add safe.directory FOLDER"
LOCKED = "Wait until the other git process ends. If there is none, remove the file. Then try again."
PARTIAL = "This partial clone lacks the object. Fetch it: git fetch --refetch --no-filter"


@pytest.mark.parametrize(
    ("output", "reason", "fix"),
    [
        ("", "it gave no reason", FSCK),
        ("fatal: 1\nfatal: 2\n", "fatal: 1 fatal: 2", FSCK),
        ("x" * 201, f"{'x' * 199}…", FSCK),
        (f"{'x' * 250} dubious ownership", f"{'x' * 199}…", TRUST),
        ("fatal: not a git repository", None, "Run it inside the repository of the gold set."),
        ("fatal: detected dubious ownership in x", None, TRUST),
        ("fatal: Unable to create '.git/index.lock'", None, LOCKED),
        ("fatal: from promisor", None, PARTIAL),
        ("fatal: this must be run in a work tree", None, "Run it in a work tree, not in a bare repository."),
    ],
    ids=lambda value: value and value[:30],
)
def test_a_failure_of_git_is_said_with_what_to_do(failing, output, reason, fix):
    with pytest.raises(GitError) as failed:
        failing(output).names()
    assert str(failed.value) == f"git ls-files failed: {reason or output}. {fix}"


def test_git_asks_nobody_takes_no_lock_and_speaks_english(repo, tmp_path, monkeypatch):
    """Nothing may wait for a person, be in the way of another git, or be said in words that no hint knows."""
    (tmp_path / "git").write_text(f"#!/bin/sh\nenv > {tmp_path}/env\necho $* >> {tmp_path}/words\nprintf 'x\\n\\n'\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ann")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("GIT_OPTIONAL_LOCKS", "1")
    Git(str(repo.path))
    given = dict(line.partition("=")[::2] for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    expected = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
        "GIT_AUTHOR_NAME": "Ann",
    }
    assert {name: given.get(name) for name in expected} == expected
    words = (tmp_path / "words").read_text()
    assert words.startswith("-c core.hooksPath=/dev/null -c core.fsmonitor=false -c protocol.allow=never rev-parse ")
    assert "safe.directory" not in words


def test_a_nul_is_refused_before_git_sees_it(repo):
    with pytest.raises(GitError, match=r"^A path or ref contains a NUL character\. Remove it\.$"):
        Git(str(repo.path)).files("a\0b")


@pytest.fixture
def trap(repo):
    """A script that leaves a trace when it is run, as every hook and as the file-system monitor."""
    script = repo.path.parent / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch '{repo.path.parent}/sprung'\nexit 1\n")
    script.chmod(0o755)
    hooks = repo.path / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction"):
        (hooks / name).symlink_to(script)
    repo.git("config", "core.fsmonitor", str(script))
    return script


def test_the_trap_springs_for_plain_git(repo, trap):
    repo.run("git", "add", "--refresh", ".")
    assert (trap.parent / "sprung").exists()


def test_staging_runs_no_hook_and_no_monitor(repo, trap):
    git = Git(str(repo.path))
    git.stage("b.txt", b"b\n")
    assert read(git, "b.txt") == b"b\n"
    assert not (trap.parent / "sprung").exists()


@pytest.mark.parametrize("ours", [0, 1, 12])
def test_staging_turns_filters_off_behind_what_the_environment_configures(repo, tmp_path, monkeypatch, ours):
    names = ("clean", "required")
    for name in names:
        repo.git("config", f"filter.x.{name}", "true")
    script = f'#!/bin/sh\ncase $* in *update-index*) env > {tmp_path}/env ;; esac\nexec {shutil.which("git")} "$@"\n'
    (tmp_path / "git").write_text(script)
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    theirs = {f"GIT_CONFIG_{kind}_{n}": "user.name" for n in range(ours) for kind in ("KEY", "VALUE")}
    for name, value in theirs.items():
        monkeypatch.setenv(name, value)
    if ours:
        monkeypatch.setenv("GIT_CONFIG_COUNT", str(ours))
    Git(str(repo.path)).stage("b.txt", b"b\n")
    given = dict(line.partition("=")[::2] for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    expected = {"GIT_CONFIG_COUNT": str(ours + len(names)), **theirs}
    for index, (name, value) in enumerate(zip(names, ("", "false"), strict=True), ours):
        expected |= {f"GIT_CONFIG_KEY_{index}": f"filter.x.{name}", f"GIT_CONFIG_VALUE_{index}": value}
    assert {name: given.get(name) for name in expected} == expected


def test_reading_runs_nothing_that_is_configured(repo, trap):
    for key in ("filter.x.clean", "filter.x.smudge", "diff.x.textconv", "diff.x.command"):
        repo.git("config", key, str(trap))
    repo.write(".gitattributes", "* filter=x diff=x\n")
    git = Git(str(repo.path))
    assert read(git, "a/one.txt") == read(git.at(git.resolve("HEAD")), "a/one.txt") == b"one\n"
    assert sorted(git.files("a/")) == ["a/one.txt", "a/two.txt"]
    assert not (trap.parent / "sprung").exists()


def test_the_last_write_of_a_file_is_counted_in_commits_and_days(repo):
    start = 1_800_000_000
    for step, path in enumerate(["a/one.txt", "a/two.txt", "b.txt", "a/one.txt", "b.txt", "c.txt"]):
        repo.write(path, f"{step}\n")
        repo.git("add", ".")
        repo.git("commit", "-qm", path, GIT_COMMITTER_DATE=f"{start + 86_400 * step} +0000")
    git = Git(str(repo.path))
    tip = git.resolve("HEAD")
    assert git.last_write("a/one.txt", tip) == (repo.git("rev-parse", "HEAD~2"), 2, 2)
    assert git.last_write("c.txt", tip) == (tip, 0, 0)
    assert git.last_write("a/two.txt", git.resolve("HEAD~3")) == (repo.git("rev-parse", "HEAD~4"), 1, 1)
    assert git.last_write("missing", tip) is None
    assert not git.shallow


def test_a_clone_without_history_knows_no_last_write(repo, tmp_path):
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.path}", str(tmp_path / "shallow"))
    git = Git(str(tmp_path / "shallow"))
    assert (git.shallow, git.last_write("a/one.txt", git.resolve("HEAD"))) == (True, None)


def test_the_changes_of_a_file_are_those_along_first_parents(repo):
    texts = ["1\n", "2\n", None, "1\n"]
    for text in texts:
        repo.write("g", text) if text else repo.git("rm", "-q", "g")
        repo.git("add", "--all")
        repo.git("commit", "-qm", "g")
        repo.write("other", text or "")
        repo.git("add", "--all")
        repo.git("commit", "-qm", "other")
    git = Git(str(repo.path))
    changes = git.changes_of(git.resolve("HEAD"), "g")
    assert [commit for commit, _ in changes] == [repo.git("rev-parse", f"HEAD~{2 * n + 1}") for n in (3, 2, 1, 0)]
    blobs = git.contents(blob for _, blob in changes if blob)
    assert [blob and blobs[blob].decode() for _, blob in changes] == texts
    assert git.changes_of(git.resolve("HEAD"), "missing") == []
    assert git.changes_of(git.resolve("HEAD"), "a") == [(repo.git("rev-list", "--max-parents=0", "HEAD"), None)]
    with pytest.raises(
        GitError, match=r"^A path with a line break cannot be followed through history\. Rename the file\.$"
    ):
        git.changes_of(git.resolve("HEAD"), "a\nb")


def test_a_replaced_object_is_not_believed(repo):
    git = Git(str(repo.path))
    item, two = (git.files(f"a/{name}.txt")[f"a/{name}.txt"] for name in ("one", "two"))
    repo.git("replace", item, two)
    assert git.contents([item]) == {item: b"one\n"}
