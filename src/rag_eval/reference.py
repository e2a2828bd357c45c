"""The reference scorer's numbers, by its own reading of a trace: what ``--format scores`` prints.

It differs from the metrics of the same names in four things: only ``answer_json``, ``retrieved_ids``, ``qid`` and
``q_id`` are read; a refusal is the token and nothing else; ``recall@k`` looks at the raw first k, repeats included; and
no shipped answer makes precision and chr 1.0, no (un)answerable item makes its rate 0.0.
"""

from __future__ import annotations

from array import array
from collections import Counter
from copy import copy

from rag_eval.errors import UsageError
from rag_eval.shelf import placed
from rag_eval.told import Told
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from rag_eval.model import Gold
    from rag_eval.scoring.waiting import Waiting
    from rag_eval.told import Batch, QidOf

    Row = dict[str, Any]

_FEW = 200
_NO_ANSWER: Row = {"claim": ""}
DEFAULT_GATES = {"precision": "0.80", "chr": "0.75", "under": "0.05", "over": "0.10"}
FLOORS = {"precision": "precision", "chr": "chr"}
CEILINGS = {"under": "under_refusal", "over": "over_refusal"}
"""The metrics that the names of the inline gates stand for, by the side of the threshold that is right."""

# What the reference scorer sees in one case, as bits of a small number: a case costs no memory of its own.
ANSWERABLE, SHIPPED, HIT, RIGHT, RECALLED = 1, 2, 4, 8, 16
SEEN = 32
"""That there is a trace."""


class Counts(NamedTuple):
    """Outcomes of all gold items, and how the trace rows fell on them."""

    outcomes: Counter[int]
    missing: int
    duplicate: int
    unknown: int
    unread: int

    def of(self, bits: int, without: int = 0) -> int:
        """How many cases have all of ``bits`` and none of ``without``."""
        return sum(n for one, n in self.outcomes.items() if one & bits == bits and not one & without)


def parse_gates(text: str) -> dict[str, str]:
    """Inline gates, ``precision=0.80,chr=0.75,under=0.05,over=0.10``: all four, each a finite number."""
    try:
        gates = dict(part.split("=") for part in text.split(","))
        finite = all(abs(float(gates[name])) < float("inf") for name in DEFAULT_GATES)
    except (KeyError, ValueError):
        finite = False
    if not finite:
        raise UsageError(f"--gates '{text[:80]}' is not of the form precision=0.80,chr=0.75,under=0.05,over=0.10")
    return gates


class Partial(NamedTuple):
    """What a scorer holds of a part of the traces: places of gold items from 0, and what each trace came to.

    ``replaced`` counts those that another one replaced before anything was made of them.
    """

    slots: array[int]
    outcomes: bytearray
    unknown: int
    unread: int
    replaced: int


class ReferenceScorer:
    """Takes traces as :class:`rag_eval.scoring.scorer.Scorer` does; the last trace of a qid wins, whatever its run.

    Of a gold item it keeps a byte. ``k`` is that of recall, ``token`` the refusal token.
    """

    pool: frozenset[str] | None = None
    least_shared = 12 << 20
    """Bytes of a file from which it is shared out: a row takes little time."""

    def __init__(self, golds: Mapping[str, Gold], k: int, token: str) -> None:
        self._wants, self._k, self._token = placed(golds), k, token.lower()
        self._slots = self._wants.slots
        self._hold_nothing()

    def _hold_nothing(self, *, apart: bool = False, behind: set[int] | None = None) -> None:
        self._seen = bytearray() if apart else bytearray(len(self._slots))
        self._log: tuple[array[int], bytearray] | None = (array("Q"), bytearray()) if apart else None
        self._known = self._unknown = self._unread = self._duplicate = 0
        self._waiting: Waiting | None = None  # made for the first that may wait: start-up time
        self._behind = behind

    def enough(self, row: Row) -> tuple[str, ...] | None:
        """Nothing besides what all rows tell; None where more is read of rows of the same fields."""
        return () if "answer_json" in row else None

    def take(self, batches: Iterable[Batch], qid_of: QidOf) -> None:
        """Look at valid trace rows with their lines; ``qid_of`` is told of each one without an id that is read."""
        for batch in batches:
            if isinstance(batch, Told):
                self._take_told(batch, qid_of)
            else:
                self._take_left()
                self._take_rows(batch, qid_of)

    def _take_rows(self, rows: Iterable[tuple[int, Row]], qid_of: QidOf) -> None:
        slots, gold_at = self._slots, self._wants.at
        for line, row in rows:
            qid, answer = row.get("qid") or row.get("q_id"), row.get("answer_json")
            if not qid or answer is None:
                self._unread += 1
                if not qid:
                    qid_of(row, line)
                    continue
            slot = slots.get(qid)
            if slot is None:
                self._unknown += 1
                continue
            own = answer or _NO_ANSWER
            came = self._outcome(
                gold_at(slot), own["claim"], own.get("citations") or (), row.get("retrieved_ids") or ()
            )
            self._put((slot,), (came,))

    def _take_told(self, told: Told, qid_of: QidOf) -> None:
        slots = list(map(self._slots.get, told.qids))
        if None not in slots:
            for due in self._room().due(slots, told):  # type: ignore[arg-type]  # each has a place
                self._put(due.slots, self._outcomes(*due))
            return
        self._take_left()
        for slot, came, (line, qid, *_) in zip(slots, self._outcomes(slots, told), told.entries(), strict=True):
            if slot is not None:
                self._put((slot,), (came,))
            elif qid:
                self._unknown += 1
            elif line in told.rows:
                self._take_rows([(line, told.rows[line])], qid_of)

    def _room(self) -> Waiting:
        """Where traces wait."""
        if self._waiting is None:
            from rag_eval.scoring.waiting import Waiting  # only large files need it: start-up time

            self._waiting = Waiting(len(self._slots), self._behind or frozenset(), lambda _: False)
        return self._waiting

    def _take_left(self) -> None:
        """Take those of the traces that wait which no other one of them replaces."""
        for due in self._waiting.leave() if self._waiting else ():
            self._put(due.slots, self._outcomes(*due))

    def _outcomes(self, slots: Sequence[int | None], told: Told) -> bytearray:
        """What each trace came to; 0 where there is no item. Ids are looked for in lists as they stand in JSON.

        One loop with few calls, as there may be millions of traces: it says what :meth:`_outcome` does.
        """
        token, apart, most = self._token, f'"{told.between}"', 2 * self._k
        answerable, all_ids, all_texts, parted = self._wants.columns()
        found = bytearray(len(slots))
        for at, (slot, claim, cited, ranked) in enumerate(zip(slots, told.claims, told.cited, told.retrieved)):  # noqa: B905 - endless ones among them
            if slot is None:
                continue
            said = claim.strip().lower()
            if not answerable[slot]:
                found[at] = SEEN if said == token else SEEN | SHIPPED
                continue
            ids = all_ids[slot]
            if ids is None or (cited and apart in cited):
                found[at] = self._outcome(self._wants.at(slot), claim, told.ids(cited or ""), told.ids(ranked))
                continue
            wanted = [f'"{one}"' for one in ids[1:-1].split(parted)] if parted in ids else (ids,) if ids else ()
            for quoted in wanted:
                place = ranked.find(quoted)
                if place < 0 or ranked.count('"', 0, place) >= most:
                    bits = SEEN | ANSWERABLE
                    break
            else:
                bits = SEEN | ANSWERABLE | RECALLED
            if said == token:
                found[at] = bits
            elif not (cited in ranked and cited in wanted if cited else not wanted):
                found[at] = bits | SHIPPED
            else:
                texts = all_texts[slot] or ()
                if isinstance(texts, str):
                    texts = tuple([text.lower() for text in texts[1:-1].split(parted)])
                found[at] = bits | SHIPPED | HIT | RIGHT if _contains(texts, said) else bits | SHIPPED | HIT
        return found

    def _outcome(self, gold: Gold, claim: str, cites: Sequence[str], ranked: Sequence[str]) -> int:
        recalled = _within(gold.citations, ranked[: self._k])
        return _bits(gold, claim, recalled, _within(cites, ranked) and _overlaps(gold.citations, cites), self._token)

    def _put(self, slots: Sequence[int], outcomes: Iterable[int]) -> None:
        if self._log is None:
            self._known += len(slots)
            for slot, came in zip(slots, outcomes, strict=True):
                self._seen[slot] = came
        else:
            self._log[0].extend(slots)
            self._log[1].extend(outcomes)

    def fresh(
        self,
        pool: frozenset[str] | None = None,  # noqa: ARG002
        *,
        apart: bool = False,
        behind: set[int] | None = None,
    ) -> ReferenceScorer:
        """A scorer of the same kind that holds no trace yet; one that is ``apart`` is to be asked for its part.

        ``behind`` are the places of items that a trace further behind answers, and will be those of its own as well.
        """
        other = copy(self)
        other._hold_nothing(apart=apart, behind=behind)
        return other

    def partial(self) -> Partial:
        """What it holds, without the gold; of a scorer that is apart."""
        if self._log is None:
            raise ValueError("this scorer has let traces take the places of others")
        self._take_left()
        if self._behind is not None:
            self._behind.update(self._log[0])
        return Partial(*self._log, self._unknown, self._unread, self._replaced)

    def agrees(self, partial: Partial) -> bool:  # noqa: ARG002
        """Any two parts do."""
        return True

    def absorb(self, partial: Partial, before: int) -> None:  # noqa: ARG002
        """Take what another scorer held of the traces that follow."""
        seen = self._seen
        for slot, came in zip(partial.slots, partial.outcomes, strict=True):
            seen[slot] = came
        self._known += len(partial.slots)
        self._unknown += partial.unknown
        self._unread += partial.unread
        self._duplicate += partial.replaced

    def close(self) -> Counts:
        """Outcomes of every gold item; one without a trace is an empty answer."""
        self._take_left()
        missing = self._seen.count(0)
        outcomes = Counter(self._seen)
        del outcomes[0]
        found = Counter({came & ~SEEN: count for came, count in outcomes.items()})
        for slot in range(len(self._slots)) if missing else ():
            if not self._seen[slot]:
                found[self._outcome(self._wants.at(slot), "", (), ()) & ~SEEN] += 1
        taken = len(self._slots) - missing
        return Counts(found, missing, self._known + self._replaced - taken, self._unknown, self._unread)

    @property
    def _replaced(self) -> int:
        """Traces that others replaced before anything was made of them."""
        return self._duplicate + (self._waiting.replaced if self._waiting else 0)


def _bits(gold: Gold, claim: str, recalled: bool, hit: bool, token: str) -> int:
    """One case as the reference scorer sees it; where there is no answer the claim is empty.

    ``hit`` says that the citations are right, ``token`` is the refusal token, lower-cased.
    """
    said = claim.strip().lower()
    if not gold.answerable:
        return SEEN if said == token else SEEN | SHIPPED
    bits = SEEN | ANSWERABLE | RECALLED if recalled else SEEN | ANSWERABLE
    if said == token:
        return bits
    if not hit:
        return bits | SHIPPED
    return bits | SHIPPED | HIT | RIGHT if _contains(gold.substrings, said) else bits | SHIPPED | HIT


def scores(counts: Counts, k: int, gates: Mapping[str, str]) -> dict[str, Any]:
    """The flat JSON of the reference scorer."""
    answerable, unanswerable, shipped = counts.of(ANSWERABLE), counts.of(0, ANSWERABLE), counts.of(SHIPPED)
    values = {
        "precision": counts.of(RIGHT) / shipped if shipped else 1.0,
        "chr": counts.of(HIT) / shipped if shipped else 1.0,
        "under": counts.of(SHIPPED, ANSWERABLE) / unanswerable if unanswerable else 0.0,
        "over": counts.of(ANSWERABLE, SHIPPED) / answerable if answerable else 0.0,
        "recall": counts.of(RECALLED) / answerable if answerable else 0.0,
    }
    shown = {name: round(value, 4) for name, value in values.items()}
    return {
        "answered": shipped,
        "refused": answerable + unanswerable - shipped,
        "answerable": answerable,
        "unanswerable": unanswerable,
        "precision": shown["precision"],
        "chr": shown["chr"],
        "under_refusal": shown["under"],
        "over_refusal": shown["over"],
        "recall@k": shown["recall"],
        "k": k,
        "gates": dict(gates),
        "pass": _passes(values, gates),
    }


# Plain loops: for the one to three ids and texts that these see, any() and all() cost more than the looking.


def _overlaps(wanted: Sequence[str], cites: Sequence[str]) -> bool:
    """Whether something wanted is cited; where nothing is wanted, whether nothing is cited."""
    for one in cites:
        if one in wanted:
            return True
    return not wanted and not cites


def _contains(texts: Sequence[str], claim: str) -> bool:
    for text in texts:
        if text in claim:
            return True
    return not texts


def _within(wanted: Sequence[str], among: Sequence[str]) -> bool:
    if len(wanted) * len(among) > _FEW:
        return set(among).issuperset(wanted)
    for one in wanted:  # noqa: SIM110
        if one not in among:
            return False
    return True


def _passes(values: Mapping[str, float], gates: Mapping[str, str]) -> bool:
    floors = all(values[name] >= float(gates[name]) for name in FLOORS)
    return floors and all(values[name] <= float(gates[name]) for name in CEILINGS)
