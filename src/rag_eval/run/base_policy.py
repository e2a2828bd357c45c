"""The base branch's gates that apply to a change, even if the change moved their file."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_eval import git
from rag_eval.analysis.policy_changes import changes
from rag_eval.common.escaping import quoted
from rag_eval.common.paths import GATES_FILES, PROJECT_FILE, gates_of_project
from rag_eval.contract import DEFAULT_GOLD, Gold, Limits
from rag_eval.errors import InputError, RagEvalError, UsageError
from rag_eval.gates import Policy
from rag_eval.readers.gates_file import in_folder_of, policy_of
from rag_eval.readers.gold_file import StoredGold, read_gold, stored_gold_set
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.readers.strict_json import JsonError, decode
from rag_eval.run.authority import Authority
from rag_eval.scoring import plain_question

_NAMED = 5
_SHARED = 10  # per cent of the smaller gold set; two systems may both ask a common question
ENDINGS = (".yml", ".yaml")


def find_base_policy(
    authority: Authority, head: Policy, folder: str, *, is_discovered: bool, reader: Reader
) -> Policy | None:
    """Return the base branch's policy for the system that ``head`` scores; None if it has none.

    A change could move or delete the file, or name another one. So these places of the base are searched in order:

    1. What a run from the working folder finds there, if the caller named no file (``is_discovered``).
    2. The path of the caller: as it was written, because the change could turn a folder into a link, then by links.
    3. A file of the usual name in the working folder.
    4. The rest of the base, see :meth:`_Search.elsewhere`.
    5. The path that only the change's pyproject.toml names.

    Raises InputError if the base's file is unreadable.
    """
    tree, gates = authority.gates, head.file
    if tree is None:
        return None
    if gates and not gates.endswith(ENDINGS):
        fix = "Rename it, for example to eval-gates.yml."
        raise UsageError(f"{gates}: only .yml and .yaml files are searched for gates that a change moves. {fix}")
    search = _Search(authority, tree, head.gold, reader)
    if is_discovered and (path := _discovered(authority, tree, folder)):
        return search.policy_at(path)
    named = [authority.written(gates), authority.inside(gates)] if gates else []
    usual = [authority.on_base(str(Path(folder, name))) for name in GATES_FILES if folder]
    is_by_change = is_discovered and not is_standard_name(gates)
    paths = usual if is_by_change else [*named, *usual]
    return search.first(paths) or search.elsewhere(gates) or search.first(named)


class _Search:
    """The search for the base's gates that apply to the scored gold at the path ``gold``."""

    def __init__(self, authority: Authority, tree: git.CommitTree, gold: str, reader: Reader) -> None:
        self.authority, self.tree, self.gold = authority, tree, gold
        self.reader = reader.silent()

    @cached_property
    def files(self) -> dict[str, str]:
        """Return the object ids of all files of the base by path."""
        return self.tree.paths()

    @cached_property
    def scored(self) -> dict[str, Gold]:
        """Return the items of the scored gold."""
        return read_gold(self.reader, self.gold)

    def first(self, paths: Iterable[str | None]) -> Policy | None:
        """Return the first gates among some paths of the base."""
        return next(filter(None, map(self.policy_at, filter(None, paths))), None)

    def elsewhere(self, gates: str) -> Policy | None:
        """Return the gates above the gold or at the root that name it, otherwise the strictest that may be about it.

        These are gates about gold with the same items, and those that the change leaves without their file or gold: it
        may be the same system with another name and reworded questions. First gates for the same file in another
        folder are not, unless others have the same items. UsageError if none of several is the strictest.
        """
        here, before, after = self.authority.inside(self.gold), self.authority.fork, self.authority.after
        near = list(filter(None, map(self.policy_at, standard_gates_paths(self.authority, "", self.gold))))
        if same := [policy for policy in near if self.gold_of(policy) == here]:
            return same[0]
        removed = list(self.gates_in(sorted((self.files.keys() & before.paths().keys()) - after.paths().keys())))
        if same := [policy for policy in removed if self.gold_of(policy) == here]:
            return _only_policy(self._strictest(same))
        is_known = not gates and here in self.files  # a system that the base knows, without gates of its own
        others = {policy.file: policy for policy in (*near, *removed, *self.all_gates())}
        gone = {policy.file for policy in removed}
        nearest = next((policy.file for policy in near if not self.has_gold(policy, self.tree, after)), "")
        of_same_file, similar, left = list[Policy](), list[Policy](), list[Policy]()
        for file, policy in others.items():
            has_gold = self.has_gold(policy, self.tree)
            loses_gold = has_gold and self.has_gold(policy, before) and not self.has_gold(policy, after)
            if gates and gold_named_by(self.authority, policy, before) == here:
                of_same_file.append(policy)
            elif self.shares_items(policy, self.scored.values()):
                similar.append(policy)
            elif file == nearest or (file in gone and not (is_known and has_gold)) or (loses_gold and not is_known):
                left.append(policy)
        candidates = [*left, *similar, *(of_same_file if similar else [])]
        return _only_policy(self._moved(similar) or self._strictest(candidates)) if candidates else None

    def gold_of(self, policy: Policy) -> str | None:
        """Return the path of the gold that gates of the base name."""
        return gold_named_by(self.authority, policy, self.tree)

    def _moved(self, similar: list[Policy]) -> list[Policy]:
        """Return the gates of the gold that this change moves as it is, if no other gates have the same gold."""
        authority, here = self.authority, self.authority.inside(self.gold)
        ours = here and sorted(_content(authority.head, here).values())
        same = []
        for policy in similar:
            path = self.gold_of(policy)
            if ours and path and sorted(_content(self.tree, path).values()) == ours:
                same.append(policy)
        if len(same) != 1 or self.has_gold(same[0], authority.after):
            return []
        file = authority.on_base(same[0].file)
        return same if file and not git.has_path(authority.after, file) else []

    def has_gold(self, policy: Policy, *trees: git.Tree) -> bool:
        """Return whether the gold that a gates file names is in all of these states."""
        path = self.gold_of(policy)
        return path is not None and all(git.has_path(tree, path) for tree in trees)

    def _strictest(self, policies: Iterable[Policy]) -> list[Policy]:
        """Return the gates that are at least as strict as all the others; all different ones if there are none.

        The gates that resemble the change most are not enough: it could cut its gold to that of looser gates.
        """
        stated = [(self._statement(policy), policy) for policy in policies]
        different = list({repr(statement): (statement, policy) for statement, policy in stated}.values())
        strictest = different[0]
        for candidate in different:
            if not _loosens(strictest[0], candidate[0]):
                strictest = candidate
        is_unclear = any(_loosens(statement, strictest[0]) for statement, _ in different)
        return [policy for _, policy in different] if is_unclear else [strictest[1]]

    def _statement(self, policy: Policy) -> dict[str, Any]:
        """Return the content of a gates file without the names of its gold set, records and traces.

        Its other files are given by their content, because a relative path names another file in another folder.
        """

        def content_of(path: str) -> str:
            path = in_folder_of(policy.file, path)
            name = self.authority.on_base(path)
            data = git.read_regular(self.tree, git.follow_links(self.tree, name)) if name else None
            if data is not None:
                return git.object_id(data)
            return path if os.path.lexists(path) else ""  # such as a baseline that a step of the job downloads

        stated = {**policy.stated, "gold": "", "trace": ""}
        if "baseline" in stated:
            stated["baseline"] = {name: content_of(path) for name, path in stated["baseline"].items()}
        if "verdicts" in stated:
            stated["verdicts"] = content_of(stated["verdicts"])
        if "signoff" in stated:
            stated["signoff"] = {**stated["signoff"], "dataset": "", "gold": "", "records": ""}
            if keys := stated["signoff"].get("allowed_signers"):
                stated["signoff"]["allowed_signers"] = content_of(keys)
        return stated

    def policy_at(self, path: str) -> Policy | None:
        """Return the gates at a path of the base; None without a file."""
        data = git.read(self.tree, path)
        return None if data is None else self._parsed(path, data)

    def all_gates(self) -> Iterator[Policy]:
        """Yield all policies of the base, those of the usual name first; invalid ones about other gold are skipped."""
        paths = sorted(path for path in self.files if path.endswith(ENDINGS))
        return self.gates_in(sorted(paths, key=lambda path: not is_standard_name(path)), skips_invalid_others=True)

    def gates_in(self, paths: list[str], *, skips_invalid_others: bool = False) -> Iterator[Policy]:
        """Yield the policies of those files of the base that are gates files, whatever their names.

        An invalid file of the usual name is an InputError, unless it may be skipped and is about other gold.
        """
        blobs = self.tree.contents(self.files[path] for path in paths)
        for path in paths:
            data = blobs[self.files[path]]
            if is_standard_name(path):
                try:
                    yield self._parsed(path, data)
                except InputError:
                    if not (skips_invalid_others and self._is_about_other_gold(path, data)):
                        raise
            elif b"gates" in data or b"signoff" in data:
                policy = policy_of(data, self.authority.outside(path), ProblemCollector())
                if policy and not policy.stated.keys().isdisjoint(("gates", "signoff")):
                    yield policy

    def _is_about_other_gold(self, path: str, data: bytes) -> bool:
        """Return whether an invalid gates file is about gold without our items, and the change deletes neither."""
        from rag_eval.readers.yaml_file import parse  # yaml is heavy

        try:
            value = parse(decode(data)).value
        except JsonError:
            return False
        gold = value.get("gold", DEFAULT_GOLD) if isinstance(value, dict) else None
        if not isinstance(gold, str):
            return False
        policy = Policy(file=self.authority.outside(path), stated={"gold": gold})
        states = self.tree, self.authority.fork, self.authority.after
        is_kept = self.has_gold(policy, *states) and all(git.has_path(tree, path) for tree in states)
        is_ours = self.gold_of(policy) == self.authority.inside(self.gold)
        return is_kept and not is_ours and not self.shares_items(policy, self.scored.values())

    def _parsed(self, path: str, data: bytes) -> Policy:
        ledger = ProblemCollector()
        policy = policy_of(data, self.authority.outside(path), ledger)
        if policy is None:
            named = f"{path} of {self.authority.ref}"
            advice = "Or use only the gates of this pull request: gates-ref: head."
            raise InputError(
                [problem._replace(file=named, hint=f"{problem.hint} {advice}") for problem in ledger.problems]
            )
        return policy

    def shares_items(self, policy: Policy, ours: Collection[Gold]) -> bool:
        """Return whether the gold of ``policy`` and some items share a tenth of the smaller set.

        Items are the same if their question or their labels are. Questions that ``policy`` takes for unanswerable count
        only if it has no others: two systems may share them. Unreadable gold may be the same gold.
        """
        path, limits = self.gold_of(policy), Limits(**policy.limits)
        try:
            stored = stored_at(self.authority, self.tree, path, limits)
            golds = stored_gold_set(stored).golds if stored else {}
        except (InputError, git.Irregular):
            return True
        theirs = [item for item in golds.values() if item.answerable] or list(golds.values())
        known = {key for item in theirs for key in _item_keys(item)}
        shared = sum(not known.isdisjoint(_item_keys(item)) for item in ours)
        return shared * 100 >= _SHARED * max(1, min(len(theirs), len(ours)))


def _item_keys(gold: Gold) -> list[object]:
    labels = gold.substrings, gold.citations
    return [plain_question(gold.question), *([labels] if all(labels) else [])]


def _loosens(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return any(change.kind == "looser" for change in changes(old, new))


def _only_policy(policies: list[Policy]) -> Policy:
    if len(policies) > 1:
        some = ", ".join(quoted(policy.file) for policy in policies[:_NAMED])
        which = f"so it is unknown which one applies here: {some}"
        advice = "For the first run of a new system use only this pull request's gates: gates-ref: head."
        raise UsageError(f"Several gates files of the base may be about this gold set, {which}. {advice}")
    return policies[0]


def gates_about(authority: Authority, gold: str, reader: Reader) -> list[Policy]:
    """Return all gates files of the base that name this gold file."""
    if authority.gates is None:
        return []
    search = _Search(authority, authority.gates, gold, reader)
    return [policy for policy in search.all_gates() if search.gold_of(policy) == authority.inside(gold)]


def gates_left_behind(authority: Authority, base: Policy, items: Collection[Gold], reader: Reader) -> list[Policy]:
    """Return the gates whose file or gold the change deletes, and whose gold has some of the items.

    They are in the YAML files directly in the folders above what is deleted. The gates ``base``, which apply, are left
    out.
    """
    tree, before, after = authority.gates, authority.fork, authority.after
    if tree is None:
        return []
    search, left = _Search(authority, tree, "", reader), list[Policy]()
    folders = set[str]()
    for path in git.deleted(before, after):
        while path and (path := posixpath.dirname(path)) not in folders:
            folders.add(path)
    paths = sorted(name for name in search.files if name.endswith(ENDINGS) and posixpath.dirname(name) in folders)
    tree.contents(search.files[path] for path in paths)  # all at once
    for path in paths:
        with suppress(InputError, git.Irregular):  # gates that cannot be read decide nothing
            for policy in search.gates_in([path]):
                if policy.file == base.file or not search.has_gold(policy, before):
                    continue
                is_left = not (git.has_path(after, path) and search.has_gold(policy, after))
                left += [policy] if is_left and search.shares_items(policy, items) else []
    return left


def is_standard_name(path: str) -> bool:
    """Return whether a file has a name that is searched for gates."""
    return posixpath.basename(path) in GATES_FILES


def _discovered(authority: Authority, tree: git.CommitTree, folder: str) -> str | None:
    """Return the gates file that a run from ``folder`` finds on the base; None if there is none.

    Outside the action it may be in a folder above it, unless the base does not have ``folder``, as with a new system.
    """
    start = authority.on_base(folder or ".")
    folder = git.follow_links(tree, start) if start and start != "." else ""
    while True:
        project = posixpath.join(folder, PROJECT_FILE)
        source = git.follow_links(tree, project)
        may_differ = git.is_in_changed_submodule(authority.fork, authority.after, source)
        data = git.read(tree, source) if may_differ else git.read_regular(tree, source)
        if data is not None and (named := gates_of_project(data, project)):
            path = posixpath.normpath(posixpath.join(folder, named))
            return path if not path.startswith("../") and git.read(tree, path) is not None else None
        usual = [path for name in GATES_FILES if git.has_path(tree, path := posixpath.join(folder, name))]
        if usual or not folder or authority.ci or not tree.entries(folder):
            return usual[0] if usual else None
        folder = posixpath.dirname(folder)


def standard_gates_paths(authority: Authority, folder: str, gold: str) -> list[str]:
    """Return the possible paths of a usual gates file: in ``folder``, above the gold, here and at the root."""
    tree, path = authority.gates, authority.inside(gold) if gold else None
    parts = path.split("/")[:-1] if path else []
    above = ["/".join([*parts[:end], name]) for end in range(len(parts), 0, -1) for name in GATES_FILES]
    in_folder = [authority.inside(str(Path(folder, name))) for name in GATES_FILES if folder]
    here = [authority.inside(name) for name in GATES_FILES]
    reachable = [name for name in above if tree is not None and _is_reachable(tree, name)]
    return list(dict.fromkeys(name for name in (*in_folder, *reachable, *here, *GATES_FILES) if name))


def _is_reachable(tree: git.Tree, path: str) -> bool:
    """Return whether only folders lead to ``path``, because a path through a link or submodule names no file."""
    try:
        tree.files(path)
    except git.Irregular as odd:
        return odd.path == path
    return True


def policy_in(tree: git.Tree | None, path: str | None, file: str) -> Policy | None:
    """Return the policy at a path of a state, as that of ``file``; None if it is missing or invalid."""
    data = git.read_regular(tree, path) if tree and path else None
    return None if data is None else policy_of(data, file, ProblemCollector())


def gold_named_by(authority: Authority, base: Policy, tree: git.Tree) -> str | None:
    """Return the path of the gold that a gates file of the base names, as ``tree`` has that file."""
    file = authority.on_base(base.file)
    if file is None:
        return None
    stated = (policy_in(tree, file, base.file) or base).stated.get("gold", DEFAULT_GOLD)
    return git.path_inside(posixpath.dirname(file), stated.replace(os.sep, "/"))


def stored_at(authority: Authority, tree: git.Tree, path: str | None, limits: Limits) -> StoredGold | None:
    """Return the gold file or label folder at ``path`` of a tree, None if there is nothing or no path."""
    if not path:
        return None
    shown = f"{path} of {authority.ref}"
    try:
        data = git.read(tree, path)
    except git.Irregular as error:
        if not git.is_folder(error, path):
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
    states = [_content(tree, inside) for tree in (authority.fork, authority.gates) if tree and tree is not git.NOTHING]
    return not any(states) or _content(authority.head, inside) in states


def _content(tree: git.Tree, path: str) -> dict[str, bytes]:
    try:
        ids = tree.files(path)
    except RagEvalError:
        try:
            ids = tree.files(f"{path}/")
        except RagEvalError:
            return {}
    blobs = tree.contents(ids.values())
    return {name: blobs[blob] for name, blob in ids.items()}
