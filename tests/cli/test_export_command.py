"""`rag-eval export`: what other tools read, and the way back."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import rag_eval
from cases import ROOT, write_rows

QUICKSTART = ROOT / "examples" / "quickstart"


def files_of(command, tmp_path, form, gold, trace, **more):
    out = tmp_path / form
    words = [word for name, value in more.items() for word in (f"--{name}", value)]
    code, output, err = command("export", form, "--gold", gold, "--trace", trace, "--out", out, *words)
    assert (code, output) == (0, ""), err
    return {path.name: path.read_text("utf-8") for path in out.iterdir()}


def test_trec_files_keep_the_order_and_the_grades(command, tmp_path):
    graded = {"qid": "A 1", "question": "q?", "answerable": True, "gold_claim_substr": [], "gold_citations": ["d1"]}
    unanswerable = {"qid": "U1", "question": "u?", "answerable": False, "gold_claim_substr": [], "gold_citations": []}
    gold = write_rows(tmp_path / "gold.jsonl", [{**graded, "relevance_grades": {"d1": 2, "d2": 0}}, unanswerable])
    ranked = {"qid": "A 1", "retrieved_ids": ["d2", "d1", "d2"], "answer": "x"}
    trace = write_rows(tmp_path / "trace.jsonl", [ranked, {"qid": "U1", "retrieved_ids": ["d9"], "answer": "x"}])
    assert files_of(command, tmp_path, "trec", gold, trace) == {
        "qrels.txt": "A_1 0 d1 2\nA_1 0 d2 0\n",
        "run.txt": "A_1 Q0 d2 1 2 rag-eval\nA_1 Q0 d1 2 1 rag-eval\n",
    }


def test_files_are_written_to_the_current_folder_unless_out_names_another(command, tmp_path, monkeypatch):
    gold = {"qid": "A1", "question": "q?", "answerable": True, "gold_claim_substr": [], "gold_citations": ["d1"]}
    golds = write_rows(tmp_path / "gold.jsonl", [gold])
    traces = write_rows(tmp_path / "trace.jsonl", [{"qid": "A1", "retrieved_ids": ["d1"], "answer": "x"}])
    monkeypatch.chdir(tmp_path)
    assert command("export", "trec", "--gold", str(golds), "--trace", str(traces))[0] == 0
    assert (tmp_path / "qrels.txt").read_text() == "A1 0 d1 1\n"


def test_ragas_samples_come_back_as_the_same_traces(command, tmp_path):
    gold, trace = QUICKSTART / "gold.jsonl", QUICKSTART / "bad.jsonl"
    text = files_of(command, tmp_path, "ragas", gold, trace)["samples.jsonl"]
    (tmp_path / "samples.jsonl").write_text(text, encoding="utf-8")
    code, back, _ = command("import", "ragas-trace", tmp_path / "samples.jsonl")
    assert code == 0
    before = {row["qid"]: row for row in map(json.loads, trace.read_text("utf-8").splitlines())}
    after = {row["qid"]: row for row in map(json.loads, back.splitlines())}
    assert after.keys() == before.keys()
    for qid, row in after.items():
        assert row["answer_json"]["claim"] == before[qid]["answer_json"]["claim"]
        assert row.get("retrieved_ids", []) == before[qid].get("retrieved_ids", [])


def test_deepeval_and_promptfoo_cases_come_back_as_gold(command, tmp_path):
    gold, trace = QUICKSTART / "gold.jsonl", QUICKSTART / "good.jsonl"
    items = [json.loads(line) for line in gold.read_text("utf-8").splitlines()]
    cases = json.loads(files_of(command, tmp_path, "deepeval", gold, trace)["test_cases.json"])
    assert [case["input"] for case in cases] == [item["question"] for item in items]
    tests = json.loads(files_of(command, tmp_path, "promptfoo", gold, trace)["tests.json"])
    results = [{"testIdx": index, "vars": test["vars"], "testCase": test} for index, test in enumerate(tests)]
    (tmp_path / "results.json").write_text(json.dumps({"evalId": "e", "config": {}, "results": {"results": results}}))
    back = [json.loads(line) for line in command("import", "promptfoo", tmp_path / "results.json")[1].splitlines()]
    remaining = ("qid", "question", "answerable", "gold_citations", "gold_claim_substr")
    assert [{name: row[name] for name in remaining} for row in back] == [
        {name: item[name] for name in remaining} for item in items
    ]


def test_scores_go_to_the_traces_that_they_are_of(command, tmp_path):
    gold, trace = tmp_path / "gold.jsonl", tmp_path / "trace.jsonl"
    gold.write_bytes((QUICKSTART / "gold.jsonl").read_bytes())
    rows = [json.loads(line) for line in (QUICKSTART / "bad.jsonl").read_text("utf-8").splitlines()]
    write_rows(trace, [{**row, "source": {"tool": "langfuse", "id": f"t-{row['qid']}"}} for row in rows])
    report = tmp_path / "report.json"
    report.write_text(command("score", "--gold", gold, "--trace", trace, "--format", "json")[1], encoding="utf-8")
    lines = files_of(command, tmp_path, "langfuse-scores", gold, trace, report=report)["scores.jsonl"].splitlines()
    packed = tmp_path / "packed.json"
    packed.write_bytes(gzip.compress(Path(report).read_bytes()))
    words = "export", "langfuse-scores", "--gold", gold, "--trace", trace, "--report", packed, "--out", tmp_path / "p"
    assert command(*words)[0] == 0
    assert (tmp_path / "p/scores.jsonl").read_text("utf-8").splitlines() == lines
    scores = [json.loads(line) for line in lines]
    wrong = {score["traceId"]: score["value"] for score in scores if score["name"] == "rag-eval"}
    assert wrong["t-Q02"] == "NOT_RETRIEVED"
    assert {score["value"] for score in scores if score["name"] == "precision"} == {0.0, 1.0}
    assert len({score["id"] for score in scores}) == len(scores)
    data = json.loads(files_of(command, tmp_path, "openinference", gold, trace, report=report)["annotations.json"])[
        "data"
    ]
    assert {"trace_id": "t-Q02", "annotator_kind": "CODE", "name": "precision", "result": {"score": 0.0}} in data


def conversation(tmp_path):
    """Write two turns, the second one wrong, traces that name no qid, and gates; return the options of score."""
    item = {"answerable": True, "conversation": "C", "gold_claim_substr": ["it is so"], "gold_citations": ["d1"]}
    turns = [{"qid": f"C-{turn}", "question": f"turn {turn}?", "turn": turn, **item} for turn in (1, 2)]
    answers = [{"claim": claim, "citations": ["d1"]} for claim in ("It is so.", "No.")]
    traces = [
        {"conversation": "C", "turn": turn, "retrieved_ids": ["d1"], "answer_json": answer}
        | {"latency_ms": {"total": 10 * turn}, "source": {"tool": "langfuse", "id": f"t{turn}"}}
        for turn, answer in enumerate(answers, 1)
    ]
    gates = tmp_path / "gates.yml"
    gates.write_text("version: 1\ngates: {conversation_pass: {min: 0}, latency_total_ms.p95: {max: 99}}\n")
    gold, trace = write_rows(tmp_path / "gold.jsonl", turns), write_rows(tmp_path / "trace.jsonl", traces)
    return ["--gold", gold, "--trace", trace, "--gates", gates]


def test_every_turn_is_exported_with_its_own_score(command, tmp_path):
    words = conversation(tmp_path)
    gold, trace, report = words[1], words[3], tmp_path / "report.json"
    report.write_text(command("score", *words, "--format", "json")[1], encoding="utf-8")
    assert len(files_of(command, tmp_path, "trec", gold, trace)["run.txt"].splitlines()) == 2
    lines = files_of(command, tmp_path, "langfuse-scores", gold, trace, report=report)["scores.jsonl"].splitlines()
    scores = {(score["traceId"], score["name"]): score["value"] for score in map(json.loads, lines)}
    assert scores == {
        ("t1", "rag-eval"): "OK",
        ("t1", "conversation_pass"): 1.0,
        ("t1", "latency_total_ms"): 10.0,
        ("t2", "rag-eval"): "WRONG_CLAIM",
        ("t2", "conversation_pass"): 0.0,
        ("t2", "latency_total_ms"): 20.0,
    }


def test_every_form_shows_whether_a_turn_is_right(command, tmp_path):
    words = conversation(tmp_path)
    table = list(csv.DictReader(command("score", *words, "--format", "csv")[1].splitlines()))
    assert [row["conversation_pass"] for row in table] == ["1.0", "0.0"]
    frame = rag_eval.score(words[1], words[3], gates=words[5]).to_pandas()
    assert list(frame["conversation_pass"]) == [1.0, 0.0]
    code, text, _ = command("explain", "C-2", *words)
    assert (code, re.search(r"conversation_pass +wrong turn\n", text) is not None) == (0, True)
    document = json.loads(command("explain", "C-1", *words, "--format", "json")[1])
    assert document["cases"][0]["scores"]["conversation_pass"] == 1.0


def test_traces_are_paired_as_score_pairs_them(command, tmp_path):
    """By the question only if they have no id and one gold item asks it; a trace without a gold item is kept."""
    item = {"answerable": True, "gold_claim_substr": [], "gold_citations": ["d1"]}
    questions = {"A1": "one?", "A2": "one?", "A3": "three?"}
    golds = [{"qid": qid, "question": question, **item} for qid, question in questions.items()]
    gold = write_rows(tmp_path / "gold.jsonl", golds)
    names = {"q": "one?"}, {"q": "three?"}, {"qid": "other", "q": "three?"}, {"q": "four?"}, {"q": "five?"}
    rows = [{**name, "answer": f"answer {number}"} for number, name in enumerate(names)]
    trace = write_rows(tmp_path / "trace.jsonl", rows)
    lines = files_of(command, tmp_path, "ragas", gold, trace)["samples.jsonl"].splitlines()
    samples = [(sample.get("qid"), sample["response"]) for sample in map(json.loads, lines)]
    answers = [f"answer {number}" for number in range(len(names))]
    assert samples == list(zip((None, "A3", "other", None, None), answers, strict=True))


def test_the_results_of_several_retrievals_are_exported(command, tmp_path):
    item = {"qid": "A1", "question": "q?", "answerable": True, "gold_claim_substr": [], "gold_citations": ["d2"]}
    hops = [[{"id": "d1", "text": "one", "newer": 1}], [{"id": "d2", "text": "two"}, {"id": "d1", "text": "one"}]]
    found = {"qid": "A1", "answer": "x", "retrievals": [{"chunks": chunks} for chunks in hops]}
    gold, trace = write_rows(tmp_path / "gold.jsonl", [item]), write_rows(tmp_path / "trace.jsonl", [found])
    code, _, err = command("validate", trace)
    assert (code, "unknown field 'retrievals.chunks.newer' is ignored" in err) == (0, True), err
    run = files_of(command, tmp_path, "trec", gold, trace)["run.txt"]
    assert run == "A1 Q0 d1 1 2 rag-eval\nA1 Q0 d2 2 1 rag-eval\n"
    sample = json.loads(files_of(command, tmp_path, "ragas", gold, trace)["samples.jsonl"])
    assert (sample["retrieved_context_ids"], sample["retrieved_contexts"]) == (["d1", "d2"], ["one", "two"])
    new = write_rows(tmp_path / "new.jsonl", [{"id": "n2", "text": "two"}])
    code, text, err = command("gold", "relink", "--gold", gold, "--old", trace, "--new", new)
    assert (code, "`d2` | `n2`" in text) == (0, True), err


def test_nothing_to_export_and_files_in_the_way_are_refused(command, tmp_path):
    gold, trace = QUICKSTART / "gold.jsonl", QUICKSTART / "good.jsonl"
    report = tmp_path / "report.json"
    report.write_text(command("score", "--gold", gold, "--trace", trace, "--format", "json")[1], encoding="utf-8")
    words = ["--gold", gold, "--trace", trace, "--out", tmp_path]
    code, _, err = command("export", "langfuse-scores", *words, "--report", report)
    why = "the traces have no ids of their source, or the format fits no item\n"
    assert (code, err.endswith(f"nothing to export: {why}")) == (2, True), err
    code, _, err = command("export", "trec", *words)
    wrote = rf"(wrote {re.escape(str(tmp_path))}/\S+: [0-9]+ lines?\n)+"
    assert (code, re.fullmatch(wrote, err) is not None) == (0, True), err
    code, _, err = command("export", "trec", *words)
    assert (code, "exists" in err) == (2, True)
    assert command("export", "trec", *words, "--force")[0] == 0
    assert command("export", "trec", "--gold", tmp_path / "none", "--trace", trace)[0] == 2
