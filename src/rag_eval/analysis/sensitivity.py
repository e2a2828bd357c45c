"""Sensitivity of gates: known perturbations at growing rates, and the lowest rate that each gate catches.

A perturbation is a known way for a trace to get worse: a function from a sample to the perturbed row. Decoded rows are
perturbed, so that all readers of traces see the perturbation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from rag_eval.analysis import Context, Earlier, Report
from rag_eval.analysis.baseline import Compared
from rag_eval.analysis.judging import build_report, evidence
from rag_eval.cases import Case
from rag_eval.cases.ranking import matches, positive
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.gates import MARGINS, Policy
from rag_eval.gates.regression import ErrorRates, error_rates
from rag_eval.metrics import Measure, measure
from rag_eval.scoring import Completeness
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.stats.sampling import hash_order

Row = dict[str, Any]
RATES = ("1", "2", "5", "10", "20", "50", "100")
"""Percent of the cases that a perturbation applies to."""
_SAID = "Yes, that is how it is."
_SLOWED, _SLOWER = ("generate", "total"), 10_000  # stages; milliseconds


class TraceSample(NamedTuple):
    """A trace row as it was decoded, with its case. ``donor`` is the answer to another question, empty without one."""

    row: Row
    case: Case
    donor: str = ""

    @classmethod
    def of(cls, row: Row, gold: Gold, line: int, settings: Settings) -> TraceSample:
        """Return the sample of a valid row that answers ``gold``."""
        return cls(row, Case(gold, Trace.from_row(row, gold.qid, line), settings))

    def again(self, row: Row) -> Trace:
        """Return the trace of a perturbed row, in place of this one."""
        return Trace.from_row(row, self.case.gold.qid, self.case.trace.line)


class Kind(NamedTuple):
    """A perturbation: its name, its description, and a function from a sample to a row, None if not applicable."""

    name: str
    text: str
    perturb: Callable[[TraceSample], Row | None]


def in_order(samples: Iterable[TraceSample]) -> list[TraceSample]:
    """Return the samples by a hash of their qid: the first n are always the same.

    The donor of an answer is the next different one, in a circle; there is none if all are equal.
    """
    by_run = sorted(samples, key=lambda sample: sample.case.trace.run)
    ordered = [sample._replace(donor="") for sample in hash_order(by_run, lambda sample: sample.case.gold.qid)]
    answers = [
        (index, case.claim)
        for index, case in enumerate(sample.case for sample in ordered)
        if case.claim and not (case.refused or case.errored or case.is_refusal_token)
    ]
    if len({claim for _, claim in answers}) < 2:
        return ordered
    donor = next(claim for _, claim in answers if claim != answers[-1][1])
    for (index, claim), (_, following) in zip(reversed(answers), reversed([*answers[1:], answers[0]]), strict=True):
        donor = following if following != claim else donor
        ordered[index] = ordered[index]._replace(donor=donor)
    return ordered


def cases_of(percent: Fraction, applicable: int) -> int:
    """Return the number of cases for a perturbation rate in percent, rounded up so that the lowest rate is one case."""
    return min(applicable, ceil(percent * applicable / 100))


def relevant(case: Case) -> frozenset[str]:
    """Return the ids of everything that a label of the gold calls relevant, including chunks."""
    gold = case.gold
    ids = {*gold.citations, *positive(gold.relevance_grades)}
    docs = {*(gold.relevant_docs or ()), *positive(gold.doc_grades)}
    for chunk in case.trace.chunks or ():
        if chunk.doc_id in docs or any(matches(chunk, support) for support in gold.supports or ()):
            ids.add(chunk.id)
    return frozenset(ids)


def _chunk_dropped(sample: TraceSample) -> Row | None:
    if _first_rank(sample.case) is None:
        return None
    lost = relevant(sample.case)
    return _rearranged(sample, lambda ids: [name for name in ids if name not in lost])


def _chunk_below_k(sample: TraceSample) -> Row | None:
    case, k, rank = sample.case, sample.case.settings.k, _first_rank(sample.case)
    if rank is None or rank > k:
        return None
    last = relevant(case)
    fill = [f"probe-filler-{number}" for number in range(1, k + 1)]  # for short lists
    docs = {name: chunk.doc_id for name, chunk in case.chunks_by_id.items()}
    by_documents = case.ranking is not None and case.ranking.level == "doc"

    def arrange(ids: Sequence[str]) -> list[str]:
        others = [name for name in ids if name not in last]
        units = {docs.get(name) for name in others} - {None} if by_documents else set(others)
        return [*others, *fill[: max(0, k - len(units))], *(name for name in ids if name in last)]

    return _rearranged(sample, arrange)


def _first_rank(case: Case) -> int | None:
    """Return the rank of the first relevant chunk for an answerable question, None without one."""
    return case.ranking.first_ranks[0] if case.is_answerable and case.ranking and case.ranking.first_ranks else None


def _wrong_citation(sample: TraceSample) -> Row | None:
    case, right = sample.case, relevant(sample.case)
    wrong = [name for name in case.trace.retrieved if name not in right and name not in case.cites]
    if not _is_answer(case) or right.isdisjoint(case.cites) or not wrong:
        return None
    cites = [wrong[index % len(wrong)] if name in right else name for index, name in enumerate(case.cites)]
    return _answering(sample.row, case.trace.claim, list(dict.fromkeys(cites)))


def _refusal_answered(sample: TraceSample) -> Row | None:
    case = sample.case
    if not case.is_unanswerable or not case.refused or case.blocked:  # a blocked answer is a refusal
        return None
    return _answering(sample.row, _SAID, case.trace.retrieved[:1], refuses=False)


def _answer_refused(sample: TraceSample) -> Row | None:
    return _answering(sample.row, sample.case.settings.token, [], refuses=True) if _is_answer(sample.case) else None


def _answer_blanked(sample: TraceSample) -> Row | None:
    case = sample.case
    return _answering(sample.row, "", case.trace.citations) if _is_answer(case) else None


def _claim_swapped(sample: TraceSample) -> Row | None:
    case = sample.case
    return _answering(sample.row, sample.donor, case.trace.citations) if _is_answer(case) and sample.donor else None


def _is_answer(case: Case) -> bool:
    return bool(case.claim) and case.is_answerable and not case.refused and not case.errored


def _latency_added(sample: TraceSample) -> Row | None:
    spent = sample.row.get("latency_ms")
    if not spent:
        return None
    slowed = [stage for stage in spent if stage in _SLOWED] or list(spent)
    return {**sample.row, "latency_ms": {**spent, **{stage: spent[stage] + _SLOWER for stage in slowed}}}


KINDS = (
    Kind("chunk-dropped", "no relevant chunk is retrieved", _chunk_dropped),
    Kind("chunk-below-k", "relevant chunks are retrieved below k", _chunk_below_k),
    Kind("wrong-citation", "right citations become citations of other retrieved chunks", _wrong_citation),
    Kind("refusal-answered", "right refusals become answers", _refusal_answered),
    Kind("answer-refused", "answers become refusals", _answer_refused),
    Kind("answer-blanked", "answers become empty", _answer_blanked),
    Kind("claim-swapped", "answers become answers to other questions", _claim_swapped),
    Kind("latency-added", "generation takes ten seconds longer", _latency_added),
)
"""Every perturbation; to add one, add a row."""


def _rearranged(sample: TraceSample, arrange: Callable[[Sequence[str]], list[str]]) -> Row:
    """Return the row with its retrieved ids and its chunks in the order that ``arrange`` gives their ids.

    The results of its retrievals become its ids and chunks, as the trace has them.
    """
    row, trace = dict(sample.row), sample.case.trace
    if trace.retrievals is not None:
        if row.get("retrieved_ids") is None:
            row["retrieved_ids"] = list(trace.retrieved)
        if row.get("chunks") is None and trace.chunks is not None:
            chunks = map(asdict, trace.chunks)
            row["chunks"] = [{name: value for name, value in chunk.items() if value is not None} for chunk in chunks]
        row["retrievals"] = [
            {**{name: value for name, value in stated.items() if name != "chunks"}, "ids": list(retrieval.retrieved)}
            for stated, retrieval in zip(row["retrievals"], trace.retrievals, strict=True)
        ]
    if row.get("retrieved_ids") is not None:
        row["retrieved_ids"] = arrange(list(dict.fromkeys(row["retrieved_ids"])))
    if row.get("chunks"):
        by_id: dict[str, list[Any]] = {}
        for chunk in row["chunks"]:
            by_id.setdefault(chunk["id"], []).append(chunk)
        has_documents = any("doc_id" in chunk for chunk in row["chunks"])
        row["chunks"] = []
        for name in arrange(list(by_id)):
            row["chunks"] += by_id.get(name) or [{"id": name, **({"doc_id": name} if has_documents else {})}]
    return row


def _answering(row: Row, claim: str, cites: Sequence[str] | None, *, refuses: bool | None = None) -> Row:
    """Return the row with another answer in the same form; ``refuses`` is set if the row states it."""
    row, cited = dict(row), {} if cites is None else {"citations": list(cites)}
    if row.get("answer_json") is not None:
        row["answer_json"] = {**row["answer_json"], "claim": claim, **cited}
    else:
        row.update(answer=claim, **cited)
    if refuses is not None and row.get("abstained") is not None:
        row["abstained"] = refuses
    return row


class Rate(NamedTuple):
    """A perturbation rate: percent as requested, and the number of cases."""

    percent: str
    cases: int


class Catch(NamedTuple):
    """A gate or a finding that catches a perturbation: the lowest rate at which it fails.

    ``stops`` is the lowest rate at which it fails the run; None if it only warns.
    """

    by: str
    seen: Rate
    stops: Rate | None


class Move(NamedTuple):
    """A metric without a gate that changes at the highest rate; None if it has no value."""

    metric: str
    before: float | None
    after: float | None
    worse: bool


class Probed(NamedTuple):
    """A kind of perturbation, the ``cases`` that it applies to, and its effects.

    ``read`` is true if any metric reads the perturbed field. ``stops`` is the lowest rate at which the run fails, None
    if it never does.
    """

    kind: str
    text: str
    cases: int
    read: bool
    stops: Rate | None
    catches: tuple[Catch, ...]
    unguarded: tuple[Move, ...]

    @property
    def passes(self) -> bool:
        """Return whether no gate catches this perturbation, although it applies and metrics read it."""
        return bool(self.cases) and self.read and self.stops is None


class Probe(NamedTuple):
    """A probe of a run of ``cases`` cases.

    ``against`` is the path of the baseline, empty if it is the original run itself. ``gates`` are all gates except
    completeness, which no perturbation affects. ``unequal`` are the regression gates that fail with the run as its own
    baseline, ``failing`` what fails the original run: with either, no perturbation is tried.
    """

    cases: int
    against: str
    rates: tuple[str, ...]
    gates: tuple[str, ...]
    unequal: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    kinds: tuple[Probed, ...] = ()
    errors: tuple[ErrorRates, ...] = ()

    @property
    def exit_code(self) -> int:
        """Return 0 if the run could be probed, 1 if the original run does not pass."""
        return 1 if self.unequal or self.failing else 0

    @property
    def idle(self) -> list[str]:
        """Return the gates that caught no perturbation of any kind."""
        awake = {catch.by for kind in self.kinds for catch in kind.catches}
        return [gate for gate in self.gates if gate not in awake]


class Setup(Struct, frozen=True):
    """Everything that a run is evaluated by except its traces. ``context`` has the baseline if there is one."""

    golds: Mapping[str, Gold]
    policy: Policy
    measures: Sequence[Measure]
    context: Context


def probe(setup: Setup, samples: Sequence[TraceSample], report: Report, rates: Sequence[str] = RATES) -> Probe:
    """Probe a run: its ``samples`` in the order of perturbation, and its report.

    ``rates`` are percentages, ascending.
    """
    earlier, statistics = setup.context.earlier, setup.policy.statistics
    repeated = rerun_unperturbed(setup, samples, report)
    whole = report if earlier else repeated
    gates = [gate.gate.written for gate in whole.gates if not gate.is_completeness]
    failing = [gate.gate.written for gate in whole.failed_gates]
    failing += [finding.code for judged in (whole, report) for finding in judged.errors]
    # The error rates of each regression gate on a mean, with the noise between the run and its baseline.
    now = evidence(report, earlier or itself(report), cluster=statistics.cluster)
    count = sum(gate.comparison is not None and gate.comparison.adjusted is not None for gate in whole.gates)
    tested = [gate for gate in whole.gates if gate.direction in MARGINS]
    errors = (error_rates(gate, now, float(statistics.alpha), max(1, count)) for gate in tested)
    result = Probe(
        cases=len(report.questions),
        against=earlier.file.path if earlier else "",
        rates=tuple(rates),
        gates=tuple(dict.fromkeys(gates)),
        unequal=unequal(repeated),
        failing=tuple(dict.fromkeys(failing)),
        errors=tuple(filter(None, errors)),
    )
    if result.exit_code:
        return result
    if not earlier:
        setup = replace(setup, context=replace(setup.context, earlier=itself(report)))
    return result._replace(kinds=tuple(_probed(kind, setup, samples, whole, rates) for kind in KINDS))


def itself(report: Report) -> Earlier:
    """Return a run as its own baseline."""
    return Earlier(report, report.questions, report.contracts, Compared("", "", ""))


def rerun_unperturbed(setup: Setup, samples: Sequence[TraceSample], original: Report) -> Report:
    """Return the A/A run: the same traces, scored again like perturbed ones, with the run's report as the baseline."""
    again = replace(setup, context=replace(setup.context, earlier=itself(original)))
    [(_, report)] = reports_by_rate(again, samples, [], original.completeness, ["0"])
    return report


def unequal(report: Report) -> tuple[str, ...]:
    """Return the regression gates that fail."""
    return tuple(gate.gate.written for gate in report.gates if gate.direction in MARGINS and gate.outcome == "failed")


def _probed(kind: Kind, setup: Setup, samples: Sequence[TraceSample], whole: Report, rates: Sequence[str]) -> Probed:
    rows = ((sample, kind.perturb(sample)) for sample in samples)
    perturbed = [(sample.case.trace, sample.again(row)) for sample, row in rows if row is not None]
    result = Probed(kind.name, kind.text, len(perturbed), any(old != new for old, new in perturbed), None, (), ())
    if not result.read:
        return result
    reports = list(reports_by_rate(setup, samples, [new for _, new in perturbed], whole.completeness, rates))
    seen: dict[str, Rate] = {}
    stops: dict[str, Rate] = {}
    usual = _broken(whole)
    for rate, report in reports:
        for name, blocks in _broken(report).items():
            if name not in usual:
                seen.setdefault(name, rate)
            if blocks and not usual.get(name):
                stops.setdefault(name, rate)
    catches = (Catch(name, seen.get(name, rate), stops.get(name)) for name, rate in {**stops, **seen}.items())
    stopped = next((rate for rate, report in reports if not report.passed), None)
    return result._replace(stops=stopped, catches=tuple(catches), unguarded=tuple(_moves(whole, reports[-1][1])))


def reports_by_rate(
    setup: Setup,
    samples: Sequence[TraceSample],
    perturbed: Sequence[Trace],
    as_read: Completeness,
    rates: Sequence[str],
) -> Iterator[tuple[Rate, Report]]:
    """Yield the report of each rate. A higher rate contains the lower ones: each perturbed trace is scored once."""
    scorer, done = metric_scorer(setup.golds, setup.measures, setup.policy.settings), -1
    for sample in samples:
        scorer.add_traces([sample.case.trace])
    for percent in rates:
        cases = cases_of(Fraction(percent), len(perturbed))
        if cases == done:
            continue  # with few cases, several rates are equal
        scorer.add_traces(perturbed[max(done, 0) : cases])
        done, card = cases, scorer.close()
        counted = card.completeness._replace(duplicate=as_read.duplicate, unknown=as_read.unknown)
        card = replace(card, completeness=counted)
        yield Rate(percent, cases), build_report(card, setup.golds, setup.policy, setup.context)


def _broken(report: Report) -> dict[str, bool]:
    """Return failed gates and findings, and whether each fails the run. Metrics without a gate are left out."""
    failed: dict[str, bool] = {}
    for gate in report.gates:
        if gate.broken:
            failed[gate.gate.written] = failed.get(gate.gate.written, False) or gate.blocks
    for finding in report.findings:
        if finding.code != "ungated-regression":
            failed[finding.code] = failed.get(finding.code, False) or finding.level == "error"
    return failed


def _moves(whole: Report, perturbed: Report) -> list[Move]:
    """Return the metrics without a gate whose value changed, regressions first."""
    guarded, moves = {gate.name for gate in whole.gates}, []
    for name, result in whole.metrics.items():
        before, after = result.value, perturbed.metrics[name].value
        if name in guarded or before == after:
            continue
        has_risen = before is not None and after is not None and after > before
        is_worse = after is None or (before is not None and has_risen is (measure(name).metric.better == "lower"))
        moves.append(Move(name, before, after, is_worse))
    return sorted(moves, key=lambda move: not move.worse)
