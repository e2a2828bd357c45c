"""The gates: their table with values, thresholds and outcomes, the reasons, and what tests could not have detected."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from rag_eval.analysis import Report
from rag_eval.common.escaping import quantity, some
from rag_eval.gates import MARGINS, GateResult, MetricResult
from rag_eval.gates.evidence import has_several_runs
from rag_eval.gates.regression import drop_to_detect, is_underpowered
from rag_eval.metrics import column_of, of_column
from rag_eval.rendering.document import (
    PLAIN,
    SMALL,
    SMALL_MEANING,
    WIDE,
    Block,
    Table,
    TextFormatter,
    bullets,
    decimals,
    format_interval,
    format_minimum,
    format_number,
    format_probability,
    format_range,
    format_signed,
    format_signed_bound,
    more,
    paragraphs,
    unit,
)
from rag_eval.stats.tally import as_fraction, round_for_display

_WHY = 120  # characters of the reason why a gate has no data
_TOKEN = re.compile("[a-z]+[0-9]*")
_ABBREVIATIONS = {
    "auc": "area under the receiver operating characteristic curve",
    "bpref": "binary preference",
    "chr": "citation hit rate",
    "map": "mean average precision",
    "mrr": "mean reciprocal rank",
    "ndcg": "normalised discounted cumulative gain",
    "p50": "50th percentile",
    "p95": "95th percentile",
    "tfidf": "term frequency and inverse document frequency",
    "tpr": "true positive rate",
}
OUTCOMES = {"passed": "passed", "failed": "failed", "inconclusive": "inconclusive", "no_data": "no data"}
ORIGINS = {"both": "both", "base": "base branch", "head": "this change"}
_ORDER = ("failed", "warning", "inconclusive", "no_data", "passed")
_MOST_ROWS, _MOST_SLICES, _MOST_NOTES, _NAMED = 200, 6, 12, 3


def gates(
    report: Report, formatter: TextFormatter, limit: int = _MOST_ROWS, *, only_broken: bool = False
) -> list[Block]:
    """Return the first gates that get a row, and a line for each that needs a note."""
    judged = [gate for gate in report.gates if gate.broken or not only_broken]
    rows = gates_with_row(judged)
    return [
        *([table(report, formatter, rows[:limit])] if rows else []),
        *more(len(rows) - limit, formatter.whole),
        *bullets(gate_notes(report, judged, formatter) if judged else []),
        *paragraphs("" if report.gates_file else DEFAULT_GATES),
    ]


DEFAULT_GATES = "There is no gates file, so the default gates apply."


def table(report: Report, formatter: TextFormatter, gates: Sequence[GateResult]) -> Table:
    """Return a table of gates, each with its outcome in the last cell."""
    two_sided, changes = has_two_sides(report), _deltas(report)
    rows = [
        [
            formatter.gate(gate),
            *([ORIGINS[gate.origin]] if two_sided else []),
            formatter.figure(format_estimate(gate)),
            formatter.figure(format_cases(report, gate)),
            formatter.figure(format_threshold(gate)),
            *([formatter.figure(changes.get((gate.name, gate.slice, gate.origin)) or "–")] if changes else []),
            _signed_outcome(gate, formatter),
        ]
        for gate in gates
    ]
    delta = ["Since baseline"] if changes else []
    headers = ["Gate", *(["Set by"] if two_sided else []), "Value", "Cases", "Threshold", *delta, "Outcome"]
    return Table("The gates with their outcomes", headers, rows)


def _signed_outcome(gate: GateResult, formatter: TextFormatter) -> str:
    sign, outcome = formatter.sign(outcome_style(gate)), format_outcome(gate)
    return outcome if sign in outcome else f"{sign}\u00a0{outcome}"  # a plain sign is a word of the outcome, or empty


def by_severity(gates: Iterable[GateResult]) -> list[GateResult]:
    """Return the gates that fail the run first, among these completeness: missing answers explain the others."""
    return sorted(gates, key=lambda gate: (not gate.blocks, not gate.is_completeness))


def outcome_style(gate: GateResult) -> str:
    """Return the style of an outcome; every outcome that fails the run has the style of a failure."""
    if gate.blocks:
        return "failed"
    return "warning" if gate.broken and not gate.unclear else gate.outcome


def format_outcome(gate: GateResult) -> str:
    """Return the outcome in words."""
    word = OUTCOMES[gate.outcome]
    if gate.unclear:
        return f"{word} (counts as failed)" if gate.blocks else word
    if gate.broken and not gate.blocks:
        return f"{word} (warning only)"
    if gate.outcome == "no_data":
        return f"{word} ({'counts as failed' if gate.broken else 'skipped'})"
    return word


def has_two_sides(report: Report) -> bool:
    """Return whether base and head have different gates, so that a gate's origin matters."""
    return report.base is not None and any(gate.origin == "base" for gate in report.gates)


def gates_with_row(gates: Sequence[GateResult]) -> list[GateResult]:
    """Return the gates that get a row: failed ones first, passed ones last, grouped by name; at most two hundred.

    A line counts passed completeness gates, and gates on slices if many have the same harmless outcome. If there are
    too many gates, those that fail the run stay, then those that warn; a line counts the rest.
    """
    return _rows(gates)[0]


def _rows(gates: Sequence[GateResult]) -> tuple[list[GateResult], list[GateResult], list[GateResult]]:
    """Return the gates that get a row, those that would get one if there were fewer, and those that a line counts.

    The last are the gates on slices that passed, and inconclusive ones that fail nothing, if they are many.
    """
    slices = [gate for gate in gates if gate.slice and not gate.blocks]
    same_outcome = ([gate for gate in slices if gate.outcome == outcome] for outcome in ("passed", "inconclusive"))
    summarized = [gate for group in same_outcome if len(group) > _MOST_SLICES for gate in group]
    without_row = {id(gate) for gate in summarized}
    rows = [gate for gate in gates if id(gate) not in without_row and (gate.broken or not gate.is_completeness)]
    order = {name: index for index, name in enumerate(dict.fromkeys(gate.name for gate in gates))}
    rows.sort(key=lambda gate: (_ORDER.index(outcome_style(gate)), not gate.is_completeness, order[gate.name]))
    return rows[:_MOST_ROWS], rows[_MOST_ROWS:], summarized


def gate_notes(report: Report, judged: Sequence[GateResult], formatter: TextFormatter = PLAIN) -> list[str]:
    """Return a line for each gate that needs one; gates with the same note share a line, and too many are counted."""
    gates, cut, summarized = _rows(judged)
    notes: dict[str, list[str]] = {}
    for gate in [*gates, *(gate for gate in summarized if gate.unclear)]:
        if text := "; ".join(_notes_of(report, gate, formatter)):
            notes.setdefault(text, []).append(formatter.gate(gate))
    lines = [f"{some(list(dict.fromkeys(names)), _NAMED)}: {text}." for text, names in notes.items()]
    if len(lines) > _MOST_NOTES:
        lines[_MOST_NOTES:] = [f"… and {len(lines) - _MOST_NOTES} more; {formatter.whole} has all."]
    detectable = [
        f"{formatter.gate(gate)} {format_minimum(gate.comparison.mde)}"
        for gate in gates
        if gate.comparison is not None and gate.comparison.mde is not None and not is_underpowered(gate)
    ]
    lines += [f"Minimum detectable effect: {some(detectable, _MOST_NOTES)}."] if detectable else []
    if cut:
        failed = sum(gate.blocks for gate in cut)
        lines.append(f"… and {len(cut):,} more gates, {failed:,} of them failed; report.json has all.")
    if counts := Counter[str](gate.outcome for gate in summarized):
        parts = [f"{counts[word]} {word}" for word in ("passed", "inconclusive") if counts[word]]
        lines.append(f"Gates on slices that are not shown: {', '.join(parts)}.")
    return [line for line in [_legend(gates), *lines, *_legend_of_intervals(report, gates, formatter)] if line]


def _notes_of(report: Report, gate: GateResult, formatter: TextFormatter) -> Iterator[str]:
    comparison = gate.comparison
    item = of_column(column_of(gate.name))
    verb = "write" if gate.origin == "head" else "first merge"  # the base branch's gate applies until then
    advice = f"; to allow that, {verb} {formatter.code('when_no_data: skip')}" if gate.broken else ""
    if gate.outcome == "no_data" and gate.why:
        is_bound = gate.direction not in MARGINS  # the reason of a margin says how to compare instead
        yield f"no data ({formatter.words(gate.why, _WHY)}){advice if is_bound else ''}"
    elif gate.outcome == "no_data" and gate.broken and item:
        why = f"needs {', '.join(item.needs)}" if item.needs else f"applies only to {item.applies}"
        yield f"no data, because it {formatter.trusted(why)}{advice}"
    if gate.unclear:
        yield f"inconclusive, {_inconclusive_reason(report, gate)}"
    if gate.outcome == "failed" and (p := _p_value(report, gate)):
        yield f"significant, {p}{WIDE if comparison and comparison.is_wide else ''}"
    if comparison is None:
        return
    if is_underpowered(gate):
        what, cases = _regression_word(gate), f"{comparison.n} {_unit_of_tests(report, comparison.n)}"
        text = f"{cases} cannot detect any {what}"
        if comparison.mde is not None:
            text = f"{cases} reliably detect a {what} of {format_minimum(comparison.mde)} or more"
        if comparison.needed:
            bounded = item is None or item.bounded
            drop = drop_to_detect(Decimal(gate.threshold), bounded=bounded)
            shown = f"{drop:.2f}" if bounded else format_number(drop, gate.name)
            text += f"; a {what} of {shown} needs {comparison.needed} {_unit_of_tests(report)}"
        yield text
    regression_untested = comparison.p is None if comparison.test == "regression" else comparison.high is None
    if comparison.test != "none" and comparison.regression is not None and not gate.few and regression_untested:
        reason = "its difference has no interval" if comparison.n else "there are no cases to compare"
        yield f"judged only by the margin, because {reason}"


def _legend(gates: Sequence[GateResult]) -> str:
    """Explain the brackets and the abbreviations in the rows of ``gates``."""
    levels = {gate.confidence or "0.95" for gate in gates if gate.low is not None or gate.high is not None}
    percent = " or ".join(f"{float(level) * 100:g}" for level in sorted(levels))
    used = dict.fromkeys(word for gate in gates for word in _TOKEN.findall(gate.name) if word in _ABBREVIATIONS)
    parts = [f"In brackets: {percent} % confidence intervals."] if levels else []
    return " ".join([*parts, *(f"{word}: {_ABBREVIATIONS[word]}." for word in used)])


def _legend_of_intervals(report: Report, gates: Sequence[GateResult], formatter: TextFormatter) -> Iterator[str]:
    """State what intervals and tests count, what a single run cannot show, and what the marks of intervals mean."""
    if report.statistics.cluster:
        field = formatter.code(report.statistics.cluster)
        yield f"Clusters: intervals and paired tests count the values of {field}, not single questions."
    elif has_several_runs(report.questions):
        yield "Several runs: intervals, paired tests and slices count each question once, not each of its repeats."
    elif any(report.metrics[gate.name].low is not None for gate in gates if gate.name in report.metrics):
        yield "One run: intervals and tests describe these answers. The system may answer differently next time."
    ends = [(item.low, item.high) for gate in gates for item in (gate, gate.comparison) if item is not None]
    if any((low is None) is not (high is None) for low, high in ends):
        yield "≥ or ≤ in brackets: only one end of the interval is known."
    if any(gate.small for gate in gates):
        yield SMALL_MEANING


def reason(report: Report, gate: GateResult, formatter: TextFormatter = PLAIN) -> str:
    """Return why a gate did not pass, in a few words, and whether the change under test lacks this gate."""
    foreign = gate.origin == "base" and report.base is not None
    if gate.is_completeness and gate.value is not None:
        what = f"{gate.name.split('.')[1]} trace{'s' if gate.value != 1 else ''}"
        return f"{gate.value:g} {what} ({'the base branch allows' if foreign else 'allowed'}: {gate.threshold})"
    return _reason(report, gate, formatter) + (" (a gate of the base branch)" if foreign else "")


def _reason(report: Report, gate: GateResult, formatter: TextFormatter) -> str:
    name, limit = formatter.gate(gate), f"{gate.threshold}{unit(gate.name)}"
    if gate.unclear:
        return f"{name} is inconclusive: {_inconclusive_reason(report, gate)}"
    if gate.value is None:
        return f"{name} has no data: {formatter.words(gate.why, _WHY)}" if gate.why else f"{name} applies to no case"
    if gate.comparison is not None:
        what, ends = _regression_word(gate), format_regression_interval(gate)
        confidence = f"{float(100 * (1 - Decimal(report.statistics.alpha))):g} %"
        terms = "; ".join([format_value(gate), *([f"{confidence} interval {ends}"] if ends else [])])
        if gate.comparison.test == "non_inferiority":
            return f"{name} does not rule out a {what} of more than {limit} ({terms})"
        return f"{name} {'fell' if what == 'drop' else 'rose'} by {_format_size(gate)} ({terms}; allowed: {limit})"
    shown = format_estimate(gate) if gate.confidence else format_value(gate)
    return f"{name} {shown} is {'below' if gate.direction == 'min' else 'above'} {limit}"


def _inconclusive_reason(report: Report, gate: GateResult) -> str:
    if gate.few:
        return f"the slice has fewer than {report.min_n} cases"
    if gate.comparison is not None:
        return f"not significant ({_p_value(report, gate)})"
    return f"its interval includes {gate.threshold}"


def _p_value(report: Report, gate: GateResult) -> str:
    """Return ``p = 0.12 after correction``; empty if no test was made."""
    if gate.comparison is None or gate.comparison.adjusted is None:
        return ""
    corrected = " after correction" if report.statistics.correction != "none" else ""
    text = format_probability(gate.comparison.adjusted, report.statistics.alpha)
    return f"p {'' if text.startswith('<') else '= '}{text.replace('<', '< ')}{corrected}"


def _unit_of_tests(report: Report, n: int = 2) -> str:
    """Return the unit of tests and intervals: cases, questions of several runs, or clusters."""
    several = has_several_runs(report.questions)
    word = "cluster" if report.statistics.cluster else "question" if several else "case"
    return word if n == 1 else f"{word}s"


def format_metric_value(report: Report, name: str) -> str:
    """Return a metric's value, as its gate shows it if it has one: two roundings would look like two values."""
    gate = next((gate for gate in report.gates if gate.name == name and _is_on_metric(report, gate)), None)
    return format_number(report.metrics[name].value, name) if gate is None else format_value(gate)


def _is_on_metric(report: Report, gate: GateResult) -> bool:
    """Return whether a gate uses the metric's value over all cases: the base may define the metric differently."""
    if gate.slice or gate.comparison is not None or gate.value is None:
        return False
    result = report.metrics.get(gate.name)
    return gate.origin != "base" or (result is not None and (result.value, result.n) == (gate.value, gate.n))


def format_cases(report: Report, gate: GateResult) -> str:
    """Return the number of cases behind a gate."""
    if gate.comparison is not None:
        return quantity(gate.n, "pair")
    result = report.metrics.get(gate.name)
    if gate.slice and gate.exact is not None and result is not None and result.hits is not None:
        return f"{round(Fraction(gate.exact) * gate.n)} of {gate.n}"
    return format_count(result if _is_on_metric(report, gate) else None, gate.n)


def format_count(result: MetricResult | None, n: int) -> str:
    """Return the number of cases: ``26 of 30`` for a 0/1 metric, otherwise their count."""
    return f"{result.hits} of {result.n}" if result is not None and result.hits is not None else str(n)


def format_value(gate: GateResult) -> str:
    """Return a gate's value; for a margin both values, ``0.900 → 0.867``."""
    if gate.comparison is not None:
        before, after = (format_number(item, gate.name) for item in (gate.comparison.baseline, gate.comparison.value))
        return f"{before} → {after}"
    if gate.value is None:
        return "–"
    if gate.is_completeness:
        return f"{gate.value:g}"
    exact, least = as_fraction(gate.as_value().number or 0.0), decimals(gate.value, gate.name)
    return f"{round_for_display(exact, gate.gate.keeps, least)}{unit(gate.name)}"


def format_estimate(gate: GateResult) -> str:
    """Return a gate's value with its interval, whose ends do not contradict the outcome either."""
    if gate.value is None or gate.comparison is not None:
        return format_value(gate)
    keeps = gate.gate.keeps if gate.confidence else bool
    ends = format_interval(gate.low, gate.high, as_fraction(gate.as_value().number or 0.0), keeps, gate.name)
    return f"{format_value(gate)}{ends}{SMALL if gate.small else ''}"


def format_change(gate: GateResult) -> str:
    """Return the change of a value against the baseline, ``−0.033 (−0.08 to 0.01)``; empty without a comparison."""
    if gate.comparison is None or (regression := gate.comparison.regression) is None:
        return ""
    up = (regression > 0) == (gate.direction == "max_rise")
    size_text = f"{'+' if up else '−'}{_format_size(gate)}" if regression else _format_size(gate)
    ends = format_regression_interval(gate, turned=gate.direction == "max_drop")
    return f"{size_text} ({ends})" if ends else size_text


def format_regression_interval(gate: GateResult, *, turned: bool = False) -> str:
    """Return the interval of a regression, ``−0.01 to 0.08``; ``turned`` shows it as a change of the value instead."""
    comparison = gate.comparison
    if comparison is None or (comparison.low is None and comparison.high is None):
        return ""
    sign = -1 if turned else 1

    def shown(end: float | None) -> str | None:
        if end is None:
            return None
        least = decimals(abs(end), gate.name) if unit(gate.name) or abs(end) > 1 else 3
        return format_signed_bound(as_fraction(sign * end), lambda number: gate.gate.keeps(sign * number), least)

    return format_range(*map(shown, (comparison.low, comparison.high)[::sign]))


def _format_size(gate: GateResult) -> str:
    """Return the size of a value's change against the baseline, without its sign."""
    regression = as_fraction((gate.comparison and gate.comparison.regression) or 0.0)
    least = decimals(float(abs(regression)), gate.name)

    def place(number: Fraction) -> tuple[bool, bool]:
        return gate.gate.keeps(number if regression > 0 else -number), bool(number)

    return round_for_display(abs(regression), place, least) + unit(gate.name)


def _deltas(report: Report) -> dict[tuple[str, str, str], str]:
    """Return the changes of the gates' values by metric, slice and origin, if there is a baseline; empty if unknown.

    A bound without a margin shows how the system changed the metric.
    """
    if report.baseline is None and not any(gate.comparison for gate in report.gates):
        return {}
    system = {
        effect.name: format_signed(effect.system, effect.name) for effect in report.effects if effect.system is not None
    }
    keys = [(gate.name, gate.slice, str(gate.origin)) for gate in report.gates]
    whole = {key: system.get(key[0], "") for key in keys if not key[1] and key[2] != "base"}
    return whole | {key: format_change(gate) for key, gate in zip(keys, report.gates, strict=True) if gate.comparison}


def format_threshold(gate: GateResult) -> str:
    """Return the bound as shown to people, with its meaning in cases if it is no share of them."""
    return f"{format_bound(gate)} (means {gate.asks} of {gate.n})" if gate.asks is not None else format_bound(gate)


def format_bound(gate: GateResult) -> str:
    """Return only the bound, the same for every run."""
    if gate.direction in MARGINS:
        return f"{_regression_word(gate)} ≤ {gate.threshold}{unit(gate.name)}"
    return f"{'≥' if gate.direction == 'min' else '≤'} {gate.threshold}{unit(gate.name)}"


def _regression_word(gate: GateResult) -> str:
    """Return the word for a regression of a margin's metric: drop or rise."""
    return "drop" if gate.direction == "max_drop" else "rise"
