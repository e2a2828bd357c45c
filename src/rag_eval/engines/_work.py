"""The unit of work of every engine: a range of a trace file into what its traces score. Pure but for the reading."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from rag_eval.files.log import Log, Replay
from rag_eval.files.pairs import identified, pairing
from rag_eval.files.part import Part
from rag_eval.files.rows import json_lines, read_traces
from rag_eval.files.source import Reader, Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from rag_eval.files.limits import Limits
    from rag_eval.files.log import Logged
    from rag_eval.files.part import File, Range
    from rag_eval.files.source import Digest
    from rag_eval.model import Gold
    from rag_eval.pairing import Questions
    from rag_eval.partial import Partial
    from rag_eval.progress import Watch
    from rag_eval.scoring import Scorer

    Pieces = Callable[["Work", list[Range]], AbstractContextManager[Iterator["Piece"]]]
    """What gives the pieces of ranges in their order; it may end early, and is asked again for what is left then."""


class Work(NamedTuple):
    """All that scoring takes besides the traces. It can be sent to another process or another machine.

    ``scorer`` holds no case; its items are those ``asked`` of ``golds``. ``sound`` says that all of the gold could be
    read. ``pool`` is the first long list of the file, as far as known.
    """

    golds: Mapping[str, Gold]
    asked: Mapping[str, Gold]
    scorer: Scorer
    questions: Questions
    limits: Limits
    sound: bool
    pool: frozenset[str] | None = None


class Piece(NamedTuple):
    """What a range came to."""

    partial: Partial
    log: Logged


def score_stream(work: Work, reader: Reader, path: str, digest: Digest | None) -> Scorer:
    """A trace file, read as a stream."""
    found, scorer = pairing(work.golds, reader.ledger, path, work.questions), work.scorer.fresh()
    rows = read_traces(reader, path, digest)
    _add(scorer, work, identified(found, rows, reader.ledger, path, sound=work.sound))
    return scorer


def score_range(work: Work, path: str, file: File, cut: Range) -> Piece:
    """The lines that begin in a range of ``file``, which is called ``path``."""
    log, scorer = Log(), work.scorer.fresh(work.pool, apart=True)
    reader = Reader(log, work.limits._replace(lines=sys.maxsize))
    try:
        part = Part(path, reader, file, cut)
    except (OSError, Unreadable) as error:
        log.problem(path, 0, "", f"cannot be read: {error}", "Check the disk, or write the file again.")
        return Piece(scorer.partial(), log.closed(0, cut=True))
    found = pairing(work.golds, log, path, work.questions)
    _add(scorer, work, identified(found, json_lines(reader, part, "trace"), log, path, sound=work.sound))
    return Piece(scorer.partial(), log.closed(part.count, cut=part.cut))


def merged(work: Work, reader: Reader, path: str, cuts: list[Range], pieces: Pieces, watch: Watch) -> Scorer:
    """The scorer of a whole file from the pieces of its ranges, as if it had read the file itself."""
    scorer, replay, done = work.scorer.fresh(), Replay(reader.ledger, path, work.limits), 0
    more = True
    while more and done < len(cuts):
        # Where the habits of a piece refer to another long list than the file's first, it is scored again.
        with pieces(work._replace(pool=scorer.pool or work.pool), cuts[done:]) as found:
            for piece in found:
                if not scorer.agrees(piece.partial):
                    break
                scorer.absorb(piece.partial, replay.lines)
                more = replay.take(piece.log)
                watch.advance(cuts[done].end - cuts[done].start)
                done += 1
                if not more:
                    break
    return scorer


def _add(scorer: Scorer, work: Work, rows: Iterable[tuple[str, dict[str, Any], int]]) -> None:
    asked, golds = work.asked, work.golds
    whole, take = len(asked) == len(golds), scorer.take
    for qid, row, line in rows:
        if whole or qid in asked or qid not in golds:
            take(qid, row, line)
