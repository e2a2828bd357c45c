"""Score traces against the gold set and judge the gates."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_eval.cli.commands._shared import (
    add_baseline,
    add_engine,
    add_inputs,
    add_outputs,
    execution,
    gates_path,
    held_stdin,
    names,
    put,
    remark,
    uncollected,
)
from rag_eval.common.escaping import log_line
from rag_eval.errors import UsageError

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.governance.base_policy import Authority
    from rag_eval.run.options import Options

EXAMPLES = """\
  rag-eval score
  rag-eval score --gold eval/gold.jsonl --trace runs/trace.jsonl --k 1,3,5
  rag-eval score --format markdown --out rag-eval-report
  rag-eval score --base origin/main
  rag-eval score --suite smoke --perspective retrieval,citations
  rag-eval score --by difficulty,tag
  rag-eval score --save-trace
  rag-eval score --format scores --gates precision=0.80,chr=0.75,under=0.05,over=0.10
"""
FORMATS = ("table", "markdown", "html", "json", "junit", "sarif", "csv", "scores")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_inputs(parser)
    add_baseline(parser)
    parser.add_argument("--base", metavar="REF", help="hold gates, policy and gold against this branch or commit")
    parser.add_argument(
        "--perspective", metavar="P[,P]", type=names, default=(), help="measure and judge these alone: retrieval,…"
    )
    parser.add_argument(
        "--suite", metavar="S", default="full", help="full, smoke (tagged so, else a sample of 50) or smoke:N"
    )
    parser.add_argument(
        "--save-trace",
        metavar="DIR",
        nargs="?",
        const="traces",
        help="write the failed cases with all that debugging takes into DIR/failed.jsonl (traces)",
    )
    parser.add_argument(
        "--by", metavar="F[,F]", type=names, default=(), help="cut every metric by gold fields: difficulty,tag,…"
    )
    parser.add_argument(
        "--verdicts", metavar="FILE", default="", help="recorded verdicts of a judge (as the gates file says)"
    )
    parser.add_argument("--watch", action="store_true", help="score again when a file changes, until Ctrl-C")
    parser.add_argument("--open", action="store_true", help="open the HTML report in the browser")
    add_engine(parser)
    add_outputs(parser, FORMATS)


def run(args: argparse.Namespace) -> int:
    """Score; the exit code is the report's."""
    if not args.watch:
        with uncollected():
            return _run(args)
    from rag_eval.cli.commands._watch import watch

    if "-" in (args.gold, args.trace):
        raise UsageError("--watch reads files again, which stdin cannot be. Name the file")
    return watch(lambda: _run(args), lambda: _files(args))


def _files(args: argparse.Namespace) -> list[str]:
    """Return the files that the verdict depends on, as far as the gates file can be read."""
    from rag_eval.errors import RagEvalError
    from rag_eval.readers.report_file import sidecar_of
    from rag_eval.run.inputs import open_policy

    named = [path for path in (args.gold, args.trace, args.baseline, args.gates) if path and "=" not in path]
    try:
        gates = gates_path("" if "=" in args.gates else args.gates)
        from rag_eval.api import Options

        _, policy, _ = open_policy(Options(args.gold, args.trace, gates))
    except RagEvalError:
        return named
    own = policy.gold, policy.trace, policy.baseline, gates, sidecar_of(policy.trace)
    return [*named, *(path for path in own if path)]


def _run(args: argparse.Namespace) -> int:
    if args.format == "scores":
        return _scores(args)
    if "=" in args.gates:
        raise UsageError("inline gates belong to --format scores. Write eval-gates.yml: rag-eval init")
    from rag_eval import api

    options = _options(args)
    report = api.run(options, _authority(args.base))
    remark((f"{note.file}: {note.message}" for note in report.notes), quiet=args.quiet)
    _check_fields(report, options.by)
    put(report, args, by=bool(options.by))
    if args.open:
        _open(report, args.out)
    if args.save_trace is not None:
        from rag_eval.cli.commands._failed import save

        remark([save(report, options, args.save_trace)], quiet=args.quiet)
    return report.exit_code


def _open(report: Report, out: str | None) -> None:
    """Open the HTML report: the one of ``--out``, otherwise one in a temporary folder."""
    import tempfile
    import webbrowser
    from pathlib import Path

    from rag_eval.rendering import RENDERERS, render

    folder = Path(out or tempfile.mkdtemp(prefix="rag-eval-"))
    path = (folder / RENDERERS["html"][1]).resolve()
    if not out:
        path.write_text(render(report, "html"), encoding="utf-8", newline="\n")
    if not webbrowser.open(path.as_uri()):
        remark([f"no browser was found; the report is {path}"], quiet=False)


def _check_fields(report: Report, fields: Sequence[str]) -> None:
    from rag_eval.gates.slices import FIELDS

    known = {part.slice.partition("=")[0] for part in report.slices}
    for field in fields:
        if field not in known:
            some = ", ".join(FIELDS)
            raise UsageError(f"--by: no gold item has '{log_line(field)}'. Take one of {some}, or meta.NAME")


def _options(args: argparse.Namespace) -> Options:
    from rag_eval.engines.run_arguments import fields
    from rag_eval.run.options import Options

    held = held_stdin(args)
    inputs = args.gold, args.trace, gates_path(args.gates), args.k
    part: dict[str, Any] = {"perspectives": args.perspective, "suite": args.suite, "by": fields(args.by)}
    return Options(
        *inputs,
        baseline=args.baseline,
        execution=execution(args),
        verdicts=args.verdicts,
        held=held,
        is_found=not args.gates,
        **part,
    )


def _authority(ref: str | None) -> Authority | None:
    if ref is None:
        return None
    from rag_eval.governance.base_policy import of_git

    return of_git(ref)


def _scores(args: argparse.Namespace) -> int:
    import json

    from rag_eval.cli.commands import _flat_scores
    from rag_eval.run.options import Options

    if args.base is not None:
        raise UsageError("--base judges, which --format scores does not. Leave one of the two out")
    if args.baseline:
        raise UsageError("--baseline is for gates that compare, which --format scores has none of. Leave it out")
    if args.perspective or args.suite != "full":
        raise UsageError("--format scores is always of everything: leave --perspective and --suite out")
    if args.by:
        raise UsageError("--format scores is not cut: leave --by out, or take --format json")
    if args.save_trace is not None:
        raise UsageError("--save-trace writes what a report knows: leave --format scores out")
    if args.out:
        raise UsageError("--out writes reports, which --format scores is not. Redirect its output instead")
    held = held_stdin(args)
    inline = args.gates if "=" in args.gates else ""
    gates = "" if inline else gates_path(args.gates)
    options = Options(args.gold, args.trace, gates, args.k, held=held, execution=execution(args))
    scores, said = _flat_scores.reference_scores(options, inline)
    remark(said, quiet=args.quiet)
    sys.stdout.write(json.dumps(scores, indent=2, ensure_ascii=False) + "\n")
    return 0 if scores["pass"] else 1
