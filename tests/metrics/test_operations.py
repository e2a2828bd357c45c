"""Operations, cost and index: their figures against numpy and by hand, and gates on them from file to report."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import gold_row, make_case, settings_of, write_rows
from rag_eval import InputError
from rag_eval.metrics.operations import outcome
from seams import FOLDS, METRICS, measure, render, score_files, tally
from strategies import gold_fields, trace_fields

ANSWER = {"retrieved_ids": ["a"], "answer_json": {"claim": "30 days", "citations": ["a"]}}
milliseconds = st.lists(st.integers(0, 10**6) | st.floats(0, 1e9), min_size=1, max_size=60)


def value(name, scores):
    return FOLDS[measure(name).fold].value(tally(scores)).number


# Oracles


@given(milliseconds)
def test_percentiles_of_latency_are_those_of_numpy_by_nearest_rank(times):
    scores = [
        METRICS["latency_total_ms"].score(make_case({}, {**ANSWER, "latency_ms": {"total": time}})) for time in times
    ]
    for name, percent in (("p50", 50), ("p95", 95), ("max", 100)):
        expected = np.percentile(times, percent, method="inverted_cdf")
        assert value(f"latency_total_ms.{name}", scores) == pytest.approx(expected, abs=1e-11)
    assert value("latency_total_ms.mean", scores) == pytest.approx(np.mean(times))
    assert value("latency_total_ms.total", scores) == pytest.approx(np.sum(times))


def test_cost_comes_from_the_trace_or_from_tokens_at_the_model_s_prices():
    prices = settings_of({"prices": {"small-1": {"input": 0.15, "output": 0.60}}})
    usages = [
        {"cost_usd": 0.25},
        {"model": "small-1", "input_tokens": 2_000_000, "output_tokens": 500_000},
        {"model": "other", "input_tokens": 1, "output_tokens": 1},
    ]
    scores = [METRICS["cost_usd"].score(make_case({}, {**ANSWER, "usage": usage}, prices)) for usage in usages]
    assert scores == [0.25, pytest.approx(2 * 0.15 + 0.5 * 0.60), None]
    assert value("cost_usd.total", scores) == pytest.approx(0.85)
    assert value("cost_usd", scores) == pytest.approx(0.425)


@given(gold_fields(), trace_fields)
def test_an_outcome_is_one_of_five_and_failures_are_never_taken_for_nothing_found(gold, trace):
    case = make_case(gold, trace)
    result, flags = outcome(case), trace.get("policy_flags", [])
    assert result in {"blocked", "no_results", "uncertain", "success", "failed"}
    assert (result == "blocked") == ("guardrail_blocked" in flags)
    if case.errored and not {"guardrail_blocked", "no_context"}.intersection(flags):
        assert result == "failed"


@given(gold_fields(), st.one_of(st.none(), trace_fields))
def test_a_pipeline_passes_exactly_where_none_of_its_parts_fails(gold, trace):
    case = make_case(gold, trace)
    names = "outcome_match", "required_flags", "forbidden_flags", "citations_ok", "latency_ok"
    parts = {METRICS[name].score(case) for name in names} - {None}
    assert METRICS["pipeline_pass"].score(case) == (all(parts) if parts else None)


# From file to report


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """The report of traces with the given fields, one a question, under the given gates file."""
    monkeypatch.chdir(tmp_path)

    def scored(gates, rows, about=None, gold=None):
        items = [gold_row(qid=f"Q{n:02}", question=f"What is {n}?", **(gold or {})) for n in range(len(rows))]
        write_rows(tmp_path / "gold.jsonl", items)
        write_rows(tmp_path / "trace.jsonl", [{"qid": f"Q{n:02}", **ANSWER, **row} for n, row in enumerate(rows)])
        (tmp_path / "run.json").unlink(missing_ok=True)
        if about is not None:
            (tmp_path / "run.json").write_text(json.dumps(about), "utf-8")
        (tmp_path / "gates.yml").write_text(f"version: 1\n{gates}", "utf-8")
        return score_files("gold.jsonl", "trace.jsonl", "gates.yml")

    return scored


@pytest.fixture
def against(scored, tmp_path):
    """The report of a run beside the recorded report of an earlier one; ``cut`` changes what was recorded."""

    def against(gates, before, after, cut=lambda recorded: recorded):
        recorded = json.loads(render(scored(f"gates: {gates}\n", **before), "json"))
        (tmp_path / "base.json").write_text(json.dumps(cut(recorded)), "utf-8")
        return scored(f"gates: {gates}\nbaseline: {{report: base.json}}\n", **after)

    return against


def timed(*totals):
    return {"rows": [{"latency_ms": {"total": total}} for total in totals]}


def gate_of(report, name, direction=None):
    return next(gate for gate in report.gates if gate.name == name and direction in (None, gate.direction))


def test_a_ceiling_on_the_95th_percentile_is_held_against_the_nearest_rank(scored):
    slow = timed(*[100] * 18, 900, 5000)  # of twenty, the nineteenth
    stored = scored("gates: {latency_total_ms.p95: {max: 900}}\n", **slow)
    broken = scored("gates: {latency_total_ms.p95: {max: 899.9}}\n", **slow)
    assert (stored.passed, gate_of(stored, "latency_total_ms.p95").value) == (True, 900)
    assert not broken.passed
    assert "latency_total_ms.p95 900 ms is above 899.9" in render(broken, "junit")


def test_confidence_on_a_percentile_asks_for_all_of_its_interval(scored):
    gates = "gates: {latency_total_ms.p50: {max: 150, confidence: 0.95}}\n"
    assert gate_of(scored(gates, **timed(*range(100, 200))), "latency_total_ms.p50").outcome == "inconclusive"
    assert gate_of(scored(gates, **timed(*range(50, 150))), "latency_total_ms.p50").outcome == "passed"
    assert gate_of(scored(gates, **timed(*range(200, 300))), "latency_total_ms.p50").outcome == "failed"


@pytest.mark.parametrize(
    "name", ["latency_total_ms.max", "cost_usd.total", "latency_total_ms.total", "index_empty_docs"]
)
def test_confidence_is_refused_where_nothing_is_estimated(scored, name):
    with pytest.raises(InputError) as caught:
        scored(f"gates: {{{name}: {{max: 1, confidence: 0.95}}}}\n", **timed(1))
    assert "confidence" in str(caught.value.problems[0])


def test_a_slower_tail_fails_its_margin_where_chance_does_not_explain_it(against):
    gates = "{latency_total_ms.p95: {max_rise: 50}}"
    report = against(gates, timed(*range(100, 140)), timed(*range(400, 440)))
    [gate] = report.gates[:1]
    assert (gate.outcome, gate.comparison.regression) == ("failed", 300)
    assert gate.comparison.adjusted <= 0.05
    equal = against(gates, timed(*range(100, 140)), timed(*range(100, 139), 5000))
    assert equal.gates[0].outcome == "passed"


def test_one_slow_question_is_no_proof_of_a_slower_maximum(against):
    report = against("{latency_total_ms.max: {max_rise: 50}}", timed(*[100] * 30), timed(*[100] * 29, 9000))
    assert report.gates[0].outcome == "inconclusive"


def test_the_total_cost_is_gated_as_it_is(scored, against):
    def costs(*numbers):
        return {"rows": [{"usage": {"cost_usd": number}} for number in numbers]}

    assert scored("gates: {cost_usd.total: {max: 0.3}}\n", **costs(0.1, 0.1, 0.1)).passed
    assert not scored("gates: {cost_usd.total: {max: 0.3}}\n", **costs(0.1, 0.1, 0.2)).passed
    report = against("{cost_usd.total: {max_rise: 0.01}}", costs(*[0.001] * 20), costs(*[0.004] * 20))
    assert report.gates[0].comparison.regression == pytest.approx(0.06)
    assert report.gates[0].outcome == "failed"


INDEXED = {"rows": [{}, {}], "about": {"index": {"documents": 100, "documents_without_chunks": 2}}}
EMPTIER = {"rows": [{}, {}], "about": {"index": {"documents": 100, "documents_without_chunks": 9}}}
ALONE = "judged only by the margin"


def test_whole_numbers_of_an_index_may_have_decimals(scored):
    index = {"documents": 100.0, "documents_without_chunks": 2, "chunks_attempted": 10, "chunks_skipped": {"long": 1.0}}
    report = scored("gates: {index_empty_docs: {max: 0.02}}\n", rows=[{}], about={"index": index})
    assert (report.passed, report.metrics["index_skipped_chunks"].value) == (True, 0.1)


def test_an_index_is_gated_by_its_own_figures(scored, against):
    assert scored("gates: {index_empty_docs: {max: 0.02}}\n", **INDEXED).passed
    assert not scored("gates: {index_empty_docs: {max: 0.02}}\n", **EMPTIER).passed
    gates = "{index_empty_docs: {max_rise: 0.05}}"
    regressed, equal = against(gates, INDEXED, EMPTIER), against(gates, INDEXED, INDEXED)
    assert (regressed.gates[0].outcome, regressed.gates[0].comparison.p) == ("failed", None)
    assert regressed.gates[0].comparison.regression == pytest.approx(0.07)
    assert equal.gates[0].outcome == "passed"


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_the_report_says_that_only_values_were_compared(against, form):
    gates = "{index_empty_docs: {max_rise: 0.05}}"
    assert ALONE in render(against(gates, INDEXED, EMPTIER), form)
    untested = "{index_empty_docs: {max_rise: 0.05, test: none}}"
    assert ALONE not in render(against(untested, INDEXED, EMPTIER), form)
    tested = against("{latency_total_ms.p95: {max_rise: 50}}", timed(1, 2), timed(1, 2))
    assert ALONE not in render(tested, form)


def test_a_baseline_without_its_cases_is_compared_by_values(against):
    def aggregates(recorded):
        return {**recorded, "questions": []}

    report = against("{latency_total_ms.p95: {max_rise: 50}}", timed(100, 100), timed(100, 200), aggregates)
    assert (report.gates[0].outcome, report.gates[0].comparison.regression) == ("failed", 100)
    assert ALONE in render(report, "table")


def test_an_index_that_run_json_does_not_describe_has_no_data(scored):
    report = scored("gates: {index_empty_docs: {max: 0.02}}\n", rows=[{}])
    assert report.gates[0].outcome == "no_data"


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ({"documents": 2, "documents_without_chunks": 3}, "3 documents without chunks are more than all 2"),
        ({"chunks_attempted": 2, "chunks_embedded": 3}, "3 chunks embedded are more than the 2 attempted"),
        (
            {"chunks_attempted": 9, "chunks_embedded": 6, "chunks_skipped": {"too_long": 2}},
            "9 chunks attempted and 6 embedded leave 3, and 2 are recorded as skipped",
        ),
    ],
)
def test_figures_of_an_index_that_disagree_are_noted(scored, index, said):
    report = scored("gates: {precision: {min: 0}}\n", rows=[{}], about={"index": index})
    assert [(note.file, note.message) for note in report.notes] == [("run.json", said)]


def test_the_length_of_chunks_is_a_number_or_its_spread_and_is_shown(scored):
    spread = {"min": 12, "max": 512, "mean": 310.5, "p95": 498}
    report = scored("gates: {precision: {min: 0}}\n", rows=[{}], about={"index": {"tokens_per_chunk": spread}})
    assert '"p95": 498' in render(report, "markdown")
    scored("gates: {precision: {min: 0}}\n", rows=[{}], about={"index": {"tokens_per_chunk": 310.5}})
    with pytest.raises(InputError) as caught:
        scored("gates: {precision: {min: 0}}\n", rows=[{}], about={"index": {"tokens_per_chunk": {"p95": -1}}})
    assert "/index/tokens_per_chunk/p95" in str(caught.value.problems[0])


def test_models_without_a_price_are_named_where_somebody_asks_for_the_cost(scored):
    rows = [{"usage": {"model": model, "input_tokens": 5, "output_tokens": 5}} for model in ("large-1", "small-1")]
    priced = "prices: {small-1: {input: 1, output: 1}}\ngates: {precision: {min: 0}}\n"
    assert [note.file for note in scored(priced, rows=rows).notes] == ["model 'large-1'"]
    gated = scored("gates: {cost_usd: {max: 1}}\n", rows=rows)
    assert [note.file for note in gated.notes] == ["model 'large-1'", "model 'small-1'"]
    assert gated.gates[0].outcome == "no_data"
    assert scored("gates: {precision: {min: 0}}\n", rows=rows).notes == ()


def test_other_prices_make_other_costs_that_are_not_compared(against):
    rows = {"rows": [{"usage": {"model": "m", "input_tokens": 5, "output_tokens": 5}}]}

    def repriced(recorded):
        return {**recorded, "contracts": {**recorded["contracts"], "cost_usd": "0" * 64}}

    report = against("{cost_usd: {max_rise: 1}}\nprices: {m: {input: 1, output: 1}}", rows, rows, repriced)
    assert report.gates[0].outcome == "no_data"


@pytest.mark.parametrize(
    ("row", "pointer"),
    [
        ({"latency_ms": {"retrieve": 1e16}}, "/latency_ms/retrieve"),
        ({"usage": {"cost_usd": 1e300}}, "/usage/cost_usd"),
        ({"usage": {"input_tokens": 10**16}}, "/usage/input_tokens"),
    ],
)
def test_numbers_that_cannot_be_meant_are_problems_of_every_command(scored, row, pointer):
    with pytest.raises(InputError) as caught:
        scored("gates: {precision: {min: 0}}\n", rows=[row])
    assert [pointer in str(problem) for problem in caught.value.problems] == [True]


def test_gates_by_document_type_hold_each_kind_of_document_to_its_own(scored):
    parts = '{by: [doc_type], min_n: 1, gates: {"doc_type=*": {error_rate: {max: 0}}}}'
    gates = f"gates: {{precision: {{min: 0}}}}\nslices: {parts}\n"
    report = scored(gates, rows=[{}, {"ok": False}], gold={"relevant_docs": ["a.pdf"]})
    gate = next(item for item in report.gates if item.slice)
    assert (gate.slice, gate.value, gate.outcome) == ("doc_type=pdf", 0.5, "failed")
