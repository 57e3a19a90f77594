"""List-append: transactions read and append to lists, and a checker infers the order.

Every value is appended once, so a read of a list shows the order of all earlier appends.
`checkers.serializability` judges the history.
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from simulations.checkers.serializability import check
from simulations.history import Append, Operation, Read
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table

KEYS = 5


class ListAppend(Workload):
    name = "list_append"

    async def setup(self, service: Service) -> None:
        await service.transact(
            lambda transaction: create_table(transaction, "lists", "id", "items", text=["items"])
        )

    async def transaction(self, service: Service, number: int) -> None:
        steps: list[tuple[int, int | None]] = []
        for step in range(self.chance.randrange(1, 5)):
            appends = self.chance.random() < 0.5
            steps.append((self.chance.randrange(KEYS), number * 10 + step if appends else None))
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            done: list[Operation] = []
            lists = transaction.table("lists")
            for key, value in steps:
                row = transaction.get(lists, (key,))
                items = "" if row is None else row[1]
                if value is None:
                    done.append(Read(key, parse(items)))
                else:
                    transaction.put(lists, (key, f"{items} {value}".strip()))
                    done.append(Append(key, value))
                if long:
                    yield
            return tuple(done)

        if all(value is None for _, value in steps) and self.chance.random() < 0.5:
            await self.look(service, work, seen=tuple)
            return
        intended = tuple(Append(key, value) for key, value in steps if value is not None)
        await self.attempt(service, work, number, intended=intended, seen=tuple)

    async def check(self, service: Service) -> None:
        def work(transaction: Transaction) -> dict[int, tuple[int, ...]]:
            return {
                key: parse(items) for key, items in transaction.rows(transaction.table("lists"))
            }

        attempts = service.history.attempts  # before the read at the end becomes one of them
        final = (await service.read(work)).result
        self.problems += map(str, check(attempts, final))
        present = [value // 10 for items in final.values() for value in items]
        self.book.acknowledged.clear()  # those that only read leave no mark; the checker saw all
        self.problems += self.book.compare(present, service)


def parse(items: str) -> tuple[int, ...]:
    return tuple(map(int, items.split()))
