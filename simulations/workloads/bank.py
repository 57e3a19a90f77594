"""Bank: money moves between accounts, and for every reader the total is constant.

Each transfer also leaves a row that says what it did, so at the end the balances can be computed
again from the transfers: a half-applied, lost or doubled one shows.
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table

ACCOUNTS = 8
BALANCE = 100


class Bank(Workload):
    name = "bank"

    async def setup(self, service: Service) -> None:
        def work(transaction: Transaction) -> None:
            accounts = create_table(transaction, "accounts", "id", "balance")
            create_table(transaction, "transfers", "id", "source", "target", "amount")
            for account in range(ACCOUNTS):
                transaction.insert(accounts, (account, BALANCE))

        await service.transact(work)

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.3:
            await self._audit(service)
            return
        source, target = self.chance.sample(range(ACCOUNTS), 2)
        amount = self.chance.randrange(1, 60)
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            accounts = transaction.table("accounts")
            poorer = transaction.get(accounts, (source,))
            if long:
                yield
            richer = transaction.get(accounts, (target,))
            assert poorer is not None and richer is not None
            moved = min(amount, poorer[1])
            transaction.put(accounts, (source, poorer[1] - moved))
            transaction.put(accounts, (target, richer[1] + moved))
            transaction.insert(transaction.table("transfers"), (number, source, target, moved))

        await self.attempt(service, work, number)

    async def _audit(self, service: Service) -> None:
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            total = 0
            for _, page in transaction.scan(transaction.table("accounts").id):
                total += sum(balance for _, balance in page)
                if long:
                    yield
            return total

        total = await self.look(service, work)
        self.expect(total in (None, ACCOUNTS * BALANCE), f"an audit found {total}")

    async def check(self, service: Service) -> None:
        def work(transaction: Transaction) -> tuple[dict[int, int], list[tuple[int, ...]]]:
            accounts = transaction.rows(transaction.table("accounts"))
            return dict(accounts), transaction.rows(transaction.table("transfers"))

        balances, transfers = (await service.read(work)).result
        expected = dict.fromkeys(range(ACCOUNTS), BALANCE)
        for _, source, target, amount in transfers:
            expected[source] -= amount
            expected[target] += amount
        self.expect(balances == expected, f"balances {balances}, transfers say {expected}")
        self.problems += self.book.compare([row[0] for row in transfers], service)
