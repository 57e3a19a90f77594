"""Statements in, rows out: one at a time, several as a transaction, page by page."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
import trio
from trio.testing import MockClock

from qserver.durability.memory import MemoryLog
from qserver.errors import (
    ActiveTransaction,
    InvalidTextRepresentation,
    OutOfMemory,
    ProgramLimitExceeded,
    ProtocolViolation,
    QserverError,
    QueryCanceled,
    SqlSyntaxError,
    UndefinedTable,
    UniqueViolation,
)
from qserver.query.request import RequestContext
from qserver.query.sql_database import SqlDatabase, Statement
from qserver.values.types import INTEGER, TEXT
from tests.sql.databases import NOON, opened_sql


async def filled(database: SqlDatabase, rows: int = 3) -> None:
    await database.execute("CREATE TABLE t (id INT PRIMARY KEY, a TEXT)")
    values = ", ".join(f"({at}, 'row {at}')" for at in range(1, rows + 1))
    await database.execute(f"INSERT INTO t VALUES {values}")


async def values(database: SqlDatabase, sql: str, *parameters: object) -> list[object]:
    """The first column of a result."""
    result = await database.execute(sql, list(parameters))
    return [row[0] for row in result.rows]


# --- one statement ---


async def test_a_result_has_columns_types_rows_and_the_version_that_was_read() -> None:
    async with opened_sql() as database:
        await filled(database)
        result = await database.execute("SELECT id, a AS name FROM t ORDER BY id")
        assert (result.columns, result.types) == (("id", "name"), (INTEGER, TEXT))
        assert result.rows == [(1, "row 1"), (2, "row 2"), (3, "row 3")]
        assert (result.affected_rows, result.version, result.retries) == (0, 2, 0)


async def test_a_change_tells_how_many_rows_it_changed_and_the_version_that_it_made() -> None:
    async with opened_sql() as database:
        await filled(database)
        result = await database.execute("UPDATE t SET a = upper(a) WHERE id > 1 RETURNING a")
        assert (result.affected_rows, result.version) == (2, 3)
        assert sorted(result.rows) == [("ROW 2",), ("ROW 3",)]
        none = await database.execute("DELETE FROM t WHERE id = 9")
        assert (none.affected_rows, none.version) == (0, 3)


@pytest.mark.parametrize("sql", ["", " ; ", "-- nothing", "SELECT 1; SELECT 2"])
async def test_a_request_is_exactly_one_statement(sql: str) -> None:
    async with opened_sql() as database:
        with pytest.raises(SqlSyntaxError):
            await database.execute(sql)
        assert await values(database, "SELECT 1;") == [1]


async def test_what_only_reads_sends_no_message_and_makes_no_version() -> None:
    async with opened_sql() as database:
        await filled(database)
        before = database.database.statistics()
        for at in range(1, 4):
            assert await values(database, f"SELECT a FROM t WHERE id = {at}") == [f"row {at}"]
        after = database.database.statistics()
        assert before.generation is not None and after.generation is not None
        assert before.generation.mailboxes == after.generation.mailboxes
        assert before.generation.versions.newest == after.generation.versions.newest


# --- parameters ---


async def test_parameters_have_the_types_that_the_statement_gives_them() -> None:
    async with opened_sql() as database:
        await filled(database)
        assert await values(database, "SELECT a FROM t WHERE id = ?", 2) == ["row 2"]
        assert await values(database, "SELECT a FROM t WHERE id = $1", "2") == ["row 2"]
        found = await database.execute("SELECT a FROM t WHERE id = :id", {"id": 3})
        assert found.rows == [("row 3",)]
        assert await values(database, "SELECT $1::numeric + 1", 0.5) == [Decimal("1.5")]
        assert await values(
            database, "SELECT id FROM t WHERE id = ANY ($1) ORDER BY 1", [3, 1]
        ) == [
            1,
            3,
        ]
        assert await values(database, "SELECT id FROM t WHERE a = $1", None) == []


async def test_parameters_that_do_not_fit_are_refused() -> None:
    async with opened_sql() as database:
        await filled(database)
        for parameters in ([], [1, 2], {"id": 1}):
            with pytest.raises(ProtocolViolation):
                await database.execute("SELECT a FROM t WHERE id = $1", parameters)
        with pytest.raises(ProtocolViolation):
            await database.execute("SELECT 1", [1])
        with pytest.raises(ProtocolViolation):
            await database.execute("CREATE TABLE u (a INT)", [1])
        with pytest.raises(InvalidTextRepresentation):
            await database.execute("SELECT a FROM t WHERE id = $1", ["two"])


async def test_a_statement_with_parameters_is_compiled_once() -> None:
    async with opened_sql() as database:
        await filled(database)
        for number in range(10):
            await database.execute("SELECT a FROM t WHERE id = $1", [number])
        assert database.statistics().hits == 9


# --- plans ---


async def test_statements_of_one_shape_share_a_plan_and_pinned_literals_part_it() -> None:
    async with opened_sql() as database:
        await filled(database)
        hits = database.statistics().hits
        for at in (1, 2, 3):
            assert await values(database, f"SELECT a FROM t WHERE id = {at}") == [f"row {at}"]
        assert database.statistics().hits == hits + 2
        assert await values(database, "SELECT id, -id FROM t ORDER BY 1 LIMIT 1") == [1]
        assert await values(database, "SELECT id, -id FROM t ORDER BY 2 LIMIT 1") == [3]
        assert await values(database, "SELECT id, -id FROM t ORDER BY 1 LIMIT 1") == [1]


async def test_a_plan_does_not_outlive_what_it_was_made_for() -> None:
    async with opened_sql() as database:
        await filled(database)
        everything = "SELECT * FROM t WHERE id = 1"
        assert (await database.execute(everything)).columns == ("id", "a")
        await database.execute("ALTER TABLE t ADD COLUMN b INT DEFAULT 7")
        assert (await database.execute(everything)).rows == [(1, "row 1", 7)]
        await database.execute("DROP TABLE t")
        with pytest.raises(UndefinedTable):
            await database.execute(everything)
        await database.execute("CREATE TABLE t (id TEXT)")
        with pytest.raises(QserverError):
            await database.execute(everything)
        assert database.statistics().invalidated >= 2


async def test_a_new_foreign_key_is_known_to_plans_that_were_made_before() -> None:
    async with opened_sql() as database:
        await filled(database)
        await database.execute("DELETE FROM t WHERE id = 1")
        await database.execute("CREATE TABLE child (t INT REFERENCES t)")
        await database.execute("INSERT INTO child VALUES (2)")
        with pytest.raises(QserverError, match="violates foreign key constraint"):
            await database.execute("DELETE FROM t WHERE id = 2")
        await database.execute("DELETE FROM t WHERE id = 3")


# --- several statements ---


async def test_a_transaction_is_all_or_nothing_and_sees_its_own_changes() -> None:
    async with opened_sql() as database:
        await filled(database)
        outcome = await database.transaction(
            [
                Statement("CREATE TABLE u (id INT PRIMARY KEY)"),
                Statement("INSERT INTO u SELECT id FROM t WHERE id <= $1", [2]),
                Statement("DELETE FROM t WHERE id IN (SELECT id FROM u)"),
                Statement("SELECT count(*) FROM t"),
            ]
        )
        assert [result.affected_rows for result in outcome.results] == [0, 2, 2, 0]
        assert outcome.results[-1].rows == [(1,)]
        assert {result.version for result in outcome.results} == {outcome.version} == {3}
        assert await values(database, "SELECT count(*) FROM u") == [2]


async def test_a_failure_undoes_everything_and_names_its_statement() -> None:
    async with opened_sql() as database:
        await filled(database)
        statements = [
            Statement("CREATE TABLE u (id INT PRIMARY KEY)"),
            Statement("UPDATE t SET a = 'changed'"),
            Statement("INSERT INTO t VALUES (1, 'again')"),
        ]
        with pytest.raises(UniqueViolation) as caught:
            await database.transaction(statements)
        assert caught.value.statement == 2
        assert await values(database, "SELECT a FROM t WHERE id = 1") == ["row 1"]
        with pytest.raises(UndefinedTable):
            await database.execute("SELECT * FROM u")


@pytest.mark.parametrize("sql", ["BEGIN", "COMMIT", "ROLLBACK", "ABORT"])
async def test_transactions_are_requests_and_not_statements(sql: str) -> None:
    async with opened_sql() as database:
        with pytest.raises(ActiveTransaction):
            await database.execute(sql)
        with pytest.raises(ActiveTransaction) as caught:
            await database.transaction([Statement("SELECT 1"), Statement(sql)])
        assert caught.value.statement == 1


async def test_time_is_one_value_in_a_transaction_and_chance_differs_between_calls() -> None:
    async with opened_sql() as database:
        moment = datetime.fromtimestamp(NOON, UTC)
        outcome = await database.transaction([Statement("SELECT now()")] * 2)
        assert [result.rows for result in outcome.results] == [[(moment,)], [(moment,)]]
        numbers = await database.execute("SELECT random(), random()")
        assert len(set(numbers.rows[0])) == 2
        assert await values(database, "SELECT random()") != [numbers.rows[0][0]]


# --- bounds ---


async def test_a_statement_that_takes_too_long_is_stopped(autojump_clock: MockClock) -> None:
    async with opened_sql() as database:
        with pytest.raises(QueryCanceled, match="canceling statement due to statement timeout"):
            await database.execute(
                "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b",
                timeout_ms=0,
            )
        await filled(database, 1000)
        with pytest.raises(QueryCanceled):
            await database.execute("UPDATE t SET a = ''", timeout_ms=-1)


async def test_a_statement_may_not_hold_more_rows_than_memory_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RequestContext, "memory_bytes_most", 100_000)
    async with opened_sql() as database:
        await filled(database, 9000)
        with pytest.raises(OutOfMemory):
            await database.execute("SELECT * FROM t")
        with pytest.raises(OutOfMemory):
            await database.execute("SELECT count(*) FROM (SELECT a FROM t GROUP BY a) AS s")
        assert await values(database, "SELECT count(*) FROM t") == [9000]


async def test_a_result_may_be_told_how_many_rows_it_may_have() -> None:
    async with opened_sql() as database:
        await filled(database, 10)
        assert len((await database.execute("SELECT * FROM t", max_rows=10)).rows) == 10
        with pytest.raises(ProgramLimitExceeded):
            await database.execute("SELECT * FROM t", max_rows=9)
        with pytest.raises(ProgramLimitExceeded):
            await database.execute("UPDATE t SET a = '' RETURNING id", max_rows=9)
        assert await values(database, "SELECT count(*) FROM t WHERE a = ''") == [0]


async def test_a_long_read_gives_way_to_others() -> None:
    async with opened_sql() as database:
        await filled(database, 20_000)
        order: list[str] = []

        async def long() -> None:
            await database.execute("SELECT a, count(*) FROM t GROUP BY a")
            order.append("long")

        async def short() -> None:
            await database.execute("SELECT 1")
            order.append("short")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(long)
            await trio.lowlevel.checkpoint()
            nursery.start_soon(short)
        assert order == ["short", "long"]


# --- page by page ---


async def test_a_stream_hands_out_its_first_page_before_the_scan_ends() -> None:
    async with opened_sql() as database:
        await filled(database, 5000)
        stream = await database.stream("SELECT id, 1 / (id - 4999) FROM t ORDER BY id")
        assert stream.columns[0] == "id"
        assert (await stream.__anext__())[0] == (1, 0)
        with pytest.raises(QserverError, match="division by zero"):
            async for _ in stream:
                pass


async def test_a_stream_is_one_version_from_the_first_row_to_the_last() -> None:
    async with opened_sql() as database:
        await filled(database, 2000)
        stream = await database.stream("SELECT id FROM t ORDER BY id")
        seen = [row[0] for row in await stream.__anext__()]
        await database.execute("DELETE FROM t")
        async for page in stream:
            assert page
            seen += [row[0] for row in page]
        assert seen == list(range(1, 2001))


async def test_a_stream_can_be_ended_early_and_can_carry_what_a_change_returns() -> None:
    async with opened_sql() as database:
        await filled(database, 2000)
        stream = await database.stream("SELECT id FROM t")
        await stream.__anext__()
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()
        changed = await database.stream("DELETE FROM t WHERE id < 3 RETURNING id")
        assert [sorted(page) async for page in changed] == [[(1,), (2,)]]


async def test_no_deadline_ends_the_stream_of_what_is_committed(autojump_clock: MockClock) -> None:
    """An error would say that nothing was applied."""
    async with opened_sql() as database:
        await filled(database, 10)
        read = await database.stream("SELECT id FROM t", timeout_ms=100)
        changed = await database.stream("DELETE FROM t WHERE id < 3 RETURNING id", timeout_ms=100)
        assert (read.committed, changed.committed) == (False, True)
        await trio.sleep(1)
        with pytest.raises(QueryCanceled):
            await read.__anext__()
        assert [sorted(page) async for page in changed] == [[(1,), (2,)]]


# --- numbers ---


async def test_concurrent_inserts_get_numbers_of_their_own() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE s (id SERIAL PRIMARY KEY, who INT)")

        async def insert(who: int) -> None:
            for _ in range(10):
                await database.execute(f"INSERT INTO s (who) VALUES ({who}), ({who}), ({who})")

        async with trio.open_nursery() as nursery:
            for who in range(10):
                nursery.start_soon(insert, who)
        assert await values(database, "SELECT id FROM s ORDER BY id") == list(range(1, 301))


async def test_a_read_may_draw_numbers_and_a_stream_as_well() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        assert await values(database, "SELECT nextval('s') FROM generate_series(1, 1000)") == list(
            range(1, 1001)
        )
        stream = await database.stream("SELECT nextval('s') FROM generate_series(1, 1000)")
        drawn = [row[0] async for page in stream for row in page]
        assert drawn == list(range(1001, 2001))


async def test_definitions_sequences_and_row_ids_survive_a_restart() -> None:
    log = MemoryLog()
    async with opened_sql(log) as database:
        await database.execute("CREATE TYPE mood AS ENUM ('sad', 'glad')")
        await database.execute(
            "CREATE TABLE t (id SERIAL, how mood DEFAULT 'glad', n INT CHECK (n > 0),"
            " m INT GENERATED ALWAYS AS (n * 2) STORED)"
        )
        await database.execute("CREATE VIEW v AS SELECT id, m FROM t WHERE how > 'sad'")
        await database.execute("INSERT INTO t (n) VALUES (1), (2)")
    async with opened_sql(log) as database:
        await database.execute("INSERT INTO t (n) VALUES (3)")
        ids = await values(database, "SELECT id FROM v ORDER BY m")
        assert ids[:2] == [1, 2] and ids[2] not in ids[:2]
        with pytest.raises(QserverError, match="violates check constraint"):
            await database.execute("INSERT INTO t (n) VALUES (0)")


# --- conflicts ---


async def test_changes_that_meet_are_all_made() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE counters (id INT PRIMARY KEY, n INT)")
        await database.execute("INSERT INTO counters VALUES (1, 0)")

        async def count() -> None:
            for _ in range(5):
                await database.execute("UPDATE counters SET n = n + 1 WHERE id = 1")

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(count)
        assert await values(database, "SELECT n FROM counters") == [100]


async def test_rows_that_come_to_refer_to_a_deleted_one_meanwhile_are_found() -> None:
    """Either the parent goes, or the child comes: never both."""
    for _ in range(5):
        async with opened_sql() as database:
            await database.execute("CREATE TABLE p (id INT PRIMARY KEY)")
            await database.execute("CREATE TABLE c (p INT REFERENCES p)")
            await database.execute("INSERT INTO p SELECT * FROM generate_series(1, 50)")

            async def attempt(sql: str, database: SqlDatabase = database) -> None:
                try:
                    await database.execute(sql)
                except QserverError as error:
                    assert error.code == "23503"

            async with trio.open_nursery() as nursery:
                for number in range(1, 51):
                    nursery.start_soon(attempt, f"DELETE FROM p WHERE id = {number}")
                    nursery.start_soon(attempt, f"INSERT INTO c VALUES ({number})")
            orphans = await values(
                database, "SELECT c.p FROM c LEFT JOIN p ON p.id = c.p WHERE p.id IS NULL"
            )
            assert orphans == []
