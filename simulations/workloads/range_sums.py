"""Range sums: a writer adds up a range of rows and notes the sum; phantoms make the notes wrong.

Rows belong to groups. Some transactions scan a range of keys, others the whole table with a
predicate that picks their group; both add, change or remove a row and write the group's new sum.
Every reader must find notes and rows in agreement.
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from qserver.values.schema import Table
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table

GROUPS = 3
KEYS_PER_GROUP = 1_000_000
NUMBERS_MAX = 1_000
"""Rows of clients have smaller keys in their group than the first rows."""
ROWS_AT_FIRST = (0, 10, 30)
"""Rows in each group at first; with small pages they are a tree of three levels of branches."""


class RangeSums(Workload):
    name = "range_sums"

    async def setup(self, service: Service) -> None:
        rows_at_first = self.chance.choice(ROWS_AT_FIRST)

        def work(transaction: Transaction) -> None:
            rows = create_table(transaction, "rows", "id", "part", "amount")
            sums = create_table(transaction, "sums", "part", "total")
            for group in range(GROUPS):
                first = group * KEYS_PER_GROUP + NUMBERS_MAX
                for key in range(first, first + rows_at_first):
                    transaction.insert(rows, (key, group, 1))
                transaction.insert(sums, (group, rows_at_first))

        await service.transact(work)

    async def transaction(self, service: Service, number: int) -> None:
        group = self.chance.randrange(GROUPS)
        key = group * KEYS_PER_GROUP + number
        amount = self.chance.randrange(1, 100)
        kind = self.chance.choice(("remove", "remove", "change", "insert", "insert", "insert"))
        by_predicate = self.chance.random() < 0.5
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            rows = transaction.table("rows")
            found = rows_of(transaction, rows, group, by_predicate)
            if long:
                yield
            total = sum(row[2] for row in found)
            if kind == "remove" and found:
                transaction.delete(rows, (found[-1][0],))
                total -= found[-1][2]
            elif kind == "change" and found:
                changed = found[number % len(found)]
                transaction.put(rows, (*changed[:2], amount))
                total += amount - changed[2]
            else:
                transaction.insert(rows, (key, group, amount))
                total += amount
            transaction.put(transaction.table("sums"), (group, total))
            found = rows_of(transaction, rows, group, by_predicate)
            return total, sum(row[2] for row in found)

        outcome = await self.attempt(service, work)
        if outcome is not None:
            total, seen = outcome.result
            self.expect(total == seen, f"it left rows of {total} in all, and saw {seen}")
        if self.chance.random() < 0.3:
            found = await self.look(service, sums_and_notes)
            if found is not None:
                self._judge(*found)

    async def check(self, service: Service) -> None:
        self._judge(*(await service.read(sums_and_notes)).result)

    def _judge(self, sums: dict[int, int], notes: dict[int, int]) -> None:
        self.expect(sums == notes, f"the rows add up to {sums}, the notes say {notes}")


def rows_of(
    transaction: Transaction, rows: Table, group: int, by_predicate: bool
) -> list[tuple[int, ...]]:
    if by_predicate:
        return transaction.rows(rows, predicate=lambda row: row[1] == group)
    low = group * KEYS_PER_GROUP
    return transaction.rows(rows, (low,), (low + KEYS_PER_GROUP,))


def sums_and_notes(transaction: Transaction) -> tuple[dict[int, int], dict[int, int]]:
    sums = dict.fromkeys(range(GROUPS), 0)
    for _, group, amount in transaction.rows(transaction.table("rows")):
        sums[group] += amount
    return sums, dict(transaction.rows(transaction.table("sums")))
