"""Tests of the table decorator itself: it runs every row and names every row that failed."""

import pytest

from table import each_row


def test_every_failed_row_is_named_and_every_row_runs():
    seen = []

    @each_row(("number", "even"), [(1, False), (2, False), (3, True), (4, True)])
    def is_even(number, even):
        seen.append(number)
        assert (number % 2 == 0) is even

    with pytest.raises(pytest.fail.Exception) as failure:
        is_even()
    assert seen == [1, 2, 3, 4]
    output = str(failure.value)
    assert output.startswith("2 of 4 rows failed:\n[2-False] AssertionError")
    assert "[3-True]" in output
    assert "[1-" not in output


def test_rows_are_named_by_ids():
    @each_row("word", ["a", "b"], ids=str.upper)
    def never(word):
        raise ValueError(word)

    with pytest.raises(pytest.fail.Exception, match=r"\[A\] ValueError: a\n\[B\] ValueError: b"):
        never()


def test_a_row_may_have_its_own_name():
    @each_row(("word", "size"), [("a", 1), pytest.param("b", 2, id="second")])
    def has_size(word, size):
        assert len(word) == size

    with pytest.raises(pytest.fail.Exception, match=r"1 of 2 rows failed:\n\[second\]"):
        has_size()


def test_a_table_without_rows_is_a_failure():
    @each_row("word", [])
    def never(word):
        raise ValueError(word)

    with pytest.raises(AssertionError, match="no rows"):
        never()


def test_a_missing_exception_is_listed_too():
    @each_row("word", ["a", "b"])
    def raises(word):
        with pytest.raises(ValueError):
            len(word)

    with pytest.raises(pytest.fail.Exception, match="2 of 2 rows failed"):
        raises()


@each_row("number", [1, 2])
def test_fixtures_are_given(number, tmp_path):
    (tmp_path / str(number)).touch()
    assert number in (1, 2)
    assert tmp_path.is_dir()
