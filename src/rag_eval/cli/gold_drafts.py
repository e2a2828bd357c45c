"""The commands ``rag-eval gold draft`` and ``gold review``: items from traces, accepted by a person."""

from __future__ import annotations

import os
from argparse import Namespace
from collections import Counter
from hashlib import sha256
from itertools import zip_longest
from operator import itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from rag_eval.cases import Case
from rag_eval.cli._shared import ask, file_bytes, option_words, person, print_lines, print_notes, refuse
from rag_eval.cli.gold_files import json_lines
from rag_eval.cli.gold_signoff import run_signoff
from rag_eval.cli.parser import Parser, names, whole
from rag_eval.common.escaping import one_line, quantity, quoted
from rag_eval.common.files import with_line, write_data, write_rows
from rag_eval.common.paths import nearest_gates, shell_line
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.errors import PASSED, RagEvalError, UsageError
from rag_eval.git import read
from rag_eval.git.plumbing import Git, GitError
from rag_eval.metrics import measure
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.jsonl import read_trace_rows
from rag_eval.readers.problems import Contract
from rag_eval.readers.source import checked_reader
from rag_eval.run import Options
from rag_eval.run.inputs import open_policy
from rag_eval.scoring import plain_question
from rag_eval.stats.sampling import hash_order

Row = dict[str, Any]
DRAFTS = "eval/drafts.jsonl"
KINDS = ("failed", "refused", "ungrounded", "answered")
_SUPPORTED, _CHUNKS, _WIDE = 0.5, 10, 400


class _Passage(msgspec.Struct):
    id: str
    text: str = ""


class _Draft(msgspec.Struct):
    """The fields of a draft that a person sees."""

    draft: str
    qid: str
    question: str
    answer: str | None = None
    cited: list[str] | None = None
    retrieved: list[_Passage] | None = None


def _add_files(parser: Parser) -> None:
    parser.add_gold()
    text = f"drafts, which gold draft adds and gold review reads (default: {DRAFTS})"
    parser.add_option("--drafts", "FILE", text, default=DRAFTS)


def read_drafts(path: str) -> list[Row]:
    """Return the drafts of a file, none if it does not exist; raise InputError with each invalid line."""
    rows: list[Row] = []
    with checked_reader() as reader:
        for number, line in enumerate(file_bytes(path).split(b"\n") if os.path.lexists(path) else (), 1):
            try:
                if line.strip():
                    msgspec.json.decode(line, type=_Draft)
                    rows.append(msgspec.json.decode(line))
            except (msgspec.MsgspecError, RecursionError) as error:
                hint = "Write drafts with: rag-eval gold draft --from FILE"
                reader.ledger.problem(path, number, "", f"is not a draft: {error}", hint)
    return rows


def add_draft_arguments(parser: Parser) -> None:
    parser.add_option("--from", "FILE", "production traces", dest="source", default=[], action="append", required=True)
    kinds = "failed, refused, ungrounded, answered (default: the first three)"
    parser.add_option("--select", "K[,K]", kinds, default=("failed", "refused", "ungrounded"), type=names)
    sample = "at most N drafts, drawn from the strata in turn (default: all)"
    parser.add_option("--sample", "N", sample, default=0, type=whole(0))
    strata = "field of the traces that makes the strata, such as usage.model (default: the kinds)"
    parser.add_option("--by", "FIELD", strata)
    parser.add_option("--seed", "N", "seed of the sample (default: 0)", default=0, type=whole(0))
    _add_files(parser)


def run_draft(args: Namespace) -> int:
    """Draft gold items from traces, for example of production. A person accepts them with gold review.

    Examples:
      rag-eval gold draft --from runs/trace.jsonl --select refused,ungrounded --sample 20
    """
    if unknown := [kind for kind in args.select if kind not in KINDS]:
        raise UsageError(f"--select {quoted(unknown[0], 40)} is not a kind of draft. Choose from: {', '.join(KINDS)}")
    reader, policy = open_policy(Options(args.gold, gates=args.gates or nearest_gates()))
    golds = read_gold(reader, policy.gold) if reader.has(policy.gold) else {}
    known = read_drafts(args.drafts)
    texts = [*(gold.question for gold in golds.values()), *(str(row.get("question", "")) for row in known)]
    seen, strata, skipped = set(map(plain_question, texts)), dict[str, list[Row]](), Counter[str]()
    for path in args.source:
        for trace, row in read_trace_rows(reader, path):
            question = plain_question(trace.q or trace.question)
            kind = kind_of(trace, policy.settings)
            if kind not in args.select:
                skipped["of another kind"] += 1
            elif not question:
                skipped["without a question"] += 1
            elif question in seen:
                skipped["already in gold or drafts"] += 1
            else:
                seen.add(question)
                strata.setdefault(_field(row, args.by) if args.by else kind, []).append(draft(trace, kind))
    reader.ledger.stop_on_problems()
    # From each stratum in turn; the order of the traces does not matter.
    queues = [hash_order(rows, itemgetter("qid"), f"{args.seed}:") for _, rows in sorted(strata.items())]
    drafts = [row for turn in zip_longest(*queues) for row in turn if row is not None][: args.sample or None]
    write_rows(args.drafts, [*known, *drafts])
    counts = _counted(Counter(row["draft"] for row in drafts))
    made = f"{quantity(len(drafts), 'new draft')}{f' ({counts})' if counts else ''}"
    omitted = f"; skipped {_counted(skipped)}" if skipped else ""
    options = option_words(args, "gold", "gates", *(["drafts"] if args.drafts != DRAFTS else []))
    review = f" Next: {shell_line('rag-eval', 'gold', 'review', *options)}" if known or drafts else ""
    print_lines(f"wrote {args.drafts}: {made}{omitted}.{review}")
    return PASSED


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())


def _field(row: Any, path: str) -> str:
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return str(row)


def kind_of(trace: Trace, settings: Settings) -> str:
    """Return the kind of a trace (one of KINDS), without knowing the right answer."""
    if trace.error is not None or trace.ok is False or trace.timed_out:
        return "failed"
    gold = Gold("-", trace.q or trace.question, True, (), ())
    case = Case(gold, trace, replace(settings, builtin=True))
    if case.refused:
        return "refused"
    support: Any = measure("claim_support").score(case)
    return "ungrounded" if support is not None and support[0] < _SUPPORTED * support[1] else "answered"


def draft(trace: Trace, kind: str) -> Row:
    """Return the draft of a trace's question; a person fills in the fields that are null."""
    question = trace.q or trace.question
    name = sha256(plain_question(question).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    turn = {"conversation": trace.conversation, "turn": trace.turn} if trace.conversation else {}
    chunks = [
        {"id": chunk.id} if chunk.text is None else {"id": chunk.id, "text": chunk.text}
        for chunk in (trace.chunks or ())[:_CHUNKS]
    ]
    return {
        "draft": kind,
        "qid": f"D-{name}",
        "question": question,
        **dict.fromkeys(("answerable", "gold_claim_substr", "gold_citations")),
        **{field: value for field, value in turn.items() if value is not None},
        "answer": trace.claim,
        "cited": list(trace.citations or ()),
        "retrieved": chunks or [{"id": name} for name in trace.retrieved[:_CHUNKS]],
    }


def add_review_arguments(parser: Parser) -> None:
    _add_files(parser)
    parser.add_option("--signer", "EMAIL", "email of the reviewer (default: git's user.email)")
    parser.add_option("--key", "FILE", "SSH key to sign with")


def run_review(args: Namespace) -> int:
    """Walk through drafts of gold items in the terminal: accept, edit or reject each, and sign those accepted.

    Examples:
      rag-eval gold review --signer ann@example.org
    """
    drafts = read_drafts(args.drafts)
    reader, policy = open_policy(Options(args.gold, gates=args.gates or nearest_gates()))
    golds = read_gold(reader, policy.gold) if reader.has(policy.gold) else {}
    reader.ledger.stop_on_problems()
    data = json_lines(policy.gold, "gold review adds lines to")
    signer = person(args.signer, "reviewer")
    _refuse_changes(policy.gold, data)
    qids, accepted = set(golds), list[str]()
    waiting = [row for row in drafts if "rejected" not in row]
    try:
        for index, row in enumerate(waiting, 1):
            _show_draft(row, f"{index} of {len(waiting)}")
            choice, item = _decide(row, qids)
            if choice == "q":
                break
            if choice == "a":
                data = with_line(data, item)
                write_data(policy.gold, [data])
                qids.add(item["qid"])
                accepted.append(item["qid"])
                drafts.remove(row)
            elif choice == "r":
                row["rejected"] = {"by": signer, "why": item["why"]}
            write_rows(args.drafts, drafts)  # decisions made before the end of the input are saved
    except EOFError:
        print_lines("")
    print_lines(f"{len(accepted)} accepted, {sum('rejected' not in row for row in drafts)} still open.")
    return _sign(args, policy.gold, data, accepted) if accepted else PASSED


def _show_draft(row: Row, progress: str) -> None:
    cited = ", ".join(row.get("cited") or ()) or "(nothing)"
    lines = [f"[{progress}] {row['draft']}: {row['question']}", f"answer: {row.get('answer') or '(none)'}"]
    lines = [one_line(line, _WIDE) for line in (*lines, f"cited: {cited}")]
    for number, chunk in enumerate(row.get("retrieved") or (), 1):
        text = one_line(f"{chunk['id']} {chunk.get('text', '')}", _WIDE)
        lines.append(f"  {number}. {text}")
    print_lines("", *lines)


def _decide(row: Row, qids: set[str]) -> tuple[str, Row]:
    while True:
        choice = ask("accept, edit, reject, skip, quit? [a/e/r/s/q] ").lower()[:1]
        if choice == "r":
            return "r", {"why": ask("why? (for the record) ")}
        if choice in ("s", "q"):
            return choice, {}
        if choice == "e":
            row["question"] = ask(f"question [{one_line(row['question'], 80)}]: ") or row["question"]
            row["qid"] = ask(f"qid [{row['qid']}]: ") or row["qid"]
        elif choice != "a":
            continue
        turn: Row = {field: row[field] for field in ("conversation", "turn") if field in row}
        made: Row = {"qid": row["qid"], "question": row["question"], **_labels(row), **turn}
        faults = [f"{fault.where}: {fault.message}" for fault in Contract("gold").faults(made)]
        faults += [f"the qid {quoted(row['qid'])} is already used; choose another one"] if row["qid"] in qids else []
        if not faults:
            return "a", made
        print_lines(*(f"not accepted: {fault}" for fault in faults))


def _labels(row: Row) -> Row:
    """Ask for the missing labels; chunks may be named by their numbers."""
    answerable = ""
    while answerable not in ("y", "n"):
        answerable = ask("do the documents answer the question? [y/n] ").lower()[:1]
    if answerable == "n":
        return {"answerable": False, "gold_claim_substr": [], "gold_citations": []}
    parts = ask("which text must a correct answer contain? (parts of 5 characters or more, separated by ;) ")
    chunks = row.get("retrieved") or []
    cited = ask("which chunks support the answer? (numbers or ids, separated by spaces) ").replace(",", " ").split()
    ids = [chunks[int(item) - 1]["id"] if item.isdecimal() and 0 < int(item) <= len(chunks) else item for item in cited]
    substrings = [part.strip() for part in parts.split(";") if part.strip()]
    return {"answerable": True, "gold_claim_substr": substrings, "gold_citations": ids}


def _refuse_changes(gold: str, data: bytes) -> None:
    """Refuse gold with other changes: they would be signed along with the accepted items."""
    try:
        git = Git()
    except GitError:  # without a repository nothing is signed
        return
    last = git.last()
    committed = read(git.at(last), git.inside(gold)) if last else None
    fix = "Commit or undo them first."
    refuse((data and committed != data, f"{gold} has uncommitted changes, which gold review would sign too. {fix}"))


def _sign(args: Namespace, gold: str, data: bytes, accepted: list[str]) -> int:
    reason = f"reviewed drafts: {', '.join(accepted[:20])}{' and more' if len(accepted) > 20 else ''}"
    named = {"gold": args.gold, "gates": args.gates, "signer": args.signer, "key": args.key}
    try:
        git = Git()
        git.stage(git.inside(gold), data)
        return run_signoff(Namespace(**named, reason=reason, base="", baseline=False, mutates=False))
    except RagEvalError as error:
        sign = shell_line("rag-eval", "gold", "signoff", *option_words(args, "gold", "gates"))
        why = error.first.rstrip(".")
        print_notes(f"{gold} has the new items, but they are not signed: {why}. Sign them: {sign} --reason TEXT")
        return PASSED
