"""Spans of any tracing tool as a tree, and the trace row that a tree holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rag_eval.importers.conversion import Conversion, Draft, milliseconds, round_half_even

RETRIEVER, RERANKER, GENERATION, GUARDRAIL, ROOT, OTHER = (
    "retriever",
    "reranker",
    "generation",
    "guardrail",
    "root",
    "other",
)
_LONGEST_PROMPT = 4000  # characters; a longer one holds documents


@dataclass(slots=True)
class Span:
    """One step of a trace, reduced to what a trace row is made of."""

    path: str
    line: int
    trace: str
    id: str
    parent: str  # '' for none
    name: str
    kind: str = OTHER
    start: int | None = None  # nanoseconds
    end: int | None = None
    order: str = ""  # where the source states an order of its own
    failed: bool = False
    error: str | None = None
    question: str | None = None
    prompt: str | None = None  # what a generation below the root was asked: it may be more than the question
    answer: str | None = None
    chunks: list[dict[str, Any]] | None = None  # of retrievers and rerankers
    qid: str | None = None
    run: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    abstained: bool = False
    blocked: bool = False
    citations: list[str] | None = None
    conversation: str | None = None
    latency_ms: float | None = None  # where the source states a duration in place of an end


def ask(conversion: Conversion, span: Span, value: Any, row: Any = None) -> None:
    """Set what a span was asked. The prompt of a generation below the root is used only if nothing else is there."""
    text = conversion.question(value, row)
    if span.kind != GENERATION or not span.parent:
        span.question = text
    elif text is not None and len(text) <= _LONGEST_PROMPT:
        span.prompt = text


def drafts(conversion: Conversion, spans: Iterable[Span]) -> Iterator[Draft]:
    """Group spans by trace and yield what each trace tells; incomplete traces are named in the account."""
    account = conversion.account
    turns: Counter[str] = Counter()
    names: Counter[str] = Counter()
    without = 0
    for trace, by_id in _traces(conversion, spans).items():
        members = sorted(by_id.values(), key=lambda span: (span.order, span.start or 0, span.id))
        root = _root(conversion, trace, members)
        if root is None:
            continue
        if not _answers_a_question(root, members):
            account.dropped(f"traces of '{root.name}'", "neither retrieval nor generation happened in them")
            continue
        if not any(span.chunks is not None for span in members):
            without += 1
            names.update(span.name for span in members if span is not root)
        turns[root.conversation or ""] += 1
        yield _draft(conversion, root, members)
    frequent = ", ".join(f"'{name}'" for name, _ in names.most_common(5))
    hint = f"; name one with --retriever (most frequent spans: {frequent})" if frequent else ""
    if without:
        account.lacking(f"traces without a retriever: their rows have no chunks{hint}", without)
    if several := sum(count for name, count in turns.items() if name and count > 1):
        account.lacking("traces that are turns of one conversation; each is a row of its own", several)


def _traces(conversion: Conversion, spans: Iterable[Span]) -> dict[str, dict[str, Span]]:
    """Spans by trace and id; a span that is there twice counts once."""
    traces: dict[str, dict[str, Span]] = defaultdict(dict)
    for span in spans:
        known = traces[span.trace].setdefault(span.id, span)
        if known is span:
            continue
        if _content(known) == _content(span):
            conversion.account.dropped("repeated spans", "both are the same")
        else:
            message = f"span {span.id!r} is there twice with different content, first on line {known.line}"
            conversion.inputs.problem(span.path, span.line, "", message, "Export each span once.")
    return traces


def _answers_a_question(root: Span, members: list[Span]) -> bool:
    """Whether a trace is more than a health check or an ingestion."""
    return bool(root.question and root.answer) or any(
        span.kind in (RETRIEVER, RERANKER, GENERATION) for span in members
    )


def _content(span: Span) -> tuple[Any, ...]:
    return (span.parent, span.name, span.start, span.end, span.question, span.answer, span.chunks, span.error)


def _root(conversion: Conversion, trace: str, members: list[Span]) -> Span | None:
    ids = {span.id for span in members}
    tops = [span for span in members if not span.parent or span.parent not in ids]
    roots = [span for span in tops if not span.parent]
    if len(tops) > 1 and len(roots) == 1:
        conversion.account.lacking("spans whose parent is not in the file", len(tops) - 1)
    elif len(tops) == 1 and not roots:
        conversion.account.lacking("traces whose root is not in the file: the topmost span is taken for it")
        roots = tops
    elif len(roots) > 1:
        told = [span for span in roots if span.question is not None and (span.answer is not None or span.failed)]
        roots = told if len(told) == 1 else roots
    if len(roots) == 1:
        return roots[0]
    first = tops[0] if tops else members[0]
    message = f"trace {trace!r} has {len(roots) or len(tops)} spans that may be its root"
    conversion.inputs.problem(first.path, first.line, "", message, "Export whole traces: all spans of each.")
    return None


def _draft(conversion: Conversion, root: Span, members: list[Span]) -> Draft:
    children: dict[str, list[Span]] = defaultdict(list)
    for span in members:
        children[span.parent].append(span)
    generations = [span for span in members if span.kind == GENERATION]
    answered = [span for span in generations if span.answer is not None]
    answer = root.answer
    if answer is None and answered:
        answer = max(answered, key=lambda span: (span.end or span.start or 0, span.id)).answer
    question = root.question
    if question is None:
        question = next(
            (span.question for span in members if span.question is not None and span.kind != RETRIEVER), None
        )
    if question is None:
        question = next((span.prompt for span in members if span.prompt is not None), None)
        if question is not None:
            conversion.account.lacking(
                "traces whose question is the prompt of their first generation: the root records none"
            )
    draft = Draft(root.path, root.line, root.trace, question, answer, _retrieved(conversion, members, children))
    draft.qid = next((span.qid for span in (root, *members) if span.qid), None)
    draft.run, draft.start_ns = root.run, root.start
    draft.citations = root.citations
    if root.failed:
        draft.ok = False
        if answer is None:
            draft.error = root.error or "error"
    draft.abstained = True if any(span.abstained for span in members) else None
    if any(span.blocked for span in members):
        draft.policy_flags = ["guardrail_blocked"]
    times = {
        "total": milliseconds(root.start, root.end) or root.latency_ms,
        "retrieve": _union([span for span in members if span.kind in (RETRIEVER, RERANKER)]),
        "generate": _union(generations),
    }
    draft.latency_ms = {name: value for name, value in times.items() if value}
    if times["total"] is None:
        conversion.account.lacking("traces without a duration: no end, or an end before the start")
    draft.usage = _usage(conversion, generations, children)
    return draft


def _retrieved(
    conversion: Conversion, members: list[Span], children: dict[str, list[Span]]
) -> list[dict[str, Any]] | None:
    """Chunks of all retrievals in order of their start; a reranker replaces the list that it was given."""
    steps = [span for span in members if span.kind in (RETRIEVER, RERANKER) and span.chunks is not None]
    if not steps:
        return None
    lists: list[list[dict[str, Any]]] = []
    for span in steps:
        if span.kind == RERANKER:
            given = {chunk["id"] for chunk in span.chunks or ()}
            replaced = [place for place, chunks in enumerate(lists) if given & {chunk["id"] for chunk in chunks}]
            lists = [chunks for place, chunks in enumerate(lists) if place not in replaced]
        elif any(child.kind == RETRIEVER and child.chunks for child in children[span.id]):
            continue  # a wrapper that repeats what the retriever below it returned
        lists.append(span.chunks or [])
    if sum(1 for chunks in lists if chunks) > 1:
        conversion.account.lacking("traces with several retrievals: their chunks stand one list after the other")
    found: dict[str, dict[str, Any]] = {}
    for chunks in lists:
        for chunk in chunks:
            found.setdefault(chunk["id"], chunk)
    return list(found.values())


def _union(spans: list[Span]) -> float | None:
    """The length of the union of the intervals of spans, in milliseconds."""
    total, reached = 0, None
    for start, end in sorted(
        (span.start, span.end) for span in spans if span.start is not None and span.end is not None
    ):
        if end > (reached if reached is not None else start):
            total += end - max(start, reached if reached is not None else start)
            reached = end
        elif reached is None:
            reached = end
    return round_half_even(total) / 1000 if total > 0 else None


def _usage(conversion: Conversion, generations: list[Span], children: dict[str, list[Span]]) -> dict[str, Any]:
    """Tokens and cost over generations without a generation below them: wrappers repeat what is below."""

    def repeats(span: Span) -> bool:
        below = list(children[span.id])
        while below:
            child = below.pop()
            if child.kind == GENERATION and (child.input_tokens is not None or child.cost_usd is not None):
                return True
            below += children[child.id]
        return False

    leaves = [span for span in generations if not repeats(span)]
    usage: dict[str, Any] = {}
    models = list(dict.fromkeys(span.model for span in leaves if span.model))
    if models:
        usage["model"] = models[-1]
        if len(models) > 1:
            conversion.account.lacking("traces with several models: the last one is kept")
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        values = [value for span in leaves if (value := getattr(span, name)) is not None]
        if values:
            usage[name] = round(sum(values), 12) if name == "cost_usd" else sum(values)
    return usage
