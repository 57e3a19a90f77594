"""What the engine takes from outside: clock, chance, channels, and who runs its actors.

Below the front end nothing asks the operating system for the time or a random number, and nothing
opens a channel of its own. So the same code runs in production, where this is the ordinary world,
and in the simulation, where one seed decides all of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import trio

from qserver.engine.mailbox import Mailbox

if TYPE_CHECKING:
    from random import Random


Check: TypeAlias = Callable[[], None]
"""Raises when nobody waits any more for what is being computed."""

Compute: TypeAlias = Callable[[Callable[[Check], Any]], Awaitable[Any]]


class World(Protocol):
    @property
    def chance(self) -> Random:
        """Where random pauses come from."""

    def now(self) -> float:
        """Seconds since 1970, for people; waiting is by Trio's own clock."""

    def mailbox(self, name: str, capacity: int) -> Mailbox[Any]:
        """A mailbox for the actor of that name."""

    async def act(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run an actor until it dies."""

    @property
    def compute(self) -> Compute:
        """How to compute something long that depends on nothing but its arguments. It is given a
        check to call now and then."""

    def report(self, text: str, error: Exception) -> None:
        """Tell the operator what went wrong."""


async def compute_here(work: Callable[[Check], Any]) -> Any:
    """Without a thread: others wait, and what is computed never depends on who runs when."""
    await trio.lowlevel.checkpoint()
    return work(_go_on)


def _go_on() -> None:
    """Somebody waits: nothing else can have happened meanwhile."""


class OrdinaryWorld:
    """Real time and chance, plain mailboxes."""

    def __init__(
        self,
        now: Callable[[], float],
        chance: Random,
        report: Callable[[str, Exception], None],
        compute: Compute = compute_here,
    ) -> None:
        self.chance = chance
        self.now = now
        self.report = report
        self.compute = compute

    def mailbox(self, name: str, capacity: int) -> Mailbox[Any]:
        return Mailbox(name, capacity)

    async def act(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        await run()
