"""Comparisons of runs, repeats of systems, and probes of a run with perturbed copies: as blocks, JSON and CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from rag_eval import __version__
from rag_eval.analysis.history import AllOfK, Repeats
from rag_eval.analysis.runs import Cell, Front, Row, SideBySide, Spread, Standing
from rag_eval.analysis.sensitivity import Move, Probe, Probed, Rate
from rag_eval.common.escaping import csv_text, json_text, quantity, some, spreadsheet
from rag_eval.gates import SPENDING
from rag_eval.rendering import write_page
from rag_eval.rendering.document import (
    WIDE,
    Paragraph,
    Section,
    Table,
    TextFormatter,
    bullets,
    format_interval,
    format_number,
    format_probability,
    format_range,
    format_signed,
    paragraphs,
    remarks,
    table_of,
)
from rag_eval.stats.tally import as_fraction

Name = Callable[[str], str]
FORMAT = 1
_FLAKY, _TEXT = 50, 60
_FLIPS, _REFUSED = 20, 10
_NAME, _QID, _NAMED = 40, 40, 10
_NONE = "–"
_MOVES, _IDLE, _GATE = 6, 20, 120
_COLUMNS = ("change", "interval", "p", "p (Holm)", "better", "worse", "same", "result")
_PERTURBATIONS = ["perturbation", "effect on the run", "cases", "stopped from", "by"]
_ERRORS = ["gate", "test", "n", "noise", "fails unchanged", "fails at 3/4 of the margin", "misses a drop"]
_CATCHES = ["gate or finding", "perturbation", "caught from", "effect"]
_ARROW = {"higher": "↑", "lower": "↓"}


def render(comparison: SideBySide, form: str) -> str:
    """Return the comparison as ``table``, ``markdown``, ``json`` or ``csv``, ending with a line feed."""
    if form == "json":
        return json_text({"format": FORMAT, "kind": "comparison", **comparison._asdict()})
    if form == "csv":
        columns = "difference difference_low difference_high p adjusted result wins losses ties".split()
        rows = []
        for row in comparison.metrics:
            for index, cell in enumerate(row.cells):
                run = spreadsheet(comparison.runs[index].name), "true" if index == comparison.base else "false"
                numbers = (cell.value, cell.n, cell.low, cell.high, *(cell.against or (None,) * len(columns)))
                rows.append([row.name, row.better, *run, *("" if number is None else number for number in numbers)])
        return csv_text(["metric", "better", "run", "base", "value", "n", "low", "high", *columns], rows)
    return write_page(form, lambda formatter: sections(comparison, formatter))


def render_repeats(systems: Sequence[Repeats], form: str) -> str:
    """Return the systems as ``table``, ``markdown``, ``json`` or ``csv``, ending with a line feed."""
    if form == "json":
        rows: list[Any] = [{**system._asdict(), "flaky": [item.qid for item in system.flaky]} for system in systems]
        return json_text({"format": FORMAT, "kind": "repeats", "version": __version__, "systems": rows})
    if form == "csv":
        rows = []
        for system in systems:
            for question in system.questions:
                texts = (spreadsheet(text) for text in (system.name, question.qid, question.question))
                rows.append([*texts, question.passes, len(question.labels), spreadsheet(" ".join(question.labels))])
        return csv_text(["system", "qid", "question", "passes", "tries", "labels"], rows)
    return write_page(form, lambda formatter: (part for item in systems for part in repeats_sections(item, formatter)))


def sections(comparison: SideBySide, formatter: TextFormatter) -> Iterator[Section]:
    """Yield runs, values, differences from the base, the weighted score, and the front."""
    names = [formatter.code(run.name, _NAME) for run in comparison.runs]
    tests = [cell.against for row in comparison.metrics for cell in row.cells if cell.against]
    significant = sum(item.result in ("better", "worse") for item in tests)
    counts = f"{significant} {'is' if significant == 1 else 'are'} significant at {comparison.alpha}"
    tested = f"Of {quantity(len(tests), 'paired test')}, {counts} after Holm's correction."
    head = f"The base is {names[comparison.base]}. {tested}"
    yield Section(f"{len(names)} runs over {quantity(comparison.cases, 'case')}", [Paragraph(head)])
    yield _runs(comparison, formatter)
    if refused := comparison.refused:
        lines = [f"{formatter.code(item.name, _NAME)}: {formatter.words(item.why, 300)}" for item in refused[:_REFUSED]]
        lines += [f"… and {len(refused) - _REFUSED} more; --format json has all."] if len(refused) > _REFUSED else []
        yield Section("Not compared", remarks(lines))
    yield _values(comparison, names, formatter)
    for index, run in enumerate(comparison.runs):
        if index != comparison.base:
            yield _differences(comparison, index, run, formatter)
    yield _score(comparison, names, formatter)
    if comparison.front:
        yield _front(comparison.front, names, formatter)


def _runs(comparison: SideBySide, formatter: TextFormatter) -> Section:
    """Return a table of the runs, with the columns that are not empty and not equal to the first one."""
    headers = ["run", "file", "cases", "other gold", "only in base", "only here", "passing", "missing", "errors"]
    rows = []
    for run in comparison.runs:
        cost, p50, p95 = _NONE, _NONE, _NONE
        if run.cost:
            cost = _spent(run.cost.mean, "cost", run.cost, comparison.cases)
        if run.latency:
            p50, p95 = (_spent(item, "latency", run.latency, comparison.cases) for item in run.latency[3:5])
        counts = map(str, (run.cases, run.changed, run.gone, run.new, run.passing, run.missing, run.errored))
        rows.append([formatter.code(run.name, _NAME), formatter.code(run.source, _NAME), *counts, cost, p50, p95])
    names, *others = zip([*headers, "cost, mean", "latency, p50", "latency, p95"], *rows, strict=True)
    columns = [names, *(column for column in others if {*column[1:]} - {"0", _NONE} and column[1:] != names[1:])]
    first, *shown = zip(*columns, strict=True)
    about = "Only cases in all runs with the same gold item are compared; passing, missing and errors count these."
    return Section("Runs", [Paragraph(about), Table("Runs", first, shown)])


def _spent(amount: float, kind: str, spread: Spread, cases: int) -> str:
    return format_number(amount, SPENDING[kind]) + ("" if spread.n == cases else f" (of {spread.n})")


def _values(comparison: SideBySide, names: Sequence[str], formatter: TextFormatter) -> Section:
    measured = [row for row in comparison.metrics if any(cell.n for cell in row.cells)]
    rows = []
    for row in measured:
        counts = {cell.n for cell in row.cells}
        cases = str(counts.pop()) if len(counts) == 1 else ""  # otherwise each value shows its own
        cells = (
            _value(cell, row.name) + ("" if cases or cell.value is None else f" of {cell.n}") for cell in row.cells
        )
        rows.append([_metric(row, formatter), *cells, cases])
    without = list(dict.fromkeys(row.name.partition(".")[0] for row in comparison.metrics if row not in measured))
    lines = ["Values with 95 % intervals, over the cases that the metric applies to."]
    lines += [f"Apply to no case: {some(without, _NAMED, formatter.code)}."] if without else []
    return Section("Values", [*remarks(lines), *table_of("Values", ["metric", *names, "cases"], rows)])


def _metric(row: Row, formatter: TextFormatter) -> str:
    return f"{formatter.code(row.name, _NAME)} {_ARROW[row.better]}"


def _value(cell: Cell | AllOfK, name: str = "") -> str:
    if cell.value is None:
        return _NONE
    ends = format_interval(cell.low, cell.high, as_fraction(cell.value), name=name)
    return f"{format_number(cell.value, name)}{ends}"


def _differences(comparison: SideBySide, index: int, run: Standing, formatter: TextFormatter) -> Section:
    rows, equal, wide = [], [], []
    for row in comparison.metrics:
        item = row.cells[index].against
        if item and (item.wins or item.losses or item.difference):
            ends = (None if end is None else format_signed(end, row.name) for end in (item.low, item.high))
            change = format_signed(item.difference, row.name), format_range(*ends)
            ps = (format_probability(p, comparison.alpha) for p in (item.p, item.adjusted))
            cases = map(str, (item.wins, item.losses, item.ties))
            rows.append([_metric(row, formatter), *change, *ps, *cases, item.result])
            if item.result in ("better", "worse") and (item.low or 0) <= 0 <= (item.high or 0):
                wide.append(row.name)
        elif item:
            equal.append(row.name)
    title = " against ".join(formatter.code(item.name, _NAME) for item in (run, comparison.runs[comparison.base]))
    blocks = paragraphs(f"Equal in every case: {some(equal, _NAMED, formatter.code)}." if equal else "")
    blocks += table_of(title, ["metric", *_COLUMNS], rows)
    blocks += paragraphs(f"Significant{WIDE}: {some(wide, _NAMED, formatter.code)}." if wide else "")
    if run.flips:
        cut = [f"The first {_FLIPS} are shown; --format json has all."] if len(run.flips) > _FLIPS else []
        flips = [
            [
                "fixed" if flip.is_fixed else "broken",
                formatter.code(flip.qid, _QID),
                *(formatter.words(label, _NAME) for label in (flip.before, flip.after)),  # untrusted in a report.json
            ]
            for flip in run.flips[:_FLIPS]
        ]
        table = Table("Cases that differ", ["", "question", "in the base", "here"], flips)
        broken = sum(not flip.is_fixed for flip in run.flips)
        counts = f"{broken} newly broken, {len(run.flips) - broken} newly fixed."
        blocks += [*remarks([counts, *cut]), table]
    return Section(title, blocks)


def _score(comparison: SideBySide, names: Sequence[str], formatter: TextFormatter) -> Section:
    score = comparison.score
    rows = [
        [
            objective.name,
            f"{objective.share:.3f}",
            ", ".join(formatter.code(name, _NAME) for name in objective.metrics),
            *(f"{value:.3f}" for value in objective.values),
        ]
        for objective in score.objectives
    ]
    if score.scores:
        rows.append(["weighted score", "1.000", "", *(f"{value:.3f}" for value in score.scores)])
    lines = [f"{item.name}: {formatter.words(item.why, 200)}." for item in score.dropped] if rows else []
    text = "Objectives without a value; the others share their weight:" if lines else ""
    head = paragraphs(text if rows else "No objective has a value in every run.")
    table = table_of("Weighted score", ["objective", "share", "mean of", *names], rows)
    return Section("Weighted score", [*head, *bullets(lines), *table])


def _front(front: Front, names: Sequence[str], formatter: TextFormatter) -> Section:
    rows = []
    for index, (point, beaten) in enumerate(zip(front.points, front.beaten_by, strict=True)):
        cells = [
            format_number(amount, SPENDING.get(name, "")) for name, amount in zip(front.dimensions, point, strict=True)
        ]
        standing = "on the front" if beaten is None else f"dominated by {names[beaten]}"
        rows.append([names[index], *cells, standing])
    about = f"Quality is the {front.quality}, cost the mean per question, latency the 95th percentile."
    left_out = [f"Left out: {item.name} ({formatter.words(item.why, 200)})." for item in front.left_out]
    table = Table("Pareto front", ["run", *front.dimensions, ""], rows)
    return Section("Pareto front", [Paragraph(about), *remarks(left_out), table])


def repeats_sections(repeats: Repeats, formatter: TextFormatter) -> Iterator[Section]:
    """Yield the share of repeats of a system that pass, and its flaky questions."""
    count, flaky = len(repeats.runs), repeats.flaky
    always, never = (sum(question.passes == of for question in repeats.questions) for of in (count, 0))
    counts = f"{always} pass in all {count} repeats, {len(flaky)} in some, {never} in none."
    rows = [[str(item.k), _value(item)] for item in repeats.at]
    questions = quantity(len(repeats.questions), "question")
    title = f"{formatter.code(repeats.name, _NAME)}: {questions}, {count} repeats each"
    at = table_of(title, ["k", "pass^k: all of k pass"], rows)
    yield Section(title, [Paragraph(counts), *at])
    if flaky:
        cut = f"The {_FLAKY} that are closest to passing half of the time are shown; --format json has all."
        rows = [
            [
                formatter.code(item.qid, _NAME),
                f"{item.passes} of {len(item.labels)}",
                formatter.words(", ".join(sorted(set(item.labels))), _TEXT),
                formatter.code(item.question, _TEXT),
            ]
            for item in flaky[:_FLAKY]
        ]
        table = Table("Flaky questions", ["question", "passes", "labels", "text"], rows)
        yield Section("Flaky questions", [*paragraphs(cut if len(flaky) > _FLAKY else ""), table])


def render_probe(probe: Probe, form: str) -> str:
    """Return the probe as ``table``, ``markdown`` or ``json``, ending with a line feed."""
    if form == "json":
        kinds = [{**kind._asdict(), "passes": kind.passes} for kind in probe.kinds]
        return json_text({**probe._asdict(), "kinds": kinds, "idle": probe.idle})
    return write_page(form, lambda formatter: _probe_sections(probe, partial(formatter.code, limit=_GATE)))


def _probe_sections(probe: Probe, name: Name) -> list[Section]:
    errors = _error_rates(probe, name)
    if probe.exit_code:
        reasons = []
        if probe.unequal:
            aa = "The A/A run failed: with the run as its own baseline, these regression gates fail"
            reasons.append(f"{aa}: {', '.join(map(name, probe.unequal))}.")
        if probe.failing:
            gates = ", ".join(map(name, probe.failing))
            reasons.append(f"The unchanged run does not pass: {gates}. Fix it first; rag-eval score shows the reasons.")
        return [Section("A failing run cannot be probed", paragraphs(*reasons)), *errors]
    against = f"the baseline {name(probe.against)}" if probe.against else "the unchanged run"
    passed = "The unchanged run passes, also with itself as the baseline (A/A)."
    rates = f"Perturbation rates in percent: {', '.join(probe.rates)}."
    head = paragraphs(_probe_headline(probe), f"{passed} Regression gates compare with {against}. {rates}")
    kinds = Table("Perturbations", _PERTURBATIONS, [_perturbation(kind, name) for kind in probe.kinds])
    catches = table_of("Catches", _CATCHES, _catches(probe, name)) or paragraphs("No gate caught any perturbation.")
    parts = [
        Section(f"Probe of {quantity(probe.cases, 'case')}", head),
        Section("Perturbations", [kinds]),
        Section("What the gates catch", catches),
        *errors,
    ]
    if unguarded := [f"{kind.kind}: {_moves(kind.unguarded, name)}" for kind in probe.kinds if kind.unguarded]:
        about = "At the highest rate, these metrics changed:"
        parts.append(Section("Metrics without a gate", [Paragraph(about), *bullets(unguarded)]))
    if probe.idle:
        idle = Paragraph(f"{some(probe.idle, _IDLE, name)}.")
        parts.append(Section("Gates that caught no perturbation", [idle]))
    return parts


def _error_rates(probe: Probe, name: Name) -> list[Section]:
    rows = [
        [
            name(error.gate),
            error.test,
            str(error.n),
            *(f"{rate:.1%}" for rate in (error.noise, error.unchanged, error.permitted)),
            f"{error.missed:.1%} at {error.drop:.3g}",
        ]
        for error in probe.errors
    ]
    about = "The noise is estimated from the run and its baseline."
    title = "Error rates of the regression gates"
    return [Section(title, [Paragraph(about), Table("Error rates", _ERRORS, rows)])] if rows else []


def _probe_headline(probe: Probe) -> str:
    tried = [kind for kind in probe.kinds if kind.cases and kind.read]
    passing = sum(kind.passes for kind in probe.kinds)
    if not tried:
        return "No perturbation applies to the cases."
    if passing:
        return f"No gate stops {passing} of {len(tried)} perturbations."
    last = max(tried, key=lambda kind: kind.stops.cases / kind.cases if kind.stops else 1.0)
    latest = f"{last.kind} last, from {_at(last.stops, last)} cases" if last.stops else ""
    return f"All {len(tried)} perturbations are stopped, {latest}."


def _perturbation(kind: Probed, name: Name) -> list[str]:
    at, by = "–", "no gate stops it"
    if not kind.cases or not kind.read:
        by = "no metric uses it" if kind.cases else "applies to no case"
    elif kind.stops is not None:
        at = _at(kind.stops, kind)
        by = some([catch.by for catch in kind.catches if catch.stops == kind.stops], 2, name)
    return [kind.kind, kind.text, str(kind.cases), at, by]


def _catches(probe: Probe, name: Name) -> list[list[str]]:
    """Return the catches, those of the gates first, by gate or finding."""
    catchers = dict.fromkeys([*probe.gates, *(catch.by for kind in probe.kinds for catch in kind.catches)])
    rows = []
    for by in catchers:
        for kind in probe.kinds:
            for catch in kind.catches:
                if catch.by == by:
                    effect = "warns only" if catch.stops is None else "fails the run"
                    if catch.stops not in (None, catch.seen):
                        effect += f" from {_at(catch.stops, kind)}"
                    rows.append([name(by), kind.kind, _at(catch.seen, kind), effect])
    return rows


def _moves(moves: Sequence[Move], name: Name) -> str:
    """Return the metrics that changed; of those with a cutoff or several values, the one that changed most."""

    def distance(move: Move) -> float:
        return 1.0 if move.before is None or move.after is None else abs(move.after - move.before)

    furthest: dict[str, Move] = {}
    for move in sorted(moves, key=distance, reverse=True):
        furthest.setdefault(re.split("[@.]", move.metric)[0], move)
    shown = [move for move in moves if move in furthest.values()][:_MOVES]
    texts = [
        f"{name(move.metric)} {format_number(move.before, move.metric)} → {format_number(move.after, move.metric)}"
        for move in shown
    ]
    more = f" and {len(moves) - len(shown)} more" if len(moves) > len(shown) else ""
    return ", ".join(texts) + more


def _at(at: Rate, kind: Probed) -> str:
    """Return a rate as a number of cases: one percent of ten cases is one case."""
    return f"{at.cases} of {kind.cases}"
