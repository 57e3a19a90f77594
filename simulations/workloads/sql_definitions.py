"""Definitions in SQL: ALTER, CREATE INDEX and DROP TABLE while others insert and select.

    items    gets columns and loses and gets its index, and keeps every row
    drafts   is dropped and made again, or emptied, each time with another default: its generation
    stamp    is a view that is replaced

Plans are kept from statement to statement, and none may outlive the definition that it was made
from. So each answer is compared with its version: it has a column exactly if that version is not
older than the ALTER that added it, and a draft bears the generation that was the newest when it was
inserted. An index finds what a scan finds, and at the end all inserted rows exist.
"""

from __future__ import annotations

from qserver.errors import Applied
from qserver.query.sql_database import Result, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

VALUES = 6

INSERT = "INSERT INTO items (number, value) VALUES ($1, $2)"
CHANGE = "UPDATE items SET value = $1 WHERE value = $2"
BY_VALUE = "SELECT number FROM items WHERE value = $1"
EVERYTHING = "SELECT * FROM items"
DRAFT = "INSERT INTO drafts (number) VALUES ($1) RETURNING generation"
MAKE_DRAFTS = """CREATE TABLE drafts
    (number integer PRIMARY KEY, generation integer NOT NULL DEFAULT {})"""
NEXT_GENERATION = "ALTER TABLE drafts ALTER COLUMN generation SET DEFAULT {}"
STAMP = "CREATE OR REPLACE VIEW stamp AS SELECT {} AS number"
INDEX = "CREATE INDEX IF NOT EXISTS items_value ON items (value)"
NO_INDEX = "DROP INDEX IF EXISTS items_value"


class SqlDefinitions(SqlWorkload):
    name = "sql_definitions"
    tables = (
        "CREATE TABLE items (number integer PRIMARY KEY, value integer NOT NULL)",
        MAKE_DRAFTS.format(0),
        STAMP.format(0),
    )

    async def setup(self, service: Service) -> None:
        self.added: dict[str, int] = {}
        """Columns by the version that added them."""
        self.seen: dict[int, tuple[str, ...]] = {}
        """Columns that an answer had, by its version."""
        self.generations: dict[int, int] = {}
        """Versions of acknowledged generations."""
        self.uncertain: dict[int, None] = {}
        self.drafts: dict[int, tuple[int, int]] = {}
        """Generation and version by number."""
        self.stamps: dict[int, int] = {}
        """Versions of acknowledged stamps."""
        self.stamps_seen: dict[int, int] = {}
        """Stamps by the version at which they were seen."""
        await super().setup(service)
        self.generations[0] = self.stamps[0] = 0

    async def transaction(self, service: Service, number: int) -> None:
        kind = self.chance.random()
        value = self.chance.randrange(VALUES)
        if kind < 0.3:
            await self.execute(service, INSERT, number, value, number=number)
        elif kind < 0.4:
            await self.execute(service, CHANGE, value, self.chance.randrange(VALUES))
        elif kind < 0.6:
            await self._draft(service, number)
        elif kind < 0.72:
            await self._define(service, number)
        elif kind < 0.8:
            await self._compare_lookup(service, value)
        elif kind < 0.87:
            seen = await self.select(service, "SELECT number FROM stamp")
            if seen is not None:
                self.stamps_seen[seen.version] = seen.rows[0][0]
        else:
            everything = await self.select(service, EVERYTHING)
            if everything is not None:
                self._judge(everything)
            await self.compare_trees(service)

    async def _draft(self, service: Service, number: int) -> None:
        statements = [Statement(DRAFT, [number])]
        if self.is_long():
            statements.append(PAUSE)
        outcome = await self.together(service, statements)
        if isinstance(outcome, TransactionResult):
            ((generation,),) = outcome.results[0].rows
            self.drafts[number] = (generation, outcome.version)

    async def _define(self, service: Service, number: int) -> None:
        kind = self.chance.randrange(5)
        if kind == 0:
            await self._add_column(service, number)
        elif kind == 1:
            await self._renew_drafts(service, number)
        elif kind == 4:
            await self._renew(service, number, self.stamps, [Statement(STAMP.format(number))])
        else:
            await self.execute(service, INDEX if kind == 2 else NO_INDEX)

    async def _add_column(self, service: Service, number: int) -> None:
        sql = f"ALTER TABLE items ADD COLUMN c{number} integer NOT NULL DEFAULT {number}"
        outcome = await self.execute(service, sql)
        if isinstance(outcome, Result):
            self.added[f"c{number}"] = outcome.version

    async def _renew_drafts(self, service: Service, number: int) -> None:
        statements = [Statement("DROP TABLE drafts"), Statement(MAKE_DRAFTS.format(number))]
        if self.chance.random() < 0.5:
            statements = [Statement("TRUNCATE drafts"), Statement(NEXT_GENERATION.format(number))]
        await self._renew(service, number, self.generations, statements)

    async def _renew(
        self,
        service: Service,
        number: int,
        versions: dict[int, int],
        statements: list[Statement],
    ) -> None:
        outcome = await self.together(service, statements)
        if isinstance(outcome, TransactionResult):
            versions[number] = outcome.version
        elif outcome.applied is Applied.UNKNOWN:
            self.uncertain[number] = None

    async def _compare_lookup(self, service: Service, value: int) -> None:
        statements = [Statement(BY_VALUE, [value]), Statement(EVERYTHING)]
        outcome = await self.together(service, statements)
        if isinstance(outcome, TransactionResult):
            looked_up, scanned = outcome.results
            self._judge(scanned)
            self._judge_lookup(value, looked_up, scanned)

    def _judge_lookup(self, value: int, looked_up: Result, scanned: Result) -> None:
        found = sorted(row[0] for row in looked_up.rows)
        there = sorted(row[0] for row in scanned.rows if row[1] == value)
        self.expect(found == there, f"value {value} is in {found} by index, in {there} by scan")

    def _judge(self, everything: Result) -> None:
        before = self.seen.setdefault(everything.version, everything.columns)
        same = before == everything.columns
        self.expect(same, f"version {everything.version} has {before} and {everything.columns}")
        expected = tuple([int(name[1:]) for name in everything.columns[2:]])
        odd = [row for row in everything.rows if row[2:] != expected]
        self.expect(not odd, f"rows that do not fit {everything.columns}: {odd}")

    async def check_rows(self, service: Service) -> None:
        everything = await self.must(service, EVERYTHING)
        self._judge(everything)
        for value in range(VALUES):
            self._judge_lookup(value, await self.must(service, BY_VALUE, value), everything)
        self.problems += self.book.compare([row[0] for row in everything.rows], service)
        for version, columns in self.seen.items():
            for column, added in self.added.items():
                right = (column in columns) == (version >= added)
                self.expect(right, f"{column} was added at {added}; at {version}: {columns}")
        for version, stamp in self.stamps_seen.items():
            newest = max((made, each) for each, made in self.stamps.items() if made <= version)[1]
            right = stamp == newest or stamp in self.uncertain
            self.expect(right, f"the view at version {version} says {stamp}, not {newest}")
        await self._check_drafts(service)

    async def _check_drafts(self, service: Service) -> None:
        for number, (generation, version) in self.drafts.items():
            newest = max((made, each) for each, made in self.generations.items() if made < version)
            self.expect(
                generation == newest[1] or generation in self.uncertain,
                f"draft {number} of version {version} is of generation {generation},"
                f" not {newest[1]}",
            )
        ((last,),) = (await self.must(service, DRAFT, 0)).rows
        rows: dict[int, int] = dict(
            (await self.must(service, "SELECT number, generation FROM drafts")).rows
        )
        strange = {number: each for number, each in rows.items() if each != last}
        self.expect(not strange, f"drafts of other generations than {last}: {strange}")
        lost = [
            number
            for number, (generation, _) in self.drafts.items()
            if generation == last and number not in rows
        ]
        self.expect(not lost, f"drafts of the last generation are lost: {lost}")
