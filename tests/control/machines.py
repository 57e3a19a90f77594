"""Several control planes over one folder, as several processes have them, in one event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from qserver.cluster import Service
from qserver.control import ControlPlane, MemoryLogs
from qserver.control.owners import OwnedElsewhere, Owners
from qserver.control.records import DatabaseRecord, Grant
from tests.cluster.linked import Process, listening
from tests.control.planes import FIRST_KEY, TestWorld, started_logs, unopened_plane


class Member:
    """One process: its plane, and the links that it has."""

    def __init__(self, number: int, count: int, logs: MemoryLogs, world: TestWorld) -> None:
        self.owners = Owners(number, count)
        self.plane = unopened_plane(logs, world, FIRST_KEY, owners=self.owners)
        owners = self.owners
        self.service = Service(owners.methods, owners.streams, _unwelcome, owners.locks)
        self.scope = trio.CancelScope()
        self.ended = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            with self.scope:
                await self.plane.run(task_status=task_status)
        finally:
            self.ended.set()


async def _unwelcome(*_: object) -> None:
    raise AssertionError("no connection moves here")


class Machine:
    """Processes of one machine: each can die, and begin again."""

    def __init__(self, count: int, logs: MemoryLogs, nursery: trio.Nursery) -> None:
        self.count = count
        self.logs = logs
        self.world = TestWorld()
        self.members: list[Member] = []
        self.processes: list[Process] = []
        self._nursery = nursery

    async def start(self, number: int, listeners: Any) -> None:
        member = Member(number, self.count, self.logs, self.world)
        process = Process(number, listeners, member.service)
        self.members[number:] = [member, *self.members[number + 1 :]]
        self.processes[number:] = [process, *self.processes[number + 1 :]]
        await self._nursery.start(process.run)
        member.owners.links = process.links
        await self._nursery.start(member.run)

    async def die(self, number: int) -> None:
        await self.processes[number].die()
        self.members[number].scope.cancel()
        await self.members[number].ended.wait()

    def __getitem__(self, number: int) -> ControlPlane:
        return self.members[number].plane

    def owner(self, family: str) -> int:
        return self.members[0].owners.owner_of(family)


@asynccontextmanager
async def machine(
    count: int = 3, *, is_new: bool = False
) -> AsyncIterator[tuple[Machine, Callable[[int], Awaitable[None]]]]:
    """A machine, and what starts one of its processes again; a new one has none yet."""
    logs = MemoryLogs() if is_new else await started_logs()
    with listening(count) as listeners:
        async with trio.open_nursery() as nursery:
            made = Machine(count, logs, nursery)

            async def start(number: int) -> None:
                await made.start(number, listeners)

            async with trio.open_nursery() as starting:
                for number in [] if is_new else range(count):
                    starting.start_soon(start, number)
                    await trio.testing.wait_all_tasks_blocked()
            yield made, start
            nursery.cancel_scope.cancel()


async def grants(made: Machine) -> list[Grant]:
    return [await each.plane.authenticate(FIRST_KEY) for each in made.members]


async def create(made: Machine, at: int, grant: Grant, name: str) -> DatabaseRecord:
    """Make a database, by asking a process: it is made where it belongs."""
    try:
        return await made[at].records.create(grant, name)
    except OwnedElsewhere as elsewhere:
        assert elsewhere.process != at
        return await made[elsewhere.process].records.create(grant, name)
