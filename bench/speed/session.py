"""Measure a work: its sides in turn, round by round, until its rounds are done or its share of the time is over."""

from __future__ import annotations

import os
import time

from speed import checks
from speed.measuring import Failed, run


def measure(work, folder, rounds, seconds, say):
    """Return the rounds of a work by side, and the sides without figures with the reason.

    The numbers of the first run of each side are compared. Its time counts only if it takes ten seconds or more:
    then start-up hardly matters. There is at least one round; a further one begins only if it fits into ``seconds``.
    """
    load, begun = os.getloadavg()[0], time.monotonic()
    first, failed = _first(work, folder, say)
    sides = [side for side in work.sides if side.name not in failed]
    long = max((took.wall for took in first.values()), default=0) >= LONG
    found = [{name: _figures(took) for name, took in first.items()}] if long else []
    while sides and len(found) < max(1, rounds) and (not found or _fits(begun, len(found) + 1 - long, seconds)):
        try:
            found.append(_round(sides, folder, len(found)))
        except Failed as error:
            say(f"no more rounds: {error}")
            break
        say(f"round {len(found)} of {rounds}: {_seconds(found[-1])}")
    return {"rounds": found, "failed": failed, "load": load}


LONG = 10  # seconds


def _fits(begun, rounds, seconds):
    """Return whether another round would end in time if it takes as long as the earlier ones."""
    taken = time.monotonic() - begun
    return taken + taken / rounds <= seconds


def _first(work, folder, say):
    """Return the first run of each side that gave our numbers, and the reason for each other side."""
    took, failed = {}, {}
    truth = dict(work.expected) or _truth(work, folder)
    for side in work.sides:
        try:
            one = run(side.command, folder, own=side.own)
            numbers = side.numbers(one.out) if side.numbers else None
        except Failed as error:
            failed[side.name] = str(error)
        except (LookupError, ValueError):
            failed[side.name] = f"it printed no numbers but {one.out[-60:]!r}"
        else:
            truth = truth or numbers or {}
            wrong = checks.differences(truth, numbers) if numbers is not None else ""
            took, failed = (took, {**failed, side.name: wrong}) if wrong else ({**took, side.name: one}, failed)
        say(f"{side.name}: {failed.get(side.name) or f'{took[side.name].wall:.3f} s, to begin with'}")
    return took, failed


def _truth(work, folder):
    try:
        return checks.own(run(work.truth, folder).out) if work.truth else {}
    except Failed as error:
        raise Failed(f"our own numbers cannot be had: {error}") from None


def _round(sides, folder, number):
    """Run each side once; each round begins with another side."""
    turn = number % len(sides)
    return {side.name: _figures(run(side.command, folder, own=side.own)) for side in sides[turn:] + sides[:turn]}


def _figures(took):
    return {"wall": took.wall, "cpu": took.cpu, "memory": took.memory}


def _seconds(found):
    return ", ".join(f"{name} {one['wall']:.3f} s" for name, one in found.items())
