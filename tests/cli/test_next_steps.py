"""Honest pull requests that a gate stops or a finding names: the message says what to do, and that works."""

from __future__ import annotations

import json
import re

import pytest

from project import GOLD, GOLDS, TRACES, gates, json_lines
from seams import main

BASELINE = "eval/baseline.json"
COMPARED = f"baseline: {{report: {BASELINE}}}\n"


@pytest.fixture
def score(capsys):
    """``rag-eval score``: the exit code, and the report or the message."""

    def score(*words):
        code = main(["score", "--format", "json", "--quiet", *words])
        out, err = capsys.readouterr()
        return code, json.loads(out) if code != 2 else err

    return score


def fixes(report):
    """The advice of each finding by its code."""
    return {finding["code"]: finding["fix"] for finding in report["findings"]}


def renew_baseline(project, score):
    _, report = score()
    project.write(BASELINE, json.dumps(report))


def in_runs(*names):
    return [{**row, "run": name} for name in names for row in TRACES]


def test_a_run_is_added_once_a_baseline_with_it_is_merged(project, score):
    project.put(gates=gates(COMPARED, precision="{min: 0.8, max_drop: 0.1}"), trace=in_runs("a", "b"))
    renew_baseline(project, score)
    project.done("a baseline of two runs")
    project.change("more", trace=in_runs("a", "b", "c"))
    code, report = score("--base=main")
    assert (code, report["gates"][1]["why"]) == (
        1,
        "the baseline has no runs of these names; name runs as it does, or first renew it",
    )
    renew_baseline(project, score)
    renewed = (project.path / BASELINE).read_text("utf-8")
    project.git("checkout", "-q", "--force", "main")
    project.branch("baseline")
    project.write(BASELINE, renewed)
    project.done("renew the baseline")
    code, report = score("--base=main")
    assert (code, fixes(report)["baseline-changed"]) == (
        0,
        "It counts after the merge. Make other changes in a separate pull request.",
    )
    project.git("checkout", "-q", "more")
    assert score("--base=baseline")[0] == 0


def test_a_case_leaves_must_pass_before_it_leaves_the_gold(project, score):
    renew_baseline(project, score)
    project.put(gates=gates(f"{COMPARED}must_pass: [Q1]\n"))
    project.done("Q1 must pass")
    freed, fewer = gates(COMPARED), {"gold": GOLDS[1:], "trace": TRACES[1:]}
    project.change("gone", gates=freed, **fewer)
    code, report = score("--base=main")
    assert (code, fixes(report)["must-pass-gone"]) == (
        1,
        "Restore the question, or first merge a pull request that removes it from must_pass.",
    )
    project.git("checkout", "-q", "main")
    project.change("freed", gates=freed)
    assert score("--base=main")[0] == 0
    project.git("checkout", "-q", "gone")
    assert score("--base=freed")[0] == 0


def test_a_new_index_passes_after_a_baseline_of_it_is_merged(project, score):
    def renamed(row):
        return json.loads(re.sub('"c([0-9])"', r'"new-\1"', json.dumps(row)))

    compared = f"baseline: {{report: {BASELINE}, trace: eval/baseline.jsonl}}\n"
    project.put(gates=gates(compared, **{"recall@3": "{min: 0.8, max_drop: 0.1}"}))
    renew_baseline(project, score)
    project.write("eval/baseline.jsonl", json_lines(TRACES))
    project.done("a baseline")
    traces = [renamed(row) for row in TRACES]
    project.change("index", gold=[renamed(row) for row in GOLDS], trace=traces)
    code, report = score("--base=main")
    assert (code, fixes(report)["ids-changed"]) == (
        1,
        "The gold set has these ids. First merge a pull request that only renews the baseline.",
    )
    renew_baseline(project, score)
    renewed = (project.path / BASELINE).read_text("utf-8")
    project.git("checkout", "-q", "--force", "main")
    project.branch("baseline")
    project.write(BASELINE, renewed)
    project.write("eval/baseline.jsonl", json_lines(traces))
    project.done("renew the baseline")
    assert score("--base=main")[0] == 0
    project.git("checkout", "-q", "index")
    assert score("--base=baseline")[0] == 0


def test_gold_in_a_submodule_is_moved_into_the_repository(project, score):
    gold = (project.path / GOLD).read_text("utf-8")
    project.git("rm", "-q", "-r", "--cached", "eval")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{project.git('rev-parse', 'HEAD')},eval")
    project.git("commit", "-q", "-m", "gold as a submodule")
    code, message = score("--base=main")
    assert code == 2
    assert "Commit its files to this repository" in message
    assert "If the base branch has it too, set gates-ref: head once." in message
    project.git("rm", "-q", "--cached", "eval")
    project.write(GOLD, gold)
    project.done("gold in the repository")
    assert score()[0] == 0


def test_a_job_without_traces_is_told_who_writes_them(project, score):
    project.put(trace=None)
    code, message = score("--base=main")
    assert (code, "Your system writes it, or rag-eval collect asks it" in message) == (2, True)


def test_a_gold_set_in_another_folder_has_not_changed(project, score):
    project.branch("moved")
    project.git("mv", GOLD, "gold.jsonl")
    project.put(gates=gates().replace("version: 1\n", "version: 1\ngold: gold.jsonl\n"))
    project.done("move the gold set")
    code, report = score("--base=main")
    assert (code, fixes(report).keys() - {"traces-tracked"}) == (0, set())
    rows = [{**GOLDS[0], "category": "time"}, *GOLDS[1:]]
    project.write("gold.jsonl", json_lines(rows))
    project.done("and change an item")
    _, report = score("--base=main")
    (finding,) = [finding for finding in report["findings"] if finding["code"] == "gold-not-governed"]
    assert finding["message"] == "1 change of the gold set, and no policy requires a sign-off"


def test_the_advice_to_sign_names_a_key_if_one_is_required(project, score):
    project.put(gates=gates("signoff: {require: signature, allowed_signers: signers}\n"))
    project.done("require signatures")
    project.change(gold=[{**GOLDS[0], "category": "time"}, *GOLDS[1:]])
    code, report = score("--base=main")
    assert (code, fixes(report)["unsigned-change"]) == (
        1,
        "rag-eval gold signoff --base main --key ~/.ssh/id_ed25519 --reason '…'",
    )


def messages(report, code):
    return [finding["message"] for finding in report["findings"] if finding["code"] == code]


def test_new_chunk_ids_of_a_gold_set_are_told_from_fitted_answers(project, score):
    new_ids = [{**row, "gold_citations": [f"new-{name}" for name in row["gold_citations"]]} for row in GOLDS]
    answer = {"claim": "It is 1 days.", "citations": ["new-c1"]}
    answers = [{**TRACES[0], "retrieved_ids": ["new-c1"], "answer_json": answer}, *TRACES[1:]]
    project.change("ids", gold=[new_ids[0], *GOLDS[1:]], trace=answers)
    _, report = score("--base=main")
    assert messages(report, "gold-fits-output") == [
        "1 gold change makes a failing answer of this run right: Q1 (changed: gold_citations)"
    ]


def test_questions_with_other_qids_are_not_called_removed_without_a_trace(project, score):
    rows = [{**row, "qid": "first"} if row["qid"] == "Q1" else row for row in GOLDS if row["qid"] != "Q8"]
    answers = [{**row, "qid": "first"} if row["qid"] == "Q1" else row for row in TRACES if row["qid"] != "Q8"]
    project.change("qids", gold=rows, trace=answers)
    _, report = score("--base=main")
    assert messages(report, "removed-items-unseen") == [
        "1 question is removed from the gold: Q1; the gold has the same with other qids",
        "1 question is removed from the gold: Q8; this run did not answer it, so the system may fail on it",
    ]


def test_a_category_with_a_gate_is_renamed_after_the_gate_may_have_no_data(project, score):
    def sliced(**bounds):
        return gates(
            "slices:\n  min_n: 1\n  by: [category]\n  gates:\n"
            + "".join(f'    "category={name}": {{precision: {bound}}}\n' for name, bound in bounds.items())
        )

    project.put(gates=sliced(old="{min: 0.8}"), gold=[{**row, "category": "old"} for row in GOLDS])
    project.done("a gate on a category")
    renamed = {"gates": sliced(new="{min: 0.8}"), "gold": [{**row, "category": "new"} for row in GOLDS]}
    project.change("renamed", **renamed)
    code, report = score("--base=main")
    why = [gate["why"] for gate in report["gates"] if gate["outcome"] == "no_data"]
    assert (code, why) == (1, ["the slice has no case"])
    project.git("checkout", "-q", "main")
    project.change("skip", gates=sliced(old="{min: 0.8, when_no_data: skip}", new="{min: 0.8, when_no_data: skip}"))
    assert score("--base=main")[0] == 0
    project.change("then", **renamed)
    assert score("--base=skip")[0] == 0


def test_new_refusal_texts_are_merged_before_the_system_uses_them(project, score):
    def phrased(name=""):
        return gates(f"{compared}refusal: {{phrases: [{name}]}}\n", **bounds)

    bounds = {"precision": "{min: 0.8, max_drop: 0.1}", "under_refusal": "{max: 0.05}"}
    compared = f"baseline: {{report: {BASELINE}, trace: eval/baseline.jsonl}}\n"
    project.put(gates=phrased())
    renew_baseline(project, score)
    project.write("eval/baseline.jsonl", json_lines(TRACES))
    project.done("a baseline with traces")
    refusal = {"claim": "no answer in sight", "citations": []}
    answers = [row if row["answer_json"]["citations"] else {**row, "answer_json": refusal} for row in TRACES]
    project.change("both", gates=phrased("no answer in sight"), trace=answers)
    code, report = score("--base=main")
    advice = "What this change sets in the gates file applies after its merge."
    assert (code, fixes(report)["answers-everything"].endswith(advice)) == (1, True)
    project.git("checkout", "-q", "main")
    project.change("phrase", gates=phrased("no answer in sight"))
    assert score("--base=main")[0] == 0
    project.git("checkout", "-q", "both")
    assert score("--base=phrase")[0] == 0


def test_changed_items_count_as_compared_if_the_baseline_has_traces(project, score, capsys):
    project.put(
        gates=gates(f"baseline: {{report: {BASELINE}, trace: eval/baseline.jsonl}}\n", precision="{max_drop: 0.1}")
    )
    renew_baseline(project, score)
    project.write("eval/baseline.jsonl", json_lines(TRACES))
    project.done("a baseline with traces")
    project.change("fields", gold=[{**row, "difficulty": "easy"} for row in GOLDS])
    assert main(["score", "--base=main", "--quiet"]) == 0
    assert "Nothing newly broken, nothing newly fixed." in capsys.readouterr().out


def test_a_branch_that_only_the_remote_has_is_offered_by_its_name_there(project, score):
    project.git("update-ref", "refs/remotes/origin/trunk", "HEAD")
    code, message = score("--base=trunk")
    assert code == 2
    assert "'trunk' names no commit here. Write 'origin/trunk', or fetch it, or correct the name." in message


def test_gates_that_fail_for_want_of_answers_are_told_from_those_that_fail(project, score):
    def renamed(rows):
        return [{**row, "qid": f"new-{row['qid']}"} for row in rows]

    project.change("qids", gold=renamed(GOLDS), trace=renamed(TRACES))
    code, report = score("--base=main")
    (message,) = messages(report, "gold-turns-gates")
    assert (code, message.partition("; ")[2]) == (0, "this run lacks 8 answers to questions of the former")


def test_a_first_baseline_is_written_as_the_warning_says(project, score):
    project.put(
        gates=gates(f"baseline: {{report: {BASELINE}, trace: eval/baseline.jsonl}}\n", precision="{max_drop: 0.1}")
    )
    code, report = score()
    assert (code, fixes(report)["no-baseline"]) == (
        1,
        (
            "Score a good run with --format json --out DIR, and commit DIR/report.json under this name. "
            "Commit its traces too, as baseline.trace: with them, changed gold items can be compared."
        ),
    )
    score("--out", "report")
    (project.path / "report/report.json").rename(project.path / BASELINE)
    project.write("eval/baseline.jsonl", json_lines(TRACES))
    project.write(GOLD, json_lines([{**row, "difficulty": "easy"} for row in GOLDS]))
    code, report = score()
    assert (code, report["baseline"]["rescored"], report["baseline"]["changed"]) == (0, True, 8)


def test_refusals_in_other_words_count_after_the_line_that_the_warning_names(project, score):
    refusing = {"answer_json": {"claim": "I don't know that.", "citations": []}}
    rows = [row if row["answer_json"]["citations"] else {**row, **refusing} for row in TRACES]
    written = gates('refusal:\n  token: "not in context"\n', under_refusal="{max: 0}")
    project.put(gates=written, trace=rows)
    code, report = score()
    assert (code, fixes(report)["unrecognised-refusals"]) == (
        1,
        "To count refusals in other words, write builtin: true under refusal in the gates file.",
    )
    assert any("have no recognised refusal" in cause["cause"] for cause in report["diagnosis"])
    project.put(gates=written.replace("refusal:\n", "refusal:\n  builtin: true\n"))
    assert score()[0] == 0
