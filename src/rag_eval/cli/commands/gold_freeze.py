"""Freeze the gold set under a tag: a manifest of its items and sign-offs, or a check that it still is what was frozen.

Reads the files of the work tree.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rag_eval.common.escaping import log_line, quoted
from rag_eval.errors import GATE_FAILED, PASSED, InputError, Problem, UsageError

if TYPE_CHECKING:
    from rag_eval.gold.signoff.checking import Side
    from rag_eval.gold.signoff.freeze import Frozen
    from rag_eval.readers.signoff_record import Change
    from rag_eval.readers.source import Reader

EXAMPLE = "examples: rag-eval gold freeze v1.0, rag-eval gold freeze v1.0 --check"
_SHOWN = 100


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("tag", metavar="TAG", help="name of the release: letters, digits, dots, dashes, underscores")
    parser.add_argument("--check", action="store_true", help="check the gold against the manifest; 1 on any difference")
    parser.add_argument("--unsigned", action="store_true", help="freeze though items are not signed off")
    parser.add_argument("--gold", metavar="PATH", help="the gold file (default: as eval-gates.yml says)")
    parser.add_argument("--gates", metavar="PATH", help="the gates file (default: the nearest eval-gates.yml)")
    parser.add_argument(
        "--out", metavar="FILE", help="the manifest (default: TAG.json in GOLD.frozen, beside the gold)"
    )


def run(args: Namespace) -> int:
    """Write the manifest, or check the gold against it."""
    from rag_eval.gold.signoff.freeze import TAG
    from rag_eval.readers.problems import Ledger
    from rag_eval.readers.signoff_record import matches
    from rag_eval.readers.source import Reader

    if not matches(TAG, args.tag):
        allowed = "It is a file's name: up to 64 letters, digits, dashes, underscores and single dots."
        raise UsageError(f"{quoted(args.tag)} is no tag. {allowed}")
    reader = Reader(Ledger())
    frozen, head, out = _state(reader, args)
    return _check(reader, head, out, args.tag) if args.check else _freeze(reader, frozen, head, out, args)


def _state(reader: Reader, args: Namespace) -> tuple[Frozen, Side, str]:
    """The gold as the work tree has it, with its manifest and where that stands."""
    from hashlib import sha256

    from rag_eval.git.snapshots import NOTHING
    from rag_eval.gold.signoff.freeze import freeze
    from rag_eval.gold.signoff.repository import GoldStates, Place, packed, policies, sides
    from rag_eval.readers.gold_file import read_gold
    from rag_eval.readers.work_tree import WorkTree

    root, digest = root_of("."), sha256()
    frame = GoldStates(NOTHING, WorkTree(root))
    (policy,) = policies(frame, Place(args.gold, args.gates, _below(root)))
    if policy.gold.endswith((".gz", ".zst")):
        raise UsageError(packed(policy.gold))
    read_gold(reader, _place(root, policy.gold), digest)  # sign-off takes items that no scorer would
    reader.ledger.stop_on_problems()
    head = sides(frame, policy)[1]
    folder = f"{os.path.splitext(policy.gold)[0]}.frozen"  # noqa: PTH122 - start-up time
    out = args.out or _place(root, f"{folder}/{args.tag}.json")
    return freeze(args.tag, digest.hexdigest(), head, policy), head, out


def root_of(folder: str) -> str:
    """The folder that git calls the root of the work tree; ``folder`` itself where there is no repository."""
    here = above = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(above, ".git")):  # noqa: PTH118 - start-up time, as below
        here, above = above, os.path.dirname(above)  # noqa: PTH120
        if here == above:
            return os.path.realpath(folder)
    return above


def _place(root: str, path: str) -> str:
    """Where the file of a path from the root stands, seen from the current folder."""
    return os.path.relpath(os.path.join(root, *path.split("/")))  # noqa: PTH118


def _below(root: str) -> str:
    """Where the current folder stands below the root, empty or ending in a slash."""
    found = os.path.relpath(os.path.realpath("."), root).replace(os.sep, "/")
    return "" if found == "." else f"{found}/"


def _freeze(reader: Reader, frozen: Frozen, head: Side, out: str, args: Namespace) -> int:
    from pathlib import Path

    from rag_eval.cli.commands._shared import write
    from rag_eval.gold.signoff.freeze import text

    manifest, unsigned = frozen
    if unsigned and not args.unsigned:
        return _refused(manifest["gold"], head, unsigned)
    if os.path.lexists(out):
        return _frozen_already(reader, head, out, args.tag)
    write(Path(out), text(manifest))
    _say([f"Frozen as {args.tag}: {manifest['counts']['items']} items, {manifest['signed']} signed. Written: {out}"])
    return PASSED


def _frozen_already(reader: Reader, head: Side, out: str, tag: str) -> int:
    """What ``--check`` calls as frozen is frozen already, however its lines stand by now."""
    if _is_manifest_of(reader, head, out, tag):
        _say([f"Nothing to do: {tag} is frozen already, as the gold is. See {out}"])
        return PASSED
    _complain([f"{out}: this is there already, with other content. A tag is frozen once: choose another one."])
    _complain([f"What differs: rag-eval gold freeze {tag} --check"])
    return GATE_FAILED


def _is_manifest_of(reader: Reader, head: Side, out: str, tag: str) -> bool:
    from rag_eval.gold.signoff.freeze import fault
    from rag_eval.readers.problems import Ledger
    from rag_eval.readers.report_file import read_json

    source = reader.open(out)  # not any file: a pipe would wait for its other end
    data = b""
    if source:
        with source:
            data = source.whole() or b""
    reader.ledger.stop_on_problems()
    # What is no manifest is other content, and no problem: nothing was asked of it.
    manifest = read_json(reader._replace(ledger=Ledger(), held={out: data}), out, "freeze")
    return manifest is not None and not fault(manifest, tag) and not _changed(manifest, head)


def _changed(manifest: Mapping[str, Any], head: Side) -> list[Change]:
    from rag_eval.gold.signoff.freeze import differences

    return differences(manifest, {qid: item.hash for qid, item in head.items.items()})


def _refused(gold: str, head: Side, unsigned: list[str]) -> int:
    rows = sorted((head.items[qid].line, qid) for qid in unsigned)
    _complain(_capped([f"{gold}:{line}: {quoted(qid)} is not signed off as it stands" for line, qid in rows]))
    _complain([f"{len(unsigned)} of {len(head.items)} items are not signed off, so nothing was frozen. To fix it:"])
    _complain(["  rag-eval gold signoff --baseline --reason '…'", "Or freeze them as they are, with --unsigned."])
    return GATE_FAILED


def _check(reader: Reader, head: Side, out: str, tag: str) -> int:
    from rag_eval.gold.signoff.freeze import fault
    from rag_eval.readers.report_file import read_json

    manifest = read_json(reader, out, "freeze")
    reader.ledger.stop_on_problems()
    wrong = fault(manifest, tag) if manifest else "cannot be read"
    if wrong or not manifest:
        raise InputError([Problem(out, 0, "", wrong, "Take it from where it was released.")])
    changed = _changed(manifest, head)
    if not changed:
        _say([f"As frozen: {len(head.items)} items of {tag}."])
        return PASSED
    _complain(_capped([f"{change.verb} {quoted(change.qid)}" for change in changed]))
    _complain([f"{len(changed)} item(s) are not as frozen in {out}. Freeze this state under a tag of its own."])
    return GATE_FAILED


def _capped(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"… and {more} more not shown."] if more > 0 else [])]


def _say(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{log_line(line)}\n" for line in lines)


def _complain(lines: Iterable[str]) -> None:
    sys.stderr.writelines(f"{log_line(line)}\n" for line in lines)
