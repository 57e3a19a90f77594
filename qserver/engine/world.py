"""What the engine takes from outside: clock, chance, channels, and what runs its actors.

Below the front end no code asks the operating system for the time or a random number, and none
opens a channel of its own. So the same code runs in production, with the ordinary world, and in the
simulation, where one seed decides all of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import trio

from qserver.engine.batch import Batch
from qserver.engine.mailbox import Mailbox

if TYPE_CHECKING:
    from random import Random


Check: TypeAlias = Callable[[], None]
"""Raises when no client waits any more for the computation."""

Compute: TypeAlias = Callable[[Callable[[Check], Any]], Awaitable[Any]]


class World(Protocol):
    @property
    def chance(self) -> Random:
        """The source of random pauses."""

    def now(self) -> float:
        """Seconds since 1970, for people; waits use Trio's clock."""

    @property
    def batch(self) -> Batch:
        """The requests that begin together, for actors that wait until all have begun."""

    def mailbox(self, name: str, capacity: int) -> Mailbox[Any]:
        """Make a mailbox for the actor of that name."""

    async def act(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run an actor until it dies."""

    @property
    def compute(self) -> Compute:
        """Runs a long, pure computation, and gives it a check to call now and then."""

    def report(self, text: str, error: Exception) -> None:
        """Report an error to the operator."""


async def compute_here(work: Callable[[Check], Any]) -> Any:
    """Compute without a thread: other tasks wait, and the result never depends on scheduling."""
    await trio.lowlevel.checkpoint()
    return work(_go_on)


def _go_on() -> None:
    """Pass: nothing else can have happened during a computation without a thread."""


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
        self.batch = Batch()

    def mailbox(self, name: str, capacity: int) -> Mailbox[Any]:
        return Mailbox(name, capacity)

    async def act(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        await run()
