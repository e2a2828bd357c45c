"""Cases with equal features score alike: a trace has the outcome that its case has by the definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import gold_row, trace_row
from depth import examples
from rag_eval.cases import coarse_label
from rag_eval.scoring.case_scorer import CaseScorer, extract_features, has_features
from seams import METRICS, Case, Gold, Settings, Trace, label, measures
from strategies import CLAIMS, IDS, chunk, gold_fields, ids, trace_fields

COLUMNS = list({one.column: one for one in measures((1, 3)) if one.metric.level == "case"}.values())
TERMS = [
    Settings(),
    Settings(k=1, token="  not in context \n"),
    Settings(phrases=("the kind", "thirty")),
    Settings(builtin=True),
]
MANY = [f"x{number}" for number in range(12)]

plain_golds = st.fixed_dictionaries(
    {
        "answerable": st.booleans(),
        "gold_claim_substr": st.lists(st.sampled_from(["kept ", "30 days", "Thirty"]), max_size=2),
        "gold_citations": ids | st.just([*MANY, "a", "b"]),
    },
    optional={"tags": st.just(["smoke"]), "category": st.just("faq")},
).map(lambda fields: fields if fields["answerable"] else {**fields, "gold_claim_substr": [], "gold_citations": []})
cited = ids | st.just([*IDS, *MANY])
LEAKING = ["30 days: jo@acme.org", "Call +49 30 901820.", "The api key is Zx81kk42qq", "AKIAIOSFODNN7EXAMPLF"]
answers = st.one_of(
    st.fixed_dictionaries({"claim": st.sampled_from([*CLAIMS, *LEAKING])}, optional={"citations": cited}).map(
        lambda answer: {"answer_json": answer}
    ),
    st.fixed_dictionaries(
        {"answer": st.sampled_from([*CLAIMS, "kept [citations: [a, b]]"])}, optional={"citations": cited}
    ),
)
plain_traces = st.builds(
    lambda answer, rest: {**answer, **rest},
    answers,
    st.fixed_dictionaries(
        {},
        optional={
            "retrieved_ids": ids | st.just([*MANY, *IDS, *(f"y{number}" for number in range(9))]),
            "latency_ms": st.just({"total": 20}),
            "run": st.just("one"),
            "abstained": st.booleans(),
            "ok": st.booleans(),
            "timed_out": st.booleans(),
            "chunks": st.lists(chunk, max_size=2),
            "guardrail": st.fixed_dictionaries({"blocked": st.booleans()}),
            "policy_flags": st.sampled_from([["guardrail_blocked"], []]),
        },
    ),
)
golds = st.one_of(plain_golds, plain_golds, gold_fields(), gold_fields(attacks=True))
traces = st.one_of(plain_traces, plain_traces, trace_fields)


def outcome(gold, row, terms, columns=COLUMNS):
    """The outcome by the definitions alone, in the order of the columns of an assessor."""
    case = Case(gold, Trace.from_row(row, gold.qid, 1), terms)
    scores = {one.column: one.score(case) for one in columns}
    return scores, label(case), coarse_label(case), case.ranking.level if case.is_answerable and case.ranking else ""


def found(scorer, gold, row):
    trace = Trace.from_row(row, gold.qid, 1)
    result = scorer.score(gold, trace, bool(scorer.suspects([trace])))
    scores = dict(zip(scorer.columns, (*result.scores, *result.case_scores), strict=True))
    return scores, result.label, result.coarse_label, result.level


@examples(200)
@given(st.lists(st.tuples(golds, traces), min_size=1, max_size=12), st.sampled_from(TERMS))
def test_a_trace_has_the_outcome_of_its_case_whatever_was_scored_before(pairs, terms):
    made = [(Gold.from_row(gold_row(**gold), 1), trace_row(**trace)) for gold, trace in pairs]
    scorer = CaseScorer({gold.qid: gold for gold, _ in made}, COLUMNS, terms)
    for gold, row in made:
        assert found(scorer, gold, row) == outcome(gold, row, terms)


SHALLOW = [[one for one in COLUMNS if one.name in names] for names in (("recall@1", "mrr"), ("ndcg@3", "f1@1"), ())]


@examples(300)
@given(
    st.lists(st.tuples(plain_golds, st.permutations([*IDS, *MANY[:4]]), answers), min_size=2, max_size=12),
    st.sampled_from(SHALLOW),
    st.sampled_from([Settings(k=1), Settings(k=4)]),
)
def test_what_stands_too_deep_for_all_that_is_asked_changes_nothing(items, columns, terms):
    pairs = [
        (Gold.from_row(gold_row(qid=f"Q{place}", **gold), 1), ranked, answer)
        for place, (gold, ranked, answer) in enumerate(items)
    ]
    scorer = CaseScorer({gold.qid: gold for gold, *_ in pairs}, columns, terms)
    for gold, ranked, answer in pairs:
        row = trace_row(**answer, retrieved_ids=ranked)
        assert found(scorer, gold, row) == outcome(gold, row, terms, columns)


@examples(200)
@given(st.lists(golds, min_size=1, max_size=8))
def test_an_item_without_a_trace_has_the_outcome_of_an_empty_answer(items):
    scorer = CaseScorer({}, COLUMNS, Settings())
    for gold in [Gold.from_row(gold_row(**one), 1) for one in items]:
        missing = scorer.score_missing(gold)
        case = Case(gold, Trace.missing(gold.qid), Settings())
        expected = {one.column: one.score(case) for one in COLUMNS}
        assert dict(zip(scorer.columns, (*missing.scores, *missing.case_scores), strict=True)) == expected
        assert missing.label == label(case)


def features(gold, row):
    trace = Trace.from_row(trace_row(**row), "Q1", 1)
    return extract_features(Gold.from_row(gold_row(**gold), 1), trace, Settings())[0]


GOLD = {"gold_claim_substr": ["thirty days"], "gold_citations": ["a", "b"]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"claim": "Thirty days.", "citations": ["a"]}, {"claim": "It is thirty days, I think", "citations": ["b"]}),
        ({"claim": "A week.", "citations": ["c", "c"]}, {"claim": "A month", "citations": ["x"]}),
        ({"claim": "not in context", "citations": []}, {"claim": "not in context", "citations": []}),
    ],
)
def test_cases_that_differ_in_words_alone_have_equal_features(one, other):
    first, second = ({"answer_json": answer, "retrieved_ids": ["a", "b", "c", "x"]} for answer in (one, other))
    assert features(GOLD, first) == features(GOLD, second)


@pytest.mark.parametrize("ids", [["b", "a"], ["a", "c"], ["c", "a", "b"], []])
def test_cases_that_rank_otherwise_have_other_features(ids):
    answer = {"claim": "Thirty days.", "citations": []}
    same = {"answer_json": answer, "retrieved_ids": ["a", "b", "c"]}
    assert (features(GOLD, same) == features(GOLD, {**same, "retrieved_ids": ids})) == (sorted(ids) == ["a", "b"])


def test_only_items_that_gold_citations_decide_have_features():
    assert has_features(Gold.from_row(gold_row(**GOLD, expected_answer="Thirty days."), 1))
    for fields in (
        {"relevance_grades": {"a": 2}},
        {"supports": []},
        {"attack": {"kind": "input", "positive": True}},
        {"doc_grades": {}},
    ):
        assert not has_features(Gold.from_row(gold_row(**GOLD, **fields), 1))


def test_metrics_that_depend_on_features_need_no_field_that_features_lack():
    needs = {name for one in METRICS.values() if one.depends_on in ("features", "ranking") for name in one.needs}
    assert needs <= {"trace.citations"}
