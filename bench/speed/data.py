"""The data sets of the works: made when one is needed, kept while another needs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from speed.measuring import ROOT, WORDS, Failed

TIMES, RUNS = 5, 30
WORDS_OF_AN_ANSWER = "54"  # rows of 655 bytes, or of 6.6 kB with chunk texts
SPARE = 2_000_000_000  # bytes that a disk keeps


class Data(NamedTuple):
    """The size of a data set in bytes, options of make_data.py, and how it is derived, or from which other set."""

    size: int
    options: str = ""
    derive: str = ""
    of: str = ""


SETS = {
    "100": Data(100_000, "100"),
    "10k": Data(9_000_000, "10000"),
    "1m": Data(660_000_000, "10000 1000000"),
    "5m": Data(3_300_000_000, derive="repeated", of="1m"),
    "200-chunks": Data(3_000_000, "200 --chunks", derive="earlier"),
    "2k-chunks": Data(30_000_000, "2000 --chunks", derive="earlier"),
    "30-runs": Data(400_000_000, "10000 300000 --runs", derive="cut"),
    "100k-chunks": Data(675_000_000, "100000 --chunks"),
    "100k": Data(400_000_000, "100000", derive="earlier"),
    "1m-unique": Data(870_000_000, "1000000"),
}


def ready(folder, name, say):
    """Make a data set in ``folder`` unless it exists; raise Failed if the disk is too small."""
    data, own = SETS[name], folder / name
    if own.is_dir():
        return
    if data.of:
        ready(folder, data.of, say)
    if shutil.disk_usage(folder).free < data.size + SPARE:
        raise Failed(f"its data takes {data.size / 1e9:.1f} GB, which the disk lacks")
    say(f"data set {name}: {data.size / 1e6:,.0f} MB")
    part = folder / f"{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    if data.options:
        make(part, *data.options.split())
    if data.derive:
        DERIVATIONS[data.derive](part, folder / data.of, data.options)
    part.rename(own)


def make(folder, *options):
    command = [sys.executable, ROOT / "bench" / "make_data.py", folder, *options, "--words", WORDS_OF_AN_ANSWER]
    subprocess.run(command, check=True)


def repeated(own, source, _):
    """Repeat the traces of another set several times, for the same gold."""
    os.link(source / "gold.jsonl", own / "gold.jsonl")
    with (own / "trace.jsonl").open("wb") as file:
        for _ in range(TIMES):
            with (source / "trace.jsonl").open("rb") as part:
                shutil.copyfileobj(part, file, 1 << 20)


def cut(own, *_):
    """Write a file for each run, next to the file with all runs."""
    with (own / "trace.jsonl").open("rb") as file:
        for number in range(RUNS):
            lines = [file.readline() for _ in range(10_000)]
            (own / f"run-{number:03d}.jsonl").write_bytes(b"".join(lines))


def earlier(own, _, options):
    """Write a baseline: the report of another run over the same questions."""
    other = own / "earlier"
    make(other, *options.split(), "--seed", "earlier")
    command = [WORDS["rag-eval"], "score", "--gold", "gold.jsonl", "--trace", "earlier/trace.jsonl", "--format", "json"]
    with (own / "baseline.json").open("wb") as file:
        done = subprocess.run([*command, "--quiet"], cwd=own, stdout=file, check=False)
    if done.returncode not in (0, 1):
        raise Failed("its baseline cannot be made")
    shutil.rmtree(other)


DERIVATIONS = {"repeated": repeated, "cut": cut, "earlier": earlier}


def drop(folder, names):
    for name in names:
        shutil.rmtree(folder / name, ignore_errors=True)


def with_sources(names):
    """Return the sets and those from which they are derived."""
    return {source for name in names for source in (name, SETS[name].of) if source}


def size_of(folder, command):
    """Return the total size of the gold and trace files in a command."""
    words = command.replace(";", " ").split()
    files = [words[place + 1] for place, word in enumerate(words[:-1]) if word in ("--gold", "--trace")]
    return sum(Path(folder, file).stat().st_size for file in files if Path(folder, file).is_file())
