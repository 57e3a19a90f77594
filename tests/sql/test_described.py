"""A statement that is kept for later: checked now, with its stars written out."""

from __future__ import annotations

import pytest

from qserver.errors import (
    FeatureNotSupported,
    ProtocolViolation,
    QserverError,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedTable,
)
from qserver.query.sql_database import SqlDatabase
from tests.sql.databases import opened_sql

STAR_TEXTS = {
    "select * from t": 'select "t"."id", "t"."a" from t',
    "select t . * from t": 'select "t"."id", "t"."a" from t',
    "select x.*, 1 from t as x": 'select "x"."id", "x"."a", 1 from t as x',
    'select * from "U v"': 'select "U v"."id", "U v"."b""c" from "U v"',
    "select * from t join u using (id)": 'select "t"."id", "t"."a", "u"."a"'
    " from t join u using (id)",
    "select * from t full join u using (id)": 'select "id", "t"."a", "u"."a"'
    " from t full join u using (id)",
    "select * from (select * from t) s": 'select "s"."id", "s"."a"'
    ' from (select "t"."id", "t"."a" from t) s',
    "with w as (select * from t) select count(*) from w": 'with w as (select "t"."id", "t"."a"'
    " from t) select count(*) from w",
    "select * from v": 'select "v"."id" from v',
    "insert into t select * from u returning *": 'insert into t select "u"."id", "u"."a" from u'
    ' returning "t"."id", "t"."a"',
    "delete from t as d where id = :n returning *": "delete from t as d where id = :n"
    ' returning "d"."id", "d"."a"',
    "table t": 'SELECT "t"."id", "t"."a" FROM t',
    "select public.t.* from public.t": 'select "t"."id", "t"."a" from public.t',
}


async def defined(sql: SqlDatabase) -> SqlDatabase:
    await sql.execute("create table t (id int primary key, a text)")
    await sql.execute("create table u (id int primary key, a text)")
    await sql.execute('create table "U v" (id int primary key, "b""c" text)')
    await sql.execute("create view v as select id from t")
    await sql.execute("create sequence s")
    return sql


@pytest.mark.parametrize("sql", STAR_TEXTS)
async def test_a_star_becomes_the_columns_of_now(sql: str) -> None:
    async with opened_sql() as opened:
        await defined(opened)
        described = await opened.describe(sql)
        assert described.sql == STAR_TEXTS[sql]
        assert (await opened.describe(described.sql)) == described


async def test_what_is_added_later_is_not_seen_and_what_is_gone_is_missed() -> None:
    async with opened_sql() as opened:
        await defined(opened)
        await opened.execute("insert into t values (1, 'x')")
        described = await opened.describe("select * from (select * from t) s")
        await opened.execute("alter table t add column secret text default 'hidden'")
        result = await opened.execute(described.sql)
        assert (result.columns, result.rows) == (("id", "a"), [(1, "x")])
        await opened.execute("drop view v")
        await opened.execute("alter table t drop column a")
        with pytest.raises(UndefinedColumn):
            await opened.execute(described.sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select (t).* from t",
        "select row(t.*) from t",
        "select t./* */* from t",
        "select * from (select 1 as x, 2 as x) s",
    ],
)
async def test_a_star_that_cannot_be_written_out_is_refused(sql: str) -> None:
    async with opened_sql() as opened:
        await defined(opened)
        with pytest.raises(FeatureNotSupported, match="cannot be fixed"):
            await opened.describe(sql)


async def test_parameters_and_what_it_does() -> None:
    async with opened_sql() as opened:
        await defined(opened)
        for sql, parameters, writes in (
            ("select id from t where a = :who and id > :n or a = :who", ("who", "n"), False),
            ("insert into t values (:id, :a)", ("id", "a"), True),
            ("with w as (delete from t returning id) select id from w", (), True),
            ("select nextval('s')", (), True),
            ("select (select max(id) from t where nextval('s') > 0)", (), True),
            ("values (1), (2)", (), False),
            ("select :anything as x", ("anything",), False),
        ):
            described = await opened.describe(sql)
            assert (described.sql, described.parameters, described.writes) == (
                sql,
                parameters,
                writes,
            )


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("select id from missing", UndefinedTable),
        ("select missing from t", UndefinedColumn),
        ("select id from t where id = $1", ProtocolViolation),
        ("select id from t where id = ?", ProtocolViolation),
        ("select 1; select 2", SqlSyntaxError),
        ("", SqlSyntaxError),
        ("create table w (id int)", FeatureNotSupported),
        ("explain select 1", FeatureNotSupported),
        ("begin", FeatureNotSupported),
        ("show timezone", FeatureNotSupported),
        ("truncate t", FeatureNotSupported),
        ("select * into w from t", FeatureNotSupported),
    ],
)
async def test_what_cannot_be_kept_is_refused(sql: str, error: type[QserverError]) -> None:
    async with opened_sql() as opened:
        await defined(opened)
        with pytest.raises(error):
            await opened.describe(sql)
