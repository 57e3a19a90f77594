"""Histories for the tests of durability: transactions, each with its snapshot and its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qserver.durability.port import Log, StoredRecord
from qserver.durability.records import FORMAT, LogRecord, encode_record, encode_trees
from qserver.durability.saved_pages import SavedPages
from qserver.storage.catalog import changes_to_plain
from qserver.storage.routing import written
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import Writes
from qserver.values.schema import Column, define_table
from qserver.values.steps import at_once
from qserver.values.types import INTEGER, TEXT
from tests.values.making import define_index


def stored(
    version: int,
    time: float,
    trees_used: int,
    writes: Writes,
    dropped: tuple[int, ...] = (),
    changes: dict[str, Any] | None = None,
) -> bytes:
    """The bytes of a record."""
    trees = encode_trees(writes)
    return encode_record(
        LogRecord(FORMAT, version, time, trees_used, trees, dropped, changes or {})
    )


class History:
    """Transactions one after the other, with the snapshot and the record that each has made."""

    def __init__(
        self,
        shards: int,
        snapshot: Snapshot | None = None,
        time_of: Callable[[int], float] = lambda version: 10.0 * version,
    ) -> None:
        self.snapshot = snapshot or empty_snapshot(shards)
        self.records: list[StoredRecord] = []
        self._time_of = time_of

    def commit(self, transaction: Transaction) -> None:
        before = self.snapshot
        version, time = before.version + 1, self._time_of(before.version + 1)
        writes, dropped = transaction.writes, transaction.catalog_changes.dropped
        trees = at_once(written(before, transaction.catalog, writes, dropped))
        self.snapshot = Snapshot(version, time, transaction.catalog, trees, before.shards)
        data = stored(
            version,
            time,
            transaction.catalog.trees_used,
            writes,
            dropped,
            changes_to_plain(transaction.catalog_changes.definitions),
        )
        self.records.append((version, data))

    async def append_to(self, log: Log) -> None:
        """Hand over what was not yet."""
        if self.records:
            await log.append(self.records)
            self.records = []


def create(transaction: Transaction, name: str) -> None:
    columns = [Column("id", INTEGER), Column("word", TEXT), Column("other", TEXT)]
    table = define_table(transaction.next_tree(), name, columns, ["id"])
    for index_name, indexed, unique, descending in (
        ("by_word", ["word"], False, ()),
        ("unique_other", ["other"], True, ()),
        ("backward", ["other", "word"], False, (True, False)),
    ):
        number = transaction.next_tree()
        index = define_index(number, f"{name}_{index_name}", table, indexed, unique, descending)
        table = table.with_index(index)
    transaction.define(table.key, table)


def run_step(history: History, step: tuple[Any, ...]) -> None:
    transaction = Transaction(history.snapshot)
    name, rows, gone = step
    table = transaction.find_definition(name)
    if gone == "table" and table is not None:
        transaction.drop_table(name)
    else:
        if table is None:
            create(transaction, name)
        table = transaction.table(name)
        for number, word in rows:
            if gone == "rows":
                transaction.delete(table, (number,))
            else:
                transaction.put(table, (number, word, None if word is None else word + str(number)))
    history.commit(transaction)


def entries_of(snapshot: Snapshot) -> dict[int, list[Any]]:
    """All entries by tree, in order, whatever range they are in; empty trees left out."""
    found: dict[int, list[Any]] = {}
    for tree in sorted(number for number, _ in snapshot.trees.items()):
        for keys, values in snapshot.pages_in_order(tree):
            found.setdefault(tree, []).extend(zip(keys, values, strict=True))
    return found


def same(one: Snapshot, other: Snapshot) -> bool:
    """Do two snapshots say the same, whatever pages they are made of?"""
    return (
        (one.version, one.time) == (other.version, other.time)
        and dict(one.catalog.tables) == dict(other.catalog.tables)
        and one.catalog.trees_used == other.catalog.trees_used
        and entries_of(one) == entries_of(other)
    )


async def save(log: Log, saved: SavedPages, snapshot: Snapshot, pages_at_once: int = 3) -> int:
    """A checkpoint, as the checkpointer takes it; how many pages it wrote."""
    made = saved.begin(snapshot)
    pages = list(made.pages())
    for first in range(0, len(pages), pages_at_once):
        await log.save_pages(pages[first : first + pages_at_once])
    await log.save_checkpoint(snapshot.version, *made.stored())
    saved.confirm(made)
    await log.forget(snapshot.version, [])
    while some := saved.some_to_forget(pages_at_once):
        await log.forget(snapshot.version, some)
        saved.forgotten(some)
    return len(pages)
