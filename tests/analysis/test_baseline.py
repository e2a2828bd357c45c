"""A run beside a baseline, through `rag-eval score`: where it is read, what pairs, what gold and system each did."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import stats

import rag_eval
from cases import gold_row, trace_row, write_rows
from project import GOLDS, TRACES, Project, apart, besides_tracked, gates, gold_of, json_lines, trace_of, wrong
from rag_eval.analysis.baseline import disagreeing, flips, less_judged, must_pass
from rag_eval.gates.evidence import pair_cases
from runs import evidence, question
from seams import GOOD, MEANING, Baseline, Contract, from_json, main, render

BASELINE, OLD = "eval/baseline.json", "eval/baseline.jsonl"
KEPT = f"baseline: {{report: {BASELINE}}}\n"
WITH_TRACES = f"baseline: {{report: {BASELINE}, trace: {OLD}}}\n"
MARGIN = "{max_drop: 0.02, test: none}"  # eight questions are too few for chance to be out of the question


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A project whose first commit holds the report of its own run as the baseline, and the traces of that."""
    with pytest.MonkeyPatch.context() as patch:
        apart(patch)
        project = Project.made(tmp_path_factory.mktemp("begun") / "repo", gates(WITH_TRACES, precision=MARGIN))
        patch.chdir(project.path)
        record(project)
        project.done("baseline")
        yield project


def record(project, path=BASELINE, traces=OLD):
    """Score what is there, and keep the report (and the traces) as the baseline."""
    project.write(traces, (project.path / "runs/trace.jsonl").read_text("utf-8"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.path)
        main(["score", "--format", "json", "--quiet", "--out", "made"])
    (project.path / "made" / "report.json").replace(project.path / path)


@pytest.fixture
def score(capsys, tmp_path):
    """``rag-eval score``: the report, held to its schema, brought back whole, and judged again to the same bytes."""

    def score(*words):
        capsys.readouterr()  # what was recorded before
        score.code = main(["score", "--format", "json", "--quiet", *words])
        out, score.said = capsys.readouterr()
        if score.code == 2:
            return None
        (tmp_path / "report.json").write_text(out, encoding="utf-8")
        report = json.loads(out)
        assert list(Contract("report").faults(report)) == []
        assert render(from_json(report), "json") == out
        assert main(["gate", str(tmp_path / "report.json"), "--format", "json", "--quiet"]) == score.code
        assert capsys.readouterr().out == out
        return report

    return score


def codes(report):
    return [item["code"] for item in besides_tracked(report["findings"])]


def gate(report, name="precision", direction="max_drop"):
    (result,) = [item for item in report["gates"] if (item["name"], item["direction"]) == (name, direction)]
    return result


def effect(report, name="precision"):
    (result,) = [item for item in report["effects"] if item["name"] == name]
    return result["system"], result["gold"]


# --- one run beside another -------------------------------------------------------------------------------------------


def test_runs_that_the_baseline_does_not_have_are_not_called_unchanged(project, score):
    rows = [json.loads(line) for line in (project.path / "runs/trace.jsonl").read_text("utf-8").splitlines()]
    project.write("runs/trace.jsonl", json_lines([{**row, "run": run} for run in ("a", "b") for row in rows]))
    report = score()
    assert (score.code, gate(report)["outcome"], report["flips"]) == (1, "no_data", [])
    assert (report["baseline"]["cases"], report["baseline"]["unpaired"]) == (8, 8)
    text = render(from_json(report), "markdown")
    assert "the baseline has no runs of these names; name runs as it does, or first renew it" in text
    assert "**No case to compare.**" in text
    assert "8 questions in both with the same gold item, 8 of them without a run of the same name" in text
    assert "newly broken" not in text
    assert "Runs that the baseline lacks, which are not compared: `a`, `b`." in text


def test_a_run_beside_itself_moved_nowhere(project, score):
    report = score()
    assert (score.code, report["flips"], effect(report), codes(report)) == (0, [], (0.0, 0.0), [])
    result = report["baseline"]
    assert (result["path"], result["cases"], result["changed"], result["gone"], result["new"]) == (BASELINE, 8, 0, 0, 0)
    assert (result["incomparable"], result["rescored"]) == ([], True)


def test_what_broke_is_named_and_fails(project, score):
    project.put(trace=wrong(2, 3))
    report = score()
    assert (score.code, gate(report)["outcome"], gate(report)["comparison"]["regression"]) == (1, "failed", 0.5)
    assert [item["qid"] for item in report["flips"]] == ["Q2", "Q3"]
    assert effect(report) == (-0.5, 0.0)


def test_the_order_of_lines_does_not_matter(project, score):
    project.put(trace=wrong(1))
    item = score()
    project.put(trace=wrong(1)[::-1], gold=GOLDS[::-1])
    other = score()
    assert [entry | {"line": 0} for entry in item["gates"]] == [entry | {"line": 0} for entry in other["gates"]]
    assert (item["flips"], item["effects"], item["slices"]) == (other["flips"], other["effects"], other["slices"])


def test_a_baseline_on_the_command_line_comes_before_that_of_the_file(project, score):
    project.put(trace=wrong(1))
    record(project, "eval/worse.json")
    report = score("--baseline", "eval/worse.json")
    assert (score.code, report["baseline"]["path"], gate(report)["outcome"]) == (0, "eval/worse.json", "passed")


@pytest.mark.parametrize("named", ["eval/older.json", f"./{BASELINE}"])
def test_another_baseline_than_the_bases_is_said(project, score, named):
    record(project, "eval/older.json")
    project.done("an older one")
    content = [("baseline-overridden", "warning")] if named == "eval/older.json" else []
    report = score("--base", "main", "--baseline", named)
    assert [
        (item["code"], item["level"])
        for item in besides_tracked(report["findings"])
        if item["code"] != "baseline-traces"
    ] == content


def test_where_there_is_no_baseline_it_is_said_and_the_gate_fails(project, score):
    (project.path / BASELINE).unlink()
    report = score()
    assert (score.code, codes(report), gate(report)["outcome"]) == (1, ["no-baseline"], "no_data")
    assert (gate(report)["why"], report["baseline"], report["flips"]) == (
        "the gates file names no baseline",
        None,
        [],
    )


def test_a_baseline_that_is_asked_for_has_to_be_there(project, score):
    assert (score("--baseline", "eval/gone.json"), score.code) == (None, 2)
    assert "eval/gone.json: no such file" in score.said


LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 3\n"


def unreadable(project, path, how):
    """In place of a file: what stands there and is not it."""
    position = project.path / path
    position.unlink()
    if how == "pointer":
        position.write_text(LFS_POINTER, encoding="utf-8")
    elif how == "folder":
        position.mkdir()
    else:
        position.symlink_to("/etc/hostname" if how == "link out" else "gone.json")


@pytest.mark.parametrize("base", [(), ("--base", "main")], ids=["alone", "against a base"])
@pytest.mark.parametrize("how", ["pointer", "folder", "link out", "link to nothing"])
@pytest.mark.parametrize("path", [BASELINE, OLD])
def test_a_baseline_that_is_there_and_cannot_be_read_is_not_none_yet(project, score, path, how, base):
    project.git("rm", "-q", "--cached", BASELINE, OLD)
    project.git("commit", "-q", "-m", "the base has none yet")
    unreadable(project, path, how)
    score(*base)
    assert (score.code, f"{path}: " in score.said) == (2, True), score.said


@pytest.mark.parametrize("text", ["{}", "not json", '{"format": 1}'])
def test_a_baseline_that_is_no_report_is_refused(project, score, text):
    project.write(BASELINE, text)
    assert (score(), score.code) == (None, 2)
    assert "A baseline is a report.json of this version" in score.said


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        (["scope"], ""),
        (["scope", "verdict"], "… and 1 more problem not shown."),
        (["scope", "verdict", "k"], "… and 2 more problems not shown."),
    ],
)
def test_the_first_problem_of_a_baseline_is_shown_and_the_others_counted(project, score, fields, more):
    report = json.loads((project.path / BASELINE).read_text("utf-8"))
    project.write(BASELINE, json.dumps({name: value for name, value in report.items() if name not in fields}))
    assert (score(), score.code) == (None, 2)
    assert score.said.count(" is missing") == 1
    assert "".join(re.findall(r"… and .*", score.said)) == more


def test_a_baseline_of_the_base_that_cannot_be_read_is_renewed_by_a_change_that_decides_for_itself(project, score):
    """As that of another version: the one that the change brings does not decide, so it is said what does."""
    good = (project.path / BASELINE).read_text("utf-8")
    older = json.loads(good)
    del older["scope"]
    project.write(BASELINE, json.dumps(older))
    project.done("of an older version")
    project.branch("pr")
    project.write(BASELINE, good)
    project.done("renewed")
    assert (score("--base=main"), score.code) == (None, 2)
    assert f"{BASELINE} of main: 'scope' is missing" in score.said
    assert "use gates-ref: head for this pull request" in score.said
    project.write(BASELINE, "{}")
    assert (score(), "gates-ref" in score.said) == (None, False)


@pytest.mark.parametrize(("name", "value"), [("mrr", -1e300), ("precision", 0.5)])
def test_a_baseline_whose_scores_no_metric_gives_is_refused(project, score, name, value):
    remaining = json.loads((project.path / BASELINE).read_text("utf-8"))
    for case in remaining["questions"]:
        case["scores"][name] = value
    project.write(BASELINE, json.dumps(remaining))
    assert (score(), score.code) == (None, 2)
    assert f"'{name}' cannot be" in score.said
    assert "A baseline is a report.json of this version" in score.said


def test_another_contract_is_no_baseline_for_the_metrics_that_it_is_about(project, score):
    project.put(gates=gates(KEPT + 'refusal: {token: "cannot say"}\n', precision=MARGIN, mrr="{max_drop: 0.1}"))
    report = score()
    assert gate(report)["why"].startswith("the baseline has no value of it")
    assert gate(report, "mrr")["outcome"] == "passed"  # a ranking does not hang on what was answered
    assert "precision" in report["baseline"]["incomparable"]
    assert "mrr" not in report["baseline"]["incomparable"]


def test_baselines_with_their_traces_are_measured_anew_under_another_contract(project, score):
    project.put(gates=gates(WITH_TRACES + 'refusal: {token: "cannot say"}\n', precision=MARGIN))
    report = score()
    assert (gate(report)["outcome"], report["baseline"]["incomparable"]) == ("passed", [])
    assert effect(report) == (0.0, None)  # what the other token did is not the gold's doing


# --- many tests, through the report -----------------------------------------------------------------------------------


def test_every_test_of_a_report_is_corrected_as_scipy_and_statsmodels_would(project, score):
    number = 60
    golds = [{**gold_of(1 + i % 4), "qid": f"Q{i}", "category": "abc"[i % 3]} for i in range(number)]
    good = [{**trace_of(1 + i % 4), "qid": f"Q{i}"} for i in range(number)]
    bad = [{**wrong(1 + i % 4)[i % 4], "qid": f"Q{i}"} if i % 3 and i < 20 else row for i, row in enumerate(good)]
    sliced = 'slices: {min_n: 5, gates: {"category=*": {precision: {max_drop: 0.05}}}}\n'
    project.put(gates=gates(KEPT + sliced, precision="{max_drop: 0.02}", chr="{max_drop: 0.3}"), gold=golds, trace=good)
    record(project)
    project.put(trace=bad)
    report = score()
    before = json.loads((project.path / BASELINE).read_text("utf-8"))
    sides = [{case["qid"]: case for case in entry["questions"]} for entry in (before, report)]
    made = [entry for entry in report["gates"] if entry["comparison"]]
    assert [entry["slice"] for entry in made] == ["", "", "category=a", "category=b", "category=c"]
    expected = []
    for item in made:
        qids = [qid for qid, case in sides[1].items() if not item["slice"] or item["slice"] in case["slices"]]
        turns = [sides[0][qid]["scores"][item["name"]] - sides[1][qid]["scores"][item["name"]] for qid in qids]
        regressed, both = sum(turn > 0 for turn in turns), sum(turn != 0 for turn in turns)
        expected.append(stats.binomtest(regressed, both, alternative="greater").pvalue if both else 1.0)
    assert [entry["comparison"]["p"] for entry in made] == pytest.approx(expected, rel=1e-9)
    # precision and chr move alike and count once. Everything that moves gets worse: each p is the smallest that its
    # test could have, so that no smaller slice could have had the p of a larger one.
    assert [entry["comparison"]["adjusted"] for entry in made] == pytest.approx(expected, rel=1e-9)
    assert [entry["outcome"] for entry in made] == ["failed", "passed", "passed", "failed", "failed"]


# --- the base decides -------------------------------------------------------------------------------------------------


def test_a_replaced_baseline_is_named_and_the_bases_compared_with(project, score):
    project.branch("pr")
    project.put(trace=wrong(1, 2))
    record(project)
    project.done()
    report = score("--base=main")
    assert (score.code, gate(report)["outcome"], gate(report)["comparison"]["regression"]) == (1, "failed", 0.5)
    assert codes(report) == ["baseline-changed"]
    assert report["baseline"]["ref"] == "main"
    assert "this change replaced the baseline" in besides_tracked(report["findings"])[0]["message"]


def test_a_baseline_that_the_base_has_replaced_since_is_not_said_to_be_changed_here(project, score):
    project.branch("pr")
    project.done("nothing")
    project.git("checkout", "-q", "main")
    project.write(BASELINE, (project.path / BASELINE).read_text("utf-8") + "\n")
    project.done("main goes on")
    project.git("checkout", "-q", "pr")
    report = score("--base", "main")
    assert (codes(report), report["baseline"]["ref"]) == ([], "main")
    project.write(BASELINE, (project.path / BASELINE).read_text("utf-8") + "\n\n")
    assert codes(score("--base", "main")) == ["baseline-changed"]


def test_line_ends_of_the_work_tree_change_neither_the_baseline_nor_its_traces(project, score):
    """A check-out on Windows has other bytes than git, and so may the traces that a baseline was scored from there."""
    project.write("runs/trace.jsonl", json_lines(TRACES).replace("\n", "\r\n"))
    record(project)
    project.done("the report of traces with other line ends than git keeps")
    project.write(BASELINE, (project.path / BASELINE).read_bytes().replace(b"\n", b"\r\n"))
    report = score("--base=main")
    assert (codes(report), report["baseline"]["rescored"]) == ([], True)


def test_a_removed_baseline_is_named_and_the_bases_compared_with(project, score):
    project.branch("pr")
    (project.path / BASELINE).unlink()
    project.put(trace=wrong(1))
    project.done()
    report = score("--base=main")
    assert (score.code, gate(report)["outcome"], codes(report)) == (1, "failed", ["baseline-changed"])
    assert "this change removed the baseline" in besides_tracked(report["findings"])[0]["message"]


LFS_POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 1234\n"


@pytest.mark.parametrize("fetched", [False, True])
def test_traces_of_the_baseline_in_git_lfs_are_not_replaced_by_fetching_them(project, score, fetched):
    traces = (project.path / OLD).read_text("utf-8")
    project.write(OLD, LFS_POINTER)
    project.done("the traces go to Git LFS")
    project.branch("pr")
    if fetched:
        project.write(OLD, traces)
    assert codes(score("--base=main")) == ["baseline-traces"]


@pytest.mark.parametrize(("content", "verb"), [("", "removed"), (LFS_POINTER, "replaced")])
def test_other_traces_of_the_baseline_are_named_and_not_read(project, score, content, verb):
    project.branch("pr")
    (project.path / OLD).unlink()
    if content:
        project.write(OLD, content)
    project.done()
    report = score("--base=main")
    assert (codes(report), report["baseline"]["rescored"]) == (["baseline-changed"], True)
    assert f"this change {verb} '{OLD}' of the baseline" in besides_tracked(report["findings"])[0]["message"]


def test_another_baseline_in_the_gates_file_does_not_decide(project, score):
    project.branch("pr")
    project.put(trace=wrong(1), gates=gates("baseline: {report: eval/mine.json}\n", precision=MARGIN))
    record(project, "eval/mine.json", "eval/mine.jsonl")
    project.done()
    report = score("--base=main")
    assert (score.code, report["baseline"]["path"]) == (1, BASELINE)
    assert {item["key"] for item in report["policy_changes"]} == {"baseline.report", "baseline.trace"}


def test_the_first_baseline_is_that_of_the_change_and_this_is_said(project, score):
    project.git("checkout", "-q", "main~1")
    project.branch("first", "HEAD")
    record(project)
    project.done()
    report = score("--base=main~1")
    assert (score.code, codes(report), report["baseline"]["ref"]) == (0, ["baseline-from-head"], "")


@pytest.mark.parametrize("name", [BASELINE, "eval/mine.json"])
def test_traces_that_a_change_adds_with_a_new_baseline_are_no_mismatch(project, score, name):
    project.put(gates=gates(KEPT, precision=MARGIN))
    (project.path / OLD).unlink()
    project.done("only the report")
    project.branch("pr")
    project.put(trace=wrong(1), gates=gates(WITH_TRACES.replace(BASELINE, name), precision=MARGIN))
    record(project, name)
    project.done()
    assert "baseline-traces" not in codes(score("--base=main"))


def test_traces_of_the_baseline_in_the_gates_file_need_not_match_another_report(project, score):
    project.put(trace=wrong(1))
    record(project, "eval/other.json", "eval/other.jsonl")
    assert codes(score("--baseline=eval/other.json")) == []


def test_traces_that_are_not_those_of_the_baseline_are_left_out(project, score):
    """A change that brings worse traces for the baseline would hide its own regression."""
    project.branch("pr")
    project.put(trace=wrong(1))
    project.write(OLD, json_lines(wrong(1, 2, 3, 4)))
    project.put(gates=gates(WITH_TRACES.replace(OLD, "eval/mine.jsonl"), precision=MARGIN))
    project.write("eval/mine.jsonl", json_lines(wrong(1, 2, 3, 4)))
    project.done()
    report = score("--base=main")
    assert (score.code, report["baseline"]["rescored"], gate(report)["outcome"]) == (1, True, "failed")
    project.git("checkout", "-q", "main")
    project.write(OLD, json_lines(wrong(1, 2, 3, 4)))
    project.put(trace=wrong(1))
    report = score()
    assert (score.code, report["baseline"]["rescored"], codes(report)) == (1, False, ["baseline-traces"])
    (project.path / OLD).unlink()
    assert "are missing" in score()["findings"][0]["message"]


# --- changed gold -----------------------------------------------------------------------------------------------------

IN_SLICE = "slices: {{min_n: {}, gates: {{category=a: {{precision: {}}}}}}}\n".format


@pytest.mark.parametrize(
    ("changed", "settings", "margin", "is_said"),
    [
        (3, "", MARGIN, True),
        (8, "", MARGIN, False),  # it has no data, so it fails anyway
        (8, "", "{max_drop: 0.02, test: none, when_no_data: skip}", True),
        (3, IN_SLICE(8, MARGIN), "{min: 0}", True),
        (3, IN_SLICE(9, MARGIN), "{min: 0}", False),  # it is inconclusive anyway
    ],
)
def test_a_regression_in_changed_questions_is_said_if_its_gate_passes(
    project, score, changed, settings, margin, is_said
):
    golds = [{**row, "category": "a"} for row in GOLDS]
    project.put(gates=gates(KEPT + settings, precision=margin), gold=golds)
    record(project)
    tagged = [{**row, "tags": ["new"]} for row in golds[:changed]]
    project.put(gold=tagged + golds[changed:], trace=wrong(1, 2, 3))
    report = score()
    assert [item["code"] for item in report["findings"] if item["code"] == "fewer-cases"] == ["fewer-cases"] * is_said


MOVED = [gold_of(n, gold_claim_substr=["one year"]) if n == 2 else row for n, row in enumerate(GOLDS, 1)]


def test_without_its_traces_a_changed_item_drops_out(project, score):
    project.put(gates=gates(KEPT, precision=MARGIN), gold=MOVED)
    report = score()
    assert (score.code, gate(report)["comparison"]["n"], effect(report)) == (0, 3, (0.0, None))
    assert (report["baseline"]["cases"], report["baseline"]["changed"], report["flips"]) == (7, 1, [])


def test_with_its_traces_the_gold_is_told_from_the_system(project, score):
    """Gold turns Q2 against both runs; the system breaks Q3."""
    project.put(gold=MOVED, trace=wrong(3))
    report = score()
    assert effect(report) == (-0.25, -0.25)
    result = gate(report)["comparison"]
    assert (result["n"], result["baseline"], result["value"], result["regression"]) == (4, 0.75, 0.5, 0.25)
    assert [item["qid"] for item in report["flips"]] == ["Q3"]
    assert (report["baseline"]["cases"], report["baseline"]["changed"]) == (7, 1)


def test_a_system_that_follows_the_gold_gained(project, score):
    project.put(
        gold=MOVED,
        trace=[
            trace_of(2, answer_json={"claim": "one year", "citations": ["c2"]}) if n == 2 else row
            for n, row in enumerate(TRACES, 1)
        ],
    )
    report = score()
    assert (score.code, effect(report)) == (0, (0.25, -0.25))
    assert [(item["qid"], item["after"]) for item in report["flips"]] == [("Q2", "OK")]


TOUCHED = [{**gold, "difficulty": "hard"} for gold in GOLDS[:2]] + GOLDS[2:]


def test_failing_items_that_are_touched_out_of_the_comparison_are_no_quiet_way(project, score):
    """Without the traces of the baseline a changed item drops out: the gate that fails on the old gold says so."""
    project.put(gates=gates(KEPT, precision=MARGIN))
    project.done("the report alone")
    project.change(trace=wrong(1, 2), gold=TOUCHED)
    report = score("--base", "main")
    assert gate(report)["outcome"] == "passed"
    assert [(item["name"], item["before"], item["after"]) for item in report["gate_turns"]] == [
        ("precision", "failed", "passed")
    ]
    assert "gold-turns-gates" in codes(report)


def test_the_old_gold_is_held_against_the_baseline_on_the_old_gold(project, score):
    """With its traces both sides are scored anew on either gold: what breaks breaks on both."""
    project.change(trace=wrong(1, 2), gold=TOUCHED)
    report = score("--base", "main")
    assert (gate(report)["outcome"], report["gate_turns"]) == ("failed", [])
    assert "gold-turns-gates" not in codes(report)


def test_a_question_that_passed_and_is_retired_is_no_failing_one(project, score):
    project.change(gold=GOLDS[1:], trace=TRACES[1:])
    report = score("--base", "main")
    (change,) = report["gold_changes"]
    assert (score.code, change["verb"], change["before"]) == (0, "removed", "OK")
    assert not {"failing-items-removed", "gold-turns-gates"}.intersection(codes(report))
    assert "removed-items-unseen" in codes(report)  # it passed then, and nobody asked it now
    assert report["gate_turns"] == []


def test_a_question_that_the_baseline_failed_and_that_nobody_answers_any_more_is_a_failing_one(project, score):
    project.put(trace=wrong(1))
    record(project)
    project.done("a baseline that fails")
    project.change(gold=GOLDS[1:], trace=TRACES[1:])
    assert "failing-items-removed" in codes(score("--base", "main"))


def test_new_questions_are_no_failures_of_the_baseline(project, score):
    """Else easy new questions would hide what broke."""
    more = [{**gold_of(1), "qid": f"N{i}"} for i in range(20)]
    easy = [{**trace_of(1), "qid": f"N{i}"} for i in range(20)]
    project.put(gold=[*GOLDS, *more], trace=[*wrong(1), *easy])
    report = score()
    assert (report["baseline"]["new"], gate(report)["comparison"]["n"]) == (20, 4)
    assert (score.code, gate(report)["comparison"]["regression"]) == (1, 0.25)
    assert [item["qid"] for item in report["flips"]] == ["Q1"]


def test_questions_that_are_gone_are_counted_even_where_traces_are_known_by_their_question(project, score):
    unnamed = [
        {name: value for name, value in row.items() if name != "qid"} | {"question": gold["question"]}
        for row, gold in zip(TRACES, GOLDS, strict=True)
    ]
    project.put(trace=unnamed)
    record(project)
    project.put(gold=GOLDS[1:], trace=unnamed[1:])
    report = score()
    assert (score.code, report["baseline"]["gone"], report["baseline"]["cases"]) == (0, 1, 7)


# --- must_pass --------------------------------------------------------------------------------------------------------


def guarded(names, traces):
    return gates((WITH_TRACES if traces else KEPT) + f"must_pass: [{names}]\n", precision="{min: 0.1}")


@pytest.mark.parametrize("traces", [True, False])
def test_a_case_that_has_to_pass_and_does_not_fails_the_run(project, score, traces):
    project.put(gates=guarded("Q2", traces), trace=wrong(1, 2))
    report = score()
    assert (score.code, codes(report)) == (1, ["must-pass-broken"])
    assert besides_tracked(report["findings"])[0]["message"].startswith(
        "Q2 must pass and passed in the baseline, but now fails: "
    )


@pytest.mark.parametrize("traces", [True, False])
def test_a_case_that_has_to_pass_and_is_gone_fails_the_run(project, score, traces):
    project.put(
        gates=guarded("Q2", traces),
        gold=[row for row in GOLDS if row["qid"] != "Q2"],
        trace=[row for row in TRACES if row["qid"] != "Q2"],
    )
    report = score()
    assert (score.code, codes(report)) == (1, ["must-pass-gone"])


@pytest.mark.parametrize("traces", [True, False])
def test_slices_that_have_to_pass(project, score, traces):
    tagged = [{**row, "tags": ["critical"]} if row["qid"] in ("Q1", "Q3") else row for row in GOLDS]
    project.put(gates=guarded('"tags=critical"', traces), gold=tagged)
    record(project)
    project.put(trace=wrong(2, 3))
    report = score()
    assert (score.code, [item["message"].split()[0] for item in besides_tracked(report["findings"])]) == (1, ["Q3"])
    project.put(gold=GOLDS)  # to take the tag away is no way out
    assert codes(score()) == (["must-pass-broken"])


def test_the_base_says_what_has_to_pass(project, score):
    project.put(gates=guarded("Q2", traces=True))
    project.done("guard")
    project.change(gates=gates(WITH_TRACES, precision="{min: 0.1}"), trace=wrong(2))
    report = score("--base=main")
    assert (score.code, codes(report)) == (1, ["must-pass-broken"])


def test_without_a_baseline_nothing_is_known_to_have_passed(project, score):
    project.put(gates=gates("must_pass: [Q2]\n"))
    report = score()
    assert (score.code, codes(report)) == (0, ["must-pass-unjudged"])


def test_a_name_that_no_case_answers_to_is_said(project, score):
    project.put(gates=guarded("q2, Q3", traces=True))
    report = score()
    assert (score.code, codes(report)) == (0, ["must-pass-unknown"])
    assert "'q2'" in besides_tracked(report["findings"])[0]["message"]


label = st.sampled_from(sorted(MEANING))
runs = st.dictionaries(st.tuples(st.sampled_from("ABC"), st.sampled_from("xy")), label, max_size=6)


def cases(labels):
    return [question(qid, label, run=run) for (qid, run), label in labels.items()]


@given(runs, runs)
def test_what_did_not_change_does_not_break(before, after):
    asked, old = ["A", "B", "C"], Baseline(cases(before), {})
    codes = {
        (item.code, item.message[0]) for item in must_pass(asked, old, cases(after)) if item.code != "must-pass-unknown"
    }
    for qid in asked:
        then, now = ([label in GOOD for (ours, _), label in side.items() if ours == qid] for side in (before, after))
        passed = bool(then) and all(then)
        assert (("must-pass-gone", qid) in codes) == (passed and not now)
        assert (("must-pass-broken", qid) in codes) == (passed and not all(now))
    assert not [item for item in must_pass(asked, old, cases(before)) if item.code != "must-pass-unknown"]


@given(runs, runs)
def test_flips_are_those_that_pass_on_one_side_alone_broken_ones_first(before, after):
    result = flips(pair_cases(cases(before), cases(after)))
    back = flips(pair_cases(cases(after), cases(before)))
    assert all((item.before in GOOD) != (item.after in GOOD) for item in result)
    there, again = ([(item.qid, item.before, item.after) for item in side] for side in (result, back))
    assert sorted(there) == sorted((qid, after, before) for qid, before, after in again)
    sides = [item.after in GOOD for item in result]
    assert sides == sorted(sides)


# --- Simpson's paradox ------------------------------------------------------------------------------------------------


def answered(part, before, after):
    """Precision of cases of a slice under both runs, None where refused."""
    pairs = zip(before, after, strict=True)
    rows = [(f"{part}{i}", [f"category={part}"], *pair) for i, pair in enumerate(pairs)]
    return [
        [question(qid, slices=parts, precision=score) for qid, parts, *scores in rows for score in [scores[side]]]
        for side in (0, 1)
    ]


def simpson(easy, hard):
    """The finding where easy and hard questions have these scores before and after."""
    (before, after), (more, newer) = answered("easy", *easy), answered("hard", *hard)
    return list(disagreeing(["precision"], ["category"], evidence(after + newer, before + more)))


# Better in each slice (9/10 to 10/10; 0/2 to 2/20), worse on the whole (9/12 to 12/30): more hard ones are answered.
EASY = [1] * 9 + [0] + [None] * 10, [1] * 10 + [None] * 10
HARD = [0] * 2 + [None] * 18, [1] * 2 + [0] * 18


def test_slices_that_all_move_against_the_whole_are_named():
    (result,) = simpson(EASY, HARD)
    assert (result.code, result.level) == ("slices-disagree", "warning")
    assert result.message.startswith("precision moved one way in every slice by category")


def test_slices_that_move_with_the_whole_are_not():
    assert simpson(([1, 1], [0, 1]), ([1, 1], [0, 1])) == []
    assert simpson(EASY, (HARD[0], [None] * 18 + [0] * 2)) == []
    assert simpson(EASY, EASY) == []


def test_a_retriever_that_finds_what_nobody_judged_is_named(project, score):
    grades = {"relevance_grades": {f"c{n}": 1 for n in range(1, 5)} | {"x": 0}}
    golds = [{**gold_of(n), **grades} for n in range(1, 5)]
    project.put(gates=gates(KEPT, precision="{min: 0}"), gold=golds)
    record(project)
    project.put(trace=[{**trace_of(n), "retrieved_ids": [f"c{n}", "new1", "new2"]} for n in range(1, 5)])
    result = [item for item in score()["findings"] if item["code"] == "less-judged"]
    assert [item["level"] for item in result] == ["warning"]
    assert result[0]["message"].startswith("judged@3 fell from 0.500 to 0.333")


def graded(before, after, k, *names, contracts=None):
    """What is found where the share of graded chunks was ``before`` and is ``after``, under each of the names."""
    sides = ([replace(question("Q1"), scores=dict.fromkeys(names, share))] for share in (after, before))
    return [item.message for item in less_judged(names, k, evidence(*sides, contracts))]


@pytest.mark.parametrize(("after", "named"), [(0.48, True), (0.481, False), (0.5, False), (0.6, False)])
def test_two_hundredths_fewer_graded_chunks_are_named(after, named):
    messages = graded(0.5, after, 3, "judged@3")
    assert [message.partition(":")[0] for message in messages] == ["judged@3 fell from 0.500 to 0.480"] * named
    assert graded(0.5, after, 3, "judged@3", contracts={}) == []


@pytest.mark.parametrize(("k", "cutoff"), [(1, 1), (2, 1), (3, 1), (4, 5), (5, 5), (7, 5), (8, 10), (99, 10)])
def test_graded_chunks_are_counted_at_the_cutoff_nearest_to_k(k, cutoff):
    [message] = graded(0.9, 0.5, k, "mrr", "judged@10", "judged@5", "judged@1")
    assert message.startswith(f"judged@{cutoff} fell")


# --- a rerun ----------------------------------------------------------------------------------------------------------


def test_the_minimum_detectable_effect_takes_the_noise_of_a_rerun(tmp_path):
    """Nothing moves from the baseline to this run; in a rerun of the baseline six of sixty answers did."""
    names = [f"Q{n}" for n in range(60)]
    gold = write_rows(tmp_path / "gold.jsonl", [gold_row(qid=name, gold_claim_substr=["30 days"]) for name in names])

    def run(name, wrong):
        rows = [trace_row(qid=qid, answer="a week" if n in wrong else "30 days") for n, qid in enumerate(names)]
        trace = write_rows(tmp_path / f"{name}.jsonl", rows)
        (tmp_path / f"{name}.json").write_text(render(rag_eval.score(gold, trace), "json"), "utf-8")
        return trace

    trace = run("baseline", {0, 1, 2, 3, 4, 5})
    run("rerun", {0, 1, 2, 6, 7, 8})
    result = {}
    for name in ("", "baseline", "rerun", "gone"):
        again = f", rerun: {name}.json" if name else ""
        gates = tmp_path / "eval-gates.yml"
        gates.write_text(
            f"version: 1\ngates: {{precision: {{max_drop: 0.02}}}}\nbaseline: {{report: baseline.json{again}}}\n"
        )
        report = rag_eval.score(gold, trace, gates)
        result[name] = report.gates[0].comparison.mde, [finding.code for finding in report.findings]
    assert result["baseline"] == result[""]
    assert result["rerun"][0] > result[""][0]
    assert result["gone"] == (result[""][0], [*result[""][1], "no-baseline"])
