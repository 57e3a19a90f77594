"""The keys of a tree's changes in order, while more changes come.

A dict of changes keeps its keys in the order in which they came. A transaction that goes on writing
looks at small ranges of them, again and again: a cascade does for each row. To go through all
changes each time would take time that grows with their square.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import islice
from typing import Final

from qserver.storage.page import Key
from qserver.storage.writes import TreeWrites
from qserver.values.keys import Bound

INSERTED_MAX: Final = 32
"""More new keys are sorted together with the others."""

RUN_KEYS_MAX: Final = 16_384
"""One look-up sorts no more than a run of so many keys, about ten milliseconds. It goes through
those that come behind, which later look-ups sort."""


class KeyOrder:
    """Keys may be added to the changes and written again, but none may be taken away."""

    __slots__ = ("_count", "_runs", "changes")

    def __init__(self, changes: TreeWrites) -> None:
        self.changes = changes
        self._runs: list[list[Key]] = [[]]
        """Sorted, one after the other as the keys came."""
        self._count = 0
        """How many keys are in runs."""

    def within(self, low: Bound, high: Bound) -> list[Key]:
        """Return the keys with low <= key < high, in any order."""
        self._sort_some()
        found: list[Key] = []
        for run in self._runs:
            start = 0 if low is None else bisect_left(run, low)
            stop = len(run) if high is None else bisect_left(run, high)
            found += run[start:stop]
        if self._count < len(self.changes):
            found += [
                key
                for key in islice(self.changes, self._count, None)
                if (low is None or low <= key) and (high is None or key < high)
            ]
        return found

    def _sort_some(self) -> None:
        changes, run = self.changes, self._runs[-1]
        new = len(changes) - self._count
        if len(run) + min(new, INSERTED_MAX) > RUN_KEYS_MAX:
            run = []
            self._runs.append(run)
        before = len(run)
        if new <= INSERTED_MAX:
            for key in islice(reversed(changes), new):
                insort(run, key)
        else:
            run += islice(changes, self._count, self._count + RUN_KEYS_MAX - before)
            run.sort()
        self._count += len(run) - before
