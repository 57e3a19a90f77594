"""A queue in SQL: its first row is taken, and new ones are put at either end, by LIMIT 1.

Such a statement reads one end of a table and leaves its scan at the first row. It depends on
nothing behind that row, and yet on there being none before it. So tickets always lie side by side,
each is taken once at most, and none is lost.

           2   3   4   5
       ▲   ▲           ▲   ▲
     first ┤           └ never taken
     minus └ DELETE        INSERT the last
     one                   plus one
"""

from __future__ import annotations

from qserver.errors import Applied
from qserver.query.sql_database import Result, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

PUT_LAST = """INSERT INTO tickets SELECT id + 1, $1 FROM tickets ORDER BY id DESC LIMIT 1"""
PUT_FIRST = """INSERT INTO tickets SELECT id - 1, $1 FROM tickets ORDER BY id LIMIT 1"""
TAKE = """DELETE FROM tickets WHERE id = (SELECT id FROM tickets ORDER BY id LIMIT 1)
    AND id < (SELECT max(id) FROM tickets) RETURNING number"""
WAITING = "SELECT id, number FROM tickets"


class SqlQueue(SqlWorkload):
    name = "sql_queue"
    tables = (
        "CREATE TABLE tickets (id integer PRIMARY KEY, number integer NOT NULL)",
        "INSERT INTO tickets VALUES (0, 0)",
    )

    async def setup(self, service: Service) -> None:
        self.taken: dict[int, int] = {}
        """The version by the number of the ticket."""
        self.uncertain = 0
        """How many may have been taken by requests whose outcome is unknown."""
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.random()
        if kind < 0.45:
            put = self.chance.choice((PUT_FIRST, PUT_LAST))
            done = await self._change(service, Statement(put, [number]), number)
            self.expect(done is None or done.affected_rows == 1, f"ticket {number} was not put")
        elif kind < 0.8:
            done = await self._change(service, Statement(TAKE), None)
            if done is not None:
                self._take(done)
        else:
            waiting = await self.select(service, WAITING)
            if waiting is not None:
                self._judge(waiting)

    async def _change(
        self, service: Service, statement: Statement, number: int | None
    ) -> Result | None:
        statements = [statement, PAUSE] if self.is_long() else [statement]
        outcome = await self.together(service, statements, number=number)
        if isinstance(outcome, TransactionResult):
            return outcome.results[0]
        if number is None and outcome.applied is Applied.UNKNOWN:
            self.uncertain += 1
        return None

    def _take(self, done: Result) -> None:
        for (number,) in done.rows:
            before = self.taken.get(number)
            self.expect(before is None, f"ticket {number} was taken at {before}, {done.version}")
            self.taken[number] = done.version

    def _judge(self, waiting: Result) -> None:
        ids = sorted(row[0] for row in waiting.rows)
        whole = bool(ids) and ids == list(range(ids[0], ids[-1] + 1))
        self.expect(whole, f"tickets at version {waiting.version} have gaps: {ids}")

    async def check_rows(self, service: Service) -> None:
        waiting = await self.must(service, WAITING)
        self._judge(waiting)
        present = [number for _, number in waiting.rows]
        both = [number for number in present if number in self.taken]
        self.expect(not both, f"tickets were taken and are still there: {both}")
        known = {*present, *self.taken}
        gone = [number for number in self.book.acknowledged if number not in known]
        lost = len(gone) > self.uncertain
        self.expect(not lost, f"{self.uncertain} may have been taken, and gone are {gone}")
        self.problems += self.book.compare([*known, *gone], service)
