"""Snapshots that are held across checkpoints and pins keep their pages, and planted bugs are found.

A random program on one database: commits whose sync is held back, so that snapshots run ahead of
what is durable; checkpoints, pins of branches that come and go; snapshots that are taken, held, and
read after all pages were let go. The runs of `simulations/holding.py` bring checkpoints and crashes
together; pins, and a checkpoint that begins while newer versions are not durable, are too rare
there.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.durability.leases import Leases
from qserver.durability.saved_pages import Drop
from qserver.engine.checkpointer import Checkpointer, CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.versions import Versions
from qserver.engine.world import OrdinaryWorld
from qserver.errors import DataCorrupted
from qserver.storage.snapshot import Snapshot
from simulations.determinism import run_repeatably
from simulations.mutants.mutant import Mutant, edited, planted
from simulations.pages import FickleCache
from tests.engine import counters, fakes
from tests.engine.fakes import HeldLog

ROWS = 400
STEPS = 60
SEEDS = 12
SEEDS_UNTIL_CAUGHT = 300
STEPS_MAX = 1_000_000
WRITTEN = (0, 150, 300)
"""So few rows, in pages of their own, that a page is soon changed again."""
ACTIONS = (
    *("write",) * 6,
    *("checkpoint",) * 5,
    *("take",) * 4,
    "hold",
    "hold",
    "release",
    "run ahead",
    "run ahead",
    "pin",
    "pin",
    "unpin",
    *("read",) * 2,
)
AHEAD = ("hold", "write", "checkpoint", "write", "take", "hold", "take", "pin")
"""A checkpoint begins as soon as a version is durable, and the next one is not."""


class Program:
    def __init__(self, seed: int) -> None:
        self.chance = Random(f"held {seed}")
        self.log = HeldLog()
        self.cache = FickleCache(1 << 30)
        self.held: list[tuple[Snapshot, list[tuple[int, int]]]] = []
        self.pins: list[str] = []
        self.ahead = self.judged = 0
        self.problems: list[str] = []

    async def run(self) -> None:
        world = OrdinaryWorld(lambda: 1000.0, Random(0), lambda text, error: None)
        history = self.chance.choice((0.0, 0.0, 1e9))
        policy = CheckpointPolicy(log_bytes=1 << 60, seconds=1e9, history=history)
        async with fakes.opened(
            self.log, world, 2, ROWS, policy=policy, cache=self.cache
        ) as database:
            async with trio.open_nursery() as nursery:
                for step in range(STEPS):
                    action = self.chance.choice(ACTIONS)
                    for each in AHEAD if action == "run ahead" else (action,):
                        await self._step(database, nursery, each, step)
                        await wait_all_tasks_blocked()
                self.log.release()
                await wait_all_tasks_blocked()
                self._read(share=0.0)
                self.held.clear()

    async def _step(
        self, database: Database, nursery: trio.Nursery, action: str, step: int
    ) -> None:
        log, chance = self.log, self.chance
        if action == "write":
            number = chance.choice(WRITTEN)
            nursery.start_soon(partial(database.transact, counters.increment(number)))
        elif action == "checkpoint":
            nursery.start_soon(database.checkpoint)
        elif action == "hold":
            log.release()  # what is under way now ends, and what comes next is held
            log.hold()
        elif action == "release":
            log.release()
        elif action == "take":
            self._take(database)
        elif action == "pin":
            durable = database.snapshots.take()
            if durable is not None:
                self.pins.append(f"branch {step}")
                await database.pin_checkpoint(self.pins[-1], durable.version)
        elif action == "unpin" and self.pins:
            await database.unpin_checkpoint(self.pins.pop(0))
        elif action == "read":
            self._read(share=0.5)

    def _take(self, database: Database) -> None:
        newest, durable = database.snapshots.take(newest=True), database.snapshots.take()
        taken = newest if self.chance.random() < 0.6 else durable
        if taken is not None and durable is not None:
            self.ahead += taken.version > durable.version
            self.held.append((taken, rows_of(taken)))

    def _read(self, share: float) -> None:
        """Read all that is held, without anything in memory; keep holding a share of it."""
        self.cache.evict_all()
        for snapshot, rows in self.held:
            self.judged += 1
            try:
                if rows_of(snapshot) != rows:
                    self.problems.append(f"{snapshot} has other rows")
            except DataCorrupted as error:
                self.problems.append(f"{snapshot}: {error}")
        self.held = [each for each in self.held if self.chance.random() < share]


def rows_of(snapshot: Snapshot) -> list[tuple[int, int]]:
    table = snapshot.catalog.tables[counters.NAME]
    return [(row[0], row[1]) for _, rows in snapshot.pages(table.id) for row in rows]


def run_program(seed: int) -> Program:
    program = Program(seed)
    run_repeatably(seed, program.run, virtual_seconds_max=1e6, steps_max=STEPS_MAX)
    return program


def test_a_snapshot_that_is_held_reads_as_it_was_taken() -> None:
    programs = [run_program(seed) for seed in range(SEEDS)]
    assert [each.problems for each in programs if each.problems] == []
    assert sum(each.ahead for each in programs) > SEEDS / 2, "some were not durable yet"
    assert sum(each.judged for each in programs) > 4 * SEEDS


BUGS = (
    Mutant(
        "end_the_lease_with_what_is_durable",
        "who holds a snapshot that is not durable yet keeps the pages of the durable one",
        (),
        (edited(Versions.renew, ".last = self.newest.version", ".last = self.durable.version"),),
    ),
    Mutant(
        "end_the_lease_one_version_early",
        "who holds the last version of a lease keeps the pages of the one before",
        (),
        (edited(Versions.renew, "= self.newest.version", "= self.newest.version - 1"),),
    ),
    Mutant(
        "begin_the_lease_with_the_newest",
        "who takes the durable snapshot under a new lease keeps the pages of later ones",
        (),
        (edited(Checkpointer.run, "new_lease(first)", "new_lease(self.versions.newest.version)"),),
    ),
    Mutant(
        "take_a_dropped_checkpoint_for_younger",
        "pages of a checkpoint behind a pinned one count as younger than they are",
        (),
        (edited(Drop.__init__, "before.version if before", "self.kept.version if before"),),
    ),
    Mutant(
        "count_living_leases_alone",
        "a lease that has been renewed holds nothing, though snapshots have it",
        (),
        (edited(Leases.are_between, "lease.last > after", "False"),),
    ),
)


CAUGHT_LAST = {
    "end_the_lease_with_what_is_durable": 142,
    "end_the_lease_one_version_early": 28,
    "begin_the_lease_with_the_newest": 60,
}
"""The programs that caught rare ones the last time, to begin with."""


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Mutant) -> None:
    first = CAUGHT_LAST.get(bug.name, 0)
    with planted(bug):
        seeds = (*range(first, SEEDS_UNTIL_CAUGHT), *range(first))
        caught = any(run_program(seed).problems for seed in seeds)
    assert caught, bug.explanation
