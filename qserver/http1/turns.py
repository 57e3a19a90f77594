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

    def begin(self) -> None:
        """Called before a connection handles what has arrived."""

    def end(self) -> object:
        """Called after that: whose it was."""

    def next_of(self, owners: Collection[Any], *, first: bool) -> Any | None:
        """Return whose connection is called next; None: nobody's in this pass.

        If it is the first one of the pass, it is somebody's.
        """

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the task of a connection, whose steps are its owner's."""


class NoTurns:
    """For an application whose requests are all of one owner."""

    is_contended = False
    strangers = None

    def begin(self) -> None:
        pass

    def end(self) -> object:
        return None

    def next_of(self, owners: Collection[Any], *, first: bool) -> Any | None:
        return next(iter(owners))

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await work
