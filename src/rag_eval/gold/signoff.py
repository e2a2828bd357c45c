"""Sign-off of gold: which items changed, whether new records cover every change, and the manifest of a release.

A record is bound to the content of items, not to commits or files, so it survives squash, rebase and merges of
unrelated items. An item's hash is the sha256 of its exact line in the git blob, without the line ending (LF or CRLF)
and without the byte order mark of the file. The JSON-array form has no lines: there it is the sha256 of the exact
source text of the element, from its first to its last byte, with LF for CRLF between them.

:mod:`rag_eval.gold.signoff_identity` decides which records count, by the signer and the level that the policy requires.
A manifest hashes items as sign-off does. It has no date and no author: the same gold and the same records give the same
bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from rag_eval.common.escaping import quoted
from rag_eval.common.paths import shell_line
from rag_eval.contract import item_hash
from rag_eval.errors import Finding, Problem
from rag_eval.gold import signoff_identity
from rag_eval.gold.signoff_identity import NO_PROOF, Proof, SignoffPolicy
from rag_eval.readers.signoff_record import LONGEST_QID, HashChange, Record

Edge = tuple[str | None, str | None, bool]

TAG = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,63}"
"""A tag is a file's name: it begins with a letter or digit, does not end with a dot, and has no two dots in a row."""
_SHOWN = 10


class SignoffItem(NamedTuple):
    """A gold item for sign-off: the hash of its bytes, the fields that identify its question, its line and its row."""

    hash: str
    question: str
    answerable: bool
    line: int
    row: Mapping[str, Any]


Records: TypeAlias = Mapping[str, Record | str]
"""The files of a records folder by path: the record, or the reason why the file is none."""


class Side(NamedTuple):
    """One state of the gold: its items by qid, and the files of its records folder.

    ``moved`` are the items of the base's gold if the change moves it to another path, ``used`` records that do not
    count either, although they are not on this base.
    """

    items: Mapping[str, SignoffItem] = {}
    records: Mapping[str, Record | str] = {}
    moved: Mapping[str, SignoffItem] = {}
    used: Mapping[str, Record | str] = {}

    def named(self, qid: str) -> SignoffItem | None:
        """Return the item of a qid, also in gold that moved."""
        return self.items.get(qid) or self.moved.get(qid)

    def used_records(self) -> list[Record]:
        """Return the records that signed this state or a later one, and sign no change of it."""
        return list(_well_formed({**self.used, **self.records}).values())


class Advice(NamedTuple):
    """Advice in findings: the sign-off command, and the commit to restore records from."""

    sign: str = "rag-eval gold signoff --reason '…'"
    restore: str = "HEAD"


PLAIN = Advice()
_WHO = {"unknown-signer": "  # run by a signer of the base branch"}


def read_items(
    rows: Iterable[tuple[int, bytes, Any]], file: str, array: bool = False
) -> tuple[dict[str, SignoffItem], list[Problem]]:
    """Return the items of parsed rows (line, exact bytes, value) by qid, and the problems of the others.

    Only the fields that sign-off needs are checked: qid, question, and whether it is answerable.
    """
    by_qid: dict[str, SignoffItem] = {}
    problems = []
    asks, unique = "q" if array else "question", "Give every item its own qid."
    for line, source, row in rows:
        qid = row.get("qid") if isinstance(row, dict) else None
        if not isinstance(row, dict):
            wrong = f"expected a gold item (an object), but got {quoted(row)}", "Put one JSON object on each line."
        elif not isinstance(qid, str) or not 0 < len(qid) <= LONGEST_QID:
            wrong = "'qid' is not a string of 1 to 200 characters", unique
        elif not isinstance(row.get(asks), str) or not isinstance(row.get("answerable"), bool):
            wrong = f"'{asks}' is not a string, or 'answerable' is not true or false", "Give every item both."
        elif qid in by_qid:
            wrong = f"the qid {quoted(qid)} is already used on line {by_qid[qid].line}", unique
        else:
            by_qid[qid] = SignoffItem(item_hash(source), row[asks], row["answerable"], line, row)
            continue
        problems.append(Problem(file, line, "", *wrong))
    return by_qid, problems


def changes(base: Mapping[str, SignoffItem], head: Mapping[str, SignoffItem]) -> list[HashChange]:
    """Return the items added, changed and removed between two states of the gold, sorted by qid."""
    return changed_hashes(*({qid: item.hash for qid, item in state.items()} for state in (base, head)))


def changed_hashes(base: Mapping[str, str], head: Mapping[str, str]) -> list[HashChange]:
    """Return the items that differ between two states, which give hashes by qid, sorted by qid."""
    pairs = ((qid, base.get(qid), head.get(qid)) for qid in sorted(base.keys() | head.keys()))
    return [HashChange(qid, before, after) for qid, before, after in pairs if before != after]


def question_changes(before: SignoffItem | None, after: SignoffItem | None) -> list[str]:
    """Return which of question and answerability differ, so that the qid names another question."""
    if before is None or after is None:
        return []
    return [name for name in ("question", "answerable") if getattr(before, name) != getattr(after, name)]


def check(
    base: Side | None, head: Side, policy: SignoffPolicy, advice: Advice = PLAIN, proof: Proof = NO_PROOF
) -> list[Finding]:
    """Return the violations of sign-off in ``head``: hook and CI differ only in ``base``.

    Every item that was added, changed or removed since ``base`` has to be covered by new records whose changes lead
    from the base's hash to the head's. Records on the base never count again and must not be edited or removed. New
    records count if ``proof`` confirms their signers as ``policy``, the base's, requires. Without a base every live
    item must be the result of its records.
    """
    formed = list(_malformed(head.records, base.records if base else {}, policy, advice))
    if base is None:
        # Records of an earlier data set id are never removed, but they do not count.
        formed = [violation for violation in formed if violation.code != "wrong-dataset"]
        return formed + list(_unsigned(head, policy, advice))
    removed = list(_removed_or_edited(base.records, head.records, advice))
    refused = signoff_identity.refused(new_records(base, head, policy), policy, proof)
    trusted = _without(head, refused)
    breaking = uncovered_changes(base, trusted, policy)
    return [
        *removed,
        *formed,
        *(
            Finding(code, "error", message, _sign_again(path, advice) + _WHO.get(code, ""), path)
            for path, (code, message) in refused.items()
        ),
        *(_breach(change, code, base, head, policy, advice) for change, code in breaking),
        *(_unapproved(policy, proof) if changes(base.items, head.items) else ()),
        *_one_pair_of_eyes(base, trusted, policy, advice, proof),
    ]


def new_records(base: Side, head: Side, policy: SignoffPolicy) -> dict[str, Record]:
    """Return the records of the head that may count, by path: well-formed, for this gold, and never used before."""
    used = {record.text for record in base.used_records()}
    return {path: record for path, record in records_of_gold(head.records, policy).items() if record.text not in used}


def uncovered_changes(base: Side, head: Side, policy: SignoffPolicy) -> list[tuple[HashChange, str]]:
    """Return the changes that new records do not cover, each with the code of the rule that it breaks."""
    new_edges, old_edges = _edges(new_records(base, head, policy).values()), _edges(base.used_records())
    results = []
    for change in changes(base.items, head.items):
        moved = bool(question_changes(base.named(change.qid), head.items.get(change.qid)))
        new, old = new_edges.get(change.qid, []), old_edges.get(change.qid, [])
        reached = _reach(change.before, new)
        ahead = _reach(change.after, [(after, before, flag) for before, after, flag in new])
        if change.after in reached:
            if moved and not any(flag and before in reached and after in ahead for before, after, flag in new):
                results.append((change, "mutation"))
        elif new:
            results.append((change, "broken-chain"))
        else:
            is_replayed = change.after in _reach(change.before, old)
            results.append((change, "replayed-record" if is_replayed else "unsigned-change"))
    return results


def unsigned(head: Side, policy: SignoffPolicy) -> list[HashChange]:
    """Return the live items that differ from the result of their records, each with the change that would sign it.

    An item is signed if a record leads to its hash, and every record away from it has others that lead back. An item
    without a record is signed as added. If a record changes the item and none changes it back, it was reverted without
    a record, and the change starts at the result of the records. Dates prove nothing, because signers can write any.
    """
    edges, results = _edges(records_of_gold(head.records, policy).values()), []
    for qid, item in head.items.items():
        signed, here = edges.get(qid, []), item.hash
        away = [after for before, after, _ in signed if before == here]
        back = any(here in _reach(after, signed) for after in away)
        if not any(after == here for _, after, _ in signed) or (away and not back):
            ahead = _reach(here, signed) - {here}
            ends = ahead - {before for before, _, _ in signed}
            start = min(ends or ahead, key=lambda end: end or "", default=None)
            results.append(HashChange(qid, start, here))
    return results


def _without(head: Side, paths: Container[str]) -> Side:
    return head._replace(records={path: record for path, record in head.records.items() if path not in paths})


def _unapproved(policy: SignoffPolicy, proof: Proof) -> Iterator[Finding]:
    reviewers, approvals = signoff_identity.reviewers(policy, proof), proof.approvals
    is_asked = policy.require == "review" and approvals is not None
    if is_asked and {login.lower() for login in reviewers}.isdisjoint(login.lower() for login in approvals or ()):
        asked = ", ".join(reviewers[:_SHOWN]) or "a signer who is not an author of the change"
        who = "no signer other than the authors of the change" if policy.four_eyes else "no signer"
        fix = f"Ask one of these to approve, then run this check again: {asked}"
        yield Finding("no-approval", "error", f"{who} has approved the last commit", fix, policy.gold)
    unresolved = sorted({author.name for author in proof.authors or () if not author.login})
    for name in unresolved if policy.four_eyes else ():
        message = f"{quoted(name)} wrote commits of this change, but the GitHub account is unknown"
        fix = "Add the e-mail address of these commits to the GitHub account, or to signoff.signers."
        yield Finding("unresolved-author", "error", message, fix, policy.gold)


def _one_pair_of_eyes(base: Side, head: Side, policy: SignoffPolicy, advice: Advice, proof: Proof) -> Iterator[Finding]:
    """Yield the changes that are covered, but not by records of signers who wrote no part of them."""
    if not policy.four_eyes or proof.authors is None or policy.require == "review":
        return
    uncovered = {change.qid for change, _ in uncovered_changes(base, head, policy)}
    new = new_records(base, head, policy)
    wrote = {*signoff_identity.accounts(proof), ""}  # a signer whose account is unknown may be an author
    by_authors = {path for path, record in new.items() if policy.signers.get(record.signer, "").lower() in wrote}
    for change, _ in uncovered_changes(base, _without(head, by_authors), policy):
        if change.qid not in uncovered:
            line = head.items[change.qid].line if change.qid in head.items else 0
            message = f"item {quoted(change.qid)} was {change.verb}, and only authors of the change signed it"
            fix = f"{advice.sign}  # run by a signer who is not an author of the change"
            yield Finding("four-eyes", "error", message, fix, policy.gold, line)


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


def _well_formed(records: Records) -> dict[str, Record]:
    """Return the well-formed records under the name that their content gives them; no other file ever counts."""
    known = ((path, record) for path, record in records.items() if isinstance(record, Record))
    return {path: record for path, record in known if path.rpartition("/")[2] == record.name}


def records_of_gold(records: Records, policy: SignoffPolicy) -> dict[str, Record]:
    """Return the well-formed records of this gold set by path."""
    ours = (policy.dataset, policy.gold)
    return {path: record for path, record in _well_formed(records).items() if (record.dataset, record.gold) == ours}


def _removed_or_edited(base: Records, head: Records, advice: Advice) -> Iterator[Finding]:
    # An invalid record file never counted for anything: it may be fixed or removed.
    for path, record in _well_formed(base).items():
        if head.get(path) != record:
            code, verb = ("record-edited", "edited") if path in head else ("record-removed", "removed")
            fix = f"git checkout {advice.restore} -- {shell_line(f':/{path}')}"
            message = f"a record of the base branch was {verb}, but records may only be added"
            yield Finding(code, "error", message, fix, path)


def _malformed(head: Records, base: Records, policy: SignoffPolicy, advice: Advice) -> Iterator[Finding]:
    sound = _well_formed(base)
    texts = {record.text for record in sound.values()}
    for path, record in head.items():
        if path in sound or base.get(path) == record:
            continue
        if isinstance(record, str):
            wrong = "malformed-record", f"this is not a sign-off record: {record}"
        elif record.text in texts:
            wrong = "replayed-record", "this repeats a record of the base branch, and a record counts only once"
        elif path.rpartition("/")[2] != record.name:
            wrong = "malformed-record", f"its name does not match its content. The right name is {record.name}"
        elif record.dataset != policy.dataset:
            dataset = quoted(record.dataset)
            wrong = "wrong-dataset", f"it signs data set {dataset}, but this is {quoted(policy.dataset)}"
        else:
            continue
        yield Finding(wrong[0], "error", wrong[1], _sign_again(path, advice), path)


def _sign_again(path: str, advice: Advice) -> str:
    return f"git rm -f -- {shell_line(f':/{path}')} && {advice.sign}"


def _unsigned(head: Side, policy: SignoffPolicy, advice: Advice) -> Iterator[Finding]:
    led = {
        (qid, after) for record in records_of_gold(head.records, policy).values() for qid, _, after in record.changes
    }
    for qid, _, here in unsigned(head, policy):
        message = f"no record of data set {quoted(policy.dataset)} signs this state of item {quoted(qid)}"
        if (qid, here) in led:
            message = f"item {quoted(qid)} was reverted to an earlier state without a record"
        yield Finding("unsigned-item", "error", message, advice.sign, policy.gold, head.items[qid].line)


def _breach(change: HashChange, code: str, base: Side, head: Side, policy: SignoffPolicy, advice: Advice) -> Finding:
    item = head.items.get(change.qid)
    moved = ", ".join(question_changes(base.named(change.qid), item))
    what = {
        "unsigned-change": "and no new record signs it",
        "replayed-record": "and the only record that signs it was used before: a record counts only once",
        "broken-chain": "but its new records do not lead from the item of the base branch to this one",
        "mutation": f"and asks another question ({moved} changed). "
        "Give the new question a new qid, or sign it with --mutates",
    }[code]
    message = f"item {quoted(change.qid)} was {change.verb}{' ' if code == 'mutation' else ', '}{what}"
    fix = f"{advice.sign} --mutates" if code == "mutation" else advice.sign
    return Finding(code, "error", message, fix, policy.gold, item.line if item else 0)


def freeze(tag: str, sha256: str, head: Side, policy: SignoffPolicy) -> tuple[dict[str, Any], list[str]]:
    """Return the manifest of a gold set, and the items that no record signs in their current form.

    ``sha256`` is the hex digest of its file as it is stored.
    """
    missing = [change.qid for change in unsigned(head, policy)]
    answerable = sum(item.answerable for item in head.items.values())
    hashes = {qid: head.items[qid].hash for qid in sorted(head.items)}
    records = sorted(records_of_gold(head.records, policy).items())
    manifest = {
        "v": 1,
        "tag": tag,
        "dataset": policy.dataset,
        "gold": policy.gold,
        "sha256": sha256,
        "digest": manifest_digest(hashes.values()),
        "counts": {"items": len(hashes), "answerable": answerable, "unanswerable": len(hashes) - answerable},
        "signed": f"{len(hashes) - len(missing)} of {len(hashes)}",
        "records": [
            {"name": record.name, "sha256": hashlib.sha256(record.text.encode()).hexdigest()} for _, record in records
        ],
        "items": hashes,
    }
    return manifest, sorted(missing)


def manifest_digest(hashes: Iterable[str]) -> str:
    """Return one hash of all items in any order: the sha256 of their sorted hashes, each with a line feed."""
    lines = "".join(f"{item}\n" for item in sorted(hashes))
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"
