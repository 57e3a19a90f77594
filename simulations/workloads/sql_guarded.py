"""Guards of single requests: `if_version`, and names of answers that are used again.

    left, right   rows that are counted up, most often with if_version: only if nobody has changed
                  the table since its client read it
    spent         the uses of a few names of stored answers, which are kept for a moment only

A request with if_version may be short or long, alone or one of many at once. If it is there, then
its table had last changed at that version or before, and no other such request is in its version.
If it is refused, then the table had changed.

A name is used, sent again at once and twice, and used for something else when its answer has
expired, beside the sweeper. Each use is there once, unless its answer was over when it was sent
again; a name is refused only for as long as the answer of another use is kept.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from math import inf
from typing import Any, Final

import trio

from qserver.engine.gateway import Outcome
from qserver.errors import (
    HistoryTooOld,
    IdempotencyMismatch,
    QserverError,
    SerializationFailure,
)
from qserver.query.results import Once, Options, Result, Statement
from qserver.query.sql_database import SqlDatabase, TransactionResult
from simulations.faults import Profile
from simulations.service import Service
from simulations.web.front import Front
from simulations.workloads.sql_workload import BY_HTTP, PAUSE, SqlWorkload

TABLES: Final = ("left_", "right_")
ROWS: Final = 4
NAMES: Final = 8
KEPT_SECONDS: Final = 0.2

COUNT: Final = "UPDATE {} SET n = n + 1 WHERE id = $1"
ADD: Final = "INSERT INTO {} SELECT max(id) + 1, 1 FROM {}"
READ: Final = "SELECT sum(n) FROM {}"
SPEND: Final = "INSERT INTO spent VALUES ($1, $2)"


class SqlGuarded(SqlWorkload):
    name = "sql_guarded"
    tables = (
        *(f"CREATE TABLE {each} (id integer PRIMARY KEY, n integer)" for each in TABLES),
        *(f"INSERT INTO {each} SELECT g, 0 FROM generate_series(1, {ROWS}) g" for each in TABLES),
        "CREATE TABLE spent (name integer, use integer)",
    )

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self._done: list[tuple[str, int, int | None]] = []
        """The table, version and if_version of each change that was acknowledged."""
        self._unknown: Counter[str] = Counter()
        self._uses = count(1)
        self._spent: dict[int, list[float]] = {}
        """When each use was sent, by true time."""
        self._answered: dict[int, tuple[int, float]] = {}
        """The last use of each name, and when it was answered; inf if that is not known."""
        self._using: set[int] = set()

    async def transaction(self, service: Service, number: int) -> None:
        names = [name for name in range(NAMES) if name not in self._using]
        if names and self.chance.random() < 0.5:
            await self._use(service, self.chance.choice(names))
        else:
            await self._count_up(service, self.chance.choice(TABLES))

    # --- if_version ---

    async def _count_up(self, service: Service, table: str) -> None:
        chance = self.chance
        read = await self.select(service, READ.format(table))
        if read is None:
            return
        if chance.random() < 0.3:
            await trio.sleep(chance.expovariate(1.0) * self.profile.delay_seconds * 10)
        guarded = chance.random() < 0.8
        sql = ADD.format(table, table) if chance.random() < 0.2 else COUNT.format(table)
        given = [] if sql.startswith("INSERT") else [chance.randint(1, ROWS)]
        statements = [Statement(sql, given)]
        if chance.random() < max(0.3, self.profile.long_work):
            statements.insert(chance.randrange(2), PAUSE)
        options = Options(
            max_retries=self.profile.max_retries, if_version=read.version if guarded else None
        )
        done = await self._send(service, statements, options)
        if isinstance(done, TransactionResult):
            self._done.append((table, done.version, options.if_version))
            service.world.reach("a request with if_version was applied")
        elif isinstance(done, SerializationFailure) and not done.retryable:
            service.world.reach("a request with if_version was refused")
            self._judge_refusal(service, table, read.version)
        else:
            self._unknown[table] += 1

    async def _send(
        self, service: Service, statements: list[Statement], options: Options
    ) -> TransactionResult | QserverError:
        async def send(database: SqlDatabase) -> Outcome:
            self._hint(database)
            done = await database.transaction(
                statements, max_retries=options.max_retries, if_version=options.if_version
            )
            return Outcome(done, done.version, done.retries)

        async def post(front: Front) -> Outcome:
            self._hint(front.sql)
            done = await self.http.write(front, statements, options, single=len(statements) == 1)
            return Outcome(done, done.version, done.retries)

        by_http = self.chance.random() < BY_HTTP
        asked = service.ask_front(post) if by_http else service.ask_sql(send)
        done: TransactionResult | QserverError = await self._sent(
            asked, service, None, (SerializationFailure, HistoryTooOld)
        )
        return done

    def _judge_refusal(self, service: Service, table: str, version: int) -> None:
        newest = service.world.newest
        if newest is not None and not service.world.two_publish:
            changed, _ = newest.last_change(newest.catalog.tables[table])
            self.expect(changed > version, f"{table} is as of {changed}, and {version} was refused")

    # --- names of answers ---

    async def _use(self, service: Service, name: int) -> None:
        """Use a name for something new, and send that again while its answer is kept."""
        self._using.add(name)
        world, use = service.world, next(self._uses)
        sent = self._spent[use] = []
        statements = [Statement(SPEND, [name, use])]
        if self.is_long():
            statements.insert(0, PAUSE)
        _, last = self._answered.get(name, (0, inf))
        if self.chance.random() < 0.8 and last < inf:  # just when the last one expires
            over = last + KEPT_SECONDS - world.true_time()
            await trio.sleep(max(0.0, over + self.chance.uniform(-0.02, 0.06)))
        for attempt in range(self.chance.choice((2, 3))):
            began = world.true_time()
            sent.append(began)
            done = await self._send_once(service, name, use, statements)
            if isinstance(done, IdempotencyMismatch):
                known = self._answered.get(name)
                late = known is not None and known[1] + KEPT_SECONDS < began
                self.expect(
                    attempt > 0 or not late or not self._on_time(service),
                    f"{use} is refused name {name}, which {known} had, at {began}",
                )
                service.world.reach("a name was refused that another request had")
                break
            known_until = world.true_time() if isinstance(done, TransactionResult) else inf
            self._answered[name] = use, known_until  # else it may be applied at any time
        self._using.discard(name)

    async def _send_once(
        self, service: Service, name: int, use: int, statements: list[Statement]
    ) -> TransactionResult | QserverError:
        async def send(database: SqlDatabase) -> Outcome:
            self._hint(database)
            once = Once(b"name %d" % name, b"use %d" % use, KEPT_SECONDS, _rendered)
            done = await database.transaction(
                statements, max_retries=self.profile.max_retries, once=once
            )
            return Outcome(done, done.version)

        done: TransactionResult | QserverError = await self._sent(
            service.ask_sql(send), service, None, (IdempotencyMismatch,)
        )
        return done

    @staticmethod
    def _on_time(service: Service) -> bool:
        """Whether the clock has always been right, so that it is known when answers expire."""
        return service.world.clock_errors == (0.0, 0.0)

    # --- the end ---

    async def check_rows(self, service: Service) -> None:
        for table in TABLES:
            found = await self.must(service, READ.format(table))
            told = sum(each[0] == table for each in self._done)
            most = told + self._unknown[table]
            self.expect(told <= found.rows[0][0] <= most, f"{table}: {found.rows}, told {told}")
        for table, version, wanted in self._done:
            if wanted is not None:
                self._judge(service, table, version, wanted)
        rows = (await self.must(service, "SELECT use, name FROM spent")).rows
        times = Counter(row[0] for row in rows)
        for use, number in times.items():
            sent = self._spent[use]
            apart = max(sent) - min(sent) >= KEPT_SECONDS
            self.expect(
                number == 1 or apart or not self._on_time(service),
                f"use {use} is there {number} times, sent at {sent}",
            )

    def _judge(self, service: Service, table: str, version: int, wanted: int) -> None:
        before = service.world.published.get(version - 1)
        if before is not None:
            definition = before.catalog.tables[table]
            changed, _ = before.trees.tree(definition.id).last_change
            self.expect(
                changed <= wanted, f"{table} at {version} if {wanted}, and {changed} changed it"
            )
        beside = [
            each for each in self._done if each[:2] == (table, version) and each[2] is not None
        ]
        self.expect(len(beside) == 1, f"{beside} are in one version")


def _rendered(results: Any, retries: int) -> tuple[bytes, bytes]:
    assert all(isinstance(each, Result) for each in results)
    return b"", b""
