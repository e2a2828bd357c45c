"""Record an EvaluationDataset, an EvaluationResult and a Dataset of ragas, judged without a model: pip install ragas."""

from __future__ import annotations

import json

import ragas
import system
from ragas import EvaluationDataset, SingleTurnSample, evaluate
from ragas.metrics import NonLLMContextRecall, NonLLMStringSimilarity

SAMPLES = [
    SingleTurnSample(
        user_input=question, response=system.ANSWERS.get(qid), reference=expected,
        retrieved_contexts=[text for _, text, _ in system.retrieve(question)],
        reference_contexts=[system.DOCUMENTS[cited]] if cited else [],
    )
    for qid, (question, expected, cited) in system.QUESTIONS.items() if qid in system.ANSWERS
]  # fmt: skip
dataset = EvaluationDataset(samples=SAMPLES)
TO_TRACES = "ragas-trace {} --citations numbers"

to = system.folder("real-ragas-dataset", TO_TRACES.format("samples.jsonl"))
dataset.to_jsonl(to / "samples.jsonl")
to = system.folder("real-ragas-dataset-csv", TO_TRACES.format("samples.csv"))
dataset.to_csv(to / "samples.csv")
to = system.folder("real-ragas-dataset-gold", "ragas samples.jsonl --unanswerable n/a")
dataset.to_jsonl(to / "samples.jsonl")

result = evaluate(dataset, metrics=[NonLLMStringSimilarity()], show_progress=False)
to = system.folder("real-ragas-result", TO_TRACES.format("result.jsonl"))
result.to_pandas().to_json(to / "result.jsonl", orient="records", lines=True)
to = system.folder("real-ragas-result-json", TO_TRACES.format("result.json"))
result.to_pandas().to_json(to / "result.json", orient="records")
to = system.folder("real-ragas-result-columns", TO_TRACES.format("result.json"))
result.to_pandas().to_json(to / "result.json")
to = system.folder("real-ragas-result-csv", TO_TRACES.format("result.csv"))
result.to_pandas().to_csv(to / "result.csv", index=False)
