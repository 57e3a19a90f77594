"""Follows the simulated database from another process, over links that are slow, lose and repeat.

    link ──► one or two at a time; each is cut after a while, or ends with the owner's process
      │      a message is late, lost or comes twice
    look ──► after each message: the version is durable at the owner and no older than before, and
             holds what was published under it, when all pages are let go
    read ──► waits for the number that the owner has announced: the version is none older than any
             that was answered before
    rest ──► the follower has what its owner has

The number outlives its owner, as shared memory does. Now and then the follower's own process ends,
and the next one begins with nothing. Some have a log of their own: these begin anew, too, when they
are sent a second base.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from math import inf

import trio

from qserver.durability.memory import MemoryLog
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.follower import DoesNotFollow, FollowedDatabase
from qserver.engine.following import Message, records_after
from qserver.engine.replica import Replica
from qserver.engine.snapshot_source import NO_VERSION
from qserver.errors import DatabaseUnavailable, QserverError
from qserver.storage.snapshot import Snapshot
from simulations.disk import Disk
from simulations.inspection import entries_of, recovery_problems
from simulations.pages import FickleCache
from simulations.world import ACTOR, SimulatedWorld


class SimulatedFollower:
    def __init__(
        self,
        world: SimulatedWorld,
        disk: Disk,
        owner: Callable[[], Database | None],
        problems: list[str],
    ) -> None:
        """`owner`: the database that clients use now."""
        self._world = world
        self._disk = disk
        self._owner = owner
        self._problems = problems
        self._chance = world.following
        self._cache = FickleCache(world.profile.cache_bytes)
        self._followed = self._new()
        self._links: list[trio.CancelScope] = []
        self._number = 0
        """The version that the owner has announced last."""
        self._answered = 0
        """The highest version that a client has seen."""
        self._life = trio.CancelScope()
        self._shown = -1
        self._durable = 0
        """The highest version that was seen to be durable at an owner."""

    def _new(self) -> FollowedDatabase:
        profile = self._world.profile
        policy = CheckpointPolicy(
            profile.checkpoint_log_bytes,
            profile.checkpoint_seconds,
            profile.checkpoint_pages_at_once,
        )
        shards, cache = profile.shards, self._cache
        if self._world.reading.random() < 0.5:
            return Replica(MemoryLog(), self._world, shards=shards, policy=policy, cache=cache)
        return FollowedDatabase(self._world, shards=shards, policy=policy, cache=cache)

    # --- the number ---

    def own(self, database: Database) -> None:
        """Have a database announce its versions, while clients use it.

        Whoever is told of a new owner leaves the one before, which may live on without knowing of
        it; links that end by themselves may go on until then.
        """
        for link in self._links:
            if link.deadline == inf:
                link.cancel()

        def announce(version: int) -> None:
            if self._owner() is database:
                self._number = version

        database.snapshots.announce_by(announce)

    def answered(self, version: int) -> None:
        """Note a version that a client has seen: a read that begins now must see it, too."""
        self._answered = max(self._answered, version)
        if version > self._number:
            self._problems.append(f"version {version} was answered, and {self._number} announced")

    async def _read(self) -> None:
        """Read what the follower shows, once it has the number."""
        chance = self._world.reading
        while True:
            await trio.sleep(chance.uniform(0.0, 0.05))
            number, answered, followed = self._number, self._answered, self._followed
            with trio.move_on_after(1.0), suppress(DatabaseUnavailable):
                if followed.version is not None and followed.version < number < NO_VERSION:
                    self._world.reach("a strong read waited for its number")
                shown = (await followed.wait_durable_snapshot(version=number)).version
                if shown < answered:
                    self._problems.append(f"a follower read {shown}, and {answered} was answered")

    # --- links ---

    async def run(self) -> None:
        """Run processes that follow, one after the other."""
        ACTOR.set("follower")
        while True:
            life = self._chance.choice((0.5, 3.0, inf)) if self._world.faults.on else inf
            with trio.move_on_after(life) as self._life:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._followed.run)
                    nursery.start_soon(self._read)
                    await self._connect(nursery)
            self._followed, self._shown = self._new(), -1

    async def _connect(self, nursery: trio.Nursery) -> None:
        """Begin one link after the other; the last one may still deliver what it has."""
        while True:
            await trio.sleep(self._chance.uniform(0.0, 0.05))
            database = self._owner()
            if database is not None:
                over = trio.Event()
                nursery.start_soon(self._follow, database, over)
                with trio.move_on_after(self._seconds(1.0)):
                    await over.wait()

    def _seconds(self, most: float) -> float:
        return self._chance.uniform(0.0, most) if self._world.faults.on else inf

    async def _follow(self, database: Database, over: trio.Event) -> None:
        world, followed, seconds = self._world, self._followed, self._seconds(1.5)
        link = trio.CancelScope(deadline=trio.current_time() + seconds)
        self._links.append(link)
        try:
            with link:
                await followed.follow(self._messages(database, followed, seconds < inf))
        except DoesNotFollow as error:
            world.reach("a follower refused what does not continue its version")
            world.record("fail", str(error))
            if isinstance(followed, Replica) and followed is self._followed:
                self._life.cancel()
        except QserverError as error:
            if not world.explains(error):
                self._problems.append(f"a follower's stream broke: {error!r}")
        finally:
            self._links.remove(link)
            over.set()

    @property
    def followed(self) -> FollowedDatabase:
        """What the process that follows now has; it may end at any time."""
        return self._followed

    @property
    def links(self) -> int:
        """How many there are: an earlier one may outlast the next."""
        return len(self._links)

    def cut(self) -> None:
        """Cut all links: the owner's process is gone, and with it the other end."""
        for link in self._links:
            link.cancel()

    async def _messages(
        self, database: Database, followed: FollowedDatabase, is_bad: bool
    ) -> AsyncGenerator[Message, None]:
        """Yield what the owner sends. A bad link is cut soon, so nobody relies on what it loses."""
        chance, version = self._chance, followed.version
        async with aclosing(records_after(database, version)) as sent:
            async for message in sent:
                version = self._look_at_sent(database, message, version)
                times = 1
                if is_bad:
                    await trio.sleep(chance.uniform(0.0, chance.choice((0.001, 0.01, 0.3))))
                    times = chance.choices((0, 1, 2), (4, 92, 4))[0]
                for _ in range(times):
                    yield message
                    self._look(followed)

    def _look_at_sent(
        self, database: Database, message: Message, version: int | None
    ) -> int | None:
        """Check that what is sent after a version is the next, and durable; return what it is."""
        world, durable = self._world, database.snapshots.take()
        if message[0] == "pages":
            return version
        if message[0] == "base":
            last = message[1]
            world.reach("a follower began with a base")
            if version is not None:
                world.reach("the log no longer had what a follower lacked")
        else:
            versions = [each for each, _ in message[1]]
            last = versions[-1]
            if version is None or versions != list(range(version + 1, last + 1)):
                self._problems.append(f"versions {versions} were sent after {version}")
        # Without a generation, what it has made durable is on the disk.
        now = self._on_disk() if durable is None else durable.version
        self._durable = max(self._durable, now)
        if last > self._durable:
            self._problems.append(f"version {last} was sent, and is not durable")
        return last

    def _on_disk(self) -> int:
        checkpoint = self._disk.shelf.checkpoint
        return max([*self._disk.versions(), 0 if checkpoint is None else checkpoint[0]])

    def _look(self, followed: FollowedDatabase) -> None:
        """Check what the follower shows now."""
        snapshot = followed.snapshots.take()
        if snapshot is None or followed is not self._followed:
            return
        version, shown = snapshot.version, self._shown
        if version < shown:
            self._problems.append(f"a follower went back from version {shown} to {version}")
        if version == shown:
            return
        self._shown = version
        self._world.record("publish", f"the follower shows version {version}")
        if version > self._durable:
            self._problems.append(f"a follower shows version {version}, which is not durable")
        self._compare(snapshot)

    def _compare(self, snapshot: Snapshot) -> None:
        self._cache.evict_all()
        published = self._world.published.get(snapshot.version)
        if published is not None:
            found = recovery_problems(snapshot, published)
            self._problems += [f"followed version {snapshot.version}: {each}" for each in found]

    def problems_at_rest(self, database: Database) -> list[str]:
        """Return where the follower differs from its owner, which has nothing to do."""
        theirs, ours = database.snapshots.take(), self._followed.snapshots.take()
        if theirs is None or ours is None or theirs.version != ours.version:
            return [f"the follower has {ours!r}, its owner {theirs!r}"]
        with self._world.without_faults():
            return [
                f"tree {number} differs at the follower"
                for number, _ in theirs.trees.items()
                if entries_of(theirs, number) != entries_of(ours, number)
            ]
