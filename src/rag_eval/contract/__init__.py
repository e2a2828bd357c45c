"""The contract: gold items and traces as typed records, and the settings of the metrics, verdicts among them.

The published JSON Schemas define the same records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec import Struct

from rag_eval.contract.records import Answer as Answer
from rag_eval.contract.records import Attack as Attack
from rag_eval.contract.records import Chunk as Chunk
from rag_eval.contract.records import Gold as Gold
from rag_eval.contract.records import Guardrail as Guardrail
from rag_eval.contract.records import Scope as Scope
from rag_eval.contract.records import Support as Support
from rag_eval.contract.records import Trace as Trace
from rag_eval.contract.records import Usage as Usage
from rag_eval.contract.records import content_hash as content_hash
from rag_eval.contract.records import content_of as content_of
from rag_eval.contract.records import inline_citations as inline_citations
from rag_eval.contract.records import item_hash as item_hash
from rag_eval.contract.records import without_citations as without_citations
from rag_eval.contract.records import without_reasoning as without_reasoning

DEFAULT_GOLD, DEFAULT_TRACE = "eval/gold.jsonl", "runs/trace.jsonl"
"""Where the files are looked for if nothing names them."""
LABEL_FILES = {"cases.jsonl": "labels-cases"}
LABEL_FILES |= {
    f"{kind}_labels.jsonl": f"labels-{kind}" for kind in ("retrieval", "context", "groundedness", "pipeline")
}
"""The files of a folder of labels, each with the schema of its rows; only the first is required."""
MOST = 5  # the best score of a judge; 0 is the worst
SCORES = ("groundedness", "correctness", "relevancy")
SCORE_OF = {**{f"judge_{name}": name for name in SCORES}, "judge_unsupported_claims": "groundedness"}
"""Metrics of the judge, and the score whose agreement with people speaks for them."""
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


class Limits(Struct, frozen=True):
    """Limits of reading, in MiB if no other unit is named; every limit is inclusive."""

    line_mib: int = 16  # one line of a JSONL file
    depth: int = 64  # nested arrays and objects
    lines: int = 10_000_000  # of one file
    whole_mib: int = 1024  # a file that is read whole, as a JSON array is
    expanded_mib: int = 16_384  # a compressed file after unpacking


class Grounding(NamedTuple):
    """Minimum shares of support for a supported sentence: of one that asserts, and of one that infers."""

    assertion: float = 0.31
    inference: float = 0.26


class Relevance(NamedTuple):
    """The minimum grade of a relevant unit, and the score of an item without relevant units."""

    relevant_from: int = 1
    no_relevant: str = "skip"


class Safety(NamedTuple):
    """Guardrail scores from which an input counts as detected and as blocked, and the words of a chunk that are a leak.

    ``internal_ids`` are regular expressions of names that no answer may contain.
    """

    warn: float = 0.4
    block: float = 0.5
    verbatim_words: int = 50
    internal_ids: tuple[str, ...] = ()


class Judge(NamedTuple):
    """A language model that judges answers: its pinned name, and the hashes of its prompt and rubric."""

    model: str = ""
    prompt: str = ""
    rubric: str = ""


class Verdict(Struct, frozen=True):
    """The scores of one answer; None for a score that the judge could not give, such as groundedness without texts."""

    groundedness: int | None
    correctness: int | None
    relevancy: int
    unsupported_claims: tuple[str, ...]
    reason: str = ""


class Settings(Struct, frozen=True):
    """Parameters of the metrics: the refusal token, refusal phrases, the k of the labels.

    ``prices`` are US dollars for a million tokens, by model and then by ``input`` and ``output``. ``builtin`` turns on
    the refusals of :mod:`rag_eval.textual.refusals`. ``verdicts`` are those of the ``judge``, by the hash of its input.
    """

    token: str = "not in context"
    phrases: tuple[str, ...] = ()
    k: int = 5
    groundedness: Grounding = Grounding()
    safety: Safety = Safety()
    prices: Mapping[str, Mapping[str, float]] = {}
    builtin: bool = False
    retrieval: Relevance = Relevance()
    judge: Judge = Judge()
    verdicts: Mapping[str, Verdict] = {}


def verdict_hash(judge: Judge, shown: Mapping[str, Any]) -> str:
    """Return the hash of a judge and of its input: a verdict is replayed only for exactly that."""
    return digest_of({"judge": judge._asdict(), "input": shown})


def digest_of(value: Any) -> str:
    """Return the hash of a JSON value, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def parse_reply(reply: str) -> Verdict:
    """Return the verdict in a reply, which may be in a code fence; raise ValueError for anything else."""
    begin, end = reply.find("{"), reply.rfind("}")
    if begin < 0 or end < begin:
        raise ValueError(f"no JSON object in the reply: {reply[:80]!r}")
    try:
        reply_fields = json.loads(reply[begin : end + 1])
    except (ValueError, RecursionError):
        raise ValueError(f"no valid JSON in the reply: {reply[begin : begin + 80]!r}") from None
    groundedness, correctness, relevancy = (_score(name, reply_fields.get(name)) for name in SCORES)
    if relevancy is None:
        raise ValueError("the reply has no relevancy")
    claims = reply_fields.get("unsupported_claims", [])
    if not isinstance(claims, list) or not all(isinstance(claim, str) for claim in claims):
        raise ValueError("unsupported_claims of the reply is not a list of texts")
    reason = reply_fields.get("reason", "")
    return Verdict(groundedness, correctness, relevancy, tuple(claims), reason if isinstance(reason, str) else "")


def _score(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1 or not 0 <= value <= MOST:
        raise ValueError(f"{name} of the reply is not a whole number from 0 to {MOST}: {str(value)[:40]!r}")
    return int(value)


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
