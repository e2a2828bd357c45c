"""List the metrics: which apply to the files at hand, and which fields would switch the others on."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval.cli.commands._shared import add_inputs, gates_path, held_stdin, names, uncollected

if TYPE_CHECKING:
    from rag_eval.gates.coverage import Covered, Field
    from rag_eval.rendering.section_writer import Section
    from rag_eval.run.options import Options

EXAMPLES = """\
  rag-eval metrics
  rag-eval metrics --perspective retrieval
  rag-eval metrics --gold eval/gold.jsonl --trace runs/trace.jsonl --format json
"""
FORMATS = ("table", "markdown", "json")
_NAMED, _WIDTH = 12, 70
_IDLE = "They need no field that is missing, but cases or settings of a kind (rag-eval explain NAME):"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_inputs(parser)
    parser.add_argument(
        "--perspective", metavar="P[,P]", type=names, default=(), help="only these: retrieval,citations"
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="table, markdown or json")


def run(args: argparse.Namespace) -> int:
    """Print what applies to the files where there are some, else a table of METRICS."""
    from rag_eval.metrics import perspectives_of
    from rag_eval.run.options import Options

    perspectives = perspectives_of(args.perspective)
    held = held_stdin(args)
    inputs = args.gold, args.trace, gates_path(args.gates), args.k
    options = Options(*inputs, perspectives=perspectives, held=held)
    with uncollected():
        known = _known(options, asked=bool(args.gold or args.trace))
    if args.format == "json":
        from rag_eval.rendering.json_values import json_text

        sys.stdout.write(json_text(_as_json(perspectives, known)))
        return 0
    from rag_eval.rendering.section_writer import marked, plain

    sections = _listing(perspectives, args.format) if known is None else _sections(known, args.format)
    sys.stdout.write((plain if args.format == "table" else marked)(sections))
    return 0


class _Known(NamedTuple):
    """What was found in the files."""

    gold: str
    trace: str
    covered: list[Covered]
    fields: dict[str, Field]


def _known(options: Options, *, asked: bool) -> _Known | None:
    """What the files say; None where there are none in the usual places and none was ``asked`` for.

    Gold is read whole, traces are a stream. InputError where they cannot be read.
    """
    from rag_eval.gates.coverage import Presence, covered
    from rag_eval.readers.gold_file import read_gold
    from rag_eval.run.inputs import open_policy, paired_traces, read_run_json, wanted
    from rag_eval.scoring.case_scorer import metric_scorer

    reader, policy, digests = open_policy(options)
    if not asked and not (os.path.lexists(policy.gold) and os.path.lexists(policy.trace)):
        return None
    golds = read_gold(reader, policy.gold)
    presence = Presence(golds.values())
    scorer = metric_scorer(golds, wanted(options, policy), policy.settings)
    for trace in presence.watch(paired_traces(reader, golds, policy.trace, digests)):
        scorer.add([trace])
    about = read_run_json(reader, policy, digests)
    reader.ledger.stop_on_problems()
    fields = presence.fields()
    return _Known(policy.gold, policy.trace, covered(scorer.close(), policy, fields, about or {}), fields)


def _listing(perspectives: tuple[str, ...], form: str) -> list[Section]:
    from textwrap import fill

    from rag_eval.metrics import METRICS
    from rag_eval.rendering.section_writer import Section

    width = _WIDTH if form == "table" else len(max((one.summary for one in METRICS.values()), key=len))
    rows = [
        [metric.name, metric.better, metric.perspective, fill(metric.summary, width)]
        for metric in METRICS.values()
        if not perspectives or metric.perspective in perspectives
    ]
    return [Section("", (), ["metric", "better", "perspective", "what it is"], rows)]


def _sections(known: _Known, form: str) -> list[Section]:
    from rag_eval.gates.coverage import idle, partly, unlocked
    from rag_eval.metrics import METRICS
    from rag_eval.rendering.section_writer import MARKDOWN, PLAIN, Section

    say = (PLAIN if form == "table" else MARKDOWN).name
    used = [one for one in known.covered if one.cases]
    where = f"{len(used)} of {len(known.covered)} metrics apply to {say(known.gold, 80)} and {say(known.trace, 80)}."
    rows = [[one.name, one.perspective, str(one.cases), ", ".join(say(gate, 60) for gate in one.gates)] for one in used]
    added = [[" and ".join(one.fields), str(len(one.metrics)), _few(one.metrics)] for one in unlocked(known.covered)]
    some = [[one.name, f"{one.present} of {one.rows}"] for one in partly(known.covered, known.fields, METRICS)]
    found = [Section("Metrics that apply", [where], ["metric", "perspective", "cases", "gates"], rows)]
    if added:
        found.append(Section("Add to your files", (), ["field", "metrics", "which it switches on"], added))
    if some:
        found.append(Section("Fields that only some rows have", (), ["field", "rows"], some))
    if nothing := idle(known.covered):
        found.append(Section("No case to apply to", [f"{_IDLE} {', '.join(nothing)}."]))
    return found


def _few(found: tuple[str, ...]) -> str:
    more = len(found) - _NAMED
    return ", ".join([*found[:_NAMED], *([f"… {more} more"] if more > 0 else [])])


def _as_json(perspectives: tuple[str, ...], known: _Known | None) -> dict[str, Any]:
    """Every metric; with files at hand also its cases, gates and missing fields, and what would unlock more."""
    from rag_eval.gates.coverage import unlocked
    from rag_eval.metrics import METRICS

    found = {one.name: one for one in known.covered} if known else {}
    listed = [
        {
            **{name: getattr(metric, name) for name in ("name", "perspective", "better", "scale", "unit", "applies")},
            "summary": metric.summary,
            "needs": list(metric.needs),
            **(found[metric.name]._asdict() if metric.name in found else {}),
        }
        for metric in METRICS.values()
        if not perspectives or metric.perspective in perspectives
    ]
    if known is None:
        return {"metrics": listed}
    return {
        "gold": known.gold,
        "trace": known.trace,
        "metrics": listed,
        "unlock": [one._asdict() for one in unlocked(known.covered)],
        "fields": [one._asdict() for one in known.fields.values()],
    }
