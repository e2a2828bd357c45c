"""Sentences of a report that depend on its values: each row of a table changes a report and names what it then says."""

import re

import pytest

from seams import from_json, render
from table import each_row
from whole_report import report_of

COMPARED, SLICED = report_of("compared"), report_of("sliced")
BASELINE, QUESTION = COMPARED["baseline"], COMPARED["questions"][0]
DROP = next(gate for gate in COMPARED["gates"] if gate["comparison"] and gate["comparison"]["p"] is not None)


def markdown_of(**changes):
    return render(from_json(COMPARED | changes), "markdown")


def with_baseline(*, flips=(), **changes):
    return {"baseline": BASELINE | changes, "flips": list(flips)}


def with_gate(comparison, **changes):
    """A report whose only gate is a margin; ``comparison`` changes its comparison, ``changes`` the gate."""
    return {"gates": [DROP | changes | {"comparison": DROP["comparison"] | comparison}]}


FLIP = {"qid": "Q02", "run": None, "before": "OK", "after": "NOT_RETRIEVED"}
FIXED = {"qid": "Q03", "run": None, "before": "WRONG_CLAIM", "after": "OK"}


@each_row(
    ("changes", "said"),
    [
        (with_baseline(), "**Nothing newly broken, nothing newly fixed.**"),
        (with_baseline(new_runs=["a"]), "**Nothing newly broken, nothing newly fixed in the runs that both have.**"),
        (with_baseline(cases=3, unpaired=3, rescored=False), "**No case to compare.**"),
        (with_baseline(cases=3, changed=2, unpaired=5), "**No case to compare.**"),
        (with_baseline(cases=0, changed=2, unpaired=0), "**Nothing newly broken, nothing newly fixed.**"),
        (with_baseline(flips=[FLIP]), "**Newly broken (1), newly fixed (0).**"),
        (
            with_baseline(flips=[FLIP, FLIP | {"before": "WRONG_CLAIM", "after": "OK"}]),
            "broken (1), newly fixed (1).**",
        ),
        (with_baseline(ref="main", commit=""), "Compared with `before/report.json` of `main` (traces scored again): "),
        (with_baseline(commit="", rescored=False), "Compared with `before/report.json`: 12 questions in both"),
        (with_baseline(commits_ago=1, days_ago=2), "(system commit `9f2c1ab00000`, 1 commit and 2 days old, traces"),
        (with_baseline(commits_ago=1), "(system commit `9f2c1ab00000`, traces scored again)"),
        (with_baseline(unpaired=2, changed=0, gone=0, new=0), "gold item, 2 of them without a run of the same name."),
        (with_baseline(new_runs=["", "b"]), "Runs that the baseline lacks, which are not compared: `(no name)`, `b`."),
        (with_baseline(incomparable=["chr"]), "(not measured there, or defined differently): `chr`."),
    ],
)
def test_a_comparison_with_the_baseline_says_what_was_compared(changes, said):
    assert said in markdown_of(**changes)


BASE = {"kind": "base", "ref": "main", "commit": "0123456789abcdef", "through": "git"}


@each_row(
    ("base", "said"),
    [
        (BASE, "The gates of `main` (`0123456789ab`, read through git) and those of this change both apply."),
        (BASE | {"commit": ""}, "The gates of `main` and those of this change both apply."),
        (BASE | {"kind": "head"}, "Only the gates of this change apply, as requested: the base branch has no say."),
        (
            BASE | {"kind": "bootstrap", "commit": ""},
            "**Initial setup.** `main` has no gates file, so only the gates of this change apply.",
        ),
    ],
)
def test_a_report_says_whose_gates_apply(base, said):
    assert f"\n\n{said}\n\n" in markdown_of(base=base)


@each_row(
    ("changes", "said"),
    [
        (with_gate({}), "12 cases reliably detect a drop of 0.80 or more; a drop of 0.05 needs 3139 cases"),
        (with_gate({"mde": None}), "12 cases cannot detect any drop; a drop of 0.05 needs 3139 cases"),
        (with_gate({"needed": None}), "Minimum detectable effect: `precision` 0.80."),
        (with_gate({"p": None}), "judged only by the margin, because its difference has no interval"),
        (with_gate({"p": None, "n": 0}), "judged only by the margin, because there are no cases to compare"),
        (
            with_gate({"test": "non_inferiority", "high": None}),
            "judged only by the margin, because its difference has no interval",
        ),
        (with_gate({}, outcome="inconclusive"), "inconclusive, not significant (p = 0.03 after correction)"),
        (with_gate({}, outcome="inconclusive", few=True), "inconclusive, the slice has fewer than "),
        (with_gate({}, outcome="no_data", why="too short"), "no data (too short)"),
        (
            with_gate({}, outcome="no_data", why="too short", direction="min"),
            "no data (too short); to allow that, write `when_no_data: skip`",
        ),
        (
            with_gate({}, outcome="no_data", why="too short", direction="min", origin="both"),
            "no data (too short); to allow that, first merge `when_no_data: skip`",
        ),
        (with_gate({}, outcome="no_data"), "no data, because it applies only to answers; to allow that, write "),
    ],
)
def test_a_note_says_what_the_test_of_a_gate_can_show(changes, said):
    assert said in markdown_of(**changes)


@each_row(
    "changes",
    [
        with_gate({}),
        with_gate({"p": None, "test": "none"}),
        with_gate({"p": None, "regression": None}),
        with_gate({"p": None}, outcome="inconclusive", few=True),
        with_gate({"test": "non_inferiority", "p": None}),
    ],
)
def test_a_gate_that_was_tested_is_not_called_untested(changes):
    assert "judged only by the margin" not in markdown_of(**changes)


def change_of(shared):
    """A change of a value whose old and new text begin with so many equal characters."""
    head = "x" * shared
    return [{"key": "k", "kind": "looser", "old": f"{head}old", "new": f"{head}new", "lets_through": []}]


def test_the_equal_beginning_of_two_values_is_cut_only_if_it_is_long():
    assert f"`{'x' * 30}old` → `{'x' * 30}new`" in markdown_of(policy_changes=change_of(30))
    assert f"`…{'x' * 15}old` → `…{'x' * 15}new`" in markdown_of(policy_changes=change_of(31))


def turns(*turns_and_labels, name="A"):
    """Questions of a conversation in this order, each with its turn and label."""
    made = []
    for line, (turn, label) in enumerate(turns_and_labels, 1):
        slices = [f"conversation={name}", f"turn={turn}"]
        made.append(QUESTION | {"qid": f"{name}{turn}", "label": label, "slices": slices, "gold_line": line})
    return made


def conversations_of(questions):
    value = SLICED | {"questions": questions, "statistics": SLICED["statistics"] | {"cluster": "conversation"}}
    text = render(from_json(value), "markdown")
    rows = re.findall(r"(?m)^\| `([A-Z])` +\| (\d of \d) +\| `(\w+)` (\w+)", text)
    return text, rows


def test_the_first_wrong_turn_of_a_conversation_is_the_one_that_was_asked_first():
    text, rows = conversations_of(
        [*turns((10, "NOT_CITED"), (9, "WRONG_CLAIM"), (1, "OK")), *turns((1, "OK"), name="B")]
    )
    assert "**1 of 2 conversations has a wrong turn.**" in text
    assert rows == [("A", "1 of 3", "A9", "WRONG_CLAIM")]


def test_conversations_with_the_most_wrong_turns_come_first():
    _, rows = conversations_of(
        [*turns((1, "OK"), (2, "NOT_CITED")), *turns((1, "NOT_CITED"), name="B"), *turns((1, "OK"), name="C")]
    )
    assert [row[:2] for row in rows] == [("B", "0 of 1"), ("A", "1 of 2")]


@pytest.mark.parametrize(("turn", "first"), [("two", "Aone"), ("1" * 16, "Aone"), ("3", "Aone"), ("-1", "Aone")])
def test_turns_that_are_no_numbers_are_ordered_by_their_lines(turn, first):
    _, rows = conversations_of(turns(("one", "NOT_CITED"), (turn, "WRONG_CLAIM")))
    assert [row[2] for row in rows] == [first]


def test_a_command_stays_on_one_line_so_that_copying_it_does_not_break_it():
    command = f"git checkout {'0' * 40} -- :/eval/gold.signoff/2026-11-21-{'1' * 40}.json"
    finding = {"code": "record-removed", "level": "error", "message": "gone", "fix": command, "file": "", "line": 0}
    assert f"  → {command}\n" in render(from_json(COMPARED | {"findings": [finding]}), "table")
