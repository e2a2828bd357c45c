import json
import re
from decimal import Decimal

import pytest
from msgspec.structs import astuple

from rag_eval.gates import REFERENCE_GATES
from rag_eval.readers.source import MIB
from reading import SCHEMAS, put, reader
from seams import (
    Grounding,
    ProblemCollector,
    Safety,
    Slices,
    Statistics,
    measures,
    policy_of,
    read_policy,
    signoff_policy,
)
from table import each_row


def policy(text):
    ledger = ProblemCollector()
    value = policy_of(text if isinstance(text, bytes) else text.encode(), "gates.yml", ledger)
    return value, [str(problem) for problem in ledger.problems]


def accepted(text):
    value, problems = policy(text)
    assert problems == []
    return value


def refused(text):
    value, problems = policy(text)
    assert value is None
    return problems


def gates(text):
    return "version: 1\ngates:\n  " + text + "\n"


def slices(text):
    return "version: 1\nslices:\n  " + text + "\n"


FULL = """\
version: 1
gold: labels/gold.jsonl
trace: traces/run.jsonl
k: 3
refusal:
  token: " Not Here "
  phrases: ["I cannot Answer"]
  builtin: true
completeness: {missing: 1, duplicate: 2}
integrity: {padded-citations: warning, stale-traces: "off"}
signoff: {dataset: 7b0c4e, gold: labels/gold.jsonl, records: labels/signoff, require: record}
must_pass: [A0001, "tags=critical"]
baseline: {report: labels/baseline.json, trace: labels/baseline.jsonl}
statistics: {alpha: 0.010, correction: none, inconclusive: fail, test: none}
limits: {line_mib: 1, depth: 32, lines: 100, whole_mib: 2, expanded_mib: 3}
gates:
  precision: {min: 0.80}
  over_refusal: {max: .1, severity: warning}
  recall_all@5: {min: 1, when_no_data: skip}
  chr: {min: 0.75, max_drop: 0.02, confidence: 0.90, test: none}
slices:
  by: [category, meta.vault]
  min_n: 20
  gates:
    "category=*": {under_refusal: {max_rise: 0.050}}
    "meta.vault=a/b": {mrr: {min: 0.5}}
score: {weights: {accuracy: 0.5}, budgets: {cost_usd: 0.01}}
groundedness: {assertion: 0.7}
safety: {warn: 0.3, verbatim_words: 20, internal_ids: ["EMP-[0-9]{6}"]}
prices: {small-1: {input: 0.15, output: 1}}
retrieval: {relevant_from: 2, no_relevant: zero}
verdicts: labels/verdicts.jsonl
judge: {model: judge-1, prompt: "sha256:0a", rubric: "sha256:0b", floor: {kappa: 0.4}}
"""


def test_every_key_is_read():
    read = accepted(FULL)
    assert (read.gold, read.trace, read.k) == ("labels/gold.jsonl", "traces/run.jsonl", 3)
    assert (read.token, read.phrases, read.builtin) == ("Not Here", ("i cannot answer",), True)
    assert read.completeness == {"missing": 1, "duplicate": 2, "unknown": 0}
    assert read.integrity == {"padded-citations": "warning", "stale-traces": "off"}
    assert read.limits == {"line_mib": 1, "depth": 32, "lines": 100, "whole_mib": 2, "expanded_mib": 3}
    assert (read.must_pass, read.slices) == (("A0001", "tags=critical"), Slices(("category", "meta.vault"), 20))
    assert (read.baseline, read.baseline_trace) == ("labels/baseline.json", "labels/baseline.jsonl")
    assert read.statistics == Statistics("0.010", "none", "fail", "none")
    assert read.retrieval == (2, "zero")
    assert read.fields == ("category", "meta.vault", "tags")
    assert read.settings.groundedness == Grounding(0.7, Grounding().inference)
    assert read.settings.safety == Safety(0.3, Safety().block, 20, ("EMP-[0-9]{6}",))
    assert read.settings.prices == {"small-1": {"input": 0.15, "output": 1.0}}
    assert (read.verdicts, read.judge) == ("labels/verdicts.jsonl", ("judge-1", "sha256:0a", "sha256:0b"))
    signed = signoff_policy(FULL.encode(), "gates.yml")
    assert (signed.dataset, signed.gold, signed.records) == ("7b0c4e", "labels/gold.jsonl", "labels/signoff")


def test_the_example_above_holds_every_key_of_the_schema():
    schema = json.loads((SCHEMAS / "eval-gates.schema.json").read_text())
    assert all(f"{name}:" in FULL for name in schema["properties"])


def test_gates_keep_direction_severity_and_line():
    assert [astuple(gate) for gate in accepted(FULL).gates if gate.line < 20] == [
        ("precision", "min", "0.80", "error", "fail", 17, "", "", ""),
        ("over_refusal", "max", "0.1", "warning", "fail", 18, "", "", ""),
        ("recall_all@5", "min", "1", "error", "skip", 19, "", "", ""),
    ]


def test_a_bound_and_a_margin_are_two_gates_and_each_takes_what_is_its_own():
    assert [astuple(gate) for gate in accepted(FULL).gates if gate.line == 20] == [
        ("chr", "min", "0.75", "error", "fail", 20, "", "0.90", ""),
        ("chr", "max_drop", "0.02", "error", "fail", 20, "", "", "none"),
    ]


def test_gates_on_slices_come_last_with_their_slice():
    assert [astuple(gate) for gate in accepted(FULL).gates if gate.slice] == [
        ("under_refusal", "max_rise", "0.050", "error", "fail", 25, "category=*", "", ""),
        ("mrr", "min", "0.5", "error", "fail", 26, "meta.vault=a/b", "", ""),
    ]


def test_paths_are_those_beside_the_file(tmp_path):
    path = put(tmp_path, b"version: 1\nbaseline: {report: old/report.json, trace: ../t.jsonl}\n")
    read = read_policy(reader(), path)
    folder = path.rpartition("/")[0]
    assert (read.baseline, read.baseline_trace) == (f"{folder}/old/report.json", f"{folder.rpartition('/')[0]}/t.jsonl")


@pytest.mark.parametrize("written", ["0.80", "0.8", "0.800", "1", "0", "1.0", "0.0000001", "0.333333333333333333333"])
def test_a_threshold_stays_as_it_is_written(written):
    gate = accepted(gates(f"precision: {{min: {written}}}")).gates[0]
    assert gate.threshold == written
    assert gate.keeps(float(Decimal(written)) + 1)


@pytest.mark.parametrize(
    ("text", "beyond"),
    [
        ("statistics: {alpha: 0.0001}", "0.00009999"),
        ("statistics: {alpha: 0.5}", "0.5001"),
        ("gates: {chr: {min: 0.8, confidence: 0.9999}}", "0.99990001"),
        ("gates: {chr: {min: 0.8, confidence: 0.5}}", "0.4999"),
        ("score: {budgets: {cost_usd: 0.000001}}", "0.0000009"),
    ],
)
def test_a_number_may_be_the_bound_that_the_schema_names(text, beyond):
    accepted(f"version: 1\n{text}\n")
    number = re.search(r"(0\.[0-9]+)}+$", text)[1]
    assert "than" in str(refused(f"version: 1\n{text.replace(number, beyond)}\n"))


def test_a_threshold_is_compared_exactly_not_as_the_nearest_float():
    from fractions import Fraction

    gate = accepted(gates("precision: {min: 0.80}")).gates[0]
    assert gate.keeps(Fraction(4, 5))
    assert not gate.keeps(Fraction(4, 5) - Fraction(1, 10**30))


@each_row("measure", measures((7,)), ids=lambda entry: entry.name)
def test_every_value_can_be_gated_on_its_own_side(measure):
    bound = "min" if measure.metric.better == "higher" else "max"
    assert accepted(gates(f"{measure.name}: {{{bound}: 0.5}}")).gates[0].direction == bound


@each_row("measure", measures((7,)), ids=lambda entry: entry.name)
def test_no_value_can_be_gated_on_its_wrong_side(measure):
    wrong, right = ("max", "min") if measure.metric.better == "higher" else ("min", "max")
    problems = refused(gates(f"{measure.name}: {{{wrong}: 0.5}}"))
    assert any(f"'{wrong}' on " in problem and f"Use '{right}'." in problem for problem in problems)


def test_a_metric_of_which_only_folds_have_values_is_not_gated_by_its_bare_name():
    assert "Did you mean 'injection_tpr@fpr" in refused(gates("injection_tpr: {min: 0.5}"))[0]


@pytest.mark.parametrize(
    "name",
    [
        "recall@0",
        "recall",
        "recall@",
        "recall@05",
        "recall@1.5",
        "recall@-1",
        "precision@",
        "recall@1000000",
        '"recall@5\\n"',
        "recall@٣",
        "mrr@5",
        "presicion",
        "''",
    ],
)
def test_a_metric_that_is_none_is_refused_by_name(name):
    problems = refused(gates(f"{name}: {{min: 0.5}}"))
    assert len(problems) == 1
    assert "unknown metric" in problems[0]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("presicion", "precision"), ("recall", "recall@5"), ("recall@0", "recall@5"), ("underrefusal", "under_refusal")],
)
def test_an_unknown_metric_gets_the_one_that_was_meant(name, meant):
    assert f"Did you mean '{meant}'?" in refused(gates(f"{name}: {{min: 0.5}}"))[0]


def test_a_metric_like_no_other_gets_the_command_that_lists_them():
    assert "rag-eval metrics" in refused(gates("zzzzzz: {min: 0.5}"))[0]


@pytest.mark.parametrize("wrong", ["5", "true", '"x"', "[]", "{}"])
def test_what_a_problem_of_any_key_says_to_write_is_accepted(wrong):
    keys = json.loads((SCHEMAS / "eval-gates.schema.json").read_text())["properties"].keys() - {"version"}
    problems = [problem for key in sorted(keys) for problem in policy(f"version: 1\n{key}: {wrong}\n")[1]]
    examples = [example for problem in problems for example in re.findall(r"\. Write (\w+: [^\n]+)$", problem)]
    assert len(examples) >= 3
    for example in examples:
        accepted(f"version: 1\n{example}\n")


def test_all_problems_are_told_not_only_the_first():
    assert len(refused("version: 1\nk: 0\ngold: ''\ngates: {precision: {min: 2}, chr: {min: 3}}\n")) == 4


def test_each_unknown_name_is_told_in_its_own_line_with_what_was_meant():
    names = {
        "presicion": "precision",
        "recal@5": "recall@5",
        "cchr": "chr",
        "mrrr": "mrr",
        "undr_refusal": "under_refusal",
    }
    lines = "".join(f"  {name}: {{min: 0.5}}\n" for name in names)
    problems = refused(f"version: 1\ngates:\n{lines}traec: a\nslises: {{}}\n")
    for line, (name, meant) in enumerate(names.items(), 3):
        message = f"gates.yml:{line}: column 3: /gates/{name}: unknown metric '{name}'. Did you mean '{meant}'?"
        assert message in problems
    assert "gates.yml:8: column 1: /traec: unknown key 'traec'. Did you mean 'trace'?" in problems
    assert "gates.yml:9: column 1: /slises: unknown key 'slises'. Did you mean 'slices'?" in problems
    assert len(problems) == len(names) + 2


def test_a_metric_that_is_no_gate_at_this_place_is_not_called_unknown():
    problems = refused(gates("recall@5: {min: 0.5, maks: 1, sevrity: error}"))
    assert [problem.split(": ", 3)[2] for problem in problems] == ["/gates/recall@5/maks", "/gates/recall@5/sevrity"]


@pytest.mark.parametrize("text", ["k: 5.0", "limits: {depth: 64.0}", "completeness: {missing: 0.0}"])
def test_a_whole_number_with_a_point_is_a_whole_number(text):
    read = accepted(f"version: 1\n{text}\n")
    assert all(type(number) is int for number in (read.k, *read.limits.values(), *read.completeness.values()))


def test_the_least_file_leaves_everything_at_its_default():
    read = accepted("version: 1\n")
    assert (read.gold, read.trace, read.k, read.gates) == ("eval/gold.jsonl", "runs/trace.jsonl", 5, REFERENCE_GATES)


def test_a_byte_order_mark_is_accepted(tmp_path):
    result = reader()
    assert read_policy(result, put(tmp_path, b"\xef\xbb\xbfversion: 1\n")) is not None
    assert result.ledger.count == 0


@pytest.mark.parametrize(("size", "fits"), [(MIB, True), (MIB + 1, False)])
def test_a_file_of_more_than_one_mebibyte_is_refused(tmp_path, size, fits):
    data = b"version: 1\n".ljust(size, b"#")
    result = reader()
    assert (read_policy(result, put(tmp_path, data)) is not None) is fits
    assert (policy_of(data, "gates.yml", ProblemCollector()) is not None) is fits
    assert result.ledger.count == (not fits)
    assert {problem.hint for problem in result.ledger.problems} <= {"A gates file is short: check the path."}


def test_a_bound_on_the_wrong_side_is_one_problem():
    _, problems = policy("version: 1\ngates: {under_refusal: {min: 0.1}}\n")
    assert [problem.split(": ", 3)[3] for problem in problems] == [
        "'min' on under_refusal, for which lower is better. Use 'max'."
    ]


def test_what_a_key_says_hides_no_other_problem():
    _, problems = policy('version: 1\ngates: {precision: {", of which x": 1}}\n')
    assert [problem.split(": ", 3)[3].partition(".")[0] for problem in problems] == [
        "one of 'max_drop', 'min' is required",
        "unknown key ', of which x'",
    ]


def test_a_threshold_that_no_report_could_hold_is_refused():
    _, problems = policy(f"version: 1\ngates: {{precision: {{min: 0.{'1' * 50}}}}}\n")
    assert len(problems) == 1
    assert "a threshold of more than 40 characters" in problems[0]


@pytest.mark.parametrize("word", ["warn", "on", "2", "[error]", "{a: 1}", "''", "null", "yes", "1.5"])
def test_an_unknown_level_of_an_integrity_check_is_refused(word):
    [output] = refused(f"version: 1\nintegrity: {{padded-answers: {word}}}\n")
    assert output.startswith("gates.yml:2: column 13: /integrity/padded-answers: ")
    assert "is not one of 'error', 'warning', 'off', false" in output
