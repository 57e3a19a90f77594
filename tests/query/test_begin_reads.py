"""Reading by `begin`: a result where the read is short, or else the rest of the same run."""

from __future__ import annotations

import pytest

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.engine.work import Rest, finish
from qserver.errors import Forbidden, QserverError, QueryCanceled
from qserver.query.permissions import Allowed
from qserver.query.sql_database import (
    Result,
    RunOptions,
    SqlDatabase,
    Statement,
    TransactionResult,
)
from qserver.sql.parameters import Given
from tests.engine.fakes import Laboratory
from tests.known_work import WorkClock
from tests.query.begun import Ends, begin_nowait, count_runs, ended, plan_of
from tests.sql.databases import opened_sql

ROWS = 5000
ANY = RunOptions()


async def filled(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a TEXT, n INT)")
    await database.execute(
        f"INSERT INTO t SELECT i, 'row ' || i, i % 7 FROM generate_series(1, {ROWS}) AS s(i)"
    )


def begin(
    database: SqlDatabase, sql: str, given: Given = None, options: RunOptions = ANY
) -> TransactionResult | Rest:
    return begin_all(database, [Statement(sql, given)], options)


def begin_all(
    database: SqlDatabase, statements: list[Statement], options: RunOptions = ANY
) -> TransactionResult | Rest:
    ends = Ends()
    begun = begin_nowait(database, statements, options, ends)
    assert begun is not None and ends.told == [], "who only reads sends no commit"
    return begun


def read(database: SqlDatabase, sql: str, given: Given = None) -> Result:
    """The result of a read that must be short."""
    begun = begin(database, sql, given)
    assert isinstance(begun, TransactionResult), begun
    (result,) = begun.results
    assert begun.version == result.version
    return result


# --- what is answered where it is begun -----------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT a FROM t WHERE id = 17", None),
        ("SELECT a, n FROM t WHERE id = $1", [4000]),
        ("SELECT a FROM t WHERE id = :id", {"id": 3}),
        ("SELECT a FROM t WHERE id = $1", [ROWS + 1]),
        ("SELECT id FROM t WHERE id BETWEEN $1 AND $2 ORDER BY id", [10, 60]),
        ("SELECT count(*), sum(n) FROM t WHERE id < 100", None),
        ("SELECT 1 AS one, 'x' || $1 AS text", ["y"]),
        ("SELECT now(), current_date", None),
        ("VALUES (1, 2), (3, 4)", None),
        ("SELECT relname FROM pg_catalog.pg_class LIMIT 1", None),
    ],
)
async def test_a_short_read_is_answered_whether_its_plan_is_kept_or_new(
    sql: str, parameters: Given
) -> None:
    async with opened_sql() as database:
        await filled(database)
        first = read(database, sql, parameters)
        assert read(database, sql, parameters) == first
        assert await database.execute(sql, parameters) == first


async def test_several_that_only_read_are_answered_from_one_durable_snapshot() -> None:
    async with opened_sql() as database:
        await filled(database)
        statements = [Statement(f"SELECT a FROM t WHERE id = {at}") for at in (1, 2)]
        for statement in statements:
            await database.execute(statement.sql)
        sent = database.database.statistics()
        begun = begin_all(database, statements)
        assert isinstance(begun, TransactionResult)
        assert [each.rows for each in begun.results] == [[("row 1",)], [("row 2",)]]
        assert {each.version for each in begun.results} == {begun.version}
        assert database.database.statistics() == sent, "nothing was sent, nothing committed"


async def test_it_reads_what_is_durable_now() -> None:
    async with opened_sql() as database:
        await filled(database)
        for text in ("one", "two", "three"):
            changed = await database.execute("UPDATE t SET a = $1 WHERE id = 1", [text])
            result = read(database, "SELECT a FROM t WHERE id = $1", [1])
            assert (result.rows, result.version) == ([(text,)], changed.version)


async def test_each_use_of_a_plan_counts_once() -> None:
    async with opened_sql() as database:
        await filled(database)
        read(database, "SELECT a FROM t WHERE id = 1")
        before = database.statistics()
        for at in range(1, 100):
            assert read(database, f"SELECT a FROM t WHERE id = {at}").rows == [(f"row {at}",)]
        after = database.statistics()
        assert (after.hits - before.hits, after.misses) == (99, before.misses)


async def test_a_table_that_has_changed_is_read_as_it_is_now() -> None:
    async with opened_sql() as database:
        await filled(database)
        sql = "SELECT * FROM t WHERE id = 3"
        assert read(database, sql).rows == [(3, "row 3", 3)]
        await database.execute("ALTER TABLE t ADD COLUMN more INT DEFAULT 9")
        assert read(database, sql).rows == [(3, "row 3", 3, 9)]


async def test_what_is_kept_of_an_answer_is_counted_the_same_however_it_comes() -> None:
    async with opened_sql() as database:
        await filled(database)
        sql = "SELECT * FROM t WHERE id = 3"
        alone = read(database, sql)
        both = await database.transaction([Statement(sql), Statement(sql)])
        assert alone.held_bytes > 0
        assert [each.held_bytes for each in both.results] == [
            alone.held_bytes,
            2 * alone.held_bytes,
        ]


# --- what takes longer ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "SELECT id FROM t WHERE id > 100 ORDER BY id",
        "SELECT count(*) FROM t WHERE n = 3",
        "SELECT a FROM t ORDER BY n, a LIMIT 3",
        "SELECT (SELECT count(*) FROM t AS u WHERE u.n::text = t.n::text) FROM t WHERE id < 3",
    ],
)
async def test_what_takes_long_goes_on_where_it_yielded_and_is_run_once(sql: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        expected = await database.execute(sql)
        plan = plan_of(database, sql)
        assert plan.may_yield
        runs = count_runs(plan)
        begun = begin(database, sql)
        assert isinstance(begun, Rest)
        assert len(runs) == 1, "it has begun"
        assert (await finish(begun)).results == [expected]
        assert len(runs) == 1


async def test_what_takes_too_long_ends_at_its_deadline(work_clock: WorkClock) -> None:
    async with opened_sql() as database:
        await database.execute("SELECT count(*) FROM generate_series(1, 10)")
        options = RunOptions(timeout_ms=50)
        begun = begin(database, "SELECT count(*) FROM generate_series(1, 100000000)", None, options)
        assert isinstance(begun, Rest)
        with pytest.raises(QueryCanceled):
            await finish(begun)


@pytest.mark.parametrize(
    ("options", "rows", "truncated"),
    [
        (RunOptions(cut_rows=3), 3, True),
        (RunOptions(cut_rows=2000), 2000, True),
        (ANY, ROWS, False),
    ],
)
async def test_of_too_many_rows_the_first_are_given(
    options: RunOptions, rows: int, truncated: bool
) -> None:
    async with opened_sql() as database:
        await filled(database)
        begun = begin(database, "SELECT id FROM t ORDER BY id", None, options)
        assert isinstance(begun, Rest) is (rows > 1000), "a page is enough for a few"
        done = await finish(begun) if isinstance(begun, Rest) else begun
        assert isinstance(done, TransactionResult)
        (result,) = done.results
        assert result.rows == [(at,) for at in range(1, rows + 1)]
        assert result.truncated is truncated


async def test_before_a_database_can_be_read_everything_has_to_wait() -> None:
    world = Laboratory()
    database = SqlDatabase(Database(MemoryLog(), world, shards=1), world)
    begun = begin(database, "SELECT 1")
    assert isinstance(begun, Rest)
    begun.close()


# --- sequences ------------------------------------------------------------------------------------


async def test_numbers_are_drawn_without_a_gap_and_none_twice() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        drawn = []
        at_once = 0
        for _ in range(200):
            begun = begin(database, "SELECT nextval('s')")
            at_once += isinstance(begun, TransactionResult)
            result = await finish(begun) if isinstance(begun, Rest) else begun
            assert isinstance(result, TransactionResult)
            drawn += [row[0] for row in result.results[0].rows]
        assert drawn == list(range(1, 201))
        assert at_once > 100, "most of them are in hand"


async def test_a_sequence_is_set_between_two_runs() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        begun = begin(database, "SELECT setval('s', 100)")
        assert isinstance(begun, Rest)
        assert (await finish(begun)).results[0].rows == [(100,)]
        assert (await database.execute("SELECT nextval('s')")).rows == [(101,)]


# --- permission and errors ------------------------------------------------------------------------


async def test_who_may_read_only_reads_and_who_may_only_write_does_not() -> None:
    async with opened_sql() as database:
        await filled(database)
        sql = "SELECT a FROM t WHERE id = 1"
        expected = await database.execute(sql)
        reader, writer = Allowed(write=False, define=False), Allowed(read=False)
        begun = begin(database, sql, None, RunOptions(allowed=reader))
        assert isinstance(begun, TransactionResult) and begun.results == [expected]
        with pytest.raises(Forbidden):
            begin(database, sql, None, RunOptions(allowed=writer))


@pytest.mark.parametrize(
    ("sql", "good", "bad", "runs_expected"),
    [
        ("SELECT 1 / n FROM t WHERE id = $1", [1], [7], 1),
        ("SELECT a FROM t WHERE id = $1", [1], ["x"], 0),
        ("SELECT a FROM t WHERE id = $1", [1], [1, 2], 0),
        ("SELECT a FROM t WHERE id = $1", [1], [], 0),
    ],
)
async def test_an_error_is_raised_where_it_is_met_and_nothing_is_run_twice(
    sql: str, good: Given, bad: Given, runs_expected: int
) -> None:
    async with opened_sql() as database:
        await filled(database)
        expected = await database.execute(sql, good)
        with pytest.raises(QserverError) as from_execute:
            await database.execute(sql, bad)
        runs = count_runs(plan_of(database, sql))
        with pytest.raises(QserverError) as at_once:
            begin(database, sql, bad)
        assert repr(at_once.value) == repr(from_execute.value)
        assert len(runs) == runs_expected
        assert read(database, sql, good) == expected


@pytest.mark.parametrize("broken", ["SELECT 'never closed", "SELECT nothing FROM nowhere"])
async def test_of_several_the_first_that_fails_is_told_whatever_is_wrong_with_those_behind_it(
    broken: str,
) -> None:
    async with opened_sql() as database:
        await filled(database)
        fails = "SELECT 1 / n FROM t WHERE id = 7"
        for _ in range(2):  # with a new plan, and with a kept one
            with pytest.raises(QserverError, match="division by zero") as caught:
                await ended(database, [Statement(fails), Statement(broken)])
            assert caught.value.statement == 0
        with pytest.raises(QserverError) as caught:
            await ended(database, [Statement("SELECT 1"), Statement(broken)])
        assert caught.value.statement == 1
