"""Figures of rounds: medians, ratios within a round, and required figures."""

from __future__ import annotations

from statistics import median


def values(rounds, side, quantity):
    """Return the figures of a side, round by round."""
    return [one[side][quantity] for one in rounds if side in one]


def ratios(rounds, side, over, quantity="wall", factor=1):
    """Return, round by round, a side's figure divided by ``factor`` times that of another."""
    both = [one for one in rounds if side in one and over in one]
    return [one[side][quantity] / (factor * one[over][quantity]) for one in both]


def asked(ask, rounds):
    """Return the median of a required figure; None without a figure."""
    if ask.over:
        found = ratios(rounds, ask.side, ask.over, ask.quantity, ask.factor)
    else:
        found = [value / ask.factor for value in values(rounds, ask.side, ask.quantity)]
    return median(found) if found else None


def verdict(ask, value):
    """Return ``reached``, or by how much a figure missed its limit."""
    if value is None:
        return "not measured"
    if value >= ask.limit if ask.least else value <= ask.limit:
        return "reached"
    gap = 1 - value / ask.limit if ask.least else value / ask.limit - 1
    return f"missed by {max(gap * 100, 0.1):.{0 if gap >= 0.1 else 1}f} %"


def shown(ask, value):
    if value is None:
        return "–"
    if ask.over:
        return f"{value:.2f} ×"
    return f"{value / 1e6:.0f} MB" if ask.quantity == "memory" else f"{value:.1f} s"


def spread(found):
    """Return ``median (minimum to maximum)``."""
    return f"{median(found):.2f} ({min(found):.2f} to {max(found):.2f})" if len(found) > 1 else f"{found[0]:.2f}"
