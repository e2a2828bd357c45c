"""Metrics of a report by metric group, and the note on those without data."""

from __future__ import annotations

import re

import pytest

from cases import gold_row, trace_row, write_rows
from rag_eval import api
from rag_eval.metrics import column_of
from rag_eval.rendering import results
from rag_eval.rendering.document import PLAIN
from seams import METRICS, PERSPECTIVES, MetricResult, measure, render

ANSWER = {"claim": "30 days", "citations": ["a"]}


def scored(folder, gold=None, trace=None):
    golds = [gold_row(qid="Q1", gold_citations=["a"], gold_claim_substr=["30 days"], **(gold or {}))]
    traces = [trace_row(qid="Q1", retrieved_ids=["a"], answer_json=ANSWER, **(trace or {}))]
    return api.score(write_rows(folder / "gold.jsonl", golds), write_rows(folder / "trace.jsonl", traces))


def without_value(report):
    valued = {measure(name).metric.name for name, result in report.metrics.items() if result.n}
    return [name for name, metric in METRICS.items() if name not in valued and metric.perspective != "judge"]


def test_every_metric_with_a_value_is_listed_under_its_group(tmp_path):
    report = scored(tmp_path)
    text = render(report, "markdown").partition("All metrics")[2].partition("</details>")[0]
    parts = re.split(r"^\*\*(\w+)\*\*: ", text, flags=re.MULTILINE)[1:]
    groups = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(groups) == [group.title for group in results.by_group(report, PLAIN)]
    for name, result in report.metrics.items():
        ours = (
            name.partition("@")[0]
            if measure(name).k
            else name
            if len(measure(name).metric.folds) < 3
            else column_of(name)
        )
        shown = f"| `{ours}`"
        assert not result.n or shown in groups[result.perspective.capitalize()]


def test_a_section_describes_its_metric_group(tmp_path):
    text = render(scored(tmp_path), "markdown")
    assert [name for name in ("answers", "citations", "retrieval") if PERSPECTIVES[name] not in text] == []


def test_metrics_without_data_are_counted(tmp_path):
    report = scored(tmp_path)
    assert results.without_cases(report).startswith(f"No data for {len(without_value(report))} metrics; ")
    one = report._replace(metrics={"under_refusal": report.metrics["under_refusal"]})
    assert results.without_cases(one) == "No data for 1 metric; rag-eval metrics lists the fields that it needs."


def test_a_report_whose_metrics_all_have_values_names_no_missing_fields(tmp_path):
    report = scored(tmp_path)
    valued = {name: result for name, result in report.metrics.items() if result.n}
    assert results.without_cases(report._replace(metrics=valued)) == ""
    assert "*(empty)*" not in render(report._replace(metrics=valued), "markdown")


@pytest.mark.parametrize(("cutoffs", "said"), [(20, []), (21, ["… and 1 more"]), (22, ["… and 2 more"])])
def test_of_many_cutoffs_the_first_twenty_have_a_column(tmp_path, cutoffs, said):
    report = scored(tmp_path)
    metrics = {f"recall@{k}": report.metrics["recall@1"] for k in range(1, cutoffs + 1)}
    [group] = results.by_group(report._replace(metrics=metrics), PLAIN)
    [table] = group.tables
    columns = [f"@{k}" for k in range(1, 21)]
    assert table.headers == ["Metric", *columns, *said, "Cases", "Better"]
    assert {len(row) for row in table.rows} == {len(table.headers)}


@pytest.mark.parametrize(
    ("name", "whole", "part", "shade"),
    [
        ("precision", 0.5, 0.52, None),
        ("precision", 0.5, 0.56, "better1"),
        ("precision", 0.5, 0.1, "worse3"),
        ("cost_usd", 0.005, 0.006, "worse2"),  # an amount, by its ratio
        ("cost_usd", 0.0, 0.006, None),
        ("latency_total_ms.p50", 100, 60, "better3"),
        ("latency_total_ms.max", 100, 60, None),  # a part has never a larger maximum or sum
        ("cost_usd.total", 0.05, 0.01, None),
        ("precision", 0.5, None, None),
    ],
)
def test_a_slice_is_shaded_by_its_distance_from_all_cases(name, whole, part, shade):
    better = measure(name).metric.better
    values = [MetricResult(value, 9, None, None, better, "") for value in (part, whole)]
    assert results.shade(name, *values) == shade


def test_a_gate_without_data_hides_no_value(tmp_path):
    gates = tmp_path / "eval-gates.yml"
    gates.write_text("version: 1\ngates:\n  precision: {max_drop: 0.02}\n", encoding="utf-8")
    golds = [gold_row(qid="Q1", gold_citations=["a"], gold_claim_substr=["30 days"])]
    traces = [trace_row(qid="Q1", retrieved_ids=["a"], answer_json=ANSWER)]
    files = (write_rows(tmp_path / "gold.jsonl", golds), write_rows(tmp_path / "trace.jsonl", traces))
    rows = [
        line for line in render(api.score(*files, gates), "markdown").splitlines() if line.startswith("| `precision`")
    ]
    assert ["0 " in rows[0], "1.000" in rows[1]] == [True, True]
