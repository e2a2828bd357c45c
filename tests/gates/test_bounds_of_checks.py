"""Checks of a whole run begin exactly at their bounds: one answer, question or id less, and they find nothing."""

from __future__ import annotations

import pytest

import rag_eval
from cases import gold_row, write_rows
from seams import render
from table import each_row

FIRST = "amber birch cedar delta ember fjord grove heron inlet jetty knoll larch maple north ocean pearl".split()
SECOND = [word.swapcase()[::-1] for word in FIRST]
WORDS = [f"{first}{second}" for first in FIRST for second in SECOND]
"""Words none of which contains another one."""
QUIET = 'version: 1\ngates: {{precision: {{min: 0}}}}\nintegrity: {{{}: "off"}}\n'


def golds(count, **fields):
    return [
        gold_row(qid=f"Q{n}", question=f"What of {n}?", **{"gold_claim_substr": [WORDS[n]], **fields})
        for n in range(count)
    ]


def trace(number, claim="It is so.", **fields):
    return {"qid": f"Q{number}", "answer_json": {"claim": claim, "citations": []}, **fields}


def scored(folder, items, traces, text="version: 1\n"):
    (folder / "gates.yml").write_text(text, "utf-8")
    files = write_rows(folder / "gold.jsonl", items), write_rows(folder / "trace.jsonl", traces)
    return rag_eval.score(*files, folder / "gates.yml")


def levels(report, code):
    return [finding.level for finding in report.findings if finding.code == code]


# --- answers ----------------------------------------------------------------------------------------------------------


@each_row(
    "same, answers, found",
    [(2, 2, 0), (3, 3, 1), (3, 30, 1), (3, 31, 0), (4, 40, 1), (4, 41, 0)],
)
def test_a_tenth_of_the_right_answers_and_three_are_constant(tmp_path, same, answers, found):
    constant = " ".join(WORDS[:same])
    traces = [trace(n, constant if n < same else f"It is {WORDS[n]}.") for n in range(answers)]
    report = scored(tmp_path, golds(answers), traces, QUIET.format("padded-answers"))
    assert levels(report, "constant-answers") == ["error"] * found


@each_row("groups, claims", [(1, "the same claim"), (2, "one of 2 claims"), (3, "one of 3 claims")])
def test_constant_answers_are_counted_with_their_claims_and_the_largest_group_is_named(tmp_path, groups, claims):
    """Each group has three answers and the last one four."""
    members = [[*range(3 * group, 3 * group + 3)] for group in range(groups)]
    members[-1].append(3 * groups)
    constant = {n: " ".join(WORDS[one] for one in group) for group in members for n in group}
    traces = [trace(n, constant.get(n, f"It is {WORDS[n]}.")) for n in range(12)]
    report = scored(tmp_path, golds(12), traces, QUIET.format("padded-answers"))
    [message] = [finding.message for finding in report.findings if finding.code == "constant-answers"]
    named = ", ".join(f"Q{n}" for n in members[-1][:3])
    expected = f"{3 * groups + 1} of 12 right answers are {claims}, although their questions expect different answers"
    assert message == f"{expected}: '{named}'"


@each_row("others, answers, level", [(1, 12, "error"), (2, 12, "warning"), (2, 6, "error")])
def test_answers_are_the_same_from_three_fifths_of_their_words_on(tmp_path, others, answers, level):
    """Two claims share three words; with one more each they share 3 of 5, with two more 3 of 7.

    Different claims that are right for the same questions are an error if they are half of the answers.
    """
    shared = " ".join(WORDS[:3])
    extra = [" ".join(WORDS[100 + 2 * n : 100 + 2 * n + others]) for n in range(3)]
    traces = [trace(n, f"{shared} {extra[n]}" if n < 3 else WORDS[n]) for n in range(answers)]
    report = scored(tmp_path, golds(answers), traces, QUIET.format("padded-answers"))
    assert levels(report, "constant-answers") == [level]


@each_row("elsewhere, found", [(3, 1), (4, 0)])
def test_expected_texts_that_also_occur_elsewhere_may_be_words_of_the_subject(tmp_path, elsewhere, found):
    """Three answers have each other's texts; twice as many may have one of them."""
    texts = [" ".join([*WORDS[:3], *WORDS[100 + 9 * n : 109 + 9 * n]]) for n in range(3)]
    more = [f"{WORDS[n]} {WORDS[0] if n < 3 + elsewhere else ''}" for n in range(3, 20)]
    traces = [trace(n, claim) for n, claim in enumerate([*texts, *more])]
    report = scored(tmp_path, golds(20), traces, QUIET.format("padded-answers"))
    assert levels(report, "constant-answers") == ["warning"] * found


@each_row(
    "claim, same, level",
    [
        ("It is so", 6, "error"),
        ("It is so", 5, "warning"),
        ("Is so", 6, "warning"),
    ],
)
def test_without_expected_texts_half_of_the_answers_in_three_words_are_an_error(tmp_path, claim, same, level):
    items = [{**item, "gold_citations": [item["qid"]]} for item in golds(12, gold_claim_substr=[])]
    claims = [claim if n < same else WORDS[n] for n in range(12)]
    cited = [
        trace(n, retrieved_ids=[f"Q{n}", "x"], answer_json={"claim": text, "citations": [f"Q{n}"]})
        for n, text in enumerate(claims)
    ]
    assert levels(scored(tmp_path, items, cited), "constant-answers") == [level]


@each_row(
    "padded, answers, others, found",
    [(3, 21, 10, 1), (2, 21, 10, 0), (3, 21, 9, 0), (3, 30, 15, 1), (3, 40, 20, 0), (4, 40, 20, 1), (4, 5, 2, 0)],
)
def test_answers_are_padded_with_half_of_the_other_expected_texts(tmp_path, padded, answers, others, found):
    def claim(number):
        more = [WORDS[(number + step) % answers] for step in range(1, others + 1)] if number < padded else []
        return " ".join([WORDS[number], *more])

    report = scored(tmp_path, golds(answers), [trace(n, claim(n)) for n in range(answers)])
    assert levels(report, "padded-answers") == ["error"] * found


@pytest.mark.parametrize(
    "item",
    [
        {"answerable": False, "gold_claim_substr": [], "gold_citations": []},
        {"gold_claim_substr": [], "gold_citations": ["c"]},
        {"answerable": False, "gold_claim_substr": [], "attack": {"kind": "input", "positive": True}},
    ],
    ids=["unanswerable", "without a text", "attack"],
)
def test_items_without_an_expected_text_do_not_hide_padded_answers(tmp_path, item):
    asked = golds(21)
    claims = [" ".join(WORDS[n : n + 11]) if n < 3 else WORDS[n] for n in range(21)]
    others = [{**row, **item} for row in golds(60)[21:]]
    traces = [trace(n, claim) for n, claim in enumerate(claims)] + [trace(n, "not in context") for n in range(21, 60)]
    assert levels(scored(tmp_path, asked + others, traces), "padded-answers") == ["error"]


# --- ids --------------------------------------------------------------------------------------------------------------


@each_row(
    "questions, missed, known, found",
    [
        (8, 5, 3, "5 of 8"),  # most questions retrieved nothing of their gold
        (8, 4, 4, ""),
        (8, 8, 3, "5 of 8"),  # most ids of the gold occur nowhere, though three do for other questions
        (8, 8, 4, ""),
        (3, 3, 0, "3 of 3"),
        (2, 2, 0, ""),
    ],
)
def test_ids_are_unmatched_if_most_questions_miss_most_of_them(tmp_path, questions, missed, known, found):
    """The last questions find their evidence; the others find that of their neighbour, if that is among the known."""
    items = golds(questions, gold_citations=[])
    items = [{**item, "gold_citations": [f"g{n}"]} for n, item in enumerate(items)]
    ids = [f"g{(n + 1) % questions}" if missed == questions else f"g{n}" for n in range(questions)]
    traces = [trace(n, retrieved_ids=[ids[n] if n >= questions - known else "x"]) for n in range(questions)]
    report = scored(tmp_path, items, traces)
    messages = [finding.message for finding in report.findings if finding.code == "unmatched-ids"]
    assert [message.partition(" chunk ids")[0] for message in messages] == ([found] if found else [])


def test_only_answered_questions_that_have_an_answer_count_for_unmatched_ids(tmp_path):
    """Four of five answered questions miss their evidence; others are not answered, or nothing answers them."""
    items = [{**item, "gold_citations": [f"g{n}"], "gold_claim_substr": []} for n, item in enumerate(golds(16))]
    items[10:] = [{**item, "answerable": False, "gold_citations": []} for item in items[10:]]
    traces = [trace(n, retrieved_ids=["g0" if n == 0 else "x"]) for n in (0, 1, 2, 3, 4, *range(10, 16))]
    assert levels(scored(tmp_path, items, traces), "unmatched-ids") == ["warning"]


@each_row(
    "before, shared, after, found",
    [
        (3, 0, 0, True),
        (2, 0, 0, False),  # too few to tell
        (8, 2, 0, True),  # 8 of 10 ids are gone
        (8, 3, 0, False),
        (10, 0, 1, True),  # a tenth of the gold's ids is still retrieved
        (10, 0, 2, False),
    ],
)
def test_ids_changed_if_four_fifths_are_gone_and_the_gold_has_those_of_one_side(tmp_path, before, shared, after, found):
    """The baseline retrieves ``before`` ids of the gold and ``shared`` others, the run ``after`` ids and the others."""
    others = [f"s{n}" for n in range(shared)]
    items = [{**item, "gold_citations": [f"g{n}"]} for n, item in enumerate(golds(10, gold_claim_substr=[]))]

    def run(known, new):
        ids = [f"g{n}" if n < known else f"{new}{n}" if n < before else "" for n in range(10)]
        return [trace(n, retrieved_ids=[*filter(None, [ids[n]]), *others]) for n in range(10)]

    (tmp_path / "base.json").write_text(render(scored(tmp_path, items, run(before, "old")), "json"), "utf-8")
    write_rows(tmp_path / "old.jsonl", run(before, "old"))
    text = "version: 1\nbaseline: {report: base.json, trace: old.jsonl}\ngates: {recall@5: {max_drop: 0.02}}\n"
    assert levels(scored(tmp_path, items, run(after, "new"), text), "ids-changed") == ["error"] * found


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "found"), [(200, ["warning"]), (201, [])])
def test_only_answers_of_up_to_200_characters_are_taken_for_refusals(tmp_path, length, found):
    item = gold_row(answerable=False)
    claim = "I don't know".ljust(length, "!")
    assert levels(scored(tmp_path, [item], [trace(1, claim)]), "unrecognised-refusals") == found
