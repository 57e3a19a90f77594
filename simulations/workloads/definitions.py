"""Definitions: a table is redefined while others write to it.

Now and then a transaction moves all rows into a table with one column more, which takes the old
one's name. Every row must fit the definition under which it is found, and none may be left behind.
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table


class Definitions(Workload):
    name = "definitions"

    async def setup(self, service: Service) -> None:
        await service.transact(
            lambda transaction: create_table(transaction, "rows", "id", "column_1")
        )

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.15:
            long = self.is_long()
            await self.attempt(service, lambda transaction: redefine(transaction, long))
            return
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            table = transaction.table("rows")
            if long:
                yield
            transaction.insert(table, (number,) * len(table.columns))

        await self.attempt(service, work, number)
        rows = await self.look(service, widths)
        if rows is not None:
            self._judge(*rows)

    async def check(self, service: Service) -> None:
        columns, rows = (await service.read(widths)).result
        self._judge(columns, rows)
        self.problems += self.book.compare([row[0] for row in rows], service)

    def _judge(self, columns: int, rows: list[tuple[int, ...]]) -> None:
        misfits = [row for row in rows if len(row) != columns]
        self.expect(not misfits, f"rows that do not fit {columns} columns: {misfits}")


def redefine(transaction: Transaction, long: bool) -> Body:
    old = transaction.table("rows")
    rows = transaction.rows(old)
    transaction.drop_table("rows")
    if long:
        yield
    columns = [f"column_{at}" for at in range(1, len(old.columns) + 1)]
    new = create_table(transaction, "rows", "id", *columns)
    for row in rows:
        transaction.insert(new, (*row, 0))


def widths(transaction: Transaction) -> tuple[int, list[tuple[int, ...]]]:
    table = transaction.table("rows")
    return len(table.columns), transaction.rows(table)
