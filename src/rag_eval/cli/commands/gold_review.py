"""Walk through drafts of gold items in the terminal: accept, edit or reject each, and sign those accepted."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rag_eval.cli.commands import gold_signoff
from rag_eval.cli.commands._shared import gates_path, write_data, write_rows
from rag_eval.cli.commands.gold_draft import Row, add_files, read_drafts
from rag_eval.cli.commands.gold_relink import json_lines
from rag_eval.common.escaping import log_line, one_line, quoted
from rag_eval.errors import PASSED, RagEvalError, UsageError
from rag_eval.git.plumbing import Git, GitError
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.schema_validation import Contract
from rag_eval.run.inputs import open_policy
from rag_eval.run.options import Options

EXAMPLES = """\
  rag-eval gold review --signer ann@example.org
"""
_WIDE = 400


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_files(parser)
    parser.add_argument("--signer", metavar="EMAIL", help="email of the reviewer (default: git's user.email)")
    parser.add_argument("--key", metavar="FILE", help="SSH key to sign with")


def run(args: Namespace) -> int:
    """Ask about each open draft; decisions made before the end of the input are saved."""
    drafts = read_drafts(args.drafts)
    reader, policy, _ = open_policy(Options(args.gold, gates=gates_path(args.gates)))
    golds = read_gold(reader, policy.gold) if reader.has(policy.gold) else {}
    reader.ledger.stop_on_problems()
    gold = Path(policy.gold)
    data = json_lines(policy.gold, "gold review adds lines to")
    signer = _signer(args, policy.gold, data)
    qids, accepted = set(golds), list[str]()
    waiting = [row for row in drafts if "rejected" not in row]
    try:
        for index, row in enumerate(waiting, 1):
            _show(row, f"{index} of {len(waiting)}")
            choice, item = _decide(row, qids)
            if choice == "q":
                break
            if choice == "a":
                lines = json.dumps(item, ensure_ascii=False).encode() + b"\n"
                data += (b"\n" if data and not data.endswith(b"\n") else b"") + lines
                write_data(gold, [data])
                qids.add(item["qid"])
                accepted.append(item["qid"])
                drafts.remove(row)
            elif choice == "r":
                row["rejected"] = {"by": signer, "why": item["why"]}
            write_rows(Path(args.drafts), drafts)
    except EOFError:
        print()
    print(f"{len(accepted)} accepted, {sum('rejected' not in row for row in drafts)} still open.")
    return _sign(args, policy.gold, data, accepted) if accepted else PASSED


def _show(row: Row, progress: str) -> None:
    lines = [f"[{progress}] {row['draft']}: {row['question']}", f"answer: {row.get('answer') or '(none)'}"]
    lines += [f"cited: {', '.join(map(str, row.get('cited') or ())) or '(nothing)'}"]
    print()
    for line in lines:
        print(log_line(one_line(line, _WIDE)))
    for number, chunk in enumerate(row.get("retrieved") or (), 1):
        text = one_line(f"{chunk['id']} {chunk.get('text', '')}", _WIDE)
        print(log_line(f"  {number}. {text}"))


def _decide(row: Row, qids: set[str]) -> tuple[str, Row]:
    """Ask until there is a decision and a valid item."""
    while True:
        choice = _ask("accept, edit, reject, skip, quit? [a/e/r/s/q] ").lower()[:1]
        if choice == "r":
            return "r", {"why": _ask("why? (for the record) ")}
        if choice == "e":
            row["question"] = _ask(f"question [{one_line(row['question'], 80)}]: ") or row["question"]
            row["qid"] = _ask(f"qid [{row['qid']}]: ") or row["qid"]
            choice = "a"
        if choice != "a":
            if choice in ("s", "q"):
                return choice, {}
            continue
        turn: Row = {field: row[field] for field in ("conversation", "turn") if field in row}
        made: Row = {"qid": row["qid"], "question": row["question"], **_labels(row), **turn}
        faults = [f"{entry.where}: {entry.message}" for entry in Contract("gold").faults(made)]
        faults += [f"the qid {quoted(row['qid'])} is already used; choose another one"] if row["qid"] in qids else []
        if not faults:
            return "a", made
        for fault in faults:
            print(log_line(f"not accepted: {fault}"))


def _labels(row: Row) -> dict[str, Any]:
    """Ask for the missing labels; chunks may be named by their numbers."""
    answerable = ""
    while answerable not in ("y", "n"):
        answerable = _ask("do the documents answer the question? [y/n] ").lower()[:1]
    if answerable == "n":
        return {"answerable": False, "gold_claim_substr": [], "gold_citations": []}
    parts = _ask("which text must a correct answer contain? (parts of 5 characters or more, separated by ;) ").split(
        ";"
    )
    chunks = row.get("retrieved") or []
    cited = _ask("which chunks support the answer? (numbers or ids, separated by spaces) ").replace(",", " ").split()
    ids = [chunks[int(item) - 1]["id"] if item.isdecimal() and 0 < int(item) <= len(chunks) else item for item in cited]
    substrings = [part.strip() for part in parts if part.strip()]
    return {"answerable": True, "gold_claim_substr": substrings, "gold_citations": ids}


def _ask(text: str) -> str:
    return input(text).strip()


def _signer(args: Namespace, gold: str, data: bytes) -> str:
    """Return the reviewer. Gold with other changes is refused: they would be signed along with these."""
    try:
        git = Git()
    except GitError:
        if not args.signer:
            raise UsageError("no reviewer is known. Add --signer EMAIL") from None
        return str(args.signer)
    inside = git.inside(gold)
    last = git.last()
    committed = git.blob(inside, last) if last else None
    if data and committed != data:
        raise UsageError(
            f"{gold} has uncommitted changes, which gold review would sign too. Commit or undo them first."
        )
    signer = args.signer or git.email()
    if not signer:
        raise UsageError("no reviewer is known. Add --signer EMAIL, or run: git config user.email EMAIL")
    return str(signer)


def _sign(args: Namespace, gold: str, data: bytes, accepted: list[str]) -> int:
    """Stage the gold, and record the sign-off of the accepted items."""
    reason = f"reviewed drafts: {', '.join(accepted[:20])}{' and more' if len(accepted) > 20 else ''}"
    terms = {"reason": reason, "signer": args.signer, "key": args.key, "base": None, "gold": None, "gates": None}
    try:
        git = Git()
        inside = git.inside(gold)
        git.stage(inside, data)
        return gold_signoff.run(Namespace(**terms, baseline=False, mutates=False))
    except RagEvalError as error:
        advice = "Sign them: rag-eval gold signoff --reason TEXT"
        print(
            log_line(f"{gold} has the new items, but they are not signed: {str(error).rstrip('.')}. {advice}"),
            file=sys.stderr,
        )
        return PASSED
