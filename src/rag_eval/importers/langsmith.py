"""LangSmith runs as its SDKs and exports write them, as trace rows; and its dataset examples as gold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rag_eval.importers import spans, unwrap
from rag_eval.importers.conversion import Conversion, Options, nanoseconds

if TYPE_CHECKING:
    from rag_eval.importers import Inputs, Numbered
    from rag_eval.importers._account import Account

Row = dict[str, Any]
_KINDS = {"retriever": spans.RETRIEVER, "llm": spans.GENERATION, "chain": spans.ROOT}
_PROJECTS = ("session_name", "session_id", "project_id")
_FORMS = "Export all runs of each trace, one a line: file.write(run.model_dump_json() + '\\n')"
_READ = (
    "id",
    "trace_id",
    "parent_run_id",
    "dotted_order",
    "name",
    "run_type",
    "inputs",
    "outputs",
    "error",
    "start_time",
    "end_time",
    "extra",
    "reference_example_id",
    "session_id",
    "session_name",
    "prompt_tokens",
    "completion_tokens",
    "total_cost",
    "status",
    "child_runs",
    "parent_run_ids",
    "metadata",
    "project_id",
    "is_root",
)
_JUDGED = ("feedback_stats", "feedback")


def rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and trace row of each trace in the runs of all files."""
    conversion = Conversion(inputs, options, account, " Do not set LANGSMITH_HIDE_INPUTS or LANGSMITH_HIDE_OUTPUTS.")
    runs: dict[str, tuple[str, int, Row]] = {}
    for path, line, value in conversion.records("a run", "runs", "items"):
        for run in _runs(conversion, path, line, value):
            known = runs.get(str(run["id"]), (path, line, {}))
            runs[str(run["id"])] = (known[0], known[1], _merged(known[2], run))
    found = [span for path, line, run in runs.values() if (span := _span(conversion, path, line, run))]
    if len({span.run for span in found if not span.parent}) < 2:
        for span in found:
            span.run = None
    else:
        account.renamed("session_name", "run")
    lone = {span.trace for span in found} - {span.trace for span in found if span.parent}
    if lone:
        account.lacking("traces of which only the root is there; export their children too (is_root off)", len(lone))
    yield from conversion.rows("langsmith", spans.drafts(conversion, found))


def gold_rows(inputs: Inputs, account: Account, options: Options) -> Numbered:
    """Line and gold row of each example."""
    conversion = Conversion(inputs, options, account)
    for path, line, example in conversion.records("an example", "examples", "items"):
        question = conversion.question(example.get("inputs"), example)
        qid = conversion.qid(example) or unwrap.as_id(example.get("id"))
        if question is None or qid is None:
            hint = "Name it with --question POINTER, such as /inputs/question."
            inputs.problem(path, line, "", "an example has no id or no question", hint)
            continue
        outputs = unwrap.as_dict(example.get("outputs"))
        cited = [str(one) for one in outputs.get("gold_citations") or ()]
        contexts: list[Any] = next(
            (outputs[name] for name in ("contexts", "reference_contexts", "documents") if outputs.get(name)), []
        )
        metadata = dict(unwrap.as_dict(example.get("metadata")))
        splits = metadata.pop("dataset_split", None)
        conversion.left_out(example, ("id", "inputs", "outputs", "metadata"))
        row = conversion.gold_row(
            qid,
            question,
            conversion.answer(outputs, example),
            cited or [chunk["id"] for chunk in conversion.chunks(contexts, path, line)],
            meta={name: one for name, one in metadata.items() if isinstance(one, (str, int, float, bool))},
            tags=[str(one) for one in (splits if isinstance(splits, list) else [splits] if splits else [])],
            answerable=outputs.get("answerable", True) is not False,
        )
        yield line, row
    conversion.finish()


def _runs(conversion: Conversion, path: str, line: int, value: Row) -> Iterator[Row]:
    """The runs of a value: one run with its children, or a batch of ``post`` and ``patch`` halves."""
    if "post" in value or "patch" in value:
        for name in value.keys() - {"post", "patch"}:
            conversion.account.dropped(name, "no metric reads it")
        for half in ("post", "patch"):
            for run in value.get(half) or ():
                yield from _runs(conversion, path, line, run)
    elif "id" in value and ("run_type" in value or "trace_id" in value or "outputs" in value):
        yield value
        for child in value.get("child_runs") or ():
            child = {"trace_id": value.get("trace_id") or value["id"], "parent_run_id": value["id"], **child}
            yield from _runs(conversion, path, line, child)
    else:
        keys = ", ".join(list(value)[:6])
        conversion.inputs.problem(path, line, "", f"is no run: it has the keys {keys}", _FORMS)


def _merged(known: Row, run: Row) -> Row:
    """A run and its patch: what the patch leaves empty does not erase."""
    return {**known, **{name: value for name, value in run.items() if value not in (None, {}, []) or name not in known}}


def _span(conversion: Conversion, path: str, line: int, run: Row) -> spans.Span | None:
    account = conversion.account
    ended = run.get("end_time") or run.get("outputs") or run.get("error")
    if str(run.get("status")).lower() == "pending" or not ended:
        account.dropped("a pending run", "it has not ended")
        return None
    trace = unwrap.as_id(run.get("trace_id")) or str(run["id"])
    ancestors = run.get("parent_run_ids") or ()  # the root first; runs.query() gives them in place of parent_run_id
    parent = unwrap.as_id(run.get("parent_run_id")) or (str(ancestors[-1]) if ancestors else "")
    span = spans.Span(path, line, trace, str(run["id"]), parent, str(run.get("name") or ""))
    span.order = str(run.get("dotted_order") or "")
    span.kind = _KINDS.get(str(run.get("run_type")).lower(), spans.OTHER)
    if span.name == conversion.options.retriever:
        span.kind = spans.RETRIEVER
    span.start, span.end = nanoseconds(run.get("start_time")), nanoseconds(run.get("end_time"))
    extra = unwrap.as_dict(run.get("extra"))
    metadata = unwrap.as_dict(extra.get("metadata")) | unwrap.as_dict(run.get("metadata"))
    outputs = run.get("outputs")
    if span.kind == spans.RETRIEVER:
        documents = unwrap.documents_in(outputs)
        span.chunks = None if documents is None else conversion.chunks(documents, path, line)
    else:
        spans.ask(conversion, span, run.get("inputs"), run)
        if span.kind in (spans.GENERATION, spans.ROOT) or not span.parent:
            span.answer = conversion.answer(outputs, run)
        if not span.parent and isinstance(outputs, dict):
            _read_rag_outputs(conversion, span, outputs, path, line)
    span.qid = unwrap.as_id(run.get("reference_example_id")) or conversion.qid(metadata)
    span.run = next((name for key in _PROJECTS if (name := unwrap.as_id(run.get(key)))), None)
    span.failed, span.error = bool(run.get("error")), unwrap.as_id(run.get("error"))
    if span.kind == spans.GENERATION:
        usage = _usage(outputs)
        span.input_tokens = _first(run.get("prompt_tokens"), usage.get("input_tokens"), usage.get("prompt_tokens"))
        span.output_tokens = _first(
            run.get("completion_tokens"), usage.get("output_tokens"), usage.get("completion_tokens")
        )
        span.model = unwrap.as_id(metadata.get("ls_model_name")) or unwrap.as_id(
            unwrap.as_dict(extra.get("invocation_params")).get("model")
        )
        try:
            span.cost_usd = float(run["total_cost"]) if run.get("total_cost") is not None else None
        except (TypeError, ValueError):
            account.dropped("total_cost", "it is no number")
    conversion.left_out(run, _READ, "", _JUDGED)
    conversion.left_out(extra, ("metadata", "invocation_params"), " of extra")
    conversion.left_out(metadata, (*unwrap.QID_KEYS, "ls_model_name"), " of metadata")
    return span


def _read_rag_outputs(conversion: Conversion, span: spans.Span, outputs: Row, path: str, line: int) -> None:
    """Chunks that a root returns beside its answer, in chains without a retriever run; used if no retriever ran."""
    for name in ("context", "contexts", "source_documents", "documents"):
        documents = unwrap.documents_in(outputs.get(name))
        if documents:
            span.chunks = conversion.chunks(documents, path, line)
            return


def _usage(outputs: Any) -> Row:
    places = [outputs] if isinstance(outputs, dict) else []
    for place in places:
        found = place.get("usage_metadata") or place.get("usage") or (place.get("llm_output") or {}).get("token_usage")
        if isinstance(found, dict):
            return found
        generations = place.get("generations")
        while isinstance(generations, list) and generations:
            generations = generations[0]
        message = generations.get("message") if isinstance(generations, dict) else None
        if isinstance(message, dict):
            inner = message.get("kwargs", message)
            if isinstance(inner.get("usage_metadata"), dict):
                return dict(inner["usage_metadata"])
    return {}


def _first(*values: Any) -> int | None:
    return next(
        (int(one) for one in values if isinstance(one, (int, float)) and not isinstance(one, bool) and one >= 0), None
    )
