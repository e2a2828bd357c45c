"""Ask the judge again about the same answers, and measure how much its grades differ. Changes no recorded verdict."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.cli.commands._shared import add_option, refuse_existing, remark, whole, write_rows
from rag_eval.cli.commands.judge import USUAL_VERDICTS, add_asking, ask, judge_of, judged, recorded
from rag_eval.cli.commands.judge_calibrate import shown
from rag_eval.common.escaping import log_line, quantity, quoted
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.contract import Judge
    from rag_eval.gates.policy import Policy
    from rag_eval.llm_judge.asking import AnswerToJudge
    from rag_eval.llm_judge.noise import Margin, Noise, Repeated

    Row = dict[str, Any]

EXAMPLES = """\
  rag-eval judge repeat --model gpt-4o-2024-08-06 --n 3 --sample 50
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_option(parser, "--n", "N", "how often to ask about each answer (default: 3)", default=3, type=whole(1, 100))
    add_option(
        parser, "--sample", "N", "number of answers to ask about (default: all)", default=0, type=whole(1, 10_000)
    )
    add_option(parser, "--seed", "TEXT", "seed of the sample (default: 0)", default="0")
    add_option(parser, "--verdicts", "FILE", f"recorded verdicts (default: from the gates file, or {USUAL_VERDICTS})")
    add_option(parser, "--out", "FILE", "replies (default: %(default)s)", default="runs/judge-repeats.jsonl")
    parser.add_argument("--force", action="store_true", help="overwrite finished replies")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="text (default) or json")
    add_asking(parser)


def run(args: argparse.Namespace) -> int:
    """Ask, and print the noise; 1 if replies are missing."""
    from rag_eval.contract.verdict import verdict_hash
    from rag_eval.llm_judge.noise import as_rows, metrics, noise

    policy, questions = judged(args)
    prompt, judge = judge_of(args, policy)
    out = Path(args.out)
    refuse_existing(out, force=args.force)
    by_hash = {verdict_hash(judge, question.shown): question for question in questions}
    chosen = _drawn(list(by_hash), args.sample, args.seed)
    verdicts = Path(args.verdicts or policy.verdicts or USUAL_VERDICTS)
    known = {row["hash"]: row for row in recorded(verdicts) if "error" not in row} if os.path.lexists(verdicts) else {}
    if args.n == 1 and not any(name in known for name in chosen):
        raise UsageError("with one reply and no recorded verdict, there is nothing to compare. Write: --n 3")
    print(
        f"{len(chosen)} of {quantity(len(by_hash), 'answer')}, each judged {quantity(args.n, 'time')}", file=sys.stderr
    )
    answers: dict[tuple[str, str], Row] = {}
    todo = [(name, prompt.text(by_hash[name].shown)) for name in chosen]
    try:
        ask(args, judge, todo, policy, answers, out, [str(number) for number in range(1, args.n + 1)])
    except KeyboardInterrupt:
        done = f"{out}.partial has {len(answers)} of the replies"
        print(f"\ninterrupted: {done}. To continue, run the same command again.", file=sys.stderr)
        raise
    answers = {key: row for key, row in answers.items() if int(key[0]) <= args.n}
    about = {
        name: {"qid": by_hash[name].qid, **({"run": by_hash[name].run} if by_hash[name].run else {})} for name in chosen
    }
    rows = as_rows(answers, about)
    write_rows(out, rows)
    out.with_name(f"{out.name}.partial").unlink(missing_ok=True)
    repeated = list(_repeated(chosen, by_hash, known, rows, args.n))
    measured = [noise(name, repeated, len(by_hash)) for name in metrics([gate.name for gate in policy.gates])]
    noises = [item for item in measured if item]
    margins = _margins(policy, noises)
    _print(args, judge, noises, margins)
    failed = [row for row in rows if "error" in row]
    tokens = sum(row.get("usage", {}).get(name, 0) for row in rows for name in ("input_tokens", "output_tokens"))
    print(f"{out}: {len(rows)} replies, {len(failed)} without a verdict, {tokens} tokens", file=sys.stderr)
    if failed:
        remark([f"left out: {quoted(failed[0]['qid'], 60)}: {failed[0]['error']}"])
    return 1 if failed else 0


def _drawn(names: Sequence[str], size: int, seed: str) -> list[str]:
    """Return the hashes to ask about, in the order of the gold."""
    from hashlib import sha256

    order = sorted(names, key=lambda name: sha256(f"{seed} {name}".encode()).hexdigest())
    drawn = set(order[: size or len(order)])
    return [name for name in names if name in drawn]


def _repeated(
    chosen: Sequence[str], by_hash: dict[str, AnswerToJudge], recorded: dict[str, Row], rows: Sequence[Row], times: int
) -> Iterator[Repeated]:
    """Yield the answers with a verdict from each repeat."""
    from rag_eval.llm_judge.noise import Repeated

    # If all answers have a recorded verdict, it counts as one more repeat.
    first = {name: [recorded[name]] for name in chosen} if all(name in recorded for name in chosen) else {}
    again: dict[str, list[Row]] = {name: [] for name in chosen}
    for row in rows:
        if "error" not in row:
            again[row["hash"]].append(row)
    for name in chosen:
        if len(again[name]) == times:
            item = by_hash[name]
            yield Repeated(item.qid, item.run, item.answerable, [*first.get(name, []), *again[name]])


def _margins(policy: Policy, noises: Sequence[Noise]) -> list[Margin]:
    from rag_eval.llm_judge.noise import margin

    by_name = {noise.metric: noise for noise in noises}
    return [
        margin(f"{gate.label} {gate.direction}", float(gate.threshold), by_name[gate.name])
        for gate in policy.gates
        if gate.name in by_name and gate.direction in ("min", "max") and not gate.slice
    ]


def _print(args: argparse.Namespace, judge: Judge, noises: Sequence[Noise], margins: Sequence[Margin]) -> None:
    if args.format == "json":
        from rag_eval.common.escaping import json_text

        value = {"judge": judge._asdict(), "metrics": tuple(noises), "gates": tuple(margins)}
        sys.stdout.write(json_text(value))
        return
    for line in _page(noises, margins):
        print(log_line(line))


def _page(noises: Sequence[Noise], margins: Sequence[Margin]) -> Iterator[str]:
    from rag_eval.rendering.terminal import grid

    if not noises:
        yield "no answer has a verdict in every repeat, so there is nothing to measure"
        return
    rows = [
        [
            item.metric,
            str(item.n),
            shown(item.same),
            f"{item.deviation:.3f}",
            shown(item.kappa),
            f"±{1.96 * item.of_mean:.3f}",
        ]
        for item in noises
    ]
    headers = ["metric", "answers", "same grade every time", "sd", "kappa between repeats", "noise of the value"]
    yield from grid(headers, rows).split("\n")
    for noise in noises:
        values = ", ".join(f"{mean:.3f}" for mean in noise.means)
        yield f"{noise.metric}: {values} (repeats: {len(noise.means)}, answers: {noise.n} of {noise.total})"
    for gate in margins:
        away = f"{gate.value:.3f} is {abs(gate.value - gate.threshold):.3f} away"
        share = f"; the noise of the judge is {gate.share:.0%} of that" if gate.share is not None else ""
        if gate.share is None or gate.share >= 1:
            share = ", which is within the noise of the judge: this gate may change if the judge is asked again"
        yield f"{gate.gate} {gate.threshold:g}: the value {away}{share}"
