"""Sensitivity of gates: known perturbations at growing rates, and the lowest rate that each gate catches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from rag_eval.analysis.baseline import Earlier
from rag_eval.analysis.perturbations import KINDS, Kind, TraceSample, cases_of
from rag_eval.analysis.report import Context, Report, build_report, evidence
from rag_eval.contract import Gold, Trace
from rag_eval.gates.policy import MARGINS, Policy
from rag_eval.gates.regression import error_rates
from rag_eval.metrics import Measure, measure
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.scoring.scorecard import Completeness

RATES = ("1", "2", "5", "10", "20", "50", "100")
"""Percent of the cases that a perturbation applies to."""


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


class Errors(NamedTuple):
    """Error rates of a regression gate over ``n`` units, a share ``noise`` of which changes by chance.

    ``unchanged`` and ``permitted`` are the probabilities that it fails without a change and at three quarters of its
    margin, ``missed`` the probability that it does not fail at a ``drop`` beyond it.
    """

    gate: str
    test: str
    n: int
    noise: float
    unchanged: float
    permitted: float
    drop: float
    missed: float


class Probe(NamedTuple):
    """A probe of a run of ``cases`` cases.

    ``against`` is the path of the baseline, empty if it is the original run itself. ``gates`` are all gates except
    completeness, which no perturbation affects. ``unequal`` are the regression gates that fail with the run as its own
    baseline, ``failing`` what fails the original run: with either, no perturbation is tried.
    """

    cases: int
    against: str
    doses: tuple[str, ...]
    gates: tuple[str, ...]
    unequal: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    kinds: tuple[Probed, ...] = ()
    errors: tuple[Errors, ...] = ()

    @property
    def exit_code(self) -> int:
        """Return 0 if the run could be probed, 1 if the original run does not pass."""
        return 1 if self.unequal or self.failing else 0

    @property
    def idle(self) -> list[str]:
        """Return the gates that caught no perturbation of any kind."""
        awake = {catch.by for kind in self.kinds for catch in kind.catches}
        return [gate for gate in self.gates if gate not in awake]


class Setup(NamedTuple):
    """Everything that a run is evaluated by except its traces. ``context`` has the baseline if there is one."""

    golds: Mapping[str, Gold]
    policy: Policy
    measures: Sequence[Measure]
    context: Context


def probe(setup: Setup, samples: Sequence[TraceSample], report: Report, doses: Sequence[str]) -> Probe:
    """Probe a run: its ``samples`` in the order of perturbation, and its report.

    ``doses`` are percentages, ascending.
    """
    repeated = rerun_unperturbed(setup, samples, report)
    whole = report if setup.context.earlier else repeated
    against = setup.context.earlier.path if setup.context.earlier else ""
    names = tuple(dict.fromkeys(gate.gate.written for gate in whole.gates if not gate.name.startswith("completeness.")))
    result = Probe(len(report.questions), against, tuple(doses), names, unequal(repeated), failing(whole, report))
    result = result._replace(errors=tuple(_errors(setup, whole, report)))
    if result.exit_code:
        return result
    if not setup.context.earlier:
        setup = setup._replace(context=setup.context._replace(earlier=itself(report)))
    return result._replace(kinds=tuple(_probed(kind, setup, samples, whole, doses) for kind in KINDS))


def _errors(setup: Setup, whole: Report, report: Report) -> Iterator[Errors]:
    """Yield the error rates of each regression gate on a mean, with the noise between the run and its baseline."""
    statistics = setup.policy.statistics
    now = evidence(report, setup.context.earlier or itself(report), cluster=statistics.cluster)
    count = sum(gate.comparison is not None and gate.comparison.adjusted is not None for gate in whole.gates)
    for gate in whole.gates:
        if gate.direction in MARGINS and gate.comparison is not None:
            rates = error_rates(gate.gate, gate.comparison.test, now, float(statistics.alpha), max(1, count))
            if rates:
                yield Errors(gate.gate.written, gate.comparison.test, *rates)


def itself(report: Report) -> Earlier:
    """Return a run as its own baseline."""
    return Earlier(report, report.questions, report.contracts, "", "", "")


def rerun_unperturbed(setup: Setup, samples: Sequence[TraceSample], original: Report) -> Report:
    """Return the A/A run: the same traces, scored again like perturbed ones, with the run's report as the baseline."""
    again = setup._replace(context=setup.context._replace(earlier=itself(original)))
    [(_, report)] = reports_by_rate(again, samples, [], original.completeness, ["0"])
    return report


def unequal(report: Report) -> tuple[str, ...]:
    """Return the regression gates that fail."""
    return tuple(gate.gate.written for gate in report.gates if gate.direction in MARGINS and gate.outcome == "failed")


def failing(*reports: Report) -> tuple[str, ...]:
    """Return the gates that fail the first of the reports, and the errors of all."""
    gates = [gate.gate.written for gate in reports[0].failed_gates]
    return tuple(dict.fromkeys([*gates, *(finding.code for report in reports for finding in report.errors)]))


def _probed(kind: Kind, setup: Setup, samples: Sequence[TraceSample], whole: Report, doses: Sequence[str]) -> Probed:
    rows = ((sample, kind.perturb(sample)) for sample in samples)
    perturbed = [(sample.case.trace, sample.again(row)) for sample, row in rows if row is not None]
    result = Probed(kind.name, kind.text, len(perturbed), any(old != new for old, new in perturbed), None, (), ())
    if not result.read:
        return result
    reports = list(reports_by_rate(setup, samples, [new for _, new in perturbed], whole.completeness, doses))
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
    doses: Sequence[str],
) -> Iterator[tuple[Rate, Report]]:
    """Yield the report of each rate. A higher rate contains the lower ones: each perturbed trace is scored once."""
    scorer, done = metric_scorer(setup.golds, setup.measures, setup.policy.settings), -1
    for sample in samples:
        scorer.add([sample.case.trace])
    for percent in doses:
        cases = cases_of(Fraction(percent), len(perturbed))
        if cases == done:
            continue  # with few cases, several rates are equal
        scorer.add(perturbed[max(done, 0) : cases])
        done, card = cases, scorer.close()
        counted = card.completeness._replace(duplicate=as_read.duplicate, unknown=as_read.unknown)
        yield (
            Rate(percent, cases),
            build_report(card._replace(completeness=counted), setup.golds, setup.policy, setup.context),
        )


def _broken(report: Report) -> dict[str, bool]:
    """Return failed gates and findings, and whether each fails the run. Metrics without a gate are left out."""
    failed: dict[str, bool] = {}
    for gate in report.gates:
        if gate.broken:
            failed[gate.gate.written] = failed.get(gate.gate.written, False) or gate.blocks
    for finding in report.findings:
        if finding.code == "ungated-regression":
            continue
        failed[finding.code] = failed.get(finding.code, False) or finding.level == "error"
    return failed


def _moves(whole: Report, perturbed: Report) -> list[Move]:
    """Return the metrics without a gate whose value changed, regressions first."""
    guarded, moves = {gate.name for gate in whole.gates}, []
    for name, result in whole.metrics.items():
        before, after = result.value, perturbed.metrics[name].value
        if name in guarded or before == after:
            continue
        is_worse = after is None
        if before is not None and after is not None:
            is_worse = after < before if measure(name).metric.better == "higher" else after > before
        moves.append(Move(name, before, after, is_worse))
    return sorted(moves, key=lambda move: not move.worse)
