"""What SQL asks of a database: a half that can be read, and a half that can be written.

    ReadableDatabase     snapshots, and to wait for one    a writer, or a follower of another's log
    WritableDatabase     transactions, and sequences       the one writer

The reading half needs nothing of the other. A database that only reads has no writer: what writes,
and every use of a sequence, is refused there. Numbers of a sequence are reserved in the log, so
only the writer can give them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.engine.sequences import Sequences
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.work import FOREVER, Step
from qserver.storage.snapshot import Snapshot


class WritableDatabase(Protocol):
    @property
    def sequences(self) -> Sequences:
        """All sequences, for `nextval` and its like."""

    async def transact(
        self, work: Work, *, max_retries: int = ..., deadline: float = FOREVER
    ) -> Outcome:
        """Run work and commit what it writes; durable when it returns."""

    def transacting(
        self, work: Work, max_retries: int, deadline: float, untried: bool
    ) -> Generator[Step, Any, Outcome]:
        """The same as part of other work."""


class ReadableDatabase(Protocol):
    @property
    def snapshots(self) -> SnapshotSource:
        """Where snapshots are taken, if one may be shown now."""

    async def wait_durable_snapshot(self, deadline: float = FOREVER, version: int = 0) -> Snapshot:
        """The newest durable snapshot, waited for until there is one that is not older than
        this."""

    @property
    def writer(self) -> WritableDatabase | None:
        """The writing half; None where this process only reads."""
