"""Determines the memory available: the machine's, or less if a cgroup limits the process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Where a limit stands, in version 2 and version 1."""


def half_of_memory(limits: tuple[Path, ...] = CGROUP_LIMITS) -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in limits:
        try:
            memory = min(memory, int(path.read_text()))
        except (OSError, ValueError):
            pass  # there is none, or it is "max"
    return memory // 2


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
