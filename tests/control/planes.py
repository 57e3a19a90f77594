"""A control plane that is open for the length of a test, with a clock that the test sets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from random import Random
from typing import Any

import trio

from qserver.cluster import SharedVersions
from qserver.control import ControlPlane, Databases, Grant, MemoryLogs
from qserver.control.logs import Logs
from qserver.control.owners import Owners
from qserver.control.plane import PlaneOptions
from qserver.control.replicas import Replicas
from qserver.control.shares import Shares
from qserver.control.tiers import TIERS, Tier
from qserver.durability.port import Log
from qserver.engine.world import OrdinaryWorld
from qserver.errors import LogFailed
from tests.engine.fakes import HeldLog

NOON = 1_700_000_000.0
FIRST_KEY = "svc_k_0123456789abcdef"
CHANCE = Random(7)
"""One for all tests: what is made after a restart must differ from what was made before."""

STARTED: list[MemoryLogs] = []


class TestWorld(OrdinaryWorld):
    """The ordinary world with a clock that stands still until it is set."""

    __test__ = False

    def __init__(self) -> None:
        self.time = NOON
        self.reports: list[str] = []
        super().__init__(lambda: self.time, Random(0), self._note)

    def _note(self, text: str, error: Exception) -> None:
        self.reports.append(f"{text}: {error}")


class Opened:
    """The plane and its parts, and the grant of the first key."""

    def __init__(self, plane: ControlPlane, world: TestWorld, logs: Logs, new: str | None) -> None:
        self.plane = plane
        self.world = world
        self.logs = logs
        self.new_key = new
        self.grant: Grant

    async def limited(
        self,
        *scopes: str,
        databases: list[str] | None = None,
        expires_in: float | None = None,
    ) -> Grant:
        """The grant of a new key with these scopes."""
        _, secret = await self.plane.keys.create(self.grant, "test", scopes, databases, expires_in)
        return await self.plane.authenticate(secret)

    async def stranger(self, name: str = "acme") -> Grant:
        """The grant of the first key of another organization."""
        *_, secret = await self.plane.organizations.signup(name)
        return await self.plane.authenticate(secret)

    async def run(self, grant: Grant, sql: str, database: str | None = None) -> list[Any]:
        with await self.plane.database(grant, database) as opened:
            return list((await opened.sql.execute(sql)).rows)

    def is_open(self, name: str) -> bool:
        return any(each.name == name for each in self.plane.databases.statistics())


@asynccontextmanager
async def opened_plane(
    logs: Logs | None = None,
    world: TestWorld | None = None,
    *,
    first_key: str | None = FIRST_KEY,
    default_tier: str | None = None,
    **options: Any,
) -> AsyncIterator[Opened]:
    """Given the logs of an earlier plane, it is a restart."""
    if logs is None:
        usual = first_key == FIRST_KEY and default_tier is None
        logs = await started_logs() if usual else MemoryLogs()
    world = world or TestWorld()
    plane = unopened_plane(logs, world, first_key, default_tier, **options)
    async with trio.open_nursery() as nursery:
        new = await nursery.start(plane.run)
        opened = Opened(plane, world, logs, new)
        key = new or first_key
        if key is not None:
            opened.grant = await plane.authenticate(key)
        yield opened
        nursery.cancel_scope.cancel()


async def started_logs() -> MemoryLogs:
    """Logs as a first start leaves them: copied, because to make them takes most of a test."""
    if not STARTED:
        logs = MemoryLogs()
        async with opened_plane(logs):
            pass
        STARTED.append(logs)
    return deepcopy(STARTED[0])


def unopened_plane(
    logs: Logs,
    world: TestWorld | None = None,
    first_key: str | None = None,
    default_tier: str | None = None,
    tiers: Mapping[str, Tier] = TIERS,
    owners: Owners | None = None,
    versions: SharedVersions | None = None,
    **options: Any,
) -> ControlPlane:
    """A plane that nobody has started yet; with `versions` it can follow others' databases."""
    world = world or TestWorld()
    options = {"shards": 1} | options
    databases = Databases(logs, world, **options)
    return ControlPlane(
        databases,
        world,
        CHANCE.randbytes,
        PlaneOptions(default_tier, first_key),
        shares=Shares(tiers=tiers),
        owners=owners,
        replicas=None if versions is None else Replicas(versions, MemoryLogs(), world, **options),
    )


class TroubledLogs(MemoryLogs):
    """Logs that do not open, or are not removed, while the test says so; or that wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.fail_open = self.fail_remove = False
        self.openings: list[str] = []
        self.gate = trio.Event()
        self.gate.set()
        self.remove_gate = trio.Event()
        self.remove_gate.set()

    def hold(self) -> None:
        self.gate = trio.Event()

    def hold_removals(self) -> None:
        self.remove_gate = trio.Event()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Log]:
        self.openings.append(name)
        await self.gate.wait()
        if self.fail_open:
            raise LogFailed("the disk is full")
        async with super().open(name) as log:
            yield log

    async def remove(self, name: str) -> None:
        await self.remove_gate.wait()
        if self.fail_remove:
            raise LogFailed("the disk is away")
        await super().remove(name)


class ControlLogs(MemoryLogs):
    """The control database has a log that the test can make to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.control = HeldLog()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Log]:
        if name == "control":
            yield self.control
            return
        async with super().open(name) as log:
            yield log


async def until(holds: Callable[[], bool]) -> None:
    """Let others run until something holds."""
    for _ in range(10_000):
        if holds():
            return
        await trio.lowlevel.checkpoint()
    raise AssertionError("it never came to hold")


async def outcome_of(call: Awaitable[Any]) -> Any:
    """What a call came to, be it an error."""
    try:
        return await call
    except Exception as error:
        return error
