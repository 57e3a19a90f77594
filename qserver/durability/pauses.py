"""Runs long work in pieces, and pauses between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from qserver.values.steps import Made, Steps, capturing_result

STEP_SECONDS: Final = 0.0003
"""Shorter steps are one."""


async def in_steps(
    steps: Steps[Made], pause: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
) -> Made:
    """Return the result of the steps; pause after each, or after several short ones.

    An actor pauses without queueing, because every commit waits for it. Long work of a request
    passes a `pause` that queues.
    """
    made: list[Made] = []
    began = trio.current_time()
    for _ in capturing_result(steps, made):
        if not 0.0 < trio.current_time() - began < STEP_SECONDS:  # nor does a clock stand still
            await pause()
            began = trio.current_time()
    return made[0]
