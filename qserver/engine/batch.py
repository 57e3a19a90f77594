"""A batch of requests that arrived together, and the calls to make once all of them have begun.

    open ─► requests begin, and submit commits ─► end ─► a round of all of them ─► one sync

The server opens a batch, begins the requests that it has received, and ends the batch, without
waiting in between. At the end the actors do synchronously what their tasks would do one pass of the
loop later: a lone commit wakes no task, and commits that arrived together share a round and a sync.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Batch:
    """One for all databases of a process, reused."""

    __slots__ = ("_ends", "_requests", "is_active", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        """Whether further requests may begin."""
        self.is_active = False
        """Whether it is open, or ending."""
        self._ends: deque[Callable[[], None]] = deque()
        self._requests = 0

    def open(self, requests: int = 1) -> None:
        self.is_open = self.is_active = True
        self._requests += requests

    @property
    def has_work(self) -> bool:
        """Whether calls wait for the end."""
        return bool(self._ends)

    def was_of_one(self) -> bool:
        """Return whether just one request has arrived since the last call."""
        requests, self._requests = self._requests, 0
        return requests == 1

    def at_end(self, call: Callable[[], None]) -> None:
        """Add a call, which must not raise, to make when all requests have begun."""
        assert self.is_active, "nobody would make the call"
        self._ends.append(call)

    def end(self) -> None:
        """Make the calls, including those that they add."""
        self.is_open = False
        while self._ends:
            self._ends.popleft()()
        self.is_active = False

    def __repr__(self) -> str:
        state = "open" if self.is_open else "ending" if self.is_active else "over"
        return f"a batch that is {state}, {len(self._ends)} calls at its end"
