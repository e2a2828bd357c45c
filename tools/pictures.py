"""Make the pictures of the docs, and tell which of them are stale.

    python tools/pictures.py           needs Chromium (tests/e2e/install.sh)
    python tools/pictures.py --check   needs nothing: compares what each picture was made of

Each picture is made of a text: a page that rag-eval or cmarkgfm writes, with its width and colours. The file
docs/img/pictures.json has the digest of that text. Pixels differ from machine to machine, so they are not compared.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import cmarkgfm
from cmarkgfm.cmark import Options

from rag_eval.cli import main as rag_eval

ROOT = Path(__file__).resolve().parents[1]
FOLDER, RECORD = ROOT / "docs" / "img", ROOT / "docs" / "img" / "pictures.json"
EXAMPLE = "examples/quickstart"
INPUTS = [f"--gold={EXAMPLE}/gold.jsonl", f"--gates={EXAMPLE}/eval-gates.yml"]
WIDE, PHONE = 1120, 390
_VERSION = re.compile(r"(rag-eval )\d[\w.]*")
_RUNS = 12
_COMMENT = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>comment</title><style>
body { margin: 0; padding: 20px 24px; background: #fff; color: #1f2328; width: 800px;
  font: 16px/1.5 system-ui, "Segoe UI", "Liberation Sans", "DejaVu Sans", "Noto Color Emoji", sans-serif; }
h2 { margin: 0 0 16px; padding-bottom: 7px; border-bottom: 1px solid #d1d9e0; font-size: 24px; }
table { margin: 16px 0; border-collapse: collapse; } th, td { padding: 6px 13px; border: 1px solid #d1d9e0; }
tr:nth-child(2n) td { background: #f6f8fa; } ul { padding-left: 2em; } li { margin: 4px 0; } p { margin: 12px 0; }
code { padding: 3px 6px; border-radius: 6px; background: #818b981f; font: 85% "DejaVu Sans Mono", monospace; }
</style></head><body>"""
# The colours of a terminal, by the numbers of its escape codes.
_COLOURS = {"31": "#ff7b72", "32": "#56d364", "33": "#e3b341"}


class Picture(NamedTuple):
    """What a picture is made of: a page, the width and colours it is shown in, and where it is cut.

    ``since`` and ``until`` are scripts that give the y at which the picture begins and ends; without them it is the top
    of the page, and ``height`` below that. The source of what is seen begins with ``first`` and ends before ``last``.
    """

    page: str
    first: str
    last: str
    width: int = WIDE
    scheme: str = "light"
    height: int = 1400
    since: str = ""
    until: str = ""

    @property
    def digest(self) -> str:
        """The digest of what can be seen and how, apart from the version of rag-eval."""
        style = self.page.partition("<style>")[2].partition("</style>")[0]
        seen = self.first + self.page.partition(self.first)[2].partition(self.last)[0]
        text = json.dumps([style, _VERSION.sub(r"\1", seen), *self[3:]], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def main(arguments: list[str]) -> int:
    """Make the pictures, or list the stale ones with ``--check``."""
    found = pictures()
    digests = {name: one.digest for name, one in found.items()}
    terminal = terminal_svg()
    if arguments == ["--check"]:
        known = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
        stale = [name for name, digest in digests.items() if known.get(name) != digest]
        stale += [name for name in known if name not in digests or not (FOLDER / name).exists()]
        written = FOLDER / "terminal.svg"
        stale += ["terminal.svg"] if not written.exists() or written.read_text("utf-8") != terminal else []
        print("".join(f"docs/img/{name} is stale. Run: make pictures\n" for name in dict.fromkeys(stale)), end="")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "terminal.svg").write_text(terminal, "utf-8")
    take(found)
    RECORD.write_text(json.dumps(digests, indent=2) + "\n", "utf-8")
    return 0


def pictures() -> dict[str, Picture]:
    """Return every picture by the name of its file."""
    report = printed("score", *INPUTS, f"--trace={EXAMPLE}/bad.jsonl", "--format=html", "--details", "--quiet")
    comment = cmarkgfm.github_flavored_markdown_to_html(
        printed("score", *INPUTS, f"--trace={EXAMPLE}/bad.jsonl", "--format=markdown", "--quiet"),
        Options.CMARK_OPT_UNSAFE,
    )
    # What is folded cannot be seen.
    comment = re.sub(r"(?s)(</summary>).*?(</details>)", r"\1\2", f"{_COMMENT}{comment}</body></html>")
    history = history_page()
    runs = [f"{EXAMPLE}/good.jsonl", f"{EXAMPLE}/bad.jsonl"]
    compared = printed("compare", *runs, f"--gold={EXAMPLE}/gold.jsonl", "--format=html", "--quiet")
    second_table = "document.querySelectorAll('table')[1].getBoundingClientRect().bottom + 16"
    unfold = "document.querySelector('.details details').open = true"
    first_case = "document.querySelector('tr.details').getBoundingClientRect().bottom + 8"
    table = "document.querySelector('#cases').getBoundingClientRect().top - 8"
    head = (report, "<header>", '<section id="completeness"')
    trend = (history, "<header>", '<section id="flaky"')
    runs_head = (compared, "<header>", '<section id="part-2"')
    return {
        "comment-bad.png": Picture(comment, "<body>", "</body>", 848, until="document.body.scrollHeight"),
        "comment-top.png": Picture(comment, "<body>", "Completeness", 848, until=second_table),
        "report-light.png": Picture(*head),
        "report-dark.png": Picture(*head, scheme="dark"),
        "report-phone.png": Picture(*head, PHONE, height=1700),
        "details-light.png": Picture(
            report, '<table id="cases">', "</dl>", since=f"{unfold}; {table}", until=first_case
        ),
        "history-light.png": Picture(*trend),
        "history-dark.png": Picture(*trend, scheme="dark"),
        "history-phone.png": Picture(*trend, PHONE),
        "compare-light.png": Picture(*runs_head, height=1000),
        "compare-dark.png": Picture(*runs_head, scheme="dark", height=1000),
        "compare-phone.png": Picture(*runs_head, PHONE, height=1000),
    }


def printed(*words: str, folder: Path = ROOT) -> str:
    """Return what rag-eval prints, without colours."""
    output = io.StringIO()
    with chdir(folder), redirect_stdout(output):
        if rag_eval(list(words)) > 1:
            raise SystemExit(f"rag-eval {' '.join(words)} failed")
    return output.getvalue()


def history_page() -> str:
    """Return the page of twelve runs: each takes some answers of the bad run, the later ones more."""
    good, bad = (
        {json.loads(line)["qid"]: line for line in (ROOT / EXAMPLE / name).read_text("utf-8").splitlines()}
        for name in ("good.jsonl", "bad.jsonl")
    )
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        reports = folder / "reports"
        reports.mkdir()
        for run in range(_RUNS):
            where = folder / f"run-{run}"
            where.mkdir()
            # A number from 0 to 99 that is the same on every machine.
            drawn = {qid: hashlib.sha256(f"{run} {qid}".encode()).digest()[0] * 100 // 256 for qid in good}
            lines = [bad[qid] if drawn[qid] < 5 + 5 * run else good[qid] for qid in good]
            (where / "trace.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
            commit = hashlib.sha256(f"commit {run}".encode()).hexdigest()[:40]
            about = {"system_commit": commit, "started_at": f"2026-11-{run + 1:02}T08:00:00Z"}
            (where / "run.json").write_text(json.dumps(about), "utf-8")
            inputs = [word.replace("=", f"={ROOT}/") for word in INPUTS]
            printed("score", *inputs, "--trace=trace.jsonl", "--out=.", "--quiet", folder=where)
            (where / "report.json").rename(reports / f"{run + 1}.json")
        return printed("history", "--format=html", "--quiet", "reports", folder=folder)


def terminal_svg() -> str:
    """Return the output of a failed run in a terminal, with its colours."""
    from rag_eval.common.escaping import hypertext
    from rag_eval.rendering.terminal import coloured

    command = f"rag-eval score --trace {EXAMPLE}/bad.jsonl"
    text = printed("score", *INPUTS, f"--trace={EXAMPLE}/bad.jsonl", "--quiet")
    lines = [f"$ {command}", "", *coloured(text).rstrip("\n").split("\n")]
    rows, step = [], 18
    for place, line in enumerate(lines):
        parts = re.split("\x1b\\[(?:1;)?([0-9]+)m", line)
        spans = [hypertext(parts[0])]
        for code, part in zip(parts[1::2], parts[2::2], strict=True):
            colour = f' fill="{_COLOURS[code]}" font-weight="bold"' if code in _COLOURS else ""
            spans.append(f"<tspan{colour}>{hypertext(part)}</tspan>")
        rows.append(f'<text x="18" y="{52 + step * place}" xml:space="preserve">{"".join(spans)}</text>')
    width, height = 18 * 2 + int(8.43 * max(map(len, lines))), 52 + step * len(lines)
    dots = "".join(
        f'<circle cx="{x}" cy="20" r="5.5" fill="{fill}"/>'
        for x, fill in ((22, "#ff5f57"), (40, "#febc2e"), (58, "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="rag-eval score prints that four of eight gates failed">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>{dots}\n'
        '<g fill="#e6edf3" font-size="14" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, '
        "'DejaVu Sans Mono', monospace\">\n" + "\n".join(rows) + "\n</g>\n</svg>\n"
    )


def take(found: dict[str, Picture]) -> None:
    """Photograph each page in a browser."""
    sys.path.insert(0, str(ROOT / "tests"))
    from e2e.chromium import chromium

    with tempfile.TemporaryDirectory() as made, chromium(Path(made)) as browser:
        for name, one in found.items():
            path = Path(made) / "page.html"
            path.write_text(one.page, "utf-8")
            browser.prefers(one.scheme)
            browser.open(path, width=one.width)
            start, whole = (browser.run(_function(each)) for each in (one.since, "document.body.scrollHeight"))
            end = browser.run(_function(one.until)) if one.until else min(start + one.height, whole)
            browser.picture(FOLDER / name, clip=(int(start), one.width, int(end - start)))
            print(f"wrote docs/img/{name}")


def _function(script: str) -> str:
    """Return a script as a function that is called: its last expression is its value, 0 if there is none."""
    *first, last = script.split(";")
    return f"(() => {{ {'; '.join([*first, f'return {last or 0}'])} }})()"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
