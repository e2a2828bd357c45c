"""EXPORTERS: the formats of other tools for gold, traces and reports.

To add one, write a function from :class:`Contents` to files by name, and add its line to the table. Exporters are pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import to_builtins

from rag_eval.contract import Gold, Trace
from rag_eval.metrics import column_of, single_score
from rag_eval.scoring import QuestionIndex

Row = dict[str, Any]
_SPACE = re.compile(r"\s+")


class Contents(NamedTuple):
    """The exported data: rows of gold and traces as their schemas define them, and report.json; empty if not given."""

    gold: Sequence[Row]
    traces: Sequence[Row]
    report: Row

    def pairs(self) -> list[tuple[Row, Row]]:
        """Return each trace with its gold item, paired as for scoring: the last trace of a run and qid.

        Traces without a gold item all stay, with an empty one.
        """
        golds = {row["qid"]: row for row in self.gold}
        index = QuestionIndex({qid: Gold.from_row(row, 0) for qid, row in golds.items()})
        last: dict[tuple[str, str | int], tuple[Row, Row]] = {}
        for number, row in enumerate(self.traces):
            trace = Trace.from_row(row, row.get("qid") or "", 0)
            qid, _ = index.pair(trace, lambda *_: None)
            key = trace.run, qid or number
            last.pop(key, None)
            last[key] = golds.get(qid or "", {}), _joined(row, trace)
        return list(last.values())


def _joined(row: Row, trace: Trace) -> Row:
    """Return a row with what all of its retrievals found as its ids and chunks, as it is scored."""
    if not row.get("retrievals"):
        return row
    chunks = [_without_none(to_builtins(chunk)) for chunk in trace.chunks or ()]
    return {**row, "retrieved_ids": list(trace.given_retrieved()), **({"chunks": chunks} if chunks else {})}


def _without_none(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


class Exporter(NamedTuple):
    """A format: what it needs of gold, traces and report, and the function that writes it."""

    needs: tuple[str, ...]
    summary: str
    write: Callable[[Contents], dict[str, str]]


def _retrieved(trace: Row) -> list[str]:
    ids: list[str] = trace.get("retrieved_ids") or [chunk["id"] for chunk in trace.get("chunks", ())]
    return ids


def _sample(gold: Row, trace: Row, names: Sequence[str]) -> Row:
    """Return qid, question, answer, texts of the chunks and expected answer of a pair, under another tool's ``names``.

    Texts are left out if a chunk has none.
    """
    chunks = trace.get("chunks") or []
    texts = [chunk["text"] for chunk in chunks] if all("text" in chunk for chunk in chunks) else []
    answer = trace["answer_json"]["claim"] if trace.get("answer_json") else trace.get("answer")
    qid, question = gold.get("qid") or trace.get("qid"), gold.get("question") or trace.get("q")
    return dict(zip(names, (qid, question, answer, texts or None, gold.get("expected_answer")), strict=True))


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
        if gold.get("answerable"):
            ids, tag = list(dict.fromkeys(_retrieved(trace))), _word(trace.get("run") or "rag-eval")
            lines = enumerate((f"{_word(gold['qid'])} Q0 {_word(name)}" for name in ids), 1)
            runs += [f"{line} {rank} {len(ids) - rank + 1} {tag}" for rank, line in lines]
    return {"qrels.txt": "".join(f"{line}\n" for line in qrels), "run.txt": "".join(f"{line}\n" for line in runs)}


def _word(text: str) -> str:
    """Return a text as one column: TREC separates columns by white space."""
    return _SPACE.sub("_", text) or "_"


def ragas(contents: Contents) -> dict[str, str]:
    """Return ``samples.jsonl``: a single-turn sample for each trace, with texts and ids of retrieved and gold units."""
    names = ("qid", "user_input", "response", "retrieved_contexts", "reference")
    lines = []
    for gold, trace in contents.pairs():
        ids = {"retrieved_context_ids": _retrieved(trace), "reference_context_ids": gold.get("gold_citations")}
        lines.append(_without_none(_sample(gold, trace, names) | {name: value or None for name, value in ids.items()}))
    return {"samples.jsonl": _json_lines(lines)}


def deepeval(contents: Contents) -> dict[str, str]:
    """Return ``test_cases.json``: an LLM test case for each trace; ids of gold go into the metadata.

    ``context`` must be text.
    """
    names = ("name", "input", "actual_output", "retrieval_context", "expected_output")
    cases = []
    for gold, trace in contents.pairs():
        case = _sample(gold, trace, names)
        metadata = {"qid": case["name"], **{name: gold.get(name) for name in ("answerable", "gold_citations")}}
        metadata["citations"] = (trace.get("answer_json") or trace).get("citations")
        cases.append({**_without_none(case), "additional_metadata": metadata})
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
        metadata = {name: gold[name] for name in ("qid", "answerable", "gold_citations")}
        tests.append({"vars": {"question": gold["question"]}, "assert": checks, "metadata": metadata})
    return {"tests.json": json.dumps(tests, ensure_ascii=False, indent=2) + "\n"}


def _json_lines(rows: list[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def langfuse(contents: Contents) -> dict[str, str]:
    """Return ``scores.jsonl``: bodies of ``POST /api/public/scores`` for each trace.

    There is one for the label and one for the score of each gated metric.
    """
    lines = []
    for trace, case, names in _judged(contents):
        comment = f"rag-eval {contents.report['version']}: {case['qid']}"
        values = [("label", "rag-eval", case["label"], "CATEGORICAL")]
        values += [(name, name, single_score(name, case["scores"][name]), "NUMERIC") for name in names]
        for suffix, name, value, kind in values:
            body = {"id": f"rag-eval-{trace}-{suffix}", "traceId": trace, "comment": comment}
            lines.append({**body, "name": name, "value": value, "dataType": kind})
    return {"scores.jsonl": _json_lines(lines)}


def phoenix(contents: Contents) -> dict[str, str]:
    """Return ``annotations.json``: the body of ``POST /v1/trace_annotations``, with ``CODE`` as the annotator kind."""
    data = []
    for trace, case, names in _judged(contents):
        results: Row = {name: {"score": single_score(name, case["scores"][name])} for name in names}
        results = {"rag-eval": {"label": case["label"], "explanation": case["qid"]}, **results}
        common = {"trace_id": trace, "annotator_kind": "CODE"}
        data += [{**common, "name": name, "result": result} for name, result in results.items()]
    return {"annotations.json": json.dumps({"data": data}, ensure_ascii=False, indent=2) + "\n"}


def _judged(contents: Contents) -> Iterator[tuple[str, Row, list[str]]]:
    """Yield the source's id of each trace, its case in the report, and the gated metrics that have a score for it."""
    sources = {}
    for gold, trace in contents.pairs():
        qid = gold.get("qid") or trace.get("qid") or trace.get("q_id") or trace.get("case_id")
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
