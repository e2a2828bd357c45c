"""Refusals in words of their own: examples of each language, and laws that hold for all of them."""

import hashlib
import re
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import depth
from cases import ROOT, make_case, read_rows
from linear import seconds
from rag_eval.gates import contract
from rag_eval.textual import refusals
from rag_eval.textual.refusals import (
    HEAD,
    LANGUAGES,
    MAX_CLAIM,
    MAX_CONTENT,
    MAX_PREAMBLE,
    VERSION,
    examine,
    recognise,
)
from seams import Policy, Settings, measures

FILES = sorted((ROOT / "tests" / "refusals").glob("*.jsonl"))


EXAMPLES = [(file.stem, row["claim"], row["refuses"]) for file in FILES for row in read_rows(file)]
REFUSALS = [(code, claim) for code, claim, refuses in EXAMPLES if refuses]
EACH_LANGUAGE = pytest.mark.parametrize("language", LANGUAGES)
LONG = (
    "The bridge over the strait was finished in 1889 by the engineers of the northern line. It carries two tracks and "
    "a footpath, and its towers stand on caissons of granite. Trains pass it in four minutes. In 1934 the eastern deck "
    "was widened, and the old signals gave way to coloured lights. Painters need nine years from one end to the other. "
) * 2


def examples(language):
    return [(claim, refuses) for code, claim, refuses in EXAMPLES if code == language]


@EACH_LANGUAGE
def test_refusals_and_answers_differ(language):
    wrong = []
    for claim, refuses in examples(language):
        found = recognise(claim)
        if (found.language if found else None) != (language if refuses else None):
            wrong.append((claim, found))
    assert wrong == []


@pytest.mark.parametrize(
    "file", sorted((ROOT / "tests" / "refusals" / "modern").glob("*.jsonl")), ids=lambda file: file.stem
)
def test_wordings_of_current_systems(file):
    """Written before the patterns of version 4 and after them, in 21 fresh sets, and by grammar (constructions).

    At first, version 5 found 13 of the 27 refusals of fresh6 and 2 others, version 6 15 of the 20 of fresh7 and none,
    and 32, 30 and 30 of the 35 of fresh8, fresh9 and fresh10, with 1 other of each. Version 7 found 46 of the 63 of
    fresh11, and 65, 51 and 60 of the 70 of fresh12, fresh13 and fresh14, with 1 other of each, then 54 of the 65 of
    fresh17 and none, and 14 of the 65 of fresh18, which has rare wordings, and 1 other. No pattern was written for the
    refusals of fresh19 and of fresh20, which are indirect. Version 7 found 101 of the 106 of fresh21, which has
    thirteen languages, and 5 others, version 11 146 of the 165 of fresh23 and 7 others, version 12 67 of the 78 of
    fresh24 and 5 others. The nine parts of development were written before the patterns that they check.
    """
    claims = [row["claim"] for row in read_rows(file) if outcome(row["claim"]) != row["refuses"]]
    wrong = [(claim, recognise(claim)) for claim in claims]
    known = {"fresh3": 1, "fresh4": 1, "fresh6": 1, "fresh7": 1, "fresh11": 1, "fresh13": 2, "fresh14": 2}
    known |= {"fresh17": 1, "fresh18": 9, "fresh19": 3, "fresh20": 48, "fresh21": 6, "development": 8}
    known |= {"fresh23": 5, "fresh24": 10}
    assert len(wrong) <= known.get(file.stem, 0), wrong


@pytest.mark.parametrize(
    "claim",
    [
        "I couldn't find the launch date, but the price is 49 euros.",
        "The passage does not state the colour. However, it says that lemons are yellow when they are ripe.",
        "Das Startdatum konnte ich nicht finden, der Preis liegt aber bei 49 Euro.",
    ],
)
def test_a_partial_answer_is_known_as_one(claim):
    assert recognise(claim) is None
    assert examine(claim).partial


def test_an_apology_before_a_full_answer_is_no_refusal():
    claim = "I'm sorry for the wait! The meeting takes place on Tuesday at 10:00, in room 4."
    assert examine(claim) is None


def test_a_text_compiles_only_the_languages_that_it_may_be_in():
    code = (
        "from rag_eval.textual import refusals;"
        "refusals.recognise('I am not able to find this in the documents.');"
        "print([one.code for one in refusals._languages() if '_rules' in vars(one)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['en']"


def skipped(language, text):
    """The patterns that match a text but are not tried on it."""
    tried = language.candidates(text)
    others = [rule.text for rule in language._rules if rule not in tried]
    return [(rule, text) for rule in others if language.pattern(rule).search(text)]


@EACH_LANGUAGE
def test_a_pattern_that_matches_an_example_is_tried(language):
    claims = [refusals.fold(claim) for claim, _ in examples(language)]
    assert [one for claim in claims for one in skipped(refusals.Language(language), claim)] == []


@pytest.mark.deep
@EACH_LANGUAGE
def test_a_pattern_that_matches_any_text_is_tried(language):
    known = refusals.Language(language)

    @depth.examples(100)
    @given(st.data())
    def check(data):
        rule = data.draw(st.sampled_from(known._rules)).text
        text = data.draw(st.from_regex(known.pattern(rule).pattern))
        assert skipped(known, refusals.fold(text)[:600]) == []

    check()


def test_every_language_has_examples_of_both_kinds():
    assert {file.stem for file in FILES} == set(LANGUAGES)
    for file in FILES:
        kinds = [row["refuses"] for row in read_rows(file)]
        assert min(kinds.count(True), kinds.count(False)) >= 12, file.stem


def outcome(claim):
    return recognise(claim) is not None


def changed(cases, variants):
    """The variants of examples that have another outcome than the example."""
    return [text for claim, refuses in cases for text in variants(claim) if outcome(text) != refuses]


def in_other_dress(claim):
    curly = re.sub(r'"([^"]*)"', r"“\1”", claim.replace("'", "’"))
    ends = [claim.rstrip(".。!") + "...", claim.rstrip(".。") + "!"]
    return [f" \n\t{claim}\u00a0 ", *ends, curly, f"**{claim}**", claim.upper(), claim.lower()]


@EACH_LANGUAGE
def test_dress_changes_nothing(language):
    """Letter case, space around, punctuation at the end, kinds of apostrophes and quotation marks, and emphasis."""
    assert changed(examples(language), in_other_dress) == []


@EACH_LANGUAGE
def test_invisible_characters_change_nothing(language):
    def hidden(claim):
        texts = [re.sub(r"(?<=\w)(?=\w)", unseen, claim) for unseen in ("\u200b", "\u00ad", "\u200f")]
        return [text for text in texts if len(text) < HEAD]

    assert changed(examples(language), hidden) == []


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


def test_english_contractions_change_nothing():
    def respellings(claim):
        claim = claim.replace("’", "'")
        return [respelled(claim, CONTRACTED.items()), respelled(claim, ((b, a) for a, b in CONTRACTED.items()))]

    assert changed(examples("en"), respellings) == []


REFUSALS_ONLY = [(claim, False) for _, claim in REFUSALS]


def test_a_refusal_with_a_long_answer_is_no_refusal():
    def answered(claim):
        return [f"{claim.rstrip('.!')}. {LONG}", f"{claim}\n\n{LONG}", f"{LONG} {claim}"]

    assert changed(REFUSALS_ONLY, answered) == []


def test_a_quoted_refusal_is_no_refusal():
    def quoted(claim):
        bare = claim.replace('"', "").replace("“", "").replace("”", "")
        return [f'The system answered "{bare}" and went on to the next ticket of the customer in the queue.']

    assert changed(REFUSALS_ONLY, quoted) == []


def test_a_refusal_twice_is_a_refusal():
    assert changed([(claim, True) for _, claim in REFUSALS], lambda claim: [f"{claim.rstrip('.')}. {claim}"]) == []


SHORT = "It was finished in 1889."


@pytest.mark.parametrize("kind", sorted(MAX_CONTENT))
def test_a_refusal_without_a_turn_bears_a_few_words_and_not_many(kind):
    wordings = {"declines": "I can't help with that.", "lacks": "I don't know the year.", "whole": "I don't know."}
    refusal = wordings[kind]
    short = "It was finished in May."
    fitting = MAX_CONTENT[kind] // len(short)
    assert recognise(" ".join([refusal, *[short] * fitting])).kind == kind
    assert recognise(" ".join([refusal, *[short] * (fitting + 2)])) is None
    assert recognise(f"{refusal} However, it was finished in 1889.") is None


@pytest.mark.parametrize(
    ("claim", "refuses"),
    [
        ("I can't say who designed the mill. It ground flour for 90 years.", False),
        ("The lease is silent on pets. Keys are handed over on the fifth of the month.", False),
        ("Wem der Garten gehört, kann ich nicht sagen. Er hat drei Tore und einen Teich.", False),
        ("I can't help with weapons. Gunpowder was known in the 9th century.", True),
        ("I don't know the toll. The sources are from 2016.", True),
        ("I couldn't find the toll. You could:\n1. Ask the operator\n2. Rephrase the question", True),
        ("Le péage n'est pas indiqué. Les 8 extraits portent sur le tunnel.", True),
    ],
)
def test_a_number_answers_behind_a_gap_unless_its_sentence_describes_the_sources(claim, refuses):
    assert outcome(claim) is refuses


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
    assert recognise(f"{topic}{' of the county' * (MAX_PREAMBLE // 14)} is not given in the text.") is None


def test_a_lecture_may_lead_to_a_refusal_to_help_and_to_nothing_else():
    assert recognise("That would be illegal. I can't help you with this.").kind == "declines"
    assert recognise("That would be illegal. I don't know who did it.") is None


def test_a_claim_that_is_longer_than_any_refusal_is_an_answer():
    lecture = "I cannot provide that. " + "It is important to respect others. " * (MAX_CLAIM // 35 + 1)
    assert recognise(lecture[:MAX_CLAIM]) is not None
    assert recognise(lecture[: MAX_CLAIM + 1].ljust(MAX_CLAIM + 1, "!")) is None


@pytest.mark.parametrize("claim", ["", " \n", "...", "—", "?!", '""'])
def test_a_claim_without_a_letter_or_a_digit_refuses(claim):
    assert recognise(claim).kind == "empty"


@pytest.mark.parametrize("claim", ["0", "x", "é", "答", "No", "42."])
def test_the_shortest_answers_are_answers(claim):
    assert recognise(claim) is None


@given(st.text(max_size=MAX_CLAIM + 50))
@example("'" * MAX_CLAIM)
@example('"' * MAX_CLAIM)
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
    """Each takes milliseconds; a pattern that tries every way would take hours."""
    assert [part for part in HOSTILE if seconds(recognise, (part * MAX_CLAIM)[:MAX_CLAIM]) > 2] == []


# What hangs on the table of patterns.

PINNED = {16: "fdca5a1afacbcc1b"}


def test_other_patterns_are_another_version():
    """Scores under other patterns are not comparable: raise VERSION, and pin what it stands for here."""
    terms = (
        [one.table for one in refusals._languages()],
        MAX_CLAIM,
        HEAD,
        MAX_PREAMBLE,
        sorted(MAX_CONTENT.items()),
    )
    assert hashlib.sha256(repr(terms).encode()).hexdigest()[:16] == PINNED[VERSION]


@EACH_LANGUAGE
def test_a_hint_occurs_in_every_refusal(language):
    """Without the filter by hints, the examples have the same outcome."""
    full = next(one for one in refusals._languages() if one.code == language)
    bare = refusals.Language(language)
    bare.hints, bare.hints_within = frozenset(), ("",)
    for claim, _ in examples(language):
        sentences = refusals._sentences(refusals.fold(claim))
        assert bare.refusal(sentences) == full.refusal(sentences), claim


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
        (True, "the empty answer (built-in)", says(" "), BUILTIN),
        (False, "", says(" "), Settings()),
        (False, "", {"error": "down"}, BUILTIN),
        (False, "", None, BUILTIN),
    ],
)
def test_the_built_in_patterns_come_last_and_only_where_they_are_on(refused, rule, trace, settings):
    case = make_case({}, trace, settings)
    assert (case.refused, case.refused_by) == (refused, rule)


@pytest.mark.parametrize("measure", measures((5,)), ids=lambda measure: measure.name)
def test_a_contract_names_the_patterns_where_they_are_on(measure):
    off, on = (contract(measure, Policy(builtin=builtin)) for builtin in (False, True))
    assert off == contract(measure, Policy())
    assert (off == on) is ("refusal" not in measure.metric.settings)
