"""TREC judgements (qrels) and runs, and BEIR data sets, as gold rows and trace rows.

Source: trec_eval. A run is ordered by score, then by document id, both descending; its rank column is ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers.conversion import Conversion, Draft, Options
from rag_eval.importers.documents import objects, text_lines
from rag_eval.importers.unwrap import as_id

if TYPE_CHECKING:
    from rag_eval.importers import Inputs, Numbered
    from rag_eval.importers._account import Account

Row = dict[str, Any]
Judgements = dict[str, dict[str, int]]
_INTEGER = re.compile(r"[+-]?\d{1,9}")
_QRELS = "A line of qrels is: TOPIC ITERATION DOCUMENT RELEVANCE, such as 301 0 FR940202-2-00150 1"
_RUN = "A line of a run is: TOPIC Q0 DOCUMENT RANK SCORE TAG, such as 301 Q0 FR940202-2-00150 1 14.2 bm25"


def qrels_rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and gold row of each topic: ``QRELS [TOPICS.tsv]``."""
    conversion = Conversion(inputs, options, account)
    lines: dict[str, int] = {}
    judged: Judgements = {}
    for line, text in text_lines(inputs, inputs.paths[0]):
        fields = text.split()
        if len(fields) == 3 or fields[0] == "query-id":
            hint = "Give the folder's files to: rag-eval import beir queries.jsonl qrels/test.tsv"
            return inputs.problem(inputs.paths[0], line, "", "is a judgement of BEIR, not of TREC", hint)
        if len(fields) != 4 or not _INTEGER.fullmatch(fields[3]):
            inputs.problem(inputs.paths[0], line, "", "is no judgement", _QRELS)
            continue
        _judge(inputs, inputs.paths[0], line, judged, lines, fields[0], fields[2], int(fields[3]))
    questions: dict[str, str] = {}
    for path in inputs.paths[1:]:
        for line, text in text_lines(inputs, path):
            topic, tab, question = text.partition("\t")
            if not tab:
                inputs.problem(path, line, "", "has no tab", "A line of topics is: TOPIC, a tab, the question.")
            else:
                questions[topic] = question
    yield from _gold(conversion, judged, lines, questions)


def beir_rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and gold row of each query: ``queries.jsonl qrels/test.tsv…``."""
    conversion = Conversion(inputs, options, account)
    questions: dict[str, str] = {}
    judged: Judgements = {}
    lines: dict[str, int] = {}
    for path in inputs.paths:
        if path.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")):
            for line, row in objects(inputs, path, "a query"):
                identity, text = as_id(row.get("_id")), row.get("text")
                if identity is None or not isinstance(text, str):
                    inputs.problem(path, line, "", "has no _id or no text", 'A query of BEIR is: {"_id": …, "text": …}')
                else:
                    questions[identity] = text
                for name in row:
                    if name not in ("_id", "text"):
                        account.dropped(f"{name} of queries", "no metric reads it")
            continue
        for number, (line, text) in enumerate(text_lines(inputs, path)):
            fields = text.split("\t")
            if number == 0 and not _INTEGER.fullmatch(fields[-1].strip()):
                continue  # the header
            if len(fields) != 3 or not _INTEGER.fullmatch(fields[2].strip()):
                inputs.problem(
                    path,
                    line,
                    "",
                    "is no judgement of BEIR",
                    "A line is: query-id, corpus-id, score, with tabs between.",
                )
                continue
            _judge(inputs, path, line, judged, lines, fields[0], fields[1], int(fields[2]))
    yield from _gold(conversion, judged, lines, questions)


def run_rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and trace row of each topic of the runs."""
    conversion = Conversion(inputs, options, account)
    answers = _by_id(inputs, options.answers, "qid", "answer") if options.answers else {}
    texts = _by_id(inputs, options.corpus, "_id", "text") if options.corpus else {}
    ranked: dict[tuple[str, str], dict[str, float]] = {}
    places: dict[tuple[str, str], tuple[str, int]] = {}
    for path in inputs.paths:
        for line, text in text_lines(inputs, path):
            fields = text.split()
            score = _score(fields[4]) if len(fields) >= 5 else None
            if len(fields) < 5 or score is None:
                inputs.problem(path, line, "", "is no line of a run", _RUN)
                continue
            key = (fields[5] if len(fields) > 5 else "", fields[0])
            documents = ranked.setdefault(key, {})
            if fields[2] in documents:
                message = f"document {fields[2][:60]} stands twice for topic {fields[0][:60]}"
                inputs.problem(path, line, "", message, "trec_eval refuses that too: keep one line a document.")
            documents[fields[2]] = score
            places.setdefault(key, (path, line))
    several = len({tag for tag, _ in ranked}) > 1
    drafts = []
    for (tag, topic), documents in ranked.items():
        if options.questions is not None and topic not in options.qids:
            account.dropped("topics that the gold set does not have", "--gold")
            continue
        order = sorted(documents, key=lambda name: (documents[name], name.encode()), reverse=True)
        chunks = [
            {"id": name, **({"text": texts[name]} if name in texts else {})} | _finite(documents[name])
            for name in order
        ]
        draft = Draft(
            *places[tag, topic], "", None, answers.get(topic, ""), chunks, qid=topic, run=tag if several else None
        )
        if topic not in answers:
            account.lacking(
                "topics without an answer: answer metrics say nothing; use --perspective retrieval or --answers FILE"
            )
        drafts.append(draft)
    if options.qids and (missing := len(options.qids - {topic for _, topic in ranked})):
        account.lacking("questions of the gold set that the run does not answer", missing)
    yield from conversion.rows("trec", drafts)


def _judge(
    inputs: Inputs,
    path: str,
    line: int,
    judged: Judgements,
    lines: dict[str, int],
    topic: str,
    document: str,
    grade: int,
) -> None:
    grades = judged.setdefault(topic, {})
    lines.setdefault(topic, line)
    if document in grades:
        message = f"document {document[:60]} is judged twice for topic {topic[:60]}"
        inputs.problem(path, line, "", message, "trec_eval refuses that too: keep one judgement a document.")
    grades[document] = grade


def _gold(
    conversion: Conversion, judged: Judgements, lines: dict[str, int], questions: dict[str, str]
) -> Iterator[tuple[int, Row]]:
    account = conversion.account
    # Irrelevant ones are judged too, which bpref and judged@k count.
    graded = any(grade != 1 for grades in judged.values() for grade in grades.values())
    for topic, grades in judged.items():
        relevant = [document for document, grade in grades.items() if grade >= 1]
        account.lacking("judgements below 0: they count as not judged", sum(grade < 0 for grade in grades.values()))
        if not relevant:
            account.lacking(
                "topics without a relevant document: to count them as 0, as trec_eval does, write in eval-gates.yml: "
                "retrieval: {no_relevant: zero}"
            )
        question = questions.get(topic)
        if question is None:
            account.lacking("topics without a text: their id stands as the question")
        yield (
            lines[topic],
            conversion.gold_row(topic, question or topic, None, relevant, relevance_grades=grades if graded else None),
        )
    if left := len(questions.keys() - judged.keys()):
        account.dropped("topics without a judgement", "retrieval cannot be scored on them", left)
    conversion.finish()


def _by_id(inputs: Inputs, path: str, key: str, field: str) -> dict[str, str]:
    found = {}
    for line, row in objects(inputs, path, "a row"):
        identity, text = as_id(row.get(key)), row.get(field)
        if identity is None or not isinstance(text, str):
            inputs.problem(
                path, line, "", f"has no {key} or no {field}", f'Write one object a line: {{"{key}": …, "{field}": …}}'
            )
        else:
            found[identity] = text
    return found


def _score(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _finite(score: float) -> Row:
    return {"score": score} if math.isfinite(score) else {}
