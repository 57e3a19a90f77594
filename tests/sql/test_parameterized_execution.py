"""A plan that was made for other literals answers as if there were no plans that are kept.

Statements are glued from templates and literals of all kinds. Each is run three times: with every
literal a constant of its own plan, with a plan made for it, and with one made for another
statement of the same fingerprint.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.functions.context import Context
from qserver.limits import STATEMENT_MEMORY_BYTES_MAX
from qserver.query.planning import make_plan
from qserver.query.sql_database import SqlDatabase
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.parser import parse
from qserver.storage.transaction import Transaction
from tests.sql.databases import NOON, opened_sql

SETUP = (
    "CREATE TABLE t (a INT PRIMARY KEY, b INT, n NUMERIC, s TEXT, d DATE, v INT[])",
    "INSERT INTO t VALUES (1, 1, 1.50, 'it''s', '2024-02-29', '{1,2}'), (2, NULL, -2, '', NULL,"
    " NULL), (3, 7, 0, 'x', '2023-11-14', '{}'), (-4, 1, NULL, '\\', '0001-01-01', '{NULL,7}')",
    "CREATE INDEX t_b ON t (b)",
)

LITERALS = {
    "whole": ("0", "1", "7", "2147483647", "2147483648", "9223372036854775808"),
    "number": ("0.5", "1.50", ".5", "1e1", "2.", "99999999999999999999.5"),
    "text": ("'x'", "''", "'it''s'", "'1'", "'--'", "'\\'", "'/*'", "' 7 '", "'2024-02-29'"),
    "escaped": (r"E'\\'", r"E'it\'s'", r"e'\x41'", r"E''", r"E'\u00e9'"),
    "dollars": ("$$it's$$", "$q$ $$ 1 $q$", "$$$$", "$$7$$"),
    "day": ("'2024-02-29'", "'today'", "'20231114'", "'yesterday'", "'never'"),
}
TEMPLATES = (
    'SELECT a, {any} AS "it\'s 1" FROM t WHERE b = {whole} OR s = {any}',
    "SELECT {whole}-{whole}, -{whole}, - {number}, {whole}%{whole}, a+{whole} FROM t -- 1 'x",
    "SELECT a /* 2 'y' /* $$ */ */ FROM t WHERE a IN ({whole}, -{whole}, {whole})",
    "SELECT a FROM t WHERE n BETWEEN {number} AND {number}*{whole} ORDER BY a LIMIT {whole}",
    "SELECT {any}::text || {any}, {whole}::text, {number}::int, CAST({any} AS varchar(3)) FROM t",
    "SELECT a FROM t WHERE d = {day} OR d = DATE {day} OR d > {day}::timestamp",
    "SELECT a + {whole} AS x, count(*) FROM t GROUP BY a + {whole} HAVING count(*) < {whole}",
    "SELECT CASE b WHEN {whole} THEN {any} ELSE s END, s LIKE {any}, COALESCE(s, {any}) FROM t",
    "SELECT ARRAY[{whole}, {whole}], v[{whole}], v || {whole}, {any} = ANY(ARRAY[s]) FROM t",
    'SELECT "a", substring(s FROM {whole}), s || {escaped} || {dollars} FROM t ORDER BY {whole}',
    "SELECT x FROM (VALUES ({any}, {whole}), ({any}, {whole})) AS v(x, y) WHERE y <> {whole}",
    "SELECT a FROM t WHERE (a, b) = ({whole}, {whole}) OR a = (SELECT {whole} WHERE {any} = s)",
    "SELECT a, sum(b) OVER (ORDER BY a ROWS {whole} PRECEDING) + {number} FROM t",
    "SELECT {any} UNION SELECT s FROM t WHERE a < {whole} UNION ALL SELECT {any}",
    "SELECT interval {any}, a::numeric(3,{whole}), round(n, {whole}) FROM t",
)
PLAIN = ("text", "escaped", "dollars")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two statements that differ in the values of their literals only."""
    parts = draw(st.sampled_from(TEMPLATES)).split("{")
    texts = [parts[0], parts[0]]
    for part in parts[1:]:
        kind, _, rest = part.partition("}")
        if kind == "any":
            kind = draw(st.sampled_from(PLAIN))
        for at in (0, 1):
            texts[at] += draw(st.sampled_from(LITERALS[kind])) + rest
    return texts[0], texts[1]


async def kept_plan(database: SqlDatabase, sql: str) -> Any:
    try:
        result = await database.execute(sql)
    except QserverError:
        return "an error"  # of several that a statement has, which comes first may differ
    return result.columns, list(map(str, result.types)), sorted(map(repr, result.rows))


async def plan_of_its_own(database: SqlDatabase, sql: str) -> Any:
    """What the statement answers if none of its literals is parameterized."""
    snapshot = database.database.snapshots.take()
    assert snapshot is not None
    now = datetime.fromtimestamp(NOON, UTC)
    context = Context(now, Random(0), lambda: None, STATEMENT_MEMORY_BYTES_MAX, lambda: 1)
    try:
        parsed = parse(sql, repeat=False)
        literals = Literals(parsed.literals, fixed=True)
        compiled = make_plan(parsed.statement, literals, snapshot.catalog, snapshot).compiled
        pages = compiled.run(Transaction(snapshot), parsed.literals, context)
        rows = [row for page in pages if page is not None for row in page]
    except QserverError:
        return "an error"  # of several that a statement has, which comes first may differ
    types = [str(column.type) for column in compiled.columns]
    return tuple(column.name for column in compiled.columns), types, sorted(map(repr, rows))


async def compare(statements: list[tuple[str, str]]) -> None:
    async with opened_sql() as database:
        for sql in SETUP:
            await database.execute(sql)
        for one, other in statements:
            for sql in (one, other, one):
                kept = await kept_plan(database, sql)
                assert kept == await plan_of_its_own(database, sql), sql


@pytest.mark.long
@given(st.lists(pairs(), min_size=1, max_size=8))
@example([("SELECT a FROM t WHERE d = '2024-02-29'", "SELECT a FROM t WHERE d = 'today'")])
@example([("SELECT a FROM t ORDER BY 1", "SELECT a FROM t ORDER BY 2")])
@settings(max_examples=15, deadline=None)
def test_kept_plans_answer_as_plans_with_constants_do(statements: list[tuple[str, str]]) -> None:
    trio.run(compare, statements)
