"""The verdict in a sentence: missing answers come first, and every count names what it counts."""

import json
import re

import pytest

from cases import ROOT, write_rows
from rag_eval import api
from rag_eval.errors import Finding
from rag_eval.rendering import gates_table, markdown, summary
from seams import render, with_verdict

EXAMPLE = ROOT / "examples" / "quickstart"
GOLD, GATES = EXAMPLE / "gold.jsonl", EXAMPLE / "eval-gates.yml"
ANSWERS = [json.loads(line) for line in (EXAMPLE / "good.jsonl").read_text("utf-8").splitlines()]
ERRORED = [{"qid": row["qid"], "error": "out of memory"} for row in ANSWERS]


@pytest.fixture
def score(tmp_path):
    """The report of given answers to the questions of the example."""

    def score(rows, gates=GATES):
        write_rows(tmp_path / "trace.jsonl", rows)
        return api.score(GOLD, tmp_path / "trace.jsonl", gates)

    return score


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "Evaluated 14 questions, none of them answered. Failed: 14 missing traces (allowed: 0); precision"),
        (
            ANSWERS[:9],
            "Evaluated 14 questions: 5 wrong (5 without an answer). Failed: 5 missing traces (allowed: 0); precision",
        ),
        (ERRORED, "Evaluated 14 questions, none of them answered. Failed: precision 0.000"),
        (
            [*ANSWERS[:13], ERRORED[13]],
            "Evaluated 14 questions: 1 wrong (1 without an answer). Failed: under_refusal 0.250",
        ),
    ],
)
def test_missing_answers_come_first(score, rows, said):
    assert summary.headline(score(rows)).startswith(said)


def test_failed_completeness_is_the_first_row(score):
    assert [gate.name for gate in gates_table.gates_with_row(score([]).gates)][:2] == [
        "completeness.missing",
        "precision",
    ]


MIXED = """version: 1
gates:
  over_refusal: {max: 1}
  mrr: {min: 1, severity: warning}
  precision: {min: 1}
  under_refusal: {max: 1}
"""


@pytest.mark.parametrize(("form", "options"), [("table", {"verbose": True}), ("markdown", {})])
def test_failed_gates_are_the_first_rows_and_passed_ones_the_last(score, tmp_path, form, options):
    gates = tmp_path / "eval-gates.yml"
    gates.write_text(MIXED)
    text = render(score([ERRORED[0], *ANSWERS[1:]], gates), form, **options)
    below = re.split("(?i)threshold.*outcome", text, maxsplit=1)[1]
    names = ["precision", "mrr", "over_refusal", "under_refusal"]
    assert sorted(names, key=below.index) == names


def test_a_shortened_comment_begins_with_it_too(score):
    text = markdown.within(score([]), 500, len)
    assert "\n- 14 missing traces (allowed: 0)\n- `precision`" in text


@pytest.mark.parametrize(
    ("gates", "said", "counted"),
    [
        ("gates: {precision: {min: 0.8}, mrr: {min: 0.1}}", "2 of 2 gates and completeness.", "2 of 2 gates"),
        ("gates: {precision: {min: 0.8}}", "1 of 1 gate and completeness.", "1 of 1 gate"),
        (
            "gates: {precision: {min: 0.8}, containment: {min: 0.8, when_no_data: skip}}",
            "1 of 2 gates and completeness; 1 skipped (no data).",
            "1 of 2 gates · 1 skipped (no data)",
        ),
    ],
)
def test_a_pass_counts_what_the_table_shows(score, tmp_path, gates, said, counted):
    (tmp_path / "gates.yml").write_text(f"version: 1\n{gates}\n", "utf-8")
    report = score(ANSWERS, tmp_path / "gates.yml")
    assert summary.headline(report) == f"Evaluated 14 questions. Passed: {said}"
    assert render(report, "table").startswith(f"PASSED  {counted} · all 14 questions right\n")


@pytest.mark.parametrize(
    ("mrr", "findings", "said"),
    [
        ("0.1", ["warning"], "2 of 2 gates and completeness; 1 warning."),
        ("1", ["warning"], "1 of 2 gates and completeness; 2 warnings."),
        ("1", [], "1 of 2 gates and completeness; 1 warning."),
        ("0.1", ["error", "warning", "warning"], "c0; 2 warnings."),
    ],
)
def test_a_finding_that_warns_is_counted_as_a_gate_that_warns(score, tmp_path, mrr, findings, said):
    gates = f"version: 1\ngates: {{precision: {{min: 0.8}}, mrr: {{min: {mrr}, severity: warning}}}}\n"
    (tmp_path / "gates.yml").write_text(gates, "utf-8")
    result = tuple(Finding(f"c{index}", level, "said") for index, level in enumerate(findings))
    report = with_verdict(score(ANSWERS, tmp_path / "gates.yml")._replace(findings=result))
    assert report.passed is ("error" not in findings)
    assert summary.headline(report).endswith(f": {said}")
    for form in ("markdown", "html", "junit"):
        assert said.rpartition("; ")[2] in render(report, form)


@pytest.mark.parametrize(("names", "said"), [([], "no gates."), (["completeness.missing"], "completeness.")])
def test_a_pass_names_no_gates_or_only_completeness(score, names, said):
    report = score(ANSWERS)
    remaining = tuple(gate for gate in report.gates if gate.name in names)
    assert summary.headline(report._replace(gates=remaining)).endswith(said)
