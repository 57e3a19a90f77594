"""Computes the net changes of a transaction, row by row.

A change is the row before the transaction and the row after it. A row that ends as it was is no
change, however often it was written. An update that moves a row to another key is a deletion and an
insertion, as in the trees.

A changed definition is reported as a change of schema, without what its statement did to rows. If
other statements of the transaction changed rows of a rewritten table too, all of its rows are
reported, before and after in the form that they had then: the two kinds of changes cannot be told
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from math import inf
from typing import Literal, TypeAlias

import msgspec

from qserver.storage.page import Value
from qserver.storage.transaction import Transaction
from qserver.storage.writes import CHANGES_AT_ONCE, sorted_keys
from qserver.values.comparison import same_row
from qserver.values.identifiers import name_of_key
from qserver.values.schema import Table

Operation: TypeAlias = Literal["insert", "update", "delete", "schema"]


class Change(msgspec.Struct, frozen=True):
    """A row before and after; neither, for a change of schema."""

    table: Table | str
    """Of a change of schema, the name."""
    before: Value | None = None
    after: Value | None = None
    table_before: Table | None = None
    """The definition of the row before, if the table was rewritten."""

    @property
    def op(self) -> Operation:
        if self.before is None:
            return "schema" if self.after is None else "insert"
        return "delete" if self.after is None else "update"


Changes: TypeAlias = list[Change]


def net_changes(
    transaction: Transaction, hold: Callable[[Value], None], most: float = inf
) -> Generator[None, None, Changes]:
    """Return the first `most` changes of the transaction's own writes, by table and key.

    `hold` is called for each row that the result keeps in memory. Yields now and then, so that
    others can run.
    """
    found = [Change(name_of_key(key)) for key in redefined(transaction)]
    for table, origin in _written_tables(transaction):
        if origin is None:
            pieces = _written_rows(transaction, table)
        else:
            pieces = _rewritten_rows(transaction, origin, table)
        for piece in pieces:
            yield
            for change in piece or ():
                if len(found) >= most:
                    return found
                for row in (change.before, change.after):
                    if row is not None:
                        hold(row)
                found.append(change)
    return found


def _written_tables(transaction: Transaction) -> Iterator[tuple[Table, Table | None]]:
    """Yield the tables with changes to report, each with its old definition if it was rewritten.

    A table that was rewritten, and not changed otherwise, is left out.
    """
    before, writes = transaction.catalog_before, transaction.writes
    changes = transaction.catalog_changes
    if not changes.definitions:
        for _, table in sorted(before.tables.items()):
            if table.id in writes:
                yield table, None
        return
    known = {table.id: table for table in before.tables.values()}
    for key, table in sorted(transaction.catalog.tables.items()):
        tree = table.id
        while tree in changes.rewritten:
            tree = changes.rewritten[tree]
        origin = known.get(tree)
        if tree == table.id:
            is_known = origin is not None or key not in before.tables
            if table.id in writes and (is_known or changes.all_rewritten_known):
                yield table, None
        elif origin is None and table.id in writes:
            yield table, None  # the transaction has made it, and rewritten it
        elif origin is not None and transaction.changes_rows:
            yield table, origin


Pieces: TypeAlias = Generator[Changes | None, None, None]
"""Some changes at a time; or None, only to let others run."""


def _written_rows(transaction: Transaction, table: Table) -> Pieces:
    writes = transaction.writes[table.id]
    keys = yield from sorted_keys(writes)
    while piece := list(islice(keys, CHANGES_AT_ONCE)):
        rows = [(transaction.entry_before(table.id, key), writes[key]) for key in piece]
        yield [Change(table, *each) for each in rows if not same_row(*each)]


def _rewritten_rows(transaction: Transaction, origin: Table, table: Table) -> Pieces:
    """Report all rows of a rewritten table, beside those of the old one.

    Rows that end as they were are included: a reader may have applied the statement itself.
    """
    writes = transaction.writes.get(table.id, {})
    before = Transaction(transaction.snapshot, transaction.earlier)
    alike = _key_of(origin) == _key_of(table)
    for keys, rows in before.scan(origin.id):
        now = [writes.get(key) if alike else None for key in keys]
        yield [
            Change(table, was, after, table_before=origin)
            for was, after in zip(rows, now, strict=True)
        ]
    keys_now = yield from sorted_keys(writes)
    while piece := list(islice(keys_now, CHANGES_AT_ONCE)):
        new = [key for key in piece if not alike or before.get_entry(origin.id, key) is None]
        yield [Change(table, None, row) for key in new if (row := writes[key]) is not None]


def _key_of(table: Table) -> list[tuple[str, object]] | object:
    """Return what decides whether equal keys of two tables mean the same row; row ids never do."""
    if table.has_row_id:
        return object()
    return [(table.columns[at].name, table.columns[at].type) for at in table.primary_key]


def redefined(transaction: Transaction) -> list[str]:
    """Return the keys of definitions that the transaction adds, changes or removes.

    They are the first of its net changes, in this order.
    """
    before, after = transaction.catalog_before, transaction.catalog
    definitions = transaction.catalog_changes.definitions
    return [key for key in sorted(definitions) if before.find(key) or after.find(key)]
