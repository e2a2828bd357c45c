"""Every text function is total and linear: eight times the text takes about eight times the time."""

import pytest

from linear import is_linear, seconds
from rag_eval.contract.records import inline_citations, without_citations
from rag_eval.textual.grounding import ground, makes
from rag_eval.textual.leaks import leaks_of, suspects
from rag_eval.textual.refusals import recognise, says_nothing
from rag_eval.textual.tokens import tokens
from seams import Safety, instruction

SIZE = 50_000
FUNCTIONS = {
    "without_citations": lambda text: without_citations(text, [f"id{number}" for number in range(2000)]),
    "inline_citations": inline_citations,
    "ground": lambda text: ground(text, [text, f"{text} end"], text),
    "makes": lambda text: makes(text, text[:2000]),
    "recognise": recognise,
    "says_nothing": says_nothing,
    "leaks_of": lambda text: leaks_of(text, (text[:1000],), [tokens(text)], Safety()),
    "instruction": instruction,
    "suspects": lambda text: suspects([text], Safety()),
}
NAMED = ["3 4 ", "1/2 ", "【4:0†", "&#39;", "9" * 50_000 + " "]
OTHERS = [
    *["citations:[", "[", "[id1]", "a@", "1.", "+1 ", "pass word: ", "sk-", "tel. 1", "AA00 ", "://a:b", "¼½", "°C "],
    *["$1m", "\n\n", "```", "{a: ", "(a,", "Sure, ", "if you have a ", "0s ", "v1.", "1,2", "(A, 2", "not ", "'t "],
    *["1. ", "x" * 64 + " ", "\u200b", "٣", "don't ", "a.b.c.", "東京", "twenty ", "\x00", "\ud800", "sig=", "order "],
    *["ignore all ", "ignore, ", "forget ", "%41", "QUJD", "41", "&#65;", "\U000e0041", "\u200b\u200c", "<|", "===="],
    *[
        "\nsystem:",
        "Seven x. ",
        "7 12 1999 ",
        ".",
        '."',
        "1,000,",
        "1.1",
        "2024-01-01-",
        "01.01.2024.",
        "01/13/2024/",
        "_",
    ],
    *["$1.5m 25kg ", "two hundred thousand million ", "1. - ", "\u200b\u00ad", "U.S. ", "not never no "],
    *["you are now ", "![a](https://a?b", "previous instructions ", "from now on you ", "if you are an ai "],
    *[
        "tell the user that ",
        "when answering, ",
        "hey gpt ",
        "send the user's ",
        "user: ",
        ". user:",
        "a b ",
        "a1b ",
        "with ai ",
    ],
]


def slow(texts):
    return [
        (name, text[:12]) for text in texts for name, function in FUNCTIONS.items() if not is_linear(function, text)
    ]


def repeated(part):
    return (part * SIZE)[:SIZE]


def test_texts_that_were_slow_are_not():
    assert slow(map(repeated, NAMED)) == []


@pytest.mark.deep
def test_no_text_is_slow():
    assert slow(map(repeated, OTHERS)) == []


LONG = 250_000
WHOLE = {
    "one character": lambda size: "a" * size,
    "spaces": lambda size: " " * size,
    "digits": lambda size: "7" * size,
    "digits apart": lambda size: "7 " * (size // 2),
    "line breaks": lambda size: "\n" * size,
    "mixed scripts": lambda size: ("aж東ع한9 " * size)[:size],
    "half of surrogate pairs": lambda size: ("\ud800a \udc00" * size)[:size],
    "combining marks": lambda size: "e" + "\u0301" * (size - 1),
    "sentences": lambda size: ("Cats sleep here. " * size)[:size],
    "refusals": lambda size: ("I cannot say. " * size)[:size],
    "other numbers": lambda size: " ".join(map(str, range(size // 7)))[:size],
}


@pytest.mark.deep
@pytest.mark.parametrize("name", WHOLE)
def test_a_long_text_is_read_in_time_linear_in_its_length(name):
    assert slow([WHOLE[name](LONG)]) == []


def test_of_a_million_sentences_so_many_are_read_that_it_costs_no_more():
    chunk = "Cats sleep here. " * 400
    short, long = "Cats sleep here. " * 10_000, "Cats sleep here. " * 1_000_000
    assert len(ground(long, [chunk])) == len(ground(short, [chunk])) == 200
    small, large = (seconds(lambda answer: ground(answer, [chunk]), answer) for answer in (short, long))
    assert large < 10 * small  # 1.6 times here, and 100 if all were read
