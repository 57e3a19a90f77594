"""GET /tables describes many tables in short steps."""

from __future__ import annotations

from qserver.storage.catalog import Catalog
from qserver.storage.ranges import Trees
from qserver.storage.snapshot import Snapshot
from qserver.values.schema import Column, define_table
from qserver.values.types import INTEGER
from qserver.web.tables import TABLES_AT_ONCE, describe_tables
from tests.engine.passes import counted_passes

TABLES = 1000


def snapshot_of_tables() -> Snapshot:
    column = Column("id", INTEGER, nullable=False)
    names = {f"t{number:04}": number for number in range(1, TABLES + 1)}
    changes = {name: define_table(number, name, [column], ["id"]) for name, number in names.items()}
    return Snapshot(1, 0.0, Catalog().changed(changes, TABLES), Trees(), 1)


async def test_the_tables_are_described_in_steps() -> None:
    snapshot = snapshot_of_tables()
    async with counted_passes() as passes:
        described = await describe_tables(snapshot)
    assert [each.name for each in described] == sorted(snapshot.catalog.tables)
    assert passes.count >= TABLES // TABLES_AT_ONCE - 1, "the first may come before the counting"
