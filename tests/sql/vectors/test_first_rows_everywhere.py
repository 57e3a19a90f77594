"""The first rows of a vector tree are those of row code wherever a query stands: in others, in
subqueries of each row, in cursors and own changes; and with whatever number of rows it is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from qserver.engine.work import run
from qserver.errors import QserverError
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from tests.query.connections import Connection
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.vectors.test_first_rows_of_trees import FirstRowsWriter, rows_dropped
from tests.sql.vectors.test_trees import by_rows, filled, trees_everywhere

QUERIES = 12
EXPRESSIONS = (
    *("t.i4 * 2", "-t.i8", "t.n2 * u.n2", "t.n2 * 1.50", "t.n9 - u.n9", "abs(u.i2)"),
    *("CASE WHEN t.i2 > 1 THEN u.i4 ELSE 0 END", "CASE WHEN t.i4 > 2 THEN NULL ELSE 5 END"),
    *("CASE WHEN t.n2 > 1 THEN t.n2 ELSE t.n9 END", "CASE WHEN t.bo THEN t.da END"),
    *("CASE WHEN t.i4 > -100 THEN 1 ELSE 2 END", "CASE WHEN t.i4 > -100 THEN t.fl END"),
    *("CASE WHEN t.i4 > 2 THEN NULL ELSE true END", "CASE WHEN t.bo THEN 1.5::float8 END"),
    *("coalesce(t.i2, t.i4)", "coalesce(u.n2, 0.00)", "t.bo AND u.bo", "t.i2 IS NULL"),
    *("t.tx < u.tx", "t.i4 = u.i4", "left(t.tx, 1)", "lower(u.vc)", "length(t.tx)"),
    *("t.fl + 1", "t.fl * u.fl", "-t.fl", "t.i4::numeric", "t.i2 % 3", "t.da::timestamp"),
    *("10 / (t.i4 - 5)", "t.i4 / u.i2", "substring(t.vc, 1, t.i4)", "t.fl / u.fl", "t.re"),
    *("ARRAY[t.i4, u.i4]", "t.tx || u.tx", "extract(year FROM t.ts)", "t.ts - u.ts"),
)
"""Keys: some raise, some only row code computes, one may be the same for all rows."""

COLUMNS = ("i2", "i4", "i8", "n2", "n9", "bo", "da", "ts", "tz", "tx", "vc", "fl", "re")
LIMITS = (0, 1, 2, 3, 8, 30, 1000, None)


class Writer(FirstRowsWriter):
    """Queries with the columns `one` and `other`; their last parameter is that of LIMIT."""

    def asked(self) -> str:
        self.parameters = []
        text = self.bound(self.chance.choice((self._by_columns, self._distinct, self._by_groups))())
        self.parameters.append(self.chance.choice(LIMITS))
        return f"{text} LIMIT ${len(self.parameters)}"

    def _keys(self, unique: str) -> str:
        choice = self.chance.choice
        keys = []
        for _ in range(choice((1, 1, 2, 3))):
            column = f"{choice('tu')}.{choice(COLUMNS)}"
            keys.append(choice((column, column, choice(EXPRESSIONS))))
        return self._in_order(keys, unique)

    def _in_order(self, keys: list[str], unique: str) -> str:
        choice = self.chance.choice
        places = ("", "", " NULLS FIRST", " NULLS LAST")
        by = [key + choice(("", " DESC")) + choice(places) for key in keys]
        return f"ORDER BY {', '.join([*by, unique])}{choice(('', '', ' OFFSET 2'))}"

    def _tables(self) -> str:
        kind = self.chance.choice(("JOIN", "LEFT JOIN"))
        if self.chance.random() < 0.3:
            word = self.chance.choice(("EXISTS", "NOT EXISTS"))
            more = self.chance.choice(("", " AND w.i2 > t.i2", " AND w.tx <> u.tx"))
            inner = f"SELECT 1 FROM w WHERE {self.tied('t', 'w')}{more}"
            return f"t {kind} u ON {self.tied()} WHERE {word} ({inner})"
        if self.chance.random() < 0.3:
            word = self.chance.choice(("IN", "NOT IN"))
            column = self.chance.choice(("i2", "i4", "n2", "tx", "da"))
            return f"t {kind} u ON {self.tied()} WHERE t.{column} {word} (SELECT {column} FROM w)"
        return f"t {kind} u ON {self.tied()}{self.where('tu')}"

    def _by_columns(self) -> str:
        other = self.chance.choice(("u.n2", "t.tx", "t.fl", "10 / t.i4"))
        source = self._tables()
        return f"SELECT t.id AS one, {other} AS other FROM {source} {self._keys('t.id, u.id')}"

    def _distinct(self) -> str:
        by = self._in_order([self.chance.choice(("t.i2", "u.n2"))], "t.i2, u.n2")
        return f"SELECT DISTINCT t.i2 AS one, u.n2 AS other FROM {self._tables()} {by}"

    def _by_groups(self) -> str:
        call, key = self.a_call("tu"), self.chance.choice(("i4", "n2", "tx"))
        having = self.chance.choice(("", "", " HAVING count(*) > 1"))
        more = self.chance.sample((call, "count(*)", "sum(u.n2)", "avg(t.n2)", f"t.{key}"), 2)
        source = f"t JOIN u ON {self.tied()}{self.where('tu')}"
        by = self._in_order(more, f"t.{key}")
        return f"SELECT t.{key} AS one, {call} AS other FROM {source} GROUP BY t.{key}{having} {by}"


Place = Callable[[SqlDatabase, str, list[Any]], Awaitable[Any]]


async def rows(database: SqlDatabase, sql: str, parameters: list[Any]) -> Any:
    return (await database.execute(sql, parameters)).rows


async def with_other_limits(database: SqlDatabase, sql: str, parameters: list[Any]) -> Any:
    found = []
    for most in (*LIMITS, 2, -1, 1):
        try:
            found.append(await rows(database, sql, [*parameters[:-1], most]))
        except QserverError as error:
            found.append(error.code)
    return found


async def in_others(database: SqlDatabase, sql: str, parameters: list[Any]) -> Any:
    """In a subquery, a common table, twice in a UNION, and beside another table."""
    last = f"${len(parameters)}"
    other = sql.replace(last, f"({last} + 1)")
    return [
        await rows(database, each, parameters)
        for each in (
            f"SELECT count(*), count(other), max(one) FROM ({sql}) x",
            f"WITH x AS ({sql}) SELECT * FROM x UNION ALL (SELECT * FROM x WHERE other IS NULL)",
            f"({sql}) UNION ALL ({other}) UNION ALL ({sql})",
            f"SELECT x.one, w.id FROM ({sql}) x, w WHERE w.id < 3 ORDER BY w.id, x.one LIMIT 7",
            f"SELECT (SELECT array_agg(one) FROM ({sql}) x), EXISTS ({other})",
        )
    ]


async def of_each_row(database: SqlDatabase, sql: str, parameters: list[Any]) -> Any:
    """A subquery that is run for each row, with as many rows as that row says."""
    several = sql.replace(f"LIMIT ${len(parameters)}", "LIMIT v.id % 4")
    one = sql.replace(f"LIMIT ${len(parameters)}", "LIMIT (v.id + 1) % 2")
    given = parameters[:-1]
    return [
        await rows(database, each, given)
        for each in (
            f"SELECT v.id, x.one FROM w v, LATERAL ({several}) x WHERE v.id < 7",
            f"SELECT v.id, (SELECT one FROM ({one}) x) FROM w v WHERE v.id < 7",
        )
    ]


async def by_a_cursor(database: SqlDatabase, sql: str, parameters: list[Any]) -> Any:
    connection, found = Connection(database), []
    await connection.run("BEGIN")
    try:
        await connection.run("DELETE FROM t WHERE id % 3 = 0")
        await connection.run("UPDATE u SET i2 = 5, tx = 'ä' || id, n2 = n2 + 1 WHERE id % 2 = 0")
        await connection.run(f"DECLARE c SCROLL CURSOR FOR {sql}", parameters)
        await connection.run("UPDATE t SET i4 = 1, i2 = 1, tx = 'other', fl = 7")
        for move in ("2", "BACKWARD 1", "ALL", "BACKWARD 3", "LAST", "FIRST", "ABSOLUTE -2"):
            found.append((await connection.run(f"FETCH {move} FROM c")).rows)
        found.append((await connection.run(sql, parameters)).rows)
        return found
    finally:
        await connection.run("ROLLBACK")


async def after_changes(database: SqlDatabase, sql: str, parameters: list[Any]) -> Any:
    """Streamed before and after changes, and as of before them; the changes are undone."""
    before = (await database.execute("SELECT 1")).version
    found = [await streamed(database, sql, parameters)]
    await database.execute("UPDATE t SET i4 = -i4, n2 = -n2, fl = -fl WHERE id % 3 = 0")
    try:
        found.append(await streamed(database, sql, parameters))
        done = await run(database.perform((Statement(sql, parameters),), RunOptions(as_of=before)))
        found.append(done.results[0].rows)
    finally:
        await database.execute("UPDATE t SET i4 = -i4, n2 = -n2, fl = -fl WHERE id % 3 = 0")
    return found


async def streamed(database: SqlDatabase, sql: str, parameters: list[Any]) -> Any:
    stream = await database.stream(sql, parameters)
    return [row async for page in stream for row in page]


async def analyzed(database: SqlDatabase, sql: str, parameters: list[Any]) -> Any:
    """EXPLAIN ANALYZE runs it too; the rows that it gives are those counted above all parts."""
    plan = await rows(database, f"EXPLAIN ANALYZE {sql}", parameters)
    found = await rows(database, sql, parameters)
    assert f"rows={len(found)}" in plan[0][0].replace("actual ", ""), plan
    return found


PLACES = (*(rows, with_other_limits, in_others, of_each_row, by_a_cursor, after_changes, analyzed),)


async def outcome(place: Place, database: SqlDatabase, sql: str, parameters: list[Any]) -> str:
    try:
        return repr(await place(database, sql, parameters))
    except QserverError as error:
        return f"error {error.code}: {error.message}"


@pytest.mark.long
@pytest.mark.parametrize("seed", sampled(range(12), 2))
@pytest.mark.parametrize("place", PLACES)
async def test_first_rows_are_those_of_row_code(place: Place, seed: int) -> None:
    writer = Writer(Random(seed))
    with trees_everywhere() as counts, rows_dropped() as dropped:
        async with opened_sql() as database:
            database.database.keep_history(3600.0)
            await filled(database, writer)
            for _ in range(QUERIES):
                sql, given = writer.asked(), list(writer.parameters)
                by_tree = await outcome(place, database, sql, given)
                expected = await outcome(place, by_rows(database), sql, given)
                if not (by_tree.startswith("[") and expected.startswith("error")):
                    assert by_tree == expected, (sql, given)
    if writer.extremes == 0.0:
        assert counts["answered"] and sum(dropped)
