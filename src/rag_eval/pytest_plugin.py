"""A plug-in of pytest: the fixture ``rag_eval_report``, and with ``--rag-eval`` a test for each gate.

pytest loads it automatically. Options such as ``--rag-eval-trace PATH`` name files relative to the folder in which
pytest was started. ``eval-gates.yml`` is searched for in pytest's root folder, then in the current folder and above.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

if TYPE_CHECKING:
    from rag_eval.api import Report
    from rag_eval.run import Options

_FILES = {
    "gold": "the gold set, instead of the one in the gates file",
    "trace": "the traces, instead of those in the gates file",
    "gates": "the gates file",
    "baseline": "report.json of an earlier run, instead of the one in the gates file",
}
_COLLECTED = pytest.StashKey[bool]()
_SUITE = "full, or smoke:N for a stable sample of N questions"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("rag-eval", "rag-eval: a test for each gate, and the files of rag_eval_report")
    group.addoption("--rag-eval", action="store_true", help="collect a test for each gate in eval-gates.yml")
    group.addoption(
        "--rag-eval-questions", action="store_true", help="with --rag-eval: also collect a test for each question"
    )
    for name, words in {**_FILES, "suite": _SUITE}.items():
        group.addoption(f"--rag-eval-{name}", metavar=name.upper(), help=words)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an empty option: an empty path would mean the usual file."""
    for name in (*_FILES, "suite"):
        if config.getoption(f"--rag-eval-{name}") == "":
            raise pytest.UsageError(f"--rag-eval-{name} is empty. Give it a value, or remove the option.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the gates of eval-gates.yml, or of the file that ``--rag-eval-gates`` names."""
    from rag_eval.common.paths import GATES_FILES

    if not parent.config.getoption("--rag-eval"):
        return None
    named = _options(parent.config).gates
    is_meant = file_path.resolve() == Path(named).resolve() if named else file_path.name in GATES_FILES
    return GatesFile.from_parent(parent, path=file_path) if is_meant else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse ``--rag-eval`` if no gate was collected, unless the arguments are only files."""
    config = session.config
    if not config.getoption("--rag-eval") or config.stash.get(_COLLECTED, False):
        return
    gates = _options(config).gates or "eval-gates.yml"
    folders = [arg for arg in config.args if (config.invocation_params.dir / arg.partition("::")[0]).is_dir()]
    if folders or config.getoption("--rag-eval-gates"):
        where = " ".join(os.path.relpath(arg) for arg in config.args)
        fix = f"Name the file, too: pytest {where} {gates} --rag-eval"
        fix = fix if Path(gates).exists() else "There is no such file. To create eval-gates.yml, run: rag-eval init"
        raise pytest.UsageError(f"--rag-eval tests no gate, because {gates} is not in '{where}'. {fix}")


class GatesFile(pytest.File):
    """A gates file: its tests are the gates, the findings that fail the run, and optionally the questions."""

    def collect(self) -> Iterator[pytest.Item]:
        """Score, and yield a test of each outcome."""
        from rag_eval.cases import GOOD, MEANING
        from rag_eval.rendering.document import PLAIN
        from rag_eval.rendering.gates_table import format_bound, reason

        self.config.stash[_COLLECTED] = True
        report = _scored(replace(_options(self.config), gates=os.path.relpath(self.path)))
        for gate in report.gates:
            why = "" if gate.outcome == "passed" else reason(report, gate)
            name = f"{PLAIN.gate(gate)} {format_bound(gate)}"
            yield self._test(name, why, gate.blocks, self.path, gate.line)
        for finding in report.errors:
            yield self._test(finding.code, f"{finding}. {finding.fix}", True, self.path, 0)
        if not self.config.getoption("--rag-eval-questions"):
            return
        gold = Path(report.paths.get("gold", ""))
        for question in report.questions:
            run = f"[{question.run}]" if question.run is not None else ""
            why = "" if question.label in GOOD else f"{question.label}: {MEANING[question.label]}. {question.question}"
            yield self._test(f"{question.qid}{run}", why, bool(why), gold, question.gold_line)

    def _test(self, name: str, why: str, fails: bool, path: Path, line: int) -> pytest.Item:
        from rag_eval.common.escaping import log_line

        item: Outcome = Outcome.from_parent(self, name=log_line(name))
        item.why, item.fails, item.place = log_line(why), fails, (path.resolve(), max(0, line - 1))
        return item


class Outcome(pytest.Item):
    """A gate, a finding or a question: passes, fails, or is skipped if it does not fail the run."""

    why, fails, place = "", False, (Path(), 0)

    def runtest(self) -> None:
        """Fail or skip with the reason."""
        if self.why and self.fails:
            pytest.fail(self.why, pytrace=False)
        if self.why:
            pytest.skip(self.why)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the gate or the question, and the heading of its failure."""
        return *self.place, f"rag-eval: {self.name}"  # pytest -v would print the dots of a bare name as ::


def _scored(options: Options) -> Report:
    from rag_eval import api
    from rag_eval.common.escaping import log_line
    from rag_eval.errors import RagEvalError

    try:
        return api.run(options)
    except RagEvalError as error:
        lines = str(error).split("\n")
    pytest.fail("\n".join(f"rag-eval: {log_line(line)}" for line in lines), pytrace=False)


@pytest.fixture(scope="session")
def rag_eval_report(pytestconfig: pytest.Config) -> Report:
    """Return the report of the configured files: ``assert rag_eval_report.passed``.

    Invalid input is an error of every test that uses the fixture, with every problem.
    """
    return _scored(_options(pytestconfig))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show the report below a failed test that uses it."""
    outcome = yield
    report = getattr(item, "funcargs", {}).get("rag_eval_report")
    result: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    if report is not None and call.when == "call" and result.failed:
        from rag_eval.rendering import render

        result.sections.append(("rag-eval", render(report, "table")))


def _options(config: pytest.Config) -> Options:
    from rag_eval.common.paths import nearest_gates, usual_gates
    from rag_eval.run import Options

    root = os.path.relpath(config.rootpath)
    folder = "" if root == os.curdir else root
    gold, trace, gates, baseline = (config.getoption(f"--rag-eval-{name}") or "" for name in _FILES)
    gates = gates or usual_gates(folder) or nearest_gates()
    suite = config.getoption("--rag-eval-suite") or "full"
    return Options(gold, trace, gates, folder=folder, baseline=baseline, suite=suite)
