"""Verdict rows as `rag-eval judge` writes them, for tests that score without a judge."""

import json

from rag_eval.contract import Judge, digest_of, verdict_hash

JUDGE = {"model": "judge-1", "prompt": "sha256:aa", "rubric": "sha256:bb"}
ITEM = {"answerable": True, "gold_claim_substr": [], "gold_citations": ["m#1"]}
REPLY = {"groundedness": 4, "correctness": 5, "relevancy": 5, "unsupported_claims": []}


def gold_of(n):
    return [{"qid": f"Q{number}", "question": f"question {number}?", **ITEM} for number in range(n)]


def trace_of(n, words="Records are kept for"):
    return [
        {
            "qid": f"Q{number}",
            "answer_json": {"claim": f"{words} {number + 10} days.", "citations": ["m#1"]},
            "chunks": [{"id": "m#1", "text": f"Deleted records are kept for {number + 10} days."}],
        }
        for number in range(n)
    ]


def verdict_row(gold, trace, judge=JUDGE, **scores):
    reply = {**REPLY, **scores}
    answer = trace["answer_json"]
    shown = {"question": gold["question"], "answer": answer["claim"], "citations": answer["citations"]}
    shown["chunks"] = [{"id": chunk["id"], "text": chunk["text"]} for chunk in trace["chunks"]]
    if "expected_answer" in gold:
        shown["expected_answer"] = gold["expected_answer"]
    row = {"hash": verdict_hash(Judge(**judge), shown), "qid": gold["qid"], "judge": judge, "input": shown}
    return {**row, "reply": json.dumps(reply), **reply}


def verdict_rows(golds, traces, judge=JUDGE, **scores):
    return [verdict_row(gold, trace, judge, **scores) for gold, trace in zip(golds, traces, strict=True)]


def judge_hash(judge=JUDGE):
    """The hash of a judge, as calibrations name it."""
    return digest_of(Judge(**judge)._asdict())


def input_hash(row):
    """The hash of what the judge was shown, as labels name it."""
    return digest_of(row["input"])
