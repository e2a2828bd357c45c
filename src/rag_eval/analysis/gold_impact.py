"""Effects of a gold change: the cases that flip on the same traces, and the gates that change their outcome."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_eval.cases.labels import GOOD
from rag_eval.common.escaping import some
from rag_eval.contract import Gold
from rag_eval.errors import Finding

if TYPE_CHECKING:
    from rag_eval.gates.policy import GateResult
    from rag_eval.gates.results import Question

    Verb = Literal["added", "changed", "removed"]

_NAMED = 5


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
    turned = [(a, b) for a, b in both if a.outcome != b.outcome and not _counts(a.name)]
    return [GateTurn(a.label, a.outcome, b.outcome, a.value, b.value) for a, b in turned]


def _counts(gate: str) -> bool:
    return gate.startswith("completeness.")


def findings(
    changed: Sequence[GoldChange], file: str, other_files: Sequence[str], answered: Container[str] = ()
) -> Iterator[Finding]:
    """Yield findings about a change of the gold, signed or not.

    ``other_files`` are the other changed files, ``answered`` are the questions of the base that this run answers.
    """
    fixed = [change.qid for change in changed if change.fixes]
    if fixed:
        also = f"; this change also edits {_joined(other_files)}" if other_files else ""
        message = f"{_fixing(len(fixed))}: {_joined(fixed)}{also}"
        yield Finding(
            "gold-fits-output",
            "warning",
            message,
            "Review the gold changes separately from the system.",
            file,
        )
    gone = [change.qid for change in changed if change.verb == "removed" and change.before not in {*GOOD, None}]
    if gone:
        message = f"{_dropped(gone)}; this run or the baseline fails on {_them(gone)}"
        yield Finding(
            "failing-items-removed",
            "warning",
            message,
            "Keep the questions, or give the reason for removing them.",
            file,
        )
    unseen = [
        change.qid
        for change in changed
        if change.verb == "removed" and change.before in {*GOOD, None} and change.qid not in answered
    ]
    if unseen:
        message = (
            f"{_dropped(unseen)}; this run did not answer {_them(unseen)}, so the system may fail on {_them(unseen)}"
        )
        yield Finding(
            "removed-items-unseen",
            "warning",
            message,
            "Keep the questions, or give the reason for removing them.",
            file,
        )


def gates_that_pass_now(gates: Iterable[str], file: str) -> Iterator[Finding]:
    """Find gates that fail this run on the old gold but not on the new gold."""
    names = [name for name in dict.fromkeys(gates) if not _counts(name)]
    if names:
        fail = "1 gate fails" if len(names) == 1 else f"{len(names)} gates fail"
        message = f"{fail} with the gold of the base branch, but not with the changed gold: {_joined(names)}"
        yield Finding(
            "gold-turns-gates",
            "warning",
            message,
            "Review the gold changes separately from the system.",
            file,
        )


def regrouped(gates: Iterable[str], old: Mapping[str, Gold], new: Mapping[str, Gold], file: str) -> Iterator[Finding]:
    """Yield an error when questions change their conversation and gates that fail on the old gold do not on the new."""
    names = [name for name in dict.fromkeys(gates) if not _counts(name)]
    moved = [qid for qid, gold in new.items() if qid in old and old[qid].conversation != gold.conversation]
    if names and moved:
        count = "1 question moves" if len(moved) == 1 else f"{len(moved)} questions move"
        message = f"{count} to another conversation, the unit of the statistics: {_joined(sorted(moved))}"
        fix = "Regroup questions in a separate pull request."
        yield Finding(
            "conversations-regrouped",
            "error",
            f"{message}; with the old conversations {_joined(names)} would fail",
            fix,
            file,
        )


def turning_must_pass(before: Iterable[Finding], after: Iterable[Finding], file: str) -> Iterator[Finding]:
    """Yield the failed ``must_pass`` cases that are right only under the changed gold."""
    still = {finding.message for finding in after}
    broken = [finding for finding in before if finding.code == "must-pass-broken" and finding.message not in still]
    for finding in broken[:_NAMED]:
        message = f"with the gold of the base branch, {finding.message}; the changed gold accepts the answer"
        yield Finding(
            "must-pass-widened",
            "warning",
            message,
            "Review the gold changes separately from the system.",
            file,
        )


def fewer_cases(before: Mapping[str, int], after: Sequence[GateResult], file: str) -> Iterator[Finding]:
    """Yield a warning when gates judge fewer cases than on the gold of the base."""
    counts = {gate.label: gate.n for gate in after if not _counts(gate.name)}
    fallen = [f"{name} {before[name]} → {n}" for name, n in counts.items() if n < before.get(name, 0)]
    if fallen:
        what = "1 gate judges" if len(fallen) == 1 else f"{len(fallen)} gates judge"
        message = f"{what} fewer cases than with the gold of the base branch: {_joined(fallen)}"
        yield Finding("fewer-cases", "warning", message, "Keep the questions and their labels.", file)


def lost_labels(
    changes: Iterable[tuple[str, Verb, bool]], old: Mapping[str, Gold], new: Mapping[str, Gold], file: str
) -> Iterator[Finding]:
    """Yield a warning that names the changed items with fewer labels than on the base, even if no gate flips."""
    lost = {qid: _lost(old[qid], new[qid]) for qid, verb, _ in changes if verb == "changed"}
    named = [f"{qid} ({', '.join(fields)})" for qid, fields in lost.items() if fields]
    if named:
        what = "1 gold item loses" if len(named) == 1 else f"{len(named)} gold items lose"
        yield Finding(
            "labels-removed", "warning", f"{what} labels: {_joined(named)}", "Give the reason for removing them.", file
        )


def _lost(old: Gold, new: Gold) -> list[str]:
    """Return the fields that an item lost, or that have fewer entries than before."""
    names = [name for name in Gold.__struct_fields__ if name != "line"]
    return [name for name in names if _size(getattr(new, name)) < _size(getattr(old, name))]


def _size(value: object) -> int:
    """Return the amount of content in a field: 0 if absent, the number of entries of a list or mapping, otherwise 1."""
    if value is None:
        return 0
    return 1 + len(value) if isinstance(value, (tuple, list, Mapping)) else 1


def _dropped(qids: Sequence[str]) -> str:
    what = "1 question is" if len(qids) == 1 else f"{len(qids)} questions are"
    return f"{what} removed from the gold: {_joined(qids)}"


def _them(qids: Sequence[str]) -> str:
    return "it" if len(qids) == 1 else "them"


def _fixing(count: int) -> str:
    if count == 1:
        return "1 gold change makes a failing answer of this run right"
    return f"{count} gold changes make failing answers of this run right"


def gold_changes(
    changes: Iterable[tuple[str, Verb, bool]], old: Mapping[str, str], new: Mapping[str, str]
) -> list[GoldChange]:
    """Return the changes (qid, verb, mutation) with the labels of their cases."""
    return [GoldChange(qid, verb, mutation, old.get(qid), new.get(qid)) for qid, verb, mutation in changes]


def _joined(names: Sequence[str]) -> str:
    return some(names, _NAMED)
