"""How thorough a test run is: `make test` is quick, `make check-deep` (RAG_EVAL_TESTS=deep) draws more examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

DEEP = os.environ.get("RAG_EVAL_TESTS", "steady") == "deep"
EVERY, SHARE, FEWEST = 200, 5, 10
"""Examples of a deep run unless a test asks for another number; the share and the minimum of a quick run."""


def examples(number: int) -> settings:
    """Make Hypothesis settings: ``number`` examples in a deep run, a fifth of them in a quick one."""
    return settings(max_examples=_scaled(number))


def register_profiles() -> None:
    """Register the profiles `steady` and `deep` and load the one that RAG_EVAL_TESTS names.

    Both draw the same examples on every run: a change that breaks a property fails for the person who made it.
    """
    for name, number in (("steady", _scaled(EVERY, deep=False)), ("deep", EVERY)):
        settings.register_profile(
            name,
            derandomize=True,
            deadline=None,
            database=None,
            max_examples=number,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
    settings.load_profile(os.environ.get("RAG_EVAL_TESTS", "steady"))


def _scaled(number: int, deep: bool = DEEP) -> int:
    return number if deep else max(FEWEST, number // SHARE)


# Test modules are imported after this one, and `settings` takes its defaults from the profile loaded by then.
register_profiles()
