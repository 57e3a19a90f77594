"""Channels: what a session tells, and what it listens to.

    LISTEN, UNLISTEN ─► names ── commit ──► the listener hears of them, and of no others
                              └─ rollback ─► as before

Between the sending of a commit and its answer the listener hears of both, because others may commit
behind it before the session goes on. What it heard too much of is dropped when it takes it.
"""

from __future__ import annotations

from collections.abc import Callable

from qserver.engine.channels import Channels, Listener
from qserver.errors import InvalidParameterValue, ProgramLimitExceeded
from qserver.limits import IDENTIFIER_BYTES_MAX, NOTIFICATION_BYTES_MAX, NOTIFICATIONS_SENT_MAX
from qserver.storage.transaction import Transaction

NOTHING: frozenset[str] = frozenset()


def checked(channel: str) -> str:
    """Return the name of a channel; raise if it cannot be one."""
    if not channel:
        raise InvalidParameterValue("channel name cannot be empty")
    if len(channel.encode()) > IDENTIFIER_BYTES_MAX:
        raise InvalidParameterValue("channel name too long")
    return channel


def send(sender: int, transaction: Transaction, channel: str, payload: str) -> None:
    """Tell listeners when the transaction commits."""
    checked(channel)
    if len(payload.encode()) > NOTIFICATION_BYTES_MAX:
        raise InvalidParameterValue("payload string too long")
    if len(transaction.notifications) >= NOTIFICATIONS_SENT_MAX:
        raise ProgramLimitExceeded("too many notifications in one transaction")
    transaction.notify(channel, payload, sender)


class Listening:
    __slots__ = ("_channels", "committed", "listener", "names")

    def __init__(self, channels: Channels, told: Callable[[], None]) -> None:
        self._channels = channels
        self.listener = Listener(told)
        self.names = self.committed = NOTHING

    def begin_commit(self) -> None:
        """Hear of what the transaction wants, and still of what was: its commit is sent."""
        if self.names != self.committed:
            self.listener.listen(self._channels, self.names | self.committed)

    def commit(self) -> None:
        self.committed = self.names
        self._follow()

    def roll_back(self) -> None:
        self.names = self.committed
        self._follow()

    def _follow(self) -> None:
        if self.listener.names != self.committed:
            self.listener.listen(self._channels, self.committed)

    def close(self) -> None:
        """Hear nothing any more."""
        self.names = self.committed = NOTHING
        self.listener.close()

    def __repr__(self) -> str:
        return f"listening to {sorted(self.committed)}"
