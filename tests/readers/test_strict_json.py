import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_eval.readers.strict_json import JsonError, parse
from table import each_row

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def refusal(data, depth=64):
    with pytest.raises(JsonError) as caught:
        parse(data, depth)
    return caught.value


def attempt(data):
    try:
        return parse(data)
    except JsonError as error:
        return error


@given(VALUES, st.booleans())
def test_what_a_json_library_writes_is_read_back_as_it_was(value, ascii_only):
    read = parse(json.dumps(value, ensure_ascii=ascii_only).encode())
    assert read == value
    assert repr(read) == repr(value)


@given(st.binary(max_size=40))
@example(b"\xff")
@example(b'"\\ud800"')
@example(b"[1e999]")
def test_any_bytes_are_read_or_refused_with_words(data):
    outcome = attempt(data)
    assert not isinstance(outcome, JsonError) or outcome.message


@given(st.text('{}[]",:\\u0d8eNa1-. \n', max_size=30))
def test_almost_json_is_read_as_the_standard_library_does_or_refused(text):
    try:
        value = parse(text.encode())
    except JsonError:
        return
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("data", "column", "words"),
    [
        (b"", 1, "the text ends here"),
        (b'{"a": 1', 8, "cut off"),
        (b'{"a": "xyz', 7, "cut off"),
        (b'{"a": 1} {"b": 2}', 10, "a second JSON value begins here"),
        (b'{"a": 1}\n{"b": 2}', 1, "a second JSON value begins here"),
        (b"{'a': 1}", 2, "found ''a': 1}'"),
        (b'{"a": tru}', 7, "found 'tru}'"),
        (b'{"a" 1}', 6, "expecting ':'"),
        (b'["a" "b"]', 6, "expecting ','"),
        (b'["a\tb"]', 4, "control character"),
        (b'["\\x41"]', 3, "escape"),
        (b'["\\u12"]', 4, "escape"),
        (b"[01]", 3, "expecting ','"),
        (b"[+1]", 2, "expecting value"),
        (b"[.5]", 2, "expecting value"),
        (b"[// no\n1]", 2, "expecting value"),
        (b'["\xff"]', 3, "byte 0xff is not valid UTF-8"),
        ('["ä'.encode() + b'\xc3("]', 4, "byte 0xc3 is not valid UTF-8"),
        (b'["\xed\xa0\x80"]', 3, "byte 0xed is not valid UTF-8"),
        (b'\xef\xbb\xbf{"a": 1}', 1, "found U+FEFF"),
        (b'{"a": \xef\xbb\xbf1}', 7, "found U+FEFF"),
        (b"[\xc2\xa01]", 2, "expecting value"),
    ],
)
def test_a_syntax_error_names_its_column_and_what_was_found(data, column, words):
    error = refusal(data)
    assert error.where == f"column {column}"
    assert words in f"{error.message}. {error.hint}"


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [(b'{\n"a": 1,\n oops}', 3, 2), (b'{\n"a":\n "\xff"}', 3, 3), (b"[1,\n2] 3", 2, 4)],
)
def test_a_document_of_several_lines_gets_line_and_column(data, line, column):
    error = refusal(data)
    assert (error.line, error.column) == (line, column)


@each_row(
    ("data", "message"),
    [
        *((f'{{"a": [{name}]}}'.encode(), f"{name} is not JSON") for name in ("NaN", "Infinity", "-Infinity")),
        *((b"%d" % number, f"{number} is an integer of more than 64 bits") for number in (2**64, -(2**63) - 1)),
        (b"9" * 5000, f"{'9' * 23}… is an integer of more than 64 bits"),
        (b"-1e400", "-1e400 is too large for a number"),
        (b"9" * 400 + b".0", f"{'9' * 23}… is too large for a number"),
        (b'{"a": 1, "a": 1}', "the key 'a' occurs twice in one object"),
        (b'{"a": 1, "\\u0061": 2}', "the key 'a' occurs twice in one object"),
        (b'[{"b": {"a" : 1 ,\n"c":2, "a"\t:3}}]', "the key 'a' occurs twice in one object"),
        (b'{"a": {"a": 1}, "a": 2}', "the key 'a' occurs twice in one object"),
        (b'["\\ud800"]', "\\ud800 is half of a surrogate pair"),
        (b'["\\uDFFF x"]', "\\udfff is half of a surrogate pair"),
        (b'{"\\ud83d": 1}', "\\ud83d is half of a surrogate pair"),
        (b'["\\ude00\\ud83d"]', "\\ude00 is half of a surrogate pair"),
        (b'[[{"a": ["\\ud83d\\u0041"]}]]', "\\ud83d is half of a surrogate pair"),
        (b"[" * 60_000 + b"]" * 60_000, "nested deeper than 64 levels"),
    ],
)
def test_what_readers_read_differently_is_refused(data, message):
    assert refusal(data).message == message


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 0, 10**18])
def test_integers_of_64_bits_are_read_exactly(number):
    assert parse(str(number).encode()) == number


def test_a_repeated_key_among_many_is_found_in_linear_time():
    names = ",".join(f'"{number}":1' for number in range(200_000))
    assert refusal(f'{{{names},"199999":1}}'.encode()).message == "the key '199999' occurs twice in one object"


def test_the_same_key_in_different_objects_is_no_duplicate():
    assert parse(b'{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}')["a"] == {"a": 1}


@pytest.mark.parametrize("depth", [1, 2, 64, 200])
def test_nesting_at_the_limit_is_read(depth):
    assert parse(b"[" * depth + b"]" * depth, depth) is not None


@pytest.mark.parametrize("depth", [1, 2, 64, 200])
def test_nesting_one_over_the_limit_is_refused(depth):
    data = b'{"a":' * depth + b"[]" + b"}" * depth
    assert refusal(data, depth).message == f"nested deeper than {depth} levels"


def test_brackets_in_strings_are_no_nesting():
    assert parse(b'["' + b"[{" * 500 + b'", "\\"[[[["]', 1)[1] == '"[[[['


def test_many_brackets_side_by_side_are_no_nesting():
    assert len(parse(b"[" + b",".join([b"[]"] * 500) + b"]", 2)) == 500


def test_a_whole_surrogate_pair_is_one_character():
    assert parse(b'["\\ud83d\\ude00"]') == ["\U0001f600"]


def test_an_escaped_backslash_before_ud800_is_no_surrogate():
    assert parse(b'["\\\\ud800"]') == ["\\ud800"]


@given(st.text(min_size=100, max_size=300))
def test_a_refusal_shows_little_of_the_data(text):
    error = refusal(f"[{json.dumps(text)} x".encode())
    assert len(error.message) < 120
