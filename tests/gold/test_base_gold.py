"""The gold of the base is compared by qid wherever it lies now, and a system is held to its own gates."""

from __future__ import annotations

import gzip
import hashlib
import json
import re

import pytest

from project import GATES, GOLD, GOLDS, REFUSED, TRACES, gates, gold_of, json_lines, trace_of, wrong
from seams import main, render, score_files

SIGNED = "signoff: {require: record}\n"


@pytest.fixture
def score(capsys):
    """``rag-eval score --base main``: the report, None when nothing was judged; the exit code is on the function."""

    def score(*words):
        capsys.readouterr()
        score.code = main(["score", "--base=main", "--format", "json", "--quiet", *words])
        out, score.said = capsys.readouterr()
        return None if score.code == 2 else json.loads(out)

    return score


def codes(report):
    return sorted({item["code"] for item in report["findings"]} - {"traces-tracked", "gold-not-governed"})


def changed(report):
    return {item["qid"]: (item["verb"], item["before"], item["after"]) for item in report["gold_changes"]}


def policy(report):
    return {item["key"]: item["kind"] for item in report["policy_changes"]}


def widened():
    """Question 1 wants what its trace wrongly says."""
    return [gold_of(1, gold_claim_substr=["a year"], gold_citations=["c9"]), *GOLDS[1:]]


FORMS = {
    "questions.jsonl": lambda rows: json_lines(rows).encode(),
    "gold.jsonl.gz": lambda rows: gzip.compress(json_lines(rows).encode(), mtime=0),
    "Gold.jsonl": lambda rows: json_lines(rows).encode(),
}


@pytest.mark.parametrize("name", FORMS)
def test_moved_gold_is_compared_by_qid(project, score, name):
    project.branch("pr")
    project.put(gold=None, gates=gates(f"gold: eval/{name}\n"), trace=wrong(1))
    project.write(f"eval/{name}", FORMS[name](widened()))
    project.done()
    report = score()
    assert changed(report) == {"Q1": ("changed", "NOT_CITED", "OK")}
    assert "gold-fits-output" in codes(report)


def test_items_with_other_bytes_and_the_same_content_are_called_reformatted(project, score, capsys):
    project.branch("pr")
    rows = [json.dumps(dict(sorted(row.items())), separators=(",", ":")) for row in widened()]
    project.write("eval/gold.jsonl", "".join(f"{row}\n" for row in rows).encode())
    project.done()
    report, count = score(), len(GOLDS) - 1
    verbs = {qid: verb for qid, (verb, *_) in changed(report).items()}
    assert verbs == {row["qid"]: "changed" if row["qid"] == "Q1" else "reformatted" for row in GOLDS}
    (note,) = (note["message"] for note in report["notes"] if "reformatted" in note["message"])
    changes = "changed: Q1 (gold_claim_substr, gold_citations)"
    assert note == f"{count} gold items are reformatted, with the same content; {changes}"
    main(["score", "--base=main"])
    out = " ".join(capsys.readouterr().out.split())
    assert f"This change edits the gold set: 1 changed, {count} reformatted." in out


@pytest.mark.parametrize("name", FORMS)
def test_gold_that_only_moves_is_no_change(project, score, name):
    project.branch("pr")
    project.put(gold=None, gates=gates(f"gold: eval/{name}\n"))
    project.write(f"eval/{name}", FORMS[name](GOLDS))
    project.done()
    report = score()
    assert (score.code, changed(report), codes(report)) == (0, {}, ["gold-not-in-items"] if "gz" in name else [])


def in_labels(project, rows, folder="eval/labels"):
    cases = [{"case_id": row["qid"], "query": row["question"]} for row in rows]
    chunks = [{"case_id": row["qid"], "relevant_chunks": row["gold_citations"]} for row in rows if row["answerable"]]
    ends = [{"case_id": row["qid"], "expected_outcome": "no_results"} for row in rows if not row["answerable"]]
    for name, labels in (("cases", cases), ("retrieval_labels", chunks), ("pipeline_labels", ends)):
        project.write(f"{folder}/{name}.jsonl", json_lines(labels))


def test_a_label_folder_is_compared_with_the_label_folder_of_the_base(project, score):
    project.put(gold=None, gates=gates("gold: eval/labels\n"))
    in_labels(project, GOLDS)
    project.done("labels")
    project.branch("pr")
    in_labels(project, [gold_of(1, gold_citations=["c9"]), *GOLDS[1:]])
    project.put(trace=wrong(1))
    project.done()
    assert changed(score()) == {"Q1": ("changed", "NOT_CITED", "OK")}


def test_a_label_folder_is_compared_with_the_file_that_it_came_from(project, score):
    project.branch("pr")
    project.put(gold=None, gates=gates("gold: eval/labels\n"))
    in_labels(project, GOLDS[1:])
    project.done()
    report = score()
    assert changed(report)["Q1"][0] == "removed"
    assert "labels-removed" in codes(report)  # substrings have no place in label files


def test_gold_outside_of_git_is_compared_with_the_gold_of_the_base(project, score):
    project.change(trace=wrong(1))
    project.write("other.jsonl", json_lines(widened()))
    report = score("--gold", "other.jsonl")
    assert changed(report) == {"Q1": ("changed", "NOT_CITED", "OK")}
    assert {"gold-not-in-git", "gold-fits-output"} <= set(codes(report))


@pytest.mark.parametrize("limits", ["lines: 7", "line_mib: 1"])
def test_the_old_gold_is_read_under_the_limits_of_the_base(project, score, limits):
    project.put(gates=gates("limits: {line_mib: 20}\n"), gold=[gold_of(1, meta={"x": "y" * (2 << 20)}), *GOLDS[1:]])
    project.done("long")
    project.change(gates=gates(f"limits: {{{limits}}}\n"), gold=GOLDS[1:], trace=TRACES[1:])
    report = score()
    assert changed(report) == {"Q1": ("removed", None, None)}
    assert policy(report)[f"limits.{limits.partition(':')[0]}"] == "looser"


def test_the_baseline_of_the_base_is_read_under_the_limits_of_the_base(project, score):
    project.write("eval/baseline.json", render(score_files(gates=GATES), "json"))
    project.put(gates=gates("baseline: {report: eval/baseline.json}\n"))
    project.done("baseline")
    project.change(gates=gates("baseline: {report: eval/baseline.json}\nlimits: {depth: 3}\n"))
    report = score()
    assert (score.code, report["baseline"]["cases"]) == (0, 8)
    assert policy(report)["limits.depth"] == "looser"


def test_raised_limits_are_stricter(project, score):
    project.change(gates=gates("limits: {line_mib: 32}\n"))
    assert policy(score()) == {"limits.line_mib": "stricter"}


def test_old_gold_that_cannot_be_read_is_no_pass(project, score):
    project.put(gold=json_lines(GOLDS) + "{broken\n")
    project.done("broken")
    project.change(gold=GOLDS)
    assert score() is None
    assert "eval/gold.jsonl of main:9" in score.said
    assert "gates-ref: head" in score.said


def test_a_must_pass_case_that_only_the_changed_gold_takes_for_right_is_named(project, score):
    project.put(gates=gates("baseline: {report: eval/baseline.json}\nmust_pass: [Q1]\n"))
    project.write("eval/baseline.json", render(score_files(gates=GATES), "json"))
    project.done("must pass")
    project.change(gold=widened(), trace=wrong(1))
    assert {"must-pass-widened", "gold-fits-output"} <= set(codes(score()))


# --- sign-off --------------------------------------------------------------------------------------------------------


def signed(project, *words):
    project.git("add", "--all")
    assert main(["gold", "signoff", "--base", "main", "--reason", "looked at", *words]) == 0
    project.done("signed")


@pytest.fixture
def governed(project):
    project.put(gates=gates(SIGNED))
    project.git("add", "--all")
    assert main(["gold", "signoff", "--baseline", "--reason", "first"]) == 0
    project.done("signed")
    return project


def test_a_signed_move_of_the_gold_passes(governed, score):
    governed.branch("pr")
    governed.git("mv", GOLD, "eval/questions.jsonl")
    governed.put(gates=gates(f"gold: eval/questions.jsonl\n{SIGNED}"))
    signed(governed)
    report = score()
    assert (score.code, changed(report)) == (0, {})


def test_a_move_signs_no_other_question_unless_it_says_so(governed, score, capsys):
    governed.branch("pr")
    governed.git("mv", GOLD, "eval/questions.jsonl")
    governed.put(gates=gates(f"gold: eval/questions.jsonl\n{SIGNED}"))
    governed.write("eval/questions.jsonl", json_lines([gold_of(1, question="Who?"), *GOLDS[1:]]))
    governed.git("add", "--all")
    assert main(["gold", "signoff", "--base", "main", "--reason", "moved"]) == 2
    assert "asks another question than before" in capsys.readouterr().err
    signed(governed, "--mutates")
    report = score()
    assert (score.code, [item["mutation"] for item in report["gold_changes"]]) == (0, [True])


@pytest.mark.parametrize(("others", "more"), [(1, ""), (2, ", and so does 1 more"), (3, ", and so do 2 more")])
def test_sign_off_counts_all_items_that_ask_another_question(governed, capsys, others, more):
    changed = [gold_of(number, question=f"Who is number {number}?") for number in range(1, others + 1)]
    governed.write(GOLD, json_lines([*changed, *GOLDS[others:]]))
    governed.git("add", "--all")
    assert main(["gold", "signoff", "--reason", "other questions"]) == 2
    assert re.search(rf"'Q1' asks another question than before{more}\. ", capsys.readouterr().err)


def stacked(project):
    """The upper of two stacked branches, whose lower one was squashed into main."""
    project.branch("lower")
    project.put(gold=[gold_of(1, tags=["lower"]), *GOLDS[1:]])
    signed(project)
    project.branch("upper", "lower")
    project.put(gold=[gold_of(1, tags=["lower"]), gold_of(2, tags=["upper"]), *GOLDS[2:]])
    project.git("add", "--all")
    assert main(["gold", "signoff", "--base", "lower", "--reason", "upper"]) == 0
    project.done("upper")
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--squash", "lower")
    project.git("commit", "-q", "-m", "lower, squashed")
    project.git("checkout", "-q", "upper")


def test_what_a_squashed_lower_branch_signed_is_not_asked_of_the_upper_one(governed, score):
    stacked(governed)
    report = score()
    assert (score.code, changed(report), codes(report)) == (0, {"Q2": ("changed", "OK", "OK")}, [])
    assert main(["gold", "check", "--base", "main"]) == 0


def test_what_main_has_by_now_is_no_effect_of_this_change(project, score):
    """The lower branch fits an item to the answer and drops one; the upper one only adds a tag."""
    rows, dropped = widened(), TRACES[2]["qid"]
    project.branch("lower")
    project.put(gold=[row for row in rows if row["qid"] != dropped], trace=wrong(1))
    project.done("lower")
    project.branch("upper", "lower")
    project.put(gold=[rows[0], gold_of(2, tags=["upper"]), *(row for row in rows[2:] if row["qid"] != dropped)])
    project.done("upper")
    report = score()
    assert set(changed(report)) == {"Q1", "Q2", dropped}
    assert {"gold-fits-output"} <= set(codes(report))
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--squash", "lower")
    project.git("commit", "-q", "-m", "lower, squashed")
    project.git("checkout", "-q", "upper")
    report = score()
    assert changed(report) == {"Q2": ("changed", "OK", "OK")}
    assert not {"gold-fits-output", "fewer-cases", "labels-removed", "gold-turns-gates"} & set(codes(report))


def test_what_main_took_back_is_not_brought_back_under_its_old_record(governed, score):
    stacked(governed)
    governed.git("checkout", "-q", "main")
    governed.put(gold=GOLDS)
    governed.git("add", "--all")
    assert main(["gold", "signoff", "--reason", "taken back"]) == 0
    governed.done("taken back")
    governed.git("checkout", "-q", "upper")
    report = score()
    assert (score.code, "replayed-record" in codes(report)) == (1, True)


def test_an_expanded_ident_is_no_change_of_the_gold(governed, score):
    rows = [gold_of(1, meta={"id": "$Id$"}), *GOLDS[1:]]
    governed.write(".gitattributes", "*.jsonl ident\n")
    governed.put(gold=rows)
    governed.git("add", "--all")
    assert main(["gold", "signoff", "--reason", "ident"]) == 0
    governed.done("ident")
    governed.branch("pr")
    governed.write("notes.md", "x")
    governed.done()
    (governed.path / GOLD).unlink()
    governed.git("checkout", "-q", "--", GOLD)
    assert b"$Id: " in (governed.path / GOLD).read_bytes()
    report = score()
    assert (score.code, changed(report)) == (0, {})


# --- several systems -------------------------------------------------------------------------------------------------

OWN = [
    {
        "qid": f"Q{n}",
        "question": f"Which colour is car {n}?",
        "answerable": False,
        "gold_claim_substr": [],
        "gold_citations": [],
    }
    for n in range(1, 9)
]
OWN_TRACES = [{"qid": f"Q{n}", "retrieved_ids": ["d1"], "answer_json": REFUSED} for n in range(1, 9)]


def system(project, folder, rows=OWN, traces=OWN_TRACES, **thresholds):
    project.write(f"{folder}/eval-gates.yml", gates(**thresholds))
    project.write(f"{folder}/eval/gold.jsonl", json_lines(rows))
    project.write(f"{folder}/runs/trace.jsonl", json_lines(traces))


def of(folder):
    return "--gates", f"{folder}/eval-gates.yml"


LOOSE = {"precision": "", "error_rate": "{max: 0.5}"}


def test_a_new_system_with_gold_of_its_own_is_not_held_to_the_gates_of_the_root(project, score):
    project.branch("pr")
    system(project, "apps/new", **LOOSE)
    project.done()
    report = score(*of("apps/new"))
    assert (score.code, report["base"]["kind"]) == (0, "bootstrap")


@pytest.mark.parametrize("spelling", ["same", "other qids", "other questions", "other case"])
def test_a_new_folder_with_the_gold_of_the_root_is_held_to_the_gates_of_the_root(project, score, spelling):
    rows = {
        "same": lambda row: row,
        "other qids": lambda row: {**row, "qid": f"N{row['qid']}"},
        "other questions": lambda row: {**row, "question": f"Tell me about {row['qid']}"},
        "other case": lambda row: {**row, "question": f"{row['question'].upper()} !", "qid": f"N{row['qid']}"},
    }[spelling]
    made = [rows(row) for row in GOLDS]
    traces = [{**wrong(1, 2, 3)[n], "qid": row["qid"]} for n, row in enumerate(made)]
    project.branch("pr")
    system(project, "apps/new", made, traces, precision="{min: 0}")
    project.done()
    report = score(*of("apps/new"))
    assert (score.code, report["base"]["kind"]) == (1, "base")


def test_the_gates_of_a_sibling_that_goes_are_none_of_another_system(project, score):
    system(project, "apps/help", precision="{min: 1}")
    project.git("rm", "-q", GATES)
    project.done("a sibling")
    project.branch("pr")
    project.git("rm", "-q", "-r", "apps/help")
    project.write("notes.md", "no gates of its own\n")
    project.put(trace=wrong(1, 2, 3))
    project.done("the sibling goes")
    report = score("--gold", GOLD, "--trace", "runs/trace.jsonl")
    assert report["base"]["kind"] == "bootstrap"


def test_two_systems_that_move_at_once_are_each_held_to_their_own_gates(project, score):
    project.git("rm", "-q", GATES, GOLD)
    system(project, "apps/help", precision="{min: 1}")
    system(project, "apps/search", GOLDS, TRACES, precision="{min: 0.9}")
    project.done("two")
    project.branch("pr")
    project.git("mv", "apps", "services")
    system(project, "services/search", GOLDS, wrong(1, 2), precision="{min: 0}")
    project.done("moved")
    report = score(*of("services/search"))
    assert (score.code, [item["threshold"] for item in report["gates"] if item["origin"] == "base"]) == (1, ["0.9"])


def test_gold_that_is_eased_in_place_while_a_copy_is_scored_frees_no_gate(project, score):
    project.branch("pr")
    project.write("eval/same.jsonl", json_lines(GOLDS))
    project.put(gold=widened(), gates=gates("gold: eval/same.jsonl\n", precision="{min: 0.1}"), trace=wrong(1, 2))
    project.done()
    report = score()
    assert score.code == 1
    assert [item["name"] for item in report["gates"] if item["outcome"] == "failed"] == ["precision"]


def pointer(rows):
    data = json_lines(rows).encode()
    oid = hashlib.sha256(data).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(data)}\n"


def test_gold_in_lfs_is_known_by_its_digest(project, score):
    project.put(gold=pointer(GOLDS))
    project.done("lfs")
    project.branch("pr")
    project.put(gold=GOLDS)
    assert "gold-not-in-git" not in codes(score())
    project.put(gold=widened())
    assert "gold-not-in-git" in codes(score())


def test_gold_that_stays_in_lfs_is_not_signed_and_no_change(project, score):
    project.put(gold=pointer(GOLDS))
    project.done("lfs")
    project.branch("pr")
    project.done()
    project.put(gold=GOLDS)
    assert not {"gold-not-governed", "gold-not-in-items"} & set(codes(score()))
    project.put(gates=gates("signoff: {require: record}\n"))
    (result,) = (item for item in score()["findings"] if item["code"] == "gold-not-in-items")
    assert (score.code, result["level"]) == (1, "error")
    assert result["message"] == "'eval/gold.jsonl' is in Git LFS, but sign-off needs the content in git"


# --- what an item comes to say less ----------------------------------------------------------------------------------


def test_a_substring_that_other_answers_hold_too_is_named(project, score):
    many = [
        gold_of(n, answerable=True, gold_claim_substr=[f"{n} days"], gold_citations=[f"c{n}"]) for n in range(1, 14)
    ]
    output = [
        trace_of(n, answer_json={"claim": f"It is {n} days exactly.", "citations": [f"c{n}"]}) for n in range(1, 14)
    ]
    project.put(gold=many, trace=output)
    project.done("many")
    project.change(gold=[{**many[0], "gold_claim_substr": [" days"]}, *many[1:]])
    (result,) = (
        item
        for item in score()["findings"]
        if item["code"] == "changed-item-weak" and "substr-common" in item["message"]
    )
    assert result["message"].startswith("Q1: the substring 'days' occurs in")


def test_lint_says_nothing_new_of_an_item_that_was_as_weak_before(project, score):
    weak = gold_of(1, gold_claim_substr=["how long"])
    project.put(gold=[weak, *GOLDS[1:]])
    project.done("weak")
    project.change(gold=[{**weak, "tags": ["new"]}, *GOLDS[1:]])
    assert "changed-item-weak" not in codes(score())


@pytest.mark.parametrize(
    "gate",
    [
        "slices:\n  gates:\n    tags=none: {precision: {min: 0.5, when_no_data: skip}}\n",
        "slices:\n  gates:\n    tags=new: {precision: {min: 0.5, when_no_data: skip}}\n",
        "slices:\n  gates:\n    category=*: {precision: {min: 0.5, when_no_data: skip}}\n",
    ],
)
def test_a_gate_that_judges_no_case_on_either_gold_does_not_judge_fewer(project, score, gate):
    project.put(gates=gates(f"  injection_auc: {{min: 0.5, when_no_data: skip}}\n{gate}"))
    project.done("gates without cases")
    project.change(gold=[{**GOLDS[0], "tags": ["new"]}, *GOLDS[1:]])
    report = score()
    assert (score.code, "fewer-cases" in codes(report)) == (0, False)
    assert any(item["outcome"] == "no_data" for item in report["gates"])


@pytest.mark.parametrize(("weak", "more"), [(5, ""), (6, " (and 1 more finding)"), (7, " (and 2 more findings)")])
def test_five_findings_about_changed_items_are_shown_and_the_others_counted(project, score, weak, more):
    many = [gold_of(n, answerable=True, gold_claim_substr=[f"{n} days"], gold_citations=[f"c{n}"]) for n in range(1, 9)]
    project.put(gold=many)
    project.done("many")
    asked = [{**row, "gold_claim_substr": [f"number {n}"]} for n, row in enumerate(many, 1)]
    project.change(gold=[*asked[:weak], *many[weak:]])
    found = [item for item in score()["findings"] if item["code"] == "changed-item-weak"]
    assert [(item["level"], item["line"], item["message"][:4]) for item in found] == [
        ("warning", n, f"Q{n}: ") for n in range(1, 6)
    ]
    assert {item["message"].partition("(substr-in-question)")[2] for item in found} == {more}


# --- several of these at once -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["lines", "gzip", "labels"])
def test_gates_renamed_gold_moved_and_limits_lowered_at_once(project, score, form):
    project.branch("pr")
    project.git("rm", "-q", GATES, GOLD)
    name = {"lines": "q.jsonl", "gzip": "q.jsonl.gz", "labels": "labels"}[form]
    lines = f"gold: ../data/{name}\ntrace: ../runs/trace.jsonl\nlimits: {{lines: 7}}\n"
    project.write("ci/easy.yml", gates(lines, precision="{min: 0.1}"))
    if form == "labels":
        in_labels(project, [gold_of(2, gold_citations=["c9"]), *GOLDS[2:]], "data/labels")
    else:
        project.write(f"data/{name}", FORMS["gold.jsonl.gz" if form == "gzip" else "questions.jsonl"](widened()[:7]))
    project.put(trace=wrong(1)[:7] if form != "labels" else wrong(2)[1:])
    project.done()
    report = score("--gates", "ci/easy.yml")
    assert report["base"]["kind"] == "base"
    assert "gold-fits-output" in codes(report)
    assert changed(report)["Q1" if form == "labels" else "Q8"] == ("removed", None, None)
    assert {policy(report)[key] for key in ("the gates file", "gold", "limits.lines")} == {"looser"}


def test_gates_of_an_unusual_name_that_move_still_decide(project, score):
    project.git("mv", GATES, "strict.yml")
    project.done("an unusual name")
    project.branch("pr")
    project.git("mv", "strict.yml", "easy.yml")
    project.write("easy.yml", gates(precision="{min: 0.1}"))
    project.put(trace=wrong(1, 2, 3))
    project.done()
    report = score("--gates", "easy.yml")
    assert (score.code, report["base"]["kind"]) == (1, "base")


def test_a_folder_that_moves_is_held_to_its_gates_and_not_to_those_for_all(project, score):
    project.git("rm", "-q", GOLD)
    project.put(gates=gates(precision="{min: 0}"))
    system(project, "apps/search", GOLDS, TRACES, precision="{min: 0.9}")
    project.done("one for all, and one")
    project.branch("pr")
    project.git("mv", "apps/search", "apps/finder")
    system(project, "apps/finder", GOLDS, wrong(1, 2), precision="{min: 0}")
    project.done("moved")
    report = score(*of("apps/finder"))
    assert (score.code, [item["threshold"] for item in report["gates"] if item["origin"] == "base"]) == (1, ["0.9"])


def test_a_must_pass_case_is_judged_on_the_traces_that_were_scored(project, score):
    """Under another k, with the honest traces left where the base's gates file names them."""
    must = "baseline: {report: eval/baseline.json}\n"
    project.put(gates=gates(f"{must}must_pass: [Q1]\n", precision="{min: 0.5}"))
    project.write("eval/baseline.json", render(score_files(gates=GATES), "json"))
    project.done("must pass")
    text = gates(f"{must}trace: runs/other.jsonl\n", precision="{min: 0.5}").replace("k: 3", "k: 2")
    project.change(gates=text)
    project.write("runs/other.jsonl", json_lines(wrong(1)))
    report = score()
    assert (score.code, "must-pass-broken" in codes(report)) == (1, True)


def test_traces_behind_a_link_to_a_file_in_git_are_named(project, score):
    project.write("kept/trace.jsonl", json_lines(TRACES))
    project.done("kept")
    project.branch("pr")
    (project.path / "out").mkdir()
    (project.path / "out/trace.jsonl").symlink_to("../kept/trace.jsonl")
    assert score("--trace", "out/trace.jsonl") is None  # it leads out of its folder
    (project.path / "runs/linked.jsonl").symlink_to("trace.jsonl")
    assert "traces-tracked" in {item["code"] for item in score("--trace", "runs/linked.jsonl")["findings"]}


def test_the_usual_gold_is_what_gates_mean_that_name_none(project, score):
    project.write("eval/smoke.jsonl", json_lines(GOLDS[:6]))
    project.done("two gold sets")
    project.change()
    assert "gold-overridden" in codes(score("--gold", "eval/smoke.jsonl"))


def test_gold_that_the_base_does_not_have_where_it_names_it_is_named(project, score):
    project.put(gates=gates("gold: elsewhere.jsonl\n"))
    project.done("elsewhere")
    project.change(gates=gates(f"gold: {GOLD}\n"))
    assert "gold-not-on-base" in codes(score())


def test_what_stands_in_the_place_of_an_ident_is_a_change(governed, score):
    rows = [gold_of(1, meta={"id": "$Id$"}), *GOLDS[1:]]
    governed.put(gold=rows)
    governed.git("add", "--all")
    assert main(["gold", "signoff", "--reason", "ident"]) == 0
    governed.done("ident")
    governed.branch("pr")
    text = (governed.path / GOLD).read_text()
    governed.put(gold=text.replace("$Id$", '$Id: ", "x": "easy $', 1))
    report = score()
    assert (score.code, list(changed(report))) == (1, ["Q1"])


def both_forms(row):
    """A line that reads otherwise as an element of an array: by what substrings nobody asks there."""
    return {**row, "q": row["question"], "gold_ids": row["gold_citations"]}


@pytest.mark.parametrize("stated", ["", SIGNED])
def test_lines_that_read_otherwise_as_an_array_are_no_unchanged_items(project, score, stated):
    rows = [both_forms(row) for row in GOLDS]
    project.put(gold=rows, gates=gates(stated))
    project.git("add", "--all")
    assert main(["gold", "signoff", "--baseline", "--reason", "first"]) == 0
    project.done("both forms")
    text = "[" + ",".join(json.dumps(row) for row in rows) + "]"
    project.change(gold=text)
    report = score()
    assert score.code == bool(stated)
    assert changed(report)["Q1"][0] == "changed"
    assert ("unsigned-change" in codes(report)) == bool(stated)
    what = "item 'Q2' is unchanged, but in this form of the gold file other fields of it count"
    findings = [
        (item["message"], item["fix"], item["line"]) for item in report["findings"] if "'Q2' is" in item["message"]
    ]
    assert findings == ([(what, "Remove the fields of the other form.", 1)] if stated else [])


@pytest.mark.parametrize("stays", [True, False])
def test_gold_that_leaves_the_folder_of_its_gates_is_held_to_them(project, score, stays):
    project.git("rm", "-q", GATES, GOLD)
    system(project, "svc", GOLDS, TRACES, precision="{min: 0.9}")
    project.done("in a folder")
    project.branch("pr")
    if not stays:
        project.git("rm", "-q", "svc/eval/gold.jsonl")
    project.write("new/gold.jsonl", json_lines(GOLDS))
    project.write("new/g.yml", gates("gold: gold.jsonl\ntrace: ../runs/trace.jsonl\n", precision="{min: 0.1}"))
    project.put(trace=wrong(1, 2))
    project.done("elsewhere")
    report = score("--gates", "new/g.yml")
    assert (score.code, report["base"]["kind"]) == (1, "base")


def test_packed_gold_of_the_base_may_be_unpacked_where_nobody_signs(project, score):
    project.git("rm", "-q", GOLD)
    project.write("eval/gold.jsonl.gz", FORMS["gold.jsonl.gz"](GOLDS))
    project.put(gates=gates("gold: eval/gold.jsonl.gz\n"))
    project.done("packed")
    project.branch("pr")
    project.git("rm", "-q", "eval/gold.jsonl.gz")
    project.put(gold=widened(), gates=gates(f"gold: {GOLD}\n"), trace=wrong(1))
    project.done("unpacked")
    report = score()
    assert (score.code, changed(report)) == (0, {"Q1": ("changed", "NOT_CITED", "OK")})


@pytest.mark.parametrize(("signed", "code"), [("", 0), (SIGNED, 2)])
def test_a_label_folder_that_becomes_a_file_is_not_judged_where_sign_off_is_asked_for(project, score, signed, code):
    """Sign-off reads lines, so it cannot compare the two; without it the items still are."""
    project.git("rm", "-q", GOLD)
    in_labels(project, GOLDS, folder=GOLD)
    project.put(gates=gates(signed))
    project.done("labels")
    project.branch("pr")
    project.git("rm", "-q", "-r", GOLD)
    project.put(gold=GOLDS)
    project.done("a file")
    report = score()
    assert score.code == code
    if report is None:
        assert "is a folder" in score.said
    else:
        assert [item["level"] for item in report["findings"] if item["code"] == "gold-not-in-items"] == ["warning"]
        assert changed(report)["Q1"][0] == "changed"


def test_pairs_of_a_regression_gate_are_not_compared_with_the_cases_of_the_other_gate(project, score):
    project.put(gates=gates(precision="{min: 0.8, max_drop: 0.05}"))
    project.done("a regression gate")
    project.change(gold=[*GOLDS, gold_of(9)], trace=[*TRACES, trace_of(9)])
    assert "fewer-cases" not in codes(score())


# Traces without ids


def without_ids(rows, **fields):
    return [
        {**{name: value for name, value in row.items() if name != "qid"}, **fields.get(row["qid"], {})} for row in rows
    ]


def test_traces_find_their_items_on_the_gold_of_the_base_when_a_conversation_is_split(project, score):
    turns = [{**row, "conversation": "A", "turn": number} for number, row in enumerate(GOLDS, 1)]
    project.put(
        gold=turns,
        trace=without_ids(TRACES, **{row["qid"]: {"conversation": "A", "turn": row["turn"]} for row in turns}),
    )
    project.done("conversations")
    project.branch("pr")
    split = [*turns[:-1], {**turns[-1], "conversation": "B", "turn": 1}]
    project.put(
        gold=split,
        trace=without_ids(
            TRACES, **{row["qid"]: {"conversation": row["conversation"], "turn": row["turn"]} for row in split}
        ),
    )
    project.done()
    report = score()
    last = GOLDS[-1]["qid"]
    assert (score.code, changed(report)) == (0, {last: ("changed", *[report_label(report, last)] * 2)})
    assert "questions-regrouped" not in codes(report)


def test_traces_find_their_items_on_the_gold_of_the_base_when_a_question_is_reworded(project, score):
    project.put(trace=without_ids(TRACES, **{row["qid"]: {"q": row["question"]} for row in GOLDS}))
    project.done("questions")
    project.branch("pr")
    reworded = [{**GOLDS[0], "question": "What is the first one?"}, *GOLDS[1:]]
    project.put(gold=reworded, trace=without_ids(TRACES, **{row["qid"]: {"q": row["question"]} for row in reworded}))
    project.done()
    assert changed(score()) == {GOLDS[0]["qid"]: ("changed", "OK", "OK")}
    assert score.code == 0


def report_label(report, qid):
    return next(case["label"] for case in report["questions"] if case["qid"] == qid)
