"""Families that are open at a node, as small as a model of them may be: each is one database.

A `Handover` needs no more of them. What it is that is open, and how it is closed, says who uses
this: the registers of simulated nodes, and tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class SmallFamilies(ABC, Generic[T]):
    """It is both to a handover: the families of a node, and its databases."""

    def __init__(self) -> None:
        self.open: dict[str, T] = {}
        self._opening: dict[str, trio.CancelScope] = {}
        self._closing: dict[str, T] = {}

    def families(self) -> list[str]:
        return [*self.open, *self._opening, *self._closing]

    def members(self, root: str) -> list[str]:
        return [root] if root in self.open else []

    def stop_base(self, root: str) -> None:
        """None is made here."""

    def is_taken(self, root: str) -> bool:
        """It is closed at once where that is found out."""
        return False

    def give_up(self, name: str, seconds: float = 0.0) -> None:
        if name in self._opening:
            self._opening[name].cancel()
        opened = self.open.pop(name, None)
        if opened is not None:
            self._closing[name] = opened
            self._begin_to_close(name, opened)

    @abstractmethod
    def _begin_to_close(self, name: str, opened: T) -> None:
        """Begin what ends with `_closed`."""

    def _closed(self, name: str) -> None:
        del self._closing[name]

    @contextmanager
    def _while_opening(self, root: str) -> Iterator[trio.CancelScope]:
        """Open a family in this block, which ends early if it is given up."""
        scope = self._opening[root] = trio.CancelScope()
        try:
            with scope:
                yield scope
        finally:
            del self._opening[root]
