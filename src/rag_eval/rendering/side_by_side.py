"""What there is to say of runs side by side: sections that any voice can say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.cases.labels import GOOD
from rag_eval.rendering import number_format
from rag_eval.rendering.number_format import between
from rag_eval.rendering.scatter import mark, scatter
from rag_eval.rendering.section_writer import Section

if TYPE_CHECKING:
    from rag_eval.analysis.operations import Spread
    from rag_eval.analysis.runs import Against, Cell, Row, SideBySide, Standing
    from rag_eval.gates.objectives import Dropped, Front
    from rag_eval.rendering.section_writer import SectionFormatter

_FLIPS, _REFUSED = 20, 10
_NAME, _QID = 40, 40
_NONE = "–"
_JOINT = "–\u2060"  # no line breaks behind it
_ARROW = {"higher": "↑", "lower": "↓"}


def sections(found: SideBySide, formatter: SectionFormatter) -> Iterator[Section]:
    """Runs, values, what differs from the base and by how much, the weighted score, the front."""
    yield Section(f"{len(found.runs)} runs over {_cases(found.cases)}", [_headline(found, formatter)])
    yield _runs(found, formatter)
    if found.refused:
        yield Section("Not compared", list(_refused(found, formatter)))
    yield _values(found, formatter)
    for place, run in enumerate(found.runs):
        if place != found.base:
            yield _differences(found, place, formatter)
            yield from _flips(run, formatter)
    yield _score(found, formatter)
    if found.front:
        yield _front(found, found.front, formatter)


def _cases(number: int) -> str:
    return f"{number} case{'' if number == 1 else 's'}"


def _headline(found: SideBySide, formatter: SectionFormatter) -> str:
    made = [cell.against for row in found.metrics for cell in row.cells if cell.against]
    held = sum(one.result in ("better", "worse") for one in made)
    base = formatter.name(found.runs[found.base].name, _NAME)
    tests = f"{len(made)} paired test{'' if len(made) == 1 else 's'}"
    return f"Base is {base}. Of {tests}, {held} show a difference at {found.alpha} after Holm's correction."


def _runs(found: SideBySide, formatter: SectionFormatter) -> Section:
    headers = ["run", "file", "cases", "other gold", "only in base", "only here", "passing", "missing", "errors"]
    spent = ["cost, mean", "latency, p50", "latency, p95"]
    rows = [
        [
            formatter.name(run.name, _NAME),
            formatter.name(run.source, _NAME),
            *map(str, (run.cases, run.changed, run.gone, run.new, run.passing, run.missing, run.errored)),
            *_spent(run, found.cases),
        ]
        for run in found.runs
    ]
    said = (
        "Compared are the cases that all runs have under the same gold item; passing, missing and errors are of these."
    )
    return Section("Runs", [said], *_telling([*headers, *spent], rows))


def _telling(headers: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The columns that tell something: none that holds nothing in every row, or what another one holds already."""
    columns = [(header, cells) for header, *cells in zip(headers, *rows, strict=True)]
    kept = [column for column in columns if column[0] == "run" or not set(column[1]) <= {"0", _NONE}]
    names = dict(kept)["run"]
    kept = [column for column in kept if column[0] != "file" or column[1] != names]
    return [header for header, _ in kept], [list(row) for row in zip(*(cells for _, cells in kept), strict=True)]


def _spent(run: Standing, cases: int) -> list[str]:
    cost = _partly(run.cost, f"{run.cost.mean:.4g} USD", cases) if run.cost else _NONE
    times = [_partly(run.latency, f"{one:,.0f} ms", cases) for one in run.latency[3:5]] if run.latency else [_NONE] * 2
    return [cost, *times]


def _partly(found: Spread | None, text: str, cases: int) -> str:
    """A number with how many cases say it, where not all do."""
    return text if found and found.n == cases else f"{text} (of {found.n if found else 0})"


def _refused(found: SideBySide, formatter: SectionFormatter) -> Iterator[str]:
    for one in found.refused[:_REFUSED]:
        yield f"{formatter.name(one.name, _NAME)}: {formatter.sentence(one.why, 300)}"
    if len(found.refused) > _REFUSED:
        yield f"… and {len(found.refused) - _REFUSED} more; --format json has all."


def _values(found: SideBySide, formatter: SectionFormatter) -> Section:
    told = [row for row in found.metrics if any(cell.n for cell in row.cells)]
    rows = [
        [_metric(row, formatter), *(_value(cell, row.name, same=_same(row)) for cell in row.cells), _same(row)]
        for row in told
    ]
    without = dict.fromkeys(row.name.partition(".")[0] for row in found.metrics if row not in told)
    silent = ", ".join(formatter.name(name, _NAME) for name in without)
    lines = ["Each with its 95 % interval, over the cases that it applies to."]
    lines += [f"No case for: {silent}."] if silent else []
    return Section("Values", lines, ["metric", *(formatter.name(run.name, _NAME) for run in found.runs), "cases"], rows)


def _same(row: Row) -> str:
    """The number of cases, where it is the same in every run; else it stands with each value."""
    counts = {cell.n for cell in row.cells}
    return str(counts.pop()) if len(counts) == 1 else ""


def _metric(row: Row, formatter: SectionFormatter) -> str:
    return f"{formatter.name(row.name, _NAME)} {_ARROW[row.better]}"


def _value(cell: Cell, name: str, *, same: str) -> str:
    if cell.value is None:
        return _NONE
    least = 2 if not number_format.unit(name) else number_format.decimals(cell.value, name)
    ends = (_NONE if end is None else f"{end:.{least}f}" for end in (cell.low, cell.high))
    return f"{number_format.number(cell.value, name)} ({_JOINT.join(ends)})" + ("" if same else f" of {cell.n}")


def _differences(found: SideBySide, place: int, formatter: SectionFormatter) -> Section:
    beside = [(row, against) for row in found.metrics if (against := row.cells[place].against)]
    moved = [(row, one) for row, one in beside if one.wins or one.losses or one.difference]
    alike = [formatter.name(row.name, _NAME) for row, one in beside if not (one.wins or one.losses or one.difference)]
    rows = [[_metric(row, formatter), *_beside(found, row, one)] for row, one in moved]
    names = (formatter.name(found.runs[which].name, _NAME) for which in (place, found.base))
    headers = ["metric", "difference", "interval", "p", "p corrected", "better", "worse", "same", ""]
    lines = [f"The same in every case: {', '.join(alike)}."] if alike else []
    return Section(" against ".join(names), lines, headers, rows)


def _beside(found: SideBySide, row: Row, one: Against) -> list[str]:
    ends = between(*[None if end is None else _moved(end, row.name) for end in (one.low, one.high)])
    ps = [f"{one.p:.2g}", number_format.probability(one.adjusted, found.alpha)]
    return [_moved(one.difference, row.name), ends, *ps, *map(str, (one.wins, one.losses, one.ties)), one.result]


def _moved(difference: float, name: str) -> str:
    unit = number_format.unit(name)
    return f"{difference:+.{number_format.decimals(abs(difference), name) if unit else 3}f}{unit}"


def _flips(run: Standing, formatter: SectionFormatter) -> Iterator[Section]:
    if not run.flips:
        return
    broken = sum(flip.after not in GOOD for flip in run.flips)
    lines = [f"{broken} newly broken, {len(run.flips) - broken} newly fixed."]
    if len(run.flips) > _FLIPS:
        lines.append(f"The first {_FLIPS} are shown; --format json has all.")
    rows = [
        ["broken" if flip.after not in GOOD else "fixed", formatter.name(flip.qid, _QID), flip.before, flip.after]
        for flip in run.flips[:_FLIPS]
    ]
    yield Section(
        "", lines, ["", "question", "in the base", "here"], [[*row[:2], *_said(row[2:], formatter)] for row in rows]
    )


def _said(labels: Sequence[str], formatter: SectionFormatter) -> list[str]:
    """Labels of a report.json may be anybody's words."""
    return [formatter.sentence(label, _NAME) for label in labels]


def _score(found: SideBySide, formatter: SectionFormatter) -> Section:
    score = found.score
    names = [formatter.name(run.name, _NAME) for run in found.runs]
    rows = [
        [one.name, f"{one.share:.3f}", _made_of(one.metrics, formatter), *(f"{value:.3f}" for value in one.values)]
        for one in score.objectives
    ]
    if score.scores:
        rows.append(["weighted score", "1.000", "", *(f"{value:.3f}" for value in score.scores)])
    lines = _dropped(score.dropped, formatter) if rows else ["No objective has a value in every run."]
    return Section("Weighted score", lines, ["objective", "share", "mean of", *names], rows)


def _made_of(metrics: Sequence[str], formatter: SectionFormatter) -> str:
    return ", ".join(formatter.name(name, _NAME) for name in metrics)


def _dropped(dropped: Sequence[Dropped], formatter: SectionFormatter) -> list[str]:
    lines = [f"{one.name}: {formatter.sentence(one.why, 200)}." for one in dropped]
    return ["What is left out has its weight shared out among the rest.", *lines] if lines else []


_UNIT = {"quality": "{:.3f}", "cost": "{:.4g} USD", "latency": "{:,.0f} ms"}


def _front(found: SideBySide, front: Front, formatter: SectionFormatter) -> Section:
    names = [formatter.name(run.name, _NAME) for run in found.runs]
    standings = ["on the front" if beaten is None else f"beaten by {names[beaten]}" for beaten in front.beaten_by]
    rows = [
        [mark(place), names[place], *_point(point, front), standings[place]] for place, point in enumerate(front.points)
    ]
    lines = [f"Quality is the {front.quality}; cost is the mean, latency the 95th percentile of a question."]
    lines += [f"Left out: {one.name} ({formatter.sentence(one.why, 200)})." for one in front.left_out]
    return Section("Pareto front", lines, ["", "run", *front.dimensions, ""], rows, list(_plots(front)))


def _point(point: Sequence[float], front: Front) -> list[str]:
    return [_UNIT[name].format(number) for name, number in zip(front.dimensions, point, strict=True)]


def _plots(front: Front) -> Iterator[str]:
    """Quality over each of the other dimensions: the better is up and to the left."""
    for axis, name in enumerate(front.dimensions[1:], 1):
        unit = _UNIT[name].split()[1]
        yield scatter([(point[axis], point[0]) for point in front.points], f"{name}, {unit}", "quality")
