"""Slices: the parts of the cases, and gates on them."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import gold_row, trace_row, write_rows
from rag_eval.gates.selection import FIELDS, expand_slice, is_field, is_slice, slices_of
from runs import evidence, question, questions
from seams import Gate, Gold, Policy, Slices, Statistics, judge_all, main

NAMES = st.sampled_from(["category=a", "category=b", "tags=x", "tags=*", "categoryb=c"])


def gold(**fields):
    return Gold.from_row(gold_row(**fields), 1)


def test_an_item_is_in_the_slices_of_its_values():
    attack = {"kind": "input", "positive": True, "category": "jailbreak"}
    fields = {"category": "law", "difficulty": "hard", "tags": ["x", "y", "x"], "query_type": "fact"}
    item = gold(**fields, answerable=False, multi_hop=True, attack=attack)
    assert slices_of(item, FIELDS) == (
        "category=law",
        "difficulty=hard",
        "tags=x",
        "tags=y",
        "query_type=fact",
        "multi_hop=true",
        "answerable=false",
        "attack.category=jailbreak",
        "attack.kind=input",
    )


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("hr", ("meta.vault=hr",)),
        (3, ("meta.vault=3",)),
        (2.0, ("meta.vault=2",)),
        (0.25, ("meta.vault=0.25",)),
        (1234567.5, ("meta.vault=1234567.5",)),  # as it is written, and not 1234568.5
        (True, ("meta.vault=true",)),
    ],
)
def test_what_stands_in_meta_is_a_field_too(value, parts):
    assert slices_of(gold(meta={"vault": value}), ["meta.vault"]) == parts


@pytest.mark.parametrize(
    ("fields", "document"),
    [
        ({"gold_citations": ["manual.md#3", "faq.md#1"]}, "manual.md"),
        ({"gold_citations": ["manual.md"]}, "manual.md"),
        ({"gold_citations": ["#3"]}, "#3"),
        ({"gold_citations": ["manual.md#3"], "relevant_docs": ["faq.md"]}, "manual.md"),
        ({"gold_citations": [], "relevant_docs": ["faq.md", "manual.md"]}, "faq.md"),
    ],
)
def test_the_document_of_an_item_is_that_of_its_first_citation(fields, document):
    assert slices_of(gold(**fields), ["document"]) == (f"document={document}",)


def test_an_item_without_the_field_is_in_no_slice_of_it():
    assert slices_of(gold(), ["category", "tags", "meta.vault"]) == ()


@pytest.mark.parametrize("name", [*FIELDS, "meta.a", "meta.a.b"])
def test_fields_and_their_slices(name):
    assert is_field(name)
    assert is_slice(f"{name}=x")
    assert is_slice(f"{name}=a=b")
    assert not is_slice(f"{name}=")
    assert not is_slice(name)


@pytest.mark.parametrize("name", ["", "meta", "meta.", "question", "Category", "qid"])
def test_what_is_no_field(name):
    assert not is_field(name)
    assert not is_slice(f"{name}=x")


@given(st.sets(NAMES))
def test_a_star_is_every_slice_of_its_field_and_never_nothing(present):
    ours = sorted(name for name in present if name.startswith("category="))
    assert expand_slice("category=*", present) == (ours or ["category=*"])
    assert expand_slice("category=z", present) == ["category=z"]


# --- gates on slices --------------------------------------------------------------------------------------------------


def cases(**sizes):
    """Cases with the precision given, by slice: ``a=(3, 4)`` are 3 right ones of 4."""
    return [
        question(f"{part}{i}", slices=[f"category={part}"], precision=i < right)
        for part, (right, n) in sizes.items()
        for i in range(n)
    ]


def judged(after, *gates, before=None, least=1, **chance):
    policy = Policy(gates=gates, slices=Slices((), least), completeness={}, statistics=Statistics(**chance))
    return judge_all(policy, evidence(after, before))


def outcomes(result):
    return {item.slice: item.outcome for item in result}


EACH = Gate("precision", "min", "0.5", slice="category=*")


def test_a_gate_on_a_star_judges_each_slice_alone():
    result = judged(cases(a=(3, 4), b=(1, 4)), EACH)
    assert [(item.label, item.outcome, item.exact, item.n) for item in result] == [
        ("precision where category=a", "passed", "3/4", 4),
        ("precision where category=b", "failed", "1/4", 4),
    ]


def test_a_slice_that_only_the_baseline_has_is_emptied_and_fails():
    before = cases(a=(3, 4), b=(4, 4))
    (_, gone) = judged(cases(a=(3, 4)), EACH, before=before)
    assert (gone.slice, gone.outcome, gone.blocks, gone.why) == (
        "category=b",
        "no_data",
        True,
        "the slice has no case",
    )


@pytest.mark.parametrize("gate", [EACH, replace(EACH, slice="category=c")])
def test_a_slice_that_nothing_is_in_fails_unless_that_is_to_be_skipped(gate):
    after = [question("Q1", precision=1)]
    assert [(item.outcome, item.blocks) for item in judged(after, gate)] == [("no_data", True)]
    assert [item.blocks for item in judged(after, replace(gate, when_no_data="skip"))] == [False]


def test_a_metric_that_applies_to_no_case_of_a_slice_has_no_data_for_another_reason():
    (item,) = judged([question("Q1", slices=["category=a"], mrr=1)], EACH)
    assert (item.outcome, item.why) == ("no_data", "")


@pytest.mark.parametrize(("n", "outcome"), [(9, "inconclusive"), (10, "failed")])
def test_a_slice_of_fewer_cases_than_min_n_is_inconclusive(n, outcome):
    (item,) = judged(cases(a=(0, n)), EACH, least=10)
    assert (item.outcome, item.few, item.blocks) == (outcome, n < 10, n >= 10)


@pytest.mark.parametrize(("n", "outcome"), [(9, "inconclusive"), (10, "failed")])
def test_that_holds_for_worsenings_too(n, outcome):
    gate = Gate("precision", "max_drop", "0.02", slice="category=a")
    (item,) = judged(cases(a=(0, n)), gate, before=cases(a=(n, n)), least=10)
    assert (item.outcome, item.few, item.comparison.n) == (outcome, n < 10, n)


def test_slices_too_small_to_be_judged_weaken_no_other_test():
    """Whoever cuts a field into many values would hide a regression of the whole behind their tests."""
    parts = [[f"tags={number // 2}"] for number in range(60)]
    before, after = questions("precision", [1] * 60, parts), questions("precision", [0] * 6 + [1] * 54, parts)
    gates = Gate("precision", "max_drop", "0.02"), Gate("precision", "max_drop", "0.02", slice="tags=*")
    whole, *small = judged(after, *gates, before=before, least=10)
    (alone,) = judged(after, gates[0], before=before, least=10)
    assert (whole.outcome, whole.comparison) == ("failed", alone.comparison)
    assert [(item.few, item.outcome, item.comparison.p) for item in small] == [(True, "inconclusive", None)] * 30


def test_what_counts_is_the_size_of_the_slice_and_not_of_the_metric():
    after = [question(f"Q{i}", slices=["tags=x"], precision=0 if i < 2 else None) for i in range(10)]
    (item,) = judged(after, Gate("precision", "min", "0.5", slice="tags=x"), least=10)
    assert (item.n, item.outcome) == (2, "failed")


def test_min_n_is_not_asked_of_the_whole():
    (item,) = judged(cases(a=(0, 2)), Gate("precision", "min", "0.5"), least=10)
    assert (item.few, item.outcome) == (False, "failed")


@pytest.mark.parametrize(
    ("means", "broken", "blocks"), [("warn", True, False), ("fail", True, True), ("pass", False, False)]
)
def test_what_inconclusive_means_is_said_by_the_policy(means, broken, blocks):
    (item,) = judged(cases(a=(0, 2)), EACH, least=10, inconclusive=means)
    assert (item.outcome, item.broken, item.blocks) == ("inconclusive", broken, blocks)


def test_gates_on_the_whole_are_left_as_they_are():
    gates = [Gate("precision", "min", "0.5"), EACH]
    assert [gate.slice for gate in judged(cases(a=(1, 1), b=(1, 1)), *gates)] == ["", "category=a", "category=b"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1))
def test_slices_of_one_value_each_add_up_to_the_whole(rows):
    after = [question(f"Q{i}", slices=[f"category={part}"], precision=right) for i, (part, right) in enumerate(rows)]
    result = judged(after, Gate("precision", "min", "0"), EACH)
    whole, *parts = (item.as_value() for item in result)
    assert sum(part.number * part.n for part in parts) == whole.number * whole.n
    assert sum(part.n for part in parts) == whole.n


@pytest.mark.parametrize(
    ("fields", "types"),
    [
        ({"supports": [{"rel_path": "hr/leave.MD", "heading_path": ""}]}, ("doc_type=md",)),
        (
            {"sections": [{"doc_id": "a.pdf", "section": "1"}], "doc_grades": {"b.html": 1}},
            ("doc_type=html", "doc_type=pdf"),
        ),
        ({"relevant_docs": ["x.tar.gz", "y.gz"]}, ("doc_type=gz",)),
        ({"relevant_docs": ["internal-001", "v1.2", ".env", "dir.d/readme", "a.b c"]}, ()),
        ({}, ()),
    ],
)
def test_the_document_type_is_the_ending_of_what_the_gold_points_at(fields, types):
    assert slices_of(gold(**fields), ["doc_type"]) == types


# --- every metric by slice --------------------------------------------------------------------------------------------


def cut(tmp_path, *options, form="json"):
    labels = {"gold_citations": ["c#1"], "meta": {"vault": "hr"}}
    golds = [gold_row(qid=f"Q{i}", difficulty="easy" if i < 12 else "hard", **labels) for i in range(15)]
    write_rows(tmp_path / "gold.jsonl", golds)
    write_rows(
        tmp_path / "trace.jsonl",
        [trace_row(qid=f"Q{i}", answer="x", retrieved_ids=["c#1"][: i % 2]) for i in range(15)],
    )
    files = ["--gold", str(tmp_path / "gold.jsonl"), "--trace", str(tmp_path / "trace.jsonl")]
    return main(["score", *files, *options, "--format", form])


def test_every_metric_is_cut_by_the_fields_asked_for_the_largest_slice_first(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cut(tmp_path, "--by", "difficulty,vault")
    slices = json.loads(capsys.readouterr().out)["slices"]
    assert [(part["slice"], part["n"]) for part in slices] == [
        ("difficulty=easy", 12),
        ("difficulty=hard", 3),
        ("meta.vault=hr", 15),
    ]
    assert {"precision", "mrr", "recall_any@5", "empty_rate"} <= slices[1]["metrics"].keys()  # gated and not
    assert (slices[0]["metrics"]["mrr"]["n"], slices[1]["metrics"]["mrr"]["n"]) == (12, 3)


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_format_shows_the_metrics_by_slice_and_marks_small_ones(tmp_path, capsys, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    cut(tmp_path, "--by", "difficulty", form=form)
    shown = capsys.readouterr().out
    assert "Every metric by" in shown or form == "table"
    assert "3‡" in shown
    assert "12‡" not in shown


def test_the_csv_names_the_slices_of_a_question(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cut(tmp_path, "--by", "difficulty,vault", form="csv")
    row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (row["slices"], row["precision"]) == ("difficulty=easy; meta.vault=hr", "0.0")


def test_a_field_that_no_item_has_is_an_error(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cut(tmp_path, "--by", "dificulty") == 2
    assert "no gold item has the field 'meta.dificulty'" in capsys.readouterr().err
