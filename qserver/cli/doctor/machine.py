"""Looks at the machine: how fast its disk syncs, its clock, its limits, what is installed."""

from __future__ import annotations

import os
import platform
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from qserver import __version__
from qserver.cli.doctor.finding import Finding, ok, problem, warning
from qserver.config import Settings

SYNCS: Final = 20
SYNC_BYTES: Final = 4096
SYNC_SECONDS_LIES: Final = 5e-5
"""No disk that keeps what it has acknowledged is as fast as this."""
SYNC_SECONDS_SLOW: Final = 0.02
FREE_BYTES_FEW: Final = 2 * 1024**3
FREE_BYTES_TOO_FEW: Final = 256 * 1024**2
FILES_BESIDE: Final = 512
"""Files beside connections: those of some hundred databases."""
MEMORY_SHARE_MOST: Final = 0.8
BUILT: Final = datetime(2025, 1, 1, tzinfo=UTC)
"""No clock that is right shows a time before this."""


def look_at_machine(settings: Settings, folder: Path, memory: int) -> Iterator[Finding]:
    """`memory` is what this machine, or its cgroup, has."""
    yield look_at_syncs(folder)
    yield look_at_room(folder)
    yield look_at_clock(datetime.now(UTC))
    yield look_at_files(settings.connections_max, resource.getrlimit(resource.RLIMIT_NOFILE))
    yield look_at_memory(settings.memory, memory)
    yield ok(
        "versions",
        f"qserver {__version__}, Python {platform.python_version()},"
        f" SQLite {sqlite3.sqlite_version}, {sys.platform}",
    )


def look_at_syncs(folder: Path) -> Finding:
    """Measure how long the disk of a folder takes to sync a small write."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        seconds = median(_syncs(place))
    except OSError as error:
        change = "Run this as the user of the server, and look at the disk."
        return problem("disk", f"a write to {place} cannot be synced: {error.strerror}", change)
    text = f"a small write is synced in {seconds * 1000:.2f} ms ({place})"
    if seconds < SYNC_SECONDS_LIES:
        change = (
            "Is it a disk at all? Memory (tmpfs), or a cache that acknowledges what it may lose,"
            " keeps nothing through a power failure."
        )
        return warning("disk", text, change)
    if seconds > SYNC_SECONDS_SLOW:
        return warning("disk", text, "Each commit waits for that: use a disk with a faster sync.")
    return ok("disk", text)


def _syncs(place: Path) -> Iterator[float]:
    with tempfile.TemporaryFile(dir=place) as file:
        for _ in range(SYNCS):
            os.write(file.fileno(), bytes(SYNC_BYTES))
            began = time.perf_counter()
            os.fsync(file.fileno())
            yield time.perf_counter() - began


def look_at_room(folder: Path) -> Finding:
    place = next(each for each in (folder, *folder.parents) if each.exists())
    found = os.statvfs(place)
    free = found.f_bavail * found.f_frsize
    text = f"{free / 1024**3:.1f} GiB are left on the disk of {place}"
    if free < FREE_BYTES_TOO_FEW:
        return problem("room", text, "Make room, or a larger disk: writes are refused soon.")
    if free < FREE_BYTES_FEW:
        return warning("room", text, "Make room, or a larger disk.")
    return ok("room", text)


def look_at_clock(now: datetime) -> Finding:
    if now < BUILT:
        change = "Set it, by NTP: times of versions and ends of keys depend on it."
        return problem("clock", f"the clock shows {now:%Y-%m-%d}, which is long ago", change)
    return ok("clock", f"the clock shows {now:%Y-%m-%d %H:%M:%S} UTC")


def look_at_files(connections: int, limits: tuple[int, int]) -> Finding:
    """The server raises the soft limit itself, as far as the hard one lets it."""
    hard = limits[1]
    if hard == resource.RLIM_INFINITY:
        return ok("files", "a process may open any number of files")
    text = f"a process may open {hard:,} files, for {connections:,} connections and databases"
    change = "Raise the limit (LimitNOFILE=, ulimit -n), or take QSERVER_CONNECTIONS_MAX down."
    if hard <= connections:
        return problem("files", text, change)
    if hard < connections + FILES_BESIDE:
        return warning("files", text, change)
    return ok("files", text)


def look_at_memory(wanted: int | None, there: int) -> Finding:
    if wanted is None:
        return ok("memory", f"QSERVER_MEMORY is half of {_mib(there)}")
    text = f"QSERVER_MEMORY is {_mib(wanted)} of {_mib(there)}"
    if wanted >= there:
        return problem("memory", text, "Set less: the system will kill the server.")
    if wanted > MEMORY_SHARE_MOST * there:
        change = "Set less than four fifths: the program and the system's cache need the rest."
        return warning("memory", text, change)
    return ok("memory", text)


def _mib(size: int) -> str:
    return f"{size >> 20:,} MiB"
