"""The lint rules on the gold items that a change adds or edits: an item that any answer fits judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rag_eval.cases.finding import Finding
from rag_eval.common.digests import Digests
from rag_eval.gold.lint import CHECKS, Sample, watch
from rag_eval.readers.problems import Ledger
from rag_eval.run.inputs import paired_traces

if TYPE_CHECKING:
    from rag_eval.gold.lint import Seen
    from rag_eval.governance.base_gold import GoldDiff
    from rag_eval.governance.review_context import ReviewContext
    from rag_eval.readers.gold_set import GoldSet
    from rag_eval.run.scored import ScoredRun

    Found = dict[tuple[str, str, str], int]

RULES = (
    "no-substr",
    "substr-white-space",
    "substr-character",
    "substr-refusal",
    "substr-in-question",
    "substr-stop-words",
    "substr-in-citation",
    "substr-common",
    "no-citation",
    "expected-without-substr",
    "question-blank",
)
"""The rules of `gold lint` that say that an item judges too little."""

_SHOWN = 5
_ANSWERS = 20_000  # of the run that a substring is looked for in


def findings(diff: GoldDiff, context: ReviewContext) -> Iterator[Finding]:
    """Yield a warning for each thing that `gold lint` finds in the changed items and not in what they were."""
    qids = [change.qid for change in diff.changes if change.verb != "removed"]
    if not qids or diff.old is None or diff.new is None:
        return
    seen = _answers(context.run)
    known = _lint(diff.old, qids, context, seen)
    new = {key: line for key, line in _lint(diff.new, qids, context, seen).items() if key not in known}
    for (code, qid, message), line in list(new.items())[:_SHOWN]:
        where = f"{qid}: " if qid else "of the changed items "
        more = f" (and {len(new) - _SHOWN} more such remarks)" if len(new) > _SHOWN else ""
        text = f"{where}{message} ({code}){more}"
        fix = "Make the item judge the answer; rag-eval gold lint lists all such items."
        yield Finding("changed-item-weak", "warning", text, fix, context.head.gold, line)


def _answers(run: ScoredRun) -> Seen:
    """Return what the first traces answered."""
    inputs = run.inputs
    silent = inputs.reader._replace(ledger=Ledger())
    found = paired_traces(silent, inputs.golds, inputs.policy.trace, Digests())
    return watch(inputs.golds, islice(found, _ANSWERS), inputs.policy.settings)


def _lint(golds: GoldSet, qids: Iterable[str], context: ReviewContext, seen: Seen) -> Found:
    sample = Sample([(golds.golds[qid], {}) for qid in qids if qid in golds.golds], context.base or context.head, seen)
    found = {}
    for code in RULES:
        for remark in CHECKS[code](sample):
            gold = remark.gold
            found[code, gold.qid if gold else "", remark.message] = gold.line if gold else 0
    return found
