"""Deletes the positions of dropped sequences, once no restore can bring the sequences back.

A dropped sequence leaves its position (see `sequence_states`) while history has a version with it.
A pass records which rows in the tree of sequences belong to no existing sequence, and the version
that it read. When history begins at that version or later, and a row is unchanged, no readable
version has the sequence, and the row is deleted. The records of passes are in memory only.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from qserver.engine.database import Database
from qserver.engine.world import World
from qserver.errors import Applied, QserverError
from qserver.storage.page import Key, Value
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import SEQUENCES_TREE
from qserver.values.keys import TOP
from qserver.values.relations import Sequence

PASSES_SECONDS: Final = 600.0
ROWS_AT_ONCE: Final = 256


class PositionSweeper:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: dict[int, tuple[int, Value]] = {}
        """Rows that no sequence has: the version at which that was first seen, and the row."""

    async def sweep(self) -> None:
        """Record new leftover rows, and delete those that no restore can need."""
        snapshot = await self._database.wait_durable_snapshot()
        left = await self._left(snapshot)
        self._seen = {
            number: self._seen[number]
            if number in self._seen and self._seen[number][1] == row
            else (snapshot.version, row)
            for number, row in left.items()
        }
        oldest = await self._database.oldest_version()
        dead = {number: row for number, (version, row) in self._seen.items() if version <= oldest}
        some = list(dead.items())
        for at in range(0, len(some), ROWS_AT_ONCE):
            step = dict(some[at : at + ROWS_AT_ONCE])
            await self._database.transact(partial(forget_positions, rows=step))

    async def _left(self, snapshot: Snapshot) -> dict[int, Value]:
        """Return the rows of no sequence; rows of the engine's own have keys up to 0."""
        others = snapshot.catalog.others.values()
        states = {each.state for each in others if isinstance(each, Sequence)}
        found: dict[int, Value] = {}
        after: Key | None = (0, TOP)
        while after is not None:
            keys, rows = snapshot.first_entries(SEQUENCES_TREE, after, None, False, ROWS_AT_ONCE)
            for key, row in zip(keys, rows, strict=True):
                if key[0] not in states:
                    found[key[0]] = row
            after = (*keys[-1], TOP) if len(keys) == ROWS_AT_ONCE else None
            await trio.lowlevel.checkpoint()
        return found


def forget_positions(transaction: Transaction, rows: dict[int, Value]) -> None:
    """Delete rows that are unchanged; a sequence that came back may have left another."""
    for number, row in rows.items():
        if transaction.get_entry(SEQUENCES_TREE, (number,)) == row:
            transaction.put_entry(SEQUENCES_TREE, (number,), None)


async def sweep_positions(
    database: Database, world: World, seconds: float = PASSES_SECONDS
) -> None:
    """Sweep at intervals until the task is cancelled."""
    sweeper = PositionSweeper(database)
    while True:
        await trio.sleep(seconds)
        try:
            await sweeper.sweep()
        except QserverError as error:
            if error.retryable or error.applied is Applied.UNKNOWN:
                continue  # the load is high, or the database restarts
            world.report(f"positions in database {database.name} were not forgotten", error)
