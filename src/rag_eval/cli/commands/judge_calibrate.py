"""Measure how far people agree with the recorded verdicts of a judge, and record it for its gates."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.cli.commands._shared import add_gates, add_option, gates_path, write
from rag_eval.common.escaping import log_line, one_line, quantity, quoted
from rag_eval.errors import PASSED, UsageError

if TYPE_CHECKING:
    from rag_eval.contract import Judge
    from rag_eval.gates.policy import Policy
    from rag_eval.llm_judge.calibration import Agreement, Bias, Matched
    from rag_eval.llm_judge.labels import Scale
    from rag_eval.stats.agreement import Estimate

    Row = dict[str, Any]

EXAMPLES = """\
  rag-eval judge calibrate --labels eval/humans.csv --write
"""
USUAL_FLOOR = {"kappa": 0.6}
_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--labels", metavar="FILE", nargs="+", required=True, help="scores by people: CSV, or records of a spot-check"
    )
    add_recorded(parser)
    parser.add_argument(
        "--column",
        metavar="SCORE=NAME",
        action="append",
        default=[],
        help="the column of a score: groundedness=faithful",
    )
    add_option(parser, "--scale", "LOW-HIGH", "scale of the labels (default: 0-5, or 0-1 if all are 0, 1, yes or no)")
    add_option(parser, "--cut", "N", "lowest score, of 0 to 5, of a good answer (default: 4)", default=4.0, type=float)
    parser.add_argument(
        "--floor",
        metavar="NAME=N",
        action="append",
        default=[],
        help="floor to record, such as kappa=0.6 (default: from the gates file)",
    )
    parser.add_argument("--write", action="store_true", help="record the result in the gates file")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="text (default) or json")


def add_recorded(parser: argparse.ArgumentParser) -> None:
    """Add the options that name recorded verdicts and their judge."""
    add_gates(parser)
    add_option(
        parser, "--verdicts", "FILE", "recorded verdicts (default: verdicts in the gates file, or eval/verdicts.jsonl)"
    )
    add_option(parser, "--model", "NAME", "the judge, if the file has several (default: from the gates file)")


def run(args: argparse.Namespace) -> int:
    """Print the agreement and the lines for the gates file; raise UsageError or InputError if it cannot be measured."""
    from rag_eval.contract.verdict import digest_of
    from rag_eval.llm_judge.calibration import agreement, matched, record
    from rag_eval.llm_judge.labels import BINARY

    policy, path, judge, rows = recorded_by(args)
    if not 0 < args.cut <= 5:
        raise UsageError(f"--cut {args.cut:g} is not a score above 0 and up to 5. Write: --cut 4")
    labels, scales, digest = _labels(args)
    pairs = matched(rows, labels)
    _refuse(pairs, path, judge)
    measured = [
        agreement(score, some, args.cut, binary=scales[score] == BINARY) for score, some in pairs.graded.items()
    ]
    made = {
        **judge._asdict(),
        "floor": _floor(args.floor) or dict(policy.stated.get("judge", {}).get("floor", {})) or USUAL_FLOOR,
        "calibration": record(measured, digest_of(judge._asdict()), digest),
    }
    block = _block(made)
    if args.format == "json":
        sys.stdout.write(_json(path, judge, scales, pairs, measured, made))
    else:
        for line in _page(path, args.labels, judge, scales, pairs, measured):
            print(log_line(line))
        sys.stdout.write("" if args.write else f"\n{_next(policy, made, block)}")
    if args.write:
        _write(policy, block)
    if not policy.verdicts:
        print(f"the gates file names no verdicts. Add the line: verdicts: {path}", file=sys.stderr)
    return PASSED


def recorded_by(args: argparse.Namespace) -> tuple[Policy, Path, Judge, list[Row]]:
    """Return the policy, the verdict file, the judge, and its rows."""
    from rag_eval.cli.commands.judge import USUAL_VERDICTS, recorded
    from rag_eval.common.digests import Digests
    from rag_eval.contract import Judge
    from rag_eval.readers.problems import ProblemCollector
    from rag_eval.readers.source import Reader
    from rag_eval.readers.verdict_file import judge_of
    from rag_eval.run.inputs import read_gates_policy
    from rag_eval.run.options import Options

    policy = read_gates_policy(Reader(ProblemCollector()), Options(gates=gates_path(args.gates)), Digests())
    path = Path(args.verdicts or policy.verdicts or USUAL_VERDICTS)
    if not os.path.lexists(path):
        raise UsageError(f"{path}: no such file. Record verdicts first: rag-eval judge --model NAME")
    rows = recorded(path)
    judges = sorted({judge_of(row) for row in rows})
    named = [
        judge
        for judge in judges
        if args.model in ("", judge.model) and (args.model or policy.judge in (Judge(), judge))
    ]
    if len(named) != 1:
        known = ", ".join(f"{quoted(judge.model, 60)} (prompt {judge.prompt[7:15]})" for judge in judges) or "none"
        which = args.model or policy.judge.model
        what = f"{quantity(len(named), 'judge')} {quoted(which, 60)}" if which else quantity(len(judges), "judge")
        hint = (
            "Name one with --model, or under judge in the gates file."
            if judges
            else "Record verdicts first: rag-eval judge"
        )
        raise UsageError(f"{path} has {what}, but one is needed. Judges in the file: {known}. {hint}")
    return policy, path, named[0], [row for row in rows if judge_of(row) == named[0]]


def _labels(args: argparse.Namespace) -> tuple[list[Any], dict[str, Scale], str]:
    """Return the labels, the scale of each score, and the hash of the files."""
    from hashlib import sha256

    from rag_eval.contract.verdict import SCORES
    from rag_eval.llm_judge.labels import read_labels
    from rag_eval.readers.import_inputs import Files
    from rag_eval.readers.problems import ProblemCollector
    from rag_eval.readers.source import Reader

    columns = dict(_parts(item, "--column", "groundedness=faithful") for item in args.column)
    if unknown := columns.keys() - set(SCORES):
        raise UsageError(f"--column {min(unknown)} is not a score of a judge. Choose one of: {', '.join(SCORES)}")
    reader = Reader(ProblemCollector())
    files = Files(reader, list(dict.fromkeys(args.labels)))
    labels, scales = read_labels(files, columns, _scale(args.scale))
    reader.ledger.stop_on_problems()
    digests = [files.digest(path) for path in files.paths]
    digest = digests[0] if len(digests) == 1 else sha256("\n".join(sorted(digests)).encode()).hexdigest()
    return labels, scales, f"sha256:{digest}"


def _parts(text: str, option: str, example: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name.strip() and separator and value.strip()):
        raise UsageError(f"{option} {quoted(text, 60)} is not NAME=VALUE. Write: {option} {example}")
    return name.strip(), value.strip()


def _scale(text: str) -> Scale | None:
    if not text:
        return None
    low, _, high = text.partition("-")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not ends[0] < ends[1]:
        raise UsageError(
            f"--scale {quoted(text, 40)} is not a scale. Write the lowest and the highest label: --scale 1-4"
        )
    return ends


def _floor(stated: Sequence[str]) -> dict[str, float]:
    floor = {}
    for item in stated:
        name, value = _parts(item, "--floor", "kappa=0.6")
        try:
            floor[name] = float(value)
        except ValueError:
            floor[name] = 2.0
        if name not in ("kappa", "auroc") or not -1 <= floor[name] <= 1:
            raise UsageError(
                f"--floor {quoted(item, 40)} is not a floor. Write: --floor kappa=0.6 or --floor auroc=0.8"
            )
    return floor


def _refuse(pairs: Matched, path: Path, judge: Judge) -> None:
    """Refuse labels that match several verdicts, and labels that match none."""
    if pairs.ambiguous:
        first = pairs.ambiguous[0]
        raise UsageError(
            f"{first.file}:{first.line}: {quoted(first.qid, 60)} has several verdicts in {path}, and the label does "
            f"not say which answer it grades (labels like this: {len(pairs.ambiguous)}). "
            "Remove old verdicts: rag-eval judge --prune"
        )
    if not pairs.graded:
        fix = "Check qid and run of the labels, or record verdicts: rag-eval judge"
        raise UsageError(
            f"{path} has no verdict of {judge.model} for any of the labels ({len(pairs.unjudged)} read). {fix}"
        )


def _block(made: Mapping[str, Any]) -> str:
    """Return the judge of the gates file as YAML; JSON strings are YAML strings."""
    names = [f"  {name}: {json.dumps(made[name])}" for name in ("model", "prompt", "rubric")]
    recorded = made["calibration"]
    scores = [f"      {score}: {_flow(part)}" for score, part in recorded["scores"].items()]
    lines = ["judge:", *names, f"  floor: {_flow(made['floor'])}", "  calibration:"]
    lines += [f"    {name}: {json.dumps(recorded[name])}" for name in ("judge", "labels")]
    return "\n".join([*lines, "    scores:" if scores else "    scores: {}", *scores]) + "\n"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_flow(part)}" for name, part in value.items()) + "}"
    return f"{float(value):.4f}".rstrip("0").rstrip(".") if not isinstance(value, int) else str(value)


def _next(policy: Policy, made: Mapping[str, Any], block: str) -> str:
    """Return the block with the instruction to use it."""
    from rag_eval.gates.policy import Calibration

    scores = {name: part["low"] for name, part in made["calibration"]["scores"].items()}
    floor = {name: float(value) for name, value in made["floor"].items()}
    calibration = Calibration(floor, "judge", scores)
    passed = [score for score in scores if calibration.covers(score, "judge")]
    limit = ", ".join(f"{name} {value:g}" for name, value in floor.items())
    what = f"reaches the floor ({limit}): {', '.join(passed)}" if passed else f"no score reaches the floor ({limit})"
    return f"{what}\nrecord this in {policy.file or 'eval-gates.yml'}, or run the same command with --write:\n{block}"


def _write(policy: Policy, block: str) -> None:
    """Replace the judge in the gates file by the block, and change nothing else."""
    from rag_eval.readers.gates_file import policy_of
    from rag_eval.readers.problems import ProblemCollector

    if not policy.file:
        raise UsageError("there is no gates file to write to. Name it with --gates, or create one: rag-eval init")
    path = Path(policy.file)
    text = path.read_bytes().decode("utf-8")
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block.replace("\n", newline)
    lines = text.splitlines(keepends=True)
    begin = next((at for at, line in enumerate(lines) if line.startswith("judge:")), len(lines))
    end = next(
        (at for at in range(begin + 1, len(lines)) if lines[at][:1] not in (" ", "\t", "\n", "\r", "#")), len(lines)
    )
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    before = "".join(lines[:begin])
    made_text = before + ("" if not before or before.endswith("\n") else newline) + block + "".join(lines[end:])
    ledger = ProblemCollector()
    after = policy_of(made_text.encode(), policy.file, ledger)
    others = {name: value for name, value in policy.stated.items() if name != "judge"}
    if after is None or ledger.problems or {k: v for k, v in after.stated.items() if k != "judge"} != others:
        raise UsageError(f"{path}: judge cannot be replaced in this file. Replace it by hand, with:\n{block}")
    write(path, made_text)
    covered = (
        "its gates may fail a run" if not after.uncalibrated else f"still only warns: {', '.join(after.uncalibrated)}"
    )
    print(f"wrote judge into {path}: {covered}", file=sys.stderr)


def _json(
    path: Path,
    judge: Judge,
    scales: Mapping[str, Scale],
    pairs: Matched,
    measured: Sequence[Agreement],
    made: Mapping[str, Any],
) -> str:
    from rag_eval.common.escaping import json_text

    unused = [{"qid": item.qid, "run": item.run, "file": item.file, "line": item.line} for item in pairs.unjudged]
    return json_text(
        {
            "verdicts": str(path),
            "judge": judge._asdict(),
            "scales": {score: list(ends) for score, ends in scales.items()},
            "labels_without_verdict": unused,
            "scores": {item.score: item for item in measured},
            "gates_file": {"judge": {**made, "floor": {k: float(v) for k, v in made["floor"].items()}}},
        }
    )


def _page(
    path: Path,
    files: Sequence[str],
    judge: Judge,
    scales: Mapping[str, Scale],
    pairs: Matched,
    measured: Sequence[Agreement],
) -> Iterator[str]:
    yield f"{path}: {judge.model}; labels of {', '.join(files)}"
    if pairs.unjudged:
        qids = list(dict.fromkeys(quoted(entry.qid, 40) for entry in pairs.unjudged))
        some = ", ".join(qids[:_SHOWN]) + (", …" if len(qids) > _SHOWN else "")
        counted = quantity(len(pairs.unjudged), "label")
        yield f"not counted: {counted} on answers without a verdict of this judge: {some}"
    for item in measured:
        yield from ("", *_about(item, scales[item.score]))


def _about(agreement: Agreement, scale: Scale) -> Iterator[str]:
    from rag_eval.rendering.terminal import grid

    labels = "0 or 1" if agreement.binary else f"{scale[0]:g} to {scale[1]:g}"
    counts = f"answers: {agreement.n}, questions: {agreement.units}, labels: {agreement.votes} from {labels}"
    yield f"{agreement.score} ({counts})"
    good = "the label is 1" if agreement.binary else f"the score is {agreement.cut:g} or more"
    unit = "share of answers" if agreement.binary else "points"
    rows = [
        (
            "kappa",
            shown(agreement.kappa),
            "judge cut at " + f"{agreement.cut:g}" if agreement.binary else "quadratic weights",
        ),
        ("AUROC", shown(agreement.auroc), f"good: {good}"),
        ("base rate", shown(agreement.base_rate), f"good by people; by the judge {agreement.judge_rate:.3f}"),
        ("bias", shown(agreement.bias, sign=True), f"judge minus people, {unit}"),
    ]
    if agreement.people:
        rows.insert(1, ("kappa of people", shown(agreement.people), "one person and the mean of the others"))
    for name, bias in (("length", agreement.length), ("position", agreement.position)):
        rows += _bias_rows(name, bias) if bias else []
    yield from grid(["", "value, 95 % interval", ""], rows).split("\n")
    yield ""
    people = ["bad", "good"] if agreement.binary else [str(score) for score in range(6)]
    table = [[str(score), *map(str, row)] for score, row in enumerate(agreement.confusion)]
    yield from grid(["judge \\ people", *people], table).split("\n")
    (hit, missed), (wrong, right) = agreement.at_cut
    yield f"at the cut: good for both {hit}, bad for both {right}, good only for the judge {wrong}, for people {missed}"
    yield f"they disagree on {wrong + missed} of {agreement.n} answers ({(wrong + missed) / agreement.n:.0%})"
    for qid, run, score, mean in agreement.apart:
        where = f" of run {one_line(run, 40)}" if run else ""
        yield f"far apart: {one_line(qid, 60)}{where}: judge {score}, people {mean:.3g}"
    yield from (f"note: {note}" for note in agreement.notes)


def _bias_rows(name: str, bias: Bias) -> list[tuple[str, str, str]]:
    groups = "; ".join(f"{label} {mean:+.3f} ({n})" for label, n, mean in bias.groups)
    return [
        (f"bias by {name}", shown(bias.difference, sign=True), f"difference: {groups}"),
        ("", shown(bias.correlation, sign=True), f"correlation of bias and {name}"),
    ]


def shown(estimate: Estimate, *, sign: bool = False) -> str:
    """Return a value with its interval."""
    form = "+.3f" if sign else ".3f"
    if estimate.value is None:
        return "none"
    ends = (
        "no interval"
        if estimate.low is None or estimate.high is None
        else f"[{estimate.low:{form}}, {estimate.high:{form}}]"
    )
    return f"{estimate.value:{form}} {ends}"
