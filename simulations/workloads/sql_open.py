"""Open transactions: clients read, wait, decide, write, undo a part of it, and commit.

A transfer is decided by balances that were read long before, sometimes inside of something that was
rolled back; the balance of a third account, its witness, decides the amount. At the end all
transfers are replayed in commit order: each must decide as it did. In between, the transaction
makes money and undoes that by savepoints, fails and continues, or is abandoned. It sees one version
and its own writes, and nobody sees any of those before its commit. Some transfers are lists of
statements with savepoints among them, in one request.

A commit in conflict names a request and its version: that request must have changed what was read.

The answer of each commit is stored with it. After crashes it is there exactly if the transfer is,
with the version that its client got.
"""

from __future__ import annotations

from typing import Any

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.stored_answers import StoredAnswer, find_answer
from qserver.engine.work import run
from qserver.errors import Applied, DivisionByZero, FailedTransaction, SerializationFailure
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import Once, Result, RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from qserver.storage.conflict import Conflict
from qserver.storage.transaction import Transaction
from simulations.service import Service
from simulations.workloads.sql_workload import SqlWorkload

ACCOUNTS = 5
BALANCE = 100
TOTAL = ACCOUNTS * BALANCE

SUM = "SELECT sum(balance) FROM accounts"
READ = "SELECT balance FROM accounts WHERE id = $1"
SET = "UPDATE accounts SET balance = $1 WHERE id = $2"
MAKE = "UPDATE accounts SET balance = balance + 1000 WHERE id = $1"
NOTE = "INSERT INTO transfers VALUES ($1, $2, $3, $4, $5)"
FAIL = "SELECT 1 / (id - id) FROM accounts"
DECIDE = """INSERT INTO transfers
    SELECT $1, $2, $3, 1 + balance % 11, $4 FROM accounts WHERE id = $4"""
GIVE = """UPDATE accounts SET balance = balance - (SELECT amount FROM transfers WHERE number = $1)
    WHERE id = $2"""
TAKE = """UPDATE accounts SET balance = balance + (SELECT amount FROM transfers WHERE number = $1)
    WHERE id = $2"""


class _LeftBehind(Exception):  # the client does not come back
    """The transaction is abandoned without a commit."""


class SqlOpen(SqlWorkload):
    name = "sql_open"
    tables = (
        "CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL)",
        """CREATE TABLE transfers (number integer PRIMARY KEY, source integer, target integer,
            amount integer, witness integer)""",
        f"INSERT INTO accounts SELECT n, {BALANCE} FROM generate_series(0, {ACCOUNTS - 1}) AS g(n)",
    )

    async def setup(self, service: Service) -> None:
        self.told: dict[int, int] = {}
        """The versions that clients were told of their commits."""
        self.uncertain: set[int] = set()
        self.blamed: list[Conflict] = []
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.25:
            found = await self.select(service, SUM)
            if found is not None:
                self.expect(found.rows == [(TOTAL,)], f"a sum of {found.rows} was seen")
            return

        at_once = self.chance.random() < 0.3

        async def send(database: SqlDatabase) -> Outcome:
            if at_once:
                return await self._transfer_at_once(database, number)
            transaction = await database.open()
            try:
                return await self._transfer(service, database, transaction, number)
            finally:
                transaction.release()

        asked = service.ask_sql(send)
        try:
            done = await self._sent(asked, service, number, (SerializationFailure,))
        except _LeftBehind:
            service.world.reach("an open transaction was left behind")
            return
        if isinstance(done, SerializationFailure):
            service.world.reach("the commit of an open transaction conflicted")
            if isinstance(done.conflict, Conflict) and done.conflict.changed_by is not None:
                self.blamed.append(done.conflict)
        elif isinstance(done, int):
            self.told[number] = done
        elif done.applied is Applied.UNKNOWN:
            self.uncertain.add(number)

    async def _transfer(
        self, service: Service, database: SqlDatabase, open_: OpenTransaction, number: int
    ) -> Outcome:
        chance = self.chance

        async def inside(sql: str, *parameters: Any) -> list[Any]:
            if chance.random() < 0.3:
                await trio.sleep(chance.expovariate(1.0) * self.profile.delay_seconds * 20)
            outcome = await database.inside(open_, [Statement(sql, list(parameters))], RunOptions())
            return outcome.results[0].rows

        source, target = chance.sample(range(ACCOUNTS), 2)
        witness = chance.randrange(ACCOUNTS)
        looks = chance.random() < 0.4
        """Whether it adds up all balances, and so conflicts with every other transfer."""
        await inside("SAVEPOINT a")
        if looks:
            self.expect(await inside(SUM) == [(TOTAL,)], f"{number} sees another sum at first")
        read = [(await inside(READ, account))[0][0] for account in (source, target, witness)]
        amount = amount_by(read[2])
        if chance.random() < 0.5:
            await self._make_and_take_back(inside, target)
        else:
            await database.inside(open_, self._made_and_taken_back(target), RunOptions())
        if looks:
            self.expect(await inside(SUM) == [(TOTAL,)], f"{number} has made money")
        if chance.random() < 0.3:
            await self._fail(service, database, open_, number)
            await inside("ROLLBACK TO a")
        await inside(SET, read[0] - amount, source)
        await inside(SET, read[1] + amount, target)
        await inside(NOTE, number, source, target, amount, witness)
        if looks:
            self.expect(await inside(SUM) == [(TOTAL,)], f"{number} sees another sum at last")
        if chance.random() < 0.15:
            raise _LeftBehind
        answer = StoredAnswer(b"", float("inf"), b"", b"")
        steps = database.committing(open_, RunOptions(), (_name(number), answer), str(number))
        outcome: Outcome = await run(steps)
        return Outcome(outcome.version, outcome.version)

    async def _transfer_at_once(self, database: SqlDatabase, number: int) -> Outcome:
        """Make a transfer by a list of statements, with savepoints among them."""
        chance = self.chance
        source, target = chance.sample(range(ACCOUNTS), 2)
        witness = chance.randrange(ACCOUNTS)
        statements = [
            *self._made_and_taken_back(target),
            Statement(DECIDE, [number, source, target, witness]),
            Statement(GIVE, [number, source]),
            *self._made_and_taken_back(source),
            Statement(TAKE, [number, target]),
            Statement("RELEASE b"),
            Statement(SUM),
        ]

        def render(results: list[Result], retries: int) -> tuple[bytes, bytes]:
            self.expect(results[-1].rows == [(TOTAL,)], f"the list of {number} has made money")
            return b"", b""

        once = Once(_name(number), b"", float("inf"), render)
        done = await database.transaction(statements, once=once, request_id=str(number))
        return Outcome(done.version, done.version)

    def _made_and_taken_back(self, account: int) -> list[Statement]:
        """Return statements that make money and undo that."""
        chance = self.chance
        make = Statement(MAKE, [account])
        inner = chance.choice(("RELEASE c", "ROLLBACK TO c", "SAVEPOINT c", "SAVEPOINT b"))
        listed = [Statement("SAVEPOINT b"), make, Statement("SAVEPOINT c"), make]
        if inner != "SAVEPOINT b":
            listed += [Statement(inner), make] if chance.random() < 0.5 else [Statement(inner)]
        return [*listed, Statement("ROLLBACK TO b")]

    async def _make_and_take_back(self, inside: Any, account: int) -> None:
        """Make money in nested savepoints, and undo that."""
        chance = self.chance
        await inside("SAVEPOINT b")
        for _ in range(chance.randrange(3)):
            await inside(MAKE, account)
        await inside("SAVEPOINT c")
        await inside(MAKE, account)
        await inside(chance.choice(("RELEASE c", "ROLLBACK TO c", "SAVEPOINT c")))
        if chance.random() < 0.1:
            await inside("DELETE FROM transfers")
        await inside("ROLLBACK TO b")
        if chance.random() < 0.5:
            await inside("RELEASE b")

    async def _fail(
        self, service: Service, database: SqlDatabase, open_: OpenTransaction, number: int
    ) -> None:
        """Let a step fail after it has written; then only a rollback may be accepted."""
        statements = [Statement(MAKE, [0]), Statement(NOTE, [-number, 0, 0, 0, 0]), Statement(FAIL)]
        if self.chance.random() < 0.5:
            statements[1:1] = [Statement("SAVEPOINT a"), Statement(MAKE, [1])]
        for expected in (DivisionByZero, FailedTransaction):
            try:
                await database.inside(open_, statements, RunOptions())
            except expected:
                pass
            else:
                self.problems.append(f"a step of {number} did not fail")
        if self.chance.random() < 0.5:
            try:
                await run(database.committing(open_, RunOptions()))
            except FailedTransaction:
                service.world.reach("a failed open transaction was not committed")
            else:
                self.problems.append(f"{number} was committed after it had failed")

    async def check_rows(self, service: Service) -> None:
        accounts = await self.must(service, "SELECT id, balance FROM accounts")
        transfers = await self.must(service, "SELECT * FROM transfers")
        expected = dict.fromkeys(range(ACCOUNTS), BALANCE)
        for row in transfers.rows:
            move(expected, row)
        balances: dict[int, int] = dict(accounts.rows)
        self.expect(balances == expected, f"balances {balances}, the transfers say {expected}")
        there = {row[0] for row in transfers.rows}
        self.expect(min(there, default=0) >= 0, f"a failed step left something: {there}")
        self.problems += self.book.compare(sorted(there), service)
        await self.complain(service, lambda transaction: self._answers(transaction, there))
        await self.complain(service, lambda transaction: _replayed(transaction, transfers.rows))
        await self.complain(service, lambda transaction: self._blames(transaction, transfers.rows))

    def _answers(self, transaction: Transaction, there: set[int]) -> list[str]:
        """Compare the stored answers with those that clients got, and with the transfers."""
        problems = []
        for number in {*self.told, *self.uncertain, *there}:
            answer = find_answer(transaction, _name(number), 0.0)
            version = None if answer is None else answer.version
            if (answer is not None) != (number in there):
                problems.append(f"{number} has the answer {answer}, and its transfer differs")
            elif number in self.told and version != self.told[number]:
                problems.append(f"{number} was told {self.told[number]}, its answer says {version}")
        return problems

    def _blames(self, transaction: Transaction, rows: list[Any]) -> list[str]:
        """Compare the requests that conflicts named with the transfers."""
        problems = []
        known = {str(row[0]): row for row in rows}
        for conflict in self.blamed:
            row, key = known.get(conflict.changed_by or ""), conflict.key
            if row is None or key is None:
                problems.append(f"{conflict} names a transfer that is not there")
                continue
            answer = find_answer(transaction, _name(row[0]), 0.0)
            wrote = row[1:3] if conflict.table == "accounts" else row[:1]
            if key[0] not in wrote or answer is None or answer.version != conflict.version_found:
                problems.append(f"{conflict} names {row}, whose answer is {answer}")
        return problems


def _replayed(transaction: Transaction, rows: list[Any]) -> list[str]:
    """Replay all transfers in commit order: each must decide as it did.

    Transfers of one version may be in any order.
    """
    by_version: dict[int, list[Any]] = {}
    for row in rows:
        answer = find_answer(transaction, _name(row[0]), 0.0)
        if answer is None:
            return []  # which `_answers` reports
        by_version.setdefault(answer.version, []).append(row)
    balances = dict.fromkeys(range(ACCOUNTS), BALANCE)
    for version, together in sorted(by_version.items()):
        if not _follow(balances, together):
            return [f"the transfers {together} of version {version} do not follow from {balances}"]
        for row in together:
            move(balances, row)
    return []


def _follow(balances: dict[int, int], rows: list[Any]) -> bool:
    """Return whether the rows can be transfers one after the other, in some order."""
    for at, row in enumerate(rows):
        if row[3] == amount_by(balances[row[4]]):
            after = dict(balances)
            move(after, row)
            if _follow(after, rows[:at] + rows[at + 1 :]):
                return True
    return not rows


def move(balances: dict[int, int], row: Any) -> None:
    _, source, target, amount, _ = row
    balances[source] -= amount
    balances[target] += amount


def amount_by(balance: int) -> int:
    """Return the amount of a transfer, which the balance of its witness decides."""
    return 1 + balance % 11


def _name(number: int) -> bytes:
    return b"commit %d" % number
