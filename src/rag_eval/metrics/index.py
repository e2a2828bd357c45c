"""Index: did all of the corpus get into it. What run.json says, once a run; figures that cannot be have no value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rag_eval.metrics._metric import metric

if TYPE_CHECKING:
    from rag_eval.stats.tally import Ratio

    About = Mapping[str, Any]

_SOURCE = "core metrics"
_TERMS: dict[str, Any] = {"source": _SOURCE, "better": "lower", "scale": "share", "level": "run"}


@metric("runs whose run.json counts documents", needs="run.index", **_TERMS)
def index_empty_docs(about: About) -> Ratio | None:
    """Share of the documents that gave no chunk."""
    index = about.get("index") or {}
    return _share(index.get("documents_without_chunks"), index.get("documents"))


@metric("runs whose run.json counts chunks", needs="run.index", **_TERMS)
def index_skipped_chunks(about: About) -> Ratio | None:
    """Share of the chunks to embed that were not, for whatever reason. Those attempted less those embedded, or those skipped by reason, whichever is more."""  # noqa: E501
    index = about.get("index") or {}
    attempted, embedded = index.get("chunks_attempted"), index.get("chunks_embedded")
    skipped = sum(index["chunks_skipped"].values()) if "chunks_skipped" in index else None
    if attempted is None and embedded is not None and skipped is not None:
        attempted = embedded + skipped
    ways = [skipped, attempted - embedded if attempted is not None and embedded is not None else None]
    told = [number for number in ways if number is not None]
    return _share(max(told), attempted) if told and min(told) >= 0 else None


def contradictions(about: About) -> Iterator[str]:
    """What the figures of run.json's index say against one another, in words."""
    index = about.get("index") or {}
    documents, without = index.get("documents"), index.get("documents_without_chunks")
    if documents is not None and without is not None and without > documents:
        yield f"{without} documents without chunks are more than all {documents}"
    attempted, embedded = index.get("chunks_attempted"), index.get("chunks_embedded")
    if attempted is not None and embedded is not None:
        yield from _of_chunks(attempted, embedded, index.get("chunks_skipped"))


def _of_chunks(attempted: int, embedded: int, skipped: Mapping[str, int] | None) -> Iterator[str]:
    lost, told = attempted - embedded, sum((skipped or {}).values())
    if lost < 0:
        yield f"{embedded} chunks embedded are more than the {attempted} attempted"
    elif skipped is not None and told != lost:
        yield f"{attempted} chunks attempted and {embedded} embedded leave {lost}, and {told} are said to be skipped"


def _share(part: int | None, whole: int | None) -> Ratio | None:
    return (part, whole) if part is not None and whole and part <= whole else None
