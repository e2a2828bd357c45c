"""Draft gold items from traces, of production too. Drafts judge nothing until a person accepts them: gold review."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import Any

from rag_eval.cli.commands._drafts import add_files, read_drafts, write_drafts
from rag_eval.cli.commands._shared import gates_path, names
from rag_eval.common.escaping import log_line
from rag_eval.errors import PASSED, UsageError

EXAMPLE = "example: rag-eval gold draft --from runs/trace.jsonl --select refused,ungrounded --sample 20"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--from", metavar="FILE", dest="source", action="append", required=True, help="traces")
    parser.add_argument(
        "--select", metavar="K[,K]", type=names, default=("failed", "refused", "ungrounded"),
        help="failed, refused, ungrounded (these three) or answered",
    )  # fmt: skip
    parser.add_argument("--sample", metavar="N", type=int, default=0, help="at most N, the strata by turns (all)")
    parser.add_argument("--by", metavar="FIELD", default="", help="strata: a field of the traces such as usage.model")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the sample (0)")
    add_files(parser)


def run(args: Namespace) -> int:
    """Add drafts of questions that neither gold nor drafts have."""
    from rag_eval.cases.pairing import plain_question
    from rag_eval.gold.drafts import KINDS, draft, kind_of, known_questions, sampled
    from rag_eval.readers.gold_file import read_gold
    from rag_eval.readers.trace_file import read_trace_rows
    from rag_eval.run.inputs import open_policy
    from rag_eval.run.options import Options

    unknown = [kind for kind in args.select if kind not in KINDS]
    if unknown or args.sample < 0:
        raise UsageError(f"--select takes {', '.join(KINDS)}" if unknown else "--sample takes a number from 1")
    reader, policy, _ = open_policy(Options(args.gold, gates=gates_path(args.gates)))
    golds = read_gold(reader, policy.gold) if reader.has(policy.gold) else {}
    known = read_drafts(args.drafts)
    seen, found, skipped = known_questions(golds.values(), known), dict[str, list[dict[str, Any]]](), Counter[str]()
    for path in args.source:
        for trace, row in read_trace_rows(reader, path):
            question = plain_question(trace.q or trace.question)
            kind = kind_of(trace, policy.settings)
            if kind not in args.select:
                skipped["of other kinds"] += 1
            elif not question:
                skipped["without a question"] += 1
            elif question in seen:
                skipped["asked in gold or drafts already"] += 1
            else:
                seen.add(question)
                found.setdefault(str(_field(row, args.by)) if args.by else kind, []).append(draft(trace, kind))
    reader.ledger.stop_on_problems()
    drafts = sampled(found, args.sample, args.seed)
    write_drafts(args.drafts, [*known, *drafts])
    counts = ", ".join(f"{n} {kind}" for kind, n in Counter(row["draft"] for row in drafts).items()) or "none"
    left = "".join(f"; {n} {why}" for why, n in skipped.items())
    print(log_line(f"{len(drafts)} drafts: {counts}{left}. Wrote {args.drafts}. Fill them in: rag-eval gold review"))
    return PASSED


def _field(row: Any, path: str) -> Any:
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return row
