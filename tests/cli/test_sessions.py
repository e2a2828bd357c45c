"""Every session in tests/sessions prints what its file says: commands as people type them, with all of their output.

A session file has lines `$ command`, each followed by its output, with `! ` before stderr. The first line, `# in NAME`,
names the folder it runs in (`FOLDERS`). `printf TEXT |` types an input, `NAME=VALUE` sets a variable, and
`| grep PATTERN` keeps some lines. To add a session, write the commands and run `make accept`: it fills in the outputs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
from unittest.mock import patch

import pytest

import verdicts
from cases import ROOT, write_rows
from fake_github import FakeGitHub, Fault
from project import Project, apart, gates, gold_of, trace_of, wrong
from rag_eval import __version__
from seams import GitHub, Network, action, main

FILES = sorted((ROOT / "tests/sessions").glob("*.txt"))
ACCEPT = bool(os.environ.get("RAG_EVAL_ACCEPT"))
DATE = {"GIT_AUTHOR_DATE": "2026-01-05T10:00:00Z", "GIT_COMMITTER_DATE": "2026-01-05T10:00:00Z"}
CHANGING = [
    (re.compile(rf"\b{re.escape(__version__)}\b"), "VERSION"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d-[0-9a-f]{7,}"), "DATE-HASH"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "SHA256"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "COMMIT"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,16}\b"), "HASH"),
    (re.compile(r"(?<=[`(])[0-9a-f]{7,12}(?=[`),])"), "HASH"),
    (re.compile(r"http://127\.0\.0\.1:\d{2,}"), "http://api"),
    (re.compile(r'(?<="python": ")[\w.+]+'), "PYTHON"),
    (re.compile(r'("ts": )[\d.]+(.*"latency_ms": \{"total": )[\d.]+'), r"\1TIME\2MS"),
]
"""What differs from run to run or from version to version, and what stands for it."""


def quickstart(folder):
    shutil.copytree(ROOT / "examples/quickstart", folder)


def perspectives(folder):
    shutil.copytree(ROOT / "examples/perspectives", folder)


def project(folder):
    """Gates, gold and traces on main; a branch with a changed item; two reports of earlier runs."""
    made = Project.made(folder, gates("signoff: {require: record}\n", precision="{min: 0.8, max_drop: 0.02}"))
    made.write("runs/old.jsonl", lines(wrong(1)))
    made.write("runs/worse.jsonl", lines(wrong(1, 2, 3)))
    made.done("runs")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for name, traces in (("run-1", "runs/trace"), ("run-2", "runs/old"), ("run-3", "runs/worse")):
            main(["score", "--trace", f"{traces}.jsonl", "--format", "json", "--quiet", "--out", "made"])
            made.write(f"reports/{name}.json", (folder / "made/report.json").read_bytes())
    shutil.rmtree(folder / "made")
    made.branch("topic")
    made.put(gold=[gold_of(1, gold_claim_substr=["1 days", "one day"]), *map(gold_of, range(2, 9)), gold_of(9)])
    made.done("another gold")
    made.put(trace=[*map(trace_of, range(1, 9)), trace_of(9)])


def judged(folder):
    """Verdicts of a judge on 60 answers, and the scores of two people, who mostly agree with it."""
    golds, traces = verdicts.gold_of(60), verdicts.trace_of(60)
    for number, trace in enumerate(traces):
        trace["answer_json"]["claim"] += " And so on." * (number % 7)
    scores = [number * 7 % 6 for number in range(60)]
    rows = [
        verdicts.verdict_row(*pair, groundedness=scores[n]) for n, pair in enumerate(zip(golds, traces, strict=True))
    ]
    write_rows(folder / "eval/gold.jsonl", golds)
    write_rows(folder / "runs/trace.jsonl", traces)
    write_rows(folder / "eval/verdicts.jsonl", rows)
    gates = "version: 1\nverdicts: eval/verdicts.jsonl\ngates:\n  judge_groundedness: {min: 2.5}\n"
    (folder / "eval-gates.yml").write_text(gates, "utf-8")
    people = [f"Q{n},{min(5, score + (n % 5 == 0))},{'ann' if n % 2 else 'bob'}\n" for n, score in enumerate(scores)]
    second = [f"Q{n},{max(0, scores[n] - (n % 4 == 0))},cy\n" for n in range(0, 60, 3)]
    (folder / "humans.csv").write_text("".join(["qid,groundedness,rater\n", *people, *second]), "utf-8")


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


TABLES = re.compile(r"$|.*  .*[↑↓]$|.* {3,}|-{3,}|[A-Z][a-z]+: [a-z]|No data|- (?!error|warning)|  [A-Z_]+: ")
"""Lines of the table of metrics that the action prints; tests/expected has them."""
SHOWN = 14
"""Lines shown of each comment."""
FOLDERS = {"quickstart": quickstart, "perspectives": perspectives, "project": project, "judged": judged}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Each folder, made once and copied for every session in it."""
    made = tmp_path_factory.mktemp("folders")
    with pytest.MonkeyPatch.context() as patched, patch.dict(os.environ, DATE):
        apart(patched)
        for name, make in FOLDERS.items():
            make(made / name)
    return made


def played(text, folder):
    """A session with the outputs that its commands have now."""
    header, *commands = [line for line in text.splitlines() if line.startswith(("# in ", "$ "))]
    return "\n".join([header, "", *(block for line in commands for block in _block(line, folder))])


def _block(line, folder):
    command, _, wanted = line.removeprefix("$ ").partition(" | grep ")
    words, typed, environ = shlex.split(command), "", {}
    if words[0] == "printf":
        typed, words = words[1].replace("\\n", "\n"), words[3:]
    while "=" in words[0]:
        name, _, environ[name] = words.pop(0).partition("=")
    code, out, err = _rag_eval(words[1:], typed, environ) if words[0] == "rag-eval" else (0, _shown(words, folder), "")
    printed = [*(item for item in out.splitlines() if re.search(wanted.strip("'"), item))]
    printed += [f"! {item}" for item in err.splitlines()]
    for pattern, name in CHANGING:
        printed = [pattern.sub(name, item) for item in printed]
    printed = [item.replace(str(folder), "FOLDER").rstrip() for item in printed]
    return [line, *printed, *([f"[exit {code}]"] if code != 0 else []), ""]


def _rag_eval(words, typed, environ):
    out, err, stdin = io.StringIO(), io.StringIO(), io.TextIOWrapper(io.BytesIO(typed.encode()), "utf-8")
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "stdin", stdin),
        patch.dict(os.environ, environ),
    ):
        try:
            code = main(words)
        except SystemExit as left:  # argparse's way out
            code = left.code
    return code, out.getvalue(), err.getvalue()


def _shown(words, folder):
    """The few other commands that a session may use."""
    if words[0] == "cat":
        return (folder / words[1]).read_text("utf-8")
    if words[0] == "ls":
        return "".join(f"{path.name}\n" for path in sorted((folder / words[1]).iterdir()))
    if words[0] == "rm":
        (folder / words[1]).unlink()
        return ""
    if words[0] == "write":
        (folder / words[1]).parent.mkdir(parents=True, exist_ok=True)
        (folder / words[1]).write_text("".join(f"{line}\n" for line in words[2:]), "utf-8")
        return ""
    if words[0] == "action":
        return _acted(folder, dict(word.split("=", 1) for word in words[1:]))
    assert words[0] == "git", words
    return Project(folder).git(*words[1:])


def _acted(folder, inputs):
    """The action on the pull request of `topic`: what it prints, its outputs, its requests, its comments.

    ``fail=STATUS PATTERN`` lets requests fail; everything else is an input of the action.
    """
    project, fake = Project(folder), FakeGitHub()
    base, head = (project.git("rev-parse", name) for name in ("main", "topic"))
    project.git("checkout", "-q", "--force", "--detach", "main")
    project.git("merge", "-q", "--no-ff", "--no-edit", head)
    fake.repository_at(folder)
    fake.add_pull(2, head, base)
    if failing := inputs.pop("fail", ""):
        status, _, match = failing.partition(" ")
        fake.faults = [Fault(match, int(status), times=99)]
    names = ("GITHUB_EVENT_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
    files = {name: folder.parent / name for name in names}
    pull = {"number": 2, "head": {"sha": head}, "base": {"sha": base, "ref": "main"}, "user": {"login": "eve"}}
    event = {"pull_request": pull, "repository": {"default_branch": "main"}}
    files["GITHUB_EVENT_PATH"].write_text(json.dumps(event))
    files["GITHUB_OUTPUT"].write_text("")
    environ = {
        **{f"INPUT_{name.upper()}": value for name, value in {"github-token": "t0ken", **inputs}.items()},
        **{name: str(file) for name, file in files.items()},
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REF": "refs/pull/2/merge",
        "GITHUB_BASE_REF": "main",
        "GITHUB_SHA": project.git("rev-parse", "HEAD"),
        "GITHUB_REPOSITORY": "octo/hello",
        "GITHUB_RUN_ID": "4242",
        "GITHUB_RUN_NUMBER": "7",
        "GITHUB_RUN_ATTEMPT": "1",
    }
    with fake.serving(), contextlib.redirect_stdout(io.StringIO()) as out:
        code = action({**environ, "GITHUB_API_URL": fake.url}, _connected)
    outputs = re.findall(r"(?m)^([\w-]+)<<(\w+)\n((?s:.*?))\n\2$", files["GITHUB_OUTPUT"].read_text("utf-8"))
    comments = [line for comment in fake.comments[2] for line in comment["body"].splitlines()[:SHOWN]]
    parts = {
        "printed": [line for line in out.getvalue().splitlines() if not TABLES.match(line)],
        "outputs": [f"{name}={value.splitlines()[0] if value else ''}" for name, _, value in outputs],
        "requests": [f"{seen.method} {seen.target}" for seen in fake.seen],
        "comments": comments,
    }
    lines = [line for name, rows in parts.items() for line in (f"-- {name}", *rows)]
    return "\n".join([*lines, f"-- exit {code}"])


def _connected(api_url, token, repository):
    return GitHub(api_url, token, repository, Network(sleep=lambda _: None))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_session_prints_what_its_file_says(file, folders, tmp_path, monkeypatch):
    apart(monkeypatch)
    for name, value in {**DATE, "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    text = file.read_text("utf-8")
    folder = tmp_path / "folder"
    shutil.copytree(folders / text.partition("\n")[0].removeprefix("# in "), folder, symlinks=True)
    monkeypatch.chdir(folder)
    with FakeGitHub().serving() as github:
        github.add_pull(2, "1" * 40, "2" * 40)
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        now = played(text, folder)
    if ACCEPT:
        file.write_text(now, "utf-8")
    assert now == text, f"{file.name} differs: look at the change, then run make accept"
