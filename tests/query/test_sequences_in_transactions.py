"""What a transaction does to sequences: what it makes is its own, what fails leaves nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from qserver.durability.memory import MemoryLog
from qserver.engine.position_sweeper import PositionSweeper
from qserver.errors import (
    DivisionByZero,
    InvalidParameterValue,
    QueryCanceled,
    SequenceLimitExceeded,
    UndefinedTable,
)
from qserver.limits import SEQUENCE_BLOCK
from qserver.query.sql_database import Result, SqlDatabase, Statement
from qserver.storage.writes import SEQUENCES_TREE
from tests.engine.fakes import HeldLog
from tests.sql.databases import opened_sql

ENOUGH_MS = 60_000
FAILS = "SELECT 1 / (SELECT count(*) FROM generate_series(1, 0))"


async def together(database: SqlDatabase, *statements: str) -> list[Result]:
    """The statements as one transaction, which must end."""
    done = await database.transaction(
        [Statement(statement) for statement in statements], timeout_ms=ENOUGH_MS
    )
    return done.results


async def column(database: SqlDatabase, sql: str) -> list[object]:
    result = await database.execute(sql, timeout_ms=ENOUGH_MS)
    return [row[0] for row in result.rows]


async def draw(database: SqlDatabase, name: str = "s") -> object:
    (number,) = await column(database, f"SELECT nextval('{name}')")
    return number


def states_kept(database: SqlDatabase) -> list[object]:
    """The numbers of all states of SQL sequences that are there."""
    snapshot = database.database.snapshots.take()
    assert snapshot is not None
    keys = [key for page, _ in snapshot.pages(SEQUENCES_TREE, None, None) for key in page]
    return sorted(number for (number,) in keys if number > 0)


# --- made and used in one transaction ---


@pytest.mark.parametrize("kind", ["serial", "integer GENERATED ALWAYS AS IDENTITY"])
async def test_a_table_with_numbers_can_be_filled_by_the_transaction_that_makes_it(
    kind: str,
) -> None:
    async with opened_sql() as database:
        results = await together(
            database,
            f"CREATE TABLE t (id {kind} PRIMARY KEY, a text)",
            "INSERT INTO t (a) VALUES ('x'), ('y') RETURNING id",
            "INSERT INTO t (a) SELECT 'z' FROM generate_series(1, 1000)",
            "SELECT max(id), currval('t_id_seq') FROM t",
        )
        assert results[1].rows == [(1,), (2,)]
        assert results[3].rows == [(1002, 1002)]
        assert await column(database, "INSERT INTO t (a) VALUES ('w') RETURNING id") == [1003]


async def test_a_sequence_counts_in_the_transaction_that_makes_it() -> None:
    async with opened_sql() as database:
        results = await together(
            database,
            "CREATE SEQUENCE s INCREMENT BY -2 MAXVALUE 10 MINVALUE 1",
            "SELECT nextval('s'), nextval('s')",
            "SELECT setval('s', 4)",
            "SELECT nextval('s'), currval('s'), lastval()",
        )
        assert results[1].rows == [(10, 8)]
        assert results[3].rows == [(2, 2, 2)]
        with pytest.raises(SequenceLimitExceeded):
            await draw(database)


async def test_a_sequence_that_ends_in_the_transaction_that_makes_it_says_so() -> None:
    async with opened_sql() as database:
        with pytest.raises(SequenceLimitExceeded) as caught:
            await together(
                database,
                "CREATE SEQUENCE s MAXVALUE 3",
                "SELECT nextval('s') FROM generate_series(1, 4)",
            )
        assert caught.value.statement == 1
        with pytest.raises(UndefinedTable):
            await draw(database)


async def test_a_sequence_made_anew_under_its_name_begins_anew() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        assert await draw(database) == 1
        results = await together(
            database,
            "SELECT nextval('s')",
            "DROP SEQUENCE s",
            "CREATE SEQUENCE s START WITH 100",
            "SELECT nextval('s')",
        )
        assert (results[0].rows, results[3].rows) == ([(2,)], [(100,)])
        assert await draw(database) == 101


async def test_sequences_that_swap_names_in_a_transaction_keep_their_numbers() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE a")
        await database.execute("CREATE SEQUENCE b START WITH 100")
        assert (await draw(database, "a"), await draw(database, "b")) == (1, 100)
        results = await together(
            database,
            "ALTER SEQUENCE a RENAME TO c",
            "ALTER SEQUENCE b RENAME TO a",
            "ALTER SEQUENCE c RENAME TO b",
            "SELECT nextval('a'), nextval('b')",
        )
        assert results[3].rows == [(101, 2)]
        assert (await draw(database, "a"), await draw(database, "b")) == (102, 3)


# --- numbers for rows that are there ---


@pytest.mark.parametrize(
    "kind", ["serial", "bigint GENERATED BY DEFAULT AS IDENTITY (START 10 INCREMENT 5)"]
)
async def test_rows_that_are_there_get_numbers(kind: str) -> None:
    first, step = (1, 1) if kind == "serial" else (10, 5)
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a integer)")
        await database.execute("INSERT INTO t SELECT g FROM generate_series(1, 3000) AS g")
        await database.execute(f"ALTER TABLE t ADD COLUMN id {kind}", timeout_ms=ENOUGH_MS)
        ids = await column(database, "SELECT id FROM t ORDER BY a")
        assert ids == [first + step * at for at in range(3000)]
        assert await column(database, "INSERT INTO t VALUES (0) RETURNING id") == [
            first + step * 3000
        ]


async def test_numbers_for_many_rows_are_drawn_in_few_runs() -> None:
    log = HeldLog()
    async with opened_sql(log) as database:
        await database.execute("CREATE TABLE t (id serial PRIMARY KEY, a integer)")
        before = log.versions
        await database.execute("INSERT INTO t (a) SELECT g FROM generate_series(1, 20000) AS g")
        assert log.versions - before <= 12  # 128, 257, 515 … and the rows themselves
        assert await column(database, "INSERT INTO t (a) VALUES (0) RETURNING id") == [20001]


async def test_a_deadline_ends_a_statement_that_waits_for_numbers(
    autojump_clock: MockClock,
) -> None:
    log = HeldLog()
    async with opened_sql(log) as database:
        await database.execute("CREATE SEQUENCE s")
        log.hold()
        for sql in ("SELECT nextval('s')", "SELECT setval('s', 5)"):
            with pytest.raises(QueryCanceled), trio.fail_after(60):
                await database.execute(sql, timeout_ms=1000)
        stream = await database.stream("SELECT nextval('s')", timeout_ms=1000)
        with pytest.raises(QueryCanceled), trio.fail_after(60):
            await stream.__anext__()
        log.release()
        assert await draw(database) is not None


async def test_who_draws_many_numbers_comes_to_an_end_beside_others_who_draw() -> None:
    """Numbers that were reserved for a statement are its own until it has run again."""
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        many: list[object] = []
        others: list[object] = []

        async def draw_others() -> None:
            while not many:
                others.append(await draw(database))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(draw_others)
            numbers = await column(database, "SELECT nextval('s') FROM generate_series(1, 5000)")
            many += numbers
        assert len({*many, *others}) == len(many) + len(others)


# --- transactions that fail ---


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE t RESTART IDENTITY",
        "ALTER SEQUENCE t_id_seq RESTART",
        "ALTER SEQUENCE t_id_seq RESTART WITH 50",
        "ALTER SEQUENCE t_id_seq INCREMENT BY 10",
        "ALTER SEQUENCE t_id_seq MAXVALUE 1000 CYCLE",
        "DROP TABLE t",
    ],
)
@pytest.mark.parametrize("draws", [True, False])
async def test_a_transaction_that_fails_does_nothing_to_a_sequence(
    statement: str, draws: bool
) -> None:
    async with opened_sql() as database:
        await database.execute(
            "CREATE TABLE t (id integer GENERATED ALWAYS AS IDENTITY, a integer)"
        )
        insert = "INSERT INTO t (a) VALUES (1) RETURNING id"
        assert [await column(database, insert) for _ in range(3)] == [[1], [2], [3]]
        also = ("INSERT INTO t (a) VALUES (2)",) if draws and "DROP" not in statement else ()
        with pytest.raises(DivisionByZero):
            await together(database, statement, *also, FAILS)
        assert await column(database, insert) == [4]


async def test_setval_and_nextval_stay_when_their_transaction_fails() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        with pytest.raises(DivisionByZero):
            await together(database, "SELECT nextval('s')", FAILS)
        assert await draw(database) == 2
        with pytest.raises(DivisionByZero):
            await together(database, "SELECT setval('s', 100)", "SELECT nextval('s')", FAILS)
        assert await draw(database) == 102


async def test_setval_in_the_middle_of_many_numbers_counts_on_from_it() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        results = await together(
            database,
            "SELECT max(n) FROM (SELECT nextval('s') AS n FROM generate_series(1, 200)) x",
            "SELECT setval('s', 1000)",
            "SELECT max(n) FROM (SELECT nextval('s') AS n FROM generate_series(1, 200)) x",
            "SELECT setval('s', 7, false)",
            "SELECT nextval('s')",
        )
        assert [result.rows for result in results] == [
            [(200,)],
            [(1000,)],
            [(1200,)],
            [(7,)],
            [(7,)],
        ]
        assert await draw(database) == 8


# --- transactions that do not ---


async def test_restart_counts_in_its_transaction_and_afterwards() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id serial PRIMARY KEY, a integer)")
        await database.execute("INSERT INTO t (a) VALUES (1), (2), (3)")
        results = await together(
            database,
            "TRUNCATE t RESTART IDENTITY",
            "INSERT INTO t (a) VALUES (4), (5) RETURNING id",
            "ALTER SEQUENCE t_id_seq RESTART WITH 40",
            "INSERT INTO t (a) VALUES (6) RETURNING id",
        )
        assert (results[1].rows, results[3].rows) == ([(1,), (2,)], [(40,)])
        assert await column(database, "INSERT INTO t (a) VALUES (7) RETURNING id") == [41]


async def test_a_sequence_that_counts_otherwise_goes_on_from_the_number_given_last() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        assert [await draw(database) for _ in range(3)] == [1, 2, 3]
        results = await together(
            database,
            "SELECT nextval('s')",
            "ALTER SEQUENCE s INCREMENT BY 10",
            "SELECT nextval('s'), currval('s')",
        )
        assert (results[0].rows, results[2].rows) == ([(4,)], [(14, 14)])
        assert await draw(database) == 24
        await database.execute("ALTER SEQUENCE s INCREMENT BY -1")
        assert await column(database, "SELECT currval('s')") == [24]
        assert await draw(database) == 23
        await database.execute("ALTER SEQUENCE s START WITH 90 CACHE 5 OWNED BY NONE")
        assert await draw(database) == 22
        with pytest.raises(InvalidParameterValue, match=r"RESTART value \(22\) cannot be greater"):
            await database.execute("ALTER SEQUENCE s MAXVALUE 20 START WITH 9")
        await database.execute("ALTER SEQUENCE s RESTART")
        assert await draw(database) == 90


async def test_a_new_definition_leaves_no_state_behind() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id serial PRIMARY KEY)")
        await database.execute("CREATE SEQUENCE s")
        await draw(database)
        for statement in (
            "ALTER SEQUENCE s INCREMENT BY 2",
            "ALTER SEQUENCE s RESTART",
            "TRUNCATE t RESTART IDENTITY",
        ):
            await database.execute(statement)
            assert len(states_kept(database)) == 2, statement
        await draw(database)
        await database.execute("DROP SEQUENCE s")
        await database.execute("DROP TABLE t")
        assert len(states_kept(database)) == 2, "where they were, for a restore"
        sweeper = PositionSweeper(database.database)
        await sweeper.sweep()
        assert len(states_kept(database)) == 2, "the log begins before that"
        await database.database.checkpoint()
        await sweeper.sweep()
        assert states_kept(database) == []


async def test_no_number_comes_twice_after_a_crash_behind_a_new_definition() -> None:
    log = MemoryLog()
    given: list[object] = []
    for statement in ("ALTER SEQUENCE s MAXVALUE 100000", "ALTER SEQUENCE s CACHE 9", "SELECT 1"):
        async with opened_sql(log) as database:
            await database.execute("CREATE SEQUENCE IF NOT EXISTS s")
            given += [await draw(database) for _ in range(5)]
            await database.execute(statement)
            given += [await draw(database) for _ in range(5)]
    assert len(set(given)) == len(given)


# --- definitions beside draws ---


async def pages_of(database: SqlDatabase, count: int, change: Sequence[str]) -> list[int]:
    """Numbers of a streamed SELECT, with statements executed behind its first page."""
    stream = await database.stream(f"SELECT nextval('s') FROM generate_series(1, {count})")
    numbers: list[int] = [row[0] for row in await stream.__anext__()]
    for statement in change:
        await database.execute(statement, timeout_ms=ENOUGH_MS)
    async for page in stream:
        numbers += [row[0] for row in page]
    return numbers


@pytest.mark.half
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER SEQUENCE s MAXVALUE 1000000",
        "ALTER SEQUENCE s RENAME TO z",
        "ALTER SEQUENCE s CACHE 7",
    ],
)
async def test_no_number_comes_twice_beside_a_change_of_the_definition(statement: str) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        numbers = await pages_of(database, 20_000, [statement, *["SELECT 1"] * 3])
        name = "z" if "RENAME" in statement else "s"
        numbers += await column(  # type: ignore[arg-type]
            database, f"SELECT nextval('{name}') FROM generate_series(1, 20000)"
        )
        assert len(set(numbers)) == 40_000


async def test_a_stream_draws_by_the_definition_that_is_newest() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        numbers = await pages_of(database, 20_000, ["ALTER SEQUENCE s RESTART WITH 5000000"])
        assert numbers[-1] > 5_000_000
        assert len(set(numbers)) == 20_000


async def test_a_stream_ends_with_an_error_when_its_sequence_is_dropped() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        with pytest.raises(UndefinedTable, match='relation "s" does not exist'):
            await pages_of(database, 20_000, ["DROP SEQUENCE s", "CREATE SEQUENCE s"])
        assert await draw(database) == 1


async def test_a_transaction_that_drew_before_a_restart_draws_again_after_it() -> None:
    """Else its number would be one that others are given after the restart."""
    log = HeldLog()
    async with opened_sql(log) as database:
        await database.execute("CREATE TABLE t (id serial PRIMARY KEY, a integer)")
        await database.execute("INSERT INTO t (a) VALUES (0)")
        slow = "SELECT count(*) FROM generate_series(1, 30000)"
        async with trio.open_nursery() as nursery:
            ids: list[object] = []

            async def insert() -> None:
                results = await together(
                    database, "INSERT INTO t (a) VALUES (1) RETURNING id", slow, slow
                )
                ids.append(results[0].rows[0][0])

            nursery.start_soon(insert)
            await wait_all_tasks_blocked()
            await database.execute("ALTER SEQUENCE t_id_seq RESTART WITH 500")
        assert await column(database, "SELECT id FROM t ORDER BY id") == [1, ids[0]]
        rest = [await column(database, "INSERT INTO t (a) VALUES (2) RETURNING id")]
        assert (ids == [500] and rest == [[501]]) or (ids == [2] and rest == [[500]])


async def test_unused_numbers_of_a_statement_are_given_to_the_next() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        for last in (300, 600, 900):
            numbers = await column(database, "SELECT nextval('s') FROM generate_series(1, 300)")
            assert numbers[-1] == last
        stream = await database.stream("SELECT nextval('s') FROM generate_series(1, 20000)")
        page = await stream.__anext__()
        await stream.aclose()
        assert await draw(database) == page[-1][0] + 1


async def test_a_reservation_is_not_undone_by_a_failed_change_of_the_definition() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        given = [await draw(database) for _ in range(SEQUENCE_BLOCK + 5)]
        for _ in range(3):
            with pytest.raises(DivisionByZero):
                await together(database, "ALTER SEQUENCE s INCREMENT BY 3", FAILS)
            given.append(await draw(database))
        assert given == list(range(1, len(given) + 1))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t (a) SELECT g FROM generate_series(1, 300000) AS g",
        "SELECT nextval('t_id_seq') FROM generate_series(1, 1000000)",
        "SELECT setval('t_id_seq', g) FROM generate_series(1, 100000) AS g",
        "ALTER TABLE t ADD COLUMN b serial",
    ],
)
async def test_every_way_to_draw_ends_with_its_deadline(statement: str) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id serial, a integer)")
        if statement.startswith("ALTER"):
            await database.execute("INSERT INTO t (a) SELECT g FROM generate_series(1, 20000) AS g")
        with trio.fail_after(60), pytest.raises(QueryCanceled):
            await database.execute(statement, timeout_ms=30)
        with trio.move_on_after(0.03) as scope:  # a client who leaves
            await database.execute(statement)
        assert scope.cancelled_caught
        assert len(await column(database, "SELECT nextval('t_id_seq')")) == 1


# --- a table of many ---


async def test_a_row_of_many_numbers_takes_few_reservations() -> None:
    columns = ", ".join(f"c{n} INTEGER GENERATED ALWAYS AS IDENTITY" for n in range(60))
    async with opened_sql() as database:
        made = await database.execute(f"CREATE TABLE t ({columns})")
        rows = [await database.execute("INSERT INTO t DEFAULT VALUES RETURNING *") for _ in "12"]
        assert rows[0].rows == [(1,) * 60] and rows[1].rows == [(2,) * 60]
        assert rows[1].version - made.version < 8, "each reservation is a version"


async def test_a_sequence_without_numbers_left_does_not_stop_its_siblings() -> None:
    async with opened_sql() as database:
        await database.execute(
            "CREATE TABLE t (a SERIAL, b SERIAL, c SERIAL,"
            " d INTEGER GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 2))"
        )
        await database.execute("SELECT nextval('t_d_seq'), nextval('t_d_seq')")
        row = await database.execute("INSERT INTO t (d) VALUES (7) RETURNING *")
        assert row.rows == [(1, 1, 1, 7)]
        with pytest.raises(SequenceLimitExceeded):
            await database.execute("INSERT INTO t DEFAULT VALUES")
