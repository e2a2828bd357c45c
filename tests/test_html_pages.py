"""Comparisons, repeated tries and histories as HTML: valid, quiet, and as their other forms have it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import ROOT, gold_row, trace_row, write_rows
from hostile import PIECES, TEXTS
from html_page import Page, said
from rag_eval.analysis.history import Contrast, GoldDiff, Reading, Series
from rag_eval.rendering.history import FORMS
from rag_eval.rendering.html import chart, element
from seams import main

QUICKSTART = ROOT / "examples" / "quickstart"
GOLD = ["--gold", str(QUICKSTART / "gold.jsonl")]
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def printed(capsys, *words):
    assert main([*map(str, words), "--quiet"]) == 0
    return capsys.readouterr().out


@pytest.fixture
def hostile_runs(tmp_path):
    """Two runs of which gold, runs and questions have names that are out to be more."""
    golds = [
        gold_row(qid=f"{place}{piece}", question=piece, gold_citations=["a"]) for place, piece in enumerate(PIECES)
    ]
    rows = [
        trace_row(qid=gold["qid"], run=run, answer_json={"claim": "yes", "citations": [cited]}, cost_usd=cost)
        | {"retrieved_ids": ["a"], "latency_ms": {"total": 9.0}}
        for run, cited, cost in (("<b>one</b>|@octocat", "a", 0.2), ("::error::two", "b", 0.1))
        for gold in golds
    ]
    gold, trace = write_rows(tmp_path / "gold.jsonl", golds), write_rows(tmp_path / "trace.jsonl", rows)
    return ["--gold", gold, trace]


@pytest.mark.parametrize("words", [["--pareto"], [], ["--repeats"]], ids=" ".join)
def test_hostile_runs_beside_one_another_are_text(capsys, hostile_runs, words):
    text = printed(capsys, "compare", *hostile_runs, "--format", "html", *words)
    assert Page(text).complaints() == []
    assert [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line] == []
    assert text.endswith("</html>\n")


def test_a_comparison_says_what_its_other_forms_say(capsys):
    runs = [*GOLD, "--pareto", QUICKSTART / "good.jsonl", QUICKSTART / "bad.jsonl"]
    html, markdown = (printed(capsys, "compare", *runs, "--format", form) for form in ("html", "markdown"))
    words = " ".join(said(Page(html).root).split())
    cells = re.split(r"[`|\n]|\*\*|^#+ |^- ", markdown.partition("```")[0], flags=re.MULTILINE)
    clean = {" ".join(cell.replace("\u2060", "").replace("@\u200b", "@").split()) for cell in cells}
    told = {cell for cell in clean if re.fullmatch(r"[A-Za-z0-9+(].*[A-Za-z0-9).]", cell) and "\\" not in cell}
    assert len(told) > 80
    assert [cell for cell in told if cell not in words] == []


def test_the_front_is_drawn_where_its_points_are(capsys):
    runs = [*GOLD, "--pareto", QUICKSTART / "good.jsonl", QUICKSTART / "bad.jsonl"]
    page = Page(printed(capsys, "compare", *runs, "--format", "html"))
    about = said(page.one("front-1-about"))
    points = re.findall(r"(\w), (\w+): quality ([0-9.]+), latency ([0-9.]+)", about)
    assert [name for _, name, *_ in points] == ["good", "bad"]
    circles = list(page.all("circle"))
    assert len(circles) == 2
    (good, bad) = ((float(each.get("cx")), float(each.get("cy"))) for each in circles)
    assert good[1] < bad[1]  # better is up
    assert (good[0] < bad[0]) is (float(points[0][3]) < float(points[1][3]))


def readings(labels, values):
    """A reading a label; the second under another contract, the third after a change of the gold."""
    return tuple(
        Reading(label, value, value, value, 9, place != 1, place in (1, 2), GoldDiff(1, 0, 2) if place == 2 else None)
        for place, (label, value) in enumerate(zip(labels, values, strict=False))
    )


def series(labels, values=(0.9, 0.8, None, 0.7, 0.6, 0.5, 0.4)):
    contrast = Contrast(labels[0], labels[-1], 0.9, 0.5, 0.4, 0.2, 0.6, 9, 0.01, "worse")
    return [Series("precision", "higher", readings(labels, values), contrast, contrast, contrast)]


@given(st.lists(TEXTS, min_size=1, max_size=7))
def test_hostile_labels_of_a_history_are_text(labels):
    text = FORMS["html"](series(labels), len(labels))
    assert Page(text).complaints() == []
    assert text.encode().decode() == text


def test_a_history_draws_every_reading_with_a_value():
    page = Page(FORMS["html"](series(list("abcdefg")), 7))
    assert len(list(page.all("circle"))) == 6
    rings = [each for each in page.all("g") if each.get("class") == "few"]
    assert [said(next(iter(each))).partition(":")[0] for each in rings] == ["b"]
    [path] = page.all("path")
    assert path.get("d").count("L") == 3  # d to g: what was measured otherwise is not joined
    assert "contract changed" in said(page.one("plot-0-about"))


@pytest.mark.parametrize("values", [(), (None, None), (0.5,), (0.5, 0.5), (1e308, -1e308), (5e-324, 0.0)], ids=str)
def test_a_history_of_any_numbers_is_a_page(values):
    labels = [str(place) for place in range(max(1, len(values)))]
    assert Page(FORMS["html"](series(labels, values), len(values))).complaints() == []


def test_an_empty_history_is_a_page():
    assert Page(FORMS["html"]([], 0)).complaints() == []


@given(NUMBERS, NUMBERS)
def test_ticks_are_few_and_lie_between_the_ends(one, other):
    low, high = sorted((one, other))
    found = chart.ticks(low, high)
    assert len(found) <= 6
    assert found == sorted(found)
    room = (high - low) * 1e-6
    assert all(low - room <= each <= high + room for each in found)


@pytest.mark.parametrize(
    ("ends", "expected"), [((0.0, 1.0), [0.0, 0.25, 0.5, 0.75, 1.0]), ((790.0, 1030.0), [800.0, 900.0, 1000.0])]
)
def test_ticks_are_round(ends, expected):
    assert chart.ticks(*ends) == expected


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_no_dot_lies_outside(points):
    dots = [chart.Dot(x, y, "plain", "said") for x, y in points]
    drawn = chart.chart("x", "x", "x", dots, [dots], chart.Axes("a", "b"))
    page = Page(f"<!DOCTYPE html><html><head><title>x</title></head><body>{drawn}</body></html>")
    for each in page.all("circle"):
        assert 70 <= float(each.get("cx")) <= 850
        assert 34 <= float(each.get("cy")) <= 250


def test_a_title_of_data_is_text(tmp_path, capsys):
    name = "<i>&run.jsonl"
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        rows = (QUICKSTART / "good.jsonl").read_text("utf-8")
        (tmp_path / place / name).write_text(rows, "utf-8")
    page = Page(printed(capsys, "compare", *GOLD, tmp_path / "a" / name, tmp_path / "b" / name, "--format", "html"))
    assert page.complaints() == []
    assert any(element.shown("<i>&run") in said(each) for each in page.all("h2"))
