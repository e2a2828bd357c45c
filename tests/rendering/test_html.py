"""The HTML report: one valid, self-contained file with the content of the other formats; untrusted text stays text."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import ROOT, gold_row, trace_row, write_rows
from depth import examples
from hostile import PIECES, TEXTS, replaced
from html_page import Page, local, said
from rag_eval import api
from rag_eval.rendering import gates_table, results, summary
from rag_eval.rendering.explanation import CaseDetails, Source
from rag_eval.rendering.html import element, plots
from rag_eval.rendering.html.element import Markup, tag
from rag_eval.rendering.html.plots import PlotRow
from rag_eval.textual.leaks import STATES, Segment
from seams import GOOD, QuestionList, from_json, main, render
from whole_report import BOUND, FREE, REPORT, accepted, report_of
from whole_report import shown as rendered

EXAMPLES = ("good", "bad", "hostile", "moved", "compared", "sliced")
SURROGATES = (
    "\ud800",
    "a\udfffb",
    "\ufdd0<b>\ufdef",
    "\ufdd3passed\ufdef",
    "\ufdef\ufdd3nothing\ufdef",
    "]]>",
    "</script",
    "</style>",
    "' onclick='x",
    '" onload="x',
)
HOSTILE = st.lists(TEXTS | st.sampled_from(SURROGATES) | st.text(max_size=9), min_size=1, max_size=7)


@pytest.fixture(params=EXAMPLES, scope="module")
def report(request):
    return from_json(report_of(request.param))


@pytest.fixture(scope="module")
def page(report):
    return Page(render(report, "html"))


def page_of(value):
    return Page(rendered(value, "html"))


def plain(text):
    """Without the spaces that differ by layout."""
    return " ".join(text.replace("\u2060", "").split())


def test_the_page_is_valid_and_has_only_known_elements(page):
    assert page.complaints() == []


def test_the_page_makes_no_network_requests(page):
    addresses = [value for item in page.all() for name, value in item.attrib.items() if name in ("href", "src")]
    assert [address for address in addresses if not address.startswith("#")] == []
    script = next(page.all("script")).text
    assert (
        re.findall(r"fetch|XMLHttp|WebSocket|import\(|eval|innerHTML|insertAdjacent|document\.write|https?:", script)
        == []
    )


def test_landmarks_headings_and_captions_are_there(page):
    assert [local(item) for item in next(page.all("body"))] == ["a", "header", "nav", "main", "footer", "script"]
    assert len(list(page.all("h1"))) == 1
    assert all(any(local(part) == "caption" and said(part) for part in table) for table in page.all("table"))
    assert all(cell.get("scope") in ("col", "row") for cell in page.all("th"))
    plots = [item for item in page.all() if item.get("role") == "img"]
    assert all(plot.get("aria-labelledby") for plot in plots)
    inside = {id(item) for plot in plots for item in plot.iter() if local(item) == "svg"}
    assert {id(item) for item in page.all("svg")} == inside


def test_what_went_wrong_comes_before_the_gates_and_all_else(report, page):
    order = [item.get("id") for item in page.all("section")]
    known = (
        "findings diagnosis failing gates changed policy gold completeness slices metrics questions provenance".split()
    )
    assert order == [key for key in known if key in order]
    assert {"gates", "completeness", "metrics", "questions", "provenance"} <= set(order)


def test_the_title_names_verdict_and_system(report, page):
    title = said(next(page.all("title")))
    verdict, _, system = title.partition(": ")
    assert verdict == summary.title(report)
    assert system


def test_the_verdict_is_the_same_sentence_in_all_formats(report, page):
    verdict = next(item for item in page.all("p") if item.get("class") == "verdict")
    assert plain(said(verdict)) == plain(summary.headline(report, replace(element.FORMATTER, **CLEAN)))
    assert summary.title(report) in said(next(page.all("h1")))


CLEAN = {
    "named": lambda metric, part: f"{element.visible(metric)}{f' where {element.visible(part)}' if part else ''}",
    "code": lambda text, _=0: element.visible(text),
    "text": lambda text, _=0: element.visible(text),
    "figure": str,
    "strong": str,
    "sign": lambda _: "",
}


def test_every_chosen_gate_has_a_row_with_its_outcome(report, page):
    tables = [item for item in page.all("table") if "The gates with their outcomes" in said(item)]
    rows = [[said(cell) for cell in row] for row in tables[0].iter("tr")][1:]
    message = gates_table.gates_with_row(report.gates)
    assert sorted(plain(row[-1]) for row in rows) == sorted(gates_table.format_outcome(gate) for gate in message)
    assert sorted(row[0].partition(" where ")[0] for row in rows) == sorted(
        element.visible(gate.name) for gate in message
    )


def test_failed_gates_come_first_and_passed_ones_last(report, page):
    rows = [[said(cell) for cell in row] for row in page.table("The gates with their outcomes")]
    words = [re.match("[a-z ]+", plain(row[-1]))[0].strip() for row in rows]
    blocking = sum(gate.blocks for gate in gates_table.gates_with_row(report.gates))
    assert all("failed" in plain(row[-1]) for row in rows[:blocking])
    assert "passed" not in words[:blocking]
    assert words[words.index("passed") :] == ["passed"] * words.count("passed") if "passed" in words else True


CI = {"repository": "octo/help-desk", "branch": "rerank", "commit": "9f2c1ab4c0ffee", "pull_request": 42, "run": 17}
RUN = {"system_commit": "4711abc", "models": {"generator": "small-1"}, "started_at": "2026-11-20T08:00:00Z"}


def test_the_head_names_the_scored_files_and_commit():
    page = page_of({**report_of("compared"), "ci": CI, "run": RUN})
    [facts] = [item for item in page.all("dl") if item.get("class") == "facts"]
    result = {said(row[0]): said(row[1]) for row in facts}
    expected = {"Repository": "octo/help-desk", "Branch": "rerank", "Commit": "4711abc", "Pull request": "#42"}
    expected |= {"Run": "#17", "Date": "2026-11-20T08:00:00Z", "Model": "generator small-1"}
    assert {name: result[name] for name in expected} == expected
    assert result["Gold set"].endswith(" questions")
    assert report_of("compared")["baseline"]["path"] in result["Baseline"]
    assert said(next(page.all("title"))).endswith(": octo/help-desk at 4711abc")


def test_unusable_values_of_run_json_are_left_out():
    page = page_of({**report_of("bad"), "run": {"models": ["a"], "started_at": 5, "system_commit": ["x"]}})
    assert page.complaints() == []


DETAILS = {
    "question": "Q?",
    "error": "",
    "refused": False,
    "answerable": True,
    "contained": False,
    "cut": 3,
    "meaning": "no gold evidence is cited",
    "next": "Compare their texts.",
    "bad": ("precision min 0.8",),
    "wanted": ("30 days",),
    "evidence": ("a",),
    "answer": (Segment("yes ", "plain"), Segment("14", "made_up")),
    "cited": (Source("b", None, False, True),),
    "retrieved": (Source("a", 1, True, True, (Segment("in ", "plain"), Segment("30 days", "best"))),),
}


def unfolded(report, **changes):
    details = CaseDetails(**{**DETAILS, **changes})
    return Page(
        render(report, "html", details={(question.qid, question.run): details for question in report.questions})
    )


def test_a_question_unfolds_to_answer_evidence_and_reason():
    report = from_json(report_of("bad"))
    page = unfolded(report)
    assert page.complaints() == []
    result = page.rows("cases")
    assert [len(row) for row in result] == [7, 1] * len(report.questions)
    text = plain(result[1][0])
    for part in ("no gold evidence is cited", "precision min 0.8", "yes 14", "30 days", "not retrieved", "and 3 more"):
        assert part in text
    assert [said(item) for item in page.all("mark")] == ["30 days"] * len(report.questions)
    assert "none of them" in text


@given(HOSTILE)
@examples(25)
def test_hostile_texts_in_the_details_are_text(texts):
    pieces = tuple(Segment(text, state) for text, state in zip(texts, STATES * 2, strict=False))
    names = tuple(Source(text, None, True, True, pieces) for text in texts)
    plain_texts = {"question": texts[0], "error": texts[-1], "meaning": texts[0], "next": texts[-1]}
    lists = {"wanted": tuple(texts), "evidence": tuple(texts), "bad": tuple(texts)}
    page = unfolded(from_json(report_of("bad")), **plain_texts, **lists, answer=pieces, cited=names, retrieved=names)
    assert page.complaints() == []
    assert [line for line in page.text.splitlines() if line.lstrip().startswith("::") or "##[" in line] == []


SECRET, MAIL = "AKIAIOSFODNN7EXAMPLQ", "jane.roe@corp-mail.org"


def test_details_mask_secrets_and_personal_data(tmp_path, capsys):
    """Wherever they stand: question, answer, expected text, chunk, error, and in the name of a chunk."""
    leaky = f"Write to {MAIL} with {SECRET} now."
    golds = [
        gold_row(qid="Q1", question=f"Who is {MAIL}?", gold_claim_substr=[leaky], gold_citations=[MAIL]),
        gold_row(qid="Q2", question="Who?"),
    ]
    chunk = {"id": MAIL, "text": "x" * 1_450 + f" {leaky} {'y' * 900}"}
    answer = {"claim": leaky, "citations": [MAIL]}
    traces = [
        trace_row(qid="Q1", q=golds[0]["question"], retrieved_ids=[MAIL], answer_json=answer) | {"chunks": [chunk]},
        {"qid": "Q2", "q": "Who?", "error": leaky},
    ]
    gold, trace = write_rows(tmp_path / "gold.jsonl", golds), write_rows(tmp_path / "trace.jsonl", traces)
    main(["score", "--gold", str(gold), "--trace", str(trace), "--format", "html", "--details", "--quiet"])
    page = Page(capsys.readouterr().out)
    assert page.complaints() == []
    unfolds = " ".join(row[0] for row in page.rows() if len(row) == 1)
    assert "ja****" in unfolds
    assert "AK****" in unfolds
    assert [text for text in (SECRET, MAIL, SECRET[4:], MAIL[4:]) if text in unfolds] == []


def test_details_without_an_html_report_are_refused(capsys):
    assert main(["score", "--details"]) == 2
    assert "--out DIR" in capsys.readouterr().err


def test_every_case_has_a_row_failing_ones_first(report, page):
    rows = page.rows()
    ordered = results.by_urgency(report)
    assert [row[0] for row in rows] == [element.visible(question.qid) for question in ordered]
    texts = {element.visible(question.question) for question in ordered}
    assert all(texts & set(row) for row in rows)
    failing = [question.label not in GOOD for question in ordered]
    assert failing == sorted(failing, reverse=True)
    assert sorted(map(str, ordered)) == sorted(map(str, report.questions))
    assert all(results.by_urgency(report, limit) == ordered[:limit] for limit in range(len(ordered) + 2))


def test_a_search_engine_is_right_if_it_retrieves_the_evidence():
    """Its answers cite nothing, so those questions come last, and no sign calls them wrong."""
    value = report_of("compared")
    gate = next(gate for gate in value["gates"] if gate["name"] == "mrr")
    rows = {"Q1": "RETRIEVED", "Q2": "NOT_RETRIEVED"}
    questions = [value["questions"][0] | {"qid": qid, "label": label} for qid, label in rows.items()]
    counted = {"questions": questions, "labels": dict.fromkeys(rows.values(), 1)}
    report = from_json(value | counted | {"gates": [gate], "flips": []})
    assert [question.qid for question in results.by_urgency(report)] == ["Q2", "Q1"]
    signs = [results.signed_label(label, element.FORMATTER) for label in rows.values()]
    assert ["passed" in signs[0], "failed" in signs[1]] == [True, True]


def test_every_metric_with_a_value_and_every_contract_is_there(report, page):
    shown = said(page.one("metrics"))
    names = {name.partition("@")[0].partition(".")[0] for name, result in report.metrics.items() if result.n}
    assert [name for name in names if name not in shown] == []
    [contracts] = [item for item in page.all("table") if "Metric fingerprints" in said(item)]
    rows = {said(row[0]): said(row[1]) for row in contracts.iter("tr")}
    assert rows == {"Metric": "sha256", **report.contracts}
    assert all(item.sha256 in said(page.one("provenance")) for item in report.inputs)


def test_nothing_is_cut_but_single_strings():
    value = report_of("moved")
    many = [{**value["gold_changes"][0], "qid": f"changed-{index}"} for index in range(300)]
    result = said(page_of({**value, "gold_changes": many}).one("gold"))
    assert [item["qid"] for item in many if item["qid"] not in result] == []


def test_the_same_report_gives_the_same_bytes(tmp_path):
    write_rows(tmp_path / "report.json", [report_of("compared")])
    code = (
        "import json, sys; from rag_eval.rendering import data_formats, render; from_json = data_formats.from_json;"
        "sys.stdout.buffer.write(render(from_json(json.load(open(sys.argv[1]))), 'html').encode())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "report.json")],
            capture_output=True,
            check=True,
            env={"PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {render(from_json(report_of("compared")), "html").encode()}


ALL = [f"{before}{piece}{after}" for piece in (*PIECES, *SURROGATES) for before, after in ("ab", ("", ""))]


@pytest.mark.parametrize("start", range(0, len(ALL), 16))
def test_every_hostile_text_in_a_free_field_is_text(start):
    assert page_of(replaced(REPORT, FREE, ALL[start : start + 16])).complaints() == []


@given(HOSTILE)
@examples(40)
def test_hostile_texts_in_all_free_fields_are_text(texts):
    page = page_of(replaced(REPORT, FREE, texts))
    assert page.complaints() == []
    assert page.text.encode().decode() == page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page.text)


@given(st.lists(TEXTS | st.sampled_from(SURROGATES) | st.text(max_size=30), min_size=3, max_size=3))
@examples(40)
def test_a_question_reads_as_it_was_written(texts):
    """But for what is documented: one line, no control or bidirectional characters, at most a thousand characters."""
    value = report_of("bad")
    item = {**value["questions"][0], "qid": texts[0], "run": texts[1], "question": texts[2]}
    [row] = page_of({**value, "questions": [item], "flips": []}).rows()
    assert (row[0], texts[2] and row[2]) == (element.visible(texts[0]), texts[2] and row[2])
    assert element.visible(texts[2]) in row


ALLOWED = ["www.e.test", "@octocat", "9" * 300, "", "<b>", ("<b>@octocat|`" * 9)[:64]]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_the_schema_binds_is_text_too(text):
    assert page_of(replaced(REPORT, accepted(BOUND, text), [text])).complaints() == []


def test_huge_strings_do_not_make_a_huge_report():
    value = replaced(REPORT, FREE, ["<b>@octocat|`" * 100_000])
    assert len(rendered(value, "html")) < 5_000_000


def test_ten_thousand_questions_take_a_few_megabytes():
    value = report_of("bad")
    item = value["questions"][0]
    value["questions"] = [{**item, "qid": f"Q{index:05}", "question": "How " * 30} for index in range(10_000)]
    text = render(from_json(value), "html")
    assert len(text) < 5_000_000
    assert text.count("<tr>") > 10_000


def test_a_tag_escapes_what_no_tag_has_made():
    assert tag("p", "<b>", tag("b", "&"), class_='"x"') == '<p class="&quot;x&quot;">&lt;b&gt;<b>&amp;</b></p>'
    assert tag("p", Markup("<i>")) == "<p><i></p>"
    assert tag("input", hidden=True, id=None, open=False, x=1.06, y=2.0) == '<input hidden x="1.1" y="2">'


def test_a_sentence_of_the_formatter_becomes_html():
    formatter = element.FORMATTER
    sentence = [formatter.strong("So"), formatter.code("<a>"), formatter.code(""), "&", formatter.sign("passed")]
    assert element.inline(" ".join(sentence)) == (
        "<strong>So</strong> <code>&lt;a&gt;</code> <em>(empty)</em> &amp; "
        '<span class="sign passed" aria-hidden="true">✓</span>'
    )


@given(st.text(st.sampled_from("\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufddf\ufdefab<"), max_size=12))
def test_marks_in_any_order_are_balanced(text):
    page = Page(f"<!DOCTYPE html><html><head><title>x</title></head><body><p>{element.inline(text)}</p></body></html>")
    assert set(map(local, page.all())) <= {"html", "head", "title", "body", "p", "code", "bdi", "strong", "em", "span"}


SHARES = st.floats(0, 1).map(lambda number: round(number, 3))


def drawn(mark):
    figure = plots.figure("x", "x", "x", [mark])
    return Page(f"<!DOCTYPE html><html><head><title>x</title></head><body>{figure}</body></html>")


def of_class(page, name):
    return [item for item in page.all() if (item.get("class") or "") == name]


@given(SHARES, SHARES, st.sampled_from(["min", "max"]))
def test_a_point_is_on_the_shaded_side_if_it_passes(number, limit, side):
    page = drawn(PlotRow("gate", "passed", "said", number, None, None, limit, side))
    [point], [remaining] = of_class(page, "point"), of_class(page, "passing")
    x, start = float(point.get("cx")), float(remaining.get("x"))
    inside = start - 0.11 <= x <= start + float(remaining.get("width")) + 0.11
    assert inside is (number >= limit if side == "min" else number <= limit) or abs(number - limit) < 0.002


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_whatever_the_numbers_nothing_is_drawn_outside(number, limit, before):
    page = drawn(PlotRow("gate", "plain", "said", number, None, None, limit, "max", before))
    [box, *_] = [item.get("viewBox").split() for item in page.all("svg")]
    positions = [float(item.get(name)) for item in page.all() for name in ("x1", "x2", "cx") if item.get(name)]
    assert all(0 <= position <= float(box[2]) for position in positions)


def test_a_plot_is_described_in_words():
    page = drawn(PlotRow("precision", "failed", "0.500 (0.19–0.81) ≥ 0.80", 0.5, 0.19, 0.81, 0.8, "min"))
    assert said(page.one("x-about")) == "precision: 0.500 (0.19–0.81) ≥ 0.80, failed"
    assert len(of_class(page, "interval")) == 3


def test_sums_and_maxima_of_a_slice_have_no_colour():
    page = render(from_json(report_of("compared")), "html")
    rows = {
        name: page.partition(f'<tr><th scope="row"><code>latency_total_ms.{name}</code></th>')[2].partition("</tr>")[0]
        for name in ("total", "max", "p50")
    }
    assert {name: "better" in row or "worse" in row for name, row in rows.items()} == {
        "total": False,
        "max": False,
        "p50": True,
    }


def test_the_runner_sees_no_command(report):
    text = render(report, "html")
    assert [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line] == []


def test_a_report_without_gates_file_and_questions_is_a_report(tmp_path):
    gold = write_rows(tmp_path / "gold.jsonl", [gold_row(qid="Q1")])
    trace = write_rows(tmp_path / "trace.jsonl", [trace_row(qid="Q1", run=run, answer="30 days") for run in "ab"])
    report = api.score(gold, trace)
    for item in (report, report._replace(questions=QuestionList(), gates=(), metrics={}, contracts={}, inputs=())):
        assert Page(render(item, "html")).complaints() == []
