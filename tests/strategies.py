"""Valid gold and trace rows, made to collide: few ids, few words, every optional field, repeats and empty lists."""

from hypothesis import strategies as st

IDS = ["a", "b", "c", "d", "e"]
PATHS = ["manual.md", "hr/leave.md", "hr/pay.md"]
HEADINGS = ["", "Data", "Data > Retention", "Data >  Retention > Deleted", "Pay"]
TEXTS = ["kept for 30 days", "kept for thirty days", "nothing of the kind", "the same as ever"]
REFUSALS = ["not in context", "Not In Context", "  NOT in context \n"]
LEAKING = [
    "Write to jo@acme.org, they are kept for 30 days.",
    "Case EMP-123456, +49 30 901820",
    "kept, password: tr0ub4dor&3",
]
CLAIMS = [*TEXTS, *LEAKING, "Kept FOR 30 Days, they say.", "kept", "", " ", "it is what it is", *REFUSALS]

ids = st.lists(st.sampled_from(IDS), max_size=6)
claims = st.sampled_from(CLAIMS)
documents = st.sampled_from(["d1", "d2"])
sections = st.sampled_from(["1", "2"])
supports = st.lists(
    st.fixed_dictionaries(
        {"rel_path": st.sampled_from(PATHS), "heading_path": st.sampled_from(HEADINGS)},
        optional={"snippets": st.lists(st.sampled_from(TEXTS), max_size=2)},
    ),
    max_size=3,
)
chunk = st.fixed_dictionaries(
    {"id": st.sampled_from(IDS)},
    optional={
        "text": st.sampled_from(TEXTS),
        "doc_id": documents,
        "section": sections,
        "rel_path": st.sampled_from(PATHS),
        "heading_path": st.sampled_from(HEADINGS),
    },
)
flags = st.lists(st.sampled_from(["guardrail_blocked", "no_context", "uncertain", "cited"]), max_size=3)
STAGES = ["retrieve", "generate", "guardrail_input", "guardrail_output", "folder_select", "judge", "total"]
milliseconds = st.dictionaries(st.sampled_from(STAGES), st.integers(0, 2000) | st.floats(0, 1e15), max_size=3)
_tokens = st.integers(0, 10**15)
usage = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["small-1", "large-1"]),
        "input_tokens": _tokens,
        "output_tokens": _tokens,
        "cost_usd": st.integers(0, 3) | st.floats(0, 1e15),
    },
)
attack = st.fixed_dictionaries(
    {"kind": st.sampled_from(["input", "output"]), "positive": st.booleans(), "category": st.just("jailbreak")}
)
FACTS = ["30 days", "thirty days", "the kind", "0 days", "%"]
_LABELS = {
    "expected_answer": st.sampled_from(TEXTS),
    "relevance_grades": st.dictionaries(st.sampled_from(IDS), st.integers(0, 3), max_size=4),
    "relevant_docs": st.lists(documents, max_size=2),
    "expected_documents": st.lists(documents, max_size=2),
    "doc_grades": st.dictionaries(documents, st.integers(0, 3)),
    "supports": supports,
    "recency_conflict_rule": st.sampled_from(["cite_newer", "acknowledge_both", "cite_both"]),
    "gold_facts": st.lists(
        st.fixed_dictionaries(
            {"fact": st.sampled_from(FACTS)}, optional={"aliases": st.lists(st.sampled_from(FACTS), max_size=2)}
        ),
        max_size=3,
    ),
    "conversation": st.sampled_from(["C1", "C2"]),
    "sections": st.lists(st.fixed_dictionaries({"doc_id": documents, "section": sections}), max_size=2),
}
_asked = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {},
        optional={
            "expected_outcome": st.sampled_from(["success", "blocked", "no_results", "uncertain"]),
            "required_flags": flags,
            "forbidden_flags": flags,
            "min_citations": st.integers(0, 3),
            "latency_budget_ms": milliseconds,
        },
    ),
)


@st.composite
def gold_fields(draw, attacks=False):
    """The fields of a gold row but for qid and question."""
    answerable = draw(st.booleans())
    fields = {
        "answerable": answerable,
        "gold_claim_substr": draw(st.lists(st.sampled_from(TEXTS), max_size=2)) if answerable else [],
        "gold_citations": draw(ids) if answerable else [],
        **draw(st.fixed_dictionaries({}, optional=_LABELS)),
        **draw(_asked),
    }
    if fields.get("supports") and draw(st.booleans()):
        position = st.integers(0, len(fields["supports"]) - 1)
        fields["required_support_groups"] = draw(st.lists(st.lists(position, min_size=1, max_size=2), max_size=2))
    if attacks:
        fields["attack"] = draw(attack)
    return fields


_json_answer = st.fixed_dictionaries({"claim": claims}, optional={"citations": ids})
_answers = st.one_of(
    st.fixed_dictionaries({"answer_json": _json_answer}),
    st.fixed_dictionaries({"answer": claims}, optional={"citations": ids}),
    st.fixed_dictionaries({"answer": st.sampled_from(["kept. Citations: [a, b]", "kept\ncitations:[ ]"])}),
    st.just({"error": "the model timed out"}),
)
_trace_extras = st.fixed_dictionaries(
    {},
    optional={
        "retrieved_ids": ids,
        "chunks": st.lists(chunk, max_size=5),
        "abstained": st.booleans(),
        "guardrail": st.fixed_dictionaries(
            {},
            optional={
                "score": st.sampled_from([0, 0.4, 0.45, 0.5, 0.51, 1]),
                "blocked": st.booleans(),
                "leaks": st.lists(st.sampled_from(["pii", "secret"]), max_size=2),
            },
        ),
        "retrievals": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "query": st.sampled_from(TEXTS),
                    "ids": ids,
                    "chunks": st.lists(chunk, max_size=3),
                    "ms": st.integers(0, 2000),
                },
            ),
            max_size=3,
        ),
        "scope": st.fixed_dictionaries(
            {"mode": st.sampled_from(["off", "on", "on_with_fallback"])},
            optional={"folders": st.lists(st.sampled_from(["hr", "hr/", "it"]), max_size=2)},
        ),
    },
)
_operated = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {},
        optional={
            "ok": st.booleans(),
            "timed_out": st.booleans(),
            "confidence": st.sampled_from([0, 0.49, 0.5, 1]),
            "policy_flags": flags,
            "latency_ms": milliseconds,
            "usage": usage,
        },
    ),
)
trace_fields = st.tuples(_answers, _trace_extras, _operated).map(lambda parts: {**parts[0], **parts[1], **parts[2]})
