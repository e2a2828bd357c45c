"""`rag-eval judge calibrate`: figures against independent ones, the block that gates read, labels that are wrong."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest
import yaml
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from cases import write_rows
from verdicts import JUDGE, gold_of, input_hash, judge_hash, trace_of, verdict_row

N = 60
NAMED = f"judge:\n  model: {JUDGE['model']}\n  prompt: {JUDGE['prompt']}\n  rubric: {JUDGE['rubric']}\n"


@pytest.fixture
def scores():
    """Scores of people and a judge that mostly agrees."""
    chance = np.random.default_rng(7)
    people = chance.integers(0, 6, N)
    judge = np.clip(people + chance.choice([-1, 0, 0, 0, 1], N), 0, 5)
    return people.tolist(), judge.tolist()


@pytest.fixture
def calibrate(command, tmp_path, monkeypatch, scores):
    """Write verdicts and labels, and run the command on them; return exit code, output and stderr."""
    monkeypatch.chdir(tmp_path)
    judged = scores[1]
    golds, traces = gold_of(N), trace_of(N)
    for number, trace in enumerate(traces):
        trace["answer_json"]["claim"] += " And so on." * (number % 7)
    rows = [verdict_row(*pair, groundedness=judged[at]) for at, pair in enumerate(zip(golds, traces, strict=True))]
    write_rows(tmp_path / "eval/gold.jsonl", golds)
    write_rows(tmp_path / "runs/trace.jsonl", traces)
    write_rows(tmp_path / "eval/verdicts.jsonl", rows)

    def run(labels, *options, name="humans.csv"):
        (tmp_path / name).write_text(labels, "utf-8")
        return command("judge", "calibrate", "--labels", name, *options)

    run.rows = rows
    return run


def csv_of(values, header="qid,groundedness"):
    return "\n".join([header, *(f"Q{number},{value}" for number, value in enumerate(values))]) + "\n"


def figures(calibrate, labels, *options):
    code, out, err = calibrate(labels, "--format", "json", *options)
    assert code == 0, err
    return json.loads(out)["scores"]["groundedness"]


def test_kappa_is_the_quadratic_weighted_one_of_the_oracle(calibrate, scores):
    people, judge = scores
    result = figures(calibrate, csv_of(people))
    assert result["n"] == N
    assert result["kappa"]["value"] == pytest.approx(cohen_kappa_score(people, judge, weights="quadratic"))
    assert result["kappa"]["low"] < result["kappa"]["value"] < result["kappa"]["high"]
    good = [score >= 4 for score in people]
    assert result["auroc"]["value"] == pytest.approx(roc_auc_score(good, judge))
    assert result["base_rate"]["value"] == pytest.approx(sum(good) / N)
    assert result["judge_rate"] == pytest.approx(sum(score >= 4 for score in judge) / N)
    assert result["bias"]["value"] == pytest.approx(np.mean(judge) - np.mean(people))
    table = np.zeros((6, 6), int)
    np.add.at(table, (judge, people), 1)
    assert result["confusion"] == table.tolist()


def test_negative_numbers_have_the_minus_sign_of_reports(calibrate):
    _, out, _ = calibrate(csv_of([5] * N))
    pattern = r"^bias +−\d\.\d{3} \[−\d\.\d{3}, −\d\.\d{3}\] +judge minus people, points$"
    assert re.search(pattern, out, re.MULTILINE), out


def test_binary_labels_are_recognised_and_cut(calibrate, scores):
    people, judge = scores
    good = [int(score >= 3) for score in people]
    for labels in (good, ["yes" if item else "No" for item in good]):
        result = figures(calibrate, csv_of(labels), "--cut", "3")
        assert result["binary"]
        cut = [int(score >= 3) for score in judge]
        assert result["kappa"]["value"] == pytest.approx(cohen_kappa_score(good, cut))
        assert result["auroc"]["value"] == pytest.approx(roc_auc_score(good, judge))
        hits = sum(a and b for a, b in zip(good, cut, strict=True))
        assert result["at_cut"] == [[hits, sum(good) - hits], [sum(cut) - hits, N - sum(good) - sum(cut) + hits]]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_columns_may_be_separated_otherwise_than_by_commas(calibrate, scores, delimiter):
    people, _ = scores
    assert figures(calibrate, csv_of(people).replace(",", delimiter)) == figures(calibrate, csv_of(people))


def test_another_scale_is_mapped_to_that_of_the_judge(calibrate, scores):
    people, _ = scores
    assert (
        figures(calibrate, csv_of([1 + score * 0.8 for score in people]), "--scale", "1-5")["kappa"]["value"]
        == pytest.approx(figures(calibrate, csv_of(people))["kappa"]["value"])
    )  # fmt: skip


def test_several_people_count_by_their_mean_and_are_compared_with_each_other(calibrate, scores):
    people, judge = scores
    other = [min(5, score + number % 2) for number, score in enumerate(people)]
    rows = [f"Q{n},{who},{values[n]}" for n in range(N) for who, values in (("ann", people), ("bob", other))]
    result = figures(calibrate, "\n".join(["qid,rater,groundedness", *rows]))
    mean = np.array([people, other]).mean(0)
    x, y = np.array(judge), mean
    expected = 2 * np.cov(x, y, bias=True)[0, 1] / (x.var() + y.var() + (x.mean() - y.mean()) ** 2)
    assert (result["n"], result["votes"]) == (N, 2 * N)
    assert result["kappa"]["value"] == pytest.approx(expected)
    assert result["people"]["value"] == pytest.approx(
        cohen_kappa_score([*people, *other], [*other, *people], weights="quadratic")
    )


def test_a_judge_that_likes_length_is_found(calibrate, scores, tmp_path):
    _, judge = scores
    people = [max(0, score - number % 7 // 2) for number, score in enumerate(judge)]
    result = figures(calibrate, csv_of(people))
    assert result["length"]["difference"]["low"] > 0
    assert result["length"]["groups"][0][1] + result["length"]["groups"][1][1] == N


def test_a_judge_that_overlooks_what_stands_further_down_is_found(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = []
    for number, (gold, trace) in enumerate(zip(gold_of(N), trace_of(N), strict=True)):
        other = {"id": "m#2", "text": "Something else."}
        trace["chunks"] = [*trace["chunks"], other] if number % 2 else [other, *trace["chunks"]]
        rows.append(verdict_row(gold, trace, groundedness=5 if number % 2 else 3 + number % 4 // 2))
    write_rows(tmp_path / "eval/verdicts.jsonl", rows)
    (tmp_path / "humans.csv").write_text(csv_of([5, 5, 5, 4] * (N // 4)), "utf-8")
    _, out, _ = command("judge", "calibrate", "--labels", "humans.csv", "--format", "json")
    content = json.loads(out)["scores"]["groundedness"]["position"]
    assert [group[:2] for group in content["groups"]] == [
        ["cited chunk is first", N // 2],
        ["cited chunk is later", N // 2],
    ]
    assert content["difference"]["high"] < 0


def test_weights_of_a_stratified_sample_count(calibrate, scores):
    people, judge = scores
    weights = [1 + number % 3 for number in range(N)]
    rows = [f"Q{n},{people[n]},{weights[n]}" for n in range(N)]
    result = figures(calibrate, "\n".join(["qid,groundedness,weight", *rows]))
    assert result["kappa"]["value"] == pytest.approx(
        cohen_kappa_score(people, judge, weights="quadratic", sample_weight=weights)
    )
    assert result["auroc"]["value"] == pytest.approx(
        roc_auc_score([score >= 4 for score in people], judge, sample_weight=weights)
    )
    assert result["base_rate"]["value"] == pytest.approx(np.average([score >= 4 for score in people], weights=weights))


def test_answers_that_depend_on_one_another_say_less(calibrate, scores):
    people, _ = scores
    alone = figures(calibrate, csv_of(people))
    rows = [f"Q{n},{score},{n // 6}" for n, score in enumerate(people)]
    together = figures(calibrate, "\n".join(["qid,groundedness,unit", *rows]))
    assert (together["kappa"]["value"], together["units"]) == (alone["kappa"]["value"], 10)
    assert together["base_rate"]["high"] - together["base_rate"]["low"] > (
        alone["base_rate"]["high"] - alone["base_rate"]["low"]
    )


def test_what_is_written_lets_the_gate_fail_and_keeps_the_rest_of_the_file(calibrate, command, scores, tmp_path):
    gates = tmp_path / "eval-gates.yml"
    text = "version: 1  # ours\nverdicts: eval/verdicts.jsonl\ngates:\n  judge_groundedness: {min: 4.9}\n"
    gates.write_text(f"{NAMED}\n# the gates\n{text}", "utf-8")
    code, out, _ = command("score", "--format", "json")
    assert (code, [load["code"] for load in json.loads(out)["findings"]]) == (0, ["uncalibrated-judge"])
    code, out, err = calibrate(csv_of(scores[0]), "--write")
    assert code == 0, err
    assert "its gates may fail a run" in err
    assert f"\n# the gates\n{text}" in gates.read_text("utf-8")
    recorded = gates.read_text("utf-8")
    assert judge_hash() in recorded
    code, out, _ = command("score", "--format", "json")
    assert (code, json.loads(out)["findings"]) == (1, [])
    calibrate(csv_of(scores[0]), "--write")
    assert gates.read_text("utf-8") == recorded
    gates.write_bytes(recorded.replace("\n", "\r\n").encode())
    calibrate(csv_of(scores[0]), "--write")
    assert gates.read_bytes() == recorded.replace("\n", "\r\n").encode()
    gates.write_text(recorded.replace(JUDGE["rubric"], "sha256:cc"), "utf-8")
    rows = [verdict_row(*pair, {**JUDGE, "rubric": "sha256:cc"}) for pair in zip(gold_of(N), trace_of(N), strict=True)]
    write_rows(tmp_path / "runs/trace.jsonl", trace_of(N))
    write_rows(tmp_path / "eval/verdicts.jsonl", rows)
    code, out, _ = command("score", "--format", "json")
    assert (code, [load["code"] for load in json.loads(out)["findings"]]) == (0, ["uncalibrated-judge"])


@pytest.mark.parametrize(
    "place",
    [
        "judge: {model: judge-1, prompt: sha256:aa, rubric: sha256:bb}\nversion: 1\n",
        "version: 1\njudge:\n  model: judge-1\n  prompt: p\n# y\n\n  rubric: r\n\n# later\ngates: {chr: {min: 0.1}}",
        "version: 1\njudge: {model: judge-1, prompt: p, rubric: r}\n\n# later\ngates: {chr: {min: 0.1}}\n",
        "version: 1\n# later\n\n",
        "version: 1",
        "",
    ],
)
def test_the_block_takes_the_place_of_any_judge(calibrate, scores, tmp_path, place):
    (tmp_path / "eval-gates.yml").write_text(place, "utf-8")
    code, _, err = calibrate(csv_of(scores[0]), "--write", "--model", "judge-1")
    after = (tmp_path / "eval-gates.yml").read_text("utf-8")
    if place == "":
        assert "version" in err or code == 0
        return
    assert code == 0, err
    assert after.count("judge:\n") == 1
    for line in ("# later", "gates: {chr: {min: 0.1}}"):
        assert after.count(line) == place.count(line)


@pytest.mark.parametrize(
    "before", ["version: 1\n", "version: 1\n\n", "version: 1\n# the end\n", "version: 1\n\n# a\n\n"]
)
def test_the_printed_block_is_the_one_that_is_written(calibrate, scores, tmp_path, before):
    (tmp_path / "eval-gates.yml").write_text(before, "utf-8")
    _, out, _ = calibrate(csv_of(scores[0]), "--floor", "kappa=0.7", "--floor", "auroc=0.8")
    block = out[out.index("judge:\n") :]
    calibrate(csv_of(scores[0]), "--floor", "kappa=0.7", "--floor", "auroc=0.8", "--write")
    assert (tmp_path / "eval-gates.yml").read_text("utf-8") == f"{before}{block}"
    assert "floor: {kappa: 0.7, auroc: 0.8}" in block


def test_a_floor_is_recorded_as_it_is_named(calibrate, scores, tmp_path):
    (tmp_path / "eval-gates.yml").write_text("version: 1\n", "utf-8")
    for floor in ("0.66667", "0.123456789", "1", "0", "-0.5", "1e-5"):
        calibrate(csv_of(scores[0]), "--floor", f"kappa={floor}", "--write")
        stated = yaml.safe_load((tmp_path / "eval-gates.yml").read_text("utf-8"))["judge"]["floor"]
        assert {name: float(value) for name, value in stated.items()} == {"kappa": float(floor)}


def test_five_answers_do_not_calibrate_a_judge(calibrate, scores, tmp_path):
    _, judge = scores
    (tmp_path / "eval-gates.yml").write_text("version: 1\ngates: {judge_groundedness: {min: 4}}\n", "utf-8")
    _, out, err = calibrate(csv_of(judge[:5]), "--write")
    assert re.search(r"kappa +1.000 \[", out)
    assert "still only warns: judge_groundedness" in err


WRONG = {
    "not a number": (
        csv_of(["good"] + [1] * 9 + [5]),
        r"humans.csv:2: groundedness 'good' is not a number from 0 to 5",
    ),
    "out of range": (csv_of([1, 7]), r"humans.csv:3: groundedness '7' is not a number from 0 to 5"),
    "nan": (csv_of([1, 4, "nan"]), r"humans.csv:4: groundedness 'nan' is not a number"),
    "no qid column": (
        "question,groundedness\nQ0,1\n",
        r"humans.csv:1: has no column 'qid'. Name the columns in the first line: qid,groundedness",
    ),
    "other separators": ("qid|groundedness\nQ0|1\n", r"humans.csv:1: has no column 'qid'. Separate columns by commas."),
    "no score column": ("qid,faithful\nQ0,1\n", r"humans.csv:1: has no score in any of the columns groundedness, "),
    "no rows": ("qid,groundedness\n", r"humans.csv:2: has names of columns and no rows"),
    "empty": ("", r"humans.csv:1: has no"),
    "noise": ("\x00\x01,{[", r"humans.csv:2"),
    "header twice": ("qid,qid,groundedness\nQ0,Q1,1\n", r"has two columns named 'qid'"),
    "cells missing": ("qid,groundedness,note\nQ0,1\n", r"humans.csv:2: has 2 cells, and the header has 3"),
    "twice": (
        csv_of([1, 2]) + "Q0,5\n",
        r"humans.csv:4: second label on 'Q0' without a rater; the first is humans.csv:2",
    ),
    "twice by one": (
        "qid,rater,groundedness\nQ0,ann,1\nQ1,ann,4\nQ0,ann,1\n",
        r"humans.csv:4: second label on 'Q0' by 'ann'",
    ),
    "no overlap": ("qid,groundedness\nX1,1\nX2,4\n", r"has no verdict of judge-1 for any of the labels"),
    "bad weight": ("qid,groundedness,weight\nQ0,1,-2\n", r"humans.csv:2: weight '-2' is not a number from 0.000001"),
    "tiny weight": ("qid,groundedness,weight\nQ0,1,1e-320\n", r"humans.csv:2: weight '1e-320' is not a number from"),
    "huge weight": ("qid,groundedness,weight\nQ0,1,1e308\n", r"humans.csv:2: weight '1e308' is not a number from"),
    "binary": (b"\xff\xfe,\x00".decode("latin-1"), r"humans.csv:2"),
    "empty qid": ("qid,groundedness\n,1\n", r"humans.csv:2: has no qid"),
    "unclosed quote": ('qid,groundedness\n"Q0,1\n', r"humans.csv:2: is not valid CSV"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_labels_that_are_wrong_are_refused_with_their_place(calibrate, wrong):
    labels, message = WRONG[wrong]
    code, out, err = calibrate(labels)
    assert (code, out) == (2, "")
    assert re.search(message, err), err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--column", "faithful"], "--column: 'faithful' is not a score and its column. Write one of groundedness, "),
        (["--column", "fluency=x"], "--column: 'fluency=x' is not a score and its column"),
        (["--column", "groundedness= "], "'groundedness=' is not a score and its column"),
        (["--column", "groundedness=x"], "humans.csv:1: has no column 'x'. Check --column."),
        (["--scale", "5-1"], "--scale: '5-1' is not a scale"),
        (["--scale", "0-inf"], "--scale: '0-inf' is not a scale"),
        (["--floor", "kappa=2"], "--floor: 'kappa=2' is not a floor"),
        (["--floor", "f1=0.5"], "--floor: 'f1=0.5' is not a floor"),
        (["--floor", "kappa=nan"], "--floor: 'kappa=nan' is not a floor"),
        (["--cut", "9"], "--cut 9 is not a score"),
        (["--model", "judge-9"], "has 0 judges 'judge-9', but one is needed. Judges in the file: 'judge-1'"),
        (["--verdicts", "none.jsonl"], "none.jsonl: no such file"),
        (["--write"], "there is no gates file to write to"),
    ],
)
def test_bad_options_are_refused_with_the_fix(calibrate, scores, words, message):
    code, _, err = calibrate(csv_of(scores[0]), *words)
    assert code == 2
    assert message in err


def test_one_class_only_has_no_auroc_and_says_so(calibrate):
    code, out, _ = calibrate(csv_of([5] * N))
    assert code == 0
    assert re.search(r"AUROC +none", out)
    assert "people rate every answer good: there is no AUROC" in out
    assert "scores: {}" in out


def test_labels_without_a_verdict_are_named_and_not_counted(calibrate, scores):
    code, out, _ = calibrate(csv_of(scores[0]) + "X1,3\n")
    assert code == 0
    assert "not counted: 1 label on answers without a verdict of this judge: 'X1'" in out
    assert f"groundedness (answers: {N}" in out


def test_a_label_that_fits_two_answers_is_refused_unless_it_names_one(calibrate, scores, tmp_path):
    trace = trace_of(1, "Once more, for")[0]
    again = verdict_row(gold_of(1)[0], trace, groundedness=0)
    write_rows(tmp_path / "eval/verdicts.jsonl", [*calibrate.rows, again])
    code, _, err = calibrate(csv_of(scores[0]))
    assert code == 2
    assert "humans.csv:2: 'Q0' has several verdicts" in err
    labels = [
        {"qid": row["qid"], "input": input_hash(row), "groundedness": score}
        for row, score in zip([*calibrate.rows, again], [*scores[0], 2], strict=True)
    ]
    code, out, _ = calibrate("\n".join(map(json.dumps, labels)), "--format", "json", name="labels.jsonl")
    assert json.loads(out)["scores"]["groundedness"]["n"] == N + 1


def test_verdicts_of_two_judges_need_a_name(calibrate, scores, tmp_path):
    other = [{**JUDGE, "model": "judge-2"}] * N
    rows = [verdict_row(*item) for item in zip(gold_of(N), trace_of(N), other, strict=True)]
    write_rows(tmp_path / "eval/verdicts.jsonl", [*calibrate.rows, *rows])
    code, _, err = calibrate(csv_of(scores[0]))
    assert code == 2
    assert "'judge-1' (prompt aa), 'judge-2' (prompt aa). Name one with --model" in err
    assert figures(calibrate, csv_of(scores[0]), "--model", "judge-1")["n"] == N


def test_spaces_a_byte_order_mark_and_other_columns_do_no_harm(calibrate, scores):
    rows = [f" Q{n} ,{score},x" for n, score in enumerate(scores[0])]
    labels = "\n".join(["\ufeff qid, groundedness ,comment", *rows])
    assert figures(calibrate, labels)["n"] == N


def test_the_digest_is_that_of_the_labels_whatever_the_order_of_their_files(calibrate, scores, tmp_path):
    def recorded(*files):
        _, out, _ = calibrate(labels, "--labels", *files, "--format", "json")
        return json.loads(out)["gates_file"]["judge"]["calibration"]["labels"]

    header, *lines = csv_of(scores[0]).splitlines(keepends=True)
    labels = "".join([header, *lines[:20]])
    (tmp_path / "more.csv").write_text("".join([header, *lines[20:]]), "utf-8")
    one = hashlib.sha256(labels.encode()).hexdigest()
    assert recorded("humans.csv") == recorded("humans.csv", "humans.csv") == f"sha256:{one}"
    both = recorded("humans.csv", "more.csv")
    assert both == recorded("more.csv", "humans.csv")
    assert both not in (recorded("humans.csv"), recorded("more.csv"))
