"""Public question answering data sets as gold rows, chunks and, if they contain a system's answers, trace rows.

Each converter takes a decoded record and yields items. Sources: the data sets' own papers and cards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from rag_eval.importers import FIELDS, Row, gold_row
from rag_eval.importers.unwrap import as_dict, as_id
from rag_eval.trace import text_id

_NO_ANSWER = "no answer present."


class DatasetItem(NamedTuple):
    """One question of a data set: its gold row, its chunks by id, and its trace row if the data set has an answer."""

    gold: Row
    chunks: dict[str, str]
    trace: Row | None = None


class Dataset(NamedTuple):
    """A data set: its address, its licence, and the function that converts its records to items."""

    licence: str
    homepage: str
    repository: str  # of the hub that --download requests
    files: list[str]
    convert: Callable[[Any], Iterator[DatasetItem]]
    keys: Sequence[str] = ()  # sets of fields, each of which only its records have


def _gold(
    qid: str, question: str, answers: Sequence[str], citations: Sequence[str], *, answerable: bool = True, **more: Any
) -> Row:
    """Return a gold row; every answer of five characters or more is a substring that makes a claim right."""
    expected = answers[0] if answers and answerable else None
    more["substrings"] = [text for text in dict.fromkeys(answers) if len(text) >= 5]
    return gold_row(qid, question, answerable=answerable, citations=citations, expected=expected, **more)


def squad(record: Any) -> Iterator[DatasetItem]:
    """Convert SQuAD 2.0: the official file (articles with paragraphs), or rows with one question each."""
    for article in record.get("data", ()):
        title = article["title"]
        for number, paragraph in enumerate(article["paragraphs"]):
            identity = f"{title}#{number}"
            for asked in paragraph["qas"]:
                texts, answerable = [item["text"] for item in asked.get("answers", ())], not asked.get("is_impossible")
                more: Row = {"answerable": answerable, "category": title}
                gold = _gold(asked["id"], asked["question"], texts, [identity], **more)
                yield DatasetItem(gold, {identity: paragraph["context"]})
    if "context" in record:
        identity, texts = text_id(record["context"]), list(as_dict(record.get("answers")).get("text", ()))
        more = {"answerable": bool(texts), "category": record.get("title")}
        gold = _gold(record["id"], record["question"], texts, [identity], **more)
        yield DatasetItem(gold, {identity: record["context"]})


def hotpotqa(record: Any) -> Iterator[DatasetItem]:
    """Convert HotpotQA: titles are ids of chunks; titles of supporting facts are the citations."""
    facts, context = record["supporting_facts"], record["context"]
    titles = facts["title"] if isinstance(facts, dict) else [title for title, _ in facts]
    pairs = zip(context["title"], context["sentences"], strict=True) if isinstance(context, dict) else context
    gold = _gold(
        as_id(record.get("_id")) or as_id(record.get("id")) or "", record["question"], [record["answer"]], titles,
        multi_hop=True, query_type=record.get("type"), difficulty=record.get("level"),
    )  # fmt: skip
    yield DatasetItem(gold, {title: "".join(sentences) for title, sentences in pairs})


def msmarco(record: Any) -> Iterator[DatasetItem]:
    """Convert MS MARCO question answering (v1.1, v2.1): selected passages are the citations."""
    qid, passages = as_id(record["query_id"]) or "", record["passages"]
    names = ("passage_text", "is_selected")
    if isinstance(passages, list):
        passages = {name: [passage[name] for passage in passages] for name in names}
    texts, selected = (passages[name] for name in names)
    answers = [item for item in record.get("answers", ()) if item and item.casefold() != _NO_ANSWER]
    ids = [f"{qid}#{index}" for index in range(len(texts))]
    cited = [identity for identity, chosen in zip(ids, selected, strict=True) if chosen]
    kind = str(record.get("query_type") or "").lower() or None
    gold = _gold(qid, record["query"], answers, cited, answerable=bool(answers), query_type=kind)
    yield DatasetItem(gold, dict(zip(ids, texts, strict=True)))


def qasper(record: Any) -> Iterator[DatasetItem]:
    """Convert Qasper: an object of papers by id, or one paper; paragraphs are chunks ``PAPER#N``."""
    papers = record.items() if "full_text" not in record else [(str(record.get("id")), record)]
    for paper, content in papers:
        text = content["full_text"]
        lists = text["paragraphs"] if isinstance(text, dict) else [section["paragraphs"] for section in text]
        chunks = {f"{paper}#{index}": paragraph for index, paragraph in enumerate(chain.from_iterable(lists))}
        by_text = {text: identity for identity, text in chunks.items()}
        for qid, question, answers in _asked(content["qas"]):
            stated = [answer.get("answer", answer) for answer in answers]
            stated = [item for item in stated if not item.get("unanswerable")]
            texts = [
                text for item in stated for text in (*item.get("extractive_spans", ()), item.get("free_form_answer"))
            ]
            texts += ["yes" if item["yes_no"] else "no" for item in stated if isinstance(item.get("yes_no"), bool)]
            evidence = [by_text[text] for item in stated for text in item.get("evidence", ()) if text in by_text]
            more: Row = {"answerable": bool(stated), "category": paper}
            yield DatasetItem(_gold(qid, question, [text for text in texts if text], evidence, **more), chunks)


def _asked(qas: Any) -> Iterator[tuple[str, str, list[Row]]]:
    if isinstance(qas, dict):
        for qid, question, answers in zip(qas["question_id"], qas["question"], qas["answers"], strict=True):
            yield qid, question, answers["answer"] if isinstance(answers, dict) else answers
    else:
        yield from ((item["question_id"], item["question"], item["answers"]) for item in qas)


def ragbench(record: Any) -> Iterator[DatasetItem]:
    """Convert RAGBench: documents with relevant sentences (``0a`` is in document 0), and the answer of a system."""
    qid, texts = as_id(record["id"]) or "", list(record["documents"])
    ids = [f"{qid}#{index}" for index in range(len(texts))]
    keys = record.get("all_relevant_sentence_keys") or ()
    indexes = [int(number) for key in keys if (number := str(key).rstrip("abcdefghijklmnopqrstuvwxyz")).isdigit()]
    cited = [ids[index] for index in dict.fromkeys(indexes) if index < len(ids)]
    gold = _gold(qid, record["question"], [], cited, category=record.get("dataset_name"))
    if record.get("response"):
        gold["expected_answer"] = record["response"]
    chunks = dict(zip(ids, texts, strict=True))
    trace = {
        "qid": qid,
        "q": record["question"],
        "retrieved_ids": ids,
        "answer_json": {"claim": record.get("response") or ""},
        "chunks": [{"id": identity, "text": text} for identity, text in chunks.items()],
    }
    yield DatasetItem(gold, chunks, trace)


def natural_questions(record: Any) -> Iterator[DatasetItem]:
    """Convert Natural Questions: the simplified form (one document, annotations by token), or NQ-Open."""
    if "document_text" not in record:
        answers = record["answer"] if isinstance(record["answer"], list) else [record["answer"]]
        qid = as_id(record.get("id")) or f"nq-{text_id(record['question'])[5:]}"
        yield DatasetItem(_gold(qid, record["question"], answers, []), {})
        return
    tokens, qid = record["document_text"].split(" "), as_id(record["example_id"]) or ""

    def words(span: Row) -> str:
        return " ".join(tokens[span["start_token"] : span["end_token"]]) if span["start_token"] >= 0 else ""

    annotation = record["annotations"][0]
    passage, answers = words(annotation["long_answer"]), [words(item) for item in annotation["short_answers"]]
    chunks = {f"{qid}#long": passage} if passage else {}
    yield DatasetItem(_gold(qid, record["question_text"], answers, list(chunks), answerable=bool(passage)), chunks)


_CONVERTERS = (squad, hotpotqa, msmarco, qasper, ragbench, natural_questions)
DATASETS = {
    name: Dataset(convert=convert, **fields)
    for (name, fields), convert in zip(FIELDS["datasets"].items(), _CONVERTERS, strict=True)
}
"""BEIR sets are read by ``rag-eval import beir``."""


def dataset_of(names: Sequence[str]) -> str:
    """Return the name of the data set whose records have fields of these names, '' for none."""
    known = ((name, keys) for name, dataset in DATASETS.items() for keys in dataset.keys)
    return next((name for name, keys in known if set(keys.split()) <= set(names)), "")
