"""What all workloads share: tables for tests, clients that keep going, and a book of outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, ClassVar, TypeAlias

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.messages import Work
from qserver.errors import Applied, QserverError
from qserver.storage.transaction import Transaction
from qserver.values.schema import Column, Index, Table
from qserver.values.types import INTEGER, TEXT
from simulations.faults import Profile
from simulations.service import Operations, Seen, Service, nothing
from simulations.world import SimulatedWorld

Body: TypeAlias = Generator[None, None, Any]
"""What work that may yield returns when it is called."""


class Workload(ABC):
    """`setup` once, `client` many times at once, `check` at the end, on a database at rest.

    `problems` collects what clients see go wrong; a client that finds one need not stop.
    """

    name: ClassVar[str]

    def __init__(self, seed: int, profile: Profile) -> None:
        self.profile = profile
        self.chance = Random(f"workload {self.name} {seed}")
        self.problems: list[str] = []
        self.book = Book()

    def bounds(self, world: SimulatedWorld) -> AbstractContextManager[None]:
        """Change bounds of the product for the time of a run, beside those of its profile."""
        return nullcontext()

    @abstractmethod
    async def setup(self, service: Service) -> None: ...

    @abstractmethod
    async def transaction(self, service: Service, number: int) -> None:
        """Run one transaction of a client, which handles the errors that it must expect."""

    @abstractmethod
    async def check(self, service: Service) -> None:
        """Check the end state, and add what is wrong to `problems`."""

    async def client(self, service: Service, first: int) -> None:
        """Run one client: transactions with numbers of its own."""
        for number in range(first, first + self.profile.transactions_per_client):
            await trio.sleep(self.chance.expovariate(1.0) * self.profile.delay_seconds * 5)
            if service.world.faults.strikes("client_pauses"):
                service.world.record("fault", "the client pauses")
                await trio.sleep(self.chance.uniform(0.0, 1.0))
            await self.transaction(service, number)

    async def attempt(
        self,
        service: Service,
        work: Work,
        number: int | None = None,
        *,
        intended: Operations = (),
        seen: Seen = nothing,
    ) -> Outcome | None:
        """Try once, and note it in the book; None if it was refused or its outcome is unknown."""
        try:
            outcome = await service.transact(work, intended, seen)
        except QserverError as error:
            if number is not None:
                self.book.note(number, error)
            return None
        if number is not None:
            self.book.note(number, None)
        return outcome

    async def look(self, service: Service, work: Work, seen: Seen = nothing) -> Any:
        """Read, by a read-only request or by a transaction that writes nothing; None on error."""
        try:
            if self.chance.random() < 0.5:
                return (await service.read(work, seen)).result
            return (await service.transact(work, (), seen)).result
        except QserverError:
            return None

    def is_long(self) -> bool:
        """Return whether the next piece of work yields while it runs."""
        return self.chance.random() < self.profile.long_work

    def expect(self, truth: bool, problem: str) -> None:
        if not truth:
            self.problems.append(problem)


class Book:
    """The answers that clients got: numbers of transactions by their outcome."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, None] = {}
        self.refused: dict[int, None] = {}
        self.unknown: dict[int, None] = {}

    def note(self, number: int, error: QserverError | None) -> None:
        if error is None:
            self.acknowledged[number] = None
        elif error.applied is Applied.UNKNOWN:
            self.unknown[number] = None
        else:
            self.refused[number] = None

    def compare(self, present: Iterable[int], service: Service) -> list[str]:
        """Return what is wrong if exactly these transactions have left their mark."""
        there = dict.fromkeys(present)
        lost = [number for number in self.acknowledged if number not in there]
        ghosts = [number for number in self.refused if number in there]
        if any(number in there for number in self.unknown):
            service.world.reach("an unknown outcome had been applied")
        problems = []
        if lost:
            problems.append(f"acknowledged but lost: {lost}")
        if ghosts:
            problems.append(f"refused but applied: {ghosts}")
        return problems


def create_table(
    transaction: Transaction,
    name: str,
    *columns: str,
    text: Iterable[str] = (),
    unique: Iterable[int] = (),
) -> Table:
    """Make a table of INTEGER columns, TEXT where said, whose first column is the key."""
    number = transaction.next_tree()
    indexes = tuple(
        Index(transaction.next_tree(), f"{name}_{columns[at]}_key", (at,), True) for at in unique
    )
    texts = tuple(text)
    table = Table(
        number,
        name,
        tuple(Column(each, TEXT if each in texts else INTEGER, False) for each in columns),
        (0,),
        indexes,
    )
    transaction.define(table.key, table)
    return table
