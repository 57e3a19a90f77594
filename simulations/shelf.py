"""Where the simulated disk keeps checkpoints: pages, and the record that makes them count.

    save_pages ─► written: each page may be lost by a crash ─► save_checkpoint ─► all there for ever

A crash keeps any of the unsynced pages. The record and all pages before it become durable as
one, or not at all: that is what the port promises, and what a transaction of SQLite's gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random


class Shelf:
    def __init__(self) -> None:
        self.checkpoint: tuple[int, bytes] | None = None
        self.pages: dict[int, bytes] = {}
        self.unsynced: dict[int, bytes] = {}
        self.coming: tuple[int, bytes] | None = None
        """The checkpoint that is being saved."""
        self.lost = False
        """Whether pages that are saved and not synced were lost, and nobody has read since."""

    def put(self, pages: Iterable[tuple[int, bytes]]) -> None:
        self.unsynced.update(pages)

    def sync(self) -> None:
        """The coming checkpoint is the checkpoint."""
        assert self.coming is not None
        self.pages |= self.unsynced
        self.checkpoint = self.coming
        self.forget_unsynced()

    def forget_unsynced(self) -> None:
        self.unsynced.clear()
        self.coming = None

    def lose_some(self, chance: Random) -> int:
        """A sync that fails loses some unsynced pages; how many it were."""
        lost = [number for number in self.unsynced if chance.random() < 0.5]
        for number in lost:
            del self.unsynced[number]
        self.lost = True
        return len(lost)

    def keep_some(self, chance: Random) -> int:
        """A crash keeps some unsynced pages; how many it were."""
        kept = {number: data for number, data in self.unsynced.items() if chance.random() < 0.5}
        self.pages |= kept
        return len(kept)

    def remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.pages.pop(number, None)
            self.unsynced.pop(number, None)

    def after(self, number: int, most: int) -> list[tuple[int, bytes]]:
        """The next pages in order, as a process sees them: synced or not."""
        there = self.pages | self.unsynced
        return [(each, there[each]) for each in sorted(there) if each > number][:most]

    def __repr__(self) -> str:
        return f"{len(self.pages)} pages, {len(self.unsynced)} unsynced"
