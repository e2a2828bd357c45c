"""Real git in a temporary folder, and `rag-eval gold` as people and hooks run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
GOLD = "eval/gold.jsonl"
RECORDS = "eval/gold.signoff"


def row(qid, question="How long is the warranty?", answerable=True, **more):
    return {"qid": qid, "question": question, "answerable": answerable, "gold_claim_substr": [], **more}


def lines(*rows, end="\n"):
    return "".join(json.dumps(item) + end for item in rows)


class Repo:
    """A repository with its own configuration; commands answer with (exit code, what was said)."""

    def __init__(self, path, bin_folder=None):
        self.path, self.bin = Path(path), bin_folder

    @classmethod
    def create(cls, path, bin_folder):
        path.mkdir(parents=True)
        repo = cls(path, bin_folder)
        repo.git("init", "-q", "-b", "main")
        repo.git("config", "user.email", "ann@example.org")
        repo.git("config", "user.name", "Ann")
        return repo

    def run(self, *words, **env):
        done = subprocess.run(
            words, cwd=self.path, env={**os.environ, **env}, capture_output=True, text=True, encoding="utf-8"
        )
        return done.returncode, done.stdout + done.stderr

    def git(self, *words, **env):
        code, said = self.run("git", *words, **env)
        assert code == 0, said
        return said.strip()

    def gold(self, *words, **env):
        return self.run("rag-eval", "gold", *words, **env)

    def write(self, path, text):
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def stage(self, *rows, path=GOLD, end="\n"):
        self.write(path, lines(*rows, end=end))
        self.git("add", "--", path)

    def commit(self, message="a change", *paths):
        return self.run("git", "commit", "-q", "-m", message, *paths)

    def sign(self, *words):
        code, said = self.gold("signoff", "--reason", "reviewed", *words)
        assert code == 0, said
        return said

    def signed(self, *rows):
        """Stage the rows, sign and commit them."""
        self.stage(*rows)
        self.sign("--mutates")
        code, said = self.commit("signed")
        assert code == 0, said

    def records(self):
        return sorted(path.name for path in (self.path / RECORDS).glob("*.json"))

    def mend(self, said):
        """Run the commands that were advised, word for word but for the reason."""
        advised = said.split("To mend it:\n")[1].splitlines()
        for command in (line.strip() for line in advised if line.startswith(" ")):
            code, answer = self.run("sh", "-c", command.replace("…", "reviewed with the manual"))
            assert code == 0, answer

    def hook(self):
        """Install the sign-off hook as git runs it, for commits and merges."""
        for name in ("pre-commit", "pre-merge-commit"):
            file = self.path / ".git/hooks" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text("#!/bin/sh\nexec rag-eval gold check --staged\n")
            file.chmod(0o755)


def codes(said):
    return re.findall(r": \[([a-z-]+)\] ", said)


def command_on_path(folder):
    """A `rag-eval` in ``folder`` that runs this checkout's."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "rag-eval"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{SOURCE}" exec "{sys.executable}" -m rag_eval "$@"\n')
    script.chmod(0o755)
    return folder
