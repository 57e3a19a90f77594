"""Reading at once: the answer that `execute` would give, or None and nothing has happened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.engine.permissions import Allowed
from qserver.engine.sql_gateway import Result, SqlDatabase
from qserver.engine.world import OrdinaryWorld
from qserver.errors import InsufficientPrivilege, QserverError
from qserver.sql.parameters import Given
from tests.sql.databases import opened_sql

ROWS = 5000
USES_UNTIL_KNOWN = 9
"""Whether a plan suits is looked at often while it is young; then for some uses it is not."""


async def filled(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a TEXT, n INT)")
    await database.execute(
        f"INSERT INTO t SELECT i, 'row ' || i, i % 7 FROM generate_series(1, {ROWS}) AS s(i)"
    )


async def known(database: SqlDatabase, sql: str, parameters: Given = None) -> Result:
    """What `execute` gives for a statement whose plan is kept after that."""
    for _ in range(USES_UNTIL_KNOWN - 1):
        await database.execute(sql, parameters)
    return await database.execute(sql, parameters)


def footprint(database: SqlDatabase) -> tuple[Any, ...]:
    """Whatever a statement could have changed."""
    view = database.database.durable_view()
    assert view is not None
    statistics = database.database.statistics()
    sequences = database.database.sequences
    return view, statistics, database.statistics(), dict(sequences.last), repr(sequences)


# --- what is answered -----------------------------------------------------------------------------


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
    ],
)
async def test_a_small_read_whose_plan_is_kept_is_answered_as_execute_does(
    sql: str, parameters: Given
) -> None:
    async with opened_sql() as database:
        await filled(database)
        expected = await known(database, sql, parameters)
        for _ in range(3):
            assert database.read_nowait(sql, parameters) == expected


async def test_it_reads_what_is_durable_now() -> None:
    async with opened_sql() as database:
        await filled(database)
        sql = "SELECT a FROM t WHERE id = $1"
        await known(database, sql, [1])
        for text in ("one", "two", "three"):
            changed = await database.execute("UPDATE t SET a = $1 WHERE id = 1", [text])
            result = database.read_nowait(sql, [1])
            assert result is not None
            assert (result.rows, result.version) == ([(text,)], changed.version)


@given(
    low=st.integers(-5, ROWS + 5),
    width=st.integers(0, 50),
    column=st.sampled_from(["a", "n", "id", "1 / (n - 3)"]),
    order=st.sampled_from(["", " ORDER BY id DESC", " ORDER BY n, id LIMIT 5"]),
    as_parameters=st.booleans(),
)
@settings(max_examples=25, deadline=None)
async def test_whatever_it_answers_is_what_execute_answers(
    low: int, width: int, column: str, order: str, as_parameters: bool
) -> None:
    async with opened_sql(shards=1) as database:
        await filled_with_little(database)
        given: list[Any] = [low, low + width]
        places = ("$1", "$2") if as_parameters else given
        sql = f"SELECT {column} FROM t WHERE id BETWEEN {places[0]} AND {places[1]}{order}"
        parameters = given if as_parameters else None
        expected: Result | str | None = None
        for _ in range(USES_UNTIL_KNOWN):
            try:
                expected = await database.execute(sql, parameters)
            except QserverError as error:
                expected = str(error)
        try:
            found: Result | str | None = database.read_nowait(sql, parameters)
        except QserverError as error:
            found = str(error)
        assert found == expected is not None


async def filled_with_little(database: SqlDatabase) -> None:
    await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a TEXT, n INT)")
    await database.execute(
        "INSERT INTO t SELECT i, 'row ' || i, i % 7 FROM generate_series(1, 100) AS s(i)"
    )


async def test_uses_are_counted_as_those_of_execute_are() -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, "SELECT a FROM t WHERE id = 1")
        before = database.statistics()
        answered = 0
        for at in range(1, 100):
            result = database.read_nowait(f"SELECT a FROM t WHERE id = {at}")
            if result is None:  # now and then it is time to see whether the plan still suits
                result = await database.execute(f"SELECT a FROM t WHERE id = {at}")
            else:
                answered += 1
            assert result.rows == [(f"row {at}",)]
        after = database.statistics()
        assert answered > 80
        assert (after.hits - before.hits, after.misses) == (99, before.misses)


# --- what is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (-1, 'a', 1)",
        "INSERT INTO t VALUES (-1, 'a', 1) RETURNING id",
        "UPDATE t SET n = n + 1 WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
        "WITH gone AS (DELETE FROM t WHERE id = 2 RETURNING id) SELECT id FROM gone",
        "CREATE TABLE u (id INT PRIMARY KEY)",
        "TRUNCATE t",
    ],
)
async def test_what_writes_is_none_and_nothing_is_written(sql: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        assert database.read_nowait(sql) is None
        with_undo = ["INSERT INTO t VALUES (-1, 'a', 1)", "INSERT INTO t VALUES (2, 'a', 1)"]
        for _ in range(USES_UNTIL_KNOWN):
            await database.execute("DELETE FROM t WHERE id IN (-1, 2)")
            await database.execute("DROP TABLE IF EXISTS u")
            if not sql.startswith("INSERT"):
                for undo in with_undo:
                    await database.execute(undo)
            await database.execute(sql)
        before = footprint(database)
        assert database.read_nowait(sql) is None
        assert footprint(database) == before


async def test_a_shape_that_is_not_known_is_none_and_not_counted() -> None:
    async with opened_sql() as database:
        await filled(database)
        before = footprint(database)
        for _ in range(5):
            assert database.read_nowait("SELECT a, n, id FROM t WHERE id = 3") is None
        assert footprint(database) == before


async def test_a_plan_whose_table_has_changed_is_none_until_it_was_made_anew() -> None:
    async with opened_sql() as database:
        await filled(database)
        sql = "SELECT * FROM t WHERE id = 3"
        await known(database, sql)
        assert database.read_nowait(sql) is not None
        await database.execute("ALTER TABLE t ADD COLUMN more INT DEFAULT 9")
        assert database.read_nowait(sql) is None
        expected = await known(database, sql)
        assert expected.rows == [(3, "row 3", 3, 9)]
        assert database.read_nowait(sql) == expected
        await database.execute("DROP TABLE t")
        assert database.read_nowait(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "SELECT id FROM t WHERE id > 100 ORDER BY id",
        "SELECT count(*) FROM t WHERE n = 3",
        "SELECT a FROM t ORDER BY n, a LIMIT 3",
        "SELECT (SELECT count(*) FROM t AS u WHERE u.n = t.n) FROM t WHERE id < 3",
    ],
)
async def test_what_takes_long_is_none_and_not_tried_again(sql: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, sql)
        before = footprint(database)
        assert database.read_nowait(sql) is None
        assert footprint(database) == before
        lifted = database.planner.lift(sql, None)
        view = database.database.durable_view()
        assert view is not None
        plan = database.planner.find(lifted, view.catalog, view)
        assert plan is not None and plan.takes_turns
        assert database.read_nowait(sql) is None
        assert len((await database.execute(sql)).rows) > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT table_name FROM information_schema.tables",
        "SELECT relname FROM pg_catalog.pg_class LIMIT 1",
    ],
)
async def test_system_tables_are_none(sql: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        await known(database, sql)
        assert database.read_nowait(sql) is None


async def test_before_a_database_can_be_read_it_is_none() -> None:
    def report(text: str, error: Exception) -> None:
        raise AssertionError(text) from error

    async with opened_sql() as other:
        world = OrdinaryWorld(lambda: 0.0, other._supplies.chance, report)
    database = SqlDatabase(Database(MemoryLog(), world, shards=1), world)
    assert database.read_nowait("SELECT 1") is None


# --- sequences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nextval('s')",
        "SELECT nextval('s') FROM t WHERE id < 5",
        "SELECT currval('s')",
        "SELECT lastval()",
        "SELECT setval('s', 100)",
        "SELECT nextval('s') / 0",
    ],
)
async def test_sequences_are_none_and_nothing_is_drawn(sql: str) -> None:
    async with opened_sql() as database:
        await filled(database)
        await database.execute("CREATE SEQUENCE s")
        for _ in range(USES_UNTIL_KNOWN):
            try:
                await database.execute(sql)
            except QserverError as error:
                assert "division by zero" in str(error) or "not yet defined" in str(error)
        await database.execute("SELECT nextval('s')")
        before = footprint(database)
        for _ in range(3):
            assert database.read_nowait(sql) is None
        assert footprint(database) == before


async def test_numbers_are_drawn_without_a_gap_and_none_twice() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        drawn = []
        for _ in range(200):
            result = database.read_nowait("SELECT nextval('s')")
            if result is None:
                result = await database.execute("SELECT nextval('s')")
            drawn += [row[0] for row in result.rows]
        assert drawn == list(range(1, 201))


# --- permission and errors ------------------------------------------------------------------------


async def test_who_may_read_only_reads_and_who_may_only_write_does_not() -> None:
    async with opened_sql() as database:
        await filled(database)
        sql = "SELECT a FROM t WHERE id = 1"
        expected = await known(database, sql)
        reader, writer = Allowed(write=False, define=False), Allowed(read=False)
        assert database.read_nowait(sql, None, reader) == expected
        with pytest.raises(InsufficientPrivilege):
            database.read_nowait(sql, None, writer)


@pytest.mark.parametrize(
    ("sql", "good", "bad"),
    [
        ("SELECT 1 / n FROM t WHERE id = $1", [1], [7]),
        ("SELECT a FROM t WHERE id = $1", [1], ["x"]),
        ("SELECT a FROM t WHERE id = $1", [1], [1, 2]),
        ("SELECT a FROM t WHERE id = $1", [1], []),
        ("SELECT a FROM t WHERE id = 1", None, [1]),
    ],
)
async def test_an_error_is_that_of_execute_and_the_next_one_is_answered(
    sql: str, good: Given, bad: Given
) -> None:
    async with opened_sql() as database:
        await filled(database)
        expected = await known(database, sql, good)
        with pytest.raises(QserverError) as from_execute:
            await database.execute(sql, bad)
        with pytest.raises(QserverError) as at_once:
            database.read_nowait(sql, bad)
        assert (type(at_once.value), str(at_once.value)) == (
            type(from_execute.value),
            str(from_execute.value),
        )
        assert database.read_nowait(sql, good) == expected
