"""Sign-off of the repository's files: the states of the gold that are compared, and the policy that they are held to.

What the command, the hook and CI share; they differ in the :class:`GoldStates` alone.
"""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import GATES_FILES, PROJECT_FILE, gates_of_project, the_one
from rag_eval.errors import InputError, Problem, UsageError
from rag_eval.git.snapshots import NOTHING, Irregular, read, read_regular
from rag_eval.gold.signoff import checking, signatures
from rag_eval.gold.signoff.checking import Advice, Policy, Side
from rag_eval.gold.signoff.identity import NO_PROOF
from rag_eval.gold.signoff.policy_file import beside, signoff_policy
from rag_eval.readers import strict_json
from rag_eval.readers.gold_bytes import is_array, sources
from rag_eval.readers.signoff_record import Record
from rag_eval.readers.work_tree import IsFolder

if TYPE_CHECKING:
    from rag_eval.git.plumbing import Git
    from rag_eval.git.snapshots import Tree
    from rag_eval.gold.signoff.identity import Author, Proof

    People = Callable[[Policy], tuple[Collection[str], Collection[Author]]]

MOST_PROBLEMS = 100


class GoldStates(NamedTuple):
    """What is compared with what."""

    base: Tree
    head: Tree
    name: str = "HEAD"  # the base as it was asked for
    spent: Tree = NOTHING  # a state beyond the base whose records do not count either
    whole: bool = False  # there is no base: every live item has to be signed
    restore: str = "HEAD"  # the commit that holds the records of the base
    rules: Tree | None = None  # where the policy that decides stands, if not on the base
    staged: bool = False  # the head is what stands in the index since the last commit


class Place(NamedTuple):
    """Where the caller says that the gold and the gates stand, relative to a folder; None: not said."""

    gold: str | None = None
    gates: str | None = None
    prefix: str = ""  # the folder, from the root of the repository, empty or ending in a slash


def between(git: Git, base: str, tip: str, head: Tree | None = None) -> GoldStates:
    """From where ``tip`` left ``base`` to ``tip``, or to ``head``, which grew out of it.

    What happened on ``base`` since then is not this branch's change, but its rules hold and its records are used up: a
    branch that left early keeps no key that was taken off the list since, and cannot bring a change back under the
    record that it had the first time.
    """
    ids = [named(git, base), named(git, tip)]
    fork = git.merge_base(*ids)
    rules = git.at(ids[0])
    spent = NOTHING if fork == ids[0] else rules
    return GoldStates(git.at(fork), head or git.at(ids[1]), base, spent, restore=fork, rules=rules)


def named(git: Git, ref: str) -> str:
    """The id of the commit that ``ref`` names; UsageError where it names none.

    No name at all is a mistake and not the wish for no base: what nobody holds a change against always passes.
    """
    if not ref.strip():
        raise UsageError("--base names no commit: it is empty. Is a variable of the shell not set?")
    found = git.resolve(ref)
    if not found:
        raise UsageError(f"{quoted(ref)} names no commit here. Fetch it first, or correct the name.")
    return found


def policies(frame: GoldStates, place: Place) -> list[Policy]:
    """The policies to hold the gold to, one mostly.

    The base's decides; the head's is asked too where it looks at another place. Where the base has no policy yet, the
    data set is the head's; one that states a policy without naming it has the default: a change that could name another
    might bring what was signed for that.
    """
    head, base = _policy(frame.head, place, one=True), _policy(frame.rules or frame.base, place)
    if place.gates and not (head or base):
        raise UsageError(f"There is no {quoted(place.gates)} in git. Correct the path, or add the file first.")
    first = frame.base is NOTHING and frame.rules is None
    return in_force(None if first else base, head, lambda policy: _overridden(policy, place), first=first)


def in_force(
    base: Policy | None, head: Policy | None, usual: Callable[[Policy], Policy] = lambda policy: policy, *, first: bool
) -> list[Policy]:
    """The policies that hold, of those that base and head state; ``usual`` fits the default to the place.

    ``first``: there is nothing to change yet, and the head's is the only one.
    """
    ahead = head or usual(Policy())
    if first:
        return [ahead]
    now = base or usual(Policy())
    now = now if now.stated else now._replace(dataset=ahead.dataset)
    if (now.gold, now.records) == (ahead.gold, ahead.records):
        return [now if base else ahead]
    ahead = ahead._replace(was=now.gold) if now.gold != ahead.gold else ahead
    return [now, ahead.held_to(now) if base else ahead]


def policy_at(tree: Tree, path: str) -> Policy | None:
    """The policy of one gates file, None where it is not there."""
    data = read(tree, path)
    return None if data is None else signoff_policy(data, path)


def _policy(tree: Tree, place: Place, *, one: bool = False) -> Policy | None:
    """The policy of the gates file that is nearest to the place, None where there is no gates file.

    Of two in a folder the first decides, so that a change can fix it; where there must be ``one``, they are refused.
    """
    names = [_path(place, place.gates)] if place.gates else _nearest(tree, place.prefix)
    found = tree.files(*names)
    path = next((name for name in names if name in found), None)
    if one and path and posixpath.basename(path) in GATES_FILES:
        the_one(
            [
                name
                for name in names
                if name in found
                and posixpath.dirname(name) == posixpath.dirname(path)
                and posixpath.basename(name) in GATES_FILES
            ]
        )
    return _overridden(signoff_policy(tree.contents([found[path]])[found[path]], path), place) if path else None


def _overridden(policy: Policy, place: Place) -> Policy:
    if not place.gold:
        return policy
    gold = _path(place, place.gold)
    return policy if gold == policy.gold else policy._replace(gold=gold, records=beside(gold))


def _nearest(tree: Tree, prefix: str) -> list[str]:
    """Return where a gates file may be, in the current folder or above, nearest first: as pyproject.toml names it."""
    folders, folder = [""], ""
    for part in prefix.split("/")[:-1]:
        folder += f"{part}/"
        folders.insert(0, folder)
    names = []
    for folder in folders:
        project = folder + PROJECT_FILE
        data = read_regular(tree, project)
        named = gates_of_project(data, project) if data is not None else ""
        path = posixpath.normpath(posixpath.join(folder, named)) if named else ""
        names += [path] if path and not path.startswith("../") else []
        names += [folder + name for name in GATES_FILES]
    return names


def _path(place: Place, path: str) -> str:
    """A path of the caller, relative to the root of the repository as git has it."""
    found = posixpath.normpath(posixpath.join(place.prefix, path.replace(os.sep, "/")))
    if found.startswith(("/", "../")) or found in (".", ".."):
        raise UsageError(f"{quoted(path)} is no path inside the repository. Write it relative to the current folder.")
    return found


def findings(frame: GoldStates, policy: Policy, command: str, people: People | None = None) -> list[checking.Violation]:
    """What keeps the head of ``frame`` from being signed off; ``command`` is the sign-off that would fix it.

    ``people`` says who approved and who wrote the change; it is asked only where the policy asks for that and the gold
    changed. Without it, that is not checked.
    """
    base, head = sides(frame, policy)
    used = spent(frame, policy)
    proof = NO_PROOF if frame.whole else _proof(frame, policy, checking.fresh(base, head, policy, used))
    if people and asks_for_people(policy) and checking.changes(base.items, head.items):
        approvals, authors = people(policy)
        proof = proof._replace(approvals=approvals, authors=authors)
    advice = Advice(command, frame.restore)
    otherwise = [] if frame.whole else _read_otherwise(frame, policy, base, head)
    return otherwise + checking.check(None if frame.whole else base, head, policy, advice, used, proof)


def asks_for_people(policy: Policy) -> bool:
    """Whether a policy asks who approved or who wrote a change, which git alone cannot prove."""
    return policy.require == "review" or policy.four_eyes


def _proof(frame: GoldStates, policy: Policy, fresh: Mapping[str, Record]) -> Proof:
    """What the new records prove. The keys are those of where the policy stands: new ones do not count."""
    if not fresh:
        return NO_PROOF
    rules = frame.rules or frame.base
    rules = frame.head if rules is NOTHING else rules
    allowed = read(rules, policy.allowed_signers) if policy.require == "signature" else None
    return signatures.proof(fresh, policy, allowed, time.time())


def untouched(frame: GoldStates, policy: Policy) -> bool:
    """Whether gold and records are on both sides the same, byte for byte."""
    return _files(frame.base, policy) == _files(frame.head, policy)


def spent(frame: GoldStates, policy: Policy) -> checking.Records:
    """The records that are used up though they are not on the base."""
    return _records(frame.spent, _files(frame.spent, policy), policy)


def sides(frame: GoldStates, policy: Policy) -> tuple[Side, Side]:
    """Base and head; what is wrong with the head's gold is an :class:`InputError`.

    Lines that cannot be read on the base are no items: whoever fixes them adds items, and signs for that.
    """
    parsed: dict[bytes, Any] = {}
    # The head first: what a work tree has listed is not asked of an API again.
    listed = [(tree, _files(tree, policy)) for tree in (frame.head, frame.base)]
    sides = []
    for tree, files in reversed(listed):
        items, problems = _items(tree, files, policy, parsed)
        if problems and tree is frame.head:
            raise InputError(problems[:MOST_PROBLEMS], max(0, len(problems) - MOST_PROBLEMS))
        sides.append(Side(items, _records(tree, files, policy)))
    base, head = sides
    base = base._replace(items=_merged_since(frame, policy, base.items, head.items, parsed))
    return base._replace(moved=_moved_items(frame, policy, parsed)), head


def _read_otherwise(frame: GoldStates, policy: Policy, base: Side, head: Side) -> list[checking.Violation]:
    """The items of unchanged bytes that ask by other fields, because the gold became an array, or lines again."""
    blobs = [read(tree, policy.gold) for tree in (frame.base, frame.head)]
    if None in blobs or len({is_array(blob) for blob in blobs if blob is not None}) == 1:
        return []
    same = [qid for qid, item in head.items.items() if qid in base.items and base.items[qid].hash == item.hash]
    message = "has the bytes that it had, and is read by other fields in this form of the gold"
    fix = "# leave out the fields of the other form"
    items = [(qid, head.items[qid].line) for qid in same[:MOST_PROBLEMS]]
    return [
        checking.Violation("unsigned-change", policy.gold, line, f"item {quoted(qid)} {message}", fix)
        for qid, line in items
    ]


def _merged_since(
    frame: GoldStates,
    policy: Policy,
    base: Mapping[str, checking.Item],
    head: Mapping[str, checking.Item],
    parsed: dict[bytes, Any],
) -> Mapping[str, checking.Item]:
    """The items of the base, and those of the head that the tip of the base has meanwhile: nothing is left to sign.

    They came from an earlier part of the change that was merged already, as stacked pull requests are.
    """
    changed = checking.changes(base, head) if frame.spent is not NOTHING else []
    if not changed:
        return base
    tip = _items(frame.spent, _files(frame.spent, policy), policy, parsed)[0]
    same = {qid for qid, _, after in changed if after == (tip[qid].hash if qid in tip else None)}
    kept = {qid: item for qid, item in base.items() if qid not in same}
    return kept | {qid: head[qid] for qid in same & head.keys()}


def _moved_items(frame: GoldStates, policy: Policy, parsed: dict[bytes, Any]) -> Mapping[str, checking.Item]:
    """The items of the gold that the change moves to where the policy looks: what a qid asks there is known."""
    if not policy.was:
        return {}
    before = policy._replace(gold=policy.was)
    try:
        return _items(frame.base, _files(frame.base, before), before, parsed)[0]
    except UsageError:  # a folder, of which nothing was ever signed
        return {}


def _files(tree: Tree, policy: Policy) -> dict[str, str]:
    try:
        found = tree.files(policy.gold, f"{policy.records}/")
    except (Irregular, IsFolder) as error:
        if is_folder(error, policy.gold):
            raise UsageError(no_items(policy.gold)) from None
        raise
    return {path: name for path, name in found.items() if path == policy.gold or path.endswith(".json")}


def is_folder(error: Irregular | IsFolder, path: str) -> bool:
    """Whether a tree refused ``path`` because it is a folder there."""
    if isinstance(error, IsFolder):
        return error.problems[0].file == path
    return error.folder and error.path == path


def no_items(gold: str) -> str:
    """Why a gold set that is a folder is not signed off, and what can be."""
    said = f"{quoted(gold)} is a folder, and sign-off goes by the items of one file"
    return f"{said}. Make that of it: rag-eval import labels {one_line(gold, 200)} --out eval/gold.jsonl"


def packed(gold: str) -> str:
    """Why a gold set that is packed is not signed off, and what can be."""
    return f"{quoted(gold)} is packed, and sign-off goes by lines. Keep the gold unpacked in git."


def is_packed(blob: bytes) -> bool:
    """Whether a scorer would unpack these bytes."""
    from rag_eval.readers.source import PACKED  # start-up time

    return blob.startswith(PACKED)


def _items(
    tree: Tree, files: Mapping[str, str], policy: Policy, parsed: dict[bytes, Any]
) -> tuple[dict[str, checking.Item], list[Problem]]:
    if policy.gold not in files:
        return {}, []
    blob = tree.contents([files[policy.gold]])[files[policy.gold]]
    if blob.startswith(b"version https://git-lfs"):
        hint = "Sign-off is bound to what git itself holds: keep the gold out of LFS."
        return {}, [Problem(policy.gold, 0, "", "a Git LFS pointer, not the gold", hint)]
    rows, unread = _rows(blob, policy.gold, parsed)
    if unread and is_packed(blob):
        return {}, [Problem(policy.gold, 0, "", "packed, and sign-off goes by lines", "Keep it unpacked in git.")]
    items, problems = checking.items(rows, policy.gold, is_array(blob))
    if not (items or unread or problems):
        problems = [Problem(policy.gold, 0, "", "no gold items in it", "Add one, or delete the file.")]
    return items, unread + problems


def _rows(blob: bytes, file: str, parsed: dict[bytes, Any]) -> tuple[list[tuple[int, bytes, Any]], list[Problem]]:
    """The rows of a gold blob; ``parsed`` remembers them by their bytes, for base and head share most of theirs."""
    rows, problems = [], []
    for line, source in sources(blob):
        try:
            if source not in parsed:
                parsed[source] = strict_json.parse(source)
            rows.append((line, source, parsed[source]))
        except strict_json.JsonError as error:
            where = f"column {error.column}" if error.column else ""
            problems.append(Problem(file, line, where, error.message, error.hint))
    return rows, problems


def _records(tree: Tree, files: Mapping[str, str], policy: Policy) -> checking.Records:
    names = {path: name for path, name in files.items() if path != policy.gold}
    blobs = tree.contents(names.values())
    return {path: read_record(blobs[name]) for path, name in names.items()}


def read_record(blob: bytes) -> Record | str:
    """The record of a file's bytes, or what keeps it from being one."""
    try:
        return Record.read(strict_json.parse(blob))
    except strict_json.JsonError as error:
        return error.message
