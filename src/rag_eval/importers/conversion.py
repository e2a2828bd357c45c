"""One conversion of foreign files: the user's options, and the rows built from the input."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from rag_eval.common.escaping import quantity, quoted
from rag_eval.contract import without_reasoning
from rag_eval.importers import FIELDS, Account, ImportInputs, Row, gold_row, retrieved, unwrap
from rag_eval.importers.documents import cell_value, objects
from rag_eval.trace import text_id

Place = tuple[str, int]  # path and line of a record
_EMPTY: tuple[Any, ...] = (None, "", [], {}, "{}", 0)  # 0 and false mean the same as an absent field
_PAGING = FIELDS["conversion"]["paging"]
_LABELS = (  # in the expected output of a dataset
    *retrieved.CONTEXT_KEYS, *retrieved.SOURCE_KEYS, *unwrap.QID_KEYS, "reference_contexts", "citations",
    "gold_citations", "gold_claim_substr", "answerable",
)  # fmt: skip
_EXPECTING_NOTHING = {"qid", "question", "answerable", "difficulty", "category", "tags", "meta"}
_TIMEOUT = re.compile(r"(?i)timeout|timed out|deadline exceeded|\b504\b")
_LONGEST_NAME = 200  # of a conversation
_OR_GOLD = ", such as /answer. If the file is a gold set, write: rag-eval import auto FILE --as gold"
_PRINTED = "Record their ids and texts, such as [doc.page_content for doc in docs], and write JSON."
_NAME_THE_ID = "name the place of the id with --chunk-id POINTER"
_UNREDACTED = "Turn the redaction off, such as OPENINFERENCE_HIDE_INPUTS and OPENINFERENCE_HIDE_OUTPUTS."
NOT_READ = "no metric uses it"
JUDGED = "an LLM or a person judged it; rag-eval computes its own metrics"


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """Options for facts that a foreign file does not contain."""

    questions: Mapping[str, Sequence[str]] | None = None  # qids of a gold set by question
    qids: frozenset[str] = frozenset()  # of the same gold set
    by_turn: Mapping[tuple[str, int], str] | None = None  # its qids by conversation and turn
    qid: str = ""  # JSON Pointers, '' for none
    question: str = ""
    answer: str = ""
    chunks: str = ""
    chunk_id: str = ""
    doc_id: str = ""
    by_text: bool = False  # chunks get the same ids as reference texts of gold sets
    citations: str = "none"  # or brackets, numbers
    run: str = ""
    retriever: str = ""  # the name of the span whose output is the retrieved chunks
    unanswerable: tuple[str, ...] = ()  # expected answers of unanswerable questions
    since: str = ""  # ISO 8601; earlier traces are left out
    until: str = ""  # ISO 8601; later traces are left out
    last_only: bool = False
    turns: str = ""  # or "last": read the last turn of a conversation
    answers: str = ""  # a file of qid and answer
    corpus: str = ""  # a file of chunk texts


@dataclass(slots=True)
class Draft:
    """A trace as its source records it; ``None`` for unknown fields."""

    place: Place
    source: str  # the source's id of the trace
    question: str | None = None
    answer: str | None = None
    chunks: list[Row] | None = None
    retrievals: list[Row] | None = None  # if there were several
    conversation: str | None = None
    turn: int = 0
    turns: int = 0  # of the conversation in all files
    citations: list[str] | None = None
    qid: str | None = None
    run: str | None = None
    start_ns: int | None = None
    error: str | None = None
    failure: str | None = None  # the message of a failure that left an answer
    unread: tuple[str, ...] = ()  # keys of an output without a known answer
    ok: bool | None = None
    abstained: bool | None = None
    policy_flags: list[str] = field(default_factory=list)
    latency_ms: dict[str, float] = field(default_factory=dict)
    usage: Row = field(default_factory=dict)

    def is_empty(self) -> bool:
        """Return whether the source records nothing that a metric reads."""
        return not (self.question or self.qid or self.answer or self.chunks or self.error)

    def is_unanswered(self) -> bool:
        """Return whether the source records neither an answer in any form nor an error."""
        return self.answer is None and self.error is None and not self.unread


def number_turns(drafts: Iterable[Draft]) -> None:
    """Number the turns of each conversation in order, if their source states none."""
    conversations: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        if draft.conversation and not draft.turns:
            conversations[draft.conversation].append(draft)
    for turns in conversations.values():
        for index, draft in enumerate(turns, 1):
            draft.turn = draft.turn or index
            draft.turns = max(len(turns), draft.turn)


class Conversion:
    """Builds rows for one importer: keeps the account, counts the results of pointers, reports problems."""

    def __init__(self, inputs: ImportInputs, options: ConversionOptions, account: Account, capture: str = "") -> None:
        self.inputs, self.options, self.account = inputs, options, account
        self.place: Place = (inputs.paths[0], 0)  # of the record that is converted
        self._capture = capture  # how the source captures messages
        self._pointers: Counter[str] = Counter()
        self._resolved: Counter[str] = Counter()
        self._by_text = self._by_id = 0

    def problem(self, where: str, message: str, hint: str) -> None:
        """Record a problem of the current record."""
        self.inputs.problem(*self.place, where, message, hint)

    def records(self, what: str, *lists: str) -> Iterator[Row]:
        """Yield the value of each object in all files, from the list of an API's page if there is one.

        ``lists`` are the possible names of such a list. A page that is not the last one requires the others.
        """
        pages: list[tuple[Place, bool]] = []  # with whether it is the last one
        rows_read = 0
        for path in self.inputs.paths:
            for line, value in objects(self.inputs, path, what):
                self.place = path, line
                page = unwrap.as_dict(value.get("data"))
                if any(isinstance(page.get(name), list) for name in lists):
                    self.drop_unread(value, ("data", *_PAGING))
                    value = page
                name = next((name for name in lists if isinstance(value.get(name), list)), None)
                if name is None:
                    yield value
                    continue
                self.drop_unread(value, (name, *_PAGING), "", ("metrics",))
                meta, cursors = unwrap.as_dict(value.get("meta")), unwrap.as_dict(value.get("cursors"))
                more = value.get("next_cursor") or meta.get("cursor") or cursors.get("next")
                rows_read += len(value[name])
                all_pages, all_rows = (unwrap.number(n) or 0 for n in (meta.get("totalPages"), value.get("total")))
                is_last = not more and len(pages) + 1 >= all_pages and rows_read >= all_rows
                pages.append((self.place, is_last))
                for row in value[name]:
                    if isinstance(row, dict):
                        yield row
                    else:
                        hint = "Check that the file is whole: rag-eval import auto FILE"
                        self.problem(f"/{name}", f"has an element that is not {what}", hint)
        if pages and not any(is_last for _, is_last in pages):
            self.place = pages[-1][0]
            hint = "Fetch the other pages, and pass all files at once."
            self.problem("", "is one page of several, and later pages are missing", hint)

    def list_of(self, row: Row, name: str) -> list[Any] | None:
        """Return the list of texts or numbers in a field, or in the text of one; None if absent or invalid."""
        value = row.get(name)
        value = cell_value(value) if isinstance(value, str) else value
        if isinstance(value, str) and name.endswith("contexts") and value[:1] != "[":
            return self.one_text(value)
        kinds = (str, int, dict) if name == "retrieved_contexts" else (str, int)
        if value is None or (isinstance(value, list) and all(isinstance(item, kinds) for item in value)):
            return value
        hint = "Export the samples as JSON Lines, which keeps lists."
        if isinstance(value, dict):
            hint = f"Name the list in it by a map, such as /{name}/texts: --map FILE"
        if isinstance(value, list):
            hint = "Write a list of ids or texts, or leave the field out of the map: --map FILE"
        self.problem(f"/{name}", "is not a list of texts", hint)
        return None

    def one_text(self, text: str) -> list[str]:
        """Return a text with all contexts as the only one of a list, and note that in the account."""
        self.account.lacking("contexts that are one text: each is one chunk, not cut")
        return [text]

    def documents(self, texts: list[Any] | None, ids: list[Any] | None) -> list[Any] | None:
        """Return documents from their texts and ids; None if there is neither list, or if one is longer."""
        if texts and ids and len(texts) != len(ids):
            counts = f"{quantity(len(texts), 'chunk text')} and {quantity(len(ids), 'id')}"
            self.problem("", f"has {counts}", "Give one id for each chunk.")
            return None
        if not ids:
            return ids if texts is None else texts
        parts = [text if isinstance(text, dict) else {"text": text} for text in texts or [{}] * len(ids)]
        return [{"id": unwrap.as_id(identity), **part} for identity, part in zip(ids, parts, strict=True)]

    def drop_unread(self, row: Row, read: Collection[str], where: str = "", judged: Collection[str] = ()) -> None:
        """Record the fields of a row that are neither ``read`` nor empty."""
        for name, value in row.items():
            if name not in read and value not in _EMPTY:
                self.account.dropped(f"{name}{where}", JUDGED if name in judged else NOT_READ)

    def drop_others(self, value: Any, names: Collection[str], where: str, read: Collection[str] = ()) -> None:
        """Record the fields of an object except the first of ``names``, which is its text, and those ``read``."""
        fields = unwrap.as_dict(value)
        self.drop_unread(fields, (next((name for name in names if fields.get(name)), ""), *read), where)

    def resolve(self, option: str, value: Any) -> Any:
        """Return the value at the option's JSON Pointer; None without the option."""
        pointer = getattr(self.options, option)
        if not pointer:
            return None
        target = unwrap.at(value, pointer)
        self._pointers[option] += 1
        self._resolved[option] += target is not None
        return target

    def question(self, value: Any, row: Any = None) -> str | None:
        """Return the question in a recorded input, or in the row by ``--question`` if it is given."""
        pointed = self.resolve("question", row if row is not None else value)
        text, turns = unwrap.question_text(value if pointed is None else pointed)
        if turns:
            self.account.dropped("earlier turns of a conversation", "a row has only the last question", turns)
        return text

    def answer(self, value: Any, row: Any = None) -> str | None:
        """Return the answer in a recorded output, or in the row by ``--answer`` if it is given."""
        pointed = self.resolve("answer", row if row is not None else value)
        return unwrap.answer_text(value if pointed is None else pointed)

    def takes_last_turn(self, where: str = "") -> bool:
        """Return whether the last turn of a conversation is read, by ``--turns last``; otherwise report it."""
        if self.options.turns != "last":
            hint = "Only single turns are scored. Take the last turn of each conversation with --turns last."
            self.problem(where, "is a conversation", hint)
        return self.options.turns == "last"

    def qid(self, *sources: Any) -> str | None:
        """Return the id of the gold item, from the first of ``sources`` (mappings) that states one."""
        for source in sources:
            if (pointed := unwrap.as_plain_id(self.resolve("qid", source))) is not None:
                return pointed
        stated = (unwrap.as_dict(source).get(name) for source in sources for name in unwrap.QID_KEYS)
        return next(filter(None, map(unwrap.as_plain_id, stated)), None)

    def sample_id(self, tool: str, question: str, *sources: Any) -> str:
        """Return the qid of a sample, from its id or its question if no source states one."""
        return self.qid(*sources) or unwrap.first_id(("id",), *sources) or unwrap.question_id(tool, question)

    def chunks(self, documents: Iterable[Any]) -> list[Row]:
        """Return retrieved documents as chunks: id, text, doc_id, score. A repeated id keeps its first position."""
        chunks: dict[str, Row] = {}
        pointers = self.options.chunk_id, self.options.doc_id
        read = {*retrieved.CHUNK_KEYS, *retrieved.DOCUMENT_KEYS, *retrieved.SCORE_KEYS, "chunk_index", "page"}
        given = list(documents)
        if (ranked := retrieved.by_rank(given)) != given:
            self.account.renamed("lists that are not in the order of their ranks", "chunks by rank")
        for document in ranked:
            plain, metadata = retrieved.document_parts(document) if isinstance(document, (str, dict)) else ({}, {})
            whole = {**plain, "metadata": metadata}
            text = None if (recorded := retrieved.text_of(plain)) == unwrap.REDACTED else recorded
            identity = unwrap.as_id(self.resolve("chunk_id", whole)) or retrieved.id_in(plain, metadata)
            if self.options.by_text and text is not None:
                identity = None
            if text is not None and text[:1] == "[" and retrieved.is_repr(text[1:]):
                self.problem("", "retrieved documents are the text of Python objects", _PRINTED)
                continue
            if identity is None and text is None:
                hint = "Record the id or the text of each retrieved document." + self._capture
                self.problem("", "a retrieved document has neither id nor text", hint)
                continue
            self._by_id += identity is not None
            self._by_text += identity is None
            doc_id = unwrap.as_id(self.resolve("doc_id", whole)) or retrieved.document_id_in(plain, metadata)
            chunk = retrieved.chunk(identity, text, doc_id, retrieved.score_in(plain, metadata))
            self.drop_unread(plain, retrieved.READ_OF_CHUNKS, " of chunks")
            for name in metadata.keys() - read:
                if f"/metadata/{name}" not in pointers:
                    self.account.dropped(f"metadata.{name} of chunks", NOT_READ)
            if (first := chunks.setdefault(chunk["id"], chunk)) is not chunk:
                self.account.dropped("a chunk that was retrieved twice", "its first rank counts")
                if text is not None and first.get("text", text) != text:
                    self.account.lacking(f"warning: chunks of one id have different texts; {_NAME_THE_ID}")
        return list(chunks.values())

    def rows(self, tool: str, drafts: Iterable[Draft]) -> Iterator[tuple[int, Row]]:
        """Yield line and trace row of each draft, by start and id; drafts that give no valid row are problems."""
        recorded = list(drafts)
        number_turns(recorded)
        ready = sorted(recorded, key=lambda draft: (draft.start_ns or 0, draft.source if draft.start_ns else ""))
        ready = [draft for draft in ready if self.in_window(draft.start_ns)]
        if filled := [draft for draft in ready if not draft.is_empty()]:
            # a file without any contents is a problem: they were not captured
            why = "no question, answer or chunks"
            self.account.dropped("traces that record nothing", why, len(ready) - len(filled))
        self._complete(filled)
        filled = self._answered(filled)
        self._name_by_document(filled)
        rows = [(draft.place[1], row) for draft in filled or ready if (row := self._row(tool, draft)) is not None]
        if self.options.last_only:
            last = {(row.get("qid"), row.get("q"), row.get("run")): index for index, (_, row) in enumerate(rows)}
            self.account.dropped("earlier traces of a question", "--last-only", len(rows) - len(last))
            rows = [rows[index] for index in sorted(last.values())]
        yield from rows
        self.finish()

    def _complete(self, drafts: Sequence[Draft]) -> None:
        """Give samples without an answer an empty one if others have one; in a trace the answer was not recorded."""
        if any(draft.answer for draft in drafts):
            for draft in drafts:
                if draft.answer is None and draft.error is None and not draft.source:
                    draft.answer = ""
                    self.account.lacking("samples without an answer: their answer is empty")

    def _answered(self, drafts: list[Draft]) -> list[Draft]:
        """Leave out traces that record neither an answer nor an error; if those are most, answers were not captured."""
        lacking = [draft.source for draft in drafts if draft.is_unanswered()]
        if not 0 < len(lacking) * 2 < len(drafts):
            return drafts
        names = ", ".join(quoted(source, 40) for source in lacking[:3]) + (", …" if lacking[3:] else "")
        self.account.lacking(f"warning: traces without an answer or error are left out: {names}", len(lacking))
        return [draft for draft in drafts if not draft.is_unanswered()]

    def _name_by_document(self, drafts: Sequence[Draft]) -> None:
        """Name chunks that have no ids by their documents if answers cite those, one chunk of each in a list."""
        lists = [draft.chunks for draft in drafts if draft.chunks]
        cited = {name for draft in drafts for name in draft.citations or ()}
        if self.options.citations == "brackets":
            cited.update(*(retrieved.cited_in(draft.answer or "", "brackets", ()) for draft in drafts))
        documents = [[chunk.get("doc_id") for chunk in chunks] for chunks in lists]
        if self._by_id or self.options.by_text or cited.isdisjoint(chain.from_iterable(documents)):
            return
        are_one_each = all(None not in names and len({*names}) == len(names) for names in documents)
        if not are_one_each or any(draft.retrievals for draft in drafts):
            self.account.lacking(
                f"warning: answers cite documents, but chunks are identified by their text; {_NAME_THE_ID}"
            )
            return
        self.account.renamed("doc_id of chunks", "their ids, which answers cite")
        self._by_text = 0
        for chunk in chain.from_iterable(lists):
            chunk["id"] = chunk["doc_id"]

    def in_window(self, start_ns: int | None) -> bool:
        """Return whether a trace began between ``--since`` and ``--until``; if not, note it in the account."""
        since, until = (unwrap.nanoseconds(text) if text else None for text in (self.options.since, self.options.until))
        if since is not None and (start_ns or 0) < since:
            self.account.dropped("traces before --since", "the option says so")
        elif until is not None and (start_ns or 0) >= until:
            self.account.dropped("traces from --until on", "the option says so")
        else:
            return True
        return False

    def _row(self, tool: str, draft: Draft) -> Row | None:
        self.place = draft.place
        qid = self._paired(draft)
        if qid is None and self.options.questions is not None:
            return None  # reported when it was paired
        name = f"trace {draft.source!r}: " if draft.source else ""
        if unwrap.REDACTED in (draft.question, draft.answer):
            part = "question" if draft.question == unwrap.REDACTED else "answer"
            self.problem("", f"{name}the {part} was recorded as {unwrap.REDACTED}", _UNREDACTED)
            return None
        if draft.answer is None and draft.error is None:
            capture = f", or turn on the capture of content.{self._capture}" if self._capture else _OR_GOLD
            keys = f" in the output with the keys {', '.join(map(quoted, draft.unread[:5]))}" if draft.unread else ""
            message = f"{name}no answer was {'found' if keys else 'recorded'}{keys}"
            self.problem("", message, f"Name its place with --answer POINTER{capture}")
            return None
        if qid is None and draft.question is None:
            message = f"{name}neither a qid nor a question was recorded"
            self.problem("", message, "Name its place with --qid POINTER or --question POINTER.")
            return None
        ids = None if draft.chunks is None else [chunk["id"] for chunk in draft.chunks]
        if draft.answer and not any(amount for name, amount in draft.usage.items() if name != "model"):
            self.account.dropped("tokens and costs of 0", "an answer has some", len(draft.usage.keys() - {"model"}) > 0)
            draft.usage = {name: value for name, value in draft.usage.items() if name == "model"}
        cited = self._citations(draft, ids or [])
        citations = {} if cited is None else {"citations": cited}
        row: Row = {
            "qid": qid,
            "q": draft.question,
            "run": self.options.run or draft.run or None,
            "retrieved_ids": ids,
            "retrievals": draft.retrievals,
            "answer_json": None if draft.answer is None else {"claim": draft.answer, **citations},
            "error": None if draft.error is None else unwrap.error_text(draft.error),
            "timed_out": True if _TIMEOUT.search(draft.error or draft.failure or "") else None,
            "ts": None if draft.start_ns is None else draft.start_ns / 10**9,
            "chunks": draft.chunks,
            "ok": draft.ok,
            "abstained": draft.abstained,
            "policy_flags": draft.policy_flags or None,
            "latency_ms": draft.latency_ms or None,
            "usage": draft.usage or None,
            **self._turn(draft, qid),
            "source": {"tool": tool, **({"id": draft.source} if draft.source else {})},
        }
        return {field: value for field, value in row.items() if value is not None}

    def _citations(self, draft: Draft, ids: Sequence[str]) -> list[str] | None:
        """Return the ids that an answer cites; None unless its source or ``--citations`` gives them."""
        form, cited = self.options.citations, draft.citations
        if cited is None and draft.answer is not None:
            answer = without_reasoning(draft.answer)
            if form != "none":
                return retrieved.cited_in(answer, form, ids)
            for other in ("brackets", "numbers") if ids else ():
                if not set(ids).isdisjoint(retrieved.cited_in(answer, other, ids)):
                    self.account.lacking(f"citations in the text of answers are not read: add --citations {other}")
                    break
        elif cited and ids and all(map(str.isdecimal, cited)) and set(cited).isdisjoint(ids):
            if form == "numbers":
                return retrieved.cited_in(f"[{', '.join(cited)}]", "numbers", ids)
            self.account.lacking("citations are numbers, but no ids of chunks: for ranks add --citations numbers")
        return cited

    def _turn(self, draft: Draft, qid: str | None) -> Row:
        """Return conversation and turn, but not without a qid: the question would no longer pair the trace."""
        known = (draft.conversation, draft.turn) in (self.options.by_turn or {})
        if draft.conversation is None or not (known or draft.turns > 1):
            return {}
        if qid is None or len(draft.conversation) > _LONGEST_NAME:
            self.account.dropped("the conversation of a trace", "the trace has no qid: give --gold or record its qid")
            return {}
        return {"conversation": draft.conversation, "turn": draft.turn}

    def _paired(self, draft: Draft) -> str | None:
        questions = self.options.questions
        if questions is None or draft.qid in self.options.qids:
            return draft.qid
        if turn := (self.options.by_turn or {}).get((draft.conversation or "", draft.turn)):
            self.account.renamed("session and turn", "qid, by the gold set")
            return turn
        matches = questions.get(draft.question or "", ())
        if len(matches) == 1:
            self.account.renamed("question", "qid, by the gold set")
            return matches[0]
        asked = f"{len(matches)} items of the gold set ask" if matches else "no item of the gold set asks"
        if not draft.question:
            asked = "no item of the gold set has the qid"
        shown = f"'{(draft.question or draft.qid or draft.source)[:60]}'"
        hint = "Ask exactly the questions of the gold set, or record the qid and name its place with --qid POINTER."
        hint += " Of a conversation, --turns last reads only the last turn." if draft.turns > 1 else ""
        self.problem("", f"{asked} {shown}", hint)
        return None

    def gold_row(self, qid: str, question: str, expected: str | None, citations: Sequence[str], **more: Any) -> Row:
        """Return a gold row; ``expected`` is compared with ``--unanswerable``, stripped and without case."""
        unanswerable = {text.strip().casefold() for text in self.options.unanswerable}
        is_refused = expected is not None and expected.strip().casefold() in unanswerable
        answerable = more.pop("answerable", True) and not is_refused
        if not answerable and citations:
            self.account.dropped("citations of an unanswerable question", "such a question has no right citation")
        return gold_row(qid, question, answerable=answerable, citations=citations, expected=expected, **more)

    def gold_rows(self, rows: Iterable[Row]) -> Iterator[tuple[int, Row]]:
        """Yield line and row of each gold item; a repeated item must be the same."""
        seen: dict[str, Row] = {}
        for row in rows:
            if seen.setdefault(row["qid"], row) is row:
                if row["answerable"] and not any(map(row.get, row.keys() - _EXPECTING_NOTHING)):
                    self.account.lacking("items without an expected answer or citation: every answer counts as right")
                yield self.place[1], row
            elif seen[row["qid"]] == row:
                self.account.dropped("a repeated question", "both rows are the same")
            else:
                message = f"repeats {quoted(row['qid'])} with another answer or other citations"
                self.problem("", message, "Keep one row for each question.")
        self.finish()

    def dataset_item(
        self, item: Row, asked: Any, expected: Any, read: Collection[str], pointer: str, tool: str = "", **more: Any
    ) -> Iterator[Row]:
        """Yield the gold row of an item with its id, or an id from its question for a ``tool`` without required ids.

        The expected output may be an object with citations or contexts. ``read`` are the fields of the item that are
        read, ``pointer`` is an example of the place of a question, ``more`` are other fields of the row.
        """
        self.drop_unread(item, read, "", ("correctness", "correctness_reason"))
        question, qid = self.question(asked, item), self.qid(item) or unwrap.as_id(item.get("id"))
        if question is not None and tool:
            qid = qid or unwrap.question_id(tool, question)
        if question is None or qid is None:
            hint = f"Name it with --question POINTER, such as {pointer}."
            return self.problem("", "an item has no id or no question", hint)
        fields, metadata = unwrap.as_dict(expected), dict(unwrap.as_dict(item.get("metadata")))
        cited = map(str, unwrap.as_list(fields.get("gold_citations") or fields.get("citations")))
        contexts = unwrap.as_list(retrieved.contexts_in({"contexts": fields.get("reference_contexts"), **fields}))
        self.drop_others(asked, unwrap.QUESTION_FIELDS, " of input")
        self.drop_others(fields, unwrap.ANSWER_FIELDS, " of output", _LABELS)
        splits = unwrap.as_list(metadata.pop("dataset_split", None))
        yield self.gold_row(
            qid,
            question,
            None if expected is None else self.answer(expected, item),
            list(cited) or [chunk["id"] for chunk in self.chunks(contexts)],
            meta=unwrap.scalars(metadata),
            tags=list(map(str, splits)),
            substrings=[text for text in unwrap.as_list(fields.get("gold_claim_substr")) if isinstance(text, str)],
            answerable=fields.get("answerable", True) is not False,
            **more,
        )

    def reference_ids(self, contexts: Iterable[str]) -> list[str]:
        """Return the ids of reference texts, which trace importers give to retrieved texts, too."""
        ids = [text_id(text) for text in contexts]
        self._by_text += len(ids)
        return ids

    def finish(self) -> None:
        """Record how chunks were identified, and report pointers that lead nowhere."""
        for option, count in self._pointers.items():
            name, pointer = f"--{option.replace('_', '-')}", getattr(self.options, option)
            if not self._resolved[option]:
                message = f"{name} {pointer} leads nowhere in {quantity(count, 'place')}"
                self.inputs.problem(self.inputs.paths[0], 0, "", message, "Compare the JSON Pointer with one record.")
            elif self._resolved[option] < count:
                self.account.dropped(f"{name} {pointer}", "leads nowhere here", count - self._resolved[option])
        if self._by_text:
            self.account.lacking("chunks without an id are identified by their text", self._by_text)
            if self._by_id:
                warning = f"warning: chunks with an id never match chunks without one; {_NAME_THE_ID}"
                self.account.lacking(warning, self._by_text)
