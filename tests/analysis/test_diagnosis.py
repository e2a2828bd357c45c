"""The values name the likely cause."""

import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rag_eval.analysis import diagnosis
from rag_eval.analysis.diagnosis import diagnose, limits_of
from seams import MEANING, Gate, Value, judge, measure

FINE = {"precision": 0.9, "chr": 0.9, "under_refusal": 0.0, "over_refusal": 0.0, "recall_all@5": 0.9}


def causes(labels=None, limits=None, **values):
    named = {name.replace("_at_", "@"): value for name, value in values.items()}
    return [item.cause.split(":")[0] for item in diagnose({**FINE, **named}, labels or {}, limits or {}, 5)]


def test_good_values_have_no_cause_to_name():
    assert causes() == []


@pytest.mark.parametrize(
    ("cause", "labels", "values"),
    [
        ("Grounding", {"NOT_CITED": 5}, {"precision": 0.5, "chr": 0.5}),
        ("Grounding", {"CITED_UNRETRIEVED": 5}, {"precision": 0.5, "chr": 0.5}),
        ("Grounding", {"NOT_CITED": 2}, {"precision": 0.78, "chr": 0.78}),  # CHR keeps its own limit
        ("Claim wording", {"WRONG_CLAIM": 5}, {"precision": 0.5}),
        ("Refusal behaviour", {"HALLUCINATION": 1}, {"under_refusal": 0.06}),
        ("Refusal behaviour", {"HALLUCINATION": 5}, {"precision": 0.5, "chr": 0.5}),
        ("Retrieval or index drift", {"NOT_RETRIEVED": 5}, {"recall_all_at_5": 0.5}),
        ("Retrieval or index drift", {"NOT_RETRIEVED": 5}, {"precision": 0.5, "chr": 0.5}),
        ("Retrieval or index drift", {}, {"recall_all_at_5": 0.5}),  # a part of the evidence leaves no label
    ],
)
def test_a_bad_value_names_the_cause_that_the_labels_bear_out(cause, labels, values):
    assert causes({"OK": 5, **labels}, **values) == [cause]


def test_answers_that_keep_precision_and_cite_wrongly_stand_among_noise():
    values = {**FINE, "precision": 0.85, "chr": 0.85}
    (item,) = diagnose(values, {"OK": 17, "NOT_CITED": 3}, {"chr": 0.9}, 5)
    assert item.cause == "Noisy retrieval: 3 answers do not cite what supports them."  # they may cite nothing


def test_causes_of_wrong_answers_come_by_how_many_they_explain():
    labels = {"OK": 5, "NOT_CITED": 2, "WRONG_CLAIM": 3}
    assert causes(labels, precision=0.5, chr=0.7) == ["Claim wording", "Grounding"]
    assert causes({**labels, "NOT_CITED": 4}, precision=5 / 12, chr=8 / 12) == ["Grounding", "Claim wording"]


def test_one_decoy_is_no_cause():
    assert causes({"OK": 5, "NOT_CITED": 9, "WRONG_CLAIM": 1}, precision=5 / 15, chr=6 / 15) == ["Grounding"]


@pytest.mark.parametrize(("label", "rate"), [("MISSING", None), ("ERROR", 1.0)])
def test_a_run_without_answers_is_incomplete_and_nothing_else(label, rate):
    bad = {"precision": 0.0, "chr": 0.0, "under_refusal": 1.0, "recall_all_at_5": 0.0, "error_rate": rate}
    assert causes({label: 14}, **bad) == ["Incomplete run"]


def test_an_incomplete_run_says_how_much_is_there_and_what_to_do():
    values = {**FINE, "precision": 0.5, "chr": 0.5}
    missing, errored, both = (
        diagnose(values, {"OK": 7, **labels}, {}, 5)[0]
        for labels in ({"MISSING": 7}, {"ERROR": 7}, {"MISSING": 3, "ERROR": 4})
    )
    assert missing.cause == errored.cause == both.cause
    assert missing.cause == "Incomplete run: 7 of 14 answers are missing or errored."
    assert [item.evidence for item in (missing, errored, both)] == ["7 missing", "7 errored", "3 missing, 4 errored"]
    assert "why the pipeline stopped" in missing.next
    assert "Read the errors" in errored.next


def test_one_missing_answer_is_missing():
    assert diagnose(FINE, {"OK": 8, "MISSING": 1}, {"completeness.missing": 0.0}, 5)[0].cause == (
        "Incomplete run: 1 of 9 answers is missing or errored."
    )


def test_answers_of_a_system_that_does_not_cite_have_no_right_evidence():
    values = {**FINE, "precision": 0.5, "compliance": 0.0}
    result = diagnose(values, {"OK": 5, "WRONG_CLAIM": 5}, {}, 5)
    assert [item.cause for item in result] == ["Claim wording: 5 claims miss the gold text."]


def test_citations_without_evidence_in_the_gold_set_are_told_apart():
    values = {**FINE, "precision": 0.0, "chr": 0.0, "compliance": 1.0, "citation_recall": None}
    (result,) = diagnose(values, {"NOT_CITED": 5}, {}, 5)
    assert result.next.startswith("The gold set names no evidence, so every answer with citations is wrong.")
    (result,) = diagnose({**values, "citation_recall": 0.0}, {"NOT_CITED": 5}, {}, 5)
    assert result.next.startswith("Read the NOT_CITED cases")


def test_a_leak_is_called_by_its_kind_and_a_quotation_only_where_a_gate_forbids_it():
    quoted = {**FINE, "leakage": 0.1, "leakage_verbatim": 0.1, "leakage_personal": 0.0}
    assert diagnose(quoted, {"OK": 9}, {}, 5) == []
    (gated,) = diagnose(quoted, {"OK": 9}, {"leakage": 0.0}, 5)
    assert gated.cause == "Leakage: some answers contain long passages of chunks."
    (both,) = diagnose({**quoted, "leakage_personal": 0.1}, {"OK": 9}, {}, 5)
    assert both.cause == "Leakage: some answers contain personal data and long passages of chunks."


def test_what_is_wrong_with_the_answers_that_are_there_follows():
    labels = {"OK": 5, "MISSING": 4, "NOT_CITED": 5, "HALLUCINATION": 1, "REFUSAL_OK": 1, "NOT_RETRIEVED": 5}
    bad = {"precision": 0.25, "chr": 0.25, "under_refusal": 0.6, "recall_all_at_5": 0.3}
    expected = ["Incomplete run", "Grounding", "Refusal behaviour", "Retrieval or index drift"]
    assert causes(labels, **bad) == expected


def test_a_few_answers_that_are_missing_explain_no_value():
    assert causes({"OK": 50, "NOT_CITED": 50, "MISSING": 2}, precision=0.49, chr=0.49) == ["Grounding"]


def test_as_many_missing_answers_as_are_allowed_are_no_cause():
    labels = {"OK": 98, "MISSING": 2}
    assert causes(labels, {"completeness.missing": 1.0}) == ["Incomplete run"]
    assert causes(labels, {"completeness.missing": 2.0}) == causes(labels) == []


counts = st.dictionaries(
    st.sampled_from([*(set(MEANING) - {"ATTACK", "LEAK", "ATTACK_MISSED", "LEAK_MISSED", "FALSE_ALARM"})]),
    st.integers(1, 30),
    min_size=1,
)


@given(counts)
def test_no_cause_speaks_of_cases_that_do_not_exist(labels):
    result = " ".join(f"{item.cause} {item.next}" for item in diagnose(values_of(labels), labels, {}, 5))
    assert {name for name in MEANING if re.search(rf"\b{name}\b", result)} <= set(labels)
    assert ("Incomplete" in result) <= ("MISSING" in labels or "ERROR" in labels)
    assert ("claim misses" in result) == ("WRONG_CLAIM" in result)


@given(counts)
def test_a_precision_that_is_too_low_has_a_cause(labels):
    result = diagnose(values_of(labels), labels, {}, 5)
    assert result or (values_of(labels)["precision"] or 1.0) >= 0.8


def values_of(labels):
    """The values of a run with these labels, as the metrics have them where each question asks for one chunk."""

    def share(*of, among):
        whole = sum(labels.get(name, 0) for name in among)
        return sum(labels.get(name, 0) for name in of) / whole if whole else None

    absent, refused = ("MISSING", "ERROR"), ("OVER_REFUSAL_EVIDENCE_PRESENT", "OVER_REFUSAL_NOT_RETRIEVED")
    answered = ("OK", "WRONG_CLAIM", "NOT_CITED", "CITED_UNRETRIEVED", "NOT_RETRIEVED", "BELOW_K")
    retrieved = ("OK", "WRONG_CLAIM", "NOT_CITED", "CITED_UNRETRIEVED", "OVER_REFUSAL_EVIDENCE_PRESENT")
    return {
        "precision": share("OK", among=(*answered, "HALLUCINATION", *absent)),
        "chr": share("OK", "WRONG_CLAIM", among=(*answered, "HALLUCINATION", *absent)),
        "under_refusal": share("HALLUCINATION", among=("HALLUCINATION", "REFUSAL_OK")),
        "over_refusal": share(*refused, among=(*answered, *refused, *absent)),
        "recall_all@5": share(*retrieved, among=(*answered, *refused, *absent)),
    }


def gate(name, direction, threshold, part=""):
    return judge(Gate(name, direction, threshold, slice=part), Value(None, 0))


def test_of_several_gates_on_a_metric_the_strictest_is_the_limit():
    gates = [gate("precision", "min", "0.4"), gate("precision", "min", "0.8"), gate("precision", "min", "0.6")]
    gates += [gate("under_refusal", "max", "0.1"), gate("under_refusal", "max", "0.05")]
    gates += [gate("completeness.missing", "max", "3"), gate("completeness.missing", "max", "0")]
    assert limits_of(gates) == {"precision": 0.8, "under_refusal": 0.05, "completeness.missing": 0.0}


def test_gates_on_slices_on_worsenings_and_against_the_better_are_no_limits():
    gates = [gate("precision", "min", "0.9", "tags=a"), gate("precision", "max_drop", "0.1")]
    assert limits_of([*gates, gate("answered_rate", "max", "0.9")]) == {}


@pytest.mark.parametrize(
    ("cause", "label"),
    [
        ("Refusal template or threshold", "OVER_REFUSAL_EVIDENCE_PRESENT"),
        ("Recall or chunking", "OVER_REFUSAL_NOT_RETRIEVED"),
    ],
)
def test_over_refusal_is_told_apart_by_whether_the_evidence_was_there(cause, label):
    assert causes({label: 3}, over_refusal=0.2) == [cause]


def test_over_refusal_can_have_both_causes():
    both = {"OVER_REFUSAL_EVIDENCE_PRESENT": 1, "OVER_REFUSAL_NOT_RETRIEVED": 2}
    assert len(causes(both, over_refusal=0.2)) == 2


@pytest.mark.parametrize(
    ("step", "labels"),
    [
        ("below rank 5. Rerank", {"BELOW_K": 2, "NOT_RETRIEVED": 1}),
        ("index contains", {"BELOW_K": 1, "NOT_RETRIEVED": 1}),
    ],
)
def test_low_recall_asks_for_reranking_when_most_of_it_stands_below_k(step, labels):
    result = diagnose({**FINE, "recall_all@5": 0.5}, labels, {}, 5)
    assert step in result[0].next


def test_thresholds_of_the_gates_take_the_place_of_the_defaults():
    assert causes({"OK": 9, "WRONG_CLAIM": 1}, limits={"precision": 0.95}) == ["Claim wording"]
    assert causes(limits={"recall_all@5": 0.4}, recall_all_at_5=0.5) == []


def test_a_value_on_its_threshold_is_not_bad():
    assert causes(precision=0.80, chr=0.75, under_refusal=0.05, over_refusal=0.10, recall_all_at_5=0.80) == []


def test_metrics_without_a_value_speak_for_nothing():
    assert diagnose(dict.fromkeys(FINE), {"OVER_REFUSAL_NOT_RETRIEVED": 1}, {}, 5) == []


def test_a_metric_that_was_not_measured_speaks_for_nothing():
    assert diagnose({}, {}, {}, 5) == []


@pytest.mark.parametrize(
    ("values", "evidence"),
    [({"precision": 0.7996}, "precision 0.7996"), ({"under_refusal": 0.0504}, "under_refusal 0.0504")],
)
def test_the_evidence_does_not_look_as_if_the_threshold_were_kept(values, evidence):
    labels = {"OK": 7996, "WRONG_CLAIM": 2004, "REFUSAL_OK": 9496, "HALLUCINATION": 504}
    assert diagnose({**FINE, **values}, labels, {}, 5)[0].evidence.startswith(evidence)


def of_perspectives(monkeypatch, **perspectives):
    """Metrics that stand for those of a perspective: their names as they are, under another perspective."""
    known = {name: measure(name) for name in ("map", "hit_precision", "compliance")}
    moved = {
        name: replace(known[name], metric=replace(known[name].metric, perspective=perspective))
        for name, perspective in perspectives.items()
    }
    monkeypatch.setattr(diagnosis, "measure", lambda name: moved.get(name) or measure(name))


LIMITS = {"hit_precision": 0.6, "compliance": 0.7}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"hit_precision": 0.5, "compliance": 0.8}, ["Prompt"]),
        ({"hit_precision": 0.9, "compliance": 0.8}, []),
        (
            {"hit_precision": 0.5, "compliance": 0.8, "recall_all@5": 0.5},
            ["Retrieval or index drift", "Embedding or chunking"],
        ),
        ({"hit_precision": 0.9, "compliance": 0.6, "recall_all@5": 0.5}, ["Retrieval or index drift"]),
        ({"hit_precision": 0.5, "recall_all@5": None}, []),
        ({"hit_precision": 0.9, "compliance": None, "recall_all@5": 0.5}, ["Retrieval or index drift"]),
    ],
)
def test_perspectives_together_tell_what_one_alone_does_not(monkeypatch, values, expected):
    of_perspectives(monkeypatch, hit_precision="groundedness", compliance="context")
    result = diagnose({**FINE, **values}, {}, LIMITS, 5)
    assert [item.cause.split(":")[0] for item in result] == expected


def test_the_evidence_of_several_perspectives_names_what_speaks_for_each(monkeypatch):
    of_perspectives(monkeypatch, hit_precision="groundedness")
    (result,) = diagnose({**FINE, "hit_precision": 0.5996}, {}, {"hit_precision": 0.6}, 5)
    assert result.evidence == "recall_all@5 0.900, hit_precision 0.5996"


def test_a_gate_on_the_recall_of_the_labels_speaks_once(monkeypatch):
    of_perspectives(monkeypatch, compliance="context")
    values, limits = {**FINE, "compliance": 0.9, "recall_all@5": 0.5}, {"recall_all@5": 0.7, "compliance": 0.7}
    assert diagnose(values, {}, limits, 5)[1].evidence == "recall_all@5 0.500, compliance 0.900"


# Operations: what fails, and where the time goes


@pytest.mark.parametrize("name", ["error_rate", "timeout_rate"])
def test_what_fails_in_operation_is_the_system_s_fault(name):
    assert causes(**{name: 0.06}) == ["System"]
    assert causes(**{name: 0.05}) == []
    assert causes(limits={name: 0.1}, **{name: 0.06}) == []


STAGES = {
    "latency_total_ms.p95": 2400.4,
    "latency_total_ms.mean": 1900.0,
    "latency_retrieve_ms.mean": 300.0,
    "latency_generate_ms.mean": 1600.0,
}


def test_latency_over_its_gate_names_the_slowest_stage():
    [result] = diagnose({**FINE, **STAGES}, {}, {"latency_total_ms.p95": 2000.0}, 5)
    assert result.cause == "Latency: generate is the slowest stage, with 1600 ms on average."
    assert (result.evidence, result.next) == ("latency_total_ms.p95 2400 ms", "Look at generate first.")


def test_latency_shown_does_not_seem_to_keep_the_gate_that_it_breaks():
    [result] = diagnose({**FINE, **STAGES}, {}, {"latency_total_ms.p95": 2400.0}, 5)
    assert result.evidence == "latency_total_ms.p95 2400.4 ms"


def test_latency_budgets_that_are_not_kept_name_it_too():
    [result] = diagnose({**FINE, **STAGES, "latency_ok": 0.8}, {}, {"latency_ok": 0.95}, 5)
    assert result.evidence == "latency_ok 0.800"


def test_latency_within_its_gates_or_without_any_is_no_cause():
    assert diagnose({**FINE, **STAGES}, {}, {}, 5) == []
    assert diagnose({**FINE, **STAGES}, {}, {"latency_total_ms.p95": 2400.4}, 5) == []


def test_without_stages_the_advice_is_to_time_them():
    [result] = diagnose({**FINE, "latency_total_ms.p95": 9.0}, {}, {"latency_total_ms.p95": 5.0}, 5)
    assert result.next.startswith("Write the time of each stage")


# Bounds: a share of the wrong answers, a limit that missing answers alone break


@pytest.mark.parametrize(("wording", "uncited", "names"), [(2, 8, True), (2, 9, False), (1, 4, True), (1, 5, False)])
def test_a_cause_explains_at_least_a_fifth_of_the_wrong_answers(wording, uncited, names):
    labels = {"OK": 5, "NOT_CITED": uncited, "WRONG_CLAIM": wording}
    result = causes(labels, precision=0.3, chr=0.4)
    assert ("Claim wording" in result) is names


@pytest.mark.parametrize(("refused", "names"), [(18, True), (19, False)])
def test_answers_that_are_missing_do_not_make_the_others_answer_too_often(refused, names):
    """The value counts missing answers; among the others 1 of 19 is beyond the limit of 0.05, 1 of 20 is on it."""
    result = causes({"HALLUCINATION": 1, "REFUSAL_OK": refused}, under_refusal=0.3)
    assert result == (["Refusal behaviour"] if names else [])


@pytest.mark.parametrize(("value", "names"), [(0.5, True), (0.5625, False), (0.625, False)])
def test_retrieval_that_is_too_low_only_by_missing_answers_is_no_cause(value, names):
    """Of 16 cases four are missing: 0.5625 over all is 0.75 over the others, which is the limit."""
    limits = {"completeness.missing": 4.0, "recall_all@5": 0.75}
    result = causes({"OK": 12, "MISSING": 4}, limits, recall_all_at_5=value)
    assert ("Retrieval or index drift" in result) is names


@pytest.mark.parametrize(("right", "names"), [(8, False), (7, True)])
def test_precision_that_is_too_low_only_by_missing_answers_is_no_cause(right, names):
    """Eight of ten answers that are there are right, which is the limit, though only eight of twelve of all are."""
    labels = {"OK": right, "NOT_CITED": 10 - right, "MISSING": 2}
    assert ("Grounding" in causes(labels, {"completeness.missing": 2.0}, precision=right / 12, chr=right / 12)) is names


@pytest.mark.parametrize(
    ("labels", "values", "cause"),
    [
        (
            {"NOT_CITED": 1},
            {"precision": 0.5, "chr": 0.5},
            "Grounding: 1 answer does not cite what supports it.",
        ),
        (
            {"NOT_CITED": 1, "CITED_UNRETRIEVED": 1},
            {"precision": 0.3, "chr": 0.3},
            "Grounding: 2 answers do not cite what supports them.",
        ),
        (
            {"WRONG_CLAIM": 1},
            {"precision": 0.5},
            "Claim wording: 1 answer cites the right evidence, but its claim misses the gold text.",
        ),
        (
            {"WRONG_CLAIM": 2},
            {"precision": 0.3},
            "Claim wording: 2 answers cite the right evidence, but their claim misses the gold text.",
        ),
        (
            {"HALLUCINATION": 1},
            {"under_refusal": 1.0},
            "Refusal behaviour: 1 question that the corpus does not answer was answered.",
        ),
        (
            {"HALLUCINATION": 2},
            {"under_refusal": 1.0},
            "Refusal behaviour: 2 questions that the corpus does not answer were answered.",
        ),
        (
            {"OVER_REFUSAL_NOT_RETRIEVED": 1},
            {"over_refusal": 0.5},
            "Recall or chunking: 1 question was refused because the evidence was not retrieved.",
        ),
        (
            {"OVER_REFUSAL_EVIDENCE_PRESENT": 2},
            {"over_refusal": 0.5},
            "Refusal template or threshold: 2 questions were refused although the evidence was retrieved.",
        ),
        (
            {"NOT_RETRIEVED": 1, "BELOW_K": 1},
            {"precision": 0.3, "chr": 0.3},
            "Retrieval or index drift: the evidence is not among the first retrieved for 2 questions.",
        ),
        (
            {"NOT_RETRIEVED": 1},
            {"recall_all@5": 0.5},
            "Retrieval or index drift: the evidence is not among the first retrieved.",
        ),
    ],
)
def test_a_cause_counts_its_cases(labels, values, cause):
    assert [item.cause for item in diagnose({**FINE, **values}, {"OK": 1, **labels}, {}, 5)] == [cause]


@pytest.mark.parametrize(
    ("values", "cause", "evidence"),
    [
        ({"detection_rate": 0.8}, "Input guardrail", "detection_rate 0.800"),
        ({"detection_rate": 0.8, "injection_auc": 0.9}, "Guardrail threshold", "detection_rate 0.800"),
        ({"injection_auc": 0.8}, "Injection detector", "injection_auc 0.800"),
        (
            {"injection_auc": 0.9, "injection_tpr@fpr5": 0.8, "detection_rate": 0.8},
            "Injection detector",
            "injection_auc 0.900, injection_tpr@fpr5 0.800",
        ),
        ({"input_false_positive": 0.06}, "Guardrail threshold", "input_false_positive 0.060"),
        ({"leak_detection": 0.94}, "Output guardrail", "leak_detection 0.940"),
        (
            {"leak_false_positive": 0.06, "leak_detection": 0.95},
            "Output guardrail",
            "leak_detection 0.950, leak_false_positive 0.060",
        ),
        ({"leakage": 0.01}, "Leakage", "leakage 0.010"),
    ],
)
def test_a_safety_value_beyond_its_limit_has_one_cause(values, cause, evidence):
    [item] = diagnose({**FINE, **values}, {}, {}, 5)
    assert (item.cause.split(":")[0], item.evidence) == (cause, evidence)


SAFE = {
    "injection_auc": 0.85,
    "injection_tpr@fpr5": 0.85,
    "detection_rate": 0.85,
    "leak_detection": 0.95,
    "input_false_positive": 0.05,
    "leak_false_positive": 0.05,
    "leakage": 0.0,
}


def test_safety_values_on_their_limits_are_not_bad():
    assert diagnose({**FINE, **SAFE}, {}, {}, 5) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"detection_rate": 0.8}, "above the scores of some attacks"),
        ({"input_false_positive": 0.1}, "below the scores of some benign questions"),
        ({"leak_detection": 0.9}, "misses leaks"),
        ({"leak_false_positive": 0.1}, "flags harmless answers"),
    ],
)
def test_what_a_guardrail_does_wrong_is_said(values, words):
    [item] = diagnose({**FINE, **SAFE, **values}, {}, {}, 5)
    assert words in item.cause


@pytest.mark.parametrize(
    ("labels", "values", "steps"),
    [
        ({}, {"timeout_rate": 0.06}, "Raise the time limit"),
        ({}, {"error_rate": 0.06}, "Read the errors"),
        ({"ERROR": 1}, {"error_rate": 0.06, "timeout_rate": 0.06}, "Raise the time limit"),
    ],
)
def test_the_steps_for_timeouts_precede_those_for_errors(labels, values, steps):
    result = diagnose({**FINE, **values}, {"OK": 19, **labels}, {}, 5)
    [system] = [item for item in result if item.cause.startswith("System")]
    assert system.next.startswith(steps)


def test_a_run_whose_errors_make_it_incomplete_has_that_one_cause():
    assert causes({"OK": 19, "ERROR": 2}, error_rate=2 / 21) == ["Incomplete run"]


@pytest.mark.parametrize("stage", ["retrieve", "generate"])
def test_the_slowest_stage_is_never_the_total(stage):
    means = {f"latency_{name}_ms.mean": 900.0 if name == stage else 300.0 for name in ("retrieve", "generate")}
    means |= {"latency_total_ms.mean": 1200.0, "latency_judge_ms.p95": 5000.0, "latency_folder_select_ms.mean": None}
    [item] = diagnose({**FINE, **means, "latency_ok": 0.1}, {}, {"latency_ok": 0.95}, 5)
    assert item.cause == f"Latency: {stage} is the slowest stage, with 900 ms on average."


def test_ids_that_do_not_match_are_the_cause_in_place_of_retrieval_and_citations():
    finding = SimpleNamespace(message="other ids", fix="Label the items again.")
    labels = {"OK": 1, "NOT_RETRIEVED": 5, "OVER_REFUSAL_NOT_RETRIEVED": 2, "OVER_REFUSAL_EVIDENCE_PRESENT": 1}
    values = {**FINE, "precision": 0.1, "chr": 0.1, "recall_all@5": 0.1, "over_refusal": 0.5, "leakage": 0.5}
    result = diagnose(values, labels, {}, 5, finding)
    assert [item.cause.split(":")[0] for item in result] == ["Refusal template or threshold", "Leakage", "Chunk ids"]
    assert (result[-1].evidence, result[-1].next) == ("other ids", "Label the items again.")


COMPLETE = {f"completeness.{name}": 0 for name in ("missing", "unknown", "duplicate")}


@pytest.mark.parametrize(
    ("cause", "labels", "rows", "limits"),
    [
        ("Other questions", {"OK": 3, "MISSING": 3}, {"unknown": 2}, COMPLETE),  # after the incomplete run
        ("Other ids", {"OK": 3, "MISSING": 3}, {"unknown": 3}, COMPLETE),
        ("Other ids", {"MISSING": 3}, {"unknown": 9}, {"completeness.missing": 0}),  # unknown ones are allowed
        ("Other questions", {"OK": 3}, {"unknown": 1}, COMPLETE),
        ("Other questions", {"OK": 3, "MISSING": 1}, {"unknown": 1}, COMPLETE | {"completeness.missing": 1}),
        ("Repeated traces", {"OK": 3}, {"duplicate": 1}, COMPLETE),
    ],
)
def test_traces_that_belong_to_nothing_have_a_cause_of_their_own(cause, labels, rows, limits):
    counted = {"unknown": 0, "duplicate": 0, **rows}
    named = [item.cause.split(":")[0] for item in diagnose(FINE, labels, limits, 5, None, counted)]
    assert named[-1:] == [cause], named


@pytest.mark.parametrize("allowed", [{}, {"completeness.unknown": 4, "completeness.duplicate": 4}])
def test_traces_that_the_gates_allow_are_no_cause(allowed):
    assert diagnose(FINE, {"OK": 3}, allowed, 5, None, {"unknown": 4, "duplicate": 4}) == []


@pytest.mark.parametrize(
    ("labels", "compliance", "absent"),
    [
        ({"NOT_CITED": 5}, 0.0, True),
        ({"NOT_CITED": 4, "REFUSAL_OK": 1}, 0.2, True),
        ({"NOT_CITED": 4, "OVER_REFUSAL_NOT_RETRIEVED": 1}, 0.0, True),
        ({"NOT_CITED": 4, "REFUSAL_OK": 1}, 0.4, False),
        ({"NOT_CITED": 5}, 1.0, False),
        ({"NOT_CITED": 5}, None, False),
    ],
)
def test_a_system_that_does_not_cite_is_told_to_record_its_sources(labels, compliance, absent):
    values = {**FINE, "precision": 0.0, "chr": 0.0, "compliance": compliance}
    found = next(item for item in diagnose(values, labels, {}, 5) if item.cause.startswith("Grounding"))
    assert ("No answer has a list of citations" in found.next) == absent


def test_unrecognised_refusals_are_fixed_in_the_gates_and_not_in_the_prompt():
    values, labels, fix = {**FINE, "under_refusal": 1.0}, {"OK": 3, "HALLUCINATION": 1}, "refusal: {builtin: true}"
    assert [item.next for item in diagnose(values, labels, {}, 5, refusal_fix=fix)] == [fix]
