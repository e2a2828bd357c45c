"""The probe: an A/A run, growing damage, and what each gate catches of it."""

from __future__ import annotations

import json
import re
import shutil
from fractions import Fraction
from math import ceil

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import GOOD_ANSWER, GOOD_REFUSAL, ROOT, gold_row, write_rows
from depth import examples
from rag_eval.analysis import Context
from rag_eval.analysis.judging import build_report
from rag_eval.analysis.sensitivity import (
    KINDS,
    RATES,
    Catch,
    Move,
    Probe,
    Probed,
    Rate,
    Setup,
    TraceSample,
    in_order,
    probe,
    reports_by_rate,
    rerun_unperturbed,
    unequal,
)
from rag_eval.rendering.comparison import render_probe
from seams import Gate, Gold, Policy, Slices, Statistics, measures, metric_scorer
from strategies import gold_fields, trace_fields

MARGINS = tuple(
    Gate(name, "max_drop" if name not in ("under_refusal", "over_refusal") else "max_rise", "0")
    for name in (
        "precision",
        "chr",
        "under_refusal",
        "over_refusal",
        "mrr",
        "recall_all@2",
        "ndcg@2",
        "citation_recall",
    )
)


def made(rows, policy):
    """Everything that a probe takes, of (gold fields, trace fields) in their order."""
    golds = {f"Q{n}": Gold.from_row(gold_row(qid=f"Q{n}", **gold), n) for n, (gold, _) in enumerate(rows, 1)}
    samples = [
        TraceSample.of({"qid": f"Q{n}", **trace}, golds[f"Q{n}"], n, policy.settings)
        for n, (_, trace) in enumerate(rows, 1)
    ]
    wanted = measures((1, 2), [gate.name for gate in policy.gates])
    scorer = metric_scorer(golds, wanted, policy.settings)
    scorer.add_traces([sample.case.trace for sample in samples])
    context = Context(fields=policy.fields)
    setup, card = Setup(golds, policy, wanted, context), scorer.close()
    return setup, in_order(samples), card, build_report(card, golds, policy, context)


def good_rows(answers, refusals=0):
    """So many right answers, each in its own words, and so many right refusals."""
    rows = []
    for number in range(answers):
        gold = {"gold_claim_substr": [f"{number:04} days"], "gold_citations": [f"c{number}"]}
        answer = {"claim": f"Kept {number:04} days.", "citations": [f"c{number}"]}
        rows.append((gold, {"retrieved_ids": [f"c{number}", "x", "y"], "answer_json": answer}))
    return rows + [({"answerable": False}, GOOD_REFUSAL)] * refusals


def probed(rows, *gates, rates=RATES, **policy):
    setup, samples, _, ours = made(rows, Policy(k=2, gates=gates, **policy))
    return probe(setup, samples, ours, rates)


def kind_of(result, name):
    return next(kind for kind in result.kinds if kind.kind == name)


cases = st.lists(st.tuples(gold_fields(), trace_fields), min_size=1, max_size=8)


@examples(50)
@given(cases)
def test_no_regression_gate_fails_a_run_that_is_its_own_baseline(rows):
    policy = Policy(k=2, gates=MARGINS, slices=Slices(("answerable",), 1))
    setup, samples, _, ours = made(rows, policy)
    report = rerun_unperturbed(setup, samples, ours)
    assert unequal(report) == ()
    assert {gate.comparison.regression for gate in report.gates if gate.comparison} <= {0}
    assert report.flips == ()


@examples(20)
@given(cases)
def test_no_dose_changes_nothing(rows):
    setup, samples, card, ours = made(rows, Policy(k=2))
    for kind in KINDS:
        rows_made = [(sample, kind.perturb(sample)) for sample in samples]
        traces = [item.again(row) for item, row in rows_made if row is not None]
        [(at, report)] = reports_by_rate(setup, samples, traces, card.completeness, ["0"])
        assert at == Rate("0", 0)
        assert report == ours


@examples(40)
@given(cases, st.sampled_from(KINDS))
def test_each_dose_is_scored_as_from_scratch(rows, kind):
    setup, samples, card, _ = made(rows, Policy(k=2))
    rows_made = [(sample, kind.perturb(sample)) for sample in samples]
    damaged = [(item, item.again(row)) for item, row in rows_made if row is not None]
    for at, report in reports_by_rate(setup, samples, [trace for _, trace in damaged], card.completeness, RATES):
        assert at.cases == ceil(Fraction(at.percent) * len(damaged) / 100)
        regressed = {item.case.gold.qid: trace for item, trace in damaged[: at.cases]}
        scorer = metric_scorer(setup.golds, setup.measures, setup.policy.settings)
        scorer.add_traces([regressed.get(sample.case.gold.qid, sample.case.trace) for sample in samples])
        expected = build_report(scorer.close(), setup.golds, setup.policy, setup.context)
        assert report.metrics == expected.metrics
        assert report.questions == expected.questions


def test_a_floor_catches_the_first_dose_that_takes_the_value_below_it():
    # 20 right answers: 4 wrong ones leave 0.80, which holds; 5 do not.
    floor = Gate("precision", "min", "0.80")
    result = kind_of(probed(good_rows(20), floor, rates=["10", "20", "21", "100"]), "answer-blanked")
    assert result.cases == 20
    assert result.stops == Rate("21", 5)
    assert result.catches == (Catch("precision ≥ 0.80", Rate("21", 5), Rate("21", 5)),)


def test_a_regression_gate_catches_the_first_dose_that_chance_does_not_explain():
    # Exact McNemar, one-sided: of n worse and none better p = 0.5 ** n, at most 0.05 from 5 on.
    gate = Gate("precision", "max_drop", "0.01")
    result = kind_of(probed(good_rows(100), gate, rates=["1", "2", "3", "4", "5", "100"]), "answer-blanked")
    [catch] = result.catches
    assert catch == Catch("precision max_drop 0.01", Rate("2", 2), Rate("5", 5))  # inconclusive from 2 on: it warns


def test_without_correction_for_chance_the_margin_alone_decides():
    gate = Gate("precision", "max_drop", "0.01")
    probe = probed(good_rows(100), gate, rates=["1", "2", "100"], statistics=Statistics(test="none"))
    assert kind_of(probe, "answer-blanked").stops == Rate("2", 2)


def test_a_warning_is_seen_and_stops_nothing():
    result = kind_of(probed(good_rows(10), Gate("precision", "min", "0.95", "warning")), "answer-blanked")
    assert result.catches == (Catch("precision ≥ 0.95", Rate("1", 1), None),)
    assert result.stops is None
    assert result.passes


def test_what_no_gate_catches_is_named_with_the_metrics_that_moved():
    probe = probed(good_rows(10, 10), Gate("under_refusal", "max", "0"))
    dropped = kind_of(probe, "chunk-dropped")
    assert dropped.passes
    assert dropped.catches == ()
    assert Move("mrr", 1.0, 0.0, True) in dropped.unguarded
    assert kind_of(probe, "refusal-answered").stops == Rate("1", 1)
    assert "under_refusal" not in {move.metric for kind in probe.kinds for move in kind.unguarded}


def test_findings_catch_as_gates_do():
    result = kind_of(probed(good_rows(10), Gate("mrr", "min", "0.5")), "answer-refused")
    assert result.stops == Rate("100", 10)
    assert [catch.by for catch in result.catches] == ["refuses-everything"]


def test_latency_is_damaged_where_it_is_timed():
    rows = [({"gold_citations": ["a"]}, GOOD_ANSWER)] * 3
    timed = kind_of(probed(rows, Gate("mrr", "min", "0")), "latency-added")
    assert (timed.cases, timed.read, timed.passes) == (3, True, True)
    assert Move("latency_total_ms.p95", 1000, 11_000, True) in timed.unguarded
    untimed = kind_of(probed(good_rows(3), Gate("mrr", "min", "0")), "latency-added")
    assert (untimed.cases, untimed.read, untimed.passes) == (0, False, False)


def test_a_gate_on_latency_stops_its_damage():
    rows = [({"gold_citations": ["a"]}, GOOD_ANSWER)] * 20
    result = kind_of(probed(rows, Gate("latency_total_ms.p95", "max", "2000")), "latency-added")
    assert result.stops == Rate("10", 2)  # one of twenty lies above the 95th percentile


def test_gates_that_catch_nothing_are_idle():
    probe = probed(good_rows(10), Gate("mrr", "min", "0.5"), Gate("answered_rate", "min", "0"))
    assert probe.idle == ["answered_rate ≥ 0"]


def test_a_run_that_fails_as_it_is_is_not_probed():
    probe = probed(good_rows(3), Gate("under_refusal", "max", "0.05"))  # nothing is unanswerable: no data
    assert (probe.exit_code, probe.kinds, probe.failing) == (1, (), ("under_refusal ≤ 0.05",))


def test_a_gate_that_fails_a_run_beside_itself_is_named():
    setup, samples, _, ours = made(good_rows(10), Policy(k=2, gates=MARGINS[:1]))
    rerun = rerun_unperturbed(setup, samples, ours)
    broken = rerun._replace(gates=tuple(gate._replace(outcome="failed") for gate in rerun.gates))
    assert unequal(broken) == ("precision max_drop 0",)
    probe = Probe(10, "", RATES, (), unequal=unequal(broken))
    assert probe.exit_code == 1
    assert "The A/A run failed" in render_probe(probe, "table")


# The command


EXAMPLE = ROOT / "examples" / "quickstart"


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in ("gold.jsonl", "good.jsonl", "bad.jsonl", "eval-gates.yml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rag(command):
    return command


def example(rag, *more, trace="good.jsonl"):
    return rag("probe", "--gold", "gold.jsonl", "--trace", trace, *more)


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_every_form_names_every_kind_and_the_file_is_left_as_it_was(rag, project, form):
    before = (project / "good.jsonl").read_bytes()
    code, out, err = example(rag, "--format", form)
    assert (code, err) == (0, "")
    assert [kind.name for kind in KINDS if kind.name not in out] == []
    assert (project / "good.jsonl").read_bytes() == before
    assert sorted(path.name for path in project.iterdir()) == [
        "bad.jsonl",
        "eval-gates.yml",
        "gold.jsonl",
        "good.jsonl",
    ]


def test_two_probes_print_the_same(rag, project):
    assert example(rag, "--format", "json") == example(rag, "--format", "json")


def test_a_failing_run_ends_with_1_and_says_that_probing_it_shows_nothing(rag, project):
    code, out, _ = example(rag, "--format", "table", trace="bad.jsonl")
    assert code == 1
    title, underline, _, reason, *_ = out.splitlines()
    assert (title, underline) == ("A failing run cannot be probed", "=" * len(title))
    assert reason.startswith("The unchanged run does not pass: precision ≥ 0.80")


def test_unreadable_traces_end_with_2(rag, project):
    (project / "good.jsonl").write_text("{")
    code, out, err = example(rag)
    assert (code, out) == (2, "")
    assert err.startswith("good.jsonl:1: ")


def test_inline_gates_are_refused(rag, project):
    assert example(rag, "--gates", "precision=0.8,chr=0.75,under=0.05,over=0.1")[0] == 2


def test_a_recorded_baseline_is_what_regression_gates_compare_with(rag, project):
    (project / "eval-gates.yml").write_text("version: 1\nk: 3\ngates:\n  precision: {max_drop: 0.3}\n")
    rag("score", "--gold", "gold.jsonl", "--trace", "bad.jsonl", "--out", "base", "--quiet")
    ours = json.loads(example(rag, "--format", "json")[1])
    old = json.loads(example(rag, "--format", "json", "--baseline", "base/report.json")[1])
    assert (ours["against"], old["against"]) == ("", "base/report.json")
    stops = [
        next(kind["stops"] for kind in value["kinds"] if kind["kind"] == "answer-blanked") for value in (ours, old)
    ]
    assert stops == [{"percent": "50", "cases": 5}, {"percent": "100", "cases": 10}]  # the older run was worse


def test_of_repeated_traces_the_last_counts_and_completeness_stays(rag, project):
    rows = [json.loads(line) for line in (project / "good.jsonl").read_text().splitlines()]
    write_rows(project / "twice.jsonl", [*rows, *rows])
    (project / "eval-gates.yml").write_text("version: 1\ncompleteness: {duplicate: 14}\n")
    once, twice = (
        json.loads(example(rag, "--format", "json", trace=name)[1])["kinds"] for name in ("good.jsonl", "twice.jsonl")
    )
    assert once == twice


HOSTILE = "category=<img src=x>`|`\n::error::x @team ##[error] [a](http://x) \u202e\x1b[31m" + "x" * 200


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_hostile_names_stay_words(form):
    kind = Probed(
        "k", "t", 3, True, Rate("1", 1), (Catch(HOSTILE, Rate("1", 1), Rate("1", 1)),), (Move("mrr", 1, 0, True),)
    )
    out = render_probe(Probe(3, HOSTILE, ("1",), (HOSTILE, HOSTILE + "2"), (), (), (kind,)), form)
    refused = render_probe(Probe(3, HOSTILE, ("1",), (), (HOSTILE,), (HOSTILE,)), form)
    for text in (out, refused):
        assert "##[" not in text
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
        if form == "json":
            json.loads(text)
        else:
            assert not {"\u202e", "\x1b"} & set(text)
        if form == "markdown":
            html = cmarkgfm.github_flavored_markdown_to_html(text)
            assert not any(tag in html for tag in ("<img", "<a "))
            assert "@team" not in html


def test_the_error_rates_of_regression_gates_are_those_of_so_many_questions(rag, tmp_path):
    folder = ROOT / "examples" / "quickstart"
    gates = tmp_path / "eval-gates.yml"
    gates.write_text(
        f"version: 1\ngold: {folder / 'gold.jsonl'}\ntrace: {folder / 'good.jsonl'}\ngates:\n"
        "  precision: {max_drop: 0.02}\n  mrr: {max_drop: 0.02, test: non_inferiority}\n"
        "  latency_total_ms.p95: {max_rise: 100}\n"
    )
    code, out, _ = rag("probe", "--gates", gates, "--format", "json")
    first, second = json.loads(out)["errors"]
    assert code == 1  # ten questions without a change do not rule out a drop
    assert (first["gate"], first["test"], first["n"]) == ("precision max_drop 0.02", "regression", 10)
    assert (second["gate"], second["unchanged"], second["missed"]) == ("mrr max_drop 0.02", 1.0, 0.0)
    assert first["unchanged"] < 0.05 < 0.9 < first["missed"]
    shown = rag("probe", "--gates", gates, "--format", "table")[1]
    assert re.search(r"fails at 3/4 +.*\n +.*the margin", shown)


def test_of_several_values_of_a_metric_the_one_that_moved_most_is_named():
    moves = (Move("recall@1", 0.9, 0.8, True), Move("recall@5", 0.9, 0.5, True), Move("mrr", 0.9, None, True))
    kind = Probed("chunk-dropped", "no relevant chunk is retrieved", 4, True, None, (), moves)
    text = " ".join(render_probe(Probe(4, "", RATES, (), kinds=(kind,)), "table").split())
    assert "chunk-dropped: recall@5 0.900 → 0.500, mrr 0.900 → – and 1 more" in text


def test_of_many_gates_that_catch_nothing_the_first_twenty_are_named():
    gates = tuple(f"precision min 0.{number}" for number in range(21))
    text = " ".join(render_probe(Probe(4, "", RATES, gates), "table").split())
    assert (
        "Gates that caught no perturbation ================================= precision min 0.0, precision min 0.1, "
        in text
    )
    assert "precision min 0.19 and 1 more." in text
