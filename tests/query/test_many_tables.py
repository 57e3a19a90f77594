"""A catalog of many tables is looked at in short steps."""

from __future__ import annotations

import pytest

from qserver.query.system_tables import PAGE_ROWS, SCHEMAS, SystemReader
from qserver.storage.catalog import Catalog
from qserver.storage.ranges import Trees
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, define_table
from qserver.values.types import INTEGER
from tests.engine.passes import counted_passes
from tests.sql.databases import opened_sql

TABLES = 1000
SYSTEM_TABLES = {
    f"{schema}.{name}": each for schema, tables in SCHEMAS.items() for name, each in tables.items()
}


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    tables = [
        define_table(number, f"t{number:04}", [Column("id", INTEGER, nullable=False)], ["id"])
        for number in range(1, TABLES + 1)
    ]
    changes = {table.name: table for table in tables}
    return Snapshot(1, 0.0, Catalog().changed(changes, TABLES), Trees(), 1)


@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_a_system_table_hands_out_short_pages_in_every_order(name: str, snapshot: Snapshot) -> None:
    tree = SYSTEM_TABLES[name].table.id
    reader = SystemReader(Transaction(snapshot))
    pages = list(reader.scan_values(tree))
    rows = [row for page in pages for row in page]
    assert all(len(page) <= PAGE_ROWS for page in pages)
    assert [row[-1] for row in rows] == list(range(len(rows)))
    forward = [row for _, page in reader.scan(tree) for row in page]
    backward = [row for _, page in reader.scan(tree, backward=True) for row in page]
    assert forward == rows and backward == rows[::-1]
    assert reader.first_rows(tree, None, None, False, 3) == rows[:3]
    assert reader.first_rows(tree, None, None, True, 3) == rows[::-1][:3]


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
