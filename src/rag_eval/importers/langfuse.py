"""Langfuse traces with observations, as its UI, API and blob storage export them; and its dataset items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rag_eval.importers import FIELDS, Row, retrieved, spans, unwrap
from rag_eval.importers.conversion import JUDGED, NOT_READ, Conversion, Draft, Place
from rag_eval.importers.otlp import documents_of, flatten, kind_of

Record = tuple[Place, Row]
_READ = FIELDS["langfuse"]["read"]
_TOTALS = FIELDS["langfuse"]["totals"]
_READ_OF_TRACES = FIELDS["langfuse"]["read_of_traces"]
_READ_OF_LINKS = FIELDS["langfuse"]["read_of_links"]
_FORMS = "Export traces with their observations: from the UI (JSON), GET /api/public/traces/ID, or blob storage."


def _with_cached(details: Row) -> Row:
    """Return the details of a usage with cached tokens in ``input``, if each kind of token is counted apart."""
    numbers = {name: unwrap.number(count) or 0 for name, count in details.items() if name != "total"}
    asked = sum(count for name, count in numbers.items() if "input" in name)
    is_sum = sum(numbers.values()) == unwrap.number(details.get("total"))
    return {**details, "input": asked} if is_sum and asked else details


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the observations of all files."""
    account = conversion.account
    traces: dict[str, Record] = {}
    observations: dict[tuple[str, str], Record] = {}
    none: Record = (conversion.place, {})
    links: dict[str, Row] = {}  # of traces to items of a dataset
    for value in conversion.records("a trace or an observation", "data", "datasetRunItems"):
        for row, is_trace in _records(conversion, value):
            if "datasetItemId" in row:
                conversion.drop_unread(row, _READ_OF_LINKS)
                links[str(row.get("traceId"))] = row
            elif is_trace:
                trace = str(row["id"])
                traces[trace] = (conversion.place, _newer(traces.get(trace, none)[1], row))
            else:
                key = str(row.get("traceId") or ""), str(row.get("id") or "")
                observations[key] = (conversion.place, _newer(observations.get(key, none)[1], row))
    by_trace: dict[str, list[Record]] = defaultdict(list)
    for (trace, _), record in observations.items():
        by_trace[trace].append(record)
    for trace, (place, row) in traces.items():
        missing = [item for item in row.get("observations") or () if (trace, item) not in observations]
        account.dropped("ids in observations", "the export lacks the observations; export them too", len(missing))
        if trace not in by_trace:
            account.lacking("traces without observations: their rows have no chunks; export their observations too")
            totals = {name: row.get(name) for name in ("name", *_TOTALS)}
            level = None if row.get("output") else row.get("level")  # of a trace it is the highest of its steps
            root = {"id": f"{trace}-root", "startTime": row.get("timestamp"), "level": level, **totals}
            by_trace[trace] = [(place, root)]
    all_spans: list[spans.TraceSpan] = []
    for trace, records in by_trace.items():
        members, link = _spans(conversion, trace, traces.get(trace), records), links.get(trace, {})
        for span in members:
            span.qid = unwrap.as_id(link.get("datasetItemId")) or span.qid
            span.run = unwrap.as_id(link.get("datasetRunName")) or span.run
        all_spans += members
    unknown = len(links.keys() - by_trace.keys())
    account.dropped("items of a dataset run", "the export lacks their traces; export them too", unknown)
    yield from spans.drafts(conversion, all_spans, "name of the dataset run")


def golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each dataset item, also from the items of an experiment."""
    account = conversion.account
    for value in conversion.records("a dataset item", "data", "items"):
        item = unwrap.camel(value)
        if "experimentItemId" in item:
            item |= {"id": item.pop("experimentItemId"), "metadata": item.pop("experimentItemMetadata", None)}
        elif "output" in item and "expectedOutput" not in item:
            hint = "Export the items of the dataset, which have an expectedOutput."
            conversion.problem("/output", "is the output of a system, so this is no dataset item", hint)
            continue
        if item.get("status") == "ARCHIVED":
            account.dropped("archived items", "status is ARCHIVED")
            continue
        asked, expected = (unwrap.decoded(item.get(name)) for name in ("input", "expectedOutput"))
        read = ("id", "input", "expectedOutput", "metadata", "status")
        yield from conversion.dataset_item(item, asked, expected, read, "/input/question")


def _records(conversion: Conversion, value: Row) -> Iterator[tuple[Row, bool]]:
    """Yield traces (True), and observations and items of dataset runs (False), distinguished by their keys.

    Snake case counts as camel case.
    """
    value = unwrap.camel(value)
    inner = [item for item in value.get("observations") or () if isinstance(item, dict)]
    if isinstance(value.get("batch"), list):
        for event in value["batch"]:
            yield from _records(conversion, unwrap.as_dict(event))
    elif isinstance(value.get("body"), dict) and "type" in value:  # an event of the SDKs before version 3
        kind, body = str(value["type"]).partition("-")[0], unwrap.camel(value["body"])
        if kind == "trace":
            yield {"timestamp": value.get("timestamp"), **body}, True
        elif kind in ("span", "generation", "event", "observation"):
            yield {"type": kind, **body}, False
        else:
            conversion.account.dropped(f"events of type {value['type']}", JUDGED if kind == "score" else NOT_READ)
    elif isinstance(value.get("trace"), dict):
        conversion.drop_unread(value, ("trace", "observations"))
        yield from _records(conversion, value["trace"])
        yield from ((unwrap.camel(row), False) for row in inner)
    elif "traceId" in value and ("id" in value or "datasetItemId" in value):
        yield value, False
    elif "id" in value and value.keys() & {"observations", "timestamp", "sessionId"}:
        yield from (({"traceId": value["id"], **unwrap.camel(row)}, False) for row in inner)
        ids = [item for item in value.get("observations") or () if isinstance(item, str)]
        yield {**value, "observations": ids}, True
    else:
        keys = unwrap.first_keys(value)
        conversion.problem("", f"is neither a trace nor an observation: its keys are {keys}", _FORMS)


def _newer(earlier: Row, row: Row) -> Row:
    """Merge two records of one id, the later one over the earlier one."""
    stamps = [str(item.get("updatedAt") or item.get("eventTs") or "") for item in (earlier, row)]
    older, newer = (earlier, row) if stamps[1] >= stamps[0] else (row, earlier)
    return unwrap.merged(older, newer)


def _spans(conversion: Conversion, trace: str, record: Record | None, records: list[Record]) -> list[spans.TraceSpan]:
    """Return the spans of a trace; the root has the fields of the trace itself."""
    spans_of_trace = [_span(conversion, trace, *item) for item in records]
    conversion.place, row = record or (records[0][0], {})
    ids = {span.id for span in spans_of_trace}
    tops = [span for span in spans_of_trace if span.parent not in ids]
    marked = {str(item.get("id")) for _, item in records if item.get("isRootObservation") is True}
    roots = [span for span in tops if span.id in marked]
    root, answers = (roots or tops or spans_of_trace)[0], []
    if len(tops) > 1 and len(roots) != 1:  # the trace itself is the root of several observations
        root = spans.TraceSpan(conversion.place, trace, f"trace:{trace}", "", str(row.get("name") or ""), spans.ROOT)
        root.start = min((span.start for span in tops if span.start), default=None)
        root.end = max((span.end for span in tops if span.end), default=None)
        answers = [span.answer for span in sorted(tops, key=lambda item: item.end or 0) if span.answer]
        questions = [span.question for span in sorted(tops, key=lambda entry: entry.start or 0) if span.question]
        root.question, root.answer = next(iter(questions), None), next(reversed(answers), None)
        root.failed = all(span.failed for span in tops)
        spans_of_trace.append(root)
    for span in tops if len(tops) > 1 else ():
        span.parent = root.id
    asked, output = (unwrap.decoded(row.get(name), 2) for name in ("input", "output"))
    question = conversion.question(asked, row)
    answer = conversion.answer(output, row)
    if answer is None and root.id == f"trace:{trace}" and len(set(answers)) > 1:
        conversion.account.lacking(spans.LAST_ANSWER)
    metadata = unwrap.decoded(row.get("metadata"))
    root.question, root.answer, root.parent = question or root.question, answer or root.answer, ""
    root.place, root.citations = conversion.place, retrieved.stated_citations(output) or root.citations
    root.documents = root.documents or retrieved.documents_in(retrieved.contexts_in(output))
    root.conversation = root.conversation or unwrap.as_id(row.get("sessionId"))
    root.qid = conversion.qid(metadata, row) or next((span.qid for span in spans_of_trace if span.qid), None)
    root.run = next((span.run for span in spans_of_trace if span.run), None)
    conversion.drop_unread(row, (*_READ_OF_TRACES, "observations"), "", ("scores",))
    conversion.drop_unread(unwrap.as_dict(metadata), (*unwrap.QID_KEYS, "attributes"), " of metadata")
    return spans_of_trace


def _span(conversion: Conversion, trace: str, place: Place, row: Row) -> spans.TraceSpan:
    conversion.place = place
    identity, parent, name = (str(row.get(key) or "") for key in ("id", "parentObservationId", "name"))
    span = spans.TraceSpan(conversion.place, trace, identity, parent, name)
    span.start, span.end = unwrap.nanoseconds(row.get("startTime")), unwrap.nanoseconds(row.get("endTime"))
    span.kind = spans.KINDS.get(str(row.get("type") or "").upper(), spans.OTHER)
    metadata = unwrap.as_dict(unwrap.decoded(row.get("metadata")))
    asked, output = (unwrap.decoded(row.get(key), 2) for key in ("input", "output"))
    if str(row.get("type")).upper() == "SPAN":  # as before version 3
        span.kind = spans.retrieval_kind(name, output) or span.kind
    if flat := flatten(unwrap.as_dict(unwrap.decoded(metadata.get("attributes")))):  # OpenTelemetry sent it
        kind = kind_of(span, flat)
        span.kind = kind if kind in (spans.RETRIEVER, spans.RERANKER) else span.kind
        if span.kind in (spans.RETRIEVER, spans.RERANKER) and retrieved.documents_in(output) is None:
            output = documents_of(conversion, span, flat)
    spans.read_contents(conversion, span, asked, output)
    span.qid = conversion.qid(metadata, row) or unwrap.as_id(row.get("experimentItemId"))
    span.run, span.conversation = unwrap.as_id(row.get("experimentName")), unwrap.as_id(row.get("sessionId"))
    span.failed = row.get("level") == "ERROR"
    span.error = unwrap.as_id(row.get("statusMessage")) if span.failed else None
    details = unwrap.as_dict(unwrap.decoded(row.get("usageDetails")))
    counts = _with_cached(details) or unwrap.decoded(row.get("usage"))
    older = {name: row.get(name) for name in ("promptTokens", "completionTokens")}
    total = unwrap.as_dict(unwrap.decoded(row.get("costDetails"))).get("total")
    costs = map(unwrap.number, (total, row.get("totalCost"), row.get("calculatedTotalCost")))
    span.usage = unwrap.usage(counts, older, cost=next((cost for cost in costs if cost and cost > 0), None))
    span.model = unwrap.first_id(("model", "providedModelName"), row)
    conversion.drop_unread(metadata, (*unwrap.QID_KEYS, "attributes"), " of metadata")
    conversion.drop_unread(row, (*_READ, "inputTokens", "outputTokens"), " of observations")
    latency = (unwrap.number(row.get("latency")) or 0) * 1000 or unwrap.number(row.get("latencyMs")) or 0
    if span.end is None and latency > 0:
        span.latency_ms = round(latency, 3)
    return span
