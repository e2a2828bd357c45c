from decimal import Decimal

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from rag_eval.readers import yaml_file
from rag_eval.readers.yaml_file import YamlError, parse
from table import each_row


def attempt(text):
    try:
        return parse(text)
    except YamlError as error:
        return error


def refusal(text):
    with pytest.raises(YamlError) as caught:
        parse(text)
    return caught.value


@each_row(
    "number",
    ["1:30", "190:20:30.15", "0x1F", "017", "0b11", "1_000", "+5", "1.5e+3", "685.230_15e+03", ".inf", "-.INF", ".nan",
     "01.5", "9" * 19, "-017"],
)  # fmt: skip
def test_a_number_that_readers_read_differently_is_refused(number):
    error = refusal(f"a:\n  - {number}\n")
    assert "is not a plain number" in error.message
    assert (error.line, error.column) == (2, 5)


@each_row(
    ("text", "value"),
    [
        ("5", 5), ("-3", -3), ("0", 0), ("0.80", Decimal("0.80")), (".5", Decimal("0.5")), ("1.", Decimal(1)),
        ("-0.25", Decimal("-0.25")), ("true", True), ("no", False), ("Off", False), ("null", None), ("~", None),
        ("", None), ("1e3", "1e3"), ("0o17", "0o17"), ("2026-01-02", "2026-01-02"), ("1.2.3", "1.2.3"), ("=", "="),
        ("'0.80'", "0.80"), ('"1:30"', "1:30"), ("|\n  x\n", "x\n"), ("[]", []), ("{}", {}),
    ],
)  # fmt: skip
def test_a_plain_value_is_read_as_it_is_written(text, value):
    read = parse(f"a: {text}").value["a"]
    assert read == value
    assert type(read) is type(value)


def test_a_decimal_keeps_its_zeros():
    assert str(parse("a: 0.80").value["a"]) == "0.80"


@pytest.mark.parametrize("key", ["1", "null", "true", "0x1", "<<", "2026-01-01"])
def test_a_key_is_always_text(key):
    assert parse(f"{key}: 1").value == {key: 1}


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused_before_it_costs_anything(opening):
    assert refusal(opening * 50_000).message


def test_nesting_beyond_32_levels_is_refused():
    assert parse("a: " + "[" * 32 + "]" * 32).value
    assert "nested deeper than 32 levels" in refusal("a: " + "[" * 33 + "]" * 33).message


@pytest.mark.parametrize("text", ["", "\n", "# only words\n", "---\n", "--- ~\n"])
def test_an_empty_text_is_an_empty_mapping(text):
    assert parse(text).value == {}


def test_every_value_knows_its_place():
    positions = parse("a: 1\nb:\n  - x\n  - {c/d: ~}\n").positions
    assert positions == {"": (1, 1), "/a": (1, 1), "/b": (2, 1), "/b/0": (3, 5), "/b/1": (4, 5), "/b/1/c~1d": (4, 6)}


def test_a_refusal_shows_little_of_the_data():
    assert len(refusal(f"a: {'9' * 500}").message) < 80
    assert len(refusal(f"{'k' * 100}: 1\n{'k' * 100}: 1").message) < 100


@given(st.text('ab:-[]{}&*!|>"#%@`, \n\t0.1?\x01\ufeff\x85\u2028ä', max_size=30))
@example("\ufeff\ufeff")
@example("a: \ufeffb")
@example('"\\xD8"')
@example(":\x850")
def test_any_text_is_read_or_refused(text):
    outcome = attempt(text)
    assert not isinstance(outcome, YamlError) or (
        outcome.message and outcome.hint and min(outcome.line, outcome.column) >= 1
    )


@given(st.text('ab:-[]{}&*!|>"#%, \n\t0.1?\x01', max_size=30))
def test_libyaml_and_the_pure_reader_read_the_same(text):
    def outcome(loader):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml_file, "_LOADER", loader)
            try:
                return parse(text).value
            except YamlError:
                return YamlError

    quick, pure = outcome(yaml.CSafeLoader), outcome(yaml.SafeLoader)
    # The two disagree on some ill-formed texts; what both read must be one value.
    assert YamlError in (quick, pure) or quick == pure
