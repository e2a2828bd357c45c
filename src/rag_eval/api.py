"""The Python API: load the inputs, score the traces, judge, and compare the run with the base branch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_eval.analysis import Report as AnalysisReport
from rag_eval.common.escaping import quoted
from rag_eval.common.files import write
from rag_eval.common.paths import nearest_gates
from rag_eval.errors import MissingExtra, Problem, UsageError
from rag_eval.gates.selection import FIELDS, gold_fields
from rag_eval.metrics import single_score
from rag_eval.readers.problems import ProblemCollector
from rag_eval.readers.source import Reader
from rag_eval.run import Options, PathLike, as_cutoffs, as_path
from rag_eval.run.inputs import load_inputs
from rag_eval.run.scored_run import score_run

if TYPE_CHECKING:
    import pandas as pd

    from rag_eval.run.authority import Authority

Rows = PathLike | Iterable[Mapping[str, Any]] | Any
"""A path, rows as mappings, or a data frame of pandas or polars."""

__all__ = ["Options", "Report", "explain", "load_gold", "load_traces", "render", "run", "score", "validate"]


class Report(AnalysisReport):
    """The outcome of a run: every field of ``report.json``, and ways to show it.

    ``passed`` and ``failed_gates`` have the verdict. ``metrics`` has a value, an interval (``low``, ``high``) and the
    number of cases (``n``) by name, ``questions`` the label and scores of every question, ``findings`` the warnings.

    Examples:
        >>> report = score("examples/quickstart/gold.jsonl", "examples/quickstart/bad.jsonl")
        >>> report
        <Report: FAILED  3 of 4 gates · 6 of 14 questions wrong>
        >>> report.questions.failing[0].qid
        'Q02'
    """

    __slots__ = ()

    def __repr__(self) -> str:
        from rag_eval.rendering.terminal import verdict

        return f"<Report: {verdict(self)}>"

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        """Return the verdict and the gates as HTML, for notebooks."""
        from rag_eval.rendering.html import verdict_and_gates

        return verdict_and_gates(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of report.json.

        Examples:
            >>> score("examples/quickstart/gold.jsonl", "examples/quickstart/good.jsonl").to_dict()["verdict"]
            'passed'
        """
        from rag_eval.rendering.data_formats import render_json as as_text

        value: dict[str, Any] = json.loads(as_text(self))
        return value

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with one row for each question: qid, run, question, answerable, label, and metrics."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise MissingExtra("to_pandas", "pandas") from None
        names = "qid", "run", "question", "answerable", "label"
        rows = []
        for question in self.questions:
            scores = {name: single_score(name, score) for name, score in question.scores.items()}
            rows.append({**{name: getattr(question, name) for name in names}, **scores})
        return pd.DataFrame(rows, columns=None if rows else list(names))

    def to_html(self, path: PathLike) -> None:
        """Write the HTML report, one file that loads nothing from elsewhere; raise UsageError if it is unwritable."""
        write(as_path(path, "path"), render(self, "html"))


def score(
    gold: Rows,
    trace: Rows,
    gates: PathLike | Mapping[str, Any] | None = None,
    baseline: PathLike | AnalysisReport | None = None,
    *,
    k: int | Sequence[int] | None = None,
    perspectives: str | Sequence[str] = (),
    suite: str = "full",
    by: str | Sequence[str] = (),
) -> Report:
    """Score traces against a gold set and judge the gates.

    Args:
        gold: The path of a gold file, a list of dicts, or a data frame of pandas or polars.
        trace: The same for traces.
        gates: The path of an eval-gates.yml, or its content: a dict of metrics with their bounds, or of the whole file.
            Without it the default gates apply.
        baseline: An earlier report or its report.json, in place of the one that the gates file names.
        k: The cutoffs of the retrieval metrics; 1, 3, 5 and 10 by default.
        perspectives: Metric groups, such as ``["retrieval"]``: only these are measured and judged.
        suite: ``smoke`` or ``smoke:30`` for a part of the questions.
        by: Gold fields, such as ``["difficulty", "tags"]``, by which ``report.slices`` has every metric.

    Returns:
        The report. A failed gate is no error: read ``report.passed``.

    Raises:
        InputError: The input is invalid; the error lists every problem.
        UsageError: An argument is invalid.

    Examples:
        >>> report = score("examples/quickstart/gold.jsonl", "examples/quickstart/good.jsonl")
        >>> report.verdict, report.metrics["precision"].exact
        ('passed', '1')
        >>> gold = [{"qid": "Q1", "question": "How long?", "answerable": True,
        ...          "gold_claim_substr": ["30 days"], "gold_citations": ["a"]}]
        >>> trace = [{"qid": "Q1", "q": "How long?", "retrieved_ids": ["a"],
        ...           "answer_json": {"claim": "30 days.", "citations": ["a"]}}]
        >>> score(gold, trace, gates={"precision": {"min": 0.8}})
        <Report: PASSED  1 of 1 gate · 1 question right>
    """
    contents: dict[str, bytes] = {}
    paths = _named(gold, "gold", contents), _named(trace, "trace", contents)
    if isinstance(baseline, AnalysisReport):
        contents["<baseline>"] = render(baseline, "json").encode()
        baseline = "<baseline>"
    if isinstance(gates, Mapping):
        # Metrics with their bounds, or the whole content of such a file.
        whole = gates if {"gates", "version"} & gates.keys() else {"gates": gates}
        contents["<gates>"] = _as_json({"version": 1, **whole}, "gates")
        gates = "<gates>"
    options = Options(
        *paths,
        "" if gates is None else as_path(gates, "gates"),
        as_cutoffs(k),
        baseline="" if baseline is None else as_path(baseline, "baseline"),
        perspectives=_as_names(perspectives, "perspectives"),
        suite=_as_names([suite], "suite")[0],
        by=gold_fields(_as_names(by, "by")),
        contents=contents,
    )
    return run(options)


def _named(stated: Rows, what: str, contents: dict[str, bytes], default: str | None = None) -> str:
    """Return a path; for rows a name, under which ``contents`` gets them as JSON Lines."""
    if isinstance(stated, (str, bytes, os.PathLike)):
        return as_path(stated, what, default)
    contents[f"<{what}>"] = _as_lines(stated, what)
    return f"<{what}>"


def _as_lines(stated: Any, what: str) -> bytes:
    """Return rows as JSON Lines; an empty cell of a data frame is an absent field."""
    rows: Any = stated
    if hasattr(stated, "to_dicts"):  # polars
        rows = stated.to_dicts()
    elif hasattr(stated, "to_dict") and hasattr(stated, "columns"):  # pandas
        named = [name for name in stated.index.names if name is not None and name not in stated.columns]
        rows = (stated.reset_index(named) if named else stated).to_dict("records")
    if rows is not stated:
        rows = [{name: value for name, value in row.items() if not _is_missing(value)} for row in rows]
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise UsageError(f"{what}: expected a path, a list of dicts or a data frame, but got {type(stated).__name__}")
    return b"".join(_as_json(row, f"{what}, row {number}") + b"\n" for number, row in enumerate(rows, 1))


def _is_missing(value: Any) -> bool:
    """Return whether a cell has no value: None, or NaN, NaT and NA, which do not equal themselves."""
    if value is None or hasattr(value, "__len__"):  # arrays are compared element by element
        return value is None
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA is neither true nor false
        return True


def _as_json(value: object, where: str) -> bytes:
    """Return a value as JSON; raise UsageError if it has another type than JSON knows."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{where}: cannot be written as JSON ({error}). Give texts, numbers, lists and dicts"
        ) from None


def _plain(value: Any) -> Any:
    """Return numbers and arrays of numpy as plain Python values, and times as texts."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (tuple, set, frozenset)):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _as_names(stated: object, what: str) -> tuple[str, ...]:
    """Return one or several names; raise UsageError for another type."""
    several = tuple(stated) if isinstance(stated, Iterable) and not isinstance(stated, str) else (stated,)
    for item in several:
        if not isinstance(item, str):
            raise UsageError(f"{what}: {quoted(item, 40)} is not a name")
    return several


def render(report: AnalysisReport, form: str = "table", *, verbose: bool = False) -> str:
    """Return a report as text.

    ``form`` is ``table``, ``markdown``, ``html``, ``json``, ``junit``, ``sarif``, ``codequality`` or ``csv``.
    ``verbose`` shows everything in the table, not only what failed.

    Examples:
        >>> report = score("examples/quickstart/gold.jsonl", "examples/quickstart/bad.jsonl")
        >>> render(report).splitlines()[0]
        'FAILED  3 of 4 gates · 6 of 14 questions wrong'
    """
    from rag_eval.rendering import RENDERERS
    from rag_eval.rendering import render as rendered

    if not isinstance(report, AnalysisReport):
        raise UsageError(f"report: {type(report).__name__} is not a Report. For a comparison, use str() or to_dict()")
    if form not in RENDERERS:
        raise UsageError(f"form: {quoted(form)} is not one of {', '.join(RENDERERS)}")
    options = {"verbose": verbose, "in_python": True}
    return rendered(report, form, **(options if form == "table" else {}))


def explain(
    subject: str,
    gold: Rows = "",
    trace: Rows = "",
    gates: PathLike = "",
    *,
    k: int | Sequence[int] | None = None,
) -> str:
    """Return what ``rag-eval explain`` prints about a metric, a term or a question.

    ``gold`` and ``trace`` are files or rows, as for ``score``.

    Examples:
        >>> print(explain("precision").splitlines()[0])
        precision (answers; higher is better)
        >>> folder = "examples/quickstart"
        >>> print(explain("Q02", f"{folder}/gold.jsonl", f"{folder}/bad.jsonl").splitlines()[0])
        Q02: NOT_RETRIEVED (no gold evidence was retrieved)
    """
    from rag_eval.run.single_cases import explanation

    contents: dict[str, bytes] = {}
    paths = _named(gold, "gold", contents, ""), _named(trace, "trace", contents, "")
    options = Options(*paths, as_path(gates, "gates", nearest_gates()), as_cutoffs(k), contents=contents)
    return "\n".join(explanation(subject, options)).rstrip() + "\n"


def validate(*files: PathLike, kind: str | None = None) -> list[Problem]:
    """Return every problem of gold, trace, gates, report and run files; an empty list if all are valid.

    ``kind`` (``gold``, ``trace``, ``gates``, …) takes the files as this kind, whatever their names say.

    Examples:
        >>> validate("examples/quickstart/gold.jsonl", "examples/quickstart/eval-gates.yml")
        []
    """
    from rag_eval.readers.validation import KINDS, check

    if kind is not None and kind not in KINDS:
        raise UsageError(f"kind: {quoted(kind)} is not one of {', '.join(KINDS)}")
    reader = Reader(ProblemCollector())
    for file in files:
        check(reader, as_path(file, "files"), kind)
    return list(reader.ledger.problems)


def load_gold(file: PathLike) -> list[dict[str, Any]]:
    """Return the items of a gold file as dicts; raise InputError with every problem if it is invalid.

    Examples:
        >>> load_gold("examples/quickstart/gold.jsonl")[0]["qid"]
        'Q01'
    """
    from rag_eval.readers.gold_file import read_entries

    return _load(read_entries, file)


def load_traces(file: PathLike) -> list[dict[str, Any]]:
    """Return the traces of a file as dicts; raise InputError with every problem if it is invalid.

    Examples:
        >>> load_traces("examples/quickstart/good.jsonl")[0]["qid"]
        'Q01'
    """
    from rag_eval.readers.jsonl import read_trace_rows

    return _load(read_trace_rows, file)


def _load(read: Callable[[Reader, str], Iterable[tuple[Any, dict[str, Any]]]], file: PathLike) -> list[dict[str, Any]]:
    reader = Reader(ProblemCollector())
    rows = [row for _, row in read(reader, as_path(file, "file"))]
    reader.ledger.stop_on_problems()
    return rows


def run(options: Options, authority: Authority | None = None) -> Report:
    """Score and judge a run, and compare it with the base branch if there is an ``authority``.

    Raises InputError with all problems if the input cannot be judged.
    """
    inputs = load_inputs(options, authority)
    scored = score_run(inputs)
    sliced = {part.slice.partition("=")[0] for part in scored.report.slices}
    if unknown := [field for field in options.by if field not in sliced]:
        fix = f"Choose from: {', '.join(FIELDS)}, meta.NAME"
        raise UsageError(f"no gold item has the field {quoted(unknown[0])} to split by. {fix}")
    if authority is None:
        return Report(*scored.report)
    from rag_eval.governance import review

    return Report(*review(scored, authority, options))
