"""Kinds of statements, each with what the documentation says of it.

A kind is told by words, not by what the server makes of it:

    reads, writes, defines   the scopes that it needs: data:read, data:write, schema
    changes                  it changes rows or definitions
    affected, cascaded       rows that it changes, and rows that foreign keys change besides
    of_log                   it touches the table `log`
    is_query                 SELECT, VALUES or TABLE that changes nothing and draws no number
    stores                   a full organization may not do it
    code                     the error that it ends with, whatever the guard
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SCHEMA: Final = (
    "create table parents (id int primary key, name text)",
    "create table children (id int primary key, parent int references parents on delete cascade)",
    "create table log (id int primary key, entry text)",
    "create table quiet (id int primary key, n int)",
    "create index by_entry on log (entry)",
    "create view entries as select id, entry from log",
    "create sequence numbers",
    "create type mood as enum ('sad')",
    "create schema apart",
    "insert into parents values (1, 'a'), (2, 'b')",
    "insert into children values (1, 1), (2, 1), (3, 2)",
    "insert into log values (1, 'one'), (2, 'two'), (3, 'three')",
    "insert into quiet values (1, 1)",
)
CHANGE_OF_LOG: Final = "update log set entry = entry || '!' where id = 3"


@dataclass(frozen=True)
class Kind:
    sql: str
    reads: bool = False
    writes: bool = False
    defines: bool = False
    affected: int = 0
    cascaded: int = 0
    of_log: bool = True
    stores: bool = True
    draws: bool = False
    sets: bool = False
    """It sets a sequence, at once and for good."""
    is_explained: bool = False
    """EXPLAIN of a change without ANALYZE: it needs the right to change, and changes nothing."""
    has_effect: bool = True
    """Whether it finds something to change."""
    of_system: bool = False
    """It reads system tables."""
    code: str | None = None
    inside: str | None = None
    """The same in an open transaction: a code, or what becomes of the transaction."""

    @property
    def changes(self) -> bool:
        """Whether it changes rows or definitions; a number that is drawn is neither."""
        return (self.writes and not self.draws and not self.is_explained) or self.defines

    @property
    def is_query(self) -> bool:
        starts = ("select", "values", "table", "with", "(")
        return self.sql.startswith(starts) and not (self.changes or self.draws)

    @property
    def most(self) -> int:
        return self.affected + self.cascaded


def query(sql: str, of_log: bool = True) -> Kind:
    return Kind(sql, reads=True, of_log=of_log, stores=False)


def change(
    sql: str, affected: int, cascaded: int = 0, stores: bool = True, of_log: bool = True
) -> Kind:
    return Kind(
        sql, writes=True, affected=affected, cascaded=cascaded, stores=stores, of_log=of_log
    )


def definition(
    sql: str, of_log: bool = True, stores: bool = True, reads: bool = False, affected: int = 0
) -> Kind:
    return Kind(sql, defines=True, of_log=of_log, stores=stores, reads=reads, affected=affected)


def control(sql: str, code: str, inside: str | None = None) -> Kind:
    return Kind(sql, code=code, inside=inside or code, of_log=False, stores=False)


QUERIES: Final = (
    query("select * from log"),
    query("select entry from log where id = 1 for update"),
    query("values (1), (2)", of_log=False),
    query("table log"),
    query("select * from entries"),
    query("with l as (select * from log) select count(*) from l"),
    Kind(
        "select count(*) from information_schema.tables",
        reads=True,
        of_log=False,
        stores=False,
        of_system=True,
    ),
)
CHANGES: Final = (
    change("insert into log values (7, 'x')", 1),
    change("insert into log values (7, 'x'), (8, 'y') returning id", 2),
    change("insert into log select id + 10, name from parents", 2),
    change("insert into log values (1, 'x'), (7, 'y') on conflict do nothing", 1),
    change(
        "insert into log values (1, 'x'), (7, 'y') on conflict (id) do update set entry = 'z'", 2
    ),
    change("update log set entry = 'x'", 3),
    Kind("update log set entry = 'x' where false", writes=True, has_effect=False),
    change("update entries set entry = 'x' where id = 1", 1),
    change("delete from log", 3, stores=False),
    change("delete from log where id = 1", 1, stores=False),
    change("delete from parents where id = 1", 1, 2, stores=False, of_log=False),
    change(
        "merge into log using parents as p on log.id = p.id when matched then update"
        " set entry = p.name when not matched then insert values (p.id, p.name)",
        2,
    ),
    change("with d as (delete from log returning id) select count(*) from d", 3, stores=False),
    change("with d as (delete from log returning id) insert into quiet select id + 9 from d", 6),
    change(
        "with d as (delete from log where id < 3 returning id), u as (update quiet set n = 0 from d"
        " where false returning 1) select * from d",
        2,
    ),
    change(
        "with a as (insert into log values (7, 'x') returning id), b as (insert into quiet select"
        " id from a returning id) select * from b",
        2,
    ),
)
DEFINITIONS: Final = (
    definition("truncate log", stores=False),
    definition("create table new (id int)", of_log=False),
    Kind("create table if not exists log (id int)", defines=True, has_effect=False),
    definition("create table new (id int references parents)", of_log=False),
    definition("create table new as select * from log", reads=True, affected=3),
    definition("alter table log add column more int"),
    definition("alter table log rename to logs"),
    definition("alter table log add check (id > 0)", reads=True),
    definition("drop table log cascade", stores=False),
    Kind(
        "drop table if exists nothing",
        defines=True,
        of_log=False,
        stores=False,
        has_effect=False,
    ),
    definition("create index on log (entry, id)"),
    definition("create unique index on log (entry)", reads=True),
    definition("drop index by_entry", stores=False),
    definition("create view more as select * from log"),
    definition("create or replace view entries as select id, entry from log where id > 1"),
    definition("drop view entries", of_log=False, stores=False),
    definition("create sequence others", of_log=False),
    definition("alter sequence numbers restart with 5", of_log=False),
    definition("drop sequence numbers", of_log=False, stores=False),
    definition("create type other as enum ('a')", of_log=False),
    definition("alter type mood add value 'glad'", of_log=False),
    definition("drop type mood", of_log=False, stores=False),
    definition("create schema other", of_log=False),
    definition("drop schema apart", of_log=False, stores=False),
    definition("comment on table log is 'x'"),
    Kind(
        "create table new as with d as (delete from log returning id) select * from d",
        reads=True,
        writes=True,
        defines=True,
        affected=6,
    ),
)
OTHERS: Final = (
    Kind(
        "select nextval('numbers')",
        reads=True,
        writes=True,
        draws=True,
        of_log=False,
        stores=False,
    ),
    Kind(
        "select setval('numbers', 50)",
        reads=True,
        writes=True,
        draws=True,
        sets=True,
        of_log=False,
        stores=False,
    ),
    Kind("explain select * from log", reads=True, stores=False),
    Kind("explain delete from log", writes=True, is_explained=True, stores=False),
    Kind("explain analyze select * from log", reads=True, stores=False),
    change("explain analyze delete from log", 3, stores=False),
    change("explain analyze insert into log values (9, 'x')", 1),
    Kind("show timezone", of_log=False, stores=False),
    Kind("set local timezone to 'UTC'", of_log=False, stores=False),
)
CONTROLS: Final = (
    control("begin", "25001"),
    control("commit", "25001"),
    control("rollback", "25001", inside="over"),
    control("savepoint a", "25P01", inside="ok"),
    control("release a", "25P01", inside="3B001"),
    control("rollback to a", "25P01", inside="3B001"),
)
KINDS: Final = (*QUERIES, *CHANGES, *DEFINITIONS, *OTHERS)
