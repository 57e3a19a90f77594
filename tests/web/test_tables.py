"""GET /tables describes many tables in short steps."""

from __future__ import annotations

import trio

from qserver.storage.catalog import Catalog
from qserver.storage.ranges import Trees
from qserver.storage.view import View
from qserver.values.schema import Column, define_table
from qserver.values.types import INTEGER
from qserver.web.tables import TABLES_AT_ONCE, describe_tables

TABLES = 1000


def view_of_tables() -> View:
    column = Column("id", INTEGER, nullable=False)
    names = {f"t{number:04}": number for number in range(1, TABLES + 1)}
    changes = {name: define_table(number, name, [column], ["id"]) for name, number in names.items()}
    return View(1, 0.0, Catalog().changed(changes, TABLES), Trees(), 1)


async def test_the_tables_are_described_in_steps() -> None:
    view = view_of_tables()
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        described = await describe_tables(view)
        nursery.cancel_scope.cancel()
    assert [each.name for each in described] == sorted(view.catalog.tables)
    assert turns >= TABLES // TABLES_AT_ONCE - 1, "the first may come before the counting"
