"""Single steps of the statistics, held against exact ones."""

from __future__ import annotations

import pytest

from rag_eval.stats.intervals import _weighted_quantile, clopper_pearson
from rag_eval.stats.paired import mcnemar
from rag_eval.stats.power import _significant
from rag_eval.stats.probability import normal_quantile


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (5, 10), (27, 30), (50, 100), (990, 1000)])
def test_the_saddlepoint_is_close_to_the_exact_quantile_for_two_values(hits, n):
    exact = clopper_pearson(hits, n)[1]
    result = _weighted_quantile([(0.0, n - hits), (1.0, hits + 1)], normal_quantile(0.975))
    assert exact - 1e-6 <= result <= exact + 0.0016


@pytest.mark.parametrize("level", [1.0, 0.2, 0.05, 0.0625, 0.01, 0.0005])
def test_the_numbers_that_are_significant_are_those_of_the_test(level):
    for k, least in list(enumerate(_significant(512, level)))[::7]:
        assert least == k + 1 or mcnemar(least, k - least) <= level
        assert least == 0 or mcnemar(least - 1, k - least + 1) > level
