"""A RAG server's golden set as gold, and its saved runs as baselines."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import HERE, RUN, golds, problems
from rag_eval import api
from rag_eval.importers import Account
from rag_eval.importers.rag_server import converted
from seams import Contract, from_json, main

FORM = Contract("rag-server-golden")


# --- the golden set ---------------------------------------------------------------------------------------------------


def question(**fields):
    return {"question": "How?", **fields}


def golden(tmp_path, *questions):
    path = tmp_path / "golden_qa.json"
    path.write_text(json.dumps(list(questions), indent=1), encoding="utf-8")
    return path


def golden_row(**fields):
    return converted(question(**fields), Account())


def test_answerable_questions_that_name_no_evidence_are_told():
    account = Account()
    for fields in ({"gold_doc_ids": ["d"]}, {}, {"gold_passages": [{"chunk_id": "c"}]}, {"is_unanswerable": True}):
        converted(question(**fields), account)
    assert account.lines()[-1] == (
        "answerable items without a passage or document: precision counts any answer to them as right"
    )


def test_passages_are_citations_documents_and_grades():
    items, wrong, _ = golds(HERE / "golden_qa.json")
    first, second, third = items.values()
    assert wrong == []
    assert (first.citations, first.relevance_grades) == (("filter-2", "faq-9"), {"filter-2": 100, "faq-9": 50})
    assert (first.relevant_docs, first.meta) == (("filter.html", "faq.html"), {"document": "filter.html"})
    assert (second.qid, second.citations, second.relevance_grades) == ("golden:7", ("parts-1",), None)
    assert (second.relevant_docs, second.category, second.difficulty) == (("parts.html", "old.html"), "spares", "hard")
    assert second.meta == {"reviewed": True, "by": "lab"}
    assert (third.answerable, third.citations, third.expected_answer) == (False, (), None)


@pytest.mark.parametrize(
    ("fields", "answerable"),
    [
        ({}, True),
        ({"is_unanswerable": False}, True),
        ({"is_unanswerable": True}, False),
        ({"query_type": "Unanswerable"}, False),
        ({"query_type": "factual"}, True),
    ],
)
def test_a_question_is_answerable_unless_it_says_otherwise(fields, answerable):
    assert golden_row(**fields)["answerable"] is answerable


def test_the_name_of_a_question_does_not_hang_on_its_place(tmp_path):
    entry = golds(golden(tmp_path, question(), question(question="Why?")))[0]
    assert set(entry) == set(golds(golden(tmp_path, question(question="Why?"), question()))[0])
    assert {item.question for item in entry.values()} == {"How?", "Why?"}


def test_a_document_alone_is_a_slice_and_no_label():
    assert golden_row(document="a.html") == {
        "qid": golden_row()["qid"],
        "question": "How?",
        "answerable": True,
        "gold_claim_substr": [],
        "gold_citations": [],
        "meta": {"document": "a.html"},
    }


passages = st.lists(
    st.text(max_size=3)
    | st.fixed_dictionaries(
        {},
        optional={
            "doc_id": st.sampled_from(["d", "e"]),
            "chunk_id": st.sampled_from(["c", "b"]),
            "text": st.text(max_size=3),
            "relevance_score": st.floats(0, 1) | st.integers(0, 1),
        },
    ),
    max_size=3,
)
questions = st.fixed_dictionaries(
    {"question": st.text(min_size=1, max_size=5)},
    optional={
        "id": st.text(min_size=1, max_size=5),
        "answer": st.none() | st.text(max_size=3),
        "expected_answer": st.none() | st.text(max_size=3),
        "is_unanswerable": st.booleans(),
        "gold_passages": passages,
        "gold_doc_ids": st.lists(st.sampled_from(["d", "f"]), max_size=2),
        "query_type": st.sampled_from(["factual", "unanswerable"]),
        "difficulty": st.sampled_from(["easy", "hard"]),
        "domain": st.text(max_size=3),
        "document": st.text(max_size=3),
        "metadata": st.dictionaries(st.text(max_size=3), st.booleans() | st.integers(0, 9) | st.lists(st.none())),
        "evidence": st.lists(st.none()),
    },
)


@given(questions)
def test_every_question_of_the_form_comes_to_a_gold_row(asked):
    assert list(FORM.faults(asked)) == []
    row = converted(asked, Account())
    assert list(Contract("gold").faults(row)) == []
    assert row["answerable"] or not row["gold_citations"]
    scored = [p for p in asked.get("gold_passages", []) if isinstance(p, dict) and "chunk_id" in p]
    for item in scored if "relevance_grades" in row else ():
        assert row["relevance_grades"][item["chunk_id"]] in {
            round(100 * p.get("relevance_score", 1)) for p in scored if p["chunk_id"] == item["chunk_id"]
        }


def told(**fields):
    account = Account()
    return converted(question(**fields), account), account.dropped_lines


def test_what_stands_beside_another_word_for_it_is_told():
    row, left_out = told(answer="X", expected_answer="Y")
    assert (row["expected_answer"], left_out) == (
        "X",
        ["left out: expected_answer (answer is also given and differs)"],
    )
    row, left_out = told(document="D", metadata={"document": "other", "by": "lab"})
    assert (row["meta"], left_out) == (
        {"document": "D", "by": "lab"},
        ["left out: metadata.document (document is also given and differs)"],
    )
    equal = {"answer": "X", "expected_answer": "X", "document": "D", "metadata": {"document": "D"}}
    assert told(**equal)[1] == told(answer="", expected_answer="Y")[1] == []


@given(st.permutations([{}, {"relevance_score": 0.5}, {"relevance_score": 0.2}, {"relevance_score": 0.5}]))
def test_of_several_grades_of_a_chunk_the_highest_counts_and_the_others_are_told(scores):
    row, left_out = told(
        gold_passages=[{"chunk_id": "c", **score} for score in scores] + [{"chunk_id": "b", **scores[0]}]
    )
    assert row.get("relevance_grades", {"c": 100})["c"] == 100
    assert [line.split(", ")[0] for line in left_out] == [
        "left out: another relevance_score of the same chunk (the highest one counts)"
    ]


@given(questions)
def test_no_answer_document_or_grade_is_lost_untold(asked):
    account = Account()
    row = converted(asked, account)
    remaining, message = repr(row), repr(account.dropped_lines)
    for field in ("answer", "expected_answer"):
        assert (asked.get(field) or "") in ("", row.get("expected_answer")) or field in message
    scored = [p for p in asked.get("gold_passages", []) if isinstance(p, dict) and "chunk_id" in p]
    grades = {
        chunk: {round(100 * p.get("relevance_score", 1)) for p in scored if p["chunk_id"] == chunk} for chunk in "cb"
    }
    assert any(len(grade) > 1 for grade in grades.values()) == ("another relevance_score" in message), remaining


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (question(question="Why?", is_unanswerable="no"), ["/is_unanswerable", "'no' is not true or false"]),
        (question(question="Why?", gold_passages=[{"chunk_id": 7}]), ["/gold_passages/0/chunk_id"]),
        (question(question="Why?", gold_passages=[7]), ["/gold_passages/0", "Write an object"]),
        (question(question="Why?", gold_passages=[{"relevance_score": 2}]), ["relevance_score", "2 is more than 1"]),
        (question(question="Why?", difficulty="extreme"), ["/difficulty"]),
        (question(question=""), ["/question", "the text is empty"]),
        ({"answer": "x"}, ["'question' is missing"]),
        (question(), ["/question: 'How?' is already used on line 2"]),
        ("How?", ["'How?' is not an object"]),
    ],
)
def test_what_is_wrong_with_a_golden_set_is_said(tmp_path, bad, words):
    (line,) = problems(golden(tmp_path, question(), bad))
    assert [word for word in words if word not in line] == []


def test_fields_that_nothing_reads_are_named_with_the_reason():
    account = Account()
    converted(question(context_hint="x", source_file="x", evidence=[], context_passages=[]), account)
    assert [line.split(" (")[0] for line in account.lines()[:4]] == [
        f"left out: {name}" for name in ("context_hint", "context_passages", "evidence", "source_file")
    ]


def test_two_questions_of_one_id_are_a_problem(tmp_path):
    lines = problems(golden(tmp_path, question(id="x"), question(id="x", question="Why?")))
    assert [line.split(": ", 1)[1] for line in lines] == [
        "/id: 'x' is already used on line 2. Give each question a unique id, or remove one."
    ]


def test_an_array_of_gold_rows_is_still_told_what_is_wrong_with_it(tmp_path):
    lines = problems(golden(tmp_path, {"qid": "A", "question": "?", "answerable": True, "gold_citations": []}))
    assert [line.partition("Write ")[2] for line in lines] == ["one item per line; jq -c '.[]' does it."]


def test_a_set_whose_first_question_is_longer_than_a_block_is_known_too(tmp_path):
    long = question(gold_passages=[{"chunk_id": "c", "text": "word " * 50_000}])
    items, wrong, _ = golds(golden(tmp_path, long, question(question="Why?")))
    assert ([item.question for item in items.values()], wrong) == (["How?", "Why?"], [])


def test_a_broken_array_is_said_to_be_broken(tmp_path):
    path = tmp_path / "golden_qa.json"
    path.write_text('[{"question": "How?"}, {"question": ]')
    assert any("FILE:1:" in line for line in problems(path))


# --- saved runs -------------------------------------------------------------------------------------------------------


def run_of(tmp_path, **changes):
    path = tmp_path / "run-1.json"
    path.write_text(json.dumps({**json.loads(RUN.read_text("utf-8")), **changes}), encoding="utf-8")
    return path


def metrics_of(*entries):
    return {"scorecard": {"metrics": [{"value": 0.5, "sample_size": 9, **entry} for entry in entries]}}


@pytest.fixture
def baseline(command, tmp_path):
    out = tmp_path / "baseline.json"
    code, _, output = command("import", "rag-server-run", RUN, "--out", out)
    assert code == 0
    return from_json(json.loads(out.read_text("utf-8"))), output


def test_a_saved_run_is_a_report_of_values_without_questions(baseline, command, tmp_path):
    report, account = baseline
    assert report.questions == ()
    assert (report.inputs[0].role, report.inputs[0].path) == ("baseline", str(RUN))
    fields = ("id", "name", "created_at", "completed_at", "config", "scorecard", "question_count", "error_count")
    assert [name for name in fields if f"left out: {name} " in account] == []
    values = {name: (result.value, result.n) for name, result in report.metrics.items()}
    assert values["recall@5"] == (0.75, 48)
    assert values["ndcg@10"] == (0.63, 48)
    assert values["abstention_accuracy"] == (0.9, 48)
    assert (values["over_refusal"], values["under_refusal"]) == ((0.05, 40), (0.25, 8))
    assert report.completeness == (50, 48, 2, 0, 0, 2)
    assert report.run["config"]["embedding_model"] == "minilm"
    assert report.inputs[0].sha256 == hashlib.sha256(RUN.read_bytes()).hexdigest()
    assert command("validate", tmp_path / "baseline.json")[1].endswith("valid, a report file\n")


def test_only_metrics_of_the_same_definition_are_under_a_contract(baseline):
    report, output = baseline
    assert set(report.contracts) == {"recall@1", "recall@5", "mrr", "ndcg@10"}
    ours = api.score(HERE / "golden_qa.json", HERE / "golden-trace.jsonl").contracts
    assert all(ours[name] == contract for name, contract in report.contracts.items())
    assert "read as precision@5, which is not compared: it divides by" in output
    assert "left out: faithfulness (an LLM judged it" in output
    assert "left out: weighted_score" in output
    assert "left out: section_accuracy (it has no value in that run)" in output


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (metrics_of({"name": "mrr", "value": 1.5}), ["/scorecard/metrics/0/value", "mrr cannot be 1.5"]),
        (metrics_of({"name": "mrr", "value": -1}), ["mrr cannot be -1"]),
        (metrics_of({"name": "mrr"}, {"name": "mrr"}), ["/scorecard/metrics/1/name", "gives mrr a second time"]),
        (metrics_of({"name": "mrr", "value": "high"}), ["/scorecard/metrics/0/value", "'high' is not"]),
        ({"scorecard": None}, ["/scorecard", "null is not an object"]),
        ({"question_count": -1}, ["/question_count"]),
        ({"question_count": 2**53}, ["/question_count"]),
        (metrics_of({"name": "mrr", "sample_size": 2**53}), ["/scorecard/metrics/0/sample_size"]),
        (metrics_of({"name": "latency_p95", "value": 1e300}), ["latency_total_ms.p95 cannot be 1e+300"]),
        (metrics_of({"name": "cost_per_query", "value": 1.1e15}), ["cost_usd cannot be"]),
    ],
)
def test_what_is_wrong_with_a_saved_run_is_said(command, tmp_path, changes, words):
    path = run_of(tmp_path, **changes)
    code, out, err = command("import", "rag-server-run", path)
    assert (code, out) == (2, "")
    assert err.startswith(f"{path}: ")
    assert [word for word in words if word not in err] == []


numbers = st.sampled_from([0, 1, 2**53 - 1, 2**53, 2**63, 1e15, 1.1e15, 1e300, -1]) | st.floats(0, 1)


@given(st.sampled_from(["mrr", "recall_at_5", "latency_p95", "cost_per_query"]), numbers, numbers, numbers)
def test_what_is_written_of_a_run_is_a_valid_report(name, value, size, asked):
    with TemporaryDirectory() as folder:
        path = run_of(Path(folder), question_count=asked, **metrics_of({"name": name, "value": value}))
        made = Path(folder) / "baseline.json"
        path.write_text(path.read_text("utf-8").replace('"sample_size": 9', f'"sample_size": {size}'), "utf-8")
        code = main(["import", "rag-server-run", str(path), "--out", str(made)])
        assert (code == 0) == made.exists()
        assert code == 2 or main(["validate", str(made)]) == 0


def test_names_that_we_do_not_have_are_left_out(command, tmp_path):
    path = run_of(tmp_path, **metrics_of({"name": "recall_at_0"}, {"name": "##[x]\n"}, {"name": "recall_at_7"}))
    code, out, err = command("import", "rag-server-run", path)
    assert (code, list(json.loads(out)["metrics"])) == (0, ["recall@7"])
    assert "left out: recall_at_0 (rag-eval has no such metric)" in err
    assert "##[" not in err


def test_a_run_without_a_count_of_errors_has_none(command, tmp_path):
    path = run_of(tmp_path)
    run = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({name: value for name, value in run.items() if name != "error_count"}), "utf-8")
    report = json.loads(command("import", "rag-server-run", path)[1])
    assert len(report["notes"]) == 1


GATES = "version: 1\ngates:\n  recall@5: {{min: 0.1, max_drop: 0.02}}\nbaseline: {{report: {}}}\n"


def test_a_saved_run_is_a_baseline_as_it_is(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(RUN, "run-5f0e9c21.json")
    command("import", "rag-server-run", RUN, "--out", "baseline.json")
    result = []
    for name in ("run-5f0e9c21.json", "baseline.json"):
        (tmp_path / "eval-gates.yml").write_text(GATES.format(name), encoding="utf-8")
        inputs = ["--gold", HERE / "golden_qa.json", "--trace", HERE / "golden-trace.jsonl"]
        report = json.loads(command("score", *inputs, "--format", "json", "--quiet")[1])
        result.append(report)
    assert result[0]["gates"] == result[1]["gates"]
    assert [item["code"] for item in result[0]["findings"]] == ["baseline-values-alone"]
    assert ": 4 of its " in result[0]["findings"][0]["message"]
    assert result[0]["findings"][0]["fix"].endswith(" run: rag-eval import rag-server-run FILE")


@pytest.mark.parametrize(
    ("theirs", "ours", "before", "outcome"),
    [
        ("recall_at_1", "recall@1", 0.4, "passed"),
        ("recall_at_1", "recall@1", 1, "failed"),
        ("precision_at_1", "precision@1", 0.1, "no_data"),
    ],
)
def test_a_margin_is_held_against_the_values_of_a_saved_run(
    command, tmp_path, monkeypatch, theirs, ours, before, outcome
):
    monkeypatch.chdir(tmp_path)
    run_of(tmp_path, **metrics_of({"name": theirs, "value": before}))
    (tmp_path / "eval-gates.yml").write_text(GATES.format("run-1.json").replace("recall@5", ours), encoding="utf-8")
    inputs = ["--gold", HERE / "golden_qa.json", "--trace", HERE / "golden-trace.jsonl"]
    report = json.loads(command("score", *inputs, "--format", "json", "--quiet")[1])
    (margin,) = [gate for gate in report["gates"] if gate["direction"] == "max_drop"]
    assert margin["outcome"] == outcome
    if outcome != "no_data":
        assert (margin["comparison"]["baseline"], margin["comparison"]["p"]) == (before, None)


def test_a_saved_run_that_is_broken_is_no_baseline(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_of(tmp_path, **metrics_of({"name": "mrr", "value": 7})).rename(tmp_path / "run-1.json")
    (tmp_path / "eval-gates.yml").write_text(GATES.format("run-1.json"), encoding="utf-8")
    code, out, err = command("score", "--gold", HERE / "golden_qa.json", "--trace", HERE / "golden-trace.jsonl")
    assert (code, out) == (2, "")
    assert "run-1.json: /scorecard/metrics/0/value: mrr cannot be 7" in err
