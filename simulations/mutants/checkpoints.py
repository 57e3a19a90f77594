"""Planted bugs in checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.durability import saved_pages
from qserver.durability.recovery import Recovered
from qserver.durability.saved_pages import Save, SavedPages
from qserver.engine import checkpointer, generation
from qserver.engine.checkpointer import Checkpointer
from qserver.engine.generation import Generation
from qserver.errors import LogFailed
from qserver.storage.page import Leaf, Tree
from qserver.storage.snapshot import Snapshot
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import SAVES_FAIL, SYNCS_FAIL


def _cut_before_durable(original: Any) -> Any:
    async def checkpoint(self: Checkpointer, snapshot: Snapshot, *counted: int) -> None:
        await self.log.forget(snapshot.version, [])
        await original(self, snapshot, *counted)

    return checkpoint


def _cut_too_much(original: Any) -> Any:
    async def forget(self: Checkpointer, behind: int, version: int) -> None:
        await original(self, behind, self.versions.durable.version)

    return forget


def _take_similar_for_saved(original: Any) -> Any:
    def new_pages(self: Save, page: Tree) -> Iterator[Any]:
        for known in list(self._saved.store.cache._line):
            if type(page) is not Leaf or self._saved.is_saved(page):
                break
            if type(known) is Leaf and known.keys == page.keys:
                self.number_of[page] = known.number
                self._kept.add(known.number)
                return
        yield from original(self, page)

    return new_pages


def _confirm_what_failed(original: Any) -> Any:
    async def save(self: Checkpointer, save: Save, logged: int = 0) -> None:
        try:
            await original(self, save, logged)
        except LogFailed:
            if all(True for _ in save.pages()):  # whatever was not saved, it has a number now
                save.stored()
                self.saved.confirm(save)

    return save


def _use_numbers_of_the_dead(original: Any) -> Any:
    def restore(
        self: SavedPages, kept: Any, gone: Any, dead: list[int], last_number: int, log_start: int
    ) -> None:
        while last_number in dead:
            last_number -= 1
        original(self, kept, gone, dead, last_number, log_start)

    return restore


def _forget_before_confirmed(original: Any) -> Any:
    async def save(self: Checkpointer, save: Save, logged: int = 0) -> None:
        await self.log.forget(0, [page.number for page in self.saved.old_roots()][:1])
        await original(self, save, logged)

    return save


def _know_what_is_not_durable(original: Any) -> Any:
    def known(self: Generation) -> Recovered:
        return Recovered(self.versions.newest, self.checkpointer.saved, self.checkpointer.logged)

    return known


MUTANTS: Final = (
    Mutant(
        "cut_before_the_checkpoint",
        "the log is cut before the checkpoint is durable",
        ("bank", "hot_key"),
        ((checkpointer.Checkpointer, "checkpoint", _cut_before_durable),),
    ),
    Mutant(
        "cut_beyond_the_checkpoint",
        "the log is cut up to what is durable, not up to what the checkpoint is of",
        ("bank", "hot_key"),
        ((checkpointer.Checkpointer, "forget", _cut_too_much),),
    ),
    Mutant(
        "take_a_similar_page_for_saved",
        "a page is held for saved because one with the same keys is",
        ("bank", "registers"),
        ((saved_pages.Save, "_new_pages", _take_similar_for_saved),),
    ),
    Mutant(
        "confirm_a_failed_checkpoint",
        "a checkpoint that failed counts as saved",
        ("bank", "hot_key", "registers"),
        ((checkpointer.Checkpointer, "save", _confirm_what_failed),),
        shape=SAVES_FAIL,
    ),
    Mutant(
        "use_numbers_of_the_dead_again",
        "numbers of pages that a crash left behind are given to other pages",
        ("bank", "registers", "list_append"),
        ((saved_pages.SavedPages, "restore", _use_numbers_of_the_dead),),
        shape=SAVES_FAIL,
    ),
    Mutant(
        "forget_pages_too_early",
        "a page of the last checkpoint is forgotten before the next one is durable",
        ("bank", "registers"),
        ((checkpointer.Checkpointer, "save", _forget_before_confirmed),),
    ),
    Mutant(
        "know_what_is_not_durable",
        "after the log has failed, recovery begins with what was published, not what is durable",
        ("bank", "hot_key", "list_append"),
        ((generation.Generation, "known", _know_what_is_not_durable),),
        shape=SYNCS_FAIL,
    ),
)
