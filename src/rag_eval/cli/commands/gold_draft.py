"""Draft gold items from traces, such as those of production. A person accepts them with gold review."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from rag_eval.cases.case import Case
from rag_eval.cases.pairing import plain_question
from rag_eval.cli.commands._shared import add_gold, add_option, file_bytes, gates_path, names, whole, write_rows
from rag_eval.common.escaping import log_line, quantity, quoted
from rag_eval.contract import Gold, Settings, Trace
from rag_eval.errors import PASSED, InputError, Problem, UsageError
from rag_eval.metrics import measure
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.trace_file import read_trace_rows
from rag_eval.run.inputs import open_policy
from rag_eval.run.options import Options

EXAMPLES = """\
  rag-eval gold draft --from runs/trace.jsonl --select refused,ungrounded --sample 20
"""


DRAFTS = "eval/drafts.jsonl"
Row = dict[str, Any]
KINDS = {
    "failed": "the system failed, or ran out of time",
    "refused": "the system refused",
    "ungrounded": "the retrieved texts support less than half of the answer",
    "answered": "an answer without any of these",
}
TO_FILL_IN = ("answerable", "gold_claim_substr", "gold_citations")
_SUPPORTED, _CHUNKS = 0.5, 10


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--from", metavar="FILE", dest="source", action="append", required=True, help="production traces"
    )
    kinds = "failed, refused, ungrounded, answered (default: the first three)"
    add_option(parser, "--select", "K[,K]", kinds, default=("failed", "refused", "ungrounded"), type=names)
    add_option(
        parser,
        "--sample",
        "N",
        "at most N drafts, drawn from the strata in turn (default: all)",
        default=0,
        type=whole(0),
    )
    add_option(
        parser, "--by", "FIELD", "field of the traces that makes the strata, such as usage.model (default: the kinds)"
    )
    add_option(parser, "--seed", "N", "seed of the sample (default: 0)", default=0, type=int)
    add_files(parser)


def run(args: Namespace) -> int:
    """Add drafts of questions that are neither in the gold set nor in the drafts."""
    unknown = [kind for kind in args.select if kind not in KINDS]
    if unknown:
        raise UsageError(f"--select {quoted(unknown[0], 40)} is not a kind of draft. Choose from: {', '.join(KINDS)}")
    reader, policy, _ = open_policy(Options(args.gold, gates=gates_path(args.gates)))
    golds = read_gold(reader, policy.gold) if reader.has(policy.gold) else {}
    known = read_drafts(args.drafts)
    texts = [*(gold.question for gold in golds.values()), *(str(row.get("question", "")) for row in known)]
    seen, strata, skipped = set(map(plain_question, texts)), dict[str, list[dict[str, Any]]](), Counter[str]()
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
                strata.setdefault(str(_field(row, args.by)) if args.by else kind, []).append(draft(trace, kind))
    reader.ledger.stop_on_problems()
    drafts = sampled(strata, args.sample, args.seed)
    write_rows(Path(args.drafts), [*known, *drafts])
    counts = ", ".join(f"{n} {kind}" for kind, n in Counter(row["draft"] for row in drafts).items())
    kinds = f" ({counts})" if counts else ""
    omitted = f"; skipped {', '.join(f'{n} {why}' for why, n in skipped.items())}" if skipped else ""
    print(
        log_line(
            f"wrote {args.drafts}: {quantity(len(drafts), 'new draft')}{kinds}{omitted}. Next: rag-eval gold review"
        )
    )
    return PASSED


def _field(row: Any, path: str) -> Any:
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return row


def add_files(parser: ArgumentParser) -> None:
    """Add ``--gold``, ``--gates`` and ``--drafts``."""
    add_gold(parser)
    add_option(parser, "--drafts", "FILE", f"file of drafts (default: {DRAFTS})", default=DRAFTS)


def read_drafts(path: str) -> list[Row]:
    """Return the drafts of a file, none if it does not exist; raise InputError with each invalid line."""
    rows, problems = [], []
    for number, line in enumerate(file_bytes(path).split(b"\n") if os.path.lexists(path) else (), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict) and all(isinstance(row.get(name), str) for name in ("draft", "qid", "question")):
            rows.append(row)
        else:
            problems.append(
                Problem(path, number, "", "is not a draft", "Write drafts with: rag-eval gold draft --from FILE")
            )
    if problems:
        raise InputError(problems)
    return rows


def kind_of(trace: Trace, settings: Settings) -> str:
    """Return the kind of a trace (one of KINDS), without knowing the right answer."""
    if trace.error is not None or trace.ok is False or trace.timed_out:
        return "failed"
    gold = Gold("-", trace.q or trace.question, True, (), ())
    case = Case(gold, trace, settings._replace(builtin=True))
    if case.refused:
        return "refused"
    support: Any = measure("claim_support").score(case)
    return "ungrounded" if support is not None and support[0] < _SUPPORTED * support[1] else "answered"


def draft(trace: Trace, kind: str) -> Row:
    """Return the draft of a trace's question; a person fills in null fields."""
    question = trace.q or trace.question
    name = sha256(plain_question(question).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    turn = {"conversation": trace.conversation, "turn": trace.turn} if trace.conversation else {}
    return {
        "draft": kind,
        "qid": f"D-{name}",
        "question": question,
        **dict.fromkeys(TO_FILL_IN),
        **{field: value for field, value in turn.items() if value is not None},
        "answer": trace.claim,
        "cited": list(trace.citations or ()),
        "retrieved": [
            {"id": chunk.id, **({"text": chunk.text} if chunk.text is not None else {})}
            for chunk in (trace.chunks or ())[:_CHUNKS]
        ]
        or [{"id": name} for name in trace.retrieved[:_CHUNKS]],
    }


def sampled(strata: Mapping[str, Sequence[Row]], size: int, seed: int) -> list[Row]:
    """Draw up to ``size`` drafts, from each stratum in turn; the order of the traces does not matter."""
    queues = [
        sorted(rows, key=lambda row: sha256(f"{seed}:{row['qid']}".encode("utf-8", "surrogatepass")).digest())
        for _, rows in sorted(strata.items())
    ]
    turns = range(max(map(len, queues), default=0))
    return [queue[turn] for turn in turns for queue in queues if turn < len(queue)][: size or None]
