"""Gold items, traces and settings as typed records. The published JSON Schemas define the same records."""

from rag_eval.contract.gold import Attack, Fact, Gold, Section, Support, item_hash
from rag_eval.contract.settings import (
    DEFAULT_GOLD,
    DEFAULT_TRACE,
    Grounding,
    Limits,
    Relevance,
    Safety,
    Settings,
)
from rag_eval.contract.trace import (
    Answer,
    Chunk,
    Guardrail,
    Retrieval,
    Scope,
    Trace,
    Usage,
    inline_citations,
    without_citations,
)
from rag_eval.contract.verdict import Judge

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
