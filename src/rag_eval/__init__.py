"""The quality gate for RAG systems.

``score`` takes gold and traces, as files, lists of dicts or data frames, and returns a :class:`Report`.

>>> import rag_eval
>>> report = rag_eval.score("eval/gold.jsonl", "runs/trace.jsonl")  # doctest: +SKIP
>>> report.passed, report.metrics["precision"].value  # doctest: +SKIP
(True, 0.9)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_eval.api import Report, explain, load_gold, load_traces, render, score, validate
    from rag_eval.errors import InputError, Problem, RagEvalError, UsageError
    from rag_eval.run.run_comparison import RunComparison, compare

__all__ = [
    "InputError",
    "Problem",
    "RagEvalError",
    "Report",
    "RunComparison",
    "UsageError",
    "__version__",
    "compare",
    "explain",
    "load_gold",
    "load_traces",
    "render",
    "score",
    "validate",
]

__version__ = "1.0.0"
REPOSITORY = "org/rag-eval-action"
"""Where the action is released, as OWNER/NAME: a release sets it, and all examples are rendered from it."""
SITE = "https://{}.github.io/{}/latest".format(*REPOSITORY.split("/"))
"""The pages of the docs, which the package does not contain."""

# Start-up time matters: `import rag_eval` loads nothing, and a public name loads its module at first use.
_HOMES = {
    **dict.fromkeys(("Report", "explain", "load_gold", "load_traces", "render", "score", "validate"), "rag_eval.api"),
    **dict.fromkeys(("RunComparison", "compare"), "rag_eval.run.run_comparison"),
    **dict.fromkeys(("InputError", "Problem", "RagEvalError", "UsageError"), "rag_eval.errors"),
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rag_eval' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
