"""The commands ``rag-eval judge calibrate`` and ``judge spot-check``: recorded verdicts and people's labels."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from rag_eval import __version__
from rag_eval.cli._shared import ask, now, option_words, person, print_lines, print_notes, refuse_existing
from rag_eval.cli.judge import USUAL_VERDICTS, prompt_of, recorded
from rag_eval.cli.parser import Parser, names, whole
from rag_eval.common.escaping import json_text, quantity, quoted
from rag_eval.common.files import with_line, write, write_data
from rag_eval.common.paths import nearest_gates, shell_line
from rag_eval.contract import SCORE_OF, SCORES, Judge, digest_of
from rag_eval.errors import PASSED, UsageError
from rag_eval.gates import Calibration, Policy
from rag_eval.gates.selection import is_field, slices_of
from rag_eval.llm_judge import BINARY, Scale, read_labels, sample_verdicts
from rag_eval.llm_judge.reliability import Matched, agreement_lines, calibration_record, match_labels, measure_agreement
from rag_eval.readers.gates_file import policy_of
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.import_inputs import Files
from rag_eval.readers.problems import ProblemCollector, in_flow_style
from rag_eval.readers.source import checked_reader
from rag_eval.rendering.html import grading_form
from rag_eval.run.inputs import read_gates_policy

Row = dict[str, Any]

USUAL_FLOOR = {"kappa": 0.6}
USUAL_LABELS = "eval/judge-labels.jsonl"
_BY = ("query_type", "category")


def _add_recorded(parser: Parser) -> None:
    parser.add_gates()
    verdicts = f"recorded verdicts (default: verdicts in the gates file, or {USUAL_VERDICTS})"
    parser.add_option("--verdicts", "FILE", verdicts)
    parser.add_option("--model", "NAME", "the judge, if the file has several (default: from the gates file)")


def _recorded_by(args: argparse.Namespace) -> tuple[Policy, Path, Judge, list[Row]]:
    with checked_reader() as reader:
        policy = read_gates_policy(reader, args.gates or nearest_gates())
    path = Path(args.verdicts or policy.verdicts or USUAL_VERDICTS)
    rows = recorded(path)
    if not rows and not path.exists():
        raise UsageError(f"{path}: no such file. Record verdicts first: rag-eval judge --model NAME")
    judges = sorted({Judge(**row["judge"]) for row in rows})
    if args.model:
        named = [judge for judge in judges if judge.model == args.model]
    else:
        named = [judge for judge in judges if policy.judge in (Judge(), judge)]
    if len(named) != 1:
        known = ", ".join(f"{quoted(judge.model, 60)} (prompt {judge.prompt[7:15]})" for judge in judges) or "none"
        which = args.model or policy.judge.model
        what = f"{quantity(len(named), 'judge')} {quoted(which, 60)}" if which else quantity(len(judges), "judge")
        hint = "Name one with --model, or under judge in the gates file."
        hint = hint if judges else "Record verdicts first: rag-eval judge"
        raise UsageError(f"{path} has {what}, but one is needed. Judges in the file: {known}. {hint}")
    return policy, path, named[0], [row for row in rows if Judge(**row["judge"]) == named[0]]


def add_calibrate_arguments(parser: Parser) -> None:
    labels = "scores by people: CSV, or records of a spot-check"
    parser.add_option("--labels", "FILE", labels, nargs="+", required=True)
    _add_recorded(parser)
    column = "the column of a score: groundedness=faithful"
    parser.add_option("--column", "SCORE=NAME", column, action="append", default=[], type=_column)
    scale = "scale of the labels (default: 0-5, or 0-1 if all are 0, 1, yes or no)"
    parser.add_option("--scale", "LOW-HIGH", scale, default=None, type=_scale)
    parser.add_option("--cut", "N", "lowest score, of 0 to 5, of a good answer (default: 4)", default=4.0, type=float)
    floor = "floor to record, such as kappa=0.6 (default: from the gates file)"
    parser.add_option("--floor", "NAME=N", floor, action="append", default=[], type=_floor)
    parser.add_flag("--write", "record the result in the gates file")
    parser.add_format(["text", "json"])


def run_calibrate(args: argparse.Namespace) -> int:
    """Measure how far people agree with the recorded verdicts of a judge, and record it for its gates.

    Examples:
      rag-eval judge calibrate --labels eval/humans.csv --write
    """
    policy, path, judge, rows = _recorded_by(args)
    if not 0 < args.cut <= 5:
        raise UsageError(f"--cut {args.cut:g} is not a score above 0 and up to 5. Write: --cut 4")
    with checked_reader() as reader:
        files = Files(reader, list(dict.fromkeys(args.labels)))
        labels, scales = read_labels(files, dict(args.column), args.scale)
    digests = [files.digest(path) for path in files.paths]
    digest = digests[0] if len(digests) == 1 else sha256("\n".join(sorted(digests)).encode()).hexdigest()
    pairs = match_labels(rows, labels)
    _check_matches(pairs, path, judge)
    measured = [
        measure_agreement(score, some, args.cut, binary=scales[score] == BINARY) for score, some in pairs.graded.items()
    ]
    floor = dict(args.floor) or policy.stated.get("judge", {}).get("floor") or USUAL_FLOOR
    floor = {name: float(value) for name, value in floor.items()}
    calibration = calibration_record(measured, digest_of(judge._asdict()), f"sha256:{digest}")
    block = _judge_block(judge, floor, calibration)
    if args.format == "json":
        unused = [{"qid": item.qid, "run": item.run, "file": item.file, "line": item.line} for item in pairs.unjudged]
        value = {
            "verdicts": str(path),
            "judge": judge._asdict(),
            "scales": {score: list(ends) for score, ends in scales.items()},
            "labels_without_verdict": unused,
            "scores": {item.score: item for item in measured},
            "gates_file": {"judge": {**judge._asdict(), "floor": floor, "calibration": calibration}},
        }
        sys.stdout.write(json_text(value))
    else:
        print_lines(f"{path}: {judge.model}; labels of {', '.join(args.labels)}")
        print_lines(*agreement_lines(scales, pairs, measured))
        sys.stdout.write("" if args.write else f"\n{_next_steps(policy, floor, calibration)}{block}")
    if args.write:
        _write(policy, block)
    if not policy.verdicts:
        print_notes(f"the gates file names no verdicts. Add the line: verdicts: {path}")
    return PASSED


def _column(text: str) -> tuple[str, str]:
    score, _, name = map(str.strip, text.partition("="))
    if score not in SCORES or not name:
        known = ", ".join(SCORES)
        fix = f"Write one of {known} and its column: --column groundedness=faithful"
        raise argparse.ArgumentTypeError(f"{quoted(text, 60)} is not a score and its column. {fix}")
    return score, name


def _scale(text: str) -> Scale:
    low, _, high = text.partition("-")
    with suppress(ValueError):
        scale = float(low), float(high)
        if scale[0] < scale[1] < inf:
            return scale
    fix = "Write the lowest and the highest label: --scale 1-4"
    raise argparse.ArgumentTypeError(f"{quoted(text, 40)} is not a scale. {fix}")


def _floor(text: str) -> tuple[str, float]:
    name, _, value = map(str.strip, text.partition("="))
    with suppress(ValueError):
        if name in ("kappa", "auroc") and -1 <= float(value) <= 1:
            return name, float(value)
    fix = "Write: --floor kappa=0.6 or --floor auroc=0.8"
    raise argparse.ArgumentTypeError(f"{quoted(text, 40)} is not a floor. {fix}")


def _check_matches(pairs: Matched, path: Path, judge: Judge) -> None:
    if pairs.ambiguous:
        first = pairs.ambiguous[0]
        raise UsageError(
            f"{first.file}:{first.line}: {quoted(first.qid, 60)} has several verdicts in {path}, and the label does "
            f"not say which answer it grades (labels like this: {len(pairs.ambiguous)}). "
            "Remove old verdicts: rag-eval judge --prune"
        )
    if not pairs.graded:
        read = f"for any of the labels ({len(pairs.unjudged)} read)"
        fix = "Check qid and run of the labels, or record verdicts: rag-eval judge"
        raise UsageError(f"{path} has no verdict of {judge.model} {read}. {fix}")


def _judge_block(judge: Judge, floor: Mapping[str, float], calibration: Mapping[str, Any]) -> str:
    """Return the judge of the gates file as YAML; JSON strings are YAML strings."""
    lines = [f"  {name}: {json.dumps(value)}" for name, value in judge._asdict().items()]
    scores = [f"      {score}: {in_flow_style(part)}" for score, part in calibration["scores"].items()]
    lines = ["judge:", *lines, f"  floor: {in_flow_style(floor)}", "  calibration:"]
    lines += [f"    {name}: {json.dumps(calibration[name])}" for name in ("judge", "labels")]
    return "\n".join([*lines, "    scores:" if scores else "    scores: {}", *scores]) + "\n"


def _next_steps(policy: Policy, floor: Mapping[str, float], calibration: Mapping[str, Any]) -> str:
    scores = {name: part["low"] for name, part in calibration["scores"].items()}
    passed = [score for score in scores if Calibration(dict(floor), "judge", scores).covers(score, "judge")]
    limit = ", ".join(f"{name} {value:g}" for name, value in floor.items())
    what = f"reaches the floor ({limit}): {', '.join(passed)}" if passed else f"no score reaches the floor ({limit})"
    return f"{what}\nrecord this in {policy.file or 'eval-gates.yml'}, or run the same command with --write:\n"


def _write(policy: Policy, block: str) -> None:
    """Replace the judge in the gates file by the block, and change nothing else."""
    if not policy.file:
        raise UsageError("there is no gates file to write to. Name it with --gates, or create one: rag-eval init")
    text = Path(policy.file).read_bytes().decode("utf-8")
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block.replace("\n", newline)
    lines = text.splitlines(keepends=True)
    begin = next((at for at, line in enumerate(lines) if line.startswith("judge:")), len(lines))
    inside = (" ", "\t", "\n", "\r", "#")
    end = next((at for at in range(begin + 1, len(lines)) if lines[at][:1] not in inside), len(lines))
    while end > begin and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    before = "".join(lines[:begin])
    made = before + ("" if not before or before.endswith("\n") else newline) + block + "".join(lines[end:])
    ledger = ProblemCollector()
    after = policy_of(made.encode(), policy.file, ledger)
    others = {name: value for name, value in policy.stated.items() if name != "judge"}
    if after is None or ledger.problems or {k: v for k, v in after.stated.items() if k != "judge"} != others:
        fix = f"Replace it by hand, with:\n{block}"
        raise UsageError(f"{policy.file}: judge cannot be replaced in this file. {fix}")
    write(policy.file, made)
    warns = f"still only warns: {', '.join(after.uncalibrated)}"
    print_notes(f"wrote judge into {policy.file}: {warns if after.uncalibrated else 'its gates may fail a run'}")


def add_spot_check_arguments(parser: Parser) -> None:
    parser.add_option("--n", "N", "number of answers to sample (default: 20)", default=20, type=whole(1, 10_000))
    parser.add_option("--seed", "TEXT", "seed of the sample (default: 0)", default="0")
    parser.add_option("--by", "FIELD[,FIELD]", "kinds of question: fields of the gold items", default=(), type=names)
    graded = "scores to grade (default: the gated ones, or the first two)"
    parser.add_option("--score", "S[,S]", graded, default=(), type=names)
    parser.add_option("--rater", "NAME", "person who grades (default: git's user.email)")
    parser.add_option("--out", "FILE", f"record of the grades (default: {USUAL_LABELS})", default=USUAL_LABELS)
    parser.add_option("--html", "FILE", "write a form to fill in with a browser")
    parser.add_flag("--force", "overwrite an existing form")
    parser.add_option("--rubric", "FILE", "rubric to show (default: the packaged one)")
    parser.add_gold(gates=False)
    _add_recorded(parser)


def run_spot_check(args: argparse.Namespace) -> int:
    """Draw recorded verdicts for a person to grade, without showing the judge's grades, and record the grades.

    judge calibrate reads the record. After an interruption, the same command continues.

    Examples:
      rag-eval judge spot-check --n 20 --seed 7 --rater ann@example.org
    """
    if args.html:
        refuse_existing(args.html, force=args.force, other="file with --html")
    policy, path, judge, rows = _recorded_by(args)
    judged = [row for row in rows if "error" not in row]
    if not judged:
        raise UsageError(f"{path} has no verdict of {judge.model}. Record verdicts first: rag-eval judge")
    scores, kinds = _scores(args.score, policy), _kinds_of_questions(args, policy)
    rater = person(args.rater, "rater", "--rater NAME", is_needed=not args.html)
    drawn = sample_verdicts(judged, kinds, args.n, args.seed)
    graded_before = _graded_by(args.out, rater)
    todo = [(label, row["input"]) for label, row in drawn if label["input"] not in graded_before]
    prompt = prompt_of("", args.rubric)
    if prompt.judge(judge.model).rubric != judge.rubric:
        fix = "Name its rubric: --rubric FILE"
        print_notes(f"{judge.model} graded by another rubric than the one to show. {fix}")
    print_notes(f"{len(drawn)} of {len(judged)} answers drawn with seed {args.seed}, {len(todo)} to grade")
    calibrate = "rag-eval", "judge", "calibrate", "--labels"
    recorded_in = option_words(args, "gates", "verdicts", "model")
    if args.html:
        write(args.html, grading_form(todo, scores, prompt.rubric, rater, __version__))
        then = shell_line(*calibrate, "judge-labels.jsonl", *recorded_in)
        print_notes(f"wrote {args.html}. Open it in a browser, save the grades, then: {then}")
        return PASSED
    graded = _ask_all(args, todo, scores, rater, prompt.rubric)
    following = shell_line(*calibrate, args.out, *recorded_in)
    counts = f"{graded} graded, {len(todo) - graded} still open"
    print_lines(f"wrote {args.out}: {counts}. Next: {following}" if os.path.lexists(args.out) else f"{counts}.")
    return PASSED


def _scores(named: Sequence[str], policy: Policy) -> list[str]:
    """Return the scores to grade: those named, those with gates, or groundedness and correctness."""
    if unknown := [item for item in named if item not in SCORES]:
        fix = f"Choose from: {', '.join(SCORES)}"
        raise UsageError(f"--score {quoted(unknown[0], 40)} is not a score of a judge. {fix}")
    gated = {SCORE_OF.get(gate.name.partition(".")[0]) for gate in policy.gates}
    return list(named) or [score for score in SCORES if score in gated] or list(SCORES[:2])


def _kinds_of_questions(args: argparse.Namespace, policy: Policy) -> dict[str, str]:
    """Return the kind of each question by qid; none if the gold set cannot be found."""
    if unknown := [name for name in args.by if not is_field(name)]:
        raise UsageError(f"--by {quoted(unknown[0], 40)} is not a field of gold items. Write: --by category")
    gold = args.gold or policy.gold
    if not (args.gold or args.by or os.path.lexists(gold)):
        return {}
    with checked_reader() as reader:
        golds = read_gold(reader, gold)
    return {qid: ", ".join(slices_of(item, args.by or policy.slices.by or _BY)) for qid, item in golds.items()}


def _graded_by(path: str, rater: str) -> set[str]:
    if not os.path.lexists(path) or Path(path).stat().st_size == 0:
        return set()
    with checked_reader() as reader:
        labels, _ = read_labels(Files(reader, [path]), {}, (0.0, 5.0))
    return {label.input for label in labels if label.rater == rater}


def _ask_all(
    args: argparse.Namespace, todo: Sequence[tuple[Row, Row]], scores: Sequence[str], rater: str, rubric: str
) -> int:
    """Show the answers one by one and record each grade at once; return how many were graded."""
    graded, out = 0, Path(args.out)
    print_lines(*(rubric.splitlines() if todo else ()))
    try:
        for index, (label, shown) in enumerate(todo, 1):
            lines = ["", f"[{index} of {len(todo)}] question: {shown['question']}"]
            lines += [f"earlier, {item['role']}: {item['content']}" for item in shown.get("history", ())]
            lines += ["answer:", *shown["answer"].splitlines(), f"citations: {', '.join(shown['citations']) or 'none'}"]
            lines += [f"expected: {shown['expected_answer']}"] if "expected_answer" in shown else []
            for chunk in shown["chunks"]:
                lines += [f"passage {chunk['id']}:", *(f"  {line}" for line in chunk["text"].splitlines())]
            print_lines(*lines)
            grades = _ask_grades(scores)
            if grades is None:
                break
            if grades:
                note = {"note": text} if (text := ask("note (Enter: none) ")) else {}
                row = {**label, "rater": rater, "at": now(), **grades, **note}
                write_data(out, [with_line(out.read_bytes() if out.exists() else b"", row)])
                graded += 1
    except EOFError:
        print_lines("")
    return graded


def _ask_grades(scores: Sequence[str]) -> Row | None:
    """Ask for each score; an empty mapping skips the answer, None ends."""
    grades: Row = {}
    for score in scores:
        while True:
            reply = ask(f"{score}, 0 to 5 (Enter: cannot tell, s: skip this answer, q: quit) ").lower()
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
