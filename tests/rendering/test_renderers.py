"""Every rendering of the examples equals its file in tests/expected, byte for byte."""

import csv
import io
import json
import os
import re
from collections import Counter
from contextlib import chdir
from functools import cache
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from msgspec.structs import replace

import compared
import whole_report
from cases import ROOT, gold_row, trace_row, write_rows
from hostile import BRACKETED, TAGS, replaced
from rag_eval.analysis import Base
from rag_eval.analysis.gold_impact import GateTurn, GoldChange
from rag_eval.analysis.judging import rejudge_same_gates
from rag_eval.analysis.policy_changes import PolicyChange
from rag_eval.errors import Finding
from rag_eval.rendering import history, markdown, summary
from rag_eval.rendering.html import grading_form, history_page, verdict_and_gates
from seams import (
    GOOD,
    RENDERERS,
    Contract,
    QuestionList,
    as_json,
    from_json,
    measure,
    render,
    score_files,
    with_verdict,
)
from trends import trend

QUICKSTART = "examples/quickstart"
GOLD_FILES, ACTUAL = ROOT / "tests" / "expected", ROOT / "tests" / "actual"
DETAILED = ("gold.jsonl", "bad.jsonl", "eval-gates.yml")
EXAMPLES = ("good", "bad", "hostile", "moved", "compared", "sliced")
MADE = {"hostile", "compared", "sliced"}
HOSTILE = [
    "a|b||c\\|d",
    "`tick` ``two`` ```",
    "<script>alert(1)</script><!-- -->",
    "@octocat and @org/team",
    "first\nsecond\r\n::error::third",
    "[link](https://example.org) ![image](https://example.org/x.png) <https://example.org>",
    "=cmd|' /C calc'!A0",
    "+1-2",
    "L" * 190,
    "##[group]x \u202eright to left\u0007",
    "&lt;b&gt; ]]> &amp;",
    "</details></table>",
    "::warning::first",
]


# Every outcome: held by a hair, failed by a hair, broken but only warned of, no data that fails and that is skipped.
GATES = """\
version: 1
gates:
  precision: {min: 0.4642857142857142}
  chr: {min: 0.46428571428571429}
  mrr: {min: 0.9, severity: warning}
  containment: {min: 0.5}
  section_accuracy: {min: 0.5, when_no_data: skip}
  exact_refusal: {min: 0.5, severity: warning}
completeness: {missing: 15}
"""


def hostile_files(folder):
    """Gold, traces and gates: every string is out to break a rendering, and every gate has another outcome."""
    (folder / "gates.yml").write_text(GATES, encoding="utf-8")
    golds = [gold_row(qid=text, question=text * 3, gold_citations=[text]) for text in HOSTILE]
    golds.append(gold_row(qid="asks-for-nothing", question="Who?", answerable=False))
    answers = [{"claim": "yes", "citations": [text]} for text in HOSTILE]
    traces = [
        {"qid": text, "run": HOSTILE[index % 2], "retrieved_ids": [text], "answer_json": answer, f"my {text}"[:60]: 1}
        for index, (text, answer) in enumerate(zip(HOSTILE, answers, strict=True))
    ]
    return write_rows(folder / "gold.jsonl", golds), write_rows(folder / "trace.jsonl", traces)


def moved(report):
    """A report as a pull request gets it that moves every goalpost at once, partly under hostile names."""
    ours, theirs = [gate._replace(origin="both") for gate in report.gates], {"origin": "base", "line": 0}
    judged = {gate.name: gate for gate in ours}
    precision, missing = judged["precision"], judged["completeness.missing"]
    looser = precision._replace(threshold="0.50", outcome="passed", origin="head")
    strict = [precision._replace(**theirs), missing._replace(outcome="failed", value=1.0, exact="1", **theirs)]
    gates = [looser if gate.name == "precision" else gate for gate in ours]
    findings = [
        Finding(
            "padded-citations", "error", "9 of 9 answers cite everything they retrieved", "Gate citation_precision."
        ),
        *(
            Finding("unsigned-change", "error", f"item '{text}' was changed, and no new record signs it", SIGN, GOLD, 7)
            for text in ("Q03", HOSTILE[0], HOSTILE[3])
        ),
        Finding(
            "record-edited",
            "error",
            "the record is not as it was",
            f"git checkout 0123abc -- '{HOSTILE[1]}'",
            HOSTILE[2],
        ),
        Finding("gold-fits-output", "warning", FITS, "Review the gold changes separately from the system.", GOLD),
        Finding("gold-not-governed", "warning", HOSTILE[5] + HOSTILE[4], "", HOSTILE[9]),
    ]
    policy = [
        PolicyChange("gates.precision.min", "looser", "0.80", "0.50", ("precision",)),
        PolicyChange("signoff", "looser", '{"require": "record"}', None, ("mutation", "unsigned-change")),
        PolicyChange("the gates file", "looser", '"conf/gates.yml"', '"eval-gates.yml"'),
        PolicyChange("refusal.token", "looser", '"not in context"', json.dumps(HOSTILE[5])),
        PolicyChange("refusal.phrases", "looser", "[]", json.dumps(HOSTILE)),
        PolicyChange(f"signoff.signers.{HOSTILE[0]}", "looser", None, '{"github": "mallory"}'),
        PolicyChange("gates.mrr", "stricter", None, '{"min": 0.9, "severity": "warning"}'),
        PolicyChange("integrity.padded-citations", "stricter", '"warning"', '"error"'),
        PolicyChange("limits", "neutral", None, '{"depth": 32}'),
    ]
    gold = [
        GoldChange("Q03", "changed", False, "WRONG_CLAIM", "OK"),
        GoldChange("Q05", "changed", True, "OK", "NOT_CITED"),
        GoldChange("Q06", "changed", False, "OK", "OK"),
        GoldChange("Q99", "added", False, None, "MISSING"),
        GoldChange("Q98", "removed", False, "NOT_RETRIEVED", None),
        *(GoldChange(text, "changed", True, None, None) for text in HOSTILE),
    ]
    turned = [GateTurn("chr", "failed", "passed", 0.7, 0.8), GateTurn("mrr", "no_data", "failed", None, 0.2)]
    return with_verdict(
        report._replace(
            gates=(*gates, *strict),
            base=Base("base", "release/`1`|<b>@octocat", "0123456789abcdef" * 2 + "01234567", "GitHub's API"),
            findings=tuple(findings),
            policy_changes=tuple(policy),
            gold_changes=tuple(gold),
            gate_turns=tuple(turned),
        )
    )


GOLD = "eval/gold.jsonl"
SIGN = "rag-eval gold signoff --base main --reason '…'"
FITS = "2 gold changes make failing answers of this run right: Q03, Q05; this change also edits src/app.py"


def report_of(example, folder):
    """The report of an example, under paths that are the same everywhere."""
    if example == "hostile":
        hostile_files(folder)
        return score_files("gold.jsonl", "trace.jsonl", "gates.yml")
    if example == "compared":
        return compared.compared(folder)
    if example == "sliced":
        return compared.sliced(folder, HOSTILE)
    if example == "moved":
        return moved(report_of("bad", folder))
    paths = [f"{QUICKSTART}/{name}" for name in ("gold.jsonl", f"{example}.jsonl", "eval-gates.yml")]
    return score_files(*paths)


@pytest.fixture(params=EXAMPLES)
def example(request, tmp_path, monkeypatch):
    """The name of an example, in the folder that its paths start from."""
    monkeypatch.chdir(tmp_path if request.param in MADE else ROOT)
    return request.param


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """The report of an example by its name, scored once."""

    @cache
    def scored(example):
        folder = tmp_path_factory.mktemp(example)
        with chdir(folder if example in MADE else ROOT):
            return report_of(example, folder)

    return scored


@pytest.fixture
def report(example, scored):
    """The report of an example."""
    return scored(example)


def expect(name, text):
    """Compare with tests/expected/NAME; RAG_EVAL_ACCEPT=1 takes the text for the expected one."""
    gold, actual = GOLD_FILES / name, ACTUAL / name
    if os.environ.get("RAG_EVAL_ACCEPT") == "1":
        gold.parent.mkdir(parents=True, exist_ok=True)
        gold.write_bytes(text.encode())
    if gold.exists() and gold.read_bytes() == text.encode():
        actual.unlink(missing_ok=True)
        return
    actual.parent.mkdir(parents=True, exist_ok=True)
    actual.write_bytes(text.encode())
    pytest.fail(
        f"tests/expected/{name} differs: diff it with tests/actual/{name}, and if that is right run: make accept"
    )


@pytest.mark.parametrize("form", RENDERERS)
def test_rendering_is_the_expected_one(form, example, report):
    expect(f"{example}/{RENDERERS[form][1]}", render(report, form))


def body(page):
    """The part of a page between its style and its footer."""
    return page[page.index("<header>") : page.index("<footer>")]


EVERYTHING = {
    "report.txt": lambda report: render(report, "table", verbose=True),
    "by-slice.txt": lambda report: render(report, "table", by=True),
    "report.md": lambda report: render(report, "markdown"),
    "short.md": lambda report: markdown.warned_within(report, 6_000, len),
    "shortest.md": lambda report: markdown.within(report, 1_200, len),
    "body.html": lambda report: body(render(report, "html")),
    "notebook.html": verdict_and_gates,
    "junit.xml": lambda report: render(report, "junit"),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_report_with_something_in_every_field_is_rendered_as_expected(name):
    report = rejudge_same_gates(from_json(whole_report.REPORT))
    expect(f"whole/{name}", EVERYTHING[name](report).rstrip("\n") + "\n")


def expect_cut(name, text):
    """Compare with tests/expected/long/NAME, where ``<80>`` replaces 80 characters of a longer text."""
    text = re.sub("zz+…?", lambda cut: f"<{len(cut[0])}>", text)
    expect(f"long/{name}", re.sub("-{4,}", "---", re.sub("(?<=\\S)  +", "  ", text)))


@pytest.mark.parametrize("form", ["table", "markdown", "junit", "sarif", "codequality"])
def test_long_texts_of_a_report_are_cut_to_the_expected_lengths(form):
    report = from_json(replaced(whole_report.REPORT, whole_report.FREE, ["z" * 1_100]))
    expect_cut(RENDERERS[form][1], render(report, form, **({"verbose": True} if form == "table" else {})))


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_long_texts_of_a_history_are_cut_to_the_expected_lengths(form):
    series, reports, *_ = trend(["z" * 1_100] * 7)
    expect_cut(f"history.{form}", history.render(series, reports, form))


@pytest.mark.parametrize("more", ["--pareto", "--repeats"])
def test_long_texts_of_a_comparison_are_cut_to_the_expected_lengths(command, tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    long = "z" * 190
    write_rows(tmp_path / "gold.jsonl", [gold_row(qid=long, question=long * 4, gold_citations=["a"])])
    rows = [
        trace_row(qid=long, run=run, retrieved_ids=["a"], answer_json={"claim": "28 days", "citations": [cited]})
        | {"latency_ms": {"total": 9.0}}
        for run, cited in ((f"{long}1", "a"), (f"{long}2", "b"))
    ]
    write_rows(tmp_path / "trace.jsonl", rows)
    code, text, err = command("compare", "trace.jsonl", "--gold=gold.jsonl", "--format=markdown", "--quiet", more)
    assert (code, err) == (0, "")
    expect_cut(f"{more.removeprefix('--')}.md", text)


def repeated(name, key, count, **more):
    """The first entry of a list of the report so many times, each under another name, longer than reports show."""
    entry = whole_report.REPORT[name][0] | more
    return [entry | {key: f"{number} {'long ' * 25}{entry[key]}"} for number in range(count)]


def one_too_many(*, baseline):
    """A report whose lists have one entry more than a page shows; with a baseline, the flips instead of the failing."""
    wrong = {"label": "WRONG_CLAIM", "run": "r" * 40}
    conversations = repeated("questions", "qid", 20 if baseline else 10, **wrong)
    questions = [
        question | {"slices": [f"conversation=C{number}", f"turn={number}"], "question": "why " * 50}
        for number, question in enumerate(conversations)
    ]
    fixed = repeated("flips", "qid", 5, before="WRONG_CLAIM", after="OK")
    part = whole_report.REPORT["slices"][0]
    value = {
        **whole_report.REPORT,
        "findings": repeated("findings", "message", 21),
        "policy_changes": repeated("policy_changes", "key", 21),
        "gold_changes": repeated("gold_changes", "qid", 11),
        "notes": repeated("notes", "message", 11),
        "questions": [*questions, {**questions[0], "run": "other"}],
        "slices": [part | {"slice": f"meta.{'long' if n else 'short'}={n}", "n": n} for n in range(10)],
        "flips": [*repeated("flips", "qid", 11), *fixed],
        "statistics": whole_report.REPORT["statistics"] | {"cluster": "conversation"},
        "baseline": whole_report.REPORT["baseline"] | {"new_runs": ["", "nightly"]},
        "run": whole_report.REPORT["run"] | {"gold_sha256": "0" * 64},
    }
    return from_json(value if baseline else value | {"baseline": None, "flips": [], "effects": []})


@pytest.mark.parametrize("baseline", [True, False])
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_a_list_with_one_entry_too_many_says_so(form, baseline):
    text = render(one_too_many(baseline=baseline), form, **({"by": True} if form == "table" else {}))
    name = "baseline" if baseline else "failing"
    expect(f"whole/cut-{name}.{RENDERERS[form][1].rpartition('.')[2]}", text)


def two_metrics():
    """A history of a metric that is compared, and of one of which two readings have another definition."""
    [series], *rest = trend(["first", "abc1234", "2026-11-01", "Why?", "precision", "sixth", "last"])
    readings = [reading._replace(comparable=index > 3) for index, reading in enumerate(series.readings)]
    other = series._replace(metric="chr", readings=tuple(readings), oldest=None, best=None, step=None)
    return [[series, other], *rest]


TREND = two_metrics()


@pytest.mark.parametrize("form", ["table", "markdown", "json", "html"])
def test_a_history_is_rendered_as_expected(form):
    series, reports, *_ = TREND
    text = body(history_page(*TREND)) if form == "html" else history.render(series, reports, form)
    expect(f"whole/history.{form}", text.rstrip("\n") + "\n")


GRADED = {
    "question": "How long?",
    "history": [{"role": "user", "content": "Hello"}],
    "answer": "28 days.\n\nOr more.",
    "citations": ["a#1", "a#2"],
    "expected_answer": "28 days",
    "chunks": [{"id": "a#1", "text": "It takes 28 days."}],
}


def test_a_form_for_grades_is_rendered_as_expected():
    bare = {"question": "Why?", "answer": "No.", "citations": [], "chunks": []}
    answers = [({"qid": "Q1"}, GRADED), ({"qid": "Q2"}, bare)]
    page = grading_form(answers, ["groundedness", "relevancy"], "Be fair.\nBe quick.", "Ann", "1.0.0")
    expect("whole/grading.html", page[page.index("<header>") : page.index("<footer>")])


def test_brackets_are_explained_only_if_there_are_intervals():
    report = from_json(whole_report.REPORT)
    bare = [gate._replace(low=None, high=None, comparison=None) for gate in report.gates]
    assert "In brackets" in render(report, "markdown")
    assert "In brackets" not in render(report._replace(gates=tuple(bare)), "markdown")


@pytest.mark.parametrize(("count", "shown", "said"), [(12, 12, 0), (13, 12, 1)])
def test_of_many_notes_on_gates_the_first_twelve_are_shown(count, shown, said):
    report = from_json(whole_report.REPORT)
    gate = report.gates[0]._replace(outcome="no_data", value=None, comparison=None)
    gates = tuple(gate._replace(why=f"reason {number}") for number in range(count))
    text = render(report._replace(gates=gates), "markdown")
    assert text.count(": no data (reason ") == shown
    assert text.count("- … and 1 more; report.json has all.") == said


def test_a_single_reading_is_named_once_at_its_axis():
    [series, _], *rest = TREND
    one = series._replace(readings=series.readings[-1:])
    page = history_page([one], *rest)
    label = one.readings[0].commit[:12] or one.readings[0].label
    assert f">{label}</text>" not in page
    assert history_page([series], *rest).count(f">{label}</text>") == 2


def test_the_details_of_questions_are_rendered_as_expected(monkeypatch, command):
    monkeypatch.chdir(ROOT)
    files = [f"--{kind}={QUICKSTART}/{name}" for kind, name in zip(("gold", "trace", "gates"), DETAILED, strict=True)]
    code, page, _ = command("score", *files, "--details", "--format", "html", "--quiet")
    assert code == 1
    expect("whole/details.html", page[page.index('<section id="questions"') : page.index("<footer>")])


def test_the_files_of_a_report_have_everything_that_their_forms_can_show(monkeypatch, command, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    files = [f"--{kind}={QUICKSTART}/{name}" for kind, name in zip(("gold", "trace", "gates"), DETAILED, strict=True)]
    page = command("score", *files, "-v", "--details", f"--out={tmp_path / 'out'}", "--quiet")[1]
    assert (tmp_path / "out" / "report.txt").read_text("utf-8") == page
    assert "Answer and evidence of <code>Q02</code>" in (tmp_path / "out" / "report.html").read_text("utf-8")


@pytest.mark.parametrize("form", RENDERERS)
def test_a_second_run_gives_the_same_bytes(form, example, report, tmp_path):
    assert render(report_of(example, tmp_path), form) == render(report, form)


@pytest.mark.parametrize("form", RENDERERS)
def test_a_rendering_ends_with_one_line_feed(form, report):
    text = render(report, form)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("form", ["table", "markdown", "html", "junit", "csv"])
def test_a_rendering_for_people_has_no_control_character(form, report):
    assert [char for char in render(report, form) if (ord(char) < 32 and char not in "\n\r") or char == "\u202e"] == []


@pytest.mark.parametrize("form", RENDERERS)
def test_no_line_is_a_command_to_the_runner(form, report):
    lines = render(report, form).splitlines()
    assert [line for line in lines if line.lstrip().startswith("::") or BRACKETED.search(line)] == []


def test_report_json_is_valid(report):
    assert list(Contract("report").faults(json.loads(render(report, "json")))) == []


def test_report_json_comes_back_as_the_same_report(report):
    text = render(report, "json")
    again = from_json(json.loads(text))
    assert render(again, "json") == text
    assert [render(again, form) for form in RENDERERS] == [render(report, form) for form in RENDERERS]


def test_pass_in_report_json_agrees_with_the_verdict(report):
    value = as_json(report)
    assert value["pass"] is (value["verdict"] == "passed")


def junit(report):
    return ET.fromstring(render(report, "junit"))


def test_junit_counts_are_those_of_its_cases(report):
    root = junit(report)
    for suite in root.iter("testsuite"):
        for count, path in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
            assert suite.get(count) == str(len(suite.findall(path)))
    for count in ("tests", "failures", "skipped"):
        assert int(root.get(count)) == sum(int(suite.get(count)) for suite in root)


def test_every_count_of_gates_and_questions_is_the_same(report):
    suites = {suite.get("name"): suite for suite in junit(report)}
    gates = [gate for gate in report.gates if not gate.name.startswith("completeness.")]
    failed, wrong = sum(gate.blocks for gate in gates), len(report.questions.failing)
    assert int(suites["rag-eval.gates"].get("tests")) == len(gates)
    assert int(suites["rag-eval.gates"].get("failures")) == failed
    assert int(suites["rag-eval.questions"].get("tests")) == len(report.questions)
    result = suites["rag-eval.questions"].get("skipped" if report.passed else "failures")
    assert int(result) == wrong
    first = " ".join(render(report, "table").partition("\n\n")[0].split())
    assert f" of {len(gates)} gate" in first or not failed
    assert f"{wrong} of {len(report.questions)} " in first or not wrong
    tiles = re.search('(?s)class="tiles".*?</ul>', render(report, "html"))[0]
    assert sum(map(int, re.findall("<strong>([0-9]+)</strong>", tiles))) == len(gates)


def test_junit_places_gates_and_questions(report):
    tests = [case for case in junit(report).iter("testcase") if case.get("classname") == "rag-eval.questions"]
    assert [int(case.get("line", "0")) for case in tests] == [question.gold_line for question in report.questions]


def test_junit_lists_warnings_and_fails_no_test_because_of_them(report):
    [output] = (element.text for element in junit(report).iter("system-out"))
    verdict, *lines = output.split("\n")
    assert verdict == summary.headline(report)
    assert [line.startswith("warning: ") for line in lines] == [True] * len(report.warnings)
    assert all(f"[{warning.code}]" in line for line, warning in zip(lines, report.warnings, strict=True))
    failed = [case.get("name") for case in junit(report).iter("testcase") if case.get("classname").endswith("findings")]
    assert failed == [error.code for error in report.errors]


def test_junit_skips_an_inconclusive_gate_unless_it_fails_the_run(report):
    positions = {"rag-eval.gates": [], "rag-eval.completeness": []}
    for case in junit(report).iter("testcase"):
        positions.get(case.get("classname"), []).append(case.find("*"))
    judged = sorted(report.gates, key=lambda gate: gate.name.startswith("completeness."))
    for gate, result in zip(judged, [item for group in positions.values() for item in group], strict=False):
        expected = "failure" if gate.blocks else "skipped" if gate.outcome != "passed" else None
        assert (result.tag if result is not None else None) == expected
        if gate.unclear:
            assert "is inconclusive: " in result.get("message")


def test_junit_names_a_gate_the_same_whatever_came_of_it(report):
    other = tuple(gate._replace(outcome="passed", value=1.0, n=9, asks=3, low=None, why="") for gate in report.gates)
    names = [
        [case.get("name") for case in junit(item).iter("testcase")] for item in (report, report._replace(gates=other))
    ]
    assert names[0] == names[1]


def sarif(report):
    [run] = json.loads(render(report, "sarif"))["runs"]
    return run["tool"]["driver"]["rules"], run["results"]


def test_sarif_has_failed_gates_findings_and_wrong_questions(report):
    _, results = sarif(report)
    wrong = [question for question in report.questions if question.label not in GOOD]
    gates = [gate for gate in report.gates if gate.broken]
    kinds = Counter(result["ruleId"].partition("/")[0] for result in results)
    assert kinds == Counter(gate=len(gates), finding=len(report.findings), question=len(wrong))
    levels = [result["level"] for result in results]
    assert levels[: len(gates)] == ["error" if gate.blocks else "warning" for gate in gates]
    assert set(levels[len(levels) - len(wrong) :]) <= {"note" if report.passed else "warning"}


def test_sarif_meets_the_standard_and_code_scanning(report):
    rules, results = sarif(report)
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        [position] = result["locations"]
        uri = position["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"(?:file://)?[A-Za-z0-9._~%/!$&'()*+,;=:@-]+", uri)
        assert position["physicalLocation"].get("region", {"startLine": 1})["startLine"] >= 1
    told_by = [(item["ruleId"], item["partialFingerprints"]["ragEval/v1"]) for item in results]
    assert len(set(told_by)) == len(told_by)


def test_sarif_of_a_report_that_names_no_file_points_at_the_usual_gates(monkeypatch):
    monkeypatch.chdir(ROOT)
    bare = report_of("bad", None)._replace(inputs=(), gates_file="")
    positions = [item["locations"][0]["physicalLocation"] for item in sarif(bare)[1]]
    assert {position["artifactLocation"]["uri"] for position in positions} == {"eval-gates.yml"}
    assert not any("region" in position for position in positions)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("eval/gold.jsonl", "eval/gold.jsonl"),
        ("./my eval/größe#1?.jsonl", "my%20eval/gr%C3%B6%C3%9Fe%231%3F.jsonl"),
        ("eval\\gold.jsonl", "eval/gold.jsonl"),
        ("eval/x/../gold.jsonl", "eval/gold.jsonl"),
    ],
)
def test_sarif_writes_a_path_as_an_address(path, uri, monkeypatch):
    monkeypatch.chdir(ROOT)
    report = report_of("bad", None)
    inputs = tuple(item._replace(path=path) if item.role == "trace" else item for item in report.inputs)
    last = sarif(report._replace(inputs=inputs))[1][-1]
    assert last["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


@pytest.mark.parametrize(
    "path", ["/srv/gold 1.jsonl", "../gold.jsonl", "eval/../../gold.jsonl", "C:\\gold.jsonl", "\\\\host\\gold.jsonl"]
)
def test_sarif_points_at_no_file_outside_the_repository(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    report = report_of("bad", None)
    inputs = tuple(item._replace(path=path) if item.role == "trace" else item for item in report.inputs)
    position = sarif(report._replace(inputs=inputs))[1][-1]["locations"][0]["physicalLocation"]
    assert position == {"artifactLocation": {"uri": report.gates_file, "uriBaseId": "%SRCROOT%"}}


def test_sarif_fingerprints_do_not_depend_on_lines(report):
    moved = QuestionList(
        replace(question, trace_line=question.trace_line and question.trace_line + 7) for question in report.questions
    )
    before, after = (
        [entry["partialFingerprints"] for entry in sarif(item)[1]]
        for item in (report, report._replace(questions=moved))
    )
    assert before == after


@pytest.mark.parametrize("qid", ["[click](https://e.test)", "a\\[b](c)", "\u202e[x]", "\n\n[a]: b", "[1](1)"])
def test_sarif_texts_have_no_links(qid, monkeypatch):
    monkeypatch.chdir(ROOT)
    report = report_of("bad", None)
    questions = QuestionList(replace(question, qid=f"{qid}{index}") for index, question in enumerate(report.questions))
    texts = [item["message"]["text"] for item in sarif(report._replace(questions=questions))[1]]
    assert [text for text in texts if re.search(r"(?<!\\)(?:\\\\)*[\[\]]", text)] == []
    assert all(char.isprintable() for text in texts for char in text)


# What GitLab documents for the artifact reports:codequality.
CODE_QUALITY = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}(-[0-9]+)?$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\.?/|.*\.\./)."},
                    "lines": {"type": "object", "properties": {"begin": {"type": "integer", "minimum": 1}}},
                },
            },
        },
    },
}


def test_code_quality_has_the_format_of_gitlab(report):
    issues = json.loads(render(report, "codequality"))
    jsonschema.Draft202012Validator(CODE_QUALITY).validate(issues)
    fingerprints = [issue["fingerprint"] for issue in issues]
    assert len(set(fingerprints)) == len(fingerprints)
    kinds = Counter(issue["check_name"].partition("/")[0] for issue in issues)
    gates, wrong = [gate for gate in report.gates if gate.broken], report.questions.failing
    assert kinds == Counter(gate=len(gates), finding=len(report.findings), question=len(wrong))
    severities = [issue["severity"] for issue in issues]
    assert severities[: len(gates)] == ["critical" if gate.blocks else "minor" for gate in gates]
    assert set(severities[len(severities) - len(wrong) :]) <= {"info" if report.passed else "major"}


def test_code_quality_points_at_files_of_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)
    issues = json.loads(render(report_of("bad", None), "codequality"))
    paths = {issue["check_name"].partition("/")[0]: issue["location"]["path"] for issue in issues}
    assert paths == {"gate": f"{QUICKSTART}/eval-gates.yml", "question": f"{QUICKSTART}/gold.jsonl"}


def test_code_quality_fingerprints_do_not_depend_on_lines(report):
    moved = QuestionList(replace(question, gold_line=question.gold_line + 7) for question in report.questions)
    gates = tuple(gate._replace(line=gate.line + 7) for gate in report.gates)
    before, after = (
        [issue["fingerprint"] for issue in json.loads(render(item, "codequality"))]
        for item in (report, report._replace(questions=moved, gates=gates))
    )
    assert before == after


def test_csv_has_a_column_of_flips_if_there_is_a_baseline(report):
    flipped = {(row["qid"], row.get("flip")) for row in table_of(report) if row.get("flip")}
    sure = [flip for flip in report.flips if flip.qid in {question.qid for question in report.questions}]
    assert ("flip" in table_of(report)[0]) is (report.baseline is not None)
    assert len(flipped) == len({(flip.qid, flip.run) for flip in sure if flip.run is None})


def table_of(report):
    return list(csv.DictReader(io.StringIO(render(report, "csv"), newline="")))


def test_csv_has_a_row_a_question_and_a_column_a_metric(report):
    rows = table_of(report)
    assert len(rows) == len(report.questions)
    assert {measure(name).column for name in report.metrics if measure(name).metric.level == "case"} < set(rows[0])


def test_csv_scores_are_the_scores_of_the_report(report):
    for row, question in zip(table_of(report), report.questions, strict=True):
        named = {measure(name).column for name in report.metrics} & row.keys()
        scores = {name: float(row[name]) for name in named if row[name] != ""}
        assert scores == question.scores


def test_csv_has_no_formula(report):
    cells = [cell for row in table_of(report) for name, cell in row.items() if name in ("qid", "run", "question")]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []


def html_of(markdown):
    import cmarkgfm
    from cmarkgfm.cmark import Options

    return cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)


def test_markdown_lets_no_tag_of_the_data_through(report):
    html = html_of(render(report, "markdown"))
    tags = {part.split(">")[0].split()[0].strip("/") for part in html.split("<")[1:]}
    assert tags <= TAGS


@pytest.mark.parametrize(("form", "options"), [("table", {"verbose": True}), ("markdown", {}), ("html", {})])
def test_an_interval_with_one_known_end_is_the_same_in_all_formats(form, options, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = " ".join(render(report_of("bad", None), form, **options).split())
    assert "990 ms (≥ 810)†" in text
    assert "≥ or ≤ in brackets: only one end of the interval is known." in text
    assert not re.search(r"\((from|to) [0-9]", text)


def test_markdown_mentions_nobody(report):
    assert "@octocat" not in render(report, "markdown")


def test_markdown_tables_keep_their_columns_whatever_the_data(report):
    rows = html_of(render(report, "markdown")).split("<table>")[1:]
    for table in rows:
        widths = {row.count("<th") + row.count("<td") for row in table.split("</table>")[0].split("<tr>")[1:]}
        assert len(widths) == 1


def test_a_terminal_breaks_no_name_while_another_column_can_wrap_at_a_space(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    table = render(report_of("compared", tmp_path), "table").partition("In brackets")[0]
    assert "\ndifficulty=medium " in table
    assert max(map(len, table.splitlines())) <= 100
