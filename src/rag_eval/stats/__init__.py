"""What a number over n cases can say: intervals, paired tests, power. Pure, and free of chance but for seeded draws."""

from rag_eval.stats.intervals import Interval, clopper_pearson, interval, small_sample
from rag_eval.stats.paired import holm, mcnemar, sign_flip
from rag_eval.stats.paired_percentile import percentile_flip
from rag_eval.stats.thresholds import Asked, expressible

__all__ = [
    "Asked",
    "Interval",
    "clopper_pearson",
    "expressible",
    "holm",
    "interval",
    "mcnemar",
    "percentile_flip",
    "sign_flip",
    "small_sample",
]
