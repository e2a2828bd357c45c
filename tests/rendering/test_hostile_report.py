"""A report.json that a stranger wrote: whatever its schema lets pass is shown as text, or it is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import examples
from hostile import PIECES, TEXTS, commands, complaints, replaced
from rag_eval.github.posting import MOST_CHARACTERS, read
from seams import RENDERERS, InputError
from whole_report import (
    BOUND,
    FREE,
    REPORT,
    SCHEMA,
    accepted,
    kind_of,
    shown,
)


def test_the_report_has_a_string_in_every_place_that_a_schema_leaves_free():
    assert not list(SCHEMA.faults(REPORT))
    assert {path[0] for path in FREE} >= {
        *("version", "gates_file", "refusal", "gates", "diagnosis", "questions", "notes", "inputs", "findings", "base"),
        *("policy_changes", "gold_changes", "gate_turns", "signed_at", "slices", "baseline", "flips", "effects", "run"),
    }


@pytest.mark.deep
@pytest.mark.parametrize("piece", PIECES, ids=ascii)
def test_one_hostile_text_in_every_free_place_is_text(piece):
    value = replaced(REPORT, FREE, [f"a{piece}b", piece, f"{piece} "])
    assert complaints(shown(value)) == []


@given(st.lists(TEXTS, min_size=1, max_size=7))
@examples(250)
def test_hostile_texts_in_all_free_fields_are_text(texts):
    assert complaints(shown(replaced(REPORT, FREE, texts))) == []


@given(st.lists(TEXTS, min_size=1, max_size=7))
@examples(40)
def test_no_form_of_it_gives_the_runner_a_command(texts):
    value = replaced(REPORT, FREE, texts)
    assert [line for form in RENDERERS for line in commands(shown(value, form))] == []


ALLOWED = [
    "www.e.test",
    "Octocat@12",
    "@octocat",
    "deadbeef",
    "a__b",
    "1/3",
    ".5",
    "9" * 300,
    "recall_all@3",
    "",
    "min",
    ("<b>@octocat|`" * 9)[:64],
]


@pytest.mark.deep
@pytest.mark.parametrize("text", ALLOWED)
def test_what_the_schema_binds_is_text_too_or_refused(tmp_path, text):
    for path in accepted(BOUND, text):
        output = _said(tmp_path, replaced(REPORT, {path}, [text]))
        assert output is None or complaints(output.text) == [], path


NUMBERS = [0, -1, 3, 0.5, 1e15, -1e15, 2**53 - 1, 1e-300, None]


def numbers_of(value, path=()):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from numbers_of(part, (*path, key))


def _said(tmp_path, value):
    """What would be posted, None where the report is refused."""
    (tmp_path / "report.json").write_text(json.dumps(value), "utf-8")
    try:
        return read(str(tmp_path / "report.json"))
    except InputError:
        return None


NUMBERED = list({kind_of(path): path for path in numbers_of(REPORT)}.values())


@given(st.data())
@examples(100)
def test_numbers_that_no_run_has_are_shown_or_refused(tmp_path_factory, data):
    value = json.loads(json.dumps(REPORT))
    for path in data.draw(st.lists(st.sampled_from(NUMBERED), min_size=1, max_size=3)):
        at = value
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = data.draw(st.sampled_from(NUMBERS))
    output = _said(tmp_path_factory.mktemp("report"), value)
    assert output is None or (complaints(output.text) == [] and len(output.text) < MOST_CHARACTERS)


@given(st.sets(st.sampled_from(sorted(name for name, part in REPORT.items() if isinstance(part, (list, dict))))))
@examples(50)
def test_parts_that_are_empty_are_shown_or_refused(tmp_path_factory, names):
    value = {**REPORT, **{name: type(REPORT[name])() for name in names}}
    output = _said(tmp_path_factory.mktemp("report"), value)
    assert output is None or complaints(output.text) == []


def test_huge_strings_do_not_make_a_huge_comment(tmp_path):
    value = replaced(REPORT, accepted(FREE, "x" * 7_000), ["<b>@octocat|`" * 500])
    value["questions"] = value["questions"] * 40
    output = _said(tmp_path, value)
    assert len(output.text) < MOST_CHARACTERS
    assert complaints(output.text) == []
