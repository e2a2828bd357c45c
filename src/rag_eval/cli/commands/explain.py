"""The command ``rag-eval explain``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rag_eval.cli.commands._shared import add_format, add_inputs, gates_path, print_lines, stdin_contents
from rag_eval.common.escaping import one_line
from rag_eval.common.paths import shipped
from rag_eval.errors import PASSED, UsageError

Path = str | os.PathLike[str]

if TYPE_CHECKING:
    from rag_eval.cases.case import Case
    from rag_eval.metrics import Measure, Metric
    from rag_eval.stats.tally import Score

_WIDTH = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    subject = "a metric, a label, a finding, another term of the glossary, or the qid of a question"
    parser.add_argument("subject", metavar="METRIC|TERM|QID", help=subject)
    add_inputs(parser)
    add_format(parser, ("text", "json"))


def run(args: argparse.Namespace) -> int:
    """Explain a metric, a label, a finding or another term, or why a question scored as it did.

    Examples:
      rag-eval explain precision
      rag-eval explain recall@5
      rag-eval explain WRONG_CLAIM
      rag-eval explain A0001 --gold eval/gold.jsonl --trace runs/trace.jsonl
      rag-eval explain A0001 --format json
    """
    if args.format == "json":
        if metric := _metric(args.subject):  # the name of a metric always means the metric
            fix = "For metrics, run: rag-eval metrics --format json"
            raise UsageError(f"'{metric.name}' is a metric, and --format json is for questions. {fix}")
        from rag_eval.cli.commands._explained import document
        from rag_eval.common.escaping import json_text

        sys.stdout.write(json_text(document(*_cases(args))))
    else:
        print_lines(*_lines(args))
    return PASSED


def explain(
    subject: str, gold: Path = "", trace: Path = "", gates: Path = "", *, k: int | Sequence[int] | None = None
) -> str:
    """Return what ``rag-eval explain`` prints about a metric, a term or a question.

    >>> print(explain("precision").splitlines()[0])
    precision (answers; higher is better)
    >>> folder = "examples/quickstart"
    >>> print(explain("Q02", f"{folder}/gold.jsonl", f"{folder}/bad.jsonl").splitlines()[0])
    Q02: NOT_RETRIEVED (no gold evidence was retrieved)
    """
    from rag_eval.run.options import cutoffs, path

    stated = {"gold": gold, "trace": trace, "gates": gates}
    files = {name: path(file, name) if file != "" else "" for name, file in stated.items()}
    lines = _lines(argparse.Namespace(subject=subject, k=cutoffs(k), **files))
    return "\n".join(lines).rstrip() + "\n"


def _lines(args: argparse.Namespace) -> list[str]:
    """Return the explanation; the name of a metric always means the metric."""
    if metric := _metric(args.subject):
        return list(metric_lines(metric))
    if lines := _term_lines(args):
        return lines
    cases, wanted = _cases(args)
    return [line for case in cases for line in _case(case, wanted)]


def _term_lines(args: argparse.Namespace) -> list[str]:
    """Return the entry of a term in the glossary or of a finding; nothing if a file means that a question was named."""
    if args.gold or args.trace:
        return []
    for page in ("glossary.md", "findings.md"):
        columns: list[str] = []
        with open(shipped("docs", page), encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start-up time
            for line in file:
                cells = [_plain(cell) for cell in line.strip("|\n").split(" | ")]
                if not line.startswith("|"):
                    columns = []
                elif not columns:
                    columns = cells
                elif args.subject.casefold() in re.split(r", | \(|\)", cells[0].casefold()):
                    facts = [f"{column:<13}{cell}" for column, cell in zip(columns[1:-1], cells[1:-1], strict=True)]
                    head = [f"{args.subject} ({columns[0]})", "", cells[-1], ""]
                    return [*head, *facts, f"{'page':<13}docs/{page}"]
    return []


def _plain(cell: str) -> str:
    """Return the text of a cell without Markdown markup."""
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", cell).replace("*", "").replace("`", "").strip()


def metric_lines(metric: Metric) -> Iterator[str]:
    """Yield the description of a metric, with an example of a gate on it."""
    from importlib.resources import files
    from json import dumps, loads

    from rag_eval.metrics import range_in_words, score_in_words
    from rag_eval.metrics._metric import Example
    from rag_eval.scoring.aggregations import values_in_words

    name = metric.name.replace("@k", "@5") + next(iter(metric.folds))
    limit = "0.05" if metric.bounded else {"ms": "2000", "USD": "0.01"}.get(metric.unit, "2")
    bound = "min: 0.80" if metric.better == "higher" else f"max: {limit}"
    if metric.name in ("groundedness", "claim_support"):
        bound = "max_drop: 0.05"  # levels differ between systems
    yield from (f"{metric.name} ({metric.perspective}; {metric.better} is better)", "", metric.text, "")
    yield f"applies to   {metric.applies}"
    yield f"score        {score_in_words(metric)}"
    yield f"range        {range_in_words(metric)}"
    yield f"direction    {metric.better} is better"
    yield from (f"value        {name}: {words}" for name, words in values_in_words(metric))
    yield f"needs        {', '.join(metric.needs) or 'nothing beyond the required fields'}"
    yield f"source       {metric.source}"
    yield from (f"as a gate    {name}: {{{bound}}}", "", "a case")
    rows = loads(files("rag_eval.metrics").joinpath("examples.json").read_text(encoding="utf-8")).get(metric.name, [])
    examples = [Example(*row) for row in rows]
    yield from (f"  {item}" for item in examples)
    for example in examples:
        if example.case:
            yield ""
            yield f"the first that {example.verb} {example.score.rstrip(',')} is"
            yield from (f"  {key:<10} {dumps(value, ensure_ascii=False)}" for key, value in example.case.items())


def _cases(args: argparse.Namespace) -> tuple[list[Case], list[Measure]]:
    """Return the runs of a question, one case each, and the measures."""
    from rag_eval.cases.case import Case
    from rag_eval.contract import Trace
    from rag_eval.metrics import METRICS, hint, measures
    from rag_eval.readers.gold_file import read_gold
    from rag_eval.readers.schema_validation import did_you_mean
    from rag_eval.run.inputs import DEFAULT_CUTOFFS, open_policy, paired_traces
    from rag_eval.run.options import Options

    contents = stdin_contents(args)
    options = Options(args.gold, args.trace, gates_path(args.gates), args.k, contents=contents)
    reader, policy, digests = open_policy(options)
    golds = read_gold(reader, policy.gold)
    if args.gold or reader.has(policy.gold):  # without files only a metric can be explained
        reader.ledger.stop_on_problems()
    gold = golds.get(args.subject)
    if gold is None:
        fix = "To list the metrics: rag-eval metrics"
        if not reader.has(policy.gold):
            fix = f"There is no {policy.gold} here. Name the gold set: --gold FILE"
        fix = hint(args.subject) or did_you_mean(args.subject, [*METRICS, *golds]) or fix
        raise UsageError(f"'{one_line(args.subject)}' is not a metric, a term or a qid of {policy.gold}. {fix}")
    traces = paired_traces(reader, golds, policy.trace, digests)
    by_run = {trace.run: trace for trace in traces if trace.qid == gold.qid}
    reader.ledger.stop_on_problems()
    every = measures(options.cutoffs or DEFAULT_CUTOFFS)
    wanted = [item for item in every if policy.verdicts or item.metric.perspective != "judge"]
    answers = list(by_run.values()) or [Trace.missing(gold.qid)]
    return [Case(gold, trace, policy.settings) for trace in answers], wanted


def _case(case: Case, wanted: Sequence[Measure]) -> Iterator[str]:
    from rag_eval.cases.labels import MEANING, label

    name = label(case)
    run = f", run {one_line(case.trace.run)}" if case.trace.run else ""
    yield f"{one_line(case.gold.qid)}{run}: {name} ({MEANING[name]})"
    yield ""
    yield from _facts(case)
    yield ""
    yield from _sentences(case)
    columns = {item.column: item for item in wanted if item.metric.level == "case"}
    scores = [(name, column.score(case)) for name, column in columns.items()]
    wide = max(map(len, columns), default=0)
    yield from (f"  {name:<{wide}} {_shown(name, score)}" for name, score in scores if score is not None)
    without = ", ".join(name for name, score in scores if score is None)
    yield f"  does not apply: {without or '–'}"
    yield ""


def _facts(case: Case) -> Iterator[str]:
    from rag_eval.textual.leaks import without

    gold, trace = case.gold, case.trace
    for message in gold.history or ():
        yield f"{message.role:<12} {one_line(message.content, _WIDTH)}"
    yield f"question     {one_line(gold.question, _WIDTH)}"
    yield f"answerable   {'yes' if gold.answerable else 'no'}"
    yield f"claim        {one_line(without(trace.claim.strip(), case.leaks), _WIDTH) or '(empty)'}"
    yield f"refused      {_refused(case)}"
    outcome = f"; {'' if case.contained else 'not '}found in the claim" if gold.substrings else ""
    yield f"gold text    {_joined(gold.substrings)}{outcome}"
    yield f"gold cites   {_joined(gold.citations)}"
    yield from _evidence_facts(case)
    yield f"cited        {_joined(case.cites) if trace.citations is not None else 'no list given'}"
    yield f"retrieved    {_joined(trace.retrieved)}"
    yield f"unretrieved  {_joined([cite for cite in case.cites if cite not in trace.retrieved])}"
    if case.ranking is not None:
        ranks = ", ".join(map(str, case.ranking.first_ranks)) or "none"
        yield f"ranks        of the relevant ({case.ranking.level} level, {case.ranking.relevant} in all): {ranks}"
    yield from _safety_facts(case)
    yield f"lines        gold {gold.line}, trace {trace.line or 'none'}"


def _evidence_facts(case: Case) -> Iterator[str]:
    """Yield an item's evidence other than gold citations, and the citations that point at it."""
    gold = case.gold
    if gold.citations or not case.evidence_level:
        return
    named = {
        "chunk": [f"{name} (grade {grade})" for name, grade in (gold.relevance_grades or {}).items()],
        "support": [
            " > ".join(filter(None, (support.rel_path, support.heading_path))) for support in gold.supports or ()
        ],
        "section": [f"{section.doc_id}, section {section.section}" for section in gold.sections or ()],
        "doc": [*(gold.expected_documents or gold.doc_grades or gold.relevant_docs or ())],
    }
    yield f"evidence     {_joined(named[case.evidence_level])} (by {case.evidence_level})"
    yield f"cites it     {_joined([name for name in case.cites if name in case.cited_evidence])}"


def _safety_facts(case: Case) -> Iterator[str]:
    """Yield the attack of the item, the guardrail's result, and detected leaks, masked."""
    from msgspec.structs import asdict

    from rag_eval.textual.leaks import masked

    attack, guardrail = case.gold.attack, case.trace.guardrail
    if attack is not None:
        of = f"{attack.kind}, {one_line('no category' if attack.category is None else attack.category, 60)}"
        yield f"attack       {'an attack' if attack.positive else 'a benign control'} ({of})"
    if guardrail is not None:
        values = asdict(guardrail).items()
        words = (f"{name} {_guardrail_word(value)}" for name, value in values if value is not None)
        yield f"guardrail    {'; '.join(words) or 'no result'}"
    for leak in case.leaks:
        yield f"leak         {leak.category}: {leak.detector} {one_line(masked(leak.text), 60)}"


def _guardrail_word(value: Any) -> str:
    if isinstance(value, tuple):
        return _joined([str(item) for item in value])
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _refused(case: Case) -> str:
    if case.refused_by or case.refused or not case.settings.builtin:
        return f"{'yes' if case.refused else 'no'}{', by ' if case.refused_by else ''}{case.refused_by}"
    from rag_eval.textual.refusals import examine

    partial = examine(case.claim)
    return f"no, though it begins with {partial}" if partial else "no"


def _sentences(case: Case) -> Iterator[str]:
    """Yield each sentence of the answer with its support in the chunks, if their texts are known."""
    from rag_eval.cli.commands._explained import chunk_shown, otherwise, shown

    for sentence in case.evidence:
        verdict = {None: "not checked", True: "supported", False: "not supported"}[sentence.supported]
        text = one_line(shown(case, sentence.start, sentence.end), _WIDTH)
        yield f"  {verdict} ({sentence.kind}, {sentence.support:.2f}): {text}"
        if sentence.chunk is not None and sentence.span is not None:
            chunk = [chunk for chunk in case.ranked_chunks if chunk.text is not None][sentence.chunk]
            passage = one_line(chunk_shown(case, case.chunk_texts[sentence.chunk], sentence.span), _WIDTH)
            yield f"    by {one_line(chunk.id, 60)}: {passage}"
        missing, numbers = ([shown(case, *span) for span in spans] for spans in (sentence.missing, sentence.made_up))
        wrong = [f"{reason}: {word}" for reason, word in otherwise(case, sentence)]
        lacking = {"words in no chunk": missing, "numbers in no chunk": numbers, "mismatch": wrong}
        yield from (f"    {what}: {_joined(words)}" for what, words in lacking.items() if words)
    if case.evidence:
        yield ""


def _joined(items: Sequence[str], limit: int = 10) -> str:
    shown = ", ".join(one_line(item, 60) for item in items[:limit])
    return f"{shown}, … ({len(items)} in all)" if len(items) > limit else shown or "–"


def _shown(name: str, score: Score) -> str:
    if name == "conversation_pass" and isinstance(score, tuple):
        return "right turn" if score[1] else "wrong turn"
    if isinstance(score, tuple) and isinstance(score[1], bool):
        return f"{score[0]:.3f} ({'attack' if score[1] else 'benign'})"
    if isinstance(score, tuple):
        return f"{score[0] / score[1]:.3f} ({score[0]}/{score[1]})"
    from rag_eval.rendering.number_format import number

    return f"{score:d}" if isinstance(score, int) else number(score, name)


def _metric(name: str) -> Metric | None:
    from rag_eval.metrics import METRICS, canonical, find

    name = canonical(name)
    if name in METRICS:
        return METRICS[name]
    measured = find(name)
    return measured.metric if measured else None
