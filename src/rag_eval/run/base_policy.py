"""The base branch's gates that apply to a change, even if the change moved their file."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rag_eval.cases.pairing import plain_question
from rag_eval.common.digests import Digests
from rag_eval.common.escaping import quoted
from rag_eval.common.paths import GATES_FILES, PROJECT_FILE, gates_of_project
from rag_eval.contract import DEFAULT_GOLD, Gold, Limits
from rag_eval.errors import InputError, RagEvalError, UsageError
from rag_eval.gates.policy import REFERENCE_GATES, Policy
from rag_eval.gates.selection import restrict
from rag_eval.git.snapshots import NOTHING, Irregular, Tree, files_near_changes, lost, named_files, read, read_regular
from rag_eval.gold.signoff import repository
from rag_eval.readers.gates_file import policy_of
from rag_eval.readers.gold_file import StoredGold, read_gold, stored_gold_set
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run.options import Options, headline

if TYPE_CHECKING:
    from rag_eval.run.authority import Authority

    Golds = Callable[[], Mapping[str, Gold]]


_NAMED = 5
_SHARED = 10  # per cent of the smaller gold set; two systems may both ask a common question
_SAME_GOLD, _NO_GOLD, _OTHER_GOLD = "the gold that is scored", "no gold of their own", "another system's gold"
_ENDINGS, _MOST, _FOLDERS = (".yml", ".yaml"), 200, 200


def policy_of_base(authority: Authority, options: Options, head: Policy, reader: Reader) -> Policy | None:
    """Return the policy of the base branch, with the same options laid over it as over the pull request's.

    If files that it names no longer exist, the pull request's files are used: removing them is another change. The
    same applies to gold that the change edits at the base's path, and to scores from elsewhere.
    """
    silent = reader._replace(ledger=ProblemCollector())

    def scored() -> dict[str, Gold]:
        return read_gold(silent, head.gold)

    policy = _base_policy(authority, head.file, options.folder, head.gold, scored, is_discovered=options.is_discovered)
    if policy is None:
        return None
    gold, trace = options.gold or policy.gold, options.trace or policy.trace
    verdicts = options.verdicts or policy.verdicts
    is_same_gold = gold == head.gold or (os.path.lexists(gold) and is_unchanged(authority, gold))
    policy = restrict(policy, options.perspectives, options.suite)._replace(
        k=headline(options.cutoffs, policy.k),
        gold=gold if is_same_gold else head.gold,
        trace=trace if os.path.lexists(trace) else head.trace,
        verdicts=verdicts if os.path.lexists(verdicts) else head.verdicts,
    )
    if not policy.verdicts:
        return policy
    from rag_eval.readers.verdict_file import with_verdicts

    return with_verdicts(policy, reader._replace(ledger=ProblemCollector()), Digests())


def _base_policy(
    authority: Authority, gates: str, folder: str, gold: str, scored: Golds, *, is_discovered: bool = False
) -> Policy | None:
    """Return the base's gates; None if the head decides for itself, or if the base has none for this system.

    If the gates were found, not named by the caller, they are searched on the base in the same way from ``folder``, so
    that a change of pyproject.toml does not replace them. Next, the named path is searched as it was written, so that a
    folder that the change turned into a link leads nowhere else; then a file of the usual name in ``folder``. Next are
    the usual names above the ``gold``, the nearest first, and the root, so that naming another file or folder, or
    deleting the existing one, does not replace them. The last are gates files of any name that the change deletes or
    moves. Gates about this gold precede those that name no gold; those of another system do not decide. A file that
    only the pyproject.toml of the change names is last. ``scored`` returns the items of the scored gold. Raises
    InputError if the base's file is unreadable.
    """
    tree = authority.gates
    if tree is None:
        return None
    if gates and not gates.endswith(_ENDINGS):
        fix = "Rename it, for example to eval-gates.yml."
        raise UsageError(f"{gates}: only .yml and .yaml files are searched for gates that a change moves. {fix}")
    if is_discovered and (path := _discovered(authority, tree, folder)):
        return _policy_at(authority, path)
    named = [authority.written(gates), authority.inside(gates)] if gates else []
    is_by_change = is_discovered and not _is_standard_name(gates)
    here = [authority.inside(os.path.join(folder, name)) for name in GATES_FILES if folder]  # noqa: PTH118
    for path in dict.fromkeys(name for name in (*([] if is_by_change else named), *here) if name):
        if (data := read(tree, path)) is not None:
            return _parsed(authority, path, data)
    candidates = [(_policy_at(authority, path), False) for path in standard_gates_paths(authority, "", gold)]
    gone = sorted(lost(authority.before, authority.after, _ENDINGS), key=lambda path: not _is_standard_name(path))
    candidates += [(_gates_file(authority, path), True) for path in gone[:_MOST]]
    about = [
        (policy, moved, _subject_of(authority, policy, gold, scored, moved=moved))
        for policy, moved in candidates
        if policy
    ]
    for wanted in (_SAME_GOLD, _NO_GOLD):
        standing = [policy for policy, moved, what in about if what == wanted and not moved]
        moves = [policy for policy, moved, what in about if what == wanted and moved]
        if standing or moves:
            return standing[0] if standing else _only_moved_policy(moves)
        if wanted == _SAME_GOLD and (policy := _gates_moved_with_gold(authority, gold, scored)):
            return policy
    if len(gone) > _MOST:
        message = f"This change removes {len(gone)} YAML files, too many to search for gates that apply here."
        raise UsageError(f"{message} Split it, or use only this pull request's gates: gates-ref: head.")
    return next((policy for path in named if path and (policy := _policy_at(authority, path))), None)


def _discovered(authority: Authority, tree: Tree, folder: str) -> str | None:
    """Return the gates file that the nearest pyproject.toml of the base names, from ``folder`` upward.

    None if there is none, or a gates file of the usual name is nearer.
    """
    start = authority.inside(os.path.join(folder, PROJECT_FILE))  # noqa: PTH118
    folder = posixpath.dirname(start) if start else ""
    while True:
        project = posixpath.join(folder, PROJECT_FILE)
        if (data := read_regular(tree, project)) is not None and (named := gates_of_project(data, project)):
            path = posixpath.normpath(posixpath.join(folder, named))
            return path if not path.startswith("../") and read(tree, path) is not None else None
        if not folder or any(has_path(tree, posixpath.join(folder, name)) for name in GATES_FILES):
            return None
        folder = posixpath.dirname(folder)


def _gates_moved_with_gold(authority: Authority, gold: str, scored: Golds) -> Policy | None:
    """Return the gates of another folder about this gold, which the change moved or copied from there."""
    nearby = files_near_changes(authority.before, authority.after, GATES_FILES)
    paths = dict.fromkeys([*nearby, *named_files(authority.before, GATES_FILES, _FOLDERS)])
    for path in list(paths)[:_MOST]:
        policy = _policy_at(authority, path)
        named_gold = gold_named_by(authority, policy, authority.before) if policy else None
        # Gates moved next to others for the same file are the first gates of that folder.
        if policy is None or named_gold == authority.inside(gold):
            continue
        if _subject_of(authority, policy, gold, scored, moved=True) == _SAME_GOLD:
            return policy
    return None


def _policy_at(authority: Authority, path: str) -> Policy | None:
    data = read(authority.gates, path) if authority.gates is not None else None
    return None if data is None else _parsed(authority, path, data)


def standard_gates_paths(authority: Authority, folder: str, gold: str) -> list[str]:
    """Return the possible paths of a usual gates file: in ``folder``, above the gold, here and at the root."""
    tree = authority.gates
    in_folder = [authority.inside(os.path.join(folder, name)) for name in GATES_FILES if folder]  # noqa: PTH118
    above = [name for name in _standard_paths_above(authority, gold) if tree is not None and _may_hold(tree, name)]
    here = [authority.inside(name) for name in GATES_FILES]
    return list(dict.fromkeys(name for name in (*in_folder, *above, *here, *GATES_FILES) if name))


def _standard_paths_above(authority: Authority, gold: str) -> list[str]:
    """Return the usual names in the folders above the gold, the nearest first."""
    path = authority.inside(gold) if gold else None
    folders = path.split("/")[:-1] if path else []
    ends = range(len(folders), 0, -1)
    return ["/".join([*folders[:end], name]) for end in ends for name in GATES_FILES]


def _may_hold(tree: Tree, path: str) -> bool:
    """Return whether only folders lead to ``path``, because a path through a link or submodule names no file."""
    try:
        tree.files(path)
    except Irregular as odd:
        return odd.path == path
    return True


def _only_moved_policy(moves: list[Policy]) -> Policy:
    if len(moves) > 1:
        some = ", ".join(quoted(policy.file) for policy in moves[:_NAMED])
        message = f"This change removes several gates files, so it is unknown which one applies here: {some}."
        advice = "Move one of them in a separate pull request, or use only this pull request's gates: gates-ref: head."
        raise UsageError(f"{message} {advice}")
    return moves[0]


def _is_standard_name(path: str) -> bool:
    return posixpath.basename(path) in GATES_FILES


def _gates_file(authority: Authority, path: str) -> Policy | None:
    """Return the policy of a YAML file of the base if it has the usual name, or if it is a gates file."""
    if _is_standard_name(path):
        return _policy_at(authority, path)
    data = read_regular(authority.gates, path) if authority.gates is not None else None
    policy = policy_of(data, authority.outside(path), ProblemCollector()) if data and b"gates" in data else None
    return policy._replace(gates=policy.gates or REFERENCE_GATES) if policy and "gates" in policy.stated else None


def _subject_of(authority: Authority, policy: Policy, gold: str, scored: Golds, *, moved: bool) -> str:
    """Return the subject of the gates of ``policy``: the scored gold, no gold, or another system's gold.

    It is another system's if the scored gold repeats almost none of it. The gold of gates that the change leaves in
    place must still exist.
    """
    tree = authority.gates
    named_gold = gold_named_by(authority, policy, tree) if tree is not None else None
    if tree is None or named_gold is None:
        return _NO_GOLD
    if named_gold == authority.inside(gold):
        return _SAME_GOLD
    try:
        stored = stored_at(authority, tree, named_gold, Limits(**policy.limits))
        if stored is None:
            return _NO_GOLD
        if not moved and not has_path(authority.after, named_gold):
            return _SAME_GOLD
        base_items = stored_gold_set(Reader(ProblemCollector()), stored).golds.values()
    except (InputError, Irregular):
        return _SAME_GOLD
    ours = scored().values()
    enough = _count_shared(base_items, ours) * 100 >= _SHARED * max(1, min(len(base_items), len(ours)))
    return _SAME_GOLD if enough else _OTHER_GOLD


def _count_shared(base_items: Iterable[Gold], ours: Iterable[Gold]) -> int:
    """Count the scored items that repeat a question, or the labels, of an item of the base."""
    known = {key for gold in base_items for key in _item_keys(gold)}
    return sum(not known.isdisjoint(_item_keys(gold)) for gold in ours)


def _item_keys(gold: Gold) -> list[object]:
    labels = gold.substrings, gold.citations
    return [plain_question(gold.question), *([labels] if all(labels) else [])]


def has_path(tree: Tree, path: str) -> bool:
    """Return whether a state has something at a path: a link or a submodule counts."""
    try:
        return bool(tree.files(path))
    except Irregular:
        return True


def _parsed(authority: Authority, path: str, data: bytes) -> Policy:
    ledger = ProblemCollector()
    policy = policy_of(data, authority.outside(path), ledger)
    if policy is None:
        named, advice = f"{path} of {authority.ref}", "Or use only the gates of this pull request: gates-ref: head."
        raise InputError([problem._replace(file=named, hint=f"{problem.hint} {advice}") for problem in ledger.problems])
    return policy._replace(gates=policy.gates or REFERENCE_GATES)


def gold_named_by(authority: Authority, base: Policy, tree: Tree) -> str | None:
    """Return the path of the gold that a gates file of the base names, as ``tree`` has that file."""
    file = authority.written(base.file) or authority.inside(base.file)
    if file is None:
        return None
    data = read_regular(tree, file)
    then = policy_of(data, base.file, ProblemCollector()) if data is not None else None
    stated = (then or base).stated.get("gold", DEFAULT_GOLD)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), stated.replace(os.sep, "/")))
    return None if path.startswith(("/", "../")) or path in (".", "..") else path


def stored_at(authority: Authority, tree: Tree, path: str, limits: Limits) -> StoredGold | None:
    """Return the gold file or label folder at ``path`` of a tree, None if there is nothing."""
    shown = f"{path} of {authority.ref}"
    try:
        data = read(tree, path)
    except Irregular as error:
        if not repository.is_folder(error, path):
            raise
        ids = tree.files(f"{path}/")
        blobs = tree.contents(ids.values())
        files = {posixpath.basename(name): blobs[blob] for name, blob in ids.items()}
        return StoredGold(path, shown, files, folder=True, limits=limits)
    return None if data is None else StoredGold(path, shown, {path: data}, limits=limits)


def is_unchanged(authority: Authority, path: str) -> bool:
    """Return whether a file or folder of the work tree is the same on the base, or missing there."""
    inside = authority.inside(path)
    if inside is None:
        return True  # the base does not decide about it
    states = [_content(tree, inside) for tree in (authority.fork, authority.gates) if tree and tree is not NOTHING]
    return not any(states) or _content(authority.head, inside) in states


def _content(tree: Tree, path: str) -> dict[str, bytes]:
    try:
        ids = tree.files(path)
    except RagEvalError:
        try:
            ids = tree.files(f"{path}/")
        except RagEvalError:
            return {}
    blobs = tree.contents(ids.values())
    return {name: blobs[blob] for name, blob in ids.items()}
