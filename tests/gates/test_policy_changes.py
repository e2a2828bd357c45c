"""Every change of a gates file has a direction, and what it would let through is named and nothing else."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import ROOT
from rag_eval.analysis.policy_changes import RULES, PolicyEffects, changes, classify
from runs import evidence, questions, result
from seams import Completeness, Gate, Policy, ProblemCollector, RunEvidence, Value, judge, judge_all, measure, policy_of
from table import each_row

SCHEMA = json.loads((ROOT / "schemas" / "eval-gates.schema.json").read_text("utf-8"))
BOTH_WAYS = "looser", "looser"  # what cannot be told counts as looser, there and back

# A rule's key: old value, new value, kind of that change, kind of the change back.
EXAMPLES = {
    "version": [(1, 2, "neutral", "neutral")],
    "gold": [("eval/gold.jsonl", "eval/easy.jsonl", *BOTH_WAYS)],
    "trace": [("runs/trace.jsonl", "runs/best.jsonl", *BOTH_WAYS)],
    "k": [(5, 10, *BOTH_WAYS)],
    "refusal/token": [("not in context", "no", *BOTH_WAYS)],
    "refusal/phrases": [([], ["i cannot say"], *BOTH_WAYS)],
    "refusal/builtin": [(False, True, *BOTH_WAYS)],
    "groundedness": [(None, {"assertion": Decimal("0.7")}, *BOTH_WAYS)],
    "groundedness/assertion": [(Decimal("0.8"), Decimal("0.7"), *BOTH_WAYS)],
    "groundedness/model/sha256": [("0" * 64, "1" * 64, *BOTH_WAYS)],
    "safety": [(None, {"warn": Decimal("0.3")}, *BOTH_WAYS)],
    "safety/internal_ids": [([], ["EMP-[0-9]+"], *BOTH_WAYS)],
    "verdicts": [("eval/verdicts.jsonl", "eval/kinder.jsonl", *BOTH_WAYS)],
    "judge": [(None, {"model": "judge-1", "prompt": "sha256:0a", "rubric": "sha256:0b"}, *BOTH_WAYS)],
    "judge/model": [("judge-1", "judge-2", *BOTH_WAYS)],
    "judge/floor/kappa": [(Decimal("0.6"), Decimal("0.4"), *BOTH_WAYS)],
    "prices": [(None, {"small-1": {"input": 1, "output": 2}}, *BOTH_WAYS)],
    "prices/small-1/input": [(1, 2, *BOTH_WAYS)],
    "gates/precision": [({"min": Decimal("0.8")}, None, "looser", "stricter")],
    "gates/precision/min": [(Decimal("0.8"), Decimal("0.79"), "looser", "stricter")],
    "gates/under_refusal/max": [(Decimal("0.05"), Decimal("0.06"), "looser", "stricter")],
    "gates/precision/severity": [("error", "warning", "looser", "stricter")],
    "gates/precision/when_no_data": [("fail", "skip", "looser", "stricter")],
    "gates/precision/max_drop": [
        (Decimal("0.02"), Decimal("0.05"), "looser", "stricter"),
        (Decimal("0.02"), None, "looser", "stricter"),
    ],
    "gates/under_refusal/max_rise": [(Decimal("0.02"), Decimal("0.05"), "looser", "stricter")],
    "gates/precision/confidence": [(Decimal("0.95"), None, *BOTH_WAYS), (Decimal("0.90"), Decimal("0.95"), *BOTH_WAYS)],
    "gates/precision/test": [
        ("none", "regression", "looser", "stricter"),
        ("non_inferiority", "none", "looser", "stricter"),
        ("non_inferiority", None, "looser", "stricter"),
        (None, "none", "stricter", "looser"),
        (None, "regression", *BOTH_WAYS),
    ],
    "slices": [({"by": ["category"]}, None, "looser", "stricter")],
    "slices/by": [(["category", "tags"], ["tags"], "looser", "stricter"), (["tags"], ["category"], *BOTH_WAYS)],
    "slices/min_n": [(10, 20, "looser", "stricter")],
    "slices/gates": [({"category=a": {"chr": {"min": Decimal(1)}}}, None, "looser", "stricter")],
    "slices/gates/category=a": [({"chr": {"min": Decimal(1)}}, None, "looser", "stricter")],
    "slices/gates/category=a/chr/min": [(Decimal("0.8"), Decimal("0.7"), "looser", "stricter")],
    "must_pass": [(["A1", "A2"], ["A1"], "looser", "stricter"), (["A1"], ["A2"], *BOTH_WAYS)],
    "baseline": [({"report": "a.json"}, None, "looser", "stricter")],
    "baseline/report": [("a.json", "b.json", *BOTH_WAYS)],
    "score": [({"weights": {"accuracy": Decimal(1)}}, None, *BOTH_WAYS)],
    "score/weights/accuracy": [(Decimal("0.3"), Decimal("0.4"), *BOTH_WAYS)],
    "retrieval": [({"relevant_from": 2}, None, *BOTH_WAYS)],
    "retrieval/relevant_from": [(1, 2, *BOTH_WAYS)],
    "statistics/alpha": [(Decimal("0.05"), Decimal("0.01"), "looser", "stricter")],
    "statistics/correction": [("none", "holm", "looser", "stricter")],
    "statistics/inconclusive": [("fail", "warn", "looser", "stricter"), ("warn", "pass", "looser", "stricter")],
    "statistics/test": [
        ("none", "regression", "looser", "stricter"),
        ("non_inferiority", "none", "looser", "stricter"),
    ],
    "statistics/cluster": [("meta.page", None, *BOTH_WAYS), ("meta.page", "document", *BOTH_WAYS)],
    "completeness/missing": [(0, 1, "looser", "stricter")],
    "integrity/padded-citations": [
        ("error", "warning", "looser", "stricter"),
        ("warning", "off", "looser", "stricter"),
        ("error", "off", "looser", "stricter"),
    ],
    "signoff": [({"require": "record"}, None, "looser", "stricter")],
    "signoff/require": [
        (None, "record", "neutral", "neutral"),
        ("signature", "review", "looser", "stricter"),
        ("review", "record", "looser", "stricter"),
        ("signature", None, "looser", "stricter"),
    ],
    "signoff/four_eyes": [
        (True, False, "looser", "stricter"),
        (True, None, "looser", "stricter"),
        (None, False, "neutral", "neutral"),
    ],
    "signoff/signers": [({"bob@example.org": {"github": "bob"}}, None, "looser", "stricter")],
    "signoff/signers/bob@example.org": [(None, {"github": "bob"}, "looser", "stricter")],
    "signoff/signers/bob@example.org/github": [("bob", "mallory", *BOTH_WAYS)],
    "signoff/records": [("eval/gold.signoff", "eval/other", *BOTH_WAYS)],
    "signoff/dataset": [("7b0c4e", "other", *BOTH_WAYS)],
    "limits": [(None, {"depth": 64}, "looser", "looser")],
    "limits/depth": [(64, 32, "looser", "stricter")],
}


def keys(schema, above=()):
    """Every key that a gates file may hold, with the schema of its value; one metric of each kind stands for all."""
    schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if above:
        yield above, schema
    properties = dict(schema.get("properties", {}))
    properties |= {f"{re.search('[a-z_]+', pattern)[0]}@5": sub for pattern, sub in _patterns(schema)}
    for name, sub in properties.items():
        yield from keys(sub, (*above, name))


def _patterns(schema):
    return schema.get("patternProperties", {}).items()


KEYS = dict(keys(SCHEMA))


def rules_of(key):
    """The rules that a key falls under, the deciding one first."""
    return [pattern for pattern in RULES if _fits(pattern.split("/"), key)]


def _fits(pattern, key):
    if pattern[-1] == "**":
        return len(key) >= len(pattern) and _fits(pattern[:-1], key[: len(pattern) - 1])
    return len(pattern) == len(key) and all(want in ("*", part) for want, part in zip(pattern, key, strict=True))


def kind(key, old, new):
    return classify(tuple(key.split("/")), old, new)


# Sections that are compared key by key, since every file has them when defaults are counted in.
ALWAYS_THERE = {("gates",), ("refusal",), ("completeness",), ("integrity",), ("statistics",)}


@each_row("key", [key for key in KEYS if key not in ALWAYS_THERE], ids="/".join)
def test_every_key_of_the_schema_has_a_rule(key):
    assert rules_of(key) != []


@each_row("pattern", RULES)
def test_every_rule_has_an_example(pattern):
    assert [key for key in EXAMPLES if rules_of(tuple(key.split("/")))[:1] == [pattern]] != []


@each_row("pattern", RULES)
def test_every_rule_is_documented(pattern):
    assert f"`{pattern.replace('/', '.')}`" in (ROOT / "docs" / "base.md").read_text("utf-8")


@each_row(("key", "old", "new", "there", "back"), [(key, *row) for key, rows in EXAMPLES.items() for row in rows])
def test_the_examples_are_classified_there_and_back(key, old, new, there, back):
    assert (kind(key, old, new), kind(key, new, old)) == (there, back)


def test_a_key_that_no_rule_knows_counts_as_looser():
    assert classify(("made", "up"), 1, 2) == "looser"


# --- laws over all files that the schema takes -----------------------------------------------------------------------


def values(schema):
    """Values that a part of the schema takes, few enough to meet again."""
    if "$ref" in schema:
        return values(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    plain = {
        "integer": st.integers(1, 3).map(Decimal),
        "number": st.sampled_from([Decimal(text) for text in ("0", "0.5", "0.50", "0.8", "1")]),
        "string": st.sampled_from(["one", "two"]),
        "boolean": st.booleans(),
        "array": st.lists(st.sampled_from(["one phrase", "two phrases"]), max_size=2, unique=True),
    }
    return plain[schema["type"]] if schema["type"] in plain else objects(schema)


def objects(schema):
    properties = {name: values(sub) for name, sub in schema.get("properties", {}).items()}
    needed = {name: properties.pop(name) for name in schema.get("required", [])}
    few = st.sets(st.sampled_from(sorted(properties)), max_size=4) if properties else st.just(set())
    made = few.flatmap(lambda names: st.fixed_dictionaries({**needed, **{name: properties[name] for name in names}}))
    return made.filter(bool) if schema.get("minProperties") else made


files = values(SCHEMA)
key_and_values = st.sampled_from(sorted(KEYS)).flatmap(
    lambda key: st.tuples(st.just(key), *(st.none() | values(KEYS[key]) for _ in range(2)))
)


@given(key_and_values)
def test_no_change_is_stricter_there_and_back(drawn):
    key, old, new = drawn
    if old != new and not (isinstance(old, dict) and isinstance(new, dict)):  # those are compared key by key
        there, back = classify(key, old, new), classify(key, new, old)
        assert (there, back) != ("stricter", "stricter")
        assert (there == "neutral") == (back == "neutral")


@given(files)
def test_a_file_beside_itself_has_no_changes(stated):
    assert changes(stated, stated) == []
    assert changes(stated, _reversed(stated)) == []


def _reversed(value):
    if isinstance(value, dict):
        return {name: _reversed(part) for name, part in reversed(value.items())}
    return value


@given(files, files)
def test_the_order_of_keys_does_not_matter(base, head):
    assert changes(_reversed(base), _reversed(head)) == changes(base, head)


@given(files, files)
def test_there_and_back_are_the_same_keys_with_old_and_new_swapped(base, head):
    there = {change.key: (change.old, change.new) for change in changes(base, head)}
    back = {change.key: (change.new, change.old) for change in changes(head, base)}
    assert there == back


@given(files, files)
def test_what_is_shown_as_changed_looks_changed(base, head):
    assert [change for change in changes(base, head) if change.old == change.new] == []


@given(files)
def test_what_is_left_out_is_what_holds_then(stated):
    """Nothing changes when a file says outright what holds without being said."""
    from rag_eval.gates import LEVELS

    output = {
        "gold": "eval/gold.jsonl",
        "trace": "runs/trace.jsonl",
        "k": 5,
        **stated,
        "completeness": {"missing": 0, "duplicate": 0, "unknown": 0, **stated.get("completeness", {})},
        "refusal": {"token": "not in context", "phrases": [], "builtin": False, **stated.get("refusal", {})},
        "integrity": {**LEVELS, **stated.get("integrity", {})},
    }
    assert changes(stated, output) == []
    assert changes(output, stated) == []


REFERENCE = {
    "precision": {"min": Decimal("0.80")},
    "chr": {"min": Decimal("0.75")},
    "under_refusal": {"max": Decimal("0.05")},
    "over_refusal": {"max": Decimal("0.10")},
}


def test_to_write_the_default_gates_down_changes_nothing():
    assert changes({"version": 1}, {"version": 1, "gates": REFERENCE}) == []


@pytest.mark.parametrize(
    ("key", "section"),
    [
        ("signoff", {"dataset": "7b0c4e", "records": "eval/gold.signoff", "require": "record"}),
    ],
)
def test_a_section_that_comes_or_goes_is_one_change(key, section):
    without = {"version": Decimal(1)}
    added, removed = (changes(*pair) for pair in ((without, {**without, key: section}), ({key: section}, {})))
    assert [(change.key, change.old) for change in added] == [(key, None)]
    assert [(change.key, change.new) for change in removed] == [(key, None)]


def test_a_gate_that_comes_or_goes_is_one_change_in_its_own_words():
    gates = {**REFERENCE, "mrr": {"min": Decimal("0.50"), "severity": "warning", "when_no_data": "fail"}}
    (change,) = changes({"gates": REFERENCE}, {"gates": gates})
    assert (change.key, change.kind, change.old) == ("gates.mrr", "stricter", None)
    assert json.loads(change.new) == {"min": 0.5, "severity": "warning"}
    sliced = {"slices": {"gates": {"category=a": {"mrr": gates["mrr"]}}}}
    (change,) = changes({"slices": {"gates": {}}}, sliced)
    assert json.loads(change.new) == {"mrr": {"min": 0.5, "severity": "warning"}}


def test_thresholds_that_differ_by_a_hair_are_shown_with_it():
    close = {"gates": {"precision": {"min": Decimal("0.79999999999999999999")}}}
    (change,) = changes({"gates": {"precision": {"min": Decimal("0.80")}}}, close)
    assert (change.kind, change.old, change.new) == ("looser", "0.80", "0.79999999999999999999")


def test_loosest_first():
    base = {"k": 5, "gates": {"precision": {"min": Decimal("0.8")}, "chr": {"min": Decimal("0.5")}}}
    gates = {"precision": {"min": Decimal("0.9")}, "chr": {"min": Decimal("0.4")}}
    result = changes(base, {"version": 2, "k": 5, "gates": gates})
    assert [change.kind for change in result] == ["looser", "stricter", "neutral"]


# --- what a change would let through ---------------------------------------------------------------------------------

METRICS = ["precision", "under_refusal", "chr"]
levels = st.fixed_dictionaries({}, optional={"severity": st.sampled_from(["error", "warning"])})
bounds = st.sampled_from([Decimal(text) for text in ("0", "0.5", "0.8", "1")])


@st.composite
def gates_files(draw):
    gates = {}
    for name in draw(st.lists(st.sampled_from(METRICS), min_size=1, unique=True)):
        side = "min" if measure(name).metric.better == "higher" else "max"
        gates[name] = {side: draw(bounds), **draw(levels)}
    counts = {"missing": draw(st.integers(0, 3))}
    return {"version": 1, "k": draw(st.integers(1, 3)), "gates": gates, "completeness": counts}


def judged(stated, numbers, missing):
    """The gates of a file over values, the metrics that are not among them without any."""
    ledger = ProblemCollector()
    policy = policy_of(json.dumps(stated, default=float).encode(), "eval-gates.yml", ledger)
    assert policy is not None, ledger.problems
    values = {name: result(name, number) for name, number in numbers.items()}
    return judge_all(policy, RunEvidence((), values, Completeness(9, 9 - missing, missing, 0, 0, 0), {}))


numbers = st.fixed_dictionaries({}, optional={name: st.sampled_from([0.0, 0.4, 0.6, 0.9, 1.0]) for name in METRICS})


@given(gates_files(), gates_files(), numbers, numbers, st.integers(0, 3))
def test_lets_through_names_exactly_what_stops_the_run_under_the_old_value_alone(base, head, as_base, as_head, missing):
    effects = PolicyEffects(
        judged(base, as_base, missing), judged(base, as_head, missing), judged(head, as_head, missing)
    )
    stopped = {item.name for item in effects.base if item.blocks}
    now = {item.name for item in effects.head if item.blocks}
    for change in changes(base, head, effects):
        meaning = change.key == "k"
        still = {item.name for item in effects.redefined if item.blocks} if meaning else now
        assert set(change.lets_through) <= stopped - still
        assert change.kind == "looser" or not change.lets_through
        if change.key.startswith("gates.") and change.kind == "looser":
            name = change.key.split(".")[1]
            assert change.lets_through == ((name,) if name in stopped - now else ())


def test_a_gate_whose_test_weakens_another_is_no_stricter_one():
    """Tests are corrected for one another: one more gate could hide what fails the run."""
    gate = Gate("precision", "max_drop", "0.02")
    cases = [questions("precision", [1] * 40), questions("precision", [0] * 5 + [1] * 35)]
    before, after = (
        [replace(item, scores={**item.scores, "mrr": float(n < 30 or (n + side) % 2)}) for n, item in enumerate(case)]
        for side, case in enumerate(cases)
    )
    more = gate, Gate("mrr", "max_drop", "0.02")
    base, head = (judge_all(Policy(gates=ours, completeness={}), evidence(after, before)) for ours in ([gate], more))
    assert [item.outcome for item in (*base, *head)] == ["failed", "inconclusive", "passed"]
    stated = {"gates": {"precision": {"max_drop": Decimal("0.02")}}}
    (change,) = changes(
        stated, {"gates": {**stated["gates"], "mrr": {"max_drop": Decimal("0.02")}}}, PolicyEffects(base, base, head)
    )
    assert (change.key, change.kind, change.lets_through) == ("gates.mrr", "looser", ("precision",))
    (change,) = changes(
        stated, {"gates": {**stated["gates"], "mrr": {"min": Decimal("0.5")}}}, PolicyEffects(base, base, head)
    )
    assert (change.kind, change.lets_through) == ("stricter", ())


DROP = {"max_drop": Decimal("0.02")}
SHOWN = {"statistics": {"test": "non_inferiority"}}


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (SHOWN, {"statistics": {**SHOWN["statistics"], "alpha": Decimal("0.5")}}),
        (SHOWN, {**SHOWN, "gates": {"chr": {**DROP, "test": "none"}}}),
        (SHOWN, {**SHOWN, "gates": {"chr": {**DROP, "test": "regression"}}}),
        ({"gates": {"chr": DROP}}, {"gates": {"chr": DROP}, "statistics": {"test": "regression", "alpha": Decimal(0)}}),
        (
            {"statistics": {"inconclusive": "fail"}, "slices": {"min_n": 10}},
            {"statistics": {"inconclusive": "fail"}, "slices": {"min_n": 2}},
        ),
    ],
)
def test_a_value_that_loosens_under_another_key_is_looser(base, head):
    before, after = ({"gates": {"chr": DROP}, **side} for side in (base, head))
    assert [change.kind for change in changes(before, after)] == ["looser"]


def test_a_gate_that_states_the_usual_test_changes_nothing():
    before, after = ({"gates": {"chr": {**DROP, **more}}} for more in ({}, {"test": "regression"}))
    assert [change.kind for change in changes(before, after)] == ["neutral"]


def test_a_baseline_that_lets_a_gate_without_data_pass_is_looser():
    none, passed = (judge(Gate("mrr", "max_drop", "0.1"), Value(number, n)) for number, n in ((None, 0), (0.0, 4)))
    stated = {"gates": {"mrr": {"max_drop": Decimal("0.1")}}}
    head = {**stated, "baseline": {"report": "a.json"}}
    (change,) = changes(stated, head, PolicyEffects([none], [none], [passed]))
    assert (change.key, change.kind, change.lets_through) == ("baseline", "looser", ("mrr",))
    (change,) = changes(stated, head, PolicyEffects([none], [none], [none]))
    assert (change.kind, change.lets_through) == ("stricter", ())


def test_a_gate_that_turns_an_error_into_a_warning_is_looser():
    stated = {"gates": {"chr": {"min": Decimal("0.1")}}}
    head = {"gates": {**stated["gates"], "citation_precision": {"min": Decimal("0.1")}}}
    (change,) = changes(stated, head, PolicyEffects(guarded=["padded-citations"]))
    assert (change.kind, change.lets_through) == ("looser", ("padded-citations",))


def test_a_change_that_lets_something_through_comes_first():
    base = {"gates": {"chr": {"min": Decimal("0.5")}, "precision": {"min": Decimal("0.9")}}}
    head = {"gates": {"chr": {"min": Decimal("0.4")}, "precision": {"min": Decimal("0.1")}}}
    broken = judge(Gate("precision", "min", "0.9"), Value(0.2, 10))
    stored = judge(Gate("precision", "min", "0.1"), Value(0.2, 10))
    result = changes(base, head, PolicyEffects([broken], [broken], [stored]))
    assert [(change.key, change.lets_through) for change in result] == [
        ("gates.precision.min", ("precision",)),
        ("gates.chr.min", ()),
    ]


def test_findings_are_let_through_by_the_key_that_they_belong_to():
    effects = PolicyEffects(findings={"signoff": ["unsigned-change"], "integrity": ["padded-citations"]})
    base = {"signoff": {"require": "record"}, "integrity": {"padded-citations": "error", "stale-traces": "error"}}
    head = {"integrity": {"padded-citations": "off", "stale-traces": "off"}}
    assert {change.key: change.lets_through for change in changes(base, head, effects)} == {
        "signoff": ("unsigned-change",),
        "integrity.padded-citations": ("padded-citations",),
        "integrity.stale-traces": (),
    }
