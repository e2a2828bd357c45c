"""Trends over earlier reports: what is compared with what, what is said of it, and where reports are found."""

from __future__ import annotations

import gzip
import json
import re
from itertools import pairwise, permutations

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from cases import ROOT, gold_row, trace_row, write_rows
from depth import examples
from gitrepo import Repo
from project import apart
from rag_eval.analysis.history import Contrast, GoldCounts, Point, Reading, Series, flaky, gated_metrics, history, point
from rag_eval.api import Options, run, score
from rag_eval.readers.report_file import read_report
from rag_eval.rendering import history as trend
from rag_eval.rendering.document import PLAIN
from rag_eval.rendering.history import headline, spark, trend_remarks
from runs import question
from seams import GOOD, Completeness, Gate, ProblemCollector, Reader, Value, from_json, judge, main, render
from trends import compared

QUESTIONS = 30
FORMS = ("table", "markdown", "json")


def golds(changed=(), n=QUESTIONS):
    return [
        gold_row(
            qid=f"Q{number:02}",
            question=f"How long is {number}{'?' if number not in changed else ', please?'}",
            gold_claim_substr=[f"{number:03} days"],
            gold_citations=["a"],
        )
        for number in range(n)
    ]


def traces(wrong, n=QUESTIONS):
    """Right answers, but for the first ``wrong`` ones."""
    return [
        trace_row(
            qid=f"Q{number:02}",
            retrieved_ids=["a"],
            answer_json={"claim": "A week." if number < wrong else f"It is {number:03} days.", "citations": ["a"]},
        )
        for number in range(n)
    ]


@pytest.fixture(scope="session")
def scored(tmp_path_factory):
    """report.json of runs with so many wrong answers, each made once."""
    made = {}

    def text(wrong, *, changed=(), n=QUESTIONS, about=None, phrases=()):
        key = wrong, changed, n, repr(about), phrases
        if key not in made:
            folder = tmp_path_factory.mktemp("run")
            gold, trace = (
                write_rows(folder / "gold.jsonl", golds(changed, n)),
                write_rows(folder / "t.jsonl", traces(wrong, n)),
            )
            gates = folder / "gates.yml"
            refusal = f"refusal: {{phrases: {json.dumps(list(phrases))}}}"
            gates.write_text(f"version: 1\nk: 1\n{refusal}\ngates: {{precision: {{min: 0}}}}\n")
            if about is not None:
                (folder / "run.json").write_text(json.dumps(about))
            made[key] = render(run(Options(str(gold), str(trace), str(gates), cutoffs=(1,))), "json")
        return made[key]

    return text


def points(*texts, names=("precision",)):
    result = []
    for index, text in enumerate(texts):
        report = read_report(Reader(ProblemCollector(), contents={"r": text.encode()}), "r")
        result.append(point(f"r{index}", report, names))
    return result


def one_series(*texts):
    [series] = history(points(*texts), ["precision"])
    return series


# What is compared


def test_slow_drift_is_seen_though_no_step_shows_it(scored):
    series = one_series(*(scored(wrong) for wrong in (0, 2, 4, 6, 8)))
    value, move = round(22 / 30, 12), pytest.approx(8 / 30)
    comparison = series.oldest.comparison
    ends = comparison.low, comparison.high
    assert (series.oldest.before, series.oldest.after, comparison.result) == ("r0", "r4", "worse")
    assert (comparison.baseline, comparison.value, comparison.n) == (1.0, value, 30)
    assert (comparison.regression, comparison.adjusted) == (move, 2 * 0.5**8)
    assert 0 < ends[0] < 8 / 30 < ends[1]
    assert (series.step.is_worse, series.step.comparison.regression) == (False, pytest.approx(2 / 30))
    assert series.slow


def test_the_p_of_one_metric_is_that_of_the_exact_sign_test(scored):
    series = one_series(scored(1), scored(7))
    assert series.oldest.comparison.adjusted == pytest.approx(binomtest(6, 6, 0.5).pvalue)


def test_a_great_step_is_worse_and_not_slow(scored):
    series = one_series(scored(0), scored(0), scored(10), scored(10))
    assert series.oldest.is_worse
    assert (series.step.before, series.step.after, series.step.is_worse) == ("r1", "r2", True)
    assert not series.slow


def but(*remaining):
    """All questions but these, as those that another gold has."""
    return tuple(sorted(set(range(QUESTIONS)) - set(remaining)))


def test_a_step_beyond_chance_is_not_hidden_by_a_larger_one_over_few_cases(scored):
    # Of the third gold two items stayed, and one of these is wrong now: 0.5 worse, and chance would do that.
    series = one_series(scored(0), scored(8), scored(9, changed=but(8, 9)), scored(8))
    assert (series.step.before, series.step.after, series.step.is_worse) == ("r0", "r1", True)
    assert (series.oldest.is_worse, series.slow) == (True, False)


@examples(60)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 2, 5, 9, 14]), st.sampled_from([(), but(8, 9), but(*range(14))])),
        min_size=2,
        max_size=6,
    )
)
def test_a_drift_is_slow_where_no_two_neighbours_alone_show_it(scored, runs):
    texts = [scored(wrong, changed=changed) for wrong, changed in runs]
    series = one_series(*texts)
    alone = [one_series(*two).oldest for two in pairwise(texts)]
    assert series.slow == (
        any(item is not None and item.is_worse for item in (series.oldest, series.best))
        and not any(item is not None and item.is_worse for item in alone)
    )


def test_the_best_is_compared_with_too_and_being_picked_counts_against_it(scored):
    series = one_series(scored(12), scored(0), scored(12))
    assert not series.oldest.is_worse
    assert (series.best.before, series.best.comparison.adjusted) == ("r1", pytest.approx(4 * 0.5**12))
    assert series.best.is_worse


def test_being_picked_from_many_takes_more_than_chance_would_do(scored):
    series = one_series(*(scored(5) for _ in range(9)), scored(0), scored(5))
    assert (series.best.before, series.best.comparison.regression) == ("r9", pytest.approx(5 / 30))
    assert series.best.comparison.adjusted == pytest.approx(20 * 0.5**5)
    assert not series.best.is_worse


def test_two_metrics_are_corrected_for_one_another(scored):
    texts = scored(0), scored(6)
    both = history(points(*texts, names=("precision", "chr")), ["precision", "chr"])
    # chr moved in no case: its test could not be significant, and does not count
    assert [item.oldest.comparison.adjusted for item in both] == [pytest.approx(2 * 0.5**6), 1.0]


def test_getting_better_is_no_drift(scored):
    series = one_series(scored(9), scored(5), scored(0))
    assert series.oldest.comparison.regression == pytest.approx(-9 / 30)
    assert [series.oldest.is_worse, series.best.is_worse, series.slow] == [False] * 3


def test_another_contract_breaks_the_series_and_is_not_compared_with(scored):
    series = one_series(scored(0), scored(1, phrases=("i cannot say",)), scored(2, phrases=("i cannot say",)))
    assert [(reading.comparable, reading.broken) for reading in series.readings] == [
        (False, False),
        (True, True),
        (True, False),
    ]
    assert (series.oldest.before, series.oldest.after) == ("r1", "r2")


def test_of_a_changed_gold_the_items_that_stayed_are_compared(scored):
    changed = tuple(range(10))
    series = one_series(scored(4), scored(14, changed=changed, n=25))
    assert series.readings[1].gold == GoldCounts(10, 5, 0)
    # Items 10 to 24 stayed: right then; 10 to 13 are wrong now.
    comparison = series.oldest.comparison
    assert (comparison.n, comparison.baseline, comparison.regression) == (15, 1.0, pytest.approx(4 / 15))


def test_where_no_item_stayed_the_next_report_is_the_oldest(scored):
    everything = tuple(range(QUESTIONS))
    series = one_series(scored(0), scored(1, changed=everything), scored(2, changed=everything))
    assert series.oldest.before == "r1"
    assert one_series(scored(0), scored(2, changed=everything)).oldest is None


def asked(text, *runs):
    """A report with every question once a run."""
    value = json.loads(text)
    value["questions"] = [{**item, "run": run} for item in value["questions"] for run in runs]
    return json.dumps(value)


LACKS = "the newest report has runs that they lack; name runs alike in all reports"
ALONE = "a report has values but no questions, so they cannot be paired"


def test_what_the_newest_cannot_be_held_against_is_counted_with_the_reason(scored):
    everything = tuple(range(QUESTIONS))
    texts = [asked(scored(0), *runs) for runs in (("a1", "b1"), ("a2", "b2"), ("a3", "b3"))]
    assert one_series(*texts).uncompared == ((LACKS, 2),)
    assert one_series(asked(scored(0)), asked(scored(0)), scored(1)).uncompared == ((ALONE, 2),)
    changed = one_series(scored(0), scored(1, changed=everything), scored(2, changed=everything))
    assert changed.uncompared == (("no question is in both with the same gold item", 1),)
    assert one_series(asked(scored(0)), texts[0], texts[0]).uncompared == ((ALONE, 1),)
    assert one_series(scored(0), scored(1)).uncompared == ()


def test_no_step_is_taken_between_runs_that_cannot_be_compared(scored):
    texts = asked(scored(0), "a", "b"), asked(scored(9), "a", "c"), asked(scored(14), "a")
    series = one_series(*texts)
    assert (series.step.before, series.step.after) == ("r1", "r2")


@examples(60)
@given(st.lists(st.sampled_from(["", "one", "two", "gold"]), min_size=1, max_size=4))
def test_the_headline_reassures_only_where_something_was_compared(scored, kinds):
    made = {
        "": asked(scored(0)),
        "one": asked(scored(0), "a", "b"),
        "two": asked(scored(0), "c", "d"),
        "gold": scored(0, changed=tuple(range(QUESTIONS))),
    }
    series = one_series(*(made[kind] for kind in kinds))
    output = headline([series])
    assert ("No metric is significantly worse" in output) == (series.oldest is not None)
    assert ("No metric can be compared" in output) == (series.oldest is None)
    assert sum(item.readings for item in series.uncompared) == (
        len(kinds) - 1 if series.oldest is None else int(series.oldest.before[1:])
    )
    assert len(list(trend_remarks(series, PLAIN))) == len(series.uncompared)


def test_of_several_metrics_the_headline_counts_those_that_nobody_compared(scored):
    [item] = history(points(scored(0), scored(9)), ["precision"])
    assert headline([item, item._replace(oldest=None)]) == (
        "1 of 2 metrics is significantly worse than in the oldest comparable report; 1 cannot be compared."
    )


def test_a_single_report_is_shown_and_compared_with_nothing(scored):
    series = one_series(scored(3))
    assert (series.values, series.oldest, series.best, series.step, series.slow) == ([0.9], None, None, None, False)


@examples(60)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=6))
def test_the_newest_is_held_against_the_oldest_whatever_lies_between(scored, wrong):
    series = one_series(*(scored(item) for item in wrong))
    assert series.oldest.comparison.regression == pytest.approx((wrong[-1] - wrong[0]) / QUESTIONS, abs=1e-9)
    steps = [after - before for before, after in pairwise(wrong)]
    assert series.step.comparison.regression == pytest.approx(max(steps) / QUESTIONS, abs=1e-9)
    assert series.best.comparison.regression == pytest.approx((wrong[-1] - min(wrong[:-1])) / QUESTIONS, abs=1e-9)
    assert series.oldest.is_worse == (wrong[-1] - wrong[0] >= 6)  # 2 * 0.5 ** 6 is the first below 0.05


def test_without_metrics_named_those_of_the_gates_are_shown(scored):
    [report] = [from_json(json.loads(scored(0)))]
    assert gated_metrics(report) == ["precision"]
    assert gated_metrics(report._replace(gates=())) == ["precision", "chr", "under_refusal", "over_refusal"]
    alien = report.gates[0]._replace(name="of_another_version")
    metrics = {**report.metrics, "of_another_version": report.metrics["chr"]}
    assert gated_metrics(report._replace(gates=(alien,), metrics=metrics))[0] == "precision"


def test_a_point_keeps_the_wanted_scores_alone(scored):
    [item] = points(scored(0))
    assert set(item.metrics) == {"precision"}
    assert {name for case in item.questions for name in case.scores} == {"precision"}


# One report


def gate_on(name, direction, threshold, outcome="passed", part="", severity="error", origin="head"):
    result = judge(Gate(name, direction, threshold, severity, slice=part), Value(0.9, 9))
    return result._replace(outcome=outcome, origin=origin)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_bound_shown_is_that_of_the_pull_request_and_the_one_that_fails(scored, order):
    gates = [
        gate_on("precision", "min", "0.9", outcome="failed", origin="base"),
        gate_on("precision", "max", "0.7", outcome="failed", origin="head"),
        gate_on("precision", "min", "0.5", origin="head"),
    ]
    report = from_json(json.loads(scored(0)))._replace(gates=tuple(gates[index] for index in order))
    assert point("r", report, ["precision"]).bounds == {"precision": ("max", 0.7, "failed")}
    [base] = gates[:1]
    assert point("r", report._replace(gates=(base,)), ["precision"]).bounds == {"precision": ("min", 0.9, "failed")}


def test_gates_on_slices_and_margins_are_no_bounds(scored):
    gates = gate_on("precision", "min", "0.9", part="tags=a"), gate_on("precision", "max_drop", "0.02")
    report = from_json(json.loads(scored(0)))._replace(gates=gates)
    assert point("r", report, ["precision"]).bounds == {}


def test_a_row_names_failed_gates_and_counts_wrong_answers(scored):
    report = from_json(json.loads(scored(3)))
    gates = [
        gate_on("precision", "min", "0.95", "failed"),
        gate_on("precision", "max_drop", "0.02", "failed"),
        gate_on("chr", "min", "0.95", "failed", severity="warning"),
        gate_on("completeness.missing", "max", "0"),
    ]
    row = point("r", report._replace(gates=tuple(gates), verdict="failed"), ["precision"]).verdict
    assert row == (False, ("precision",), 3, QUESTIONS, "")
    assert point("r", report, ["precision"]).verdict == (True, (), 3, QUESTIONS, "")


@pytest.mark.parametrize(
    ("about", "commit", "date"),
    [
        ({}, "", ""),
        ({"system_commit": "abc1234", "date": "2026-01-02"}, "abc1234", "2026-01-02"),
        ({"started_at": "2026-01-01", "date": "2026-01-02"}, "", "2026-01-01"),
        ({"started_at": 3, "date": "2026-01-02"}, "", "2026-01-02"),
        ({"created_at": "2026-01-03"}, "", "2026-01-03"),
        ({"started_at": 3}, "", ""),
    ],
)
def test_a_row_has_commit_and_date_of_run_json(scored, about, commit, date):
    ci = {"repository": "o/r", "branch": "main", "commit": "c" * 40, "pull_request": None, "run": 1}
    outside, inside = ({**json.loads(scored(0)), "run": about, "ci": run} for run in (None, ci))
    item = point("r", from_json(outside), ["precision"])
    assert (item.commit, item.verdict.date) == (commit, date)
    assert point("r", from_json(inside), ["precision"]).commit == (commit or "c" * 40)


outcomes = st.sampled_from(["OK", "REFUSAL_OK", "WRONG_CLAIM", "NOT_CITED", None])
histories = st.lists(st.fixed_dictionaries({(qid, gold): outcomes for qid in "AB" for gold in "xy"}), max_size=6)


@given(histories)
def test_a_question_is_flaky_if_it_changes_more_than_once_under_one_gold_item(reports):
    points = [
        Point(
            "r",
            {},
            {},
            tuple(question(qid, label, gold=gold) for (qid, gold), label in labels.items() if label),
            Completeness(0, 0, 0, 0, 0, 0),
        )
        for labels in reports
    ]
    expected = []
    for key in [(qid, gold) for qid in "AB" for gold in "xy"]:
        labels = [labels[key] for labels in reports if labels[key]]
        right = [label in GOOD for label in labels]
        changes = sum(right[at] != right[at - 1] for at in range(1, len(right)))
        if changes > 1:
            wrong = tuple(sorted(set(labels) - GOOD))
            expected.append((key[0], "?", sum(right), len(right), changes, wrong))
    result = flaky(points)
    assert sorted(result) == sorted(expected)
    assert [(-item.changes, item.qid) for item in result] == sorted((-item.changes, item.qid) for item in result)


# What is shown


def readings(*values, labels=None, broken=()):
    return tuple(
        Reading((labels or {}).get(index, f"r{index}"), value, None, None, 1, True, index in broken, None)
        for index, value in enumerate(values)
    )


@pytest.mark.parametrize(
    ("values", "broken", "bars"),
    [
        ((0, 1), (), "▁█"),
        ((0.1, 0.2, 0.3), (), "▁▅█"),
        ((1, None, 0.5), (), "█·▁"),
        ((0.4, 0.4), (), "▅▅"),
        ((0, 1), (1,), "▁│█"),
        ((), (), ""),
        ((None,), (), "·"),
    ],
)
def test_a_sparkline_reaches_from_the_least_to_the_greatest(values, broken, bars):
    assert spark(readings(*values, broken=broken)) == bars


@examples(200)
@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=30))
def test_a_sparkline_has_a_bar_a_reading(values):
    assert len(spark(readings(*values))) == len(values)


HOSTILE = '"] --> x\n```\n<img src=x>|`::error::x @team ##[error] [a](http://x) %% \u202e\x1b[31m;\\' + "x" * 200


def test_amounts_have_their_unit_and_a_fall_a_minus_sign():
    fall = Contrast("r0", "r1", compared(4152.5, 2085.2, -2067.3, None, -1500.0, 30, 0.001))
    latency = Series("latency_total_ms.p95", "lower", readings(4152.5, 2085.2), fall)
    worse = Contrast("r0", "r1", compared(0.9, 0.5, 0.4, 0.2, 0.6, 30, 0.001))
    text = trend.render([latency, Series("mrr", "higher", readings(0.9, 0.5), worse, worse, worse)], 2, "markdown")
    cells = [[cell.strip() for cell in line.split("|")[3:7]] for line in text.splitlines() if line.startswith("| `")]
    assert cells[:2] == [
        ["4152 ms", "2085 ms", "−2067 ms", "≤ −1500 ms"],
        ["0.900", "0.500", "−0.400", "−0.600 to −0.200"],
    ]
    assert "`r0` | 4152 ms" in " ".join(text.split())
    assert "the largest significant drop is 0.400, from `r0` to `r1`." in text


def test_an_unchanged_latency_has_a_change_of_0_ms():
    same = Contrast("r0", "r1", compared(812.0, 812.0, 0.0, 0.0, 0.0, 30, 1.0))
    latency = Series("latency_total_ms.p95", "lower", readings(812.0, 812.0), same)
    row = next(line for line in trend.render([latency], 2, "markdown").splitlines() if line.startswith("| `"))
    assert [cell.strip() for cell in row.split("|")[3:7]] == ["812 ms", "812 ms", "0 ms", "0 ms to 0 ms"]


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_stay_words(form):
    contrast = Contrast(HOSTILE, HOSTILE + "2", compared(1.0, 0.5, 0.5, 0.3, 0.7, 30, 0.001))
    other = contrast._replace(before="r1")
    series = Series("mrr", "higher", readings(1, 0.5, labels={0: HOSTILE}), other, contrast, contrast)
    text = trend.render([series], 2, form)
    assert "##[" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    if form != "json":
        assert not {"\u202e", "\x1b"} & set(text)
    if form == "markdown":
        html = cmarkgfm.github_flavored_markdown_to_html(text, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE)
        assert set(re.findall(r"<(\w+)", html)) <= {
            *"h2 h3 table thead tbody tr th td code p ul li pre details summary".split()
        }
        assert "@team" not in html


# Where reports are found


@pytest.fixture
def rag(command):
    return command


@pytest.fixture
def folder(tmp_path, scored):
    """Reports of a slow drift, named so that their order is that of numbers."""
    for index, wrong in enumerate((0, 2, 4, 6, 8), 7):
        (tmp_path / f"run-{index}.json").write_text(scored(wrong))
    return tmp_path


def labels(out):
    return [reading["label"] for reading in json.loads(out)["metrics"][0]["readings"]]


def test_a_folder_is_read_in_the_order_of_its_numbers(rag, folder):
    code, out, err = rag("history", folder, "--format", "json")
    assert (code, err) == (0, "")
    assert labels(out) == [f"run-{index}.json" for index in range(7, 12)]
    assert json.loads(out)["metrics"][0]["slow"] is True


def test_the_largest_step_of_a_drift_is_a_drop(rag, folder):
    out = " ".join(rag("history", "precision", folder)[1].split())
    assert "slow drift. No single step from one report to the next is significant; the largest drop is 0.067." in out


def test_a_significant_change_whose_interval_contains_0_is_explained(rag, tmp_path):
    gold = [
        {"qid": f"Q{n}", "question": "?", "answerable": True, "gold_claim_substr": [], "gold_citations": ["a", "b"]}
        for n in range(9)
    ]
    for name, ids in (("1", ["a", "b"]), ("2", ["a"])):
        rows = [{"qid": f"Q{n}", "q": "?", "retrieved_ids": ids, "answer": "x"} for n in range(9)]
        (tmp_path / f"{name}.json").write_text(json.dumps(score(gold, rows).to_dict()), "utf-8")
    out = " ".join(rag("history", "recall@5", tmp_path)[1].split())
    assert "recall@5: significant, although the interval, which assumes nothing about the scores" in out


@pytest.mark.parametrize("form", FORMS)
def test_every_form_names_every_report(rag, folder, form):
    code, out, err = rag("history", "precision", folder, "--format", form)
    assert (code, err) == (0, "")
    assert [name for name in (f"run-{index}.json" for index in range(7, 12)) if name not in out] == []


def test_the_newest_alone(rag, folder):
    assert labels(rag("history", folder, "--last", "2", "--format", "json")[1]) == ["run-10.json", "run-11.json"]


def test_reports_in_folders_of_their_own_and_compressed_ones_are_read(rag, folder, scored):
    (folder / "run-12").mkdir()
    (folder / "run-12" / "report.json").write_text(scored(3))
    (folder / "run-13.json.gz").write_bytes(gzip.compress(scored(3).encode()))
    assert labels(rag("history", folder, "--format", "json")[1])[-2:] == ["run-12/report.json", "run-13.json.gz"]


def test_what_is_no_report_is_said_and_the_rest_is_shown(rag, folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("out") / "secret.json"
    outside.write_text("{}")
    (folder / "broken.json").write_text("{")
    (folder / "empty.json").write_text("")
    (folder / "other.json").write_text('{"a": 1}')
    (folder / "binary.json").write_bytes(b"\x00\xff")
    (folder / "link.json").symlink_to(outside)
    (folder / "folder.json").mkdir()
    (folder / "²-9.json").write_text("[]")
    (folder / "notes.txt").write_text("hello")
    code, out, err = rag("history", folder, "--format", "json")
    assert (code, len(labels(out))) == (0, 5)
    output = err.splitlines()
    for name in ("broken.json", "empty.json", "other.json", "binary.json", "link.json", "folder.json", "²-9.json"):
        assert sum(line.startswith(f"left out: {name}:") for line in output) == 1, name
    assert any("'notes.txt'" in line for line in output)
    assert len(output) == 8


def test_a_report_whose_scores_no_metric_gives_is_left_out(rag, folder, scored):
    value = json.loads(scored(0))
    value["questions"][3]["scores"]["mrr"] = -1e300
    (folder / "run-12.json").write_text(json.dumps(value))
    code, out, err = rag("history", folder, "--format", "json")
    assert (code, len(labels(out)), len(err.splitlines())) == (0, 5, 1)
    assert err.startswith("left out: run-12.json: 'Q03' has an impossible score: 'mrr' cannot be -1e+300")


def test_a_folder_without_reports_ends_with_2(rag, tmp_path):
    (tmp_path / "other.json").write_text("{}")
    code, out, err = rag("history", tmp_path)
    assert (code, out) == (2, "")
    assert "left out: other.json:" in err
    assert "there are no reports" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["history"], "Name a folder"),
        (["history", ".", "precision"], ". is a path, not a metric. Name one folder, after the metrics"),
        (["history", "nowhere"], "cannot be listed: no such file"),
        (["history", "precison", "."], "Did you mean 'precision'?"),
        (["history", "--ref", "main"], "must be used together"),
        (["history", ".", "--file", "x.json"], "must be used together"),
        (["history", ".", "--last", "0"], "not a whole number from 1"),
        (["history", ".", "--last", "9" * 5000], "not a whole number from 1"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_says_why(rag, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    code, out, err = rag(*words)
    assert (code, out) == (2, "")
    assert said in err


def test_a_metric_may_have_the_name_of_a_folder(rag, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precision").mkdir()
    code, out, _ = rag("history", "precision", folder, "--format", "json")
    assert (code, [load["metric"] for load in json.loads(out)["metrics"]]) == (0, ["precision"])


def test_a_metric_that_no_report_holds_is_said(rag, folder):
    code, out, err = rag("history", "recall@77", "precision", folder, "--format", "json")
    assert (code, err) == (0, "no report has a value for recall@77\n")
    assert [load["metric"] for load in json.loads(out)["metrics"]] == ["precision"]


def test_a_name_that_is_no_utf_8_is_shown_with_a_mark(rag, folder, scored):
    with open(bytes(folder) + b"/run-\xff.json", "w") as file:
        file.write(scored(1))
    assert "run-\ufffd.json" in labels(rag("history", folder, "--format", "json")[1])


def test_the_trend_shown_in_the_docs_is_that_of_such_runs(rag, tmp_path, scored):
    for day, wrong in enumerate((0, 2, 4, 6, 8), 1):
        (tmp_path / f"2026-11-0{day}.json").write_text(scored(wrong))
    page = (ROOT / "docs" / "history.md").read_text("utf-8")
    [shown] = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert rag("history", tmp_path, "--format", "table")[1] == shown


# Git


@pytest.fixture
def repo(tmp_path, monkeypatch, scored):
    """A baseline that grows worse in five commits of main, beside commits that do not touch it."""
    apart(monkeypatch)
    repo = Repo.create(tmp_path / "repo", None)
    for index, wrong in enumerate((0, 2, 4, 6, 8)):
        repo.write("eval/base line.json", scored(wrong))
        repo.write("other.txt", str(index))
        repo.git("add", ".")
        repo.commit(f"run {index}")
        repo.git("commit", "-q", "--allow-empty", "-m", "nothing")
    monkeypatch.chdir(repo.path)
    return repo


def git_history(rag, *more, ref="main", file="eval/base line.json"):
    return rag("history", "precision", "--ref", ref, "--file", file, "--format", "json", *more)


def commits(repo):
    entries = repo.git("log", "--reverse", "--format=%H", "--", "eval/base line.json")
    return [line[:12] for line in entries.splitlines()]


def test_a_committed_report_is_read_in_every_commit_that_touches_it(rag, repo):
    code, out, err = git_history(rag)
    assert (code, err) == (0, "")
    assert labels(out) == commits(repo)
    [series] = json.loads(out)["metrics"]
    assert [reading["value"] for reading in series["readings"]] == pytest.approx([1 - n / 30 for n in (0, 2, 4, 6, 8)])
    assert series["slow"] is True


def test_paths_are_relative_to_the_current_folder(rag, repo, monkeypatch):
    monkeypatch.chdir(repo.path / "eval")
    assert labels(git_history(rag, file="base line.json")[1]) == commits(repo)


def test_nothing_of_the_work_tree_is_read(rag, repo):
    before = git_history(rag)
    repo.write("eval/base line.json", "garbage")
    assert git_history(rag) == before


def test_merged_branches_count_once_where_they_were_merged(rag, repo, scored):
    before = commits(repo)
    repo.git("checkout", "-q", "-b", "side", "main~4")
    for wrong in (9, 10, 11):
        repo.write("eval/base line.json", scored(wrong))
        repo.git("commit", "-qam", f"side {wrong}")
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "-X", "theirs", "-m", "merge", "side")
    code, out, _ = git_history(rag)
    assert (code, labels(out)) == (0, [*before, repo.git("rev-parse", "HEAD")[:12]])


def test_a_commit_that_removes_the_file_and_one_that_breaks_it_are_said(rag, repo, scored):
    repo.git("rm", "-q", "eval/base line.json")
    repo.commit("gone")
    gone = repo.git("rev-parse", "HEAD")[:12]
    repo.write("eval/base line.json", "{")
    repo.git("add", ".")
    repo.commit("broken")
    broken = repo.git("rev-parse", "HEAD")[:12]
    code, out, err = git_history(rag)
    assert (code, len(labels(out))) == (0, 5)
    assert err.splitlines()[0] == f"'eval/base line.json' is not in {gone}"
    assert err.splitlines()[1].startswith(f"left out: {broken}:1: ")
    assert git_history(rag, "--quiet")[2] == ""


def test_a_link_in_the_place_of_the_file_is_no_report(rag, repo):
    (repo.path / "eval" / "base line.json").unlink()
    (repo.path / "eval" / "base line.json").symlink_to("../other.json")
    repo.git("add", ".")
    repo.commit("link")
    code, out, err = git_history(rag)
    assert (code, len(labels(out)), err.count("left out: ")) == (0, 5, 1)


@pytest.mark.parametrize(
    ("ref", "file", "said"),
    [
        ("nowhere", "eval/base line.json", "'nowhere' names no commit here"),
        ("--upload-pack=x", "eval/base line.json", "names no commit here"),
        ("main", "eval/*.json", "touches 'eval/*.json'"),
        ("main", "../outside.json", "git rev-list failed"),
        ("main", "eval/base\nline.json", "line break"),
        ("main", "eval", "there are no reports"),
    ],
)
def test_what_git_does_not_have_ends_with_2(rag, repo, ref, file, said):
    code, out, err = rag("history", f"--ref={ref}", f"--file={file}")
    assert (code, out) == (2, "")
    assert said in err


def test_a_shallow_clone_says_that_there_may_be_more(rag, repo, tmp_path, monkeypatch):
    repo.git("clone", "-q", "--depth", "3", f"file://{repo.path}", str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    code, _, err = git_history(rag, ref="HEAD")
    assert code == 0
    assert "this clone is shallow" in err


def test_outside_of_a_repository_it_ends_with_2(rag, tmp_path, monkeypatch):
    apart(monkeypatch)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    code, _, err = git_history(rag)
    assert (code, "Run it inside the repository" in err) == (2, True)


# --- the same question elsewhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wrong", "p"), [(5, 0.0625), (6, 0.03125)])
def test_compare_prints_the_same_p_and_a_gate_the_half_of_it(scored, tmp_path, capsys, wrong, p):
    """Of two directions the test of a gate asks for one."""
    paths = [tmp_path / name for name in ("1.json", "2.json")]
    for path, text in zip(paths, (scored(0), scored(wrong)), strict=True):
        path.write_text(text, "utf-8")
    assert main(["history", str(tmp_path), "--format", "json"]) == 0
    trend = json.loads(capsys.readouterr().out)["metrics"][0]["oldest"]
    assert main(["compare", *map(str, paths), "--format", "json"]) == 0
    against = json.loads(capsys.readouterr().out)["metrics"][0]["cells"][1]["against"]
    assert (trend["p"], trend["result"]) == (against["adjusted"], against["result"])
    assert against["adjusted"] == p
    assert against["result"] == ("worse" if p <= 0.05 else "not significant")
    (tmp_path / "gates.yml").write_text("version: 1\nk: 1\ngates: {precision: {max_drop: 0.02}}\n")
    files = write_rows(tmp_path / "gold.jsonl", golds()), write_rows(tmp_path / "t.jsonl", traces(wrong))
    report = run(Options(*map(str, files), str(tmp_path / "gates.yml"), cutoffs=(1,), baseline=str(paths[0])))
    assert report.gates[0].comparison.p == p / 2
