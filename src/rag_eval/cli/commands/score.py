"""Score traces against the gold set and judge the gates."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rag_eval.cli import guarded
from rag_eval.cli.commands._shared import (
    add_baseline,
    add_engine,
    add_inputs,
    add_option,
    add_outputs,
    execution,
    gates_path,
    names,
    put,
    remark,
    stdin_contents,
    uncollected,
)
from rag_eval.common.escaping import log_line
from rag_eval.errors import RagEvalError, UsageError
from rag_eval.run.options import Options, fields

# Functions import modules that load the metrics: `--format scores` and `--help` start in half the time.
if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.rendering import Details

EXAMPLES = """\
  rag-eval score
  rag-eval score --gold eval/gold.jsonl --trace runs/trace.jsonl --k 1,3,5
  rag-eval score --format markdown --out rag-eval-report
  rag-eval score --base origin/main
  rag-eval score --suite smoke --perspective retrieval,citations
  rag-eval score --by difficulty,tag
  rag-eval score --save-trace
  rag-eval score --out rag-eval-report --details
  rag-eval score --format scores --gates precision=0.80,chr=0.75,under=0.05,over=0.10
"""
FORMATS = ("table", "markdown", "html", "json", "junit", "sarif", "codequality", "csv", "scores")


_PAUSE = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_inputs(parser)
    add_baseline(parser)
    parser.add_argument("--base", metavar="REF", help="compare gates, policy and gold with this branch or commit")
    add_option(
        parser,
        "--perspective",
        "P[,P]",
        "measure and judge only these metric groups: retrieval,…",
        default=(),
        type=names,
    )
    add_option(parser, "--suite", "S", "full, smoke (tagged smoke, or a sample of 50) or smoke:N", default="full")
    parser.add_argument(
        "--save-trace",
        metavar="DIR",
        nargs="?",
        const="traces",
        help="write the failed cases with details into DIR/failed.jsonl (default: traces)",
    )
    add_option(parser, "--by", "F[,F]", "split every metric by gold fields: difficulty,tag,…", default=(), type=names)
    add_option(parser, "--verdicts", "FILE", "recorded verdicts of a judge (default: from the gates file)")
    parser.add_argument("--watch", action="store_true", help="score again when a file changes, until Ctrl-C")
    parser.add_argument(
        "--details", action="store_true", help="answers, citations and chunks in the HTML report; secrets are masked"
    )
    parser.add_argument("--open", action="store_true", help="open the HTML report in the browser")
    add_engine(parser)
    add_outputs(parser, FORMATS)


def run(args: argparse.Namespace) -> int:
    """Score, and return the report's exit code."""
    if not args.watch:
        with uncollected():
            return _run(args)

    if "-" in (args.gold, args.trace):
        raise UsageError("--watch cannot read stdin again. Name a file instead of -")
    return watch(lambda: _run(args), lambda: _files(args))


def _files(args: argparse.Namespace) -> list[str]:
    """Return the files that the verdict depends on, as far as the gates file can be read."""
    from rag_eval.common.digests import Digests
    from rag_eval.gates.policy import Policy
    from rag_eval.readers.problems import ProblemCollector
    from rag_eval.readers.report_file import sidecar_of
    from rag_eval.readers.source import Reader
    from rag_eval.run.inputs import read_gates_policy

    gates, policy = "", Policy()
    with suppress(RagEvalError):
        gates = "" if "=" in args.gates else gates_path(args.gates)
        policy = read_gates_policy(Reader(ProblemCollector()), Options(gates=gates), Digests())
    files = gates, args.gold, args.trace, args.verdicts, args.baseline, *policy.files
    return [path for path in (*files, sidecar_of(args.trace or policy.trace)) if path]


def _run(args: argparse.Namespace) -> int:
    if args.format == "scores":
        return _scores(args)
    from rag_eval import api

    if "=" in args.gates:
        raise UsageError("--gates NAME=VALUE is only for --format scores. Write a gates file: rag-eval init")
    if args.details and not (args.out or args.open or args.format == "html"):
        raise UsageError("--details needs the HTML report. Add --out DIR, --open or --format html")
    options = _options(args)
    authority = None
    if args.base is not None:
        from rag_eval.run.authority import authority_from_git

        authority = authority_from_git(args.base)
    report = api.run(options, authority)
    remark((f"{note.file}: {note.message}" for note in report.notes), quiet=args.quiet)
    _check_fields(report, options.by)
    details: Details | None = None
    if args.details:
        from rag_eval.cli.commands._failed import details_of

        details = details_of(report, options)
    put(report, args, by=bool(options.by), details=details)
    if args.open:
        _open(report, args.out, details)
    if args.save_trace is not None:
        from rag_eval.cli.commands._failed import save

        remark([save(report, options, args.save_trace)], quiet=args.quiet)
    return report.exit_code


def _open(report: Report, out: str | None, details: Details | None) -> None:
    """Open the HTML report: the one of ``--out``, otherwise one in a temporary folder."""
    import tempfile
    import webbrowser
    from pathlib import Path

    from rag_eval.rendering import RENDERERS, render

    folder = Path(out or tempfile.mkdtemp(prefix="rag-eval-"))
    path = (folder / RENDERERS["html"][1]).resolve()
    if not out:
        path.write_text(render(report, "html", details=details), encoding="utf-8", newline="\n")
    if not webbrowser.open(path.as_uri()):
        remark([f"no browser was found; the report is {path}"])


def _check_fields(report: Report, fields: Sequence[str]) -> None:
    from rag_eval.gates.selection import FIELDS

    known = {part.slice.partition("=")[0] for part in report.slices}
    for field in fields:
        if field not in known:
            some = ", ".join(FIELDS)
            raise UsageError(f"--by: no gold item has the field '{log_line(field)}'. Choose from: {some}, meta.NAME")


def _options(args: argparse.Namespace) -> Options:
    contents = stdin_contents(args)
    inputs = args.gold, args.trace, gates_path(args.gates), args.k
    return Options(
        *inputs,
        baseline=args.baseline,
        execution=execution(args),
        verdicts=args.verdicts,
        contents=contents,
        is_discovered=not args.gates,
        perspectives=args.perspective,
        suite=args.suite,
        by=fields(args.by),
    )


def _scores(args: argparse.Namespace) -> int:
    import json

    from rag_eval.cli.commands import _flat_scores

    refused = (
        (args.base is not None, "--format scores does not judge the gates of a base. Remove --base"),
        (args.baseline, "--format scores has no regression gates. Remove --baseline"),
        (
            args.perspective or args.suite != "full",
            "--format scores always scores everything. Remove --perspective and --suite",
        ),
        (args.by, "--format scores has no slices. Remove --by, or use --format json"),
        (args.details, "--details is only for the HTML report. Remove --format scores"),
        (args.save_trace is not None, "--save-trace needs a report. Remove --format scores"),
        (args.out, "--format scores writes no report. Remove --out and redirect the output"),
    )
    for given, message in refused:
        if given:
            raise UsageError(message)
    contents = stdin_contents(args)
    inline = args.gates if "=" in args.gates else ""
    gates = "" if inline else gates_path(args.gates)
    options = Options(args.gold, args.trace, gates, args.k, contents=contents, execution=execution(args))
    scores, notes = _flat_scores.reference_scores(options, inline)
    remark(notes, quiet=args.quiet)
    sys.stdout.write(json.dumps(scores, indent=2, ensure_ascii=False) + "\n")
    return 0 if scores["pass"] else 1


def watch(score: Callable[[], int], files: Callable[[], Iterable[str]]) -> int:
    """Score, and again after each change of ``files``; Ctrl-C ends it with the last exit code."""
    code = 0
    try:
        while True:
            before = _states(files())
            code = guarded(score)
            sys.stdout.write("\nWatching for changes; Ctrl-C ends.\n")
            sys.stdout.flush()
            while _states(files()) == before:
                time.sleep(_PAUSE)
            sys.stdout.write("\n")
    except KeyboardInterrupt:
        return code


def _states(files: Iterable[str]) -> dict[str, tuple[int, int] | None]:
    """Return modification time and size of each file; None for a missing one."""
    states: dict[str, tuple[int, int] | None] = dict.fromkeys(files)
    for path in states:
        with suppress(OSError):
            state = os.stat(path)  # noqa: PTH116 - pathlib costs start-up time
            states[path] = state.st_mtime_ns, state.st_size
    return states
