"""Looking something up in a catalog finds what a scan finds, and costs what it finds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from qserver.engine.freshness import STRONG
from qserver.query.catalog.data import relations
from qserver.query.catalog.reader import CatalogReader
from qserver.query.catalog.relations import find_relation
from qserver.query.catalog.sources import SOURCES
from qserver.query.sql_database import SqlDatabase
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.keys import TOP
from qserver.values.numbering import FIRST_OID
from qserver.values.schema import Table
from qserver.values.types import STRING_KINDS
from tests.engine.passes import counted_passes
from tests.query.catalog.test_relations import SCHEMA
from tests.sql.databases import opened_sql

FEW, MANY = 2, 20
ABSENT: Final = (0, 1, 99_999_999)
OTHERS = (
    "CREATE TABLE t{0} (id serial PRIMARY KEY, a int UNIQUE CHECK (a > 0), b text DEFAULT 'x')",
    "ALTER TABLE t{0} ADD COLUMN p int REFERENCES t0",
    "COMMENT ON COLUMN t{0}.b IS 'said'",
    "CREATE VIEW v{0} AS SELECT a FROM t{0}",
    "CREATE TYPE e{0} AS ENUM ('a', 'b')",
)


@dataclass
class Worker:
    work: int = 0


@dataclass(frozen=True)
class LookUp:
    table: Table
    tree: int
    column: int

    def __str__(self) -> str:
        return f"{self.table.name}.{self.table.columns[self.column].name}"

    def keys(self, reader: CatalogReader, value: Any) -> list[Any]:
        """The primary keys that it finds."""
        pages = reader.scan(self.tree, (value,), (value, TOP))
        if self.tree == self.table.id:
            return [key for keys, _ in pages for key in keys]
        return [key for _, keys in pages for key in keys]


def _look_ups() -> Iterator[LookUp]:
    """All that are declared: by the first column of a key, or of an index."""
    for schema, name in relations():
        table = find_relation(schema, name)
        if isinstance(table, Table) and name in SOURCES:
            by = {table.primary_key[0]: table.id} if table.primary_key else {}
            for index in table.indexes:
                by.setdefault(index.columns[0], index.id)
            for column, tree in by.items():
                if table.columns[column].name in SOURCES[name].looked_up_by:
                    yield LookUp(table, tree, column)


LOOK_UPS: Final = list(_look_ups())


@asynccontextmanager
async def _database(tables: int) -> AsyncIterator[SqlDatabase]:
    async with opened_sql() as database:
        for sql in SCHEMA:
            await database.execute(sql)
        for number in range(tables):
            for sql in OTHERS:
                await database.execute(sql.format(number))
        yield database


async def _snapshot(tables: int) -> Snapshot:
    async with _database(tables) as database:
        return await database.wait_fresh(STRONG)


def _reader(snapshot: Snapshot) -> tuple[CatalogReader, Worker]:
    worker = Worker()
    return CatalogReader(Transaction(snapshot), worker), worker


def test_each_declared_look_up_has_a_key_or_an_index() -> None:
    declared = {
        f"{name}.{column}" for name, source in SOURCES.items() for column in source.looked_up_by
    }
    assert declared == {str(each) for each in LOOK_UPS}


@pytest.mark.long
async def test_each_look_up_finds_the_rows_that_a_scan_finds() -> None:
    snapshot = await _snapshot(FEW)
    for each in LOOK_UPS:
        reader, _ = _reader(snapshot)
        rows = [row for page in reader.scan_values(each.table.id) for row in page]
        by_value: dict[Any, list[Any]] = {}
        for row in rows:
            key = tuple(row[at] for at in each.table.primary_key)
            by_value.setdefault(row[each.column], []).append(key)
        own = [value for value in by_value if not isinstance(value, int) or value >= FIRST_OID]
        values = [*own[-100:], *list(by_value)[:: max(1, len(by_value) // 50)]]
        is_number = all(isinstance(value, int) for value in by_value)
        for value in [*values, *(ABSENT if is_number else ("", "no such name"))]:
            for found in (each.keys(reader, value), each.keys(_reader(snapshot)[0], value)):
                assert sorted(found) == sorted(by_value.get(value, [])), (str(each), value)


def _costs(snapshot: Snapshot) -> dict[tuple[str, Any], int]:
    """The steps of each look-up of what is in the schema `shop`, and of what nothing has."""
    world = CatalogReader(Transaction(snapshot), Worker())._world
    definitions = [*world.in_schema(world.schema_oid("shop")), *world.with_schema("shop")]
    costs: dict[tuple[str, Any], int] = {}
    for each in LOOK_UPS:
        source, column = SOURCES[each.table.name], each.table.columns[each.column]
        values: list[Any] = (
            ["no such name"] if column.type.kind in STRING_KINDS else [1, 99_999_999]
        )
        rows_of = source.rows
        for definition in definitions if rows_of is not None else ():
            assert rows_of is not None
            values += [row.get(column.name) for row in rows_of(world, definition)]
        for value in filter(None, values):
            reader, worker = _reader(snapshot)
            each.keys(reader, value)
            costs[str(each), value] = worker.work
    return costs


@pytest.mark.long
async def test_a_look_up_costs_the_same_among_few_tables_and_many() -> None:
    few, many = _costs(await _snapshot(FEW)), _costs(await _snapshot(MANY))
    assert few.keys() == many.keys()
    assert {name for name, _ in few} == {str(each) for each in LOOK_UPS}
    assert few == many


EMPTY_HANDED = (
    # There are 3 000 functions, and none that a definition depends on.
    "SELECT count(*) FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid",
    "SELECT count(*) FROM pg_proc p JOIN pg_depend d ON d.refobjid = p.oid",
    "SELECT sum(n) FROM pg_proc p, LATERAL (SELECT count(*) AS n FROM pg_attrdef"
    " WHERE adrelid = p.oid) a",
)


@pytest.mark.parametrize("sql", EMPTY_HANDED)
async def test_look_ups_that_find_nothing_let_others_run(sql: str) -> None:
    async with opened_sql() as database:
        for number in range(50):
            await database.execute(f"CREATE TABLE t{number} (a int)")
        await database.execute(sql)
        async with counted_passes() as passes:
            result = await database.execute(sql)
    assert result.rows == [(0,)]
    assert passes.count >= 20
