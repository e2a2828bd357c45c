"""A RAG server's golden set, an array of questions with passages, as gold rows, and its saved run as a baseline.

Of a run's metrics the ranking metrics have the same definition as here. The others differ, though most have a
counterpart: their values are shown without a metric fingerprint, so that they are never compared.
"""

from __future__ import annotations

import re
from hashlib import sha256

from rag_eval import __version__
from rag_eval.analysis import Input, Report
from rag_eval.common.escaping import quoted
from rag_eval.errors import Note
from rag_eval.gates import MetricResult, Policy, contract
from rag_eval.gates.questions import MOST, QuestionList
from rag_eval.importers import FIELDS, Account, ImportInputs, Numbered, Row, gold_row
from rag_eval.importers.unwrap import as_dict
from rag_eval.metrics import Measure, find, measure
from rag_eval.scoring import Completeness

_GOLD_NAMES = FIELDS["rag_server"]["gold_names"]
_GOLD_DROPPED = FIELDS["rag_server"]["gold_dropped"]
_HUNDREDTHS = 100
_OTHER_VALUE = "is also given and differs"
_CUT = re.compile(r"(recall|precision|ndcg)_at_([1-9][0-9]{0,5})", re.ASCII)
_METRICS = {name: ours for ours, names in FIELDS["rag_server"]["metrics"].items() for name in names}
_OTHER: dict[str, str] = FIELDS["rag_server"]["other"]
_JUDGED = "an LLM judged it, and judged values are not imported"
_UNKNOWN = "rag-eval has no such metric"
_READ = set(FIELDS["rag_server"]["read"])
_RUN_DROPPED = FIELDS["rag_server"]["run_dropped"]


def golden_rows(inputs: ImportInputs, account: Account) -> Numbered:
    """Yield line and gold row of each question."""
    path, seen = inputs.paths[0], dict[str, int]()
    for line, question in inputs.elements(path, "rag-server-golden"):
        row = converted(question, account)
        if seen.setdefault(row["qid"], line) == line:
            yield line, row
        else:
            field = "id" if question.get("id") else "question"
            message = f"{quoted(question[field])} is already used on line {seen[row['qid']]}"
            inputs.problem(path, line, f"/{field}", message, "Give each question a unique id, or remove one.")


def converted(question: Row, account: Account) -> Row:
    """Return the gold row of a valid question.

    A question without an id is identified by its text, which does not depend on the order.
    """
    for field in question:
        if field in _GOLD_NAMES:
            account.renamed(field, _GOLD_NAMES[field])
        elif field in _GOLD_DROPPED:
            account.dropped(field, _GOLD_DROPPED[field])
    unanswerable = question.get("is_unanswerable") or question.get("query_type", "").lower() == "unanswerable"
    relevance = _relevance(question, bool(unanswerable), account)
    answers = [text for name in ("answer", "expected_answer") if (text := question.get(name))]
    if answers[1:] and answers[0] != answers[1]:
        account.dropped("expected_answer", f"answer {_OTHER_VALUE}")
    row = gold_row(
        question.get("id") or f"golden-{sha256(question['question'].encode()).hexdigest()[:12]}",
        question["question"],
        answerable=not unanswerable,
        citations=relevance.pop("gold_citations"),
        expected=answers[0] if answers else None,
    )
    fields = (("query_type", "query_type"), ("difficulty", "difficulty"), ("domain", "category"))
    row |= {to: question[field] for field, to in fields if field in question}
    if not (unanswerable or row["gold_citations"] or relevance):
        account.lacking("answerable items without a passage or document: precision counts any answer to them as right")
    meta = {"document": question["document"]} if "document" in question else {}
    for name, value in question.get("metadata", {}).items():
        if not isinstance(value, (str, int, float)):
            account.dropped("metadata other than texts, numbers and truth values", "slices use only these")
        elif meta.setdefault(name, value) != value:
            account.dropped("metadata.document", f"document {_OTHER_VALUE}")
    return row | relevance | ({"meta": meta} if meta else {})


def _relevance(question: Row, unanswerable: bool, account: Account) -> Row:
    """Return citations, documents, and grades of chunks if some score is not 1.

    Gain is linear: hundredths order as scores do.
    """
    citations: list[str] = []
    docs: list[str] = []
    grades: dict[str, int] = {}
    passages = list(map(as_dict, question.get("gold_passages", [])))
    for passage in passages:
        chunk = passage.get("chunk_id")
        docs += [passage["doc_id"]] if "doc_id" in passage else []
        if chunk is None:
            account.dropped("a gold passage without chunk_id", "it has no chunk id")
            continue
        if unanswerable:
            account.dropped("a gold passage of an unanswerable question", "such a question has no right citation")
        else:
            account.renamed("gold_passages.chunk_id", "gold_citations")
            citations.append(chunk)
        grade = round(passage.get("relevance_score", 1) * _HUNDREDTHS)
        if grades.setdefault(chunk, grade) != grade:
            account.dropped("another relevance_score of the same chunk", "the highest one counts")
        grades[chunk] = max(grade, grades[chunk])
    names = set().union(*passages)
    for field, to in (("doc_id", "relevant_docs"), ("relevance_score", "relevance_grades, in hundredths")):
        if field in names:
            account.renamed(f"gold_passages.{field}", to)
    if "text" in names:
        account.dropped("gold_passages.text", "chunks are identified by their ids")
    docs = list(dict.fromkeys(docs + question.get("gold_doc_ids", [])))
    graded = any(grade != _HUNDREDTHS for grade in grades.values())
    relevance: Row = {"relevant_docs": docs, "relevance_grades": grades if graded else {}}
    return {"gold_citations": citations, **{name: value for name, value in relevance.items() if value}}


def report(inputs: ImportInputs, account: Account) -> Report | None:
    """Return the report of the run; None with the problems if it is unreadable."""
    path = inputs.paths[0]
    run = inputs.value(path, "rag-server-run")
    if run is None:
        return None
    before = inputs.problems
    metrics = _metrics(run, path, inputs, account)
    for name in run.keys() - _READ:
        account.dropped(name, _RUN_DROPPED.get(name, "it is not a field of the format"))
    if inputs.problems > before:
        return None
    policy = Policy()
    asked, failed = int(run["question_count"]), int(min(run.get("error_count", 0), run["question_count"]))
    notes = [Note(path, 0, "values of another framework's run, which has no questions to compare")]
    if failed:
        message = f"its values leave out {failed} question(s) that failed; here such a question counts as wrong"
        notes.append(Note(path, 0, message))
    about = {field: run[field] for field in ("id", "name", "created_at", "completed_at") if run.get(field)}
    return Report(
        version=__version__,
        verdict="passed",
        gates_file="",
        k=policy.k,
        refusal={"token": policy.token, "phrases": list(policy.phrases)},
        gates=(),
        metrics=metrics,
        completeness=Completeness(asked, asked - failed, failed, 0, 0, failed),
        allowed={},
        labels={},
        diagnosis=(),
        questions=QuestionList(),
        notes=tuple(notes),
        inputs=(Input("baseline", path, inputs.digest(path)),),
        contracts={name: contract(measure(name), policy) for name in metrics if not _differs(measure(name))},
        run=about | ({"config": run["config"]} if "config" in run else {}),  # name and settings of the server
    )


def _metrics(run: Row, path: str, inputs: ImportInputs, account: Account) -> dict[str, MetricResult]:
    """Return the metrics that correspond to entries of the scorecard; the account names the others with the reason."""
    metrics: dict[str, MetricResult] = {}
    for index, entry in enumerate(run["scorecard"]["metrics"]):
        name, where, cut = entry["name"], f"/scorecard/metrics/{index}", _CUT.fullmatch(entry["name"])
        ours = f"{cut[1]}@{cut[2]}" if cut else _METRICS.get(name, "")
        measure = find(ours)
        if entry["value"] is None:
            account.dropped(name, "it has no value in that run")
        elif measure is None:
            account.dropped(name, _JUDGED if entry.get("group") == "generation" else _UNKNOWN)
        elif measure.name in metrics:
            message = f"{quoted(name)} gives {measure.name} a second time"
            inputs.problem(path, 0, f"{where}/name", message, "Remove one of the two.")
        elif not 0 <= entry["value"] <= (1 if measure.metric.bounded else MOST):
            hint = "Use the file in the folder of the saved run."
            inputs.problem(path, 0, f"{where}/value", f"{measure.name} cannot be {quoted(entry['value'])}", hint)
        else:
            account.renamed(name, f"{ours}, which is not compared: {why}" if (why := _differs(measure)) else ours)
            n, metric = int(entry.get("sample_size", run["question_count"])), measure.metric
            result = MetricResult(float(entry["value"]), n, None, None, metric.better, metric.perspective)
            metrics[measure.name] = result
    return metrics


def _differs(measure: Measure) -> str:
    """Return how the framework's definition differs from the metric's; '' if it does not."""
    return _OTHER.get(measure.metric.name.removesuffix("@k"), "")
