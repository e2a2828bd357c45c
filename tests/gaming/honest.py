"""The honest repository that every scenario starts from: thirty signed questions, gates, and a system that answers.

The same bytes, and so the same commit, on every machine and day.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

from seams import HashChange, Record

GOLD, GATES, RECORDS = "eval/gold.jsonl", "eval-gates.yml", "eval/gold.signoff"
TRACE, RUN = "runs/trace.jsonl", "runs/run.json"
REFUSAL = "not in context"
FAILING = ("Q03", "Q17")
"""The questions that the honest system gets wrong: few enough for every gate to hold."""

CORPUS = [f"doc{number:02}#1" for number in range(1, 31)]
GATES_TEXT = """\
version: 1
gold: eval/gold.jsonl
trace: runs/trace.jsonl
k: 5
refusal: {token: "not in context", phrases: []}
gates:
  precision: {min: 0.80}
  chr: {min: 0.75}
  under_refusal: {max: 0.05}
  over_refusal: {max: 0.10}
  recall_all@5: {min: 0.90}
completeness: {missing: 0, duplicate: 0, unknown: 0}
signoff: {dataset: honest, gold: eval/gold.jsonl, records: eval/gold.signoff, require: record}
"""
PEOPLE = {"ann": "ann@example.org", "bob": "bob@example.org", "eve": "eve@example.org", "nobody": "x@y.invalid"}
"""Ann keeps the gold, Bob reviews, Eve opens the pull requests; nobody has no account."""

_ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_DATE": "2026-01-05T10:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-05T10:00:00Z",
}


def items():
    """Twenty-four questions that the corpus answers, each from a chunk of its own, and six that it does not."""
    return [_item(number) for number in range(1, 31)]


def _item(number):
    qid, answerable = f"Q{number:02}", number <= 24
    return {
        "qid": qid,
        "question": f"How much does part {number} weigh?" if answerable else f"Who invented part {number}?",
        "answerable": answerable,
        "gold_claim_substr": [f"{number * 7} grams"] if answerable else [],
        "gold_citations": [CORPUS[number - 1]] if answerable else [],
    }


def answer(item):
    """What the system of the base says to a question: its claim, its citations, the chunks that it retrieved."""
    number = int(item["qid"][1:]) if item["qid"] in QUESTIONS else 0
    truth = QUESTIONS.get(item["qid"], item)
    others = [CORPUS[(number + step) % 30] for step in (5, 9, 14, 20)]
    if not truth["answerable"]:
        return {"qid": item["qid"], "retrieved_ids": others, "answer_json": {"claim": REFUSAL, "citations": []}}
    claim = f"It weighs {truth['gold_claim_substr'][0]}." if item["qid"] not in FAILING else "It is rather heavy."
    answered = {"claim": claim, "citations": list(truth["gold_citations"])}
    return {"qid": item["qid"], "retrieved_ids": [*truth["gold_citations"], *others], "answer_json": answered}


def named(qids):
    """The qids of a list; ``failing`` stands for those that the honest system gets wrong."""
    return FAILING if qids == "failing" else qids


QUESTIONS = {row["qid"]: row for row in items()}


def lines(rows):
    """Rows as the bytes of JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def hashes(data):
    """The sign-off hash of each item of a JSONL gold file, by qid: sha256 of its line without the ending."""
    result = {}
    for line in data.split(b"\n"):
        source = line.removesuffix(b"\r")
        if source.strip():
            result[json.loads(source)["qid"]] = f"sha256:{hashlib.sha256(source).hexdigest()}"
    return result


def record(before, after, signer="ann@example.org", date="2026-01-05T10:00:00Z", **more):
    """The record that signs what leads from the gold ``before`` to ``after``, both as bytes."""
    old, new = hashes(before), hashes(after)
    changes = [HashChange(qid, old.get(qid), new.get(qid)) for qid in sorted(old | new) if old.get(qid) != new.get(qid)]
    named = {"dataset": "honest", "gold": GOLD, "reason": "looked at with the manual", **more}
    return Record(signer=signer, date=date, changes=tuple(changes), **named)


class Repository:
    """A git repository at ``path``, apart from the configuration of this machine."""

    def __init__(self, path):
        self.path = Path(path)

    def git(self, *words, who="ann"):
        """What git says; commits are by ``who``."""
        person = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _names(who)}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", *words], cwd=self.path, env={**inherited, **_ALONE, **person}, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def commit(self, message="a change", who="ann"):
        """Commit all that stands in the folder."""
        self.git("add", "--all")
        self.git("-c", "commit.gpgSign=false", "commit", "--quiet", "--allow-empty", "--message", message, who=who)

    def write(self, path, data):
        """Write a file, given as text or bytes."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)

    def read(self, path):
        """The bytes of a file."""
        return (self.path / path).read_bytes()


def _names(who):
    return (("NAME", who), ("EMAIL", PEOPLE[who]))


def build(path):
    """The honest repository in a new folder."""
    path.mkdir(parents=True)
    repository = Repository(path)
    repository.git("init", "--quiet", "--template=", "--initial-branch=main")
    repository.write(".gitignore", "/runs/\nrag-eval-report/\n")
    repository.write("system.py", "# answers the questions\n")
    repository.write(GATES, GATES_TEXT)
    gold = lines(items())
    repository.write(GOLD, gold)
    signed = record(b"", gold)
    repository.write(f"{RECORDS}/{signed.name}", signed.file)
    repository.commit("the honest base")
    return repository
