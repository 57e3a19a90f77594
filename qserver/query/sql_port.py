"""What SQL needs of a database: a half that reads, and a half that writes.

    ReadableDatabase     snapshots, and to wait for one    a writer, or a follower of another's log
    WritableDatabase     transactions, and sequences       the one writer

The reading half needs nothing of the other. A database that only reads has no writer, and refuses
writes and every use of a sequence: values of a sequence are reserved in the log, so only the writer
can give them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

from qserver.durability.page_cache import PageCache
from qserver.engine.advisory_locks import AdvisoryLocks
from qserver.engine.channels import Channels
from qserver.engine.freshness import Freshness
from qserver.engine.gateway import Outcome
from qserver.engine.history import AsOf
from qserver.engine.messages import Work
from qserver.engine.sequences import Sequences
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.watches import Watches
from qserver.engine.work import FOREVER, Step
from qserver.errors import SerializationFailure
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction


class WritableDatabase(Protocol):
    @property
    def sequences(self) -> Sequences:
        """All sequences, for `nextval` and the like."""

    @property
    def advisory_locks(self) -> AdvisoryLocks:
        """Numbers that sessions lock."""

    @property
    def channels(self) -> Channels:
        """Where listeners hear of what transactions tell them."""

    async def transact(
        self, work: Work, *, max_retries: int = ..., deadline: float = FOREVER
    ) -> Outcome:
        """Run work and commit its writes; durable when it returns."""

    def transacting(
        self,
        work: Work,
        max_retries: int,
        deadline: float,
        untried: bool,
        request_id: str | None = None,
    ) -> Generator[Step, Any, Outcome]:
        """Return the steps of `transact`, as part of other work."""

    def committing(
        self, transaction: Transaction, deadline: float, request_id: str | None = None
    ) -> Generator[Step, Any, Outcome]:
        """Return the steps of the commit of a transaction that has run, as it is."""

    async def explain(self, error: SerializationFailure) -> None:
        """Add to a conflict which request changed what was read."""

    async def check_kept(self, version: int) -> None:
        """Raise HistoryTooOld if the database has a history, and the version is older."""


class ReadableDatabase(Protocol):
    @property
    def snapshots(self) -> SnapshotSource:
        """The source of snapshots, which may have none to show now."""

    @property
    def watches(self) -> Watches:
        """Wakes live queries."""

    @property
    def page_cache(self) -> PageCache:
        """Loads the pages of its snapshots."""

    async def wait_durable_snapshot(self, deadline: float = FOREVER, version: int = 0) -> Snapshot:
        """Return the newest durable snapshot; wait until its version is at least `version`."""

    async def wait_fresh(self, freshness: Freshness, deadline: float = FOREVER) -> Snapshot:
        """Return a snapshot that is fresh enough, or raise NotFreshEnough."""

    async def snapshot_at(self, as_of: AsOf, deadline: float = FOREVER) -> Snapshot:
        """Return the snapshot at a version or a time, if that is kept."""

    @property
    def writer(self) -> WritableDatabase | None:
        """The writing half; None if this process only reads."""
