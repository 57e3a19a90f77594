"""Guards of single requests: `if_version`, and names of answers that are used again.

    left, right   rows that are counted up, most often with if_version: only if nobody has changed
                  the table since its client read it; sometimes one table because of the other, and
                  sometimes the definition changes
    spent         the uses of a few names of stored answers, which are kept for a moment only

A request with if_version may be short or long, alone or one of many at once, which the coordinator
runs in one round. If it is there, then its tables had last changed at that version or before, rows
and definition; it is the first of its version that writes them, and it sees what was read then. If
it is refused, then one of its tables had changed.

A name is used, sent again at once and twice, and used for something else when its answer has
expired, beside the sweeper. Each use is there once, unless its answer was over when it was sent
again; a name is refused only for as long as the answer of another use is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import inf
from typing import Any, Final

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.work import run
from qserver.errors import (
    HistoryTooOld,
    IdempotencyMismatch,
    QserverError,
    SerializationFailure,
)
from qserver.query.results import Once, Result, RunOptions, Statement
from qserver.query.sql_database import SqlDatabase, TransactionResult
from simulations.faults import Profile
from simulations.service import Service
from simulations.web.front import Front
from simulations.workloads.sql_workload import BY_HTTP, PAUSE, TRIED, SqlWorkload

TABLES: Final = ("left_", "right_")
ROWS: Final = 4
NAMES: Final = 8
KEPT_SECONDS: Final = 0.2

RUSH: Final = 0.3
"""How often a client sends several requests at once, all of them for the coordinator to run."""

COUNT: Final = "UPDATE {0} SET n = n + 1 WHERE id = $1 RETURNING n"
COUNT_SEEN: Final = "UPDATE {0} SET n = n + 1 WHERE id = $1 RETURNING (SELECT sum(n) FROM {0})"
ACROSS: Final = (
    "UPDATE {0} SET n = n + 1 WHERE id = (SELECT count(*) FROM {1} WHERE id <= $1) RETURNING n"
)
ADD: Final = "INSERT INTO {0} (id, n) SELECT max(id) + 1, 1 FROM {0}"
DEFINE: Final = "ALTER TABLE {0} ALTER COLUMN n SET DEFAULT 7"
DEFINE_BACK: Final = "ALTER TABLE {0} ALTER COLUMN n DROP DEFAULT"
READ: Final = "SELECT sum(n) FROM {}"
SPEND: Final = "INSERT INTO spent VALUES ($1, $2)"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A request, and the version and sum that its client had read before."""

    sql: str
    table: str
    touched: tuple[str, ...]
    row: int
    since: int
    total: int
    is_guarded: bool

    @property
    def adds(self) -> int:
        """How much the sum of the table grows."""
        return int(self.sql in (COUNT, COUNT_SEEN, ACROSS, ADD))


class SqlGuarded(SqlWorkload):
    name = "sql_guarded"
    tables = (
        *(f"CREATE TABLE {each} (id integer PRIMARY KEY, n integer)" for each in TABLES),
        *(f"INSERT INTO {each} SELECT g, 0 FROM generate_series(1, {ROWS}) g" for each in TABLES),
        "CREATE TABLE spent (name integer, use integer)",
    )

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self._done: list[tuple[Guarded, int, Any]] = []
        """Each change that was acknowledged, its version, and what it returned."""
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
        """Read a table, and change it if it is still what was read; sometimes several at once."""
        read = await self.select(service, READ.format(table))
        if read is None:
            return
        since, total = read.version, read.rows[0][0]
        if self.chance.random() >= RUSH:
            if self.chance.random() < 0.3:
                await trio.sleep(self.chance.expovariate(1.0) * self.profile.delay_seconds * 10)
            await self._change(service, self._drawn(table, since, total), rushes=False)
            return
        async with trio.open_nursery() as nursery:
            for _ in range(self.chance.randint(2, 4)):
                request = self._drawn(table, since, total)
                nursery.start_soon(partial(self._change, service, request, rushes=True))

    def _drawn(self, table: str, since: int, total: int) -> Guarded:
        chance = self.chance
        sql = chance.choices(
            (COUNT, COUNT_SEEN, ACROSS, ADD, DEFINE, DEFINE_BACK, READ), (40, 12, 15, 10, 6, 6, 11)
        )[0]
        other = TABLES[TABLES[0] == table]
        if sql == ACROSS and chance.random() < 0.5:
            table, other = other, table
        touched = (table, other) if sql == ACROSS else (table,)
        is_guarded = sql == READ or chance.random() < 0.7
        return Guarded(sql, table, touched, chance.randint(1, ROWS), since, total, is_guarded)

    async def _change(self, service: Service, request: Guarded, *, rushes: bool) -> None:
        other = request.touched[-1]
        given = [request.row] if "$1" in request.sql else []
        statements = [Statement(request.sql.format(request.table, other), given)]
        if not rushes and self.chance.random() < max(0.3, self.profile.long_work):
            statements.insert(self.chance.randrange(2), PAUSE)
        options = RunOptions(
            max_retries=self.profile.max_retries,
            if_version=request.since if request.is_guarded else None,
        )
        done = await self._send(service, statements, options, rushes=rushes)
        if isinstance(done, TransactionResult):
            rows = done.results[0 if len(statements) == 1 else statements.index(PAUSE) ^ 1].rows
            self._done.append((request, done.version, rows[0][0] if rows else None))
            if request.is_guarded:
                service.world.reach("a request with if_version was applied")
        elif isinstance(done, SerializationFailure) and not done.retryable:
            service.world.reach("a request with if_version was refused")
            self._judge_refusal(service, request)
        else:
            self._unknown[request.table] += request.adds

    async def _send(
        self, service: Service, statements: list[Statement], options: RunOptions, *, rushes: bool
    ) -> TransactionResult | QserverError:
        async def send(database: SqlDatabase) -> Outcome:
            self._hint(database, tried=0.0 if rushes else TRIED)
            done = await database.transaction(
                statements, max_retries=options.max_retries, if_version=options.if_version
            )
            return Outcome(done, done.version, done.retries)

        async def post(front: Front) -> Outcome:
            self._hint(front.sql)
            done = await self.http.write(front, statements, options, single=len(statements) == 1)
            return Outcome(done, done.version, done.retries)

        by_http = not rushes and self.chance.random() < BY_HTTP
        asked = service.ask_front(post) if by_http else service.ask_sql(send)
        done: TransactionResult | QserverError = await self._sent(
            asked, service, None, (SerializationFailure, HistoryTooOld)
        )
        return done

    def _judge_refusal(self, service: Service, request: Guarded) -> None:
        newest = service.world.newest
        if newest is not None and not service.world.two_publish:
            tables = [newest.catalog.tables[each] for each in request.touched]
            changed = max(newest.last_change(each)[0] for each in tables)
            self.expect(changed > request.since, f"{request} is refused, the last was {changed}")

    # --- names of answers ---

    async def _use(self, service: Service, name: int) -> None:
        """Use a name for something new, and send that again while its answer is kept."""
        self._using.add(name)
        world, use = service.world, next(self._uses)
        self._spent[use] = []
        statements = [Statement(SPEND, [name, use])]
        if self.is_long():
            statements.insert(0, PAUSE)
        _, last = self._answered.get(name, (0, inf))
        if self.chance.random() < 0.8 and last < inf:  # just when the last one expires
            over = last + KEPT_SECONDS - world.true_time()
            await trio.sleep(max(0.0, over + self.chance.uniform(-0.02, 0.06)))
        for attempt in range(self.chance.choice((2, 3))):
            if attempt == 1 and self.chance.random() < 0.5:  # just before its answer expires
                await trio.sleep(self.chance.uniform(0.4, 0.95) * KEPT_SECONDS)
            began = world.true_time()
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
            steps = database.perform(statements, RunOptions(self.profile.max_retries), once=once)
            self._spent[use].append(service.world.true_time())  # it has looked at the clock
            done: TransactionResult = await run(steps)
            return Outcome(done, done.version)

        answer: TransactionResult | QserverError = await self._sent(
            service.ask_sql(send), service, None, (IdempotencyMismatch,)
        )
        return answer

    @staticmethod
    def _on_time(service: Service) -> bool:
        """Whether the clock has always been right, so that it is known when answers expire."""
        return service.world.clock_errors == (0.0, 0.0)

    # --- the end ---

    async def check_rows(self, service: Service) -> None:
        for table in TABLES:
            found = await self.must(service, READ.format(table))
            told = sum(each.adds for each, _, _ in self._done if each.table == table)
            most = told + self._unknown[table]
            self.expect(told <= found.rows[0][0] <= most, f"{table}: {found.rows}, told {told}")
        for request, version, returned in self._done:
            if request.is_guarded:
                self._judge(service, request, version, returned)
        rows = (await self.must(service, "SELECT use, name FROM spent")).rows
        times = Counter(row[0] for row in rows)
        for use, number in times.items():
            sent = self._spent[use]
            apart = max(sent) - min(sent) >= KEPT_SECONDS
            self.expect(
                number == 1 or apart or not self._on_time(service),
                f"use {use} is there {number} times, begun at {sent}",
            )

    def _judge(self, service: Service, request: Guarded, version: int, returned: Any) -> None:
        """Compare what a guarded request returned with the version that it named."""
        if request.sql in (READ, COUNT_SEEN) and request.touched == (request.table,):
            self.expect(returned == request.total, f"{request} at {version} has seen {returned}")
        before = None if request.sql == READ else service.world.published.get(version - 1)
        if before is None:
            return
        for table in map(before.catalog.tables.get, request.touched):
            assert table is not None
            rows, _ = before.trees.tree(table.id).last_change
            definition, _ = before.catalog.last_change_of(table.key)
            changed = max(rows, definition)
            self.expect(changed <= request.since, f"{request} at {version}, changed at {changed}")
        if request.sql in (COUNT, ACROSS):
            was = before.entries[before.catalog.tables[request.table].id][(request.row,)][1]
            self.expect(returned == was + 1, f"{request} at {version} made {returned} of {was}")
        beside = [
            each
            for each, its_version, _ in self._done
            if its_version == version and each.is_guarded and each.sql != READ
            if each.table in request.touched and request.table in each.touched
        ]
        self.expect(beside == [request], f"{beside} are in version {version}")
        if any(each[1] == version and each[0] is not request for each in self._done):
            service.world.reach("a request with if_version shared its version")


def _rendered(results: Any, retries: int) -> tuple[bytes, bytes]:
    assert all(isinstance(each, Result) for each in results)
    return b"", b""
