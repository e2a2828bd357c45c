"""``--save-trace``: which cases are written, what stands in a line, and what is never overwritten."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import make_case
from project import Project, apart, gates, gold_of, trace_of, wrong
from rag_eval.gates import GateResult
from rag_eval.rendering.explanation import NEXT, bad_scores, case_details
from seams import GOOD, MEANING, Question, main

BOTH = gates(chr="{min: 0.9}", mrr="{min: 0.6}")


@pytest.fixture
def project(tmp_path, monkeypatch):
    apart(monkeypatch)
    ours = Project.made(tmp_path / "repo", BOTH)
    monkeypatch.chdir(ours.path)
    return ours


@pytest.fixture
def save(project, capsys):
    """``rag-eval score --save-trace``: the lines by qid; the exit code in ``save.code``, stderr in ``save.said``."""

    def save(*words, file="traces/failed.jsonl"):
        save.code = main(["score", "--format", "json", *(words or ["--save-trace"])])
        out, save.said = capsys.readouterr()
        save.report = json.loads(out) if out else None
        written = project.path / file
        save.lines = written.read_text("utf-8").split("\n")[:-1] if written.exists() else []
        return {item["qid"]: item for item in map(json.loads, save.lines)}

    return save


def test_every_bad_label_has_something_to_do_next():
    assert set(NEXT) == set(MEANING) - GOOD


def test_the_failed_cases_are_written_with_their_rows(project, save):
    traces = wrong(2, 3)
    project.put(trace=traces)
    lines = save()
    assert save.code == 1
    assert list(lines) == ["Q2", "Q3"]
    assert save.said == "wrote traces/failed.jsonl: 2 failed cases of 8\n"
    assert lines["Q2"]["gold"] == gold_of(2)
    assert lines["Q2"]["trace"] == traces[1]
    assert (lines["Q2"]["label"], lines["Q2"]["meaning"]) == ("NOT_CITED", MEANING["NOT_CITED"])
    assert lines["Q2"]["ranks"]["gold_citations"] == {"c2": 1}


def test_a_line_says_which_gates_the_bad_scores_count_in(project, save):
    project.put(trace=wrong(2, 3))
    bad = {item["metric"]: item["gates"] for item in save()["Q2"]["bad"]}
    assert bad["precision"] == [{"gate": "precision min 0.8", "outcome": "failed"}]
    assert bad["hit_precision"] == []
    assert "mrr" not in bad
    assert "recall_all@3" not in bad


def test_what_was_cited_and_not_retrieved_is_named(project, save):
    project.put(trace=[trace_of(n, retrieved_ids=["c8", "c1"]) for n in range(1, 9)])
    lines = save()
    assert lines["Q2"]["cited_not_retrieved"] == ["c2"]
    assert lines["Q2"]["ranks"] == {
        "gold_citations": {"c2": None},
        "level": "chunk",
        "relevant_found": [],
        "evidence": {"level": "chunk", "first": 0},
    }
    assert lines["Q2"]["cited_evidence"] == ["c2"]
    assert "mrr" in {line["metric"] for line in lines["Q2"]["bad"]}
    assert "Q1" not in lines  # found at rank 2, an mrr of 0.5 is below the gate: but no rate is bad


def test_a_case_without_a_trace_is_written_too(project, save):
    project.put(trace=wrong(2)[1:])
    lines = save()
    assert list(lines) == ["Q2", "Q1"]
    assert (lines["Q1"]["trace"], lines["Q1"]["label"], lines["Q1"]["gold"]) == (None, "MISSING", gold_of(1))


def test_the_trace_that_counts_is_the_one_written(project, save):
    project.put(trace=[trace_of(2, answer_json={"claim": "no", "citations": []}), *wrong(2), trace_of(3)])
    assert save()["Q2"]["trace"] == wrong(2)[1]


def test_runs_of_a_question_are_told_apart(project, save):
    traces = [{**row, "run": run} for run, rows in (("a", wrong()), ("b", wrong(1))) for row in rows]
    project.put(trace=traces)
    assert [(item["run"], item["trace"]["run"]) for item in save().values()] == [("b", "b")]


def test_a_good_label_with_a_bad_gated_rate_is_written(project, save):
    odd = {"qid": "Q8", "retrieved_ids": [], "answer": "I cannot say.", "abstained": True}
    project.put(gates=gates(exact_refusal="{min: 0.5}"), trace=[*wrong()[:7], odd])
    lines = save()
    assert {qid: line["label"] for qid, line in lines.items()} == {"Q8": "REFUSAL_OK"}
    assert lines["Q8"]["bad"][0]["metric"] == "exact_refusal"


def test_none_failed_leaves_an_empty_file_in_place_of_an_old_one(project, save):
    project.put(trace=wrong(1))
    assert len(save()) == 1
    project.put(trace=wrong())
    assert save() == {}
    assert (project.path / "traces/failed.jsonl").read_bytes() == b""
    assert save.said == "wrote traces/failed.jsonl: 0 failed cases of 8\n"


def test_a_file_that_is_not_ours_stays(project, capsys):
    theirs = '{"kind": "mine"}\n'
    project.write("traces/failed.jsonl", theirs)
    project.put(trace=wrong(1))
    assert main(["score", "--save-trace"]) == 2
    assert (project.path / "traces/failed.jsonl").read_text("utf-8") == theirs
    assert "is not a file of failed cases" in capsys.readouterr().err
    assert main(["score", "--save-trace", "runs/trace.jsonl"]) == 2
    fix = "runs/trace.jsonl/failed.jsonl cannot be read: not a directory. Choose another folder: --save-trace DIR\n"
    assert capsys.readouterr().err == f"rag-eval: {fix}"


def test_another_folder_can_be_named_and_is_made(project, save):
    project.put(trace=wrong(1))
    assert list(save("--save-trace", "out/deep", file="out/deep/failed.jsonl")) == ["Q1"]
    assert [path.name for path in (project.path / "out/deep").iterdir()] == ["failed.jsonl"]


def test_a_second_run_writes_the_same_bytes(project, save):
    project.put(trace=wrong(1, 2, 4))
    save()
    first = save.lines
    save()
    assert save.lines == first


def test_without_the_option_nothing_is_written(project, save):
    project.put(trace=wrong(1))
    assert save("--quiet") == {}
    assert not (project.path / "traces").exists()


def test_numbers_and_texts_of_any_kind_come_back_as_they_were(project, save):
    odd = {"large": 2**53 - 1, "text": "a\u2028b", "deep": [{"x": [None, True, 1.5]}]}
    project.put(trace=[{**wrong(1)[0], "mine": odd}, *wrong()[1:]])
    assert save()["Q1"]["trace"]["mine"] == odd


def test_flat_scores_have_no_cases_to_save(project, capsys):
    assert main(["score", "--format", "scores", "--save-trace"]) == 2
    assert "Remove --save-trace, or --format scores" in capsys.readouterr().err


def test_the_suite_and_the_perspectives_narrow_what_is_saved(project, save):
    project.put(gold=[gold_of(n, tags=["smoke"] if n in (2, 5) else []) for n in range(1, 9)], trace=wrong(1, 2))
    lines = save("--save-trace", "traces", "--suite", "smoke", "--perspective", "citations")
    assert list(lines) == ["Q2"]
    assert {line["metric"] for line in lines["Q2"]["bad"]} == {"chr", "chr_answerable"}


def test_a_score_of_another_scale_is_bad_where_it_alone_breaks_a_bound():
    terms = {"severity": "error", "when_no_data": "fail", "outcome": "failed", "value": 0.4, "exact": None, "n": 3}
    gate = {"mrr": [GateResult("mrr", "min", "0.6", **terms)]}
    low, high = (Question("Q1", None, "?", True, "OK", "OK", {"mrr": score}, 1, 1, "", ()) for score in (0.5, 0.7))
    assert [score["metric"] for score in bad_scores(low, gate)] == ["mrr"]
    assert bad_scores(high, gate) == []


@pytest.mark.parametrize(
    ("name", "gates"),
    [
        ("mrr", [("mrr", "max_drop", "0.02")]),  # a margin is no bound of a score
        ("cost_usd", [("cost_usd.total", "max", "0.01")]),  # nor is the bound of a sum
        ("of_another_version", []),
    ],
)
def test_a_score_that_no_bound_is_about_is_not_bad(name, gates):
    terms = {"severity": "error", "when_no_data": "fail", "outcome": "failed", "value": 0.4, "exact": None, "n": 3}
    case = Question("Q1", None, "?", True, "OK", "OK", {name: 0.5}, 1, 1, "", ())
    assert bad_scores(case, {name: [GateResult(*gate, **terms) for gate in gates]}) == []


def test_a_gate_on_a_slice_counts_for_its_cases_alone():
    terms = {"severity": "error", "when_no_data": "fail", "outcome": "failed", "value": 0.4, "exact": None, "n": 3}
    gate = {"precision": [GateResult("precision", "min", "0.6", **terms, slice="category=a")]}
    case = Question("Q1", None, "?", True, "WRONG_CLAIM", "OK", {"precision": 0.0}, 1, 1, "", ())
    assert bad_scores(case, gate)[0]["gates"] == []
    assert len(bad_scores(replace(case, slices=("category=a",)), gate)[0]["gates"]) == 1


# --- a case as people read it -----------------------------------------------------------------------------------------

ADDRESS = "jane.doe@corp-mail.org"
SENTENCE = "Deleted records are kept for thirty days."


def shown(gold=(), label="WRONG_CLAIM", gated=None, **trace):
    case = make_case(dict(gold), trace)
    return case_details(case, Question("Q1", None, "?", True, label, label, {"mrr": 0.1}, 1, 1, "", ()), gated or {})


def joined(pieces):
    return "".join(piece.text for piece in pieces)


def words(length):
    return ("the same words over and over " * (length // 29 + 1))[: length - 1] + "x"


@pytest.mark.parametrize("length", [1, 3_999, 4_000, 4_001, 9_000])
def test_an_answer_is_cut_behind_4000_characters(length):
    claim = words(length)
    answer = joined(shown(answer=claim).answer)
    assert answer == claim[:4_000] + (" …" if length > 4_000 else "")
    assert shown(error=claim).error == claim[:4_000]


@given(st.integers(3_960, 4_020))
def test_no_part_of_a_leak_is_shown_where_an_answer_is_cut(begin):
    answer = joined(shown(answer=f"{words(begin - 1)} {ADDRESS} {words(200)}").answer)
    assert ("*" in answer) == (begin < 4_000)
    assert not any(part in answer for part in ("jane", "doe", "corp", "mail", "org"))


def pieces_of_chunk(before, after, claim=SENTENCE):
    text = f"{words(before)} {SENTENCE} {words(after)}" if before else f"{SENTENCE} {words(after)}"
    chunk = {"id": "a", "text": text}
    details = shown({"gold_citations": ["a"]}, chunks=[chunk], answer_json={"claim": claim, "citations": ["a"]})
    return text, details.retrieved[0].text


@pytest.mark.parametrize("before", [0, 298, 299, 300, 700, 5_000])
def test_a_long_chunk_is_shown_from_300_characters_before_its_evidence_on(before):
    text, pieces = pieces_of_chunk(before, 4_000)
    begin = max(0, text.index(SENTENCE) - 300)
    assert joined(pieces) == ("… " if begin else "") + text[begin : begin + 1_500] + " …"
    assert all(piece.text for piece in pieces)
    assert [piece.text for piece in pieces if piece.state == "best"] == [SENTENCE.rstrip(".")]


def test_a_long_chunk_without_evidence_is_shown_from_its_beginning():
    text, pieces = pieces_of_chunk(900, 4_000, claim="Nobody knows.")
    assert joined(pieces) == text[:1_500] + " …"


@pytest.mark.parametrize(("length", "cut"), [(1_500, False), (1_501, True)])
def test_a_chunk_of_1500_characters_is_shown_as_a_whole(length, cut):
    text, pieces = pieces_of_chunk(1_000, length - 1_000 - len(SENTENCE) - 2)
    assert len(text) == length
    assert joined(pieces) == (f"… {text[701:]}" if cut else text)


@given(st.integers(650, 720))
def test_no_part_of_a_leak_is_shown_where_a_chunk_begins(begin):
    """The evidence begins at 1000, so the text is shown from 700 on."""
    text = f"{words(begin - 1)} {ADDRESS} ".ljust(999, "y") + f" {SENTENCE} {words(900)}"
    answer = {"claim": SENTENCE, "citations": ["a"]}
    details = shown({"gold_citations": ["a"]}, chunks=[{"id": "a", "text": text}], answer_json=answer)
    [chunk] = details.retrieved
    assert ("*" in joined(chunk.text)) == (begin + len(ADDRESS) > 700)
    assert not any(part in joined(chunk.text) for part in ("jane", "doe", "corp", "mail", "org"))


@pytest.mark.parametrize("count", [1, 10, 11, 20, 21, 30])
def test_of_long_lists_the_first_are_shown_and_the_others_counted(count):
    ids = [f"c{n}" for n in range(count)]
    gold = {"gold_citations": ids, "gold_claim_substr": [f"text {n}" for n in range(count)]}
    chunks = [{"id": name, "text": f"Text {name}."} for name in ids]
    details = shown(gold, chunks=chunks, answer_json={"claim": "So.", "citations": ids})
    assert [named.id for named in details.retrieved] == [named.id for named in details.cited] == ids[:20]
    assert [joined(named.text) for named in details.retrieved] == [f"Text {name}." for name in ids[:20]]
    assert (details.cut, details.evidence) == (max(0, count - 20), tuple(ids[:10]))
    assert details.wanted == tuple(f"text {n}" for n in range(min(count, 10)))


def test_an_id_has_its_first_rank_and_says_what_points_at_it():
    gold = {"gold_citations": ["b", "c"], "relevant_docs": ["d"]}
    details = shown(gold, retrieved_ids=["a", "b", "a"], answer_json={"claim": "So.", "citations": ["b", "x", "b"]})
    assert [named[:4] for named in details.retrieved] == [("a", 1, False, False), ("b", 2, True, True)]
    assert [named[:4] for named in details.cited] == [("b", 2, True, True), ("x", None, False, True)]
    assert details.evidence == ("b", "c", "d")


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"expected_answer": "It is so.", "gold_claim_substr": ["it is"]}, ("It is so.",)),
        ({"gold_claim_substr": ["it is"], "expected_claims": ["It is."]}, ("it is",)),
        ({"expected_claims": ["It is."]}, ("It is.",)),
        ({}, ()),
    ],
)
def test_what_was_wanted_is_the_expected_answer_before_its_parts(fields, wanted):
    assert shown(fields, answer="No.").wanted == wanted


def test_leaks_are_masked_in_every_text_of_a_case():
    gold = {"question": f"Who is {ADDRESS}?", "expected_answer": ADDRESS, "gold_citations": [ADDRESS]}
    answer = {"claim": f"Ask {ADDRESS}.", "citations": [ADDRESS]}
    details = shown(gold, chunks=[{"id": ADDRESS, "text": f"Write to {ADDRESS}."}], answer_json=answer)
    assert "corp-mail" not in repr(details)
    assert "corp-mail" not in repr(shown(gold, error=f"unknown user {ADDRESS}"))


def test_a_case_names_the_gates_that_its_bad_scores_count_in_and_what_to_do():
    terms = {"severity": "error", "when_no_data": "fail", "outcome": "failed", "value": 0.4, "exact": None, "n": 3}
    gated = {"mrr": [GateResult("mrr", "min", "0.6", **terms), GateResult("mrr", "max", "0.9", **terms)]}
    details = shown(gated=gated, answer="No.")
    assert details.bad == ("mrr min 0.6", "mrr max 0.9")
    assert (details.meaning, details.next) == (MEANING["WRONG_CLAIM"], NEXT["WRONG_CLAIM"])
    assert shown(label="OK", answer="No.").next == ""
