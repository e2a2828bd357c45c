"""The values name the likely cause."""

import pytest

from rag_eval import diagnosis
from rag_eval.diagnosis import diagnose
from rag_eval.metrics import measure

FINE = {"precision": 0.9, "chr": 0.9, "under_refusal": 0.0, "over_refusal": 0.0, "recall_all@5": 0.9}


def causes(labels=None, limits=None, **values):
    named = {name.replace("_at_", "@"): value for name, value in values.items()}
    return [one.cause.split(":")[0] for one in diagnose({**FINE, **named}, labels or {}, limits or {}, 5)]


def test_good_values_have_no_cause_to_name():
    assert causes() == []


@pytest.mark.parametrize(
    ("cause", "values"),
    [
        ("Grounding", {"precision": 0.5, "chr": 0.5}),
        ("Claim wording", {"precision": 0.5}),
        ("Noisy retrieval", {"chr": 0.5}),
        ("Refusal behaviour", {"under_refusal": 0.06}),
        ("Retrieval or index drift", {"recall_all_at_5": 0.5}),
    ],
)
def test_a_bad_value_names_its_cause(cause, values):
    assert causes(**values) == [cause]


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
    [("below rank 5: rerank", {"BELOW_K": 2, "NOT_RETRIEVED": 1}), ("index holds", {"BELOW_K": 1, "NOT_RETRIEVED": 1})],
)
def test_low_recall_asks_for_reranking_when_most_of_it_stands_below_k(step, labels):
    found = diagnose({**FINE, "recall_all@5": 0.5}, labels, {}, 5)
    assert step in found[0].next


def test_thresholds_of_the_gates_take_the_place_of_the_defaults():
    assert causes(limits={"precision": 0.95}) == ["Claim wording"]
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
    assert diagnose({**FINE, **values}, {}, {}, 5)[0].evidence.startswith(evidence)


def of_perspectives(monkeypatch, **perspectives):
    """Metrics that stand for those of a perspective: their names as they are, under another perspective."""
    known = {name: measure(name) for name in ("map", "hit_precision", "compliance")}
    moved = {
        name: known[name]._replace(metric=known[name].metric._replace(perspective=perspective))
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
    found = diagnose({**FINE, **values}, {}, LIMITS, 5)
    assert [one.cause.split(":")[0] for one in found] == expected


def test_the_evidence_of_several_perspectives_names_what_speaks_for_each(monkeypatch):
    of_perspectives(monkeypatch, hit_precision="groundedness")
    (found,) = diagnose({**FINE, "hit_precision": 0.5996}, {}, {"hit_precision": 0.6}, 5)
    assert found.evidence == "recall_all@5 0.900, hit_precision 0.5996"


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
    [found] = diagnose({**FINE, **STAGES}, {}, {"latency_total_ms.p95": 2000.0}, 5)
    assert found.cause == "Latency: most of the time goes to generate, 1600 ms in the mean."
    assert (found.evidence, found.next) == ("latency_total_ms.p95 2400 ms", "Look at generate first.")


def test_latency_shown_does_not_seem_to_keep_the_gate_that_it_breaks():
    [found] = diagnose({**FINE, **STAGES}, {}, {"latency_total_ms.p95": 2400.0}, 5)
    assert found.evidence == "latency_total_ms.p95 2400.4 ms"


def test_latency_budgets_that_are_not_kept_name_it_too():
    [found] = diagnose({**FINE, **STAGES, "latency_ok": 0.8}, {}, {"latency_ok": 0.95}, 5)
    assert found.evidence == "latency_ok 0.800"


def test_latency_within_its_gates_or_without_any_is_no_cause():
    assert diagnose({**FINE, **STAGES}, {}, {}, 5) == []
    assert diagnose({**FINE, **STAGES}, {}, {"latency_total_ms.p95": 2400.4}, 5) == []


def test_without_stages_the_advice_is_to_time_them():
    [found] = diagnose({**FINE, "latency_total_ms.p95": 9.0}, {}, {"latency_total_ms.p95": 5.0}, 5)
    assert found.next.startswith("Time the stages")
