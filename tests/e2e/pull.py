"""A pull request in a real repository, and the checkout that a workflow makes of it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_GIT = ("git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.test", "-c", "init.defaultBranch=main")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run([*_GIT, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@dataclass(frozen=True)
class Work:
    """What stands on the base beside the example, what the pull request writes, and what is done before its commit."""

    base: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    then: Callable[[Path], None] | None = None
    depth: int = 1


def _written(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class PullRequest:
    """``origin`` holds the base on main, the head and its merge commit, as GitHub does."""

    origin: Path
    base: str
    head: str
    merge: str

    @classmethod
    def made(cls, origin: Path, example: Path, work: Work) -> PullRequest:
        """The files of ``example`` and of the base's own on main; a pull request that writes its changes."""
        shutil.copytree(example, origin)
        git(origin, "init", "--quiet")
        git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
        _written(origin, work.base)
        base = _committed(origin)
        git(origin, "checkout", "--quiet", "-b", "topic")
        _written(origin, {"notes.txt": "a change\n", **work.changes})
        git(origin, "add", "--all")
        if work.then:
            work.then(origin)
        head = _committed(origin)
        merge = git(origin, "commit-tree", f"{head}^{{tree}}", "-p", base, "-p", head, "-m", "merge")
        git(origin, "update-ref", "refs/pull/2/merge", merge)
        git(origin, "checkout", "--quiet", "main")
        return cls(origin, base, head, merge)

    def checked_out(self, target: Path, depth: int = 1) -> Path:
        """What actions/checkout leaves behind: the merge commit, detached, and so much of its history."""
        target.mkdir(parents=True)
        git(target, "init", "--quiet")
        git(target, "fetch", "--quiet", f"--depth={depth}", f"file://{self.origin}", self.merge)
        git(target, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        return target

    def told(self, event: dict[str, Any]) -> dict[str, Any]:
        """GitHub's example of the event, about this pull request."""
        pull = event["pull_request"]
        ends = {"head": {**pull["head"], "sha": self.head}, "base": {**pull["base"], "ref": "main", "sha": self.base}}
        repository = {**event["repository"], "default_branch": "main"}
        return {**event, "repository": repository, "pull_request": {**pull, **ends}}


def _committed(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "e2e")
    return git(folder, "rev-parse", "HEAD")
