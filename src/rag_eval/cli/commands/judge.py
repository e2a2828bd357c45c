"""Ask a language model to judge the answers, and record its verdicts; scoring replays them and calls nothing.

Only answers without a verdict are asked about. OPENAI_API_KEY is sent as the key, if it is set.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.cli.commands._shared import add_inputs, add_option, file_bytes, gates_path, remark, write_rows
from rag_eval.cli.commands.collect import add_pace, pace, progress
from rag_eval.common.escaping import quantity
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.contract import Judge
    from rag_eval.gates.policy import Policy
    from rag_eval.llm_judge.asking import AnswerToJudge, Prompt

    Row = dict[str, Any]

EXAMPLES = """\
  rag-eval judge --model gpt-4o-2024-08-06
  rag-eval judge --base-url http://localhost:11434/v1 --model qwen2.5:14b --concurrency 1
  rag-eval judge --model gpt-4o-2024-08-06 --prompt eval/judge-prompt.txt
  rag-eval judge calibrate --labels eval/humans.csv
"""
COMMANDS = {
    "calibrate": "measure how far people agree with recorded verdicts",
    "spot-check": "draw answers for people to grade, and record their grades",
    "repeat": "ask again, and measure by how much the judge's own grades differ",
}
USUAL_VERDICTS = "eval/verdicts.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of asking."""
    add_asking(parser)
    add_option(parser, "--out", "FILE", f"verdicts (default: from the gates file, or {USUAL_VERDICTS})")
    parser.add_argument("--prune", action="store_true", help="remove verdicts on answers that changed")


def add_asking(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that ask the judge."""
    add_inputs(parser)
    add_option(
        parser,
        "--base-url",
        "URL",
        "OpenAI-compatible endpoint (default: OpenAI's)",
        default="https://api.openai.com/v1",
    )
    add_option(parser, "--model", "NAME", "a pinned version of a model (default: from the gates file)")
    add_option(parser, "--prompt", "FILE", "prompt with {rubric} and {input} (default: the packaged one)")
    add_option(parser, "--rubric", "FILE", "rubric (default: the packaged one)")
    add_pace(parser)


def run(args: argparse.Namespace) -> int:
    """Ask for the missing verdicts and write the file; return 1 if some are still missing."""
    from rag_eval.contract.verdict import verdict_hash
    from rag_eval.llm_judge.asking import merged

    policy, questions = judged(args)
    prompt, judge = judge_of(args, policy)
    out = Path(args.out or policy.verdicts or USUAL_VERDICTS)
    rows = recorded(out) if os.path.lexists(out) else []
    texts = {verdict_hash(judge, question.shown): prompt.text(question.shown) for question in questions}
    if args.prune:
        rows = [row for row in rows if row["hash"] in texts]
    known = {row["hash"] for row in rows if "error" not in row}
    todo = [(name, text) for name, text in texts.items() if name not in known]
    count = quantity(len(texts), "answer")
    remark([f"{count} to judge, {len(todo)} without a verdict of {judge.model}"])
    answers: dict[tuple[str, str], Row] = {}
    try:
        ask(args, judge, todo, policy, answers, out)
    finally:  # on Ctrl-C too: the verdicts so far are a valid file
        rows = list(merged(rows, questions, judge, {name: row for (_, name), row in answers.items()}))
        if rows or os.path.lexists(out):
            write_rows(out, rows)
    out.with_name(f"{out.name}.partial").unlink(missing_ok=True)  # kept on Ctrl-C, for replies still to come
    return _print_summary(out, rows, texts.keys(), policy, judge)


def judged(args: argparse.Namespace) -> tuple[Policy, list[AnswerToJudge]]:
    """Return the policy, and the answers to judge in the order of the gold set: the last trace of each question."""
    from rag_eval.cases.case import Case
    from rag_eval.common.digests import Digests
    from rag_eval.contract import Limits
    from rag_eval.llm_judge.asking import AnswerToJudge
    from rag_eval.readers.gold_file import read_gold
    from rag_eval.readers.problems import ProblemCollector
    from rag_eval.readers.source import Reader
    from rag_eval.run.inputs import paired_traces, read_gates_policy
    from rag_eval.run.options import Options

    options, reader = Options(args.gold, args.trace, gates_path(args.gates)), Reader(ProblemCollector())
    policy = read_gates_policy(reader, options, Digests())
    reader = reader._replace(limits=Limits(**policy.limits))
    golds = read_gold(reader, args.gold or policy.gold)
    last = {
        (t.qid, t.run): t for t in paired_traces(reader, golds, args.trace or policy.trace, Digests()) if t.qid in golds
    }
    reader.ledger.stop_on_problems()
    order = {qid: index for index, qid in enumerate(golds)}
    cases = [
        (qid, run, Case(golds[qid], last[qid, run], policy.settings))
        for qid, run in sorted(last, key=lambda item: (item[1], order[item[0]]))
    ]
    return policy, [
        AnswerToJudge(qid, run, shown, case.is_answerable) for qid, run, case in cases if (shown := case.judged_input)
    ]


def judge_of(args: argparse.Namespace, policy: Policy) -> tuple[Prompt, Judge]:
    """Return the prompt and the judge that the options and the gates file name."""
    model = args.model or policy.judge.model
    if not model:
        raise UsageError("no model is named. Add --model NAME, or write judge: {model: NAME, …} into the gates file")
    prompt = prompt_of(args.prompt, args.rubric)
    return prompt, prompt.judge(model)


def prompt_of(prompt: str, rubric: str) -> Prompt:
    """Return the packaged prompt and rubric, or the files named in place of them."""
    from rag_eval.llm_judge.asking import Prompt

    try:
        return Prompt.of(*(file_bytes(path).decode("utf-8") if path else None for path in (prompt, rubric)))
    except UnicodeDecodeError:
        raise UsageError("the prompt or the rubric is not UTF-8. Save it as UTF-8.") from None


def recorded(path: Path) -> list[Row]:
    """Return the rows of a verdict file; InputError if one contradicts itself."""
    from rag_eval.readers.problems import ProblemCollector
    from rag_eval.readers.source import Reader
    from rag_eval.readers.verdict_file import read_verdicts

    reader = Reader(ProblemCollector())
    rows = {row["hash"]: row for row, _ in read_verdicts(reader, str(path))}
    reader.ledger.stop_on_problems()
    return list(rows.values())


def ask(
    args: argparse.Namespace,
    judge: Judge,
    todo: Sequence[tuple[str, str]],
    policy: Policy,
    answers: dict[tuple[str, str], Row],
    out: Path,
    runs: Sequence[str] = ("",),
) -> None:
    """Ask for verdicts by name and text, once in each run; ``answers`` has the replies, even after an interruption."""
    from rag_eval.collecting.collector import Journal, collect
    from rag_eval.llm_judge.asking import Endpoint

    if not todo:
        return
    endpoint = Endpoint(args.base_url, judge.model, policy.prices)
    endpoint.check()
    journal = Journal(out, {"judge": judge, "url": args.base_url})
    try:
        for run in runs:
            collect(endpoint, todo, run, pace(args), journal, progress(run and f"time {run}", len(todo)))
    finally:
        endpoint.close()
        answers.update(journal.rows)


def _print_summary(out: Path, rows: Sequence[Row], wanted: Any, policy: Policy, judge: Judge) -> int:
    """Print the recorded verdicts; return 1 if some are missing."""
    current = [row for row in rows if row["hash"] in wanted]
    failed = [row for row in current if "error" in row]
    usage = [row.get("usage", {}) for row in current]
    tokens = sum(item.get("input_tokens", 0) + item.get("output_tokens", 0) for item in usage)
    cost = sum(item.get("cost_usd", 0) for item in usage)
    print(
        f"{out}: {len(current) - len(failed)} of {len(wanted)} verdicts, {tokens} tokens, {cost:.4f} USD",
        file=sys.stderr,
    )
    others = sorted({item["model"] for item in usage if item.get("model", judge.model) != judge.model})
    if others:
        fix = f"Name that version: --model {others[0]}"
        remark([f"{judge.model} was asked, but {', '.join(others)} replied. {fix}"])
    if policy.judge != judge:
        block = "".join(f"\n  {name}: {json.dumps(value)}" for name, value in judge._asdict().items())
        print(
            f"to score with these verdicts, write into eval-gates.yml:\nverdicts: {out}\njudge:{block}", file=sys.stderr
        )
    if failed:
        first = failed[0]
        error = f"{first['qid']}: {first['error'].rstrip('.')}"
        remark([f"{len(failed)} failed. The first is {error}. Run the same command again."])
    return 1 if failed or len(current) < len(wanted) else 0
