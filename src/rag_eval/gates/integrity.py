"""Integrity checks: behaviour under which some metric cannot fall, whatever the answers are worth."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rag_eval.cases.labels import ABSENT, REFUSED
from rag_eval.cases.ranking import evidence_level
from rag_eval.common.escaping import quoted
from rag_eval.contract import Gold
from rag_eval.errors import Finding, Level
from rag_eval.scoring.scorer import CITES_ALL, SAYS_ALL, CaseOutcome

WHOLE_RUN_CHECKS = (
    "refuses-everything",
    "answers-everything",
    "padded-answers",
    "constant-answers",
    "padded-citations",
    "padded-retrieval",
)
"""Those that are about all cases together: a part of the questions may look so by chance."""

LEVELS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *WHOLE_RUN_CHECKS,
            "partly-measured",
            "stale-traces",
            "other-gold",
            "stale-verdict",
            "missing-verdict",
            "changed-verdict",
            "ids-changed",
        ),
        "error",
    ),
    "vacuous-gold": "warning",
    "injected-instructions": "off",
}
"""What is looked for, and how grave it is; ``integrity`` in eval-gates.yml may say otherwise of each."""

ALMOST_ALL = 0.9  # of the cases; one decoy must not hide a behaviour
FEWEST_CASES = 3  # cases; with fewer, equal answers may be chance
_SILENT = ("MISSING", "ERROR", "ATTACK")
_CITING = ("precision", "hit_precision", "chr", "chr_answerable", "citation_recall")
_DESCRIBED = re.compile(r"(?:.*-[0-9]+-g)?([0-9a-f]{7,64})(?:-dirty|-broken)?")
_UNRANKED = ("citation_validity", "union_recall", "first_evidence_hop", "wasted_hops")
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
    wanted = {**LEVELS, **levels}
    findings = [finding for check in _CHECKS for finding in check(run)]
    return [levelled(finding, wanted) for finding in findings if wanted[finding.code] != "off"]


class TraceOrigin(NamedTuple):
    """The origin of the traces: path and content of run.json, and the gold and commits that are valid."""

    file: str
    about: Mapping[str, Any]
    golds: Collection[str]
    commits: Collection[str] = ()


def provenance(origin: TraceOrigin, levels: Mapping[str, str]) -> list[Finding]:
    """Find traces that, according to run.json, are of another commit or answer another gold set."""
    findings, file = [], origin.file
    answered, commit = origin.about.get("gold_sha256"), commit_of(origin.about)
    if answered and answered.lower() not in origin.golds:
        message = "stale run: the traces answer another gold set"
        findings.append(Finding("other-gold", "error", message, "Run the system on this gold set.", file))
    if commit and origin.commits and not any(known.startswith(commit) for known in origin.commits):
        message = f"stale run: the traces come from commit {quoted(commit, 40)}, not from the commit under test"
        findings.append(Finding("stale-traces", "error", message, "Run the system at the commit under test.", file))
    return [levelled(finding, levels) for finding in findings if levels[finding.code] != "off"]


def vacuous(golds: Iterable[Gold], file: str, levels: Mapping[str, str]) -> list[Finding]:
    """Return the finding that items accept any answer as right, because they have no substrings or citations."""
    counted = (gold for gold in golds if gold.answerable and gold.attack is None)
    asked = [not (gold.substrings or evidence_level(gold)) for gold in counted]
    if not any(asked) or levels["vacuous-gold"] == "off":
        return []
    message = f"{sum(asked)} of {len(asked)} answerable items have no expected text and no evidence"
    message += ", so precision counts any answer to them as right"
    fix = "Add gold_claim_substr, gold_citations or other evidence to the items, or gate other metrics."
    return [levelled(Finding("vacuous-gold", "error", message, fix, file), levels)]


def commit_of(about: Mapping[str, Any]) -> str:
    """Return the commit id that run.json names in lower case, empty for none.

    From the output of ``git describe``, such as ``v1.2-5-g9f2c1ab-dirty``, only the id is returned.
    """
    text = str(about.get("system_commit") or "").strip().lower()
    described = _DESCRIBED.fullmatch(text)
    return described[1] if described else text


def levelled(finding: Finding, levels: Mapping[str, str]) -> Finding:
    """Return the finding at the level of the policy."""
    return finding._replace(level="warning") if levels.get(finding.code) == "warning" else finding


def _refuses_everything(run: Run) -> Iterator[Finding]:
    refused, answered = _split(run, lambda label: label not in ("HALLUCINATION", "REFUSAL_OK"))
    if refused >= max(FEWEST_CASES, (refused + answered) * ALMOST_ALL):
        guards = "over_refusal", "answered_rate", "abstention_accuracy", "chr_answerable"
        share = f"all {refused}" if not answered else f"{refused} of {refused + answered}"
        message = f"{share} answerable questions were refused, so metrics of answers say nothing"
        fix = "Fix the system." if run.guarded(*guards) else "Gate over_refusal, or fix the system."
        yield Finding("refuses-everything", _level(run, *guards), message, fix)


def _answers_everything(run: Run) -> Iterator[Finding]:
    refused, answered = _split(run, lambda label: label in ("HALLUCINATION", "REFUSAL_OK"))
    if answered >= FEWEST_CASES and not refused:
        guards = "under_refusal", "abstention_accuracy"
        message = f"all {answered} unanswerable questions were answered, so over_refusal cannot fail"
        fix = "Make the system refuse questions without an answer."
        fix = fix if run.guarded(*guards) else f"Gate under_refusal. {fix}"
        yield Finding("answers-everything", _level(run, *guards), message, fix)


def _padded_answers(run: Run) -> Iterator[Finding]:
    padded, answers = _behaving(run, SAYS_ALL)
    if padded >= max(FEWEST_CASES, answers * ALMOST_ALL):
        message = f"{padded} of {answers} answers also contain the expected text of most other questions"
        message += ", so precision says nothing"
        yield Finding("padded-answers", "error", message, "Make each answer address only its question.")


def _padded_citations(run: Run) -> Iterator[Finding]:
    padded, answers = _behaving(run, CITES_ALL)
    if padded >= max(FEWEST_CASES, answers * ALMOST_ALL):
        guarded = run.guarded("citation_precision")
        message = f"{padded} of {answers} answers cite every retrieved chunk, so citation hits say nothing"
        level: Level = "warning" if guarded or not set(_CITING) & set(run.gates) else "error"
        fix = (
            "Cite only chunks that support the claim."
            if guarded
            else "Gate citation_precision, or cite only chunks that support the claim."
        )
        yield Finding("padded-citations", level, message, fix)


def _padded_retrieval(run: Run) -> Iterator[Finding]:
    spoken = sum(count for outcome, count in run.outcomes if outcome.label not in ABSENT)
    if run.pool and spoken >= FEWEST_CASES:
        blind = sorted(name for name in run.gates if _blind(name, run.pool))
        message = f"every question retrieves the same {run.pool} chunks"
        message += f", so {', '.join(blind)} cannot fail" if blind else ""
        level: Level = "error" if blind else "warning"
        yield Finding("padded-retrieval", level, message, "Write the ranked list that the answer is made from.")


_CHECKS: tuple[Callable[[Run], Iterator[Finding]], ...] = (
    _refuses_everything,
    _answers_everything,
    _padded_answers,
    _padded_citations,
    _padded_retrieval,
)


def _behaving(run: Run, behaviour: int) -> tuple[int, int]:
    """Return how many answers show a behaviour, and how many there are."""
    answers = [
        (outcome.behaviours & behaviour, count)
        for outcome, count in run.outcomes
        if outcome.label not in (*REFUSED, *_SILENT)
    ]
    return sum(count for has, count in answers if has), sum(count for _, count in answers)


def _split(run: Run, meant: Callable[[str], bool]) -> tuple[int, int]:
    """Return how many of the cases with these labels are refused, and how many answered."""
    counts = [
        (outcome.label in REFUSED, count)
        for outcome, count in run.outcomes
        if outcome.label not in _SILENT and meant(outcome.label)
    ]
    return sum(count for refused, count in counts if refused), sum(count for refused, count in counts if not refused)


def _level(run: Run, *guards: str) -> Level:
    """Return ``warning`` if a gate already guards against it, otherwise ``error``."""
    return "warning" if run.guarded(*guards) else "error"


def _blind(name: str, pool: int) -> bool:
    cut = _UNCUT.fullmatch(name)
    return name in _UNRANKED or name.startswith("hop_recall@") or (cut is not None and int(cut[1]) >= pool)
