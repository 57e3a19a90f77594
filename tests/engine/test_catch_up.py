"""The feed goes on across restarts: what the window lacks is made again from the log."""

from __future__ import annotations

from contextlib import aclosing

import pytest
import trio

from qserver.durability.memory import MemoryLog
from qserver.engine.catch_up import LogCatchUp
from qserver.engine.feed import FeedVersion
from qserver.errors import ReaderTooSlow
from qserver.query.sql_database import SqlDatabase
from qserver.storage.routing import written
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.values.steps import at_once
from tests.sql.databases import opened_sql

Told = tuple[int, str, object, object]


async def told(version: FeedVersion) -> list[Told]:
    return [
        (
            version.version,
            change.table if isinstance(change.table, str) else change.table.name,
            change.before,
            change.after,
        )
        for change in await version.changes()
    ]


def past_of(database: SqlDatabase, log: MemoryLog) -> LogCatchUp:
    """The past back to version 0, at which every database is empty."""

    async def snapshot_at(version: int) -> Snapshot:
        snapshot = empty_snapshot(4)
        past = LogCatchUp(log.read, _begin, lambda: version)
        async with aclosing(past.after(0)) as versions:
            async for each in versions:
                snapshot = _snapshot_behind(each)
        await trio.lowlevel.checkpoint()
        return snapshot

    return LogCatchUp(log.read, snapshot_at, database.database.feed.newest)


async def _begin(_: int) -> Snapshot:
    return empty_snapshot(4)


def _snapshot_behind(version: FeedVersion) -> Snapshot:
    made = version._making
    assert made is not None
    trees = at_once(written(made.snapshot, made.catalog, made.writes))
    return Snapshot(version.version, version.time, made.catalog, trees, 4)


async def write(database: SqlDatabase, first: int) -> None:
    for number in range(first, first + 6):
        await database.execute(f"INSERT INTO a VALUES ({number}, {number}), (-{number}, 0)")
        await database.execute(f"UPDATE a SET v = v + 1 WHERE id = {number - 2}")
        await database.execute("DELETE FROM a WHERE id < -3")


async def read(database: SqlDatabase, past: LogCatchUp, since: int, until: int) -> list[Told]:
    feed, found = database.database.feed, []
    feed.open()
    try:
        async with aclosing(feed.after(since, past)) as versions:
            while since < until:
                version = await anext(versions)
                assert version.version == since + 1
                since = version.version
                found += await told(version)
    finally:
        feed.close()
    return found


async def test_a_reader_misses_nothing_across_restarts() -> None:
    log = MemoryLog()
    expected: list[Told] = []
    async with opened_sql(log) as database:
        feed = database.database.feed
        async with trio.open_nursery() as nursery:

            async def follow() -> None:  # from the window, as versions come
                feed.open()
                async with aclosing(feed.after(0, past_of(database, log))) as versions:
                    async for version in versions:
                        expected.extend(await told(version))

            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            await database.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
            await write(database, 1)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        last = feed.newest()
    assert expected[0] == (1, "a", None, None)
    async with opened_sql(log) as database:
        past = past_of(database, log)
        assert await read(database, past, 0, last) == expected
        for since in (1, 7, last - 1):
            again = await read(database, past, since, last)
            assert again == [each for each in expected if each[0] > since]
        await write(database, 7)
        everything = await read(database, past, 0, database.database.feed.newest())
        assert everything[: len(expected)] == expected
        rows: dict[object, object] = {}
        for _, _, before, after in everything[1:]:
            if before is not None:
                assert rows.pop(before[0]) == before  # type: ignore[index]
            if after is not None:
                rows[after[0]] = after  # type: ignore[index]
        found = await database.execute("SELECT id, v FROM a")
        assert sorted(rows.values()) == sorted(found.rows)  # type: ignore[type-var]


async def test_what_is_no_longer_kept_is_an_error() -> None:
    log = MemoryLog()
    async with opened_sql(log) as database:
        await database.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
        await write(database, 1)
        await database.database.checkpoint()
        with pytest.raises(ReaderTooSlow):
            await read(database, past_of(database, log), 0, 5)


async def test_a_version_made_again_knows_when_its_tables_were_changed() -> None:
    """`if_version` and tags of answers depend on that."""
    async with opened_sql() as sql:
        kept: dict[int, Snapshot] = {}

        async def see(version: int) -> None:
            kept[version] = await sql.database.wait_durable_snapshot()

        for text in (
            "CREATE TABLE a (id INT PRIMARY KEY, v INT)",
            "CREATE TABLE b (id INT PRIMARY KEY)",
            "INSERT INTO a VALUES (1, 1)",
            "ALTER TABLE b ADD COLUMN v INT",
            "UPDATE a SET v = 2",
        ):
            await see((await sql.execute(text)).version)
        made: list[Snapshot] = []
        database = sql.database
        past = LogCatchUp(database._log.read, _begin, lambda: max(kept), keep=made.append)
        for count in range(1, len(kept) + 1):
            async with aclosing(past.after(0)) as versions:
                for _ in range(count):
                    await anext(versions)
        assert [each.version for each in made] == list(kept)
        for again in made:
            first = kept[again.version]
            tables = first.catalog.tables.values()
            assert [again.last_change(each) for each in tables] == [
                first.last_change(each) for each in tables
            ]
            assert again.catalog.last_change == first.catalog.last_change
