"""Probabilities of distributions, only with the standard library.

Formulas: the incomplete beta function by its continued fraction (DLMF 8.17.22) in the modified Lentz form; quantiles by
Newton's steps inside a bracket that each step narrows, so that none diverges.
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, exp, inf, lgamma, log, log1p, pi, sqrt

_TINY, _EPSILON = 1e-300, 1e-16
_STEPS, _TERMS = 200, 100_000
_CLOSE = 1e-9  # each of Newton's steps squares the error: after this one it is below the precision of a float


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return P(X <= x) for X of Beta(a, b): the regularised incomplete beta function. ``a`` and ``b`` above 0."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    # The fraction converges quickly only on the left of the mean; the right is the left of the mirror image.
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_lower_tail(1 - x, b, a)
    return _beta_lower_tail(x, a, b)


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the x with P(X <= x) = p for X of Beta(a, b), p strictly between 0 and 1."""
    mean = a / (a + b)
    spread = sqrt(mean * (1 - mean) / (a + b + 1))
    low, high, x = 0.0, 1.0, min(max(mean + normal_quantile(p) * spread, mean / 100), 1 - (1 - mean) / 100)
    scale = lgamma(a + b) - lgamma(a) - lgamma(b)
    for _ in range(_STEPS):
        off = beta_cdf(x, a, b) - p
        low, high = (low, x) if off > 0 else (x, high)
        density = exp(scale + (a - 1) * log(x) + (b - 1) * log1p(-x))
        step = off / density if density else inf
        inside = low <= x - step <= high  # at an end of the bracket, too: there the step no longer moves x
        following = x - step if inside else (low + high) / 2
        moved, x = abs(following - x), following
        if moved <= (_CLOSE if inside else 4 * _EPSILON) * x:
            break
    return x


def binomial_tail(least: int, n: int, p: float) -> float:
    """Return P(X >= least) for X of Binomial(n, p)."""
    if least <= 0 or least > n:
        return float(least <= 0)
    return beta_cdf(p, least, n - least + 1)


def log_binomial(k: int, n: int, p: float) -> float:
    """Return the logarithm of P(X = k) for X of Binomial(n, p); minus infinity if that is impossible."""
    if not 0 <= k <= n or (p <= 0 and k) or (p >= 1 and k < n):
        return -inf
    return (
        lgamma(n + 1)
        - lgamma(k + 1)
        - lgamma(n - k + 1)
        + (k * log(p) if k else 0.0)
        + ((n - k) * log1p(-p) if n > k else 0.0)
    )


@lru_cache(maxsize=64)
def normal_quantile(p: float) -> float:
    """Return the z with P(Z <= z) = p, p strictly between 0 and 1."""
    if p > 1 / 2:
        return -normal_quantile(1 - p)
    z = -sqrt(-2 * log(p))
    for _ in range(_STEPS):  # Newton on the logarithm: it is concave, so a step cannot overshoot on this side
        tail = erfc(-z / sqrt(2)) / 2
        step = (log(tail) - log(p)) * tail * sqrt(2 * pi) * exp(z * z / 2)
        z -= step
        if abs(step) <= 4 * _EPSILON * abs(z):
            break
    return z


@lru_cache(maxsize=256)
def student_upper(tail: float, degrees: float) -> float:
    """Return the t with P(T >= t) = tail, which is above 0 and at most 1/2."""
    if tail >= 1 / 2:
        return 0.0
    x = beta_quantile(2 * tail, degrees / 2, 0.5)
    return sqrt(degrees * (1 - x) / x)


def _beta_lower_tail(x: float, a: float, b: float) -> float:
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    # One plus or minus something is never close to zero without being zero.
    upper, lower = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or _TINY)
    fraction = lower
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            lower = 1 / ((1 + term * lower) or _TINY)
            upper = (1 + term / upper) or _TINY
            factor = lower * upper
            fraction *= factor
        if abs(factor - 1) < 2 * _EPSILON:
            break
    return front * fraction / a
