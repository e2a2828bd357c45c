"""The command ``rag-eval judge spot-check``: grades of people for recorded answers."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval import __version__
from rag_eval.cli.commands._shared import (
    add_gold,
    add_option,
    checked_reader,
    print_lines,
    print_notes,
    whole,
    write,
    write_data,
)
from rag_eval.cli.commands.judge import prompt_of
from rag_eval.cli.commands.judge_calibrate import add_recorded, recorded_by
from rag_eval.common.escaping import quoted
from rag_eval.contract.verdict import SCORE_OF, SCORES
from rag_eval.errors import PASSED, UsageError
from rag_eval.gates.selection import is_field, slices_of
from rag_eval.git.plumbing import Git, GitError
from rag_eval.llm_judge.labels import read_labels, sample_verdicts
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.import_inputs import Files
from rag_eval.rendering.html.pages import grading_form

if TYPE_CHECKING:
    from rag_eval.gates.policy import Policy
    from rag_eval.llm_judge.labels import SampledVerdict

    Row = dict[str, Any]

USUAL_LABELS = "eval/judge-labels.jsonl"
_BY = ("query_type", "category")


def add_spot_check_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_option(parser, "--n", "N", "how many answers to draw (default: 20)", default=20, type=whole(1, 10_000))
    add_option(parser, "--seed", "TEXT", "seed of the sample (default: 0)", default="0")
    add_option(parser, "--by", "FIELD[,FIELD]", "kinds of question: fields of the gold items")
    add_option(parser, "--score", "S[,S]", "scores to grade (default: the gated ones, or the first two)")
    add_option(parser, "--rater", "NAME", "person who grades (default: git's user.email)")
    add_option(parser, "--out", "FILE", f"record of the grades (default: {USUAL_LABELS})", default=USUAL_LABELS)
    add_option(parser, "--html", "FILE", "write a form to fill in with a browser")
    add_option(parser, "--rubric", "FILE", "rubric to show (default: the packaged one)")
    add_gold(parser)
    add_recorded(parser)


def run_spot_check(args: argparse.Namespace) -> int:
    """Draw recorded verdicts for a person to grade, without showing the judge's grades, and record the grades.

    judge calibrate reads the record. After an interruption, the same command continues.

    Examples:
      rag-eval judge spot-check --n 20 --seed 7 --rater ann@example.org
    """
    policy, path, judge, rows = recorded_by(args)
    judged = [row for row in rows if "error" not in row]
    if not judged:
        raise UsageError(f"{path} has no verdict of {judge.model}. Record verdicts first: rag-eval judge")
    scores, kinds = _scores(args.score, policy), _kinds(args, policy)
    rater = args.rater or _email()
    if not rater and not args.html:
        raise UsageError("no rater is known. Add --rater NAME, or run: git config user.email EMAIL")
    drawn = sample_verdicts(judged, kinds, args.n, args.seed)
    graded_before = _graded_by(args.out, rater)
    todo = [item for item in drawn if item.label(args.seed)["input"] not in graded_before]
    prompt = prompt_of("", args.rubric)
    if prompt.judge(judge.model).rubric != judge.rubric:
        fix = "Name its rubric: --rubric FILE"
        print_notes(f"{judge.model} graded by another rubric than the one to show. {fix}")
    print_notes(f"{len(drawn)} of {len(judged)} answers drawn with seed {args.seed}, {len(todo)} to grade")
    if args.html:
        answers = [(item.label(args.seed), item.row["input"]) for item in todo]
        write(args.html, grading_form(answers, scores, prompt.rubric, rater, __version__))
        then = "Open it in a browser, save the grades, then: rag-eval judge calibrate --labels judge-labels.jsonl"
        print_notes(f"wrote {args.html}. {then}")
        return PASSED
    graded = _ask_all(args, todo, scores, rater, prompt.rubric)
    following = f"rag-eval judge calibrate --labels {shlex.quote(args.out)}"
    print_lines(f"wrote {args.out}: {graded} graded, {len(todo) - graded} still open. Next: {following}")
    return PASSED


def _scores(stated: str, policy: Policy) -> list[str]:
    """Return the scores to grade: those named, those with gates, or groundedness and correctness."""
    named = [part.strip() for part in stated.split(",") if part.strip()]
    if unknown := [item for item in named if item not in SCORES]:
        fix = f"Choose from: {', '.join(SCORES)}"
        raise UsageError(f"--score {quoted(unknown[0], 40)} is not a score of a judge. {fix}")
    gated = {SCORE_OF.get(gate.name.partition(".")[0]) for gate in policy.gates}
    return named or [score for score in SCORES if score in gated] or list(SCORES[:2])


def _kinds(args: argparse.Namespace, policy: Policy) -> dict[str, str]:
    """Return the kind of each question by qid; none if the gold set cannot be found."""
    stated = [name.strip() for name in args.by.split(",") if name.strip()]
    if unknown := [name for name in stated if not is_field(name)]:
        raise UsageError(f"--by {quoted(unknown[0], 40)} is not a field of gold items. Write: --by category")
    gold = args.gold or policy.gold
    if not (args.gold or stated or os.path.lexists(gold)):
        return {}
    with checked_reader() as reader:
        golds = read_gold(reader, gold)
    return {qid: ", ".join(slices_of(item, stated or policy.slices.by or _BY)) for qid, item in golds.items()}


def _email() -> str:
    try:
        return str(Git().email() or "")
    except GitError:
        return ""


def _graded_by(path: str, rater: str) -> set[str]:
    """Return the hashes of the answers that this person has graded."""
    if not os.path.lexists(path) or os.path.getsize(path) == 0:  # noqa: PTH202
        return set()
    with checked_reader() as reader:
        labels, _ = read_labels(Files(reader, [path]), {}, (0.0, 5.0))
    return {label.input for label in labels if label.rater == rater}


def _ask_all(
    args: argparse.Namespace, todo: Sequence[SampledVerdict], scores: Sequence[str], rater: str, rubric: str
) -> int:
    """Show the answers one by one and record each grade at once; return how many were graded."""
    graded, out = 0, Path(args.out)
    print_lines(*(rubric.splitlines() if todo else ()))
    try:
        for index, item in enumerate(todo, 1):
            _show(item.row["input"], f"{index} of {len(todo)}")
            grades = _grades(scores)
            if grades is None:
                break
            if grades:
                note = {"note": text} if (text := input("note (Enter: none) ").strip()) else {}
                at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                row = {**item.label(args.seed), "rater": rater, "at": at, **grades, **note}
                before = out.read_bytes() if out.exists() else b""
                separator = b"\n" if before and not before.endswith(b"\n") else b""
                write_data(out, [before, separator, json.dumps(row, ensure_ascii=False).encode(), b"\n"])
                graded += 1
    except EOFError:
        print_lines("")
    return graded


def _show(shown: Row, progress: str) -> None:
    lines = ["", f"[{progress}] question: {shown['question']}"]
    lines += [f"earlier, {item['role']}: {item['content']}" for item in shown.get("history", ())]
    lines += ["answer:", *shown["answer"].splitlines(), f"citations: {', '.join(shown['citations']) or 'none'}"]
    lines += [f"expected: {shown['expected_answer']}"] if "expected_answer" in shown else []
    for chunk in shown["chunks"]:
        lines += [f"passage {chunk['id']}:", *(f"  {line}" for line in chunk["text"].splitlines())]
    print_lines(*lines)


def _grades(scores: Sequence[str]) -> Row | None:
    """Ask for each score; an empty mapping skips the answer, None ends."""
    grades: Row = {}
    for score in scores:
        while True:
            reply = input(f"{score}, 0 to 5 (Enter: cannot tell, s: skip this answer, q: quit) ").strip().lower()
            if reply == "q":
                return None
            if reply == "s":
                return {}
            if reply in ("", "0", "1", "2", "3", "4", "5"):
                break
            print_lines(f"{quoted(reply, 20)} is not a score")
        if reply:
            grades[score] = int(reply)
    return grades
