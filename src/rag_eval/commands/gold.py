"""Sign off changes of the gold set, check and show them, by git; lint, count and freeze it, by its files."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from importlib import import_module

from rag_eval import signoff
from rag_eval import signoff_identity as identity
from rag_eval.errors import GATE_FAILED, PASSED, UsageError
from rag_eval.git import INDEX, Git
from rag_eval.safe import log_line, quoted
from rag_eval.signoff_frame import (
    Frame,
    Place,
    between,
    findings,
    policies,
    read_record,
    sides,
    spent,
    untouched,
)
from rag_eval.signoff_identity import NO_PROOF
from rag_eval.signoff_record import Change, Record
from rag_eval.trees import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rag_eval.signoff import Policy, Side

EXAMPLES = """\
  rag-eval gold diff
  rag-eval gold signoff --reason 'Q04: the new manual gives ten days'
  rag-eval gold check
  rag-eval gold check --base origin/main
  rag-eval gold signoff --key ~/.ssh/id_ed25519 --reason 'Q04: the new manual gives ten days'
  rag-eval gold signoff --baseline --reason 'reviewed by two of us'
  rag-eval gold lint --trace runs/trace.jsonl
  rag-eval gold freeze v1.0
"""
_FURTHER = ("lint", "stats", "freeze")  # sub-commands with a module each, gold_NAME
_SHOWN = 100
_STAGED = "the index against HEAD (default); in a push, what is pushed; by hand with no gold staged, every item"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the sub-commands and their options."""
    commands = parser.add_subparsers(dest="gold_command", metavar="COMMAND", required=True)
    sign = commands.add_parser(
        "signoff",
        help="record and stage a sign-off of the staged changes",
        epilog="example: rag-eval gold signoff --reason 'the new manual says 31 days'",
    )
    sign.add_argument("--reason", required=True, metavar="TEXT", help="why the gold changed, for the reviewers")
    sign.add_argument("--signer", metavar="EMAIL", help="who answers for it (default: git's user.email)")
    sign.add_argument("--baseline", action="store_true", help="also sign every item that no record signs yet")
    sign.add_argument("--mutates", action="store_true", help="a qid is meant to name another question than before")
    sign.add_argument("--key", metavar="FILE", help="sign with this SSH key; a public one asks the agent")
    check = commands.add_parser(
        "check", help="check that every change is signed off", epilog="example: rag-eval gold check --base origin/main"
    )
    against = check.add_mutually_exclusive_group()
    # The default, and so without effect: hooks say it to be read more easily.
    against.add_argument("--staged", action="store_true", help=_STAGED)
    against.add_argument("--all-files", action="store_true", help="every item of the index, whatever changed")
    diff = commands.add_parser(
        "diff", help="show what was added, changed and removed", epilog="example: rag-eval gold diff --base origin/main"
    )
    for command in (check, diff):
        command.add_argument(
            "--trace", metavar="FILE", help="traces that show the effect (default: as eval-gates.yml says)"
        )
    for command, action in ((sign, _signoff), (check, _check), (diff, _diff)):
        place = against if command is check else command
        place.add_argument("--base", metavar="REF", help="the index against where the branch left REF")
        command.add_argument("--gold", metavar="PATH", help="the gold file (default: as eval-gates.yml says)")
        command.add_argument("--gates", metavar="PATH", help="the gates file (default: the nearest eval-gates.yml)")
        command.set_defaults(gold_action=action)
    for name in _FURTHER:
        module = import_module(f"rag_eval.commands.gold_{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__, epilog=module.EXAMPLE)
        module.add_arguments(command)
        command.set_defaults(gold_action=module.run)


def run(args: Namespace) -> int:
    """Run the sub-command that was parsed; the exit code says how it ended."""
    code: int = args.gold_action(args)
    return code


def _check(args: Namespace) -> int:
    git = Git()
    frame = _checked_frame(git, args)
    found = [finding for policy in policies(frame, _place(git, args)) for finding in _found(frame, policy, args)]
    for policy in [] if frame.whole else policies(frame, _place(git, args)):
        _say(_effect(git, frame, policy, args))
    if not found:
        return PASSED
    _complain(map(str, found[:_SHOWN]))
    more = len(found) - _SHOWN
    _complain([f"… and {more} more finding(s) not shown."] if more > 0 else [])
    _complain(["To mend it:", *dict.fromkeys(f"  {finding.mend}" for finding in found)])
    if _temporary_index():
        _complain(["Then commit again without naming files, so that the record is committed too."])
    return GATE_FAILED


def _signoff(args: Namespace) -> int:
    git = Git()
    frame = _frame(git, args.base)
    signer = args.signer or git.email()
    if not signer:
        raise UsageError("Nobody is named to sign. Add --signer EMAIL or run: git config user.email EMAIL")
    if not any(letter.isalnum() for letter in args.reason):
        raise UsageError("--reason is empty. Say why the gold changed; reviewers read it.")
    asked = policies(frame, _place(git, args))
    # All are drafted before the first is written: a refusal leaves nothing behind.
    drafts = [(policy, _draft(frame, policy, args, signer)) for policy in asked]
    for policy, record in drafts:
        if record:
            _keep(git, policy, record)
    if not any(record for _, record in drafts):
        _say([f"Nothing to sign: what is staged is as in {frame.name}, or signed off. To stage more: git add -- FILE"])
    return PASSED


def _diff(args: Namespace) -> int:
    git = Git()
    frame = _frame(git, args.base)
    for policy in policies(frame, _place(git, args)):
        base, head = sides(frame, policy)
        found = signoff.changes(base.items, head.items)
        _say(_described(change, base, head) for change in found)
        _say(_effect(git, frame, policy, args))
        _say([f"{policy.gold} against {frame.name}: {_counted(found)}."])
    return PASSED


def _effect(git: Git, frame: Frame, policy: Policy, args: Namespace) -> list[str]:
    """What the change does to the traces at hand; nothing is loaded for that where nothing changed."""
    if untouched(frame, policy):
        return []
    from rag_eval.commands.gold_effect import effect

    return effect(git, frame, policy, args.gates, args.trace)


def _place(git: Git, args: Namespace) -> Place:
    return Place(args.gold, args.gates, git.prefix)


def _frame(git: Git, base: str | None) -> Frame:
    index = git.at(INDEX)
    if base:
        return between(git, base, "HEAD", index)
    last = git.resolve("HEAD")
    return Frame(git.at(last) if last else NOTHING, index)


def _checked_frame(git: Git, args: Namespace) -> Frame:
    if args.all_files:
        return Frame(NOTHING, git.at(INDEX), whole=True)
    pushed = [os.environ.get(f"PRE_COMMIT_{end}_REF") for end in ("FROM", "TO")]
    if not args.base and pushed[0] and pushed[1]:
        return between(git, pushed[0], pushed[1])
    return _frame(git, args.base)


def _found(frame: Frame, policy: Policy, args: Namespace) -> list[signoff.Finding]:
    if not frame.whole and untouched(frame, policy):
        # Inside a commit, which git tells by naming the index, and against a base that was asked for, that is the
        # answer. A run by hand (`pre-commit run --all-files`) has no change at hand: it asks about every item.
        if "GIT_INDEX_FILE" in os.environ or args.base or frame.name != "HEAD":
            return []
        frame = Frame(NOTHING, frame.head, whole=True)
    left = identity.unchecked(policy, NO_PROOF)
    _say([f"Not checked here but in CI: {', '.join(left)}."] if left else [])
    return findings(frame, policy, _command(frame, policy, args))


def _command(frame: Frame, policy: Policy, args: Namespace) -> str:
    """The sign-off command that mends what is not signed."""
    words = [_program(), "gold", "signoff"]
    words += ["--baseline"] if frame.whole else []
    words += ["--base", frame.name] if frame.name != "HEAD" else []
    words += [word for name in ("gold", "gates") if (value := getattr(args, name)) for word in (f"--{name}", value)]
    # `git commit -a` and `git commit FILE` work on an index of their own that is gone when the hook says no.
    add = f"git add -- {shlex.quote(f':/{policy.gold}')} && " if _temporary_index() else ""
    key = " --key ~/.ssh/id_ed25519" if policy.require == "signature" else ""
    return f"{add}{shlex.join(words)}{key} --reason '…'"


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


def _draft(frame: Frame, policy: Policy, args: Namespace, signer: str) -> Record | None:
    """The record that is missing, None when none is."""
    base, head = sides(frame, policy)
    used = spent(frame, policy)
    # With four eyes, what somebody else has signed is there to be signed once more.
    mine = _signed_by(signer, base, head, policy, used) if policy.four_eyes else head
    changes = [change for change, _ in signoff.breaches(base, mine, policy, used)]
    moved = [qid for qid, *_ in changes if signoff.mutated(base.items.get(qid), head.items.get(qid))]
    if moved and not args.mutates:
        raise UsageError(
            f"{quoted(moved[0])} would ask something else than before ({len(moved)} such item(s)). "
            "Give the new question a new qid, or say that it is meant: --mutates"
        )
    if args.baseline:
        rest = set(signoff.unsigned(head, policy)) - {change.qid for change in changes}
        changes += [Change(qid, None, head.items[qid].hash) for qid in rest]
    return _written(policy, args, signer, changes, bool(moved)) if changes else None


def _signed_by(signer: str, base: Side, head: Side, policy: Policy, used: signoff.Records) -> Side:
    """The head without the new records of others."""
    fresh = signoff.fresh(base, head, policy, used)
    others = {path for path, record in fresh.items() if record.signer != signer}
    return head._replace(records={path: one for path, one in head.records.items() if path not in others})


def _written(policy: Policy, args: Namespace, signer: str, changes: list[Change], mutates: bool) -> Record:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    record = Record(policy.dataset, policy.gold, signer, now, args.reason, tuple(changes), mutates)
    read = read_record(record.file.encode())
    if isinstance(read, str):
        raise UsageError(f"This cannot be recorded: {read}. Correct the option.")
    return _with_signature(policy, read, args.key)


def _with_signature(policy: Policy, record: Record, key: str | None) -> Record:
    if key:
        from rag_eval.signatures import sign

        return sign(record, key)
    if policy.require == "signature":
        raise UsageError("The policy wants records with a signature. Name your SSH key: --key ~/.ssh/id_ed25519")
    return record


def _keep(git: Git, policy: Policy, record: Record) -> None:
    """Write the record into the work tree and stage it.

    It is staged because it signs what is staged: a record left out would only make the next commit fail again.
    """
    path, data = f"{policy.records}/{record.name}", record.file.encode()
    folder = os.path.join(git.top, policy.records)  # noqa: PTH118 - start-up time, as below
    if os.path.realpath(folder) != os.path.join(os.path.realpath(git.top), *policy.records.split("/")):  # noqa: PTH118
        raise UsageError(f"{quoted(policy.records)} leads elsewhere by a symbolic link. Make it a folder.")
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    with open(os.path.join(folder, record.name), "wb") as file:  # noqa: PTH118, PTH123
        file.write(data)
    git.stage(path, data)
    _say([f"Signed by {record.signer}: {_counted(record.changes)}. Recorded and staged: {path}"])


def _described(change: Change, base: Side, head: Side) -> str:
    before, after = base.items.get(change.qid), head.items.get(change.qid)
    if before is None or after is None:
        return f"{change.verb} {quoted(change.qid)}"
    both = sorted(before.row.keys() | after.row.keys())
    fields = [name for name in both if _shape(before.row, name) != _shape(after.row, name)]
    what = ", ".join(quoted(name)[1:-1] for name in fields) or "only how it is written"
    mutation = " (asks something else: a mutation)" if signoff.mutated(before, after) else ""
    return f"changed {quoted(change.qid)}: {what}{mutation}"


def _shape(row: Mapping[str, Any], name: str) -> str:
    # Through JSON, because Python takes true and 1 for equal.
    return json.dumps(row[name], sort_keys=True) if name in row else ""


def _counted(changes: Iterable[Change]) -> str:
    verbs = [change.verb for change in changes]
    parts = [f"{verbs.count(verb)} {verb}" for verb in ("added", "changed", "removed") if verb in verbs]
    return ", ".join(parts) or "no change"


def _say(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{log_line(line)}\n" for line in lines)


def _complain(lines: Iterable[str]) -> None:
    sys.stderr.writelines(f"{log_line(line)}\n" for line in lines)
