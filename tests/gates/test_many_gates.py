"""Thousands of gates, slices and mistakes: seconds of processor time, and lists that are cut and counted."""

from __future__ import annotations

import json
import re
import time

import pytest

from cases import gold_row, write_rows
from seams import RENDERERS

SECONDS = 30  # two here, and minutes if each problem looks at all others
PRINTED = 100_000


@pytest.fixture
def score(command, tmp_path):
    """Score a run under a gates file: exit code, stdout, stderr; in time."""

    def run(gates, cases=1, *words):
        qids = [f"Q{index}" for index in range(cases)]
        write_rows(
            tmp_path / "gold.jsonl",
            [gold_row(qid=qid, category=qid, gold_claim_substr=["30 days"], gold_citations=["a"]) for qid in qids],
        )
        write_rows(tmp_path / "trace.jsonl", [{"qid": qid, "answer": "7 days"} for qid in qids])
        (tmp_path / "gates.yml").write_text(f"version: 1\n{gates}")
        files = [f"--{name}={tmp_path / file}" for name, file in FILES.items()]
        start = time.process_time()
        ending = command("score", *files, *words)
        assert time.process_time() - start < SECONDS * (1 + cases / 5_000)
        return ending

    return run


FILES = {"gold": "gold.jsonl", "trace": "trace.jsonl", "gates": "gates.yml"}


def mapping(count, line):
    return "".join(f"{line.replace('%', str(index))}\n" for index in range(1, count + 1))


FLAWED = {
    "unknown gates": "gates:\n" + mapping(2_000, "  nothing%: {min: 0.5}"),
    "cutoffs out of range": "gates:\n" + mapping(2_000, "  recall@0%: {min: 0.5}"),
    "unknown keys": mapping(2_000, "key%: 1"),
    "unknown keys of integrity": "integrity:\n" + mapping(2_000, "  key%: 1"),
    "gates on the wrong side": "gates:\n" + mapping(2_000, "  recall@%: {max: 0.5}"),
    "unknown gates on slices": "slices:\n  gates:\n" + mapping(2_000, '    "category=%": {nothing: {min: 0.5}}'),
    "bad slices": "slices:\n  by:\n" + mapping(2_000, "  - nothing%"),
    "bad words": "must_pass:\n" + mapping(2_000, "  - nothing=%"),
}


@pytest.mark.parametrize("gates", FLAWED.values(), ids=FLAWED)
def test_problems_beyond_a_hundred_are_counted(score, gates):
    code, out, err = score(gates)
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == 101
    assert re.fullmatch(r"… and [0-9]+ more problems not shown\.", lines[-1])


@pytest.mark.parametrize("form", ["markdown", "table"])
@pytest.mark.parametrize(
    ("gates", "cases"),
    [
        ("gates:\n" + mapping(2_000, "  recall@%: {min: 0.5}"), 1),
        ("slices:\n  gates:\n" + mapping(2_000, '    "category=%": {precision: {min: 0.5}}'), 1),
        ('slices:\n  by: [category]\n  min_n: 1\n  gates:\n    "category=*": {precision: {min: 0.5}}\n', 2_000),
    ],
    ids=["gates", "gates on slices", "slices"],
)
def test_gates_beyond_two_hundred_are_counted(score, gates, cases, form):
    code, out, _ = score(gates, cases, "--format", form)
    assert code == 1
    assert len(out) < PRINTED
    [more] = re.findall(r"… and ([0-9,]+) more gates, ([0-9,]+) of them failed; report\.json has all\.", out)
    assert all(int(count.replace(",", "")) > 1_500 for count in more)


def test_report_json_has_all_gates(score):
    code, out, _ = score("gates:\n" + mapping(1_000, "  recall@%: {min: 0.5}"), 1, "--format", "json")
    assert code == 1
    assert len(json.loads(out)["gates"]) > 1_000


@pytest.mark.parametrize("form", RENDERERS)
def test_every_format_takes_thousands_of_slices(score, form):
    gates = "slices:\n  gates:\n" + mapping(2_000, '    "category=%": {precision: {min: 0.5}}')
    assert score(gates, 1, "--format", form)[0] == 1
