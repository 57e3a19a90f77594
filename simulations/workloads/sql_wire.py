"""A bank over PostgreSQL's protocol, whose connections break anywhere.

A transfer is one Query with several statements, several Queries between BEGIN and COMMIT, or
messages up to one Sync. A connection may break behind any byte, on the way there or back. What was
acknowledged stays. What broke before its commit was sent has left nothing, and what broke behind it
is there as a whole or not at all. Sessions that are gone hold no transaction, no memory and no use
of the database. A portal that is read in parts shows one version.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from qserver.errors import LogFailed, OutcomeUnknown, QserverError, SessionEnded
from qserver.pgwire.problems import code_of
from simulations.service import Service
from simulations.web.front import Front
from simulations.wire import LEAVE, SYNC, Answers, Cut, Pipe, connected, executed, query
from simulations.workloads.sql_bank import ACCOUNTS, TOTAL, SqlBank

UNKNOWN = frozenset(code_of(error("")) for error in (OutcomeUnknown, LogFailed))
INTERNAL = "XX000"
LONGEST = 1200
READ = "SELECT balance FROM accounts ORDER BY id"
MOVE = "UPDATE accounts SET balance = balance + {} WHERE id = {}"
NOTE = "INSERT INTO ledger (number, source, target, amount) VALUES ({}, {}, {}, {})"


class Way(Enum):
    ONE_QUERY = "one Query, a transaction by itself"
    ONE_BLOCK = "one Query with BEGIN and COMMIT"
    QUERIES = "a Query each"
    MESSAGES = "messages up to one Sync"


class SqlWire(SqlBank):
    name = "sql_wire"

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.3:
            await self._look(service)
            return
        source, target = self.chance.sample(range(ACCOUNTS), 2)
        amount = self.chance.randrange(1, 80)
        statements = [
            MOVE.format(amount, target),
            MOVE.format(-amount, source),
            NOTE.format(number, source, target, amount),
        ]
        way = self.chance.choice(list(Way))

        async def send(front: Front) -> None:
            error = await self._transferred(service, front, statements, way)
            if error is not None:
                raise error

        try:
            await service.repeat(send)
        except QserverError as error:
            self.book.note(number, error)
        else:
            self.book.note(number, None)

    async def _transferred(
        self, service: Service, front: Front, statements: list[str], way: Way
    ) -> QserverError | None:
        """Move money; return why that failed, or may have."""
        world, pipe, sent = service.world, None, False
        try:
            pipe = await connected(front, self.chance, LONGEST)
            if way is Way.QUERIES:
                for each in ("BEGIN", *statements):
                    pipe.send(query(each))
                    failed = self._failed(await pipe.answers())
                    if failed is not None:
                        pipe.send(query("ROLLBACK"))
                        await pipe.answers()
                        return failed
                last = query("COMMIT")
            elif way is Way.MESSAGES:
                last = b"".join([executed(each) for each in statements]) + SYNC
            else:
                block = ["BEGIN", *statements, "COMMIT"] if way is Way.ONE_BLOCK else statements
                last = query("; ".join(block))
            sent = True
            pipe.send(last)
            return self._failed(await pipe.answers())
        except Cut:
            if not sent:
                world.reach("a session was cut before its commit")
                return SessionEnded("the connection broke")
            world.reach("a session was cut behind its commit")
            return OutcomeUnknown("the connection broke")
        finally:
            if pipe is not None:
                self._leave(pipe)

    def _failed(self, answers: Answers) -> QserverError | None:
        if answers.code is None:
            return None
        self.expect(answers.code != INTERNAL, "a session met an internal error")
        error = OutcomeUnknown if answers.code in UNKNOWN else SessionEnded
        return error(f"the server said {answers.code}")

    def _leave(self, pipe: Pipe) -> None:
        """Say so, or not: the server has to notice by itself."""
        try:
            if self.chance.random() < 0.5:
                pipe.send(LEAVE)
        except Cut:
            pass
        pipe.close()

    async def check_rows(self, service: Service) -> None:
        await super().check_rows(service)
        held = await service.repeat(_transactions_held)
        self.expect(not held, f"sessions that are gone hold transactions: {held}")

    async def _look(self, service: Service) -> None:
        limits = [self.chance.randrange(1, ACCOUNTS) for _ in range(2)] + [0]

        async def send(front: Front) -> None:
            pipe = await connected(front, self.chance, LONGEST)
            try:
                pipe.send(executed(READ, (), limits) + SYNC)
                answers = await pipe.answers()
            finally:
                self._leave(pipe)
            if self._failed(answers) is None:
                if answers.parts:
                    service.world.reach("a portal was read in parts")
                found = sum(int(row[0] or 0) for row in answers.rows)
                self.expect(found == TOTAL, f"the parts of a portal add up to {found}")

        try:
            await service.repeat(send)
        except Cut:
            service.world.reach("a session was cut while it read")
        except QserverError as error:
            self._judge_error(service, error, (SessionEnded,))


async def _transactions_held(front: Front) -> Any:
    return front.transactions_held()
