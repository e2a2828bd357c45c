"""The command ``rag-eval gold freeze``."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from rag_eval.cli.commands._shared import add_flag, add_gates, add_gold, add_option, print_lines, print_notes, write
from rag_eval.cli.commands.gold_signoff import capped
from rag_eval.common.escaping import quantity, quoted
from rag_eval.common.paths import repository_root
from rag_eval.errors import GATE_FAILED, PASSED, InputError, Problem, UsageError
from rag_eval.git.snapshots import NOTHING
from rag_eval.gold.signoff.checking import Side
from rag_eval.gold.signoff.freeze import TAG, differences, fault, freeze, text
from rag_eval.gold.signoff.repository import GoldStates, Place, packed, policies, sides
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import read_json
from rag_eval.readers.signoff_record import HashChange, matches
from rag_eval.readers.source import Reader
from rag_eval.readers.work_tree import WorkTree


def add_freeze_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("tag", metavar="TAG", help="name of the release: letters, digits, dots, dashes and underscores")
    add_flag(parser, "--check", "check the gold against the manifest; 1 on any difference")
    add_flag(parser, "--unsigned", "freeze even if items are not signed off")
    add_gold(parser)
    add_gates(parser)
    add_option(parser, "--out", "FILE", "manifest (default: GOLD.frozen/TAG.json next to the gold file)")


def run_freeze(args: Namespace) -> int:
    """Freeze the gold set under a tag: write a manifest of its items and sign-offs, or check the gold against one.

    Reads the files of the work tree.

    Examples:
      rag-eval gold freeze v1.0
      rag-eval gold freeze v1.0 --check
    """
    if not matches(TAG, args.tag):
        allowed = "Use up to 64 letters, digits, dashes, underscores and single dots, such as v1.0"
        raise UsageError(f"{quoted(args.tag)} is not a valid tag. {allowed}")
    reader, digest = Reader(ProblemCollector()), sha256()
    root = repository_root(".")
    states = GoldStates(NOTHING, WorkTree(root))
    prefix = os.path.relpath(os.path.realpath("."), root).replace(os.sep, "/")
    (policy,) = policies(states, Place(args.gold, args.gates, "" if prefix == "." else f"{prefix}/"))
    if policy.gold.endswith((".gz", ".zst")):
        raise UsageError(packed(policy.gold))
    read_gold(reader, _from_here(root, policy.gold), digest)  # sign-off accepts items that the scorer rejects
    reader.ledger.stop_on_problems()
    head = sides(states, policy)[1]
    folder = f"{os.path.splitext(policy.gold)[0]}.frozen"  # noqa: PTH122 - start-up time
    out = args.out or _from_here(root, f"{folder}/{args.tag}.json")
    if args.check:
        return _check(reader, head, out, args.tag)
    manifest, unsigned = freeze(args.tag, digest.hexdigest(), head, policy)
    if unsigned and not args.unsigned:
        rows = sorted((head.items[qid].line, qid) for qid in unsigned)
        gold = manifest["gold"]
        lines = [f"{gold}:{line}: no record signs the current state of {quoted(qid)}." for line, qid in rows]
        print_notes(*capped(lines, "line"))
        print_notes(f"Nothing was frozen. Items without a sign-off: {len(unsigned)} of {len(head.items)}. To fix it:")
        print_notes("  rag-eval gold signoff --baseline --reason '…'")
        print_notes("Or freeze the gold set as it is, with --unsigned.")
        return GATE_FAILED
    if os.path.lexists(out):
        return _frozen_already(reader, head, out, args.tag)
    write(out, text(manifest))
    items = quantity(manifest["counts"]["items"], "item")
    print_lines(f"Wrote {out}: {items}, {manifest['signed']} signed, frozen as {args.tag}.")
    return PASSED


def _from_here(root: str, path: str) -> str:
    """Return a file's path relative to the current folder."""
    return os.path.relpath(os.path.join(root, *path.split("/")))  # noqa: PTH118


def _frozen_already(reader: Reader, head: Side, out: str, tag: str) -> int:
    """Return the exit code for gold that is already frozen, whatever the order of its lines."""
    data = reader.read(out) or b""  # only regular files: a pipe would wait for its other end
    reader.ledger.stop_on_problems()
    # Content that is no manifest is different content, not an error.
    manifest = read_json(reader._replace(ledger=ProblemCollector(), contents={out: data}), out, "freeze")
    if manifest is not None and not fault(manifest, tag) and not _changed(manifest, head):
        print_lines(f"Nothing to do: {out} already freezes the same gold set as {tag}.")
        return PASSED
    print_notes(f"{out} already exists with other content, and a tag is frozen only once. Choose another tag.")
    print_notes(f"To see the differences: rag-eval gold freeze {tag} --check")
    return GATE_FAILED


def _changed(manifest: Mapping[str, Any], head: Side) -> list[HashChange]:
    return differences(manifest, {qid: item.hash for qid, item in head.items.items()})


def _check(reader: Reader, head: Side, out: str, tag: str) -> int:
    manifest = read_json(reader, out, "freeze")
    reader.ledger.stop_on_problems()
    wrong = fault(manifest, tag) if manifest else "cannot be read"
    if wrong or not manifest:
        raise InputError([Problem(out, 0, "", wrong, "Restore the manifest from the release.")])
    changed = _changed(manifest, head)
    if not changed:
        print_lines(f"No differences: the gold set has the {quantity(len(head.items), 'item')} of {tag}.")
        return PASSED
    print_notes(*capped([f"{change.verb} {quoted(change.qid)}" for change in changed], "line"))
    print_notes(f"{quantity(len(changed), 'difference')} from {out}. Freeze this gold set under a new tag.")
    return GATE_FAILED
