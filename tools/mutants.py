"""Measure how many small faults in the code the tests notice.

    python tools/mutants.py [--base main | --modules 'src/rag_eval/cli/*.py' …] [--tests 'tests/cli/*.py' …]

Makes one small change at a time (a mutant: `<` for `<=`, `and` for `or`, a number plus one, a call left out, …) in a
copy of the repository and runs the tests that enter the changed function. A mutant that no test fails on survives: a
test is missing, or the code can go. Without --modules the lines changed since --base are mutated. Ends with code 1 if
fewer than --least percent are killed.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[1]
FIRST = 30
"""Tests that are tried before all others that enter the changed function."""
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_COMPUTED: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*"}

ENTERED = """
import os

class Entered(set):
    def add(self, function):
        if function not in self:
            super().add(function)
            if os.environ.get("MUTANTS_PID", str(os.getpid())) != str(os.getpid()):  # a command that a test started
                with open(os.environ["MUTANTS_OUT"] + ".commands", "a") as file:
                    file.write(os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0] + "\\t" + function + "\\n")

entered = Entered()
"""

PLUGIN = """
import json, os, time
import pytest
import mutants_entered

FOUND, FAILED = {}, set()
os.environ["MUTANTS_PID"] = str(os.getpid())

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    mutants_entered.entered.clear()
    begun = time.perf_counter()
    yield
    FOUND[item.nodeid] = [time.perf_counter() - begun, sorted(mutants_entered.entered)]

def pytest_runtest_logreport(report):
    if report.failed:
        FAILED.add(report.nodeid)

def pytest_sessionfinish(session):
    commands = os.environ["MUTANTS_OUT"] + ".commands"
    for line in open(commands) if os.path.exists(commands) else ():
        test, function = line.rstrip("\\n").split("\\t")
        if test in FOUND and function not in FOUND[test][1]:
            FOUND[test][1].append(function)
    with open(os.environ["MUTANTS_OUT"], "w") as file:
        passed = {test: row for test, row in FOUND.items() if test not in FAILED}
        json.dump({"passed": passed, "failed": sorted(FAILED)}, file)
"""


class Mutant(NamedTuple):
    """A change of one place of a file: the text between two offsets becomes another one."""

    path: str
    function: str
    line: int
    start: int
    end: int
    new: str
    kind: str


class Outcome(NamedTuple):
    """A mutant and how its tests ended: killed, timed out (which counts as killed), survived or untested."""

    mutant: Mutant
    result: str
    tests: int


class _Mutator(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source, self.found = path, source, list[Mutant]()
        self._function = ""
        lines = source.splitlines(keepends=True)
        self._offsets = [sum(len(line) for line in lines[:number]) for number in range(len(lines) + 1)]
        self._lines = lines

    def _at(self, line: int, column: int) -> int:
        """The offset of a place that `ast` names by the bytes before it."""
        return self._offsets[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _add(self, node: ast.expr | ast.stmt, new: str, kind: str) -> None:
        start = self._at(node.lineno, node.col_offset)
        end = self._at(node.end_lineno or node.lineno, node.end_col_offset or 0)
        if self.source[start:end] != new:
            self.found.append(Mutant(self.path, self._function, node.lineno, start, end, new, kind))

    def _text(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.source, node) or ast.unparse(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        above, self._function = self._function, f"{self._function}.{node.name}".lstrip(".")
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self._body(node.body)
        self._function = above

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        above, self._function = self._function, f"{self._function}.{node.name}".lstrip(".")
        self._body(node.body)
        self._function = above

    def visit_Module(self, node: ast.Module) -> None:
        self._body(node.body)

    def _body(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):  # a docstring
                self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if not names & {"TYPE_CHECKING", "__all__"}:
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negated(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def _negated(self, test: ast.expr) -> None:
        if not isinstance(test, (ast.Compare, ast.UnaryOp)):  # these have mutants of their own
            self._add(test, f"(not ({self._text(test)}))", "condition")

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1:
            new = f"{self._text(node.left)} {_COMPARED[type(node.ops[0])]} {self._text(node.comparators[0])}"
            self._add(node, f"({new})", "comparison")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = "or" if isinstance(node.op, ast.And) else "and"
        self._add(node, f"({f' {word} '.join(f'({self._text(value)})' for value in node.values)})", "and/or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, f"bool({self._text(node.operand)})", "not")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(isinstance(side, (ast.JoinedStr, ast.List, ast.Dict)) for side in (node.left, node.right))
        if type(node.op) in _COMPUTED and not texts and not _is_text(node.left) and not _is_text(node.right):
            new = f"({self._text(node.left)} {_COMPUTED[type(node.op)]} {self._text(node.right)})"
            self._add(node, new, "arithmetic")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, str(not node.value), "constant")
        elif isinstance(node.value, int):
            self._add(node, str(node.value + 1), "constant")
        elif isinstance(node.value, str) and node.value.strip():
            self._add(node, repr(f"{node.value}_"), "text")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._add(node, "'mutant'", "text")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add(node, "return None", "return")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add(node, "pass", "call left out")
        self.generic_visit(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def mutants_of(folder: Path, path: str, changed: set[int] | None) -> list[Mutant]:
    """All mutants of a file, or those on the changed lines."""
    source = (folder / path).read_text("utf-8")
    mutator = _Mutator(path, source)
    mutator.visit(ast.parse(source))
    return [one for one in mutator.found if changed is None or one.line in changed]


def sampled(found: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """A random sample; changed texts are at most a quarter of it."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    texts = [one for one in found if one.kind == "text"]
    others = [one for one in found if one.kind != "text"]
    few = chance.sample(texts, min(len(texts), max(number // 4, number - len(others))))
    return few + chance.sample(others, min(len(others), number - len(few)))


def changed_lines(base: str) -> dict[str, set[int]]:
    """The lines of each source file that differ from a branch or commit."""
    found: dict[str, set[int]] = defaultdict(set)
    path = ""
    for line in _git("diff", "--unified=0", base, "--", "src").splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found[path] |= set(range(first, first + count))
    return {path: lines for path, lines in found.items() if path.endswith(".py") and lines}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603, S607


def copy_to(folder: Path) -> Path:
    """A copy of all files of the repository but the ignored ones."""
    for path in _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if path and (ROOT / path).exists():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, folder / path, follow_symlinks=False)
    return folder


def instrument(source: str, name: str) -> str:
    """Source whose functions note that they were entered."""
    tree = ast.parse(source)
    for scope, node in _functions(tree, ""):
        note = f"__import__('mutants_entered').entered.add({f'{name}:{scope}'!r})"
        place = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body.insert(place, ast.parse(note).body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


def _functions(node: ast.AST, above: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        inside = above
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            inside = f"{above}.{child.name}".lstrip(".")
        if isinstance(child, ast.FunctionDef):
            yield inside, child
        yield from _functions(child, inside)


def entered(folder: Path, paths: Iterable[str], tests: list[str], jobs: int) -> dict[str, list[tuple[float, str]]]:
    """For each function of the given files, the tests that enter it with their seconds, the fastest first."""
    for path in paths:
        (folder / path).write_text(instrument((folder / path).read_text("utf-8"), path), "utf-8")
    (folder / "src" / "mutants_entered.py").write_text(ENTERED)  # where the commands that tests start look
    (folder / "mutants_plugin.py").write_text(PLUGIN)
    running = []
    for number in range(jobs):
        out = folder / f"entered-{number}.json"
        share = tests[number::jobs]
        if share:
            words = [*_pytest(), "-p", "mutants_plugin", *share]
            running.append((out, _started(words, folder, MUTANTS_OUT=str(out))))
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for out, process in running:
        process.wait()
        if not out.exists():
            raise SystemExit(f"the tests could not be run in {folder}")
        tests_run = json.loads(out.read_text())
        for test in tests_run["failed"]:
            print(f"fails without a mutant, so it is left out: {test}", flush=True)
        for test, (seconds, functions) in tests_run["passed"].items():
            for function in functions:
                found[function].append((seconds, test))
    return {function: sorted(rows) for function, rows in found.items()}


def spread(rows: Iterable[tuple[float, str]], most: int) -> list[str]:
    """The tests, the fastest first; of too many, the fastest of each test file, then the second of each, and so on."""
    tests = list(dict.fromkeys(test for _, test in rows))
    if len(tests) <= most:
        return tests
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_file[test.partition("::")[0]].append(test)
    return [test for turn in zip_longest(*by_file.values()) for test in turn if test][:most]


def _pytest() -> list[str]:
    chosen = "not e2e and not deep and not real"
    return [sys.executable, "-m", "pytest", "-q", "-m", chosen, "-p", "no:cacheprovider", "--no-header", "--tb=no"]


def _env(folder: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "src"), str(folder)])
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more}


def _started(words: list[str], folder: Path, **more: str) -> subprocess.Popen[bytes]:
    env, silent = _env(folder, **more), subprocess.DEVNULL
    return subprocess.Popen(words, cwd=folder, env=env, stdout=silent, stderr=silent, start_new_session=True)  # noqa: S603


def compiled(folder: Path) -> Path:
    """Write the bytecode of all files once, so that no run of a mutant compiles the unchanged ones again."""
    env = _env(folder)
    del env["PYTHONDONTWRITEBYTECODE"]
    subprocess.run([*_pytest(), "--collect-only", "tests"], cwd=folder, env=env, capture_output=True, check=False)  # noqa: S603
    return folder


def tried(folder: Path, mutant: Mutant, tests: list[str], took: dict[str, float]) -> Outcome:
    """Run the tests on one mutant, in a copy of the repository that is left as it was.

    ``took`` are the seconds of each test without the mutant. Ten times as many are a loop without an end.
    """
    file = folder / mutant.path
    before = file.read_bytes()
    source = before.decode()
    file.write_text(source[: mutant.start] + mutant.new + source[mutant.end :], "utf-8")
    try:
        for share in (tests[:FIRST], tests[FIRST:]):
            ended = _ended(folder, share, max(300.0, 10 * sum(took[test] for test in share))) if share else ""
            if ended:
                return Outcome(mutant, ended, len(tests))
    finally:
        file.write_bytes(before)
    return Outcome(mutant, "survived" if tests else "untested", len(tests))


def _ended(folder: Path, tests: list[str], seconds: float) -> str:
    """Return ``killed`` if a test fails, ``timed out`` if the tests do not end, empty if all pass."""
    words = [*_pytest(), "-x", *tests]
    process = _started(words, folder)
    try:
        code = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return "timed out"
    return "killed" if code else ""


def shown(folder: Path, mutant: Mutant) -> str:
    """A mutant as a change of its lines."""
    source = (folder / mutant.path).read_text("utf-8")
    first = source.rfind("\n", 0, mutant.start) + 1
    last = source.find("\n", mutant.end)
    old, new = source[first:last], source[first : mutant.start] + mutant.new + source[mutant.end : last]
    lines = [
        *(f"  - {line.strip()}" for line in old.splitlines()),
        *(f"  + {line.strip()}" for line in new.splitlines()),
    ]
    return "\n".join([f"{mutant.path}:{mutant.line}: {mutant.kind} in {mutant.function or 'the module'}", *lines])


def run_all(folder: Path, mutants: list[Mutant], options: argparse.Namespace) -> list[Outcome]:
    """Try all mutants, --jobs at a time."""
    paths = sorted({one.path for one in mutants})
    files = [path.relative_to(ROOT) for pattern in options.tests for path in sorted(ROOT.glob(pattern))]
    tests = [str(path) for path in files if path.parts[1] != "e2e"]
    copies = [shutil.copytree(folder / "base", folder / f"copy-{number}") for number in range(options.jobs)]
    by_function = entered(shutil.copytree(folder / "base", folder / "entered"), paths, tests, options.jobs)
    by_module: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for function, rows in by_function.items():
        by_module[function.partition(":")[0]] += rows
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for one in mutants:
        waiting.put(one)
    outcomes: list[Outcome] = []

    def work(number: int) -> None:
        copy = copies[number]
        while True:
            try:
                mutant = waiting.get_nowait()
            except queue.Empty:
                return
            rows = by_function.get(f"{mutant.path}:{mutant.function}") or sorted(set(by_module[mutant.path]))
            outcome = tried(copy, mutant, spread(rows, options.most), {test: took for took, test in rows})
            outcomes.append(outcome)
            if outcome.result != "killed":
                print(f"{outcome.result} ({outcome.tests} tests) {shown(folder / 'base', mutant)}", flush=True)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def main() -> int:
    """Sample mutants, try them, list those that survive."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", default="main", help="mutate the lines changed since this branch or commit (main)")
    parser.add_argument("--modules", nargs="+", metavar="GLOB", help="mutate these files instead")
    parser.add_argument(
        "--tests", nargs="+", metavar="GLOB", default=["tests/*/test_*.py"], help="the tests to run (all)"
    )
    parser.add_argument("--sample", type=int, default=60, help="how many mutants (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--most", type=int, default=300, help="tests to run on one mutant, the fastest first (300)")
    parser.add_argument("--least", type=float, default=0.0, help="fail if fewer percent are killed (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time (all cores)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    try:
        base = compiled(copy_to(folder / "base"))  # the checkout may change meanwhile
        if options.modules:
            every = _git("ls-files", "src/*.py").splitlines()
            chosen = [path for path in every if any(fnmatch.fnmatch(path, glob) for glob in options.modules)]
            found = [one for path in chosen for one in mutants_of(base, path, None)]
        else:
            changed = changed_lines(options.base)
            found = [one for path, lines in changed.items() for one in mutants_of(base, path, lines)]
        mutants = sampled(found, options.sample, options.seed)
        if not mutants:
            print("nothing to mutate")
            return 0
        outcomes = run_all(folder, mutants, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    by_package: dict[str, list[bool]] = defaultdict(list)
    for one in outcomes:
        by_package[str(Path(one.mutant.path).parent)].append(one.result in ("killed", "timed out"))
    for package, killed in sorted(by_package.items()):
        print(f"{package}: {sum(killed)} of {len(killed)}")
    total = sum(map(sum, by_package.values()))
    share = 100 * total / len(outcomes)
    print(f"{total} of {len(outcomes)} mutants killed: {share:.0f} % (of {len(found)} that can be made)")
    return int(share < options.least)


if __name__ == "__main__":
    sys.exit(main())
