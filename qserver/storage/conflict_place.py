"""Locates a conflict: its table, columns and statement."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import msgspec

from qserver.storage.catalog import Catalog
from qserver.storage.conflict import Conflict
from qserver.storage.page import Key
from qserver.storage.transaction import Transaction
from qserver.values.schema import Table


def located(conflict: Conflict, transaction: Transaction, version_found: int) -> Conflict:
    """Return the conflict with its table, its statement, and its two versions."""
    table, columns = conflict.table, conflict.columns
    if conflict.tree is not None:
        table, columns = _place(transaction.catalog, conflict.tree)
    return msgspec.structs.replace(
        conflict,
        table=table,
        columns=columns,
        statement=_statement_of(conflict, transaction),
        version_read=transaction.snapshot.version,
        version_found=version_found,
    )


def statement_naming(key: str, transaction: Transaction) -> int | None:
    """Return the number of the first statement that named a definition, by its catalog key."""
    return _statement_of(Conflict("a name", table=key), transaction)


def _place(catalog: Catalog, tree: int) -> tuple[str, tuple[str, ...]]:
    """Return the table that a tree belongs to, and the columns of its keys."""
    rows = catalog.table_of_tree(tree)
    for table in catalog.tables.values():
        if table.id == rows:
            return table.label, _columns(table, tree)
    return catalog.name_of_tree(tree), ()


def _columns(table: Table, tree: int) -> tuple[str, ...]:
    at = table.primary_key
    if tree != table.id:
        at = next(index.columns for index in table.indexes if index.id == tree) + at
    return tuple(table.columns[each].name for each in at if not table.columns[each].hidden)


def _statement_of(conflict: Conflict, transaction: Transaction) -> int | None:
    """Return the number of the first statement that read what has changed."""
    marks, scanned, key = transaction.marks, conflict.scanned, conflict.key
    if not marks:
        return None
    if conflict.tree is None:
        at = _position(transaction.names_seen, conflict.table)
        begins = [mark.names for mark in marks]
    elif scanned is None:
        at = _position(transaction.keys.get(conflict.tree, {}), key)
        begins = [mark.keys.get(conflict.tree, 0) for mark in marks]
    else:  # a shard may have looked at a part of the range
        same = (
            each.tree == scanned.tree
            and each.predicate is scanned.predicate
            and (key is None or key in each)
            for each in transaction.ranges
        )
        at = _position(same, True)
        begins = [mark.ranges for mark in marks]
    return None if at is None else bisect_right(begins, at) - 1


def _position(among: Iterable[Any], wanted: str | Key | bool | None) -> int | None:
    return next((at for at, each in enumerate(among) if each == wanted), None)
