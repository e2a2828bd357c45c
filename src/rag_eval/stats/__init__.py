"""What a number over n cases can say: intervals, paired tests, power. Pure, and free of chance but for seeded draws."""

from rag_eval.stats.intervals import Interval, clopper_pearson, interval, small_sample
from rag_eval.stats.paired import holm, mcnemar, sign_flip
from rag_eval.stats.paired_percentile import percentile_flip
from rag_eval.stats.paired_swap import swap
from rag_eval.stats.power import (
    cases_needed,
    cases_needed_for_shift,
    paired_spread,
    smallest_visible_drop,
    smallest_visible_shift,
)
from rag_eval.stats.roc import auc_interval, hit_rate_interval
from rag_eval.stats.thresholds import Asked, expressible

__all__ = [
    "Asked",
    "Interval",
    "auc_interval",
    "cases_needed",
    "cases_needed_for_shift",
    "clopper_pearson",
    "expressible",
    "hit_rate_interval",
    "holm",
    "interval",
    "mcnemar",
    "paired_spread",
    "percentile_flip",
    "sign_flip",
    "small_sample",
    "smallest_visible_drop",
    "smallest_visible_shift",
    "swap",
]
