"""Scans of the catalog's tables, as a transaction has them for tables with trees.

Rows are made on demand, a page at a time. A scan narrows the definitions that it looks at by the
columns whose values its bounds hold to one value (see `sources`), then keeps the rows within the
bounds. Rows come in no order: plans rely on none where there is no tree.

What is looked at is work of the statement, found or not: it is charged, and whenever some of it is
done a page is handed out, an empty one if need be. A loop over pages can yield at each, so neither
a look-up that finds nothing, again and again, nor a catalog of many definitions holds others up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Any, Final, Protocol

from qserver.functions.text.prefixes import NEXT
from qserver.query.catalog.data import RelationData, recorded_by, recorded_rows
from qserver.query.catalog.relations import relation_of_tree
from qserver.query.catalog.sources import MakeFixedRows, Source, source_of
from qserver.query.catalog.world import Shown, World
from qserver.query.definition_texts import SYSTEM_TABLES as OWN_TABLES
from qserver.query.permissions import NOBODY, Allowed
from qserver.query.server_facts import NO_FACTS, ServerFacts
from qserver.storage.transaction import Transaction
from qserver.values.keys import Bound, Key, Predicate, Row
from qserver.values.object_names import NO_OBJECT
from qserver.values.relations import Definition
from qserver.values.schema import Index, Table
from qserver.values.types import STRING_KINDS, Kind

PAGE_ROWS: Final = 64
"""Rows that are handed out at once."""
LOOK_UP_STEPS: Final = 16
"""What a scan costs before it looks at anything."""
DEFINITION_STEPS: Final = 2
ROW_STEPS: Final = 8
"""What it costs to make a row. One that was kept is looked at in one step."""
PAGE_STEPS: Final = 512
"""After so many steps a page is handed out."""

_OWN: Final = {each.table.id: each for each in OWN_TABLES}

Entry = tuple[Key, Row]


class Worker(Protocol):
    """What is charged: the context of the statement."""

    work: int


class CatalogReader:
    """A transaction that also knows the tables of the catalog, for one statement."""

    def __init__(
        self,
        transaction: Transaction,
        worker: Worker,
        session: Shown | None = None,
        server: ServerFacts = NO_FACTS,
        allowed: Allowed = NOBODY,
    ) -> None:
        transaction.whole_catalog_seen = True
        self._transaction = transaction
        self._worker = worker
        self._session = session
        self._unpaged = 0
        """Steps since a page was handed out."""
        self._world = World(transaction.catalog, transaction.snapshot, session, server, allowed)
        self._made: dict[tuple[int, int], list[Row]] = {}
        """Rows of a table by the definition that has them: a statement may want them many times."""
        self._fixed: dict[int, list[Row]] = {}
        """Rows of a table that no definition has."""
        self._found: dict[tuple[int, Key], Row] = {}
        """Rows that an index has led to, by their keys: they are looked up next."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def before(self) -> CatalogReader:
        about = self._worker, self._session, self._world.server, self._world.allowed
        return CatalogReader(self._transaction.before(), *about)

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
        self._charge(LOOK_UP_STEPS)
        exact = low is high and low is not None
        for entries in self._entries(tree, low, high):
            if exact:
                yield [entry for entry in entries if entry[0] == low]
            else:
                yield [entry for entry in entries if _is_within(entry[0], low, high)]

    def _entries(self, tree: int, low: Bound, high: Bound) -> Iterator[list[Entry]]:
        if tree in _OWN:
            made = _OWN[tree].rows(self._transaction.catalog, self._transaction.snapshot)
            entries = (((at,), (*row, at)) for at, row in enumerate(made))
            while page := list(islice(entries, PAGE_ROWS)):
                self._charge(ROW_STEPS * len(page))
                yield page
            return
        table, data = relation_of_tree(tree)
        index = next((each for each in table.indexes if each.id == tree), None)
        key = table.primary_key
        places = key if index is None else index.columns
        for rows in self._paged(self._rows(table, data, _known(table, places, low, high))):
            if index is None:
                yield [(tuple([row[at] for at in places]), row) for row in rows]
            else:
                yield self._entries_of_index(table, index, rows)

    def _entries_of_index(self, table: Table, index: Index, rows: list[Row]) -> list[Entry]:
        key = table.primary_key
        places = index.columns if index.unique else (*index.columns, *key)
        entries = []
        for row in rows:
            primary_key = tuple([row[at] for at in key])
            self._found[table.id, primary_key] = row
            entries.append((tuple([row[at] for at in places]), primary_key))
        return entries

    def _paged(self, rows: Iterator[Row | None]) -> Iterator[list[Row]]:
        """Yield rows in pages, and a page after much work, even if it is empty."""
        page: list[Row] = []
        for row in rows:
            if row is not None:
                page.append(row)
            if len(page) == PAGE_ROWS or self._unpaged > PAGE_STEPS:
                self._unpaged = 0
                yield page
                page = []
        if page or self._unpaged > PAGE_STEPS:
            self._unpaged = 0
            yield page

    def _charge(self, steps: int) -> None:
        self._worker.work += steps
        self._unpaged += steps

    def _rows(
        self, table: Table, data: RelationData, known: Mapping[str, Any]
    ) -> Iterator[Row | None]:
        """Yield the rows that these values can be in; None after a definition without any."""
        source = source_of(data.name)
        recorded: Iterable[Row] = recorded_rows(data.name) if data.recorded else ()
        for each in source.looked_up_by.keys() & known.keys() if data.recorded else ():
            recorded = recorded_by(data.name, each).get(known[each], ())
            break
        yield from recorded
        if source.fixed is not None:
            yield from self._fixed_rows(table, source.fixed)
        for definition in source.definitions(self._world, known):
            self._charge(DEFINITION_STEPS)
            yield from self._rows_of(table, source, definition)
            yield None

    def _fixed_rows(self, table: Table, make: MakeFixedRows) -> Iterator[Row]:
        """Yield the rows that depend on no definition."""
        kept = self._fixed.get(table.id)
        if kept is not None:
            yield from kept
            return
        rows: list[Row] = []
        for row in self._shaped(table, make(self._world)):
            rows.append(row)
            yield row
        self._fixed[table.id] = rows

    def _rows_of(self, table: Table, source: Source, definition: Definition) -> Iterator[Row]:
        """Yield the rows that a definition has."""
        name = table.id, id(definition)
        kept = self._made.get(name)
        if kept is not None:
            self._charge(len(kept))
            yield from kept
            return
        assert source.rows is not None
        rows: list[Row] = []
        for row in self._shaped(table, source.rows(self._world, definition)):
            rows.append(row)
            yield row
        self._made[name] = rows

    def _shaped(self, table: Table, made: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
        """Yield rows with all columns, and charge them."""
        shape, world = _shape(table.id), self._world
        for number, values in enumerate(made, 1):
            self._charge(ROW_STEPS + world.steps)
            world.steps = 0
            yield tuple(
                [
                    number if name is None else values.get(name, otherwise)
                    for name, otherwise in shape
                ]
            )


@cache
def _shape(tree: int) -> tuple[tuple[str | None, Any], ...]:
    """Return the columns, with what each is where a source says nothing; a row id has no name."""
    return tuple(
        (None if column.hidden else column.name, None if column.nullable else _empty(column.type))
        for column in relation_of_tree(tree)[0].columns
    )


def _empty(sql_type: Any) -> Any:
    if sql_type.kind is Kind.BOOLEAN:
        return False
    if sql_type.kind in STRING_KINDS:
        return ""
    if sql_type.kind is Kind.ARRAY:
        return ()
    if sql_type.kind is Kind.REGPROC:
        return NO_OBJECT
    if sql_type.kind is Kind.NUMERIC:
        return Decimal(0)
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
