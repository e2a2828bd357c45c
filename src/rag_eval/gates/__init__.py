"""Gates and policies: thresholds on metrics, regressions and completeness, the weighted score, and their results.

The fingerprint of a metric is the hash of what its values mean under a policy: only values of one fingerprint compare.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import asdict

from rag_eval.contract import DEFAULT_GOLD, DEFAULT_TRACE, Grounding, Judge, Relevance, Safety, Settings, Verdict
from rag_eval.errors import Finding
from rag_eval.metrics import Measure, Metric, measure
from rag_eval.scoring.reference import CEILINGS, DEFAULT_GATES, FLOORS
from rag_eval.stats.tally import Value, as_fraction

Outcome = Literal["passed", "failed", "inconclusive", "no_data"]
Severity = Literal["error", "warning"]
Origin = Literal["both", "base", "head"]
BOUNDS = ("min", "max")
MARGINS = ("max_drop", "max_rise")
"""Directions: bounds of a value, and margins of its regression against the baseline."""
OF_ANSWERS = ("answers", "refusals", "citations", "groundedness", "judge")
"""The metric groups of answers."""
_OF_GUARDRAILS = ("safety", "pipeline")
"""The metric groups of guardrails, which check answers too."""
TESTS = ("regression", "non_inferiority", "none")
"""What a margin may ask."""
_SIGNS = {"min": "≥", "max": "≤"}
COMPLETENESS = ("missing", "duplicate", "unknown")
FULL = "full"
"""The suite of all questions."""
QUALITY = {
    "accuracy": ("precision", "abstention_accuracy"),
    "faithfulness": ("claim_support",),
    "citation": ("citation_precision", "citation_recall", "section_accuracy"),
    "retrieval": ("recall@5", "mrr", "ndcg@10"),
}
"""Objectives and the metrics that they are the mean of; of all these metrics higher is better."""
SPENDING = {"cost": "cost_usd", "latency": "latency_total_ms"}
"""The key in eval-gates.yml of each objective that has a budget."""
WEIGHTS = {"accuracy": 0.30, "faithfulness": 0.20, "citation": 0.20, "retrieval": 0.15, "cost": 0.10, "latency": 0.05}

WHOLE_RUN_CHECKS = tuple(
    "refuses-everything answers-everything padded-answers constant-answers padded-citations padded-retrieval".split()
)
"""Checks of all cases together: a part of the questions may look degenerate by chance."""

_AS_JSON = json.JSONEncoder(sort_keys=True)
_ANSWER_TEXT = "without reasoning and end tokens"
"""The part of an answer that metrics read if they depend on refusals, as part of their fingerprints."""

_ERRORS = "hidden-answers ignored-reasoning copied-answers flags-everything partly-measured stale-traces other-gold"
_ERRORS += " stale-verdict missing-verdict changed-verdict ids-changed"
_WARNINGS = "answers-from-gold other-answer marked-refusals constant-measurements unchecked-answers vacuous-gold"
LEVELS: Mapping[str, str] = {
    **dict.fromkeys((*WHOLE_RUN_CHECKS, *_ERRORS.split()), "error"),
    **dict.fromkeys(_WARNINGS.split(), "warning"),
    "injected-instructions": "off",
}
"""The default severity of each finding; ``integrity`` in eval-gates.yml may set another."""


class Gate(Struct, frozen=True):
    """A threshold as it was written: ``direction`` is one of :data:`BOUNDS` or :data:`MARGINS`.

    ``slice`` is the part of the cases that is judged, empty for all. ``confidence`` is that of the interval for a
    bound, empty to judge the value itself. ``test`` is the kind of a margin: ``regression``, ``non_inferiority`` or
    ``none`` (see :mod:`rag_eval.gates.regression`), empty for the default of :class:`Statistics`. ``line`` is its line
    in eval-gates.yml.
    """

    name: str
    direction: str
    threshold: str
    severity: Severity = "error"
    when_no_data: Literal["fail", "skip"] = "fail"
    line: int = 0
    slice: str = ""
    confidence: str = ""
    test: str = ""

    def keeps(self, number: Fraction | float) -> bool:
        """Return whether a number is within the threshold, compared exactly."""
        limit = Fraction(Decimal(self.threshold))
        return as_fraction(number) >= limit if self.direction == "min" else as_fraction(number) <= limit

    def judged(self, outcome: Outcome, value: float | None, n: int, exact: str | None = None) -> GateResult:
        """Return the gate with its outcome."""
        return GateResult(**asdict(self), outcome=outcome, value=value, exact=exact, n=n)

    @property
    def label(self) -> str:
        """Return the gate's name as shown to people."""
        return f"{self.name} where {self.slice}" if self.slice else self.name

    @property
    def written(self) -> str:
        """Return the gate in words: ``precision ≥ 0.80``, ``mrr max_drop 0.02``."""
        return f"{self.label} {_SIGNS.get(self.direction, self.direction)} {self.threshold}"


class Comparison(NamedTuple):
    """A comparison with the baseline: the two values over the cases that both runs have, and its significance.

    ``regression`` is positive for the worse; ``low`` and ``high`` are its interval at the confidence 1 - alpha. ``p``
    is from the paired test, ``adjusted`` the same corrected for all tests of the run, ``alpha`` its level; None if no
    test was made. ``mde`` is the minimum detectable effect of this many cases, ``needed`` the number of cases that
    would show twice the margin; None if there is none. ``n`` counts questions or clusters if these are the units.
    ``test`` is the kind of the gate.
    """

    baseline: float | None
    value: float | None
    regression: float | None
    n: int
    p: float | None = None
    adjusted: float | None = None
    alpha: float | None = None
    mde: float | None = None
    needed: int | None = None
    low: float | None = None
    high: float | None = None
    test: str = "none"

    @property
    def result(self) -> str:
        """Return the result of a test: ``worse``, ``better``, ``not significant`` or ``no difference``."""
        if not self.regression:
            return "no difference"
        if self.adjusted is None or self.alpha is None or self.adjusted > self.alpha:
            return "not significant"
        return "worse" if self.regression > 0 else "better"

    @property
    def is_wide(self) -> bool:
        """Return whether the difference is significant, although its interval contains 0."""
        return self.result in ("worse", "better") and (self.low or 0) <= 0 <= (self.high or 0)

    def change(self, better: str) -> tuple[float, float | None, float | None]:
        """Return the change of the value and the ends of its interval: positive numbers are a rise.

        ``better`` is the better direction of the metric.
        """
        regression = self.regression or 0.0
        if better == "lower":
            return regression, self.low, self.high
        low, high = (None if end is None else 0.0 - end for end in (self.high, self.low))
        return 0.0 - regression, low, high


class GateResult(NamedTuple):
    """A gate with its outcome. ``exact`` is the value as a ratio if it is one.

    ``origin`` tells whose gate it is: the base branch's, the head's or both. ``low`` and ``high`` enclose the value
    with the gate's confidence, 0.95 by default. ``asks`` is the number of cases that a threshold on a rate requires if
    it is no share of n cases: 27 for 0.867 of 30. ``few`` is true if the slice has fewer cases than ``slices.min_n``:
    it is inconclusive then.
    """

    name: str
    direction: str
    threshold: str
    severity: Severity
    when_no_data: Literal["fail", "skip"]
    outcome: Outcome
    value: float | None
    exact: str | None
    n: int
    line: int = 0
    origin: Origin = "head"
    slice: str = ""
    confidence: str = ""
    test: str = ""
    inconclusive: Literal["warn", "fail", "pass"] = "warn"
    low: float | None = None
    high: float | None = None
    small: bool = False
    asks: int | None = None
    few: bool = False
    comparison: Comparison | None = None
    why: str = ""  # there is no data

    @property
    def gate(self) -> Gate:
        """Return the gate that was judged."""
        return Gate(*(getattr(self, field) for field in Gate.__struct_fields__))

    @property
    def label(self) -> str:
        """Return the gate's name as shown to people."""
        return self.gate.label

    def as_value(self) -> Value:
        """Return the value that was judged."""
        return Value(Fraction(self.exact) if self.exact is not None else self.value, self.n)

    @property
    def blocks(self) -> bool:
        """Return whether this outcome fails the run."""
        return self.broken and self.severity == "error" and not (self.unclear and self.inconclusive != "fail")

    @property
    def is_completeness(self) -> bool:
        """Return whether the gate is on completeness, whose value is a number of traces."""
        return self.name.startswith("completeness.")

    @property
    def unclear(self) -> bool:
        """Return whether there are too few cases to decide."""
        return self.outcome == "inconclusive"

    @property
    def broken(self) -> bool:
        """Return whether the gate failed, whatever its severity."""
        unclear = self.unclear and self.inconclusive != "pass"
        return self.outcome == "failed" or unclear or (self.outcome == "no_data" and self.when_no_data == "fail")


class MetricResult(NamedTuple):
    """A metric's value over ``n`` cases; ``value`` is None if it applies to none.

    ``exact`` is the value as a ratio of whole numbers if it is one; ``hits`` counts the ones of a 0/1 metric. ``low``
    and ``high`` enclose the system's true value with 95 % confidence, as far as they are known; ``small`` is true if
    there are too few cases for that.
    """

    value: float | None
    n: int
    exact: str | None
    hits: int | None
    better: str
    perspective: str
    low: float | None = None
    high: float | None = None
    small: bool = False

    def as_value(self) -> Value:
        """Return the value for gates."""
        return Value(Fraction(self.exact) if self.exact is not None else self.value, self.n, self.hits)


class Statistics(Struct, frozen=True):
    """Statistical settings: the level of paired tests, their correction, and the meaning of inconclusive.

    ``test`` is the default kind of margins. ``cluster`` names the gold field whose values group questions that depend
    on one another, empty if all questions are independent.
    """

    alpha: str = "0.05"
    correction: Literal["holm", "none"] = "holm"
    inconclusive: Literal["warn", "fail", "pass"] = "warn"
    test: Literal["regression", "non_inferiority", "none"] = "regression"
    cluster: str = ""


class Replay(Struct, frozen=True):
    """The verdicts of the judge by the hash of its input, and the questions with any verdict."""

    verdicts: Mapping[str, Verdict] = {}
    qids: frozenset[str] = frozenset()


class Calibration(Struct, frozen=True):
    """Requirements of a gate on the judge: the minimum agreement with people, and the agreement measured.

    ``floor`` and the values of ``measured`` are by statistic (``kappa``, ``auroc``). The measured ones are the lower
    ends of their intervals, by score, and count only for the judge with the hash ``judge``.
    """

    floor: Mapping[str, float] = {}
    judge: str = ""
    measured: Mapping[str, Mapping[str, float]] = {}

    def covers(self, score: str, judge: str) -> bool:
        """Return whether people agree enough with this judge on a score."""
        lows = self.measured.get(score, {}) if judge == self.judge and self.floor else {}
        return bool(lows) and all(lows.get(name, -1.0) >= limit for name, limit in self.floor.items())


class Slices(Struct, frozen=True):
    """The fields of slices. ``min_n``: a slice with fewer questions is inconclusive."""

    by: tuple[str, ...] = ()
    min_n: int = 10


class Scoring(Struct, frozen=True):
    """The settings of the weighted score.

    ``weights`` by objective, in any unit: an objective without a weight does not count. ``budgets`` are the mean cost
    (``cost_usd``, US dollars) and duration (``latency_total_ms``, milliseconds) of a question.
    """

    weights: Mapping[str, float] = field(default_factory=WEIGHTS.copy)
    budgets: Mapping[str, float] = {}


class Policy(Struct, frozen=True):
    """The policy in eval-gates.yml, or the defaults if there is no file (``file`` is then empty)."""

    file: str = ""
    gold: str = DEFAULT_GOLD
    trace: str = DEFAULT_TRACE
    k: int = Settings().k
    token: str = Settings().token
    phrases: tuple[str, ...] = ()
    builtin: bool = False
    gates: tuple[Gate, ...] = ()
    completeness: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(COMPLETENESS, 0))
    limits: Mapping[str, int] = {}
    groundedness: Grounding = Grounding()
    safety: Safety = Safety()
    retrieval: Relevance = Relevance()
    prices: Mapping[str, Mapping[str, float]] = {}
    integrity: Mapping[str, str] = {}
    slices: Slices = Slices()
    must_pass: tuple[str, ...] = ()
    baseline: str = ""
    baseline_trace: str = ""
    baseline_rerun: str = ""
    verdicts: str = ""
    judge: Judge = Judge()
    replay: Replay = Replay()  # the content of the verdict file, once it is read
    uncalibrated: tuple[str, ...] = ()  # metrics of the judge whose gates only warn
    statistics: Statistics = Statistics()
    score: Scoring = Scoring()
    stated: Mapping[str, Any] = {}  # the file's keys and values, to compare two files
    perspectives: tuple[str, ...] = ()  # from the command line: only these metric groups; empty for all
    suite: str = FULL  # and the part of the questions

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names; empty strings for those that it does not."""
        return self.gold, self.trace, self.verdicts, self.baseline, self.baseline_trace, self.baseline_rerun

    @property
    def settings(self) -> Settings:
        """Return the settings that scores depend on."""
        scoring_settings = self.groundedness, self.safety, self.prices, self.builtin, self.retrieval
        return Settings(self.token, self.phrases, self.k, *scoring_settings, self.judge, self.replay.verdicts)

    @property
    def selected_gates(self) -> tuple[Gate, ...]:
        """Return the gates in the requested metric groups: those that are to be judged."""
        if not self.perspectives:
            return self.gates
        return tuple(gate for gate in self.gates if measure(gate.name).metric.perspective in self.perspectives)

    @property
    def judges_search(self) -> bool:
        """Return whether gates, or without any the measured groups, are on retrieval, not on answers or guardrails."""
        metrics = [measure(gate.name).metric for gate in self.selected_gates]
        groups = {metric.perspective for metric in metrics}
        if not metrics:
            return self.perspectives == ("retrieval",)
        return "retrieval" in groups and groups.isdisjoint(_OF_GUARDRAILS) and not any(map(judges_answers, metrics))

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields used by slices, gates on slices and must_pass."""
        named = [self.statistics.cluster, *self.slices.by, *(gate.slice for gate in self.gates if gate.slice)]
        named += [name for name in self.must_pass if "=" in name]
        return tuple(dict.fromkeys(name.partition("=")[0] for name in named if name))


def judges_answers(metric: Metric) -> bool:
    """Return whether a metric says nothing about a search engine, which gives no answers."""
    return metric.perspective in OF_ANSWERS or metric.name in ("error_rate", "empty_rate")


def contract(measure: Measure, policy: Policy) -> str:
    """Return the metric fingerprint, a sha256: only values with the same fingerprint are comparable."""
    terms = {
        "metric": measure.metric.name,
        "version": measure.metric.version,
        "parameters": measure.parameters(),
        "refusal": [*refusal_settings(policy).values(), _ANSWER_TEXT] if "refusal" in measure.metric.settings else None,
        **{name: getattr(policy.settings, name) for name in measure.metric.settings if name != "refusal"},
    }
    if measure.metric.depends_on == "ranking" and policy.retrieval != Relevance():
        terms["retrieval"] = policy.retrieval
    return hashlib.sha256(_AS_JSON.encode(terms).encode()).hexdigest()


def refusal_settings(policy: Policy) -> dict[str, Any]:
    """Return the settings that recognise a refusal; the built-in patterns by their version, if they are on."""
    settings: dict[str, Any] = {"token": policy.token, "phrases": list(policy.phrases)}
    if not policy.builtin:
        return settings
    from rag_eval.textual.refusals import VERSION  # loads the patterns only for a policy that uses them

    return {**settings, "builtin": VERSION}


REFERENCE_GATES = (
    *(Gate(metric, "min", DEFAULT_GATES[name]) for name, metric in FLOORS.items()),
    *(Gate(metric, "max", DEFAULT_GATES[name]) for name, metric in CEILINGS.items()),
)
"""The reference scorer's defaults, in force without a gates file."""


def merge_gates(base: Sequence[GateResult], head: Sequence[GateResult]) -> list[GateResult]:
    """Merge the gates of both: the head's in their order, then those that only the base branch has."""
    same = {_terms(item) for item in base} & {_terms(item) for item in head}
    results = [item._replace(origin="both" if _terms(item) in same else "head") for item in head]
    return results + [item._replace(origin="base") for item in base if _terms(item) not in same]


def _terms(gate: GateResult) -> GateResult:
    return gate._replace(line=0, origin="both")


def verdict(judged: Sequence[GateResult], findings: Sequence[Finding] = ()) -> Literal["passed", "failed"]:
    """Return ``failed`` if a gate of severity error failed, or if a finding is an error."""
    wrong = any(item.blocks for item in judged) or any(finding.level == "error" for finding in findings)
    return "failed" if wrong else "passed"
