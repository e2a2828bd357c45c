"""Gold ids that no trace knows are said to be that: a new chunking is no broken retriever."""

from __future__ import annotations

import pytest

import rag_eval
from cases import gold_row, write_rows
from seams import render


def run(folder, items, traces):
    rows = [gold_row(qid=f"Q{n}", question=f"What of {n}?", **item) for n, item in enumerate(items)]
    answers = [
        {"qid": f"Q{n}", "answer_json": {"claim": "It is so.", "citations": []}, **row} for n, row in enumerate(traces)
    ]
    return rag_eval.score(write_rows(folder / "gold.jsonl", rows), write_rows(folder / "trace.jsonl", answers))


def found(report):
    return [finding.message for finding in report.findings if finding.code == "unmatched-ids"]


def test_changed_chunk_ids_are_told_from_a_broken_retriever(tmp_path):
    report = run(
        tmp_path,
        [{"gold_citations": [f"manual#{n}"]} for n in range(8)],
        [{"retrieved_ids": [f"manual-{n:03}", "manual-900"]} for n in range(8)],
    )
    assert found(report) == [
        "8 of 8 chunk ids of the gold occur in no trace: the gold has 'manual#0', traces have 'manual-000'"
    ]
    assert [item.cause for item in report.diagnosis] == [
        "Chunk ids: the gold and the traces use different ids for chunks."
    ]
    shown = render(report, "markdown")
    assert "manual#0" in shown
    assert "manual-000" in shown


def test_traces_without_ids_are_told_to_record_them(tmp_path):
    report = run(tmp_path, [{"gold_citations": [f"manual#{n}"]} for n in range(8)], [{}] * 8)
    fixes = [finding.fix for finding in report.findings if finding.code == "unmatched-ids"]
    assert fixes == ["Record them in the traces: t.retrieved(chunks), or chunks in the map of collect --request."]


def test_a_broken_retriever_that_knows_the_ids_is_none(tmp_path):
    items = [{"gold_citations": [f"manual#{n}"]} for n in range(8)]
    report = run(tmp_path, items, [{"retrieved_ids": [f"manual#{(n + 1) % 8}"]} for n in range(8)])
    assert found(report) == []
    assert any("Retrieval" in item.cause for item in report.diagnosis)


def test_a_few_ids_that_are_gone_are_none(tmp_path):
    items = [{"gold_citations": [f"manual#{n}"]} for n in range(8)]
    report = run(tmp_path, items, [{"retrieved_ids": [f"manual#{n}" if n < 5 else "x"]} for n in range(8)])
    assert found(report) == []


def test_few_questions_are_none(tmp_path):
    assert found(run(tmp_path, [{"gold_citations": ["a"]}] * 2, [{"retrieved_ids": ["b"]}] * 2)) == []


@pytest.mark.parametrize(
    ("item", "chunk", "said"),
    [
        ({"supports": [{"rel_path": "a{}.md", "heading_path": ""}]}, {"rel_path": "docs/a.md"}, "values of rel_path"),
        ({"supports": [{"rel_path": "a{}.md", "heading_path": ""}]}, {}, "no trace has any rel_path"),
        ({"relevant_docs": ["d{}"]}, {"doc_id": "D1"}, "traces have 'D1'"),
        ({"sections": [{"doc_id": "d", "section": "{}"}]}, {"doc_id": "d", "section": "§ 1"}, "values of section"),
        ({"relevance_grades": {"c{}": 2}}, {}, "chunk ids"),
    ],
)
def test_evidence_in_other_forms_is_compared_likewise(tmp_path, item, chunk, said):
    def numbered(value, n):
        if isinstance(value, dict):
            return {numbered(name, n): numbered(entry, n) for name, entry in value.items()}
        if isinstance(value, list):
            return [numbered(entry, n) for entry in value]
        return value.replace("{}", str(n)) if isinstance(value, str) else value

    traces = [{"chunks": [{"id": f"x{n}", **chunk}]} for n in range(6)]
    [message] = found(run(tmp_path, [numbered(item, n) for n in range(6)], traces))
    assert said in message


def test_only_ids_of_chunks_are_updated_by_a_command(tmp_path):
    items, traces = [{"relevant_docs": [f"d{n}"]} for n in range(6)], [{"chunks": [{"id": f"x{n}"}]} for n in range(6)]
    (fix,) = (item.fix for item in run(tmp_path, items, traces).findings if item.code == "unmatched-ids")
    assert fix == "Write the same doc_id in the items and in the chunks of the traces, or check the index."


def test_ids_of_documents_in_gold_citations_have_another_fix(tmp_path):
    """Documents of LangChain have no ids: their source is the id of the document, and people label by that."""
    items = [{"gold_citations": [f"page-{n}.md"]} for n in range(8)]
    chunks = [
        {"chunks": [{"id": f"text:{n}", "doc_id": f"page-{n}.md"}], "retrieved_ids": [f"text:{n}"]} for n in range(8)
    ]
    (finding,) = (item for item in run(tmp_path, items, chunks).findings if item.code == "unmatched-ids")
    assert (
        finding.fix == "They are the doc_id of chunks, not their ids. Move them from gold_citations to relevant_docs."
    )
    chunks[0]["chunks"][0]["doc_id"] = "other.md"
    (finding,) = (item for item in run(tmp_path, items, chunks).findings if item.code == "unmatched-ids")
    assert finding.fix.startswith("If the documents were split again, update the ids: rag-eval gold relink.")


def test_ids_made_of_texts_have_another_fix(tmp_path):
    items = [{"gold_citations": [f"text:{n}"]} for n in range(8)]
    report = run(tmp_path, items, [{"retrieved_ids": [f"c{n}"]} for n in range(8)])
    (finding,) = (item for item in report.findings if item.code == "unmatched-ids")
    assert finding.fix == "These ids are made of texts. Import the traces with --by-text too."
