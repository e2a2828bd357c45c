"""What must hold of every metric, whatever the case."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import ROOT, gold_row, make_case, trace_row, write_rows
from depth import examples
from rag_eval import api
from rag_eval.analysis.judging import build_report
from rag_eval.contract import OPTIONAL, Answer
from rag_eval.stats.tally import as_float
from seams import METRICS, Case, Contract, Gold, Policy, Settings, Trace, as_json, enclosed, mean, measures, tally
from seams import score_rows as score
from strategies import IDS, gold_fields, trace_fields

GOLD, TRACE = Contract("gold"), Contract("trace")
MEASURES = measures((1, 3, 5))
OF_CASES = [item for item in {measure.column: measure for measure in MEASURES}.values() if item.metric.level == "case"]
TYPES = {"rate": bool, "share": tuple, "real": float, "count": int, "amount": float, "labelled": tuple}
SCORES = {
    "rate": st.booleans(),
    "share": st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    "real": st.floats(0, 1),
    "count": st.integers(0, 50),
    "amount": st.floats(0, 1e6),
}
answered = st.one_of(st.none(), trace_fields)


def scores(case):
    return {item.column: item.score(case) for item in OF_CASES}


@examples(300)
@given(gold_fields(), trace_fields)
def test_generated_rows_keep_the_contract(gold, trace):
    assert list(GOLD.faults(gold_row(**gold))) == []
    assert list(TRACE.faults(trace_row(**trace))) == []


@examples(800)
@given(gold_fields(), answered)
def test_every_score_is_of_its_scale_and_within_it(gold, trace):
    case = make_case(gold, trace)
    for item in OF_CASES:
        score = item.score(case)
        assert score is None or (type(score) is TYPES[item.metric.scale] and fits(item, score)), item.name


def fits(item, score):
    if item.metric.scale == "labelled":
        return 0 <= score[0] <= 1 and type(score[1]) is bool
    return 0 <= as_float(score) <= (1 if item.metric.bounded else float("inf"))


@examples(200)
@given(gold_fields(), answered)
def test_scoring_a_case_twice_gives_the_same(gold, trace):
    case = make_case(gold, trace)
    assert scores(case) == scores(case) == scores(make_case(gold, trace))


@examples(400)
@given(gold_fields(), trace_fields, st.data())
def test_repeats_in_what_was_retrieved_change_no_score(gold, trace, data):
    entries = trace.get("retrieved_ids", IDS[:3])
    again = [item for item in entries for _ in range(data.draw(st.integers(1, 3)))]
    once, often = ({**trace, "retrieved_ids": ids} for ids in (entries, again + entries))
    assert scores(make_case(gold, once)) == scores(make_case(gold, often))


@examples(200)
@given(gold_fields(attacks=True), answered)
def test_attack_items_count_in_no_metric_but_those_of_safety_and_operations(gold, trace):
    apart = [item for item in OF_CASES if item.metric.perspective not in ("safety", "operations")]
    case = make_case(gold, trace)
    assert {item.score(case) for item in apart} == {None}


def without(case, field):
    noun, name = OPTIONAL[field].split(".")
    gone = {name: None, **({"support_groups": None} if name == "supports" else {})}
    if field == "trace.citations":
        gone = {"answer_json": Answer(case.trace.claim)}
    changed = replace(getattr(case, noun), **gone)
    return Case(**{"gold": case.gold, "trace": case.trace, "settings": case.settings, noun: changed})


NEEDS = [(case.metric.name, field) for case in OF_CASES for field in case.metric.needs]
NEEDS = list(dict.fromkeys(NEEDS))


@examples(600)
@given(gold_fields(), trace_fields)
def test_a_metric_does_not_apply_without_a_field_that_it_needs(gold, trace):
    case = make_case(gold, trace)
    lacking = {field: without(case, field) for _, field in NEEDS}
    first = {item.metric.name: item for item in reversed(OF_CASES)}
    assert [(name, field) for name, field in NEEDS if first[name].score(lacking[field]) is not None] == []


NO_ANSWERS = (None, {"answer_json": {"claim": " ", "citations": []}}, {"error": "timed out"})
OF_ANSWERS = [item for item in OF_CASES if item.metric.perspective in ("citations", "groundedness", "judge")]


@examples(400)
@given(gold_fields(), trace_fields)
def test_without_an_answer_no_metric_of_answers_has_the_best_score(gold, trace):
    retrieval = {name: value for name, value in trace.items() if name in ("retrieved_ids", "chunks")}
    for answer in NO_ANSWERS:
        case = make_case(gold, answer and {**retrieval, **answer})
        best = [item.name for item in OF_ANSWERS if item.metric.better == "lower" and item.score(case) == 0]
        assert best == [], answer


def test_names_of_measures_are_unique():
    names = [measure.name for measure in MEASURES]
    assert len(names) == len(set(names))


def test_every_metric_says_in_one_sentence_what_it_is():
    assert [name for name, metric in METRICS.items() if not 10 < len(metric.summary) < 160] == []


@pytest.mark.parametrize("scale", SCORES)
@examples(150)
@given(data=st.data())
def test_tallies_add_in_any_grouping(scale, data):
    column = data.draw(st.lists(st.one_of(st.none(), SCORES[scale]), max_size=20))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(column)), max_size=3)))
    shares = [tally(column[low:high]) for low, high in zip([0, *cuts], [*cuts, len(column)], strict=True)]
    forwards, backwards = tally([]), tally([])
    for share in shares:
        forwards = forwards + share
    for share in reversed(shares):
        backwards = share + backwards
    assert mean(forwards) == mean(backwards) == mean(tally(column))


@examples(150)
@given(st.lists(st.one_of(SCORES["rate"], SCORES["share"]), min_size=1))
def test_the_mean_of_rates_and_ratios_is_exact(column):
    expected = sum(Fraction(*item) if isinstance(item, tuple) else Fraction(item) for item in column) / len(column)
    assert mean(tally(column)).number == expected


@examples(60)
@given(st.lists(st.tuples(gold_fields(), trace_fields), min_size=1, max_size=6))
def test_every_interval_encloses_its_value(pairs):
    golds = [Gold.from_row(gold_row(qid=f"Q{index}", **gold), index + 1) for index, (gold, _) in enumerate(pairs)]
    traces = [Trace.from_row(trace_row(**trace), gold.qid, 1) for gold, (_, trace) in zip(golds, pairs, strict=True)]
    card = score(zip(golds, traces, strict=True), MEASURES, Settings())
    report = build_report(card, {gold.qid: gold for gold in golds}, Policy())
    for name, result in report.metrics.items():
        low, high = (end if end is not None else result.value for end in (result.low, result.high))
        slack = 1e-9 * max(1, abs(result.value or 0))  # ends of intervals have ten digits
        assert result.value is None or low - slack <= result.value <= high + slack, name
    for item in OF_CASES:
        counter = Counter(case.scores[item.column] for case in report.questions if item.column in case.scores)
        results = enclosed(item.name, counter) if item.name in report.metrics else None
        if results is not None:  # whatever ratios the scores were, what the report keeps of them is all there is
            result = report.metrics[item.name]
            assert (result.low, result.high) == (results.low, results.high), item.name


def named(rows):
    return [{**row, "qid": f"Q{index}"} for index, row in enumerate(rows)]


def apart_from_lines(report):
    value = as_json(report)
    for question in value["questions"]:
        question["gold_line"] = question["trace_line"] = 0
    for entry in value["inputs"]:
        entry["sha256"] = ""
    for note in value["notes"]:
        note["line"] = 0
    return value


runs = st.sampled_from([{}, {"run": "one"}, {"run": "two"}, {"run": ""}])
notable = st.sampled_from([{}, {}, {"mine": 1}, {"retrieved": []}])
some_golds = st.lists(gold_fields(), min_size=1, max_size=5)


@examples(60)
@given(golds=some_golds, data=st.data())
def test_the_order_of_lines_changes_nothing_but_line_numbers_and_digests(tmp_path_factory, golds, data):
    folder = tmp_path_factory.getbasetemp() / "order"
    items = [gold_row(question=f"Question {index}?", **gold) for index, gold in enumerate(golds)]
    items = named(items)
    picked = st.tuples(st.sampled_from([*items, gold_row(qid="unknown")]), runs)
    keys = data.draw(st.lists(picked, max_size=8, unique_by=lambda pair: (pair[0]["qid"], pair[1].get("run") or "")))
    traces = [
        {**trace_row(**data.draw(trace_fields)), **run, **data.draw(notable), "qid": item["qid"]} for item, run in keys
    ]
    reports = []
    for each_items, each_traces in (
        (items, traces),
        (data.draw(st.permutations(items)), data.draw(st.permutations(traces))),
    ):
        paths = write_rows(folder / "gold.jsonl", each_items), write_rows(folder / "trace.jsonl", each_traces)
        reports.append(apart_from_lines(api.score(*paths)))
    assert reports[0] == reports[1]


NEW_METRIC = '''

@metric("all items", source="a test", scale="share")
def brevity(case: Case) -> Ratio | None:
    """Share of ten words that the claim leaves free. Longer claims score 0."""
    return (max(0, 10 - len(case.claim.split())), 10) if case.counts else None
'''
NEW_EXAMPLES = [
    {
        "because": "the claim has two words",
        "gold": {},
        "trace": {"answer_json": {"claim": "two words"}},
        "score": [8, 10],
    },
    {
        "because": "the item is an attack",
        "gold": {"attack": {"kind": "input", "positive": True, "category": "x"}},
        "trace": None,
        "score": None,
    },
]


@pytest.fixture(scope="module")
def copy_with_a_new_metric(tmp_path_factory):
    """The repository with one function and one file of examples more, and the generator run."""
    copy = tmp_path_factory.mktemp("copy")
    for name in ("src", "schemas", "tools", "examples", "docs", "tests/examples", "tests/gaming"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "action.yml", copy)
    answers = copy / "src" / "rag_eval" / "metrics" / "answers.py"
    text = answers.read_text(encoding="utf-8")
    text = text.replace(
        "    from rag_eval.cases import Case\n",
        "    from rag_eval.cases import Case\n    from rag_eval.stats.tally import Ratio\n",
    )
    answers.write_text(text + NEW_METRIC, encoding="utf-8")
    write_rows(copy / "tests" / "examples" / "brevity.jsonl", NEW_EXAMPLES)
    run_in(copy, str(copy / "tools" / "generate.py"))
    return copy


def run_in(copy, *arguments):
    """Python in ``copy``, with the package of the copy."""
    environ = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environ, capture_output=True, text=True, check=True
    ).stdout


def test_a_new_metric_is_explained(copy_with_a_new_metric):
    assert "leaves free" in run_in(copy_with_a_new_metric, "-m", "rag_eval", "explain", "brevity")


def test_a_new_metric_is_listed(copy_with_a_new_metric):
    assert "brevity" in run_in(copy_with_a_new_metric, "-m", "rag_eval", "metrics")


def test_a_new_metric_is_documented_with_its_examples(copy_with_a_new_metric):
    page = (copy_with_a_new_metric / "docs" / "metrics" / "answers.md").read_text(encoding="utf-8")
    assert "## `brevity`" in page
    assert "scores **8/10** when the claim has two words." in page


def test_a_new_metric_is_explained_with_its_examples(copy_with_a_new_metric):
    output = run_in(copy_with_a_new_metric, "-m", "rag_eval", "explain", "brevity")
    assert "  scores 8/10 when the claim has two words\n  does not apply when the item is an attack\n" in output
    assert '{"answer_json": {"claim": "two words"}}' in output


def test_a_new_metric_can_be_gated_and_is_reported(copy_with_a_new_metric):
    gates = copy_with_a_new_metric / "gates.yml"
    gates.write_text("version: 1\ngates:\n  brevity: {min: 0.1}\n", encoding="utf-8")
    quickstart = copy_with_a_new_metric / "examples" / "quickstart"
    inputs = [
        "--gold",
        str(quickstart / "gold.jsonl"),
        "--trace",
        str(quickstart / "good.jsonl"),
        "--gates",
        str(gates),
    ]
    report = json.loads(run_in(copy_with_a_new_metric, "-m", "rag_eval", "score", *inputs, "--format", "json"))
    assert report["metrics"]["brevity"]["n"] == 14
    assert report["gates"][0]["name"] == "brevity"


def test_a_new_metric_touches_two_hand_written_files(copy_with_a_new_metric):
    generated = {
        "docs/metrics.md",
        "docs/metrics/answers.md",
        "schemas/eval-gates.schema.json",
        "src/rag_eval/metrics/examples.json",
    }
    assert changed_files(copy_with_a_new_metric) - generated == {
        "src/rag_eval/metrics/answers.py",
        "tests/examples/brevity.jsonl",
    }


def changed_files(copy):
    """Files of the copied folders that are not as they are in the repository."""
    folders = ("src", "schemas", "tools", "examples", "tests", "docs")
    files = [path for folder in folders for path in (copy / folder).rglob("*") if path.is_file()]
    files.append(copy / "action.yml")
    names = [path.relative_to(copy).as_posix() for path in files]
    return {name for name in names if digest(ROOT / name) != digest(copy / name)}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
