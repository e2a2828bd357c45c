"""Record what azure.ai.evaluation.evaluate writes, with an evaluator of its own: pip install azure-ai-evaluation."""

from __future__ import annotations

import json

import system
from azure.ai.evaluation import BleuScoreEvaluator, evaluate


def answer_length(*, response: str) -> dict:
    """A custom evaluator."""
    return {"value": len(response)}


with open("data.jsonl", "w", encoding="utf-8") as file:
    for qid, (question, expected, _) in system.QUESTIONS.items():
        if qid in system.ANSWERS:
            context = "\n\n".join(text for _, text, _ in system.retrieve(question))
            row = {
                "id": qid,
                "query": question,
                "response": system.ANSWERS[qid],
                "context": context,
                "ground_truth": expected,
            }
            file.write(json.dumps(row) + "\n")

if __name__ == "__main__":
    evaluate(
        data="data.jsonl", evaluators={"bleu": BleuScoreEvaluator(), "length": answer_length}, output_path="result.json",
        evaluator_config={"default": {"column_mapping": {"response": "${data.response}", "ground_truth": "${data.ground_truth}"}}},
    )  # fmt: skip
    for name, args in (("real-azure-evaluate", "azure-eval result.json --citations numbers"),
                       ("real-azure-evaluate-gold", "azure-eval-gold result.json --unanswerable n/a")):  # fmt: skip
        system.write(system.folder(name, args) / "result.json", open("result.json", encoding="utf-8").read())
