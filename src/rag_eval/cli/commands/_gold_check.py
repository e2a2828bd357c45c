"""The whole check of sign-off, for a change that touches what it is about."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from rag_eval.cli.commands._gold import complain, effect, frame_since, place, say, unstaged
from rag_eval.common.paths import WINDOWS, shell_line
from rag_eval.errors import GATE_FAILED, PASSED
from rag_eval.git.plumbing import INDEX, Git
from rag_eval.git.snapshots import NOTHING
from rag_eval.gold.signoff import checking, identity
from rag_eval.gold.signoff.identity import NO_PROOF
from rag_eval.gold.signoff.repository import GoldStates, between, findings, policies, untouched

if TYPE_CHECKING:
    from rag_eval.gold.signoff.checking import Policy

_SHOWN = 100


def check(args: Namespace) -> int:
    """Check, and say what is wrong, what fixes it, and what the change does to the traces at hand."""
    git = Git()
    frame = _checked_frame(git, args)
    asked = policies(frame, place(git, args))
    found = [finding for policy in asked for finding in _found(frame, policy, args)]
    for policy in [] if frame.whole else asked:
        say(effect(git, frame, policy, args))
    if not frame.whole:
        from rag_eval.cli.commands._gold_impact import loosened

        say(loosened(git, frame, args.gates, args.trace))
    if not found:
        _refuse_elsewhere(git, frame, asked, args)
        if "GIT_INDEX_FILE" not in os.environ:  # a commit that may go on is no news
            say(f"{one.gold}: every change is signed off." for one in asked if frame.head.files(one.gold))
        complain(unstaged(git, asked, args))
        return PASSED
    complain(map(str, found[:_SHOWN]))
    more = len(found) - _SHOWN
    complain([f"… and {more} more finding(s) not shown."] if more > 0 else [])
    complain(["To fix it:", *dict.fromkeys(f"  {finding.fix}" for finding in found)])
    if _temporary_index():
        complain(["Then commit again without naming files, so that the record is committed too."])
    return GATE_FAILED


def _refuse_elsewhere(git: Git, frame: GoldStates, asked: list[Policy], args: Namespace) -> None:
    if not any(tree.files(policy.gold) for policy in asked for tree in (frame.head, frame.base)):
        from rag_eval.cli.commands._gold_outside import refuse_elsewhere

        refuse_elsewhere(git.names(), [policy.gold for policy in asked], place(git, args))


def _checked_frame(git: Git, args: Namespace) -> GoldStates:
    if args.all_files:
        return GoldStates(NOTHING, git.at(INDEX), whole=True)
    pushed = [os.environ.get(f"PRE_COMMIT_{end}_REF") for end in ("FROM", "TO")]
    if args.base is None and pushed[0] and pushed[1]:
        return between(git, pushed[0], pushed[1])
    return frame_since(git, args.base, worktree=args.worktree)


def _found(frame: GoldStates, policy: Policy, args: Namespace) -> list[checking.Violation]:
    if not frame.whole and untouched(frame, policy):
        # Inside a commit, which git tells by naming the index, and against a base that was asked for, that is the
        # answer. A run by hand (`pre-commit run --all-files`) has no change at hand: it asks about every item.
        if "GIT_INDEX_FILE" in os.environ or not frame.staged:
            return []
        frame = GoldStates(NOTHING, frame.head, whole=True)
    left = identity.unchecked(policy, NO_PROOF)
    say([f"Not checked here but in CI: {', '.join(left)}."] if left else [])
    return findings(frame, policy, _command(frame, policy, args))


def _command(frame: GoldStates, policy: Policy, args: Namespace) -> str:
    """The sign-off command that fixes what is not signed."""
    words = [_program(), "gold", "signoff"]
    words += ["--baseline"] if frame.whole else []
    words += ["--base", frame.name] if frame.name != "HEAD" else []
    words += [word for name in ("gold", "gates") if (value := getattr(args, name)) for word in (f"--{name}", value)]
    # `git commit -a` and `git commit FILE` work on an index of their own that is gone when the hook says no.
    add = f"{shell_line('git', 'add', '--', f':/{policy.gold}')} && " if _temporary_index() else ""
    key = " --key ~/.ssh/id_ed25519" if policy.require == "signature" else ""
    reason = '"…"' if WINDOWS else "'…'"
    return f"{add}{shell_line(*words)}{key} --reason {reason}"


def _program() -> str:
    """The name to call this program by: its path where only the environment of a hook has it on the PATH."""
    own = os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH100, PTH120 - start-up time
    if os.environ.get("PRE_COMMIT") != "1":
        return "rag-eval"
    from shutil import which

    elsewhere = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder != own]
    return (
        "rag-eval" if which("rag-eval", path=os.pathsep.join(elsewhere)) else which("rag-eval", path=own) or "rag-eval"
    )


def _temporary_index() -> bool:
    return os.path.basename(os.environ.get("GIT_INDEX_FILE", "index")) != "index"  # noqa: PTH119 - start-up time
