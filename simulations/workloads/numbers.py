"""Numbers: sequences may skip values, and never give one twice, crash or no crash.

Each value that is taken also becomes the key of a row, so that a value given twice shows even if
the first taker never got its answer.
"""

from __future__ import annotations

from qserver.errors import QserverError, UniqueViolation
from qserver.storage.transaction import Transaction
from qserver.values.relations import Sequence
from simulations.service import Service
from simulations.workloads.workload import Workload, create_table

SEQUENCES = (Sequence(-1, "one"), Sequence(-2, "two"))
"""The engine's own sequences: below SQL, as row ids are."""


class Numbers(Workload):
    name = "numbers"

    async def setup(self, service: Service) -> None:
        self.given: dict[tuple[int, int], int] = {}
        await service.transact(
            lambda transaction: create_table(transaction, "taken", "id", "taker")
        )

    async def transaction(self, service: Service, number: int) -> None:
        sequence = self.chance.randrange(len(SEQUENCES))
        count = self.chance.choice((1, 1, 3, 200))
        try:
            taken = await service.take_numbers(SEQUENCES[sequence], count)
        except QserverError as error:
            assert service.world.explains(error), error
            return
        for each in taken:
            other = self.given.setdefault((sequence, each), number)
            self.expect(other == number, f"{each} was given to {other} and to {number}")
        if count == 1:
            await self._use(service, sequence, taken[0], number)

    async def _use(self, service: Service, sequence: int, taken: int, number: int) -> None:
        def work(transaction: Transaction) -> None:
            key = taken * len(SEQUENCES) + sequence
            transaction.insert(transaction.table("taken"), (key, number))

        try:
            await service.transact(work)
            self.book.note(number, None)
        except UniqueViolation:
            self.problems.append(f"number {taken} of sequence {sequence} was used before")
        except QserverError as error:
            self.book.note(number, error)

    async def check(self, service: Service) -> None:
        rows = await service.read(lambda transaction: transaction.rows(transaction.table("taken")))
        self.problems += self.book.compare([taker for _, taker in rows.result], service)
