"""Changes: cases that broke or were fixed, the parts of system and gold, slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_eval.cases.labels import GOOD, STAGE
from rag_eval.rendering import baseline_view, phrases
from rag_eval.rendering.blocks import Paragraph, Table, more, paragraphs
from rag_eval.rendering.number_format import FEW, metric

if TYPE_CHECKING:
    from rag_eval.analysis.baseline import Flip
    from rag_eval.analysis.report import Report, SliceResult
    from rag_eval.gates.results import Question
    from rag_eval.rendering.blocks import Block
    from rag_eval.rendering.phrases import TextFormatter

    Questions = Mapping[tuple[str, str | None], Question]

_BROKEN, _FIXED, _TEXT, _QID, _RUN, _SLICES, _COLUMNS = 10, 5, 60, 40, 24, 100, 8


def changed(report: Report, formatter: TextFormatter, where: str = "report.json") -> list[Block]:
    """List the cases that flipped against the baseline, newly broken first; ``where`` is where to find all of them."""
    if report.baseline is None:
        return []
    head = f"{_headed(report, formatter)} {baseline_view.against(report, formatter)}"
    return [Paragraph(head), *_flips(report, formatter, where)]


def headed(report: Report, formatter: TextFormatter) -> list[Block]:
    """Count the cases that flipped and the cases that fail."""
    return [Paragraph(_headed(report, formatter))]


def _headed(report: Report, formatter: TextFormatter) -> str:
    failing = len(phrases.failing(report))
    count = f"{failing} of {phrases.cases(report)} {'fails' if failing == 1 else 'fail'}." if failing else ""
    return f"{formatter.strong(f'{baseline_view.flipped(report)}.')} {count}".rstrip()


def _flips(report: Report, formatter: TextFormatter, where: str) -> list[Block]:
    broken, fixed = baseline_view.broken(report), baseline_view.fixed(report)
    chosen = [*broken[:_BROKEN], *fixed[:_FIXED]]
    if not chosen:
        return []
    several, questions = phrases.several(report), baseline_view.question_of(report)
    rows = [_flip(flip, questions, formatter, several=several) for flip in chosen]
    headers = ["Question", *(["Run"] if several else []), "Before → now", "Look at", "Text"]
    return [
        Table("Cases that flipped since the baseline", headers, rows),
        *more(len(report.flips) - len(chosen), where),
    ]


def _flip(flip: Flip, questions: Questions, formatter: TextFormatter, *, several: bool) -> list[str]:
    run = [formatter.code(flip.run or "", _RUN)] if several else []
    question = questions.get((flip.qid, flip.run))
    text = formatter.text(question.question, _TEXT) if question else ""
    return [formatter.code(flip.qid, _QID), *run, _labels(flip, formatter), STAGE.get(flip.after, ""), text]


def _labels(flip: Flip, formatter: TextFormatter) -> str:
    before, after = (phrases.label(text, formatter) for text in (flip.before, flip.after))
    return f"{formatter.sign('passed' if flip.after in GOOD else 'failed')} {before} → {after}"


def effects(report: Report, formatter: TextFormatter) -> list[Block]:
    """Split each metric's change into the system's part and the gold's part, if the gold changed."""
    rows = [
        [formatter.named(effect.name, ""), *baseline_view.parts(effect)] for effect in baseline_view.effects(report)
    ]
    headers = ["Change since the baseline", "Due to the system", "Due to the gold"]
    return [Table("Why metrics changed since the baseline", headers, rows)] if rows else []


def worst(report: Report, formatter: TextFormatter) -> list[Block]:
    """Describe the worst slice of each gated metric."""
    if not report.slices:
        return []
    lines = baseline_view.worst(report)
    if not lines:
        return [Paragraph(f"{formatter.strong('Slices.')} No slice is worse than all cases together.")]
    rows = [_worst(line, formatter) for line in lines]
    headers = ["Metric", "Worst slice", "Value", "Cases", "All cases"]
    return [
        Table("The worst slice of each gated metric", headers, rows),
        *_legend(report, any(line.few for line in lines)),
    ]


def _worst(item: baseline_view.Worst, formatter: TextFormatter) -> list[str]:
    cases = formatter.figure(_few(item.cases, few=item.few))
    return [
        formatter.named(item.metric, ""),
        formatter.code(item.slice, _TEXT),
        formatter.figure(item.value),
        cases,
        item.whole,
    ]


def slices(report: Report, formatter: TextFormatter, limit: int = _SLICES) -> list[Block]:
    """List every slice with the value of each gated metric."""
    names, shown = baseline_view.gated(report), report.slices[:limit]
    bounds = baseline_view.bounds_of(report)
    rows = [[*_part(report, part, formatter), *_values(bounds, part, names)] for part in shown]
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
    bounds = baseline_view.bounds_of(report)
    for field, parts in baseline_view.by_field(report).items():
        names, shown = baseline_view.valued(report, parts), parts[:_COLUMNS]
        rows = [
            [formatter.named(name, ""), metric(report.metrics[name], name), *_of_metric(bounds, shown, name)]
            for name in names
        ]
        title = f"Every metric by {formatter.trusted(field)}"
        blocks += [Table(title, ["Metric", "All cases", *(of_slice(report, part, formatter) for part in shown)], rows)]
        blocks += more(len(parts) - _COLUMNS, formatter.whole)
    return [*blocks, *_legend(report, any(part.n < report.min_n for part in report.slices))]


def of_slice(report: Report, part: SliceResult, formatter: TextFormatter) -> str:
    """Return the name of a slice with its number of cases."""
    return f"{formatter.code(part.slice, _QID)} {_few(f'{part.n:,}', few=part.n < report.min_n)}"


def _of_metric(bounds: baseline_view.Bounds, parts: Sequence[SliceResult], name: str) -> list[str]:
    return [baseline_view.in_slice(bounds, part, name) if name in part.metrics else "" for part in parts]


def _part(report: Report, part: SliceResult, formatter: TextFormatter) -> list[str]:
    return [formatter.code(part.slice, _TEXT), _few(str(part.n), few=part.n < report.min_n)]


def _values(bounds: baseline_view.Bounds, part: SliceResult, names: list[str]) -> list[str]:
    return [baseline_view.in_slice(bounds, part, name) if name in part.metrics else "" for name in names]


def _few(cases: str, *, few: bool) -> str:
    return f"{cases}{FEW}" if few else cases


def _legend(report: Report, few: bool) -> list[Block]:
    counted = "questions" if phrases.several(report) else "cases"
    return paragraphs(f"{FEW} fewer than {report.min_n} {counted}: too few to judge a slice." if few else "")
