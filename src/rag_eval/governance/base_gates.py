"""The gates file of the base that decides about a change, wherever the change or its caller put theirs."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rag_eval.cases.pairing import plain_question
from rag_eval.common.escaping import quoted
from rag_eval.common.paths import GATES_FILES, PROJECT_FILE, gates_of_project
from rag_eval.contract import DEFAULT_GOLD
from rag_eval.errors import InputError, UsageError
from rag_eval.gates.policy import REFERENCE_GATES
from rag_eval.git.snapshots import Irregular, left_near_changes, lost, named_files, read, read_regular
from rag_eval.gold.signoff import repository
from rag_eval.readers.gates_file import policy_of
from rag_eval.readers.gold_set import StoredGold, stored_gold_set
from rag_eval.readers.limits import Limits
from rag_eval.readers.problems import Ledger
from rag_eval.readers.source import Reader

if TYPE_CHECKING:
    from rag_eval.contract import Gold
    from rag_eval.gates.policy import Policy
    from rag_eval.git.snapshots import Tree
    from rag_eval.governance.base_policy import Authority

    Golds = Callable[[], Mapping[str, Gold]]

_NAMED = 5
_SHARED = 10  # per cent of the smaller gold set; two systems may both ask a common question


def base_policy(
    authority: Authority, gates: str, folder: str, gold: str, scored: Golds, *, is_found: bool = False
) -> Policy | None:
    """Return the base's gates; None when the head decides for itself, or when the base has none for this system.

    If the gates were found, not named by the caller, the nearest pyproject.toml of the base decides which file it is: a
    change of that line moves no goalposts. Next, the named path is looked for as it was written, so that a folder that
    the change turned into a link leads nowhere else; then a file of the usual name in ``folder``. Next come the usual
    names above the ``gold``, the nearest first, and the root: to name another file or folder, or to delete the one that
    is there, moves no goalposts. Then come gates files of any name that the change deletes or moves. Gates about this
    gold come before those that name no gold; those of another system do not decide. ``scored`` gives the items of the
    gold that is scored. Raises InputError if the base's file cannot be read.
    """
    tree = authority.gates
    if tree is None:
        return None
    if is_found and (path := _of_project(authority, gates)):
        return _at(authority, path)
    named = [authority.written(gates), authority.inside(gates)] if gates else []
    here = [authority.inside(os.path.join(folder, name)) for name in GATES_FILES if folder]  # noqa: PTH118
    for path in dict.fromkeys(name for name in (*named, *here) if name):
        if (data := read(tree, path)) is not None:
            return _parsed(authority, path, data)
    found = [(_at(authority, path), False) for path in usual_places(authority, "", gold)]
    gone = sorted(lost(authority.before, authority.after, _ENDINGS), key=lambda path: not _is_usual(path))
    found += [(_gates_file(authority, path), True) for path in gone[:_MOST]]
    about = [(policy, moved, _about(authority, policy, gold, scored, moved=moved)) for policy, moved in found if policy]
    for wanted in (_SAME_GOLD, _NO_GOLD):
        standing = [policy for policy, moved, what in about if what == wanted and not moved]
        moves = [policy for policy, moved, what in about if what == wanted and moved]
        if standing or moves:
            return standing[0] if standing else _the_one(moves)
        if wanted == _SAME_GOLD and (policy := _left_by_its_gold(authority, gold, scored)):
            return policy
    return None


def _of_project(authority: Authority, gates: str) -> str | None:
    """Return the gates file that the nearest pyproject.toml of the base names, upward from that of the change."""
    tree, start = authority.gates, authority.inside(gates or GATES_FILES[0])
    folder = posixpath.dirname(start) if start else ""
    while tree is not None:
        project = posixpath.join(folder, PROJECT_FILE)
        if (data := read_regular(tree, project)) is not None and (named := gates_of_project(data, project)):
            path = posixpath.normpath(posixpath.join(folder, named))
            return path if not path.startswith("../") and read_regular(tree, path) is not None else None
        if not folder:
            break
        folder = posixpath.dirname(folder)
    return None


def _left_by_its_gold(authority: Authority, gold: str, scored: Golds) -> Policy | None:
    """Return the gates of another folder about this gold, which the change took out of there, or copied."""
    near = left_near_changes(authority.before, authority.after, GATES_FILES)
    paths = dict.fromkeys([*near, *named_files(authority.before, GATES_FILES, _FOLDERS)])
    for path in list(paths)[:_MOST]:
        policy = _at(authority, path)
        own = gold_named_by(authority, policy, authority.before) if policy else None
        # Gates that come to stand beside others for the very same file are first gates of their own.
        if policy is None or own == authority.inside(gold):
            continue
        if _about(authority, policy, gold, scored, moved=True) == _SAME_GOLD:
            return policy
    return None


_SAME_GOLD, _NO_GOLD, _OTHER_GOLD = "the gold that is scored", "no gold of their own", "another system's gold"


def _at(authority: Authority, path: str) -> Policy | None:
    data = read(authority.gates, path) if authority.gates is not None else None
    return None if data is None else _parsed(authority, path, data)


def usual_places(authority: Authority, folder: str, gold: str) -> list[str]:
    """Return where a gates file of the usual name may stand: in ``folder``, above the gold, here and at the root."""
    tree = authority.gates
    own = [authority.inside(os.path.join(folder, name)) for name in GATES_FILES if folder]  # noqa: PTH118
    above = [name for name in _above(authority, gold) if tree is not None and _may_hold(tree, name)]
    here = [authority.inside(name) for name in GATES_FILES]
    return list(dict.fromkeys(name for name in (*own, *above, *here, *GATES_FILES) if name))


def _above(authority: Authority, gold: str) -> list[str]:
    """The usual names in the folders that the gold is in, the nearest first."""
    path = authority.inside(gold) if gold else None
    folders = path.split("/")[:-1] if path else []
    ends = range(len(folders), 0, -1)
    return ["/".join([*folders[:end], name]) for end in ends for name in GATES_FILES]


def _may_hold(tree: Tree, path: str) -> bool:
    """Whether nothing but folders leads to ``path``: a guess that ends at a link or a submodule is no file's name."""
    try:
        tree.files(path)
    except Irregular as odd:
        return odd.path == path
    return True


def _the_one(moves: list[Policy]) -> Policy:
    if len(moves) > 1:
        some = ", ".join(quoted(policy.file) for policy in moves[:_NAMED])
        message = f"This change takes away several gates files, and which of them decides here cannot be told: {some}."
        raise UsageError(
            f"{message} Move one in a change of its own, or let this one decide for itself: gates-ref: head."
        )
    return moves[0]


def _is_usual(path: str) -> bool:
    return posixpath.basename(path) in GATES_FILES


_ENDINGS, _MOST, _FOLDERS = (".yml", ".yaml"), 200, 200


def _gates_file(authority: Authority, path: str) -> Policy | None:
    """Return the policy of a YAML file of the base, when it is one of the usual name, or is a gates file in fact."""
    if _is_usual(path):
        return _at(authority, path)
    data = read_regular(authority.gates, path) if authority.gates is not None else None
    policy = policy_of(data, authority.outside(path), Ledger()) if data and b"gates" in data else None
    return policy._replace(gates=policy.gates or REFERENCE_GATES) if policy and "gates" in policy.stated else None


def _about(authority: Authority, policy: Policy, gold: str, scored: Golds, *, moved: bool) -> str:
    """Return what the gates of ``policy`` are about: the gold that is scored, no gold, or that of another system.

    It is another system's when the scored gold repeats nearly nothing of it. The gold of gates that the change leaves
    in place has to be there still.
    """
    tree = authority.gates
    own = gold_named_by(authority, policy, tree) if tree is not None else None
    if tree is None or own is None:
        return _NO_GOLD
    if own == authority.inside(gold):
        return _SAME_GOLD
    try:
        stored = stored_at(authority, tree, own, Limits(**policy.limits))
        if stored is None:
            return _NO_GOLD
        if not moved and not _is_there(authority.after, own):
            return _SAME_GOLD
        theirs = stored_gold_set(Reader(Ledger()), stored).golds.values()
    except (InputError, Irregular):
        return _SAME_GOLD
    ours = scored().values()
    enough = _shared(theirs, ours) * 100 >= _SHARED * max(1, min(len(theirs), len(ours)))
    return _SAME_GOLD if enough else _OTHER_GOLD


def _shared(theirs: Iterable[Gold], ours: Iterable[Gold]) -> int:
    """Count the items of ours that repeat a question, or the labels, of one of theirs."""
    known = {key for gold in theirs for key in _keys(gold)}
    return sum(not known.isdisjoint(_keys(gold)) for gold in ours)


def _keys(gold: Gold) -> list[object]:
    labels = gold.substrings, gold.citations
    return [plain_question(gold.question), *([labels] if all(labels) else [])]


def _is_there(tree: Tree, path: str) -> bool:
    try:
        return bool(tree.files(path))
    except Irregular:
        return True


def _parsed(authority: Authority, path: str, data: bytes) -> Policy:
    ledger = Ledger()
    policy = policy_of(data, authority.outside(path), ledger)
    if policy is None:
        named, aside = f"{path} of {authority.ref}", "Or let this one change decide for itself: gates-ref: head."
        raise InputError([each._replace(file=named, hint=f"{each.hint} {aside}") for each in ledger.problems])
    return policy._replace(gates=policy.gates or REFERENCE_GATES)


def gold_named_by(authority: Authority, base: Policy, tree: Tree) -> str | None:
    """Return the path of the gold that a gates file of the base names, as ``tree`` has that file."""
    file = authority.written(base.file) or authority.inside(base.file)
    if file is None:
        return None
    data = read_regular(tree, file)
    then = policy_of(data, base.file, Ledger()) if data is not None else None
    stated = (then or base).stated.get("gold", DEFAULT_GOLD)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), stated.replace(os.sep, "/")))
    return None if path.startswith(("/", "../")) or path in (".", "..") else path


def stored_at(authority: Authority, tree: Tree, path: str, limits: Limits) -> StoredGold | None:
    """Return the gold file or label folder at ``path`` of a tree, None when nothing is there."""
    shown = f"{path} of {authority.ref}"
    try:
        data = read(tree, path)
    except Irregular as error:
        if not repository.is_folder(error, path):
            raise
        ids = tree.files(f"{path}/")
        blobs = tree.contents(ids.values())
        files = {posixpath.basename(name): blobs[own] for name, own in ids.items()}
        return StoredGold(path, shown, files, folder=True, limits=limits)
    return None if data is None else StoredGold(path, shown, {path: data}, limits=limits)
