"""Progress: a line on a terminal, for what takes its time."""

import io
import json
import os
import pty
import re
import subprocess
import sys

import pytest

from cases import ROOT
from rag_eval.common.progress import SILENT, Watch, Watched, line, watch


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def shown(seconds, parts=10, columns=79):
    """What is written while 1000 bytes are read in so many equal steps."""
    clock, out = Clock(), io.StringIO()
    progress = Watch(out, clock, columns)
    progress.begin(1000)
    for _ in range(parts):
        clock.now += seconds / parts
        progress.advance(1000 // parts)
    progress.end()
    return out.getvalue()


def test_what_takes_less_than_a_second_shows_nothing():
    assert shown(0.99) == ""


def test_what_takes_longer_is_shown_and_wiped_off():
    text = shown(10)
    assert text.count("\r") == 12
    assert "10% [##" in text
    *_, last, wiped, end = text.split("\r")
    assert (wiped, end) == (" " * len(last.rstrip()), "")
    assert text.isascii()


def test_it_stays_one_line_of_printable_signs_on_any_terminal():
    """A console that knows no codes would show them, and a line that is too long would be written below itself."""
    text = shown(10, columns=19)
    assert text.replace("\r", "").isprintable()
    assert max(map(len, text.split("\r"))) == 19


def test_not_more_than_five_times_a_second():
    assert 40 <= shown(10, 1000).count("\r") <= 52


@pytest.mark.parametrize(
    ("done", "total", "seconds", "text"),
    [
        (250_000_000, 1_000_000_000, 2.5, " 25% [######                  ] 250 of 1,000 MB, 100 MB/s, 8 s left"),
        (1_000_000, 200_000_000, 1, "  0% [                        ] 1 of 200 MB, 1 MB/s, 3 min 19 s left"),
        (5, 5, 1, "100% [########################] 0 of 0 MB, 0 MB/s"),
        (9, 5, 0, "100% [########################] 0 of 0 MB, 0 MB/s"),
    ],
)
def test_a_line(done, total, seconds, text):
    assert line(done, total, seconds) == text


def test_a_watched_digest_is_the_digest():
    from hashlib import sha256

    ours, counted = sha256(), []
    count = lambda _, size: counted.append(size)  # noqa: E731
    watched = Watched(ours, type("Counter", (), {"begin": count, "advance": count})(), total=3)
    for part in (b"a", b"bc"):
        watched.update(part)
    assert ours.digest() == sha256(b"abc").digest()
    assert counted == [3, 1, 2]


@pytest.mark.parametrize(("code", "environ"), [("watch(quiet=True)", {}), ("watch(quiet=False)", {"CI": "true"})])
def test_silent_where_it_is_not_wanted(code, environ):
    assert on_terminal(code, environ) == "True"
    assert watch(quiet=False) is SILENT or sys.stderr.isatty()


def test_on_a_terminal_it_speaks():
    assert on_terminal("watch(quiet=False)", {"CI": ""}) == "False"


def on_terminal(code, environ):
    """Whether progress is silent where stderr is a terminal."""
    master, slave = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "CI": "", **environ}
    script = f"from rag_eval.common.progress import SILENT, watch\nprint({code} is SILENT)"
    done = subprocess.run([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, stderr=slave, text=True)
    os.close(master)
    os.close(slave)
    return done.stdout.strip()


def on_a_terminal(tmp_path, *words):
    """Run `rag-eval` with a terminal for stderr; return its exit code and what the terminal got."""
    master, slave = pty.openpty()
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-m", "rag_eval", *words], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=slave
    )
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 1 << 16):
            shown += part
    except OSError:  # Linux says so at the end
        pass
    os.close(master)
    return done.returncode, shown.decode()


def test_collecting_shows_a_bar_with_rate_and_errors(tmp_path):
    (tmp_path / "app.py").write_text(
        "import time\ndef answer(question):\n    time.sleep(0.05)\n    return 'x' if '3' not in question else 1 / 0\n",
        "utf-8",
    )
    item = {"answerable": False, "gold_claim_substr": [], "gold_citations": []}
    rows = [json.dumps({"qid": f"Q{number}", "question": f"q {number}?", **item}) for number in range(6)]
    (tmp_path / "gold.jsonl").write_text("\n".join(rows), "utf-8")
    code, shown = on_a_terminal(
        tmp_path, "collect", "--python", "app:answer", "--gold", "gold.jsonl", "--concurrency", "1"
    )
    assert code == 0, shown
    last = next(line for line in shown.replace("\r\n", "\n").split("\r") if line.startswith("6 of 6"))
    assert re.match(r"6 of 6 \[#{24}\] [0-9.]+ a second, 1 error\s*\n", last)
    for done, bar, rate, rest in re.findall(
        r"([1-5]) of 6 \[(#*) *\] ([0-9.]+) a second, [01] errors?, (\d+) s", shown
    ):
        assert len(bar) == 24 * int(done) // 6
        assert 0 < float(rate) < 20
        assert float(rest) == pytest.approx((6 - int(done)) / float(rate), abs=1)
    assert re.search(r"\r[1-5] of 6 \[#+ +\] [0-9.]+ a second, [01] errors?, [0-9]+ s left", shown)
