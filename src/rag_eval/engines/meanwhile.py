"""Work that need not wait: done by a process of its own while this one goes on, or by several at once.

It changes the time that a run takes and nothing else. Where there is but one core, or no process can be forked, the
work is done here, when its result is asked for.
"""

from __future__ import annotations

from contextlib import closing
from typing import Generic, TypeVar

from rag_eval.engines._children import MOST, Children, may_fork
from rag_eval.engines._cores import usable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_eval.how import How

S = TypeVar("S")
T = TypeVar("T")


def cores(how: How) -> int:
    """How many processes may work at once: those asked for, or the cores; one where none can be forked."""
    jobs = how.jobs or usable()
    return jobs if jobs > 1 and may_fork() else 1


class Meanwhile(Generic[T]):
    """What ``work`` gives, which has no effect but that. It has to be closed, asked for or not."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._children = Children(lambda _: work(), range(1), 1)

    def result(self) -> T:
        """What the work gives, or the error that it ends with; to be asked for once."""
        _, result = next(self._children.pieces(lambda: False))
        return result

    def close(self) -> None:
        """Leave no child behind."""
        self._children.close()


def spread(work: Callable[[S], T], items: Sequence[S], jobs: int) -> list[T]:
    """What ``work`` makes of each of the items, in their order, by so many processes."""
    if jobs < 2 or len(items) < 2:
        return list(map(work, items))
    parts = min(len(items), MOST)
    with closing(Children(lambda part: list(map(work, items[part::parts])), range(parts), jobs)) as children:
        made = dict(children.pieces(lambda: False))
    return [made[place % parts][place // parts] for place in range(len(items))]
