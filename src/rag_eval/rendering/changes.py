"""Changes: the baseline, cases that broke or were fixed, the parts of system and gold, slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_eval.cases.labels import GOOD, STAGE
from rag_eval.common.escaping import quantity, some
from rag_eval.rendering import phrases
from rag_eval.rendering.blocks import Paragraph, Table, more, paragraphs
from rag_eval.rendering.number_format import FEW, metric, metric_interval, moved, value
from rag_eval.rendering.phrases import PLAIN, TextFormatter, counted

if TYPE_CHECKING:
    from rag_eval.analysis.baseline import Compared, Flip
    from rag_eval.analysis.report import Report, SliceResult
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import MetricResult
    from rag_eval.rendering.blocks import Block

    Bounds = Mapping[tuple[str, str, float | None], GateResult]

_NAMED, _COMMIT = 5, 12
_BROKEN, _FIXED, _TEXT, _QID, _RUN, _SLICES, _COLUMNS = 10, 5, 60, 40, 24, 100, 8


def against(report: Report, formatter: TextFormatter = PLAIN) -> str:
    """Describe the baseline: its file, where it was read, its commit, and how many cases are comparable."""
    baseline = report.baseline
    if baseline is None:
        return ""
    details = [f"system commit {formatter.code(baseline.commit[:_COMMIT])}"] if baseline.commit else []
    if baseline.commits_ago is not None and baseline.days_ago is not None:  # the base has moved since it was written
        details.append(f"{quantity(baseline.commits_ago, 'commit')} and {quantity(baseline.days_ago, 'day')} old")
    details += ["traces scored again"] if baseline.rescored else []
    where = f" of {formatter.code(baseline.ref)}" if baseline.ref else ""
    what = f"{formatter.code(baseline.path)}{where}" + (f" ({', '.join(details)})" if details else "")
    text = f"Compared with {what}: {_shares(baseline)}."
    if baseline.new_runs:
        names = some([name or "(no name)" for name in baseline.new_runs], _NAMED, formatter.code)
        text += f" Runs that the baseline lacks, which are not compared: {names}."
    if baseline.incomparable:
        names = some(baseline.incomparable, _NAMED, formatter.code)
        text += f" Not comparable (not measured there, or defined differently): {names}."
    return text


def _shares(baseline: Compared) -> str:
    both = f"{quantity(baseline.cases, 'question')} in both with the same gold item"
    rest = [
        (baseline.unpaired, "of them without a run of the same name"),
        (baseline.changed, "with a changed gold item"),
        (baseline.gone, "removed"),
        (baseline.new, "new"),
    ]
    return ", ".join([both, *(f"{count} {what}" for count, what in rest if count)])


def broken(report: Report) -> list[Flip]:
    """Return the cases that passed in the baseline and fail now."""
    return [flip for flip in report.flips if flip.after not in GOOD]


def fixed(report: Report) -> list[Flip]:
    """Return the cases that failed in the baseline and pass now."""
    return [flip for flip in report.flips if flip.after in GOOD]


def flipped(report: Report) -> str:
    """Return ``Newly broken (3), newly fixed (1)``; empty without a baseline."""
    if report.baseline is None:
        return ""
    if report.baseline.cases == report.baseline.unpaired:
        return "No case to compare"
    if not report.flips:
        where = " in the runs that both have" if report.baseline.new_runs else ""
        return f"Nothing newly broken, nothing newly fixed{where}"
    return f"Newly broken ({len(broken(report))}), newly fixed ({len(fixed(report))})"


def changed(report: Report, formatter: TextFormatter, where: str = "report.json") -> list[Block]:
    """List the cases that flipped against the baseline, newly broken first; ``where`` is where to find all of them."""
    if report.baseline is None:
        return []
    head = f"{_headed(report, formatter)} {against(report, formatter)}"
    return [Paragraph(head), *_flips(report, formatter, where)]


def headed(report: Report, formatter: TextFormatter) -> list[Block]:
    """Count the cases that flipped and the cases that fail."""
    return [Paragraph(_headed(report, formatter))]


def _headed(report: Report, formatter: TextFormatter) -> str:
    failing = len(phrases.failing(report))
    count = f"{failing} of {phrases.cases(report)} {'fails' if failing == 1 else 'fail'}." if failing else ""
    return f"{formatter.strong(f'{flipped(report)}.')} {count}".rstrip()


def _flips(report: Report, formatter: TextFormatter, where: str) -> list[Block]:
    chosen = [*broken(report)[:_BROKEN], *fixed(report)[:_FIXED]]
    if not chosen:
        return []
    several = phrases.several(report)
    questions = {(question.qid, question.run): question for question in report.questions}
    rows = []
    for flip in chosen:
        run = [formatter.code(flip.run or "", _RUN)] if several else []
        before, after = (phrases.label(text, formatter) for text in (flip.before, flip.after))
        turn = f"{formatter.sign('passed' if flip.after in GOOD else 'failed')} {before} → {after}"
        question = questions.get((flip.qid, flip.run))
        text = formatter.text(question.question, _TEXT) if question else ""
        rows.append([formatter.code(flip.qid, _QID), *run, turn, STAGE.get(flip.after, ""), text])
    headers = ["Question", *(["Run"] if several else []), "Before → now", "Look at", "Text"]
    return [
        Table("Cases that flipped since the baseline", headers, rows),
        *more(len(report.flips) - len(chosen), where),
    ]


def effects(report: Report, formatter: TextFormatter) -> list[Block]:
    """Split the change of each gated metric into the system's part and the gold's part, if the gold contributed."""
    baseline, moves = report.baseline, [effect for effect in report.effects if effect.system or effect.gold]
    if baseline is None or not (
        baseline.changed or baseline.gone or baseline.new or any(effect.gold for effect in moves)
    ):
        return []
    rows = []
    for effect in moves:  # unknown if the traces of the baseline are missing
        parts = (effect.system, effect.gold)
        texts = ["unknown" if number is None else moved(number, effect.name) for number in parts]
        rows.append([formatter.named(effect.name, ""), *texts])
    headers = ["Change since the baseline", "Due to the system", "Due to the gold"]
    return [Table("Why metrics changed since the baseline", headers, rows)] if rows else []


def worst(report: Report, formatter: TextFormatter) -> list[Block]:
    """Describe the worst slice of each gated metric that is worse than the whole; small ones if there is no other."""
    if not report.slices:
        return []
    bounds, rows, any_few = bounds_of(report), [], False
    for name in gated(report):
        whole = report.metrics[name]
        measured = [(part, part.metrics[name]) for part in report.slices if name in part.metrics]
        regressions = [(part, result) for part, result in measured if _is_worse(result, whole)]
        if not regressions:
            continue
        enough = [pair for pair in regressions if min(pair[0].n, pair[1].n) >= report.min_n]  # questions and cases
        part, result = min(enough or regressions, key=by_value)
        shown = in_slice(bounds, part, name) + metric_interval(result, name)
        cases = formatter.figure(_few(counted(result, result.n), few=not enough))
        cells = [formatter.code(part.slice, _TEXT), formatter.figure(shown), cases, _as_gated(bounds, name, "", whole)]
        rows.append([formatter.named(name, ""), *cells])
        any_few = any_few or not enough
    if not rows:
        return [Paragraph(f"{formatter.strong('Slices.')} No slice is worse than all cases together.")]
    headers = ["Metric", "Worst slice", "Value", "Cases", "All cases"]
    return [Table("The worst slice of each gated metric", headers, rows), *_legend(report, any_few)]


def _is_worse(part: MetricResult, other: MetricResult) -> bool:
    if part.value is None or other.value is None:
        return False
    return part.value < other.value if other.better == "higher" else part.value > other.value


def by_value(pair: tuple[SliceResult, MetricResult]) -> tuple[float, int]:
    """Sort the worst first, of equal ones the larger."""
    value = pair[1].value or 0.0
    return (value if pair[1].better == "higher" else -value), -pair[1].n


def bounds_of(report: Report) -> Bounds:
    """Return the gates on values, by metric, slice and value: a search in thousands of slices would be slow."""
    bounds = (gate for gate in reversed(report.gates) if gate.comparison is None)
    return {(gate.name, gate.slice, gate.value): gate for gate in bounds}


def in_slice(bounds: Bounds, part: SliceResult, name: str) -> str:
    """Return a metric's value in a slice, as its gate shows it if it has one."""
    return _as_gated(bounds, name, part.slice, part.metrics[name])


def _as_gated(bounds: Bounds, name: str, part: str, result: MetricResult) -> str:
    gate = bounds.get((name, part, result.value))
    return value(gate) if gate is not None else metric(result, name)


def gated(report: Report) -> list[str]:
    """Return the gated metrics that have a value in some slice."""
    names = {gate.name for gate in report.gates}
    return [name for name in valued(report, report.slices) if name in names]


def valued(report: Report, parts: Sequence[SliceResult]) -> list[str]:
    """Return the metrics that have a value in some slice, in the order of the report."""
    names = {name for part in parts for name, result in part.metrics.items() if result.n}
    return [name for name in report.metrics if name in names]


def by_field(report: Report) -> dict[str, list[SliceResult]]:
    """Return the slices of each field, the largest first."""
    fields: dict[str, list[SliceResult]] = {}
    for part in report.slices:
        fields.setdefault(part.slice.partition("=")[0], []).append(part)
    return fields


def slices(report: Report, formatter: TextFormatter, limit: int = _SLICES) -> list[Block]:
    """List every slice with the value of each gated metric."""
    names, shown, bounds = gated(report), report.slices[:limit], bounds_of(report)
    rows = [
        [
            formatter.code(part.slice, _TEXT),
            _few(str(part.n), few=part.n < report.min_n),
            *(in_slice(bounds, part, name) if name in part.metrics else "" for name in names),
        ]
        for part in shown
    ]
    headers = ["Slice", "Cases", *(formatter.named(name, "") for name in names)]
    few = any(part.n < report.min_n for part in shown)
    return [
        Table("Gated metrics by slice", headers, rows),
        *more(len(report.slices) - limit, formatter.whole),
        *_legend(report, few),
    ]


def every(report: Report, formatter: TextFormatter) -> list[Block]:
    """Return a table for each field: every metric by its slices, the largest first."""
    blocks: list[Block] = []
    bounds = bounds_of(report)
    for field, parts in by_field(report).items():
        names, shown = valued(report, parts), parts[:_COLUMNS]
        rows = []
        for name in names:
            cells = [in_slice(bounds, part, name) if name in part.metrics else "" for part in shown]
            rows.append([formatter.named(name, ""), metric(report.metrics[name], name), *cells])
        title = f"Every metric by {formatter.trusted(field)}"
        blocks += [Table(title, ["Metric", "All cases", *(of_slice(report, part, formatter) for part in shown)], rows)]
        blocks += more(len(parts) - _COLUMNS, formatter.whole)
    return [*blocks, *_legend(report, any(part.n < report.min_n for part in report.slices))]


def of_slice(report: Report, part: SliceResult, formatter: TextFormatter) -> str:
    """Return the name of a slice with its number of cases."""
    return f"{formatter.code(part.slice, _QID)} {_few(f'{part.n:,}', few=part.n < report.min_n)}"


def _few(cases: str, *, few: bool) -> str:
    return f"{cases}{FEW}" if few else cases


def _legend(report: Report, few: bool) -> list[Block]:
    counted = "questions" if phrases.several(report) else "cases"
    return paragraphs(f"{FEW} fewer than {report.min_n} {counted}: too few to judge a slice." if few else "")
