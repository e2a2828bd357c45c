"""Scores of a report for the tracing tool that recorded the traces."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rag_eval.exporters import Contents, Row, qid_of
from rag_eval.metrics import column_of, single_score


def langfuse(contents: Contents) -> dict[str, str]:
    """Return ``scores.jsonl``: bodies of ``POST /api/public/scores`` for each trace.

    There is one for the label and one for the score of each gated metric.
    """
    lines = []
    for trace, case, names in _judged(contents):
        common = {"traceId": trace, "comment": f"rag-eval {contents.report['version']}: {case['qid']}"}
        identity = f"rag-eval-{trace}"
        label = {
            "id": f"{identity}-label",
            **common,
            "name": "rag-eval",
            "value": case["label"],
            "dataType": "CATEGORICAL",
        }
        lines.append(label)
        for name in names:
            score = {
                "id": f"{identity}-{name}",
                **common,
                "name": name,
                "value": single_score(name, case["scores"][name]),
                "dataType": "NUMERIC",
            }
            lines.append(score)
    return {"scores.jsonl": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)}


def phoenix(contents: Contents) -> dict[str, str]:
    """Return ``annotations.json``: the body of ``POST /v1/trace_annotations``, with ``CODE`` as the annotator kind."""
    data = []
    for trace, case, names in _judged(contents):
        kind = {"trace_id": trace, "annotator_kind": "CODE"}
        data.append({**kind, "name": "rag-eval", "result": {"label": case["label"], "explanation": case["qid"]}})
        data += [
            {**kind, "name": name, "result": {"score": single_score(name, case["scores"][name])}} for name in names
        ]
    return {"annotations.json": json.dumps({"data": data}, ensure_ascii=False, indent=2) + "\n"}


def _judged(contents: Contents) -> Iterator[tuple[str, Row, list[str]]]:
    """Yield the source's id of each trace, its case in the report, and the gated metrics that have a score for it."""
    sources = {}
    for gold, trace in contents.pairs():
        qid = gold.get("qid") or qid_of(trace)
        if qid and (trace.get("source") or {}).get("id"):
            sources[str(trace.get("run") or ""), qid] = trace["source"]["id"]
    gated = list(dict.fromkeys(column_of(gate["name"]) for gate in contents.report["gates"]))
    for case in contents.report["questions"]:
        source = sources.get((case.get("run") or "", case["qid"]))
        if source:
            yield source, case, [name for name in gated if case["scores"].get(name) is not None]
