"""Several control planes over one folder, as several processes have them, in one event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing

from qserver.cluster import Doors, Service, SharedVersions
from qserver.control import ControlPlane, MemoryLogs
from qserver.control.owners import OwnedElsewhere, Owners
from qserver.control.records import DatabaseRecord, Grant
from qserver.errors import Unauthorized
from tests.cluster.linked import Process, made_doors
from tests.control.planes import FIRST_KEY, TestWorld, started_logs, unopened_plane

IDLE_SECONDS = 0.02
"""All tasks wait for so long: nothing is on its way between them either."""

IMPATIENT_SECONDS = 0.5


class Member:
    """One process: its plane, and the links that it has."""

    def __init__(
        self,
        number: int,
        count: int,
        logs: MemoryLogs,
        world: TestWorld,
        versions: SharedVersions | None = None,
    ) -> None:
        self.owners = Owners(number, count)
        self.plane = unopened_plane(logs, world, FIRST_KEY, owners=self.owners, versions=versions)
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
        self.versions = SharedVersions(count)
        self.members: list[Member] = []
        self.processes: list[Process] = []
        self._nursery = nursery

    async def start(self, number: int, doors: Doors) -> None:
        member = Member(number, self.count, self.logs, self.world, self.versions)
        process = Process(number, doors, member.service)
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
    with made_doors(count) as doors:
        async with trio.open_nursery() as nursery:
            made = Machine(count, logs, nursery)

            async def start(number: int) -> None:
                await made.start(number, doors)

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


@contextmanager
def impatient(made: Machine) -> Iterator[None]:
    """Do not wait long for a process that is away; wait for others as long as ever, afterwards."""
    barrier = made[0]._store.source._barrier  # type: ignore[attr-defined]
    patience, barrier.seconds = barrier.seconds, IMPATIENT_SECONDS
    try:
        yield
    finally:
        barrier.seconds = patience


class IssuedKey(NamedTuple):
    """A key that can be revoked and tried at any process."""

    made: Machine
    id: str
    secret: str

    async def revoke(self, at: int = 1) -> None:
        plane = self.made[at]
        await plane.keys.revoke(await plane.authenticate(FIRST_KEY), self.id)

    async def check_that_revoking_waits(self) -> None:
        """The leader has revoked it and nothing is left to do, but no answer comes."""
        async with trio.open_nursery() as nursery:
            answered = trio.Event()

            async def revoke() -> None:
                await self.revoke()
                answered.set()

            nursery.start_soon(revoke)
            while not await self._is_revoked_at(0):
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked(IDLE_SECONDS)
            assert not answered.is_set(), "one process has not confirmed it"
            nursery.cancel_scope.cancel()

    async def _is_revoked_at(self, at: int) -> bool:
        try:
            await self.made[at].authenticate(self.secret)
        except Unauthorized:
            return True
        return False

    async def check_revoked(self, at: int = 2) -> None:
        with pytest.raises(Unauthorized, match="revoked"):
            await self.made[at].authenticate(self.secret)


async def issue_key(made: Machine, at: int = 1) -> IssuedKey:
    plane = made[at]
    record, secret = await plane.keys.create(await plane.authenticate(FIRST_KEY), "test")
    return IssuedKey(made, record.id, secret)
