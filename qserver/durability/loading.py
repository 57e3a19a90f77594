"""From a stored checkpoint to the view that it is of, without inserting a single row again.

Pages are read in the order of their numbers. A child has a smaller number than its parent, so each
branch finds its children built, and every page is decoded once and becomes what it was.

The log may hold pages that no checkpoint needs: those of an attempt that a crash ended, or some
that were about to be forgotten. They are told from the others when all is read, because nothing
refers to them. One of them may lack children that are forgotten already; that matters only if
something that counts needs it.
"""

from __future__ import annotations

from typing import Final

import trio

from qserver.durability.checkpoint import Checkpoint, catalog_of, decode_checkpoint
from qserver.durability.pages import decode_page, join_branch
from qserver.durability.port import Log, StoredPage
from qserver.durability.saved_pages import SavedPages
from qserver.errors import DataCorrupted
from qserver.storage.btree import EMPTY, Leaf, Tree
from qserver.storage.partition import Partition
from qserver.storage.view import View

PAGES_READ_AT_ONCE: Final = 256
PAGES_BEFORE_GIVING_WAY: Final = 8


async def load_newest(log: Log, saved: SavedPages) -> View | None:
    """The view of the newest checkpoint, and in `saved` its pages; None if there is none yet."""
    stored = await log.load_checkpoint()
    loading = Loading()
    while pages := await log.load_pages(loading.last_number, PAGES_READ_AT_ONCE):
        for count, page in enumerate(pages, start=1):
            loading.add(page)
            if count % PAGES_BEFORE_GIVING_WAY == 0:
                await trio.lowlevel.checkpoint()
    if stored is None:
        if loading.last_number and not await log.read(0, 1):
            raise DataCorrupted(
                "there are pages, but neither a checkpoint nor a log that they would belong to",
                hint="Restore a backup, and keep the damaged data until you have.",
            )
        saved.to_forget = loading.numbers()
        saved.last_number = loading.last_number
        return None
    return loading.finish(decode_checkpoint(*stored), saved)


class Loading:
    """The pages that were read so far."""

    def __init__(self) -> None:
        self.last_number = 0
        self._pages: dict[int, Tree] = {}
        self._incomplete: dict[int, int] = {}
        """Branches that lack a page below them, with its number."""

    def add(self, stored: StoredPage) -> None:
        number, data = stored
        page = decode_page(number, data)
        self.last_number = number
        if isinstance(page, Leaf):
            self._pages[number] = page
            return
        separators, numbers = page
        missing = [child for child in numbers if child not in self._pages]
        if missing:
            self._incomplete[number] = missing[0]
        else:
            children = [self._pages[child] for child in numbers]
            self._pages[number] = join_branch(number, separators, children)

    def numbers(self) -> list[int]:
        return [*self._pages, *self._incomplete]

    def finish(self, checkpoint: Checkpoint, saved: SavedPages) -> View:
        """The view, when all pages are here; DataCorrupted if one is missing."""
        view = View(
            checkpoint.version,
            checkpoint.time,
            catalog_of(checkpoint),
            tuple(
                Partition.of({tree: self._root(tree, number) for tree, number in roots.items()})
                for roots in checkpoint.roots
            ),
        )
        saved.restore(
            view,
            {page: number for number, page in self._pages.items()},
            list(self._incomplete),
            max(self.last_number, checkpoint.last_page),
        )
        return view

    def _root(self, tree: int, number: int) -> Tree:
        if number == 0:
            return EMPTY
        while number in self._incomplete:
            number = self._incomplete[number]
        page = self._pages.get(number)
        if page is None:
            raise DataCorrupted(
                f"page {number} of tree {tree} is missing",
                hint="Restore a backup, and keep the damaged data until you have.",
            )
        return page
