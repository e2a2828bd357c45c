"""The commands ``rag-eval gold lint``, ``stats``, ``diff``, ``freeze`` and ``relink``: the files of a gold set."""

from __future__ import annotations

import json
import os
import posixpath
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert
from msgspec.structs import replace

from rag_eval.analysis import gold_impact
from rag_eval.cases import GOOD
from rag_eval.cli._shared import option_words, print_lines, print_notes, print_result, repository_root
from rag_eval.cli.gold_signoff import BASE_HELP, capped, counted, states_since, unstaged
from rag_eval.cli.parser import Parser
from rag_eval.common.escaping import markdown, one_line, quantity, quoted
from rag_eval.common.files import Digests, write_data, write_json
from rag_eval.common.paths import from_here, nearest_gates, shell_line
from rag_eval.contract import DEFAULT_TRACE, Chunk, Gold
from rag_eval.contract.records import without_unknown
from rag_eval.errors import GATE_FAILED, PASSED, InputError, Problem, RagEvalError, UsageError
from rag_eval.gates.selection import slices_of
from rag_eval.git import NOTHING, read
from rag_eval.git.plumbing import Git
from rag_eval.gold import signoff, signoff_repository
from rag_eval.gold.item_checks import GoldSample
from rag_eval.gold.lint import lint, watch
from rag_eval.gold.relink import Link, Relinker, rewritten
from rag_eval.gold.signoff import TAG, Side, changed_hashes, freeze, manifest_digest
from rag_eval.gold.signoff_repository import GoldStates, Place, packed, policies, sides
from rag_eval.importers.documents import objects
from rag_eval.readers.gold_file import StoredGold, read_entries, read_gold, stored_gold_set
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.jsonl import paired_traces, read_json
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.signoff_record import HashChange
from rag_eval.readers.source import PACKED, Reader
from rag_eval.run import Options
from rag_eval.run.authority import WorkTree
from rag_eval.run.inputs import open_policy, read_inputs
from rag_eval.run.scored_run import rescore_on, score_run

_FINDINGS, _ROWS, _TEXT, _FLIPS = 100, 20, 60, 10
_COUNTED_FIELDS = ("category", "difficulty", "query_type", "multi_hop", "tags")


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
    reader, policy = open_policy(Options(args.gold, gates=args.gates or nearest_gates()))
    golds = read_gold(reader, policy.gold)
    traces = chain.from_iterable(paired_traces(reader, golds, path) for path in dict.fromkeys(args.trace))
    seen = watch(golds, traces, policy.settings) if args.trace else None
    reader.ledger.stop_on_problems()
    print_notes(*reader.ledger.notes, quiet=args.quiet)
    notes = lint(GoldSample(golds.values(), policy, seen))
    counts = Counter(finding.code for finding in notes)
    lines = []
    for finding in notes[:_FINDINGS]:
        location = f"{policy.gold}:{finding.line}" if finding.line else policy.gold
        item = f"{quoted(finding.qid, 60)}: " if finding.qid else ""
        lines.append(f"{location}: [{finding.code}] {item}{finding.message}. {finding.hint}")
    if len(notes) > _FINDINGS:
        more = quantity(len(notes) - _FINDINGS, "more finding")
        lines.append(f"… and {more} not shown. To see all: --format json")
    codes = ", ".join(f"{count} {code}" for code, count in counts.most_common())
    counted = f"{quantity(len(notes), 'finding')} in {quantity(len(golds), 'item')}"
    lines.append(f"{counted}: {codes}. For the meaning of one: rag-eval explain CODE" if notes else f"{counted}.")
    value = {"gold": policy.gold, "items": len(golds), "counts": dict(sorted(counts.items()))}
    print_result({**value, "findings": [finding._asdict() for finding in notes]}, lines, args.format)
    return GATE_FAILED if args.strict and notes else PASSED


def add_stats_arguments(parser: Parser) -> None:
    parser.add_gold(gates=False)
    parser.add_format(["text", "json"])


def run_stats(args: Namespace) -> int:
    """Count the items, slices and fields of a gold set. Reads files, changes none.

    Examples:
      rag-eval gold stats --gold eval/gold.jsonl
    """
    reader, policy = open_policy(Options(args.gold, gates="" if args.gold else nearest_gates()))
    entries = read_entries(reader, policy.gold)
    reader.ledger.stop_on_problems()
    counts = _counts(entries)
    attacks = f", {quantity(counts['attacks'], 'safety case')}" if counts["attacks"] else ""
    kinds = f"{counts['answerable']} answerable, {counts['unanswerable']} unanswerable{attacks}"
    lines = [f"{policy.gold}: {quantity(counts['items'], 'item')}, {kinds}."]
    for name, values in counts["slices"].items():
        rows = [[value, n["items"], n["answerable"], n["items"] - n["answerable"]] for value, n in values.items()]
        lines += _table([name, "items", "answerable", "unanswerable"], rows)
    lines += _table(["field", "items"], [*counts["fields"].items()])
    print_result({"gold": policy.gold, **counts}, lines, args.format)
    return PASSED


def _counts(entries: Sequence[tuple[Gold, dict[str, Any]]]) -> dict[str, Any]:
    """Return the counts of a gold set, largest first; safety cases are neither answerable nor unanswerable."""
    golds = [gold for gold, _ in entries]
    counted = [gold for gold in golds if gold.attack is None]
    answerable = sum(gold.answerable for gold in counted)
    meta = sorted({f"meta.{name}" for gold in golds for name in gold.meta or ()})
    slices: dict[str, dict[str, dict[str, int]]] = {}
    for field in (*_COUNTED_FIELDS, *meta):
        items = Counter(part for gold in golds for part in slices_of(gold, (field,)))
        right = Counter(part for gold in golds if gold.answerable for part in slices_of(gold, (field,)))
        for part, n in _ranked(items).items():
            slices.setdefault(field, {})[part.partition("=")[2]] = {"items": n, "answerable": right[part]}
    return {
        "items": len(golds),
        "answerable": answerable,
        "unanswerable": len(counted) - answerable,
        "attacks": len(golds) - len(counted),
        "slices": slices,
        "fields": _ranked(Counter(name for _, row in entries for name in row)),
    }


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _table(headers: list[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    from tabulate import tabulate

    shown = [[one_line(str(row[0]), 60), *row[1:]] for row in rows[:_ROWS]]
    align = ["left", *["right"] * (len(headers) - 1)]
    text = tabulate(shown, [one_line(headers[0], 60), *headers[1:]], "simple", colalign=align, disable_numparse=True)
    yield from ("", *text.split("\n"))
    if len(rows) > _ROWS:
        yield f"… and {len(rows) - _ROWS} more. To see all: --format json"


def add_diff_arguments(parser: Parser) -> None:
    parser.add_option("--base", "REF", BASE_HELP)
    parser.add_flag("--worktree", "compare the files as they are, before they are staged")
    parser.add_option("--trace", "FILE", "traces to show the effect on (default: from the gates file)")
    parser.add_gold()


def run_diff(args: Namespace) -> int:
    """Show which gold items were added, changed and removed, and the effect on local traces.

    Examples:
      rag-eval gold diff --base origin/main
    """
    git = Git()
    states = states_since(git, args.base, worktree=args.worktree)
    policies = signoff_repository.policies(states, Place(args.gold, args.gates, git.prefix))
    for policy in policies:
        base, head = signoff_repository.sides(states, policy)
        changes = signoff.changes(base.items, head.items)
        print_lines(*(_described(item, base, head) for item in changes))
        if not signoff_repository.is_untouched(states, policy):
            print_lines(*case_effects(git, states, policy.gold, args.gates, args.trace))
        print_lines(f"{policy.gold} against {states.name}: {counted(changes)}.")
    print_notes(*unstaged(git, [policy.gold for policy in policies], args))
    return PASSED


def _described(change: HashChange, base: Side, head: Side) -> str:
    before, after = base.items.get(change.qid), head.items.get(change.qid)
    if before is None or after is None:
        return f"{change.verb} {quoted(change.qid)}"
    old, new = _as_json(before.row), _as_json(after.row)
    names = sorted({name for name, _ in old.items() ^ new.items()})
    values = [" → ".join(one_line(row.get(name, "absent"), 60) for row in (old, new)) for name in names]
    what = "; ".join(f"{quoted(name)[1:-1]} {value}" for name, value in zip(names, values, strict=True))
    what = what or "only its formatting"
    mutation = " (another question under the same qid)" if signoff.question_changes(before, after) else ""
    return f"changed {quoted(change.qid)}: {what}{mutation}"


def _as_json(row: Mapping[str, Any]) -> dict[str, str]:
    # As JSON, because true == 1 in Python.
    return {name: json.dumps(value, ensure_ascii=False, sort_keys=True) for name, value in row.items()}


def case_effects(git: Git, states: GoldStates, gold: str, gates: str, trace: str) -> Iterator[str]:
    """Yield the cases that flip and the gates that change on local traces; nothing without traces."""
    old, new = (read(tree, gold) for tree in (states.base, states.head))
    if not (old and new) or old == new:
        return
    options = Options(from_here(str(Path(git.top, gold))), trace, gates or nearest_gates())
    try:
        digests = Digests()
        reader, policy = open_policy(options, digests)
        if not os.path.exists(policy.trace):  # noqa: PTH110 - Path.exists raises for a name that is too long
            return
        run = score_run(read_inputs(options, replace(reader, contents={policy.gold: new}), digests, [policy]))
        after = run.report
        labels_after, labels_before, turns = gold_impact.labels(after.questions), {}, []
        with suppress(InputError):  # an old gold set that cannot be read flips nothing
            stored = StoredGold(policy.gold, policy.gold, {policy.gold: old})
            before = rescore_on(run, stored_gold_set(stored)).report
            labels_before = gold_impact.labels(before.questions)
            turns = gold_impact.gate_turns(before.gates, after.gates)
    except RagEvalError as error:
        # Unreadable gates or traces only leave the effects out.
        if trace or os.path.exists(DEFAULT_TRACE):  # noqa: PTH110 - Path.exists raises without permission
            yield f"The effect on the cases cannot be computed: {error.first}"
        return
    both = sorted(labels_before.keys() & labels_after.keys())
    flips = [qid for qid in both if (labels_before[qid] in GOOD) != (labels_after[qid] in GOOD)]
    cases = quantity(len(flips), "case")
    yield f"With {policy.trace}, this changes the result of {cases}{':' if flips else '.'}"
    yield from (f"  {qid}: {labels_before[qid]} → {labels_after[qid]}" for qid in flips[:_FLIPS])
    if len(flips) > _FLIPS:
        yield f"  … and {len(flips) - _FLIPS} more."
    yield from (f"  gate {turn.name}: {turn.before} → {turn.after}" for turn in turns)


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
    if not re.fullmatch(TAG, args.tag):
        allowed = "Use up to 64 letters, digits, dashes, underscores and single dots, such as v1.0"
        raise UsageError(f"{quoted(args.tag)} is not a valid tag. {allowed}")
    reader, digest = Reader(ProblemCollector()), sha256()
    root = repository_root(".")
    states = GoldStates(NOTHING, WorkTree(root))
    prefix = os.path.relpath(os.path.realpath("."), root).replace(os.sep, "/")
    (policy,) = policies(states, Place(args.gold, args.gates, "" if prefix == "." else f"{prefix}/"))
    if policy.gold.endswith((".gz", ".zst")):
        raise UsageError(packed(policy.gold))
    read_gold(reader, from_here(str(Path(root, policy.gold))), digest)  # sign-off accepts items that the scorer rejects
    reader.ledger.stop_on_problems()
    head = sides(states, policy)[1]
    folder = f"{posixpath.splitext(policy.gold)[0]}.frozen"
    out = args.out or from_here(str(Path(root, folder, f"{args.tag}.json")))
    if not args.check and os.path.lexists(out):
        print_notes(f"{out}: exists already, and a tag is frozen only once. The gold set is compared with it")
        args.check = True
    if args.check:
        return _check(reader, head, out, args.tag)
    manifest, unsigned = freeze(args.tag, digest.hexdigest(), head, policy)
    if unsigned and not args.unsigned:
        rows = sorted((head.items[qid].line, qid) for qid in unsigned)
        gold = manifest["gold"]
        lines = [f"{gold}:{line}: no record signs the current state of {quoted(qid)}." for line, qid in rows]
        sign = shell_line("rag-eval", "gold", "signoff", "--baseline", *option_words(args, "gold", "gates"))
        print_notes(*capped(lines, "line"))
        print_notes(f"Nothing was frozen. Items without a sign-off: {len(unsigned)} of {len(head.items)}. To fix it:")
        print_notes(f"  {sign} --reason '…'", "Or freeze the gold set as it is, with --unsigned.")
        return GATE_FAILED
    write_json(out, manifest)
    items = quantity(manifest["counts"]["items"], "item")
    print_lines(f"Wrote {out}: {items}, {manifest['signed']} signed, frozen as {args.tag}.")
    return PASSED


def _check(reader: Reader, head: Side, out: str, tag: str) -> int:
    """Print the differences from a manifest, and return the exit code."""
    manifest = read_json(reader, out, "freeze") or {}
    reader.ledger.stop_on_problems()
    wrong = ""
    if manifest["tag"] != tag:
        wrong = f"is the manifest of another tag, {quoted(manifest['tag'])}"
    elif manifest["digest"] != manifest_digest(manifest["items"].values()):
        wrong = "was edited: its digest does not match its items"
    if wrong:
        raise InputError([Problem(out, 0, "", wrong, "Restore the manifest from the release.")])
    changed = changed_hashes(manifest["items"], {qid: item.hash for qid, item in head.items.items()})
    if not changed:
        print_lines(f"No differences: the gold set has the {quantity(len(head.items), 'item')} of {tag}.")
        return PASSED
    print_notes(*capped([f"{change.verb} {quoted(change.qid)}" for change in changed], "line"))
    print_notes(f"{quantity(len(changed), 'difference')} from {out}. Freeze this gold set under a new tag.")
    return GATE_FAILED


def add_relink_arguments(parser: Parser) -> None:
    parser.add_gold()
    old, new = (f"chunks or traces of the {index} index" for index in ("old", "new"))
    parser.add_option("--old", "FILE", f"{old} (default: traces of the baseline)", action="append", default=[])
    parser.add_option("--new", "FILE", f"{new} (default: runs/trace.jsonl)", action="append", default=[])
    parser.add_flag("--write", "write the proposed ids into the gold file, unsigned")


def run_relink(args: Namespace) -> int:
    """Propose new chunk ids for a gold set after re-chunking, by text and position of the old chunks.

    Examples:
      rag-eval gold relink --old eval/baseline.trace.jsonl --new runs/trace.jsonl --write
    """
    reader, policy = open_policy(Options(args.gold, gates=args.gates or nearest_gates()))
    golds = read_gold(reader, policy.gold)
    if not args.old and not policy.baseline_trace:
        fix = "Name its chunks or traces with --old, or baseline.trace in the gates file"
        raise UsageError(f"the old index is unknown. {fix}")
    old, new = (_chunks(reader, paths) for paths in (args.old or [policy.baseline_trace], args.new or [policy.trace]))
    reader.ledger.stop_on_problems()
    links = Relinker(old, new).links(golds.values())
    print_lines(*_link_lines(links, old, new))
    new_links = [link for link in links if link.new]
    if not links:
        print_lines("Nothing to relink: all chunk ids of the gold are among the new ones.")
        return PASSED
    counted = f"{len(new_links)} of {quantity(len(links), 'old chunk id')}"
    print_lines(f"New ids for {counted}, in {quantity(len({link.qid for link in new_links}), 'item')}.")
    if args.write and new_links:
        # Rewrites the lines of changed items; all others keep their bytes.
        lines = json_lines(policy.gold, "--write needs").split(b"\n")
        for number, group in groupby(new_links, key=lambda link: link.line):
            line = lines[number - 1]
            text = line.strip().removeprefix(b"\xef\xbb\xbf")
            lines[number - 1] = line.replace(text, rewritten(text, list(group)))
        write_data(policy.gold, [b"\n".join(lines)])
        stage = shell_line("git", "add", policy.gold)
        sign = shell_line("rag-eval", "gold", "signoff", *option_words(args, "gold", "gates"))
        print_lines(f"wrote {policy.gold}. Review it, then: {stage} && {sign} --reason TEXT")
    return PASSED if len(new_links) == len(links) else GATE_FAILED


def _chunks(reader: Reader, paths: Sequence[str]) -> dict[str, Chunk]:
    """Read chunks from files with a chunk on each line, or from traces; the first occurrence with a text counts."""
    chunks: dict[str, Chunk] = {}
    for path in paths:
        for line, row in objects(Files(reader, [path]), path, "a chunk or a trace"):
            several = [chunk for retrieval in _list(row, "retrievals") for chunk in _list(retrieval, "chunks")]
            rows = _list(row, "chunks") or several or ([row] if "id" in row else [])
            try:
                for chunk in convert([without_unknown(Chunk, item)[0] for item in rows], list[Chunk]):
                    if chunk.id not in chunks or (chunks[chunk.id].text is None and chunk.text is not None):
                        chunks[chunk.id] = chunk
            except ValidationError as error:
                hint = 'Write {"id": …, "text": …}, or traces with chunks.'
                reader.ledger.problem(path, line, "", f"is not a chunk or a trace with chunks: {error}", hint)
        if not chunks and not reader.ledger.problems:
            reader.ledger.problem(path, 0, "", "has no chunks", "Record chunks with id and text in the traces.")
    return chunks


def _link_lines(links: Sequence[Link], old: Mapping[str, Chunk], new: Mapping[str, Chunk]) -> Iterator[str]:
    if links:
        yield "| question | old id | new ids | by | old text | new text |"
        yield "|---|---|---|---|---|---|"
    for link in links:
        texts = [_start(old.get(link.old)), " … ".join(_start(new[name]) for name in link.new)]
        by = link.by or ("the old chunk is unknown" if link.old not in old else "no similar chunk")
        lost = f"; check: no new chunk has {', '.join(map(repr, link.lost))}" if link.lost else ""
        cells = [link.qid, link.old, ", ".join(link.new) or "–", by + lost, *texts]
        yield f"| {' | '.join(markdown(cell, 200) for cell in cells)} |"


def _list(row: Any, name: str) -> list[Any]:
    value = row.get(name) if isinstance(row, dict) else None
    return value if isinstance(value, list) else []


def _start(chunk: Chunk | None) -> str:
    return " ".join((chunk.text or "").split())[:_TEXT] if chunk else ""


def json_lines(path: str, use: str) -> bytes:
    """Return the content of a gold file, empty if there is none; raise UsageError if it is not JSON Lines."""
    file = Path(path)
    data = file.read_bytes() if file.is_file() else b""
    is_array = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    if is_array or data.startswith(PACKED) or file.is_dir() or file.suffix in (".gz", ".zst"):
        raise UsageError(f"{path} is not JSON Lines, which {use}. Convert it: rag-eval import --help")
    return data
