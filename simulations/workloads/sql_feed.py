"""The change feed: readers apply the changes, are cut off at any byte, and come back.

    every version      once, in order, as a whole: applied, it gives the tables that were published
    every version      complete: versions that were skipped changed no wanted table
    every version      durable when it is sent
    every end          is an error that says why

Readers live as long as the run. Each follows all tables or some, by events or by long polling, fast
or slow, and continues from its version: after crashes and restarts, and after history has dropped
versions, which must be reported. Definitions come in between, beside rows or alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import trio

from qserver.engine.gateway import Outcome
from qserver.errors import (
    DuplicateColumn,
    DuplicateTable,
    HistoryTooOld,
    OutOfMemory,
    QserverError,
    ReaderTooSlow,
    Unauthorized,
    UndefinedColumn,
    UndefinedTable,
    UniqueViolation,
)
from qserver.query.sql_database import Statement
from simulations.checkers.feeds import FedTables, Row, Tables, Told, row_of, tables_of
from simulations.faults import Profile
from simulations.observations import REQUEST
from simulations.service import Service
from simulations.web.answers import decode, read_error
from simulations.web.exchange import Exchange, Reply, head
from simulations.web.front import Front
from simulations.web.keys import ORDINARY, brief_key
from simulations.workloads.sql_workload import PAUSE, SqlWorkload

ITEMS: Final = 16
READERS: Final = 4
READS: Final = 0.4
BY_EVENTS: Final = 0.7
DEFINES: Final = 0.25
CUTS: Final = 0.15
FOREVER: Final = 1e8
"""History that keeps everything."""

ADD: Final = "ALTER TABLE items ADD COLUMN w INTEGER DEFAULT 7"
DROP: Final = "ALTER TABLE items DROP COLUMN w"
RENAME: Final = "ALTER TABLE notes RENAME TO memos"
RENAME_BACK: Final = "ALTER TABLE memos RENAME TO notes"
TRUNCATE: Final = "TRUNCATE events"


def _widen(tables: Tables) -> None:
    rows = tables["items"] or Counter()
    tables["items"] = Counter({row_of({**dict(row), "w": 7}): n for row, n in rows.items()})


def _narrow(tables: Tables) -> None:
    narrow: Counter[Row] = Counter()
    for row, count in (tables["items"] or Counter()).items():
        narrow[tuple(each for each in row if each[0] != "w")] += count
    tables["items"] = narrow


def _rename(old: str, new: str) -> Callable[[Tables], None]:
    def rename(tables: Tables) -> None:
        tables[new] = tables.pop(old, None)

    return rename


def _truncate(tables: Tables) -> None:
    tables["events"] = Counter()


DEFINITIONS: Final = {
    ADD: _widen,
    DROP: _narrow,
    RENAME: _rename("notes", "memos"),
    RENAME_BACK: _rename("memos", "notes"),
    TRUNCATE: _truncate,
}

CHANGES: Final = (
    "UPDATE items SET v = v + $1 WHERE id = $2",
    "UPDATE items SET v = $1 WHERE id % 4 = $2 % 4",
    "UPDATE items SET id = $1 + 100 WHERE id = $2",
    "DELETE FROM items WHERE id = $2 AND $1 > 0",
    "DELETE FROM items WHERE id > 100 AND id % 3 = $2 % 3 AND $1 > 0",
    "INSERT INTO items (id, v) VALUES ($2, $1) ON CONFLICT DO NOTHING",
    "INSERT INTO notes VALUES ($1, $2) ON CONFLICT DO NOTHING",
    "UPDATE memos SET item = $1 WHERE id % 5 = $2 % 5",
    "DELETE FROM notes WHERE id % 5 = $1 % 5 AND $2 >= 0",
    "INSERT INTO events VALUES ('a', $1), ('a', $1), ('b', $2)",
    "UPDATE events SET n = n + $1 WHERE n % 5 = $2 % 5",
    "DELETE FROM events WHERE n % 7 = $1 % 7 AND $2 >= 0",
)

HOT: Final = (
    "UPDATE items SET v = v + $1 WHERE id = 3",
    "UPDATE items SET v = $1 % 2 * 80 WHERE id = 3",
    "DELETE FROM items WHERE id = 3 AND $1 > 0",
    "INSERT INTO items (id, v) VALUES (3, $1) ON CONFLICT DO NOTHING",
)
"""Changes of one row; the second makes what may have been there before."""

BURSTS: Final = 0.2

FILTERS: Final = (None, frozenset({"items"}), frozenset({"notes"}), frozenset({"items", "events"}))


class SqlFeed(SqlWorkload):
    name = "sql_feed"
    tables = (
        "CREATE TABLE items (id integer PRIMARY KEY, v integer NOT NULL)",
        "CREATE TABLE notes (id integer PRIMARY KEY, item integer)",
        "CREATE TABLE events (kind text, n integer)",
        f"INSERT INTO items SELECT n, n * 7 % 90 FROM generate_series(0, {ITEMS - 1}) AS g(n)",
    )

    def __init__(self, seed: int, profile: Profile) -> None:
        super().__init__(seed, profile)
        self._readers: list[_Reader] = []

    async def setup(self, service: Service) -> None:
        await super().setup(service)
        self._readers = [_Reader(self, service, FILTERS[n]) for n in range(READERS)]

    async def transaction(self, service: Service, number: int) -> None:
        idle = [each for each in self._readers if not each.is_reading]
        if idle and self.chance.random() < READS:
            await self.chance.choice(idle).read()
            return
        if self.chance.random() < BURSTS:
            await self._change_one_row(service)
            return
        statements = [self._change() for _ in range(self.chance.choice((1, 1, 3)))]
        if self.chance.random() < DEFINES:
            definition = Statement(self.chance.choice(list(DEFINITIONS)))
            if self.chance.random() < 0.3:
                statements.clear()
            statements.insert(self.chance.randint(0, len(statements)), definition)
        if self.is_long():
            statements.insert(0, PAUSE)
        may = UniqueViolation, DuplicateColumn, UndefinedColumn, DuplicateTable, UndefinedTable
        await self.together(service, statements, may=may)

    async def _change_one_row(self, service: Service) -> None:
        """Change one row by several requests at once: in one version, or in one group."""
        async with trio.open_nursery() as nursery:
            for _ in range(self.chance.randint(2, 4)):
                change = Statement(self.chance.choice(HOT), [self.chance.randrange(1, 90)])
                nursery.start_soon(self.together, service, [change])

    def _change(self) -> Statement:
        sql = self.chance.choice(CHANGES)
        return Statement(sql, [self.chance.randrange(1, 90), self.chance.randrange(ITEMS)])

    async def check_rows(self, service: Service) -> None:
        """Let every reader catch up, and then receive a commit that comes while it waits."""
        for reader in self._readers:
            await reader.catch_up()
        async with trio.open_nursery() as nursery:
            for reader in self._readers:
                nursery.start_soon(reader.expect_a_change)
            await trio.sleep(1.0)
            await self.must(service, "INSERT INTO items (id, v) VALUES (1000, 1)")


class _Reader:
    """One reader of changes, with the tables that it has built from them."""

    def __init__(self, workload: SqlFeed, service: Service, wanted: frozenset[str] | None) -> None:
        self._workload = workload
        self._service = service
        self._chance = workload.chance
        self._wanted = wanted
        self._fed: FedTables | None = None
        self._crashes = 0
        self.is_reading = False

    async def read(self) -> None:
        """Read for a while, in one way or the other, and be cut off."""
        self.is_reading = True
        try:
            by_events = self._chance.random() < BY_EVENTS
            await self._sent(self._follow if by_events else self._poll)
        finally:
            self.is_reading = False

    async def catch_up(self) -> None:
        """Read until there is nothing more; faults have ceased."""
        for _ in range(1000):
            if await self._sent(self._poll):
                break

    async def expect_a_change(self) -> None:
        if self._fed is None or (self._wanted is not None and "items" not in self._wanted):
            return
        fed, version = self._fed, self._fed.version
        await self._sent(self._wait)
        self._expect(fed.version > version, "waits for a commit that has come long ago")

    async def _sent(self, read: Callable[[Front], Awaitable[bool]]) -> bool:
        """Send a request; return whether it has read everything there is."""
        done = False

        async def send(front: Front) -> Outcome:
            nonlocal done
            self._begin(front)
            done = await read(front)
            return Outcome(None, 0)

        try:
            await self._service.repeat(send)
        except (HistoryTooOld, ReaderTooSlow) as error:
            kept = self._workload.profile.history > FOREVER
            self._expect(not kept, f"is told that what it needs is gone: {error!r}")
            self._service.world.reach("a reader of changes fell out of history")
            self._fed = None
        except (UndefinedTable, OutOfMemory) as error:
            renamed = self._wanted is not None and "notes" in self._wanted
            is_short = isinstance(error, OutOfMemory) and "older version" not in str(error)
            self._expect(renamed or is_short, f"is refused its tables: {error!r}")
            self._fed = None
        except Unauthorized:
            self._service.world.reach("a reader of changes lost its key")
        except QserverError as error:
            self._workload._judge_error(self._service, error, ())
        return done

    def _begin(self, front: Front) -> None:
        """Read the tables, unless they are known."""
        durable = front.sql.database.snapshots.take()
        published = None if durable is None else self._service.world.published.get(durable.version)
        if self._fed is None and durable is not None and published is not None:
            tables = tables_of(published, self._wanted)
            self._fed = FedTables(DEFINITIONS, self._wanted, durable.version, tables)

    # --- some at a time ---

    async def _poll(self, front: Front) -> bool:
        if self._fed is None:
            return True
        limit, wait = self._chance.choice((1, 3, 1000)), self._chance.choice((0, 0, 500))
        query = f"since={self._fed.version}&limit={limit}&wait_ms={wait}"
        exchange = self._exchange(front, query, {})
        with trio.move_on_after(self._chance.uniform(0.05, 3.0)) as scope:
            async with exchange.opened() as response:
                reply = Reply(response.status, dict(response.headers.pairs), response.request_id)
                body: Any = response.body
                answer = decode(body)
                if not answer["success"]:
                    raise read_error(answer["error"], reply, self._complain)
                self._take_answer(front, answer)
        return not scope.cancelled_caught and answer["next"] == answer["newest"]

    def _take_answer(self, front: Front, answer: dict[str, Any]) -> None:
        versions: dict[int, list[Told]] = {}
        for change in answer["changes"]:
            versions.setdefault(change["version"], []).append(change)
        self._expect(list(versions) == sorted(versions), f"has versions in disorder: {answer}")
        for version, changes in versions.items():
            self._told(front, version, changes)
        self._told(front, answer["next"], [])

    # --- events ---

    async def _wait(self, front: Front) -> bool:
        return await self._follow(front, 10.0, cuts=0.0)

    async def _follow(
        self, front: Front, patience: float | None = None, cuts: float = CUTS
    ) -> bool:
        """Read events for a while; what follows the last whole version is discarded."""
        fed = self._fed
        if fed is None:
            return True
        chance, name = self._chance, REQUEST.get()
        query, headers = f"since={fed.version}", {b"accept": b"text/event-stream"}
        if chance.random() < 0.5:
            query, headers[b"last-event-id"] = "since=0", b"%d" % fed.version
        key = ORDINARY
        if front.world.faults.on and chance.random() < 0.1:
            key = brief_key(name, chance.randint(1, 4))
        crashes, self._crashes = self._crashes, self._service.crashes
        if crashes < self._crashes:
            self._service.world.reach("a reader of changes went on after a crash")
        slow = chance.choice((0.0, 0.0, 0.3))
        with trio.move_on_after(patience or chance.uniform(0.05, 3.0)):
            async with self._exchange(front, query, headers, key).opened() as response:
                reply = Reply(response.status, dict(response.headers.pairs), response.request_id)
                if isinstance(response.body, bytes):
                    raise read_error(decode(response.body)["error"], reply, self._complain)
                events = _Events()
                async for part in response.body:
                    cut = chance.random() < cuts
                    size = chance.randrange(len(part)) if cut else len(part)
                    for version, changes in events.versions(part[:size]):
                        self._told(front, version, changes)
                    if events.error is not None:
                        raise read_error(events.error, reply, self._complain)
                    if cut:
                        return False
                    if chance.random() < slow:
                        await trio.sleep(chance.expovariate(1.0))
                self._complain("is left without an error when its stream ends")
        return False

    # --- what it is told ---

    def _told(self, front: Front, version: int, changes: list[Told]) -> None:
        """Apply a version, and compare with what was published."""
        fed, world = self._fed, self._service.world
        if fed is None:
            return  # what it had was wrong already
        durable = front.sql.database.snapshots.take()
        self._expect(
            durable is None or version <= durable.version,
            f"is told version {version}, which is not durable",
        )
        if version == fed.version and not changes:
            return
        problems = []
        for between in range(fed.version + 1, version):
            published = world.published.get(between)
            if published is not None:
                found = fed.differences(published)
                problems += [f"is not told version {between}: {each}" for each in found]
        problems += fed.follow(version, changes)
        published = world.published.get(version)
        if published is not None:
            found = fed.differences(published)
            problems += [f"is wrong at version {version}: {each}" for each in found]
            times = {each["time"] for each in changes}
            self._expect(len(times) <= 1, f"has several times of version {version}: {times}")
        for problem in problems:
            self._complain(problem)
        if problems:
            self._fed = None

    def _exchange(
        self, front: Front, query: str, headers: dict[bytes, bytes], key: str = ORDINARY
    ) -> Exchange:
        if self._wanted is not None:
            query += "&tables=" + ",".join(sorted(self._wanted))
        headers = {**headers, b"authorization": b"Bearer " + key.encode()}
        request = head("/v1/changes", headers, "GET", query.encode())
        return Exchange(front, REQUEST.get(), request, lambda: 0.0)

    def _complain(self, problem: str) -> None:
        wanted = "all" if self._wanted is None else ",".join(sorted(self._wanted))
        self._workload.problems.append(f"the reader of {wanted} {problem}")

    def _expect(self, truth: bool, problem: str) -> None:
        if not truth:
            self._complain(problem)


class _Events:
    """Assembles versions from pieces of a stream."""

    def __init__(self) -> None:
        self._rest = b""
        self._changes: list[Told] = []
        self.error: dict[str, Any] | None = None

    def versions(self, piece: bytes) -> Iterator[tuple[int, list[Told]]]:
        """Yield the versions that are complete now, with their changes."""
        *blocks, self._rest = (self._rest + piece).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n"))
            if b"event" not in fields:
                continue
            data: Any = decode(fields[b"data"])
            if fields[b"event"] == b"version":
                assert data == {"version": int(fields[b"id"])}, block
                changes, self._changes = self._changes, []
                yield data["version"], changes
            elif fields[b"event"] == b"error":
                self.error = data["error"]
            else:
                assert b"id" not in fields, block
                self._changes.append(data)
