"""Notes, slices and findings of a report, as `rag_eval.score` returns it."""

from __future__ import annotations

import json

import pytest

import rag_eval
from cases import gold_row, write_rows

ATTACK = {"answerable": False, "attack": {"kind": "input", "positive": True}}


def scored(folder, items, traces, gates="version: 1\n", about=None):
    golds = [gold_row(qid=f"Q{n}", question=f"What of {n}?", **item) for n, item in enumerate(items)]
    answers = [{"qid": f"Q{n}", "answer": "7 days", **trace} for n, trace in enumerate(traces)]
    (folder / "gates.yml").write_text(gates, "utf-8")
    if about is not None:
        (folder / "run.json").write_text(about, "utf-8")
    files = write_rows(folder / "gold.jsonl", golds), write_rows(folder / "trace.jsonl", answers)
    return rag_eval.score(*files, folder / "gates.yml")


def notes(report):
    return [(note.file, note.message, note.times) for note in report.notes]


# --- notes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_documents", [0, 1, 3])
def test_a_note_counts_the_items_that_only_documents_judge(tmp_path, by_documents):
    items = [{"relevant_docs": ["d"]}] * by_documents + [{"gold_citations": ["a"]}] * 2
    report = scored(tmp_path, items, [{"chunks": [{"id": "a", "doc_id": "d"}]}] * len(items))
    message = "judged by documents because the items have no labels on chunks"
    assert notes(report) == ([("retrieval", message, by_documents)] if by_documents else [])


FIVE = {"precision": "min: 0, max_drop: 1", "chr": "min: 0", "mrr": "min: 0", "map": "min: 0", "over_refusal": "max: 1"}


@pytest.mark.parametrize(
    ("gates", "attacks", "named"),
    [
        ("precision: {min: 0}, injection_auc: {min: 0}", 3, "precision"),
        ("injection_auc: {min: 0}", 3, ""),
        ("precision: {min: 0}", 2, ""),
        (
            ", ".join(f"{name}: {{{bound}}}" for name, bound in FIVE.items()) + ", under_refusal: {max: 1}",
            3,
            ", ".join(FIVE),
        ),
    ],
)
def test_a_note_names_five_gates_that_judge_no_safety_case(tmp_path, gates, attacks, named):
    items = [ATTACK] * attacks + [{"gold_citations": ["a"]}] * (3 - attacks)
    report = scored(tmp_path, items, [{}] * 3, f"version: 1\ngates: {{{gates}}}\n")
    message = f"all items are safety cases, which {named} do not judge; gate metrics such as injection_auc instead"
    assert notes(report) == ([("gates", message, 3)] if named else [])


MESSAGE = "has no price, so its cases have no cost_usd; add it to prices in the gates file"


@pytest.mark.parametrize(
    ("gates", "named"),
    [
        ("gates: {cost_usd: {max: 1}}\n", ["big", "small"]),
        ("gates: {cost_usd.total: {max: 1}}\n", ["big", "small"]),
        ("gates: {precision: {min: 0}}\nprices: {small: {input: 1, output: 1}}\n", ["big"]),
        ("gates: {precision: {min: 0}}\n", []),
    ],
)
def test_a_note_names_each_model_without_a_price_where_prices_are_asked_for(tmp_path, gates, named):
    usage = [{"usage": {"model": model, "input_tokens": 1, "output_tokens": 1}} for model in ("small", "big", "big")]
    report = scored(tmp_path, [{"gold_citations": ["a"]}] * 3, usage, f"version: 1\n{gates}")
    assert sorted(notes(report)) == [(f"model '{name}'", MESSAGE, 1) for name in named]


# --- run.json ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "levels"),
    [
        ("", ["warning"]),
        ("integrity: {other-gold: error}\n", ["warning"]),
        ("integrity: {other-gold: warning}\n", ["warning"]),
        ('integrity: {other-gold: "off"}\n', []),
    ],
)
def test_outside_of_ci_traces_of_other_gold_only_warn(tmp_path, lines, levels):
    about = json.dumps({"gold_sha256": "cd" * 32})
    report = scored(tmp_path, [{"gold_citations": ["a"]}], [{}], f"version: 1\n{lines}", about)
    assert [finding.level for finding in report.findings if finding.code == "other-gold"] == levels


# --- slices -----------------------------------------------------------------------------------------------------------


def test_slices_come_by_field_then_by_size_then_by_name(tmp_path):
    parts = [("a", "hard"), ("b", "easy"), ("c", "easy"), ("c", "hard"), ("b", "hard")]
    items = [{"category": part, "difficulty": level, "gold_citations": ["a"]} for part, level in parts]
    report = scored(tmp_path, items, [{}] * 5, "version: 1\nslices: {by: [difficulty, category]}\n")
    sizes = [(part.slice, part.n) for part in report.slices]
    assert sizes == [
        ("difficulty=hard", 3),
        ("difficulty=easy", 2),
        ("category=b", 2),
        ("category=c", 2),
        ("category=a", 1),
    ]


def test_two_hundred_slices_have_every_metric_and_the_others_the_gated_ones(tmp_path):
    items = [{"category": f"c{n:03}", "gold_citations": ["a"]} for n in range(202)]
    gates = "version: 1\ngates: {precision: {min: 0}}\nslices: {by: [category]}\n"
    report = scored(tmp_path, items, [{}] * 202, gates)
    assert [part.slice for part in report.slices] == [f"category=c{n:03}" for n in range(202)]
    names = [set(part.metrics) for part in report.slices]
    assert all({"precision", "empty_rate"} < some for some in names[:200])
    assert names[200:] == [{"precision"}] * 2
    assert all(part.metrics["precision"].high is not None for part in report.slices)
    assert {part.metrics["empty_rate"].high for part in report.slices[:200]} == {None}


@pytest.mark.parametrize(
    ("lines", "least"),
    [
        ("", 0),
        ("slices: {by: [category]}\n", 10),
        ("slices: {by: [category], min_n: 3}\n", 3),
        ('slices: {min_n: 4, gates: {"category=a": {precision: {min: 0}}}}\n', 4),
    ],
)
def test_the_least_size_of_slices_is_in_the_report_if_there_are_any(tmp_path, lines, least):
    items = [{"category": "a", "gold_citations": ["a"]}] * 2
    assert scored(tmp_path, items, [{}] * 2, f"version: 1\n{lines}").min_n == least
