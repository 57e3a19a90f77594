"""The temporary tables, views and sequences of a session.

    take snapshot ─► lay: the session's own on top ─► statements ─► part ─► commit of the rest
                                                                     └─► keeps, once that is done

A transaction sees and changes them like all others, so every statement, savepoint and rollback
works. `part` takes them out before the engine sees the transaction; they become the session's when
the rest has been committed (`commit`), and are forgotten otherwise (`roll_back`).

They are in memory, which counts as the session's own for as long as it keeps them.
"""

from __future__ import annotations

from qserver.errors import OutOfMemory
from qserver.limits import OPEN_TRANSACTION_BYTES_MAX
from qserver.query.memory_pool import MemoryPool
from qserver.storage.snapshot import Snapshot
from qserver.storage.temporary import NO_TEMPORARY, TemporaryPart, laid_over, part_from
from qserver.storage.transaction import Transaction
from qserver.values.relations import Schema, Sequence
from qserver.values.schema import Table
from qserver.values.steps import Steps
from qserver.values.temporary import TEMPORARY, TemporaryNumbers, is_temporary


class TemporarySchema:
    """What is in `pg_temp` of a session, once it has made something there."""

    __slots__ = ("_laid", "_next", "_pool", "_pooled", "numbers", "part_now")

    def __init__(self, pool: MemoryPool | None) -> None:
        self.numbers = TemporaryNumbers()
        self.part_now: TemporaryPart = NO_TEMPORARY
        self._next: TemporaryPart | None = None
        self._laid: tuple[Snapshot, TemporaryPart, Snapshot] | None = None
        self._pool = pool
        self._pooled = 0

    # --- one transaction ---

    def over(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot as the session sees it."""
        laid = self._laid
        if laid is None or laid[0] is not snapshot or laid[1] is not self.part_now:
            made = laid_over(snapshot, self.part_now, self.numbers)
            self._laid = laid = snapshot, self.part_now, made
        return laid[2]

    def lay(self, transaction: Transaction) -> None:
        """Let a transaction that has not begun see them."""
        transaction.snapshot = self.over(transaction.snapshot)
        transaction.catalog = transaction.snapshot.catalog

    def open(self, transaction: Transaction) -> None:
        """Let a transaction make the first of them, if it is the first."""
        schema = Schema(TEMPORARY)
        if transaction.catalog.temporary is None:
            transaction.begin_temporary(self.numbers)
        if transaction.catalog.find(schema.key) is None:
            transaction.define(schema.key, schema)

    def take_out(self, transaction: Transaction, base: Snapshot) -> Steps[None]:
        """Take them out of a transaction that is about to commit."""
        made = yield from part_from(transaction, base, self.part_now)
        self._charge(made.bytes)
        self._next = made

    def commit(self) -> None:
        """Keep what the transaction has made of them."""
        made, self._next = self._next, None
        if made is not None:
            gone = self.part_now.definitions.keys() - made.definitions.keys()
            self.part_now, self._laid = made, None
            if gone:
                self._forget_numbers()
        self._charge(self.part_now.bytes)

    def roll_back(self) -> None:
        if self._next is not None:
            self._next = None
            self._charge(self.part_now.bytes)

    def _forget_numbers(self) -> None:
        """Forget what is known of relations that are gone."""
        kept, numbers = self.part_now.definitions.values(), self.numbers
        states = {each.state for each in kept if isinstance(each, Sequence)}
        oids = {each.oid for each in kept}
        numbers.states = {each: at for each, at in numbers.states.items() if each in states}
        numbers.on_commit = {each: how for each, how in numbers.on_commit.items() if each in oids}

    # --- memory ---

    def _charge(self, size: int) -> None:
        if size > self._pooled:
            if size > OPEN_TRANSACTION_BYTES_MAX:
                raise OutOfMemory(
                    "the temporary tables of a session hold more than they may",
                    detail=f"The limit is {OPEN_TRANSACTION_BYTES_MAX} bytes.",
                    hint="Drop or empty those that are not needed.",
                )
            if self._pool is not None:
                self._pool.take(size - self._pooled)
        elif self._pool is not None:
            self._pool.give_back(self._pooled - size)
        self._pooled = size

    def release(self) -> None:
        """Forget everything: the session ends."""
        self.part_now, self._next, self._laid = NO_TEMPORARY, None, None
        self._charge(0)

    def __repr__(self) -> str:
        return f"{len(self.part_now.definitions)} temporary definitions"


def drop_all(transaction: Transaction) -> None:
    """Drop all temporary relations: DISCARD TEMP."""
    for definition in list(transaction.catalog.definitions()):
        if is_temporary(definition.key):
            transaction.define(definition.key, None)
            if isinstance(definition, Table):
                transaction.drop_trees(definition.id, *(each.id for each in definition.indexes))
