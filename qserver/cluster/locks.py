"""Named locks that one process owns and others hold, first come, first served.

A `Claim` waits for its name's lock, holds it, and is released: when the block of its holder ends,
or when the connection of its holder does. A process that dies so gives back what it held. `locks`
knows nothing of connections; whoever serves one releases its claims.

**Work under a lock ends before the lock is passed on.** A call that was made under a claim may
still be in the middle of something when its caller is cancelled and releases the claim. The claim
counts such calls (`begin`, `end`), and the next in the queue waits for the last of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio


class Claim:
    """A place in the queue of a lock; the first in it holds the lock."""

    def __init__(self, locks: RemoteLocks, name: str, granted: Callable[[], None]) -> None:
        self.name = name
        self.granted = granted
        self._locks = locks
        self._calls = 0
        self._is_released = False

    @property
    def holds(self) -> bool:
        return not self._is_released and self._locks.first(self.name) is self

    def begin(self) -> None:
        """A call is made under this claim."""
        assert self.holds
        self._calls += 1

    def end(self) -> None:
        """It has ended."""
        self._calls -= 1
        self._leave()

    def release(self) -> None:
        self._is_released = True
        self._leave()

    def _leave(self) -> None:
        if self._is_released and not self._calls:
            self._locks.leave(self)


class RemoteLocks:
    """The locks of this process, for all processes."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Claim]] = {}

    def ask(self, name: str, granted: Callable[[], None]) -> Claim:
        """Queue up; `granted` is called when the claim holds the lock, perhaps at once."""
        claim = Claim(self, name, granted)
        queue = self._queues.setdefault(name, deque())
        queue.append(claim)
        if queue[0] is claim:
            granted()
        return claim

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        """Hold a lock of this process here."""
        granted = trio.Event()
        claim = self.ask(name, granted.set)
        try:
            await granted.wait()
            yield
        finally:
            claim.release()

    def first(self, name: str) -> Claim | None:
        queue = self._queues.get(name)
        return queue[0] if queue else None

    def leave(self, claim: Claim) -> None:
        queue = self._queues.get(claim.name)
        if queue is None or claim not in queue:
            return
        was_first = queue[0] is claim
        queue.remove(claim)
        if not queue:
            del self._queues[claim.name]
        elif was_first:
            queue[0].granted()

    def __repr__(self) -> str:
        waiting = sum(map(len, self._queues.values())) - len(self._queues)
        return f"{len(self._queues)} locks are held, {waiting} claims wait"
