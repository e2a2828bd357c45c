"""Real git in a temporary folder, and `rag-eval gold` as people and hooks run it."""

from __future__ import annotations

import atexit
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from unittest.mock import patch

from seams import main

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
        """A new repository: a copy of one that git made once."""
        shutil.copytree(_template(), path, symlinks=True)
        return cls(path, bin_folder)

    def run(self, *words, **env):
        done = subprocess.run(
            words, cwd=self.path, env={**os.environ, **env}, capture_output=True, text=True, encoding="utf-8"
        )
        return done.returncode, done.stdout + done.stderr

    def git(self, *words, **env):
        code, output = self.run("git", *words, **env)
        assert code == 0, output
        return output.strip()

    def gold(self, *words, **env):
        """Run `rag-eval gold` in this process."""
        return run_here(["gold", *words], self.path, {**os.environ, **env})

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
        code, output = self.gold("signoff", "--reason", "reviewed", *words)
        assert code == 0, output
        return output

    def signed(self, *rows):
        """Stage the rows, sign and commit them."""
        self.stage(*rows)
        self.sign("--mutates")
        code, output = self.commit("signed")
        assert code == 0, output

    def records(self):
        return sorted(path.name for path in (self.path / RECORDS).glob("*.json"))

    def fix(self, output):
        """Run the commands that were advised, word for word but for the reason."""
        advised = output.split("To fix it:\n")[1].splitlines()
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


def run_here(words, folder, environ):
    """Run `rag-eval` in this process, as one in that folder with these variables would."""
    printed = io.StringIO()
    with (
        chdir(folder),
        redirect_stdout(printed),
        redirect_stderr(printed),
        patch.dict(os.environ, environ, clear=True),
    ):
        try:
            code = main(words)
        except SystemExit as left:  # argparse's way out
            code = left.code
    return code, printed.getvalue()


@cache
def _template():
    """A repository without a commit, made by git on its first use."""
    folder = Path(tempfile.mkdtemp(prefix="rag-eval-repo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for words in (
        ("init", "-q", "-b", "main", "--template="),
        ("config", "user.email", "ann@example.org"),
        ("config", "user.name", "Ann"),
        ("config", "maintenance.auto", "false"),  # a process for each commit
    ):
        subprocess.run(["git", *words], cwd=folder, env={**inherited, **alone}, check=True)
    return folder


def codes(output):
    return re.findall(r": \[([a-z-]+)\] ", output)


def command_on_path(folder):
    """A `rag-eval` in ``folder`` that runs this checkout's."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "rag-eval"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{SOURCE}" exec "{sys.executable}" -m rag_eval "$@"\n')
    script.chmod(0o755)
    return folder


_ASK = """#!/bin/sh
call=$(mktemp -d "{folder}/call.XXXXXX") && mkfifo "$call/answer" || exit 70
env -0 > "$call/environ" && printf '%s\\0' "$PWD" "$@" > "$call/words" && echo "$call" > "{folder}/calls"
cat "$call/answer"
exit "$(cat "$call/code")"
"""


@contextmanager
def command_here(folder):
    """A `rag-eval` in ``folder`` that this process answers while it waits for git and its hooks.

    To start Python for each hook takes ten times as long as all that the hook does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    calls, script = folder / "calls", folder / "rag-eval"
    os.mkfifo(calls)
    script.write_text(_ASK.format(folder=folder))
    script.chmod(0o755)

    def answer():
        while call := calls.read_text().strip():
            place, *words = texts_of(call, "words")
            try:
                code, printed = run_here(words, place, dict(item.split("=", 1) for item in texts_of(call, "environ")))
            except Exception:  # noqa: BLE001 - whoever asked waits for an answer
                code, printed = 70, traceback.format_exc()
            Path(call, "code").write_text(str(code or 0))
            Path(call, "answer").write_text(printed)

    def texts_of(call, name):
        return [os.fsdecode(text) for text in Path(call, name).read_bytes().split(b"\0")[:-1]]

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield folder
    finally:
        calls.write_text("\n")
        thread.join()
