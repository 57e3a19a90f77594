"""Runs long work in pieces, with a pause between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from qserver.storage.pieces import Made, Steps, capturing_result


async def in_steps(
    steps: Steps[Made], pause: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
) -> Made:
    """Return the result of the steps, and let others run between them.

    An actor does not queue for its steps, because every commit waits for it; long work of a request
    does, and gives the pause that queues.
    """
    made: list[Made] = []
    for _ in capturing_result(steps, made):
        await pause()
    return made[0]
