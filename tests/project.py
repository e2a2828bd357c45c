"""A project under git for tests: gates, gold and traces on main, and changes of them on branches."""

from __future__ import annotations

import json
import os
import shutil

from gitrepo import Repo

GATES, GOLD, TRACE = "eval-gates.yml", "eval/gold.jsonl", "runs/trace.jsonl"
REFUSED = {"claim": "not in context", "citations": []}


def gold_of(number, **fields):
    """Questions 1 to 4 have an answer, which is in the chunk of their number; the others have none."""
    answerable = number <= 4
    row = {"qid": f"Q{number}", "question": f"How long is number {number}?", "answerable": answerable}
    result = {"gold_claim_substr": [f"{number} days"], "gold_citations": [f"c{number}"]}
    return {**row, **(result if answerable else {"gold_claim_substr": [], "gold_citations": []}), **fields}


def trace_of(number, **fields):
    """The right answer."""
    answer = {"claim": f"It is {number} days.", "citations": [f"c{number}"]} if number <= 4 else REFUSED
    return {"qid": f"Q{number}", "retrieved_ids": [f"c{number}", "c9"], "answer_json": answer, **fields}


GOLDS, TRACES = ([make(number) for number in range(1, 9)] for make in (gold_of, trace_of))


def wrong(*numbers):
    """The traces, with wrong answers to some of the answerable questions."""
    answer = {"claim": "It is a year.", "citations": ["c9"]}
    return [trace_of(n, answer_json=answer) if n in numbers else trace_of(n) for n in range(1, 9)]


def gates(lines="", **thresholds):
    """A gates file: precision at least 0.8 unless said otherwise, with further lines below."""
    bounds = {"precision": "{min: 0.8}", **thresholds}
    stored = "".join(f"  {name}: {bound}\n" for name, bound in bounds.items() if bound)
    return f"version: 1\nk: 3\ngates:\n{stored}{lines}"


def besides_tracked(findings):
    """The findings but for the one that reports of these projects have: their traces are committed with the rest."""
    return [finding for finding in findings if finding["code"] != "traces-tracked"]


def json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def apart(monkeypatch):
    """No configuration of this machine, and no git that may run these tests, has a say."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "GITHUB_", "INPUT_", "PRE_COMMIT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


class Project(Repo):
    """A repository whose folder is the project."""

    @classmethod
    def made(cls, path, gates_text=None, below=""):
        """Gates, gold and traces in the first commit of main; ``below`` is the folder of the project, ending in /."""
        project = cls.create(path, None)
        project.below = below
        project.put(gates=gates() if gates_text is None else gates_text, gold=GOLDS, trace=TRACES)
        project.done("first")
        return project

    def copied(self, path):
        """A copy of the whole repository, with what was noted about it."""
        shutil.copytree(self.path, path, symlinks=True)
        other = Project(path)
        other.__dict__.update(self.__dict__, path=path)
        return other

    def put(self, **files):
        """Write ``gates`` (text), ``gold`` and ``trace`` (rows); None removes one."""
        positions = {"gates": GATES, "gold": GOLD, "trace": TRACE}
        for name, content in files.items():
            path = self.below + positions[name]
            if content is None:
                (self.path / path).unlink()
            else:
                self.write(path, content if isinstance(content, str) else json_lines(content))

    def done(self, message="a change"):
        """Commit everything; the commit's id."""
        self.git("add", "--all", ".")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name, start="main"):
        self.git("checkout", "-q", "-b", name, start)

    def change(self, name="pr", **files):
        """A branch off main with one commit; its id."""
        self.branch(name)
        self.put(**files)
        return self.done(name)

    def merge(self, name="pr", into="main"):
        """The merge of a branch, as GitHub makes it to test a pull request, checked out detached; its id."""
        self.git("checkout", "-q", "--detach", into)
        self.git("merge", "-q", "--no-ff", "-m", f"Merge {name}", name)
        return self.git("rev-parse", "HEAD")
