"""`rag_eval.gold.lint`: each code found where it is due and nowhere else, whatever the order of lines."""

from __future__ import annotations

import json
import random
import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import ROOT, gold_row, make_case, trace_row
from depth import examples
from rag_eval.gates import REFERENCE_GATES
from rag_eval.gold.item_checks import GoldSample
from rag_eval.gold.lint import CHECKS, lint, watch
from seams import Gate, Gold, Policy, ProblemCollector, Reader, Settings, Trace, read_gold, read_policy, read_traces
from strategies import gold_fields
from table import each_row

QUICKSTART = ROOT / "examples" / "quickstart"
CLEAN = {"gold_claim_substr": ["30 days"], "gold_citations": ["a#1"]}
REFUSED = {"answerable": False}


def sample_of(rows, gates=(), traces=None, **policy):
    items = [Gold.from_row(row, line) for line, row in enumerate(rows, 1)]
    message = Policy(gates=tuple(gates), **policy)
    seen = None
    if traces is not None:
        golds = {gold.qid: gold for gold in items}
        answers = [Trace.from_row(trace_row(**trace), trace.get("qid", "Q1"), 1) for trace in traces]
        seen = watch(golds, answers, Settings(message.token, message.phrases))
    return GoldSample(items, message, seen)


def item(**fields):
    return gold_row(**{**CLEAN, **fields})


def found(code, *rows, **context):
    """The findings of one code on rows."""
    return [finding for finding in lint(sample_of(rows, **context)) if finding.code == code]


def answer(claim, ids=("a#1",), **fields):
    return {"retrieved_ids": list(ids), "answer_json": {"claim": claim, "citations": list(ids)}, **fields}


# --- one item and its substrings -------------------------------------------------------------------------------------

ONE_ITEM = [
    ("substr-white-space", {"gold_claim_substr": [" 30 days"]}, {"gold_claim_substr": ["30 days"]}),
    ("substr-white-space", {"gold_claim_substr": ["30  days"]}, {"gold_claim_substr": ["30  days", "30 days"]}),
    ("substr-white-space", {"gold_claim_substr": ["30\u00a0days"]}, {"gold_claim_substr": ["30-day s"]}),
    ("substr-white-space", {"gold_claim_substr": ["thirty\ndays"]}, {"gold_claim_substr": ["thirty days"]}),
    ("substr-character", {"gold_claim_substr": ["30\u200b days"]}, {"gold_claim_substr": ["می\u200cخواهم"]}),
    ("substr-character", {"gold_claim_substr": ["cafe\u0301s"]}, {"gold_claim_substr": ["caf\u00e9s"]}),
    ("substr-character", {"gold_claim_substr": ["\ufb01ve days"]}, {"gold_claim_substr": ["five days"]}),
    (
        "substr-character",
        {"gold_claim_substr": ["the seller’s"]},
        {"gold_claim_substr": ["the seller’s", "the seller's"]},
    ),
    ("substr-character", {"gold_claim_substr": ["İstanbul"]}, {"gold_claim_substr": ["Istanbul"]}),
    ("substr-long", {"gold_claim_substr": ["w" * 101]}, {"gold_claim_substr": ["w" * 101, "v" * 100]}),
    ("substr-refusal", {"gold_claim_substr": ["Not in context"]}, {"gold_claim_substr": ["not in the context"]}),
    ("substr-refusal", {"gold_claim_substr": ["in context"]}, {"gold_claim_substr": ["in contexts"]}),
    ("substr-in-question", {"question": "Is it 30 DAYS?"}, {"question": "Is it 30 or 40 days?"}),
    ("substr-stop-words", {"gold_claim_substr": ["it is not"]}, {"gold_claim_substr": ["it is red"]}),
    ("substr-stop-words", {"gold_claim_substr": ["- - -"]}, {"gold_claim_substr": ["- 7 -"]}),
    ("substr-in-citation", {"gold_citations": ["The 30 days#1"]}, {"gold_citations": ["The days#30"]}),
    ("no-substr", {"gold_claim_substr": []}, {}),
    ("no-citation", {"gold_citations": []}, {}),
    ("citation-ungraded", {"relevance_grades": {"b#1": 2}}, {"relevance_grades": {"a#1": 1, "b#1": 2}}),
    ("citation-ungraded", {"relevance_grades": {"a#1": 0}}, {"relevance_grades": {}}),
    ("expected-without-substr", {"expected_answer": "A month."}, {"expected_answer": "It is 30 DAYS."}),
    ("question-blank", {"question": " ?"}, {"question": "Why?"}),
]


@each_row(("code", "faulty", "fine"), ONE_ITEM, ids=lambda value: value if isinstance(value, str) else "")
def test_a_fault_of_an_item_is_found_and_its_absence_too(code, faulty, fine):
    (finding,) = found(code, item(**faulty))
    assert (finding.qid, finding.line, bool(finding.message), bool(finding.hint)) == ("Q1", 1, True, True)
    assert found(code, item(**fine)) == []


@each_row(("code", "faulty", "fine"), ONE_ITEM, ids=lambda value: value if isinstance(value, str) else "")
def test_safety_cases_are_left_alone(code, faulty, fine):
    assert lint(sample_of([item(**faulty, attack={"kind": "input", "positive": True})])) == []


def test_a_refusal_phrase_in_a_substring_is_a_refusal_to_the_scorer_too():
    phrase = ("cannot be sent",)
    (finding,) = found("substr-refusal", item(gold_claim_substr=["Batteries cannot be sent"]), phrases=phrase)
    assert "'cannot be sent'" in finding.message
    scored = make_case(
        {"gold_claim_substr": ["Batteries cannot be sent"]},
        {"answer_json": {"claim": "Batteries cannot be sent.", "citations": []}},
        Settings(phrases=phrase),
    )
    assert scored.refused
    assert found("substr-refusal", item(gold_claim_substr=["no batteries"]), phrases=phrase) == []


@pytest.mark.parametrize("text", ["Not specified", "The document does not say", "keine Angabe"])
def test_a_substring_that_refuses_by_itself_is_a_refusal_to_the_scorer_too(text):
    (finding,) = found("substr-refusal", item(gold_claim_substr=[text]), builtin=True)
    assert "the built-in pattern" in finding.message
    answer = {"answer_json": {"claim": f"{text}.", "citations": []}}
    assert make_case({"gold_claim_substr": [text]}, answer, Settings(builtin=True)).refused
    assert found("substr-refusal", item(gold_claim_substr=[text])) == []


@pytest.mark.parametrize("text", [" 30 days", "30 days ", "30  days", "cafe\u0301s", "the seller’s", "30\u200b days"])
def test_what_is_said_to_be_hard_to_match_is_not_matched_by_the_plain_answer(text):
    """The scorer itself is asked: a plainly written answer that is nothing but the substring does not hold it."""
    from rag_eval.gold.item_checks import tidy

    case = make_case({"gold_claim_substr": [text]}, {"answer_json": {"claim": tidy(text), "citations": []}})
    assert not case.contained
    plain = make_case({"gold_claim_substr": [tidy(text)]}, {"answer_json": {"claim": tidy(text), "citations": []}})
    assert plain.contained


def test_white_space_that_cannot_be_seen_is_named():
    (finding,) = found("substr-white-space", item(gold_claim_substr=["30\u00a0days"]))
    assert "contains white space (U+00A0) that an answer must repeat" in finding.message
    assert finding.hint == "Write '30 days'."


def test_labels_that_most_items_lack_are_one_finding_of_the_set():
    rows = [item(qid=f"Q{n}", question=f"What is number {n}?", gold_claim_substr=[]) for n in range(9)]
    (finding,) = found("no-substr", *rows)
    assert (finding.line, finding.qid) == (0, "")
    assert finding.message.startswith("no substring in 9 of 9 answerable items")
    rows[:7] = [{**row, "gold_claim_substr": ["30 days"]} for row in rows[:7]]
    assert [item.qid for item in found("no-substr", *rows)] == ["Q7", "Q8"]


# --- citations -------------------------------------------------------------------------------------------------------


def test_two_spellings_of_an_id_are_found_at_the_rarer_one():
    rows = [item(qid=f"Q{n}", gold_citations=["manual#keys"]) for n in range(3)]
    rows.append(item(qid="Q9", gold_citations=["Manual #keys"]))
    (finding,) = found("citation-variant", *rows)
    assert (finding.qid, finding.message) == ("Q9", "the id 'Manual #keys' is also written 'manual#keys'")
    assert found("citation-variant", *rows[:3]) == []


def test_the_spelling_of_the_traces_is_the_right_one_and_two_that_are_retrieved_are_two_ids():
    rows = [item(qid="Q1", gold_citations=["Manual#keys"])]
    (finding,) = found("citation-variant", *rows, traces=[answer("30 days", ["manual#keys"])])
    assert finding.message == "the id 'Manual#keys' is written 'manual#keys' in the traces"
    assert found("citation-unseen", *rows, traces=[answer("30 days", ["manual#keys"])]) == []
    rows.append(item(qid="Q2", gold_citations=["manual#keys"]))
    assert found("citation-variant", *rows, traces=[answer("30 days", ["Manual#keys", "manual#keys"])]) == []


def test_citations_that_no_trace_has_are_found_in_retrieved_ids_and_in_chunks():
    rows = [item(qid="Q1", gold_citations=["a"]), item(qid="Q2", gold_citations=["b", "c"])]
    traces = [answer("30 days", ["a"]), {"qid": "Q2", "chunks": [{"id": "b"}], "answer": "30 days"}]
    (finding,) = found("citation-unseen", *rows, traces=traces)
    assert (finding.qid, finding.message) == ("Q2", "no trace retrieved 1 of its 2 gold citations, such as 'c'")
    assert found("citation-unseen", *rows, traces=[*traces, answer("x", ["c"], qid="Q1")]) == []
    assert found("citation-unseen", *rows) == []


def test_when_most_citations_are_unseen_the_form_of_the_ids_is_in_doubt():
    rows = [item(qid="Q1", gold_citations=["a", "b", "c"])]
    (finding,) = found("citation-unseen", *rows, traces=[answer("30 days", ["doc-a"])])
    assert finding.line == 0
    assert finding.message == "3 of 3 gold citations were retrieved by no trace, such as 'a'"
    assert "'doc-a'" in finding.hint


# --- answers of traces -----------------------------------------------------------------------------------------------

MANY = [item(qid=f"Q{n:02d}", question=f"Question {n}?", gold_claim_substr=[f"number {n:02d}"]) for n in range(21)]


def told(n, words):
    return answer(f"The answer is number {n:02d}{words}.", qid=f"Q{n:02d}")


def test_a_substring_that_half_of_the_answers_to_other_questions_hold_is_common():
    rows = [{**MANY[0], "gold_claim_substr": ["answer is"]}, *MANY[1:]]
    half = [answer("Otherwise.", qid=f"Q{n:02d}") if n > 10 else told(n, "") for n in range(21)]
    (finding,) = found("substr-common", *rows, traces=half)
    assert finding.qid == "Q00"
    assert finding.message == "the substring 'answer is' occurs in 10 of 20 answers to other questions"
    fewer = [answer("Otherwise.", qid=f"Q{n:02d}") if n > 9 else told(n, "") for n in range(21)]
    assert found("substr-common", *rows, traces=fewer) == []


def test_few_answers_and_refusals_make_nothing_common():
    rows = [{**MANY[0], "gold_claim_substr": ["context"]}, *MANY[1:]]
    assert found("substr-common", *rows, traces=[answer("not in context", qid=row["qid"]) for row in rows]) == []
    assert found("substr-common", *rows, traces=[answer("The context.", qid=row["qid"]) for row in rows[:10]]) == []
    assert found("substr-common", *rows, traces=[answer("The context.", qid=row["qid"]) for row in rows[:11]])


@examples(30)
@given(st.data())
def test_common_substrings_are_those_that_counting_finds(data):
    words = st.sampled_from(["alpha", "gamma", "delta", "alphagam"])
    rows = [{**row, "gold_claim_substr": [data.draw(words), data.draw(words) + " x"]} for row in MANY[:14]]
    claims = {row["qid"]: " ".join(data.draw(st.lists(words, min_size=1, max_size=3))) + " x" for row in rows}
    expected = set()
    for row in rows:
        for text in dict.fromkeys(row["gold_claim_substr"]):
            other = [claims[item["qid"]] for item in rows if text not in item["gold_claim_substr"]]
            if len(other) >= 10 and 2 * sum(text in claim for claim in other) >= len(other):
                expected.add((row["qid"], text))
    traces = [answer(claim, qid=qid) for qid, claim in claims.items()]
    common = found("substr-common", *rows, traces=traces)
    assert {(item.qid, item.message.split("'")[1]) for item in common} == expected


@pytest.mark.parametrize(
    "claim", ["Within 30  days.", "Within **30** days.", "Within 30\u00a0days.", "Within ３０ days."]
)
def test_an_answer_that_misses_a_substring_by_its_looks_is_found(claim):
    (finding,) = found("substr-near-miss", item(), traces=[answer(claim)])
    assert finding.message.startswith("an answer writes '30 days' with other white space")
    assert found("substr-near-miss", item(), traces=[answer("Within 30 days."), answer("A month.")]) == []
    both = item(gold_claim_substr=["30 days", claim.strip(".")])
    assert found("substr-near-miss", both, traces=[answer(claim)]) == []


# --- questions -------------------------------------------------------------------------------------------------------


def test_the_same_question_with_the_same_labels_is_a_duplicate_and_with_others_a_contradiction():
    first = item(qid="Q1", question="How long is it kept?")
    same, other = item(qid="Q2", question="how long  is it kept"), {**first, "qid": "Q3", **REFUSED}
    other |= {"gold_claim_substr": [], "gold_citations": []}
    assert [item.qid for item in found("question-duplicate", first, same)] == ["Q2"]
    unseen = item(qid="Q2", question="How long is it \u200bkept?")
    assert [item.qid for item in found("question-duplicate", first, unseen)] == ["Q2"]
    assert found("question-contradiction", first, same) == []
    (finding,) = found("question-contradiction", first, other)
    assert finding.message == "it asks the same question as 'Q1' but differs in answerable"
    assert found("question-duplicate", first, other) == []
    labels = {**first, "qid": "Q4", "gold_citations": ["b#2"]}
    assert found("question-contradiction", first, labels)[0].message.endswith("differs in gold_citations")


def test_questions_that_differ_in_signs_only_are_not_the_same():
    rows = item(qid="Q1", question="What is C?"), item(qid="Q2", question="What is C++?", gold_citations=["b"])
    assert found("question-contradiction", *rows) == []


NEAR = [
    ("How long is tracking data kept?", "How long is the tracking data kept?"),
    ("How long is tracking data kept?", "For how long is tracking data kept?"),
    ("How heavy may a parcel to the islands be?", "How heavy may parcels to the island be?"),
    ("How much does a parcel of 4 kg to Spain cost?", "How much does a parcel of 4 kg to Spain cost now?"),
]
FAR = [
    ("How much does a parcel of 4 kg to Spain cost?", "How much does a parcel of 5 kg to Spain cost?"),
    (
        "When is an accepted claim for damage paid out to the sender?",
        "Where is an accepted claim for damage paid out to the sender?",
    ),
    (
        "What does the Standard plan pay for visits to a dentist abroad?",
        "What does the Plus plan pay for visits to a dentist abroad?",
    ),
    ("Who founded it?", "Why was it founded?"),
    ("What is it?", "Who is it?"),
]


@each_row(("first", "second", "near"), [*((*pair, True) for pair in NEAR), *((*pair, False) for pair in FAR)])
def test_near_duplicates_are_found_at_the_later_qid_unless_each_has_a_telling_word(first, second, near):
    rows = [item(qid="Q2", question=first), item(qid="Q1", question=second)]
    findings = [(one.qid, one.line, one.message) for one in found("question-near-duplicate", *rows)]
    message = f"it asks nearly the same question as 'Q1': '{second}'"
    assert findings == ([("Q2", 1, message)] if near else [])


# --- the set and its gates -------------------------------------------------------------------------------------------


def mixed(answerable, unanswerable, **fields):
    rows = [item(qid=f"A{n}", question=f"What is part {n}?", **fields) for n in range(answerable)]
    blank = {"gold_claim_substr": [], "gold_citations": []}
    return rows + [
        item(qid=f"U{n}", question=f"Who is man {n}?", **REFUSED, **blank, **fields) for n in range(unanswerable)
    ]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((10, 0), "unanswerable: 0 of 10"),
        ((19, 1), "unanswerable: 1 of 20"),
        ((9, 1), ""),
        ((3, 0), ""),
        ((1, 19), "answerable: 1 of 20"),
        ((2, 18), ""),
    ],
)
def test_a_class_below_a_tenth_is_named(counts, said):
    messages = [item.message for item in found("balance", *mixed(*counts))]
    assert messages == ([f"less than a tenth of the items are {said}"] if said else [])


def test_a_category_or_tag_of_one_class_is_named_when_it_is_large():
    rows = mixed(20, 0, category="price", tags=["x", "x"]) + [{**row, "tags": ["x"]} for row in mixed(0, 5)]
    (finding,) = found("one-class", *rows)
    assert finding.message == "all 20 items of category 'price' are answerable"
    assert found("one-class", *(mixed(19, 0, category="price") + mixed(0, 5))) == []
    assert found("one-class", *mixed(20, 0, category="price")) == []


@pytest.mark.parametrize(
    ("gate", "n", "needed"),
    [
        (Gate("under_refusal", "max", "0.05"), 8, 20),
        (Gate("under_refusal", "max", "0.05"), 19, 20),
        (Gate("under_refusal", "max", "0.05"), 20, None),
        (Gate("under_refusal", "max", "0"), 8, None),
        (Gate("precision", "min", "0.867"), 7, 8),
        (Gate("precision", "min", "0.867"), 8, None),
        (Gate("precision", "min", "1"), 3, None),
        (Gate("citation_precision", "min", "0.9"), 3, None),
    ],
)
def test_a_gate_that_lets_none_fail_says_how_many_items_would_do(gate, n, needed):
    findings = found("gate-coarse", *mixed(n, n), gates=[gate])
    assert [re.findall(r"With (\d+) such items one may fail", finding.hint) for finding in findings] == (
        [[str(needed)]] if needed else []
    )
    strictest = {"min": "1", "max": "0"}[gate.direction]
    assert all(finding.hint.endswith(f"Add items, or set the limit to {strictest}.") for finding in findings)


def test_the_example_of_the_manual_is_what_is_said():
    (finding,) = found("gate-coarse", *mixed(10, 8), gates=[Gate("under_refusal", "max", "0.05")])
    assert finding.message == (
        "the gate under_refusal ≤ 0.05 applies to 8 items: one failed item moves the value by 0.125, so none may fail"
    )


@pytest.mark.parametrize("name", ["recall_all@5", "under_refusal"])
def test_a_gate_on_a_worsening_is_no_threshold_on_a_value(name):
    gates = [Gate(name, "max_drop", "0.02"), Gate(name, "max_rise", "0.02")]
    codes = ("gate-coarse", "gate-out-of-reach", "gate-without-items")
    assert [found(code, *mixed(10, 8), gates=gates) for code in codes] == [[], [], []]


def test_a_gate_on_a_slice_is_about_the_items_of_the_slice():
    rows = mixed(12, 8)
    rows[0]["category"] = "rare"
    gates = [Gate("precision", "min", "0.8", slice=f"category={part}") for part in ("rare", "none", "*")]
    coarse = [item.message for item in found("gate-coarse", *rows, gates=gates)]
    assert len(coarse) == 2
    assert {item[:63] for item in coarse} == {"the gate precision where category=rare ≥ 0.8 applies to 1 item:"}
    assert [item.message for item in found("gate-without-items", *rows, gates=gates)] == [
        "the gate precision where category=none ≥ 0.8 has no items to judge: it applies to answers"
    ]


def test_gates_without_items_are_named_unless_they_may_be_skipped():
    thresholds = ("under_refusal", "max", "0.05"), ("containment", "min", "0.8"), ("attribution_hit", "min", "0")
    gates = [Gate(*threshold) for threshold in thresholds]
    codes = found("gate-without-items", *mixed(3, 0), gates=gates)
    assert sorted(code.message.split()[2] for code in codes) == ["attribution_hit", "containment", "under_refusal"]
    support = {"supports": [{"rel_path": "a.md", "heading_path": ""}], "expected_answer": "30 days"}
    assert found("gate-without-items", *mixed(3, 1, **support), gates=gates) == []
    assert found("gate-without-items", *mixed(3, 0), gates=[replace(gate, when_no_data="skip") for gate in gates]) == []


def test_no_metric_is_said_to_have_no_items_where_a_run_could_give_it_some():
    from seams import measures

    support = {
        "supports": [{"rel_path": "a.md", "heading_path": ""}],
        "sections": [{"doc_id": "a", "section": "1"}],
        "recency_conflict_rule": "cite_newer",
        "expected_answer": "30 days",
        "relevance_grades": {"a": 1, "x": 0},
        "gold_facts": [{"fact": "30 days"}],
        "expected_claims": ["30 days"],
        "forbidden_claims": ["60 days"],
        "expected_documents": ["a"],
        "expected_outcome": "success",
        "required_flags": ["cited"],
        "forbidden_flags": ["guardrail_blocked"],
        "min_citations": 1,
        "latency_budget_ms": {"total": 1000},
    }
    wanted = [one for one in measures((1, 5)) if one.name != "leakage_internal"]  # without patterns it has nothing
    gates = [Gate(item.name, "min" if item.metric.better == "higher" else "max", "0.5") for item in wanted]
    rows = [{**row, "conversation": "leave", "turn": turn} for turn, row in enumerate(mixed(3, 3, **support), 1)]
    assert found("gate-without-items", *rows, gates=gates) == []


@pytest.mark.parametrize(
    ("gate", "citations", "grades", "ideal"),
    [
        (Gate("precision@5", "min", "0.5"), ["a"], None, "0.2"),
        (Gate("precision@5", "min", "0.2"), ["a"], None, ""),
        (Gate("recall@1", "min", "0.5"), ["a", "b", "c"], None, "0.333"),
        (Gate("recall@3", "min", "1"), ["a", "b", "c"], None, ""),
        (Gate("recall_all@1", "min", "0.5"), ["a", "b"], None, "0"),
        (Gate("mrr", "min", "1"), ["a"], {"b": 3, "a": 1}, ""),
        (Gate("ndcg@5", "min", "1"), ["a"], {"b": 3, "a": 1}, ""),
    ],
)
def test_a_gate_on_retrieval_that_an_ideal_run_does_not_pass_is_out_of_reach(gate, citations, grades, ideal):
    fields = {"gold_citations": citations, **({"relevance_grades": grades} if grades else {})}
    findings = found(
        "gate-out-of-reach", *(item(qid=f"Q{n}", question=f"Part {n}?", **fields) for n in range(4)), gates=[gate]
    )
    assert [finding.message.rsplit(" ", 1)[1] for finding in findings] == ([ideal] if ideal else [])


# --- laws ------------------------------------------------------------------------------------------------------------


@st.composite
def gold_sets(draw):
    questions = ["How long is it kept?", "How long is it kept", "How long is all of it kept?", "", "What is C++?"]
    rows = [
        gold_row(qid=f"Q{n}", question=draw(st.sampled_from(questions)), **fields)
        for n, fields in enumerate(draw(st.lists(gold_fields(), min_size=1, max_size=6)))
    ]
    ids = st.lists(st.sampled_from(["a", "A", "b", "f"]), max_size=2)
    claims = st.sampled_from(["Kept for 30  days", "kept for 30 days", "not in context", ""])
    traces = [answer(draw(claims), draw(ids), qid=row["qid"]) for row in rows]
    return rows, draw(st.none() | st.just(traces))


@examples(100)
@given(gold_sets(), st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_change_what_is_found(made, chance):
    rows, traces = made
    shuffled = random.Random(chance.random()).sample(rows, len(rows))
    sets = [
        {(item.code, item.qid, item.message, item.hint) for item in lint(sample_of(some, REFERENCE_GATES, message))}
        for some, message in ((rows, traces), (shuffled, traces[::-1] if traces else None))
    ]
    assert sets[0] == sets[1]


@examples(50)
@given(gold_sets())
def test_findings_point_at_their_items_and_are_sorted(made):
    rows, traces = made
    findings = lint(sample_of(rows, REFERENCE_GATES, traces))
    assert findings == sorted(findings)
    assert {finding.code for finding in findings} <= CHECKS.keys()
    assert all(rows[finding.line - 1]["qid"] == finding.qid for finding in findings if finding.line)
    assert all(finding.hint.endswith(".") and not finding.message.endswith(".") for finding in findings)


def packaged(trace):
    reader = Reader(ProblemCollector())
    golds = read_gold(reader, str(QUICKSTART / "gold.jsonl"))
    policy = read_policy(reader, str(QUICKSTART / "eval-gates.yml"))
    traces = chain.from_iterable(read_traces(reader, str(QUICKSTART / trace)))
    seen = watch(golds, traces, Settings(policy.token))
    return golds.values(), policy, seen


@pytest.mark.parametrize("trace", ["good.jsonl", "bad.jsonl"])
def test_the_packaged_example_is_clean_but_for_its_size(trace):
    golds, policy, seen = packaged(trace)
    assert lint(GoldSample(golds, replace(policy, gates=()), seen)) == []
    (finding,) = lint(GoldSample(golds, policy, seen))
    assert (finding.code, "applies to 4 items:" in finding.message) == ("gate-coarse", True)


def test_every_code_is_explained_in_the_docs_in_order_and_no_other():
    page = (ROOT / "docs" / "gold.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(CHECKS)


def test_ten_thousand_items_and_their_traces_are_looked_at():
    rows = [
        item(qid=f"Q{n:05d}", question=f"What does part {n} of house {n % 97} cost?", gold_claim_substr=[f"{n} euro"])
        for n in range(1000, 11000)
    ]
    rows.append(
        item(qid="Q99999", question="What does the part 5000 of house 53 cost?", gold_claim_substr=["5000 euro"])
    )
    traces = [answer(f"It costs {row['gold_claim_substr'][0]}.", qid=row["qid"]) for row in rows]
    findings = lint(sample_of(rows, traces=traces))
    assert [(finding.code, finding.qid) for finding in findings] == [
        ("balance", ""),
        ("question-near-duplicate", "Q99999"),
    ]
    assert "'Q05000'" in findings[1].message


def test_findings_are_plain_data():
    (finding,) = found("no-citation", item(gold_citations=[]))
    assert json.loads(json.dumps(finding._asdict())) == finding._asdict()


@pytest.mark.parametrize(("documents", "said"), [(10, True), (38, True), (100, False), (5, False)])
def test_many_questions_about_the_same_documents_are_to_be_counted_together(documents, said):
    rows = [
        gold_row(qid=f"Q{n}", question=f"What is item {n}?", gold_claim_substr=[f"{n} days"],
                 gold_citations=[f"d{n % documents}.pdf#page={n}"])
        for n in range(190)
    ]  # fmt: skip
    assert bool(found("clustered-questions", *rows)) == said
