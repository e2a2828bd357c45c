"""examples/perspectives: a small data set in which every metric there is has a value."""

import json

import pytest

from cases import ROOT
from rag_eval.api import Options, run
from rag_eval.contract import OPTIONAL
from rag_eval.gates.selection import FIELDS, slices_of
from seams import METRICS, Gold, Trace, measures
from table import each_row

EXAMPLE = ROOT / "examples" / "perspectives"


def rows(name):
    return [json.loads(line) for line in (EXAMPLE / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def report():
    return run(Options(*(str(EXAMPLE / name) for name in ("gold.jsonl", "trace.jsonl", "eval-gates.yml"))))


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_a_value(report, name):
    folds = [measure.name for measure in measures((1, 3, 5)) if measure.metric.name == name]
    assert [fold for fold in folds if report.metrics[fold].value is None] == []


def test_every_gate_of_the_example_passes_on_data(report):
    assert [(gate.name, gate.outcome) for gate in report.gates if gate.outcome != "passed"] == []
    assert report.passed


def test_nothing_is_remarkable_about_the_files(report):
    assert (report.findings, report.notes) == ((), ())


@each_row("field", OPTIONAL)
def test_an_optional_field_that_metrics_need_is_in_use(field):
    noun, attribute = OPTIONAL[field].split(".")
    golds = [Gold.from_row(row, 1) for row in rows("gold.jsonl")]
    traces = [Trace.from_row(row, row["qid"], 1) for row in rows("trace.jsonl")]
    result = {"gold": golds, "trace": traces}[noun]
    assert [item for item in result if getattr(item, attribute) is not None] != []


def test_every_field_that_slices_go_by_is_in_use():
    result = [name for row in rows("gold.jsonl") for name in slices_of(Gold.from_row(row, 1), FIELDS)]
    assert {name.partition("=")[0] for name in result} == set(FIELDS)
