"""Refusals in words of their own: examples of each language, and laws that hold for all of them."""

import hashlib
import json
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases import ROOT, make_case
from rag_eval import refusing
from rag_eval.judging.gates import Policy
from rag_eval.metrics import measures
from rag_eval.model import Settings
from rag_eval.refusing import BESIDE, HEAD, LANGUAGES, LEADING, LONGEST, VERSION, recognise
from rag_eval.report import contract
from table import each_row

FILES = sorted((ROOT / "tests" / "refusals").glob("*.jsonl"))


def rows(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


EXAMPLES = [(file.stem, row["claim"], row["refuses"]) for file in FILES for row in rows(file)]
REFUSALS = [(code, claim) for code, claim, refuses in EXAMPLES if refuses]
BY_LANGUAGE = {language.code: language for language in LANGUAGES}
LONG = (
    "The bridge over the strait was finished in 1889 by the engineers of the northern line. It carries two tracks and "
    "a footpath, and its towers stand on caissons of granite. Trains pass it in four minutes. In 1934 the eastern deck "
    "was widened, and the old signals gave way to coloured lights. Painters need nine years from one end to the other. "
)


@each_row(("code", "claim", "refuses"), EXAMPLES)
def test_refusals_and_answers_are_told_apart(code, claim, refuses):
    found = recognise(claim)
    assert (found.language if found else None) == (code if refuses else None), found


def test_every_language_has_examples_of_both_kinds():
    assert {file.stem for file in FILES} == set(BY_LANGUAGE)
    for file in FILES:
        kinds = [row["refuses"] for row in rows(file)]
        assert min(kinds.count(True), kinds.count(False)) >= 12, file.stem


def outcome(claim):
    return recognise(claim) is not None


@each_row(("code", "claim", "refuses"), EXAMPLES)
def test_dress_changes_nothing(code, claim, refuses):
    """Letter case, space around, punctuation at the end, kinds of apostrophes and quotation marks, and emphasis."""
    curly = claim.replace("'", "’")
    curly = re.sub(r'"([^"]*)"', r"“\1”", curly)
    dressed = [f" \n\t{claim}\u00a0 ", claim.rstrip(".。!") + "...", claim.rstrip(".。") + "!", curly, f"**{claim}**"]
    dressed += [claim.upper(), claim.lower()]
    assert [outcome(text) for text in dressed] == [refuses] * len(dressed)


@each_row(("code", "claim", "refuses"), EXAMPLES)
def test_what_is_not_seen_changes_nothing(code, claim, refuses):
    """Spaces of no width and their like, in every word."""
    hidden = [re.sub(r"(?<=\w)(?=\w)", unseen, claim) for unseen in ("\u200b", "\u00ad", "\u200f")]
    assert [outcome(text) for text in hidden if len(text) < HEAD] == [refuses] * sum(
        len(text) < HEAD for text in hidden
    )


@pytest.mark.parametrize(
    "claim", ["I can&#39;t find that.", "I don&apos;t know.", "I&nbsp;can&rsquo;t help.", "I&#160;can&#x27;t help."]
)
def test_what_a_page_escapes_is_read_as_it_is_shown(claim):
    assert outcome(claim)


NOT = "do does did is are was were would could should have has".split()
CONTRACTED = {
    **{f"{verb}n't": f"{verb} not" for verb in NOT},
    "can't": "cannot",
    "won't": "will not",
    "I'm": "I am",
    "we're": "we are",
    "I'd ": "I would ",
    "I'll ": "I will ",
    "It's": "It is",
    "it's": "it is",
    "That's": "That is",
    "that's": "that is",
    "There's": "There is",
    "there's": "there is",
    "I've been": "I have been",
    "you've": "you have",
}


def respelled(claim, spellings):
    for spelled, otherwise in spellings:
        claim = re.sub(rf"\b{spelled}(?!\w)", otherwise, claim)
    return claim


@each_row(("code", "claim", "refuses"), [row for row in EXAMPLES if row[0] == "en"])
def test_english_contractions_change_nothing(code, claim, refuses):
    claim = claim.replace("’", "'")
    assert outcome(respelled(claim, CONTRACTED.items())) == refuses
    assert outcome(respelled(claim, ((full, short) for short, full in CONTRACTED.items()))) == refuses


@each_row(("code", "claim"), REFUSALS)
def test_who_answers_at_length_does_not_refuse(code, claim):
    assert not outcome(f"{claim.rstrip('.!')}. {LONG}")
    assert not outcome(f"{claim}\n\n{LONG}")
    assert not outcome(f"{LONG} {claim}")


@each_row(("code", "claim"), REFUSALS)
def test_who_quotes_a_refusal_does_not_refuse(code, claim):
    quoted = claim.replace('"', "").replace("“", "").replace("”", "")
    assert not outcome(f'The system answered "{quoted}" and went on to the next ticket of the customer in the queue.')


@each_row(("code", "claim"), REFUSALS)
def test_a_refusal_twice_is_a_refusal(code, claim):
    assert outcome(f"{claim.rstrip('.')}. {claim}")


SHORT = "It was finished in 1889."


@pytest.mark.parametrize("kind", sorted(BESIDE))
def test_a_refusal_without_a_turn_bears_a_few_words_and_not_many(kind):
    wordings = {"declines": "I can't help with that.", "lacks": "I don't know the year.", "whole": "I don't know."}
    refusal = wordings[kind]
    fitting = BESIDE[kind] // len(SHORT)
    assert recognise(" ".join([refusal, *[SHORT] * fitting])).kind == kind
    assert recognise(" ".join([refusal, *[SHORT] * (fitting + 2)])) is None
    assert recognise(f"{refusal} However, it was finished in 1889.") is None


def test_a_turn_within_the_next_sentence_turns_too():
    refusal = "The passage does not state the colour."
    assert outcome(f"{refusal} It describes a lemon.")
    assert not outcome(f"{refusal} It does, however, describe a lemon, which is yellow.")
    assert outcome(f"{refusal} Please note, however, that I can help with other questions.")


def test_a_sentence_that_begins_with_a_turn_turns_from_what_was_said_before_it():
    refusal = "However, the passage does not state the colour."
    assert outcome(refusal)
    assert outcome(f"Thank you for your question. {refusal}")
    assert not outcome(f"The car was built in 1931. {refusal}")


def test_who_says_something_first_only_remarks_that_more_is_not_known():
    assert recognise("Paris. I don't know the population.") is None
    assert recognise(f"{SHORT} I don't know more.") is None
    assert recognise("Hello! Thank you for asking. I don't know the population.") is not None


def test_a_long_sentence_that_comes_to_a_refusal_is_an_answer():
    topic = "The name of the architect of the bridge of the northern line"
    assert recognise(f"{topic} is not given in the text.") is not None
    assert recognise(f"{topic}{' of the county' * (LEADING // 14)} is not given in the text.") is None


def test_a_lecture_may_lead_to_a_refusal_to_help_and_to_nothing_else():
    assert recognise("That would be illegal. I can't help you with this.").kind == "declines"
    assert recognise("That would be illegal. I don't know who did it.") is None


def test_a_claim_that_is_longer_than_any_refusal_is_an_answer():
    lecture = "I cannot provide that. " + "It is important to respect others. " * (LONGEST // 35 + 1)
    assert recognise(lecture[:LONGEST]) is not None
    assert recognise(lecture[: LONGEST + 1].ljust(LONGEST + 1, "!")) is None


@pytest.mark.parametrize("claim", ["", " \n", "...", "—", "?!", '""'])
def test_a_claim_without_a_letter_or_a_digit_refuses(claim):
    assert recognise(claim).kind == "empty"


@pytest.mark.parametrize("claim", ["0", "x", "é", "答", "No", "42."])
def test_the_shortest_answers_are_answers(claim):
    assert recognise(claim) is None


@given(st.text(max_size=LONGEST + 50))
@example("'" * LONGEST)
@example('"' * LONGEST)
@example('"')
@example("\n")
def test_any_text_gets_the_same_outcome_twice(text):
    assert recognise(text) == recognise(text)


HOSTILE = [
    *dict.fromkeys(claim[:cut] for _, claim in REFUSALS for cut in (8, 24)),
    *(
        "'a",
        "\"'",
        "1. ",
        "the ",
        "given provided ",
        "information (",
        "none of the ",
        "a\u0301",
        "ﷺ",
        "ſ",
        "while the text ",
        "the text you've provided ",
        "the a b provided ",
        "研究者は",
        "연구자는 ",
        "他也",
        "wenn der ",
        "wird keine antwort ",
        "i searched the text ",
        "&#39;",
        "but ",
    ),
]


def test_no_text_is_slow():
    """20 ms are a hundred times what an answer takes; a pattern that tries every way would take hours."""
    recognise("warm")
    for part in HOSTILE:
        text = (part * LONGEST)[:LONGEST]
        started = time.process_time()
        recognise(text)
        assert time.process_time() - started < 0.2, part


# What hangs on the table of patterns.

PINNED = {1: "d220a98788978771", 2: "302e0c0d9602b16c", 3: "7ab46e042670ed62"}


def test_other_patterns_are_another_version():
    """Scores under other patterns are not comparable: raise VERSION, and pin what it stands for here."""
    terms = [LANGUAGES, LONGEST, refusing.HEAD, LEADING, sorted(BESIDE.items())]
    assert hashlib.sha256(repr(terms).encode()).hexdigest()[:16] == PINNED[VERSION]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_a_hint_stands_in_every_refusal(language):
    """What the hints let pass unseen no pattern would find: with them all on, the examples come out the same."""
    from rag_eval.refusing import _language

    full = _language.compiled(language)
    bare = full._replace(hints=frozenset(), hints_within=("",))
    for code, claim, _ in EXAMPLES:
        if code == language.code:
            sentences = refusing._sentences(_language.fold(claim))
            assert refusing._refusal(bare, sentences) == refusing._refusal(full, sentences), claim


# What a case makes of it.


def says(claim, **more):
    return {"answer_json": {"claim": claim}, **more}


BUILTIN = Settings(phrases=("ask the office",), builtin=True)


@pytest.mark.parametrize(
    ("refused", "rule", "trace", "settings"),
    [
        (False, "", says("I don't know."), Settings()),
        (True, "the built-in pattern 'i don't know' (en, whole)", says("I don't know."), BUILTIN),
        (
            True,
            "the built-in pattern 'das weiss ich leider nicht' (de, lacks)",
            says("Das weiß ich leider nicht, tut mir leid."),
            BUILTIN,
        ),
        (True, "the token", says("Not in context"), BUILTIN),
        (True, "the phrase 'ask the office'", says("I don't know, ask the office."), BUILTIN),
        (False, "the trace's own mark", says("I don't know.", abstained=False), BUILTIN),
        (True, "the trace's own mark", says("It is 5.", abstained=True), BUILTIN),
        (False, "", says("It is 5."), BUILTIN),
        (True, "its emptiness (built-in)", says(" "), BUILTIN),
        (False, "", says(" "), Settings()),
        (False, "", {"error": "down"}, BUILTIN),
        (False, "", None, BUILTIN),
    ],
)
def test_the_built_in_patterns_come_last_and_only_where_they_are_on(refused, rule, trace, settings):
    case = make_case({}, trace, settings)
    assert (case.refused, case.refused_by) == (refused, rule)


@each_row("measure", measures((5,)), ids=lambda measure: measure.name)
def test_a_contract_names_the_patterns_where_they_are_on(measure):
    off, on = (contract(measure, Policy(builtin=builtin)) for builtin in (False, True))
    assert off == contract(measure, Policy())
    assert (off == on) is ("refusal" not in measure.metric.settings)
