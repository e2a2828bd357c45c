"""A job whose earlier steps set variables, moved refs, planted objects, or stand between the action and GitHub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from fake_github import Answer, FakeGitHub, Fault
from project import GATES, Project, apart, gates, wrong
from rag_eval.action.__main__ import clean
from rag_eval.git import plumbing as git_module
from seams import GitHub, Network, action

pytest.importorskip("urllib3")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the action runs on Linux")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A pull request that makes answers worse and its gates looser: exit 1 if the base's gates decide."""
    apart(monkeypatch)
    made = Project.made(tmp_path / "repo")
    made.base = made.git("rev-parse", "main")
    made.head = made.change("pr", gates=gates(precision="{min: 0.1}"), trace=wrong(1, 2))
    made.merged = made.merge()
    monkeypatch.chdir(made.path)
    return made


@pytest.fixture
def served(project, tmp_path):
    """GitHub has a repository of its own, which no step of the job writes into."""
    with FakeGitHub().serving() as fake:
        fake.repository_at(project.copied(tmp_path / "github").path)
        fake.add_pull(2, project.head, project.base)
        yield fake


@pytest.fixture
def environ(project, served, tmp_path):
    event = {"pull_request": {"number": 2, "head": {"sha": project.head}, "base": {"ref": "main", "sha": project.base}}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    return {
        "INPUT_GITHUB-TOKEN": "t0ken",
        "GITHUB_WORKSPACE": str(project.path),
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REF": "refs/pull/2/merge",
        "GITHUB_SHA": project.merged,
        "GITHUB_BASE_REF": "main",
        "GITHUB_API_URL": served.url,
        "GITHUB_REPOSITORY": served.repository,
        "GITHUB_RUN_NUMBER": "5",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }


@pytest.fixture
def run(project, environ, capsys):
    """The action in this process, with a client that need not wait."""

    def run(**more):
        run.slept = []
        client = cache(lambda *where: GitHub(*where, Network(sleep=run.slept.append)))
        code = action({**environ, **more}, client)
        run.log = capsys.readouterr().out
        file = project.path / "rag-eval-report/report.json"
        run.report = json.loads(file.read_text("utf-8")) if file.exists() else None
        return code

    return run


@pytest.fixture
def shallow(project, tmp_path, monkeypatch, environ):
    """The checkout that actions/checkout makes: the merge commit, and nothing before it."""
    project.git("branch", "tested", project.merged)
    source = f"file://{project.path}"
    project.git("clone", "-q", "--depth", "1", "--branch", "tested", source, str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    environ["GITHUB_WORKSPACE"] = str(tmp_path / "shallow")
    monkeypatch.setattr(project, "path", tmp_path / "shallow")
    return project


def test_a_check_run_is_of_the_commit_that_was_merged_whatever_the_event_file_says(run, served, environ, project):
    event = {"pull_request": {"number": 2, "head": {"sha": project.base}, "base": {"ref": "main", "sha": project.base}}}
    Path(environ["GITHUB_EVENT_PATH"]).write_text(json.dumps(event))
    assert run(**{"INPUT_CHECK": "true", "INPUT_FAIL-ON": "never"}) == 0
    assert [check["head_sha"] for check in served.checks] == [project.head]


# --- what GitHub is said to answer -----------------------------------------------------------------------------------


def test_the_objects_of_the_clone_are_taken_first(served, run):
    assert run() == 1
    assert run.report["base"]["through"] == "git"
    assert [seen.target for seen in served.seen if "/git/" in seen.target] == []


def test_what_the_clone_lacks_is_asked_of_the_api(served, run, shallow):
    assert run() == 1
    assert run.report["base"]["through"] == "GitHub's API"
    assert f"/git/commits/{shallow.merged}" not in " ".join(seen.target for seen in served.seen)


LIES = {
    "the base commit is the head": ("commits", lambda fake, _, project: fake.git.git_commit(project.head)),
    "the tree of the base is the head's": (
        "commits",
        lambda fake, sha, project: {**fake.git.git_commit(sha), "tree": fake.git.git_commit(project.head)["tree"]},
    ),
    "the root folder is the head's": ("trees", lambda fake, _, project: fake.git.tree(project.head)),
    "the gates file is another one": (
        "trees",
        lambda fake, sha, _: {
            **fake.git.tree(sha),
            "tree": [{**row, "sha": "a" * 40} if row["path"] == GATES else row for row in fake.git.tree(sha)["tree"]],
        },
    ),
    "the gates file is left out": (
        "trees",
        lambda fake, sha, _: {
            **fake.git.tree(sha),
            "tree": [row for row in fake.git.tree(sha)["tree"] if row["path"] != GATES],
        },
    ),
}


@pytest.mark.parametrize(("kind", "lie"), LIES.values(), ids=LIES)
def test_another_answer_than_the_id_says_is_never_believed(served, run, shallow, monkeypatch, kind, lie):
    honest = served.answer

    def answer(seen):
        _, _, sha = seen.target.partition(f"/git/{kind}/")
        return Answer(200, lie(served, sha, shallow)) if sha else honest(seen)

    monkeypatch.setattr(served, "answer", answer)
    assert run() == 2
    assert "does not match its hash" in run.log


def test_objects_that_a_step_planted_are_not_read(project, served, run):
    """A loose object under the id of the base's gates file, with other bytes; the API has the right ones."""
    sha = project.git("rev-parse", f"main:{GATES}")
    other = project.git("hash-object", "-w", "--stdin", stdin=gates(precision="{min: 0.01}"))
    path, planted = (project.path / ".git/objects" / name[:2] / name[2:] for name in (sha, other))
    path.chmod(0o644)
    path.write_bytes(planted.read_bytes())
    assert run() == 1
    assert run.report["base"]["through"] == "git"  # the commit is; the file is not what it was
    assert [seen.target for seen in served.seen if "/git/blobs/" in seen.target]


def test_an_object_that_is_waited_for_is_asked_of_the_api(project, served, run, monkeypatch):
    monkeypatch.setattr(git_module, "MOST_SECONDS", 0.5)
    path = project.path / ".git/objects" / project.base[:2] / project.base[2:]
    path.unlink()
    os.mkfifo(path)
    began = time.monotonic()
    assert run() == 1
    assert run.report["base"]["through"] == "GitHub's API"
    assert time.monotonic() - began < 20


def test_a_head_that_is_waited_for_is_none(project, served, run, monkeypatch):
    monkeypatch.setattr(git_module, "MOST_SECONDS", 0.5)
    (project.path / ".git/HEAD").unlink()
    os.mkfifo(project.path / ".git/HEAD")
    began = time.monotonic()
    assert run() == 1
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("fault", [Fault("", 500, times=10**6), Fault("", 200, how="hung up", times=10**6)])
def test_an_api_that_is_down_costs_little_where_the_clone_knows(served, run, fault):
    served.faults = [fault]
    assert run() == 1
    assert "No comment: " in run.log
    assert run.slept == [1, 2, 4, 8, 16]


@pytest.mark.parametrize("fault", [Fault("", 500, times=10**6), Fault("", 200, how="hung up", times=10**6)])
def test_an_api_that_is_down_is_waited_for_once(served, run, shallow, fault):
    """For the base, the comment and the check run together."""
    served.faults = [fault]
    assert run(INPUT_CHECK="true") == 2
    assert [note in run.log for note in ("The base cannot be read", "No comment: ", "No check run: ")] == [True] * 3
    assert run.slept == [1, 2, 4, 8, 16]


@pytest.mark.deep
def test_an_api_that_does_not_answer_ends_in_time(served, shallow, environ):
    """By the clock, with the client that the action makes: nothing but the API knows the base."""
    served.faults = [Fault("", 200, how="headers in drops", times=10**6)]
    done = started(environ)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "The base cannot be read" in done.stdout


# --- variables that a step sets --------------------------------------------------------------------------------------


def started(environ):
    """The action as the image starts it."""
    command = [sys.executable, "-I", "-B", "-m", "rag_eval.action"]
    return subprocess.run(
        command, cwd=environ["GITHUB_WORKSPACE"], env=environ, capture_output=True, text=True, timeout=120
    )


def test_only_the_runners_own_variables_are_kept(monkeypatch):
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name in ("GITHUB_SHA", "INPUT_GOLD", "RUNNER_OS", "HTTPS_PROXY", "GIT_DIR", "LD_PRELOAD", "HOME", "PATH"):
        monkeypatch.setenv(name, "x")
    clean()
    assert set(os.environ) == {"GITHUB_SHA", "INPUT_GOLD", "RUNNER_OS", "PATH", "LC_ALL", "TZ"}
    assert os.environ["PATH"] == "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def trap(tmp_path, project):
    """What a step may leave behind: programs and configuration that would leave a trace if they were used."""
    folder = tmp_path / "trap"
    folder.mkdir()
    for name in ("git", "ssh-keygen", "python3"):
        program = folder / name
        program.write_text(f"#!/bin/sh\ntouch {folder}/used\nexit 1\n")
        program.chmod(0o755)
    (folder / "gitconfig").write_text(f"[core]\n\tfsmonitor = {folder}/git\n[alias]\n\tcat-file = !{folder}/git\n")
    (folder / "openssl.cnf").write_text("openssl_conf = nonsense\n[nonsense]\nengines = nowhere\n")
    (folder / "sitecustomize.py").write_text(f"open('{folder}/used', 'w')\n")
    (folder / "index").write_text("")
    return folder


def settings(trap, proxy):
    yield from (dict.fromkeys([name, name.lower()], proxy) for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"))
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "SSLKEYLOGFILE"):
        yield {name: f"{trap}/used"}
    yield {"OPENSSL_CONF": f"{trap}/openssl.cnf"}
    yield {"PATH": str(trap)}
    yield {"PYTHONPATH": str(trap), "PYTHONSTARTUP": f"{trap}/sitecustomize.py", "PYTHONINSPECT": "1"}
    yield {"HOME": str(trap), "XDG_CONFIG_HOME": str(trap), "GIT_CONFIG_GLOBAL": f"{trap}/gitconfig"}
    yield {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": f"{trap}/git"}
    yield {"GIT_DIR": str(trap), "GIT_WORK_TREE": str(trap), "GIT_OBJECT_DIRECTORY": str(trap)}
    yield {"GIT_EXEC_PATH": str(trap), "GIT_TRACE": f"{trap}/used", "GIT_TRACE2_EVENT": f"{trap}/used"}
    yield {"TMPDIR": f"{trap}/nowhere", "LANG": "tr_TR.ISO-8859-9", "LC_ALL": "tr_TR", "TZ": ":/etc/passwd"}
    yield {"RES_OPTIONS": "ndots:99", "HOSTALIASES": f"{trap}/index", "no_proxy": "*", "COLUMNS": "x"}


@pytest.mark.parametrize("one_by_one", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_variables_of_earlier_steps_change_nothing(environ, trap, served, one_by_one):
    expected = started(environ)
    assert expected.returncode == 1
    with FakeGitHub().serving() as proxy:
        several = list(settings(trap, proxy.url))
        together = {name: value for more in several for name, value in more.items()}
        for more in several if one_by_one else [together]:
            served.comments[2].clear()
            done = started({**environ, **more})
            assert (done.returncode, done.stdout, done.stderr) == (1, expected.stdout, expected.stderr), more
            assert not (trap / "used").exists(), more
        assert proxy.seen == []


@pytest.mark.parametrize("through", ["GitHub's API", "git"])
def test_git_is_asked_without_what_earlier_steps_left(run, served, trap, environ, project, monkeypatch, through):
    """In this process, which keeps its environment: the clone is read as one that others may have prepared."""
    checkout = {}
    if through == "git":  # which is asked where the change began
        served.faults = [Fault("", 404, times=10**6)]
        project.git("checkout", "-q", "pr")
        checkout = {"GITHUB_SHA": project.head}
    for more in settings(trap, "http://127.0.0.1:9"):
        for name, value in more.items():
            if name.startswith(("GIT_", "HOME", "XDG_")):
                monkeypatch.setenv(name, value)
    (trap / ".gitconfig").write_text((trap / "gitconfig").read_text())
    assert run(**checkout) == 1
    assert run.report["base"]["commit"] == project.base
    assert not (trap / "used").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_checkout_of_another_user_is_read_where_only_git_knows(run, served, project):
    """The image runs as root, in a folder of the runner's user. Git would refuse it."""
    served.faults = [Fault("", 404, times=10**6)]
    project.git("checkout", "-q", "pr")
    for path in (project.path, *project.path.rglob("*")):
        os.chown(path, 1001, 127, follow_symlinks=False)
    assert run(GITHUB_SHA=project.head) == 1
    assert run.report["base"]["through"] == "git"


def test_a_proxy_of_the_input_is_used(environ, served):
    with FakeGitHub().serving() as proxy:
        proxy.git, proxy.comments, proxy.pulls = served.git, served.comments, served.pulls
        done = started({**environ, "INPUT_PROXY": proxy.url})
        assert done.returncode == 1
        assert proxy.seen
        assert served.seen == []


@pytest.mark.parametrize("text", ["nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "é"])
def test_certificates_that_are_none_are_an_error_of_the_input(environ, text):
    done = started({**environ, "INPUT_CA-CERTIFICATES": text})
    assert done.returncode == 2
    assert "input 'ca-certificates'" in done.stdout


@pytest.mark.parametrize("proxy", ["socks5://me:secret@proxy.test:1", "http://me:secret@[::1"])
def test_a_proxy_that_is_none_is_named_without_its_login(environ, proxy, shallow):
    done = started({**environ, "INPUT_PROXY": proxy})
    assert done.returncode == 2
    assert "input 'proxy' is not the address of a proxy" in done.stdout
    assert "secret" not in done.stdout + done.stderr


# --- what is left behind ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_of_the_workspace_gets_the_report_and_nothing_else(run, project):
    runner = 1001, 127
    os.chown(project.path, *runner)
    assert run(**{"INPUT_REPORT-DIR": "out/deep"}) == 1
    made = [project.path / "out", *(project.path / "out").rglob("*")]
    assert len(made) > 3
    owners = {path: (path.stat().st_uid, path.stat().st_gid) for path in project.path.rglob("*")}
    assert {path for path, owner in owners.items() if owner == runner} == set(made)
