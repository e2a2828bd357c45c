"""The gold forms of the source documents: a right answer is right in each, and each kind of wrong answer is named."""

from __future__ import annotations

import json

import pytest

import rag_eval
from cases import gold_row, make_case, trace_row, write_rows
from rag_eval.gold.item_checks import GoldSample
from rag_eval.gold.lint import lint
from seams import Policy, ProblemCollector, Reader, label, read_gold

QUESTION = "How long are invoices kept?"
RIGHT, WRONG, REFUSAL = "They are kept for 30 days.", "They are kept for a week.", "not in context"
PLACE = {"doc_id": "d1", "rel_path": "manual.md", "heading_path": "Data >  Invoices", "section": "4.2"}
EVIDENCE = {"id": "e1", "text": "Invoices are\nkept for   30 days.", **PLACE}
OTHERS = [
    {"id": f"o{n}", "text": "Nothing.", "doc_id": f"x{n}", "rel_path": f"x{n}.md", "heading_path": "", "section": "9"}
    for n in range(6)
]
TEXTS = {"gold_claim_substr": ["30 days"]}


def rows(**fields):
    """Write gold as JSON Lines: one answerable item and one that is not."""

    def write(folder):
        unanswerable = gold_row(qid="Q2", question="Who won?", answerable=False)
        return write_rows(folder / "gold.jsonl", [gold_row(question=QUESTION, **TEXTS, **fields), unanswerable])

    return write


def array(folder):
    path = folder / "gold.json"
    items = [
        {"qid": "Q1", "q": QUESTION, "answerable": True, "gold_ids": ["e1"], "gold_claim": "30 days"},
        {"qid": "Q2", "q": "Who won?", "answerable": False, "gold_ids": [], "gold_claim": ""},
    ]
    path.write_text(json.dumps(items), "utf-8")
    return path


def labels(**files):
    """Write gold as a folder of label files."""

    def write(folder):
        cases = [{"case_id": "Q1", "query": QUESTION}, {"case_id": "Q2", "query": "Who won?"}]
        write_rows(folder / "labels" / "cases.jsonl", cases)
        ends = [{"case_id": "Q1", "expected_outcome": "success"}, {"case_id": "Q2", "expected_outcome": "no_results"}]
        write_rows(folder / "labels" / "pipeline_labels.jsonl", ends)
        for name, fields in files.items():
            write_rows(folder / "labels" / f"{name}_labels.jsonl", [{"case_id": "Q1", **fields}])
        return folder / "labels"

    return write


def golden(**fields):
    """Write gold as a RAG server's golden set, imported."""

    def write(folder):
        path = folder / "golden.json"
        items = [
            {"id": "Q1", "question": QUESTION, "answer": "30 days", **fields},
            {"id": "Q2", "question": "Who won?", "is_unanswerable": True},
        ]
        path.write_text(json.dumps(items), "utf-8")
        from seams import main

        assert main(["import", "rag-server-golden", str(path), "--out", str(folder / "gold.jsonl")]) == 0
        return folder / "gold.jsonl"

    return write


CHUNKS = {"relevant_chunks": ["e1"], "chunk_relevance_grades": {"e1": 3}}
DOCS = {"relevant_docs": ["d1"], "relevance_grades": {"d1": 3}}
SUPPORT = {"rel_path": "manual.md", "heading_path": "Data"}
FORMS = {
    "reference": rows(gold_citations=["e1"]),
    "array": array,
    "grades": rows(relevance_grades={"e1": 3, "o1": 0}),
    "supports": rows(supports=[SUPPORT]),
    "supports-with-snippets": rows(supports=[{**SUPPORT, "snippets": ["nowhere", "are kept\tfor 30 days"]}]),
    "supports-in-groups": rows(supports=[SUPPORT, {**SUPPORT, "rel_path": "old.md"}], required_support_groups=[[0, 1]]),
    "labels-of-chunks": labels(retrieval={**DOCS, **CHUNKS}),
    "labels-of-documents": labels(retrieval=DOCS),
    "labels-of-citations": labels(groundedness={"expected_citations": ["d1"]}),
    "labels-of-all": labels(retrieval={**DOCS, **CHUNKS}, groundedness={"expected_citations": ["d1"]}),
    "golden-passages": golden(gold_passages=[{"doc_id": "d1", "chunk_id": "e1"}]),
    "golden-documents": golden(gold_doc_ids=["d1"]),
    "sections": rows(sections=[{"doc_id": "d1", "section": "4.2"}]),
    "documents": rows(relevant_docs=["d1"]),
}
BY_DOCUMENT = ("labels-of-documents", "labels-of-citations", "labels-of-all", "golden-documents", "documents")
WITH_TEXTS = (
    "reference",
    "grades",
    "supports",
    "supports-with-snippets",
    "supports-in-groups",
    "sections",
    "documents",
)
EVERY = pytest.mark.parametrize("form", FORMS)


def run(folder, form, claim=RIGHT, cites=("e1",), chunks=(EVIDENCE, *OTHERS[:2])):
    """The report of one answer to the answerable question; the other one is refused."""
    traces = [
        {"qid": "Q1", "chunks": list(chunks), "answer_json": {"claim": claim, "citations": list(cites)}},
        {"qid": "Q2", "chunks": [], "answer_json": {"claim": REFUSAL, "citations": []}},
    ]
    return rag_eval.score(FORMS[form](folder), write_rows(folder / "trace.jsonl", traces))


def labelled(report):
    return next(case.label for case in report.questions if case.qid == "Q1")


@EVERY
def test_a_right_answer_is_right(tmp_path, form):
    report = run(tmp_path, form)
    assert (labelled(report), report.passed, report.diagnosis, report.findings) == ("OK", True, (), ())
    names = ["precision", "chr", "hit_precision", "chr_answerable", "citation_precision"]
    assert {name: report.metrics[name].exact for name in names} == dict.fromkeys(names, "1")
    assert report.metrics["citation_recall"].value == (0.5 if form == "supports-in-groups" else 1)


@pytest.mark.parametrize("form", BY_DOCUMENT)
def test_a_document_may_be_cited_by_its_own_id(tmp_path, form):
    report = run(tmp_path, form, cites=["d1"])
    assert (labelled(report), report.passed, report.findings) == ("OK", True, ())


@EVERY
def test_gold_is_not_called_empty(tmp_path, form):
    reader = Reader(ProblemCollector(), root=None)
    codes = {item.code for item in lint(GoldSample(read_gold(reader, str(FORMS[form](tmp_path))).values(), Policy()))}
    assert codes.isdisjoint({"no-citation", "gate-without-items", "gate-out-of-reach"})


LABELS = {
    "OVER_REFUSAL_EVIDENCE_PRESENT": {"claim": REFUSAL, "cites": []},
    "OVER_REFUSAL_NOT_RETRIEVED": {"claim": REFUSAL, "cites": [], "chunks": OTHERS},
    "NOT_RETRIEVED": {"cites": ["o1"], "chunks": OTHERS},
    "BELOW_K": {"cites": ["o1"], "chunks": [*OTHERS, EVIDENCE]},
    "CITED_UNRETRIEVED": {"cites": ["e1", "invented"]},
    "NOT_CITED": {"cites": ["o1"]},
}


@EVERY
@pytest.mark.parametrize("name", LABELS)
def test_a_wrong_answer_is_named(tmp_path, form, name):
    report = run(tmp_path, form, **LABELS[name])
    assert labelled(report) == name
    assert report.metrics["precision"].exact == (None if name.startswith("OVER") else "0")
    assert not report.passed


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_without_citations_is_not_cited(tmp_path, form):
    assert labelled(run(tmp_path, form, cites=[])) == "NOT_CITED"


@pytest.mark.parametrize("form", WITH_TEXTS)
def test_a_wrong_claim_is_named(tmp_path, form):
    assert labelled(run(tmp_path, form, claim=WRONG)) == "WRONG_CLAIM"


@pytest.mark.parametrize(
    ("support", "chunk", "name"),
    [
        ({"snippets": ["for 30 days"]}, {"text": "kept for\n  30\u00a0days"}, "OK"),
        ({"snippets": ["for  30\ndays"]}, {"text": "kept for 30 days"}, "OK"),
        ({"snippets": ["for 30 days"]}, {"text": "kept for30 days"}, "NOT_RETRIEVED"),
        ({"snippets": [" \n"]}, {"text": "kept for 30 days"}, "NOT_RETRIEVED"),
        ({}, {"rel_path": "other.md"}, "NOT_RETRIEVED"),
        ({}, {"heading_path": "Dates"}, "NOT_RETRIEVED"),
    ],
)
def test_an_anchor_matches_a_chunk_whatever_its_white_space(support, chunk, name):
    gold = {**TEXTS, "supports": [{**SUPPORT, **support}]}
    trace = {"answer_json": {"claim": RIGHT, "citations": ["e1"]}, "chunks": [{**EVIDENCE, **chunk}]}
    assert label(make_case(gold, trace)) == name


def test_gold_citations_count_before_anchors():
    gold = {**TEXTS, "gold_citations": ["o1"], "supports": [SUPPORT]}
    trace = {"answer_json": {"claim": RIGHT, "citations": ["e1"]}, "chunks": [EVIDENCE, OTHERS[1]]}
    assert label(make_case(gold, trace)) == "NOT_CITED"


def test_an_item_without_evidence_wants_an_answer_that_cites_nothing():
    for cites, name in (([], "OK"), (["e1"], "NOT_CITED")):
        trace = {"answer_json": {"claim": RIGHT, "citations": cites}, "chunks": [EVIDENCE]}
        assert label(make_case(TEXTS, trace)) == name


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"supports": [SUPPORT]}, ["evidence     manual.md > Data (by support)", "cites it     e1"]),
        ({"sections": [{"doc_id": "d1", "section": "4.2"}]}, ["evidence     d1, section 4.2 (by section)"]),
        ({"relevant_docs": ["d1", "d2"]}, ["evidence     d1, d2 (by doc)", "cites it     e1"]),
        ({"relevance_grades": {"e1": 2}}, ["evidence     e1 (grade 2) (by chunk)"]),
    ],
)
def test_explain_says_what_the_evidence_is(tmp_path, capsys, fields, said):
    from seams import main

    trace = {"qid": "Q1", "answer_json": {"claim": RIGHT, "citations": ["e1"]}, "chunks": [EVIDENCE]}
    files = rows(**fields)(tmp_path), write_rows(tmp_path / "trace.jsonl", [trace])
    assert main(["explain", "Q1", "--gold", str(files[0]), "--trace", str(files[1])]) == 0
    shown = capsys.readouterr().out
    assert [line for line in said if line not in shown] == []


# --- blocked answers -------------------------------------------------------------------------------------------------

ANSWERED = {"answer_json": {"claim": RIGHT, "citations": ["e1"]}, "retrieved_ids": ["e1"]}


@pytest.mark.parametrize(
    "mark", [{"guardrail": {"blocked": True}}, {"policy_flags": ["guardrail_blocked"]}], ids=["guardrail", "flag"]
)
@pytest.mark.parametrize("said", [{}, {"abstained": False}, {"ok": True}, {"error": "late"}])
def test_a_blocked_answer_is_not_an_answered_one(mark, said):
    """Nobody got to read it: it can neither be right nor, for the same reason, leak."""
    gold = {**TEXTS, "gold_citations": ["e1"]}
    assert label(make_case(gold, {**ANSWERED, **said})) == "OK"
    assert label(make_case(gold, {**ANSWERED, **said, **mark})) == "OVER_REFUSAL_EVIDENCE_PRESENT"
    assert label(make_case({"answerable": False}, {**ANSWERED, **said, **mark})) == "REFUSAL_OK"


def test_answers_marked_as_blocked_are_no_way_to_be_right_and_to_leak(tmp_path):
    gold = write_rows(
        tmp_path / "gold.jsonl", [gold_row(qid=f"Q{n}", **TEXTS, gold_citations=["e1"]) for n in range(9)]
    )
    answer = {"claim": f"{RIGHT} Write to jo.doe@acme.org.", "citations": ["e1"]}
    traces = [{"qid": f"Q{n}", "retrieved_ids": ["e1"], "answer_json": answer} for n in range(9)]
    gates = tmp_path / "gates.yml"
    gates.write_text("version: 1\ngates: {precision: {min: 0.8}, leakage: {max: 0, when_no_data: skip}}\n", "utf-8")
    report = rag_eval.score(gold, write_rows(tmp_path / "trace.jsonl", traces), gates)
    assert [gate.name for gate in report.failed_gates] == ["leakage"]
    marked = [{**row, "guardrail": {"blocked": True}} for row in traces]
    report = rag_eval.score(gold, write_rows(tmp_path / "trace.jsonl", marked), gates)
    assert [gate.name for gate in report.failed_gates] == ["precision"]


@pytest.mark.parametrize("level", ["relevance_grades", "doc_grades"])
def test_a_grade_below_0_is_as_if_not_judged(tmp_path, level):
    """As in trec_eval: in the pool, and not judged."""
    chunks = [{"id": name, "doc_id": name} for name in ("u", "x", "a")]
    trace = trace_row(retrieved_ids=["u", "x", "a"], chunks=chunks, answer="30 days")
    result = []
    for grades in ({"a": 2, "x": 0, "u": -2}, {"a": 2, "x": 0}):
        gold = write_rows(tmp_path / "gold.jsonl", [gold_row(**TEXTS, gold_citations=[], **{level: grades})])
        report = rag_eval.score(gold, write_rows(tmp_path / "trace.jsonl", [trace]))
        result.append(
            {name: metric.value for name, metric in report.metrics.items() if metric.perspective == "retrieval"}
        )
    assert result[0] == result[1]
    assert result[0]["map"] == pytest.approx(1 / 3)
