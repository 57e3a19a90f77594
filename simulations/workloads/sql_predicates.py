"""Predicates in SQL: statements that change one row depending on which other rows exist.

    doctors    one may go off call if two are on call in that shift   write skew
    bookings   a room is booked if no booking overlaps                phantoms in an index
    entries    a group gets one more if it has fewer than four        phantoms in a count
    floors     the next is one higher than the highest                phantoms behind the last

Each is one statement with a subquery. The subquery reads a predicate and not a row, and it must
still hold when the statement commits.
"""

from __future__ import annotations

from typing import Final

from qserver.query.sql_database import Result, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

SHIFTS = 2
DOCTORS = 6
ROOMS = 2
GROUP_KEYS = 1_000_000
GROUP_MOST = 4

LEAVE = """UPDATE doctors SET on_call = false WHERE id = $1
    AND (SELECT count(*) FROM doctors WHERE shift = $2 AND on_call) >= 2"""
RETURN = "UPDATE doctors SET on_call = true WHERE id = $1"
BOOK = """INSERT INTO bookings SELECT $1, $2, $3, $4 WHERE NOT EXISTS
    (SELECT 1 FROM bookings WHERE room = $2 AND start < $4 AND stop > $3)"""
ENTER = f"""INSERT INTO entries SELECT $1
    WHERE (SELECT count(*) FROM entries WHERE id >= $2 AND id < $3) < {GROUP_MOST}"""
BUILD = "INSERT INTO floors SELECT $1, coalesce(max(height), 0) + 1 FROM floors"

WRONG: Final = {
    "a shift without a doctor": """SELECT shift FROM doctors GROUP BY shift
        HAVING count(*) FILTER (WHERE on_call) = 0""",
    "bookings that overlap": """SELECT a.number, b.number FROM bookings a JOIN bookings b
        ON a.room = b.room AND a.number < b.number AND a.start < b.stop AND b.start < a.stop""",
    "a group that is too large": f"""SELECT id / {GROUP_KEYS} FROM entries
        GROUP BY id / {GROUP_KEYS} HAVING count(*) > {GROUP_MOST}""",
    "two floors at one height": """SELECT height FROM floors
        GROUP BY height HAVING count(*) > 1""",
}
"""Queries that must find nothing."""


class SqlPredicates(SqlWorkload):
    name = "sql_predicates"
    tables = (
        "CREATE TABLE doctors (id integer PRIMARY KEY, shift integer, on_call boolean)",
        "CREATE INDEX doctors_of_shift ON doctors (shift)",
        f"""INSERT INTO doctors SELECT n, n % {SHIFTS}, true
            FROM generate_series(0, {DOCTORS - 1}) AS g(n)""",
        """CREATE TABLE bookings (number integer PRIMARY KEY, room integer NOT NULL,
            start integer NOT NULL, stop integer NOT NULL)""",
        "CREATE INDEX bookings_of_room ON bookings (room, start)",
        "CREATE TABLE entries (id integer PRIMARY KEY)",
        "CREATE TABLE floors (number integer PRIMARY KEY, height integer)",
        "CREATE INDEX floors_by_height ON floors (height)",
    )

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.random()
        doctor = self.chance.randrange(DOCTORS)
        if kind < 0.3:
            await self._change(service, Statement(LEAVE, [doctor, doctor % SHIFTS]))
        elif kind < 0.45:
            await self._change(service, Statement(RETURN, [doctor]))
        elif kind < 0.6:
            start = self.chance.randrange(60)
            room, stop = self.chance.randrange(ROOMS), start + self.chance.randrange(1, 8)
            await self._change(service, Statement(BOOK, [number, room, start, stop]), number)
        elif kind < 0.7:
            await self._change(service, Statement(BUILD, [number]), number)
        elif kind < 0.87:
            step = (number - 1) % self.profile.transactions_per_client
            low = step // 4 * GROUP_KEYS
            statement = Statement(ENTER, [low + number, low, low + GROUP_KEYS])
            await self._change(service, statement, number)
        else:
            await self._look(service, self.chance.choice(list(WRONG)))

    async def _change(
        self, service: Service, statement: Statement, number: int | None = None
    ) -> None:
        statements = [PAUSE, statement] if self.is_long() else [statement]
        outcome = await self.together(service, statements, number=number)
        if number is None or not isinstance(outcome, TransactionResult):
            return
        if not outcome.results[-1].affected_rows:
            del self.book.acknowledged[number]
            self.book.refused[number] = None

    async def _look(self, service: Service, what: str) -> None:
        found = await self.select(service, WRONG[what])
        if found is not None:
            self._judge(what, found)

    def _judge(self, what: str, found: Result) -> None:
        self.expect(not found.rows, f"{what} at version {found.version}: {found.rows}")

    async def check_rows(self, service: Service) -> None:
        for what, query in WRONG.items():
            self._judge(what, await self.must(service, query))
        bookings = await self.must(service, "SELECT number FROM bookings")
        entries = await self.must(service, f"SELECT id % {GROUP_KEYS} FROM entries")
        floors = await self.must(service, "SELECT number FROM floors")
        numbers = [row[0] for row in bookings.rows + entries.rows + floors.rows]
        self.problems += self.book.compare(numbers, service)
