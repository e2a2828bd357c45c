"""Single cases of a run, whose rows are read again: failed ones, details for people, and explanations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rag_eval import SITE
from rag_eval.analysis import Report, has_answers
from rag_eval.cases import Case, label, search_label
from rag_eval.common.escaping import one_line, quantity, quoted
from rag_eval.common.files import write_data
from rag_eval.common.paths import shipped
from rag_eval.contract import Trace
from rag_eval.errors import UsageError
from rag_eval.gates.questions import Question
from rag_eval.gates.selection import DEFAULT_CUTOFFS
from rag_eval.metrics import METRICS, Measure, Metric, canonical, find, hint, measures
from rag_eval.readers.gold_file import read_entries, read_gold
from rag_eval.readers.jsonl import paired_traces, read_trace_rows
from rag_eval.readers.problems import did_you_mean
from rag_eval.rendering.explanation import (
    KIND,
    Details,
    Row,
    case_details,
    case_lines,
    failed_cases,
    failed_row,
    gates_by_column,
    metric_lines,
)
from rag_eval.rendering.results import by_urgency
from rag_eval.run import Options
from rag_eval.run.baseline import BaselineFile
from rag_eval.run.inputs import open_policy

_UNFOLDED = 1_000


def details_of(report: Report, options: Options) -> Details:
    """Return the first cases of a run for people, failing ones first; the traces are read a second time."""
    cases, gates = by_urgency(report, _UNFOLDED), gates_by_column(report)
    return {
        (question.qid, question.run): case_details(case, question, gates)
        for question, case, *_ in _read_again(options, cases)
    }


def save_failed(report: Report, options: Options, folder: str) -> str:
    """Write one line for each failed case, and return a sentence that names the file.

    The traces are read a second time, as a stream: memory holds the failed cases of the report, not their rows.
    UsageError is raised if another file of that name exists.
    """
    path, fix = Path(folder) / "failed.jsonl", "Choose another folder: --save-trace DIR"
    beginning = b'{"kind":"' + KIND.encode() + b'"'
    try:
        with path.open("rb") as file:
            first = file.read(len(beginning))
    except FileNotFoundError:
        first = b""
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {(error.strerror or '').lower()}. {fix}") from None
    if first not in (b"", beginning):
        raise UsageError(f"{path} is not a file of failed cases. {fix}")
    cases, gates = failed_cases(report), gates_by_column(report)
    lines = (
        failed_row(case, question, gates, gold, trace) for question, case, gold, trace in _read_again(options, cases)
    )
    write_data(path, (msgspec.json.encode(line) + b"\n" for line in lines))
    return f"wrote {path}: {quantity(len(cases), 'failed case')} of {len(report.questions)}"


def _read_again(options: Options, cases: list[Question]) -> Iterator[tuple[Question, Case, Row, Row | None]]:
    """Yield cases with their gold and trace rows: in the order of the traces, then those without a trace."""
    reader, policy = open_policy(options)
    reader = reader.silent()
    entries = {gold.qid: (gold, row) for gold, row in read_entries(reader, policy.gold)}
    by_line = {case.trace_line: case for case in cases if case.trace_line}
    for trace, row in read_trace_rows(reader, policy.trace) if by_line else ():
        question = by_line.get(trace.line)
        if question is not None:
            gold, gold_row = entries[question.qid]
            yield question, Case(gold, trace, policy.settings), gold_row, row
    for question in cases:
        if not question.trace_line:
            gold, gold_row = entries[question.qid]
            case = Case(gold, Trace.missing(question.qid, question.run or ""), policy.settings)
            yield question, case, gold_row, None


def explanation(subject: str, options: Options) -> list[str]:
    """Return the lines about a subject; the name of a metric always means the metric."""
    if metric := metric_of(subject):
        return list(metric_lines(metric))
    if not (options.gold or options.trace) and (lines := _term_lines(subject)):  # a file means that a question is named
        return lines
    cases, wanted = cases_of(subject, options)
    return [line for case, label in cases for line in case_lines(case, label, wanted)]


def metric_of(name: str) -> Metric | None:
    """Return the metric of a name, an alias, or a name with a cutoff; None for another name."""
    name = canonical(name)
    measured = find(name)
    return METRICS.get(name) or (measured.metric if measured else None)


def _term_lines(subject: str) -> list[str]:
    """Return the entry of a term in the glossary or of a finding; nothing if there is none."""
    for page in ("glossary.md", "findings.md", "gold.md"):
        columns: list[str] = []
        with Path(shipped("docs", page)).open(encoding="utf-8") as file:
            for line in file:
                plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", line).replace("*", "").replace("`", "")
                cells = [cell.strip() for cell in plain.strip("|\n").split(" | ")]
                if not line.startswith("|"):
                    columns = []
                elif not columns:
                    columns = cells
                elif subject.casefold() in re.split(r", | \(|\)", cells[0].casefold()):
                    facts = [f"{column:<13}{cell}" for column, cell in zip(columns[1:-1], cells[1:-1], strict=True)]
                    head = [f"{subject} ({columns[0]})", "", cells[-1], ""]
                    return [*head, *facts, f"{'page':<13}{SITE}/{page.removesuffix('.md')}.html"]
    return []


def cases_of(subject: str, options: Options) -> tuple[list[tuple[Case, str]], list[Measure]]:
    """Return the runs of a question, one case with its label each, and the measures."""
    reader, policy = open_policy(options)
    golds = read_gold(reader, policy.gold)
    if options.gold or reader.has(policy.gold):  # without files only a metric can be explained
        reader.ledger.stop_on_problems()
    gold = golds.get(subject)
    if gold is None:
        fix = "To list the metrics: rag-eval metrics"
        if not reader.has(policy.gold):
            fix = f"There is no {policy.gold} here. Name the gold set: --gold FILE"
        if turns := [qid for qid, item in golds.items() if item.conversation == subject]:
            raise UsageError(f"{quoted(subject, 60)} is a conversation. Choose a turn: {', '.join(turns[:10])}")
        fix = hint(subject) or did_you_mean(subject, [*METRICS, *golds]) or fix
        raise UsageError(f"'{one_line(subject)}' is not a metric, a term or a qid of {policy.gold}. {fix}")
    traces = paired_traces(reader, golds, policy.trace)
    by_run, is_search = dict[str, Trace](), policy.judges_search
    if is_search and policy.baseline:
        baseline = BaselineFile(reader, None, reader.limits, (policy,), "")
        is_search = not (baseline.content and has_answers(baseline.recorded[0].questions))
    for trace in traces:
        is_search = is_search and bool(search_label(Case(golds[trace.qid], trace, policy.settings)))
        if trace.qid == gold.qid:
            by_run[trace.run] = trace
    reader.ledger.stop_on_problems()
    every = measures(options.cutoffs or DEFAULT_CUTOFFS)
    wanted = [item for item in every if policy.verdicts or item.metric.perspective != "judge"]
    answers = list(by_run.values()) or [Trace.missing(gold.qid)]
    cases = [Case(gold, trace, policy.settings) for trace in answers]
    return [(case, search_label(case) if is_search else label(case)) for case in cases], wanted
