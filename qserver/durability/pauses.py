"""Runs long work in pieces, and pauses between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from qserver.storage.pieces import Made, Steps, capturing_result


async def in_steps(
    steps: Steps[Made], pause: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
) -> Made:
    """Return the result of the steps; pause after each.

    An actor pauses without queueing, because every commit waits for it. Long work of a request
    passes a `pause` that queues.
    """
    made: list[Made] = []
    for _ in capturing_result(steps, made):
        await pause()
    return made[0]
