"""The unit of work of every engine: a byte range of a trace file into outcomes. Pure but for the reading."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rag_eval.cases.pairing import Questions
from rag_eval.contract import Gold
from rag_eval.readers.limits import Limits
from rag_eval.readers.problems import Ledger
from rag_eval.readers.ranges import ByteRange, File, ProblemMerger, RangeLedger, RangeProblems, RangeSource
from rag_eval.readers.source import Digest, Reader
from rag_eval.readers.trace_file import pair_finder, read_traces, trace_lines
from rag_eval.readers.unreadable import Unreadable
from rag_eval.scoring.scorer import OutcomeLog, PairTrace, Scorer

_SETTLE = 1 << 16  # traces, until they replace earlier ones


class Work(NamedTuple):
    """All that scoring needs besides the traces. It can be sent to another process or another machine.

    ``scorer`` has seen no trace. ``is_complete`` says that all of the gold could be read.
    """

    golds: Mapping[str, Gold]
    scorer: Scorer
    questions: Questions
    limits: Limits
    is_complete: bool


class RangeResult(NamedTuple):
    """The outcomes and the problems of a range."""

    log: OutcomeLog
    problems: RangeProblems


def score_stream(work: Work, reader: Reader, path: str, digest: Digest | None) -> Scorer:
    """Score a trace file, read as a stream."""
    scorer, pair = work.scorer.empty_copy(), _pair(work, reader.ledger, path)
    for traces in read_traces(reader, path, digest):
        scorer.add(traces, pair)
        if len(scorer.log) >= _SETTLE:
            scorer.settle()
    return scorer


def score_range(work: Work, path: str, file: File, lines: ByteRange, answered: Sequence[int] = b"") -> RangeResult:
    """Score the lines that begin in a range of ``file``, which is called ``path``.

    ``answered`` says of each item whether a trace behind the range answers it.
    """
    ledger, scorer = RangeLedger(), work.scorer.empty_copy()
    reader = Reader(ledger, work.limits._replace(lines=sys.maxsize))
    try:
        source = RangeSource(path, reader, file, lines)
    except (OSError, Unreadable) as error:
        ledger.problem(path, 0, "", f"cannot be read: {error}", "Check the disk, or write the file again.")
        return RangeResult(scorer.log, ledger.close(0, cut_off=True))
    pair = _pair(work, ledger, path)
    for traces in trace_lines(reader, path).blocks(source):
        scorer.add(traces, pair, answered)
    return RangeResult(scorer.log, ledger.close(source.count, cut_off=source.is_cut_off))


def merge(work: Work, reader: Reader, path: str, results: Iterable[RangeResult]) -> Scorer:
    """Return the scorer of a whole file from the results of its ranges, as if it had read the file itself."""
    scorer, problems = work.scorer.empty_copy(), ProblemMerger(reader.ledger, path, work.limits)
    for result in results:
        scorer.merge(result.log, problems.lines)
        if not problems.add(result.problems):
            break
    return scorer


def _pair(work: Work, ledger: Ledger, path: str) -> PairTrace:
    return pair_finder(work.golds, ledger, path, is_complete=work.is_complete, questions=work.questions)
