"""Live queries: readers apply the changes to a multiset, while others write.

    at each version that a live query names      the multiset is its result at that version
    while no commit has woken it                 the multiset is its result at the newest version
    after the engine has restarted               both, as if nothing had happened

The expected results are computed here, in Python, from the published rows of the version. The
queries cover both ways to the next result: by changed rows, found by key, by range or by index, and
by running again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final, NamedTuple, TypeAlias

import trio

from qserver.engine.database import Database
from qserver.engine.gateway import Outcome
from qserver.errors import DatabaseUnavailable
from qserver.query.live_query import LiveQuery
from qserver.query.sql_database import SqlDatabase, Statement
from simulations.service import Service
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

ITEMS: Final = 24
GROUPS: Final = 4

Row: TypeAlias = tuple[Any, ...]
Query: TypeAlias = Callable[[list[Row], list[Row]], list[Row]]


def _groups(items: list[Row]) -> list[Row]:
    counts = Counter(group for _, group, _ in items)
    return list(counts.items())


QUERIES: Final[dict[str, Query]] = {
    "SELECT id, v FROM items WHERE v > 40": lambda items, _: [
        (key, v) for key, _, v in items if v > 40
    ],
    "SELECT v FROM items WHERE id = 3": lambda items, _: [(v,) for key, _, v in items if key == 3],
    "SELECT id, v FROM items WHERE g = 1": lambda items, _: [
        (key, v) for key, g, v in items if g == 1
    ],
    "SELECT g FROM items WHERE id >= 5 AND id < 15": lambda items, _: [
        (g,) for key, g, _ in items if 5 <= key < 15
    ],
    "SELECT g, count(*) FROM items GROUP BY g": lambda items, _: _groups(items),
    "SELECT id FROM items ORDER BY v DESC, id LIMIT 3": lambda items, _: [
        (key,) for key, _, _ in sorted(items, key=lambda row: (-row[2], row[0]))[:3]
    ],
    "SELECT n.id, i.v FROM notes n JOIN items i ON i.id = n.item": lambda items, notes: [
        (note, v) for note, item in notes for key, _, v in items if key == item
    ],
}

CHANGES: Final = (
    "UPDATE items SET v = $1 WHERE id = $2",
    "UPDATE items SET g = $1 % 4 WHERE id = $2",
    "UPDATE items SET g = $2 % 4 WHERE g = $1 % 4",
    "DELETE FROM items WHERE id = $2 AND $1 > 0",
    "INSERT INTO items VALUES ($2, $1 % 4, $1) ON CONFLICT DO NOTHING",
    "UPDATE items SET v = v + $1 WHERE g = $2 % 4",
    "INSERT INTO notes VALUES ($1, $2) ON CONFLICT DO NOTHING",
    "DELETE FROM notes WHERE id % 5 = $1 % 5 AND $2 >= 0",
)


class _Reading(NamedTuple):
    """One live query, and the multiset of its reader."""

    service: Service
    database: Database
    sql: str
    live: LiveQuery
    result: Counter[bytes]


class SqlLive(SqlWorkload):
    name = "sql_live"
    tables = (
        "CREATE TABLE items (id integer PRIMARY KEY, g integer NOT NULL, v integer NOT NULL)",
        "CREATE INDEX items_of_group ON items (g)",
        "CREATE TABLE notes (id integer PRIMARY KEY, item integer)",
        f"""INSERT INTO items SELECT n, n % {GROUPS}, n * 7 % 90
            FROM generate_series(0, {ITEMS - 1}) AS g(n)""",
        "INSERT INTO notes SELECT n, n FROM generate_series(0, 5) AS g(n)",
    )

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.3:
            await self._follow(service, self.chance.choice(list(QUERIES)))
            return
        statements = [self._change() for _ in range(self.chance.choice((1, 1, 3)))]
        if self.is_long():
            statements.insert(0, PAUSE)
        await self.together(service, statements)

    def _change(self) -> Statement:
        sql = self.chance.choice(CHANGES)
        return Statement(sql, [self.chance.randrange(1, 90), self.chance.randrange(ITEMS)])

    async def _follow(self, service: Service, sql: str) -> None:
        async def send(database: SqlDatabase) -> Outcome:
            live = await database.live(sql, lines_of=lambda _: _lines)
            try:
                await self._read(_Reading(service, database.database, sql, live, Counter()))
            finally:
                await live.close()
            return Outcome(None, live.version)

        await self._sent(service.ask_sql(send), service, None, (DatabaseUnavailable,))

    async def _read(self, reading: _Reading) -> None:
        service, database, _, live, result = reading
        async for page in live.rows:
            lines = live.lines(page)
            live.first(lines)
            result.update(lines)
            await self._dawdle()
        live.begin()
        self._judge(reading)
        restarts = database.statistics().restarts
        with trio.move_on_after(self.chance.uniform(0.05, 3.0)):
            for _ in range(8):
                while not live.is_stale:
                    await live.wait()
                    self._judge_idle(reading)
                await self._dawdle()
                before = live.version
                await self._apply(reading)
                self._judge(reading)
                if live.version > before + 1:
                    service.world.reach("a live query merged several versions")
                if database.statistics().restarts > restarts:
                    service.world.reach("a live query went on after a restart")
            self._judge_idle(reading)

    async def _apply(self, reading: _Reading) -> None:
        """Apply the changes up to the next version; the reading time may end in between."""
        sql, result = reading.sql, reading.result
        async with aclosing(reading.live.changes()) as changes:
            async for deleted, inserted in changes:
                for line in deleted:
                    self.expect(result[line] > 0, f"{sql} deletes {line!r}, which is not there")
                result.subtract(deleted)
                result.update(inserted)
                await self._dawdle()

    async def _dawdle(self) -> None:
        if self.chance.random() < 0.3:
            await trio.sleep(self.chance.expovariate(1.0) * self.profile.delay_seconds * 10)

    def _judge(self, reading: _Reading) -> None:
        """Compare with the result at the version that the live query names."""
        durable, version = reading.database.snapshots.take(), reading.live.version
        self.expect(
            durable is None or version <= durable.version,
            f"{reading.sql} shows version {version}, which is not durable",
        )
        self._compare(reading, version, "names")

    def _judge_idle(self, reading: _Reading) -> None:
        """Compare with the newest result, if no commit has woken the query."""
        durable = reading.database.snapshots.take()
        if durable is not None and not reading.live.is_stale:
            self._compare(reading, durable.version, "was not woken at")

    def _compare(self, reading: _Reading, version: int, how: str) -> None:
        sql, result = reading.sql, reading.result
        published = reading.service.world.published.get(version)
        if published is None:
            return  # two processes published it
        tables = published.catalog.tables
        items, notes = (
            list(published.entries.get(tables[name].id, {}).values()) for name in ("items", "notes")
        )
        expected = Counter(_lines(QUERIES[sql](items, notes)))
        if +result != expected:
            self.problems.append(
                f"{sql} {how} version {version}: it has {+result}, the rows say {expected}"
            )

    async def check_rows(self, service: Service) -> None:
        for sql, query in QUERIES.items():
            found = await self.must(service, sql)
            items = await self.must(service, "SELECT id, g, v FROM items")
            notes = await self.must(service, "SELECT id, item FROM notes")
            expected = query(items.rows, notes.rows)
            self.expect(
                Counter(found.rows) == Counter(expected), f"{sql}: {found.rows}, not {expected}"
            )


def _lines(rows: list[Row]) -> list[bytes]:
    return [repr(row).encode() for row in rows]
