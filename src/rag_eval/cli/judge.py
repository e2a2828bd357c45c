"""The commands ``rag-eval judge``, which records verdicts, and ``judge repeat``, which measures their noise."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rag_eval.cases import Case
from rag_eval.cli._shared import file_bytes, input_options, print_notes, print_result, refuse_existing
from rag_eval.cli.collect import add_pace, note_interruption, pace, progress
from rag_eval.cli.parser import Parser, whole
from rag_eval.collecting import Journal, collect
from rag_eval.common.escaping import quantity, quoted
from rag_eval.common.files import write_rows
from rag_eval.contract import Judge, Limits
from rag_eval.errors import GATE_FAILED, PASSED, UsageError
from rag_eval.gates import Policy
from rag_eval.llm_judge import AnswerToJudge, Endpoint, Prompt, answers_by_hash, merge_replies, reliability
from rag_eval.readers.gates_file import read_verdicts
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.jsonl import paired_traces
from rag_eval.readers.source import checked_reader
from rag_eval.run.inputs import read_gates_policy
from rag_eval.stats.sampling import hash_order

Row = dict[str, Any]

USUAL_VERDICTS = "eval/verdicts.jsonl"


def _add_asking(parser: Parser) -> None:
    parser.add_inputs(with_cutoffs=False)
    openai = "https://api.openai.com/v1"
    parser.add_option("--base-url", "URL", "OpenAI-compatible endpoint (default: OpenAI's)", default=openai)
    parser.add_option("--model", "NAME", "a pinned version of a model (default: from the gates file)")
    parser.add_option("--prompt", "FILE", "prompt with {rubric} and {input} (default: the packaged one)")
    parser.add_option("--rubric", "FILE", "rubric (default: the packaged one)")
    add_pace(parser)


def _setup(args: argparse.Namespace) -> tuple[Policy, Prompt, Judge, list[AnswerToJudge]]:
    """Return the policy, prompt and judge, and the last answer to each question in the order of the gold set."""
    given = input_options(args)
    with checked_reader() as reader:
        policy = read_gates_policy(reader, given.gates)
        reader = replace(reader, limits=Limits(**policy.limits), contents=given.contents)
        golds = read_gold(reader, given.gold or policy.gold)
        traces = paired_traces(reader, golds, given.trace or policy.trace)
        last = {(trace.run, trace.qid): trace for trace in traces if trace.qid in golds}
    order = {qid: index for index, qid in enumerate(golds)}
    answers = []
    for run, qid in sorted(last, key=lambda key: (key[0], order[key[1]])):
        case = Case(golds[qid], last[run, qid], policy.settings)
        if case.judged_input:
            answers.append(AnswerToJudge(qid, run, case.judged_input, case.is_answerable))
    if not answers:
        none = f"{given.trace or policy.trace} has no answer to judge"
        what = f"no trace is of a question of {given.gold or policy.gold}. Check the qids, or run: rag-eval collect"
        if last:
            what = f"{quantity(len(last), 'answer')}, only refusals, errors or safety cases. See why: rag-eval score"
        raise UsageError(f"{none}: {what}")
    model = args.model or policy.judge.model
    if not model:
        raise UsageError("no model is named. Add --model NAME, or write judge: {model: NAME, …} into the gates file")
    prompt = prompt_of(args.prompt, args.rubric)
    return policy, prompt, prompt.judge(model), answers


def prompt_of(prompt: str, rubric: str) -> Prompt:
    """Return the packaged prompt and rubric, or the files named in place of them."""
    try:
        return Prompt.of(*(file_bytes(path).decode("utf-8") if path else None for path in (prompt, rubric)))
    except UnicodeDecodeError:
        raise UsageError("the prompt or the rubric is not UTF-8. Save it as UTF-8.") from None


def recorded(path: str | Path) -> list[Row]:
    """Return the rows of a verdict file, none if it does not exist; InputError if one contradicts itself."""
    if not os.path.lexists(path):
        return []
    with checked_reader() as reader:
        rows = {row["hash"]: row for row, _ in read_verdicts(reader, str(path))}
    return list(rows.values())


def _ask(
    args: argparse.Namespace,
    judge: Judge,
    todo: Sequence[tuple[str, str]],
    policy: Policy,
    answers: dict[tuple[str, str], Row],
    runs: Sequence[str] = ("",),
) -> None:
    """Ask for verdicts by name and text, once in each run; ``answers`` has the replies, even after an interruption."""
    if not todo:
        return
    endpoint = Endpoint(args.base_url, judge.model, policy.prices)
    endpoint.check()
    with closing(endpoint), Journal(Path(args.out), {"judge": judge, "url": args.base_url}) as journal:
        try:
            for run in runs:
                collect(endpoint, todo, run, pace(args), journal, progress(run and f"time {run}", len(todo)))
        except KeyboardInterrupt:
            note_interruption(len(journal.rows), f"{args.out}.partial")
            raise
        finally:
            answers.update(journal.rows)


def _tokens(rows: Sequence[Row]) -> int:
    return sum(row.get("usage", {}).get(name, 0) for row in rows for name in ("input_tokens", "output_tokens"))


def add_arguments(parser: Parser) -> None:
    _add_asking(parser)
    parser.add_option("--out", "FILE", f"verdicts (default: from the gates file, or {USUAL_VERDICTS})")
    parser.add_flag("--prune", "remove verdicts on answers that changed")


def run(args: argparse.Namespace) -> int:
    """Ask a language model to judge the answers, and record its verdicts; scoring replays them and calls nothing.

    Only answers without a verdict are asked about. OPENAI_API_KEY is sent as the key, if it is set.

    Examples:
      rag-eval judge --model gpt-4o-2024-08-06
      rag-eval judge --base-url http://localhost:11434/v1 --model qwen2.5:14b --concurrency 1
      rag-eval judge --model gpt-4o-2024-08-06 --prompt eval/judge-prompt.txt
      rag-eval judge calibrate --labels eval/humans.csv
    """
    policy, prompt, judge, questions = _setup(args)
    args.out = args.out or policy.verdicts or USUAL_VERDICTS
    rows = recorded(args.out)
    asked = answers_by_hash(questions, judge)
    texts = {name: prompt.text(question.shown) for name, question in asked.items()}
    if args.prune:
        rows = [row for row in rows if row["hash"] in texts]
    known = {row["hash"] for row in rows if "error" not in row}
    todo = [(name, text) for name, text in texts.items() if name not in known]
    print_notes(f"{quantity(len(texts), 'answer')} to judge, {len(todo)} without a verdict of {judge.model}")
    answers: dict[tuple[str, str], Row] = {}
    try:
        _ask(args, judge, todo, policy, answers)
    finally:  # on Ctrl-C too: the verdicts so far are a valid file
        rows = list(merge_replies(rows, asked, judge, {name: row for (_, name), row in answers.items()}))
        if rows or os.path.lexists(args.out):
            write_rows(args.out, rows)
    Path(f"{args.out}.partial").unlink(missing_ok=True)  # stays after Ctrl-C, for replies still to come
    return _finished(args, [row for row in rows if row["hash"] in texts], len(texts), policy, judge)


def _finished(args: argparse.Namespace, rows: Sequence[Row], wanted: int, policy: Policy, judge: Judge) -> int:
    usage, failed = [row.get("usage", {}) for row in rows], [row for row in rows if "error" in row]
    cost, judged = sum(item.get("cost_usd", 0) for item in usage), len(rows) - len(failed)
    print_notes(f"{args.out}: {judged} of {wanted} verdicts, {_tokens(rows)} tokens, {cost:.4f} USD")
    if others := sorted({item["model"] for item in usage if item.get("model", judge.model) != judge.model}):
        fix = f"Name that version: --model {others[0]}"
        print_notes(f"{judge.model} was asked, but {', '.join(others)} replied. {fix}")
    if policy.judge != judge:
        block = [f"  {name}: {json.dumps(value)}" for name, value in judge._asdict().items()]
        what = "to score with these verdicts, write into eval-gates.yml:"
        print_notes(what, f"verdicts: {args.out}", "judge:", *block)
    if failed:
        error = f"{failed[0]['qid']}: {failed[0]['error'].rstrip('.')}"
        print_notes(f"{len(failed)} failed. The first is {error}. Run the same command again.")
    return PASSED if judged == wanted else GATE_FAILED


def add_repeat_arguments(parser: Parser) -> None:
    parser.add_option("--n", "N", "number of times to grade each answer (default: 3)", default=3, type=whole(1, 100))
    sample = "number of answers to ask about (default: all)"
    parser.add_option("--sample", "N", sample, default=0, type=whole(1, 10_000))
    parser.add_option("--seed", "TEXT", "seed of the sample (default: 0)", default="0")
    parser.add_option("--verdicts", "FILE", f"recorded verdicts (default: from the gates file, or {USUAL_VERDICTS})")
    parser.add_option("--out", "FILE", "replies (default: %(default)s)", default="runs/judge-repeats.jsonl")
    parser.add_flag("--force", "overwrite finished replies")
    parser.add_format(["text", "json"])
    _add_asking(parser)


def run_repeat(args: argparse.Namespace) -> int:
    """Ask the judge again about the same answers, and measure how much its grades differ. Changes no recorded verdict.

    Examples:
      rag-eval judge repeat --model gpt-4o-2024-08-06 --n 3 --sample 50
    """
    policy, prompt, judge, questions = _setup(args)
    refuse_existing(args.out, force=args.force)
    by_hash = answers_by_hash(questions, judge)
    drawn = set(hash_order(by_hash, seed=f"{args.seed} ")[: args.sample or None])
    chosen = {name: question for name, question in by_hash.items() if name in drawn}
    verdicts = recorded(args.verdicts or policy.verdicts or USUAL_VERDICTS)
    known = {row["hash"]: row for row in verdicts if "error" not in row}
    has_recorded = chosen.keys() <= known.keys()  # then they count as one more repeat
    if args.n == 1 and not has_recorded:
        raise UsageError("with one reply and too few recorded verdicts, there is nothing to compare. Write: --n 3")
    times = quantity(args.n, "time")
    print_notes(f"{len(chosen)} of {quantity(len(by_hash), 'answer')}, each judged {times}")
    answers: dict[tuple[str, str], Row] = {}
    todo = [(name, prompt.text(question.shown)) for name, question in chosen.items()]
    _ask(args, judge, todo, policy, answers, [str(number) for number in range(1, args.n + 1)])
    rows = [
        question.row(answers[str(number), name], {"hash": name, "repeat": number})
        for name, question in sorted(chosen.items())
        for number in range(1, args.n + 1)
    ]
    write_rows(args.out, rows)
    Path(f"{args.out}.partial").unlink(missing_ok=True)
    repeated = []
    for name, replies in groupby(rows, itemgetter("hash")):
        recorded_verdict = [known[name]] if has_recorded else []
        verdicts = [*recorded_verdict, *(row for row in replies if "error" not in row)]
        if len(verdicts) == args.n + has_recorded:
            repeated.append(reliability.Repeated(chosen[name], verdicts))
    names = reliability.metrics_to_measure([gate.name for gate in policy.gates])
    measured = (reliability.measure_noise(name, repeated, len(by_hash)) for name in names)
    noises = {item.metric: item for item in measured if item}
    margins = [
        reliability.measure_margin(f"{gate.label} {gate.direction}", float(gate.threshold), noises[gate.name])
        for gate in policy.gates
        if gate.name in noises and gate.direction in ("min", "max") and not gate.slice
    ]
    value = {"judge": judge._asdict(), "metrics": tuple(noises.values()), "gates": tuple(margins)}
    print_result(value, reliability.noise_lines(list(noises.values()), margins), args.format)
    failed = [row for row in rows if "error" in row]
    print_notes(f"{args.out}: {len(rows)} replies, {len(failed)} without a verdict, {_tokens(rows)} tokens")
    if failed:
        print_notes(f"left out: {quoted(failed[0]['qid'], 60)}: {failed[0]['error']}")
    return GATE_FAILED if failed else PASSED
