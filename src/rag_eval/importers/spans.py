"""Spans of any tracing tool as a tree, and the trace row of a tree."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from rag_eval.importers import FIELDS, Row, retrieved, unwrap
from rag_eval.importers.conversion import JUDGED, Conversion, Draft, Place

RETRIEVER, RERANKER, GENERATION = "retriever", "reranker", "generation"
ROOT, OTHER, JUDGE = "root", "other", "judge"
_STEPS = (RETRIEVER, RERANKER, GENERATION)
_NAMES_OF_KINDS = FIELDS["spans"]["names_of_kinds"]
KINDS = {name: kind for kind, names in _NAMES_OF_KINDS.items() for name in names.split()}
"""The kinds of spans, by the names that tools give them."""
_RETRIEVER, _RERANKER = re.compile(r"(?i)retriev|(?<!re)search"), re.compile(r"(?i)re-?_?rank")
_JUDGED = ("feedback_scores", "span_feedback_scores", "scores", "comments")
LAST_ANSWER = "traces whose root records no answer: that of the last of several steps is used"
_LONGEST_PROMPT = 4000  # characters; a longer text contains documents, so it is no question
_LATEST_SECONDS = 1e11  # as a time; a larger number counts milliseconds or less


@dataclass(slots=True)
class TraceSpan:
    """One step of a trace, reduced to the fields of trace rows."""

    place: Place
    trace: str
    id: str
    parent: str  # '' for none
    name: str
    kind: str = OTHER
    start: int | None = None  # nanoseconds
    end: int | None = None
    order: str = ""  # if the source states an order
    failed: bool = False
    error: str | None = None
    question: str | None = None
    query: str | None = None  # of a retriever
    prompt: str | None = None  # the end of the input of a generation below the root: it may be more than the question
    answer: str | None = None
    unread: tuple[str, ...] = ()  # keys of an output without a known answer
    chunks: list[Row] | None = None  # of retrievers and rerankers
    documents: list[Any] | None = None  # in the output of a root, next to the answer
    qid: str | None = None
    run: str | None = None
    model: str | None = None
    usage: Row = field(default_factory=dict)  # tokens and cost
    blocked: bool = False
    citations: list[str] | None = None
    conversation: str | None = None
    latency_ms: float | None = None  # if the source states a duration in place of an end


_Step = tuple[str | None, list[TraceSpan], list[Row]]  # query, spans and chunks of a retrieval


def read_contents(conversion: Conversion, span: TraceSpan, asked: Any, output: Any, row: Any = None) -> None:
    """Read inputs and outputs: documents of a retriever, question and answer of all other spans.

    The prompt of a generation below the root is used only without another source of the question.
    """
    is_named = bool(span.name) and span.name == conversion.options.retriever
    span.kind = RETRIEVER if is_named else span.kind
    if span.kind in (RETRIEVER, RERANKER):
        span.query = unwrap.question_text(asked)[0]
        documents = retrieved.documents_in(output)
        if documents is None and is_named and (text := unwrap.answer_text(output)):  # such as a tool of an agent
            documents = conversion.one_text(text)
        elif documents is None and output is not None:
            conversion.account.dropped(f"output of the {span.kind} '{span.name}'", "it is no list of documents")
        span.chunks = None if documents is None else conversion.chunks(documents)
        return
    if asked is not None or row is not None:
        text = conversion.question(asked, row)
        if span.kind != GENERATION or not span.parent:
            span.question = text
        elif text is not None:
            span.prompt = text[-_LONGEST_PROMPT - 1 :]
    if (output is not None or row is not None) and (span.kind in (GENERATION, ROOT) or not span.parent):
        span.answer, span.citations = conversion.answer(output, row), retrieved.stated_citations(output)
        span.unread = tuple(output) if span.answer is None and isinstance(output, dict) else ()
    if not span.parent or span.kind == ROOT:
        span.documents = retrieved.documents_in(retrieved.contexts_in(output))


def retrieval_kind(name: str, output: Any) -> str:
    """Return the kind of a step that returns documents, by its name; '' for any other step.

    Some tools know no retrievers and rerankers.
    """
    kind = RERANKER if _RERANKER.search(name) else RETRIEVER if _RETRIEVER.search(name) else ""
    return kind if kind and retrieved.documents_in(output) is not None else ""


def read_record(conversion: Conversion, record: Row, names: Mapping[str, str]) -> TraceSpan:
    """Return the span of a record that has ``input``, ``output`` and ``metadata``.

    ``names`` are JSON Pointers to trace, id, parent, name, kind, start, end, error, model, usage, cost, conversation.
    Such tools know no retrievers: those are the steps that are named so and return documents.
    """
    fields = {name: unwrap.at(record, pointer) for name, pointer in names.items()}
    trace, identity, parent, name = (unwrap.as_id(fields[key]) or "" for key in ("trace", "id", "parent", "name"))
    span = TraceSpan(conversion.place, trace, identity, parent, name)
    span.start, span.end = (
        unwrap.nanoseconds(time * 1000 if isinstance(time, (int, float)) and time < _LATEST_SECONDS else time)
        for time in (fields["start"], fields["end"])
    )
    asked, output, metadata = record.get("input"), record.get("output"), record.get("metadata")
    span.kind = retrieval_kind(name, output) or KINDS.get(str(fields["kind"]).upper(), OTHER)
    read_contents(conversion, span, asked, output, record)
    span.qid, span.conversation = conversion.qid(metadata, asked, record), unwrap.as_id(fields["conversation"])
    span.failed = bool(fields["error"])
    if isinstance(fields["error"], dict):
        parts = (fields["error"].get(key) for key in ("exception_type", "message"))
        span.error = ": ".join(str(part) for part in parts if part)
    elif span.failed:
        span.error = str(fields["error"])
    if span.kind == GENERATION or not span.parent:  # a root has the totals, which count if no step has some
        span.model = unwrap.as_id(fields["model"])
        conversion.account.dropped("models", "a usage has several", isinstance(fields["model"], list))
        span.usage = unwrap.usage(fields["usage"], cost=max(unwrap.number(fields["cost"]) or 0, 0) or None)
    read = {pointer.split("/")[1] for pointer in names.values()}
    conversion.drop_unread(record, {*read, "input", "output", "metadata"}, "", _JUDGED)
    counts = [*chain.from_iterable(unwrap.TOKEN_KEYS.values()), "cost"] if names["usage"] == "/metadata" else ()
    conversion.drop_unread(unwrap.as_dict(metadata), (*unwrap.QID_KEYS, *counts, "model", "session_id"), " of metadata")
    return span


def drafts(conversion: Conversion, spans: Iterable[TraceSpan], run: str = "") -> Iterator[Draft]:
    """Group spans by trace and yield the fields of each trace; incomplete traces are named in the account.

    ``run`` is the field with the name of the run; if all traces have the same one, they have no run.
    """
    account = conversion.account
    names: Counter[str] = Counter()
    turns: dict[str, list[tuple[int, str]]] = defaultdict(list)  # start and id of the traces of a conversation
    result: list[tuple[str, TraceSpan, list[TraceSpan]]] = []
    for trace, by_id in _traces(conversion, spans).items():
        members = sorted(by_id.values(), key=lambda span: (span.order, span.start or 0, span.id))
        members = _without_judges(conversion, members)
        start = min((span.start for span in members if span.start is not None), default=None)
        conversation = next((span.conversation for span in members if span.conversation), None)
        if conversation and any(span.kind in _STEPS or span.answer for span in members):
            turns[conversation].append((start or 0, trace))
        if not members or not conversion.in_window(start):
            continue  # before searching its root: a trace across the edge of the window may be incomplete
        root = _root(conversion, trace, members)
        if root is None:
            continue
        is_asked = root.question and (root.answer or any(span.failed for span in members))
        if not is_asked and not any(span.kind in _STEPS for span in members):
            account.dropped(f"traces of '{root.name}'", "neither retrieval nor generation happened in them")
            continue
        root.conversation = conversation
        result.append((trace, root, members))
    several_runs = len({root.run for _, root, _ in result}) > 1
    if several_runs:
        account.renamed(run, "run")
    turn_numbers = {trace: index for traces in turns.values() for index, (_, trace) in enumerate(sorted(traces), 1)}
    without = 0
    for trace, root, members in result:
        draft = _draft(conversion, root, members)
        draft.run = root.run if several_runs else None
        if draft.chunks is None and not draft.is_empty():
            without += 1
            names.update(span.name for span in members if span is not root and span.kind != RETRIEVER)
        if root.conversation and trace in turn_numbers:
            draft.conversation, draft.turn = root.conversation, turn_numbers[trace]
            draft.turns = len(turns[root.conversation])
        yield draft
    frequent = ", ".join(f"'{name}'" for name, _ in names.most_common(5))
    hint = f"; name one with --retriever (most frequent spans: {frequent})" if frequent else ""
    account.lacking(f"traces without a retriever: their rows have no chunks{hint}", without)


def _traces(conversion: Conversion, spans: Iterable[TraceSpan]) -> dict[str, dict[str, TraceSpan]]:
    """Return spans by trace and id; a repeated span counts once."""
    traces: dict[str, dict[str, TraceSpan]] = defaultdict(dict)
    names = ("parent", "name", "start", "end", "question", "answer", "chunks", "error")
    for span in spans:
        known = traces[span.trace].setdefault(span.id, span)
        if known is span:
            continue
        if all(getattr(known, name) == getattr(span, name) for name in names):
            conversion.account.dropped("repeated spans", "both are the same")
        else:
            message = f"span {span.id!r} occurs twice with different content, first on line {known.place[1]}"
            conversion.place = span.place
            conversion.problem("", message, "Export each span once.")
    return traces


def _without_judges(conversion: Conversion, members: list[TraceSpan]) -> list[TraceSpan]:
    """Return the spans of a trace without those that judge it, and without the steps of those."""
    judges = [span for span in members if span.kind == JUDGE]
    if not judges:
        return members
    children = _children(members)
    judging = {span.id for judge in judges for span in (judge, *_descendants(judge, children))}
    conversion.account.dropped("spans of evaluators", JUDGED, len(judging))
    rest = [span for span in members if span.id not in judging]
    ended = max((span.end or 0 for span in rest if span.parent), default=0)
    began = min((judge.start for judge in judges if judge.start is not None and judge.start >= ended), default=None)
    for span in rest:  # an evaluation ends after its evaluators
        if not span.parent and span.end is not None and began is not None:
            span.end = min(span.end, began)
        steps = [step for step in rest if step.parent == span.id]
        if not span.parent and len(steps) == 1 and steps[0].kind == ROOT:  # the system that is evaluated
            span.start, span.end = steps[0].start, steps[0].end
    return rest


def _children(members: list[TraceSpan]) -> dict[str, list[TraceSpan]]:
    children: dict[str, list[TraceSpan]] = defaultdict(list)
    for span in members:
        children[span.parent].append(span)
    return children


def _root(conversion: Conversion, trace: str, members: list[TraceSpan]) -> TraceSpan | None:
    ids = {span.id for span in members}
    tops = [span for span in members if not span.parent or span.parent not in ids]
    roots = [span for span in tops if not span.parent]
    if len(tops) > 1 and len(roots) == 1:
        conversion.account.lacking("spans whose parent is not in the file", len(tops) - 1)
    elif len(tops) == 1 and not roots:
        conversion.account.lacking("traces whose root is not in the file: the topmost span is used as the root")
        roots = tops
    elif len(roots) > 1:
        answered = [span for span in roots if span.question is not None and (span.answer is not None or span.failed)]
        roots = answered if len(answered) == 1 else roots
    if len(roots) == 1:
        return roots[0]
    conversion.place = (tops[0] if tops else members[0]).place
    message = f"trace {trace!r} has {len(roots) or len(tops)} possible roots"
    hint = "Export whole traces: all spans of each. Leave out traces that were still running: --until TIME"
    conversion.problem("", message, hint)
    return None


def _draft(conversion: Conversion, root: TraceSpan, members: list[TraceSpan]) -> Draft:
    children = _children(members)
    generations = [span for span in members if span.kind == GENERATION]
    searching = {  # the steps of a retrieval, such as the model call that rewrites its query
        step.id for span in members if span.kind == RETRIEVER for step in _descendants(span, children)
    }
    others = [span for span in members if span.id not in searching]
    answering = root
    if root.question is None and root.answer is None:  # such as the request of a web server
        last = max((span.end or 0 for span in others if span.kind == GENERATION), default=0)
        whole = (span for span in others if span.kind == ROOT and (span.end or 0) >= last)
        answering = next((span for span in whole if None not in (span.question, span.answer)), root)
    question, answer = _question_and_answer(conversion, answering, others)
    draft = Draft(root.place, root.trace, question, answer)
    _read_retrievals(conversion, draft, members, children)
    if draft.chunks is None and answering.documents:
        conversion.account.renamed("contexts in the output of the root", "chunks")
        draft.chunks = conversion.chunks(answering.documents)
    draft.qid = next((span.qid for span in (root, *members) if span.qid), None)
    draft.start_ns, draft.citations, draft.unread = root.start, answering.citations, answering.unread
    failed = root if root.failed else None
    if answer is None and failed is None:  # an error below the root counts if there was no answer after it
        failed = max((span for span in members if span.failed), key=lambda span: span.end or 0, default=None)
    if failed:
        draft.ok = False
        draft.failure = failed.error
        if answer is None:
            draft.error = failed.error or "error"
    if any(span.blocked for span in members):
        draft.policy_flags = ["guardrail_blocked"]
    times = {
        "total": unwrap.milliseconds(root.start, root.end) or root.latency_ms,
        "retrieve": _union([span for span in members if span.kind in (RETRIEVER, RERANKER)]),
        "generate": _union(generations),
    }
    draft.latency_ms = {name: value for name, value in times.items() if value}
    if times["total"] is None:
        conversion.account.lacking("traces without a duration: the end is missing or before the start")
    draft.usage = _usage(conversion, generations, children)
    if not draft.usage.keys() - {"model"} and any(root.usage.values()):  # the tool records only the totals
        draft.usage = ({"model": root.model} if root.model else {}) | draft.usage | root.usage
    return draft


def _question_and_answer(
    conversion: Conversion, root: TraceSpan, members: list[TraceSpan]
) -> tuple[str | None, str | None]:
    """Return the question and answer of the root, otherwise of the steps below it."""
    answered = [span for span in members if span.kind == GENERATION and span.answer is not None]
    answer = root.answer
    if root.failed:  # an answer of a step below did not reach the user; some tools record the empty text
        answer = answer or None
    elif (answer is None or retrieved.is_repr(answer)) and answered:
        answer = max(answered, key=lambda span: (span.end or span.start or 0, span.id)).answer
        if len({span.answer for span in answered}) > 1:
            conversion.account.lacking(LAST_ANSWER)
    question = root.question
    if question is None:
        question = next((span.question for span in members if span.question is not None), None)
    if question is None:
        prompt = next((span.prompt for span in members if span.prompt is not None), None) or ""
        query = next((span.query for span in members if span.query and _is_line(span.query, prompt)), None)
        if prompt in (conversion.options.questions or ()):
            query = None  # it is part of the question, such as a search for a few of its words
        question = query or (prompt if len(prompt) <= _LONGEST_PROMPT else "") or None
        if question is not None:
            origin = "query of a retriever, which a prompt repeats," if query else "prompt of the first generation"
            conversion.account.lacking(f"traces whose root records no question: the {origin} is used")
    return question, answer


def _is_line(query: str, prompt: str) -> bool:
    """Return whether a prompt repeats a query as a line of its own, after a label or in quotes, not as a few words."""
    return re.search(rf"(?:^|[:>\"'`])[ \t]*{re.escape(query)}[ \t]*(?:$|[<\"'`])", prompt, re.MULTILINE) is not None


def _descendants(span: TraceSpan, children: Mapping[str, list[TraceSpan]]) -> Iterator[TraceSpan]:
    """Yield the spans below a span; a cycle of parents, which is a fault of the file, ends."""
    below, seen = list(children.get(span.id, ())), {span.id}
    while below:
        child = below.pop()
        if child.id not in seen:
            seen.add(child.id)
            yield child
            below += children.get(child.id, ())


def _read_retrievals(
    conversion: Conversion, draft: Draft, members: list[TraceSpan], below: Mapping[str, list[TraceSpan]]
) -> None:
    """Record the chunks of all retrievals in order of their start.

    A reranker replaces its input lists, and a retriever the lists of retrievers below it.
    """
    steps: list[_Step] = []
    retrievers = [span for span in members if span.chunks is not None]
    inside: set[str] = set()  # ids of spans below a retriever that replaces their lists
    for span in [span for span in retrievers if span.kind in (RETRIEVER, RERANKER)] or retrievers:
        chunks, query, parts = span.chunks or [], span.query, [span]
        ids = {chunk["id"] for chunk in chunks}
        if span.id in inside:
            continue
        inner = [step for step in _descendants(span, below) if step.kind == RETRIEVER and step.chunks is not None]
        if span.kind == RERANKER or (not inner and _RERANKER.search(span.name)):
            replaced = _reranked(steps, chunks)
            steps = [step for step in steps if step not in replaced]
            query = next((step[0] for step in replaced if step[0]), query)
            parts += [item for step in replaced for item in step[1]]
        elif inner:
            inner_ids = {chunk["id"] for step in inner for chunk in step.chunks or ()}
            if inner_ids and not ids & inner_ids:
                continue  # it names its documents differently: the retrievers below are closer to the index
            inside |= {step.id for step in inner}
        steps.append((query, parts, chunks))
    if not steps:
        return
    by_id: dict[str, Row] = {}
    for chunk in (chunk for *_, chunks in steps for chunk in chunks):
        by_id.setdefault(chunk["id"], chunk)
    draft.chunks = list(by_id.values())
    if len(steps) > 1:
        what = "traces with several retrievals: retrievals has each of them, chunks has all in order"
        conversion.account.lacking(what)
        draft.retrievals = [
            {
                **({"query": query} if query and query != unwrap.REDACTED else {}),
                "ids": [chunk["id"] for chunk in chunks],
                **({"ms": time} if (time := _union(parts)) else {}),
            }
            for query, parts, chunks in steps
        ]


def _reranked(steps: list[_Step], chunks: list[Row]) -> list[_Step]:
    """Return the steps with documents of a reranker, and complete its chunks, which may have only ids or only texts."""
    by_id = {chunk["id"]: chunk for *_, retrieved in steps for chunk in retrieved}
    by_text = {chunk["text"]: chunk for chunk in by_id.values() if chunk.get("text")}
    for chunk in chunks:
        known = by_id.get(chunk["id"]) or by_text.get(chunk.get("text")) or {}
        if chunk["id"].startswith("text:"):
            chunk["id"] = known.get("id", chunk["id"])
        chunk |= {name: known[name] for name in ("text", "doc_id") if name in known and name not in chunk}
    ids, texts = ({chunk.get(name) for chunk in chunks} - {None, ""} for name in ("id", "text"))
    return [step for step in steps if any(chunk["id"] in ids or chunk.get("text") in texts for chunk in step[2])]


def _union(spans: list[TraceSpan]) -> float | None:
    """Return the length of the union of the intervals of spans, in milliseconds."""
    total = reached = 0
    times = [(span.start, span.end) for span in spans if span.start is not None and span.end is not None]
    for start, end in sorted(times):
        total += max(end - max(start, reached), 0)
        reached = max(end, reached)
    return unwrap.milliseconds(0, total)


def _usage(conversion: Conversion, generations: list[TraceSpan], children: Mapping[str, list[TraceSpan]]) -> Row:
    """Return tokens and cost over generations without a generation below them: wrappers repeat the inner ones."""
    leaves = [
        span
        for span in generations
        if not any(child.kind == GENERATION and child.usage for child in _descendants(span, children))
    ]
    models = list(dict.fromkeys(span.model for span in leaves if span.model))
    if len(models) > 1:
        conversion.account.lacking("traces with several models: the last one is used")
    usage: Row = {"model": models[-1]} if models else {}
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        values = [span.usage[name] for span in leaves if name in span.usage]
        if values:
            usage[name] = round(sum(values), 12) if name == "cost_usd" else sum(values)
    return usage
