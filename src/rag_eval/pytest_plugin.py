"""A plug-in of pytest: the fixture ``rag_eval_report``, so that the gates are a test like any other.

pytest finds it by itself. ``--rag-eval-trace PATH`` and the like say which files are meant, from the folder in which
pytest was started; the settings ``rag_eval_trace`` and the like say it from pytest's root folder, in which
``eval-gates.yml`` is looked for as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.run.inputs import Options

_FILES = {
    "gold": "the gold set, in place of the gates file's",
    "trace": "the traces, in place of the gates file's",
    "gates": "the gates file",
    "baseline": "report.json of an earlier run, in place of the one that the gates file names",
}
_SUITE = "full, or smoke:N for a stable sample of N questions"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, and settings of the same meaning."""
    group = parser.getgroup("rag-eval", "rag-eval: what rag_eval_report is the report of")
    for name, words in {**_FILES, "suite": _SUITE}.items():
        parser.addini(f"rag_eval_{name}", words, default="")
        group.addoption(f"--rag-eval-{name}", metavar=name.upper(), help=words)


@pytest.fixture(scope="session")
def rag_eval_report(pytestconfig: pytest.Config) -> Report:
    """The report of the files that are meant: ``assert rag_eval_report.passed``.

    What cannot be judged is an error of every test that asks for it, with all that is wrong.
    """
    from rag_eval import api
    from rag_eval.common.escaping import log_line
    from rag_eval.errors import RagEvalError

    try:
        return api.run(_options(pytestconfig))
    except RagEvalError as error:
        pytest.fail("\n".join(f"rag-eval: {log_line(line)}" for line in str(error).split("\n")), pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show the report below a test that fails with it at hand."""
    outcome = yield
    found = getattr(item, "funcargs", {}).get("rag_eval_report")
    result: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    if found is not None and call.when == "call" and result.failed:
        from rag_eval.rendering import render

        result.sections.append(("rag-eval", render(found, "table")))


def _options(config: pytest.Config) -> Options:
    from rag_eval.common.paths import usual_gates
    from rag_eval.run.inputs import Options

    root = os.path.relpath(config.rootpath)
    folder = "" if root == os.curdir else root
    gold, trace, gates, baseline = (_stated(config, name, folder) for name in _FILES)
    suite = _stated(config, "suite") or "full"
    return Options(gold, trace, gates or usual_gates(folder), folder=folder, baseline=baseline, suite=suite)


def _stated(config: pytest.Config, name: str, folder: str = "") -> str:
    """What is said of a file or the suite; of a setting, seen from ``folder``. Empty where nothing is."""
    from rag_eval.errors import UsageError

    given = config.getoption(f"--rag-eval-{name}")
    if given == "":  # it would be taken for what nobody named
        raise UsageError(f"--rag-eval-{name} is empty. Say a {name}, or leave the option out")
    if given is not None:
        return str(given)
    setting = str(config.getini(f"rag_eval_{name}"))
    return os.path.join(folder, setting) if setting else ""  # noqa: PTH118
