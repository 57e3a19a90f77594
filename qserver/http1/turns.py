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

    def set_owner(self, owner: Any) -> Any:
        """Called with None before connections are called while nobody else is there."""

    def owner(self) -> Any:
        """Called after each of them: whose it was, as far as is known."""

    def only_owner(self) -> object:
        """Called before connections are called while at most one owner is there: who that is.

        What they do then is not charged.
        """

    def meets(self, owner: Any) -> bool:
        """Called after a connection of somebody else: whether several owners are there now."""

    def begin(self, owner: Any) -> None:
        """Called before a connection handles what has arrived, in the turn of an owner."""

    def end(self) -> object:
        """Called after what was begun, and returns whose it was.

        In a turn of strangers that may be an owner.
        """

    def next_of(self, owners: Collection[Any]) -> Any | None:
        """Return whose connection is called next; None: nobody's in this pass."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the task of a connection, whose steps are its owner's."""


class NoTurns:
    """For an application whose requests are all of one owner."""

    is_contended = False
    strangers = None

    def set_owner(self, owner: Any) -> Any:
        pass

    def owner(self) -> Any:
        return None

    def only_owner(self) -> object:
        return None

    def meets(self, owner: Any) -> bool:
        return False

    def begin(self, owner: Any) -> None:
        pass

    def end(self) -> object:
        return None

    def next_of(self, owners: Collection[Any]) -> Any | None:
        return next(iter(owners))

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await work
