"""Sign-off of gold: which items changed, and whether new records cover every change.

A record is bound to the content of items, not to commits or files, so it survives squash, rebase and merges of
unrelated items. An item's hash is the sha256 of its exact line in the git blob, without the line ending (LF or CRLF)
and without the byte order mark of the file. The JSON-array form has no lines: there it is the sha256 of the exact
source text of the element, from its first to its last byte, with LF for CRLF between them.

:mod:`rag_eval.gold.signoff.identity` decides which records count, by the signer and the level that the policy requires.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.common.paths import shell_line
from rag_eval.contract import item_hash as digest
from rag_eval.errors import Problem
from rag_eval.gold.signoff import identity
from rag_eval.gold.signoff.identity import LEVELS as LEVELS
from rag_eval.gold.signoff.identity import NO_PROOF, PLAIN, Proof
from rag_eval.gold.signoff.identity import Advice as Advice
from rag_eval.gold.signoff.identity import SignoffPolicy as SignoffPolicy
from rag_eval.gold.signoff.identity import Violation as Violation
from rag_eval.readers.signoff_record import LONGEST_QID, HashChange, Record

Edge = tuple[str | None, str | None, bool]

_SHOWN = 10


class SignoffItem(NamedTuple):
    """A gold item for sign-off: the hash of its bytes, the fields that identify its question, its line and its row."""

    hash: str
    question: str
    answerable: bool
    line: int
    row: Mapping[str, Any]


Records = dict[str, Record | str]
"""The files of the records folder by path: the record, or what keeps the file from being one."""


class Side(NamedTuple):
    """One state of the gold: its items by qid, and the files of its records folder.

    ``moved`` are the items of the base's gold if the change moves it to another path.
    """

    items: Mapping[str, SignoffItem] = {}
    records: Mapping[str, Record | str] = {}
    moved: Mapping[str, SignoffItem] = {}

    def named(self, qid: str) -> SignoffItem | None:
        """Return the item of a qid, also in gold that moved."""
        return self.items.get(qid) or self.moved.get(qid)


def items(
    rows: Iterable[tuple[int, bytes, Any]], file: str, array: bool = False
) -> tuple[dict[str, SignoffItem], list[Problem]]:
    """Return the items of parsed rows (line, exact bytes, value) by qid, and the problems of the others.

    Only the fields that sign-off needs are checked: qid, question, and whether it is answerable.
    """
    by_qid: dict[str, SignoffItem] = {}
    problems = []
    asks = "q" if array else "question"
    for line, source, row in rows:
        wrong = _unusable(row, asks) or _repeated(row["qid"], by_qid)
        if wrong:
            problems.append(Problem(file, line, "", *wrong))
        else:
            by_qid[row["qid"]] = SignoffItem(digest(source), row[asks], row["answerable"], line, row)
    return by_qid, problems


def changes(base: Mapping[str, SignoffItem], head: Mapping[str, SignoffItem]) -> list[HashChange]:
    """Return the items added, changed and removed between two states of the gold, sorted by qid."""
    pairs = ((qid, _hash(base.get(qid)), _hash(head.get(qid))) for qid in sorted(base.keys() | head.keys()))
    return [HashChange(qid, before, after) for qid, before, after in pairs if before != after]


def mutated(before: SignoffItem | None, after: SignoffItem | None) -> list[str]:
    """Return which of question and answerability differ, so that the qid names another question."""
    if before is None or after is None:
        return []
    return [name for name in ("question", "answerable") if getattr(before, name) != getattr(after, name)]


def check(
    base: Side | None,
    head: Side,
    policy: SignoffPolicy,
    advice: Advice = PLAIN,
    used_records: Records | None = None,
    proof: Proof = NO_PROOF,
) -> list[Violation]:
    """Return the violations of sign-off in ``head``: hook and CI differ only in ``base``.

    Every item that was added, changed or removed since ``base`` has to be covered by new records whose changes lead
    from the base's hash to the head's. Records on the base never count again and must not be edited or removed.
    ``used_records``, which are not on this base, do not count either. New records count if ``proof`` confirms their
    signers as ``policy``, the base's, requires. Without a base every live item must be the result of its records.
    """
    if base is None:
        formed = _malformed(head.records, {}, policy, advice)
        # Records of an earlier data set id are never removed, but they do not count.
        return [
            *(violation for violation in formed if violation.code != "wrong-dataset"),
            *_unsigned(head, policy, advice),
        ]
    removed = _removed_or_edited(base.records, head.records, advice)
    formed = _malformed(head.records, base.records, policy, advice)
    new = new_records(base, head, policy, used_records)
    refused = identity.refused(new, policy, proof)
    trusted = _without(head, refused)
    broken = breaches(base, trusted, policy, used_records)
    violations = [*removed, *formed, *_refusals(refused, advice)]
    violations += [_breach(change, code, base, head, policy, advice) for change, code in broken]
    return (
        violations + list(_unattested(base, trusted, policy, advice, used_records, proof))
        if _changed(base, head)
        else violations
    )


def new_records(
    base: Side, head: Side, policy: SignoffPolicy, used_records: Records | None = None
) -> dict[str, Record]:
    """Return the records of the head that may count, by path: well-formed, for this gold, and never used before."""
    used = {record.text for record in _sound({**(used_records or {}), **base.records}).values()}
    return {path: record for path, record in _counting(head.records, policy).items() if record.text not in used}


def breaches(
    base: Side, head: Side, policy: SignoffPolicy, used_records: Records | None = None
) -> list[tuple[HashChange, str]]:
    """Return the changes that new records do not cover, each with the code of the rule that it breaks."""
    new_edges = _edges(new_records(base, head, policy, used_records).values())
    old_edges = _edges(_sound({**(used_records or {}), **base.records}).values())
    results = []
    for change in changes(base.items, head.items):
        moved = bool(mutated(base.named(change.qid), head.items.get(change.qid)))
        code = _code(change, moved, new_edges.get(change.qid, []), old_edges.get(change.qid, []))
        results += [(change, code)] if code else []
    return results


def unsigned(head: Side, policy: SignoffPolicy) -> list[HashChange]:
    """Return the live items that differ from the result of their records, each with the change that would sign it.

    An item without a record is signed as added. If a record changes the item and none changes it back, it was reverted
    without a record, and the change starts at the result of the records. Dates prove nothing, because signers can write
    any.
    """
    edges = _edges(_counting(head.records, policy).values())
    items = ((qid, item.hash, edges.get(qid, [])) for qid, item in head.items.items())
    return [
        HashChange(qid, _next_hashes(here, signed), here) for qid, here, signed in items if not _is_signed(here, signed)
    ]


def _is_signed(here: str, edges: list[Edge]) -> bool:
    """Return whether a record leads to a hash, and every record away from it has others that lead back."""
    ahead = [after for before, after, _ in edges if before == here]
    back = any(here in _reach(after, edges) for after in ahead)
    return any(after == here for _, after, _ in edges) and (back or not ahead)


def _next_hashes(here: str, edges: list[Edge]) -> str | None:
    """Return the end of the records that lead away from a hash; None if none does, or if they remove the item."""
    ahead = _reach(here, edges) - {here}
    ends = ahead - {before for before, _, _ in edges}
    return min(ends or ahead, key=lambda end: end or "", default=None)


def _changed(base: Side, head: Side) -> bool:
    return bool(changes(base.items, head.items))


def _without(head: Side, paths: Container[str]) -> Side:
    return head._replace(records={path: record for path, record in head.records.items() if path not in paths})


def _refusals(refused: Mapping[str, tuple[str, str]], advice: Advice) -> Iterator[Violation]:
    for path, (code, message) in refused.items():
        yield Violation(code, path, 0, message, _again(path, advice))


def _unattested(
    base: Side, head: Side, policy: SignoffPolicy, advice: Advice, used_records: Records | None, proof: Proof
) -> Iterator[Violation]:
    """Yield violations beyond records: a missing approving review, or one by an author of the change."""
    if policy.require == "review" and proof.approvals is not None and not identity.approved(policy, proof):
        yield _unapproved(policy, proof)
    if not policy.four_eyes or proof.authors is None:
        return
    for name in identity.unresolved(proof):
        message = f"{quoted(name)} wrote commits of this change, but the GitHub account is unknown"
        fix = "# add the e-mail address of these commits to the GitHub account, or to signoff.signers"
        yield Violation("unresolved-author", policy.gold, 0, message, fix)
    if policy.require != "review":
        yield from _one_pair_of_eyes(base, head, policy, advice, used_records, proof)


def _unapproved(policy: SignoffPolicy, proof: Proof) -> Violation:
    asked = ", ".join(identity.reviewers(policy, proof)[:_SHOWN]) or "a signer who is not an author of the change"
    who = "no signer other than the authors of the change" if policy.four_eyes else "no signer"
    fix = f"# ask one of these to approve the pull request: {asked}"
    return Violation("no-approval", policy.gold, 0, f"{who} has approved the last commit", fix)


def _one_pair_of_eyes(
    base: Side, head: Side, policy: SignoffPolicy, advice: Advice, used_records: Records | None, proof: Proof
) -> Iterator[Violation]:
    """Yield the changes that are covered, but not by records of signers who wrote no part of them."""
    covered = {change.qid for change, _ in breaches(base, head, policy, used_records)}
    by_authors = identity.of_authors(new_records(base, head, policy, used_records), policy, proof)
    for change, _ in breaches(base, _without(head, by_authors), policy, used_records):
        if change.qid not in covered:
            line = head.items[change.qid].line if change.qid in head.items else 0
            message = f"item {quoted(change.qid)} was {change.verb}, and only authors of the change signed it"
            fix = f"{advice.sign}  # run by a signer who is not an author of the change"
            yield Violation("four-eyes", policy.gold, line, message, fix)


def _code(change: HashChange, moved: bool, new: list[Edge], old: list[Edge]) -> str | None:
    reached = _reach(change.before, new)
    if change.after not in reached:
        if new:
            return "broken-chain"
        return "replayed-record" if change.after in _reach(change.before, old) else "unsigned-change"
    ahead = _reach(change.after, [(after, before, flag) for before, after, flag in new])
    if moved and not any(flag and before in reached and after in ahead for before, after, flag in new):
        return "mutation"
    return None


def _reach(start: str | None, edges: list[Edge]) -> set[str | None]:
    reached, rest = {start}, [start]
    while rest:
        here = rest.pop()
        ahead = {after for before, after, _ in edges if before == here} - reached
        reached |= ahead
        rest += ahead
    return reached


def _edges(records: Iterable[Record]) -> dict[str, list[Edge]]:
    edges: dict[str, list[Edge]] = {}
    for record in records:
        for qid, before, after in record.changes:
            edges.setdefault(qid, []).append((before, after, record.mutates))
    return edges


def _sound(records: Mapping[str, Record | str]) -> dict[str, Record]:
    """Return the well-formed records under the name that their content gives them; no other file ever counts."""
    return {
        path: record
        for path, record in records.items()
        if isinstance(record, Record) and _has_record_name(path, record)
    }


def _counting(records: Mapping[str, Record | str], policy: SignoffPolicy) -> dict[str, Record]:
    ours = (policy.dataset, policy.gold)
    return {path: record for path, record in _sound(records).items() if (record.dataset, record.gold) == ours}


def _removed_or_edited(
    base: Mapping[str, Record | str], head: Mapping[str, Record | str], advice: Advice
) -> Iterator[Violation]:
    # An invalid record file never counted for anything: it may be fixed or removed.
    for path, record in _sound(base).items():
        if head.get(path) == record:
            continue
        code, verb = ("record-edited", "edited") if path in head else ("record-removed", "removed")
        fix = f"git checkout {advice.restore} -- {shell_line(f':/{path}')}"
        yield Violation(code, path, 0, f"a record of the base branch was {verb}, but records may only be added", fix)


def _malformed(
    head: Mapping[str, Record | str], base: Mapping[str, Record | str], policy: SignoffPolicy, advice: Advice
) -> Iterator[Violation]:
    sound = _sound(base)
    texts = {record.text for record in sound.values()}
    for path, record in head.items():
        wrong = None if path in sound or base.get(path) == record else _unfit(path, record, texts, policy)
        if wrong:
            yield Violation(wrong[0], path, 0, wrong[1], _again(path, advice))


def _again(path: str, advice: Advice) -> str:
    return f"git rm -f -- {shell_line(f':/{path}')} && {advice.sign}"


def _unfit(path: str, record: Record | str, on_base: set[str], policy: SignoffPolicy) -> tuple[str, str] | None:
    if isinstance(record, str):
        return "malformed-record", f"this is not a sign-off record: {record}"
    if record.text in on_base:
        return "replayed-record", "this repeats a record of the base branch, and a record counts only once"
    if not _has_record_name(path, record):
        return "malformed-record", f"its name does not match its content. The right name is {record.name}"
    if record.dataset != policy.dataset:
        return "wrong-dataset", f"it signs data set {quoted(record.dataset)}, but this is {quoted(policy.dataset)}"
    return None


def _unsigned(head: Side, policy: SignoffPolicy, advice: Advice) -> Iterator[Violation]:
    led = {(qid, after) for record in _counting(head.records, policy).values() for qid, _, after in record.changes}
    for qid, _, here in unsigned(head, policy):
        message = f"no record of data set {quoted(policy.dataset)} signs this state of item {quoted(qid)}"
        if (qid, here) in led:
            message = f"item {quoted(qid)} was reverted to an earlier state without a record"
        yield Violation("unsigned-item", policy.gold, head.items[qid].line, message, advice.sign)


def _breach(change: HashChange, code: str, base: Side, head: Side, policy: SignoffPolicy, advice: Advice) -> Violation:
    qid, item = change.qid, head.items.get(change.qid)
    what = f"item {quoted(qid)} was {change.verb}"
    message = {
        "unsigned-change": f"{what}, and no new record signs it",
        "replayed-record": f"{what}, and the only record that signs it was used before: a record counts only once",
        "broken-chain": f"{what}, but its new records do not lead from the item of the base branch to this one",
        "mutation": f"{what} and asks another question ({', '.join(mutated(base.named(qid), item))} changed). "
        "Give the new question a new qid, or sign it with --mutates",
    }[code]
    fix = f"{advice.sign} --mutates" if code == "mutation" else advice.sign
    return Violation(code, policy.gold, item.line if item else 0, message, fix)


def _has_record_name(path: str, record: Record) -> bool:
    return path.rpartition("/")[2] == record.name


def _hash(item: SignoffItem | None) -> str | None:
    return item.hash if item else None


def _unusable(row: Any, asks: str) -> tuple[str, str] | None:
    if not isinstance(row, dict):
        return f"expected a gold item (an object), but got {quoted(row)}", "Put one JSON object on each line."
    qid = row.get("qid")
    if not isinstance(qid, str) or not 0 < len(qid) <= LONGEST_QID:
        return "'qid' is not a string of 1 to 200 characters", "Give every item its own qid."
    if not isinstance(row.get(asks), str) or not isinstance(row.get("answerable"), bool):
        return f"'{asks}' is not a string, or 'answerable' is not true or false", "Give every item both."
    return None


def _repeated(qid: str, items: Mapping[str, SignoffItem]) -> tuple[str, str] | None:
    if qid not in items:
        return None
    return f"the qid {quoted(qid)} is already used on line {items[qid].line}", "Give every item its own qid."
