"""TREC judgements (qrels) and runs, and BEIR data sets, as gold rows and trace rows.

Source: trec_eval. Runs are ordered by score, then by document id, both descending; the rank column is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isfinite, isnan

from rag_eval.importers import Account, ImportInputs, Row
from rag_eval.importers.conversion import NOT_READ, Conversion, Draft, Place
from rag_eval.importers.documents import objects, text_lines
from rag_eval.importers.unwrap import as_id

_INTEGER = re.compile(r"[+-]?\d{1,9}")
_QRELS = "A line of qrels is: TOPIC ITERATION DOCUMENT RELEVANCE, such as 301 0 FR940202-2-00150 1"
_RUN = "A line of a run is: TOPIC Q0 DOCUMENT RANK SCORE TAG, such as 301 Q0 FR940202-2-00150 1 14.2 bm25"


Judgements = dict[str, tuple[int, dict[str, int]]]  # by topic: its first line, and its documents with their grades


def _judge(judged: Judgements, inputs: ImportInputs, path: str, line: int, fields: Sequence[str]) -> None:
    """Add a judgement: topic, document and grade; a second one of a document is a problem."""
    topic, document, grade = fields
    grades = judged.setdefault(topic, (line, {}))[1]
    if document in grades:
        message = f"document {document[:60]} is judged twice for topic {topic[:60]}"
        inputs.problem(path, line, "", message, "Keep one judgement per document, as trec_eval requires.")
    grades[document] = int(grade)


def qrels_golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each topic: ``QRELS [TOPICS.tsv]``."""
    inputs, judged = conversion.inputs, Judgements()
    path = inputs.paths[0]
    for line, text in text_lines(inputs, path):
        fields = text.split()
        if len(fields) == 3 or fields[0] == "query-id":
            hint = "Give the folder's files to: rag-eval import beir queries.jsonl qrels/test.tsv"
            return inputs.problem(path, line, "", "is a judgement of BEIR, not of TREC", hint)
        if len(fields) == 4 and _INTEGER.fullmatch(fields[3]):
            _judge(judged, inputs, path, line, (fields[0], *fields[2:]))
        else:
            inputs.problem(path, line, "", "is not a judgement", _QRELS)
    questions: dict[str, str] = {}
    for topics in inputs.paths[1:]:
        for line, text in text_lines(inputs, topics):
            topic, tab, question = text.partition("\t")
            if tab:
                questions[topic] = question
            else:
                inputs.problem(topics, line, "", "has no tab", "A line of topics is: TOPIC, a tab, the question.")
    yield from _golds(conversion, judged, questions)


def beir_golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each query: ``queries.jsonl qrels/test.tsv…``."""
    inputs, account = conversion.inputs, conversion.account
    questions: dict[str, str] = {}
    judged: Judgements = {}
    for path in inputs.paths:
        if path.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")):
            questions |= _by_id(inputs, path, "_id", "text", account)
            continue
        for number, (line, text) in enumerate(text_lines(inputs, path)):
            fields = [field.strip() for field in text.split("\t")]
            if len(fields) == 3 and _INTEGER.fullmatch(fields[2]):
                _judge(judged, inputs, path, line, fields)
            elif number:  # the first line is a header
                hint = "A line is: query-id, corpus-id, score, with tabs between."
                inputs.problem(path, line, "", "is not a judgement of BEIR", hint)
    if not judged and not inputs.problems:
        hint = "Pass the judgements too: rag-eval import beir queries.jsonl qrels/test.tsv"
        return inputs.problem(inputs.paths[-1], 0, "", "has no judgements", hint)
    yield from _golds(conversion, judged, questions)


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each topic of the runs."""
    inputs, account, options = conversion.inputs, conversion.account, conversion.options
    answers = _by_id(inputs, options.answers, "qid", "answer") if options.answers else {}
    texts = _by_id(inputs, options.corpus, "_id", "text") if options.corpus else {}
    ranked: dict[tuple[str, str], dict[str, float]] = {}
    first_seen: dict[tuple[str, str], Place] = {}
    for path in inputs.paths:
        for line, text in text_lines(inputs, path):
            fields = text.split()
            score = _score(fields[4]) if len(fields) >= 5 else None
            if len(fields) < 5 or score is None:
                inputs.problem(path, line, "", "is not a line of a run", _RUN)
                continue
            key = (fields[5] if len(fields) > 5 else "", fields[0])
            documents = ranked.setdefault(key, {})
            if fields[2] in documents:
                message = f"document {fields[2][:60]} is listed twice for topic {fields[0][:60]}"
                inputs.problem(path, line, "", message, "Keep one line per document, as trec_eval requires.")
            documents[fields[2]] = score
            first_seen.setdefault(key, (path, line))
    several = len({tag for tag, _ in ranked}) > 1
    for (tag, topic), documents in ranked.items():
        if options.questions is not None and topic not in options.qids:
            account.dropped("topics that the gold set does not have", "--gold")
            continue
        chunks: list[Row] = []
        for name, score in sorted(documents.items(), key=lambda item: (item[1], item[0].encode()), reverse=True):
            passage = {"text": texts[name]} if name in texts else {}
            chunks.append({"id": name, **passage, **({"score": score} if isfinite(score) else {})})
        draft = Draft(first_seen[tag, topic], "", None, answers.get(topic, ""), chunks, qid=topic)
        draft.run = tag if several else None
        if topic not in answers:
            account.lacking(
                "topics without an answer: answer metrics have no value; use --perspective retrieval or --answers FILE"
            )
        yield draft
    if options.qids and (missing := len(options.qids - {topic for _, topic in ranked})):
        account.lacking("questions of the gold set that the run does not answer", missing)


def _golds(conversion: Conversion, judged: Judgements, questions: dict[str, str]) -> Iterator[Row]:
    account = conversion.account
    # Irrelevant documents are judged too; bpref and judged@k count them.
    graded = any(grade != 1 for _, grades in judged.values() for grade in grades.values())
    for topic, (line, grades) in judged.items():
        relevant = [document for document, grade in grades.items() if grade >= 1]
        account.lacking("judgements below 0: they count as not judged", sum(grade < 0 for grade in grades.values()))
        if not relevant:
            zero = "to count them as 0, as trec_eval does, write in eval-gates.yml: retrieval: {no_relevant: zero}"
            account.lacking(f"topics without a relevant document: {zero}")
        if topic not in questions:
            account.lacking("topics without a text: their id is used as the question")
        question, grading = questions.get(topic, topic), grades if graded else None
        conversion.place = conversion.inputs.paths[0], line
        yield conversion.gold_row(topic, question, None, relevant, relevance_grades=grading)
    unjudged = len(questions.keys() - judged.keys())
    account.dropped("topics without a judgement", "retrieval cannot be scored on them", unjudged)


def _by_id(inputs: ImportInputs, path: str, key: str, field: str, account: Account | None = None) -> dict[str, str]:
    """Return one field of the rows of a file by another; other fields are named in the account, if given."""
    texts = {}
    for line, row in objects(inputs, path, "a row"):
        identity, text = as_id(row.get(key)), row.get(field)
        if identity is None or not isinstance(text, str):
            hint = f'Write one object per line: {{"{key}": …, "{field}": …}}'
            inputs.problem(path, line, "", f"has no {key} or no {field}", hint)
        else:
            texts[identity] = text
        if account:
            for name in row.keys() - {key, field}:
                account.dropped(f"{name} of queries", NOT_READ)
    return texts


def _score(text: str) -> float | None:
    try:
        value = float(text)  # may be infinite
    except ValueError:
        return None
    return None if isnan(value) else value
