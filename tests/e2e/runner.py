"""GitHub's runner, as far as a Docker action can see it: mounts, environment, ownership, and files handed over."""

from __future__ import annotations

import json
import os
import re
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from e2e.engine import Engine

RUNNER_UID, DOCKER_GID = 1001, 127
TOKEN = "ghs_e2e0token"
_FILES = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE")
_HEREDOC = re.compile(r"(?P<name>[^=\n]+?)<<(?P<end>[^\n]+)\n(?P<value>.*?)\n?^(?P=end)$\n?", re.DOTALL | re.MULTILINE)
_PLAIN = re.compile(r"(?P<name>[^=<\n]+)=(?P<value>[^\n]*)\n?")


@dataclass(frozen=True)
class Run:
    """What one run left behind. ``files`` has the text of each file in ``_FILES``."""

    code: int
    log: str
    files: Mapping[str, str]

    @property
    def outputs(self) -> dict[str, str]:
        return parse_outputs(self.files["GITHUB_OUTPUT"])

    @property
    def summary(self) -> str:
        return self.files["GITHUB_STEP_SUMMARY"]


@dataclass
class Runner:
    """Runs ``image`` over ``workspace`` for ``event``; ``action`` is the folder of its ``action.yml``."""

    engine: Engine
    image: str
    action: Path
    workspace: Path
    event: dict[str, Any]
    api_url: str
    event_name: str = "pull_request"
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, number: int = 1, **inputs: str) -> Run:
        """One run with this run number and these inputs, ``_`` in their names standing for ``-``."""
        temp = self.workspace.parent / f"runner-{uuid.uuid4().hex}"
        commands = self._prepare(temp)
        mounts = {
            temp: "/github/runner_temp",
            temp / "_github_home": "/github/home",
            temp / "_github_workflow": "/github/workflow",
            temp / "_runner_file_commands": "/github/file_commands",
            self.workspace: "/github/workspace",
        }
        values = {**self._environ(number), **commands, **self._inputs(inputs), **self.environ}
        options = [part for name, value in values.items() for part in ("--env", f"{name}={value}")]
        options += [part for host, inside in mounts.items() for part in ("--volume", f"{host}:{inside}")]
        done = self.engine.run("run", "--rm", "--workdir", "/github/workspace", *options, self.image)
        folder = temp / "_runner_file_commands"
        files = {name: (folder / Path(inside).name).read_text("utf-8") for name, inside in commands.items()}
        return Run(done.returncode, done.stdout + done.stderr, files)

    def _prepare(self, temp: Path) -> dict[str, str]:
        """Lay out the folders, give all to the runner's user, and name the files for what is handed over."""
        for folder in ("_github_home", "_github_workflow", "_runner_file_commands"):
            (temp / folder).mkdir(parents=True)
        (temp / "_github_workflow" / "event.json").write_text(json.dumps(self.event), encoding="utf-8")
        names = {name: f"{name.removeprefix('GITHUB_').lower()}_{uuid.uuid4()}" for name in _FILES}
        for name in names.values():
            (temp / "_runner_file_commands" / name).touch()
        give_to_runner(temp)
        give_to_runner(self.workspace)
        return {variable: f"/github/file_commands/{name}" for variable, name in names.items()}

    def _environ(self, number: int) -> dict[str, str]:
        pull = self.event.get("pull_request", {})
        return {
            "HOME": "/github/home",
            "CI": "true",
            "ACTIONS_RUNTIME_TOKEN": "not-for-you",
            "GITHUB_ACTION": "__self",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTOR": "octocat",
            "GITHUB_API_URL": self.api_url,
            "GITHUB_BASE_REF": pull.get("base", {}).get("ref", ""),
            "GITHUB_EVENT_NAME": self.event_name,
            "GITHUB_EVENT_PATH": "/github/workflow/event.json",
            "GITHUB_HEAD_REF": pull.get("head", {}).get("ref", ""),
            "GITHUB_JOB": "eval",
            "GITHUB_REF": f"refs/pull/{pull['number']}/merge" if pull else "refs/heads/main",
            "GITHUB_REPOSITORY": self.event["repository"]["full_name"],
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_RUN_ID": str(9_000_000_000 + number),
            "GITHUB_RUN_NUMBER": str(number),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567",
            "GITHUB_WORKFLOW": "eval",
            "GITHUB_WORKSPACE": "/github/workspace",
            "RUNNER_ARCH": "X64",
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": "/github/runner_temp",
        }

    def _inputs(self, given: Mapping[str, str]) -> dict[str, str]:
        """Each input of ``action.yml`` as the runner passes it: where it is not given, its default or nothing."""
        declared = yaml.safe_load((self.action / "action.yml").read_text("utf-8")).get("inputs") or {}
        values = {name: str((about or {}).get("default", "")) for name, about in declared.items()}
        values = {name: value.replace("${{ github.token }}", TOKEN) for name, value in values.items()}
        chosen = {name.replace("_", "-"): value for name, value in given.items()}
        unknown = chosen.keys() - values.keys()
        assert not unknown, f"action.yml has no input {sorted(unknown)}"
        return {f"INPUT_{name.upper().replace(' ', '_')}": value for name, value in {**values, **chosen}.items()}


def parse_outputs(text: str) -> dict[str, str]:
    """The names and values in a GITHUB_OUTPUT file. Fails for a text that the runner would refuse."""
    result, at = {}, 0
    while at < len(text):
        part = _HEREDOC.match(text, at) or _PLAIN.match(text, at)
        assert part is not None, f"the runner would refuse: {text[at : at + 80]!r}"
        result[part["name"]] = part["value"]
        at = part.end()
    return result


def give_to_runner(folder: Path) -> None:
    """Make the runner's user the owner of everything in ``folder``."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, RUNNER_UID, DOCKER_GID, follow_symlinks=False)


def strangers(folder: Path) -> list[str]:
    """What in ``folder`` does not belong to the runner's user: the next checkout could not remove it."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.lstat().st_uid != RUNNER_UID]
