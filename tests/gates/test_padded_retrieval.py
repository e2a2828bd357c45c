"""Long lists that almost all questions share are found under gates that ignore ranks; long ranked lists are not."""

from __future__ import annotations

import pytest

import rag_eval
from cases import gold_row, write_rows

CORPUS = [f"c{number}" for number in range(200)]
LISTS = {
    "the corpus": lambda _: CORPUS[:30],
    "the corpus and one more": lambda number: [f"own{number}", *CORPUS[:30]],
    "the corpus without one": lambda number: [name for name in CORPUS[:30] if name != f"c{(number + 1) % 30}"],
    "the corpus but for a decoy": lambda number: CORPUS[:30] if number else ["c0", "other"],
}
HONEST = {
    "lists that overlap": lambda number: CORPUS[number : number + 30],
    "a half that all share": lambda number: [*CORPUS[:20], *CORPUS[40 + 5 * number : 60 + 5 * number]],
    "short lists": lambda _: CORPUS[:20],
}


def scored(folder, lists, gate):
    golds = [gold_row(qid=f"Q{n}", question=f"What of {n}?", gold_citations=["c0"]) for n in range(20)]
    traces = [
        {"qid": f"Q{n}", "retrieved_ids": lists(n), "answer_json": {"claim": f"No {n}.", "citations": ["c0"]}}
        for n in range(20)
    ]
    (folder / "gates.yml").write_text(f"version: 1\ngates: {{{gate}: {{min: 0}}}}\n", "utf-8")
    files = write_rows(folder / "gold.jsonl", golds), write_rows(folder / "trace.jsonl", traces)
    report = rag_eval.score(*files, folder / "gates.yml")
    return [finding.level for finding in report.findings if finding.code == "padded-retrieval"]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("gate", ["recall@30", "citation_validity"])
def test_lists_that_are_nearly_equal_are_found(tmp_path, name, gate):
    assert scored(tmp_path, LISTS[name], gate) == ["error"]


@pytest.mark.parametrize("name", HONEST)
def test_lists_that_differ_are_not(tmp_path, name):
    assert scored(tmp_path, HONEST[name], "citation_validity") == []


def test_a_gate_on_ranks_decides_by_itself(tmp_path):
    assert scored(tmp_path, LISTS["the corpus and one more"], "recall@5") == []
