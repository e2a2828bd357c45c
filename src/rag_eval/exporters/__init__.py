"""EXPORTERS: the formats of other tools for gold, traces and reports.

To add one, write a function from :class:`Contents` to files by name, and add its line to the table. Exporters are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import to_builtins

from rag_eval.contract import Trace

Row = dict[str, Any]


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


def citations_of(trace: Row) -> list[str] | None:
    """Return the citations in a trace's fields; None if it has none of these fields."""
    stated = trace.get("answer_json") or trace
    citations: list[str] | None = stated.get("citations")
    return citations


def retrieved_of(trace: Row) -> list[str]:
    """Return the ids that a trace retrieved, best first."""
    ids: list[str] = trace.get("retrieved_ids") or [chunk["id"] for chunk in trace.get("chunks", ())]
    return ids


def _exporters() -> dict[str, Exporter]:
    from rag_eval.exporters import samples, scores, trec

    return {
        "trec": Exporter(("gold", "trace"), "qrels.txt and run.txt, as trec_eval reads them", trec.write),
        "ragas": Exporter(("gold", "trace"), "samples of an EvaluationDataset", samples.ragas),
        "deepeval": Exporter(("gold", "trace"), "test cases of an EvaluationDataset", samples.deepeval),
        "promptfoo": Exporter(("gold",), "tests with assertions", samples.promptfoo),
        "langfuse-scores": Exporter(("trace", "report"), "scores for POST /api/public/scores", scores.langfuse),
        "openinference": Exporter(("trace", "report"), "annotations of traces, as Phoenix takes them", scores.phoenix),
    }


EXPORTERS = _exporters()
