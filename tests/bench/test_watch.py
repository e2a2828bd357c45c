"""What bench/watch.py says of counted instructions."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("bench_watch", ROOT / "bench" / "watch.py")
watch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(watch)


@pytest.mark.parametrize(
    ("base", "head", "well", "said"),
    [
        ([1000], [1030], True, ""),
        ([1000], [1031], False, "above +3 %"),
        ([1000], [900], True, ""),
        ([1000, 1040], [1020, 1060], True, ""),
        ([], [1000], True, "does not run at the base"),
        ([1000], [], False, "does not run"),
    ],
)
def test_a_work_may_take_so_many_more_instructions(base, head, well, said):
    assert watch.outcome(watch.Counts("a work", base, head), 3) == (well, said)


def test_the_table_shows_counts_their_spread_and_the_change():
    result = [watch.Counts("one", [1_000_000, 1_500_000], [1_100_000]), watch.Counts("two", [], [2_000_000])]
    text = watch.table(result, "main", 3)
    assert "| one | 1.00 to 1.50 | 1.10 | +10.00 % | above +3 % |" in text
    assert "| two | – | 2.00 |  | does not run at the base |" in text


@pytest.mark.parametrize("line", ["==7== I   refs:      1,234,567", "==7== I refs:        1,234,567"])
def test_counts_are_read_as_old_and_new_valgrinds_write_them(line):
    assert watch.COUNTED.search(f"==7== Command: x\n{line}\n")[1] == "1,234,567"


def test_there_is_data_for_every_work():
    assert all(work.data.split()[0].isdigit() and work.options for work in watch.WORKS)
