"""`rag-eval gold` in real repositories, run as people and git hooks run it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import time

import pytest

from gitrepo import GOLD, RECORDS, SOURCE, Repo, codes, command_here, command_on_path, lines, row
from seams import Record, verify
from sshkeys import Keys, needs_ssh_keygen

SIGNED = f"{GOLD}: every change is signed off.\n"
UNCHECKED = f"{GOLD}: not in git, so not checked.\n"

ONE, TWO, THREE = row("A1"), row("A2", "How wide is it?"), row("A3", "Who made it?", answerable=False)
EDITED = {**ONE, "gold_claim_substr": ["two years"]}


def isolate(patched):
    """Keep the configuration of this machine, and any git that runs these tests, out of them."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "PRE_COMMIT"))]:
        patched.delenv(name)
    patched.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    patched.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A new repository, apart from the configuration of this machine and from any git that runs these tests."""
    isolate(monkeypatch)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with command_here(tmp_path / "bin"):
        yield Repo.create(tmp_path / "repo", None)


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """A repository whose first commit holds signed gold, with the hook installed: made once, and copied."""
    with pytest.MonkeyPatch.context() as patched:
        isolate(patched)
        made = Repo.create(tmp_path_factory.mktemp("signed") / "repo", None)
        made.signed(ONE, TWO)
        made.hook()
    return made.path


@pytest.fixture
def repo(fresh, signed):
    """A copy of the signed repository."""
    shutil.rmtree(fresh.path)
    shutil.copytree(signed, fresh.path, symlinks=True)
    return fresh


def refused(repo, *codes_expected, commit=()):
    code, output = repo.commit("a change", *commit)
    assert (code, sorted(set(codes(output)))) == (1, sorted(codes_expected)), output
    return output


def accepted(repo, *paths):
    code, output = repo.commit("a change", *paths)
    assert code == 0, output


def test_the_fix_names_a_program_that_the_user_can_call(repo, tmp_path, monkeypatch):
    """In the environment of a hook rag-eval may be on the PATH only there, or for the user, too."""
    hook, user, git = (tmp_path / name for name in ("hook", "user", "git"))
    for folder in (command_on_path(hook), command_on_path(user), git):
        folder.mkdir(exist_ok=True)
    (git / "git").symlink_to(shutil.which("git"))
    monkeypatch.setattr("sys.argv", [str(hook / "rag-eval")])
    repo.stage(EDITED, TWO)
    for folders, program in (((hook, user), "rag-eval"), ((hook,), hook / "rag-eval"), ((), hook / "rag-eval")):
        path = os.pathsep.join(map(str, (*folders, git)))
        code, output = repo.gold("check", "--staged", PRE_COMMIT="1", PATH=path)
        is_installed = program == "rag-eval"
        assert (code, f"  {program} gold signoff --reason" in output) == (1, True), output
        assert ("To install it for yourself: pip install" not in output) == is_installed, output
    assert "  rag-eval gold signoff --reason" in repo.gold("check", "--staged", PATH=path)[1]
    monkeypatch.setattr("sys.argv", [str(git / "__main__.py")])  # python -m rag_eval
    assert "  rag-eval gold signoff --reason" in repo.gold("check", "--staged", PRE_COMMIT="1", PATH=path)[1]


# --- the commit ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "counts"),
    [([EDITED, TWO], "1 changed"), ([ONE, TWO, THREE], "1 added"), ([TWO], "1 removed"), ([EDITED, THREE], "3")],
    ids=["changed", "added", "removed", "all"],
)
def test_a_commit_without_a_record_is_stopped_and_the_command_that_is_shown_lets_it_through(repo, rows, counts):
    repo.stage(*rows)
    repo.fix(refused(repo, "unsigned-change"))
    accepted(repo)
    assert len(repo.records()) == 2
    assert repo.git("status", "--porcelain") == ""


def test_the_command_as_shown_wants_a_reason_of_ones_own(repo):
    repo.stage(EDITED, TWO)
    output = refused(repo, "unsigned-change")
    command = output.split("To fix it:\n")[1].strip()
    assert command == "rag-eval gold signoff --reason '…'"
    code, output = repo.run("sh", "-c", command)
    assert (code, "--reason" in output) == (2, True)


def test_deleting_the_whole_gold_file_is_a_change_of_every_item(repo):
    repo.git("rm", "-q", GOLD)
    repo.fix(refused(repo, "unsigned-change"))
    accepted(repo)


def test_other_commits_go_through_quietly(repo):
    repo.write("readme.txt", "hello\n")
    repo.git("add", ".")
    assert repo.commit("other") == (0, "")
    repo.write("readme.txt", "hello again\n")
    assert repo.commit("other", "-a") == (0, "")
    assert repo.git("commit", "-q", "--amend", "-m", "other words") == ""
    assert repo.git("commit", "-q", "--allow-empty", "-m", "nothing") == ""


def test_a_repository_without_gold_has_nothing_to_check(fresh):
    assert fresh.gold("check") == fresh.gold("check", "--all-files") == (0, UNCHECKED)
    fresh.git("commit", "-q", "--allow-empty", "-m", "first")
    assert fresh.gold("check") == fresh.gold("check", "--all-files") == (0, UNCHECKED)


@pytest.mark.parametrize("named", ["eval\\gold.jsonl", "Eval/GOLD.jsonl", "eval/gro\u0308\u00dfe.jsonl"])
def test_gold_that_the_gates_file_spells_as_a_laptop_takes_it_is_not_passed_over(fresh, named):
    """There the file is found; in git, and on the machine that judges, it is another one."""
    there = "eval/gr\u00f6\u00dfe.jsonl" if "\u00df" in named else GOLD
    fresh.write("eval-gates.yml", f"gold: {named}\n")
    fresh.git("add", ".")
    fresh.hook()
    assert fresh.commit("gates, and the gold is yet to come")[0] == 0
    fresh.stage(ONE, path=there)
    for words in (["check"], ["check", "--gold", named], ["signoff", "--reason", "first set"]):
        code, output = fresh.gold(*words)
        assert (code, f"is not in git, but '{there}' is. Write the path as git has it" in output) == (2, True), output
    fresh.write("eval-gates.yml", f"gold: {there}\n")
    fresh.git("add", ".")
    assert codes(fresh.gold("check")[1]) == ["unsigned-change"]


def test_gates_in_folders_below_are_not_passed_over_where_there_is_nothing_else(fresh):
    fresh.hook()
    for name in ("one", "two"):
        fresh.write(f"{name}/eval-gates.yml", "gold: gold.jsonl\n")
        fresh.stage(ONE, path=f"{name}/gold.jsonl")
    fresh.git("add", ".")
    code, output = fresh.commit()
    assert (code, "'one/eval-gates.yml' and 1 more" in output) == (1, True), output
    assert output.endswith("Choose one: --gates one/eval-gates.yml\n")
    assert codes(fresh.gold("check", "--gates", "one/eval-gates.yml")[1]) == ["unsigned-change"]
    fresh.write("eval-gates.yml", "version: 1\n")  # gates of the root, and nothing else is asked about
    fresh.git("add", ".")
    assert fresh.gold("check") == (0, UNCHECKED)


def test_gates_in_the_folder_above_are_those_of_a_folder(fresh):
    fresh.write("one/eval-gates.yml", "gold: gold.jsonl\n")
    fresh.git("add", ".")
    for name in ("one/below", "another"):
        (fresh.path / name).mkdir()
    assert Repo(fresh.path / "one/below").gold("check") == (0, f"one/{UNCHECKED}".replace("eval/", ""))
    code, output = Repo(fresh.path / "another").gold("check")
    assert (code, "folders below have 'one/eval-gates.yml'. Choose one" in output) == (2, True), output


def test_the_first_commit_of_a_repository_is_signed_like_any_other(fresh):
    fresh.hook()
    fresh.stage(ONE, TWO)
    fresh.fix(refused(fresh, "unsigned-change"))
    accepted(fresh)


def test_a_repository_that_starts_with_unsigned_gold_signs_what_it_changes_and_the_rest_by_a_baseline(fresh):
    fresh.stage(ONE, TWO)
    fresh.commit("before the hook")
    fresh.hook()
    fresh.stage(EDITED, TWO)
    fresh.fix(refused(fresh, "unsigned-change"))
    accepted(fresh)
    code, output = fresh.gold("check", "--all-files")
    assert (code, codes(output)) == (1, ["unsigned-item"])
    assert "--baseline" in output
    fresh.fix(output)
    accepted(fresh)
    assert fresh.gold("check", "--all-files") == (0, SIGNED)


def test_a_baseline_signs_staged_changes_too(fresh):
    fresh.stage(ONE, TWO)
    fresh.commit("before the hook")
    fresh.hook()
    fresh.stage(EDITED, TWO)
    fresh.sign("--baseline")
    accepted(fresh)
    assert fresh.gold("check", "--all-files") == (0, SIGNED)


def test_an_edit_after_signing_needs_a_second_record_and_never_deadlocks(repo):
    repo.stage(EDITED, TWO)
    repo.sign()
    repo.stage({**EDITED, "tags": ["a"]}, TWO)
    repo.fix(refused(repo, "broken-chain"))
    accepted(repo)
    repo.stage({**EDITED, "tags": ["b"]}, TWO)
    repo.fix(refused(repo, "unsigned-change"))
    accepted(repo)
    assert repo.gold("check", "--base", "HEAD~2") == (0, SIGNED)


def test_signing_twice_signs_once(repo):
    repo.stage(EDITED, TWO)
    repo.sign()
    before = repo.records()
    assert "Nothing to sign" in repo.sign()
    assert repo.records() == before


@pytest.mark.parametrize("words", [(), ("--baseline",)], ids=" ".join)
@pytest.mark.parametrize("commits", [0, 1])
def test_gold_that_git_does_not_have_is_not_said_to_be_signed(fresh, words, commits):
    fresh.write(GOLD, lines(ONE, TWO))
    if commits:
        fresh.git("commit", "-q", "--allow-empty", "-m", "first")
    code, output = fresh.gold("signoff", "--reason", "first set", *words)
    assert (code, fresh.records()) == (2, [])
    assert output.startswith(f"rag-eval: '{GOLD}' is not staged, so there is nothing to sign.")
    assert fresh.run("sh", "-c", output[output.index("git add") :])[0] == 0
    assert fresh.sign(*words).startswith("Signed by ann@example.org: 2 added.")
    assert "the staged gold set is" in fresh.sign(*words)
    assert ("HEAD" in fresh.sign(*words)) == bool(commits)


def test_what_init_writes_is_signed_once_it_is_staged(fresh):
    """The console of docs/sign-off.md."""
    assert fresh.run("rag-eval", "init")[0] == 0
    shown = (SOURCE.parent / "docs" / "sign-off.md").read_text(encoding="utf-8").partition("The first time")[2]
    commands = [line[2:] for line in shown.partition("\n## ")[0].splitlines() if line.startswith("$ ")]
    assert [fresh.run("sh", "-c", command)[0] for command in commands] == [0, 0]
    assert len(fresh.records()) == 1


def test_gold_that_is_but_announced_stops_no_commit(fresh):
    """`git add -N`, for `git add -p` to show all of it."""
    fresh.hook()
    for name, text in (("notes.txt", "x"), ("eval-gates.yml", f"gold: {GOLD}\n"), (GOLD, lines(ONE))):
        fresh.write(name, text)
    fresh.git("add", "-N", GOLD)
    for name in ("notes.txt", "eval-gates.yml"):
        fresh.git("add", name)
        accepted(fresh)
    fresh.git("add", GOLD)
    refused(fresh, "unsigned-change")


def test_a_locale_in_which_names_lead_nowhere_is_no_pass_and_no_defect(fresh):
    fresh.write("eval-gates.yml", "version: 1\ngold: eval/größe.jsonl\n")
    fresh.git("add", ".")
    fresh.stage(ONE, path="eval/größe.jsonl")
    rag_eval = sys.executable, "-m", "rag_eval"
    narrow = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(SOURCE)}
    for code, output in (fresh.run(*rag_eval, *words, **narrow) for words in (["gold", "check"], ["score"])):
        assert (code, output.endswith("Set PYTHONUTF8=1, or a UTF-8 locale.\n")) == (2, True), output
    assert codes(fresh.run(*rag_eval, "gold", "check", **{**narrow, "PYTHONUTF8": "1"})[1]) == ["unsigned-change"]


def test_a_record_that_cannot_be_written_or_staged_leaves_nothing_behind(fresh):
    fresh.stage(ONE)
    fresh.write(RECORDS, "a file where the folder is to be")
    code, output = fresh.gold("signoff", "--reason", "reviewed")
    assert (code, f"'{RECORDS}/" in output, "a folder that you can write to." in output) == (2, True, True), output
    (fresh.path / RECORDS).unlink()
    fresh.write(".git/index.lock", "")
    code, output = fresh.gold("signoff", "--reason", "reviewed")
    assert (code, "remove the file. Then try again." in output, fresh.records()) == (2, True, []), output
    (fresh.path / ".git/index.lock").unlink()
    fresh.sign()
    assert fresh.gold("check") == (0, SIGNED)


def test_only_what_is_staged_counts(repo):
    repo.write(GOLD, lines(EDITED, TWO))
    assert "Nothing to sign" in repo.sign()
    code, output = repo.gold("check")
    assert (code, output.startswith(f"{SIGNED}{GOLD} has unstaged edits")) == (0, True)
    repo.stage(EDITED, TWO)
    repo.sign()
    repo.write(GOLD, lines(TWO))
    accepted(repo)


@pytest.mark.parametrize("how", [("-a",), (GOLD,)], ids=["all", "path"])
def test_a_commit_with_an_index_of_its_own_is_checked_as_such_and_mended(repo, how):
    repo.write(GOLD, lines(EDITED, TWO))
    output = refused(repo, "unsigned-change", commit=how)
    assert "without file names" in output
    assert repo.git("diff", "--cached", "--name-only") == ""
    repo.fix(output)
    accepted(repo)


def test_a_partial_commit_that_names_gold_and_records_goes_through(repo):
    repo.write("other.txt", "staged, but not part of this commit\n")
    repo.git("add", "other.txt")
    repo.stage(EDITED, TWO)
    repo.sign()
    refused(repo, "unsigned-change", commit=(GOLD,))
    accepted(repo, GOLD, RECORDS)
    assert repo.git("status", "--porcelain") == "A  other.txt"


@pytest.mark.parametrize("setting", ["true", "input", "false"])
def test_line_endings_of_the_work_tree_do_not_matter(fresh, setting):
    fresh.signed(ONE, TWO)
    fresh.git("config", "core.autocrlf", setting)
    fresh.hook()
    fresh.stage(ONE, TWO, end="\r\n")
    accepted(fresh) if setting == "false" else fresh.git("diff", "--cached", "--exit-code")
    fresh.stage(EDITED, TWO, end="\r\n")
    fresh.fix(refused(fresh, "unsigned-change"))
    accepted(fresh)
    assert fresh.gold("check", "--all-files") == (0, SIGNED)


def test_a_linked_work_tree_signs_and_commits_by_itself(repo):
    repo.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(repo.path.parent / "side")
    side.stage(EDITED, TWO)
    side.fix(refused(side, "unsigned-change"))
    accepted(side)
    assert len(repo.records()) == 1
    assert repo.gold("check") == (0, SIGNED)


def test_a_submodule_is_a_repository_of_its_own(repo, tmp_path):
    outer = Repo.create(tmp_path / "outer", None)
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repo.path), "data")
    assert outer.commit("with a submodule") == (0, "")
    inner = Repo(outer.path / "data")
    inner.git("config", "user.email", "ann@example.org")
    inner.stage(EDITED, TWO)
    code, output = inner.gold("check")
    assert (code, codes(output)) == (1, ["unsigned-change"])
    inner.fix(output)
    assert inner.gold("check") == (0, SIGNED)
    assert outer.gold("check") == (0, UNCHECKED)
    code, output = outer.gold("check", "--gold", "data/eval/gold.jsonl")
    assert (code, "submodule" in output) == (2, True), output


def test_it_works_from_a_sub_folder(repo):
    (repo.path / "docs").mkdir()
    inside = Repo(repo.path / "docs")
    repo.stage(EDITED, TWO)
    code, output = inside.gold("check")
    assert (code, codes(output)) == (1, ["unsigned-change"])
    inside.fix(output)
    assert inside.gold("check") == (0, SIGNED)
    repo.git("reset", "-q", "--hard")
    repo.git("rm", "-q", "-r", RECORDS)
    code, output = inside.gold("check")
    assert (code, codes(output)) == (1, ["record-removed"])
    inside.fix(output)
    assert inside.gold("check") == (0, SIGNED)


# --- mutations -------------------------------------------------------------------------------------------------------


def test_a_qid_does_not_come_to_ask_something_else_unnoticed(repo):
    repo.stage({**ONE, "question": "How heavy is it?"}, TWO)
    code, output = repo.gold("signoff", "--reason", "better question")
    assert (code, "--mutates" in output, repo.records()) == (2, True, repo.records()[:1])
    repo.sign("--mutates")
    assert any(json.loads((repo.path / RECORDS / name).read_text()).get("mutates") for name in repo.records())
    accepted(repo)


def test_the_flag_is_recorded_only_where_something_mutates(repo):
    repo.stage(EDITED, TWO)
    repo.sign("--mutates")
    assert not any("mutates" in (repo.path / RECORDS / name).read_text() for name in repo.records())


def test_a_mutation_that_was_signed_without_saying_so_is_mended_by_saying_so(repo):
    # Two commits, each fine by itself: removed, then added again under the same qid.
    start = repo.git("rev-parse", "HEAD")
    for rows in ([TWO], [{**ONE, "answerable": False}, TWO]):
        repo.stage(*rows)
        repo.sign()
        accepted(repo)
    code, output = repo.gold("check", "--base", start)
    assert (code, codes(output)) == (1, ["mutation"])
    repo.fix(output)
    assert repo.gold("check", "--base", start) == (0, SIGNED)
    accepted(repo)


# --- records ---------------------------------------------------------------------------------------------------------


def test_records_that_are_committed_stay_as_they_are(repo):
    (name,) = repo.records()
    path = f"{RECORDS}/{name}"
    text = (repo.path / path).read_text()

    def edit():
        repo.write(path, text.replace("ann@", "eve@"))

    def remove():
        repo.git("rm", "-q", "-f", path)

    def rename():
        repo.git("mv", path, f"{RECORDS}/2020-01-01-00000000.json")

    for damage, expected in ((edit, "record-edited"), (remove, "record-removed"), (rename, "record-removed")):
        damage()
        repo.git("add", "-A")
        output = refused(repo, expected, *(["replayed-record"] if damage == rename else []))
        repo.run("sh", "-c", f"git checkout HEAD -- {path}")
        assert f"git checkout HEAD -- :/{path}" in output
        repo.git("reset", "-q", "--hard")


def test_a_formatter_may_format_records(repo):
    (name,) = repo.records()
    path = repo.path / RECORDS / name
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4))
    repo.git("add", "-A")
    accepted(repo)


def test_a_forged_record_signs_nothing_and_the_advice_clears_it_away(repo):
    repo.stage(EDITED, TWO)
    repo.sign()
    (name,) = set(repo.records()) - set(repo.git("ls-tree", "--name-only", f"HEAD:{RECORDS}").split())
    path = repo.path / RECORDS / name
    path.write_text(path.read_text().replace("ann@example.org", "boss@example.org"))
    repo.git("add", "-A")
    repo.fix(refused(repo, "malformed-record", "unsigned-change"))
    assert name not in repo.records()
    accepted(repo)


def test_a_record_of_another_repository_signs_nothing_here(repo):
    repo.write("eval-gates.yml", "version: 1\nsignoff: {dataset: ours}\n")
    repo.git("add", "-A")
    accepted(repo)
    repo.stage(EDITED, TWO)
    repo.sign()
    (name,) = set(repo.records()) - set(repo.git("ls-tree", "--name-only", f"HEAD:{RECORDS}").split())
    repo.git("rm", "-q", "-f", "--cached", "eval-gates.yml")
    # The policy of the commit before decides: taking the file away with the change does not help.
    assert repo.gold("check") == (0, SIGNED)
    repo.git("reset", "-q", "eval-gates.yml")
    theirs = (repo.path / RECORDS / name).read_text().replace('"ours"', '"theirs"')
    repo.git("rm", "-q", "-f", f"{RECORDS}/{name}")
    repo.write(f"{RECORDS}/2026-01-01-00000000.json", theirs)
    repo.git("add", "-A")
    refused(repo, "malformed-record", "unsigned-change")


def test_a_record_counts_once_even_after_its_change_was_taken_back(repo):
    repo.signed(EDITED, TWO)
    repo.signed(ONE, TWO)
    repo.stage(EDITED, TWO)
    repo.fix(refused(repo, "replayed-record"))
    accepted(repo)


def test_records_lead_nowhere_else_by_a_link(repo, tmp_path):
    repo.git("rm", "-q", "-r", RECORDS)
    (tmp_path / "elsewhere").mkdir()
    (repo.path / RECORDS).symlink_to(tmp_path / "elsewhere")
    repo.stage(EDITED, TWO)
    code, output = repo.gold("signoff", "--reason", "reviewed")
    assert (code, "symbolic link" in output) == (2, True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


# --- branches --------------------------------------------------------------------------------------------------------


def branch(repo, name, *rows, start="main"):
    repo.git("checkout", "-q", "-b", name, start)
    repo.stage(*rows)
    repo.sign("--mutates")
    accepted(repo)


def base_of(repo, ref="main"):
    return repo.gold("check", "--base", ref)


@pytest.fixture
def spaced(fresh):
    """Gold in which two branches can edit different items without a conflict of lines."""
    middle = [row(f"M{n}", f"filler {n}?") for n in range(8)]
    fresh.signed(ONE, *middle, TWO)
    fresh.hook()
    fresh.middle = middle
    return fresh


def test_branches_of_different_items_merge_by_the_hook_and_by_ci(spaced):
    branch(spaced, "left", EDITED, *spaced.middle, TWO)
    branch(spaced, "right", ONE, *spaced.middle, {**TWO, "tags": ["x"]})
    assert base_of(spaced) == (0, SIGNED)
    spaced.git("merge", "-q", "--no-edit", "left")
    assert base_of(spaced) == (0, SIGNED)
    spaced.git("checkout", "-q", "main")
    spaced.git("merge", "-q", "--no-ff", "--no-edit", "right")
    assert spaced.gold("check", "--base", "HEAD^1") == (0, SIGNED)
    assert spaced.gold("check", "--all-files") == (0, SIGNED)


def test_a_merge_that_brings_unsigned_gold_is_stopped(spaced):
    spaced.git("checkout", "-q", "-b", "left")
    spaced.stage(EDITED, *spaced.middle, TWO)
    spaced.git("commit", "-q", "--no-verify", "-m", "around the hook")
    spaced.git("checkout", "-q", "main")
    spaced.git("commit", "-q", "--allow-empty", "-m", "so that it is no fast-forward")
    code, output = spaced.run("git", "merge", "--no-edit", "left")
    assert (code != 0, codes(output)) == (True, ["unsigned-change"])


def test_a_squashed_branch_stays_signed(repo):
    branch(repo, "topic", EDITED, TWO)
    repo.stage({**EDITED, "tags": ["x"]}, TWO, THREE)
    repo.sign()
    accepted(repo)
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--squash", "topic")
    accepted(repo)
    assert base_of(repo, "HEAD~1") == (0, SIGNED)


def test_a_cherry_picked_change_brings_its_record_and_is_nothing_without_it(repo):
    branch(repo, "topic", EDITED, TWO)
    repo.git("checkout", "-q", "-b", "pick", "main")
    repo.git("commit", "-q", "--allow-empty", "-m", "something else first")
    repo.git("cherry-pick", "topic")
    assert base_of(repo) == (0, SIGNED)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.git("cherry-pick", "--no-commit", "topic")
    repo.git("reset", "-q", "--", RECORDS)
    refused(repo, "unsigned-change")


def test_a_rebased_branch_stays_signed(spaced):
    branch(spaced, "topic", EDITED, *spaced.middle, TWO)
    branch(spaced, "other", ONE, *spaced.middle, {**TWO, "tags": ["x"]})
    spaced.git("checkout", "-q", "topic")
    spaced.git("rebase", "-q", "other")
    assert base_of(spaced, "other") == base_of(spaced) == (0, SIGNED)


def test_a_conflict_resolved_either_way_is_signed_against_the_branch_that_it_goes_to(repo):
    branch(repo, "theirs", {**ONE, "tags": ["theirs"]}, TWO)
    branch(repo, "ours", {**ONE, "tags": ["ours"]}, TWO)
    assert repo.run("git", "merge", "-q", "theirs")[0] != 0
    assert repo.gold("check")[0] == 2
    repo.stage({**ONE, "tags": ["both"]}, TWO)
    repo.fix(refused(repo, "broken-chain"))
    accepted(repo)
    code, output = base_of(repo, "theirs")
    assert (code, codes(output)) == (1, ["broken-chain"])
    assert "--base theirs" in output
    repo.fix(output)
    accepted(repo)
    assert base_of(repo, "theirs") == base_of(repo) == (0, SIGNED)


def test_a_reverted_change_is_signed_anew_and_so_is_bringing_it_back(repo):
    repo.signed(EDITED, TWO)
    repo.git("checkout", "-q", "-b", "revert")
    repo.git("revert", "--no-edit", "HEAD")  # runs no hook, and takes the record away with the change
    code, output = base_of(repo)
    assert (code, sorted(codes(output))) == (1, ["record-removed", "unsigned-change"])
    repo.fix(output)
    accepted(repo)
    assert base_of(repo) == (0, SIGNED)
    repo.git("checkout", "-q", "-b", "again")
    repo.stage(EDITED, TWO)
    code, output = base_of(repo, "revert")
    assert (code, codes(output)) == (1, ["replayed-record"])
    repo.fix(output)
    accepted(repo)
    assert base_of(repo, "revert") == base_of(repo) == (0, SIGNED)


def test_what_happened_on_the_base_meanwhile_is_not_the_change_of_this_branch(spaced):
    branch(spaced, "topic", EDITED, *spaced.middle, TWO)
    branch(spaced, "newer", *spaced.middle, {**TWO, "tags": ["x"]})
    spaced.git("checkout", "-q", "topic")
    assert base_of(spaced, "newer") == (0, SIGNED)


def test_a_branch_that_left_early_cannot_use_a_record_that_the_base_has_used_since(repo):
    start = repo.git("rev-parse", "HEAD")
    repo.signed(EDITED, TWO)
    record = repo.git("diff", "--name-only", start, "HEAD", "--", RECORDS)
    used = repo.git("rev-parse", "HEAD")
    repo.signed(ONE, TWO)
    repo.git("checkout", "-q", "-b", "early", start)
    repo.git("checkout", used, "--", record)
    repo.stage(EDITED, TWO)
    accepted(repo)  # against its own past it looks new
    code, output = base_of(repo)
    assert (code, codes(output)) == (1, ["replayed-record"])


def test_what_is_pushed_is_checked_between_the_two_ends_that_pre_commit_names(repo):
    start = repo.git("rev-parse", "HEAD")
    repo.stage(EDITED, TWO)
    repo.git("commit", "-q", "--no-verify", "-m", "around the hook")
    tip = repo.git("rev-parse", "HEAD")
    assert repo.gold("check", "--staged", PRE_COMMIT_FROM_REF=tip, PRE_COMMIT_TO_REF=tip) == (0, SIGNED)
    assert repo.gold("check", "--staged", PRE_COMMIT_FROM_REF="HEAD", PRE_COMMIT_TO_REF="HEAD") == (0, SIGNED)
    repo.git("checkout", "-q", start)
    env = {"PRE_COMMIT_FROM_REF": start, "PRE_COMMIT_TO_REF": tip}
    code, output = repo.gold("check", "--staged", **env)
    assert (code, codes(output)) == (1, ["unsigned-change"])
    assert f"--base {start}" in output


# --- without a change at hand ----------------------------------------------------------------------------------------


def test_a_run_by_hand_with_nothing_staged_asks_about_every_item(fresh):
    fresh.stage(ONE, TWO)
    fresh.commit("unsigned")
    for words in (("--staged",), ("--all-files",), ()):
        code, output = fresh.gold("check", *words)
        assert (code, codes(output)) == (1, ["unsigned-item"] * 2)
    assert fresh.gold("check", GIT_INDEX_FILE=".git/index") == (0, "")
    assert fresh.gold("check", "--base", "HEAD") == (0, SIGNED)


# --- the policy ------------------------------------------------------------------------------------------------------


def test_the_gates_file_says_where_gold_and_records_are(fresh):
    fresh.write(
        "eval-gates.yml", "gold: data/set.jsonl\nsignoff: {dataset: 7b0c4e, records: data/signed, require: record}\n"
    )
    fresh.git("add", ".")
    fresh.stage(ONE, path="data/set.jsonl")
    code, output = fresh.gold("check")
    assert (code, codes(output), "data/set.jsonl:1:" in output) == (1, ["unsigned-change"], True)
    fresh.fix(output)
    (file,) = (fresh.path / "data/signed").iterdir()
    record = json.loads(file.read_text())
    assert (record["dataset"], record["gold"]) == ("7b0c4e", "data/set.jsonl")
    assert fresh.gold("check") == (0, "data/set.jsonl: every change is signed off.\n")


def test_a_data_set_that_is_named_for_the_first_time_holds_at_once_and_a_new_name_only_when_it_is_committed(repo):
    def named(dataset, *rows):
        before = set(repo.records())
        repo.write("eval-gates.yml", f"signoff: {{dataset: {dataset}}}\n")
        repo.git("add", ".")
        repo.stage(*rows)
        repo.sign()
        accepted(repo)
        (new,) = set(repo.records()) - before
        return json.loads((repo.path / RECORDS / new).read_text())["dataset"]

    assert named("first", EDITED, TWO) == "first"
    assert named("second", ONE, TWO) == "first"
    assert named("second", EDITED, TWO) == "second"


def test_a_policy_that_names_no_data_set_is_about_the_default_until_a_name_is_committed(repo):
    repo.write("eval-gates.yml", "signoff: {require: record}\n")
    repo.git("add", ".")
    accepted(repo)
    repo.write("eval-gates.yml", "signoff: {require: record, dataset: other}\n")
    repo.git("add", ".")
    repo.stage(EDITED, TWO)
    repo.sign()
    accepted(repo)
    named = [json.loads((repo.path / RECORDS / name).read_text())["dataset"] for name in repo.records()]
    assert named == ["default", "default"]


def test_a_gates_file_in_a_folder_speaks_of_paths_in_that_folder(fresh):
    fresh.write("service/eval-gates.yaml", "gold: gold.jsonl\n")
    fresh.git("add", ".")
    fresh.stage(ONE, path="service/gold.jsonl")
    inside = Repo(fresh.path / "service")
    assert codes(inside.gold("check")[1]) == ["unsigned-change"]
    code, output = fresh.gold("check", "--gates", "service/eval-gates.yaml")
    assert (code, codes(output)) == (1, ["unsigned-change"])
    fresh.fix(output)
    assert inside.gold("check") == (0, "service/gold.jsonl: every change is signed off.\n")
    assert len(list((fresh.path / "service/gold.signoff").iterdir())) == 1


def test_two_gates_files_are_refused_until_one_is_gone(repo):
    """They may have stood in the last commit: the change that removes one goes through."""
    repo.write("eval-gates.yml", "gold: eval/gold.jsonl\n")
    repo.write("eval-gates.yaml", "gold: eval/gold.jsonl\n")
    repo.git("add", ".")
    code, output = repo.gold("check")
    assert (code, "eval-gates.yml and eval-gates.yaml both exist" in output) == (2, True)
    repo.git("commit", "-q", "--no-verify", "-m", "both")
    repo.git("rm", "-q", "eval-gates.yaml")
    accepted(repo)


def test_moving_the_gold_away_by_the_gates_file_is_seen_at_both_places(repo):
    repo.write("eval-gates.yml", "gold: other.jsonl\n")
    repo.git("mv", GOLD, "other.jsonl")
    repo.git("add", ".")
    output = refused(repo, "unsigned-change")
    assert codes(output) == ["unsigned-change"] * 4
    repo.fix(output)
    accepted(repo)


def test_pointing_the_gates_elsewhere_does_not_free_the_old_gold(repo):
    repo.write("eval-gates.yml", "gold: other.jsonl\n")
    repo.stage(EDITED, TWO)
    repo.git("add", ".")
    assert codes(refused(repo, "unsigned-change")) == ["unsigned-change"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("signoff: {require: signature}", "require: signature requires"),
        ("signoff: {require: none}", "'none'"),
        ("signoff: {dataset: 'a b'}", "'a b'"),
        ("signoff: {gold: ../x.jsonl}", "'../x.jsonl'"),
        ("signoff: {gold: /x.jsonl}", "'/x.jsonl'"),
        ('signoff: {gold: "a\\0b"}', "is not a path"),
        ("signoff: {gold: a, gold: b}", "occurs twice"),
        ("signoff: &a {gold: b}", "anchors"),
        ("signoff: [a]", "/signoff: a list"),
        ("[a]", "eval-gates.yml:1"),
        ("signoff: {gold: [a]}", "eval-gates.yml:1"),
        ("signoff: {dataset: 123}", "/signoff/dataset: 123 is not"),
        ("signoff:\n  four_eyes: true\n", "eval-gates.yml:2: four_eyes: true requires"),
        ("a: b: c", "not valid YAML"),
        ("[" * 3000, "nest"),
        ("# " + "x" * (1 << 20), "larger than 1 MiB"),
    ],
)
def test_a_policy_that_cannot_be_read_is_never_a_pass(repo, text, says):
    repo.write("eval-gates.yml", text)
    repo.git("add", ".")
    code, output = repo.gold("check")
    assert (code, says in output) == (2, True), output


@pytest.mark.parametrize("text", ["", "# nothing\n", "version: 1\n", "signoff:\n", "signoff: {}\n"])
def test_a_gates_file_that_says_nothing_of_it_leaves_the_defaults(repo, text):
    repo.write("eval-gates.yml", text)
    repo.stage(EDITED, TWO)
    repo.git("add", ".")
    assert codes(repo.gold("check")[1]) == ["unsigned-change"]


# --- input that cannot be judged -------------------------------------------------------------------------------------


LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
IN_GIT = "Sign-off needs the content in git: keep the gold set out of LFS."
NO_QID = "'qid' is not a string of 1 to 200 characters. Give every item its own qid."


@pytest.mark.parametrize(
    ("blob", "says"),
    [
        ("", ": has no gold items. Add an item, or delete the file."),
        ("{}\n", f":1: {NO_QID}"),
        ("7\n", ":1: expected a gold item (an object), but got 7. Put one JSON object on each line."),
        (
            '{"qid": "A1"}',
            ":1: 'question' is not a string, or 'answerable' is not true or false. Give every item both.",
        ),
        (
            '[{"qid": "A1", "question": "q", "answerable": true}]',
            ":1: 'q' is not a string, or 'answerable' is not true or false. Give every item both.",
        ),
        (lines(ONE, ONE), ":2: the qid 'A1' is already used on line 1. Give every item its own qid."),
        ('{"qid": "A1", "qid": "A2"}', ":1: the key 'qid' occurs twice in one object. Keep one of them."),
        ('{"x": NaN}\n', ":1: column 7: NaN is not JSON. Leave the field out if there is no number."),
        (LFS_POINTER, f": is a Git LFS pointer, not the gold set. {IN_GIT}"),
        (b"\xff\n", ":1: column 1: byte 0xff is not valid UTF-8. Save the file as UTF-8."),
        (gzip.compress(b"{}\n"), ": is compressed, but sign-off needs plain lines. Keep it uncompressed in git."),
    ],
)
def test_gold_that_cannot_be_read_is_exit_code_2_with_line_and_reason(repo, blob, says):
    repo.write(GOLD, blob)
    repo.git("add", ".")
    for words in (("check",), ("signoff", "--reason", "reviewed"), ("diff",)):
        assert repo.gold(*words) == (2, f"{GOLD}{says}\n")


@pytest.mark.parametrize(("count", "more"), [(100, ""), (101, "1 more problem"), (103, "3 more problems")], ids=str)
def test_of_a_problem_of_many_lines_three_are_listed(repo, count, more):
    repo.write(GOLD, "{}\n" * count)
    repo.git("add", ".")
    code, output = repo.gold("check")
    assert (code, output.count(NO_QID)) == (2, 3)
    rest = "… and 97 more problems like this one.\n" + (f"… and {more} not shown.\n" if more else "")
    assert output.partition(f":3: {NO_QID}\n")[2] == rest


def test_gold_that_was_unreadable_can_be_mended_and_signed(fresh):
    fresh.write(GOLD, "not JSON\n" + lines(TWO))
    fresh.git("add", ".")
    fresh.commit("broken before the hook came")
    fresh.hook()
    fresh.stage(ONE, TWO)
    output = refused(fresh, "unsigned-change")
    assert codes(output) == ["unsigned-change"]
    fresh.fix(output)
    accepted(fresh)


def test_gold_that_is_a_link_or_a_folder_is_refused(repo):
    repo.git("rm", "-q", GOLD)
    (repo.path / "eval").mkdir(exist_ok=True)
    (repo.path / GOLD).symlink_to("/etc/passwd")
    repo.git("add", ".")
    code, output = repo.gold("check")
    assert (code, output) == (
        2,
        f"rag-eval: '{GOLD}' is a symbolic link in git, not a file. Keep it as a regular file.\n",
    )
    repo.git("rm", "-q", "-f", GOLD)
    repo.write(f"{GOLD}/cases.jsonl", lines(ONE))
    repo.git("add", ".")
    code, output = repo.gold("check")
    what = f"'{GOLD}' is a folder, but sign-off needs one file. Convert it: rag-eval import labels {GOLD}"
    assert (code, output) == (2, f"rag-eval: {what} --out eval/gold.jsonl\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--base", "nowhere"), "'nowhere' names no commit here. Fetch it first, or correct the name."),
        (("--base", " "), "'' names no commit here. Fetch it first, or correct the name."),
        (("--gold", "../x"), "'../x' is not a path inside the repository. Write it relative to the current folder."),
        (("--gold", "."), "'.' is not a path inside the repository. Write it relative to the current folder."),
        (("--gold", "x/y"), "'x/y' is not in git. Correct the path, or add the file first."),
        (("--gates", "x.yml"), "'x.yml' is not in git. Correct the path, or add the file first."),
    ],
)
def test_a_place_that_is_none_is_said(repo, words, says):
    assert repo.gold("check", *words) == (2, f"rag-eval: {says}\n")


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--base", "nowhere"),
        ("check", "--base", ""),
        ("check", "--staged", "--base", " "),
        ("signoff", "--reason", "ok", "--base", ""),
        ("diff", "--base", ""),
        ("check", "--base", "--help"),
        ("check", "--gold", "../outside.jsonl"),
        ("check", "--gold", "evl/gold.jsonl"),
        ("check", "--gold", "C:\\work\\eval\\gold.jsonl"),
        ("check", "--gates", "missing.yml"),
        ("signoff", "--reason", " "),
        ("signoff", "--reason", "ok", "--signer", "not an address"),
        ("signoff", "--reason", "ok", "--signer", "*@example.org"),
        ("diff", "--base", "nowhere"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_exit_code_2(repo, words):
    repo.stage(EDITED, TWO)
    try:
        code, output = repo.gold(*words)
    finally:
        assert len(repo.records()) == 1
    assert code == 2
    assert "Traceback" not in output


@pytest.mark.parametrize("words", [["--reason", b"caf\xe9"], ["--reason", "ok", "--signer", b"j\xe9@example.org"]])
def test_what_is_no_utf_8_is_not_recorded(repo, words):
    repo.stage(EDITED, TWO)
    code, output = repo.run("rag-eval", "gold", "signoff", *words)
    assert (code, len(repo.records())) == (2, 1)
    assert output.endswith("is not UTF-8 text. Check the encoding of your terminal or script.\n")


def test_nobody_named_nobody_signs(repo):
    repo.stage(EDITED, TWO)
    repo.git("config", "--unset", "user.email")
    code, output = repo.gold("signoff", "--reason", "reviewed")
    assert (code, "--signer EMAIL" in output) == (2, True)
    assert "Signed by bob@example.org: 1 changed" in repo.sign("--signer", "bob@example.org")


def test_hostile_names_give_no_workflow_commands(repo):
    repo.stage(ONE, TWO, row("::error::x\n##[add-mask]y"))
    code, output = repo.gold("check")
    assert code == 1
    assert not any(line.lstrip().startswith("::") for line in output.splitlines())
    assert "##[" not in output


# --- diff ------------------------------------------------------------------------------------------------------------


def test_diff_says_what_was_added_changed_removed_and_what_mutated(repo):
    repo.stage({**ONE, "question": "How heavy?", "gold_citations": ["c1"]}, THREE)
    code, output = repo.gold("diff")
    assert code == 0
    assert output.splitlines() == [
        (
            "changed 'A1': gold_citations absent → [\"c1\"]; "
            'question "How long is the warranty?" → "How heavy?" (another question under the same qid)'
        ),
        "removed 'A2'",
        "added 'A3'",
        "eval/gold.jsonl against HEAD: 1 added, 1 changed, 1 removed.",
    ]


def test_diff_tells_a_new_spelling_from_a_new_value(repo):
    repo.write(GOLD, lines(ONE).replace(", ", ",") + lines({**TWO, "min_citations": 1}))
    repo.git("add", ".")
    assert repo.gold("diff")[1].splitlines()[:2] == [
        "changed 'A1': only its formatting",
        "changed 'A2': min_citations absent → 1",
    ]


def test_diff_against_a_branch_shows_what_this_branch_does(repo):
    branch(repo, "topic", EDITED, TWO)
    assert repo.gold("diff", "--base", "main")[1].startswith("changed 'A1': gold_claim_substr [] → [\"two years\"]\n")
    assert repo.gold("diff")[1] == "eval/gold.jsonl against HEAD: no changes.\n"


def test_the_array_form_is_signed_element_by_element(fresh):
    fresh.write("eval-gates.yml", "gold: eval/gold.json\n")
    items = [{"qid": f"A{n}", "q": "q?", "answerable": True, "gold_ids": [], "gold_claim": "c"} for n in range(3)]
    fresh.write("eval/gold.json", json.dumps(items, indent=2))
    fresh.git("add", ".")
    fresh.fix(fresh.gold("check")[1])
    accepted(fresh)
    items[1]["gold_claim"] = "other"
    fresh.write("eval/gold.json", json.dumps(items, indent=2))
    fresh.git("add", ".")
    code, output = fresh.gold("check")
    assert (code, codes(output), "eval/gold.json:9:" in output) == (1, ["unsigned-change"], True), output
    fresh.fix(output)
    assert fresh.gold("check") == (0, "eval/gold.json: every change is signed off.\n")


# --- who signs -------------------------------------------------------------------------------------------------------

SIGNERS = "signers: {ann@example.org: {github: ann}, bob@example.org: {github: bob}}"


def with_policy(repo, policy):
    """Commit a policy, and a change of the gold on top of it that is staged only."""
    repo.write("eval-gates.yml", f"signoff: {{{policy}}}\n")
    repo.git("add", "eval-gates.yml")
    assert repo.commit("the policy")[0] == 0
    repo.stage(EDITED, TWO)


def new_records(repo):
    """The staged records that were not there before, in the order of their names."""
    names = repo.git("diff", "--cached", "--name-only", "--diff-filter=A").splitlines()
    return [Record.read(json.loads((repo.path / name).read_text())) for name in names]


@needs_ssh_keygen
def test_a_key_signs_what_is_recorded(repo, tmp_path):
    keys = Keys(tmp_path)
    repo.stage(EDITED, TWO)
    repo.sign("--key", str(keys.file("ann")))
    (record,) = new_records(repo)
    assert record.signer == "ann@example.org"
    assert verify(record, keys.allowed("ann"), time.time()) is None
    accepted(repo)


@needs_ssh_keygen
def test_a_key_in_the_home_folder_is_found_where_the_shell_leaves_the_tilde_to_us(repo, tmp_path):
    keys = Keys(tmp_path)
    repo.stage(EDITED, TWO)
    key = f"--key=~/{keys.file('ann').relative_to(tmp_path)}"
    code, output = repo.gold("signoff", "--reason", "x", key, HOME=str(tmp_path))
    assert (code, len(new_records(repo))) == (0, 1), output


def test_a_key_that_is_none_leaves_nothing_behind(repo):
    repo.stage(EDITED, TWO)
    code, output = repo.gold("signoff", "--reason", "x", "--key", "gone")
    assert (code, "--key" in output, new_records(repo)) == (2, True, []), output


def test_where_the_policy_wants_signatures_a_key_is_asked_for(repo):
    with_policy(repo, "require: signature, allowed_signers: signers")
    code, output = repo.gold("signoff", "--reason", "x")
    assert (code, "Add your SSH key: --key" in output, new_records(repo)) == (2, True, []), output
    assert "--key ~/.ssh/id_ed25519 --reason" in repo.gold("check")[1]


def test_a_signer_whom_the_base_does_not_name_signs_nothing(repo):
    with_policy(repo, "signers: {bob@example.org: {github: bob}}")
    repo.write("eval-gates.yml", f"signoff: {{{SIGNERS}}}\n")
    repo.git("add", "eval-gates.yml")
    repo.sign()
    refused(repo, "unknown-signer", "unsigned-change")
    repo.git("rm", "-q", "-f", *(f"{RECORDS}/{record.name}" for record in new_records(repo)))
    repo.sign("--signer", "bob@example.org")
    accepted(repo)


def test_with_four_eyes_another_signs_once_more_and_the_hook_says_what_it_leaves_to_ci(repo):
    with_policy(repo, f"four_eyes: true, {SIGNERS}")
    repo.sign()
    assert "Nothing to sign" in repo.sign()
    repo.sign("--signer", "bob@example.org")
    item, other = sorted(new_records(repo), key=lambda record: record.signer)
    assert (item.signer, other.signer, item.changes) == ("ann@example.org", "bob@example.org", other.changes)
    assert repo.gold("check") == (0, f"Checked only by the GitHub Action: four eyes.\n{SIGNED}")


def forked(repo, policy):
    """A branch off a policy, with a change of the gold staged; what follows happens on main."""
    with_policy(repo, policy)
    repo.git("reset", "-q", "--hard")
    repo.git("branch", "topic")


def on_topic(repo, *words):
    """The change of the gold on that branch, signed and committed."""
    repo.git("checkout", "-q", "topic")
    repo.stage(EDITED, TWO)
    repo.sign(*words)
    accepted(repo)


@needs_ssh_keygen
def test_a_key_that_the_base_took_off_the_list_signs_nothing_on_a_branch_that_left_before(repo, tmp_path):
    keys = Keys(tmp_path)
    repo.write("signers", keys.allowed("ann", "bob"))
    repo.git("add", "signers")
    forked(repo, "require: signature, allowed_signers: signers")
    repo.write("signers", keys.allowed("bob"))
    repo.git("commit", "-q", "-a", "-m", "Ann has lost her key")
    on_topic(repo, "--key", str(keys.file("ann")))
    code, output = repo.gold("check", "--base", "main")
    assert (code, sorted(set(codes(output)))) == (1, ["unknown-signer", "unsigned-change"]), output
    ends = {"PRE_COMMIT_FROM_REF": "main", "PRE_COMMIT_TO_REF": "topic"}
    code, output = repo.gold("check", "--staged", **ends)
    assert (code, "unknown-signer" in codes(output)) == (1, True), output


KEYS = (
    'ann@example.org namespaces="gold-signoff@rag-eval-action" '
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGxVKlPZbOEzWS6n2rmYmbP4ELYyIr3y5r2U8FsEhVSd\n"
)
BY_SIGNATURE = "signoff: {require: signature, allowed_signers: signers}\n"


def commit_signers(repo, signers, gates=BY_SIGNATURE):
    """Commit a policy with a list of signers, past the hook."""
    repo.write("eval-gates.yml", gates)
    repo.write("signers", signers)
    repo.git("add", "eval-gates.yml", "signers")
    repo.git("commit", "-q", "--no-verify", "-m", "signers")


def assert_broken(repo, *options):
    fix = 'Write it like: bob@example.org namespaces="gold-signoff@rag-eval-action" ssh-ed25519 AAAA…'
    code, output = repo.gold("check", *options)
    assert (code, output.count("\n")) == (2, 1)
    assert output == f"signers:1: 'namespaces' is missing, so the key could sign for any purpose. {fix}\n"


@pytest.mark.parametrize("options", [(), ("--base", "main"), ("--all-files",), ("--worktree",)])
def test_a_broken_list_of_signers_is_reported_before_the_first_record(repo, options):
    commit_signers(repo, "ann@example.org ssh-ed25519 AAAA\n")
    repo.git("checkout", "-q", "-b", "topic")
    assert_broken(repo, *options)


def test_a_change_that_breaks_the_list_of_signers_is_refused_and_one_that_repairs_it_passes(repo):
    commit_signers(repo, KEYS)
    repo.write("signers", "ann@example.org ssh-ed25519 AAAA\n")
    assert repo.gold("check")[0] == 0
    repo.git("add", "signers")
    assert_broken(repo)
    assert repo.commit("break the list")[0] != 0
    commit_signers(repo, "ann@example.org ssh-ed25519 AAAA\n")
    repo.git("checkout", "-q", "-b", "repair")
    commit_signers(repo, KEYS)
    code, output = repo.gold("check", "--base", "main")
    assert code == 0, output


def test_a_change_that_requires_signatures_by_a_broken_list_is_refused(repo):
    repo.git("checkout", "-q", "-b", "topic")
    commit_signers(repo, "ann@example.org ssh-ed25519 AAAA\n")
    assert_broken(repo, "--base", "main")


@needs_ssh_keygen
def test_what_the_base_asks_of_a_record_since_then_is_asked_of_a_branch_that_left_before(repo, tmp_path):
    forked(repo, "require: record")
    repo.write("signers", Keys(tmp_path).allowed("ann"))
    repo.write("eval-gates.yml", "signoff: {require: signature, allowed_signers: signers}\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "ask for signatures")
    on_topic(repo)
    code, output = repo.gold("check", "--base", "main")
    assert (code, sorted(set(codes(output)))) == (1, ["missing-signature", "unsigned-change"]), output
    assert "gold signoff --base main --key ~/.ssh/id_ed25519" in output


def test_a_baseline_with_four_eyes_signs_nothing_that_is_signed(repo):
    with_policy(repo, f"four_eyes: true, {SIGNERS}")
    output = repo.sign("--baseline", "--signer", "bob@example.org")
    assert ": 1 changed." in output


PROGRAMS = [
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.alternateRefsCommand",
    "gpg.program",
]
PROGRAMS += [
    "diff.external",
    "diff.x.command",
    "diff.x.textconv",
    "merge.x.driver",
    "credential.helper",
    "gpg.ssh.program",
]
PROGRAMS += [
    "filter.x.clean",
    "filter.x.smudge",
    "filter.x.process",
    "alias.rev-parse",
    "alias.hash-object",
    "sequence.editor",
]


@pytest.fixture
def trapped(repo, tmp_path):
    """A repository that configures a program wherever git takes one; the file that the program writes."""
    trap, sprung = tmp_path / "trap.sh", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{sprung}'\nexit 1\n")
    trap.chmod(0o755)
    hooks = repo.path / ".git/hooks"
    shutil.rmtree(hooks, ignore_errors=True)
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "pre-commit", "fsmonitor-watchman", "pre-auto-gc"):
        (hooks / name).symlink_to(trap)
    repo.stage(EDITED, TWO)
    repo.write(".gitattributes", "* filter=x diff=x merge=x text=auto eol=crlf ident\n")
    repo.git("add", ".gitattributes")
    for key in PROGRAMS:
        repo.git("config", key, f"!{trap}" if key.startswith("alias") else str(trap))
    repo.git("config", "filter.x.required", "true")
    repo.git("config", "core.untrackedCache", "true")
    (repo.path / GOLD).touch()
    sprung.unlink(missing_ok=True)
    return sprung


@pytest.mark.parametrize(
    "words",
    [
        ["signoff", "--reason", "reviewed"],
        ["check", "--staged"],
        ["check", "--base", "HEAD"],
        ["check"],
        ["diff"],
        ["diff", "--base", "HEAD"],
        ["stats"],
        ["lint"],
        ["freeze", "v1"],
    ],
    ids=" ".join,
)
def test_no_program_that_a_repository_configures_is_run(trapped, repo, words):
    environ = {"GIT_EXTERNAL_DIFF": str(repo.path.parent / "trap.sh"), "GIT_PAGER": str(repo.path.parent / "trap.sh")}
    code, output = repo.gold(*words, **environ)
    assert code in (0, 1, 2), output
    assert not trapped.exists(), trapped.read_text()


def test_a_sign_off_is_recorded_whatever_a_repository_configures(trapped, repo):
    before = repo.records()
    repo.sign()
    assert len(repo.records()) == len(before) + 1
    assert repo.run("git", "-c", "core.fsmonitor=false", "cat-file", "blob", f":{RECORDS}/{repo.records()[-1]}")[0] == 0
    assert repo.gold("check", "--staged")[0] == 0
    assert not trapped.exists(), trapped.read_text()
