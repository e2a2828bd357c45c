"""What the small GitHub of the tests says of a real git repository on this machine: its commits, trees and blobs."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import github_objects as objects

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"


class FakeRepository:
    """The git repository at ``path``; ``accounts`` are the logins that GitHub knows by an author's e-mail address.

    Methods answer None where there is no such object.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.accounts: dict[str, str] = {}
        self.most_entries = 100_000
        self._known: dict[str, dict[str, Any]] = {}

    def _git(self, *words: str) -> bytes | None:
        done = subprocess.run(["git", *words], cwd=self.path, capture_output=True)
        return done.stdout if done.returncode == 0 else None

    def _words(self, *words: str) -> list[str]:
        return (self._git(*words) or b"").decode().split()

    def resolve(self, ref: str) -> str | None:
        return next(iter(self._words("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")), None)

    def _facts(self, sha: str) -> dict[str, Any]:
        if sha not in self._known:
            self._known[sha] = self._read(sha)
        return self._known[sha]

    def _read(self, sha: str) -> dict[str, Any]:
        output = (self._git("show", "-s", f"--format={_FORMAT}", sha) or b"").decode().removesuffix("\n")
        name, tree, parents, *people, message = output.split("\0")
        author, committer = (dict(zip(("name", "email", "date"), people[i : i + 3], strict=True)) for i in (0, 3))
        for person in (author, committer):  # GitHub keeps no time zones
            person["date"] = f"{datetime.fromisoformat(person['date']).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return {
            "sha": name,
            "tree": tree,
            "parents": parents.split(),
            "author": author,
            "committer": committer,
            "message": message.rstrip("\n"),
        }

    def git_commit(self, sha: str) -> dict[str, Any] | None:
        result = self.resolve(sha)
        return objects.git_commit(self.name, self._facts(result)) if result else None

    def commit(self, sha: str) -> dict[str, Any]:
        """A commit by its full hash."""
        facts = self._facts(sha)
        return objects.commit(self.name, facts, self.accounts.get(facts["author"]["email"]))

    def tree(self, sha: str, *, recursive: bool = False) -> dict[str, Any] | None:
        """A folder, or all that is below it; GitHub cuts the latter off behind ``most_entries``."""
        entries = self._git("ls-tree", "-z", "--full-tree", *(("-r", "-t") if recursive else ()), sha)
        if entries is None:
            return None
        rows = [row.partition("\t")[::2] for row in entries.decode().split("\0")[:-1]]
        name = self._words("rev-parse", f"{sha}^{{tree}}")[0]
        answer = objects.tree(self.name, name, [(*words.split(" "), path) for words, path in rows])  # type: ignore[misc]
        is_cut = recursive and len(rows) > self.most_entries
        return {**answer, "tree": answer["tree"][: self.most_entries], "truncated": True} if is_cut else answer

    def blob(self, sha: str) -> bytes | None:
        return self._git("cat-file", "blob", sha)

    def log(self, sha: str, path: str) -> list[dict[str, Any]]:
        return [self.commit(word) for word in self._words("rev-list", sha, "--", path)]

    def between(self, base: str, head: str) -> list[dict[str, Any]]:
        return [self.commit(word) for word in self._words("rev-list", "--reverse", f"{base}..{head}")]

    def compare(self, base: str, head: str) -> dict[str, Any] | None:
        ends = [self.resolve(ref) or "" for ref in (base, head)]
        fork = self._words("merge-base", *ends)
        if not fork:
            return None
        return objects.comparison(self.name, self.commit(ends[0]), self.commit(fork[0]), self.between(*ends))
