"""`rag-eval judge repeat`: the noise of a judge against figures by hand, and what interrupts it."""

from __future__ import annotations

import json
import statistics
import threading
from collections import Counter

import pytest
from sklearn.metrics import cohen_kappa_score

from cases import write_rows
from fake_judge import GOOD, FakeJudge
from verdicts import gold_of, trace_of

N = 12
OUT = "runs/judge-repeats.jsonl"


class Moody(FakeJudge):
    """Gives 5 at first, and to every third question one point less each further time it is asked."""

    def __init__(self):
        super().__init__(self.graded)
        self.asked, self.turn = Counter(), threading.Lock()

    def graded(self, shown):
        question = shown["question"]
        with self.turn:
            before = self.asked[question]
            self.asked[question] += 1
        number = int(question.split()[1].rstrip("?"))
        return {**GOOD, "groundedness": 5 - before if number % 3 == 0 else number % 6}


@pytest.fixture
def repeat(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write_rows(tmp_path / "eval/gold.jsonl", gold_of(N))
    write_rows(tmp_path / "runs/trace.jsonl", trace_of(N))

    def run(server, *options, sub=("repeat",)):
        with server.serving() as url:
            return command("judge", *sub, "--base-url", url, "--model", "judge-1", "--retries", "0", *options)

    return run


def grades(times):
    """The grades of each question in so many times."""
    return [[5 - time if number % 3 == 0 else number % 6 for time in range(times)] for number in range(N)]


def test_noise_is_that_of_the_grades(repeat, tmp_path):
    code, out, err = repeat(Moody(), "--format", "json")
    assert code == 0, err
    content = {load["metric"]: load for load in json.loads(out)["metrics"]}
    expected = grades(3)
    noise = content["judge_groundedness"]
    assert noise["same"]["value"] == pytest.approx(sum(len(set(item)) == 1 for item in expected) / N)
    assert noise["deviation"] ** 2 == pytest.approx(statistics.mean(map(statistics.variance, expected)))
    assert noise["means"] == pytest.approx([statistics.mean(item[time] for item in expected) for time in range(3)])
    assert noise["of_mean"] == pytest.approx(noise["deviation"] / N**0.5)
    pairs = [(item[a], item[b]) for item in expected for a in range(3) for b in range(3) if a != b]
    assert noise["kappa"]["value"] == pytest.approx(
        cohen_kappa_score(*zip(*pairs, strict=True), weights="quadratic"), abs=1e-9
    )
    assert content["judge_relevancy"]["deviation"] == 0
    rows = [json.loads(line) for line in (tmp_path / OUT).read_text("utf-8").splitlines()]
    assert Counter((row["qid"], row["repeat"]) for row in rows) == Counter(
        (f"Q{number}", time) for number in range(N) for time in (1, 2, 3)
    )


def test_every_reply_names_its_question_and_its_run(repeat, tmp_path):
    runs = [{**row, "run": run} for run in "ab" for row in trace_of(2, f"In run {run}, for")]
    write_rows(tmp_path / "runs/trace.jsonl", [*trace_of(3), *runs])
    assert repeat(FakeJudge(), "--n", "2")[0] == 0
    replies = [json.loads(line) for line in (tmp_path / OUT).read_text("utf-8").splitlines()]
    expected = [(f"Q{number}", run) for run in (None, "a", "b") for number in range(2 if run else 3)]
    assert Counter((row["qid"], row.get("run")) for row in replies) == dict.fromkeys(expected, 2)


def test_replies_on_an_answer_that_runs_share_name_the_first_run(repeat, tmp_path):
    write_rows(tmp_path / "runs/trace.jsonl", [{**row, "run": run} for run in "ab" for row in trace_of(2)])
    assert repeat(FakeJudge(), "--n", "2")[0] == 0
    replies = [json.loads(line) for line in (tmp_path / OUT).read_text("utf-8").splitlines()]
    assert Counter((row["qid"], row["run"]) for row in replies) == {("Q0", "a"): 2, ("Q1", "a"): 2}


def test_the_recorded_verdict_is_one_more_time_and_stays(repeat, tmp_path):
    server = Moody()
    repeat(server, sub=())
    before = (tmp_path / "eval/verdicts.jsonl").read_bytes()
    _, out, _ = repeat(server, "--n", "1", "--format", "json")
    noise = json.loads(out)["metrics"][0]
    assert noise["means"] == pytest.approx([statistics.mean(grade[time] for grade in grades(2)) for time in range(2)])
    assert (tmp_path / "eval/verdicts.jsonl").read_bytes() == before


def test_one_reply_needs_a_recorded_verdict_of_every_answer(repeat, tmp_path):
    repeat(Moody(), sub=())
    file = tmp_path / "eval/verdicts.jsonl"
    file.write_text("".join(file.read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")
    code, _, err = repeat(Moody(), "--n", "1")
    assert (code, "there is nothing to compare. Write: --n 3" in err) == (2, True), err


def test_the_margin_of_a_gate_is_held_against_the_noise(repeat, tmp_path):
    gates = "gates: {judge_groundedness: {min: 3.2}, judge_relevancy: {min: 0.5}, chr: {min: 0.1}}"
    (tmp_path / "eval-gates.yml").write_text(f"version: 1\n{gates}\n", "utf-8")
    _, out, _ = repeat(Moody())
    value = statistics.mean(grade for item in grades(3) for grade in item)
    assert f"judge_groundedness min 3.2: the value {value:.3f} is {abs(value - 3.2):.3f} away" in out
    assert "which is within the noise of the judge: this gate may change if the judge is asked again" in out
    assert "judge_relevancy min 0.5: the value 1.000 is 0.500 away; the noise of the judge is 0% of that" in out
    assert "chr" not in out


def test_a_sample_is_drawn_by_seed(repeat, tmp_path):
    server = Moody()
    _, out, _ = repeat(server, "--sample", "4", "--n", "2", "--format", "json")
    first = {call["messages"][0]["content"] for call in server.calls}
    noise = json.loads(out)["metrics"][0]
    assert (len(server.calls), len(first), noise["n"], noise["total"]) == (8, 4, 4, N)
    assert noise["of_mean"] == pytest.approx(noise["deviation"] / N**0.5)
    again = Moody()
    repeat(again, "--sample", "4", "--n", "1", "--force", "--seed", "1", "--n", "2")
    assert {call["messages"][0]["content"] for call in again.calls} != first


def test_an_interruption_is_continued_without_asking_twice(repeat, monkeypatch, tmp_path):
    def stop(*_):
        def show(done, errors):
            raise KeyboardInterrupt

        return show

    server = Moody()
    with monkeypatch.context() as patch:
        patch.setattr("rag_eval.cli.judge.progress", stop)
        code, _, err = repeat(server, "--concurrency", "1")
    assert code == 130
    assert "To continue, run the same command again." in err
    assert not (tmp_path / OUT).exists()
    code, _, err = repeat(server, "--concurrency", "1")
    assert code == 0, err
    assert max(server.asked.values()) <= 4, "what was on its way may be asked once more"
    assert not (tmp_path / f"{OUT}.partial").exists()


def test_failed_replies_are_left_out_and_said(repeat):
    server = FakeJudge(lambda shown: (400, {"error": "no"}) if "question 1?" in shown["question"] else GOOD)
    code, out, err = repeat(server, "--n", "2", "--format", "json")
    assert code == 1
    assert json.loads(out)["metrics"][0]["n"] == N - 1
    assert f"24 replies, 2 without a verdict, {22 * 960} tokens\n" in err
    assert "left out: 'Q1': " in err
    server.reply = lambda _: (400, {"error": "no"})
    code, out, _ = repeat(server, "--force")
    assert (code, out) == (1, "no answer has a verdict in every repeat, so there is nothing to measure\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--n", "0"], "'0' is not a whole number from 1 to 100"),
        (["--n", "1"], "there is nothing to compare. Write: --n 3"),
        (["--sample", "x"], "'x' is not a whole number from 1 to 10000"),
    ],
)
def test_bad_options_are_refused(repeat, words, message):
    server = Moody()
    code, _, err = repeat(server, *words)
    assert (code, server.calls) == (2, [])
    assert message in err


def test_finished_replies_are_not_overwritten_unasked(repeat):
    repeat(Moody(), "--n", "2")
    server = Moody()
    code, _, err = repeat(server, "--n", "2")
    assert (code, server.calls) == (2, [])
    assert f"{OUT} already exists" in err
