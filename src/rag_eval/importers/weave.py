"""Calls of W&B Weave, as its UI and API export them, as trace rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rag_eval.importers import Row, spans, unwrap
from rag_eval.importers.conversion import NOT_READ, Conversion
from rag_eval.importers.documents import nested
from rag_eval.importers.draft import Draft, Place

_NAMES = {
    "trace": "/trace_id", "id": "/id", "parent": "/parent_id", "name": "/name", "kind": "/kind",
    "start": "/started_at", "end": "/ended_at", "error": "/exception", "model": "/model", "usage": "/usage",
    "cost": "/cost", "conversation": "/thread_id",
}  # fmt: skip
_ITEM = "Evaluation.predict_and_score"  # the call for one question of an evaluation
_FORMS = "Export all calls of each trace, not only its root: in the table of traces choose all calls."


def drafts(conversion: Conversion) -> Iterator[Draft]:
    """Yield each trace in the calls of all files; an evaluation has one for each question."""
    calls: dict[str, tuple[Place, Row]] = {}
    for value in conversion.records("a call", "calls"):
        call = nested(value)
        if "trace_id" in call and "id" in call:
            calls[str(call["id"])] = conversion.place, _record(call)
        else:
            conversion.problem("", "is not a call: id or trace_id is missing", _FORMS)
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
            span = spans.read_record(conversion, {**call, "output": returned}, _NAMES)
            span.latency_ms = (unwrap.number(unwrap.at(call, "/output/model_latency")) or 0) * 1000 or None
            recorded.append(span)
    yield from spans.drafts(conversion, recorded)


def _record(call: Row) -> Row:
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
