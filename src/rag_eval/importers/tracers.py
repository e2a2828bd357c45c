"""Traces of Opik, Braintrust, HoneyHive and W&B Weave as trace rows; the datasets of the first two as gold rows.

``data/formats.toml`` names the places of the fields of their spans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rag_eval.importers import SPANS, Row, spans, unwrap
from rag_eval.importers.conversion import NOT_READ, Conversion, Draft, Place
from rag_eval.importers.documents import nested

_ITEM = "Evaluation.predict_and_score"  # Weave's call for one question of an evaluation
_OPIK = "Export the project: opik export WORKSPACE project NAME"
_ALL_SPANS = "Export all spans of each trace, not only its root: in the export of logs choose spans."
_ALL_CALLS = "Export all calls of each trace, not only its root: in the table of traces choose all calls."


def opik_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the records of all files: the trace is the root, and its spans are below it."""
    records: dict[tuple[str, str], tuple[Place, Row]] = {}
    for value in conversion.records("a trace or a span", "content"):
        rows = [value]
        if "spans" in value:
            conversion.drop_unread(value, ("trace", "spans"))
            below = value["spans"] or []  # null, if none were recorded
            if not isinstance(below, list) or not all(isinstance(row, dict) for row in below):
                conversion.problem("/spans", "is not a list of spans", _OPIK)
                continue
            rows = [unwrap.as_dict(value.get("trace")), *below]
        for row in rows:
            if "id" in row and row.keys() & {"trace_id", "start_time"}:
                root = {} if "trace_id" in row else {"trace_id": row["id"], "type": "trace"}
                row = {**row, **root}
                records[str(row["trace_id"]), str(row["id"])] = conversion.place, row
            else:
                conversion.problem("", "is neither a trace nor a span", _OPIK)
    recorded = []
    for (trace, _), (conversion.place, row) in records.items():
        span = spans.read_record(conversion, row, SPANS["opik"])
        if span.id != trace and (trace, trace) in records:
            span.parent = span.parent or trace
        recorded.append(span)
    yield from spans.drafts(conversion, recorded)


def opik_golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each dataset item."""
    for item in conversion.records("a dataset item", "items", "content"):
        fields = unwrap.as_dict(item.get("data")) or item  # of the API
        expected = next((fields[name] for name in ("expected_output", "expected_answer") if name in fields), None)
        asked = {name: fields[name] for name in unwrap.QUESTION_KEYS if name in fields}
        read = (*asked, "expected_output", "expected_answer", "id", "metadata")
        fields = {**fields, "id": item.get("id")}
        yield from conversion.dataset_item(fields, asked, expected, read, "/user_question", "opik")


def braintrust_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the spans of all files."""
    recorded = []
    for value in conversion.records("a span", "data", "events"):
        if "span_id" in value and "root_span_id" in value:
            recorded.append(spans.read_record(conversion, value, SPANS["braintrust"]))
        else:
            conversion.problem("", "is not a span: span_id or root_span_id is missing", _ALL_SPANS)
    yield from spans.drafts(conversion, recorded)


def braintrust_golds(conversion: Conversion) -> Iterator[Row]:
    """Yield the gold row of each dataset item."""
    for item in conversion.records("a dataset item", "data", "events"):
        asked, expected, pointer = item.get("input"), item.get("expected"), "/input/user_question"
        read = ("id", "input", "expected", "metadata")
        yield from conversion.dataset_item(item, asked, expected, read, pointer, "braintrust")


def honeyhive_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each session in the events of all files."""
    recorded = []
    for value in conversion.records("an event", "events"):
        event = {{"inputs": "input", "outputs": "output"}.get(name, name): item for name, item in value.items()}
        recorded.append(spans.read_record(conversion, event, SPANS["honeyhive"]))
    yield from spans.drafts(conversion, recorded)


def weave_drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the calls of all files; an evaluation has one for each question."""
    calls: dict[str, tuple[Place, Row]] = {}
    for value in conversion.records("a call", "calls"):
        call = nested(value)
        if "trace_id" in call and "id" in call:
            calls[str(call["id"])] = conversion.place, _of_weave(call)
        else:
            conversion.problem("", "is not a call: id or trace_id is missing", _ALL_CALLS)
    recorded = []
    for conversion.place, call in calls.values():
        path = [call]  # with the calls above it, if the file has them
        while (above := calls.get(str(path[-1].get("parent_id")))) and above[1] not in path:
            path.append(above[1])
        names = [str(item["name"]) for item in path]
        if _ITEM not in names and any(name.startswith("Evaluation.") for name in names):
            conversion.account.dropped("calls of an evaluation as a whole", NOT_READ)
        else:
            if _ITEM in names:
                call = {**call, "trace_id": path[names.index(_ITEM)]["id"]}
                if names[0] == _ITEM:  # it ends after the scorers
                    call |= {"parent_id": None, "ended_at": None}
            result = unwrap.as_dict(call.get("output"))
            returned = result["output"] if call["name"] == _ITEM and "output" in result else call.get("output")
            span = spans.read_record(conversion, {**call, "output": returned}, SPANS["weave"])
            span.latency_ms = (unwrap.number(unwrap.at(call, "/output/model_latency")) or 0) * 1000 or None
            recorded.append(span)
    yield from spans.drafts(conversion, recorded)


def _of_weave(call: Row) -> Row:
    """Return a call with the fields of other tools, without references to objects of Weave, which are no texts."""
    inputs, attributes, summary = (unwrap.as_dict(call.get(name)) for name in ("inputs", "attributes", "summary"))
    usages = unwrap.as_dict(summary.get("usage"))  # by model
    counts = Counter[str]()
    for usage in map(unwrap.usage, usages.values()):
        counts.update(usage)
    name = str(call.get("op_name") or "").rpartition("/op/")[2].partition(":")[0]
    asked = inputs | unwrap.as_dict(inputs.get("example"))
    return {
        **{name: value for name, value in call.items() if name not in ("inputs", "attributes", "summary", "op_name")},
        "name": name,
        "kind": "scorer" if name.endswith(".score") else unwrap.as_dict(attributes.get("weave")).get("kind"),
        "input": {name: value for name, value in asked.items() if not str(value).startswith("weave:///")},
        "metadata": {name: value for name, value in attributes.items() if name.partition(".")[0] != "weave"},
        "model": list(usages) if len(usages) > 1 else next(iter(usages), None),
        "usage": {} if name == _ITEM else counts,  # the scorers have models too
    }
