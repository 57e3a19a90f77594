"""The checkpoints of the simulated disk: pages, and the record that makes them count.

    save_pages ─► written: a crash may lose each page ─► save_checkpoint ─► all durable

A crash keeps any of the unsynced pages. The record and all pages before it become durable together
or not at all: the port promises that, and a SQLite transaction provides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from qserver.durability.column_numbers import page_of
from qserver.durability.memory import CheckpointRows


class Shelf:
    def __init__(self) -> None:
        self.checkpoints = CheckpointRows()
        self.pages: dict[int, bytes] = {}
        self.unsynced: dict[int, bytes] = {}
        self.coming: Callable[[], None] | None = None
        """Writes the checkpoint that is being saved."""
        self.lost = False
        """Whether saved, unsynced pages were lost, and nobody has recovered since."""

    def put(self, pages: Iterable[tuple[int, bytes]]) -> None:
        self.unsynced.update(pages)

    def sync(self) -> None:
        assert self.coming is not None
        self.pages |= self.unsynced
        self.coming()
        self.forget_unsynced()

    def sync_pages(self) -> None:
        self.pages |= self.unsynced
        self.unsynced.clear()

    @property
    def checkpoint(self) -> tuple[int, bytes] | None:
        """The newest one."""
        return self.checkpoints.newest

    def forget_unsynced(self) -> None:
        self.unsynced.clear()
        self.coming = None

    def lose_some(self, chance: Random) -> int:
        """Lose some unsynced pages, as a failed sync does; return how many."""
        lost = [number for number in self.unsynced if chance.random() < 0.5]
        for number in lost:
            del self.unsynced[number]
        self.lost = True
        return len(lost)

    def keep_some(self, chance: Random) -> int:
        """Keep some unsynced pages, as a crash does; return how many."""
        kept = {number: data for number, data in self.unsynced.items() if chance.random() < 0.5}
        self.pages |= kept
        return len(kept)

    def remove(self, numbers: Iterable[int]) -> None:
        gone = set(numbers)
        for there in (self.pages, self.unsynced):
            for number in [each for each in there if page_of(each) in gone]:
                del there[number]

    def last(self) -> int:
        return max([0, *self.pages, *self.unsynced])

    def get(self, numbers: Iterable[int]) -> dict[int, bytes]:
        there = self.pages | self.unsynced
        return {number: there[number] for number in numbers if number in there}

    def after(self, number: int, most: int) -> list[tuple[int, bytes]]:
        """Return the next pages in order, synced or not, as a process sees them."""
        there = self.pages | self.unsynced
        return [(each, there[each]) for each in sorted(there) if each > number][:most]

    def __repr__(self) -> str:
        return f"{len(self.pages)} pages, {len(self.unsynced)} unsynced"
