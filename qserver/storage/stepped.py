"""A transaction that runs in steps, each of which is kept or undone, with savepoints.

    step ─► reads, writes of its own ─┬─ keep: the writes join those of the whole
            over those of the whole   └─ otherwise they are discarded
    savepoint a ─► steps ─► roll back to a: the writes are as they were there

The whole is an ordinary transaction and commits as one. Everything that a step has read is part of
its footprint, even if the step was undone: the client may have acted on it.

A savepoint records the former values of keys that are written after it. So setting it is free, and
it costs as much as the writes that follow.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from itertools import islice
from typing import Any, Final

from qserver.errors import InvalidSavepoint
from qserver.storage.catalog import NO_CHANGES, Catalog, CatalogChanges
from qserver.storage.page import Key, Value
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import CHANGES_AT_ONCE, SEQUENCES_TREE, Writes
from qserver.values.sizes import size_of, size_of_columns

ABSENT: Final = object()
"""What a key held that the transaction had not written."""

ENTRY_BYTES: Final = 200
"""A key with its place in a dictionary, about; a row is counted besides."""

Pieces = Generator[None, None, None]
"""Yields now and then, so that others can run."""


class SteppedTransaction:
    def __init__(
        self, snapshot: Snapshot, read_only: bool = False, whole: Transaction | None = None
    ) -> None:
        """`whole` is a transaction that has not begun; it collects what all steps do."""
        self.read_only = read_only
        """Whether it can write nothing, so that its footprint matters to nobody."""
        self.whole = Transaction(snapshot) if whole is None else whole
        self.whole.marks = []
        self.affected_rows = 0
        self._savepoints: list[Savepoint] = []
        self._bytes_written = 0
        self.bytes_read = 0

    @property
    def bytes(self) -> int:
        """The memory that it holds, about."""
        return self._bytes_written + self.bytes_read + sum(each.bytes for each in self._savepoints)

    @property
    def savepoints(self) -> int:
        return len(self._savepoints)

    def step(self, statement: int) -> StepTransaction:
        """Begin a step whose first statement has this number."""
        return StepTransaction(self, statement)

    # --- the end of a step ---

    def keep(self, step: StepTransaction, affected_rows: int) -> Pieces:
        """Add the writes of a step to those of the whole."""
        size = yield from _size_of(step.writes)
        if self._savepoints:
            yield from self._savepoints[-1].remember(self.whole.writes, step.writes)
        whole = self.whole
        for tree, changes in step.writes.items():
            if tree in whole.writes:
                whole.writes[tree].update(changes)  # a million take some hundredths of a second
            else:
                whole.writes[tree] = changes
        whole.catalog = step.catalog
        if step.catalog_changes is not NO_CHANGES:
            whole.catalog_changes = whole.catalog_changes.then(step.catalog_changes)
        whole.changes_rows |= step.changes_rows
        for (channel, payload), sender in step.notifications.items():
            size += ENTRY_BYTES + len(payload)
            whole.notify(channel, payload, sender)
        self._bytes_written += size
        self.affected_rows += affected_rows

    def keep_positions(self, step: StepTransaction) -> None:
        """Keep the positions of new sequences, which even a statement that only reads moves."""
        moved = step.writes.get(SEQUENCES_TREE)
        if not moved:
            return
        if self._savepoints:
            for _ in self._savepoints[-1].remember(self.whole.writes, {SEQUENCES_TREE: moved}):
                pass  # they are few
        self.whole.writes.setdefault(SEQUENCES_TREE, {}).update(moved)
        self._bytes_written += ENTRY_BYTES * len(moved)

    # --- savepoints ---

    def set_savepoint(self, name: str) -> None:
        whole = self.whole
        self._savepoints.append(
            Savepoint(
                name,
                whole.catalog,
                whole.catalog_changes,
                self.affected_rows,
                self._bytes_written,
                len(whole.keys.get(SEQUENCES_TREE, ())),
                len(whole.notifications),
            )
        )

    def has_savepoint(self, name: str, since: str | None = None) -> bool:
        """Return whether there is a savepoint of a name, set after the newest one of another."""
        names = [each.name for each in self._savepoints]
        if since is not None:
            names = names[len(names) - names[::-1].index(since) :]
        return name in names

    def forget_savepoint(self, name: str) -> Pieces:
        """Forget the newest savepoint of a name; later ones and all writes stay."""
        at = self._find(name)
        if at:
            yield from self._savepoints[at - 1].take_over(self._savepoints[at])
        del self._savepoints[at]

    def release(self, name: str) -> Pieces:
        """Forget the newest savepoint of a name and all later ones; their writes stay."""
        at = self._find(name)
        released = self._savepoints[at:]
        if at:
            for each in released:
                yield from self._savepoints[at - 1].take_over(each)
        del self._savepoints[at:]

    def roll_back_to(self, name: str) -> Pieces:
        """Undo everything since the newest savepoint of a name, which stays."""
        at = self._find(name)
        undone = self._savepoints[at:]
        there = undone[0]
        whole = self.whole
        self._savepoints[at:] = [there.again()]
        whole.catalog, whole.catalog_changes = there.catalog, there.catalog_changes
        self._forget_sequences(there.sequences_read)
        for later in list(islice(whole.notifications, there.notifications, None)):
            del whole.notifications[later]
        self.affected_rows, self._bytes_written = there.affected_rows, there.bytes_written
        undoing = _undo_all(undone, whole.writes)
        try:
            yield from undoing
        finally:  # to the end, even if nobody waits for it any more
            for _ in _undo_all(undone, whole.writes):
                pass

    def _forget_sequences(self, first: int) -> None:
        """Remove reads of sequence states from the footprint, except for the first so many.

        Only definitions read them, to redefine or drop a sequence. After a rollback this
        transaction may draw from the sequence again, which changes its state at once.
        """
        read = self.whole.keys.get(SEQUENCES_TREE)
        for key in list(islice(read or (), first, None)):
            assert read is not None
            del read[key]

    def _find(self, name: str) -> int:
        for at in reversed(range(len(self._savepoints))):
            if self._savepoints[at].name == name:
                return at
        raise InvalidSavepoint(f'savepoint "{name}" does not exist')

    def __repr__(self) -> str:
        return f"{self.whole!r}, with {len(self._savepoints)} savepoints"


class StepTransaction(Transaction):
    """One step: reads and writes over those of the whole."""

    def __init__(self, stepped: SteppedTransaction, statement: int) -> None:
        whole = stepped.whole
        super().__init__(whole.snapshot, whole.writes)
        self.catalog = self._catalog_before = whole.catalog
        self.marks = whole.marks
        self._stepped = stepped
        self._first = self._statement = statement

    @property
    def changes_catalog(self) -> bool:
        return self.catalog is not self._catalog_before

    def begin_again(self) -> None:
        """Discard the writes: the step runs anew. Its reads stay in the footprint."""
        self.report_reads()
        self._statement = self._first
        self.forget_writes()

    def go_on(self) -> None:
        """Begin a new step over what the whole has now; statement numbers continue."""
        self.catalog = self._catalog_before = self._stepped.whole.catalog
        self.forget_writes()
        self.changes_rows = False

    @property
    def catalog_before(self) -> Catalog:
        return self._catalog_before

    def mark(self) -> None:
        """Begin a statement: statements are numbered over the whole transaction.

        A statement that runs again keeps its mark; one that never ran has that of the next.
        """
        self.report_reads()
        whole = self._stepped.whole
        assert whole.marks is not None
        while len(whole.marks) <= self._statement:
            whole.mark()
            self._stepped.bytes_read += ENTRY_BYTES
        self._statement += 1

    def report_reads(self) -> None:
        """Add the reads so far to the footprint of the whole."""
        whole, stepped = self._stepped.whole, self._stepped
        whole.whole_catalog_seen |= self.whole_catalog_seen
        if not (self.keys or self.ranges or self.names_seen):
            return
        if not stepped.read_only:
            for tree, seen in self.keys.items():
                known = whole.keys.setdefault(tree, {})
                before = len(known)
                known.update(seen)  # of one snapshot, so the values are the same
                some = next(iter(seen.values()))
                stepped.bytes_read += (len(known) - before) * size_of_entry(some)
            stepped.bytes_read += 4 * ENTRY_BYTES * len(self.ranges)
            whole.ranges += self.ranges
            whole.names_seen.update(self.names_seen)
        self.keys, self.ranges, self.names_seen = {}, [], {}


class Savepoint:
    """The state at a savepoint, and the former values of keys written since."""

    def __init__(
        self,
        name: str,
        catalog: Catalog,
        catalog_changes: CatalogChanges,
        affected_rows: int,
        bytes_written: int,
        sequences_read: int,
        notifications: int,
    ) -> None:
        self.name = name
        self.catalog = catalog
        self.catalog_changes = catalog_changes
        self.affected_rows = affected_rows
        self.bytes_written = bytes_written
        self.sequences_read = sequences_read
        self.notifications = notifications
        self._before: dict[int, dict[Key, Any]] = {}

    @property
    def bytes(self) -> int:
        return ENTRY_BYTES * (1 + sum(map(len, self._before.values())))

    def again(self) -> Savepoint:
        """Return the same savepoint, with nothing written since."""
        return Savepoint(
            self.name,
            self.catalog,
            self.catalog_changes,
            self.affected_rows,
            self.bytes_written,
            self.sequences_read,
            self.notifications,
        )

    def remember(self, writes: Writes, changes: Writes) -> Pieces:
        """Record the present values of keys about to be written, unless they are recorded."""
        for tree, of_tree in changes.items():
            written: Mapping[Key, Any] = writes.get(tree, {})
            before = self._before.setdefault(tree, {})
            keys = iter(of_tree)
            while piece := list(islice(keys, CHANGES_AT_ONCE)):
                for key in piece:
                    if key not in before:
                        before[key] = written.get(key, ABSENT)
                if len(piece) == CHANGES_AT_ONCE:
                    yield

    def take_over(self, later: Savepoint) -> Pieces:
        """Take over what a later savepoint would undo; earlier values win."""
        for tree, of_tree in later._before.items():
            before = self._before.setdefault(tree, {})
            entries = iter(of_tree.items())
            while piece := list(islice(entries, CHANGES_AT_ONCE)):
                for key, value in piece:
                    before.setdefault(key, value)
                if len(piece) == CHANGES_AT_ONCE:
                    yield

    def undo(self, writes: Writes) -> Pieces:
        """Restore the former values of the written keys. If interrupted, it can continue."""
        while self._before:
            tree, before = next(iter(self._before.items()))
            written = writes.setdefault(tree, {})
            while before:
                for _ in range(min(len(before), CHANGES_AT_ONCE)):
                    key, value = before.popitem()
                    if value is ABSENT:
                        written.pop(key, None)
                    else:
                        written[key] = value
                if before:
                    yield
            del self._before[tree]
            if not written:
                del writes[tree]


def _undo_all(savepoints: list[Savepoint], writes: Writes) -> Pieces:
    for each in reversed(savepoints):
        yield from each.undo(writes)


def _size_of(writes: Writes) -> Generator[None, None, int]:
    size = 0
    for changes in writes.values():
        rows = iter(changes.values())
        while piece := list(islice(rows, CHANGES_AT_ONCE)):
            rows_of_piece = [row for row in piece if row is not None]
            size += ENTRY_BYTES * len(piece) + 32 * sum(map(len, rows_of_piece))
            size += size_of_columns(rows_of_piece)
            if len(piece) == CHANGES_AT_ONCE:
                yield
    return size


def size_of_entry(row: Value | None) -> int:
    return ENTRY_BYTES if row is None else ENTRY_BYTES + 32 * len(row) + sum(map(size_of, row))
