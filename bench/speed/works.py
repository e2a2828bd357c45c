"""The works: commands to measure, their peers, and the required figures. Commands run in the folder of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from speed import checks
from speed.data import RUNS, TIMES

Numbers = dict[str, float]
OURS, PLAIN = "rag-eval", "plain scorer"
CORE = "answers,refusals,citations,retrieval"


class Side(NamedTuple):
    """A command. ``numbers`` parses its output; with ``own`` it measures its own seconds."""

    name: str
    command: str
    numbers: Callable[[str], Numbers] | None = None
    own: bool = False


class Ask(NamedTuple):
    """A bound of a quantity (``wall`` or ``memory``) of a side, divided by ``factor`` times that of another side.

    Without another side it is the quantity itself. With ``least`` the limit is a minimum.
    """

    words: str
    side: str
    over: str
    limit: float
    least: bool = False
    quantity: str = "wall"
    factor: float = 1


class Work(NamedTuple):
    """``pairs`` are sides to compare, ours first; ``short`` is the title for the chart.

    Our numbers are the output of our side, of ``truth`` if that is a page for people, or ``expected``.
    ``rounds`` is the number of rounds if the time allows; ``cost`` is the approximate seconds of a round.
    """

    key: str
    short: str
    title: str
    data: tuple[str, ...]
    sides: tuple[Side, ...]
    pairs: tuple[tuple[str, str], ...]
    asks: tuple[Ask, ...] = ()
    truth: str = ""
    expected: tuple[tuple[str, float], ...] = ()
    rounds: int = 3
    cost: float = 1
    quick: bool = False
    note: str = ""

    def side(self, name: str) -> Side:
        return next(one for one in self.sides if one.name == name)


def files(data):
    return f"--gold {data}/gold.jsonl --trace {data}/trace.jsonl"


def score(options, data):
    return f"{{rag-eval}} score {options} --quiet {files(data)}"


def reports(data):
    """Return the command with every metric, gates, a baseline, and all reports, as the action writes them."""
    return score(f"{GATED} {data}/baseline.json --format markdown --out reports", data)


def ours(data, options=""):
    """Return the command that prints the values of our report, from the library."""
    return f"{{python}} {{peers}}/ours.py {data}/gold.jsonl {data}/trace.jsonl {options}".rstrip()


def plain(data):
    return Side(PLAIN, f"{{plain}} {files(data)}", checks.scores)


def at_most(limit, words, side=OURS, over=PLAIN, **more):
    return Ask(words, side, over, limit, **more)


def faster(limit, words, peer=PLAIN, own=OURS, **more):
    return Ask(words, peer, own, limit, least=True, **more)


def of_files(name, script, data):
    """Return a peer that reads the files and prints the scores."""
    return Side(name, f"{{python}} {{peers}}/{script} {data}/gold.jsonl {data}/trace.jsonl", checks.scores)


def retrieval(*libraries, whole=""):
    sides = (Side(name, f"{{python}} {{peers}}/retrieval.py {name}{whole}", checks.own, own=True) for name in libraries)
    return tuple(sides)


def dask(jobs):
    name = f"dask, {jobs} worker{'s' if jobs > 1 else ''}"
    command = f"{{python}} {{root}}/bench/engines.py 5m --engine dask --jobs {jobs} --perspective {CORE} --once"
    return Side(name, command, checks.own, own=True)


LOOP = "for run in 30-runs/run-*.jsonl; do {plain} --gold 30-runs/gold.jsonl --trace $run; done"
GATED = "--gates {root}/bench/speed/gates-baseline.yml --baseline"
WITH_BASELINE = f"{GATED} 100k/baseline.json"
LOOPED = f"plain scorer, {RUNS} times"
RANKED = f"--format markdown --perspective {CORE}"
SCORES = "rag-eval, --format scores"
WITH_CORE = "rag-eval, core and retrieval metrics"

WORKS = (
    Work(
        "small-scores",
        "100 questions, --format scores",
        "100 questions, `--format scores`",
        ("100",),
        (Side(OURS, score("--format scores", "100"), checks.scores), plain("100")),
        ((OURS, PLAIN),),
        (at_most(2.1, "2.1 × the plain scorer's time or less"),),
        rounds=31,
        cost=0.15,
        quick=True,
    ),
    Work(
        "small-gates",
        "100 questions, gates, Markdown",
        "100 questions, gates file and Markdown",
        ("100",),
        (
            Side(OURS, score("--gates {root}/src/rag_eval/templates/gates-reference.yml --format markdown", "100")),
            plain("100"),
        ),
        ((OURS, PLAIN),),
        (at_most(4.5, "4.5 × the plain scorer's time or less"),),
        truth=ours("100"),
        rounds=31,
        cost=0.3,
        quick=True,
    ),
    Work(
        "pull-request",
        "pull request: 200 questions",
        "a pull request: 200 questions × 8 chunks of 110 words, every metric, gates, a baseline, all reports",
        ("200-chunks",),
        (Side(OURS, reports("200-chunks")), plain("200-chunks")),
        ((OURS, PLAIN),),
        (at_most(100e6, "100 MB a process", over="", quantity="memory"),),
        truth=ours("200-chunks"),
        rounds=7,
        cost=2,
        quick=True,
        note="the plain scorer computes five numbers and reads no chunk text",
    ),
    Work(
        "nightly",
        "nightly: 2,000 questions",
        "a nightly run: 2,000 questions × 8 chunks of 110 words, every metric, gates, a baseline, all reports",
        ("2k-chunks",),
        (Side(OURS, reports("2k-chunks")), plain("2k-chunks")),
        ((OURS, PLAIN),),
        (at_most(100e6, "100 MB a process", over="", quantity="memory"),),
        truth=ours("2k-chunks"),
        cost=8,
        quick=True,
        note="the plain scorer computes five numbers and reads no chunk text",
    ),
    Work(
        "ten-thousand",
        "10,000 questions",
        "10,000 questions, one run",
        ("10k",),
        (
            Side(SCORES, score("--format scores", "10k"), checks.scores),
            Side(WITH_CORE, score(RANKED, "10k")),
            plain("10k"),
            of_files("duckdb", "duckdb_scores.py", "10k"),
            of_files("polars", "polars_scores.py", "10k"),
        ),
        ((SCORES, PLAIN), (WITH_CORE, PLAIN), (SCORES, "duckdb"), (SCORES, "polars")),
        (faster(1, "`--format scores` as fast as the plain scorer", own=SCORES),),
        rounds=15,
        cost=2,
        quick=True,
    ),
    Work(
        "validation",
        "10,000 questions, validated",
        "10,000 questions, every row held against its schema",
        ("10k",),
        (
            Side("rag-eval, which scores as well", score("--format scores", "10k")),
            Side(
                "jsonschema alone",
                "{python} {peers}/jsonschema_only.py {root}/schemas 10k/gold.jsonl 10k/trace.jsonl",
                checks.own,
            ),
        ),
        (("rag-eval, which scores as well", "jsonschema alone"),),
        expected=(("gold rows", 10_000), ("trace rows", 10_000), ("problems", 0)),
        rounds=3,
        cost=6,
        quick=True,
    ),
    Work(
        "retrieval",
        "retrieval alone",
        "retrieval metrics alone, 10,000 queries × 20, in memory",
        (),
        retrieval(OURS, "pytrec_eval", "ir_measures", "ranx"),
        ((OURS, "pytrec_eval"), (OURS, "ir_measures"), (OURS, "ranx")),
        (faster(1, "ahead of pytrec_eval", "pytrec_eval"),),
        rounds=3,
        cost=25,
        quick=True,
        note="warm: in each library's own form, and called once before, when ranx compiles for half a minute",
    ),
    Work(
        "retrieval-whole",
        "retrieval alone, whole lists",
        "retrieval metrics of whole lists, 10,000 queries × 20, in memory",
        (),
        retrieval(OURS, "continuous-eval", whole=" --whole"),
        ((OURS, "continuous-eval"),),
        rounds=3,
        cost=15,
        quick=True,
        note="warm; its average precision, which divides by what was found, and its F1 are computed and not compared",
    ),
    Work(
        "every-metric",
        "100,000 questions, every metric",
        "100,000 questions without chunk texts, every metric, intervals, paired tests against a baseline",
        ("100k",),
        (
            Side(
                OURS,
                score(f"{WITH_BASELINE} --format markdown", "100k"),
            ),
            plain("100k"),
        ),
        ((OURS, PLAIN),),
        (
            at_most(2, "at most 2 × the plain scorer's time"),
            at_most(1, "no more memory than the plain scorer", quantity="memory"),
        ),
        truth=ours("100k"),
        cost=25,
    ),
    Work(
        "reports",
        "all reports of 100,000 questions",
        "100,000 questions, core and retrieval metrics, all reports written",
        ("100k",),
        (
            Side("rag-eval, --out", score(f"--perspective {CORE} --format markdown --out reports", "100k")),
            Side(OURS, score(RANKED, "100k")),
        ),
        (("rag-eval, --out", OURS),),
        (at_most(10, "10 seconds or less", "rag-eval, --out", ""),),
        cost=30,
        note="the folder holds the report as JSON, HTML, Markdown, text, CSV, JUnit XML and SARIF",
    ),
    Work(
        "questions-with-chunks",
        "100,000 questions with texts, core",
        "100,000 questions with chunk texts (660 MB), core and retrieval metrics",
        ("100k-chunks",),
        (Side(OURS, score(RANKED, "100k-chunks")), plain("100k-chunks")),
        ((OURS, PLAIN),),
        (at_most(100e6, "100 MB a process", over="", quantity="memory"),),
        truth=ours("100k-chunks", CORE),
        cost=6,
    ),
    Work(
        "million",
        "1M traces",
        "1,000,000 traces of 10,000 questions (655 MB), core and retrieval metrics",
        ("1m",),
        (
            Side(OURS, score(RANKED, "1m")),
            Side(SCORES, score("--format scores", "1m"), checks.scores),
            plain("1m"),
            of_files("duckdb", "duckdb_scores.py", "1m"),
            of_files("polars", "polars_scores.py", "1m"),
        ),
        ((OURS, PLAIN), (SCORES, PLAIN), (SCORES, "duckdb"), (SCORES, "polars")),
        (
            faster(2.2, "2.2 × faster than the plain scorer"),
            at_most(100e6, "100 MB a process", over="", quantity="memory"),
        ),
        truth=ours("1m", CORE),
        cost=35,
        note="each question is answered 100 times, the last counts; duckdb and polars print only the five numbers",
    ),
    Work(
        "five-million",
        "5M traces",
        "5,000,000 traces of 10,000 questions (3.3 GB), core and retrieval metrics",
        ("5m", "1m"),
        (Side("5M traces", score(RANKED, "5m")), Side("1M traces", score(RANKED, "1m"))),
        (("5M traces", "1M traces"),),
        (
            at_most(1.1, "at most 10 % more time a trace", "5M traces", "1M traces", factor=TIMES),
            Ask("at most 10 % less time a trace", "5M traces", "1M traces", 0.9, least=True, factor=TIMES),
            at_most(1.1, "the same memory (within 10 %)", "5M traces", "1M traces", quantity="memory"),
            at_most(100e6, "100 MB a process", "5M traces", "", quantity="memory"),
        ),
        rounds=2,
        cost=50,
    ),
    Work(
        "dask",
        "5M traces",
        "5,000,000 traces of 10,000 questions, core and retrieval metrics, by dask",
        ("5m",),
        (dask(2), dask(1)),
        (("dask, 2 workers", "dask, 1 worker"),),
        (faster(1.6, "2 workers 1.6 × as fast as 1", "dask, 1 worker", "dask, 2 workers"),),
        rounds=1,
        cost=120,
        note="from the gold to report.json on a cluster that stands; the reports are equal, byte for byte",
    ),
    Work(
        "named-runs",
        f"{RUNS} runs of 10,000 questions",
        f"{RUNS} named runs of 10,000 questions in one pass, core and retrieval metrics",
        ("30-runs",),
        (Side(OURS, score(RANKED, "30-runs")), Side(LOOPED, LOOP, checks.all_runs)),
        ((OURS, LOOPED),),
        (faster(1, f"faster than {RUNS} runs of the plain scorer", LOOPED),),
        truth=ours("30-runs", CORE),
        rounds=2,
        cost=20,
        note=f"{RUNS} runs of the plain scorer in a loop of the shell, one file each",
    ),
    Work(
        "unique",
        "1M questions",
        "1,000,000 questions, a trace each",
        ("1m-unique",),
        (
            Side(SCORES, score("--format scores", "1m-unique"), checks.scores),
            Side(WITH_CORE, score(RANKED, "1m-unique")),
            plain("1m-unique"),
        ),
        ((SCORES, PLAIN), (WITH_CORE, PLAIN)),
        (
            faster(5, "`--format scores` 5 × faster than the plain scorer", own=SCORES),
            at_most(0.25, "`--format scores` in a quarter of the plain scorer's memory", SCORES, quantity="memory"),
        ),
        rounds=1,
        cost=70,
    ),
)
