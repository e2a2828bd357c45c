"""What a report keeps of a scorecard: the value of each measure with its interval, and the cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rag_eval.gates.gate_inputs import CONFIDENCE, enclosed
from rag_eval.gates.results import MetricResult, Question, Scores
from rag_eval.gates.slices import slices_of
from rag_eval.metrics import METRICS
from rag_eval.scoring.scorecard import filled
from rag_eval.stats.aggregations import FOLDS, enclosed_together
from rag_eval.stats.tally import Value, as_shown, tally

if TYPE_CHECKING:
    from rag_eval.gates.dependent_cases import Tries
    from rag_eval.metrics import Measure
    from rag_eval.scoring.scorecard import Scorecard
    from rag_eval.stats.intervals import Interval
    from rag_eval.stats.tally import Shown

    Valued = tuple[Measure, Value, Interval | None]

_QUESTION_SHOWN = 200
_QID, _ANSWERABLE, _LINE = map(attrgetter, ("qid", "answerable", "line"))
_LABEL, _EXAMPLE = map(attrgetter, ("label", "coarse_label"))


def results_of(card: Scorecard, about: Mapping[str, Any], tries: Tries | None) -> dict[str, MetricResult]:
    """Every measure's value, perspective by perspective as METRICS has them; ``about`` is what run.json says.

    ``tries`` are the cases of the scorecard by question, where there are several runs.
    """
    places = {name: place for place, name in enumerate(METRICS)}
    valued = sorted([*_of_cases(card, tries), *_of_run(card, about)], key=lambda found: places[found[0].metric.name])
    return {found[0].name: as_result(*found) for found in valued}


def as_result(measure: Measure, value: Value, found: Interval | None) -> MetricResult:
    """A value with its interval as a report has it."""
    exact = str(value.number) if isinstance(value.number, Fraction) else None
    number = None if value.number is None else float(value.number)
    hits = value.hits if measure.is_rate else None
    own = MetricResult(number, value.n, exact, hits, measure.metric.better, measure.metric.perspective)
    return own._replace(low=found.low, high=found.high, small=found.small) if found else own


def questions_of(card: Scorecard, hashes: Mapping[str, str], fields: Sequence[str]) -> tuple[Question, ...]:
    """The cases of a scorecard with the ``hashes`` of their gold items and their slices by ``fields``.

    What cases share is one object, for they may be millions: scores of all that came to the same, slices of all runs.
    """
    cases = card.cases
    golds, runs, each, came = cases.golds, cases.runs, cases.of_each, list(cases.came_to())
    places = {name: place for place, name in enumerate(card.columns)}
    scores = {id(outcome): Scores(places, outcome.scores, outcome.own) for outcome, _ in cases.outcomes()}
    qids = list(map(_QID, golds))
    slices = [slices_of(gold, fields) for gold in golds] if fields else repeat((), len(golds))
    columns: dict[str, Iterable[Any]] = {
        "qid": each(qids),
        "run": runs * len(golds),
        "question": each([gold.question[:_QUESTION_SHOWN] for gold in golds]),
        "answerable": each(map(_ANSWERABLE, golds)),
        "label": map(_LABEL, came),
        "coarse_label": map(_EXAMPLE, came),
        "scores": map(scores.__getitem__, map(id, came)),
        "gold_line": each(map(_LINE, golds)),
        "trace_line": cases.lines(),
        "gold_sha256": each(map(hashes.get, qids, repeat(""))),
        "slices": each(slices),
    }
    return tuple(filled(Question, map(columns.__getitem__, Question._fields)))


def _of_cases(card: Scorecard, tries: Tries | None) -> list[Valued]:
    """Each measure with its value and its interval; measures whose cases score alike share one."""
    known: dict[Any, Interval | None] = {}
    found, tallies = [], card.tallies()
    for one in (one for one in card.measures if one.metric.level == "case"):
        counts = tallies[one.column]
        scores: Counter[Shown] = Counter()
        for score, count in counts.items():  # 1/1 and 2/2 are shown as one
            scores[as_shown(score)] += count
        said = tries.scores(one.column) if tries else frozenset(scores.items())
        key = one.is_rate, one.metric.bounded, one.fold, said
        if key not in known:
            known[key] = enclosed_together(one, tries, float(CONFIDENCE)) if tries else enclosed(one.name, scores)
        found.append((one, FOLDS[one.fold].value(counts), known[key]))
    return found


def _of_run(card: Scorecard, about: Mapping[str, Any]) -> list[Valued]:
    """The metrics of what run.json says. It counts all that there is: there is nothing to enclose."""
    own = [one for one in card.measures if one.metric.level == "run"]
    return [(one, FOLDS[one.fold].value(tally([one.score(about)])), None) for one in own]
