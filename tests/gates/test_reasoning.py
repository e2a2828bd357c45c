"""Metrics of answers judge an answer without the reasoning of a model before it, and the report counts such answers."""

from __future__ import annotations

import json

import rag_eval
from cases import write_rows
from gates.test_constant_answers import codes, golds, scored
from seams import main
from table import each_row

WARNED = {("ignored-reasoning", "warning")}
REASONED = {
    "tags": "<think>\nThe user asks. {other}\n</think>\n\n{answer}",
    "other tags": "<reasoning>{other}</reasoning>{answer}",
    "tags with a prefix": "<seed:think>{other}</seed:think>{answer}",
    "several parts": "<think>{other}</think>\n<think>{other}</think>{answer}",
    "tags far from each other": "<think>" + "{other} " * 1_000 + "</think>{answer}",
    "an opening tag in the prompt": "{other}\n</think>\n\n{answer}",
    "an opening tag in the prompt, on one line": "{other}</think>{answer}",
    "brackets": "[THINK]{other}[/THINK]{answer}",
    "signs": "◁think▷{other}◁/think▷{answer}",
    "thoughts": "<|begin_of_thought|>{other}<|end_of_thought|>{answer}",
    "special tokens": "<|START_THINKING|>{other}<|END_THINKING|>{answer}",
    "channels": "<|channel|>analysis<|message|>{other}<|end|><|start|>assistant<|channel|>final<|message|>{answer}",
    "channels with a token at the end": "<|channel|>analysis{other}<|channel|>final<|message|>{answer}<|return|>",
    "tags around the answer": "<think>{other}</think>\n<answer>{answer}</answer>",
    "an opening tag in the prompt, and tags around the answer": "{other}\n</think>\n<answer>\n{answer}\n</answer>",
    "channels without special tokens": "analysisThe user asks. {other}assistantfinal{answer}",
}
PLAIN = {
    "code": "The template writes `<think>` and `</think>`. {answer}",
    "a block of code": "```\n<think>\n</think>\n```\n{answer}",
    "a closing tag in code": "{answer}, and `</think>`\nends it.",
    "a closing tag in a sentence": "{answer}, and </think> ends it.",
    "a word": "analysis of the data: {answer}",
    "a compound word": "analysisReport.pdf: {answer}",
    "other tags": "<b>Thinking:</b> {answer}",
    "a tag behind the answer": "{answer} <think>Is it so?",
    "a closing tag at the end of a line": "End it with </think>\n{answer}",
    "a closing tag in a block of code": "```\n</think>\n```\n{answer}",
    "a closing tag in an element": "<code></think></code> {answer}",
    "a closing tag that begins a sentence": "What ends it? </think> does: {answer}",
    "a closing tag in Chinese": "使用</think>结束 {answer}",
    "an opening tag that begins a sentence": "<think> is the tag, and {answer}",
    "both tags in a sentence": "<think> and </think> enclose it: {answer}",
    "brackets in a sentence": "[THINK] is the tag, and {answer}",
    "an element of XML": "<reason>{answer}</reason>",
    "an element of HTML": "<p>It is <b>{answer}</b>.</p>",
    "words of channels": "The analysis says {answer}; assistantfinal is a token.",
    "empty reasoning": "<think>\n\n</think>\n\n{answer}",
    "empty reasoning before an answer in tags": "<think>\n</think>\n<answer>{answer}</answer>",
    "empty reasoning that the prompt began": "</think>\n\n{answer}",
}


def reference_precision(folder, capsys):
    """The precision that ``--format scores`` prints for the same files."""
    main(["score", "--gold", f"{folder}/gold.jsonl", "--trace", f"{folder}/trace.jsonl", "--format", "scores"])
    return json.loads(capsys.readouterr().out)["precision"]


@each_row("form", REASONED)
def test_only_the_text_behind_the_reasoning_counts(tmp_path, capsys, form):
    def claims(answer, other):
        return lambda item: (
            REASONED[form].replace("{answer}", answer).replace("{other}", other).format(*item["gold_claim_substr"])
        )

    right = scored(tmp_path, golds(4), claims("It is {0}.", "That is not in context."))
    assert (right.metrics["precision"].value, codes(right)) == (1, WARNED)
    assert reference_precision(tmp_path, capsys) == 1
    assert scored(tmp_path, golds(4), claims("It is fine.", "It is {0}.")).metrics["precision"].value == 0
    assert reference_precision(tmp_path, capsys) == 0
    refused = scored(tmp_path, golds(4), claims("Not in context", "It is {0}."))
    assert refused.metrics["exact_refusal"].value == 0
    assert refused.metrics["over_refusal"].value == 1


@each_row("form", PLAIN)
def test_tags_in_an_answer_are_no_reasoning_before_it(tmp_path, form):
    report = scored(tmp_path, golds(4), lambda item: PLAIN[form].format(answer=item["gold_claim_substr"][0]))
    assert (report.metrics["precision"].value, codes(report)) == (1, set())


@each_row(
    "text", ["<think>It is {0}.", "<reasoning>{0}", "[THINK]{0}", "◁think▷{0}", "<|channel|>analysis<|message|>{0}"]
)
def test_reasoning_without_an_end_is_an_empty_answer(tmp_path, text):
    report = scored(tmp_path, golds(4), lambda item: text.format(*item["gold_claim_substr"]))
    assert report.metrics["empty_rate"].value == report.metrics["error_rate"].value == 1
    (finding,) = [one for one in report.findings if one.code == "ignored-reasoning"]
    assert finding.message == (
        "4 of 4 answers begin with the reasoning of a model, which is not judged, and 4 of them are empty, because "
        "nothing follows it"
    )


def test_citations_in_reasoning_are_no_citations_of_the_answer(tmp_path):
    answers = {
        "q0": "<think>citations: [x1]</think>It is so. citations: [c0]",
        "q1": "<think>citations: [c1]</think>No.",
    }
    gold = [{**item, "qid": f"q{at}", "gold_claim_substr": []} for at, item in enumerate(golds(2))]
    traces = [{"qid": qid, "retrieved_ids": ["c0", "c1", "x1"], "answer": text} for qid, text in answers.items()]
    report = rag_eval.score(write_rows(tmp_path / "gold.jsonl", gold), write_rows(tmp_path / "trace.jsonl", traces))
    assert report.metrics["chr"].exact == "1/2"
    assert report.metrics["compliance"].exact == "1/2"


def test_leaks_are_sought_in_the_reasoning_too(tmp_path):
    for text in ("<think>Ask jo.doe@acme.org.</think>It is so.", "Ask jo.doe@acme.org.</think>It is so."):
        report = scored(tmp_path, golds(4), lambda _, text=text: text)
        assert report.metrics["leakage"].value == 1


def test_the_level_is_that_of_the_gates_file(tmp_path):
    gates = "version: 1\ngates: {precision: {min: 0.8}}\nintegrity: {ignored-reasoning: 'off'}\n"
    report = scored(tmp_path, golds(4), lambda item: f"<think>So.</think>{item['gold_claim_substr'][0]}", gates)
    assert codes(report) == set()


def test_many_tags_cost_no_time(tmp_path):
    for text in ("<think>", "</think>", "<think></think>", "analysisA", "a </think> "):
        assert codes(scored(tmp_path, golds(3), lambda _, text=text: text * 20_000)) <= WARNED
