"""The result of a live query as a multiset of encoded rows, in bounded memory.

Two rows are equal if their encoded bytes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from qserver.errors import ProgramLimitExceeded
from qserver.limits import LIVE_RESULT_BYTES_MAX
from qserver.query.memory_pool import MemoryPool

Line: TypeAlias = bytes
"""A row, encoded."""

LINE_BYTES: Final = 150
"""What a row takes besides its bytes: two objects and their place in a dictionary."""

LINES_AT_ONCE: Final = 1000


class KeptResult:
    def __init__(self, pool: MemoryPool | None, most: int = LIVE_RESULT_BYTES_MAX) -> None:
        self._pool = pool
        self._most = most
        self._held = 0
        self.counts: dict[Line, int] = {}

    def add(self, lines: Sequence[Line]) -> None:
        counts, size = self.counts, 0
        for line in lines:
            count = counts.get(line)
            if count is None:
                counts[line] = 1
                size += LINE_BYTES + len(line)
            else:
                counts[line] = count + 1
        if self._held + size > self._most:
            raise ProgramLimitExceeded(
                "the result is too large to be kept live",
                detail=f"The limit is {self._most} bytes.",
                hint="Select fewer rows. A query that only filters one table keeps no result.",
            )
        if self._pool is not None:
            self._pool.take(size)
        self._held += size

    def release(self) -> None:
        """Drop the rows; a second call does nothing."""
        if self._pool is not None:
            self._pool.give_back(self._held)
        self._held = 0
        self.counts = {}

    def __repr__(self) -> str:
        return f"{sum(self.counts.values())} rows in {self._held} bytes"


def changes_of(
    before: dict[Line, int], now: dict[Line, int]
) -> Iterator[tuple[list[Line], list[Line]]]:
    """Yield the deletions and insertions from one multiset to the other, some at a time."""
    rest = _surplus(before, now)
    while deleted := list(islice(rest, LINES_AT_ONCE)):
        yield deleted, []
    rest = _surplus(now, before)
    while inserted := list(islice(rest, LINES_AT_ONCE)):
        yield [], inserted


def _surplus(of: dict[Line, int], beyond: dict[Line, int]) -> Iterator[Line]:
    for line, count in of.items():
        for _ in range(count - beyond.get(line, 0)):
            yield line
