"""Measures rag-eval against its peers and writes bench/RESULTS.md, results.json and results.svg after each work.

    python bench/speed [--only KEY]… [--quick] [--rounds N] [--minutes N] [--data DIR] [--base REF | --render]

Needs the dependency group bench, which `make bench` installs. Without --only or --quick it measures all works, one
after the other, in about 20 minutes. A work takes at least one round, and more if its share of the minutes allows. No
work begins when the minutes are over. The table gives the reason for each missing figure. Earlier results of works that
are not measured now stay. Data sets are made when they are needed, in a temporary folder, and removed when no further
work needs them; those in --data are not removed. --base measures the code of another commit instead of the peers,
prints the ratios, and writes no file. Both sides use the packages that are installed now.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from speed import data, figures
from speed.chart import chart
from speed.measuring import ROOT, Failed
from speed.page import page
from speed.session import measure
from speed.works import WORKS

BENCH = ROOT / "bench"
PEERS = "pytrec-eval-terrier ir_measures ranx continuous-eval duckdb polars jsonschema dask".split()


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: this also ends what was started
    if args.render:
        write(recorded())
        return
    if args.base:
        with tempfile.TemporaryDirectory() as folder:
            against(args, Path(folder))
        return
    chosen = chosen_of(args)
    if args.data:
        args.data.mkdir(parents=True, exist_ok=True)
        measure_all(chosen, args.data.resolve(), args, keep=True)
    else:
        with tempfile.TemporaryDirectory() as folder:
            measure_all(chosen, Path(folder), args, keep=False)
    say("done: bench/RESULTS.md, results.json, results.svg")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    keys = [work.key for work in WORKS]
    parser.add_argument("--only", action="append", metavar="KEY", choices=keys, default=[], help=", ".join(keys))
    parser.add_argument("--quick", action="store_true", help="the works that need no large files")
    parser.add_argument("--rounds", type=int, default=0, help="the maximum number of rounds of each work")
    parser.add_argument("--minutes", type=float, default=20, help="for all works together, roughly (20)")
    parser.add_argument("--data", type=Path, help="the folder of data sets, which are made if they are missing")
    parser.add_argument("--base", metavar="REF", help="compare with this branch or commit instead of the peers")
    parser.add_argument("--render", action="store_true", help="write page and chart from results.json again")
    return parser.parse_args()


def chosen_of(args):
    return [work for work in WORKS if (work.key in args.only if args.only else work.quick or not args.quick)]


def against(args, folder):
    """Print the time of each work divided by its time at another commit."""
    code = folder / "base"
    code.mkdir()
    archive = subprocess.run(
        ["git", "archive", args.base, "src", "schemas"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", code], input=archive.stdout, check=True)
    for source in (code, ROOT / "src"):  # without byte code, a small run mostly compiles
        compileall.compile_dir(source, quiet=1)
    kept = args.data.resolve() if args.data else folder / "data"
    kept.mkdir(parents=True, exist_ok=True)
    for work in map(partial(beside, code=code, ref=args.base), chosen_of(args)):
        found = one_of(work, kept, args.rounds or work.rounds, args.minutes * 60)
        for head, base in work.pairs:
            ratios = {what: figures.ratios(found["rounds"], head, base, what) for what in ("wall", "cpu", "memory")}
            shown = ", ".join(f"{what} {figures.spread(all_)} ×" for what, all_ in ratios.items() if all_)
            say(f"{work.key}, {head}: {shown or found['failed']}")


def beside(work, code, ref):
    """Return a work whose sides are ours, each paired with the same one at another commit."""
    mine = [side for side in work.sides if side.command.startswith("{rag-eval}")]
    run = f"env PYTHONPATH={code}/src {{python}} -m rag_eval"
    head = [
        side._replace(numbers=None, command=side.command.replace("{rag-eval}", "{python} -m rag_eval")) for side in mine
    ]
    base = [
        side._replace(name=f"{side.name} at {ref}", command=side.command.replace("{rag-eval}", run)) for side in mine
    ]
    base = [side._replace(numbers=None) for side in base]
    pairs = tuple(zip((one.name for one in head), (one.name for one in base), strict=True))
    return work._replace(sides=(*head, *base), pairs=pairs, truth="", expected=(("none", 0),))


def measure_all(works, folder, args, *, keep):
    end = time.monotonic() + args.minutes * 60
    for place, work in enumerate(works):
        if time.monotonic() > end:
            say(f"left out, because the time is over: {', '.join(one.key for one in works[place:])}")
            break
        say(f"[{place + 1}/{len(works)}] {work.key}: {work.title}")
        # The rest of the time is divided by the cost of the works; their data sets take time, too.
        share = (end - time.monotonic()) * weight(work) / sum(map(weight, works[place:]))
        rounds = min(work.rounds, args.rounds or work.rounds)
        record(work, folder, one_of(work, folder, rounds, share))
        if not keep:
            needed = data.with_sources(name for later in works[place + 1 :] for name in later.data)
            data.drop(folder, data.SETS.keys() - needed)


def weight(work):
    return work.cost * (work.rounds + 1)


def one_of(work, folder, rounds, seconds):
    begun = time.monotonic()
    try:
        for name in work.data:
            data.ready(folder, name, say)
        return measure(work, folder, rounds, seconds - (time.monotonic() - begun), say)
    except (Failed, subprocess.CalledProcessError, OSError) as error:
        say(f"not measured: {error}")
        return {"rounds": [], "failed": {"": str(error)}, "load": os.getloadavg()[0]}


def record(work, folder, found):
    """Add the results of a work to the earlier ones."""
    sizes = {side.name: data.size_of(folder, side.command) for side in work.sides}
    where = {"machine": machine(), "packages": packages(), "commit": commit(), "bytes": sizes}
    write({**recorded(), work.key: {**where, **found}})


def recorded():
    path = BENCH / "results.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def write(results):
    """Write all three files; results of works that no longer exist are left out."""
    kept = {work.key: results[work.key] for work in WORKS if work.key in results}
    (BENCH / "results.json").write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    (BENCH / "RESULTS.md").write_text(page(WORKS, kept), "utf-8")
    (BENCH / "results.svg").write_text(chart(WORKS, kept), "utf-8")


def machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{processor()}, {cores} cores, {memory} GiB, {platform.system()}, Python {platform.python_version()}"


def processor():
    """Return the name of the processor on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def packages():
    return ", ".join(f"{name} {version(name)}" for name in PEERS)


def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def commit():
    """Return the measured commit, and say if the code differs from it."""
    changed = git("status", "--porcelain", "--", "src", "bench/speed", "bench/make_data.py", "tests/plain_scorer.py")
    return (git("rev-parse", "--short", "HEAD") or "an unknown commit") + (", with changes" if changed else "")


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def say(text):
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


if __name__ == "__main__":
    main()
