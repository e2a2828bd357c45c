"""A run for some perspectives alone, or for a part of the questions: its policy, its metrics, and its baseline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rag_eval.gates.results import QuestionList

if TYPE_CHECKING:
    from rag_eval.analysis.report import Earlier
    from rag_eval.gates.policy import Policy
    from rag_eval.gates.results import Question
    from rag_eval.metrics import Measure


def narrowed(policy: Policy, perspectives: Sequence[str], suite: str) -> Policy:
    """The policy for a part of the run; as it is where none is named. UsageError where there is no such part.

    A part of the questions may refuse everything by chance: habits of the whole are warned of then.
    """
    if perspectives:
        from rag_eval.metrics import perspectives_of

        policy = policy._replace(perspectives=perspectives_of(perspectives))
    if suite == policy.suite:
        return policy
    from rag_eval.cases.integrity import HABITS
    from rag_eval.gates.scope import suite_named

    warned = {code: "off" if policy.integrity.get(code) == "off" else "warning" for code in HABITS}
    return policy._replace(suite=suite_named(suite), integrity={**policy.integrity, **warned})


def within(measures: tuple[Measure, ...], policy: Policy) -> tuple[Measure, ...]:
    """The measures of the perspectives that a policy asks for."""
    wanted = policy.perspectives
    return tuple(one for one in measures if one.metric.perspective in wanted) if wanted else measures


def of_suite(earlier: Earlier, aside: Collection[str]) -> Earlier:
    """The baseline without the questions that a suite leaves aside, and without the values that count them in."""
    if not aside:
        return earlier

    def kept(cases: Sequence[Question]) -> QuestionList:
        return QuestionList(case for case in cases if case.qid not in aside)

    recorded, runs = earlier.recorded, _of_runs()
    own = {name: result for name, result in recorded.metrics.items() if name in runs}
    questions = kept(recorded.questions)
    cases = questions if earlier.questions is recorded.questions else kept(earlier.questions)
    return earlier._replace(recorded=recorded._replace(questions=questions, metrics=own), questions=cases)


def _of_runs() -> set[str]:
    """The names of what is measured of run.json, whatever the questions."""
    from rag_eval.metrics import measures

    return {one.name for one in measures(()) if one.metric.level == "run"}
