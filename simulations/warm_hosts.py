"""A process of a host follows databases of the family while another host has it.

    follow ─► files and a `WarmReplica`, up to the stream ─► the process opens the family
                                                             └─► it begins with what was in memory

What a follower shows is in the stream, and is what every other host shows of that version. Hints of
owners are late, and some are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import trio

from qserver.durability.recovery import Recovered
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.warm_replica import WarmReplica
from qserver.engine.world import World
from qserver.errors import DatabaseMoved, DataCorrupted, LogFailed, first_of
from qserver.replication.replicated_logs import ReplicatedLogs
from qserver.storage.snapshot import Snapshot
from simulations.pages import FickleCache

BEGIN_SECONDS: Final = (0.0, 1.0)
LOOK_SECONDS: Final = (0.01, 0.5)
LATE_SECONDS: Final = (0.0, 0.2)
HINT_LOST: Final = 0.2
STAYS: Final = 0.98
"""How likely a follower goes on after a look."""


class Followers:
    """Start `run` in the nursery of the process."""

    def __init__(
        self,
        logs: ReplicatedLogs,
        world: World,
        chance: Random,
        names: Callable[[], list[str]],
        look: Callable[[str, Snapshot], None],
    ) -> None:
        """`look` is called with what a follower shows."""
        self._logs = logs
        self._world = world
        self._chance = chance
        self._names = names
        self._look = look
        self.policy_of: Callable[[str], CheckpointPolicy]
        self.cache: FickleCache
        self._running: set[str] = set()
        self._waits: dict[str, bool] = {}
        """Whether a follower waits for its file."""
        self._handed: dict[str, Recovered] = {}
        self.reach: Callable[[str], None]
        logs.replaced = lambda root: self._handed.clear()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            while True:
                await trio.sleep(self._chance.uniform(*BEGIN_SECONDS))
                names = [each for each in self._names() if each not in self._running]
                if names and not self._logs.families():
                    nursery.start_soon(self._follow, self._chance.choice(names))

    async def _follow(self, name: str) -> None:
        self._running.add(name)
        try:
            await self._follow_until_asked(name)
        except Exception as error:
            cause = first_of(error)
            if isinstance(cause, LogFailed):
                self.reach("a follower had to begin anew")
            elif isinstance(cause, DataCorrupted) and "missing" in str(cause):
                self.reach("a follower lacked the file of a branch")
            elif not isinstance(cause, DatabaseMoved):  # this process has the family
                raise
        finally:
            self._running.discard(name)

    async def _follow_until_asked(self, name: str) -> None:
        ending, waiting = trio.Event(), trio.CancelScope()

        def end() -> None:
            ending.set()
            if self._waits[name]:
                waiting.cancel()

        self._waits[name] = True
        with waiting:
            await self._follow_until(name, ending, end)

    async def _follow_until(self, name: str, ending: trio.Event, end: Callable[[], None]) -> None:
        async with self._logs.follow(name, end) as (family, log):
            self._waits[name] = False
            self._handed.pop(name, None)
            replica = WarmReplica(
                log,
                self._world,
                name=name,
                shards=2,
                policy=self.policy_of(name),
                cache=self.cache,
            )
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(replica.run)
                    await family.begin(name, replica.begin)
                    while not ending.is_set() and self._chance.random() < STAYS:
                        snapshot = replica.snapshots.take()
                        if snapshot is not None:
                            self._look(name, snapshot)
                        del snapshot
                        with trio.move_on_after(self._chance.uniform(*LOOK_SECONDS)):
                            await ending.wait()
                    family.ended(name)
                    if family.root in self._logs.families():
                        replica.hand_over()
                    nursery.cancel_scope.cancel()
            finally:
                family.ended(name)
            known = replica.handed_over()
            if known is not None:
                self._handed[name] = known

    def take(self, name: str) -> Recovered | None:
        """Return what a database begins with, if it was followed until now."""
        known = self._handed.pop(name, None)
        if known is not None:
            self.reach("a process took over with what it had in memory")
        return known


async def hint(
    others: Callable[[], list[ReplicatedLogs]], chance: Random, root: str, sequence: int
) -> None:
    """Tell the other processes of a message, late and perhaps in vain."""
    await trio.sleep(chance.uniform(*LATE_SECONDS))
    for each in others():
        if chance.random() >= HINT_LOST:
            each.followed.look(root, sequence)
