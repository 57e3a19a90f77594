"""The page store of one rebuilt version: pages of the log, and new ones that can be evicted too.

    pages of a checkpoint     numbers of the log        loaded from the log, as for any snapshot
    pages that a replay made  none, in memory only      saved in a scratch when memory is short;
                              numbers past SCRATCH      then loaded from there

So an older version can be read in any memory that serves the newest one. The scratch dies with the
version. Its pages have numbers of their own: two versions that are compared share exactly the pages
with one number.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import trio

from qserver.durability.leases import Leases
from qserver.durability.page_store import ClosedLog, LoggedPages, PageSource
from qserver.durability.pages import encode_page
from qserver.durability.port import Log, Scratch, StoredPage
from qserver.durability.recovery import MEMORY_OF_LOG
from qserver.durability.saved_pages import roots_of_snapshot
from qserver.errors import DataCorrupted, LogFailed, PageUnreadable
from qserver.limits import CHECKPOINT_PAGES_AT_ONCE
from qserver.storage.btree import children_of
from qserver.storage.page import Branch, Tree
from qserver.storage.snapshot import Snapshot

SCRATCH: Final = 1 << 62
"""No log has a page with such a number."""

PAGES_BEFORE_YIELDING: Final = 16
"""Pages that are encoded before others run: half a millisecond."""

SCRATCH_PAGES_MAX: Final = 1 << 32
"""The pages of one scratch; the next scratch begins behind them."""


class LogAndScratch:
    """Loads pages from where their numbers say."""

    def __init__(self, log: PageSource, scratch: Scratch) -> None:
        self._log = log
        self._scratch = scratch

    @property
    def borrowed(self) -> Leases:
        return self._log.borrowed

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        new = [number for number in numbers if number >= SCRATCH]
        if not new:
            return self._log.load(numbers)
        found = self._scratch.load(new)
        if len(new) < len(numbers):
            found |= self._log.load([number for number in numbers if number < SCRATCH])
        return found

    def __repr__(self) -> str:
        return f"{self._log!r}, and {self._scratch!r}"


class RebuiltPages(LoggedPages):
    def __init__(self, whole: LoggedPages, log: Log, name: int) -> None:
        """`whole`: the store of the database; `name`: a number for this version alone."""
        self._scratch = log.scratch()
        super().__init__(LogAndScratch(log, self._scratch), whole.cache)
        self._whole = whole
        self.logged = 0
        """Bytes of records that made pages which are in memory only, or will."""
        self.saved = 0
        """Bytes of pages in the scratch."""
        self._last = SCRATCH + name * SCRATCH_PAGES_MAX
        self._saving = trio.Lock()

    @property
    def unsaved(self) -> int:
        """Estimate the bytes of what is in memory only: new entries, and old ones beside them."""
        return int(MEMORY_OF_LOG * self.logged + self.copied * self.cache.entry_bytes)

    def load(self, pages: Sequence[Tree]) -> None:
        super().load(pages)
        self._whole.loads += len(pages)

    def _note(self, error: DataCorrupted | PageUnreadable) -> None:
        self._whole.note_trouble(error)

    def note_filled(self, page: Branch) -> None:
        """Nothing to do: an older version is not read often."""

    async def save(self, snapshot: Snapshot, pause: Callable[[], Awaitable[None]]) -> bool:
        """Save the new pages of a snapshot, so that they can be evicted; False if that fails."""
        async with self._saving:
            logged, copied = self.logged, self.copied
            numbers: dict[Tree, int] = {}
            step: list[StoredPage] = []
            try:
                for stored in self._new_pages(roots_of_snapshot(snapshot), numbers):
                    step.append(stored)
                    if len(step) % PAGES_BEFORE_YIELDING == 0:
                        await pause()
                    if len(step) == CHECKPOINT_PAGES_AT_ONCE:
                        await self._scratch.save_pages(step)
                        step = []
                await self._scratch.save_pages(step)
            except LogFailed:
                return False
            for page, number in numbers.items():
                page.number, page.store = number, self
                self.cache.keep([page])
            self.logged -= logged
            self.copied -= copied
            return True

    def _new_pages(self, pages: list[Tree], numbers: dict[Tree, int]) -> Iterator[StoredPage]:
        for page in pages:
            if page.number or page in numbers:
                continue
            yield from self._new_pages(children_of(page), numbers)
            numbers[page] = self._last = self._last + 1
            data = encode_page(page, self._last, lambda each: each.number or numbers[each])
            self.saved += len(data)
            yield self._last, data

    def close(self) -> None:
        """Forget the scratch. Pages that are still cached are evicted like any other."""
        self._log = ClosedLog(self._log.borrowed)
        self._scratch.close()
