"""`if_version` stops every kind of statement that touches a table which has changed since.

statement, tables that it touches: by name, by a foreign key, or because their definition changes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from qserver.engine.work import run
from qserver.errors import SerializationFailure
from qserver.query.results import RunOptions
from qserver.query.sql_database import SqlDatabase, Statement
from qserver.storage.conflict import Conflict
from tests.sampling import sampled
from tests.sql.databases import opened_sql

SCHEMA = (
    "create table parents (id int primary key, name text)",
    "create table children (id int primary key, parent int references parents on delete cascade)",
    "create table log (id int primary key, entry text)",
    "create table alone (id int primary key)",
    "create table empty (id int primary key)",
    "create index by_entry on log (entry)",
    "create view entries as select entry from log",
    "create sequence numbers",
    "create schema apart",
    "create table apart.t (id int primary key)",
    "create type mood as enum ('sad')",
    "create table moods (id int primary key, m mood)",
    "insert into parents values (1, 'a'), (2, 'b')",
    "insert into children values (1, 1), (2, 2)",
    "insert into log values (1, 'one')",
    "insert into alone values (1)",
    "insert into apart.t values (1)",
    "insert into moods values (1, 'sad')",
)
CHANGES = {
    "parents": "update parents set name = 'z' where id = 2",
    "children": "update children set parent = 2 where id = 2",
    "log": "insert into log values (77, 'x')",
    "alone": "update alone set id = id + 1",
    "empty": "alter table empty add column more int",
    "apart.t": "insert into apart.t values (77)",
    "moods": "insert into moods values (77, 'sad')",
}
"""A change of each table; `empty` gets another definition."""

TOUCHED: Mapping[str, tuple[str, ...]] = {
    "select * from log": ("log",),
    "select * from log where id = 5": ("log",),
    "select 1 from empty": ("empty",),
    "select * from entries": ("log",),
    "select * from log for update": ("log",),
    "table log": ("log",),
    "values (1)": (),
    "select nextval('numbers')": (),
    "explain select * from log": ("log",),
    "explain delete from log": ("log",),
    "explain analyze select * from log": ("log",),
    "explain analyze delete from log": ("log",),
    "insert into log values (2, 'x')": ("log",),
    "insert into log select id, 'x' from alone where id > 1": ("alone", "log"),
    "insert into log values (1, 'x') on conflict do nothing": ("log",),
    "insert into children values (9, 1)": ("children", "parents"),
    "update log set entry = 'x'": ("log",),
    "update log set entry = 'x' where id = 90": ("log",),
    "delete from log": ("log",),
    "delete from log where false": ("log",),
    "delete from parents where id = 1": ("children", "parents"),
    "merge into log using alone on log.id = alone.id when matched then delete": ("alone", "log"),
    "with d as (delete from log returning id) select * from d": ("log",),
    "with d as (delete from log returning id) insert into alone select id + 5 from d": (
        "alone",
        "log",
    ),
    "truncate log": ("log",),
    "truncate empty, log": ("empty", "log"),
    "truncate parents cascade": ("children", "parents"),
    "drop table log cascade": ("log",),
    "drop table empty": ("empty",),
    "drop table if exists log cascade": ("log",),
    "drop table if exists nothing": (),
    "drop table parents cascade": ("children", "parents"),
    "drop schema apart cascade": ("apart.t",),
    "drop index by_entry": ("log",),
    "drop view entries": (),
    "drop sequence numbers": (),
    "drop type mood cascade": ("moods",),
    "alter table log add column more int": ("log",),
    "alter table log drop column entry cascade": ("log",),
    "alter table log rename to logs": ("log",),
    "alter table log add constraint c check (id > 0)": ("log",),
    "alter table children drop constraint children_parent_fkey": ("children", "parents"),
    "alter table alone add foreign key (id) references parents": ("alone", "parents"),
    "alter sequence numbers restart": (),
    "create index on log (id, entry)": ("log",),
    "create table if not exists log (id int)": ("log",),
    "create table new (id int)": (),
    "create table new (like log)": ("log",),
    "create table new (id int references parents)": ("parents",),
    "create table new as select * from log": ("log",),
    "create table new as select * from log with no data": ("log",),
    "create view new as select * from log": ("log",),
    "create sequence new owned by alone.id": ("alone",),
    "create schema new": (),
    "create type new as enum ('a')": (),
    "comment on table log is 'x'": ("log",),
    "show timezone": (),
    "set local timezone to 'UTC'": (),
}


def table_of(error: SerializationFailure) -> str | None:
    assert isinstance(error.conflict, Conflict)
    return error.conflict.table


async def everything(database: SqlDatabase) -> list[Any]:
    texts = [f"select * from {table}" for table in CHANGES]
    texts.append("select table_schema, table_name, column_name from information_schema.columns")
    texts.append("select indexname from pg_indexes")
    return [sorted((await database.execute(each)).rows, key=repr) for each in texts]


@pytest.mark.long
@pytest.mark.parametrize("sql", sampled(tuple(TOUCHED), 10))
async def test_a_statement_runs_if_no_table_that_it_touches_has_changed(sql: str) -> None:
    touched = TOUCHED[sql]
    statement = [Statement(sql)]
    async with opened_sql(shards=1) as database:
        await database.transaction([Statement(each) for each in SCHEMA])
        for table, change in CHANGES.items():
            seen = (await database.execute("select 1")).version
            await database.execute(change)
            before = await everything(database)
            for dry_run in (True, False):
                if table in touched:
                    with pytest.raises(SerializationFailure) as caught:
                        await database.transaction(statement, if_version=seen, dry_run=dry_run)
                    assert table_of(caught.value) == table
                    assert not caught.value.retryable
                elif dry_run:
                    await database.transaction(statement, if_version=seen, dry_run=True)
                assert await everything(database) == before
        newest = (await database.execute("select 1")).version
        await database.transaction(statement, if_version=newest)


PLAIN = RunOptions()
CONCURRENT = [sql for sql, touched in TOUCHED.items() if "log" in touched]
LONG = "insert into alone select i from generate_series(1000, 4000) as i"
"""A statement that lets others run."""
OTHERS: Mapping[str, tuple[str, ...]] = {
    "rows": ("insert into log values (88, 'other')",),
    "definition": ("alter table log alter entry set default 'x'",),
    "definition and back": (
        "alter table log alter entry set default 'x'",
        "alter table log alter entry drop default",
    ),
    "a definition that stays the same": ("alter table log alter entry drop default",),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("sql", sampled(tuple(CONCURRENT), 4))
async def test_a_change_while_the_request_runs_comes_before_it_and_stops_it_or_comes_later(
    sql: str, other: str
) -> None:
    """Whatever the order, the request is as if it had run alone on its version."""
    async with opened_sql(shards=2) as database:
        await database.transaction([Statement(each) for each in SCHEMA])
        seen = (await database.execute("select 1")).version
        outcomes: list[Any] = []
        changed: list[int] = []

        async def guarded() -> None:
            try:
                both = [Statement(LONG), Statement(sql)]
                outcomes.append((await database.transaction(both, if_version=seen)).version)
            except SerializationFailure as error:
                outcomes.append(error)

        async def change() -> None:
            await trio.lowlevel.checkpoint()
            for each in OTHERS[other]:
                changed.append((await database.execute(each)).version)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(guarded)
            nursery.start_soon(change)
        (outcome,), version = outcomes, changed[0]
        if isinstance(outcome, SerializationFailure):
            assert table_of(outcome) == "log"
            assert not outcome.retryable
        else:
            assert outcome < version
        left = (await database.execute("select count(*) from alone where id > 999")).rows
        assert left == [(0 if isinstance(outcome, SerializationFailure) else 3001,)]


async def test_a_definition_that_found_its_name_taken_depends_on_that() -> None:
    async with opened_sql(shards=1) as database:
        await database.transaction([Statement(each) for each in SCHEMA])
        for found, change in (
            ("create table if not exists log (id int)", "drop table log cascade"),
            ("drop table if exists log", "create table log (id int)"),
        ):
            opened = await database.open()
            both = [Statement(found), Statement("delete from alone where id > 90")]
            await database.inside(opened, [*both, Statement("insert into empty values (1)")], PLAIN)
            await database.execute(change)
            with pytest.raises(SerializationFailure):
                await run(database.committing(opened, PLAIN))
            opened.release()
