"""A family of branches on a replicated log, and two or three hosts that take it from each other.

    clients ──► the host that is to have the family, or still the one that they used before
    hosts   ──► local copies (`hosts`), over links to the same nodes (`stream`)
    others  ──► any host may be told to take the family over, at any moment

Clients do what those of `branches` do, and have bases made. What must hold beyond that:

- what a process shows has all that was in the stream when it claimed the family, and if its claim
  is the last, all that was ever acknowledged; the same version has the same contents on all hosts
- the stream has versions without a gap, each value once, and nothing written after another's claim
- a file gets nothing that the stream does not have yet, and is a copy of a part of it
- when faults have ceased all clients finish; then each host takes over and has everything, also a
  new one with no files

No lease exists here: a process that has lost the family and does not know may show what is old.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Final

import trio

from qserver.durability.kept import KeptCheckpoint
from qserver.engine.database import Database
from qserver.errors import (
    DatabaseUnavailable,
    DataCorrupted,
    InvalidRequest,
    QserverError,
    ReaderTooSlow,
)
from qserver.replication.messages import Claim, decode
from qserver.replication.replicated_logs import ReplicatedLogs
from qserver.storage.snapshot import Snapshot
from simulations.base_checks import BaseChecks
from simulations.branch_members import entries
from simulations.branch_process import Process, ProcessCrashed
from simulations.branches import CHAOS_SECONDS, CLIENTS, MAIN, Family
from simulations.disk import Disk
from simulations.faults import Faults, Profile
from simulations.hosts import PROCESS, Host, ReplicatedProcess, ReplicatedWorld, lacks_files
from simulations.judging import conclude
from simulations.results import Plan, Result
from simulations.stream import ELECTION_SECONDS, LATE_SECONDS, SimulatedNodes, Told
from simulations.stream_checks import ReadStream
from simulations.trace import Trace
from simulations.world import ACTOR

REPLICATED: Final = "replicated"
REPLICATED_SOMETIMES: Final = (
    "another host was to take the family over",
    "a process that had lost the family was refused",
    "a process showed what it had after another's claim",
    "a message was repeated that had been appended",
    "a message was refused by one that was not committed yet",
    "a claim was refused, and its sender read on",
    "two processes raced for the family",
    "the answer of the nodes was lost",
    "a request arrived late",
    "the nodes had an election",
    "a message without an answer survived an election",
    "a proposal vanished at an election",
    "a read lagged behind",
    "a process was cut off from the nodes",
    "a process stood still",
    "a local copy lost its end",
    "a local copy could not be written",
    "a base was loaded",
    "a base was made while a branch was made",
    "a part of a base was not there yet",
    "a follower showed what another host has written",
    "a process took over with what it had in memory",
    "a follower had to begin anew",
    "a follower lacked the file of a branch",
)
"""What campaigns of these runs must reach, see `observations.SOMETIMES`."""
SECONDS_MAX: Final = 3000.0
HEALING_SECONDS: Final = 600.0
STEPS_MAX: Final = 2_000_000
AUDITS_MOST: Final = 4
TO_THE_OLD: Final = 0.3
"""How likely a client uses the host that it used before, though the family is to be elsewhere."""


class ReplicatedFamily(Family):
    world: ReplicatedWorld
    nodes: SimulatedNodes
    _scope: trio.CancelScope

    def __init__(
        self,
        seed: int,
        profile: Profile,
        only: frozenset[str] | None = None,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(seed, replace(profile, past=0), only, trace)
        self.hosts: list[Host] = []
        self.stuck = False
        self.transactions = 0
        self._machine_chance = Random(f"machines {seed}")
        self._used: dict[str, Host] = {}
        """By client: the host that it used last."""
        self._read_stream = ReadStream()

    def _make_world(self, faults: Faults, trace: Trace) -> ReplicatedWorld:
        world = ReplicatedWorld(self.seed, self.profile, faults, trace)
        world.machines = self
        return world

    # --- the run ---

    async def main(self) -> None:
        async with trio.open_nursery() as nursery:
            self.nodes = SimulatedNodes(self.world, nursery)
            self.nodes.refused = self._refused
            self._scope = nursery.cancel_scope
            self.nodes.agreed.changed = BaseChecks(self.nodes, MAIN, self._end_with).look
            for number in range(self._machine_chance.choice((2, 3))):
                self._add_host(f"h{number}", nursery)
            self._current = self.hosts[0]
            await self._set_up()
            self.world.faults.on = True
            nursery.start_soon(self._heal_after_chaos)
            with trio.move_on_after(CHAOS_SECONDS + HEALING_SECONDS) as scope:
                async with trio.open_nursery() as clients:
                    for number in range(CLIENTS):
                        clients.start_soon(self._client, number)
            self.world.faults.on = False
            self.stuck = scope.cancelled_caught
            if self.stuck:
                self.problems.append("clients had not finished long after the last fault")
            else:
                await self._audit_all(nursery)
            nursery.cancel_scope.cancel()
        self.crashes = sum(host.crashes for host in self.hosts)

    def _end_with(self, problem: str) -> None:
        """Complain, and end the run: what the nodes have lost does not come back."""
        self.problems.append(problem)
        self._scope.cancel()

    def _add_host(self, name: str, nursery: trio.Nursery) -> Host:
        host = Host(name, self.world, self.nodes)
        self.hosts.append(host)
        nursery.start_soon(host.run, self.profile, self.members)
        return host

    async def _within(self, work: Callable[[Process], Awaitable[None]]) -> None:
        host = self._choose_host()
        while True:
            await host.started.wait()
            process = host.process
            if process is not None and not process.scope.cancel_called:
                break
        scope = trio.CancelScope()
        process.requests.add(scope)
        before = PROCESS.set(process)
        try:
            with scope:
                await host.gate()
                await work(process)
        finally:
            PROCESS.reset(before)
            process.requests.discard(scope)
        if scope.cancelled_caught:
            raise ProcessCrashed

    def _choose_host(self) -> Host:
        client = ACTOR.get()
        host = self._used.get(client, self._current)
        if not self.world.faults.on or self._machine_chance.random() >= TO_THE_OLD:
            host = self._current
        self._used[client] = host
        return host

    def take_over(self) -> None:
        others = [host for host in self.hosts if host is not self._current]
        self._current = self._machine_chance.choice(others)
        self.world.record("fault", f"{self._current.name} is to take the family over")
        self.world.reach("another host was to take the family over")

    # --- what clients do ---

    async def _client(self, number: int) -> None:
        ACTOR.set(f"client {number}")
        await super()._client(number)

    def _explains(self, error: QserverError) -> bool:
        return isinstance(error, ReaderTooSlow) or super()._explains(error)

    def _found(self, name: str, snapshot: Snapshot) -> dict[int, int]:
        """Compare what a process shows with what it must have, by its claim."""
        process = PROCESS.get()
        assert process is not None
        stream = self._stream_now()
        least = stream.version_at_claim(process.link.name, name)
        if least is None:
            self.problems.append(f"{process.link.name} shows {name} without a claim")
        elif snapshot.version < least:
            self.problems.append(
                f"{process.link.name} shows version {snapshot.version} of {name},"
                f" and {least} was there when it claimed it"
            )
        if self._is_owner():
            return super()._found(name, snapshot)
        self.world.reach("a process showed what it had after another's claim")
        found = entries(snapshot)
        self._compare(name, snapshot.version, found)
        return found

    async def _as_of(
        self, database: Database, name: str, version: int, time: float | None = None
    ) -> Snapshot:
        try:
            return await super()._as_of(database, name, version, time)
        except InvalidRequest:
            if not self._is_owner():
                raise ProcessCrashed from None  # as good as that: it cannot know the version
            raise

    def _found_another(self, name: str, version: int, snapshot: Snapshot) -> None:
        """Complain, unless it was sought by time in a process that cannot know the version."""
        if self._is_owner() or snapshot.version > version:
            super()._found_another(name, version, snapshot)

    def _is_owner(self) -> bool:
        process = PROCESS.get()
        assert process is not None
        return self._stream_now().owner() == process.link.name

    def _stream_now(self) -> ReadStream:
        stream = self._read_stream
        stream.read_on(self.nodes.told.get(MAIN, []))
        self.problems += stream.problems
        stream.problems.clear()
        return stream

    def file_made(self, database: str) -> None:
        if database != MAIN and database not in self._stream_now().parents:
            self.problems.append(f"a file of {database} is made, and no message says so")

    def _refused(self, data: bytes, instead: Told | None) -> None:
        """Note why a message was refused."""
        if instead is None:
            return
        world = self.world
        if instead.message.data == data:
            world.reach("a message was repeated that had been appended")
        elif isinstance(decode(data, "a message").body, Claim):
            world.reach("a claim was refused, and its sender read on")
            if isinstance(decode(instead.message.data, "a message").body, Claim):
                world.reach("two processes raced for the family")

    def written(self, database: str, records: list[tuple[int, bytes]]) -> None:
        self.problems += self._stream_now().foreign(database, records)

    def followed(self, database: str, snapshot: Snapshot) -> None:
        self.world.reach("a follower showed what another host has written")
        if database in self.members and snapshot.catalog.tables:
            self._compare(database, snapshot.version, entries(snapshot))
        newest = self._stream_now().last_version(database)
        if snapshot.version > newest:
            self.problems.append(
                f"a follower shows version {snapshot.version} of {database}, and {newest} is there"
            )

    def others(self, host: Host) -> list[ReplicatedLogs]:
        processes = [each.process for each in self.hosts if each is not host]
        return [each.replicated for each in processes if each is not None]

    async def _step(
        self, chance: Random, number: int, own: list[str], value: int, process: Process
    ) -> None:
        self.transactions += 1
        assert isinstance(process, ReplicatedProcess)
        await process.leave_what_is_taken()
        with begun_anew(process):
            await self._tidy_after(process, number)
            await super()._step(chance, number, own, value, process)

    async def _tidy_after(self, process: Process, number: int) -> None:
        """Undo what a client left unfinished, wherever that was."""
        for name in sorted(self.members, reverse=True):
            member = self.members.get(name)
            if member is None or not name.startswith(f"b{number}-") or member.state == "ready":
                continue
            if member.state != "deleted" or not self._has_branches(name):
                await self._remove(process, name)

    async def _begin(
        self, process: Process, database: Database, name: str, kept: KeptCheckpoint, version: int
    ) -> None:
        parent = self.members[name].parent
        assert parent is not None and isinstance(process, ReplicatedProcess)
        await process.replicated.branch(name, parent, database.log, kept, version)

    async def _remove_file(self, process: Process, name: str) -> None:
        assert isinstance(process, ReplicatedProcess)
        await process.replicated.remove(name)

    # --- at the end ---

    async def _audit_all(self, nursery: trio.Nursery) -> None:
        """Let each host have the family, with what is left of its files, and a new one."""
        for host in self.hosts:
            host.crash(lose_all=True)
        await trio.sleep(LATE_SECONDS[1] + ELECTION_SECONDS[1])
        last = self._add_host("new", nursery)
        chosen = self._machine_chance.choice(self.hosts[:-1])
        for host in (chosen, last, *self.hosts[:-1]):
            self._current = host
            if host is not last:
                host.crash(lose_all=True)  # who takes over starts
            await self._look_from(host)
            self._check_pins(host.disks)
            if host.all_names() != sorted(self.members):
                self.problems.append(f"{host!r}, and members are {sorted(self.members)}")
        stream = self._stream_now()
        for host in self.hosts:
            for name, disk in host.disks.items():
                wrong = stream.foreign(name, disk.records)
                self.problems += [f"{host.name}: {each}" for each in wrong]

    async def _look_from(self, host: Host) -> None:
        for _ in range(AUDITS_MOST):
            lives = host.lives
            try:
                await self._within(self._look_at_all)
                return
            except (ProcessCrashed, DatabaseUnavailable):
                if host.lives == lives:
                    await trio.sleep(1.0)  # it begins anew without its files
                if host.lives == lives:
                    raise
        self.problems.append(f"{host.name} begins anew again and again")

    async def _look_at_all(self, process: Process) -> None:
        assert isinstance(process, ReplicatedProcess)
        with begun_anew(process):
            for number in range(1, CLIENTS):
                await self._tidy_after(process, number)
            await super()._look_at_all(process)

    def _disks_of(self, process: Process) -> Mapping[str, Disk]:
        assert isinstance(process, ReplicatedProcess)
        return process.host.disks


@contextmanager
def begun_anew(process: ReplicatedProcess) -> Iterator[None]:
    """Let a host begin without files, if the block finds that its history is too short."""
    try:
        yield
    except DataCorrupted as error:
        if not lacks_files(error) or process.scope.cancel_called:
            raise
        process.host.begin_anew()
        raise ProcessCrashed from None


def simulate_replicated(plan: Plan, *, keep_events: bool = False) -> Result:
    """Run a plan. The same plan gives the same trace."""
    trace = Trace(keep_events=keep_events)
    profile = replace(plan.profile, steps=plan.profile.transactions_per_client)
    family = ReplicatedFamily(plan.seed, profile, plan.only, trace)
    return conclude(plan, family, SECONDS_MAX, STEPS_MAX)
