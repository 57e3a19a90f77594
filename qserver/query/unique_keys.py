"""Unique keys that may wait for the end of a transaction.

Other unique keys are trees with one entry for each key, which refuse a second. The tree of one that
is DEFERRABLE may hold duplicates meanwhile: its entries are those of an ordinary index. So somebody
has to count them, after the statement or before the commit. The count is part of the footprint; an
equal key that another transaction adds meanwhile is a conflict.
"""

from __future__ import annotations

from qserver.query.deferred_keys import DeferredKeys
from qserver.storage.transaction import Transaction, unique_violation
from qserver.values.keys import TOP, Row
from qserver.values.schema import Table
from qserver.values.steps import Steps


def require_unique(
    transaction: Transaction, table: Table, row: Row, deferred: DeferredKeys
) -> None:
    """Raise if a row that is there has a key of another; keys that wait are left alone."""
    for index in table.indexes:
        if not index.deferral or deferred.waits(table.key, index):
            continue
        if index.nulls_distinct and any(row[at] is None for at in index.columns):
            continue
        key = table.entries(index, row)[0][: len(index.columns)]
        if transaction.count(index.id, key, (*key, TOP)) < 2:
            continue
        if transaction.get(table, table.key_of(row)) == row:  # no later change has moved it
            raise unique_violation(table, index.name, index.columns, row)


def check_unique(transaction: Transaction, table: Table, deferred: DeferredKeys) -> Steps[None]:
    """Check all rows."""
    for rows in transaction.scan_values(table.id):
        for row in rows:
            require_unique(transaction, table, row, deferred)
        yield
