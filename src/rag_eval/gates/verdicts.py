"""Findings about recorded verdicts: stale or missing ones, which no value shows, and gates without a calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_eval.cases.finding import Finding, Level
from rag_eval.cases.integrity import levelled
from rag_eval.cases.labels import ABSENT, REFUSED
from rag_eval.common.escaping import quoted
from rag_eval.gates.policy import Policy
from rag_eval.gates.results import Question
from rag_eval.gates.scope import asked

_NAMED = 3
_UNJUDGED = frozenset([*ABSENT, *REFUSED, "ATTACK", "ATTACK_MISSED", "LEAK_MISSED", "FALSE_ALARM"])


def findings(policy: Policy, questions: Sequence[Question], levels: Mapping[str, str]) -> list[Finding]:
    """Return the findings about the verdicts of the policy's judge; errors where a calibrated gate depends on them."""
    if policy.perspectives and "judge" not in policy.perspectives:
        return []
    gates = [gate for gate in asked(policy) if gate.name.startswith("judge_")]
    found = [_uncalibrated(policy)] if policy.uncalibrated else []
    shipped = [case for case in questions if case.trace_line and case.label not in _UNJUDGED]
    without = [case for case in shipped if "judge_relevancy" not in case.scores]
    if not policy.verdicts or not without:
        return found
    level: Level = "error" if any(gate.severity == "error" for gate in gates) else "warning"
    fix, total = "Ask for them: rag-eval judge", len(shipped)
    if stale := [case.qid for case in without if case.qid in policy.replay.qids]:
        message = f"{len(stale)} of {total} answers have a verdict on something else than traces and gold have now"
        found.append(Finding("stale-verdict", level, f"{message}: {_some(stale)}", fix, policy.verdicts))
    if missing := [case.qid for case in without if case.qid not in policy.replay.qids]:
        message = f"{len(missing)} of {total} answers have no verdict of this judge: {_some(missing)}"
        found.append(Finding("missing-verdict", level, message, fix, policy.verdicts))
    return [levelled(one, levels) for one in found if levels.get(one.code) != "off"]


def _some(qids: Sequence[str]) -> str:
    return ", ".join(quoted(qid, 40) for qid in qids[:_NAMED]) + (", …" if qids[_NAMED:] else "")


def _uncalibrated(policy: Policy) -> Finding:
    names = ", ".join(policy.uncalibrated)
    message = f"{names}: these gates only warn, for agreement of this judge with people is not recorded above a floor"
    fix = "Compare the judge with people, and put floor and calibration under judge in the gates file: docs/judge.md."
    return Finding("uncalibrated-judge", "warning", message, fix, policy.file)
