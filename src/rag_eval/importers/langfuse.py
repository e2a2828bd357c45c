"""Langfuse traces with observations, as its UI, API and blob storage export them; and its dataset items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers import spans, unwrap
from rag_eval.importers.attributes import flatten, indexed, read_attributes
from rag_eval.importers.conversion import Conversion, Options, nanoseconds

if TYPE_CHECKING:
    from rag_eval.importers import Inputs, Numbered
    from rag_eval.importers._account import Account

Row = dict[str, Any]
_CAPTURE = " In Langfuse, export the field group 'io' (input and output) too."
_KINDS = {
    "RETRIEVER": spans.RETRIEVER,
    "GENERATION": spans.GENERATION,
    "GUARDRAIL": spans.GUARDRAIL,
    "EVALUATOR": "evaluator",
    "CHAIN": spans.ROOT,
    "AGENT": spans.ROOT,
}
_READ = {
    "id",
    "traceId",
    "parentObservationId",
    "type",
    "name",
    "startTime",
    "endTime",
    "level",
    "statusMessage",
    "model",
    "metadata",
    "input",
    "output",
    "usageDetails",
    "usage",
    "promptTokens",
    "completionTokens",
    "costDetails",
    "totalCost",
    "calculatedTotalCost",
    "providedModelName",
    "isRootObservation",
    "latency",
    "createdAt",
    "updatedAt",
    "eventTs",
    "projectId",
    "environment",
}
_READ_OF_TRACES = {
    "id",
    "name",
    "timestamp",
    "input",
    "output",
    "metadata",
    "latency",
    "createdAt",
    "updatedAt",
    "projectId",
    "environment",
    "public",
    "bookmarked",
}
_FORMS = "Export traces with their observations: from the UI (JSON), GET /api/public/traces/ID, or blob storage."


def rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and trace row of each trace in the observations of all files."""
    conversion = Conversion(inputs, options, account, _CAPTURE)
    traces: dict[str, tuple[str, int, Row]] = {}
    observations: dict[tuple[str, str], tuple[str, int, Row]] = {}
    for path, line, value in conversion.records("a trace or an observation", "data"):
        for kind, row in _records(conversion, path, line, value):
            if kind == "trace":
                _, _, known = traces.get(str(row["id"]), (path, line, {}))
                traces[str(row["id"])] = (path, line, _newer(known, row))
            else:
                key = str(row.get("traceId") or ""), str(row.get("id") or "")
                _, _, known = observations.get(key, (path, line, {}))
                observations[key] = (path, line, _newer(known, row))
    found = list(_spans(conversion, traces, observations))
    yield from conversion.rows("langfuse", spans.drafts(conversion, found))


def gold_rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and gold row of each dataset item."""
    conversion = Conversion(inputs, options, account)
    for path, line, item in conversion.records("a dataset item", "data", "items"):
        if row := _gold(conversion, path, line, unwrap.camel(item)):
            yield line, row
    conversion.finish()


def _gold(conversion: Conversion, path: str, line: int, item: Row) -> Row | None:
    if item.get("status") == "ARCHIVED":
        conversion.account.dropped("archived items", "status is ARCHIVED")
        return None
    question = conversion.question(unwrap.decoded(item.get("input")), item)
    qid = conversion.qid(item) or unwrap.as_id(item.get("id"))
    if question is None or qid is None:
        hint = "Name it with --question POINTER, such as /input/question."
        conversion.inputs.problem(path, line, "", "a dataset item has no id or no question", hint)
        return None
    expected = unwrap.decoded(item.get("expectedOutput"))
    fields = expected if isinstance(expected, dict) else {}
    contexts = fields.get("gold_citations") or fields.get("citations") or ()
    if not contexts:
        texts = fields.get("contexts") or fields.get("reference_contexts") or ()
        contexts = conversion.reference_ids(text for text in texts if isinstance(text, str))
    metadata = unwrap.as_dict(item.get("metadata"))
    meta = {name: value for name, value in metadata.items() if isinstance(value, (str, int, float, bool))}
    conversion.left_out(item, ("id", "input", "expectedOutput", "metadata", "status"))
    expected_text = conversion.answer(expected) if expected is not None else None
    substrings = [text for text in fields.get("gold_claim_substr") or () if isinstance(text, str)]
    return conversion.gold_row(
        qid,
        question,
        expected_text,
        [str(one) for one in contexts],
        meta=meta,
        substrings=substrings,
        answerable=fields.get("answerable", True) is not False,
    )


def _records(conversion: Conversion, path: str, line: int, value: Row) -> Iterator[tuple[str, Row]]:
    """Traces and observations, told apart by their keys; snake case as camel case."""
    value = unwrap.camel(value)
    if isinstance(value.get("trace"), dict):
        for name in value.keys() - {"trace", "observations"}:
            conversion.account.dropped(name, "no metric reads it")
        yield from _records(conversion, path, line, value["trace"])
        for row in value.get("observations") or ():
            yield "observation", unwrap.camel(row)
    elif "traceId" in value and "id" in value:
        yield "observation", value
    elif "id" in value and ("observations" in value or "timestamp" in value or "sessionId" in value):
        for row in value.get("observations") or ():
            if isinstance(row, dict):
                yield "observation", {"traceId": value["id"], **unwrap.camel(row)}
            else:
                conversion.account.dropped("ids in observations", "the observations are not in them; export them too")
        yield "trace", {name: inner for name, inner in value.items() if name != "observations"}
    else:
        keys = ", ".join(list(value)[:6])
        conversion.inputs.problem(path, line, "", f"is neither a trace nor an observation: it has {keys}", _FORMS)


def _newer(known: Row, row: Row) -> Row:
    """Two records of one id as one: the later wins, but nothing erases what the other one has."""
    stamps = [str(one.get("updatedAt") or one.get("eventTs") or "") for one in (known, row)]
    older, newer = (known, row) if stamps[1] >= stamps[0] else (row, known)
    return {**older, **{name: value for name, value in newer.items() if value not in (None, "", {}, [])}}


def _spans(
    conversion: Conversion,
    traces: dict[str, tuple[str, int, Row]],
    observations: dict[tuple[str, str], tuple[str, int, Row]],
) -> Iterator[spans.Span]:
    by_trace: dict[str, list[tuple[str, int, Row]]] = defaultdict(list)
    for (trace, _), record in observations.items():
        by_trace[trace].append(record)
    for trace, (path, line, row) in traces.items():
        if trace not in by_trace:
            conversion.account.lacking("traces without observations: their rows have no chunks")
            by_trace[trace] = [
                (path, line, {"id": f"{trace}-root", "name": row.get("name"), "startTime": row.get("timestamp")})
            ]
    for trace, records in by_trace.items():
        path, line, row = traces.get(trace, (records[0][0], records[0][1], {}))
        found = [_span(conversion, trace, *record) for record in records]
        ids = {span.id for span in found}
        tops = [span for span in found if span.parent not in ids]
        marked = [
            span
            for span, (_, _, one) in zip(found, records, strict=True)
            if span in tops and one.get("isRootObservation") is True
        ]
        root = (marked or tops or found)[0]
        if len(marked) == 1:
            for span in tops:
                span.parent = root.id
        elif len(tops) > 1:  # the trace itself is the root of several observations
            root = spans.Span(path, line, trace, f"trace:{trace}", "", str(row.get("name") or ""), spans.ROOT)
            starts, ends = [span.start for span in tops if span.start], [span.end for span in tops if span.end]
            root.start, root.end = min(starts, default=None), max(ends, default=None)
            for span in tops:
                span.parent = root.id
            answered = [span for span in sorted(tops, key=lambda one: one.end or 0) if span.answer]
            root.question = next(
                (span.question for span in sorted(tops, key=lambda one: one.start or 0) if span.question), None
            )
            root.answer = answered[-1].answer if answered else None
            root.failed = all(span.failed for span in tops)
            found.append(root)
        root.parent = ""
        asked, said = (unwrap.decoded(row.get(name), 2) for name in ("input", "output"))
        question = conversion.question(asked, row) if asked is not None or conversion.options.question else None
        answer = conversion.answer(said, row) if said is not None or conversion.options.answer else None
        root.question, root.answer = question or root.question, answer or root.answer
        root.line, root.path = line, path
        metadata = unwrap.decoded(row.get("metadata"))
        root.qid = conversion.qid(metadata, row) or next((span.qid for span in found if span.qid), None)
        conversion.left_out(row, _READ_OF_TRACES, "", ("scores",))
        conversion.left_out(unwrap.as_dict(metadata), (*unwrap.QID_KEYS, "attributes"), " of metadata")
        yield from found


def _span(conversion: Conversion, trace: str, path: str, line: int, row: Row) -> spans.Span:
    span = spans.Span(
        path,
        line,
        trace,
        str(row.get("id") or ""),
        str(row.get("parentObservationId") or ""),
        str(row.get("name") or ""),
    )
    span.start, span.end = nanoseconds(row.get("startTime")), nanoseconds(row.get("endTime"))
    span.kind = _KINDS.get(str(row.get("type") or "").upper(), spans.OTHER)
    metadata = unwrap.as_dict(unwrap.decoded(row.get("metadata")))
    conversion.left_out(metadata, (*unwrap.QID_KEYS, "attributes"), " of metadata")
    attributes = unwrap.decoded(metadata.get("attributes"))
    if isinstance(attributes, dict):
        _kind_by_attributes(conversion, span, attributes)
    if span.name == conversion.options.retriever:
        span.kind = spans.RETRIEVER
    _read_contents(conversion, span, row)
    span.qid = conversion.qid(metadata)
    span.failed = row.get("level") == "ERROR"
    span.error = unwrap.as_id(row.get("statusMessage")) if span.failed else None
    if span.kind == spans.GENERATION:
        _measure(span, row)
    conversion.left_out(row, _READ, " of observations")
    if span.end is None and isinstance(row.get("latency"), (int, float)) and row["latency"] > 0:
        span.latency_ms = row["latency"] * 1000
    return span


def _read_contents(conversion: Conversion, span: spans.Span, row: Row) -> None:
    """Input and output: documents of a retriever, question and answer of everything else."""
    asked, said = (unwrap.decoded(row.get(name), 2) for name in ("input", "output"))
    if span.kind in (spans.RETRIEVER, spans.RERANKER):
        documents = unwrap.documents_in(said)
        if documents is not None:
            span.chunks = conversion.chunks(documents, span.path, span.line)
    else:
        if asked is not None:
            spans.ask(conversion, span, asked)
        if span.kind in (spans.GENERATION, spans.ROOT) or not span.parent:
            span.answer = conversion.answer(said) if said is not None else None


def _measure(span: spans.Span, row: Row) -> None:
    """Tokens, cost and model of a generation."""
    usage = unwrap.decoded(row.get("usageDetails")) or row.get("usage") or {}
    usage = usage if isinstance(usage, dict) else {}
    span.input_tokens = _whole(usage.get("input"), usage.get("promptTokens"), row.get("promptTokens"))
    span.output_tokens = _whole(usage.get("output"), usage.get("completionTokens"), row.get("completionTokens"))
    cost = unwrap.decoded(row.get("costDetails")) or {}
    amounts = (
        cost.get("total") if isinstance(cost, dict) else None,
        row.get("totalCost"),
        row.get("calculatedTotalCost"),
    )
    span.cost_usd = next((float(one) for one in amounts if isinstance(one, (int, float)) and one > 0), None)
    span.model = unwrap.as_id(row.get("model")) or unwrap.as_id(row.get("providedModelName"))


def _kind_by_attributes(conversion: Conversion, span: spans.Span, attributes: Row) -> None:
    """Observations that OpenTelemetry sent keep their kind, and sometimes their documents, in metadata.attributes."""
    flat = flatten(attributes)
    stated = str(flat.get("openinference.span.kind") or "").upper(), str(flat.get("gen_ai.operation.name") or "")
    if "RETRIEVER" in stated or "retrieval" in stated or indexed(flat, "retrieval.documents"):
        span.kind = spans.RETRIEVER
    elif "RERANKER" in stated:
        span.kind = spans.RERANKER
    if span.kind in (spans.RETRIEVER, spans.RERANKER):
        probe = spans.Span(span.path, span.line, span.trace, span.id, span.parent, span.name)
        wanted = {
            name: value
            for name, value in flat.items()
            if name.startswith(("retrieval.", "reranker.", "openinference", "gen_ai.", "output."))
        }
        read_attributes(conversion, probe, wanted)
        span.chunks = probe.chunks


def _whole(*values: Any) -> int | None:
    return next(
        (int(one) for one in values if isinstance(one, (int, float)) and not isinstance(one, bool) and one >= 0), None
    )
