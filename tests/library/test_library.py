"""The package as a library: what it publishes, scoring objects in memory, and how a report shows itself."""

import doctest
import json
from html import unescape
from importlib import import_module

import pytest

import rag_eval
from cases import ROOT, gold_row, trace_row

FOLDER = ROOT / "examples" / "quickstart"
GOLD, GOOD, BAD, GATES = (FOLDER / name for name in ("gold.jsonl", "good.jsonl", "bad.jsonl", "eval-gates.yml"))
ROWS = [gold_row(qid="Q1", gold_claim_substr=["30 days"], gold_citations=["a"])]
TRACES = [trace_row(qid="Q1", retrieved_ids=["a"], answer_json={"claim": "30 days.", "citations": ["a"]})]


class Frame:
    """A data frame, which refuses to be compared with a text."""

    __hash__ = None

    def __eq__(self, other):
        raise ValueError("The truth value of a DataFrame is ambiguous.")


@pytest.fixture(scope="module")
def report():
    return rag_eval.score(GOLD, BAD, GATES)


def test_dir_lists_what_is_published():
    assert dir(rag_eval) == sorted(rag_eval.__all__)
    assert {"score", "compare", "explain", "validate", "render", "load_gold", "load_traces"} <= set(dir(rag_eval))
    assert all(getattr(rag_eval, name) for name in dir(rag_eval))


def test_the_api_page_has_every_public_name_and_shows_examples_as_code():
    """Examples outside of a section of that name are shown as quotations."""
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    assert [name for name in rag_eval.__all__ if name[0] != "_" and f"::: rag_eval.{name}\n" not in page] == []
    texts = [getattr(rag_eval, name).__doc__ for name in dir(rag_eval)] + [rag_eval.Report.to_dict.__doc__]
    assert [text for text in texts if ">>>" in text.partition("Examples:\n")[0]] == []


@pytest.mark.parametrize("module", ["rag_eval.api", "rag_eval.run.run_comparison"])
def test_the_examples_in_docstrings_print_what_they_say(module, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testmod(import_module(module))
    assert result.failed == 0 < result.attempted


def test_every_public_function_has_an_example():
    for name in ("score", "compare", "explain", "validate", "render", "load_gold", "load_traces", "Report"):
        assert ">>> " in getattr(rag_eval, name).__doc__, name


def test_a_report_shows_itself(report):
    assert repr(report) == "<Report: FAILED  4 of 8 gates · 6 of 14 questions wrong>"
    assert str(report) == rag_eval.render(report) == rag_eval.render(report, "table")
    assert "rag_eval.render(report, verbose=True) shows everything." in " ".join(str(report).split())
    assert "over_refusal" in rag_eval.render(report, verbose=True)
    shown = report._repr_html_()
    assert shown.count("<tr>") == 9
    assert "<script" not in shown


def test_a_report_becomes_data(report, tmp_path):
    assert report.to_dict() == json.loads(rag_eval.render(report, "json"))
    report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == rag_eval.render(report, "html")
    with pytest.raises(rag_eval.UsageError, match=r"r\.html cannot be written: file exists"):
        report.to_html(tmp_path / "report.html" / "r.html")


def test_failing_questions_are_at_hand(report):
    assert [item.qid for item in report.questions.failing] == ["Q02", "Q04", "Q05", "Q07", "Q09", "Q11"]
    assert len(report.questions) == 14
    assert report.questions.failing.failing == report.questions.failing


def test_a_report_becomes_a_data_frame(report):
    pytest.importorskip("pandas")
    frame = report.to_pandas()
    assert list(frame.columns[:5]) == ["qid", "run", "question", "answerable", "label"]
    assert frame["precision"].mean() == 0.5
    assert len(frame) == 14


def test_without_pandas_the_extra_is_named(report, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(rag_eval.RagEvalError, match=r'pip install "rag-eval-action\[pandas\]"'):
        report.to_pandas()


def test_rows_and_gates_in_memory_score_as_their_files():
    gates = {"precision": {"min": 0.8}, "mrr": {"min": 0.5, "severity": "warning"}}
    of_rows = rag_eval.score(rag_eval.load_gold(GOLD), rag_eval.load_traces(BAD), gates)
    of_files = rag_eval.score(GOLD, BAD)
    assert of_rows.metrics == of_files.metrics
    assert of_rows.labels == of_files.labels
    assert [gate.outcome for gate in of_rows.gates[:2]] == ["failed", "passed"]


def test_data_frames_score_as_their_rows():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    optional = [{**ROWS[0], "difficulty": "easy"}, {**ROWS[0], "qid": "Q2"}]  # a cell without a value
    twice = [TRACES[0], {**TRACES[0], "qid": "Q2"}]
    plain = rag_eval.score(optional, twice)
    for frame in (pandas.DataFrame, polars.DataFrame):
        assert rag_eval.score(frame(optional), frame(twice)).metrics == plain.metrics


def test_a_named_index_of_a_data_frame_is_a_field():
    pandas = pytest.importorskip("pandas")
    by_qid = [pandas.DataFrame(rows).set_index("qid") for rows in (ROWS, TRACES)]
    assert rag_eval.score(*by_qid).metrics == rag_eval.score(ROWS, TRACES).metrics


def test_a_time_in_a_data_frame_is_a_text():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS).assign(meta=[{"asked": pandas.Timestamp("2026-11-26")} for _ in ROWS])
    assert rag_eval.score(frame, TRACES, by="asked").slices[0].slice == "meta.asked=2026-11-26T00:00:00"


def test_a_field_to_split_by_that_no_item_has_is_an_error():
    with pytest.raises(rag_eval.UsageError, match=r"no gold item has the field 'meta\.topic' to split by\."):
        rag_eval.score(ROWS, TRACES, by="topic")


def test_every_kind_of_empty_cell_of_a_data_frame_is_an_absent_field():
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    frame = pandas.DataFrame([ROWS[0], {**ROWS[0], "qid": "Q2"}])
    for empty in (None, float("nan"), numpy.float32("nan"), numpy.datetime64("NaT"), pandas.NaT, pandas.NA):
        cells = pandas.Series([empty, empty], dtype=object)
        assert rag_eval.score(frame.assign(x=cells), TRACES).notes == (), empty  # no note on an unknown field
    for value in (numpy.array([0.5, 1.5]), numpy.array([]), [], False, 0):
        cells = pandas.Series([value, value], dtype=object)
        assert "x" in rag_eval.score(frame.assign(x=cells), TRACES).notes[0].message, value


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_a_nan_of_numpy_in_a_dict_is_a_problem_with_its_place(kind):
    missing = pytest.importorskip("numpy").dtype(kind).type("nan")
    with pytest.raises(rag_eval.InputError, match=r"<trace>:1: column \d+: NaN is not JSON\. Leave the field"):
        rag_eval.score(ROWS, [{**TRACES[0], "latency_ms": {"total": missing}}])


def test_a_whole_gates_file_may_be_a_dict():
    report = rag_eval.score(ROWS, TRACES, {"k": 5, "gates": {"recall_any@5": {"min": 1}}})
    assert (report.k, report.passed, report.gates_file) == (5, True, "<gates>")


def test_a_run_json_of_the_current_folder_is_not_that_of_rows_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.json").write_text('{"version": 1}', "utf-8")
    assert rag_eval.score(ROWS, TRACES).run is None


@pytest.mark.parametrize(
    ("gold", "gates", "said"),
    [
        ([{**ROWS[0], "answerable": "no"}], None, "<gold>:1: /answerable"),
        (ROWS, {"chr": 0.8}, "<gates>:1: "),
    ],
)
def test_wrong_rows_in_memory_are_problems_with_their_place(gold, gates, said):
    with pytest.raises(rag_eval.InputError) as error:
        rag_eval.score(gold, TRACES, gates)
    assert str(error.value).startswith("1 problem in the input\n")
    assert said in str(error.value)


@pytest.mark.parametrize("gold", [{"qid": "Q1"}, 7, None, [{"qid": object()}]])
def test_what_is_no_row_is_a_usage_error(gold):
    with pytest.raises(rag_eval.UsageError, match=r"^gold"):
        rag_eval.score(gold, TRACES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rag_eval.score(GOLD, GOOD, GATES, baseline=7), "baseline: expected a path, but got int"),
        (lambda: rag_eval.validate(GOLD, None), "files: expected a path, but got NoneType"),
        (lambda: rag_eval.load_traces([{"qid": "Q1"}]), "file: expected a path, but got list"),
        (
            lambda: rag_eval.explain("Q01", 7, GOOD),
            "gold: expected a path, a list of dicts or a data frame, but got int",
        ),
        (lambda: rag_eval.explain("Q01", GOLD, GOOD, gates=7), "gates: expected a path, but got int"),
        (lambda: rag_eval.compare(GOOD, BAD, gold=[{"qid": "Q01"}]), "gold: expected a path, but got list"),
        (lambda: rag_eval.compare([{"qid": "Q01"}], GOOD), "compare: expected reports or paths, but got list"),
        (lambda: rag_eval.render(GOOD), "report: .* is not a Report"),
    ],
)
def test_what_is_no_path_or_report_is_a_usage_error(call, message):
    with pytest.raises(rag_eval.UsageError, match=f"^{message}"):
        call()


def test_validate_returns_problems(tmp_path):
    assert rag_eval.validate(GOLD, GOOD, GATES) == []
    (tmp_path / "gold.jsonl").write_text("{}\n", "utf-8")
    problems = rag_eval.validate(tmp_path / "gold.jsonl", tmp_path / "missing.jsonl")
    assert {problem.file for problem in problems} == {f"{tmp_path}/gold.jsonl", f"{tmp_path}/missing.jsonl"}


def test_load_refuses_what_is_invalid(tmp_path):
    (tmp_path / "gold.jsonl").write_text("{}\n", "utf-8")
    for load in (rag_eval.load_gold, rag_eval.load_traces):
        with pytest.raises(rag_eval.InputError):
            load(tmp_path / "gold.jsonl")


def test_compare_takes_reports_or_files(report):
    good = rag_eval.score(GOLD, GOOD, GATES)
    result = rag_eval.compare(good, report)
    assert repr(result) == "<RunComparison: 2 runs over 14 cases>"
    assert str(result).startswith("2 runs over 14 cases")
    assert result.to_dict()["cases"] == 14
    shown = result._repr_html_()
    assert shown.startswith("<h3>2 runs over 14 cases</h3>")
    assert shown.count("<table") == 6, "a notebook shows tables, not one line of text"
    files = rag_eval.compare(GOOD, BAD, gold=GOLD, gates=GATES)
    assert [row.name for row in files.metrics] == [row.name for row in result.metrics]
    for runs in ([report], [report, GOOD]):
        with pytest.raises(rag_eval.UsageError):
            rag_eval.compare(*runs)


def test_a_field_that_is_ignored_is_named_in_a_notebook():
    rows = [{**row, "retreived_ids": []} for row in rag_eval.load_traces(GOOD)]
    report = rag_eval.score(GOLD, rows)
    for shown in (str(report), report._repr_html_()):
        text = unescape(" ".join(shown.split()))
        assert "unknown field 'retreived_ids' is ignored. Did you mean 'retrieved_ids'?" in text


def test_a_baseline_may_be_a_report():
    gates = {"precision": {"max_drop": 0.05}}
    by_report = rag_eval.score(GOLD, BAD, gates, baseline=rag_eval.score(GOLD, GOOD))
    assert [gate.name for gate in by_report.failed_gates] == ["precision"]
    assert "Newly broken (6)" in str(by_report)


def test_explain_says_why():
    assert rag_eval.explain("Q05", GOLD, BAD).startswith("Q05: WRONG_CLAIM")
    assert "citation" in rag_eval.explain("chr")
    golds, traces = rag_eval.load_gold(GOLD), rag_eval.load_traces(BAD)
    assert rag_eval.explain("Q05", golds, traces).startswith("Q05: WRONG_CLAIM")
    with pytest.raises(rag_eval.UsageError):
        rag_eval.explain("nothing", GOLD, BAD)


def test_a_percentile_without_an_interval_is_judged_by_the_margin(tmp_path):
    gold = rag_eval.load_gold(GOLD)
    slow = [row | {"latency_ms": {"total": 900}} for row in rag_eval.load_traces(GOOD)]
    fast, baseline = [row | {"latency_ms": {"total": 100}} for row in slow], tmp_path / "baseline.json"
    gates = {"gates": {"latency_total_ms.p95": {"max_rise": 50}}, "statistics": {"test": "non_inferiority"}}
    baseline.write_text(json.dumps(rag_eval.score(gold, fast).to_dict()), encoding="utf-8")
    text = str(rag_eval.score(gold, slow, gates=gates, baseline=baseline))
    assert "judged only by the margin, because its difference has no interval." in text


def test_a_regression_gate_on_a_run_without_answers_says_that_it_applies_to_no_case(tmp_path):
    baseline, refused = tmp_path / "baseline.json", {"claim": "not in context", "citations": []}
    gold, traces = rag_eval.load_gold(GOLD), rag_eval.load_traces(GOOD)
    baseline.write_text(json.dumps(rag_eval.score(gold, traces).to_dict()), encoding="utf-8")
    silent = [row | {"answer_json": refused} for row in traces]
    gates = {"gates": {"citation_precision": {"max_drop": 0.1}}}
    report = rag_eval.score(gold, silent, gates=gates, baseline=baseline)
    assert report.failed_gates[0].why == "it applies to no case of this run"


def test_rows_of_another_tool_in_memory_are_written_to_a_file_first():
    rows = [{"user_input": "How long?", "response": "30 days.", "retrieved_contexts": ["30 days"], "reference": "30"}]
    with pytest.raises(rag_eval.InputError) as error:
        rag_eval.score(rows, TRACES)
    (problem,) = error.value.problems
    command = "rag-eval import ragas rows.jsonl --out eval/gold.jsonl"
    assert problem.hint == f"Write the rows to a file, such as rows.jsonl, then: {command}"
