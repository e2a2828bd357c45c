"""How thorough a test run is: `make test` is quick, `make check-deep` (RAG_EVAL_TESTS=deep) draws more examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

DEEP = os.environ.get("RAG_EVAL_TESTS", "steady") == "deep"
EVERY, SHARE, FEWEST, DEEPER = 200, 5, 10, 3
"""Examples of a property that names no number; their share and minimum in a quick run; times as many in a deep one."""


def examples(number: int) -> settings:
    """Make Hypothesis settings: a fifth of ``number`` examples in a quick run, three times as many in a deep one."""
    return settings(max_examples=_scaled(number))


def register_profiles() -> None:
    """Register the profiles `steady` and `deep` and load the one that RAG_EVAL_TESTS names.

    Both draw the same examples on every run: a change that breaks a property fails for the person who made it.
    """
    for name in ("steady", "deep"):
        settings.register_profile(
            name,
            derandomize=True,
            deadline=None,
            database=None,
            max_examples=_scaled(EVERY, name == "deep"),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
    settings.load_profile(os.environ.get("RAG_EVAL_TESTS", "steady"))


def _scaled(number: int, deep: bool = DEEP) -> int:
    quick = max(FEWEST, number // SHARE)
    return min(number, quick * DEEPER) if deep else quick


# Test modules are imported after this one, and `settings` takes its defaults from the profile loaded by then.
register_profiles()
