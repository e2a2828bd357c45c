"""The results in a report: failing cases, flips since the baseline, conversations; metrics by group and by slice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from rag_eval.analysis import Report, SliceResult
from rag_eval.cases import GOOD, MEANING, STAGE
from rag_eval.common.escaping import quantity, some
from rag_eval.gates import GateResult, MetricResult
from rag_eval.gates.evidence import count_questions, has_several_runs
from rag_eval.gates.questions import Question
from rag_eval.metrics import PERSPECTIVES, column_of, measure
from rag_eval.rendering.document import (
    COMMIT,
    FEW,
    PLAIN,
    SMALL,
    SMALL_MEANING,
    Block,
    Paragraph,
    Table,
    TextFormatter,
    bullets,
    format_metric_interval,
    format_number,
    format_signed,
    more,
    paragraphs,
    unit,
)
from rag_eval.rendering.gates_table import format_count, format_metric_value, format_value
from rag_eval.scoring.aggregations import FOLDS

_FAILING, _CONVERSATIONS, _NAMED, _DIGITS = 10, 20, 5, 15
_QID, _RUN, _TEXT = 40, 24, 80


def count_cases(report: Report) -> str:
    """Return the number of cases: ``14 questions``, ``28 cases (14 questions, 2 runs)``."""
    n, runs = count_questions(report.questions), {question.run for question in report.questions}
    questions = quantity(n, "question")
    return questions if len(runs) <= 1 else f"{len(report.questions)} cases ({questions}, {len(runs)} runs)"


def by_urgency(report: Report, limit: int | None = None) -> list[Question]:
    """Return the first cases, failures first, each group in the order of the report."""
    return sorted(report.questions, key=lambda question: question.label in GOOD)[:limit]


def labels(questions: Iterable[Question]) -> list[str]:
    """Return the labels that some case has, in the order of their meanings."""
    return sorted({question.label for question in questions}, key=list(MEANING).index)


def signed_label(text: str, formatter: TextFormatter) -> str:
    """Return a label with a sign for right or wrong; an unknown label is untrusted input."""
    return f"{formatter.sign('passed' if text in GOOD else 'failed')} {_label(text, formatter)}"


def _label(text: str, formatter: TextFormatter) -> str:
    return text if text in MEANING or not text else formatter.code(text)


def failing(report: Report, formatter: TextFormatter, limit: int = _FAILING, *, brief: bool = False) -> list[Block]:
    """List the failing cases, newly broken ones first, then half as many newly fixed ones.

    If ``brief``, only count them.
    """
    n = len(report.questions.failing)
    fails = f"{n} of {count_cases(report)} {'fails' if n == 1 else 'fail'}." if n else ""
    counts = [text for text in (count_flips(report), fails) if text]
    if not counts:
        return []
    head = " ".join([formatter.strong(counts[0]), *counts[1:]])
    if brief:
        return [Paragraph(head)]
    was = {(flip.qid, flip.run): flip.before for flip in report.flips}
    wrong = sorted(report.questions.failing, key=lambda item: (item.qid, item.run) not in was)
    right = [item for item in report.questions if (item.qid, item.run) in was and item.label in GOOD]
    shown = [*wrong[:limit], *right[: limit // 2]]
    return [
        Paragraph(f"{head} {compared_with(report, formatter)}".rstrip()),
        *([_table(report, shown, formatter, was)] if shown else []),
        *more(len(wrong) + len(right) - len(shown), formatter.whole),
        *_meanings(labels(wrong[:limit]), formatter),
    ]


def questions(report: Report, formatter: TextFormatter, limit: int) -> list[Block]:
    """List the first cases, failing ones first, with the meanings of their labels."""
    cut = len(report.questions) - limit
    count = f"{quantity(cut, 'more question')} {'is' if cut == 1 else 'are'} not shown"
    left_out = f"{count}; failing ones come first. report.json has all." if cut > 0 else ""
    about = _meanings(labels(report.questions), formatter)
    return [_table(report, by_urgency(report, limit), formatter, {}), *paragraphs(left_out), *about]


def _meanings(names: Iterable[str], formatter: TextFormatter) -> list[Block]:
    return bullets([f"{formatter.code(label)}: {MEANING[label]}" for label in names])


def _table(
    report: Report, chosen: Iterable[Question], formatter: TextFormatter, was: Mapping[tuple[str, str | None], str]
) -> Table:
    """Return a table of cases; ``was`` has the label that a case had in the baseline, if it flipped."""
    several = has_several_runs(report.questions)
    rows = [
        [
            formatter.code(question.qid, _QID),
            *([formatter.code(question.run or "", _RUN)] if several else []),
            *([_label(was.get((question.qid, question.run), ""), formatter)] if was else []),
            question.label,
            STAGE.get(question.label, "–"),
            formatter.text(question.question, _TEXT),
        ]
        for question in chosen
    ]
    headers = ["Question", *(["Run"] if several else []), *(["Was"] if was else []), "Label", "Look at", "Text"]
    return Table("Cases", headers, rows)


def conversations(report: Report, formatter: TextFormatter) -> list[Block]:
    """Return a table of the conversations with a wrong turn, those with the most wrong ones first."""
    by_conversation: dict[tuple[str, str | None], list[Question]] = {}
    if report.statistics.cluster != "conversation":
        return []
    for question in report.questions:
        for part in question.slices:
            if part.startswith("conversation="):
                by_conversation.setdefault((part.partition("=")[2], question.run), []).append(question)
    rows = []
    for (name, _), turns in by_conversation.items():
        wrong = sorted((item for item in turns if item.label not in GOOD), key=_turn)
        if wrong:
            code, right, first = formatter.code(name, _QID), len(turns) - len(wrong), wrong[0]
            turn = f"{formatter.code(first.qid, _QID)} {first.label}"
            cells = [code, f"{right} of {len(turns)}", turn, formatter.text(first.question, _TEXT)]
            rows.append((right / len(turns), code, cells))
    if not rows:
        return []
    rows.sort(key=lambda row: row[:2])
    of = quantity(len(by_conversation), "conversation")
    about = f"{len(rows)} of {of} {'has' if len(rows) == 1 else 'have'} a wrong turn"
    headers = ["Conversation", "Right turns", "First wrong turn", "Text"]
    table = Table(about, headers, [cells for _, _, cells in rows[:_CONVERSATIONS]])
    return [Paragraph(formatter.strong(f"{about}.")), table, *more(len(rows) - _CONVERSATIONS, formatter.whole)]


def _turn(question: Question) -> tuple[int, int]:
    """Return the position of a question in its conversation: its turn, otherwise its line."""
    named = (part.partition("=")[2] for part in question.slices if part.startswith("turn="))
    turn = next(named, "")
    return int(turn) if turn.isdecimal() and len(turn) <= _DIGITS else 0, question.gold_line


def compared_with(report: Report, formatter: TextFormatter = PLAIN) -> str:
    """Describe the baseline: its file, where it was read, its commit, and how many cases are comparable."""
    baseline = report.baseline
    if baseline is None:
        return ""
    details = [f"system commit {formatter.code(baseline.commit[:COMMIT])}"] if baseline.commit else []
    commits, days = baseline.commits_ago, baseline.days_ago
    if commits is not None and days is not None and commits + days:  # the base has moved since it was written
        details.append(f"{quantity(commits, 'commit')} and {quantity(days, 'day')} old")
    details += ["traces scored again"] if baseline.rescored else []
    where = f" of {formatter.code(baseline.ref)}" if baseline.ref else ""
    what = f"{formatter.code(baseline.path)}{where}" + (f" ({', '.join(details)})" if details else "")
    rest = [
        (baseline.unpaired, "of them without a run of the same name"),
        (baseline.changed, "with a changed gold item"),
        (baseline.gone, "removed"),
        (baseline.new, "new"),
    ]
    shared = f"{quantity(baseline.cases, 'question')} in both with the same gold item"
    text = f"Compared with {what}: {', '.join([shared, *(f'{count} {text}' for count, text in rest if count)])}."
    if baseline.new_runs:
        names = some([name or "(no name)" for name in baseline.new_runs], _NAMED, formatter.code)
        text += f" Runs that the baseline lacks, which are not compared: {names}."
    if baseline.incomparable:
        names = some(baseline.incomparable, _NAMED, formatter.code)
        text += f" Not comparable (not measured there, or defined differently): {names}."
    return text


def count_flips(report: Report) -> str:
    """Return ``Newly broken (3), newly fixed (1).``; empty without a baseline."""
    baseline = report.baseline
    if baseline is None:
        return ""
    if baseline.cases + (baseline.changed if baseline.rescored else 0) == baseline.unpaired:
        return "No case to compare."
    if not report.flips:
        where = " in the runs that both have" if baseline.new_runs else ""
        return f"Nothing newly broken, nothing newly fixed{where}."
    n = sum(flip.is_fixed for flip in report.flips)
    return f"Newly broken ({len(report.flips) - n}), newly fixed ({n})."


def effects(report: Report, formatter: TextFormatter) -> list[Block]:
    """Split the change of each gated metric into the system's part and the gold's part, if the gold contributed."""
    baseline, changes = report.baseline, [effect for effect in report.effects if effect.system or effect.gold]
    if baseline is None or not changes:
        return []
    if not (baseline.changed or baseline.gone or baseline.new or any(effect.gold for effect in changes)):
        return []
    rows = []
    for effect in changes:  # unknown if the traces of the baseline are missing
        parts = (effect.system, effect.gold)
        texts = ["unknown" if number is None else format_signed(number, effect.name) for number in parts]
        rows.append([formatter.named(effect.name, ""), *texts])
    headers = ["Change since the baseline", "Due to the system", "Due to the gold"]
    return [Table("Why metrics changed since the baseline", headers, rows)]


Bounds = Mapping[tuple[str, str, float | None], GateResult]
_CUT = re.compile("@[0-9]+$")
_COLUMNS = 20
_SHADES = (0.05, 0.15, 0.3)
_MANY_FOLDS = 3
"""Values of one metric that are worth a table of their own."""
_SLICE, _SLICE_COLUMNS = 60, 8


class Group(Struct, frozen=True):
    """A metric group: what it measures, and tables of its plain values, values by cutoff, metrics with many values.

    Below the tables of the first group with a mark is its meaning.
    """

    title: str
    about: str
    tables: list[Block]


def by_group(report: Report, formatter: TextFormatter) -> list[Group]:
    """Return the metric groups with every metric that has a value."""
    groups: list[Group] = []
    legend: list[Block] = []
    for group in dict.fromkeys(result.perspective for result in report.metrics.values() if result.n):
        results = {name: item for name, item in report.metrics.items() if item.perspective == group and item.n}
        cut = [name for name in results if _CUT.search(name)]
        other = [name for name in results if not _CUT.search(name)]
        many = [name for name in other if len(measure(name).metric.folds) >= _MANY_FOLDS]
        rows = [
            [
                formatter.named(name, ""),
                formatter.figure(format_metric_value(report, name) + format_metric_interval(results[name], name)),
                formatter.figure(format_count(results[name], results[name].n)),
                "↑" if results[name].better == "higher" else "↓",
            ]
            for name in other
            if name not in many
        ]
        about = f"Metrics: {group.capitalize()}"
        tables: list[Block] = [
            *([Table(about, ["Metric", "Value", "Cases", "Better"], rows)] if rows else []),
            *_by_column(report, about, [(name, _CUT.sub("", name), _CUT.findall(name)[0]) for name in cut], formatter),
            *_by_column(report, about, [(name, column_of(name), name.rpartition(".")[2]) for name in many], formatter),
        ]
        if not legend:  # once, below the first table with the mark
            tables += (legend := _legend_of_small(rows))
        groups.append(Group(group.capitalize(), PERSPECTIVES.get(group, ""), tables))
    return groups


def _by_column(
    report: Report, about: str, parts: Sequence[tuple[str, str, str]], formatter: TextFormatter
) -> Iterator[Table]:
    """Yield a row for each metric, a column for each value; ``parts`` are a value's name, its metric and its column."""
    if not parts:
        return
    by_metric: dict[str, dict[str, str]] = {}  # the name of the value in each column
    for name, metric, column in parts:
        by_metric.setdefault(metric, {})[column] = name
    columns = list(dict.fromkeys(column for _, _, column in parts))
    cut = [f"… and {len(columns) - _COLUMNS:,} more"] if len(columns) > _COLUMNS else []
    columns = columns[:_COLUMNS]
    rows = []
    for metric, names in by_metric.items():
        first = report.metrics[next(iter(names.values()))]
        texts = {column: formatter.figure(format_metric_value(report, names[column])) for column in names}
        cells = [*(texts.get(column, "") for column in columns), *("" for _ in cut)]
        rows.append([formatter.named(metric, ""), *cells, str(first.n), "↑" if first.better == "higher" else "↓"])
    heads = [formatter.trusted(column[:1].upper() + column[1:]) for column in columns]
    yield Table(about, ["Metric", *heads, *cut, "Cases", "Better"], rows)


def without_cases(report: Report) -> str:
    """Count the metrics that apply to no case."""
    measured = {measure(name).metric.name for name in report.metrics}
    absent = measured - {measure(name).metric.name for name, result in report.metrics.items() if result.n}
    need = "it needs" if len(absent) == 1 else "they need"
    text = f"No data for {quantity(len(absent), 'metric')}; rag-eval metrics lists the fields that {need}."
    return text if absent else ""


def worst_slices(report: Report, formatter: TextFormatter) -> list[Block]:
    """Describe the worst slice of each gated metric that is worse than the whole; small ones if there is no other."""
    if not report.slices:
        return []
    bounds, rows, any_few = bounds_of(report), [], False
    gated = {gate.name for gate in report.gates}
    for name in [name for name in valued(report, report.slices) if name in gated]:
        whole, worse = report.metrics[name], list[tuple[float, int, SliceResult]]()
        sign = 1 if whole.better == "higher" else -1
        for part in report.slices:
            value, n = (part.metrics[name].value, part.metrics[name].n) if name in part.metrics else (None, 0)
            if value is not None and whole.value is not None and sign * value < sign * whole.value:
                worse.append((sign * value, -n, part))
        if not worse:
            continue
        enough = [row for row in worse if min(row[2].n, -row[1]) >= report.min_n]  # questions and cases
        *_, part = min(enough or worse, key=itemgetter(0, 1))  # of equal ones the larger
        result = part.metrics[name]
        cells = [
            formatter.named(name, ""),
            formatter.code(part.slice, _SLICE),
            formatter.figure(in_slice(bounds, part, name) + format_metric_interval(result, name)),
            formatter.figure(f"{format_count(result, result.n)}{'' if enough else FEW}"),
            _as_gated(bounds, name, "", whole),
        ]
        rows.append(cells)
        any_few = any_few or not enough
    if not rows:
        return [Paragraph(f"{formatter.strong('Slices.')} No slice is worse than all cases together.")]
    headers = ["Metric", "Worst slice", "Value", "Cases", "All cases"]
    table = Table("The worst slice of each gated metric", headers, rows)
    return [table, *_legend_of_small(rows), *legend_of_few(report, few=any_few)]


def bounds_of(report: Report) -> Bounds:
    """Return the gates on values, by metric, slice and value: a search in thousands of slices would be slow."""
    bounds = (gate for gate in reversed(report.gates) if gate.comparison is None)
    return {(gate.name, gate.slice, gate.value): gate for gate in bounds}


def in_slice(bounds: Bounds, part: SliceResult, name: str) -> str:
    """Return a metric's value in a slice, as its gate shows it if it has one; empty without a result."""
    return _as_gated(bounds, name, part.slice, part.metrics[name]) if name in part.metrics else ""


def _as_gated(bounds: Bounds, name: str, part: str, result: MetricResult) -> str:
    gate = bounds.get((name, part, result.value))
    return format_value(gate) if gate is not None else format_number(result.value, name)


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


def all_by_slice(report: Report, formatter: TextFormatter) -> list[Block]:
    """Return a table for each field: every metric by its slices, the largest first."""
    blocks: list[Block] = []
    for field, parts in by_field(report).items():
        about = f"Every metric by {formatter.trusted(field)}"
        blocks.append(table_of_slices(report, about, parts[:_SLICE_COLUMNS], formatter))
        blocks += more(len(parts) - _SLICE_COLUMNS, formatter.whole)
    return [*blocks, *legend_of_few(report, few=any(part.n < report.min_n for part in report.slices))]


def table_of_slices(report: Report, about: str, parts: Sequence[SliceResult], formatter: TextFormatter) -> Table:
    """Return every metric that has a value in some of the slices, with a column for each slice."""
    bounds = bounds_of(report)
    rows = [
        [
            formatter.named(name, ""),
            format_number(report.metrics[name].value, name),
            *(in_slice(bounds, part, name) for part in parts),
        ]
        for name in valued(report, parts)
    ]
    sizes = [f"{part.n:,}{FEW if part.n < report.min_n else ''}" for part in parts]
    names = [f"{formatter.code(part.slice, _QID)} {size}" for part, size in zip(parts, sizes, strict=True)]
    return Table(about, ["Metric", "All cases", *names], rows)


def shade(name: str, result: MetricResult | None, whole: MetricResult) -> str | None:
    """Return how much better or worse a slice is than all cases, ``better1`` to ``worse3``; amounts by their ratio.

    None for a small difference, and for a sum or a maximum: that of a slice is never larger than that of all cases.
    """
    if result is None or result.value is None or whole.value is None or not FOLDS[measure(name).fold].estimates:
        return None
    is_amount = unit(name) or max(abs(result.value), abs(whole.value)) > 1
    scale = (is_amount and abs(whole.value)) or 1.0
    change = (result.value - whole.value) / scale * (1 if result.better == "higher" else -1)
    steps = sum(abs(change) >= step for step in _SHADES)
    return f"{'better' if change > 0 else 'worse'}{steps}" if steps else None


def _legend_of_small(rows: Sequence[Sequence[str]]) -> list[Block]:
    return paragraphs(SMALL_MEANING if any(SMALL in cell for row in rows for cell in row) else "")


def legend_of_few(report: Report, *, few: bool) -> list[Block]:
    """Explain the mark of slices that have too few cases to be judged, if there are ``few`` in one."""
    unit = "questions" if has_several_runs(report.questions) else "cases"
    return paragraphs(f"{FEW} fewer than {report.min_n} {unit}: too few to judge a slice." if few else "")
