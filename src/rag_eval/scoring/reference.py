"""The reference scorer's numbers, by its own reading of a trace: what ``--format scores`` prints.

It differs from the metrics of the same names in four things: it reads only ``answer_json``, ``retrieved_ids``, ``qid``
and ``q_id``; a refusal is the token and nothing else; ``recall@k`` looks at the raw first k, repeats included; and no
shipped answer makes precision and chr 1.0, no (un)answerable item makes its rate 0.0.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from rag_eval.cases.case import Case
from rag_eval.contract import Answer, Gold, Settings, Trace
from rag_eval.errors import UsageError
from rag_eval.metrics import Measure
from rag_eval.metrics._metric import metric
from rag_eval.scoring.scorecard import Scorecard
from rag_eval.scoring.scorer import PairTrace, Scorer

DEFAULT_GATES = {"precision": "0.80", "chr": "0.75", "under": "0.05", "over": "0.10"}
FLOORS = {"precision": "precision", "chr": "chr"}
CEILINGS = {"under": "under_refusal", "over": "over_refusal"}
"""The metrics that the names of the inline gates stand for, by the side of the threshold that is right."""

_SOURCE = "reference scorer"


@metric("shipped answers", source=_SOURCE, depends_on="features")
def precision(case: Case) -> bool | None:
    """Share of shipped answers that are right and rightly cited."""
    return _hits(case) and case.contained if case.shipped else None


@metric("shipped answers", source=_SOURCE, depends_on="features")
def chr(case: Case) -> bool | None:  # noqa: A001 - the field's name for the citation hit rate
    """Share of shipped answers whose citations hit."""
    return _hits(case) if case.shipped else None


@metric("unanswerable items", source=_SOURCE, depends_on="features")
def under(case: Case) -> bool | None:
    """Share of unanswerable items that were answered."""
    return None if case.gold.answerable else case.shipped


@metric("answerable items", source=_SOURCE, depends_on="features")
def over(case: Case) -> bool | None:
    """Share of answerable items that were refused."""
    return case.refused if case.gold.answerable else None


@metric("answerable items", source=_SOURCE, depends_on="features")
def recall(case: Case) -> bool | None:
    """Share of answerable items of which every gold citation is among the first k retrieved."""
    return set(case.gold.citations).issubset(case.trace.retrieved[: case.settings.k]) if case.gold.answerable else None


_MEASURES = [Measure(one.name, one) for one in (precision, chr, under, over, recall)]


class ReferenceScorer(Scorer):
    """Scores traces as the reference scorer reads them: the last trace of a question counts, whatever its run."""

    def __init__(self, golds: Mapping[str, Gold], k: int, token: str) -> None:
        super().__init__(golds, _MEASURES, Settings(token=token, k=k))
        self._made_of = golds, k, token

    def __reduce__(self) -> tuple[type[ReferenceScorer], tuple[Mapping[str, Gold], int, str]]:
        """Send what it is made of to another process: its measures are no metrics that can be looked up there."""
        return ReferenceScorer, self._made_of

    def add(
        self, traces: Sequence[Trace], pair: PairTrace | None = None, answered: Container[int] = frozenset()
    ) -> None:
        """Score traces into the log; of one without a qid it is only checked whether it names a question."""
        for trace in traces:
            if not (trace.qid or trace.q_id) and pair:
                pair(trace)
        self.log.unread += sum([not (trace.qid or trace.q_id) or trace.answer_json is None for trace in traces])
        super().add([_as_read(trace) for trace in traces if trace.qid or trace.q_id], None, answered)


def parse_gates(text: str) -> dict[str, str]:
    """Return inline gates, ``precision=0.80,chr=0.75,under=0.05,over=0.10``: all four, each a finite number."""
    try:
        gates = dict(part.split("=") for part in text.split(","))
        finite = all([abs(float(gates[name])) < float("inf") for name in DEFAULT_GATES])
    except (KeyError, ValueError):
        finite = False
    if not finite:
        raise UsageError(f"--gates '{text[:80]}' is not of the form precision=0.80,chr=0.75,under=0.05,over=0.10")
    return gates


def scores(card: Scorecard, k: int, gates: Mapping[str, str]) -> dict[str, Any]:
    """Return the flat JSON of the reference scorer."""
    tallies = card.tallies()
    shipped, answerable = tallies["precision"].total(), tallies["over"].total()
    absent = {"precision": 1.0, "chr": 1.0, "under": 0.0, "over": 0.0, "recall": 0.0}
    values = {name: tallies[name][True] / (tallies[name].total() or 1) for name in absent}
    values.update({name: value for name, value in absent.items() if not tallies[name]})
    shown = {name: round(value, 4) for name, value in values.items()}
    floors = all([values[name] >= float(gates[name]) for name in FLOORS])
    return {
        "answered": shipped,
        "refused": len(card.cases) - shipped,
        "answerable": answerable,
        "unanswerable": len(card.cases) - answerable,
        "precision": shown["precision"],
        "chr": shown["chr"],
        "under_refusal": shown["under"],
        "over_refusal": shown["over"],
        "recall@k": shown["recall"],
        "k": k,
        "gates": dict(gates),
        "pass": floors and all([values[name] <= float(gates[name]) for name in CEILINGS]),
    }


def _hits(case: Case) -> bool:
    """Whether everything cited was retrieved, and a gold citation is cited, or nothing if there are none."""
    gold, cites = case.gold, set(case.cites)
    if not gold.answerable or not cites.issubset(case.trace.retrieved):
        return False
    return not cites.isdisjoint(gold.citations) if gold.citations else not cites


def _as_read(trace: Trace) -> Trace:
    """A trace as the reference scorer reads it."""
    ids = trace.retrieved_ids or ()
    if len(set(ids)) < len(ids):  # a repeated id keeps its rank, at which nothing is found
        ids = tuple([f"\0{rank}" if name in ids[:rank] else name for rank, name in enumerate(ids)])
    answer = trace.answer_json or Answer("")
    return Trace(qid=trace.qid or trace.q_id, retrieved_ids=ids, answer_json=answer, line=trace.line)
