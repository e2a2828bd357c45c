"""A narrowed run: what it measures and judges, which questions are in it, and that it says what it left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rag_eval
from cases import gold_row, trace_row, write_rows
from project import Project, apart, gates, gold_of, trace_of, wrong
from rag_eval import api
from rag_eval.gates.selection import in_suite, sample
from rag_eval.metrics import perspectives_of
from seams import METRICS, PERSPECTIVES, Gold, UsageError, main, measure

GATES = gates(chr="{min: 0.9}", **{"recall_all@3": "{min: 0.5}"})


def item(qid, answerable=True, attack=False, tags=None):
    extra = {"attack": {"kind": "input", "positive": True, "category": "x"}} if attack else {}
    return Gold.from_row(gold_row(qid=qid, answerable=answerable, **extra, **({"tags": tags} if tags else {})), 1)


KINDS = {"plain": {}, "unanswerable": {"answerable": False}, "attack": {"attack": True}}
gold_sets = st.dictionaries(st.text(min_size=1, max_size=6), st.sampled_from(sorted(KINDS)), min_size=1, max_size=80)
sizes = st.integers(1, 60)


def items(kinds):
    return [item(qid, **KINDS[kind]) for qid, kind in kinds.items()]


@given(gold_sets, sizes)
def test_a_sample_has_the_size_asked_for_and_every_kind(kinds, size):
    members = sample(items(kinds), size)
    assert len(members) == len(set(members)) == max(min(size, len(kinds)), len(set(kinds.values())))
    assert {kinds[qid] for qid in members} == set(kinds.values())


@given(gold_sets, sizes)
def test_a_kind_has_its_share_of_a_sample(kinds, size):
    members = sample(items(kinds), size)
    for kind in KINDS:
        ours = sum(item == kind for item in kinds.values())
        exact = ours * min(size, len(kinds)) / len(kinds)
        got = sum(kinds[qid] == kind for qid in members)
        assert abs(got - exact) < 2 or (ours and got == 1)


parts = st.fixed_dictionaries({kind: st.integers(1, 60) for kind in KINDS})
ORDER = ("unanswerable", "plain", "attack")
"""The kinds in the order in which the first of equal remainders is rounded up."""


@given(parts, sizes)
@example({"plain": 48, "unanswerable": 26, "attack": 26}, 10)
@example({"plain": 10, "unanswerable": 10, "attack": 10}, 4)
@example({"plain": 10, "unanswerable": 10, "attack": 10}, 5)
def test_shares_are_rounded_by_the_largest_remainder(counts, size):
    total = sum(counts.values())
    if any(count * size < total for count in counts.values()) or size > total:
        return
    whole = {kind: divmod(counts[kind] * size, total) for kind in ORDER}
    up = sorted(ORDER, key=lambda kind: -whole[kind][1])[: size - sum(share for share, _ in whole.values())]
    kinds = {f"{kind}{number}": kind for kind, count in counts.items() for number in range(count)}
    members = [kinds[qid] for qid in sample(items(kinds), size)]
    assert {kind: members.count(kind) for kind in ORDER} == {kind: whole[kind][0] + (kind in up) for kind in ORDER}


@pytest.mark.parametrize(
    ("counts", "size", "sizes"),
    [
        ((97, 2, 1), 4, (2, 1, 1)),
        ((97, 2, 1), 3, (1, 1, 1)),
        ((97, 2, 1), 2, (1, 1, 1)),
        ((60, 39, 1), 10, (6, 3, 1)),
        ((50, 49, 1), 10, (5, 4, 1)),
        ((2, 2, 1), 5, (2, 2, 1)),
        ((2, 2, 1), 9, (2, 2, 1)),
    ],
)
def test_a_rare_kind_takes_its_place_from_the_one_with_the_most_beyond_its_share(counts, size, sizes):
    kinds = {f"{kind}{n}": kind for kind, count in zip(KINDS, counts, strict=True) for n in range(count)}
    members = [kinds[qid] for qid in sample(items(kinds), size)]
    assert tuple(members.count(kind) for kind in KINDS) == sizes


@given(gold_sets, sizes, st.randoms(use_true_random=False))
def test_the_order_of_lines_changes_no_sample(kinds, size, random):
    entries = items(kinds)
    shuffled = random.sample(entries, len(entries))
    assert sorted(sample(entries, size)) == sorted(sample(shuffled, size))


@given(gold_sets, st.text(min_size=1, max_size=6), st.sampled_from(sorted(KINDS)), sizes)
def test_a_question_more_changes_few_members_of_a_sample(kinds, qid, kind, size):
    before, after = (set(sample(items(item), size)) for item in (kinds, {**kinds, qid: kinds.get(qid, kind)}))
    assert len(before - after) <= 3


def test_items_tagged_smoke_are_the_smoke_suite():
    golds = {qid: item(qid, tags=["smoke", "x"] if qid < "c" else ["x"]) for qid in "abcdef"}
    assert list(in_suite(golds, "smoke")) == ["a", "b"]
    assert len(in_suite(golds, "smoke:3")) == 3
    assert in_suite(golds, "full") is golds


def test_without_a_tag_the_smoke_suite_is_a_sample_of_fifty():
    golds = {f"{number}": item(f"{number}") for number in range(200)}
    assert len(in_suite(golds, "smoke")) == 50


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (["retrieval", "answers"], ("answers", "retrieval")),
        (["citations", "citations"], ("citations",)),
        (["retrieval", "context_quality"], ("retrieval", "context")),
        ([], ()),
    ],
)
def test_perspectives_are_in_the_order_of_reports(names, meant):
    assert perspectives_of(names) == meant


def test_an_unknown_perspective_says_which_there_are():
    with pytest.raises(UsageError, match="Choose from: answers"):
        perspectives_of(["zzz"])


def test_every_perspective_says_what_it_asks():
    assert [name for name, about in PERSPECTIVES.items() if not 10 < len(about) < 160] == []
    assert set(PERSPECTIVES) == {metric.perspective for metric in METRICS.values()}


# --- through the command line -----------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch):
    apart(monkeypatch)
    ours = Project.made(tmp_path / "repo", GATES)
    monkeypatch.chdir(ours.path)
    return ours


@pytest.fixture
def score(capsys):
    """``rag-eval score``: the exit code in ``score.code``, and the report."""

    def score(*words, form="json"):
        score.code = main(["score", "--quiet", "--format", form, *words])
        out = capsys.readouterr().out
        return json.loads(out) if form == "json" else out

    return score


def names(report):
    return [gate["name"] for gate in report["gates"] if not gate["name"].startswith("completeness")]


def test_only_the_perspectives_asked_for_are_measured_and_judged(project, score):
    project.put(trace=wrong(1, 2, 3, 4))
    report = score("--perspective", "retrieval")
    assert score.code == 0
    assert {measure(name).metric.perspective for name in report["metrics"]} == {"retrieval"}
    assert names(report) == ["recall_all@3"]
    assert report["scope"] == {
        "perspectives": ["retrieval"],
        "suite": "full",
        "questions": 8,
        "of": 8,
        "left_out_gates": ["precision", "chr"],
    }
    assert all(set(case["scores"]) <= set(report["contracts"]) for case in report["questions"])


@pytest.mark.parametrize("form", ["table", "markdown", "junit"])
def test_a_narrowed_run_that_passes_does_not_look_like_a_whole_one(project, score, form):
    text = score("--perspective", "retrieval", form=form)
    assert "Evaluated 8 questions. Passed in part:" in text or text.startswith("PASSED IN PART  ")
    assert "Only retrieval: 2 gates of other metric groups were not judged." in text


def test_a_narrowed_run_measures_the_same_as_a_whole_one(project, score):
    whole, part = score()["metrics"], score("--perspective", "citations,retrieval")["metrics"]
    assert part == {name: whole[name] for name in part}


def test_gates_that_are_not_judged_still_guard(project, score):
    refused = [trace_of(n, answer_json={"claim": "not in context", "citations": []}) for n in range(1, 9)]
    project.put(trace=refused, gates=gates(over_refusal="{max: 0.1}"))
    for words in ([], ["--perspective", "citations"]):
        (result,) = [item for item in score(*words)["findings"] if item["code"] == "refuses-everything"]
        assert result["level"] == "warning"


def test_the_report_says_it_again_when_it_is_judged_again(project, score, capsys):
    text = score("--perspective", "retrieval", form="json")
    project.write("report.json", json.dumps(text))
    assert main(["gate", "report.json", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == text
    project.write("other.yml", gates(**{"recall_all@3": "{min: 0.5}", "chr": None}))
    assert main(["gate", "report.json", "--gates", "other.yml", "--format", "table"]) == 0
    out, output = capsys.readouterr()
    assert "Only retrieval: 1 gate of other metric groups was not judged." in out
    assert output == ""


def test_a_suite_is_judged_by_its_own_questions(project, score):
    rows = [gold_of(n, tags=["smoke"]) if n in (1, 2, 5) else gold_of(n) for n in range(1, 9)]
    project.put(gold=rows, trace=[*wrong(3, 4), trace_of(1, qid="Q99")])
    report = score("--suite", "smoke")
    assert [case["qid"] for case in report["questions"]] == ["Q1", "Q2", "Q5"]
    assert report["completeness"] == {
        "expected": 3, "scored": 3, "missing": 0, "duplicate": 0, "unknown": 1, "errored": 0,
    }  # fmt: skip
    assert (report["scope"]["questions"], report["scope"]["of"]) == (3, 8)
    assert "Smoke suite: 3 of 8 questions." in score("--suite", "smoke", form="table")


def test_a_question_of_the_suite_without_a_trace_is_missing(project, score):
    project.put(gold=[gold_of(n, tags=["smoke"] if n == 1 else []) for n in range(1, 9)], trace=wrong()[1:])
    assert score("--suite", "smoke")["completeness"]["missing"] == 1
    assert score.code == 1


def test_what_a_suite_does_in_all_of_its_questions_is_only_warned_of(project, score):
    refused = [trace_of(n, answer_json={"claim": "not in context", "citations": []}) for n in range(1, 9)]
    project.put(trace=refused, gates=gates())
    (result,) = [item for item in score("--suite", "smoke:6")["findings"] if item["code"] == "refuses-everything"]
    assert result["level"] == "warning"


def test_what_must_pass_and_is_not_in_the_suite_is_not_gone(project, score):
    project.put(gates=gates("baseline: {report: eval/baseline.json}\nmust_pass: [Q1, Q4, tags=critical]\n"))
    rows = [gold_of(n, tags=["smoke"] if n in (1, 5) else ["critical"]) for n in range(1, 9)]
    project.put(gold=rows)
    project.write("eval/baseline.json", json.dumps(score()))
    project.put(gold=[row for row in rows if row["qid"] != "Q4"], trace=[trace_of(n) for n in range(1, 9) if n != 4])
    codes = {item["code"]: item["message"] for item in score("--suite", "smoke")["findings"]}
    assert list(codes) == ["must-pass-gone"]
    assert codes["must-pass-gone"].startswith("Q4 ")
    assert not score("--suite", "smoke")["baseline"]["rescored"]
    assert score("--suite", "smoke")["baseline"] | {"sha256": ""} == score("--suite", "smoke")["baseline"] | {
        "sha256": "", "cases": 2, "changed": 0, "gone": 1, "new": 0,
    }  # fmt: skip


def test_a_narrowed_baseline_says_so_and_gives_what_it_has(project, score):
    project.write("eval/baseline.json", json.dumps(score("--perspective", "retrieval")))
    drops = {"recall_all@3": "{max_drop: 0.1, test: none}", "precision": "{max_drop: 0.1, test: none}"}
    project.put(gates=gates("baseline: {report: eval/baseline.json}\n", **drops))
    report = score()
    assert score.code == 1
    assert {gate["name"]: gate["outcome"] for gate in report["gates"][:2]} == {
        "precision": "no_data",
        "recall_all@3": "passed",
    }
    assert [item["code"] for item in report["findings"]] == ["baseline-narrowed"]


def test_gates_of_the_base_that_are_left_out_are_counted_too(project, score):
    project.change(gates=gates(chr="{min: 0.9}", precision=None, **{"recall_all@3": "{min: 0.6}"}))
    report = score("--perspective", "retrieval", "--base", "main")
    assert report["scope"]["left_out_gates"] == ["chr", "precision"]
    assert [(gate["name"], gate["threshold"]) for gate in report["gates"][:1]] == [("recall_all@3", "0.6")]
    assert {"0.5"} == {gate["threshold"] for gate in report["gates"] if gate["origin"] == "base"}


def test_changed_gold_outside_the_suite_has_no_case_in_it(project, score):
    rows = [gold_of(n, tags=["smoke"] if n in (1, 5) else []) for n in range(1, 9)]
    project.put(gold=rows)
    project.done("tagged")
    changed = [{**row, "gold_citations": ["c9"]} if row["qid"] in ("Q1", "Q2") else row for row in rows[:-1]]
    project.change(gold=changed, trace=[trace_of(n) for n in range(1, 8)])
    labels = {
        item["qid"]: (item["before"], item["after"])
        for item in score("--suite", "smoke", "--base", "main")["gold_changes"]
    }
    assert labels["Q2"] == (None, None)
    assert labels["Q1"][0] == "OK" != labels["Q1"][1]


def test_a_change_that_tags_another_suite_is_compared_with_that_of_the_base(project, score):
    project.change(gold=[gold_of(n, tags=["smoke"] if n in (1, 5) else []) for n in range(1, 9)], trace=wrong(2, 3))
    report = score("--suite", "smoke", "--base", "main")
    assert (report["scope"]["questions"], report["verdict"]) == (2, "passed")
    codes = {item["code"] for item in report["findings"]}
    assert {"fewer-cases", "gold-turns-gates"} <= codes
    project.change("again", gold=[gold_of(n, tags=["smoke"]) for n in range(1, 9)])
    codes = {item["code"] for item in score("--suite", "smoke", "--base", "main")["findings"]}
    assert codes.isdisjoint({"fewer-cases", "gold-turns-gates"})


def test_questions_that_leave_the_sample_and_are_not_answered_are_no_failures(project, score):
    project.put(gates=gates(**{"recall_all@3": "{min: 1}"}))
    project.done("strict")
    golds = [gold_of(n) for n in range(1, 9)] + [
        {**gold_of(1), "qid": f"N{n}", "question": f"And {n}?"} for n in range(9)
    ]
    suite = {"Q1", "Q2"}
    tagged = [{**gold, "tags": ["smoke"]} if gold["qid"] in suite else gold for gold in golds]
    project.change(gold=tagged, trace=[trace_of(n) for n in (1, 2)])
    codes = {item["code"] for item in score("--suite", "smoke", "--base", "main")["findings"]}
    assert "gold-turns-gates" not in codes


@pytest.mark.parametrize("words", [["--perspective", "retrieval"], ["--suite", "smoke"]])
def test_the_flat_scores_are_never_narrowed(project, words, capsys):
    assert main(["score", "--format", "scores", *words]) == 2
    assert f"Remove {words[0]}, or --format scores" in capsys.readouterr().err


def test_the_library_narrows_alike(project, tmp_path):
    report = rag_eval.score("eval/gold.jsonl", "runs/trace.jsonl", perspectives=["retrieval"], suite="smoke:4")
    assert report.scope.perspectives == ("retrieval",)
    assert (report.scope.questions, len(report.questions)) == (4, 4)


def test_traces_of_other_questions_are_read_but_not_scored(tmp_path):
    golds = [gold_row(qid=f"Q{n}", question=f"How {n}?", tags=["smoke"] if n == 0 else []) for n in range(5)]
    traces = [{**trace_row(answer_json={"claim": "yes"}), "qid": "", "q": f"How {n}?"} for n in range(5)]
    paths = write_rows(tmp_path / "g.jsonl", golds), write_rows(tmp_path / "t.jsonl", traces)
    report = api.score(*paths, suite="smoke")
    assert (report.completeness.unknown, report.completeness.expected) == (0, 1)


def test_history_takes_no_question_for_gone_that_a_suite_left_aside(project, score, capsys):
    for index, words in enumerate([[], ["--suite", "smoke:4"], []]):
        project.write(f"runs/{index}.json", json.dumps(score(*words)))
    (project.path / "runs" / "trace.jsonl").unlink()
    assert main(["history", "runs", "--format", "json"]) == 0
    out = json.loads(capsys.readouterr().out)
    gold = [reading["gold"] for series in out["metrics"] for reading in series["readings"]]
    assert gold == [None] * len(gold)
    assert len(gold) >= 9
