"""A run beside an earlier one: what broke, what was mended, what the gold did and what the system did."""

from __future__ import annotations

from typing import NamedTuple

from rag_eval.evidence import Baseline, Evidence, paired
from rag_eval.finding import Finding
from rag_eval.labels import GOOD
from rag_eval.metrics import measure
from rag_eval.regression import comparison

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_eval.results import Question

_NAMED = 5


class Compared(NamedTuple):
    """What the run was compared with.

    ``ref`` says where the file was read, ``commit`` what its run.json names as the system's commit. ``cases`` are in
    both under the same gold; ``changed`` in both under another gold item, ``gone`` and ``new`` in one alone. Metrics of
    ``incomparable`` were measured under another contract. ``rescored`` says that the baseline's traces were scored
    again under the gold in use.
    """

    path: str
    sha256: str
    ref: str
    commit: str
    cases: int
    changed: int
    gone: int
    new: int
    incomparable: tuple[str, ...]
    rescored: bool


class Flip(NamedTuple):
    """A case that passes on one side alone, with its labels; ``gold`` says that the gold item alone did it."""

    qid: str
    run: str | None
    before: str
    after: str


class Effect(NamedTuple):
    """How a metric moved, in parts: by the change of the system, and by the change of the gold."""

    name: str
    system: float | None
    gold: float | None


def flips(before: Iterable[Question], after: Sequence[Question]) -> list[Flip]:
    """The cases of both that pass on one side alone, newly broken ones first."""
    pairs = ((old, new) for old, new in paired(before, after) if (old.label in GOOD) != (new.label in GOOD))
    found = [Flip(new.qid, new.run, old.label, new.label) for old, new in pairs]
    return sorted(found, key=lambda flip: (flip.after in GOOD, flip.qid, flip.run or ""))


def effects(
    names: Iterable[str], recorded: Sequence[Question], rescored: Sequence[Question], now: Evidence
) -> list[Effect]:
    """The movement of metrics in its two parts.

    The system's: from the baseline's traces to the run's, under the same gold. The gold's: from the baseline as it was
    recorded to the same traces under the gold in use; None where those were not at hand.
    """
    return [Effect(name, _moved(now, name), _by_gold(name, recorded, rescored)) for name in names]


def _moved(now: Evidence, name: str) -> float | None:
    found = comparison(name, now.pairs(name)) if now.comparable(name) else None
    return _signed(name, found.worsening) if found and found.worsening is not None else None


def _by_gold(name: str, recorded: Sequence[Question], rescored: Sequence[Question]) -> float | None:
    if recorded is rescored:
        return None
    old, new = ([case.scores[name] for case in side if name in case.scores] for side in (recorded, rescored))
    return round(sum(new) / len(new) - sum(old) / len(old), 12) + 0.0 if old and new else None


def _signed(name: str, worsening: float) -> float:
    return (-worsening if measure(name).metric.better == "higher" else worsening) + 0.0


def must_pass(names: Sequence[str], before: Baseline | None, after: Sequence[Question]) -> Iterator[Finding]:
    """The cases that must pass, did in the baseline and do not; by qid, or by slice such as ``tags=critical``."""
    if not names:
        return
    if before is None:
        message = "must_pass is not judged: there is no baseline that says what passed"
        yield Finding("must-pass-unjudged", "warning", message, "Name one: baseline: {report: FILE}.")
        return
    now: dict[str, list[Question]] = {}
    for case in after:
        now.setdefault(case.qid, []).append(case)
    for case in sorted(before.questions, key=lambda case: case.qid):
        asked = next((name for name in names if name == case.qid or name in case.slices), None)
        if asked and case.label in GOOD:
            yield from _passes(case, now.get(case.qid, []), asked)


def _passes(old: Question, now: Sequence[Question], asked: str) -> Iterator[Finding]:
    if not now:
        message = f"{old.qid} passed in the baseline, has to pass ({asked}), and is not in the gold any more"
        yield Finding("must-pass-gone", "error", message, "Bring the question back, or take it out of must_pass.")
    broken = [case for case in now if case.label not in GOOD]
    if broken:
        message = f"{old.qid} passed in the baseline, has to pass ({asked}), and does not: {broken[0].label}"
        yield Finding("must-pass-broken", "error", message)


def disagreeing(names: Iterable[str], fields: Iterable[str], now: Evidence) -> Iterator[Finding]:
    """Metrics of which every slice moves one way and the whole the other: the mixture changed, not the system."""
    for name in names:
        whole = _moved(now, name)
        for field in fields if whole else ():
            parts = sorted(part for part in now.present() if part.startswith(f"{field}="))
            moved = [_part_moved(now, name, part) for part in parts]
            if whole and len(parts) > 1 and all(move is not None and move * whole < 0 for move in moved):
                message = f"{name} moves one way in every slice by {field} and the other way on the whole"
                hint = "Compare slice by slice: the mixture of cases changed."
                yield Finding("slices-disagree", "warning", message, hint)


def _part_moved(now: Evidence, name: str, part: str) -> float | None:
    found = comparison(name, now.pairs(name, part))
    return _signed(name, found.worsening) if found and found.worsening is not None else None
