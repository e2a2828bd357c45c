"""Record a dataset in its three types and a test run of deepeval, by a metric without a model: pip install deepeval."""

from __future__ import annotations

import os
from pathlib import Path

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_RESULTS_FOLDER": "results"}

import system  # noqa: E402
from deepeval import evaluate  # noqa: E402
from deepeval.dataset import EvaluationDataset, Golden  # noqa: E402
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig  # noqa: E402
from deepeval.metrics import ExactMatchMetric  # noqa: E402
from deepeval.test_case import LLMTestCase, RetrievedContextData  # noqa: E402

GOLDENS = [
    Golden(
        input=question, expected_output=expected, actual_output=system.ANSWERS.get(qid),
        context=[system.DOCUMENTS[cited]] if cited else [], source_file="handbook.md",
        retrieval_context=[text for _, text, _ in system.retrieve(question)], additional_metadata={"qid": qid},
    )
    for qid, (question, expected, cited) in system.QUESTIONS.items() if qid in system.ANSWERS
]  # fmt: skip
dataset = EvaluationDataset(goldens=GOLDENS)
for kind in ("json", "jsonl", "csv"):
    for name, args in (("gold", "deepeval {} --unanswerable n/a"), ("trace", "deepeval-trace {} --citations numbers")):
        to = system.folder(f"real-deepeval-{kind}-{name}", args.format(f"goldens.{kind}"))
        dataset.save_as(file_type=kind, directory=str(to), file_name="goldens")

cases = [
    LLMTestCase(
        input=golden.input, actual_output=golden.actual_output, expected_output=golden.expected_output, context=golden.context,
        retrieval_context=[RetrievedContextData(context=text, source="handbook.md") for text in golden.retrieval_context],
        completion_time=1.5, token_cost=0.0002, metadata=golden.additional_metadata, name=f"case {index}",
    )
    for index, golden in enumerate(GOLDENS)
]  # fmt: skip
evaluate(
    cases, [ExactMatchMetric()], async_config=AsyncConfig(run_async=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
)  # fmt: skip
for path in (*Path(".deepeval").glob(".latest*"), *Path("results").glob("*")):
    print(path, path.stat().st_size)
to = system.folder("real-deepeval-test-run", "deepeval-trace test_run.json --citations numbers")
system.write(to / "test_run.json", Path(".deepeval/.latest_test_run.json").read_text("utf-8"))
