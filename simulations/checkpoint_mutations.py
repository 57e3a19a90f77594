"""What planted bugs do to checkpoints; `mutants.py` says which there are, and plants them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qserver.durability.recovery import Recovered
from qserver.durability.saved_pages import Save, SavedPages
from qserver.engine.checkpointer import Checkpointer
from qserver.engine.incarnation import Incarnation
from qserver.errors import LogFailed
from qserver.storage.btree import Leaf, Tree
from qserver.storage.view import View


def cut_before_durable(original: Any) -> Any:
    async def checkpoint(self: Checkpointer, view: View) -> None:
        await self.log.forget(view.version, [])
        await original(self, view)

    return checkpoint


def cut_too_much(original: Any) -> Any:
    async def forget(self: Checkpointer, behind: int, version: int) -> None:
        await original(self, behind, self.published.durable.version)

    return forget


def take_similar_for_saved(original: Any) -> Any:
    def new_pages(self: Save, page: Tree) -> Iterator[Any]:
        for known, number in self._saved._number_of.items():
            if type(page) is Leaf and type(known) is Leaf and known.keys == page.keys:
                self.number_of[page] = number
                return
        yield from original(self, page)

    return new_pages


def confirm_what_failed(original: Any) -> Any:
    async def save(self: Checkpointer, save: Save) -> None:
        try:
            await original(self, save)
        except LogFailed:
            if all(True for _ in save.pages()):  # whatever was not saved, it has a number now
                self.saved.confirm(save)

    return save


def use_numbers_again(original: Any) -> Any:
    def begin(self: SavedPages, view: View) -> Save:
        self.last_number = self._last_confirmed
        save: Save = original(self, view)
        return save

    return begin


def forget_before_confirmed(original: Any) -> Any:
    async def save(self: Checkpointer, save: Save) -> None:
        await self.log.forget(0, list(self.saved._number_of.values())[:1])
        await original(self, save)

    return save


def know_what_is_not_durable(original: Any) -> Any:
    def known(self: Incarnation) -> Recovered:
        return Recovered(self.published.newest, self.checkpointer.saved, self.checkpointer.logged)

    return known
