"""A catalog of many tables is looked at in short steps, and a look-up costs what it finds."""

from __future__ import annotations

import pytest

from qserver.query.catalog import sources
from qserver.query.catalog.data import relations
from qserver.query.catalog.reader import PAGE_ROWS, PAGE_STEPS, CatalogReader
from qserver.query.catalog.relations import find_relation
from qserver.query.catalog.world import World
from qserver.storage.catalog import Catalog
from qserver.storage.ranges import Trees
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.keys import TOP
from qserver.values.relations import Definition
from qserver.values.schema import Column, Table, define_table
from qserver.values.types import INTEGER
from tests.engine.passes import counted_passes
from tests.query.catalog.test_look_ups import Worker
from tests.sql.databases import opened_sql

TABLES = 1000
NAMES = [name for schema, name in relations() if isinstance(find_relation(schema, name), Table)]


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    tables = [
        define_table(number, f"t{number:04}", [Column("id", INTEGER, nullable=False)], ["id"])
        for number in range(1, TABLES + 1)
    ]
    changes = {table.name: table for table in tables}
    return Snapshot(1, 0.0, Catalog().changed(changes, TABLES), Trees(), 1)


def _table(name: str) -> Table:
    schema = next(schema for schema, each in relations() if each == name)
    found = find_relation(schema, name)
    assert isinstance(found, Table)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_table_hands_out_short_pages_with_each_key_once(name: str, snapshot: Snapshot) -> None:
    table, reader = _table(name), CatalogReader(Transaction(snapshot), Worker())
    pages = list(reader.scan_values(table.id))
    assert all(len(page) <= PAGE_ROWS for page in pages)
    rows = [row for page in pages for row in page]
    assert all(len(row) == len(table.columns) for row in rows)
    keys = [tuple(row[at] for at in table.primary_key) for row in rows]
    assert len(set(keys)) == len(keys)
    again = [row for page in reader.scan_values(table.id) for row in page]
    assert again == rows, "a second scan hands out what the first has kept"
    required = [at for at, column in enumerate(table.columns) if not column.nullable]
    assert not any(row[at] is None for row in rows for at in required)


@pytest.mark.parametrize("name", [name for name in NAMES if name in sources.SOURCES])
def test_a_look_up_finds_the_rows_that_a_scan_finds(name: str, snapshot: Snapshot) -> None:
    table, reader = _table(name), CatalogReader(Transaction(snapshot), Worker())
    rows = [row for page in reader.scan_values(table.id) for row in page]
    for row in rows[:: max(1, len(rows) // 8)]:
        key = tuple(row[at] for at in table.primary_key)
        assert reader.get_entry(table.id, key) == row
        for index in table.indexes:
            first = index.columns[0]
            wanted = [
                tuple(each[at] for at in table.primary_key)
                for each in rows
                if each[first] == row[first]
            ]
            low = (row[first],)
            found = [key for page in reader.scan_values(index.id, low, (*low, TOP)) for key in page]
            assert sorted(found) == sorted(wanted)


def test_a_look_up_by_oid_or_name_makes_the_rows_of_one_table(snapshot: Snapshot) -> None:
    wanted = snapshot.catalog.tables["t0500"]
    made: list[tuple[str, list[Definition]]] = []
    for name, column, value in (
        ("pg_class", "oid", wanted.oid),
        ("pg_class", "relname", "t0500"),
        ("pg_attribute", "attrelid", wanted.oid),
        ("pg_constraint", "conrelid", wanted.oid),
        ("pg_index", "indrelid", wanted.oid),
        ("pg_attrdef", "adrelid", wanted.oid),
        ("pg_type", "oid", wanted.oid + 1),
        ("pg_type", "typname", "t0500"),
        ("pg_description", "objoid", wanted.oid),
        ("pg_depend", "objid", wanted.oid),
    ):
        source = sources.SOURCES[name]
        world = World(snapshot.catalog, snapshot)
        made.append((name, list(source.looked_up_by[column](world, value))))
    assert all(found == [wanted] for _, found in made), made


def test_definitions_without_rows_are_passed_in_short_pages(snapshot: Snapshot) -> None:
    """No table is a sequence: what is looked at is charged, and a page comes in between."""
    worker = Worker()
    reader = CatalogReader(Transaction(snapshot), worker)
    pages = list(reader.scan_values(_table("pg_sequence").id))
    assert not any(pages) and worker.work >= TABLES
    assert len(pages) >= worker.work // (2 * PAGE_STEPS)


@pytest.mark.long
async def test_a_statement_on_many_columns_lets_others_run() -> None:
    async with opened_sql() as database:
        columns = ", ".join(f"c{number} INTEGER" for number in range(1500))
        for number in range(9):
            await database.execute(f"CREATE TABLE t{number} ({columns})")
        sql = "SELECT count(*) FROM information_schema.columns WHERE column_name < 'c'"
        await database.execute(sql)
        async with counted_passes() as passes:
            await database.execute(sql)
    assert passes.count >= 4
