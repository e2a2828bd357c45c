"""What GitHub's runner is told cannot be turned into something else by what stands in the data."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_eval.action.runner import annotation, limit_per_level
from rag_eval.github.posting import Annotation

HOSTILE = st.text(st.sampled_from("ab:,%\n\r#[]\u202e\x1b=`@ "), max_size=40)


def test_an_annotation_names_file_line_and_title():
    line = annotation("error", "too short", "eval/gold.jsonl", 17, "cannot be judged")
    assert line == "::error file=eval/gold.jsonl,line=17,title=cannot be judged::too short"


def test_an_annotation_of_a_whole_file_has_no_line():
    assert annotation("error", "is empty", "eval/gold.jsonl") == "::error file=eval/gold.jsonl::is empty"


def test_signs_of_the_runner_are_written_as_it_reads_them():
    assert annotation("error", "50% left: a, b", "a,b:c%.jsonl") == "::error file=a%2Cb%3Ac%25.jsonl::50%25 left: a, b"


def test_a_long_message_is_cut():
    assert annotation("error", "x" * 4001) == f"::error::{'x' * 4000}"
    assert annotation("error", "x" * 4000) == f"::error::{'x' * 4000}"


def test_an_annotation_without_a_file_has_no_line():
    assert annotation("notice", "no comment", line=3) == "::notice::no comment"


@given(HOSTILE, HOSTILE, HOSTILE)
def test_an_annotation_is_one_line_with_its_own_command_and_properties(message, file, title):
    line = annotation("warning", message, file, 1, title)
    command, _, data = line.removeprefix("::").partition("::")
    assert "\n" not in line
    assert "\r" not in line
    assert "##[" not in line
    assert command.split(" ")[0] == "warning"
    properties = [part.split("=", 1)[0] for part in command.partition(" ")[2].split(",") if part]
    assert set(properties) <= {"file", "line", "title"}
    assert len(data) <= 5000


def test_ten_annotations_of_each_level_are_kept_in_their_order():
    first = Annotation("notice", "first", "", 0, "")
    notes = [Annotation(level, str(at), "f", at, "t") for at in range(25) for level in ("error", "warning")]
    assert list(limit_per_level([first, *notes])) == [first, *notes[:20]]
