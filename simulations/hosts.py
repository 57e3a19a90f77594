"""Machines with local copies of a replicated log, and the processes that live on them.

    Host ── its disks, which outlive processes
      └── one process after the other ── a link to the nodes ── ReplicatedLogs ── databases

A process crashes with its disks' unsynced ends, stands still while the clock goes on, or loses the
family to another host and knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from functools import partial
from random import Random
from typing import Any, Final, Protocol

import trio

from qserver.durability.handing_over import Handover
from qserver.durability.port import Log
from qserver.durability.recovery import Recovered
from qserver.engine.database import Database, DatabaseState
from qserver.errors import DataCorrupted, LogFailed, LogTaken
from qserver.replication.replicated_logs import ReplicatedLogs
from qserver.storage.snapshot import Snapshot
from simulations.branch_members import Member
from simulations.branch_process import FamilyWorld, Process
from simulations.copy_disk import CopyDisk
from simulations.disk import DiskHandle
from simulations.faults import Profile
from simulations.pages import FickleCache
from simulations.stream import SimulatedNodes
from simulations.warm_hosts import Followers, hint
from simulations.whole_files import WholeFiles

ROOT: Final = "main"
PAUSE_SECONDS: Final = (0.05, 15.0)
APPEND_SECONDS: Final = (0.3, 5.0, 20.0)
"""How long a process repeats a message before nobody knows what became of it."""


class Machines(Protocol):
    """What a process asks of the run that it is in."""

    def take_over(self) -> None:
        """Have another host open the family."""

    def file_made(self, database: str) -> None:
        """Look at a file that is being made."""

    def written(self, database: str, records: list[tuple[int, bytes]]) -> None:
        """Look at what is being written to a file."""

    def followed(self, database: str, snapshot: Snapshot) -> None:
        """Look at what a follower shows."""

    def others(self, host: Host) -> list[ReplicatedLogs]:
        """Return the logs of the processes of all other hosts."""


class ReplicatedWorld(FamilyWorld):
    """A world with several processes: crashes and caches are of the one that runs."""

    machines: Machines

    def report(self, text: str, error: Exception) -> None:
        if isinstance(error, LogTaken):
            self.reach("a process that had lost the family was refused")
        if not lacks_files(error):
            super().report(text, error)

    async def stand_at_await_point(self) -> None:
        process = PROCESS.get()
        if process is not None:
            if self.faults.strikes("process_paused"):
                process.host.pause(self.delays.uniform(*PAUSE_SECONDS))
            if self.faults.strikes("family_taken"):
                self.machines.take_over()
            await process.host.gate()
        await super().stand_at_await_point()

    @property
    def crash_wanted(self) -> trio.Event:
        process = PROCESS.get()
        return trio.Event() if process is None else process.crash_wanted

    @crash_wanted.setter
    def crash_wanted(self, event: trio.Event) -> None:
        """Each process has its own."""

    @property
    def cache(self) -> FickleCache | None:
        process = PROCESS.get()
        return None if process is None else process.cache

    @cache.setter
    def cache(self, cache: FickleCache | None) -> None:
        """Each process has its own."""


def lacks_files(error: Exception) -> bool:
    """Return whether a host must begin anew: its history is too short for a branch."""
    return isinstance(error, DataCorrupted) and "are missing" in str(error)


class Host(WholeFiles):
    def __init__(self, name: str, world: ReplicatedWorld, nodes: SimulatedNodes) -> None:
        super().__init__(lambda name: WatchedDisk(world, nodes.nursery, name))
        self.name = name
        self.world = world
        self.nodes = nodes
        self.process: ReplicatedProcess | None = None
        self.started = trio.Event()
        self.following = Random(f"{name} {world.following.random()}")
        self.lives = 0
        self.crashes = 0
        self.append_seconds = world.delays.choice(APPEND_SECONDS)
        self._paused_until = 0.0

    async def run(self, profile: Profile, members: dict[str, Member]) -> None:
        """Run one process after the other."""
        while True:
            self.lives += 1
            process = self.process = ReplicatedProcess(self, profile, members)
            PROCESS.set(process)
            with process.scope:
                async with trio.open_nursery() as process.nursery:
                    process.nursery.start_soon(self._crash_when_wanted, process)
                    await process.nursery.start(process.replicated.run)
                    await process.replicated.copies.remove_gone(process.gone)
                    self.started.set()
                    await process.followers.run()
            await trio.sleep(self.world.delays.uniform(0.0, 0.05))

    async def _crash_when_wanted(self, process: ReplicatedProcess) -> None:
        await process.crash_wanted.wait()
        if process is self.process and not process.scope.cancel_called:
            self.crash()
        await trio.sleep_forever()

    def crash(self, *, lose_all: bool = False) -> None:
        process = self.process
        assert process is not None
        self.crashes += 1
        self.started = trio.Event()
        self._paused_until = 0.0
        self.world.record("crash", f"{self.name} crashes")
        for disk, handle in process.handles:
            disk.crash(handle, lose_all=lose_all)
        process.scope.cancel()
        for request in process.requests:
            request.cancel()

    def begin_anew(self) -> None:
        """Remove all files, as whoever runs the host is told to do."""
        self.world.reach("a host began anew without its files")
        self.crash(lose_all=True)
        self.disks.clear()

    def pause(self, seconds: float) -> None:
        self.world.record("fault", f"{self.name} stands still for {seconds:.1f} s")
        self.world.reach("a process stood still")
        self._paused_until = trio.current_time() + seconds

    async def gate(self) -> None:
        """Wait until the process is not paused."""
        if trio.current_time() < self._paused_until:
            await trio.sleep_until(self._paused_until)

    # --- LocalFiles ---

    async def open_file(self, name: str, may_make: bool) -> Log:
        process = PROCESS.get()
        assert process is not None and process.host is self
        await trio.lowlevel.checkpoint()
        if process.scope.cancel_called:  # what a crashed one would tidy up stays as it is
            raise LogFailed("the process is gone")
        if name not in self.disks:
            if not may_make:
                raise DataCorrupted(f"the file of {name} is missing")
            self.world.machines.file_made(name)
            self.disks[name] = self._new_disk(name)
        handle = self.disks[name].connect()
        process.handles.append((self.disks[name], handle))
        return handle

    async def close_file(self, name: str, log: Log) -> None:
        assert isinstance(log, DiskHandle)
        if not log.dead and name in self.disks:
            await self.disks[name].close(log)

    async def has_file(self, name: str) -> bool:
        await trio.lowlevel.checkpoint()
        return name in self.disks

    async def remove(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        self.disks.pop(name, None)

    async def place(self, name: str) -> None:
        await super().place(name)
        if name == ROOT:
            self.world.reach("a base was loaded")

    async def discard(self, name: str) -> None:
        process = PROCESS.get()
        if process is None or not process.scope.cancel_called:  # a crash leaves what is staged
            await super().discard(name)

    def __repr__(self) -> str:
        return f"host {self.name} with files of {sorted(self.disks)}"


class WatchedDisk(CopyDisk):
    """Tells the run what is appended, and when."""

    def __init__(self, world: ReplicatedWorld, nursery: trio.Nursery, name: str) -> None:
        super().__init__(world, nursery)
        self._machines = world.machines
        self._name = name

    def _begin_write(self, handle: DiskHandle, records: Any) -> None:
        self._machines.written(self._name, list(records))
        super()._begin_write(handle, records)


class ReplicatedProcess(Process):
    def __init__(self, host: Host, profile: Profile, members: dict[str, Member]) -> None:
        super().__init__(profile, host.world, members, lambda name, may_make: host.disks[name])
        self.host = host
        self.crash_wanted = trio.Event()
        self.cache = FickleCache(profile.cache_bytes)
        self.link = host.nodes.link(f"{host.name}.{host.lives}")
        self.link.gate = host.gate
        self.replicated = ReplicatedLogs(
            host,
            self.link,
            self._new_claim,
            host.world.report,
            append_seconds=host.append_seconds,
        )
        self.replicated.root_of = self._root_of
        self.logs = self.replicated
        self.followers = Followers(
            self.replicated,
            host.world,
            host.following,
            self._ready,
            host.world.machines.followed,
        )
        self.followers.policy_of = self.policy_of
        self.followers.cache = self.cache
        self.followers.reach = host.world.reach
        self.replicated.appended = self._appended
        self._claims = 0
        self._changing = trio.Lock()

    def _ready(self) -> list[str]:
        return [name for name, each in self._members.items() if each.state == "ready"]

    def _followed(self, name: str) -> Recovered | None:
        return self.followers.take(name)

    def _appended(self, root: str, sequence: int) -> None:
        host = self.host
        if self.nursery is not None and not self.scope.cancel_called:
            others = partial(host.world.machines.others, host)
            self.nursery.start_soon(hint, others, host.following, root, sequence)

    def _new_claim(self) -> str:
        self._claims += 1
        return f"{self.link.name}.{self._claims}"

    async def _root_of(self, name: str) -> str:
        return ROOT

    async def gone(self, files: Collection[str]) -> list[str]:
        """Return which files are of databases that are not there any more, by their records."""
        await trio.lowlevel.checkpoint()
        found = [name for name in files if name not in self._members]
        if found:
            self._world.reach("a host had files of a branch that was gone")
        return found

    async def _host(self, name: str, opened: trio.Event, handover: Handover | None) -> None:
        try:
            await super()._host(name, opened, handover)
        except DataCorrupted as error:
            if not lacks_files(error):
                raise
            if not self.scope.cancel_called:
                self.host.begin_anew()

    async def open(self, name: str, handover: Handover | None = None) -> Database:
        """Open a database; claim the family anew if this process had lost it."""
        await self.leave_what_is_taken()
        return await super().open(name, handover)

    async def leave_what_is_taken(self) -> None:
        """Close all databases if another process has the family: then it can be claimed again."""
        async with self._changing:
            if any(each.state is DatabaseState.TAKEN for each in self.databases.values()):
                for each in list(self.databases):
                    await self.close(each)


PROCESS: Final[ContextVar[ReplicatedProcess | None]] = ContextVar("process", default=None)
"""The process that the current task is of."""
