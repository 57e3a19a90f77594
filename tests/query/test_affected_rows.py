"""`affected_rows` counts what a statement changes; `max_affected` counts what foreign keys add.

statement, rows that it changes, rows that foreign keys change besides
"""

from __future__ import annotations

import pytest

from qserver.errors import Forbidden, ForeignKeyViolation, TooManyAffected
from qserver.query.permissions import Allowed
from qserver.query.sql_database import SqlDatabase, Statement
from tests.sql.databases import opened_sql

SCHEMA = (
    "create table parents (id int primary key, name text,"
    " up int references parents on delete cascade)",
    "create table children (id int primary key, parent int references parents on delete cascade"
    " on update cascade, n int)",
    "create table toys (id int primary key, child int references children on delete set null)",
    "create table log (id int primary key, entry text)",
    "create view grown as select id, name from parents where id > 1",
    "insert into parents values (1, 'a', null), (2, 'b', null), (3, 'c', 2)",
    "insert into children select i, (i - 1) / 3 + 1, i from generate_series(1, 9) as i",
    "insert into toys select i, i from generate_series(1, 9) as i",
    "insert into log values (1, 'one')",
)

COUNTS: dict[str, tuple[int, int]] = {
    "select * from parents": (0, 0),
    "select * from parents for update": (0, 0),
    "values (1), (2)": (0, 0),
    "table parents": (0, 0),
    "insert into log values (2, 'x'), (3, 'y')": (2, 0),
    "insert into log select id + 10, 'x' from children": (9, 0),
    "insert into log values (1, 'x'), (2, 'y') on conflict do nothing": (1, 0),
    "insert into log values (1, 'x'), (2, 'y') on conflict (id) do update set entry = 'z'": (2, 0),
    "insert into log values (1, 'x'), (2, 'y') on conflict (id) do update set entry = 'z'"
    " where log.id > 1": (1, 0),
    "update children set n = n + 1": (9, 0),
    "update children set n = n": (9, 0),
    "update children set n = 0 where id > 90": (0, 0),
    "update parents set id = id + 10 where id = 1": (1, 3),
    "update children set n = p.id from parents as p where p.id = parent and p.id = 1": (3, 0),
    "delete from parents where id = 1": (1, 6),
    "delete from parents where id = 2": (1, 13),
    "delete from parents": (3, 18),
    "delete from children where id < 3 returning id": (2, 2),
    "delete from toys using children as c where c.id = child and c.parent = 1": (3, 0),
    "update grown set name = 'x'": (2, 0),
    "delete from grown": (2, 12),
    "insert into grown values (7, 'x')": (1, 0),
    "merge into log using children as c on log.id = c.id when matched then update set entry = 'm'"
    " when not matched then insert values (c.id, 'new')": (9, 0),
    "merge into log using children as c on log.id = c.id when matched then delete"
    " when not matched then do nothing": (1, 0),
    "merge into parents using log on parents.id = log.id when matched then delete": (1, 6),
    "with d as (delete from toys returning id) select count(*) from d": (9, 0),
    "with d as (delete from toys) select 1": (9, 0),
    "with d as (delete from toys where id < 4 returning id) select id from d limit 0": (3, 0),
    "with d as (delete from toys returning id) select id from d order by id desc limit 2": (9, 0),
    "with d as (delete from toys returning id) select id from d union select 1": (9, 0),
    "with d as (delete from toys returning id) select distinct id % 2 from d": (9, 0),
    "with d as (delete from toys returning id) select rank() over (order by id) from d": (9, 0),
    "with d as (delete from toys returning id) select * from children where id in (select id"
    " from d)": (9, 0),
    "with i as (insert into log values (5, 'x'), (6, 'y') returning id) select * from i": (2, 0),
    "with u as (update children set n = 0 returning id), d as (delete from toys where id in"
    " (select id from u where id < 4) returning id) select count(*) from d": (12, 0),
    "with d as (delete from parents where id = 1 returning id) select * from d": (1, 6),
    "with d as (delete from toys returning id) insert into log select id + 20, 'd' from d": (18, 0),
    "with d as (delete from toys where id < 3 returning id) update children set n = 0 from d"
    " where children.id = d.id": (4, 0),
    "with d as (delete from toys returning id) delete from children where id in (select id from d"
    " where id < 3)": (11, 0),
    "with d as (delete from toys where id > 7 returning id) merge into log using d on log.id = d.id"
    " when not matched then insert values (d.id, 'm')": (4, 0),
    "with m as (update log set entry = 'q' returning id) select * from m where false": (1, 0),
    "explain delete from toys": (0, 0),
    "explain analyze delete from toys": (9, 0),
    "explain analyze delete from parents where id = 1": (1, 6),
    "explain analyze with d as (delete from toys returning id) select * from d": (9, 0),
    "explain analyze select * from toys": (0, 0),
    "create table copies as select * from toys": (9, 0),
    "create table copies as select * from toys with no data": (0, 0),
    "create table copies as with d as (delete from toys returning id) select * from d": (18, 0),
    "create table copies as with d as (delete from parents where id = 1 returning id)"
    " select * from d": (2, 6),
    "with d as (delete from toys where id = 1 returning id) select * into copies from d": (2, 0),
    "truncate toys": (0, 0),
    "truncate parents cascade": (0, 0),
    "drop table toys": (0, 0),
    "alter table toys add column more int default 1": (0, 0),
    "create index on toys (child)": (0, 0),
    "show timezone": (0, 0),
}
AFTER_ALL = ("delete from parents", "update grown set name = 'x'", "delete from grown")
"""Statements that would change the rows of `FIRST`, too."""
TABLES = ("parents", "children", "toys", "log")
FIRST = "insert into parents values (90, 'z', null), (91, 'z', null)"
"""What another statement of the same transaction changes counts too."""


async def rows_of(database: SqlDatabase) -> list[object]:
    return [(await database.execute(f"select * from {each}")).rows for each in TABLES]


@pytest.mark.parametrize(("sql", "counts"), COUNTS.items())
async def test_a_statement_counts_what_it_changes(sql: str, counts: tuple[int, int]) -> None:
    own, most = counts[0], sum(counts)
    async with opened_sql(shards=1) as database:
        await database.transaction([Statement(each) for each in SCHEMA])
        before = await rows_of(database)
        for texts, first in (((sql,), 0), ((FIRST, sql), 2)):
            both = [Statement(each) for each in texts]
            if sql in AFTER_ALL and first:
                continue
            for dry_run in (True, False):
                if first + most:
                    with pytest.raises(TooManyAffected):
                        await database.transaction(
                            both, max_affected=first + most - 1, dry_run=dry_run
                        )
                if dry_run or first:
                    found = await database.transaction(
                        both, max_affected=first + most, dry_run=True
                    )
                    assert found.results[-1].affected_rows == own
                assert await rows_of(database) == before
        found = await database.transaction([Statement(sql)], max_affected=most)
        assert found.results[0].affected_rows == own


async def test_the_query_of_a_new_table_keeps_foreign_keys_and_permissions() -> None:
    async with opened_sql(shards=1) as database:
        await database.execute("create table p (id int primary key)")
        await database.execute("create table c (id int primary key, p int references p)")
        await database.execute("insert into p values (1)")
        await database.execute("insert into c values (1, 1)")
        sql = "create table q as with d as (delete from {} returning id) select * from d"
        with pytest.raises(ForeignKeyViolation):
            await database.execute(sql.format("p"))
        with pytest.raises(Forbidden):
            await database.execute(sql.format("c"), allowed=Allowed(True, False, True))
        assert (await database.execute("select * from c")).rows == [(1, 1)]
