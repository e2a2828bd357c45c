"""Valid gold and trace rows, made to collide: few ids, few words, every optional field, repeats and empty lists."""

from hypothesis import strategies as st

IDS = ["a", "b", "c", "d", "e"]
PATHS = ["manual.md", "hr/leave.md", "hr/pay.md"]
HEADINGS = ["", "Data", "Data > Retention", "Data >  Retention > Deleted", "Pay"]
TEXTS = ["kept for 30 days", "kept for thirty days", "nothing of the kind", "the same as ever"]
REFUSALS = ["not in context", "Not In Context", "  NOT in context \n"]
CLAIMS = [*TEXTS, "Kept FOR 30 Days, they say.", "kept", "", " ", "it is what it is", *REFUSALS]

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
    "sections": st.lists(st.fixed_dictionaries({"doc_id": documents, "section": sections}), max_size=2),
}


@st.composite
def gold_fields(draw, attacks=False):
    """The fields of a gold row but for qid and question."""
    answerable = draw(st.booleans())
    fields = {
        "answerable": answerable,
        "gold_claim_substr": draw(st.lists(st.sampled_from(TEXTS), max_size=2)) if answerable else [],
        "gold_citations": draw(ids) if answerable else [],
        **draw(st.fixed_dictionaries({}, optional=_LABELS)),
    }
    if fields.get("supports") and draw(st.booleans()):
        place = st.integers(0, len(fields["supports"]) - 1)
        fields["required_support_groups"] = draw(st.lists(st.lists(place, min_size=1, max_size=2), max_size=2))
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
        "scope": st.fixed_dictionaries(
            {"mode": st.sampled_from(["off", "on", "on_with_fallback"])},
            optional={"folders": st.lists(st.sampled_from(["hr", "hr/", "it"]), max_size=2)},
        ),
    },
)
trace_fields = st.tuples(_answers, _trace_extras).map(lambda pair: {**pair[0], **pair[1]})
