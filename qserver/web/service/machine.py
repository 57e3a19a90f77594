"""Determines the memory and processors that are there, or what a cgroup leaves of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where a limit stands, in version 2 and version 1."""

CGROUP_PROCESSORS: Final = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of processors in so many on the clock, as containers get them. (Version 2 only.)"""


def half_of_memory(limits: tuple[Path, ...] = CGROUP_LIMITS) -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in limits:
        try:
            memory = min(memory, int(path.read_text()))
        except (OSError, ValueError):
            pass  # there is none, or it is "max"
    return memory // 2


def cores(quota: Path = CGROUP_PROCESSORS) -> int:
    """How many processors this process may use; a part of one counts."""
    found = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        found = len(os.sched_getaffinity(0))
    try:
        time, period = map(int, quota.read_text().split())
    except (OSError, ValueError):
        return found  # there is no quota, or it is "max"
    return max(1, min(found, -(-time // period)))
