"""Comparison of a run with an earlier one: what broke, what was fixed, and whether gold or system caused it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from rag_eval.cases import GOOD
from rag_eval.common.escaping import quoted, some
from rag_eval.errors import Finding
from rag_eval.gates import MARGINS, GateResult, Policy
from rag_eval.gates.evidence import Baseline, RunEvidence
from rag_eval.gates.questions import Question
from rag_eval.gates.regression import Tested, compare_pairs, judge_regressions, worse_without_gate
from rag_eval.metrics import measure
from rag_eval.scoring.aggregations import FOLDS, aggregate
from rag_eval.stats.tally import DECIMALS, tally

_LESS_JUDGED, _USUAL_MARGIN, _MOST_UNGATED, _NAMED = 0.02, 0.02, 3, 5
_GOLD_OF = attrgetter("qid", "content_hash")


class Compared(NamedTuple):
    """The baseline that the run was compared with.

    ``ref`` is where the file was read, ``commit`` the system's commit in its run.json. ``cases`` are in both under the
    same gold, ``changed`` in both under another gold item, ``gone`` and ``new`` only in one. ``unpaired`` cases are in
    both, but no run of the same name answers them, so they are not compared. ``new_runs`` are runs that the baseline
    lacks; they are not compared. ``incomparable`` metrics have another metric fingerprint. ``rescored`` is true if the
    baseline's traces were scored again under the gold in use. ``written`` is the commit that wrote the file last, empty
    if unknown. ``commits_ago`` and ``days_ago`` are the base branch's progress since then, None if unknown.
    """

    path: str
    sha256: str
    ref: str
    commit: str = ""
    cases: int = 0
    changed: int = 0
    gone: int = 0
    new: int = 0
    incomparable: tuple[str, ...] = ()
    rescored: bool = False
    written: str = ""
    commits_ago: int | None = None
    days_ago: int | None = None
    unpaired: int = 0
    new_runs: tuple[str, ...] = ()


class Flip(NamedTuple):
    """A case that passes on only one side under the same gold item, with its label on each side."""

    qid: str
    run: str | None
    before: str
    after: str

    @property
    def is_fixed(self) -> bool:
        """Return whether the case failed before and passes now."""
        return self.after in GOOD


class Effect(NamedTuple):
    """A metric's change in parts: by the change of the system, and by the change of the gold."""

    name: str
    system: float | None
    gold: float | None


def flips(pairs: Iterable[tuple[Question, Question]]) -> list[Flip]:
    """Return the cases that pass on one side only, newly broken ones first."""
    turned = [(old, new) for old, new in pairs if (old.label in GOOD) != (new.label in GOOD)]
    changed = [Flip(new.qid, new.run, old.label, new.label) for old, new in turned]
    return sorted(changed, key=lambda flip: (flip.is_fixed, flip.qid, flip.run or ""))


def effects(names: Iterable[str], recorded: Baseline, now: RunEvidence) -> list[Effect]:
    """Split the change of each metric into its two parts.

    The system's part goes from the baseline's traces to the run's, under the same gold. The gold's part goes from the
    recorded baseline to the same traces under the gold in use. It is None if those traces are missing, or if the
    metric's definition changed.
    """
    return [Effect(name, _moved(now, name), _by_gold(name, recorded, now)) for name in names]


def _moved(now: RunEvidence, name: str, part: str = "") -> float | None:
    pair = compare_pairs(name, now.pairs(name, part)) if now.comparable(name) else None
    return pair.change(measure(name).metric.better)[0] if pair else None


def _by_gold(name: str, recorded: Baseline, now: RunEvidence) -> float | None:
    rescored = now.baseline
    if rescored is None or rescored.questions is recorded.questions or not now.comparable(name):
        return None
    if recorded.contracts.get(name) != rescored.contracts[name]:
        return None
    column = measure(name).column
    scores = (tally(case.scores.get(column) for case in side.questions) for side in (recorded, rescored))
    old, new = (aggregate(measure(name), side).as_float for side in scores)  # type: ignore[arg-type]
    return None if old is None or new is None else round(new - old, DECIMALS) + 0.0


def must_pass(
    names: Sequence[str], before: Baseline | None, after: Sequence[Question], recorded: Sequence[Question] = ()
) -> Iterator[Finding]:
    """Yield the cases that must pass, did in the baseline and do not; by qid, or by slice such as ``tags=critical``.

    ``before`` is the baseline under the gold in use, ``recorded`` the baseline as it was written. Only the latter has
    the cases that the gold lost since, and the slices that they were in.
    """
    if not names:
        return
    if before is None:
        message = "must_pass was not checked because there is no baseline"
        yield Finding("must-pass-unjudged", "warning", message, "Name one in the gates file: baseline: {report: FILE}.")
        return
    sides: list[dict[str, list[Question]]] = []
    # The qid and the slices of each case on all sides, so that removing a tag hides nothing.
    known: dict[str, set[str]] = {}
    for side in (recorded or before.questions, before.questions, after):
        sides.append({})
        for case in side:
            sides[-1].setdefault(case.qid, []).append(case)
            known.setdefault(case.qid, {case.qid}).update(case.slices)
    for qid in sorted(qid for qid, answers in known.items() if not answers.isdisjoint(names)):
        asked = next(name for name in names if name in known[qid])
        must = f"{qid} must pass" + (f" ({asked})" if asked != qid else "")
        written, scored, now = (side.get(qid, []) for side in sides)
        broken = [case for case in now if case.label not in GOOD]
        if not now and _passed(written):
            message = f"{must} and passed in the baseline, but is no longer in the gold"
            fix = "Restore the question, or first merge a pull request that removes it from must_pass."
            yield Finding("must-pass-gone", "error", message, fix)
        elif broken and _passed(scored):
            message = f"{must} and passed in the baseline, but now fails: {broken[0].label}"
            yield Finding("must-pass-broken", "error", message)
    for name in names:
        if not any(name in answers for answers in known.values()):
            message = f"must_pass names {quoted(name, 60)}, which matches no case"
            yield Finding("must-pass-unknown", "warning", message, "Check the spelling, or remove it.")


def fewer_runs(before: Iterable[Question], after: Iterable[Question]) -> Iterator[Finding]:
    """Yield a finding if the run asked each question fewer times than the baseline: the worst runs may be missing."""
    then, now = ({question.run for question in side} for side in (before, after))
    if len(now) < len(then):
        message = f"this run asked each question {_times(len(now))}, and the baseline {_times(len(then))}"
        yield Finding("fewer-cases", "warning", message, "Keep the traces of every run of the system.")


def changed_since(gates: Iterable[GateResult], policy: Policy, now: RunEvidence) -> Iterator[Finding]:
    """Yield a finding if regression gates would fail with the cases whose gold changed since the baseline."""
    margins, hashes = [gate for gate in gates if gate.direction in MARGINS], dict(map(_GOLD_OF, now.questions))
    before = now.baseline.questions if margins and now.baseline else ()
    changed = {case.qid for case in before if hashes.get(case.qid, case.content_hash) != case.content_hash}
    if not changed or now.baseline is None:
        return
    same = [replace(case, content_hash=hashes.get(case.qid, "")) for case in before]
    earlier = replace(now.baseline, questions=same)
    whole = RunEvidence(now.questions, now.metrics, now.completeness, now.contracts, earlier, now.cluster)
    again = judge_regressions([gate.gate for gate in margins], whole, policy.statistics, policy.slices.min_n)
    pairs = [(old, new) for old, new in zip(margins, again, strict=True) if old.unclear or not old.broken]
    failed = [new.label for old, new in pairs if new.outcome == "failed" and not old.few]
    if failed:
        names = some(sorted(changed), _NAMED, quoted)
        message = f"{some(failed, _NAMED)} would fail with the questions whose gold changed since the baseline: {names}"
        fix = "Renew the baseline. With baseline.trace, changed items are compared too."
        yield Finding("fewer-cases", "warning", message, fix)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _passed(cases: Sequence[Question]) -> bool:
    return bool(cases) and all(case.label in GOOD for case in cases)


def disagreeing(names: Iterable[str], fields: Sequence[str], now: RunEvidence) -> Iterator[Finding]:
    """Yield metrics whose slices all move one way while the whole moves the other: the mixture changed."""
    present = sorted(now.present()) if fields else []
    by_field = {field: [part for part in present if part.startswith(f"{field}=")] for field in fields}
    for name in names if by_field else ():
        whole = _moved(now, name)
        for field, parts in by_field.items():
            moved = [_moved(now, name, part) for part in parts]
            if whole and len(parts) > 1 and all(move is not None and move * whole < 0 for move in moved):
                message = f"{name} moved one way in every slice by {field}, and the other way over all cases"
                hint = "Compare the slices one by one: the mix of cases changed."
                yield Finding("slices-disagree", "warning", message, hint)


def ungated_regressions(
    gates: Iterable[GateResult], names: Iterable[str], now: RunEvidence, alpha: float
) -> Iterator[Finding]:
    """Yield up to three metrics without a regression gate that got significantly worse, and gates that would fail."""
    whole = [gate for gate in gates if not gate.slice]
    gated = {gate.name for gate in whole if gate.direction in MARGINS}
    estimates = [name for name in names if FOLDS[measure(name).fold].estimates and measure(name).metric.level == "case"]
    wanted = [name for name in estimates if name not in gated]
    regressions = worse_without_gate(wanted, {gate.name for gate in whole}, now, alpha)[:_MOST_UNGATED]
    moves, margins = [], []
    for row in regressions:
        name, metric = row.measure.name, row.measure.metric
        drop = (row.comparison and row.comparison.regression) or 0.0
        moves.append(f"{name} from {_shown(row, 'baseline')} to {_shown(row, 'value')} {metric.unit}".rstrip())
        # A margin that the drop exceeds: 0.02 of a share if that is enough, otherwise half the drop.
        margin = "0.02" if metric.bounded and drop > _USUAL_MARGIN else f"{Decimal(f'{drop / 2:.1g}'):f}"
        margins.append(f"{name}: {{{'max_drop' if metric.better == 'higher' else 'max_rise'}: {margin}}}")
    if regressions:
        message = f"metrics without a regression gate are significantly worse: {', '.join(moves)}"
        fix = f"To fail such a run, write under gates: {', '.join(margins)}."
        yield Finding("ungated-regression", "warning", message, fix)


def less_judged(names: Iterable[str], k: int, now: RunEvidence) -> Iterator[Finding]:
    """Yield a finding if fewer of the first k chunks are graded than in the baseline: others count as irrelevant."""
    cutoffs = [measure(name).k or 0 for name in names if name.startswith("judged@")]
    name = f"judged@{min(cutoffs, key=lambda cutoff: (abs(cutoff - k), cutoff))}" if cutoffs else ""
    pair = compare_pairs(name, now.pairs(name)) if name and now.comparable(name) else None
    if pair and (pair.regression or 0.0) >= _LESS_JUDGED:
        message = f"{name} fell from {pair.baseline:.3f} to {pair.value:.3f}"
        message += ": recall, precision and ndcg count chunks without a grade as irrelevant"
        fix = "Grade the new chunks, or gate bpref, which ignores chunks without a grade."
        yield Finding("less-judged", "warning", message, fix)


def _shown(row: Tested, side: str) -> str:
    value: float = getattr(row.comparison, side)
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


class GoldCounts(NamedTuple):
    """The number of gold items that were changed, removed or added."""

    changed: int
    gone: int
    new: int


def gold_counts(before: Iterable[Question], after: Iterable[Question]) -> GoldCounts:
    """Compare the gold items of two runs by their qids and hashes."""
    old, new = ({case.qid: case.content_hash for case in side} for side in (before, after))
    both = old.keys() & new.keys()
    return GoldCounts(sum(old[qid] != new[qid] for qid in both), len(old) - len(both), len(new) - len(both))
