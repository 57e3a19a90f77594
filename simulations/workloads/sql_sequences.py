"""Sequences in SQL, under every statement that can change them.

    tickets     nextval, one by one and hundreds at a time, beside ALTER SEQUENCE
    laps        the same beside RESTART and setval, each to a height that no other has
    visits      a table with SERIAL columns: a transaction finds what it inserted
    others      made, filled and numbered by one transaction

A third of all redefinitions are in a transaction that fails at its end, and must leave everything
as it was: if RESTART did not fail with it, a value comes twice.
"""

from __future__ import annotations

from typing import Any, Final

from qserver.errors import Applied, DivisionByZero, QserverError
from qserver.query.sql_database import Result, Statement, TransactionResult
from qserver.storage.transaction import Transaction
from qserver.storage.writes import SEQUENCES_TREE
from qserver.values.relations import Sequence
from simulations.checkers.numbers import HEIGHT, NumbersChecker
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

FAIL: Final = Statement("SELECT 1 / (SELECT count(*) FROM generate_series(1, 0))")

DRAW: Final = "SELECT nextval('{name}') FROM generate_series(1, {count})"
VISIT: Final = (
    "INSERT INTO visits (number) VALUES ($1) RETURNING id, second, third, fourth",
    "SELECT id FROM visits WHERE number = $1",
    "SELECT currval('visits_id_seq') FROM visits WHERE number = $1",
)


BESIDES: Final = ("second", "third", "fourth")
"""The columns of a visit that are numbered beside its id: a row draws from four sequences."""


class SqlSequences(SqlWorkload):
    name = "sql_sequences"
    tables = (
        "CREATE SEQUENCE tickets",
        "CREATE SEQUENCE laps",
        "CREATE TABLE visits (id serial PRIMARY KEY, number integer NOT NULL UNIQUE,"
        " second serial, third serial, fourth serial)",
    )

    async def setup(self, service: Service) -> None:
        self.tickets = NumbersChecker("tickets")
        self.laps = NumbersChecker("laps")
        self.visits = NumbersChecker("visits")
        self.besides = [NumbersChecker(f"{each} of visits") for each in BESIDES]
        self.ids: dict[int, int] = {}
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        ways = {
            self._draw: 8,
            self._visit: 6,
            self._redefine: 3,
            self._begin_lap: 3,
            self._fail: 3,
            self._make_and_fill: 2,
        }
        (way,) = self.chance.choices(list(ways), list(ways.values()))
        await way(service, number)

    # --- drawing ---

    async def _draw(self, service: Service, number: int) -> None:
        checker = self.chance.choice((self.tickets, self.laps))
        await self._draw_from(service, checker, self.chance.choice((1, 1, 3, 40, 300)), number)

    async def _draw_from(
        self, service: Service, checker: NumbersChecker, count: int, number: int
    ) -> None:
        sql = DRAW.format(name=checker.name, count=count)
        asked = checker.ask()
        result = await self.select(service, sql)
        if result is not None:
            numbers = [row[0] for row in result.rows]
            self.expect(len(numbers) == count, f"{count} numbers were asked for, not {numbers}")
            self.problems += checker.answer(asked, numbers, number)

    async def _visit(self, service: Service, number: int) -> None:
        statements = [Statement(sql, [number]) for sql in VISIT]
        if self.is_long():
            statements.insert(1, PAUSE)
        asked = self.visits.ask()
        asked_besides = [each.ask() for each in self.besides]
        done = await self.together(service, statements, number=number)
        if isinstance(done, TransactionResult):
            found = [result.rows for result in done.results if result.columns != ("count",)]
            id_given, *besides = found[0][0]
            alike = found[1:] == [[(id_given,)]] * 2
            self.expect(alike, f"one transaction found its row as {found}")
            self.ids[number] = id_given
            self.problems += self.visits.answer(asked, [id_given], number)
            for checker, one, given in zip(self.besides, asked_besides, besides, strict=True):
                self.problems += checker.answer(one, [given], number)

    # --- defining ---

    def _definition(self, number: int) -> str:
        """Return a definition that counts on upward from where the sequence is."""
        return self.chance.choice(
            (
                f"ALTER SEQUENCE tickets INCREMENT BY {self.chance.randint(1, 4)}",
                f"ALTER SEQUENCE tickets MAXVALUE {HEIGHT * 100 + number}",
                f"ALTER SEQUENCE tickets CACHE {self.chance.randint(1, 300)}",
                "ALTER SEQUENCE tickets MINVALUE 1",
            )
        )

    async def _redefine(self, service: Service, number: int) -> None:
        await self._send(service, [Statement(self._definition(number))])

    async def _begin_lap(self, service: Service, number: int) -> None:
        """Begin a lap: an answered lap is beyond earlier ones, concurrent ones are in any order."""
        first = number * HEIGHT
        if self.chance.random() < 0.5:
            statements = [Statement(f"ALTER SEQUENCE laps RESTART WITH {first}")]
        else:
            statements = [Statement(f"SELECT setval('laps', {first}, false)")]
        if self.is_long():
            statements.append(PAUSE)
        self.laps.ask_epoch(number)
        done = await self._send(service, statements)
        if isinstance(done, TransactionResult):
            self.laps.answer_epoch(number)

    async def _fail(self, service: Service, number: int) -> None:
        """Run a transaction that redefines what others use, and fails."""
        statements = [
            Statement(
                self.chance.choice(
                    (
                        f"ALTER SEQUENCE laps RESTART WITH {number * HEIGHT}",
                        "ALTER SEQUENCE tickets RESTART",
                        "TRUNCATE visits RESTART IDENTITY",
                        self._definition(number),
                    )
                )
            ),
            Statement("SELECT nextval('tickets'), nextval('laps'), nextval('visits_id_seq')"),
            FAIL,
        ]
        if self.is_long():
            statements.insert(1, PAUSE)
        self.laps.ask_epoch(number)
        done = await self.together(service, statements, may=(DivisionByZero,))
        self.expect(isinstance(done, QserverError), f"a transaction did not fail: {done}")
        if isinstance(done, DivisionByZero):
            service.world.reach("a transaction that redefined a sequence failed")
        if isinstance(done, QserverError) and done.applied is not Applied.UNKNOWN:
            self.laps.answer_epoch(number, failed=True)

    async def _make_and_fill(self, service: Service, number: int) -> None:
        """Define and fill a table in one transaction: its rows are numbered from 1."""
        rows = self.chance.choice((1, 5, 200))
        name = f"other_{number}"
        statements = [
            Statement(f"CREATE TABLE {name} (id serial PRIMARY KEY, a integer)"),
            Statement(f"INSERT INTO {name} (a) SELECT g FROM generate_series(1, {rows}) AS g"),
            Statement(f"ALTER TABLE {name} ADD COLUMN b integer GENERATED ALWAYS AS IDENTITY"),
            Statement(f"SELECT count(DISTINCT id), min(id), max(id), max(b) FROM {name}"),
        ]
        drops = self.chance.random() < 0.5
        if drops:
            statements.append(Statement(f"DROP TABLE {name}"))
        done = await self._send(service, statements)
        if isinstance(done, TransactionResult):
            found = done.results[3].rows
            self.expect(found == [(rows, 1, rows, rows)], f"{rows} new rows have {found}")
            if not drops:
                again = await self.select(service, f"SELECT nextval('{name}_id_seq')")
                if again is not None:  # a restart in between makes a gap
                    ((following,),) = again.rows
                    self.expect(following > rows, f"behind {rows} new rows came {following}")

    async def _send(
        self, service: Service, statements: list[Statement]
    ) -> TransactionResult | QserverError:
        done = await self.together(service, statements)
        if isinstance(done, TransactionResult):
            service.world.reach("a sequence was redefined while others drew from it")
        return done

    # --- at the end ---

    async def check_rows(self, service: Service) -> None:
        await self.complain(service, state_problems)
        for checker in (self.tickets, self.laps):
            await self._draw_from(service, checker, 1, -1)
        asked = self.visits.ask()
        result = await self.must(service, "SELECT nextval('visits_id_seq')")
        self.problems += self.visits.answer(asked, _column(result), -1)
        rows = (await self.must(service, "SELECT id, number FROM visits")).rows
        for id_there, number in rows:
            told = self.ids.get(number, id_there)
            self.expect(told == id_there, f"{number} was told {told}, and has {id_there}")
        self.problems += self.book.compare([number for _, number in rows], service)


def _column(result: Result) -> list[Any]:
    return [row[0] for row in result.rows]


def state_problems(transaction: Transaction) -> list[str]:
    """Return states that no sequence names, and sequences whose state is missing."""
    named = {
        each.state for each in transaction.catalog.others.values() if isinstance(each, Sequence)
    }
    there = {
        number for keys, _ in transaction.scan(SEQUENCES_TREE) for (number,) in keys if number > 0
    }
    return [] if there == named else [f"sequences have the states {named}, and there are {there}"]
