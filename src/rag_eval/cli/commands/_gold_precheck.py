"""Quick check whether a commit touches signed-off files: the hook runs for every commit, and most do not.

It reads only names, and the text of the gates file without parsing it. In doubt the whole check runs.
"""

from __future__ import annotations

import os

from rag_eval.common.paths import GATES_FILES, PROJECT_FILE
from rag_eval.git.plumbing import Git, GitError

_USUAL = ("gold.jsonl", ".signoff")  # defaults: the name of the gold, and the ending of its records folder


def touches_nothing() -> bool:
    """Return whether the commit certainly touches no gates, gold or sign-off records."""
    committing = "GIT_INDEX_FILE" in os.environ and "PRE_COMMIT_FROM_REF" not in os.environ
    if not committing or not os.path.lexists(".git"):  # the gates file of the root is the nearest one there
        return False
    try:
        git = Git(top=".")
        changed = git.staged()
        stated = b"".join(git.staged_texts(*GATES_FILES))
        project = os.path.lexists(PROJECT_FILE) or PROJECT_FILE.encode() in changed
        if project and any(b"rag-eval" in text for text in git.staged_texts(PROJECT_FILE)):  # may name the gates
            return False
    except GitError:
        return False
    # An escape in a YAML text could spell a name differently than git.
    return b"\\" not in stated and not any(_may_matter(path, stated) for path in changed)


def _may_matter(path: bytes, stated: bytes) -> bool:
    """Return whether a path may be gold, which has a stated or usual name, or a record in the records folder."""
    folder, _, name = path.rpartition(b"/")
    parent = folder.rpartition(b"/")[2]
    # The same applies to a doubled quote, or to a line break in place of a space.
    if any(mark in name + parent for mark in (b"'", b" ", b"\t")):
        return True
    usual = name == _USUAL[0].encode() or parent.endswith(_USUAL[1].encode())
    return (
        usual or name.decode("utf-8", "replace") in GATES_FILES or name in stated or (bool(parent) and parent in stated)
    )
