"""A program that commits, checkpoints, makes and removes databases, and says what is durable.

    python -m tests.powerloss.worker FOLDER PHASE [--bug NAME]

It runs under the preloaded library. Each line on standard output is a promise:

    made one          the database is there            removing one    from here on it may be gone
    row one 17        transaction 17 is committed      removed one     it is gone, and stays so
    copied            a backup is whole                restored        so is what was made of it
    family …          branches, see `family`

A transaction writes a row into each of two tables, and counts itself in a third. The phases are
lives of one folder. The first ends by dying, the others are stopped as a server is. A life begins
by promising what it finds: whoever reads relies on it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import trio

from qserver.durability.data_folder import DataFolder
from qserver.durability.folder import lock_folder
from qserver.durability.port import Log
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.engine.world import OrdinaryWorld
from qserver.errors import LogFailed, OutcomeUnknown
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, define_table
from qserver.values.types import INTEGER, TEXT
from tests.engine.counters import read
from tests.powerloss.bugs import BUGS
from tests.powerloss.journal import CONTROL, Control

DIED: Final = 9
FILLING: Final = 150
"""Rows that make a tree of several pages."""


def promise(text: str) -> None:
    os.write(1, text.encode() + b"\n")


# --- transactions --------------------------------------------------------------------------------


def create(transaction: Transaction) -> None:
    for name in ("left", "right", "total"):
        columns = [Column("id", INTEGER), Column("text", TEXT)]
        transaction.define(name, define_table(transaction.next_tree(), name, columns, ["id"]))
    transaction.put(transaction.table("total"), (0, "0"))
    for number in range(-FILLING, 0):
        transaction.put(transaction.table("left"), (number, "filling"))


def write(number: int, transaction: Transaction) -> None:
    transaction.put(transaction.table("left"), (number, "x" * (number * 37 % 900)))
    transaction.put(transaction.table("right"), (number, None))
    total = transaction.get(transaction.table("total"), (0,))
    assert total is not None
    transaction.put(transaction.table("total"), (0, str(int(str(total[1])) + 1)))


def numbers(transaction: Transaction) -> list[int]:
    """The transactions that are there."""
    if transaction.find_definition("right") is None:
        return []
    return [row[0] for row in transaction.rows(transaction.table("right"))]


def has_tables(transaction: Transaction) -> bool:
    return transaction.find_definition("total") is not None


class Life:
    """A process at work on a folder."""

    def __init__(self, folder: Path) -> None:
        self.data = DataFolder(folder)
        self._name = ""
        self.database: Database

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[None]:
        async with self._open_log(name) as log, trio.open_nursery() as nursery:
            world = OrdinaryWorld(time.time, Random(0), _report)
            policy = CheckpointPolicy(log_bytes=1 << 40, seconds=1e9, pages_at_once=2)
            self._name = name
            self.database = Database(log, world, policy=policy, shards=2)
            await nursery.start(self.database.run)
            for number in (await read(self.database, numbers)).result:
                promise(f"row {name} {number}")  # who was shown it relies on it
            yield
            await self.database.close()

    @asynccontextmanager
    async def _open_log(self, name: str) -> AsyncIterator[Log]:
        """Opened again if it fails once, as the next request would do."""
        try:
            opening = self.data.open(name)
            log = await opening.__aenter__()
        except LogFailed:
            opening = self.data.open(name)
            log = await opening.__aenter__()
        try:
            yield log
        finally:
            await opening.__aexit__(None, None, None)

    async def make(self, name: str) -> None:
        async with self.open(name):
            try:
                await self.database.transact(create)
            except OutcomeUnknown:
                if not (await read(self.database, has_tables)).result:
                    await self.database.transact(create)
            promise(f"made {name}")

    async def commit(self, *numbers: int) -> None:
        """All at once: those that come while another syncs become one group."""
        async with trio.open_nursery() as nursery:
            for number in numbers:
                nursery.start_soon(self._commit, number)

    async def _commit(self, number: int) -> None:
        try:
            await self.database.transact(partial(write, number))
        except OutcomeUnknown:
            return  # a sync was made to fail: there is nothing to promise
        promise(f"row {self._name} {number}")

    async def checkpoint(self) -> None:
        try:
            await self.database.checkpoint()
        except LogFailed:
            pass  # the log is whole without it

    async def remove(self, name: str) -> None:
        promise(f"removing {name}")
        try:
            await self.data.remove(name)
        except LogFailed:
            await self.data.remove(name)  # as the next sweep would do
        promise(f"removed {name}")


def _report(text: str, error: Exception) -> None:
    print(text, repr(error), file=sys.stderr)


# --- phases --------------------------------------------------------------------------------------


async def first(life: Life) -> None:
    """Everything that a database does, and a death with a transaction written and not synced."""
    await life.make("one")
    async with life.open("one"):
        for number in (1, 2, 3):
            await life.commit(number)
        await life.commit(*range(10, 16))
        await life.checkpoint()
        await life.commit(20)
        await life.commit(*range(21, 25))
        await life.checkpoint()
        await life.commit(30)
        Control(Path(os.environ[CONTROL])).set("-wal", kill_sync=1)
        await life.commit(31)


async def second(life: Life) -> None:
    """A start after a death, a second database, and the end of the first."""
    async with life.open("one"):
        await life.commit(40, 41)
    await life.make("two")
    async with life.open("two"):
        await life.commit(1)
    await life.remove("one")


async def third(life: Life) -> None:
    """A start after a clean stop."""
    async with life.open("two"):
        await life.commit(2)
        await life.commit(3)


async def again(life: Life) -> None:
    """A start on whatever a power failure has left."""
    for name in life.data.names():
        async with life.open(name):
            if (await read(life.database, has_tables)).result:
                await life.commit(*range(900, 902))
                await life.checkpoint()
                await life.commit(902)


async def long(life: Life, seed: int = 0) -> None:
    """Much of everything, as a seed has it, ended by a death."""
    chance = Random(seed)
    await life.make("one")
    async with life.open("one"):
        number = 0
        for _ in range(60):
            count = chance.choice((1, 1, 2, 6))
            await life.commit(*range(number, number + count))
            number += count
            if chance.random() < 0.15:
                await life.checkpoint()
        os._exit(DIED)


async def backup(life: Life) -> None:
    """A folder that looks like a server's, so that the commands take it."""
    for name in ("control", "db"):
        await life.make(name)
        async with life.open(name):
            await life.commit(1, 2)


PHASES: Final[dict[str, Callable[[Life], Awaitable[None]]]] = {
    "first": first,
    "second": second,
    "third": third,
    "again": again,
    "backup": backup,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.powerloss.worker")
    parser.add_argument("folder", type=Path)
    parser.add_argument("phase")
    parser.add_argument("--bug", choices=list(BUGS))
    options = parser.parse_args()
    if options.bug is not None:
        BUGS[options.bug]()
    folder = options.folder / "data"
    if options.phase == "copy":
        return _copy(options.folder)
    with lock_folder(folder, "for a test"):
        if options.phase == "family":
            _live_as_family(folder)
        elif options.phase.startswith("long-"):
            trio.run(long, Life(folder), int(options.phase.removeprefix("long-")))
        else:
            trio.run(PHASES[options.phase], Life(folder))
    return 0


def _live_as_family(folder: Path) -> None:
    """Branches, by the control plane; it takes as long to import as all the rest."""
    from tests.powerloss.family import live

    trio.run(live, folder, promise)


def _copy(folder: Path) -> int:
    """The real commands, on the folder of the phase `backup`."""
    from qserver.cli import main as command_line  # it takes as long to import as all the rest

    paths = {name: str(folder / name) for name in ("data", "place/copy", "back/data")}
    if command_line(["backup", "--data", paths["data"], paths["place/copy"]]):
        return 1
    promise("copied")
    if command_line(["restore", "--data", paths["back/data"], paths["place/copy"]]):
        return 1
    promise("restored")
    return 0


if __name__ == "__main__":
    sys.exit(main())
