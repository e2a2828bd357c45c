"""How many cores this process may use: not how many the machine has."""

from __future__ import annotations

import os
from contextlib import suppress

_GROUP, _ROOT = "/proc/self/cgroup", "/sys/fs/cgroup"


def usable(group: str = _GROUP, root: str = _ROOT) -> int:
    """The cores that this process may run on, or as many as its share of time comes to if that is less."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, *_shares(group, root), cores))


def _shares(group: str, root: str) -> list[int]:
    """Whole cores of time that the groups of this process are given; a group cannot give more than those above it."""
    found = []
    for folder in _folders(group, root):
        with suppress(OSError, ValueError):
            quota, period = _read(f"{folder}/cpu.max").split()
            found.append(int(quota) // int(period))  # "max" is no number: no limit
        with suppress(OSError, ValueError):
            quota, period = _read(f"{folder}/cpu.cfs_quota_us"), _read(f"{folder}/cpu.cfs_period_us")
            found += [int(quota) // int(period)] if int(quota) > 0 else []
    return found


def _folders(group: str, root: str) -> list[str]:
    """The group's own folder and all above it, in either version's tree."""
    found = [root, f"{root}/cpu"]
    with suppress(OSError):
        for line in _read(group).splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "cpu", "cpu,cpuacct"):
                tree = root if not controllers else f"{root}/cpu"
                parts = [part for part in path.split("/") if part]
                found += [f"{tree}/{'/'.join(parts[:size])}" for size in range(1, len(parts) + 1)]
    return found


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123 - pathlib costs start-up time
        return file.read()
