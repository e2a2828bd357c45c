"""Whatever files, arguments, events and variables say: an exit code of 0, 1 or 2 with a reason, within seconds."""

from __future__ import annotations

import io
import json
import os
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import gold_row, trace_row
from damage import WORDS, damaged, documents, encoded, mutated, rows
from depth import DEEP
from seams import COMMANDS, RagEvalError, action, build_parser, main

SECONDS = 60
EXAMPLES = settings(max_examples=180 if DEEP else 60, derandomize=True)
GATES = {
    "version": 1,
    "gold": "gold.jsonl",
    "trace": "trace.jsonl",
    "k": 3,
    "refusal": {"token": "not in context", "phrases": ["cannot say"], "builtin": True},
    "completeness": {"missing": 1, "duplicate": 2},
    "integrity": {"padded-citations": "warning", "stale-traces": "off"},
    "signoff": {
        "dataset": "7b0c4e",
        "gold": "gold.jsonl",
        "records": "signoff",
        "require": "record",
        "four_eyes": True,
    },
    "must_pass": ["Q1", "tags=critical"],
    "baseline": {"report": "report.json", "trace": "trace.jsonl"},
    "statistics": {"alpha": 0.01, "correction": "none", "inconclusive": "fail", "test": "none"},
    "limits": {"line_mib": 1, "depth": 32, "lines": 100, "whole_mib": 2, "expanded_mib": 3},
    "gates": {
        "precision": {"min": 0.8, "max_drop": 0.1, "confidence": 0.95},
        "recall_all@5": {"min": 1, "when_no_data": "skip"},
        "latency_total_ms.p95": {"max": 2000, "severity": "warning"},
        "chr": {"min": 0.7, "test": "none"},
    },
    "slices": {"by": ["category", "meta.team"], "min_n": 2, "gates": {"category=*": {"precision": {"max_drop": 0.05}}}},
    "score": {"weights": {"accuracy": 0.5}, "budgets": {"cost_usd": 0.01}},
    "groundedness": {"assertion": 0.7, "inference": 0.4},
    "safety": {"warn": 0.3, "block": 0.5, "verbatim_words": 20, "internal_ids": ["EMP-[0-9]{6}"]},
    "prices": {"small-1": {"input": 0.15, "output": 1}},
}
EVIDENCE = {"gold_claim_substr": ["30 days"], "gold_citations": ["a"]}
ATTACK = {"kind": "input", "positive": True, "category": "c"}
ANCHOR = {"rel_path": "d", "heading_path": "x"}
GOLD = [
    gold_row(qid="Q1", **EVIDENCE, category="c", tags=["critical"], meta={"team": "x"}),
    gold_row(qid="Q2", question="Who?", answerable=False, gold_facts=[{"fact": "x is 3"}], attack=ATTACK),
    gold_row(qid="Q3", question="Where?", expected_answer="Here in 1999", relevant_docs=["d"], supports=[ANCHOR]),
]
TRACES = [
    trace_row(
        qid=qid,
        retrieved_ids=["a", "b"],
        answer_json={"claim": "Kept 30 days, 3.5 % of 1/2 of EMP-123456.", "citations": ["a"]},
        chunks=[{"id": "a", "text": "Kept for 30 days in 1999."}],
        latency_ms={"total": 12},
        usage={"model": "small-1", "input_tokens": 3, "output_tokens": 9},
        guardrail={"score": 0.4, "blocked": False},
    )
    for qid in ("Q1", "Q2", "Q3")
]
RUN = {"run_id": "r", "system_commit": "0123456789abcdef", "gold_sha256": "0" * 64, "index": {"chunks": 3}}
SIGNERS = b'ann@example.org namespaces="gold-signoff@rag-eval-action" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n'
FILES = {
    "gold.jsonl": rows(GOLD),
    "trace.jsonl": rows(TRACES),
    "eval-gates.yml": documents(GATES),
    "run.json": documents(RUN),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with good files of every kind, a report among them, which is not a repository."""
    folder = tmp_path_factory.mktemp("input")
    (folder / "gold.jsonl").write_bytes(b"".join(encoded(row) + b"\n" for row in GOLD))
    (folder / "trace.jsonl").write_bytes(b"".join(encoded(row) + b"\n" for row in TRACES))
    (folder / "eval-gates.yml").write_bytes(encoded({name: part for name, part in GATES.items() if name != "baseline"}))
    (folder / "run.json").write_bytes(encoded(RUN))
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    code, output = ended(folder, ["score", "--out", "out"])
    assert code in (0, 1), output
    (folder / "report.json").write_bytes((folder / "out/report.json").read_bytes())
    (folder / "eval-gates.yml").write_bytes(encoded(GATES))
    code, output = ended(folder, ["score"])
    assert code in (0, 1), output
    return folder


def ended(folder, words, environ=None):
    """Run a command in this process and hold it to the rules: its exit code, and what it said."""
    output, start = io.StringIO(), time.process_time()
    with chdir(folder), redirect_stdout(output), redirect_stderr(output), patch.dict(os.environ, environ or {}):
        try:
            code = main(words)
        except SystemExit as left:  # argparse's way out
            code = left.code
    hold(code, output.getvalue(), start)
    return code, output.getvalue()


def hold(code, output, start):
    """Assert what holds of every ending."""
    assert code in (0, 1, 2), output
    assert "Traceback" not in output
    assert "defect" not in output
    assert time.process_time() - start < SECONDS
    assert len(output) < 500_000


def with_file(folder, name, data, words):
    """Run a command with other bytes in a file."""
    good = (folder / name).read_bytes()
    (folder / name).write_bytes(data)
    try:
        return ended(folder, words)
    finally:
        (folder / name).write_bytes(good)


COMMANDS_ON_FILES = [["score", "--format", "html"], ["score"], ["validate"], ["gold", "lint"], ["probe"]]
COMMANDS_ON_REPORTS = [
    ["gate", "report.json"],
    ["gate", "report.json", "--format", "html"],
    ["validate", "report.json"],
    ["score", "--baseline", "report.json"],
    ["compare", "report.json", "out/report.json"],
    ["history", "report.json", "out/report.json"],
    ["comment", "report.json"],
]


@EXAMPLES
@given(st.data())
def test_files_of_any_content_are_judged_or_refused(folder, data):
    name = data.draw(st.sampled_from(list(FILES)))
    words = data.draw(st.sampled_from(COMMANDS_ON_FILES))
    with_file(folder, name, data.draw(FILES[name]), [*words, name] if words == ["validate"] else words)


@EXAMPLES
@given(st.data())
def test_reports_of_any_content_are_judged_or_refused(folder, data):
    good = (folder / "report.json").read_bytes()
    report = data.draw(mutated(json.loads(good)).map(encoded) | damaged(good))
    with_file(folder, "report.json", report, data.draw(st.sampled_from(COMMANDS_ON_REPORTS)))


@pytest.mark.parametrize("command", ["gate", "validate", "score --baseline"])
def test_a_report_in_another_encoding_is_refused(folder, command):
    latin = (folder / "report.json").read_bytes().replace(b'"metrics":', '"métrics":'.encode("latin-1"))
    code, output = with_file(folder, "report.json", latin, [*command.split(), "report.json"])
    assert (code, "byte 0xe9 is not valid UTF-8" in output) == (2, True), output


@pytest.mark.parametrize(
    "words", [["draft", "--from", "trace.jsonl"], ["review", "--signer", "a@b.c"]], ids=lambda words: words[0]
)
def test_drafts_that_cannot_be_read_are_refused(folder, words):
    for drafts, why in (("folder", "is a folder"), ("loop", "cannot be opened"), ("deep.jsonl", "is not a draft")):
        (folder / "deep.jsonl").write_bytes(b"[" * 90_000)
        code, output = ended(folder, ["gold", *words, "--drafts", drafts])
        assert (code, f"{drafts}:" in output, why in output) == (2, True, True), output


@pytest.mark.parametrize("place", ["pipe", "/dev/absent"])
def test_no_device_or_pipe_is_replaced_by_a_file(folder, place):
    if place == "pipe":
        os.mkfifo(folder / place)
    code, output = ended(folder, ["gold", "draft", "--from", "trace.jsonl", "--drafts", "new.jsonl", "--sample", "1"])
    assert code == 0, output
    code, output = ended(folder, ["import", "ragas-trace", "new.jsonl", "--force", "--out", place])
    assert (code, f"{place} is a device or a pipe" in output) == (2, True), output


def test_a_report_folder_that_is_a_file_is_named(folder):
    (folder / "taken").write_text("mine")
    code, output = ended(folder, ["score", "--gold", "gold.jsonl", "--trace", "trace.jsonl", "--out", "taken"])
    assert (code, "taken is not a folder. Name a folder." in output) == (2, True), output
    assert (folder / "taken").read_text() == "mine"


def options(command):
    """Return the option strings of a command."""
    parser = build_parser()
    [choices] = [
        action.choices for action in parser._actions if hasattr(action, "choices") and isinstance(action.choices, dict)
    ]
    return [name for action in choices[command]._actions for name in action.option_strings]


OFFLINE = [name for name in COMMANDS if name != "comment"]
FURTHER = ["out", "out/report.json", "lint", "stats", "check", "diff", "freeze", "signoff"]
ARGUMENTS = st.sampled_from([*(word for word in WORDS if "\0" not in word), *FURTHER])


@EXAMPLES
@given(st.data())
def test_arguments_of_any_kind_are_taken_or_refused(folder, data):
    command = data.draw(st.sampled_from(OFFLINE))
    known = options(command)
    words = [command]
    for _ in range(data.draw(st.integers(0, 5))):
        words += [data.draw(st.sampled_from(known))] if known and data.draw(st.booleans()) else [data.draw(ARGUMENTS)]
    if any(word in ("/", "/dev/zero", "~") for word in words) or "dask" in words or "--scheduler" in words:
        return
    ended(folder, words)


NAMES = ["COLUMNS", "LINES", "NO_COLOR", "LANG", "GIT_DIR", "GIT_INDEX_FILE", "PYTHONUTF8", "HOME", "TERM", "CI"]
LEGAL = [word for word in WORDS if "\0" not in word and "\ud800" not in word]


@EXAMPLES
@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(LEGAL)))
def test_variables_of_any_value_change_no_ending(folder, environ):
    assert ended(folder, ["score"], environ)[0] in (0, 1)
    ended(folder, ["score", "--help"], environ)
    ended(folder, ["gold", "check"], environ)


EVENT = {
    "number": 2,
    "pull_request": {
        "number": 2,
        "user": {"login": "eve"},
        "head": {"sha": "a" * 40, "ref": "topic", "repo": {"full_name": "o/r", "fork": True}},
        "base": {"sha": "b" * 40, "ref": "main"},
    },
    "merge_group": {"base_sha": "b" * 40, "head_sha": "a" * 40, "base_ref": "refs/heads/main"},
    "workflow_run": {"run_number": 3, "head_sha": "a" * 40, "head_branch": "x", "pull_requests": [{"number": 2}]},
    "repository": {"default_branch": "main", "owner": {"login": "o"}},
    "before": "b" * 40,
}
VARIABLES = {
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_REF": "refs/pull/2/merge",
    "GITHUB_SHA": "a" * 40,
    "GITHUB_BASE_REF": "main",
    "GITHUB_HEAD_REF": "topic",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_SERVER_URL": "https://github.test",
    "GITHUB_API_URL": "https://api.github.test",
    "GITHUB_RUN_ID": "7",
    "GITHUB_RUN_NUMBER": "3",
    "GITHUB_RUN_ATTEMPT": "1",
    "INPUT_GOLD": "gold.jsonl",
    "INPUT_TRACE": "trace.jsonl",
    "INPUT_GATES": "eval-gates.yml",
    "INPUT_GATES-REF": "head",
    "INPUT_BASELINE": "report.json",
    "INPUT_K": "5",
    "INPUT_COMMENT": "always",
    "INPUT_COMMENT-ID": "x",
    "INPUT_ANNOTATIONS": "true",
    "INPUT_SUMMARY": "true",
    "INPUT_REPORT-DIR": "rag-eval-report",
    "INPUT_FAIL-ON": "error",
    "INPUT_SIGNOFF": "policy",
    "INPUT_WORKING-DIRECTORY": ".",
    "INPUT_REPORT": "",
    "INPUT_GITHUB-TOKEN": "",
}
EVENTS = ["pull_request", "push", "merge_group", "workflow_run", "pull_request_target", "schedule", "x"]


def refused(*_):
    """Stand for an API that nobody reaches."""
    raise RagEvalError("The API cannot be reached. Try again.")


@EXAMPLES
@given(documents(EVENT), mutated(VARIABLES, most=4), st.sampled_from(EVENTS))
def test_events_and_variables_of_any_kind_end_the_action_with_a_reason(folder, event, variables, kind):
    given = variables if isinstance(variables, dict) else {}
    environ = {name: str(value)[:6_000] for name, value in given.items() if isinstance(value, (str, int))}
    environ = {name: value for name, value in environ.items() if "\0" not in name + value and "=" not in name}
    (folder / "event.json").write_bytes(event)
    for name in ("output", "summary"):
        (folder / name).write_bytes(b"")
    environ |= {
        "GITHUB_EVENT_NAME": kind,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_WORKSPACE": str(folder),
    }
    environ |= {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    output, start = io.StringIO(), time.process_time()
    with chdir(folder), redirect_stdout(output), redirect_stderr(output):
        code = action(environ, refused)
    hold(code, output.getvalue(), start)
    assert (folder / "output").read_text("utf-8", "replace").count("verdict") in (0, 1)


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
def test_a_terminal_of_any_width_is_helped(folder, name):
    assert ended(folder, ["score", "--help"], {name: "9" * 5_000})[0] == 0


@pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="a system without /proc")
@pytest.mark.parametrize("path", ["/proc/self/pagemap", "/proc/kmsg", "/proc/self/environ"])
@pytest.mark.parametrize("words", [["score", "--gold"], ["score", "--trace"], ["score", "--gates"], ["validate"]])
def test_files_that_the_system_makes_up_are_refused(folder, words, path):
    code, output = ended(folder, [*words, path])
    assert code == 2
    assert output.startswith(f"{path}: ")
