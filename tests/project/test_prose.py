"""The counter of stilted sentences: it finds them in bad English, nearly none in good English, and skips code."""

from __future__ import annotations

import sys

import pytest

from cases import ROOT
from table import each_row

sys.path.insert(0, str(ROOT / "tools"))

import prose


@each_row(
    "text",
    [
        "What cannot be read is exit 2.",
        "Whether a text is a refusal, judged by the text alone.",
        "Where the file is not there, the defaults count.",
        "Compared are the cases that all runs have.",
        "Mend that first, then run the gates.",
        "The gate holds, and the report says so.",
        "Metrics go by chunks, not by documents.",
        "The field is taken where it is a list.",
        "Of two rows with one id the later one counts.",
        "It stands in no log and in no address.",
        "How many a run has besides stands in its row.",
        "The labels bear it out in most cases.",
        "From the gates file, else the default path.",
        "Citations are checked, and so are the ids of documents.",
        "The bench has one module a command.",
        "| `key` | a gate on worsening against the baseline |",
        "- each of those of them that have a label",
    ],
)
def test_a_stilted_sentence_is_named(text):
    assert prose.count(text).stilted


@each_row(
    "text",
    [
        "Unreadable input exits with code 2.",
        "If the file is missing, the defaults apply.",
        "Only cases in all runs are compared.",
        "Fix these gates first: `precision`, `chr`.",
        "The gate passes if at least 80 % of the questions are right.",
        "Otherwise the later one overwrites the earlier comment.",
        "What does it cost to run the gate on every pull request?",
        "Put the file in the folder where your pipeline writes its traces.",
        "Each row shows how many cases were not compared.",
        "The report shows what changed and why.",
        "The workflow comes from the base branch.",
    ],
)
def test_a_plain_sentence_is_not(text):
    assert [(item.sentence, item.names) for item in prose.count(text).stilted] == []


def test_code_headings_and_addresses_are_no_sentences():
    text = "# What it was told, and where\n\n```console\n$ mend those of them\n```\n\n<!-- Of those none holds. -->\n"
    assert prose.count(text).sentences == []
    assert [sentence.sentence for sentence in prose.count("See [the two pages](of-those.md) on `mend`.").sentences] == [
        "See the two pages on X."
    ]


def test_a_cell_and_an_item_are_sentences_of_their_own():
    text = (
        "| key | meaning |\n|---|---|\n| `a` | at least four words |\n\n- five six seven eight\n- four words and more\n"
    )
    assert [sentence.sentence for sentence in prose.count(text).sentences] == [
        "at least four words",
        "five six seven eight",
        "four words and more",
    ]


@pytest.mark.parametrize(("length", "is_long"), [(30, False), (31, True)])
def test_a_sentence_of_more_than_thirty_words_is_long(length, is_long):
    [item] = prose.count(" ".join(["word"] * length) + ".").sentences
    assert item.is_long is is_long


def test_a_check_names_each_limit_that_is_exceeded():
    text = "What cannot be read is exit 2. " + "Unreadable input exits with code 2. " * 9
    limit = prose.LIMITS["words"]
    assert prose.problems(limit, prose.count("Unreadable input exits with code 2."), "docs") == []
    problems = prose.problems(limit + 1, prose.count(text), "docs")
    assert [line.partition(";")[0] for line in problems] == [
        "1 of 10 sentences in docs are stilted",
        f"README and docs have {limit + 1:,} words",
    ]


def test_a_generated_block_has_sentences_but_no_words():
    text = (
        "| One | two. |\n\n```\nthree\n```\n\n<!-- measured: bench/x.py -->\n\n| a table of figures |\n\n<!-- end -->\n"
    )
    result = prose.count(text)
    assert (result.words, [sentence.sentence for sentence in result.sentences]) == (2, ["a table of figures"])
