"""Engines that score a trace file in parts: the processes of this machine, or a dask cluster."""

from __future__ import annotations

from msgspec import Struct

from rag_eval.common.progress import SILENT, Watch

ENGINES = {"process": "rag_eval.engines.file_scorer", "dask": "rag_eval.engines.dask_engine"}
"""The modules of the engines, loaded on use. All give the same report, byte for byte."""


class ExecutionOptions(Struct, frozen=True):
    """The options that change only the duration of a run.

    ``engine`` is one of :data:`ENGINES`, ``jobs`` the number of processes (0: one for each core), ``scheduler`` the
    address of dask's, and ``watch`` observes the progress.
    """

    engine: str = "process"
    jobs: int = 0
    scheduler: str = ""
    watch: Watch = SILENT


DEFAULT_EXECUTION = ExecutionOptions()
