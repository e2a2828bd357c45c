"""Scoring replays recorded verdicts: values, gates, stale and missing verdicts, calibration, contradicting rows."""

import json

import pytest

from cases import write_rows
from rag_eval.contract import Judge, digest_of, parse_reply
from verdicts import JUDGE, gold_of, trace_of, verdict_row, verdict_rows

GATE = "gates: {precision: {min: 0.8}, judge_groundedness: {min: 4}, judge_correctness: {min: 4, severity: warning}}\n"
NAMED = f"judge:\n  model: {JUDGE['model']}\n  prompt: {JUDGE['prompt']}\n  rubric: {JUDGE['rubric']}\n"
CALIBRATED = f"""{NAMED}  floor: {{kappa: 0.5}}
  calibration:
    judge: {digest_of(Judge(**JUDGE)._asdict())}
    scores: {{groundedness: {{n: 100, low: {{kappa: 0.61}}}}}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write gold, traces, verdicts and gates of a project; return a function that scores it."""
    monkeypatch.chdir(tmp_path)

    def write(gates="", golds=None, traces=None, verdicts=None):
        golds, traces = golds or gold_of(4), traces or trace_of(4)
        write_rows(tmp_path / "eval/gold.jsonl", golds)
        write_rows(tmp_path / "runs/trace.jsonl", traces)
        if verdicts is not False:
            write_rows(tmp_path / "verdicts.jsonl", verdict_rows(golds, traces) if verdicts is None else verdicts)
        (tmp_path / "eval-gates.yml").write_text(f"version: 1\n{gates}", "utf-8")
        return golds, traces

    return write


@pytest.fixture
def score(command, project):
    def run(gates="", *options, **files):
        project(gates, **files)
        code, out, err = command("score", "--format", "json", *options)
        return code, json.loads(out) if out.startswith("{") else None, err

    return run


def codes(report):
    return {(finding["code"], finding["level"]) for finding in report["findings"]}


def test_recorded_verdicts_are_metrics_with_gates(score):
    code, report, _ = score(f"verdicts: verdicts.jsonl\n{CALIBRATED}{GATE}")
    assert code == 0
    assert {name: report["metrics"][name]["value"] for name in report["metrics"] if name.startswith("judge_")} == {
        "judge_groundedness": 4,
        "judge_correctness": 5,
        "judge_relevancy": 1,
        "judge_unsupported_claims": 0,
        "judge_unsupported_claims.total": 0,
    }
    assert codes(report) == set()
    assert any(item["role"] == "verdicts" for item in report["inputs"])


def test_without_verdicts_no_metric_of_the_judge_is_in_the_report(score):
    _, report, _ = score()
    assert [name for name in (*report["metrics"], *report["contracts"]) if name.startswith("judge_")] == []


def test_the_option_names_the_file_and_the_only_judge_in_it_counts(score):
    _, report, _ = score("", "--verdicts", "verdicts.jsonl")
    assert report["metrics"]["judge_groundedness"]["value"] == 4


def test_verdicts_of_several_judges_need_a_named_one(score):
    golds, traces = gold_of(4), trace_of(4)
    rows = verdict_rows(golds, traces) + verdict_rows(golds, traces, {**JUDGE, "model": "judge-2"}, groundedness=1)
    code, _, err = score("verdicts: verdicts.jsonl\n", verdicts=rows)
    assert code == 2
    assert "has verdicts of 2 judges" in err
    _, report, _ = score(f"verdicts: verdicts.jsonl\n{NAMED}", verdicts=rows)
    assert report["metrics"]["judge_groundedness"]["value"] == 4


@pytest.mark.parametrize("change", ["answer", "question", "chunk", "expected"])
def test_a_verdict_on_something_else_is_stale_and_no_value(score, change):
    golds, traces = gold_of(4), trace_of(4)
    rows = verdict_rows(golds, traces)
    if change == "answer":
        traces[0]["answer_json"]["claim"] += " And more."
    if change == "question":
        golds[0]["question"] = "another question?"
    if change == "chunk":
        traces[0]["chunks"][0]["text"] += " Unless they are not."
    if change == "expected":
        golds[0]["expected_answer"] = "12 days"
    gates = f"verdicts: verdicts.jsonl\n{CALIBRATED}{GATE}"
    code, report, _ = score(gates, golds=golds, traces=traces, verdicts=rows)
    assert (code, codes(report)) == (1, {("stale-verdict", "error")})
    assert report["metrics"]["judge_groundedness"]["n"] == 3


def test_missing_verdicts_are_no_data_and_never_zero(score):
    golds, traces = gold_of(4), trace_of(4)
    gates = f"verdicts: verdicts.jsonl\n{CALIBRATED}{GATE}"
    code, report, _ = score(gates, verdicts=verdict_rows(golds, traces)[:3])
    assert (code, codes(report)) == (1, {("missing-verdict", "error")})
    assert report["metrics"]["judge_groundedness"]["value"] == 4
    code, report, _ = score(gates.replace("verdicts.jsonl", "none.jsonl"), verdicts=False)
    assert code == 1
    assert [gate["outcome"] for gate in report["gates"] if gate["name"] == "judge_groundedness"] == ["no_data"]
    assert any("rag-eval judge" in note["message"] for note in report["notes"])


def test_answers_that_became_errors_are_named(score):
    traces = [*trace_of(3), {"qid": "Q3", "error": "timed out"}]
    gates = f"verdicts: verdicts.jsonl\n{CALIBRATED}gates: {{judge_groundedness: {{min: 4}}}}\n"
    code, report, _ = score(gates, traces=traces, verdicts=verdict_rows(gold_of(4), trace_of(4)))
    assert (code, codes(report)) == (0, {("partly-measured", "warning")})


def test_a_missing_file_is_refused_if_the_option_names_it_and_noted_if_the_gates_file_does(score):
    code, report, err = score(f"{CALIBRATED}{GATE}", "--verdicts", "nosuch.jsonl")
    assert (code, report, "nosuch.jsonl: no such file" in err) == (2, None, True), err
    _, report, err = score("verdicts: nosuch.jsonl\n", verdicts=False)
    assert report["metrics"]["judge_groundedness"]["value"] is None
    assert "nosuch.jsonl: no such file: metrics of the judge have no value" in err


def test_a_refusal_needs_no_verdict(score):
    golds, traces = gold_of(4), trace_of(4)
    rows = verdict_rows(golds, traces)[1:]
    traces[0]["answer_json"] = {"claim": "not in context", "citations": []}
    _, report, _ = score(f"verdicts: verdicts.jsonl\n{CALIBRATED}{GATE}", traces=traces, verdicts=rows)
    assert codes(report) & {("missing-verdict", "error"), ("stale-verdict", "error")} == set()


FLOOR = "  floor: {kappa: 0.5}\n"


@pytest.mark.parametrize(
    "judge",
    [
        NAMED,
        NAMED + FLOOR,
        CALIBRATED.replace("0.61", "0.49"),
        CALIBRATED.replace(FLOOR, ""),
        CALIBRATED.replace("floor: {kappa", "floor: {auroc"),
        CALIBRATED.replace("    judge: sha256:", "    judge: sha256:0"),
    ],
    ids=["no floor", "no calibration", "below the floor", "calibration alone", "another statistic", "another judge"],
)
def test_a_gate_on_a_judge_without_a_calibration_above_a_floor_only_warns(score, judge):
    golds, traces = gold_of(4), trace_of(4)
    bad = verdict_rows(golds, traces, groundedness=1)
    gates = "verdicts: verdicts.jsonl\n{}gates: {{judge_groundedness: {{min: 4}}}}\n"
    code, report, _ = score(gates.format(judge), verdicts=bad)
    assert (code, codes(report)) == (0, {("uncalibrated-judge", "warning")})
    code, report, _ = score(gates.format(CALIBRATED), verdicts=bad)
    assert (code, codes(report)) == (1, set())


@pytest.mark.parametrize("field", ["groundedness", "hash", "input", "reply"])
def test_a_row_that_contradicts_itself_is_refused_with_its_line(score, field):
    rows = verdict_rows(gold_of(4), trace_of(4))
    changes = {"groundedness": 5, "hash": rows[0]["hash"], "reply": "no JSON"}
    changes["input"] = {**rows[1]["input"], "answer": "another"}
    rows[1] = {**rows[1], field: changes[field]}
    code, _, err = score("verdicts: verdicts.jsonl\n", verdicts=rows)
    assert code == 2
    assert "verdicts.jsonl:2" in err
    assert "Remove the row and run rag-eval judge again." in err


def test_a_failed_row_is_no_verdict(score):
    rows = verdict_rows(gold_of(4), trace_of(4))
    failed = {name: rows[0][name] for name in ("hash", "qid", "judge", "input")}
    rows[0] = {**failed, "reply": "", "error": "the judge refused: no"}
    _, report, _ = score(f"verdicts: verdicts.jsonl\n{CALIBRATED}{GATE}", verdicts=rows)
    assert codes(report) == {("missing-verdict", "error")}


def test_two_judges_have_different_contracts(score):
    rows = verdict_rows(gold_of(4), trace_of(4))
    other = [verdict_row(*pair, {**JUDGE, "model": "judge-2"}) for pair in zip(gold_of(4), trace_of(4), strict=True)]
    contracts = []
    for judged in (rows, other):
        _, report, _ = score("verdicts: verdicts.jsonl\n", verdicts=judged)
        contracts.append(report["contracts"])
    same = {name for name in contracts[0] if contracts[0][name] == contracts[1][name]}
    assert {name for name in contracts[0] if name.startswith("judge_")}.isdisjoint(same)
    assert "precision" in same


def test_json_in_a_fence_is_read_and_other_replies_are_not():
    good = '{"groundedness": null, "correctness": 2.0, "relevancy": 3, "unsupported_claims": ["x"]}'
    assert parse_reply(f"Here:\n```json\n{good}\n```").correctness == 2
    bad = ("", "no", "{", good.replace("3", "6"), good.replace("3", "true"), good.replace("3", "null"),
           good.replace("2.0", "2.5"), good.replace('["x"]', '"x"'), "{" * 5000 + "}")  # fmt: skip
    for text in bad:
        with pytest.raises(ValueError, match="reply"):
            parse_reply(text)


def test_intervals_of_points_end_at_5_and_few_verdicts_suffice_for_them(score):
    golds, traces = gold_of(9), trace_of(9)
    rows = [verdict_row(*pair, groundedness=5 - n % 2) for n, pair in enumerate(zip(golds, traces, strict=True))]
    _, report, _ = score("verdicts: verdicts.jsonl\n", golds=golds, traces=traces, verdicts=rows)
    result = report["metrics"]["judge_groundedness"]
    assert 2.9 < result["low"] < result["value"] < result["high"] <= 5
    assert not result["small"]
    same = report["metrics"]["judge_correctness"]
    assert (same["value"], same["high"]) == (5, 5)
    assert same["low"] < 5, "nine verdicts of 5 do not show that all are"


def test_a_report_with_more_than_5_points_is_refused(score, command, tmp_path):
    _, report, _ = score(f"verdicts: verdicts.jsonl\n{NAMED}")
    text = json.dumps(report).replace('"judge_groundedness": 4', '"judge_groundedness": 6')
    (tmp_path / "report.json").write_text(text, "utf-8")
    code, _, err = command("gate", "report.json")
    assert code == 2
    assert "'judge_groundedness' cannot be 6.0" in err
