"""How a trace file is scored: what changes the time it takes and nothing else."""

from __future__ import annotations

from rag_eval.progress import SILENT
from rag_eval.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rag_eval.progress import Watch


# An engine is a module with ``run(task) -> Scorer | None``, loaded when it is asked for; None where a file is not one
# to be shared out, and is read as a stream then. All give the same report, byte for byte.
ENGINES = {"process": "rag_eval.engines.process", "dask": "rag_eval.engines.cluster"}


class How(NamedTuple):
    """By which of :data:`ENGINES`.

    ``jobs`` are processes, 0 as many as there are cores to use; ``scheduler`` is the address of dask's; ``watch`` is
    told how far reading has come.
    """

    engine: str = "process"
    jobs: int = 0
    scheduler: str = ""
    watch: Watch = SILENT


USUAL = How()
