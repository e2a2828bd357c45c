"""Index: gaps in the index. Values come from run.json, once per run; impossible figures have no value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rag_eval.metrics._metric import metric
from rag_eval.stats.tally import Ratio

About = Mapping[str, Any]

_TERMS: dict[str, Any] = {"source": "core metrics", "better": "lower", "scale": "share", "level": "run"}


@metric("runs whose run.json counts documents", needs="run.index", **_TERMS)
def index_empty_docs(about: About) -> Ratio | None:
    """Share of documents without a chunk."""
    index = about.get("index") or {}
    return _share(index.get("documents_without_chunks"), index.get("documents"))


@metric("runs whose run.json counts chunks", needs="run.index", **_TERMS)
def index_skipped_chunks(about: About) -> Ratio | None:
    """Share of chunks that were not embedded, for any reason. It is the larger of attempted minus embedded chunks, and the sum of skipped chunks."""  # noqa: E501
    index = about.get("index") or {}
    attempted, embedded = index.get("chunks_attempted"), index.get("chunks_embedded")
    skipped = sum(index["chunks_skipped"].values()) if "chunks_skipped" in index else None
    if attempted is None and embedded is not None and skipped is not None:
        attempted = embedded + skipped
    counts = [skipped, attempted - embedded if attempted is not None and embedded is not None else None]
    known = [number for number in counts if number is not None]
    return _share(max(known), attempted) if known and min(known) >= 0 else None


def contradictions(about: About) -> Iterator[str]:
    """Yield the contradictions between figures of run.json's index."""
    index = about.get("index") or {}
    documents, without = index.get("documents"), index.get("documents_without_chunks")
    if documents is not None and without is not None and without > documents:
        yield f"{without} documents without chunks are more than all {documents}"
    attempted, embedded = index.get("chunks_attempted"), index.get("chunks_embedded")
    if attempted is None or embedded is None:
        return
    lost, skipped = attempted - embedded, index.get("chunks_skipped")
    if lost < 0:
        yield f"{embedded} chunks embedded are more than the {attempted} attempted"
    elif skipped is not None and (total := sum(skipped.values())) != lost:
        yield f"{attempted} chunks attempted and {embedded} embedded leave {lost}, and {total} are said to be skipped"


def _share(part: int | None, whole: int | None) -> Ratio | None:
    return (part, whole) if part is not None and whole and part <= whole else None
