"""The channels of a database: NOTIFY in one transaction, and listeners that hear of it.

    a transaction notifies ─► the coordinator orders its commit ─► durable ─► queues of listeners

A notification rides among the answers of its round (`Delivery`). So listeners hear it when it is
durable, in commit order, before the one who sent it is answered; and a commit without any does not
know of this. Between publication and durability it is *pending*. If the engine restarts meanwhile,
recovery tells whether the log has its version: then it is delivered after all, otherwise dropped.

Nothing is stored: who does not listen has missed it. A listener that does not take what it hears is
ended when its queue is full, so that it can never be in doubt whether it has missed something.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from qserver.errors import DatabaseUnavailable, QserverError, ReaderTooSlow
from qserver.limits import NOTIFICATIONS_QUEUED_BYTES_MAX, NOTIFICATIONS_QUEUED_MAX
from qserver.storage.transaction import Notifications

ENTRY_BYTES = 100
"""A notification beside its payload, about."""


class Notification(msgspec.Struct, eq=False):
    """One object for all listeners that have it in their queues; `holders` counts these."""

    channels: Channels
    channel: str
    payload: str
    sender: int
    """The number of the session that has sent it; 0 if it was sent over HTTP."""
    version: int
    """Which its transaction has made."""
    holders: int = 0

    @property
    def size(self) -> int:
        return ENTRY_BYTES + len(self.payload)

    def let_go(self) -> None:
        self.holders -= 1
        if not self.holders:
            self.channels.bytes -= self.size


class Listener:
    """One that hears: a session, or a stream. `told` is called when there is something to take."""

    def __init__(self, told: Callable[[], None]) -> None:
        self.told = told
        self.ended: QserverError | None = None
        """Why it hears nothing any more."""
        self._queue: deque[Notification] = deque()
        self._channels: Channels | None = None
        self.names: frozenset[str] = frozenset()

    @property
    def has_heard(self) -> bool:
        return bool(self._queue)

    @property
    def waiting(self) -> int:
        """How many notifications it has not taken."""
        return len(self._queue)

    def listen(self, channels: Channels, names: frozenset[str]) -> None:
        """Hear of these channels, and no others, from now on."""
        if self._channels is not None:
            self._channels.forget(self, self.names - names)
            self._drop_others(names)
        self._channels = channels if names else None
        added, self.names = names - self.names, names
        if names:
            channels.add(self, added)

    def _drop_others(self, names: frozenset[str]) -> None:
        """Let go of what it has heard of other channels."""
        for _ in range(len(self._queue)):
            heard = self._queue.popleft()
            if heard.channel in names:
                self._queue.append(heard)
            else:
                heard.let_go()

    def close(self) -> None:
        """Hear nothing any more; a second call does nothing."""
        if self._channels is not None:
            self.listen(self._channels, frozenset())

    def hear(self, notification: Notification) -> None:
        if self.ended is not None:
            return
        if len(self._queue) >= NOTIFICATIONS_QUEUED_MAX:
            self.end(_too_slow())
            return
        self._queue.append(notification)
        notification.holders += 1
        self.told()

    def take(self) -> Notification | None:
        """Return the next that it has heard."""
        if not self._queue:
            return None
        taken = self._queue.popleft()
        taken.let_go()
        return taken

    def end(self, error: QserverError) -> None:
        """Let it hear nothing any more, and tell it why."""
        self.close()
        if self.ended is None:
            self.ended = error
            self.told()

    def __repr__(self) -> str:
        return f"a listener to {sorted(self.names)} with {len(self._queue)} notifications"


class Delivery:
    """What the transactions of a round have sent: released with its answers, as one of them."""

    def __init__(self, channels: Channels, version: int, sent: Notifications) -> None:
        self._channels = channels
        self.version = version
        self.sent = sent

    def put(self, answer: Any) -> None:
        """Deliver it: the round is durable."""
        self._channels.deliver(self)


class Channels:
    """All channels of one database, across its generations."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[Listener, None]] = {}
        """By channel, in the order in which they came."""
        self._pending: deque[Delivery] = deque()
        self._has_ended = False
        self.bytes = 0
        """Of notifications that wait in queues, each counted once."""

    # --- listeners ---

    def add(self, listener: Listener, names: Iterable[str]) -> None:
        for name in names:
            self._listeners.setdefault(name, {})[listener] = None
        if self._has_ended:
            listener.end(_closed())

    def forget(self, listener: Listener, names: Iterable[str]) -> None:
        for name in names:
            listeners = self._listeners[name]
            del listeners[listener]
            if not listeners:
                del self._listeners[name]

    @property
    def usage(self) -> float:
        """How full the fullest queue of a listener is, from 0 to 1."""
        most = max((each.waiting for each in self._all()), default=0)
        return max(most / NOTIFICATIONS_QUEUED_MAX, self.bytes / NOTIFICATIONS_QUEUED_BYTES_MAX)

    def _all(self) -> dict[Listener, None]:
        return {each: None for listeners in self._listeners.values() for each in listeners}

    # --- notifications ---

    def delivery(self, version: int, sent: Notifications) -> Delivery:
        """Return what delivers the notifications of a transaction, once its version is durable."""
        made = Delivery(self, version, sent)
        self._pending.append(made)
        return made

    def deliver(self, delivery: Delivery) -> None:
        assert self._pending[0] is delivery, "rounds become durable in order"
        self._pending.popleft()
        self._tell(delivery.version, delivery.sent)

    def _tell(self, version: int, sent: Mapping[tuple[str, str], int]) -> None:
        for (channel, payload), sender in sent.items():
            listeners = self._listeners.get(channel)
            if listeners:
                notification = Notification(self, channel, payload, sender, version)
                self.bytes += notification.size
                notification.holders = 1  # this method
                for each in tuple(listeners):
                    each.hear(notification)
                notification.let_go()
        while self.bytes > NOTIFICATIONS_QUEUED_BYTES_MAX:
            max(self._all(), key=lambda each: each.waiting).end(_too_slow())

    def recovered(self, version: int) -> None:
        """Deliver what the log turned out to have when it was read again, and drop the rest."""
        pending, self._pending = self._pending, deque()
        for each in pending:
            if each.version <= version:
                self._tell(each.version, each.sent)

    def end(self) -> None:
        """End all listeners, also those that come later: the database ends here."""
        self._has_ended = True
        for listener in self._all():
            listener.end(_closed())

    def __repr__(self) -> str:
        return f"{len(self._listeners)} channels, with {len(self._pending)} pending deliveries"


def _too_slow() -> ReaderTooSlow:
    return ReaderTooSlow(
        "too many notifications wait for a listener that does not take them",
        hint="Listen again, and read anew what the notifications are about.",
    )


def _closed() -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "the database was closed, or another process serves it now",
        hint="Connect and listen again.",
    )
