"""rag-eval compare on files: which runs there are, what is printed in each form, and what cannot be compared."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re

import cmarkgfm
import jsonschema
import pytest

from cases import ROOT, gold_row, trace_row, write_rows
from importing import RUN
from rag_eval.analysis.policy_changes import changes
from rag_eval.cli.saved_reports import COMPARISON_FORMATS
from rag_eval.gates import WEIGHTS, Scoring
from rag_eval.run.run_comparison import MOST
from seams import ProblemCollector, policy_of

QUICKSTART = ROOT / "examples" / "quickstart"
SCHEMA = json.loads((ROOT / "schemas" / "comparison.schema.json").read_text("utf-8"))
REFUSED = {"claim": "not in context", "citations": []}
HOSTILE = [
    "a|b||c\\|d",
    "`tick` ``two`` ```",
    "<script>alert(1)</script><!-- -->",
    "@octocat and @org/team",
    "first\nsecond\r\n::error::third",
    "[link](https://example.org) ![image](https://example.org/x.png) <https://example.org>",
    "=cmd|' /C calc'!A0",
    "L" * 190,
    "##[group]x \u202eright to left\u0007",
    "</details></table>",
    "::warning::first",
]


@pytest.fixture
def rag(command):
    return command


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with four questions, which is the current one."""
    golds = [gold_row(qid=f"Q{n}", gold_claim_substr=["30 days"], gold_citations=["a"]) for n in (1, 2, 3)]
    write_rows(tmp_path / "eval" / "gold.jsonl", [*golds, gold_row(qid="Q4", answerable=False)])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def traces(right, **fields):
    """Traces of the four questions: right, or refused, by the digits of ``right``."""
    good = {"claim": "Kept 30 days.", "citations": ["a"]}
    return [
        trace_row(
            qid=f"Q{n}",
            retrieved_ids=["a", "b"],
            answer_json=good if (variant == "1") == (n < 4) else REFUSED,
            **{name: value(n) if callable(value) else value for name, value in fields.items()},
        )
        for n, variant in enumerate(right, 1)
    ]


def compared(rag, *arguments):
    code, out, err = rag("compare", *arguments, "--format", "json")
    assert (code, err) == (0, "")
    content = json.loads(out)
    jsonschema.validate(content, SCHEMA)
    return content


def cells(result, name):
    return next(item["cells"] for item in result["metrics"] if item["name"] == name)


def names(result):
    return [run["name"] for run in result["runs"]]


# --- which runs there are


def test_two_trace_files_are_two_runs_and_the_first_is_the_base(rag, project):
    write_rows(project / "runs" / "a.jsonl", traces("1111"))
    write_rows(project / "runs" / "b.jsonl", traces("1011"))
    content = compared(rag, "runs/a.jsonl", "runs/b.jsonl")
    assert (names(content), content["base"], content["cases"]) == (["a", "b"], 0, 4)
    assert [cell["value"] for cell in cells(content, "over_refusal")] == [0, pytest.approx(1 / 3)]
    neighbour = cells(content, "over_refusal")[1]["against"]
    assert (neighbour["wins"], neighbour["losses"], neighbour["ties"], neighbour["p"]) == (0, 1, 2, 1.0)
    assert content["runs"][1]["flips"] == [
        {"qid": "Q2", "run": None, "before": "OK", "after": "OVER_REFUSAL_EVIDENCE_PRESENT"}
    ]


def test_a_significant_difference_whose_interval_contains_0_is_named(rag, project):
    write_rows(project / "eval" / "gold.jsonl", [gold_row(qid=f"Q{n}", gold_citations=["a"]) for n in range(9)])
    for name, retrieved in (("first", ["a", "b"]), ("second", ["b", "a"])):
        rows = [trace_row(qid=f"Q{n}", retrieved_ids=retrieved, answer_json=REFUSED) for n in range(9)]
        write_rows(project / f"{name}.jsonl", rows)
    asked = ["first.jsonl", "second.jsonl", "--metric", "mrr,recall@1"]
    against = cells(compared(rag, *asked), "mrr")[1]["against"]
    assert against["result"] == "worse"
    assert against["low"] < 0 < against["high"]
    assert "contains 0: mrr." in rag("compare", *asked)[1].replace("\n", " ")


def test_the_runs_in_one_file_are_columns_of_their_own(rag, project):
    rows = [*traces("1111", run="beta"), *traces("1101", run="alpha")]
    write_rows(project / "t.jsonl", rows)
    content = compared(rag, "t.jsonl", "--base", "beta")
    assert (names(content), content["base"]) == (["alpha", "beta"], 1)
    assert cells(content, "over_refusal")[0]["value"] == pytest.approx(1 / 3)
    write_rows(project / "t.jsonl", rows[::-1])
    assert compared(rag, "t.jsonl", "--base", "beta") == content


def test_a_report_stands_for_its_traces(rag, project):
    for name, right in (("a", "1110"), ("b", "0111")):
        write_rows(project / f"{name}.jsonl", traces(right))
        rag("score", "--trace", f"{name}.jsonl", "--out", name)
    of_traces = compared(rag, "a.jsonl", "b.jsonl")
    of_reports = compared(rag, "a/report.json", "b/report.json")
    assert names(of_reports) == ["a/report.json", "b/report.json"]
    assert of_reports["metrics"] == of_traces["metrics"]
    assert compared(rag, "a/report.json", "b.jsonl")["metrics"] == of_traces["metrics"]
    (project / "b" / "report.json.gz").write_bytes(gzip.compress((project / "b" / "report.json").read_bytes()))
    assert compared(rag, "a/report.json", "b/report.json.gz")["metrics"] == of_traces["metrics"]


def test_the_runs_of_a_report_are_told_apart(rag, project):
    write_rows(project / "t.jsonl", [*traces("1111", run="one"), *traces("0111", run="two")])
    rag("score", "--trace", "t.jsonl", "--out", "both")
    report = compared(rag, "both/report.json")
    assert names(report) == ["one", "two"]
    assert report["metrics"] == compared(rag, "t.jsonl")["metrics"]


def test_names_grow_until_they_tell_the_runs_apart(rag, project):
    write_rows(project / "x" / "t.jsonl", traces("1111", run="main"))
    write_rows(project / "x" / "u.jsonl", traces("1111", run="main"))
    write_rows(project / "y" / "t.jsonl", traces("1111"))
    assert names(compared(rag, "x/t.jsonl", "y/t.jsonl")) == ["main", "t"]
    assert names(compared(rag, "x/t.jsonl", "x/u.jsonl")) == ["t:main", "u:main"]
    assert names(compared(rag, "x/t.jsonl", "x/u.jsonl", "y/t.jsonl")) == ["t:main", "u:main", "y/t.jsonl"]
    assert names(compared(rag, "y/t.jsonl", "y/t.jsonl")) == ["y/t.jsonl (1)", "y/t.jsonl (2)"]


def test_gold_that_changed_between_two_reports_is_not_compared(rag, project):
    write_rows(project / "t.jsonl", traces("1111"))
    rag("score", "--trace", "t.jsonl", "--out", "old")
    gold = project / "eval" / "gold.jsonl"
    gold.write_text(gold.read_text("utf-8").replace('"qid": "Q2"', '"category": "new", "qid": "Q2"'), "utf-8")
    report = compared(rag, "t.jsonl", "old/report.json")
    assert (report["cases"], report["runs"][1]["changed"]) == (3, 1)


def test_another_refusal_token_makes_other_contracts(rag, project):
    write_rows(project / "t.jsonl", traces("1111"))
    rag("score", "--trace", "t.jsonl", "--out", "old")
    (project / "eval-gates.yml").write_text("version: 1\nrefusal: {token: no idea}\n", "utf-8")
    report = compared(rag, "t.jsonl", "old/report.json")
    refused = {item["name"]: item["why"] for item in report["refused"]}
    assert refused["precision"] == "defined differently in 'report'"
    assert "flips" in refused
    assert "mrr" in [item["name"] for item in report["metrics"]]


# --- cost, latency, weights


def test_cost_latency_weights_and_budgets_make_score_and_front(rag, project):
    text = "version: 1\nscore: {weights: {accuracy: 3, cost: 1}, budgets: {cost_usd: 0.01}}\n"
    (project / "eval-gates.yml").write_text(text, "utf-8")
    cheap = {"usage": {"cost_usd": 0.01}, "latency_ms": lambda n: {"total": n * 100}}
    dear = {"usage": {"cost_usd": 0.03}, "latency_ms": {"total": 500}}
    write_rows(project / "cheap.jsonl", traces("1111", **cheap))
    write_rows(project / "dear.jsonl", traces("1111", **dear))
    content = compared(rag, "cheap.jsonl", "dear.jsonl", "--pareto")
    assert content["runs"][0]["latency"] == {"n": 4, "total": 1000, "mean": 250, "p50": 200, "p95": 400, "most": 400}
    assert content["runs"][1]["cost"]["total"] == pytest.approx(0.12)
    assert content["score"]["scores"] == pytest.approx([0.75 + 0.25 * 0.5, 0.75 + 0.25 * 0.25])
    assert content["front"]["points"] == [[1, 0.01, 400], [1, 0.03, 500]]
    assert content["front"]["beaten_by"] == [None, 0]
    assert compared(rag, "cheap.jsonl", "dear.jsonl")["front"] is None


def test_runs_of_a_file_are_in_the_order_of_their_names_the_unnamed_one_first(rag, project):
    rows = [row for run in ("b", None, "a") for row in traces("1111", **({"run": run} if run else {}))]
    write_rows(project / "t.jsonl", rows)
    assert names(compared(rag, "t.jsonl")) == ["t", "a", "b"]
    rag("score", "--trace", "t.jsonl", "--out", "r")
    assert names(compared(rag, "r/report.json")) == ["report", "a", "b"]


def test_the_last_trace_of_a_question_says_what_it_cost(rag, project):
    rows = traces("1111", usage={"cost_usd": 5.0})
    write_rows(project / "a.jsonl", [*rows, *traces("1111", usage={"cost_usd": 1.0})])
    content = compared(rag, "a.jsonl", "a.jsonl", "--quiet")
    assert content["runs"][0]["cost"]["total"] == 4


def test_each_run_of_a_file_has_its_own_cost(rag, project):
    runs = (("cheap", 1.0), ("dear", 5.0))
    rows = [row for name, cost in runs for row in traces("1111", run=name, usage={"cost_usd": cost})]
    write_rows(project / "t.jsonl", rows)
    assert [run["cost"]["mean"] for run in compared(rag, "t.jsonl")["runs"]] == [1, 5]


def test_a_report_says_what_was_spent_as_its_traces_do(rag, project):
    rows = traces("1111", usage={"cost_usd": 5.0}, latency_ms=lambda n: {"total": n * 100})
    write_rows(project / "a.jsonl", rows)
    rag("score", "--trace", "a.jsonl", "--out", "a")
    report = compared(rag, "a/report.json", "a.jsonl", "--pareto")
    assert report["runs"][0]["cost"] == report["runs"][1]["cost"] == {
        "n": 4, "total": 20, "mean": 5, "p50": 5, "p95": 5, "most": 5
    }  # fmt: skip
    assert report["runs"][0]["latency"] == report["runs"][1]["latency"]
    assert report["front"]["dimensions"] == ["quality", "cost", "latency"]


def test_cost_and_latency_are_shown_in_their_units(rag, project):
    for name, cost, time in (("a", 0.003, 800), ("b", 0.004, 950)):
        write_rows(project / f"{name}.jsonl", traces("1111", usage={"cost_usd": cost}, latency_ms={"total": time}))
    _, out, _ = rag("compare", "a.jsonl", "b.jsonl", "--all", "--format", "table")
    assert "0.00300 USD" in out
    assert "950 ms" in out
    assert "+150 ms" in out
    assert "+0.00100 USD" in out
    [unmeasured] = re.findall(r"Apply to no case: ([^.]*) and [0-9]+ more\.", " ".join(out.split()))
    assert len(unmeasured.split(", ")) == 10
    assert "bpref" in unmeasured.split(", ")
    assert "precision" not in unmeasured.split(", ")


def test_numbers_that_cannot_be_meant_are_a_problem_with_line_and_place(rag, project):
    write_rows(project / "a.jsonl", traces("1111", usage={"cost_usd": 1e300}))
    code, out, err = rag("compare", "a.jsonl", "a.jsonl")
    assert (code, out) == (2, "")
    assert err.splitlines()[0].startswith(
        "a.jsonl:1: /usage/cost_usd: 1e+300 is more than 1000000000000000. Give dollars"
    )


def policy(text):
    ledger = ProblemCollector()
    return policy_of(f"version: 1\n{text}\n".encode(), "g.yml", ledger), [str(problem) for problem in ledger.problems]


def test_weights_are_the_defaults_unless_some_are_given():
    assert policy("k: 5")[0].score == Scoring(WEIGHTS, {})
    assert policy("score: {weights: {accuracy: 0.7, cost: 2}}")[0].score == Scoring({"accuracy": 0.7, "cost": 2.0}, {})
    assert policy("score: {budgets: {cost_usd: 0.5}}")[0].score == Scoring(WEIGHTS, {"cost_usd": 0.5})


@pytest.mark.parametrize(
    "score",
    [
        "{weights: {}}",
        "{weights: {accuracy: 0}}",
        "{weights: {speed: 1}}",
        "{budgets: {cost_usd: 0}}",
        "{wieghts: {}}",
        "{weights: {accuracy: -1}}",
        "{budgets: {cost_usd: 1e-400}}",
        "{weights: {accuracy: 1e400}}",
        "5",
    ],
)
def test_weights_and_budgets_that_mean_nothing_are_problems(score):
    value, problems = policy(f"score: {score}")
    assert value is None
    assert len(problems) == 1


@pytest.mark.parametrize(("old", "new"), [({}, {"weights": {"cost": 1}}), ({"weights": {"cost": 1}}, {"budgets": {}})])
def test_a_change_of_weights_cannot_be_told_and_counts_as_looser(old, new):
    result = changes({"version": 1, "score": old} if old else {"version": 1}, {"version": 1, "score": new})
    assert result != []
    assert {(change.key.split(".")[0], change.kind) for change in result} == {("score", "looser")}


# --- repeats


def test_repeats_count_the_tries_that_pass(rag, project):
    rows = [row for n, variant in enumerate(("1111", "1011", "1010")) for row in traces(variant, run=f"try {n}")]
    write_rows(project / "t.jsonl", rows)
    system = compared(rag, "t.jsonl", "--repeats")["systems"][0]
    assert system["runs"] == ["try 0", "try 1", "try 2"]
    assert {item["qid"]: item["passes"] for item in system["questions"]} == {"Q1": 3, "Q2": 1, "Q3": 3, "Q4": 2}
    assert system["flaky"] == ["Q2", "Q4"]
    assert [(item["k"], item["value"]) for item in system["at"]] == [
        (1, 0.75),
        (2, pytest.approx((1 + 0 + 1 + 1 / 3) / 4)),
        (3, 0.5),
    ]


def test_files_of_one_run_each_are_tries_of_one_system(rag, project):
    write_rows(project / "1.jsonl", traces("1111"))
    write_rows(project / "2.jsonl", traces("0111"))
    content = compared(rag, "1.jsonl", "2.jsonl", "--repeats")["systems"]
    assert [(item["name"], item["flaky"]) for item in content] == [("2 files", ["Q1"])]


def test_files_of_several_runs_are_systems_of_their_own(rag, project):
    for name, ways in (("a", ("1111", "0111")), ("b", ("1111", "1111"))):
        write_rows(
            project / f"{name}.jsonl", [row for n, variant in enumerate(ways) for row in traces(variant, run=str(n))]
        )
    content = compared(rag, "a.jsonl", "b.jsonl", "--repeats")["systems"]
    assert [(item["name"], item["flaky"]) for item in content] == [("a.jsonl", ["Q1"]), ("b.jsonl", [])]


# --- what is printed


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Gold and traces of several runs, of which every string is out to break a rendering."""
    golds = [gold_row(qid=text, question=text * 3, gold_citations=[text]) for text in HOSTILE]
    write_rows(tmp_path / "eval" / "gold.jsonl", golds)
    rows = [
        {"qid": text, "run": run, "retrieved_ids": [text], "answer_json": {"claim": "yes", "citations": cited}}
        for index, text in enumerate(HOSTILE)
        for order, run in enumerate(HOSTILE[:-1])
        for cited in [[text] if (index + order) % 3 else []]
    ]
    write_rows(tmp_path / "`x`|@team.jsonl", rows)
    monkeypatch.chdir(tmp_path)
    return "`x`|@team.jsonl"


@pytest.mark.parametrize("form", COMPARISON_FORMATS)
@pytest.mark.parametrize("way", [["--pareto"], ["--repeats"]])
def test_no_string_of_the_data_breaks_a_form(rag, hostile, form, way):
    code, out, _ = rag("compare", hostile, *way, "--format", form, "--quiet")
    assert code == 0
    lines = out.splitlines()
    assert [line for line in lines if line.lstrip().startswith("::") or "##[" in line] == []
    assert out.endswith("\n")
    assert not out.endswith("\n\n")
    if form != "json":
        assert [char for char in out if (ord(char) < 32 and char not in "\n\r") or char == "\u202e"] == []


@pytest.mark.parametrize("way", [["--pareto"], ["--repeats"]])
def test_markdown_of_hostile_names_holds_nothing_of_theirs(rag, hostile, way):
    out = rag("compare", hostile, *way, "--format", "markdown", "--quiet")[1]
    html = cmarkgfm.github_flavored_markdown_to_html(out)
    tags = {tag.lower() for tag in re.findall(r"</?([a-zA-Z][a-zA-Z0-9]*)", html)}
    assert tags <= {"h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "pre"}
    assert re.findall(r"(?<!pass)@(?=[A-Za-z])", out) == []
    for table in html.split("<table>")[1:]:
        widths = {len(re.findall("<t[dh]", line)) for line in table.split("</table>")[0].split("<tr>")[1:]}
        assert len(widths) == 1


@pytest.mark.parametrize("way", [[], ["--repeats"]])
def test_csv_runs_no_formula_and_keeps_its_columns(rag, hostile, way):
    rows = list(csv.reader(io.StringIO(rag("compare", hostile, *way, "--format", "csv", "--quiet")[1])))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "@"))] == []


def test_json_of_hostile_names_keeps_the_schema_and_the_names(rag, hostile):
    content = json.loads(rag("compare", hostile, "--format", "json", "--quiet")[1])
    jsonschema.validate(content, SCHEMA)
    assert sorted(run["run"] for run in content["runs"]) == sorted(HOSTILE[:-1])


def quickstart(*names):
    return [*(QUICKSTART / name for name in names), "--gold", QUICKSTART / "gold.jsonl"]


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_what_people_read_says_what_broke_and_whether_chance_would_do_it(rag, form):
    code, out, _ = rag("compare", *quickstart("good.jsonl", "bad.jsonl"), "--metric", "precision", "--format", form)
    assert code == 0
    for output in (
        "2 runs over 14 cases",
        "1 paired test, 1 is significant",
        "6 newly broken, 0 newly fixed",
        "precision",
        "worse",
    ):
        assert output in out, output


def test_a_difference_that_chance_would_do_is_said_to_be_one(rag):
    out = rag("compare", *quickstart("good.jsonl", "bad.jsonl"), "--metric", "mrr")[1]
    assert "no difference at 0.05" in out or "0 are significant at" in out


def test_ten_runs_are_shown_within_a_hundred_columns(rag, project):
    rows = [{**trace, "run": f"system-{run}"} for run in range(10) for trace in traces("1100" if run % 2 else "1111")]
    write_rows(project / "ten.jsonl", rows)
    code, out, _ = rag("compare", "ten.jsonl")
    values = out.partition("\nValues\n")[2].partition(" against ")[0].split("\n")
    named = [line.split() for line in values if line.startswith("metric ")]
    assert (code, max(map(len, out.split("\n"))) <= 100) == (0, True)
    assert [name for line in named for name in line if "system" in name] == [f"system-{run}" for run in range(10)]
    assert len(named) > 1


def test_a_second_run_gives_the_same_bytes(rag):
    once, again = (rag("compare", *quickstart("good.jsonl", "bad.jsonl"), "--format", "json")[1] for _ in range(2))
    assert once == again


def test_notes_say_what_was_left_aside_unless_quiet(rag, project):
    rows = [*traces("1111"), *traces("1111")[:1], trace_row(qid="Q9", answer_json=REFUSED)]
    write_rows(project / "t.jsonl", rows)
    err = rag("compare", "t.jsonl", "t.jsonl")[2]
    assert "t.jsonl: 1 duplicate trace\n" in err
    assert "t.jsonl: 1 unknown trace\n" in err
    assert rag("compare", "t.jsonl", "t.jsonl", "--quiet")[2] == ""


def test_a_front_without_any_quality_is_said_to_be_missing(rag, project):
    (project / "eval-gates.yml").write_text("version: 1\nscore: {weights: {cost: 1}}\n", "utf-8")
    write_rows(project / "t.jsonl", traces("0001"))  # nothing is answered, so that precision has no case
    code, out, err = rag("compare", "t.jsonl", "t.jsonl", "--pareto", "--format", "json")
    assert (code, json.loads(out)["front"]) == (0, None)
    assert "not every run has a quality" in err


# --- what cannot be compared


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["good.jsonl"], "takes 2 to 50 runs, not 1. Name another file, or add --repeats"),
        (["good.jsonl", "none.jsonl"], "none.jsonl: no such file"),
        (["good.jsonl", "eval"], "eval: is a folder"),
        (["good.jsonl", "eval/gold.jsonl"], "eval/gold.jsonl:1: looks like a row of a gold file"),
        (["good.jsonl", "some.json"], "some.json is not a report.json of rag-eval score"),
        (["good.jsonl", "gates.yml"], "gates.yml is not a report.json of rag-eval score"),
        (["good.jsonl", "broken.jsonl"], "broken.jsonl:1: column 40: NaN is not JSON"),
        (["good.jsonl", "good.jsonl", "--base", "bad"], "--base 'bad' matches 0 runs"),
        (["good.jsonl", "good.jsonl", "--base", "good.jsonl"], "--base 'good.jsonl' matches 2 runs"),
        (["good.jsonl", "good.jsonl", "--metric", "presicion"], "Did you mean 'precision'?"),
        (["good.jsonl", "good.jsonl", "--metric", "recall@7"], "recall@7 cannot be compared: not measured"),
        (["good.jsonl", "--repeats"], "good.jsonl has only one run"),
        (["good.jsonl", "--repeats", "--pareto"], "Remove --base, --metric, --all and --pareto."),
        (["many.jsonl"], f"not {MOST + 1}. Name fewer files."),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_exit_code_2(rag, project, arguments, said):
    write_rows(project / "good.jsonl", traces("1111"))
    write_rows(project / "many.jsonl", [row for n in range(MOST + 1) for row in traces("1111", run=f"r{n}")])
    (project / "some.json").write_text('{"a": 1}', "utf-8")
    (project / "gates.yml").write_text("version: 1\n", "utf-8")
    (project / "broken.jsonl").write_text('{"qid": "Q1", "answer_json": {"claim": NaN}}\n', "utf-8")
    code, out, err = rag("compare", *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_a_list_of_metrics_has_a_name(rag):
    code, out, err = rag("compare", "good.jsonl", "good.jsonl", "--metric", ",")
    assert (code, out) == (2, "")
    assert err.endswith("argument --metric: ',' is not a list of names, such as retrieval,citations\n")


@pytest.mark.parametrize(("name", "score"), [("precision", 0.5), ("mrr", 2), ("mrr", -0.1), ("precision", 1e300)])
def test_a_report_whose_scores_no_metric_gives_is_refused(rag, project, name, score):
    write_rows(project / "t.jsonl", traces("1111"))
    rag("score", "--trace", "t.jsonl", "--out", "r")
    path = project / "r" / "report.json"
    value = json.loads(path.read_text("utf-8"))
    value["questions"][0]["scores"][name] = score
    path.write_text(json.dumps(value), "utf-8")
    code, out, err = rag("compare", "t.jsonl", "r/report.json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"has an impossible score: '{name}' cannot be" in err


@pytest.mark.parametrize("more", [(), ("--repeats",)])
def test_a_report_of_values_alone_is_refused_and_not_left_out(rag, project, more):
    write_rows(project / "t.jsonl", traces("1111"))
    write_rows(project / "two.jsonl", [row for run in "ab" for row in traces("1111", run=run)])
    assert rag("import", "rag-server-run", RUN, "--out", "values.json", "--quiet")[0] == 0
    code, out, err = rag("compare", "t.jsonl", "two.jsonl", "values.json", *more)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "values.json has no questions" in err


def test_runs_without_a_common_case_are_refused(rag, project):
    write_rows(project / "t.jsonl", traces("1111"))
    rag("score", "--trace", "t.jsonl", "--out", "r")
    gold = project / "eval" / "gold.jsonl"
    gold.write_text(gold.read_text("utf-8").replace("How long?", "How very long?"), "utf-8")
    code, out, err = rag("compare", "t.jsonl", "r/report.json")
    assert (code, out) == (2, "")
    assert "no question has the same gold item in all 2 runs" in err


def test_a_problem_of_the_baseline_in_the_gates_file_is_not_asked_about(rag, project):
    (project / "eval-gates.yml").write_text("version: 1\nbaseline: {report: broken.json}\n", "utf-8")
    (project / "broken.json").write_text("{", "utf-8")
    write_rows(project / "t.jsonl", traces("1111"))
    assert names(compared(rag, "t.jsonl", "t.jsonl")) == ["t.jsonl (1)", "t.jsonl (2)"]
