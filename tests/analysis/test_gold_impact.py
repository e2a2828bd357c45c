"""What a change of the gold does to the cases and gates of the same run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import gold_row
from rag_eval.analysis.gold_impact import (
    GateTurn,
    GoldChange,
    fewer_cases,
    findings,
    gate_turns,
    gates_that_pass_now,
    gold_changes,
    labels,
    lost_labels,
    regrouped,
    turning_must_pass,
)
from seams import GOOD, MEANING, Gate, Gold, Value, judge
from strategies import gold_fields

any_label = st.none() | st.sampled_from(sorted(MEANING))


def change(before, after, verb="changed", qid="A1"):
    return GoldChange(qid, verb, False, before, after)


@pytest.mark.parametrize(
    ("before", "after", "flips", "fixes"),
    [
        ("WRONG_CLAIM", "OK", True, True),
        ("HALLUCINATION", "REFUSAL_OK", True, True),
        ("OK", "WRONG_CLAIM", True, False),
        ("OK", "REFUSAL_OK", False, False),
        ("WRONG_CLAIM", "NOT_CITED", False, False),
        (None, "OK", False, False),
        ("WRONG_CLAIM", None, False, False),
        (None, None, False, False),
    ],
)
def test_a_flip_changes_sides_and_a_mend_goes_to_the_right_one(before, after, flips, fixes):
    assert (change(before, after).flips, change(before, after).fixes) == (flips, fixes)


@given(any_label, any_label)
def test_a_flip_is_a_mend_one_way_or_the_other(before, after):
    there, back = change(before, after), change(after, before)
    assert there.flips == back.flips == (there.fixes or back.fixes)
    assert not (there.fixes and back.fixes)


def scored(qid, label, run=None):
    return SimpleNamespace(qid=qid, run=run, label=label)


def test_of_several_runs_the_first_failing_one_speaks():
    cases = [scored("A1", "OK", "a"), scored("A1", "NOT_CITED", "b"), scored("A1", "WRONG_CLAIM", "c")]
    assert labels(cases) == {"A1": "NOT_CITED"}
    assert labels(reversed(cases)) == {"A1": "WRONG_CLAIM"}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(sorted(MEANING))), max_size=8))
def test_a_question_is_good_when_all_its_runs_are(rows):
    output = labels(scored(*row) for row in rows)
    assert output.keys() == {qid for qid, _ in rows}
    for qid, label in output.items():
        ours = [label for other, label in rows if other == qid]
        assert label in ours
        assert (label in GOOD) == all(item in GOOD for item in ours)


def judged(name, value, threshold="0.5"):
    return judge(Gate(name, "min", threshold), Value(value, 4 if value is not None else 0))


def test_gates_turn_where_their_outcome_does():
    before = [judged("chr", 0.4), judged("mrr", 0.4), judged("map", 0.9), judged("precision", None)]
    after = [judged("chr", 0.6), judged("mrr", 0.45), judged("map", None), judged("precision", 0.5)]
    assert gate_turns(before, after) == [
        GateTurn("chr", "failed", "passed", 0.4, 0.6),
        GateTurn("map", "passed", "no_data", 0.9, None),
        GateTurn("precision", "no_data", "passed", None, 0.5),
    ]
    assert gate_turns(after, after) == []


def test_standing_gives_each_change_the_label_of_its_case_on_both_sides():
    moved = [GoldChange("A1", "changed", True), GoldChange("A2", "added"), GoldChange("A3", "removed")]
    assert gold_changes(moved, {"A1": "OK", "A3": "ERROR"}, {"A1": "WRONG_CLAIM", "A2": "OK"}) == [
        GoldChange("A1", "changed", True, "OK", "WRONG_CLAIM"),
        GoldChange("A2", "added", False, None, "OK"),
        GoldChange("A3", "removed", False, "ERROR", None),
    ]


def said(changes, touched=(), answered=("A1", "B1")):
    return [
        (finding.code, finding.level, finding.message)
        for finding in findings(changes, "eval/gold.jsonl", touched, answered)
    ]


def test_gold_that_is_fitted_to_the_output_is_named_with_what_else_the_change_touches():
    item = [change("WRONG_CLAIM", "OK")]
    message = "1 gold change makes a failing answer of this run right: A1"
    assert said(item) == [("gold-fits-output", "warning", message)]
    also = f"{message}; this change also edits src/a.py, src/b.py"
    assert said(item, ["src/a.py", "src/b.py"]) == [("gold-fits-output", "warning", also)]
    two = [change("OVER_REFUSAL_NOT_RETRIEVED", "REFUSAL_OK", qid="A2"), *item]
    assert said(two)[0][2] == "2 gold changes make failing answers of this run right: A2, A1"


def test_failing_questions_that_are_dropped_are_named():
    assert said([change("NOT_CITED", None, "removed")])[0][2] == (
        "1 question is removed from the gold: A1; this run or the baseline fails on it"
    )
    gone = [change("NOT_CITED", None, "removed", f"A{i}") for i in range(1, 8)]
    dropped = (
        "7 questions are removed from the gold: A1, A2, A3, A4, A5 and 2 more; this run or the baseline fails on them"
    )
    assert said([*gone, change("OK", None, "removed", "B1")]) == [("failing-items-removed", "warning", dropped)]


def test_what_nobody_answers_and_nobody_has_known_is_not_called_failing():
    unknown = "this run did not answer it, so the system may fail on it"
    assert said([change(None, None, "removed", "B2"), change("OK", None, "removed", "B1")]) == [
        ("removed-items-unseen", "warning", f"1 question is removed from the gold: B2; {unknown}")
    ]
    passed = [change("OK", None, "removed", "B3")]
    assert said(passed) == [("removed-items-unseen", "warning", f"1 question is removed from the gold: B3; {unknown}")]


def test_gates_that_fail_on_the_old_gold_alone_are_named_once_each():
    (item,) = gates_that_pass_now(["precision", "precision", "chr"], "eval/gold.jsonl")
    assert (item.code, item.level) == ("gold-turns-gates", "warning")
    assert (
        item.message == "2 gates fail with the gold of the base branch, but not with the changed gold: precision, chr"
    )
    assert list(gates_that_pass_now([], "eval/gold.jsonl")) == []


@pytest.mark.parametrize(
    "one", [change("OK", "OK"), change("OK", "ERROR"), change(None, "OK", "added"), change("OK", None, "removed")]
)
def test_honest_changes_are_not_remarked_on(one):
    assert said([one], ["src/a.py"]) == []


def test_the_file_of_the_gold_is_where_it_is_said():
    assert {finding.file for finding in findings([change("ERROR", "OK")], "data/gold.jsonl", [])} == {"data/gold.jsonl"}


# --- gates on another gold --------------------------------------------------------------------------------------------

names = st.sampled_from(["precision", "chr", "mrr where tags=a", "completeness.missing"])


@given(st.dictionaries(names, st.integers(0, 3)), st.dictionaries(names, st.integers(0, 3)))
@example({"precision": 1}, {})
def test_exactly_the_gates_that_judge_fewer_cases_are_named(before, after):
    fallen = [name for name, n in before.items() if not name.startswith("completeness.") and after.get(name, 0) < n]
    output = [(item.code, item.level, item.file, item.message) for item in fewer_cases(before, after, "g.jsonl")]
    counts = ", ".join(f"{name} {before[name]} → {after.get(name, 0)}" for name in fallen)
    are = "1 gate judges" if len(fallen) == 1 else f"{len(fallen)} gates judge"
    message = f"{are} fewer of the cases of the base branch's gold or of the baseline: {counts}"
    assert output == ([("fewer-cases", "warning", "g.jsonl", message)] if fallen else [])


def test_cases_that_an_earlier_change_removed_ask_for_a_new_baseline():
    (finding,) = fewer_cases({"precision": 5}, {"precision": 5}, "g.jsonl", {"precision": 9})
    assert finding.fix == ("An earlier change removed these cases. If that was right, renew the baseline.")
    (finding,) = fewer_cases({"precision": 5}, {"precision": 4}, "g.jsonl", {"precision": 9})
    assert finding.fix == "Keep the questions and their labels."
    (finding,) = fewer_cases({"precision": 5, "chr max_drop": 5}, {"chr max_drop": 4}, "g.jsonl")
    assert finding.fix == "Keep the questions and their labels. With baseline.trace, changed items are compared too."
    (finding,) = fewer_cases({"precision": 5}, {"precision": 5}, "g.jsonl", {"precision": 9}, missing=4)
    assert finding.fix == "Keep the questions and their labels."


def test_reworded_items_that_only_regression_gates_leave_out_lost_no_labels():
    (finding,) = fewer_cases({"precision": 5, "chr max_drop": 5}, {"precision": 5, "chr max_drop": 4}, "g.jsonl")
    assert finding.fix == "To compare changed items, too, name the traces of the baseline: baseline.trace."


def gold(**fields):
    return Gold.from_row(gold_row(**fields), 1)


@given(gold_fields())
def test_every_label_that_an_item_loses_is_named(fields):
    """A field that goes, or one entry of a list: named from more to less, and not the other way round."""
    whole = gold(**fields)
    required = ("line", "qid", "question", "answerable", "substrings", "citations")
    for name, field in zip(Gold.__struct_fields__, Gold.__struct_encode_fields__, strict=True):
        value = getattr(whole, name)
        fewer = [value[:-1]] if isinstance(value, tuple) and value else []
        fewer += [dict([*value.items()][1:])] if isinstance(value, dict) and value else []
        for less in [*fewer, *([None] if value is not None and name not in required else [])]:
            other = replace(whole, **{name: less})
            changed = [GoldChange("A1", "changed")]
            [item] = lost_labels(changed, {"A1": whole}, {"A1": other}, "g.jsonl")
            assert (item.code, item.level, item.file) == ("labels-removed", "warning", "g.jsonl")
            assert item.message == f"1 gold item loses labels: A1 ({field})"
            assert list(lost_labels(changed, {"A1": other}, {"A1": whole}, "g.jsonl")) == []
            assert list(lost_labels([GoldChange("A1", "added")], {"A1": whole}, {"A1": other}, "g.jsonl")) == []


def test_an_answer_that_is_made_unanswerable_or_moved_to_another_line_loses_no_label():
    old, new = replace(gold(answerable=True), line=9), replace(gold(answerable=False), line=1)
    assert list(lost_labels([GoldChange("A1", "changed", True)], {"A1": old}, {"A1": new}, "g.jsonl")) == []


@pytest.mark.parametrize(
    ("gates", "cluster", "old", "new", "moved"),
    [
        (["chr"], "", {"conversation": "C1"}, {"conversation": "C2"}, ["conversation"]),
        (["chr"], "", {"conversation": "C1"}, {}, ["conversation"]),
        (["chr"], "category", {"category": "a"}, {"category": "b"}, ["category"]),
        (["chr"], "category", {"category": "a", "conversation": "C1"}, {}, ["conversation", "category"]),
        (["chr"], "conversation", {"conversation": "C1"}, {}, ["conversation"]),
        (["chr"], "", {"category": "a"}, {"category": "b"}, []),
        (["chr"], "category", {"category": "a"}, {"category": "a", "difficulty": "hard"}, []),
        ([], "", {"conversation": "C1"}, {}, []),
        (["completeness.missing"], "", {"conversation": "C1"}, {}, []),
    ],
)
def test_regrouped_questions_are_an_error_where_gates_pass_by_it(gates, cluster, old, new, moved):
    sides = {"A1": gold(**old), "A2": gold(**old)}, {"A1": gold(**new), "A3": gold(**new)}
    output = list(regrouped(gates, *sides, "g.jsonl", cluster))
    assert [(item.code, item.level, item.file) for item in output] == [
        ("questions-regrouped", "error", "g.jsonl")
    ] * len(moved)
    assert [item.message for item in output] == [
        f"1 question moves to another {field}, the unit of the statistics: A1; in the old groups chr would fail"
        for field in moved
    ]


def test_five_cases_that_must_pass_and_do_only_under_the_changed_gold_are_named():
    before = [SimpleNamespace(code="must-pass-broken", message=f"A{n} must pass") for n in range(7)]
    others = [SimpleNamespace(code="must-pass-gone", message="A9 must pass")]
    output = list(turning_must_pass([*others, *before], before[:1], "g.jsonl"))
    assert {(item.code, item.level, item.file) for item in output} == {("must-pass-widened", "warning", "g.jsonl")}
    assert [item.message for item in output] == [
        f"with the gold of the base branch, A{n} must pass; the changed gold accepts the answer" for n in range(1, 6)
    ]
