"""Check that every change of the gold is signed off; the hook runs this."""

from __future__ import annotations

import os
import posixpath
import sys
import unicodedata
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval import REPOSITORY, __version__
from rag_eval.cli.commands._gold import capped, complain, effect, frame_since, place_of, say, unstaged
from rag_eval.cli.commands._shared import add_gold
from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import GATES_FILES, WINDOWS, shell_line
from rag_eval.errors import GATE_FAILED, PASSED, UsageError
from rag_eval.git.plumbing import INDEX, Git
from rag_eval.git.snapshots import NOTHING
from rag_eval.gold.signoff import checking, identity
from rag_eval.gold.signoff.identity import NO_PROOF
from rag_eval.gold.signoff.repository import GoldStates, between, findings, policies, untouched

if TYPE_CHECKING:
    from rag_eval.gold.signoff.checking import SignoffPolicy
    from rag_eval.gold.signoff.repository import Place

EXAMPLES = """\
  rag-eval gold check --base origin/main
"""
_STAGED = "the index against HEAD (default); in a push, what is pushed; by hand with no gold staged, every item"


_INSTALL = f'pip install "rag-eval-action @ git+https://github.com/{REPOSITORY}@v{__version__.partition(".")[0]}"'


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the sub-command."""
    against = parser.add_mutually_exclusive_group()
    # The default; hooks state it for readability.
    against.add_argument("--staged", action="store_true", help=_STAGED)
    against.add_argument("--all-files", action="store_true", help="check every item of the index")
    against.add_argument("--base", metavar="REF", help="compare the index with the commit where the branch left REF")
    parser.add_argument("--worktree", action="store_true", help="check the files of the work tree, staged or not")
    parser.add_argument("--trace", metavar="FILE", help="traces to show the effect on (default: from the gates file)")
    add_gold(parser)


def run(args: Namespace) -> int:
    """Check; print the violations, the command that fixes them, and the effect on local traces."""
    git = Git()
    frame = _checked_frame(git, args)
    asked = policies(frame, place_of(git, args))
    violations = [finding for policy in asked for finding in _violations(frame, policy, args)]
    for policy in [] if frame.has_no_base else asked:
        say(effect(git, frame, policy, args))
    if not frame.has_no_base:
        from rag_eval.cli.commands._gold_impact import loosened

        say(loosened(git, frame, args.gates, args.trace))
    if not violations:
        if not any(tree.files(policy.gold) for policy in asked for tree in (frame.head, frame.base)):
            refuse_elsewhere(git.names(), [policy.gold for policy in asked], place_of(git, args))
        if "GIT_INDEX_FILE" not in os.environ:  # a passing commit prints nothing
            say(f"{item.gold}: every change is signed off." for item in asked if frame.head.files(item.gold))
        complain(unstaged(git, asked, args))
        return PASSED
    complain(capped([str(violation) for violation in violations], "finding"))
    complain(["To fix it:", *dict.fromkeys(f"  {finding.fix}" for finding in violations)])
    if _program() != "rag-eval":
        complain([f"rag-eval is installed only for the hook. To install it for yourself: {_INSTALL}"])
    if _temporary_index():
        complain(["Then commit again without file names, so that the commit includes the record."])
    return GATE_FAILED


def _checked_frame(git: Git, args: Namespace) -> GoldStates:
    if args.all_files:
        return GoldStates(NOTHING, git.at(INDEX), has_no_base=True)
    pushed = [os.environ.get(f"PRE_COMMIT_{end}_REF") for end in ("FROM", "TO")]
    if args.base is None and pushed[0] and pushed[1]:
        return between(git, pushed[0], pushed[1])
    return frame_since(git, args.base, worktree=args.worktree)


def _violations(frame: GoldStates, policy: SignoffPolicy, args: Namespace) -> list[checking.Violation]:
    if not frame.has_no_base and untouched(frame, policy):
        # Inside a commit, where git names the index, and against a requested base, the check is complete. A run by hand
        # (`pre-commit run --all-files`) has no change to check: it checks every item.
        if "GIT_INDEX_FILE" in os.environ or not frame.staged:
            return []
        frame = GoldStates(NOTHING, frame.head, has_no_base=True)
    unchecked = identity.unchecked(policy, NO_PROOF)
    say([f"Checked only in CI: {', '.join(unchecked)}."] if unchecked else [])
    return findings(frame, policy, _command(frame, policy, args))


def _command(frame: GoldStates, policy: SignoffPolicy, args: Namespace) -> str:
    """Return the sign-off command that signs the unsigned changes."""
    words = [_program(), "gold", "signoff"]
    words += ["--baseline"] if frame.has_no_base else []
    words += ["--base", frame.name] if frame.name != "HEAD" else []
    words += [word for name in ("gold", "gates") if (value := getattr(args, name)) for word in (f"--{name}", value)]
    # `git commit -a` and `git commit FILE` use a temporary index that no longer exists after the hook fails.
    add = f"{shell_line('git', 'add', '--', f':/{policy.gold}')} && " if _temporary_index() else ""
    key = " --key ~/.ssh/id_ed25519" if policy.require == "signature" else ""
    reason = '"…"' if WINDOWS else "'…'"
    return f"{add}{shell_line(*words)}{key} --reason {reason}"


def _program() -> str:
    """Return the command name of this program: its path if it is on the PATH only inside a hook's environment."""
    folder_of_program = os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH100, PTH120 - start-up time
    if os.environ.get("PRE_COMMIT") != "1":
        return "rag-eval"
    from shutil import which

    elsewhere = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder != folder_of_program]
    return (
        "rag-eval"
        if which("rag-eval", path=os.pathsep.join(elsewhere))
        else which("rag-eval", path=folder_of_program) or "rag-eval"
    )


def _temporary_index() -> bool:
    return os.path.basename(os.environ.get("GIT_INDEX_FILE", "index")) != "index"  # noqa: PTH119 - start-up time


def refuse_elsewhere(names: Sequence[str], golds: Sequence[str], paths: Place) -> None:
    """Raise UsageError if none of ``golds`` is in git, but the ``names`` in git show that other files are meant.

    If git has no gold at all, there is nothing to check yet.
    """
    refuse_other_spelling(names, golds)
    if paths.gold:
        raise UsageError(f"{quoted(golds[0])} is not in git. Correct the path, or add the file first.")
    gates = sorted(name for name in names if posixpath.basename(name) in GATES_FILES)
    if not paths.gates and gates and not any(_above(name, paths.prefix) for name in gates):
        more = f" and {len(gates) - 1} more" if gates[1:] else ""
        reason = f"this folder has no gates file and no gold set, but folders below have {quoted(gates[0])}{more}"
        raise UsageError(f"{reason}. Choose one: --gates {one_line(gates[0], 200)}")


def refuse_other_spelling(names: Sequence[str], golds: Sequence[str]) -> None:
    """Raise UsageError if git has one of ``golds`` under another spelling."""
    for gold in golds:
        # `git add -N` lists a file that no commit would contain.
        if variants := [name for name in names if name != gold and _normalised(name) == _normalised(gold)]:
            reason = f"{quoted(gold)} is not in git, but {quoted(variants[0])} is"
            raise UsageError(f"{reason}. Write the path as git has it, in the gates file too, with forward slashes.")


def _normalised(path: str) -> str:
    """Return a path without differences of case, slashes and Unicode form, which some file systems ignore."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold()).replace("\\", "/")


def _above(path: str, prefix: str) -> bool:
    folder = posixpath.dirname(path)
    return not folder or prefix.startswith(f"{folder}/")
