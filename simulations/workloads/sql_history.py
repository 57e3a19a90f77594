"""History: readers of older versions and times, lists, differences and restores.

    writers      add to values; add, move and remove rows and count them; make, fill, widen and drop
                 a table, and note its width; take numbers for notes
    readers      one version or time, by SQL or HTTP, at once or bit by bit, while others write, the
                 log is cut and pages are evicted: exactly what was published; too old is refused
    lists        all versions that are kept, each with its time, its tables and its requests
    differences  applied to the one version they give the other
    restores     one version with the contents of the restored one, and nobody else's writes

How long history is kept changes now and then. Each version has to follow from the one before it
(`checkers.past`): so a restore is one version, and no addition around it is lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final

import trio

from qserver.engine.gateway import Outcome
from qserver.engine.history import AsOf
from qserver.engine.version_list import VersionEntry
from qserver.errors import (
    Applied,
    DuplicateTable,
    HistoryTooOld,
    InvalidRequest,
    OutOfMemory,
    QserverError,
    UndefinedTable,
)
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import Result, SqlDatabase, TransactionResult
from qserver.storage.snapshot_changes import snapshot_changes
from simulations.checkers.past import (
    Contents,
    Done,
    contents,
    difference_problems,
    version_problems,
)
from simulations.faults import Profile
from simulations.pages import Published
from simulations.service import Service
from simulations.web.front import Front
from simulations.web.keys import ORDINARY
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

ITEMS: Final = 16
GROUPS: Final = 3
SECONDS: Final = (0.0, 0.3, 2.0, 1e9)
"""For how long history may be kept."""

RECOUNT: Final = Statement(
    "UPDATE counts SET n = (SELECT count(*) FROM items WHERE items.g = counts.g)"
)
QUERIES: Final = (
    "SELECT id, g, v FROM items ORDER BY id",
    "SELECT g, n FROM counts ORDER BY g",
    "SELECT g, count(*) FROM items WHERE g = 1 GROUP BY g",
    "SELECT width FROM meta",
    "SELECT * FROM extra ORDER BY id",
)
DEFINITIONS: Final = (
    (
        "CREATE TABLE extra (id integer PRIMARY KEY, w integer)",
        "INSERT INTO extra VALUES (1, 1), (2, 2)",
        "UPDATE meta SET width = 2",
    ),
    ("ALTER TABLE extra ADD COLUMN c{} integer DEFAULT 7", "UPDATE meta SET width = width + 1"),
    ("CREATE INDEX ON extra (w)", "UPDATE meta SET width = width"),
    ("DROP TABLE extra", "UPDATE meta SET width = 0"),
)


class SqlHistory(SqlWorkload):
    name = "sql_history"
    tables = (
        "CREATE TABLE items (id integer PRIMARY KEY, g integer NOT NULL, v integer NOT NULL)",
        "CREATE INDEX items_of_group ON items (g)",
        "CREATE TABLE counts (g integer PRIMARY KEY, n integer NOT NULL)",
        "CREATE TABLE meta (width integer PRIMARY KEY)",
        "CREATE TABLE notes (id serial PRIMARY KEY, item integer)",
        f"""INSERT INTO items SELECT n, n % {GROUPS}, 0
            FROM generate_series(0, {ITEMS - 3}) AS g(n)""",
        f"INSERT INTO counts SELECT n, 0 FROM generate_series(0, {GROUPS - 1}) AS g(n)",
        RECOUNT.sql,
        "INSERT INTO meta VALUES (0)",
    )

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self.begins = self.newest = 0
        """The first version that has all tables, and the last that any client was told."""
        self.done: dict[int, list[Done]] = {}
        self.unknown: list[Done] = []
        self.requests: dict[int, list[str]] = {}
        """By version: ids of requests that are known to have made it."""
        self.notes: dict[int, int] = {}

    async def setup(self, service: Service) -> None:
        service.keep_history(self.profile.history or self.chance.choice(SECONDS))
        await super().setup(service)
        self.begins = self.newest = (await self.must(service, "UPDATE meta SET width = 0")).version

    async def transaction(self, service: Service, number: int) -> None:
        if self.chance.random() < 0.03:
            service.keep_history(self.chance.choice(SECONDS))
        what = self.chance.random()
        if what < 0.5:
            await self._change(service, number)
        elif what < 0.75:
            await self._read(service)
        elif what < 0.82:
            await self._list(service)
        elif what < 0.9:
            await self._compare(service)
        else:
            await self._restore(service, number)

    # --- what is written ---

    async def _change(self, service: Service, number: int) -> None:
        chance = self.chance
        key, group = chance.randrange(ITEMS), chance.randrange(GROUPS)
        what = chance.choice(
            ("add", "add", "add", "put", "move", "remove", "define", "fill", "note")
        )
        done = Done(number)
        may: tuple[type[QserverError], ...] = ()
        if what == "add":
            keys = chance.sample(range(ITEMS), chance.choice((1, 1, 3)))
            done.added = {each: chance.randrange(1, 1000) for each in keys}
            statements = [
                Statement("UPDATE items SET v = v + $1 WHERE id = $2", [added, each])
                for each, added in done.added.items()
            ]
        elif what in ("put", "move", "remove"):
            sql, parameters = {
                "put": (
                    "INSERT INTO items VALUES ($1, $2, 0) ON CONFLICT DO NOTHING",
                    [key, group],
                ),
                "move": ("UPDATE items SET g = $1 WHERE id = $2", [group, key]),
                "remove": ("DELETE FROM items WHERE id = $1", [key]),
            }[what]
            done.rewritten = frozenset([key])
            statements = [Statement(sql, parameters), RECOUNT]
        elif what == "define":
            statements = [Statement(sql.format(number)) for sql in chance.choice(DEFINITIONS)]
            may = (DuplicateTable, UndefinedTable)
        elif what == "fill":
            sql = "INSERT INTO extra (id, w) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET w = $2"
            statements = [Statement(sql, [key, number])]
            may = (UndefinedTable,)
        else:
            statements = [Statement("INSERT INTO notes (item) VALUES ($1) RETURNING id", [key])]
        if self.is_long():
            statements.insert(0, PAUSE)
        await self._send(service, statements, done, may)

    async def _send(
        self,
        service: Service,
        statements: list[Statement],
        done: Done,
        may: tuple[type[QserverError], ...],
    ) -> None:
        named = f"write {done.number}" if self.chance.random() < 0.3 else None

        async def send(database: SqlDatabase) -> Outcome:
            result = await database.transaction(
                statements, max_retries=self.profile.max_retries, request_id=named
            )
            return Outcome(result, result.version, result.retries)

        if named is None:
            result = await self.together(service, statements, may=may)
        else:
            result = await self._sent(service.ask_sql(send), service, None, may)
        if isinstance(result, TransactionResult):
            if done.added:
                changed = [each.affected_rows for each in result.results[-len(done.added) :]]
                there = dict(zip(done.added, changed, strict=True))
                done.added = {key: done.added[key] for key, count in there.items() if count}
            if any(each.affected_rows for each in result.results) or may:
                self._note(result.version, done, named)
            if "notes" in statements[-1].sql:
                self._check_number(result.results[-1].rows[0][0], done.number)
        elif result.applied is Applied.UNKNOWN:
            self.unknown.append(done)

    def _note(self, version: int, done: Done, request: str | None) -> None:
        self.newest = max(self.newest, version)
        self.done.setdefault(version, []).append(done)
        if request is not None:
            self.requests.setdefault(version, []).append(request)

    def _check_number(self, note: int, number: int) -> None:
        other = self.notes.setdefault(note, number)
        self.expect(other == number, f"note {note} was given to {other} and to {number}")

    # --- restores ---

    async def _restore(self, service: Service, number: int) -> None:
        version = self.chance.randint(self.begins, self.newest)
        seen = service.world.published.get(version)
        as_of: AsOf = version if self.chance.random() < 0.7 or seen is None else seen.time
        name, newest, changes = f"restore {number}", self.newest, service.kept.changes

        async def send(database: SqlDatabase) -> Outcome:
            made = await database.database.restore_version(as_of, request_id=name)
            return Outcome(made, made[0])

        may = (HistoryTooOld, OutOfMemory, InvalidRequest)
        made = await self._sent(service.ask_sql(send), service, None, may)
        if isinstance(made, tuple):
            self._judge_found(service, as_of, made[1], newest)
            self._note(made[0], Done(number, restored=made[1]), None)
            service.world.reach("a database was restored")
        elif made.applied is Applied.UNKNOWN:
            self.unknown.append(Done(number, restored=version))
        else:
            self._judge_refusal(service, as_of, made, newest, changes)

    # --- what is read ---

    def _draw(self, service: Service) -> AsOf:
        """Return a version, or a time: any, that of a version, or a moment before it."""
        version = self.chance.randint(0, self.newest + 2)
        if self.chance.random() < 0.5:
            return version
        seen = service.world.published.get(version)
        now = service.world.true_time()
        if seen is None or self.chance.random() < 0.3:
            return now - self.chance.expovariate(1.0) * self.chance.choice((0.1, 1.0, 10.0))
        return seen.time + self.chance.choice((0.0, 0.0, -1e-6, 1e-3))

    async def _read(self, service: Service) -> None:
        as_of, newest, changes = self._draw(service), self.newest, service.kept.changes
        asked = service.world.true_time()
        sql = self.chance.sample(QUERIES, self.chance.randint(1, len(QUERIES)))
        ways: tuple[Callable[[Front, AsOf, Sequence[str]], Awaitable[TransactionResult]], ...]
        ways = (self._by_http, self._at_once, self._streamed, self._opened)
        way = self.chance.choice(ways)

        async def send(front: Front) -> Outcome:
            result = await way(front, as_of, sql)
            return Outcome(result, result.version)

        may = (HistoryTooOld, InvalidRequest, UndefinedTable, OutOfMemory)
        found = await self._sent(service.repeat(send), service, None, may)
        if not isinstance(found, TransactionResult):
            self._judge_refusal(service, as_of, found, newest, changes)
            return
        # HTTP has times to the microsecond, and means all of it.
        late = 2e-6 if way == self._by_http else 0.0
        self._judge_found(service, as_of, found.version, newest, late)
        self._judge_age(service, found.version, asked, newest, changes)
        if found.version < newest:
            service.world.reach("an older version was read")
        if found.version < self.begins:
            return
        for text, result in zip(sql, found.results, strict=False):
            self._judge_rows(service, found.version, text, result)

    async def _by_http(self, front: Front, as_of: AsOf, sql: Sequence[str]) -> TransactionResult:
        given = as_of if isinstance(as_of, int) else datetime.fromtimestamp(as_of, UTC).isoformat()
        if len(sql) == 1:
            fields: dict[str, Any] = {"sql": sql[0], "as_of": given}
            return await self.http.ask_as(front, ORDINARY, "/v1/query", fields)
        fields = {"statements": [{"sql": each} for each in sql], "as_of": given}
        return await self.http.ask_as(front, ORDINARY, "/v1/transaction", fields)

    async def _at_once(self, front: Front, as_of: AsOf, sql: Sequence[str]) -> TransactionResult:
        return await front.sql.transaction([Statement(each) for each in sql], as_of=as_of)

    async def _streamed(self, front: Front, as_of: AsOf, sql: Sequence[str]) -> TransactionResult:
        stream = await front.sql.stream(sql[0], as_of=as_of)
        rows: list[Any] = []
        async with aclosing(stream):  # also if the client is gone
            async for page in stream:
                rows += page
                await self._dawdle()
        result = Result(stream.columns, stream.types, rows, 0, stream.version)
        return TransactionResult([result], stream.version)

    async def _opened(self, front: Front, as_of: AsOf, sql: Sequence[str]) -> TransactionResult:
        """Read in an open transaction, for as long as it takes."""
        transaction = await front.sql.open(as_of=as_of)
        try:
            results = []
            for each in sql:
                await self._dawdle()
                done = await front.sql.inside(transaction, [Statement(each)], RunOptions())
                results += done.results
            return TransactionResult(results, transaction.version)
        finally:
            transaction.release()

    async def _dawdle(self) -> None:
        if self.chance.random() < 0.5:
            await trio.sleep(self.chance.expovariate(1.0) * self.profile.delay_seconds * 50)

    # --- lists and differences ---

    async def _list(self, service: Service) -> None:
        newest, changes = self.newest, service.kept.changes
        asked = service.world.true_time()
        before = None if self.chance.random() < 0.5 else self.chance.randint(1, newest + 2)
        most = self.chance.choice((1, 5, 1000))
        known = {version: list(names) for version, names in self.requests.items()}

        async def send(front: Front) -> list[VersionEntry]:
            return await front.sql.database.history.versions(before, most)

        listed = await self._looked(service, send, ())
        if listed is None:
            return
        first = newest if before is None else min(newest, before - 1)
        versions = [each.version for each in listed]
        top = versions[0] if versions else first + 1
        self.expect(
            versions == list(range(top, top - len(versions), -1)), f"versions are {versions}"
        )
        self.expect(
            top >= first if before is None else top in (first, before - 1) or not versions,
            f"the list before {before} begins with {top}, {first} is there",
        )
        below = versions[-1] - 1 if versions else first
        kept = [version for version, _ in service.disk.shelf.checkpoints.outlines()]
        if 0 < below < newest and len(versions) < most and below not in kept:
            # Where history begins a checkpoint is kept, and no record.
            missing = self._must_have(service, below, changes)
            self.expect(not missing, f"version {below} is kept, and not in the list {versions}")
        for each in listed:
            self._judge_age(service, each.version, asked, newest, changes)
            self._judge_entry(service, each, known.get(each.version, []))
        service.world.reach("versions were listed")

    def _judge_entry(self, service: Service, entry: VersionEntry, names: list[str]) -> None:
        published = service.world.published
        now, was = published.get(entry.version), published.get(entry.version - 1)
        if now is not None:
            self.expect(entry.time == now.time, f"{entry} is of {now.time}")
            if was is not None:
                old, new = contents(was), contents(now)
                touched = {name for name in {*old, *new} if old.get(name) != new.get(name)}
                self.expect(touched <= set(entry.tables), f"{entry} has changed {touched}")
        missing = [each for each in names if each not in entry.requests]
        self.expect(not missing, f"{entry} was made by {missing}, too")

    async def _compare(self, service: Service) -> None:
        first, last = (self.chance.randint(self.begins, self.newest) for _ in range(2))
        newest, changes = self.newest, service.kept.changes

        async def send(front: Front) -> list[Any]:
            database = front.sql.database
            before = await database.snapshot_at(first)
            await self._dawdle()
            after = await database.snapshot_at(last)
            told = []
            for each in snapshot_changes(before, after):
                if each is None:
                    await trio.lowlevel.checkpoint()
                    service.world.let_pages_go()
                else:
                    told.append(each)
            return told

        told = await self._looked(service, send, (first, last), newest, changes)
        versions = service.world.published
        if told is not None and first in versions and last in versions:
            found = difference_problems(versions[first], versions[last], told)
            self.problems += [f"from {first} to {last}: {each}" for each in found]
            service.world.reach("two versions were compared")

    async def _looked(
        self,
        service: Service,
        send: Callable[[Front], Awaitable[Any]],
        versions: Sequence[int],
        newest: int = 0,
        changes: int = 0,
    ) -> Any:
        """Make a request that is no transaction; None on an error."""

        async def outcome(front: Front) -> Outcome:
            return Outcome(await send(front), 0)

        may = (HistoryTooOld, OutOfMemory)
        found = await self._sent(service.repeat(outcome), service, None, may)
        if not isinstance(found, QserverError):
            return found
        if isinstance(found, HistoryTooOld) and versions:
            if all(self._must_have(service, each, changes) for each in versions):
                self.problems.append(f"one of {versions} is kept, and refused")
        else:
            self._judge_refusal(service, newest, found, newest, changes)
        return None

    # --- judgements ---

    def _must_have(self, service: Service, version: int, changes: int) -> bool:
        if service.kept.changes != changes:
            return False  # it was kept for another time meanwhile
        published = service.world.published
        if version + 1 in published:
            return service.kept.must_have(published[version + 1].time)
        # Two processes may have made the next one, so what it said is not known.
        return version >= max(self.newest, service.world.last_published)

    def _judge_age(
        self, service: Service, version: int, asked: float, newest: int, changes: int
    ) -> None:
        """Report a version that was too old when it was requested."""
        gone_before = service.kept.gone_before(asked)
        following = service.world.published.get(version + 1)
        if service.kept.changes == changes and following is not None and version < newest:
            self.expect(
                following.time >= gone_before,
                f"version {version} is too old since {gone_before - following.time} s",
            )

    def _judge_refusal(
        self, service: Service, as_of: AsOf, error: QserverError, newest: int, changes: int
    ) -> None:
        if isinstance(error, OutOfMemory):
            is_short = self.profile.cache_bytes < 1 << 30 and "older version" not in str(error)
            self.expect(is_short, f"there is memory: {error!r}")
        elif isinstance(error, HistoryTooOld):
            service.world.reach("a version was too old")
            if isinstance(as_of, int):
                known = as_of <= newest and self._must_have(service, as_of, changes)
            else:
                known = service.kept.changes == changes and service.kept.must_have(as_of)
            self.expect(not known, f"{as_of} is kept, and refused")
        elif isinstance(error, InvalidRequest):
            if isinstance(as_of, int):
                known = as_of <= newest
            else:
                known = as_of < service.world.true_time() + service.world.clock_errors[0] - 1.0
            self.expect(not known, f"{as_of} is no future: {error!r}")
        elif isinstance(error, UndefinedTable):
            pass  # judged where the version is known: the table extra is not always there

    def _judge_found(
        self, service: Service, as_of: AsOf, version: int, newest: int, late: float = 0.0
    ) -> None:
        """Report any version but the newest at a time, or up to so much later."""
        if isinstance(as_of, int):
            self.expect(version == as_of, f"asked for version {as_of}, got {version}")
            return
        published = service.world.published
        now, following = published.get(version), published.get(version + 1)
        self.expect(
            version == 0 or now is None or now.time <= as_of + late,
            f"at {as_of} version {version} was not there yet",
        )
        if following is not None and version + 1 <= newest:
            self.expect(
                following.time > as_of,
                f"at {as_of} version {version + 1} was there already, not only {version}",
            )

    def _judge_rows(self, service: Service, version: int, sql: str, result: Result) -> None:
        published: Published | None = service.world.published.get(version)
        if published is None:
            return
        expected = expected_rows(contents(published), sql)
        self.expect(
            result.rows == expected,
            f"{sql} at version {version}: {result.rows}, not {expected}",
        )

    # --- at the end ---

    async def check_rows(self, service: Service) -> None:
        world, changes = service.world, service.kept.changes
        for version in range(self.begins, self.newest + 1):

            async def send(front: Front, version: int = version) -> Outcome:
                found = await front.sql.transaction(
                    [Statement(each) for each in QUERIES[:4]], as_of=version
                )
                return Outcome(found, found.version)

            found = await self._sent(
                service.repeat(send), service, None, (HistoryTooOld, OutOfMemory)
            )
            if isinstance(found, QserverError):
                self._judge_refusal(service, version, found, self.newest, changes)
                continue
            for sql, result in zip(QUERIES, found.results, strict=False):
                self._judge_rows(service, version, sql, result)
        versions = {
            version: each for version, each in world.published.items() if version >= self.begins
        }
        self.problems += version_problems(versions, self.done, self.unknown, "items")
        if self.chance.random() < 0.5:
            service.keep_history(0.0)  # all of it has to come back


def expected_rows(tables: Contents, sql: str) -> list[tuple[Any, ...]]:
    """Compute what a query must answer, from the rows."""
    items = [row for _, row in sorted(tables["items"].rows.items())]
    if sql == QUERIES[0]:
        return items
    if sql == QUERIES[1]:
        return [row for _, row in sorted(tables["counts"].rows.items())]
    if sql == QUERIES[2]:
        count = sum(1 for _, group, _ in items if group == 1)
        return [(1, count)] if count else []
    if sql == QUERIES[3]:
        return list(tables["meta"].rows.values())
    extra = tables.get("extra")
    return [] if extra is None else [row for _, row in sorted(extra.rows.items())]
