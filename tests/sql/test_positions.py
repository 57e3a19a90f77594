"""An error says where in the text it is, as PostgreSQL does: also where a kept plan meets it."""

from __future__ import annotations

import pytest

from qserver.errors import QserverError
from qserver.query.sql_database import SqlDatabase, Statement
from tests.sql.databases import opened_sql

POSITIONS = [
    ("SELECT 1, 'abc'::integer", 11),
    ("SELECT CAST('abc' AS integer)", 13),
    ("SELECT integer 'abc'", 16),
    ("SELECT date '2020-13-01'", 13),
    ("SELECT '{1,x}'::int[]", 8),
    ("SELECT 1 + 'abc'", 12),
    ("SELECT * FROM t WHERE a = 'abc'", 27),
    ("SELECT 7, 8, greatest(1, 'abc')", 26),
    ("SELECT 1 UNION SELECT 'abc'", 23),
    ("SELECT 1 IN (1, 'abc')", 17),
    ("SELECT * FROM t LIMIT 'abc'", 23),
    ("INSERT INTO t (b, a) VALUES ('x', 'abc')", 35),
    ("UPDATE t SET a = 'abc'", 18),
    ("INSERT INTO t (a, nope) VALUES (1, 2)", 19),
    ("INSERT INTO t (a, a) VALUES (1, 2)", 19),
    ("INSERT INTO t (a, b) VALUES (1)", 19),
    ("INSERT INTO t (a, b) SELECT 1", 19),
    ("INSERT INTO t (a) VALUES (1, 2)", 30),
    ("UPDATE t SET (a, nope) = (1, 2)", 18),
    ("MERGE INTO t USING (VALUES (1)) s(x) ON a = x "
     "WHEN NOT MATCHED THEN INSERT (nope) VALUES (1)", 77),
    ("SELECT coalesce(1, 'abc')", 20),
    ("INSERT INTO t VALUES (1, 'x'), ('abc', 'y')", 33),
    ("INSERT INTO t VALUES ('1', NULL), ('2', 'it''s'), ('abc', 'y')", 52),
    ("INSERT INTO t VALUES ('abc', 'x'), ('2', 'y')", 23),
    ("WITH s AS (SELECT 'q') INSERT INTO t VALUES ('1', 'x'), ('abc', 'y')", 58),
    ("INSERT INTO t VALUES ('1', 'x'), ('2', 'y') RETURNING 'abc'::int", 55),
    ("INSERT INTO t VALUES (DATE '2024-01-01', 'y')", 28),
    ("INSERT INTO t (b, a) VALUES ('x', true), ('y', false)", 35),
    ("VALUES (1, 'x'), (2, 'y'), (DATE '2024-01-01', 'z')", 34),
    ("CREATE TABLE q (a int DEFAULT 'abc')", 31),
    ("CREATE TABLE q (a int, b int DEFAULT (1 + ( nope )))", 45),
    ("CREATE TABLE q (a int DEFAULT - 'x'::int)", 33),
    ("CREATE TABLE q (a int, b int CHECK (b > 0), CHECK (a > 1 AND  nope))", 63),
    ("CREATE TABLE q (a int, CHECK (  (a + 5)))", 34),
    ("CREATE TABLE q (a int, b int GENERATED ALWAYS AS (a + nope) STORED)", 55),
]  # fmt: skip
"""Each as PostgreSQL 16 says."""


async def position_of_error(database: SqlDatabase, sql: str) -> int | None:
    with pytest.raises(QserverError) as raised:
        await database.execute(sql)
    return raised.value.position


@pytest.mark.parametrize(("sql", "position"), POSITIONS)
async def test_an_error_says_where_it_is(sql: str, position: int) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)")
        await database.execute("INSERT INTO t VALUES (1, 'x')")
        for blanks in ("", "  "):  # the second time by a kept plan, and further to the right
            assert await position_of_error(database, blanks + sql) == len(blanks) + position
        with pytest.raises(QserverError) as raised:
            await database.transaction([Statement("SELECT 1"), Statement(sql)])
        assert (raised.value.statement, raised.value.position) == (1, position)


async def test_an_altered_table_says_where_it_is_wrong_and_an_insert_does_not() -> None:
    """PostgreSQL has no position for the first three."""
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a INT, b INT DEFAULT 1)")
        for sql, position in (
            ("ALTER TABLE t ADD COLUMN c INT DEFAULT 'abc'", 40),
            ("ALTER TABLE t ALTER a SET DEFAULT nope", 35),
            ("ALTER TABLE t ADD CHECK (a > 0 AND nope)", 36),
        ):
            assert await position_of_error(database, sql) == position
        await database.execute("ALTER TABLE t ALTER b SET DEFAULT 1 / 0")
        assert await position_of_error(database, "INSERT INTO t (a) VALUES (1)") is None


async def test_a_literal_among_hundreds_says_where_it_is() -> None:
    numbers = ", ".join("'1'::int" for _ in range(300))
    async with opened_sql() as database:
        position = await position_of_error(database, f"SELECT {numbers}, 'x'::int")
    assert position == len(f"SELECT {numbers}, ") + 1


async def test_a_kept_plan_says_where_the_literal_of_this_text_stands() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)")
        await database.execute("SELECT 'a long text', '1'::integer")
        for sql, position in (
            ("SELECT 'short', 'x'::integer", 17),
            ("SELECT 'a much longer one', 'x'::integer", 29),
        ):
            assert await position_of_error(database, sql) == position
        await database.execute("INSERT INTO t VALUES ('1', 'x')")
        assert await position_of_error(database, "INSERT INTO t VALUES ('z', 'x')") == 23
