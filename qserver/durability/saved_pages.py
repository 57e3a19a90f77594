"""Tracks which pages the log holds and which are dead: makes checkpoints incremental.

Pages are immutable, so a page is saved once, and then has a number:

    checkpoint 7     B ──► L1 L2 L3          a page with a number is saved, and so is everything
    checkpoint 9     B' ─► L1 L2' L3         below it; so only B' and L2' are written; B and L2 die

In a snapshot each page has one place. So a page of the last checkpoint is in the next one if a new
branch points to it, or if the branch above it is. `Save` walks the old trees from their roots and
stops at each page that a new branch points to; the pages it met before are dead: branches that were
copied, and changed pages below them. It opens nothing else.

A dead page is gone from the new checkpoint, but older kept ones may need it (see `kept`). A page in
no checkpoint is forgotten once no reader of an older snapshot is left (see `page_store`). Both
kinds are listed beside a checkpoint, so that a crash loses track of none.

The pages of a failed attempt die with the next successful one. Until then they do no harm: their
numbers are not reused, and no confirmed checkpoint refers to them.

A change of the log that failed may have been made all the same. It stays in `doubt` until the log
has been read again; nothing else changes before that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from qserver.durability.checkpoint import encode_checkpoint
from qserver.durability.kept import (
    KeptCheckpoint,
    RetentionRules,
    base_of,
    empty,
    encode_numbers,
    encode_outline,
    history_begins,
    inherit,
    is_needless,
    next_to_drop,
)
from qserver.durability.memory import MemoryLog
from qserver.durability.page_store import LoggedPages
from qserver.durability.pages import encode_page
from qserver.durability.port import CheckpointParts, StoredPage
from qserver.errors import DataCorrupted
from qserver.storage.btree import children_of
from qserver.storage.page import Branch, Tree
from qserver.storage.snapshot import Snapshot

NO_HISTORY: Final = RetentionRules()


class Dead(msgspec.Struct):
    """Pages in no checkpoint, which only snapshots between two versions may need."""

    after: int
    before: int
    numbers: list[int]
    pages: list[Tree]
    """Those of them that were met."""


class Died(msgspec.Struct):
    """Pages of the last checkpoint, or of a failed attempt, that the next checkpoint lacks."""

    numbers: list[int]
    pages: list[Tree]
    """Those of them that were met."""


class SavedPages:
    """The pages of the confirmed checkpoints. Nothing waits in here."""

    def __init__(self, store: LoggedPages | None = None) -> None:
        self.store = LoggedPages(MemoryLog()) if store is None else store
        self.kept = [empty()]
        self.gone: list[int] = []
        """Pages that the kept checkpoint before the newest has, and the newest has not."""
        self.log_start = 0
        """The log has all records behind this version."""
        self.count = 0
        """Pages of the newest checkpoint."""
        self.last_number = 0
        self.dead: list[Dead] = []
        self.doubt: Doubt | None = None
        """A change that the log may have made or not."""
        self._roots: list[Tree] = []
        self._old: set[int] = set()
        """Pages of a checkpoint of an older format, none of whose branches stays."""
        self._ahead = Died([], [])
        """Pages that died before the next checkpoint was begun, see `advance`."""
        self.last_confirmed = 0
        """The last page of the newest checkpoint, or that was saved ahead of the next one."""
        self.columns_to = 0
        """All pages up to this one that were loaded have their columns."""
        self.is_pending = False
        """Whether those behind may lack them, as a note in the log says."""

    @property
    def version(self) -> int:
        return self.kept[-1].version

    def restore(
        self,
        kept: list[KeptCheckpoint],
        gone: list[int],
        dead: list[int],
        last_number: int,
        log_start: int,
    ) -> None:
        """Start with the checkpoints of a log, and its known dead pages.

        Every reader of before may need what was saved ahead.
        """
        self.kept, self.gone, self.log_start = kept, gone, log_start
        self.last_number = last_number
        ahead = self.store.ahead
        newest = max(self.version, self.store.newest_lease())
        for numbers, before in (
            ([number for number in dead if number > ahead], self.version),
            ([number for number in dead if number <= ahead], newest + 1),
        ):
            if numbers:
                self.dead.append(Dead(-1, before, numbers, []))
        self.last_confirmed = last_number

    def restore_pages(self, roots: list[Tree], count: int) -> None:
        """Start with the newest checkpoint, which is loaded."""
        self._roots, self.count = roots, count
        self.store.cache.note_saved(self.store, count)

    def restore_old(self, numbers: set[int]) -> None:
        """Start with a checkpoint of an older format: the next one rewrites all branches."""
        self._old, self.count = numbers, len(numbers)

    def begin(self, snapshot: Snapshot) -> Save:
        """Start saving a snapshot."""
        return Save(self, snapshot)

    def is_saved(self, page: Tree) -> bool:
        return page.store is self.store

    def has_columns(self, page: Tree) -> bool:
        """Whether the columns of a page were made, if it was loaded."""
        return page.store is self.store and page.number <= self.columns_to

    def next_number(self) -> int:
        self.last_number += 1
        return self.last_number

    def confirm(self, save: Save) -> None:
        """Make a durable snapshot the newest checkpoint; its new pages may be evicted now."""
        row = save.row
        assert row is not None, "only what has a row can be durable"
        self._take(save)
        self._ahead = Died([], [])
        self.last_confirmed = row.kept.last_page
        self.kept = [*(each for each in self.kept if each.version <= row.after), row.kept]
        self.gone = row.gone
        if row.dead.numbers:
            self.dead.append(row.dead)
        self._forget_filled(save.died.numbers)

    def advance(self, save: Save) -> None:
        """Allow eviction of saved pages that only the next checkpoint will name.

        Only recovery does this. After a crash these pages are dead, like those of a failed
        checkpoint; readers in this process may still need them then.
        """
        self._take(save)
        self._ahead.numbers += save.died.numbers
        self._ahead.pages += save.died.pages
        self.last_confirmed = self.store.ahead = self.last_number

    def _take(self, save: Save) -> None:
        for page, number in save.number_of.items():
            page.number, page.store = number, self.store
            if type(page) is Branch and page.columns:
                self.store.note_filled(page)
        self.store.cache.keep(list(save.number_of))
        self.count = save.count
        self.store.cache.note_saved(self.store, self.count)
        self._old = set()
        self._roots = save.roots

    def died_ahead(self) -> Died:
        return self._ahead

    # --- kept checkpoints ---

    def next_to_drop(self, rules: RetentionRules) -> int | None:
        """Return the position of a kept checkpoint that is not needed."""
        return next_to_drop(self.kept, rules, self.log_start)

    @property
    def history_start(self) -> int:
        """The first version that can be rebuilt; the log may still have earlier records."""
        return next(each.version for each in self.kept if each.version >= self.log_start)

    def base_of(self, version: int) -> KeptCheckpoint | None:
        """Return the kept checkpoint from which to rebuild a version; None if there is none."""
        return base_of(self.kept, version, self.log_start)

    def cut_log(self, horizon: float) -> int:
        """Give up the records before history; return the version up to which they go.

        Those that are lent stay.
        """
        start = self._start_of_history(horizon)
        lent = [each.version for each in self.kept if each.lent]
        self.log_start = max(self.log_start, min([start, *lent]))
        return self.log_start

    def held_by(self, horizon: float) -> list[str]:
        """Return to whom records are lent that history does not need."""
        start = self._start_of_history(horizon)
        return [name for each in self.kept if each.version < start for name in each.lent]

    def _start_of_history(self, horizon: float) -> int:
        return self.kept[history_begins(self.kept, horizon, self.log_start)].version

    def drop(self, at: int, left: list[int], gone: list[int]) -> Drop:
        """Start dropping a kept checkpoint; `left`, `gone`: the lists of it and of the next."""
        return Drop(self, at, left, gone)

    def dropped(self, drop: Drop) -> None:
        """Record that a checkpoint is durably dropped."""
        drop.heir.gone = len(drop.gone)
        if drop.heir is self.kept[-1]:
            self.gone = drop.gone
        self.kept.remove(drop.kept)
        if drop.dead:
            self.dead.append(Dead(drop.after, drop.heir.version, drop.dead, []))

    def resolve(self, versions: set[int]) -> None:
        """End all doubt: the log has the checkpoints of these versions."""
        doubt, self.doubt = self.doubt, None
        if isinstance(doubt, Save) and doubt.snapshot.version in versions:
            self.confirm(doubt)
        elif isinstance(doubt, Drop) and doubt.kept.version not in versions:
            self.dropped(doubt)

    # --- dead pages ---

    def some_to_forget(self, most: int) -> list[int]:
        """Return up to `most` page numbers that nobody needs; then call `forgotten`."""
        for at, each in enumerate(self.dead):
            if not self.store.is_read_between(each.after, each.before):
                self.dead[0], self.dead[at] = each, self.dead[0]
                return each.numbers[-most:]
        return []

    def forgotten(self, numbers: list[int]) -> None:
        if not numbers:
            return
        self._forget_filled(numbers)
        first = self.dead[0]
        del first.numbers[len(first.numbers) - len(numbers) :]
        if not first.numbers:
            self.store.cache.drop(first.pages)
            del self.dead[0]

    # --- columns ---

    def pages_with_new_columns(self, last: int) -> Iterator[Branch]:
        """Yield pages up to a number that have vectors which are not saved."""
        filled = self.store.filled
        for number in [number for number in filled if number <= last]:
            if (page := filled.pop(number, None)) is not None:
                yield page

    def _forget_filled(self, numbers: list[int]) -> None:
        filled = self.store.filled
        for number in numbers if filled else ():
            filled.pop(number, None)

    # --- dead pages, and those that nobody may know ---

    def numbers_of_dead(self) -> list[int]:
        return [number for each in self.dead for number in each.numbers]

    def numbers_of_failures(self) -> range:
        """Return the page numbers given out since the last checkpoint."""
        return range(self.last_confirmed + 1, self.last_number + 1)

    def old_roots(self) -> list[Tree]:
        return self._roots

    def old_numbers(self) -> set[int]:
        return self._old

    def __repr__(self) -> str:
        return f"{self.count} saved pages of version {self.version}"


class NewCheckpoint(msgspec.Struct):
    """The row of a checkpoint in the log, and its effects."""

    kept: KeptCheckpoint
    gone: list[int]
    dead: Dead
    after: int
    """Its checkpoints behind this version go."""


class Save:
    """A checkpoint in the making: take all `pages`, `sort_out`, `stored`, then confirm."""

    def __init__(self, saved: SavedPages, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.roots = roots_of_snapshot(snapshot)
        self.number_of: dict[Tree, int] = {}
        """Pages that are new since the last checkpoint."""
        failures = saved.numbers_of_failures()
        self.died = Died(list(failures), [])
        self.row: NewCheckpoint | None = None
        self._known = saved.count + len(failures)
        self._saved = saved
        self._kept: set[int] = set()
        """Saved pages to which a new branch leads, or which are roots."""
        self._sorting = self._sort_out()

    def pages(self) -> Iterator[StoredPage]:
        """Yield new pages as bytes, children before parents. The caller may pause between."""
        for root in self.roots:
            yield from self._new_pages(root)

    def _new_pages(self, page: Tree) -> Iterator[StoredPage]:
        if self._saved.is_saved(page):
            self._kept.add(page.number)
            return
        if page in self.number_of:
            return
        for child in children_of(page):
            yield from self._new_pages(child)
        number = self._saved.next_number()
        self.number_of[page] = number
        yield number, encode_page(page, number, self._number)

    def sort_out(self) -> Iterator[None]:
        """Find the pages that die, once all new ones are saved. The caller may pause between."""
        return self._sorting

    def _sort_out(self) -> Iterator[None]:
        kept, died = self._kept, self.died
        died.numbers += self._saved.old_numbers() - kept
        waiting = [root for root in self._saved.old_roots() if root.number not in kept]
        while waiting:
            page = waiting.pop()
            died.pages.append(page)
            died.numbers.append(page.number)
            try:
                waiting += [child for child in children_of(page) if child.number not in kept]
            except DataCorrupted:
                pass  # what is below it cannot be known, and stays
            yield

    def stored(
        self, rules: RetentionRules = NO_HISTORY, log_end: int = 0
    ) -> tuple[bytes, CheckpointParts, int]:
        """Return the record, what is kept beside it, and after which version others are dropped.

        The last checkpoint is replaced if neither history nor a short replay needs it.
        """
        for _ in self._sorting:
            pass
        saved = self._saved
        version = self.snapshot.version
        new = KeptCheckpoint(version, self.snapshot.time, saved.last_number, log_end)
        ahead = saved.died_ahead()
        died = sorted(self.died.numbers + ahead.numbers)
        if is_needless([*saved.kept, new], len(saved.kept) - 1, rules, saved.log_start):
            before = saved.kept[-2] if len(saved.kept) > 1 else None
            gone, dead = inherit(saved.gone, died, before.last_page if before else 0)
        else:
            before = saved.kept[-1]
            gone, dead = inherit([], died, before.last_page)
        new.gone = len(gone)
        first = before.last_page if before else 0
        after = before.version if before else -1
        pages = [page for page in self.died.pages + ahead.pages if page.number > first]
        self.row = NewCheckpoint(new, gone, Dead(after, version, dead, pages), after)
        parts = CheckpointParts(
            encode_outline(new),
            encode_numbers(version, gone),
            encode_numbers(version, saved.numbers_of_dead() + dead),
        )
        return self._record(), parts, after

    def _record(self) -> bytes:
        roots = {
            number: [self._number(root) if len(root) else 0 for root in tree.roots]
            for number, tree in self.snapshot.trees.items()
        }
        return encode_checkpoint(self.snapshot, roots, self._saved.last_number, self.count)

    @property
    def count(self) -> int:
        """The number of pages of the checkpoint, once all are sorted out."""
        return self._known + len(self.number_of) - len(self.died.numbers)

    def _number(self, page: Tree) -> int:
        return page.number if self._saved.is_saved(page) else self.number_of[page]

    def __repr__(self) -> str:
        return f"a save of version {self.snapshot.version}, {len(self.number_of)} pages so far"


class Drop:
    """A kept checkpoint that is being dropped: change the log by `stored`, then call `dropped`."""

    def __init__(self, saved: SavedPages, at: int, left: list[int], gone: list[int]) -> None:
        before = saved.kept[at - 1] if at else None
        self.kept, self.heir = saved.kept[at], saved.kept[at + 1]
        self.after = before.version if before else -1
        self.gone, self.dead = inherit(left, gone, before.last_page if before else 0)
        self._saved = saved

    def stored(self) -> tuple[list[int], list[tuple[int, CheckpointParts]]]:
        """Return the version to drop, and what changes beside other checkpoints."""
        saved, heir = self._saved, self.heir
        newest = saved.version
        outline = encode_outline(msgspec.structs.replace(heir, gone=len(self.gone)))
        gone = encode_numbers(heir.version, self.gone)
        dead = encode_numbers(newest, saved.numbers_of_dead() + self.dead)
        return [self.kept.version], [
            (heir.version, CheckpointParts(outline, gone)),
            (newest, CheckpointParts(dead=dead)),
        ]

    def __repr__(self) -> str:
        return f"the end of the checkpoint of version {self.kept.version}"


Doubt: TypeAlias = Save | Drop


def roots_of_snapshot(snapshot: Snapshot) -> list[Tree]:
    """Return all roots except those of empty trees."""
    return [root for _, tree in snapshot.trees.items() for root in tree.roots if len(root)]
