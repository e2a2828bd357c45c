"""One conversion of foreign files: the options that the user gives, and the rows built from what was read."""

from __future__ import annotations

import re
from calendar import monthrange, timegm
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rag_eval.importers import unwrap
from rag_eval.importers._account import Account
from rag_eval.importers.documents import objects

if TYPE_CHECKING:
    from rag_eval.importers import Inputs

Row = dict[str, Any]
_ISO = re.compile(
    r"([12]\d{3})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?\s?(?:Z|UTC|([+-])(\d\d):?(\d\d))?"
)
_EMPTY: tuple[Any, ...] = (None, "", [], {}, "{}", 0)  # 0 and false say no more than an absent field
_PAGING = ("meta", "cursors", "next_cursor", "parsed_query", "search_cursors")
_TIMEOUT = re.compile(r"(?i)timeout|timed out|deadline exceeded|\b504\b")
NOT_READ = "no metric reads it"
JUDGED = "an LLM or a person judged it; rag-eval computes its own metrics"


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says of a foreign file on the command line, because the file does not."""

    questions: Mapping[str, Sequence[str]] | None = None  # qids of a gold set by question
    qids: frozenset[str] = frozenset()  # of the same gold set
    qid: str = ""  # JSON Pointers, '' for none
    question: str = ""
    answer: str = ""
    chunks: str = ""
    chunk_id: str = ""
    doc_id: str = ""
    citations: str = "none"  # or brackets, numbers, a regular expression with one group
    run: str = ""
    retriever: str = ""  # the name of the span whose output is what was retrieved
    unanswerable: tuple[str, ...] = ()  # expected answers that mean: not answerable
    since: str = ""  # ISO 8601; earlier traces are left out
    last_only: bool = False
    turns: str = ""  # or "last": read the last turn of a conversation
    answers: str = ""  # a file of qid and answer
    corpus: str = ""  # a file of chunk texts
    map: str = ""


@dataclass(slots=True)
class Draft:
    """A trace as its source tells it; ``None`` is what the source does not tell."""

    path: str
    line: int
    source: str  # the id that the source gives the trace
    question: str | None = None
    answer: str | None = None
    chunks: list[Row] | None = None
    citations: list[str] | None = None
    qid: str | None = None
    run: str | None = None
    start_ns: int | None = None
    error: str | None = None
    ok: bool | None = None
    abstained: bool | None = None
    policy_flags: list[str] = field(default_factory=list)
    latency_ms: dict[str, float] = field(default_factory=dict)
    usage: Row = field(default_factory=dict)


class Conversion:
    """Builds rows for one importer: keeps the account, counts what pointers find, reports what is wrong."""

    def __init__(self, inputs: Inputs, options: Options, account: Account, capture: str = "") -> None:
        self.inputs, self.options, self.account = inputs, options, account
        self._capture = capture  # how content is captured in the source, for messages
        self._pointers: Counter[str] = Counter()
        self._pointed: Counter[str] = Counter()
        self._by_text = self._by_id = 0

    def records(self, what: str, *lists: str) -> Iterator[tuple[str, int, Row]]:
        """Yield path, line and value of each object in all files; of a page of an API each object in its list.

        ``lists`` are the names that the list of a page may have. A page that is not the last one needs the others.
        """
        begun: list[tuple[str, int]] = []
        pages, ended = 0, False
        for path in self.inputs.paths:
            for line, value in objects(self.inputs, path, what):
                name = next((name for name in lists if isinstance(value.get(name), list)), None)
                if name is None:
                    yield path, line, value
                    continue
                meta, cursors = unwrap.as_dict(value.get("meta")), unwrap.as_dict(value.get("cursors"))
                pages += 1
                self.left_out(value, (name, *_PAGING), "", ("metrics",))
                total = meta.get("totalPages")
                more = value.get("next_cursor") or meta.get("cursor") or cursors.get("next")
                if more or (isinstance(total, int) and pages < total):
                    begun.append((path, line))
                else:
                    ended = True
                for row in value[name]:
                    if isinstance(row, dict):
                        yield path, line, row
                    else:
                        hint = "Check that the file is whole: rag-eval import auto FILE"
                        self.inputs.problem(path, line, f"/{name}", f"has an element that is not {what}", hint)
        if begun and not ended:
            message = "is one of several pages, and the last page is missing"
            self.inputs.problem(*begun[-1], "", message, "Fetch the other pages too, and give all files at once.")

    def left_out(self, row: Row, read: Collection[str], where: str = "", judged: Collection[str] = ()) -> None:
        """Take down the fields of a row that are not ``read`` and not empty."""
        for name, value in row.items():
            if name not in read and value not in _EMPTY:
                self.account.dropped(f"{name}{where}", JUDGED if name in judged else NOT_READ)

    def pointed(self, option: str, value: Any) -> Any:
        """What the option's JSON Pointer leads to in ``value``; None without the option."""
        pointer = getattr(self.options, option)
        if not pointer:
            return None
        found = unwrap.at(value, pointer)
        self._pointers[option] += 1
        self._pointed[option] += found is not None
        return found

    def question(self, value: Any, row: Any = None) -> str | None:
        """The question in a recorded input, by ``--question`` from the row if it is given."""
        pointed = self.pointed("question", row if row is not None else value)
        text, turns = unwrap.question_text(value if pointed is None else pointed)
        if turns:
            self.account.dropped("earlier turns of a conversation", "a row holds the last question", turns)
        return text

    def answer(self, value: Any, row: Any = None) -> str | None:
        """The answer in a recorded output, by ``--answer`` from the row if it is given."""
        pointed = self.pointed("answer", row if row is not None else value)
        return unwrap.answer_text(value if pointed is None else pointed)

    def qid(self, *places: Any) -> str | None:
        """The id of the gold item, from the first of ``places`` (mappings) that states one."""
        for place in places:
            if (pointed := unwrap.as_plain_id(self.pointed("qid", place))) is not None:
                return pointed
        for place in places:
            for name in unwrap.QID_KEYS if isinstance(place, dict) else ():
                if found := unwrap.as_plain_id(place.get(name)):
                    return found
        return None

    def chunks(self, documents: Iterable[Any], path: str, line: int) -> list[Row]:
        """Retrieved documents as chunks: id, text, doc_id, score. A repeated id keeps its first place."""
        found: dict[str, Row] = {}
        for document in documents:
            chunk = self._chunk(document, path, line)
            if chunk is None:
                continue
            if chunk["id"] in found:
                self.account.dropped("a chunk that was retrieved twice", "its first place counts")
            else:
                found[chunk["id"]] = chunk
        return list(found.values())

    def _chunk(self, document: Any, path: str, line: int) -> Row | None:
        plain, metadata = unwrap.document_parts(document) if isinstance(document, (str, dict)) else ({}, {})
        whole = {**plain, "metadata": metadata}
        text = unwrap.text_of(plain)
        if text == unwrap.REDACTED:
            text = None
        identity = unwrap.as_id(self.pointed("chunk_id", whole)) or unwrap.id_in(plain, metadata)
        if identity is None and text is None:
            hint = "Record the id or the text of each retrieved document." + self._capture
            self.inputs.problem(path, line, "", "a retrieved document has neither id nor text", hint)
            return None
        self._by_id += identity is not None
        self._by_text += identity is None
        chunk: Row = {"id": identity or unwrap.text_id(text or "")}
        if text is not None:
            chunk["text"] = text
        if doc_id := unwrap.as_id(self.pointed("doc_id", whole)) or unwrap.document_id_in(plain, metadata):
            chunk["doc_id"] = doc_id
        places = [(place, name) for place in (plain, metadata) for name in unwrap.SCORE_KEYS]
        score = next((place[name] for place, name in places if place.get(name) is not None), None)
        if isinstance(score, (int, float)) and not isinstance(score, bool):
            chunk["score"] = score
        pointers = self.options.chunk_id, self.options.doc_id
        read = (*unwrap.CHUNK_KEYS, *unwrap.DOCUMENT_KEYS, *unwrap.SCORE_KEYS, "chunk_index", "page")
        for name in metadata.keys() - {*read}:
            if f"/metadata/{name}" not in pointers:
                self.account.dropped(f"metadata.{name} of chunks", "no metric reads it")
        return chunk

    def rows(self, tool: str, drafts: Iterable[Draft]) -> Iterator[tuple[int, Row]]:
        """Line and trace row of each draft, by start and id; drafts that cannot be rows are problems."""
        ready = sorted(drafts, key=lambda one: (one.start_ns or 0, one.source if one.start_ns else ""))
        if self.options.since:
            start = nanoseconds(self.options.since) or 0
            late = [one for one in ready if (one.start_ns or 0) >= start]
            self.account.dropped("traces before --since", "the option says so", len(ready) - len(late))
            ready = late
        made = [(one, row) for one in ready if (row := self._row(tool, one)) is not None]
        if self.options.last_only:
            last = {(row.get("qid"), row.get("q"), row.get("run")): place for place, (_, row) in enumerate(made)}
            self.account.dropped("earlier traces of a question", "--last-only", len(made) - len(last))
            made = [made[place] for place in sorted(last.values())]
        self.finish()
        for one, row in made:
            yield one.line, row

    def _row(self, tool: str, draft: Draft) -> Row | None:
        qid = self._paired(draft)
        if qid is None and self.options.questions is not None:
            return None  # reported when it was paired
        if unwrap.REDACTED in (draft.question, draft.answer):
            draft.answer = None
        name = f"trace {draft.source!r}: " if draft.source else ""
        if draft.answer is None and draft.error is None:
            hint = f"Name where it is with --answer POINTER, or turn on the capture of content.{self._capture}"
            self.inputs.problem(draft.path, draft.line, "", f"{name}no answer was recorded", hint)
            return None
        if qid is None and draft.question is None:
            message = f"{name}neither a qid nor a question was recorded"
            self.inputs.problem(draft.path, draft.line, "", message, "Name it: --qid POINTER or --question POINTER.")
            return None
        ids = None if draft.chunks is None else [chunk["id"] for chunk in draft.chunks]
        row: Row = {
            "qid": qid,
            "q": draft.question,
            "run": self.options.run or draft.run or None,
            "retrieved_ids": ids,
            "answer_json": self._answer(draft, ids or []),
            "error": draft.error,
            "timed_out": True if draft.error is not None and _TIMEOUT.search(draft.error) else None,
            "ts": None if draft.start_ns is None else draft.start_ns / 10**9,
            "chunks": draft.chunks,
            "ok": draft.ok,
            "abstained": draft.abstained,
            "policy_flags": draft.policy_flags or None,
            "latency_ms": draft.latency_ms or None,
            "usage": draft.usage or None,
            "source": {"tool": tool, **({"id": draft.source} if draft.source else {})},
        }
        return {field: value for field, value in row.items() if value is not None}

    def _answer(self, draft: Draft, ids: Sequence[str]) -> Row | None:
        """The answer with what it cites; citations are absent unless the source or ``--citations`` tells them."""
        if draft.answer is None:
            return None
        cited = draft.citations
        if cited is None and self.options.citations != "none":
            cited = unwrap.cited_in(draft.answer, self.options.citations, ids)
        return {"claim": draft.answer, **({} if cited is None else {"citations": cited})}

    def _paired(self, draft: Draft) -> str | None:
        questions = self.options.questions
        if questions is None or draft.qid in self.options.qids:
            return draft.qid
        matches = questions.get(draft.question or "", ())
        if len(matches) == 1:
            self.account.renamed("question", "qid, by the gold set")
            return matches[0]
        asked = "no item of the gold set asks" if not matches else f"{len(matches)} items of the gold set ask"
        shown = f"'{(draft.question or draft.qid or draft.source)[:60]}'"
        hint = "Ask the questions of the gold set, to the letter, or record its qid and name it with --qid POINTER."
        self.inputs.problem(draft.path, draft.line, "", f"{asked} {shown}", hint)
        return None

    def gold_row(self, qid: str, question: str, expected: str | None, citations: Sequence[str], **more: Any) -> Row:
        """A gold row; ``expected`` is compared with ``--unanswerable``, stripped and without case."""
        marks = {text.strip().casefold() for text in self.options.unanswerable}
        answerable = more.pop("answerable", True) and (expected is None or expected.strip().casefold() not in marks)
        if not answerable and citations:
            self.account.dropped("citations of an unanswerable question", "it has no right citation")
        row: Row = {
            "qid": qid,
            "question": question,
            "answerable": answerable,
            "gold_claim_substr": more.pop("substrings", []) if answerable else [],
            "gold_citations": list(dict.fromkeys(citations)) if answerable else [],
        }
        more.pop("substrings", None)
        if expected is not None:
            row["expected_answer"] = expected
        return row | {name: value for name, value in more.items() if value not in (None, [], {})}

    def reference_ids(self, contexts: Iterable[str]) -> list[str]:
        """The ids of reference texts, as the trace importers give them to retrieved texts."""
        found = [unwrap.text_id(text) for text in contexts]
        self._by_text += len(found)
        return found

    def finish(self) -> None:
        """Say how chunks were identified, and report pointers that lead nowhere."""
        for option, count in self._pointers.items():
            name, pointer = f"--{option.replace('_', '-')}", getattr(self.options, option)
            if not self._pointed[option]:
                message = f"{name} {pointer} leads nowhere in {count} places"
                self.inputs.problem(self.inputs.paths[0], 0, "", message, "Check the JSON Pointer against one record.")
            elif self._pointed[option] < count:
                self.account.dropped(f"{name} {pointer}", "leads nowhere here", count - self._pointed[option])
        if self._by_text:
            self.account.lacking("chunks without an id are identified by their text", self._by_text)
            if self._by_id:
                why = "chunks with an id and chunks without one never match; name the id with --chunk-id POINTER"
                self.account.lacking(f"warning: {why}", self._by_text)


def nanoseconds(value: Any) -> int | None:
    """A time as nanoseconds since 1970: ISO 8601 (UTC if it states no offset), or a number of milliseconds."""
    if isinstance(value, bool) or value in (None, ""):
        return None
    if isinstance(value, (int, float)):
        return round(value * 1_000_000)
    match = _ISO.fullmatch(str(value).strip())
    if match is None:
        return None
    *clock, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = map(int, clock)
    if not (1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1] and hour < 24 and minute < 60 and second < 61):
        return None
    offset = (int(hours or 0) * 60 + int(minutes or 0)) * (-60 if sign == "-" else 60)
    seconds = timegm((year, month, day, hour, minute, second)) - offset
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def milliseconds(start: int | None, end: int | None) -> float | None:
    """The time between two instants in nanoseconds, in milliseconds with three decimals; None if it is not positive."""
    if start is None or end is None or end <= start:
        return None
    return round_half_even(end - start) / 1000


def round_half_even(nanos: int) -> int:
    """Nanoseconds as microseconds, by integer arithmetic, half to even."""
    micros, rest = divmod(nanos, 1000)
    return micros + (rest > 500 or (rest == 500 and micros % 2))
