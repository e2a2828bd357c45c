"""Gold and traces as samples of Ragas, test cases of DeepEval and tests of promptfoo."""

from __future__ import annotations

import json

from rag_eval.exporters import Contents, Row, answer_of, citations_of, retrieved_of


def ragas(contents: Contents) -> dict[str, str]:
    """Return ``samples.jsonl``: a single-turn sample for each trace, with texts and ids of retrieved and gold units."""
    lines = []
    for gold, trace in contents.pairs():
        chunks = trace.get("chunks") or []
        sample = {
            "qid": gold.get("qid") or trace.get("qid"),
            "user_input": gold.get("question") or trace.get("q"),
            "response": answer_of(trace),
            "retrieved_contexts": [chunk["text"] for chunk in chunks] if _all_have_text(chunks) else None,
            "retrieved_context_ids": retrieved_of(trace) or None,
            "reference": gold.get("expected_answer"),
            "reference_context_ids": gold.get("gold_citations") or None,
        }
        lines.append(_line({name: value for name, value in sample.items() if value is not None}))
    return {"samples.jsonl": "".join(lines)}


def deepeval(contents: Contents) -> dict[str, str]:
    """Return ``test_cases.json``: an LLM test case for each trace; ids of gold go into the metadata.

    ``context`` must be text.
    """
    cases = []
    for gold, trace in contents.pairs():
        chunks = trace.get("chunks") or []
        case: Row = {
            "name": gold.get("qid") or trace.get("qid"),
            "input": gold.get("question") or trace.get("q"),
            "actual_output": answer_of(trace),
            "expected_output": gold.get("expected_answer"),
            "retrieval_context": [chunk["text"] for chunk in chunks] if _all_have_text(chunks) else None,
            "additional_metadata": {
                "qid": gold.get("qid") or trace.get("qid"),
                "answerable": gold.get("answerable"),
                "gold_citations": gold.get("gold_citations"),
                "citations": citations_of(trace),
            },
        }
        cases.append({name: value for name, value in case.items() if value is not None})
    return {"test_cases.json": json.dumps(cases, ensure_ascii=False, indent=2) + "\n"}


def promptfoo(contents: Contents) -> dict[str, str]:
    """Return ``tests.json``: a test for each item.

    Its substrings become ``icontains-any``, an unanswerable item ``is-refusal``.
    """
    tests = []
    for gold in contents.gold:
        checks: list[Row] = []
        if not gold["answerable"]:
            checks.append({"type": "is-refusal"})
        elif gold["gold_claim_substr"]:
            checks.append({"type": "icontains-any", "value": gold["gold_claim_substr"]})
        if gold.get("expected_answer"):
            checks.append({"type": "context-recall", "value": gold["expected_answer"]})
        tests.append(
            {
                "vars": {"question": gold["question"]},
                "assert": checks,
                "metadata": {
                    "qid": gold["qid"],
                    "answerable": gold["answerable"],
                    "gold_citations": gold["gold_citations"],
                },
            }
        )
    return {"tests.json": json.dumps(tests, ensure_ascii=False, indent=2) + "\n"}


def _all_have_text(chunks: list[Row]) -> bool:
    return bool(chunks) and all("text" in chunk for chunk in chunks)


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
