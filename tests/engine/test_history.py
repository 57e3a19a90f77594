"""Every version that history keeps can be read as it was, whatever happened since."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from qserver.durability.check_snapshot import problems_of
from qserver.durability.memory import MemoryLog
from qserver.durability.page_cache import PageCache
from qserver.durability.sqlite import open_log
from qserver.engine.checkpointer import CheckpointPolicy
from qserver.engine.database import Database
from qserver.errors import (
    ForeignKeyViolation,
    HistoryTooOld,
    InvalidRequest,
    OutOfMemory,
    QueryCanceled,
    ReadOnlyTransaction,
    UniqueViolation,
)
from qserver.query.sql_database import SqlDatabase, Statement
from qserver.storage.snapshot import Snapshot
from qserver.storage.snapshot_changes import snapshot_changes
from tests.durability.histories import entries_of
from tests.engine import counters, fakes
from tests.engine.fakes import Laboratory, until_restarted
from tests.sampling import examples

OFTEN = CheckpointPolicy(log_bytes=200, seconds=1e9, history=3600.0)


opened = partial(fakes.opened, shards=2, policy=OFTEN)


def contents(snapshot: Snapshot) -> dict[str, Any]:
    """All rows by table, whatever trees they are in; the trees have to fit together."""
    assert [each for each in problems_of(snapshot) if each is not None] == []
    return {
        name: [row for _, rows in snapshot.pages(table.id) for row in rows]
        for name, table in snapshot.catalog.tables.items()
    }


def newest(database: Database) -> Snapshot:
    snapshot = database.snapshots.take()
    assert snapshot is not None
    return snapshot


# --- against a model that keeps every version ----------------------------------------------------

rows = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), max_size=30)
events = st.one_of(
    st.tuples(st.just("write"), rows),
    st.tuples(st.just("write"), rows),
    st.tuples(st.just("delete"), rows),
    st.tuples(st.just("drop"), st.none()),
    st.tuples(st.just("checkpoint"), st.none()),
    st.tuples(st.just("time"), st.sampled_from([1.0, 50.0, 700.0])),
    st.tuples(st.just("restart"), st.none()),
    st.tuples(st.just("keep"), st.sampled_from([0.0, 60.0, 3600.0])),
    st.tuples(st.just("restore"), st.integers(0, 40)),
    st.tuples(st.just("read"), st.integers(0, 40)),
    st.tuples(st.just("hold"), st.integers(0, 40)),
    st.tuples(st.just("at"), st.floats(0.0, 3000.0)),
)


class Machine:
    def __init__(self) -> None:
        self.log, self.world = MemoryLog(), Laboratory()
        self.versions: dict[int, tuple[float, Any]] = {0: (0.0, {})}
        self.seconds = 3600.0
        self.readers: list[Snapshot] = []
        self.given_up: set[int] = set()
        """Versions that were behind the history once, when less of it was wanted."""

    async def run(self, program: list[tuple[str, Any]]) -> None:
        while program:
            policy = CheckpointPolicy(log_bytes=200, seconds=1e9, history=self.seconds)
            async with opened(self.log, self.world, policy=policy) as database:
                if newest(database).version:
                    assert contents(newest(database)) == self.versions[max(self.versions)][1]
                while program:
                    what, how = program.pop(0)
                    if what == "restart":
                        break
                    await self.do(database, what, how)
                for held in self.readers:
                    self.check(held)
                for version in self.versions:
                    await self.read(database, version)
            self.readers.clear()

    async def do(self, database: Database, what: str, how: Any) -> None:
        if what in ("write", "delete", "drop"):
            await self.write(database, what, how)
        elif what == "checkpoint":
            await database.checkpoint()
        elif what == "time":
            self.world.time += how
        elif what == "keep":
            self.given_up.update(each for each in self.versions if not self.is_kept(each))
            self.seconds = how
            database.keep_history(how)
        elif what == "restore":
            await self.restore(database, how % len(self.versions))
        elif what in ("read", "hold"):
            read = await self.read(database, how % len(self.versions))
            if what == "hold" and read is not None:
                self.readers.append(read)
        else:
            await self.read_at(database, 1000.0 + how)

    async def write(self, database: Database, what: str, how: Any) -> None:
        sql = SqlDatabase(database, self.world)
        statements = [
            "create table if not exists t (id integer primary key, v integer)",
            "create index if not exists by_v on t (v)",
        ]
        for key, value in how or ():
            if what == "write":
                statements.append(
                    f"insert into t values ({key}, {value}) on conflict (id) do update"
                    " set v = excluded.v"
                )
            else:
                statements.append(f"delete from t where id = {key}")
        if what == "drop":
            statements.append("drop table t")
        before = newest(database).version
        await sql.transaction([Statement(each) for each in statements])
        self.note(newest(database), before)

    def note(self, snapshot: Snapshot, before: int) -> None:
        if snapshot.version > before:
            assert snapshot.version == before + 1
            self.versions[snapshot.version] = (snapshot.time, contents(snapshot))

    async def restore(self, database: Database, version: int) -> None:
        before = newest(database).version
        try:
            made, restored = await database.restore_version(version)
        except HistoryTooOld:
            return
        self.note(newest(database), before)
        assert (restored, made) == (version, newest(database).version)
        assert contents(newest(database)) == self.versions[version][1]

    def is_kept(self, version: int) -> bool:
        """Return whether a version was the newest at some moment that history has."""
        following = self.versions.get(version + 1)
        if following is None:
            return True
        return bool(self.seconds) and following[0] >= self.world.time - self.seconds

    async def read(self, database: Database, version: int) -> Snapshot | None:
        try:
            snapshot = await database.snapshot_at(version)
        except HistoryTooOld:
            assert not self.is_kept(version) or version in self.given_up
            return None
        assert snapshot.version == version
        self.check(snapshot)
        assert self.is_kept(version)
        return snapshot

    async def read_at(self, database: Database, time: float) -> None:
        if time > self.world.time:
            with pytest.raises(InvalidRequest, match="future"):
                await database.snapshot_at(time)
            return
        expected = max(version for version, (at, _) in self.versions.items() if at <= time)
        try:
            snapshot = await database.snapshot_at(time)
        except HistoryTooOld:
            assert time < self.world.time - self.seconds or expected in self.given_up
            return
        assert snapshot.version == expected
        self.check(snapshot)

    def check(self, snapshot: Snapshot) -> None:
        time, entries = self.versions[snapshot.version]
        assert (snapshot.time if snapshot.version else 0.0, contents(snapshot)) == (time, entries)


@settings(deadline=None, max_examples=examples(40))
@given(program=st.lists(events, max_size=25))
async def test_every_version_that_is_kept_reads_as_it_was(program: list[tuple[str, Any]]) -> None:
    await Machine().run(program)


# --- one by one ----------------------------------------------------------------------------------


async def test_a_file_is_read_as_it_was_after_it_was_opened_again(tmp_path: Path) -> None:
    world = Laboratory()
    seen: dict[int, Any] = {}
    async with await open_log(tmp_path / "data") as log:
        async with opened(log, world) as database:
            await database.transact(counters.create(200))
            for number in range(20):
                world.time += 10
                await database.transact(counters.increment(number))
                seen[newest(database).version] = entries_of(newest(database))
            await database.close()
        async with opened(log, world) as database:
            for version in (2, 11, 20):
                snapshot = await database.snapshot_at(version)
                assert entries_of(snapshot) == seen[version]
            found = await database.snapshot_at(1000.0 + 55)
            assert found.version == 6, "version 7 was made at 1060"


async def test_the_future_and_what_is_gone_are_refused() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        await database.transact(counters.create(5))
        await database.transact(counters.increment(1))
        with pytest.raises(InvalidRequest, match="no version 3 yet, the newest is 2"):
            await database.snapshot_at(3)
        with pytest.raises(InvalidRequest, match="future"):
            await database.snapshot_at(world.time + 1.0)
        assert (await database.snapshot_at(1)).version == 1
        world.time += 3601
        await database.transact(counters.increment(1))
        world.time += 3601
        with pytest.raises(HistoryTooOld) as caught:
            await database.snapshot_at(1)
        assert caught.value.code == "QS004"
        with pytest.raises(HistoryTooOld):
            await database.snapshot_at(1000.0)
        assert (await database.snapshot_at(3)).version == 3


async def test_no_history_means_the_newest_version_alone() -> None:
    world = Laboratory()
    policy = CheckpointPolicy(log_bytes=1 << 30, seconds=1e9)
    async with opened(MemoryLog(), world, policy=policy) as database:
        await database.transact(counters.create(5))
        await database.transact(counters.increment(1))
        assert (await database.snapshot_at(2)).version == 2
        with pytest.raises(HistoryTooOld):
            await database.snapshot_at(1)


async def test_a_deadline_ends_the_making_of_a_version(autojump_clock: MockClock) -> None:
    class Slow(MemoryLog):
        async def read(self, after: int, most: int) -> Any:
            await trio.sleep(10)
            return await super().read(after, most)

    world = Laboratory()
    async with opened(Slow(), world) as database:
        await database.transact(counters.create(5))
        await database.transact(counters.increment(1))
        with pytest.raises(QueryCanceled):
            await database.snapshot_at(1, trio.current_time() + 1)


async def test_versions_in_memory_are_few_are_counted_and_go_first() -> None:
    world, cache = Laboratory(), PageCache(1 << 20)
    policy = CheckpointPolicy(log_bytes=1 << 30, seconds=1e9, history=3600.0)
    async with opened(MemoryLog(), world, policy=policy, cache=cache) as database:
        await database.transact(counters.create(20))
        for number in range(8):
            await database.transact(counters.increment(number))
        for version in range(7, 0, -1):
            await database.snapshot_at(version)
        statistics = database.statistics().history
        assert statistics is not None and statistics.rebuilt == 7
        assert cache.history_bytes == statistics.snapshot_bytes > 0
        again = await database.snapshot_at(1)
        found = database.statistics().history
        assert found is not None and found.rebuilt == 7, "it was still there"
        cache.yield_histories()
        assert 0 < cache.history_bytes < statistics.snapshot_bytes, "somebody reads one"
        del again
        cache.yield_histories()
        assert cache.history_bytes == 0 and not cache.histories


async def test_every_version_can_be_read_however_little_memory_there_is() -> None:
    """A policy for much memory keeps few checkpoints, and the log between them is long."""
    world, cache = Laboratory(), PageCache(1 << 20)
    policy = CheckpointPolicy(seconds=1e9, history=3600.0)
    async with opened(MemoryLog(), world, policy=policy, cache=cache) as database:
        await database.transact(counters.create(20))
        for _ in range(1000):
            await database.transact(counters.increment(*range(20)))
        for version in range(1, 1000, 90):
            assert (await database.snapshot_at(version)).version == version


async def test_the_version_of_a_time_is_told_without_making_it() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        await database.transact(counters.create(1))
        for _ in range(3):
            world.time += 10
            await database.transact(counters.increment(0))
        assert await database.version_at(world.time - 15.0) == 2
        assert await database.version_at(3) == 3
        statistics = database.statistics().history
        assert statistics is not None and statistics.rebuilt == 0
        for future in (9, world.time + 5.0):
            with pytest.raises(InvalidRequest):
                await database.version_at(future)
        world.time += 7200
        with pytest.raises(HistoryTooOld):
            await database.version_at(2)


async def test_sql_reads_what_was_and_writes_nothing_there() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create table t (id serial primary key, v text)")
        await sql.execute("insert into t (v) values ('a')")
        version = newest(database).version
        world.time += 10
        await sql.execute("alter table t rename column v to word")
        await sql.execute("update t set word = 'b'")
        old = await sql.transaction([Statement("select * from t")], as_of=version)
        assert (old.version, old.results[0].rows) == (version, [(1, "a")])
        assert old.results[0].columns == ("id", "v")
        text = "select column_name from information_schema.columns where table_name = 't'"
        names = await sql.transaction([Statement(text)], as_of=1000.0)
        assert ("v",) in names.results[0].rows
        stream = await sql.stream("select v from t", as_of=version)
        assert (stream.version, await stream.step()) == (version, [("a",)])
        await stream.aclose()
        for text in ("delete from t", "create table u (a int)", "select nextval('t_id_seq')"):
            with pytest.raises(ReadOnlyTransaction) as caught:
                await sql.transaction([Statement("select 1"), Statement(text)], as_of=version)
            assert (caught.value.code, caught.value.statement) == ("25006", 1)
        assert (await sql.execute("select nextval('t_id_seq'), word from t")).rows == [(2, "b")]


async def test_a_database_is_turned_back_as_one_version_and_that_can_be_undone() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create table p (id serial primary key, v text unique)")
        await sql.execute("create table c (id serial primary key, p int references p (id))")
        await sql.execute("create view shown as select v from p")
        await sql.execute("insert into p (v) values ('a'), ('b'), ('c')")
        await sql.execute("insert into c (p) values (1), (2)")
        version = newest(database).version
        before = contents(newest(database))
        await sql.execute("insert into p (v) values ('d'), ('e')")
        await sql.execute("update p set v = 'z' where id = 1")
        await sql.execute("drop view shown")
        await sql.execute("drop table c")
        await sql.execute("alter table p add column more integer default 7")
        await sql.execute("create table other (a integer)")
        changed = newest(database).version
        made, restored = await database.restore_version(version, request_id="r1")
        assert (made, restored) == (changed + 1, version)
        assert contents(newest(database)) == before
        assert (await sql.execute("select v from shown order by v")).rows == [
            ("a",),
            ("b",),
            ("c",),
        ]
        inserted = await sql.execute("insert into p (v) values ('new') returning id")
        assert inserted.rows[0][0] > 5, "no number is given out twice"
        assert (await sql.execute("insert into c (p) values (3) returning id")).rows[0][0] > 2
        with pytest.raises(ForeignKeyViolation):
            await sql.execute("insert into c (p) values (99)")
        with pytest.raises(UniqueViolation):
            await sql.execute("insert into p (v) values ('a')")
        await database.restore_version(changed)
        columns = (await sql.execute("select * from p where id = 1")).columns
        assert columns == ("id", "v", "more")
        assert (await sql.execute("select count(*) from other")).rows == [(0,)]


async def test_a_restore_changes_only_rows_of_a_table_that_another_one_made_anew() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create table p (id serial primary key, v text unique)")
        await sql.execute("insert into p (v) values ('a'), ('b'), ('c')")
        version, before = newest(database).version, contents(newest(database))
        await sql.execute("drop table p")
        made, _ = await database.restore_version(version)
        again, _ = await database.restore_version(version)
        assert again == made, "it is what it was already"
        await sql.execute("update p set v = 'z' where id = 1")
        await sql.execute("insert into p (v) values ('d')")
        assert await database.restore_version(version) == (newest(database).version, version)
        assert contents(newest(database)) == before
        (entry,) = await database.history.versions(None, 1)
        assert (entry.tables, entry.rows_changed) == (["p"], 2)
        assert (await sql.execute("select id from p where v = 'a'")).rows == [(1,)]
        with pytest.raises(UniqueViolation):
            await sql.execute("insert into p (v) values ('a')")
        inserted = await sql.execute("insert into p (v) values ('z') returning id")
        assert inserted.rows[0][0] > 4, "no number is given out twice"


async def test_what_is_larger_than_the_budget_is_not_restored() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world, cache=PageCache(40_000)) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create table t (id integer primary key, v text)")
        for start in (0, 100, 200):
            await sql.execute(
                f"insert into t select g, 'some words' from generate_series({start + 1},"
                f" {start + 100}) g"
            )
        version = newest(database).version
        await sql.execute("drop table t")
        with pytest.raises(OutOfMemory) as caught:
            await database.restore_version(version)
        assert caught.value.code == "53200" and "branch" in (caught.value.hint or "")


async def test_versions_are_listed_with_what_they_touched_and_who_wanted_them() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        await sql.transaction(
            [Statement("create table t (a integer primary key, b integer)")], request_id="one"
        )
        await sql.execute("create index on t (b)")
        await sql.transaction(
            [Statement("insert into t select g, g from generate_series(1, 40) g")], request_id="two"
        )
        world.time += 10
        await sql.execute("alter table t rename to u")
        await sql.execute("delete from u where a < 3")
        found = await database.history.versions(None, 100)
        assert [each.version for each in found] == [5, 4, 3, 2, 1]
        assert [each.tables for each in found] == [["u"], ["t", "u"], ["t"], ["t"], ["t"]]
        assert [each.rows_changed for each in found] == [2, 0, 40, 0, 0]
        assert [each.requests for each in found] == [[], [], ["two"], [], ["one"]]
        assert found[0].time == 1010.0
        some = await database.history.versions(4, 2)
        assert [each.version for each in some] == [3, 2]
        world.time += 3600 - 5
        found = await database.history.versions(None, 100)
        assert [each.version for each in found] == [5, 4, 3], "version 3 was the newest then"


async def test_names_that_a_version_made_and_dropped_again_are_not_listed() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create table t (a integer primary key)")
        await sql.execute("insert into t values (1)")
        await sql.execute("alter table t add column b integer default 7")
        await sql.transaction(
            [Statement("create table brief (a integer)"), Statement("drop table brief")]
        )
        found = await database.history.versions(None, 2)
        assert [each.tables for each in found] == [[], ["t"]]


async def test_a_difference_is_net_and_can_be_begun_anywhere() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        sql = SqlDatabase(database, world)
        await sql.execute("create table t (a integer primary key, b integer)")
        await sql.execute("create table gone (a integer primary key)")
        await sql.execute("insert into t select g, 0 from generate_series(1, 50) g")
        first = await database.snapshot_at(newest(database).version)
        await database.checkpoint()
        await sql.execute("update t set b = 1 where a in (2, 40)")
        await sql.execute("update t set b = 2 where a = 7")
        await sql.execute("update t set b = 0 where a = 7")
        await sql.execute("delete from t where a = 50")
        await sql.execute("drop table gone")
        await sql.execute("create table made (a integer primary key)")
        await sql.execute("insert into made values (1)")
        last = newest(database)
        again = await database.snapshot_at(first.version)
        for before in (first, again):
            found = [each for each in snapshot_changes(before, last) if each is not None]
            told = [(name, key, change.op) for name, key, change in found]
            assert told == [
                ("gone", None, "schema"),
                ("made", None, "schema"),
                ("made", (1,), "insert"),
                ("t", (2,), "update"),
                ("t", (40,), "update"),
                ("t", (50,), "delete"),
            ]
            for at, (name, key, _) in enumerate(found):
                rest = [each for each in snapshot_changes(before, last, None, (name, key)) if each]
                assert [each[:2] for each in rest] == [each[:2] for each in found[at + 1 :]]
        back = [each[2].op for each in snapshot_changes(last, first, {"t"}) if each is not None]
        assert back == ["update", "update", "insert"]


async def test_versions_that_are_too_old_are_not_held_for_the_next_reader() -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        await database.transact(counters.create(40))
        for number in range(5):
            await database.transact(counters.increment(number))
            await database.checkpoint()
        await database.snapshot_at(2)
        assert database.history.held > 0
        world.sent.clear()  # messages lead to snapshots, too
        database.keep_history(0.0)
        await database.checkpoint()
        generation = database._generation
        assert generation is not None
        assert generation.checkpointer.saved.dead == [], "nobody needs their pages"


async def test_a_length_of_history_that_is_set_while_the_engine_restarts_counts(
    autojump_clock: MockClock,
) -> None:
    world = Laboratory()
    async with opened(MemoryLog(), world) as database:
        await database.transact(counters.create(5))
        for restarts in (1, 2):  # the second time there is a pause
            await database.transact(counters.increment(0))
            world.kill("coordinator")
            await until_restarted(database, restarts)
        await database.wait_durable_snapshot()
        assert database._generation is None, "it is read during the pause"
        database.keep_history(7.0)
        await database.transact(counters.increment(1))
        assert database._generation is not None
        assert database._generation.checkpointer.history == 7.0


async def test_where_nothing_is_kept_nothing_is_listed() -> None:
    async with opened(MemoryLog(), Laboratory()) as database:
        await database.transact(counters.create(5))
        assert await database.history.versions(1, 10) == []
        assert [each.version for each in await database.history.versions(None, 10)] == [1]
