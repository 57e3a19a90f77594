"""Live queries: the changes, applied to a multiset, give the result at each version."""

from __future__ import annotations

from random import Random

import pytest
import trio

from qserver.errors import (
    FeatureNotSupported,
    InvalidRequest,
    OutOfMemory,
    ProgramLimitExceeded,
    UndefinedTable,
)
from qserver.query import kept_result, live_query
from qserver.query.memory_pool import MemoryPool
from qserver.query.sql_database import SqlDatabase, Statement
from qserver.storage import footprint
from tests.query.live_queries import Follower, follow, lines
from tests.sql.databases import opened_sql

LINEAR = (
    "SELECT * FROM t",
    "SELECT id, v FROM t WHERE v > 5",
    "SELECT v FROM t WHERE id = 3",
    "SELECT v FROM t WHERE id IN (1, 2, 30, 41)",
    "SELECT id FROM t WHERE id > 10 AND id < 30 AND v % 2 = 0",
    "SELECT id, g, v FROM t WHERE g = 'a'",
    "SELECT id FROM t WHERE g = 'a' AND v > 3",
    "SELECT v FROM t WHERE g IN ('a', 'c') ORDER BY v",
    "SELECT id FROM t WHERE u = 12",
    "SELECT v / 2 AS half, upper(g) FROM t WHERE g <> 'b' ORDER BY id",
    "SELECT 1 FROM t WHERE v IS NULL",
    "SELECT * FROM nokey WHERE a < 5",
)
OTHERS = (
    "SELECT count(*), sum(v) FROM t",
    "SELECT g, count(*) FROM t GROUP BY g",
    "SELECT id FROM t ORDER BY v DESC, id LIMIT 3",
    "SELECT DISTINCT v FROM t",
    "SELECT t.id, o.w FROM t JOIN o ON o.t = t.id WHERE t.g = 'a'",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.t = t.id)",
    "SELECT id FROM t WHERE v = (SELECT max(v) FROM t)",
    "SELECT v FROM t UNION ALL SELECT w FROM o",
    "WITH x AS (SELECT id, v FROM t WHERE v > 4) SELECT a.id FROM x a, x b WHERE a.v = b.v",
    "SELECT id, row_number() OVER (ORDER BY v, id) FROM t",
    "SELECT 1",
)


async def filled(database: SqlDatabase) -> None:
    for sql in (
        "CREATE TABLE t (id INT PRIMARY KEY, g TEXT, v INT, u INT UNIQUE)",
        "CREATE INDEX ON t (g)",
        "CREATE TABLE o (n SERIAL PRIMARY KEY, t INT, w INT)",
        "CREATE TABLE nokey (a INT, b NUMERIC)",
        "INSERT INTO t SELECT n, chr(97 + n % 4), n % 11, n * 3 FROM generate_series(1, 40) n",
        "INSERT INTO o (t, w) SELECT n % 7, n FROM generate_series(1, 12) n",
        "INSERT INTO nokey VALUES (1, 1.0), (1, 1.0), (1, 1.00), (7, 2)",
    ):
        await database.execute(sql)


def random_change(chance: Random) -> str:
    key, other = chance.randrange(50), chance.randrange(50)
    return chance.choice(
        (
            f"INSERT INTO t VALUES ({key}, '{chance.choice('abcd')}', {other % 12}, NULL)"
            " ON CONFLICT DO NOTHING",
            f"UPDATE t SET v = {other % 12} WHERE id = {key}",
            f"UPDATE t SET v = NULL WHERE id = {key}",
            f"UPDATE t SET g = '{chance.choice('abcd')}' WHERE id = {key}",
            f"UPDATE t SET id = {other} WHERE id = {key} AND {other} NOT IN (SELECT id FROM t)",
            f"UPDATE t SET u = {3 * other} WHERE id = {key}"
            f" AND {3 * other} NOT IN (SELECT u FROM t WHERE u IS NOT NULL)",
            "UPDATE t SET v = v + 1",
            f"DELETE FROM t WHERE id = {key}",
            f"INSERT INTO o (t, w) VALUES ({key}, {other})",
            f"DELETE FROM o WHERE t = {key % 8}",
            f"INSERT INTO nokey VALUES ({key % 9}, 1.0{'0' * (other % 3)})",
            f"DELETE FROM nokey WHERE a = {key % 9}",
            "UPDATE nokey SET b = b + 0.00",
            "DELETE FROM t WHERE v > 9",
            "INSERT INTO t SELECT n, 'a', n, NULL FROM generate_series(60, 75) n"
            " ON CONFLICT DO NOTHING",
            "DELETE FROM t WHERE id >= 60",
        )
    )


@pytest.mark.parametrize("seed", range(2))
async def test_the_changes_give_the_result_at_each_version(seed: int) -> None:
    chance = Random(seed)
    async with opened_sql() as database:
        await filled(database)
        followers = [await follow(database, sql) for sql in LINEAR + OTHERS]
        for _ in range(20):
            for _ in range(chance.choice((1, 1, 3))):
                await database.execute(random_change(chance))
            for follower in followers:
                if chance.random() < 0.8:
                    await follower.catch_up()
                    await follower.check()
        for follower in followers:
            await follower.catch_up()
            await follower.check()
            await follower.live.close()
        assert sum(follower.changes > 0 for follower in followers) > 15


async def test_small_bounds_change_only_how_much_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(footprint, "LIVE_KEYS_MAX", 3)
    monkeypatch.setattr(footprint, "LIVE_RANGES_MAX", 1)
    monkeypatch.setattr(live_query, "KEYS_CHANGED_MAX", 2)
    monkeypatch.setattr(kept_result, "LINES_AT_ONCE", 2)
    await test_the_changes_give_the_result_at_each_version(5)


async def stale(follower: Follower, database: SqlDatabase, sql: str) -> bool:
    await database.execute(sql)
    is_stale = follower.live.is_stale
    await follower.catch_up()
    await follower.check()
    return is_stale


async def test_only_a_commit_that_can_matter_wakes_it() -> None:
    async with opened_sql() as database:
        await filled(database)
        by_key = await follow(database, "SELECT v FROM t WHERE id = 3")
        assert not await stale(by_key, database, "UPDATE t SET v = 5 WHERE id = 4")
        assert not await stale(by_key, database, "INSERT INTO o (t, w) VALUES (1, 1)")
        assert not await stale(by_key, database, "UPDATE t SET v = v WHERE id = 3")
        assert await stale(by_key, database, "UPDATE t SET v = 99 WHERE id = 3")
        by_predicate = await follow(database, "SELECT id FROM t WHERE v = 7")
        assert not await stale(by_predicate, database, "UPDATE t SET v = 6 WHERE v = 5")
        assert await stale(by_predicate, database, "UPDATE t SET v = 7 WHERE id = 1")
        by_index = await follow(database, "SELECT id, v FROM t WHERE g = 'a'")
        assert not await stale(by_index, database, "UPDATE t SET v = 1 WHERE g = 'b'")
        assert await stale(by_index, database, "UPDATE t SET g = 'a' WHERE id = 1")
        assert await stale(by_index, database, "UPDATE t SET v = 77 WHERE id = 1")
        assert await stale(by_index, database, "UPDATE t SET g = 'b' WHERE id = 1")
        assert not await stale(by_index, database, "UPDATE t SET v = 78 WHERE id = 1")
        absent = await follow(database, "SELECT v FROM t WHERE id = 1000")
        assert await stale(absent, database, "INSERT INTO t VALUES (1000, 'z', 1, NULL)")


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT now()", "now()"),
        ("SELECT id FROM t WHERE random() < 2", "random()"),
        ("SELECT current_date, id FROM t", "current_date()"),
        ("SELECT id FROM t WHERE 'now'::timestamptz > '2020-01-01'", "the current time"),
        ("SELECT id FROM t WHERE date 'today' > '2020-01-01'", "the current time"),
        ("SELECT nextval('o_n_seq')", "nextval()"),
        ("SELECT gen_random_uuid() FROM t", "gen_random_uuid()"),
        ("SELECT table_name FROM information_schema.tables", "it shows what is defined"),
        ("SELECT tablename FROM pg_tables", "it shows what is defined"),
        ("SELECT 't'::regclass, id FROM t", "regclass()"),
        ("SELECT word FROM pg_get_keywords()", "pg_get_keywords()"),
    ],
)
async def test_what_depends_on_more_than_tables_is_refused(sql: str, found: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        with pytest.raises(FeatureNotSupported) as error:
            await follow(database, sql)
        assert found in error.value.message
        with pytest.raises(FeatureNotSupported):
            await database.execute(f"EXPLAIN (LIVE) {sql}")
        assert database.database.statistics().watches.watches == 0


async def test_explain_tells_how_it_is_kept_live() -> None:
    async with opened_sql() as database:
        await filled(database)
        for sql in LINEAR + OTHERS:
            result = await database.execute(f"EXPLAIN (LIVE) {sql}")
            expected = "looks at changed rows only" if sql in LINEAR else "runs again"
            assert expected in result.rows[-1][0], sql


@pytest.mark.parametrize("sql", ["DELETE FROM t", "CREATE TABLE x (a INT)", "SHOW timezone"])
async def test_only_a_query_can_be_live(sql: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        with pytest.raises(InvalidRequest):
            await follow(database, sql)
        assert (await database.execute("SELECT count(*) FROM t")).rows == [(40,)]


async def test_a_dropped_table_ends_it_with_the_error_of_the_query() -> None:
    async with opened_sql() as database:
        await filled(database)
        for sql in ("SELECT * FROM o", "SELECT count(*) FROM o"):
            follower = await follow(database, sql)
            other = await follow(database, "SELECT * FROM t")
            await database.execute("DROP TABLE o")
            with pytest.raises(UndefinedTable):
                await follower.catch_up()
            await other.catch_up()
            await other.check()
            await database.execute("CREATE TABLE o (n SERIAL PRIMARY KEY, t INT, w INT)")


async def test_a_changed_table_ends_it_and_an_index_does_not() -> None:
    async with opened_sql() as database:
        await filled(database)
        followers = [
            await follow(database, "SELECT id, v FROM t WHERE v = 3"),
            await follow(database, "SELECT count(*) FROM t WHERE v = 3"),
        ]
        await database.execute("CREATE INDEX ON t (v)")
        await database.execute("UPDATE t SET v = 3 WHERE id < 5")
        for follower in followers:
            assert await follower.catch_up()
            await follower.check()
        await database.execute("TRUNCATE t")
        for follower in followers:
            assert await follower.catch_up()
            await follower.check()
        await database.execute("ALTER TABLE t ADD COLUMN more INT")
        for follower in followers:
            with pytest.raises(FeatureNotSupported, match="redefined"):
                await follower.catch_up()


async def test_rows_are_compared_as_the_reader_sees_them() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE n (id INT PRIMARY KEY, v NUMERIC, j JSONB)")
        await database.execute("""INSERT INTO n VALUES (1, 1.0, '{"a": 1}')""")
        linear = await follow(database, "SELECT v, j FROM n")
        other = await follow(database, "SELECT v, j FROM n LIMIT 9")
        await database.execute("UPDATE n SET v = 1.00")
        for follower in (linear, other):
            assert await follower.catch_up()
            await follower.check()
            assert follower.changes == 2


async def test_the_kept_result_is_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened_sql() as database:
        await filled(database)
        pool = database._environment.pool
        assert isinstance(pool, MemoryPool)
        follower = await follow(database, "SELECT id FROM t LIMIT 1000")
        held = pool.held
        assert held > 40 * 100
        linear = await follow(database, "SELECT id FROM t")
        assert pool.held == held
        await database.execute("DELETE FROM t WHERE id <= 20")
        await follower.catch_up()
        assert 0 < pool.held < held
        monkeypatch.setattr(pool, "most", pool.held + 100)
        await database.execute(
            "INSERT INTO t SELECT n, 'a', n, NULL FROM generate_series(100, 160) n"
        )
        with pytest.raises(OutOfMemory):
            await follower.catch_up()
        await linear.catch_up()
        await linear.check()
        await follower.live.close()
        assert pool.held == 0
        small = kept_result.KeptResult(None, most=1000)
        with pytest.raises(ProgramLimitExceeded, match="too large to be kept live"):
            small.add(lines([(number,) for number in range(10)]))


async def test_a_watch_that_nothing_touches_keeps_no_snapshot() -> None:
    async with opened_sql() as database:
        await filled(database)
        follower = await follow(database, "SELECT v FROM t WHERE id = 3")
        watch = follower.live._watch
        assert watch.base is None
        await database.execute("UPDATE t SET v = 50 WHERE id = 4")
        assert watch.base is None
        before = database.snapshots.take()
        await database.execute("UPDATE t SET v = 50 WHERE id = 3")
        assert watch.base is before


async def test_statements_of_one_round_are_one_change() -> None:
    async with opened_sql() as database:
        await filled(database)
        follower = await follow(database, "SELECT v FROM t WHERE id = 3")
        await database.transaction(
            [Statement("UPDATE t SET v = 70 WHERE id = 3"), Statement("UPDATE t SET v = 71")]
        )
        with trio.fail_after(240):
            await follower.live.wait()
        await follower.catch_up()
        await follower.check()
        assert follower.changes == 2
        assert follower.live.version == database.snapshots.take().version  # type: ignore[union-attr]
