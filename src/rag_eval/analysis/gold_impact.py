"""Effects of a gold change: the cases that flip on the same traces, and the gates that change their outcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Literal, NamedTuple

from rag_eval.cases import GOOD
from rag_eval.common.escaping import one_line, quantity, some
from rag_eval.contract import Gold, content_of
from rag_eval.errors import Finding, Note
from rag_eval.gates import MARGINS, GateResult
from rag_eval.gates.questions import Question
from rag_eval.gates.selection import field_values

_Verb = Literal["added", "changed", "reformatted", "removed"]
_NAMED, _SHORT, _LONG = 5, 24, 300
_FIELDS = dict(zip(Gold.__struct_fields__, Gold.__struct_encode_fields__, strict=True))
"""The name in a file by the name in a record."""
del _FIELDS["line"]
_SEPARATELY = "Review the gold changes separately from the system."


class GoldChange(NamedTuple):
    """An edited gold item, and the label of its case on these traces before and after; a mutation changes its question.

    A reformatted item has the same content in other bytes, so it needs a sign-off, but no score can change.
    ``before`` is None for an added item, ``after`` for a removed one; both are None if the old gold could not be
    scored. If no trace answers a removed item, ``before`` is its label in the baseline, None if it has none there.
    """

    qid: str
    verb: _Verb
    mutation: bool = False
    before: str | None = None
    after: str | None = None

    @property
    def fixes(self) -> bool:
        """Return whether a failing case passes under the new item."""
        return self.flips and self.after in GOOD

    @property
    def flips(self) -> bool:
        """Return whether the case passes under one item and fails under the other."""
        return None not in (self.before, self.after) and (self.before in GOOD) != (self.after in GOOD)

    @property
    def fails(self) -> bool:
        """Return whether the case is known to fail under one of the items."""
        return not {self.before, self.after} <= {*GOOD, None}


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
    turned = [(a, b) for a, b in both if a.outcome != b.outcome and not a.is_completeness]
    return [GateTurn(a.label, a.outcome, b.outcome, a.value, b.value) for a, b in turned]


def findings(
    changed: Sequence[GoldChange],
    file: str,
    other_files: Sequence[str],
    answered: Container[str] = (),
    old: Mapping[str, Gold] = MappingProxyType({}),
    new: Mapping[str, Gold] = MappingProxyType({}),
) -> Iterator[Finding]:
    """Yield findings about a change of the gold, signed or not.

    ``other_files`` are the other changed files, ``answered`` are the questions of the base that this run answers,
    ``old`` and ``new`` the gold items. The answer to a removed item may have another qid.
    """
    if fixed := [change.qid for change in changed if change.fixes]:
        fields = {name for qid in fixed if qid in old and qid in new for name in changed_fields(old[qid], new[qid])}
        what = f" (changed: {', '.join(sorted(fields))})" if fields else ""
        also = f"; this change also edits {_joined(other_files)}" if other_files else ""
        makes = quantity(len(fixed), "gold change makes a failing answer", "gold changes make failing answers")
        message = f"{makes} of this run right: {_joined(fixed)}{what}{also}"
        yield Finding("gold-fits-output", "warning", message, _SEPARATELY, file)
    added: dict[str, bool] = {}  # whether an added item with this content fails
    for change in changed:
        if change.verb == "added" and change.qid in new:
            content = _content(new[change.qid])
            added[content] = added.get(content, False) or change.fails
    gone, renamed, unseen = list[str](), list[str](), list[str]()
    for change in changed:
        if change.verb == "removed" and (change.fails or change.qid not in answered):
            fails_again = added.get(_content(old[change.qid])) if change.qid in old else None
            group = gone if change.fails or fails_again else unseen if fails_again is None else renamed
            group.append(change.qid)
    for code, qids, why in (
        ("failing-items-removed", gone, "this run or the baseline fails on {0}"),
        ("removed-items-unseen", renamed, "the gold has the same with other qids"),
        ("removed-items-unseen", unseen, "this run did not answer {0}, so the system may fail on {0}"),
    ):
        if qids:
            are = quantity(len(qids), "question is", "questions are")
            why = why.format("it" if len(qids) == 1 else "them")
            message = f"{are} removed from the gold: {_joined(qids)}; {why}"
            fix = "Keep the questions, or give the reason in the sign-off or the pull request."
            yield Finding(code, "warning", message, fix, file)


def written_differently(
    changed: Sequence[GoldChange], old: Mapping[str, Gold], new: Mapping[str, Gold], file: str
) -> list[Note]:
    """Return a note on reformatted items and on changed ones with their fields, rare changes first: they could hide."""
    reformatted = sum(change.verb == "reformatted" for change in changed)
    qids = defaultdict[str, list[str]](list)
    for qid in (change.qid for change in changed if change.verb == "changed"):
        for field in changed_fields(old[qid], new[qid]):
            qids[field].append(qid)
    fields = defaultdict[tuple[str, ...], list[str]](list)
    for field, names in qids.items():
        fields[tuple(names)].append(field)
    by_count = sorted(fields.items(), key=lambda entry: len(entry[0]))
    others = [f"{some(names, _NAMED, partial(one_line, limit=_SHORT))} ({', '.join(of)})" for names, of in by_count]
    by_field = ", ".join(others)
    # A report cuts long messages, which must not hide a field.
    every = f" in {', '.join(filter(qids.__contains__, _FIELDS.values()))}" if len(by_field) > _LONG else ""
    are = quantity(reformatted, "gold item is reformatted", "gold items are reformatted")
    parts = [f"{are}, with the same content"] if reformatted else []
    parts += [f"changed{every}: {by_field}"] if others else []
    return [Note(file, 0, "; ".join(parts))] if parts else []


def changed_fields(old: Gold, new: Gold) -> list[str]:
    """Return the names of the known fields in which two items differ."""
    pairs = ((field, getattr(old, name), getattr(new, name)) for name, field in _FIELDS.items())
    return [field for field, before, after in pairs if content_of(before) != content_of(after)]  # 1 is not true


def _content(item: Gold) -> str:
    """Return an item as text without its qid."""
    return repr([getattr(item, name) for name in _FIELDS if name != "qid"])


def gates_that_pass_now(gates: Iterable[str], file: str, missing: int = 0) -> Iterator[Finding]:
    """Find gates that fail this run on the old gold, of which it lacks ``missing`` answers, but not on the new gold."""
    if names := _without_counts(gates):
        fail = quantity(len(names), "gate fails", "gates fail")
        message = f"{fail} with the gold of the base branch, but not with the changed gold: {_joined(names)}"
        message += f"; this run lacks {quantity(missing, 'answer')} to questions of the former" if missing else ""
        yield Finding("gold-turns-gates", "warning", message, _SEPARATELY, file)


def regrouped(
    gates: Iterable[str], old: Mapping[str, Gold], new: Mapping[str, Gold], file: str, cluster: str
) -> Iterator[Finding]:
    """Yield an error when questions change their group and gates that fail on the old gold do not on the new.

    Groups are the conversations, and the values of the gold field that ``cluster`` names.
    """
    names, both = _without_counts(gates), sorted(new.keys() & old.keys())
    for field in dict.fromkeys(["conversation", cluster] if cluster else ["conversation"]):
        moved = [qid for qid in both if field_values(old[qid], field) != field_values(new[qid], field)]
        if names and moved:
            message = f"{quantity(len(moved), 'question moves', 'questions move')} to another {field}"
            message += f", the unit of the statistics: {_joined(moved)}; in the old groups {_joined(names)} would fail"
            fix = "Regroup questions in a separate pull request."
            yield Finding("questions-regrouped", "error", message, fix, file)


def turning_must_pass(before: Iterable[Finding], after: Iterable[Finding], file: str) -> Iterator[Finding]:
    """Yield the failed ``must_pass`` cases that are right only under the changed gold."""
    still = {finding.message for finding in after}
    broken = [finding for finding in before if finding.code == "must-pass-broken" and finding.message not in still]
    for finding in broken[:_NAMED]:
        message = f"with the gold of the base branch, {finding.message}; the changed gold accepts the answer"
        yield Finding("must-pass-widened", "warning", message, _SEPARATELY, file)


def fewer_cases(
    on_base: Mapping[str, int],
    now: Mapping[str, int],
    file: str,
    in_baseline: Mapping[str, int] = MappingProxyType({}),
    missing: int = 0,
) -> Iterator[Finding]:
    """Yield a warning when gates judge fewer of the cases on the gold of the base; a slice may have none any more.

    ``missing`` is the number of cases of that gold that the change removed and that no trace answers.
    """
    before = {name: max(count, in_baseline.get(name, 0)) for name, count in on_base.items()}
    fallen = [name for name in _without_counts(before) if now.get(name, 0) < before[name]]
    if fallen:
        judge = quantity(len(fallen), "gate judges", "gates judge")
        counts = _joined([f"{name} {before[name]} → {now.get(name, 0)}" for name in fallen])
        message = f"{judge} fewer of the cases of the base branch's gold or of the baseline: {counts}"
        fix = "Keep the questions and their labels."
        if not missing and all(now.get(name, 0) >= on_base[name] for name in fallen):
            fix = "An earlier change removed these cases. If that was right, renew the baseline."
        elif not missing and all(name.endswith(tuple(MARGINS)) and " where " not in name for name in fallen):
            fix = "To compare changed items, too, name the traces of the baseline: baseline.trace."
        elif any(name.endswith(tuple(MARGINS)) for name in fallen):
            fix += " With baseline.trace, changed items are compared too."
        yield Finding("fewer-cases", "warning", message, fix, file)


def lost_labels(
    changes: Iterable[GoldChange], old: Mapping[str, Gold], new: Mapping[str, Gold], file: str
) -> Iterator[Finding]:
    """Yield a warning that names the changed items with fewer labels than on the base, even if no gate flips."""

    def size(value: object) -> int:
        """Return the content of a field: 0 if absent, 1 and the number of entries of a list or mapping, otherwise 1."""
        return (value is not None) + (len(value) if isinstance(value, (tuple, list, Mapping)) else 0)

    named = []
    for qid in (change.qid for change in changes if change.verb == "changed"):
        before, after = old[qid], new[qid]
        lost = [field for name, field in _FIELDS.items() if size(getattr(after, name)) < size(getattr(before, name))]
        named += [f"{qid} ({', '.join(lost)})"] if lost else []
    if named:
        message = f"{quantity(len(named), 'gold item loses', 'gold items lose')} labels: {_joined(named)}"
        fix = "Give the reason in the sign-off or the pull request."
        yield Finding("labels-removed", "warning", message, fix, file)


def _without_counts(gates: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(gates) if not name.startswith("completeness.")]


def _joined(names: Sequence[str]) -> str:
    return some(names, _NAMED)


def gold_changes(changes: Iterable[GoldChange], old: Mapping[str, str], new: Mapping[str, str]) -> list[GoldChange]:
    """Return the changes with the labels of their cases."""
    return [change._replace(before=old.get(change.qid), after=new.get(change.qid)) for change in changes]
