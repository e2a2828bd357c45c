"""A workflow run by act, over podman's Docker API, in a git repository of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e.engine import tool, without_digests
from e2e.runner import TOKEN
from seams import REPOSITORY

if TYPE_CHECKING:
    from e2e.engine import Engine
    from fake_github import FakeGitHub

_GIT = ("git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.test", "-c", "init.defaultBranch=main")


def run_workflow(
    engine: Engine,
    source: Path,
    workflow: str,
    event: dict[str, Any],
    api_url: str,
    folder: Path,
    github: FakeGitHub,
    published: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``workflow`` of a copy of ``source`` for a pull request; stdout is all that act and the steps print.

    ``published`` is what stands behind ``uses: OWNER/rag-eval-action@v1``.
    """
    repository, base = _repository(source, folder / "repository", event["repository"]["full_name"])
    github.repository_at(repository)
    pull = {**event["pull_request"], "base": {**event["pull_request"]["base"], "sha": base}}
    (folder / "event.json").write_text(json.dumps({**event, "pull_request": pull}), encoding="utf-8")
    command = [tool("act"), "pull_request", "--workflows", workflow, "--eventpath", str(folder / "event.json")]
    command += ["--platform", "ubuntu-latest=python:3.12-slim", "--pull=false", "--container-daemon-socket", "-"]
    command += ["--network", "host", "--env", f"GITHUB_API_URL={api_url}", "--secret", f"GITHUB_TOKEN={TOKEN}", "--rm"]
    if published:
        command += ["--local-repository", f"{REPOSITORY}@v1={published}"]
        # Artifacts need a server of GitHub's: a folder that both jobs see stands for it.
        shared = folder / "artifacts"
        shared.mkdir()
        command += ["--container-options", f"--volume {shared}:{shared}"]
        for name, version, script in _ARTIFACTS:
            command += ["--local-repository", f"actions/{name}@{version}={_stub(folder / name, script, shared)}"]
    with engine.service(folder) as address:
        environ = {
            **engine.environ,
            "DOCKER_HOST": address,
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }
        return subprocess.run(
            command,
            cwd=repository,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )


def run_on_host(
    source: Path, workflow: str, event: dict[str, Any], api_url: str, folder: Path, github: FakeGitHub, published: Path
) -> subprocess.CompletedProcess[str]:
    """Run ``workflow`` as :func:`run_workflow` does, but on this machine, like a runner without Docker."""
    repository, base = _repository(source, folder / "repository", event["repository"]["full_name"])
    github.repository_at(repository)
    pull = {**event["pull_request"], "base": {**event["pull_request"]["base"], "sha": base}}
    (folder / "event.json").write_text(json.dumps({**event, "pull_request": pull}), encoding="utf-8")
    command = [tool("act"), "pull_request", "--workflows", workflow, "--eventpath", str(folder / "event.json")]
    command += ["--platform", "ubuntu-latest=-self-hosted", "--env-file", os.devnull, "--container-daemon-socket", "-"]
    command += ["--env", f"GITHUB_API_URL={api_url}", "--secret", f"GITHUB_TOKEN={TOKEN}"]
    command += ["--local-repository", f"{REPOSITORY}@v1={published}"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        command,
        cwd=repository,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )


_ARTIFACTS = (
    ("upload-artifact", "v6", 'mkdir -p "$SHARED/$NAME" && cp -r "$FOLDER/." "$SHARED/$NAME/"'),
    ("download-artifact", "v7", 'mkdir -p "$FOLDER" && cp -r "$SHARED/$NAME/." "$FOLDER/"'),
)


def _stub(folder: Path, script: str, shared: Path) -> Path:
    """A git repository with an action of the same inputs that copies files."""
    folder.mkdir()
    inputs = {"name": {"required": True}, "path": {"required": True}, "if-no-files-found": {"default": "error"}}
    environ = {"NAME": "${{ inputs.name }}", "FOLDER": "${{ inputs.path }}", "SHARED": str(shared)}
    steps = [{"run": script, "shell": "sh", "env": environ}]
    action = {"name": folder.name, "inputs": inputs, "runs": {"using": "composite", "steps": steps}}
    (folder / "action.yml").write_text(json.dumps(action), encoding="utf-8")
    return folder


def _repository(source: Path, target: Path, name: str) -> tuple[Path, str]:
    """A git repository with the files of ``source``, from which act reads names and hashes; and the commit before."""
    shutil.copytree(source, target)
    if (source / "Dockerfile").exists():
        (target / "Dockerfile").write_text(without_digests(source), encoding="utf-8")
    for arguments in (
        ("init", "--quiet"),
        ("remote", "add", "origin", f"https://github.com/{name}.git"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "base"),
        ("commit", "--quiet", "--message", "the change", "--allow-empty"),
    ):
        subprocess.run([*_GIT, *arguments], cwd=target, check=True)
    message = subprocess.run([*_GIT, "rev-parse", "HEAD~1"], cwd=target, check=True, capture_output=True, text=True)
    return target, message.stdout.strip()
