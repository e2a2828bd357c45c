"""Effects of a gold change: the cases that flip on the same traces, and the gates that change their outcome."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_eval.cases import GOOD
from rag_eval.common.escaping import quantity, some
from rag_eval.contract import Gold
from rag_eval.errors import Finding

if TYPE_CHECKING:
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import Question

    Verb = Literal["added", "changed", "removed"]

_NAMED, _COUNTS = 5, "completeness."
_SEPARATELY = "Review the gold changes separately from the system."
_REASON = "Keep the questions, or give the reason for removing them."


class GoldChange(NamedTuple):
    """A changed gold item, and the label of its case on these traces before and after.

    ``before`` is None for an added item, ``after`` for a removed one; both are None if the old gold could not be
    scored. If no trace answers a removed item, ``before`` is its label in the baseline, None if it has none there.
    """

    qid: str
    verb: Verb
    mutation: bool
    before: str | None
    after: str | None

    @property
    def fixes(self) -> bool:
        """Return whether a failing case passes under the new item."""
        return self.before is not None and self.before not in GOOD and self.after in GOOD

    @property
    def flips(self) -> bool:
        """Return whether the case passes under one item and fails under the other."""
        return None not in (self.before, self.after) and (self.before in GOOD) != (self.after in GOOD)


class GateTurn(NamedTuple):
    """A gate whose outcome on these traces depends on the change of the gold."""

    name: str
    before: str
    after: str
    value_before: float | None
    value_after: float | None


def labels(cases: Iterable[Question]) -> dict[str, str]:
    """Return the label of each qid, with several runs the first failing one."""
    by_qid: dict[str, str] = {}
    for case in cases:
        if case.qid not in by_qid or by_qid[case.qid] in GOOD:
            by_qid[case.qid] = case.label
    return by_qid


def gate_turns(before: Sequence[GateResult], after: Sequence[GateResult]) -> list[GateTurn]:
    """Return the gates of one policy whose outcome differs between the old gold and the new one.

    Completeness is left out, because the change adds and removes questions.
    """
    old = {(item.label, item.direction): item for item in before}
    both = [(old[item.label, item.direction], item) for item in after if (item.label, item.direction) in old]
    turned = [(a, b) for a, b in both if a.outcome != b.outcome and not a.name.startswith(_COUNTS)]
    return [GateTurn(a.label, a.outcome, b.outcome, a.value, b.value) for a, b in turned]


def findings(
    changed: Sequence[GoldChange], file: str, other_files: Sequence[str], answered: Container[str] = ()
) -> Iterator[Finding]:
    """Yield findings about a change of the gold, signed or not.

    ``other_files`` are the other changed files, ``answered`` are the questions of the base that this run answers.
    """
    fixed = [change.qid for change in changed if change.fixes]
    if fixed:
        also = f"; this change also edits {_joined(other_files)}" if other_files else ""
        makes = "makes a failing answer" if len(fixed) == 1 else "make failing answers"
        message = f"{quantity(len(fixed), 'gold change')} {makes} of this run right: {_joined(fixed)}{also}"
        yield Finding("gold-fits-output", "warning", message, _SEPARATELY, file)
    removed = [change for change in changed if change.verb == "removed"]
    gone = [change.qid for change in removed if change.before not in {*GOOD, None}]
    if gone:
        message = f"{_dropped(gone)}; this run or the baseline fails on {_them(gone)}"
        yield Finding("failing-items-removed", "warning", message, _REASON, file)
    unseen = [change.qid for change in removed if change.before in {*GOOD, None} and change.qid not in answered]
    if unseen:
        them = _them(unseen)
        message = f"{_dropped(unseen)}; this run did not answer {them}, so the system may fail on {them}"
        yield Finding("removed-items-unseen", "warning", message, _REASON, file)


def gates_that_pass_now(gates: Iterable[str], file: str) -> Iterator[Finding]:
    """Find gates that fail this run on the old gold but not on the new gold."""
    names = _without_counts(gates)
    if names:
        fail = f"{quantity(len(names), 'gate')} {'fails' if len(names) == 1 else 'fail'}"
        message = f"{fail} with the gold of the base branch, but not with the changed gold: {_joined(names)}"
        yield Finding("gold-turns-gates", "warning", message, _SEPARATELY, file)


def regrouped(gates: Iterable[str], old: Mapping[str, Gold], new: Mapping[str, Gold], file: str) -> Iterator[Finding]:
    """Yield an error when questions change their conversation and gates that fail on the old gold do not on the new."""
    names = _without_counts(gates)
    moved = [qid for qid, gold in new.items() if qid in old and old[qid].conversation != gold.conversation]
    if names and moved:
        count = f"{quantity(len(moved), 'question')} {'moves' if len(moved) == 1 else 'move'}"
        message = f"{count} to another conversation, the unit of the statistics: {_joined(sorted(moved))}"
        message += f"; with the old conversations {_joined(names)} would fail"
        yield Finding(
            "conversations-regrouped", "error", message, "Regroup questions in a separate pull request.", file
        )


def turning_must_pass(before: Iterable[Finding], after: Iterable[Finding], file: str) -> Iterator[Finding]:
    """Yield the failed ``must_pass`` cases that are right only under the changed gold."""
    still = {finding.message for finding in after}
    broken = [finding for finding in before if finding.code == "must-pass-broken" and finding.message not in still]
    for finding in broken[:_NAMED]:
        message = f"with the gold of the base branch, {finding.message}; the changed gold accepts the answer"
        yield Finding("must-pass-widened", "warning", message, _SEPARATELY, file)


def fewer_cases(before: Mapping[str, int], after: Sequence[GateResult], file: str) -> Iterator[Finding]:
    """Yield a warning when gates judge fewer cases than on the gold of the base; a slice may have none any more."""
    now = {gate.label: gate.n for gate in after}
    both = [(name, n, now.get(name, 0)) for name, n in before.items() if not name.startswith(_COUNTS)]
    fallen = [f"{name} {then} → {n}" for name, then, n in both if n < then]
    if fallen:
        what = f"{quantity(len(fallen), 'gate')} {'judges' if len(fallen) == 1 else 'judge'}"
        message = f"{what} fewer cases than with the gold of the base branch: {_joined(fallen)}"
        yield Finding("fewer-cases", "warning", message, "Keep the questions and their labels.", file)


def lost_labels(
    changes: Iterable[tuple[str, Verb, bool]], old: Mapping[str, Gold], new: Mapping[str, Gold], file: str
) -> Iterator[Finding]:
    """Yield a warning that names the changed items with fewer labels than on the base, even if no gate flips."""
    named = []
    for qid in (qid for qid, verb, _ in changes if verb == "changed"):
        names = [name for name in Gold.__struct_fields__ if name != "line"]
        lost = [name for name in names if _size(getattr(new[qid], name)) < _size(getattr(old[qid], name))]
        named += [f"{qid} ({', '.join(lost)})"] if lost else []
    if named:
        message = (
            f"{quantity(len(named), 'gold item')} {'loses' if len(named) == 1 else 'lose'} labels: {_joined(named)}"
        )
        yield Finding("labels-removed", "warning", message, "Give the reason for removing them.", file)


def _size(value: object) -> int:
    """Return the amount of content in a field: 0 if absent, the number of entries of a list or mapping, otherwise 1."""
    if value is None:
        return 0
    return 1 + len(value) if isinstance(value, (tuple, list, Mapping)) else 1


def _without_counts(gates: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(gates) if not name.startswith(_COUNTS)]


def _dropped(qids: Sequence[str]) -> str:
    return (
        f"{quantity(len(qids), 'question')} {'is' if len(qids) == 1 else 'are'} removed from the gold: {_joined(qids)}"
    )


def _them(qids: Sequence[str]) -> str:
    return "it" if len(qids) == 1 else "them"


def _joined(names: Sequence[str]) -> str:
    return some(names, _NAMED)


def gold_changes(
    changes: Iterable[tuple[str, Verb, bool]], old: Mapping[str, str], new: Mapping[str, str]
) -> list[GoldChange]:
    """Return the changes (qid, verb, mutation) with the labels of their cases."""
    return [GoldChange(qid, verb, mutation, old.get(qid), new.get(qid)) for qid, verb, mutation in changes]
