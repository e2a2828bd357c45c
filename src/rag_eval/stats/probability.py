"""Probabilities of distributions, only with the standard library, and samples that are drawn without chance.

Formulas: the incomplete beta function by its continued fraction (DLMF 8.17.22) in the modified Lentz form; quantiles by
Newton's steps inside a bracket that each step narrows, so that none diverges. Samples are drawn by sha256: the same
items and the same seed always give the same sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from math import erfc, exp, inf, lgamma, log, log1p, pi, sqrt
from typing import TypeVar

_TINY, _EPSILON = 1e-300, 1e-16
_STEPS, _TERMS = 200, 100_000
_CLOSE = 1e-9  # each of Newton's steps squares the error: after this one it is below the precision of a float
T = TypeVar("T")


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


def hash_order(items: Iterable[T], name_of: Callable[[T], str] = str, seed: str = "") -> list[T]:
    """Return items by the hash of ``seed`` and their name; the first n of them are a sample.

    An additional item changes few members of a sample, and the order of the items changes none.
    """
    return sorted(items, key=lambda item: sha256(f"{seed}{name_of(item)}".encode("utf-8", "surrogatepass")).digest())


def proportional_counts(strata: Mapping[str, Sequence[T]], size: int) -> dict[str, int]:
    """Return how many of ``size`` items each stratum has by its share, at least one, then by the largest remainder."""
    counts = {name: len(items) for name, items in strata.items()}
    total = sum(counts.values())
    size = min(size, total)
    drawn = {name: max(1, size * count // total) for name, count in counts.items()}
    while sum(drawn.values()) < size:
        short = {name: counts[name] * size - drawn[name] * total for name in counts if drawn[name] < counts[name]}
        drawn[max(sorted(short), key=short.__getitem__)] += 1
    if sum(drawn.values()) > size and max(drawn.values()) > 1:  # two rare strata take one place too many
        drawn[max(drawn, key=drawn.__getitem__)] -= 1
    return drawn


def root_counts(strata: Mapping[str, Sequence[T]], size: int) -> dict[str, int]:
    """Return how many of ``size`` items each stratum has: one, and more by the square root of its number of items."""
    drawn = dict.fromkeys(strata, 0)
    for _ in range(min(size, sum(map(len, strata.values())))):
        rest = [name for name, items in strata.items() if drawn[name] < len(items)]
        drawn[max(rest, key=lambda name: (sqrt(len(strata[name])) / (drawn[name] or 1e-9), name))] += 1
    return drawn


def sample_positions(count: int, limit: int, seed: str) -> list[int]:
    """Return up to ``limit`` of ``count`` positions, sorted, as :func:`draw_positions` draws them."""
    return list(range(count)) if count <= limit else sorted(draw_positions(count, limit, seed))


def draw_positions(count: int, limit: int, seed: str) -> Iterator[int]:
    """Draw up to ``limit`` of ``count`` positions, each once: random without the seed, reproducible with it."""
    drawn: set[int] = set()
    for number in range(8 * limit if count else 0):  # with few positions some may be drawn several times
        position = int.from_bytes(sha256(f"{seed} {number}".encode()).digest()[:8], "big") % count
        if position not in drawn:
            drawn.add(position)
            yield position
        if len(drawn) == min(limit, count):
            return
