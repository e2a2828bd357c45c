"""A run beside an earlier one: what broke, what was fixed, what the gold did and what the system did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.cases.finding import Finding
from rag_eval.cases.labels import GOOD
from rag_eval.common.escaping import quoted
from rag_eval.gates.policy import MARGINS
from rag_eval.gates.regression import comparison, ungated
from rag_eval.metrics import measure
from rag_eval.stats.aggregations import FOLDS, folded
from rag_eval.stats.tally import DECIMALS

if TYPE_CHECKING:
    from rag_eval.gates.gate_inputs import Baseline, Evidence
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.regression import Tested
    from rag_eval.gates.results import Question


LESS_JUDGED = 0.02
MOST_UNGATED = 3
_USUAL_MARGIN = 0.02


class Compared(NamedTuple):
    """What the run was compared with.

    ``ref`` says where the file was read, ``commit`` what its run.json names as the system's commit. ``cases`` are in
    both under the same gold; ``changed`` in both under another gold item, ``gone`` and ``new`` in one alone. Of
    those in both, no run of one name answers the ``unpaired``: there is nothing to hold their cases against. The
    baseline does not have the ``new_runs`` of several: nothing is compared with those. Metrics of ``incomparable`` were
    measured under another contract. ``rescored`` says that the baseline's traces were scored again under the gold in
    use. ``written`` is the commit that wrote the file last; ``commits_ago`` and ``days_ago`` say how far the base has
    gone since then; empty and None where that is not known.
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
    written: str = ""
    commits_ago: int | None = None
    days_ago: int | None = None
    unpaired: int = 0
    new_runs: tuple[str, ...] = ()


class Flip(NamedTuple):
    """A case that passes on one side alone under the same gold item, with its labels on either side."""

    qid: str
    run: str | None
    before: str
    after: str


class Effect(NamedTuple):
    """How a metric moved, in parts: by the change of the system, and by the change of the gold."""

    name: str
    system: float | None
    gold: float | None


def flips(pairs: Iterable[tuple[Question, Question]]) -> list[Flip]:
    """Of cases under baseline and run those that pass on one side alone, newly broken ones first."""
    moved = [(old, new) for old, new in pairs if old.label != new.label]
    turned = [(old, new) for old, new in moved if (old.label in GOOD) != (new.label in GOOD)]
    found = [Flip(new.qid, new.run, old.label, new.label) for old, new in turned]
    return sorted(found, key=lambda flip: (flip.after in GOOD, flip.qid, flip.run or ""))


def effects(names: Iterable[str], recorded: Baseline, now: Evidence) -> list[Effect]:
    """The movement of metrics in its two parts.

    The system's: from the baseline's traces to the run's, under the same gold. The gold's: from the baseline as it was
    recorded to the same traces under the gold in use; None where those were not at hand, or where the metric meant
    something else then.
    """
    return [Effect(name, _moved(now, name), _by_gold(name, recorded, now)) for name in names]


def _moved(now: Evidence, name: str) -> float | None:
    found = comparison(name, now.pairs(name)) if now.comparable(name) else None
    return _signed(name, found.worsening) if found and found.worsening is not None else None


def _by_gold(name: str, recorded: Baseline, now: Evidence) -> float | None:
    rescored = now.baseline
    if rescored is None or rescored.questions is recorded.questions or not now.comparable(name):
        return None
    if recorded.contracts.get(name) != rescored.contracts[name]:
        return None
    sides = recorded.questions, rescored.questions
    measured = measure(name)
    columns = (
        Counter(case.scores[measured.column] for case in side if measured.column in case.scores) for side in sides
    )
    old, new = (folded(measured, column).number for column in columns)
    return None if old is None or new is None else round(float(new) - float(old), DECIMALS) + 0.0


def _signed(name: str, worsening: float) -> float:
    return (-worsening if measure(name).metric.better == "higher" else worsening) + 0.0


def must_pass(
    names: Sequence[str], before: Baseline | None, after: Sequence[Question], recorded: Sequence[Question] = ()
) -> Iterator[Finding]:
    """The cases that must pass, did in the baseline and do not; by qid, or by slice such as ``tags=critical``.

    ``before`` is the baseline under the gold in use, ``recorded`` as it was written down: there alone are the cases
    that the gold has lost since, and the slices that they were in.
    """
    if not names:
        return
    if before is None:
        message = "must_pass is not judged: there is no baseline that says what passed"
        yield Finding("must-pass-unjudged", "warning", message, "Name one: baseline: {report: FILE}.")
        return
    sides = [_by_qid(side) for side in (recorded or before.questions, before.questions, after)]
    known = _named(sides)
    for qid in sorted(qid for qid, own in known.items() if not own.isdisjoint(names)):
        asked = next(name for name in names if name in known[qid])
        yield from _passes(qid, asked, *(side.get(qid, []) for side in sides))
    yield from (_unknown(name) for name in names if not any(name in own for own in known.values()))


def _by_qid(cases: Iterable[Question]) -> dict[str, list[Question]]:
    found: dict[str, list[Question]] = {}
    for case in cases:
        found.setdefault(case.qid, []).append(case)
    return found


def _named(sides: Iterable[Mapping[str, Sequence[Question]]]) -> dict[str, set[str]]:
    """What each case answers to on any side: its qid and its slices. To lose a tag is no way out."""
    found: dict[str, set[str]] = {}
    for side in sides:
        for qid, cases in side.items():
            found.setdefault(qid, {qid}).update(name for case in cases for name in case.slices)
    return found


def _passes(
    qid: str, asked: str, recorded: Sequence[Question], before: Sequence[Question], now: Sequence[Question]
) -> Iterator[Finding]:
    """Of several runs all have to pass, on either side."""
    broken = [case for case in now if case.label not in GOOD]
    if not now and _passed(recorded):
        message = f"{qid} passed in the baseline, has to pass ({asked}), and is not in the gold any more"
        yield Finding("must-pass-gone", "error", message, "Bring the question back, or take it out of must_pass.")
    elif broken and _passed(before):
        message = f"{qid} passed in the baseline, has to pass ({asked}), and does not: {broken[0].label}"
        yield Finding("must-pass-broken", "error", message)


def _passed(cases: Sequence[Question]) -> bool:
    return bool(cases) and all(case.label in GOOD for case in cases)


def _unknown(name: str) -> Finding:
    message = f"must_pass names {quoted(name, 60)}, and no case answers to it"
    return Finding("must-pass-unknown", "warning", message, "Check the spelling: it guards nothing.")


def disagreeing(names: Iterable[str], fields: Iterable[str], now: Evidence) -> Iterator[Finding]:
    """Metrics of which every slice moves one way and the whole the other: the mixture changed, not the system."""
    fields = list(fields)
    for name in names if fields else ():
        whole = _moved(now, name)
        for field in fields if whole else ():
            parts = sorted(part for part in now.present() if part.startswith(f"{field}="))
            moved = [_part_moved(now, name, part) for part in parts]
            if whole and len(parts) > 1 and all(move is not None and move * whole < 0 for move in moved):
                message = f"{name} moves one way in every slice by {field} and the other way on the whole"
                hint = "Compare slice by slice: the mixture of cases changed."
                yield Finding("slices-disagree", "warning", message, hint)


def ungated_regressions(
    gates: Iterable[GateResult], names: Iterable[str], now: Evidence, alpha: float
) -> Iterator[Finding]:
    """Up to three metrics without a regression gate that got significantly worse, and the gates that would fail."""
    whole = [gate for gate in gates if not gate.slice]
    gated = {gate.name for gate in whole if gate.direction in MARGINS}
    wanted = [name for name in names if name not in gated and estimates(name)]
    worse = ungated(wanted, {gate.name for gate in whole}, now, alpha)[:MOST_UNGATED]
    if not worse:
        return
    moves = [f"{row.name} from {_shown(row, 'baseline')} to {_shown(row, 'value')}" for row in worse]
    gate = ", ".join(f"{row.name}: {{{_margin(row)}}}" for row in worse)
    message = f"metrics without a regression gate got significantly worse: {', '.join(moves)}"
    yield Finding("ungated-regression", "warning", message, f"To fail such a run, write under gates: {gate}.")


def less_judged(names: Iterable[str], k: int, now: Evidence) -> Iterator[Finding]:
    """That fewer of the first k chunks have a grade than in the baseline: unjudged ones count as irrelevant."""
    cutoffs = [measure(name).k or 0 for name in names if name.startswith("judged@")]
    name = f"judged@{min(cutoffs, key=lambda cutoff: (abs(cutoff - k), cutoff))}" if cutoffs else ""
    found = comparison(name, now.pairs(name)) if name and now.comparable(name) else None
    if found and (found.worsening or 0.0) >= LESS_JUDGED:
        message = (
            f"{name} fell from {found.baseline:.3f} to {found.value:.3f}: recall, precision and ndcg count chunks that "
            "nobody judged as irrelevant"
        )
        yield Finding("less-judged", "warning", message, "Judge the new chunks, or gate bpref, which ignores them.")


def _shown(row: Tested, side: str) -> str:
    value: float = getattr(row.comparison, side)
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _margin(row: Tested) -> str:
    """A margin that the drop exceeds: 0.02 of a share if it will do, else half the drop."""
    worse, metric = (row.comparison and row.comparison.worsening) or 0.0, measure(row.name).metric
    margin = "0.02" if metric.bounded and worse > _USUAL_MARGIN else f"{Decimal(f'{worse / 2:.1g}'):f}"
    return f"{'max_drop' if metric.better == 'higher' else 'max_rise'}: {margin}"


def estimates(name: str) -> bool:
    """Whether a metric's value over the cases estimates the system's: neither a sum nor a maximum, nor of the run."""
    found = measure(name)
    return FOLDS[found.fold].estimates and found.metric.level == "case"


def _part_moved(now: Evidence, name: str, part: str) -> float | None:
    found = comparison(name, now.pairs(name, part))
    return _signed(name, found.worsening) if found and found.worsening is not None else None
