"""Runs that gates cannot judge are found, honest ones are not, and a gate that guards against it decides instead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import rag_eval
from cases import ROOT, gold_row, trace_row, write_rows
from rag_eval.contract import Answer
from rag_eval.gates import LEVELS
from rag_eval.gates.integrity import degenerate_findings, provenance, vacuous_gold
from rag_eval.scoring import CITES_ALL, SAYS_ALL, CaseOutcome
from rag_eval.scoring.case_scorer import LEAST_CITED
from seams import MEANING, Gate, Gold, Policy, Settings, Trace, measure, measures
from seams import score_rows as score
from table import each_row

REFUSED = "not in context"


def case(label, habit=0):
    return CaseOutcome((), label, "", "", habit), 1


def cases_of(**counts):
    """So many cases of each label."""
    return [case(label) for label, count in counts.items() for _ in range(count)]


def policy(gates, levels=None):
    """A policy with gates of these names that fail a degenerate run."""
    directions = {name: "max" if measure(name).metric.better == "lower" else "min" for name in gates}
    gates = tuple(Gate(name, direction, "0.5") for name, direction in directions.items())
    return Policy(gates=gates, integrity={**LEVELS, **(levels or {})})


def found(cases, *policies, gates=(), levels=None):
    findings = degenerate_findings(cases, *(policies or [policy(gates, levels)]))
    return [(finding.code, finding.level) for finding in findings]


def integrity_findings(card, *policies):
    return degenerate_findings(card.cases.outcome_counts, *policies)


def gold(number, **fields):
    citations = [f"c{number}"] if fields.get("answerable", True) else []
    row = gold_row(qid=f"Q{number}", question=f"Question {number}?", gold_citations=citations, **fields)
    return Gold.from_row(row, number + 1)


def trace(number, claim="kept for 30 days", citations=(), retrieved=()):
    answer = {"claim": claim, "citations": list(citations)}
    row = trace_row(qid=f"Q{number}", retrieved_ids=list(retrieved), answer_json=answer)
    return Trace.from_row(row, f"Q{number}", number + 1)


def card(pairs):
    return score(pairs, measures((1, 5), []), Settings())


def of_run(pairs, *gates, **output):
    """The findings of scored pairs under gates that any value keeps."""
    scored = card(pairs)
    return found(scored.cases.outcome_counts, gates=gates, **output)


@pytest.mark.parametrize("code", LEVELS)
def test_every_finding_is_documented(code):
    assert f"| `{code}` |" in (ROOT / "docs" / "findings.md").read_text("utf-8")


# --- one kind of answer throughout -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"OVER_REFUSAL_EVIDENCE_PRESENT": 3}, "refuses-everything"),
        ({"OVER_REFUSAL_NOT_RETRIEVED": 2, "OVER_REFUSAL_EVIDENCE_PRESENT": 1, "REFUSAL_OK": 5}, "refuses-everything"),
        ({"OVER_REFUSAL_NOT_RETRIEVED": 3, "HALLUCINATION": 1}, "refuses-everything"),
        ({"OVER_REFUSAL_NOT_RETRIEVED": 27, "NOT_CITED": 3}, "refuses-everything"),
        ({"OVER_REFUSAL_NOT_RETRIEVED": 3, "MISSING": 4, "ERROR": 2, "ATTACK": 2}, "refuses-everything"),
        ({"HALLUCINATION": 3}, "answers-everything"),
        ({"HALLUCINATION": 3, "OK": 9, "OVER_REFUSAL_NOT_RETRIEVED": 1, "MISSING": 1}, "answers-everything"),
    ],
)
def test_one_kind_of_answer_throughout_is_found(counts, code):
    assert found(cases_of(**counts)) == [(code, "error")]


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"OVER_REFUSAL_NOT_RETRIEVED": 2, "REFUSAL_OK": 9},
        {"OVER_REFUSAL_NOT_RETRIEVED": 26, "NOT_CITED": 3},
        {"HALLUCINATION": 2, "OK": 9},
        {"HALLUCINATION": 30, "REFUSAL_OK": 1},
        {"OK": 9, "REFUSAL_OK": 9},
        {"MISSING": 9, "ERROR": 9, "ATTACK": 9},
    ],
)
def test_few_cases_or_one_that_differs_are_no_habit(counts):
    assert found(cases_of(**counts)) == []


def test_both_kinds_can_be_found_at_once():
    """Whoever refuses what has an answer and answers what has none has it the wrong way round."""
    codes = [code for code, _ in found(cases_of(OVER_REFUSAL_NOT_RETRIEVED=3, HALLUCINATION=3))]
    assert codes == ["refuses-everything", "answers-everything"]


@pytest.mark.parametrize("gate", ["over_refusal", "answered_rate", "chr_answerable"])
def test_a_gate_that_sees_refusals_decides_about_them(gate):
    assert found(cases_of(OVER_REFUSAL_NOT_RETRIEVED=3), gates=[gate]) == [("refuses-everything", "warning")]
    assert found(cases_of(OVER_REFUSAL_NOT_RETRIEVED=3), gates=["precision"]) == [("refuses-everything", "error")]


def test_a_gate_that_sees_answers_decides_about_them():
    assert found(cases_of(HALLUCINATION=3), gates=["under_refusal"]) == [("answers-everything", "warning")]
    assert found(cases_of(HALLUCINATION=3), gates=["over_refusal"]) == [("answers-everything", "error")]


def test_a_gate_on_both_kinds_of_questions_decides_about_neither():
    """The kind that is right may outweigh the other one."""
    assert found(cases_of(OVER_REFUSAL_NOT_RETRIEVED=3, REFUSAL_OK=9), gates=["abstention_accuracy"]) == [
        ("refuses-everything", "error")
    ]
    assert found(cases_of(HALLUCINATION=3, OK=9), gates=["abstention_accuracy"]) == [("answers-everything", "error")]


# --- padding ---------------------------------------------------------------------------------------------------------


def padded(answers, cited, length):
    """``answers`` questions of which the first ``cited`` cite all of ``length`` retrieved chunks, the rest one."""
    for number in range(answers):
        ids = [f"c{number}", *(f"x{i}" for i in range(length - 1))]
        yield gold(number), trace(number, citations=ids if number < cited else ids[:1], retrieved=ids)


@pytest.mark.parametrize(
    ("answers", "cited", "length", "expected"),
    [
        (3, 3, LEAST_CITED, True),
        (3, 3, LEAST_CITED - 1, False),
        (2, 2, LEAST_CITED, False),
        (10, 9, LEAST_CITED, True),
        (10, 8, LEAST_CITED, False),
        (20, 18, 12, True),
        (20, 17, 12, False),
    ],
)
def test_answers_that_cite_all_of_a_long_list_are_padded(answers, cited, length, expected):
    wanted = [("padded-citations", "error")] if expected else []
    assert of_run(padded(answers, cited, length), "chr") == wanted


def test_to_cite_more_than_was_retrieved_is_padding_too():
    pairs = [(g, replace(t, answer_json=Answer(t.claim, (*t.citations, "invented")))) for g, t in padded(4, 4, 6)]
    assert of_run(pairs, "chr") == [("padded-citations", "error")]


@pytest.mark.parametrize("gate", ["precision", "hit_precision", "chr", "chr_answerable", "citation_recall"])
def test_padded_citations_are_grave_where_a_gate_counts_hits(gate):
    assert of_run(padded(4, 4, 6), gate) == [("padded-citations", "error")]
    assert of_run(padded(4, 4, 6), gate, "citation_precision") == [("padded-citations", "warning")]
    assert of_run(padded(4, 4, 6), "mrr") == [("padded-citations", "warning")]


def test_refusals_and_missing_answers_do_not_hide_padded_citations():
    refusals = [(gold(number, answerable=False), trace(number, REFUSED)) for number in range(50, 70)]
    silent = [(gold(number), Trace.missing(f"Q{number}")) for number in range(70, 80)]
    assert of_run([*padded(4, 4, 6), *refusals, *silent], "chr") == [("padded-citations", "error")]


WORDED = [
    (
        {"cases": cases_of(OVER_REFUSAL_NOT_RETRIEVED=3)},
        "all 3 answerable questions were refused, so metrics of answers say nothing",
        "Gate over_refusal, or fix the system.",
    ),
    (
        {"cases": cases_of(OVER_REFUSAL_NOT_RETRIEVED=27, OK=3)},
        "27 of 30 answerable questions were refused, so metrics of answers say nothing",
        "Gate over_refusal, or fix the system.",
    ),
    (
        {"cases": cases_of(HALLUCINATION=4)},
        "all 4 unanswerable questions were answered, so over_refusal cannot fail",
        "Gate under_refusal. Make the system refuse questions without an answer.",
    ),
    (
        {"cases": [case("OK", SAYS_ALL)] * 9 + [case("OK")]},
        "9 of 10 answers also contain the expected text of most other questions, so precision says nothing",
        "Make each answer address only its question.",
    ),
    (
        {"cases": [case("OK", CITES_ALL)] * 9 + [case("OK")]},
        "9 of 10 answers cite every retrieved chunk, so citation hits say nothing",
        "Gate citation_precision, or cite only chunks that support the claim.",
    ),
    (
        {"cases": [case("OK", CITES_ALL)] * 3, "gates": ["citation_precision"]},
        "3 of 3 answers cite every retrieved chunk, so citation hits say nothing",
        "Cite only chunks that support the claim.",
    ),
]


@each_row("run, message, fix", WORDED)
def test_a_finding_counts_the_cases_and_says_what_to_do(run, message, fix):
    [finding] = degenerate_findings(run["cases"], policy(run.get("gates", ())))
    assert (finding.message, finding.fix) == (message, fix)


# --- laws ------------------------------------------------------------------------------------------------------------

labels = st.sampled_from(sorted(MEANING))
made_cases = st.lists(st.tuples(labels, st.integers(0, 3)), max_size=12).map(lambda rows: [case(*row) for row in rows])
gate_names = st.sets(st.sampled_from(["precision", "chr", "over_refusal", "under_refusal", "citation_precision"]))


@given(made_cases, gate_names, st.randoms(use_true_random=False))
def test_the_order_of_cases_does_not_matter(cases, gates, chance):
    shuffled = chance.sample(cases, len(cases))
    assert degenerate_findings(cases, policy(gates)) == degenerate_findings(shuffled, policy(gates))


@given(st.integers(0, 30), st.integers(1, 30), st.randoms(use_true_random=False))
def test_the_order_of_traces_does_not_matter(other, answers, chance):
    pairs = [*padded(answers, min(other, answers), 6)]
    before = of_run(pairs, "chr")
    chance.shuffle(pairs)
    assert of_run(pairs, "chr") == before


@given(made_cases, gate_names, st.dictionaries(st.sampled_from(sorted(LEVELS)), st.sampled_from(["warning", "off"])))
def test_a_level_turns_its_own_finding_down_and_no_other(cases, gates, levels):
    before, after = found(cases, gates=gates), found(cases, gates=gates, levels=levels)
    message = [(code, "warning" if code in levels else level) for code, level in before if levels.get(code) != "off"]
    assert after == message


@given(made_cases, gate_names, gate_names)
def test_what_a_change_brings_along_guards_nothing(cases, base, head):
    """Under two policies each finding is at least as grave as under either alone."""
    both = dict(found(cases, policy(base), policy(head)))
    for gates in (base, head):
        alone = dict(found(cases, gates=gates))
        assert alone.keys() == both.keys()
        assert [code for code, level in alone.items() if level == "error" and both[code] == "warning"] == []


def test_a_guard_that_only_the_change_has_does_not_excuse_it():
    refusing = card([(gold(number), trace(number, REFUSED)) for number in range(4)])
    base = Policy(gates=(Gate("precision", "min", "0.8"),))
    head = Policy(gates=(*base.gates, Gate("over_refusal", "max", "0.79")))
    assert [finding.level for finding in integrity_findings(refusing, head)] == ["warning"]
    assert [finding.level for finding in integrity_findings(refusing, head, base)] == ["error"]
    assert [finding.level for finding in integrity_findings(refusing, head, head)] == ["warning"]


@pytest.mark.parametrize(
    ("metric", "direction", "threshold", "confidence", "level"),
    [
        ("over_refusal", "max", "0.79", "", "warning"),
        ("over_refusal", "max", "0.79", "0.99", "error"),
        ("over_refusal", "max", "0.8", "", "error"),
        ("over_refusal", "max", "1", "", "error"),
        ("answered_rate", "min", "0.21", "", "warning"),
        ("answered_rate", "min", "0.2", "", "error"),
        ("answered_rate", "min", "0.0", "", "error"),
        ("answered_rate", "max_drop", "0.1", "", "error"),
        ("over_refusal", "max_rise", "0.1", "", "error"),
    ],
)
def test_a_gate_that_may_pass_a_degenerate_run_guards_nothing(metric, direction, threshold, confidence, level):
    gate = Gate(metric, direction, threshold, confidence=confidence)
    refusing = card([(gold(number), trace(number, REFUSED)) for number in range(4)])
    assert [finding.level for finding in integrity_findings(refusing, Policy(gates=(gate,)))] == [level]


REFUSE = "Make the system refuse questions without an answer."


@pytest.mark.parametrize(
    ("claims", "guard", "gated", "bare"),
    [
        ([REFUSED] * 4, "over_refusal", "Fix the system.", "Gate over_refusal, or fix the system."),
        (
            [],
            "under_refusal",
            "Make the system refuse questions without an answer.",
            "Gate under_refusal. Make the system refuse questions without an answer.",
        ),
    ],
)
def test_nobody_is_advised_to_gate_what_is_gated(claims, guard, gated, bare):
    answered = [(gold(number, answerable=False), trace(number, "It is so.")) for number in range(4)]
    cases = card([(gold(number), trace(number, claim)) for number, claim in enumerate(claims)] or answered)
    ungated, guarded = Policy(), Policy(gates=(Gate(guard, "max", "0.1"),))
    assert [[finding.fix for finding in integrity_findings(cases, policy)] for policy in (ungated, guarded)] == [
        [bare],
        [gated],
    ]


def test_a_gate_that_only_warns_guards_nothing():
    refusing = card([(gold(number), trace(number, REFUSED)) for number in range(4)])
    policy = Policy(gates=(Gate("over_refusal", "max", "0.1", severity="warning"),))
    assert [finding.level for finding in integrity_findings(refusing, policy)] == ["error"]


@pytest.mark.parametrize(("one", "other", "level"), [("off", "error", "error"), ("off", "warning", "warning")])
def test_of_two_policies_the_graver_level_holds(one, other, level):
    refusing = card([(gold(number), trace(number, REFUSED)) for number in range(4)])
    policies = [Policy(integrity={"refuses-everything": level}) for level in (one, other)]
    assert [finding.level for finding in integrity_findings(refusing, *policies)] == [level]
    assert [finding.level for finding in integrity_findings(refusing, *reversed(policies))] == [level]


def test_off_in_every_policy_is_off():
    refusing = card([(gold(number), trace(number, REFUSED)) for number in range(4)])
    assert integrity_findings(refusing, Policy(integrity={"refuses-everything": "off"})) == []


# --- gold that says nothing of the right answer ----------------------------------------------------------------------


def said_of(golds):
    return [item.message.partition(" have")[0] for item in vacuous_gold(golds, "g.jsonl", [measure("precision")])]


NOTHING = {"gold_claim_substr": [], "gold_citations": []}


def item(number, **fields):
    return Gold.from_row(gold_row(qid=f"Q{number}", **fields), number)


def test_gold_by_which_no_answer_could_be_wrong_is_told():
    golds = [item(1, gold_citations=["c"]), item(2, **NOTHING), item(3, **NOTHING), item(4, answerable=False)]
    assert said_of(golds) == ["2 of 3 answerable items"]


@pytest.mark.parametrize(
    "fields", [{"gold_claim_substr": ["30 days"]}, {"gold_citations": ["c"]}, {"answerable": False}]
)
def test_gold_that_says_something_is_not(fields):
    assert said_of([item(1, **{**NOTHING, **fields})]) == []


@pytest.mark.parametrize(("level", "code"), [("", 0), ("off", 0), ("warning", 0), ("error", 1)])
def test_a_run_tells_of_gold_that_says_nothing(tmp_path, level, code):
    write_rows(tmp_path / "gold.jsonl", [gold_row(qid=f"Q{number}", **NOTHING) for number in (1, 2)])
    write_rows(tmp_path / "trace.jsonl", [trace_row(qid="Q1", answer_json={"claim": "", "citations": []})])
    gates = (
        "version: 1\ngold: gold.jsonl\ntrace: trace.jsonl\ncompleteness: {missing: 1}\ngates: {precision: {min: 1}}\n"
    )
    (tmp_path / "gates.yml").write_text(gates + (f"integrity: {{vacuous-gold: {level}}}\n" if level else ""))
    paths = [tmp_path / name for name in ("gold.jsonl", "trace.jsonl", "gates.yml")]
    report = rag_eval.score(*paths)
    findings = [] if level == "off" else [("vacuous-gold", level or "warning")]
    assert [(finding.code, finding.level) for finding in report.findings] == findings
    assert (report.exit_code, report.metrics["precision"].exact) == (code, "1")
    assert rag_eval.score(*paths, perspectives="retrieval").findings == ()


# --- where the traces come from --------------------------------------------------------------------------------------

COMMIT, GOLD = "0123456789abcdef" * 2 + "01234567", "ab" * 32


@pytest.mark.parametrize(
    ("about", "codes"),
    [
        ({}, []),
        ({"gold_sha256": GOLD, "system_commit": COMMIT}, []),
        ({"gold_sha256": GOLD.upper(), "system_commit": COMMIT.upper()}, []),
        ({"system_commit": COMMIT[:7]}, []),
        ({"system_commit": ""}, []),
        ({"system_commit": f"{COMMIT}\n"}, []),
        ({"system_commit": f"{COMMIT}-dirty"}, ["stale-traces"]),
        ({"system_commit": f" {COMMIT[:7]}-dirty\r\n"}, ["stale-traces"]),
        ({"system_commit": f"v1.2-rc1-15-g{COMMIT[:9]}"}, []),
        ({"system_commit": f"v1.2-15-g{COMMIT[:9]}-dirty"}, ["stale-traces"]),
        ({"system_commit": f"v1.2-15-g{'f' * 9}-dirty"}, ["stale-traces"]),
        ({"system_commit": f"v1.2-15-g{COMMIT[:6]}"}, ["stale-traces"]),
        ({"system_commit": f"{'f' * 40}-dirty\n"}, ["stale-traces"]),
        ({"system_commit": "v1.2.3-final"}, ["stale-traces"]),
        ({"system_commit": "f" * 40}, ["stale-traces"]),
        ({"system_commit": COMMIT + "0"}, ["stale-traces"]),
        ({"gold_sha256": "cd" * 32}, ["other-gold"]),
        ({"gold_sha256": "cd" * 32, "system_commit": "f" * 7}, ["other-gold", "stale-traces"]),
    ],
)
def test_run_json_is_held_against_commit_and_gold(about, codes):
    output = provenance("runs/run.json", about, [GOLD], {COMMIT, "e" * 40}, LEVELS)
    assert [item.code for item in output] == codes
    is_changed = "-dirty" in about.get("system_commit", "") and "f" * 9 not in about["system_commit"]
    level = "warning" if is_changed else "error"  # the commit under test with other changes
    assert {(item.level, item.file) for item in output} <= {(level, "runs/run.json")}


def test_where_any_commit_may_be_scored_no_trace_is_stale():
    assert provenance("runs/run.json", {"system_commit": "f" * 40}, [GOLD], (), LEVELS) == []


@pytest.mark.parametrize(("level", "levels"), [("warning", ["warning"]), ("off", [])])
@pytest.mark.parametrize("code", ["stale-traces", "other-gold"])
def test_levels_turn_provenance_down_too(code, level, levels):
    about = {"stale-traces": {"system_commit": "f" * 40}, "other-gold": {"gold_sha256": "cd" * 32}}[code]
    output = provenance("run.json", about, [GOLD], {COMMIT}, {**LEVELS, code: level})
    assert [item.level for item in output] == levels
