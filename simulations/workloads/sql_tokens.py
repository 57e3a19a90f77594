"""Reads with tokens: the version of an answer, given to a read elsewhere, is never gone behind.

    counters   are counted up; each answer has a version, and what it returned

A token is the version of an answer, of any client, or one that does not exist yet. The read with it
goes to the owner, by HTTP or straight to the engine, or to the follower if there is one. Its answer
is of that version or a later one, and has all that was acknowledged up to it. The owner refuses no
version that was acknowledged before; what does not come in time is refused, never answered.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import trio

from qserver.engine.freshness import Freshness
from qserver.engine.gateway import Outcome
from qserver.engine.work import run
from qserver.errors import (
    Applied,
    DatabaseUnavailable,
    NotFreshEnough,
    QserverError,
    QueryCanceled,
    Unauthorized,
)
from qserver.query.results import Result, RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from simulations.faults import Profile
from simulations.service import Service
from simulations.web.front import Front
from simulations.workloads.sql_workload import BY_HTTP, SqlWorkload

COUNTERS: Final = 5
AHEAD: Final = 0.25
"""How often a token is a version that does not exist yet."""

COUNT: Final = "UPDATE counters SET n = n + 1 WHERE id = $1 RETURNING n"
READ: Final = "SELECT id, n FROM counters ORDER BY id"


class SqlTokens(SqlWorkload):
    name = "sql_tokens"
    tables = (
        "CREATE TABLE counters (id integer PRIMARY KEY, n integer NOT NULL)",
        f"INSERT INTO counters SELECT g, 0 FROM generate_series(1, {COUNTERS}) g",
    )

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self._counted: list[tuple[int, int, int]] = []
        """Of each change that was acknowledged: its version, the counter, and what it became."""
        self._unknown: Counter[int] = Counter()

    async def setup(self, service: Service) -> None:
        await super().setup(service)
        self._counted.append(((await self.must(service, READ)).version, 1, 0))

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.5:
            await self._count_up(service, self.chance.randint(1, COUNTERS))
        else:
            await self._read(service)

    async def _count_up(self, service: Service, counter: int) -> None:
        done = await self.execute(service, COUNT, counter)
        if isinstance(done, Result):
            self._counted.append((done.version, counter, done.rows[0][0]))
        elif done.applied is Applied.UNKNOWN:
            self._unknown[counter] += 1

    async def _read(self, service: Service) -> None:
        chance = self.chance
        newest = max(version for version, _, _ in self._counted)
        token = newest if chance.random() < 0.5 else chance.choice(self._counted)[0]
        if chance.random() < AHEAD:
            token = newest + chance.randint(1, 3)
        options = RunOptions(
            timeout_ms=chance.choice((20.0, 200.0, 2000.0)), freshness=Freshness(token)
        )
        is_near = service.follower is not None and chance.random() < 0.5
        asking = self._of_follower if is_near else self._of_owner
        began = trio.current_time()
        answer = await asking(service, options)
        if trio.current_time() > began:
            service.world.reach("a read waited for its version")
        if isinstance(answer, Result):
            self._judge(token, answer)
        elif isinstance(answer, NotFreshEnough):
            service.world.reach("a version did not come in time")
            held = token <= newest and not is_near
            self.expect(not held, f"the owner lacks version {token}: {answer!r}")

    async def _of_owner(self, service: Service, options: RunOptions) -> Result | QserverError:
        async def send(database: SqlDatabase) -> Outcome:
            done = await run(database.perform((Statement(READ),), options))
            return Outcome(done.results[0], done.version)

        async def post(front: Front) -> Outcome:
            done = await self.http.read(front, Statement(READ), options)
            return Outcome(done.results[0], done.version)

        by_http = self.chance.random() < BY_HTTP
        asked = service.ask_front(post) if by_http else service.ask_sql(send)
        may = (NotFreshEnough, QueryCanceled, Unauthorized)
        found: Result | QserverError = await self._sent(asked, service, None, may)
        return found

    async def _of_follower(self, service: Service, options: RunOptions) -> Result | QserverError:
        assert service.follower is not None
        database = SqlDatabase(service.follower.followed, service.world)
        try:
            done = await run(database.perform((Statement(READ),), options))
        except QserverError as error:
            self._judge_error(service, error, (NotFreshEnough, QueryCanceled, DatabaseUnavailable))
            return error
        found: Result = done.results[0]
        return found

    def _judge(self, token: int, answer: Result) -> None:
        self.expect(answer.version >= token, f"version {answer.version} for the token {token}")
        found: dict[int, int] = dict(answer.rows)
        for version, counter, n in self._counted:
            if version <= answer.version:
                lacks = found.get(counter, -1) < n
                told = f"counter {counter} was {n} at {version}, and is {found} at {answer.version}"
                self.expect(not lacks, told)

    async def check_rows(self, service: Service) -> None:
        found: dict[int, int] = dict((await self.must(service, READ)).rows)
        for counter in range(1, COUNTERS + 1):
            least = sum(1 for _, each, n in self._counted if each == counter and n)
            most = least + self._unknown[counter]
            told = f"counter {counter} is {found[counter]}, and was counted {least} to {most} times"
            self.expect(least <= found[counter] <= most, told)
