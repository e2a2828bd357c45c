"""--format scores gives the numbers of the reference scorer, on every valid input."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_scorer
from cases import gold_row, write_rows
from depth import examples
from rag_eval import api
from rag_eval.cli.score import reference_scores
from rag_eval.scoring import reference
from seams import UsageError, main
from strategies import CLAIMS, IDS, TEXTS

GATES = "precision=0.80,chr=0.75,under=0.05,over=0.10"
QIDS = ["Q1", "Q2", "Q3", "Q4"]

ids = st.lists(st.sampled_from(IDS), max_size=4)
maybe_empty_id = st.sampled_from(["", *QIDS, "nobody"])
# A case_id keeps a row without the other two from being a problem; the reference scorer does not read it.
names = st.fixed_dictionaries({}, optional={"qid": maybe_empty_id, "q_id": maybe_empty_id}).map(
    lambda row: row if any(row.values()) else {**row, "case_id": "Q1"}
)
answer = st.fixed_dictionaries({"claim": st.sampled_from(CLAIMS)}, optional={"citations": ids})
trace_rows = st.tuples(
    names,
    st.one_of(
        st.fixed_dictionaries({"answer_json": answer}),
        st.just({"answer": "kept for 30 days"}),
        st.just({"error": "down"}),
    ),
    st.fixed_dictionaries(
        {}, optional={"retrieved_ids": st.lists(st.sampled_from(IDS), max_size=9), "abstained": st.booleans()}
    ),
).map(lambda parts: parts[0] | parts[1] | parts[2])
answerable = st.fixed_dictionaries(
    {"gold_claim_substr": st.lists(st.sampled_from(TEXTS), max_size=2), "gold_citations": ids}
)
gold_fields = st.one_of(answerable, answerable, st.just({"answerable": False}))
limits = st.sampled_from(
    ["0.80", "0.75", "0.05", "0.10", "0", "1", "0.5", ".3333", "1e-1", "-1", "2", "0.66666666666666663"]
)
gates = st.tuples(limits, limits, limits, limits).map(lambda four: "precision={},chr={},under={},over={}".format(*four))


def ours(gold, trace, k=5, inline=""):
    return reference_scores(api.Options(str(gold), str(trace), cutoffs=(k,)), inline)[0]


def theirs(gold, trace, k=5, inline=GATES):
    wanted = dict(part.split("=") for part in inline.split(","))
    return plain_scorer.score(plain_scorer.rows(gold), plain_scorer.last_by_qid(trace), k, wanted)


@examples(600)
@given(st.lists(gold_fields, min_size=1, max_size=4), st.lists(trace_rows, max_size=7), st.integers(1, 12), gates)
def test_scores_are_those_of_the_reference_scorer(tmp_path_factory, golds, traces, k, inline):
    folder = tmp_path_factory.getbasetemp() / "reference"
    gold = write_rows(
        folder / "gold.jsonl", [gold_row(qid=qid, **item) for qid, item in zip(QIDS, golds, strict=False)]
    )
    trace = write_rows(folder / "trace.jsonl", traces)
    assert ours(gold, trace, k, inline) == theirs(gold, trace, k, inline)


# The three questions of the first published description of these scores, in words of this project.
STORE_GOLD = [
    gold_row(qid="S1", gold_claim_substr=["refuses empty keys"], gold_citations=["store#2"]),
    gold_row(qid="S2", answerable=False),
    gold_row(qid="S3", gold_claim_substr=["only port 8443"], gold_citations=["net#1"]),
]
STORE_TRACES = [
    {
        "qid": "S1",
        "retrieved_ids": ["store#1", "store#2", "faq#1"],
        "answer_json": {"claim": "The store refuses empty keys.", "citations": ["store#2"]},
    },
    {"qid": "S2", "retrieved_ids": ["store#1", "faq#1"], "answer_json": {"claim": "not in context", "citations": []}},
    {
        "qid": "S3",
        "retrieved_ids": ["net#1", "store#2"],
        "answer_json": {"claim": "Only port 8443 is open.", "citations": ["net#1"]},
    },
]


@pytest.fixture
def store(tmp_path):
    """Paths of the gold and the traces of the three questions."""
    return write_rows(tmp_path / "gold.jsonl", STORE_GOLD), write_rows(tmp_path / "trace.jsonl", STORE_TRACES)


def test_three_right_answers_give_full_marks(store):
    scores = ours(*store)
    assert [scores[name] for name in ("precision", "chr", "under_refusal", "over_refusal", "recall@k")] == [
        1,
        1,
        0,
        0,
        1,
    ]
    assert [scores[name] for name in ("answered", "refused", "answerable", "unanswerable")] == [2, 1, 2, 1]


def run(store, *more):
    return main(["score", "--gold", str(store[0]), "--trace", str(store[1]), "--format", "scores", *more])


def test_the_command_prints_the_fields_in_the_order_of_the_reference(store, capsys):
    run(store)
    expected = "answered refused answerable unanswerable precision chr under_refusal over_refusal recall@k k gates pass"
    assert list(json.loads(capsys.readouterr().out)) == expected.split()


def test_the_command_ends_with_0_when_the_four_gates_hold(store, capsys):
    assert run(store) == 0
    assert json.loads(capsys.readouterr().out)["pass"] is True


def test_the_command_ends_with_1_when_a_gate_does_not_hold(store, capsys):
    assert run(store, "--gates", "precision=1.01,chr=0,under=1,over=1") == 1
    assert json.loads(capsys.readouterr().out)["pass"] is False


def test_missing_traces_are_said_on_stderr_and_fail_nothing_by_themselves(store, capsys):
    write_rows(store[1], STORE_TRACES[:1])
    run(store)
    assert "2 missing traces." in capsys.readouterr().err


def test_gates_of_a_gates_file_take_the_place_of_the_defaults(store, tmp_path):
    policy = tmp_path / "gates.yml"
    policy.write_text("version: 1\nk: 1\ngates:\n  precision: {min: 0.30}\n", encoding="utf-8")
    scores = reference_scores(api.Options(str(store[0]), str(store[1]), str(policy)))[0]
    assert scores["gates"] == {"precision": "0.30", "chr": "0.75", "under": "0.05", "over": "0.10"}
    assert (scores["k"], scores["recall@k"]) == (1, 0.5)


def test_repeats_among_the_first_k_push_the_rest_down(tmp_path):
    gold = write_rows(tmp_path / "gold.jsonl", [gold_row(gold_citations=["b"])])
    row = {"qid": "Q1", "retrieved_ids": ["a", "a", "b"], "answer_json": {"claim": "kept", "citations": ["b"]}}
    trace = write_rows(tmp_path / "trace.jsonl", [row])
    assert [ours(gold, trace, k)["recall@k"] for k in (2, 3)] == [0.0, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "precision=0.8",
        "precision=0.8,chr=0.7,under=x,over=0.1",
        "precision=nan,chr=0,under=1,over=1",
        "=",
        "precision==1,chr=1,under=1,over=1",
    ],
)
def test_inline_gates_of_another_form_are_refused(text):
    with pytest.raises(UsageError, match=r"precision=0\.80,chr=0\.75,under=0\.05,over=0\.10"):
        reference.parse_gates(text)
