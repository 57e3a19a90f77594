"""Requests that arrived together, and what is done once all of them have begun.

    open ─► requests begin, and submit commits ─► end ─► a round of all of them ─► one sync

Whoever receives requests opens a batch, begins them, and ends it, without waiting in between. The
actors then do at the end of the batch, synchronously, what their tasks would do a turn of the loop
later: so a lone commit wakes no task, and commits that came together still share a round and a
sync.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Batch:
    """One of them for all databases of a process, used again and again."""

    __slots__ = ("_ends", "is_active", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        """Whether further requests may begin."""
        self.is_active = False
        """Whether it is open, or ending."""
        self._ends: deque[Callable[[], None]] = deque()

    def open(self) -> None:
        self.is_open = self.is_active = True

    def at_end(self, call: Callable[[], None]) -> None:
        """Call this when all requests have begun, after earlier calls. It must not raise."""
        assert self.is_active, "nobody would make the call"
        self._ends.append(call)

    def end(self) -> None:
        """Make the calls. One of them may add another, which is made too."""
        self.is_open = False
        while self._ends:
            self._ends.popleft()()
        self.is_active = False

    def __repr__(self) -> str:
        state = "open" if self.is_open else "ending" if self.is_active else "over"
        return f"a batch that is {state}, {len(self._ends)} calls at its end"
