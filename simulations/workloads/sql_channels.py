"""NOTIFY: each transaction says its number aloud, and listeners note what they hear.

Every transaction that says something also takes the next place of one counter, and writes both
down; so the places are the order of commits. What a listener has heard must be a run of that list
without a gap: nothing of a transaction that has failed, nothing lost or twice, nothing out of
order, also if the engine has restarted in between. Who is told that its transaction is committed
was heard before that by all who listen. A listener ends with its process.
"""

from __future__ import annotations

from qserver.engine.channels import Listener
from qserver.engine.database import Database
from qserver.engine.gateway import Outcome
from qserver.errors import DatabaseUnavailable, DivisionByZero
from qserver.query.sql_database import SqlDatabase, Statement, TransactionResult
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

CHANNEL = "numbers"
PLACE = Statement("UPDATE counter SET n = n + 1")
WRITE = "INSERT INTO said SELECT n, $1 FROM counter"
SAY = (f"NOTIFY {CHANNEL}, '{{0}}'", f"SELECT pg_notify('{CHANNEL}', '{{0}}')")
FAIL = Statement("SELECT 1 / (n - n) FROM counter")


class Hearing:
    """A listener to one database, and what it has heard."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.heard: list[int] = []
        self.versions: list[int] = []
        self.listener = Listener(self._hear)
        self.since = database.snapshots.take(newest=True)
        self.listener.listen(database.channels, frozenset({CHANNEL}))

    def _hear(self) -> None:
        while (told := self.listener.take()) is not None:
            self.heard.append(int(told.payload))
            self.versions.append(told.version)

    def must_have_heard(self, service: Service, version: int) -> bool:
        """Whether it listens to the process that has acknowledged a version, and that is new."""
        if self.database is not service._database:  # that may not know yet that it was replaced
            return False
        return (
            self.listener.ended is None and self.since is not None and version > self.since.version
        )


class SqlChannels(SqlWorkload):
    name = "sql_channels"
    tables = (
        "CREATE TABLE counter (id integer PRIMARY KEY, n integer NOT NULL)",
        "CREATE TABLE said (place integer PRIMARY KEY, number integer NOT NULL UNIQUE)",
        "INSERT INTO counter VALUES (1, 0)",
    )

    async def setup(self, service: Service) -> None:
        self.hearings: list[Hearing] = []
        await super().setup(service)

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.3:
            await self._listen(service)
            return
        say = Statement(self.chance.choice(SAY).format(number))
        statements = [PLACE, Statement(WRITE, [number])]
        statements.insert(self.chance.randrange(3), say)
        if self.is_long():
            statements.insert(1, PAUSE)
        if self.chance.random() < 0.2:
            statements.append(FAIL)
        done = await self.together(service, statements, number=number, may=(DivisionByZero,))
        if isinstance(done, TransactionResult):
            for each in self.hearings:
                if each.must_have_heard(service, done.version):
                    self.expect(number in each.heard, f"{number} is committed, and was not heard")

    async def _listen(self, service: Service) -> None:
        """Listen to the database that is served now, unless that is so already."""

        async def send(database: SqlDatabase) -> Outcome:
            if all(each.database is not database.database for each in self.hearings):
                self.hearings.append(Hearing(database.database))
            snapshot = database.database.snapshots.take()
            if snapshot is None:
                raise DatabaseUnavailable("it restarts")
            return Outcome(None, snapshot.version)

        await self._sent(service.ask_sql(send), service, None, (DatabaseUnavailable,))

    async def check_rows(self, service: Service) -> None:
        rows = (await self.must(service, "SELECT number FROM said ORDER BY place")).rows
        said = [number for (number,) in rows]
        for each in self.hearings:
            heard = each.heard
            if heard:
                first = said.index(heard[0]) if heard[0] in said else 0
                expected = said[first : first + len(heard)]
                self.expect(heard == expected, f"heard {heard}, and said was {expected}")
                self.expect(each.versions == sorted(each.versions), f"heard at {each.versions}")
            each.listener.close()
        self.problems += self.book.compare(said, service)
