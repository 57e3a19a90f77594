"""The same rows in several databases whose keys, indexes, shards and histories differ.

    keyed      as the script defines them, 4 shards
    bare       no key, no index, no NOT NULL, 1 shard: a column that could be NULL never is
    other      other keys and indexes, 3 shards
    partial    as `keyed`, but with about half of the rows; the rest are written by `own`, a
               transaction that is never committed, so that its queries read its own writes

A text means the same in all of them, so each must give the same rows. What makes the rows is a
script of statements; one that `keyed` refuses is left out of all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

from qserver.errors import QserverError
from qserver.query.cursor import END
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.sequence_values import NeedsSequenceValues
from qserver.query.sql_database import SqlDatabase
from qserver.query.statements import StatementRun
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, Table
from qserver.values.types import Kind
from tests.differential.metamorphic.small_bounds import small_bounds
from tests.sql.databases import opened_sql

SHARDS = {"keyed": 4, "bare": 1, "other": 3, "partial": 4}

_NO_INDEX = (Kind.JSON,)


class ReplicasDiffer(Exception):  # what is looked for, not an error
    """A statement changed other rows in one replica than in another."""


class Replicas:
    """The four databases, and the transaction over the last of them."""

    def __init__(self, databases: dict[str, SqlDatabase], chance: Random) -> None:
        self.databases = databases
        self.keyed = databases["keyed"]
        self._chance = chance
        self._late: list[str] = []
        """What the transaction over `partial` writes itself."""
        self._in_order = False
        self._own: StatementRun | None = None

    async def define(self, statements: Sequence[str]) -> None:
        """Run the definitions as they are, then in each replica with its own keys."""
        for sql in statements:
            await self.keyed.execute(sql)
            await self.databases["partial"].execute(sql)
        snapshot = self.keyed.database.snapshots.take()
        assert snapshot is not None
        others = [sql for sql in statements if sql.split()[1].upper() == "TYPE"]
        tables = sorted(snapshot.catalog.tables.values(), key=lambda table: table.id)
        for name, script in (
            ("bare", [_created(table) for table in tables]),
            ("other", [sql for table in tables for sql in _other_keys(table, self._chance)]),
        ):
            for sql in (*others, *script):
                await self.databases[name].execute(sql)

    async def change(self, sql: str) -> int | None:
        """Run a statement that changes rows in all of them; None if it was refused.

        All must report the same number of rows.
        """
        try:
            affected = (await self.keyed.execute(sql)).affected_rows
        except QserverError:
            return None
        for name in ("bare", "other"):
            found = await _affected(self.databases[name], sql)
            if found != affected:
                raise ReplicasDiffer(
                    f"{sql}\n{affected} rows are changed with keys, {found} in replica {name!r}"
                )
        await self._change_partial(sql)
        self._own = None
        return affected

    async def _change_partial(self, sql: str) -> None:
        """Now, or in the transaction. Plain rows may come in any order; what depends on others
        comes after them, and all that follows it."""
        plain = sql.startswith("INSERT") and " VALUES " in sql and "ON CONFLICT" not in sql
        if self._in_order or (self._chance.random() < 0.5 if plain else bool(self._late)):
            self._late.append(sql)
            self._in_order = self._in_order or not plain
            return
        try:
            await self.databases["partial"].execute(sql)
        except QserverError:  # a row that it refers to is written later
            self._late.append(sql)

    async def own(self) -> StatementRun:
        """A transaction over `partial` that has written the missing rows and not committed."""
        while self._own is None:
            try:
                self._own = self._written()
            except NeedsSequenceValues as needs:
                await needs.supply()
        return self._own

    def abandon_own(self) -> None:
        """Forget the transaction: it has defined something, say. The next is as it was."""
        self._own = None

    def _written(self) -> StatementRun:
        run = new_run(self.databases["partial"])
        for sql in self._late:
            cursor = run.start(PreparedStatement(sql, None))
            while cursor.gather() is not END:
                pass
        return run


async def _affected(database: SqlDatabase, sql: str) -> int | str:
    try:
        return (await database.execute(sql)).affected_rows
    except QserverError as error:
        return str(error)


def new_run(gateway: SqlDatabase) -> StatementRun:
    """A transaction on the newest snapshot that nobody will commit."""
    snapshot = gateway.database.snapshots.take()
    assert snapshot is not None
    return StatementRun(gateway.planner, Transaction(snapshot), gateway._environment.request())


def _created(table: Table, more: Sequence[str] = (), required: Sequence[int] = ()) -> str:
    columns = [
        _column(column, at in required)
        for at, column in enumerate(table.columns)
        if not column.hidden
    ]
    return f'CREATE TABLE "{table.name}" ({", ".join([*columns, *more])})'


def _column(column: Column, required: bool) -> str:
    generated = ""
    if column.generated is not None:
        generated = f" GENERATED ALWAYS AS ({column.generated}) STORED"
    return f'"{column.name}" {column.type}{generated}{" NOT NULL" if required else ""}'


def _other_keys(table: Table, chance: Random) -> list[str]:
    """The table with its key turned around or made an index, and indexes drawn by lot."""
    more, required = [], []
    visible = [at for at, column in enumerate(table.columns) if not column.hidden]
    if not table.has_row_id and chance.random() < 0.7:
        names = [f'"{table.columns[at].name}"' for at in reversed(table.primary_key)]
        constraint = chance.choice(("PRIMARY KEY", "UNIQUE"))
        more.append(f"{constraint} ({', '.join(names)})")
        required = [at for at in visible if chance.random() < 0.5 and _never_null(table, at)]
    script = [_created(table, more, required)]
    indexable = [at for at in visible if table.columns[at].type.kind not in _NO_INDEX]
    for _ in range(chance.randint(1, 3)):
        chosen = chance.sample(indexable, min(len(indexable), chance.choice((1, 1, 2, 3))))
        columns = [f'"{table.columns[at].name}"{chance.choice(("", "", " DESC"))}' for at in chosen]
        script.append(f'CREATE INDEX ON "{table.name}" ({", ".join(columns)})')
    return script


def _never_null(table: Table, at: int) -> bool:
    return not table.columns[at].nullable


@asynccontextmanager
async def opened_replicas(chance: Random) -> AsyncIterator[Replicas]:
    async with AsyncExitStack() as stack:
        stack.enter_context(small_bounds(chance))
        databases = {
            name: await stack.enter_async_context(opened_sql(shards=shards))
            for name, shards in SHARDS.items()
        }
        yield Replicas(databases, chance)
