"""Write skew: two accounts may not be negative together.

Each transaction reads both before it draws from one. Snapshot isolation lets this go wrong;
serializability must not.
"""

from __future__ import annotations

from qserver.storage.transaction import Transaction
from simulations.service import Service
from simulations.workloads.workload import Body, Workload, create_table

PAIRS = 3


class WriteSkew(Workload):
    name = "write_skew"

    async def setup(self, service: Service) -> None:
        def work(transaction: Transaction) -> None:
            accounts = create_table(transaction, "accounts", "id", "balance")
            create_table(transaction, "draws", "id", "account", "amount")
            for account in range(2 * PAIRS):
                transaction.insert(accounts, (account, 50))

        await service.transact(work)

    async def transaction(self, service: Service, number: int) -> None:
        pair = self.chance.randrange(PAIRS)
        drawn = 2 * pair + self.chance.randrange(2)
        amount = self.chance.choice((-40, 30, 60, 90))
        long = self.is_long()

        def work(transaction: Transaction) -> Body:
            accounts = transaction.table("accounts")
            balances = {}
            for account in (2 * pair, 2 * pair + 1):
                row = transaction.get(accounts, (account,))
                assert row is not None
                balances[account] = row[1]
                if long:
                    yield
            allowed = amount if sum(balances.values()) >= amount else 0
            if allowed:
                transaction.put(accounts, (drawn, balances[drawn] - allowed))
            transaction.insert(transaction.table("draws"), (number, drawn, allowed))

        await self.attempt(service, work, number)
        rows = await self.look(
            service, lambda transaction: transaction.rows(transaction.table("accounts"))
        )
        if rows is not None:
            self._judge(dict(rows))

    async def check(self, service: Service) -> None:
        def work(transaction: Transaction) -> tuple[dict[int, int], list[tuple[int, ...]]]:
            accounts = transaction.rows(transaction.table("accounts"))
            return dict(accounts), transaction.rows(transaction.table("draws"))

        balances, draws = (await service.read(work)).result
        self._judge(balances)
        expected = dict.fromkeys(range(2 * PAIRS), 50)
        for _, account, amount in draws:
            expected[account] -= amount
        self.expect(balances == expected, f"balances {balances}, draws say {expected}")
        self.problems += self.book.compare([row[0] for row in draws], service)

    def _judge(self, balances: dict[int, int]) -> None:
        for pair in range(PAIRS):
            total = balances[2 * pair] + balances[2 * pair + 1]
            self.expect(total >= 0, f"pair {pair} has {total} together")
