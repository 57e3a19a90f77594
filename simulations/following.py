"""Follows the simulated database from another process, over links that are slow, lose and repeat.

    link ──► one or two at a time; each is cut after a while, or ends with the owner's process
      │      a message is late, lost or comes twice
    look ──► after each message: the version is durable at the owner and no older than before, and
             holds what was published under it, when all pages are let go
    rest ──► the follower has what its owner has

Now and then the follower's own process ends, and the next one begins with nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from math import inf

import trio

from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.follower import DoesNotFollow, FollowedDatabase
from qserver.engine.following import Message, records_after
from qserver.errors import QserverError
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
        return FollowedDatabase(
            self._world, shards=profile.shards, policy=policy, cache=self._cache
        )

    async def run(self) -> None:
        """Run processes that follow, one after the other."""
        ACTOR.set("follower")
        while True:
            life = self._chance.choice((0.5, 3.0, inf)) if self._world.faults.on else inf
            with trio.move_on_after(life):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._followed.run)
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
        except QserverError as error:
            if not world.explains(error):
                self._problems.append(f"a follower's stream broke: {error!r}")
        finally:
            self._links.remove(link)
            over.set()

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
