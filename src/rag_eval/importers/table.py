"""Any CSV or JSON by a map of its fields, as trace rows (``table``) and as gold rows (``table-gold``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice, zip_longest
from typing import Any

from rag_eval.common.escaping import quoted
from rag_eval.importers import ImportInputs, Row, retrieved, unwrap
from rag_eval.importers.columns import FORMS, QUANTITIES, are_of_record, english, suggested
from rag_eval.importers.conversion import Conversion, Draft, Place
from rag_eval.importers.documents import beginning, cell_value, csv_rows, is_csv, objects
from rag_eval.importers.unwrap import question_id
from rag_eval.trace import text_id

_NO_ERROR = ("", "none", "null", "false", "0", "no")
_FAILED = ("errored", "expired", "canceled")  # results of a batch of Anthropic
_TRUTH = dict.fromkeys("true yes y 1 ja oui sí si sì sim tak да 是 可 はい 예".split(), True) | dict.fromkeys(
    "false no n 0 nein non não nao nie нет 否 不可 いいえ 아니요".split(), False
)
_RELEVANT = {**_TRUTH, "relevant": True} | dict.fromkeys(
    ("irrelevant", "not relevant", "not_relevant", "non-relevant", "nicht relevant", "no relevante", "non pertinent"),
    False,
)
_NEGATED = {"unanswerable", "impossible"}  # in names of columns that say the opposite of answerable
_VERDICTS = [name for name in FORMS["table-gold"]["relevance_grades"] if name not in retrieved.SCORE_KEYS]
"""Fields of documents in a gold set."""
_ADDED = ("gold_citations", "relevant_docs", "gold_claim_substr")  # by each record of a question
_NUMBERED = re.compile(
    r"(?i)(?:retrieved[_ ]?)?(?:chunk|context|document|doc|passage)[_ ]?(\d{1,2})(?:[_ ](text|id|score|source))?"
)
_ID = re.compile(r"(?=.*[\d._/#:-])[!-~]{0,199}[0-9A-Za-z]")  # a sentence ends with a full stop
_SEVERAL_IDS = re.compile(r"(?![\[{])[^\s,;|]{1,200}(?:\s*[,;|]\s*[^\s,;|]{1,200})+")
_BETWEEN_IDS = re.compile(r"\s*(?:[,;|\n]|\]\s*\[)\s*")
_OF_OUTPUTS = ("error", "citations", "choices", "candidates", "generations", *unwrap.OLLAMA_COUNTS)  # that are read
_OF_CHOICES = ("index", "message", "text", "sources", "finish_reason")
_OF_MESSAGES = ("role", "content", "refusal", "context", "end_turn")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ABSENT = ("na", "n/a", "none", "null")
_DECIMAL_COMMA = re.compile(r"\d+,(?:\d{1,2}|\d{4,})")  # with three digits it may separate thousands
_FIRST_RECORDS, _LONGEST_LATENCY = 100, 100  # the latter in seconds: a larger number is rather milliseconds


def golds(conversion: Conversion, fields: dict[str, str]) -> Iterator[Row]:
    """Yield the gold row of each question; a record that repeats one adds its citations, documents and substrings."""
    items: dict[str, tuple[Place, Row]] = {}
    is_negated = not _NEGATED.isdisjoint(english(fields.get("answerable", "")).split("_"))
    for values in _records(conversion, "table-gold", fields):
        question = conversion.question(values.get("question"), values)
        if question is None:
            conversion.problem("", "has no question", "Write the question, or remove the record.")
            continue
        stated = str(values.get("answerable", True)).casefold()
        if stated not in _TRUTH:
            conversion.problem("/answerable", f"is {quoted(stated, 40)}", "Write true or false.")
            continue
        cited = dict.fromkeys(_cited(conversion, values), 1)
        grades = _grades(conversion, [*cited], values.get("relevance_grades")) if "relevance_grades" in fields else {}
        cited = grades if "relevance_grades" in fields else cited
        gold = conversion.gold_row(
            unwrap.as_id(values.get("qid")) or question_id("table", question),
            question,
            _expected(conversion, values.get("expected_answer")),
            [name for name, grade in cited.items() if grade > 0],
            relevance_grades=grades,
            answerable=_TRUTH[stated] is not (is_negated and "answerable" in values),
            substrings=_list_of(conversion, "gold_claim_substr", values),
            tags=_list_of(conversion, "tags", values),
            relevant_docs=[unwrap.as_id(name) or name for name in _separated(values.get("relevant_docs")) or ()],
            **{name: str(values[name]) for name in ("difficulty", "category") if values.get(name) is not None},
        )
        if not gold["answerable"] and gold.pop("relevant_docs", None):
            conversion.account.dropped("documents of an unanswerable question", "such a question has no right document")
        first = items.setdefault(gold["qid"], (conversion.place, gold))[1]
        _add(conversion, gold, first)
        compared = [
            name for name in ("question", *values) if name in gold and name not in (*_ADDED, "relevance_grades")
        ]
        differs = [name for name in compared if gold[name] != first.get(name)]
        if differs:
            message = f"repeats {quoted(gold['qid'])} with another {differs[0]}"
            conversion.problem("", message, "Give each question its own qid, or repeat the same values.")
    for conversion.place, row in items.values():
        yield row


def _cited(conversion: Conversion, values: Row) -> list[str]:
    """Return the ids of the gold citations, or those of the reference contexts, which are texts or documents."""
    citations, contexts = _list_of(conversion, "gold_citations", values), unwrap.decoded(values.get("contexts"))
    if citations:
        conversion.account.dropped("contexts", "gold_citations has the ids", bool(contexts))
        return citations
    if not isinstance(contexts, list) or not all(isinstance(item, dict) for item in contexts):
        texts = _list_of(conversion, "contexts", values)
        if not texts or not all(map(_ID.fullmatch, texts)):
            return conversion.reference_ids(texts)
        conversion.account.renamed("contexts that look like ids", "gold_citations")
        return texts
    relevant = []
    for item in contexts:
        verdict = next((item[name] for name in _VERDICTS if item.get(name) is not None), True)
        relevant += [item] if any(grade > 0 for grade in _grades(conversion, [""], verdict).values()) else []
    conversion.account.dropped("contexts", "they are marked as not relevant", len(contexts) - len(relevant))
    return [chunk["id"] for chunk in conversion.chunks(relevant)]


def _add(conversion: Conversion, gold: Row, first: Row) -> None:
    """Add the citations, documents, substrings and grades of a record to the first gold row of its question."""
    for name in _ADDED:
        if more := [text for text in gold.get(name, ()) if text not in first.get(name, ())]:
            first[name] = [*first.get(name, ()), *more]
    if grades := gold.get("relevance_grades"):
        known = first.get("relevance_grades", {})
        if twice := next((name for name in grades if known.get(name, grades[name]) != grades[name]), None):
            message = f"{quoted(twice, 40)} has the grades {known[twice]} and {grades[twice]} for one question"
            conversion.problem("/relevance_grades", message, "Keep one grade for each question and chunk.")
        first["relevance_grades"] = known | grades


def _grades(conversion: Conversion, cited: list[str], recorded: Any) -> dict[str, int]:
    """Return the grade of each chunk of a record, 1 and 0 for yes and no; empty if nobody judged or people disagree."""
    items = unwrap.as_list(unwrap.decoded(recorded))
    if len(items) == len(cited) > 1:  # a grade for each chunk
        parts = (_grades(conversion, [name], item) for name, item in zip(cited, items, strict=True))
        return {name: grade for part in parts for name, grade in part.items()}
    judgements = [unwrap.as_dict(item) or {"value": item} for item in items]
    stated = [item.get("value") for item in judgements if item.get("status", "submitted") == "submitted"]
    values = list(dict.fromkeys(str(value).strip().casefold() for value in stated if value not in (None, "")))
    grades = {_RELEVANT[value] if value in _RELEVANT else unwrap.number(value) for value in values}
    conversion.account.dropped("gold_citations", "nobody judged their relevance", not grades)
    whole = [int(grade) for grade in grades if grade is not None and not grade % 1]
    if len(grades) > 1 or len(whole) < len(grades):
        hint = "Write a whole number, yes or no. To ignore it, rename it or leave it out of the map: --suggest-map"
        conversion.problem("/relevance_grades", f"is {quoted(', '.join(values), 40)}", hint)
        return {}
    return {name: grade for grade in whole for name in cited}


def _expected(conversion: Conversion, recorded: Any) -> str | None:
    """Return the expected answer: a text, the first of several, or the text in an object or in messages."""
    value = unwrap.decoded(recorded)
    are_several = isinstance(value, list) and bool(value)
    are_texts = are_several and all(isinstance(item, str) for item in value)
    conversion.drop_others(value, unwrap.ANSWER_FIELDS, " of the expected answer")
    text = None if are_texts else unwrap.as_text(recorded) or conversion.answer(value)
    if text is None and are_several:
        conversion.account.dropped("other expected answers", "the first is the expected answer", len(value) - 1)
        text = value[0] if are_texts else conversion.answer(value[0])  # the latter of KILT
    if text is None and value not in (None, [], {}):
        conversion.account.dropped("expected answers of an unknown form", "name the text in a map: --suggest-map")
    return text


def header(inputs: ImportInputs, *paths: str) -> list[str]:
    """Return the names of the columns of a CSV, or of the fields of the first records."""
    records: Iterator[Row] = iter(())
    for path in paths:
        if is_csv(inputs, path):
            cells = (row for _, row in csv_rows(inputs, path))
            some = (_usual({name: cell_value(cell) for name, cell in row.items()}) for row in cells)
        else:
            some = (usual for *_, usual in _objects(inputs, path))
        records = chain(records, islice(some, _FIRST_RECORDS))
    return list(dict.fromkeys(name for record in islice(records, _FIRST_RECORDS) for name in record))


def _requests(inputs: ImportInputs, path: str) -> dict[Any, Row]:
    """Return the requests of a batch by their ``custom_id`` if ``path`` is one of the files that may have them."""
    if b'"custom_id"' not in beginning(inputs, path):
        return {}
    paths = [path for path in inputs.paths if b'"custom_id"' in beginning(inputs, path)]
    rows = (row for path in paths if paths[1:] for _, row in objects(inputs, path, "a record"))
    bodies = ((row.get("custom_id"), row.get("body", row.get("params"))) for row in rows)
    return {identity: body for identity, body in bodies if isinstance(identity, str) and isinstance(body, dict)}


def _objects(inputs: ImportInputs, path: str) -> Iterator[tuple[int, Row, Row]]:
    """Yield line and value of each record, as recorded and with usual names.

    The only list of an object that is no record itself has the records, or the only list of such records in a part.
    The result of a batch has the fields of its request.
    """
    requests = _requests(inputs, path)
    for line, recorded in objects(inputs, path, "a record"):
        if requests and not recorded.keys().isdisjoint(("body", "params")):
            continue
        recorded = requests.get(unwrap.as_id(recorded.get("custom_id")), {}) | recorded
        value = _usual(recorded)
        named = _lists_in(value)
        named = named or {
            name: rows for part in value.values() for name, rows in _lists_in(part).items() if are_of_record(*rows[0])
        }
        lists = list(named.values())
        lifted = _lifted(value)
        is_record = are_of_record(*lifted) and not (lifted is not value and lists and are_of_record(*lists[0][0]))
        if len(lists) == 1 and not is_record:
            yield from ((line, row, _lifted(_usual(row))) for row in lists[0] if isinstance(row, dict))
        elif len(value) == len(lists) > 1 and (rows := _merged(lists)):
            yield from ((line, row, row) for row in rows)
        elif not is_record and len(lists) > 1 and all(are_of_record(*rows[0]) for rows in lists):  # a list for each run
            yield from (
                (line, row, {"run": name, **_usual(row)})
                for name, rows in named.items()
                for row in rows
                if isinstance(row, dict)
            )
        else:
            yield line, recorded, lifted


def _lists_in(value: Any) -> dict[str, list[Any]]:
    """Return the lists of objects in an object, by name."""
    parts = unwrap.as_dict(value).items()
    return {name: item for name, item in parts if isinstance(item, list) and item and isinstance(item[0], dict)}


def _lifted(value: Row) -> Row:
    """Return a record with the fields of its parts, named by their paths, if only those show what it is."""
    flat, documents = value, list[Any]()
    while not are_of_record(*flat) and any(isinstance(item, dict) and item for item in flat.values()):
        parts = {name: item for name, item in flat.items() if isinstance(item, dict) and item}
        documents = documents or next(filter(None, map(retrieved.documents_of_response, parts.values())), [])
        below = ((f"{name}.{key}", item) for name, part in parts.items() for key, item in part.items())
        lower = {name: item for name, item in below if not documents or item != documents}
        flat = {**{name: item for name, item in flat.items() if name not in parts}, **lower}
    if not are_of_record(*flat):
        return value
    return {**flat, "chunks": documents} if documents and "chunks" not in suggested(list(flat), "table") else flat


def _usual(value: Row) -> Row:
    """Return a record without the envelope of an API, with answer and chunks under usual names."""
    return _numbered(_with_documents(unwrap.with_haystack_answer(unwrap.with_tokens(unwrap.without_envelope(value)))))


def _numbered(value: Row) -> Row:
    """Return a record with its numbered columns, such as ``chunk_1`` and ``chunk_1_id``, as ``chunks``."""
    chunks: dict[int, Row] = {}
    others: Row = {}
    for name, item in value.items():
        match = _NUMBERED.fullmatch(name)
        part = chunks.setdefault(int(match[1]), {}) if match else others
        field = (match[2] or "text").casefold() if match else name
        if field in part:  # a second text of a chunk stays a column, so that the account names it
            others[name] = item
        elif part is others or item not in (None, ""):
            part[field] = item
    if not chunks or "chunks" in value:
        return value
    parts = [part.get("text") if part.keys() == {"text"} else part for _, part in sorted(chunks.items()) if part]
    return {**others, "chunks": parts}


def _with_documents(value: Row) -> Row:
    """Return a record with the retrieved documents in the response of a model's API as ``chunks``."""
    others = suggested([name for name in value if name != "result"], "table")
    is_answered = others.get("answer") not in (None, others.get("question"))  # both are messages
    if isinstance(value.get("result"), dict) and not is_answered:  # otherwise it may be a verdict
        value = {("response" if name == "result" else name): item for name, item in value.items()}
    if value.get("object") == "response":  # of OpenAI; its id names no question
        rest = {name: item for name, item in value.items() if name not in ("id", "object", "metadata")}
        value = {**unwrap.as_dict(value.get("metadata")), **rest}
    if "text" in value and not value.keys().isdisjoint(("generation_id", "sourceDocuments")):  # of Cohere, Flowise
        value = {("answer" if name == "text" else name): item for name, item in value.items()}
    documents = retrieved.documents_of_response(value)
    return {**value, "chunks": documents} if documents and "chunks" not in suggested(list(value), "table") else value


def _merged(lists: list[list[Any]]) -> list[Row]:
    """Return the records of lists by evaluator, which repeat the samples; an empty list if they are not the same."""
    rows: list[Row] = []
    for parts in zip_longest(*lists):
        row: Row = {}
        for part in map(unwrap.as_dict, parts):
            row = {**part, **{name: value for name, value in row.items() if value is not None}}
        names = [name for field, name in suggested(list(row), "table").items() if field in ("question", "answer")]
        if len(names) < 2 or any(unwrap.as_dict(part).get(name) != row[name] for part in parts for name in names):
            return []
        rows.append(row)
    return rows


def _records(conversion: Conversion, form: str, fields: dict[str, str]) -> Iterator[Row]:
    """Yield the mapped values of each record; a mapped column that no record has is a problem."""
    inputs = conversion.inputs
    read = {name[1:].partition("/")[0] if name.startswith("/") else name for name in fields.values()}
    answer = "answer" if form == "table" else "expected_answer"
    for path in inputs.paths:
        used: set[str] = set()
        for line, recorded, usual in _objects(inputs, path):
            conversion.place, row = (path, line), recorded | usual
            pointed = {
                field: unwrap.at(row, pointer) if pointer.startswith("/") else row.get(pointer)
                for field, pointer in fields.items()
            }
            pointed["status"] = row.get("status")  # a failure, if there is no answer
            values = {field: value for field, value in pointed.items() if value not in (None, "")}
            used |= values.keys()
            if fields.get(answer) == fields.get("question") and isinstance(unwrap.decoded(values.get("question")), str):
                values.pop(answer, None)  # a text is no conversation
            for name in recorded if read <= recorded.keys() else usual:
                if name not in read:
                    conversion.account.dropped(name, "the map does not contain it")
            if fields.get("qid") == "id" and "conversation" in values and _UUID.fullmatch(str(values.get("qid"))):
                conversion.account.dropped("id", "it names a message of a chat, not a question")
                del values["qid"]
            if "qid" not in values and (qid := conversion.qid(unwrap.decoded(row.get("metadata")))) is not None:
                values["qid"] = qid
            yield from _turns(conversion, values) if form == "table" else [values]
        _report_unused(conversion, form, path, fields, used)


def _report_unused(conversion: Conversion, form: str, path: str, fields: dict[str, str], used: set[str]) -> None:
    """Report mapped columns that no record has, and results of a batch without their questions."""
    if fields.get("qid") == "custom_id" and used and "question" not in used:
        advice = "pass the file of requests too, or pair them with --gold"
        conversion.account.lacking(f"results of a batch without their questions: {advice}")
    for field, column in fields.items():
        if used and field not in used and column not in header(conversion.inputs, path):  # a blank column is fine
            message = f"{field} is mapped to {column}, which no record has"
            hint = f"Correct the map: rag-eval import {form} {path} --suggest-map"
            conversion.inputs.problem(path, 0, "", message, hint)


def _turns(conversion: Conversion, values: Row) -> Iterator[Row]:
    """Yield the values of each turn of a conversation that has its answers; the last turn has those of the record."""
    asked, answered = (unwrap.decoded(values.get(name)) for name in ("question", "answer"))
    turns = unwrap.turns_of(asked) if asked == answered and conversion.options.turns != "last" else []
    conversation = unwrap.as_id(values.get("conversation")) or unwrap.as_id(values.get("qid"))
    for index, turn in enumerate(turns[:-1], 1):
        of_all = {name: values.get(name) for name in ("run", "time")}
        yield {**of_all, "conversation": conversation, "turn": index, "question": turn, "answer": turn}
    if len(turns) > 1:
        last = {"conversation": conversation, "turn": len(turns), "question": turns[-1], "answer": turns[-1]}
        values = {**values, **last, "qid": None}
    yield values


def drafts(conversion: Conversion, fields: dict[str, str]) -> Iterator[Draft]:
    """Yield each record, or each group of records with one qid, question and run (a chunk in each).

    In a group the first record has the answer, or all records repeat it.
    """
    groups: dict[tuple[str | None, ...], tuple[Draft, Any, list[Any]]] = {}  # with its answer and ranks, as recorded
    result: list[Draft] = []
    are_names = fields.get("chunks", "").casefold() in retrieved.SOURCE_KEYS
    for values in _records(conversion, "table", fields):
        key = tuple(unwrap.as_id(values.get(name)) for name in ("qid", "question", "run", "model"))
        documents = _documents(conversion, values, are_names)
        chunks = None if documents is None else conversion.chunks(documents)
        known, answer, ranks = groups.get(key, (None, None, []))
        rank = unwrap.number(values.get("rank"))
        ids = {chunk["id"] for chunk in (known.chunks or () if known else ())}
        fresh = [chunk for chunk in chunks or () if chunk["id"] not in ids]
        repeats_answer = len(fresh) == len(chunks or ()) == 1 and values.get("answer") == answer
        if known is not None and chunks is not None and (not values.get("answer") or repeats_answer):
            if fresh and len(chunks) > 1:
                hint = "If a column names the run or the retriever, map it to run: --suggest-map"
                conversion.problem("", "repeats a question with another list of chunks", hint)
            known.chunks = [*(known.chunks or []), *fresh]
            ranks += [rank] * len(fresh)
            continue
        draft = _draft(conversion, values)
        draft.chunks = chunks
        read_positions(conversion, draft, unwrap.output_of(values.get("answer")))
        if not {"answer", "error"} & fields.keys():
            draft.answer = ""
            conversion.account.lacking("records without an answer: use --perspective retrieval")
        result.append(draft)
        if known is None:
            groups[key] = draft, values.get("answer"), [rank] * len(chunks or ())
    for draft, _, order in groups.values():
        if draft.chunks and None not in order:
            positions = sorted(range(len(order)), key=order.__getitem__)
            draft.chunks = [draft.chunks[position] for position in positions]
    _identify_by_text(conversion, [draft.chunks for draft in result if draft.chunks])
    if len({key[:-1] for key in groups}) < len(groups):  # a question was asked of several models
        for draft in result:
            draft.run = draft.run or draft.usage.get("model")
    yield from result


def _identify_by_text(conversion: Conversion, lists: list[list[Row]]) -> None:
    """Replace ids of chunks that are their ranks, and so name another text for each question."""
    texts = {(chunk["id"], chunk.get("text")) for chunks in lists for chunk in chunks}
    ids = {identity for identity, _ in texts}
    ranked = [[chunk["id"].strip("[]") for chunk in chunks] for chunks in lists]
    are_ranks = any(
        all(names == list(map(str, range(first, first + len(names)))) for names in ranked) for first in (0, 1)
    )
    if are_ranks and len(texts) > len(ids) and all(text for _, text in texts):
        conversion.account.renamed("ids of chunks that are their ranks", "ids of their texts")
        for chunk in chain.from_iterable(lists):
            chunk["id"] = text_id(chunk["text"])


def _documents(conversion: Conversion, values: Row, are_names: bool) -> list[Any] | None:
    """Return the chunks of a record with their scores; ``are_names`` if texts without white space are ids."""
    is_absent = {name: str(values.get(name)).casefold() in _ABSENT for name in ("chunks", "chunk_ids")}
    values = {name: [] if is_absent.get(name) else item for name, item in values.items()}
    ids, scores = (_separated(values.get(name)) for name in ("chunk_ids", "chunk_scores"))
    texts = retrieved.documents_in(unwrap.decoded(values.get("chunks"))) or _items(values.get("chunks"))
    if unwrap.number(values.get("chunks")) is not None:
        hint = "If it is an id, map it to chunk_ids. If it counts chunks, leave it out of the map: --suggest-map"
        conversion.problem("/chunks", f"is the number {values['chunks']}", hint)
    if ids is None and any(form.fullmatch(str(values.get("chunks"))) for form in (_SEVERAL_IDS, _ID)):
        texts, ids = None, _separated(values["chunks"])
    asked = unwrap.decoded(values.get("question"))
    if texts is None and ids is None:
        found = retrieved.contexts_in(*reversed(unwrap.as_list(unwrap.output_of(values.get("answer")))), asked)
        found = unwrap.as_dict(found).get("citations", found)  # of messages of Azure OpenAI
        texts = retrieved.documents_in(unwrap.decoded(found)) or _items(found)
    turns = unwrap.turns_of(unwrap.as_dict(asked).get("messages", asked))
    steps = (unwrap.output_of(values.get("answer")), *reversed(turns))
    results = next(filter(None, map(retrieved.tool_results, steps)), [])
    lists = [retrieved.documents_of_result(result) if texts is None and ids is None else [] for result in results]
    texts = list(chain.from_iterable(lists)) or texts
    conversion.account.dropped(
        "results of tools or documents without text", "they are not named as retrieved chunks", lists.count([])
    )
    if isinstance(values.get("chunks"), str) and texts and len(texts) == 1:
        if ids and len(ids) > 1:
            conversion.account.dropped("texts of chunks", "they are one text, and there are several ids")
            texts = None
        elif ids is None:
            texts = conversion.one_text(texts[0])
    is_list = isinstance(unwrap.decoded(values.get("chunks")), list)
    if texts and (are_names or (is_list and all(_ID.fullmatch(str(text)) for text in texts))):
        texts = retrieved.named_documents(texts)
    documents = conversion.documents(texts, ids)
    if documents is None or scores is None:
        return documents
    if len(scores) != len(documents):
        conversion.account.dropped("chunk_scores", "there is not one for each chunk")
        return documents
    parts = [part if isinstance(part, dict) else {"text": part} for part in documents]
    return [{**part, "score": unwrap.number(score)} for part, score in zip(parts, scores, strict=True)]


def drop_rest(conversion: Conversion, output: Any, usage: Row) -> None:
    """Record the fields of an answer from which neither text, documents, citations nor usage are read."""
    choice = next((item for item in unwrap.as_list(unwrap.at(output, "/choices"))), None)
    conversion.drop_unread(unwrap.as_dict(choice), _OF_CHOICES, " of choices")
    conversion.drop_unread(unwrap.as_dict(unwrap.at(choice, "/message")), _OF_MESSAGES, " of messages")
    is_lost = bool(unwrap.at(output, "/citations")) and retrieved.stated_citations(output) is None
    conversion.account.dropped("citations of the answer", "they name no ids", is_lost)
    currency = unwrap.at(output, "/metadata/usage/currency")  # of Dify
    conversion.account.dropped("costs of answers", "they are not in US dollars", currency not in (None, "USD"))
    counts = {name.partition("/")[0] for name in unwrap.USAGES if unwrap.at(output, f"/{name}") is not None}
    read = {*retrieved.CONTEXT_KEYS, *retrieved.SOURCE_KEYS, *_OF_OUTPUTS, *counts}
    conversion.drop_others(output, unwrap.ANSWER_FIELDS, " of the answer", read | set(unwrap.MODELS if usage else ()))


def read_positions(conversion: Conversion, draft: Draft, output: Any) -> None:
    """Fill the citations of a draft from the positions of its chunks that the parts of an answer cite."""
    positions, chunks = retrieved.cited_positions(output), draft.chunks or []
    if draft.citations is None and positions and max(positions) < len(chunks):
        draft.citations = [chunks[position]["id"] for position in positions]
    elif draft.citations is None:
        conversion.account.dropped("citations in the text of answers", "they name no chunk", len(positions))


def read_operations(conversion: Conversion, draft: Draft, values: Row) -> None:
    """Fill error, latency, tokens, cost, time and conversation of a sample from its values."""
    error = unwrap.as_dict(values.get("error")).get("error") or values.get("error")  # of Anthropic, an object in one
    if str(error or "").casefold() not in _NO_ERROR and not draft.answer:
        draft.answer, draft.error, draft.ok = None, unwrap.first_id(("message", "code"), error) or str(error), False
    for field in QUANTITIES:
        recorded = values.get(field)
        is_decimal = _DECIMAL_COMMA.fullmatch(str(recorded).strip())
        number = unwrap.number(str(recorded).replace(",", ".") if is_decimal else recorded)
        if recorded is None:
            continue
        if number is None:
            conversion.account.dropped(f"{field} {quoted(str(recorded), 20)}", "it is no number")
        elif not field.startswith("latency"):
            draft.usage[field] = number if field == "cost_usd" else int(number)
        elif field == "latency_s" and number >= _LONGEST_LATENCY:
            why = "map it as latency_ms if it is in milliseconds"
            conversion.account.dropped(f"{field} of {_LONGEST_LATENCY} or more", why)
        elif number > 0:
            draft.latency_ms["total"] = round(float(number * (1000 if field == "latency_s" else 1)), 3)
    draft.conversation = unwrap.as_id(values.get("conversation"))
    draft.turn = int(unwrap.number(values.get("turn")) or 0)
    draft.start_ns = instant(values.get("time"))
    total = unwrap.milliseconds(draft.start_ns, instant(values.get("end")))
    draft.latency_ms = draft.latency_ms or ({"total": total} if total else {})
    if draft.start_ns is None and values.get("time") is not None:
        conversion.account.dropped(f"time {quoted(str(values['time']), 20)}", "it is neither ISO 8601 nor a number")


def instant(value: Any) -> int | None:
    """Return a time in nanoseconds: ISO 8601, or seconds or milliseconds as a number or its text."""
    number = unwrap.number(value)
    return unwrap.nanoseconds(value if number is None else number * (1000 if number < 1e11 else 1))


def _draft(conversion: Conversion, values: Row) -> Draft:
    asked, recorded = values.get("question"), values.get("answer")
    if isinstance(asked, str) and asked[:1] == '"':  # TruLens writes texts as JSON
        asked, recorded = unwrap.decoded(asked), None if recorded == "null" else recorded
    output = unwrap.output_of(recorded)
    question, answer = conversion.question(asked), conversion.answer(output)
    contexts = retrieved.CONTEXT_KEYS if values.keys().isdisjoint(("chunks", "chunk_ids")) else ()
    conversion.drop_others(unwrap.decoded(asked), unwrap.QUESTION_FIELDS, " of the question", contexts)
    draft = Draft(conversion.place, "", question, unwrap.as_text(recorded) if answer is None else answer)
    draft.citations = retrieved.stated_citations(output)
    draft.usage = unwrap.usage_of(output)
    drop_rest(conversion, output, draft.usage)
    draft.qid, draft.run = unwrap.as_id(values.get("qid")), unwrap.as_id(values.get("run"))
    draft.usage |= {"model": model} if (model := unwrap.as_id(values.get("model"))) else {}
    if values.get("citations") is not None:
        citations = unwrap.decoded(values["citations"])
        if isinstance(citations, list) and any(isinstance(item, dict) for item in citations):
            draft.citations = retrieved.stated_citations({"citations": citations})
            conversion.account.dropped("citations", "they name no ids", draft.citations is None)
        else:
            draft.citations = _list_of(conversion, "citations", values)
    if question is None and asked is not None:
        conversion.account.lacking("records without a text of the question in its field: they have only an id")
    failed = unwrap.as_dict(output)
    kind = failed.get("type") if failed.get("type") in _FAILED else None
    read_operations(conversion, draft, {"error": unwrap.failure_of(output, values.get("status")) or kind, **values})
    return draft


def _separated(value: Any) -> list[Any] | None:
    items = cell_value(value) if isinstance(value, str) else value
    if not isinstance(items, str):
        return _items(items)
    ids = _BETWEEN_IDS.split(items.strip().removeprefix("[").removesuffix("]"))  # brackets without quotes inside
    words = items.split()
    return words if len(ids) == 1 and all(map(_ID.fullmatch, words)) else ids


def _items(value: Any) -> list[Any] | None:
    return None if value in (None, {}) else unwrap.as_list(unwrap.decoded(value))


def _list_of(conversion: Conversion, name: str, values: Row) -> list[str]:
    """Return the texts of a list. A text without brackets is one text, or a list of ids or tags."""
    value = values.get(name)
    if isinstance(value, str) and value.lstrip()[:1] != "[":
        if name in ("contexts", "gold_claim_substr"):  # their texts may contain separators
            if not {";", "|"}.isdisjoint(value):
                conversion.account.lacking(f"{name} with ; or |: each is one text; write several as a JSON list")
            return [value]
        texts = [text for text in _separated(value) or () if text]
        if len(texts) > 1:
            conversion.account.renamed(f"{name} with separators", "lists")
        return texts
    if isinstance(value, list) and any(isinstance(item, list) for item in value):  # of AutoRAG: alternatives of each
        value = [part for item in value for part in unwrap.as_list(item)]
    return [str(item) for item in conversion.list_of({name: value}, name) or ()]
