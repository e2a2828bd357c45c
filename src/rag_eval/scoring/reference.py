"""The reference scorer's numbers, by its own reading of a trace, for ``--format scores``.

Four things differ from the metrics of the same names. It reads only ``answer_json``, ``retrieved_ids``, ``qid`` and
``q_id``. A refusal is exactly the token. ``recall@k`` uses the raw first k, repeats included. Without answers precision
and chr are 1.0, and without (un)answerable items their rate is 0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, msgpack

from rag_eval.contract import Answer, Gold, Trace, without_reasoning
from rag_eval.errors import UsageError
from rag_eval.scoring import BaseCaseScorer, CaseOutcome, PairTrace, Scorecard, Scorer, Scores
from rag_eval.textual.tokens import holds_any

DEFAULT_GATES = {"precision": "0.80", "chr": "0.75", "under": "0.05", "over": "0.10"}
FLOORS = {"precision": "precision", "chr": "chr"}
CEILINGS = {"under": "under_refusal", "over": "over_refusal"}
"""The metrics that the names of the inline gates stand for, by the side of the threshold that is right."""

_NO_ANSWER, _MISSING = Answer(""), Trace.missing("")


class ReferenceGold(Struct, array_like=True, gc=False):
    """The fields of a gold item that the reference scorer and the pairing of traces read."""

    qid: str
    question: str
    answerable: bool
    substrings: tuple[str, ...]
    citations: tuple[str, ...]
    conversation: str | None
    turn: int | None
    line: int


class PackedGold(bytes):
    """A gold item as bytes, in a quarter of the memory, for gold sets with a million items."""

    __slots__ = ()

    @classmethod
    def of(cls, gold: Gold) -> PackedGold:
        """Pack an item."""
        turn = None if gold.turn is None else int(gold.turn)
        labels = gold.answerable, gold.substrings, gold.citations
        return cls(msgpack.encode((gold.qid, gold.question, *labels, gold.conversation, turn, gold.line)))

    @property
    def qid(self) -> str:
        """Return the id of the item."""
        return _DECODER.decode(self).qid

    @property
    def line(self) -> int:
        """Return the line of the item in its file."""
        return _DECODER.decode(self).line


_DECODER = msgpack.Decoder(ReferenceGold)


class ReferenceCases(BaseCaseScorer):
    """Scores cases as the reference scorer does: a hit, a miss, or None for a number that does not apply."""

    columns: tuple[str, ...] = ("precision", "chr", "under_refusal", "over_refusal", "recall@k")

    def __init__(self, k: int, token: str) -> None:
        self._k, self._token = k, token.lower()
        self._known: dict[tuple[Scores, str], CaseOutcome] = {}

    def score(self, gold: PackedGold, trace: Trace, is_suspect: bool) -> CaseOutcome:  # noqa: ARG002
        """Return the outcome of a trace under its gold item."""
        key = self._scores(_DECODER.decode(gold), trace), "" if trace.line else "MISSING"
        return self._known.get(key) or self._known.setdefault(key, CaseOutcome(*key, "", "", 0))

    def score_missing(self, gold: PackedGold) -> CaseOutcome:
        """Return the outcome of an item without a trace: that of an empty answer that is no refusal."""
        return self.score(gold, _MISSING, is_suspect=False)

    def _scores(self, gold: ReferenceGold, trace: Trace) -> Scores:
        answer, ids = trace.answer_json or _NO_ANSWER, trace.retrieved_ids or ()
        claim = without_reasoning(answer.claim).strip().lower()
        is_refusal = claim == self._token
        if not gold.answerable:
            return (None, None, False, None, None) if is_refusal else (False, False, True, None, None)
        wanted = set(gold.citations)
        recalled = wanted.issubset(ids[: self._k])
        if is_refusal:
            return None, None, None, True, recalled
        cited = set(answer.citations or ())
        hits = cited.issubset(ids) and (not cited.isdisjoint(wanted) if wanted else not cited)
        right = hits and (not gold.substrings or holds_any(gold.substrings, claim))
        return right, hits, None, False, recalled


class ReferenceScorer(Scorer):
    """A scorer that reads traces as the reference scorer does: the last trace of a question counts, in any run."""

    def __init__(self, golds: Mapping[str, PackedGold], k: int, token: str) -> None:
        super().__init__(golds, ReferenceCases(k, token))

    def items(self) -> Iterator[tuple[str, ReferenceGold]]:
        """Yield the gold items by qid."""
        return ((gold.qid, gold) for gold in map(_DECODER.decode, self._golds))

    def add_traces(self, traces: Sequence[Trace], pair: PairTrace | None = None, answered: Sequence[int] = b"") -> None:
        """Score traces into the log; a trace without a qid is only checked for its question."""
        for trace in traces:
            if trace.answer_json is None or not (trace.qid or trace.q_id):
                self.log.unread += 1
            if trace.q_id or trace.case_id or trace.run or not trace.qid:
                if pair and not (trace.qid or trace.q_id):
                    pair(trace)
                trace.qid, trace.q_id, trace.case_id, trace.run = trace.qid or trace.q_id, "", "", ""
        super().add_traces([trace for trace in traces if trace.qid], None, answered)


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
    absent = {"precision": 1.0, "chr": 1.0}  # without answers; the others are 0.0
    values = {
        name: scores[True] / scores.total() if scores else absent.get(name, 0.0) for name, scores in tallies.items()
    }
    answered, answerable = tallies["precision"].total(), tallies["over_refusal"].total()
    floors = all([values[metric] >= float(gates[name]) for name, metric in FLOORS.items()])
    ceilings = all([values[metric] <= float(gates[name]) for name, metric in CEILINGS.items()])
    return {
        "answered": answered,
        "refused": len(card.cases) - answered,
        "answerable": answerable,
        "unanswerable": len(card.cases) - answerable,
        **{name: round(value, 4) for name, value in values.items()},
        "k": k,
        "gates": dict(gates),
        "pass": floors and ceilings,
    }
