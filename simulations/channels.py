"""A mailbox that delays its messages, in order, and whose reader may die waiting."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import trio

from qserver.engine.mailbox import Mailbox, MailboxStatistics
from qserver.errors import TooManyRequests
from simulations.observations import describe, observe

if TYPE_CHECKING:
    from simulations.world import SimulatedWorld


class DelayedMailbox(Mailbox[Any]):
    """Gives the same promises as the engine's mailbox: bounded, ordered, nothing lost."""

    def __init__(self, world: SimulatedWorld, name: str, capacity: int) -> None:
        super().__init__(name, capacity)
        self._world = world
        self._under_way: deque[tuple[float, int, Any]] = deque()
        self._arrival = trio.Event()
        self._departure = trio.Event()

    def put_nowait(self, message: Any) -> None:
        if len(self._under_way) >= self.capacity:
            self._world.reach("a mailbox was full")
            raise TooManyRequests(f"{self.capacity} messages wait at the {self.name} already")
        self._send(message)

    def may_pass_by(self) -> bool:
        return self._world.delays.random() < self._world.passing_by

    def pass_by(self, message: Any) -> None:
        world = self._world
        number = world.next_message()
        world.record("send", f"past {self.name}: {describe(world, message)}", message=number)
        world.record("receive", f"handles {type(message).__name__}", message=number)
        world.reach("a message was handled where it was sent")
        observe(world, message)
        self._taken += 1

    @property
    def is_empty(self) -> bool:
        return not self._under_way

    async def put(self, message: Any) -> None:
        await self._world.stand_at_await_point()
        while len(self._under_way) >= self.capacity:
            self._world.reach("a sender waited for room")
            await self._departure.wait()
        self._send(message)

    def _send(self, message: Any) -> None:
        world = self._world
        number = world.next_message()
        world.record("send", f"to {self.name}: {describe(world, message)}", message=number)
        observe(world, message)
        due = trio.current_time() + world.message_delay()
        if self._under_way:
            due = max(due, self._under_way[-1][0])
        self._under_way.append((due, number, message))
        self._waiting_most = max(self._waiting_most, len(self._under_way))
        self._arrival.set()

    async def take(self, most: int) -> list[Any]:
        if self.name == "log":
            self._world.log_rested = True
        await self._world.stand_at_await_point()
        while not self._under_way:
            self._arrival = trio.Event()
            await self._arrival.wait()
        await trio.sleep_until(self._under_way[0][0])
        return self.take_nowait(most)

    def take_nowait(self, most: int) -> list[Any]:
        messages: list[Any] = []
        while self._under_way and len(messages) < most:
            due, number, message = self._under_way[0]
            if due > trio.current_time():
                break
            self._under_way.popleft()
            messages.append(message)
            self._world.record("receive", f"takes {type(message).__name__}", message=number)
        self._taken += len(messages)
        self._departure.set()
        self._departure = trio.Event()
        return messages

    def statistics(self) -> MailboxStatistics:
        return MailboxStatistics(
            self.name, len(self._under_way), self._waiting_most, self.capacity, self._taken
        )
