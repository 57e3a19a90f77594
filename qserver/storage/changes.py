"""Changes of rows: what a transaction would change, row by row.

A change is net: the row before the transaction and the row after it. A row that ends as it was is
no change, however often it was written. An update that moves a row to another key is a deletion and
an insertion, as in the trees.

A table that the transaction redefines shows as a change of schema. Its rows may lie in another tree
then, in another form, so they are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from qserver.storage.page import Value
from qserver.storage.transaction import Definitions, Transaction
from qserver.storage.writes import CHANGES_AT_ONCE, sorted_in_pieces
from qserver.values.comparison import same_row
from qserver.values.schema import Table

Operation: TypeAlias = Literal["insert", "update", "delete", "schema"]


class Change(msgspec.Struct, frozen=True):
    """A row before and after; neither for a change of schema."""

    table: Table | str
    """Of a change of schema, the name."""
    before: Value | None = None
    after: Value | None = None
    statement: str | None = None
    """Of a change of schema, what made it, where that is known."""

    @property
    def op(self) -> Operation:
        if self.before is None:
            return "schema" if self.after is None else "insert"
        return "delete" if self.after is None else "update"


Changes: TypeAlias = list[Change]


def net_changes(
    transaction: Transaction, hold: Callable[[Value], None], most: int
) -> Generator[None, None, Changes]:
    """Return what the transaction's own writes change, by table and key; the first `most` of it.

    `hold` is called for each row that the result keeps in memory. Yields now and then, so that
    others can run.
    """
    found = [Change(_name_of(key)) for key in _redefined(transaction)]
    count = 0
    for table in _written_tables(transaction):
        writes = transaction.writes[table.id]
        keys = yield from sorted_in_pieces(writes)
        for key in keys:
            count += 1
            if count % CHANGES_AT_ONCE == 0:
                yield
            if len(found) >= most:
                return found
            before, after = transaction.entry_before(table.id, key), writes[key]
            if same_row(before, after):
                continue
            for row in (before, after):
                if row is not None:
                    hold(row)
            found.append(Change(table, before, after))
    return found


def _written_tables(transaction: Transaction) -> Iterator[Table]:
    """Yield the tables that were written and have the rows that they had, or are new."""
    known = transaction.catalog_before
    for key, table in sorted(transaction.catalog.tables.items()):
        if table.id in transaction.writes:
            before = known.tables.get(key)
            if before is None or before.id == table.id:
                yield table


def _redefined(transaction: Transaction) -> list[str]:
    """Return the keys of definitions that the transaction adds, changes or removes."""
    before, after = transaction.catalog_before, transaction.catalog
    return [
        key for key in sorted(transaction.catalog_changes) if before.find(key) or after.find(key)
    ]


def with_statements(changes: Changes, definitions: Sequence[Definitions]) -> Changes:
    """Return the changes with each change of schema told by the statements that made it, in order.

    A statement that changes several definitions is there for each of them. One whose changes were
    undone in the same transaction is not.
    """
    redefined = {each.table: each for each in changes if each.op == "schema"}
    if not redefined or not definitions:
        return changes
    stated = [
        Change(_name_of(key), statement=each.statement)
        for each in definitions
        for key in each.names
        if _name_of(key) in redefined
    ]
    known = {each.table for each in stated}
    unknown = [each for name, each in redefined.items() if name not in known]
    return [*stated, *unknown, *changes[len(redefined) :]]


def _name_of(key: str) -> str:
    """Return the name of a definition as a statement would write it, from its catalog key."""
    return key.replace("\0", ".")
