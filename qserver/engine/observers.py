"""The interface of observers, which follow versions as they become durable: live queries, feeds.

An observer outlives generations. Its methods must return at once and never raise: the log writer
calls them after it has released the answers of the round.
"""

from __future__ import annotations

from typing import Protocol

from qserver.engine.messages import Append
from qserver.storage.snapshot import Snapshot


class Observer(Protocol):
    def committed(self, before: Snapshot, append: Append) -> None:
        """Called for each durable round, in order; `before` is the snapshot that precedes it."""

    def restarting(self, durable: Snapshot) -> None:
        """Called when a generation ends. The next may begin with later versions, which reached the
        log.
        """

    def changed(self) -> None:
        """Called when the database opens, recovers, closes or is refused."""
