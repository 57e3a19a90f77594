"""Processes that are linked: some in one Trio run, with real sockets between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio

from qserver.cluster import Doors, Links, LocalDoors, Service, Ways


class Mortal(ABC):
    """One of several in this process, that can die and start anew."""

    links: Links

    def __init__(self, number: int, service: Service) -> None:
        self.number = number
        self.service = service
        self.reports: list[str] = []
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    @abstractmethod
    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until it dies."""

    async def _live(self, ways: Ways, task_status: trio.TaskStatus[None]) -> None:
        self._scope, self._ended = trio.CancelScope(), trio.Event()
        self.links = Links(self.number, ways, self.service, self.reports.append)
        try:
            with self._scope:
                await self.links.run(task_status=task_status)
        finally:
            self._ended.set()

    async def die(self) -> None:
        self._scope.cancel()
        await self._ended.wait()


class Process(Mortal):
    """Its door stays."""

    def __init__(self, number: int, doors: Doors, service: Service) -> None:
        super().__init__(number, service)
        self.doors = doors

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        ways = LocalDoors(self.doors.inside[self.number], self.doors, self.reports.append)
        await self._live(ways, task_status)


@asynccontextmanager
async def running(*mortals: Mortal) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for mortal in mortals:
            await nursery.start(mortal.run)
        yield
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def linked(*services: Service) -> AsyncIterator[list[Process]]:
    with made_doors(len(services)) as doors:
        processes = [Process(at, doors, each) for at, each in enumerate(services)]
        async with running(*processes):
            yield processes


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
