"""Labels: the scores that people gave to answers, from CSV or from a spot-check, and the verdicts of a spot-check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from rag_eval.common.escaping import quoted
from rag_eval.contract.settings import MOST, SCORES, digest_of
from rag_eval.importers import ImportInputs
from rag_eval.importers.documents import csv_rows, objects
from rag_eval.importers.unwrap import number
from rag_eval.stats.sampling import hash_order, root_counts

Row = dict[str, Any]
Scale = tuple[float, float]
BINARY = (0.0, 1.0)
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_KNOWN = ("qid", "run", "rater", "input", "weight", "unit", "at", "note", "seed", "scale", *SCORES)


class Label(NamedTuple):
    """One person's scores of one answer, and their position in a file.

    ``input`` is the digest of the judged input, if it is known; ``weight`` is how many answers the answer represents in
    a stratified sample. Answers of one ``unit``, which is the question unless stated, depend on one another.
    """

    qid: str
    run: str
    rater: str
    input: str
    weight: float
    unit: str
    scores: Mapping[str, float]
    file: str
    line: int


def read_labels(
    inputs: ImportInputs, columns: Mapping[str, str], scale: Scale | None
) -> tuple[list[Label], dict[str, Scale]]:
    """Return the labels of all files with scores from 0 to 5, or 0 and 1, and the scale of each score in the files.

    ``columns`` names the column of a score if it differs from the score's name. Problems go to ``inputs``.
    """
    rows = [(path, line, row) for path in inputs.paths for line, row in _rows(inputs, path, columns)]
    stated = [score for score in SCORES if any(score in row for _, _, row in rows)]
    # Without a scale it is 0 to 1 if every label is 0, 1, yes or no, and none is from a spot-check; otherwise 0 to 5.
    is_checked = any("scale" in row for _, _, row in rows)
    scales: dict[str, Scale] = {}
    for score in stated:
        is_binary = all(_number(row[score]) in BINARY for _, _, row in rows if score in row)
        scales[score] = scale or (BINARY if is_binary and not is_checked else (0.0, float(MOST)))
    if rows and not scales and not inputs.problems:
        names = ", ".join(columns.get(score, score) for score in SCORES)
        hint = "Name the column of a score: --column groundedness=NAME."
        inputs.problem(rows[0][0], 1, "", f"has no score in any of the columns {names}", hint)
    labels: dict[tuple[str, ...], Label] = {}
    for path, line, row in rows:
        label = _label(inputs, path, line, row, scales)
        first = labels.setdefault((label.qid, label.run, label.rater, label.input), label) if label else None
        if label and first and label is not first:
            who = f"by {quoted(label.rater, 40)}" if label.rater else "without a rater"
            message = f"second label on {quoted(label.qid, 60)} {who}; the first is {first.file}:{first.line}"
            hint = "Remove one, or add a column rater with the names of the people."
            inputs.problem(path, line, "", message, hint)
    if not rows and not inputs.problems:
        inputs.problem(inputs.paths[0], 1, "", "has no labels", "Write one row for each answer: qid,groundedness")
    return list(labels.values()), scales


def _rows(inputs: ImportInputs, path: str, columns: Mapping[str, str]) -> Iterator[tuple[int, Row]]:
    """Yield lines and rows with the names of the scores as keys; empty cells are left out."""
    stated = {name: score for score, name in columns.items()}
    first = next(inputs.lines(path), None)
    if first is None:  # missing, which is a problem already, or empty
        return
    is_json = first[1].lstrip(b"\xef\xbb\xbf \t")[:1] in (b"{", b"[")
    rows: Iterator[tuple[int, Row]] = objects(inputs, path, "a label") if is_json else csv_rows(inputs, path)
    for line, row in rows:
        names = {name.strip().lstrip("\ufeff"): name for name in row}
        lacking = [name for name in ("qid", *stated) if name not in names]
        if lacking:
            hint = "Check --column." if lacking[0] != "qid" else "Name the columns in the first line: qid,groundedness"
            hint = "Separate columns by commas." if not is_json and b"," not in first[1] else hint
            inputs.problem(path, line if is_json else 1, "", f"has no column {quoted(lacking[0])}", hint)
            return
        renamed = {stated.get(name, name): row[key] for name, key in names.items() if name in stated or name in _KNOWN}
        yield line, {name: value for name, value in renamed.items() if value not in ("", None)}


def _number(value: Any, *, words: bool = True) -> float | None:
    word = str(value).strip().lower()
    return _WORDS[word] if words and word in _WORDS else number(value)


def _label(inputs: ImportInputs, path: str, line: int, row: Row, scales: Mapping[str, Scale]) -> Label | None:
    """Return a label with scores on the scale of the judge, or None with a problem."""
    scores = {}
    for score, (low, high) in scales.items():
        if score not in row:
            continue
        value = _number(row[score], words=(low, high) == BINARY)
        if value is None or not low <= value <= high:
            message = f"{score} {quoted(row[score], 40)} is not a number from {low:g} to {high:g}"
            inputs.problem(path, line, "", message, "Correct it, leave it empty, or name another scale with --scale.")
            return None
        scores[score] = value if high == 1 and low == 0 else (value - low) / (high - low) * MOST
    weight = _number(row.get("weight", 1), words=False)
    if weight is None or not 1e-6 <= weight <= 1e9:
        message = f"weight {quoted(row['weight'], 40)} is not a number from 0.000001 to 1000000000"
        inputs.problem(path, line, "", message, "Write how many answers it represents.")
        return None
    if not str(row.get("qid", "")).strip():
        inputs.problem(path, line, "", "has no qid", "Write the qid of the answer, or remove the row.")
        return None
    texts = {name: str(row.get(name, "")).strip() for name in ("qid", "run", "rater", "input")}
    unit = str(row.get("unit", "")).strip() or texts["qid"]
    return Label(**texts, weight=weight, unit=unit, scores=scores, file=path, line=line)


def sample_verdicts(rows: Sequence[Row], kinds: Mapping[str, str], size: int, seed: str) -> list[tuple[Row, Row]]:
    """Draw verdicts by the judge's score and the kind of question, as finely as ``size`` allows.

    Each comes behind the fields of a label that identify the graded answer, and say how many verdicts it represents.
    Rare grades are drawn more often, and weigh less. The order of the rows does not matter.
    """
    strata: dict[str, list[Row]] = {}
    cuts: tuple[Callable[[Row], str], ...] = (
        lambda row: f"{_graded(row)}, {kinds.get(row['qid'], '')}",
        _graded,
        lambda _: "all",
    )
    for stratum_of in cuts:
        strata = {name: list(some) for name, some in groupby(sorted(rows, key=stratum_of), key=stratum_of)}
        if len(strata) <= size:
            break
    counts, drawn = root_counts(strata, size), list[tuple[Row, Row]]()
    for name, some in strata.items():
        drawing = {"scale": "0-5", "weight": round(len(some) / counts[name], 6), "seed": seed}
        for row in hash_order(some, itemgetter("hash"), f"{seed} ")[: counts[name]]:
            about: Row = {field: row[field] for field in ("qid", "run") if field in row}
            drawn.append(({**about, "input": digest_of(row["input"]), **drawing}, row))
    return hash_order(drawn, lambda pair: pair[1]["hash"], f"{seed} order ")


def _graded(row: Row) -> str:
    score = "correctness" if row.get("groundedness") is None else "groundedness"
    return f"{score} {row.get(score)}"
