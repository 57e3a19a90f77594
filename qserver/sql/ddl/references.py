"""Maintains `referenced_by`: each table's definition lists the tables that refer to it.

A DELETE must look for rows that refer to the deleted one. That list must be part of the definition
that a plan was compiled for and that a transaction has read: otherwise a plan from before a foreign
key was added, or a concurrent transaction, would not look.
"""

from __future__ import annotations

from dataclasses import replace

from qserver.sql.ddl.port import DdlPort
from qserver.values.schema import Table


def add_references(work: DdlPort, table: Table) -> None:
    """Add a new table to the tables that it refers to; only itself can refer to it yet."""
    for key in dict.fromkeys(each.table for each in table.foreign_keys):
        referred = work.table_now(key)
        wanted = tuple(sorted({*referred.referenced_by, table.key}))
        if wanted != referred.referenced_by:
            work.transaction.define(key, replace(referred, referenced_by=wanted))


def refresh_references(work: DdlPort) -> None:
    """Recompute `referenced_by` of every table after definitions have changed."""
    tables = [each for each in work.transaction.catalog.definitions() if isinstance(each, Table)]
    referring: dict[str, dict[str, None]] = {}
    for table in tables:
        for key in table.foreign_keys:
            referring.setdefault(key.table, {})[table.key] = None
    for table in tables:
        wanted = tuple(referring.get(table.key, ()))
        if wanted != table.referenced_by:
            work.transaction.define(table.key, replace(table, referenced_by=wanted))
