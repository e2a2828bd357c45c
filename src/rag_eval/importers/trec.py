"""TREC judgements (qrels) and runs, and BEIR data sets, as gold rows and trace rows.

Source: trec_eval. Runs are ordered by score, then by document id, both descending; the rank column is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite, isnan
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.importers import ImportInputs, Row
from rag_eval.importers.conversion import Conversion, Draft, Place
from rag_eval.importers.documents import beginning, decode, documents, objects, text_lines
from rag_eval.importers.unwrap import as_dict, as_id, first_id, number

_INTEGER = re.compile(r"[+-]?\d{1,9}")
_QRELS = (
    "A judgement is: TOPIC ITERATION DOCUMENT RELEVANCE, or TOPIC, DOCUMENT and RELEVANCE with tabs between. "
    "A topic is: TOPIC, a tab, the question."
)
_JSON = 'Write an object: {"301": {"FR940202-2-00150": 1}}, or one object per line: query_id, doc_id, relevance.'
_TOPIC, _DOCUMENT = ("query_id", "query-id", "q_id", "_id"), ("doc_id", "corpus-id", "corpus_id", "docid")
_GRADE = ("relevance", "score", "rel")
_RUN_JSON = 'Write the score of each document by topic: {"301": {"FR940202-2-00150": 14.2}}'
_RUN = "A line of a run is: TOPIC Q0 DOCUMENT RANK SCORE TAG, such as 301 Q0 FR940202-2-00150 1 14.2 bm25"
Judgements = dict[str, tuple[int, dict[str, int]]]  # by topic: its first line, and its documents with their grades


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each topic, from judgements and topics in files as TREC, BEIR or JSON have them."""
    inputs, judged = conversion.inputs, Judgements()
    questions: dict[str, str] = {}
    for path in inputs.paths:
        is_json = _read_json(conversion, path, judged, questions)
        for line, text in () if is_json else text_lines(inputs, path):
            conversion.place = path, line
            words, cells = text.split(), [cell.strip() for cell in text.split("\t")]
            if len(cells) == 3 and _INTEGER.fullmatch(cells[2]):
                _judge(conversion, judged, cells[0], {cells[1]: int(cells[2])})
            elif len(cells) == 2:
                questions[cells[0]] = cells[1]
            elif len(words) == 4 and _INTEGER.fullmatch(words[3]):
                _judge(conversion, judged, words[0], {words[2]: int(words[3])})
            elif words[0] not in _TOPIC:  # of the header
                conversion.problem("", "is neither a judgement nor a topic", _QRELS)
    if not judged and not inputs.problems:
        hint = "Pass the judgements too: rag-eval import beir queries.jsonl qrels/test.tsv"
        return inputs.problem(inputs.paths[-1], 0, "", "has no judgements", hint)
    yield from _golds(conversion, judged, questions)


def _read_json(conversion: Conversion, path: str, judged: Judgements, questions: dict[str, str]) -> bool:
    """Read judgements and queries of a JSON file; return False for another file.

    They are grades by topic and document, records of either, or an object of ``queries`` and ``relevant_docs``.
    """
    if not _is_json(conversion.inputs, path):
        return False
    for document in documents(conversion.inputs, path):
        value = decode(conversion.inputs, document)
        conversion.place = path, document.line
        if not isinstance(value, dict):
            conversion.problem("", "is not a judgement", _JSON)
        elif (topic := first_id(_TOPIC, value)) is None:
            if isinstance(value.get("queries"), dict):
                questions |= {name: text for name, text in value["queries"].items() if isinstance(text, str)}
                conversion.drop_unread(value, ("queries", "relevant_docs"))
                value = as_dict(value.get("relevant_docs"))
            for name, grades in value.items():
                _judge(conversion, judged, name, grades)
        elif isinstance(value.get("text"), str):
            questions[topic] = value["text"]
            conversion.drop_unread(value, (*_TOPIC, "text"), " of queries")
        else:
            grade = next((number(value[name]) for name in _GRADE if name in value), None)
            _judge(conversion, judged, topic, {first_id(_DOCUMENT, value): grade})
    return True


def _judge(conversion: Conversion, judged: Judgements, topic: str, grades: Any) -> None:
    """Add judgements of a topic: a grade by document, or a list of relevant documents; a second one is a problem."""
    if isinstance(grades, list):
        grades = {as_id(document): 1 for document in grades}
    is_valid = isinstance(grades, dict) and None not in grades and all(_is_grade(grade) for grade in grades.values())
    if not is_valid:
        conversion.problem("", f"has no whole grade for each document of topic {quoted(topic, 60)}", _JSON)
    known = judged.setdefault(topic, (conversion.place[1], {}))[1]
    for document, grade in grades.items() if is_valid else ():
        if document in known:
            message = f"document {document[:60]} is judged twice for topic {topic[:60]}"
            conversion.problem("", message, "Keep one judgement per document, as trec_eval requires.")
        known[document] = int(grade)


def _is_grade(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)


def _is_json(inputs: ImportInputs, path: str) -> bool:
    return beginning(inputs, path)[:1] in (b"{", b"[")


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each topic of the runs."""
    inputs, account, options = conversion.inputs, conversion.account, conversion.options
    answers = _by_id(inputs, options.answers, "qid", "answer") if options.answers else {}
    texts = _by_id(inputs, options.corpus, "_id", "text") if options.corpus else {}
    ranked: dict[tuple[str, str], dict[str, float]] = {}
    first_seen: dict[tuple[str, str], Place] = {}
    for path in inputs.paths:
        for line, tag, topic, name, score in _retrieved(inputs, path):
            scores = ranked.setdefault((tag, topic), {})
            if name in scores:
                message = f"document {name[:60]} is listed twice for topic {topic[:60]}"
                inputs.problem(path, line, "", message, "Keep one line per document, as trec_eval requires.")
            scores[name] = score
            first_seen.setdefault((tag, topic), (path, line))
    several = len({tag for tag, _ in ranked}) > 1
    for (tag, topic), scores in ranked.items():
        if options.questions is not None and topic not in options.qids:
            account.dropped("topics that the gold set does not have", "--gold")
            continue
        chunks: list[Row] = []
        for name, score in sorted(scores.items(), key=lambda item: (item[1], item[0].encode()), reverse=True):
            passage = {"text": texts[name]} if name in texts else {}
            chunks.append({"id": name, **passage, **({"score": score} if isfinite(score) else {})})
        draft = Draft(first_seen[tag, topic], "", None, answers.get(topic, ""), chunks, qid=topic)
        draft.run = tag if several else None
        if topic not in answers:
            fix = "score with --perspective retrieval, or add --answers FILE"
            account.lacking(f"topics without an answer: only retrieval can be judged; {fix}")
        yield draft
    if options.qids and (missing := len(options.qids - {topic for _, topic in ranked})):
        account.lacking("questions of the gold set that the run does not answer", missing)


def _retrieved(inputs: ImportInputs, path: str) -> Iterator[tuple[int, str, str, str, float]]:
    """Yield line, tag, topic, document and score of each document in a run, as TREC or as JSON by topic."""
    for document in documents(inputs, path) if _is_json(inputs, path) else ():
        for topic, scores in as_dict(decode(inputs, document)).items():
            for name, value in as_dict(scores).items():
                if (score := number(value)) is not None:
                    yield document.line, "", topic, name, score
                else:
                    inputs.problem(path, document.line, f"/{topic}", f"has no score for {name[:60]}", _RUN_JSON)
    for line, text in () if _is_json(inputs, path) else text_lines(inputs, path):
        fields = text.split()
        value = _score(fields[4]) if len(fields) >= 5 else None
        if value is None:
            inputs.problem(path, line, "", "is not a line of a run", _RUN)
        else:
            yield line, fields[5] if len(fields) > 5 else "", fields[0], fields[2], value


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


def _by_id(inputs: ImportInputs, path: str, key: str, field: str) -> dict[str, str]:
    """Return one field of the rows of a file by another."""
    texts = {}
    for line, row in objects(inputs, path, "a row"):
        identity, text = as_id(row.get(key)), row.get(field)
        if identity is None or not isinstance(text, str):
            hint = f'Write one object per line: {{"{key}": …, "{field}": …}}'
            inputs.problem(path, line, "", f"has no {key} or no {field}", hint)
        else:
            texts[identity] = text
    return texts


def _score(text: str) -> float | None:
    try:
        value = float(text)  # may be infinite
    except ValueError:
        return None
    return None if isnan(value) else value
