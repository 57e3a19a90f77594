"""A bank in SQL: two UPDATEs and an INSERT … RETURNING move money, and every SELECT sees it all.

A CHECK keeps balances from falling below zero, so some transfers fail at their first or second
statement and must leave nothing. The ledger's key is SERIAL: no value is given twice, even after a
crash. One query weighs all accounts hundreds of times, page by page; as it reads one version from
its first row to its last, it finds the same weight each time.
"""

from __future__ import annotations

from qserver.errors import CheckViolation
from qserver.query.sql_database import Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

ACCOUNTS = 8
BALANCE = 100
TOTAL = ACCOUNTS * BALANCE

MOVE = "UPDATE accounts SET balance = balance + $1 WHERE id = $2"
NOTE = """INSERT INTO ledger (number, source, target, amount) VALUES ($1, $2, $3, $4)
    RETURNING id"""
ONE_SUM = "SELECT sum(balance) FROM accounts"
WEIGHTS = """SELECT (SELECT sum(balance * id) FROM accounts WHERE balance > -n)
    FROM generate_series(1, 300) AS numbers (n)"""
"""Each transfer changes the weight, unlike the sum; so rows of two versions would differ."""


class SqlBank(SqlWorkload):
    name = "sql_bank"
    tables = (
        "CREATE TABLE accounts (id integer PRIMARY KEY, balance integer CHECK (balance >= 0))",
        """CREATE TABLE ledger (id serial PRIMARY KEY, number integer NOT NULL UNIQUE,
            source integer, target integer, amount integer)""",
        f"INSERT INTO accounts SELECT n, {BALANCE} FROM generate_series(0, {ACCOUNTS - 1}) AS g(n)",
    )

    async def setup(self, service: Service) -> None:
        self.ids: dict[int, int] = {}
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.4:
            await self._audit(service)
            return
        source, target = self.chance.sample(range(ACCOUNTS), 2)
        amount = self.chance.randrange(1, 80)
        statements = [
            Statement(MOVE, [amount, target]),
            Statement(MOVE, [-amount, source]),
            Statement(NOTE, [number, source, target, amount]),
        ]
        if self.is_long():
            statements.insert(1, PAUSE)
        done = await self.together(service, statements, number=number, may=(CheckViolation,))
        if isinstance(done, TransactionResult):
            ((id_given,),) = done.results[-1].rows
            other = self.ids.setdefault(id_given, number)
            self.expect(other == number, f"id {id_given} was given to {other} and to {number}")

    async def _audit(self, service: Service) -> None:
        sql = self.chance.choice((ONE_SUM, WEIGHTS))
        result = await self.select(service, sql)
        if result is not None:
            found = sorted({row[0] for row in result.rows})
            right = found == [TOTAL] if sql is ONE_SUM else len(found) == 1
            self.expect(right, f"an audit of version {result.version} found {found}")

    async def check_rows(self, service: Service) -> None:
        accounts = await self.must(service, "SELECT id, balance FROM accounts")
        ledger = await self.must(service, "SELECT id, number, source, target, amount FROM ledger")
        balances: dict[int, int] = dict(accounts.rows)
        expected = dict.fromkeys(range(ACCOUNTS), BALANCE)
        for id_there, number, source, target, amount in ledger.rows:
            expected[source] -= amount
            expected[target] += amount
            told = self.ids.get(id_there, number)
            self.expect(told == number, f"id {id_there} is of {number}, and {told} was told it")
        self.expect(balances == expected, f"balances {balances}, the ledger says {expected}")
        self.expect(min(balances.values()) >= 0, f"an account is below zero: {balances}")
        self.problems += self.book.compare([row[1] for row in ledger.rows], service)
