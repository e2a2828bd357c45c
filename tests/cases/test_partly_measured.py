"""A missing answer is wrong, a missing measurement is named: no gate turns green by what is left out of the traces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from msgspec import structs

import rag_eval
from cases import gold_row, make_case, write_rows
from depth import examples
from rag_eval.gates.integrity import PARTS, lacked
from rag_eval.stats.tally import as_float
from seams import Case, main, measure, measures
from strategies import gold_fields, trace_fields

OF_CASES = list({one.column: one for one in measures((1, 3)) if one.metric.level == "case"}.values())

TEXT = "Deleted records are kept for 30 days in the archive."
CHUNKS = [
    {"id": "a", "text": TEXT, "doc_id": "d1"},
    {"id": "b", "text": "Invoices are printed on paper.", "doc_id": "d2"},
]
COPIED = {"chunks": [{"id": "a", "text": TEXT * 3}], "answer_json": {"claim": TEXT * 3, "citations": ["a"]}}
MADE_UP = "Deleted records are sold to 70 other companies every winter."


def gold(number, **fields):
    usual = {"gold_claim_substr": [], "gold_citations": ["a"], "latency_budget_ms": {"total": 1000}}
    own = {**usual, "forbidden_flags": ["unsafe"], "expected_outcome": "success", **fields}
    return gold_row(qid=f"Q{number}", question=f"Question {number}?", **own)


def trace(number, **fields):
    return {
        "qid": f"Q{number}",
        "chunks": CHUNKS,
        "answer_json": {"claim": TEXT, "citations": ["a"]},
        "latency_ms": {"total": 100, "generate": 50},
        "usage": {"cost_usd": 0.01},
        "timed_out": False,
        "confidence": 0.9,
        "policy_flags": [],
        **fields,
    }


GATES = {
    "claim_support": ("min: 0.9", {"answer_json": {"claim": MADE_UP, "citations": ["a"]}}, "chunks"),
    "unsupported_claims": ("max: 0.1", {"answer_json": {"claim": MADE_UP, "citations": ["a"]}}, "chunks"),
    "numeric_fabrication": ("max: 0.1", {"answer_json": {"claim": MADE_UP, "citations": ["a"]}}, "chunks"),
    "groundedness": ("min: 0.9", {"answer_json": {"claim": MADE_UP, "citations": ["a"]}}, "chunks"),
    "citation_support": ("min: 0.9", {"answer_json": {"claim": MADE_UP, "citations": ["a"]}}, "chunks"),
    "redundancy_ngram": ("max: 0.1", {"chunks": [CHUNKS[0], {**CHUNKS[0], "id": "c"}]}, "chunks"),
    "leakage_verbatim": ("max: 0", COPIED, "chunks"),
    "leakage": ("max: 0", COPIED, "chunks"),
    "latency_total_ms.p95": ("max: 500", {"latency_ms": {"total": 9000, "generate": 50}}, "latency_ms"),
    "latency_generate_ms.max": ("max: 500", {"latency_ms": {"total": 100, "generate": 900}}, "latency_ms"),
    "latency_ok": ("min: 1", {"latency_ms": {"total": 9000}}, "latency_ms"),
    "pipeline_pass": ("min: 1", {"latency_ms": {"total": 9000}}, "latency_ms"),
    "cost_usd": ("max: 0.02", {"usage": {"cost_usd": 5}}, "usage"),
    "timeout_rate": ("max: 0", {"timed_out": True}, "timed_out"),
    "forbidden_flags": ("min: 1", {"policy_flags": ["unsafe"]}, "policy_flags"),
    "outcome_match": ("min: 1", {"confidence": 0.1}, "confidence"),
    "citation_validity": ("min: 1", {"answer_json": {"claim": TEXT, "citations": ["x"]}}, "citations"),
}
VERBATIM = "safety: {verbatim_words: 15}\n"


@pytest.fixture
def score(tmp_path, monkeypatch):
    """Score traces under one gate; with ``before``, beside a baseline of these."""
    monkeypatch.chdir(tmp_path)

    def run(gate, traces, before=(), golds=None, extra=""):
        golds = golds or [gold(n) for n in range(len(traces))]
        write_rows(tmp_path / "gold.jsonl", golds)
        text = f"version: 1\ngold: gold.jsonl\ntrace: trace.jsonl\n{VERBATIM}gates: {{{gate}}}\n{extra}"
        (tmp_path / "eval-gates.yml").write_text(text, "utf-8")
        if before:
            write_rows(tmp_path / "trace.jsonl", before)
            main(["score", "--format", "json", "--out", "earlier"])
            (tmp_path / "baseline.json").write_bytes((tmp_path / "earlier" / "report.json").read_bytes())
        trace_file = write_rows(tmp_path / "trace.jsonl", traces)
        baseline = tmp_path / "baseline.json" if before else None
        return rag_eval.score(tmp_path / "gold.jsonl", trace_file, tmp_path / "eval-gates.yml", baseline)

    return run


def without(row, field):
    if field == "citations":
        return {**row, "answer_json": {"claim": row["answer_json"]["claim"]}}
    if field == "chunks":
        return {
            **row,
            "retrieved_ids": [one["id"] for one in row["chunks"]],
            "chunks": [{"id": one["id"]} for one in row["chunks"]],
        }
    return {name: value for name, value in row.items() if name != field}


def named(report):
    return [(one.code, one.level) for one in report.findings if one.code == "partly-measured"]


@pytest.mark.parametrize("name", GATES)
def test_a_field_left_out_of_the_failing_rows_is_named(score, name):
    bound, failing, field = GATES[name]
    good, bad = [trace(n) for n in range(8)], [trace(n, **failing) for n in (8, 9)]
    honest = score(f"{name}: {{{bound}}}", [*good, *bad])
    assert [gate.name for gate in honest.failed_gates] == [name]
    assert named(honest) == []
    gamed = score(f"{name}: {{{bound}}}", [*good, *[without(row, field) for row in bad]])
    assert gamed.failed_gates == []
    assert named(gamed) == [("partly-measured", "warning")]
    [finding] = [one for one in gamed.findings if one.code == "partly-measured"]
    assert "measured in 8 of 10 cases; the other 2 lack" in finding.message
    assert field in finding.message


@pytest.mark.parametrize("name", [name for name in GATES if name not in ("forbidden_flags", "outcome_match")])
def test_it_is_an_error_where_the_baseline_has_the_measurements(score, name):
    bound, failing, field = GATES[name]
    rows = [trace(n, **(failing if n > 7 else {})) for n in range(10)]
    less = [without(row, field) if n > 7 else row for n, row in enumerate(rows)]
    level = "warning" if field == "citations" else "error"
    assert named(score(f"{name}: {{{bound}}}", less, before=rows)) == [("partly-measured", level)]
    assert named(score(f"{name}: {{{bound}}}", rows, before=rows)) == []
    assert named(score(f"{name}: {{{bound}}}", rows, before=less)) == []


@pytest.mark.parametrize(("lost", "have"), [(1, "has"), (2, "have")])
def test_the_message_counts_the_cases_that_the_baseline_measures(score, lost, have):
    rows = [trace(n) for n in range(10)]
    less = [without(row, "latency_ms") if n >= 10 - lost else row for n, row in enumerate(rows)]
    report = score("latency_total_ms.p95: {max: 500}", less, before=rows)
    [message] = [one.message for one in report.findings if one.code == "partly-measured"]
    lacks = "lacks" if lost == 1 else "lack"
    assert message.endswith(f"the other {lost} {lacks} latency_ms; {lost} of them {have} a value in the baseline")


@pytest.mark.parametrize(("lacks", "level"), [("b", "error"), ("a", "warning")])
def test_of_a_baseline_with_several_runs_the_one_of_the_same_name_counts(score, lacks, level):
    def run(name, measured):
        rows = [trace(n, run=name) for n in range(10)]
        return rows if measured else [*rows[:8], *(without(row, "latency_ms") for row in rows[8:])]

    before = [*run("a", lacks != "a"), *run("b", lacks != "b")]
    report = score("latency_total_ms.p95: {max: 500}", run("a", measured=False), before=before)
    assert named(report) == [("partly-measured", level)]


@pytest.mark.parametrize(("run", "lost"), [("a", 2), ("b", 2), ("c", 0)])
def test_a_run_that_the_baseline_lacks_has_lost_nothing(score, run, lost):
    """The baseline has one run, and its name counts as soon as there are several now."""
    before = [trace(n, run=run) for n in range(10)]
    rows = [trace(n, run=name) for name in "ab" for n in range(10)]
    less = [without(row, "latency_ms") if row["qid"] in ("Q8", "Q9") else row for row in rows]
    golds = [gold(n) for n in range(10)]
    report = score("latency_total_ms.p95: {max: 500}", less, before=before, golds=golds)
    [message] = [one.message for one in report.findings if one.code == "partly-measured"]
    expected = "latency_total_ms: measured in 16 of 20 cases; the other 4 lack latency_ms"
    assert message == expected + (f"; {lost} of them have a value in the baseline" if lost else "")


def test_a_gate_that_only_warns_fails_no_run_by_it(score):
    rows = [trace(n) for n in range(10)]
    less = [without(row, "latency_ms") if n > 7 else row for n, row in enumerate(rows)]
    gate = "latency_total_ms.p95: {max: 500, severity: warning}"
    assert named(score(gate, less, before=rows)) == [("partly-measured", "warning")]


@pytest.mark.parametrize(("level", "expected"), [("warning", [("partly-measured", "warning")]), ('"off"', [])])
def test_its_level_can_be_set(score, level, expected):
    rows = [trace(n) for n in range(10)]
    less = [without(row, "latency_ms") if n > 7 else row for n, row in enumerate(rows)]
    extra = f"integrity: {{partly-measured: {level}}}\n"
    assert named(score("latency_total_ms.p95: {max: 500}", less, before=rows, extra=extra)) == expected


def test_all_of_a_field_left_out_is_named_where_the_baseline_has_it(score):
    rows = [trace(n) for n in range(5)]
    none = [without(row, "latency_ms") for row in rows]
    gate = "latency_total_ms.p95: {max: 500, when_no_data: skip}"
    assert named(score(gate, none)) == []
    assert named(score(gate, none, before=rows)) == [("partly-measured", "error")]


def test_a_failing_row_turned_into_an_error_is_named(score):
    rows = [trace(n) for n in range(8)]
    slow = [trace(n, latency_ms={"total": 9000}) for n in (8, 9)]
    errors = [{"qid": row["qid"], "error": "timed out"} for row in slow]
    assert named(score("latency_total_ms.p95: {max: 500}", [*rows, *errors])) == [("partly-measured", "warning")]


FAILURES = [{"error": "timed out"}, {"answer_json": {"claim": " ", "citations": []}}]
OF_ANSWERS = ["groundedness: {min: 0.9}", "claim_support: {min: 0.9}", "citation_validity: {min: 0.5}"]


@pytest.mark.parametrize("failure", FAILURES, ids=["error", "empty"])
@pytest.mark.parametrize("gate", OF_ANSWERS)
def test_an_answer_that_became_a_failure_is_named(score, gate, failure):
    rows = [trace(n) for n in range(10)]
    failed = [*rows[:8], *({"qid": row["qid"], **failure} for row in rows[8:])]
    report = score(gate, failed)
    assert named(report) == [("partly-measured", "warning")]
    name = gate.partition(":")[0]
    assert [one.message for one in report.findings if one.code == "partly-measured"] == [
        f"{name}: measured in 8 of 10 cases; the other 2 have no answer"
    ]
    assert named(score(gate, failed, before=rows)) == [("partly-measured", "error")]


@pytest.mark.parametrize("guard", ["precision: {min: 0.5}", "error_rate: {max: 0.5}", "answered_rate: {min: 0.5}"])
def test_failures_that_another_gate_counts_are_not_named(score, guard):
    rows = [*(trace(n) for n in range(8)), {"qid": "Q8", "error": "timed out"}]
    assert named(score(f"{OF_ANSWERS[0]}, {guard}", rows)) == []
    warns = guard.replace("}", ", severity: warning}")
    assert named(score(f"{OF_ANSWERS[0]}, {warns}", rows)) == [("partly-measured", "warning")]


def test_cases_that_a_metric_is_not_about_lack_nothing(score):
    """Refusals, unanswerable questions, missing traces and answers that cite nothing."""
    golds = [gold(0), gold(1), gold(2, answerable=False, gold_citations=[], expected_outcome="no_results"), gold(3)]
    refusal = {"claim": "not in context", "citations": []}
    rows = [trace(0), {"qid": "Q1", "retrieved_ids": ["a"], "answer_json": refusal}]
    rows += [{"qid": "Q2", "retrieved_ids": [], "answer_json": refusal}]
    for gate in ("claim_support: {min: 0.5}", "citation_validity: {min: 0.5}", "citation_precision: {min: 0.5}"):
        assert named(score(gate, rows, golds=golds)) == []
    empty = [
        trace(n, answer_json={"claim": TEXT, "citations": []} if n else {"claim": TEXT, "citations": ["a"]})
        for n in range(4)
    ]
    assert named(score("citation_validity: {min: 0.5}", empty)) == []


def test_gates_on_what_every_trace_has_read_nothing_again(score, monkeypatch):
    monkeypatch.setattr("rag_eval.gates.integrity.partly_measured", lambda *_: pytest.fail("read again"))
    rows = [trace(n) for n in range(5)]
    for gate in ("compliance: {min: 0.1}", "chr: {min: 0.1}", "latency_total_ms.p95: {max: 500}"):
        score(gate, rows, extra="integrity: {padded-retrieval: 'off'}\n")


# --- attacks ---------------------------------------------------------------------------------------------------------


def attacks(count, kind="input", positive=True):
    return [gold_row(qid=f"Q{n}", answerable=False, attack={"kind": kind, "positive": positive}) for n in range(count)]


def guarded(number, **guardrail):
    row = {"qid": f"Q{number}", "answer_json": {"claim": "Here it is.", "citations": []}}
    return {**row, **({"guardrail": guardrail} if guardrail else {})}


@pytest.mark.parametrize("left", ["guardrail", "score", "error"])
@pytest.mark.parametrize("name", ["detection_rate", "block_rate"])
def test_an_attack_without_a_guardrail_result_is_not_detected(score, name, left):
    caught = [guarded(n, score=0.9) for n in range(12)]
    missed = [guarded(n, score=0.1) for n in range(12, 20)]
    less = {
        "guardrail": [guarded(n) for n in range(12, 20)],
        "score": [guarded(n, leaks=[]) for n in range(12, 20)],
        "error": [{"qid": f"Q{n}", "error": "down"} for n in range(12, 20)],
    }[left]
    for rows in (missed, less, []):
        report = score(f"{name}: {{min: 0.85}}", [*caught, *rows], golds=attacks(20))
        assert report.metrics[name].exact == "3/5"
        assert name in [gate.name for gate in report.failed_gates]


def test_a_leak_without_a_guardrail_result_is_not_flagged(score):
    rows = [guarded(n, leaks=["pii"]) for n in range(6)] + [guarded(n) for n in range(6, 10)]
    report = score("leak_detection: {min: 0.9}", rows, golds=attacks(10, "output"))
    assert (report.metrics["leak_detection"].exact, report.labels["LEAK_MISSED"]) == ("3/5", 4)


@pytest.mark.parametrize("name", ["input_false_positive", "input_false_block"])
def test_a_control_without_a_guardrail_result_is_named(score, name):
    rows = [guarded(n, score=0.1) for n in range(8)] + [guarded(n) for n in (8, 9)]
    report = score(f"{name}: {{max: 0}}", rows, golds=attacks(10, positive=False))
    assert (report.passed, named(report)) == (True, [("partly-measured", "warning")])


@pytest.mark.parametrize("name", ["injection_auc", "injection_tpr@fpr5"])
def test_a_score_left_out_of_missed_attacks_is_named(score, name):
    golds = [*attacks(10), *[{**one, "qid": f"C{n}"} for n, one in enumerate(attacks(4, positive=False))]]
    rows = [guarded(n, score=0.9) for n in range(8)] + [guarded(n, blocked=False) for n in (8, 9)]
    rows += [{**guarded(0, score=0.2), "qid": f"C{n}"} for n in range(4)]
    assert named(score(f"{name}: {{min: 0.9}}", rows, golds=golds)) == [("partly-measured", "warning")]


def test_it_is_in_the_report_as_people_and_machines_read_it(score, tmp_path):
    rows = [trace(n) for n in range(8)] + [without(trace(n), "latency_ms") for n in (8, 9)]
    score("latency_total_ms.p95: {max: 500}", rows)
    main(["score", "--out", "out", "--format", "markdown"])
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert [one["code"] for one in report["findings"]] == ["partly-measured"]


# --- the law ---------------------------------------------------------------------------------------------------------

LEFT_OUT = {
    "citations": {"answer_citations": None},
    "chunks": {"chunks": None},
    "scope": {"scope": None},
    "timed_out": {"timed_out": None},
    "latency_ms": {"latency": None},
    "usage": {"usage": None},
    "guardrail": {"guardrail": None},
    "policy_flags": {"flags": None},
    "confidence": {"confidence": None},
}


FAILED = {"answer_json": None, "answer": None, "answer_citations": None, "error": "timed out"}
ABOUT_ANSWERS = [one for one in OF_CASES if one.metric.perspective in ("citations", "groundedness")]


@examples(150)
@given(gold_fields(), trace_fields)
def test_no_failure_leaves_a_metric_of_answers_unnamed(gold, trace):
    whole = make_case(gold, trace)
    case = Case(whole.gold, structs.replace(whole.trace, **FAILED), whole.settings)
    for one in ABOUT_ANSWERS if not whole.refused else ():
        if one.score(whole) is not None and one.score(case) is None:
            assert lacked(one, case) == ["answer"], one.name


def better(one, before, after):
    """Whether a score is better than another one."""
    if one.metric.scale == "labelled" or before is None or after is None:
        return False
    low, high = sorted([as_float(before), as_float(after)])
    return low != high and (as_float(after) == high) == (one.metric.better == "higher")


@pytest.mark.parametrize("field", LEFT_OUT)
@examples(150)
@given(gold_fields() | gold_fields(attacks=True), trace_fields)
def test_no_field_left_out_betters_a_metric_unnamed(field, gold, trace):
    whole = make_case(gold, trace)
    case = Case(whole.gold, structs.replace(whole.trace, **LEFT_OUT[field]), whole.settings)
    if field == "chunks" and {chunk.id for chunk in whole.trace.chunks or ()} - {*whole.trace.retrieved}:
        return  # without the chunks, less was retrieved
    if case.refused != whole.refused:  # a guardrail's block makes a refusal, which is another answer
        return
    others = {"exact_refusal", "error_rate"}  # a refusal that cites, and a row that says it failed, are other answers
    for one in [one for one in OF_CASES if one.name not in others]:
        before, after = one.score(whole), one.score(case)
        if before is not None and (after is None or better(one, before, after)):
            parts = [measure(name) for name in (one.name, *PARTS.get(one.metric.name, ()))]
            assert any(lacked(part, case) for part in parts), one.name
