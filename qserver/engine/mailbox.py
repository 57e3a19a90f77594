"""Bounded mailboxes and one-time replies: how actors communicate.

A mailbox is a Trio memory channel whose reader takes all waiting messages at once: waking a task
costs more than handling most messages, so under load one wake-up must serve many. The sender
chooses what happens when the mailbox is full: `put_nowait` raises `TooManyRequests` (the gateway
refuses the request, nothing was applied), `put` waits (the coordinator waits for the log). An idle
reader may handle a message right where it is sent; the message then bypasses the mailbox.

Messages between coordinator and shards never find a mailbox full, because each shard is sent at
most one message before it has answered the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import trio

from qserver.errors import TooManyRequests

Message = TypeVar("Message")
Content = TypeVar("Content")


class MailboxStatistics(msgspec.Struct, frozen=True):
    name: str
    waiting: int
    waiting_most: int
    capacity: int
    taken: int


class Mailbox(Generic[Message]):
    """A bounded queue with one reader."""

    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self._sender, self._receiver = trio.open_memory_channel[Message](capacity)
        self._put = 0
        self._taken = 0
        self._passed = 0
        """Messages that bypassed the mailbox."""
        self._waiting_most = 0

    def put_nowait(self, message: Message) -> None:
        try:
            self._sender.send_nowait(message)
        except trio.WouldBlock:
            raise TooManyRequests(
                f"{self.capacity} messages wait at the {self.name} already",
                hint="Try again in a moment, or send fewer requests at once.",
            ) from None
        self._put += 1

    async def put(self, message: Message) -> None:
        try:
            self._sender.send_nowait(message)
        except trio.WouldBlock:
            await self._sender.send(message)
        self._put += 1

    async def take(self, most: int) -> list[Message]:
        """Wait for a message, then take all waiting messages, in order, up to `most`."""
        return self._with_waiting([await self._receiver.receive()], most)

    def take_nowait(self, most: int) -> list[Message]:
        """Take all waiting messages, in order, up to `most`; may return an empty list."""
        return self._with_waiting([], most)

    def _with_waiting(self, messages: list[Message], most: int) -> list[Message]:
        # Count the waiting messages: finding none costs Trio as much as finding several.
        waiting = self._put - self._taken - len(messages)
        for _ in range(min(waiting, most - len(messages))):
            messages.append(self._receiver.receive_nowait())
        self._taken += len(messages)
        self._waiting_most = max(self._waiting_most, len(messages))
        return messages

    def may_pass_by(self) -> bool:
        """Return whether an idle reader may handle a message where it is sent."""
        return True

    def pass_by(self, message: Message) -> None:
        """Count a message that bypasses the mailbox."""
        self._passed += 1

    @property
    def is_empty(self) -> bool:
        """Return whether the reader has taken every message."""
        return self._put == self._taken

    def statistics(self) -> MailboxStatistics:
        waiting = self._receiver.statistics().current_buffer_used
        taken = self._taken + self._passed
        return MailboxStatistics(self.name, waiting, self._waiting_most, self.capacity, taken)

    def __repr__(self) -> str:
        return f"the mailbox of the {self.name}, {self.statistics().waiting} waiting"


class Receiver(Protocol):
    """Who gets an answer when a round is durable: mostly the `Reply` of a gateway."""

    def put(self, answer: Any, /) -> object: ...


class Reply(Generic[Content]):
    """Holds one answer, for one waiting task or one callback.

    Only the first answer counts, so a late one does no harm. Each commit has a Reply, so it wakes
    the task itself: an Event, which many tasks could wait for, costs twice as much.
    """

    __slots__ = ("_callback", "_task", "answered", "content", "error")

    def __init__(self) -> None:
        self.answered = False
        self.content: Content | None = None
        self.error: Exception | None = None
        self._task: trio.lowlevel.Task | None = None
        self._callback: Callable[[Reply[Content]], None] | None = None

    def put(self, content: Content) -> None:
        if not self.answered:
            self.content = content
            self._wake()

    def fail(self, error: Exception) -> None:
        if not self.answered:
            self.error = error
            self._wake()

    def _wake(self) -> None:
        self.answered = True
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)
            self._task = None
        elif self._callback is not None:
            callback, self._callback = self._callback, None
            callback(self)

    def then(self, callback: Callable[[Reply[Content]], None]) -> None:
        """Call the callback with this reply, once it has an answer or an error.

        The answerer calls it, so it must not raise, and should be quick.
        """
        assert not self.answered and self._task is None, "nobody else waits for a reply"
        self._callback = callback

    async def wait(self) -> Content:
        if self.answered:
            await trio.lowlevel.checkpoint()
        else:
            assert self._task is None and self._callback is None, "one waits for a reply"
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        return self.taken()

    def taken(self) -> Content:
        """Return the answer, or raise the error; there must be one."""
        if self.error is not None:
            raise self.error
        return self.content  # type: ignore[return-value]  # `put` was given a Content

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED
