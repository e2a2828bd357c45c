"""Points as a plain-text plot: what a terminal and a Markdown code block show alike."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

WIDTH, HEIGHT = 56, 12
SEVERAL = "*"


def mark(place: int) -> str:
    """The letter of the point at a place; ``+`` for those beyond the alphabet."""
    return ascii_letters[26:][place] if place < 26 else ascii_letters[place - 26] if place < 52 else "+"


def scatter(points: Sequence[tuple[float, float]], across: str, up: str) -> str:
    """A plot of points (x, y), each by its letter; ``*`` where several fall together. The axes span the points."""
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    xs, ys = ([point[axis] for point in points] for axis in (0, 1))
    for place, (x, y) in enumerate(points):
        row, column = HEIGHT - 1 - _step(y, ys, HEIGHT), _step(x, xs, WIDTH)
        grid[row][column] = mark(place) if grid[row][column] == " " else SEVERAL
    ends = f"{min(xs):.4g}", f"{max(xs):.4g}"
    lines = [
        f"{up}, {min(ys):.3f} to {max(ys):.3f}",
        *(f"|{''.join(row)}".rstrip() for row in grid),
        "+" + "-" * WIDTH,
        f" {ends[0]}{ends[1]:>{WIDTH - len(ends[0])}}",
        f" {across:>{WIDTH}}",
    ]
    return "\n".join(lines)


def _step(value: float, values: Sequence[float], steps: int) -> int:
    """Which of the steps from the least to the greatest value this one falls on; the middle where all are alike."""
    least, span = min(values), max(values) - min(values)
    return round((value - least) / span * (steps - 1)) if span else steps // 2
