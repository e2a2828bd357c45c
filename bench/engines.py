"""What more processes, and a dask cluster, bring for a large trace file: wall time against one process, in pairs.

    python bench/engines.py FOLDER [--rounds 3] [--engine process|dask] [--jobs 2] [--sizes|--once] [--perspective P]

FOLDER holds gold.jsonl and trace.jsonl (bench/make_data.py writes them). Each round takes one time of each kind, each
in turn first; the ratio of a round compares neighbours in time, so that what else the machine does weighs on both. The
whole run reads the gold, scores, and renders report.json; the traces alone are what an engine shares out. Memory is the
largest resident one. On a machine that is busy otherwise, look at the processor time of all processes: where it is as
much for two, they take half the wall time on two free cores. --sizes tells for which sizes of file processes pay.
--once measures --jobs alone, once, and prints it as JSON, for others to compare: on a cluster that stands already.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

RUN = """
import gc, hashlib, json, resource, sys, time
from rag_eval import api
from rag_eval.engines import ExecutionOptions
from rag_eval.rendering import render

class Stopwatch:
    def begin(self, total):
        self.begun = time.perf_counter()
    def advance(self, size):
        pass
    def end(self):
        self.seconds = time.perf_counter() - self.begun

if __name__ == "__main__":
    gc.disable()
    gold, trace, engine, jobs, scheduler, perspectives = sys.argv[1:]
    watch, begun = Stopwatch(), time.perf_counter()
    execution = ExecutionOptions(engine, int(jobs), scheduler, watch)
    narrow = tuple(filter(None, perspectives.split(",")))
    text = render(api.run(api.Options(gold, trace, perspectives=narrow, execution=execution)), "json")
    wall = time.perf_counter() - begun
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, child = (one.ru_maxrss // 1024 for one in used)
    busy = sum(one.ru_utime + one.ru_stime for one in used)
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = {"wall": wall, "scoring": watch.seconds, "cpu": busy, "parent": own, "child": child, "report": digest}
    print(json.dumps(found))
"""


def measured(gold, trace, perspectives, engine, jobs, scheduler=""):
    """Wall seconds of the run and of the traces alone, memory in MiB, and the digest of the report."""
    command = [sys.executable, "-c", RUN, str(gold), str(trace), engine, str(jobs), scheduler, perspectives]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def rounds(count, kinds):
    """For each kind its measurements, one a round, each round beginning with another kind."""
    found = [[] for _ in kinds]
    for number in range(count):
        for place in range(len(kinds)):
            one = (place + number) % len(kinds)
            found[one].append(kinds[one]())
    assert len({each["report"] for kind in found for each in kind}) == 1, "the reports differ"
    return found


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def compared(args, trace, few, many):
    """Print the rows of a table: few and many are jobs and a scheduler's address each."""
    gold, size = args.folder / "gold.jsonl", trace.stat().st_size / 1e6
    kinds = [partial(measured, gold, trace, args.perspective, args.engine, *kind) for kind in (few, many)]
    one, other = rounds(args.rounds, kinds)
    for key, name in (("wall", "the whole run"), ("scoring", "the traces alone"), ("cpu", "processor time")):
        ratios = [slow[key] / quick[key] for slow, quick in zip(one, other, strict=True)]
        seconds = [spread([each[key] for each in kind]) for kind in (one, other)]
        print(
            f"| {args.engine} | {size:,.1f} MB | {name} | {seconds[0]} | {seconds[1]} | {spread(ratios)} |", flush=True
        )
    single, parent, child = (most(kind, key) for kind, key in ((one, "parent"), (other, "parent"), (other, "child")))
    print(f"| | | memory, MiB | {single} | {parent}, and {child} a child | |", flush=True)


def most(measurements, key):
    return max(each[key] for each in measurements)


def head_of(trace, size, folder):
    """The first lines of a file, of about so many bytes."""
    with trace.open("rb") as file:
        data = file.read(size)
    part = Path(folder) / f"{size}.jsonl"
    part.write_bytes(data[: data.rfind(b"\n") + 1])
    return part


def once(args):
    """Print the seconds of one run, and as its number the digest of its report."""
    terms = args.folder / "gold.jsonl", args.folder / "trace.jsonl", args.perspective
    if args.engine == "process":
        found = measured(*terms, "process", args.jobs)
    else:
        with cluster(args.jobs) as one:
            found = measured(*terms, "dask", args.jobs, one.scheduler_address)
    print(json.dumps({"seconds": found["wall"], "numbers": {"report": found["report"]}}))


def cluster(workers):
    from distributed import LocalCluster

    terms = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    return LocalCluster(n_workers=workers, **terms)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", default="process", choices=("process", "dask"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sizes", action="store_true", help="files of 1, 2, 4, 8 and 16 MiB instead")
    parser.add_argument("--once", action="store_true", help="--jobs alone, once, as JSON")
    parser.add_argument("--perspective", default="", help="these metrics alone, as rag-eval score takes it")
    args = parser.parse_args()
    if args.once:
        once(args)
        return
    trace = args.folder / "trace.jsonl"
    cores = len(os.sched_getaffinity(0))
    print(f"cores {cores}, load {os.getloadavg()[0]:.1f}, rounds {args.rounds}, jobs {args.jobs}\n")
    print("| engine | traces | measured | 1 job, s | all jobs, s | ratio |\n|---|---|---|---|---|---|")
    if args.sizes:
        with tempfile.TemporaryDirectory() as folder:
            for mib in (1, 2, 4, 8, 16):
                compared(args, head_of(trace, mib << 20, folder), (1,), (args.jobs,))
    elif args.engine == "process":
        compared(args, trace, (1,), (args.jobs,))
    else:
        with cluster(1) as one, cluster(args.jobs) as many:
            compared(args, trace, (1, one.scheduler_address), (args.jobs, many.scheduler_address))
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
