"""What people see in a terminal: the verdict first, what failed, at most a hundred columns."""

import io
import json
import os
import re
import unicodedata

import pytest

from cases import ROOT, gold_row, trace_row, write_rows
from seams import COMMANDS, main

QUICKSTART = ROOT / "examples" / "quickstart"
BAD = ("score", "--gold", QUICKSTART / "gold.jsonl", "--trace", QUICKSTART / "bad.jsonl")
BAD = (*BAD, "--gates", QUICKSTART / "eval-gates.yml")
INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u206f\ufeff]")


@pytest.fixture
def rag(capsys):
    """Run a command: exit code and stdout."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Thirty questions, all answered wrongly, with long texts of wide characters and hostile names."""
    texts = [
        "那么这个问题的答案到底是什么呢" * 4,
        "What does it cost to send a parcel of four kilogrammes abroad? " * 3,
    ]
    golds = [
        gold_row(
            qid=f"{'::' if n == 3 else 'Q'}{n:02}",
            question=texts[n % 2],
            gold_claim_substr=["twelve euros"],
            gold_citations=["a"],
        )
        for n in range(30)
    ]
    traces = [trace_row(qid=row["qid"], answer_json={"claim": "wrong", "citations": []}) for row in golds]
    write_rows(tmp_path / "eval/gold.jsonl", golds)
    write_rows(tmp_path / "runs/trace.jsonl", traces)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def columns(line):
    return sum(2 if unicodedata.east_asian_width(item) in "WF" else 1 for item in line)


def test_the_verdict_is_the_first_line(rag):
    code, out = rag(*BAD)
    assert code == 1
    assert out.startswith("FAILED  4 of 8 gates · 6 of 14 questions wrong\n\nGate ")


def test_a_passing_run_takes_few_lines(rag):
    code, out = rag(*(item if item != QUICKSTART / "bad.jsonl" else QUICKSTART / "good.jsonl" for item in BAD))
    assert code == 0
    assert out.startswith("PASSED  8 of 8 gates · all 14 questions right\n\nAlso measured: ")
    assert out.count("\n") == 3


def test_failed_gates_come_before_wrong_questions_and_the_rest_is_counted(rag):
    out = rag(*BAD)[1]
    positions = [out.index(part) for part in ("Gate", "precision", "6 of 14 questions fail", "Q02", "Also measured: ")]
    assert positions == sorted(positions)
    assert "over_refusal " not in out
    *_, measured, next_step = out.splitlines()
    assert re.match(r"Also measured: 4 passed gates, \d+ metrics in 8 groups\. ", measured)
    assert next_step == "To see why a question is wrong: rag-eval explain QID"


def test_verbose_shows_everything(rag):
    out = rag(*BAD, "-v")[1]
    for part in (
        "over_refusal ",
        "Groundedness: ",
        "No data for ",
        "then check\n  the prompt",
        "14 of 14 expected answers",
    ):
        assert part in out


def test_brackets_and_abbreviations_are_explained(rag):
    assert "In brackets: 95 % confidence intervals. chr: citation hit rate." in rag(*BAD)[1]


@pytest.mark.parametrize(("earlier", "broken"), [("good", True), ("bad", False)])
def test_questions_that_flipped_show_their_old_labels(rag, tmp_path, earlier, broken):
    traces = {name: (QUICKSTART / f"{name}.jsonl").read_text("utf-8").splitlines() for name in ("good", "bad")}
    report, mixed = tmp_path / "baseline.json", tmp_path / "trace.jsonl"
    report.write_text(rag(*BAD[:4], QUICKSTART / f"{earlier}.jsonl", *BAD[5:], "--format", "json")[1], "utf-8")
    mixed.write_text("\n".join([*traces["good"][:3], *traces["bad"][3:]]), "utf-8")
    out = rag(*BAD[:4], mixed, *BAD[5:], "--baseline", report)[1]
    assert ("Question    Was " in out, "Newly broken (0)" in out) == (True, not broken)


def test_ten_wrong_questions_are_shown_and_then_how_to_see_more(rag, many):
    brief, whole = rag("score")[1], rag("score", "--verbose")[1]
    assert sum(bool(re.match("Q[0-9]", line)) for line in brief.splitlines()) == 9  # and ::03
    assert "… and 20 more; --format json has all." in brief
    assert sum(bool(re.match("Q[0-9]", line)) for line in whole.splitlines()) == 29


@pytest.mark.parametrize("more", [(), ("-v",)])
def test_no_line_is_wider_than_a_hundred_columns(rag, many, more):
    for out in (rag("score", *more)[1], rag(*BAD, *more)[1]):
        assert [line for line in out.splitlines() if columns(line) > 100] == []


def test_columns_are_aligned_whatever_the_characters(rag, many):
    (many / "runs/trace.jsonl").write_text(
        (many / "runs/trace.jsonl").read_text("utf-8").replace("Q00", "問零零"), encoding="utf-8"
    )
    (many / "eval/gold.jsonl").write_text(
        (many / "eval/gold.jsonl").read_text("utf-8").replace("Q00", "問零零"), encoding="utf-8"
    )
    rows = [line for line in rag("score")[1].splitlines() if " NOT_RETRIEVED " in line]
    assert len({columns(line[: line.index("NOT_RETRIEVED")]) for line in rows}) == 1


def test_nothing_invisible_is_printed_and_no_command_of_githubs_runner(rag, many):
    out = rag("score")[1]
    assert not INVISIBLE.search(out)
    assert not [line for line in out.splitlines() if line.lstrip().startswith("::")]
    assert ": :03" in out


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "is_coloured"),
    [
        (Terminal, {}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"NO_COLOR": ""}, True),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {}, False),
        (io.StringIO, {"FORCE_COLOR": "1"}, True),
        (io.StringIO, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_follow_the_environment_and_change_no_text(monkeypatch, stream, environment, is_coloured):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown, plain = stream(), io.StringIO()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", shown)
    main([str(item) for item in BAD])
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", plain)
    main([str(item) for item in BAD])
    assert ("\x1b[" in shown.getvalue()) is is_coloured
    assert re.sub("\x1b\\[[0-9;]*m", "", shown.getvalue()) == plain.getvalue()


@pytest.mark.parametrize("command", [BAD, ("gate", ROOT / "tests" / "expected" / "compared" / "report.json")])
def test_no_color_prints_no_colours(rag, monkeypatch, command):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with_colours, without = rag(*command)[1], rag(*command, "--no-color")[1]
    assert "\x1b[" in with_colours
    assert without == re.sub("\x1b\\[[0-9;]*m", "", with_colours)


def test_red_is_what_failed_yellow_what_is_open_and_green_what_passed(rag, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = rag("gate", ROOT / "tests" / "expected" / "compared" / "report.json", "-v")[1]
    assert set(re.findall("\x1b\\[1;([0-9]+)m([^\x1b]*)\x1b\\[0m", out)) == {
        ("31", "FAILED"),
        ("31", "failed"),
        ("32", "passed"),
        ("33", "inconclusive"),
        ("33", "no data"),
        ("33", "warning"),
    }


@pytest.mark.parametrize("command", ["score", "gate", "history", "compare", "probe"])
def test_piped_output_is_the_same_as_on_a_terminal(rag, monkeypatch, tmp_path, command):
    report = tmp_path / "report.json"
    report.write_text(rag(*BAD, "--format", "json")[1], encoding="utf-8")
    good, bad, gold = QUICKSTART / "good.jsonl", QUICKSTART / "bad.jsonl", QUICKSTART / "gold.jsonl"
    words = {
        "score": BAD,
        "gate": ("gate", report),
        "history": ("history", tmp_path),
        "compare": ("compare", "--gold", gold, good, bad),
        "probe": ("probe", "--gold", gold, "--trace", good, "--gates", QUICKSTART / "eval-gates.yml"),
    }[command]
    monkeypatch.setenv("NO_COLOR", "1")
    piped, terminal = rag(*words)[1], Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    main([str(word) for word in words])
    assert piped == terminal.getvalue()
    assert "|--" not in piped
    assert os.linesep.join(line for line in piped.splitlines() if columns(line) > 100) == ""


def test_missing_traces_are_counted_in_the_verdict(rag, many):
    (many / "runs/trace.jsonl").write_text("", encoding="utf-8")
    first = rag("score")[1].splitlines()[0]
    assert first.startswith("FAILED  30 missing traces (allowed: 0) · ")
    assert first.endswith(" · 30 of 30 questions wrong")


def test_names_with_a_cutoff_do_not_make_a_sentence_code(rag):
    out = rag(*BAD, "--format", "markdown")[1]
    [line] = [line for line in out.splitlines() if "No data for" in line]
    assert line.startswith("No data for ")
    assert json.dumps(line).count("`") == 0


@pytest.mark.parametrize(
    ("terminal", "columns", "width"),
    [
        (500, "", 120),
        (60, "", 60),
        (None, "", 100),
        (500, "80", 80),
        (60, "x", 60),
        (None, "0", 100),
        (60, "9" * 12, 99_999),
    ],
)
def test_help_is_as_wide_as_the_terminal_within_limits(command, monkeypatch, terminal, columns, width):
    def size(*_):
        if terminal is None:
            raise OSError
        return os.terminal_size((terminal, 24))

    monkeypatch.setattr(os, "get_terminal_size", size)
    monkeypatch.setenv("COLUMNS", columns)
    shown = {}
    for known in ("", width - 1, width, width + 1):
        monkeypatch.setenv("COLUMNS", str(known or columns))
        shown[known] = [command(name, "--help")[1] for name in COMMANDS]
    assert shown[""] == shown[width]
    assert width >= 120 or shown[""] not in (shown[width - 1], shown[width + 1])
