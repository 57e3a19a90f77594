"""Bounds in SQL: rows keep their distance, checked by ranges that end exactly where it matters.

    line 1   ──0─────3──────7───10──────────►     two spots of a line are at least 3 apart
               ▲     │          │
               └─────┘ anchor   └ anchor NULL     an anchor of another spot stays

Only the footprint of the reads keeps this true. A new spot asks whether there is one within 2 of
it: by bounds that are part of the range or not, forward or backward, with all rows of the range or
only the first. So a spot on the very bound is a conflict, and so is the deletion of the row at
which a LIMIT has stopped. Anchors are found by a non-unique index, and change from and to NULL.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from qserver.errors import Applied
from qserver.query.sql_database import Result, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

LINES: Final = 2
LENGTH: Final = 36
DISTANCE: Final = 3
NOWHERE: Final = 10_000

NEW: Final = "INSERT INTO spots SELECT $1::integer, $2::integer, NULL, $3::integer WHERE "
INCLUSIVE: Final = NEW + (
    "NOT EXISTS (SELECT 1 FROM spots WHERE line = $1 AND spot >= $4 AND spot <= $5)"
)
EXCLUSIVE: Final = NEW + (
    "(SELECT count(*) FROM spots WHERE line = $1 AND spot > $4 - 1 AND spot < $5 + 1) = 0"
)
BACKWARD: Final = NEW + (
    "coalesce((SELECT spot FROM spots WHERE line = $1 AND spot <= $5 ORDER BY spot DESC LIMIT 1),"
    f" -{NOWHERE}) < $4"
)
FORWARD: Final = NEW + (
    "coalesce((SELECT spot FROM spots WHERE line = $1 AND spot >= $4 ORDER BY spot LIMIT 1),"
    f" {NOWHERE}) > $5"
)
NEW_SPOTS: Final = (INCLUSIVE, EXCLUSIVE, BACKWARD, FORWARD)

BEHIND_LAST: Final = """INSERT INTO spots SELECT line, spot + 3, spot, $2 FROM spots
    WHERE line = $1 ORDER BY spot DESC LIMIT 1"""
BEFORE_FIRST: Final = """INSERT INTO spots SELECT line, spot - 3, spot, $2 FROM spots
    WHERE line = $1 ORDER BY spot LIMIT 1"""
SECOND_LAST: Final = """INSERT INTO spots SELECT $1::integer, max(spot) + 3, min(spot), $2::integer
    FROM (SELECT spot FROM spots WHERE line = $1 ORDER BY spot DESC LIMIT 2) AS two
    HAVING count(*) = 2"""
ANCHORED: Final = (BEHIND_LAST, BEFORE_FIRST, SECOND_LAST)

DELETE: Final = """DELETE FROM spots WHERE line = $1 AND spot = $2 AND NOT EXISTS
    (SELECT 1 FROM spots AS other WHERE other.line = $1 AND other.anchor = $2) RETURNING number"""
LET_GO: Final = "UPDATE spots SET anchor = NULL WHERE line = $1 AND anchor = $2"
HOLD_ON: Final = """UPDATE spots SET anchor =
    (SELECT other.spot FROM spots AS other WHERE other.line = $1 AND other.spot < $2
     ORDER BY other.spot DESC LIMIT 1)
    WHERE line = $1 AND spot = $2 AND anchor IS NULL"""

ALL: Final = "SELECT line, spot, anchor, number FROM spots"
BETWEEN: Final = """SELECT spot FROM spots WHERE line = $1 AND spot > $2 AND spot <= $3
    ORDER BY spot DESC"""
LAST_TWO: Final = """SELECT spot FROM spots WHERE line = $1 AND spot >= $2 AND spot < $3
    ORDER BY spot DESC LIMIT 2"""
HELD_BY: Final = "SELECT spot FROM spots WHERE line = $1 AND anchor = $2"

Spot = tuple[int, int, int | None, int]


class SqlBounds(SqlWorkload):
    name = "sql_bounds"
    tables = (
        """CREATE TABLE spots (line integer, spot integer, anchor integer,
            number integer NOT NULL, PRIMARY KEY (line, spot))""",
        "CREATE INDEX spots_anchor ON spots (line, anchor)",
        f"""INSERT INTO spots SELECT line, spot * 5, NULL, -(line * 100 + spot)
            FROM generate_series(0, {LINES - 1}) AS l(line), generate_series(1, 6) AS s(spot)""",
    )

    async def setup(self, service: Service) -> None:
        self.inserted: dict[int, int] = {}
        """The version by the number of a spot."""
        self.deleted: dict[int, int] = {}
        self.uncertain = 0
        """How many may have been deleted by requests whose outcome is unknown."""
        # Compiling a statement takes as long as many steps of a run, so each run has only some.
        self.new_spots = self.chance.sample(NEW_SPOTS, 2)
        self.anchored = self.chance.sample(ANCHORED, 2)
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.random()
        line, spot = self.chance.randrange(LINES), self.chance.randrange(LENGTH)
        if kind < 0.35:
            near = [line, spot, number, spot - DISTANCE + 1, spot + DISTANCE - 1]
            await self._put(service, Statement(self.chance.choice(self.new_spots), near), number)
        elif kind < 0.55:
            anchored = Statement(self.chance.choice(self.anchored), [line, number])
            await self._put(service, anchored, number)
        elif kind < 0.72:
            await self._delete(service, line)
        elif kind < 0.82:
            await self._change_anchor(service, line, spot)
        else:
            await self._compare(service, line, spot)

    async def _put(self, service: Service, statement: Statement, number: int) -> None:
        statements = [statement, PAUSE] if self.is_long() else [statement]
        outcome = await self.together(service, statements)
        if isinstance(outcome, TransactionResult):
            if outcome.results[0].affected_rows:
                self.inserted[number] = outcome.version
                service.world.reach("a row came to lie where a range had been found empty")
        else:
            self.book.note(number, outcome)

    async def _delete(self, service: Service, line: int) -> None:
        """Delete an existing spot, at either end or anywhere."""
        found = await self.select(service, ALL)
        spots = sorted(row[1] for row in found.rows if row[0] == line) if found else []
        if not spots:
            return
        spot = self.chance.choice((spots[0], spots[-1], spots[-1], self.chance.choice(spots)))
        statements = [Statement(DELETE, [line, spot])]
        if self.is_long():
            statements.append(PAUSE)
        outcome = await self.together(service, statements)
        if isinstance(outcome, TransactionResult):
            for (number,) in outcome.results[0].rows:
                before = self.deleted.get(number)
                self.expect(before is None, f"spot {number} was deleted at {before} already")
                self.deleted[number] = outcome.version
        elif outcome.applied is Applied.UNKNOWN:
            self.uncertain += 1

    async def _change_anchor(self, service: Service, line: int, spot: int) -> None:
        if self.chance.random() < 0.5:
            await self.execute(service, LET_GO, line, spot)
            return
        found = await self.select(service, ALL)
        free = [row[1] for row in found.rows if row[0] == line and row[2] is None] if found else []
        if free:
            done = await self.execute(service, HOLD_ON, line, self.chance.choice(free))
            if isinstance(done, Result) and done.affected_rows:
                service.world.reach("an indexed column changed from NULL")

    async def _compare(self, service: Service, line: int, spot: int) -> None:
        """Compare what ranges and the index find with all rows, in one version."""
        high = spot + self.chance.randrange(20)
        statements = [
            Statement(ALL),
            Statement(BETWEEN, [line, spot, high]),
            Statement(LAST_TWO, [line, spot, high]),
            Statement(HELD_BY, [line, spot]),
        ]
        outcome = await self.together(service, statements)
        if not isinstance(outcome, TransactionResult):
            return
        everything, between, last_two, held = outcome.results
        self._judge(everything)
        rows = [row for row in everything.rows if row[0] == line]
        spots = sorted(row[1] for row in rows)
        for name, found, expected in (
            (
                "between",
                [row[0] for row in between.rows],
                [s for s in reversed(spots) if spot < s <= high],
            ),
            (
                "the last two",
                [r[0] for r in last_two.rows],
                [s for s in spots if spot <= s < high][:-3:-1],
            ),
            (
                "held by",
                sorted(r[0] for r in held.rows),
                sorted(r[1] for r in rows if r[2] == spot),
            ),
        ):
            self.expect(
                found == expected,
                f"{name} {spot} and {high} at version {outcome.version}: {found}, not {expected}",
            )

    def _judge(self, everything: Result) -> None:
        spots: dict[int, list[int]] = {}
        for line, spot, _, _ in sorted(everything.rows):
            spots.setdefault(line, []).append(spot)
        for line, of_line in spots.items():
            near = [(one, other) for one, other in pairwise(of_line) if other - one < DISTANCE]
            self.expect(not near, f"too near on line {line}, version {everything.version}: {near}")
        there = {(line, spot) for line, spot, _, _ in everything.rows}
        adrift = [
            row for row in everything.rows if row[2] is not None and (row[0], row[2]) not in there
        ]
        self.expect(not adrift, f"anchors are gone at version {everything.version}: {adrift}")

    async def check_rows(self, service: Service) -> None:
        everything = await self.must(service, ALL)
        self._judge(everything)
        for line in range(LINES):
            for spot in {row[1] for row in everything.rows}:
                held = sorted(
                    row[0] for row in (await self.must(service, HELD_BY, line, spot)).rows
                )
                there = sorted(r[1] for r in everything.rows if r[0] == line and r[2] == spot)
                self.expect(held == there, f"held by {spot} are {held}, not {there}")
        present = {row[3] for row in everything.rows}
        both = [number for number in present if number in self.deleted]
        self.expect(not both, f"spots were deleted and are still there: {both}")
        gone = [n for n in self.inserted if n not in present and n not in self.deleted]
        lost = len(gone) > self.uncertain
        self.expect(not lost, f"{self.uncertain} may have been deleted, and gone are {gone}")
        self.problems += self.book.compare(present, service)
