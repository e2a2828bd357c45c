"""Lists that are too long for a page: how many entries it shows, and that it counts the others."""

import json
import re

import pytest

from cases import gold_row, trace_row, write_rows
from seams import from_json, main, render
from table import each_row
from whole_report import report_of

BAD, SLICED = report_of("bad"), report_of("sliced")
BOUND = next(gate for gate in BAD["gates"] if gate["name"] == "precision")
WRONG = next(question for question in BAD["questions"] if question["label"] == "NOT_CITED")
RIGHT = next(question for question in BAD["questions"] if question["label"] == "OK")
SLICE = SLICED["slices"][0]


def gates(count, outcome="failed"):
    return {"gates": [BOUND | {"slice": f"meta.n={number}", "outcome": outcome} for number in range(count)]}


def questions(count, entry=WRONG):
    return {"questions": [entry | {"qid": f"Q{number:05}"} for number in range(count)]}


def fixed(count):
    flips = [{"qid": f"Q{number:05}", "run": None, "before": "WRONG_CLAIM", "after": "OK"} for number in range(count)]
    return report_of("compared") | questions(count, RIGHT) | {"flips": flips}


def slices(count, **changes):
    parts = [SLICE | {"slice": f"meta.n={number:04}", "n": 30} | changes for number in range(count)]
    return SLICED | {"slices": parts, "gates": SLICED["gates"][:1], "flips": []}


@each_row(
    ("form", "value", "said", "times"),
    [
        ("html", BAD | gates(40), "are drawn; the table has all.", 0),
        ("html", BAD | gates(41), "<p>40 of 41 are drawn; the table has all.</p>", 1),
        ("html", slices(40), "more; report.json has all.", 0),
        ("html", slices(41), "<p>… and 1 more; report.json has all.</p>", 1),
        ("html", BAD | questions(100), '<tbody class="rest">', 0),
        ("html", BAD | questions(101), '<tbody class="rest">', 1),
        ("html", BAD | questions(101), "Show all 101 rows", 1),
        ("markdown", BAD | gates(200), "more gates", 0),
        ("markdown", BAD | gates(202), "… and 2 more gates, 2 of them failed; report.json has all.", 1),
        ("markdown", BAD | questions(10), "… and ", 0),
        ("markdown", BAD | questions(11), "… and 1 more; report.json has all.", 1),
        ("markdown", fixed(5), "… and ", 0),
        ("markdown", fixed(6), "… and 1 more; report.json has all.", 1),
        ("markdown", BAD | questions(200), "more questions are not shown", 0),
        ("markdown", BAD | questions(201), "1 more question is not shown; failing ones come first.", 1),
        ("markdown", slices(8), "… and 1 more; report.json has all.", 0),
        ("markdown", slices(9), "… and 1 more; report.json has all.", 1),
        ("markdown", slices(8), "`meta.n=0007` 30", 1),
        ("markdown", slices(9), "`meta.n=0008` 30", 0),
        ("table", BAD | gates(20), "more; --format json has all.", 0),
        ("table", BAD | gates(21), "… and 1 more; --format json has all.", 1),
        ("junit", BAD | questions(10_000, RIGHT), "wrong questions are test cases", 0),
        ("junit", BAD | questions(10_001, RIGHT), "0 of 0 wrong questions are test cases; 10,001 were asked.", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_report_shows_so_many_entries_and_counts_the_others(form, value, said, times):
    assert render(from_json(value), form).count(said) == times


def test_with_everything_the_terminal_lists_all_questions_that_are_fixed(tmp_path, capsys):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(fixed(30)), encoding="utf-8")
    main(["gate", str(path), "-v"])
    assert len(re.findall("(?m)^Q[0-9]+ +WRONG_CLAIM +OK ", capsys.readouterr().out)) == 30


def test_of_many_questions_junit_has_the_wrong_ones():
    value = BAD | {"questions": questions(10_000, RIGHT)["questions"] + [WRONG]}
    text = render(from_json(value), "junit")
    assert "1 of 1 wrong questions are test cases; 10,001 were asked." in text
    assert re.findall('classname="rag-eval.questions" name="([^"]+)"', text) == [WRONG["qid"]]


def test_a_plot_draws_the_failed_gates_if_there_are_too_many():
    passed = [gate | {"slice": f"tags={gate['slice']}"} for gate in gates(5, "passed")["gates"]]
    page = render(from_json(BAD | {"gates": [*passed, *gates(40)["gates"]]}), "html")
    [plot] = re.findall('(?s)id="gates-plot-about".*?</figure>', page)
    assert plot.count("meta.n=") == 2 * 40  # in words and at its row
    assert "tags=" not in plot


@pytest.fixture
def compared(tmp_path, capsys):
    """Compare two runs of so many questions, of which the second answers the first ``wrong`` ones wrongly."""

    def compared(count, wrong, *more):
        expected = {"gold_claim_substr": ["28 days"], "gold_citations": ["a"]}
        golds = [gold_row(qid=f"Q{number:02}", **expected) for number in range(count)]
        rows = []
        for run in ("one", "two"):
            for number, gold in enumerate(golds):
                cited = "b" if run == "two" and number < wrong else "a"
                answer = {"claim": "28 days", "citations": [cited]}
                rows.append(trace_row(qid=gold["qid"], run=run, retrieved_ids=["a", "b"], answer_json=answer))
        gold, trace = write_rows(tmp_path / "gold.jsonl", golds), write_rows(tmp_path / "trace.jsonl", rows)
        assert main(["compare", str(trace), "--gold", str(gold), "--format", "markdown", "--quiet", *more]) == 0
        return capsys.readouterr().out

    return compared


def test_of_many_flipped_questions_a_comparison_shows_twenty(compared):
    assert "The first" not in compared(22, 20)
    text = compared(22, 21)
    assert "21 newly broken, 0 newly fixed." in text
    assert "The first 20 are shown; --format json has all." in text
    assert re.findall(r"(?m)^\| broken \| `(Q\d\d)`", text) == [f"Q{number:02}" for number in range(20)]


def test_of_many_flaky_questions_repeats_show_fifty(compared):
    assert "closest to passing" not in compared(52, 50, "--repeats")
    text = compared(52, 51, "--repeats")
    assert "1 pass in all 2 repeats, 51 in some, 0 in none." in text
    assert "The 50 that are closest to passing half of the time are shown; --format json has all." in text
    assert len(re.findall(r"(?m)^\| `Q\d\d`", text)) == 50


def test_of_many_metrics_that_cannot_be_compared_ten_are_named(tmp_path, capsys):
    def compared(count):
        other = dict.fromkeys(list(BAD["contracts"])[:count], "0" * 64)
        files = [tmp_path / "a.json", tmp_path / "b.json"]
        for file, value in zip(files, (BAD, BAD | {"contracts": BAD["contracts"] | other}), strict=True):
            file.write_text(json.dumps(value))
        assert main(["compare", *map(str, files), "--all", "--format", "markdown", "--quiet"]) == 0
        return capsys.readouterr().out.partition("### Not compared")[2].partition("###")[0]

    more = "… and 1 more; --format json has all."
    # The flips are not compared either.
    assert "more; --format json has all." not in compared(9)
    assert re.findall("(?m)^- (`|… and [0-9]+ more; --format json has all.)", compared(10)) == [*"`" * 10, more]
