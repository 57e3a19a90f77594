"""A view means what it meant when it was made, whatever columns its tables get."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from qserver.errors import FeatureNotSupported
from qserver.query.sql_database import SqlDatabase
from qserver.query.statements import StatementRun
from tests.sql.databases import opened_sql

TABLES = (
    "create table t (id int primary key, a int)",
    "create table u (id int, k int)",
    "insert into t values (1, 10)",
    "insert into u values (1, 7)",
)


async def text_of(sql: SqlDatabase, view: str) -> str:
    """Its query, which pg_views shows as PostgreSQL does, behind a blank and with a semicolon."""
    found = await sql.execute("select definition from pg_views where viewname = $1", [view])
    shown = str(found.rows[0][0])
    assert shown.startswith(" ") and shown.endswith(";")
    return shown[1:-1]


async def made(sql: SqlDatabase, query: str) -> None:
    for statement in (*TABLES, f"create view v as {query}"):
        await sql.execute(statement)


def as_it_is(run: StatementRun, text: str) -> Generator[Any, Any, str]:
    """The text of a view as older releases have stored it, with its stars."""
    return text
    yield


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("select * from t", 'select "t"."id", "t"."a" from t'),
        ("table t", 'SELECT "t"."id", "t"."a" FROM t'),
        ("with w as (table t) table w", None),
        ("select (t).* from t", "select (t).* from t"),
        ("select count(*) as n from t", "select count(*) as n from t"),
    ],
)
async def test_stars_are_written_out(query: str, text: str | None) -> None:
    async with opened_sql() as sql:
        await made(sql, query)
        assert text is None or await text_of(sql, "v") == text
        before = (await sql.execute("select * from v")).rows
        await sql.execute("alter table t add column c int default 42")
        assert (await sql.execute("select * from v")).rows == before


@pytest.mark.long
async def test_stars_are_written_out_in_a_long_text() -> None:
    """It is planned elsewhere."""
    conditions = " or ".join(f"a = {n}" for n in range(1000, 4000))
    async with opened_sql() as sql:
        await made(sql, f"select t.*, 5 as c from t where {conditions} or id = 1")
        await sql.execute("alter table t add column c int default 42")
        assert (await sql.execute("select * from v")).rows == [(1, 10, 5)]


@pytest.mark.parametrize(
    "query",
    [
        "select t.*, u.k as c from t, u",
        "select *, 1 as c from t",
        "table t",
        "with w as (table t) select w.*, 3 as c from w",
        "select * from t natural join u",
    ],
)
async def test_a_view_of_an_older_release_keeps_its_meaning(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_sql() as sql:
        with monkeypatch.context() as patched:
            patched.setattr(StatementRun, "view_text", as_it_is)
            await made(sql, query)
        assert await text_of(sql, "v") == query
        before = (await sql.execute("select * from v")).rows
        for change in (
            "alter table t add column c int default 42",
            "alter table t rename column a to q",
            "alter table t rename column c to a",
            "alter table u add column q int default 43",
            "alter table t add column k int default 44",
        ):
            await sql.execute(change)
            assert (await sql.execute("select * from v")).rows == before, change


async def test_a_view_of_an_older_release_can_still_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened_sql() as sql:
        with monkeypatch.context() as patched:
            patched.setattr(StatementRun, "view_text", as_it_is)
            await made(sql, "select * from t where id > 0")
        await sql.execute("alter table t add column c int default 42")
        await sql.execute("insert into v values (2, 20)")
        assert (await sql.execute("select * from v where id = 2")).rows == [(2, 20)]


async def test_many_new_columns_make_a_text_no_longer() -> None:
    async with opened_sql() as sql:
        await made(sql, "select * from t natural join u")
        await sql.execute("alter table t add column c0 int")
        length = len(await text_of(sql, "v"))
        for n in range(1, 30):
            await sql.execute(f"alter table t add column c{n} int")
        assert len(await text_of(sql, "v")) == length
        assert (await sql.execute("select * from v")).rows == [(1, 10, 7)]


async def test_the_written_definition_makes_the_same_view() -> None:
    async with opened_sql() as sql:
        await made(sql, "select t.*, k as c from t natural join u where k > 0")
        await sql.execute("alter table t add column c int default 42, add column k int default 43")
        found = await sql.execute(
            "select statement from qserver_catalog.definitions where kind = 'view'"
        )
        await sql.execute("drop view v")
        await sql.execute(found.rows[0][0])
        assert (await sql.execute("select * from v")).rows == [(1, 10, 7)]


async def test_a_column_that_would_change_a_view_is_refused() -> None:
    """By its key a grouped row has all columns, which a query in between does not know."""
    async with opened_sql() as sql:
        await made(sql, "select id, a, (select max(c) from u as x (c)) as m from t group by id")
        with pytest.raises(FeatureNotSupported, match='cannot add column "c" to relation "t"'):
            await sql.execute("alter table t add column c int")
        assert (await sql.execute("select * from v")).rows == [(1, 10, 1)]
        await sql.execute("create or replace view v as select id, a, a as m from t group by id")
        await sql.execute("alter table t add column m int")
