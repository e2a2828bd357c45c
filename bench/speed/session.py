"""A work measured: its sides in turn, round by round, until its rounds are done or its share of the time is used up."""

from __future__ import annotations

import os
import time

from speed import checks
from speed.measuring import Failed, run


def measure(work, folder, rounds, seconds, say):
    """What came of a work: its rounds by side, and by side why there is no figure.

    Every side has a first run whose numbers are compared and whose time is not counted, unless it takes ten seconds or
    more: then start-up is nothing to it, and its time is the first that counts. At least one round is taken whatever
    ``seconds`` says, and no further one that would not fit.
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
    """Whether another round would end in time, going by those that there were."""
    taken = time.monotonic() - begun
    return taken + taken / rounds <= seconds


def _first(work, folder, say):
    """The first run of each side that gave our numbers, and for each of the others the reason why it does not count."""
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
    """Each side once, each round beginning with another one."""
    turn = number % len(sides)
    return {side.name: _figures(run(side.command, folder, own=side.own)) for side in sides[turn:] + sides[:turn]}


def _figures(took):
    return {"wall": took.wall, "cpu": took.cpu, "memory": took.memory}


def _seconds(found):
    return ", ".join(f"{name} {one['wall']:.3f} s" for name, one in found.items())
