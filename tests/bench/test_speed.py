"""What bench/speed says of its measurements: numbers are compared, nothing is left out, and verdicts follow."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rag_eval

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))
checks, data, figures, measuring = (import_module(f"speed.{name}") for name in "checks data figures measuring".split())
chart, page, session, works = (import_module(f"speed.{name}") for name in "chart page session works".split())
sys.path.remove(str(ROOT / "bench"))

chart, page, measure = chart.chart, page.page, session.measure
Failed, run, shown = measuring.Failed, measuring.run, measuring.shown
WORKS, Ask, Side, Work = works.WORKS, works.Ask, works.Side, works.Work
CORE = ("answers", "refusals", "citations", "retrieval")


def made(folder, *options):
    subprocess.run([sys.executable, ROOT / "bench" / "make_data.py", folder, *options], check=True)
    return folder / "gold.jsonl", folder / "trace.jsonl"


def plain(gold, trace):
    command = [sys.executable, ROOT / "tests" / "plain_scorer.py", "--gold", gold, "--trace", trace]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def side_of(folder, name, text, numbers=None, own=False):
    """A side that runs a little program."""
    (folder / f"{name}.py").write_text(text)
    return Side(name, f"{{python}} {name}.py", numbers, own)


def result_of(rounds, **failed):
    more = {"machine": "a machine", "packages": "none", "commit": "abc", "bytes": {}, "load": 0.5}
    return {"rounds": rounds, "failed": failed, **more}


def one_round(**walls):
    return {name: {"wall": wall, "cpu": wall, "memory": 50_000_000} for name, wall in walls.items()}


def test_runs_of_the_plain_scorer_add_up_to_one_pass_of_ours(tmp_path):
    gold, trace = made(tmp_path, "300", "1200", "--runs")
    lines = trace.read_text().splitlines(keepends=True)
    parts = [tmp_path / f"{number}.jsonl" for number in range(4)]
    for index, part in enumerate(parts):
        part.write_text("".join(lines[300 * index :][:300]))
    result = checks.all_runs("".join(plain(gold, part) for part in parts))
    report = rag_eval.score(gold, trace, perspectives=CORE)
    names = {**dict.fromkeys(result), "recall@k": "recall_all@5"}
    ours = {name: round(report.metrics[local or name].value, 4) for name, local in names.items()}
    assert checks.differences(ours, result) == ""
    assert len({run["precision"] for run in checks._objects("".join(plain(gold, part) for part in parts))}) > 1


@pytest.mark.parametrize("traces", ["400", "1100"])
def test_our_numbers_are_read_off_a_report_as_the_plain_scorer_prints_them(tmp_path, traces):
    gold, trace = made(tmp_path, "400", traces)
    script = ROOT / "bench" / "speed" / "peers" / "ours.py"
    done = subprocess.run(
        [sys.executable, script, gold, trace, ",".join(CORE)], check=True, capture_output=True, text=True
    )
    assert checks.differences(checks.own(done.stdout), checks.scores(plain(gold, trace))) == ""


def test_jsonschema_alone_finds_what_the_schema_forbids(tmp_path):
    gold, trace = made(tmp_path, "20")
    with trace.open("a") as file:
        file.write('{"qid": 7}\n')
    script = ROOT / "bench" / "speed" / "peers" / "jsonschema_only.py"
    command = [sys.executable, script, ROOT / "schemas", gold, trace]
    content = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert (content["gold rows"], content["trace rows"]) == (20, 21)
    assert content["problems"] >= 1


def test_numbers_differ_from_a_billionth_on():
    assert checks.differences({"chr": 0.5, "more": 1}, {"chr": 0.5 + 5e-10, "other": 3}) == ""
    assert "chr is 0.500000002" in checks.differences({"chr": 0.5}, {"chr": 0.5 + 2e-9})
    assert checks.differences({"chr": 0.5}, {}) == "it printed no numbers"
    assert checks.differences({"chr": 0.5}, {"mrr": 0.5}) == "it printed none of our numbers"
    assert checks.differences({"report": "ab"}, {"report": "cd"})


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.booleans())
def test_a_bound_is_reached_or_missed_by_so_much(value, limit, least):
    output = figures.verdict(Ask("", "a", "b", limit, least=least), value)
    assert (output == "reached") == (value >= limit if least else value <= limit)
    if output != "reached":
        gap = 100 * (1 - value / limit if least else value / limit - 1)
        assert float(output.removeprefix("missed by ").removesuffix(" %")) == pytest.approx(gap, abs=0.51)


def test_ratios_are_those_of_neighbours_in_time():
    rounds = [one_round(ours=1, peer=2), one_round(ours=10, peer=30), one_round(ours=5)]
    assert figures.ratios(rounds, "peer", "ours") == [2, 3]
    assert figures.asked(Ask("", "peer", "ours", 2, least=True), rounds) == 2.5
    assert figures.asked(Ask("", "peer", "ours", 2, factor=5), rounds) == 0.5
    assert figures.asked(Ask("", "ours", "", 1e8, quantity="memory"), rounds) == 50_000_000
    assert figures.asked(Ask("", "peer", "absent", 2), rounds) is None


def test_a_side_with_other_numbers_or_none_at_all_is_said_and_does_not_count(tmp_path):
    sides = (
        side_of(tmp_path, "ours", "print('{\"chr\": 0.5}')", checks.own),
        side_of(tmp_path, "other", "print('{\"chr\": 0.6}')", checks.own),
        side_of(tmp_path, "broken", "import no_such_library", checks.own),
        side_of(tmp_path, "silent", "pass", own=True),
        side_of(tmp_path, "empty", "pass", checks.own),
        side_of(tmp_path, "wordy", "print('{}\\nall is well')", checks.scores),
    )
    pairs = tuple(("ours", side.name) for side in sides[1:])
    work = Work("some", "some", "some work", (), sides, pairs)
    result = measure(work, tmp_path, 2, 60, lambda _: None)
    assert [list(item) for item in result["rounds"]] == [["ours"], ["ours"]]
    assert result["failed"] == {
        "other": "its numbers differ: chr is 0.6, and not 0.5",
        "broken": "ModuleNotFoundError: No module named 'no_such_library'",
        "silent": "it printed no seconds",
        "empty": "it printed no numbers but ''",
        "wordy": "it printed no numbers but '{}\\nall is well\\n'",
    }
    text = page([work], {"some": {**result_of(result["rounds"]), "failed": result["failed"]}})
    assert all(f"{name}: {reason}" in text for name, reason in result["failed"].items())


def test_each_round_begins_with_another_side_and_one_is_taken_when_the_time_is_up(tmp_path):
    sides = tuple(side_of(tmp_path, name, "pass") for name in ("one", "two"))
    work = Work("some", "some", "some work", (), sides, (("one", "two"),))
    orders = [list(item) for item in measure(work, tmp_path, 3, 60, lambda _: None)["rounds"]]
    assert orders == [["one", "two"], ["two", "one"], ["one", "two"]]
    assert len(measure(work, tmp_path, 3, -1, lambda _: None)["rounds"]) == 1


def test_the_memory_of_a_command_is_its_own(tmp_path):
    (tmp_path / "large.py").write_text("import os; text = b'x' * 200_000_000; os.fork() or os._exit(0); os.wait()")
    (tmp_path / "small.py").write_text("pass")
    stored = b"x" * 100_000_000  # of the process that measures
    large, small = (run(f"{{python}} {name}.py", tmp_path) for name in ("large", "small"))
    assert small.memory < len(stored) < 200_000_000 <= large.memory < 300_000_000
    assert 0 < small.wall < 30


def test_a_command_that_fails_says_why(tmp_path):
    (tmp_path / "bad.py").write_text("import sys; print('no such file', file=sys.stderr); sys.exit(2)")
    with pytest.raises(Failed, match="no such file"):
        run("{python} bad.py", tmp_path)
    with pytest.raises(Failed, match="cannot be started"):
        run("no-such-program", tmp_path)


def test_a_command_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "PATIENCE", 1)
    (tmp_path / "long.py").write_text("import time; time.sleep(60)")
    with pytest.raises(Failed, match="did not end within 1 seconds"):
        run("{python} long.py", tmp_path)


def test_every_work_compares_sides_that_it_has_and_asks_of_them():
    assert len({work.key for work in WORKS}) == len(WORKS)
    for work in WORKS:
        names = {side.name for side in work.sides}
        assert {name for pair in work.pairs for name in pair} <= names
        assert {name for ask in work.asks for name in (ask.side, ask.over) if name} <= names
        assert set(work.data) <= data.SETS.keys()
        assert not any("{" in shown(side.command) for side in work.sides)


def test_the_page_tells_of_every_comparison_measured_or_not():
    measured = WORKS[0]
    text = page(WORKS, {measured.key: result_of([one_round(**{side.name: 2.0 for side in measured.sides})] * 3)})
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| work")]
    assert len(rows) == sum(len(work.pairs) + len(work.asks) for work in WORKS)
    assert sum("not measured" in row for row in rows) == len(rows) - len(measured.pairs) - len(measured.asks)
    assert {row.count(" |") for row in rows} == {4, 10}
    assert "| 1.00 × | reached |" in text


def test_what_a_failure_says_breaks_no_table():
    work = WORKS[0]
    text = page([work], {work.key: result_of([], **{"": "a | b\nc"})})
    assert "a \\| b c" in text


def test_the_chart_has_a_bar_for_each_figure_and_is_always_the_same():
    results = {work.key: result_of([one_round(**{side.name: 2.0 for side in work.sides})]) for work in WORKS[:3]}
    text = chart(WORKS, results)
    assert text == chart(WORKS, results)
    space = {"svg": "http://www.w3.org/2000/svg"}
    bars = ET.fromstring(text).findall(".//svg:rect", space)[1:]
    assert len(bars) == sum(len(work.pairs) for work in WORKS[:3])
    assert ET.fromstring(chart(WORKS, {})).tag == "{http://www.w3.org/2000/svg}svg"


def test_data_is_the_same_for_the_same_options(tmp_path):
    few, many = (made(tmp_path / count, "50", count) for count in ("3999", "6001"))
    assert many[0].read_bytes() == few[0].read_bytes()
    assert many[1].read_bytes().startswith(few[1].read_bytes())
    other = made(tmp_path / "other", "50", "60", "--seed", "other", "--words", "80", "--runs")
    assert other[0].read_bytes() == few[0].read_bytes()
    row = json.loads(other[1].read_text().splitlines()[-1])
    assert (row["run"], row["qid"]) == ("run-001", "Q0000009")


def test_sets_that_are_made_of_others_are_made_with_them(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "SETS", {"a": data.Data(1, "10"), "b": data.Data(1, derive="repeated", of="a")})
    data.ready(tmp_path, "b", lambda _: None)
    assert (tmp_path / "b" / "trace.jsonl").read_bytes() == (tmp_path / "a" / "trace.jsonl").read_bytes() * data.TIMES
    assert data.size_of(tmp_path, "x --gold b/gold.jsonl --trace b/trace.jsonl; done") == sum(
        (tmp_path / "b" / name).stat().st_size for name in ("gold.jsonl", "trace.jsonl")
    )
    assert data.with_sources(["b"]) == {"a", "b"}
    monkeypatch.setattr(data, "SETS", {"huge": data.Data(10**18, "10")})
    with pytest.raises(Failed, match="the disk"):
        data.ready(tmp_path, "huge", lambda _: None)


def test_works_are_what_users_run_and_have_their_data():
    keys = [work.key for work in WORKS]
    wanted = {"pull-request", "nightly", "questions-with-chunks", "named-runs", "unique", "small-gates", "reports"}
    assert wanted <= set(keys)
    assert len(keys) == len(set(keys))
    assert {name for work in WORKS for name in work.data} <= data.SETS.keys()


def test_a_baseline_is_of_the_same_size_as_what_is_compared_with_it(tmp_path, monkeypatch):
    monkeypatch.setitem(data.SETS, "small", data.Data(1, "30 --chunks", derive="earlier"))
    monkeypatch.setitem(measuring.WORDS, "rag-eval", str(Path(sys.executable).with_name("rag-eval")))
    data.ready(tmp_path, "small", print)
    baseline = json.loads((tmp_path / "small/baseline.json").read_bytes())
    assert len(baseline["questions"]) == 30
    assert not (tmp_path / "small/earlier").exists()
