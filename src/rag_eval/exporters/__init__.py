"""EXPORTERS: the formats of other tools for gold, traces and reports.

To add one, write a function from :class:`Contents` to files by name, and add its line to the table. Exporters are pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import to_builtins

from rag_eval.contract import Trace
from rag_eval.metrics import column_of, single_score

Row = dict[str, Any]
_SPACE = re.compile(r"\s+")


class Contents(NamedTuple):
    """The exported data: rows of gold and traces as their schemas define them, and report.json; empty if not given."""

    gold: Sequence[Row]
    traces: Sequence[Row]
    report: Row

    def pairs(self) -> list[tuple[Row, Row]]:
        """Return each trace with its gold item (an empty one if it has none): the last trace of a run and qid."""
        by_qid = {row["qid"]: row for row in self.gold}
        by_question = {row["question"]: row for row in self.gold}
        by_turn = {(row["conversation"], row.get("turn")): row for row in self.gold if row.get("conversation")}
        last: dict[tuple[str, str], tuple[Row, Row]] = {}
        for trace in self.traces:
            qid = qid_of(trace)
            gold = by_qid.get(qid) or {}
            if not gold and not qid and trace.get("conversation"):
                gold = by_turn.get((trace["conversation"], trace.get("turn"))) or {}
            elif not gold:
                gold = by_question.get(trace.get("q") or trace.get("question") or "") or {}
            key = str(trace.get("run") or ""), gold.get("qid") or qid
            last.pop(key, None)
            last[key] = gold, _joined(trace)
        return list(last.values())


def _joined(row: Row) -> Row:
    """Return a row with what all of its retrievals found as its ids and chunks, as it is scored."""
    if not row.get("retrievals"):
        return row
    trace = Trace.from_row(row, "", 0)
    fields = [to_builtins(chunk) for chunk in trace.chunks or ()]
    chunks = [{name: value for name, value in chunk.items() if value is not None} for chunk in fields]
    return {**row, "retrieved_ids": list(trace.given_retrieved()), **({"chunks": chunks} if chunks else {})}


class Exporter(NamedTuple):
    """A format: what it needs of gold, traces and report, and the function that writes it."""

    needs: tuple[str, ...]
    summary: str
    write: Callable[[Contents], dict[str, str]]


def qid_of(trace: Row) -> str:
    """Return the qid that a trace gives; empty if it gives none."""
    return next((trace[name] for name in ("qid", "q_id", "case_id") if trace.get(name)), "")


def answer_of(trace: Row) -> str | None:
    """Return the answer of a trace; None if it has none."""
    stated = trace.get("answer_json")
    return stated["claim"] if stated else trace.get("answer")


def retrieved_of(trace: Row) -> list[str]:
    """Return the ids that a trace retrieved, best first."""
    ids: list[str] = trace.get("retrieved_ids") or [chunk["id"] for chunk in trace.get("chunks", ())]
    return ids


def trec(contents: Contents) -> dict[str, str]:
    """Return ``qrels.txt`` of the answerable items, and ``run.txt`` with a tag for each run.

    Relevance is the grade of ``relevance_grades``, otherwise 1 for each gold citation. The score in a run is the number
    of documents minus the rank, so that trec_eval keeps the order of the trace.
    """
    qrels, runs = [], []
    for gold in contents.gold:
        if gold["answerable"] and not gold.get("attack"):
            grades = gold.get("relevance_grades") or dict.fromkeys(gold["gold_citations"], 1)
            qrels += [f"{_word(gold['qid'])} 0 {_word(name)} {grade}" for name, grade in grades.items()]
    for gold, trace in contents.pairs():
        ids = list(dict.fromkeys(retrieved_of(trace)))
        if gold.get("answerable"):
            tag = _word(trace.get("run") or "rag-eval")
            topic = _word(gold["qid"])
            runs += [
                f"{topic} Q0 {_word(name)} {index} {len(ids) - index + 1} {tag}" for index, name in enumerate(ids, 1)
            ]
    return {"qrels.txt": "".join(f"{line}\n" for line in qrels), "run.txt": "".join(f"{line}\n" for line in runs)}


def _word(text: str) -> str:
    """Return a text as one column: TREC separates columns by white space."""
    return _SPACE.sub("_", text) or "_"


def ragas(contents: Contents) -> dict[str, str]:
    """Return ``samples.jsonl``: a single-turn sample for each trace, with texts and ids of retrieved and gold units."""
    lines = []
    for gold, trace in contents.pairs():
        sample = {
            "qid": gold.get("qid") or trace.get("qid"),
            "user_input": gold.get("question") or trace.get("q"),
            "response": answer_of(trace),
            "retrieved_contexts": _texts_of(trace),
            "retrieved_context_ids": retrieved_of(trace) or None,
            "reference": gold.get("expected_answer"),
            "reference_context_ids": gold.get("gold_citations") or None,
        }
        lines.append({name: value for name, value in sample.items() if value is not None})
    return {"samples.jsonl": _json_lines(lines)}


def deepeval(contents: Contents) -> dict[str, str]:
    """Return ``test_cases.json``: an LLM test case for each trace; ids of gold go into the metadata.

    ``context`` must be text.
    """
    cases = []
    for gold, trace in contents.pairs():
        case: Row = {
            "name": gold.get("qid") or trace.get("qid"),
            "input": gold.get("question") or trace.get("q"),
            "actual_output": answer_of(trace),
            "expected_output": gold.get("expected_answer"),
            "retrieval_context": _texts_of(trace),
            "additional_metadata": {
                "qid": gold.get("qid") or trace.get("qid"),
                "answerable": gold.get("answerable"),
                "gold_citations": gold.get("gold_citations"),
                "citations": (trace.get("answer_json") or trace).get("citations"),
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


def _texts_of(trace: Row) -> list[str] | None:
    """Return the texts of a trace's chunks; None if there are no chunks, or one has no text."""
    chunks = trace.get("chunks") or []
    return [chunk["text"] for chunk in chunks] if chunks and all("text" in chunk for chunk in chunks) else None


def _json_lines(rows: list[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def langfuse(contents: Contents) -> dict[str, str]:
    """Return ``scores.jsonl``: bodies of ``POST /api/public/scores`` for each trace.

    There is one for the label and one for the score of each gated metric.
    """
    lines = []
    for trace, case, names in _judged(contents):
        common = {"traceId": trace, "comment": f"rag-eval {contents.report['version']}: {case['qid']}"}
        values = [("label", "rag-eval", case["label"], "CATEGORICAL")]
        values += [(name, name, single_score(name, case["scores"][name]), "NUMERIC") for name in names]
        for suffix, name, value, kind in values:
            identity = {"id": f"rag-eval-{trace}-{suffix}", **common}
            lines.append({**identity, "name": name, "value": value, "dataType": kind})
    return {"scores.jsonl": _json_lines(lines)}


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


EXPORTERS = {
    "trec": Exporter(("gold", "trace"), "qrels.txt and run.txt, as trec_eval reads them", trec),
    "ragas": Exporter(("gold", "trace"), "samples of an EvaluationDataset", ragas),
    "deepeval": Exporter(("gold", "trace"), "test cases of an EvaluationDataset", deepeval),
    "promptfoo": Exporter(("gold",), "tests with assertions", promptfoo),
    "langfuse-scores": Exporter(("trace", "report"), "scores for POST /api/public/scores", langfuse),
    "openinference": Exporter(("trace", "report"), "annotations of traces, as Phoenix takes them", phoenix),
}
