"""A neighbour who wants to run whenever the loop lets it: it sees how often others yield."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Passes:
    """Counts the passes of the loop, each of which lets every task run that can."""

    def __init__(self) -> None:
        self.count = 0

    async def run(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.count += 1


@asynccontextmanager
async def counted_passes() -> AsyncIterator[Passes]:
    """The passes from the start of the block to its end."""
    passes = Passes()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(passes.run)
        yield passes
        nursery.cancel_scope.cancel()
