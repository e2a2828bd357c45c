"""`rag-eval judge` against a server that speaks the protocol: what is asked, recorded and replayed; what goes wrong."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import threading

import pytest

from cases import ROOT, write_rows
from fake_judge import GOOD, FakeJudge, completion, error
from seams import Contract
from verdicts import gold_of, trace_of

FILE = "eval/verdicts.jsonl"


@pytest.fixture
def judge(command, tmp_path, monkeypatch):
    """Run `rag-eval judge` on four questions against a fake judge; return exit code, rows and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write_rows(tmp_path / "eval/gold.jsonl", gold_of(4))
    write_rows(tmp_path / "runs/trace.jsonl", trace_of(4))

    def run(server, *options):
        with server.serving() as url:
            words = ["judge", "--base-url", url, "--model", "judge-1", "--retries", "2", *options]
            code, out, err = command(*words)
        assert out == ""
        return code, rows(tmp_path / FILE), err

    return run


def rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def test_verdicts_are_recorded_in_the_order_of_the_gold_and_scored(judge, command):
    server = FakeJudge(lambda _: {**GOOD, "correctness": 3})
    code, result, err = judge(server)
    assert (code, [row["qid"] for row in result]) == (0, ["Q0", "Q1", "Q2", "Q3"])
    assert [Contract("verdict").faults(row) for row in result] == [[]] * 4
    assert {call["temperature"] for call in server.calls} == {0}
    assert result[0]["usage"] == {"model": "judge-1", "input_tokens": 900, "output_tokens": 60}
    assert result[0]["input"]["chunks"] == [{"id": "m#1", "text": "Deleted records are kept for 10 days."}]
    assert "4 of 4 verdicts, 3840 tokens" in err
    code, out, _ = command("score", "--verdicts", FILE, "--format", "json")
    assert json.loads(out)["metrics"]["judge_correctness"]["value"] == 3


def test_the_printed_block_names_the_judge_in_the_gates_file(judge, command, tmp_path):
    _, _, err = judge(FakeJudge())
    block = err[err.index("judge:\n") :]
    (tmp_path / "eval-gates.yml").write_text(f"version: 1\nverdicts: {FILE}\n{block}", "utf-8")
    _, out, _ = command("score", "--format", "json")
    assert json.loads(out)["metrics"]["judge_groundedness"]["value"] == 5
    server = FakeJudge()
    _, _, err = judge(server)
    assert server.calls == []
    assert "in eval-gates.yml" not in err


def test_only_what_has_no_verdict_is_asked(judge, tmp_path):
    server = FakeJudge()
    judge(server)
    traces = trace_of(4)
    traces[2]["answer_json"]["claim"] = "Another answer."
    write_rows(tmp_path / "runs/trace.jsonl", traces)
    _, result, err = judge(server)
    assert len(server.calls) == 5
    assert [row["qid"] for row in result] == ["Q0", "Q1", "Q2", "Q3", "Q2"]
    assert "4 answers to judge, 1 without a verdict of judge-1" in err
    _, result, _ = judge(server, "--prune")
    assert len(result) == 4
    assert len(server.calls) == 5


@pytest.mark.parametrize("change", ["--model", "--prompt", "--rubric"])
def test_another_judge_is_asked_for_everything_and_both_are_kept(judge, tmp_path, change):
    judge(FakeJudge())
    (tmp_path / "own.txt").write_text("Grade this:\n{input}\nby {rubric}", "utf-8")
    server = FakeJudge()
    _, result, _ = judge(server, change, "judge-2" if change == "--model" else "own.txt")
    assert (len(server.calls), len(result)) == (4, 8)


def test_refusals_and_errors_are_not_asked_about(judge, tmp_path):
    traces = trace_of(4)
    traces[0]["answer_json"] = {"claim": "not in context", "citations": []}
    traces[1] = {"qid": "Q1", "error": "no reply"}
    write_rows(tmp_path / "runs/trace.jsonl", traces)
    _, result, _ = judge(FakeJudge())
    assert [row["qid"] for row in result] == ["Q2", "Q3"]


def test_traces_may_come_from_stdin(judge, tmp_path, monkeypatch):
    data = (tmp_path / "runs/trace.jsonl").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    (tmp_path / "runs/trace.jsonl").unlink()
    code, result, _ = judge(FakeJudge(), "--trace", "-")
    assert (code, len(result)) == (0, 4)


NOTHING = "runs/trace.jsonl has no answer to judge: "


@pytest.mark.parametrize("sub", [(), ("repeat",)])
@pytest.mark.parametrize(
    ("traces", "message"),
    [
        ([], f"{NOTHING}no trace is of a question of eval/gold.jsonl. Check the qids, or run: rag-eval collect"),
        ([{"qid": "Z", "answer": "30 days"}], f"{NOTHING}no trace is of a question of eval/gold.jsonl."),
        (
            [{"qid": "Q0", "error": "no reply"}, {"qid": "Q1", "answer": "not in context"}],
            f"{NOTHING}2 answers, only refusals, errors or safety cases. See why: rag-eval score",
        ),
    ],
)
def test_without_an_answer_to_judge_the_exit_code_is_2(judge, command, tmp_path, sub, traces, message):
    judge(FakeJudge())
    before = rows(tmp_path / FILE)
    write_rows(tmp_path / "runs/trace.jsonl", traces)
    options = () if sub else ("--prune",)
    code, out, err = command("judge", *sub, "--model", "judge-1", *options)
    assert (code, out, message in err, rows(tmp_path / FILE)) == (2, "", True, before), err


def test_the_last_trace_of_a_question_and_each_run_are_judged(judge, tmp_path):
    traces = [{**trace, "run": run} for run in ("a", "b") for trace in trace_of(4, f"In run {run}, for")]
    write_rows(tmp_path / "runs/trace.jsonl", [*traces, {**trace_of(1, "Later: for")[0], "run": "a"}])
    _, result, _ = judge(FakeJudge())
    assert [(row["run"], row["qid"]) for row in result] == [(run, f"Q{n}") for run in "ab" for n in range(4)]
    assert result[0]["input"]["answer"] == "Later: for 10 days."


def test_an_answer_that_runs_share_is_judged_once_and_named_by_the_first(judge, tmp_path):
    write_rows(tmp_path / "runs/trace.jsonl", [{**trace, "run": run} for run in ("b", "a") for trace in trace_of(2)])
    server = FakeJudge()
    _, result, _ = judge(server)
    assert [(row["run"], row["qid"]) for row in result] == [("a", "Q0"), ("a", "Q1")]
    assert len(server.calls) == 2


TROUBLES = {
    "refusal": (completion(None, refusal="I cannot help with that."), "the judge refused: I cannot help"),
    "cut": (completion('{"groundedness": 5, "corr', finish="length"), "the reply was cut off: length"),
    "filtered": (completion("", finish="content_filter"), "the reply was cut off: content_filter"),
    "no JSON": (completion("The answer is good."), "no JSON object in the reply"),
    "cut JSON": (completion('{"groundedness": {}'), "no valid JSON in the reply"),
    "out of range": (
        completion(json.dumps({**GOOD, "groundedness": 7})),
        "groundedness of the reply is not a whole number",
    ),
    "no completion": ({"choices": []}, "not a chat completion"),
    "bad body": ((200, b"<html>"), "the reply is not JSON"),
    "bad request": ((400, error("context length exceeded")), "HTTP 400"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_goes_wrong_is_an_error_row_and_asked_again(judge, trouble):
    made, message = TROUBLES[trouble]
    server = FakeJudge(lambda shown: made if "question 1?" in shown["question"] else GOOD)
    code, result, err = judge(server)
    failed = [row for row in result if "error" in row]
    assert (code, len(result), [row["qid"] for row in failed]) == (1, 4, ["Q1"])
    assert message in failed[0]["error"]
    assert Contract("verdict").faults(failed[0]) == []
    assert f"1 failed. The first is Q1: {failed[0]['error'].rstrip('.')}. " in err
    server.reply = lambda _: GOOD
    code, result, _ = judge(server)
    assert (code, len(server.calls), [row for row in result if "error" in row]) == (0, 5, [])
    assert [row["qid"] for row in result] == ["Q0", "Q1", "Q2", "Q3"]


def test_busy_servers_are_asked_again_as_they_say(judge):
    busy = iter([(429, error("slow down"), {"Retry-After": "0"}), (503, error("overloaded"), {"Retry-After": "0"})])
    server = FakeJudge(lambda _: next(busy, GOOD))
    code, result, _ = judge(server, "--concurrency", "1")
    assert (code, len(server.calls), len(result)) == (0, 6, 4)


def test_a_server_that_stays_busy_leaves_error_rows(judge):
    server = FakeJudge(lambda _: (429, error("quota"), {"Retry-After": "0"}))
    code, result, err = judge(server)
    assert (code, len(result)) == (1, 4)
    assert "0 of 4 verdicts" in err


def test_the_key_is_sent_and_recorded_nowhere(judge, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    code, _, err = judge(FakeJudge(key="sk-secret-1"))
    assert code == 0
    assert "sk-secret-1" not in (tmp_path / FILE).read_text("utf-8") + err
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    code, _, err = judge(FakeJudge(key="sk-secret-1"), "--model", "judge-2")
    assert code == 1
    assert "HTTP 401" in err


def test_an_interruption_leaves_a_valid_file_and_is_continued(judge, tmp_path, monkeypatch):
    from rag_eval.cli import judge as module

    def stop(*_):
        def show(done, errors):
            raise KeyboardInterrupt

        return show

    server = FakeJudge()
    with monkeypatch.context() as patch:
        patch.setattr(module, "progress", stop)
        code, _, err = judge(server, "--concurrency", "1")
    assert code == 130
    assert re.search(
        rf"\ninterrupted after \d answers? in {FILE}.partial. To continue, run the same command again", err
    )
    before = rows(tmp_path / FILE)
    assert 1 <= len(before) < 4
    code, result, _ = judge(server)
    assert (code, len(result)) == (0, 4)
    assert result[: len(before)] == before
    assert not (tmp_path / f"{FILE}.partial").exists()


def test_counts_of_tokens_that_are_none_are_left_out(judge):
    reply = completion(json.dumps(GOOD))
    reply["usage"] = {"prompt_tokens": -5, "completion_tokens": True}
    code, result, err = judge(FakeJudge(lambda _: reply))
    assert (code, {tuple(row["usage"]) for row in result}, " 0 tokens" in err) == (0, {("model",)}, True)


def test_prices_of_the_gates_file_give_the_cost(judge, tmp_path):
    (tmp_path / "eval-gates.yml").write_text("version: 1\nprices: {judge-1: {input: 2, output: 10}}\n", "utf-8")
    _, result, err = judge(FakeJudge())
    assert result[0]["usage"]["cost_usd"] == pytest.approx((900 * 2 + 60 * 10) / 1e6)
    assert f"{FILE}: 4 of 4 verdicts, 3840 tokens, 0.0096 USD\n" in err
    (tmp_path / "eval-gates.yml").write_text("version: 1\nprices: {judge-2: {input: 2, output: 10}}\n", "utf-8")
    _, _, err = judge(FakeJudge(), "--model", "judge-3")
    assert f"{FILE}: 4 of 4 verdicts, 3840 tokens, 0.0000 USD\n" in err


def test_a_model_that_stands_for_another_is_named(judge):
    _, _, err = judge(FakeJudge(lambda _: completion(json.dumps(GOOD), model="judge-1-2026-01-01")))
    assert "judge-1 was asked, but judge-1-2026-01-01 replied. Name that version: --model judge-1-2026-01-01" in err


def test_braces_in_texts_reach_the_judge_as_they_are(judge, tmp_path):
    traces = trace_of(4)
    traces[0]["answer_json"]["claim"] = "{rubric} {input} {question} {qid} ${HOME} }\n{"
    write_rows(tmp_path / "runs/trace.jsonl", traces)
    _, result, _ = judge(FakeJudge(lambda shown: {**GOOD, "unsupported_claims": [shown["answer"]]}))
    assert result[0]["unsupported_claims"] == ["{rubric} {input} {question} {qid} ${HOME} }\n{"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--base-url", "http://127.0.0.1:1/v1"], "does not answer: .* Start the server, or correct --base-url"),
        (["--prompt", "none.txt"], "none.txt: no such file"),
        (["--prompt", "empty.txt"], "has no {input}"),
        (["--rubric", "pipe"], "pipe: is a device or a pipe"),
        (["--gold", "none.jsonl"], "none.jsonl: no such file"),
    ],
)
def test_bad_options_are_refused_with_the_fix(command, judge, tmp_path, words, message):
    (tmp_path / "empty.txt").write_text("Grade.", "utf-8")
    os.mkfifo(tmp_path / "pipe")
    code, _, err = command("judge", "--model", "judge-1", *words)
    assert code == 2
    assert re.search(message, err)
    code, _, err = command("judge")
    assert code == 2
    assert "no model is named" in err


def test_a_file_that_contradicts_itself_is_refused_before_anything_is_asked(judge, tmp_path):
    server = FakeJudge()
    judge(server)
    result = rows(tmp_path / FILE)
    write_rows(tmp_path / FILE, [{**result[0], "groundedness": 1}, *result[1:]])
    code, _, err = judge(server, "--model", "judge-2")
    assert (code, len(server.calls)) == (2, 4)
    assert f"{FILE}:1" in err


def test_the_example_judge_grades_what_the_example_server_answers(judge, command, tmp_path):
    spec = importlib.util.spec_from_file_location("example_judge", ROOT / "examples" / "rag-server" / "judge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.serve(0)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        code, _, err = command("judge", "--base-url", url, "--model", "shared-words-1")
    finally:
        server.shutdown()
        server.server_close()
    assert (code, "4 of 4 verdicts" in err) == (0, True)
    assert {row["groundedness"] for row in rows(tmp_path / FILE)} == {5}


def test_the_judge_gets_the_earlier_turns_of_a_conversation(judge, command, tmp_path):
    golds = gold_of(4)
    history = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here. {question}"}]
    golds[1] |= {"conversation": "C", "turn": 2, "history": history}
    write_rows(tmp_path / "eval/gold.jsonl", golds)
    server = FakeJudge(lambda shown: {**GOOD, "correctness": 2 if shown.get("history") == history else 5})
    _, result, _ = judge(server)
    assert [row["correctness"] for row in result] == [5, 2, 5, 5]
    assert [Contract("verdict").faults(row) for row in result] == [[]] * 4
    _, out, _ = command("score", "--verdicts", FILE, "--format", "json")
    assert json.loads(out)["metrics"]["judge_correctness"]["n"] == 4
    golds[1]["history"][0]["content"] = "When?"
    write_rows(tmp_path / "eval/gold.jsonl", golds)
    _, out, _ = command("score", "--verdicts", FILE, "--format", "json")
    assert json.loads(out)["metrics"]["judge_correctness"]["n"] == 3, "another history is another input"
