"""Commits inserts one after the other, on real files: `python -m tests.hot_path.commits FOLDER`.

`syscalls.py` runs it under strace. Syncs are made in the loop's own thread, however slow the disk
is, the high-water mark moves by the number of commits only, and nobody measures files meanwhile: so
every machine makes the same calls. Looking for a file that is not there marks the beginning and the
end.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import trio

from qserver.control import plane
from qserver.durability import sync_times, thread_pool
from qserver.durability.data_folder import DataFolder
from tests.hot_path.application import requests, serving

WARM_UP: Final = 10
COMMITS: Final = 32
BEGIN, END = "commits-begin-here", "commits-end-here"


async def commit(folder: Path) -> None:
    async with serving(DataFolder(folder)) as hot_path:
        ask = requests()["insert"]
        for number in range(WARM_UP + COMMITS):
            if number == WARM_UP:
                Path(BEGIN).exists()  # noqa: ASYNC240
            await hot_path.ask(*ask())
        Path(END).exists()  # noqa: ASYNC240


def main() -> None:
    sync_times.SHORT_SECONDS = sync_times.STALL_SECONDS = 60.0  # type: ignore[misc]
    sync_times.SHORT_SECONDS_ALONE = 60.0  # type: ignore[misc]
    thread_pool.TICK_SECONDS = 3600.0  # type: ignore[misc]
    plane.SPACE_POLL_SECONDS = 3600.0  # type: ignore[attr-defined]
    trio.run(commit, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
