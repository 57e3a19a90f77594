"""Planted bugs in pages that come and go."""

from __future__ import annotations

from typing import Any, Final

from qserver.durability import page_store, recovery, saved_pages
from qserver.durability.page_store import LoggedPages
from qserver.durability.port import Log
from qserver.durability.saved_pages import Died
from qserver.engine import versions
from qserver.storage.page import BranchEntries, Tree
from qserver.storage.snapshot import Snapshot
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import Shape
from simulations.sizes import SMALL

COME_AND_GO: Final[Shape] = (
    ("sizes", SMALL),
    ("checkpoint_log_bytes", 300),
    ("probabilities", {"pages_let_go": 0.3, "message_slow": 0.1, "process_crash": 0.01}),
)
"""Checkpoints all the time, and hardly a page that stays."""

LONG_LOGS: Final[Shape] = (
    ("sizes", SMALL),
    ("cache_bytes", 2000),
    ("checkpoint_log_bytes", 3000),
    (
        "probabilities",
        {"pages_let_go": 0.3, "sync_fails": 0.05, "process_crash": 0.02, "actor_killed": 0.02},
    ),
)
"""Recoveries all the time, in a memory that has no room for what they read."""


def _give_the_entries_of_another(original: Any) -> Any:
    last: dict[int, bytes] = {}

    def checked(page: Tree, data: bytes | None) -> bytes | BranchEntries:
        found: bytes | BranchEntries = original(page, data)
        if isinstance(found, bytes):
            if page.length in last and page.number % 3 == 0:
                return last[page.length]
            last[page.length] = found
        return found

    return checked


def _forget_in_spite_of_readers(original: Any) -> Any:
    return lambda self, after, before: False


def _renew_nothing(original: Any) -> Any:
    return lambda self, lease: None


class _Unsynced:
    """A log on which nobody waits for a sync of pages."""

    def __init__(self, log: Log) -> None:
        self.save_pages = log.save_pages

    async def sync_pages(self) -> None:
        pass


def _save_ahead_without_a_sync(original: Any) -> Any:
    async def save_ahead(self: Any, snapshot: Snapshot, is_whole: bool) -> bool:
        log, self._log = self._log, _Unsynced(self._log)
        try:
            saved: bool = await original(self, snapshot, is_whole)
        finally:
            self._log = log
        return saved

    return save_ahead


def _keep_what_died_ahead(original: Any) -> Any:
    return lambda self: Died([], [])


MUTANTS: Final = (
    Mutant(
        "give_the_entries_of_another_page",
        "a page that is loaded sometimes gets the entries of another",
        ("registers", "bank", "list_append"),
        ((page_store, "_checked", _give_the_entries_of_another),),
        shape=COME_AND_GO,
    ),
    Mutant(
        "forget_in_spite_of_readers",
        "a page is forgotten that an open reader of an older snapshot still needs",
        ("range_sums", "sql_queue", "bank"),
        ((LoggedPages, "is_read_between", _forget_in_spite_of_readers),),
        shape=COME_AND_GO,
    ),
    Mutant(
        "renew_no_lease",
        "the newest snapshot keeps the lease of older ones, so nothing is ever forgotten",
        ("bank", "registers"),
        ((versions.Versions, "renew", _renew_nothing),),
        shape=COME_AND_GO,
    ),
    Mutant(
        "save_ahead_without_a_sync",
        "recovery lets go of pages that it has written, and that a failed sync may lose",
        ("bank", "list_append", "sql_sequences"),
        ((recovery.Recovery, "_save_ahead", _save_ahead_without_a_sync),),
        shape=LONG_LOGS,
    ),
    Mutant(
        "keep_what_died_ahead",
        "pages that died while recovery saved others stay on the disk for ever",
        ("bank", "registers", "range_sums"),
        ((saved_pages.SavedPages, "died_ahead", _keep_what_died_ahead),),
        shape=LONG_LOGS,
    ),
)
