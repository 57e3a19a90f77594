"""Describes the tables of a snapshot for GET /tables."""

from __future__ import annotations

from typing import Final

from qserver.engine.yielding import yield_to_others
from qserver.storage.snapshot import Snapshot
from qserver.values.identifiers import name_of_key
from qserver.values.schema import Table
from qserver.web.description import shapes

TABLES_AT_ONCE: Final = 64
"""Tables described before other tasks run."""


async def describe_tables(snapshot: Snapshot) -> list[shapes.TableDescription]:
    """All tables by name; a schema other than `public` prefixes the name."""
    described = []
    for count, table in enumerate(sorted(snapshot.catalog.tables.values(), key=_name), 1):
        described.append(_describe(table, snapshot))
        if count % TABLES_AT_ONCE == 0:
            await yield_to_others()
    return described


def _describe(table: Table, snapshot: Snapshot) -> shapes.TableDescription:
    key = [] if table.has_row_id else list(table.primary_key)
    return shapes.TableDescription(
        name=_name(table),
        columns=[
            shapes.TableColumn(
                column.name, str(column.type), column.nullable, column.default, at in key
            )
            for at, column in enumerate(table.columns)
            if not column.hidden
        ],
        primary_key=[table.columns[at].name for at in key],
        indexes=[
            shapes.TableIndex(
                index.name, [table.columns[at].name for at in index.columns], index.unique
            )
            for index in table.indexes
        ],
        foreign_keys=[
            shapes.TableForeignKey(
                each.name,
                list(each.columns),
                name_of_key(each.table),
                list(each.referenced),
                each.on_delete,
                each.on_update,
            )
            for each in table.foreign_keys
        ],
        row_count=snapshot.count(table.id),
    )


def _name(table: Table) -> str:
    return name_of_key(table.key)
