"""Long lists that almost all questions share are found under gates that ignore ranks; long ranked lists are not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cases import gold_row, write_rows
from seams import ExecutionOptions, score_files

ONE_PROCESS = ExecutionOptions(jobs=1)
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


def scored(folder, lists, gate, questions=20, rows=(), execution=ONE_PROCESS, **fields):
    """The findings when question ``n`` retrieves ``lists(n)``; ``rows`` are further traces."""
    answered = {"answer_json": {"claim": "No.", "citations": ["c0"]}, **fields}
    traces = [{"qid": f"Q{n}", "retrieved_ids": lists(n), **answered} for n in range(questions)] + list(rows)
    qids = dict.fromkeys(row["qid"] for row in traces)
    golds = [gold_row(qid=qid, question=f"What of {qid}?", gold_citations=["c0"]) for qid in qids]
    (folder / "gates.yml").write_text(f"version: 1\ngates: {{{gate}: {{min: 0}}}}\n", "utf-8")
    files = write_rows(folder / "gold.jsonl", golds), write_rows(folder / "trace.jsonl", traces)
    report = score_files(*map(str, files), str(folder / "gates.yml"), execution=execution)
    return [finding for finding in report.findings if finding.code == "padded-retrieval"]


def levels(*arguments, **more):
    return [finding.level for finding in scored(*arguments, **more)]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("gate", ["recall@30", "recall_any@50"])
def test_lists_that_are_nearly_equal_are_found(tmp_path, name, gate):
    assert levels(tmp_path, LISTS[name], gate) == ["error"]


@pytest.mark.parametrize("name", HONEST)
def test_lists_that_differ_are_not(tmp_path, name):
    assert levels(tmp_path, HONEST[name], "citation_validity") == []


@pytest.mark.parametrize(
    ("gate", "level"),
    [
        ("recall@25", "error"),
        ("recall_all@30", "error"),
        ("recall_any@1000", "error"),
        ("citation_validity", "warning"),
        ("recall@24", "warning"),
        ("recall_all@5", "warning"),
        ("ndcg@30", "warning"),
        ("mrr", "warning"),
        ("precision", "warning"),
    ],
)
def test_it_is_an_error_if_a_gate_ignores_the_order_of_the_list(tmp_path, gate, level):
    [finding] = scored(tmp_path, lambda number: CORPUS[number:25] + CORPUS[:number], gate)
    assert finding.level == level
    blind = f", so {gate} can hardly fail" if level == "error" else ""
    assert finding.message == f"20 of 20 questions retrieve almost the same 25 chunks{blind}"


@pytest.mark.parametrize(
    ("questions", "length", "other", "expected"),
    [(3, 21, 0, True), (3, 20, 0, False), (2, 21, 0, False), (30, 40, 3, True), (30, 40, 4, False)],
)
def test_at_least_three_questions_and_nine_of_ten_retrieve_over_twenty_chunks(
    tmp_path, questions, length, other, expected
):
    def lists(number):
        return [f"y{index}" for index in range(length)] if number < other else CORPUS[:length]

    assert levels(tmp_path, lists, "mrr", questions) == ["warning"] * expected


def test_refusals_count_and_errors_and_missing_answers_do_not(tmp_path):
    def more(count, retrieved, **fields):
        return [{"qid": f"Q{900 + n}", "retrieved_ids": retrieved, **fields} for n in range(count)]

    refusal = {"answer_json": {"claim": "not in context", "citations": []}}
    same = LISTS["the corpus"]
    assert levels(tmp_path, same, "mrr", rows=more(9, ["c1"], **refusal)) == []
    assert levels(tmp_path, same, "mrr", questions=2, rows=more(1, CORPUS[:30], **refusal)) == ["warning"]
    assert levels(tmp_path, same, "mrr", rows=more(9, ["c1"], error="timed out")) == ["warning"]


def test_every_run_of_several_counts(tmp_path):
    for lists, expected in (LISTS["the corpus and one more"], ["error"]), (HONEST["lists that overlap"], []):
        padded = [
            {"qid": f"Q{n}", "run": "b", "retrieved_ids": lists(n), "answer_json": {"claim": "No.", "citations": []}}
            for n in range(20)
        ]
        assert levels(tmp_path, LISTS["the corpus"], "recall@60", rows=padded, run="a") == expected


@pytest.mark.parametrize("name", [*LISTS, *HONEST])
def test_the_sample_of_a_large_file_is_the_same_with_several_processes(tmp_path, name):
    def findings(jobs):
        lists, execution = {**LISTS, **HONEST}[name], replace(ONE_PROCESS, jobs=jobs)
        many = {"questions": 3000, "note": "x" * 1500}
        return scored(tmp_path, lambda number: lists(number % 20), "recall@40", **many, execution=execution)

    alone = findings(1)
    assert bool(alone) == (name in LISTS)
    assert findings(2) == alone
