"""Unique keys: clients claim few names in a table whose index must keep them unique.

The index lives on other shards than the rows, so this also shows that rows and index entries change
together.
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table

NAMES = 6


class UniqueKeys(Workload):
    name = "unique_keys"

    async def setup(self, service: Service) -> None:
        await service.transact(
            lambda transaction: create_table(transaction, "people", "id", "name", unique=[1])
        )

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.choice(("insert", "insert", "rename", "delete"))
        name = self.chance.randrange(NAMES)
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            people = transaction.table("people")
            if kind == "insert":
                transaction.insert(people, (number, name))
            else:
                rows = transaction.rows(people)
                if rows and kind == "rename":
                    transaction.put(people, (rows[-1][0], name))
                elif rows:
                    transaction.delete(people, (rows[0][0],))
            if long:
                yield

        await self.attempt(service, work)
        found = await self.look(service, everything)
        if found is not None:
            self._judge(*found)

    async def check(self, service: Service) -> None:
        self._judge(*(await service.read(everything)).result)

    def _judge(self, rows: list[tuple[int, int]], entries: dict[int, int]) -> None:
        names = [name for _, name in rows]
        self.expect(len(set(names)) == len(names), f"a name is there twice: {rows}")
        by_name = {name: key for key, name in rows}
        self.expect(entries == by_name, f"the index says {entries}, the rows {by_name}")


def everything(transaction: Transaction) -> tuple[list[tuple[int, ...]], dict[int, int]]:
    people = transaction.table("people")
    entries: dict[int, int] = {}
    for keys, values in transaction.scan(people.indexes[0].id):
        entries.update((key[0], value[0]) for key, value in zip(keys, values, strict=True))
    return transaction.rows(people), entries
