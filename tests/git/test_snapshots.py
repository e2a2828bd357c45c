"""The same files, whoever holds them: git's objects, a commit read by its id, the work tree, a folder function."""

from __future__ import annotations

import os
import random
import zlib

import pytest

from gitrepo import Repo
from rag_eval.git import NOTHING, CommitTree, Irregular, differing, follow_links, parents, read
from rag_eval.git import object_id as blob_id
from rag_eval.run.authority import WorkTree
from seams import Git, GitError, InputError

SEEDS = range(8)
NAMES = ["a", "b", "ab", "A", "gold.jsonl", "ä ö", "-x", "*", "a.b", "line\nbreak"]
CONTENTS = [b"", b"one\n", b"two\r\n", b"\0\xff binary", b"x" * 5000]


@pytest.fixture
def repo(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    repo = Repo.create(tmp_path / "repo", None)
    repo.git("config", "core.autocrlf", "false")
    return repo


@pytest.fixture
def commands(monkeypatch):
    """The git commands that the product runs."""
    commands, run = [], Git._run
    monkeypatch.setattr(Git, "_run", lambda git, *words, **more: commands.append(words[0]) or run(git, *words, **more))
    return commands


def made_files(chance, limit=14):
    """Files by path, at most three folders deep; no path is both a file and a folder."""
    result = {}
    for _ in range(chance.randint(1, limit)):
        parts = [chance.choice(NAMES) for _ in range(chance.randint(1, 4))]
        path, above = "/".join(parts), {"/".join(parts[:i]) for i in range(1, len(parts))}
        if not above & result.keys() and not any(other.startswith(f"{path}/") for other in result):
            result[path] = chance.choice(CONTENTS)
    return result


def commit(repo, files, message="files"):
    """Let the commit hold exactly these files; its id."""
    repo.git("rm", "-r", "-q", "--cached", "--ignore-unmatch", ".")
    for path in sorted(repo.path.iterdir()):
        if path.name != ".git":
            repo.run("rm", "-rf", "--", str(path))
    for path, data in files.items():
        repo.write(path, data)
    repo.git("add", "--all", "--force", ".")
    repo.git("commit", "-q", "--allow-empty", "-m", message)
    return repo.git("rev-parse", "HEAD")


def trees(repo, at):
    return {"by id": Git(str(repo.path)).at(at), "work tree": WorkTree(str(repo.path)), "index": Git(str(repo.path))}


def folders_of(files):
    parts = [path.split("/") for path in files]
    return sorted({"/".join(part[:i]) for part in parts for i in range(1, len(part))})


def asked(chance, files):
    """Paths that are there, folders, and paths that are not there, also below files and beside folders."""
    there, folders = sorted(files), folders_of(files)
    missing = [f"{chance.choice(there)}/below", "nowhere", "nowhere/", "a/nothing"]
    wanted = [*there, *(f"{folder}/" for folder in folders), *(path for path in missing if path not in folders)]
    return chance.sample(wanted, chance.randint(1, len(wanted)))


def expected(files, paths):
    result = {}
    for path in paths:
        ours = [name for name in files if name == path or f"{name.rpartition('/')[0]}/" == path]
        result.update({name: blob_id(files[name]) for name in ours})
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_every_tree_gives_the_same_files(repo, seed):
    chance = random.Random(seed)
    files = made_files(chance)
    stored = trees(repo, commit(repo, files))
    for _ in range(4):
        paths = asked(chance, files)
        wanted = expected(files, paths)
        for name, tree in stored.items():
            assert tree.files(*paths) == wanted, name
            blobs = tree.contents(wanted.values())
            assert {path: blobs[wanted[path]] for path in wanted} == {path: files[path] for path in wanted}, name


@pytest.mark.parametrize("seed", SEEDS)
def test_a_commit_has_the_entries_that_git_lists(repo, seed):
    files = made_files(random.Random(seed))
    tree = Git(str(repo.path)).at(commit(repo, files))
    for folder in ("", *(f"{folder}/" for folder in folders_of(files))):
        listed = repo.git("ls-tree", "-z", "HEAD", "--", *([folder] if folder else [])).split("\0")[:-1]
        rows = {row.partition("\t")[2].removeprefix(folder): row.split()[2] for row in listed}
        assert tree.entries(folder) == rows
    assert tree.entries("nowhere/") == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_trees_differ_where_their_files_do(repo, seed):
    """Nothing is named but what differs, nothing that is to be skipped, and nothing at all when nothing differs."""
    chance = random.Random(seed)
    before = made_files(chance)
    after = dict(before)
    for path in chance.sample(sorted(before), chance.randint(0, len(before))):
        after[path] = chance.choice(CONTENTS)
    after.update({f"new/{name}": b"new" for name in chance.sample(["x", "y", "z"], chance.randint(0, 3))})
    skip = [*chance.sample(sorted(after), min(2, len(after))), *(f"{folder}/" for folder in folders_of(after)[:1])]
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    meant = {
        path for path in changed if path not in skip and not path.startswith(tuple(x for x in skip if x[-1] == "/"))
    }
    git, ids = Git(str(repo.path)), (commit(repo, before), commit(repo, after))
    item, other = map(git.at, ids)
    result = differing(item, other, skip, most=99)
    assert [path for path in result if not any(f"{entry}/".startswith(f"{path}/") for entry in meant)] == []
    assert [entry for entry in meant if not any(f"{entry}/".startswith(f"{path}/") for path in result)] == []
    assert differing(item, other, skip, most=2) == result[:2]
    assert differing(item, item, [], most=99) == []


@pytest.mark.parametrize("most", range(6))
def test_no_more_differences_are_listed_than_asked_for(repo, most):
    """Below a folder of which a part is skipped, as many as are left."""
    files = {"a": b"1", "b/c": b"1", "b/d": b"1", "b/e/f": b"1", "b/skipped/x": b"1", "g": b"1"}
    ids = [commit(repo, files), commit(repo, dict.fromkeys(files, b"2"))]
    before, after = map(Git(str(repo.path)).at, ids)
    assert differing(before, after, ["b/skipped/"], most) == ["a", "b/c", "b/d", "b/e", "g"][:most]


def test_before_the_first_commit_there_is_nothing(repo):
    at = commit(repo, {"a/b": b"one", "c": b"two"})
    assert (NOTHING.files("a/", "c"), NOTHING.entries(""), NOTHING.contents([])) == ({}, {}, {})
    assert differing(NOTHING, Git(str(repo.path)).at(at), []) == ["a", "c"]


def test_one_file_is_read_by_its_path(repo):
    files = {"a/b": b"one"}
    for name, tree in trees(repo, commit(repo, files)).items():
        assert (read(tree, "a/b"), read(tree, "a/c"), read(tree, "x/y")) == (b"one", None, None), name


def test_objects_are_read_once(repo, commands):
    tree = Git(str(repo.path)).at(commit(repo, {"a/b": b"one", "x": b"two"}))
    for _ in range(3):
        ids = tree.files("a/b", "x")
        assert tree.contents(ids.values()) == {ids["a/b"]: b"one", ids["x"]: b"two"}
        assert tree.paths() == ids
    assert commands[-4:] == ["cat-file"] * 4
    assert len(commands) == 5, "the repository, the commit, two folders, the files"


@pytest.mark.parametrize("seed", SEEDS)
def test_every_snapshot_lists_all_files_of_a_commit(repo, seed):
    files = made_files(random.Random(seed), limit=40)
    tree = Git(str(repo.path)).at(commit(repo, files))
    assert tree.paths() == {path: blob_id(data) for path, data in files.items()}
    assert NOTHING.paths() == {}


def test_a_listing_takes_one_process_a_level_of_folders(repo, commands):
    at = commit(repo, {f"{number % 7}/{number}/a": b"one" for number in range(200)})
    tree = Git(str(repo.path)).at(at)
    commands.clear()
    assert len(tree.paths()) == 200
    assert commands == ["cat-file"] * 3


def test_links_and_submodules_are_in_no_listing(repo):
    at = irregular(repo)
    assert Git(str(repo.path)).at(at).paths() == {"real/file": blob_id(b"one\n")}


# --- what is no file -------------------------------------------------------------------------------------------------


def irregular(repo):
    """A link to a file, a link to a folder, a submodule and a folder, each where a file could stand."""
    repo.write("real/file", "one\n")
    (repo.path / "link").symlink_to("real/file")
    (repo.path / "far").symlink_to("real")
    (repo.path / "loop").symlink_to("loop")
    repo.git("add", "--all", ".")
    (repo.path / "module").mkdir()
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    repo.commit("irregular")
    return repo.git("rev-parse", "HEAD")


def refused_in_the_work_tree(repo, path, where, why=""):
    with pytest.raises(InputError) as refused:
        WorkTree(str(repo.path)).files(path)
    (problem,) = refused.value.problems
    assert (problem.file, why in problem.message) == (where, True)


@pytest.mark.parametrize("path", ["link", "loop", "real", "module"])
def test_what_stands_in_the_place_of_a_file_and_is_none_is_refused(repo, path):
    at, git = irregular(repo), Git(str(repo.path))
    for tree in (git, git.at(at)):
        with pytest.raises(Irregular, match=f"'{path}' is a "):
            tree.files(path)
    refused_in_the_work_tree(repo, path, path)


def test_a_link_among_the_files_of_a_folder_is_refused(repo):
    repo.write("records/one.json", "{}")
    (repo.path / "records/two.json").symlink_to("one.json")
    commit_id = (repo.git("add", "."), repo.commit("link"), repo.git("rev-parse", "HEAD"))[-1]
    git = Git(str(repo.path))
    for tree in (git, git.at(commit_id)):
        with pytest.raises(Irregular, match="symbolic link"):
            tree.files("records/")
    refused_in_the_work_tree(repo, "records/", "records/two.json", "symbolic link")


@pytest.mark.parametrize("path", ["far/file", "far/"])
def test_no_file_is_found_through_a_link(repo, path):
    at, git = irregular(repo), Git(str(repo.path))
    with pytest.raises(Irregular, match="'far' is a symbolic link"):
        git.at(at).files(path)
    refused_in_the_work_tree(repo, path, "far", "symbolic link")


def test_the_index_has_nothing_behind_a_link(repo):
    irregular(repo)
    assert Git(str(repo.path)).files("far/file") == {}


def test_a_pipe_is_no_file_and_is_not_waited_for(repo):
    os.mkfifo(repo.path / "pipe")
    refused_in_the_work_tree(repo, "pipe", "pipe", "is not a regular file")


def test_the_work_tree_names_files_as_git_does_and_keeps_what_it_listed(repo):
    repo.write("a", "before\n")
    tree = WorkTree(str(repo.path))
    (object_id,) = tree.files("a").values()
    assert object_id == repo.git("hash-object", "--no-filters", "a")
    repo.write("a", "after\n")
    assert tree.contents([object_id]) == {object_id: b"before\n"}
    assert (tree.content_of(object_id), tree.content_of("0" * 40)) == (b"before\n", None)


# --- a checkout that others can write to -----------------------------------------------------------------------------


def loose(repo, object_id):
    return repo.path / ".git/objects" / object_id[:2] / object_id[2:]


def put(repo, object_id, kind, data):
    """Let the object file hold something else than its name says."""
    file = loose(repo, object_id)
    file.chmod(0o644)
    file.write_bytes(zlib.compress(b"%s %d\0" % (kind, len(data)) + data))


def everything(tree, folder=""):
    """All that a tree holds, by path."""
    result = {}
    for name in tree.entries(folder):
        below = tree.entries(f"{folder}{name}/")
        result |= everything(tree, f"{folder}{name}/") if below else {f"{folder}{name}": read(tree, f"{folder}{name}")}
    return result


@pytest.mark.parametrize("kind", ["commit", "tree", "blob"])
def test_an_object_that_was_rewritten_is_refused(repo, kind):
    at = commit(repo, {"eval/gold.jsonl": b"hard\n", "eval-gates.yml": b"min: 0.8\n"})
    easy = commit(repo, {"eval/gold.jsonl": b"easy\n", "eval-gates.yml": b"min: 0.1\n"})
    path = {"commit": "", "tree": "^{tree}", "blob": ":eval-gates.yml"}[kind]
    old, new = (repo.git("rev-parse", f"{item}{path}") for item in (at, easy))
    git = Git(str(repo.path))
    put(repo, old, kind.encode(), git.raw(kind, new))
    why = rf"^The object {old[:12]} does not match its id\. Check the repository with: git fsck$"
    if kind == "commit":  # which a later git checks itself, and says that it has none
        why += rf"|^This clone does not have commit {old[:12]}\. Fetch it: fetch-depth: 2 or more$"
    with pytest.raises(GitError, match=why):
        everything(Git(str(repo.path), foreign=True).at(at))
    if kind == "tree":
        with pytest.raises(GitError, match="does not match its id"):
            Git(str(repo.path), foreign=True).at(at).paths()


def test_nothing_but_the_id_says_which_commit_it_is(repo):
    """Refs, replacements, grafts and the index may be anybody's: the commit is what its id says."""
    files = {"eval/gold.jsonl": b"hard\n", "eval-gates.yml": b"min: 0.8\n"}
    first, at = commit(repo, {"other": b"x"}), commit(repo, files)
    easy = commit(repo, {"eval/gold.jsonl": b"easy\n", "eval-gates.yml": b"min: 0.1\n"})
    strict, loose_one = (repo.git("rev-parse", f"{item}:eval-gates.yml") for item in (at, easy))
    repo.git("replace", strict, loose_one)
    repo.git("replace", at, easy)
    for ref in ("refs/heads/main", f"refs/heads/{at}", f"refs/tags/{at}"):
        repo.git("update-ref", ref, easy)
    repo.write(".git/info/grafts", f"{at} {easy}\n")
    git = Git(str(repo.path), foreign=True)
    assert everything(git.at(at)) == files
    assert parents(git.raw("commit", at)) == [first]


def test_a_shallow_clone_still_says_who_the_parents_are(repo, tmp_path):
    first = commit(repo, {"a": b"1"})
    second = commit(repo, {"a": b"2"})
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.path}", str(tmp_path / "shallow"))
    git = Git(str(tmp_path / "shallow"), foreign=True)
    assert parents(git.raw("commit", second)) == [first]
    with pytest.raises(GitError, match="does not have commit"):
        git.at(first)


def test_a_repository_named_by_sha256_is_read_too(tmp_path, repo):
    other = Repo(tmp_path / "long")
    other.path.mkdir()
    other.git("init", "-q", "-b", "main", "--object-format=sha256")
    other.git("config", "user.email", "ann@example.org")
    other.git("config", "user.name", "Ann")
    files = {"a/b": b"one", "c": b"two"}
    at = commit(other, files)
    assert len(at) == 64
    assert everything(Git(str(other.path)).at(at)) == files


# --- where a change began --------------------------------------------------------------------------------------------


@pytest.fixture
def forked(repo):
    """main and pr with a commit in common; its id, and those of both tips."""
    fork = commit(repo, {"gold": b"one"}, "fork")
    repo.git("checkout", "-q", "-b", "pr")
    commit(repo, {"gold": b"one", "mine": b"1"}, "first of pr")
    commit(repo, {"gold": b"two", "mine": b"2"}, "second of pr")
    repo.git("checkout", "-q", "main")
    commit(repo, {"gold": b"one", "theirs": b"1"}, "first of main")
    commit(repo, {"gold": b"one", "theirs": b"2"}, "second of main")
    return fork, repo.git("rev-parse", "main"), repo.git("rev-parse", "pr")


def test_the_merge_base_is_that_of_git(repo, forked):
    fork, main, pr = forked
    git = Git(str(repo.path), foreign=True)
    assert git.verified_merge_base(main, pr) == git.verified_merge_base(pr, main) == fork
    assert git.verified_merge_base(fork, pr) == fork
    assert git.verified_merge_base(pr, pr) == pr


def test_a_merge_on_the_way_is_followed(repo, forked):
    _, main, pr = forked
    repo.git("checkout", "-q", "pr")
    repo.git("merge", "-q", "--no-edit", "-X", "ours", main)
    tip = repo.git("rev-parse", "pr")
    assert Git(str(repo.path)).verified_merge_base(main, tip) == main
    assert Git(str(repo.path)).verified_merge_base(pr, tip) == pr


@pytest.mark.parametrize("where", ["graft", "commit"])
def test_a_change_cannot_pretend_to_have_begun_later(repo, forked, where):
    """The second commit of pr, or what leads to it, is said to descend from main, where its gold already stands."""
    fork, main, pr = forked
    first = repo.git("rev-parse", f"{pr}~1")
    if where == "graft":
        repo.write(".git/info/grafts", f"{pr} {main}\n")
    else:
        data = Git(str(repo.path)).raw("commit", first)
        put(repo, first, b"commit", data.replace(fork.encode(), main.encode()))
    git = Git(str(repo.path), foreign=True)
    assert git.merge_base(main, pr) == main  # this is what git is made to believe
    if where == "graft":
        assert git.verified_merge_base(main, pr) == fork
        return
    with pytest.raises(GitError, match="does not match its id"):
        git.verified_merge_base(main, pr)


def _committed(repo):
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "--message", "links")
    return Git(str(repo.path)).at(repo.git("rev-parse", "HEAD").strip())


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("folder/file", "folder/file"),
        ("missing", "missing"),
        ("link", "folder/file"),
        ("twice", "folder/file"),
        ("linked/file", "folder/file"),
        ("linked/up", "folder/file"),
        ("linked/missing", "folder/missing"),
        ("linked", "folder"),
        ("outside", "../file"),
        ("folder", "folder"),
    ],
)
def test_links_lead_to_a_path_of_the_same_tree(repo, path, leads_to):
    (repo.path / "folder").mkdir()
    (repo.path / "folder/file").write_bytes(b"text")
    links = {"link": "folder/file", "twice": "link", "linked": "folder", "folder/up": "../link", "outside": "../file"}
    for name, target in links.items():
        (repo.path / name).symlink_to(target)
    assert follow_links(_committed(repo), path) == leads_to


@pytest.mark.parametrize("mode", ["100644", "100755", "100664", "100640"])
def test_a_file_is_one_with_any_permissions(mode):
    """Git wrote others than two in its early years, and reads them as files."""
    data, name = b"text\n", blob_id(b"text\n")
    folder = b"%s file\0%s" % (mode.encode(), bytes.fromhex(name))
    objects = {"commit": b"tree %s\n\n" % (b"0" * 40), "tree": folder, "blob": data}

    class Objects:
        def raw(self, kind, _):
            return objects[kind]

        def objects(self, kind, ids):
            return dict.fromkeys(ids, objects[kind])

    tree = CommitTree(Objects(), "")
    assert (read(tree, "file"), tree.paths()) == (data, {"file": name})


def test_links_that_lead_to_each_other_end_at_a_link(repo):
    (repo.path / "one").symlink_to("two")
    (repo.path / "two").symlink_to("one")
    tree = _committed(repo)
    with pytest.raises(Irregular, match="symbolic link"):
        read(tree, follow_links(tree, "one"))
