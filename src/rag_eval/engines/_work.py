"""The unit of work of every engine: a range of a trace file into what its traces score. Pure but for the reading."""

from __future__ import annotations

import sys

from rag_eval.files.json_lines import told_lines
from rag_eval.files.log import Log, Replay
from rag_eval.files.pairs import finder, pairing
from rag_eval.files.part import Part
from rag_eval.files.rows import read_told
from rag_eval.files.source import Reader
from rag_eval.files.unreadable import Unreadable
from rag_eval.typed import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Self

    from rag_eval.files.ledger import Ledger
    from rag_eval.files.limits import Limits
    from rag_eval.files.log import Logged
    from rag_eval.files.part import File, Range
    from rag_eval.files.source import Digest
    from rag_eval.model import Gold
    from rag_eval.pairing import Questions
    from rag_eval.progress import Watch
    from rag_eval.told import Batch, QidOf

    Row = dict[str, Any]
    Pieces = Callable[["Work", list[Range]], AbstractContextManager[Iterator[tuple[int, "Piece"]]]]
    """What gives the pieces of ranges with their places among them, as they come.

    It may end early, and is asked again for what is left then.
    """


class Scorer(Protocol):
    """What takes traces and holds what they come to; another kind of scoring is another one of these.

    What it holds of a part of a file can be sent, and taken by one that holds what stands before.
    """

    @property
    def pool(self) -> frozenset[str] | None:
        """What parts have to agree on, None as long as it is open: see :class:`rag_eval.scoring.scorer.Scorer`."""

    def fresh(self, pool: frozenset[str] | None = None, *, apart: bool = False, behind: set[int] | None = None) -> Self:
        """One of the same kind that holds nothing; one that is ``apart`` is to be asked for its partial.

        ``behind`` are the places of items that a trace further behind in the file answers, so that none of those that
        come to this one counts. It adds those of its own to them when it is asked for its partial.
        """

    @property
    def least_shared(self) -> int:
        """Bytes of a file from which further processes pay: to have them takes 60 ms of processor time."""

    def enough(self, row: Row) -> Collection[str] | None:
        """What rows of the same fields have to tell besides what all do; None where they come to more than that.

        What they can tell: see :class:`rag_eval.told.Told`.
        """

    def take(self, batches: Iterable[Batch], qid_of: QidOf) -> None:
        """Take valid trace rows with their lines; ``qid_of`` finds the qid of a row that does not simply say it."""

    def partial(self) -> Any:
        """What it holds of a part."""

    def agrees(self, partial: Any) -> bool:
        """Whether a part can be taken as it is."""

    def absorb(self, partial: Any, before: int) -> None:
        """Take a part that begins ``before`` lines on."""

    def close(self) -> Any:
        """What all traces come to."""


class Work(NamedTuple):
    """All that scoring takes besides the traces. It can be sent to another process or another machine.

    ``scorer`` holds no case; its items are those asked of ``golds``. ``sound`` says that all of the gold could be
    read. ``pool`` is the first long list of the file, as far as known.
    """

    golds: Mapping[str, Gold]
    scorer: Scorer
    questions: Questions
    limits: Limits
    sound: bool
    pool: frozenset[str] | None = None


class Piece(NamedTuple):
    """What a range came to."""

    partial: Any
    log: Logged
    pool: frozenset[str] | None


def score_stream(work: Work, reader: Reader, path: str, digest: Digest | None) -> Scorer:
    """A trace file, read as a stream."""
    scorer = work.scorer.fresh()
    scorer.take(read_told(reader, path, scorer.enough, digest), _qids(work, reader.ledger, path))
    return scorer


def score_range(work: Work, path: str, file: File, cut: Range, behind: set[int] | None = None) -> Piece:
    """The lines that begin in a range of ``file``, which is called ``path``.

    ``behind``: see :meth:`Scorer.fresh`; of who scores the last range first, and the same set with each.
    """
    log, scorer = Log(), work.scorer.fresh(work.pool, apart=True, behind=behind)
    reader = Reader(log, work.limits._replace(lines=sys.maxsize))
    try:
        part = Part(path, reader, file, cut)
    except (OSError, Unreadable) as error:
        log.problem(path, 0, "", f"cannot be read: {error}", "Check the disk, or write the file again.")
        return Piece(scorer.partial(), log.closed(0, cut=True), scorer.pool)
    scorer.take(told_lines(reader, part, scorer.enough), _qids(work, log, path))
    return Piece(scorer.partial(), log.closed(part.count, cut=part.cut), scorer.pool)


def merged(work: Work, reader: Reader, path: str, cuts: list[Range], pieces: Pieces, watch: Watch) -> Scorer:
    """The scorer of a whole file from the pieces of its ranges, as if it had read the file itself."""
    scorer, replay, done = work.scorer.fresh(), Replay(reader.ledger, path, work.limits), 0
    more = True
    while more and done < len(cuts):
        # Where the habits of a piece refer to another long list than the file's first, it is scored again.
        with pieces(work._replace(pool=scorer.pool or work.pool), cuts[done:]) as found:
            for piece in _in_order(found, cuts[done:], watch):
                if not scorer.agrees(piece.partial):
                    break
                scorer.absorb(piece.partial, replay.lines)
                more = replay.take(piece.log)
                done += 1
                if not more:
                    break
    return scorer


def _in_order(found: Iterable[tuple[int, Piece]], cuts: Sequence[Range], watch: Watch) -> Iterator[Piece]:
    """The pieces as they stand in the file."""
    came: dict[int, Piece] = {}
    place = 0
    for number, piece in found:
        watch.advance(cuts[number].end - cuts[number].start)
        came[number] = piece
        while place in came:
            yield came.pop(place)
            place += 1


def _qids(work: Work, ledger: Ledger, path: str) -> QidOf:
    return finder(pairing(work.golds, ledger, path, work.questions), ledger, path, sound=work.sound)
