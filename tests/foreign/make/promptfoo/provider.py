"""The system as a provider of promptfoo."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import system


def call_api(prompt, options, context):
    """Answer a prompt, with the documents in the metadata."""
    question = context["vars"]["question"]
    documents = [{"id": item, "content": text, "score": score} for item, text, score in system.retrieve(question)]
    try:
        return {
            "output": system.generate(question), "tokenUsage": {"total": 132, "prompt": 120, "completion": 12},
            "cost": 0.0002, "metadata": {"documents": documents},
        }  # fmt: skip
    except TimeoutError as error:
        return {"error": str(error)}
