"""A run whose answers refuse in words that the policy does not count says so."""

import pytest

import rag_eval
from cases import write_rows

FINDING = "unrecognised-refusals"


def findings(folder, claims, gates="version: 1\n"):
    gold = {"question": "Who?", "answerable": False, "gold_claim_substr": [], "gold_citations": []}
    golds = [{"qid": f"Q{n}", **gold} for n in range(len(claims))]
    traces = [{"qid": f"Q{n}", "answer_json": {"claim": claim, "citations": []}} for n, claim in enumerate(claims)]
    (folder / "eval-gates.yml").write_text(gates)
    report = rag_eval.score(
        write_rows(folder / "gold.jsonl", golds),
        write_rows(folder / "trace.jsonl", traces),
        gates=folder / "eval-gates.yml",
    )
    return [(item.message, item.fix) for item in report.findings if item.code == FINDING]


def test_refusals_in_other_words_are_named_with_the_setting_that_counts_them(tmp_path):
    [(message, fix)] = findings(tmp_path, ["I don't know.", "It was Ada.", "not in context"])
    assert message == "1 of 2 answers to unanswerable questions refuse in other words than the token: 'I don't know.'"
    assert fix == "To count refusals in other words, write builtin: true under refusal in the gates file."


def test_an_empty_answer_is_an_example_only_if_all_are_empty(tmp_path):
    [(message, _)] = findings(tmp_path, ["", "I don't know."])
    assert message.endswith(
        "2 of 2 answers to unanswerable questions refuse in other words than the token: 'I don't know.'"
    )
    [(message, _)] = findings(tmp_path, [""])
    assert message.endswith("refuse in other words than the token: they are empty")


def answered(folder, count, **fields):
    """Return the findings of 20 answers to answerable questions, the first ``count`` of which have other fields."""
    golds, traces = [], []
    for number in range(20):
        labels = {"answerable": True, "gold_claim_substr": [f"fact {number}"], "gold_citations": ["c"]}
        golds.append({"qid": f"Q{number}", "question": "What?", **labels})
        row = {"qid": f"Q{number}", "retrieved_ids": ["c"], "answer": f"fact {number}", "citations": ["c"]}
        traces.append({**row, **(fields if number < count else {})})
    report = rag_eval.score(write_rows(folder / "gold.jsonl", golds), write_rows(folder / "trace.jsonl", traces))
    return [(item.message, item.fix) for item in report.findings if item.code == FINDING]


def test_refusals_of_a_tenth_of_the_answerable_questions_are_named(tmp_path):
    assert answered(tmp_path, 2, answer="I don't know.") == []
    [(message, _)] = answered(tmp_path, 3, answer="I don't know.")
    assert message == "3 of 20 answers to answerable questions refuse in other words than the token: 'I don't know.'"


def test_refusals_that_their_traces_mark_as_answers_are_named(tmp_path):
    assert answered(tmp_path, 20, abstained=False) == []
    [(message, fix)] = answered(tmp_path, 3, answer="not in context", abstained=False)
    counted = "3 of 20 answers to answerable questions refuse, but their traces say abstained: false"
    assert (message, fix) == (
        f"{counted}: 'not in context'",
        "Leave abstained out of the traces of refusals, or write true.",
    )


@pytest.mark.parametrize(
    ("claims", "gates"),
    [
        (["It was Ada.", "not in context"], "version: 1\n"),
        (["I don't know."], "version: 1\nrefusal: {builtin: true}\n"),
        (["I don't know."], "version: 1\nrefusal: {phrases: [don't know]}\n"),
    ],
)
def test_answers_and_counted_refusals_are_none(tmp_path, claims, gates):
    assert findings(tmp_path, claims, gates) == []
