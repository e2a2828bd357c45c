"""Measures the HTML report: its size, the time to write it, and what Chromium takes to open and to filter it.

    python bench/html_report.py [--write] [--runs N]

Needs Chromium (tests/e2e/install.sh installs it, as root). All times are processor time, of the process or of the
page's main thread, which other work on the machine touches less than the clock. --write puts them into bench/HTML.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

from e2e.chromium import chromium  # noqa: E402
from rag_eval.rendering import render  # noqa: E402
from rag_eval.rendering.data_formats import from_json  # noqa: E402

SIZES = (100, 1_000, 10_000)
LABELS = ("OK", "OK", "OK", "OK", "REFUSAL_OK", "NOT_RETRIEVED", "WRONG_CLAIM", "HALLUCINATION")
WORDS = "how long is the tracking data of a parcel kept where nobody at home has signed for it twice".split()
ACTS = {
    "choose a label": "const s = document.querySelector('select[data-choice=label]'); s.selectedIndex = 2;"
    "s.dispatchEvent(new Event('change', {bubbles: true}))",
    "clear": "document.getElementById('clear').click()",
    "search": "const search = document.getElementById('search');"
    "search.value = 'tracking twice'; document.getElementById('filters').dispatchEvent(new Event('change'))",
    "sort by text": "[...document.querySelectorAll('#cases th button')].find(b => b.textContent === 'Text').click()",
    "show all rows": "document.getElementById('clear').click(); document.getElementById('all').click()",
}
DONE = "(async () => {{ {}; await new Promise(done => requestAnimationFrame(() => setTimeout(done))); }})()"


def report_of(questions):
    """The bad run of the quickstart beside its baseline, with as many questions of some fourteen words."""
    value = json.loads((ROOT / "tests/expected/compared/report.json").read_text("utf-8"))
    rng, one = random.Random("html"), value["questions"][0]
    value["questions"] = [
        {
            **one,
            "qid": f"Q{place:05}",
            "label": rng.choice(LABELS),
            "question": " ".join(rng.choices(WORDS, k=14)).capitalize() + "?",
            "gold_line": place + 1,
            "trace_line": place + 1,
        }
        for place in range(questions)
    ]
    return from_json(value)


def written(report, times):
    """The text, and the seconds of processor time that it takes."""
    found = []
    for _ in range(times + 1):
        began = time.process_time()
        text = render(report, "html")
        found.append(time.process_time() - began)
    return text, found[1:]


def seconds(browser):
    """Processor time of the page's main thread since the browser began."""
    found = browser.ask("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in found if each["name"] == "TaskDuration")


def opened(path, times):
    """Seconds to open the page in a browser of its own, and milliseconds of each of the acts, until the next frame."""
    loads, acts = [], {name: [] for name in ACTS}
    for _ in range(times):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, chromium(Path(folder)) as browser:
            browser.ask("Performance.enable", timeDomain="threadTicks")
            browser.open(path)
            loads.append(seconds(browser))
            for name, script in ACTS.items():
                before = seconds(browser)
                browser.run(DONE.format(script))
                acts[name].append(1_000 * (seconds(browser) - before))
    return loads, acts


def measured(times):
    """The rows of the table."""
    columns = []
    with tempfile.TemporaryDirectory() as folder:
        for questions in SIZES:
            text, spent = written(report_of(questions), times)
            path = Path(folder) / f"{questions}.html"
            path.write_text(text, "utf-8")
            loads, acts = opened(path, times)
            packed = len(gzip.compress(text.encode(), mtime=0))
            own = [
                f"{len(text.encode()) / 1e6:.2f} MB",
                f"{packed / 1e6:.2f} MB",
                f"{median(spent):.2f} s",
                f"{median(loads):.2f} s",
            ]
            columns.append([*own, *(f"{median(found):.0f} ms" for found in acts.values())])
            print(questions, columns[-1], flush=True)
    names = ["size", "size, gzip", "to write", "to open", *ACTS]
    return list(zip(names, *columns, strict=True))


def table(rows, times):
    head = ["", *(f"{size:,} questions" for size in SIZES)]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    about = (
        f"Written by `python bench/html_report.py --write` ({platform.system()}, 2 cores; median of {times} runs).\n"
        "Times are processor time: of Python, and of the page's main thread until the next frame is ready."
    )
    return "\n".join(["# The HTML report, measured", "", about, "", *lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    text = table(measured(args.runs), args.runs)
    if args.write:
        (ROOT / "bench/HTML.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
