"""Who may only define learns nothing of the rows that are there."""

from __future__ import annotations

import pytest

from qserver.errors import Forbidden
from qserver.query.permissions import Allowed
from qserver.query.sql_database import Statement
from tests.sql.databases import opened_sql

DEFINES = Allowed(read=False, write=False)

ROWS = (
    "create table secrets (id integer primary key, word text, other integer)",
    "insert into secrets values (1, 'sesame', 1), (2, 'open', 1)",
    "create table empty (id integer, word text)",
)

TELLING = (
    "create table copies as select * from secrets",
    "create table counts as select count(*) from secrets",
    "create table nothing as select 1",
    "alter table secrets alter column word type integer using 1 / (length(word) - 6)",
    "alter table secrets alter column id type smallint",
    "alter table secrets add check (word <> 'sesame')",
    "alter table secrets add constraint c check (word <> 'sesame')",
    "alter table secrets add column longer integer check (word <> 'sesame')",
    "alter table secrets add column length integer generated always as (length(word)) stored",
    "alter table secrets add unique (other)",
    "alter table secrets alter column word set not null",
    "alter table secrets add foreign key (other) references secrets (id)",
    "create unique index on secrets (other)",
    "create index on secrets ((1 / (length(word) - 6)))",
    "create index on secrets (id) where 1 / (length(word) - 6) > 0",
)

SILENT = (
    "create table more (id integer primary key, word text unique check (word <> ''))",
    "alter table secrets add column plain text",
    "alter table secrets add column numbered integer default 7",
    "alter table secrets drop column other",
    "alter table secrets rename column word to phrase",
    "create index on secrets (word)",
    "create view words as select word from secrets",
    "create table copies as select * from secrets with no data",
    "create unique index on empty (id)",
    "alter table empty alter column word type integer using length(word)",
    "alter table empty add check (id > 0)",
    "alter table empty alter column id set not null",
    "truncate secrets",
    "drop table secrets",
)


@pytest.mark.parametrize("sql", TELLING)
async def test_a_definition_that_tells_of_rows_needs_the_right_to_read(sql: str) -> None:
    async with opened_sql() as database:
        for each in ROWS:
            await database.execute(each)
        with pytest.raises(Forbidden, match="may not read"):
            await database.execute(sql, allowed=DEFINES)
        with pytest.raises(Forbidden, match="may not read"):
            await database.transaction([Statement(sql)], allowed=DEFINES)


@pytest.mark.parametrize("sql", SILENT)
async def test_a_definition_that_tells_nothing_of_rows_does_not(sql: str) -> None:
    async with opened_sql() as database:
        for each in ROWS:
            await database.execute(each)
        assert (await database.execute(sql, allowed=DEFINES)).rows == []


async def test_rows_of_the_same_transaction_count_as_rows() -> None:
    writes = Allowed(read=False)
    statements = [
        Statement("insert into empty values (1, 'a'), (1, 'b')"),
        Statement("create unique index on empty (id)"),
    ]
    async with opened_sql() as database:
        for each in ROWS:
            await database.execute(each)
        with pytest.raises(Forbidden, match="may not read"):
            await database.transaction(statements, allowed=writes)
