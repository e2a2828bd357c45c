"""The hook and CI agree: for each history of a branch, `rag-eval gold check` and the action find the same."""

from __future__ import annotations

import io
import json
import os
from contextlib import chdir, redirect_stdout

import pytest

from fake_github import FakeGitHub, Fault
from gitrepo import GOLD, RECORDS, Repo, codes, lines, row
from seams import GitHub, Network, action

FILLER = [row(f"M{number}", f"filler {number}?", gold_citations=[]) for number in range(6)]
ONE, TWO = row("A1", gold_citations=[]), row("A2", "How wide is it?", gold_citations=[])
THREE = row("A3", "Who made it?", answerable=False, gold_citations=[])
EDITED = {**ONE, "gold_claim_substr": ["two years"]}
GATES = "version: 1\nsignoff: {require: record}\n"
HISTORIES = {}


class Branch(Repo):
    """A repository whose branches are edited, signed or not."""

    def put(self, *rows, sign=True, path=GOLD, end="\n", message="an edit"):
        """Commit these rows between the filler, signed or not."""
        self.stage(*rows[:1], *FILLER, *rows[1:], path=path, end=end)
        if sign:
            self.sign("--mutates")
        self.git("commit", "-q", "-m", message)

    def on(self, branch, start=None):
        self.git("checkout", "-q", *(["-b", branch, start] if start else [branch]))


@pytest.fixture
def repo(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("GIT_", "PRE_COMMIT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    result = Branch.create(tmp_path / "repo", None)
    result.write("eval-gates.yml", GATES)
    result.write(".gitignore", "/runs/\n/rag-eval-report/\n")
    result.git("add", ".")
    result.put(ONE, TWO)
    result.on("topic", "main")
    return result


def history(*expected, ci=None):
    """Name a history by its function, and say what both sides find; ``ci`` where the action has less to look at."""

    def keep(function):
        HISTORIES[function.__name__] = (function, sorted(expected), sorted(ci or expected))
        return function

    return keep


# --- histories -------------------------------------------------------------------------------------------------------


@history()
def nothing_of_the_gold(repo):
    repo.write("readme.txt", "hello\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "other")


@history()
def a_signed_edit(repo):
    repo.put(EDITED, TWO)


@history("unsigned-change")
def an_unsigned_edit(repo):
    repo.put(EDITED, TWO, sign=False)


@history()
def two_signed_edits_of_one_item(repo):
    repo.put(EDITED, TWO)
    repo.put({**EDITED, "tags": ["x"]}, TWO)


@history("broken-chain")
def a_signed_edit_and_an_unsigned_one_behind_it(repo):
    repo.put(EDITED, TWO)
    repo.put({**EDITED, "tags": ["x"]}, TWO, sign=False)


@history("mutation")
def removed_and_added_anew_as_another_question(repo):
    for rows in ([TWO], [{**ONE, "answerable": False}, TWO]):
        repo.stage(*rows, *FILLER)
        repo.sign()
        repo.git("commit", "-q", "-m", "each fine by itself")


@history()
def squashed(repo):
    two_signed_edits_of_one_item(repo)
    repo.on("squash", "main")
    repo.git("merge", "-q", "--squash", "topic")
    repo.git("commit", "-q", "-m", "squashed")


@history()
def rebased_onto_a_main_that_moved(repo):
    repo.put(EDITED, TWO)
    repo.on("main")
    repo.put(ONE, {**TWO, "tags": ["x"]})
    repo.on("topic")
    repo.git("rebase", "-q", "main")


@history()
def cherry_picked(repo):
    repo.put(EDITED, TWO)
    repo.on("pick", "main")
    repo.git("commit", "-q", "--allow-empty", "-m", "something else first")
    repo.git("cherry-pick", "topic")


@history("unsigned-change")
def cherry_picked_without_its_record(repo):
    repo.put(EDITED, TWO)
    repo.on("pick", "main")
    repo.git("cherry-pick", "--no-commit", "topic")
    repo.git("reset", "-q", "--", RECORDS)
    repo.git("commit", "-q", "-m", "the gold alone")
    repo.git("clean", "-q", "-f", "-d")


@history()
def merged_with_a_concurrent_sign_off_of_another_item(repo):
    repo.put(EDITED, TWO)
    repo.on("main")
    repo.put(ONE, {**TWO, "tags": ["x"]})
    repo.on("topic")
    repo.git("merge", "-q", "--no-edit", "main")


@history()
def behind_a_main_with_a_concurrent_sign_off(repo):
    repo.put(EDITED, TWO)
    repo.on("main")
    repo.put(ONE, {**TWO, "tags": ["x"]})
    repo.on("topic")


@history("broken-chain")
def merged_with_a_concurrent_sign_off_of_the_same_item(repo):
    repo.put(EDITED, TWO)
    repo.on("main")
    repo.put({**ONE, "tags": ["x"]}, TWO)
    repo.on("topic")
    repo.run("git", "merge", "-q", "main")
    repo.stage({**EDITED, "tags": ["x"]}, *FILLER, TWO)
    repo.git("commit", "-q", "-m", "resolved by hand")


@history()
def reverted_within_the_branch(repo):
    repo.put(EDITED, TWO)
    repo.git("revert", "--no-edit", "HEAD")


@history("record-removed", "unsigned-change")
def a_revert_of_what_is_on_main(repo):
    repo.on("main")
    repo.put(EDITED, TWO)
    repo.on("back", "main")
    repo.git("revert", "--no-edit", "HEAD")


@history("replayed-record")
def applied_again_after_a_signed_revert(repo):
    repo.on("main")
    repo.put(EDITED, TWO)
    repo.put(ONE, TWO)
    repo.on("again", "main")
    repo.put(EDITED, TWO, sign=False)


@history("replayed-record")
def brought_back_by_a_branch_that_left_early(repo):
    repo.on("main")
    start = repo.git("rev-parse", "HEAD")
    repo.put(EDITED, TWO)
    used = repo.git("rev-parse", "HEAD")
    repo.put(ONE, TWO)
    repo.on("early", start)
    repo.git("checkout", used, "--", GOLD, RECORDS)
    repo.git("commit", "-q", "-m", "new, against its own past")
    repo.git("merge", "-q", "--no-edit", "-X", "ours", "main")


@history(*["unsigned-change"] * 16)
def the_gold_renamed(repo):
    repo.write("eval-gates.yml", f"{GATES}gold: eval/renamed.jsonl\n")
    repo.git("mv", GOLD, "eval/renamed.jsonl")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "renamed")


@history()
def the_gold_renamed_and_signed(repo):
    repo.write("eval-gates.yml", f"{GATES}gold: eval/renamed.jsonl\n")
    repo.git("mv", GOLD, "eval/renamed.jsonl")
    repo.git("add", ".")
    repo.sign()
    repo.git("commit", "-q", "-m", "renamed")


@history()
def line_endings_of_the_work_tree(repo):
    repo.git("config", "core.autocrlf", "input")
    repo.put(EDITED, TWO, end="\r\n")


@history("unsigned-change")
def line_endings_and_an_edit_in_the_commit(repo):
    repo.put(EDITED, TWO, sign=False, end="\r\n")


@history("unsigned-change")
def a_commit_of_one_path(repo):
    repo.write(GOLD, lines(EDITED, *FILLER, TWO))
    repo.write("other.txt", "staged, and not part of the commit")
    repo.git("add", "other.txt")
    repo.git("commit", "-q", "-m", "by path", "--", GOLD)
    repo.git("reset", "-q", "--hard")


@history("unsigned-change")
def nothing_but_a_deletion(repo):
    repo.stage(ONE, *FILLER)
    repo.git("commit", "-q", "-m", "one item less")


@history(*["unsigned-change"] * 8, ci=["exit 2"])  # without gold there is nothing to score
def the_whole_gold_deleted(repo):
    repo.git("rm", "-q", GOLD)
    repo.git("commit", "-q", "-m", "no gold")


@history("record-removed")
def the_records_deleted(repo):
    repo.git("rm", "-q", "-r", RECORDS)
    repo.git("commit", "-q", "-m", "no records")


@history()
def committed_in_a_linked_work_tree(repo):
    repo.on("main")
    repo.git("worktree", "add", "-q", "../linked", "topic")
    Branch(repo.path.parent / "linked").put(EDITED, TWO)
    repo.git("worktree", "remove", "../linked")
    repo.on("topic")


@history("unsigned-change")
def beside_a_submodule(repo):
    other = Branch.create(repo.path.parent / "other", None)
    other.write("file.txt", "x")
    other.git("add", ".")
    other.git("commit", "-q", "-m", "other")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "vendor")
    repo.put(EDITED, TWO, sign=False)


@history("exit 2")
def a_submodule_in_the_place_of_the_gold(repo):
    other = repo.git("rev-parse", "HEAD")
    repo.git("rm", "-q", "--cached", GOLD)
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{other},{GOLD}")
    repo.git("commit", "-q", "-m", "a submodule")
    (repo.path / GOLD).unlink()


@history("exit 2")
def a_link_in_the_place_of_the_gold(repo):
    repo.git("mv", GOLD, "eval/real.jsonl")
    (repo.path / GOLD).symlink_to("real.jsonl")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "a link")


@history("exit 2")
def gold_that_says_a_qid_twice(repo):
    repo.put(ONE, ONE, sign=False)


@history("exit 2")
def gold_without_an_item(repo):
    repo.write(GOLD, "\n")
    repo.git("commit", "-q", "-a", "-m", "empty")


@history("exit 2")
def gold_in_large_file_storage(repo):
    repo.write(GOLD, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    repo.git("commit", "-q", "-a", "-m", "a pointer")


# --- both sides ------------------------------------------------------------------------------------------------------


def by_the_hook(repo):
    """What the command finds on the branch; the hook, a push and CI by hand all come to this."""
    code, output = repo.gold("check", "--base", "main")
    assert code == 2 or (code == 1) == bool(codes(output)), output
    return ["exit 2"] if code == 2 else sorted(codes(output))


def by_the_action(repo, folder, api=True):
    """What the action finds in the merge commit of a pull request of the branch."""
    base, head = repo.git("rev-parse", "main"), repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "--detach", "main")
    repo.git("merge", "-q", "--no-ff", "--no-edit", head)
    repo.write("runs/trace.jsonl", lines(*({"qid": qid, "answer": "x"} for qid in ("A1", "A2"))))
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 2, "head": {"sha": head}, "base": {"sha": base}}}))
    output, fake = folder / "output", FakeGitHub()
    output.unlink(missing_ok=True)
    fake.repository_at(repo.path)
    fake.faults = [] if api else [Fault("GET ", 503, times=99)]
    environ = {
        "INPUT_GITHUB-TOKEN": "t",
        "INPUT_COMMENT": "off",
        "GITHUB_WORKSPACE": str(repo.path),
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REF": "refs/pull/2/merge",
        "GITHUB_SHA": repo.git("rev-parse", "HEAD"),
        "GITHUB_REPOSITORY": "octo/hello",
        "GITHUB_OUTPUT": str(output),
    }
    with fake.serving(), chdir(repo.path), redirect_stdout(io.StringIO()) as text:
        code = action({**environ, "GITHUB_API_URL": fake.url}, quick)
    assert code in (1, 2), text.getvalue()  # the answers are of no worth: only what is found of the gold counts
    return ["exit 2"] if code == 2 else sorted(_signoff_codes(repo))


def quick(api_url, token, repository):
    return GitHub(api_url, token, repository, Network(sleep=lambda _: None))


def _signoff_codes(repo):
    """The errors that are of the sign-off."""
    report = json.loads((repo.path / "rag-eval-report/report.json").read_bytes())
    others = {"refuses-everything", "answers-everything"}
    return [item["code"] for item in report["findings"] if item["level"] == "error" and item["code"] not in others]


@pytest.mark.parametrize("name", HISTORIES)
def test_the_hook_and_ci_find_the_same(repo, tmp_path, name):
    play, found_by_hook, found_by_ci = HISTORIES[name]
    play(repo)
    tip = repo.git("rev-parse", "HEAD")
    assert by_the_hook(repo) == found_by_hook
    assert by_the_action(repo, tmp_path) == found_by_ci
    repo.git("checkout", "-q", "--force", tip)
    assert by_the_action(repo, tmp_path, api=False) == found_by_ci
