"""Gold items, traces and settings as typed records. The published JSON Schemas define the same records."""

from collections.abc import Iterator

from rag_eval.contract.records import (
    Answer,
    Attack,
    Chunk,
    Fact,
    Gold,
    Guardrail,
    Retrieval,
    Scope,
    Section,
    Support,
    Trace,
    Usage,
    inline_citations,
    item_hash,
    without_citations,
)
from rag_eval.contract import (
    DEFAULT_GOLD,
    DEFAULT_TRACE,
    Grounding,
    Judge,
    Limits,
    Relevance,
    Safety,
    Settings,
)

__all__ = [
    "DEFAULT_GOLD",
    "DEFAULT_TRACE",
    "OPTIONAL",
    "Answer",
    "Attack",
    "Chunk",
    "Fact",
    "Gold",
    "Grounding",
    "Guardrail",
    "Judge",
    "Limits",
    "Relevance",
    "Retrieval",
    "Safety",
    "Scope",
    "Section",
    "Settings",
    "Support",
    "Trace",
    "Usage",
    "inline_citations",
    "item_hash",
    "present_fields",
    "without_citations",
]

OPTIONAL = {
    "gold.attack": "gold.attack",
    "gold.expected_answer": "gold.expected_answer",
    "gold.supports": "gold.supports",
    "gold.recency_conflict_rule": "gold.recency_rule",
    "gold.sections": "gold.sections",
    "gold.gold_facts": "gold.facts",
    "gold.expected_claims": "gold.expected_claims",
    "gold.forbidden_claims": "gold.forbidden_claims",
    "gold.expected_documents": "gold.expected_documents",
    "gold.expected_outcome": "gold.expected_outcome",
    "gold.required_flags": "gold.required_flags",
    "gold.forbidden_flags": "gold.forbidden_flags",
    "gold.min_citations": "gold.min_citations",
    "gold.latency_budget_ms": "gold.latency_budget",
    "gold.conversation": "gold.conversation",
    "trace.citations": "trace.citations",
    "trace.chunks.text": "trace.chunks",
    "trace.chunks.doc_id": "trace.chunks",
    "trace.scope": "trace.scope",
    "trace.timed_out": "trace.timed_out",
    "trace.latency_ms": "trace.latency",
    "trace.usage": "trace.usage",
    "trace.guardrail": "trace.guardrail",
    "trace.retrievals": "trace.retrievals",
}
"""Fields that a metric may need, as the contract writes them, and where a case has their values: None if absent."""
_WITHIN = "trace.chunks."


def present_fields(row: Gold | Trace) -> Iterator[str]:
    """Yield the names in ``OPTIONAL`` of the fields that a row has; one chunk with a field is enough."""
    kind = "gold." if isinstance(row, Gold) else "trace."
    for name, attribute in OPTIONAL.items():
        if not name.startswith(kind):
            continue
        value = getattr(row, attribute.removeprefix(kind))
        if name.startswith(_WITHIN):
            part = name.removeprefix(_WITHIN)
            value = next((chunk for chunk in value or () if getattr(chunk, part) is not None), None)
        if value is not None:
            yield name
