"""The base of a run of the action: which commit decides, and how its files are read.

The runner's event determines the commit. GitHub's API is asked first, because it needs no history in the checkout, then
git. Objects from git are checked against the ids that the event names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rag_eval.common.escaping import one_line, quoted
from rag_eval.errors import RagEvalError, UsageError
from rag_eval.git import NOTHING, CommitTree, is_object_id, parents
from rag_eval.git.plumbing import Git, GitError, GitTimeout
from rag_eval.github import GitHub
from rag_eval.github.http_client import text_at
from rag_eval.gold.signoff_identity import Author, SignoffPolicy, approvals, authors
from rag_eval.run.authority import Authority, Signoff, WorkTree

History: TypeAlias = "ApiHistory | GitHistory"
"""Commits of a repository by their ids, and by name where names can be trusted."""

_QUEUE = re.compile(r"refs/heads/gh-readonly-queue/(.+)/pr-([0-9]+)-([0-9a-f]{40,64})")
_PULL, _TARGET = ("pull_request", "pull_request_review"), "pull_request_target"
_ON_BASE = (_TARGET, "workflow_run")  # which run on a commit of the base branch
_NAMED_REFS = ("base", "default-branch")
_FIX = "Give the job `contents: read` and the action its github-token, or check out with fetch-depth: 0."


class Trigger(NamedTuple):
    """The trigger of a run: the event's name and content, the ref and the commit under test."""

    name: str
    event: Mapping[str, Any]
    ref: str
    sha: str
    base_ref: str

    def text_at(self, *path: str) -> str:
        """Return a text of the event, empty if it has none."""
        return text_at(self.event, *path)

    @property
    def queued(self) -> int | None:
        """Return the number of the pull request that a merge queue tests, from the ref, which no step can change."""
        queue = _QUEUE.fullmatch(self.ref) if self.name == "merge_group" else None
        return int(queue[2]) if queue else None

    @property
    def is_merged(self) -> bool:
        """Return whether the commit under test is a merge of the pull request, which its author cannot make.

        Runners of other servers test its last commit, which may be a merge with any first parent.
        """
        return self.name in _PULL and not self.ref.endswith("/head")

    @property
    def head(self) -> str:
        """Return the last commit of the pull request or of the run before, otherwise the commit under test."""
        of_run = self.text_at("workflow_run", "head_sha") if self.name == "workflow_run" else ""
        return self.text_at("pull_request", "head", "sha") or of_run or self.sha


class DecidingCommit(NamedTuple):
    """The commit that decides, by name and by id. The id is empty if there is no earlier commit."""

    ref: str
    commit: str
    direct: bool = True  # the commit under test grew out of this very commit
    head: str = ""  # the last commit of the pull request, if the merge commit names it


def find(trigger: Trigger, history: History) -> DecidingCommit:
    """Return the base of an event.

    For a pull request it is the first parent of its merge commit, for a merge queue the commit that the queue merges
    onto, and for a push to the default branch its earlier tip. Otherwise it is the tip of the default branch, so that
    no sequence of pushes or manual runs can loosen the gates step by step.
    """
    if trigger.name in _PULL:
        parents = history.parents(_checked_id(trigger.sha, "GITHUB_SHA"))
        ref = trigger.base_ref or trigger.text_at("pull_request", "base", "ref") or "the base branch"
        is_merge = trigger.is_merged and len(parents) == 2
        base = parents[0] if is_merge else trigger.text_at("pull_request", "base", "sha")
        base = _checked_id(base, "pull_request.base.sha")
        return DecidingCommit(ref, base, is_merge, parents[1] if is_merge else "")
    if trigger.name == _TARGET:
        ref = trigger.base_ref  # GitHub takes such a workflow from the default branch
        if ref and trigger.ref not in ("", f"refs/heads/{ref}"):
            return DecidingCommit(ref, history.branch(ref), direct=False)
        return DecidingCommit(ref or "the base branch", _checked_id(trigger.sha, "GITHUB_SHA"), direct=False)
    if trigger.name == "merge_group":
        queue = _QUEUE.fullmatch(trigger.ref)
        named = (queue[1], queue[3]) if queue else [trigger.text_at("merge_group", n) for n in ("base_ref", "base_sha")]
        return DecidingCommit(named[0], _checked_id(named[1], "merge_group.base_sha"))
    default = history.default()  # an earlier step may have changed the event file
    if trigger.name == "push" and trigger.ref == f"refs/heads/{default}":
        before = _checked_id(trigger.text_at("before"), "before")
        return DecidingCommit(f"{default} before this push", before if before.strip("0") else "")
    return DecidingCommit(default, history.branch(default), direct=False)


def _checked_id(commit: str, what: str) -> str:
    if not is_object_id(commit):
        fix = "Use the events of the workflow that rag-eval init writes."
        raise UsageError(f"The event names no base: {what} is missing. {fix}")
    return commit


def authority(
    trigger: Trigger, gates_ref: str, signoff: Signoff, head: WorkTree, histories: Sequence[Callable[[], History]]
) -> Authority:
    """Return who decides, from the first history that knows; raise RagEvalError with what each of them lacks."""
    if gates_ref == "head":
        commits = frozenset({trigger.sha, trigger.head} - {""})
        decider = Authority("head", trigger.head, "the checkout", None, NOTHING, head)
        return decider._replace(commits=commits, signoff=signoff, ci=True)
    reasons: dict[str, None] = {}  # without repeats: both histories may give the same reason
    for opening in histories:
        try:
            return _authority_of(trigger, gates_ref, signoff, head, opening())
        except RagEvalError as error:
            reasons[str(error) if str(error).endswith(("?", "!", ".")) else f"{error}."] = None
    named = "" if gates_ref in _NAMED_REFS else f" If gates-ref {quoted(gates_ref, 60)} is wrong, correct it."
    raise RagEvalError(f"The base cannot be read, so nothing can be judged. {' '.join(reasons)} {_FIX}{named}")


def _authority_of(trigger: Trigger, gates_ref: str, signoff: Signoff, head: WorkTree, history: History) -> Authority:
    against = find(trigger, history)
    gates = against
    if gates_ref != "base":
        ref = history.default() if gates_ref == "default-branch" else gates_ref
        gates = DecidingCommit(ref, history.branch(ref) if gates_ref == "default-branch" else history.named(ref))
    top = Path(head.top)
    last_commit, checked_out = against.head or trigger.head, head_of(top)
    under_test = last_commit if checked_out == last_commit else trigger.sha
    if checked_out.startswith("ref: refs/"):
        checked_out = head_of(top, checked_out.removeprefix("ref: "))
    merge = ""
    if trigger.name in _ON_BASE and is_object_id(checked_out) and last_commit in history.parents(checked_out):
        under_test = merge = checked_out
    # A pull_request_target runs on a commit of the base.
    commits = frozenset({"" if trigger.name == _TARGET else trigger.sha, last_commit, merge} - {""})
    # Under whichever name its own gates were requested.
    is_own_commit = gates.commit != against.commit and gates.commit in commits
    # The change began at the base if it was merged, otherwise where it branched off.
    is_merged = against.direct and under_test == trigger.sha
    fork = history.merge_base(against.commit, under_test) if against.commit and not is_merged else against.commit
    before, after = history.at(fork) if fork else NOTHING, history.at(under_test)
    head.committed = after
    is_elsewhere = not (is_own_commit or gates_ref in _NAMED_REFS or gates.commit == against.commit)
    deciding = None if is_own_commit else history.at(gates.commit) if gates.commit else NOTHING
    return Authority(
        ref=gates.ref,
        commit=gates.commit,
        through=history.through,
        gates=deciding,
        fork=before,
        head=head,
        used_records=history.at(against.commit) if fork and fork != against.commit else NOTHING,
        after=after,
        commits=commits,
        signoff=signoff,
        ci=True,
        fork_of_gates=before if gates is against and fork not in ("", against.commit) else None,
        unknown=is_elsewhere and not _is_in_history(gates.commit, against, history),
        instead_of=history.at(against.commit) if is_elsewhere and against.commit else None,
        wrong_checkout=checked_out if _lacks_last_commit(trigger, checked_out, commits, last_commit, history) else "",
    )


def _lacks_last_commit(
    trigger: Trigger, checked_out: str, commits: frozenset[str], last_commit: str, history: History
) -> bool:
    """Return whether the checkout is known to lack the pull request's last commit."""
    if trigger.name not in (*_PULL, _TARGET) or not is_object_id(checked_out) or checked_out in commits:
        return False
    try:
        return history.merge_base(checked_out, last_commit) != last_commit
    except RagEvalError:
        return False  # a commit that a step of the job made, or a clone without that history


def _is_in_history(commit: str, against: DecidingCommit, history: History) -> bool:
    """Return whether a commit is in the history of the base or the default branch; False if unknown."""
    tips: tuple[Callable[[], str], ...] = (lambda: against.commit, lambda: history.branch(history.default()))
    for tip in tips:
        with suppress(RagEvalError):  # a clone without that history, or an API without an answer
            if (head := tip()) and history.merge_base(head, commit) == commit:
                return True
    return False


def head_of(top: Path, name: str = "HEAD") -> str:
    """Return a repository's HEAD, or another ref: a commit's id, or ``ref: `` and a branch; empty if unreadable."""
    path = top / ".git" / name
    try:
        if not path.is_file():  # a pipe would be waited for without end
            return ""
        with path.open(encoding="utf-8") as file:
            return file.read(4_096).strip()
    except (OSError, ValueError):
        return ""


def last_commit(trigger: Trigger, parents_of: Callable[[str], list[str]]) -> str:
    """Return the last commit of the pull request by its merge commit: a step of the job can edit the event file."""
    parents = parents_of(trigger.sha) if trigger.is_merged else []
    return parents[1] if len(parents) == 2 else trigger.head


def people_of(
    api: GitHub, number: int | None, trigger: Trigger, policy: SignoffPolicy, parents_of: Callable[[str], list[str]]
) -> tuple[list[str], list[Author]]:
    """Return the accounts that approve the last commit of a pull request, and the authors of its gold changes."""
    if number is None:
        raise UsageError("The event names no pull request, so its authors and reviewers are unknown.")
    head = api.pull_head(number) if trigger.name == "merge_group" else last_commit(trigger, parents_of)
    paths = tuple(filter(None, (policy.gold, policy.was)))  # of moved gold, commits before the move count, too
    touching = api.commits_touching(paths, head, number)
    return approvals(api.reviews(number), head), authors(api.opened_by(number), touching, policy.signers)


class ApiHistory:
    """The repository as GitHub's API gives it; objects of the clone are not requested again.

    Every object is checked against its id. Only names, such as branches, are taken from the API unchecked.
    """

    def __init__(self, api: GitHub, checkout: WorkTree) -> None:
        self._api, self._checkout = api, checkout
        self._clone: Git | None = Git(top=checkout.top, foreign=True)
        self._seen: dict[str, CommitTree] = {}
        self.through = "git"
        """What the answers so far came through."""

    def named(self, ref: str) -> str:
        """Return the id of the commit that a branch or tag points to."""
        return self._from_api().commit(ref)

    def branch(self, name: str) -> str:
        """Return the id of the last commit of a branch."""
        return self._from_api().branch(name)

    def default(self) -> str:
        """Return the name of the default branch."""
        return self._from_api().default_branch()

    def merge_base(self, first: str, other: str) -> str:
        """Return the best common ancestor of two commits."""
        return self._from_api().merge_base(first, other)

    def parents(self, commit: str) -> list[str]:
        """Return the ids of a commit's parents."""
        return parents(self.raw("commit", commit))

    def at(self, commit: str) -> CommitTree:
        """Return the files of a commit."""
        if commit not in self._seen:
            self._seen[commit] = CommitTree(self, commit)
        return self._seen[commit]

    def raw(self, kind: str, object_id: str) -> bytes:
        """Return the bytes of an object: from the checkout, the clone, or the API."""
        known = self._present(kind, [object_id])
        return known[object_id] if known else self._from_api().raw(kind, object_id)

    def objects(self, kind: str, object_ids: Collection[str]) -> dict[str, bytes]:
        """Return the bytes of trees or blobs, from the same sources; trees below them may be added."""
        known = self._present(kind, object_ids)
        missing = [name for name in object_ids if name not in known]
        return {**known, **self._from_api().objects(kind, missing)} if missing else known

    def _present(self, kind: str, object_ids: Collection[str]) -> dict[str, bytes]:
        read = {name: self._checkout.content_of(name) for name in object_ids} if kind == "blob" else {}
        known = {name: data for name, data in read.items() if data is not None}
        try:
            if self._clone:
                known |= self._clone.present(kind, [name for name in object_ids if name not in known])
        except GitTimeout:
            self._clone = None
        except GitError:
            pass  # a forged or damaged object
        return known

    def _from_api(self) -> GitHub:
        self.through = "GitHub's API"
        return self._api


class GitHistory(Git):
    """The repository in the checkout. Its names are not trusted: an earlier step may have moved them."""

    through = "git"

    def parents(self, commit: str) -> list[str]:
        """Return the ids of a commit's parents."""
        return parents(self.raw("commit", commit))

    def named(self, ref: str) -> str:
        """Return an id unchanged; raise RagEvalError for a name, which a step of the job can change."""
        if is_object_id(ref):
            return ref
        raise UsageError(f"Only GitHub's API knows the commit of {one_line(ref, 60)}.")

    def branch(self, name: str) -> str:
        """Raise RagEvalError: a step of the job can move a branch of the checkout."""
        raise UsageError(f"Only GitHub's API knows the commit of {one_line(name, 60)}.")

    def default(self) -> str:
        """Raise RagEvalError: a checkout does not know its default branch."""
        raise UsageError("Only GitHub's API knows the default branch.")

    def merge_base(self, first: str, other: str) -> str:
        """Return the best common ancestor of two commits."""
        return self.verified_merge_base(first, other)
