"""Tables come and go while others write: never a row in a dropped table, never one lost."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

import pytest
import trio
from trio.testing import MockClock

from qserver.durability.recovery import recover
from qserver.engine.database import Database
from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.errors import UndefinedTable
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from tests.engine import counters
from tests.engine.fakes import HeldLog, opened
from tests.values.making import define_index


def drop(transaction: Transaction) -> None:
    transaction.drop_table(counters.NAME)


def recreate(transaction: Transaction) -> None:
    drop(transaction)
    counters.create()(transaction)


def insert_slowly(number: int) -> Work:
    def work(transaction: Transaction) -> Generator[None, None, int]:
        table = transaction.table(counters.NAME)
        yield
        transaction.insert(table, (number, 0))
        return table.id

    return work


def trees_of(snapshot: Snapshot) -> set[int]:
    return {number for number, _ in snapshot.trees.items()}


async def newest(database: Database) -> Snapshot:
    return await database.wait_durable_snapshot()


async def test_an_insert_that_meets_a_drop_is_run_again_and_finds_no_table(
    autojump_clock: MockClock,
) -> None:
    async with opened(counters=5) as database, trio.open_nursery() as nursery:

        def work(transaction: Transaction) -> Generator[None, None, None]:
            table = transaction.table(counters.NAME)
            nursery.start_soon(database.transact, drop)
            while counters.newest_version(database) == transaction.snapshot.version:
                yield
            transaction.insert(table, (100, 0))

        with pytest.raises(UndefinedTable):
            await database.transact(work)
        assert trees_of(await newest(database)) == set()


async def test_an_insert_that_meets_a_new_table_of_the_same_name_writes_to_the_new_one(
    autojump_clock: MockClock,
) -> None:
    async with opened(counters=5) as database, trio.open_nursery() as nursery:
        trees: list[int] = []

        def work(transaction: Transaction) -> Generator[None, None, None]:
            table = transaction.table(counters.NAME)
            trees.append(table.id)
            if len(trees) == 1:
                nursery.start_soon(database.transact, recreate)
                while counters.newest_version(database) == transaction.snapshot.version:
                    yield
            transaction.insert(table, (100, 0))

        outcome = await database.transact(work)
        assert (outcome.retries, len(set(trees))) == (1, 2)
        assert (await counters.read(database, counters.everything)).result == [(100, 0)]
        assert trees_of(await newest(database)) == {trees[-1]}


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("seed", range(5))
async def test_a_storm_of_inserts_drops_and_creates_leaves_what_the_order_of_versions_says(
    autojump_clock: MockClock, seed: int, shards: int
) -> None:
    """Every insert tells which tree it wrote to: it is there if and only if that tree still is."""
    chance, log = Random(seed), HeldLog()
    inserted: dict[int, int] = {}

    async def insert(number: int) -> None:
        await trio.sleep(chance.uniform(0, 0.05))
        try:
            outcome = await database.transact(insert_slowly(number))
        except UndefinedTable:
            return
        inserted[number] = outcome.result

    async def change(work: Work) -> None:
        await trio.sleep(chance.uniform(0, 0.05))
        try:
            await database.transact(work)
        except UndefinedTable:
            await database.transact(counters.create())

    async with opened(log, shards=shards, counters=1) as database:
        async with trio.open_nursery() as nursery:
            for number in range(1, 101):
                nursery.start_soon(insert, number)
            for _ in range(10):
                nursery.start_soon(change, chance.choice([drop, recreate]))
        snapshot = await newest(database)
    table = snapshot.catalog.tables.get(counters.NAME)
    living = set() if table is None else {table.id}
    assert trees_of(snapshot) <= living
    expected = sorted(number for number, tree in inserted.items() if tree in living)
    found = (
        [] if table is None else [key[0] for keys, _ in snapshot.pages(table.id) for key in keys]
    )
    assert sorted(found) == expected
    assert len(inserted) > 10
    recovered = (await recover(log, shards)).snapshot
    assert recovered.catalog.tables == snapshot.catalog.tables
    assert trees_of(recovered) <= living


async def test_an_index_that_is_made_beside_inserts_has_an_entry_for_every_row(
    autojump_clock: MockClock,
) -> None:
    def make_index(transaction: Transaction) -> Generator[None, None, None]:
        table = transaction.table(counters.NAME)
        index = define_index(transaction.next_tree(), "by_value", table, ["value"])
        indexed = table.with_index(index)
        transaction.define(counters.NAME, indexed)
        for row in transaction.rows(table):
            yield
            key, primary_key = indexed.entries(index, row)
            transaction.put_entry(index.id, key, primary_key)

    async with opened(counters=20) as database:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.transact, make_index)
            for number in range(100, 150):
                nursery.start_soon(database.transact, insert_slowly(number))
        snapshot = await newest(database)
        table = snapshot.catalog.tables[counters.NAME]
        (index,) = table.indexes
        rows = {row for _, rows in snapshot.pages(table.id) for row in rows}
        entries = {
            (key, row)
            for keys, values in snapshot.pages(index.id)
            for key, row in zip(keys, values, strict=True)
        }
        assert len(rows) == 70
        assert entries == {table.entries(index, row) for row in rows}


async def test_two_tables_that_are_made_at_once_both_come_to_be(autojump_clock: MockClock) -> None:
    async with opened() as database:
        outcomes: list[Outcome] = []

        async def create(name: str) -> None:
            outcomes.append(await database.transact(counters.create(3, name)))

        async with trio.open_nursery() as nursery:
            for name in "abcdefgh":
                nursery.start_soon(create, name)
        catalog = (await newest(database)).catalog
        assert sorted(catalog.tables) == list("abcdefgh")
        assert len({table.id for table in catalog.tables.values()}) == 8
        assert sorted(outcome.version for outcome in outcomes) == list(range(1, 9))
