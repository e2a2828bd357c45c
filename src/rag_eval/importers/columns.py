"""The usual names of columns and fields of tables, and the maps that they suggest."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from itertools import takewhile
from operator import itemgetter

from rag_eval.textual import read_table


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text.replace("°", "o"))  # № is No, and so is N°
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


_TABLE = read_table("names.toml", "rag_eval.importers")
_WORDS = {word: english for english, words in _TABLE["words"].items() for word in _without_accents(words).split()}
FORMS: dict[str, dict[str, list[str]]] = {
    form: {field: names.split() for field, names in _TABLE[part].items()}
    for form, part in (("table", "trace"), ("table-gold", "gold"))
}
"""The fields of a map for each format, and the names by which ``--suggest-map`` finds each."""
PREDICTED = tuple(takewhile("answer".__ne__, FORMS["table"]["answer"]))
"""Names of answers of a system: next to one, ``answer`` is the reference."""
_OF_ANSWERS = _TABLE["of_answers"]["names"].split()
_WORD, _CAMEL = re.compile(r"[^\W_]+"), re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CHOICE = re.compile(r"\b(?:yes|y|ja|j|oui|o|si|s|sim|true|1) ?[/|] ?(?:no|n|nein|non|nao|false|0)\b|\(\d ?[-–] ?\d\)")
_NEEDED = {"table": (("answer", "error"), ("question", "qid")), "table-gold": (("question",),)}
QUANTITIES = ("latency_ms", "latency_s", "input_tokens", "output_tokens", "cost_usd")
_OF_SYSTEMS = ("error", *QUANTITIES, "chunk_scores")  # no gold set has them
_OPERATIONS = ("error", *QUANTITIES, "conversation", "turn", "time", "end")
_REFERENCES = ("reference", "reference_outputs", "reference_output", "expected", "expected_output", "ground_truth")
_LABELS = {"expected_answer", "gold_citations", "relevant_docs", "gold_claim_substr", "relevance_grades", "answerable"}


@lru_cache(maxsize=1 << 14)
def english(name: str) -> str:
    """Return a name in lower case with its words in English, such as ``generated_answer`` for Generierte Antwort."""
    plain = _without_accents(_CAMEL.sub("_", name)).casefold()
    words = _WORD.findall(_CHOICE.sub("", plain))
    known = [part for word in words for part in _WORDS.get(word, word).split()]
    return "_".join(known or words)


def _telling(name: str) -> str:
    """Return the most telling part of a name with dots: of input.question the last, of input.value the first."""
    path = name.split(".")
    is_general = len(path) > 1 and (path[-1] in ("value", "content", "text") or path[-2] in _REFERENCES)
    return path[-2] if is_general else path[-1]


def _is_translated(name: str) -> bool:
    return english(name).replace("_", "") != "".join(_WORD.findall(name)).casefold()


@lru_cache(maxsize=1 << 14)
def _words(name: str) -> tuple[str, ...]:
    return tuple(sorted(english(name).split("_")))


def suggested(names: list[str], form: str) -> dict[str, str]:
    """Return a first map from the names of a header or of a record's keys: only recognised fields.

    The whole of a name counts before a part of it, and a name in English before a translation. The order of its words
    does not matter.
    """
    telling = {name: _telling(name) for name in names if not name.startswith("suggestions.")}  # by a model, in Argilla
    plain = {name: english(part) for name, part in telling.items()}
    parts = [(_is_translated(part), part, name) for name, part in telling.items()]
    wholes = [(_is_translated(name), name, name) for name in telling]
    by_rank = [text for texts in (wholes, parts) for text in sorted(texts, key=itemgetter(0))]
    spelled = {_words(text): name for _, text, name in reversed(by_rank)}
    known: dict[str, str] = {}
    of_traces = suggested(names, "table") if form == "table-gold" else {}
    answered = of_traces.get("answer")
    for field, alternatives in FORMS[form].items():
        free = [spelled[words] for words in map(_words, alternatives) if words in spelled]
        free = [name for name in free if name not in known.values()]
        has_both = answered is not None and known.get("expected_answer", answered) != answered
        if field in ("gold_citations", "relevant_docs", "contexts") and has_both:
            free = [name for name in free if plain[name] not in _OF_ANSWERS]
        judged = known.get("gold_citations") or known.get("contexts", "")
        if field == "relevance_grades" and plain.get(judged) not in _OF_ANSWERS:
            continue  # the name says that all are gold
        are_of_chunks = "chunk_ids" in known or ("chunks" in known and free and plain[free[0]] != "score")
        if free and (field not in ("chunk_scores", "rank") or are_of_chunks):
            known[field] = free[0]
    is_verdict = "chunks" not in known and plain.get(known.get("question", "")) != "query"  # as LangChain calls it
    if plain.get(known.get("answer", "")) == "result" and is_verdict:
        del known["answer"]
    answer = "answer" if form == "table" else "expected_answer"
    response = spelled.get(("response",), "")
    is_predicted = _words(telling.get(answered or "", "")) in map(_words, PREDICTED)
    if form == "table-gold" and is_predicted and response not in ("", answered):
        known.setdefault(answer, response)
    retrieved = {of_traces.get("chunks", ""), of_traces.get("chunk_ids", "")} - {*known.values()}
    is_log = not of_traces.keys().isdisjoint(_OF_SYSTEMS) or any("retriev" in english(name) for name in retrieved)
    if is_log and answered == known.get(answer):
        known.pop(answer, None)  # of the system
    has_no_answer = known.keys().isdisjoint({answer} | _LABELS)
    if plain.get(known.get("question", "")) in ("messages", "conversations") and has_no_answer and not is_log:
        known[answer] = known["question"]  # a conversation has both
    return known


def is_sufficient(fields: Mapping[str, str], form: str) -> bool:
    """Return whether a suggested map has the fields without which a file of the form would be empty."""
    is_retrieval = any("retriev" in english(fields.get(name, "")) for name in ("chunk_ids", "chunks"))
    given = {*fields, *(["answer"] if is_retrieval else [])}
    has_needed = all(any(field in given for field in alternatives) for alternatives in _NEEDED[form])
    return has_needed and (form == "table" or any(field in fields for field in _LABELS))


@lru_cache(maxsize=256)  # the rows of a file have few sets of names
def operations(*names: str) -> dict[str, str]:
    """Return the names of latency, tokens, cost, error and conversation in a sample of any tool, by their fields."""
    return {field: name for field, name in suggested(list(names), "table").items() if field in _OPERATIONS}


@lru_cache(maxsize=256)
def are_of_record(*names: str) -> bool:
    """Return whether the names of an object are sufficient for a form."""
    return any(is_sufficient(suggested(list(names), form), form) for form in FORMS)
