"""What the end-to-end tests share: containers, a GitHub held to its own description, events, and the real image."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from e2e import engine as engines
from e2e.pull import PullRequest, Work
from e2e.runner import Runner
from fake_github import FakeGitHub

ROOT, HERE = engines.ROOT, engines.HERE
PULL = 2


def pytest_configure(config):
    config.addinivalue_line("markers", "e2e: builds images and runs programs from tests/e2e/install.sh (make e2e)")


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in Path(item.path).parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    return engines.start(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="session")
def base(engine):
    return engines.base_image(engine)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """The repository as git would hand it to a user who has these changes: nothing that is ignored, no .git."""
    target = tmp_path_factory.mktemp("checkout") / "rag-eval"
    entries = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, entries.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


@pytest.fixture(scope="session")
def image(request, engine, checkout):
    """The image of this checkout, or the one that RAG_EVAL_IMAGE names, as a release has it."""
    if published := os.environ.get("RAG_EVAL_IMAGE"):
        engine.must("pull", "--quiet", published)
        return published
    request.getfixturevalue("base")
    return engine.build(checkout, "localhost/rag-eval-action:e2e")


@pytest.fixture(scope="session")
def description(tmp_path_factory):
    """GitHub's description of the part of its REST API that is used."""
    whole = engines.installed("@octokit/openapi/generated/api.github.com.json")
    target = tmp_path_factory.mktemp("openapi") / "github.json"
    subprocess.run([sys.executable, str(HERE / "trim_openapi.py"), str(whole), str(target)], check=True)
    return target


@pytest.fixture(scope="session")
def prism(description):
    """The address of Prism, which checks each request and each answer, and the port of the GitHub behind it."""
    upstream, port, log = engines.free_port(), engines.free_port(), description.with_name("prism.log")
    command = [engines.tool("prism"), "proxy", "--errors", "--host", "127.0.0.1", "--port", str(port)]
    with engines.background([*command, str(description), f"http://127.0.0.1:{upstream}"], log) as process:
        engines.wait_for_port(port, process, log)
        yield f"http://127.0.0.1:{port}", upstream


@pytest.fixture(scope="session")
def event():
    """A pull request as GitHub tells of one, in a repository of its own examples."""
    examples = json.loads(engines.installed("@octokit/webhooks-examples/api.github.com/index.json").read_text("utf-8"))
    pulls = next(kind["examples"] for kind in examples if kind["name"] == "pull_request")
    return next(pull for pull in pulls if pull["action"] == "synchronize" and pull["number"] == PULL)


@pytest.fixture
def github(prism, event):
    """A GitHub with the event's pull request, fresh for each test; clients reach it through ``prism``."""
    with FakeGitHub(event["repository"]["full_name"]).serving(prism[1]) as fake:
        # Prism takes every type that ends in +json for JSON.
        fake.raw_type = "application/vnd.github.raw; charset=utf-8"
        pull = event["pull_request"]
        fake.add_pull(event["number"], pull["head"]["sha"], pull["base"]["sha"])
        yield fake


@pytest.fixture
def runner_of(engine, image, checkout, event, github, prism, tmp_path):
    """The real image over a checkout of a pull request that changes the quickstart example as it is told."""

    def runner_of(**work):
        work = Work(**work)
        pull = PullRequest.made(tmp_path / "origin", checkout / "examples/quickstart", work)
        github.repository_at(pull.origin)
        github.add_pull(PULL, pull.head, pull.base)
        workspace = pull.checked_out(tmp_path / "workspace", work.depth)
        environ = {"GITHUB_SHA": pull.merge, "GITHUB_BASE_REF": "main"}
        return Runner(engine, image, checkout, workspace, pull.told(event), prism[0], environ=environ)

    return runner_of


@pytest.fixture
def runner(runner_of):
    return runner_of()
