"""The outcome of one case: its scores under all requested columns, its labels, its behaviours.

The features of a case are a small value on which most of its scores depend: cases with equal features score alike, and
most cases have those of an earlier one. Other scores are computed for each case: those of optional fields, and those of
texts in which a detector may find something.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from hashlib import sha256
from math import ceil
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rag_eval.cases import Case, coarse_label, is_blocked, label, refused_in_words, search_label
from rag_eval.cases.ranking import ranks_of
from rag_eval.contract import OPTIONAL, Gold, Settings, Trace, Usage
from rag_eval.metrics import Measure
from rag_eval.metrics.operations import unpriced
from rag_eval.scoring import CITES_ALL, SAYS_ALL, BaseCaseScorer, CaseOutcome, Scorer, Scores
from rag_eval.stats.sampling import draw_positions
from rag_eval.textual.leaks import suspects

K = TypeVar("K")
V = TypeVar("V")

_REMEMBERED = 50_000
_DRAWN = 500  # number of items from which probes are drawn
_ALMOST_ALL = 0.8  # share of the probes: a claim that answers this many answers every question
LEAST_CITED = 5  # honest systems also cite all of a shorter list
_PROBES, LEAST_PROBES = 10, 5  # questions on which a claim is tested; fewer than the minimum are no sample


Features = tuple[Any, ...]
Extract = tuple[Features, str, Sequence[str], frozenset[str]]
"""The features of a case, and what they were read from: the claim in lower case, retrieved and cited ids."""
_NONE: frozenset[str] = frozenset()
_OTHER_LABELS = attrgetter(
    "relevance_grades", "doc_grades", "relevant_docs", "supports", "sections", "expected_documents", "attack"
)


def has_features(gold: Gold) -> bool:
    """Return whether an item's only relevance labels are gold citations, and it is no attack."""
    return _OTHER_LABELS(gold) == (None,) * 7


def extract_features(gold: Gold, trace: Trace, settings: Settings) -> Extract:
    """Return the features of an answer without an error to an item that has features.

    They are read from the records directly, which is much faster than computing the scores.
    """
    answer = trace.answer_json
    given = trace.claim
    citations = trace.given_citations() if answer is None else answer.citations
    ids: Sequence[str] = trace.given_retrieved() if trace.retrieved_ids is None else trace.retrieved_ids
    if len(set(ids)) != len(ids):
        ids = tuple(dict.fromkeys(ids))
    claim = given.strip()
    lowered = claim.lower()
    refused = by_token = lowered == settings.token.lower()
    if not refused and (settings.phrases or settings.builtin):
        refused = refused_in_words(claim, settings)
    abstained, status = trace.abstained, None
    if (trace.guardrail is not None or trace.flags is not None) and is_blocked(trace.guardrail, trace.flags):
        abstained = True
    if abstained is not None:
        refused = abstained
    if abstained is not None or trace.ok is not None or trace.timed_out is not None:
        status = abstained, trace.ok, trace.timed_out
    cited = frozenset(citations) if citations else _NONE
    retrieved = len(cited.intersection(ids)) if cited else 0
    exact = refused and not cited and given == settings.token
    features: Features = status, refused, by_token, exact, citations is None, not claim, len(cited), retrieved
    if not gold.answerable:
        return features, lowered, ids, cited
    relevant = frozenset(gold.citations)
    contained = refused or not gold.substrings or any(map(lowered.__contains__, gold.substrings))
    return (*features, contained, len(relevant), len(relevant & cited), *ranks_of(relevant, ids)), lowered, ids, cited


class _Group(Struct, frozen=True):
    """Columns that need the same optional fields, and their positions among the scores of a case.

    ``of_trace`` and ``of_gold`` get the values of those fields; without one of them no column of the group applies.
    """

    of_trace: tuple[attrgetter[Any], ...]
    of_gold: tuple[attrgetter[Any], ...]
    columns: tuple[Measure, ...]
    begin: int
    end: int

    def applies(self, gold: Gold, trace: Trace) -> bool:
        """Return whether a case has all fields that the group needs."""
        for get in self.of_trace:
            if get(trace) is None:
                return False
        return not self.of_gold or all([get(gold) is not None for get in self.of_gold])


class CaseScorer(BaseCaseScorer):
    """Scores traces one by one. Its caches change no outcome."""

    def __init__(self, golds: Mapping[str, Gold], columns: Sequence[Measure], settings: Settings) -> None:
        self._settings = settings
        by: dict[str, list[Measure]] = {}
        for measure in columns:
            by.setdefault(measure.metric.depends_on, []).append(measure)
        self._of_features = by.get("features", [])
        self._of_ranking = by.get("ranking", [])
        self._of_text = [measure for measure in columns if measure.metric.depends_on in ("leaks", "labels")]
        self._groups = _grouped(by.get("case", []))
        self._plain_groups = [group for group in self._groups if not group.of_gold]
        in_groups = [measure for group in self._groups for measure in group.columns]
        self._no_case_scores: Scores = (None,) * len(in_groups)
        self.columns = tuple(
            [measure.column for measure in (*self._of_features, *self._of_ranking, *self._of_text, *in_groups)]
        )
        self.seeks_leaks = "leaks" in by
        self._known: dict[Features, CaseOutcome] = {}
        self._without_text: dict[Features, CaseOutcome] = {}
        self._by_ranking: dict[Any, Scores] = {}
        self._same: dict[Any, Any] = {}
        self._probes = _probes(golds)
        # A claim that is shorter than the answers need not be searched, which is true of most honest ones.
        self._shortest = sum(min(map(len, texts)) for texts in self._probes) * 4 // 5 if self._probes else sys.maxsize
        self._may_lack = len(self._probes) - ceil(len(self._probes) * _ALMOST_ALL)

    def suspects(self, traces: Sequence[Trace]) -> Collection[int]:
        """Return the indexes of traces in whose recorded answers a leak detector may find something, many at once."""
        return suspects([trace.recorded for trace in traces], self._settings.safety) if self.seeks_leaks else ()

    def score(self, gold: Gold, trace: Trace, is_suspect: bool) -> CaseOutcome:
        """Return the outcome of a trace under its gold item."""
        is_plain = gold.is_plain
        if trace.error is not None or not (is_plain or has_features(gold)):
            return self._score_exactly(gold, trace)
        features, claim, retrieved, cited = extract_features(gold, trace, self._settings)
        needs_text = self._of_text and (
            is_suspect
            or not is_plain
            or trace.chunks is not None
            or trace.guardrail is not None
            or trace.flags is not None
        )
        known = self._without_text if needs_text else self._known
        outcome = known.get(features)
        groups = self._plain_groups if is_plain else self._groups
        if groups:
            groups = [group for group in groups if group.applies(gold, trace)]
        behaviours = 0
        if len(cited) >= LEAST_CITED or len(claim) >= self._shortest:
            behaviours = self._behaviours(claim, retrieved, cited, gold.citations)
        is_decided = not (needs_text or groups or behaviours)  # by the features
        if outcome is not None and is_decided:
            return outcome
        case = Case(gold, trace, self._settings)
        if outcome is None:
            outcome = _remember(known, features, self._outcome(case, with_text=not needs_text))
        if is_decided:
            return outcome
        scores = outcome.scores
        if needs_text:
            scores = (*scores, *[measure.score(case) for measure in self._of_text])
        case_scores = self._case_scores(groups, case)
        return self.intern(replace(outcome, scores=scores, behaviours=behaviours, case_scores=case_scores))

    def score_missing(self, gold: Gold) -> CaseOutcome:
        """Return the outcome of an item without a trace: that of an empty answer that is no refusal."""
        if not gold.is_plain:
            return self._score_exactly(gold, Trace.missing(gold.qid))
        features = ("missing", gold.answerable, len(gold.citations), not gold.substrings)
        outcome = self._known.get(features)
        return outcome or _remember(self._known, features, self._score_exactly(gold, Trace.missing(gold.qid)))

    def _score_exactly(self, gold: Gold, trace: Trace) -> CaseOutcome:
        """Return the outcome without regard to features."""
        case = Case(gold, trace, self._settings)
        behaviours = self._behaviours(case.claim.lower(), trace.retrieved, frozenset(case.cites), case.cited_evidence)
        groups = [group for group in self._groups if group.applies(gold, trace)]
        outcome = self._outcome(case, with_text=True)
        return replace(outcome, behaviours=behaviours, case_scores=self._case_scores(groups, case))

    def _outcome(self, case: Case, *, with_text: bool) -> CaseOutcome:
        """Return the outcome as far as the features decide it, with or without the scores of texts."""
        scores = [measure.score(case) for measure in self._of_features]
        key = case.is_answerable, case.ranking if case.is_answerable else None
        ranked = self._by_ranking.get(key)
        if ranked is None:
            ranked = _remember(self._by_ranking, key, tuple([measure.score(case) for measure in self._of_ranking]))
        text = [measure.score(case) for measure in self._of_text] if with_text else ()
        level = case.ranking.level if case.is_answerable and case.ranking else ""
        labels = label(case), coarse_label(case), level
        return self.intern(CaseOutcome((*scores, *ranked, *text), *labels, 0, self._no_case_scores, search_label(case)))

    def _case_scores(self, groups: Sequence[_Group], case: Case) -> Scores:
        if not groups:
            return self._no_case_scores
        scores = list(self._no_case_scores)
        for group in groups:
            scores[group.begin : group.end] = [measure.score(case) for measure in group.columns]
        return tuple(scores)

    def intern(self, outcome: CaseOutcome) -> CaseOutcome:
        """Return the one object for all equal outcomes, or at least one with the one object for equal scores."""
        if known := self._same.get(outcome):
            return known  # type: ignore[no-any-return]
        outcome = replace(outcome, scores=_remember(self._same, outcome.scores, outcome.scores))
        return _remember(self._same, outcome, outcome)  # type: ignore[no-any-return]

    def _behaviours(
        self, claim: str, retrieved: Sequence[str], cited: frozenset[str], evidence: Collection[str]
    ) -> int:
        """Return the behaviours of an answer that :mod:`rag_eval.gates.integrity` checks."""
        cites_all = LEAST_CITED <= len(retrieved) <= len(cited) and cited.issuperset(retrieved)
        behaviours = CITES_ALL if cites_all and not set(evidence).issuperset(retrieved) else 0
        if len(claim) < self._shortest:
            return behaviours
        lacking = 0  # probes whose question the claim does not answer
        for texts in self._probes:
            for text in texts:
                if text in claim:
                    break
            else:
                lacking += 1
                if lacking > self._may_lack:
                    return behaviours
        return behaviours | SAYS_ALL

    def unpriced(self, usage: Usage) -> str:
        """Return the model whose tokens are counted and have no price; empty if there is none."""
        return unpriced(usage, self._settings)


def _grouped(columns: Iterable[Measure]) -> list[_Group]:
    """Return columns grouped by the optional fields that they need, with their positions among the scores."""
    by_needs: dict[tuple[str, ...], list[Measure]] = {}
    for measure in columns:
        by_needs.setdefault(tuple([name for name in measure.metric.needs if name in OPTIONAL]), []).append(measure)
    groups: list[_Group] = []
    for needs, members in by_needs.items():
        # Citations may also be in the text of an answer, so no field shows whether there are any.
        fields = dict.fromkeys([OPTIONAL[name] for name in needs if name != "trace.citations"])
        of_trace, of_gold = [
            tuple([attrgetter(name.removeprefix(side)) for name in fields if name.startswith(side)])
            for side in ("trace.", "gold.")
        ]
        begin = groups[-1].end if groups else 0
        groups.append(_Group(of_trace, of_gold, tuple(members), begin, begin + len(members)))
    return groups


def _probes(golds: Mapping[str, Gold]) -> list[tuple[str, ...]]:
    """Return the substrings of some questions with different answers, drawn by all qids; none if too few."""
    probes: dict[tuple[str, ...], None] = {}
    names = sorted(golds)
    seed = sha256("\n".join(names).encode("utf-8", "surrogatepass")).hexdigest()
    for index in draw_positions(len(names), _DRAWN, seed):
        substrings = golds[names[index]].substrings
        if substrings and not any([set(substrings) & set(probe) for probe in probes]):
            probes[substrings] = None
        if len(probes) == _PROBES:
            break
    return list(probes) if len(probes) >= LEAST_PROBES else []


def _remember(known: dict[K, V], key: K, value: V) -> V:
    """Return ``known[key]``, which becomes ``value`` if it is new. Bounded: memory must not grow with the traces."""
    if len(known) >= _REMEMBERED and key not in known:
        known.clear()
    return known.setdefault(key, value)


def metric_scorer(
    golds: Mapping[str, Gold], measures: Sequence[Measure], settings: Settings, ignored: Container[str] = ()
) -> Scorer:
    """Return a scorer of traces by metrics. Aggregations of a metric share its scores."""
    columns = {measure.column: measure for measure in measures if measure.metric.level == "case"}.values()
    return Scorer(golds, CaseScorer(golds, list(columns), settings), measures, ignored)
