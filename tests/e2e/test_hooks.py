"""The hooks as pre-commit installs and runs them: from a clone of this repository, in real commits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gitrepo import GOLD, RECORDS, Repo, codes, lines, row

ROOT = Path(__file__).resolve().parents[2]
HOOK = "rag-eval-gold-signoff"
ONE, TWO = row("A1"), row("A2", "How wide is it?")
EDITED = {**ONE, "tags": ["warranty"]}

pytestmark = pytest.mark.e2e
pytest.importorskip("pre_commit")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A clone of this checkout with what is not committed yet, and an environment apart from this machine's."""
    folder = tmp_path_factory.mktemp("hooks")
    clone = folder / "rag-eval"
    entries = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, entries.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    apart = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT", "SKIP"))}
    apart |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PRE_COMMIT_HOME": str(folder / "home")}
    source = World(clone, apart)
    source.run("git", "init", "-q", "-b", "main")
    source.start()
    source.git("add", "-A")
    source.git("commit", "-q", "-m", "as it is")
    return source


class World(Repo):
    """A repository with an environment of its own; ``pre-commit`` is the one beside this Python."""

    def __init__(self, path, environment):
        super().__init__(path)
        self.environment = environment

    def start(self):
        self.git("config", "user.email", "ann@example.org")
        self.git("config", "user.name", "Ann")

    def run(self, *words, **env):
        if words[0] == "pre-commit":
            words = (sys.executable, "-m", "pre_commit", *words[1:])
        environment = {**self.environment, **env}
        done = subprocess.run(
            words, cwd=self.path, env=environment, capture_output=True, text=True, encoding="utf-8", errors="replace"
        )
        return done.returncode, done.stdout + done.stderr


def config_of(world, hook):
    """A configuration with one of the hooks; those of a revision share their environment, which takes long to make."""
    return f"repos:\n- repo: {world.path}\n  rev: {world.git('rev-parse', 'HEAD')}\n  hooks:\n  - id: {hook}\n"


@pytest.fixture
def project(world, tmp_path):
    """A project that uses the sign-off hook, installed, with the package's command at hand."""
    path = tmp_path / "project"
    path.mkdir()
    project = World(path, world.environment)
    project.run("git", "init", "-q", "-b", "main")
    project.start()
    project.write(".pre-commit-config.yaml", config_of(world, HOOK))
    stages = [word for stage in ("pre-commit", "pre-merge-commit", "pre-push") for word in ("-t", stage)]
    code, output = project.run("pre-commit", "install", "--install-hooks", *stages)
    assert code == 0, output
    command, *_ = Path(world.environment["PRE_COMMIT_HOME"]).glob("repo*/py_env-*/bin/rag-eval")
    project.environment = {**world.environment, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
    return project


def test_the_manifest_is_one_that_pre_commit_takes(world):
    code, output = world.run("pre-commit", "validate-manifest", ".pre-commit-hooks.yaml")
    assert (code, output) == (0, "")


def test_try_repo_runs_the_hook_from_the_checkout(world, project):
    project.stage(ONE)
    code, output = project.run("pre-commit", "try-repo", str(world.path), HOOK, "--verbose")
    assert (code, codes(output)) == (1, ["unsigned-change"]), output


def blocked(project, *paths):
    code, output = project.commit("a change", *paths)
    assert (code, set(codes(output))) == (1, {"unsigned-change"}), output
    return output


def accepted(project, *paths):
    code, output = project.commit("a change", *paths)
    assert code == 0, output


def test_a_commit_is_stopped_and_goes_through_by_the_command_that_is_shown(project):
    project.stage(ONE, TWO)
    project.fix(blocked(project))
    accepted(project)
    for rows in ([EDITED, TWO], [EDITED]):
        project.stage(*rows)
        project.fix(blocked(project))
        accepted(project)
    project.git("rm", "-q", GOLD)  # pre-commit has no file name to give
    project.fix(blocked(project))
    accepted(project)
    assert len(list((project.path / RECORDS).iterdir())) == 4


def test_the_command_that_is_shown_is_found_where_only_the_hook_has_it(project, world):
    project.environment = world.environment
    project.stage(ONE)
    output = blocked(project)
    assert f"{world.environment['PRE_COMMIT_HOME']}/repo" in output
    assert 'To install it for yourself: pip install "rag-eval-action @ git+https://' in output
    project.fix(output)
    accepted(project)


@pytest.mark.parametrize(
    ("hook", "path", "good", "bad"),
    [
        ("rag-eval-validate", GOLD, lines({**ONE, "gold_citations": []}), lines({**ONE, "gold_citations": 1})),
        ("rag-eval-gates", "eval-gates.yml", "version: 1\n", "version: 1\nunknown: 1\n"),
    ],
)
def test_the_validating_hooks_choose_their_files_and_judge_them(world, project, hook, path, good, bad):
    ours = str(project.path.parent / "hooks.yaml")
    Path(ours).write_text(config_of(world, hook), encoding="utf-8")
    run = "pre-commit", "run", hook, "-c", ours, "--verbose"
    project.write("notes.txt", "no data")
    for text, expected in ((good, 0), (bad, 1)):
        project.write(path, text)
        project.git("add", ".")
        code, output = project.run(*run)
        assert (code, "no files to check" in output) == (expected, False), output
    project.git("rm", "-q", "--cached", path)
    assert "no files to check" in project.run(*run)[1]


def test_commits_by_path_and_of_everything_see_the_index_that_they_make(project):
    project.signed(ONE, TWO)
    for how in ("-a", GOLD):
        project.write(GOLD, lines({**ONE, "tags": [how]}, TWO))
        project.fix(blocked(project, how))
        accepted(project)


def test_unstaged_edits_do_not_count(project):
    project.signed(ONE, TWO)
    project.write("readme.txt", "hello\n")
    project.git("add", "readme.txt")
    project.write(GOLD, lines(EDITED, TWO))
    accepted(project)
    assert "tags" in (project.path / GOLD).read_text()


def test_all_files_asks_about_every_item_and_amending_words_does_not(project):
    project.stage(ONE)
    project.git("commit", "-q", "--no-verify", "-m", "unsigned")
    accepted(project, "--amend", "--allow-empty")
    code, output = project.run("pre-commit", "run", "--all-files")
    assert (code, codes(output)) == (1, ["unsigned-item"]), output
    project.fix(output)
    accepted(project)
    code, output = project.run("pre-commit", "run", "--all-files")
    assert code == 0, output


def test_a_range_of_commits_is_checked_as_such(project):
    project.signed(ONE)
    project.stage(EDITED)
    project.git("commit", "-q", "--no-verify", "-m", "unsigned")
    code, output = project.run("pre-commit", "run", "--from-ref", "HEAD~1", "--to-ref", "HEAD")
    assert (code, codes(output)) == (1, ["unsigned-change"]), output
    code, output = project.run("pre-commit", "run", "--from-ref", "HEAD", "--to-ref", "HEAD")
    assert code == 0, output


def test_a_push_is_stopped_until_what_it_brings_is_signed(project, tmp_path):
    project.signed(ONE)
    project.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    project.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    project.git("push", "-q", "origin", "main")
    project.stage(EDITED)
    project.git("commit", "-q", "--no-verify", "-m", "unsigned")
    code, output = project.run("git", "push", "-q", "origin", "main")
    assert (code, codes(output)) == (1, ["unsigned-change"]), output
    project.fix(output)
    project.git("commit", "-q", "--no-verify", "-m", "signed")
    assert project.run("git", "push", "-q", "origin", "main")[0] == 0


def test_a_merge_that_brings_unsigned_gold_is_stopped(project):
    project.signed(ONE)
    project.git("checkout", "-q", "-b", "side")
    project.stage(EDITED)
    project.git("commit", "-q", "--no-verify", "-m", "unsigned")
    project.git("checkout", "-q", "main")
    project.write("readme.txt", "hello\n")
    project.git("add", ".")
    accepted(project)
    code, output = project.run("git", "merge", "--no-edit", "side")
    assert (code != 0, codes(output)) == (True, ["unsigned-change"]), output


def test_what_init_writes_has_merges_and_pushes_checked_too(project):
    for hook in (project.path / ".git" / "hooks").iterdir():
        hook.unlink()
    (project.path / ".pre-commit-config.yaml").unlink()
    assert project.run("rag-eval", "init")[0] == 0
    assert project.run("pre-commit", "install")[0] == 0
    installed = {path.name for path in (project.path / ".git" / "hooks").iterdir()}
    assert installed == {"pre-commit", "pre-merge-commit", "pre-push"}


def test_a_linked_work_tree_runs_the_hook_on_its_own_index(project):
    project.signed(ONE)
    project.git("add", ".pre-commit-config.yaml")
    accepted(project)
    project.git("worktree", "add", "-q", "-b", "side", "../side")
    side = World(project.path.parent / "side", project.environment)
    side.stage(EDITED)
    side.fix(blocked(side))
    accepted(side)
