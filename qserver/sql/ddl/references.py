"""Which tables refer to a table is part of that table's own definition.

Whoever deletes from a table must look for rows that refer to it. That knowledge must be
in what the statement was compiled for and what its transaction has seen: otherwise a plan made
before a foreign key was added, or a transaction that runs beside, would not look.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.sql.ddl.port import Work
from qserver.values.schema import Table


def add_references(work: Work, table: Table) -> None:
    """Let those that a new table refers to say so; nobody can refer to it yet but itself."""
    for key in dict.fromkeys(each.table for each in table.foreign_keys):
        referred = work.table_now(key)
        wanted = tuple(sorted({*referred.referenced_by, table.key}))
        if wanted != referred.referenced_by:
            work.transaction.define(key, replace(referred, referenced_by=wanted))


def refresh_references(work: Work) -> None:
    """Let every table say who refers to it, after definitions have changed."""
    tables = [each for each in work.transaction.catalog.definitions() if isinstance(each, Table)]
    referring: dict[str, dict[str, None]] = {}
    for table in tables:
        for key in table.foreign_keys:
            referring.setdefault(key.table, {})[table.key] = None
    for table in tables:
        wanted = tuple(referring.get(table.key, ()))
        if wanted != table.referenced_by:
            work.transaction.define(table.key, replace(table, referenced_by=wanted))
