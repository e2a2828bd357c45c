"""The names through which tests reach the product.

Tests import from `rag_eval` only what it publishes (`rag_eval.__all__`, the command line) and what stands here; a test
of one module may also import that module, if tests/white_box.toml lists it. `make lint` checks this, and
`python tools/check_tests.py --fix` rewrites imports that bypass this file. When a name moves in the product, it moves
here, and no test changes.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval import REPOSITORY, api
from rag_eval.action.run import action
from rag_eval.analysis.judging import judge, judge_all, with_verdict
from rag_eval.cases import GOOD, MEANING, Case, label
from rag_eval.cli import main, parser
from rag_eval.cli.init import PRESETS
from rag_eval.cli.parser import COMMANDS, build_parser
from rag_eval.contract import Gold, Grounding, Safety, Settings, Trace
from rag_eval.engines import ExecutionOptions
from rag_eval.errors import InputError, MissingExtra, Problem, RagEvalError, UsageError
from rag_eval.gates import Gate, MetricResult, Policy, Slices, Statistics
from rag_eval.gates.evidence import Baseline, RunEvidence
from rag_eval.gates.questions import Question, QuestionList
from rag_eval.git.plumbing import Git, GitError
from rag_eval.github import Comment, GitHub, GitHubError, Network
from rag_eval.github.posting import marker, parse_marker
from rag_eval.gold.signoff_identity import signoff_policy
from rag_eval.gold.signoff_repository import sign, verify
from rag_eval.metrics import METRICS, PERSPECTIVES, measure, measures
from rag_eval.readers.gates_file import policy_of, read_policy
from rag_eval.readers.gold_file import read_gold
from rag_eval.readers.jsonl import read_traces
from rag_eval.readers.problems import Contract, ProblemCollector, load_schema
from rag_eval.readers.signoff_record import NAMESPACE, HashChange, Record
from rag_eval.readers.source import Reader
from rag_eval.readers.yaml_file import YamlError
from rag_eval.readers.yaml_file import parse as parse_yaml
from rag_eval.rendering import RENDERERS, render
from rag_eval.rendering.data_formats import from_json
from rag_eval.run.authority import authority_from_git
from rag_eval.scoring import Completeness, aggregations
from rag_eval.scoring.aggregations import FOLDS
from rag_eval.scoring.case_scorer import metric_scorer
from rag_eval.stats.tally import Value, mean, tally
from rag_eval.textual.instructions import instruction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rag_eval.analysis import Report
    from rag_eval.metrics import Measure
    from rag_eval.scoring import Scorecard
    from rag_eval.stats.intervals import Interval
    from rag_eval.stats.tally import JsonScore

__all__ = [
    "COMMANDS",
    "FOLDS",
    "GOOD",
    "MEANING",
    "METRICS",
    "NAMESPACE",
    "PERSPECTIVES",
    "PRESETS",
    "RENDERERS",
    "REPOSITORY",
    "Baseline",
    "Case",
    "Comment",
    "Completeness",
    "Contract",
    "ExecutionOptions",
    "Gate",
    "Git",
    "GitError",
    "GitHub",
    "GitHubError",
    "Gold",
    "Grounding",
    "HashChange",
    "InputError",
    "MetricResult",
    "MissingExtra",
    "Network",
    "Policy",
    "Problem",
    "ProblemCollector",
    "Question",
    "QuestionList",
    "RagEvalError",
    "ReadResult",
    "Reader",
    "Record",
    "RunEvidence",
    "Safety",
    "Settings",
    "Slices",
    "Statistics",
    "Trace",
    "UsageError",
    "Value",
    "action",
    "as_json",
    "authority_from_git",
    "build_parser",
    "enclosed",
    "folded",
    "from_json",
    "instruction",
    "judge",
    "judge_all",
    "label",
    "load_schema",
    "main",
    "marker",
    "mean",
    "measure",
    "measures",
    "metric_scorer",
    "parse_marker",
    "policy_of",
    "read",
    "read_gold",
    "read_policy",
    "read_traces",
    "render",
    "score_files",
    "score_rows",
    "sign",
    "signoff_policy",
    "tally",
    "verify",
    "with_verdict",
]


# Half of the time of a small command goes into its parser, which is the same every time.
parser.build_parser = cache(build_parser)


def as_json(report: Report) -> Any:
    """Return the value of a report's report.json."""
    return json.loads(render(report, "json"))


def score_files(*files: str, authority: Any = None, **options: Any) -> Report:
    """Score files as the command line does: gold, trace and gates, and the options of a run by name."""
    return api.run(api.Options(*files, **options), authority)


def folded(name: str, scores: Mapping[JsonScore, int]) -> Value:
    """Return the value of a metric over some scores."""
    return aggregations.aggregate(measure(name), scores)


def enclosed(name: str, scores: Mapping[JsonScore, int], confidence: str = "0.95") -> Interval | None:
    """Return the interval of a metric's value over some scores."""
    return aggregations.confidence_interval(measure(name), scores, float(confidence))


def score_rows(cases: Iterable[tuple[Gold, Trace]], wanted: Sequence[Measure], settings: Settings) -> Scorecard:
    """Score pairs in memory."""
    pairs = list(cases)
    scorer = metric_scorer({gold.qid: gold for gold, _ in pairs}, wanted, settings)
    scorer.add_traces([trace for _, trace in pairs if trace.line])
    return scorer.close()


class ReadResult(NamedTuple):
    """The value of a file, None if it is refused, and the problems found in it, as lines without the file's name."""

    value: Any
    problems: list[str]


def read(kind: str, data: bytes, folder: Path) -> ReadResult:
    """Read the bytes of a file of a kind (gold, trace, gates, yaml) through ``folder``."""
    if kind == "yaml":
        try:
            return ReadResult(parse_yaml(data.decode()).value, [])
        except YamlError as error:
            return ReadResult(None, [f"{error.line}:{error.column}: {error.message}"])
    path = folder / "file"
    path.write_bytes(data)
    reader = Reader(ProblemCollector())

    def traces(*words: Any) -> list[Trace]:
        return [trace for block in read_traces(*words) for trace in block]

    reading = {"gold": read_gold, "trace": traces, "gates": read_policy}[kind]
    value = reading(reader, str(path))
    problems = [str(problem).removeprefix(f"{path}:").strip() for problem in reader.ledger.problems]
    return ReadResult(None if problems else value, problems)
