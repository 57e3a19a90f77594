"""Processes that are linked: some in one Trio run, with real sockets between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio

from qserver.cluster import Doors, Links, LocalDoors, Service


class Process:
    """One of several in this process, that can die and start anew; its door stays."""

    def __init__(self, number: int, doors: Doors, service: Service) -> None:
        self.number = number
        self.service = service
        self.reports: list[str] = []
        self.links: Links
        self.doors = doors
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        self._scope, self._ended = trio.CancelScope(), trio.Event()
        ways = LocalDoors(self.doors.inside[self.number], self.doors, self.reports.append)
        self.links = Links(self.number, ways, self.service, self.reports.append)
        try:
            with self._scope:
                await self.links.run(task_status=task_status)
        finally:
            self._ended.set()

    async def die(self) -> None:
        self._scope.cancel()
        await self._ended.wait()


@asynccontextmanager
async def linked(*services: Service) -> AsyncIterator[list[Process]]:
    with made_doors(len(services)) as doors:
        processes = [Process(at, doors, each) for at, each in enumerate(services)]
        async with trio.open_nursery() as nursery:
            for process in processes:
                await nursery.start(process.run)
            yield processes
            nursery.cancel_scope.cancel()


@contextmanager
def made_doors(count: int) -> Iterator[Doors]:
    doors = Doors(count)
    try:
        yield doors
    finally:
        doors.close()


async def until(holds: Callable[[], object]) -> None:
    """Let others run until it holds."""
    while not holds():
        await trio.lowlevel.checkpoint()


def open_descriptors() -> set[str]:
    """What this process has open, by number and what it is."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{path.name} {path.readlink()}")
        except OSError:
            pass  # the one of this listing
    return found
