"""From failures and production to gold: drafts judge nothing, and a person makes items of them."""

from __future__ import annotations

import gzip
import json
import re
import subprocess

import pytest

from cases import gold_row, read_rows, write_rows
from seams import main

CHUNKS = [{"id": "m#1", "text": "The notice period is thirty days."}, {"id": "m#2", "text": "Lunch is at noon."}]
TRACES = [
    {"q": "How long is the notice period?", "answer": "I cannot answer that.", "chunks": CHUNKS},
    {"q": "When is lunch?", "answer": "Employees fly to Mars on Tuesdays with lasers.", "chunks": CHUNKS},
    {"q": "Who pays?", "error": "timeout"},
    {"q": "What is known already?", "error": "timeout"},
    {"q": "Is the notice thirty days?", "answer": "The notice period is thirty days.", "chunks": CHUNKS},
    {"q": "who pays", "error": "timeout again"},
]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval").mkdir()
    known = gold_row(qid="Q1", question="What is known already?", gold_claim_substr=["known"], gold_citations=["m#1"])
    write_rows(tmp_path / "eval/gold.jsonl", [known])
    write_rows(tmp_path / "trace.jsonl", TRACES)
    return tmp_path


def draft(*options):
    return main(["gold", "draft", "--from", "trace.jsonl", *options])


def review(monkeypatch, *answers):
    given = iter(answers)

    def said(_):
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", said)
    return main(["gold", "review", "--signer", "ann@example.org"])


@pytest.mark.parametrize("seed", ["-1", "9" * 20, "x"])
def test_a_seed_is_a_whole_number_in_range(capsys, seed):
    with pytest.raises(SystemExit):
        draft(f"--seed={seed}")
    assert f"'{seed}' is not a whole number from 0 to 999999999" in capsys.readouterr().err


def test_drafts_are_what_failed_was_refused_or_is_not_grounded_and_not_in_the_gold(files, capsys):
    assert draft() == 0
    content = read_rows(files / "eval/drafts.jsonl")
    assert {row["question"]: row["draft"] for row in content} == {
        "How long is the notice period?": "refused",
        "When is lunch?": "ungrounded",
        "Who pays?": "failed",
    }
    assert all(row[name] is None for row in content for name in ("answerable", "gold_claim_substr", "gold_citations"))
    assert capsys.readouterr().out == (
        "wrote eval/drafts.jsonl: 3 new drafts (1 failed, 1 refused, 1 ungrounded); "
        "skipped 2 already in gold or drafts, 1 of another kind. Next: rag-eval gold review\n"
    )
    assert draft() == 0  # and no second time
    assert read_rows(files / "eval/drafts.jsonl") == content


def test_a_draft_shows_what_was_answered_cited_and_retrieved(files):
    write_rows(
        files / "trace.jsonl",
        [
            {"q": "One?", "answer": "No idée.", "error": "x", "conversation": "c", "turn": 2, "chunks": CHUNKS * 6},
            {"question": "Two?", "error": "late", "timed_out": True, "retrieved_ids": [f"m#{n}" for n in range(11)]},
            {"q": "Three?", "ok": False, "answer_json": {"claim": "Mars.", "citations": ["m#2"]}},
            {"error": "x"},
        ],
    )
    assert draft() == 0
    assert "No idée." in (files / "eval/drafts.jsonl").read_text("utf-8")
    by_question = {row.pop("question"): row for row in read_rows(files / "eval/drafts.jsonl")}
    assert all(row.pop("qid").startswith("D-") for row in by_question.values())
    blank = {"draft": "failed", "answerable": None, "gold_claim_substr": None, "gold_citations": None}
    assert by_question == {
        "One?": {**blank, "conversation": "c", "turn": 2, "answer": "No idée.", "cited": [], "retrieved": CHUNKS * 5},
        "Two?": {**blank, "answer": "", "cited": [], "retrieved": [{"id": f"m#{n}"} for n in range(10)]},
        "Three?": {**blank, "answer": "Mars.", "cited": ["m#2"], "retrieved": []},
    }


def test_a_sample_takes_the_strata_by_turns_and_its_seed_decides(files):
    write_rows(files / "trace.jsonl", [{"q": f"{n}?", "error": "x", "run": "a" if n else "b"} for n in range(9)])
    drawn = set()
    for seed in range(3):
        draft("--sample", "3", "--by", "run", "--seed", str(seed), "--drafts", f"{seed}.jsonl")
        result = [row["question"] for row in read_rows(files / f"{seed}.jsonl")]
        assert len(result) == 3
        assert "0?" in result  # the only one of its run
        drawn.add(tuple(result))
    assert len(drawn) > 1


def test_drafts_are_no_gold(files, capsys):
    draft()
    assert main(["score", "--gold", "eval/drafts.jsonl", "--trace", "trace.jsonl"]) == 2
    assert "eval/drafts.jsonl:1" in capsys.readouterr().err


def test_a_person_makes_items_of_drafts(files, monkeypatch, capsys):
    draft()
    order = [row["draft"] for row in read_rows(files / "eval/drafts.jsonl")]
    answers = {
        "refused": ["Accept", "?", "YES", "thirty days", "1 m#9"],
        "ungrounded": ["x", "edit", "At what time is lunch?", "", "n"],
    }
    output = [item for kind in order for item in answers.get(kind, ["r", "no question of ours"])]
    assert review(monkeypatch, *output) == 0
    gold = {row["question"]: row for row in read_rows(files / "eval/gold.jsonl")}
    assert gold["How long is the notice period?"]["gold_citations"] == ["m#1", "m#9"]
    assert gold["How long is the notice period?"]["gold_claim_substr"] == ["thirty days"]
    assert gold["At what time is lunch?"]["answerable"] is False
    (remaining,) = read_rows(files / "eval/drafts.jsonl")
    assert remaining["rejected"] == {"by": "ann@example.org", "why": "no question of ours"}
    shown = capsys.readouterr().out
    assert "2 accepted, 0 still open." in shown
    for number, chunk in enumerate(CHUNKS, 1):
        assert f"\n  {number}. {chunk['id']} {chunk['text']}\n" in shown
    assert "\n\n[1 of 3] failed: Who pays?\nanswer: (none)\ncited: (nothing)\n" in shown


def test_an_item_that_gold_may_not_have_is_asked_for_again(files, monkeypatch, capsys):
    write_rows(files / "trace.jsonl", TRACES[2:3])
    draft()
    assert review(monkeypatch, "a", "y", "abc", "1", "a", "y", "the employer", "m#7") == 0
    assert "not accepted: /gold_claim_substr/0" in capsys.readouterr().out
    assert read_rows(files / "eval/gold.jsonl")[-1]["gold_claim_substr"] == ["the employer"]


def test_the_end_of_input_keeps_what_was_decided(files, monkeypatch, capsys):
    draft()
    assert review(monkeypatch, "a", "n") == 0
    assert "1 accepted, 2 still open." in capsys.readouterr().out
    assert len(read_rows(files / "eval/drafts.jsonl")) == 2


def git(*words):
    person = ["-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *person, *words], check=True, capture_output=True, text=True).stdout


def test_review_stages_the_gold_and_signs_what_it_adds(files, monkeypatch, capsys):
    git("init", "-q")
    git("add", "eval/gold.jsonl")
    git("commit", "-qm", "gold")
    draft()
    assert review(monkeypatch, "a", "n") == 0
    assert "Signed by ann@example.org: 1 added" in capsys.readouterr().out
    staged = git("diff", "--cached", "--name-only").split()
    assert staged[0] == "eval/gold.jsonl"
    assert any(name.startswith("eval/gold.signoff/") for name in staged)
    assert main(["gold", "check"]) == 0


@pytest.mark.parametrize("name", ["g.jsonl.gz", "packed.jsonl", "g.json", "cases"])
def test_only_plain_json_lines_are_added_to(files, monkeypatch, capsys, name):
    draft()
    data = (files / "eval/gold.jsonl").read_bytes()
    if name == "cases":
        write_rows(files / "cases/cases.jsonl", [{"case_id": "a", "query": "?"}])
    else:
        array = json.dumps([{"qid": "a", "q": "Why?", "answerable": True, "gold_ids": ["c"]}]).encode()
        (files / name).write_bytes(array if name == "g.json" else gzip.compress(data))
    (files / "eval-gates.yml").write_text(f"version: 1\ngold: {name}\n", "utf-8")
    assert review(monkeypatch, "a", "n") == 2
    assert f"{name} is not JSON Lines, which gold review adds lines to" in capsys.readouterr().err


def test_other_changes_of_the_gold_are_not_signed_along(files, monkeypatch, capsys):
    git("init", "-q")
    git("add", "eval/gold.jsonl")
    git("commit", "-qm", "gold")
    draft()
    (files / "eval/gold.jsonl").write_text((files / "eval/gold.jsonl").read_text().replace("already?", "by now?"))
    assert review(monkeypatch, "a", "n") == 2
    why = "eval/gold.jsonl has uncommitted changes, which gold review would sign too. Commit or undo them first.\n"
    assert capsys.readouterr().err == f"rag-eval: {why}"


def test_an_unknown_kind_of_draft_is_refused(capsys):
    assert draft("--select", "odd") == 2
    assert "--select 'odd' is not a kind of draft" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"qid": 3}, "Expected `str`, got `int` - at `$.qid`"),
        ({"question": None}, "Expected `str`, got `null` - at `$.question`"),
        ({"retrieved": ["m#1"]}, "Expected `object`, got `str` - at `$.retrieved[0]`"),
        ({"retrieved": [{"text": "x"}]}, "Object missing required field `id`"),
        ({"cited": 5}, "Expected `array | null`, got `int` - at `$.cited`"),
        ({"question": "half of a pair: \ud800"}, "truncated"),
    ],
)
def test_a_broken_file_of_drafts_is_a_problem_with_its_line(files, monkeypatch, capsys, fields, why):
    row = {"draft": "failed", "qid": "D-1", "question": "Who?", **fields}
    (files / "eval/drafts.jsonl").write_text("\n" + json.dumps(row) + "\n")
    for run in (draft, lambda: review(monkeypatch, "s")):
        code = run()
        err = capsys.readouterr().err
        assert (code, "eval/drafts.jsonl:2: is not a draft: " in err, why in err) == (2, True, True), err


def test_a_closed_input_leaves_the_drafts_open(files, monkeypatch, capsys):
    draft()
    monkeypatch.setattr("sys.stdin", None)
    assert main(["gold", "review", "--signer", "ann@example.org"]) == 0
    assert "0 accepted, 3 still open." in capsys.readouterr().out


def test_a_signer_that_is_not_utf_8_is_refused_before_any_draft_is_shown(files, capsys):
    draft()
    capsys.readouterr()
    assert main(["gold", "review", "--signer", "ann\udcff"]) == 2
    out, err = capsys.readouterr()
    assert (out, "--signer is not UTF-8 text" in err) == ("", True)


def test_two_items_of_one_review_have_different_qids(files, monkeypatch, capsys):
    write_rows(files / "trace.jsonl", [{"q": f"What is {n}?", "error": "x"} for n in range(2)])
    assert draft() == 0
    assert all(re.fullmatch("D-[0-9a-f]{8}", row["qid"]) for row in read_rows(files / "eval/drafts.jsonl"))
    again = ["e", "", "SAME", "n"]
    assert review(monkeypatch, *again, *again, "e", "", "OTHER", "n") == 0
    assert [row["qid"] for row in read_rows(files / "eval/gold.jsonl")] == ["Q1", "SAME", "OTHER"]
    assert "not accepted: the qid 'SAME' is already used" in capsys.readouterr().out


def test_the_end_of_the_input_ends_the_line_of_the_prompt(files, monkeypatch, capsys):
    draft()
    review(monkeypatch)
    assert capsys.readouterr().out.endswith("\n\n0 accepted, 3 still open.\n")


def test_a_broken_file_is_refused_before_anything_is_asked_or_written(files, monkeypatch, capsys):
    draft()
    before = (files / "eval/drafts.jsonl").read_bytes()
    (files / "trace.jsonl").write_text("{}\n")
    assert draft("--select", "failed") == 2
    (files / "eval/gold.jsonl").write_text('{"qid": "Q1"}\n')
    assert review(monkeypatch, "a", "n") == 2
    out, err = capsys.readouterr()
    assert ("[1 of" in out, "trace.jsonl:1: " in err, "eval/gold.jsonl:1: " in err) == (False, True, True)
    assert (files / "eval/drafts.jsonl").read_bytes() == before


@pytest.mark.parametrize(("supported", "kind"), [(0, "ungrounded"), (1, "answered"), (2, "answered")])
def test_half_of_an_answer_may_lack_support(files, supported, kind):
    answer = " ".join(
        ["The notice period is thirty days.", "Lunch is at noon."][:supported] + ["Mars is red."] * (2 - supported)
    )
    write_rows(files / "trace.jsonl", [{"q": "Which are the rules?", "answer": answer, "chunks": CHUNKS}])
    draft("--select", "ungrounded,answered")
    assert [row["draft"] for row in read_rows(files / "eval/drafts.jsonl")] == [kind]


@pytest.mark.parametrize("name", ["q", "question"])
def test_a_number_of_the_question_needs_no_support(files, name):
    asked, answer = "What was the notice period in 2024?", "The notice period is thirty days in 2024."
    write_rows(files / "trace.jsonl", [{name: asked, "answer": answer, "chunks": CHUNKS}])
    draft("--select", "ungrounded,answered")
    assert [row["draft"] for row in read_rows(files / "eval/drafts.jsonl")] == ["answered"]
