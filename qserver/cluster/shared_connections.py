"""How many connections each process has, in shared memory.

The kernel wakes all processes that wait for a connection, and the first that runs gets it; when
many come at once, nearly all of them. A connection that reads from a replica stays with the process
that accepted it, so that one would do the work, and others none. So a process that has more
connections than another lets that one go first, for a moment (`http1.listening`).

The numbers are hints: each process writes its own, and one that has died leaves its last.
"""

from __future__ import annotations

import mmap
from typing import Final

MORE_OF_FEWEST: Final = 8
"""A process may have one connection more for each eight that another has."""


class SharedConnections:
    def __init__(self, processes: int) -> None:
        self._words = memoryview(mmap.mmap(-1, processes * 8)).cast("Q")

    def of(self, process: int) -> OwnConnections:
        """A process that begins has none."""
        self._words[process] = 0
        return OwnConnections(self._words, process)


class OwnConnections:
    """The number of one process, for itself."""

    def __init__(self, words: memoryview[int], process: int) -> None:
        self._words = words
        self._process = process

    def note(self, count: int) -> None:
        self._words[self._process] = count

    def lets_others_accept(self) -> bool:
        fewest = min(self._words)
        return self._words[self._process] > fewest + fewest // MORE_OF_FEWEST

    def __repr__(self) -> str:
        return f"{self._words[self._process]} connections of {sum(self._words)}"
