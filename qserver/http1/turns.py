"""How the requests of several owners take turns. The server knows no owners; its caller does."""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Turns(Protocol):
    @property
    def is_contended(self) -> bool:
        """Whether several owners have had requests lately."""

    @property
    def strangers(self) -> object:
        """The owner of connections that have sent no request yet."""

    def begin(self, owner: Any = None) -> None:
        """Called before a connection handles what has arrived, in the turn of an owner."""

    def end(self) -> object:
        """Called after that: whose it was. In a turn of strangers that may be an owner."""

    def next_of(self, owners: Collection[Any]) -> Any | None:
        """Return whose connection is called next; None: nobody's in this pass."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the task of a connection, whose steps are its owner's."""


class NoTurns:
    """For an application whose requests are all of one owner."""

    is_contended = False
    strangers = None

    def begin(self, owner: Any = None) -> None:
        pass

    def end(self) -> object:
        return None

    def next_of(self, owners: Collection[Any]) -> Any | None:
        return next(iter(owners))

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await work
