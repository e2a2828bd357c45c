"""A command that is shown as the next step, or as the fix, reads the files that the options named."""

from __future__ import annotations

import io
import json
import re
import shlex

import pytest

import verdicts
from cases import write_rows
from project import Project, apart, gates, gold_of
from seams import build_parser

GOLD, GATES = "kept here/gold.jsonl", "kept here/gates.yml"
DRAFTS, VERDICTS = "kept here/drafts.jsonl", "kept here/verdicts.jsonl"
FILES = ("--gold", GOLD, "--gates", GATES)
SHOWN = re.compile(r"rag-eval (?:gold|judge|score) .*?(?= && |$)", re.MULTILINE)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository whose gates and gold are not at the usual paths, and are edited but not staged."""
    apart(monkeypatch)
    made = Project.made(tmp_path / "project", gates())
    made.write(GATES, gates("gold: gold.jsonl\n"))
    rows = [gold_of(number) for number in range(1, 5)]
    made.write(GOLD, "".join(json.dumps(row) + "\n" for row in rows))
    made.write("asked.jsonl", json.dumps({"q": "Who?", "error": "timeout"}) + "\n")
    for name, text in (("old", "c1"), ("new", "n1")):
        made.write(f"{name}.jsonl", json.dumps({"id": text, "text": "It takes 1 days to get there by boat."}) + "\n")
    made.done()
    made.write(GOLD, "".join(json.dumps({**row, "tags": ["x"]}) + "\n" for row in rows))
    judged = [verdicts.verdict_row(*pair) for pair in zip(verdicts.gold_of(3), verdicts.trace_of(3), strict=True)]
    write_rows(made.path / VERDICTS, judged)
    made.write("answers_of_one.py", "def answer(question):\n    return 'It is 1 days.'\n")
    made.write("eval/judge-labels.jsonl", "")  # otherwise a spot-check without a grade shows no next step
    monkeypatch.chdir(made.path)
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n1\n\n"))  # the grades of one answer
    return made


@pytest.mark.parametrize(
    "words",
    [
        ("gold", "draft", "--from", "asked.jsonl", "--drafts", DRAFTS, *FILES),
        ("gold", "freeze", "v1", *FILES),
        ("gold", "check", "--all-files", *FILES),
        ("gold", "diff", "--base", "HEAD~1", "--trace", "runs/trace.jsonl", *FILES),
        ("gold", "relink", "--old", "old.jsonl", "--new", "new.jsonl", "--write", *FILES),
        ("judge", "spot-check", "--verdicts", VERDICTS, "--model", "judge-1", "--rater", "ann", "--gates", GATES),
        ("judge", "spot-check", "--verdicts", VERDICTS, "--model", "judge-1", "--html", "form.html", "--gates", GATES),
        ("collect", "--python", "answers_of_one:answer", "--gold", GOLD, "--out", "kept here/trace.jsonl"),
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_a_command_that_is_shown_reads_the_same_files(command, project, words):
    _, out, err = command(*words)
    given = vars(build_parser().parse_args(words))
    shown = [build_parser().parse_args(shlex.split(line)[1:]) for line in SHOWN.findall(out + err)]
    assert shown, out + err
    for other in shown:
        names = [name for name in ("gold", "gates", "drafts", "verdicts", "model", "base") if given.get(name)]
        wrong = {name: getattr(other, name) for name in names if getattr(other, name, given[name]) != given[name]}
        assert wrong == {}, vars(other)
        if other.command == "score":
            assert other.trace == given["out"]
