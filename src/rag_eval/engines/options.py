"""How a trace file is scored: what changes the time it takes and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rag_eval.engines.progress import SILENT

if TYPE_CHECKING:
    from rag_eval.engines.progress import Watch


ENGINES = {"process": "rag_eval.engines.process", "dask": "rag_eval.engines.dask_engine"}
"""The modules of the engines, loaded when they are asked for. All give the same report, byte for byte."""


class ExecutionOptions(NamedTuple):
    """By which of :data:`ENGINES`.

    ``jobs`` are processes, 0 as many as there are cores to use; ``scheduler`` is the address of dask's; ``watch`` is
    told how far reading has come.
    """

    engine: str = "process"
    jobs: int = 0
    scheduler: str = ""
    watch: Watch = SILENT


DEFAULT_EXECUTION = ExecutionOptions()
