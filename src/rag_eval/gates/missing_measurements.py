"""Cases that a gate ignores because their traces lack a field.

A metric that needs a field of the trace does not apply to a case without it. A change that leaves the field out of the
failing rows would pass the gate. So for each case without a score, this module checks if it would have one with every
optional field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.cases.case import Case
from rag_eval.cases.labels import ABSENT, REFUSED
from rag_eval.common.escaping import quoted, some
from rag_eval.contract import Answer, Chunk, Gold, Guardrail, Scope, Settings, Trace, Usage
from rag_eval.contract.verdict import MOST, Verdict
from rag_eval.errors import Finding, Level
from rag_eval.gates.integrity import levelled
from rag_eval.gates.policy import BOUNDS, Gate, Policy
from rag_eval.gates.results import Question
from rag_eval.gates.selection import selected_gates
from rag_eval.metrics import Measure, measure

R = TypeVar("R", bound=Struct)

PARTS = {
    "fact_dispersion": ("fact_coverage",),
    "leakage": ("leakage_verbatim",),
    "pipeline_pass": ("latency_ok", "outcome_match", "forbidden_flags"),
}
"""Metrics that another one looks at: what these cannot see it cannot see either."""

SILENT = {
    "outcome_match": {"policy_flags": "flags", "confidence": "confidence"},
    "forbidden_flags": {"policy_flags": "flags"},
}
"""Trace fields, and where a trace has them, that metrics apply without: to leave them out may only help."""

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


_NAMED = 3
_UNJUDGED = frozenset([*ABSENT, *REFUSED, "ATTACK", "ATTACK_MISSED", "LEAK_MISSED", "FALSE_ALARM"])


class Partly(NamedTuple):
    """A gated column in which some cases have no score because their traces lack fields.

    ``lacking`` cases lack one of ``fields``, ``measured`` have a score; ``lost`` of the lacking ones have a score in
    the baseline.
    """

    column: str
    fields: tuple[str, ...]
    measured: int
    lacking: int
    lost: int


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
    if case.missing:
        return []
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
    names = set.intersection(
        *({gate.name for gate in selected_gates(policy) if _can_fail(gate)} for policy in policies)
    )
    cases = [Case(_ANSWERED_ITEM, trace, Settings()) for trace in (_ANSWER, _FAILED)]
    scores = [[item.score(case) for case in cases] for item in map(measure, names) if item.metric.level == "case"]
    return any(failed is not None and failed != answered for answered, failed in scores)


def _can_fail(gate: Gate) -> bool:
    return gate.severity == "error" and gate.direction in BOUNDS and not gate.slice


def watched(policies: Iterable[Policy], columns: Iterable[str]) -> dict[str, tuple[Measure, str]]:
    """Return the gated columns whose scores depend on fields, each with the most severe level of its gates."""
    columns_by_name: dict[str, tuple[Measure, str]] = {}
    known = set(columns)
    for gate in sorted(
        (gate for policy in policies for gate in selected_gates(policy)), key=lambda gate: gate.severity
    ):
        for name in (gate.name, *PARTS.get(gate.name, ())):
            item = measure(name)
            by_field = item.metric.depends_on not in ("features", "ranking") or any(
                need.startswith("trace.") for need in item.metric.needs
            )
            if item.column in known and by_field:
                columns_by_name.setdefault(item.column, (item, gate.severity))
    return columns_by_name


def with_values(columns: Iterable[Measure], *runs: Sequence[Question]) -> list[Measure]:
    """Return the columns in which some case of some run has a score: a column without any is not partly measured."""
    scores = [[question.scores for question in run] for run in runs]
    return [column for column in columns if any(case.get(column.column) is not None for run in scores for case in run)]


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
    columns: Iterable[Measure],
    before: Sequence[Question],
    *,
    is_failure_counted: bool,
) -> Iterator[Partly]:
    """Yield the columns in which only some cases have a score, because traces lack fields.

    Cases that failed without an answer are left out if another gate counts them (``is_failure_counted``).
    """
    single = len({case.run for case in questions}) < 2 and len({case.run for case in before}) < 2
    earlier = {_key(case, single): case.scores for case in before}
    lacking: dict[tuple[str, bool, tuple[str, ...]], list[Question]] = {}
    for question, case in suspected:
        for item in columns:
            fields = lacked(item, case)
            if is_failure_counted and "answer" in fields:
                continue
            # A field that can only harm may be absent without losing the score: each such field counts by itself.
            silent = item.metric.name in SILENT
            for names in [(name,) for name in fields] if silent else [tuple(fields)]:
                if names:
                    lacking.setdefault((item.column, silent, names), []).append(question)
    for (column, silent, lacks), cases in lacking.items():
        measured = sum(column in question.scores for question in questions) - silent * len(cases)
        lost = 0 if silent else sum(column in earlier.get(_key(question, single), ()) for question in cases)
        if measured or lost:
            yield Partly(column, lacks, measured, len(cases), lost)


def _key(case: Question, single: bool) -> tuple[str, str | None]:
    return case.qid, None if single else case.run


def findings(columns: Iterable[Partly], severities: Mapping[str, str], levels: Mapping[str, str]) -> list[Finding]:
    """Return one finding for all columns that the same cases are missing from.

    It is an error if the baseline has the missing measurements.
    """
    together: dict[tuple[object, ...], list[Partly]] = {}
    for column in columns:
        together.setdefault((column.fields, column.measured, column.lacking, column.lost), []).append(column)
    return [
        levelled(_finding(same, severities), levels) for same in together.values() if levels["partly-measured"] != "off"
    ]


def _finding(same: Sequence[Partly], severities: Mapping[str, str]) -> Finding:
    fields, measured, lacking, lost = same[0][1:]
    names = ", ".join(item.column for item in same)
    grave = lost and not _OF_ANSWERS.issuperset(fields) and any(severities[item.column] == "error" for item in same)
    baseline = f"; {lost} of them {'has' if lost == 1 else 'have'} a value in the baseline" if lost else ""
    lack = f"lack {' or '.join(fields)}"
    fix = f"Write {' and '.join(fields)} to the traces of all questions, including failed ones."
    if "answer" in fields:
        lack, fix = "have no answer", "Add a gate that counts errors and empty answers, such as error_rate: {max: 0}."
    message = f"{names}: measured in {measured} of {measured + lacking} cases; the other {lacking} {lack}"
    return Finding("partly-measured", "error" if grave else "warning", f"{message}{baseline}", fix)


def verdict_findings(policy: Policy, questions: Sequence[Question], levels: Mapping[str, str]) -> list[Finding]:
    """Return the findings about the verdicts of the policy's judge; errors where a calibrated gate depends on them."""
    if policy.perspectives and "judge" not in policy.perspectives:
        return []
    gates = [gate for gate in selected_gates(policy) if gate.name.startswith("judge_")]
    results = [_uncalibrated(policy)] if policy.uncalibrated else []
    answered = [case for case in questions if case.trace_line and case.label not in _UNJUDGED]
    without = [case for case in answered if "judge_relevancy" not in case.scores]
    if not policy.verdicts or not without:
        return results
    level: Level = "error" if any(gate.severity == "error" for gate in gates) else "warning"
    fix, total = "Record verdicts: rag-eval judge", len(answered)
    if stale := [case.qid for case in without if case.qid in policy.replay.qids]:
        message = f"{len(stale)} of {total} answers have a verdict on an older answer or gold item"
        results.append(
            Finding("stale-verdict", level, f"{message}: {some(stale, _NAMED, quoted)}", fix, policy.verdicts)
        )
    if missing := [case.qid for case in without if case.qid not in policy.replay.qids]:
        message = f"{len(missing)} of {total} answers have no verdict of this judge: {some(missing, _NAMED, quoted)}"
        results.append(Finding("missing-verdict", level, message, fix, policy.verdicts))
    return [levelled(result, levels) for result in results if levels.get(result.code) != "off"]


def _uncalibrated(policy: Policy) -> Finding:
    names = ", ".join(policy.uncalibrated)
    message = f"{names}: these gates only warn, because no sufficient agreement of this judge with people is recorded"
    fix = "Compare the judge with labels by people: rag-eval judge calibrate --labels FILE --write. See docs/judge.md."
    return Finding("uncalibrated-judge", "warning", message, fix, policy.file)
