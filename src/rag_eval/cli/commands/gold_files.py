"""The commands ``rag-eval gold lint``, ``gold stats`` and ``gold freeze``: the files of a gold set."""

from __future__ import annotations

import os
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any

from rag_eval.cli.commands._shared import gates_path, print_lines, print_notes, print_result, write
from rag_eval.cli.commands.gold_signoff import capped
from rag_eval.cli.parser import Parser
from rag_eval.common.escaping import one_line, quantity, quoted
from rag_eval.common.paths import repository_root
from rag_eval.errors import GATE_FAILED, PASSED, InputError, Problem, UsageError
from rag_eval.git.snapshots import NOTHING
from rag_eval.gold.counts import counts_of
from rag_eval.gold.lint import GoldFinding, GoldSample, lint, watch
from rag_eval.gold.signoff.checking import Side, changed_hashes
from rag_eval.gold.signoff.freeze import TAG, fault, freeze, text
from rag_eval.gold.signoff.repository import GoldStates, Place, packed, policies, sides
from rag_eval.readers.gold_file import read_entries, read_gold
from rag_eval.readers.jsonl import paired_traces
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.report_file import read_json
from rag_eval.readers.signoff_record import HashChange, matches
from rag_eval.readers.source import Reader
from rag_eval.readers.work_tree import WorkTree
from rag_eval.run.inputs import Options, open_policy

Row = dict[str, Any]

_FINDINGS, _ROWS = 100, 20


# gold lint


def add_lint_arguments(parser: Parser) -> None:
    parser.add_gold()
    parser.add_option("--trace", "FILE", "also look at these traces; may be repeated", action="append", default=[])
    parser.add_format(["text", "json"])
    parser.add_flag("--strict", "exit with 1 if there are findings (default: 0)")
    parser.add_quiet()


def run_lint(args: Namespace) -> int:
    """Find weak gold items: substrings, citations, questions and gates. Reads files, changes none.

    Examples:
      rag-eval gold lint --gold eval/gold.jsonl --trace runs/trace.jsonl
    """
    reader, policy, digests = open_policy(Options(args.gold, gates=gates_path(args.gates)))
    golds = read_gold(reader, policy.gold)
    traces = chain.from_iterable(paired_traces(reader, golds, path, digests) for path in dict.fromkeys(args.trace))
    seen = watch(golds, traces, policy.settings) if args.trace else None
    reader.ledger.stop_on_problems()
    print_notes(*reader.ledger.notes, quiet=args.quiet)
    notes = lint(GoldSample(golds.values(), policy, seen))
    counts = dict(sorted(Counter(finding.code for finding in notes).items()))
    rows = [finding._asdict() for finding in notes]
    value = {"gold": policy.gold, "items": len(golds), "counts": counts, "findings": rows}
    print_result(value, _finding_lines(policy.gold, len(golds), notes), args.format)
    return GATE_FAILED if args.strict and notes else PASSED


def _finding_lines(path: str, items: int, notes: Sequence[GoldFinding]) -> Iterator[str]:
    for finding in notes[:_FINDINGS]:
        location = f"{path}:{finding.line}" if finding.line else path
        item = f"{quoted(finding.qid, 60)}: " if finding.qid else ""
        yield f"{location}: [{finding.code}] {item}{finding.message}. {finding.hint}"
    if len(notes) > _FINDINGS:
        yield f"… and {quantity(len(notes) - _FINDINGS, 'more finding')} not shown. To see all: --format json"
    codes = ", ".join(f"{count} {code}" for code, count in Counter(finding.code for finding in notes).most_common())
    counted = f"{quantity(len(notes), 'finding')} in {quantity(items, 'item')}"
    yield f"{counted}: {codes}. For their meaning, see docs/gold.md" if notes else f"{counted}."


# gold stats


def add_stats_arguments(parser: Parser) -> None:
    parser.add_gold(gates=False)
    parser.add_format(["text", "json"])


def run_stats(args: Namespace) -> int:
    """Count the items, slices, labels, lengths and fields of a gold set. Reads files, changes none.

    Examples:
      rag-eval gold stats --gold eval/gold.jsonl
    """
    reader, policy, _ = open_policy(Options(args.gold, gates="" if args.gold else gates_path("")))
    entries = read_entries(reader, policy.gold)
    reader.ledger.stop_on_problems()
    counts = {"gold": policy.gold, **counts_of(entries)}
    print_result(counts, _count_lines(counts), args.format)
    return PASSED


def _count_lines(counts: dict[str, Any]) -> Iterator[str]:
    attacks = f", {quantity(counts['attacks'], 'safety case')}" if counts["attacks"] else ""
    kinds = f"{counts['answerable']} answerable, {counts['unanswerable']} unanswerable{attacks}"
    yield f"{counts['gold']}: {quantity(counts['items'], 'item')}, {kinds}."
    for name, values in counts["slices"].items():
        rows = [
            [value, item["items"], item["answerable"], item["items"] - item["answerable"]]
            for value, item in values.items()
        ]
        yield from _table([name, "items", "answerable", "unanswerable"], rows)
    for name, numbers in counts["per_item"].items():
        yield from _table([f"{name} of an item", "items"], [*numbers.items()])
    lengths = [[name, *spread.values()] for name, spread in counts["lengths"].items() if spread]
    yield from _table(["length", "minimum", "median", "maximum", "total"], lengths)
    yield from _table(["field", "items"], [*counts["fields"].items()])


def _table(headers: list[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    from tabulate import tabulate

    shown = [[one_line(str(row[0]), 60), *row[1:]] for row in rows[:_ROWS]]
    align = ["left", *["right"] * (len(headers) - 1)]
    text = tabulate(shown, [one_line(headers[0], 60), *headers[1:]], "simple", colalign=align, disable_numparse=True)
    yield from ("", *text.split("\n"))
    if len(rows) > _ROWS:
        yield f"… and {len(rows) - _ROWS} more. To see all: --format json"


# gold freeze


def add_freeze_arguments(parser: Parser) -> None:
    parser.add_argument("tag", metavar="TAG", help="name of the release: letters, digits, dots, dashes and underscores")
    parser.add_flag("--check", "check the gold against the manifest; 1 on any difference")
    parser.add_flag("--unsigned", "freeze even if items are not signed off")
    parser.add_gold()
    parser.add_option("--out", "FILE", "manifest (default: GOLD.frozen/TAG.json next to the gold file)")


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
    return changed_hashes(manifest["items"], {qid: item.hash for qid, item in head.items.items()})


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
