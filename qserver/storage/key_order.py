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

INSERTED_MAX: Final = 32
"""More new keys are sorted together with the others."""


class KeyOrder:
    """Keys may be added to the changes and written again, but none may be taken away."""

    __slots__ = ("_keys", "changes")

    def __init__(self, changes: TreeWrites) -> None:
        self.changes = changes
        self._keys: list[Key] = []

    def within(self, low: Key | None, high: Key | None) -> list[Key]:
        """Return the keys with low <= key < high, in order."""
        keys = self._keys
        new = islice(reversed(self.changes), len(self.changes) - len(keys))
        if len(self.changes) - len(keys) > INSERTED_MAX:
            keys += new
            keys.sort()
        else:
            for key in new:
                insort(keys, key)
        start = 0 if low is None else bisect_left(keys, low)
        stop = len(keys) if high is None else bisect_left(keys, high)
        return keys[start:stop]
