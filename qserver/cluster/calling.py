"""The caller's end of one connection: what it has asked for, and what became of that.

    ask ──► pending[id] ──► Call or Lock ────►
    value or error ◄── pending[id] ◄──────────  Answer or Failure

When the connection breaks everything that is pending ends at once: what was not sent with NotSent,
so that it can be asked over the next connection, and what was sent with OutcomeUnknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

import trio

from qserver.cluster.connection import Connection, LinkBroken
from qserver.cluster.frames import DamagedFrame
from qserver.cluster.messages import (
    Answer,
    Beat,
    Call,
    Cancel,
    Credit,
    End,
    Failure,
    Follow,
    Hello,
    Item,
    Lock,
    Message,
    Move,
)
from qserver.cluster.outgoing import Outgoing
from qserver.cluster.streams import Stream
from qserver.errors import (
    DatabaseUnavailable,
    OutcomeUnknown,
    QserverError,
    TooManyRequests,
    error_from_plain,
)
from qserver.limits import LINK_CALLS_MAX


class NotSent(Exception):
    """The callee has not seen it, and will not."""


class _Pending:
    def __init__(self) -> None:
        self.answered = trio.Event()
        self.answer: Answer | Failure | None = None
        """None once `answered`: the connection has broken."""


class Caller:
    """Calls over one connection. `greeted` is called when the callee has accepted it."""

    def __init__(
        self,
        connection: Connection,
        process: int,
        name: str,
        greeted: Callable[[Caller], None],
    ) -> None:
        self._connection = connection
        self._process = process
        self._name = name
        self._greeted = greeted
        self._pending: dict[int, _Pending] = {}
        self._streams: dict[int, Stream] = {}
        self._scopes: set[trio.CancelScope] = set()

    @property
    def is_broken(self) -> bool:
        return self._connection.is_closed

    async def ask(self, message: Call | Lock, deadline: float, sent_by: float = inf) -> object:
        """Return the answer, or raise it; NotSent and OutcomeUnknown say what is known."""
        self._check_room()
        frame = Outgoing(message)
        pending = self._pending[message.id] = _Pending()
        try:
            with trio.move_on_at(min(deadline, sent_by)):
                await self._connection.send(frame)
                await pending.answered.wait()
            if frame.begun and not pending.answered.is_set():
                with trio.move_on_at(deadline):
                    await pending.answered.wait()
        except LinkBroken:
            raise NotSent from None
        finally:
            del self._pending[message.id]
            was_sent = not self._connection.withdraw(frame)
            if was_sent and not pending.answered.is_set():
                self.leave(message.id)
        match pending.answer:
            case Answer(value=value):
                return value
            case Failure(classes=classes, attributes=attributes):
                raise error_from_plain(classes, attributes)
            case None if was_sent:
                raise OutcomeUnknown(
                    f"{self._name} was asked and has not answered",
                    detail="It may have done what it was asked for.",
                )
            case None:
                raise NotSent

    async def follow(self, message: Follow) -> Stream:
        self._check_room()
        stream = self._streams[message.id] = Stream(message.id, self._connection)
        try:
            await self._connection.send(Outgoing(message))
        except BaseException as error:
            del self._streams[message.id]
            if isinstance(error, LinkBroken):
                raise NotSent from None
            raise
        return stream

    async def move(self, message: Move, descriptor: int, deadline: float) -> bool:
        """Return whether it was sent."""
        frame = Outgoing(message, descriptor)
        try:
            with trio.move_on_at(deadline):
                await self._connection.send(frame)
                await frame.ended.wait()
        except LinkBroken:
            pass
        finally:
            if not self._connection.withdraw(frame):
                with trio.CancelScope(shield=True):
                    await frame.ended.wait()  # its first bytes have left: not long
        return frame.sent

    def leave(self, message_id: int) -> None:
        """End a call, a lock or a stream."""
        self._streams.pop(message_id, None)
        self._connection.send_nowait(Outgoing(Cancel(message_id)))

    def receive(self, message: Message, descriptor: int | None) -> None:
        assert descriptor is None or isinstance(message, Move)
        match message:
            case Answer() | Failure():
                pending = self._pending.get(message.id)
                if pending is not None:
                    pending.answer = message
                    pending.answered.set()
                elif isinstance(message, Failure) and message.id in self._streams:
                    error = error_from_plain(message.classes, message.attributes)
                    self._streams[message.id].end(error)
            case Item() if message.id in self._streams:
                self._streams[message.id].arrive(message.value)
            case Credit() if message.id in self._streams:
                self._streams[message.id].credit()
            case End() if message.id in self._streams:
                self._streams[message.id].end()
            case Item() | Credit() | End():
                pass  # the stream was left meanwhile
            case Hello(process=self._process):
                self._greeted(self)
            case Beat():
                pass
            case _:
                raise DamagedFrame(f"{type(message).__name__} is not for a caller")

    def end(self) -> None:
        """The connection has broken."""
        for pending in self._pending.values():
            pending.answered.set()
        for stream in self._streams.values():
            stream.end(unavailable(self._name))
        for scope in self._scopes:
            scope.cancel()

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """What is done in this block ends with the connection."""
        with trio.CancelScope() as scope:
            if self._connection.is_closed:
                scope.cancel()
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    def _check_room(self) -> None:
        if len(self._pending) + len(self._streams) >= LINK_CALLS_MAX:
            raise TooManyRequests(f"{LINK_CALLS_MAX} calls to {self._name} are under way")


def unavailable(name: str, detail: str | None = None) -> QserverError:
    return DatabaseUnavailable(f"{name} does not answer", detail=detail, hint="Try again.")
