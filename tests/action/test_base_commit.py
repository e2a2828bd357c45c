"""Which commit decides, for every event, from either history; and what happens where neither can say."""

from __future__ import annotations

import json
import re

import pytest

from fake_github import FakeGitHub, Fault
from project import GATES, GOLD, Project, apart, besides_tracked, gates, gold_of, wrong
from rag_eval.action.base_commit import ApiHistory, DecidingCommit, GitHistory, Trigger, authority, find
from rag_eval.git import NOTHING
from rag_eval.run.authority import WorkTree
from seams import Git, GitHub, RagEvalError, UsageError, action

BASE, HEAD, MERGE, OLD, TIP = (digit * 40 for digit in "12345")
PULL = {"pull_request": {"number": 2, "head": {"sha": HEAD}, "base": {"ref": "release", "sha": OLD}}}
DEFAULT = {"repository": {"default_branch": "trunk"}}


class Told:
    """A history that only says what it was told; anything else is an error of the test."""

    through = "what it was told"

    def __init__(self, parents=None, names=None, default="trunk"):
        self._parents, self._names, self._default = parents or {}, names or {"trunk": TIP}, default

    def parents(self, commit):
        return self._parents[commit]

    def named(self, ref):
        return self._names[ref]

    def branch(self, name):
        return self._names[name]

    def default(self):
        return self._default


def against(name, event=None, ref="", sha=MERGE, base_ref="", **message):
    return find(Trigger(name, event or {}, ref, sha, base_ref), Told(**message))


@pytest.mark.parametrize("event", ["pull_request", "pull_request_review"])
def test_a_pull_request_is_held_against_the_first_parent_of_its_merge_commit(event):
    """The event's own base.sha may be older than what the merge commit was made of."""
    result = against(event, PULL, base_ref="main", parents={MERGE: [BASE, HEAD]})
    assert result == DecidingCommit("main", BASE, head=HEAD)


@pytest.mark.parametrize("parents", [[HEAD], [], [BASE, HEAD, OLD]])
def test_without_a_merge_commit_the_event_names_the_base(parents):
    assert against("pull_request", PULL, parents={MERGE: parents}) == DecidingCommit("release", OLD, direct=False)


def test_a_merge_by_the_author_names_no_base():
    """Where the last commit itself is tested, its first parent may be any commit."""
    result = against("pull_request", PULL, "refs/pull/2/head", HEAD, parents={HEAD: [TIP, BASE]})
    assert result == DecidingCommit("release", OLD, direct=False)


def test_a_pull_request_target_runs_on_the_base_itself():
    assert against("pull_request_target", PULL, sha=BASE, base_ref="main") == DecidingCommit("main", BASE, direct=False)


def test_a_pull_request_target_into_another_branch_than_it_runs_on_is_held_against_that():
    """GitHub takes such a workflow from the default branch, whatever the pull request is to be merged into."""
    result = against("pull_request_target", PULL, "refs/heads/trunk", TIP, "release", names={"release": BASE})
    assert result == DecidingCommit("release", BASE, direct=False)
    result = against("pull_request_target", PULL, "refs/heads/release", OLD, "release", names={})
    assert result == DecidingCommit("release", OLD, direct=False)


QUEUED = f"refs/heads/gh-readonly-queue/main/pr-7-{BASE}"


@pytest.mark.parametrize(
    ("ref", "event", "expected"),
    [
        (QUEUED, {"merge_group": {"base_ref": "refs/heads/main", "base_sha": BASE}}, DecidingCommit("main", BASE)),
        (QUEUED, {"merge_group": {"base_ref": "refs/heads/easy", "base_sha": OLD}}, DecidingCommit("main", BASE)),
        (QUEUED.replace("main/", "team/main/"), {}, DecidingCommit("team/main", BASE)),
        ("refs/heads/other", {"merge_group": {"base_ref": "refs/heads/main", "base_sha": OLD}}, None),
    ],
    ids=["agreeing", "disagreeing", "branch with a slash", "by the event alone"],
)
def test_a_merge_queue_names_the_commit_that_it_merges_onto(ref, event, expected):
    assert against("merge_group", event, ref) == (expected or DecidingCommit("refs/heads/main", OLD))


def test_a_push_to_the_default_branch_is_held_against_what_it_was_before():
    result = against("push", {**DEFAULT, "before": OLD}, "refs/heads/trunk")
    assert (result.commit, result.direct) == (OLD, True)


@pytest.mark.parametrize("zeros", ["0" * 40, "0" * 64])
def test_before_the_first_push_there_is_nothing(zeros):
    assert against("push", {**DEFAULT, "before": zeros}, "refs/heads/trunk").commit == ""


@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("push", "refs/heads/feature"),
        ("push", "refs/heads/trunk/feature"),
        ("push", "refs/tags/trunk"),
        ("schedule", "refs/heads/trunk"),
        ("workflow_dispatch", "refs/heads/feature"),
        ("workflow_dispatch", "refs/heads/trunk"),
        ("repository_dispatch", "refs/heads/trunk"),
        ("release", "refs/tags/v1"),
        ("of a later GitHub", ""),
    ],
)
def test_all_else_is_held_against_the_default_branch(name, ref):
    """A branch that is pushed to step by step moves no goalposts by that."""
    for event in ({**DEFAULT, "before": OLD}, {"before": OLD}):
        assert against(name, event, ref) == DecidingCommit("trunk", TIP, direct=False)


@pytest.mark.parametrize(
    ("name", "event", "ref", "sha"),
    [
        ("pull_request", PULL, "", ""),
        ("pull_request", {}, "", MERGE),
        ("pull_request", {"pull_request": {"base": {"sha": "main"}}}, "", MERGE),
        ("pull_request", {"pull_request": {"base": {"sha": BASE + "\n"}}}, "", MERGE),
        ("pull_request_target", PULL, "", "HEAD"),
        ("merge_group", {}, "refs/heads/main", MERGE),
        ("merge_group", {"merge_group": "none"}, "", MERGE),
        ("push", DEFAULT, "refs/heads/trunk", MERGE),
        ("push", {**DEFAULT, "before": "--help"}, "refs/heads/trunk", MERGE),
    ],
)
def test_an_event_that_names_no_commit_is_refused(name, event, ref, sha):
    fix = "Use the events of the workflow that rag-eval init writes."
    with pytest.raises(UsageError, match=rf"^The event names no base: [a-zA-Z_.]+ is missing\. {fix}$"):
        against(name, event, ref, sha, parents={MERGE: [HEAD]})


# --- over a repository -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """main with one more commit than where pr left it; pr is not merged yet."""
    with pytest.MonkeyPatch.context() as patch:
        apart(patch)
        yield _begun(tmp_path_factory.mktemp("begun") / "repo")


def _begun(path):
    made = Project.made(path)
    made.fork = made.git("rev-parse", "main")
    made.head = made.change("pr", gates=gates(chr="{min: 0.5}"))
    made.git("checkout", "-q", "main")
    made.write("other.txt", "main went on\n")
    made.base = made.done("main goes on")
    return made


@pytest.fixture
def served(project):
    with FakeGitHub().serving() as fake:
        fake.repository_at(project.path)
        fake.add_pull(2, project.head, project.base)
        yield fake


def event_of(project, **more):
    ends = {"head": {"sha": project.head}, "base": {"ref": "main", "sha": project.fork}}
    return {"pull_request": {"number": 2, **ends}, "repository": {"default_branch": "main"}, **more}


def histories(project, served):
    tree = WorkTree(str(project.path))
    api = GitHub(served.url, "t0ken", "octo/hello")
    return {"api": lambda: ApiHistory(api, tree), "git": lambda: GitHistory(str(project.path), foreign=True)}


def decided(project, served, trigger, gates_ref="base", through=("api", "git")):
    openings = histories(project, served)
    return authority(trigger, gates_ref, "policy", WorkTree(str(project.path)), [openings[name] for name in through])


def state(tree):
    """The commit of a tree, told by what it holds."""
    return tree.files(GATES, GOLD, "other.txt")


@pytest.mark.parametrize("through", ["api", "git"])
@pytest.mark.parametrize("checkout", ["merge", "head", "branch"])
def test_what_a_pull_request_is_held_against(project, served, through, checkout):
    merged = project.merge()
    if checkout != "merge":
        project.git("checkout", "-q", project.head if checkout == "head" else "pr")
    trigger = Trigger("pull_request", event_of(project), "refs/pull/2/merge", merged, "main")
    who = decided(project, served, trigger, through=[through])
    # A checkout of the head alone began where it left the base; what main did since is none of its doing.
    fork = project.fork if checkout == "head" else project.base
    git = Git(str(project.path))
    assert (who.ref, who.commit, who.ci) == ("main", project.base, True)
    assert state(who.gates) == state(git.at(project.base))
    assert state(who.fork) == state(git.at(fork))
    assert (who.used_records is NOTHING) == (fork == project.base)
    assert state(who.after) == state(git.at(project.head if checkout == "head" else merged))
    assert {merged, project.head} == who.commits


@pytest.mark.parametrize("through", ["api", "git"])
def test_a_single_parent_commit_under_test_began_where_it_left_the_base(project, served, through):
    project.git("checkout", "-q", "pr")
    event = event_of(project)
    event["pull_request"]["base"]["sha"] = project.base
    trigger = Trigger("pull_request", event, "refs/pull/2/merge", project.head, "main")
    who = decided(project, served, trigger, through=[through])
    assert who.commit == project.base
    assert state(who.fork) == state(Git(str(project.path)).at(project.fork))


def test_a_first_push_is_held_against_nothing(project, served):
    """Only the API says which branch is the default one."""
    trigger = Trigger("push", event_of(project, before="0" * 40), "refs/heads/main", project.base, "")
    who = decided(project, served, trigger)
    assert (who.commit, who.gates, who.fork, who.used_records) == ("", NOTHING, NOTHING, NOTHING)


@pytest.mark.parametrize("name", ["schedule", "workflow_dispatch", "push"])
def test_a_feature_branch_is_held_against_the_default_branch(project, served, name):
    project.git("checkout", "-q", "--detach", project.head)
    trigger = Trigger(name, event_of(project, before=project.fork), "refs/heads/pr", project.head, "")
    who = decided(project, served, trigger)
    assert (who.ref, who.commit, who.through) == ("main", project.base, "GitHub's API")
    assert state(who.fork) == state(Git(str(project.path)).at(project.fork))


def test_names_of_a_checkout_are_not_trusted(project, served):
    trigger = Trigger("workflow_dispatch", event_of(project), "refs/heads/pr", project.head, "")
    for event in (trigger.event, {}):
        with pytest.raises(RagEvalError, match=r" Only GitHub's API knows the default branch\. Give the job "):
            decided(project, served, trigger._replace(event=event), through=["git"])
    pull = Trigger("pull_request", event_of(project), "refs/pull/2/merge", project.merge(), "main")
    with pytest.raises(RagEvalError) as refused:
        decided(project, served, pull, "release/1", through=["git"])
    why = (
        "Only GitHub's API knows the commit of release/1. Give the job `contents: read` and the action its github-token"
    )
    fix = "or check out with fetch-depth: 0. If gates-ref 'release/1' is wrong, correct it."
    assert str(refused.value) == f"The base cannot be read, so nothing can be judged. {why}, {fix}"
    target = Trigger("pull_request_target", event_of(project), "refs/heads/trunk", project.base, "main")
    with pytest.raises(RagEvalError, match=r" Only GitHub's API knows the commit of main\. Give the job "):
        decided(project, served, target, through=["git"])


@pytest.mark.parametrize(
    ("gates_ref", "ref"), [("base", "main"), ("default-branch", "main"), ("release/1", "release/1"), ("v1", "v1")]
)
def test_gates_ref_names_whose_gates_decide(project, served, gates_ref, ref):
    project.git("branch", "release/1", project.fork)
    project.git("tag", "v1", project.fork)
    trigger = Trigger("pull_request", event_of(project), "", project.merge(), "main")
    who = decided(project, served, trigger, gates_ref)
    commit = project.base if ref == "main" else project.fork
    assert (who.ref, who.commit) == (ref, commit)
    assert state(who.gates) == state(Git(str(project.path)).at(commit))
    assert state(who.fork) == state(Git(str(project.path)).at(project.base))


def test_gates_ref_may_be_a_commit_where_the_api_cannot_be_asked(project, served):
    trigger = Trigger("pull_request", event_of(project), "", project.merge(), "main")
    who = decided(project, served, trigger, project.fork, through=["git"])
    assert (who.commit, who.through, who.unknown) == (project.fork, "git", False)


def test_gates_that_the_base_is_not_known_to_have_held_are_told_apart(project, served):
    """An earlier commit of the pull request may be named as well as one of the base."""
    earlier = project.head
    project.git("checkout", "-q", "pr")
    project.head = project.done("one more")
    project.git("branch", "elsewhere", earlier)
    project.git("branch", "release", project.fork)
    trigger = Trigger("pull_request", event_of(project), "", project.merge(), "main")
    through = {"base": False, "default-branch": False, "release": False, "elsewhere": True, earlier: True}
    assert {ref: decided(project, served, trigger, ref).unknown for ref in through} == through
    assert decided(project, served, trigger, earlier, through=["git"]).unknown


def test_gates_of_the_default_branch_are_known_to_a_pull_request_into_another(project, served):
    event = event_of(project)
    event["pull_request"]["base"] = {"ref": "stack", "sha": project.fork}
    trigger = Trigger("pull_request", event, "", project.head, "stack")
    assert not decided(project, served, trigger, project.base).unknown
    assert decided(project, served, trigger, project.base, through=["git"]).unknown  # a clone cannot say which that is


def test_gates_of_a_commit_whose_history_is_not_at_hand_are_not_known(project, served, run, shallow):
    sha = shallow(2)
    served.faults[:] = OUT_OF_REACH
    assert run(sha=sha, gates_ref=project.fork) == 2  # the commit itself is not there
    served.faults[:] = [Fault("/compare/", 404, times=10**9)]
    assert run(sha=sha, gates_ref=project.fork) == 0
    assert [item["code"] for item in besides_tracked(run.report["findings"])] == ["gates-from-elsewhere"]


def test_gates_ref_head_asks_nobody(project, served):
    trigger = Trigger("pull_request", event_of(project), "", project.merge(), "main")
    who = decided(project, served, trigger, "head", through=[])
    assert (who.gates, who.fork, served.seen) == (None, NOTHING, [])


# --- through the action ----------------------------------------------------------------------------------------------


@pytest.fixture
def run(project, served, tmp_path, capsys):
    """The action on the merge commit of pr; what it printed and put out stands on the function."""

    def run(name="pull_request", event=None, ref="refs/pull/2/merge", sha=None, **given):
        message, files = (
            tmp_path / "event.json",
            {item: tmp_path / item for item in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")},
        )
        message.write_text(json.dumps(event_of(project, **(event or {}))))
        for file in files.values():
            file.write_text("")
        inputs = {"github_token": "t0ken", "comment": "off", **given}
        environ = {
            **{f"INPUT_{item.upper().replace('_', '-')}": value for item, value in inputs.items()},
            **{item: str(file) for item, file in files.items()},
            "GITHUB_WORKSPACE": str(project.path),
            "GITHUB_EVENT_PATH": str(message),
            "GITHUB_EVENT_NAME": name,
            "GITHUB_REF": ref,
            "GITHUB_SHA": sha or project.git("rev-parse", "HEAD"),
            "GITHUB_BASE_REF": "main",
            "GITHUB_API_URL": served.url,
            "GITHUB_REPOSITORY": "octo/hello",
        }
        code = action(environ, GitHub)
        run.log, run.summary = capsys.readouterr().out, files["GITHUB_STEP_SUMMARY"].read_text("utf-8")
        run.outputs = dict(re.findall(r"(?m)^([a-z-]+)<<(?:.*)\n(.*)\n", files["GITHUB_OUTPUT"].read_text("utf-8")))
        file = project.path / "rag-eval-report/report.json"
        run.report = json.loads(file.read_text("utf-8")) if file.exists() else None
        return code

    return run


def test_an_unchanged_pull_request_costs_few_requests(project, served, run):
    project.git("branch", "-f", "pr", project.fork)
    project.git("checkout", "-q", "pr")
    project.write("answers.py", "better = True\n")
    project.head = project.done("another part")
    project.merge()
    assert run() == 0
    assert len(served.seen) <= 8, [seen.target for seen in served.seen]
    assert [seen.target for seen in served.seen if "/git/" in seen.target] == []


def test_no_request_is_made_twice(project, served, run):
    project.git("checkout", "-q", "pr")
    project.put(gold=[gold_of(n) for n in range(1, 8)])
    project.done("gold")
    project.merge()
    run()
    targets = [seen.target for seen in served.seen]
    assert sorted(targets) == sorted(set(targets))


def test_a_pull_request_tells_whose_gates_decided(project, run):
    project.merge()
    assert run() == 0
    assert run.report["base"] == {"kind": "base", "ref": "main", "commit": project.base, "through": "git"}
    assert run.outputs["base-commit"] == project.base
    assert "read through git" in run.summary


OUT_OF_REACH = [Fault(".", 404, times=10**9)]


def test_a_gate_of_the_base_stands_on_no_line_of_the_change(project, run):
    """Its line is one of another file; a reader is told whose gate it is."""
    project.git("checkout", "-q", "pr")
    project.put(gates="version: 1\nk: 3\ngates:\n  chr: {min: 0.8}\n", trace=wrong(1, 2))
    project.done()
    project.merge()
    assert run() == 1
    assert "::error title=gate precision::precision 0.500 is below 0.8 (a gate of the base branch)\n" in run.log
    assert "::error file=eval-gates.yml,line=4,title=gate chr::chr 0.500 is below 0.8\n" in run.log
    assert "`precision` 0.500 is below 0.8 (a gate of the base branch)" in run.summary


def test_where_the_api_is_out_of_reach_git_says(project, served, run):
    project.merge()
    served.faults[:] = OUT_OF_REACH
    assert run() == 0
    assert run.report["base"] == {"kind": "base", "ref": "main", "commit": project.base, "through": "git"}


def test_clone_and_api_come_to_the_same_report(project, served, run, shallow):
    project.git("checkout", "-q", "pr")
    project.put(gates=gates(precision="{min: 0.1}"), gold=[gold_of(n) for n in range(1, 8)], trace=wrong(1, 2))
    project.done("looser gates, less gold, worse answers")
    project.merge()
    reports = []
    assert run() == 1
    reports.append(run.report)
    assert run(sha=shallow(1)) == 1
    reports.append(run.report)
    through = [report["base"].pop("through") for report in reports]
    assert through == ["git", "GitHub's API"]
    assert reports[0] == reports[1]


@pytest.fixture
def shallow(project, tmp_path, monkeypatch):
    """Check the merge commit out as a clone of so many commits, in place of the whole repository; its id."""

    def shallow(depth):
        sha = project.merge()
        project.git("branch", "tested", sha)
        source = f"file://{project.path}"
        project.git("clone", "-q", "--depth", str(depth), "--branch", "tested", source, str(tmp_path / "shallow"))
        monkeypatch.setattr(project, "path", tmp_path / "shallow")
        monkeypatch.chdir(project.path)
        return sha

    return shallow


def test_a_checkout_of_one_commit_is_enough_for_the_api(run, shallow):
    assert run(sha=shallow(1)) == 0
    assert run.report["base"]["through"] == "GitHub's API"


def test_a_checkout_of_two_commits_deep_is_enough_for_git(served, run, shallow):
    served.faults[:] = OUT_OF_REACH
    assert run(sha=shallow(2)) == 0
    assert run.report["base"]["through"] == "git"


def test_where_nobody_can_say_nothing_is_judged(served, run, shallow):
    """A checkout of one commit and an API that does not answer: exit 2, with what to do about it."""
    served.faults[:] = OUT_OF_REACH
    assert run(sha=shallow(1)) == 2
    [line] = [line for line in run.log.splitlines() if line.startswith("::error")]
    gone = r"Could not read commit \w{12}: GitHub does not find it, or the token lacks `contents: read`\. .*"
    shallow = r"This clone does not have commit \w{12}\. Fetch it: fetch-depth: 2 or more\."
    fix = "Give the job `contents: read` and the action its github-token, or check out with fetch-depth: 0."
    what = "::error title=rag-eval cannot run::The base cannot be read, so nothing can be judged."
    assert re.fullmatch(rf"{what} {gone} {shallow} {fix}", line)
    assert run.report is None


@pytest.mark.parametrize("gates_ref", ["no-such-branch", "-x", "a b", "../main"])
def test_a_gates_ref_that_is_none_is_no_pass(project, run, gates_ref):
    project.merge()
    assert run(gates_ref=gates_ref) == 2
    assert run.report is None
    assert f"If gates-ref '{gates_ref}' is wrong, correct it." in run.log


def test_gates_ref_head_is_said_in_the_report(project, served, run):
    project.merge()
    assert run(gates_ref="head") == 0
    assert served.seen == []
    assert run.report["base"]["kind"] == "head"
    assert [item["code"] for item in besides_tracked(run.report["findings"])] == ["gates-from-head"]


@pytest.mark.parametrize("gates_ref", ["base", "default-branch", "head", "main"])
def test_traces_of_another_commit_fail_whoever_decides(project, run, gates_ref):
    project.merge()
    project.write("runs/run.json", json.dumps({"system_commit": "f" * 40}))
    assert run(gates_ref=gates_ref) == 1
    assert [item["code"] for item in run.report["findings"] if item["level"] == "error"] == ["stale-traces"]


def test_an_event_without_a_pull_request_says_that_it_cannot_check_the_approval(project, run):
    project.git("checkout", "-q", "main")
    project.put(gates=gates("signoff: {require: review, signers: {ann@example.org: {github: ann}}}\n"))
    project.done("reviews")
    project.branch("gold")
    project.put(gold=[gold_of(1, tags=["new"]), *(gold_of(n) for n in range(2, 9))])
    project.git("add", "--all")
    assert project.gold("signoff", "--reason", "a tag")[0] == 0
    assert run("push", {"pull_request": None}, "refs/heads/gold", project.done("gold")) == 0
    [finding] = besides_tracked(run.report["findings"])
    message = "the gold changed, and the approving review cannot be checked on this event"
    assert (finding["code"], finding["level"], finding["message"]) == ("signoff-unchecked", "warning", message)


@pytest.mark.parametrize("around", ["nothing", "a repository", "the same repository"])
@pytest.mark.parametrize("checkout", ["merge", "branch"])
def test_a_checkout_in_a_folder_is_the_one_that_is_judged(project, run, monkeypatch, tmp_path, around, checkout):
    """As with several checkouts in one job."""
    project.git("checkout", "-q", "pr")
    project.put(gates=gates(precision="{min: 0.1}"), trace=wrong(1, 2))
    project.done("looser and worse")
    sha, ref = project.merge(), "refs/pull/2/merge"
    if checkout == "branch":
        project.git("checkout", "-q", "pr")
        sha, ref = project.git("rev-parse", "HEAD"), "refs/heads/pr"
    outer = tmp_path / "outer"
    if around == "a repository":
        Project.made(outer, gates(precision="{min: 0}"))
    elif around == "the same repository":
        project.copied(outer)
    project.copied(outer / "code")
    monkeypatch.setattr(project, "path", outer)
    monkeypatch.chdir(outer)
    event = {"pull_request": None} if checkout == "branch" else {}
    code = run("push" if checkout == "branch" else "pull_request", event, ref, sha, working_directory="code")
    assert (code, run.outputs["failed-gates"], run.outputs["base-commit"]) == (1, "precision", project.base)


def test_without_an_event_there_is_no_base(project, served, run):
    assert run(name="") == 0
    assert (run.report["base"], served.seen) == (None, [])


TARGET = {"name": "pull_request_target", "ref": "refs/heads/main"}


@pytest.mark.parametrize("checkout", ["--detach", "-q"], ids=["commit", "branch"])
def test_a_pull_request_whose_change_is_not_checked_out_is_not_passed(project, run, checkout):
    """As in pull_request_target, or where a step checks out the base: what is judged is the base itself."""
    merged = project.merge()
    project.git("checkout", checkout, "main")
    for event in ({**TARGET, "sha": project.base}, {"sha": merged}):
        assert run(**event) == 1
        assert [(item["code"], item["level"]) for item in besides_tracked(run.report["findings"])] == [
            ("change-not-checked-out", "error")
        ]
        assert f"commit '{project.base[:12]}' lacks the last commit of this pull request" in run.log


def test_traces_that_are_said_to_be_of_the_change_may_be_all_that_it_brings(project, run):
    project.git("checkout", "-q", "main")
    project.write("runs/run.json", json.dumps({"system_commit": project.head}))
    assert run(**TARGET, sha=project.base) == 0
    assert [(item["code"], item["level"]) for item in besides_tracked(run.report["findings"])] == [
        ("change-not-checked-out", "warning")
    ]
    project.write("runs/run.json", json.dumps({"system_commit": project.base}))
    assert run(**TARGET, sha=project.base) == 1
    assert run.outputs["findings"] == "change-not-checked-out,stale-traces,traces-tracked"


def test_what_holds_the_last_commit_of_the_pull_request_is_the_change(project, served, run):
    merged = project.merge()
    project.git("checkout", "-q", "pr")
    assert run(**TARGET, sha=project.base) == 0
    project.write("later.txt", "pushed since")
    newer = project.done("a later push")
    assert run(sha=merged) == 0
    assert besides_tracked(run.report["findings"]) == []
    served.faults[:] = [Fault(f"compare/{newer}", 404, times=10**9)]  # as of a commit that a step of the job made
    assert run(sha=merged) == 0
    assert besides_tracked(run.report["findings"]) == []


def test_the_gates_that_decide_anyhow_are_not_those_of_the_change(project, run):
    """A pull_request_target runs on the base; to name the branch that this is takes nothing from it."""
    project.git("checkout", "-q", "pr")
    project.put(gates=gates(precision="{min: 0.1}"), trace=wrong(1, 2))
    project.head = project.done("looser and worse")
    for gates_ref in ("base", "main", "default-branch"):
        assert run(**TARGET, sha=project.base, gates_ref=gates_ref) == 1
        assert (run.report["base"]["kind"], run.outputs["failed-gates"]) == ("base", "precision")


@pytest.mark.parametrize(("before", "code"), [("base", 1), ("zeros", 0)])
def test_a_push_to_main_is_held_against_what_main_was(project, run, before, code):
    """There is nobody else to ask about a first push; after that main cannot loosen and pass at once."""
    project.put(gates=gates(precision="{min: 0.1}"), trace=wrong(1, 2))
    sha = project.done("looser and worse")
    event = {"before": project.base if before == "base" else "0" * 40}
    assert run("push", event=event, ref="refs/heads/main", sha=sha) == code
    assert run.report["base"]["kind"] == ("base" if before == "base" else "bootstrap")
    assert run("schedule", ref="refs/heads/main", sha=sha) == 0  # main as it is now is its own base


@pytest.mark.parametrize(("signoff", "code"), [("policy", 0), ("require", 1), ("off", 0)])
def test_with_gates_ref_head_every_item_has_to_be_signed_where_that_is_asked_for(project, run, signoff, code):
    """There is nothing to compare with; the gold is not said to be missing for that."""
    project.merge()
    assert run(gates_ref="head", signoff=signoff) == code
    codes = {item["code"] for item in besides_tracked(run.report["findings"])} - {"gates-from-head"}
    assert codes == {"policy": set(), "require": {"unsigned-item"}, "off": {"signoff-off"}}[signoff]
    fixes = {item["fix"] for item in besides_tracked(run.report["findings"]) if item["code"] == "unsigned-item"}
    assert fixes == ({"rag-eval gold signoff --baseline --reason '…'"} if signoff == "require" else set())
    assert run.report["gold_changes"] == []


@pytest.mark.parametrize(("fail_on", "code"), [("error", 1), ("warning", 1), ("never", 0)])
def test_an_error_that_no_gate_sees_fails_the_step(project, run, fail_on, code):
    project.git("checkout", "-q", "pr")
    project.put(gold=[gold_of(1, gold_claim_substr=["1 days", "1 day"]), *(gold_of(n) for n in range(2, 9))])
    project.done("gold")
    project.merge()
    assert run(signoff="require", fail_on=fail_on) == code
    assert run.report["verdict"] == "failed"
    assert [gate["name"] for gate in run.report["gates"] if gate["outcome"] != "passed"] == []
