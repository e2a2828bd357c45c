"""Record and stage a sign-off of the staged changes of the gold."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from rag_eval.cli.commands._gold import counted, frame_since, place_of, say
from rag_eval.cli.commands._shared import add_gold
from rag_eval.cli.commands.gold_check import refuse_other_spelling
from rag_eval.common.escaping import one_line, quoted
from rag_eval.common.paths import shell_line
from rag_eval.errors import PASSED, UsageError
from rag_eval.git.plumbing import Git, GitError
from rag_eval.git.snapshots import NOTHING
from rag_eval.gold.signoff import checking
from rag_eval.gold.signoff.repository import GoldStates, policies, read_record, sides, used_records
from rag_eval.readers.signoff_record import HashChange, Record

if TYPE_CHECKING:
    from rag_eval.gold.signoff.checking import Side, SignoffPolicy

EXAMPLES = """\
  rag-eval gold signoff --reason 'the new manual says 31 days'
"""


def add_arguments(sign: ArgumentParser) -> None:
    """Add the options of the sub-command."""
    sign.add_argument("--reason", required=True, metavar="TEXT", help="why the gold changed, for reviewers")
    sign.add_argument("--signer", metavar="EMAIL", help="email of the signer (default: git's user.email)")
    sign.add_argument("--baseline", action="store_true", help="also sign every item that no record signs yet")
    sign.add_argument("--mutates", action="store_true", help="allow that a qid asks another question than before")
    sign.add_argument("--key", metavar="FILE", help="SSH key to sign with; for a public key, the agent signs")
    sign.add_argument("--base", metavar="REF", help="compare the index with the commit where the branch left REF")
    add_gold(sign)


def run(args: Namespace) -> int:
    """Write and stage the missing records."""
    git = Git()
    frame = frame_since(git, args.base)
    signer = args.signer or git.email()
    if not signer:
        raise UsageError("no signer is known. Add --signer EMAIL, or run: git config user.email EMAIL")
    if not any(letter.isalnum() for letter in args.reason):
        raise UsageError("--reason is empty. Tell the reviewers why the gold changed: --reason TEXT")
    asked = policies(frame, place_of(git, args))
    # All are drafted before the first is written, so that an error leaves no files.
    drafts = [(policy, _draft(frame, policy, args, signer)) for policy in asked]
    for policy, record in drafts:
        if record:
            _keep(git, policy, record)
    if not any(record for _, record in drafts):
        _require_gold_in_git(git, frame, asked)
        as_before = "" if frame.base is NOTHING else f"the same as in {frame.name}, or "
        say([f"Nothing to sign: the staged gold set is {as_before}already signed off. To stage more: git add -- FILE"])
    return PASSED


def _require_gold_in_git(git: Git, frame: GoldStates, asked: list[SignoffPolicy]) -> None:
    """Raise UsageError if git has no gold at all, so that nothing can be signed."""
    if any(tree.files(policy.gold) for policy in asked for tree in (frame.head, frame.base)):
        return
    refuse_other_spelling(git.names(), [policy.gold for policy in asked])
    gold = asked[0].gold
    stage = shell_line("git", "add", "--", f":/{gold}")
    raise UsageError(
        f"{quoted(gold)} is not staged, so there is nothing to sign. Stage it first, "
        f"with the gates file that names it, if any: {one_line(stage, 200)}"
    )


def _draft(frame: GoldStates, policy: SignoffPolicy, args: Namespace, signer: str) -> Record | None:
    """Return the missing record, None if none is missing."""
    base, head = sides(frame, policy)
    used = used_records(frame, policy)
    # With four eyes, items signed by others can be signed once more.
    mine = _signed_by(signer, base, head, policy, used) if policy.four_eyes else head
    changes = [change for change, _ in checking.breaches(base, mine, policy, used)]
    moved = [qid for qid, *_ in changes if checking.mutated(base.named(qid), head.items.get(qid))]
    if moved and not args.mutates:
        more = f", and so do {len(moved) - 1} more" if moved[1:] else ""
        raise UsageError(
            f"{quoted(moved[0])} asks another question than before{more}. "
            "Give the new question a new qid, or add --mutates"
        )
    if args.baseline:
        drafted = {change.qid for change in changes}
        changes += [change for change in checking.unsigned(head, policy) if change.qid not in drafted]
    return _written(policy, args, signer, changes, bool(moved)) if changes else None


def _signed_by(signer: str, base: Side, head: Side, policy: SignoffPolicy, used: checking.Records) -> Side:
    """Return the head without the new records of others."""
    fresh = checking.new_records(base, head, policy, used)
    others = {path for path, record in fresh.items() if record.signer != signer}
    return head._replace(records={path: record for path, record in head.records.items() if path not in others})


def _written(policy: SignoffPolicy, args: Namespace, signer: str, changes: list[HashChange], mutates: bool) -> Record:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    record = Record(policy.dataset, policy.gold, signer, now, args.reason, tuple(changes), mutates)
    read: Record | str
    try:
        read = read_record(record.file.encode())
    except UnicodeEncodeError:  # bytes of a terminal, or of git's configuration, that are not UTF-8
        read = "the reason or the signer is not UTF-8 text"
    if isinstance(read, str):
        raise UsageError(f"the record would be invalid: {read}. Correct the option.")
    return _with_signature(policy, read, args.key)


def _with_signature(policy: SignoffPolicy, record: Record, key: str | None) -> Record:
    if key:
        from rag_eval.gold.signoff.signatures import sign

        return sign(record, os.path.expanduser(key))  # noqa: PTH111 - shells of Windows leave the tilde in it
    if policy.require == "signature":
        raise UsageError("the sign-off policy requires signed records. Add your SSH key: --key ~/.ssh/id_ed25519")
    return record


def _keep(git: Git, policy: SignoffPolicy, record: Record) -> None:
    """Write the record into the work tree and stage it.

    It is staged because it signs what is staged: otherwise the next commit would fail again.
    """
    path, data = f"{policy.records}/{record.name}", record.file.encode()
    folder = os.path.join(git.top, policy.records)  # noqa: PTH118 - start-up time, as below
    if os.path.realpath(folder) != os.path.join(os.path.realpath(git.top), *policy.records.split("/")):  # noqa: PTH118
        raise UsageError(f"{quoted(policy.records)} is a symbolic link. Replace it with a folder.")
    file = os.path.join(folder, record.name)  # noqa: PTH118
    try:
        os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120
        with open(file, "wb") as opened:  # noqa: PTH123
            opened.write(data)
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        advice = f"Make {quoted(policy.records)} a folder that you can write to."
        raise UsageError(f"{quoted(path)} cannot be written: {why}. {advice}") from None
    try:
        git.stage(path, data)
    except GitError:
        os.remove(file)  # noqa: PTH107
        raise
    say([f"Signed by {record.signer}: {counted(record.changes)}. Wrote and staged {path}"])
