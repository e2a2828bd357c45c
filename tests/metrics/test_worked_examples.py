"""Every metric's worked examples, which docs/metrics/ shows, come out as they say."""

import json

import pytest

from cases import EXAMPLES, ROOT, example_rows, gold_row, subject, trace_row
from rag_eval.metrics._metric import Measure
from rag_eval.rendering.explanation import metric_lines
from seams import METRICS, Contract
from table import each_row

GOLD, TRACE, RUN = Contract("gold"), Contract("trace"), Contract("run")
ROWS = [(name, row) for name in METRICS if (EXAMPLES / f"{name}.jsonl").exists() for row in example_rows(name)]
NAMED = each_row(("name", "row"), ROWS, ids=[f"{name}-{row['because'][:50]}" for name, row in ROWS])


def test_every_metric_has_its_file_of_examples_and_every_file_its_metric():
    assert {path.stem for path in EXAMPLES.glob("*.jsonl")} == set(METRICS)


@NAMED
def test_example_scores_as_it_says(name, row):
    score = Measure(name, METRICS[name], row.get("k")).score(subject(row))
    expected = tuple(row["score"]) if isinstance(row["score"], list) else row["score"]
    assert type(score) is type(expected)
    assert score == (pytest.approx(expected, abs=5e-6) if isinstance(expected, float) else expected)


@each_row("name", METRICS)
def test_examples_show_a_case_that_counts_and_one_that_does_not(name):
    assert {row["score"] is None for row in example_rows(name)} == {True, False}


@each_row("name", [name for name, metric in METRICS.items() if metric.scale == "rate"])
def test_examples_of_a_rate_show_both_of_its_scores(name):
    assert {row["score"] for row in example_rows(name)} >= {True, False}


@each_row("name", METRICS)
def test_examples_say_k_where_the_metric_has_one_and_only_there(name):
    assert {"k" in row for row in example_rows(name)} == {METRICS[name].cutoff}


@each_row("name", METRICS)
def test_examples_of_a_metric_tell_different_stories(name):
    stories = [row["because"] for row in example_rows(name)]
    assert len(stories) == len(set(stories))


@NAMED
def test_example_rows_keep_the_contract(name, row):
    if "run" in row:
        assert list(RUN.faults(row["run"])) == []
        return
    assert list(GOLD.faults(gold_row(**row["gold"]))) == []
    assert row["trace"] is None or list(TRACE.faults(trace_row(**row["trace"]))) == []


@NAMED
def test_example_reads_as_the_end_of_a_sentence(name, row):
    assert row["because"] == row["because"].strip().rstrip(".")
    assert row["because"][0].islower() or not row["because"][0].isalpha()


def page_of(group):
    """Return the page that defines the metrics of a group: docs/GROUP.md, or docs/metrics/GROUP.md."""
    [page] = [
        page
        for page in (ROOT / "docs" / f"{group}.md", ROOT / "docs" / "metrics" / f"{group}.md")
        if page.exists() and "- **applies to**: " in page.read_text(encoding="utf-8")
    ]
    return page


@each_row("name", METRICS)
def test_explain_and_docs_tell_the_same_examples(name):
    page = page_of(METRICS[name].perspective).read_text(encoding="utf-8")
    lines = list(metric_lines(METRICS[name]))
    for row in example_rows(name):
        ours = [line for line in lines if line.endswith(f" when {row['because']}")]
        assert len(ours) == 1
        assert f"- {ours[0].strip()}." in page.replace("*", "")


@each_row("name", METRICS)
def test_the_first_example_with_a_score_is_shown_with_its_rows(name):
    first = next(row for row in example_rows(name) if row["score"] is not None)
    shown = dict(line.split(None, 1) for line in metric_lines(METRICS[name]) if line.endswith("}") and line[:2] == "  ")
    assert {key: json.loads(value) for key, value in shown.items()} == {
        key: first[key] for key in ("gold", "trace", "run", "settings") if key in first
    }


def test_the_overview_links_to_every_metric():
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    pages = {
        name: page_of(metric.perspective).relative_to(ROOT / "docs").as_posix() for name, metric in METRICS.items()
    }
    assert [name for name, link in pages.items() if f"[`{name}`]({link}#" not in page] == []
