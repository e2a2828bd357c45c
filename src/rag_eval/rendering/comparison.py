"""Comparisons of runs and repeats of systems, as table, Markdown, JSON and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from string import ascii_letters
from typing import TYPE_CHECKING

from rag_eval import __version__
from rag_eval.cases.labels import GOOD
from rag_eval.common.escaping import csv_text, json_text, quantity, spreadsheet
from rag_eval.rendering import markdown_writer, number_format, phrases, terminal
from rag_eval.rendering.blocks import Figure, PageSection, Paragraph, Table, bullets, paragraphs, remarks, table_of
from rag_eval.rendering.number_format import between
from rag_eval.stats.tally import exactly

if TYPE_CHECKING:
    from rag_eval.analysis.baseline import Spread
    from rag_eval.analysis.repeats import RepeatedQuestion, Repeats, ShareEstimate
    from rag_eval.analysis.runs import BaseDifference, Cell, Row, SideBySide, Standing
    from rag_eval.gates.objectives import Front
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

FORMAT = 1
WIDTH, HEIGHT = 56, 12
SEVERAL = "*"
_FLAKY, _TEXT = 50, 60
_FLIPS, _REFUSED = 20, 10
_NAME, _QID = 40, 40
_NONE = "–"
_COLUMNS = ("difference", "interval", "p", "p corrected", "better", "worse", "same", "result")
_ARROW = {"higher": "↑", "lower": "↓"}


def sections(comparison: SideBySide, formatter: TextFormatter) -> Iterator[PageSection]:
    """Yield runs, values, differences from the base, the weighted score, and the front."""
    title = f"{len(comparison.runs)} runs over {quantity(comparison.cases, 'case')}"
    yield PageSection(title, [Paragraph(_headline(comparison, formatter))])
    yield _runs(comparison, formatter)
    if comparison.refused:
        refused = comparison.refused
        lines = [f"{formatter.code(item.name, _NAME)}: {formatter.words(item.why, 300)}" for item in refused[:_REFUSED]]
        cut = len(refused) - _REFUSED
        yield PageSection(
            "Not compared", remarks([*lines, *([f"… and {cut} more; --format json has all."] if cut > 0 else [])])
        )
    yield _values(comparison, formatter)
    for index, run in enumerate(comparison.runs):
        if index != comparison.base:
            section = _differences(comparison, index, formatter)
            yield PageSection(section.title, [*section.blocks, *_flips(run, formatter)])
    yield _score(comparison, formatter)
    if comparison.front:
        yield _front(comparison, comparison.front, formatter)


def differing(comparison: SideBySide, formatter: TextFormatter) -> Iterator[PageSection]:
    """Summarize significant differences from the base and the flipped questions, for the top of a page."""
    names = [formatter.code(run.name, _NAME) for run in comparison.runs]
    rows = [
        [names[index], _metric(row, formatter), *_with_baseline(comparison, row, item)]
        for index in range(len(comparison.runs))
        for row in comparison.metrics
        if (item := row.cells[index].against) and item.result in ("better", "worse")
    ]
    lines = [] if rows else ["No metric differs significantly from the base."]
    lines += [f"{name}: {_counted(run)}" for name, run in zip(names, comparison.runs, strict=True) if run.flips]
    table = table_of("What differs", ["run", "metric", *_COLUMNS], rows)
    yield PageSection("What differs", [*remarks(lines), *table])


def _counted(run: Standing) -> str:
    broken = sum(flip.after not in GOOD for flip in run.flips)
    return f"{broken} newly broken, {len(run.flips) - broken} newly fixed."


def _headline(comparison: SideBySide, formatter: TextFormatter) -> str:
    made = [cell.against for row in comparison.metrics for cell in row.cells if cell.against]
    differing = sum(item.result in ("better", "worse") for item in made)
    base = formatter.code(comparison.runs[comparison.base].name, _NAME)
    verb = "is" if differing == 1 else "are"
    return (
        f"The base is {base}. Of {quantity(len(made), 'paired test')}, {differing} {verb} significant at "
        f"{comparison.alpha} after Holm's correction."
    )


def _runs(comparison: SideBySide, formatter: TextFormatter) -> PageSection:
    headers = ["run", "file", "cases", "other gold", "only in base", "only here", "passing", "missing", "errors"]
    spent = ["cost, mean", "latency, p50", "latency, p95"]
    rows = [
        [
            formatter.code(run.name, _NAME),
            formatter.code(run.source, _NAME),
            *map(str, (run.cases, run.changed, run.gone, run.new, run.passing, run.missing, run.errored)),
            *_spent(run, comparison.cases),
        ]
        for run in comparison.runs
    ]
    columns = "Only cases in all runs with the same gold item are compared; passing, missing and errors count these."
    return PageSection("Runs", [Paragraph(columns), Table("Runs", *_telling([*headers, *spent], rows))])


def _telling(headers: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return the columns with information: those that are not empty, and not equal to another one."""
    columns = [(header, cells) for header, *cells in zip(headers, *rows, strict=True)]
    filled = [column for column in columns if column[0] == "run" or not set(column[1]) <= {"0", _NONE}]
    names = dict(filled)["run"]
    filled = [column for column in filled if column[0] != "file" or column[1] != names]
    return [header for header, _ in filled], [list(row) for row in zip(*(cells for _, cells in filled), strict=True)]


def _spent(run: Standing, cases: int) -> list[str]:
    cost = _partly(run.cost, f"{run.cost.mean:.4g} USD", cases) if run.cost else _NONE
    times = (
        [_partly(run.latency, f"{item:,.0f} ms", cases) for item in run.latency[3:5]] if run.latency else [_NONE] * 2
    )
    return [cost, *times]


def _partly(spread: Spread | None, text: str, cases: int) -> str:
    """Return a number with its number of cases, if some have none."""
    return text if spread and spread.n == cases else f"{text} (of {spread.n if spread else 0})"


def _values(comparison: SideBySide, formatter: TextFormatter) -> PageSection:
    measured = [row for row in comparison.metrics if any(cell.n for cell in row.cells)]
    rows = [
        [_metric(row, formatter), *(_value(cell, row.name, same=_same(row)) for cell in row.cells), _same(row)]
        for row in measured
    ]
    without = dict.fromkeys(row.name.partition(".")[0] for row in comparison.metrics if row not in measured)
    silent = ", ".join(formatter.code(name, _NAME) for name in without)
    lines = ["Values with 95 % intervals, over the cases that the metric applies to."]
    lines += [f"Apply to no case: {silent}."] if silent else []
    headers = ["metric", *(formatter.code(run.name, _NAME) for run in comparison.runs), "cases"]
    return PageSection("Values", [*remarks(lines), *table_of("Values", headers, rows)])


def _same(row: Row) -> str:
    """Return the number of cases if it is the same in every run; otherwise each value shows it."""
    counts = {cell.n for cell in row.cells}
    return str(counts.pop()) if len(counts) == 1 else ""


def _metric(row: Row, formatter: TextFormatter) -> str:
    return f"{formatter.code(row.name, _NAME)} {_ARROW[row.better]}"


def _value(cell: Cell, name: str, *, same: str) -> str:
    if cell.value is None:
        return _NONE
    ends = number_format.interval(cell.low, cell.high, exactly(cell.value), name=name)
    return f"{number_format.number(cell.value, name)}{ends}" + ("" if same else f" of {cell.n}")


def _differences(comparison: SideBySide, index: int, formatter: TextFormatter) -> PageSection:
    compared = [(row, against) for row in comparison.metrics if (against := row.cells[index].against)]
    moved = [(row, item) for row, item in compared if item.wins or item.losses or item.difference]
    unchanged = [
        formatter.code(row.name, _NAME) for row, item in compared if not (item.wins or item.losses or item.difference)
    ]
    rows = [[_metric(row, formatter), *_with_baseline(comparison, row, item)] for row, item in moved]
    names = (formatter.code(comparison.runs[which].name, _NAME) for which in (index, comparison.base))
    title = " against ".join(names)
    table = table_of(title, ["metric", *_COLUMNS], rows)
    return PageSection(
        title, [*paragraphs(f"Equal in every case: {', '.join(unchanged)}." if unchanged else ""), *table]
    )


def _with_baseline(comparison: SideBySide, row: Row, against: BaseDifference) -> list[str]:
    ends = between(*[None if end is None else _moved(end, row.name) for end in (against.low, against.high)])
    ps = [f"{against.p:.2g}", number_format.probability(against.adjusted, comparison.alpha)]
    return [
        _moved(against.difference, row.name),
        ends,
        *ps,
        *map(str, (against.wins, against.losses, against.ties)),
        against.result,
    ]


def _moved(difference: float, name: str) -> str:
    unit = number_format.unit(name)
    return f"{difference:+.{number_format.decimals(abs(difference), name) if unit else 3}f}{unit}"


def _flips(run: Standing, formatter: TextFormatter) -> list[Block]:
    if not run.flips:
        return []
    lines = [_counted(run)]
    if len(run.flips) > _FLIPS:
        lines.append(f"The first {_FLIPS} are shown; --format json has all.")
    rows = [
        [
            "broken" if flip.after not in GOOD else "fixed",
            formatter.code(flip.qid, _QID),
            *(formatter.words(label, _NAME) for label in (flip.before, flip.after)),  # untrusted in a report.json
        ]
        for flip in run.flips[:_FLIPS]
    ]
    return [*remarks(lines), Table("Cases that differ", ["", "question", "in the base", "here"], rows)]


def _score(comparison: SideBySide, formatter: TextFormatter) -> PageSection:
    score = comparison.score
    names = [formatter.code(run.name, _NAME) for run in comparison.runs]
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
    return PageSection("Weighted score", [*head, *bullets(lines), *table])


_UNIT = {"quality": "{:.3f}", "cost": "{:.4g} USD", "latency": "{:,.0f} ms"}


def _front(comparison: SideBySide, front: Front, formatter: TextFormatter) -> PageSection:
    names = [formatter.code(run.name, _NAME) for run in comparison.runs]
    standings = ["on the front" if beaten is None else f"dominated by {names[beaten]}" for beaten in front.beaten_by]
    rows = []
    for index, point in enumerate(front.points):
        cells = [_UNIT[name].format(number) for name, number in zip(front.dimensions, point, strict=True)]
        rows.append([mark(index), names[index], *cells, standings[index]])
    about = f"Quality is the {front.quality}, cost the mean per question, latency the 95th percentile."
    left_out = [f"Left out: {item.name} ({formatter.words(item.why, 200)})." for item in front.left_out]
    table = Table("Pareto front", ["", "run", *front.dimensions, ""], rows)
    plots = []  # quality over each of the other dimensions: up and to the left is better
    for axis, name in enumerate(front.dimensions[1:], 1):
        across = f"{name}, {_UNIT[name].split()[1]}"
        plots.append(Figure(scatter([(point[axis], point[0]) for point in front.points], across, "quality")))
    return PageSection("Pareto front", [Paragraph(about), *remarks(left_out), table, *plots])


def render(comparison: SideBySide, form: str) -> str:
    """Return the comparison as ``table``, ``markdown``, ``json`` or ``csv``, ending with a line feed."""
    if form == "json":
        return json_text({"format": FORMAT, "kind": "comparison", **comparison._asdict()})
    if form == "csv":
        return _csv(comparison)
    write, formatter = _writer(form)
    return write(sections(comparison, formatter))


def _writer(form: str) -> tuple[Callable[[Iterable[PageSection]], str], TextFormatter]:
    if form == "markdown":
        return markdown_writer.written, markdown_writer.FORMATTER
    return terminal.written, phrases.PLAIN


def _csv(comparison: SideBySide) -> str:
    """Return a row for each metric and run."""
    compared = ("difference", "difference_low", "difference_high", "p", "adjusted", "result", "wins", "losses", "ties")
    rows = []
    for row in comparison.metrics:
        for index, cell in enumerate(row.cells):
            whose = spreadsheet(comparison.runs[index].name), "true" if index == comparison.base else "false"
            numbers = (cell.value, cell.n, cell.low, cell.high, *(cell.against or (None,) * len(compared)))
            rows.append([row.name, row.better, *whose, *("" if number is None else number for number in numbers)])
    return csv_text(["metric", "better", "run", "base", "value", "n", "low", "high", *compared], rows)


def mark(index: int) -> str:
    """Return the letter of the point with this index; ``+`` beyond the alphabet."""
    return ascii_letters[26:][index] if index < 26 else ascii_letters[index - 26] if index < 52 else "+"


def scatter(points: Sequence[tuple[float, float]], across: str, up: str) -> str:
    """Return a plot of points (x, y), each by its letter; ``*`` for several in one place. The axes span the points."""
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    xs, ys = ([point[axis] for point in points] for axis in (0, 1))
    for index, (x, y) in enumerate(points):
        row, column = HEIGHT - 1 - _step(y, ys, HEIGHT), _step(x, xs, WIDTH)
        grid[row][column] = mark(index) if grid[row][column] == " " else SEVERAL
    ends = f"{min(xs):.4g}", f"{max(xs):.4g}"
    lines = [
        f"{up}, {min(ys):.3f} to {max(ys):.3f}",
        *(f"|{''.join(row)}".rstrip() for row in grid),
        "+" + "-" * WIDTH,
        f" {ends[0]}{ends[1]:>{WIDTH - len(ends[0])}}",
        f" {across:>{WIDTH}}",
    ]
    return "\n".join(lines)


def _step(value: float, values: Sequence[float], steps: int) -> int:
    """Return the step between minimum and maximum that a value falls on; the middle if all values are equal."""
    least, span = min(values), max(values) - min(values)
    return round((value - least) / span * (steps - 1)) if span else steps // 2


def render_repeats(systems: Sequence[Repeats], form: str) -> str:
    """Return the systems as ``table``, ``markdown``, ``json`` or ``csv``, ending with a line feed."""
    if form == "json":
        system_rows = [{**system._asdict(), "flaky": [question.qid for question in system.flaky]} for system in systems]
        value = {"format": FORMAT, "kind": "repeats", "version": __version__, "systems": system_rows}
        return json_text(value)
    if form == "csv":
        rows = []
        for system in systems:
            for question in system.questions:
                texts = (spreadsheet(text) for text in (system.name, question.qid, question.question))
                rows.append([*texts, question.passes, len(question.labels), spreadsheet(" ".join(question.labels))])
        return csv_text(["system", "qid", "question", "passes", "tries", "labels"], rows)
    write, formatter = _writer(form)
    return write(part for system in systems for part in repeats_sections(system, formatter))


def repeats_sections(repeats: Repeats, formatter: TextFormatter) -> Iterator[PageSection]:
    """Yield the share of repeats of a system that pass, and its flaky questions."""
    count, flaky = len(repeats.runs), repeats.flaky
    always, never = (sum(question.passes == of for question in repeats.questions) for of in (count, 0))
    counts = f"{always} pass in all {count} repeats, {len(flaky)} in some, {never} in none."
    rows = [[str(item.k), _estimate(item.every), _estimate(item.some)] for item in repeats.at]
    title = f"{formatter.code(repeats.name, _NAME)}: {len(repeats.questions)} questions, {count} repeats each"
    at = table_of(title, ["k", "pass^k: all of k pass", "pass@k: one of k passes"], rows)
    yield PageSection(title, [Paragraph(counts), *at])
    if flaky:
        cut = f"The {_FLAKY} that are closest to passing half of the time are shown; --format json has all."
        table = Table("Flaky questions", ["question", "passes", "labels", "text"], _flaky(flaky, formatter))
        yield PageSection("Flaky questions", [*paragraphs(cut if len(flaky) > _FLAKY else ""), table])


def _flaky(flaky: Sequence[RepeatedQuestion], formatter: TextFormatter) -> list[list[str]]:
    return [
        [
            formatter.code(item.qid, _NAME),
            f"{item.passes} of {len(item.labels)}",
            formatter.words(", ".join(sorted(set(item.labels))), _TEXT),
            formatter.code(item.question, _TEXT),
        ]
        for item in flaky[:_FLAKY]
    ]


def _estimate(estimate: ShareEstimate) -> str:
    return f"{estimate.value:.3f}{number_format.interval(estimate.low, estimate.high, exactly(estimate.value))}"
