"""Git objects, read by plumbing commands: the index, commits, and the configured user.

Reading runs nothing that a repository configures: no hooks, no file-system monitor, no filters, no diff drivers (there
is no diff: blobs are read whole and compared here). The environment is inherited, so that a hook sees the index of the
commit that is being made (``GIT_INDEX_FILE``) and a linked work tree finds its own.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from rag_eval import git
from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import misread_names, shell_line, trust_no_program_here
from rag_eval.errors import RagEvalError, UsageError
from rag_eval.git import FOLDERS, SUBMODULE, CommitTree, is_object_id, parents, refuse_irregular

# A partial clone would fetch missing objects, with programs that its configuration names.
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never")
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    **dict.fromkeys(("GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"), "0"),  # other modes off
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
# Where git is installed: first the systems' standard folders.
_SYSTEM_GITS = ("/usr/bin/git", "/usr/local/bin/git", "/opt/homebrew/bin/git")
MOST_SECONDS = 30.0  # what git may take in a folder that others may have prepared
_STAGED = ("--cached", "--ita-invisible-in-index", "--name-only", "-z")
_DAY = 86_400
_OTHER_GIT = "Put the git of this system on the PATH first: on Windows, not that of Cygwin or MSYS."
_FIXES = {
    "not a git repository": "Run it inside the repository of the gold set.",
    "dubious ownership": "Tell git that you trust the folder: git config --global --add safe.directory FOLDER",
    "index.lock": "Wait until the other git process ends. If there is none, remove the file. Then try again.",
    "promisor": "This partial clone lacks the object. Fetch it: git fetch --refetch --no-filter",
    "must be run in a work tree": "Run it in a work tree, not in a bare repository.",
}


class GitError(RagEvalError):
    """Git is missing, or it failed for this repository; the message ends with the fix."""


class GitTimeout(GitError):
    """Git did not end in time: it waits for something in the repository."""


class LastWrite(NamedTuple):
    """The last write of a file: its commit, and how many commits and whole days separate it from the base."""

    commit: str
    commits: int
    days: int


class Git:
    """The repository whose work tree contains ``folder``.

    As a tree it has the files of the index. Paths are relative to ``top``, the root of the work tree, with forward
    slashes. ``prefix`` is the path of ``folder`` below it, empty or ending in a slash. Every method raises
    :class:`GitError` if git fails.
    """

    def __init__(self, folder: str = ".", *, foreign: bool = False, top: str = "") -> None:
        # In a container another user owns the folder. Git need not check this, because nothing that the folder
        # configures is run. Earlier steps may have set variables, and put things into its folders that would block
        # reading forever.
        self._flags = (*_QUIET, "-c", "safe.directory=*") if foreign else _QUIET
        self._program = next((path for path in _SYSTEM_GITS if os.access(path, os.X_OK)), "git") if foreign else "git"
        self._environment = {**_bare(), **_ENVIRONMENT} if foreign else None
        self._seconds = MOST_SECONDS if foreign else None
        self._trees: dict[str, CommitTree] = {}
        self.top, self.prefix = top or folder, ""
        if top:  # the caller knows the root, which saves asking git
            return
        answer = os.fsdecode(self._run("rev-parse", "--show-toplevel", "--show-prefix"))
        # Split at the last line break: a folder above the repository may have one in its name.
        self.top, _, self.prefix = answer.removesuffix("\n").rpartition("\n")

    def files(self, *paths: str) -> dict[str, str]:
        """Return the regular files of the index at ``paths`` as {path: object id}; one ending in / means direct files.

        What is not there is left out; a link, a folder, a submodule or a conflict in the place of a file is an error.
        """
        ids: dict[str, str] = {}
        for (mode, object_id, stage), path in _rows(self._run("ls-files", "--stage", "-z", "--", *paths)):
            if stage != "0":
                # From the root, as git lists it: the command may be run in a folder below.
                fix = shell_line("git", "add", "--", f":/{path}")
                raise GitError(f"{quoted(path)} has a merge conflict. Resolve it, then: {fix}")
            if object_id == git.object_id(b"", like=object_id):
                no_files = git.object_id(b"", "tree", like=object_id)
                if not self._run("diff-index", *_STAGED, no_files, "--", path):
                    continue  # `git add -N` has only announced it: its content would be in no commit
            if path in paths or f"{path.rpartition('/')[0]}/" in paths:
                refuse_irregular(mode, path)
                ids[path] = object_id
            elif below := next((name for name in paths if path.startswith(f"{name}/")), None):
                refuse_irregular(FOLDERS[0], below)
        missing = [path for path in paths if path not in ids and not path.endswith("/")]
        above = {path[:end] for path in missing for end, letter in enumerate(path) if letter == "/"}
        if above:  # git lists no files of a submodule
            for words, path in _rows(self._run("ls-files", "--stage", "-z", "--", *sorted(above))):
                if path in above and words[0] == SUBMODULE:
                    refuse_irregular(words[0], path)
        return ids

    def inside(self, path: str) -> str:
        """Return a path as git has it: from the root of the repository, with links followed."""
        return os.path.relpath(os.path.realpath(path), os.path.realpath(self.top)).replace(os.sep, "/")

    def at(self, commit: str) -> CommitTree:
        """Return the files of a commit, given by its id."""
        if commit not in self._trees:
            self._trees[commit] = CommitTree(self, _checked(commit))
        return self._trees[commit]

    def ignores(self, path: str) -> bool:
        """Return whether git ignores a path, relative to the root."""
        return bool(self._run("check-ignore", "--", path, also=(1,), variables={"GIT_LITERAL_PATHSPECS": "0"}))

    def names(self) -> list[str]:
        """Return the paths of all files of the index."""
        return os.fsdecode(self._run("ls-files", "-z")).split("\0")[:-1]

    def raw(self, kind: str, object_id: str) -> bytes:
        """Return the bytes of a commit, a tree or a blob, checked against its id, so that they cannot be replaced."""
        try:
            data = self._run("cat-file", kind, _checked(object_id))
        except GitError as error:
            if kind == "commit" and "git cat-file failed" in str(error) and self.resolve(object_id) is None:
                missing = f"This clone does not have commit {object_id[:12]}. Fetch it: fetch-depth: 2 or more"
                raise GitError(missing) from None
            raise
        return _checked_bytes(kind, object_id, data)

    def objects(self, kind: str, object_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of objects, each checked against its id."""
        wanted = list(object_ids)
        objects = self.present(kind, wanted)
        return {name: objects[name] if name in objects else self.raw(kind, name) for name in wanted}

    def present(self, kind: str, object_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of those objects that this clone has, each checked against its id."""
        objects = self._batch(map(_checked, object_ids), kind)
        return {name: _checked_bytes(kind, name, data) for name, data in objects if data is not None}

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of files by object id."""
        return self.objects("blob", object_ids)

    def _batch(self, names: Iterable[str], kind: str) -> Iterator[tuple[str, bytes | None]]:
        """Yield the bytes of objects, None for one that this clone lacks or that is of another kind."""
        wanted = list(dict.fromkeys(names))
        asked = "".join(f"{name}\n" for name in wanted).encode()
        answer, at = self._run("cat-file", "--batch", data=asked) if wanted else b"", 0
        for name in wanted:
            start = answer.index(b"\n", at) + 1
            words = answer[at : start - 1].split(b" ")
            at = start if len(words) != 3 else start + int(words[2]) + 1
            yield name, answer[start : at - 1] if words[1:2] == [kind.encode()] else None

    def resolve(self, ref: str) -> str | None:
        """Return the id of the commit that ``ref`` names, None if it names none."""
        answer = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", also=(1, 128))
        text = answer.decode("ascii", "replace").strip()
        return text if is_object_id(text) else None

    def commit_named(self, ref: str) -> str:
        """Return the id of the commit that ``ref`` names; raise UsageError if it names none or several.

        Git prefers a tag to a branch of the same name, and whoever may push can add the tag.
        """
        commit = self.resolve(ref)
        if not commit:
            remote = f"origin/{ref}"
            fix = f"Write {quoted(remote)}, or fetch it" if self.resolve(f"refs/remotes/{remote}") else "Fetch it first"
            raise UsageError(f"{quoted(ref)} names no commit here. {fix}, or correct the name.")
        name = re.split(r"[~^:]|@\{", ref)[0]
        if name == "HEAD" or is_object_id(name):
            return commit
        full = [f"refs/{folder}/{name}" for folder in ("heads", "remotes", "tags")] + [f"refs/remotes/{name}/HEAD"]
        form = "--format=%(refname) %(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
        rows = [row.rpartition(" ") for row in os.fsdecode(self._run("for-each-ref", form, *full)).splitlines()]
        tips = {ref: tip for ref, _, tip in rows if ref in full}
        if len(set(tips.values())) > 1:
            names = " and ".join(map(quoted, tips))
            raise UsageError(f"{quoted(ref)} names several commits: {names}. Write the full name of the one you mean.")
        return commit

    def last(self) -> str | None:
        """Return the id of the last commit, None before the first; raise an error if it is unreadable."""
        commit = self.resolve("HEAD")
        if commit is None and self._run("rev-parse", "--verify", "--quiet", "HEAD", also=(1,)):
            raise GitError("The last commit cannot be read. Check the repository with: git fsck")
        return commit

    def merge_base(self, first: str, other: str) -> str:
        """Return the id of the best common ancestor of two commits, given by their ids."""
        answer = self._run("merge-base", _checked(first), _checked(other), also=(1,)).decode("ascii").strip()
        if not answer:
            hint = "If this is a shallow clone, fetch its history: git fetch --unshallow"
            raise GitError(f"The commits {first[:12]} and {other[:12]} have no common ancestor here. {hint}")
        return _checked(answer.split()[0])

    def verified_merge_base(self, first: str, other: str) -> str:
        """Return the best common ancestor of two commits, by the parents in their own bytes.

        Grafts, replaced objects and commit-graph files can forge the history that git reports. GitError is raised if
        the clone lacks a part of the history of ``first``.
        """
        # Read together, because a process for each commit is slow. Git chooses the commits, so some may be missing.
        ids = self._run("rev-list", _checked(first), _checked(other), "--", also=(128,)).decode("ascii").split()
        known = self.present("commit", ids)
        shared = _ancestors(self, known, [first])
        best = {commit for commit in _ancestors(self, known, [other], shared) if commit in shared}
        best -= _ancestors(self, known, [parent for commit in best for parent in shared[commit]]).keys()
        if not best:
            what = f"The commits {first[:12]} and {other[:12]} have no common ancestor"
            raise GitError(f"{what}. Fetch it: fetch-depth: 0")
        return min(best)

    def staged(self) -> list[bytes]:
        """Return the paths that differ between the index and HEAD."""
        return self._run("diff-index", *_STAGED, "HEAD", "--").split(b"\0")[:-1]

    def staged_texts(self, *paths: str) -> list[bytes]:
        """Return the bytes of the files of the index at ``paths``, which have no spaces; missing ones are left out."""
        return [data for _, data in self._batch([f":{path}" for path in paths], "blob") if data is not None]

    def last_write(self, path: str, commit: str) -> LastWrite | None:
        """Return the last write of ``path`` up to ``commit``; None if there is none, or if this clone lacks history."""
        newest = "rev-list", "--max-count=1", "--timestamp", _checked(commit), "--"
        wrote, tip = (self._run(*newest, *where).decode("ascii").split() for where in ([path], []))
        if not wrote or self.shallow:
            return None
        commits = int(self._run("rev-list", "--count", f"{wrote[1]}..{commit}"))
        return LastWrite(wrote[1], commits, max(int(tip[0]) - int(wrote[0]), 0) // _DAY)

    def changes_of(self, tip: str, path: str) -> list[tuple[str, str | None]]:
        """Return the commits that touch ``path`` along first parents to ``tip``, newest last.

        Each has the id of its blob, None if it deleted the file.
        """
        if "\n" in path:
            raise GitError("A path with a line break cannot be followed through history. Rename the file.")
        lead = ("rev-list", "--first-parent", "--reverse")
        commits = self._run(*lead, _checked(tip), "--", path).decode("ascii").split()
        asked = b"".join(os.fsencode(f"{commit}:{path}\n") for commit in commits)
        answer = self._run("cat-file", "--batch-check=%(objecttype) %(objectname)", data=asked) if commits else b""
        words = [line.split(b" ") for line in answer.split(b"\n")[:-1]]
        ids = [line[1].decode("ascii") if line[0] == b"blob" else None for line in words]
        return list(zip(commits, ids, strict=True))

    @property
    def shallow(self) -> bool:
        """Return whether this clone lacks history."""
        return self._run("rev-parse", "--is-shallow-repository").strip() == b"true"

    def email(self) -> str | None:
        """Return ``user.email`` of the configuration, None if it is not set."""
        return os.fsdecode(self._run("config", "--get", "user.email", also=(1,))).strip() or None

    def stage(self, path: str, data: bytes) -> None:
        """Put ``data`` into the index as the file ``path``, byte for byte: no filter, no line-ending conversion."""
        written = self._run("hash-object", "-w", "--stdin", "--no-filters", data=data).decode("ascii").strip()
        # To write the index, git compares recently changed files through the configured filters.
        configured = self._run("config", "--null", "--name-only", "--get-regexp", r"^filter\.", also=(1,))
        filters = dict.fromkeys(os.fsdecode(configured).split("\0")[:-1], "")
        filters |= {name: "false" for name in filters if name.endswith(".required")}
        # Behind the settings that the environment has.
        count = os.environ.get("GIT_CONFIG_COUNT", "")[:6]
        start = int(count) if count.isdecimal() else 0
        variables = {"GIT_CONFIG_COUNT": str(start + len(filters))} if filters else {}
        for index, (name, value) in enumerate(filters.items(), start):
            variables |= {f"GIT_CONFIG_KEY_{index}": name, f"GIT_CONFIG_VALUE_{index}": value}
        self._run("update-index", "--add", "--cacheinfo", f"100644,{_checked(written)},{path}", variables=variables)

    def _run(
        self, *command: str, data: bytes = b"", also: tuple[int, ...] = (), variables: dict[str, str] | None = None
    ) -> bytes:
        if any("\0" in word for word in command):
            raise GitError("A path or ref contains a NUL character. Remove it.")
        if (misread := misread_names()) and not all(word.isascii() for word in command):
            raise GitError(misread)  # git would not find it, and a missing file is never wrong
        trust_no_program_here()
        try:
            done = subprocess.run(  # noqa: S603 - a list, no shell; refs and paths are checked or come after --
                [self._program, *self._flags, *command],
                cwd=self.top,
                env=(self._environment or os.environ | _ENVIRONMENT) | (variables or {}),
                input=data,
                capture_output=True,
                check=False,
                timeout=self._seconds,
            )
        except subprocess.TimeoutExpired:
            what = f"git {command[0]} did not end within {MOST_SECONDS:.0f} seconds"
            raise GitTimeout(f"{what}. Check the repository with: git fsck") from None
        except OSError as error:
            if not os.path.isdir(self.top):  # noqa: PTH112 - Path.is_dir raises without permission
                missing = f"git reports the root {quoted(self.top, 200)}, but there is no such folder"
                raise GitError(f"{missing}. {_OTHER_GIT}") from None
            raise GitError(f"git cannot be run ({error.strerror}). Install git and put it on the PATH.") from None
        if done.returncode and done.returncode not in also:
            stderr = done.stderr.decode("utf-8", "replace")
            reason = one_line(stderr, 200)
            fix = next((hint for sign, hint in _FIXES.items() if sign in stderr), "Check the repository with: git fsck")
            raise GitError(f"git {command[0]} failed: {reason or 'it gave no reason'}. {fix}")
        return done.stdout


def _ancestors(
    git: Git, known: Mapping[str, bytes], commits: Iterable[str], stop: Container[str] = ()
) -> dict[str, list[str]]:
    """Return commits and their ancestors, with their parents; ancestors of ``stop`` are left out."""
    ancestors: dict[str, list[str]] = {}
    rest = list(commits)
    while rest:
        commit = rest.pop()
        if commit not in ancestors:
            ancestors[commit] = parents(known[commit] if commit in known else git.raw("commit", commit))
            rest += [] if commit in stop else ancestors[commit]
    return ancestors


def _bare() -> dict[str, str]:
    """Return the environment of git in an untrusted folder, without anything that a step of a job can set."""
    of_windows = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if os.name == "nt" and name in os.environ}
    nowhere = dict.fromkeys(("HOME", "GIT_CONFIG_GLOBAL"), os.devnull)
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", **nowhere, **of_windows}


def _rows(listing: bytes) -> Iterator[tuple[list[str], str]]:
    for row in listing.split(b"\0")[:-1]:
        words, _, path = os.fsdecode(row).partition("\t")
        yield words.split(" "), path


def _checked(object_id: str) -> str:
    if not is_object_id(object_id):
        raise GitError(f"{quoted(object_id)} is not an object id. Resolve the ref first.")
    return object_id


def _checked_bytes(kind: str, object_id: str, data: bytes) -> bytes:
    if git.object_id(data, kind, like=object_id) != object_id:
        raise GitError(f"The object {object_id[:12]} does not match its id. Check the repository with: git fsck")
    return data
