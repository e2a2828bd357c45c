import gzip
import hashlib
import os
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.readers.problems import Unreadable
from rag_eval.readers.source import MIB, SourceFile, refuse_outside
from reading import put, reader, said

zstd = pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")


def numbered(path, root=None, **limits):
    """Lines with their numbers, and what was complained about."""
    result = reader(root, **limits)
    with result.open(path) as source:
        return list(source.lines()), said(result.ledger, path)


def refusal(path, root=None, **limits):
    lines, problems = numbered(path, root, **limits)
    assert lines == []
    assert len(problems) == 1
    return problems[0]


def test_lines_are_numbered_from_one(tmp_path):
    assert numbered(put(tmp_path, b"a\nb\n")) == ([(1, b"a"), (2, b"b")], [])


def test_the_last_line_needs_no_line_break(tmp_path):
    assert numbered(put(tmp_path, b"a\nb"))[0] == [(1, b"a"), (2, b"b")]


def test_a_byte_order_mark_is_dropped(tmp_path):
    assert numbered(put(tmp_path, b"\xef\xbb\xbfa\n"))[0] == [(1, b"a")]


def test_a_file_of_a_byte_order_mark_alone_is_empty(tmp_path):
    assert numbered(put(tmp_path, b"\xef\xbb\xbf")) == ([], [])


def test_an_empty_file_has_no_lines(tmp_path):
    assert numbered(put(tmp_path, b"")) == ([], [])


def test_crlf_ends_a_line_as_lf_does(tmp_path):
    assert [line.strip() for _, line in numbered(put(tmp_path, b"a\r\nb\r\n"))[0]] == [b"a", b"b"]


def test_blank_lines_are_skipped_and_counted(tmp_path):
    assert numbered(put(tmp_path, b"\n\na\n \t\r\n\nb"))[0] == [(3, b"a"), (6, b"b")]


@given(st.lists(st.sampled_from([b"", b"x", b"{}", b" ", b"y" * 70_000, b"z" * 65_535]), max_size=12), st.booleans())
def test_numbers_are_right_across_blocks_and_blank_lines(tmp_path_factory, lines, closed):
    path = put(tmp_path_factory.mktemp("numbers"), b"\n".join(lines) + b"\n" * closed)
    expected = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    assert numbered(path) == (expected, [])


PACKERS = {"gz": gzip.compress, "zst": zstd.compress}
NOISE = random.Random(7)  # what does not compress well, the same on every run
TEXT = b"".join(b'{"qid": "%d", "x": "%s"}\n' % (number, NOISE.randbytes(30).hex().encode()) for number in range(4000))


@pytest.mark.parametrize("ending", PACKERS)
def test_a_compressed_file_is_read_as_the_plain_one(tmp_path, ending):
    packed = put(tmp_path, PACKERS[ending](TEXT), f"a.jsonl.{ending}")
    assert numbered(packed) == numbered(put(tmp_path, TEXT))


@pytest.mark.parametrize("ending", PACKERS)
def test_compression_is_seen_by_content_not_by_name(tmp_path, ending):
    assert numbered(put(tmp_path, PACKERS[ending](b"a\n"), "a.jsonl"))[0] == [(1, b"a")]


@pytest.mark.parametrize("ending", PACKERS)
def test_a_byte_order_mark_inside_a_compressed_file_is_dropped(tmp_path, ending):
    assert numbered(put(tmp_path, PACKERS[ending](b"\xef\xbb\xbfa\n")))[0] == [(1, b"a")]


@pytest.mark.parametrize("ending", PACKERS)
def test_a_compressed_file_that_is_cut_off_is_one_problem_without_half_a_line(tmp_path, ending):
    packed = PACKERS[ending](TEXT)
    lines, problems = numbered(put(tmp_path, packed[: len(packed) // 2]))
    assert len(problems) == 1
    assert "cut off" in problems[0]
    assert lines == numbered(put(tmp_path, TEXT))[0][: len(lines)]


@pytest.mark.parametrize("ending", PACKERS)
def test_damage_inside_a_compressed_file_is_a_problem(tmp_path, ending):
    packed = bytearray(PACKERS[ending](TEXT))
    packed[len(packed) // 2 :] = NOISE.randbytes(200)
    assert len(numbered(put(tmp_path, bytes(packed)))[1]) == 1


@pytest.mark.parametrize("ending", PACKERS)
def test_a_cut_file_has_no_whole(tmp_path, ending):
    result = reader()
    packed = PACKERS[ending](TEXT)
    with result.open(put(tmp_path, packed[: len(packed) // 2])) as source:
        assert source.whole() is None
    assert result.ledger.count == 1


@pytest.mark.parametrize("ending", PACKERS)
def test_a_bomb_is_stopped_at_the_cap_on_the_expanded_size(tmp_path, ending):
    path = put(tmp_path, PACKERS[ending](b"\n" * (8 * MIB)))
    assert "more than 1 MiB when expanded" in refusal(path, expanded_mib=1)


def test_the_cap_on_the_expanded_size_is_inclusive(tmp_path):
    assert numbered(put(tmp_path, gzip.compress(b"\n" * MIB)), expanded_mib=1) == ([], [])


def test_the_cap_on_the_expanded_size_is_none_on_a_plain_file(tmp_path):
    assert numbered(put(tmp_path, b"\n" * (2 * MIB)), expanded_mib=1) == ([], [])


def test_a_line_of_exactly_the_limit_is_read(tmp_path):
    assert len(numbered(put(tmp_path, b"x" * MIB + b"\na\n"), line_mib=1)[0][0][1]) == MIB


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_one_byte_over_the_limit_is_a_problem_on_its_line(tmp_path, end):
    path = put(tmp_path, b"a\n" + b"x" * (MIB + 1) + end)
    lines, problems = numbered(path, line_mib=1)
    assert lines == [(1, b"a")]
    assert problems == ["FILE:2: a line of more than 1 MiB. Raise limits.line_mib if this is intended."]


def test_lines_after_an_over_long_one_keep_their_numbers(tmp_path):
    path = put(tmp_path, b"x" * (3 * MIB) + b"\na\n\n" + b"y" * (2 * MIB) + b"\nb")
    lines, problems = numbered(path, line_mib=1)
    assert lines == [(2, b"a"), (5, b"b")]
    assert [problem.split(":")[1] for problem in problems] == ["1", "4"]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_exactly_as_many_lines_as_the_limit_are_read(tmp_path, end):
    assert numbered(put(tmp_path, b"a\nb\nc" + end), lines=3)[1] == []


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_one_line_over_the_limit_is_a_problem_on_that_line(tmp_path, end):
    assert numbered(put(tmp_path, b"a\nb\nc\nd" + end), lines=3)[1] == [
        "FILE:4: more than 3 lines. Split the file or raise limits.lines."
    ]


@pytest.mark.parametrize(("size", "fits"), [(MIB, True), (MIB + 1, False)])
def test_the_limit_of_a_file_read_whole_is_inclusive(tmp_path, size, fits):
    result = reader(whole_mib=1)
    with result.open(put(tmp_path, b"x" * size)) as source:
        assert (source.whole() is not None) is fits
    assert result.ledger.count == (not fits)


@pytest.mark.parametrize("data", [b"x" * 10, b"\xef\xbb\xbf{}\n", gzip.compress(b"a\n" * 9), zstd.compress(TEXT), TEXT])
def test_the_digest_is_that_of_the_bytes_as_they_are_stored(tmp_path, data):
    digest = hashlib.sha256()
    with reader().open(put(tmp_path, data), digest) as source:
        assert list(source.lines())
    assert digest.hexdigest() == hashlib.sha256(data).hexdigest()


def test_a_missing_file_is_a_problem(tmp_path):
    assert refusal(str(tmp_path / "none")) == "FILE: no such file. Check the path."


def test_a_folder_is_refused(tmp_path):
    assert "is a folder" in refusal(str(tmp_path))


def test_a_link_inside_the_folder_is_followed(tmp_path):
    put(tmp_path, b"a\n", "real")
    (tmp_path / "link").symlink_to("real")
    assert numbered(str(tmp_path / "link"))[0] == [(1, b"a")]


def test_a_link_into_a_folder_whose_name_only_begins_alike_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "inside").mkdir()
    put(tmp_path / "inside", b"secret\n", "secret")
    (tmp_path / "in" / "link").symlink_to("../inside/secret")
    assert "leads out" in refusal(str(tmp_path / "in" / "link"))


def test_a_link_to_elsewhere_inside_the_workspace_is_followed(tmp_path):
    (tmp_path / "eval").mkdir()
    put(tmp_path, b"a\n", "real")
    (tmp_path / "eval" / "link").symlink_to("../real")
    assert numbered(str(tmp_path / "eval" / "link"), str(tmp_path))[0] == [(1, b"a")]


def test_a_path_out_of_the_workspace_is_refused_without_any_link(tmp_path):
    (tmp_path / "work").mkdir()
    path = put(tmp_path, b"a\n")
    assert "leads out of the workspace" in refusal(path, str(tmp_path / "work"))
    assert "leads out of the workspace" in refusal(str(tmp_path / "work" / ".." / "data.jsonl"), str(tmp_path / "work"))


def test_the_advice_is_about_a_link_only_where_there_is_one(tmp_path):
    (tmp_path / "work").mkdir()
    data = put(tmp_path, b"a\n")
    (tmp_path / "work" / "link").symlink_to("../data.jsonl")
    (tmp_path / "work" / "folder").symlink_to("..")
    advice = []
    for path in (data, str(tmp_path / "work" / "link"), str(tmp_path / "work" / "folder" / "data.jsonl")):
        with pytest.raises(Unreadable) as refused:
            refuse_outside(path, str(tmp_path / "work"))
        advice.append(refused.value.hint)
    assert [hint[:20] for hint in advice] == ["Give the path relati", "Replace the link wit", "Replace the link wit"]


def test_a_folder_that_is_a_link_itself_is_no_way_out(tmp_path):
    (tmp_path / "real").mkdir()
    put(tmp_path / "real", b"a\n", "data")
    (tmp_path / "link").symlink_to("real")
    assert numbered(str(tmp_path / "link" / "data"))[0] == [(1, b"a")]


def test_a_path_above_the_current_folder_is_fine_by_itself(tmp_path, monkeypatch):
    put(tmp_path, b"a\n")
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    assert numbered("../data.jsonl")[0] == [(1, b"a")]


def test_a_name_with_a_null_character_is_refused():
    assert "not a valid file name" in refusal("a\0b") == refusal("a\ud800b")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has files of this kind")
def test_a_file_of_the_system_that_may_never_end_is_refused():
    assert "larger than its stated size" in refusal("/proc/self/environ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    path = put(tmp_path, b"a\n")
    os.chmod(path, 0)  # noqa: PTH101
    assert "permission denied" in refusal(path)


class Failing:
    def __init__(self, *blocks):
        self.blocks, self.closed = list(blocks), False

    def read(self, _):
        if not self.blocks:
            raise OSError(5, "Input/output error")
        return self.blocks.pop(0)

    def close(self):
        self.closed = True


def test_a_disk_that_fails_at_once_is_said_and_the_file_closed():
    file = Failing()
    with pytest.raises(Unreadable, match="input/output error"):
        SourceFile("x", reader(), file, None)
    assert file.closed


def test_a_disk_that_fails_later_is_a_problem():
    result = reader()
    with SourceFile("x", result, Failing(b"a\nb"), None) as source:
        assert list(source.lines()) == [(1, b"a")]
    assert result.ledger.count == 1
