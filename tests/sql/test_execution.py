"""How statements run: what counts as read, when they yield, and what stops them."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.errors import OutOfMemory, QueryCanceled
from qserver.limits import ROW_ID_BLOCK
from qserver.query.cursor import END
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.sql_database import SqlDatabase
from qserver.query.statements import StatementRun
from qserver.storage.transaction import Transaction
from qserver.values.keys import NULL_KEY
from tests.sql.databases import opened_sql


async def with_rows(database: SqlDatabase, rows: int = 100) -> None:
    await database.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, s TEXT)")
    await database.execute("CREATE INDEX t_n ON t (n)")
    await database.execute(
        f"INSERT INTO t SELECT g, g % 10, 'row ' || g FROM generate_series(1, {rows}) AS g"
    )


def begun(database: SqlDatabase, sql: str) -> tuple[Transaction, StatementRun, Any]:
    """A statement that has not run yet, on a transaction that can be looked at."""
    snapshot = database.database.snapshots.take()
    assert snapshot is not None
    transaction = Transaction(snapshot)
    run = StatementRun(database.planner, transaction, database._environment.request())
    return transaction, run, iter(run.start(PreparedStatement(sql, None)).step, END)


def read_by(database: SqlDatabase, sql: str) -> Transaction:
    transaction, _, steps = begun(database, sql)
    list(steps)
    return transaction


def keys_of(transaction: Transaction) -> list[tuple[int, tuple[Any, ...]]]:
    return sorted((tree, key) for tree, keys in transaction.keys.items() for key in keys)


# --- what counts as read ---


async def test_a_look_up_by_key_reads_one_key_and_no_range() -> None:
    async with opened_sql() as database:
        await with_rows(database)
        transaction = read_by(database, "SELECT s FROM t WHERE id = 7")
        table = transaction.table("t")
        assert keys_of(transaction) == [(table.id, (7,))]
        assert transaction.ranges == []


async def test_a_key_without_a_row_is_read_too() -> None:
    async with opened_sql() as database:
        await with_rows(database)
        transaction = read_by(database, "SELECT s FROM t WHERE id IN (7, 5000)")
        table = transaction.table("t")
        assert keys_of(transaction) == [(table.id, (7,)), (table.id, (5000,))]
        assert transaction.ranges == []


async def test_an_index_reads_a_range_of_its_own_and_the_keys_of_rows() -> None:
    async with opened_sql() as database:
        await with_rows(database)
        transaction = read_by(database, "SELECT s FROM t WHERE n = 3")
        table = transaction.table("t")
        (index,) = table.indexes
        (scanned,) = transaction.ranges
        assert scanned.tree == index.id
        assert (3, 13) in scanned
        assert (2, 99) not in scanned and (4, 1) not in scanned
        assert keys_of(transaction) == [(table.id, (at,)) for at in range(3, 100, 10)]


async def test_a_scan_reads_what_satisfies_its_condition() -> None:
    async with opened_sql() as database:
        await with_rows(database)
        transaction = read_by(database, "SELECT id FROM t WHERE n > 7 AND s <> 'row 8'")
        table = transaction.table("t")
        (scanned,) = transaction.ranges
        assert (scanned.tree, scanned.low, scanned.high) == (table.id, None, None)
        assert scanned.predicate is not None
        accepted = [
            row[0] for row in Transaction(transaction.snapshot).rows(table, None, None, None)
        ]
        accepted = [at for at in accepted if scanned.predicate((at, at % 10, f"row {at}"))]
        assert accepted == [at for at in range(1, 101) if at % 10 > 7 and at != 8]
        assert not scanned.predicate((1, None, "x"))
        assert keys_of(transaction) == []


async def test_a_range_of_keys_reads_only_that_range() -> None:
    async with opened_sql() as database:
        await with_rows(database)
        transaction = read_by(database, "SELECT s FROM t WHERE id >= 10 AND id < 20")
        (scanned,) = transaction.ranges
        assert [at for at in range(1, 101) if (at,) in scanned] == list(range(10, 20))


async def test_a_count_reads_which_keys_are_there() -> None:
    async with opened_sql() as database:
        await with_rows(database)
        transaction = read_by(database, "SELECT count(*) FROM t WHERE id >= 10 AND id < 20")
        (scanned,) = transaction.ranges
        assert [at for at in range(1, 101) if (at,) in scanned] == list(range(10, 20))
        assert scanned.counted and keys_of(transaction) == []
        transaction = read_by(database, "SELECT count(*) FROM t")
        (scanned,) = transaction.ranges
        assert (scanned.low, scanned.high, scanned.counted) == (None, None, True)


async def test_an_extreme_reads_no_further_than_the_row_that_has_it() -> None:
    async with opened_sql() as database:
        await with_rows(database)
        await database.execute("INSERT INTO t VALUES (101, NULL, NULL), (102, NULL, NULL)")
        transaction = read_by(database, "SELECT min(id), max(n) FROM t")
        table = transaction.table("t")
        (index,) = table.indexes
        least, greatest = sorted(transaction.ranges, key=lambda each: each.tree)
        assert (least.tree, greatest.tree) == (table.id, index.id)
        assert (0,) in least and (1,) in least and (2,) not in least
        assert (9, 98) not in greatest and (9, 99) in greatest and (10, 1) in greatest
        assert (NULL_KEY, 101) not in greatest


@pytest.mark.parametrize("length", [-2, 0, 3, 511, 512, 1023, 1024, 5000])
async def test_a_text_is_made_the_same_short_and_long(length: int) -> None:
    """A short one is made directly, a long one is charged first."""
    sql = """SELECT repeat(s, n), lpad(s, n, 'é-'), rpad(s, n, '-'), lpad(s, n)
        FROM (VALUES ('ab', $1::int), (NULL, 3), ('x', NULL)) AS v(s, n)"""
    most, missing = max(length, 0), max(length - 2, 0)
    async with opened_sql() as database:
        rows = (await database.execute(sql, [length])).rows
        assert rows[0] == (
            "ab" * length,
            ("é-" * missing)[:missing] + "ab"[:most],
            "ab"[:most] + "-" * missing,
            " " * missing + "ab"[:most],
        )
        assert rows[1:] == [(None,) * 4] * 2


async def test_an_argument_that_decides_how_long_a_text_is_is_computed_once() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SEQUENCE s")
        sql = "SELECT repeat(nextval('s')::text, 2), lpad('', nextval('s')::int, 'x')"
        assert (await database.execute(sql)).rows == [("11", "xx")]


# --- yielding, and limits ---


async def test_a_long_scan_gives_way_before_it_has_a_row() -> None:
    async with opened_sql() as database:
        await with_rows(database, 10_000)
        _, _, steps = begun(database, "SELECT sum(id) FROM t WHERE s LIKE '%9%'")
        pages = list(steps)
        assert pages.count(None) >= 3
        assert len([page for page in pages if page]) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t WHERE s LIKE '%9%'",
        "SELECT a.id FROM t AS a, t AS b WHERE a.s < b.s ORDER BY 1",
        "UPDATE t SET n = n + 1",
    ],
)
async def test_a_deadline_stops_a_statement(sql: str) -> None:
    async with opened_sql() as database:
        await with_rows(database, 5000)
        with pytest.raises(QueryCanceled) as caught:
            await database.execute(sql, timeout_ms=0)
        assert caught.value.code == "57014"
        assert (await database.execute("SELECT sum(n) FROM t")).rows == [(22_500,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, s FROM t ORDER BY s",
        "SELECT s, count(*) FROM t GROUP BY s",
        "SELECT DISTINCT s FROM t",
        "SELECT count(*) FROM t AS a JOIN t AS b ON a.s = b.s",
        "SELECT s FROM t UNION SELECT s FROM t",
        "SELECT sum(id) OVER (ORDER BY s) FROM t",
        "DELETE FROM t",
        "UPDATE t SET n = 1",
    ],
)
async def test_the_memory_of_a_statement_is_bounded(sql: str) -> None:
    async with opened_sql() as database:
        await with_rows(database, 5000)
        _, run, steps = begun(database, sql)
        run.context.memory_bytes_most = 100_000
        with pytest.raises(OutOfMemory) as caught:
            list(steps)
        assert caught.value.code == "53200"


# --- literals and parameters ---


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT id, s FROM t WHERE id = {}", (5,)),
        ("SELECT id FROM t WHERE n = {} AND id > {} ORDER BY id", (3, 50)),
        ("SELECT id + {}, s || {} FROM t WHERE id BETWEEN {} AND {} ORDER BY 1", (1, "!", 3, 9)),
        ("SELECT id FROM t WHERE s IN ({}, {}) ORDER BY id", ("row 1", "row 9")),
        ("SELECT id FROM t WHERE id IN ({}, {}, {}) ORDER BY id DESC LIMIT {}", (1, 2, 3, 2)),
        (
            "SELECT n, count(*) FROM t WHERE id <= {} GROUP BY n HAVING count(*) > {} ORDER BY 1",
            (25, 2),
        ),
    ],
)
async def test_parameters_answer_as_literals_do(sql: str, values: tuple[Any, ...]) -> None:
    async with opened_sql() as database:
        await with_rows(database)
        literal = sql.format(*(repr(value) for value in values))
        numbered = sql.format(*(f"${number}" for number in range(1, len(values) + 1)))
        expected = (await database.execute(literal)).rows
        assert expected
        for _ in range(2):  # the second time, the plan is kept
            assert (await database.execute(numbered, list(values))).rows == expected


async def test_many_rows_at_once_are_as_many_rows_one_by_one() -> None:
    rows = [(at, None if at % 3 else at * 2, f"it''s {at}") for at in range(50)]
    texts = [f"({a}, {'NULL' if b is None else b}, '{c}')" for a, b, c in rows]
    async with opened_sql() as database:
        for name in ("one", "many"):
            await database.execute(f"CREATE TABLE {name} (a INT PRIMARY KEY, b BIGINT, c TEXT)")
        for text in texts:
            await database.execute(f"INSERT INTO one VALUES {text}")
        done = await database.execute(f"INSERT INTO many VALUES {', '.join(texts)}")
        assert done.affected_rows == 50
        one, many = [
            (await database.execute(f"SELECT * FROM {name} ORDER BY a")).rows
            for name in ("one", "many")
        ]
        assert one == many
        assert one[3] == (3, 6, "it's 3")


@pytest.mark.half
async def test_a_statement_may_insert_more_rows_than_row_ids_are_reserved_at_once() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE first (a INT)")
        await database.execute("INSERT INTO first VALUES (1)")
        count = ROW_ID_BLOCK + 1
        sql = f"CREATE TABLE t AS SELECT 1 AS a FROM generate_series(1, {count})"
        result = await database.execute(sql, timeout_ms=60_000)
        assert result.affected_rows == count


# --- the first rows of a scan ---


@pytest.mark.parametrize("condition", ["", "WHERE n > 4", "WHERE id > 100 AND n = 3"])
@pytest.mark.parametrize("order", ["", "ORDER BY id", "ORDER BY id DESC"])
async def test_a_limit_cuts_the_rows_that_there_are_without_it(condition: str, order: str) -> None:
    async with opened_sql() as database:
        await with_rows(database, 700)
        query = f"SELECT * FROM t {condition} {order}"
        everything = (await database.execute(query)).rows
        for limit, offset in ((0, 0), (1, 0), (7, 0), (300, 0), (5000, 0), (10, 3), (200, 150)):
            cut = f"{query} LIMIT {limit} OFFSET {offset}"
            rows = (await database.execute(cut)).rows
            wanted = everything[offset : offset + limit]
            if order:
                assert rows == wanted
            else:  # any will do, but none twice
                assert len(rows) == len(set(rows)) == len(wanted)
                assert set(rows) <= set(everything)
