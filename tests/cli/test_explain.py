"""Evidence as a document: pieces that are the text again, what bears each sentence out, and nothing that leaks."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import ROOT, gold_row, write_rows
from rag_eval.textual.grounding import evidence, ground, supported
from rag_eval.textual.leaks import MASKED, STATES, Mark, answer_marks, segments
from seams import main

QUICKSTART = ROOT / "examples" / "quickstart"
LEAKED = "jo.doe@corp-mail.org"
CHUNKS = [
    {"id": "desk#1", "text": f"The desk opens at 8. Write to {LEAKED} for parcels of more than 20 kg."},
    {"id": "desk#2", "text": "On Sundays the desk is closed."},
]


def joined(pieces):
    return "".join(piece["text"] for piece in pieces)


def explained(folder, capsys, claim, form="json", **more):
    asked, cited = "When is the desk open?", ["desk#1"]
    gold = {"qid": "D1", "question": asked, "answerable": True, "gold_claim_substr": [], "gold_citations": cited}
    answer = {"claim": claim, "citations": cited}
    trace = {"qid": "D1", "q": asked, "answer_json": answer, "retrieved": ["desk#1", "desk#2"], "chunks": CHUNKS}
    write_rows(folder / "gold.jsonl", [gold])
    write_rows(folder / "trace.jsonl", [{key: value for key, value in {**trace, **more}.items() if value is not None}])
    inputs = ["--gold", str(folder / "gold.jsonl"), "--trace", str(folder / "trace.jsonl")]
    assert main(["explain", "D1", *inputs, f"--format={form}"]) == 0
    return capsys.readouterr().out


MARKS = st.lists(st.builds(Mark, st.integers(0, 40), st.integers(0, 40), st.sampled_from(STATES)), max_size=8)


@given(text=st.text(max_size=40), marks=MARKS)
def test_the_pieces_of_a_text_are_the_text_again(text, marks):
    result = segments(text, marks)
    assert "".join(piece.text for piece in result) == text
    assert all(piece.text and piece.state in STATES for piece in result)
    assert all(a.state != b.state or a.state == MASKED for a, b in pairwise(result))


@given(claim=st.text(max_size=120), chunks=st.lists(st.text(max_size=80), max_size=3))
def test_the_pieces_of_an_answer_are_the_answer_again(claim, chunks):
    result = [evidence(item, claim, chunks, supported(item)) for item in ground(claim, chunks)]
    assert "".join(piece.text for piece in segments(claim, answer_marks(result))) == claim


def test_a_question_as_a_document(tmp_path, capsys):
    claim = "The desk opens at 8. [desk#1]  It sells 35 stamps. Generally, stamps are cheap."
    [case] = json.loads(explained(tmp_path, capsys, claim))["cases"]
    assert joined(case["answer"]) == claim
    assert [(piece["text"], piece["state"]) for piece in case["answer"]] == [
        ("The desk opens at 8.", "supported"),
        (" [desk#1]  ", "plain"),
        ("It ", "unsupported"),
        ("sells", "missing"),
        (" ", "unsupported"),
        ("35", "made_up"),
        (" ", "unsupported"),
        ("stamps", "missing"),
        (".", "unsupported"),
        (" ", "plain"),
        ("Generally", "missing"),
        (", ", "unchecked"),
        ("stamps", "missing"),
        (" are ", "unchecked"),
        ("cheap", "missing"),
        (".", "unchecked"),
    ]
    opens, sells, cheap = case["sentences"]
    assert (opens["support"], opens["kind"], opens["chunk"]["id"], opens["chunk"]["index"]) == (
        1,
        "assertion",
        "desk#1",
        0,
    )
    assert joined(opens["chunk"]["text"]) == CHUNKS[0]["text"]
    assert CHUNKS[0]["text"][slice(*opens["chunk"]["span"])] == "desk opens at 8"
    assert (sells["supported"], sells["made_up"], sells["missing"]) == (False, ["35"], ["sells", "35", "stamps"])
    assert (cheap["supported"], cheap["kind"], cheap["chunk"]) == (None, "general", None)
    assert case["scores"]["claim_support"] == 0.5


def test_a_document_says_what_the_place_says_otherwise(tmp_path, capsys):
    [case] = json.loads(explained(tmp_path, capsys, "On Sundays the desk is not closed."))["cases"]
    assert [item["otherwise"] for item in case["sentences"]] == [[{"reason": "negation", "word": "closed"}]]


@pytest.mark.parametrize("form", ["text", "json"])
def test_leaked_values_are_masked_in_the_answer_and_in_what_bears_it_out(tmp_path, capsys, form):
    output = explained(tmp_path, capsys, f"Write to {LEAKED} for parcels. Call jo.doe@corp-mail.org again.", form)
    assert "jo****" in output
    assert not [part for part in (LEAKED, "corp-mail", "corp") if part in output]


def test_an_error_is_shown_with_its_secrets_masked(tmp_path, capsys):
    output = explained(tmp_path, capsys, "", "text", answer_json=None, error=f"no mailbox for {LEAKED}")
    assert "error        no mailbox for jo************rg\n" in output
    assert "next         Read the error in the trace; the system gave no answer.\n" in output


@pytest.mark.parametrize("at", range(3))
def test_a_leak_in_one_sentence_changes_no_other(tmp_path, capsys, at):
    parts = ["The desk opens at 8.", "It sells 35 stamps.", "On Sundays the desk is closed."]
    leaking = [*parts[:at], f"Then {LEAKED} writes to {LEAKED}.", *parts[at:]]
    shown = json.loads(explained(tmp_path, capsys, "  ".join(leaking)))["cases"][0]["sentences"]
    mask = shown[at]["text"].split()[1]
    assert (mask[:2], LEAKED[2:] in mask) == ("jo", False)
    assert [item["text"] for item in shown] == [text.replace(LEAKED, mask) for text in leaking]


def test_a_document_holds_every_run_and_is_there_without_chunks(tmp_path, capsys):
    content = json.loads(explained(tmp_path, capsys, "At eight.", chunks=None, run="one"))
    [case] = content["cases"]
    assert (content["version"], content["qid"], case["run"], case["sentences"]) == (1, "D1", "one", [])
    assert case["answer"] == [{"text": "At eight.", "state": "plain"}]


def test_a_metric_is_no_question(capsys):
    assert main(["explain", "precision", "--format=json"]) == 2
    assert "rag-eval metrics --format json" in capsys.readouterr().err


def test_the_example_is_told_alike_in_both_forms(capsys):
    inputs = ["--gold", str(QUICKSTART / "gold.jsonl"), "--trace", str(QUICKSTART / "good.jsonl")]
    main(["explain", "Q01", *inputs, "--format=json"])
    [sentence] = json.loads(capsys.readouterr().out)["cases"][0]["sentences"]
    main(["explain", "Q01", *inputs])
    best = joined([piece for piece in sentence["chunk"]["text"] if piece["state"] == "best"])
    assert f"    by {sentence['chunk']['id']}: {best}" in capsys.readouterr().out


def test_an_answer_that_refuses_in_other_words_says_how_to_count_it(tmp_path, capsys):
    text = explained(tmp_path, capsys, "I don't know.", "text")
    assert "refused      no. To count the built-in pattern 'i don't know' (en, whole), write builtin: true" in text


def test_a_term_is_its_row_of_the_docs_without_markdown(capsys):
    row = next(
        line for line in (ROOT / "docs/glossary.md").read_text("utf-8").splitlines() if "| **baseline** |" in line
    )
    meaning = row.split(" | ")[1].removesuffix(" |").replace("`", "").replace("[baselines](baselines.md)", "baselines")
    assert main(["explain", "Baseline"]) == 0
    assert (
        capsys.readouterr().out
        == f"Baseline (term)\n\n{meaning}\n\npage         https://org.github.io/rag-eval-action/latest/glossary.html\n"
    )


def test_a_gold_set_that_is_missing_or_broken_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval").mkdir()
    for words, message in (
        (["--gold", "none.jsonl"], "none.jsonl: no such file. Check the path."),
        ([], "There is no eval/gold.jsonl here. Name the gold set: --gold FILE"),
        ([], "eval/gold.jsonl:1: 'qid' is missing."),
    ):
        if "eval/gold.jsonl:1" in message:
            (tmp_path / "eval/gold.jsonl").write_text("{}\n")
        assert main(["explain", "D1", *words]) == 2
        assert message in capsys.readouterr().err


def test_a_code_of_gold_lint_is_explained(capsys):
    assert main(["explain", "substr-near-miss"]) == 0
    assert capsys.readouterr().out.startswith("substr-near-miss (code)\n\nWith traces: an answer contains it")


def test_a_conversation_names_its_turns(tmp_path, monkeypatch, capsys):
    rows = [gold_row(qid=f"C7-{turn}", conversation="C7", turn=turn) for turn in (1, 2)]
    write_rows(tmp_path / "gold.jsonl", rows)
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "C7", "--gold", "gold.jsonl"]) == 2
    assert "'C7' is a conversation. Choose a turn: C7-1, C7-2" in capsys.readouterr().err


def test_a_finding_is_explained_with_its_level(capsys):
    assert main(["explain", "padded-answers"]) == 0
    head, blank, meaning, _, level, page = capsys.readouterr().out.splitlines()
    assert (head, blank, level, page) == (
        "padded-answers (finding)",
        "",
        "level        error",
        "page         https://org.github.io/rag-eval-action/latest/findings.html",
    )
    assert meaning.startswith("90 % of the answers")
