"""What follows the versions of a database as they become durable: live queries, for one.

An observer outlives generations. It must return at once and never raise: the log writer calls it,
after it has released the answers of the round.
"""

from __future__ import annotations

from typing import Protocol

from qserver.engine.messages import Append
from qserver.storage.snapshot import Snapshot


class Observer(Protocol):
    def committed(self, before: Snapshot, append: Append) -> None:
        """A round is durable; `before` is the snapshot that precedes it. Called in order."""

    def restarting(self, durable: Snapshot) -> None:
        """A generation ends. The next may begin with later versions, which came into the log."""

    def changed(self) -> None:
        """The database opens, recovers, closes, or is refused."""
