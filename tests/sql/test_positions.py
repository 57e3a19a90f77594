"""An error says where in the text it is, as PostgreSQL does: also where a kept plan meets it."""

from __future__ import annotations

import pytest

from qserver.engine.sql_gateway import Statement
from qserver.errors import QserverError
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
]  # fmt: skip
"""Each as PostgreSQL 16 says."""


@pytest.mark.parametrize(("sql", "position"), POSITIONS)
async def test_an_error_says_where_it_is(sql: str, position: int) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)")
        await database.execute("INSERT INTO t VALUES (1, 'x')")
        for blanks in ("", "  "):  # the second time by a kept plan, and further to the right
            with pytest.raises(QserverError) as raised:
                await database.execute(blanks + sql)
            assert raised.value.position == len(blanks) + position
        with pytest.raises(QserverError) as raised:
            await database.transaction([Statement("SELECT 1"), Statement(sql)])
        assert (raised.value.statement, raised.value.position) == (1, position)


async def test_a_kept_plan_says_where_the_literal_of_this_text_stands() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)")
        await database.execute("SELECT 'a long text', '1'::integer")
        for sql, position in (
            ("SELECT 'short', 'x'::integer", 17),
            ("SELECT 'a much longer one', 'x'::integer", 29),
        ):
            with pytest.raises(QserverError) as raised:
                await database.execute(sql)
            assert raised.value.position == position
        await database.execute("INSERT INTO t VALUES ('1', 'x')")
        with pytest.raises(QserverError) as raised:
            await database.execute("INSERT INTO t VALUES ('z', 'x')")
        assert raised.value.position == 23
