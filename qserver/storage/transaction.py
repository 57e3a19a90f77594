"""A transaction: what one attempt of a work reads from a snapshot and wants to write.

    reads ──► own writes (the overlay) ──► earlier writes of the same round ──► the snapshot
    writes ─► the overlay; it is the *delta* when the work is done

The *footprint* records everything that the work learns about the database: each key with the value
seen there (None: absent, which is knowledge too), each scanned range with the predicate that
selected its rows, each name looked up in the catalog. The transaction may commit if all of it still
holds. Unique keys, foreign keys, phantoms and changes of schema need nothing more: they are reads
which must still hold.

A transaction knows nothing of shards: `routing` looks up where its keys belong when it commits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from qserver.errors import UndefinedTable, UniqueViolation
from qserver.storage.btree import load_at, pages
from qserver.storage.catalog import NO_CHANGES, Catalog
from qserver.storage.columns import ScanPart, chunks, pieces
from qserver.storage.key_order import KeyOrder
from qserver.storage.page import Key, Value
from qserver.storage.snapshot import Page, Snapshot
from qserver.storage.writes import CHANGES_AT_ONCE, TreeWrites, Writes, count_changes, merge_writes
from qserver.values.identifiers import PUBLIC
from qserver.values.keys import TOP, Bound, Predicate
from qserver.values.relations import Definition
from qserver.values.schema import Table
from qserver.values.steps import at_once
from qserver.values.temporary import TEMPORARY, TemporaryNumbers, is_temporary

FEW_CHANGES: Final = 8
"""So many changes are looked through one by one; of more, the order is kept."""

Journal: TypeAlias = list[tuple[Table, Value | None, Value | None]]

Notifications: TypeAlias = dict[tuple[str, str], int]
"""Channel and payload of what a transaction tells listeners, in order, and who has sent it."""

NO_NOTIFICATIONS: Final[Notifications] = {}


class ScannedRange(msgspec.Struct):
    """Keys low <= key < high of a tree were read; only rows that satisfy `predicate` mattered.

    `counted`: of each key, only whether it is there. Not frozen: a scan that ends early narrows its
    range to the keys that it handed out.
    """

    tree: int
    low: Bound
    high: Bound
    predicate: Predicate | None
    counted: bool = False

    def __contains__(self, key: Key) -> bool:
        return (self.low is None or self.low <= key) and (self.high is None or key < self.high)


class Mark(msgspec.Struct, frozen=True):
    """Lengths of a footprint: of its ranges, names, and keys by tree."""

    ranges: int
    names: int
    keys: dict[int, int]


class Transaction:
    """Reads and writes of one attempt: filled by the work, read-only afterwards."""

    # One is made for every attempt, so fields that most leave alone are class attributes.
    whole_catalog_seen = False
    catalog_changes = NO_CHANGES
    own_version = False
    """Whether its version may hold no other transaction's writes."""
    changes_rows = False
    """Whether a statement that is no definition may have changed rows."""
    retries = 0
    """How many earlier attempts of the same work conflicted."""
    journal: Journal | None = None
    """Rows before and after each change, if the end of the statement needs them."""
    _orders: Mapping[int, KeyOrder] = {}
    """The order of changes in which ranges were looked up, by the identity of their dict."""
    notifications = NO_NOTIFICATIONS
    """What listeners are told if it commits; see `notify`."""
    marks: list[Mark] | None = None
    """How far the footprint reached when each statement began, if a conflict should name one."""

    def __init__(self, snapshot: Snapshot, earlier: Writes | None = None) -> None:
        self.snapshot = snapshot
        self.earlier = earlier
        self.catalog: Catalog = snapshot.catalog
        self.keys: dict[int, dict[Key, Value | None]] = {}
        """The values seen at keys, by tree."""
        self.ranges: list[ScannedRange] = []
        self.writes: Writes = {}
        self.names_seen: dict[str, Definition | None] = {}

    # --- reading ---

    def table(self, name: str) -> Table:
        """Return the table of that name; the transaction then depends on its definition."""
        table = self.find_definition(name)
        if not isinstance(table, Table):
            raise UndefinedTable(f'relation "{name}" does not exist', table=name)
        return table

    def find_definition(self, name: str) -> Definition | None:
        """Return the definition under a name; the transaction then depends on it."""
        if name not in self.names_seen:
            self.names_seen[name] = self.snapshot.catalog.find(name)
        return self.catalog.find(name)

    def get(self, table: Table, key: Key) -> Value | None:
        return self.get_entry(table.id, key)

    def get_entry(self, tree: int, key: Key) -> Value | None:
        changes = self.writes.get(tree)
        if changes is not None and key in changes:
            return changes[key]
        if self.earlier:
            changes = self.earlier.get(tree)
            if changes is not None and key in changes:
                return changes[key]
        value = self.snapshot.get_entry(tree, key)
        seen = self.keys.get(tree)
        if seen is None:
            self.keys[tree] = {key: value}
        else:
            seen[key] = value
        return value

    def scan(
        self,
        tree: int,
        low: Bound = None,
        high: Bound = None,
        predicate: Predicate | None = None,
        backward: bool = False,
        limit: int | None = None,
    ) -> Iterator[Page]:
        """Yield entries with low <= key < high in order, a page at a time.

        The whole range counts as read. Closing the scan early narrows it to the keys that were
        handed out, so a scan that is never closed errs on the safe side. The predicate does not
        filter: it says which changes of other transactions matter. `limit` does not cut: it hints
        that so many entries will probably do.
        """
        scanned = ScannedRange(tree, low, high, predicate)
        self.ranges.append(scanned)
        return self._scan(scanned, backward, limit)

    def first_rows(
        self, tree: int, low: Bound, high: Bound, backward: bool, most: int
    ) -> list[Value]:
        """Return the values of the first entries of a range, at most `most`."""
        found: list[Value] = []
        for _, page in self.scan(tree, low, high, None, backward, most):
            found += page
            if len(found) >= most:
                break
        return found[:most]

    def scan_values(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[list[Value]]:
        """Yield the values of the same entries as `scan`, in the same order, many at a time.

        The whole range counts as read, however early the scan ends.
        """
        scanned = ScannedRange(tree, low, high, predicate)
        self.ranges.append(scanned)
        own = self._own_changes(scanned) if self.writes or self.earlier else {}
        if own:
            stream = _overlaid(self.snapshot.pages(tree, low, high), own, backward=False)
            return (values for _, values in stream)
        return self.snapshot.value_runs(tree, low, high)

    def count(self, tree: int, low: Bound = None, high: Bound = None) -> int:
        """Return the number of entries with low <= key < high.

        The footprint is which keys are there, not what is at them.
        """
        scanned = ScannedRange(tree, low, high, None, counted=True)
        self.ranges.append(scanned)
        number = self.snapshot.count(tree, low, high)
        own = self._own_changes(scanned) if self.writes or self.earlier else {}
        if own:
            seen = self.keys.get(tree, {})
            doubtful = [key for key in own if seen.get(key, key) is not None]  # not seen as absent
            if doubtful:
                number -= len(self.snapshot.entries_at(tree, sorted(doubtful)))
            number += sum([value is not None for value in own.values()])
        return number

    def scan_chunks(
        self, tree: int, low: Bound = None, high: Bound = None, predicate: Predicate | None = None
    ) -> Iterator[ScanPart]:
        """Yield the same values as `scan_values`, as chunks where the overlay changes nothing.

        The whole range counts as read.
        """
        scanned = ScannedRange(tree, low, high, predicate)
        self.ranges.append(scanned)
        own = self._own_changes(scanned) if self.writes or self.earlier else {}
        if own:
            return self._chunks_around(scanned, own)
        return self.snapshot.scan_chunks(tree, low, high)

    def _chunks_around(self, scanned: ScannedRange, own: TreeWrites) -> Iterator[ScanPart]:
        """Yield the pages that the overlay changes as rows, the others as chunks."""
        order = sorted(own)
        tree = self.snapshot.trees.tree(scanned.tree)
        for root, low, high in tree.pieces(scanned.low, scanned.high):
            for page, first, last in pieces(root, low, high):
                start = 0 if first is None else bisect_left(order, first)
                stop = len(order) if last is None else bisect_left(order, last)
                if start == stop:
                    yield from chunks(page, first, last)
                    continue
                changed = {key: own[key] for key in order[start:stop]}
                for _, values in _overlaid(pages(page, first, last), changed, backward=False):
                    yield values

    def before(self) -> Transaction:
        """Return a transaction that sees none of this one's later writes; one footprint."""
        earlier: Writes = {}
        for layer in (self.earlier, self.writes):
            at_once(merge_writes(earlier, layer or {}))
        reader = Transaction(self.snapshot, earlier)
        reader.keys, reader.ranges = self.keys, self.ranges
        return reader

    def rows(
        self,
        table: Table,
        low: Bound = None,
        high: Bound = None,
        predicate: Predicate | None = None,
    ) -> list[Value]:
        found: list[Value] = []
        for _, page in self.scan(table.id, low, high, predicate):
            found += page if predicate is None else filter(predicate, page)
        return found

    def _scan(self, scanned: ScannedRange, backward: bool, limit: int | None) -> Iterator[Page]:
        tree, low, high = scanned.tree, scanned.low, scanned.high
        stream = self.snapshot.pages_in_order(tree, low, high, backward, limit)
        own = self._own_changes(scanned) if self.writes or self.earlier else {}
        if own:
            stream = _overlaid(stream, own, backward)
        last: Key | None = None
        try:
            for page in stream:
                last = page[0][-1]
                yield page
        except GeneratorExit:
            if last is not None and backward:
                scanned.low = last
            elif last is not None:
                scanned.high = (*last, TOP)
            raise

    def _own_changes(self, scanned: ScannedRange) -> TreeWrites:
        own: TreeWrites = {}
        for layer in (self.earlier, self.writes):
            changes = (layer or {}).get(scanned.tree, {})
            if scanned.low is None and scanned.high is None:
                own.update(changes)
            elif len(changes) <= FEW_CHANGES:
                own.update((key, changes[key]) for key in changes if key in scanned)
            else:
                keys = self._order_of(changes).within(scanned.low, scanned.high)
                own.update((key, changes[key]) for key in keys)
        return own

    def _order_of(self, changes: TreeWrites) -> KeyOrder:
        found = self._orders.get(id(changes))
        if found is None:  # it refers to the changes, so no other dict has their identity
            found = KeyOrder(changes)
            self._orders = {**self._orders, id(changes): found}
        return found

    # --- writing ---

    def put(self, table: Table, row: Value) -> None:
        """Write a row, whatever is at its key. Blind, unless indexes or the journal need that."""
        key = table.key_of(row)
        if table.indexes or self.journal is not None:
            old = self.get_entry(table.id, key)
            self._change_indexes(table, old, row)
            if self.journal is not None:
                self.journal.append((table, old, row))
        self.put_entry(table.id, key, row)

    def insert(self, table: Table, row: Value) -> None:
        """Write a row whose key must be free."""
        key = table.key_of(row)
        if self.get_entry(table.id, key) is not None:
            raise unique_violation(table, table.primary_key_name, table.primary_key, row)
        if table.indexes:
            self._change_indexes(table, None, row)
        if self.journal is not None:
            self.journal.append((table, None, row))
        self.put_entry(table.id, key, row)

    def insert_many(self, table: Table, rows: list[Value]) -> None:
        """Write rows whose keys must be free: the same as `insert` of each, only quicker.

        Each tree is searched once for all keys. If a key is taken, or may be, the rows go in one by
        one, so that the error names the row in the way.
        """
        if not rows:
            return
        entries = self._entries_if_free(table, rows) if len(rows) > 1 else None
        if entries is None:
            for row in rows:
                self.insert(table, row)
            return
        for tree, changes in entries.items():
            self.put_entries(tree, changes)
        if self.journal is not None:
            self.journal += [(table, None, row) for row in rows]

    def _entries_if_free(self, table: Table, rows: list[Value]) -> dict[int, TreeWrites] | None:
        """Return all entries of new rows by tree; None unless all keys are known to be free."""
        rows_of: TreeWrites = dict(zip(table.keys_of(rows), rows, strict=True))
        if len(rows_of) < len(rows) or not self._are_free(table.id, rows_of):
            return None
        entries = {table.id: rows_of}
        for index in table.indexes:
            of_index: TreeWrites = dict(map(table.entry_function(index), rows))
            if len(of_index) < len(rows):
                return None
            if index.unique and not self._are_free(index.id, of_index):
                return None
            entries[index.id] = of_index
        return entries

    def _are_free(self, tree: int, entries: TreeWrites) -> bool:
        """Return whether nothing is at these keys; if so, the footprint records that."""
        for layer in (self.writes, self.earlier):
            changes = layer.get(tree) if layer else None
            if changes and not changes.keys().isdisjoint(entries):
                return False
        if self.snapshot.entries_at(tree, sorted(entries)):
            return False
        self.keys.setdefault(tree, {}).update(dict.fromkeys(entries))
        return True

    def delete(self, table: Table, key: Key) -> Value | None:
        """Delete the row at a key and return it; None if there was none."""
        row = self.get_entry(table.id, key)
        if row is not None:
            if table.indexes:
                self._change_indexes(table, row, None)
            if self.journal is not None:
                self.journal.append((table, row, None))
            self.put_entry(table.id, key, None)
        return row

    def put_entry(self, tree: int, key: Key, value: Value | None) -> None:
        changes = self.writes.get(tree)
        if changes is None:
            self.writes[tree] = {key: value}
        else:
            changes[key] = value

    def put_entries(self, tree: int, entries: TreeWrites) -> None:
        self.writes.setdefault(tree, {}).update(entries)

    def _change_indexes(self, table: Table, old: Value | None, new: Value | None) -> None:
        for index in table.indexes:
            before = None if old is None else table.entries(index, old)
            after = None if new is None else table.entries(index, new)
            if before == after:
                continue
            if before is not None:
                self.put_entry(index.id, before[0], None)
            if after is not None:
                key, primary_key = after
                if index.unique and self.get_entry(index.id, key) is not None:
                    assert new is not None
                    raise unique_violation(table, index.name, index.columns, new)
                self.put_entry(index.id, key, primary_key)

    # --- changing the schema ---

    def next_tree(self, schema: str = PUBLIC) -> int:
        """Return an unused tree number. One transaction at a time changes definitions."""
        if schema == TEMPORARY:
            assert self.catalog.temporary is not None, "its session has a temporary schema"
            return self.catalog.temporary.take()
        self.whole_catalog_seen = True
        self.catalog = self.catalog.changed({}, self.catalog.trees_used + 1)
        return self.catalog.trees_used

    def begin_temporary(self, numbers: TemporaryNumbers) -> None:
        """Let definitions of temporary relations follow; they are no change for others."""
        self.catalog = replace(self.catalog, temporary=numbers)

    def drop_table(self, name: str) -> None:
        table = self.table(name)
        self.define(name, None)
        self.drop_trees(table.id, *(index.id for index in table.indexes))

    def define(self, name: str, definition: Definition | None) -> None:
        """Set or remove a definition; the caller fills or drops the trees behind it."""
        if not is_temporary(name):
            self.whole_catalog_seen = True
        self.catalog = self.catalog.changed({name: definition}, self.catalog.trees_used)
        definitions = {**self.catalog_changes.definitions, name: self.catalog.find(name)}
        self.catalog_changes = replace(self.catalog_changes, definitions=definitions)

    def drop_trees(self, *trees: int) -> None:
        """Drop trees with all their entries; no definition may still name them."""
        dropped = self.catalog_changes.dropped + trees
        self.catalog_changes = replace(self.catalog_changes, dropped=dropped)

    def note_rewritten(self, old: int, new: int) -> None:
        """Record that the rows of a table moved to another tree, in another form."""
        rewritten = {**self.catalog_changes.rewritten, new: old}
        self.catalog_changes = replace(self.catalog_changes, rewritten=rewritten)

    def note_for_log(self, note: Any) -> None:
        """Carry a note about the changes of definitions, which is undone with them."""
        notes = (*self.catalog_changes.notes, note)
        self.catalog_changes = replace(self.catalog_changes, notes=notes)

    # --- telling listeners ---

    def notify(self, channel: str, payload: str, sender: int) -> None:
        """Tell those who listen to a channel if it commits, once however often it is said."""
        if not self.notifications:
            self.notifications = {}
        self.notifications.setdefault((channel, payload), sender)

    # --- when the work is done ---

    def mark(self) -> None:
        """Record where the footprint of the next statement begins."""
        if self.marks is not None:
            lengths = {tree: len(seen) for tree, seen in self.keys.items()}
            self.marks.append(Mark(len(self.ranges), len(self.names_seen), lengths))

    @property
    def catalog_before(self) -> Catalog:
        """The definitions without this transaction's own changes."""
        return self.snapshot.catalog

    def entry_before(self, tree: int, key: Key) -> Value | None:
        """Return the entry at a key without this transaction's own writes; records no read."""
        if self.earlier and key in self.earlier.get(tree, ()):
            return self.earlier[tree][key]
        return self.snapshot.get_entry(tree, key)

    def forget_writes(self) -> None:
        """Undo all changes; what was read stays in the footprint."""
        self.writes = {}
        self._orders = {}  # a savepoint may have taken earlier changes back
        self.catalog, self.catalog_changes = self.catalog_before, NO_CHANGES
        self.notifications = NO_NOTIFICATIONS

    def load_written(self) -> Iterator[None]:
        """Load the pages that the writes will change, so that an unreadable page fails this
        transaction.

        Otherwise it would fail the shard that installs the writes. Keys that were read are loaded
        already. Yields now and then, where others may run.
        """
        for tree, changes in self.writes.items():
            read = self.keys.get(tree, {})
            if len(changes) <= CHANGES_AT_ONCE and changes.keys() <= read.keys():
                continue
            rest = iter(changes)
            for start in range(0, len(changes), CHANGES_AT_ONCE):
                if start:
                    yield
                keys = [key for key in islice(rest, CHANGES_AT_ONCE) if key not in read]
                if keys:
                    keys.sort()
                    yield from self._load_at(tree, keys)

    def _load_at(self, tree: int, keys: list[Key]) -> Iterator[None]:
        for root, low, high in self.snapshot.trees.tree(tree).pieces(keys[0], None):
            first = 0 if low is None else bisect_left(keys, low)
            last = len(keys) if high is None else bisect_left(keys, high)
            if first < last:
                yield from load_at(root, keys[first:last])

    @property
    def changes_anything(self) -> bool:
        return bool(self.writes or self.changes_catalog or self.notifications)

    @property
    def changes_catalog(self) -> bool:
        return self.catalog is not self.snapshot.catalog

    def __repr__(self) -> str:
        reads = sum(map(len, self.keys.values()))
        writes = count_changes(self.writes)
        return (
            f"a transaction on version {self.snapshot.version} that read {reads} keys and"
            f" {len(self.ranges)} ranges and writes {writes} keys"
        )


def _overlaid(stream: Iterator[Page], own: TreeWrites, backward: bool) -> Iterator[Page]:
    """Yield pages in order with the overlay's changes made."""
    order = sorted(own, reverse=backward)
    done = 0
    for keys, values in stream:
        reached = _reached(order, keys[-1], backward)
        if reached == done and own.keys().isdisjoint(keys):
            yield keys, values
            continue
        entries: TreeWrites = dict(zip(keys, values, strict=True))
        entries.update((key, own[key]) for key in order[done:reached])
        done = reached
        yield from _page_of(entries, backward)
    yield from _page_of({key: own[key] for key in order[done:]}, backward)


def _reached(order: list[Key], last: Key, backward: bool) -> int:
    if backward:
        return sum(key >= last for key in order)
    return bisect_left(order, (*last, TOP))


def _page_of(entries: TreeWrites, backward: bool) -> Iterator[Page]:
    kept = sorted((key for key, value in entries.items() if value is not None), reverse=backward)
    if kept:
        values: list[Any] = [entries[key] for key in kept]
        yield kept, values


def unique_violation(
    table: Table, constraint: str, columns: tuple[int, ...], row: Value
) -> UniqueViolation:
    return UniqueViolation(
        f'duplicate key value violates unique constraint "{constraint}"',
        detail=f"Key {table.describe_key(columns, row)} already exists.",
        table=table.name,
        constraint=constraint,
    )
