"""What a number over n cases can say: intervals, paired tests, power. Pure, and free of chance but for seeded draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_eval.stats.differences import above_percentile, effects, mean_difference, other_difference
    from rag_eval.stats.intervals import Interval, clopper_pearson, interval, small_sample
    from rag_eval.stats.missing_pairs import complete, enough_in_both, has_gaps
    from rag_eval.stats.paired import holm, mcnemar, paired_p, sign_flip
    from rag_eval.stats.paired_swap import swap
    from rag_eval.stats.power import POWER, cases_needed, fail_probability, fail_rates, minimum_effect, noise_bound
    from rag_eval.stats.resampling import within_reach
    from rag_eval.stats.roc import auc_interval, hit_rate_interval
    from rag_eval.stats.swap_units import Units
    from rag_eval.stats.thresholds import Asked, expressible

# A run without a baseline makes no test: each name loads its module when it is first used.
_HOMES = {
    "differences": ("above_percentile", "effects", "mean_difference", "other_difference"),
    "resampling": ("within_reach",),
    "missing_pairs": ("complete", "enough_in_both", "has_gaps"),
    "intervals": ("Interval", "clopper_pearson", "interval", "small_sample"),
    "paired": ("holm", "mcnemar", "paired_p", "sign_flip"),
    "paired_swap": ("swap",),
    "power": ("POWER", "cases_needed", "fail_probability", "fail_rates", "minimum_effect", "noise_bound"),
    "roc": ("auc_interval", "hit_rate_interval"),
    "thresholds": ("Asked", "expressible"),
    "swap_units": ("Units",),
}
__all__ = [
    "POWER",
    "Asked",
    "Interval",
    "Units",
    "above_percentile",
    "auc_interval",
    "cases_needed",
    "clopper_pearson",
    "complete",
    "effects",
    "enough_in_both",
    "expressible",
    "fail_probability",
    "fail_rates",
    "has_gaps",
    "hit_rate_interval",
    "holm",
    "interval",
    "mcnemar",
    "mean_difference",
    "minimum_effect",
    "noise_bound",
    "other_difference",
    "paired_p",
    "sign_flip",
    "small_sample",
    "swap",
    "within_reach",
]


def __getattr__(name: str) -> object:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'rag_eval.stats' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"rag_eval.stats.{home}"), name)
    return found
