"""information_schema and pg_catalog, as far as tools ask for them, and one schema of our own.

For the binder and the compiler a system table is an ordinary `Table`, but it has no tree. Its
number is negative, and a statement that uses one runs on a `SystemReader`, which makes the rows
from the catalog on demand, a page at a time. There is no second copy of the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Final

from qserver.query import pg_catalog
from qserver.query.definition_texts import SYSTEM_TABLES as DEFINITIONS
from qserver.query.information_schema import SYSTEM_TABLES as INFORMATION_SCHEMA
from qserver.query.system_rows import SystemTable
from qserver.storage.transaction import Transaction
from qserver.values.keys import Bound, Key, Predicate, Row
from qserver.values.schema import Table


def _in_schema(schema: str, tables: Iterable[SystemTable]) -> dict[str, SystemTable]:
    return {
        each.table.name: SystemTable(replace(each.table, schema=schema), each.rows)
        for each in tables
    }


SCHEMAS: Final[Mapping[str, Mapping[str, SystemTable]]] = {
    schema: _in_schema(schema, tables)
    for schema, tables in (
        ("information_schema", INFORMATION_SCHEMA),
        ("pg_catalog", pg_catalog.SYSTEM_TABLES),
        ("qserver_catalog", DEFINITIONS),
    )
}
PAGE_ROWS: Final = 64
"""Rows of a system table that are made at once."""

_BY_TREE: Final[Mapping[int, SystemTable]] = {
    each.table.id: each for tables in SCHEMAS.values() for each in tables.values()
}
assert len(_BY_TREE) == sum(map(len, SCHEMAS.values())), "two system tables have one number"


def find_system_table(schema: str, name: str) -> Table | None:
    found = SCHEMAS.get(schema, {}).get(name)
    return None if found is None else found.table


class SystemReader:
    """A transaction that also knows the system tables."""

    def __init__(self, transaction: Transaction) -> None:
        transaction.whole_catalog_seen = True
        self._transaction = transaction

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def before(self) -> SystemReader:
        return SystemReader(self._transaction.before())

    def get_entry(self, tree: int, key: Key) -> Row | None:
        if tree >= 0:
            return self._transaction.get_entry(tree, key)
        return next((row for row in self._rows(tree) if row[-1:] == key), None)

    def scan(
        self,
        tree: int,
        low: Bound = None,
        high: Bound = None,
        predicate: Predicate | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[list[Key], list[Row]]]:
        if tree >= 0:
            yield from self._transaction.scan(tree, low, high, predicate, backward, limit)
            return
        for rows in self._backward(tree) if backward else self._pages(tree):
            yield [row[-1:] for row in rows], rows

    def first_rows(
        self, tree: int, low: Bound, high: Bound, backward: bool, most: int
    ) -> list[Row]:
        if tree >= 0:
            return self._transaction.first_rows(tree, low, high, backward, most)
        pages = self._backward(tree) if backward else self._pages(tree)
        return list(islice(chain.from_iterable(pages), most))

    def scan_values(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[list[Row]]:
        if tree >= 0:
            return self._transaction.scan_values(tree, low, high, predicate)
        return self._pages(tree)

    def count(self, tree: int, low: Bound = None, high: Bound = None) -> int:
        if tree >= 0:
            return self._transaction.count(tree, low, high)
        return sum(map(len, self._pages(tree)))

    def scan_chunks(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[Any]:
        if tree >= 0:
            return self._transaction.scan_chunks(tree, low, high, predicate)
        return self._pages(tree)

    def _rows(self, tree: int) -> Iterator[Row]:
        """Yield each row with its number at the end, as rows of tables without a key have."""
        rows = _BY_TREE[tree].rows(self._transaction.catalog, self._transaction.snapshot)
        return ((*row, number) for number, row in enumerate(rows))

    def _pages(self, tree: int) -> Iterator[list[Row]]:
        rows = self._rows(tree)
        while page := list(islice(rows, PAGE_ROWS)):
            yield page

    def _backward(self, tree: int) -> Iterator[list[Row]]:
        for page in reversed([*self._pages(tree)]):
            yield page[::-1]
