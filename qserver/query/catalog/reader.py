"""Scans of the catalog's tables, as a transaction has them for tables with trees.

Rows are made on demand, a page at a time. A scan narrows the definitions that it looks at by the
columns whose values its bounds hold to one value (see `sources`), then keeps the rows within the
bounds. Rows come in no order: plans rely on none where there is no tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from qserver.functions.text.prefixes import NEXT
from qserver.query.catalog.data import RelationData, recorded_by, recorded_rows
from qserver.query.catalog.relations import relation_of_tree
from qserver.query.catalog.sources import Source, source_of
from qserver.query.catalog.world import Shown, World
from qserver.query.definition_texts import SYSTEM_TABLES as OWN_TABLES
from qserver.storage.transaction import Transaction
from qserver.values.keys import Bound, Key, Predicate, Row
from qserver.values.object_names import NO_OBJECT
from qserver.values.schema import Index, Table
from qserver.values.types import STRING_KINDS, Kind

PAGE_ROWS: Final = 64
"""Rows that are handed out at once."""

_OWN: Final = {each.table.id: each for each in OWN_TABLES}

Entry = tuple[Key, Row]


class CatalogReader:
    """A transaction that also knows the tables of the catalog."""

    def __init__(self, transaction: Transaction, session: Shown | None = None) -> None:
        transaction.whole_catalog_seen = True
        self._transaction = transaction
        self._session = session
        self._world = World(transaction.catalog, transaction.snapshot, session)
        self._scanned: dict[int, list[Row]] = {}
        """All rows of tables that were scanned as a whole: a statement may do so many times."""
        self._found: dict[tuple[int, Key], Row] = {}
        """Rows that an index has led to, by their keys: they are looked up next."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def before(self) -> CatalogReader:
        return CatalogReader(self._transaction.before(), self._session)

    def get_entry(self, tree: int, key: Key) -> Row | None:
        if tree >= 0:
            return self._transaction.get_entry(tree, key)
        found_before = self._found.get((tree, key))
        if found_before is not None:
            return found_before
        for entries in self._pages(tree, key, key):
            for found, entry in entries:
                if found == key:
                    return entry
        return None

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
        assert not backward, "the order of rows without a tree is nobody's reason for a plan"
        for entries in self._pages(tree, low, high):
            yield [key for key, _ in entries], [row for _, row in entries]

    def scan_values(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[list[Row]]:
        if tree >= 0:
            return self._transaction.scan_values(tree, low, high, predicate)
        return ([row for _, row in entries] for entries in self._pages(tree, low, high))

    def scan_chunks(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[Any]:
        if tree >= 0:
            return self._transaction.scan_chunks(tree, low, high, predicate)
        return self.scan_values(tree, low, high)

    # --- rows ---

    def _pages(self, tree: int, low: Bound, high: Bound) -> Iterator[list[Entry]]:
        """Yield pages of keys with rows, or with the primary keys that an index leads to.

        With the same bound twice it is one key.
        """
        entries = self._entries(tree, low, high)
        exact = low is high and low is not None
        while page := list(islice(entries, PAGE_ROWS)):
            if exact:
                yield [entry for entry in page if entry[0] == low]
            else:
                yield [entry for entry in page if _is_within(entry[0], low, high)]

    def _entries(self, tree: int, low: Bound, high: Bound) -> Iterator[Entry]:
        if tree in _OWN:
            made = _OWN[tree].rows(self._transaction.catalog, self._transaction.snapshot)
            return (((at,), (*row, at)) for at, row in enumerate(made))
        table, data = relation_of_tree(tree)
        index = next((each for each in table.indexes if each.id == tree), None)
        key = table.primary_key
        places = key if index is None else index.columns
        rows = self._rows(table, data, _known(table, places, low, high))
        if index is None:
            return ((tuple([row[at] for at in places]), row) for row in rows)
        return self._entries_of_index(table, index, rows)

    def _entries_of_index(self, table: Table, index: Index, rows: Iterable[Row]) -> Iterator[Entry]:
        key = table.primary_key
        places = index.columns if index.unique else (*index.columns, *key)
        for row in rows:
            primary_key = tuple([row[at] for at in key])
            self._found[table.id, primary_key] = row
            yield tuple([row[at] for at in places]), primary_key

    def _rows(self, table: Table, data: RelationData, known: Mapping[str, Any]) -> Iterator[Row]:
        source = source_of(data.name)
        if known.keys() & source.looked_up_by.keys():
            yield from self._made(table, data, source, known)
            return
        if table.id in self._scanned:
            yield from self._scanned[table.id]
            return
        rows: list[Row] = []
        for row in self._made(table, data, source, {}):
            rows.append(row)
            yield row
        self._scanned[table.id] = rows

    def _made(
        self, table: Table, data: RelationData, source: Source, known: Mapping[str, Any]
    ) -> Iterator[Row]:
        recorded: Iterable[Row] = recorded_rows(data.name) if data.recorded else ()
        for column in source.looked_up_by.keys() & known.keys() if data.recorded else ():
            recorded = recorded_by(data.name, column).get(known[column], ())
            break
        yield from recorded
        shape = _shape(table)
        for number, values in enumerate(source.made(self._world, known), 1):
            yield tuple(
                [
                    number if name is None else values.get(name, otherwise)
                    for name, otherwise in shape
                ]
            )


def _shape(table: Table) -> list[tuple[str | None, Any]]:
    """Return the columns, with what each is where a source says nothing; a row id has no name."""
    return [
        (None if column.hidden else column.name, None if column.nullable else _empty(column.type))
        for column in table.columns
    ]


def _empty(sql_type: Any) -> Any:
    if sql_type.kind is Kind.BOOLEAN:
        return False
    if sql_type.kind in STRING_KINDS:
        return ""
    if sql_type.kind is Kind.ARRAY:
        return ()
    if sql_type.kind is Kind.REGPROC:
        return NO_OBJECT
    return 0.0 if sql_type.kind in (Kind.REAL, Kind.DOUBLE) else 0


def _known(table: Table, places: tuple[int, ...], low: Bound, high: Bound) -> dict[str, Any]:
    """Return the columns that bounds hold to one value."""
    found: dict[str, Any] = {}
    for at, one, other in zip(places, low or (), high or (), strict=False):
        if one != other and not (isinstance(one, str) and other == one + NEXT):
            break
        found[table.columns[at].name] = one
        if one != other:
            break
    return found


def _is_within(key: Key, low: Bound, high: Bound) -> bool:
    return (low is None or not key < low) and (high is None or key < high)
