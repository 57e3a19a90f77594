"""The tables of the control database, as the list of changes that led to them.

The version of a control database is the number of changes that were made to it. Each change and the
note of it are one transaction, so a start that is cut short goes on where it was. A released change
is never edited: another is added behind it.

The `family` of a database is the id of the database at the root of its branches, or its own. A
family lives in one process, see `owners`.

`statements` of a key and `bound` of a session are JSON, see `statement_texts`. So are the `limits`
that an organization has of its own, see `shares`.

`scram` of a key checks a proof of it, see `scram`; keys of earlier releases have none.

Times are `timestamptz`, ids are `text` that sorts by time, secrets are stored as digests only.
"""

from __future__ import annotations

from typing import Final

from qserver.errors import DatabaseUnavailable
from qserver.query.sql_database import SqlDatabase, Statement

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """create table organizations (
            id text primary key,
            name text not null unique,
            tier text not null,
            state text not null check (state in ('creating', 'ready')),
            created_at timestamptz not null)""",
        """create table databases (
            id text primary key,
            organization_id text not null references organizations (id),
            name text not null,
            state text not null check (state in ('creating', 'ready', 'deleting')),
            created_at timestamptz not null,
            unique (organization_id, name))""",
        "create index databases_by_organization on databases (organization_id, id)",
        "create index databases_by_state on databases (state)",
        """create table keys (
            id text primary key,
            organization_id text not null references organizations (id),
            name text not null,
            digest bytea not null unique,
            prefix text not null,
            scopes text[] not null,
            databases text[],
            created_at timestamptz not null,
            expires_at timestamptz,
            revoked_at timestamptz)""",
        "create index keys_by_organization on keys (organization_id, id)",
        """create table sessions (
            id text primary key,
            key_id text not null references keys (id) on delete cascade,
            digest bytea not null unique,
            scopes text[] not null,
            database_id text,
            created_at timestamptz not null,
            expires_at timestamptz not null)""",
        "create index sessions_by_key on sessions (key_id)",
    ),
    (
        "alter table keys add column statements text",
        "alter table sessions add column bound text",
    ),
    (
        "alter table databases drop constraint databases_state_check",
        "alter table databases add constraint databases_state_check"
        " check (state in ('creating', 'ready', 'deleting', 'deleted'))",
        "alter table databases add column branch_of text references databases (id)",
        "alter table databases add column branch_version bigint",
        "alter table databases add column expires_at timestamptz",
        "create index databases_by_parent on databases (branch_of)",
    ),
    ("alter table databases add column history double precision",),
    ("alter table keys add column bound text[]",),
    ("alter table organizations add column limits text",),
    (
        "alter table databases add column family text",
        """with recursive members as (
            select id, id as family from databases where branch_of is null
            union all
            select d.id, m.family from databases d join members m on d.branch_of = m.id)
        update databases d set family = m.family from members m where m.id = d.id""",
        "alter table databases alter column family set not null",
    ),
    ("alter table databases add column replicas integer",),
    ("alter table keys add column scram bytea",),
)


async def migrate(sql: SqlDatabase) -> None:
    """Bring a control database, also an empty one, to the newest version."""
    await sql.execute("create table if not exists migrations (version integer primary key)")
    result = await sql.execute("select count(*) from migrations")
    ((done,),) = result.rows
    if done > len(MIGRATIONS):
        raise DatabaseUnavailable(
            f"the control database has version {done}, this release knows {len(MIGRATIONS)}",
            hint="Start the release that was used last, or a later one.",
        )
    for version, statements in enumerate(MIGRATIONS[done:], done + 1):
        note = Statement("insert into migrations values ($1)", [version])
        await sql.transaction([*map(Statement, statements), note])
