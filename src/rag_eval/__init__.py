"""The quality gate for RAG systems.

``score`` takes gold and trace files and gives a :class:`Report`; every renderer and every exit code is read from it.

>>> import rag_eval
>>> report = rag_eval.score("eval/gold.jsonl", "runs/trace.jsonl")  # doctest: +SKIP
>>> report.passed, report.metrics["precision"].value  # doctest: +SKIP
(True, 0.9)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_eval.analysis.report import Report
    from rag_eval.api import score
    from rag_eval.errors import InputError, Problem, RagEvalError, UsageError

__version__ = "1.0.0"
REPOSITORY = "org/rag-eval-action"
"""Where the action is released, as OWNER/NAME: a release sets it, and all examples are rendered from it."""
__all__ = ["InputError", "Problem", "RagEvalError", "Report", "UsageError", "__version__", "score"]

# Start-up is a feature: `import rag_eval` loads nothing, a public name loads its module when it is first used.
_HOMES = {
    "score": "rag_eval.api",
    "Report": "rag_eval.analysis.report",
    "InputError": "rag_eval.errors",
    "Problem": "rag_eval.errors",
    "RagEvalError": "rag_eval.errors",
    "UsageError": "rag_eval.errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rag_eval' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
