"""Repeats a call to the nodes of the log until it is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from qserver.errors import LogFailed
from qserver.replication.port import Unanswered

PAUSE_SECONDS: Final = 0.05
PAUSE_SECONDS_MAX: Final = 1.0
"""Between repetitions; each is twice as long as the one before."""

Result = TypeVar("Result")


async def patiently(call: Callable[[], Awaitable[Result]], seconds: float, what: str) -> Result:
    """Repeat a call that may be done twice until it is answered; LogFailed after so long."""
    deadline, pause = trio.current_time() + seconds, PAUSE_SECONDS
    while True:
        try:
            return await call()
        except Unanswered:
            if trio.current_time() + pause > deadline:
                raise LogFailed(
                    f"the nodes of the log did not answer within {seconds:g} s",
                    detail=what,
                    hint="Look at the log's nodes.",
                ) from None
        await trio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)
