"""Metrics that some cases lack, because their traces lack an optional field.

A metric that needs a field of the trace does not apply to a case without it. A change that leaves the field out of the
failing rows would pass the gate. So for each case without a score, :func:`lacked` checks if it would have one with
every optional field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.cases import REFUSED, Case
from rag_eval.contract import MOST, Answer, Chunk, Gold, Guardrail, Scope, Settings, Trace, Usage, Verdict
from rag_eval.errors import Finding
from rag_eval.gates import BOUNDS, Policy
from rag_eval.gates.integrity import can_fail
from rag_eval.gates.results import Question
from rag_eval.metrics import Measure, measure

R = TypeVar("R", bound=Struct)

PARTS = {
    "fact_dispersion": ("fact_coverage",),
    "leakage": ("leakage_verbatim",),
    "pipeline_pass": ("latency_ok", "outcome_match", "forbidden_flags"),
}
"""Metrics that another metric is computed from: it lacks what they lack."""

SILENT = {
    "outcome_match": {"policy_flags": "flags", "confidence": "confidence"},
    "forbidden_flags": {"policy_flags": "flags"},
}
"""Trace fields without which a metric applies, and their attributes: to leave them out can only raise the score."""

_OF_ANSWERS = frozenset({"citations"})
"""Fields that are a part of the answer. An answer without citations is judged as such."""

_ABOUT_ANSWERS = ("citations", "groundedness", "judge")
"""Groups of metrics that leave out a case without an answer; others count it as wrong, or are not about answers."""

_STAGES = ("retrieve", "generate", "guardrail_input", "guardrail_output", "folder_select", "judge", "total")
_FIELDS = ("citations", "chunks.text", "chunks.doc_id", "scope", "timed_out", "latency_ms", "usage", "guardrail")
_TEXT = "It took thirty days."
_ANSWER = Trace(
    retrieved_ids=("x", "y"),
    answer_json=Answer(_TEXT, ("x",)),
    chunks=(Chunk("x", _TEXT, "x"), Chunk("y", _TEXT, "x")),
    line=1,
)
_FAILED = replace(_ANSWER, answer_json=None, error="timed out")
_ANSWERED_ITEM = Gold("x", "How long?", True, ("thirty days",), ("x",))


class _JudgedCase(Case):
    """A case as it would be with a recorded verdict: missing verdicts are a separate finding."""

    @property
    def verdict(self) -> Verdict:
        """Return the best verdict."""
        return Verdict(MOST, MOST, MOST, ())


def filled(trace: Trace, but: str = "") -> Trace:
    """Return the trace with a value for every optional field that it lacks, except for the field ``but``."""
    chunks = trace.chunks
    if chunks is None and but != "chunks.text":
        chunks = tuple([Chunk(name) for name in trace.retrieved or ("x", "y")])
    parts = {name: text for name, text in (("text", "thirty"), ("doc_id", "x")) if but != f"chunks.{name}"}
    fields: dict[str, Any] = {
        "chunks": chunks and tuple([_with(chunk, parts) for chunk in chunks]),
        "scope": trace.scope or Scope("on"),
        "timed_out": bool(trace.timed_out),
        "latency": {**dict.fromkeys(_STAGES, 0.0), **(trace.latency or {})},
        "usage": _with(trace.usage or Usage(), {"cost_usd": 0.0}),
        "guardrail": _with(trace.guardrail or Guardrail(), {"score": 0.0, "blocked": False, "leaks": ()}),
    }
    fields.pop(but.removesuffix("_ms"), None)
    cites, answer = trace.retrieved[:1] or ("x",), trace.answer_json
    if not trace.claim.strip():
        fields["answer_json"] = Answer(_TEXT, None if but == "citations" else cites)
    elif but != "citations" and trace.citations is None:
        fields |= {"answer_json": replace(answer, citations=cites)} if answer else {"answer_citations": cites}
    return replace(trace, **fields)


def _with(record: R, values: Mapping[str, Any]) -> R:
    """Return a record with values for its missing fields."""
    return replace(record, **{name: value for name, value in values.items() if getattr(record, name) is None})


def lacked(measure: Measure, case: Case) -> list[str]:
    """Return the fields without which a case has no score under a measure that would otherwise apply."""
    if measure.score(case) is not None:
        silent = SILENT.get(measure.metric.name, {})
        return [name for name, attribute in silent.items() if getattr(case.trace, attribute) is None]
    if not _applies(measure, case, filled(case.trace)):
        return []
    if not case.claim and measure.metric.perspective in _ABOUT_ANSWERS:
        return ["answer"]
    needs = {need.removeprefix("trace.") for need in measure.metric.needs}
    fields = needs.intersection(_FIELDS) or _FIELDS  # a metric that names no field may need any
    return [name for name in _FIELDS if name in fields and not _applies(measure, case, filled(case.trace, but=name))]


def _applies(measure: Measure, case: Case, trace: Trace) -> bool:
    return measure.score(_JudgedCase(case.gold, trace, case.settings)) is not None


def counts_failures(policies: Iterable[Policy]) -> bool:
    """Return whether a gate in every policy, such as precision or error_rate, counts a failure of the system."""
    by_policy = []
    for policy in policies:
        gates = [gate for gate in policy.selected_gates if gate.direction in BOUNDS and not gate.slice]
        by_policy.append({gate.name for gate in gates if can_fail(gate)})
    names = set.intersection(*by_policy)
    cases = [Case(_ANSWERED_ITEM, trace, Settings()) for trace in (_ANSWER, _FAILED)]
    scores = [[item.score(case) for case in cases] for item in map(measure, names) if item.metric.level == "case"]
    return any(failed is not None and failed != answered for answered, failed in scores)


def watched(
    policies: Iterable[Policy], columns: Iterable[str], *runs: Sequence[Question]
) -> dict[str, tuple[Measure, str]]:
    """Return the gated columns whose scores depend on fields, each with the most severe level of its gates.

    A column in which no case of the runs has a score is not partly measured.
    """
    result: dict[str, tuple[Measure, str]] = {}
    known = set(columns)
    for gate in sorted((gate for policy in policies for gate in policy.selected_gates), key=lambda gate: gate.severity):
        for name in (gate.name, *PARTS.get(gate.name, ())):
            item = measure(name)
            needs_trace = any(need.startswith("trace.") for need in item.metric.needs)
            by_field = needs_trace or item.metric.depends_on not in ("features", "ranking")
            if item.column in known and by_field:
                result.setdefault(item.column, (item, gate.severity))
    scores = [question.scores for run in runs for question in run]
    return {column: row for column, row in result.items() if any(case.get(column) is not None for case in scores)}


def suspects(
    questions: Sequence[Question], golds: Mapping[str, Gold], columns: Iterable[Measure], settings: Settings
) -> list[Question]:
    """Return the cases that may lack a field: without a score in a column that applies to such an item and answer.

    Most runs have none, and the traces are read again only for these cases.
    """
    by_position: dict[int, Question] = {}
    for column in columns:
        known: dict[tuple[object, ...], bool] = {}
        silent = column.metric.name in SILENT
        for index, question in enumerate(questions):
            score = question.scores.get(column.column)
            if not question.trace_line or index in by_position or (score is None) is silent:
                continue
            gold, refused = golds[question.qid], question.label in REFUSED
            key = (gold.answerable, refused, gold.expected_answer) if gold.is_plain else (refused, gold.qid)
            if key not in known:
                likely = _JudgedCase(gold, filled(replace(_ANSWER, abstained=refused)), settings)
                known[key] = column.score(likely) is not None
            if known[key]:
                by_position[index] = question
    return list(by_position.values())


def partly_measured(
    questions: Sequence[Question],
    suspected: Iterable[tuple[Question, Case]],
    columns: Mapping[str, tuple[Measure, str]],
    before: Sequence[Question],
    policies: Sequence[Policy],
) -> Iterator[Finding]:
    """Yield one finding for all ``watched`` columns that the same cases are missing from, because traces lack fields.

    It is an error if the baseline (``before``) has the missing measurements. Cases that failed without an answer are
    left out if another gate counts them.
    """
    is_failure_counted = counts_failures(policies)
    single = len({case.run for case in questions}) < 2 and len({case.run for case in before}) < 2
    key: Callable[[Question], object] = attrgetter("qid") if single else attrgetter("qid", "run")
    earlier = {key(case): case.scores for case in before}
    lacking: dict[tuple[str, bool, tuple[str, ...]], list[Question]] = {}
    for question, case in suspected:
        for column, (item, _) in columns.items():
            fields = lacked(item, case)
            if is_failure_counted and "answer" in fields:
                continue
            # A field that can only harm may be absent without losing the score: each such field counts by itself.
            silent = item.metric.name in SILENT
            for names in [(name,) for name in fields] if silent else [tuple(fields)]:
                if names:
                    lacking.setdefault((column, silent, names), []).append(question)
    together: dict[tuple[tuple[str, ...], int, int, int], list[str]] = {}
    for (column, silent, names), cases in lacking.items():
        measured = sum(column in question.scores for question in questions) - silent * len(cases)
        lost = 0 if silent else sum(column in earlier.get(key(question), ()) for question in cases)
        if measured or lost:
            together.setdefault((names, measured, len(cases), lost), []).append(column)
    for (names, measured, n, lost), same in together.items():
        grave = lost and not _OF_ANSWERS.issuperset(names) and any(columns[column][1] == "error" for column in same)
        baseline = f"; {lost} of them {'has' if lost == 1 else 'have'} a value in the baseline" if lost else ""
        lack = f"{'lacks' if n == 1 else 'lack'} {' or '.join(names)}"
        fix = f"Write {' and '.join(names)} to the traces of all questions, including failed ones."
        if "answer" in names:
            lack = f"{'has' if n == 1 else 'have'} no answer"
            fix = "Add a gate that counts errors and empty answers, such as error_rate: {max: 0}."
        message = f"{', '.join(same)}: measured in {measured} of {measured + n} cases; the other {n} {lack}"
        yield Finding("partly-measured", "error" if grave else "warning", f"{message}{baseline}", fix)
