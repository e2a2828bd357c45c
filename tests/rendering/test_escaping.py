import re
import sys
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import cmarkgfm
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostile import BRACKETED
from rag_eval.common import escaping
from rag_eval.common.escaping import hypertext, log_line, markdown, one_line, prose, quoted, spreadsheet, untabled

PIECES = [
    "`", "``", "```", "|", "\\", "\\|", "||", "@user", "@org/team", "<img src=x onerror=y>", "<script>", "<!--",
    "-->", "![x](http://x.test/p.png)", "[x](http://x.test)", "[x]: http://x.test", "http://x.test", "www.x.test",
    "a@x.test", "<http://x.test>", "#1", "$x$", "**", "__", "~~", "&lt;", "&#64;", "\n", "\r\n", "\r", "\n\n",
    "\ufffe", "\uffff", "\ufdd0", "\t", "    ", " ", "# ", "- ", "> ", "1. ", "---", "===", "::error::",
    "::set-output name=a::", "##[error]", "##[", "##vso[", "=1+1", "+1", "-1", "=", "\u200b", "\u202e", "\u2066",
    "\ufeff", "\u2028", "\u2029", "\x00", "\x1b[31m", "\x07", "\x85", "\ud800", "\U000e0041", "＝1", "😀", "ä", "x",
    "</code>", "</td>", "[ ]", ":-:", "{% raw %}", "${{ x }}",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join)
UNSEEN = {"Cc", "Cs"}
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.comments, self.cells, self.texts = [], [], [], 0, []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.cells += tag in ("td", "th")

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        self.comments.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def rendered(text):
    # Whatever gets through as HTML must show here, so nothing is filtered.
    return Tags(cmarkgfm.github_flavored_markdown_to_html(text, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE))


def table(cell):
    return rendered(f"| a | b | c |\n|---|---|---|\n| x | {cell} | y |\n| x | y | z |\n")


def test_what_is_taken_out_of_a_text_is_not_printable():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    taken = [*re.findall(escaping._INVISIBLE, everything), *"".join(re.findall(escaping._BREAK, everything))]
    assert len(taken) > 200
    assert [item for item in taken if item.isprintable()] == []


@given(HOSTILE)
@example("\\|")
@example("a\\")
@example("`|`")
@example("``` x")
def test_a_cell_is_one_code_span(text):
    page = table(markdown(text))
    assert sorted({*page.tags} - {"em"}) in (
        ["code", "table", "tbody", "td", "th", "thead", "tr"],
        ["table", "tbody", "td", "th", "thead", "tr"],
    )
    assert page.tags.count("code") + page.tags.count("em") == 1
    assert page.attributes == page.comments == []


@given(HOSTILE)
@example("\\\\|")
def test_a_table_keeps_its_rows_and_columns(text):
    page = table(markdown(text))
    assert (page.tags.count("tr"), page.cells) == (3, 9)


@given(HOSTILE)
@example("```")
def test_a_paragraph_is_one_code_span(text):
    page = rendered(f"{markdown(text)} end\n")
    assert page.tags in (["p", "code"], ["p", "em"])
    assert page.attributes == page.comments == []
    assert "".join(page.texts).rstrip("\n").endswith(" end")


@given(HOSTILE)
def test_a_cell_shows_the_original_text(text):
    page = table(markdown(text, 500))
    shown = "".join(page.texts).replace("\u200b", "")
    assert one_line(text, 500) in shown or not one_line(text, 500)


@given(HOSTILE)
@example("a|b")
@example("a\\|b")
def test_outside_of_a_table_the_text_is_shown_without_what_a_cell_needs(text):
    page = rendered(f"- {untabled(markdown(text, 500))}\n")
    shown = "".join(page.texts).replace("\u200b", "").strip("\n")
    assert page.tags in (["ul", "li", "code"], ["ul", "li", "em"])
    assert shown.strip() == (one_line(text, 500).replace("\u200b", "").strip() or "(empty)")


@given(HOSTILE)
def test_nobody_is_mentioned(text):
    assert not re.search(r"@(?!\u200b)", markdown(text))


@given(HOSTILE)
@example("\n::error::x")
@example("\u200b::error::x")
@example("\x00 ::error::x")
@example("##\x00[error]")
@example("##\u200b##[[x]")
@example("###vso[task.complete result=Succeeded]")
def test_a_log_line_is_no_command(text):
    line = log_line(text)
    assert not line.lstrip().startswith("::")
    assert not BRACKETED.search(line)


@given(HOSTILE)
def test_a_log_line_is_one_line(text):
    assert len(log_line(text).splitlines()) <= 1


@given(HOSTILE)
@example("\x00=1")
@example("\u200b=1")
@example("\n=1")
@example(" =1")
@example("x;=1")
@example("x;\n =1")
@example("\xa0\t@SUM(1)")
def test_a_cell_of_a_spreadsheet_is_no_formula(text):
    """Whatever a spreadsheet takes for a separator; most strip blanks."""
    for cell in re.split("[;\t\n\r]", spreadsheet(text)):
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
    assert not spreadsheet(text).startswith(("\t", "\r", "\n"))


@given(HOSTILE)
@example("x\r::add-mask::pass")
@example("x\r\n ::error::x")
@example("\r\x00::error::x")
def test_no_line_of_a_cell_of_a_spreadsheet_is_a_command(text):
    """The runner ends a line at each of the three."""
    lines = re.split("\r\n|\r|\n", spreadsheet(text))
    assert [line for line in lines if line.lstrip().startswith("::") or BRACKETED.search(line)] == []


@given(HOSTILE)
@example("a\ufffeb\uffff\ufdd0")
def test_one_line_returns_valid_xml_text(text):
    root = ET.Element("failure", message=one_line(text))
    assert ET.fromstring(ET.tostring(root, "unicode")).get("message") == one_line(text)


@pytest.mark.parametrize("text", ["A0001", "a=b", "3-4", "", "ä", " a", "a; b", "x, -1"])
def test_harmless_text_goes_into_a_spreadsheet_as_it_is(text):
    assert spreadsheet(text) == text


class Read(HTMLParser):
    """What an HTML parser makes of a text in an element and in an attribute."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.said, self.attributes = [], "", []
        self.feed(f'<p title="{text}">{text}</p>')
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.said += data


@given(HOSTILE)
@example("&lt;b&gt; &#64; ##[x")
def test_hypertext_reads_as_it_was_written_and_is_nothing_else(text):
    read = Read(hypertext(text))
    meant = re.sub("[\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+", " ", text)
    meant = "".join(sign for sign in meant if sign != "\x1f" and one_line(f"a{sign}b") != "ab")
    assert read.tags == ["p"]
    assert read.attributes == [("title", meant)]
    assert read.said == meant
    assert not BRACKETED.search(hypertext(text))


@pytest.mark.parametrize(
    "make", [one_line, markdown, hypertext, log_line, spreadsheet, quoted], ids=lambda make: make.__name__
)
@given(text=HOSTILE)
def test_control_and_bidirectional_characters_are_gone(make, text):
    remaining = set(make(text)) - (set("\t\r\n") if make is spreadsheet else set())
    assert not {character for character in remaining if unicodedata.category(character) in UNSEEN}
    assert not remaining & BIDI


@given(HOSTILE, st.integers(1, 100))
@example(" " * 1000 + "x", 80)
@example("\u200b" * 1000 + "x", 80)
def test_one_line_is_one_line_of_at_most_its_limit(text, limit):
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    assert line == line.strip()


@given(st.text("abc", max_size=100), st.integers(1, 100))
def test_what_was_cut_ends_with_an_ellipsis_and_what_was_not_does_not(text, limit):
    assert one_line(text, limit) == (text if len(text) <= limit else text[: limit - 1] + "…")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | HOSTILE,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    )
)
def test_any_value_is_quoted_in_few_characters(value):
    assert 0 < len(quoted(value)) <= 82


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "null"), (True, "true"), ([], "an empty list"), ({}, "an empty object"), ([1], "a list with 1 entry"),
     ({"a": 1}, "an object with 1 key"), (1.5, "1.5"), ("it's", "'it's'")],
)  # fmt: skip
def test_a_value_is_shown_as_json_names_it(value, shown):
    assert quoted(value) == shown


@given(HOSTILE)
@example("www.example.org")
@example("see GH-12 and 0123456789abcdef")
@example("a_b_c __d__ :smile: #1")
@example("::error::x")
def test_prose_is_words_or_one_code_span(text):
    """Nothing in it is a tag, a link or an emphasis: either there is no markup at all, or one span around it."""
    html = cmarkgfm.github_flavored_markdown_to_html(f"x {prose(text)}").strip()
    inner = html.removeprefix("<p>x ").removesuffix("</p>")
    if "<" in inner:
        assert re.fullmatch("(<code>[^<]*</code>|<em>\\(empty\\)</em>)", inner)
    else:
        assert not re.search("[@#&]|://|www\\.", inner.replace("&quot;", ""))
        assert inner == one_line(text)


@pytest.mark.parametrize(
    "text", ["item 'Q03' was changed, and no new record signs it", "9 of 9 (100 %): cite_all; see eval/gold.jsonl."]
)
def test_plain_words_stay_plain_words(text):
    assert prose(text) == text.replace("_", "\\_")


@pytest.mark.parametrize(
    "text", ["www.example.org", "GH-12", "0123abc", "#12", "a:b", ":tada:", "<b>", "*x*", "[a](b)"]
)
def test_what_github_would_make_a_link_or_an_emoji_of_is_a_span(text):
    assert prose(text) == f"`{text}`"
