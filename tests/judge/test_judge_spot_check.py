"""`rag-eval judge spot-check`: what is drawn, what is recorded, and that neither hostile texts nor Ctrl-C spoil it."""

from __future__ import annotations

import io
import json
import re
import shlex

import pytest

from cases import read_rows, write_rows
from hostile import PIECES, commands
from html_page import Page
from verdicts import JUDGE, gold_of, input_hash, trace_of, verdict_row

N = 100
LABELS = "eval/judge-labels.jsonl"


@pytest.fixture
def check(command, tmp_path, monkeypatch):
    """Record a hundred verdicts, of which 90 are 5 and ten are 1; return a function that runs the command."""
    monkeypatch.chdir(tmp_path)
    golds, traces = gold_of(N), trace_of(N)
    for number, gold in enumerate(golds):
        gold["category"] = "rare" if number % 20 == 3 else "usual"
    made = [
        verdict_row(*pair, groundedness=1 if at % 10 == 0 else 5)
        for at, pair in enumerate(zip(golds, traces, strict=True))
    ]
    write_rows(tmp_path / "eval/gold.jsonl", golds)
    write_rows(tmp_path / "eval/verdicts.jsonl", made)

    def run(*options, answers=(), rater="ann"):
        given = iter(answers or ())

        def said(_=""):
            result = next(given, EOFError())
            if isinstance(result, BaseException):
                raise result
            return result

        if answers is not None:  # otherwise the test sets stdin
            monkeypatch.setattr("builtins.input", said)
        return command("judge", "spot-check", *(["--rater", rater] if rater else []), *options)

    run.rows = {row["qid"]: row for row in made}
    return run


def asked(out):
    return re.findall(r"\] question: (.*)", out)


def test_rare_grades_and_kinds_are_drawn_and_weigh_what_they_represent(check, tmp_path):
    code, _, err = check("--n", "12", answers=["3", "4", ""] * 12)
    assert (code, "12 of 100 answers drawn with seed 0, 12 to grade" in err) == (0, True)
    result = read_rows(tmp_path / LABELS)
    scores = [check.rows[row["qid"]]["groundedness"] for row in result]
    kinds = ["rare" if int(row["qid"][1:]) % 20 == 3 else "usual" for row in result]
    assert sorted(set(zip(scores, kinds, strict=True))) == [(1, "usual"), (5, "rare"), (5, "usual")]
    assert scores.count(1) >= 2
    assert kinds.count("rare") >= 2
    assert sum(row["weight"] for row in result) == pytest.approx(N)
    assert sum(row["weight"] for row, score in zip(result, scores, strict=True) if score == 1) == pytest.approx(10)


def test_the_rubric_is_shown_before_the_first_answer_only_if_there_is_one(check):
    _, out, _ = check("--n", "1", answers=["3", "4", ""])
    rubric, _, _ = out.partition("] question: ")
    assert "groundedness" in rubric
    _, out, _ = check("--n", "1", answers=[])
    assert "groundedness" not in out


def test_the_record_says_who_graded_what_and_when(check, tmp_path):
    _, out, _ = check("--n", "3", "--seed", "s", answers=["3", "", "well put", "9", "x", "0", "5", "", "s"])
    first, second = read_rows(tmp_path / LABELS)
    assert (first["groundedness"], first["note"], "correctness" in first) == (3, "well put", False)
    assert (second["groundedness"], second["correctness"]) == (0, 5)
    assert (first["rater"], first["seed"], first["input"]) == ("ann", "s", input_hash(check.rows[first["qid"]]))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["at"])
    assert "'9' is not a score" in out
    assert "wrote eval/judge-labels.jsonl: 2 graded, 1 still open" in out


def test_the_grades_of_the_judge_are_not_shown(check):
    _, out, err = check("--n", "100", answers=["s"] * 100)
    assert len(asked(out)) == 100
    assert "shared-words" not in out
    body = out[out.index("[1 of 100]") :]
    assert "Records are kept for" in body
    assert re.search(r"reason|judge-1|verdict|groundedness [0-9]|[0-9] points", body) is None
    assert "judge-1 graded by another rubric than the one to show" in err


def test_a_seed_draws_the_same_answers_whatever_the_order_and_another_does_not(check, tmp_path):
    drawn = asked(check("--n", "9", "--seed", "7", answers=["s"] * 9)[1])
    write_rows(tmp_path / "eval/verdicts.jsonl", list(check.rows.values())[::-1])
    assert asked(check("--n", "9", "--seed", "7", answers=["s"] * 9)[1]) == drawn
    assert asked(check("--n", "9", "--seed", "8", answers=["s"] * 9)[1]) != drawn


@pytest.mark.parametrize("end", [[], [KeyboardInterrupt()], ["q"]], ids=["end of input", "Ctrl-C", "quit"])
def test_an_interruption_keeps_what_was_graded_and_is_continued(check, tmp_path, end):
    code, out, _ = check("--n", "6", answers=["3", "4", "", "2", "2", "", "1", *end])
    assert code == (130 if end and end != ["q"] else 0)
    assert ("\n\nwrote eval/judge-labels.jsonl: 2 graded" in out) is (end == []), "the prompt has ended its line"
    before = read_rows(tmp_path / LABELS)
    assert len(before) == 2
    _, _, err = check("--n", "6", answers=["5", "5", ""] * 4)
    assert "6 of 100 answers drawn with seed 0, 4 to grade" in err
    result = read_rows(tmp_path / LABELS)
    assert (result[:2], len({row["qid"] for row in result})) == (before, 6)
    _, _, err = check("--n", "6", rater="bob")
    assert "6 to grade" in err


def test_without_a_grade_nothing_is_written(check, tmp_path):
    code, out, _ = check("--n", "2")
    assert (code, out.splitlines()[-1], (tmp_path / LABELS).exists()) == (0, "0 graded, 2 still open.", False)


def test_calibrate_reads_the_record_and_takes_scores_of_0_and_1_for_scores(check, command):
    check("--n", "20", answers=["1", "0", ""] * 20)
    code, out, err = command("judge", "calibrate", "--labels", LABELS, "--format", "json")
    assert code == 0, err
    content = json.loads(out)["scores"]["groundedness"]
    assert (content["binary"], content["n"], content["base_rate"]["value"]) == (False, 20, 0)


def test_the_command_that_is_printed_at_the_end_reads_the_record(check, command, tmp_path):
    (tmp_path / "by ann").mkdir()
    _, out, _ = check("--n", "20", "--out", "by ann/grades.jsonl", answers=["1", "0", ""] * 20)
    words = shlex.split(out.rpartition("Next: ")[2])
    assert words[:3] == ["rag-eval", "judge", "calibrate"]
    code, out, err = command(*words[1:], "--format", "json")
    assert code == 0, err
    assert json.loads(out)["scores"]["groundedness"]["n"] == 20


def test_what_is_gated_is_graded(check, tmp_path):
    (tmp_path / "eval-gates.yml").write_text("version: 1\ngates: {judge_relevancy: {min: 0.8}}\n", "utf-8")
    check("--n", "1", answers=["4", ""])
    assert read_rows(tmp_path / LABELS)[0]["relevancy"] == 4
    check("--n", "2", "--score", "correctness", answers=["2", ""])
    assert read_rows(tmp_path / LABELS)[1]["correctness"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--score", "fluency"], "--score 'fluency' is not a score"),
        (["--score", ","], "',' is not a list of names"),
        (["--by", " , "], "is not a list of names"),
        (["--rater", "ann\udcff"], "--rater is not UTF-8 text. Check the encoding of your terminal or script."),
        (["--by", "colour"], "--by 'colour' is not a field of gold items"),
        (["--n", "0"], "'0' is not a whole number from 1 to 10000"),
        (["--gold", "none.jsonl"], "none.jsonl: no such file"),
        (["--verdicts", "none.jsonl"], "none.jsonl: no such file"),
        (["--rubric", "none.txt"], "none.txt"),
        (["--out", "eval"], "eval: is a folder, not a file"),
    ],
)
def test_bad_options_are_refused(check, words, message):
    code, _, err = check(*words)
    assert code == 2
    assert message in err


def test_a_broken_record_is_refused_and_left_as_it_is(check, tmp_path):
    (tmp_path / LABELS).write_text('{"qid": "Q1", "rater": "ann", "groundedness": "five"}\n', "utf-8")
    code, _, err = check(answers=["5"] * 60)
    assert code == 2
    assert f"{LABELS}:1: groundedness 'five' is not a number from 0 to 5" in err
    assert (tmp_path / LABELS).read_text("utf-8").count("\n") == 1


def hostile(n):
    golds, traces = gold_of(n), trace_of(n)
    for number, (gold, trace) in enumerate(zip(golds, traces, strict=True)):
        piece = PIECES[number % len(PIECES)]
        gold["question"] = f"q {piece}?"
        trace["answer_json"] = {
            "claim": f'a {piece} </section><script>alert(1)</script>" onclick="x',
            "citations": [f"m{piece}"],
        }
        trace["chunks"] = [{"id": f"m{piece}", "text": f"t {piece}\n<img src=x onerror=alert(1)>"}]
    judge = {**JUDGE, "model": "judge-1\r\n::error::x\x1b[31m"}
    return [verdict_row(*pair, judge) for pair in zip(golds, traces, strict=True)]


def test_an_existing_form_is_overwritten_only_with_force(check, tmp_path):
    (tmp_path / "form.html").write_text("mine")
    code, out, err = check("--html", "form.html")
    fix = "Name another file with --html, or overwrite it with --force"
    assert (code, out, err) == (2, "", f"rag-eval: form.html already exists. {fix}\n")
    assert (tmp_path / "form.html").read_text() == "mine"
    assert check("--html", "form.html", "--force")[0] == 0
    assert "<html" in (tmp_path / "form.html").read_text("utf-8")


def test_the_form_is_self_contained_and_shows_hostile_texts_as_texts(check, tmp_path):
    made = hostile(len(PIECES))
    write_rows(tmp_path / "eval/verdicts.jsonl", made)
    code, _, err = check(
        "--n", "1000", "--html", "form.html", "--gold", "eval/gold.jsonl", rater='"><script>x</script>'
    )
    assert code == 0, err
    assert (commands(err), "\x1b" in err) == ([], False)
    page = Page((tmp_path / "form.html").read_text("utf-8"))
    known = (
        "<noscript>",
        "label data-label",
        "value=",
        "input name",
        "input data-choice",
        "input type",
        "section",
        "script: URL(",
    )
    assert [complaint for complaint in page.complaints() if not complaint.startswith(known)] == []
    labels = [json.loads(item.get("data-label")) for item in page.all("section")]
    assert {label["input"] for label in labels} == {input_hash(row) for row in made}
    assert {label["qid"] for label in labels} == {row["qid"] for row in made}
    assert len(list(page.all("script"))) == 1


def test_hostile_texts_are_lines_on_the_terminal(check, tmp_path):
    write_rows(tmp_path / "eval/verdicts.jsonl", hostile(len(PIECES)))
    _, out, _ = check("--n", "1000", answers=["s"] * 200)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f\x85\u2028\u202e\u2066]", out) is None
    assert re.search(r"(?m)^::|##\[", out) is None


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_input_that_is_not_utf_8_is_asked_for_again_or_ends_the_input(check, monkeypatch, tmp_path, errors):
    typed = io.BytesIO(b"4\n4\n\n" + b"\xff\n2\n2\n\xe9\nfine\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(typed, encoding="utf-8", errors=errors))
    code, out, _ = check("--n", "3", answers=None)
    labels = read_rows(tmp_path / LABELS) if errors != "strict" else []
    graded = [(row["groundedness"], row.get("note")) for row in labels]
    assert (code, "That is not UTF-8 text. Type it again." in out) == (0, True)
    assert graded == ([] if errors == "strict" else [(4, None), (2, "fine")])


def test_a_closed_input_ends_the_questions(check, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    code, out, _ = check("--n", "3", answers=None)
    assert (code, "0 graded, 3 still open" in out) == (0, True)
