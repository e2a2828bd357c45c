"""`rag-eval score --base` in real repositories: both sides' gates hold, and every move of a goalpost is named."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

import verdicts
from project import (
    GATES,
    GOLD,
    GOLDS,
    TRACES,
    Project,
    apart,
    besides_tracked,
    gates,
    gold_of,
    json_lines,
    trace_of,
    wrong,
)
from seams import RENDERERS, Contract, from_json, main, render, score_files

SIGNED = "signoff: {require: record}\n"


@pytest.fixture
def score(capsys, tmp_path):
    """``rag-eval score --base main``: the report, with the exit code and what was said on the function.

    Every report is held to its schema, comes back whole, and is judged again as it was the first time.
    """

    def score(*words, base="main"):
        score.code = main(["score", f"--base={base}", "--format", "json", "--quiet", *words])
        out, score.said = capsys.readouterr()
        if score.code == 2:
            return None
        (tmp_path / "report.json").write_text(out, encoding="utf-8")
        report = json.loads(out)
        assert list(Contract("report").faults(report)) == []
        assert [render(from_json(report), form) for form in RENDERERS if form == "json"] == [out]
        assert main(["gate", str(tmp_path / "report.json"), "--format", "json", "--quiet"]) == score.code
        assert capsys.readouterr().out == out
        return report

    return score


def findings(report):
    return besides_tracked(report["findings"])


def codes(report, level=None):
    return [finding["code"] for finding in findings(report) if level in (None, finding["level"])]


def policy(report):
    return {item["key"]: (item["kind"], item["lets_through"]) for item in report["policy_changes"]}


def broken(report):
    """Name and origin of the gates that do not hold."""
    return [(item["name"], item["origin"]) for item in report["gates"] if item["outcome"] != "passed"]


def test_nothing_changed_is_nothing_said(project, score):
    project.change()
    report = score()
    assert (score.code, codes(report), policy(report), report["gold_changes"]) == (0, [], {}, [])
    assert {item["origin"] for item in report["gates"]} == {"both"}
    assert report["base"] == {
        "kind": "base",
        "ref": "main",
        "commit": project.git("rev-parse", "main"),
        "through": "git",
    }


def test_a_tag_does_not_take_the_place_of_the_base_branch(project, score):
    project.change(gates=gates(precision="{min: 0.2}"), trace=wrong(1, 2))
    project.git("update-ref", "refs/remotes/origin/main", "main")
    assert broken(score(base="origin/main")) == [("precision", "base")]
    project.git("tag", "-a", "-m", "a tag", "origin/main", "HEAD")  # git itself prefers it
    for base in ("origin/main", "origin/main~0"):
        assert score(base=base) is None
        names = "'refs/remotes/origin/main' and 'refs/tags/origin/main'"
        assert f"'{base}' names several commits: {names}. Write the full name of the one you mean.\n" in score.said
    assert broken(score(base="refs/remotes/origin/main")) == [("precision", "base")]
    project.git("tag", "-f", "origin/main", "main")
    assert broken(score(base="origin/main")) == [("precision", "base")]


# --- gates -----------------------------------------------------------------------------------------------------------


def test_a_loosened_gate_still_holds_as_the_base_has_it(project, score):
    project.change(gates=gates(precision="{min: 0.2}"), trace=wrong(1, 2))
    report = score()
    assert (score.code, broken(report)) == (1, [("precision", "base")])
    assert policy(report) == {"gates.precision.min": ("looser", ["precision"])}


def test_what_breaks_the_base_s_limit_is_explained_though_the_change_s_own_would_allow_it(project, score):
    rightly_cited = {"claim": "It is a year.", "citations": ["c1"]}
    project.change(gates=gates(precision="{min: 0.2}"), trace=[trace_of(1, answer_json=rightly_cited), *TRACES[1:]])
    [cause] = score()["diagnosis"]
    assert cause["cause"].startswith("Claim wording: 1 answer cites the right evidence")


def test_a_loosened_gate_that_lets_nothing_through_is_listed_and_passes(project, score):
    project.change(gates=gates(precision="{min: 0.2}"))
    report = score()
    assert (score.code, policy(report)) == (0, {"gates.precision.min": ("looser", [])})


def test_reasoning_fails_a_change_if_the_traces_of_the_baseline_have_less(project, score):
    def reasoned(*numbers):
        answers = {
            n: {**trace_of(n)["answer_json"], "claim": f"<think>\nSo.\n</think>\nIt is {n} days."} for n in numbers
        }
        return [trace_of(n, answer_json=answers[n]) if n in answers else trace_of(n) for n in range(1, 9)]

    project.put(
        gates=gates("baseline: {report: eval/baseline.json, trace: eval/baseline.jsonl}\n"), trace=reasoned(1, 2)
    )
    project.write("eval/baseline.json", render(score_files(gates=GATES), "json"))
    project.write("eval/baseline.jsonl", json_lines(reasoned(1, 2)))
    project.done("baseline")
    for name, numbers, level in (("as-many", (3, 4), "warning"), ("more", (1, 2, 3), "error"), ("none", (), None)):
        project.git("checkout", "-q", "main")
        project.change(name, trace=reasoned(*numbers))
        found = [finding["level"] for finding in findings(score()) if finding["code"] == "ignored-reasoning"]
        assert found == ([level] if level else [])


def test_a_path_that_is_only_written_otherwise_is_no_change(project, score):
    project.put(gates=gates("gold: eval/gold.jsonl\nsignoff: {records: eval/records}\n"))
    project.done("paths")
    project.branch("pr")
    project.git("mv", GATES, "strict.yml")
    lines = "gold: ../eval/gold.jsonl\ntrace: ../runs/trace.jsonl\nsignoff: {records: ../eval/records}\n"
    project.write("conf/eval-gates.yml", gates(lines))
    project.git("rm", "-q", "--cached", "strict.yml")
    (project.path / "strict.yml").unlink()
    project.done("moved")
    assert policy(score("--gates", "conf/eval-gates.yml")) == {"the gates file": ("looser", [])}
    project.write("conf/eval-gates.yml", gates(lines.replace("../runs", "../eval")))
    report = score("--gates", "conf/eval-gates.yml", "--trace", "runs/trace.jsonl")
    assert policy(report) == {"the gates file": ("looser", []), "trace": ("looser", [])}


def test_a_tightened_gate_holds_at_once(project, score):
    project.change(gates=gates(precision="{min: 1.0}"), trace=[trace_of(n) for n in range(1, 9)])
    assert policy(score()) == {"gates.precision.min": ("stricter", [])}
    project.put(gates=gates(precision="{min: 0.9}", chr="{min: 1}"), trace=wrong(4))
    report = score()
    assert (score.code, broken(report)) == (1, [("precision", "head"), ("chr", "head"), ("precision", "base")])


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"precision": ""}, "gates.precision"),
        ({"precision": "{min: 0.8, severity: warning}"}, "gates.precision.severity"),
    ],
)
def test_a_gate_that_goes_or_only_warns_still_holds_for_this_change(project, score, changed, key):
    project.change(gates=gates(chr="{min: 0.1}", **changed), trace=wrong(1, 2))
    report = score()
    assert score.code == 1
    assert ("precision", "base") in broken(report)
    assert policy(report)[key] == ("looser", ["precision"])


def test_more_missing_traces_are_not_allowed_by_the_change_itself(project, score):
    project.change(gates=gates("completeness: {missing: 9}\n"), trace=TRACES[:-1])
    report = score()
    assert (score.code, broken(report)) == (1, [("completeness.missing", "base")])
    assert policy(report) == {"completeness.missing": ("looser", ["completeness.missing"])}


def test_what_the_base_means_by_k_is_what_its_gates_are_judged_by(project, score):
    """Labels of the base's k, values of the base's cutoffs: its recall at 1 is not the head's."""
    late = [trace_of(n, retrieved_ids=["c9", f"c{n}"]) for n in range(1, 9)]
    project.put(gates="version: 1\nk: 1\ngates:\n  recall@1: {min: 0.9}\n", trace=late)
    project.done("k is 1")
    project.change(gates="version: 1\nk: 2\ngates:\n  recall@2: {min: 0.9}\n")
    report = score()
    assert (score.code, broken(report)) == (1, [("recall@1", "base")])
    assert policy(report)["gates.recall@1"] == ("looser", ["recall@1"])
    assert policy(report)["k"][0] == "looser"


def test_another_refusal_token_changes_no_verdict_of_the_base(project, score):
    """The change declares a wrong answer to be a refusal; the base does not know that one."""
    output = {"claim": "as you like", "citations": []}
    hallucinated = [trace_of(n, answer_json=output) if n > 4 else trace_of(n) for n in range(1, 9)]
    project.put(gates=gates(under_refusal="{max: 0.1}"))
    project.done("gate refusals")
    project.change(gates=gates('refusal: {token: "as you like"}\n', under_refusal="{max: 0.1}"), trace=hallucinated)
    report = score()
    assert score.code == 1
    assert ("under_refusal", "base") in broken(report)
    assert policy(report)["refusal.token"] == ("looser", ["precision", "under_refusal"])


def index_gated(project, bound="{max: 0.05}"):
    """One document in a hundred is empty, and the base allows for five."""
    project.put(gates=gates(index_empty_docs=bound))
    project.done("gate the index")
    project.write("runs/run.json", json.dumps({"index": {"documents": 100, "documents_without_chunks": 1}}))


def test_what_run_json_says_has_the_same_value_under_the_bases_meaning(project, score):
    index_gated(project)
    project.change(gates=gates(index_empty_docs="{max: 0.05}").replace("k: 3", "k: 2"))
    report = score()
    assert (score.code, broken(report), policy(report)) == (0, [], {"k": ("looser", [])})
    assert {(item["value"], item["origin"]) for item in report["gates"] if item["name"] == "index_empty_docs"} == {
        (0.01, "both")
    }


def test_what_run_json_says_turns_no_gate_with_the_gold(project, score):
    index_gated(project)
    project.change(gates=gates(index_empty_docs="{max: 0.05}"), gold=[*GOLDS[:7], gold_of(8, tags=["new"])])
    report = score()
    assert (len(report["gold_changes"]), report["gate_turns"]) == (1, [])


def test_traces_that_only_the_base_names_have_their_own_run_json(project, score):
    skipping = "{max: 0.05, when_no_data: skip}"
    index_gated(project, skipping)
    project.change(gates=gates("trace: kept/trace.jsonl\n", index_empty_docs=skipping))
    project.write("kept/trace.jsonl", json_lines(TRACES))
    project.write("runs/run.json", json.dumps({"index": {"documents": 100, "documents_without_chunks": 60}}))
    report = score()
    assert (score.code, broken(report)) == (1, [("index_empty_docs", "head"), ("index_empty_docs", "base")])
    assert policy(report)["trace"] == ("looser", ["index_empty_docs"])


def test_traces_that_only_the_base_names_are_held_to_the_gold_that_they_are_scored_with(project, score):
    project.change(gates=gates("trace: kept/trace.jsonl\n"))
    project.write("kept/trace.jsonl", json_lines(TRACES))
    project.write("runs/run.json", json.dumps({"gold_sha256": "0" * 64}))
    (result,) = score()["findings"]
    assert (result["code"], result["level"], result["file"]) == ("other-gold", "warning", "runs/run.json")
    assert result["message"].endswith("as set by the gates file of the base branch")
    data = (project.path / GOLD).read_bytes()
    project.write("runs/run.json", json.dumps({"gold_sha256": hashlib.sha256(data).hexdigest()}))
    assert codes(score()) == []


def test_traces_of_another_commit_are_stale_outside_the_action_too(project, score):
    commit = project.change()
    project.write("runs/run.json", json.dumps({"system_commit": "0" * 40}))
    assert codes(score(), "warning") == ["stale-traces"]
    project.write("runs/run.json", json.dumps({"system_commit": f"{commit}-dirty"}))
    assert codes(score()) == []


@pytest.mark.parametrize(
    ("asked", "differs"), [("how fast is  c++", False), ("How fast is C?", True), ("How fast is C#?", True)]
)
def test_a_question_with_other_symbols_is_another_question(asked, differs, project, score):
    project.put(gold=[gold_of(1, question="How fast is C++?"), *GOLDS[1:]])
    project.done("a question about C++")
    project.change(trace=[{**trace_of(1), "q": asked}, *TRACES[1:]])
    assert ("other-question" in codes(score())) == differs


def test_a_case_that_must_pass_is_held_to_what_the_base_takes_for_right(project, score):
    """The baseline has a refusal there; the change declares what it says now to be one too."""
    output = {"claim": "Hard to say: it is a year.", "citations": []}
    must = "must_pass: [Q8]\nbaseline: {report: eval/baseline.json}\n"
    project.write("eval/baseline.json", render(score_files(gates=GATES), "json"))
    project.put(gates=gates(must))
    project.done("must pass")
    hallucinated = [*TRACES[:7], trace_of(8, answer_json=output)]
    project.change(gates=gates(f'{must}refusal: {{phrases: ["hard to say"]}}\n'), trace=hallucinated)
    report = score()
    assert (score.code, codes(report, "error")) == (1, ["must-pass-broken"])
    (result,) = (item for item in report["findings"] if item["level"] == "error")
    assert result["message"] == (
        "Q8 must pass and passed in the baseline, but now fails: HALLUCINATION; "
        "as set by the gates file of the base branch"
    )
    assert policy(report)["refusal.phrases"] == ("looser", ["must-pass-broken"])


def test_the_same_habit_is_said_once(project, score):
    """Of either side's traces, in other numbers."""
    refusing = [trace_of(n, answer_json={"claim": "not in context", "citations": []}) for n in range(1, 9)]
    project.change(gates=gates("trace: kept/trace.jsonl\n"), trace=refusing)
    project.write("kept/trace.jsonl", json_lines(refusing[1:]))
    (result,) = (item for item in score()["findings"] if item["code"] == "refuses-everything")
    assert result["message"].startswith("all 3 answerable questions")


def test_a_gates_file_of_another_name_does_not_escape(project, score):
    project.change(gates=None)
    project.write("easy.yml", gates(precision="{min: 0}"))
    project.put(trace=wrong(1, 2, 3))
    project.done("another name")
    report = score("--gates", "easy.yml")
    assert (score.code, broken(report)) == (1, [("precision", "base")])
    assert policy(report)["the gates file"] == ("looser", ["precision"])


def test_a_deleted_gates_file_still_decides(project, score):
    project.put(gates=gates(precision="{min: 0.99}"))
    project.done("strict")
    project.change(gates=None, trace=wrong(1))
    report = score()
    assert score.code == 1
    assert ("precision", "base") in broken(report)
    assert policy(report)["the gates file"][0] == "looser"


def test_gates_in_a_folder_that_becomes_a_link_are_still_the_bases(project, score):
    project.git("mv", GATES, "conf.yml")
    project.write("conf/gates.yml", gates("gold: ../eval/gold.jsonl\ntrace: ../runs/trace.jsonl\n"))
    project.git("rm", "-q", "--cached", "conf.yml")
    (project.path / "conf.yml").unlink()
    project.done("gates in a folder")
    project.branch("pr")
    project.git("mv", "conf", "strict")
    project.write(
        "easy/gates.yml", gates("gold: ../eval/gold.jsonl\ntrace: ../runs/trace.jsonl\n", precision="{min: 0}")
    )
    (project.path / "conf").symlink_to("easy")
    project.put(trace=wrong(1, 2, 3))
    project.done("a link")
    report = score("--gates", "conf/gates.yml")
    assert (score.code, report["base"]["kind"], broken(report)) == (1, "base", [("precision", "base")])


def test_gates_from_outside_of_the_repository_do_not_escape_the_usual_ones(project, score, tmp_path):
    (tmp_path / "easy.yml").write_text(gates(precision="{min: 0}"), encoding="utf-8")
    project.change(trace=wrong(1, 2, 3))
    report = score("--gates", "../easy.yml", "--gold", GOLD, "--trace", "runs/trace.jsonl")
    assert (score.code, broken(report)) == (1, [("precision", "base")])
    assert policy(report)["the gates file"] == ("looser", ["precision"])


def in_folders(project, *folders):
    """The gates of main stand in folders, and none at the root."""
    lines = "gold: ../eval/gold.jsonl\ntrace: ../runs/trace.jsonl\n"
    project.put(gates=None)
    for folder in folders:
        project.write(f"{folder}/eval-gates.yml", gates(lines))
        project.write(f"{folder}/sub/notes.md", "as they are\n")
    project.done("gates in folders")
    project.branch("pr")
    (project.path / "notes.md").symlink_to("eval")
    return gates(lines, precision="{min: 0}")


@pytest.mark.parametrize("name", ["eval-gates.yml", "eval-gates.yaml"])
def test_gates_that_move_with_their_folder_are_still_the_bases(project, score, name):
    easy = in_folders(project, "rag")
    project.git("mv", "rag", "moved")
    (project.path / "moved/eval-gates.yml").rename(project.path / "moved" / name)
    project.write(f"moved/{name}", easy)
    project.put(trace=wrong(1, 2, 3))
    project.done("moved")
    report = score("--gates", f"moved/{name}")
    assert (score.code, report["base"]["kind"], broken(report)) == (1, "base", [("precision", "base")])
    assert policy(report)["the gates file"] == ("looser", ["precision"])


def test_a_gates_file_with_its_other_usual_name_is_not_looser(project, score):
    project.branch("pr")
    project.git("mv", GATES, "eval-gates.yaml")
    project.done("renamed")
    report = score()
    assert (score.code, policy(report)) == (0, {"the gates file": ("neutral", [])})


def test_first_gates_of_a_folder_beside_those_of_another_are_bootstrap(project, score):
    easy = in_folders(project, "rag")
    project.write("other/eval-gates.yml", easy)
    project.done("another")
    report = score("--gates", "other/eval-gates.yml")
    assert (score.code, report["base"]["kind"]) == (0, "bootstrap")


def test_first_gates_of_a_folder_below_a_project_that_names_gates_are_bootstrap(project, score, monkeypatch):
    project.git("mv", GATES, "strict.yml")
    project.write("pyproject.toml", '[tool.rag-eval]\ngates = "strict.yml"\n')
    project.done("gates of another name")
    project.branch("pr")
    gold = gold_of(1, qid="N1", question="How wide is it?", gold_claim_substr=["one inch"], gold_citations=["n1"])
    answer = {"claim": "It is one inch wide.", "citations": ["n1"]}
    project.write("apps/new/eval/gold.jsonl", json_lines([gold]))
    project.write(
        "apps/new/runs/trace.jsonl", json_lines([trace_of(1, qid="N1", retrieved_ids=["n1"], answer_json=answer)])
    )
    project.write("apps/new/eval-gates.yml", gates())
    project.done("a new system")
    monkeypatch.chdir(project.path / "apps/new")
    report = score()
    assert (score.code, report["base"]["kind"]) == (0, "bootstrap")


def test_new_gates_in_the_folder_of_the_run_do_not_replace_those_above_it(project, score, monkeypatch):
    project.write("app/notes.md", "the run starts here\n")
    project.done("a folder")
    project.branch("pr")
    gold = gold_of(1, qid="N1", question="How wide is it?", gold_claim_substr=["one inch"], gold_citations=["n1"])
    answer = {"claim": "It is one inch wide.", "citations": ["n1"]}
    trace = trace_of(1, qid="N1", retrieved_ids=["n1"], answer_json=answer)
    for path, text in {
        "app/eval-gates.yml": gates(),
        "app/eval/gold.jsonl": json_lines([gold]),
        "app/runs/trace.jsonl": json_lines([trace]),
    }.items():
        project.write(path, text)
    project.put(trace=wrong(1, 2, 3))
    project.done("gates of its own")
    monkeypatch.chdir(project.path / "app")
    report = score()
    assert (score.code, report["base"]["kind"]) == (1, "base")
    assert ("precision", "base") in broken(report)


@pytest.mark.parametrize(("first", "kind"), [(5, "bootstrap"), (4, "base")])
def test_a_new_system_may_share_the_questions_that_neither_answers(project, score, first, kind):
    project.branch("pr")
    item = gold_of(1, qid="N1", question="How wide is it?", gold_claim_substr=["one inch"], gold_citations=["n1"])
    shared = [
        {**gold_of(n), "answerable": False, "gold_claim_substr": [], "gold_citations": []} for n in range(first, 9)
    ]
    project.write("apps/new/eval/gold.jsonl", json_lines([item, *shared]))
    project.write("apps/new/runs/trace.jsonl", json_lines([trace_of(1, qid="N1"), *map(trace_of, range(first, 9))]))
    project.write("apps/new/eval-gates.yml", gates())
    project.done("a new system")
    assert score("--gates", "apps/new/eval-gates.yml")["base"]["kind"] == kind


def test_the_gold_of_a_new_system_replaces_that_of_no_other(project, score):
    gold = gold_of(1, qid="N1", question="How wide is it?", gold_claim_substr=["one inch"], gold_citations=["n1"])
    project.branch("pr")
    project.write("apps/new/eval/gold.jsonl", json_lines([gold]))
    project.write("apps/new/runs/trace.jsonl", json_lines([trace_of(1, qid="N1")]))
    project.write("apps/new/eval-gates.yml", gates())
    project.done("a new system")
    report = score("--gates", "apps/new/eval-gates.yml")
    assert [(item["qid"], item["verb"]) for item in report["gold_changes"]] == [("N1", "added")]
    assert "removed-items-unseen" not in codes(report)


@pytest.mark.parametrize(
    ("about", "change", "code"),
    [
        ("other gold", "nothing", 0),
        ("the same question", "nothing", 2),
        ("other gold", "gold deleted", 2),
        ("other gold", "gates deleted", 2),
        ("no text", "nothing", 2),
    ],
)
def test_invalid_gates_of_another_system_do_not_stop_a_new_one(project, score, about, change, code):
    other = gold_of(1, qid="O1", question="How wide is it?", gold_claim_substr=["one inch"], gold_citations=["n1"])
    project.write("apps/old/eval/gold.jsonl", json_lines([GOLDS[0] if about == "the same question" else other]))
    project.write(
        "apps/old/eval-gates.yml", "gold: 3\n" if about == "no text" else "version: 1\ngates: {precison: 1}\n"
    )
    project.git("rm", "-q", "-r", GATES, "eval")
    project.done("invalid gates")
    project.branch("pr")
    for name in {"gold deleted": ["eval/gold.jsonl"], "gates deleted": ["eval-gates.yml"]}.get(change, []):
        project.git("rm", "-q", f"apps/old/{name}")
    project.write("apps/new/eval/gold.jsonl", json_lines(GOLDS))
    project.write("apps/new/runs/trace.jsonl", json_lines(TRACES))
    project.write("apps/new/eval-gates.yml", gates())
    project.done("a new system")
    report = score("--gates", "apps/new/eval-gates.yml")
    assert score.code == code
    assert code or report["base"]["kind"] == "bootstrap"


def test_all_gates_of_the_base_for_the_gold_are_tried_under_the_first_ones_of_a_folder(project, score):
    easy = in_folders(project, *(f"rag{number}" for number in range(6)))
    project.git("checkout", "-q", "main")
    project.write(
        "rag6/eval-gates.yml", gates("gold: ../eval/gold.jsonl\ntrace: ../runs/trace.jsonl\n", mrr="{min: 0.9}")
    )
    project.done("a strict one")
    project.branch("another")
    project.write("other/eval-gates.yml", easy.replace("precision: {min: 0}", "mrr: {min: 0}"))
    project.put(trace=[trace_of(1, retrieved_ids=["c9", "c1"]), *TRACES[1:]])
    project.done("another")
    report = score("--gates", "other/eval-gates.yml")
    (result,) = (item["message"] for item in report["findings"] if item["code"] == "bootstrap")
    assert "'rag6/eval-gates.yml' has gates for the same gold set, and this run fails mrr" in result


def test_a_system_that_is_added_with_questions_of_another_is_told_why_its_gates_apply(project, score):
    lines = "gold: gold.jsonl\ntrace: ../runs/trace.jsonl\ncompleteness: {unknown: 9}\n"
    project.write("hr/gold.jsonl", json_lines(GOLDS))
    project.write("hr/eval-gates.yml", gates(lines))
    project.put(gates=None, gold=None)
    project.done("one system")
    project.branch("pr")
    project.write("sales/gold.jsonl", json_lines(GOLDS[:6]))
    project.write("sales/eval-gates.yml", gates(lines))
    project.done("another system")
    notes = [note["message"] for note in score("--gates", "sales/eval-gates.yml")["notes"]]
    why = "the gates of 'hr/eval-gates.yml' apply too, because some of their questions are asked here"
    assert f"{why}. To add another system, first merge its folder" in notes
    project.git("mv", "hr", "people")
    project.git("rm", "-rq", "sales")
    project.done("only renamed")
    assert not any("apply too" in note["message"] for note in score("--gates", "people/eval-gates.yml")["notes"])


@pytest.mark.parametrize("is_judged_by_others", [True, False])
def test_gates_of_another_system_may_be_deleted_if_others_judge_its_gold_set(project, score, is_judged_by_others):
    project.write("hr/gold.jsonl", json_lines([{**row, "qid": f"H{n}"} for n, row in enumerate(GOLDS)]))
    project.write("hr/eval-gates.yml", gates("gold: gold.jsonl\n"))
    if is_judged_by_others:
        project.write("nightly/eval-gates.yml", gates("gold: ../hr/gold.jsonl\n"))
    project.done("another system")
    project.branch("pr")
    project.git("rm", "-q", "hr/eval-gates.yml")
    project.done("deleted")
    named = [item["file"] for item in score()["findings"] if item["code"] == "gates-overridden"]
    assert named == ([] if is_judged_by_others else ["hr/eval-gates.yml"])


def test_a_system_that_moves_as_it_is_keeps_its_gates_beside_others_about_the_same_questions(project, score):
    lines = "gold: gold.jsonl\ntrace: ../runs/trace.jsonl\ncompleteness: {unknown: 9}\n"
    for folder, count, metric in ("all", 8, "chr"), ("smoke", 4, "mrr"):
        project.write(f"{folder}/gold.jsonl", json_lines(GOLDS[:count]))
        project.write(f"{folder}/eval-gates.yml", gates(lines, precision="", **{metric: "{min: 0.8}"}))
    project.put(gates=None, gold=None)
    project.done("two systems")
    project.branch("pr")
    project.git("mv", "smoke", "quick")
    project.done("moved")
    report = score("--gates", "quick/eval-gates.yml")
    assert (score.code, broken(report)) == (0, [])
    assert policy(report) == {"the gates file": ("looser", [])}
    project.write("quick/gold.jsonl", json_lines(GOLDS[:3]))
    assert score("--gates", "quick/eval-gates.yml") is None
    assert "Several gates files of the base may be about this gold set" in score.said


@pytest.fixture
def service(tmp_path, monkeypatch):
    """A project in a folder of its repository, beside the gates of another one."""
    apart(monkeypatch)
    made = Project.made(tmp_path / "many", below="apps/search/")
    made.write("apps/help/eval-gates.yml", gates(precision="{min: 0}"))
    made.write("eval-gates.yml", gates(precision="{min: 0}"))
    made.done("another, and one for all")
    monkeypatch.chdir(made.path)
    return made


EASY = "gold: ../apps/search/eval/gold.jsonl\ntrace: ../apps/search/runs/trace.jsonl\n"


def test_gates_above_the_gold_decide_where_the_caller_comes_to_name_others(service, score):
    service.branch("pr")
    service.write("ci/gates.yml", gates(EASY, precision="{min: 0}"))
    service.put(trace=wrong(1, 2, 3))
    service.done()
    report = score("--gates", "ci/gates.yml")
    assert (score.code, report["base"]["kind"], broken(report)) == (1, "base", [("precision", "base")])
    assert policy(report)["the gates file"] == ("looser", ["precision"])


def test_gold_below_a_link_of_the_base_is_refused(service, score):
    """The base has a link in place of the folder that the gold is in now: no gates or gold are looked for behind it."""
    service.git("rm", "-q", "-r", "apps/search", GATES)
    (service.path / "apps/search").symlink_to("help")
    service.done("a link")
    service.branch("pr")
    (service.path / "apps/search").unlink()
    service.write("ci/gates.yml", gates(EASY))
    service.put(gold=GOLDS, trace=TRACES)
    service.done()
    assert score("--gates", "ci/gates.yml") is None
    assert "'apps/search' is a symbolic link in git" in score.said


def test_which_of_several_gates_that_go_would_decide_cannot_be_told(project, score):
    easy = in_folders(project, "rag", "tag")
    project.git("rm", "-q", "-r", "rag", "tag")
    project.write("other/eval-gates.yml", easy)
    project.put(trace=wrong(1, 2, 3))
    project.done("others")
    report = score("--gates", "other/eval-gates.yml")  # both ask the same
    assert (score.code, broken(report)) == (1, [("precision", "base")])
    project.git("checkout", "-q", "main")
    project.write("tag/eval-gates.yml", easy.replace("precision: {min: 0}", "mrr: {min: 0.9}"))
    project.done("other gates")
    project.git("checkout", "-q", "-b", "again")
    project.git("rm", "-q", "-r", "rag", "tag")
    project.write("other/eval-gates.yml", easy)
    project.done("others")
    score("--gates", "other/eval-gates.yml")
    assert (score.code, "'rag/eval-gates.yml', 'tag/eval-gates.yml'" in score.said) == (2, True)


def test_the_first_gates_are_named_bootstrap(project, score):
    project.git("rm", "-q", GATES)
    project.done("no gates")
    project.change(gates=gates(precision="{min: 0.1}"), trace=wrong(1, 2))
    report = score()
    assert (score.code, report["base"]["kind"], policy(report)) == (0, "bootstrap", {})
    assert {item["origin"] for item in report["gates"]} == {"head"}


def test_without_any_gates_file_the_advice_is_to_write_one(project, score):
    project.git("rm", "-q", GATES)
    project.done("no gates")
    project.change()
    (found,) = (item for item in score()["findings"] if item["code"] == "bootstrap")
    assert found["message"].startswith("neither the base branch nor the pull request has a gates file")
    assert found["fix"].endswith("rag-eval init")


def test_a_base_whose_gates_cannot_be_read_is_no_pass(project, score):
    project.put(gates="version: 1\ngates: {precision: {mni: 0.8}}\n")
    project.done("broken")
    project.change(gates=gates())
    assert score() is None
    assert score.code == 2
    assert "eval-gates.yml of main:2" in score.said
    assert "gates-ref: head" in score.said


@pytest.mark.parametrize("base", ["no-such-branch", "--all", "main:eval-gates.yml", "main..pr", "main\nx"])
def test_a_base_that_is_no_commit_is_refused(project, score, base):
    score(base=base)
    assert score.code == 2
    assert "names no commit here" in score.said


@pytest.mark.parametrize(
    ("base", "form", "says"),
    [
        ("", "json", "--base is empty"),
        ("", "scores", "--base is empty"),
        (" ", "json", "'' names no commit here"),
        (" ", "scores", "Remove --base, or --format scores"),
    ],
)
def test_an_empty_base_is_not_no_base(project, score, base, form, says):
    """As an unset variable of the shell leaves it."""
    project.change(trace=wrong(1, 2))
    score("--format", form, base=base)
    assert score.code == 2
    assert says in score.said


def test_what_only_one_side_guards_against_is_found_once(project, score):
    refused = [trace_of(number, answer_json={"claim": "not in context", "citations": []}) for number in range(1, 9)]
    project.change(gates=gates(over_refusal="{max: 0.1}"), trace=refused)
    report = score()
    assert codes(report).count("refuses-everything") == codes(report, "error").count("refuses-everything") == 1


def test_the_integrity_of_the_base_holds(project, score):
    """The change declares a habit harmless and brings a gate that guards nothing."""
    output = {"claim": "not in context", "citations": []}
    refusing = [trace_of(n, answer_json=output) for n in range(1, 9)]
    project.put(gates=gates(precision="{min: 0.8, when_no_data: skip}"))
    project.done("skip")
    lines = "integrity: {refuses-everything: 'off'}\n"
    project.change(
        gates=gates(lines, precision="{min: 0.8, when_no_data: skip}", over_refusal="{max: 1}"), trace=refusing
    )
    report = score()
    assert (score.code, codes(report, "error")) == (1, ["refuses-everything"])
    assert policy(report)["integrity.refuses-everything"] == ("looser", ["refuses-everything"])
    (found,) = (item for item in report["findings"] if item["code"] == "refuses-everything")
    assert found["fix"].startswith("The level that this pull request sets applies after its merge")
    assert policy(report)["gates.over_refusal"] == ("stricter", [])


# --- gold ------------------------------------------------------------------------------------------------------------


def fitted():
    """Question 1 asks for what the traces wrongly say."""
    return [gold_of(1, gold_claim_substr=["a year"], gold_citations=["c9"]), *GOLDS[1:]]


def test_gold_that_is_fitted_to_the_answers_is_shown_with_flips_and_turned_gates(project, score):
    project.put(gates=gates(precision="{min: 0.9}"))
    project.done("strict")
    project.change(gold=fitted(), trace=wrong(1))
    report = score()
    assert score.code == 0  # nothing asks for a sign-off yet
    assert codes(report) == ["gold-fits-output", "gold-not-governed", "gold-turns-gates"]
    (found,) = (item for item in report["findings"] if item["code"] == "gold-not-governed")
    assert found["message"] == "1 change of the gold set, and no policy requires a sign-off"
    (change,) = report["gold_changes"]
    assert (change["qid"], change["verb"], change["before"], change["after"]) == ("Q1", "changed", "NOT_CITED", "OK")
    turn = next(item for item in report["gate_turns"] if item["name"] == "precision")
    assert (turn["before"], turn["after"], turn["value_before"], turn["value_after"]) == ("failed", "passed", 0.75, 1.0)


@pytest.mark.parametrize("side", ["base", "head"])
def test_where_either_side_asks_for_it_unsigned_gold_fails(project, score, side):
    if side == "base":
        project.put(gates=gates(SIGNED))
        project.done("ask for a sign-off")
    project.change(gates=gates(SIGNED), gold=fitted())
    report = score()
    assert score.code == 1
    assert "unsigned-change" in codes(report, "error")


def test_the_command_that_is_advised_runs_nothing_that_a_branch_is_named(project, score):
    project.put(gates=gates(SIGNED))
    project.done("ask for a sign-off")
    project.git("branch", "x;touch${IFS}y")
    project.change(gold=fitted())
    (fix,) = {item["fix"] for item in score(base="x;touch${IFS}y")["findings"] if item["code"] == "unsigned-change"}
    assert fix == "rag-eval gold signoff --base 'x;touch${IFS}y' --reason '…'"


def test_a_sign_off_policy_that_goes_still_holds(project, score):
    project.put(gates=gates(SIGNED))
    project.done("ask for a sign-off")
    project.change(gates=gates(), gold=fitted())
    report = score()
    assert (score.code, "unsigned-change" in codes(report, "error")) == (1, True)
    assert policy(report)["signoff"] == ("looser", ["unsigned-change"])


def test_a_sign_off_policy_that_goes_with_its_file_still_holds(project, score):
    project.put(gates=gates(SIGNED))
    project.done("ask for a sign-off")
    project.change(gates=None, gold=fitted())
    report = score()
    assert (score.code, "unsigned-change" in codes(report, "error")) == (1, True)
    assert policy(report)["signoff"] == ("looser", ["unsigned-change"])


def test_gold_that_is_swapped_while_traces_are_scored_is_not_judged(project, score, monkeypatch):
    project.put(gates=gates(SIGNED))
    project.done("ask for a sign-off")
    project.change(trace=wrong(1))
    honest = (project.path / GOLD).read_bytes()
    project.write(GOLD, json_lines(fitted()))

    class Restoring:
        """Puts the honest gold back as soon as traces are read."""

        def begin(self, total):
            (project.path / GOLD).write_bytes(honest)

        def advance(self, count):
            pass

        def end(self):
            pass

    monkeypatch.setattr("rag_eval.cli.score.progress", lambda **_: Restoring())
    assert score() is None
    assert "eval/gold.jsonl: was changed while the run was scored. Run again" in score.said


def test_signed_gold_passes_and_stays_visible(project, score, capsys):
    project.put(gates=gates(SIGNED))
    project.done("ask for a sign-off")
    project.change(gold=fitted(), trace=wrong(1))
    assert main(["gold", "signoff", "--base", "main", "--reason", "the manual says so"]) == 0
    assert "Signed by ann@example.org" in capsys.readouterr().out
    project.done("signed")
    report = score()
    assert (score.code, codes(report, "error")) == (0, [])
    assert [item["qid"] for item in report["gold_changes"]] == ["Q1"]


def test_a_review_that_only_the_action_can_check_is_unchecked(project, score, capsys):
    review = "signoff: {require: review, signers: {ann@example.org: {github: ann}}}\n"
    project.put(gates=gates(review))
    project.done("ask for a review")
    project.change(gold=fitted())
    assert main(["gold", "signoff", "--base", "main", "--reason", "the manual says so"]) == 0
    capsys.readouterr()
    project.done("signed")
    unchecked = next(item for item in findings(score()) if item["code"] == "signoff-unchecked")
    assert "the approving review cannot be checked outside GitHub Actions" in unchecked["message"]


def test_questions_that_fail_and_are_dropped_are_named(project, score):
    project.change(gold=GOLDS[1:], trace=wrong(1))
    report = score()
    (change,) = report["gold_changes"]
    assert (change["verb"], change["before"]) == ("removed", "NOT_CITED")
    assert "failing-items-removed" in codes(report, "warning")


def test_of_questions_that_are_dropped_and_not_answered_any_more_it_is_said_that_nobody_knows(project, score):
    project.put(gates=gates(precision="{min: 0.9}"))
    project.done("strict")
    project.change(gold=GOLDS[1:], trace=TRACES[1:])
    report = score()
    (change,) = report["gold_changes"]
    assert (score.code, change["verb"], change["before"]) == (0, "removed", None)
    assert codes(report, "warning") == ["gold-not-governed", "removed-items-unseen"]
    assert report["gate_turns"] == []  # what nobody is asked any more is no missing answer


def test_a_question_that_asks_something_else_is_a_mutation(project, score):
    project.change(gold=[gold_of(1, question="Who?"), *GOLDS[1:]])
    assert [item["mutation"] for item in score()["gold_changes"]] == [True]


def test_gold_that_moves_is_no_way_out(project, score):
    project.put(gates=gates(SIGNED))
    project.done("ask for a sign-off")
    project.change(gates=gates(f"gold: eval/easy.jsonl\n{SIGNED}"))
    project.write("eval/easy.jsonl", json_lines(GOLDS[4:]))
    project.put(trace=TRACES[4:])
    project.done("easier gold")
    report = score()
    assert score.code == 1
    assert policy(report)["gold"][0] == "looser"
    assert "unsigned-change" in codes(report, "error")


def test_another_gold_than_the_bases_named_by_the_caller_is_said(project, score):
    project.put(gates=gates(f"gold: {GOLD}\n"))
    project.done("named")
    project.change()
    project.write("eval/easy.jsonl", json_lines(GOLDS[4:]))
    project.put(trace=TRACES[4:])
    project.done("easier gold")
    assert "gold-overridden" in codes(score("--gold", "eval/easy.jsonl"), "warning")


@pytest.mark.parametrize(("stated", "level"), [("", "warning"), (SIGNED, "error")])
@pytest.mark.parametrize("where", ["outside", "untracked"])
def test_gold_that_git_does_not_hold_is_said(project, score, tmp_path, stated, level, where):
    project.put(gates=gates(stated))
    project.done("policy")
    project.change()
    position = tmp_path / "gold.jsonl" if where == "outside" else project.path / "untracked.jsonl"
    position.write_text(json_lines(GOLDS), encoding="utf-8")
    report = score("--gold", str(position))
    assert "gold-not-in-git" in codes(report, level)
    assert score.code == (level == "error")


def test_changes_of_main_since_the_fork_are_not_this_branchs(project, score):
    project.change(trace=TRACES)
    project.git("checkout", "-q", "main")
    project.put(gold=fitted(), gates=gates(precision="{min: 0.7}"))
    project.done("main goes on")
    project.git("checkout", "-q", "pr")
    report = score()
    assert (report["gold_changes"], policy(report)) == ([], {})
    assert [(note["file"], note["message"]) for note in report["notes"]] == [
        (
            GOLD,
            (
                "'main' has changed 1 gold item since this branch left it, which this run does not score: 'Q1'. "
                "Rebase, or check out the merge commit, to score them"
            ),
        ),
        (
            GATES,
            (
                "'main' has changed 'gates.precision.min' since this branch left it, and its version applies. "
                "Rebase to get it"
            ),
        ),
    ]


def test_what_the_change_touches_itself_is_its_own_whatever_main_did(project, score):
    project.change(gates=gates(precision="{min: 0.5}", chr="{min: 0.1}"))
    project.git("checkout", "-q", "main")
    project.put(gates=gates(precision="{min: 0.9}", over_refusal="{max: 0.5}"))
    project.done("main goes on")
    project.git("checkout", "-q", "pr")
    report = score()
    assert policy(report) == {"gates.precision.min": ("looser", []), "gates.chr": ("stricter", [])}
    (note,) = report["notes"]
    assert note["message"].startswith("'main' has changed 'gates.over_refusal' since")


SLICES = "slices: {by: [tags], min_n: 3}\n"


@pytest.mark.parametrize(
    ("fork", "main_lines", "branch", "keys"),
    [
        (
            SLICES,
            "",
            SLICES.replace("3", "5"),
            {"slices": "stricter"},
        ),  # the base removes a section that is edited here
        (SLICES, SLICES.replace("3", "5"), "", {"slices": "looser"}),  # and the other way round
        ("", SLICES, SLICES.replace("3", "5"), {"slices.min_n": "looser"}),  # both add it
    ],
)
def test_a_section_that_both_sides_change_is_a_change_of_this_branch(project, score, fork, main_lines, branch, keys):
    project.put(gates=gates(fork))
    project.done("fork")
    project.change(gates=gates(branch))
    project.git("checkout", "-q", "main")
    project.put(gates=gates(main_lines))
    project.done("main goes on")
    project.git("checkout", "-q", "pr")
    report = score()
    assert {key: kind for key, (kind, _) in policy(report).items()} == keys
    assert report["notes"] == []


def test_a_gate_that_main_has_tightened_since_decides_though_the_change_did_nothing(project, score):
    project.put(gates=gates(precision="{min: 0.7}"))
    project.done("less")
    project.change(trace=wrong(1))
    project.git("checkout", "-q", "main")
    project.put(gates=gates(precision="{min: 0.9}"))
    project.done("main goes on")
    project.git("checkout", "-q", "pr")
    report = score()
    assert (score.code, broken(report), policy(report)) == (1, [("precision", "base")], {})


def test_keys_that_main_has_changed_since_are_not_this_branchs(project, score):
    names = ["ann", "bob", "cleo", "dora"]
    line = 'NAME@example.org namespaces="gold-signoff@rag-eval-action" ssh-ed25519 AAAA-NAME\n'

    def signers(*some):
        project.write("signers", "".join(line.replace("NAME", name) for name in some))

    project.put(gates=gates("signoff: {require: signature, allowed_signers: signers}\n"))
    signers(*names[:2])
    project.done("keys")
    project.branch("pr")
    signers("bob", "cleo")
    project.done("Cleo for Ann")
    project.git("checkout", "-q", "main")
    signers("ann", "dora")
    project.done("Dora for Bob")
    project.git("checkout", "-q", "pr")
    changed = {(item["kind"], (item["old"] or item["new"])[1:4]) for item in score()["policy_changes"]}
    assert changed == {("looser", "cle"), ("stricter", "ann")}


def packed(project, stated=""):
    """Gold that is packed on main, and a branch that packs other gold under the same name."""

    def pack(rows):
        (project.path / "eval/gold.jsonl.gz").write_bytes(gzip.compress(json_lines(rows).encode(), mtime=0))

    pack(GOLDS)
    project.put(gates=gates(f"gold: eval/gold.jsonl.gz\n{stated}"))
    project.done("packed")
    project.change()
    pack([gold_of(1, tags=["new"]), *GOLDS[1:]])
    project.done("other gold")


def test_packed_gold_is_compared_and_said_not_to_be_governed(project, score):
    packed(project)
    report = score()
    (result,) = findings(report)
    assert (score.code, result["code"], result["level"]) == (0, "gold-not-in-items", "warning")
    assert [(item["qid"], item["verb"]) for item in report["gold_changes"]] == [("Q1", "changed")]
    assert result["message"].endswith("'eval/gold.jsonl.gz' is compressed, but sign-off needs plain lines")
    assert result["fix"] == "Keep the gold set uncompressed in git."


@pytest.mark.parametrize("words", [("score",), ("gold", "check"), ("gold", "diff")])
def test_packed_gold_is_not_judged_where_sign_off_is_asked_for(project, capsys, words):
    packed(project, "signoff: {require: record}\n")
    code = main([*words, "--base", "main"])
    assert (code, "is compressed, but sign-off needs plain lines" in capsys.readouterr().err) == (2, True)


# --- places ----------------------------------------------------------------------------------------------------------


def test_a_project_below_the_root_is_found_from_its_folder(tmp_path, monkeypatch, score):
    apart(monkeypatch)
    project = Project.made(tmp_path / "mono", below="apps/bot/")
    project.change(gates=gates(precision="{min: 0.1}"), gold=fitted(), trace=wrong(1, 2))
    monkeypatch.chdir(project.path / "apps" / "bot")
    report = score()
    assert (score.code, broken(report)) == (1, [("precision", "base")])
    assert [item["qid"] for item in report["gold_changes"]] == ["Q1"]
    from_root = main(["score", "--base", "main", "--quiet", "--gates", "eval-gates.yml"])
    assert from_root == 1


def test_a_linked_work_tree_is_held_against_the_base_too(project, score, tmp_path, monkeypatch):
    project.git("worktree", "add", "-q", "-b", "pr", str(tmp_path / "linked"))
    linked = Project(tmp_path / "linked")
    linked.below = ""
    linked.put(gates=gates(precision="{min: 0.1}"), trace=wrong(1, 2))
    monkeypatch.chdir(linked.path)
    report = score()
    assert (score.code, broken(report)) == (1, [("precision", "base")])


def test_what_is_not_committed_yet_counts(project, score):
    """The work tree is scored, so its gates and gold are held against the base."""
    project.branch("pr")
    project.put(gates=gates(precision="{min: 0.1}"), gold=fitted())
    report = score()
    assert policy(report) == {"gates.precision.min": ("looser", ["precision"])}
    assert [item["qid"] for item in report["gold_changes"]] == ["Q1"]


def test_outside_of_a_repository_there_is_no_base(tmp_path, monkeypatch, score):
    apart(monkeypatch)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    score()
    assert score.code == 2
    assert "not a git repository" in score.said


def test_judged_by_other_gates_no_base_has_a_say(project, score, tmp_path, capsys):
    project.change(gates=gates(precision="{min: 0.2}"), trace=wrong(1, 2))
    (tmp_path / "base.json").write_text(json.dumps(score()), encoding="utf-8")
    (tmp_path / "easy.yml").write_text(gates(precision="{min: 0.1}"), encoding="utf-8")
    words = ["gate", str(tmp_path / "base.json"), "--gates", str(tmp_path / "easy.yml"), "--format", "json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["base"], report["policy_changes"], broken(report)) == (None, [], [])


@pytest.mark.parametrize("form", RENDERERS)
def test_every_rendering_says_the_same_of_both_runs(project, score, form):
    project.change(gates=gates(precision="{min: 0.2}"), gold=fitted(), trace=wrong(1, 2))
    report = from_json(score())
    again = from_json(score())
    assert render(report, form) == render(again, form)


# --- verdicts that the author of the change recorded -----------------------------------------------------------------


def judged(project, golds, traces):
    """Commit gold, traces and recorded verdicts, and gates that name them; return the rows of the verdicts."""
    judge = f"judge: {json.dumps(verdicts.JUDGE)}\nverdicts: eval/verdicts.jsonl\n"
    recorded = verdicts.verdict_rows(golds, traces)
    project.put(gates=gates(f"  judge_correctness: {{min: 4, severity: warning}}\n{judge}"), gold=golds, trace=traces)
    project.write("eval/verdicts.jsonl", json_lines(recorded))
    project.done("judged")
    return recorded


@pytest.mark.parametrize(("new", "shares"), [(0, []), (1, ["1 of 5"]), (2, ["2 of 6"])])
def test_verdicts_on_new_answers_are_noted(project, score, new, shares):
    golds, before = verdicts.gold_of(4), verdicts.trace_of(4)
    recorded = judged(project, golds, before)
    after = [*verdicts.trace_of(new, "Deleted records are kept for"), *before[new:]]
    project.branch("pr")
    project.put(trace=after)
    project.write("eval/verdicts.jsonl", json_lines([*recorded, *verdicts.verdict_rows(golds[:new], after[:new])]))
    project.done("other answers")
    report = score()
    assert report["metrics"]["judge_correctness"]["value"] == 5
    message = "verdicts were committed with this change: no job asked the judge for them"
    notes = [note["message"] for note in report["notes"] if "verdicts" in note["message"]]
    assert notes == [f"{share} {message}" for share in shares]


def test_verdicts_that_replace_those_of_the_base_are_named(project, score):
    golds, traces = verdicts.gold_of(2), verdicts.trace_of(2)
    recorded = judged(project, golds, traces)
    project.branch("pr")
    project.write("eval/other.jsonl", json_lines(recorded))
    known = codes(score("--verdicts", "eval/verdicts.jsonl"))
    assert codes(score("--verdicts", "eval/other.jsonl")) == sorted([*known, "verdicts-overridden"])


def test_verdicts_that_a_job_recorded_are_not_committed_with_the_change(project, score):
    golds, before = verdicts.gold_of(2), verdicts.trace_of(2)
    recorded = judged(project, golds, before)
    after = verdicts.trace_of(2, "Deleted records are kept for")
    project.change(trace=after)
    project.write("eval/verdicts.jsonl", json_lines([*recorded, *verdicts.verdict_rows(golds, after)]))
    assert [note["message"] for note in score()["notes"] if "verdicts" in note["message"]] == []


@pytest.mark.parametrize(("edited", "named"), [(1, "'Q0'"), (3, "'Q0', 'Q1', 'Q2'"), (4, "'Q0', 'Q1', 'Q2', …")])
def test_a_few_of_the_edited_verdicts_are_named(project, score, edited, named):
    golds, traces = verdicts.gold_of(5), verdicts.trace_of(5)
    recorded = judged(project, golds, traces)
    better = verdicts.verdict_rows(golds[:edited], traces[:edited], groundedness=5)
    project.branch("pr")
    project.write("eval/verdicts.jsonl", json_lines([*better, *recorded[edited:]]))
    project.done("edited")
    (finding,) = [item for item in score()["findings"] if item["code"] == "changed-verdict"]
    message = f"{edited} of 5 recorded verdicts differ from the base branch for the same input: {named}"
    assert (finding["level"], finding["message"]) == ("warning", message)


# --- inputs that the caller replaces ---------------------------------------------------------------------------------

FILE = "Name the file only in the gates file."


@pytest.mark.parametrize(
    ("stated", "words", "code", "message", "fix"),
    [
        (
            "gold: eval/gold.jsonl\n",
            "--gold=other.jsonl",
            "gold-overridden",
            "an input or option replaces the gold set 'eval/gold.jsonl' of the base branch's gates file",
            FILE,
        ),
        (
            "",
            "--gold=other.jsonl",
            "gold-overridden",
            "an input or option replaces the usual gold set 'eval/gold.jsonl', which the base branch means",
            FILE,
        ),
        (
            "trace: runs/trace.jsonl\n",
            "--trace=other.jsonl",
            "traces-overridden",
            "an input or option replaces the traces 'runs/trace.jsonl' of the base branch's gates file",
            FILE,
        ),
        (
            "",
            "--trace=other.jsonl",
            "traces-overridden",
            "an input or option replaces the usual traces 'runs/trace.jsonl', which the base branch means",
            FILE,
        ),
        (
            "",
            "--gates=other.yml",
            "gates-overridden",
            "an input or option replaces the gates file 'eval-gates.yml' of the base branch",
            "Remove the input or option gates.",
        ),
        (
            "",
            "--k=5",
            "k-overridden",
            "an input or option sets k to 5, but by the base branch's gates file it is 3",
            "Set k only in the gates file.",
        ),
    ],
)
def test_an_input_that_the_caller_replaces_is_named_with_what_the_base_means(
    project, score, stated, words, code, message, fix
):
    project.put(gates=gates(stated))
    project.done("gates")
    project.branch("pr")
    for name, text in (("other.jsonl", json_lines(GOLDS if "gold" in words else TRACES)), ("other.yml", gates(stated))):
        project.write(name, text)
    project.done()
    found = [item for item in findings(score(words)) if item["code"].endswith("-overridden")]
    assert [(item["code"], item["level"], item["message"], item["fix"]) for item in found] == [
        (code, "warning", message, fix)
    ]
    same = {"--gold": GOLD, "--trace": "runs/trace.jsonl", "--gates": GATES, "--k": "3"}
    option = words.partition("=")[0]
    assert [item for item in findings(score(f"{option}={same[option]}")) if item["code"].endswith("-overridden")] == []


@pytest.mark.parametrize(("of_root", "named"), [("gold: eval/gold.jsonl\n", True), ("gold: eval/other.jsonl\n", False)])
def test_gates_of_another_folder_replace_those_at_the_root_only_for_the_same_gold(project, score, of_root, named):
    project.put(gates=gates(of_root))
    project.write("eval/other.jsonl", json_lines(GOLDS))
    project.write("sub/eval-gates.yml", gates("gold: ../eval/gold.jsonl\ntrace: ../runs/trace.jsonl\n"))
    project.done("two gates files")
    project.change()
    found = [item["message"] for item in findings(score("--gates=sub/eval-gates.yml")) if "overridden" in item["code"]]
    message = "an input or option replaces the gates file 'eval-gates.yml' of the base branch"
    assert found == [message] * named


# --- lists that are cut ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "more"), [(1, ""), (5, ""), (6, " and 1 more"), (8, " and 3 more")])
def test_five_questions_that_were_asked_otherwise_are_named(project, score, count, more):
    project.change(trace=[trace_of(n, q="Who are you?") if n <= count else trace_of(n) for n in range(1, 9)])
    [message] = [item["message"] for item in findings(score()) if item["code"] == "other-question"]
    names = ", ".join(f"'Q{n}'" for n in range(1, min(count, 5) + 1))
    what = "1 question" if count == 1 else f"{count} questions"
    assert message == f"the traces of {what} were asked another question than the gold has: {names}{more}"


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " and 1 more")])
def test_five_keys_that_main_has_changed_are_named(project, score, count, more):
    names = ["chr", "map", "mrr", "hit_precision", "compliance", "ndcg@5"]
    project.change()
    project.git("checkout", "-q", "main")
    project.put(gates=gates(**dict.fromkeys(names[:count], "{min: 0}")))
    project.done("main goes on")
    project.git("checkout", "-q", "pr")
    (note,) = score()["notes"]
    keys = ", ".join(f"'gates.{name}'" for name in sorted(names[:count])[:5])
    assert note["message"].startswith(f"'main' has changed {keys}{more} since this branch left it")
