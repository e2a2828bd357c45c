"""What changed, as Markdown: cases that broke and were mended, the parts of system and gold, slices."""

from __future__ import annotations

from rag_eval.labels import GOOD, MEANING, STAGE
from rag_eval.renderers import beside, words
from rag_eval.renderers.figures import FEW
from rag_eval.renderers.marks import VOICE, glued, name, table
from rag_eval.safe import markdown as safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_eval.baseline import Flip
    from rag_eval.report import Report, SliceResult
    from rag_eval.results import Question

    Questions = Mapping[tuple[str, str | None], Question]

_BROKEN, _FIXED, _TEXT, _QID, _RUN, _SLICES = 10, 5, 60, 40, 24, 100


def changed(report: Report, failing: int) -> str:
    """The cases that flipped against the baseline, newly broken first, and what it is."""
    if report.baseline is None:
        return ""
    parts = [f"{headed(report, failing)} {beside.against(report, VOICE)}", _flips(report)]
    return "\n\n".join(part for part in parts if part)


def headed(report: Report, failing: int) -> str:
    """How many cases flipped, and how many fail."""
    count = f"{failing} of {words.cases(report)} {'fails' if failing == 1 else 'fail'}." if failing else ""
    return f"**{beside.flipped(report)}.** {count}".rstrip()


def _flips(report: Report) -> str:
    broken, fixed = beside.broken(report), beside.fixed(report)
    chosen = [*broken[:_BROKEN], *fixed[:_FIXED]]
    if not chosen:
        return ""
    several, questions = len(words.runs_of(report)) > 1, beside.question_of(report)
    rows = (_flip(flip, questions, several=several) for flip in chosen)
    shown = table(["Question", *(["Run"] if several else []), "Before → now", "Look at", "Text"], rows)
    cut = len(report.flips) - len(chosen)
    return f"{shown}\n\n… and {cut} more; report.json has all." if cut else shown


def _flip(flip: Flip, questions: Questions, *, several: bool) -> list[str]:
    run = [safe(flip.run or "", _RUN)] if several else []
    question = questions.get((flip.qid, flip.run))
    text = safe(question.question, _TEXT) if question else ""
    return [safe(flip.qid, _QID), *run, _labels(flip), STAGE.get(flip.after, ""), text]


def _labels(flip: Flip) -> str:
    before, after = (text if text in MEANING else safe(text) for text in (flip.before, flip.after))
    return f"{'✅' if flip.after in GOOD else '❌'} {before} → {after}"


def effects(report: Report) -> str:
    """How much of a metric's movement is the system's and how much the gold's, where the gold changed."""
    rows = [[name(one.name), *beside.parts(one)] for one in beside.effects(report)]
    return table(["Moved since the baseline", "By the system", "By the gold"], rows) if rows else ""


def worst(report: Report) -> str:
    """The worst slice of each gated metric."""
    if not report.slices:
        return ""
    found = beside.worst(report)
    if not found:
        return "**Slices.** None is worse than the whole."
    rows = [
        [name(one.metric), safe(one.slice, _TEXT), glued(one.value), glued(_few(one.cases, few=one.few)), one.whole]
        for one in found
    ]
    shown = table(["Metric", "Worst slice", "Value", "Cases", "All cases"], rows)
    return f"{shown}\n\n{_legend(report)}" if any(one.few for one in found) else shown


def slices(report: Report) -> str:
    """Every slice with the value of each gated metric."""
    names = beside.gated(report)
    rows = [_slice(report, part, names) for part in report.slices[:_SLICES]]
    shown = table(["Slice", "Cases", *map(name, names)], rows)
    cut = len(report.slices) - _SLICES
    more = f"\n\n… and {cut} more; report.json has all." if cut > 0 else ""
    few = any(part.n < report.min_n for part in report.slices[:_SLICES])
    return f"{shown}{more}\n\n{_legend(report)}" if few else f"{shown}{more}"


def _slice(report: Report, part: SliceResult, names: list[str]) -> list[str]:
    values = (beside.in_slice(report, part, each) if each in part.metrics else "" for each in names)
    return [safe(part.slice, _TEXT), _few(str(part.n), few=part.n < report.min_n), *values]


def _few(cases: str, *, few: bool) -> str:
    return f"{cases}{FEW}" if few else cases


def _legend(report: Report) -> str:
    return f"{FEW} fewer than {report.min_n} cases: too few to judge a slice by."
