"""The straight line: load the inputs, score the traces, judge, and hold the run against the base branch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_eval.analysis.report import Report
from rag_eval.errors import InputError, Problem
from rag_eval.gates.policy import Policy
from rag_eval.readers.problems import Ledger
from rag_eval.readers.source import Reader
from rag_eval.run.inputs import Options, load_inputs, open_policy
from rag_eval.run.scored import score_run

if TYPE_CHECKING:
    from rag_eval.governance.base_policy import Authority

__all__ = ["Options", "run", "score"]

Path = str | os.PathLike[str]


def score(
    gold: Path,
    trace: Path,
    gates: Path | None = None,
    baseline: Path | None = None,
    *,
    k: int | Sequence[int] | None = None,
    perspectives: str | Sequence[str] = (),
    suite: str = "full",
    by: str | Sequence[str] = (),
) -> Report:
    """Score a trace file against a gold file and judge the gates.

    ``gold`` and ``trace`` are paths as ``rag-eval score`` takes them; ``gates`` is the path of an eval-gates.yml,
    without which the reference scorer's defaults hold; ``baseline`` is the report.json of an earlier run, in place of
    the one that the gates file names. ``k`` gives the cutoffs of the retrieval metrics (1, 3, 5 and 10 if not said).
    ``perspectives`` (such as ``["retrieval"]``) and ``suite`` (``smoke``, ``smoke:30``) narrow the run to a part, which
    ``report.scope`` then tells. ``by`` names gold fields (such as ``["difficulty", "tags"]``) by which
    ``report.slices`` has every metric. Raises :class:`~rag_eval.errors.InputError` with every problem where the files
    cannot be judged, and :class:`~rag_eval.errors.UsageError` where an argument cannot be; a failed gate is no error:
    read ``report.passed``.

    >>> report = score("examples/quickstart/gold.jsonl", "examples/quickstart/good.jsonl")
    >>> report.verdict, report.metrics["precision"].exact
    ('passed', '1')
    """
    from rag_eval.engines.run_arguments import cutoffs, fields, name, names, path

    policy = "" if gates is None else path(gates, "gates")
    earlier = "" if baseline is None else path(baseline, "baseline")
    part = names(perspectives, "perspectives"), name(suite, "suite")
    return run(
        Options(
            path(gold, "gold"),
            path(trace, "trace"),
            policy,
            cutoffs(k),
            None,
            "",
            earlier,
            *part,
            by=fields(names(by, "by")),
        )
    )


def run(options: Options, authority: Authority | None = None) -> Report:
    """Score and judge a run, and hold it against the base branch if there is an ``authority``.

    Raises InputError with all problems if the input cannot be judged.
    """
    reader, policy, digests = open_policy(options)
    base = None
    if authority:
        from rag_eval.governance.review_context import policy_of_base

        base = policy_of_base(authority, options, policy, reader)
    inputs = load_inputs(options, reader, policy, digests, base, authority)
    try:
        scored = score_run(inputs)
    except InputError as error:
        raise _of_another_tool(reader, policy, error) or error from None
    if authority is None:
        return scored.report
    from rag_eval.governance.policy_review import review
    from rag_eval.governance.review_context import ReviewContext

    return review(ReviewContext(authority, scored))


def _of_another_tool(reader: Reader, policy: Policy, error: InputError) -> InputError | None:
    """One problem in place of hundreds if gold or traces are the export of another tool: the command that reads it."""
    from rag_eval.importers import IMPORTERS
    from rag_eval.importers.detect import detect

    found = []
    for kind, path in (("gold", policy.gold), ("trace", policy.trace)):
        source = (
            reader._replace(ledger=Ledger()).open(path) if any(one.file == path for one in error.problems) else None
        )
        if source is None:
            continue
        with source:
            form = detect(source.head)
        if form and (name := getattr(form, kind)) and IMPORTERS[name].function:  # others are read in place
            out = "eval/gold.jsonl" if kind == "gold" else "runs/trace.jsonl"
            hint = f"Convert it: rag-eval import {name} {path} --out {out}"
            found.append(Problem(path, 0, "", f"is an export of another tool ({name}: it has {form.why})", hint))
    return InputError(found) if found else None
