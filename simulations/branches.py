"""A family of branches on simulated disks: made, changed, deleted, and crashed at any moment.

    client 0            writes main
    the other clients   make branches of main or of their own, at the newest or an older version;
                        write, read and delete them, also before their branches; draw numbers
    all                 read older versions, at once or slowly, by version and by time, also from
                        before the branch was made; list and follow versions; trim histories

Each file is a `Disk` of its own, with all its faults; a crash hits all of them. Records of the
control plane are durable here as soon as they change, so the steps of `control.branches` run in its
order: a record, the pin, the branch's log; and back. A starting process undoes what was cut short.

What must hold: a branch always has the contents of its parent at the branch's version, plus what
its own writer has written since; each branch has its pin, and each pin its branch. A database that
is deleted before its branches is emptied, and goes with the last of them; at the end no disk holds
a page that no checkpoint leads to. A branch gives no number that its parent had given before. One
client writes a database, so its contents are known except for unknown commits; a version that was
read once reads the same again, for as long as it is kept.

Pages are evicted whenever a task waits, so reads come from the disks. Messages are not delayed: the
observers of the other runs know one database only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from math import inf
from random import Random
from typing import Any, Final

import trio

from qserver.control.reset import wipe
from qserver.durability.branch_log import begin_branch
from qserver.durability.kept import KeptCheckpoint, decode_outline
from qserver.engine.database import Database
from qserver.errors import (
    Applied,
    HistoryTooOld,
    OutOfMemory,
    QserverError,
    first_of,
)
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence
from simulations.branch_members import KEYS, Member, changed, create, entries
from simulations.branch_process import FamilyWorld, Process, ProcessCrashed
from simulations.determinism import Exhausted, run_repeatably
from simulations.disk import Disk
from simulations.faults import Faults, Profile, make_profile
from simulations.inspection import page_numbers
from simulations.pages import FickleCache
from simulations.sizes import sized
from simulations.trace import Trace

MAIN: Final = "main"
CLIENTS: Final = 3
STEPS_TAKEN: Final = (
    "write",
    "write",
    "read",
    "look back",
    "look back",
    "hold",
    "tell",
    "trim",
    "draw",
    "checkpoint",
    "branch",
    "branch",
    "delete",
)
CHAOS_SECONDS: Final = 60.0
HELD_SECONDS: Final = 3.0
PAST_SECONDS: Final = 1.0
NEXT_TO_GO: Final = 4
"""Of a long past, so many of the oldest versions are read or trimmed first."""
LISTED_MOST: Final = 1000
EVER: Final = 1 << 60
SECONDS_MAX: Final = 400.0
STEPS_MAX: Final = 600_000
LEFT_OUT: Final = ("page_torn", "log_taken", "clock_jumps", "client_pauses", "client_leaves")
"""Faults of the other runs that mean nothing here, or would excuse every loss."""


class Family:
    def __init__(
        self,
        seed: int,
        profile: Profile,
        only: frozenset[str] | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.profile = profile
        self.seed = seed
        left = {kind: each for kind, each in profile.probabilities.items() if kind not in LEFT_OUT}
        self.world = self._make_world(Faults(seed, left, only), Trace() if trace is None else trace)
        self.members: dict[str, Member] = {}
        self.problems: list[str] = []
        self.crashes = self.made = self.deleted = self.read = 0
        self.looked_back = self.emptied = self.outlived = self.handed_over = 0
        self.taken_back = 0
        self._disks: dict[str, Disk] = {}
        self._nursery: trio.Nursery | None = None
        self._process: Process | None = None
        self._started = trio.Event()

    def _make_world(self, faults: Faults, trace: Trace) -> FamilyWorld:
        return FamilyWorld(self.seed, self.profile, faults, trace)

    def disk(self, name: str, may_make: bool) -> Disk:
        if name not in self._disks:
            assert may_make, f"the file of {name} is gone, and a branch needs it"
            assert self._nursery is not None
            self._disks[name] = Disk(self.world, self._nursery)
        return self._disks[name]

    # --- processes ---

    async def main(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._processes)
            await self._set_up()
            self.world.faults.on = True
            nursery.start_soon(self._heal_after_chaos)
            async with trio.open_nursery() as clients:
                for number in range(CLIENTS):
                    clients.start_soon(self._client, number)
            self.world.faults.on = False
            self.crash(lose_all=True)
            await self._audit()
            nursery.cancel_scope.cancel()

    async def _heal_after_chaos(self) -> None:
        await trio.sleep(CHAOS_SECONDS)
        self.world.faults.on = False

    async def _processes(self) -> None:
        while True:
            process = Process(self.profile, self.world, self.members, self.disk)
            self.world.cache = FickleCache(self.profile.cache_bytes)
            self._process = process
            with process.scope:
                async with trio.open_nursery() as process.nursery:
                    process.nursery.start_soon(self._crash_when_wanted, process)
                    await self._tidy_up(process)
                    process.up.set()
                    self._started.set()
                    await trio.sleep_forever()
            await trio.sleep(self.world.delays.uniform(0.0, 0.05))

    async def _crash_when_wanted(self, process: Process) -> None:
        await self.world.crash_wanted.wait()
        if process is self._process and not process.scope.cancel_called:
            self.crash()
        await trio.sleep_forever()

    def crash(self, *, lose_all: bool = False) -> None:
        process = self._process
        assert process is not None
        self.crashes += 1
        self.world.crash_wanted = trio.Event()
        if self._started.is_set():  # else clients wait already for the next process
            self._started = trio.Event()
        for disk, handle in process.handles:
            disk.crash(handle, lose_all=lose_all)
        process.scope.cancel()
        for request in process.requests:
            request.cancel()

    async def _tidy_up(self, process: Process) -> None:
        """Undo what the last process left unfinished, as `DatabaseRecords` does."""
        for name in sorted(self.members, reverse=True):
            if name in self.members and self.members[name].state != "ready":
                while True:
                    try:
                        await self._finish(process, name)
                        break
                    except QserverError:
                        await trio.sleep(0.05)

    async def _within(self, work: Callable[[Process], Awaitable[None]]) -> None:
        """Do work in the present process; raise ProcessCrashed if it crashes meanwhile."""
        await self._started.wait()
        while (process := self._process) is None or process.scope.cancel_called:
            await self._started.wait()  # it crashed before this task could run
        scope = trio.CancelScope()
        process.requests.add(scope)
        with scope:
            await work(process)
        process.requests.discard(scope)
        if scope.cancelled_caught:
            raise ProcessCrashed

    # --- what clients do ---

    async def _set_up(self) -> None:
        main = self.members[MAIN] = Member(state="ready")
        main.values = {key: [0] for key in range(KEYS)}

        async def begin(process: Process) -> None:
            database = await process.open(MAIN)
            await database.transact(create)
            await database.checkpoint()
            await self._lay_down_a_past(process)

        await self._within(begin)

    async def _lay_down_a_past(self, process: Process) -> None:
        """Write one version after the other, and see and save each."""
        chance = Random(f"past {self.seed}")
        for version in range(self.profile.past):
            await self._read(process, MAIN)
            await trio.sleep(PAST_SECONDS)
            await self._write(process, chance, MAIN, -1000 * version)
            await (await process.open(MAIN)).checkpoint()

    async def _client(self, number: int) -> None:
        chance = Random(f"family {self.seed} {number}")
        own = [MAIN] if number == 0 else []
        for step in range(self.profile.steps):
            value = 1 + number * 1_000_000 + step * 1000
            try:
                await self._within(partial(self._step, chance, number, own, value))
            except ProcessCrashed:
                pass
            except QserverError as error:
                if not self._explains(error):
                    self.problems.append(f"client {number}: {error!r}")
            own[:] = [name for name in own if self.members.get(name, Member()).state == "ready"]

    def _explains(self, error: QserverError) -> bool:
        return isinstance(error, HistoryTooOld) or self.world.explains(error)

    async def _step(
        self, chance: Random, number: int, own: list[str], value: int, process: Process
    ) -> None:
        what = chance.choice(self.profile.steps_taken or STEPS_TAKEN)
        if number and (what == "branch" or not own):
            name = f"b{number}-{value}"
            own.append(name)
            await self._branch(process, chance, chance.choice([MAIN, *own[:-1]]), name)
            return
        name = chance.choice(own)
        if what in ("write", "branch") or (what == "delete" and name == MAIN):
            await self._write(process, chance, name, value)
        elif what == "read":
            await self._read(process, name)
        elif what in ("look back", "hold"):
            await self._look_back(process, chance, chance.choice([MAIN, *own]), what == "hold")
        elif what == "tell":
            await self._tell(process, chance, chance.choice([MAIN, *own]))
        elif what == "trim":
            await self._trim(process, chance, name)
        elif what == "draw":
            await self._draw(process, name)
        elif what == "checkpoint":
            await self._take_back(process, name)
            if chance.random() < 0.3:
                await process.close(name)
        elif what == "close":
            await process.close(name)
        else:
            self.members[name].state = "deleted" if self._has_branches(name) else "deleting"
            await self._finish(process, name)
            self.deleted += 1

    async def _write(self, process: Process, chance: Random, name: str, value: int) -> None:
        member, keys = self.members[name], sorted(chance.sample(range(KEYS), 3))
        database = await process.open(name)
        sent = False

        def work(transaction: Transaction) -> None:
            nonlocal sent
            sent = True
            for key in keys:
                transaction.put(transaction.table("t"), (key, value + key))

        known = None
        try:
            await database.transact(work)
            known = True
        except QserverError as error:
            known = None if error.applied is Applied.UNKNOWN else False
            raise
        finally:
            if sent and known is not False:
                for key in keys:
                    member.wrote(key, value + key, known is True)

    async def _read(self, process: Process, name: str) -> None:
        database = await process.open(name)
        self._found(name, await database.wait_durable_snapshot())
        self.read += 1

    def _found(self, name: str, snapshot: Snapshot) -> dict[int, int]:
        """Compare the newest version with its expected contents, and record it."""
        found = entries(snapshot)
        self.problems += self.members[name].problems(name, found)
        self._compare(name, snapshot.version, found)
        self.members[name].times[snapshot.version] = snapshot.time
        return found

    def _compare(self, name: str, version: int, found: dict[int, int]) -> None:
        """Compare a version with what was read of it before."""
        before = self.members[name].seen.setdefault(version, found)
        if before != found:
            self.problems.append(f"version {version} of {name} was {before}, and is {found}")

    async def _look_back(
        self, process: Process, chance: Random, name: str, hold: bool = False
    ) -> None:
        """Read an older version that was read before, perhaps after holding it for a while."""
        member = self.members[name]
        version = self._seen_version(chance, name, 1.0 if hold else 0.7)
        if version is None:
            return
        time = member.times.get(version) if chance.random() < 0.3 else None
        database = await process.open(name)
        snapshot = await self._as_of(database, name, version, time)
        kept = self._must_keep(name, snapshot.version)
        if hold:
            await trio.sleep(chance.uniform(0.0, HELD_SECONDS))
        if process.databases.get(name) is database:  # else it was closed, and nobody may read it
            self._compare(name, snapshot.version, entries(snapshot))
            self.outlived += kept and not self._must_keep(name, snapshot.version)
        self.looked_back += 1

    def _seen_version(self, chance: Random, name: str, share: float = 0.7) -> int | None:
        """Return some version that was read; of a branch, mostly one from before it was made."""
        member = self.members[name]
        older = [version for version in member.seen if version < member.base]
        seen = sorted(older if older and chance.random() < share else member.seen)
        if self.profile.past:
            seen = [version for version in seen if self._must_keep(name, version)][:NEXT_TO_GO]
        return chance.choice(seen) if seen else None

    async def _as_of(
        self, database: Database, name: str, version: int, time: float | None = None
    ) -> Snapshot:
        """Return a version, or its time, which may find a later version of the same time."""
        try:
            snapshot = await database.snapshot_at(version if time is None else time)
        except HistoryTooOld:
            if self._must_keep(name, version):
                self.problems.append(f"version {version} of {name} is kept, and refused")
            raise
        if snapshot.version != version and (snapshot.version < version or snapshot.time != time):
            self._found_another(name, version, snapshot)
        return snapshot

    def _found_another(self, name: str, version: int, snapshot: Snapshot) -> None:
        self.problems.append(f"version {version} of {name} is sought, {snapshot} found")

    def _must_keep(self, name: str, version: int) -> bool:
        """Return whether a version must be readable: all members that have it keep everything."""
        member = self.members.get(name)
        while member is not None and member.state == "ready" and version >= member.kept_from:
            if version >= member.base:
                return self.profile.history > CHAOS_SECONDS
            assert member.parent is not None
            member = self.members.get(member.parent)
        return False

    async def _tell(self, process: Process, chance: Random, name: str) -> None:
        """Follow and list the versions after one: each appears once, with its contents."""
        first, database = self._seen_version(chance, name), await process.open(name)
        listed = [each.version for each in await database.history.versions(None, LISTED_MOST)]
        if listed != list(range(listed[0], listed[0] - len(listed), -1)) if listed else False:
            self.problems.append(f"versions of {name} are listed as {listed}")
        if first is None:
            return
        found = entries(await self._as_of(database, name, first))
        version, told = first, database.catch_up.after(first)
        async with aclosing(told):
            async for fed in told:
                version += 1
                if fed.version != version:
                    self.problems.append(f"version {version} of {name} is told as {fed.version}")
                found = changed(found, await fed.changes())
                if version in self.members[name].seen:
                    self._compare(name, version, found)
        if listed and listed[0] > listed[-1] >= first and self._must_keep(name, first):
            lost = range(first + 1, listed[-1])
            self.problems += [f"version {each} of {name} is not listed" for each in lost]

    async def _trim(self, process: Process, chance: Random, name: str) -> None:
        """Have a database forget its history, once; of a long one, the first part."""
        member, database = self.members[name], await process.open(name)
        await database.wait_durable_snapshot()
        times = [time for version, time in member.times.items() if version >= member.kept_from]
        before, member.kept_from = member.kept_from, EVER
        bite = times[:NEXT_TO_GO] if self.profile.past else []
        seconds = self.world.now() - chance.choice(bite) if bite else 0.0
        database.keep_history(seconds)
        try:
            await database.checkpoint()
        finally:
            database.keep_history(self.profile.history)
            horizon = self.world.now() - (seconds or -inf)
            kept = [version for version, time in member.times.items() if time >= horizon]
            member.kept_from = max(before, min(kept, default=database.feed.newest()))

    async def _draw(self, process: Process, name: str) -> None:
        """Draw numbers of the sequence: none that was given before, here or in the parent."""
        member, database = self.members[name], await process.open(name)
        sequence = (await database.wait_durable_snapshot()).catalog.others["numbers"]
        assert isinstance(sequence, Sequence)
        for number in await database.sequences.take(sequence, 3):
            if number in member.numbers:
                self.problems.append(f"{name} gives {number} again")
            member.numbers.add(number)

    async def _branch(self, process: Process, chance: Random, parent: str, name: str) -> None:
        database = await process.open(parent)
        if chance.random() < 0.5:
            await database.make_room_for_branch()
        newest = snapshot = await database.wait_durable_snapshot()
        numbers = set(self.members[parent].numbers)
        seen = sorted(self.members[parent].seen)
        if seen and chance.random() < 0.4:
            snapshot = await self._as_of(database, parent, chance.choice(seen))
            numbers.clear()  # some may have been drawn later
        expected, version = entries(snapshot), snapshot.version
        self._compare(parent, version, expected)
        del snapshot
        member = self.members[parent].branch(parent, version, expected)
        member.numbers = numbers
        self.members[name] = member
        handover = None
        try:
            kept = await database.pin_checkpoint(name, version)
            if kept is None:
                raise HistoryTooOld(f"version {version} is not kept any more")
            if version == newest.version and chance.random() < 0.8:
                handover = database.hand_over(newest, kept)
            await self._begin(process, database, name, kept, version)
            del newest
            if chance.random() < 0.5:  # the parent begins a checkpoint meanwhile
                database.save_soon()
            if handover is not None:
                self.handed_over += 1
                await process.open(name, handover)
                handover = None
        except QserverError:
            member.state = "deleting"
            await self._remove(process, name)
            raise
        member.state = "ready"
        self.made += 1
        await self._read(process, name)
        if chance.random() < 0.4:
            await self._take_back(process, parent)
            await self._read(process, name)

    async def _begin(
        self, process: Process, database: Database, name: str, kept: KeptCheckpoint, version: int
    ) -> None:
        """Make the log of a branch, whose parent is pinned."""
        parent = self.members[name].parent
        assert parent is not None
        async with process.logs.open(name) as log:
            await begin_branch(log, database.log, parent, kept, version)

    def _has_branches(self, name: str) -> bool:
        return any(each.parent == name for each in self.members.values())

    async def _finish(self, process: Process, name: str) -> None:
        """Finish what was begun, as `DatabaseRecords` does."""
        if self.members[name].state == "deleted" and self._has_branches(name):
            await self._empty(process, name)
        else:
            await self._remove(process, name)

    async def _empty(self, process: Process, name: str) -> None:
        """Forget everything of a database that no branch needs."""
        database = await process.open(name)
        database.keep_history(0.0)
        if (await database.wait_durable_snapshot()).catalog.tables:
            await database.transact(wipe)
        await self._take_back(process, name)
        for _ in range(2):  # a branch may let go of its pin during the first
            await database.checkpoint()
        saved = await database.history._saved()
        needless = [each.version for each in saved.kept[:-1] if not each.names]
        if needless or (saved.log_start < saved.version and not database.held_by):
            self.problems.append(f"{name} is deleted, and its history is kept: {saved.kept}")
        self.emptied += 1

    async def _take_back(self, process: Process, name: str) -> None:
        """Lend no records any more, as the sweep does where only branches need them."""
        database = await process.open(name)
        await database.checkpoint()
        saved = await database.history._saved()
        for branch in [branch for each in saved.kept for branch in each.lent]:
            if branch in self.members and self.members[branch].state in ("ready", "deleted"):
                await (await process.open(branch)).stop_borrowing()
                await database.take_back_records(branch)
                self.taken_back += 1

    async def _remove(self, process: Process, name: str) -> None:
        """Remove the file, then the pin, then the record; and a parent that waited only for it."""
        await process.close(name)
        await self._remove_file(process, name)
        parent = self.members[name].parent
        assert parent is not None
        await (await process.open(parent)).unpin_checkpoint(name)
        del self.members[name]
        if self.members[parent].state == "deleted" and not self._has_branches(parent):
            await self._remove(process, parent)

    async def _remove_file(self, process: Process, name: str) -> None:
        self._disks.pop(name, None)

    # --- at the end ---

    async def _look_at_all(self, process: Process) -> None:
        for name in [name for name, each in self.members.items() if each.state == "ready"]:
            await self._read(process, name)
            await self._check_history(await process.open(name), name)
        for name in self.members:  # a branch may hold pages of its parent for the next reader
            (await process.open(name)).history.yield_memory()
        for name in self.members:
            await (await process.open(name)).checkpoint()
            held, reached = page_numbers(self._disks_of(process)[name])
            if {number for number in held - reached if number > 0}:
                self.problems.append(f"{name} holds pages {held - reached} for nobody")
        for name in self.members:
            await process.close(name)

    async def _check_history(self, database: Database, name: str) -> None:
        for version in sorted(self.members[name].seen):
            with suppress(HistoryTooOld, OutOfMemory):
                self._compare(name, version, entries(await self._as_of(database, name, version)))

    def _disks_of(self, process: Process) -> Mapping[str, Disk]:
        return self._disks

    async def _audit(self) -> None:
        await self._within(self._look_at_all)
        self._check_pins(self._disks)

    def _check_pins(self, disks: Mapping[str, Disk]) -> None:
        pins = {
            (parent, branch)
            for parent, disk in disks.items()
            for version, outline in disk.shelf.checkpoints.outlines()
            for branch in decode_outline(version, outline).names
        }
        based = {
            (member.parent, name)
            for name, member in self.members.items()
            if disks[name].shelf.get([0])
        }
        if pins != based:
            self.problems.append(f"pins {sorted(pins)} and branches {sorted(map(str, based))}")


def simulate_family(seed: int, profile: str | None = None, **shape: Any) -> Family:
    """Run the family of a seed; its `problems` say what was wrong.

    `shape`: settings of the profile, whatever the seed says.
    """
    name = profile or ("calm", "swarm", "storm", "storm")[seed % 4]
    family = Family(seed, replace(make_profile(name, seed), **shape))
    try:
        with sized(family.profile.sizes):
            run_repeatably(
                seed,
                partial(family.main),
                virtual_seconds_max=SECONDS_MAX,
                steps_max=STEPS_MAX,
            )
    except Exhausted as error:
        family.problems.append(f"stuck: {error}")
    except Exception as error:
        family.problems.append(f"broken: {first_of(error)!r}")
    finally:
        family.world.end()
    family.problems += family.world.unexpected
    return family
