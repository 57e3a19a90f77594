"""Keys in SQL: clients insert the same key at once, count on one row, or shift a unique key.

Clients go through the same names in step, so most inserts are races. Of the clients that want one
name, by PRIMARY KEY or by UNIQUE, exactly one gets it, and a refusal is always for an existing row.
INSERT … ON CONFLICT DO UPDATE counts exactly. A new seat at a position shifts all behind it by one,
in one UPDATE of a unique column: positions are always 1, 2, 3 … without a gap.
"""

from __future__ import annotations

from qserver.errors import Applied, UniqueViolation
from qserver.query.sql_database import Result, Statement
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

COUNTERS = 2
FIRST_SEATS = 3

CLAIM = "INSERT INTO claims VALUES ($1, $2, $3)"
COUNT = """INSERT INTO counters VALUES ($1, 1)
    ON CONFLICT (id) DO UPDATE SET hits = counters.hits + 1 RETURNING hits"""
SHIFT = "UPDATE seats SET position = position + 1 WHERE position >= $1"
SIT = "INSERT INTO seats VALUES ($1, $2)"
SEATS = "SELECT number, position FROM seats"
SEAT = "SELECT number FROM seats WHERE position = $1"


class SqlKeys(SqlWorkload):
    name = "sql_keys"
    tables = (
        "CREATE TABLE claims (name integer PRIMARY KEY, badge integer UNIQUE, number integer)",
        "CREATE TABLE counters (id integer PRIMARY KEY, hits integer NOT NULL)",
        "CREATE TABLE seats (number integer PRIMARY KEY, position integer NOT NULL UNIQUE)",
        f"INSERT INTO seats SELECT -n, n FROM generate_series(1, {FIRST_SEATS}) AS g(n)",
    )

    async def setup(self, service: Service) -> None:
        self.winners: dict[tuple[int, int], list[int]] = {}
        self.taken: dict[tuple[int, int], int] = {}
        """Names that were refused to a client because they were taken."""
        self.counted: dict[int, list[int]] = {counter: [] for counter in range(COUNTERS)}
        self.uncertain = dict.fromkeys(range(COUNTERS), 0)
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.random()
        if kind < 0.45:
            await self._claim(service, number)
        elif kind < 0.7:
            await self._count(service)
        elif kind < 0.9:
            await self._sit(service, number)
        else:
            await self.compare_trees(service)
            found = await self.select(service, SEATS)
            if found is not None:
                self._judge_seats(found)

    async def _claim(self, service: Service, number: int) -> None:
        step = (number - 1) % self.profile.transactions_per_client
        wanted = (self.chance.randrange(2), step // 2)
        name, badge = (step // 2, number) if wanted[0] == 0 else (-number, -1 - step // 2)
        outcome = await self.execute(service, CLAIM, name, badge, number, may=(UniqueViolation,))
        if isinstance(outcome, Result):
            self.winners.setdefault(wanted, []).append(number)
        elif isinstance(outcome, UniqueViolation):
            self.taken[wanted] = number

    async def _count(self, service: Service) -> None:
        counter = self.chance.randrange(COUNTERS)
        outcome = await self.execute(service, COUNT, counter)
        if isinstance(outcome, Result):
            ((hits,),) = outcome.rows
            self.expect(hits not in self.counted[counter], f"two were told that they are {hits}.")
            self.counted[counter].append(hits)
        elif outcome.applied is Applied.UNKNOWN:
            self.uncertain[counter] += 1

    async def _sit(self, service: Service, number: int) -> None:
        position = self.chance.randrange(1, FIRST_SEATS + 2)
        statements = [Statement(SHIFT, [position]), Statement(SIT, [number, position])]
        if self.is_long():
            statements.insert(1, PAUSE)
        await self.together(service, statements, number=number)

    def _judge_seats(self, seats: Result) -> None:
        positions = sorted(position for _, position in seats.rows)
        whole = positions == list(range(1, len(positions) + 1))
        self.expect(whole, f"positions at version {seats.version} are {positions}")

    async def check_rows(self, service: Service) -> None:
        await self._check_claims(service)
        counters: dict[int, int] = dict(
            (await self.must(service, "SELECT id, hits FROM counters")).rows
        )
        for counter, told in self.counted.items():
            hits, most = counters.get(counter, 0), len(told) + self.uncertain[counter]
            right = len(told) <= hits <= most and max(told, default=0) <= hits
            self.expect(right, f"counter {counter} is {hits}, not {len(told)} to {most}")
        seats = await self.must(service, SEATS)
        self._judge_seats(seats)
        for number, position in seats.rows:
            found = (await self.must(service, SEAT, position)).rows
            self.expect(found == [(number,)], f"seat {position} has {found}, not {number}")
        self.problems += self.book.compare([row[0] for row in seats.rows], service)

    async def _check_claims(self, service: Service) -> None:
        holders = {}
        for name, badge, number in (await self.must(service, "SELECT * FROM claims")).rows:
            holders[(0, name) if name >= 0 else (1, -1 - badge)] = number
        for wanted, numbers in self.winners.items():
            only = holders.get(wanted)
            self.expect([only] == numbers, f"{numbers} were told they have {wanted}, {only} has")
        for wanted, number in self.taken.items():
            self.expect(wanted in holders, f"{number} was refused {wanted}, and nobody has it")
