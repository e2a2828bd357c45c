"""The inputs of a verdict: the files that were read, and notes on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.metrics import measure
from rag_eval.metrics.index import contradictions

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.gates.policy import Policy
    from rag_eval.scoring.scorecard import Scorecard


_OF_QUESTIONS = ("answers", "refusals", "citations", "retrieval", "context", "groundedness")
"""The perspectives in which safety cases count for nothing."""


class Input(NamedTuple):
    """An input file: its purpose, its name, and the sha256 of its bytes."""

    role: str
    path: str
    sha256: str


class InputNote(NamedTuple):
    """A note on the inputs for readers of the verdict."""

    file: str
    line: int
    message: str
    times: int


def remarks(
    card: Scorecard, golds: Mapping[str, Gold], policy: Policy, about: Mapping[str, Any], inputs: Iterable[Input]
) -> Iterator[InputNote]:
    """Yield notes on how the cases were scored and on run.json (``about``)."""
    by_documents = sum(count for outcome, count in card.cases.outcome_counts if outcome.level == "doc")
    if by_documents:
        yield InputNote("retrieval", 0, "judged by documents because the items have no labels on chunks", by_documents)
    yield from _only_attacks(golds, policy)
    if policy.prices or any(gate.name.startswith("cost_usd") for gate in policy.gates):
        message = "has no price, so its cases have no cost_usd; add it to prices in the gates file"
        yield from (InputNote(f"model {quoted(model, 60)}", 0, message, 1) for model in card.unpriced)
    path = next((file.path for file in inputs if file.role == "run"), "run.json")
    yield from (InputNote(path, 0, message, 1) for message in contradictions(about))


def _only_attacks(golds: Mapping[str, Gold], policy: Policy) -> Iterator[InputNote]:
    """Note that gates on answers have no cases if every item is a safety case."""
    gated = dict.fromkeys(gate.name for gate in policy.gates)
    idle = [name for name in gated if measure(name).metric.perspective in _OF_QUESTIONS]
    if idle and golds and all(gold.attack is not None for gold in golds.values()):
        shown = ", ".join(idle[:5])
        text = f"all items are safety cases, which {shown} do not judge; gate metrics such as injection_auc instead"
        yield InputNote("gates", 0, text, len(golds))
