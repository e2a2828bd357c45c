"""What rows of traces tell, many at once, where nobody asks for more of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import compress, count, repeat

from rag_eval.model import Trace
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from rag_eval.model import Chunk

    Row = dict[str, Any]
    T = TypeVar("T")
    Entry = tuple[int, str, str | None, str, str | None, str]
    Citing = tuple[int, str, Sequence[str], Sequence[Chunk], Sequence[str]]
    """The place of a line from 0, its claim, the distinct ids that this cites, the chunks, and the ids retrieved."""


_TOLD = {
    "chunks": "chunks",
    "scope": "scope",
    "confidence": "confidence",
    "policy_flags": "flags",
    "latency_ms": "latency",
    "usage": "usage",
    "guardrail": "guardrail",
    "ok": "ok",
    "timed_out": "timed_out",
}
TOLD = frozenset(_TOLD)
"""The fields of a row that only some metrics look at, and that are told where one does."""


class Fields(Mapping[str, "Sequence[Any]"]):
    """The columns of some fields, each decoded when it is asked for: most rows of a file may never be looked at.

    ``texts`` are their values as they stand in JSON, None where a row has none; ``decode`` makes values of a column.
    """

    def __init__(
        self,
        texts: Mapping[str, Sequence[str | None]],
        decode: Callable[[str, Sequence[str | None]], Sequence[Any]],
    ) -> None:
        self.texts, self._decode = texts, decode
        self._values: dict[str, Sequence[Any]] = {}

    def __getitem__(self, name: str) -> Sequence[Any]:
        if name not in self._values:
            self._values[name] = self._decode(name, self.texts[name])
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def holding(self, texts: Mapping[str, Sequence[str | None]]) -> Fields:
        """The same fields of other rows."""
        return Fields(texts, self._decode)


def _undecoded(_: str, texts: Sequence[str | None]) -> Sequence[Any]:
    return texts


NO_FIELDS = Fields({}, _undecoded)


class Told(NamedTuple):
    """What trace rows tell: a column for each field, an entry for each line.

    ``lines`` are their numbers. Of a line that tells nothing so far the qid is empty: it is blank, or has its row in
    ``rows`` by its number.
    ``cited`` and ``retrieved`` are ids as they stand in JSON, in quotes and parted by ``between``; none of them is
    empty or has an escape, and None says that no list was given. ``runs`` are none at all where no row tells one;
    ``more`` holds the values of those of :data:`TOLD` that were asked for, None where a row has none. ``size`` is that
    of the rows in bytes, as far as it is known.
    """

    lines: Sequence[int]
    qids: Sequence[str]
    runs: Sequence[str]
    claims: Sequence[str]
    cited: Iterable[str | None]
    retrieved: Iterable[str]
    between: str
    rows: Mapping[int, Row]
    more: Fields = NO_FIELDS
    size: int = 0

    def entries(self) -> Iterator[Entry]:
        """Number, qid, run, claim, citations and retrieved ids of each line."""
        columns = self.qids, self.runs or repeat(None), self.claims, self.cited, self.retrieved
        return zip(self.lines, *columns)  # noqa: B905 - endless ones among them

    def trace(self, entry: Entry) -> Trace:
        """The trace of one of the entries."""
        line, qid, run, claim, cited, ranked = entry
        cites = None if cited is None else tuple(dict.fromkeys(self.ids(cited)))
        ids = tuple(dict.fromkeys(self.ids(ranked)))
        place = bisect_left(self.lines, line) if self.more else 0
        values = {_TOLD[name]: column[place] for name, column in self.more.items()}
        more: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return Trace(qid, run or None, claim, cites, ids, line, **more)

    def only(self, kept: Sequence[bool]) -> Told:
        """What those of the lines tell that are ``kept``; none of them has a row."""

        def own(column: Iterable[T]) -> list[T]:
            return list(compress(column, kept))

        more = self.more.holding({name: own(column) for name, column in self.more.texts.items()})
        answers = own(self.claims), own(self.cited), own(self.retrieved)
        return Told(own(self.lines), own(self.qids), own(self.runs), *answers, self.between, {}, more)

    def citing(self, chosen: Sequence[bool]) -> list[Citing]:
        """What the chosen lines tell, of those that tell of chunks."""
        chunks = self.more.get("chunks") or repeat(None)
        columns = zip(count(), chosen, self.claims, self.cited, chunks, self.retrieved)
        return [
            (place, claim.strip(), list(dict.fromkeys(self.ids(cited or ""))), listed, self.ids(ranked))
            for place, own, claim, cited, listed, ranked in columns
            if own and listed is not None
        ]

    def ids(self, listed: str) -> list[str]:
        """The ids of a list, repeats among them."""
        return listed[1:-1].split(f'"{self.between}"') if listed else []


if TYPE_CHECKING:
    Batch = Told | Iterable[tuple[int, Row]]
    """What some traces tell, or valid rows with their lines."""
    QidOf = Callable[[Row, int], str | None]
    """What finds the qid of a row, in a line, that does not simply say it, or says what is wrong."""
