"""Yielding: long work lets short requests run, and takes turns with other long work (`turns`)."""

from __future__ import annotations

from typing import Final

import trio

from qserver.engine.turns import current_line

TIME_SLICE_SECONDS: Final = 0.0003
"""How long a `TimeSlice` lasts; one part of the work may exceed it."""


class TimeSlice:
    """Lets work that has many small parts yield several times in a millisecond."""

    def __init__(self) -> None:
        self._began = trio.current_time()

    async def yield_if_used_up(self) -> None:
        if trio.current_time() - self._began >= TIME_SLICE_SECONDS:
            await yield_to_others()
            self._began = trio.current_time()


async def yield_to_others() -> None:
    """Let other tasks run before the next step of long work."""
    await current_line().wait()
