"""Every option of every command takes any value: the run ends with a verdict or a message, never as a bug."""

import argparse
import subprocess
import sys

import pytest

from seams import build_parser

pytestmark = pytest.mark.deep

ARGUMENTS = {
    "demo": "",
    "init": "elsewhere",
    "collect": "--gold eval/gold.jsonl --exec cat --out runs/c.jsonl",
    "judge": "",
    "judge calibrate": "--labels labels.csv",
    "judge spot-check": "--out spot.jsonl",
    "judge repeat": "",
    "dataset": "squad squad.json",
    "validate": "eval/gold.jsonl",
    "score": "",
    "gold check": "",
    "gold diff": "",
    "gold lint": "",
    "gold stats": "",
    "gold freeze": "v1",
    "gold signoff": "--reason because",
    "gold draft": "",
    "gold review": "",
    "gold relink": "",
    "import": "table table.csv --map map.yml",
    "export": "trec --gold eval/gold.jsonl --trace runs/trace.jsonl",
    "gate": "report.json",
    "comment": "report.json",
    "compare": "report.json report.json",
    "history": "reports",
    "probe": "",
    "explain": "precision",
    "metrics": "",
    "completion": "bash",
}
VALUES = [
    *("missing.file", "reports", "report.json/under", "/dev/null/under", ".", "bytes.bin", "list.yml", "report.json"),
    "deep.json",
    *("x'y", "0", "-1", "9" * 30, "1e999", "\udcff", "a" * 5000),
]


@pytest.fixture
def project(command, tmp_path, monkeypatch):
    """A project of `init` with a report, and files that are of no use."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    command("init")
    subprocess.run([sys.executable, "eval/write_traces.py"], check=True, capture_output=True)
    (tmp_path / "reports").mkdir()
    for name in ("report.json", "reports/1.json"):
        (tmp_path / name).write_text(command("score", "--format", "json")[1], "utf-8")
    (tmp_path / "bytes.bin").write_bytes(bytes(range(256)))
    for name, text in {
        "deep.json": "[" * 20_000,
        "list.yml": "- 1\n- 0.5\n",
        "table.csv": "id,question,answer\n1,a,b\n",
        "map.yml": "question: question\nanswer: answer\n",
        "squad.json": '{"data": []}',
        "labels.csv": "qid,score\nA0001,4\n",
    }.items():
        (tmp_path / name).write_text(text, "utf-8")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def restored():
        for path, data in files.items():
            if not path.is_file() or path.read_bytes() != data:
                path.write_bytes(data)

    return restored


def leaves(name, parser):
    """The commands of a parser: those of its sub-commands, and itself if it has options besides --help."""
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    commands = [] if nested and not any(takes_value(action) for action in parser._actions) else [(name, parser)]
    subs = nested[0].choices.items() if nested else ()
    return commands + [leaf for word, sub in subs for leaf in leaves(f"{name} {word}".strip(), sub)]


def takes_value(action):
    skipped = argparse._HelpAction | argparse._VersionAction | argparse._SubParsersAction
    return not isinstance(action, skipped) and action.nargs != 0


LEAVES = leaves("", build_parser())


def test_every_command_is_tried():
    assert sorted(name for name, _ in LEAVES) == sorted(ARGUMENTS)


@pytest.mark.parametrize(("name", "parser"), LEAVES, ids=[name for name, _ in LEAVES])
def test_no_value_of_an_option_is_a_bug(command, project, name, parser):
    failed = []
    for action in parser._actions:
        if not takes_value(action):
            continue
        for value in VALUES:
            words = ARGUMENTS[name].split()
            words = [*words, action.option_strings[-1], value] if action.option_strings else [value, *words[1:]]
            project()
            code, _, err = command(*name.split(), *words)
            if code not in (0, 1, 2):
                failed.append((words[-2:], code, err[-400:]))
    assert failed == []
