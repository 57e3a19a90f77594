"""Planted bugs in recovery, and in what is to be forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any, Final

import trio

from qserver.durability import page_cache, recovery, saved_pages
from qserver.durability.page_cache import PageCache
from qserver.durability.port import StoredPage
from qserver.durability.recovery import Recovered, Replay
from qserver.durability.saved_pages import Save, SavedPages
from qserver.engine import checkpointer, database, log_writer
from qserver.engine.checkpointer import Checkpointer
from qserver.engine.database import Database
from qserver.engine.log_writer import LogWriter
from qserver.engine.messages import Append
from qserver.limits import ROUNDS_UNSYNCED_MAX
from qserver.storage import transaction
from qserver.storage.page import Tree
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import OFTEN_SAVED, SYNCS_FAIL


class _ShortLog:
    """A log of which only the first pieces are read."""

    def __init__(self, log: Any, pieces: int) -> None:
        self._log = log
        self._pieces = pieces

    async def read(self, after: int, most: int) -> list[Any]:
        self._pieces -= 1
        records: list[Any] = await self._log.read(after, most) if self._pieces >= 0 else []
        return records

    async def fence(self, version: int) -> bool:
        return True


def _read_three_pieces(original: Any) -> Any:
    async def recover_from(known: Recovered, log: Any, *, may_save: bool = False) -> Recovered:
        result: Recovered = await original(known, _ShortLog(log, 3), may_save=may_save)
        return result

    return recover_from


def _drop_only_what_was_logged(original: Any) -> Any:
    def forget_dropped(self: Replay, record: Any) -> None:
        for tree in record.dropped:
            self._writes.pop(tree, None)

    return forget_dropped


def _drop_the_table_alone(original: Any) -> Any:
    def drop_trees(self: Transaction, *trees: int) -> None:
        original(self, *trees[:1])

    return drop_trees


def _keep_pages_of_failures(original: Any) -> Any:
    def begin(self: SavedPages, snapshot: Snapshot) -> Save:
        save: Save = original(self, snapshot)
        save.died.numbers.clear()
        return save

    return begin


def _keep_what_is_below(original: Any) -> Any:
    def sort_out(self: Save) -> Iterator[None]:
        died = [page for page in self._saved.old_roots() if page.number not in self._kept]
        self.died.pages += died
        self.died.numbers += [page.number for page in died]
        yield

    return sort_out


def _keep_what_a_crash_left(original: Any) -> Any:
    def restore(
        self: SavedPages, kept: Any, gone: Any, _: Any, last_number: int, log_start: int
    ) -> None:
        original(self, kept, gone, [], last_number, log_start)

    return restore


def _remember_the_save(original: Any) -> Any:
    def begin(self: SavedPages, snapshot: Snapshot) -> Save:
        save: Save = original(self, snapshot)
        saved: Any = self
        saved.in_the_making = save
        return save

    return begin


def _count_as_saved_when_written(original: Any) -> Any:
    async def save_pages(self: Checkpointer, pages: list[StoredPage], size: int) -> None:
        await original(self, pages, size)
        saved: Any = self.saved
        written = {number for number, _ in pages}
        for page, number in saved.in_the_making.number_of.items():
            if number in written:
                page.number, page.store = number, saved.store
                saved.store.cache.keep([page])

    return save_pages


def _keep_what_is_here(original: Any) -> Any:
    def keep(self: PageCache, pages: list[Tree]) -> None:
        original(self, [page for page in pages if page.is_here])

    return keep


def _confirm_what_was_broken_off(original: Any) -> Any:
    async def save(self: Checkpointer, save: Save, logged: int = 0) -> None:
        try:
            await original(self, save, logged)
        except trio.Cancelled:
            if all(True for _ in save.pages()):
                save.stored()
                self.saved.confirm(save)
            raise

    return save


def _begin_before_the_last_is_there(original: Any) -> Any:
    async def run(self: LogWriter) -> None:
        async def release(group: list[Append], appending: Awaitable[None]) -> None:
            await appending
            self.release(group)

        async with trio.open_nursery() as nursery:
            while True:
                group = await self.mailbox.take(ROUNDS_UNSYNCED_MAX)
                nursery.start_soon(release, group, self._begin(group))

    return run


def _fight_on(original: Any) -> Any:
    def end(self: Database, taken: Exception) -> None:
        log: Any = self._log
        log.has_fenced = False  # as if it were opened again

    return end


MUTANTS: Final = (
    Mutant(
        "fight_on",
        "a database whose log was taken over reads it again and takes it back",
        ("list_append", "hot_key", "bank"),
        ((database.Database, "_end", _fight_on),),
        shape=(("probabilities", {"log_taken": 0.2}),),
    ),
    Mutant(
        "read_three_pieces_of_the_log",
        "recovery reads three pieces of the log at most, and asks nobody whether that is all",
        ("bank", "hot_key", "list_append"),
        ((recovery, "recover_from", _read_three_pieces),),
    ),
    Mutant(
        "drop_only_what_was_logged",
        "recovery brings back a tree that the checkpoint has and the log drops",
        ("sql_definitions", "definitions", "sql_migrations"),
        ((recovery.Replay, "_forget_dropped", _drop_only_what_was_logged),),
    ),
    Mutant(
        "drop_the_table_alone",
        "DROP TABLE leaves the trees of the indexes behind",
        ("sql_definitions", "sql_migrations"),
        ((transaction.Transaction, "drop_trees", _drop_the_table_alone),),
    ),
    Mutant(
        "keep_pages_of_failures",
        "pages of a checkpoint that failed stay on the disk for ever",
        ("bank", "registers"),
        ((saved_pages.SavedPages, "begin", _keep_pages_of_failures),),
        shape=OFTEN_SAVED,
    ),
    Mutant(
        "keep_what_is_below",
        "of a branch that is not used any more only the branch itself is forgotten",
        ("range_sums", "sql_queue"),
        ((saved_pages.Save, "_sort_out", _keep_what_is_below),),
        shape=OFTEN_SAVED,
    ),
    Mutant(
        "keep_what_a_crash_left",
        "pages of a checkpoint that a crash ended stay on the disk for ever",
        ("range_sums", "list_append", "sql_queue"),
        ((saved_pages.SavedPages, "restore", _keep_what_a_crash_left),),
        shape=SYNCS_FAIL,
    ),
    Mutant(
        "count_as_saved_when_written",
        "a page counts as saved, and is let go, when it was written, though its checkpoint came to"
        " nothing",
        ("bank", "list_append", "sql_queue"),
        (
            (saved_pages.SavedPages, "begin", _remember_the_save),
            (checkpointer.Checkpointer, "_save_pages", _count_as_saved_when_written),
            (page_cache.PageCache, "keep", _keep_what_is_here),
        ),
        shape=SYNCS_FAIL,
    ),
    Mutant(
        "confirm_what_was_broken_off",
        "a checkpoint that was broken off because a sync of the log failed counts as saved",
        ("bank", "hot_key", "list_append", "registers"),
        ((checkpointer.Checkpointer, "save", _confirm_what_was_broken_off),),
        shape=SYNCS_FAIL,
    ),
    Mutant(
        "begin_before_the_last_is_there",
        "the next group of the log is begun before the last is known to be there",
        ("bank", "hot_key", "list_append"),
        ((log_writer.LogWriter, "run", _begin_before_the_last_is_there),),
        shape=(*SYNCS_FAIL, ("eager_log", True), ("delay_seconds", 0.0001)),
    ),
)
