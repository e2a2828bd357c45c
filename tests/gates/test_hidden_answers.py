"""Answers that are right only in text that no reader sees are found; markup around a visible answer is not."""

from __future__ import annotations

import pytest

from gates.test_constant_answers import codes, golds, scored

HIDDEN = {
    "a comment": "It is fine. <!-- {} -->",
    "a comment over lines": "It is fine. <!--\n{}\n-->",
    "an element without a size": "It is fine. <span style='font-size: 0'>{}</span>",
    "an element that is not displayed": 'It is fine. <div class="a" style="display:none">no <b>{}</b></div>',
    "an element with the attribute hidden": "It is fine. <p hidden>{}</p>",
    "a script": "It is fine. <script>// {}</script>",
    "an attribute": 'It is <span title="{}">fine</span>.',
    "the title of a link definition": 'It is fine.\n\n[//]: # "{}"\n',
    "the title of a link": 'It is [fine](https://example.org "{}").',
    "the description of an image": "It is fine. ![{}](fine.png)",
    "crossed out text": "~~It is {}.~~ It is fine.",
    "text crossed out by one tilde": "~It is {}.~ It is fine.",
    "a crossed out element": "<del>It is {}.</del> It is fine.",
    "an invisible element": '<span style="visibility: hidden">{}</span> It is fine.',
    "an image that is transparent": 'It is fine. <svg><text opacity="0">{}</text></svg>',
    "an element behind a filter": 'It is fine. <b style="filter:opacity(0)">{}</b>',
    "an element of no scale": 'It is fine. <b style="transform: scale(0)">{}</b>',
    "an element that is clipped": 'It is fine. <b style="position: absolute; clip: rect(0, 0, 0, 0)">{}</b>',
    "an element behind its border": 'It is fine. <b style="clip-path: inset(50%)">{}</b>',
    "a font without a size": 'It is fine. <font size="0">{}</font>',
    "the options of an input": "It is fine. <datalist><option>{}</datalist>",
    "a video that is shown instead": "It is fine. <video src='fine.mp4'>{}</video>",
    "a transparent element": 'It is fine. <span style="opacity:0.0;">{}</span>',
    "white text": "It is fine. <span style='color: #FFF'>{}</span>",
    "a comment between tildes": "It is fine ~~~ <!-- {} --> ~~~",
    "white text on white": '<p style="color: white; background: white">{}</p> It is fine.',
    "white text of a font": 'It is fine. <font color="white">{}</font>',
    "an element without a height": '<div style="height:0;overflow:hidden">{}</div> It is fine.',
    "an element beside the page": '<div style="position:absolute;left:-9999px">{}</div> It is fine.',
    "an element for screen readers": 'It is fine. <span class="small sr-only">{}</span>',
    "an element for browsers without scripts": "It is fine. <noscript>{}</noscript>",
    "reasoning behind the answer": "It is fine.\n\n<think>\nIs it {}?\n</think>",
    "the description of a drawing": "It is fine. <svg><desc>{}</desc></svg>",
    "the data of a drawing": "It is fine. <svg><metadata>{}</metadata></svg>",
    "an element for browsers without frames": "It is fine. <noframes>{}</noframes>",
    "an instruction": "It is fine. <?{}?>",
    "an open comment at the start of a line": "It is fine.\n<!-- {}",
    "an open comment in a long text": "It is fine.\n<!-- {} " + "It is fine. " * 2_000,
    "concealed text of a terminal": "It is fine. \x1b[8m{}\x1b[0m",
    "erased text of a terminal": "Fine.\n{}" + "\b" * 60 + "It is fine.",
    "a blank of a formula": r"It is fine. $\phantom{{}}$",
    "white letters of a formula": r"It is fine. $\textcolor{white}{{}}$",
    "a blank of MathML": "It is fine. <math><mphantom>{}</mphantom></math>",
    "an element of a hidden class": 'It is fine. <p class="d-none">{}</p>',
    "a comment of a template": "It is fine. {# {} #}",
    "a comment of a formula": "It is fine. $$ x % {}\n= 1 $$",
    "a comment of a formula on a line": "It is fine. \\[\n% {}\nx = 1\\]",
    "text that is shown backwards": "It is fine. \u202e{}\u202c",
    "a comment below line breaks that are none": "It is fine.\u2028\u2028    <!-- {} -->\n",
    "a comment below a list": "- It is fine.\n\n    <!-- {} -->\n",
    "a comment below a number": "1. It is fine.\n\n    <!-- {} -->\n",
    "a comment below a paragraph of a list": "- It is\n\n  fine.\n\n    <!-- {} -->\n",
    "a comment below a footnote": "It is fine.[^1]\n\n[^1]: Fine.\n\n    <!-- {} -->\n",
    "a comment that continues a paragraph": "It is fine.\n    <!-- {} -->\n",
    "a comment that begins before the code": "It is fine. <!--\n\n    {} -->\n",
    "a comment below a long item of a list": "- " + "It is fine. " * 2_000 + "\n\n    <!-- {} -->\n",
    "a comment in a long text": "It is fine. " * 2_000 + "<!-- {} -->" + "It is fine. " * 2_000,
}
VISIBLE = {
    "plain": "It is {}.",
    "beside a comment": "It is {}. <!-- nothing -->",
    "in code": "It is `<!-- {} -->`.",
    "in a fence": "It is\n```html\n<!-- {} -->\n```\n",
    "in a fence of tildes": "It is\n~~~html\n<!-- {} -->\n~~~\n",
    "in a fence of four signs": "It is\n````\n<!-- {} -->\n````\n",
    "in code between two signs": "It is ``<!-- {} -->``.",
    "in indented code": "It is:\n\n    <!-- {} -->\n    <p>\n\nThen save.",
    "in indented code behind a tab": "It is:\n\n\t<!-- {} -->\n",
    "in indented code with a blank line": "# It is\n\n    <div>\n\n    <!--\n    {} -->\n",
    "in indented code below other code": "It is\n\n```\n<p>\n```\n\n    <!-- {} -->\n",
    "behind an erased letter": "It is fnie\b\b\bine, {}.",
    "in bold letters of a manual page": "I\bIt\bt is {}.",
    "in red letters of a formula": r"It is $\textcolor{red}{{}}$.",
    "in an element of a class for overflow": '<p class="overflow-hidden hidden-print md:hidden-x">It is {}.</p>',
    "in a formula about shares": "It is \\(20% of {}\\) and \\(5 % of {}\\), $$ 3\\% {} $$.",
    "about prices": "It costs $$5 or 20% of {}, {{#if}}.",
    "in a footnote": "It is so.[^1]\n\n[^1]: {}\n",
    "in grey letters of a terminal": "It is \x1b[38;5;8m{}\x1b[0m.",
    "in white letters on red": '<b style="background: #c00; color: white">It is {}.</b>',
    "in small letters": '<p style="font-size: 0.8em; transform: scale(0.9)">It is {}.</p>',
    "in an element that is cut to a circle": '<p style="clip-path: circle(50%); clip: auto">It is {}.</p>',
    "in an element": '<p class="a">It is {}.</p>',
    "in the letters of a drawing": "<svg><desc>a drawing</desc><text>It is {}.</text></svg>",
    "between angle brackets": "2 < 3, so it is {}, and 4 > 3.",
    "behind crossed out text": "~~It is fine.~~ It is {}.",
    "between other tildes": "It is ~{}, or ~~ {} ~~.",
    "behind text crossed out by one tilde": "~It is fine.~ It is {}.",
    "about two measures": "It is ~{} (~28 grams), ~/{}/~30 or {}~.",
    "in a path": "It is in ~/{} and ~/old/{}~bak.",
    "in a list of paths": "It is DIRS=~/{}:~/old.",
    "with fixed blanks": "It~is~{} and~so~on.",
    "in an element with a similar name": "<span><b>It is {}</b></span>",
    "in a list of references": "It is so [1].\n\n[1]: it is {}\n",
    "behind an open comment": "It is <!-- {}.",
    "in a coloured element": '<p style="background-color: white; opacity: 0.5; margin-top: 0">It is {}.</p>',
    "in an element that cuts its content": '<p style="overflow:hidden; width: 0.5em" aria-hidden="true">It is {}.</p>',
    "in the text of a link": 'It is [{}](https://example.org/hidden "the source").',
    "in an element with a word of ours in its address": '<a href="/hidden/sr-only-text">It is {}.</a>',
    "behind a comment": "<!-- {} --> It is {}.",
    "in a long text": "It is fine. <br> " * 2_000 + "It is {}." + "It is fine. <br> " * 2_000,
}


@pytest.mark.parametrize("form", HIDDEN)
def test_an_answer_that_no_reader_sees_is_found(tmp_path, form):
    report = scored(tmp_path, golds(20), lambda item: HIDDEN[form].replace("{}", item["gold_claim_substr"][0]))
    assert report.metrics["precision"].value == 1
    assert codes(report) == {("hidden-answers", "error")}


@pytest.mark.parametrize("form", VISIBLE)
def test_an_answer_that_readers_see_is_not(tmp_path, form):
    report = scored(tmp_path, golds(20), lambda item: VISIBLE[form].replace("{}", item["gold_claim_substr"][0]))
    assert (report.metrics["precision"].value, codes(report)) == (1, set())


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ('id="box{}"', '<input id="box{}">'),
        ("--level={}", "Run: tool <command --level={}>"),
        ("https://example.org/{}", "It is shown here:\n\n![diagram](https://example.org/{})"),
        ("https://example.org/{}", 'Open <a href="https://example.org/{}">this page</a>.'),
        ("manual-{}.pdf", "It is in the manual [1].\n\n[1]: manual-{}.pdf"),
        ("{} חודשים", "\u202eאחריות למשך {} חודשים\u202c"),
    ],
)
def test_code_addresses_and_right_to_left_scripts_are_no_hidden_answers(tmp_path, expected, answer):
    items = [{**item, "gold_claim_substr": [expected.replace("{}", item["qid"])]} for item in golds(20)]
    report = scored(tmp_path, items, lambda item: answer.replace("{}", item["qid"]))
    assert (report.metrics["precision"].value, codes(report)) == (1, set())


def test_a_tenth_of_the_right_answers_is_enough_and_two_are_not(tmp_path):
    for folder, count in (("few", 2), ("many", 3)):
        (tmp_path / folder).mkdir()
        report = scored(
            tmp_path / folder,
            golds(30),
            lambda item, count=count: ("<!-- {} -->" if int(item["qid"][1:]) < count else "{}").format(
                item["gold_claim_substr"][0]
            ),
        )
        assert codes(report) == {("hidden-answers", "error") for _ in range(count - 2)}


def test_the_level_is_that_of_the_gates_file(tmp_path):
    for level in ("warning", "off"):
        gates = f"version: 1\ngates: {{precision: {{min: 0.8}}}}\nintegrity: {{hidden-answers: '{level}'}}\n"
        report = scored(tmp_path, golds(20), lambda item: f"<!-- {item['gold_claim_substr'][0]} -->", gates)
        assert codes(report) == ({("hidden-answers", level)} if level == "warning" else set())


def test_many_open_tags_cost_no_time(tmp_path):
    report = scored(
        tmp_path, golds(3), lambda item: f"{item['gold_claim_substr'][0]} " + "<script x=\"<span style='" * 20_000
    )
    assert codes(report) == set()


REFUSALS = {
    "It was Bob in 1987. <!-- I cannot answer that. -->": True,
    "Bob Miller<span hidden> is not mentioned in the provided context.</span>": True,
    "<!-- I cannot answer that. -->": False,  # what readers see is empty, which builtin takes for a refusal
    "I cannot answer that. <!-- trace 17 of 1987 -->": False,
    '<p class="refusal">I cannot answer that.</p>': False,
    "Please ask the support desk. <!-- no-answer -->": False,  # a phrase with markup is what the system writes
    "not in context": False,
}


@pytest.mark.parametrize("claim", REFUSALS)
def test_a_refusal_that_no_reader_sees_is_found(tmp_path, claim):
    items = [{**item, "answerable": False, "gold_claim_substr": [], "gold_citations": []} for item in golds(20)]
    phrases = '["i cannot answer", "<!-- no-answer -->"]'
    gates = f"version: 1\ngates: {{under_refusal: {{max: 0.05}}}}\nrefusal: {{phrases: {phrases}, builtin: true}}\n"
    report = scored(tmp_path, items, lambda _: claim, gates)
    assert report.metrics["under_refusal"].value == 0
    assert codes(report) == ({("hidden-answers", "error")} if REFUSALS[claim] else set())
