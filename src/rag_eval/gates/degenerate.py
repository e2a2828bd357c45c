"""Degenerate behaviour of a whole run, under which some metric cannot fall, whatever the answers are worth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from rag_eval.cases.labels import ABSENT, REFUSED
from rag_eval.errors import Finding, Level
from rag_eval.gates.integrity import ALMOST_ALL, FEWEST_CASES, LEVELS, at_levels
from rag_eval.scoring.scorecard import CITES_ALL, SAYS_ALL, CaseOutcome

_SILENT = ("MISSING", "ERROR", "ATTACK")
_CITING = ("precision", "hit_precision", "chr", "chr_answerable", "citation_recall")
_UNRANKED = ("citation_validity", "union_recall", "first_evidence_hop", "wasted_hops", "hop_recall@")
_UNCUT = re.compile(r"(?:recall|recall_all|recall_any)@([0-9]+)")


class Run(NamedTuple):
    """The outcomes of a run with their counts, and the gates that can fail it.

    ``gates`` are the names of the gates that can, ``pool`` is the length of a long list that all cases retrieve, 0
    without one. ``guards`` are the gates in every policy that applies. A gate that only the change has does not count,
    because the same change chose its threshold. ``guards`` is None if there is only one policy.
    """

    outcomes: Sequence[tuple[CaseOutcome, int]]
    gates: Collection[str]
    pool: int = 0
    guards: Collection[str] | None = None

    def guarded(self, *names: str) -> bool:
        """Return whether one of the gates decides instead."""
        return not set(names).isdisjoint(self.gates if self.guards is None else self.guards)


def findings(run: Run, levels: Mapping[str, str]) -> list[Finding]:
    """Return the degenerate behaviours of a run; ``levels`` are the policy's severities, error by default."""
    checks = _refuses_everything, _answers_everything, _padded, _padded_retrieval
    return at_levels((finding for check in checks for finding in check(run)), {**LEVELS, **levels})


def _refuses_everything(run: Run) -> Iterator[Finding]:
    refused, answered = _refused(run, answerable=True)
    if refused >= max(FEWEST_CASES, (refused + answered) * ALMOST_ALL):
        guarded = run.guarded("over_refusal", "answered_rate", "abstention_accuracy", "chr_answerable")
        share = f"all {refused}" if not answered else f"{refused} of {refused + answered}"
        message = f"{share} answerable questions were refused, so metrics of answers say nothing"
        fix = "Fix the system." if guarded else "Gate over_refusal, or fix the system."
        yield Finding("refuses-everything", "warning" if guarded else "error", message, fix)


def _answers_everything(run: Run) -> Iterator[Finding]:
    refused, answered = _refused(run, answerable=False)
    if answered >= FEWEST_CASES and not refused:
        guarded = run.guarded("under_refusal", "abstention_accuracy")
        message = f"all {answered} unanswerable questions were answered, so over_refusal cannot fail"
        fix = "Make the system refuse questions without an answer."
        fix = fix if guarded else f"Gate under_refusal. {fix}"
        yield Finding("answers-everything", "warning" if guarded else "error", message, fix)


def _padded(run: Run) -> Iterator[Finding]:
    answers = [row for row in run.outcomes if row[0].label not in (*REFUSED, *_SILENT)]
    n = sum(count for _, count in answers)
    says, cites = (
        sum(count for outcome, count in answers if outcome.behaviours & behaviour)
        for behaviour in (SAYS_ALL, CITES_ALL)
    )
    if says >= max(FEWEST_CASES, n * ALMOST_ALL):
        message = f"{says} of {n} answers also contain the expected text of most other questions"
        message += ", so precision says nothing"
        yield Finding("padded-answers", "error", message, "Make each answer address only its question.")
    if cites >= max(FEWEST_CASES, n * ALMOST_ALL):
        guarded = run.guarded("citation_precision")
        message = f"{cites} of {n} answers cite every retrieved chunk, so citation hits say nothing"
        level: Level = "warning" if guarded or not set(_CITING) & set(run.gates) else "error"
        fix = "cite only chunks that support the claim."
        fix = fix.capitalize() if guarded else f"Gate citation_precision, or {fix}"
        yield Finding("padded-citations", level, message, fix)


def _padded_retrieval(run: Run) -> Iterator[Finding]:
    spoken = sum(count for outcome, count in run.outcomes if outcome.label not in ABSENT)
    if run.pool and spoken >= FEWEST_CASES:
        cuts = {name: _UNCUT.fullmatch(name) for name in run.gates}
        beyond = {name for name, cut in cuts.items() if cut and int(cut[1]) >= run.pool}
        blind = sorted(name for name in run.gates if name in beyond or name.startswith(_UNRANKED))
        message = f"every question retrieves the same {run.pool} chunks"
        message += f", so {', '.join(blind)} cannot fail" if blind else ""
        level: Level = "error" if blind else "warning"
        yield Finding("padded-retrieval", level, message, "Write the ranked list that the answer is made from.")


def _refused(run: Run, *, answerable: bool) -> tuple[int, int]:
    """Return how many of the answerable or unanswerable questions were refused, and how many answered."""
    counts: Counter[bool] = Counter()
    for outcome, count in run.outcomes:
        if outcome.label not in _SILENT and (outcome.label in ("HALLUCINATION", "REFUSAL_OK")) is not answerable:
            counts[outcome.label in REFUSED] += count
    return counts[True], counts[False]
