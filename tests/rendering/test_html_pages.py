"""Comparisons, repeats and histories as HTML: valid, self-contained, with the content of their other formats."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cases import ROOT, gold_row, read_rows, trace_row, write_rows
from depth import examples
from hostile import PIECES, TEXTS
from html_page import Page, said
from rag_eval.rendering.html import element, history_page, plots
from seams import main
from trends import series, trend

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
        gold_row(qid=f"{index}{piece}", question=piece, gold_citations=["a"]) for index, piece in enumerate(PIECES)
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


def test_a_comparison_has_the_same_texts_in_html_and_markdown(capsys):
    runs = [*GOLD, "--pareto", QUICKSTART / "good.jsonl", QUICKSTART / "bad.jsonl"]
    html, markdown = (printed(capsys, "compare", *runs, "--format", form) for form in ("html", "markdown"))
    words = " ".join(said(Page(html).root).split())
    cells = re.split(r"[`|\n]|\*\*|^#+ |^- ", markdown.partition("```")[0], flags=re.MULTILINE)
    clean = {" ".join(cell.replace("\u2060", "").replace("@\u200b", "@").split()) for cell in cells}
    message = {cell for cell in clean if re.fullmatch(r"[A-Za-z0-9+(].*[A-Za-z0-9).]", cell) and "\\" not in cell}
    assert len(message) > 80
    assert [cell for cell in message if cell not in words] == []


def test_a_front_of_quality_alone_has_no_plots(capsys, tmp_path):
    paths = []
    for name in ("good.jsonl", "bad.jsonl"):
        rows = [{key: part for key, part in row.items() if key != "latency_ms"} for row in read_rows(QUICKSTART / name)]
        paths.append(write_rows(tmp_path / name, rows))
    page = Page(printed(capsys, "compare", *GOLD, "--pareto", *paths, "--format", "html"))
    assert "Pareto front" in said(page.root)
    assert "Plots" not in said(page.root)


def test_points_of_the_front_are_drawn_at_their_values(capsys):
    runs = [*GOLD, "--pareto", QUICKSTART / "good.jsonl", QUICKSTART / "bad.jsonl"]
    page = Page(printed(capsys, "compare", *runs, "--format", "html"))
    points = re.findall(r"(\w+): quality ([0-9.]+), latency ([0-9.]+)", said(page.one("front-1-about")))
    assert [name for name, *_ in points] == ["good", "bad"]
    assert "Quality by latency, in ms." in said(page.root)
    good, bad = ((float(circle.get("cx")), float(circle.get("cy"))) for circle in page.all("circle"))
    assert good[1] < bad[1]  # better is up
    assert (good[0] < bad[0]) is (float(points[0][2]) < float(points[1][2]))


@given(st.lists(TEXTS, min_size=1, max_size=7))
def test_hostile_labels_of_a_history_are_text(labels):
    text = history_page(series(labels), len(labels))
    assert Page(text).complaints() == []
    assert text.encode().decode() == text


def test_a_history_draws_every_reading_with_a_value():
    page = Page(history_page(series(list("abcdefg")), 7))
    assert len(list(page.all("circle"))) == 6
    rings = [item for item in page.all("g") if item.get("class") == "few"]
    assert [said(next(iter(ring))).partition(":")[0] for ring in rings] == ["b"]
    [path] = page.all("path")
    assert path.get("d").count("L") == 3  # d to g: what was measured otherwise is not joined
    assert "definition changed" in said(page.one("plot-0-about"))


@pytest.mark.parametrize("values", [(), (None, None), (0.5,), (0.5, 0.5), (1e308, -1e308), (5e-324, 0.0)], ids=str)
def test_a_history_of_any_numbers_is_a_page(values):
    labels = [str(index) for index in range(max(1, len(values)))]
    assert Page(history_page(series(labels, values), len(values))).complaints() == []


@pytest.fixture
def reports(tmp_path, capsys):
    """A folder of five reports: good and bad in turn, each with a commit and a date."""
    folder = tmp_path / "reports"
    folder.mkdir()
    for index, name in enumerate(["good", "bad", "good", "bad", "bad"], 1):
        run = tmp_path / f"run-{index}"
        run.mkdir()
        shutil.copy(QUICKSTART / f"{name}.jsonl", run / "trace.jsonl")
        about = {"system_commit": f"{index}abcdef", "started_at": f"2026-11-0{index}"}
        (run / "run.json").write_text(json.dumps(about), "utf-8")
        words = ["--trace", run / "trace.jsonl", "--gates", QUICKSTART / "eval-gates.yml", "--out", run]
        main(list(map(str, ["score", *GOLD, *words, "--quiet"])))
        (run / "report.json").rename(folder / f"{index}.json")
    capsys.readouterr()
    return folder


def test_a_site_shows_trends_flaky_questions_and_the_last_runs(reports, tmp_path, capsys):
    assert main(["history", "--site", str(tmp_path / "site"), str(reports)]) == 0
    assert "index.html: 5 reports" in capsys.readouterr().out
    page = Page((tmp_path / "site" / "index.html").read_text("utf-8"))
    assert page.complaints() == []
    assert len([item for item in page.all("figure") if item.get("class") == "chart"]) == 8
    about = said(page.one("plot-0-about"))
    assert "min 0.8: passed, commit 1abcdef" in about
    assert "min 0.8: failed, commit 5abcdef" in about
    flaky = {said(row[0]): [said(cell) for cell in row[1:4]] for row in page.table("Flaky questions")}
    assert flaky["Q02"] == ["3", "2 of 5", "NOT_RETRIEVED"]
    assert "Q01" not in flaky
    rows = [[" ".join(said(cell).split()) for cell in row] for row in page.table("The last runs, newest first")]
    assert [row[:3] for row in rows[::4]] == [["5.json", "failed", "6 of 14"], ["1.json", "passed", "0 of 14"]]
    assert rows[0][4:] == ["5abcdef", "2026-11-05"]
    assert "precision" in rows[0][3]


def test_badges_are_endpoints_of_shields(reports, tmp_path, capsys):
    site = tmp_path / "site"
    assert main(["history", "--site", str(site), "--last", "1", str(reports)]) == 0
    badges = {path.name: json.loads(path.read_text("utf-8")) for path in site.glob("*.json")}
    assert badges["badge.json"] == {
        "schemaVersion": 1,
        "label": "RAG evaluation",
        "message": "failed · 6 of 14 wrong",
        "color": "red",
    }
    assert (badges["badge-precision.json"]["message"], badges["badge-precision.json"]["color"]) == ("0.500", "red")
    assert badges["badge-mrr.json"]["color"] == "brightgreen"
    assert all(set(badge) == {"schemaVersion", "label", "message", "color"} for badge in badges.values())


@given(st.lists(TEXTS, min_size=5, max_size=5))
@examples(20)
def test_hostile_words_of_runs_are_text(texts):
    assert Page(history_page(*trend(texts))).complaints() == []


def test_the_workflow_for_pages_keeps_reports_and_writes_the_site(reports, tmp_path):
    """Its own steps, run by bash with a stand-in for gh that hands out the reports of an earlier run."""
    workflow = yaml.safe_load((ROOT / "examples/pages/rag-eval-pages.yml").read_text("utf-8"))
    steps = {step["name"]: step for step in workflow["jobs"]["history"]["steps"] if "name" in step}
    tools, work = tmp_path / "tools", tmp_path / "work"
    tools.mkdir()
    (work / "rag-eval-report").mkdir(parents=True)
    download = f'[ "$3" = 6 ] && cp {reports}/[1-4].json reports'
    gh = f'#!/bin/sh\ncase "$2" in list) echo 7; echo 6;; download) {download};; esac\n'
    pipx = f'#!/bin/sh\nshift 4\nexec {sys.executable} -m rag_eval "$@"\n'
    for name, text in (("gh", gh), ("pipx", pipx)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    shutil.copy(reports / "5.json", work / "rag-eval-report" / "report.json")
    environ = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_RUN_NUMBER": "12", "GITHUB_SHA": "f" * 40}
    for name in ("Take the reports of the last run", "Write the site"):
        subprocess.run(["bash", "-e", "-c", steps[name]["run"]], cwd=work, env=environ, check=True)
    assert sorted(path.name for path in (work / "reports").iterdir()) == sorted(
        [*(f"{n}.json" for n in range(1, 5)), f"12-{'f' * 12}.json"]
    )
    assert "The newest of 5 runs" in said(Page((work / "site/index.html").read_text("utf-8")).root)
    assert (work / "site/badge.json").exists()


def page_of_history(**counts):
    """The page of a history with so many ``runs`` and questions that are ``flaky``."""
    series, reports, [run], [question] = trend(["first", "abc1234", "2026-11-01", "Why?", "precision", "sixth", "last"])
    runs = [run._replace(label=f"run-{number}") for number in range(counts.get("runs", 1))]
    flaky = [question._replace(qid=f"F{number}") for number in range(counts.get("flaky", 1))]
    return history_page(series, reports, runs, flaky)


def test_a_history_shows_thirty_flaky_questions_and_the_last_thirty_runs():
    assert "… and" not in page_of_history(flaky=30)
    page = page_of_history(flaky=31, runs=31)
    assert "<p>… and 1 more.</p>" in page
    assert ("F29" in page, "F30" in page) == (True, False)
    assert re.findall("<code>run-([0-9]+)</code>", page) == [str(number) for number in range(30, 0, -1)]


def test_an_empty_history_is_a_page():
    assert Page(history_page([], 0)).complaints() == []


@given(NUMBERS, NUMBERS)
def test_ticks_are_few_and_lie_between_the_ends(one, other):
    low, high = sorted((one, other))
    result = plots.ticks(low, high)
    assert len(result) <= 6
    assert result == sorted(result)
    room = (high - low) * 1e-6
    assert all(low - room <= item <= high + room for item in result)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.0, 1.0), [0.0, 0.25, 0.5, 0.75, 1.0]),
        ((790.0, 1030.0), [800.0, 900.0, 1000.0]),
        ((0.0, 3.0), [0.0, 1.0, 2.0, 3.0]),
    ],
)
def test_ticks_are_round(ends, expected):
    assert plots.ticks(*ends) == expected


@pytest.mark.parametrize(
    ("heights", "drawn"),
    [
        ((0.0, 1.0), ["168", "26"]),
        ((0.5, 2.5), ["156.2", "37.8"]),
        ((0.95,), ["75"]),
        ((200.0,), ["97"]),
        ((0.0,), ["168"]),
    ],
)
def test_a_chart_has_room_around_its_dots_but_none_beyond_shares(heights, drawn):
    dots = [plots.Dot(0.5, height, "plain", "said") for height in heights]
    page = Page(f"<!DOCTYPE html><title>x</title>{plots.chart('x', 'x', 'x', dots, ('a', 'b'))}")
    assert [item.get("cy") for item in page.all("circle")] == drawn


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_no_dot_lies_outside(points):
    dots = [plots.Dot(x, y, "plain", "said") for x, y in points]
    drawn = plots.chart("x", "x", "x", dots, ("a", "b"))
    page = Page(f"<!DOCTYPE html><html><head><title>x</title></head><body>{drawn}</body></html>")
    for item in page.all("circle"):
        assert 44 <= float(item.get("cx")) <= 392
        assert 18 <= float(item.get("cy")) <= 168


def test_a_title_of_data_is_text(tmp_path, capsys):
    name = "<i>&run.jsonl"
    for position in ("a", "b"):
        (tmp_path / position).mkdir()
        rows = (QUICKSTART / "good.jsonl").read_text("utf-8")
        (tmp_path / position / name).write_text(rows, "utf-8")
    page = Page(printed(capsys, "compare", *GOLD, tmp_path / "a" / name, tmp_path / "b" / name, "--format", "html"))
    assert page.complaints() == []
    assert any(element.visible("<i>&run") in said(item) for item in page.all("h2"))
