"""Sign-off of gold: which items changed, and whether new records cover every change.

A record is bound to the content of items, not to commits or files, so it survives squash, rebase and merges of
unrelated items. An item's hash is the sha256 of its exact line in the git blob, without the line ending (LF or CRLF)
and without the byte order mark of the file. The JSON-array form has no lines: there it is the sha256 of the exact
source text of the element, from its first to its last byte, with LF for CRLF between them.

Who stands behind a record is another question. :mod:`rag_eval.gold.signoff.identity` says which may count, by the
level that the policy asks for.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.common.paths import shell_line
from rag_eval.contract import item_hash as digest
from rag_eval.errors import Problem
from rag_eval.gold.signoff import identity
from rag_eval.gold.signoff.identity import NO_PROOF, Proof
from rag_eval.gold.signoff.policy import LEVELS as LEVELS
from rag_eval.gold.signoff.policy import PLAIN
from rag_eval.gold.signoff.policy import Advice as Advice
from rag_eval.gold.signoff.policy import Policy as Policy
from rag_eval.gold.signoff.policy import Violation as Violation
from rag_eval.readers.signoff_record import LONGEST_QID, Change, Record

Edge = tuple[str | None, str | None, bool]

_SHOWN = 10


class Item(NamedTuple):
    """A gold item as sign-off sees it: the hash of its bytes, what makes it the same question, its line and its row."""

    hash: str
    question: str
    answerable: bool
    line: int
    row: Mapping[str, Any]


Records = dict[str, Record | str]
"""The files of the records folder by path: the record, or what keeps the file from being one."""


class Side(NamedTuple):
    """One state of the gold: its items by qid, and the files of its records folder.

    ``moved`` are the items of the base's gold where the change moves it to another path.
    """

    items: Mapping[str, Item] = {}
    records: Mapping[str, Record | str] = {}
    moved: Mapping[str, Item] = {}

    def named(self, qid: str) -> Item | None:
        """Return what a qid names, also in gold that moved."""
        return self.items.get(qid) or self.moved.get(qid)


def items(
    rows: Iterable[tuple[int, bytes, Any]], file: str, array: bool = False
) -> tuple[dict[str, Item], list[Problem]]:
    """The items of parsed rows (line, exact bytes, value) by qid, and what is wrong with the others.

    Only what sign-off rests on is looked at: the qid, the question, whether it is answerable.
    """
    found: dict[str, Item] = {}
    problems = []
    asks = "q" if array else "question"
    for line, source, row in rows:
        wrong = _unusable(row, asks) or _repeated(row["qid"], found)
        if wrong:
            problems.append(Problem(file, line, "", *wrong))
        else:
            found[row["qid"]] = Item(digest(source), row[asks], row["answerable"], line, row)
    return found, problems


def changes(base: Mapping[str, Item], head: Mapping[str, Item]) -> list[Change]:
    """What was added, changed and removed between two states of the gold, sorted by qid."""
    pairs = ((qid, _hash(base.get(qid)), _hash(head.get(qid))) for qid in sorted(base.keys() | head.keys()))
    return [Change(qid, before, after) for qid, before, after in pairs if before != after]


def mutated(before: Item | None, after: Item | None) -> list[str]:
    """Which of question and answerability differ: then the qid names another question than it did."""
    if before is None or after is None:
        return []
    return [name for name in ("question", "answerable") if getattr(before, name) != getattr(after, name)]


def check(
    base: Side | None,
    head: Side,
    policy: Policy,
    advice: Advice = PLAIN,
    spent: Records | None = None,
    proof: Proof = NO_PROOF,
) -> list[Violation]:
    """What keeps ``head`` from being signed off: the same rules for the hook and for CI, only ``base`` differs.

    Every item that was added, changed or removed since ``base`` has to be covered by new records whose changes lead
    from the base's hash to the head's. Records on the base never count again and are neither edited nor removed;
    ``spent`` are records that never count either, though they are not on this base. New records count where ``proof``
    bears out that their signers stand behind them, as ``policy``, the base's, asks for. Without a base at hand every
    live item has to be where the records lead.
    """
    if base is None:
        formed = _malformed(head.records, {}, policy, advice)
        # Records of an earlier data set id stay where they are, for they are never removed: they only do not count.
        return [*(found for found in formed if found.code != "wrong-dataset"), *_unsigned(head, policy, advice)]
    kept = _kept(base.records, head.records, advice)
    formed = _malformed(head.records, base.records, policy, advice)
    new = fresh(base, head, policy, spent)
    refused = identity.refused(new, policy, proof)
    trusted = _without(head, refused)
    broken = breaches(base, trusted, policy, spent)
    found = [*kept, *formed, *_refusals(refused, advice)]
    found += [_breach(change, code, base, head, policy, advice) for change, code in broken]
    return found + list(_unattested(base, trusted, policy, advice, spent, proof)) if _changed(base, head) else found


def fresh(base: Side, head: Side, policy: Policy, spent: Records | None = None) -> dict[str, Record]:
    """The records of the head that may count, by path: well-formed, for this gold, and never used before."""
    used = {record.text for record in _sound({**(spent or {}), **base.records}).values()}
    return {path: record for path, record in _counting(head.records, policy).items() if record.text not in used}


def breaches(base: Side, head: Side, policy: Policy, spent: Records | None = None) -> list[tuple[Change, str]]:
    """The changes that new records do not cover, each with the code of the rule that it breaks."""
    new_edges = _edges(fresh(base, head, policy, spent).values())
    old_edges = _edges(_sound({**(spent or {}), **base.records}).values())
    found = []
    for change in changes(base.items, head.items):
        moved = bool(mutated(base.named(change.qid), head.items.get(change.qid)))
        code = _code(change, moved, new_edges.get(change.qid, []), old_edges.get(change.qid, []))
        found += [(change, code)] if code else []
    return found


def unsigned(head: Side, policy: Policy) -> list[Change]:
    """The live items that are not where the records lead, each with the change that would sign it.

    That is from nothing where no record leads to the item. Where a record leads away from it and none leads back, it
    was put back untold, and the change is from where the records end. Dates tell nothing: who signs can write any.
    """
    edges = _edges(_counting(head.records, policy).values())
    found = ((qid, item.hash, edges.get(qid, [])) for qid, item in head.items.items())
    return [Change(qid, _left_for(here, own), here) for qid, here, own in found if not _stands(here, own)]


def _stands(here: str, edges: list[Edge]) -> bool:
    """Whether some record leads to a hash, and none away from it without others that lead back."""
    ahead = [after for before, after, _ in edges if before == here]
    back = any(here in _reach(after, edges) for after in ahead)
    return any(after == here for _, after, _ in edges) and (back or not ahead)


def _left_for(here: str, edges: list[Edge]) -> str | None:
    """Where the records that lead away from a hash end; None where none does, or where they remove the item."""
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
    base: Side, head: Side, policy: Policy, advice: Advice, spent: Records | None, proof: Proof
) -> Iterator[Violation]:
    """What the policy asks for beyond records that count: an approving review, and other eyes than the authors'."""
    if policy.require == "review" and proof.approvals is not None and not identity.approved(policy, proof):
        yield _unapproved(policy, proof)
    if not policy.four_eyes or proof.authors is None:
        return
    for name in identity.unresolved(proof):
        message = f"{quoted(name)} wrote a part of this, and with which account cannot be told"
        fix = "# let them add the e-mail address of their commits to their account, or list it under signoff.signers"
        yield Violation("unresolved-author", policy.gold, 0, message, fix)
    if policy.require != "review":
        yield from _one_pair_of_eyes(base, head, policy, advice, spent, proof)


def _unapproved(policy: Policy, proof: Proof) -> Violation:
    asked = ", ".join(identity.reviewers(policy, proof)[:_SHOWN]) or "a signer who wrote no part of it"
    message = "no signer has approved the last commit" + (" who wrote no part of the change" * policy.four_eyes)
    return Violation("no-approval", policy.gold, 0, message, f"# let one of these approve the pull request: {asked}")


def _one_pair_of_eyes(
    base: Side, head: Side, policy: Policy, advice: Advice, spent: Records | None, proof: Proof
) -> Iterator[Violation]:
    """The changes that are covered, but not by records of signers who wrote no part of them."""
    covered = {change.qid for change, _ in breaches(base, head, policy, spent)}
    own = identity.of_authors(fresh(base, head, policy, spent), policy, proof)
    for change, _ in breaches(base, _without(head, own), policy, spent):
        if change.qid not in covered:
            line = head.items[change.qid].line if change.qid in head.items else 0
            message = f"item {quoted(change.qid)} was {change.verb}, and only authors of the change sign that"
            fix = f"{advice.sign}  # run by a signer who wrote no part of the change"
            yield Violation("four-eyes", policy.gold, line, message, fix)


def _code(change: Change, moved: bool, new: list[Edge], old: list[Edge]) -> str | None:
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
    found, rest = {start}, [start]
    while rest:
        here = rest.pop()
        ahead = {after for before, after, _ in edges if before == here} - found
        found |= ahead
        rest += ahead
    return found


def _edges(records: Iterable[Record]) -> dict[str, list[Edge]]:
    found: dict[str, list[Edge]] = {}
    for record in records:
        for qid, before, after in record.changes:
            found.setdefault(qid, []).append((before, after, record.mutates))
    return found


def _sound(records: Mapping[str, Record | str]) -> dict[str, Record]:
    """The well-formed records under the name that their content gives them; no other file ever counts."""
    return {path: record for path, record in records.items() if isinstance(record, Record) and _named(path, record)}


def _counting(records: Mapping[str, Record | str], policy: Policy) -> dict[str, Record]:
    ours = (policy.dataset, policy.gold)
    return {path: record for path, record in _sound(records).items() if (record.dataset, record.gold) == ours}


def _kept(base: Mapping[str, Record | str], head: Mapping[str, Record | str], advice: Advice) -> Iterator[Violation]:
    # A file that is no sound record never counted for anything: it may be fixed or removed.
    for path, record in _sound(base).items():
        if head.get(path) == record:
            continue
        code, verb = ("record-edited", "edited") if path in head else ("record-removed", "removed")
        fix = f"git checkout {advice.restore} -- {shell_line(f':/{path}')}"
        yield Violation(code, path, 0, f"a record that is already on the base was {verb}; records are only added", fix)


def _malformed(
    head: Mapping[str, Record | str], base: Mapping[str, Record | str], policy: Policy, advice: Advice
) -> Iterator[Violation]:
    kept = _sound(base)
    texts = {record.text for record in kept.values()}
    for path, record in head.items():
        wrong = None if path in kept or base.get(path) == record else _unfit(path, record, texts, policy)
        if wrong:
            yield Violation(wrong[0], path, 0, wrong[1], _again(path, advice))


def _again(path: str, advice: Advice) -> str:
    return f"git rm -f -- {shell_line(f':/{path}')} && {advice.sign}"


def _unfit(path: str, record: Record | str, on_base: set[str], policy: Policy) -> tuple[str, str] | None:
    if isinstance(record, str):
        return "malformed-record", f"this is no sign-off record: {record}"
    if record.text in on_base:
        return "replayed-record", "this repeats a record that is already on the base; a record counts once"
    if not _named(path, record):
        return "malformed-record", f"its name does not match what it says, which gives {record.name}"
    if record.dataset != policy.dataset:
        return "wrong-dataset", f"it signs data set {quoted(record.dataset)}; here it is {quoted(policy.dataset)}"
    return None


def _unsigned(head: Side, policy: Policy, advice: Advice) -> Iterator[Violation]:
    led = {(qid, after) for record in _counting(head.records, policy).values() for qid, _, after in record.changes}
    for qid, _, here in unsigned(head, policy):
        message = f"no record of data set {quoted(policy.dataset)} signs item {quoted(qid)} as it stands"
        if (qid, here) in led:
            message = f"item {quoted(qid)} is as it was before a record changed it, and none signs that it was put back"
        yield Violation("unsigned-item", policy.gold, head.items[qid].line, message, advice.sign)


def _breach(change: Change, code: str, base: Side, head: Side, policy: Policy, advice: Advice) -> Violation:
    qid, item = change.qid, head.items.get(change.qid)
    what = f"item {quoted(qid)} was {change.verb}"
    message = {
        "unsigned-change": f"{what}, and no new record signs that",
        "replayed-record": f"{what}, and only a record that is already on the base signs that; a record counts once",
        "broken-chain": f"{what}, and the new records for it do not lead from the base's item to this one",
        "mutation": f"{what} so that it asks something else ({', '.join(mutated(base.named(qid), item))} differs); "
        "give the new question a new qid, or say that it is meant",
    }[code]
    fix = f"{advice.sign} --mutates" if code == "mutation" else advice.sign
    return Violation(code, policy.gold, item.line if item else 0, message, fix)


def _named(path: str, record: Record) -> bool:
    return path.rpartition("/")[2] == record.name


def _hash(item: Item | None) -> str | None:
    return item.hash if item else None


def _unusable(row: Any, asks: str) -> tuple[str, str] | None:
    if not isinstance(row, dict):
        return f"expected a gold item, an object, and found {quoted(row)}", "Put one JSON object on each line."
    qid = row.get("qid")
    if not isinstance(qid, str) or not 0 < len(qid) <= LONGEST_QID:
        return "'qid' is no string of 1 to 200 characters", "Give every item its own qid."
    if not isinstance(row.get(asks), str) or not isinstance(row.get("answerable"), bool):
        return f"'{asks}' is no string or 'answerable' is not true or false", "Give every item both."
    return None


def _repeated(qid: str, found: Mapping[str, Item]) -> tuple[str, str] | None:
    if qid not in found:
        return None
    return f"the qid {quoted(qid)} stands on line {found[qid].line} already", "Give every item its own qid."
