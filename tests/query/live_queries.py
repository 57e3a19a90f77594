"""Follows a live query as its reader does: applies its changes to a multiset."""

from __future__ import annotations

from collections import Counter

from qserver.query.live_query import LiveQuery
from qserver.query.plan_cache import CachedPlan
from qserver.query.sql_database import SqlDatabase
from qserver.sql.execution import Rows
from qserver.sql.parameters import Given
from qserver.values.encoding import encode


def lines(rows: Rows) -> list[bytes]:
    return [encode(row) for row in rows]


def lines_of(_: CachedPlan) -> object:
    return lines


class Follower:
    def __init__(self, database: SqlDatabase, sql: str, parameters: Given, live: LiveQuery) -> None:
        self.database = database
        self.sql = sql
        self.parameters = parameters
        self.live = live
        self.result: Counter[bytes] = Counter()
        self.changes = 0

    async def catch_up(self) -> bool:
        """Apply all changes up to the newest version; whether there were any."""
        found = False
        while self.live.is_stale:
            async for deleted, inserted in self.live.changes():
                found = True
                self.changes += len(deleted) + len(inserted)
                for line in deleted:
                    assert self.result[line] > 0, "only what is there is deleted"
                    self.result[line] -= 1
                self.result.update(inserted)
        return found

    async def check(self) -> None:
        result = await self.database.execute(self.sql, self.parameters)
        assert +self.result == Counter(lines(result.rows))
        assert result.version >= self.live.version


async def follow(database: SqlDatabase, sql: str, parameters: Given = None) -> Follower:
    live = await database.live(sql, parameters, lines_of=lambda _: lines)
    follower = Follower(database, sql, parameters, live)
    async for page in live.rows:
        encoded = live.lines(page)
        live.first(encoded)
        follower.result.update(encoded)
    live.begin()
    return follower
