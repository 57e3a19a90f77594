"""Hot key: all clients increment the same counter, and every transaction must end.

No client may starve, so the run's own deadline bounds the time that a transaction takes once faults
have ceased. At the end the counter equals the number of increments.
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table


class HotKey(Workload):
    name = "hot_key"

    async def setup(self, service: Service) -> None:
        def work(transaction: Transaction) -> None:
            counters = create_table(transaction, "counters", "id", "count")
            transaction.insert(counters, (0, 0))

        await service.transact(work)

    async def transaction(self, service: Service, number: int) -> None:
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            counters = transaction.table("counters")
            row = transaction.get(counters, (0,))
            assert row is not None
            if long:
                yield
            transaction.put(counters, (0, row[1] + 1))
            return row[1] + 1

        outcome = await self.attempt(service, work, number)
        if outcome is not None:
            seen = await self.look(service, count)
            self.expect(
                seen is None or seen >= outcome.result,
                f"the counter was {outcome.result}, later {seen}",
            )

    async def check(self, service: Service) -> None:
        counted = (await service.read(count)).result
        least = len(self.book.acknowledged)
        most = least + len(self.book.unknown)
        self.expect(least <= counted <= most, f"{counted} of {least} to {most} increments")
        if counted > least:
            service.world.reach("an unknown outcome had been applied")


def count(transaction: Transaction) -> int:
    row = transaction.get(transaction.table("counters"), (0,))
    assert row is not None
    return int(row[1])
