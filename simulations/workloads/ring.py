"""Ring: keys form one circle of links, and each transaction turns three links of it around.

    a → b → c → d   becomes   a → c → b → d

Any anomaly, even one that loses no update, cuts the circle into pieces or drops a key from it.
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from qserver.values.schema import Table
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table

KEYS = 9


class Ring(Workload):
    name = "ring"

    async def setup(self, service: Service) -> None:
        def work(transaction: Transaction) -> None:
            ring = create_table(transaction, "ring", "id", "next")
            create_table(transaction, "turns", "id")
            for key in range(KEYS):
                transaction.insert(ring, (key, (key + 1) % KEYS))

        await service.transact(work)

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.25:
            await self._walk_around(service)
            return
        start = self.chance.randrange(KEYS)
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            ring = transaction.table("ring")
            second = follow(transaction, ring, start)
            third = follow(transaction, ring, second)
            if long:
                yield
            fourth = follow(transaction, ring, third)
            transaction.put(ring, (start, third))
            transaction.put(ring, (third, second))
            transaction.put(ring, (second, fourth))
            transaction.insert(transaction.table("turns"), (number,))

        await self.attempt(service, work, number)

    async def _walk_around(self, service: Service) -> None:
        start = self.chance.randrange(KEYS)
        visited = await self.look(service, lambda transaction: walk(transaction, start))
        if visited is not None:
            self._judge(visited)

    async def check(self, service: Service) -> None:
        self._judge((await service.read(lambda transaction: walk(transaction, 0))).result)
        turns = await service.read(lambda transaction: transaction.rows(transaction.table("turns")))
        self.problems += self.book.compare([row[0] for row in turns.result], service)

    def _judge(self, visited: list[int]) -> None:
        whole = len(visited) == KEYS + 1 and sorted(visited[:-1]) == list(range(KEYS))
        self.expect(whole and visited[0] == visited[-1], f"the ring is broken: {visited}")


def follow(transaction: Transaction, ring: Table, key: int) -> int:
    row = transaction.get(ring, (key,))
    assert row is not None
    return int(row[1])


def walk(transaction: Transaction, start: int) -> list[int]:
    ring = transaction.table("ring")
    visited = [start]
    while len(visited) <= KEYS:
        visited.append(follow(transaction, ring, visited[-1]))
    return visited
